"""The compiled adversary of ``network``: has any point of a box or ball a margin of 0 or less? A point, or a proof.

A box of the phases of hidden units (on, off, open) is relaxed to a linear program over the moves s and the open units'
values v, with :math:`L \\le a \\le U` the bounds of a unit's sum a:

.. math:: v \\ge a, \\quad v \\ge 0, \\quad v \\le U (a - L) / (U - L) .

In the last hidden layer, a unit of positive weight in the margin needs the first two rows only, which are then exact,
and one of negative weight the third. A ball is cut out of its box by planes, until the point is inside; with one layer
the least margin over the ball itself is bounded by multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import (
    MARGIN_PROVEN,
    MULTIPLIERS_GAIN,
    NORM_ROUNDING,
    ROW_MISSED,
    UNIT_EXACT,
)
from harness.solvers.simplex import INFEASIBLE, minimum

VIOLATED, PROVEN, MORE, OPEN = 0, 1, 2, 3
PLANES = 60
HUGE, BISECTIONS, SWEEPS = 1e12, 100, 1000  # of a multiplier; to find it; over all of them


class Layers(NamedTuple):
    """A network as a function of the moves, in units: K hidden layers, U units at most in one.

    ``attack`` and ``forward``, which Python calls, take it as a plain tuple: numba recognises that in half the time.
    """

    weights: np.ndarray  # (K, U, units before or moves), of each unit's inputs
    shifts: np.ndarray  # (K, U)
    sizes: np.ndarray  # (K + 1,) int64, the moves, and each layer's units
    last: np.ndarray  # (units,), the margin as a linear form of the last hidden layer
    constant: float


class Region(NamedTuple):
    """The moves that are allowed."""

    low: np.ndarray  # (moves,)
    high: np.ndarray  # (moves,)
    radius: float  # of the ball, where they are Euclidean
    euclidean: bool


class Program(NamedTuple):
    """A linear program, ``rows @ x <= sides``; its first columns are the moves."""

    cost: np.ndarray  # (columns,)
    constant: float  # of the cost
    rows: np.ndarray  # (rows, columns)
    sides: np.ndarray  # (rows,)
    low: np.ndarray  # (columns,)
    high: np.ndarray  # (columns,)
    place: np.ndarray  # (K, U) int64, the column of each open unit, else -1


@njit(cache=True)
def forward(net, moves):
    """The margin at a point."""
    net = Layers(*net)
    weights, shifts, sizes, last = net.weights, net.shifts, net.sizes, net.last
    values = moves
    for k in range(len(sizes) - 1):
        following = np.empty(sizes[k + 1])
        for i in range(sizes[k + 1]):
            total = shifts[k, i]
            for j in range(sizes[k]):
                total += weights[k, i, j] * values[j]
            following[i] = max(total, 0.0)
        values = following
    total = net.constant
    for i in range(len(values)):
        total += last[i] * values[i]
    return total


@njit(cache=True)
def _least(form, region):
    """The least value of a linear form of the moves."""
    low, high, box, norm = region.low, region.high, 0.0, 0.0
    for j in range(len(low)):
        box += form[j] * (low[j] if form[j] > 0 else high[j])
        norm += form[j] * form[j]
    return max(box, -region.radius * np.sqrt(norm)) if region.euclidean else box


@njit(cache=True)
def bounds(net, region, phases, bottom, top):
    """Bounds of every unit's sum, by substituting the lines around each unit back to the moves; False: no point."""
    weights, shifts, sizes = net.weights, net.shifts, net.sizes
    width = weights.shape[1]
    form, before = np.empty(max(width, weights.shape[2])), np.empty(max(width, weights.shape[2]))
    for k in range(len(sizes) - 1):
        for i in range(sizes[k + 1]):
            for side in range(2):
                sign = 1.0 - 2.0 * side  # the least value of the sum, then of its negative
                constant = sign * shifts[k, i]
                for j in range(sizes[k]):
                    form[j] = sign * weights[k, i, j]
                for p in range(k - 1, -1, -1):
                    for j in range(sizes[p]):
                        before[j] = 0.0
                    for u in range(sizes[p + 1]):
                        factor, lower, upper = form[u], bottom[p, u], top[p, u]
                        if factor == 0.0 or upper <= 0.0:
                            continue
                        if lower < 0.0:
                            if factor > 0.0:
                                if upper < -lower:
                                    continue
                            else:
                                constant -= factor * upper * lower / (upper - lower)
                                factor *= upper / (upper - lower)
                        constant += factor * shifts[p, u]
                        for j in range(sizes[p]):
                            before[j] += factor * weights[p, u, j]
                    for j in range(sizes[p]):
                        form[j] = before[j]
                value = constant + _least(form, region)
                if side == 0:
                    bottom[k, i] = value
                else:
                    top[k, i] = -value
            if phases[k, i] > 0:
                bottom[k, i] = max(bottom[k, i], 0.0)
            elif phases[k, i] < 0:
                top[k, i] = min(top[k, i], 0.0)
            if bottom[k, i] > top[k, i] + ROW_MISSED:
                return False
    return True


