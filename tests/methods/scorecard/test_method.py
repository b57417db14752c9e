"""Counterfactuals of scorecards: optima equal enumeration, both engines agree, and OptBinning's own is never better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from harness.core.classifier import Classifier
from harness.core.conflict import groups_of, lifted
from harness.core.explanation import Explanation, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability, Target
from harness.data import Source, load_dataset
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier, ScorecardRegressor
from harness.models.train import train
from harness.papers import scorecard as papers
from harness.papers.scorecard import required
from harness.reports.markup import DASH
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.peers.optbinning import OptBinningCounterfactual, prepared, restated
from methods.scorecard import Scorecard
from methods.scorecard.moves import Board
from methods.scorecard.search import Search

CONF = Path(__file__).parents[3] / "conf"
SPACE = Space(
    (
        Feature("age", "integer", scale=(0, 9), bounds=(0, 9), actionability="increase"),
        Feature("debt", "integer", scale=(0, 9), bounds=(0, 9), special=(-1,)),
        Feature("city", "categorical", ("a", "b", "c", "d")),
        Feature("grade", "ordinal", ("low", "middle", "high"), actionability="decrease"),
        Feature("sex", "binary", (0, 1), actionability="immutable"),
    )
)
VALUES: dict[str, tuple[Any, ...]] = {
    "age": tuple(range(10)), "debt": (-1, *range(10)), "city": ("a", "b", "c", "d"), "grade": ("low", "middle", "high"),
    "sex": (0, 1),
}  # fmt: skip
BINS = {
    "age": (Bin("interval", high=2.5), Bin("interval", 2.5, 5.0), Bin("interval", 5.0, 7.2), Bin("interval", 7.2),
            Bin("missing")),
    "debt": (Bin("interval", high=3.0), Bin("interval", 3.0, 6.5), Bin("interval", 6.5), Bin("special", members=(-1,)),
             Bin("missing")),
    "city": (Bin("categories", members=("a",)), Bin("categories", members=("b", "c")),
             Bin("categories", members=("d",)), Bin("missing"), Bin("unknown")),
    "grade": (Bin("categories", members=("low",)), Bin("categories", members=("middle",)),
              Bin("categories", members=("high",)), Bin("missing"), Bin("unknown")),
    "sex": (Bin("categories", members=(0,)), Bin("categories", members=(1,)), Bin("missing"), Bin("unknown")),
}  # fmt: skip


@cache
def toy(seed: int, target: Target) -> Problem:
    """A card of random weights over five features, and rows that it was not fitted to."""
    rng = np.random.default_rng(seed)
    variables = []
    for name, bins in BINS.items():
        values = rng.normal(size=len(bins)).round(2)
        points = rng.normal(size=len(bins))
        variables.append(Variable(name, bins, values, float(rng.normal()), points))
    binary = not isinstance(target, Interval)
    card = Card(tuple(variables), -0.3, binary)
    estimator: Any = ScorecardClassifier() if binary else ScorecardRegressor()
    estimator.card_, estimator.classes_ = card, np.array([0, 1])
    rows = SPACE.frame([{name: rng.choice(np.array(v, dtype=object)) for name, v in VALUES.items()} for _ in range(60)])
    classifier = Classifier(estimator, card.inputs(SPACE), ("no", "yes") if binary else ())
    return Problem(SPACE, classifier, rows, np.zeros(len(rows)), target)


class Enumeration:
    """All counterfactuals of a factual by going through the values of its features, with the parts of the objective."""

    def __init__(self, problem: Problem, factual: pd.DataFrame, weights: str = "range", wish: float = 0.0) -> None:
        estimator: Any = problem.classifier.estimator
        card: Card = estimator.card_
        self.problem, train = problem, card.values(card.bins(problem.train))
        covariance, mean = np.cov(train.T), train.mean(axis=0)
        factor = np.linalg.cholesky(np.linalg.inv(covariance))
        unit = np.ptp(train, axis=0)
        if weights == "mad":
            unit = np.maximum(np.median(np.abs(train - np.median(train, axis=0)), axis=0), 0.01 * unit)
        if weights == "optbinning":
            listed = [[b.role != "unknown" for b in v.bins] for v in card.variables]
            unit = np.array([np.ptp(v.contributions[ok]) for v, ok in zip(card.variables, listed, strict=True)])
        origin = factual.iloc[0].to_dict()
        own = card.bins(factual)[0]
        choices: list[list[tuple[int, Any]]] = []
        for f, variable in enumerate(card.variables):
            found = {int(own[f]): origin[variable.name]}
            for value in VALUES[variable.name]:
                changed = SPACE.frame([origin | {variable.name: value}])
                place = variable.bin_of(value)
                if not problem.space.violations(factual, changed)[0] and variable.bins[place].ordinary:
                    found.setdefault(place, value)
            choices.append(list(found.items()))
        combos = list(product(*choices))
        rows = SPACE.frame([{n: value for n, (_, value) in zip(SPACE.names, c, strict=True)} for c in combos])
        bins = np.array([[place for place, _ in combo] for combo in combos])
        values, current = card.values(bins), card.values(own[None])[0]
        self.changed = bins != own
        score = card.score(bins)
        outcome = expit(score) if card.binary else score
        if isinstance(problem.target, Label | Probability):
            label = problem.target.value if isinstance(problem.target, Label) else problem.target.label
            outcome = outcome if label == "yes" else 1 - outcome
        self.parts = {
            "proximity": (np.abs(values - current) / unit).sum(axis=1),
            "closeness": np.abs((values - mean) @ factor).sum(axis=1),
            "outcome": np.abs(outcome - wish),
            "changes": self.changed.sum(axis=1).astype(float),
        }
        self.bins, self.valid = bins, problem.valid(rows) & self.changed.any(axis=1)

    def differences(self, one: int, other: int) -> tuple[int, int]:
        """In how many features, and how many bins, two counterfactuals differ, as (10) has it."""
        both = self.changed[one] & self.changed[other]
        same = int((both & (self.bins[one] == self.bins[other])).sum())
        sizes = int(self.changed[one].sum() + self.changed[other].sum())
        return sizes - 2 * int(both.sum()), sizes - 2 * same

    def sets(self, n: int, most: int | None, diversity: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """All sets of n that keep to K, and to (11) and (12)."""
        allowed = self.valid & (self.changed.sum(axis=1) <= (most or 99))
        for group in combinations(np.flatnonzero(allowed).tolist(), n):
            pairs = list(combinations(group, 2))
            if "features" in diversity and any(self.differences(*pair)[0] == 0 for pair in pairs):
                continue
            shared = [((self.bins[a] == self.bins[b]) & self.changed[a] & self.changed[b]).any() for a, b in pairs]
            if "values" in diversity and any(shared):
                continue
            yield group

    def value(self, group: Sequence[int], level: Mapping[str, float]) -> float:
        """What a set costs by one level of objectives."""
        total = sum(w * self.parts[name][list(group)].sum() for name, w in level.items() if name in self.parts)
        for pair in combinations(group, 2):
            features, values = self.differences(*pair)
            total -= level.get("diversity_features", 0.0) * features + level.get("diversity_values", 0.0) * values
        return float(total)

    def best(self, method: Scorecard, n: int) -> tuple[float, list[tuple[int, ...]]] | None:
        """The least cost by the last level, and all sets that have it; None where there is no set."""
        groups = list(self.sets(n, method.max_changes, method.diversity))
        for level in method.levels:
            if not groups:
                return None
            costs = np.array([self.value(group, level) for group in groups])
            least = costs.min()
            kept = costs <= least + method.degradation * abs(least) + 1e-9
            optimal = [g for g, c in zip(groups, costs, strict=True) if c <= least + 1e-9]
            groups = [g for g, ok in zip(groups, kept, strict=True) if ok]
        return float(least), optimal


def ask(method: Scorecard, problem: Problem, factual: pd.DataFrame, n: int = 1) -> Explanation:
    assert method.refuses(problem) is None
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(60))


def undesired(problem: Problem, count: int) -> Iterator[pd.DataFrame]:
    rows = problem.train.loc[~problem.valid(problem.train)]
    return (rows.iloc[[place]] for place in range(min(count, len(rows))))


def agrees(method: Scorecard, problem: Problem, factual: pd.DataFrame, n: int) -> bool:
    """Whether there is a set; the answers are a best one of those that enumeration finds."""
    listed = Enumeration(problem, factual, method.weights, method.wish or 0.0)
    expected, found = listed.best(method, n), ask(method, problem, factual, n)
    if expected is None:
        assert found.answers[-1].status is Status.INFEASIBLE
        return False
    assert all(answer.status is Status.OPTIMAL for answer in found.answers)
    card = problem.classifier.estimator.card_
    rows = SPACE.frame([answer.row for answer in found.answers if answer.row])
    assert problem.valid(rows).all()
    assert not any(SPACE.violations(factual, rows))
    places = card.bins(rows)
    group = [int(np.flatnonzero((listed.bins == row).all(axis=1))[0]) for row in places]
    assert tuple(sorted(group)) in set(listed.sets(n, method.max_changes, method.diversity))
    np.testing.assert_allclose(listed.value(group, method.levels[-1]), expected[0], rtol=1e-8, atol=1e-8)
    if len(method.levels) > 1:
        first = method.levels[0]
        least = min(listed.value(g, first) for g in listed.sets(n, method.max_changes, method.diversity))
        assert listed.value(group, first) <= least + method.degradation * abs(least) + 1e-6
    shares = [sum(w * listed.parts[o][g] for o, w in method.levels[-1].items() if o in listed.parts) for g in group]
    np.testing.assert_allclose([answer.objective for answer in found.answers], shares, rtol=1e-8, atol=1e-8)
    return True


def agreed(method: Scorecard, target: Target, n: int) -> int:
    """Of how many factuals there is a best set, which is ours; of two cards at least, and more until there is one."""
    met = 0
    for seed in range(12):
        if seed >= 2 and met:
            break
        problem = toy(seed, target)
        met += sum(agrees(method, problem, factual, n) for factual in undesired(problem, 2))
    return met


TARGETS = {
    "event": Label("yes"),
    "non-event": Label("no"),
    "probability": Probability("yes", 0.55, 1.0),
    "improbable": Probability("yes", 0.0, 0.35),
    "between": Probability("no", 0.3, 0.45),
    "number": Interval(0.05, np.inf),
    "band": Interval(-0.5, 0.4),
}
SINGLE = {
    "both": Scorecard(max_changes=None),
    "proximity": Scorecard({"proximity": 1}, max_changes=2),
    "closeness": Scorecard({"closeness": 1}, max_changes=2),
    "mad": Scorecard({"proximity": 1, "closeness": 0.1}, weights="mad", max_changes=None),
    "optbinning": Scorecard({"proximity": 1, "changes": 0.3}, weights="optbinning"),
    "outcome": Scorecard({"proximity": 0.2, "outcome": 3.0}, wish=0.6, max_changes=None),
    "proximity first": Scorecard({"proximity": 1, "closeness": 1}, {"proximity": 2, "closeness": 1}, max_changes=3),
    "three levels": Scorecard(
        {"proximity": 1, "closeness": 1, "changes": 1}, {"changes": 3, "closeness": 2, "proximity": 1}, 0.2
    ),
}
SEVERAL = {
    "features": (2, Scorecard(max_changes=None)),
    "values": (2, Scorecard(max_changes=2, diversity=("values",))),
    "both": (2, Scorecard({"proximity": 1}, max_changes=3, diversity=("features", "values"))),
    "three": (3, Scorecard({"proximity": 1, "closeness": 0.5}, max_changes=2, diversity=())),
    "rewarded": (2, Scorecard({"proximity": 1, "diversity_features": 0.2, "diversity_values": 0.3}, diversity=())),
    "hierarchy": (2, Scorecard({"proximity": 1, "closeness": 1}, {"closeness": 2, "proximity": 1}, 0.05)),
    "most diverse first": (
        2,
        Scorecard({"diversity_values": 1, "proximity": 1}, {"diversity_values": 2, "proximity": 1}, diversity=()),
    ),
}


@pytest.mark.parametrize("option", SINGLE)
@pytest.mark.parametrize("target", TARGETS)
def test_one_is_the_best_of_all(target: str, option: str) -> None:
    assert agreed(SINGLE[option], TARGETS[target], 1)


@pytest.mark.parametrize("option", SEVERAL)
@pytest.mark.parametrize("target", ["event", "between", "number"])
def test_several_are_the_best_set(target: str, option: str) -> None:
    n, method = SEVERAL[option]
    assert agreed(method, TARGETS[target], n)


@pytest.mark.parametrize(("n", "method"), [(1, m) for m in SINGLE.values()] + list(SEVERAL.values()))
def test_the_program_finds_the_same(n: int, method: Scorecard) -> None:
    problems = [toy(seed, TARGETS["event"]) for seed in range(4)]
    asked = ((p, factual, ask(method, p, factual, n)) for p in problems for factual in undesired(p, 4))
    problem, factual, found = next(case for case in asked if case[-1].answers[-1].status.found)
    other = ask(replace(method, engine="milp"), problem, factual, n)
    assert [a.status.found for a in found.answers] == [a.status.found for a in other.answers]
    listed = Enumeration(problem, factual, method.weights, method.wish or 0.0)
    card, values = problem.classifier.estimator.card_, []
    for explanation in (found, other):
        rows = SPACE.frame([answer.row for answer in explanation.answers if answer.row])
        group = [int(np.flatnonzero((listed.bins == row).all(axis=1))[0]) for row in card.bins(rows)]
        values.append(listed.value(group, method.levels[-1]))
    slack = n * method.weighed.get("outcome", 0.0) * method.error
    assert values[0] <= values[1] + 1e-6
    assert values[1] <= values[0] + 2 * slack + 1e-6
    for answer in other.answers:
        assert answer.bound is not None
        assert answer.objective is not None
        assert answer.bound >= answer.objective - 2 * slack - 1e-6


def test_values_lie_in_their_bins_nearest_to_the_factual() -> None:
    """Also where the factual holds a special code; trace and detail name the bins."""
    problem = toy(0, TARGETS["event"])
    card = problem.classifier.estimator.card_
    for factual in undesired(problem, 12):
        found = ask(Scorecard(max_changes=None), problem, factual)
        origin = factual.iloc[0].to_dict()
        for change in found.trace:
            name, row = change["feature"], found.answers[0].row
            assert row is not None
            variable = card.variables[SPACE.names.index(name)]
            place = variable.bin_of(row[name])
            assert str(variable.bins[place]) == change["required"]
            assert change["required"] in found.answers[0].detail
            np.testing.assert_allclose(
                change["points"], variable.points[place] - variable.points[variable.bin_of(origin[name])]
            )
            if SPACE[name].numeric:
                inside = [v for v in VALUES[name] if variable.bin_of(v) == place]
                assert abs(row[name] - origin[name]) == min(abs(v - origin[name]) for v in inside)


def test_special_bins_are_targets_only_when_asked_for() -> None:
    """And where the space takes their codes for numbers as any."""
    problem = toy(0, TARGETS["event"])
    origin = problem.train.loc[problem.train["debt"] >= 0].iloc[0].to_dict()
    card = problem.classifier.estimator.card_
    open_space = SPACE.replace({"debt": {"special": (), "bounds": (-1, 9)}})
    for space, special, expected in ((SPACE, True, 0), (open_space, False, 0), (open_space, True, 1)):
        moves = Board(card, replace(problem, space=space), special).moves(origin)
        places = zip(moves.owner, moves.place, strict=True)
        assert sum(card.variables[f].bins[place].role == "special" for f, place in places) == expected


def test_asking_for_special_bins_that_are_closed_is_refused() -> None:
    """Where the space has no value for any of them; unknown categories count, as counterfactuals may take them."""
    problem = toy(0, TARGETS["event"])
    asked = Scorecard(special=True)
    assert "method.special=false" in str(asked.refuses(problem))
    open_codes = SPACE.replace({"debt": {"special": (), "bounds": (-1, 9)}})
    unlisted = SPACE.replace({"city": {"categories": ("a", "b", "c", "d", "e")}})
    for space in (open_codes, unlisted):
        assert asked.refuses(replace(problem, space=space)) is None


CROWDED = {
    "one": (1, Scorecard({"proximity": 1}, max_changes=1)),
    "two": (2, Scorecard({"proximity": 1}, max_changes=1, diversity=("features", "values"))),
    "program": (1, Scorecard({"proximity": 1}, max_changes=1, engine="milp")),
}


@pytest.mark.parametrize("case", CROWDED)
def test_a_conflict_is_irreducible(case: str) -> None:
    """What is named leaves nothing, whatever else is lifted; without any one of it there are as many as asked for."""
    n, method = CROWDED[case]
    met: set[str] = set()
    for seed, target in product(range(4), (Label("yes"), Probability("no", 0.6, 1.0))):
        problem = toy(seed, target)
        for factual in undesired(problem, 2):
            told = ask(method, problem, factual, n)
            have, conflict = sum(answer.status.found for answer in told.answers), frozenset(told.conflict)
            if have == n:
                continue
            assert told.answers[-1].status is Status.INFEASIBLE
            assert not possible(problem, factual, conflict, have + 1, method)
            assert bool(conflict) != ("whatever else is asked" in told.answers[-1].detail)
            met |= conflict
            assert all(possible(problem, factual, conflict - {spared}, have + 1, method) for spared in conflict)
    assert len(met) >= 2
    assert n == 1 or met & {"diversity of features", "diversity of values"}


def possible(problem: Problem, factual: pd.DataFrame, kept: frozenset[str], n: int, method: Scorecard) -> bool:
    """Whether enumeration finds n counterfactuals that keep to these requirements only."""
    free = lifted(problem, frozenset(groups_of(problem)) - kept)
    most = method.max_changes if "max_changes" in kept else None
    diversity = [name for name in method.diversity if f"diversity of {name}" in kept]
    return next(Enumeration(free, factual).sets(n, most, diversity), None) is not None


def test_a_target_out_of_reach_is_told_from_a_conflict() -> None:
    """No requirement is named where none is to blame."""
    problem = toy(0, Probability("yes", 0.9999, 1.0))
    told = ask(Scorecard(), problem, problem.train.iloc[[0]])
    assert told.answers[0].status is Status.INFEASIBLE
    assert not told.conflict
    assert "whatever else is asked" in told.answers[0].detail


def test_too_many_disjoint_ones_are_ruled_out_without_looking_at_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a crowded question is the same with the proof by shares and without."""
    problem = toy(1, TARGETS["event"])
    method = Scorecard({"proximity": 1}, max_changes=2, diversity=("values",))
    for factual in undesired(problem, 3):
        told = [a.status for a in ask(method, problem, factual, 5).answers]
        with monkeypatch.context() as patch:
            patch.setattr(Search, "_shares", lambda *_: False)
            assert [a.status for a in ask(method, problem, factual, 5).answers] == told
        listed = Enumeration(problem, factual)
        assert sum(status.found for status in told) == max(
            (n for n in range(1, 6) if listed.best(method, n) is not None), default=0
        )


