"""Compiled kernels for points with a ball around them: branch and bound over coordinates instead of states.

Coordinates of an ordered feature are scaled differences from the factual, which is 0; the further, the costlier. A ball
of radius rho moves some features, real or integer; a feature that it does not move has a list of states. A *clause*
is a box of cells on which the ensemble is proven wrong: a point has to be rho away from it, or outside it in a feature
that the ball does not move. No single face satisfies it, but for any way to share out rho squared among the faces one
of them has its share: shares are chosen so that all faces cost the same.

Shapes: F features, C clauses; a *face* is numbered 2 f (down, or by another category) or 2 f + 1 (up).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from harness.core.tolerances import (
    BALL_GAP,
    COORDINATE_DIGITS,
    COORDINATE_SOLVED,
    MULTIPLIER_WIDTH,
    NO_DUAL,
    SCORE_TIE,
    SUM_ROUNDING,
    WHOLE_NUMBER,
)
from harness.solvers.heap import push
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
    take_node,
)
from methods.cells.neighbourhood import LOOKS, STUCK, grow, growth_from, most_on, worst_in
from methods.cells.records import Ball, Box

FIRST, MOST = 1e-3, 1e15  # costs of a share: the first one tried, and more than any point can cost
SHARING = 30  # units of work for a face of a clause that is shared out
DUALS_PER_FACE = 48  # on one face, in one node
ROOT_ROUNDS, NODE_ROUNDS = 30, 1
DETOURS_PER_FEATURE = 20  # moves until a point satisfies all clauses, or is given up
CLAUSES, FOUND, WORK, ROOT = range(3, 7)  # counters, after HEAP, TOP, FREE
REAL, INTEGER, LISTED = range(3)  # what values a feature has
ASKED, MET, LOOKED_AT = range(3)  # of the values of rho squared


class BallSpace(NamedTuple):
    """The features of one factual, and what a move of them costs."""

    unordered: np.ndarray  # (F,) int64, 1 where it is a category
    moved: np.ndarray  # (F,) int64, 1 where a ball moves it
    grain: np.ndarray  # (F,) int64, ``REAL``, ``INTEGER`` or ``LISTED``
    offset: np.ndarray  # (F + 1,) int64, its first cell in arrays over all cells
    closes: np.ndarray  # (cells,), the coordinate of the last value of each cell
    list_start: np.ndarray  # (F + 1,) int64, the first state of each feature in the lists
    list_y: np.ndarray  # (listed states,), their coordinates, ascending
    list_cell: np.ndarray  # (listed states,) int64, their cells
    fixed: np.ndarray  # (F,), the cost of any change
    linear: np.ndarray  # (F,), a unit of the coordinate
    quadratic: np.ndarray  # (F,), a unit, squared
    unit: np.ndarray  # (F,), so that a decoded number is origin + unit * coordinate
    origin: np.ndarray  # (F,), decoded, the factual's
    factual_category: np.ndarray  # (F,) int64
    squares: np.ndarray
    """(3,), rho squared: ``ASKED`` for by clauses, a little less, at which they are ``MET``, and less again, which is
    ``LOOKED_AT`` by the adversary, so that rounding makes none ask twice."""


class Point(NamedTuple):
    """Where each feature is."""

    y: np.ndarray  # (F,), the coordinate of an ordered feature, 0 of another one
    category: np.ndarray  # (F,) int64, of an unordered feature


class BallClauses(NamedTuple):
    """Boxes of cells on which the model is proven wrong."""

    low: np.ndarray  # (C, F) int64, the first cell of each feature
    high: np.ndarray  # (C, F) int64, the last one
    sets: np.ndarray  # (C, F) uint64, the categories, as bits
    left: np.ndarray  # (C, F), the coordinate at which a feature leaves the box downwards
    right: np.ndarray  # (C, F), upwards


class Duals(NamedTuple):
    """What the duals of a node's clauses have taken from the cost of each face."""

    at: np.ndarray  # (2 F, ``DUALS_PER_FACE``), the gap of each dual's share
    level: np.ndarray  # (2 F, ``DUALS_PER_FACE``), the residual cost of a move up to there
    part: np.ndarray  # (2 F, ``DUALS_PER_FACE``), the dual
    number: np.ndarray  # (2 F,) int64, how many they are
    change: np.ndarray  # (F,), the residual cost of another category


