"""The search over cells with a radius: optima of brute force, boxes and balls that the model itself is right on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.costs import population
from harness.core.errors import UnsupportedError
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation.checker import permitted
from methods.ce_ocl import CeOcl
from methods.robust import Robust
from methods.robust.adversarial import Adversarial
from methods.robust.cells import _NeighbourhoodLayout, _NeighbourhoodState
from methods.robust.outcome import Outcome
from methods.robust.perturbation import Perturbation

NUMBERS = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)) for name in "ab"))
MIXED = Space(
    (
        Feature("a", "continuous", scale=(-3.0, 5.0), bounds=(-3.0, 5.0), actionability="increase"),
        Feature("n", "integer", scale=(0, 12), bounds=(0, 12)),
        Feature("region", "categorical", ("n", "e", "s")),
        Feature("grade", "ordinal", (1, 2, 3)),
    )
)
ESTIMATORS: dict[str, Any] = {
    "cart": DecisionTreeClassifier(max_depth=5, random_state=0),
    "rf": RandomForestClassifier(6, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=6, max_depth=2, learning_rate=1.0, random_state=0),
}
TARGETS = ("no", "yes")


@cache
def problem_with(model: str, target: str, mixed: bool = False) -> Problem:
    """A small ensemble on 250 random points whose classes follow waves."""
    space, rng = (MIXED if mixed else NUMBERS), np.random.default_rng(3)
    data: dict[str, Any] = {}
    for feature in space.features:
        if feature.kind is Kind.CONTINUOUS:
            data[feature.name] = rng.uniform(*feature.bounds, 250)
        elif feature.kind is Kind.INTEGER:
            data[feature.name] = rng.integers(0, 13, 250)
        else:
            data[feature.name] = [feature.categories[k] for k in rng.integers(0, len(feature.categories), 250)]
    train = pd.DataFrame(data)
    encoded = space.encode(train)
    merit = np.sin(5 * encoded[:, 0]) + np.cos(6 * encoded[:, 1]) + 0.4 * encoded[:, 2:].sum(axis=1)
    inputs = space_inputs(space)
    estimator = ESTIMATORS[model].__class__(**ESTIMATORS[model].get_params())
    fitted = Classifier(estimator.fit(encoded, merit > np.median(merit)), inputs, ("no", "yes"))
    return Problem(space, fitted, train, np.empty(250, dtype=object), Label(target))


def thresholds(problem: Problem, column: int) -> np.ndarray:
    """The float32 that a column's splits send left last, and the next one."""
    estimator = problem.classifier.estimator
    trees = [tree.tree_ for tree in np.ravel(getattr(estimator, "estimators_", estimator))]
    cuts = np.unique(np.concatenate([tree.threshold[tree.feature == column] for tree in trees]))
    left = cuts.astype(np.float32)
    left = np.where(left.astype(float) > cuts, np.nextafter(left, np.float32(-np.inf)), left)
    return np.stack([left, np.nextafter(left, np.float32(np.inf))])


def corners(problem: Problem, perturbation: Perturbation, row: dict[str, Any], radius: float) -> Iterator[np.ndarray]:
    """Estimator inputs that meet every cell around a row whose nearest point lies within the radius; in blocks."""
    space, low_high = problem.space, []
    for columns, moved in zip(space.slices, perturbation.moved, strict=True):
        encoded = space.encode(space.frame([row]))[0, columns]
        if not moved:
            low_high.append([tuple(encoded)])
            continue
        x = float(encoded[0])
        pairs = thresholds(problem, columns.start)
        near = [v for v in pairs.ravel().astype(float) if abs(v - x) < radius]
        low_high.append([(v,) for v in (x, x - radius, x + radius, *near)])
    points = np.array([sum(point, ()) for point in itertools.product(*low_high)])
    if perturbation.norm == "l2":
        # A cell is met where its point nearest to x is in the ball.
        x = space.encode(space.frame([row]))[0]
        points = points[np.sqrt(((points - x) ** 2).sum(axis=1)) < radius]
    yield points


def holds(problem: Problem, perturbation: Perturbation, row: dict[str, Any], radius: float) -> bool:
    """Whether the model is right on everything within the radius: brute force over cells, independent of methods."""
    code = problem.classifier.code(problem.target.value)
    return all(
        (problem.classifier.decide(block) == code).all() for block in corners(problem, perturbation, row, radius)
    )


