"""Linear models, as ``methods.estimators.linear`` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.svm import SVR

from harness.core.errors import UnsupportedError
from harness.core.linear import CLASSIFIERS, REGRESSORS
from harness.solvers.program import Program
from methods.estimators.linear import is_linear, weights_of
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.registry import embed, embeddable
from methods.milp.sources import Source


def embed_linear(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Output = w·x + b, one a row of weights."""
    embeddable(estimator)
    return Embedded(tuple(affine(w, b, inputs) for w, b in zip(*weights_of(estimator), strict=True)))


@embeddable.register(SVR)
def _(estimator: SVR) -> None:
    if not is_linear(estimator):
        raise UnsupportedError(f"SVR with kernel {estimator.kernel!r} is no linear model; set kernel='linear'.")


for kind in (*CLASSIFIERS, *REGRESSORS, SVR):
    embed.register(kind, embed_linear)


def affine(weights: np.ndarray, intercept: float, inputs: Sequence[Source]) -> Any:
    """w·x + b over the inputs' expressions."""
    return sum(float(w) * source.expression for w, source in zip(weights, inputs, strict=True) if w) + float(intercept)