class Shares(NamedTuple):
    """The faces of a clause, and the coordinate of the share of each."""

    faces: np.ndarray  # (2 F,) int64
    places: np.ndarray  # (2 F,)


class Moved(NamedTuple):
    """The faces of a clause that a ball moves: ``faces[begin:end]``."""

    faces: np.ndarray  # (2 F,) int64
    begin: int
    end: int
    base: float  # the squared distance in the features that cannot get farther away


class BallProgress(NamedTuple):
    """What a search knows when it pauses, beside its nodes and clauses."""

    counters: np.ndarray  # see ``CLAUSES``
    best: Point  # the incumbent
    asked: np.ndarray  # (F,) int64, the cells that the real model is asked about
    upper: np.ndarray  # (2,), the incumbent's cost, and the proven lower bound


@njit_no_refcount
def move_cost(space, f, gap):
    """The cost of moving a feature by a gap."""
    return space.fixed[f] + (space.linear[f] + space.quadratic[f] * gap) * gap if gap > 0.0 else 0.0


@njit_no_refcount
def range_for(space, f, budget):
    """The greatest gap that costs at most ``budget``."""
    rest = budget - space.fixed[f]
    if rest <= 0.0:
        return 0.0
    linear, quadratic = space.linear[f], space.quadratic[f]
    if quadratic == 0.0:
        return rest / linear if linear > 0.0 else INFINITE
    return 2.0 * rest / (linear + np.sqrt(linear * linear + 4.0 * quadratic * rest))


@njit_no_refcount
def snap(space, f, y, up):
    """The nearest coordinate that the feature may have, at or beyond ``y``; infinite where there is none."""
    grain = space.grain[f]
    if grain == REAL or not np.isfinite(y):
        return y
    if grain == INTEGER:
        unit, origin = space.unit[f], space.origin[f]
        value = origin + y * unit
        value = np.ceil(value - WHOLE_NUMBER) if up else np.floor(value + WHOLE_NUMBER)
        return (value - origin) / unit
    begin, end = space.list_start[f], space.list_start[f + 1]
    if up:
        for i in range(begin, end):
            if space.list_y[i] >= y - COORDINATE_DIGITS:
                return space.list_y[i]
        return INFINITE
    for i in range(end - 1, begin - 1, -1):
        if space.list_y[i] <= y + COORDINATE_DIGITS:
            return space.list_y[i]
    return -INFINITE


@njit_no_refcount
def cell_at(space, f, y):
    """The cell of a listed coordinate."""
    for i in range(space.list_start[f], space.list_start[f + 1]):
        if abs(space.list_y[i] - y) <= COORDINATE_DIGITS:
            return space.list_cell[i]
    return -1


@njit_no_refcount
def past(space, f, low, high, up):
    """The coordinate at which a feature leaves some cells: their end, or of a list the first state outside."""
    if space.grain[f] == LISTED:
        begin, end = space.list_start[f], space.list_start[f + 1]
        if up:
            for i in range(begin, end):
                if space.list_cell[i] > high:
                    return space.list_y[i]
            return INFINITE
        for i in range(end - 1, begin - 1, -1):
            if space.list_cell[i] < low:
                return space.list_y[i]
        return -INFINITE
    offset, closes = space.offset, space.closes
    if up:
        return closes[offset[f] + high]
    return closes[offset[f] + low - 1] if low else -INFINITE


@njit_no_refcount
def nearest(space, box, point):
    """The cheapest point of a node, and its cost."""
    total = 0.0
    for f in range(len(space.unordered)):
        if space.unordered[f]:
            if (box.sets[f] >> np.uint64(space.factual_category[f])) & np.uint64(1):
                point.category[f] = space.factual_category[f]
            else:
                point.category[f] = highest(box.sets[f] & (~box.sets[f] + np.uint64(1)))
                total += move_cost(space, f, 1.0)
            point.y[f] = 0.0
        else:
            point.y[f] = min(max(0.0, box.low[f]), box.high[f])
            total += move_cost(space, f, abs(point.y[f]))
    return total


@njit_no_refcount
def cost_of(space, point):
    total = 0.0
    for f in range(len(point.y)):
        if space.unordered[f]:
            total += move_cost(space, f, 1.0) if point.category[f] != space.factual_category[f] else 0.0
        else:
            total += move_cost(space, f, abs(point.y[f]))
    return total


