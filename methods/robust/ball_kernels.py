"""Compiled kernels for points with a ball around them: branch and bound over coordinates instead of states.

Coordinates of an ordered feature are scaled differences from the factual, which is 0; the further, the costlier. A ball
of radius rho moves some features, real or integer; a feature that it does not move has a list of states. A *clause*
is a box of cells on which the ensemble is proven wrong: a point has to be rho away from it, or outside it in a feature
that the ball does not move. No single face satisfies it, but for any way to share out rho squared among the faces one
of them has its share: shares are chosen so that all faces cost the same.

``ball_space`` is a tuple over features: ``unordered`` (1 a category), ``moved``, ``grain`` (0 real, 1 integer, 2
listed), ``offset`` of the cells; ``closes``, the coordinate of the last value of each cell; the lists: ``list_at``,
``list_y``, ``list_cell``; ``fixed``, ``linear``, ``quadratic`` cost of a change; ``unit`` and ``origin``, so that a
decoded number is origin + unit * coordinate; ``factual_category``; and three values of rho squared: what clauses ask
for, a little less, at which they are met, and less again for the adversary, so that rounding makes none ask twice.
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
    highest,
    next_face,
    next_outside,
    push,
    take_node,
)
from methods.cells.neighbourhood import LOOKS, STUCK, grow, most_on, worst_in
from methods.estimators.trees import TINY

GAP = 4e-7  # a bound this near to the incumbent's cost proves it
FIRST, MOST = 1e-3, 1e6  # costs of a share: the first one tried, and the greatest
NOTHING = 1e-12  # a dual below which a clause raises no bound
SHARING = 30  # units of work for a face of a clause that is shared out
DUALS_PER_FACE = 48  # on one face, in one node
ROOT_ROUNDS, NODE_ROUNDS = 30, 1
NEAR = 1e-11  # coordinates this near are the same
CLAUSES, FOUND, WORK, ROOT = range(3, 7)  # counters, after HEAP, TOP, FREE


@njit_no_refcount
def move_cost(ball_space, f, gap):
    """The cost of moving a feature by a gap."""
    return ball_space[8][f] + (ball_space[9][f] + ball_space[10][f] * gap) * gap if gap > 0.0 else 0.0


@njit_no_refcount
def range_for(ball_space, f, budget):
    """The greatest gap that costs at most ``budget``."""
    rest = budget - ball_space[8][f]
    if rest <= 0.0:
        return 0.0
    linear, quadratic = ball_space[9][f], ball_space[10][f]
    if quadratic == 0.0:
        return rest / linear if linear > 0.0 else INFINITE
    return 2.0 * rest / (linear + np.sqrt(linear * linear + 4.0 * quadratic * rest))


@njit_no_refcount
def snap(ball_space, f, y, up):
    """The nearest coordinate that the feature may have, at or beyond ``y``; infinite where there is none."""
    grain = ball_space[2][f]
    if grain == 0 or not np.isfinite(y):
        return y
    if grain == 1:
        unit, origin = ball_space[11][f], ball_space[12][f]
        value = origin + y * unit
        value = np.ceil(value - 1e-9) if up else np.floor(value + 1e-9)
        return (value - origin) / unit
    begin, end = ball_space[5][f], ball_space[5][f + 1]
    if up:
        for i in range(begin, end):
            if ball_space[6][i] >= y - NEAR:
                return ball_space[6][i]
        return INFINITE
    for i in range(end - 1, begin - 1, -1):
        if ball_space[6][i] <= y + NEAR:
            return ball_space[6][i]
    return -INFINITE


@njit_no_refcount
def cell_at(ball_space, f, y):
    """The cell of a listed coordinate."""
    for i in range(ball_space[5][f], ball_space[5][f + 1]):
        if abs(ball_space[6][i] - y) <= NEAR:
            return ball_space[7][i]
    return -1


@njit_no_refcount
def past(ball_space, f, low, high, up):
    """The coordinate at which a feature leaves some cells: their end, or of a list the first state outside."""
    if ball_space[2][f] == 2:
        begin, end = ball_space[5][f], ball_space[5][f + 1]
        if up:
            for i in range(begin, end):
                if ball_space[7][i] > high:
                    return ball_space[6][i]
            return INFINITE
        for i in range(end - 1, begin - 1, -1):
            if ball_space[7][i] < low:
                return ball_space[6][i]
        return -INFINITE
    offset, closes = ball_space[3], ball_space[4]
    if up:
        return closes[offset[f] + high]
    return closes[offset[f] + low - 1] if low else -INFINITE


@njit_no_refcount
def nearest(ball_space, low, high, sets, point, category):
    """The cheapest point of a node, and its cost."""
    unordered, factual_category = ball_space[0], ball_space[13]
    total = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if (sets[f] >> np.uint64(factual_category[f])) & np.uint64(1):
                category[f] = factual_category[f]
            else:
                category[f] = highest(sets[f] & (~sets[f] + np.uint64(1)))
                total += move_cost(ball_space, f, 1.0)
            point[f] = 0.0
        else:
            point[f] = min(max(0.0, low[f]), high[f])
            total += move_cost(ball_space, f, abs(point[f]))
    return total


@njit_no_refcount
def cost_of(ball_space, point, category):
    total = 0.0
    for f in range(len(point)):
        if ball_space[0][f]:
            total += move_cost(ball_space, f, 1.0) if category[f] != ball_space[13][f] else 0.0
        else:
            total += move_cost(ball_space, f, abs(point[f]))
    return total


@njit_no_refcount
def changes_of(ball_space, point, category):
    """How many features differ from the factual."""
    count = 0
    for f in range(len(point)):
        count += category[f] != ball_space[13][f] if ball_space[0][f] else point[f] != 0.0
    return count


@njit_no_refcount
def room_left(ball_space, c, clauses, point, category):
    """The squared distance of a point from a clause's box; infinite where it leaves the box in an unmoved feature."""
    unordered, moved = ball_space[0], ball_space[1]
    c_set, left, right = clauses[2:5]
    total = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if not (c_set[c, f] >> np.uint64(category[f])) & np.uint64(1):
                return INFINITE
        elif moved[f]:
            gap = max(left[c, f] - point[f], point[f] - right[c, f])
            if gap > 0.0:
                total += gap * gap
                if total >= ball_space[14][1]:
                    return total
        elif point[f] <= left[c, f] or point[f] >= right[c, f]:
            return INFINITE
    return total


