"""The numbers of a comparison, one function each, from values of one row a question and one column a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from harness.core.tolerances import VALUE_TIE

LEVEL = 0.05  # of significance, of every test and interval
RESAMPLES = 2000  # of a bootstrap
BITS = 30  # of a difference: equal ones are to have equal ranks
COUNTED = 13  # gaps of which all signs are counted
ENOUGH = 10  # questions behind a common mean
BLOCKS = 5  # data sets behind a test over data sets
NEARLY = 0.5  # of the best coverage: who answers less is compared by no mean, and recommended for nothing

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Estimate:
    """A mean or median with its 95 % interval, and the number of questions behind it; NaN where there are none."""

    value: float
    low: float
    high: float
    n: int


def mean(values: np.ndarray) -> Estimate:
    """The mean of one value a question, those that are NaN left out; the interval is a bootstrap over questions."""
    return _bootstrapped(values, np.mean)


def median(values: np.ndarray) -> Estimate:
    """As ``mean``, of the median."""
    return _bootstrapped(values, np.median)


def _bootstrapped(values: np.ndarray, statistic: Callable[..., Any]) -> Estimate:
    """A statistic and the percentile interval of its bootstrap: ``scipy.stats.bootstrap`` takes ten times as long."""
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    if not known.size:
        return Estimate(math.nan, math.nan, math.nan, 0)
    value = float(statistic(known))
    if known.size == 1:
        return Estimate(value, math.nan, math.nan, 1)
    if (known == known[0]).all():
        return Estimate(value, value, value, known.size)
    draws = statistic(known[_resamples(known.size)], axis=1)
    low, high = np.quantile(draws, (LEVEL / 2, 1 - LEVEL / 2))
    return Estimate(value, float(low), float(high), known.size)


@cache
def _resamples(size: int, seed: int = 0) -> np.ndarray:
    """Places of values, drawn with replacement, shape (resamples, size): the same for every statistic."""
    return np.random.default_rng(seed).integers(size, size=(RESAMPLES, size))


@cache
def _drawn(size: int, seed: int) -> np.ndarray:
    """How often each place is among the resamples, of the same shape."""
    return np.stack([np.bincount(row, minlength=size) for row in _resamples(size, seed)])


def resampled(table: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Mean of each column over resamples of the rows, shape (resamples, columns); values that are NaN are left out.

    NaN of fewer than two rows, which say nothing of their spread. Tables of equal length and ``seed`` have the same
    resamples.
    """
    if len(table) < 2:
        return np.full((RESAMPLES, table.shape[1]), math.nan)
    drawn = _drawn(len(table), seed)
    with np.errstate(invalid="ignore"):
        return (drawn @ table.fillna(0.0).to_numpy(float)) / (drawn @ table.notna().to_numpy(float))


def share(answered: np.ndarray) -> Estimate:
    """The share of questions answered: Wilson's interval where all seeds answer alike, else a bootstrap over questions.

    ``answered``: of each question the share of seeds that answered it.
    """
    answered = np.asarray(answered, float)
    if not answered.size or not np.isin(answered, (0.0, 1.0)).all():
        return mean(answered)
    test = stats.binomtest(int(answered.sum()), answered.size)
    interval = test.proportion_ci(1 - LEVEL, method="wilson")
    return Estimate(float(answered.mean()), float(interval.low), float(interval.high), answered.size)


def mean_of(estimates: Sequence[Estimate], groups: Sequence[str]) -> Estimate:
    """The mean of estimates, with an interval from theirs: its ends' distances are squared and added over groups (Zou
    and Donner, 2008), and within a group, of which the questions are the same, added as they are, which is the widest.
    """

    def reach(distances: Iterable[float]) -> float:
        sums = dict.fromkeys(groups, 0.0)
        for group, distance in zip(groups, distances, strict=True):
            sums[group] += distance
        return math.hypot(*sums.values()) / len(estimates)

    value, count = sum(each.value for each in estimates) / len(estimates), sum(each.n for each in estimates)
    low, high = reach(each.value - each.low for each in estimates), reach(each.high - each.value for each in estimates)
    return Estimate(value, value - low, value + high, count)