@njit(cache=True)
def _relax(net, region, phases, bottom, top):
    """The linear program of a box of phases."""
    weights, shifts, sizes, last = net.weights, net.shifts, net.sizes, net.last
    layers = len(sizes) - 1
    units = 0
    for k in range(layers):
        units += sizes[k + 1]
    most = sizes[0] + units
    rows, sides = np.zeros((3 * units, most)), np.zeros(3 * units)
    ends_low, ends_high = np.zeros(most), np.zeros(most)
    ends_low[: sizes[0]], ends_high[: sizes[0]] = region.low, region.high
    place = np.full(phases.shape, -1)
    forms, offsets = np.zeros((sizes[0], most)), np.zeros(sizes[0])
    for j in range(sizes[0]):
        forms[j, j] = 1.0
    n, m = sizes[0], 0
    for k in range(layers):
        following, heights = np.zeros((sizes[k + 1], most)), np.zeros(sizes[k + 1])
        for i in range(sizes[k + 1]):
            final = k == layers - 1
            if (top[k, i] <= 0.0 and phases[k, i] == 0) or (final and last[i] == 0.0 and phases[k, i] == 0):
                continue
            total, height = np.zeros(most), shifts[k, i]
            for j in range(sizes[k]):
                factor = weights[k, i, j]
                if factor != 0.0:
                    height += factor * offsets[j]
                    for c in range(n):
                        total[c] += factor * forms[j, c]
            if phases[k, i] < 0:
                rows[m], sides[m] = total, -height
                m += 1
                continue
            if phases[k, i] > 0:
                rows[m], sides[m] = -total, height
                m += 1
            if phases[k, i] > 0 or bottom[k, i] >= 0.0:
                following[i], heights[i] = total, height
                continue
            lower, upper = bottom[k, i], top[k, i]
            ends_high[n] = upper
            place[k, i] = n
            if not final or last[i] > 0:
                rows[m], sides[m] = total, -height
                rows[m, n] -= 1.0
                m += 1
            if not final or last[i] < 0:
                slope = upper / (upper - lower)
                rows[m], sides[m] = -slope * total, slope * (height - lower)
                rows[m, n] += 1.0
                m += 1
            following[i, n] = 1.0
            n += 1
        forms, offsets = following, heights
    cost, rest = np.zeros(most), net.constant
    for i in range(sizes[layers]):
        rest += last[i] * offsets[i]
        for c in range(n):
            cost[c] += last[i] * forms[i, c]
    return Program(
        cost[:n].copy(),
        rest,
        rows[:m, :n].copy(),
        sides[:m].copy(),
        ends_low[:n].copy(),
        ends_high[:n].copy(),
        place,
    )


