"""Checks of CE-OCL's parameters, and of the claim that they make."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from support.enumeration import ask
from support.weight_corners import posed as weighed

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from methods.ce_ocl import CeOcl
from methods.ce_ocl.parameters import WIDE
from methods.milp.supports import support_points


@pytest.mark.parametrize(
    "wrong",
    [
        {"distance": "l3"},
        {"alpha": -1.0},
        {"max_changes": 0},
        {"separation": 0.0},
        {"separation": 1.5},
        {"margin": 1e-9},
        {"count": "rows"},
        {"engine": "annealing"},
        {"hull": "soft"},
        {"hull_norm": 3},
        {"epsilon": []},
        {"epsilon": [0.2, 0.1]},
        {"epsilon": 0.1, "hull": "fallback"},
        {"penalty": 0.0},
        {"clusters": 0},
        {"diversity": "clusters", "hull": "fallback"},
        {"diversity": "clusters", "hull": "penalised"},
    ],
    ids=str,
)
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CeOcl(**wrong)


def test_a_proof_for_the_first_of_several_enlargements_says_so() -> None:
    """Rows from 0.5 up, yes above 0.2: from 0 a hull enlarged by 0.1 is entered at 0.4, and its list [0, 0.1] at 0.5.

    What is stored tells both claims apart, as runs of one claim may not have proven different optima.
    """
    space = Space((Feature("x", "continuous", scale=(0, 1), bounds=(0, 1)),))
    stump = DecisionTreeClassifier().fit([[0.1], [0.3]], [0, 1])
    rows, labels = space.frame([{"x": 0.5}, {"x": 1.0}]), np.array(["yes", "yes"], dtype=object)
    problem = Problem(space, Classifier(stump, space_inputs(space), ("no", "yes")), rows, labels, Label("yes"))
    factual, stored = space.frame([{"x": 0.0}]).set_axis(["new"]), []
    for epsilon, expected in ((0.1, 0.4), ([0.1], 0.4), ([0.0, 0.1], 0.5)):
        method = CeOcl("l1", hull="hard", epsilon=epsilon)
        (answer,) = ask(method, problem, factual).answers
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(expected, abs=1e-6)
        stored.append(json.dumps(to_plain(method.objective(problem).stored())))
    assert stored[0] == stored[1]
    plain, listed = (from_plain(json.loads(text)) for text in stored[1:])
    assert (plain.domain, listed.domain) == ({}, {"epsilon": (0.0, 0.1)})


@pytest.mark.parametrize("penalty", [1.0, 4.0])
def test_outside_comes_after_inside_whatever_changes_cost(penalty: float) -> None:
    """To enter costs more than every feature's change at 0.5, and any distance."""
    problem = weighed("lr", "scaled", "yes", 0)
    objective = CeOcl(hull="fallback", alpha=0.5, penalty=penalty).objective(problem)
    (slack,) = (term for term in objective.terms if "entry" in term.params)
    columns = support_points(problem, "labelled").shape[1]
    free = CeOcl(hull="fallback", alpha=0.0, penalty=penalty).objective(problem)
    (without,) = (term for term in free.terms if "entry" in term.params)
    assert penalty * without.params["entry"] >= columns
    assert penalty * (slack.params["entry"] - without.params["entry"]) == pytest.approx(0.5 * 3)
    assert penalty * slack.params["entry"] == pytest.approx(0.5 * 3 + WIDE * columns)