def test_tables_5_and_6_measure_diversity_alike() -> None:
    """The three counterfactuals of Table 5 differ in 4 features and 12 values, as Table 6 prints."""
    published = Path(__file__).parents[3] / "results" / "published"
    table = pd.read_csv(published / "scorecard_table5.csv")
    printed = pd.read_csv(published / "scorecard_table6.csv").iloc[0]
    groups = [group for _, group in table.groupby("counterfactual")]
    for part, column in (("features", ["feature"]), ("values", ["feature", "required"])):
        elements = [set(map(tuple, group[column].to_numpy())) for group in groups]
        form = Scorecard({f"diversity_{part}": 1.0}, diversity=()).forms(len(groups))[0]
        shared = sum(len(a & b) for a, b in combinations(elements, 2))
        each = form.features if part == "features" else form.options
        assert -(form.weights[3] * sum(map(len, elements)) + each * shared) == printed[f"diversity_{part}"]


def stored(folder: Path, problem: Problem, factual: pd.DataFrame, method: Scorecard, n: int = 1) -> StoredRun:
    """A finished cell with a method's answers for one factual."""
    cell, index = StoredRun(folder / "cell"), factual.index[0]
    settings = {"max_changes": 5, "priorities": None, "diversity": list(method.diversity)}
    meta = {"n_counterfactuals": n, "config": {"method": settings, "dataset": {}}}
    cell.start(meta, SPACE, problem.classifier, {index: problem.target}, None, factual)
    answers = ask(method, problem, factual, n).answers
    cell.append([answer_row(index, k + 1, a, seconds=0.5, fit_seconds=0.1, late=False) for k, a in enumerate(answers)])
    return cell


