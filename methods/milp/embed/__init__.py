"""Fitted estimators as mixed-integer constraints: one encoder a model family, dispatched on the estimator's type.

``embed(estimator, program, inputs, sense)`` takes arbitrary inputs (``methods.milp.space.Source``) and returns an
``Embedded`` whose outputs are linear expressions: one for a binary classifier or a regressor, else one a class. What
they equal is ``Classifier.raw`` (for networks of more than two classes, up to one number that all classes share).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from harness.core.errors import UnsupportedError
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.estimators.trees import ensemble, splits_only
from methods.milp.sources import Source


class Bounds(Protocol):
    """Bounds of linear forms of the estimator's inputs over the changes still worth looking at."""

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest ``weights @ inputs + shift``; weights (forms, inputs), results (forms,)."""
        ...


@dataclass(frozen=True)
class Embedded:
    """An estimator inside a program.

    Parameters
    ----------
    outputs
        Linear expressions equal to the estimator's raw output.
    leaves
        Per tree, its leaf variables: a combination of leaves that the real model refuses can be excluded.
    attach
        Called once with the compiled program.
    tighten
        Called for each factual with bounds of linear forms of the inputs, for encodings whose strength depends on them.
    settle
        Called after ``tighten`` with a cost and a budget: tightens further by linear programs under cost <= budget, for
        at most so many seconds; returns whether they prove that nothing lies within the budget.
    """

    outputs: tuple[Expression, ...]
    leaves: tuple[tuple[Any, ...], ...] = ()
    attach: Callable[[Compiled], None] = lambda compiled: None
    tighten: Callable[[Bounds], None] | None = None
    settle: Callable[[Linear, float, float], bool] | None = None


@singledispatch
def embed(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Add an estimator to a program; a sum of trees as ``methods.estimators.trees`` reads it, needs no encoder of its own.

    Parameters
    ----------
    sense
        1: outputs will only be bounded from below, -1: only from above, 0: they must be exact. An encoder may leave out
        what the sense makes redundant; in the stated direction nothing is lost.

    Raises
    ------
    UnsupportedError
        For a type without an encoder, and for what its encoder does not cover.
    """
    if splits_only(estimator):
        return forest.embed_trees(ensemble(estimator), program, inputs)
    known = sorted({kind.__name__ for kind in (*embed.registry, *ensemble.registry) if kind is not object})
    raise UnsupportedError(
        f"cannot embed {type(estimator).__name__} in a mixed-integer program; known: {', '.join(known)}. "
        f"To add one, register an encoder in methods/milp/embed/, or a reader of trees in methods/trees.py."
    )


from methods.milp.embed import forest, linear, relu  # noqa: E402, F401  (they register themselves)
