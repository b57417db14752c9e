"""Compiled kernels for points with a neighbourhood: the states of a number, the worst cell of the neighbourhood.

A state of a perturbed number touches an interval of cells, ``first[s]`` to ``last[s]``. A point of states is right
where the ensemble is right on its neighbourhood, which is every combination of cells that it touches. The arrays are
those of ``records``.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from harness.core.tolerances import BRANCHING_GAIN, COORDINATE_TIE, INSET_OF_CELL, INSET_OF_RANGE, SCORE_TIE
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
from methods.cells.records import Growth, Perturbed, Touching

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
def weakest(grid, states, point, neighbourhood):
    """The least score on a point's neighbourhood, as far as it matters; infinite where every cell is right.

    Else the score of a cell that is wrong or, within ``SCORE_TIE``, for the real model to decide; the box of all cells
    with the same leaves is then the adversary's ``worst``, and its counter ``STUCK`` is 0. Where the allowance of looks
    has been used up it is 1, and the score means nothing.
    """
    adversary = neighbourhood.adversary
    for f in range(len(point)):
        s = states.start[f] + point[f]
        adversary.stack_low[0, f], adversary.stack_high[0, f] = neighbourhood.first[s], neighbourhood.last[s]
    return worst_in(grid, neighbourhood, None)


@njit_no_refcount
def worst_in(grid, neighbourhood, ball):
    """``weakest`` of the box of cells that is first on the stack; with ``ball`` of those of its cells that meet it."""
    offset, unordered, values, upto, onwards = grid.offset, grid.unordered, grid.values, grid.upto, grid.onwards
    starts, members, owner = grid.starts, grid.members, grid.owner
    span_low, span_high, by_start, by = (
        neighbourhood.span_low, neighbourhood.span_high, neighbourhood.by_start, neighbourhood.by
    )  # fmt: skip
    adversary = neighbourhood.adversary
    stack_low, stack_high, bounds = adversary.stack_low, adversary.stack_high, adversary.bounds
    masks, leaf, fresh, counters = adversary.masks, adversary.leaf, adversary.fresh, adversary.counters
    low, high, mid_low, mid_high = adversary.low, adversary.high, adversary.mid_low, adversary.mid_high
    count, trees, words = len(unordered), values.shape[0], upto.shape[2]
    bounds[0] = -INFINITE
    size, found, looks, after = 1, INFINITE, 0, 0
    counters[STUCK] = 0
    while size:
        size -= 1
        if bounds[size] > SCORE_TIE or bounds[size] >= found:
            continue
        looks += 1
        if found < -SCORE_TIE:
            after += 1
            if after > WORSE:
                break
        elif looks > counters[ALLOWANCE]:
            counters[STUCK] = 1
            break
        for f in range(count):
            low[f], high[f] = stack_low[size, f], stack_high[size, f]
            mid_low[f], mid_high[f] = low[f], high[f]
        if ball is not None and squared_distance(offset, low, high, ball) >= ball.square:
            continue
        total = grid.base
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
        if total > SCORE_TIE or total >= found:
            continue
        conflict = False
        for f in range(count):
            if mid_low[f] > mid_high[f] and not unordered[f]:
                conflict = True
                break
        if not conflict and ball is not None and squared_distance(offset, mid_low, mid_high, ball) >= ball.square:
            # The cells with these leaves are out of reach: look at what is nearer in the direction that is worst.
            f = farthest(offset, low, high, mid_low, mid_high, ball)
            upper = ball.centre[f] > ball.closes[offset[f] + mid_high[f]]
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
            if total >= -SCORE_TIE and excused(mid_low, mid_high, neighbourhood):
                size = set_aside(unordered, adversary, size, total)
                continue
            found = total
            widen(grid, mid_low, neighbourhood)
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
                for j in range(by_start[f], by_start[f + 1]):
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
                product = (left + BRANCHING_GAIN) * (right + BRANCHING_GAIN)
                if product > gain:
                    chosen, border, gain, down, up = f, m, product, left, right
        for turn in range(2):
            # The side with less to lose comes first: it is looked at last in, first out.
            upper = (turn == 1) == (up <= down)
            bound = total + (up if upper else down)
            if bound > SCORE_TIE:
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
    above = ball.centre[f] - ball.closes[offset[f] + high]
    below = ball.closes[offset[f] + low - 1] - ball.centre[f] if low else -INFINITE
    return max(above, below, 0.0)


@njit_no_refcount
def squared_distance(offset, low, high, ball):
    """The squared distance of a ball's centre from a box of cells; the features that it does not move are in it."""
    total = 0.0
    for f in range(len(low)):
        if ball.moved[f]:
            total += excess(offset, f, low[f], high[f], ball) ** 2
    return total


