"""Compiled kernels of the robust search on ReLU networks: affine bounds of the margin, and the program of one node.

A *scenario* is a perturbation s. At a node, where each unit's sum a lies within known bounds, the margin at x + s is at
most an affine function of x: a unit of positive weight lies below the line over its bounds, one of negative weight
above either of its two pieces, of which the one that is active at a point is taken. Each such function has to reach the
margin: a row of a linear program in x alone.

The adversary, ``worst``, turns the signs: at a box of phases the margin at x + s is at *least* such functions of s, and
the least value that all of them allow is found by a linear program in s alone, function by function.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit
from harness.solvers.simplex import INFEASIBLE, minimum

EMPTY, BEYOND, CANDIDATE, BRANCH = 0, 1, 2, 3
VIOLATED, PROVEN, MORE, OPEN = 0, 1, 2, 3  # what the adversary returns
L1, LINF, L2 = 0, 1, 2  # norms
POSITIVE = 1e-11  # a bound on the margin above this, relative to 1 + its constant, proves that it is positive
ROUND = 1e-9  # relative excess of a norm that needs no further plane
ROWS = 400
ROUNDS = 60  # of rows for one node
MISSED = 1e-9  # violation of a row that is accepted
TIGHT = 1e-6  # slack up to which a row is added at the start of a node
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of a unit's weights that all rows together are added with
RISE = 0.02  # share of the budget that a bound has to rise by for bounds of sums to be improved again
SAFE = 1e-9  # for rounding
ROOMY = 1e-7  # relative, beyond the budget: rounding makes no program empty
SWEEPS, CLIMB = 1000, 1e-13  # of multipliers over a ball, and what each sweep has to gain
STEPS = 6  # of the quick adversary
TURNS = 150  # of functions for one box of phases of the exact one


@njit(cache=True)
def sums(point, weights, shifts, sizes, out):
    """The sum of every unit at a point, into ``out``, shape (layers, units); returns the values of the last layer."""
    for i in range(sizes[1]):
        total = shifts[0, i]
        for j in range(sizes[0]):
            total += weights[0, i, j] * point[j]
        out[0, i] = total
    return later(weights, shifts, sizes, out)


@njit(cache=True)
def later(weights, shifts, sizes, out):
    """``sums`` of the layers after the first, whose own are in ``out`` already."""
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
def lift(move, weights, sizes, out):
    """What a perturbation adds to the sums of the first layer."""
    for i in range(sizes[1]):
        total = 0.0
        for j in range(sizes[0]):
            total += weights[0, i, j] * move[j]
        out[i] = total


@njit(cache=True)
def above(form, constant, layer, active, bottom, top, weights, shifts, sizes, gaps):
    """An affine function of the inputs that is at least ``form`` of the outputs of ``layer`` units, tight at a point.

    ``form`` is overwritten with its slopes; returns its constant. ``active`` are the sums at the point, ``gaps`` takes
    what each unit's line lies too high there.
    """
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
def greatest(form, size, low, high, budget, norm):
    """The greatest value of a form of the moves within their ends and the budget, in units of distance."""
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
def bounds(
    origin, move, lifted, low, high, budget, norm, first_low, first_high, phases, weights, shifts, sizes, bottom, top
):  # fmt: skip
    """Bounds of every sum at x + ``move``, x within the node, ``lifted`` by it in the first layer; False: no such x."""
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
                    value = above(form, sign * shifts[k, i], k, active, bottom, top, weights, shifts, sizes, spare)
                    for j in range(sizes[0]):
                        value += form[j] * (origin[j] + move[j])
                    value += greatest(form, sizes[0], low, high, budget, norm)
                    if side == 0:
                        top[k, i] = value
                    else:
                        bottom[k, i] = -value
                if phases[k, i] > 0:
                    bottom[k, i] = max(bottom[k, i], 0.0)
                elif phases[k, i] < 0:
                    top[k, i] = min(top[k, i], 0.0)
            if bottom[k, i] > top[k, i] + MISSED:
                return False
    return True


@njit(cache=True)
def quick(point, radius, euclidean, moving, weights, shifts, sizes, last, constant, move):
    """Follow the margin's slope downhill from a point within the ball; returns the least margin met, at ``move``."""
    size = sizes[0]
    active, spare = np.zeros(shifts.shape), np.zeros(shifts.shape)
    trial, best = np.zeros(size), np.inf
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    exact = np.zeros(shifts.shape)
    for _ in range(STEPS):
        values = sums(point + trial, weights, shifts, sizes, active)
        total = constant
        for i in range(len(values)):
            total += last[i] * values[i]
        if total >= best - 1e-12:
            break
        best = total
        move[:] = trial
        for i in range(len(last)):
            form[i] = last[i]
        for k in range(len(sizes) - 1):
            for i in range(sizes[k + 1]):
                exact[k, i] = 1.0 if active[k, i] > 0 else -1.0
        above(form, 0.0, len(sizes) - 1, active, exact, exact, weights, shifts, sizes, spare)
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
def _row(form, height, need, room, origin, point, move, rows, sides, m, size):
    """Add the row that an affine function of x + ``move`` reaches ``need`` unless it does by ``room``; 1 if so."""
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
def tighten(
    origin, low, high, budget, norm, rows, sides, multipliers, first, weights, shifts, sizes, bottom, top
):  # fmt: skip
    """Bounds of the first layer's sums, improved by a combination of a program's rows from ``first`` on.

    Weighted by their multipliers they are one inequality in x, which every point keeps: the greatest sum is at most
    that of the sum plus any multiple of the inequality's slack.
    """
    size = sizes[0]
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
    for i in range(sizes[1]):
        here, largest = shifts[0, i], 0.0
        for j in range(size):
            here += weights[0, i, j] * origin[j]
            largest = max(largest, abs(weights[0, i, j]))
        for share in SHARES:
            factor = share * largest / steepest
            for sign in (1.0, -1.0):
                for j in range(size):
                    form[j] = sign * weights[0, i, j] + factor * slope[j]
                end = greatest(form, size, low, high, budget, norm) - factor * need + SAFE * (1.0 + abs(factor * need))
                if sign > 0:
                    top[i] = min(top[i], here + end)
                else:
                    bottom[i] = max(bottom[i], here - end)


