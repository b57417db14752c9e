"""What the compiled kernels of the searches over cells take: arrays by name.

Shapes: F features, S states, T trees, L leaves of a tree, W words of a leaf mask, M masks (one for each feature that a
tree splits on), C clauses, N nodes, E excused boxes, D boxes on a stack. Integers are int64 and numbers float64 where
nothing else is stated. Costs are in the unit of the objective, scores in that of ``grid.Grid``.

A kernel that Python calls for each question takes the plain ``tuple`` of a record, and gives the names back in its
first lines: numba recognises 12 arrays in a plain tuple within 2 us, in a named one within 4 us.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class GridArrays(NamedTuple):
    """A ``grid.Grid``, as described there."""

    offset: np.ndarray  # (F + 1,), the first cell of each feature
    unordered: np.ndarray  # (F,), 1 where the feature's cells have no order
    values: np.ndarray  # (T, L), of leaves, in increasing order
    upto: np.ndarray  # (T, cells, W) uint64, the leaves that a box reaching up to a cell meets
    onwards: np.ndarray  # (T, cells, W) uint64, those that a box reaching from a cell meets
    starts: np.ndarray  # (T + 1,), the first entry of ``members`` of each tree
    members: np.ndarray  # (M,), the feature of each mask
    owner: np.ndarray  # (M,), the tree of each mask
    border_start: np.ndarray  # (cells + 1,), the first entry of ``border_entries`` of each cell
    border_entries: np.ndarray  # the masks that differ between a cell and the next one
    sums: np.ndarray  # (T,), which sum each tree is part of, in order
    base: float  # is added to each sum


class States(NamedTuple):
    """The states of one factual, and what a point of them may cost and change."""

    unordered: np.ndarray  # (F,), as in ``GridArrays``
    sets: np.ndarray  # (F,) uint64, the categories in reach of each unordered feature, as bits
    start: np.ndarray  # (F + 1,), the first state of each feature in the arrays of shape (S,)
    cell: np.ndarray  # (S,), the cell of its feature that a state lies in
    cost: np.ndarray  # (S,), of changing to the state
    factual: np.ndarray  # (F,), the factual's own state of each feature
    first: np.ndarray  # (F,), the first state that is no change: of a number also those as near as rounding
    last: np.ndarray  # (F,), the last one
    weight: np.ndarray  # (F,), what a changed feature adds to the sum that ``most`` limits
    most: float


class Box(NamedTuple):
    """A box of states, of cells, or of coordinates (low and high float64); each array may hold many, one a row."""

    low: np.ndarray  # (F,), the first of each ordered feature
    high: np.ndarray  # (F,), the last of each ordered feature
    sets: np.ndarray  # (F,) uint64, those of each unordered feature, as bits


class Node(NamedTuple):
    """A node of the branch and bound while it is looked at.

    ``right``, ``left`` and ``change`` are the residual costs, what the duals have left, of moves away from ``point``.
    """

    box: Box
    point: np.ndarray  # (F,), the node's state nearest to the factual of each feature
    right: np.ndarray  # (S,), of moves to each state above it
    left: np.ndarray  # (S,), of moves to each state below it
    change: np.ndarray  # (F,), of another category


class Clauses(NamedTuple):
    """Boxes of states on which the model is proven wrong; ``kernels.enter`` derives all but the first three fields."""

    low: np.ndarray  # (C, F), as of ``Box``
    high: np.ndarray  # (C, F)
    sets: np.ndarray  # (C, F) uint64
    faces: np.ndarray  # (C, 2 F) int16, through which a box can be left: 2 f down or by a category, 2 f + 1 up
    beyond: np.ndarray  # (C, 2 F), the first state outside, through each of them
    width: np.ndarray  # (C,), how many they are
    table: np.ndarray  # (2 S, words) uint64, sets of clauses, see ``kernels.enter``


class Nodes(NamedTuple):
    """The open nodes: boxes, and a heap of them."""

    low: np.ndarray  # (N, F), as of ``Box``
    high: np.ndarray  # (N, F)
    sets: np.ndarray  # (N, F) uint64
    keys: np.ndarray  # (N,), a bound on the cost of each node's points
    heap: np.ndarray  # (N,), places of open nodes, a heap by their keys
    free: np.ndarray  # (N,), places that became free


class Progress(NamedTuple):
    """What a search knows when it pauses, beside its nodes and clauses."""

    counters: np.ndarray  # see the names of its positions, such as ``masks.HEAP``
    best: np.ndarray  # (F,), the incumbent's states
    asked: np.ndarray  # (F,), of the point, or the cells, that the real model is asked about
    upper: np.ndarray  # (2,), the incumbent's cost, and the proven lower bound


class Leaves(NamedTuple):
    """The leaves of all trees at a point, or the best ones on a box."""

    masks: np.ndarray  # (M, W) uint64, the leaves that each feature leaves its tree
    values: np.ndarray  # (T,), of the leaf
    totals: np.ndarray  # (sums,), of the values


class Touched(NamedTuple):
    """The cells that states touch, all features one after another."""

    first: np.ndarray  # (S,) int64
    last: np.ndarray  # (S,) int64


class Marks(NamedTuple):
    """Room for ``kernels.tighten``: sets of clauses, 64 a word, each of shape (words,) uint64."""

    gone: np.ndarray  # those that the node has left
    one: np.ndarray  # with an open face
    two: np.ndarray  # with two or more
    some: np.ndarray  # that some category of a feature leaves
    every: np.ndarray  # that every category of it leaves


class Adversary(NamedTuple):
    """Room for the search for the worst cell of a neighbourhood, and what it found."""

    stack_low: np.ndarray  # (D, F), the first cells of the boxes that are still to be looked at
    stack_high: np.ndarray  # (D, F), the last ones
    bounds: np.ndarray  # (D,), on their scores from below
    masks: np.ndarray  # (M, W) uint64, of the box that is looked at
    leaf: np.ndarray  # (T,), its leaf of least value in each tree
    low: np.ndarray  # (F,), its first cells
    high: np.ndarray  # (F,), its last cells
    mid_low: np.ndarray  # (F,), the first cells that have all of these leaves
    mid_high: np.ndarray  # (F,), the last ones
    fresh: np.ndarray  # (1, W) uint64, one other mask
    worst_low: np.ndarray  # (F,), the first cells of the box that was found
    worst_high: np.ndarray  # (F,), the last ones
    counters: np.ndarray  # (4,), see ``neighbourhood.EXCUSED``


class Neighbourhood(NamedTuple):
    """The cells that each state touches, from ``first`` to ``last``, and the adversary that looks at them."""

    first: np.ndarray  # (S,), grows with the state
    last: np.ndarray  # (S,), grows with the state
    span_low: np.ndarray  # (M, L), the first cell of each leaf under each mask
    span_high: np.ndarray  # (M, L), the last one
    by_start: np.ndarray  # (F + 1,), the first entry of ``by`` of each feature
    by: np.ndarray  # (M,), the masks of each feature
    excused_low: np.ndarray  # (E, F), the first cells of boxes that the real model has found right
    excused_high: np.ndarray  # (E, F), the last ones
    tried: np.ndarray  # (F,), the features that have been pulled towards the factual
    adversary: Adversary


class Ball(NamedTuple):
    """A ball around a point of coordinates."""

    centre: np.ndarray  # (F,)
    closes: np.ndarray  # (cells,), the coordinate of the last value of each cell
    moved: np.ndarray  # (F,), 1 where the ball moves the feature
    square: float  # of its radius


class Growth(NamedTuple):
    """A box of wrong cells while it grows."""

    low: np.ndarray  # (F,), its first cells
    high: np.ndarray  # (F,), its last cells
    masks: np.ndarray  # (M, W) uint64, the leaves that it meets
    fresh: np.ndarray  # (M, W) uint64, those that the larger box would meet
    best: np.ndarray  # (T,), the value of each tree's best leaf on it
    trial: np.ndarray  # (T,), that on the larger box
    seen: np.ndarray  # (T,), the last step that looked at the tree
    changed: np.ndarray  # (T,), the masks that a step changes


class Numbers(NamedTuple):
    """The numbers of a space, and the costs of their changes: J numbers."""

    ends: np.ndarray  # the last decoded value of each cell but the last one, of all numbers
    ends_start: np.ndarray  # (J + 1,), where each number's begin
    unit: np.ndarray  # (J,), the length of a scaled unit
    integer: np.ndarray  # (J,) bool
    fixed: np.ndarray  # (J,), the cost of any change
    linear: np.ndarray  # (J,), a unit
    quadratic: np.ndarray  # (J,), a unit, squared


class Intervals(NamedTuple):
    """Where one factual's numbers may move, decoded, and where their states have to end."""

    value: np.ndarray  # (J,), the factual's
    low: np.ndarray  # (J,)
    high: np.ndarray  # (J,)
    cuts: np.ndarray  # the last values of states, beside the ends of cells
    cuts_start: np.ndarray  # (J + 1,), where each number's begin