def candidates(problem: Problem, perturbation: Perturbation, f: int, factual: dict[str, Any]) -> list[Any]:
    """Values of a feature among which an optimum for a box lies, up to 1e-7."""
    feature, columns = problem.space.features[f], problem.space.slices[f]
    own = factual[feature.name]
    if not feature.numeric:
        return list(feature.reachable(own))
    low, high = feature.interval(own)
    reach = perturbation.reach[f]
    cuts = feature.scale[0] + thresholds(problem, columns.start).astype(float) * feature.range
    tiny = 1e-9 * feature.range
    if feature.kind is Kind.INTEGER:
        return list(range(int(low), int(high) + 1))
    values = [own, *(cuts[0] - reach - tiny), *(cuts[1] + reach + tiny)]
    return [v for v in values if low <= v <= high]


def brute(problem: Problem, method: Robust, factual: dict[str, Any]) -> float:
    """The least objective of a robust point whose features take candidate values; infinite where there is none."""
    perturbation, space = method.perturbation(problem), problem.space
    names = space.names
    listed = [candidates(problem, perturbation, f, factual) for f in range(len(names))]
    frame = space.frame([dict(zip(names, values, strict=True)) for values in itertools.product(*listed)])
    origin = space.frame([factual])
    objective = method.objective(problem)
    costs = objective.evaluate(space, origin, frame)
    kept = [not faults for faults in Objective(objective.terms, limits=objective.limits).exceeded(space, origin, frame)]
    valid = problem.valid(frame)
    for place in np.argsort(costs, kind="stable"):
        if kept[place] and valid[place] and holds(problem, perturbation, frame.iloc[place].to_dict(), method.rho):
            return float(costs[place])
    return math.inf


def solved(problem: Problem, method: Robust, factual: dict[str, Any], seconds: float = 60.0) -> Outcome:
    return method.start(problem).solve(factual, Deadline.after(seconds))


def factuals(problem: Problem, count: int) -> list[dict[str, Any]]:
    rejected = problem.train[~problem.valid(problem.train)]
    return rejected.iloc[:count].to_dict("records")


def assert_sound(problem: Problem, method: Robust, factual: dict[str, Any], outcome: Outcome) -> None:
    """Permitted, worth what it claims, and right on the whole region."""
    assert outcome.row is not None
    space, perturbation = problem.space, method.perturbation(problem)
    origin, row = space.frame([factual]), space.frame([outcome.row])
    objective = Objective((Term(method.distance), *([Term("l0", method.alpha)] if method.alpha else [])))
    assert objective.evaluate(space, origin, row)[0] == pytest.approx(outcome.value, rel=1e-12, abs=1e-12)
    assert all(permitted(f, factual[f.name], outcome.row[f.name]) for f in space.features)
    assert outcome.radius >= method.rho
    assert problem.valid(row).all()
    assert holds(problem, perturbation, outcome.row, method.rho * (1 - 1e-12))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_optimum_for_a_box_is_that_of_brute_force(model: str, target: str, mixed: bool) -> None:
    """Small and large radii; a factual may be robust only far away, or not at all."""
    problem = problem_with(model, target, mixed)
    none = 0
    for rho, distance in ((0.05, "l2sq"), (0.12, "l1"), (0.3, "l1")):
        method = Robust(rho=rho, distance=distance)
        for factual in factuals(problem, 2):
            outcome, expected = solved(problem, method, factual), brute(problem, method, factual)
            assert outcome.proven()
            assert outcome.value == pytest.approx(expected, abs=1e-6)
            none += outcome.row is None
            if outcome.row is not None:
                assert_sound(problem, method, factual, outcome)
    assert mixed or none < 6


@pytest.mark.parametrize("model", ESTIMATORS)
def test_features_have_costs_of_their_own(model: str) -> None:
    """The optimum is that of brute force, for Algorithm 1 too, and its value what changes cost by hand."""
    plain = problem_with(model, "yes", mixed=True)
    costs: dict[str, dict[str, Any]] = {
        "a": {"weight": 0.4}, "n": {"weight_up": 3.0, "weight_down": 0.6}, "grade": {"weight_down": 1.5},
        "region": {"weight": 0.3, "costs": {"n": {"s": 2.0}, "s": {"e": 0.5}}},
    }  # fmt: skip
    problem, found = replace(plain, space=plain.space.replace(costs)), 0
    for factual in factuals(problem, 2):
        method = Robust(rho=0.05)
        outcome, expected = solved(problem, method, factual), brute(problem, method, factual)
        assert outcome.proven()
        assert outcome.value == pytest.approx(expected, abs=1e-6)
        if model == "cart":
            paper = Adversarial(problem, method).solve(factual, Deadline.after(60))
            assert paper.value == pytest.approx(expected, abs=3e-6)
        if outcome.row is not None:
            found += 1
            a, n = (outcome.row["a"] - factual["a"]) / 8, (outcome.row["n"] - factual["n"]) / 12
            grade = (outcome.row["grade"] - factual["grade"]) / 2
            pair = {"ns": 2.0, "se": 0.5}.get(factual["region"] + outcome.row["region"], 1.0)
            region = 0.3 * pair * (outcome.row["region"] != factual["region"])
            value = 0.4 * abs(a) + max(3 * n, -0.6 * n) + max(grade, -1.5 * grade) + region
            assert outcome.value == pytest.approx(value)
            assert_sound(problem, method, factual, outcome)
    assert found
    ball = Robust(rho=0.05, norm="l2")
    assert ball.chosen(problem) == "adversarial"
    with pytest.raises(UnsupportedError, match="for balls takes weights of features"):
        replace(ball, algorithm="cells").start(problem)


