"""Compiled branch and bound over a scorecard's moves, with a linear program at each node.

A feature stands on one *rung* of its ladder: its own bin, or an option. What a move costs, but for its being one, and
what it gains is linear in the change of the feature's value. So a node, which leaves each feature an interval of rungs,
has as its relaxation

.. math::
    \\min \\textstyle\\sum_f p_f |u_f| + \\omega \\|v + L^T u\\|_1 \\quad \\text{s.t. }
    u_f \\text{ in the interval's hull, } s + g^T u \\text{ between the ends}

of as many variables as features. Its multipliers, however they were come by, give the Lagrangian bound that prunes.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import FLAT, PIVOT, ROW_MISSED
from methods.scorecard.kernels import CHANGES, CLOSENESS, PROXIMITY, push, under
from methods.scorecard.records import Agenda, Kept, Ladders, Limits, Node, Tableau

SPARE = 0.25  # moves by which a program may miss the number allowed
ROUNDS, FIRST_ROUNDS = 4, 40  # programs of a node, and of the first one: with other prices of a change
PIVOTS = 500  # of one program at most
STALE = 3000  # pivots after which the table is made anew
DEARER, STEP = 1.3, 0.05  # factor, and share of the first bound by move, by which the price of a change rises


@njit(cache=True)
def renew(ladders, tableau):
    """Into the tableau: the table where all residuals and the score are basic, and no feature has moved."""
    _, _, _, steep, factor, deviation, score = Ladders(*ladders)
    table, basic, other, x, _, _, _, feature, sign, _ = Tableau(*tableau)
    columns, size = len(feature), len(deviation)
    table[:] = 0.0
    for j in range(columns):
        f = feature[j]
        for i in range(f + 1):
            table[j, i] = sign[j] * factor[f, i]
        table[j, size] = sign[j] * steep[f]
        other[j], x[j] = j, 0.0
    for i in range(size + 1):
        basic[i] = columns + i
    x[columns : columns + size] = deviation
    x[columns + size] = score


@njit(cache=True)
def side(k, up, x, below, above, slope):
    """The slope of a variable's cost to the right of where it is, or to the left."""
    slack = -ROW_MISSED if up else ROW_MISSED
    if (x[k] < below[k] + slack) if up else (x[k] <= below[k] + slack):
        return slope[k, 0]
    return slope[k, 1] if (x[k] < above[k] + slack if up else x[k] <= above[k] + slack) else slope[k, 2]


@njit(cache=True)
def entering(tableau, right, left):
    """The non-basic variable whose move lowers the cost most by unit, in which direction, and by how much."""
    table, _, other, x, below, above, slope, feature, _, _ = Tableau(*tableau)
    best, column, way = -FLAT, -1, 1.0
    for j in range(len(feature)):
        k = other[j]
        if k < len(feature) and below[k] == above[k]:
            continue
        up, down = side(k, True, x, below, above, slope), -side(k, False, x, below, above, slope)
        for i in range(len(right)):
            more, less = right[i] * table[j, i], left[i] * table[j, i]
            up += max(more, less)
            down -= min(more, less)
        if up < best:
            best, column, way = up, j, 1.0
        if down < best:
            best, column, way = down, j, -1.0
    return best, column, way


@njit(cache=True)
def stop(tableau, column, way, rate, ahead):
    """How far the entering variable goes until the cost no longer falls, and in which row what stops it is basic."""
    table, basic, other, x, below, above, slope, _, _, _ = Tableau(*tableau)
    rows, count = len(basic), 0
    for i in range(rows + 1):
        k = basic[i] if i < rows else other[column]
        speed = way * (table[column, i] if i < rows else 1.0)
        if abs(speed) < PIVOT:
            continue
        for end in range(2):
            away = ((above[k] if end else below[k]) - x[k]) / speed
            if ROW_MISSED < away < np.inf:
                ahead[0, count], ahead[1, count] = away, i
                ahead[2, count] = abs(speed) * (slope[k, end + 1] - slope[k, end])
                count += 1
    step, row = 0.0, -1
    for _ in range(count):
        nearest = int(np.argmin(ahead[0, :count]))
        step, row = ahead[0, nearest], int(ahead[1, nearest])
        rate += ahead[2, nearest]
        ahead[0, nearest] = np.inf
        if rate >= 0.0:
            break
    return step, row