def test_a_table_of_changes_is_read_off_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Current value, required bin, a value in it and points of every change; points and probability on both sides."""
    problem, method = toy(0, Label("yes")), Scorecard(max_changes=None)
    card = problem.classifier.estimator.card_
    factual = list(undesired(problem, 2))[1]
    cell = stored(tmp_path, problem, factual, method)
    row = cell.rows()[0]["row"]
    places = card.bins(pd.concat([factual, SPACE.frame([row])]))
    moved = [j for j in range(len(card.names)) if places[0, j] != places[1, j]]
    (tmp_path / "changes.csv").write_text(
        "approach,max_changes,feature,current,required\n"
        + "".join(f'weighted,5,{card.names[j]},,"{required(card.variables[j].bins[places[1, j]])}"\n' for j in moved)
        + "weighted,4,age,,old\n"
    )
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    text, _ = papers.Changes(2, "changes.csv", ("approach", "max_changes"), ("A note.",)).build([cell])
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")][2:]
    gained = 0.0
    for j, line in zip(moved, lines, strict=False):
        variable, (before, after) = card.variables[j], places[:, j]
        points = variable.points[after] - variable.points[before]
        held = required(variable.bins[after]).replace("|", " or ")
        name = variable.name
        assert line[2:] == [name, str(factual[name].iloc[0]), held, held, str(row[name]), f"{points:+.1f}"]
        gained += points
    score, chance = lines[len(moved)], expit(card.score(places))
    assert score[2] == "*score*"
    assert score[6] == f"P(yes) {chance[0]:.3f} → {chance[1]:.3f}"
    assert score[7] == f"{gained:+.1f}"
    assert [line[5] for line in lines[len(moved) + 1 :]] == [DASH, ""]  # the other published one was not run
    assert lines[-1][2] == "*not run*"
    assert "1 of 2 published counterfactuals are ours too" in text
    assert "- A note." in text


def test_a_table_of_numbers_is_recomputed_from_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proximity, closeness and probability of the stored counterfactual, as enumeration has them; and seconds."""
    problem = toy(0, Label("yes"))
    factual = list(undesired(problem, 2))[1]
    cell = stored(tmp_path, problem, factual, Scorecard(weights="optbinning", max_changes=None))
    listed, card = Enumeration(problem, factual, "optbinning"), problem.classifier.estimator.card_
    train = card.values(card.bins(problem.train))
    factor = np.linalg.cholesky(np.linalg.inv(np.cov(train.T)))
    ranges = np.array([np.ptp(v.contributions[[b.role != "unknown" for b in v.bins]]) for v in card.variables])
    monkeypatch.setattr(papers.Sheet, "_seen", property(lambda _: (ranges, factor, train.mean(axis=0))))
    head = "max_changes,approach,proximity,closeness,probability_of_default,seconds\n"
    (tmp_path / "numbers.csv").write_text(f"{head}5,weighted,1.0,2.0,0.4,0.3\n4,weighted,1.0,2.0,0.4,0.3\n")
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    table = papers.Numbers(4, "numbers.csv", ("max_changes", "approach"), (), ("proximity", "closeness"))
    text, records = table.build([cell])
    place = int(np.flatnonzero((listed.bins == card.bins(SPACE.frame([cell.rows()[0]["row"]]))[0]).all(axis=1))[0])
    own = records[records["max_changes"] == 5].set_index("measure")["ours"].astype(float)
    for part in ("proximity", "closeness"):
        assert own[part] == pytest.approx(listed.parts[part][place])
    assert own["probability_of_default"] == pytest.approx(expit(card.score(listed.bins[[place]]))[0])
    assert own["seconds"] == 0.5
    assert f"{own['proximity'] + own['closeness']:.3f}" in text
    assert "not run" in text