@njit(cache=True)
def _over_ball(size, program, multipliers, radius, slope):
    """A lower bound on a program whose first ``size`` columns lie in a ball, from multipliers >= 0 of its first rows.

    ``slope`` takes the cost with these rows added, which is least over the ball where it points away from.
    """
    cost, rows, sides = program.cost, program.rows, program.sides
    total, norm = 0.0, 0.0
    slope[:] = cost
    for r in range(len(multipliers)):
        if multipliers[r] > 0.0:
            total -= multipliers[r] * sides[r]
            slope += multipliers[r] * rows[r]
    for c in range(size, len(cost)):
        total += slope[c] * (program.low[c] if slope[c] > 0.0 else program.high[c])
    for j in range(size):
        norm += slope[j] ** 2
    return total - radius * np.sqrt(norm)


@njit(cache=True)
def _climbed(size, program, goal, radius, slope):
    """``_over_ball`` by multipliers that climb one by one, each to where the dual is level, until above ``goal``.

    A row has one column at most that is no move. Infinite where there is no point.
    """
    rows, sides, low, high = program.rows, program.sides, program.low, program.high
    multipliers, known = np.zeros(len(sides)), -np.inf
    slope[:] = program.cost
    for _ in range(SWEEPS):
        for r in range(len(sides)):
            square, along = np.sum(rows[r, :size] ** 2), np.sum(rows[r, :size] * slope[:size])
            if square == 0.0:
                continue
            other, factor = -1, 0.0
            for c in range(size, len(slope)):
                if rows[r, c] != 0.0:
                    other, factor = c, rows[r, c]
            if sides[r] <= min(factor * low[other], factor * high[other]) - radius * np.sqrt(square):
                return np.inf  # no point of the ball keeps the row
            # The dual's derivative in this multiplier, changed by t, falls with t: bisect its sign.
            rest = np.sum(slope[:size] ** 2)
            bottom, top = -multipliers[r], HUGE
            for _ in range(BISECTIONS):
                t = (bottom + top) / 2
                norm = np.sqrt(max(rest + t * (2 * along + square * t), 0.0))
                end = factor * (low[other] if slope[other] + t * factor > 0.0 else high[other])
                if norm > 0.0 and end - radius * (along + square * t) / norm > sides[r]:
                    bottom = t
                else:
                    top = t
            multipliers[r] += bottom
            slope += bottom * rows[r]
        bound = _over_ball(size, program, multipliers, radius, slope)
        if bound > goal or bound <= known + MULTIPLIERS_GAIN * (1.0 + abs(bound)):
            return max(bound, known)
        known = bound
    return known


