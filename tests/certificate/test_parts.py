"""The parts of a certificate against linear programs, sampling and numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from support.plane import SPACE, rows

from harness.certificate import Ball, Checker
from harness.certificate.linear import Linear
from harness.certificate.margins import family, margins, readable
from harness.certificate.network_kernels import Layers, Program, Region, _climbed, _over_ball, _relax, bounds, forward
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import space_inputs
from harness.core.space import Feature, Kind, Space
from harness.core.target import Interval, Label, Probability
from methods.robust.network_kernels import Ball as SearchedBall
from methods.robust.network_kernels import Lines, _least_in_ball
from metrics import _example as loans


def test_the_room_of_a_feature_is_in_its_units() -> None:
    """From 10 down to 2 and up to 20, in units of 4; beyond a limit there is no room, and without one no end."""
    ball = Ball("linf", {"x": 4.0, "y": 1.0}, {"x": (2.0, 20.0)})
    assert ball.room("x", 10.0) == (2.0, 2.5)
    assert ball.room("x", 1.0) == (0.0, 4.75)
    assert ball.room("x", 30.0) == (7.0, 0.0)
    assert ball.room("y", 10.0) == (math.inf, math.inf)


@pytest.mark.parametrize("seed", range(12))
def test_the_least_moves_that_spend_a_margin(seed: int) -> None:
    """In the greatest norm as a linear program has it, in the Euclidean one as SciPy's SLSQP; rooms are used up."""
    rng = np.random.default_rng(seed)
    pull, room = rng.uniform(0.1, 3.0, 5), rng.uniform(0.05, 1.0, 5)
    room[seed % 5] = 0.0
    for share in (0.2, 0.6, 0.95):
        margin = share * float(pull @ room)
        ends = [(0.0, float(end)) for end in room]
        greatest = linprog(
            [0.0] * 5 + [1.0],
            A_ub=np.vstack([np.column_stack([np.eye(5), -np.ones(5)]), np.append(-pull, 0.0)]),
            b_ub=np.append(np.zeros(5), -margin),
            bounds=[*ends, (0.0, None)],
        )
        assert Linear._spent(pull, room, margin, "linf") == pytest.approx(greatest.fun, abs=1e-9)
        for norm, order in (("linf", math.inf), ("l2", 2)):
            least = Linear._spent(pull, room, margin, norm)
            moves = Linear._worst(pull, room, least, norm)
            assert (moves <= room).all()
            assert np.linalg.norm(moves, order) == pytest.approx(least)
            assert pull @ moves == pytest.approx(margin)
            assert Linear._worst(pull, room, 10.0, norm) == pytest.approx(room)
        euclidean = minimize(
            lambda s: s @ s, share * room, jac=lambda s: 2 * s, bounds=ends, method="SLSQP", tol=1e-14,
            constraints={"type": "ineq", "fun": lambda s, margin=margin: pull @ s - margin, "jac": lambda s: pull},
        )  # fmt: skip
        assert Linear._spent(pull, room, margin, "l2") == pytest.approx(math.sqrt(euclidean.fun), rel=1e-5)
    for norm in ("linf", "l2"):
        assert Linear._spent(pull, room, 1.001 * float(pull @ room), norm) == math.inf
        assert Linear._spent(pull, room, 0.0, norm) == 0.0


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_model_decides_about_a_ball_that_touches_its_threshold(norm: str) -> None:
    """Of a number from 0 to 4, scaled, class yes where it is above a half: 0.25 and 0.75 are a quarter away from it."""
    space = Space((Feature("x", Kind.CONTINUOUS, scale=(0.0, 4.0), bounds=(0.0, 4.0)),))
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    model.coef_[:], model.intercept_[:] = 1.0, -0.5
    judge = Classifier(model, space_inputs(space), ("no", "yes"))
    ball = Ball.scaled(space, norm)
    for wanted, x, proven in (("no", 1.0, True), ("yes", 3.0, False)):
        found = Checker(space, judge, Label(wanted)).certify({"x": x}, ball, within=0.25)
        assert found.radius == pytest.approx(0.25)
        assert (found.radius >= 0.25) is proven
        assert math.isinf(found.violated) is proven
        assert Checker(space, judge, Label(wanted)).certify({"x": x}, ball, within=0.25 + 1e-9).violated <= 0.25


