"""What the compiled kernels of the search within hulls take and give back: arrays by name.

Shapes: N numbers that move, d >= N columns of a point, P points, W of them in the working set, R rows beside those of
the hull, C columns of the program (see ``kernels``) before those of points, L leaves, T trees. Integers are int64 and
numbers float64 where nothing else is stated; scaled units are those of the features, values decoded.

A kernel that Python calls takes the plain ``tuple`` of a record, which numba recognises sooner, and gives the names
back in its first lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class HullPoints(NamedTuple):
    """The points of a hull, and those in the working set."""

    points: np.ndarray  # (d, P)
    corners: np.ndarray  # (2, d, blocks), least and greatest coordinates of each ``kernels.BLOCK`` of points
    work: np.ndarray  # (d, W), the points in the working set, as many as are used
    members: np.ndarray  # (W,), their numbers
    inside: np.ndarray  # (P,) bool, whether a point is among them


class Rows(NamedTuple):
    """The rows of the program, besides that of the shares."""

    origin: np.ndarray  # (d,), the factual, scaled: right-hand sides of the first d
    extra: np.ndarray  # (R, C - R), E: coefficients of the others, of ups and downs


class Columns(NamedTuple):
    """Costs and ends of the columns but those of points."""

    cost: np.ndarray  # (C,), of a unit
    square: np.ndarray  # (C,), of a unit of what is beyond ``start``, squared; of ups and downs alone
    start: np.ndarray  # (C,)
    low: np.ndarray  # (C,)
    high: np.ndarray  # (C,)


class Solution(NamedTuple):
    """What solving the program of a box has found."""

    status: int  # ``kernels.OPTIMAL``, ``INFEASIBLE``, ``BEYOND`` or ``STUCK``
    bound: float  # proven, of the cost besides the constant
    moves: np.ndarray  # (d,), in scaled units
    duals: np.ndarray  # (rows,), multipliers
    used: int  # size of the working set
    support: float  # greatest product of the duals with a point


class MovingNumbers(NamedTuple):
    """The numbers that move."""

    value: np.ndarray  # (N,), the factual's
    unit: np.ndarray  # (N,), the length of a scaled unit
    integer: np.ndarray  # (N,) bool


class Prices(NamedTuple):
    """What the changes of numbers cost."""

    fixed: np.ndarray  # (N,), of any change
    linear: np.ndarray  # (N,), of a scaled unit
    square: np.ndarray  # (N,), of a unit, squared
    weight: np.ndarray  # (N,), what a change adds where changes are counted


class LeafArrays(NamedTuple):
    """The leaves of a sum of trees that numbers can meet, by decoded values."""

    first: np.ndarray  # (L, N), least value of the leaf
    last: np.ndarray  # (L, N), greatest value
    before: np.ndarray  # (L, N), the value below the first
    after: np.ndarray  # (L, N), the value above the last
    value: np.ndarray  # (L,), what the leaf adds to the score
    start: np.ndarray  # (T + 1,), first leaf of each tree
    base: float  # of the score
