"""Undo changes of a valid point that are not needed."""

from __future__ import annotations

import numpy as np

from harness.core.method import Deadline
from methods.md_pso.actions import Actions
from methods.md_pso.swarm import Swarms, distinct

UNDONE = 120  # valid points of each swarm whose changes are undone
SHUFFLED = 7  # random orders in which changes are undone, beside the smallest first
HALVED = 30  # best of the results, whose other changes are halved
HALVINGS = 8  # of each change


def _spread(places: np.ndarray) -> np.ndarray:
    """At most ``UNDONE`` of some places, the first among them: the best points lie together, and pull back to one."""
    return places[np.unique(np.linspace(0, len(places) - 1, min(UNDONE, len(places))).astype(int))]


def pull_back(
    swarms: Swarms, points: np.ndarray, owner: np.ndarray, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray]:
    """Valid points with fewer and smaller changes than some valid points, each swarm's best first; and their owners.

    Changes are undone from up to ``UNDONE`` points of each swarm, the smallest first and in ``SHUFFLED`` random orders,
    and those of its best ``HALVED`` results halved. One call of the model judges the points of all swarms.
    """
    actions, places = swarms.actions, range(swarms.shape[0])
    chosen = [_spread(np.flatnonzero(owner == place)) for place in places]
    points, owner = points[np.concatenate(chosen)], owner[np.concatenate(chosen)]
    gaps = actions.displacement(points, owner)
    drawn = [rng.random((SHUFFLED, len(mine), gaps.shape[1])) for rng, mine in zip(swarms.rngs, chosen, strict=True)]
    turns = np.argsort(np.stack([gaps, *np.concatenate(drawn, axis=1)]), axis=2, kind="stable")
    points, owner = np.concatenate([points] * len(turns)), np.concatenate([owner] * len(turns))
    points = undo(actions, points, owner, np.concatenate(turns), deadline)
    cost = swarms.merit(points, owner)
    order = np.argsort(cost, kind="stable")
    best = np.concatenate([distinct(points, order[owner[order] == place], HALVED) for place in places])
    return halve(actions, points[best], owner[best], deadline), owner[best]


def undo(actions: Actions, points: np.ndarray, owner: np.ndarray, turns: np.ndarray, deadline: Deadline) -> np.ndarray:
    """Valid points whose features are put back in turn, where the point stays valid.

    Snapped, one a point given, shape (points, columns); ``turns``: each point's features in order, (points, features).
    """
    points, rows, origin = points.copy(), np.arange(len(points)), actions.origin[owner]
    gaps = actions.displacement(points, owner)
    for feature in turns.T:
        if deadline.passed:
            return points
        tried = np.where(actions.owned[feature], origin, points)
        _replace(points, tried, gaps[rows, feature] > 0, actions, owner)
    return points


def halve(actions: Actions, points: np.ndarray, owner: np.ndarray, deadline: Deadline) -> np.ndarray:
    """Valid points whose numbers are halved several times, towards the factual while valid and away from it while not.

    The largest change first; snapped, one a point given, shape (points, columns).
    """
    points, rows, origin = points.copy(), np.arange(len(points)), actions.origin[owner]
    gaps = actions.displacement(points, owner)
    for feature in np.argsort(-gaps, axis=1, kind="stable").T:
        moved = (gaps[rows, feature] > 0) & actions.halved[feature]
        if deadline.passed or not (gaps[rows, feature] > 0).any():
            return points
        mask = actions.owned[feature] & moved[:, None]
        near, far = origin.copy(), points.copy()
        for _ in range(HALVINGS):
            middle = actions.snap(np.where(mask, (near + far) / 2, points), owner)
            ok = _replace(points, middle, moved & (middle != points).any(axis=1), actions, owner)
            near = np.where(mask & ~ok[:, None], middle, near)
            far = np.where(mask, points, far)
    return points


def _replace(
    points: np.ndarray, tried: np.ndarray, which: np.ndarray, actions: Actions, owner: np.ndarray
) -> np.ndarray:
    """Overwrite points by tried rows where these are valid; returns which were, bool, shape (points,)."""
    ok = np.zeros(len(points), dtype=bool)
    if which.any():
        ok[which] = actions.judge(tried[which], owner[which])[0]
    points[ok] = tried[ok]
    return ok
