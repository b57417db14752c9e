"""CE-OCL's table of constraints: engines are chosen by it alone, and none is given what it does not keep."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import enumeration

from harness.core.problem import Problem
from harness.solvers.highs import Linear
from methods.ce_ocl import CeOcl, formulation
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.constraints import ConstraintPart, Posed
from methods.ce_ocl.explainer import start
from methods.ce_ocl.formulation import Constraint, If
from methods.ce_ocl.program_engine import ProgramEngine

# A line, an engine that does not take it, and a question that this line alone keeps from the engine.
KEPT_OUT: list[tuple[str, str, str, dict[str, Any], dict[str, Any], int]] = [
    ("the data manifold", "cells", "rf", {"hull": "hard"}, {}, 1),
    ("answers that repeat no change", "cells", "rf", {"diversity": "features"}, {}, 2),
    ("relations", "hull", "lr", {"hull": "hard"}, {"related": ("linear",)}, 1),
    ("relations", "few", "mlp", {"max_changes": 2}, {"related": ("linear",)}, 1),
]


@pytest.mark.parametrize(("name", "engine", "model", "parameters", "given", "n"), KEPT_OUT)
def test_an_engine_that_is_given_too_much_is_seen(
    name: str,
    engine: str,
    model: str,
    parameters: dict[str, Any],
    given: dict[str, Any],
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answers are the best of all points; with a "yes" in the table that is none, they are not."""
    method, problem = CeOcl(**parameters), enumeration.problem_of(model, **given)
    asked = enumeration.factuals(problem, 4)

    def answers() -> None:
        for factual in asked:
            enumeration.assert_optimal(method, problem, factual, n)

    answers()
    planted: dict[str, Any] = {engine: True}
    lines = [replace(line, **planted) if line.name == name else line for line in formulation.TABLE]
    assert lines != list(formulation.TABLE)
    monkeypatch.setattr(formulation, "TABLE", tuple(lines))
    with pytest.raises(AssertionError):
        answers()


class Capped(ConstraintPart):
    """age + debt <= 7."""

    def pose(self, posed: Posed) -> None:
        forms, features = self.stated.variables.encoded()[:2], self.stated.problem.space.features[:2]
        row = Linear.sum(
            [
                Linear(f.columns, f.coefficients * x.range, f.constant * x.range)
                for f, x in zip(forms, features, strict=True)
            ]
        )
        self.stated.compiled.add_row(row, high=7.0)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        return (frame["age"] + frame["debt"]).to_numpy() <= 7


@pytest.mark.parametrize(("model", "parameters"), [("rf", {}), ("lr", {"hull": "hard"}), ("mlp", {"alpha": 0.3})])
def test_a_new_constraint_is_a_class_and_a_line(
    model: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No search is asked for it, the program states it, and the best of all points that keep it is found."""
    method, problem = CeOcl(**parameters), enumeration.problem_of(model)
    line = Constraint("none", "a cap", lambda *_: True, Capped, False, False, False, couples=True)
    monkeypatch.setattr(formulation, "TABLE", (*formulation.TABLE, line))
    engine = start(method, problem)
    assert isinstance(engine, ProgramEngine)
    assert (engine.few, engine.boxes) == (None, None)
    why = replace(method, engine="search").refuses(problem)
    assert why is not None
    assert why.startswith("engine=search ")
    assert (why == "engine=search does not take a cap; use auto.") == (model == "rf")
    judged = enumeration.allowed

    def capped(*question: Any) -> np.ndarray:
        return judged(*question) & (question[3]["age"] + question[3]["debt"] <= 7)

    monkeypatch.setattr(enumeration, "allowed", capped)
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(method, problem, factual, 2)


def test_the_documentation_shows_the_table() -> None:
    """A row a line: in which engines, in words; the last column is the program."""

    def words(takes: bool | If) -> str:
        return takes.words if isinstance(takes, If) else "yes" if takes else "no"

    rows = [
        (line.equation, line.name, words(line.cells), words(line.hull), words(line.few), words(line.program))
        for line in formulation.TABLE
    ]
    doc = inspect.cleandoc(CeOcl.__doc__ or "").splitlines()
    rules = [place for place, line in enumerate(doc) if line.startswith("====")]
    ends = [len(rule) for rule in doc[rules[0]].split()]
    shown = []
    for line in doc[rules[1] + 1 : rules[2]]:
        cells, rest = [], line
        for width in ends:
            cells.append(rest[:width].strip())
            rest = rest[width + 2 :]
        shown.append(tuple(cells))
    assert shown == rows


def test_gaps_are_refused_by_the_line_that_keeps_them_from_the_cells() -> None:
    problem, network = (_with_gaps(enumeration.problem_of(model)) for model in ("rf", "mlp"))
    assert isinstance(start(CeOcl(), problem), CellEngine)
    why = (
        "CE-OCL takes missing values by the search over cells of trees alone, which {}; set features.age.missing to "
        "median, or another filler."
    )
    reasons: list[tuple[dict[str, Any], str]] = [
        ({"hull": "hard"}, "does not take the data manifold"),
        ({"distance": "linf"}, "does not take distances not summed over features"),
        ({"diversity": "pool"}, "does not take a pool, clusters or enlargements"),
        ({"engine": "milp"}, "engine=milp leaves out"),
    ]
    for parameters, reason in reasons:
        assert CeOcl(**parameters).refuses(problem) == why.format(reason)
    assert CeOcl().refuses(network) == why.format("takes validity only for sums of trees")


def _with_gaps(problem: Problem) -> Problem:
    return replace(problem, space=problem.space.replace({"age": {"missing": True}}))
