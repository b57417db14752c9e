"""Compiled kernels for points with a neighbourhood: the states of a number, the worst cell of the neighbourhood.

Shapes as in ``kernels``; M leaf masks (one for each feature that a tree splits on), L leaves of a tree. A state of a
perturbed number touches an interval of cells, ``first[s]`` to ``last[s]``; both grow with s. A point of states is right
where the ensemble is right on its neighbourhood, which is every combination of cells that it touches.

``neighbourhood`` is a tuple: ``first`` and ``last``; the spans of the leaves, first and last cell of each leaf under
each mask, shape (M, L); the masks of each feature, ``by_at`` and ``by``; excused boxes of cells, low and high, shape
(E, F), which the real model has found right; room for the adversary: boxes still to look at, low and high, shape
(D, F), and their bounds; masks, shape (M, W), leaves, shape (T,); the box of cells that it found, low and high, shape
(F,); and its counters.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from methods.cells.masks import (
    INFINITE,
    best_leaf,
    first_from,
    highest,
    list_faces,
    next_face,
    next_outside,
    residual_cost,
)
from methods.estimators.trees import TINY

# Positions in the adversary's counters.
EXCUSED, ALLOWANCE, LOOKS, STUCK = range(4)
WORSE = 8  # boxes looked at after a wrong cell was found, for one that is more so


@njit_no_refcount
def lowest(word):
    """Position of the lowest set bit of a non-zero word."""
    return highest(word & (~word + np.uint64(1)))


@njit_no_refcount
def least_leaf(starts, t, masks, instead, fresh):
    """Position of a tree's leaf of least value by its masks; row 0 of ``fresh`` is taken instead of one of them."""
    for word in range(masks.shape[1]):
        mask = ~np.uint64(0)
        for k in range(starts[t], starts[t + 1]):
            mask &= fresh[0, word] if k == instead else masks[k, word]
        if mask:
            return word * 64 + lowest(mask)
    return -1


@njit_no_refcount
def weakest(grid, base, unordered, state_start, point, neighbourhood):
    """The least score on a point's neighbourhood, as far as it matters; infinite where every cell is right.

    Else the score of a cell that is wrong or, within ``TINY``, for the real model to decide; the box of all cells with
    the same leaves is then in ``neighbourhood``, and the counter ``STUCK`` is 0. Where the allowance of looks has been
    used up it is 1, and the score means nothing.
    """
    first, last = neighbourhood[:2]
    for f in range(len(unordered)):
        s = state_start[f] + point[f]
        neighbourhood[8][0, f], neighbourhood[9][0, f] = first[s], last[s]
    return worst_in(grid, base, unordered, neighbourhood, None)


