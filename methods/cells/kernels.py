"""Compiled kernels of the search over cells: leaf masks, learnt clauses, dual bound, branch and bound.

The arrays, and their shapes, are those of ``records``. A *state* is a value that a feature may take from this factual;
states of a feature are in order of value, with a cost that grows away from the factual's.
An unordered feature (a one-hot category) has a set of states instead of an interval, as a 64-bit mask.

A point is right where each of one or more sums of trees is above 0: one for a bound, two for an interval, and one for
each other class that the wanted one has to beat. Its *score* is the least sum.

A *clause* is a box of states on which the ensemble is proven wrong: some feature has to leave it.

Where a point has to be right in a neighbourhood, ``neighbourhood`` holds the cells that its states touch; else it is
None.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from harness.core.tolerances import BRANCHING_GAIN, COORDINATE_TIE, COST_TIE, NO_DIVISOR, SCORE_TIE
from methods.cells.additive import additive_bound
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
    allows,
    best_leaf,
    first_from,
    highest,
    leaf_at,
    take_node,
)
from methods.cells.neighbourhood import LOOKS, STUCK, growth_from, strengthen, touch, weakest
from methods.cells.records import (
    Box,
    Clauses,
    GridArrays,
    Intervals,
    Laid,
    Leaves,
    Marks,
    Node,
    Nodes,
    Numbers,
    Progress,
    States,
    Touched,
)

ROOT_ROUNDS = 40  # cores looked for at the root; elsewhere NODE_ROUNDS
NODE_ROUNDS = 1
DETOURS = 100  # moves until a point is outside every clause's box, or is given up
GUESSES = 8  # rows pulled back to the factual
FACES = 4  # children that a node gets at once
# Looks at what changes gain together: so many a node, each as dear as so many looks at every tree; after some that told
# nothing a node in so many is looked at, until one look in so many tells something again.
GAINS_LOOKS, GAINS_WORK, GAINS_TRIED, GAINS_AGAIN, GAINS_PAY = 2, 3, 20, 8, 4
# Positions in the array of counters that outlives a pause.
CLAUSES, HARD, FOUND, WORK, NODES_SEEN, ROOT, ENTERED = range(3, 10)  # after HEAP, TOP, FREE


@njit_no_refcount
def score_point(grid, states, point):
    """Score of one point of states, and which sum that is."""
    values, starts, sums = grid.values, grid.starts, grid.sums
    total, least, which = grid.base, INFINITE, 0
    for t in range(values.shape[0]):
        if t and sums[t] != sums[t - 1]:
            if total < least:
                least, which = total, sums[t - 1]
            total = grid.base
        if starts[t] == starts[t + 1]:
            total += values[t, values.shape[1] - 1]
        else:
            total += values[t, leaf_at(grid, states, point, t)]
    return (total, sums[-1]) if total < least else (least, which)


@njit_no_refcount
def assess(grid, states, point, neighbourhood):
    """Score of one point of states, and of which sum; with ``neighbourhood`` the least around it, as ``weakest``."""
    if neighbourhood is None:
        return score_point(grid, states, point)
    return weakest(grid, states, point, neighbourhood), 0


@njit_no_refcount
def enter(c, clauses, states):
    """List the faces through which a clause's box can be left, and enter it in the table of clauses by state.

    A face is numbered 2f (down, or by another category) or 2f + 1 (up). The table's rows are sets of clauses, 64 a
    word: for each state those whose box is left upwards there, then for each state those left downwards; for a
    category, those whose box it is not in.
    """
    unordered, state_start = states.unordered, states.start
    c_low, c_high, c_set = clauses.low, clauses.high, clauses.sets
    faces, beyond, width, table = clauses.faces, clauses.beyond, clauses.width, clauses.table
    word, mark, size = c // 64, np.uint64(1) << np.uint64(c % 64), state_start[len(unordered)]
    width[c] = 0
    for f in range(len(unordered)):
        many = state_start[f + 1] - state_start[f]
        if unordered[f]:
            for s in range(many):
                if not (c_set[c, f] >> np.uint64(s)) & np.uint64(1):
                    table[state_start[f] + s, word] |= mark
            if all_of(many) & ~c_set[c, f]:
                faces[c, width[c]] = 2 * f
                width[c] += 1
            continue
        if c_low[c, f] > 0:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f, c_low[c, f] - 1
            width[c] += 1
        for s in range(c_low[c, f]):
            table[size + state_start[f] + s, word] |= mark
        if c_high[c, f] + 1 < many:
            faces[c, width[c]], beyond[c, width[c]] = 2 * f + 1, c_high[c, f] + 1
            width[c] += 1
        for s in range(c_high[c, f] + 1, many):
            table[state_start[f] + s, word] |= mark


@njit(cache=True)
def begin(clauses, states, nodes, counters):
    """Enter the clauses that Python has added, and open the node of all states where a search has none yet."""
    for c in range(counters[ENTERED], counters[CLAUSES]):
        enter(c, clauses, states)
    counters[ENTERED] = counters[CLAUSES]
    if counters[ROOT] == 0 and counters[HEAP] == 0:
        high = states.start[1:] - states.start[:-1] - 1
        add_node(Box(np.zeros_like(high), high, states.sets), 0.0, nodes, counters)


@njit_no_refcount
def clauses_around(clauses, used, states, point, found):
    """Write the set of the clauses whose box holds a point, words of 64."""
    table, unordered, state_start = clauses.table, states.unordered, states.start
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
def inside(c, clauses, states, point):
    """Whether a point lies in a clause's box."""
    for i in range(clauses.width[c]):
        face = clauses.faces[c, i]
        f = face // 2
        if states.unordered[f]:
            if not (clauses.sets[c, f] >> np.uint64(point[f])) & np.uint64(1):
                return False
        elif point[f] >= clauses.beyond[c, i] if face % 2 else point[f] <= clauses.beyond[c, i]:
            return False
    return True


