"""A compiled solver of small dense linear programs over a box, whose bound is proven by its multipliers alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import PIVOT, RAY_OF_SIMPLEX, ROW_MISSED

OPTIMAL, INFEASIBLE, STUCK = 0, 1, 2
PIVOTS = 2000


class Minimum(NamedTuple):
    """What ``minimum`` has found."""

    status: int  # ``OPTIMAL``, ``INFEASIBLE`` or ``STUCK``
    bound: float  # on the minimum from below, proven by the multipliers; infinite where there is no point
    point: np.ndarray  # (columns,)
    multipliers: np.ndarray  # (rows,), all >= 0


@njit(cache=True)
def lagrange(cost, rows, sides, low, high, multipliers):
    """A lower bound on ``minimum`` from any multipliers >= 0 of the rows."""
    total = 0.0
    for i in range(len(sides)):
        total -= multipliers[i] * sides[i]
    for j in range(len(cost)):
        slope = cost[j]
        for i in range(len(sides)):
            if multipliers[i] != 0.0:
                slope += multipliers[i] * rows[i, j]
        total += slope * (low[j] if slope > 0 else high[j])
    return total


@njit(cache=True)
def minimum(cost, rows, sides, low, high):
    """Minimise ``cost @ x`` subject to ``rows @ x <= sides`` and ``low <= x <= high``, all ends finite.

    The dual simplex on a dense tableau, from the slack basis, which is dual feasible as every variable has two ends.
    """
    m, n = rows.shape
    table, reduced = rows.copy(), cost.copy()
    basic, other = np.arange(n, n + m), np.arange(n)
    at, level = np.empty(n), np.empty(m)
    multipliers, point = np.zeros(m), np.empty(n)
    for j in range(n):
        at[j] = low[j] if reduced[j] >= 0 else high[j]
    for i in range(m):
        total = sides[i]
        for j in range(n):
            total -= rows[i, j] * at[j]
        level[i] = total
    status = STUCK
    for _ in range(PIVOTS):
        leaving, worst, sign = -1, ROW_MISSED, 1.0
        for i in range(m):
            k = basic[i]
            bottom = low[k] if k < n else 0.0
            if bottom - level[i] > worst:
                leaving, worst, sign = i, bottom - level[i], 1.0
            if k < n and level[i] - high[k] > worst:
                leaving, worst, sign = i, level[i] - high[k], -1.0
        if leaving < 0:
            status = OPTIMAL
            break
        # The leaving variable has to rise by ``worst`` (times sign): those with the least ratios first, whose whole
        # range is used up before another one enters.
        rest, entering = worst, -1
        while True:
            best, entering = np.inf, -1
            for j in range(n):
                entry = sign * table[leaving, j]
                k = other[j]
                span = high[k] - low[k] if k < n else np.inf
                if span <= 0.0:
                    continue
                at_low = k >= n or at[j] == low[k]
                if (at_low and entry < -PIVOT) or (not at_low and entry > PIVOT):
                    ratio = abs(reduced[j] / entry)
                    if ratio < best or (ratio == best and entering >= 0 and abs(entry) > abs(table[leaving, entering])):
                        best, entering = ratio, j
            if entering < 0:
                break
            k = other[entering]
            span = high[k] - low[k] if k < n else np.inf
            used = span * abs(table[leaving, entering])
            if used >= rest:
                break
            rest -= used
            step = high[k] - at[entering] if at[entering] == low[k] else low[k] - at[entering]
            at[entering] = high[k] if step > 0 else low[k]
            for i in range(m):
                level[i] -= table[i, entering] * step
        if entering < 0:
            status = INFEASIBLE
            ray = np.zeros(m)
            for j in range(n):
                if other[j] >= n:
                    ray[other[j] - n] = max(sign * table[leaving, j], 0.0)
            if basic[leaving] >= n:
                ray[basic[leaving] - n] = 1.0
            size = 0.0
            for i in range(m):
                size += ray[i]
            if size > 0:
                ray /= size
                if lagrange(np.zeros(n), rows, sides, low, high, ray) > RAY_OF_SIMPLEX:
                    for j in range(n):
                        point[j] = 0.0
                    return Minimum(INFEASIBLE, np.inf, point, ray)
            status = STUCK
            break
        pivot, cost_in = table[leaving, entering], reduced[entering]
        k = basic[leaving]
        target = (low[k] if sign > 0 else high[k]) if k < n else 0.0
        step = (level[leaving] - target) / pivot
        for i in range(m):
            level[i] -= table[i, entering] * step
        inside = at[entering] + step
        for j in range(n):
            if j != entering:
                table[leaving, j] /= pivot
        table[leaving, entering] = 1.0 / pivot
        for i in range(m):
            factor = table[i, entering]
            if i != leaving and factor != 0.0:
                for j in range(n):
                    if j != entering:
                        table[i, j] -= factor * table[leaving, j]
                table[i, entering] = -factor / pivot
        if cost_in != 0.0:
            for j in range(n):
                if j != entering:
                    reduced[j] -= cost_in * table[leaving, j]
        reduced[entering] = -cost_in / pivot
        basic[leaving], other[entering] = other[entering], k
        at[entering], level[leaving] = target, inside
    for j in range(n):
        k = other[j]
        if k < n:
            point[k] = at[j]
        else:
            multipliers[k - n] = max(reduced[j], 0.0)
    for i in range(m):
        if basic[i] < n:
            point[basic[i]] = min(max(level[i], low[basic[i]]), high[basic[i]])
    return Minimum(status, lagrange(cost, rows, sides, low, high, multipliers), point, multipliers)