@njit_no_refcount
def residual_move_cost(ball_space, face, y, x, duals):
    """The cost of a move through a face to coordinate ``y`` that the duals leave."""
    at, level, part, number = duals
    f, gap = face // 2, abs(y)
    rest = move_cost(ball_space, f, gap) - move_cost(ball_space, f, abs(x))
    for i in range(number[face]):
        rest = rest - part[face, i] if gap >= at[face, i] else min(rest, level[face, i])
    return max(rest, 0.0)


@njit_no_refcount
def reachable(ball_space, face, budget, x, bound, duals):
    """The farthest coordinate through a face, within the node and of the feature, of residual cost up to a budget."""
    _at, level, part, number = duals
    f = face // 2
    for i in range(number[face] - 1, -1, -1):
        if budget >= level[face, i]:
            budget += part[face, i]
    gap = range_for(ball_space, f, move_cost(ball_space, f, abs(x)) + budget)
    gap = max(gap, abs(x))
    if gap >= abs(bound):
        return bound
    if face % 2:
        return max(snap(ball_space, f, gap, False), x)
    return min(snap(ball_space, f, -gap, True), x)


@njit_no_refcount
def propagate_clause(ball_space, c, clauses, low, high, sets):
    """Tighten a node by a clause: -1 where it cannot be satisfied, 1 where something changed, else 0."""
    unordered, moved, radius = ball_space[0], ball_space[1], ball_space[14][0]
    c_set, left, right = clauses[2:5]
    most = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if sets[f] & ~c_set[c, f]:
                return 0
        elif moved[f]:
            gap = max(left[c, f] - low[f], high[f] - right[c, f], 0.0)
            most += gap * gap
        elif low[f] <= left[c, f] or high[f] >= right[c, f]:
            return 0
    if most < radius:
        return -1
    changed = 0
    for f in range(len(unordered)):
        if unordered[f] or not moved[f]:
            continue
        down, up = max(left[c, f] - low[f], 0.0), max(high[f] - right[c, f], 0.0)
        need = radius - (most - max(down, up) ** 2)
        if need <= 0.0:
            continue
        need = np.sqrt(need) * (1.0 - 1e-12)
        if up >= need and down < need:
            place = snap(ball_space, f, right[c, f] + need, True)
            if place > low[f] + NEAR:
                low[f] = place
                changed = 1
        elif down >= need and up < need:
            place = snap(ball_space, f, left[c, f] - need, False)
            if place < high[f] - NEAR:
                high[f] = place
                changed = 1
        if low[f] > high[f]:
            return -1
    return changed


