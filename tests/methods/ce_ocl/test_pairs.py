"""Every two families of CE-OCL's constraints together, against all points of a small space."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from support import enumeration

from harness.core.target import Interval, Probability
from methods.ce_ocl import CeOcl

# By family and choice: arguments of the method, and of ``enumeration.problem_of``.
FAMILIES: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "sparsity": {
        "K1": ({"max_changes": 1}, {}),
        "K2": ({"max_changes": 2}, {}),
        "K3-columns": ({"max_changes": 3, "count": "columns"}, {}),
    },
    "alpha": {"alpha0.3": ({"alpha": 0.3}, {}), "alpha1e4": ({"alpha": 1e4}, {})},
    "distance": {
        name: ({"distance": name}, {}) for name in ("l0", "l1", "mad_l1", "gower", "l2sq", "linf", "mahalanobis")
    },
    "actionability": {kind: ({}, {"kept": kind}) for kind in enumeration.KEPT if kind != "free"},
    "hull": {
        "hard": ({"hull": "hard"}, {}),
        "eps-1": ({"hull": "hard", "epsilon": 0.137, "hull_norm": 1}, {}),
        "eps-2": ({"hull": "hard", "epsilon": 0.137, "hull_norm": 2}, {}),
        "eps-inf": ({"hull": "hard", "epsilon": 0.071, "hull_norm": "inf"}, {}),
        "eps-list": ({"hull": "hard", "epsilon": [0.0, 0.113, 0.411]}, {}),
        "penalised": ({"hull": "penalised", "penalty": 0.7}, {}),
        "fallback": ({"hull": "fallback", "penalty": 0.7}, {}),
        "clusters": ({"hull": "hard", "clusters": 3}, {}),
        "clusters-eps": ({"hull": "hard", "clusters": 2, "epsilon": 0.137, "hull_norm": "inf"}, {}),
    },
    "causality": {name: ({"causality": True}, {"equation": name}) for name in enumeration.LEARNT},
    "costs": {name: ({}, {"priced": name}) for name in ("sides", "pairs", "weights")},
    "relations": {name: ({}, {"related": (name,)}) for name in enumeration.RELATED},
    "target": {
        "number": ({}, {"target": Interval(0.9, 1.6)}),
        "probability": ({}, {"target": Probability("yes", 0.35, 0.7)}),
    },
}
CLASSIFIERS = ("lr", "cart", "rf", "gbm", "mlp")
REGRESSORS = ("linear", "cart_regressor", "gbm_regressor", "mlp_regressor")


def pairs() -> list[Any]:
    """Every pair with one model here, with all of them if slow."""
    cases = []
    for number, (one, other) in enumerate(itertools.combinations(FAMILIES, 2)):
        for place, (first, second) in enumerate(itertools.product(FAMILIES[one], FAMILIES[other])):
            models = REGRESSORS if "number" in (first, second) else CLASSIFIERS
            for model in models:
                quick = model == models[(place + number) % len(models)] and place % 6 == number % 6
                marks = () if quick else pytest.mark.slow
                cases.append(
                    pytest.param(model, (one, first), (other, second), id=f"{first}-{second}-{model}", marks=marks)
                )
    return cases


@pytest.mark.parametrize(("model", "one", "other"), pairs())
def test_two_constraints_together_leave_the_optimum(model: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    """The answer is the best point of the whole space that keeps both, or a proof that there is none."""
    chosen = [FAMILIES[family][choice] for family, choice in (one, other)]
    method = CeOcl(**{key: value for arguments, _ in chosen for key, value in arguments.items()})
    problem = enumeration.problem_of(model, **{key: value for _, given in chosen for key, value in given.items()})
    if "costs" in (one[0], other[0]) and method.distance == "mahalanobis":
        assert "does not take costs with distance=mahalanobis" in str(method.refuses(problem))
        return
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(method, problem, factual)
