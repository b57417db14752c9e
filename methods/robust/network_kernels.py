"""Compiled kernels of the robust search on ReLU networks: affine bounds of the margin, and the program of one node.

A *scenario* is a perturbation s. At a node, where each unit's sum a lies within known bounds, the margin at x + s is at
most an affine function of x: a unit of positive weight lies below the line over its bounds, one of negative weight
above either of its two pieces, of which the one that is active at a point is taken. Each such function has to reach the
margin: a row of a linear program in x alone.

The kernels that Python calls for each node or point, ``node``, ``reached``, ``quick``, ``weakest``, ``step`` and
``worst``, take the plain ``tuple`` of a record and give the names back in their first lines: numba recognises a plain
tuple in half the time.

The adversary, ``worst``, turns the signs: at a box of phases the margin at x + s is at *least* such functions of s, and
the least value that all of them allow is found by a linear program in s alone, function by function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import (
    BOUND_ROUNDING,
    BUDGET_ROOM,
    COST_DIGITS,
    MARGIN_PROVEN,
    MULTIPLIER_GAIN,
    NORM_ROUNDING,
    ROW_MISSED,
    ROW_TIGHT,
)
from harness.solvers.simplex import INFEASIBLE, minimum

EMPTY, BEYOND, CANDIDATE, BRANCH = 0, 1, 2, 3
VIOLATED, PROVEN, MORE, OPEN = 0, 1, 2, 3  # what the adversary returns
L1, LINF, L2 = 0, 1, 2  # norms
ROWS, ROWS_EACH = 400, 5  # of the program of a node, and a perturbation's
ROUNDS = 60  # of rows for one node
BOUNDED = 2  # perturbations without decided phases for which bounds are made in one round, the worst first
NEAREST = 60  # perturbations in the program of a descent
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of a unit's weights that all rows together are added with
RISE = 0.02  # share of the budget that a bound has to rise by for bounds of sums to be improved again
SWEEPS = 1000  # of multipliers over a ball
STEPS = 6  # of the quick adversary
TURNS = 150  # of functions for one box of phases of the exact one


class Layers(NamedTuple):
    """A network as a function of the scaled numbers, at a choice of categories: K layers, U units at most in one."""

    weights: np.ndarray  # (K, U, units before or numbers), of each unit's inputs
    shifts: np.ndarray  # (K, U)
    sizes: np.ndarray  # (K + 1,) int64, the numbers, and each layer's units
    last: np.ndarray  # (units,), the margin as a linear form of the last layer
    constant: float


class Reach(NamedTuple):
    """Where a point may be, scaled: so far from ``origin`` in each number, and in all of them together."""

    origin: np.ndarray  # (numbers,), the factual
    low: np.ndarray  # (numbers,), <= 0
    high: np.ndarray  # (numbers,), >= 0
    budget: float  # the distance from which on no point is of use
    norm: int  # of distances: ``L1`` or ``LINF``


class Ball(NamedTuple):
    """The perturbations."""

    radius: float
    euclidean: bool
    moving: np.ndarray  # (numbers,) bool, which ones they move


class Cuts(NamedTuple):
    """Bounds of the first layer's sums at x."""

    first_low: np.ndarray  # (units,), proven
    first_high: np.ndarray  # (units,)
    low: np.ndarray  # (units,), decided by the node, or infinite
    high: np.ndarray  # (units,)


class Known(NamedTuple):
    """The perturbations that are known: P places for them."""

    phases: np.ndarray  # (P, K, U) int8, of each one's later units: 1 on, -1 off, 0 open
    moves: np.ndarray  # (P, numbers), scaled
    lifted: np.ndarray  # (P, units), what each adds to the first layer's sums
    counts: np.ndarray  # (2,) int64, how many there are, and how many are lifted


class Scenario(NamedTuple):
    """One of them."""

    move: np.ndarray  # (numbers,)
    lifted: np.ndarray  # (units,)
    phases: np.ndarray  # (K, U) int8


class Rows(NamedTuple):
    """The rows of a linear program, ``row @ x <= side``."""

    rows: np.ndarray  # (rows, columns)
    sides: np.ndarray  # (rows,)


class Where(NamedTuple):
    """Where a row is made."""

    origin: np.ndarray  # (numbers,), the factual
    move: np.ndarray  # (numbers,), of the scenario
    point: np.ndarray  # (numbers,), the last solution


class Solution(NamedTuple):
    """What ``node`` finds."""

    point: np.ndarray  # (numbers,), where the first rows are made, best at the parent's solution; takes the solution
    scenario: np.ndarray  # (1,) int64, takes the scenario to branch on
    excess: np.ndarray  # (K, U), takes what each of its units' lines lies too high


class Lines(NamedTuple):
    """The rows of the adversary's program, over its moves and the margin."""

    rows: np.ndarray  # (rows, numbers + 1)
    sides: np.ndarray  # (rows,)
    planes: np.ndarray  # (rows,) bool, which of them touch the ball


