"""Networks of ReLUs in units in which absolute tolerances are small, however small or great their weights are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]

LEAST = 2.0**-200  # what moves a unit by less is nothing: quotients by the weights of dead units may be infinite


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
    made, size = _divided(layers, np.ones(layers[0][0].shape[1]), _weight)
    weighted_last = last * size
    unit = float(np.abs(weighted_last).max(initial=0.0)) or 1.0
    return made, weighted_last / unit, constant / unit


def balanced_by_powers(layers: Sequence[Layer], reach: np.ndarray) -> tuple[list[Layer], np.ndarray]:
    """Hidden layers likewise, divided by powers of two: without rounding; and what the last one's units are divided by.

    ``reach`` says how far each input moves. What the greatest one moves a unit by, or the unit's shift where that is
    greater, is between 1 and 2 then.
    """
    return _divided(layers, reach, _power)


def _divided(
    layers: Sequence[Layer], reach: np.ndarray, size_of: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[list[Layer], np.ndarray]:
    """Layers whose units are divided by ``size_of`` what they are moved by at most, and their shifts' sizes."""
    made, size = list[Layer](), np.ones(len(reach))
    for weights, shifts in layers:
        weighted = weights * size
        size = size_of((np.abs(weighted) * reach).max(axis=1, initial=0.0), np.abs(shifts))
        reach = np.ones(len(size))
        made.append((weighted / size[:, None], shifts / size))
    return made, size


def _weight(moved: np.ndarray, shifted: np.ndarray) -> np.ndarray:
    size = np.where(moved < LEAST, shifted, moved)
    return np.where(size < LEAST, 1.0, size)


def _power(moved: np.ndarray, shifted: np.ndarray) -> np.ndarray:
    size: np.ndarray = 2.0 ** np.floor(np.log2(np.clip(np.maximum(moved, shifted), LEAST, None)))
    return size