@njit(cache=True)
def attack(net, region, stack, depth, nodes, moves):
    """Search up to ``nodes`` boxes of phases for a point whose margin is at most 0, which is left in ``moves``.

    Parameters
    ----------
    stack, depth
        The open boxes, shape (boxes, layers, units), and their number, shape (1,).
    """
    net, region = Layers(*net), Region(*region)
    weights, shifts, sizes, last = net.weights, net.shifts, net.sizes, net.last
    radius, euclidean = region.radius, region.euclidean
    layers = len(sizes) - 1
    bottom, top = np.zeros(shifts.shape), np.zeros(shifts.shape)
    phases = np.zeros(shifts.shape, np.int8)
    size = sizes[0]
    scale = 1.0 + abs(net.constant)
    cut_off = region.low.max() > -radius or region.high.min() < radius  # limits take points off the ball
    for _ in range(nodes):
        if depth[0] == 0:
            return PROVEN
        depth[0] -= 1
        phases[:] = stack[depth[0]]
        if not bounds(net, region, phases, bottom, top):
            continue
        program = _relax(net, region, phases, bottom, top)
        cost, rest, rows, sides, place = program.cost, program.constant, program.rows, program.sides, program.place
        slope, single = np.zeros(len(cost)), euclidean and layers == 1 and len(cost) > size and not cut_off
        if euclidean and (single or len(cost) == size):
            goal = MARGIN_PROVEN * scale - rest
            if _climbed(size, program, goal, radius, slope) > goal:
                continue
            trial = -radius * slope[:size] / max(np.sqrt(np.sum(slope[:size] ** 2)), MARGIN_PROVEN)
            trial = np.minimum(np.maximum(trial, region.low), region.high)
            if forward(net, trial) <= 0.0:
                moves[:] = trial
                return VIOLATED
        closed = False
        point, excess, first = np.zeros(len(cost)), 0.0, len(sides)  # of the rows, those from ``first`` on are planes
        if single:  # no planes: the line of each unit of negative weight, where the bound's moves take it
            point[:size], excess = trial, np.inf
            for i in range(sizes[1]):
                if place[0, i] >= 0 and last[i] < 0:
                    total = shifts[0, i] + np.sum(weights[0, i, :size] * trial)
                    point[place[0, i]] = top[0, i] * (total - bottom[0, i]) / (top[0, i] - bottom[0, i])
        for _plane in range(0 if single else PLANES if euclidean else 1):
            status, bound, point, multipliers = minimum(cost, rows, sides, program.low, program.high)
            slope = np.zeros(len(cost))
            if euclidean and status != INFEASIBLE:
                known = multipliers[:first]
                bound = max(bound, _over_ball(size, program, known, radius, slope))
            if status == INFEASIBLE or bound + rest > MARGIN_PROVEN * scale:
                closed = True
                break
            norm = np.sqrt(np.sum(point[:size] ** 2)) if euclidean else 0.0
            excess = norm / radius - 1.0 if euclidean and radius > 0 else 0.0
            shrink = 1.0 / (1.0 + excess) if excess > 0.0 else 1.0
            trial = point[:size] * shrink
            if forward(net, trial) <= 0.0:
                moves[:] = trial
                return VIOLATED
            if excess <= NORM_ROUNDING:
                break
            # Planes that touch the ball where the point is, and where the rows' sum is least.
            steep = np.sqrt(np.sum(slope[:size] ** 2))
            ahead = -slope[:size] / steep if steep > 0.0 else point[:size] / norm
            touching = np.minimum(np.maximum(radius * ahead, region.low), region.high)
            if forward(net, touching) <= 0.0:
                moves[:] = touching
                return VIOLATED
            cut = np.zeros((len(sides) + 2, len(cost)))
            cut[:-2] = rows
            cut[-2, :size], cut[-1, :size] = point[:size] / norm, ahead
            rows = cut
            sides = np.append(sides, np.array([radius, radius]))
        if closed:
            continue
        # Branch on the open unit whose relaxed value is the most wrong.
        where, unit, widest, right = -1, -1, UNIT_EXACT, True
        values = point[:size].copy()
        for k in range(layers):
            following = np.zeros(sizes[k + 1])
            for i in range(sizes[k + 1]):
                total = shifts[k, i]
                for j in range(sizes[k]):
                    total += weights[k, i, j] * values[j]
                following[i] = max(total, 0.0)
                if place[k, i] < 0:
                    continue
                relaxed = point[place[k, i]]
                influence = 0.0
                if k == layers - 1:
                    influence = abs(last[i])
                else:
                    for u in range(sizes[k + 2]):
                        influence += abs(weights[k + 1, u, i])
                error = abs(relaxed - following[i]) * influence
                if k == layers - 1 and last[i] > 0:
                    error = 0.0
                if error > widest:
                    where, unit, widest, right = k, i, error, total > 0
                following[i] = relaxed
            values = following
        if where < 0:  # nothing to branch on, and neither a proof nor a point: never taken for done
            if (
                euclidean and excess > NORM_ROUNDING
            ):  # planes are too slow: down to one cell, units whose rows are exact last
                for exact in (False, True):
                    for k in range(layers):
                        for i in range(sizes[k + 1]):
                            if where < 0 and place[k, i] >= 0 and exact == (k == layers - 1 and last[i] > 0):
                                where, unit = k, i
            if where < 0:
                return OPEN
        if depth[0] + 2 > len(stack):
            return OPEN
        for sign in (-1, 1) if right else (1, -1):
            phases[where, unit] = sign
            stack[depth[0]] = phases
            depth[0] += 1
    return MORE if depth[0] else PROVEN