@njit(cache=True)
def node(
    origin, low, high, budget, norm, first_low, first_high, cut_low, cut_high, phases, moves, lifted, count, radius,
    euclidean, moving, weights, shifts, sizes, last, constant, margin, enough, point, scenario, excess,
):  # fmt: skip
    """Solve the program of a node, finding scenarios on the way. Returns a code and a lower bound on the distance.

    Parameters
    ----------
    origin, low, high
        The factual, and how far each number may move down (<= 0) and up; all in scaled units.
    budget
        The distance from which on no solution is of use; ``enough``: by how much it has to be undercut.
    norm
        Of distances: ``L1`` or ``LINF``.
    first_low, first_high
        Bounds of the sums of the first layer at x; ``cut_low``, ``cut_high`` those that the node decided, or infinite.
    phases
        Of each scenario's later units: 1 on, -1 off, 0 open; shape (scenarios, layers, units).
    moves, lifted, count
        The scenarios, and what each adds to the first layer's sums; how many there are, and how many are lifted, shape
        (2,). New ones are added.
    point
        Where the first rows are made, best at the solution of the parent node; takes the solution.
    scenario, excess
        Take the scenario to branch on, shape (1,), and what each of its units' lines lies too high, (layers, units).
    """
    size, layers = sizes[0], len(sizes) - 1
    chebyshev = norm == LINF
    columns = 2 * size + (1 if chebyshev else 0)
    cost, ends_low, ends_high = np.zeros(columns), np.zeros(columns), np.empty(columns)
    rows, sides = np.zeros((ROWS, columns)), np.zeros(ROWS)
    m, most = 0, budget + ROOMY * (1.0 + budget)
    for j in range(size):
        ends_high[j], ends_high[size + j] = min(high[j], most), min(-low[j], most)
        cost[j] = cost[size + j] = 0.0 if chebyshev else 1.0
    if chebyshev:
        cost[2 * size], ends_high[2 * size] = 1.0, most
        for j in range(size):
            rows[m, j], rows[m, size + j], rows[m, 2 * size] = 1.0, 1.0, -1.0
            m += 1
    here, added = np.empty(sizes[1]), np.zeros((2, sizes[1]), np.bool_)
    capacity = len(moves)
    bottom, top = np.zeros((capacity, *shifts.shape)), np.zeros((capacity, *shifts.shape))
    ready, decided = np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)
    for s in range(count[0]):
        for k in range(1, layers):
            for i in range(sizes[k + 1]):
                decided[s] |= phases[s, k, i] != 0
    known = 0
    active, gaps = np.zeros(shifts.shape), np.zeros(shifts.shape)
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    fresh, true = np.zeros(size), np.zeros(capacity)
    bound, tightened = 0.0, 0.0
    for turn in range(ROUNDS):
        room = TIGHT if turn == 0 else -MISSED
        while count[1] < count[0]:
            lift(moves[count[1]], weights, sizes, lifted[count[1]])
            count[1] += 1
        known = count[0]
        before = m
        sums(point, weights, shifts, sizes, active)
        here[:] = active[0, : sizes[1]]
        for i in range(sizes[1]):
            for side in range(2):
                sign, end = (1.0, cut_low[i]) if side == 0 else (-1.0, -cut_high[i])
                if added[side, i] or sign * here[i] >= end + room or m >= ROWS:
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
            values = later(weights, shifts, sizes, active)
            total = constant
            for i in range(len(values)):
                total += last[i] * values[i]
            true[s] = total
            if total >= margin + room and not decided[s]:
                continue
            if not ready[s]:
                ready[s] = True
                if not bounds(
                    origin, moves[s], lifted[s], low, high, budget, norm, first_low, first_high, phases[s], weights,
                    shifts, sizes, bottom[s], top[s],
                ):  # fmt: skip
                    return EMPTY, np.inf
            if total < margin + room:
                for j in range(sizes[layers]):
                    form[j] = last[j]
                height = above(form, constant, layers, active, bottom[s], top[s], weights, shifts, sizes, gaps)
                m += _row(form, height, margin, room, origin, point, moves[s], rows, sides, m, size)
            for k in range(1, layers):
                for i in range(sizes[k + 1]):
                    if phases[s, k, i] == 0:
                        continue
                    sign = float(phases[s, k, i])
                    for j in range(sizes[k]):
                        form[j] = sign * weights[k, i, j]
                    height = above(
                        form, sign * shifts[k, i], k, active, bottom[s], top[s], weights, shifts, sizes, gaps
                    )
                    m += _row(form, height, 0.0, room, origin, point, moves[s], rows, sides, m, size)
        if m == before and turn > 0:
            worst = 0
            for s in range(known):
                if true[s] < true[worst]:
                    worst = s
            met = quick(point, radius, euclidean, moving, weights, shifts, sizes, last, constant, fresh)
            if met < margin - 2 * MISSED and met < true[worst] - MISSED and count[0] < capacity:
                moves[count[0]] = fresh
                count[0] += 1
                continue
            if true[worst] >= margin - 2 * MISSED:
                return CANDIDATE, bound
            break
        if m >= ROWS:
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
            tighten(
                origin, low, high, budget, norm, rows, sides, multipliers, size if chebyshev else 0, weights, shifts,
                sizes, first_low, first_high,
            )  # fmt: skip
            ready[:] = False
    # To be branched on where the lines of the most violated scenario lie too high.
    worst = 0
    for s in range(known):
        if true[s] < true[worst]:
            worst = s
    if not ready[worst] and not bounds(
        origin, moves[worst], lifted[worst], low, high, budget, norm, first_low, first_high, phases[worst], weights,
        shifts, sizes, bottom[worst], top[worst],
    ):  # fmt: skip
        return EMPTY, np.inf
    for i in range(sizes[1]):
        active[0, i] = here[i] + lifted[worst, i]
    later(weights, shifts, sizes, active)
    for j in range(sizes[layers]):
        form[j] = last[j]
    excess[:] = 0.0
    above(form, constant, layers, active, bottom[worst], top[worst], weights, shifts, sizes, excess)
    scenario[0] = worst
    return BRANCH, bound


