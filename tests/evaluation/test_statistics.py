"""Tests, intervals and ranks of a comparison against scipy, textbook formulas and small cases by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from harness.evaluation import statistics
from harness.evaluation.statistics import Estimate, mean_of

NAN = math.nan


def test_a_share_of_one_seed_has_wilsons_interval() -> None:
    """By its formula, of 3 in 10."""
    found = statistics.share(np.array([1.0] * 3 + [0.0] * 7))
    z, p, n = stats.norm.ppf(0.975), 0.3, 10
    middle, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low, high = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((0.3, low, high, 10))


def test_with_several_seeds_questions_are_drawn_again() -> None:
    """Of 400, so many that means are about normal; Wilson's interval is wider by a tenth."""
    answered = np.array([1.0] * 80 + [0.5] * 80 + [0.0] * 240)
    found = statistics.share(answered)
    half = 1.96 * answered.std() / 20  # .038; of an interval of 90 % it is .032
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half), abs=0.003)


def test_more_seeds_with_the_same_answers_are_no_certainty() -> None:
    """Five of five questions by all seeds: Wilson's 5 / (5 + z²), as with one seed, and not 1."""
    assert statistics.share(np.ones(5)).low == pytest.approx(5 / (5 + 1.959964**2))


def test_what_is_undefined_is_left_out() -> None:
    """And a single value has no interval."""
    values = np.array([1.0, NAN, 3.0])
    assert (statistics.mean(values).value, statistics.mean(values).n) == (2.0, 2)
    one, none = statistics.mean(np.array([4.0, NAN])), statistics.mean(np.array([NAN]))
    assert (one.value, one.n, math.isnan(one.low)) == (4.0, 1, True)
    assert (none.n, math.isnan(none.value)) == (0, True)
    assert statistics.median(np.array([1.0, 2.0, 9.0])).value == 2.0


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_intervals_are_those_of_scipys_bootstrap(statistic: Any) -> None:
    """But for the draws, of which there are 2,000."""
    values = np.random.default_rng(3).gamma(2.0, size=25)
    found = statistics.mean(values) if statistic is np.mean else statistics.median(values)
    known = stats.bootstrap((values,), statistic, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1))
    expected = known.confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.08)


