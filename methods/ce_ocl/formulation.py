"""The constraints of CE-OCL in one table: when a question imposes one, how a program states it, and what answers it.

A new constraint is a class in ``constraints`` and a line of ``TABLE``. Equation numbers are those of ``CeOcl``, whose
documentation shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.problem import Problem
from harness.core.space import Kind
from methods.ce_ocl.constraints import (
    Apart,
    Causal,
    Coherence,
    ConstraintPart,
    Inside,
    OtherAssignment,
    Related,
    Sparsity,
    Unrepeated,
    Validity,
)
from methods.ce_ocl.parameters import Parameters
from methods.cells.grid import WORD
from methods.cells.relations import boxed
from methods.estimators import network_margins
from methods.estimators.raw_target import conditions
from methods.estimators.trees import splits_only
from methods.hull_search.models import searchable

Engine = Literal["cells", "hull", "few", "program"]
Asked = Callable[[Parameters, Problem], bool]


@dataclass(frozen=True)
class If:
    """When an engine takes a constraint, in words and as a test."""

    words: str
    test: Asked


@dataclass(frozen=True)
class Constraint:
    """A line of the table.

    Parameters
    ----------
    equation, name
        Its number, and what it is in words.
    imposed
        Whether a question has it.
    part
        What states it in a program; None where nothing has to.
    cells, hull, few
        Whether the search over cells of trees (``methods/cells``), the one over boxes of a hull
        (``methods/hull_search``) and the one over few changes of a network (``few_changes``) take it.
    couples
        Whether it depends on the values of numbers, so that cells of trees are not enough for the program.
    later
        Whether it binds no answer but those after the first.
    remedy
        What a user may do about it where the program does not take it; None where it does.
    """

    equation: str
    name: str
    imposed: Asked
    part: type[ConstraintPart] | None
    cells: bool | If
    hull: bool | If
    few: bool | If
    couples: bool = False
    later: bool = False
    remedy: Callable[[Problem], str] | None = None

    @property
    def program(self) -> bool:
        """Whether the program takes it."""
        return self.remedy is None

    def taken(self, engine: Engine, parameters: Parameters, problem: Problem) -> bool:
        """Whether an engine takes it as a question asks for it."""
        takes: bool | If = getattr(self, engine)
        return takes.test(parameters, problem) if isinstance(takes, If) else takes

    def unmet(self, engine: Engine) -> str:
        """That an engine does not take it, as the end of a sentence."""
        takes: bool | If = getattr(self, engine)
        return f"takes {self.name} only for {takes.words}" if isinstance(takes, If) else f"does not take {self.name}"


def blocking(engine: Engine, parameters: Parameters, problem: Problem, first: bool = False) -> Constraint | None:
    """The first constraint of a question that an engine does not take; ``first``: no answer but the first is asked."""
    rows = (row for row in imposed(parameters, problem) if not (first and row.later))
    return next((row for row in rows if not row.taken(engine, parameters, problem)), None)


def imposed(parameters: Parameters, problem: Problem) -> Iterator[Constraint]:
    """The constraints of a question, in the order in which a program states them."""
    return (row for row in TABLE if row.imposed(parameters, problem))


def coupled(parameters: Parameters, problem: Problem) -> bool:
    """Whether anything but the model depends on the values of numbers: a tree's cells are then not enough."""
    return any(row.couples for row in imposed(parameters, problem))


def searched(parameters: Parameters, problem: Problem) -> bool:
    """Whether the search over cells answers, without a program."""
    return parameters.engine != "milp" and blocking("cells", parameters, problem) is None


def check(parameters: Parameters, problem: Problem) -> None:
    """Nothing where some engine takes a question; no program is built.

    Raises
    ------
    UnsupportedError
        Naming the constraint that no engine takes beside the others; or as ``CounterfactualProgram``.
    """
    if searched(parameters, problem):
        return
    cells, row = blocking("cells", parameters, problem), blocking("program", parameters, problem)
    if row is not None and row.remedy is not None:
        why, takes = "engine=milp leaves out" if cells is None else cells.unmet("cells"), row.unmet("program")
        if row.cells is True:
            takes = f"takes {row.name} by the search over cells of trees alone, which {why}"
        raise UnsupportedError(f"CE-OCL {takes}; {row.remedy(problem)}.")
    if cells is not None and parameters.engine == "search":
        raise UnsupportedError(f"engine=search {cells.unmet('cells')}; use auto.")
    numbers_by_cells = splits_only(problem.classifier.estimator) and not coupled(parameters, problem)
    for line in imposed(parameters, problem):
        if line.part is not None:
            line.part.check(problem, numbers_by_cells)


