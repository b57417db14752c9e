"""Networks of ReLUs in units in which absolute tolerances are small, however small or great their weights are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]


def balanced(layers: Sequence[Layer], last: np.ndarray, constant: float) -> tuple[list[Layer], np.ndarray, float]:
    """The same network, up to a positive factor of its output, with every unit's greatest weight 1.

    Of a constant unit it is the shift. A ReLU may be divided by a positive number if its weight is multiplied by it.

    Parameters
    ----------
    layers
        Of each hidden layer the weights, shape (units, units before), and shifts, shape (units,).
    last, constant
        The output, a linear form of the last hidden layer.
    """
    made, size = list[Layer](), np.ones(layers[0][0].shape[1])
    for weights, shifts in layers:
        weighted = weights * size
        size = np.abs(weighted).max(axis=1, initial=0.0)
        size[size == 0] = np.abs(shifts)[size == 0]
        size[size == 0] = 1.0
        made.append((weighted / size[:, None], shifts / size))
    weighted_last = last * size
    unit = float(np.abs(weighted_last).max(initial=0.0)) or 1.0
    return made, weighted_last / unit, constant / unit