@njit_no_refcount
def worst_in(grid, base, unordered, neighbourhood, ball):
    """``weakest`` of the box of cells that is first on the stack; with ``ball`` of those of its cells that meet a ball.

    A ball is its centre, the coordinates of the cells' ends, which features it moves, and its radius, squared.
    """
    offset, values, upto, onwards, starts, members, owner, _border_start, _border_entries = grid
    span_low, span_high, by_at, by, excused_low, excused_high = neighbourhood[2:8]
    stack_low, stack_high, bounds, masks, leaf, low, high, mid_low, mid_high, fresh = neighbourhood[8:18]
    counters = neighbourhood[20]
    count, trees, words = len(unordered), values.shape[0], upto.shape[2]
    bounds[0] = -INFINITE
    size, found, looks, after = 1, INFINITE, 0, 0
    counters[STUCK] = 0
    while size:
        size -= 1
        if bounds[size] > TINY or bounds[size] >= found:
            continue
        looks += 1
        if found < -TINY:
            after += 1
            if after > WORSE:
                break
        elif looks > counters[ALLOWANCE]:
            counters[STUCK] = 1
            break
        for f in range(count):
            low[f], high[f] = stack_low[size, f], stack_high[size, f]
            mid_low[f], mid_high[f] = low[f], high[f]
        if ball is not None and squared_distance(offset, low, high, ball) >= ball[3]:
            continue
        total = base
        for t in range(trees):
            begin, end = starts[t], starts[t + 1]
            if begin == end:
                total += values[t, values.shape[1] - 1]
                continue
            leaf[t] = -1
            for word in range(words):
                mask = ~np.uint64(0)
                for k in range(begin, end):
                    f = members[k]
                    masks[k, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + low[f], word]
                    mask &= masks[k, word]
                if leaf[t] < 0 and mask:
                    leaf[t] = word * 64 + lowest(mask)
            total += values[t, leaf[t]]
            for k in range(begin, end):
                f = members[k]
                mid_low[f] = max(mid_low[f], span_low[k, leaf[t]])
                mid_high[f] = min(mid_high[f], span_high[k, leaf[t]])
        if total > TINY or total >= found:
            continue
        conflict = False
        for f in range(count):
            if mid_low[f] > mid_high[f] and not unordered[f]:
                conflict = True
                break
        if not conflict and ball is not None and squared_distance(offset, mid_low, mid_high, ball) >= ball[3]:
            # The cells with these leaves are out of reach: look at what is nearer in the direction that is worst.
            f = farthest(offset, low, high, mid_low, mid_high, ball)
            centre, closes = ball[:2]
            upper = centre[f] > closes[offset[f] + mid_high[f]]
            border = mid_high[f] if upper else mid_low[f] - 1
            for side in range(2):
                for g in range(count):
                    stack_low[size, g], stack_high[size, g] = low[g], high[g]
                # What is nearer comes last in, first out.
                if (side == 1) == upper:
                    stack_low[size, f] = border + 1
                else:
                    stack_high[size, f] = border
                bounds[size] = total
                size += stack_low[size, f] <= stack_high[size, f]
            continue
        if not conflict:
            # One cell at least has all of these leaves: the bound is its score.
            if total >= -TINY and excused(mid_low, mid_high, excused_low, excused_high, counters[EXCUSED], unordered):
                size = set_aside(low, high, mid_low, mid_high, unordered, stack_low, stack_high, bounds, size, total)
                continue
            found = total
            widen(grid, unordered, leaf, mid_low, neighbourhood)
            continue
        # Split where leaves that exclude each other lose most on both sides.
        chosen, border, gain, up, down = -1, 0, -1.0, 0.0, 0.0
        for f in range(count):
            if unordered[f] or mid_low[f] <= mid_high[f]:
                continue
            for side in range(2):
                m = mid_low[f] - 1 if side else mid_high[f]
                if side and m == mid_high[f]:
                    continue
                left, right = 0.0, 0.0
                for j in range(by_at[f], by_at[f + 1]):
                    k = by[j]
                    t = owner[k]
                    if span_low[k, leaf[t]] > m:
                        for word in range(words):
                            fresh[0, word] = upto[t, offset[f] + m, word] & onwards[t, offset[f] + low[f], word]
                        left += values[t, least_leaf(starts, t, masks, k, fresh)] - values[t, leaf[t]]
                    elif span_high[k, leaf[t]] <= m:
                        for word in range(words):
                            fresh[0, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + m + 1, word]
                        right += values[t, least_leaf(starts, t, masks, k, fresh)] - values[t, leaf[t]]
                product = (left + 1e-9) * (right + 1e-9)
                if product > gain:
                    chosen, border, gain, down, up = f, m, product, left, right
        for turn in range(2):
            # The side with less to lose comes first: it is looked at last in, first out.
            upper = (turn == 1) == (up <= down)
            bound = total + (up if upper else down)
            if bound > TINY:
                continue
            for f in range(count):
                stack_low[size, f], stack_high[size, f] = low[f], high[f]
            if upper:
                stack_low[size, chosen] = border + 1
            else:
                stack_high[size, chosen] = border
            bounds[size] = bound
            size += 1
    counters[LOOKS] += looks
    return found


