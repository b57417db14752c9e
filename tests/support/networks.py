"""Networks whose weights are drawn, not learnt."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning


def random_network(estimator: Any, inputs: np.ndarray, targets: Any, rng: np.random.Generator) -> Any:
    """The estimator, fitted for the shapes of its layers, with weights and then shifts drawn anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(inputs, targets)
    for layer in (*estimator.coefs_, *estimator.intercepts_):
        layer[...] = rng.normal(size=layer.shape)
    return estimator
