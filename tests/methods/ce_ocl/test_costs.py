"""CE-OCL where features have costs of their own: against all points of a small space, costs worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support import enumeration

from harness.core.problem import Problem
from harness.core.space import Kind, Space
from methods.ce_ocl import CeOcl
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.explainer import start

Asked = Mapping[str, Mapping[str, Any]]
MODELS = ("lr", "rf", "mlp", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cart", "gbm")))


def share(knots: Any, value: float) -> float:
    """The share of the population below a value: on the line between two knots."""
    if value <= knots[0][0] or value >= knots[-1][0]:
        return float(knots[0][1] if value <= knots[0][0] else knots[-1][1])
    (x, low), (y, high) = next((one, other) for one, other in pairwise(knots) if one[0] <= value <= other[0])
    return float(low + (high - low) * (value - x) / (y - x))


def gap(space: Space, asked: Asked, name: str, old: Any, new: Any) -> float:
    """What a change costs in scaled units, by the words of the documentation."""
    feature = space[name]
    if feature.kind is Kind.ORDINAL:
        levels = feature.categories
        far = (levels.index(new) - levels.index(old)) / (len(levels) - 1)
    elif feature.numeric:
        far = (new - old) / (feature.scale[1] - feature.scale[0])
    else:
        far = float(feature.categories.index(new) - feature.categories.index(old))
        far /= abs(far) or 1.0
    told = asked.get(name, {})
    if "shares" in told:
        ends = [space[name].categories.index(value) if name == "grade" else value for value in (old, new)]
        far = share(told["shares"], ends[1]) - share(told["shares"], ends[0])
    rate = told.get("weight", 1.0)
    if feature.kind is not Kind.CATEGORICAL and far:
        rate = told.get("weight_up" if far > 0 else "weight_down", rate)
    return float(abs(far) * rate * told.get("costs", {}).get(old, {}).get(new, 1.0))


def by_hand(method: CeOcl, space: Space, asked: Asked, old: dict[str, Any], new: dict[str, Any]) -> float:
    """The objective of a point."""
    gaps = [gap(space, asked, name, old[name], new[name]) for name in space.names]
    changes = sum(old[name] != new[name] for name in space.names)
    distance = {
        "l0": changes, "l1": sum(gaps), "gower": sum(gaps) / len(gaps), "l2sq": sum(g * g for g in gaps),
        "linf": max(gaps),
    }[method.distance]  # fmt: skip
    return float(distance + method.alpha * changes)


def least(method: CeOcl, problem: Problem, asked: Asked, factual: Any) -> float:
    """The least objective over all points that may be answered."""
    frame = enumeration.points()
    frame = frame[enumeration.allowed(method, problem, factual, frame)]
    old = factual.iloc[0].to_dict()
    return min((by_hand(method, problem.space, asked, old, new) for new in frame.to_dict("records")), default=np.inf)


@pytest.mark.parametrize("priced", ["sides", "pairs", "weights"])
@pytest.mark.parametrize("distance", ["l1", "gower", "l2sq", "linf"])
@pytest.mark.parametrize("model", MODELS)
def test_the_cheapest_point_is_found(model: str, distance: str, priced: str) -> None:
    """The answer is the optimum by costs worked out by hand, and not that of the same question without costs."""
    problem = enumeration.problem_of(model, priced=priced)
    method = CeOcl(distance=distance)
    for factual in enumeration.factuals(problem, 2):
        (answer,) = enumeration.assert_optimal(method, problem, factual)
        assert answer.objective == pytest.approx(least(method, problem, enumeration.PRICED[priced], factual), abs=1e-6)


@pytest.mark.parametrize("priced", ["sides", "pairs", "weights"])
@pytest.mark.parametrize("distance", ["l1", "l2sq"])
@pytest.mark.parametrize("model", ["gbm", pytest.param("rf", marks=pytest.mark.slow)])
def test_the_program_and_the_cells_agree(model: str, distance: str, priced: str) -> None:
    """Both engines, three answers each, with and without a price of changes."""
    problem = enumeration.problem_of(model, priced=priced)
    for alpha in (0.0, 0.2):
        method = CeOcl(distance=distance, alpha=alpha)
        assert isinstance(start(method, problem), CellEngine)
        for factual in enumeration.factuals(problem, 2):
            found = enumeration.assert_optimal(method, problem, factual, 3)
            program = enumeration.assert_optimal(replace(method, engine="milp"), problem, factual, 3)
            assert [a.objective for a in found] == pytest.approx([a.objective for a in program], abs=1e-6)


def test_costs_decide_what_changes() -> None:
    """Some answers are others than without costs."""
    plain, priced = enumeration.problem_of("rf"), enumeration.problem_of("rf", priced="weights")
    rows = [
        [
            enumeration.ask(CeOcl(), problem, factual).answers[0].row
            for factual in enumeration.factuals(plain, 12, seed=1)
        ]
        for problem in (plain, priced)
    ]
    assert sum(one != other for one, other in zip(*rows, strict=True)) == 4


@pytest.mark.parametrize("given", [{}, {"kept": "increase"}, {"related": ("unequal",)}, {"kept": "coded"}])
@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.2}, {"max_changes": 2, "distance": "l2sq"}])
@pytest.mark.parametrize("priced", ["shares", "flat"])
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_the_least_of_the_population_is_passed(
    model: str, priced: str, parameters: dict[str, Any], given: dict[str, Any]
) -> None:
    """On trees the answers are the optima by shares worked out by hand, each apart from those before."""
    problem = enumeration.problem_of(model, priced=priced, **given)
    method = CeOcl(**parameters)
    assert isinstance(start(method, problem), CellEngine)
    for factual in enumeration.factuals(problem, 2):
        first, _ = enumeration.assert_optimal(method, problem, factual, 2)
        cost = least(method, problem, enumeration.PRICED[priced], factual)
        assert cost == np.inf if first.objective is None else first.objective == pytest.approx(cost, abs=1e-6)


@pytest.mark.parametrize("priced", ["shares", "flat"])
@pytest.mark.parametrize(
    ("model", "parameters"), [("mlp", {}), ("lr", {}), ("lr", {"alpha": 0.2}), ("lr", {"distance": "l2sq"}),
                              ("lr", {"hull": "hard"}), ("mlp", {"distance": "linf"}),
                              ("rf", {"engine": "milp", "alpha": 0.2}),
                              ("lr", {"hull": "hard", "clusters": 3, "distance": "linf"}),
                              ("rf", {"distance": "linf", "max_changes": 2}), ("mlp", {"hull": "penalised"})],
)  # fmt: skip
def test_programs_pass_the_least_of_the_population(model: str, parameters: dict[str, Any], priced: str) -> None:
    """Where shares bend up and down and stay, and where some changes pass nobody."""
    problem, method = enumeration.problem_of(model, priced=priced), CeOcl(**parameters)
    assert not isinstance(start(method, problem), CellEngine)
    for factual in enumeration.factuals(problem, 2, seed=2):
        first, _ = enumeration.assert_optimal(method, problem, factual, 2)
        if method.hull == "none":
            cost = least(method, problem, enumeration.PRICED[priced], factual)
            assert first.objective == pytest.approx(cost, abs=1e-6)


@pytest.mark.parametrize("priced", ["sides", "pairs", "shares", "flat"])
def test_a_unit_costs_what_is_between_its_extremes(priced: str) -> None:
    space = enumeration.problem_of("lr", priced=priced).space
    for feature, (low, high) in zip(space.features, space.rates, strict=True):
        values = list(enumeration.VALUES[feature.name])
        for old in values:
            for new in [value for value in values if value != old]:
                unit = gap(space, {}, feature.name, old, new)
                paid = gap(space, enumeration.PRICED[priced], feature.name, old, new)
                assert low * unit - 1e-9 <= paid <= high * unit + 1e-9
