"""Compiled kernels for points with a ball around them: branch and bound over coordinates instead of states.

Coordinates of an ordered feature are scaled differences from the factual, which is 0; the further, the dearer. A ball
of radius rho moves some features, real or integer; a feature that it does not move has a list of states. A *clause*
is a box of cells on which the ensemble is surely wrong: a point has to be rho away from it, or outside it in a feature
that the ball does not move. No single face satisfies it, but for any way to share out rho squared among the faces one
of them has its share: shares are chosen so that all faces cost the same.

``board`` is a tuple over features: ``kinds`` (1 a category), ``moved``, ``grain`` (0 real, 1 integer, 2 listed),
``offset`` of the cells; ``closes``, the coordinate of the last value of each cell; the lists: ``list_at``, ``list_y``,
``list_cell``; ``fixed``, ``linear``, ``quadratic`` cost of a change; ``unit`` and ``origin``, so that a decoded number
is origin + unit * coordinate; ``home``, the factual's category; rho squared for what clauses ask for, a little less
for when they are met, and less again for the adversary, so that rounding makes none of them ask twice.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from methods.cells.masks import INFINITE, all_of, highest, next_face, next_outside, pop, push
from methods.cells.neighbourhood import LOOKS, STUCK, grow, most_on, worst_in
from methods.estimators.compiling import njit_no_refcount
from methods.estimators.trees import TINY

DONE, PAUSED, ASK, MORE_NODES, MORE_CLAUSES, MORE_LOOKS = 0, 1, 2, 3, 4, 5
GAP = 4e-7  # a bound this near to the incumbent's cost proves it
FIRST, DEAR = 1e-3, 1e6  # costs of a share to begin with, and beyond which there is none
NOTHING = 1e-12  # a price below which a clause is worth none
SHARING = 30  # units of work for a face of a clause that is shared out
PAYMENTS = 48  # on one face, in one node
ROOT_ROUNDS, NODE_ROUNDS = 30, 1
NEAR = 1e-11  # coordinates this near are the same
HEAP, TOP, FREE, CLAUSES, FOUND, WORK, ROOT = range(7)


@njit_no_refcount
def toll(board, f, gap):
    """What it costs to move a feature by a gap."""
    return board[8][f] + (board[9][f] + board[10][f] * gap) * gap if gap > 0.0 else 0.0


@njit_no_refcount
def range_for(board, f, money):
    """The greatest gap that costs at most so much."""
    rest = money - board[8][f]
    if rest <= 0.0:
        return 0.0
    linear, quadratic = board[9][f], board[10][f]
    if quadratic == 0.0:
        return rest / linear if linear > 0.0 else INFINITE
    return 2.0 * rest / (linear + np.sqrt(linear * linear + 4.0 * quadratic * rest))


@njit_no_refcount
def snap(board, f, y, up):
    """The nearest coordinate that the feature may have, at or beyond ``y``; infinite where there is none."""
    grain = board[2][f]
    if grain == 0 or not np.isfinite(y):
        return y
    if grain == 1:
        unit, origin = board[11][f], board[12][f]
        value = origin + y * unit
        value = np.ceil(value - 1e-9) if up else np.floor(value + 1e-9)
        return (value - origin) / unit
    begin, end = board[5][f], board[5][f + 1]
    if up:
        for i in range(begin, end):
            if board[6][i] >= y - NEAR:
                return board[6][i]
        return INFINITE
    for i in range(end - 1, begin - 1, -1):
        if board[6][i] <= y + NEAR:
            return board[6][i]
    return -INFINITE


@njit_no_refcount
def cell_at(board, f, y):
    """The cell of a listed coordinate."""
    for i in range(board[5][f], board[5][f + 1]):
        if abs(board[6][i] - y) <= NEAR:
            return board[7][i]
    return -1


@njit_no_refcount
def past(board, f, low, high, up):
    """The coordinate at which a feature leaves some cells: their end, or of a list the first state outside."""
    if board[2][f] == 2:
        begin, end = board[5][f], board[5][f + 1]
        if up:
            for i in range(begin, end):
                if board[7][i] > high:
                    return board[6][i]
            return INFINITE
        for i in range(end - 1, begin - 1, -1):
            if board[7][i] < low:
                return board[6][i]
        return -INFINITE
    offset, closes = board[3], board[4]
    if up:
        return closes[offset[f] + high]
    return closes[offset[f] + low - 1] if low else -INFINITE


@njit_no_refcount
def nearest(board, low, high, sets, point, group):
    """The cheapest point of a node, and its cost."""
    kinds, home = board[0], board[13]
    total = 0.0
    for f in range(len(kinds)):
        if kinds[f]:
            if (sets[f] >> np.uint64(home[f])) & np.uint64(1):
                group[f] = home[f]
            else:
                group[f] = highest(sets[f] & (~sets[f] + np.uint64(1)))
                total += toll(board, f, 1.0)
            point[f] = 0.0
        else:
            point[f] = min(max(0.0, low[f]), high[f])
            total += toll(board, f, abs(point[f]))
    return total


@njit_no_refcount
def cost_of(board, point, group):
    total = 0.0
    for f in range(len(point)):
        if board[0][f]:
            total += toll(board, f, 1.0) if group[f] != board[13][f] else 0.0
        else:
            total += toll(board, f, abs(point[f]))
    return total


@njit_no_refcount
def changes_of(board, point, group):
    """How many features differ from the factual."""
    count = 0
    for f in range(len(point)):
        count += group[f] != board[13][f] if board[0][f] else point[f] != 0.0
    return count


@njit_no_refcount
def room_left(board, c, clauses, point, group):
    """The squared distance of a point from a clause's box; infinite where it leaves the box in an unmoved feature."""
    kinds, moved = board[0], board[1]
    c_set, left, right = clauses[2:5]
    total = 0.0
    for f in range(len(kinds)):
        if kinds[f]:
            if not (c_set[c, f] >> np.uint64(group[f])) & np.uint64(1):
                return INFINITE
        elif moved[f]:
            gap = max(left[c, f] - point[f], point[f] - right[c, f])
            if gap > 0.0:
                total += gap * gap
                if total >= board[14][1]:
                    return total
        elif point[f] <= left[c, f] or point[f] >= right[c, f]:
            return INFINITE
    return total