@njit_no_refcount
def excess_for(ball_space, c, clauses, low, high, point, duals, budget, base, begin, number, faces):
    """``base`` and the squared distance from a clause's box that a residual cost of ``budget`` buys on each face."""
    left, right = clauses[3:5]
    total, i = base, begin
    while i < number:
        f = faces[i] // 2
        # What the point has on either side counts where it is more.
        gap = max(left[c, f] - point[f], point[f] - right[c, f], 0.0)
        while i < number and faces[i] // 2 == f:
            up = faces[i] % 2
            y = reachable(ball_space, faces[i], budget, point[f], high[f] if up else low[f], duals)
            gap = max(gap, y - right[c, f] if up else left[c, f] - y)
            i += 1
        total += gap * gap
    return total


@njit_no_refcount
def shares(ball_space, c, clauses, low, high, sets, point, change, duals, slack, faces, places):
    """Share out rho squared among the faces of a violated clause, so that all cost the same.

    Returns what each of them costs at least, at most ``slack`` and infinite where the node can leave through none, and
    how many there are: ``faces``, and the coordinate of each one's share in ``places``.
    """
    unordered, moved, radius = ball_space[0], ball_space[1], ball_space[14][0]
    c_set, left, right = clauses[2:5]
    number, cheapest = 0, INFINITE
    for f in range(len(unordered)):
        if unordered[f]:
            if sets[f] & ~c_set[c, f]:
                faces[number] = 2 * f
                number += 1
                cheapest = min(cheapest, change[f])
        elif not moved[f]:
            if high[f] >= right[c, f]:
                faces[number], places[number] = 2 * f + 1, right[c, f]
                number += 1
                cheapest = min(cheapest, residual_move_cost(ball_space, 2 * f + 1, right[c, f], point[f], duals))
            if low[f] <= left[c, f]:
                faces[number], places[number] = 2 * f, left[c, f]
                number += 1
                cheapest = min(cheapest, residual_move_cost(ball_space, 2 * f, left[c, f], point[f], duals))
    firsts = number  # faces that satisfy the clause alone
    base = 0.0  # of features that have an excess here and cannot get more
    for f in range(len(unordered)):
        if unordered[f] or not moved[f]:
            continue
        one = number
        if high[f] > right[c, f] and high[f] > point[f]:
            faces[number] = 2 * f + 1
            number += 1
        if low[f] < left[c, f] and low[f] < point[f]:
            faces[number] = 2 * f
            number += 1
        if number == one:
            gap = max(left[c, f] - point[f], point[f] - right[c, f], 0.0)
            base += gap * gap
    most = min(cheapest, slack, MOST)
    if excess_for(ball_space, c, clauses, low, high, point, duals, 0.0, base, firsts, number, faces) >= radius:
        return 0.0, 0
    lower, upper = 0.0, min(most, FIRST)
    while excess_for(ball_space, c, clauses, low, high, point, duals, upper, base, firsts, number, faces) < radius:
        lower = upper
        if upper == most:
            break
        upper = min(4.0 * upper, most)
    if lower == MOST:
        return INFINITE, 0
    while upper - lower > 1e-8 * upper and upper > NOTHING:
        budget = 0.5 * (lower + upper)
        if excess_for(ball_space, c, clauses, low, high, point, duals, budget, base, firsts, number, faces) < radius:
            lower = budget
        else:
            upper = budget
    for i in range(firsts, number):
        f = faces[i] // 2
        up = faces[i] % 2 == 1
        bound = high[f] if up else low[f]
        y = reachable(ball_space, faces[i], lower, point[f], bound, duals)
        edge = right[c, f] if up else left[c, f]
        discrete = ball_space[2][f] > 0
        if up:
            places[i] = snap(ball_space, f, y + 1e-7 if discrete and y >= edge else max(y, edge), True)
        else:
            places[i] = snap(ball_space, f, y - 1e-7 if discrete and y <= edge else min(y, edge), False)
    return lower, number


