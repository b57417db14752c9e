"""Both exact adversaries against each other and samples; what the program of a node keeps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier
from support.networks import random_network

from harness.certificate import network_kernels as checker
from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from methods.robust import network_kernels as searched
from methods.robust.network import Network, _Search
from methods.robust.settings import Settings

RADIUS, ENOUGH = 0.7, 100_000


class Net(NamedTuple):
    """A network of two numbers, without its constant."""

    weights: np.ndarray
    shifts: np.ndarray
    sizes: np.ndarray
    last: np.ndarray

    def at(self, points: np.ndarray) -> np.ndarray:
        """Its values, shape (points,)."""
        values = points
        for k, (before, units) in enumerate(itertools.pairwise(self.sizes)):
            values = np.maximum(values @ self.weights[k, :units, :before].T + self.shifts[k, :units], 0.0)
        return np.asarray(values @ self.last)


def net_of(seed: int, hidden: tuple[int, ...], convex: bool = False) -> Net:
    rng = np.random.default_rng(seed)
    sizes = np.array([2, *hidden])
    weights = rng.normal(size=(len(hidden), max(hidden), max(sizes[:-1])))
    shifts, last = rng.normal(scale=0.4, size=weights.shape[:2]), rng.normal(size=hidden[-1])
    return Net(weights, shifts + 0.6 * convex, sizes, np.abs(last) if convex else last)


def by_search(net: Net, constant: float, euclidean: bool, boxes: int) -> tuple[int, np.ndarray]:
    """What the search's adversary says of the origin, and its perturbation."""
    layers = tuple(searched.Layers(*net, constant))
    stack, move = np.zeros((int(net.sizes[1:].sum()) + 2, *net.shifts.shape), np.int8), np.zeros(2)
    ball = tuple(searched.Ball(RADIUS, euclidean, np.ones(2, np.bool_)))
    return searched.worst(layers, ball, stack, np.ones(1, np.int64), np.zeros(2), 0.0, boxes, move), move


def by_checker(net: Net, constant: float, euclidean: bool, boxes: int) -> tuple[int, np.ndarray]:
    """What the checker's adversary says of it."""
    layers, ends = tuple(checker.Layers(*net, constant)), np.full(2, RADIUS)
    stack, move = np.zeros((int(net.sizes[1:].sum()) + 2, *net.shifts.shape), np.int8), np.zeros(2)
    region = tuple(checker.Region(-ends, ends, RADIUS, euclidean))
    return checker.attack(layers, region, stack, np.ones(1, np.int64), boxes, move), move


Adversary = Callable[[Net, float, bool, int], tuple[int, np.ndarray]]


def length(move: np.ndarray, euclidean: bool) -> float:
    return float(np.linalg.norm(move, 2 if euclidean else math.inf))


def least(net: Net, euclidean: bool, adversary: Adversary) -> float:
    """The least value in the ball, as the constant from which on all margins are proven says."""
    low, high = -20.0, 20.0
    for _ in range(30):
        constant = (low + high) / 2
        code, move = adversary(net, constant, euclidean, ENOUGH)
        assert code != searched.MORE
        if code == searched.PROVEN:
            high = constant
            continue
        low = constant  # also where rounding leaves it open, at the very threshold
        assert code == searched.OPEN or length(move, euclidean) <= RADIUS + 1e-9
        assert code == searched.OPEN or net.at(move[None])[0] + constant <= 1e-9
    return -high


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("hidden", [(6,), (4, 4)])
def test_both_adversaries_find_the_least_margin(hidden: tuple[int, ...], euclidean: bool) -> None:
    """To a millionth of each other, and at most what any of many samples has, by no more than they lie apart."""
    axis = np.linspace(-RADIUS, RADIUS, 401)
    points = np.array(list(itertools.product(axis, axis)))
    if euclidean:
        points = points[np.linalg.norm(points, axis=1) <= RADIUS]
    for seed in range(8):
        net = net_of(seed, hidden)
        found = least(net, euclidean, by_search)
        assert found == pytest.approx(least(net, euclidean, by_checker), abs=1e-6)
        sampled = net.at(points).min()
        assert found <= sampled + 1e-9
        assert found == pytest.approx(sampled, abs=0.05)


