"""The worst point of a box in a network of ReLUs, by a mixed-integer program of its own (SciPy's solver)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from harness.core.tolerances import SCORE_SOLVED
from harness.evaluation.region_box import Box, every
from harness.solvers.silence import silent

NODES = 5_000  # of branch and bound


def valid(box: Box, margins: Sequence[tuple[np.ndarray, float]]) -> bool | None:
    """Whether each margin is positive in all of a box; None for other activations, and where ``NODES`` do not do."""
    estimator = box.classifier.estimator
    hidden = len(estimator.coefs_) > 1
    if (hidden and estimator.activation != "relu") or estimator.out_activation_ == "exp":
        return None
    return every(_worst(box, weights, constant) for weights, constant in margins)


def _worst(box: Box, weights: np.ndarray, constant: float) -> bool | None:
    r"""The least margin over :math:`u \in [0, 1]^k`, the place in the box, by the program

    .. math:: v \ge a, \quad v \ge 0, \quad v \le a - L(1 - z), \quad v \le U z, \quad z \in \{0, 1\}

    for each unit :math:`v = \max(0, a)` with :math:`L < 0 < U`, its least and greatest sum in the box.
    """
    estimator, ends = box.classifier.estimator, np.array(list(box.ends.values()))
    at = box.classifier.matrix(box.frame(np.vstack([ends[:, 0], np.diag(ends[:, 1] - ends[:, 0]) + ends[:, 0]])))
    count = len(ends) + 2 * sum(len(shift) for shift in estimator.intercepts_[:-1])
    form, shift = np.zeros((at.shape[1], count)), at[0]
    form[:, : len(ends)] = (at[1:] - at[0]).T
    low, high = shift + np.minimum(form, 0).sum(axis=1), shift + np.maximum(form, 0).sum(axis=1)
    rows: list[np.ndarray] = []
    least: list[float] = []
    integral, top, used = np.zeros(count), np.ones(count), len(ends)
    for layer, (matrix, intercept) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        up, down = np.maximum(matrix.T, 0), np.minimum(matrix.T, 0)
        low, high = up @ low + down @ high + intercept, up @ high + down @ low + intercept
        form, shift = matrix.T @ form, matrix.T @ shift + intercept
        if layer == len(estimator.coefs_) - 1:
            break
        for unit in range(len(shift)):
            if low[unit] >= 0:
                continue
            sums, own = form[unit].copy(), float(shift[unit])
            form[unit], shift[unit] = 0.0, 0.0
            if high[unit] <= 0:
                continue
            v, z = np.zeros(count), np.zeros(count)
            v[used], z[used + 1], integral[used + 1], top[used] = 1.0, 1.0, 1.0, high[unit]
            rows += [v - sums, sums - v - low[unit] * -z, high[unit] * z - v]
            least += [own, low[unit] - own, 0.0]
            form[unit] = v
            used += 2
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    size = float(np.abs(weights) @ np.maximum(np.abs(low), np.abs(high))) + abs(constant)
    with silent():  # HiGHS prints past its options
        found = milp(
            weights @ form,
            integrality=integral,
            bounds=Bounds(0.0, top),
            constraints=LinearConstraint(np.array(rows), lb=np.array(least)) if rows else (),
            options={"node_limit": NODES, "mip_rel_gap": 0.0},
        )
    if found.x is not None and box.invalid((ends[:, 0] + found.x[: len(ends)] * (ends[:, 1] - ends[:, 0]))[None]):
        return False
    bound = found.mip_dual_bound if integral.any() else found.fun
    if bound is None or found.x is None:
        return None
    return True if bound + float(weights @ shift) + constant >= -SCORE_SOLVED * max(1.0, size) else None
