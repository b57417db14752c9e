"""Compiled kernels of the search over cells: leaf masks, learnt clauses, dual bound, branch and bound.

Shapes: F features, S states, T trees, W words of a leaf mask, C clauses, N nodes. A *state* is a value that a feature
may take from this factual; states of a feature are in order of value, with a cost that grows away from the factual's.
An unordered feature (a one-hot category) has a set of states instead of an interval, as a 64-bit mask.

A *clause* is a box of states on which the ensemble is surely wrong: some feature has to leave it.

Where points stand for the boxes around them, ``reach`` says which cells they touch (see ``touched``); else it is None.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.cells.masks import INFINITE, all_of, best_leaf, highest, next_face, next_outside, pop, push, toll_of
from methods.cells.neighbourhood import LOOKS, STUCK, strengthen_touched, weakest
from methods.estimators.compiling import njit_no_refcount
from methods.estimators.trees import TINY

DONE, PAUSED, ASK, MORE_NODES, MORE_CLAUSES, MORE_LOOKS = 0, 1, 2, 3, 4, 5
CLOSE = 1e-9  # costs this near are equal
ROOT_ROUNDS = 40  # cores looked for at the root; elsewhere NODE_ROUNDS
NODE_ROUNDS = 1
DETOURS = 100  # moves until a point is outside every clause's box, or is given up
GUESSES = 8  # rows pulled back to the factual
FACES = 4  # children of a node that are told apart at once


@njit_no_refcount
def score_point(grid, base, kinds, cell_of, soff, point):
    """Score of one point of states."""
    offset, values, upto, onwards, starts, members, _owner, _touch_at, _touched = grid
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


@njit_no_refcount
def assess(grid, base, kinds, cell_of, soff, point, reach):
    """Score of one point of states; with ``reach`` the least score on what it touches, infinite where all is right."""
    if reach is None:
        return score_point(grid, base, kinds, cell_of, soff, point)
    return weakest(grid, base, kinds, soff, point, reach)


@njit(cache=True)
def strengthen(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, box_low, box_high, box_set):
    """Grow the box of a wrong point, cheapest escape first, as long as it is surely wrong.

    With ``same`` the box grows only as long as every tree stays in the point's own leaf: all of it gets the same score.
    Writes the box into ``box_*``. A step looks only at the trees that tell the new state from the one before.
    """
    offset, values, upto, onwards, starts, members, owner, touch_at, touched = grid
    low, high, sets = node
    right, left, change = residual
    count, trees, words = len(kinds), values.shape[0], upto.shape[2]
    masks = np.empty((len(members), words), np.uint64)
    for k in range(len(members)):
        cell = offset[members[k]] + cell_of[soff[members[k]] + seed[members[k]]]
        for word in range(words):
            masks[k, word] = upto[owner[k], cell, word] & onwards[owner[k], cell, word]
    fresh = np.empty((len(members), words), np.uint64)
    best, trial = np.empty(trees), np.empty(trees)
    total = base
    for t in range(trees):
        best[t], _ = best_leaf(values, starts, t, masks, -1, masks)
        total += best[t]
    for f in range(count):
        box_low[f] = box_high[f] = seed[f]
        box_set[f] = np.uint64(1) << np.uint64(seed[f]) if kinds[f] else np.uint64(0)
    refused = np.zeros(count, np.uint64)
    tolls, heap, size = np.empty(2 * count), np.empty(2 * count, np.int64), 0
    for face in range(2 * count):
        tolls[face] = toll_of(
            face, kinds, soff, low, high, sets, right, left, change, point, box_low, box_high, box_set, refused
        )
        if tolls[face] >= 0.0:
            size = push(heap, tolls, size, face)
    seen = np.zeros(trees, np.int64)  # the last step that looked at the tree
    changed = np.empty(trees, np.int64)
    face, step = -1, 0
    while True:
        face, size = next_face(face, tolls, heap, size)
        if face < 0:
            return
        step += 1
        f = face // 2
        picked = np.uint64(0)
        if kinds[f]:
            picked = next_outside(soff[f + 1] - soff[f], box_set[f], refused[f], sets[f])
            first = last = highest(picked)
            end = first
        elif face % 2:
            first, end = cell_of[soff[f] + box_high[f]], cell_of[soff[f] + box_high[f] + 1]
            last = end - 1
        else:
            end, last = cell_of[soff[f] + box_low[f] - 1], cell_of[soff[f] + box_low[f]] - 1
            first = end
        grown, fine, number = total, True, 0
        start, stop = offset[f] + cell_of[soff[f] + box_low[f]], offset[f] + cell_of[soff[f] + box_high[f]]
        for part in range(2 if kinds[f] else 1):
            if part:
                first = last = seed[f]
            for j in range(touch_at[offset[f] + first], touch_at[offset[f] + last + 1]):
                k = touched[j]
                t = owner[k]
                if seen[t] == step:
                    continue
                seen[t] = step
                same_leaves = True
                for word in range(words):
                    if kinds[f]:
                        fresh[k, word] = masks[k, word] | upto[t, offset[f] + end, word]
                    elif face % 2:
                        fresh[k, word] = upto[t, offset[f] + end, word] & onwards[t, start, word]
                    else:
                        fresh[k, word] = upto[t, stop, word] & onwards[t, offset[f] + end, word]
                    same_leaves = same_leaves and fresh[k, word] == masks[k, word]
                if same_leaves:
                    continue
                trial[t], single = best_leaf(values, starts, t, masks, k, fresh)
                grown += trial[t] - best[t]
                if not single if same else grown >= -TINY:
                    fine = False
                    break
                changed[number] = k
                number += 1
            if not fine:
                break
        if fine:
            total = grown
            for j in range(number):
                k = changed[j]
                best[owner[k]] = trial[owner[k]]
                for word in range(words):
                    masks[k, word] = fresh[k, word]
            if kinds[f]:
                box_set[f] |= picked
            elif face % 2:
                box_high[f] += 1
            else:
                box_low[f] -= 1
            tolls[face] = toll_of(
                face, kinds, soff, low, high, sets, right, left, change, point, box_low, box_high, box_set, refused
            )
        elif kinds[f]:
            refused[f] |= picked
            tolls[face] = toll_of(
                face, kinds, soff, low, high, sets, right, left, change, point, box_low, box_high, box_set, refused
            )
        else:
            tolls[face] = -1.0


@njit_no_refcount
def enter(c, clauses, kinds, soff):
    """List the faces that a clause's box can be left through, and enter it in the table of who is outside whom.

    A face is numbered 2f (down, or by another category) or 2f + 1 (up). The table's rows are sets of clauses, 64 a
    word: for each state those whose box is left upwards there, then for each state those left downwards; for a
    category, those whose box it is not in.
    """
    c_low, c_high, c_set, faces, beyond, width, table = clauses
    word, mark, size = c // 64, np.uint64(1) << np.uint64(c % 64), soff[len(kinds)]
    width[c] = 0
    for f in range(len(kinds)):
        states = soff[f + 1] - soff[f]
        if kinds[f]:
            for s in range(states):
                if not (c_set[c, f] >> np.uint64(s)) & np.uint64(1):
                    table[soff[f] + s, word] |= mark
            if all_of(states) & ~c_set[c, f]:
                faces[c, width[c]] = 2 * f
                width[c] += 1
            continue
        if c_low[c, f] > 0:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f, c_low[c, f] - 1
            width[c] += 1
        for s in range(c_low[c, f]):
            table[size + soff[f] + s, word] |= mark
        if c_high[c, f] + 1 < states:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f + 1, c_high[c, f] + 1
            width[c] += 1
        for s in range(c_high[c, f] + 1, states):
            table[soff[f] + s, word] |= mark


@njit_no_refcount
def around(clauses, used, kinds, soff, point, found):
    """Write the set of the clauses whose box holds a point, words of 64."""
    table = clauses[6]
    words, size = (used + 63) // 64, soff[len(kinds)]
    for w in range(words):
        found[w] = 0
    for f in range(len(kinds)):
        if soff[f + 1] - soff[f] == 1:
            continue
        row = soff[f] + point[f]
        for w in range(words):
            found[w] |= table[row, w]
        if not kinds[f]:
            for w in range(words):
                found[w] |= table[size + row, w]
    for w in range(words):
        found[w] = ~found[w]
    if used % 64:
        found[words - 1] &= all_of(used % 64)


@njit_no_refcount
def inside(c, clauses, kinds, point):
    """Whether a point lies in a clause's box."""
    c_set, faces, beyond, width = clauses[2:6]
    for i in range(width[c]):
        face = faces[c, i]
        f = face // 2
        if kinds[f]:
            if not (c_set[c, f] >> np.uint64(point[f])) & np.uint64(1):
                return False
        elif point[f] >= beyond[c, i] if face % 2 else point[f] <= beyond[c, i]:
            return False
    return True