def classifier(**settings: Any) -> Classifier:
    frame, labels = rows()
    network = MLPClassifier(max_iter=5, random_state=0, **settings)
    return Classifier(network.fit(SPACE.encode(frame), labels), space_inputs(SPACE), ("no", "yes"))


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_networks_are_read_where_they_are_piecewise_linear(activation: str) -> None:
    if activation == "relu":
        readable(SPACE, classifier(activation=activation, hidden_layer_sizes=(3,)), Label("yes"))
        return
    with pytest.raises(UnsupportedError, match=f"a network with activation '{activation}'; use 'relu'"):
        readable(SPACE, classifier(activation=activation, hidden_layer_sizes=(3,)), Label("yes"))
    # Without a hidden layer there is nothing to activate.
    readable(SPACE, classifier(activation=activation, hidden_layer_sizes=()), Label("yes"))


def test_margins_are_the_ends_of_a_target() -> None:
    """In the raw output: log-odds of a probability; an end that no output reaches is none, and the other class's are
    the complements."""
    known = classifier(hidden_layer_sizes=(3,))
    odds = math.log(0.3 / 0.7)

    def ends(target: Any) -> list[tuple[float, float]]:
        return [(float(margin.weights[0]), margin.constant) for margin in margins(known, target)]

    assert ends(Label("yes")) == [(1.0, 0.0)]
    assert ends(Label("no")) == [(-1.0, 0.0)]
    assert ends(Probability("yes", 0.3, 1.0)) == [(1.0, pytest.approx(-odds))]
    assert ends(Probability("yes", 0.0, 0.3)) == [(-1.0, pytest.approx(odds))]
    assert ends(Probability("no", 0.7, 1.0)) == [(-1.0, pytest.approx(odds))]
    assert ends(Probability("no", 0.0, 0.7)) == [(1.0, pytest.approx(-odds))]
    assert ends(Probability("yes", 0.3, 0.7)) == [(1.0, pytest.approx(-odds)), (-1.0, pytest.approx(-odds))]
    assert ends(Interval(2.0, 5.0)) == [(1.0, -2.0), (-1.0, 5.0)]
    assert ends(Interval(2.0, math.inf)) == [(1.0, -2.0)]
    for low, high in ((1.0, 1.0), (0.0, 0.0)):  # which an output would have to be infinite for
        with pytest.raises(UnsupportedError, match="probability of exactly 0 or 1"):
            ends(Probability("yes", low, high))


def test_a_probability_of_one_binds_a_tree() -> None:
    """Granted for sure from an income of 50 on, of which 80 is 0.3 of the range away."""
    margin, below = (
        margins(loans.problem.classifier, Probability("granted", 1.0, 1.0)),
        Probability("granted", 0.0, 0.5),
    )
    assert [(float(one.weights[0]), one.constant) for one in margin] == [(1.0, -1.0)]
    assert len(margins(loans.problem.classifier, below)) == 1