@njit_no_refcount
def is_open(c, i, clauses, states, box):
    """Whether a node still allows a clause's box to be left through its i-th face."""
    face = clauses.faces[c, i]
    f = face // 2
    if states.unordered[f]:
        return (box.sets[f] & ~clauses.sets[c, f]) != 0
    return box.high[f] >= clauses.beyond[c, i] if face % 2 else box.low[f] <= clauses.beyond[c, i]


@njit_no_refcount
def leave(c, clauses, states, box):
    """Tighten a node to what lies beyond the first open face of a clause's box; whether there is one."""
    for i in range(clauses.width[c]):
        if is_open(c, i, clauses, states, box):
            f, beyond = clauses.faces[c, i] // 2, clauses.beyond[c, i]
            if states.unordered[f]:
                box.sets[f] &= ~clauses.sets[c, f]
            elif clauses.faces[c, i] % 2:
                box.low[f] = max(box.low[f], beyond)
            else:
                box.high[f] = min(box.high[f], beyond)
            return True
    return False


@njit(cache=True)
def propagate(clauses, used, states, box):
    """``tighten`` with room of its own."""
    words = (used + 63) // 64
    marks = Marks(
        np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64),
        np.empty(words, np.uint64),
    )  # fmt: skip
    return tighten(clauses, used, states, box, marks)


@njit_no_refcount
def tighten(clauses, used, states, box, marks):
    """Tighten a node by its clauses; False where one of them cannot be left any more.

    All clauses at once, 64 a word: those that the node has left, and those with one and with more open faces.
    """
    unordered, state_start, table = states.unordered, states.start, clauses.table
    low, high, sets = box.low, box.high, box.sets
    words, size = (used + 63) // 64, state_start[len(unordered)]
    gone, one, two, some, every = marks.gone, marks.one, marks.two, marks.some, marks.every
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
                changed |= leave(c, clauses, states, box)
    return True


@njit_no_refcount
def face_cost(c, i, clauses, states, node):
    """Residual cost of leaving a clause's box through its i-th face, in this node."""
    face = clauses.faces[c, i]
    f = face // 2
    if states.unordered[f]:
        return node.change[f] if node.box.sets[f] & ~clauses.sets[c, f] else INFINITE
    at = clauses.beyond[c, i]
    if face % 2:
        return node.right[states.start[f] + at] if at <= node.box.high[f] else INFINITE
    return node.left[states.start[f] + at] if at >= node.box.low[f] else INFINITE


@njit_no_refcount
def gain(c, clauses, states, node):
    """How much a bound gains, about, where a clause is branched on: the harmonic mean of its faces' residual costs."""
    pull = 0.0
    for i in range(clauses.width[c]):
        rest = face_cost(c, i, clauses, states, node)
        if rest < INFINITE:
            pull += 1.0 / (rest + BRANCHING_GAIN)
    return 1.0 / (pull + NO_DIVISOR)