@njit_no_refcount
def changes_of(space, point):
    """How many features differ from the factual."""
    count = 0
    for f in range(len(point.y)):
        count += point.category[f] != space.factual_category[f] if space.unordered[f] else point.y[f] != 0.0
    return count


@njit_no_refcount
def room_left(space, c, clauses, point):
    """The squared distance of a point from a clause's box; infinite where it leaves the box in an unmoved feature."""
    unordered, moved, left, right, y = space.unordered, space.moved, clauses.left, clauses.right, point.y
    total = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if not (clauses.sets[c, f] >> np.uint64(point.category[f])) & np.uint64(1):
                return INFINITE
        elif moved[f]:
            gap = max(left[c, f] - y[f], y[f] - right[c, f])
            if gap > 0.0:
                total += gap * gap
                if total >= space.squares[MET]:
                    return total
        elif y[f] <= left[c, f] or y[f] >= right[c, f]:
            return INFINITE
    return total


@njit_no_refcount
def residual_move_cost(space, face, y, x, duals):
    """The cost of a move through a face to coordinate ``y`` that the duals leave."""
    f, gap = face // 2, abs(y)
    rest = move_cost(space, f, gap) - move_cost(space, f, abs(x))
    for i in range(duals.number[face]):
        rest = rest - duals.part[face, i] if gap >= duals.at[face, i] else min(rest, duals.level[face, i])
    return max(rest, 0.0)


@njit_no_refcount
def reachable(space, face, budget, x, bound, duals):
    """The farthest coordinate through a face, within the node and of the feature, of residual cost up to a budget."""
    f = face // 2
    for i in range(duals.number[face] - 1, -1, -1):
        if budget >= duals.level[face, i]:
            budget += duals.part[face, i]
    gap = range_for(space, f, move_cost(space, f, abs(x)) + budget)
    gap = max(gap, abs(x))
    if gap >= abs(bound):
        return bound
    if face % 2:
        return max(snap(space, f, gap, False), x)
    return min(snap(space, f, -gap, True), x)


@njit_no_refcount
def propagate_clause(space, c, clauses, box):
    """Tighten a node by a clause: -1 where it cannot be satisfied, 1 where something changed, else 0."""
    unordered, moved, radius = space.unordered, space.moved, space.squares[ASKED]
    left, right, low, high = clauses.left, clauses.right, box.low, box.high
    most = 0.0
    for f in range(len(unordered)):
        if unordered[f]:
            if box.sets[f] & ~clauses.sets[c, f]:
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
        need = np.sqrt(need) * (1.0 - SUM_ROUNDING)
        if up >= need and down < need:
            place = snap(space, f, right[c, f] + need, True)
            if place > low[f] + COORDINATE_DIGITS:
                low[f] = place
                changed = 1
        elif down >= need and up < need:
            place = snap(space, f, left[c, f] - need, False)
            if place < high[f] - COORDINATE_DIGITS:
                high[f] = place
                changed = 1
        if low[f] > high[f]:
            return -1
    return changed


@njit_no_refcount
def excess_for(space, c, clauses, box, point, duals, budget, among):
    """The squared distance from a clause's box that a residual cost of ``budget`` buys on each face that is moved."""
    left, right, y, faces = clauses.left, clauses.right, point.y, among.faces
    total, i = among.base, among.begin
    while i < among.end:
        f = faces[i] // 2
        # What the point has on either side counts where it is more.
        gap = max(left[c, f] - y[f], y[f] - right[c, f], 0.0)
        while i < among.end and faces[i] // 2 == f:
            up = faces[i] % 2
            far = reachable(space, faces[i], budget, y[f], box.high[f] if up else box.low[f], duals)
            gap = max(gap, far - right[c, f] if up else left[c, f] - far)
            i += 1
        total += gap * gap
    return total