class Network:
    """A small random network of ReLUs as the kernels take it: two inputs in [-1, 1], layers of four and three units."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.sizes = np.array([2, 4, 3])
        self.weights, self.shifts = rng.normal(size=(2, 4, 4)), rng.normal(scale=0.3, size=(2, 4))
        self.last, self.constant = rng.choice([-1.0, 1.0], 3) * rng.uniform(0.5, 1.5, 3), 0.25
        self.low, self.high = -np.ones(2), np.ones(2)
        self.layers = Layers(self.weights, self.shifts, self.sizes, self.last, self.constant)
        self.region = Region(self.low, self.high, 1.0, False)
        self.points = rng.uniform(-1, 1, (4000, 2))
        self.sums: list[np.ndarray] = []
        values = self.points
        for k in range(2):
            used = self.weights[k, : self.sizes[k + 1], : self.sizes[k]]
            self.sums.append(values @ used.T + self.shifts[k, : self.sizes[k + 1]])
            values = np.maximum(self.sums[-1], 0.0)
        self.outputs = values @ self.last + self.constant

    def bounded(self, phases: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        bottom, top = np.zeros((2, 4)), np.zeros((2, 4))
        return bottom, top, bounds(self.layers, self.region, phases, bottom, top)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_every_sum(seed: int) -> None:
    """At every point, and with no box of one unit wider than interval arithmetic's; the margin is the network's own."""
    network = Network(seed)
    bottom, top, some = network.bounded(np.zeros((2, 4), dtype=np.int64))
    assert some
    for k, sums in enumerate(network.sums):
        count = network.sizes[k + 1]
        assert (sums >= bottom[k, :count] - 1e-9).all()
        assert (sums <= top[k, :count] + 1e-9).all()
    weights = network.weights[0, :4, :2]
    reach = np.abs(weights).sum(axis=1)  # of the first layer the bounds are exact
    np.testing.assert_allclose(bottom[0], network.shifts[0] - reach)
    np.testing.assert_allclose(top[0], network.shifts[0] + reach)
    assert forward(tuple(network.layers), network.points[0]) == pytest.approx(network.outputs[0])


@pytest.mark.parametrize("seed", range(12))
def test_a_relaxation_has_the_points_of_its_phases_and_no_others(seed: int) -> None:
    """Whose units are as they are fixed keeps every row, and its cost is the margin; another breaks one. A unit of the
    last layer has the rows alone that its weight takes."""
    network, rng = Network(seed), np.random.default_rng(100 + seed)
    phases = np.zeros((2, 4), dtype=np.int64)
    chosen = network.points[rng.integers(len(network.points))]
    place_of = np.flatnonzero((network.points == chosen).all(axis=1))[0]
    fixed = [(0, 1), (1, 0), (0, int(rng.integers(2, 4)))]
    for k, i in fixed:
        phases[k, i] = 1 if network.sums[k][place_of, i] > 0 else -1
    bottom, top, some = network.bounded(phases)
    assert some
    cost, rest, rows_of, sides, low, high, place = _relax(network.layers, network.region, phases, bottom, top)
    agree = np.all([(network.sums[k][:, i] > 0) == (phases[k, i] > 0) for k, i in fixed], axis=0)
    columns = np.zeros((len(network.points), len(cost)))
    columns[:, :2] = network.points
    expected = 0
    for k, i in np.ndindex(2, 4):
        if i >= network.sizes[k + 1]:
            continue
        if place[k, i] >= 0:
            columns[:, place[k, i]] = np.maximum(network.sums[k][:, i], 0.0)
            expected += 2 if k == 0 else 1
        elif phases[k, i] != 0:
            expected += 1
    assert len(rows_of) == len(sides) == expected
    assert agree.any()
    assert (columns[agree] @ rows_of.T <= sides + 1e-9).all()
    assert (columns[agree] >= low - 1e-9).all()
    assert (columns[agree] <= high + 1e-9).all()
    np.testing.assert_allclose(columns[agree] @ cost + rest, network.outputs[agree], atol=1e-9)
    strayed = np.any([(network.sums[k][:, i] * phases[k, i]) < -1e-6 for k, i in fixed], axis=0)
    exact = strayed & ((network.sums[0] * phases[0]) >= 0).all(axis=1)  # the second layer's sums are then known
    assert (columns[exact] @ rows_of.T > sides).any(axis=1).all()
    first = np.any([(network.sums[0][:, i] * phases[0, i]) < -1e-6 for k, i in fixed if k == 0], axis=0)
    assert (columns[first] @ rows_of.T > sides).any(axis=1).all()
    # An open unit lies below the line through both ends of its sum, where its weight is negative or it is not last.
    line = linprog(cost, A_ub=rows_of, b_ub=sides, bounds=list(zip(low, high, strict=True)))
    assert line.fun + rest <= network.outputs[agree].min() + 1e-9


def program(cost: np.ndarray, *rest: np.ndarray) -> Program:
    """Of rows, sides and ends, without open units."""
    return Program(cost, 0.0, *rest, place=np.full((1, 1), -1))


@pytest.mark.parametrize("seed", range(8))
def test_the_dual_of_a_ball_is_tight(seed: int) -> None:
    """The least of a linear form over a ball cut by two planes, by SLSQP; a plane beyond the ball leaves no point."""
    rng = np.random.default_rng(seed)
    cost, planes, radius = rng.normal(size=3), rng.normal(size=(2, 3)), 1.5
    sides = rng.uniform(-0.5, 0.6, 2)
    slope = np.zeros(3)
    none = np.zeros(3)
    found = _climbed(3, program(cost, planes, sides, none, none), math.inf, radius, slope)
    best = min(
        (
            minimize(
                lambda x: cost @ x, start, jac=lambda x: cost, method="SLSQP", tol=1e-12,
                constraints=[
                    {"type": "ineq", "fun": lambda x: radius**2 - x @ x, "jac": lambda x: -2 * x},
                    {"type": "ineq", "fun": lambda x: sides - planes @ x, "jac": lambda x: -planes},
                ],
            )
            for start in rng.normal(scale=0.5, size=(8, 3))
        ),
        key=lambda result: result.fun if result.success else math.inf,
    )  # fmt: skip
    assert found <= best.fun + 1e-7
    assert found == pytest.approx(best.fun, abs=2e-6)
    multipliers = rng.uniform(0, 1, 2)
    bound = _over_ball(3, program(cost, planes, sides, none, none), multipliers, radius, slope)
    assert bound == pytest.approx(-multipliers @ sides - radius * np.linalg.norm(cost + multipliers @ planes))
    assert bound <= found + 1e-9
    away = np.array([-radius * float(np.linalg.norm(planes[0])) - 0.1, 1.0])
    assert _climbed(3, program(cost, planes, away, none, none), math.inf, radius, slope) == math.inf


@pytest.mark.parametrize("seed", range(12))
def test_the_least_of_a_convex_margin_over_a_ball(seed: int) -> None:
    """A linear form plus two units of positive weight, on one side of a plane: by SLSQP over the units' values, too.

    The checker has a column for each unit, the search a row that may be exceeded at a price.
    """
    rng = np.random.default_rng(seed)
    cost, units, plane, radius = rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=(1, 3)), 1.5
    shifts, weights, side = rng.uniform(-0.8, 0.8, 2), rng.uniform(0.2, 2.0, 2), rng.uniform(-0.3, 0.6, 1)
    best = min(
        (
            minimize(
                lambda x: cost @ x[:3] + weights @ x[3:], np.append(start, [3.0, 3.0]), method="SLSQP", tol=1e-12,
                bounds=[(None, None)] * 3 + [(0.0, None)] * 2,
                constraints=[
                    {"type": "ineq", "fun": lambda x: radius**2 - x[:3] @ x[:3]},
                    {"type": "ineq", "fun": lambda x: side - plane @ x[:3]},
                    {"type": "ineq", "fun": lambda x: x[3:] - units @ x[:3] - shifts},
                ],
            )
            for start in rng.normal(scale=0.5, size=(6, 3))
        ),
        key=lambda result: result.fun if result.success else math.inf,
    )  # fmt: skip
    rows_of = np.block([[plane, np.zeros((1, 2))], [units, -np.eye(2)]])
    sides, low, high = np.append(side, -shifts), np.append([-radius] * 3, [0.0, 0.0]), np.full(5, 6.0)
    lifted = program(np.append(cost, weights), rows_of, sides, low, high)
    found = _climbed(3, lifted, math.inf, radius, np.zeros(5))
    searched = Lines(np.vstack([plane, units]), sides, np.zeros(3, np.bool_))
    ball, most, move = SearchedBall(radius, True, np.ones(3, np.bool_)), np.append(math.inf, weights), np.zeros(3)
    for bound in (found, _least_in_ball(cost, 0.0, searched, 3, most, math.inf, ball, move)):
        assert bound <= best.fun + 1e-7
        if np.linalg.norm(best.x[:3]) > radius - 1e-3:  # inside the ball the dual has a kink, where climbing may end
            assert bound == pytest.approx(best.fun, abs=2e-3 if seed == 5 else 1e-5)  # 5 ends after 1,000 sweeps
    goal = best.fun - 0.01
    assert goal < _climbed(3, lifted, goal, radius, np.zeros(5)) <= best.fun + 1e-7
    assert goal < _least_in_ball(cost, 0.0, searched, 3, most, goal, ball, move) <= best.fun + 1e-7


def test_columns_beside_the_ball_lie_at_an_end() -> None:
    """Two moves in a ball of radius 2, and a column in [-1, 3]: its slope of 2 takes -1, of -2 takes 3."""
    empty = np.zeros((1, 3))
    for slope_of, end in ((2.0, -2.0), (-2.0, -6.0)):
        cost, slope = np.array([3.0, 4.0, slope_of]), np.zeros(3)
        ends = np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 3.0])
        assert _over_ball(2, program(cost, empty, np.zeros(1), *ends), np.zeros(1), 2.0, slope) == end - 2.0 * 5.0


def test_what_is_certified_is_said_of_what_is_not() -> None:
    sentence = r"certified for object; read are .*, but not those of XGBoost and LightGBM"
    with pytest.raises(UnsupportedError, match=sentence):
        family(object())