@njit_no_refcount
def raise_dual(ball_space, dual, number, faces, places, point, change, duals):
    """Raise the dual of a clause: lower the residual cost of each of its faces."""
    at, level, part, used = duals
    if dual <= 0.0:
        return
    for i in range(number):
        face = faces[i]
        f = face // 2
        if ball_space[0][f]:
            change[f] = max(change[f] - dual, 0.0)
            continue
        n = used[face]
        if n == at.shape[1]:
            # Out of room: no move beyond the point has a residual cost any more, which is safe.
            n -= 1
            at[face, n], level[face, n], part[face, n] = 0.0, 0.0, INFINITE
            continue
        rest = residual_move_cost(ball_space, face, places[i], point[f], duals) - dual
        at[face, n], level[face, n], part[face, n] = abs(places[i]), max(rest, 0.0), dual
        used[face] = n + 1


@njit_no_refcount
def enclose(ball_space, point, category, neighbourhood):
    """Put the box of cells that a ball may meet first on the adversary's stack."""
    unordered, _moved, offset, closes = ball_space[0], ball_space[1], ball_space[3], ball_space[4]
    radius = np.sqrt(ball_space[14][2])
    for f in range(len(unordered)):
        if unordered[f]:
            low = high = category[f]
        elif ball_space[2][f] == 2:
            low = high = cell_at(ball_space, f, point[f])
        else:
            low = high = 0
            cells = offset[f + 1] - offset[f]
            while low < cells - 1 and closes[offset[f] + low] <= point[f] - radius:
                low += 1
            high = low
            while high < cells - 1 and closes[offset[f] + high] < point[f] + radius:
                high += 1
        neighbourhood[8][0, f], neighbourhood[9][0, f] = low, high


@njit_no_refcount
def weakest(grid, base, ball_space, point, category, neighbourhood, counters):
    """As ``weakest`` of ``methods.cells.neighbourhood``, of the cells that the ball around a point meets."""
    enclose(ball_space, point, category, neighbourhood)
    score = worst_in(grid, base, ball_space[0], neighbourhood, (point, ball_space[4], ball_space[1], ball_space[14][2]))
    counters[WORK] += neighbourhood[20][LOOKS] * grid[1].shape[0]
    neighbourhood[20][LOOKS] = 0
    return score