def test_a_wrong_parameter_is_said() -> None:
    for wrong, word in (
        ({"objectives": {"speed": 1}}, "speed"),
        ({"objectives": {"proximity": 0}}, "> 0"),
        ({"priorities": {"proximity": 1}}, "same"),
        ({"weights": "sd"}, "range"),
        ({"diversity": ["bins"]}, "features, values"),
        ({"max_changes": 0}, ">= 1"),
        ({"wish": 0.5}, "wish"),
        ({"margin": 0.0}, "> 0"),
    ):
        with pytest.raises(ValueError, match=word):
            Scorecard(**wrong)  # type: ignore[arg-type]
    for own, word in (({"closeness": 1.0}, "lack 'proximity'"), ({"proximity": 1.0, "changes": 1.0}, "changes")):
        with pytest.raises(ValueError, match=word):
            OptBinningCounterfactual(own)


def test_other_models_are_refused(problem: Problem) -> None:
    assert isinstance(problem.classifier.estimator, LogisticRegression)
    for method in (Scorecard(), OptBinningCounterfactual()):
        assert "scorecard" in str(method.refuses(problem))


@cache
def heloc() -> Problem:
    """HELOC with the twelve features of greatest information value."""
    config: Any = OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / "heloc.yaml"))
    if not all(Source(**source).path.is_file() for source in config["sources"]):
        pytest.skip("HELOC is neither packaged nor in CE_HARNESS_DATA")
    data = load_dataset(**config | {"split": "none"})
    best = {"iv": {"min": 0.02, "max": 1, "strategy": "highest", "top": 12}}
    model = train(ScorecardClassifier(selection=best), data.space, data.frame, data.labels, data.classes)
    return Problem(data.space, model, data.frame, data.labels, Label("Good"))


