"""How far a point is from the convex hull of others, over all of them at once."""

from __future__ import annotations

import numpy as np

PULL = 1e4  # weight of "the shares sum to 1" in the least-squares problem; the shares are normalised afterwards


def distance(points: np.ndarray, x: np.ndarray, norm: float = 1) -> float:
    r"""The least :math:`\|s\|_p` with x + s in the convex hull of points; infinite where there are none.

    Parameters
    ----------
    points
        Shape (points, columns).
    x
        Shape (columns,).
    norm
        p: 1, 2 or inf. For 2 the value is that of a point of the hull found by non-negative least squares: never too
        small, and too large by the rounding of that search only.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> [round(distance(corners, np.array([1.0, 1.0]), p), 6) for p in (1, 2, np.inf)]
    [1.0, 0.707107, 0.5]
    """
    if not len(points):
        return float(np.inf)  # there is no hull
    from scipy.optimize import linprog, nnls  # slow: 0.4 s, and workers start without

    moved = points - x
    count, size = moved.shape
    if norm == 2:
        shares = nnls(np.vstack([moved.T, np.full(count, PULL)]), np.append(np.zeros(size), PULL))[0]
        return float(np.linalg.norm(shares @ moved / shares.sum()))
    if norm not in {1, np.inf}:
        raise ValueError(f"norm is {norm}; allowed: 1, 2, inf.")
    # Variables: shares of the points, and how far each column (or any column) is off, either way.
    many = size if norm == 1 else 1
    off = np.eye(size) if norm == 1 else np.ones((size, 1))
    cost = np.append(np.zeros(count), np.ones(many))
    sides = np.vstack([np.hstack([moved.T, -off]), np.hstack([-moved.T, -off])])
    total = np.append(np.ones(count), np.zeros(many))[None, :]
    found = linprog(cost, A_ub=sides, b_ub=np.zeros(2 * size), A_eq=total, b_eq=[1.0], method="highs")
    if found.x is None:
        raise ArithmeticError(f"the distance from the hull was not found: {found.message}")
    return float(found.fun)
