"""Compiled kernels of the search over boxes in a hull: a bounded dual simplex, invalid boxes of a sum of trees.

The program of a box, over m = d + 1 + R rows:

.. math::
    \\min\\; & \\textstyle\\sum_j c^+_j up_j + c^-_j down_j
      + q_j \\big(\\max(up_j - o^+_j, 0)^2 + \\max(down_j - o^-_j, 0)^2\\big) \\\\
    & \\textstyle\\sum_i \\lambda_i p_{ij} - up_j + down_j = \\hat x_j, \\quad \\sum_i \\lambda_i = 1, \\quad
      E\\,(up, down) - s = 0,

all variables bounded. Columns: d ups, d downs, R slacks, then the shares of the points in the working set; where x may
leave the hull at a price, the d ups and d downs that it does so by come before the slacks, with zeros in E. As every
column has two ends, any basis is dual feasible once each other column stands at the end that its reduced cost wants.
No proof rests on the simplex: any multipliers y give the Lagrangian bound of ``lagrange``, squares included.
The arrays, and their shapes, are those of ``records``.

The simplex itself sees tangents of the squares: each up and down is the sum of columns of increasing slope, and the
tangents move towards its solution until that and the bound agree.
"""

from __future__ import annotations

import math

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import (
    COORDINATE_SOLVED,
    COORDINATE_TIE,
    PIVOT,
    REDUCED_COST,
    ROW_MISSED,
    SCORE_TIE,
    SINGULAR,
    WHOLE_BOUND,
)
from methods.hull_search.records import (
    Columns,
    HullPoints,
    LeafArrays,
    MovingNumbers,
    Prices,
    Rows,
    Solution,
)

OPTIMAL, INFEASIBLE, BEYOND, STUCK = 0, 1, 2, 3
REFRESH = 40  # pivots until the inverse is computed anew
ITERATIONS = 2000
BLOCK = 64  # points that are passed over together
ENTER = 8  # points that enter the working set at once
TOUCHES = np.linspace(-1.0, 1.0, 7)  # where tangents touch a square, in widths from the last solution
SHRINK = 0.2  # of the width, from one round of tangents to the next
ROUNDS = 40  # of tangents
AWAY = 1000  # more faces than a box has that a leaf can meet by growing


@njit(cache=True)
def column(j, d, extra, work, out):
    """Column j of the program, into ``out``."""
    rows, ways = extra.shape
    out[:] = 0.0
    if j < ways:
        out[j % d] = -1.0 if j // d % 2 == 0 else 1.0
        for r in range(rows):
            out[d + 1 + r] = extra[r, j]
    elif j < ways + rows:
        out[d + 1 + j - ways] = -1.0
    else:
        for i in range(d):
            out[i] = work[i, j - ways - rows]
        out[d] = 1.0


@njit(cache=True)
def products(y, d, extra, work, used, out):
    """y'A for every column, into ``out``."""
    rows, ways = extra.shape
    for j in range(ways):
        total = -y[j % d] if j // d % 2 == 0 else y[j % d]
        for r in range(rows):
            total += y[d + 1 + r] * extra[r, j]
        out[j] = total
    for r in range(rows):
        out[ways + r] = -y[d + 1 + r]
    first = ways + rows
    part = out[first : first + used]
    part[:] = y[d]
    for i in range(d):
        if y[i] != 0.0:
            value = y[i]
            row = work[i]
            for k in range(used):
                part[k] += value * row[k]


@njit(cache=True)
def supports(y, d, points, corners, enough, values):
    """The greatest y'p of all points, or ``enough`` where that is more; the values above it into ``values``.

    ``corners`` are the least and greatest coordinates of each ``BLOCK`` of points, shape (2, d, blocks): blocks that
    cannot hold more than enough are passed over.
    """
    most = enough
    count = points.shape[1]
    for b in range(corners.shape[2]):
        best = 0.0
        for i in range(d):
            best += y[i] * corners[1 if y[i] > 0.0 else 0, i, b]
        first, last = b * BLOCK, min((b + 1) * BLOCK, count)
        part = values[first:last]
        if best <= enough:
            for k in range(last - first):
                part[k] = -np.inf
            continue
        for k in range(last - first):
            part[k] = 0.0
        for i in range(d):
            if y[i] != 0.0:
                value = y[i]
                row = points[i, first:last]
                for k in range(last - first):
                    part[k] += value * row[k]
        for k in range(last - first):
            most = max(most, part[k])
    return most