HELOC = [(1, 3, None), (1, 4, {"proximity": 2, "closeness": 1}), (2, 2, None)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most", "priorities"), HELOC)
def test_optbinning_is_never_better(n: int, most: int, priorities: dict[str, int] | None) -> None:
    """With its own weights, its optimum is ours within its gap, where each of its values is one that exists."""
    problem = heloc()
    weights = {"proximity": 1.0, "closeness": 1.0}
    library = OptBinningCounterfactual(weights, priorities, max_changes=most).fit(problem)
    ours = Scorecard(weights, priorities, weights="optbinning", max_changes=most).fit(problem)
    rows = problem.train.loc[~problem.valid(problem.train)]
    met = 0
    for place in range(0, 200, 20):
        factual = rows.iloc[[place]]
        theirs = library.explain(factual, n, np.random.default_rng(0), Deadline.after(60)).answers
        found = ours.explain(factual, n, np.random.default_rng(0), Deadline.after(60)).answers
        if not all(answer.status.found for answer in theirs):
            continue
        frame = problem.space.frame([answer.row for answer in theirs if answer.row])
        if any(problem.space.violations(factual, frame)):
            continue
        met += 1
        assert all(answer.status is Status.OPTIMAL for answer in found)
        sums = [sum(answer.objective or math.inf for answer in answers) for answers in (found, theirs)]
        assert sums[0] <= sums[1] + 1e-6
        assert sums[1] <= sums[0] * (1 + 2e-4) or priorities is not None
    assert met >= 5


@pytest.mark.parametrize("codes", [None, [-9.0]])
def test_optbinning_reads_a_card_as_its_own_scorecard(codes: list[float] | None) -> None:
    """What its counterfactuals ask of a scorecard is what the fitted one says, and so are the bins that it may take."""
    from optbinning import BinningProcess
    from optbinning import Scorecard as Library
    from optbinning.scorecard.counterfactual.model_data import model_data
    from optbinning.scorecard.counterfactual.problem_data import problem_data

    from harness.models.scorecard import read_card

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    labels = (frame["a"].clip(-2) + frame["b"] + rng.normal(size=400) > 0).astype(int)
    fitted = Library(BinningProcess(list(frame), special_codes=codes), LogisticRegression()).fit(frame, labels)
    taken = frame[fitted.binning_process_.get_support(names=True)]
    card = read_card(fitted)
    given, told = problem_data(fitted, taken), problem_data(restated(card), taken)
    library = prepared(card, frame)
    names = ("_intercept", "_coef", "_min_p", "_max_p", "_wrange", "_F", "_mu")
    for mine, own, its in zip(told, (getattr(library, name) for name in names), given, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own, its, rtol=1e-9, atol=1e-12)
    current = card.values(card.bins(frame.iloc[:1]))[0]
    _, metrics, places = model_data(fitted, current, False)
    _, ours, mine = model_data(restated(card), current, False)
    for f, value in enumerate(current):
        # a bin's worth in the library's table is that of its transformation up to rounding only
        moved = [place for place, metric in zip(places[f], metrics[f], strict=True) if abs(metric - value) > 1e-9]
        assert mine[f] == moved
        np.testing.assert_allclose(ours[f], [m for m in metrics[f] if abs(m - value) > 1e-9], rtol=1e-9)


def test_optbinning_is_asked_at_the_threshold_of_the_model() -> None:
    """Where the model says yes above another probability than 0.5, its answers are as wanted, and as good as ours."""
    weights = {"proximity": 1.0, "closeness": 1.0}
    free = SPACE.replace({name: {"actionability": "free"} for name in ("age", "grade")})
    met = 0
    for (value, threshold), seed in product((("yes", 0.65), ("no", 0.35)), range(3)):
        problem = toy(seed, Label(value))
        problem = replace(problem, space=free, classifier=replace(problem.classifier, threshold=threshold))
        library = OptBinningCounterfactual(weights, max_changes=None).fit(problem)
        ours = Scorecard(weights, weights="optbinning", max_changes=None).fit(problem)
        for factual in undesired(problem, 3):
            (found,) = ours.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
            (theirs,) = library.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
            assert found.status.found == theirs.status.found
            if found.objective is not None:
                met += 1
                assert theirs.objective == pytest.approx(found.objective, rel=2e-4)
    assert met >= 6


@cache
def applicant() -> Problem:
    """The paper's model of HELOC, as its experiments have it; its factual is row 7."""
    config: Any = OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / "heloc.yaml"))
    own: Any = OmegaConf.to_container(OmegaConf.load(CONF / "experiment" / "scorecard" / "heloc.yaml"))
    if not all(Source(**source).path.is_file() for source in config["sources"]):
        pytest.skip("HELOC is neither packaged nor in CE_HARNESS_DATA")
    data = load_dataset(**config | own["dataset"], split=own["split"], overrides=own["features"])
    estimator = ScorecardClassifier(**own["model"]["estimator"])
    model = train(estimator, data.space, data.frame, data.labels, data.classes)
    return Problem(data.space, model, data.frame, data.labels, Label("Good"))