@njit_no_refcount
def farthest(offset, low, high, mid_low, mid_high, ball):
    """The feature in which a ball's centre lies farther, by most, from an inner box of cells than from an outer one."""
    chosen, most = 0, -1.0
    for f in range(len(low)):
        if ball.moved[f]:
            here = excess(offset, f, mid_low[f], mid_high[f], ball) ** 2 - excess(offset, f, low[f], high[f], ball) ** 2
            if here > most:
                chosen, most = f, here
    return chosen


@njit_no_refcount
def excused(low, high, neighbourhood):
    """Whether a box of cells lies in one that the real model has found right."""
    for e in range(neighbourhood.adversary.counters[EXCUSED]):
        inside = True
        for f in range(len(low)):
            if low[f] < neighbourhood.excused_low[e, f] or high[f] > neighbourhood.excused_high[e, f]:
                inside = False
                break
        if inside:
            return True
    return False


@njit_no_refcount
def set_aside(unordered, adversary, size, bound):
    """Put what is left of the box without the inner one on the stack, in disjoint boxes; returns the stack's size."""
    low, high, mid_low, mid_high = adversary.low, adversary.high, adversary.mid_low, adversary.mid_high
    stack_low, stack_high = adversary.stack_low, adversary.stack_high
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
            adversary.bounds[size] = bound
            size += 1
        low[f], high[f] = mid_low[f], mid_high[f]
    return size


@njit_no_refcount
def widen(grid, cell, neighbourhood):
    """Write the box of all cells with the adversary's leaves into ``worst``; of a category only that of ``cell``."""
    offset, unordered, starts, members = grid.offset, grid.unordered, grid.starts, grid.members
    span_low, span_high = neighbourhood.span_low, neighbourhood.span_high
    leaf = neighbourhood.adversary.leaf
    worst_low, worst_high = neighbourhood.adversary.worst_low, neighbourhood.adversary.worst_high
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
def leaves_at(grid, cells, neighbourhood):
    """Write the box of all cells with the leaves of one cell into the adversary's ``worst``."""
    offset, upto, onwards, starts, members = grid.offset, grid.upto, grid.onwards, grid.starts, grid.members
    masks, leaf = neighbourhood.adversary.masks, neighbourhood.adversary.leaf
    for t in range(len(starts) - 1):
        for k in range(starts[t], starts[t + 1]):
            cell = offset[members[k]] + cells[members[k]]
            for word in range(masks.shape[1]):
                masks[k, word] = upto[t, cell, word] & onwards[t, cell, word]
        leaf[t] = least_leaf(starts, t, masks, -1, masks)
    widen(grid, cells, neighbourhood)


@njit_no_refcount
def touch(states, neighbourhood, low, high, box):
    """Write the box of the states that touch a box of cells; of a category the one that it is."""
    for f in range(len(low)):
        if states.unordered[f]:
            box.low[f] = box.high[f] = low[f]
            continue
        start, stop = 0, states.start[f + 1] - states.start[f] - 1
        while start <= stop and neighbourhood.last[states.start[f] + start] < low[f]:
            start += 1
        while stop >= start and neighbourhood.first[states.start[f] + stop] > high[f]:
            stop -= 1
        box.low[f], box.high[f] = start, stop


@njit_no_refcount
def most_on(grid, which, low, high, masks, best):
    """Write each tree's masks and the value of its best leaf on a box of cells; returns the total of one sum."""
    offset, values, upto, onwards, starts = grid.offset, grid.values, grid.upto, grid.onwards, grid.starts
    for k in range(len(grid.members)):
        f, t = grid.members[k], grid.owner[k]
        for word in range(masks.shape[1]):
            masks[k, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + low[f], word]
    total = grid.base
    for t in range(values.shape[0]):
        best[t] = best_leaf(values, starts, t, masks, -1, masks)
        if grid.sums[t] == which:
            total += best[t]
    return total