@njit(cache=True)
def exchange(table, column, row):
    """A pivot: the variable of the column becomes basic in the row."""
    pivot = table[column, row]
    for j in range(len(table)):
        if j != column and table[j, row] != 0.0:
            share = table[j, row] / pivot
            table[j] -= share * table[column]
            table[j, row] = -share
    table[column] /= pivot
    table[column, row] = 1.0 / pivot


@njit(cache=True)
def descended(tableau, ahead):
    """Minimise the convex, piecewise linear cost from the tableau's vertex on. Returns the number of pivots."""
    table, basic, other, x, below, above, slope, _, _, _ = Tableau(*tableau)
    rows = len(basic)
    right, left = np.empty(rows), np.empty(rows)
    for turn in range(PIVOTS):
        for i in range(rows):
            right[i] = side(basic[i], True, x, below, above, slope)
            left[i] = side(basic[i], False, x, below, above, slope)
        rate, column, way = entering(tableau, right, left)
        if column < 0:
            return turn
        step, row = stop(tableau, column, way, rate, ahead)
        if row < 0:
            return PIVOTS
        for i in range(rows):
            x[basic[i]] += way * step * table[column, i]
        x[other[column]] += way * step
        if row < rows:
            exchange(table, column, row)
            basic[row], other[column] = other[column], basic[row]
    return PIVOTS


@njit(cache=True)
def place(ladders, tableau, node, weights, price):
    """Give the columns the ends and costs of a node, and move those that are not basic to an end."""
    level, home, dear, _, _, _, _ = Ladders(*ladders)
    table, basic, other, x, below, above, slope, feature, sign, wall = Tableau(*tableau)
    low, high, _, _ = Node(*node)
    for j in range(len(feature)):
        f = feature[j]
        least, most = level[low[f]], level[high[f]]
        if sign[j] < 0.0:
            least, most = -most, -least
        below[j], above[j] = max(0.0, least), max(0.0, most)
        cost = weights[PROXIMITY] * dear[f]
        if low[f] <= home[f] <= high[f] and above[j] > 0.0:
            cost += max(price + weights[CHANGES], 0.0) / above[j]
        slope[j, 0], slope[j, 1], slope[j, 2] = cost - wall, cost, cost + wall
    for j in range(len(feature)):
        k = other[j]
        if k < len(feature):
            step = (below[k] if x[k] - below[k] < above[k] - x[k] else above[k]) - x[k]
            if step != 0.0:
                x[k] += step
                for i in range(len(basic)):
                    x[basic[i]] += step * table[j, i]


@njit(cache=True)
def multipliers(tableau, out):
    """Of the residuals and, last, of the score: into ``out``, shape (features + 1,)."""
    table, basic, other, x, below, above, slope, feature, _, _ = Tableau(*tableau)
    columns = len(feature)
    for i in range(len(basic)):
        if basic[i] >= columns:
            out[basic[i] - columns] = side(basic[i], True, x, below, above, slope)
    for j in range(columns):
        k = other[j]
        if k >= columns:
            rate = 0.0
            for i in range(len(basic)):
                rate += table[j, i] * side(basic[i], True, x, below, above, slope)
            out[k - columns] = min(max(-rate, slope[k, 0]), slope[k, 2])


@njit(cache=True)
def least_of(ladders, f, low, high, cost, pull):
    """The least that a move of a feature to one of its rungs costs, which is at an end of one of its two sides."""
    level, home, _, _, _, _, _ = Ladders(*ladders)
    best = np.inf
    for p in (low, high, home[f] - 1, home[f] + 1):
        if low <= p <= high and p != home[f]:
            best = min(best, cost * abs(level[p]) + pull * level[p])
    return best


@njit(cache=True)
def bounded(ladders, limits, node, weights, y):
    """The Lagrangian bound of a node by its multipliers; into the node: each feature's least cost, and pull by unit.

    A feature's least cost is that of its best move, or 0 where it may stay; infinite where the node has it move.
    """
    _, home, dear, steep, factor, deviation, score = Ladders(*ladders)
    ends = Limits(*limits)
    low, high, least, pull = Node(*node)
    size = len(deviation)
    total = y[size] * (score - (ends.high if y[size] > 0.0 else ends.low)) if y[size] != 0.0 else 0.0
    room, free = ends.most, 0
    for f in range(size):
        total += y[f] * deviation[f]
        pull[f] = y[size] * steep[f]
        for i in range(f + 1):
            pull[f] += y[i] * factor[f, i]
        best = least_of(ladders, f, low[f], high[f], weights[PROXIMITY] * dear[f], pull[f]) + weights[CHANGES]
        if low[f] <= home[f] <= high[f]:
            least[f] = min(best, 0.0)
            free += 1
        else:
            least[f] = np.inf
            total += best
            room -= 1
    if room < 0:
        return np.inf, 0.0, 0.0
    if free <= room:
        for f in range(size):
            total += least[f] if least[f] < 0.0 else 0.0
        return total, 0.0, 0.0
    ranked = np.sort(least)
    for r in range(room):
        total += ranked[r]
    return total, (ranked[room - 1] if room else -np.inf), ranked[room]