@njit(cache=True)
def sums(net, point, out):
    """The sum of every unit at a point, into ``out``, shape (layers, units); returns the values of the last layer."""
    weights, shifts, sizes = net.weights, net.shifts, net.sizes
    for i in range(sizes[1]):
        total = shifts[0, i]
        for j in range(sizes[0]):
            total += weights[0, i, j] * point[j]
        out[0, i] = total
    return later(net, out)


@njit(cache=True)
def _margin(net, point, out):
    """The margin at a point, and the sum of every unit into ``out``."""
    values, total = sums(net, point, out), net.constant
    for i in range(len(values)):
        total += net.last[i] * values[i]
    return total


@njit(cache=True)
def later(net, out):
    """``sums`` of the layers after the first, whose own are in ``out`` already."""
    weights, shifts, sizes = net.weights, net.shifts, net.sizes
    values = np.empty(sizes[1])
    for i in range(sizes[1]):
        values[i] = max(out[0, i], 0.0)
    for k in range(1, len(sizes) - 1):
        following = np.empty(sizes[k + 1])
        for i in range(sizes[k + 1]):
            total = shifts[k, i]
            for j in range(sizes[k]):
                total += weights[k, i, j] * values[j]
            out[k, i] = total
            following[i] = max(total, 0.0)
        values = following
    return values


@njit(cache=True)
def lift(net, move, out):
    """What a perturbation adds to the sums of the first layer."""
    weights, sizes = net.weights, net.sizes
    for i in range(sizes[1]):
        total = 0.0
        for j in range(sizes[0]):
            total += weights[0, i, j] * move[j]
        out[i] = total


@njit(cache=True)
def above(net, form, constant, layer, active, bottom, top, gaps):
    """An affine function of the inputs that is at least ``form`` of the outputs of ``layer`` units, tight at a point.

    ``form`` is overwritten with its slopes; returns its constant. ``active`` are the sums at the point, ``gaps`` takes
    what each unit's line lies too high there.
    """
    weights, shifts, sizes = net.weights, net.shifts, net.sizes
    before = np.empty(len(form))
    for p in range(layer - 1, -1, -1):
        for j in range(sizes[p]):
            before[j] = 0.0
        for u in range(sizes[p + 1]):
            factor, lower, upper = form[u], bottom[p, u], top[p, u]
            gaps[p, u] = 0.0
            if factor == 0.0 or upper <= 0.0:
                continue
            if lower < 0.0:
                if factor > 0.0:
                    slope = upper / (upper - lower)
                    gaps[p, u] = factor * (slope * (active[p, u] - lower) - max(active[p, u], 0.0))
                    constant -= factor * slope * lower
                    factor *= slope
                elif active[p, u] <= 0.0:
                    continue
            constant += factor * shifts[p, u]
            for j in range(sizes[p]):
                before[j] += factor * weights[p, u, j]
        for j in range(sizes[p]):
            form[j] = before[j]
    return constant


@njit(cache=True)
def _piece(net, active, form):
    """The margin where every unit keeps to its side: ``form`` takes its slopes; returns its constant."""
    for i in range(len(net.last)):
        form[i] = net.last[i]
    sides = np.where(active > 0.0, 1.0, -1.0)
    return above(net, form, net.constant, len(net.sizes) - 1, active, sides, sides, np.empty(active.shape))


@njit(cache=True)
def greatest(form, reach):
    """The greatest value of a form of the moves within reach, in units of distance."""
    low, high, budget, norm, size = reach.low, reach.high, reach.budget, reach.norm, len(reach.low)
    total, rest = 0.0, budget
    if norm != L1:
        length = 0.0
        for j in range(size):
            total += form[j] * (min(high[j], budget) if form[j] > 0 else max(low[j], -budget))
            if low[j] < 0.0 or high[j] > 0.0:
                length += form[j] * form[j]
        return min(total, budget * np.sqrt(length)) if norm == L2 else total
    used = np.zeros(size, np.bool_)
    while rest > 0.0:
        best, rate = -1, 0.0
        for j in range(size):
            if not used[j] and abs(form[j]) > rate and (high[j] > 0.0 if form[j] > 0 else low[j] < 0.0):
                best, rate = j, abs(form[j])
        if best < 0:
            break
        used[best] = True
        room = min(high[best] if form[best] > 0 else -low[best], rest)
        total += rate * room
        rest -= room
    return total


