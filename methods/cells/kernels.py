"""Compiled kernels of the search over cells: leaf masks, learnt clauses, dual bound, branch and bound.

Shapes: F features, S states, T trees, W words of a leaf mask, C clauses, N nodes. A *state* is a value that a feature
may take from this factual; states of a feature are in order of value, with a cost that grows away from the factual's.
An unordered feature (a one-hot category) has a set of states instead of an interval, as a 64-bit mask.

A *clause* is a box of states on which the ensemble is surely wrong: some feature has to leave it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

DONE, PAUSED, ASK, MORE_NODES, MORE_CLAUSES = 0, 1, 2, 3, 4
TINY = 1e-9  # scores this near to the threshold are for the real model to judge
CLOSE = 1e-9  # costs this near are equal
ROOT_ROUNDS = 40  # cores looked for at the root; elsewhere NODE_ROUNDS
NODE_ROUNDS = 2
INFINITE = np.inf


@njit(cache=True)
def highest(word):
    """Position of the highest set bit of a non-zero word."""
    bit = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(shift):
            word >>= np.uint64(shift)
            bit += shift
    return bit


@njit(cache=True)
def met(grid, t, f, low, high, kinds, word):
    """Leaves of a tree that a feature's range of cells (a set of them, where unordered) meets."""
    offset, upto, onwards = grid[0], grid[2], grid[3]
    if not kinds[f]:
        return upto[t, offset[f] + high, word] & onwards[t, offset[f] + low, word]
    found = np.uint64(0)
    rest = high
    cell = 0
    while rest:
        if rest & np.uint64(1):
            found |= upto[t, offset[f] + cell, word]
        rest >>= np.uint64(1)
        cell += 1
    return found


@njit(cache=True)
def best_leaf(grid, t, low, high, sets, kinds):
    """The value of a tree's best leaf that a box of cells meets, and whether it is the only one."""
    values, starts, members = grid[1], grid[4], grid[5]
    offset, upto, onwards = grid[0], grid[2], grid[3]
    words = upto.shape[2]
    for word in range(words - 1, -1, -1):
        mask = ~np.uint64(0)
        for k in range(starts[t], starts[t + 1]):
            f = members[k]
            if kinds[f]:
                mask &= met(grid, t, f, 0, sets[f], kinds, word)
            else:
                mask &= upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + low[f], word]
        if starts[t] == starts[t + 1]:
            return values[t, values.shape[1] - 1]
        if mask:
            return values[t, word * 64 + highest(mask)]
    return -INFINITE


@njit(cache=True)
def score_point(grid, base, kinds, cell_of, soff, point):
    """Score of one point of states."""
    values, starts, members = grid[1], grid[4], grid[5]
    offset, upto, onwards = grid[0], grid[2], grid[3]
    words = upto.shape[2]
    total = base
    for t in range(values.shape[0]):
        if starts[t] == starts[t + 1]:
            total += values[t, values.shape[1] - 1]
            continue
        for word in range(words):
            mask = ~np.uint64(0)
            for k in range(starts[t], starts[t + 1]):
                f = members[k]
                cell = offset[f] + cell_of[soff[f] + point[f]]
                mask &= upto[t, cell, word] & onwards[t, cell, word]
                if not mask:
                    break
            if mask:
                total += values[t, word * 64 + highest(mask)]
                break
    return total


