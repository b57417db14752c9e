r"""A bound on the cost of right points that adds up what each changed feature gains at most, over all trees.

The nearest point :math:`x^0` of a node is wrong by :math:`g > 0`. A tree's value exceeds that at :math:`x^0` only in
leaves from which it is kept by the conditions of some features; of such a leaf's gain each of them gets a share, as
large as its part in what it costs to meet them all. With :math:`G_{t,f}(s)` the greatest share that state s of feature
f has in the leaves of tree t, a tree's value at x is at most that at :math:`x^0` plus :math:`\sum_f G_{t,f}(x_f)`, so
that right points of the node satisfy

.. math:: \sum_f G_f(x_f) \ge g, \qquad G_f = \sum_t G_{t,f} .

What such a point costs at least is that of a knapsack, of whose Lagrangian dual the best multiplier is taken:
:math:`\max_\lambda \lambda g - \sum_f \max_s (\lambda G_f(s) - c_f(s))`. Leaves that cost more than an incumbent are
left out. Boxes alone would need one for each choice of the features that are changed.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from harness.core.tolerances import SCORE_TIE
from methods.cells.masks import INFINITE, allows, highest, leaf_at
from methods.cells.records import AdditiveRoom, GridArrays, Spans, States

STEPS = 12  # of the search for the best multiplier

_COSTS, _PLACES, _TABLE = np.empty(0), np.empty(0, np.int64), np.empty((0, 0), np.int64)
NO_ROOM = AdditiveRoom(  # where it is not to look
    Spans(_TABLE, _TABLE, _TABLE.astype(np.uint64), _PLACES), _PLACES, _PLACES, _COSTS, _TABLE.astype(float), _TABLE,
    _PLACES, _PLACES, _PLACES, _COSTS, _PLACES, _COSTS, _COSTS,
)  # fmt: skip


def leaf_spans(grid: GridArrays) -> Spans:
    """Where the leaves of a grid lie."""
    wide = len(grid.members), grid.values.shape[1]
    low, high, categories = np.zeros(wide, np.int64), np.zeros(wide, np.int64), np.zeros(wide, np.uint64)
    count = np.ones(len(grid.values), np.int64)
    for k, (f, t) in enumerate(zip(grid.members, grid.owner, strict=True)):
        own = slice(int(grid.offset[f]), int(grid.offset[f + 1]))
        masks = grid.upto[t, own] & grid.onwards[t, own]
        met = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")[:, : wide[1]].astype(bool)
        there = met.any(axis=0)
        count[t] = max(count[t], np.flatnonzero(there).max(initial=0) + 1)
        low[k] = np.where(there, met.argmax(axis=0), 0)
        high[k] = np.where(there, len(met) - 1 - met[::-1].argmax(axis=0), -1)
        if grid.unordered[f]:
            categories[k] = (met.astype(np.uint64) << np.arange(len(met), dtype=np.uint64)[:, None]).sum(axis=0)
    return Spans(low, high, categories, count)


def room_for(spans: Spans, grid: GridArrays, states: States) -> AdditiveRoom:
    """What the bound needs for one factual's states."""
    onwards, upto = np.empty(grid.offset[-1], np.int64), np.empty(grid.offset[-1], np.int64)
    for f in range(len(grid.unordered)):
        own = states.cell[states.start[f] : states.start[f + 1]]
        cells = np.arange(grid.offset[f + 1] - grid.offset[f])
        onwards[grid.offset[f] : grid.offset[f + 1]] = np.searchsorted(own, cells)
        upto[grid.offset[f] : grid.offset[f + 1]] = np.searchsorted(own, cells, side="right") - 1
    leaves, count, features = grid.values.shape[1], len(states.cost), len(states.factual)
    wide = leaves, int(np.diff(grid.starts).max(initial=1))
    leaf, steps, rows = (np.empty(leaves, np.int64) for _ in range(3))
    return AdditiveRoom(
        spans, onwards, upto, np.empty(count), np.empty(wide), np.empty(wide, np.int64), leaf, steps, rows,
        np.empty(features), np.empty(features + 1, np.int64), np.empty(count), np.empty(count),
    )  # fmt: skip