def _always(parameters: Parameters, problem: Problem) -> bool:
    return True


def _diversity(*names: str) -> Asked:
    return lambda parameters, problem: parameters.diversity in names


def _one_sum(parameters: Parameters, problem: Problem) -> bool:
    """Whether the cell search reads the model and what is asked of it."""
    if not splits_only(problem.classifier.estimator):
        return False
    try:
        return bool(conditions(problem))
    except UnsupportedError:
        return False


def _summable(parameters: Parameters, problem: Problem) -> bool:
    """Whether the cell search can add up the numbers of relations that are no boxes of few states.

    What the values within states cost knows of no costs of features.
    """
    space = problem.space
    added = {name for relation in space.relations if not boxed(relation) for name in relation.features}
    endless = any(f.name in added and f.numeric and not np.isfinite(f.bounds).all() for f in space.features)
    return not added or not (endless or space.priced)


def _narrow(parameters: Parameters, problem: Problem) -> bool:
    """Whether a word of the cell search holds the categories of each feature."""
    return all(f.kind is not Kind.CATEGORICAL or len(f.categories) <= WORD for f in problem.space.features)


def _joint(parameters: Parameters, problem: Problem) -> bool:
    return parameters.distance in {"linf", "mahalanobis"}


TREES = If("sums of trees", _one_sum)
BOXES = If("linear, trees, ReLUs", lambda _, problem: searchable(problem))
RELUS = If("ReLU networks", lambda _, problem: network_margins.takes(problem))
WORDS = If(f"up to {WORD} categories", _narrow)
ADDED = If("bounded numbers", _summable)
TIGHT = If("epsilon 0, or a price", lambda parameters, _: parameters.soft or 0.0 in parameters.epsilons)

# fmt: off
TABLE = (
    # equation, name, when a question imposes it, part of a program; whether cells, hull and few changes take it
    Constraint("(2a)", "distances not summed over features", _joint, None, False, False, False, couples=True),
    Constraint("(2a)", "costs with distance=mahalanobis",
               lambda p, q: p.distance == "mahalanobis" and q.space.priced, None, False, False, False,
               remedy=lambda _: "choose l1, gower, mad_l1, l2sq or linf"),
    Constraint("(2a)", "costs by side or by category", lambda _, q: not q.space.even, None,
               True, False, True),
    Constraint("(2a)", "percentiles", lambda _, q: bool(q.space.curved), None, True, False, False),
    Constraint("none", "missing values", lambda _, q: bool(q.space.gaps), None, True, False, False,
               remedy=lambda q: f"set features.{q.space.gaps[0].name}.missing to median, or another filler"),
    Constraint("(4, 6)", "coherence, bounds, actionability", _always, Coherence, WORDS, True, True),
    Constraint("[2]_", "answers apart by separation", _diversity("distance", "pool", "clusters", "epsilon"), Apart,
               True, False, True, later=True),
    Constraint("none", "a pool, clusters or enlargements", _diversity("pool", "clusters", "epsilon"), None,
               False, False, False, later=True),
    Constraint("[3]_", "answers that repeat no change", _diversity("features"), Unrepeated,
               False, False, False, couples=True, later=True),
    Constraint("none", "answers of other assignments", _diversity("assignments"), OtherAssignment,
               False, False, False, later=True),
    Constraint("(5a, 5b)", "sparsity", lambda p, _: p.counted, Sparsity, True, True, True),
    Constraint("(2c)", "validity", _always, Validity, TREES, BOXES, RELUS),
    Constraint("(7)", "structural equations", lambda p, q: p.causality and bool(q.equations), Causal,
               False, False, False, couples=True),
    Constraint("none", "relations", lambda _, q: bool(q.space.relations), Related, ADDED, False, False, couples=True),
    Constraint("(3)", "the data manifold", lambda p, _: p.hull != "none", Inside, False, TIGHT, False, couples=True),
    Constraint("[5]_", "likelihood", lambda p, _: p.likelihood > 0, Inside, False, False, False, couples=True),
)
# fmt: on