@njit_no_refcount
def residual(board, face, y, x, paid):
    """What is left to pay for a move through a face to coordinate ``y``."""
    at, level, part, number = paid
    f, gap = face // 2, abs(y)
    rest = toll(board, f, gap) - toll(board, f, abs(x))
    for i in range(number[face]):
        rest = rest - part[face, i] if gap >= at[face, i] else min(rest, level[face, i])
    return max(rest, 0.0)


@njit_no_refcount
def reachable(board, face, money, x, bound, paid):
    """How far through a face residual money goes, up to the node's bound, at a coordinate that the feature may have."""
    _at, level, part, number = paid
    f = face // 2
    for i in range(number[face] - 1, -1, -1):
        if money >= level[face, i]:
            money += part[face, i]
    gap = range_for(board, f, toll(board, f, abs(x)) + money)
    gap = max(gap, abs(x))
    if gap >= abs(bound):
        return bound
    if face % 2:
        return max(snap(board, f, gap, False), x)
    return min(snap(board, f, -gap, True), x)


@njit_no_refcount
def held_up(board, c, clauses, low, high, sets):
    """Tighten a node by a clause: -1 where it cannot be satisfied, 1 where something changed, else 0."""
    kinds, moved, radius = board[0], board[1], board[14][0]
    c_set, left, right = clauses[2:5]
    most = 0.0
    for f in range(len(kinds)):
        if kinds[f]:
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
    for f in range(len(kinds)):
        if kinds[f] or not moved[f]:
            continue
        down, up = max(left[c, f] - low[f], 0.0), max(high[f] - right[c, f], 0.0)
        need = radius - (most - max(down, up) ** 2)
        if need <= 0.0:
            continue
        need = np.sqrt(need) * (1.0 - 1e-12)
        if up >= need and down < need:
            place = snap(board, f, right[c, f] + need, True)
            if place > low[f] + NEAR:
                low[f] = place
                changed = 1
        elif down >= need and up < need:
            place = snap(board, f, left[c, f] - need, False)
            if place < high[f] - NEAR:
                high[f] = place
                changed = 1
        if low[f] > high[f]:
            return -1
    return changed


