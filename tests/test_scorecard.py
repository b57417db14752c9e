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

from harness import models
from harness.classifier import Classifier
from harness.data import Source, load_dataset
from harness.explanation import Explanation, Status
from harness.method import Deadline
from harness.problem import Feature, Interval, Label, Probability, Problem, Space, Target
from harness.scorecard import Bin, Card, ScorecardClassifier, ScorecardRegressor, Variable
from methods.conflict import groups_of, lifted
from methods.peers.optbinning import OptBinningCounterfactual, prepared, restated
from methods.scorecard import Scorecard
from methods.scorecard.moves import Board
from methods.scorecard.search import Search

CONF = Path(__file__).parents[1] / "conf"
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


TARGETS = {
    "event": Label("yes"),
    "non-event": Label("no"),
    "probability": Probability("yes", 0.55, 1.0),
    "improbable": Probability("yes", 0.0, 0.35),
    "between": Probability("no", 0.3, 0.45),
    "number": Interval(0.5, np.inf),
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
    for seed in range(2):
        problem = toy(seed, TARGETS[target])
        for factual in undesired(problem, 2):
            agrees(SINGLE[option], problem, factual, 1)


@pytest.mark.parametrize("option", SEVERAL)
@pytest.mark.parametrize("target", ["event", "between", "number"])
def test_several_are_the_best_set(target: str, option: str) -> None:
    n, method = SEVERAL[option]
    for seed in range(2):
        problem = toy(seed, TARGETS[target])
        for factual in undesired(problem, 2):
            agrees(method, problem, factual, n)


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


def test_a_conflict_is_irreducible() -> None:
    """What is named leaves nothing, whatever else is lifted; without any one of it there is a counterfactual."""
    met = 0
    for seed, least in product(range(8), (0.7, 0.8)):
        problem = toy(seed, Probability("yes", least, 1.0))
        method = Scorecard({"proximity": 1}, max_changes=1)
        for factual in undesired(problem, 2):
            conflict = frozenset(ask(method, problem, factual).conflict)
            if conflict:
                met += 1
                assert not possible(problem, factual, conflict)
                assert all(possible(problem, factual, conflict - {spared}) for spared in conflict)
    assert met >= 3


def possible(problem: Problem, factual: pd.DataFrame, kept: frozenset[str]) -> bool:
    """Whether enumeration finds a counterfactual that keeps to these requirements only, K = 1 among them."""
    free = lifted(problem, frozenset(groups_of(problem)) - kept)
    return next(Enumeration(free, factual).sets(1, 1 if "max_changes" in kept else None, ()), None) is not None


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
    published = Path(__file__).parents[1] / "results" / "published"
    table = pd.read_csv(published / "scorecard_table5.csv")
    printed = pd.read_csv(published / "scorecard_table6.csv").iloc[0]
    groups = [group for _, group in table.groupby("counterfactual")]
    for part, column in (("features", ["feature"]), ("values", ["feature", "required"])):
        elements = [set(map(tuple, group[column].to_numpy())) for group in groups]
        form = Scorecard({f"diversity_{part}": 1.0}, diversity=()).forms(len(groups))[0]
        shared = sum(len(a & b) for a, b in combinations(elements, 2))
        each = form.features if part == "features" else form.options
        assert -(form.weights[3] * sum(map(len, elements)) + each * shared) == printed[f"diversity_{part}"]


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
    model = models.train(ScorecardClassifier(selection=best), data.space, data.frame, data.labels, data.classes)
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


@pytest.mark.slow
def test_optbinning_reads_a_card_as_its_own_scorecard() -> None:
    """What its counterfactuals ask of a scorecard is what the fitted one says, where no special code has a bin."""
    from optbinning import BinningProcess
    from optbinning import Scorecard as Library
    from optbinning.scorecard.counterfactual.problem_data import problem_data

    from harness.scorecard import read_card

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    labels = (frame["a"].clip(-2) + frame["b"] + rng.normal(size=400) > 0).astype(int)
    fitted = Library(BinningProcess(list(frame)), LogisticRegression()).fit(frame, labels)
    taken = frame[fitted.binning_process_.get_support(names=True)]
    card = read_card(fitted)
    given, told = problem_data(fitted, taken), problem_data(restated(card), taken)
    library = prepared(card, frame)
    names = ("_intercept", "_coef", "_min_p", "_max_p", "_wrange", "_F", "_mu")
    for mine, own, its in zip(told, (getattr(library, name) for name in names), given, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own, its, rtol=1e-9, atol=1e-12)