@njit(cache=True)
def lowest(slope, square, start, low, high):
    """Where slope t + square max(t - start, 0)² is least between two ends."""
    if slope >= 0.0:
        return low
    return min(max(start - slope / (2.0 * square), low), high) if square > 0.0 else high


@njit(cache=True)
def lagrange(y, columns, lines, most):
    """The Lagrangian bound of multipliers y, where ``most`` is the greatest y'p of all points."""
    cost, square, start, low, high = Columns(*columns)
    origin, extra = Rows(*lines)
    d = len(origin)
    rows, ways = extra.shape
    total = -most
    for i in range(d):
        total += y[i] * origin[i]
    for j in range(ways + rows):
        reduced = cost[j]
        if j < ways:
            reduced -= -y[j % d] if j // d % 2 == 0 else y[j % d]
            for r in range(rows):
                reduced -= y[d + 1 + r] * extra[r, j]
        else:
            reduced += y[d + 1 + j - ways]
        at = lowest(reduced, square[j], start[j], low[j], high[j])
        total += reduced * at + square[j] * max(at - start[j], 0.0) ** 2
    return total


@njit(cache=True)
def invert(basis, d, extra, work, inverse, room):
    """The inverse of a basis; False where it is singular."""
    m = len(basis)
    square = np.empty((m, m))
    for k in range(m):
        column(basis[k], d, extra, work, room)
        square[:, k] = room
    # Gauss-Jordan with partial pivoting: m is a few dozen, and numba's own raises where a basis is singular.
    inverse[:] = 0.0
    for k in range(m):
        inverse[k, k] = 1.0
    for k in range(m):
        p = k
        for i in range(k + 1, m):
            if abs(square[i, k]) > abs(square[p, k]):
                p = i
        if abs(square[p, k]) < SINGULAR:
            return False
        if p != k:
            for c in range(m):
                square[p, c], square[k, c] = square[k, c], square[p, c]
                inverse[p, c], inverse[k, c] = inverse[k, c], inverse[p, c]
        scale = 1.0 / square[k, k]
        for c in range(m):
            square[k, c] *= scale
            inverse[k, c] *= scale
        for i in range(m):
            factor = square[i, k]
            if i != k and factor != 0.0:
                for c in range(m):
                    square[i, c] -= factor * square[k, c]
                    inverse[i, c] -= factor * inverse[k, c]
    return True


@njit(cache=True)
def enter(hull, values, limit, used):
    """Take the points of greatest value above ``limit`` into the working set; returns its size."""
    points, work, members, inside = hull.points, hull.work, hull.members, hull.inside
    best = np.full(ENTER, -1)
    for k in range(len(values)):
        if values[k] <= limit or inside[k]:
            continue
        place = ENTER
        while place > 0 and (best[place - 1] < 0 or values[best[place - 1]] < values[k]):
            place -= 1
        if place < ENTER:
            for e in range(ENTER - 1, place, -1):
                best[e] = best[e - 1]
            best[place] = k
    for k in best:
        if k >= 0 and used < len(members):
            for i in range(work.shape[0]):
                work[i, used] = points[i, k]
            members[used] = k
            inside[k] = True
            used += 1
    return used