@njit(cache=True)
def strengthen(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, box_low, box_high, box_set):
    """Grow the box of a wrong point, cheapest escape first, as long as it is surely wrong.

    With ``same`` the box grows only as long as every tree stays in the point's own leaf: all of it gets the same score.
    Writes the box into ``box_*``.
    """
    low, high, sets = node
    right, left, change = residual
    values, uses = grid[1], grid[6]
    count, trees = len(kinds), values.shape[0]
    cell_low = np.empty(count, np.int64)
    cell_high = np.empty(count, np.int64)
    cell_set = np.zeros(count, np.uint64)
    for f in range(count):
        box_low[f] = box_high[f] = seed[f]
        cell = cell_of[soff[f] + seed[f]]
        cell_low[f] = cell_high[f] = cell
        cell_set[f] = box_set[f] = np.uint64(1) << np.uint64(cell) if kinds[f] else np.uint64(0)
    best = np.empty(trees)
    trial = np.empty(trees)
    total = base
    for t in range(trees):
        best[t] = best_leaf(grid, t, cell_low, cell_high, cell_set, kinds)
        total += best[t]
    frozen = np.zeros((count, 2), np.int64)
    states = np.empty(count, np.int64)
    for f in range(count):
        states[f] = soff[f + 1] - soff[f]
    while True:
        # The face with the cheapest escape; ruled-out faces come last.
        face_f, face_side, cheapest, found = -1, 0, INFINITE, False
        for f in range(count):
            if kinds[f]:
                if frozen[f, 0]:
                    continue
                outside = sets[f] & ~box_set[f]
                if box_set[f] == (~np.uint64(0) >> np.uint64(64 - states[f])):
                    continue
                toll = INFINITE
                if outside:
                    home_in = (box_set[f] >> np.uint64(point[f])) & np.uint64(1)
                    toll = change[f] if home_in else 0.0
                if not found or toll < cheapest:
                    face_f, face_side, cheapest, found = f, 2, toll, True
                continue
            if not frozen[f, 1] and box_high[f] + 1 < states[f]:
                at = box_high[f] + 1
                toll = INFINITE
                if at <= high[f]:
                    toll = 0.0 if point[f] >= at else right[soff[f] + at]
                if not found or toll < cheapest:
                    face_f, face_side, cheapest, found = f, 1, toll, True
            if not frozen[f, 0] and box_low[f] > 0:
                at = box_low[f] - 1
                toll = INFINITE
                if at >= low[f]:
                    toll = 0.0 if point[f] <= at else left[soff[f] + at]
                if not found or toll < cheapest:
                    face_f, face_side, cheapest, found = f, 0, toll, True
        if not found:
            break
        f = face_f
        old_low, old_high, old_set = cell_low[f], cell_high[f], cell_set[f]
        picked = np.uint64(0)
        if face_side == 2:
            # One more category: one the node still allows, if there is any.
            outside = sets[f] & ~box_set[f]
            if not outside:
                outside = (~np.uint64(0) >> np.uint64(64 - states[f])) & ~box_set[f]
            # Categories that were refused are marked in box_low (unused by unordered features) as a mask.
            outside &= ~np.uint64(frozen[f, 1])
            if not outside:
                frozen[f, 0] = 1
                continue
            picked = outside & (~outside + np.uint64(1))
            cell_set[f] = old_set | picked
        elif face_side == 1:
            cell_high[f] = cell_of[soff[f] + box_high[f] + 1]
        else:
            cell_low[f] = cell_of[soff[f] + box_low[f] - 1]
        fine = True
        sum_ = total
        if cell_low[f] != old_low or cell_high[f] != old_high or cell_set[f] != old_set:
            for t in range(trees):
                trial[t] = best[t]
                if uses[t, f]:
                    trial[t] = best_leaf(grid, t, cell_low, cell_high, cell_set, kinds)
                    if same and not single(grid, t, cell_low, cell_high, cell_set, kinds):
                        fine = False
                        break
                    sum_ += trial[t] - best[t]
            if not same and sum_ >= -TINY:
                fine = False
            if fine:
                for t in range(trees):
                    best[t] = trial[t]
                total = sum_
        if fine:
            if face_side == 2:
                box_set[f] |= picked
            elif face_side == 1:
                box_high[f] += 1
            else:
                box_low[f] -= 1
        else:
            cell_low[f], cell_high[f], cell_set[f] = old_low, old_high, old_set
            if face_side == 2:
                frozen[f, 1] = np.int64(np.uint64(frozen[f, 1]) | picked)
            else:
                frozen[f, face_side] = 1


@njit(cache=True)
def single(grid, t, low, high, sets, kinds):
    """Whether a box of cells meets one leaf of a tree only."""
    offset, upto, onwards, starts, members = grid[0], grid[2], grid[3], grid[4], grid[5]
    bits = 0
    for word in range(upto.shape[2]):
        mask = ~np.uint64(0)
        for k in range(starts[t], starts[t + 1]):
            f = members[k]
            if kinds[f]:
                mask &= met(grid, t, f, 0, sets[f], kinds, word)
            else:
                mask &= upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + low[f], word]
        while mask:
            mask &= mask - np.uint64(1)
            bits += 1
            if bits > 1:
                return False
        if starts[t] == starts[t + 1]:
            return True
    return True