@njit(cache=True)
def bounds(net, reach, scenario, first_low, first_high, bottom, top):
    """Bounds of every sum at x, within the node, moved by a scenario; False: there is no such x."""
    weights, shifts, sizes, origin = net.weights, net.shifts, net.sizes, reach.origin
    move, lifted, phases = scenario.move, scenario.lifted, scenario.phases
    layers = len(sizes) - 1
    active = np.zeros(shifts.shape)
    spare = np.zeros(shifts.shape)
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    for k in range(layers):
        if k > 0:  # the piece to take for a unit of negative weight: the longer one
            for i in range(sizes[k]):
                active[k - 1, i] = bottom[k - 1, i] + top[k - 1, i]
        for i in range(sizes[k + 1]):
            if k == 0:
                bottom[0, i], top[0, i] = first_low[i] + lifted[i], first_high[i] + lifted[i]
            else:
                for side in range(2):
                    sign = 1.0 - 2.0 * side
                    for j in range(sizes[k]):
                        form[j] = sign * weights[k, i, j]
                    value = above(net, form, sign * shifts[k, i], k, active, bottom, top, spare)
                    for j in range(sizes[0]):
                        value += form[j] * (origin[j] + move[j])
                    value += greatest(form, reach)
                    if side == 0:
                        top[k, i] = value
                    else:
                        bottom[k, i] = -value
                if phases[k, i] > 0:
                    bottom[k, i] = max(bottom[k, i], 0.0)
                elif phases[k, i] < 0:
                    top[k, i] = min(top[k, i], 0.0)
            if bottom[k, i] > top[k, i] + ROW_MISSED:
                return False
    return True


@njit(cache=True)
def quick(net, ball, point, move):
    """Follow the margin's slope downhill within the ball of a point; returns the least margin met, at ``move``.

    It begins at ``move``, in the ball.
    """
    net, ball = Layers(*net), Ball(*ball)
    radius, moving, euclidean = ball.radius, ball.moving, ball.euclidean
    size, active = net.sizes[0], np.zeros(net.shifts.shape)
    trial, best = move.copy(), np.inf
    form = np.empty(max(net.weights.shape[1], net.weights.shape[2]))
    for _ in range(STEPS):
        total = _margin(net, point + trial, active)
        if total >= best - COST_DIGITS:
            break
        best = total
        move[:] = trial
        _piece(net, active, form)
        norm = 0.0
        for j in range(size):
            if moving[j]:
                norm += form[j] * form[j]
        for j in range(size):
            if not moving[j] or norm == 0.0:
                trial[j] = 0.0
            elif euclidean:
                trial[j] = -radius * form[j] / np.sqrt(norm)
            else:
                trial[j] = -radius * np.sign(form[j])
    return best


@njit(cache=True)
def _row(form, height, need, room, at, program, m):
    """Add the row that an affine function of x, moved, reaches ``need`` unless it does by ``room``; 1 if so."""
    origin, move, point, rows, sides = at.origin, at.move, at.point, program.rows, program.sides
    size = len(origin)
    for j in range(size):
        height += form[j] * (origin[j] + move[j])
    here = height
    for j in range(size):
        here += form[j] * (point[j] - origin[j])
    if here >= need + room or m >= len(sides):
        return 0
    for j in range(size):
        rows[m, j], rows[m, size + j] = -form[j], form[j]
    sides[m] = height - need
    return 1


@njit(cache=True)
def tighten(net, reach, program, multipliers, first, bottom, top):
    """Bounds of the first layer's sums, improved by a combination of a program's rows from ``first`` on.

    Weighted by their multipliers they are one inequality in x, which every point keeps: the greatest sum is at most
    that of the sum plus any multiple of the inequality's slack.
    """
    weights, shifts, origin = net.weights, net.shifts, reach.origin
    rows, sides, size = program.rows, program.sides, len(origin)
    slope, need = np.zeros(size), 0.0
    for r in range(first, len(multipliers)):
        if multipliers[r] > 0.0:
            need -= multipliers[r] * sides[r]
            for j in range(size):
                slope[j] -= multipliers[r] * rows[r, j]
    steepest = 0.0
    for j in range(size):
        steepest = max(steepest, abs(slope[j]))
    if steepest <= 0.0:
        return
    form = np.empty(size)
    for i in range(net.sizes[1]):
        here, largest = shifts[0, i], 0.0
        for j in range(size):
            here += weights[0, i, j] * origin[j]
            largest = max(largest, abs(weights[0, i, j]))
        for share in SHARES:
            factor = share * largest / steepest
            for sign in (1.0, -1.0):
                for j in range(size):
                    form[j] = sign * weights[0, i, j] + factor * slope[j]
                end = greatest(form, reach) - factor * need + BOUND_ROUNDING * (1.0 + abs(factor * need))
                if sign > 0:
                    top[i] = min(top[i], here + end)
                else:
                    bottom[i] = max(bottom[i], here - end)


