"""Compiled kernels of the search for regions within hulls: walls of one point, and lines above them in a box.

A *wall* is a box of cells on which the trees are proven wrong, a clause of ``ball_kernels``. Whether a point is robust
is a sum over features: with e_f the square of how far it is outside the wall in a feature that a ball moves, or, where
one feature alone has to leave the wall (a box of perturbations, a feature that none moves), rho² once it has left,

.. math:: \\textstyle\\sum_f e_f(x_f) \\ge \\rho^2.

A square is convex, a step too where it is taken linearly: over an interval both lie below a line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit, njit_no_refcount
from harness.core.tolerances import SCORE_TIE, STEP_WIDTH
from methods.cells.masks import ASK, DONE, MORE_LOOKS
from methods.cells.neighbourhood import STUCK, worst_in
from methods.cells.records import Ball, Box
from methods.robust.ball_kernels import LOOKED_AT, Duals, Point, learn

LEARNT = 100  # besides the codes of ``masks``


class Place(NamedTuple):
    """A point, and where it may move to: what a wall is grown for."""

    point: Point
    cells: np.ndarray  # (F,) int64, of the point itself
    box: Box  # coordinates
    duals: Duals  # none
    cube: bool  # perturbations are a box, not a ball


@njit(cache=True)
def look(grid, space, place, walls, counters, neighbourhood):
    """Ask the adversary about a point: ``DONE`` where all around it is right, else what is to be done.

    ``LEARNT``: a wall has been added; ``ASK``: the real model decides on the adversary's ``worst``.
    """
    enclose(space, place, neighbourhood)
    adversary = neighbourhood.adversary
    if place.cube:
        score = worst_in(grid, neighbourhood, None)
    else:
        score = worst_in(grid, neighbourhood, Ball(place.point.y, space.closes, space.moved, space.squares[LOOKED_AT]))
    if adversary.counters[STUCK]:
        return MORE_LOOKS
    if score > SCORE_TIE:
        return DONE
    if score >= -SCORE_TIE:
        return ASK
    learn(grid, space, place.box, place.point, place.duals, walls, counters, neighbourhood)
    return LEARNT


@njit_no_refcount
def enclose(space, place, neighbourhood):
    """Put the box of cells that perturbations of a point may meet first on the adversary's stack."""
    offset, closes, y, adversary = space.offset, space.closes, place.point.y, neighbourhood.adversary
    radius = np.sqrt(space.squares[LOOKED_AT])
    for f in range(len(y)):
        low = high = place.cells[f]
        if space.moved[f]:
            cells = offset[f + 1] - offset[f]
            low = 0
            while low < cells - 1 and closes[offset[f] + low] <= y[f] - radius:
                low += 1
            high = low
            while high < cells - 1 and closes[offset[f] + high] < y[f] + radius:
                high += 1
        adversary.stack_low[0, f], adversary.stack_high[0, f] = low, high


@njit(cache=True)
def cover(left, right, step, radius, low, high, slopes, ends):
    """Lines at or above e_f within [low_f, high_f], for one wall: writes slopes, and values at ``low`` into ``ends``.

    Parameters
    ----------
    left, right
        Where a feature leaves the wall, shape (F,), infinite where it cannot.
    step
        Whether e_f is a step from 0 to radius² there, not the square of what is beyond.
    """
    full = radius * radius
    for f in range(len(left)):
        slopes[f], ends[f] = 0.0, 0.0
        if step[f]:
            up, down = high[f] >= right[f], low[f] <= left[f]
            if low[f] >= right[f] - STEP_WIDTH or high[f] <= left[f] + STEP_WIDTH or (up and down):
                ends[f] = full
            elif up:
                slopes[f] = full / (right[f] - low[f])
            elif down:
                slopes[f] = full / (left[f] - high[f])
                ends[f] = slopes[f] * (low[f] - high[f])
            continue
        first, last = max(low[f], left[f] - radius), min(high[f], right[f] + radius)
        if last <= first:
            outer = max(left[f] - high[f], low[f] - right[f], 0.0)
            ends[f] = min(outer * outer, full)
            continue
        before = max(left[f] - first, first - right[f], 0.0) ** 2
        after = max(left[f] - last, last - right[f], 0.0) ** 2
        slopes[f] = (after - before) / (last - first)
        ends[f] = before - slopes[f] * (first - low[f])