@njit_no_refcount
def excess_for(board, c, clauses, low, high, point, paid, money, base, begin, number, faces):
    """The squared distance from a clause's box, over and above ``base``, that residual money buys on each face."""
    left, right = clauses[3:5]
    total, i = base, begin
    while i < number:
        f = faces[i] // 2
        # What the point has on either side counts where it is more.
        gap = max(left[c, f] - point[f], point[f] - right[c, f], 0.0)
        while i < number and faces[i] // 2 == f:
            up = faces[i] % 2
            y = reachable(board, faces[i], money, point[f], high[f] if up else low[f], paid)
            gap = max(gap, y - right[c, f] if up else left[c, f] - y)
            i += 1
        total += gap * gap
    return total


@njit_no_refcount
def shares(board, c, clauses, low, high, sets, point, change, paid, slack, faces, places):
    """Share out rho squared among the faces of a violated clause, so that all cost the same.

    Returns what each of them costs at least, at most ``slack`` and infinite where the node can leave through none, and
    how many there are: ``faces``, and the coordinate of each one's share in ``places``.
    """
    kinds, moved, radius = board[0], board[1], board[14][0]
    c_set, left, right = clauses[2:5]
    number, price = 0, INFINITE
    for f in range(len(kinds)):
        if kinds[f]:
            if sets[f] & ~c_set[c, f]:
                faces[number] = 2 * f
                number += 1
                price = min(price, change[f])
        elif not moved[f]:
            if high[f] >= right[c, f]:
                faces[number], places[number] = 2 * f + 1, right[c, f]
                number += 1
                price = min(price, residual(board, 2 * f + 1, right[c, f], point[f], paid))
            if low[f] <= left[c, f]:
                faces[number], places[number] = 2 * f, left[c, f]
                number += 1
                price = min(price, residual(board, 2 * f, left[c, f], point[f], paid))
    firsts = number  # faces that satisfy the clause alone
    base = 0.0  # of features that have an excess here and cannot get more
    for f in range(len(kinds)):
        if kinds[f] or not moved[f]:
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
    most = min(price, slack, DEAR)
    if excess_for(board, c, clauses, low, high, point, paid, 0.0, base, firsts, number, faces) >= radius:
        return 0.0, 0
    lower, upper = 0.0, min(most, FIRST)
    while excess_for(board, c, clauses, low, high, point, paid, upper, base, firsts, number, faces) < radius:
        lower = upper
        if upper == most:
            break
        upper = min(4.0 * upper, most)
    if lower == DEAR:
        return INFINITE, 0
    while upper - lower > 1e-8 * upper and upper > NOTHING:
        money = 0.5 * (lower + upper)
        if excess_for(board, c, clauses, low, high, point, paid, money, base, firsts, number, faces) < radius:
            lower = money
        else:
            upper = money
    for i in range(firsts, number):
        f = faces[i] // 2
        up = faces[i] % 2 == 1
        bound = high[f] if up else low[f]
        y = reachable(board, faces[i], lower, point[f], bound, paid)
        edge = right[c, f] if up else left[c, f]
        discrete = board[2][f] > 0
        if up:
            places[i] = snap(board, f, y + 1e-7 if discrete and y >= edge else max(y, edge), True)
        else:
            places[i] = snap(board, f, y - 1e-7 if discrete and y <= edge else min(y, edge), False)
    return lower, number