@njit(cache=True)
def inside(c, clauses, kinds, point):
    """Whether a point lies in a clause's box."""
    c_low, c_high, c_set = clauses
    for f in range(len(kinds)):
        if kinds[f]:
            if not (c_set[c, f] >> np.uint64(point[f])) & np.uint64(1):
                return False
        elif point[f] < c_low[c, f] or point[f] > c_high[c, f]:
            return False
    return True


@njit(cache=True)
def propagate(clauses, used, watch, kinds, low, high, sets):
    """Tighten a node by its clauses; False where one of them cannot be left any more."""
    c_low, c_high, c_set = clauses
    count = len(kinds)
    changed = True
    while changed:
        changed = False
        for c in range(used):
            # Two faces that were open last time: mostly they still are.
            a, b = watch[c, 0], watch[c, 1]
            if (
                a != b
                and open_face(c, a, c_low, c_high, c_set, kinds, low, high, sets)
                and open_face(c, b, c_low, c_high, c_set, kinds, low, high, sets)
            ):
                continue
            first, second = -1, -1
            left_box = False
            for f in range(count):
                if kinds[f]:
                    if not sets[f] & c_set[c, f]:
                        left_box = True
                        break
                    if sets[f] & ~c_set[c, f]:
                        if first < 0:
                            first = 2 * f
                        elif second < 0:
                            second = 2 * f
                else:
                    if high[f] < c_low[c, f] or low[f] > c_high[c, f]:
                        left_box = True
                        break
                    if low[f] < c_low[c, f]:
                        if first < 0:
                            first = 2 * f
                        elif second < 0:
                            second = 2 * f
                    if high[f] > c_high[c, f]:
                        if first < 0:
                            first = 2 * f + 1
                        elif second < 0:
                            second = 2 * f + 1
            if left_box:
                continue
            if first < 0:
                return False
            if second < 0:
                f = first // 2
                if kinds[f]:
                    sets[f] &= ~c_set[c, f]
                elif first % 2:
                    low[f] = c_high[c, f] + 1
                else:
                    high[f] = c_low[c, f] - 1
                changed = True
            else:
                watch[c, 0], watch[c, 1] = first, second
    return True


@njit(cache=True)
def open_face(c, face, c_low, c_high, c_set, kinds, low, high, sets):
    """Whether a node still allows a clause's box to be left through a face."""
    f = face // 2
    if kinds[f]:
        return (sets[f] & ~c_set[c, f]) != 0
    if face % 2:
        return high[f] > c_high[c, f]
    return low[f] < c_low[c, f]


@njit(cache=True)
def price(c, face, clauses, kinds, node, residual, point, soff):
    """Residual cost of leaving a clause's box through a face, in this node."""
    c_low, c_high, c_set = clauses
    low, high, sets = node
    right, left, change = residual
    f = face // 2
    if kinds[f]:
        return change[f] if sets[f] & ~c_set[c, f] else INFINITE
    if face % 2:
        at = c_high[c, f] + 1
        return right[soff[f] + at] if at <= high[f] else INFINITE
    at = c_low[c, f] - 1
    return left[soff[f] + at] if at >= low[f] else INFINITE