@njit(cache=True)
def tighten(ladders, node, weights, found, edge):
    """Take off the rungs at the ends of a node that the bound shows to cost too much; whether there were any.

    ``found``: what ``bounded`` returns: the bound, the dearest of the moves within it, and the next one.
    """
    level, home, dear, _, _, _, _ = Ladders(*ladders)
    low, high, least, pull = Node(*node)
    bound, dearest, following = found
    before = 0
    for f in range(len(home)):
        before += high[f] - low[f]
        cost = weights[PROXIMITY] * dear[f]
        if least[f] == np.inf:
            moved = bound - least_of(ladders, f, low[f], high[f], cost, pull[f])
            stayed = np.inf
        elif least[f] <= dearest:  # within the bound: another one may come in its place
            moved = bound - least[f] + weights[CHANGES]
            stayed = bound - least[f] + following
        else:
            moved, stayed = bound - dearest + weights[CHANGES], bound
        while low[f] < high[f]:
            for p in (low[f], high[f]):
                rest = stayed if p == home[f] else moved + cost * abs(level[p]) + pull[f] * level[p]
                if rest > edge:
                    break
            else:
                break
            if p == low[f]:
                low[f] += 1
            else:
                high[f] -= 1
    for f in range(len(home)):
        before -= high[f] - low[f]
    return before > 0


@njit(cache=True)
def attainable(ladders, limits, node):
    """Whether moves within a node can bring the score to either of its ends, with no more of them than are allowed."""
    level, home, _, steep, _, _, score = Ladders(*ladders)
    ends = Limits(*limits)
    low, high, least, _ = Node(*node)
    for up in (1.0, -1.0):
        reached, room = up * score, ends.most
        for f in range(len(home)):
            best = max(up * steep[f] * level[low[f]], up * steep[f] * level[high[f]])
            least[f] = -best
            if not low[f] <= home[f] <= high[f]:
                reached += best
                room -= 1
                least[f] = 0.0
        if room < 0:
            return False
        ranked = np.sort(least)
        for r in range(min(room, len(home))):
            reached -= ranked[r]
        if reached < (ends.low if up > 0 else -ends.high):
            return False
    return True


@njit(cache=True)
def relaxed(ladders, limits, tableau, node, weights, price):
    """A bound on what a node costs with this price of a move, as of ``bounded``; the number of pivots."""
    size = len(Ladders(*ladders).deviation)
    y, ahead = np.zeros(size + 1), np.empty((3, 2 * size + 4))
    place(ladders, tableau, node, weights, price)
    pivots = descended(tableau, ahead)
    multipliers(tableau, y)
    return bounded(ladders, limits, node, weights, y), pivots


@njit(cache=True)
def moved(ladders, tableau, node, out):
    """Into ``out``: by how much each feature moves at the tableau's vertex. Returns how many moves that is at least."""
    level, home, _, _, _, _, _ = Ladders(*ladders)
    _, _, _, x, _, _, _, feature, sign, _ = Tableau(*tableau)
    low, high, _, _ = Node(*node)
    out[:] = 0.0
    for j in range(len(feature)):
        out[feature[j]] += sign[j] * x[j]
    moves = 0.0
    for f in range(len(home)):
        end = level[high[f]] if out[f] > 0.0 else level[low[f]]
        if not low[f] <= home[f] <= high[f]:
            moves += 1.0
        elif end != 0.0:
            moves += min(out[f] / end, 1.0)
    return moves