@njit_no_refcount
def pay(board, price, number, faces, places, point, change, paid):
    """Take what a clause is worth from each of its faces."""
    at, level, part, used = paid
    if price <= 0.0:
        return
    for i in range(number):
        face = faces[i]
        f = face // 2
        if board[0][f]:
            change[f] = max(change[f] - price, 0.0)
            continue
        n = used[face]
        if n == at.shape[1]:
            # Out of room: nothing beyond the point is left to pay for, which is safe.
            n -= 1
            at[face, n], level[face, n], part[face, n] = 0.0, 0.0, INFINITE
            continue
        rest = residual(board, face, places[i], point[f], paid) - price
        at[face, n], level[face, n], part[face, n] = abs(places[i]), max(rest, 0.0), price
        used[face] = n + 1


@njit_no_refcount
def touch(board, point, group, reach):
    """Put the box of cells that a ball may meet first on the adversary's stack."""
    kinds, _moved, offset, closes = board[0], board[1], board[3], board[4]
    radius = np.sqrt(board[14][2])
    for f in range(len(kinds)):
        if kinds[f]:
            low = high = group[f]
        elif board[2][f] == 2:
            low = high = cell_at(board, f, point[f])
        else:
            low = high = 0
            cells = offset[f + 1] - offset[f]
            while low < cells - 1 and closes[offset[f] + low] <= point[f] - radius:
                low += 1
            high = low
            while high < cells - 1 and closes[offset[f] + high] < point[f] + radius:
                high += 1
        reach[8][0, f], reach[9][0, f] = low, high


@njit_no_refcount
def weakest(grid, base, board, point, group, reach, counters):
    """As ``touched.weakest``, of the cells that the ball around a point meets."""
    touch(board, point, group, reach)
    score = worst_in(grid, base, board[0], reach, (point, board[4], board[1], board[14][2]))
    counters[WORK] += reach[20][LOOKS] * grid[1].shape[0]
    reach[20][LOOKS] = 0
    return score


@njit(cache=True)
def learn(grid, base, same, board, low, high, sets, point, group, change, paid, clauses, counters, reach):
    """Add the box of cells in ``reach``, grown by the cheapest escapes first, to the clauses; returns its number."""
    kinds, _moved, offset = board[0], board[1], board[3]
    c_low, c_high, c_set, left, right = clauses[:5]
    worst_low, worst_high = reach[18:20]
    count, trees = len(kinds), grid[1].shape[0]
    c = counters[CLAUSES]
    counters[CLAUSES] += 1
    chosen = np.zeros(count, np.uint64)
    for f in range(count):
        if kinds[f]:
            chosen[f] = np.uint64(1) << np.uint64(worst_low[f])
    if not same:
        masks = np.empty((len(grid[5]), grid[2].shape[2]), np.uint64)
        fresh = np.empty_like(masks)
        best, trial = np.empty(trees), np.empty(trees)
        total = base + most_on(grid, worst_low, worst_high, masks, best)
        tolls, heap, size = np.empty(2 * count), np.empty(2 * count, np.int64), 0
        refused = np.zeros(count, np.uint64)
        radius = np.sqrt(board[14][0])
        for face in range(2 * count):
            tolls[face] = escape(board, face, worst_low, worst_high, chosen, refused, low, high, sets, point, change,
                                 paid, radius)  # fmt: skip
            if tolls[face] >= 0.0:
                size = push(heap, tolls, size, face)
        seen = np.zeros(trees, np.int64)
        face, step = -1, 0
        while True:
            face, size = next_face(face, tolls, heap, size)
            if face < 0:
                break
            step += 1
            f = face // 2
            picked = np.uint64(0)
            if kinds[f]:
                picked = next_outside(offset[f + 1] - offset[f], chosen[f], refused[f], sets[f])
                end = highest(picked)
            else:
                end = worst_high[f] + 1 if face % 2 else worst_low[f] - 1
            grown = grow(grid, kinds, face, end, worst_low, worst_high, total, masks, fresh, best, trial, seen, step)
            fine = grown < -TINY
            if fine:
                total = grown
                chosen[f] |= picked
            elif kinds[f]:
                refused[f] |= picked
            tolls[face] = -1.0
            if fine or kinds[f]:
                tolls[face] = escape(board, face, worst_low, worst_high, chosen, refused, low, high, sets, point,
                                     change, paid, radius)  # fmt: skip
        counters[WORK] += 40 * trees
    for f in range(count):
        c_low[c, f], c_high[c, f], c_set[c, f] = worst_low[f], worst_high[f], chosen[f]
        if not kinds[f]:
            left[c, f] = past(board, f, worst_low[f], worst_high[f], False)
            right[c, f] = past(board, f, worst_low[f], worst_high[f], True)
    return c