@pytest.mark.parametrize("model", ESTIMATORS)
def test_regions_are_measured_by_the_population(model: str) -> None:
    """The optimum is that of brute force where a number costs the share that it passes, and a change of 0 is one."""
    plain = problem_with(model, "yes", mixed=True)
    priced = {"n": {"shares": population(plain.train["n"].to_numpy(float))}, "a": {"shares": ((4.0, 0.0), (5.0, 1.0))}}
    problem, method = replace(plain, space=plain.space.replace(priced)), Robust(rho=0.05, alpha=0.05)
    for factual in factuals(problem, 2):
        outcome = solved(problem, method, factual)
        assert outcome.proven()
        assert outcome.value == pytest.approx(brute(problem, method, factual), abs=1e-6)
        if outcome.row is not None:
            below = plain.train["n"].to_numpy()
            ends = [((below < v).sum() + (below <= v).sum()) / 500 for v in (outcome.row["n"], factual["n"])]
            gap = float(problem.space["n"].charged(factual["n"], [outcome.row["n"]])[0])
            assert gap == pytest.approx(abs(ends[0] - ends[1]))
            assert_sound(problem, method, factual, outcome)
    for other in (Robust(norm="l2"), Robust(distance="linf"), Robust(hull="hard")):
        assert other.refuses(problem) is None
        assert other.chosen(problem) == "adversarial"
    endless = replace(problem, space=problem.space.replace({"a": {"bounds": (-math.inf, math.inf)}}))
    assert "beyond the population every move is free; give features.a.bounds" in str(Robust(norm="l2").refuses(endless))