@pytest.mark.parametrize("adversary", [by_search, by_checker])
def test_a_convex_margin_over_a_ball_takes_one_box(adversary: Adversary) -> None:
    """Where all units push one way, the bound is the least margin, but for .01, where that lies on the sphere."""
    proven = 0
    for seed in range(60):
        net = net_of(seed, (6,), convex=True)
        angles = np.linspace(0.0, 2 * math.pi, 20001)
        around = net.at(RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])).min()
        if around > least(net, True, adversary) + 1e-6:
            continue
        assert adversary(net, 0.01 - around, True, 1)[0] == searched.PROVEN
        proven += 1
    assert proven >= 10


@pytest.mark.parametrize("adversary", [by_search, by_checker])
def test_a_convex_margin_over_a_cube_takes_one_box(adversary: Adversary) -> None:
    """Its planes tell the least margin, but for .01, wherever that lies."""
    for seed in range(20):
        net = net_of(seed, (6,), convex=True)
        assert adversary(net, 0.01 - least(net, False, adversary), False, 1)[0] == searched.PROVEN


def test_a_decided_later_unit_keeps_to_its_side() -> None:
    """Of max(0, x - .5) + max(0, x - .3) >= .36 in two layers: nothing is left where the first unit is off, x <= .5."""
    space = Space((Feature("x", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 1.0)),))
    rows = space.frame([{"x": 0.0}, {"x": 1.0}])
    estimator = MLPClassifier((1, 2), max_iter=1, random_state=0)
    random_network(estimator, rows.to_numpy(), [0, 1], np.random.default_rng(0))
    weights = ([[1.0]], [[1.0, 1.0]], [[1.0], [1.0]])
    shifts = ([0.0], [-0.5, -0.3], [-0.36])
    for of_layer, values in zip([*estimator.coefs_, *estimator.intercepts_], [*weights, *shifts], strict=True):
        of_layer[...] = values
    judge = Classifier(estimator, space_inputs(space), ("no", "yes"))
    problem = Problem(space, judge, rows, np.empty(2, dtype=object), Label("yes"))
    search = _Search(Network(problem, Settings(rho=0.0)), {"x": 0.0}, Deadline.after(60.0))
    within = search.slice((), 0)
    for side, empty in ((0, False), (1, False), (-1, True)):
        root = search.root(within)
        root.phases = {(0, 1, 0): side}
        assert (search._look(root).code == searched.EMPTY) == empty


def test_bounds_that_a_node_inherits_leave_nothing_open() -> None:
    """A relaxed solution outside of bounds that rows of the nodes above gave: it ended there, at a bound of .62."""
    space = Space(tuple(Feature(f"x{j}", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 1.0)) for j in range(8)))
    rng = np.random.default_rng(18)
    points = rng.random((60, 8))
    estimator = random_network(MLPClassifier((8, 8, 8), max_iter=1, random_state=0), points, np.arange(60) % 2, rng)
    rows = space.frame([dict(zip(space.names, point, strict=True)) for point in points.tolist()])
    judge = Classifier(estimator, space_inputs(space), ("no", "yes"))
    estimator.intercepts_[-1] -= np.quantile(judge.raw(rows), 0.7) + 0.037
    problem = Problem(space, judge, rows, np.empty(60, dtype=object), Label("yes"))
    search = _Search(Network(problem, Settings(rho=0.05)), rows.iloc[2].to_dict(), Deadline.after(60.0))
    found = search.run()
    assert found.proven()
    assert found.value == pytest.approx(0.718535, abs=1e-6)
