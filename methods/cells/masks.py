"""What the compiled kernels of the searches over cells share: leaf masks, the cost of leaving a box, open nodes."""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit_no_refcount
from harness.solvers.heap import pop, push

INFINITE = np.inf
DONE, PAUSED, ASK, MORE_NODES, MORE_CLAUSES, MORE_LOOKS = range(6)  # why a search stopped
HEAP, TOP, FREE = range(3)  # the first counters: open nodes, places used, places that became free


@njit_no_refcount
def first_from(values, least):
    """The place of the first of ascending values that is at least so great; their number where none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit_no_refcount
def highest(word):
    """Position of the highest set bit of a non-zero word."""
    bit = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(shift):
            word >>= np.uint64(shift)
            bit += shift
    return bit


@njit_no_refcount
def allows(box, states, f, state):
    """Whether a node has a state of a feature."""
    if states.unordered[f]:
        return (box.sets[f] >> np.uint64(state)) & np.uint64(1) != 0
    return box.low[f] <= state <= box.high[f]


@njit_no_refcount
def leaf_at(grid, states, point, t):
    """The leaf of a tree that splits in which a point of states lies."""
    for word in range(grid.upto.shape[2]):
        mask = ~np.uint64(0)
        for k in range(grid.starts[t], grid.starts[t + 1]):
            f = grid.members[k]
            cell = grid.offset[f] + states.cell[states.start[f] + point[f]]
            mask &= grid.upto[t, cell, word] & grid.onwards[t, cell, word]
            if not mask:
                break
        if mask:
            return word * 64 + highest(mask)
    return -1


@njit_no_refcount
def best_leaf(values, starts, t, masks, instead, fresh):
    """Value of a tree's best leaf by its features' masks.

    Parameters
    ----------
    masks
        Leaves that each feature leaves its tree, shape (members, words).
    instead, fresh
        A row that is taken from ``fresh``, of the same shape, instead of ``masks``; -1 for none.
    """
    if starts[t] == starts[t + 1]:
        return values[t, values.shape[1] - 1]
    for word in range(masks.shape[1] - 1, -1, -1):
        mask = ~np.uint64(0)
        for k in range(starts[t], starts[t + 1]):
            mask &= fresh[k, word] if k == instead else masks[k, word]
        if mask:
            return values[t, word * 64 + highest(mask)]
    return -INFINITE


@njit_no_refcount
def all_of(states):
    """The set of all of at most 64 states."""
    return ~np.uint64(0) >> np.uint64(64 - states)


@njit_no_refcount
def next_outside(states, chosen, refused, allowed):
    """The first category outside a box, as a set of one: of those that the node allows where there are any."""
    outside = all_of(states) & ~chosen & ~refused
    if outside & allowed:
        outside &= allowed
    return outside & (~outside + np.uint64(1))


@njit_no_refcount
def next_face(face, residual_costs, heap, size):
    """The face through which a growing box is left most cheaply, -1 where none is left to move, and the heap's size.

    A face is moved on for as long as no other one is cheaper; ``residual_costs`` are -1 where a face is frozen.
    """
    if face >= 0 and residual_costs[face] >= 0.0 and not (size and residual_costs[heap[0]] < residual_costs[face]):
        return face, size
    if face >= 0 and residual_costs[face] >= 0.0:
        size = push(heap, residual_costs, size, face)
    if not size:
        return -1, 0
    return pop(heap, residual_costs, size)


@njit_no_refcount
def residual_cost(face, states, node, box, refused):
    """Residual cost of leaving a box if a face gave way; infinite where the node rules that out, -1 where it cannot."""
    f, point = face // 2, node.point
    start = states.start[f]
    count = states.start[f + 1] - start
    if states.unordered[f]:
        outside = all_of(count) & ~box.sets[f] & ~refused[f]
        if face % 2 or not outside:
            return -1.0
        if not outside & node.box.sets[f]:
            return INFINITE
        return node.change[f] if (box.sets[f] >> np.uint64(point[f])) & np.uint64(1) else 0.0
    if face % 2:
        at = box.high[f] + 1
        if at >= count:
            return -1.0
        if at > node.box.high[f]:
            return INFINITE
        return 0.0 if point[f] >= at else node.right[start + at]
    at = box.low[f] - 1
    if at < 0:
        return -1.0
    if at < node.box.low[f]:
        return INFINITE
    return 0.0 if point[f] <= at else node.left[start + at]


@njit_no_refcount
def list_faces(states, node, box, refused, residual_costs, heap):
    """Write the residual cost of each face of a box; those that can move go on the heap, whose size is returned."""
    size = 0
    for face in range(len(residual_costs)):
        residual_costs[face] = residual_cost(face, states, node, box, refused)
        if residual_costs[face] >= 0.0:
            size = push(heap, residual_costs, size, face)
    return size


@njit_no_refcount
def add_node(box, key, nodes, counters):
    """Keep a node for later."""
    if counters[FREE]:
        counters[FREE] -= 1
        place = nodes.free[counters[FREE]]
    else:
        place = counters[TOP]
        counters[TOP] += 1
    for f in range(len(box.low)):
        nodes.low[place, f], nodes.high[place, f], nodes.sets[place, f] = box.low[f], box.high[f], box.sets[f]
    nodes.keys[place] = key
    counters[HEAP] = push(nodes.heap, nodes.keys, counters[HEAP], place)


@njit_no_refcount
def take_node(box, nodes, counters):
    """Write the open node with the least key, whose place becomes free; returns the key."""
    place, counters[HEAP] = pop(nodes.heap, nodes.keys, counters[HEAP])
    for f in range(len(box.low)):
        box.low[f], box.high[f], box.sets[f] = nodes.low[place, f], nodes.high[place, f], nodes.sets[place, f]
    nodes.free[counters[FREE]] = place
    counters[FREE] += 1
    return nodes.keys[place]