@njit_no_refcount
def escape(board, face, c_low, c_high, chosen, refused, low, high, sets, point, change, paid, radius):
    """What it costs to leave a box altogether through a face; infinite where the node rules that out, -1 where none."""
    f, offset = face // 2, board[3]
    cells = offset[f + 1] - offset[f]
    if board[0][f]:
        outside = all_of(cells) & ~chosen[f] & ~refused[f]
        if face % 2 or not outside:
            return -1.0
        return change[f] if outside & sets[f] else INFINITE
    if c_high[f] + 1 >= cells if face % 2 else c_low[f] <= 0:
        return -1.0
    way = radius if board[1][f] else 0.0
    if face % 2:
        place = past(board, f, c_low[f], c_high[f], True) + way
        if place > high[f]:
            return INFINITE
        return residual(board, face, place, point[f], paid) if place > point[f] else 0.0
    place = past(board, f, c_low[f], c_high[f], False) - way
    if place < low[f]:
        return INFINITE
    return residual(board, face, place, point[f], paid) if place < point[f] else 0.0


@njit_no_refcount
def free_point(board, clauses, used, low, high, sets, point, group, change, paid, trial, trial_group, moves):
    """A point that satisfies all clauses, reached through faces whose cost is paid already; whether there is one."""
    kinds, moved, radius = board[0], board[1], board[14][0]
    c_set, left, right = clauses[2:5]
    count = len(kinds)
    for f in range(count):
        trial[f], trial_group[f] = point[f], group[f]
    for _ in range(moves):
        c = -1
        for k in range(used - 1, -1, -1):
            if room_left(board, k, clauses, trial, trial_group) < board[14][1]:
                c = k
                break
        if c < 0:
            return True
        need = radius - room_left(board, c, clauses, trial, trial_group)
        chosen, place, gain = -1, 0.0, 0.0
        for f in range(count):
            if kinds[f]:
                outside = sets[f] & ~c_set[c, f]
                if outside and change[f] <= NEAR and trial_group[f] == group[f]:
                    chosen, gain = f, INFINITE
                    place = float(highest(outside & (~outside + np.uint64(1))))
                continue
            for side in range(2):
                bound = high[f] if side else low[f]
                if trial[f] < point[f] if side else trial[f] > point[f]:
                    continue
                if (side and high[f] <= point[f]) or (not side and low[f] >= point[f]):
                    continue
                far = reachable(board, 2 * f + side, NEAR, point[f], bound, paid)
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
                        y = snap(board, f, edge + way if side else edge - way, side == 1)
                        place = min(y, far) if side else max(y, far)
                    else:
                        place = far
        if chosen < 0:
            return False
        if kinds[chosen]:
            trial_group[chosen] = int(place)
        else:
            trial[chosen] = place
    return False


@njit_no_refcount
def pull_in(grid, base, board, clauses, used, point, group, reach, counters, tried, end):
    """Move a right point's features back towards the factual, dearest first, as far as halving shows it right.

    No more are tried once the work done has come to ``end``.
    """
    kinds, radius = board[0], board[14][1]
    count = len(kinds)
    for f in range(count):
        tried[f] = 0
    for _ in range(count):
        f, most = -1, 0.0
        for g in range(count):
            here = toll(board, g, 1.0 if kinds[g] else abs(point[g])) if not tried[g] else 0.0
            if kinds[g] and group[g] == board[13][g]:
                here = 0.0
            if here > most:
                f, most = g, here
        if f < 0 or counters[WORK] > end:
            return
        tried[f] = 1
        old, old_group, near = point[f], group[f], 0.0
        for turn in range(5):
            if kinds[f]:
                group[f] = board[13][f]
            else:
                middle = 0.0 if turn == 0 else 0.5 * (near + old)
                middle = snap(board, f, middle, old > 0.0)
                if middle == old:
                    break
                point[f] = middle
            fine = True
            for c in range(used - 1, -1, -1):
                if room_left(board, c, clauses, point, group) < radius:
                    fine = False
                    break
            if fine:
                fine = weakest(grid, base, board, point, group, reach, counters) > TINY and not reach[20][STUCK]
            if fine:
                old, old_group = point[f], group[f]
            else:
                near = point[f]
                point[f], group[f] = old, old_group
            if kinds[f] or old == 0.0:
                break
        point[f], group[f] = old, old_group