@njit(cache=True)
def pay(c, clauses, kinds, node, residual, point, soff):
    """Raise the dual of a violated clause by the least residual cost of its faces; returns what was paid."""
    c_low, c_high, c_set = clauses
    low, high, sets = node
    right, left, change = residual
    least = INFINITE
    for face in range(2 * len(kinds)):
        if kinds[face // 2] and face % 2:
            continue
        least = min(least, price(c, face, clauses, kinds, node, residual, point, soff))
    if least <= 0.0 or least == INFINITE:
        return least
    for f in range(len(kinds)):
        if kinds[f]:
            if sets[f] & ~c_set[c, f]:
                change[f] -= least
            continue
        # Outermost segments are spent first: what is nearer keeps its prefix up to what is left.
        at = c_high[c, f] + 1
        if at <= high[f]:
            rest = right[soff[f] + at] - least
            for s in range(point[f] + 1, high[f] + 1):
                if s >= at:
                    right[soff[f] + s] -= least
                elif right[soff[f] + s] > rest:
                    right[soff[f] + s] = rest
        at = c_low[c, f] - 1
        if at >= low[f]:
            rest = left[soff[f] + at] - least
            for s in range(point[f] - 1, low[f] - 1, -1):
                if s <= at:
                    left[soff[f] + s] -= least
                elif left[soff[f] + s] > rest:
                    left[soff[f] + s] = rest
    return least


@njit(cache=True)
def nearest(node, kinds, home, cost, soff, point):
    """The cheapest point of a node, and its cost; an unordered feature that must change takes its first category."""
    low, high, sets = node
    total = 0.0
    for f in range(len(kinds)):
        if kinds[f]:
            if (sets[f] >> np.uint64(home[f])) & np.uint64(1):
                point[f] = home[f]
            else:
                lowest = sets[f] & (~sets[f] + np.uint64(1))
                point[f] = highest(lowest)
        else:
            point[f] = min(max(home[f], low[f]), high[f])
        total += cost[soff[f] + point[f]]
    return total


@njit(cache=True)
def cost_of(point, cost, soff):
    total = 0.0
    for f in range(len(point)):
        total += cost[soff[f] + point[f]]
    return total


@njit(cache=True)
def changes_of(point, home, weight):
    total = 0.0
    for f in range(len(point)):
        if point[f] != home[f]:
            total += weight[f]
    return total


@njit(cache=True)
def allowed(point, clauses, hard, kinds):
    """Whether a point is outside every hard clause's box."""
    for c in range(hard):
        if inside(c, clauses, kinds, point):
            return False
    return True


@njit(cache=True)
def pull_back(grid, base, kinds, cell_of, soff, home, cost, clauses, hard, point):
    """Move a right point's features back towards the factual, dearest first, as far as it stays right."""
    count = len(kinds)
    tried = np.zeros(count, np.int64)
    for _ in range(count):
        f, most = -1, 0.0
        for g in range(count):
            if not tried[g] and cost[soff[g] + point[g]] > most:
                f, most = g, cost[soff[g] + point[g]]
        if f < 0:
            return
        tried[f] = 1
        old = point[f]
        step = 0 if kinds[f] else (1 if old > home[f] else -1)
        s = home[f]
        while s != old:
            point[f] = s
            if allowed(point, clauses, hard, kinds) and score_point(grid, base, kinds, cell_of, soff, point) > TINY:
                break
            point[f] = old
            if step == 0:
                break
            s += step


@njit(cache=True)
def push(heap, keys, size, node):
    """Add a node to the binary heap of open nodes, least key first."""
    i = size
    heap[i] = node
    while i > 0:
        parent = (i - 1) // 2
        if keys[heap[parent]] <= keys[heap[i]]:
            break
        heap[parent], heap[i] = heap[i], heap[parent]
        i = parent
    return size + 1


@njit(cache=True)
def pop(heap, keys, size):
    """Take the node with the least key from the heap."""
    top = heap[0]
    size -= 1
    heap[0] = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[i]] <= keys[heap[child]]:
            break
        heap[child], heap[i] = heap[i], heap[child]
        i = child
    return top, size


# Positions in the array of counters that outlives a pause.
HEAP, TOP, FREE, CLAUSES, HARD, FOUND, WORK, NODES_SEEN, ROOT = range(9)


@njit(cache=True)
def live_faces(c, clauses, kinds, node):
    """How many faces of a clause's box the node still allows to leave through."""
    c_low, c_high, c_set = clauses
    low, high, sets = node
    count = 0
    for f in range(len(kinds)):
        if kinds[f]:
            count += (sets[f] & ~c_set[c, f]) != 0
        else:
            count += (low[f] < c_low[c, f]) + (high[f] > c_high[c, f])
    return count


