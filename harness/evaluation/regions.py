"""Whether everything in an answer's region is valid, by other algorithms than the certificate that methods use.

No code is shared with ``harness.certificate``: linear models are asked at the worst corner of the box, of sums of trees
all combinations of leaves that meet it are searched depth first, and of ReLU networks a mixed-integer program looks for
the worst point.
An invalid point is one that the estimator itself refuses, so that no error in here can break a region. What no
algorithm settles within its limit is ``not checked``, never taken for proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.space import Actionability, Space
from harness.core.target import Classes, Target
from harness.core.tolerances import DECODING
from harness.core.wording import BROKEN, HOLDS, UNCHECKED
from harness.evaluation import region_network, region_trees
from harness.evaluation.region_box import Box
from harness.evaluation.weights import margins

DRAWS = 512  # points of any region that are asked about first, whatever the model


def verdict(
    space: Space,
    classifier: Classifier,
    target: Target,
    row: Mapping[str, Any],
    region: Mapping[str, Sequence[float]],
    claimed: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """``holds``: every point of a region, a box around a decoded row in original units, is valid; ``broken``: an
    invalid one was met, the row is not in it, or it is less than was claimed; ``not checked``: neither was shown.

    Ends may be off by ``DECODING`` of a feature's range, as decoding is.

    Parameters
    ----------
    claimed
        The perturbations that a method says it withstands: ``rho``, ``norm``, ``unperturbed``, ``clip``. Of a ball the
        region is the box in it; of the ball itself invalid points are looked for, and none is proven not to be.
    """
    numbers = {feature.name for feature in space.features if feature.numeric}
    if not (region.keys() <= numbers and all(isinstance(end, Real) for pair in region.values() for end in pair)):
        return BROKEN
    if any(not low <= row[name] <= high for name, (low, high) in region.items()):
        return BROKEN
    if claimed and not (_as_wide(space, row, region, claimed) and _ball(space, classifier, target, row, claimed)):
        return BROKEN
    ends: dict[str, tuple[float, float]] = {}
    for name, (first, last) in region.items():
        slack = DECODING * space[name].range
        if last - first > 2 * slack:
            ends[name] = min(first + slack, float(row[name])), max(last - slack, float(row[name]))
    box = Box(space, classifier, target, row, ends)
    low, high = np.array(list(ends.values())).reshape(-1, 2).T
    draws = np.random.default_rng(0).random((DRAWS, len(ends)))
    draws[DRAWS // 2 :] = draws[DRAWS // 2 :].round()  # corners
    own = np.array([[float(row[name]) for name in ends]])
    if box.invalid(np.vstack([own, low + draws * (high - low)])):
        return BROKEN
    if not ends:
        return HOLDS
    plain = all(isinstance(source, Affine) for source in classifier.inputs if source.feature in ends)
    if classifier.opaque is not None or not plain:
        return UNCHECKED
    try:
        forms = margins(classifier, target)
    except UnsupportedError:
        return UNCHECKED
    worst = _settled(box, forms)
    return UNCHECKED if worst is None else HOLDS if worst else BROKEN


def _reach(
    space: Space, row: Mapping[str, Any], claimed: Mapping[str, Any], share: float
) -> dict[str, tuple[float, float]]:
    """By feature that is perturbed, the ends of what a share of the radius leads to."""
    found = {}
    for feature in space.features:
        fixed = feature.actionability is Actionability.IMMUTABLE or feature.name in claimed.get("unperturbed", ())
        if feature.numeric and not fixed:
            value, room = float(row[feature.name]), share * claimed["rho"] * feature.range
            low, high = value - room, value + room
            if claimed.get("clip"):
                low, high = max(low, min(feature.bounds[0], value)), min(high, max(feature.bounds[1], value))
            found[feature.name] = low, high
    return found


def _as_wide(
    space: Space, row: Mapping[str, Any], region: Mapping[str, Sequence[float]], claimed: Mapping[str, Any]
) -> bool:
    """Whether a region is as wide as the radius that is claimed, or as the box in its ball."""
    count = len(_reach(space, row, claimed, 1.0))
    needed = _reach(space, row, claimed, 1.0 if claimed["norm"] == "linf" else 1.0 / math.sqrt(max(count, 1)))
    for name, (low, high) in needed.items():
        first, last = region.get(name, (row[name], row[name]))
        slack = DECODING * space[name].range
        if first > low + slack or last < high - slack:
            return False
    return True


LARGE = 1e6  # a raw output


def _ball(
    space: Space, classifier: Classifier, target: Target, row: Mapping[str, Any], claimed: Mapping[str, Any]
) -> bool:
    """Whether no invalid point is met on the surface of a ball that is claimed: at random, along axes and slopes."""
    ends = _reach(space, row, claimed, 1.0)
    if claimed["norm"] != "l2" or not ends:
        return True
    box = Box(space, classifier, target, row, ends)
    own = np.array([float(row[name]) for name in ends])
    room = np.array([claimed["rho"] * space[name].range for name in ends])
    axes = np.vstack([np.eye(len(own)), -np.eye(len(own))])
    ways = np.vstack([axes, np.random.default_rng(0).normal(size=(DRAWS, len(own)))])
    if classifier.opaque is None:
        raw = np.asarray(classifier.raw(box.frame(own + axes * room)), dtype=float).reshape(len(axes), -1)
        raw = np.clip(raw, -LARGE, LARGE)  # of a probability that is 1 it is infinite
        slopes = (raw[: len(own)] - raw[len(own) :]).T
        ways = np.vstack([ways, slopes, -slopes])
    lengths = np.linalg.norm(ways, axis=1, keepdims=True)
    within = max(0.0, 1.0 - DECODING / claimed["rho"]) if claimed["rho"] else 0.0  # as far as a box may be off
    return not box.invalid(own + within * room * (ways / np.where(lengths > 0, lengths, 1.0)))


def _settled(box: Box, forms: Sequence[tuple[np.ndarray, float]]) -> bool | None:
    """Whether no margin is violated in a box, by the family of the model; None where that is not known."""
    estimator = box.classifier.estimator
    if isinstance(box.target, Classes) and (hasattr(estimator, "coefs_") or hasattr(estimator, "coef_")):
        return None
    if hasattr(estimator, "coefs_"):
        return region_network.valid(box, forms)
    if hasattr(estimator, "coef_"):
        corners = [_corner(box, weights) for weights, _ in forms]
        return not box.invalid(np.array(corners))
    return region_trees.valid(box, forms)


def _corner(box: Box, weights: np.ndarray) -> list[float]:
    """The corner at which a form of the outputs of a model that is monotone in each number is least."""
    ends = np.array(list(box.ends.values()))
    points = np.repeat(ends.mean(axis=1)[None], 2 * len(ends), axis=0)
    for place in range(len(ends)):
        points[2 * place : 2 * place + 2, place] = ends[place]
    raw = np.asarray(box.classifier.raw(box.frame(points)), dtype=float).reshape(len(points), -1) @ weights
    return [float(end[int(raw[2 * place + 1] < raw[2 * place])]) for place, end in enumerate(ends)]