@njit(cache=True)
def reached(origin, low, high, budget, norm, weights, shifts, sizes, bottom, top):
    """Bounds of the first layer's sums at x, within the ends and the budget."""
    form = np.empty(sizes[0])
    for i in range(sizes[1]):
        here = shifts[0, i]
        for j in range(sizes[0]):
            here += weights[0, i, j] * origin[j]
        for j in range(sizes[0]):
            form[j] = weights[0, i, j]
        top[i] = here + greatest(form, sizes[0], low, high, budget, norm)
        for j in range(sizes[0]):
            form[j] = -form[j]
        bottom[i] = here - greatest(form, sizes[0], low, high, budget, norm)


@njit(cache=True)
def _least_in_ball(form, constant, rows, sides, m, size, moving, radius, move):
    """A lower bound on an affine function over a ball cut by rows, and the point in the ball that it belongs to.

    The multipliers of the rows climb the dual one at a time, each by a closed formula. Infinite where a row excludes
    the ball.
    """
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
            if share > 1.0 + ROUND:
                return np.inf
            new = 0.0
            if share > -1.0:
                share = min(share, 1.0 - ROUND)
                across = np.sqrt(max(norm - along * along / square, 0.0))
                new = max(across * share / np.sqrt(1.0 - share * share) / length - along / square, 0.0)
            step = new - multipliers[r]
            if step != 0.0:
                multipliers[r] = new
                total += step * sides[r]
                for j in range(size):
                    if moving[j]:
                        slope[j] += step * rows[r, j]
        length = np.sqrt(np.sum(slope * slope))
        value = constant - total - radius * length
        for j in range(size):
            move[j] = -radius * slope[j] / length if length > 0.0 else 0.0
        if value <= bound + CLIMB * (1.0 + abs(bound)):
            return max(value, bound)
        bound = value
    return bound