@njit_no_refcount
def keep(point, group, value, upper, best, best_group, counters):
    """A new incumbent, if it is better."""
    if value < upper[0]:
        upper[0] = value
        for f in range(len(point)):
            best[f], best_group[f] = point[f], group[f]
        counters[FOUND] = 1


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


@njit_no_refcount
def few_enough(board, low, high, sets, most):
    """Keep within the bound on changed features; False where the node cannot."""
    kinds, home = board[0], board[13]
    forced = 0
    for f in range(len(kinds)):
        stays = (sets[f] >> np.uint64(home[f])) & np.uint64(1) if kinds[f] else low[f] <= 0.0 <= high[f]
        forced += not stays
    if forced > most:
        return False
    if forced + 1 > most:
        for f in range(len(kinds)):
            stays = (sets[f] >> np.uint64(home[f])) & np.uint64(1) if kinds[f] else low[f] <= 0.0 <= high[f]
            if stays:
                if kinds[f]:
                    sets[f] = np.uint64(1) << np.uint64(home[f])
                else:
                    low[f] = high[f] = 0.0
    return True


@njit(cache=True)
def run(grid, base, board, most, clauses, nodes, counters, best, best_group, asked, upper, effort, reach):
    """Best-first branch and bound, as ``kernels.run``; returns why it stopped."""
    kinds, home, radius = board[0], board[13], board[14][1]
    n_low, n_high, n_set, keys, heap, free = nodes
    count, trees, room = len(kinds), grid[1].shape[0], clauses[0].shape[0]
    low, high, sets = np.empty(count), np.empty(count), np.empty(count, np.uint64)
    point, trial, group, trial_group = (
        np.empty(count), np.empty(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    )  # fmt: skip
    change, tried = np.empty(count), np.zeros(count, np.int64)
    paid = (
        np.empty((2 * count, PAYMENTS)), np.empty((2 * count, PAYMENTS)), np.empty((2 * count, PAYMENTS)),
        np.zeros(2 * count, np.int64),
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
        place, counters[HEAP] = pop(heap, keys, counters[HEAP])
        key = keys[place]
        for f in range(count):
            low[f], high[f], sets[f] = n_low[place, f], n_high[place, f], n_set[place, f]
        free[counters[FREE]] = place
        counters[FREE] += 1
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        while True:
            if not few_enough(board, low, high, sets, most):
                break
            counters[WORK] += 4 * counters[CLAUSES] + trees
            lowest = nearest(board, low, high, sets, point, group)
            if lowest >= upper[0] - GAP:
                break
            total, told = 0, 0
            for c in range(counters[CLAUSES]):
                if room_left(board, c, clauses, point, group) >= radius:
                    continue
                told = held_up(board, c, clauses, low, high, sets)
                if told:
                    break
                violated[total] = c
                total += 1
            if told < 0:
                break
            if told:
                continue
            for f in range(count):
                paid[3][2 * f] = paid[3][2 * f + 1] = 0
                change[f] = toll(board, f, 1.0) if kinds[f] and group[f] == home[f] else 0.0
            slack = upper[0] - GAP - lowest
            bound = lowest
            if total:
                # What each clause is worth alone: the one to branch on, and the order in which they are paid.
                stop = False
                chosen, chosen_quality, chosen_number = -1, -1.0, 0
                for k in range(total):
                    alone[k], width[k] = shares(
                        board, violated[k], clauses, low, high, sets, point, change, paid, slack, faces, places
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
                    price, number = shares(
                        board, violated[k], clauses, low, high, sets, point, change, paid, slack, faces, places
                    )
                    counters[WORK] += SHARING * (number + 1)
                    pay(board, price, number, faces, places, point, change, paid)
                    bound += price
                    slack -= price
                    if slack <= 0.0:
                        break
                key = max(key, bound)
                if slack <= 0.0:
                    break
                # What would cost more than the incumbent leaves is dropped.
                for f in range(count):
                    if kinds[f]:
                        if group[f] == home[f] and change[f] >= slack:
                            sets[f] = np.uint64(1) << np.uint64(home[f])
                        continue
                    if high[f] > point[f]:
                        high[f] = reachable(board, 2 * f + 1, slack, point[f], high[f], paid)
                    if low[f] < point[f]:
                        low[f] = reachable(board, 2 * f, slack, point[f], low[f], paid)
            else:
                score = weakest(grid, base, board, point, group, reach, counters)
                if reach[20][STUCK]:
                    add_node(low, high, sets, key, nodes, counters)
                    return MORE_LOOKS
                if score > TINY:
                    if changes_of(board, point, group) <= most:
                        keep(point, group, lowest, upper, best, best_group, counters)
                    break
                if score >= -TINY:
                    add_node(low, high, sets, key, nodes, counters)
                    asked[:] = reach[18]
                    return ASK
                learn(grid, base, False, board, low, high, sets, point, group, change, paid, clauses, counters, reach)
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
                if not free_point(board, clauses, counters[CLAUSES], low, high, sets, point, group, change, paid,
                                  trial, trial_group, 20 * count):  # fmt: skip
                    break
                score = weakest(grid, base, board, trial, trial_group, reach, counters)
                if reach[20][STUCK]:
                    break
                if score > TINY:
                    if changes_of(board, trial, trial_group) <= most:
                        pull_in(
                            grid,
                            base,
                            board,
                            clauses,
                            counters[CLAUSES],
                            trial,
                            trial_group,
                            reach,
                            counters,
                            tried,
                            end,
                        )
                        value = cost_of(board, trial, trial_group)
                        keep(trial, trial_group, value, upper, best, best_group, counters)
                        stop = bound >= upper[0] - GAP
                    break
                if score >= -TINY:
                    break
                c = learn(
                    grid, base, False, board, low, high, sets, point, group, change, paid, clauses, counters, reach
                )
                if room_left(board, c, clauses, point, group) < radius:
                    slack = upper[0] - GAP - bound
                    price, number = shares(
                        board, c, clauses, low, high, sets, point, change, paid, slack, faces, places
                    )
                    pay(board, price, number, faces, places, point, change, paid)
                    bound += price
                    key = max(key, bound)
                    if bound >= upper[0] - GAP:
                        stop = True
                        break
            if stop:
                break
            branch(board, clauses, violated[chosen], low, high, sets, chosen_number, best_faces, best_places, key,
                   nodes, counters, point, group)  # fmt: skip
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def branch(board, clauses, c, low, high, sets, number, faces, places, key, nodes, counters, point, group):
    """One child per face of a clause that has its share; later children have less than those before them."""
    c_set = clauses[2]
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    spare, spare_group = np.empty(len(low)), np.zeros(len(low), np.int64)
    for i in range(number):
        face = faces[i]
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if board[0][f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, places[i])
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, places[i])
            here = old_low <= child_high[f]
        if here:
            least = nearest(board, child_low, child_high, child_set, spare, spare_group)
            add_node(child_low, child_high, child_set, max(key, least), nodes, counters)
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if board[0][f]:
            child_set[f] = old_set & c_set[c, f]
            if not child_set[f]:
                return
        elif face % 2:
            inner = places[i] if board[2][f] == 0 else snap(board, f, places[i] - 1e-7, False)
            child_high[f] = min(old_high, inner)
        else:
            inner = places[i] if board[2][f] == 0 else snap(board, f, places[i] + 1e-7, True)
            child_low[f] = max(old_low, inner)
        if child_low[f] > child_high[f]:
            return