def test_an_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 300 samples of 40, about 95 in 100."""
    rng = np.random.default_rng(0)
    found = [statistics.mean(rng.exponential(size=40)) for _ in range(300)]
    assert 0.89 < np.mean([estimate.low <= 1.0 <= estimate.high for estimate in found]) < 0.98


def test_pairs_are_compared_where_both_answer() -> None:
    """Medians of differences, Wilcoxon and McNemar of scipy; the better of a pair is the lower here."""
    rng = np.random.default_rng(2)
    values = pd.DataFrame(rng.normal([0.0, 0.5, 0.6], 1.0, size=(30, 3)), columns=list("abc"))
    values.loc[:3, "a"] = NAN
    values.loc[3:10, "b"] = NAN
    found = {(pair.first, pair.second): pair for pair in statistics.pairs(values)}
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    pair = found["a", "b"]
    gaps = (values["a"] - values["b"]).dropna()
    assert (pair.difference.n, pair.only_first, pair.only_second) == (len(gaps), 7, 3) == (19, 7, 3)
    assert pair.difference.value == pytest.approx(np.median(gaps))
    raw = [stats.wilcoxon((values[one] - values[other]).dropna(), zero_method="zsplit").pvalue for one, other in found]
    expected = [0.0] * 3
    largest = 0.0
    for rank, place in enumerate(np.argsort(raw)):
        largest = max(largest, min(1.0, raw[place] * (3 - rank)))
        expected[place] = largest
    assert [pair.p for pair in found.values()] == pytest.approx(expected)
    assert statistics.mcnemar(7, 3) == pytest.approx(2 * stats.binom.cdf(3, 10, 0.5))


def test_equal_values_are_no_difference() -> None:
    """Noise of the last digits neither, nor is there a test without a question or a lost one."""
    values = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.1 + 1e-9, 0.2 - 1e-9, 0.3], "c": [NAN] * 3})
    same, none, _ = statistics.pairs(values)
    assert (same.p, same.difference.value, math.isnan(same.mcnemar), same.ahead("lower")) == (1.0, 0.0, True, set())
    assert (none.difference.n, math.isnan(none.p), none.only_first) == (0, True, 3)


@pytest.mark.parametrize("seed", range(12))
def test_few_gaps_with_ties_are_counted_out(seed: int) -> None:
    """As scipy permutes them, zeros and all."""
    rng = np.random.default_rng(seed)
    gaps = rng.integers(-3, 4, size=rng.integers(2, 11)).astype(float)
    if gaps.any():
        assert statistics.wilcoxon(gaps) == pytest.approx(stats.wilcoxon(gaps, zero_method="zsplit").pvalue)


def test_zeros_of_many_gaps_are_split() -> None:
    """Of 20 gaps 14 are 0, with a rank of 7.5 each: half of these, 52.5, counts against all others, of a mean of 105;
    by the textbook's variance, less what the tie of 14 takes off."""
    variance = (20 * 21 * 41 - (14**3 - 14) / 2) / 24
    expected = 2 * stats.norm.sf((105 - 52.5) / math.sqrt(variance))
    gaps = np.array([0.0] * 14 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert statistics.wilcoxon(gaps) == pytest.approx(expected)


def test_equal_differences_stay_equal() -> None:
    """Whatever the size of what is compared: their ranks tie."""
    found = statistics.differences(np.array([3.0, 1.0, 1.5, 0.3]), np.array([1.0, 0.0, 3.5, 0.3 + 1e-8]))
    assert found.tolist() == [2.0, 1.0, -2.0, 0.0]
    values = np.array([0.3, 0.6, 1.6, 2.6, 5.6, 9.6, 1234.5])
    assert len({*statistics.differences(values, values - 0.1)}) == 1
    assert statistics.differences(np.array([1e6]), np.array([1e6 + 0.5])).tolist() == [
        0.0
    ]  # of the size of a tie there


def test_values_below_zero_tie_as_those_above() -> None:
    """A tie is of the size of the values: of a million, half of 1 is one, and 2 are none."""
    first, second = np.array([1e6, 1e6]), np.array([1e6 + 0.5, 1e6 + 2.0])
    assert statistics.differences(first, second).tolist() == [0.0, -2.0]
    assert statistics.differences(-first, -second).tolist() == [0.0, 2.0]


def test_one_great_value_takes_nothing_from_other_questions() -> None:
    """Fourteen of fifteen differ by 2, whichever comes first."""
    first, second = np.array([1e10, *range(3, 17)], float), np.array([1e10, *range(1, 15)], float)
    assert statistics.differences(first, second).tolist() == [0.0, *[2.0] * 14]
    assert statistics.differences(np.array([1.0, 5.0]), np.array([1e10, 3.0]))[1] == 2.0
    assert statistics.differences(np.array([0.004, 3600.0]), np.array([0.002, 1.0]))[0] == pytest.approx(
        0.002, abs=1e-9
    )


def test_a_pair_has_one_ahead_by_values_or_by_who_answers() -> None:
    answered = pd.DataFrame({"a": [1.0] * 12, "b": [2.0] * 12, "c": [NAN] * 12})
    assert [pair.ahead("lower") for pair in statistics.pairs(answered)] == [{("a", "b")}, {("a", "c")}, {("b", "c")}]
    assert [pair.ahead("higher") for pair in statistics.pairs(answered)] == [{("b", "a")}, {("a", "c")}, {("b", "c")}]
    few = pd.DataFrame({"a": [1.0] * 4, "b": [2.0] * 4, "c": [NAN] * 4})
    assert [pair.ahead("lower") for pair in statistics.pairs(few)] == [set()] * 3


def test_tests_that_do_not_agree_put_each_ahead() -> None:
    """Values of the first are less on the dozen that both answer; a dozen more are answered by the second alone. And
    so do tests of values whose median difference is 0: six of twenty greater, all others equal."""
    values = pd.DataFrame({"a": [1.0] * 12 + [NAN] * 12, "b": [2.0] * 24})
    (pair,) = statistics.pairs(values)
    assert pair.ahead("lower") == {("a", "b"), ("b", "a")}
    assert pair.ahead("higher") == {("b", "a")}
    both = {("a", "b"), ("b", "a")}
    assert replace(pair, p=0.01, mcnemar=NAN, difference=Estimate(0.0, 0.0, 1.0, 20)).ahead("lower") == both


def test_common_means_leave_out_who_answers_too_few() -> None:
    """Half of the best is enough, less is not; the questions are those that all others answered."""
    values = pd.DataFrame(
        {"all": [1.0, 2.0, 3.0, 4.0], "half": [5.0, NAN, 7.0, NAN], "one": [0.0, NAN, NAN, NAN], "none": [NAN] * 4}
    )
    found = statistics.common(values, values.notna().mean())
    assert {name: (mean.value, mean.n) for name, mean in found.means.items()} == {"all": (2.0, 2), "half": (6.0, 2)}
    assert found.left_out == ("one", "none")
    assert (found.n, found.enough) == (2, False)
    assert statistics.comparable(pd.Series({"a": 0.0, "b": 0.0})) == []


def test_enough_questions_are_ten() -> None:
    values = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10.0)})
    assert statistics.common(values, values.notna().mean()).enough
    assert not statistics.common(values.iloc[:9], values.notna().mean()).enough