@njit_no_refcount
def share_out(space, c, clauses, box, point, duals, slack, shares):
    """Share out rho squared among the faces of a violated clause, so that all cost the same.

    Returns what each of them costs at least, at most ``slack`` and infinite where the node can leave through none, and
    how many there are; writes ``shares``.
    """
    unordered, moved, radius = space.unordered, space.moved, space.squares[ASKED]
    left, right, low, high, y = clauses.left, clauses.right, box.low, box.high, point.y
    faces, places = shares.faces, shares.places
    number, cheapest = 0, INFINITE
    for f in range(len(unordered)):
        if unordered[f]:
            if box.sets[f] & ~clauses.sets[c, f]:
                faces[number] = 2 * f
                number += 1
                cheapest = min(cheapest, duals.change[f])
        elif not moved[f]:
            if high[f] >= right[c, f]:
                faces[number], places[number] = 2 * f + 1, right[c, f]
                number += 1
                cheapest = min(cheapest, residual_move_cost(space, 2 * f + 1, right[c, f], y[f], duals))
            if low[f] <= left[c, f]:
                faces[number], places[number] = 2 * f, left[c, f]
                number += 1
                cheapest = min(cheapest, residual_move_cost(space, 2 * f, left[c, f], y[f], duals))
    firsts = number  # faces that satisfy the clause alone
    base = 0.0  # of features that have an excess here and cannot get more
    for f in range(len(unordered)):
        if unordered[f] or not moved[f]:
            continue
        one = number
        if high[f] > right[c, f] and high[f] > y[f]:
            faces[number] = 2 * f + 1
            number += 1
        if low[f] < left[c, f] and low[f] < y[f]:
            faces[number] = 2 * f
            number += 1
        if number == one:
            gap = max(left[c, f] - y[f], y[f] - right[c, f], 0.0)
            base += gap * gap
    most = min(cheapest, slack, MOST)
    among = Moved(faces, firsts, number, base)
    if excess_for(space, c, clauses, box, point, duals, 0.0, among) >= radius:
        return 0.0, 0
    lower, upper = 0.0, min(most, FIRST)
    while excess_for(space, c, clauses, box, point, duals, upper, among) < radius:
        lower = upper
        if upper == most:
            break
        upper = min(4.0 * upper, most)
    if lower == MOST:
        return INFINITE, 0
    while upper - lower > MULTIPLIER_WIDTH * upper and upper > NO_DUAL:
        budget = 0.5 * (lower + upper)
        if excess_for(space, c, clauses, box, point, duals, budget, among) < radius:
            lower = budget
        else:
            upper = budget
    for i in range(firsts, number):
        f = faces[i] // 2
        up = faces[i] % 2 == 1
        bound = high[f] if up else low[f]
        far = reachable(space, faces[i], lower, y[f], bound, duals)
        edge = right[c, f] if up else left[c, f]
        discrete = space.grain[f] != REAL
        if up:
            places[i] = snap(space, f, far + COORDINATE_SOLVED if discrete and far >= edge else max(far, edge), True)
        else:
            places[i] = snap(space, f, far - COORDINATE_SOLVED if discrete and far <= edge else min(far, edge), False)
    return lower, number


@njit_no_refcount
def raise_dual(space, dual, number, shares, point, duals):
    """Raise the dual of a clause: lower the residual cost of each of its faces."""
    at, level, part, places = duals.at, duals.level, duals.part, shares.places
    if dual <= 0.0:
        return
    for i in range(number):
        face = shares.faces[i]
        f = face // 2
        if space.unordered[f]:
            duals.change[f] = max(duals.change[f] - dual, 0.0)
            continue
        n = duals.number[face]
        if n == at.shape[1]:
            # Out of room: no move beyond the point has a residual cost any more, which is safe.
            n -= 1
            at[face, n], level[face, n], part[face, n] = 0.0, 0.0, INFINITE
            continue
        rest = residual_move_cost(space, face, places[i], point.y[f], duals) - dual
        at[face, n], level[face, n], part[face, n] = abs(places[i]), max(rest, 0.0), dual
        duals.number[face] = n + 1


@njit_no_refcount
def enclose(space, point, neighbourhood):
    """Put the box of cells that a ball may meet first on the adversary's stack."""
    unordered, offset, closes, y = space.unordered, space.offset, space.closes, point.y
    adversary = neighbourhood.adversary
    radius = np.sqrt(space.squares[LOOKED_AT])
    for f in range(len(unordered)):
        if unordered[f]:
            low = high = point.category[f]
        elif space.grain[f] == LISTED:
            low = high = cell_at(space, f, y[f])
        else:
            low = high = 0
            cells = offset[f + 1] - offset[f]
            while low < cells - 1 and closes[offset[f] + low] <= y[f] - radius:
                low += 1
            high = low
            while high < cells - 1 and closes[offset[f] + high] < y[f] + radius:
                high += 1
        adversary.stack_low[0, f], adversary.stack_high[0, f] = low, high