@dataclass(frozen=True)
class Pair:
    """Two methods of a task compared by a criterion, on the questions that both answered.

    Parameters
    ----------
    difference
        The median of first minus second.
    p, mcnemar
        Of Wilcoxon's signed ranks of those differences; of McNemar's exact test of who answered. NaN without a
        question to test. Each is adjusted by Holm over the pairs of the task and criterion.
    only_first, only_second
        How many questions one answered and the other did not.
    """

    first: str
    second: str
    difference: Estimate
    p: float
    only_first: int
    only_second: int
    mcnemar: float

    def ahead(self, better: Better) -> set[tuple[str, str]]:
        """Which of the two a test finds better, then the other: by values, or by who answers more.

        Both ways where the tests do not agree, or where a test tells values apart whose median difference is 0.
        """
        gap = self.difference.value * (1.0 if better == "higher" else -1.0)
        way = {True: (self.first, self.second), False: (self.second, self.first)}
        found = {way[side] for side in (True, False) if self.p < LEVEL and (gap == 0 or (gap > 0) == side)}
        return found | ({way[self.only_first > self.only_second]} if self.mcnemar < LEVEL else set())


def pairs(values: pd.DataFrame, answered: pd.DataFrame | None = None) -> list[Pair]:
    """Every pair of methods of one task and criterion.

    Parameters
    ----------
    values
        One row a question, one column a method; NaN where it has no accepted counterfactual, or one without a value.
    answered
        Whether it has an accepted one, of the same shape; by default where there is a value.
    """
    answered = values.notna() if answered is None else answered
    numbers, known = values.to_numpy(float).T, values.notna().to_numpy().T
    has = answered.fillna(False).to_numpy(bool).T
    lacks = answered.notna().to_numpy().T & ~has  # who was not asked has not failed
    found = []
    for (one, first), (other, second) in combinations(enumerate(values.columns), 2):
        both = known[one] & known[other]
        gaps = differences(numbers[one][both], numbers[other][both])
        only = int((has[one] & lacks[other]).sum()), int((has[other] & lacks[one]).sum())
        found.append(Pair(first, second, median(gaps), wilcoxon(gaps), *only, mcnemar(*only)))
    tests = holm([pair.p for pair in found]), holm([pair.mcnemar for pair in found])
    return [replace(pair, p=p, mcnemar=q) for pair, p, q in zip(found, *tests, strict=True)]


def differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """First minus second; 0 where the two are equal but for a tie, and without the noise of the last digits."""
    gaps, unit = first - second, 2.0**-BITS  # a power of two, of which multiples are exact
    tied = np.abs(gaps) <= VALUE_TIE * np.maximum(1.0, np.maximum(np.abs(first), np.abs(second)))
    return np.where(tied, 0.0, np.round(gaps / unit) * unit)


def wilcoxon(gaps: np.ndarray) -> float:
    """p of Wilcoxon's signed ranks, zeros split; 1 where all are zero, NaN without any.

    As ``scipy.stats.wilcoxon`` has it, which takes a second for few gaps with ties: these are counted out here.
    """
    if not len(gaps):
        return math.nan
    if not gaps.any():
        return 1.0
    sizes = np.abs(gaps)
    if len(gaps) <= COUNTED and (len(np.unique(sizes)) < len(sizes) or not gaps.all()):
        return _counted(np.sign(gaps), stats.rankdata(sizes))
    return float(stats.wilcoxon(gaps, zero_method="zsplit").pvalue)


def _counted(signs: np.ndarray, ranks: np.ndarray) -> float:
    """p over all ways to sign the ranks of what is not zero, two-sided."""
    free = ranks[signs != 0]
    ways = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1
    sums = ways @ free
    found = free[signs[signs != 0] > 0].sum()
    tail = min((sums >= found - VALUE_TIE).mean(), (sums <= found + VALUE_TIE).mean())
    return float(min(1.0, 2.0 * tail))