def test_ranks_tie_within_a_millionth_of_the_value() -> None:
    """Relative above 1, absolute below; without an answer last, higher is better where it is said."""
    values = pd.DataFrame({"a": [1e6, 0.5, 1.0], "b": [1e6 + 0.5, 0.5 + 2e-6, NAN], "c": [1e6 + 2, 0.0, 2.0]})
    assert statistics.normalised_ranks(values, "lower").to_numpy().tolist() == [
        [0.25, 0.25, 1.0], [0.5, 1.0, 0.0], [0.0, 1.0, 0.5],
    ]  # fmt: skip
    assert statistics.normalised_ranks(values, "higher").iloc[2].tolist() == [0.5, 1.0, 0.0]
    assert statistics.normalised_ranks(values[["a"]], "lower").isna().all(axis=None)


def test_who_has_no_rank_is_no_rival() -> None:
    """Of three, one is not ranked in the first question; of two in the second, so that nobody has a rank there."""
    values = pd.DataFrame({"a": [1.0, 1.0], "b": [NAN, NAN], "c": [NAN, NAN]})
    unranked = pd.DataFrame({"a": [False, False], "b": [True, True], "c": [False, True]})
    found = statistics.normalised_ranks(values, "lower", unranked)
    np.testing.assert_equal(found.to_numpy(), [[0.0, NAN, 1.0], [NAN, NAN, NAN]])


def test_friedman_and_nemenyi_are_those_of_the_textbook() -> None:
    """Two mean ranks differ where they are farther apart than the critical difference."""
    rng = np.random.default_rng(0)
    blocks = pd.DataFrame(rng.normal([0.0, 0.1, 2.0, 4.0], size=(30, 4)), columns=list("abcd"))
    found = statistics.friedman(blocks)
    assert found is not None
    assert found.p == pytest.approx(stats.friedmanchisquare(*(blocks[name] for name in blocks)).pvalue)
    ranks = blocks.rank(axis=1).mean()
    critical = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2) * np.sqrt(4 * 5 / (6 * 30))
    for one in blocks:
        for other in blocks:
            if one != other:
                assert (found.pairs.loc[one, other] < 0.05) == (abs(ranks[one] - ranks[other]) > critical)


@pytest.mark.parametrize("shape", [(4, 3), (30, 2), (30, 1)], ids=str)
def test_few_data_sets_or_methods_have_no_test(shape: tuple[int, int]) -> None:
    assert statistics.friedman(pd.DataFrame(np.random.default_rng(0).normal(size=shape))) is None


def test_without_differences_no_pair_is_apart() -> None:
    found = statistics.friedman(pd.DataFrame(1.0, index=range(6), columns=list("abc")))
    assert found is not None
    assert found.p == 1.0
    assert (found.pairs == 1.0).all(axis=None)


def test_the_best_is_among_those_that_answer_as_many() -> None:
    """A method that is nearer on what all answer, and answers significantly less than the most, is not the best."""
    answered = pd.DataFrame({"all": [True] * 30, "near": [True] * 20 + [False] * 10, "few": [True] * 28 + [False] * 2})
    means = {name: Estimate(value, NAN, NAN, 18) for name, value in {"all": 2.0, "near": 1.0, "few": 1.5}.items()}
    assert statistics.best(means, "lower", answered) == {"few"}
    assert statistics.best(means, "higher", answered) == {"all"}
    assert statistics.best({**means, "all": means["few"]}, "lower", answered) == {"all", "few"}
    assert statistics.best({}, "lower", answered) == set()