@njit(cache=True)
def _program(size, norm, most, room):
    """The program of a point: its moves up and down, with the Chebyshev distance the longest one, too.

    Returns the costs, the greatest values of the columns, ``most`` for all of them, the rows with room for so many
    more, and their number.
    """
    longest = 1 if norm == LINF else 0
    columns, most_rows = 2 * size + longest, longest * size + room
    cost, high = np.full(columns, 1.0 - longest), np.full(columns, most)
    rows, sides = np.zeros((most_rows, columns)), np.zeros(most_rows)
    if longest:
        cost[2 * size] = 1.0
        for j in range(size):
            rows[j, j], rows[j, size + j], rows[j, 2 * size] = 1.0, 1.0, -1.0
    return cost, high, Rows(rows, sides), longest * size


@njit(cache=True)
def _squeezed(net, origin, program, cost, high, most, cuts):
    """Bounds of the first layer's sums over all rows of a node's program and the budget; False: there is no point."""
    weights, shifts, size, m = net.weights, net.shifts, net.sizes[0], len(program.sides)
    rows, sides = np.empty((m + 1, len(cost))), np.empty(m + 1)
    rows[:m], sides[:m] = program.rows, program.sides
    rows[m], sides[m] = cost, most
    low, form = np.zeros(len(cost)), np.zeros(len(cost))
    for i in range(net.sizes[1]):
        here = shifts[0, i]
        for j in range(size):
            here += weights[0, i, j] * origin[j]
        for sign in (1.0, -1.0):
            for j in range(size):
                form[j], form[size + j] = sign * weights[0, i, j], -sign * weights[0, i, j]
            status, least, _, _ = minimum(form, rows, sides, low, high)
            if status == INFEASIBLE:
                return False
            least -= BOUND_ROUNDING * (1.0 + abs(least))
            if sign > 0:
                cuts.first_low[i] = max(cuts.first_low[i], here + least)
            else:
                cuts.first_high[i] = min(cuts.first_high[i], here - least)
    return True