@njit(cache=True)
def residuals(node, kinds, cost, soff, home, point, residual):
    """What each move away from the node's nearest point costs, before any dual has been paid."""
    low, high, sets = node
    right, left, change = residual
    for f in range(len(kinds)):
        here = cost[soff[f] + point[f]]
        if kinds[f]:
            change[f] = 0.0
            if point[f] == home[f]:
                change[f] = INFINITE
                for s in range(soff[f + 1] - soff[f]):
                    if s != home[f] and (sets[f] >> np.uint64(s)) & np.uint64(1):
                        change[f] = min(change[f], cost[soff[f] + s])
            continue
        for s in range(point[f] + 1, high[f] + 1):
            right[soff[f] + s] = cost[soff[f] + s] - here
        for s in range(low[f], point[f]):
            left[soff[f] + s] = cost[soff[f] + s] - here


@njit(cache=True)
def fix(node, kinds, soff, point, residual, slack):
    """Drop what would cost more than ``slack`` on top of the bound; whether anything was dropped."""
    low, high, sets = node
    right, left, change = residual
    dropped = False
    for f in range(len(kinds)):
        if kinds[f]:
            only = np.uint64(1) << np.uint64(point[f])
            if change[f] >= slack and sets[f] != only:
                sets[f] = only
                dropped = True
            continue
        while high[f] > point[f] and right[soff[f] + high[f]] >= slack:
            high[f] -= 1
            dropped = True
        while low[f] < point[f] and left[soff[f] + low[f]] >= slack:
            low[f] += 1
            dropped = True
    return dropped


@njit(cache=True)
def limit_changes(node, kinds, home, weight, most):
    """Keep within the bound on changed features; False where the node cannot."""
    low, high, sets = node
    forced = 0.0
    for f in range(len(kinds)):
        stays = (sets[f] >> np.uint64(home[f])) & np.uint64(1) if kinds[f] else low[f] <= home[f] <= high[f]
        if not stays:
            forced += weight[f]
    if forced > most:
        return False
    for f in range(len(kinds)):
        stays = (sets[f] >> np.uint64(home[f])) & np.uint64(1) if kinds[f] else low[f] <= home[f] <= high[f]
        if stays and forced + weight[f] > most:
            if kinds[f]:
                sets[f] = np.uint64(1) << np.uint64(home[f])
            else:
                low[f] = high[f] = home[f]
    return True


@njit(cache=True)
def through_free_faces(clauses, used, kinds, node, residual, soff, point, trial):
    """A point outside every clause's box, reached through faces whose cost is paid already; False where none is met."""
    c_low, c_high, c_set = clauses
    _low, _high, sets = node
    for f in range(len(kinds)):
        trial[f] = point[f]
    for _ in range(4):
        clean = True
        for c in range(used):
            if not inside(c, clauses, kinds, trial):
                continue
            clean = False
            moved = False
            for face in range(2 * len(kinds)):
                f = face // 2
                if kinds[f] and face % 2:
                    continue
                if price(c, face, clauses, kinds, node, residual, point, soff) > CLOSE:
                    continue
                if kinds[f]:
                    outside = sets[f] & ~c_set[c, f]
                    trial[f] = highest(outside & (~outside + np.uint64(1)))
                elif face % 2:
                    if trial[f] < point[f]:
                        continue
                    trial[f] = c_high[c, f] + 1
                else:
                    if trial[f] > point[f]:
                        continue
                    trial[f] = c_low[c, f] - 1
                moved = True
                break
            if not moved:
                return False
        if clean:
            return True
    return False


@njit(cache=True)
def keep(point, value, upper, best, counters):
    """A new incumbent, if it is better."""
    if value < upper[0]:
        upper[0] = value
        for f in range(len(point)):
            best[f] = point[f]
        counters[FOUND] = 1


@njit(cache=True)
def learn(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, clauses, watch, counters):
    """Add the strengthened box of a wrong point to the clauses; returns its number."""
    c_low, c_high, c_set = clauses
    c = counters[CLAUSES]
    strengthen(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, c_low[c], c_high[c], c_set[c])
    watch[c, 0] = watch[c, 1] = 0
    counters[CLAUSES] = c + 1
    counters[WORK] += 40 * grid[1].shape[0]
    return c


@njit(cache=True)
def add_node(low, high, sets, key, nodes, counters):
    """Keep a node for later."""
    n_low, n_high, n_set, keys, heap, free = nodes
    if counters[FREE]:
        counters[FREE] -= 1
        place = free[counters[FREE]]
    else:
        place = counters[TOP]
        counters[TOP] += 1
    for f in range(len(low)):
        n_low[place, f], n_high[place, f], n_set[place, f] = low[f], high[f], sets[f]
    keys[place] = key
    counters[HEAP] = push(heap, keys, counters[HEAP], place)