@njit_no_refcount
def is_open(c, i, c_set, faces, beyond, kinds, low, high, sets):
    """Whether a node still allows a clause's box to be left through its i-th face."""
    face = faces[c, i]
    f = face // 2
    if kinds[f]:
        return (sets[f] & ~c_set[c, f]) != 0
    return high[f] >= beyond[c, i] if face % 2 else low[f] <= beyond[c, i]


@njit(cache=True)
def propagate(clauses, used, kinds, soff, low, high, sets):
    """Tighten a node by its clauses; False where one of them cannot be left any more.

    All clauses at once, 64 a word: those that the node has left, and those with one and with more open faces.
    """
    c_set, faces, beyond, width, table = clauses[2:]
    words, size = (used + 63) // 64, soff[len(kinds)]
    gone, one, two = np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64)
    some, every = np.empty(words, np.uint64), np.empty(words, np.uint64)
    changed = words > 0
    while changed:
        changed = False
        for w in range(words):
            gone[w] = one[w] = two[w] = 0
        for f in range(len(kinds)):
            if soff[f + 1] - soff[f] == 1:
                continue
            if kinds[f]:
                for w in range(words):
                    some[w], every[w] = np.uint64(0), ~np.uint64(0)
                for s in range(soff[f + 1] - soff[f]):
                    if (sets[f] >> np.uint64(s)) & np.uint64(1):
                        for w in range(words):
                            some[w] |= table[soff[f] + s, w]
                            every[w] &= table[soff[f] + s, w]
                for w in range(words):
                    gone[w] |= every[w]
                    two[w] |= one[w] & some[w]
                    one[w] |= some[w]
                continue
            first, last = soff[f] + low[f], soff[f] + high[f]
            for w in range(words):
                gone[w] |= table[first, w] | table[size + last, w]
                up, down = table[last, w], table[size + first, w]
                two[w] |= (one[w] & (up | down)) | (up & down)
                one[w] |= up | down
        if used % 64:
            gone[words - 1] |= ~all_of(used % 64)
        for w in range(words):
            if ~gone[w] & ~one[w]:
                return False
        for w in range(words):
            single = ~gone[w] & ~two[w]
            while single:
                c = 64 * w + highest(single)
                single &= ~(np.uint64(1) << np.uint64(c % 64))
                for i in range(width[c]):
                    if not is_open(c, i, c_set, faces, beyond, kinds, low, high, sets):
                        continue
                    face = faces[c, i]
                    if kinds[face // 2]:
                        sets[face // 2] &= ~c_set[c, face // 2]
                    elif face % 2:
                        low[face // 2] = max(low[face // 2], beyond[c, i])
                    else:
                        high[face // 2] = min(high[face // 2], beyond[c, i])
                    changed = True
                    break
    return True


@njit_no_refcount
def price(c, i, c_set, faces, beyond, kinds, low, high, sets, right, left, change, soff):
    """Residual cost of leaving a clause's box through its i-th face, in this node."""
    face = faces[c, i]
    f = face // 2
    if kinds[f]:
        return change[f] if sets[f] & ~c_set[c, f] else INFINITE
    at = beyond[c, i]
    if face % 2:
        return right[soff[f] + at] if at <= high[f] else INFINITE
    return left[soff[f] + at] if at >= low[f] else INFINITE


@njit_no_refcount
def pay(c, clauses, kinds, node, residual, point, soff):
    """Raise the dual of a violated clause by the least residual cost of its faces; returns what was paid."""
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    least = INFINITE
    for i in range(width[c]):
        least = min(least, price(c, i, c_set, faces, beyond, kinds, low, high, sets, right, left, change, soff))
        if least <= 0.0:
            return least
    if least == INFINITE:
        return least
    for i in range(width[c]):
        face = faces[c, i]
        f = face // 2
        if kinds[f]:
            if is_open(c, i, c_set, faces, beyond, kinds, low, high, sets):
                change[f] -= least
            continue
        # Outermost segments are spent first: what is nearer keeps its prefix up to what is left.
        at = beyond[c, i]
        if face % 2 and at <= high[f]:
            rest = right[soff[f] + at] - least
            for s in range(point[f] + 1, high[f] + 1):
                if s >= at:
                    right[soff[f] + s] -= least
                elif right[soff[f] + s] > rest:
                    right[soff[f] + s] = rest
        elif face % 2 == 0 and at >= low[f]:
            rest = left[soff[f] + at] - least
            for s in range(point[f] - 1, low[f] - 1, -1):
                if s <= at:
                    left[soff[f] + s] -= least
                elif left[soff[f] + s] > rest:
                    left[soff[f] + s] = rest
    return least


@njit_no_refcount
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


@njit_no_refcount
def cost_of(point, cost, soff):
    total = 0.0
    for f in range(len(point)):
        total += cost[soff[f] + point[f]]
    return total


@njit_no_refcount
def changes_of(point, home, weight):
    total = 0.0
    for f in range(len(point)):
        if point[f] != home[f]:
            total += weight[f]
    return total


@njit_no_refcount
def allowed(point, clauses, hard, kinds):
    """Whether a point is outside every hard clause's box."""
    for c in range(hard):
        if inside(c, clauses, kinds, point):
            return False
    return True


@njit_no_refcount
def stand(grid, base, cell_of, soff, point, masks, worth):
    """Write each tree's masks and leaf value at a point of states; returns the score."""
    offset, values, upto, onwards, starts, members, owner, _touch_at, _touched = grid
    for k in range(len(members)):
        cell = offset[members[k]] + cell_of[soff[members[k]] + point[members[k]]]
        for word in range(masks.shape[1]):
            masks[k, word] = upto[owner[k], cell, word] & onwards[owner[k], cell, word]
    total = base
    for t in range(values.shape[0]):
        worth[t], _ = best_leaf(values, starts, t, masks, -1, masks)
        total += worth[t]
    return total


@njit_no_refcount
def step(grid, kinds, cell_of, soff, point, masks, worth, f, s):
    """Move a point that was stood on to another state of one feature; returns by how much the score changes."""
    offset, values, upto, onwards, starts, _members, owner, touch_at, touched = grid
    old, new = cell_of[soff[f] + point[f]], cell_of[soff[f] + s]
    point[f] = s
    if old == new:
        return 0.0
    first, last = min(old, new), max(old, new)
    cell, change = offset[f] + new, 0.0
    for place in range(first, last + 1):
        if place != first and place != last if kinds[f] else place == last:
            continue
        for j in range(touch_at[offset[f] + place], touch_at[offset[f] + place + 1]):
            k = touched[j]
            t = owner[k]
            for word in range(masks.shape[1]):
                masks[k, word] = upto[t, cell, word] & onwards[t, cell, word]
            value, _ = best_leaf(values, starts, t, masks, -1, masks)
            change += value - worth[t]
            worth[t] = value
    return change


@njit(cache=True)
def pull_back(grid, base, kinds, cell_of, soff, home, cost, clauses, hard, order, partly, point):
    """Move a right point's features back to the factual, or ``partly`` so, in an order, while it stays right."""
    masks, worth = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64), np.empty(grid[1].shape[0])
    score = stand(grid, base, cell_of, soff, point, masks, worth)
    for f in order:
        old, s = point[f], home[f]
        if old == s:
            continue
        way = 1 if old > s else -1
        while True:
            score += step(grid, kinds, cell_of, soff, point, masks, worth, f, s)
            if s == old or (score > TINY and allowed(point, clauses, hard, kinds)):
                break
            s = s + way if partly and not kinds[f] else old


@njit(cache=True)
def dearest_first(point, cost, soff):
    """The features by what their states cost, the dearest first."""
    paid = np.empty(len(point))
    for f in range(len(point)):
        paid[f] = -cost[soff[f] + point[f]]
    return np.argsort(paid)


@njit_no_refcount
def spent(reach, trees):
    """Units of work that the adversary has done since it was last asked."""
    looks = reach[20][LOOKS]
    reach[20][LOOKS] = 0
    return looks * trees


@njit_no_refcount
def pull_in(grid, base, kinds, soff, home, cost, clauses, used, point, held, reach):
    """``pull_back`` of a point with all that it touches; boxes known to be wrong are left out without a look."""
    count = len(kinds)
    for _ in range(count):
        # Dearest first.
        f, most = -1, -1.0
        for g in range(count):
            here = cost[soff[g] + point[g]]
            if here > most and not reach[21][g]:
                f, most = g, here
        if f < 0 or most <= 0.0:
            break
        reach[21][f] = 1
        old = point[f]
        way = 1 if old > home[f] else -1
        s = home[f]
        while s != old:
            point[f] = s
            around(clauses, used, kinds, soff, point, held)
            free = True
            for w in range((used + 63) // 64):
                if held[w]:
                    free = False
                    break
            if free and weakest(grid, base, kinds, soff, point, reach) > TINY and not reach[20][STUCK]:
                break
            s = old if kinds[f] else s + way
        point[f] = s
    for g in range(count):
        reach[21][g] = 0


@njit(cache=True)
def cheapest_states(offset, kinds, cell_of, soff, cost, sets):
    """Each cell's cheapest state in reach, or -1."""
    count = len(kinds)
    state_at = np.full(offset[count], -1)
    for f in range(count):
        for s in range(soff[f + 1] - soff[f]):
            cell = offset[f] + cell_of[soff[f] + s]
            if kinds[f] and not (sets[f] >> np.uint64(s)) & np.uint64(1):
                continue
            if state_at[cell] < 0 or cost[soff[f] + s] < cost[soff[f] + state_at[cell]]:
                state_at[cell] = s
    return state_at


@njit(cache=True)
def improve(
    grid, base, kinds, cell_of, soff, home, cost, weight, most, clauses, hard, rows, sets, draws, upper, best, counters
):  # fmt: skip
    """Look for a better incumbent: some of a row's cells are put into it, and changes taken back in random order.

    What a row has out of reach is left as it is. Of the numbers drawn, shape (tries, 2 + features), the first tells the
    row, the second how much of it; every other try starts from the factual and takes all of it.
    """
    offset = grid[0]
    count = len(kinds)
    state_at = cheapest_states(offset, kinds, cell_of, soff, cost, sets)
    point = np.empty(count, np.int64)
    for t in range(draws.shape[0]):
        r = int(draws[t, 0] * rows.shape[0])
        mixed = counters[FOUND] and t % 2
        for f in range(count):
            point[f] = best[f] if mixed else home[f]
            s = state_at[offset[f] + rows[r, f]]
            if s >= 0 and (not mixed or draws[t, 2 + f] < draws[t, 1]):
                point[f] = s
        if not allowed(point, clauses, hard, kinds):
            continue
        if score_point(grid, base, kinds, cell_of, soff, point) <= TINY:
            continue
        pull_back(
            grid, base, kinds, cell_of, soff, home, cost, clauses, hard, np.argsort(draws[t, 2:]), False, point
        )  # fmt: skip
        order = dearest_first(point, cost, soff)
        pull_back(grid, base, kinds, cell_of, soff, home, cost, clauses, hard, order, True, point)
        if changes_of(point, home, weight) <= most:
            keep(point, cost_of(point, cost, soff), upper, best, counters)


@njit(cache=True)
def guess(
    grid, base, kinds, cell_of, soff, home, cost, weight, most, clauses, hard, rows, sets, upper, best, counters
):  # fmt: skip
    """Incumbents to begin with: single changes, and the cheapest of some rows of cells, pulled back to the factual.

    What a row has out of reach is left as it is. None of this decides the optimum: it bounds what is worth looking at.
    """
    offset = grid[0]
    count = len(kinds)
    masks, worth = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64), np.empty(grid[1].shape[0])
    point = home.copy()
    score = stand(grid, base, cell_of, soff, point, masks, worth)
    for f in range(count):
        if weight[f] > most:
            continue
        for way in (1, -1):
            s = home[f] + way
            while 0 <= s < soff[f + 1] - soff[f] and cost[soff[f] + s] < upper[0]:
                if not kinds[f] or (sets[f] >> np.uint64(s)) & np.uint64(1):
                    score += step(grid, kinds, cell_of, soff, point, masks, worth, f, s)
                    if score > TINY and allowed(point, clauses, hard, kinds):
                        keep(point, cost[soff[f] + s], upper, best, counters)
                s += way
            score += step(grid, kinds, cell_of, soff, point, masks, worth, f, home[f])
    state_at = cheapest_states(offset, kinds, cell_of, soff, cost, sets)
    chosen = np.full(GUESSES, -1)
    prices = np.full(GUESSES, INFINITE)
    for r in range(rows.shape[0]):
        price = 0.0
        for f in range(count):
            s = state_at[offset[f] + rows[r, f]]
            if s >= 0:
                price += cost[soff[f] + s]
            if price >= prices[GUESSES - 1]:
                break
        if price >= prices[GUESSES - 1]:
            continue
        place = GUESSES - 1
        while place > 0 and prices[place - 1] > price:
            prices[place], chosen[place] = prices[place - 1], chosen[place - 1]
            place -= 1
        prices[place], chosen[place] = price, r
    for r in chosen:
        if r < 0:
            break
        for f in range(count):
            s = state_at[offset[f] + rows[r, f]]
            point[f] = s if s >= 0 else home[f]
        if not allowed(point, clauses, hard, kinds):
            continue
        if score_point(grid, base, kinds, cell_of, soff, point) <= TINY:
            continue
        order = dearest_first(point, cost, soff)
        pull_back(grid, base, kinds, cell_of, soff, home, cost, clauses, hard, order, True, point)
        if changes_of(point, home, weight) <= most:
            keep(point, cost_of(point, cost, soff), upper, best, counters)


@njit(cache=True)
def guess_touched(grid, base, kinds, soff, home, cost, weight, most, clauses, rows, upper, best, counters, reach):
    """Incumbents to begin with where all that a point touches counts: the first right ones of some rows of states."""
    used, found = counters[CLAUSES], 0
    point = np.empty(len(kinds), np.int64)
    held = np.empty(clauses[6].shape[1], np.uint64)
    for r in range(rows.shape[0]):
        for f in range(len(kinds)):
            point[f] = rows[r, f]
        around(clauses, used, kinds, soff, point, held)
        free = True
        for w in range((used + 63) // 64):
            free &= held[w] == 0
        if not free or weakest(grid, base, kinds, soff, point, reach) <= TINY or reach[20][STUCK]:
            continue
        pull_in(grid, base, kinds, soff, home, cost, clauses, used, point, held, reach)
        if changes_of(point, home, weight) <= most:
            keep(point, cost_of(point, cost, soff), upper, best, counters)
            found += 1
        if found == GUESSES:
            break
    counters[WORK] += spent(reach, grid[1].shape[0])


# Positions in the array of counters that outlives a pause.
HEAP, TOP, FREE, CLAUSES, HARD, FOUND, WORK, NODES_SEEN, ROOT = range(9)


@njit_no_refcount
def live_faces(c, clauses, kinds, node):
    """How many faces of a clause's box the node still allows to leave through."""
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    count = 0
    for i in range(width[c]):
        count += is_open(c, i, c_set, faces, beyond, kinds, low, high, sets)
    return count


@njit_no_refcount
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


@njit_no_refcount
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


@njit_no_refcount
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


@njit_no_refcount
def through_free_faces(clauses, used, kinds, node, residual, soff, point, held, trial):
    """A point outside every clause's box, reached through faces whose cost is paid already; False where none is met.

    ``held`` is room for the set of the clauses that hold the point on its way.
    """
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    for f in range(len(kinds)):
        trial[f] = point[f]
    for _ in range(DETOURS):
        around(clauses, used, kinds, soff, trial, held)
        c = -1
        for w in range((used + 63) // 64):
            if held[w]:
                c = 64 * w + highest(held[w])
                break
        if c < 0:
            return True
        moved = False
        for i in range(width[c]):
            face = faces[c, i]
            f = face // 2
            if price(c, i, c_set, faces, beyond, kinds, low, high, sets, right, left, change, soff) > CLOSE:
                continue
            if kinds[f]:
                outside = sets[f] & ~c_set[c, f]
                trial[f] = highest(outside & (~outside + np.uint64(1)))
            elif trial[f] < point[f] if face % 2 else trial[f] > point[f]:
                continue
            else:
                trial[f] = beyond[c, i]
            moved = True
            break
        if not moved:
            return False
    return False


@njit_no_refcount
def keep(point, value, upper, best, counters):
    """A new incumbent, if it is better."""
    if value < upper[0]:
        upper[0] = value
        for f in range(len(point)):
            best[f] = point[f]
        counters[FOUND] = 1


@njit(cache=True)
def learn(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, clauses, counters, reach=None):
    """Add the strengthened box of a wrong point, or of the cells in ``reach``, to the clauses; returns its number."""
    c_low, c_high, c_set = clauses[:3]
    c = counters[CLAUSES]
    if reach is None:
        strengthen(grid, base, same, kinds, cell_of, soff, node, residual, point, seed, c_low[c], c_high[c], c_set[c])
    else:
        strengthen_touched(grid, base, same, kinds, soff, node, residual, point, reach, c_low[c], c_high[c], c_set[c])
    enter(c, clauses, kinds, soff)
    counters[CLAUSES] = c + 1
    counters[WORK] += 40 * grid[1].shape[0]
    return c


@njit_no_refcount
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
    """One child per face of a clause's box, cheapest first; later children stay within the faces before them.

    Those beyond ``FACES`` stay together in one node, to be told apart when its turn comes: most never have one.
    """
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    prices = np.empty(width[c])
    for k in range(width[c]):
        prices[k] = price(c, k, c_set, faces, beyond, kinds, low, high, sets, right, left, change, soff)
    spare = np.empty(len(kinds), np.int64)
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    rest_low, rest_high, rest_set = low.copy(), high.copy(), sets.copy()
    made, least_left = 0, INFINITE
    for _ in range(width[c]):
        i = np.argmin(prices)
        if prices[i] == INFINITE:
            break
        prices[i] = INFINITE
        face = faces[c, i]
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if kinds[f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, beyond[c, i])
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, beyond[c, i])
            here = old_low <= child_high[f]
        if here:
            least = max(key, nearest((child_low, child_high, child_set), kinds, home, cost, soff, spare))
            if made < FACES:
                add_node(child_low, child_high, child_set, least, nodes, counters)
            else:
                if made == FACES:
                    rest_low[:], rest_high[:], rest_set[:] = child_low, child_high, child_set
                    rest_low[f], rest_high[f], rest_set[f] = old_low, old_high, old_set
                least_left = min(least_left, least)
            made += 1
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if kinds[f]:
            child_set[f] = old_set & c_set[c, f]
            empty = child_set[f] == 0
        elif face % 2:
            child_high[f] = min(old_high, beyond[c, i] - 1)
            empty = child_high[f] < child_low[f]
        else:
            child_low[f] = max(old_low, beyond[c, i] + 1)
            empty = child_high[f] < child_low[f]
        if empty:
            break
    if made > FACES:
        add_node(rest_low, rest_high, rest_set, least_left, nodes, counters)


@njit(cache=True)
def run(grid, base, kinds, cell_of, soff, cost, home, weight, most, clauses, nodes, counters, best, asked, upper,
        effort, reach=None):  # fmt: skip
    """Best-first branch and bound; returns why it stopped. Everything it needs to go on stands in its arguments.

    ``upper[0]`` is the incumbent's cost, ``upper[1]`` the proven lower bound.
    """
    n_low, n_high, n_set, keys, heap, free = nodes
    c_set, faces, beyond, width = clauses[2:6]
    count, trees, room = len(kinds), grid[1].shape[0], len(width)
    size = soff[count]
    right, left, change = np.empty(size), np.empty(size), np.empty(count)
    residual = (right, left, change)
    low, high = np.empty(count, np.int64), np.empty(count, np.int64)
    sets = np.empty(count, np.uint64)
    node = (low, high, sets)
    point, trial = np.empty(count, np.int64), np.empty(count, np.int64)
    violated, order, live = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    held = np.empty(clauses[6].shape[1], np.uint64)
    end = counters[WORK] + effort
    while counters[HEAP]:
        upper[1] = min(keys[heap[0]], upper[0])
        if upper[1] >= upper[0] - CLOSE:
            break
        if counters[WORK] > end:
            return PAUSED
        if counters[TOP] - counters[FREE] + FACES + 4 > n_low.shape[0]:
            return MORE_NODES
        if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
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
            if not propagate(clauses, counters[CLAUSES], kinds, soff, low, high, sets):
                break
            if not limit_changes(node, kinds, home, weight, most):
                break
            counters[WORK] += counters[CLAUSES] + trees
            lowest = nearest(node, kinds, home, cost, soff, point)
            if lowest >= upper[0] - CLOSE:
                break
            residuals(node, kinds, cost, soff, home, point, residual)
            total = 0
            ends = np.zeros(2 * count + 1, np.int64)  # of violated clauses by their live faces, fewest first
            around(clauses, counters[CLAUSES], kinds, soff, point, held)
            for w in range((counters[CLAUSES] + 63) // 64):
                while held[w]:
                    lowest_bit = held[w] & (~held[w] + np.uint64(1))
                    held[w] ^= lowest_bit
                    violated[total] = 64 * w + highest(lowest_bit)
                    live[total] = live_faces(violated[total], clauses, kinds, node)
                    ends[live[total]] += 1
                    total += 1
            ends = np.cumsum(ends)
            for k in range(total - 1, -1, -1):
                ends[live[k]] -= 1
                order[ends[live[k]]] = violated[k]
            bound = lowest
            for k in range(total):
                bound += pay(order[k], clauses, kinds, node, residual, point, soff)
            key = max(key, bound)
            if bound >= upper[0] - CLOSE:
                break
            if fix(node, kinds, soff, point, residual, upper[0] - CLOSE - bound):
                continue
            if total == 0:
                score = assess(grid, base, kinds, cell_of, soff, point, reach)
                if reach is not None:
                    counters[WORK] += spent(reach, trees)
                    if reach[20][STUCK]:
                        add_node(low, high, sets, key, nodes, counters)
                        return MORE_LOOKS
                if score > TINY:
                    if changes_of(point, home, weight) <= most:
                        keep(point, lowest, upper, best, counters)
                    break
                if score >= -TINY:
                    # Too near to tell: the node goes back until the real model has spoken.
                    add_node(low, high, sets, key, nodes, counters)
                    for f in range(count):
                        asked[f] = point[f] if reach is None else reach[18][f]
                    return ASK
                learn(grid, base, False, kinds, cell_of, soff, node, residual, point, point, clauses, counters, reach)
                if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_CLAUSES
                continue
            # Disjoint cores: points that cost no more than what is paid, each wrong one a clause to be paid for.
            stop = False
            while rounds > 0:
                rounds -= 1
                counters[WORK] += counters[CLAUSES]
                if not through_free_faces(clauses, counters[CLAUSES], kinds, node, residual, soff, point, held, trial):
                    break
                score = assess(grid, base, kinds, cell_of, soff, trial, reach)
                if reach is not None:
                    counters[WORK] += spent(reach, trees)
                    if reach[20][STUCK]:
                        break
                if score > TINY:
                    if changes_of(trial, home, weight) <= most:
                        if reach is None:
                            pull_back(
                                grid, base, kinds, cell_of, soff, home, cost, clauses, counters[HARD],
                                dearest_first(trial, cost, soff), True, trial,
                            )  # fmt: skip
                        else:
                            used = counters[CLAUSES]
                            pull_in(grid, base, kinds, soff, home, cost, clauses, used, trial, held, reach)
                            counters[WORK] += spent(reach, trees)
                        keep(trial, cost_of(trial, cost, soff), upper, best, counters)
                        if bound >= upper[0] - CLOSE:
                            stop = True
                    break
                if score >= -TINY:
                    break
                c = learn(
                    grid, base, False, kinds, cell_of, soff, node, residual, point, trial, clauses, counters, reach
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
                for i in range(width[violated[k]]):
                    p = price(violated[k], i, c_set, faces, beyond, kinds, low, high, sets, right, left, change, soff)
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
    borders = np.unique(np.concatenate((ends, cuts))) if len(cuts) else ends
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


@njit(cache=True)
def lay_numbers(ends, ends_at, cuts, cuts_at, values, low, high, unit, whole, fixed, linear, quadratic):
    """``lay_number`` of several numbers: flat arrays of states, where each number's begin, and the factual's states."""
    count = len(values)
    room = len(ends) + len(cuts) + count
    cells, places, costs = np.empty(room, np.int64), np.empty(room), np.empty(room)
    at, home = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    for j in range(count):
        cell, place, cost, home[j] = lay_number(
            ends[ends_at[j] : ends_at[j + 1]], cuts[cuts_at[j] : cuts_at[j + 1]], values[j], low[j], high[j], unit[j],
            whole[j], fixed[j], linear[j], quadratic[j],
        )  # fmt: skip
        first, last = at[j], at[j] + len(cell)
        cells[first:last], places[first:last], costs[first:last] = cell, place, cost
        at[j + 1] = last
    return cells[: at[count]], places[: at[count]], costs[: at[count]], at, home