@njit(cache=True)
def node(net, reach, cuts, scenarios, ball, margin, enough, found):
    """Solve the program of a node, finding scenarios on the way. Returns a code and a lower bound on the distance.

    Bounds of the first layer, scenarios and their number, and ``found``, a ``Solution``, are written. ``enough`` is by
    how much the budget has to be undercut.
    """
    net, reach, cuts, scenarios = Layers(*net), Reach(*reach), Cuts(*cuts), Known(*scenarios)
    ball, found = Ball(*ball), Solution(*found)
    weights, shifts, sizes, last, constant = net.weights, net.shifts, net.sizes, net.last, net.constant
    origin, low, high, budget, norm = reach.origin, reach.low, reach.high, reach.budget, reach.norm
    first_low, first_high, cut_low, cut_high = cuts.first_low, cuts.first_high, cuts.low, cuts.high
    phases, moves, lifted, count = scenarios.phases, scenarios.moves, scenarios.lifted, scenarios.counts
    point, excess = found.point, found.excess
    size, layers = sizes[0], len(sizes) - 1
    most = budget + BUDGET_ROOM * (1.0 + budget)
    cost, ends_high, program, m = _program(size, norm, most, ROWS + ROWS_EACH * count[0])
    rows, sides, ends_low, own_rows = program.rows, program.sides, np.zeros(len(cost)), m
    most_rows = len(sides)
    for j in range(size):
        ends_high[j], ends_high[size + j] = min(high[j], most), min(-low[j], most)
    here, added = np.empty(sizes[1]), np.zeros((2, sizes[1]), np.bool_)
    capacity = len(moves)
    bottom, top = np.zeros((capacity, *shifts.shape)), np.zeros((capacity, *shifts.shape))
    ready, decided, missed = np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)
    for s in range(count[0]):
        for k in range(1, layers):
            for i in range(sizes[k + 1]):
                decided[s] |= phases[s, k, i] != 0
    known = 0
    active, gaps = np.zeros(shifts.shape), np.zeros(shifts.shape)
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    fresh, still, true = np.zeros(size), np.zeros(size), np.zeros(capacity)
    bound, tightened, squeezed = 0.0, 0.0, False
    for turn in range(ROUNDS):
        room = ROW_TIGHT if turn == 0 else -ROW_MISSED
        while count[1] < count[0]:
            lift(net, moves[count[1]], lifted[count[1]])
            count[1] += 1
        known = count[0]
        before = m
        sums(net, point, active)
        here[:] = active[0, : sizes[1]]
        for i in range(sizes[1]):
            for side in range(2):
                sign, end = (1.0, cut_low[i]) if side == 0 else (-1.0, -cut_high[i])
                if added[side, i] or sign * here[i] >= end + room or m >= most_rows:
                    continue
                added[side, i] = True
                sides[m] = sign * here[i] - end
                for j in range(size):
                    rows[m, j], rows[m, size + j] = -sign * weights[0, i, j], sign * weights[0, i, j]
                    sides[m] += sign * weights[0, i, j] * (origin[j] - point[j])
                m += 1
        for s in range(known):
            for i in range(sizes[1]):
                active[0, i] = here[i] + lifted[s, i]
            values = later(net, active)
            true[s] = constant
            for i in range(len(values)):
                true[s] += last[i] * values[i]
            missed[s] = true[s] < margin + room
            if decided[s]:
                for k in range(1, layers):
                    for i in range(sizes[k + 1]):
                        missed[s] |= phases[s, k, i] * active[k, i] < room * abs(phases[s, k, i])
        fresh_bounds = 0
        for s in np.argsort(true[:known]):
            if not missed[s]:
                continue
            if not ready[s]:
                if fresh_bounds >= BOUNDED and not decided[s]:
                    continue
                fresh_bounds += 1
                ready[s] = True
                scenario = Scenario(moves[s], lifted[s], phases[s])
                if not bounds(net, reach, scenario, first_low, first_high, bottom[s], top[s]):
                    return EMPTY, np.inf
            at = Where(origin, moves[s], point)
            for i in range(sizes[1]):
                active[0, i] = here[i] + lifted[s, i]
            later(net, active)
            if true[s] < margin + room:
                for j in range(sizes[layers]):
                    form[j] = last[j]
                height = above(net, form, constant, layers, active, bottom[s], top[s], gaps)
                m += _row(form, height, margin, room, at, program, m)
            for k in range(1, layers):
                for i in range(sizes[k + 1]):
                    if phases[s, k, i] == 0:
                        continue
                    sign = float(phases[s, k, i])
                    for j in range(sizes[k]):
                        form[j] = sign * weights[k, i, j]
                    height = above(net, form, sign * shifts[k, i], k, active, bottom[s], top[s], gaps)
                    m += _row(form, height, 0.0, room, at, program, m)
        if m == before and turn > 0:
            worst = np.argmin(true[:known])
            fresh[:] = 0.0
            met = quick(net, ball, point, fresh)
            if met < margin - 2 * ROW_MISSED and met < true[worst] - ROW_MISSED and count[0] < capacity:
                moves[count[0]] = fresh
                count[0] += 1
                continue
            if true[worst] >= margin - 2 * ROW_MISSED:
                return CANDIDATE, bound
            if squeezed:
                # Bounds from the node above need not follow from the rows of this one, and its lines lean on them.
                for i in range(sizes[1]):
                    for sign, end in ((1.0, first_low[i]), (-1.0, -first_high[i])):
                        for j in range(size):
                            form[j] = sign * weights[0, i, j]
                        held = end - BOUND_ROUNDING * (1.0 + abs(end))
                        m += _row(form, sign * shifts[0, i], held, -ROW_TIGHT, Where(origin, still, point), program, m)
                if m == before:
                    break
            elif not _squeezed(net, origin, Rows(rows[:m], sides[:m]), cost, ends_high, most, cuts):
                return EMPTY, np.inf
            else:
                squeezed = True
                ready[:] = False
                continue
        if m >= most_rows:
            break
        status, value, solution, multipliers = minimum(cost, rows[:m].copy(), sides[:m].copy(), ends_low, ends_high)
        if status == INFEASIBLE:
            return EMPTY, np.inf
        bound = max(bound, value)
        if bound >= budget - enough:
            return BEYOND, bound
        for j in range(size):
            point[j] = origin[j] + solution[j] - solution[size + j]
        if bound > tightened + RISE * budget:
            tightened = bound
            tighten(net, reach, program, multipliers, own_rows, first_low, first_high)
            ready[:] = False
    # To be branched on where the lines of the most violated scenario lie too high.
    worst = np.argmin(true[:known])
    scenario = Scenario(moves[worst], lifted[worst], phases[worst])
    if not ready[worst] and not bounds(net, reach, scenario, first_low, first_high, bottom[worst], top[worst]):
        return EMPTY, np.inf
    for i in range(sizes[1]):
        active[0, i] = here[i] + lifted[worst, i]
    later(net, active)
    for j in range(sizes[layers]):
        form[j] = last[j]
    excess[:] = 0.0
    above(net, form, constant, layers, active, bottom[worst], top[worst], excess)
    found.scenario[0] = worst
    return BRANCH, bound


@njit(cache=True)
def weakest(net, ball, scenarios, point, move):
    """The least margin that ``quick`` finds from no perturbation, or from the worst known one, at ``move``."""
    net, ball, scenarios = Layers(*net), Ball(*ball), Known(*scenarios)
    active, other = np.zeros(net.shifts.shape), np.zeros(len(point))
    lowest, place = np.inf, 0
    for s in range(scenarios.counts[0]):
        here = _margin(net, point + scenarios.moves[s], active)
        if here < lowest:
            lowest, place = here, s
    move[:] = scenarios.moves[place]
    lowest = quick(net, ball, point, move)
    if place:
        here = quick(net, ball, point, other)
        if here < lowest:
            lowest, move[:] = here, other
    return lowest