@njit_no_refcount
def excess(offset, f, low, high, ball):
    """How far a ball's centre lies from some cells of a feature that it moves."""
    centre, closes = ball[:2]
    above = centre[f] - closes[offset[f] + high]
    below = closes[offset[f] + low - 1] - centre[f] if low else -INFINITE
    return max(above, below, 0.0)


@njit_no_refcount
def squared_distance(offset, low, high, ball):
    """The squared distance of a ball's centre from a box of cells; the features that it does not move are in it."""
    total = 0.0
    for f in range(len(low)):
        if ball[2][f]:
            total += excess(offset, f, low[f], high[f], ball) ** 2
    return total


@njit_no_refcount
def farthest(offset, low, high, mid_low, mid_high, ball):
    """The feature in which a ball's centre lies farther, by most, from an inner box of cells than from an outer one."""
    chosen, most = 0, -1.0
    for f in range(len(low)):
        if ball[2][f]:
            here = excess(offset, f, mid_low[f], mid_high[f], ball) ** 2 - excess(offset, f, low[f], high[f], ball) ** 2
            if here > most:
                chosen, most = f, here
    return chosen


@njit_no_refcount
def excused(low, high, excused_low, excused_high, number, unordered):
    """Whether a box of cells lies in one that the real model has found right."""
    for e in range(number):
        inside = True
        for f in range(len(unordered)):
            if low[f] < excused_low[e, f] or high[f] > excused_high[e, f]:
                inside = False
                break
        if inside:
            return True
    return False


@njit_no_refcount
def set_aside(low, high, mid_low, mid_high, unordered, stack_low, stack_high, bounds, size, bound):
    """Put what is left of a box without an inner one on the stack, in disjoint boxes; returns the stack's size."""
    count = len(unordered)
    for f in range(count):
        if unordered[f]:
            continue
        for side in range(2):
            if mid_high[f] >= high[f] if side else mid_low[f] <= low[f]:
                continue
            for g in range(count):
                stack_low[size, g], stack_high[size, g] = low[g], high[g]
            if side:
                stack_low[size, f] = mid_high[f] + 1
            else:
                stack_high[size, f] = mid_low[f] - 1
            bounds[size] = bound
            size += 1
        low[f], high[f] = mid_low[f], mid_high[f]
    return size


@njit_no_refcount
def widen(grid, unordered, leaf, cell, neighbourhood):
    """Write the box of all cells with given leaves into ``neighbourhood``; of a category only that of ``cell``."""
    offset, _values, _upto, _onwards, starts, members, _owner, _border_start, _border_entries = grid
    span_low, span_high = neighbourhood[2:4]
    worst_low, worst_high = neighbourhood[18:20]
    for f in range(len(unordered)):
        worst_low[f], worst_high[f] = 0, offset[f + 1] - offset[f] - 1
        if unordered[f]:
            worst_low[f] = worst_high[f] = cell[f]
    for t in range(len(starts) - 1):
        for k in range(starts[t], starts[t + 1]):
            f = members[k]
            if not unordered[f]:
                worst_low[f] = max(worst_low[f], span_low[k, leaf[t]])
                worst_high[f] = min(worst_high[f], span_high[k, leaf[t]])


@njit_no_refcount
def leaves_at(grid, unordered, cells, neighbourhood):
    """Write the box of all cells with the leaves of one cell into ``neighbourhood``."""
    offset, _values, upto, onwards, starts, members, _owner, _border_start, _border_entries = grid
    masks, leaf = neighbourhood[11], neighbourhood[12]
    for t in range(len(starts) - 1):
        for k in range(starts[t], starts[t + 1]):
            cell = offset[members[k]] + cells[members[k]]
            for word in range(masks.shape[1]):
                masks[k, word] = upto[t, cell, word] & onwards[t, cell, word]
        leaf[t] = least_leaf(starts, t, masks, -1, masks)
    widen(grid, unordered, leaf, cells, neighbourhood)