@njit(cache=True)
def learn(
    grid, base, same, ball_space, low, high, sets, point, category, change, duals, clauses, counters, neighbourhood
):
    """Add the box of cells in ``neighbourhood``, grown by the cheapest escapes first, to the clauses; its number."""
    unordered, _moved, offset = ball_space[0], ball_space[1], ball_space[3]
    c_low, c_high, c_set, left, right = clauses[:5]
    worst_low, worst_high = neighbourhood[18:20]
    count, trees = len(unordered), grid[1].shape[0]
    c = counters[CLAUSES]
    counters[CLAUSES] += 1
    chosen = np.zeros(count, np.uint64)
    for f in range(count):
        if unordered[f]:
            chosen[f] = np.uint64(1) << np.uint64(worst_low[f])
    if not same:
        masks = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64)
        fresh = np.empty_like(masks)
        best, trial = np.empty(trees), np.empty(trees)
        total = base + most_on(grid, worst_low, worst_high, masks, best)
        residual_costs, heap, size = np.empty(2 * count), np.empty(2 * count, np.int64), 0
        box = (worst_low, worst_high, chosen)
        refused = np.zeros(count, np.uint64)
        radius = np.sqrt(ball_space[14][0])
        for face in range(2 * count):
            residual_costs[face] = escape(ball_space, face, box, refused, low, high, sets, point, change, duals, radius)
            if residual_costs[face] >= 0.0:
                size = push(heap, residual_costs, size, face)
        seen = np.zeros(trees, np.int64)
        face, step = -1, 0
        while True:
            face, size = next_face(face, residual_costs, heap, size)
            if face < 0:
                break
            step += 1
            f = face // 2
            picked = np.uint64(0)
            if unordered[f]:
                picked = next_outside(offset[f + 1] - offset[f], chosen[f], refused[f], sets[f])
                end = highest(picked)
            else:
                end = worst_high[f] + 1 if face % 2 else worst_low[f] - 1
            grown = grow(
                grid, unordered, face, end, worst_low, worst_high, total, masks, fresh, best, trial, seen, step
            )
            fine = grown < -TINY
            if fine:
                total = grown
                chosen[f] |= picked
            elif unordered[f]:
                refused[f] |= picked
            residual_costs[face] = -1.0
            if fine or unordered[f]:
                residual_costs[face] = escape(
                    ball_space, face, box, refused, low, high, sets, point, change, duals, radius
                )
        counters[WORK] += 40 * trees
    for f in range(count):
        c_low[c, f], c_high[c, f], c_set[c, f] = worst_low[f], worst_high[f], chosen[f]
        if not unordered[f]:
            left[c, f] = past(ball_space, f, worst_low[f], worst_high[f], False)
            right[c, f] = past(ball_space, f, worst_low[f], worst_high[f], True)
    return c


@njit_no_refcount
def escape(ball_space, face, box, refused, low, high, sets, point, change, duals, radius):
    """Residual cost of leaving a box altogether through a face; infinite where the node rules it out, -1 where none."""
    c_low, c_high, chosen = box
    f, offset = face // 2, ball_space[3]
    cells = offset[f + 1] - offset[f]
    if ball_space[0][f]:
        outside = all_of(cells) & ~chosen[f] & ~refused[f]
        if face % 2 or not outside:
            return -1.0
        return change[f] if outside & sets[f] else INFINITE
    if c_high[f] + 1 >= cells if face % 2 else c_low[f] <= 0:
        return -1.0
    way = radius if ball_space[1][f] else 0.0
    if face % 2:
        place = past(ball_space, f, c_low[f], c_high[f], True) + way
        if place > high[f]:
            return INFINITE
        return residual_move_cost(ball_space, face, place, point[f], duals) if place > point[f] else 0.0
    place = past(ball_space, f, c_low[f], c_high[f], False) - way
    if place < low[f]:
        return INFINITE
    return residual_move_cost(ball_space, face, place, point[f], duals) if place < point[f] else 0.0


