"""What the compiled kernels of the search for groups take: arrays by name.

Shapes: n instances, d features, L leaves, T trees. Integers are int64 and numbers float64 where nothing else is stated.
Codes are places of a feature's levels; a set of codes is a uint64 with their bits, one of features or instances several
such words, least significant bit first.

A kernel that Python calls takes the plain ``tuple`` of a record, which numba recognises sooner, and gives the names
back in its first lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CodedArrays(NamedTuple):
    """A classifier over codes; its score is signed so that a larger one is wanted."""

    kind: int  # ``kernels.LINEAR``, ``NETWORK`` or ``TREES``; the others' arrays are not read
    threshold: float  # the least score of a counterfactual
    table: np.ndarray  # (d, 64), the effect of each code: exact of a linear model, a mean of others
    base: float  # is added to the effects, or to the leaves' values
    first: np.ndarray  # (d, 64, units), a network's first-layer weights, by code
    shift: np.ndarray  # (units,), what is added to them
    weights: np.ndarray  # those of later layers, flat
    shifts: np.ndarray  # theirs, flat
    widths: np.ndarray  # (layers,), inputs of the second layer, of the third ..., and 1
    masks: np.ndarray  # (L, d) uint64, the codes that each leaf admits
    values: np.ndarray  # (L,), of the leaves
    start: np.ndarray  # (T + 1,), the first leaf of each tree


class Profiles(NamedTuple):
    """The instances, and what a point that serves some of them may change."""

    codes: np.ndarray  # (n, d)
    reach: np.ndarray  # (n, d) uint64, the codes that each may change to, its own included
    movable: np.ndarray  # (d,) bool
    most: int  # T, features that a group may change together
    free: bool  # whether movable features may take any code, so that no member narrows the codes of a group


class Room(NamedTuple):
    """The points that leave ``x`` on the features in ``changed`` and on at most ``extras`` others."""

    x: np.ndarray  # (d,), codes
    changed: np.ndarray  # (words,) uint64
    allowed: np.ndarray  # (d,) uint64, the codes that a feature may change to
    movable: np.ndarray  # (d,) bool, the others that may change
    extras: int


class Listing(NamedTuple):
    """Which groups are looked for."""

    least: float  # groups of a lesser weight do not count
    every: bool  # all maximal groups of the weight, each once; else for each anchor one of the greatest weight above
    room: int  # groups after which to stop
    limit: int  # nodes after which to stop, those of the searches for points among them


class Incidence(NamedTuple):
    """Which of C columns cover which of R rows."""

    rows: np.ndarray  # those of each column
    row_start: np.ndarray  # (C + 1,), where each column's begin
    columns: np.ndarray  # those of each row
    column_start: np.ndarray  # (R + 1,), where each row's begin


class Cover(NamedTuple):
    """A set of columns while the local search changes it."""

    inside: np.ndarray  # (C,) bool
    covered: np.ndarray  # (R,), how many columns inside cover each row
    weight: np.ndarray  # (R,)
    gain: np.ndarray  # (C,), weight of the rows that a column outside would cover alone
    loss: np.ndarray  # (C,), weight of those that one inside covers alone


class Worth(NamedTuple):
    """What serving instances earns, and what their changes cost."""

    price: np.ndarray  # (n,), of serving each
    people: np.ndarray  # (n,), factuals of each
    alone: np.ndarray  # (n,), the fewest features that each changes, or fewer


class Aim(NamedTuple):
    """Which points are looked for."""

    least: float  # profits from which on a point counts
    every: bool  # all points of such profit; else one of the greatest for each anchor
    room: int  # points after which to stop
    limit: int  # nodes of one anchor after which to leave it


class Frame(NamedTuple):
    """The nodes from the root of the search for points to where it is, by depth: D depths."""

    who: np.ndarray  # (D, n), instances that can still be served beside the anchor
    paid: np.ndarray  # (D, n), features that each of them changes already
    open: np.ndarray  # (D, n), undecided features in which it differs from the anchor
    size: np.ndarray  # (D,), how many they are
    used: np.ndarray  # (D,), features that the group changes together
    own: np.ndarray  # (D,), features that the anchor changes
    turn: np.ndarray  # (D,), branches tried
    rest: np.ndarray  # (D,) uint64, codes of the depth's feature that are not tried yet
    options: np.ndarray  # (d,) uint64, codes of each feature at the node where it is
    nothing: np.ndarray  # (words,) uint64, no features