@njit_no_refcount
def reached_by(unordered, state_start, f, low, high, neighbourhood):
    """The first and last state of a number that touches one of some cells."""
    first, last = neighbourhood[:2]
    start, stop = 0, state_start[f + 1] - state_start[f] - 1
    while start <= stop and last[state_start[f] + start] < low:
        start += 1
    while stop >= start and first[state_start[f] + stop] > high:
        stop -= 1
    return start, stop


@njit_no_refcount
def most_on(grid, low, high, masks, best):
    """Write each tree's masks and the value of its best leaf on a box of cells; returns the sum of the values."""
    offset, values, upto, onwards, starts, members, owner, _border_start, _border_entries = grid
    for k in range(len(members)):
        f, t = members[k], owner[k]
        for word in range(masks.shape[1]):
            masks[k, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + low[f], word]
    total = 0.0
    for t in range(values.shape[0]):
        best[t], _ = best_leaf(values, starts, t, masks, -1, masks)
        total += best[t]
    return total


@njit_no_refcount
def grow(grid, unordered, face, end, low, high, total, masks, fresh, best, trial, seen, step):
    """Move a face of a box of cells on to the cell ``end``, or add that category, where it stays proven wrong.

    ``total`` is the box's greatest score; returns that of the larger box, and changes everything that describes the box
    if it is wrong. Looks only at the trees that tell the new cells from those before.
    """
    offset, values, upto, onwards, starts, _members, owner, border_start, border_entries = grid
    f, words = face // 2, masks.shape[1]
    if unordered[f]:
        begin = close = end
    elif face % 2:
        begin, close = high[f], end - 1
    else:
        begin, close = end, low[f] - 1
    for part in range(2 if unordered[f] else 1):
        if part:
            begin = close = low[f]
        for j in range(border_start[offset[f] + begin], border_start[offset[f] + close + 1]):
            k = border_entries[j]
            t = owner[k]
            if seen[t] == step:
                continue
            seen[t] = step
            for word in range(words):
                if unordered[f]:
                    fresh[k, word] = masks[k, word] | upto[t, offset[f] + end, word]
                elif face % 2:
                    fresh[k, word] = upto[t, offset[f] + end, word] & onwards[t, offset[f] + low[f], word]
                else:
                    fresh[k, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + end, word]
            trial[t], _ = best_leaf(values, starts, t, masks, k, fresh)
            total += trial[t] - best[t]
            if total >= -TINY:
                return total
    for part in range(2 if unordered[f] else 1):
        if part:
            begin = close = low[f]
        elif unordered[f]:
            begin = close = end
        for j in range(border_start[offset[f] + begin], border_start[offset[f] + close + 1]):
            k = border_entries[j]
            best[owner[k]] = trial[owner[k]]
            for word in range(words):
                masks[k, word] = fresh[k, word]
    if not unordered[f]:
        if face % 2:
            high[f] = max(high[f], end)
        else:
            low[f] = min(low[f], end)
    return total