@njit(cache=True)
def worst(stack, depth, point, radius, euclidean, moving, weights, shifts, sizes, last, constant, need, nodes, move):
    """Look at up to ``nodes`` boxes of phases for a perturbation with a margin of at most ``need``, left in ``move``.

    Parameters
    ----------
    stack, depth
        The open boxes, shape (boxes, layers, units), and their number, shape (1,): to begin with one, all open.
    point
        x, scaled.
    radius, euclidean, moving
        The perturbations: of which norm, and which numbers they move.
    need
        At least 0, and less than the margin asked of x: perturbations with a margin in between count as violations, so
        that no proof has to tell a margin from 0.

    Returns
    -------
    ``VIOLATED``; ``PROVEN``, that all margins are above 0; ``MORE``, to be asked again; ``OPEN``, that rounding leaves
    it undecided.
    """
    layers, size = len(sizes) - 1, sizes[0]
    norm = L2 if euclidean else LINF
    low, high, still, unlifted = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(sizes[1])
    for j in range(size):
        if moving[j]:
            low[j], high[j] = -radius, radius
    first_low, first_high = np.empty(sizes[1]), np.empty(sizes[1])
    near_low, near_high = np.empty(sizes[1]), np.empty(sizes[1])
    reached(point, low, high, radius, norm, weights, shifts, sizes, first_low, first_high)
    bottom, top = np.zeros(shifts.shape), np.zeros(shifts.shape)
    active, gaps = np.zeros(shifts.shape), np.zeros(shifts.shape)
    phases = np.zeros(shifts.shape, np.int8)
    form = np.empty(max(weights.shape[1], weights.shape[2]))
    cost, ends_low, ends_high = np.zeros(size + 1), np.empty(size + 1), np.empty(size + 1)
    cost[size] = 1.0
    ends_low[:size], ends_high[:size] = low, high
    rows, sides, planes = np.zeros((ROWS, size + 1)), np.zeros(ROWS), np.zeros(ROWS, np.bool_)
    proven = POSITIVE * (1.0 + abs(constant))
    for _ in range(nodes):
        if depth[0] == 0:
            return PROVEN
        depth[0] -= 1
        phases[:] = stack[depth[0]]
        for i in range(sizes[1]):
            near_low[i] = max(first_low[i], 0.0) if phases[0, i] > 0 else first_low[i]
            near_high[i] = min(first_high[i], 0.0) if phases[0, i] < 0 else first_high[i]
        if not bounds(
            point, still, unlifted, low, high, radius, norm, near_low, near_high, phases, weights, shifts, sizes,
            bottom, top,
        ):  # fmt: skip
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
        if euclidean:
            open_units, last_row = 0, m
            for k in range(layers):
                for i in range(sizes[k + 1]):
                    if phases[k, i] == 0:
                        open_units += 1 if bottom[k, i] < 0.0 < top[k, i] else 0
                    elif k > 0:
                        sign = float(phases[k, i])
                        for j in range(sizes[k]):
                            form[j] = sign * weights[k, i, j]
                        height = above(form, sign * shifts[k, i], k, active, bottom, top, weights, shifts, sizes, gaps)
                        for j in range(size):
                            rows[last_row, j] = -form[j]
                            height += form[j] * point[j]
                        sides[last_row] = height
                        last_row += 1
            if open_units == 0:  # one affine function, on one cell: no planes
                for i in range(sizes[layers]):
                    form[i] = last[i]
                height = above(form, constant, layers, active, bottom, top, weights, shifts, sizes, gaps)
                for j in range(size):
                    height += form[j] * point[j]
                if _least_in_ball(form, height, rows, sides, last_row, size, moving, radius, move) > proven:
                    continue
                values = sums(point + move, weights, shifts, sizes, active)
                total = constant
                for i in range(len(values)):
                    total += last[i] * values[i]
                if total <= need:
                    return VIOLATED
        s, value, ahead = np.zeros(size), -np.inf, np.zeros(size)
        most = 0.0
        for i in range(sizes[layers]):
            most += abs(last[i]) * max(top[layers - 1, i], 0.0)
        ends_low[size], ends_high[size] = -most - abs(constant) - 1.0, most + abs(constant) + 1.0
        for _turn in range(TURNS):
            excess = np.sqrt(np.sum(s * s)) / radius - 1.0 if euclidean and radius > 0.0 else 0.0
            before = m
            for turn in range(2 if euclidean else 1):
                # Where the solution is, pulled back to the ball, and where the ball is worst for the sum of functions.
                trial = ahead if turn else s / (1.0 + excess) if excess > 0.0 else s
                values = sums(point + trial, weights, shifts, sizes, active)
                total = constant
                for i in range(len(values)):
                    total += last[i] * values[i]
                if total <= need:
                    move[:] = trial
                    return VIOLATED
                if turn == 0 and excess > 0.0:
                    sums(point + s, weights, shifts, sizes, active)
                here, there = (ahead, -np.inf) if turn else (s, value)
                for i in range(sizes[layers]):
                    form[i] = -last[i]
                height = above(form, -constant, layers, active, bottom, top, weights, shifts, sizes, gaps)
                m = _beneath(form, height, 1.0, there, point, here, rows, sides, planes, m, size)
                for k in range(1, layers):
                    for i in range(sizes[k + 1]):
                        if phases[k, i] == 0:
                            continue
                        sign = float(phases[k, i])
                        for j in range(sizes[k]):
                            form[j] = sign * weights[k, i, j]
                        height = above(form, sign * shifts[k, i], k, active, bottom, top, weights, shifts, sizes, gaps)
                        m = _beneath(form, height, 0.0, 0.0, point, here, rows, sides, planes, m, size)
                if turn == 0 and m == before and excess <= ROUND:
                    break
                length = np.sqrt(np.sum(here * here))
                if euclidean and length > 0.0 and m < ROWS:
                    rows[m, :size], rows[m, size], sides[m], planes[m] = here / length, 0.0, radius, True
                    m += 1
            if (m == before and excess <= ROUND) or m >= ROWS:
                break
            status, least, solution, multipliers = minimum(cost, rows[:m].copy(), sides[:m].copy(), ends_low, ends_high)
            if euclidean and status != INFEASIBLE:
                bound = _worst_in_ball(rows, sides, planes, multipliers, m, size, moving, radius, ahead)
                least = max(least, bound)
            if status == INFEASIBLE or least > proven:
                closed = True
                break
            s, value = solution[:size].copy(), solution[size]
        if closed:
            continue
        # Branch on the unit whose line is the most wrong.
        sums(point + s, weights, shifts, sizes, active)
        for i in range(sizes[layers]):
            form[i] = -last[i]
        above(form, -constant, layers, active, bottom, top, weights, shifts, sizes, gaps)
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
def _beneath(form, height, share, value, point, s, rows, sides, planes, m, size):
    """Add the row ``-(form @ (point + s) + height) <= share * value`` where violated; returns the number of rows."""
    for j in range(size):
        height += form[j] * point[j]
    here = height
    for j in range(size):
        here += form[j] * s[j]
    if -here <= share * value + MISSED or m >= len(sides):
        return m
    for j in range(size):
        rows[m, j] = -form[j]
    rows[m, size], sides[m], planes[m] = -share, height, False
    return m + 1


@njit(cache=True)
def _worst_in_ball(rows, sides, planes, multipliers, m, size, moving, radius, ahead):
    """The least value on a ball of the functions of the rows, weighted by their multipliers, reached at ``ahead``."""
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