@njit_no_refcount
def raise_dual(c, clauses, states, node):
    """Raise the dual of a violated clause by the least residual cost of its faces; returns by how much."""
    unordered, state_start = states.unordered, states.start
    low, high, point, right, left = node.box.low, node.box.high, node.point, node.right, node.left
    least = INFINITE
    for i in range(clauses.width[c]):
        least = min(least, face_cost(c, i, clauses, states, node))
        if least <= 0.0:
            return least
    if least == INFINITE:
        return least
    for i in range(clauses.width[c]):
        face = clauses.faces[c, i]
        f = face // 2
        if unordered[f]:
            if is_open(c, i, clauses, states, node.box):
                node.change[f] -= least
            continue
        # Outermost segments are spent first: what is nearer keeps its prefix up to what is left.
        at = clauses.beyond[c, i]
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
def nearest(box, states, point):
    """The cheapest point of a box, and its cost."""
    sets, factual_state = box.sets, states.factual
    total = 0.0
    for f in range(len(point)):
        if states.unordered[f]:
            if (sets[f] >> np.uint64(factual_state[f])) & np.uint64(1):
                point[f] = factual_state[f]
            else:
                point[f], least = -1, INFINITE
                for s in range(states.start[f + 1] - states.start[f]):
                    own = states.cost[states.start[f] + s]
                    if (sets[f] >> np.uint64(s)) & np.uint64(1) and (point[f] < 0 or own < least):
                        point[f], least = s, own
        else:
            point[f] = min(max(factual_state[f], box.low[f]), box.high[f])
        total += states.cost[states.start[f] + point[f]]
    return total


@njit_no_refcount
def cost_of(point, states):
    total = 0.0
    for f in range(len(point)):
        total += states.cost[states.start[f] + point[f]]
    return total


@njit_no_refcount
def changes_of(point, states):
    total = 0.0
    for f in range(len(point)):
        if not states.first[f] <= point[f] <= states.last[f]:
            total += states.weight[f]
    return total


@njit_no_refcount
def allowed(point, clauses, hard, states):
    """Whether a point is outside every hard clause's box."""
    for c in range(hard):
        if inside(c, clauses, states, point):
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
def evaluate(grid, states, point, leaves):
    """Write the leaves of a point of states, and each sum; returns the score."""
    offset, members, owner, masks = grid.offset, grid.members, grid.owner, leaves.masks
    for k in range(len(members)):
        cell = offset[members[k]] + states.cell[states.start[members[k]] + point[members[k]]]
        for word in range(masks.shape[1]):
            masks[k, word] = grid.upto[owner[k], cell, word] & grid.onwards[owner[k], cell, word]
    for i in range(len(leaves.totals)):
        leaves.totals[i] = grid.base
    for t in range(grid.values.shape[0]):
        leaves.values[t] = best_leaf(grid.values, grid.starts, t, masks, -1, masks)
        leaves.totals[grid.sums[t]] += leaves.values[t]
    return least_of(leaves.totals)


@njit(cache=True)
def leaves_room(grid):
    """Room for the leaves of a point."""
    trees = grid.values.shape[0]
    masks = np.empty((len(grid.members), grid.upto.shape[2]), np.uint64)
    return Leaves(masks, np.empty(trees), np.empty(grid.sums[-1] + 1))


@njit_no_refcount
def step(grid, states, point, leaves, f, s):
    """Move a point that was evaluated to another state of one feature; returns the score."""
    offset, border_start, masks = grid.offset, grid.border_start, leaves.masks
    old, new = states.cell[states.start[f] + point[f]], states.cell[states.start[f] + s]
    point[f] = s
    if old == new:
        return least_of(leaves.totals)
    first, last = min(old, new), max(old, new)
    cell = offset[f] + new
    for place in range(first, last + 1):
        if place != first and place != last if states.unordered[f] else place == last:
            continue
        for j in range(border_start[offset[f] + place], border_start[offset[f] + place + 1]):
            k = grid.border_entries[j]
            t = grid.owner[k]
            for word in range(masks.shape[1]):
                masks[k, word] = grid.upto[t, cell, word] & grid.onwards[t, cell, word]
            value = best_leaf(grid.values, grid.starts, t, masks, -1, masks)
            leaves.totals[grid.sums[t]] += value - leaves.values[t]
            leaves.values[t] = value
    return least_of(leaves.totals)