@njit(cache=True)
def strengthen_neighbourhood(
    grid, base, same, unordered, state_start, node, residual, point, neighbourhood, box_low, box_high, box_set
):
    """Grow the box of wrong cells in ``neighbourhood``, cheapest escape first, as long as it is proven wrong.

    Writes into ``box_*`` the box of the states that touch it. With ``same`` it does not grow.
    """
    first, last = neighbourhood[:2]
    worst_low, worst_high = neighbourhood[18:20]
    sets = node[2]
    count, trees = len(unordered), grid[1].shape[0]
    for f in range(count):
        box_set[f] = np.uint64(0)
        if unordered[f]:
            box_low[f] = box_high[f] = worst_low[f]
            box_set[f] = np.uint64(1) << np.uint64(worst_low[f])
        else:
            box_low[f], box_high[f] = reached_by(unordered, state_start, f, worst_low[f], worst_high[f], neighbourhood)
    if same:
        return
    masks = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64)
    fresh = np.empty_like(masks)
    best, trial = np.empty(trees), np.empty(trees)
    total = base + most_on(grid, worst_low, worst_high, masks, best)
    refused = np.zeros(count, np.uint64)
    box = (box_low, box_high, box_set)
    residual_costs, heap = np.empty(2 * count), np.empty(2 * count, np.int64)
    size = list_faces(unordered, state_start, node, residual, point, box, refused, residual_costs, heap)
    seen = np.zeros(trees, np.int64)  # the last step that looked at the tree
    face, step = -1, 0
    while True:
        face, size = next_face(face, residual_costs, heap, size)
        if face < 0:
            return
        step += 1
        f = face // 2
        picked, end = np.uint64(0), 0
        if unordered[f]:
            picked = next_outside(state_start[f + 1] - state_start[f], box_set[f], refused[f], sets[f])
            end = highest(picked)
        elif face % 2:
            end = first[state_start[f] + box_high[f] + 1]
        else:
            end = last[state_start[f] + box_low[f] - 1]
        grown = grow(grid, unordered, face, end, worst_low, worst_high, total, masks, fresh, best, trial, seen, step)
        fine = grown < -TINY
        if fine:
            total = grown
            if unordered[f]:
                box_set[f] |= picked
            else:
                box_low[f], box_high[f] = reached_by(
                    unordered, state_start, f, worst_low[f], worst_high[f], neighbourhood
                )
        elif unordered[f]:
            refused[f] |= picked
        residual_costs[face] = -1.0
        if fine or unordered[f]:
            residual_costs[face] = residual_cost(face, unordered, state_start, node, residual, point, box, refused)


@njit(cache=True)
def lay_neighbourhoods(ends, value, low, high, reach, floor, ceiling, unit, integer, fixed, linear, quadratic):
    """States of a perturbed number: its own value, and on each side the nearest value whose interval leaves a cell.

    An interval is the value ± ``reach``, cut to ``floor`` and ``ceiling``. Returns for each state the first and last
    cell touched, the decoded value and the cost, and which state is the factual's.
    """
    size = 2 * len(ends) + 3
    below, above = np.empty(size), np.empty(size)
    downs, ups = 0, 0
    if value > high:
        below[0], downs = high, 1
    for i in range(len(ends) - 1, -1, -1):
        if not floor <= ends[i] < ceiling:
            continue
        if integer:
            place = np.ceil(ends[i] - reach) + 1.0
            while place + reach > ends[i]:
                place -= 1.0
        else:
            place = ends[i] - reach - inset(ends[i], reach, unit)
        if place < value and low <= place <= high and (downs == 0 or place < below[downs - 1]):
            below[downs] = place
            downs += 1
    if value < low:
        above[0], ups = low, 1
    for i in range(len(ends)):
        if not floor <= ends[i] < ceiling:
            continue
        if integer:
            place = np.floor(ends[i] + reach) - 1.0
            while place - reach <= ends[i]:
                place += 1.0
        else:
            place = ends[i] + reach + inset(ends[i], reach, unit)
        if place > value and low <= place <= high and (ups == 0 or place > above[ups - 1]):
            above[ups] = place
            ups += 1
    count = downs + 1 + ups
    values, costs = np.empty(count), np.empty(count)
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    for s in range(count):
        values[s] = below[downs - 1 - s] if s < downs else value if s == downs else above[s - downs - 1]
        gap = abs(values[s] - value) / unit
        costs[s] = 0.0 if s == downs else fixed + linear * gap + quadratic * gap * gap
        first[s] = first_from(ends, min(max(values[s] - reach, floor), values[s]))
        last[s] = first_from(ends, max(min(values[s] + reach, ceiling), values[s]))
    return first, last, values, costs, downs


@njit_no_refcount
def inset(end, reach, unit):
    """How far beyond a threshold to stay for what rounding of the sums with ``reach`` may amount to."""
    return 1e-12 * unit + 2e-15 * (abs(end) + reach)