@njit(cache=True)
def branch(c, clauses, kinds, node, residual, soff, home, cost, point, key, nodes, counters):
    """One child per face of a clause's box, cheapest first; later children stay within the faces before them."""
    c_low, c_high, c_set = clauses
    low, high, sets = node
    count = len(kinds)
    prices = np.empty(2 * count)
    for face in range(2 * count):
        prices[face] = INFINITE
        if not (kinds[face // 2] and face % 2):
            prices[face] = price(c, face, clauses, kinds, node, residual, point, soff)
    spare = np.empty(count, np.int64)
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    for _ in range(2 * count):
        face = 0
        for other in range(2 * count):
            if prices[other] < prices[face]:
                face = other
        if prices[face] == INFINITE:
            return
        prices[face] = INFINITE
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if kinds[f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, c_high[c, f] + 1)
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, c_low[c, f] - 1)
            here = old_low <= child_high[f]
        if here:
            least = nearest((child_low, child_high, child_set), kinds, home, cost, soff, spare)
            add_node(child_low, child_high, child_set, max(key, least), nodes, counters)
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if kinds[f]:
            child_set[f] = old_set & c_set[c, f]
            if not child_set[f]:
                return
        elif face % 2:
            child_high[f] = min(old_high, c_high[c, f])
            if child_high[f] < child_low[f]:
                return
        else:
            child_low[f] = max(old_low, c_low[c, f])
            if child_high[f] < child_low[f]:
                return


@njit(cache=True)
def run(grid, base, kinds, cell_of, soff, cost, home, weight, most, clauses, watch, nodes, counters, best, asked, upper,
        effort):  # fmt: skip
    """Best-first branch and bound; returns why it stopped. Everything it needs to go on stands in its arguments.

    ``upper[0]`` is the incumbent's cost, ``upper[1]`` the proven lower bound.
    """
    n_low, n_high, n_set, keys, heap, free = nodes
    c_low, _c_high, _c_set = clauses
    count, trees = len(kinds), grid[1].shape[0]
    size = soff[count]
    residual = (np.empty(size), np.empty(size), np.empty(count))
    low, high = np.empty(count, np.int64), np.empty(count, np.int64)
    sets = np.empty(count, np.uint64)
    node = (low, high, sets)
    point, trial = np.empty(count, np.int64), np.empty(count, np.int64)
    violated = np.empty(c_low.shape[0], np.int64)
    live = np.empty(c_low.shape[0], np.int64)
    end = counters[WORK] + effort
    while counters[HEAP]:
        upper[1] = min(keys[heap[0]], upper[0])
        if upper[1] >= upper[0] - CLOSE:
            break
        if counters[WORK] > end:
            return PAUSED
        if counters[TOP] - counters[FREE] + 2 * count + 4 > n_low.shape[0]:
            return MORE_NODES
        if counters[CLAUSES] + ROOT_ROUNDS + 200 > c_low.shape[0]:
            return MORE_CLAUSES
        place, counters[HEAP] = pop(heap, keys, counters[HEAP])
        key = keys[place]
        for f in range(count):
            low[f], high[f], sets[f] = n_low[place, f], n_high[place, f], n_set[place, f]
        free[counters[FREE]] = place
        counters[FREE] += 1
        counters[NODES_SEEN] += 1
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        while True:
            if not propagate(clauses, counters[CLAUSES], watch, kinds, low, high, sets):
                break
            if not limit_changes(node, kinds, home, weight, most):
                break
            counters[WORK] += counters[CLAUSES] + trees
            lowest = nearest(node, kinds, home, cost, soff, point)
            if lowest >= upper[0] - CLOSE:
                break
            residuals(node, kinds, cost, soff, home, point, residual)
            total, widest = 0, 0
            for c in range(counters[CLAUSES]):
                if inside(c, clauses, kinds, point):
                    violated[total] = c
                    live[total] = live_faces(c, clauses, kinds, node)
                    widest = max(widest, live[total])
                    total += 1
            bound = lowest
            for faces in range(1, widest + 1):
                for k in range(total):
                    if live[k] == faces:
                        bound += pay(violated[k], clauses, kinds, node, residual, point, soff)
            key = max(key, bound)
            if bound >= upper[0] - CLOSE:
                break
            if fix(node, kinds, soff, point, residual, upper[0] - CLOSE - bound):
                continue
            if total == 0:
                score = score_point(grid, base, kinds, cell_of, soff, point)
                if score > TINY:
                    if changes_of(point, home, weight) <= most:
                        keep(point, lowest, upper, best, counters)
                    break
                if score >= -TINY:
                    # Too near to tell: the node goes back until the real model has spoken.
                    add_node(low, high, sets, key, nodes, counters)
                    for f in range(count):
                        asked[f] = point[f]
                    return ASK
                learn(grid, base, False, kinds, cell_of, soff, node, residual, point, point, clauses, watch, counters)
                if counters[CLAUSES] + ROOT_ROUNDS + 20 > c_low.shape[0]:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_CLAUSES
                continue
            # Disjoint cores: points that cost no more than what is paid, each wrong one a clause to be paid for.
            stop = False
            while rounds > 0:
                rounds -= 1
                counters[WORK] += counters[CLAUSES]
                if not through_free_faces(clauses, counters[CLAUSES], kinds, node, residual, soff, point, trial):
                    break
                score = score_point(grid, base, kinds, cell_of, soff, trial)
                if score > TINY:
                    if changes_of(trial, home, weight) <= most:
                        pull_back(grid, base, kinds, cell_of, soff, home, cost, clauses, counters[HARD], trial)
                        keep(trial, cost_of(trial, cost, soff), upper, best, counters)
                        if bound >= upper[0] - CLOSE:
                            stop = True
                    break
                if score >= -TINY:
                    break
                c = learn(
                    grid, base, False, kinds, cell_of, soff, node, residual, point, trial, clauses, watch, counters
                )
                if inside(c, clauses, kinds, point):
                    violated[total] = c
                    total += 1
                    paid = pay(c, clauses, kinds, node, residual, point, soff)
                    bound += paid
                    key = max(key, bound)
                    if bound >= upper[0] - CLOSE:
                        stop = True
                        break
            if stop:
                break
            if fix(node, kinds, soff, point, residual, upper[0] - CLOSE - bound):
                continue
            # Branch on the violated clause whose children gain most.
            residuals(node, kinds, cost, soff, home, point, residual)
            chosen, gain = violated[0], -1.0
            for k in range(total):
                pull = 0.0
                for face in range(2 * count):
                    if kinds[face // 2] and face % 2:
                        continue
                    p = price(violated[k], face, clauses, kinds, node, residual, point, soff)
                    if p < INFINITE:
                        pull += 1.0 / (p + 1e-9)
                quality = 1.0 / (pull + 1e-12)
                if quality > gain:
                    chosen, gain = violated[k], quality
            branch(chosen, clauses, kinds, node, residual, soff, home, cost, point, key, nodes, counters)
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def lay_number(ends, cuts, value, low, high, unit, whole, fixed, linear, quadratic):
    """States of a number: each interval between thresholds and cuts, at its value nearest to the factual's.

    Returns the grid cell, the decoded value and the cost of each state, and which one is the factual's.
    """
    size = len(ends) + len(cuts) + 1
    cell, values, costs = np.empty(size, np.int64), np.empty(size), np.empty(size)
    borders = np.unique(np.concatenate((ends, cuts)))
    home, count = 0, 0
    for i in range(len(borders) + 1):
        first = -np.inf
        if i > 0:
            first = borders[i - 1] + 1.0 if whole else np.nextafter(borders[i - 1], np.inf)
        last = borders[i] if i < len(borders) else np.inf
        own = first <= value <= last
        if own:
            nearest = value
        else:
            least, most = max(first, low), min(last, high)
            if least > most:
                continue
            nearest = min(max(value, least), most)
        gap = abs(nearest - value) / unit
        values[count] = nearest
        costs[count] = 0.0 if own else fixed + linear * gap + quadratic * gap * gap
        cell[count] = np.searchsorted(ends, nearest)
        if own:
            home = count
        count += 1
    return cell[:count], values[:count], costs[:count], home
