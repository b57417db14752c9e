"""Compiled kernels of the search over cells: leaf masks, learnt clauses, dual bound, branch and bound.

Shapes: F features, S states, T trees, W words of a leaf mask, C clauses, N nodes. A *state* is a value that a feature
may take from this factual; states of a feature are in order of value, with a cost that grows away from the factual's.
An unordered feature (a one-hot category) has a set of states instead of an interval, as a 64-bit mask.

A point is right where each of one or more sums of trees is above 0: one for a bound, two for an interval, and one for
each other class that the wanted one has to beat. ``sums`` says which sum a tree is part of, in order, shape (T,); its
*score* is the least sum.

A *clause* is a box of states on which the ensemble is proven wrong: some feature has to leave it.

Where a point has to be right in a neighbourhood, ``neighbourhood`` lists the cells that its states touch (see the
module of that name); else it is None.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from methods.cells.masks import (
    ASK,
    DONE,
    FREE,
    HEAP,
    INFINITE,
    MORE_CLAUSES,
    MORE_LOOKS,
    MORE_NODES,
    PAUSED,
    TOP,
    add_node,
    all_of,
    best_leaf,
    first_from,
    highest,
    list_faces,
    next_face,
    next_outside,
    residual_cost,
    take_node,
)
from methods.cells.neighbourhood import LOOKS, STUCK, strengthen_neighbourhood, weakest
from methods.estimators.trees import TINY

CLOSE = 1e-9  # costs this near are equal
ROOT_ROUNDS = 40  # cores looked for at the root; elsewhere NODE_ROUNDS
NODE_ROUNDS = 1
DETOURS = 100  # moves until a point is outside every clause's box, or is given up
GUESSES = 8  # rows pulled back to the factual
FACES = 4  # children that a node gets at once


@njit_no_refcount
def score_point(grid, base, sums, unordered, cell_of, state_start, point):
    """Score of one point of states, and which sum that is."""
    offset, values, upto, onwards, starts, members, _owner, _border_start, _border_entries = grid
    words = upto.shape[2]
    total, least, which = base, INFINITE, 0
    for t in range(values.shape[0]):
        if t and sums[t] != sums[t - 1]:
            if total < least:
                least, which = total, sums[t - 1]
            total = base
        if starts[t] == starts[t + 1]:
            total += values[t, values.shape[1] - 1]
            continue
        for word in range(words):
            mask = ~np.uint64(0)
            for k in range(starts[t], starts[t + 1]):
                f = members[k]
                cell = offset[f] + cell_of[state_start[f] + point[f]]
                mask &= upto[t, cell, word] & onwards[t, cell, word]
                if not mask:
                    break
            if mask:
                total += values[t, word * 64 + highest(mask)]
                break
    return (total, sums[-1]) if total < least else (least, which)


@njit_no_refcount
def assess(grid, base, sums, unordered, cell_of, state_start, point, neighbourhood):
    """Score of one point of states, and of which sum; with ``neighbourhood`` the least around it, as ``weakest``."""
    if neighbourhood is None:
        return score_point(grid, base, sums, unordered, cell_of, state_start, point)
    return weakest(grid, base, unordered, state_start, point, neighbourhood), 0


@njit(cache=True)
def strengthen(
    grid, base, sums, which, same, unordered, cell_of, state_start, node, residual, point, seed, box_low, box_high,
    box_set,
):  # fmt: skip
    """Grow the box of a wrong point, cheapest escape first, as long as it is proven wrong by one sum.

    With ``same`` the box grows only as long as every tree stays in the point's own leaf: all of it gets the same score.
    Writes the box into ``box_*``. A step looks only at the trees that tell the new state from the one before.
    """
    offset, values, upto, onwards, starts, members, owner, border_start, border_entries = grid
    sets = node[2]
    count, trees, words = len(unordered), values.shape[0], upto.shape[2]
    masks, fresh = np.empty((len(members), words), np.uint64), np.empty((len(members), words), np.uint64)
    best, trial, totals = np.empty(trees), np.empty(trees), np.empty(sums[-1] + 1)
    evaluate(grid, base, sums, cell_of, state_start, seed, masks, best, totals)
    total = totals[which]
    for f in range(count):
        box_low[f] = box_high[f] = seed[f]
        box_set[f] = np.uint64(1) << np.uint64(seed[f]) if unordered[f] else np.uint64(0)
    refused = np.zeros(count, np.uint64)
    box = (box_low, box_high, box_set)
    residual_costs, heap = np.empty(2 * count), np.empty(2 * count, np.int64)
    size = list_faces(unordered, state_start, node, residual, point, box, refused, residual_costs, heap)
    seen = np.zeros(trees, np.int64)  # the last step that looked at the tree
    changed = np.empty(trees, np.int64)
    face, step = -1, 0
    while True:
        face, size = next_face(face, residual_costs, heap, size)
        if face < 0:
            return
        step += 1
        f = face // 2
        picked = np.uint64(0)
        if unordered[f]:
            picked = next_outside(state_start[f + 1] - state_start[f], box_set[f], refused[f], sets[f])
            first = last = highest(picked)
            end = first
        elif face % 2:
            first, end = cell_of[state_start[f] + box_high[f]], cell_of[state_start[f] + box_high[f] + 1]
            last = end - 1
        else:
            end, last = cell_of[state_start[f] + box_low[f] - 1], cell_of[state_start[f] + box_low[f]] - 1
            first = end
        grown, fine, number = total, True, 0
        start = offset[f] + cell_of[state_start[f] + box_low[f]]
        stop = offset[f] + cell_of[state_start[f] + box_high[f]]
        for part in range(2 if unordered[f] else 1):
            if part:
                first = last = seed[f]
            for j in range(border_start[offset[f] + first], border_start[offset[f] + last + 1]):
                k = border_entries[j]
                t = owner[k]
                if seen[t] == step or (sums[t] != which and not same):
                    continue
                seen[t] = step
                same_leaves = True
                for word in range(words):
                    if unordered[f]:
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
            if unordered[f]:
                box_set[f] |= picked
            elif face % 2:
                box_high[f] += 1
            else:
                box_low[f] -= 1
        elif unordered[f]:
            refused[f] |= picked
        residual_costs[face] = -1.0
        if fine or unordered[f]:
            residual_costs[face] = residual_cost(face, unordered, state_start, node, residual, point, box, refused)


@njit_no_refcount
def enter(c, clauses, unordered, state_start):
    """List the faces through which a clause's box can be left, and enter it in the table of clauses by state.

    A face is numbered 2f (down, or by another category) or 2f + 1 (up). The table's rows are sets of clauses, 64 a
    word: for each state those whose box is left upwards there, then for each state those left downwards; for a
    category, those whose box it is not in.
    """
    c_low, c_high, c_set, faces, beyond, width, table = clauses
    word, mark, size = c // 64, np.uint64(1) << np.uint64(c % 64), state_start[len(unordered)]
    width[c] = 0
    for f in range(len(unordered)):
        states = state_start[f + 1] - state_start[f]
        if unordered[f]:
            for s in range(states):
                if not (c_set[c, f] >> np.uint64(s)) & np.uint64(1):
                    table[state_start[f] + s, word] |= mark
            if all_of(states) & ~c_set[c, f]:
                faces[c, width[c]] = 2 * f
                width[c] += 1
            continue
        if c_low[c, f] > 0:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f, c_low[c, f] - 1
            width[c] += 1
        for s in range(c_low[c, f]):
            table[size + state_start[f] + s, word] |= mark
        if c_high[c, f] + 1 < states:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f + 1, c_high[c, f] + 1
            width[c] += 1
        for s in range(c_high[c, f] + 1, states):
            table[state_start[f] + s, word] |= mark


@njit_no_refcount
def clauses_around(clauses, used, unordered, state_start, point, found):
    """Write the set of the clauses whose box holds a point, words of 64."""
    table = clauses[6]
    words, size = (used + 63) // 64, state_start[len(unordered)]
    for w in range(words):
        found[w] = 0
    for f in range(len(unordered)):
        if state_start[f + 1] - state_start[f] == 1:
            continue
        row = state_start[f] + point[f]
        for w in range(words):
            found[w] |= table[row, w]
        if not unordered[f]:
            for w in range(words):
                found[w] |= table[size + row, w]
    for w in range(words):
        found[w] = ~found[w]
    if used % 64:
        found[words - 1] &= all_of(used % 64)


@njit_no_refcount
def inside(c, clauses, unordered, point):
    """Whether a point lies in a clause's box."""
    c_set, faces, beyond, width = clauses[2:6]
    for i in range(width[c]):
        face = faces[c, i]
        f = face // 2
        if unordered[f]:
            if not (c_set[c, f] >> np.uint64(point[f])) & np.uint64(1):
                return False
        elif point[f] >= beyond[c, i] if face % 2 else point[f] <= beyond[c, i]:
            return False
    return True