@njit(cache=True)
def pull_back(grid, states, clauses, hard, order, partly, point):
    """Move a right point's features back to the factual, or ``partly`` so, in an order, while it stays right."""
    leaves, factual_state, unordered = leaves_room(grid), states.factual, states.unordered
    evaluate(grid, states, point, leaves)
    for f in order:
        old, s = point[f], factual_state[f]
        if old == s:
            continue
        way = 1 if old > s else -1
        while True:
            score = step(grid, states, point, leaves, f, s)
            if s == old or (score > SCORE_TIE and allowed(point, clauses, hard, states)):
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
def costliest_first(point, states):
    """The features by what their states cost, the costliest first."""
    costs, cost, start = np.empty(len(point)), states.cost, states.start
    for f in range(len(point)):
        costs[f] = -cost[start[f] + point[f]]
    return ascending(costs)


@njit_no_refcount
def stuck(neighbourhood):
    """Whether the adversary has used up its allowance without an answer."""
    return neighbourhood.adversary.counters[STUCK] != 0


@njit_no_refcount
def is_right(grid, states, point, neighbourhood):
    """Whether a point is shown to be right in its neighbourhood."""
    return weakest(grid, states, point, neighbourhood) > SCORE_TIE and not stuck(neighbourhood)


@njit_no_refcount
def spent(neighbourhood, trees):
    """Units of work that the adversary has done since it was last asked."""
    counters = neighbourhood.adversary.counters
    looks = counters[LOOKS]
    counters[LOOKS] = 0
    return looks * trees


