"""The rows that a network's margin asks for in a box of moves, compiled: those of ``NetworkProgram``."""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import ROW_MISSED


@njit(cache=True)
def rows_above(units, net, low, high, phases, patterns, forms, shifts_of):
    """A linear form of the first layer's sums above the margin for each pattern; whether the box has a valid point.

    ``units``: slopes a move, sums at none, and ends of the first layer; ``net``: weights (layers, units, units before),
    shifts (layers, units), sizes, the last weights, and a constant. Over moves in [low, high], each hidden unit has
    bounds, cut to where ``phases`` (units,) say that it is at work (1) or not (-1). Of a unit that may be either,
    the form has the chord where it pushes towards the target, else what ``patterns`` (forms, units) say.
    """
    slope, at_none, least, most = units
    weights, shifts, sizes, last, constant = net
    layers, width = len(sizes), shifts.shape[1]
    lows, highs = np.empty((layers, width)), np.empty((layers, width))
    start = 0
    for k in range(layers):
        for i in range(sizes[k]):
            if k == 0:
                centre, radius = at_none[i], 0.0
                for j in range(len(low)):
                    centre += slope[i, j] * (low[j] + high[j]) / 2
                    radius += abs(slope[i, j]) * (high[j] - low[j]) / 2
                below, above = max(centre - radius, least[i]), min(centre + radius, most[i])
            else:
                below = above = shifts[k, i]
                for j in range(sizes[k - 1]):
                    weight = weights[k, i, j]
                    near, far = max(lows[k - 1, j], 0.0), max(highs[k - 1, j], 0.0)
                    if weight < 0.0:
                        near, far = far, near
                    below += weight * near
                    above += weight * far
            if phases[start + i] > 0:
                below = max(below, 0.0)
            elif phases[start + i] < 0:
                above = min(above, 0.0)
            if below > above + ROW_MISSED:
                return False
            lows[k, i], highs[k, i] = below, above
        start += sizes[k]
    form, earlier = np.zeros(width), np.zeros(width)
    for s in range(len(patterns)):
        form[: sizes[layers - 1]], shift, place = last, constant, start
        for k in range(layers - 1, -1, -1):
            place -= sizes[k]
            for i in range(sizes[k]):
                below, above = lows[k, i], highs[k, i]
                if not below < 0.0 < above:
                    form[i] = form[i] if below >= 0.0 else 0.0
                elif form[i] > 0.0:
                    chord = above / (above - below)
                    shift -= form[i] * chord * below
                    form[i] *= chord
                elif not patterns[s, place + i]:
                    form[i] = 0.0
            if k > 0:
                earlier[:] = 0.0
                for i in range(sizes[k]):
                    shift += form[i] * shifts[k, i]
                    for j in range(sizes[k - 1]):
                        earlier[j] += form[i] * weights[k, i, j]
                form[:] = earlier
        forms[s] = form[: sizes[0]]
        shifts_of[s] = shift
    return True


def compile_all() -> None:
    """Load the kernel, or compile it where no cache holds it."""
    one, table = np.zeros(1), np.zeros((1, 1))
    net = np.zeros((1, 1, 1)), table, np.ones(1, dtype=np.int64), one, 0.0
    rows_above((table, one, one, one), net, one, one, one, table > 0, table, one)