@njit_no_refcount
def free_point(
    ball_space, clauses, used, low, high, sets, point, category, change, duals, trial, trial_category, moves
):
    """A point that satisfies all clauses, reached through faces without residual cost; whether there is one."""
    unordered, moved, radius = ball_space[0], ball_space[1], ball_space[14][0]
    c_set, left, right = clauses[2:5]
    count = len(unordered)
    for f in range(count):
        trial[f], trial_category[f] = point[f], category[f]
    for _ in range(moves):
        c = -1
        for k in range(used - 1, -1, -1):
            if room_left(ball_space, k, clauses, trial, trial_category) < ball_space[14][1]:
                c = k
                break
        if c < 0:
            return True
        need = radius - room_left(ball_space, c, clauses, trial, trial_category)
        chosen, place, gain = -1, 0.0, 0.0
        for f in range(count):
            if unordered[f]:
                outside = sets[f] & ~c_set[c, f]
                if outside and change[f] <= NEAR and trial_category[f] == category[f]:
                    chosen, gain = f, INFINITE
                    place = float(highest(outside & (~outside + np.uint64(1))))
                continue
            for side in range(2):
                bound = high[f] if side else low[f]
                if trial[f] < point[f] if side else trial[f] > point[f]:
                    continue
                if (side and high[f] <= point[f]) or (not side and low[f] >= point[f]):
                    continue
                far = reachable(ball_space, 2 * f + side, NEAR, point[f], bound, duals)
                edge = right[c, f] if side else left[c, f]
                if not moved[f]:
                    if far >= edge if side else far <= edge:
                        chosen, place, gain = f, edge, INFINITE
                    continue
                now = max(left[c, f] - trial[f], trial[f] - right[c, f], 0.0)
                then = far - edge if side else edge - far
                if then > now and (then * then - now * now) > gain:
                    chosen, gain = f, then * then - now * now
                    if gain >= need:
                        way = np.sqrt(now * now + need) * (1.0 + 1e-12)
                        y = snap(ball_space, f, edge + way if side else edge - way, side == 1)
                        place = min(y, far) if side else max(y, far)
                    else:
                        place = far
        if chosen < 0:
            return False
        if unordered[chosen]:
            trial_category[chosen] = int(place)
        else:
            trial[chosen] = place
    return False


@njit_no_refcount
def pull_in(grid, base, ball_space, clauses, used, point, category, neighbourhood, counters, tried, end):
    """Move a right point's features back towards the factual, costliest first, as far as halving shows it right.

    No more are tried once the work done has come to ``end``.
    """
    unordered, radius = ball_space[0], ball_space[14][1]
    count = len(unordered)
    for f in range(count):
        tried[f] = 0
    for _ in range(count):
        f, most = -1, 0.0
        for g in range(count):
            here = move_cost(ball_space, g, 1.0 if unordered[g] else abs(point[g])) if not tried[g] else 0.0
            if unordered[g] and category[g] == ball_space[13][g]:
                here = 0.0
            if here > most:
                f, most = g, here
        if f < 0 or counters[WORK] > end:
            return
        tried[f] = 1
        old, old_category, near = point[f], category[f], 0.0
        for turn in range(5):
            if unordered[f]:
                category[f] = ball_space[13][f]
            else:
                middle = 0.0 if turn == 0 else 0.5 * (near + old)
                middle = snap(ball_space, f, middle, old > 0.0)
                if middle == old:
                    break
                point[f] = middle
            fine = True
            for c in range(used - 1, -1, -1):
                if room_left(ball_space, c, clauses, point, category) < radius:
                    fine = False
                    break
            if fine:
                score = weakest(grid, base, ball_space, point, category, neighbourhood, counters)
                fine = score > TINY and not neighbourhood[20][STUCK]
            if fine:
                old, old_category = point[f], category[f]
            else:
                near = point[f]
                point[f], category[f] = old, old_category
            if unordered[f] or old == 0.0:
                break
        point[f], category[f] = old, old_category


@njit_no_refcount
def keep(point, category, value, upper, best, best_category, counters):
    """A new incumbent, if it is better."""
    if value < upper[0]:
        upper[0] = value
        for f in range(len(point)):
            best[f], best_category[f] = point[f], category[f]
        counters[FOUND] = 1


@njit_no_refcount
def allows_factual(ball_space, low, high, sets, f):
    """Whether a node lets a feature stay as it is."""
    if ball_space[0][f]:
        return (sets[f] >> np.uint64(ball_space[13][f])) & np.uint64(1) != 0
    return low[f] <= 0.0 <= high[f]


@njit_no_refcount
def few_enough(ball_space, low, high, sets, most):
    """Keep within the bound on changed features; False where the node cannot."""
    unordered, factual_category = ball_space[0], ball_space[13]
    forced = 0
    for f in range(len(unordered)):
        forced += not allows_factual(ball_space, low, high, sets, f)
    if forced > most:
        return False
    if forced + 1 > most:
        for f in range(len(unordered)):
            if allows_factual(ball_space, low, high, sets, f):
                if unordered[f]:
                    sets[f] = np.uint64(1) << np.uint64(factual_category[f])
                else:
                    low[f] = high[f] = 0.0
    return True