@njit(cache=True, _nrt=False, inline="always")
def meet(grid, states, node, slack, room, t, more, q):
    """Write the shares in what a tree's q-th leaf gains; whether the leaf is within the node and the slack."""
    spans = room.spans
    leaf, first, size = room.leaf[q], grid.starts[t], grid.starts[t + 1] - grid.starts[t]
    state_start, cost, unordered = states.start, states.cost, states.unordered
    low, high, sets, point = node.box.low, node.box.high, node.box.sets, node.point
    share, at = room.share, room.at
    needed, kept = 0.0, 0
    for i in range(size):
        k = first + i
        f = grid.members[k]
        share[q, i] = 0.0
        at[q, i] = point[f]
        if unordered[f]:
            own = spans.categories[k, leaf] & sets[f]
            if not own:
                return False
            if (own >> np.uint64(point[f])) & np.uint64(1):
                continue
            least = INFINITE
            while own:
                lowest = own & (~own + np.uint64(1))
                own ^= lowest
                least = min(least, cost[state_start[f] + highest(lowest)])
            at[q, i] = -1
        else:
            if spans.low[k, leaf] > spans.high[k, leaf]:
                return False
            a = max(room.onwards[grid.offset[f] + spans.low[k, leaf]], low[f])
            b = min(room.upto[grid.offset[f] + spans.high[k, leaf]], high[f])
            if a > b:
                return False
            if a <= point[f] <= b:
                continue
            at[q, i] = a if a > point[f] else b
            least = cost[state_start[f] + at[q, i]]
        least -= cost[state_start[f] + point[f]]
        share[q, i] = least
        needed += least
        kept += 1
        if needed > slack:
            return False
    if not kept:
        return False
    for i in range(size):
        if at[q, i] != point[grid.members[first + i]]:
            share[q, i] = more * share[q, i] / needed if needed > 0.0 else more / kept
    return True