@njit(cache=True)
def split(ladders, node, weights, at):
    """The feature to branch on, and the last of the rungs of its lower part; -1 where all rungs are settled."""
    level, _, dear, _, factor, _, _ = Ladders(*ladders)
    low, high, _, _ = Node(*node)
    best, feature, rung = -1.0, -1, 0
    for f in range(len(low)):
        if low[f] == high[f]:
            continue
        p = low[f]
        while p < high[f] - 1 and level[p + 1] <= at[f] + ROW_MISSED:
            p += 1
        off = max(min(at[f] - level[p], level[p + 1] - at[f]), 0.0)
        worth = off * (weights[CLOSENESS] * abs(factor[f, f]) + weights[PROXIMITY] * dear[f])
        if worth > best:
            best, feature, rung = worth, f, p
    return feature, rung


@njit(cache=True)
def keep(ladders, limits, node, weights, edge, kept, many):
    """Keep the choice that a node has come down to, where it is allowed and cheap enough. Returns how many are kept."""
    level, home, dear, steep, factor, deviation, score = Ladders(*ladders)
    ends, (values, picks, parts) = Limits(*limits), Kept(*kept)
    part, pick, residual = np.zeros(4), np.full(ends.most, -1, dtype=np.int64), deviation.copy()
    moves, low = 0, node[0]
    for f in range(len(home)):
        if low[f] != home[f]:
            if moves == ends.most:
                return many
            pick[moves] = low[f]
            moves += 1
            score += steep[f] * level[low[f]]
            part[PROXIMITY] += dear[f] * abs(level[low[f]])
            for i in range(f + 1):
                residual[i] += factor[f, i] * level[low[f]]
    part[CLOSENESS], part[CHANGES] = np.abs(residual).sum(), moves
    value = 0.0
    for c in range(4):
        value += weights[c] * part[c]
    if not moves or not ends.low <= score <= ends.high or value > edge:
        return many
    return push(values, picks, parts, many, value, pick, part)


@njit(cache=True)
def settle(ladders, limits, tableau, node, weights, price, edge, rounds):
    """Bound a node and tighten it, in so many rounds. Returns its bound, the price of a move, and the pivots made."""
    size = len(Ladders(*ladders).deviation)
    most, at, best, pivots = Limits(*limits).most, np.empty(size), -np.inf, 0
    for _ in range(rounds):
        found, made = relaxed(ladders, limits, tableau, node, weights, price)
        pivots += made
        best = max(best, found[0])
        if best > edge:
            break
        tightened = tighten(ladders, node, weights, found, edge)
        moves = moved(ladders, tableau, node, at)
        if most < size and moves > most + SPARE:
            price = DEARER * price + STEP * abs(best) / size
        elif most < size and moves < most - SPARE and price > 0.0:
            price = price / DEARER
        elif not tightened:
            break
    return best, price, pivots


@njit(cache=True)
def explore(ladders, limits, form, tableau, agenda, kept, budget):
    """Go on with the branch and bound, for about ``budget`` numbers of tables; True once it has ended.

    Depth first, the nearer part of the split first.
    """
    weights, cap = form
    state, lows, highs, bounds, prices = Agenda(*agenda)
    size, values = lows.shape[1], kept[0]
    level, table = Ladders(*ladders).level, Tableau(*tableau).table
    node = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
    at = np.empty(size)
    spent = 0
    while state[0] > 0 and spent < budget:
        state[0] -= 1
        top = state[0]
        node[0][:], node[1][:] = lows[top], highs[top]
        edge = min(cap, under(values[0])) if state[1] == len(values) else cap
        if bounds[top] > edge or not attainable(ladders, limits, node):
            continue
        rounds = FIRST_ROUNDS if state[2] < 0 else ROUNDS
        if state[2] < 0 or state[2] > STALE:
            renew(ladders, tableau)
            state[2] = 0
        bound, price, pivots = settle(ladders, limits, tableau, node, weights, prices[top], edge, rounds)
        bound = max(bound, bounds[top])
        state[2] += STALE if pivots >= PIVOTS else pivots
        spent += (pivots + 1) * table.size
        if bound > edge:
            continue
        moved(ladders, tableau, node, at)
        f, rung = split(ladders, node, weights, at)
        if f < 0:
            state[1] = keep(ladders, limits, node, weights, edge, kept, state[1])
            continue
        upper = at[f] - level[rung] > level[rung + 1] - at[f]
        for part in range(2):  # the last one is the next to be looked at
            lows[state[0]], highs[state[0]] = node[0], node[1]
            if (part == 1) == upper:
                lows[state[0], f] = rung + 1
            else:
                highs[state[0], f] = rung
            bounds[state[0]], prices[state[0]] = bound, price
            state[0] += 1
    return state[0] == 0