@njit(cache=True)
def run(
    grid, base, ball_space, most, clauses, nodes, counters, best, best_category, asked, upper, effort, neighbourhood
):
    """Best-first branch and bound, as ``kernels.run``; returns why it stopped."""
    unordered, factual_category, radius = ball_space[0], ball_space[13], ball_space[14][1]
    n_low, keys, heap = nodes[0], nodes[3], nodes[4]
    count, trees, room = len(unordered), grid[1].shape[0], clauses[0].shape[0]
    low, high, sets = np.empty(count), np.empty(count), np.empty(count, np.uint64)
    point, trial, category, trial_category = (
        np.empty(count), np.empty(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    )  # fmt: skip
    change, tried = np.empty(count), np.zeros(count, np.int64)
    duals = (
        np.empty((2 * count, DUALS_PER_FACE)), np.empty((2 * count, DUALS_PER_FACE)),
        np.empty((2 * count, DUALS_PER_FACE)), np.zeros(2 * count, np.int64),
    )  # fmt: skip
    faces, places = np.empty(2 * count, np.int64), np.empty(2 * count)
    best_faces, best_places = np.empty(2 * count, np.int64), np.empty(2 * count)
    violated, alone, width = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    end = counters[WORK] + effort
    while counters[HEAP]:
        upper[1] = min(keys[heap[0]], upper[0])
        if upper[1] >= upper[0] - GAP:
            break
        if counters[WORK] > end:
            return PAUSED
        if counters[TOP] - counters[FREE] + 2 * count + 4 > n_low.shape[0]:
            return MORE_NODES
        if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
            return MORE_CLAUSES
        key = take_node(low, high, sets, nodes, counters)
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        while True:
            if not few_enough(ball_space, low, high, sets, most):
                break
            counters[WORK] += 4 * counters[CLAUSES] + trees
            lowest = nearest(ball_space, low, high, sets, point, category)
            if lowest >= upper[0] - GAP:
                break
            total, changed = 0, 0
            for c in range(counters[CLAUSES]):
                if room_left(ball_space, c, clauses, point, category) >= radius:
                    continue
                changed = propagate_clause(ball_space, c, clauses, low, high, sets)
                if changed:
                    break
                violated[total] = c
                total += 1
            if changed < 0:
                break
            if changed:
                continue
            for f in range(count):
                duals[3][2 * f] = duals[3][2 * f + 1] = 0
                stays = unordered[f] and category[f] == factual_category[f]
                change[f] = move_cost(ball_space, f, 1.0) if stays else 0.0
            slack = upper[0] - GAP - lowest
            bound = lowest
            if total:
                # The dual of each clause alone: the one to branch on, and the order in which duals are raised.
                stop = False
                chosen, chosen_quality, chosen_number = -1, -1.0, 0
                for k in range(total):
                    alone[k], width[k] = shares(
                        ball_space, violated[k], clauses, low, high, sets, point, change, duals, slack, faces, places
                    )
                    counters[WORK] += SHARING * (width[k] + 1)
                    if alone[k] >= slack:
                        stop = True
                        break
                    quality = alone[k] / max(width[k], 1)
                    if quality > chosen_quality:
                        chosen, chosen_quality, chosen_number = k, quality, width[k]
                        best_faces[:], best_places[:] = faces, places
                if stop:
                    break
                order = np.argsort(width[:total])
                for k in order:
                    dual, number = shares(
                        ball_space, violated[k], clauses, low, high, sets, point, change, duals, slack, faces, places
                    )
                    counters[WORK] += SHARING * (number + 1)
                    raise_dual(ball_space, dual, number, faces, places, point, change, duals)
                    bound += dual
                    slack -= dual
                    if slack <= 0.0:
                        break
                key = max(key, bound)
                if slack <= 0.0:
                    break
                # What would cost more than the incumbent leaves is dropped.
                for f in range(count):
                    if unordered[f]:
                        if category[f] == factual_category[f] and change[f] >= slack:
                            sets[f] = np.uint64(1) << np.uint64(factual_category[f])
                        continue
                    if high[f] > point[f]:
                        high[f] = reachable(ball_space, 2 * f + 1, slack, point[f], high[f], duals)
                    if low[f] < point[f]:
                        low[f] = reachable(ball_space, 2 * f, slack, point[f], low[f], duals)
            else:
                score = weakest(grid, base, ball_space, point, category, neighbourhood, counters)
                if neighbourhood[20][STUCK]:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_LOOKS
                if score > TINY:
                    if changes_of(ball_space, point, category) <= most:
                        keep(point, category, lowest, upper, best, best_category, counters)
                    break
                if score >= -TINY:
                    add_node(low, high, sets, key, nodes, counters)
                    asked[:] = neighbourhood[18]
                    return ASK
                learn(
                    grid, base, False, ball_space, low, high, sets, point, category, change, duals, clauses, counters,
                    neighbourhood,
                )  # fmt: skip
                if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_CLAUSES
                if counters[WORK] > end:  # one node may take very many clauses
                    add_node(low, high, sets, key, nodes, counters)
                    return PAUSED
                continue
            stop = False
            while rounds > 0 and counters[WORK] <= end:
                rounds -= 1
                counters[WORK] += 4 * counters[CLAUSES]
                used = counters[CLAUSES]
                if not free_point(
                    ball_space, clauses, used, low, high, sets, point, category, change, duals, trial, trial_category,
                    20 * count,
                ):  # fmt: skip
                    break
                score = weakest(grid, base, ball_space, trial, trial_category, neighbourhood, counters)
                if neighbourhood[20][STUCK]:
                    break
                if score > TINY:
                    if changes_of(ball_space, trial, trial_category) <= most:
                        pull_in(
                            grid, base, ball_space, clauses, used, trial, trial_category, neighbourhood, counters,
                            tried, end,
                        )  # fmt: skip
                        value = cost_of(ball_space, trial, trial_category)
                        keep(trial, trial_category, value, upper, best, best_category, counters)
                        stop = bound >= upper[0] - GAP
                    break
                if score >= -TINY:
                    break
                c = learn(
                    grid, base, False, ball_space, low, high, sets, point, category, change, duals, clauses, counters,
                    neighbourhood,
                )  # fmt: skip
                if room_left(ball_space, c, clauses, point, category) < radius:
                    slack = upper[0] - GAP - bound
                    dual, number = shares(
                        ball_space, c, clauses, low, high, sets, point, change, duals, slack, faces, places
                    )
                    raise_dual(ball_space, dual, number, faces, places, point, change, duals)
                    bound += dual
                    key = max(key, bound)
                    if bound >= upper[0] - GAP:
                        stop = True
                        break
            if stop:
                break
            branch(ball_space, clauses, violated[chosen], low, high, sets, chosen_number, best_faces, best_places, key,
                   nodes, counters, point, category)  # fmt: skip
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def branch(ball_space, clauses, c, low, high, sets, number, faces, places, key, nodes, counters, point, category):
    """One child per face of a clause that has its share; later children have less than those before them."""
    c_set = clauses[2]
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    spare, spare_category = np.empty(len(low)), np.zeros(len(low), np.int64)
    for i in range(number):
        face = faces[i]
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if ball_space[0][f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, places[i])
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, places[i])
            here = old_low <= child_high[f]
        if here:
            least = nearest(ball_space, child_low, child_high, child_set, spare, spare_category)
            add_node(child_low, child_high, child_set, max(key, least), nodes, counters)
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if ball_space[0][f]:
            child_set[f] = old_set & c_set[c, f]
            if not child_set[f]:
                return
        elif face % 2:
            inner = places[i] if ball_space[2][f] == 0 else snap(ball_space, f, places[i] - 1e-7, False)
            child_high[f] = min(old_high, inner)
        else:
            inner = places[i] if ball_space[2][f] == 0 else snap(ball_space, f, places[i] + 1e-7, True)
            child_low[f] = max(old_low, inner)
        if child_low[f] > child_high[f]:
            return