@njit_no_refcount
def weakest(grid, space, point, neighbourhood, counters):
    """As ``weakest`` of ``methods.cells.neighbourhood``, of the cells that the ball around a point meets."""
    enclose(space, point, neighbourhood)
    score = worst_in(grid, neighbourhood, Ball(point.y, space.closes, space.moved, space.squares[LOOKED_AT]))
    looks = neighbourhood.adversary.counters
    counters[WORK] += looks[LOOKS] * grid.values.shape[0]
    looks[LOOKS] = 0
    return score


@njit(cache=True)
def learn(grid, space, box, point, duals, clauses, counters, neighbourhood):
    """Add the box of cells that the adversary found, grown by the cheapest escapes first, to the clauses; its place."""
    unordered, offset, sets = space.unordered, space.offset, box.sets
    worst_low, worst_high = neighbourhood.adversary.worst_low, neighbourhood.adversary.worst_high
    count = len(unordered)
    chosen = own_categories(space, worst_low)
    growth = growth_from(grid, worst_low, worst_high)
    total = most_on(grid, 0, worst_low, worst_high, growth.masks, growth.best)
    residual_costs, heap, size = np.empty(2 * count), np.empty(2 * count, np.int64), 0
    wrong = Box(worst_low, worst_high, chosen)
    refused = np.zeros(count, np.uint64)
    for face in range(2 * count):
        residual_costs[face] = escape(space, face, wrong, refused, box, point, duals)
        if residual_costs[face] >= 0.0:
            size = push(heap, residual_costs, size, face)
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
        grown = grow(grid, 0, face, end, total, growth, step)
        fine = grown < -SCORE_TIE
        if fine:
            total = grown
            chosen[f] |= picked
        elif unordered[f]:
            refused[f] |= picked
        residual_costs[face] = -1.0
        if fine or unordered[f]:
            residual_costs[face] = escape(space, face, wrong, refused, box, point, duals)
    counters[WORK] += 40 * grid.values.shape[0]
    return add_clause(space, wrong, clauses, counters)


@njit(cache=True)
def learn_leaves(space, clauses, counters, neighbourhood):
    """Add the box of cells that the adversary found as it is, all with the same leaves, to the clauses; its place."""
    adversary = neighbourhood.adversary
    wrong = Box(adversary.worst_low, adversary.worst_high, own_categories(space, adversary.worst_low))
    return add_clause(space, wrong, clauses, counters)


@njit(cache=True)
def own_categories(space, cells):
    """The categories of some cells, as sets of one."""
    chosen = np.zeros(len(cells), np.uint64)
    for f in range(len(cells)):
        if space.unordered[f]:
            chosen[f] = np.uint64(1) << np.uint64(cells[f])
    return chosen


@njit_no_refcount
def add_clause(space, wrong, clauses, counters):
    """Enter a box of cells into the clauses; its place."""
    c = counters[CLAUSES]
    counters[CLAUSES] += 1
    for f in range(len(wrong.low)):
        clauses.low[c, f], clauses.high[c, f], clauses.sets[c, f] = wrong.low[f], wrong.high[f], wrong.sets[f]
        if not space.unordered[f]:
            clauses.left[c, f] = past(space, f, wrong.low[f], wrong.high[f], False)
            clauses.right[c, f] = past(space, f, wrong.low[f], wrong.high[f], True)
    return c


@njit_no_refcount
def escape(space, face, wrong, refused, box, point, duals):
    """Residual cost of leaving a box altogether through a face; infinite where the node rules it out, -1 where none."""
    f, offset, y = face // 2, space.offset, point.y
    cells = offset[f + 1] - offset[f]
    if space.unordered[f]:
        outside = all_of(cells) & ~wrong.sets[f] & ~refused[f]
        if face % 2 or not outside:
            return -1.0
        return duals.change[f] if outside & box.sets[f] else INFINITE
    if wrong.high[f] + 1 >= cells if face % 2 else wrong.low[f] <= 0:
        return -1.0
    way = np.sqrt(space.squares[ASKED]) if space.moved[f] else 0.0
    if face % 2:
        place = past(space, f, wrong.low[f], wrong.high[f], True) + way
        if place > box.high[f]:
            return INFINITE
        return residual_move_cost(space, face, place, y[f], duals) if place > y[f] else 0.0
    place = past(space, f, wrong.low[f], wrong.high[f], False) - way
    if place < box.low[f]:
        return INFINITE
    return residual_move_cost(space, face, place, y[f], duals) if place < y[f] else 0.0