@njit_no_refcount
def is_open(c, i, c_set, faces, beyond, unordered, low, high, sets):
    """Whether a node still allows a clause's box to be left through its i-th face."""
    face = faces[c, i]
    f = face // 2
    if unordered[f]:
        return (sets[f] & ~c_set[c, f]) != 0
    return high[f] >= beyond[c, i] if face % 2 else low[f] <= beyond[c, i]


@njit(cache=True)
def propagate(clauses, used, unordered, state_start, low, high, sets):
    """Tighten a node by its clauses; False where one of them cannot be left any more.

    All clauses at once, 64 a word: those that the node has left, and those with one and with more open faces.
    """
    c_set, faces, beyond, width, table = clauses[2:]
    words, size = (used + 63) // 64, state_start[len(unordered)]
    gone, one, two = np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64)
    some, every = np.empty(words, np.uint64), np.empty(words, np.uint64)
    changed = words > 0
    while changed:
        changed = False
        for w in range(words):
            gone[w] = one[w] = two[w] = 0
        for f in range(len(unordered)):
            if state_start[f + 1] - state_start[f] == 1:
                continue
            if unordered[f]:
                for w in range(words):
                    some[w], every[w] = np.uint64(0), ~np.uint64(0)
                for s in range(state_start[f + 1] - state_start[f]):
                    if (sets[f] >> np.uint64(s)) & np.uint64(1):
                        for w in range(words):
                            some[w] |= table[state_start[f] + s, w]
                            every[w] &= table[state_start[f] + s, w]
                for w in range(words):
                    gone[w] |= every[w]
                    two[w] |= one[w] & some[w]
                    one[w] |= some[w]
                continue
            first, last = state_start[f] + low[f], state_start[f] + high[f]
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
                    if not is_open(c, i, c_set, faces, beyond, unordered, low, high, sets):
                        continue
                    face = faces[c, i]
                    if unordered[face // 2]:
                        sets[face // 2] &= ~c_set[c, face // 2]
                    elif face % 2:
                        low[face // 2] = max(low[face // 2], beyond[c, i])
                    else:
                        high[face // 2] = min(high[face // 2], beyond[c, i])
                    changed = True
                    break
    return True


@njit_no_refcount
def face_cost(c, i, c_set, faces, beyond, unordered, low, high, sets, right, left, change, state_start):
    """Residual cost of leaving a clause's box through its i-th face, in this node."""
    face = faces[c, i]
    f = face // 2
    if unordered[f]:
        return change[f] if sets[f] & ~c_set[c, f] else INFINITE
    at = beyond[c, i]
    if face % 2:
        return right[state_start[f] + at] if at <= high[f] else INFINITE
    return left[state_start[f] + at] if at >= low[f] else INFINITE


@njit_no_refcount
def raise_dual(c, clauses, unordered, node, residual, point, state_start):
    """Raise the dual of a violated clause by the least residual cost of its faces; returns by how much."""
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    least = INFINITE
    for i in range(width[c]):
        rest = face_cost(c, i, c_set, faces, beyond, unordered, low, high, sets, right, left, change, state_start)
        least = min(least, rest)
        if least <= 0.0:
            return least
    if least == INFINITE:
        return least
    for i in range(width[c]):
        face = faces[c, i]
        f = face // 2
        if unordered[f]:
            if is_open(c, i, c_set, faces, beyond, unordered, low, high, sets):
                change[f] -= least
            continue
        # Outermost segments are spent first: what is nearer keeps its prefix up to what is left.
        at = beyond[c, i]
        if face % 2 and at <= high[f]:
            rest = right[state_start[f] + at] - least
            for s in range(point[f] + 1, high[f] + 1):
                if s >= at:
                    right[state_start[f] + s] -= least
                elif right[state_start[f] + s] > rest:
                    right[state_start[f] + s] = rest
        elif face % 2 == 0 and at >= low[f]:
            rest = left[state_start[f] + at] - least
            for s in range(point[f] - 1, low[f] - 1, -1):
                if s <= at:
                    left[state_start[f] + s] -= least
                elif left[state_start[f] + s] > rest:
                    left[state_start[f] + s] = rest
    return least


@njit_no_refcount
def nearest(node, unordered, factual_state, cost, state_start, point):
    """The cheapest point of a node, and its cost; an unordered feature that must change takes its first category."""
    low, high, sets = node
    total = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if (sets[f] >> np.uint64(factual_state[f])) & np.uint64(1):
                point[f] = factual_state[f]
            else:
                lowest = sets[f] & (~sets[f] + np.uint64(1))
                point[f] = highest(lowest)
        else:
            point[f] = min(max(factual_state[f], low[f]), high[f])
        total += cost[state_start[f] + point[f]]
    return total


@njit_no_refcount
def cost_of(point, cost, state_start):
    total = 0.0
    for f in range(len(point)):
        total += cost[state_start[f] + point[f]]
    return total


@njit_no_refcount
def changes_of(point, factual_state, weight):
    total = 0.0
    for f in range(len(point)):
        if point[f] != factual_state[f]:
            total += weight[f]
    return total


@njit_no_refcount
def allowed(point, clauses, hard, unordered):
    """Whether a point is outside every hard clause's box."""
    for c in range(hard):
        if inside(c, clauses, unordered, point):
            return False
    return True


@njit_no_refcount
def least_of(totals):
    """The least of some numbers."""
    least = totals[0]
    for total in totals[1:]:
        least = min(least, total)
    return least


@njit_no_refcount
def evaluate(grid, base, sums, cell_of, state_start, point, masks, leaf_values, totals):
    """Write each tree's masks and leaf value at a point of states, and each sum; returns the score."""
    offset, values, upto, onwards, starts, members, owner, _border_start, _border_entries = grid
    for k in range(len(members)):
        cell = offset[members[k]] + cell_of[state_start[members[k]] + point[members[k]]]
        for word in range(masks.shape[1]):
            masks[k, word] = upto[owner[k], cell, word] & onwards[owner[k], cell, word]
    for i in range(len(totals)):
        totals[i] = base
    for t in range(values.shape[0]):
        leaf_values[t], _ = best_leaf(values, starts, t, masks, -1, masks)
        totals[sums[t]] += leaf_values[t]
    return least_of(totals)


@njit_no_refcount
def step(grid, sums, unordered, cell_of, state_start, point, masks, leaf_values, totals, f, s):
    """Move a point that was evaluated to another state of one feature; returns the score."""
    offset, values, upto, onwards, starts, _members, owner, border_start, border_entries = grid
    old, new = cell_of[state_start[f] + point[f]], cell_of[state_start[f] + s]
    point[f] = s
    if old == new:
        return least_of(totals)
    first, last = min(old, new), max(old, new)
    cell = offset[f] + new
    for place in range(first, last + 1):
        if place != first and place != last if unordered[f] else place == last:
            continue
        for j in range(border_start[offset[f] + place], border_start[offset[f] + place + 1]):
            k = border_entries[j]
            t = owner[k]
            for word in range(masks.shape[1]):
                masks[k, word] = upto[t, cell, word] & onwards[t, cell, word]
            value, _ = best_leaf(values, starts, t, masks, -1, masks)
            totals[sums[t]] += value - leaf_values[t]
            leaf_values[t] = value
    return least_of(totals)


@njit(cache=True)
def pull_back(
    grid, base, sums, unordered, cell_of, state_start, factual_state, cost, clauses, hard, order, partly, point
):
    """Move a right point's features back to the factual, or ``partly`` so, in an order, while it stays right."""
    masks, leaf_values = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64), np.empty(grid[1].shape[0])
    totals = np.empty(sums[-1] + 1)
    evaluate(grid, base, sums, cell_of, state_start, point, masks, leaf_values, totals)
    for f in order:
        old, s = point[f], factual_state[f]
        if old == s:
            continue
        way = 1 if old > s else -1
        while True:
            score = step(grid, sums, unordered, cell_of, state_start, point, masks, leaf_values, totals, f, s)
            if s == old or (score > TINY and allowed(point, clauses, hard, unordered)):
                break
            s = s + way if partly and not unordered[f] else old


@njit(cache=True)
def ascending(values):
    """The places of a few values in ascending order; numpy's own sort would take longer to compile than all else."""
    order = np.empty(len(values), np.int64)
    for i in range(len(values)):
        place = i
        while place > 0 and values[order[place - 1]] > values[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order


@njit(cache=True)
def costliest_first(point, cost, state_start):
    """The features by what their states cost, the costliest first."""
    costs = np.empty(len(point))
    for f in range(len(point)):
        costs[f] = -cost[state_start[f] + point[f]]
    return ascending(costs)


@njit_no_refcount
def is_right(grid, base, unordered, state_start, point, neighbourhood):
    """Whether a point is shown to be right in its neighbourhood."""
    return weakest(grid, base, unordered, state_start, point, neighbourhood) > TINY and not neighbourhood[20][STUCK]


@njit_no_refcount
def spent(neighbourhood, trees):
    """Units of work that the adversary has done since it was last asked."""
    looks = neighbourhood[20][LOOKS]
    neighbourhood[20][LOOKS] = 0
    return looks * trees


@njit_no_refcount
def pull_in(grid, base, unordered, state_start, factual_state, cost, clauses, used, point, holding, neighbourhood):
    """``pull_back`` of a point with its neighbourhood; points in clauses' boxes are left out without a look."""
    count = len(unordered)
    for _ in range(count):
        # Costliest first.
        f, most = -1, -1.0
        for g in range(count):
            here = cost[state_start[g] + point[g]]
            if here > most and not neighbourhood[21][g]:
                f, most = g, here
        if f < 0 or most <= 0.0:
            break
        neighbourhood[21][f] = 1
        old = point[f]
        way = 1 if old > factual_state[f] else -1
        s = factual_state[f]
        while s != old:
            point[f] = s
            clauses_around(clauses, used, unordered, state_start, point, holding)
            free = True
            for w in range((used + 63) // 64):
                if holding[w]:
                    free = False
                    break
            if free and is_right(grid, base, unordered, state_start, point, neighbourhood):
                break
            s = old if unordered[f] else s + way
        point[f] = s
    for g in range(count):
        neighbourhood[21][g] = 0


@njit(cache=True)
def cheapest_states(offset, unordered, cell_of, state_start, cost, sets):
    """Each cell's cheapest state in reach, or -1."""
    count = len(unordered)
    state_at = np.empty(offset[count], np.int64)
    state_at[:] = -1
    for f in range(count):
        for s in range(state_start[f + 1] - state_start[f]):
            cell = offset[f] + cell_of[state_start[f] + s]
            if unordered[f] and not (sets[f] >> np.uint64(s)) & np.uint64(1):
                continue
            if state_at[cell] < 0 or cost[state_start[f] + s] < cost[state_start[f] + state_at[cell]]:
                state_at[cell] = s
    return state_at


@njit(cache=True)
def improve(
    grid, base, sums, unordered, cell_of, state_start, factual_state, cost, weight, most, clauses, hard, rows, sets,
    draws, upper, best, counters,
):  # fmt: skip
    """Look for a better incumbent: some of a row's cells are put into it, and changes taken back in random order.

    A cell of a row without a reachable state is left out. Of the numbers drawn, shape (tries, 2 + features), the first
    chooses the row, the second how much of it; every other try starts from the factual and takes all of it.
    """
    offset = grid[0]
    count = len(unordered)
    state_at = cheapest_states(offset, unordered, cell_of, state_start, cost, sets)
    point = np.empty(count, np.int64)
    for t in range(draws.shape[0]):
        r = int(draws[t, 0] * rows.shape[0])
        mixed = counters[FOUND] and t % 2
        for f in range(count):
            point[f] = best[f] if mixed else factual_state[f]
            s = state_at[offset[f] + rows[r, f]]
            if s >= 0 and (not mixed or draws[t, 2 + f] < draws[t, 1]):
                point[f] = s
        if not allowed(point, clauses, hard, unordered):
            continue
        if score_point(grid, base, sums, unordered, cell_of, state_start, point)[0] <= TINY:
            continue
        pull_back(
            grid, base, sums, unordered, cell_of, state_start, factual_state, cost, clauses, hard,
            ascending(draws[t, 2:]), False, point,
        )  # fmt: skip
        order = costliest_first(point, cost, state_start)
        pull_back(
            grid, base, sums, unordered, cell_of, state_start, factual_state, cost, clauses, hard, order, True, point
        )
        if changes_of(point, factual_state, weight) <= most:
            keep(point, cost_of(point, cost, state_start), upper, best, counters)


@njit(cache=True)
def guess(
    grid, base, sums, unordered, cell_of, state_start, factual_state, cost, weight, most, clauses, hard, rows, sets,
    upper, best, counters,
):  # fmt: skip
    """Incumbents to begin with: single changes, and the cheapest of some rows of cells, pulled back to the factual.

    A cell of a row without a reachable state is left out. The optimum does not depend on it: it bounds the search.
    """
    offset = grid[0]
    count = len(unordered)
    masks, leaf_values = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64), np.empty(grid[1].shape[0])
    point = factual_state.copy()
    totals = np.empty(sums[-1] + 1)
    evaluate(grid, base, sums, cell_of, state_start, point, masks, leaf_values, totals)
    for f in range(count):
        if weight[f] > most:
            continue
        for way in (1, -1):
            s = factual_state[f] + way
            while 0 <= s < state_start[f + 1] - state_start[f] and cost[state_start[f] + s] < upper[0]:
                if not unordered[f] or (sets[f] >> np.uint64(s)) & np.uint64(1):
                    score = step(grid, sums, unordered, cell_of, state_start, point, masks, leaf_values, totals, f, s)
                    if score > TINY and allowed(point, clauses, hard, unordered):
                        keep(point, cost[state_start[f] + s], upper, best, counters)
                s += way
            step(grid, sums, unordered, cell_of, state_start, point, masks, leaf_values, totals, f, factual_state[f])
    state_at = cheapest_states(offset, unordered, cell_of, state_start, cost, sets)
    chosen, row_costs = np.empty(GUESSES, np.int64), np.empty(GUESSES)
    chosen[:], row_costs[:] = -1, INFINITE
    for r in range(rows.shape[0]):
        row_cost = 0.0
        for f in range(count):
            s = state_at[offset[f] + rows[r, f]]
            if s >= 0:
                row_cost += cost[state_start[f] + s]
            if row_cost >= row_costs[GUESSES - 1]:
                break
        if row_cost >= row_costs[GUESSES - 1]:
            continue
        place = GUESSES - 1
        while place > 0 and row_costs[place - 1] > row_cost:
            row_costs[place], chosen[place] = row_costs[place - 1], chosen[place - 1]
            place -= 1
        row_costs[place], chosen[place] = row_cost, r
    for row in chosen:
        if row < 0:
            break
        for f in range(count):
            s = state_at[offset[f] + rows[row, f]]
            point[f] = s if s >= 0 else factual_state[f]
        if not allowed(point, clauses, hard, unordered):
            continue
        if score_point(grid, base, sums, unordered, cell_of, state_start, point)[0] <= TINY:
            continue
        order = costliest_first(point, cost, state_start)
        pull_back(
            grid, base, sums, unordered, cell_of, state_start, factual_state, cost, clauses, hard, order, True, point
        )
        if changes_of(point, factual_state, weight) <= most:
            keep(point, cost_of(point, cost, state_start), upper, best, counters)


@njit(cache=True)
def guess_neighbourhoods(
    grid, base, unordered, state_start, factual_state, cost, weight, most, clauses, rows, upper, best, counters,
    neighbourhood,
):  # fmt: skip
    """First incumbents where a point's neighbourhood counts: the first right ones of some rows of states."""
    used, found = counters[CLAUSES], 0
    point = np.empty(len(unordered), np.int64)
    holding = np.empty(clauses[6].shape[1], np.uint64)
    for r in range(rows.shape[0]):
        for f in range(len(unordered)):
            point[f] = rows[r, f]
        clauses_around(clauses, used, unordered, state_start, point, holding)
        free = True
        for w in range((used + 63) // 64):
            free &= holding[w] == 0
        if not free or not is_right(grid, base, unordered, state_start, point, neighbourhood):
            continue
        pull_in(grid, base, unordered, state_start, factual_state, cost, clauses, used, point, holding, neighbourhood)
        if changes_of(point, factual_state, weight) <= most:
            keep(point, cost_of(point, cost, state_start), upper, best, counters)
            found += 1
        if found == GUESSES:
            break
    counters[WORK] += spent(neighbourhood, grid[1].shape[0])


# Positions in the array of counters that outlives a pause.
CLAUSES, HARD, FOUND, WORK, NODES_SEEN, ROOT = range(3, 9)  # after HEAP, TOP, FREE


@njit_no_refcount
def live_faces(c, clauses, unordered, node):
    """How many faces of a clause's box the node still allows to leave through."""
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    count = 0
    for i in range(width[c]):
        count += is_open(c, i, c_set, faces, beyond, unordered, low, high, sets)
    return count


@njit_no_refcount
def residuals(node, unordered, cost, state_start, factual_state, point, residual):
    """What each move away from the node's nearest point costs, while all duals are 0."""
    low, high, sets = node
    right, left, change = residual
    for f in range(len(unordered)):
        here = cost[state_start[f] + point[f]]
        if unordered[f]:
            change[f] = 0.0
            if point[f] == factual_state[f]:
                change[f] = INFINITE
                for s in range(state_start[f + 1] - state_start[f]):
                    if s != factual_state[f] and (sets[f] >> np.uint64(s)) & np.uint64(1):
                        change[f] = min(change[f], cost[state_start[f] + s])
            continue
        for s in range(point[f] + 1, high[f] + 1):
            right[state_start[f] + s] = cost[state_start[f] + s] - here
        for s in range(low[f], point[f]):
            left[state_start[f] + s] = cost[state_start[f] + s] - here


@njit_no_refcount
def fix(node, unordered, state_start, point, residual, slack):
    """Drop what would cost more than ``slack`` on top of the bound; whether anything was dropped."""
    low, high, sets = node
    right, left, change = residual
    dropped = False
    for f in range(len(unordered)):
        if unordered[f]:
            only = np.uint64(1) << np.uint64(point[f])
            if change[f] >= slack and sets[f] != only:
                sets[f] = only
                dropped = True
            continue
        while high[f] > point[f] and right[state_start[f] + high[f]] >= slack:
            high[f] -= 1
            dropped = True
        while low[f] < point[f] and left[state_start[f] + low[f]] >= slack:
            low[f] += 1
            dropped = True
    return dropped


@njit_no_refcount
def allows(node, unordered, f, state):
    """Whether a node has a state of a feature."""
    low, high, sets = node
    if unordered[f]:
        return (sets[f] >> np.uint64(state)) & np.uint64(1) != 0
    return low[f] <= state <= high[f]


@njit_no_refcount
def limit_changes(node, unordered, factual_state, weight, most):
    """Keep within the bound on changed features; False where the node cannot."""
    low, high, sets = node
    forced = 0.0
    for f in range(len(unordered)):
        stays = allows(node, unordered, f, factual_state[f])
        if not stays:
            forced += weight[f]
    if forced > most:
        return False
    for f in range(len(unordered)):
        stays = allows(node, unordered, f, factual_state[f])
        if stays and forced + weight[f] > most:
            if unordered[f]:
                sets[f] = np.uint64(1) << np.uint64(factual_state[f])
            else:
                low[f] = high[f] = factual_state[f]
    return True


@njit_no_refcount
def through_free_faces(clauses, used, unordered, node, residual, state_start, point, holding, trial):
    """A point outside every clause's box, reached through faces without residual cost; False where none is met.

    ``holding`` is room for the set of the clauses whose box holds the point on its way.
    """
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    for f in range(len(unordered)):
        trial[f] = point[f]
    for _ in range(DETOURS):
        clauses_around(clauses, used, unordered, state_start, trial, holding)
        c = -1
        for w in range((used + 63) // 64):
            if holding[w]:
                c = 64 * w + highest(holding[w])
                break
        if c < 0:
            return True
        moved = False
        for i in range(width[c]):
            face = faces[c, i]
            f = face // 2
            rest = face_cost(c, i, c_set, faces, beyond, unordered, low, high, sets, right, left, change, state_start)
            if rest > CLOSE:
                continue
            if unordered[f]:
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
def learn(
    grid, base, sums, which, same, unordered, cell_of, state_start, node, residual, point, seed, clauses, counters,
    neighbourhood=None,
):  # fmt: skip
    """Add the strengthened box of a wrong point, or of the cells in ``neighbourhood``, to the clauses; its number.

    ``which``: the sum that is wrong.
    """
    c_low, c_high, c_set = clauses[:3]
    c = counters[CLAUSES]
    if neighbourhood is None:
        strengthen(
            grid, base, sums, which, same, unordered, cell_of, state_start, node, residual, point, seed, c_low[c],
            c_high[c], c_set[c],
        )  # fmt: skip
    else:
        strengthen_neighbourhood(
            grid, base, same, unordered, state_start, node, residual, point, neighbourhood, c_low[c], c_high[c],
            c_set[c],
        )  # fmt: skip
    enter(c, clauses, unordered, state_start)
    counters[CLAUSES] = c + 1
    counters[WORK] += 40 * grid[1].shape[0]
    return c


@njit(cache=True)
def branch(c, clauses, unordered, node, residual, state_start, factual_state, cost, point, key, nodes, counters):
    """One child per face of a clause's box, cheapest first; later children stay within the faces before them.

    Those beyond ``FACES`` stay together in one node, to be split when its turn comes: for most it never does.
    """
    c_set, faces, beyond, width = clauses[2:6]
    low, high, sets = node
    right, left, change = residual
    face_costs = np.empty(width[c])
    for k in range(width[c]):
        face_costs[k] = face_cost(
            c, k, c_set, faces, beyond, unordered, low, high, sets, right, left, change, state_start
        )
    spare = np.empty(len(unordered), np.int64)
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    rest_low, rest_high, rest_set = low.copy(), high.copy(), sets.copy()
    made, least_left = 0, INFINITE
    for _ in range(width[c]):
        i = 0
        for k in range(1, width[c]):
            if face_costs[k] < face_costs[i]:
                i = k
        if face_costs[i] == INFINITE:
            break
        face_costs[i] = INFINITE
        face = faces[c, i]
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if unordered[f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, beyond[c, i])
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, beyond[c, i])
            here = old_low <= child_high[f]
        if here:
            child = (child_low, child_high, child_set)
            least = max(key, nearest(child, unordered, factual_state, cost, state_start, spare))
            if made < FACES:
                add_node(child_low, child_high, child_set, least, nodes, counters)
            else:
                if made == FACES:
                    for g in range(len(unordered)):
                        rest_low[g], rest_high[g], rest_set[g] = child_low[g], child_high[g], child_set[g]
                    rest_low[f], rest_high[f], rest_set[f] = old_low, old_high, old_set
                least_left = min(least_left, least)
            made += 1
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if unordered[f]:
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
def run(
    grid, base, sums, unordered, cell_of, state_start, cost, factual_state, weight, most, clauses, nodes, counters,
    best, asked, upper, effort, neighbourhood=None,
):  # fmt: skip
    """Best-first branch and bound; returns why it stopped. Its whole state is in its arguments.

    ``upper[0]`` is the incumbent's cost, ``upper[1]`` the proven lower bound.
    """
    n_low, keys, heap = nodes[0], nodes[3], nodes[4]
    c_set, faces, beyond, width = clauses[2:6]
    count, trees, room = len(unordered), grid[1].shape[0], len(width)
    size = state_start[count]
    right, left, change = np.empty(size), np.empty(size), np.empty(count)
    residual = (right, left, change)
    low, high = np.empty(count, np.int64), np.empty(count, np.int64)
    sets = np.empty(count, np.uint64)
    node = (low, high, sets)
    point, trial = np.empty(count, np.int64), np.empty(count, np.int64)
    violated, order, live = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    holding = np.empty(clauses[6].shape[1], np.uint64)
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
        key = take_node(low, high, sets, nodes, counters)
        counters[NODES_SEEN] += 1
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        while True:
            if not propagate(clauses, counters[CLAUSES], unordered, state_start, low, high, sets):
                break
            if not limit_changes(node, unordered, factual_state, weight, most):
                break
            counters[WORK] += counters[CLAUSES] + trees
            lowest = nearest(node, unordered, factual_state, cost, state_start, point)
            if lowest >= upper[0] - CLOSE:
                break
            residuals(node, unordered, cost, state_start, factual_state, point, residual)
            total = 0
            ends = np.zeros(2 * count + 1, np.int64)  # of violated clauses by their live faces, fewest first
            clauses_around(clauses, counters[CLAUSES], unordered, state_start, point, holding)
            for w in range((counters[CLAUSES] + 63) // 64):
                while holding[w]:
                    lowest_bit = holding[w] & (~holding[w] + np.uint64(1))
                    holding[w] ^= lowest_bit
                    violated[total] = 64 * w + highest(lowest_bit)
                    live[total] = live_faces(violated[total], clauses, unordered, node)
                    ends[live[total]] += 1
                    total += 1
            for k in range(2 * count):
                ends[k + 1] += ends[k]
            for k in range(total - 1, -1, -1):
                ends[live[k]] -= 1
                order[ends[live[k]]] = violated[k]
            bound = lowest
            for k in range(total):
                bound += raise_dual(order[k], clauses, unordered, node, residual, point, state_start)
            key = max(key, bound)
            if bound >= upper[0] - CLOSE:
                break
            if fix(node, unordered, state_start, point, residual, upper[0] - CLOSE - bound):
                continue
            if total == 0:
                score, which = assess(grid, base, sums, unordered, cell_of, state_start, point, neighbourhood)
                if neighbourhood is not None:
                    counters[WORK] += spent(neighbourhood, trees)
                    if neighbourhood[20][STUCK]:
                        add_node(low, high, sets, key, nodes, counters)
                        return MORE_LOOKS
                if score > TINY:
                    if changes_of(point, factual_state, weight) <= most:
                        keep(point, lowest, upper, best, counters)
                    break
                if score >= -TINY:
                    # Too near to tell: the node goes back until the real model has spoken.
                    add_node(low, high, sets, key, nodes, counters)
                    for f in range(count):
                        asked[f] = point[f] if neighbourhood is None else neighbourhood[18][f]
                    return ASK
                learn(
                    grid, base, sums, which, False, unordered, cell_of, state_start, node, residual, point, point,
                    clauses, counters, neighbourhood,
                )  # fmt: skip
                if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_CLAUSES
                continue
            # Disjoint cores: points that cost no more than the bound; each wrong one is a clause that may raise it.
            stop = False
            while rounds > 0:
                rounds -= 1
                counters[WORK] += counters[CLAUSES]
                used = counters[CLAUSES]
                if not through_free_faces(clauses, used, unordered, node, residual, state_start, point, holding, trial):
                    break
                score, which = assess(grid, base, sums, unordered, cell_of, state_start, trial, neighbourhood)
                if neighbourhood is not None:
                    counters[WORK] += spent(neighbourhood, trees)
                    if neighbourhood[20][STUCK]:
                        break
                if score > TINY:
                    if changes_of(trial, factual_state, weight) <= most:
                        if neighbourhood is None:
                            pull_back(
                                grid, base, sums, unordered, cell_of, state_start, factual_state, cost, clauses,
                                counters[HARD], costliest_first(trial, cost, state_start), True, trial,
                            )  # fmt: skip
                        else:
                            pull_in(
                                grid, base, unordered, state_start, factual_state, cost, clauses, used, trial, holding,
                                neighbourhood,
                            )  # fmt: skip
                            counters[WORK] += spent(neighbourhood, trees)
                        keep(trial, cost_of(trial, cost, state_start), upper, best, counters)
                        if bound >= upper[0] - CLOSE:
                            stop = True
                    break
                if score >= -TINY:
                    break
                c = learn(
                    grid, base, sums, which, False, unordered, cell_of, state_start, node, residual, point, trial,
                    clauses, counters, neighbourhood,
                )  # fmt: skip
                if inside(c, clauses, unordered, point):
                    violated[total] = c
                    total += 1
                    bound += raise_dual(c, clauses, unordered, node, residual, point, state_start)
                    key = max(key, bound)
                    if bound >= upper[0] - CLOSE:
                        stop = True
                        break
            if stop:
                break
            if fix(node, unordered, state_start, point, residual, upper[0] - CLOSE - bound):
                continue
            # Branch on the violated clause whose children gain most.
            residuals(node, unordered, cost, state_start, factual_state, point, residual)
            chosen, gain = violated[0], -1.0
            for k in range(total):
                pull = 0.0
                for i in range(width[violated[k]]):
                    rest = face_cost(
                        violated[k], i, c_set, faces, beyond, unordered, low, high, sets, right, left, change,
                        state_start,
                    )  # fmt: skip
                    if rest < INFINITE:
                        pull += 1.0 / (rest + 1e-9)
                quality = 1.0 / (pull + 1e-12)
                if quality > gain:
                    chosen, gain = violated[k], quality
            branch(
                chosen, clauses, unordered, node, residual, state_start, factual_state, cost, point, key, nodes,
                counters,
            )  # fmt: skip
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def lay_number(ends, cuts, value, low, high, unit, integer, fixed, linear, quadratic):
    """States of a number: each interval between thresholds and cuts, at its value nearest to the factual's.

    Returns the grid cell, the decoded value and the cost of each state, and which one is the factual's.
    """
    size = len(ends) + len(cuts) + 1
    cell, values, costs = np.empty(size, np.int64), np.empty(size), np.empty(size)
    borders, last_border = np.empty(size - 1), len(ends)
    for i in range(last_border):
        borders[i] = ends[i]
    for cut in cuts:
        place = first_from(borders[:last_border], cut)
        if place < last_border and borders[place] == cut:
            continue
        for k in range(last_border, place, -1):
            borders[k] = borders[k - 1]
        borders[place] = cut
        last_border += 1
    borders = borders[:last_border]
    factual_state, count = 0, 0
    for i in range(len(borders) + 1):
        first = -np.inf
        if i > 0:
            first = borders[i - 1] + 1.0 if integer else np.nextafter(borders[i - 1], np.inf)
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
        cell[count] = first_from(ends, nearest)
        if own:
            factual_state = count
        count += 1
    return cell[:count], values[:count], costs[:count], factual_state


@njit(cache=True)
def lay_numbers(ends, ends_at, cuts, cuts_at, values, low, high, unit, integer, fixed, linear, quadratic):
    """``lay_number`` of several numbers: flat arrays of states, where each number's begin, and the factual's states."""
    count = len(values)
    room = len(ends) + len(cuts) + count
    cells, places, costs = np.empty(room, np.int64), np.empty(room), np.empty(room)
    at, factual_state = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    for j in range(count):
        cell, place, cost, factual_state[j] = lay_number(
            ends[ends_at[j] : ends_at[j + 1]], cuts[cuts_at[j] : cuts_at[j + 1]], values[j], low[j], high[j], unit[j],
            integer[j], fixed[j], linear[j], quadratic[j],
        )  # fmt: skip
        for i in range(len(cell)):  # numpy's assignment of slices takes seconds to compile, for its message alone
            cells[at[j] + i], places[at[j] + i], costs[at[j] + i] = cell[i], place[i], cost[i]
        at[j + 1] = at[j] + len(cell)
    return cells[: at[count]], places[: at[count]], costs[: at[count]], at, factual_state
