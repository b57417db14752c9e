"""What the compiled kernels of the search over a scorecard's moves take: arrays by name.

Shapes: F features, S options of all features, Q forms, M = most features that change, K room for choices, n choices of
a set. Integers are int64 and numbers float64 where nothing else is stated. Choices, forms and parts are described in
``kernels``.

A kernel that Python calls takes the plain ``tuple`` of a record, which numba recognises sooner, and gives the names
back in its first lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class MoveArrays(NamedTuple):
    """The moves of a factual, and where it is."""

    start: np.ndarray  # (F + 1,), the first option of each feature
    delta: np.ndarray  # (S,), by how much the feature's value changes
    gain: np.ndarray  # (S,), by how much the score does
    near: np.ndarray  # (S,), proximity
    factor: np.ndarray  # (F, F), L of the closeness, lower triangular
    deviation: np.ndarray  # (F,), L'(x - mu) of the factual
    score: float  # the factual's


class Limits(NamedTuple):
    """What a choice has to keep to."""

    low: float  # ends of the score
    high: float
    most: int  # features that may change
    link: int  # the outcome as a function of the score: ``kernels.NO_OUTCOME``, ``LOGISTIC`` or ``LINEAR``
    target: float  # the outcome that is wished for


class Plan(NamedTuple):
    """In which order a search tries moves."""

    sequence: np.ndarray  # (F,), features
    order: np.ndarray  # (S,), options of each feature, the cheapest first, from its ``start`` on


class Forms(NamedTuple):
    """What is minimised, and what is capped."""

    weights: np.ndarray  # (Q, 4), of the parts
    caps: np.ndarray  # (Q,), the first one of what is minimised


class Bounds(NamedTuple):
    """The Lagrangian bound of each form on what a search has still to come to."""

    base: np.ndarray  # (Q,)
    reduced: np.ndarray  # (Q, S), cost of each option
    tail: np.ndarray  # (Q, F + 1, M + 1), of at most so many options of features from a place of the sequence on
    reach: np.ndarray  # (2, F + 1, M + 1), their least and greatest gain in score


class Path(NamedTuple):
    """Where a search over choices is, by depth: up to M + 1 depths."""

    state: np.ndarray  # (2,), the depth, and how many choices are kept
    place: np.ndarray  # (depths,), the next feature
    turn: np.ndarray  # (depths,), its next option
    scores: np.ndarray  # (depths,)
    closest: np.ndarray  # (depths, F), L'(x - mu)
    near: np.ndarray  # (depths,), proximity
    bounds: np.ndarray  # (depths, Q), of the options taken
    chosen: np.ndarray  # (M,), the options taken


class Kept(NamedTuple):
    """The cheapest choices found, a heap with the costliest on top."""

    values: np.ndarray  # (K,), cost
    picks: np.ndarray  # (K, M), options, -1 for none
    parts: np.ndarray  # (K, 4)


class Choices(NamedTuple):
    """Choices that a set may be made of, by cost."""

    costs: np.ndarray  # (choices, Q), ascending by the first form
    features: np.ndarray  # (choices, words) uint64, the features that each changes, as bits
    options: np.ndarray  # (choices, words) uint64, its options


class SetRules(NamedTuple):
    """What a set of choices has to keep to."""

    caps: np.ndarray  # (Q,), what it may cost; the first falls with what is found
    floors: np.ndarray  # (Q,), the least that one choice can cost
    separated: np.ndarray  # (2,) bool, whether features, and options, of two choices differ: as sets; in every element
    penalty: np.ndarray  # (Q, 2), what each feature, and each option, that two choices share adds


class SetPath(NamedTuple):
    """Where a search over sets is, by depth, and what it has found."""

    state: np.ndarray  # (1,), the depth
    place: np.ndarray  # (n,), the next choice to try
    sums: np.ndarray  # (n, Q), what the set costs so far
    best: np.ndarray  # (n,), the choices of the cheapest set found, -1 without one


class Ladders(NamedTuple):
    """The moves of a factual by the rungs that each feature may stand on, P in all, ascending in its value."""

    level: np.ndarray  # (P,), by how much the value changes; 0 where the feature stays
    home: np.ndarray  # (F,), the rung of staying
    dear: np.ndarray  # (F,), proximity of a unit of change
    steep: np.ndarray  # (F,), score of a unit of change
    factor: np.ndarray  # (F, F), L of the closeness, lower triangular
    deviation: np.ndarray  # (F,), L'(x - mu) of the factual
    score: float  # the factual's


class Node(NamedTuple):
    """What is left to each feature, and what is known of that."""

    low: np.ndarray  # (F,), its first rung
    high: np.ndarray  # (F,), its last one
    least: np.ndarray  # (F,), its least cost within a bound
    pull: np.ndarray  # (F,), cost of a unit of change within it


class Tableau(NamedTuple):
    """A vertex of a node's program: columns of features' moves up and down, C; rows of residuals and the score, R.

    Variables are numbered: columns first, then rows. Basic ones are sums of the others by the table, up to constants.
    """

    table: np.ndarray  # (C, R)
    basic: np.ndarray  # (R,), the variable of each row
    other: np.ndarray  # (C,), that of each column
    x: np.ndarray  # (C + R,), values
    below: np.ndarray  # (C + R,), where the slope of a variable's cost changes
    above: np.ndarray  # (C + R,), and does so again
    slope: np.ndarray  # (C + R, 3), before, between and after
    feature: np.ndarray  # (C,), the one that a column moves
    sign: np.ndarray  # (C,), 1 up, -1 down
    wall: float  # what a unit beyond a column's ends costs


class Agenda(NamedTuple):
    """Nodes that a branch and bound has still to look at, the next one last."""

    state: np.ndarray  # (3,), how many nodes, how many choices are kept, pivots since the table was made (-1: no table)
    low: np.ndarray  # (nodes, F)
    high: np.ndarray  # (nodes, F)
    bound: np.ndarray  # (nodes,), on what they cost
    price: np.ndarray  # (nodes,), of a move, with which their programs begin