ORDER: dict[str, dict[str, int] | None] = {
    "weighted": None,
    "hierarchical(1,0)": {"proximity": 2, "closeness": 1},
    "hierarchical(0,1)": {"proximity": 1, "closeness": 2},
}


def published() -> Iterator[tuple[str, int, set[frozenset[tuple[str, str]]]]]:
    """Tables 2, 3 and 5: approach, changes allowed, and what each counterfactual requires of which features."""
    folder = Path(__file__).parents[3] / "results" / "published"
    single, several = pd.read_csv(folder / "scorecard_table2_3.csv"), pd.read_csv(folder / "scorecard_table5.csv")
    for (approach, most), rows in single.groupby(["approach", "max_changes"]):
        yield approach, int(most), {frozenset(zip(rows["feature"], rows["required"], strict=True))}
    groups = [rows for _, rows in several.groupby("counterfactual")]
    yield "weighted", 2, {frozenset(zip(rows["feature"], rows["required"], strict=True)) for rows in groups}


@pytest.mark.slow
def test_published_counterfactuals_of_heloc_are_ours() -> None:
    """Bin for bin; and OptBinning's own are no better, neither by its weights nor by inverse ranges."""
    problem, weights = applicant(), {"proximity": 1.0, "closeness": 1.0}
    factual, card = problem.train.iloc[[7]], problem.classifier.estimator.card_
    own = factual.iloc[0]
    for approach, most, expected in published():
        method = Scorecard(weights, ORDER[approach], weights="optbinning", max_changes=most, diversity=("values",))
        answers = ask(method, problem, factual, len(expected)).answers
        assert all(answer.status is Status.OPTIMAL for answer in answers)
        rows = [answer.row for answer in answers if answer.row]
        places = [{name: card[name].bin_of(row[name]) for name in card.names if row[name] != own[name]} for row in rows]
        assert {frozenset((f, required(card[f].bins[b])) for f, b in moved.items()) for moved in places} == expected
        if approach != "weighted" or len(expected) > 1:
            continue
        library = OptBinningCounterfactual(weights, max_changes=most).fit(problem)
        (theirs,) = library.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert theirs.row is not None
        for unit in ("optbinning", "range"):
            ours = replace(method, weights=unit)
            (best,) = ask(ours, problem, factual).answers
            (value,) = ours.objective(problem).evaluate(problem.space, factual, problem.space.frame([theirs.row]))
            assert best.objective is not None
            assert best.objective <= value + 1e-6