@njit(cache=True)
def step(net, reach, scenarios, margin, trust, point, out):
    """The cheapest point within ``trust`` of another one, where that one's affine pieces of the margin reach a margin.

    The pieces are those of the perturbations that leave the point the least. The point is left in ``out``; False: there
    is none.
    """
    net, reach, scenarios = Layers(*net), Reach(*reach), Known(*scenarios)
    origin, low, high = reach.origin, reach.low, reach.high
    moves, count, size = scenarios.moves, scenarios.counts[0], net.sizes[0]
    cost, ends_high, program, m = _program(size, reach.norm, reach.budget, NEAREST)
    ends_low = np.zeros(len(cost))
    for j in range(size):
        moved = point[j] - origin[j]
        ends_low[j], ends_high[j] = max(moved - trust, 0.0), max(min(moved + trust, high[j]), 0.0)
        ends_low[size + j], ends_high[size + j] = max(-moved - trust, 0.0), max(min(trust - moved, -low[j]), 0.0)
    active, true = np.zeros(net.shifts.shape), np.zeros(count)
    form = np.empty(max(net.weights.shape[1], net.weights.shape[2]))
    for s in range(count):
        true[s] = _margin(net, point + moves[s], active)
    for s in np.argsort(true)[:NEAREST]:
        sums(net, point + moves[s], active)
        height = _piece(net, active, form)
        m += _row(form, height, margin, np.inf, Where(origin, moves[s], point), program, m)
    rows, sides = program.rows[:m].copy(), program.sides[:m].copy()
    status, _, solution, _ = minimum(cost, rows, sides, ends_low, ends_high)
    if status == INFEASIBLE:
        return False
    for j in range(size):
        out[j] = origin[j] + solution[j] - solution[size + j]
    return True


@njit(cache=True)
def reached(net, reach, bottom, top):
    """Bounds of the first layer's sums at x, within the ends and the budget."""
    net, reach = Layers(*net), Reach(*reach)
    weights, shifts, sizes, origin = net.weights, net.shifts, net.sizes, reach.origin
    form = np.empty(sizes[0])
    for i in range(sizes[1]):
        here = shifts[0, i]
        for j in range(sizes[0]):
            here += weights[0, i, j] * origin[j]
        for j in range(sizes[0]):
            form[j] = weights[0, i, j]
        top[i] = here + greatest(form, reach)
        for j in range(sizes[0]):
            form[j] = -form[j]
        bottom[i] = here - greatest(form, reach)


@njit(cache=True)
def _least_in_ball(form, constant, program, m, most, goal, ball, move):
    """A lower bound on a convex function over a ball cut by rows, and the point in the ball that it belongs to.

    The function is an affine one, plus ``most[r]`` times what ``rows[r] @ move`` exceeds ``sides[r]`` by; a row with an
    infinite ``most`` may not be exceeded. The multipliers of the rows climb the dual one at a time, each by a
    closed formula, until the bound exceeds ``goal``. Infinite where such a row excludes the ball.
    """
    rows, sides, radius, moving = program.rows, program.sides, ball.radius, ball.moving
    size = len(moving)
    slope, multipliers, total = np.zeros(size), np.zeros(m), 0.0
    for j in range(size):
        if moving[j]:
            slope[j] = form[j]
    bound = -np.inf
    for _ in range(SWEEPS):
        for r in range(m):
            square, along, norm = 0.0, 0.0, 0.0
            for j in range(size):
                if moving[j]:
                    square += rows[r, j] ** 2
                    along += rows[r, j] * (slope[j] - multipliers[r] * rows[r, j])
                    norm += (slope[j] - multipliers[r] * rows[r, j]) ** 2
            if square == 0.0:
                if sides[r] < 0.0:
                    return np.inf
                continue
            length = np.sqrt(square)
            share = -sides[r] / (radius * length)
            if share > 1.0 + NORM_ROUNDING and most[r] == np.inf:
                return np.inf
            new = 0.0
            if share >= 1.0 and most[r] < np.inf:
                new = most[r]
            elif share > -1.0:
                share = min(share, 1.0 - NORM_ROUNDING)
                across = np.sqrt(max(norm - along * along / square, 0.0))
                new = max(across * share / np.sqrt(1.0 - share * share) / length - along / square, 0.0)
            step = min(new, most[r]) - multipliers[r]
            if step != 0.0:
                multipliers[r] += step
                total += step * sides[r]
                for j in range(size):
                    if moving[j]:
                        slope[j] += step * rows[r, j]
        length = np.sqrt(np.sum(slope * slope))
        value = constant - total - radius * length
        for j in range(size):
            move[j] = -radius * slope[j] / length if length > 0.0 else 0.0
        if value > goal or value <= bound + MULTIPLIER_GAIN * (1.0 + abs(bound)):
            return max(value, bound)
        bound = value
    return bound


