"""Layers of networks: balanced, they are the same network."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from harness.solvers.scaling import balanced, balanced_by_powers


def outputs(layers: list[tuple[np.ndarray, np.ndarray]], rows: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The outputs, and the hidden units' values by layer."""
    hidden = []
    for weights, shifts in layers[:-1]:
        rows = np.maximum(rows @ weights + shifts, 0.0)
        hidden.append(rows)
    return rows @ layers[-1][0] + layers[-1][1], hidden


@pytest.mark.parametrize("seed", range(10))
def test_balanced_layers_are_the_same_network(seed: int) -> None:
    """Weights of sizes 1e-9 to 1e9: the same outputs to the last bit, the same units at work."""
    rng = np.random.default_rng(seed)
    sizes = [4, 7, 5, 2]
    layers = [
        (rng.normal(size=(a, b)) * 10.0 ** rng.uniform(-9, 9, size=b), rng.normal(size=b)) for a, b in pairwise(sizes)
    ]
    layers[0][0][:, 0], layers[0][1][0] = 0.0, 0.0
    layers[1][0][:, 1], layers[1][1][1] = 1e-310, -0.0
    far = 10.0 ** rng.uniform(-3, 9, size=4)
    *dense, (outgoing, constants) = layers
    units, divided = balanced_by_powers([(weights.T, shifts) for weights, shifts in dense], far)
    made = [*((weights.T, shifts) for weights, shifts in units), (outgoing * divided[:, None], constants)]
    for (weights, shifts), reach in zip(made[:-1], (far, np.ones(7)), strict=True):
        greatest = np.maximum((np.abs(weights) * reach[:, None]).max(axis=0), np.abs(shifts))
        assert ((greatest >= 1) & (greatest < 2) | (greatest < 1e-200)).all()
    rows = rng.normal(size=(50, 4)) * far
    (expected, hidden), (found, balanced_hidden) = outputs(layers, rows), outputs(made, rows)
    np.testing.assert_array_equal(found, expected)
    for before, after in zip(hidden, balanced_hidden, strict=True):
        np.testing.assert_array_equal(after > 0, before > 0)


def test_a_dead_unit_stays_finite() -> None:
    """Training leaves weights of 1e-310 and a shift of .1: a unit that nothing moves is divided by its shift."""
    layers = [(np.array([[1e-310, 0.0], [2.0, -4.0]]), np.array([0.1, 1.0]))]
    made, last, constant = balanced(layers, np.array([3.0, 1.0]), -1.0)
    (weights, shifts) = made[0]
    assert np.isfinite([*weights.ravel(), *shifts, *last, constant]).all()
    np.testing.assert_allclose(shifts, [1.0, 0.25])