@njit(cache=True)
def simplex(hull, used, basis, columns, lines, own, upper):
    """As ``minimum``, with linear costs: the first ``own`` columns are ups and downs, d of each in turn."""
    points, corners, work = hull.points, hull.corners, hull.work
    origin, extra = lines
    cost, none, _, low, high = columns
    d = len(origin)
    rows, ways = extra.shape
    m, fixed = len(basis), ways + rows
    room, y = np.empty(m), np.zeros(m)
    inverse = np.empty((m, m))
    capacity = fixed + len(hull.members)
    reduced, alpha = np.empty(capacity), np.empty(capacity)
    at_high, basic = np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)
    candidates, ratios, slack = np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
    values = np.empty(points.shape[1])
    free = Columns(none, none, none, low, high)
    rest, solution, moves = np.empty(m), np.empty(m), np.zeros(d)
    bound, most = -np.inf, np.inf
    if not invert(basis, d, extra, work, inverse, room):
        for i in range(d):
            basis[i] = i
        basis[d] = fixed
        for r in range(rows):
            basis[d + 1 + r] = ways + r
        invert(basis, d, extra, work, inverse, room)
    for k in range(m):
        basic[basis[k]] = True
    fresh, since = True, 0
    for _ in range(ITERATIONS):
        if fresh:
            y[:] = 0.0
            for k in range(m):
                if basis[k] < fixed and cost[basis[k]] != 0.0:
                    for i in range(m):
                        y[i] += cost[basis[k]] * inverse[k, i]
            products(y, d, extra, work, used, reduced)
            for j in range(fixed + used):
                reduced[j] = (cost[j] if j < fixed else 0.0) - reduced[j]
            fresh = False
        # Other columns at the ends that their reduced costs want, and what the basic ones then are.
        rest[:] = 0.0
        for i in range(d):
            rest[i] = origin[i]
        rest[d] = 1.0
        for j in range(fixed + used):
            if basic[j]:
                continue
            if reduced[j] < -REDUCED_COST:
                at_high[j] = True
            elif reduced[j] > REDUCED_COST:
                at_high[j] = False
            value = (high[j] if at_high[j] else low[j]) if j < fixed else (1.0 if at_high[j] else 0.0)
            if value != 0.0:
                column(j, d, extra, work, room)
                for i in range(m):
                    rest[i] -= value * room[i]
        leaving, worst, short, above = -1, 0.0, 0.0, False
        for k in range(m):
            total, norm, length = 0.0, 0.0, 0.0
            for i in range(m):
                total += inverse[k, i] * rest[i]
                norm += inverse[k, i] * inverse[k, i]
                length += abs(inverse[k, i])
            solution[k] = total
            j = basis[k]
            bottom, top = (low[j], high[j]) if j < fixed else (0.0, 1.0)
            off = max(bottom - total, total - top)
            if off > ROW_MISSED * max(length, 1.0) and off * off / norm > worst:
                leaving, worst, short, above = k, off * off / norm, off, total > top
        if leaving < 0:
            if since:
                if not invert(basis, d, extra, work, inverse, room):
                    break
                since, fresh = 0, True
                continue
            most = supports(y, d, points, corners, -y[d], values)
            bound = max(bound, lagrange(y, columns, lines, most))
            before = used
            if bound < upper:
                # values > -y_d are points whose reduced cost is negative
                used = enter(hull, values, -y[d] + REDUCED_COST, used)
            if used > before:
                fresh = True
                continue
            for j in range(own):
                if not basic[j]:
                    moves[j % d] += (high[j] if at_high[j] else low[j]) * (1.0 if j // d % 2 == 0 else -1.0)
            for k in range(m):
                if basis[k] < own:
                    moves[basis[k] % d] += solution[k] * (1.0 if basis[k] // d % 2 == 0 else -1.0)
            return Solution(BEYOND if bound >= upper else OPTIMAL, bound, moves, y, used, most)
        # The basic column goes to the end it violates: multipliers move along this row of the inverse.
        sign = 1.0 if above else -1.0
        row = sign * inverse[leaving]
        products(row, d, extra, work, used, alpha)
        slope = short
        enough = ROW_MISSED * np.abs(row).sum()  # less is rounding
        entering = -1
        step = np.inf
        # Columns are passed, and flip to their other end, as long as the bound still rises.
        count = 0
        for j in range(fixed + used):
            if basic[j] or (j < fixed and high[j] - low[j] <= 0.0):
                continue
            if (alpha[j] > PIVOT and not at_high[j]) or (alpha[j] < -PIVOT and at_high[j]):
                candidates[count] = j
                ratios[count] = abs(reduced[j]) / abs(alpha[j])
                slack[count] = REDUCED_COST / abs(alpha[j])
                count += 1
        while count > 0:
            step = np.inf
            for c in range(count):
                step = min(step, ratios[c] + slack[c])
            place, largest, lost = -1, 0.0, 0.0
            for c in range(count):
                j = candidates[c]
                if ratios[c] <= step:
                    lost += abs(alpha[j]) * (high[j] - low[j] if j < fixed else 1.0)
                    if abs(alpha[j]) > largest:
                        place, largest = c, abs(alpha[j])
            entering = candidates[place]
            if slope - lost < enough:
                break
            slope -= lost
            kept = 0
            for c in range(count):
                if ratios[c] > step:
                    candidates[kept], ratios[kept], slack[kept] = candidates[c], ratios[c], slack[c]
                    kept += 1
            count = kept
            entering = -1
        if entering < 0:
            # Every column is passed: along this row the bound rises for ever, unless a point left out forbids it.
            most = supports(row, d, points, corners, -row[d], values)
            proof = lagrange(row, free, lines, most)
            if proof > 0.5 * enough:
                return Solution(INFEASIBLE, np.inf, moves, y, used, most)
            before = used
            used = enter(hull, values, -row[d] + PIVOT, used)
            if used > before:
                fresh = True
                continue
            if since:
                if not invert(basis, d, extra, work, inverse, room):
                    break
                since, fresh = 0, True
                continue
            break
        column(entering, d, extra, work, room)
        direction = inverse @ room
        pivot = direction[leaving]
        if abs(pivot) < PIVOT:
            if not since or not invert(basis, d, extra, work, inverse, room):
                break
            since, fresh = 0, True
            continue
        old = basis[leaving]
        theta = max(reduced[entering] / alpha[entering], 0.0)
        for j in range(fixed + used):
            if not basic[j]:
                reduced[j] -= theta * alpha[j]
        reduced[entering] = 0.0
        reduced[old] = -theta * sign
        for i in range(m):
            y[i] += theta * row[i]
        at_high[old] = above
        basic[old], basic[entering] = False, True
        basis[leaving] = entering
        inverse[leaving] /= pivot
        for k in range(m):
            if k != leaving and direction[k] != 0.0:
                inverse[k] -= direction[k] * inverse[leaving]
        since += 1
        if since >= REFRESH:
            if not invert(basis, d, extra, work, inverse, room):
                break
            since, fresh = 0, True
    most = supports(y, d, points, corners, -np.inf, values)
    bound = max(bound, lagrange(y, columns, lines, most))
    return Solution(STUCK, bound, moves, y, used, most)


@njit(cache=True)
def tangents(columns, points, pieces):
    """Divide ups and downs into ``pieces`` with the slopes of tangents at ``points``, shape (pieces, ups and downs).

    Returns
    -------
    What the tangents are below the pieces' costs.
    """
    cost, square, start, low, high = columns
    out_cost, out_low, out_high = pieces.cost, pieces.low, pieces.high
    own = points.shape[1]
    above, last = 0.0, len(points) - 1
    for j in range(own):
        begin = 0.0
        for p in range(last + 1):
            part, end = max(points[p, j] - start[j], 0.0), high[j]
            if p < last:
                after = start[j] + (part + max(points[p + 1, j] - start[j], 0.0)) / 2.0
                end = min(max(after, low[j]), high[j])
            k = p * own + j
            out_cost[k] = cost[j] + 2.0 * square[j] * part
            out_low[k], out_high[k] = (low[j] if p == 0 else 0.0), max(end - begin, 0.0)
            begin = end
        part = max(points[0, j] - start[j], 0.0)
        above += square[j] * part * (part + 2.0 * start[j])
    return above


@njit(cache=True)
def below(at, cost, square, start, points):
    """The cost of a way at which its tangents at ``points`` put it."""
    most = 0.0
    for p in range(len(points)):
        part = max(points[p] - start, 0.0)
        value = square * part * (2.0 * at - part - 2.0 * start)
        most = value if p == 0 else max(most, value)
    return cost * at + most


@njit(cache=True)
def between(at, rest, new, other, columns):
    """The cheapest point from ``at`` to ``new`` in place of ``at``; returns what it costs besides ups and downs.

    ``rest`` and ``other`` are what the two cost besides.
    """
    cost, square, start = columns.cost, columns.square, columns.start
    slope, curve = other - rest, 0.0
    for j in range(len(at)):
        step = new[j] - at[j]
        slope += (cost[j] + 2.0 * square[j] * max(at[j] - start[j], 0.0)) * step
        curve += square[j] * step * step
    share = 0.0
    if slope < 0.0:
        share = 1.0 if -slope >= 2.0 * curve else -slope / (2.0 * curve)
    d = len(at) // 2
    for j in range(d):
        up, down = at[j] + share * (new[j] - at[j]), at[d + j] + share * (new[d + j] - at[d + j])
        at[j], at[d + j] = max(up - down, 0.0), max(down - up, 0.0)
    return rest + share * (other - rest)


@njit(cache=True)
def minimum(hull, used, basis, columns, lines, touches, upper, close):
    """Solve the program of a box over all points, from a basis.

    Parameters
    ----------
    hull, used
        The points, and how many are in the working set.
    basis
        Shape (rows,), of columns where ups and downs are in as many pieces as there are ``touches``; changed to the
        last one.
    columns, lines
        ``Columns`` and ``Rows`` of the program.
    touches
        Where tangents touch the squares, in widths from their centre; a single 0.0 where there are none.
    upper
        Bounds from here on need no proof.
    close
        By how much the cost of the moves may exceed the bound, where there are squares.

    Returns
    -------
    A ``Solution``.
    """
    hull, columns, lines = HullPoints(*hull), Columns(*columns), Rows(*lines)
    origin, extra = lines
    cost, square, start, low, high = columns
    d = len(origin)
    rows, ways = extra.shape
    own, pieces = 2 * d, 2 * d * len(touches)
    total = pieces + ways - own
    none = np.zeros(total + rows)
    divided = Columns(np.empty(total + rows), none, none, np.empty(total + rows), np.empty(total + rows))
    divided.cost[pieces:], divided.low[pieces:], divided.high[pieces:] = cost[own:], low[own:], high[own:]
    wide = np.empty((rows, total))
    wide[:, pieces:] = extra[:, own:]
    for p in range(len(touches)):
        wide[:, p * own : (p + 1) * own] = extra[:, :own]
    bound, most, status, rest = -np.inf, np.inf, STUCK, 0.0
    y, moves = np.zeros(len(basis)), np.zeros(d)
    at, new, touching = low[:own].copy(), np.empty(own), np.empty((len(touches), own))
    width = (high[:own] - low[:own]).max()
    for turn in range(ROUNDS):
        for p in range(len(touches)):
            touching[p] = np.minimum(np.maximum(at + touches[p] * width, low[:own]), high[:own])
        above = tangents(columns, touching, divided)
        status, under, moves, multipliers, used, support = simplex(
            hull, used, basis, divided, Rows(origin, wide), pieces, upper + above
        )
        if status == INFEASIBLE:
            return Solution(status, np.inf, moves, multipliers, used, support)
        value = lagrange(multipliers, columns, lines, support)
        if value > bound:
            bound, most = value, support
            y[:] = multipliers
        if status != OPTIMAL or bound >= upper or len(touches) == 1:
            break
        # What the tangents leave over is the cost of being outside the hull.
        other, farthest = under - above, 0.0
        for j in range(own):
            new[j] = max(moves[j] if j < d else -moves[j - d], 0.0)
            other -= below(new[j], cost[j], square[j], start[j], touching[:, j])
            farthest = max(farthest, abs(new[j] - at[j]))
        if turn == 0:
            at[:], rest = new, other
        else:
            rest = between(at, rest, new, other, columns)
        moves[:] = at[:d] - at[d:]
        gap = rest + (cost[:own] * at + square[:own] * np.maximum(at - start[:own], 0.0) ** 2).sum() - bound
        if gap <= close or width <= ROW_MISSED:
            break
        width = max(SHRINK * width, 0.5 * farthest)
    return Solution(status, bound, moves, y, used, most)


@njit(cache=True)
def prepare(low, high, forced, numbers, prices, columns, lines, counts):
    """Costs and ends of ups and downs for a box of decoded values; returns cost and changes that it has in any case.

    A fixed cost, and a change where changes are counted (``counts``: in the last extra row), are replaced by their
    convex envelopes unless the box excludes the factual's value or the number is ``forced`` to change; squares then
    begin where the envelope meets them.
    """
    value, unit, _ = MovingNumbers(*numbers)
    fixed, linear, square, weight = Prices(*prices)
    cost, _, start, ends_low, ends_high = Columns(*columns)
    origin, extra = Rows(*lines)
    d = len(origin)
    constant, changes = 0.0, 0.0
    for j in range(len(low)):
        rise, fall = (high[j] - value[j]) / unit[j], (value[j] - low[j]) / unit[j]
        stays = rise >= 0.0 and fall >= 0.0
        ends_low[j] = 0.0 if stays else max(-fall, 0.0)
        ends_high[j] = max(rise, 0.0)
        ends_low[d + j] = 0.0 if stays else max(-rise, 0.0)
        ends_high[d + j] = max(fall, 0.0)
        cost[j] = cost[d + j] = linear[j]
        start[j] = start[d + j] = 0.0
        sure = forced[j] or not stays
        if sure:
            constant += fixed[j]
            changes += weight[j]
        else:
            # Envelopes over next to nothing would be steep beyond all precision; leaving them out is a bound as well.
            if fixed[j] > 0.0:
                meets = math.sqrt(fixed[j] / square[j]) if square[j] > 0.0 else np.inf
                if min(rise, meets) > COORDINATE_SOLVED:
                    start[j] = min(rise, meets)
                    cost[j] += fixed[j] / start[j] + square[j] * start[j]
                if min(fall, meets) > COORDINATE_SOLVED:
                    start[d + j] = min(fall, meets)
                    cost[d + j] += fixed[j] / start[d + j] + square[j] * start[d + j]
        if counts:
            row = extra[extra.shape[0] - 1]
            row[j] = 0.0 if sure or rise <= COORDINATE_SOLVED else weight[j] / rise
            row[d + j] = 0.0 if sure or fall <= COORDINATE_SOLVED else weight[j] / fall
    return constant, changes


@njit(cache=True)
def narrow(low, high, numbers, y, columns, lines, spare):
    """Cut a box of decoded values to moves whose reduced costs leave the bound below the incumbent by ``spare``."""
    value, unit, whole = MovingNumbers(*numbers)
    cost, square, start, ends_low, ends_high = Columns(*columns)
    origin, extra = Rows(*lines)
    d = len(origin)
    for j in range(len(low)):
        for way in range(2):
            column_ = j + way * d
            reduced = cost[column_] + (y[j] if way == 0 else -y[j])
            for r in range(extra.shape[0]):
                reduced -= y[d + 1 + r] * extra[r, column_]
            # A move beyond the cheapest one costs slope times the rest of it, and its square.
            least = lowest(reduced, square[column_], start[column_], ends_low[column_], ends_high[column_])
            slope = max(reduced + 2.0 * square[column_] * max(least - start[column_], 0.0), 0.0)
            if slope <= REDUCED_COST and square[column_] == 0.0:
                continue
            steep = slope + math.sqrt(slope * slope + 4.0 * square[column_] * spare)
            most = max(least, start[column_] if square[column_] > 0.0 else 0.0) + 2.0 * spare / steep
            if slope > REDUCED_COST:
                most = min(most, least + spare / slope)
            most *= unit[j]
            if whole[j]:
                most = np.floor(most + WHOLE_BOUND)
            else:
                most += COORDINATE_TIE * unit[j]
            if way == 0 and high[j] > value[j] + most >= low[j]:
                high[j] = value[j] + most
            elif way == 1 and low[j] < value[j] - most <= high[j]:
                low[j] = value[j] - most


@njit(cache=True)
def span(row, low, high):
    """The least and greatest value of a row within its columns' ends."""
    least, most = 0.0, 0.0
    for j in range(len(row)):
        ends = (row[j] * low[j], row[j] * high[j])
        least += min(ends)
        most += max(ends)
    return least, most


@njit(cache=True)
def greatest(leaves, low, high):
    """An upper bound on the score within a box, exact at a point: the base plus each tree's best leaf that meets it."""
    first, last, _, _, value, start, base = LeafArrays(*leaves)
    total = base
    for t in range(len(start) - 1):
        best = -np.inf
        for k in range(start[t], start[t + 1]):
            if value[k] <= best:
                continue
            meets = True
            for j in range(len(low)):
                if first[k, j] > high[j] or last[k, j] < low[j]:
                    meets = False
                    break
            if meets:
                best = value[k]
        total += best
    return total


@njit(cache=True)
def cell(leaves, point, low, high):
    """Shrink a box to the cell of a point: the leaves that hold it, one a tree."""
    first, last, _, _, _, start, _ = LeafArrays(*leaves)
    for t in range(len(start) - 1):
        for k in range(start[t], start[t + 1]):
            holds = True
            for j in range(len(point)):
                if first[k, j] > point[j] or last[k, j] < point[j]:
                    holds = False
                    break
            if holds:
                for j in range(len(point)):
                    low[j], high[j] = max(low[j], first[k, j]), min(high[j], last[k, j])
                break


@njit(cache=True)
def grow(leaves, low, high, slopes, point, grown_low, grown_high):
    """Grow the box of a point that is surely invalid, within [low, high].

    The face that is cheapest to leave the box by goes first, one threshold at a time. ``slopes`` is what a unit of
    either way costs, shape (2, numbers).
    """
    first, last, before, after, value, start, base = LeafArrays(*leaves)
    d, size, trees = len(point), len(value), len(start) - 1
    # Of the lower faces, all coordinates with their signs turned: either way a face moves outwards by growing.
    edges, rims = np.stack((-last, first)), np.stack((-after, before))
    ends, at, grown = np.stack((-low, high)), np.stack((-point, point)), np.stack((-grown_low, grown_high))
    owner = np.empty(size, np.int64)
    off = np.zeros(size, np.int64)  # faces by which a leaf misses the box; ``AWAY`` where it misses [low, high]
    best = np.empty(trees)
    total = base
    for t in range(trees):
        best[t] = -np.inf
        for k in range(start[t], start[t + 1]):
            owner[k] = t
            for s in range(2):
                for j in range(d):
                    if edges[s, k, j] > ends[s, j]:
                        off[k] = AWAY
                    elif edges[s, k, j] > grown[s, j]:
                        off[k] += 1
            if off[k] == 0:
                best[t] = max(best[t], value[k])
        total += best[t]
    closed, stale = np.zeros((2, d), np.bool_), np.ones((2, d), np.bool_)
    price, edge, room = np.empty((2, d)), np.empty((2, d)), np.empty(trees)  # edge: one threshold on
    while True:
        side, chosen = 0, -1
        for s in range(2):
            for j in range(d):
                if closed[s, j]:
                    continue
                if stale[s, j]:
                    stale[s, j] = False
                    edge[s, j], rim = np.inf, ends[s, j]
                    for k in range(size):
                        if off[k] < AWAY and edge[s, j] > edges[s, k, j] > grown[s, j]:
                            edge[s, j], rim = edges[s, k, j], rims[s, k, j]
                    grown[s, j] = min(rim, ends[s, j])
                    closed[s, j] = edge[s, j] == np.inf or rim >= ends[s, j]
                    price[s, j] = slopes[s, j] * (edge[s, j] - at[s, j])
                    if closed[s, j]:
                        continue
                if chosen < 0 or price[s, j] < price[side, chosen]:
                    side, chosen = s, j
        if chosen < 0:
            break
        # Leaves that the box meets once its face is past the edge, and where it has to stop again.
        face, inner = edges[side, :, chosen], grown[side, chosen]
        stop, gain = ends[side, chosen], 0.0
        room[:] = best
        for k in range(size):
            if off[k] < AWAY and face[k] > edge[side, chosen]:
                stop = min(stop, rims[side, k, chosen])
        for k in range(size):
            if off[k] == 1 and inner < face[k] <= stop and value[k] > room[owner[k]]:
                gain += value[k] - room[owner[k]]
                room[owner[k]] = value[k]
        if total + gain >= -SCORE_TIE:
            closed[side, chosen] = True
            continue
        total += gain
        best[:] = room
        for k in range(size):
            if off[k] < AWAY and inner < face[k] <= stop:
                off[k] -= 1
        grown[side, chosen] = stop
        stale[side, chosen] = True
    grown_low[:], grown_high[:] = -grown[0], grown[1]
    return total


def compile_all() -> None:
    """Load the kernels, or compile them where no cache holds them, before answers are timed."""
    one, flag = np.zeros(1), np.zeros(1, dtype=bool)
    ends, extra = np.zeros(2), np.zeros((0, 2))
    numbers, prices = (one, one + 1, flag), (one, one, one, one)
    columns, lines = (ends, ends, ends, ends, ends + 1), (one, extra)
    prepare(one, one, flag, numbers, prices, columns, lines, False)
    span(ends, ends, ends)
    hull = np.zeros((1, 1)), np.zeros((2, 1, 1)), np.zeros((1, 1)), np.zeros(1, dtype=np.int64), ~flag
    minimum(hull, 1, np.array([0, 2]), columns, lines, one, 1.0, 0.0)
    lagrange(ends, columns, lines, 0.0)
    narrow(one, one, numbers, ends, columns, lines, 1.0)
    leaf = np.zeros((1, 1))
    leaves = leaf, leaf, leaf, leaf, one, np.array([0, 1]), 0.0
    greatest(leaves, one, one)
    cell(leaves, one, one, one)
    grow(leaves, one, one, np.zeros((2, 1)), one, one, one)