@njit(cache=True)
def worst(net, ball, stack, depth, point, need, nodes, move):
    """Look at up to ``nodes`` boxes of phases for a perturbation with a margin of at most ``need``, left in ``move``.

    Parameters
    ----------
    stack, depth
        The open boxes, shape (boxes, layers, units), and their number, shape (1,): to begin with one, all open.
    point
        x, scaled.
    need
        At least 0, and less than the margin asked of x: perturbations with a margin in between count as violations, so
        that no proof has to tell a margin from 0.

    Returns
    -------
    ``VIOLATED``; ``PROVEN``, that all margins are above 0; ``MORE``, to be asked again; ``OPEN``, that rounding leaves
    it undecided.
    """
    net, ball = Layers(*net), Ball(*ball)
    weights, shifts, sizes, last, constant = net.weights, net.shifts, net.sizes, net.last, net.constant
    radius, euclidean, moving = ball.radius, ball.euclidean, ball.moving
    layers, size = len(sizes) - 1, sizes[0]
    convex = euclidean and layers == 1  # the bound of a box of phases
    low, high, still, unlifted = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(sizes[1])
    for j in range(size):
        if moving[j]:
            low[j], high[j] = -radius, radius
    first_low, first_high = np.empty(sizes[1]), np.empty(sizes[1])
    near_low, near_high = np.empty(sizes[1]), np.empty(sizes[1])
    reach = Reach(point, low, high, radius, L2 if euclidean else LINF)
    reached(net, reach, first_low, first_high)
    bottom, top = np.zeros(shifts.shape), np.zeros(shifts.shape)
    active, gaps = np.zeros(shifts.shape), np.zeros(shifts.shape)
    phases = np.zeros(shifts.shape, np.int8)
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    cost, ends_low, ends_high = np.zeros(size + 1), np.empty(size + 1), np.empty(size + 1)
    cost[size] = 1.0
    ends_low[:size], ends_high[:size] = low, high
    capacity = ROWS + np.sum(sizes[1:])
    rows, sides, planes = np.zeros((capacity, size + 1)), np.zeros(capacity), np.zeros(capacity, np.bool_)
    steepest = np.empty(capacity)  # of each row, what exceeding it costs
    program = Lines(rows, sides, planes)
    still_at = Scenario(still, unlifted, phases)
    proven = MARGIN_PROVEN * (1.0 + abs(constant))
    for _ in range(nodes):
        if depth[0] == 0:
            return PROVEN
        depth[0] -= 1
        phases[:] = stack[depth[0]]
        for i in range(sizes[1]):
            near_low[i] = max(first_low[i], 0.0) if phases[0, i] > 0 else first_low[i]
            near_high[i] = min(first_high[i], 0.0) if phases[0, i] < 0 else first_high[i]
        if not bounds(net, reach, still_at, near_low, near_high, bottom, top):
            continue
        m, closed, excess = 0, False, 0.0
        for i in range(sizes[1]):
            if phases[0, i] != 0:
                sign = float(phases[0, i])
                sides[m] = sign * shifts[0, i]
                for j in range(size):
                    rows[m, j] = -sign * weights[0, i, j]
                    sides[m] += sign * weights[0, i, j] * point[j]
                rows[m, size] = 0.0
                m += 1
        planes[:m] = False
        open_units = 0
        if euclidean:
            last_row = m
            for k in range(layers):
                for i in range(sizes[k + 1]):
                    if phases[k, i] == 0:
                        open_units += 1 if bottom[k, i] < 0.0 < top[k, i] else 0
                    elif k > 0:
                        sign = float(phases[k, i])
                        for j in range(sizes[k]):
                            form[j] = sign * weights[k, i, j]
                        height = above(net, form, sign * shifts[k, i], k, active, bottom, top, gaps)
                        for j in range(size):
                            rows[last_row, j] = -form[j]
                            height += form[j] * point[j]
                        sides[last_row] = height
                        last_row += 1
            if open_units == 0 or convex:  # an affine function on one cell, or a convex one: no planes
                steepest[:last_row] = np.inf
                if convex:
                    for i in range(sizes[1]):
                        active[0, i] = -1.0
                        if phases[0, i] == 0 and last[i] > 0.0 and near_low[i] < 0.0 < near_high[i]:
                            sides[last_row] = -shifts[0, i]
                            for j in range(size):
                                rows[last_row, j] = weights[0, i, j]
                                sides[last_row] -= weights[0, i, j] * point[j]
                            steepest[last_row] = last[i]
                            last_row += 1
                for i in range(sizes[layers]):
                    form[i] = -last[i]
                height = above(net, form, -constant, layers, active, bottom, top, gaps)
                for j in range(size):
                    height += form[j] * point[j]
                if _least_in_ball(-form, -height, program, last_row, steepest, proven, ball, move) > proven:
                    continue
                if _margin(net, point + move, active) <= need:
                    return VIOLATED
        s, value, ahead = np.zeros(size), -np.inf, np.zeros(size)
        if convex:
            s[:] = move
        most = 0.0
        for i in range(sizes[layers]):
            most += abs(last[i]) * max(top[layers - 1, i], 0.0)
        ends_low[size], ends_high[size] = -most - abs(constant) - 1.0, most + abs(constant) + 1.0
        for _turn in range(0 if convex and open_units > 0 else TURNS):
            excess = np.sqrt(np.sum(s * s)) / radius - 1.0 if euclidean and radius > 0.0 else 0.0
            before = m
            for turn in range(2 if euclidean else 1):
                # Where the solution is, pulled back to the ball, and where the ball is worst for the sum of functions.
                trial = ahead if turn else s / (1.0 + excess) if excess > 0.0 else s
                if _margin(net, point + trial, active) <= need:
                    move[:] = trial
                    return VIOLATED
                if turn == 0 and excess > 0.0:
                    sums(net, point + s, active)
                here, there = (ahead, -np.inf) if turn else (s, value)
                for i in range(sizes[layers]):
                    form[i] = -last[i]
                height = above(net, form, -constant, layers, active, bottom, top, gaps)
                m = _beneath(form, height, 1.0, there, point, here, program, m)
                for k in range(1, layers):
                    for i in range(sizes[k + 1]):
                        if phases[k, i] == 0:
                            continue
                        sign = float(phases[k, i])
                        for j in range(sizes[k]):
                            form[j] = sign * weights[k, i, j]
                        height = above(net, form, sign * shifts[k, i], k, active, bottom, top, gaps)
                        m = _beneath(form, height, 0.0, 0.0, point, here, program, m)
                if turn == 0 and m == before and excess <= NORM_ROUNDING:
                    break
                length = np.sqrt(np.sum(here * here))
                if euclidean and length > 0.0 and m < capacity:
                    rows[m, :size], rows[m, size], sides[m], planes[m] = here / length, 0.0, radius, True
                    m += 1
            if (m == before and excess <= NORM_ROUNDING) or m >= capacity:
                break
            status, least, solution, multipliers = minimum(cost, rows[:m].copy(), sides[:m].copy(), ends_low, ends_high)
            if euclidean and status != INFEASIBLE:
                bound = _worst_in_ball(program, multipliers, m, ball, ahead)
                least = max(least, bound)
            if status == INFEASIBLE or least > proven:
                closed = True
                break
            s, value = solution[:size].copy(), solution[size]
        if closed:
            continue
        # Branch on the unit whose line is the most wrong.
        sums(net, point + s, active)
        for i in range(sizes[layers]):
            form[i] = -last[i]
        above(net, form, -constant, layers, active, bottom, top, gaps)
        where, unit, widest, right = -1, -1, 0.0, True
        for k in range(layers):
            for i in range(sizes[k + 1]):
                undecided = phases[k, i] == 0 and bottom[k, i] < 0.0 < top[k, i]
                if undecided and (gaps[k, i] > widest or where < 0):
                    where, unit, widest, right = k, i, gaps[k, i], active[k, i] > 0
        if where < 0 or depth[0] + 2 > len(stack):
            return OPEN  # neither a proof nor a point: never taken for done
        for sign in (-1, 1) if right else (1, -1):
            phases[where, unit] = sign
            stack[depth[0]] = phases
            depth[0] += 1
    return MORE if depth[0] else PROVEN


