"""An estimator inside a program, as its encoder gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression


@dataclass(frozen=True)
class Corners:
    """Linear forms at the corners of a simplex around the factual that holds all changes within a budget.

    Parameters
    ----------
    values
        The forms at the factual and at each other corner, shape (forms, 1 + corners).
    columns, rates, constants
        How near a point is to each other corner: ``rates @ x[columns] + constants``, at least 0, and 1 at most in all.
        A linear form is the mean of its values at the corners that they weigh, a convex function at most that.
    """

    values: np.ndarray
    columns: np.ndarray
    rates: np.ndarray
    constants: np.ndarray


class Bounds(Protocol):
    """Bounds of linear forms of the estimator's inputs over the changes that are searched."""

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest ``weights @ inputs + shift``; weights (forms, inputs), results (forms,)."""
        ...


class Simplex(Protocol):
    """The same forms at the corners of a simplex that holds the changes."""

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> Corners | None:
        """``weights @ inputs + shift`` there; None where no simplex holds the changes."""
        ...


class Tighten(Protocol):
    """What makes an encoding as strong as a factual allows."""

    def __call__(self, bounds: Bounds, simplex: Simplex | None = None) -> None:
        """Set what depends on the bounds of forms; a simplex adds rows to the posed program."""
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
    phases
        Columns that are 1 where a unit of a network is at work, layer by layer; of units without one, none.
    attach
        Called once with the compiled program.
    tighten
        Called for each factual with bounds of linear forms of the inputs, for encodings whose strength depends on them.
    fix_phases
        Called after ``tighten`` with a cost and a budget: tightens further by linear programs under cost <= budget, for
        at most so many seconds; returns whether they prove that nothing lies within the budget.
    """

    outputs: tuple[Expression, ...]
    leaves: tuple[tuple[Any, ...], ...] = ()
    phases: tuple[Any, ...] = ()
    attach: Callable[[Compiled], None] = lambda compiled: None
    tighten: Tighten | None = None
    fix_phases: Callable[[Linear, float, float], bool] | None = None