@njit_no_refcount
def pull_in(grid, states, clauses, used, point, holding, neighbourhood):
    """``pull_back`` of a point with its neighbourhood; points in clauses' boxes are left out without a look."""
    cost, state_start, factual_state, tried = states.cost, states.start, states.factual, neighbourhood.tried
    count = len(point)
    for g in range(count):
        tried[g] = 0
    for _ in range(count):
        # Costliest first.
        f, most = -1, -1.0
        for g in range(count):
            here = cost[state_start[g] + point[g]]
            if here > most and not tried[g]:
                f, most = g, here
        if f < 0 or most <= 0.0:
            break
        tried[f] = 1
        old = point[f]
        way = 1 if old > factual_state[f] else -1
        s = factual_state[f]
        while s != old:
            point[f] = s
            clauses_around(clauses, used, states, point, holding)
            free = True
            for w in range((used + 63) // 64):
                if holding[w]:
                    free = False
                    break
            if free and is_right(grid, states, point, neighbourhood):
                break
            s = old if states.unordered[f] else s + way
        point[f] = s


@njit(cache=True)
def cheapest_states(offset, states):
    """Each cell's cheapest state in reach, or -1."""
    unordered, cell_of, state_start, cost = states.unordered, states.cell, states.start, states.cost
    count = len(unordered)
    state_at = np.empty(offset[count], np.int64)
    state_at[:] = -1
    for f in range(count):
        for s in range(state_start[f + 1] - state_start[f]):
            cell = offset[f] + cell_of[state_start[f] + s]
            if unordered[f] and not (states.sets[f] >> np.uint64(s)) & np.uint64(1):
                continue
            if state_at[cell] < 0 or cost[state_start[f] + s] < cost[state_start[f] + state_at[cell]]:
                state_at[cell] = s
    return state_at


@njit(cache=True)
def improve(grid, states, clauses, rows, draws, progress):
    """Look for a better incumbent: some of a row's cells are put into it, and changes taken back in random order.

    A cell of a row without a reachable state is left out. Of the numbers drawn, shape (tries, 2 + features), the first
    chooses the row, the second how much of it; every other try starts from the factual and takes all of it.
    """
    counters, best, factual_state = progress.counters, progress.best, states.factual
    offset, hard, count = grid.offset, counters[HARD], len(factual_state)
    state_at = cheapest_states(offset, states)
    point = np.empty(count, np.int64)
    for t in range(draws.shape[0]):
        r = int(draws[t, 0] * rows.shape[0])
        mixed = counters[FOUND] and t % 2
        for f in range(count):
            point[f] = best[f] if mixed else factual_state[f]
            s = state_at[offset[f] + rows[r, f]]
            if s >= 0 and (not mixed or draws[t, 2 + f] < draws[t, 1]):
                point[f] = s
        if not allowed(point, clauses, hard, states):
            continue
        if score_point(grid, states, point)[0] <= SCORE_TIE:
            continue
        pull_back(grid, states, clauses, hard, ascending(draws[t, 2:]), False, point)
        pull_back(grid, states, clauses, hard, costliest_first(point, states), True, point)
        if changes_of(point, states) <= states.most:
            keep(point, cost_of(point, states), progress)


@njit(cache=True)
def guess(grid, states, clauses, nodes, rows, draws, progress):
    """Look for an incumbent: for a first one where nothing is drawn, else for a better one."""
    if len(draws):
        improve(grid, states, clauses, rows, draws, progress)
    else:
        begin(clauses, states, nodes, progress.counters)
        first_guess(grid, states, clauses, rows, progress)


@njit(cache=True)
def first_guess(grid, states, clauses, rows, progress):
    """Incumbents to begin with: single changes, and the cheapest of some rows of cells, pulled back to the factual.

    A cell of a row without a reachable state is left out. The optimum does not depend on it: it bounds the search.
    """
    unordered, state_start, factual_state, cost = states.unordered, states.start, states.factual, states.cost
    weight, upper = states.weight, progress.upper
    offset, hard, count = grid.offset, progress.counters[HARD], len(unordered)
    leaves, point = leaves_room(grid), factual_state.copy()
    evaluate(grid, states, point, leaves)
    for f in range(count):
        if weight[f] > states.most:
            continue
        for way in (1, -1):
            s = factual_state[f] + way
            while 0 <= s < state_start[f + 1] - state_start[f] and cost[state_start[f] + s] < upper[0]:
                if not unordered[f] or (states.sets[f] >> np.uint64(s)) & np.uint64(1):
                    score = step(grid, states, point, leaves, f, s)
                    if score > SCORE_TIE and allowed(point, clauses, hard, states):
                        keep(point, cost[state_start[f] + s], progress)
                s += way
            step(grid, states, point, leaves, f, factual_state[f])
    state_at = cheapest_states(offset, states)
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
        if not allowed(point, clauses, hard, states):
            continue
        if score_point(grid, states, point)[0] <= SCORE_TIE:
            continue
        pull_back(grid, states, clauses, hard, costliest_first(point, states), True, point)
        if changes_of(point, states) <= states.most:
            keep(point, cost_of(point, states), progress)


@njit(cache=True)
def guess_neighbourhoods(grid, states, clauses, nodes, rows, progress, neighbourhood):
    """First incumbents where a point's neighbourhood counts: the first right ones of some rows of states."""
    begin(clauses, states, nodes, progress.counters)
    used, found = progress.counters[CLAUSES], 0
    point = np.empty(rows.shape[1], np.int64)
    holding = np.empty(clauses.table.shape[1], np.uint64)
    for r in range(rows.shape[0]):
        for f in range(len(point)):
            point[f] = rows[r, f]
        clauses_around(clauses, used, states, point, holding)
        free = True
        for w in range((used + 63) // 64):
            free &= holding[w] == 0
        if not free or not is_right(grid, states, point, neighbourhood):
            continue
        pull_in(grid, states, clauses, used, point, holding, neighbourhood)
        if changes_of(point, states) <= states.most:
            keep(point, cost_of(point, states), progress)
            found += 1
        if found == GUESSES:
            break
    progress.counters[WORK] += spent(neighbourhood, grid.values.shape[0])


@njit_no_refcount
def live_faces(c, clauses, states, box):
    """How many faces of a clause's box a node still allows to leave through."""
    count = 0
    for i in range(clauses.width[c]):
        count += is_open(c, i, clauses, states, box)
    return count


@njit_no_refcount
def residuals(node, states):
    """What each move away from the node's nearest point costs, while all duals are 0."""
    unordered, cost, state_start, factual_state = states.unordered, states.cost, states.start, states.factual
    low, high, sets, point = node.box.low, node.box.high, node.box.sets, node.point
    right, left, change = node.right, node.left, node.change
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
def fix(node, states, slack):
    """Drop what would cost more than ``slack`` on top of the bound; whether anything was dropped."""
    state_start, point, right, left = states.start, node.point, node.right, node.left
    low, high, sets = node.box.low, node.box.high, node.box.sets
    dropped = False
    for f in range(len(point)):
        if states.unordered[f]:
            only = np.uint64(1) << np.uint64(point[f])
            if node.change[f] >= slack and sets[f] != only:
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
def may_stay(box, states, f):
    """Whether a box allows a feature to be as the factual has it, up to rounding."""
    if states.unordered[f]:
        return allows(box, states, f, states.factual[f])
    return box.low[f] <= states.last[f] and box.high[f] >= states.first[f]


@njit_no_refcount
def limit_changes(box, states):
    """Keep within the bound on changed features; False where the node cannot."""
    forced = 0.0
    for f in range(len(states.unordered)):
        if not may_stay(box, states, f):
            forced += states.weight[f]
    if forced > states.most:
        return False
    for f in range(len(states.unordered)):
        if may_stay(box, states, f) and forced + states.weight[f] > states.most:
            if states.unordered[f]:
                box.sets[f] = np.uint64(1) << np.uint64(states.factual[f])
            else:
                box.low[f], box.high[f] = max(box.low[f], states.first[f]), min(box.high[f], states.last[f])
    return True


@njit_no_refcount
def through_free_faces(clauses, used, states, node, holding, trial):
    """A point outside every clause's box, reached through faces without residual cost; False where none is met.

    ``holding`` is room for the set of the clauses whose box holds the point on its way.
    """
    point = node.point
    for f in range(len(point)):
        trial[f] = point[f]
    for _ in range(DETOURS):
        clauses_around(clauses, used, states, trial, holding)
        c = -1
        for w in range((used + 63) // 64):
            if holding[w]:
                c = 64 * w + highest(holding[w])
                break
        if c < 0:
            return True
        moved = False
        for i in range(clauses.width[c]):
            face = clauses.faces[c, i]
            f = face // 2
            if face_cost(c, i, clauses, states, node) > COST_TIE:
                continue
            if states.unordered[f]:
                outside = node.box.sets[f] & ~clauses.sets[c, f]
                trial[f] = highest(outside & (~outside + np.uint64(1)))
            elif trial[f] < point[f] if face % 2 else trial[f] > point[f]:
                continue
            else:
                trial[f] = clauses.beyond[c, i]
            moved = True
            break
        if not moved:
            return False
    return False


@njit_no_refcount
def keep(point, value, progress):
    """A new incumbent, if it is better."""
    if value < progress.upper[0]:
        progress.upper[0] = value
        for f in range(len(point)):
            progress.best[f] = point[f]
        progress.counters[FOUND] = 1


@njit_no_refcount
def ask(point, neighbourhood, progress):
    """Leave a point, or the cell of its neighbourhood that counts, for the real model to decide."""
    for f in range(len(point)):
        progress.asked[f] = point[f] if neighbourhood is None else neighbourhood.adversary.worst_low[f]


@njit(cache=True)
def learn(grid, states, which, node, seed, clauses, counters, neighbourhood=None):
    """Add the strengthened box of a wrong point, or of the cells in ``neighbourhood``, to the clauses; its number.

    ``which``: the sum that is wrong.
    """
    c = counters[CLAUSES]
    box = Box(clauses.low[c], clauses.high[c], clauses.sets[c])
    if neighbourhood is None:
        low, high = np.empty(len(seed), np.int64), np.empty(len(seed), np.int64)
        for f in range(len(seed)):
            low[f] = high[f] = states.cell[states.start[f] + seed[f]]
            box.low[f] = box.high[f] = seed[f]
        touched = Touched(states.cell, states.cell)
    else:
        low, high = neighbourhood.adversary.worst_low, neighbourhood.adversary.worst_high
        touch(states, neighbourhood, low, high, box)
        touched = Touched(neighbourhood.first, neighbourhood.last)
    strengthen(grid, states, which, node, touched, growth_from(grid, low, high), box)
    enter(c, clauses, states)
    counters[CLAUSES] = counters[ENTERED] = c + 1
    counters[WORK] += 40 * grid.values.shape[0]
    return c


@njit(cache=True)
def branch(c, clauses, states, node, key, nodes, counters):
    """One child per face of a clause's box, cheapest first; later children stay within the faces before them.

    Those beyond ``FACES`` stay together in one node, to be split when its turn comes: for most it never does.
    """
    c_set, faces, beyond, width, unordered = (
        clauses.sets, clauses.faces, clauses.beyond, clauses.width, states.unordered
    )  # fmt: skip
    low, high, sets = node.box.low, node.box.high, node.box.sets
    face_costs = np.empty(width[c])
    for k in range(width[c]):
        face_costs[k] = face_cost(c, k, clauses, states, node)
    spare = np.empty(len(unordered), np.int64)
    child_low, child_high, child_set = low.copy(), high.copy(), sets.copy()
    rest_low, rest_high, rest_set = low.copy(), high.copy(), sets.copy()
    child, rest = Box(child_low, child_high, child_set), Box(rest_low, rest_high, rest_set)
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
            least = max(key, nearest(child, states, spare))
            if made < FACES:
                add_node(child, least, nodes, counters)
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
        add_node(rest, least_left, nodes, counters)


@njit(cache=True)
def run(grid, states, clauses, nodes, progress, effort, neighbourhood=None, additive=None):
    """Best-first branch and bound, for about ``effort`` units of work; returns why it stopped.

    Its whole state is in its arguments. Takes plain tuples, see ``records``, but for the neighbourhood.
    """
    grid, states, clauses = GridArrays(*grid), States(*states), Clauses(*clauses)
    nodes, progress = Nodes(*nodes), Progress(*progress)
    counters, upper, most = progress.counters, progress.upper, states.most
    begin(clauses, states, nodes, counters)
    keys, heap = nodes.keys, nodes.heap
    count, trees, room = len(states.unordered), grid.values.shape[0], len(clauses.width)
    size = states.start[count]
    box = Box(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint64))
    point, trial = np.empty(count, np.int64), np.empty(count, np.int64)
    node = Node(box, point, np.empty(size), np.empty(size), np.empty(count))
    violated, order, live = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    holding = np.empty(clauses.table.shape[1], np.uint64)
    end = counters[WORK] + effort
    tried, paid = 0, 0  # looks at what changes gain together, and those that told something
    while counters[HEAP]:
        upper[1] = min(max(upper[1], keys[heap[0]]), upper[0])  # a program may have proven more
        if upper[1] >= upper[0] - COST_TIE:
            break
        if counters[WORK] > end:
            return PAUSED
        if counters[TOP] - counters[FREE] + FACES + 4 > len(keys):
            return MORE_NODES
        if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
            return MORE_CLAUSES
        key = take_node(box, nodes, counters)
        counters[NODES_SEEN] += 1
        rounds = ROOT_ROUNDS if counters[ROOT] == 0 else NODE_ROUNDS
        counters[ROOT] = 1
        looks = GAINS_LOOKS
        while True:
            if not propagate(clauses, counters[CLAUSES], states, box):
                break
            if not limit_changes(box, states):
                break
            counters[WORK] += counters[CLAUSES] + trees
            lowest = nearest(box, states, point)
            if lowest >= upper[0] - COST_TIE:
                break
            residuals(node, states)
            total = 0
            ends = np.zeros(2 * count + 1, np.int64)  # of violated clauses by their live faces, fewest first
            clauses_around(clauses, counters[CLAUSES], states, point, holding)
            for w in range((counters[CLAUSES] + 63) // 64):
                while holding[w]:
                    lowest_bit = holding[w] & (~holding[w] + np.uint64(1))
                    holding[w] ^= lowest_bit
                    violated[total] = 64 * w + highest(lowest_bit)
                    live[total] = live_faces(violated[total], clauses, states, box)
                    ends[live[total]] += 1
                    total += 1
            for k in range(2 * count):
                ends[k + 1] += ends[k]
            for k in range(total - 1, -1, -1):
                ends[live[k]] -= 1
                order[ends[live[k]]] = violated[k]
            bound = lowest
            for k in range(total):
                bound += raise_dual(order[k], clauses, states, node)
            key = max(key, bound)
            if bound >= upper[0] - COST_TIE:
                break
            if fix(node, states, upper[0] - COST_TIE - bound):
                continue
            some_pay = GAINS_PAY * paid >= tried - GAINS_TRIED or counters[NODES_SEEN] % GAINS_AGAIN == 0
            if additive is not None and len(additive.gain) and upper[0] < INFINITE and looks and some_pay:
                score, which = score_point(grid, states, point)
                if score < -SCORE_TIE:
                    looks -= 1
                    tried += 1
                    counters[WORK] += GAINS_WORK * trees
                    slack = upper[0] - COST_TIE - lowest
                    more, dropped = additive_bound(grid, states, node, which, slack, additive)
                    paid += more >= slack or dropped or lowest + more > bound
                    key = max(key, min(lowest + more, upper[0]))
                    if more >= slack:
                        break
                    if dropped:
                        continue
            if total == 0:
                score, which = assess(grid, states, point, neighbourhood)
                if neighbourhood is not None:
                    counters[WORK] += spent(neighbourhood, trees)
                    if stuck(neighbourhood):
                        add_node(box, key, nodes, counters)
                        return MORE_LOOKS
                if score > SCORE_TIE:
                    if changes_of(point, states) <= most:
                        keep(point, lowest, progress)
                    break
                if score >= -SCORE_TIE:
                    # Too near to tell: the node goes back until the real model has spoken.
                    add_node(box, key, nodes, counters)
                    ask(point, neighbourhood, progress)
                    return ASK
                learn(grid, states, which, node, point, clauses, counters, neighbourhood)
                if counters[CLAUSES] + ROOT_ROUNDS + 2 > room:
                    add_node(box, key, nodes, counters)
                    return MORE_CLAUSES
                continue
            # Disjoint cores: points that cost no more than the bound; each wrong one is a clause that may raise it.
            stop = False
            while rounds > 0:
                rounds -= 1
                counters[WORK] += counters[CLAUSES]
                used = counters[CLAUSES]
                if not through_free_faces(clauses, used, states, node, holding, trial):
                    break
                score, which = assess(grid, states, trial, neighbourhood)
                if neighbourhood is not None:
                    counters[WORK] += spent(neighbourhood, trees)
                    if stuck(neighbourhood):
                        break
                if score > SCORE_TIE:
                    if changes_of(trial, states) <= most:
                        if neighbourhood is None:
                            pull_back(
                                grid, states, clauses, counters[HARD], costliest_first(trial, states), True, trial
                            )
                        else:
                            pull_in(grid, states, clauses, used, trial, holding, neighbourhood)
                            counters[WORK] += spent(neighbourhood, trees)
                        keep(trial, cost_of(trial, states), progress)
                        if bound >= upper[0] - COST_TIE:
                            stop = True
                    break
                if score >= -SCORE_TIE:
                    break
                c = learn(grid, states, which, node, trial, clauses, counters, neighbourhood)
                if inside(c, clauses, states, point):
                    violated[total] = c
                    total += 1
                    bound += raise_dual(c, clauses, states, node)
                    key = max(key, bound)
                    if bound >= upper[0] - COST_TIE:
                        stop = True
                        break
            if stop:
                break
            if fix(node, states, upper[0] - COST_TIE - bound):
                continue
            # Branch on the violated clause whose children gain most.
            residuals(node, states)
            chosen, most_gained = violated[0], -1.0
            for k in range(total):
                gained = gain(violated[k], clauses, states, node)
                if gained > most_gained:
                    chosen, most_gained = violated[k], gained
            branch(chosen, clauses, states, node, key, nodes, counters)
            break
    upper[1] = upper[0]
    counters[HEAP] = 0
    return DONE


@njit(cache=True)
def lay_number(numbers, intervals, j, laid):
    """Write the states of one number: each interval between thresholds and cuts, at its value nearest to the factual's.

    The arrays of states have room for them from ``laid.start[j]`` on; writes ``laid.start[j + 1]``.
    """
    ends = numbers.ends[numbers.ends_start[j] : numbers.ends_start[j + 1]]
    cuts = intervals.cuts[intervals.cuts_start[j] : intervals.cuts_start[j + 1]]
    value, low, high, integer = intervals.value[j], intervals.low[j], intervals.high[j], numbers.integer[j]
    borders, last_border = np.empty(len(ends) + len(cuts)), len(ends)
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
    at = laid.start[j]
    for i in range(len(borders) + 1):
        first = -np.inf
        if i > 0:
            first = borders[i - 1] + 1.0 if integer else np.nextafter(borders[i - 1], np.inf)
        last = borders[i] if i < len(borders) else np.inf
        own = first <= value <= last
        if own:
            nearest = value
            laid.factual[j] = at - laid.start[j]
        else:
            least, most = max(first, low), min(last, high)
            if least > most:
                continue
            nearest = min(max(value, least), most)
        gap = abs(nearest - value) / numbers.unit[j]
        laid.values[at] = nearest
        fixed = numbers.fixed[j] if gap > COORDINATE_TIE else 0.0  # less is no change
        laid.cost[at] = fixed + numbers.linear[j] * gap + numbers.quadratic[j] * gap * gap
        laid.cell[at] = first_from(ends, nearest)
        at += 1
    laid.start[j + 1] = at


@njit(cache=True)
def lay_numbers(numbers, intervals):
    """The states of several numbers. Takes plain tuples, see ``records``."""
    numbers, intervals = Numbers(*numbers), Intervals(*intervals)
    count = len(intervals.value)
    room = len(numbers.ends) + len(intervals.cuts) + count
    laid = Laid(
        np.empty(room, np.int64), np.empty(room), np.empty(room), np.zeros(count + 1, np.int64),
        np.zeros(count, np.int64),
    )  # fmt: skip
    for j in range(count):
        lay_number(numbers, intervals, j, laid)
    return laid