@njit_no_refcount
def shares(grid, states, node, which, slack, room):
    """Write what each state gains at most into ``room.gain``; returns how much the nearest point lacks."""
    values, starts, members, offset = grid.values, grid.starts, grid.members, grid.offset
    state_start, unordered = states.start, states.unordered
    low, high, point = node.box.low, node.box.high, node.point
    spans = room.spans
    gain, share, at, steps, rows = room.gain, room.share, room.at, room.steps, room.rows
    total = grid.base
    for f in range(len(point)):
        for s in range(state_start[f], state_start[f + 1]):
            gain[s] = 0.0
    for t in range(values.shape[0]):
        if grid.sums[t] != which:
            continue
        first, size = starts[t], starts[t + 1] - starts[t]
        if not size:
            total += values[t, values.shape[1] - 1]
            continue
        current = leaf_at(grid, states, point, t)
        here = values[t, current]
        total += here
        many = 0  # leaves of more value within the node and the slack
        for word in range(current // 64, grid.upto.shape[2]):
            mask = ~np.uint64(0)
            if word == current // 64:
                mask = (mask << np.uint64(current % 64)) << np.uint64(1)
            for k in range(first, first + size):
                f = members[k]
                if not unordered[f]:
                    start = offset[f] + states.cell[state_start[f] + low[f]]
                    end = offset[f] + states.cell[state_start[f] + high[f]]
                    mask &= grid.upto[t, end, word] & grid.onwards[t, start, word]
                    if not mask:
                        break
            while mask:
                lowest = mask & (~mask + np.uint64(1))
                mask ^= lowest
                leaf = word * 64 + highest(lowest)
                if leaf >= spans.leaves[t] or values[t, leaf] <= here:
                    continue
                room.leaf[many] = leaf
                many += meet(grid, states, node, slack, room, t, values[t, leaf] - here, many)
        if not many:
            continue
        for i in range(size):
            k = first + i
            f = members[k]
            if unordered[f]:
                for s in range(state_start[f + 1] - state_start[f]):
                    most = 0.0
                    for q in range(many):
                        if share[q, i] > most and (spans.categories[k, room.leaf[q]] >> np.uint64(s)) & np.uint64(1):
                            most = share[q, i]
                    gain[state_start[f] + s] += most
                continue
            # Each leaf's share counts from its state on: nearest states first, so that only what exceeds those before.
            own = 0
            for q in range(many):
                step, mine = abs(at[q, i] - point[f]), share[q, i]
                if mine <= 0.0:
                    continue
                place = own
                while place > 0 and steps[place - 1] > step:
                    place -= 1
                for j in range(own, place, -1):
                    steps[j], rows[j] = steps[j - 1], rows[j - 1]
                steps[place], rows[place] = step, q
                own += 1
            above, below = 0.0, 0.0
            for j in range(own):
                q = rows[j]
                s, mine = at[q, i], share[q, i]
                if s > point[f] and mine > above:
                    gain[state_start[f] + s] += mine - above
                    above = mine
                elif s < point[f] and mine > below:
                    gain[state_start[f] + s] += mine - below
                    below = mine
    for f in range(len(point)):
        if unordered[f]:
            continue
        for s in range(state_start[f] + point[f] + 2, state_start[f] + high[f] + 1):
            gain[s] += gain[s - 1]
        for s in range(state_start[f] + point[f] - 2, state_start[f] + low[f] - 1, -1):
            gain[s] += gain[s + 1]
    return -total


@njit_no_refcount
def frontier(states, node, room):
    """List of each feature the states that some price makes best, by cost; returns what all features gain at most."""
    state_start, cost, gain = states.start, states.cost, room.gain
    at, total = 0, 0.0
    for f in range(len(node.point)):
        room.begin[f] = at
        start, point = state_start[f], node.point[f]
        here = cost[start + point]
        if states.unordered[f]:
            for s in range(state_start[f + 1] - start):
                if s != point and gain[start + s] > 0.0 and allows(node.box, states, f, s):
                    at = put(cost[start + s] - here, gain[start + s], room, room.begin[f], at)
        else:
            down, up = point - 1, point + 1
            low, high = node.box.low[f], node.box.high[f]
            while down >= low or up <= high:
                if up > high or (down >= low and cost[start + down] < cost[start + up]):
                    s = down
                    down -= 1
                else:
                    s = up
                    up += 1
                if gain[start + s] > 0.0:
                    at = put(cost[start + s] - here, gain[start + s], room, room.begin[f], at)
        if at > room.begin[f]:
            total += room.gains[at - 1]
    room.begin[len(node.point)] = at
    return total


@njit_no_refcount
def put(cost, gain, room, first, at):
    """Add a state to a concave frontier, to which states come in order of cost, or about; returns where it ends."""
    costs, gains = room.costs, room.gains
    place = at
    while place > first and costs[place - 1] > cost:
        place -= 1
    if place > first and gains[place - 1] >= gain:
        return at
    if place < at:  # out of order, as categories may be: what costs more and gains no more goes
        while at > place and gains[at - 1] <= gain:
            at -= 1
        if place < at:
            for k in range(at, place, -1):
                costs[k], gains[k] = costs[k - 1], gains[k - 1]
            costs[place], gains[place] = cost, gain
            return at + 1
    while at > first:
        before_cost = costs[at - 2] if at - 1 > first else 0.0
        before_gain = gains[at - 2] if at - 1 > first else 0.0
        if (gains[at - 1] - before_gain) * (cost - before_cost) > (gain - before_gain) * (costs[at - 1] - before_cost):
            break
        at -= 1
    costs[at], gains[at] = cost, gain
    return at + 1


@njit_no_refcount
def dual(price, lacking, room):
    """The Lagrangian dual at a price of a unit of score; writes what each feature takes off it."""
    value = price * lacking
    for f in range(len(room.taken)):
        most = 0.0
        for k in range(room.begin[f], room.begin[f + 1]):
            most = max(most, price * room.gains[k] - room.costs[k])
        room.taken[f] = most
        value -= most
    return value


@njit_no_refcount
def additive_bound(grid, states, node, which, slack, room):
    """What right points of a node cost at least beyond its nearest one, which is wrong by one sum.

    States that would cost ``slack`` or more are dropped from the node. Returns the bound, and whether any was dropped.
    """
    lacking = shares(grid, states, node, which, slack, room) - 2 * SCORE_TIE
    if lacking <= 0.0:
        return 0.0, False
    if frontier(states, node, room) < lacking:
        return INFINITE, False
    steepest = 0.0
    for f in range(len(node.point)):
        last = 0.0
        for k in range(room.begin[f], room.begin[f + 1]):
            before = room.gains[k - 1] if k > room.begin[f] else 0.0
            if room.gains[k] > before:
                last = (room.costs[k] - (room.costs[k - 1] if k > room.begin[f] else 0.0)) / (room.gains[k] - before)
        steepest = max(steepest, last)
    left, right = 0.0, steepest  # any price gives a bound; the best ones are hardly many times the slack a unit
    if slack < INFINITE:
        right = min(right, 4.0 * slack / lacking)
    inner, outer = 0.382 * right, 0.618 * right
    at_inner, at_outer = dual(inner, lacking, room), dual(outer, lacking, room)
    for _ in range(STEPS):
        if max(at_inner, at_outer) >= slack:
            return max(at_inner, at_outer), False
        if at_inner >= at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = left + 0.382 * (right - left)
            at_inner = dual(inner, lacking, room)
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + 0.618 * (right - left)
            at_outer = dual(outer, lacking, room)
    price = inner if at_inner >= at_outer else outer
    best = dual(price, lacking, room)
    if best <= 0.0:
        return 0.0, False
    return best, drop(price, best, slack, states, node, room)


@njit_no_refcount
def drop(price, best, slack, states, node, room):
    """Drop the states with which the dual is ``slack`` or more; whether there were any."""
    low, high, sets, point = node.box.low, node.box.high, node.box.sets, node.point
    dropped = False
    for f in range(len(point)):
        start = states.start[f]
        here, spare = states.cost[start + point[f]], best + room.taken[f] - slack
        if states.unordered[f]:
            for s in range(states.start[f + 1] - start):
                if s == point[f] or not allows(node.box, states, f, s):
                    continue
                if spare >= price * room.gain[start + s] - (states.cost[start + s] - here):
                    sets[f] &= ~(np.uint64(1) << np.uint64(s))
                    dropped = True
            continue
        while high[f] > point[f] and spare >= price * room.gain[start + high[f]] - (
            states.cost[start + high[f]] - here
        ):
            high[f] -= 1
            dropped = True
        while low[f] < point[f] and spare >= price * room.gain[start + low[f]] - (states.cost[start + low[f]] - here):
            low[f] += 1
            dropped = True
    return dropped