@njit_no_refcount
def free_point(space, clauses, used, box, point, duals, trial):
    """A point that satisfies all clauses, reached through faces without residual cost; whether there is one."""
    unordered, moved, radius = space.unordered, space.moved, space.squares[ASKED]
    left, right, low, high = clauses.left, clauses.right, box.low, box.high
    y, trial_y = point.y, trial.y
    count = len(unordered)
    for f in range(count):
        trial_y[f], trial.category[f] = y[f], point.category[f]
    for _ in range(DETOURS_PER_FEATURE * count):
        c = -1
        for k in range(used - 1, -1, -1):
            if room_left(space, k, clauses, trial) < space.squares[MET]:
                c = k
                break
        if c < 0:
            return True
        need = radius - room_left(space, c, clauses, trial)
        chosen, place, gain = -1, 0.0, 0.0
        for f in range(count):
            if unordered[f]:
                outside = box.sets[f] & ~clauses.sets[c, f]
                if outside and duals.change[f] <= COORDINATE_DIGITS and trial.category[f] == point.category[f]:
                    chosen, gain = f, INFINITE
                    place = float(highest(outside & (~outside + np.uint64(1))))
                continue
            for side in range(2):
                bound = high[f] if side else low[f]
                if trial_y[f] < y[f] if side else trial_y[f] > y[f]:
                    continue
                if (side and high[f] <= y[f]) or (not side and low[f] >= y[f]):
                    continue
                far = reachable(space, 2 * f + side, COORDINATE_DIGITS, y[f], bound, duals)
                edge = right[c, f] if side else left[c, f]
                if not moved[f]:
                    if far >= edge if side else far <= edge:
                        chosen, place, gain = f, edge, INFINITE
                    continue
                now = max(left[c, f] - trial_y[f], trial_y[f] - right[c, f], 0.0)
                then = far - edge if side else edge - far
                if then > now and (then * then - now * now) > gain:
                    chosen, gain = f, then * then - now * now
                    if gain >= need:
                        way = np.sqrt(now * now + need) * (1.0 + SUM_ROUNDING)
                        near = snap(space, f, edge + way if side else edge - way, side == 1)
                        place = min(near, far) if side else max(near, far)
                    else:
                        place = far
        if chosen < 0:
            return False
        if unordered[chosen]:
            trial.category[chosen] = int(place)
        else:
            trial_y[chosen] = place
    return False


@njit_no_refcount
def pull_in(grid, space, clauses, used, point, neighbourhood, counters, end):
    """Move a right point's features back towards the factual, costliest first, as far as halving shows it right.

    No more are tried once the work done has come to ``end``.
    """
    unordered, radius = space.unordered, space.squares[MET]
    y, category, tried, count = point.y, point.category, neighbourhood.tried, len(unordered)
    for f in range(count):
        tried[f] = 0
    for _ in range(count):
        f, most = -1, 0.0
        for g in range(count):
            here = move_cost(space, g, 1.0 if unordered[g] else abs(y[g])) if not tried[g] else 0.0
            if unordered[g] and category[g] == space.factual_category[g]:
                here = 0.0
            if here > most:
                f, most = g, here
        if f < 0 or counters[WORK] > end:
            return
        tried[f] = 1
        old, old_category, near = y[f], category[f], 0.0
        for turn in range(5):
            if unordered[f]:
                category[f] = space.factual_category[f]
            else:
                middle = 0.0 if turn == 0 else 0.5 * (near + old)
                middle = snap(space, f, middle, old > 0.0)
                if middle == old:
                    break
                y[f] = middle
            fine = True
            for c in range(used - 1, -1, -1):
                if room_left(space, c, clauses, point) < radius:
                    fine = False
                    break
            if fine:
                score = weakest(grid, space, point, neighbourhood, counters)
                fine = score > SCORE_TIE and not neighbourhood.adversary.counters[STUCK]
            if fine:
                old, old_category = y[f], category[f]
            else:
                near = y[f]
                y[f], category[f] = old, old_category
            if unordered[f] or old == 0.0:
                break
        y[f], category[f] = old, old_category


