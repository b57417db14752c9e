"""The outputs of a fitted estimator as expressions of a program: one function a family."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from harness.core.errors import UnsupportedError
from harness.core.wording import PREDICT, READ
from harness.solvers.program import Program
from methods.estimators.trees import ensemble, splits_only
from methods.milp.embed import trees
from methods.milp.embed.embedded import Embedded
from methods.milp.sources import Source


@singledispatch
def embed(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Add an estimator to a program; a sum of trees, as ``methods.estimators.trees`` reads it, needs no encoder.

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
    embeddable(estimator)
    return trees.embed_trees(ensemble(estimator), program, inputs)


@singledispatch
def embeddable(estimator: Any) -> None:
    """Nothing where ``embed`` takes an estimator, without a look at more than its type and settings; trees are read.

    Raises
    ------
    UnsupportedError
        As ``embed``.
    """
    if splits_only(estimator):
        ensemble(estimator)
        return
    if embed.dispatch(type(estimator)) is not embed.dispatch(object):
        return
    raise UnsupportedError(f"{type(estimator).__name__} cannot be read; {READ}; {PREDICT}.")