def nearest_allowed(problem: Problem, target: int, rho: float, x: float, own: float) -> float:
    """The second coordinate nearest to home at which a ball around (x, .) meets no wrong cell; infinite where none."""
    cuts = [np.concatenate([[-np.inf], thresholds(problem, column)[0].astype(float), [np.inf]]) for column in (0, 1)]
    inner = [np.clip((c[:-1] + c[1:]) / 2, c[1:-1].min() - 1, c[1:-1].max() + 1) for c in cuts]
    wrong = problem.classifier.decide(np.array(list(itertools.product(*inner)))) != target
    blocked = []
    for (i, j), bad in zip(itertools.product(range(len(inner[0])), range(len(inner[1]))), wrong, strict=True):
        gap = max(cuts[0][i] - x, x - cuts[0][i + 1], 0.0)
        if bad and gap < rho:
            half = math.sqrt(rho**2 - gap**2)
            blocked.append((cuts[1][j] - half, cuts[1][j + 1] + half))
    places = [own, *(end for interval in blocked for end in interval)]
    free = [y for y in places if 0 <= y <= 1 and not any(low < y < high for low, high in blocked)]
    return min(free, key=lambda y: abs(y - own), default=math.inf)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_optimum_for_a_ball_is_that_of_a_grid(model: str, target: str) -> None:
    """One coordinate on a grid, the other exact: no grid point is cheaper, and some are nearly as cheap."""
    problem = problem_with(model, target)
    step = 4e-3
    for rho, distance in ((0.08, "l1"), (0.05, "l2sq")):
        method = Robust(rho=rho, norm="l2", distance=distance)
        power = 1 if distance == "l1" else 2
        for factual in factuals(problem, 2):
            outcome = solved(problem, method, factual)
            best = math.inf
            for x in (factual["a"], *np.arange(0, 1, step)):
                y = nearest_allowed(problem, problem.classifier.code(target), rho, x, factual["b"])
                best = min(best, abs(x - factual["a"]) ** power + abs(y - factual["b"]) ** power)
            assert outcome.proven()
            if outcome.row is None:
                assert math.isinf(best)
                continue
            assert_sound(problem, method, factual, outcome)
            assert outcome.value <= best + 1e-6
            assert outcome.value >= best - 40 * step
            box = solved(problem, Robust(rho=rho, distance=distance), factual)
            assert outcome.value <= box.value + 1e-9


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_random_perturbations_stay_valid_and_nothing_random_is_better(model: str, mixed: bool, norm: str) -> None:
    """Categories, integers, immutable and unperturbed features, few changes, cut perturbations."""
    problem, rng = problem_with(model, "yes", mixed), np.random.default_rng(5)
    kept = {"unperturbed": ("n",), "max_changes": 2, "alpha": 0.1} if mixed else {"clip": norm == "linf"}
    method = Robust(rho=0.05, norm=norm, **kept)
    perturbation, objective, found = method.perturbation(problem), method.objective(problem), 0
    for factual in factuals(problem, 4):
        outcome = solved(problem, method, factual)
        assert outcome.proven()
        origin = problem.space.frame([factual])
        if outcome.row is not None:
            found += 1
            row = problem.space.frame([outcome.row])
            assert not objective.exceeded(problem.space, origin, row)[0]
            encoded = np.repeat(problem.space.encode(row), 500, axis=0)
            moves = rng.normal(size=(500, len(perturbation.columns)))
            size = np.abs(moves).max(axis=1) if norm == "linf" else np.sqrt((moves**2).sum(axis=1))
            encoded[:, perturbation.columns] += 0.05 * (1 - 1e-6) * moves / size[:, None]
            if method.clip:
                encoded = np.clip(encoded, 0.0, 1.0)
            assert (problem.classifier.decide(encoded) == problem.classifier.code("yes")).all()
        others = problem.train[problem.valid(problem.train)].iloc[:40]
        others = others[[all(permitted(f, factual[f.name], o[f.name]) for f in problem.space.features)
                         for o in others.to_dict("records")]]  # fmt: skip
        robust = [not faults for faults in objective.exceeded(problem.space, origin, others)]
        assert objective.evaluate(problem.space, origin, others[robust]).min(initial=math.inf) >= outcome.value - 1e-6
    assert found


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_without_a_radius_it_is_the_closest_counterfactual(norm: str) -> None:
    for model in ESTIMATORS:
        problem = problem_with(model, "yes", mixed=True)
        for factual in factuals(problem, 2):
            plain = CeOcl("l1", engine="search").fit(problem)
            frame = problem.space.frame([factual])
            (answer,) = plain.explain(frame, 1, np.random.default_rng(0), Deadline.after(60.0)).answers
            outcome = solved(problem, Robust(rho=0.0, norm=norm), factual)
            assert outcome.value == pytest.approx(answer.objective, abs=1e-9)


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match="rho is -1"):
        Robust(rho=-1)
    with pytest.raises(ValueError, match="norm is 'l7'"):
        Robust(norm="l7")
    assert "unperturbed names 'c'" in str(Robust(unperturbed=("c",)).refuses(problem_with("cart", "yes")))


def test_an_answer_shows_its_region_and_the_proof() -> None:
    """Intervals in original units, half-width rho for a box, rho over the root of the count for a ball."""
    problem = problem_with("gbm", "yes")
    factual = problem.space.frame(factuals(problem, 1))
    for norm, half in (("linf", 0.03), ("l2", 0.03 / math.sqrt(2))):
        explainer = Robust(rho=0.03, norm=norm).fit(problem)
        explanation = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(60.0))
        first, second = explanation.answers
        assert first.status is Status.OPTIMAL
        assert second.status is Status.GAVE_UP
        for name, (low, high) in first.region.items():
            assert (low, high) == pytest.approx((first.row[name] - half, first.row[name] + half))
        assert explanation.trace[0]["radius"] >= 0.03


def test_a_search_cut_short_gives_a_bound() -> None:
    """No time at all: neither point nor proof, or a certified point and a bound below the optimum."""
    problem = problem_with("rf", "yes")
    for norm in ("linf", "l2"):
        method = Robust(rho=0.05, norm=norm)
        for factual in factuals(problem, 3):
            cut, full = solved(problem, method, factual, 0.0), solved(problem, method, factual)
            assert cut.bound <= full.value + 1e-9
            assert cut.value >= full.value - 1e-6


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_a_first_guess_is_robust(model: str, mixed: bool) -> None:
    """What a search begins with, before any proof, stands the radius and costs no less than the optimum."""
    problem, met = problem_with(model, "yes", mixed), 0
    method = Robust(rho=0.02)
    search = method.start(problem).search
    for factual in factuals(problem, 4):
        state = _NeighbourhoodState(search, _NeighbourhoodLayout(search, factual))
        state.guess()
        found = state.result(done=False)
        if found.row is None:
            continue
        met += 1
        assert_sound(problem, method, factual, Outcome(found.row, found.value, found.bound, method.rho))
        assert found.value >= solved(problem, method, factual).value - 1e-9
    assert met