class Laid(NamedTuple):
    """The states of one factual's numbers, each at its value nearest to the factual's."""

    cell: np.ndarray  # (states,), the grid's cell
    values: np.ndarray  # (states,), decoded
    cost: np.ndarray  # (states,)
    start: np.ndarray  # (J + 1,), where each number's begin
    factual: np.ndarray  # (J,), which state is the factual's


class Perturbed(NamedTuple):
    """One perturbed number of a factual, decoded."""

    value: float  # the factual's
    low: float  # the end of what it may move to
    high: float
    reach: float  # of its interval, on either side
    floor: float  # the interval is cut off below
    ceiling: float  # and above
    unit: float  # the length of a scaled unit
    integer: bool
    fixed: float  # the cost of any change
    linear: float  # a unit
    quadratic: float  # a unit, squared


class Touching(NamedTuple):
    """The states of one perturbed number."""

    first: np.ndarray  # (states,), the first cell that each touches
    last: np.ndarray  # (states,), the last one
    values: np.ndarray  # (states,), decoded
    cost: np.ndarray  # (states,)
    factual: int  # which one is the factual's


class Spans(NamedTuple):
    """Where the leaves of a grid lie, for ``additive``.

    What no cell meets spans nothing, and ends before it begins: what fills up a row, and a leaf of values that the
    space has not, as a scorecard's bin of missing ones. Such a leaf may stand before others.
    """

    low: np.ndarray  # (M, L), the first cell of each leaf under each mask
    high: np.ndarray  # (M, L), the last one
    categories: np.ndarray  # (M, L) uint64, the categories of each leaf where the mask's feature has no order
    leaves: np.ndarray  # (T,), after how many of each tree none meets a cell


class AdditiveRoom(NamedTuple):
    """What ``additive`` knows of a factual's states, and its room; of no size where it is not to look."""

    spans: Spans
    onwards: np.ndarray  # (cells,), the first state at a cell or beyond it
    upto: np.ndarray  # (cells,), the last state at a cell or before it
    gain: np.ndarray  # (S,)
    share: np.ndarray  # (L, most masks of a tree), in what a leaf gains
    at: np.ndarray  # (L, most masks of a tree) int64, the states through which its conditions are met
    leaf: np.ndarray  # (L,), which leaf a row of these is of
    steps: np.ndarray  # (L,), how many states away, in order
    rows: np.ndarray  # (L,), the rows in this order
    taken: np.ndarray  # (F,)
    begin: np.ndarray  # (F + 1,), where each feature's part of the two below begins
    costs: np.ndarray  # (S,), of the states that some price makes best, beyond the nearest point's
    gains: np.ndarray  # (S,), what they gain at most


def doubled(record: Any) -> Any:
    """The arrays of a named tuple with twice the room, after what they hold."""
    return record._make(np.concatenate([part, np.empty_like(part)]) for part in record)