def test_one_of_many_that_answers_less_is_told_apart_with_more_questions() -> None:
    """Of four methods one lacks 6 of 40 questions, p = .031; two lack another each: of three tests it is .09."""
    names = ["all", "near", "third", "fourth"]
    answered = pd.DataFrame({name: [True] * 40 for name in names})
    answered.loc[:5, "near"] = answered.loc[38, "third"] = answered.loc[39, "fourth"] = False
    means = {name: Estimate(1.0 if name == "near" else 2.0, NAN, NAN, 34) for name in names}
    assert statistics.best(means, "lower", answered) == {"near"}
    two = ["all", "near"]
    assert statistics.best({name: means[name] for name in two}, "lower", answered[two]) == {"all"}


def test_who_answers_more_of_what_both_were_asked_is_not_below() -> None:
    """strict answers 34 of the 40 that it was asked, .85, loose all of these and 8 of twenty more, .80."""
    strict = [True] * 34 + [False] * 6 + [None] * 20
    answered = pd.DataFrame({"strict": strict, "loose": [True] * 48 + [False] * 12}, dtype="boolean")
    means = {"strict": Estimate(2.0, NAN, NAN, 34), "loose": Estimate(1.0, NAN, NAN, 34)}
    assert statistics.best(means, "lower", answered) == {"loose"}


def test_levels_begin_at_their_first_value() -> None:
    """1, .8 and 1.6 millionths more: the third is no tie of the first, whatever lies between."""
    values = pd.DataFrame([[1.0, 1.0 + 8e-7, 1.0 + 1.6e-6]], columns=["a", "b", "c"])
    assert statistics.normalised_ranks(values, "lower").to_numpy().tolist() == [[0.25, 0.25, 1.0]]


def test_the_best_are_equal_within_a_millionth() -> None:
    """Of means of .1, a half of a millionth more, and two millionths more."""
    means = {name: Estimate(0.1 + more, NAN, NAN, 12) for name, more in {"a": 0.0, "b": 5e-7, "c": 2e-6}.items()}
    assert statistics.best(means, "lower", pd.DataFrame(True, range(12), list(means))) == {"a", "b"}


def test_mcnemars_tests_are_corrected_for_their_number() -> None:
    """6 to 0 gives 2 / 64, and there are two such pairs."""
    values = pd.DataFrame({"a": [1.0] * 6, "b": [NAN] * 6, "c": [1.0] * 6})
    assert [pair.mcnemar for pair in statistics.pairs(values)] == pytest.approx([0.0625, NAN, 0.0625], nan_ok=True)


def test_pairs_are_compared_only_where_friedmans_test_finds_something() -> None:
    """Sums of ranks are 8, 9 and 13: the statistic is 2.8, of which p is exp(-1.4)."""
    blocks = pd.DataFrame([[1.0, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2]], columns=list("abc"))
    found = statistics.friedman(blocks)
    assert found is not None
    assert found.p == pytest.approx(math.exp(-1.4))
    assert (found.pairs == 1.0).all(axis=None)


def test_a_mean_of_estimates_is_as_wide_as_the_same_questions_make_it() -> None:
    """Of one group .2 + .1 below and .4 + .1 above, of another .3 and .1: the root of squares, by three estimates."""
    parts = [Estimate(0.5, 0.3, 0.9, 10), Estimate(0.7, 0.4, 0.8, 5), Estimate(0.9, 0.8, 1.0, 10)]
    whole = mean_of(parts, ["a", "b", "a"])
    assert whole.value == pytest.approx(0.7)
    assert (whole.low, whole.high, whole.n) == (pytest.approx(0.7 - 0.141421), pytest.approx(0.7 + 0.169967), 25)
    one = Estimate(0.5, 0.3, 0.9, 10)
    assert mean_of([one], ["a"]) == Estimate(0.5, 0.3, 0.9, 10)
    assert math.isnan(mean_of([one, replace(one, low=math.nan, high=math.nan)], ["a", "b"]).low)