def test_the_greatest_move_is_left_to_programs() -> None:
    """No sum over features: the default algorithm is Algorithm 1 then, whose answer is certified."""
    problem = problem_with("cart", "yes")
    method = Robust(rho=0.03, distance="linf")
    factual = factuals(problem, 1)[0]
    outcome = solved(problem, method, factual)
    assert isinstance(method.start(problem), Adversarial)
    assert outcome.proven()
    assert holds(problem, method.perturbation(problem), outcome.row, 0.03 * (1 - 1e-6))
    with pytest.raises(UnsupportedError, match="takes no distance 'linf'"):
        Robust(distance="linf", algorithm="cells").start(problem)


@pytest.mark.parametrize(("norm", "expected"), [("linf", "0.0447"), ("l2", "0.0490")])
def test_rho_from_a_probability(norm: str, expected: str) -> None:
    """The box or ball of two columns holds so many normal draws; a third column that is held out does not count."""
    problem = problem_with("cart", "yes")
    method = Robust(rho=None, probability=0.95, sigma=0.02, norm=norm)
    rho = method.perturbation(problem).rho
    assert f"{rho:.4f}" == expected
    draws = np.random.default_rng(0).normal(0, 0.02, (200_000, 2))
    inside = np.linalg.norm(draws, axis=1, ord=np.inf if norm == "linf" else 2) <= rho
    assert inside.mean() == pytest.approx(0.95, abs=0.003)
    factual = factuals(problem, 1)[0]
    assert solved(problem, method, factual).value == solved(problem, Robust(rho=rho, norm=norm), factual).value
    alone = replace(method, unperturbed=(problem.space.names[0],))
    assert alone.perturbation(problem).rho == pytest.approx(0.02 * 1.959964, abs=1e-6)


def test_rho_or_a_probability() -> None:
    for given in ({"rho": None}, {"rho": None, "sigma": 0.1}, {"probability": 0.9, "sigma": 0.1}):
        with pytest.raises(ValueError, match="rho"):
            Robust(**given)


@pytest.mark.parametrize("wrong", [{"hull": "soft"}, {"epsilon": 0.1}, {"epsilon": math.inf, "hull": "hard"}], ids=str)
def test_wrong_hulls_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        Robust(**wrong)
    with pytest.raises(ValueError, match=r"probability is 1.5; it must be in \(0, 1\)"):
        Robust(rho=None, probability=1.5, sigma=0.1)


def test_a_cut_neighbourhood_ends_at_the_bounds() -> None:
    """Valid is 0.4 to 0.65, too narrow for a radius of 0.15; cut at 0.6, the nearest centre is at 0.55."""
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 0.6)),))
    values = np.array([0.0, 0.2, 0.39, 0.41, 0.5, 0.64, 0.66, 0.8, 1.0])
    frame = pd.DataFrame({"a": values})
    tree = DecisionTreeClassifier(random_state=0).fit(space.encode(frame), (values > 0.4) & (values < 0.65))
    labels = np.where((values > 0.4) & (values < 0.65), "yes", "no").astype(object)
    problem = Problem(space, Classifier(tree, space_inputs(space), ("no", "yes")), frame, labels, Label("yes"))
    assert solved(problem, Robust(rho=0.15), {"a": 0.1}).row is None
    row = solved(problem, Robust(rho=0.15, clip=True), {"a": 0.1}).row
    assert row is not None
    assert row["a"] == pytest.approx(0.55, abs=1e-6)
    assert "does not clip balls" in str(Robust(rho=0.15, norm="l2", clip=True).refuses(problem))


@pytest.mark.parametrize(("number", "rho"), [(0, 0.2), (2, 0.2), (4, 0.2)])
def test_a_change_may_weigh_millions(number: int, rho: float) -> None:
    """The fewest changes, and the nearest of these, are the same whatever more than all distances a change weighs."""
    problem = problem_with("cart", "no")
    factual = factuals(problem, 5)[number]
    light, heavy = (
        solved(problem, Robust(rho=rho, norm="l2", distance="l1", alpha=alpha, algorithm="cells"), factual)
        for alpha in (1e3, 2e6)
    )
    origin = problem.space.frame([factual])
    counts = [problem.space.changed(origin, problem.space.frame([found.row])).sum() for found in (light, heavy)]
    assert counts[0] == counts[1]
    assert heavy.value - 2e6 * counts[1] == pytest.approx(light.value - 1e3 * counts[0], abs=1e-2)