@njit(cache=True)
def _beneath(form, height, share, value, point, s, program, m):
    """Add the row ``-(form @ (point + s) + height) <= share * value`` where violated; returns the number of rows."""
    rows, sides, planes, size = program.rows, program.sides, program.planes, len(point)
    for j in range(size):
        height += form[j] * point[j]
    here = height
    for j in range(size):
        here += form[j] * s[j]
    if -here <= share * value + ROW_MISSED or m >= len(sides):
        return m
    for j in range(size):
        rows[m, j] = -form[j]
    rows[m, size], sides[m], planes[m] = -share, height, False
    return m + 1


@njit(cache=True)
def _worst_in_ball(program, multipliers, m, ball, ahead):
    """The least value on a ball of the functions of the rows, weighted by their multipliers, reached at ``ahead``."""
    rows, sides, planes, radius, moving = program.rows, program.sides, program.planes, ball.radius, ball.moving
    size = len(moving)
    slope, constant, weight = np.zeros(size), 0.0, 0.0
    for i in range(m):
        if multipliers[i] > 0.0 and not planes[i]:
            constant -= multipliers[i] * sides[i]
            weight -= multipliers[i] * rows[i, size]
            for j in range(size):
                if moving[j]:
                    slope[j] += multipliers[i] * rows[i, j]
    length = np.sqrt(np.sum(slope * slope))
    if weight <= 0.0:
        return -np.inf
    for j in range(size):
        ahead[j] = -radius * slope[j] / length if length > 0.0 else 0.0
    return (constant - radius * length) / weight