@cache
def mcnemar(only_first: int, only_second: int) -> float:
    """p of McNemar's exact test; NaN where both answered the same questions."""
    either = only_first + only_second
    return float(stats.binomtest(only_first, either).pvalue) if either else math.nan


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm; those that are NaN are no tests and stay.

    >>> holm([0.01, 0.04, float("nan"), 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    adjusted, tested = list(p), sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    least = 0.0
    for rank, (value, place) in enumerate(tested):
        least = max(least, min(1.0, value * (len(tested) - rank)))
        adjusted[place] = least
    return adjusted


@dataclass(frozen=True)
class Common:
    """Means over the questions that all of some methods answered."""

    means: Mapping[str, Estimate]
    left_out: tuple[str, ...]
    n: int

    @property
    def enough(self) -> bool:
        """Whether so many questions are behind the means that they may be shown instead of pairs."""
        return self.n >= ENOUGH


def comparable(coverage: pd.Series) -> list[str]:
    """Methods that cover at least half of what the best covers; none where nobody answers anything."""
    return list(coverage.index[(coverage > 0) & (coverage >= NEARLY * coverage.max())])


def falling_short(covered: pd.DataFrame) -> list[str]:
    """Methods that cover nothing, or less than half of what another covers on average of the tasks that both take.

    Another is one that takes at least half of a method's tasks: a specialist is no measure of who takes all.

    Parameters
    ----------
    covered
        One row a task, one column a method; NaN where it refuses.

    >>> falling_short(pd.DataFrame({"a": [1.0, 0.2], "b": [0.5, 0.2], "c": [0.4, float("nan")], "d": [0.0, 0.0]}))
    ['c', 'd']
    """
    known = covered.notna().to_numpy(float)
    shared = covered.fillna(0.0).to_numpy(float).T @ known  # of the tasks that two take: what the first covers of them
    both = known.T @ known
    short = ((shared < NEARLY * shared.T) & (both >= NEARLY * np.diag(both)[:, None])).any(axis=1)
    short |= np.diag(shared) == 0
    return [str(name) for name, falls in zip(covered, short, strict=True) if falls]


def common(values: pd.DataFrame, coverage: pd.Series) -> Common:
    """Means over the questions answered by every method that covers at least half of what the best covers.

    Parameters
    ----------
    values
        As for ``pairs``, of the methods that did not refuse the task.
    coverage
        By method.
    """
    kept = [name for name in comparable(coverage) if name in values]
    shared = values[kept].dropna() if kept else values.iloc[:0]
    means = {name: mean(shared[name].to_numpy()) for name in kept}
    return Common(means, tuple(name for name in values.columns if name not in kept), len(shared))


def normalised_ranks(values: pd.DataFrame, better: Better, unranked: pd.DataFrame | None = None) -> pd.DataFrame:
    """Of each question the rank of each method, from 0 (best) to 1: (r - 1) / (m - 1).

    Equal values share the mean of their ranks; so do those that are NaN, which are last. Those that are ``unranked``,
    bool of the same shape, have no rank, and are no rivals of others. NaN for a single method.

    >>> values = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0 + 1e-9, float("nan")], "c": [3.0, float("nan")]})
    >>> normalised_ranks(values, "lower").to_numpy().tolist()
    [[0.25, 0.25, 1.0], [0.0, 0.75, 0.75]]
    """
    costs = values.to_numpy(float) * (1.0 if better == "lower" else -1.0)
    ranked = np.ones(costs.shape, bool) if unranked is None else ~unranked.to_numpy()
    ranks = np.full(costs.shape, math.nan)
    for row, (cost, rivals) in enumerate(zip(costs, ranked, strict=True)):
        if rivals.sum() > 1:
            ranks[row, rivals] = (stats.rankdata(_levels(cost[rivals])) - 1) / (rivals.sum() - 1)
    return pd.DataFrame(ranks, values.index, values.columns)


def _levels(costs: np.ndarray) -> np.ndarray:
    """Values as numbers of their level: a level begins where one is above the first of the last by more than a tie."""
    levels = np.full(len(costs), math.inf)
    start, level = -math.inf, 0
    for place in np.argsort(costs):  # NaN last
        value = costs[place]
        if math.isnan(value):
            break
        if value - start > VALUE_TIE * max(1.0, abs(value)):
            start, level = value, level + 1
        levels[place] = level
    return levels


@dataclass(frozen=True)
class Friedman:
    """A test over data sets: p that all methods are alike, and of each pair of methods by Nemenyi."""

    p: float
    pairs: pd.DataFrame


def friedman(blocks: pd.DataFrame) -> Friedman | None:
    """Friedman's test and Nemenyi's of pairs, over one row a data set and one column a method.

    None where there are fewer than five data sets or three methods: then there is no such test.
    """
    if len(blocks) < BLOCKS or blocks.shape[1] < 3:
        return None
    alike = (blocks.to_numpy() == blocks.to_numpy()[:, :1]).all()
    p = 1.0 if alike else float(stats.friedmanchisquare(*(blocks[name] for name in blocks)).pvalue)
    if p < LEVEL:
        return Friedman(p, posthocs().posthoc_nemenyi_friedman(blocks))
    return Friedman(p, pd.DataFrame(1.0, blocks.columns, blocks.columns))


def posthocs() -> ModuleType:
    """The library of tests between pairs, and of diagrams of critical differences."""
    import scikit_posthocs  # slow: 2 s

    return scikit_posthocs


def places(ordered: Sequence[str], beats: Callable[[str, str], bool]) -> dict[str, int]:
    """The place of each method: 1 + the number of methods placed before; shared with those like the first of it.

    Parameters
    ----------
    ordered
        Methods, best first.
    beats
        Whether a test finds the first of two methods better than the second.

    >>> places(["a", "b", "c", "d"], lambda first, other: (first, other) in {("a", "c"), ("a", "d")})
    {'a': 1, 'b': 1, 'c': 3, 'd': 3}
    """
    found: dict[str, int] = {}
    first, place = "", 0
    for number, name in enumerate(ordered, start=1):
        if not first or beats(first, name):
            first, place = name, number
        found[name] = place
    return found


def best(means: Mapping[str, Estimate], better: Better, answered: pd.DataFrame) -> set[str]:
    """The methods with the best common mean among those whose coverage is not below the greatest.

    Below is what McNemar's test, adjusted by Holm over the methods, tells apart from the greatest coverage, of methods
    that were asked at least half as many questions as any; of equal ones, that of most answers.

    Parameters
    ----------
    answered
        Whether each question (rows) is answered, by method, of all methods that did not refuse; NA where one was not
        asked.
    """
    asked = answered.notna().sum()
    coverage = answered.mean()[asked >= NEARLY * asked.max()].dropna()
    if not len(coverage) or not coverage.max():
        return set()
    most = answered.sum()[coverage.index[coverage == coverage.max()]].idxmax()
    has, others = answered[most], [name for name in answered.columns if name != most]
    only = [(int((has & ~answered[name]).sum()), int((answered[name] & ~has).sum())) for name in others]
    tests = zip(others, holm([mcnemar(*counts) for counts in only]), only, strict=True)
    fewer = {name for name, p, (most_alone, alone) in tests if p < LEVEL and alone < most_alone}
    kept = {name: mean.value for name, mean in means.items() if name not in fewer and not math.isnan(mean.value)}
    if not kept:
        return set()
    top = min(kept.values()) if better == "lower" else max(kept.values())
    return {name for name, value in kept.items() if abs(value - top) <= VALUE_TIE * max(1.0, abs(top))}