@njit_no_refcount
def keep(point, value, progress):
    """A new incumbent, if it is better."""
    if value < progress.upper[0]:
        progress.upper[0] = value
        for f in range(len(point.y)):
            progress.best.y[f], progress.best.category[f] = point.y[f], point.category[f]
        progress.counters[FOUND] = 1


@njit_no_refcount
def allows_factual(space, box, f):
    """Whether a node lets a feature stay as it is."""
    if space.unordered[f]:
        return (box.sets[f] >> np.uint64(space.factual_category[f])) & np.uint64(1) != 0
    return box.low[f] <= 0.0 <= box.high[f]


@njit_no_refcount
def few_enough(space, box, most):
    """Keep within the bound on changed features; False where the node cannot."""
    unordered, factual_category = space.unordered, space.factual_category
    forced = 0
    for f in range(len(unordered)):
        forced += not allows_factual(space, box, f)
    if forced > most:
        return False
    if forced + 1 > most:
        for f in range(len(unordered)):
            if allows_factual(space, box, f):
                if unordered[f]:
                    box.sets[f] = np.uint64(1) << np.uint64(factual_category[f])
                else:
                    box.low[f] = box.high[f] = 0.0
    return True


@njit(cache=True)
def run(grid, space, most, clauses, nodes, progress, effort, neighbourhood):
    """Best-first branch and bound, as ``kernels.run``; returns why it stopped."""
    counters, upper, looks = progress.counters, progress.upper, neighbourhood.adversary.counters
    unordered, factual_category, radius = space.unordered, space.factual_category, space.squares[MET]
    count, trees, room = len(unordered), grid.values.shape[0], clauses.low.shape[0]
    low, high, sets = np.empty(count), np.empty(count), np.empty(count, np.uint64)
    box = Box(low, high, sets)
    point = Point(np.empty(count), np.zeros(count, np.int64))
    trial = Point(np.empty(count), np.zeros(count, np.int64))
    y, category = point.y, point.category
    duals = Duals(
        np.empty((2 * count, DUALS_PER_FACE)), np.empty((2 * count, DUALS_PER_FACE)),
        np.empty((2 * count, DUALS_PER_FACE)), np.zeros(2 * count, np.int64), np.empty(count),
    )  # fmt: skip
    shares = Shares(np.empty(2 * count, np.int64), np.empty(2 * count))
    raised, change, keys, heap = duals.number, duals.change, nodes.keys, nodes.heap
    best_shares = Shares(np.empty(2 * count, np.int64), np.empty(2 * count))
    violated, alone, width = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    end = counters[WORK] + effort
    while counters[HEAP]:
        upper[1] = min(keys[heap[0]], upper[0])
        if upper[1] >= upper[0] - BALL_GAP:
            break
        if counters[WORK] > end:
            return PAUSED
        if counters[TOP] - counters[FREE] + 2 * count + 4 > len(keys):
            return MORE_NODES
        if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
            return MORE_CLAUSES
        key = take_node(box, nodes, counters)
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        while True:
            if not few_enough(space, box, most):
                break
            counters[WORK] += 4 * counters[CLAUSES] + trees
            lowest = nearest(space, box, point)
            if lowest >= upper[0] - BALL_GAP:
                break
            total, changed = 0, 0
            for c in range(counters[CLAUSES]):
                if room_left(space, c, clauses, point) >= radius:
                    continue
                changed = propagate_clause(space, c, clauses, box)
                if changed:
                    break
                violated[total] = c
                total += 1
            if changed < 0:
                break
            if changed:
                continue
            for f in range(count):
                raised[2 * f] = raised[2 * f + 1] = 0
                stays = unordered[f] and category[f] == factual_category[f]
                change[f] = move_cost(space, f, 1.0) if stays else 0.0
            slack = upper[0] - BALL_GAP - lowest
            bound = lowest
            if total:
                # The dual of each clause alone: the one to branch on, and the order in which duals are raised.
                stop = False
                chosen, chosen_quality, chosen_number = -1, -1.0, 0
                for k in range(total):
                    alone[k], width[k] = share_out(space, violated[k], clauses, box, point, duals, slack, shares)
                    counters[WORK] += SHARING * (width[k] + 1)
                    if alone[k] >= slack:
                        stop = True
                        break
                    quality = alone[k] / max(width[k], 1)
                    if quality > chosen_quality:
                        chosen, chosen_quality, chosen_number = k, quality, width[k]
                        best_shares.faces[:], best_shares.places[:] = shares.faces, shares.places
                if stop:
                    break
                order = np.argsort(width[:total])
                for k in order:
                    dual, number = share_out(space, violated[k], clauses, box, point, duals, slack, shares)
                    counters[WORK] += SHARING * (number + 1)
                    raise_dual(space, dual, number, shares, point, duals)
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
                    if high[f] > y[f]:
                        high[f] = reachable(space, 2 * f + 1, slack, y[f], high[f], duals)
                    if low[f] < y[f]:
                        low[f] = reachable(space, 2 * f, slack, y[f], low[f], duals)
            else:
                score = weakest(grid, space, point, neighbourhood, counters)
                if looks[STUCK]:
                    add_node(box, key, nodes, counters)
                    return MORE_LOOKS
                if score > SCORE_TIE:
                    if changes_of(space, point) <= most:
                        keep(point, lowest, progress)
                    break
                if score >= -SCORE_TIE:
                    add_node(box, key, nodes, counters)
                    progress.asked[:] = neighbourhood.adversary.worst_low
                    return ASK
                learn(grid, space, box, point, duals, clauses, counters, neighbourhood)
                if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
                    add_node(box, key, nodes, counters)
                    return MORE_CLAUSES
                if counters[WORK] > end:  # one node may take very many clauses
                    add_node(box, key, nodes, counters)
                    return PAUSED
                continue
            stop = False
            while rounds > 0 and counters[WORK] <= end:
                rounds -= 1
                counters[WORK] += 4 * counters[CLAUSES]
                used = counters[CLAUSES]
                if not free_point(space, clauses, used, box, point, duals, trial):
                    break
                score = weakest(grid, space, trial, neighbourhood, counters)
                if looks[STUCK]:
                    break
                if score > SCORE_TIE:
                    if changes_of(space, trial) <= most:
                        pull_in(grid, space, clauses, used, trial, neighbourhood, counters, end)
                        keep(trial, cost_of(space, trial), progress)
                        stop = bound >= upper[0] - BALL_GAP
                    break
                if score >= -SCORE_TIE:
                    break
                c = learn(grid, space, box, point, duals, clauses, counters, neighbourhood)
                if room_left(space, c, clauses, point) < radius:
                    slack = upper[0] - BALL_GAP - bound
                    dual, number = share_out(space, c, clauses, box, point, duals, slack, shares)
                    raise_dual(space, dual, number, shares, point, duals)
                    bound += dual
                    key = max(key, bound)
                    if bound >= upper[0] - BALL_GAP:
                        stop = True
                        break
            if stop:
                break
            its = Shares(best_shares.faces[:chosen_number], best_shares.places[:chosen_number])
            branch(space, clauses, violated[chosen], box, its, key, nodes, counters)
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def branch(space, clauses, c, box, shares, key, nodes, counters):
    """One child per face of a clause that has its share; later children have less than those before them."""
    faces, places, c_set, low, high, sets = shares.faces, shares.places, clauses.sets, box.low, box.high, box.sets
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    child, spare = Box(child_low, child_high, child_set), Point(np.empty(len(low)), np.zeros(len(low), np.int64))
    for i in range(len(faces)):
        face = faces[i]
        f = face // 2
        old_low, old_high, old_set = child_low[f], child_high[f], child_set[f]
        if space.unordered[f]:
            child_set[f] = old_set & ~c_set[c, f]
            here = child_set[f] != 0
        elif face % 2:
            child_low[f] = max(old_low, places[i])
            here = child_low[f] <= old_high
        else:
            child_high[f] = min(old_high, places[i])
            here = old_low <= child_high[f]
        if here:
            add_node(child, max(key, nearest(space, child, spare)), nodes, counters)
        child_low[f], child_high[f], child_set[f] = old_low, old_high, old_set
        if space.unordered[f]:
            child_set[f] = old_set & c_set[c, f]
            if not child_set[f]:
                return
        elif face % 2:
            inner = places[i] if space.grain[f] == REAL else snap(space, f, places[i] - COORDINATE_SOLVED, False)
            child_high[f] = min(old_high, inner)
        else:
            inner = places[i] if space.grain[f] == REAL else snap(space, f, places[i] + COORDINATE_SOLVED, True)
            child_low[f] = max(old_low, inner)
        if child_low[f] > child_high[f]:
            return