@njit_no_refcount
def grow(grid, which, face, end, total, growth, step):
    """Move a face of a box of cells on to the cell ``end``, or add that category, where it stays proven wrong.

    ``total`` is the greatest value on the box of the sum ``which``; returns that on the larger box, and changes
    everything that describes the box if it is wrong. Looks only at the trees that tell the new cells from those before.
    """
    offset, unordered, values, upto, onwards = grid.offset, grid.unordered, grid.values, grid.upto, grid.onwards
    starts, owner, border_start, border_entries = grid.starts, grid.owner, grid.border_start, grid.border_entries
    low, high, masks, fresh = growth.low, growth.high, growth.masks, growth.fresh
    best, trial, seen, changed = growth.best, growth.trial, growth.seen, growth.changed
    f, words, number = face // 2, masks.shape[1], 0
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
            if seen[t] == step or grid.sums[t] != which:
                continue
            seen[t] = step
            same_leaves = True
            for word in range(words):
                if unordered[f]:
                    fresh[k, word] = masks[k, word] | upto[t, offset[f] + end, word]
                elif face % 2:
                    fresh[k, word] = upto[t, offset[f] + end, word] & onwards[t, offset[f] + low[f], word]
                else:
                    fresh[k, word] = upto[t, offset[f] + high[f], word] & onwards[t, offset[f] + end, word]
                same_leaves = same_leaves and fresh[k, word] == masks[k, word]
            if same_leaves:
                continue
            trial[t] = best_leaf(values, starts, t, masks, k, fresh)
            total += trial[t] - best[t]
            if total >= -SCORE_TIE:
                return total
            changed[number] = k
            number += 1
    for j in range(number):
        k = changed[j]
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
def growth_from(grid, low, high):
    """A box of cells that is to grow, and room for it."""
    trees = grid.values.shape[0]
    masks = np.empty((len(grid.members), grid.upto.shape[2]), np.uint64)
    seen, changed = np.zeros(trees, np.int64), np.empty(trees, np.int64)
    return Growth(low, high, masks, np.empty_like(masks), np.empty(trees), np.empty(trees), seen, changed)


@njit(cache=True)
def strengthen(grid, states, which, node, touched, growth, box):
    """Grow a box of cells on which one sum is wrong, cheapest escape first, as long as it is proven wrong throughout.

    ``growth`` becomes that of the larger box of cells, and ``box``, which holds the states that touch the box, that of
    the larger one.
    """
    state_start, unordered = states.start, states.unordered
    box_low, box_high, box_set, sets = box.low, box.high, box.sets, node.box.sets
    count = len(unordered)
    for f in range(count):
        box_set[f] = np.uint64(1) << np.uint64(box_low[f]) if unordered[f] else np.uint64(0)
    first, last, low, high = touched.first, touched.last, growth.low, growth.high
    total = most_on(grid, which, low, high, growth.masks, growth.best)
    refused = np.zeros(count, np.uint64)
    residual_costs, heap = np.empty(2 * count), np.empty(2 * count, np.int64)
    size = list_faces(states, node, box, refused, residual_costs, heap)
    face, step = -1, 0
    while True:
        face, size = next_face(face, residual_costs, heap, size)
        if face < 0:
            return
        step += 1
        f = face // 2
        start, stop = state_start[f], state_start[f + 1] - 1
        picked, end = np.uint64(0), 0
        if unordered[f]:
            picked = next_outside(stop - start + 1, box_set[f], refused[f], sets[f])
            end = highest(picked)
        elif (start + box_high[f] == stop) if face % 2 else (box_low[f] == 0):
            residual_costs[face] = -1.0  # the last states came with the other face
            continue
        elif face % 2:
            end = first[start + box_high[f] + 1]
        else:
            end = last[start + box_low[f] - 1]
        grown = grow(grid, which, face, end, total, growth, step)
        fine = grown < -SCORE_TIE
        if fine:
            total = grown
            box_set[f] |= picked
            while not unordered[f] and box_low[f] > 0 and last[start + box_low[f] - 1] >= low[f]:
                box_low[f] -= 1
            while not unordered[f] and start + box_high[f] < stop and first[start + box_high[f] + 1] <= high[f]:
                box_high[f] += 1
        elif unordered[f]:
            refused[f] |= picked
        residual_costs[face] = -1.0
        if fine or unordered[f]:
            residual_costs[face] = residual_cost(face, states, node, box, refused)


@njit(cache=True)
def lay_neighbourhoods(ends, number):
    """States of a perturbed number: its own value, and on each side the nearest value whose interval leaves a cell.

    An interval is the value ± ``reach``, cut to ``floor`` and ``ceiling``. Takes a plain tuple, see ``records``.
    """
    number = Perturbed(*number)
    value, low, high, reach = number.value, number.low, number.high, number.reach
    floor, ceiling, unit, integer = number.floor, number.ceiling, number.unit, number.integer
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
        fixed = number.fixed if gap > COORDINATE_TIE else 0.0  # less is no change
        costs[s] = fixed + number.linear * gap + number.quadratic * gap * gap
        first[s] = first_from(ends, min(max(values[s] - reach, floor), values[s]))
        last[s] = first_from(ends, max(min(values[s] + reach, ceiling), values[s]))
    return Touching(first, last, values, costs, downs)


@njit_no_refcount
def inset(end, reach, unit):
    """How far beyond a threshold to stay for what rounding of the sums with ``reach`` may amount to."""
    return INSET_OF_RANGE * unit + INSET_OF_CELL * (abs(end) + reach)
