"""Optima, bounds and proofs of networks are about their own rule, score > 0, however small their weights are."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.neural_network import MLPClassifier
from support.networks import random_network

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.ce_ocl.explainer import start

SPACE = Space(
    (
        Feature("a", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)),
        Feature("b", "continuous", scale=(-2.0, 2.0), bounds=(-2.0, 2.0)),
        Feature("c", "continuous", scale=(0.0, 50.0), bounds=(0.0, 50.0)),
        Feature("member", "binary", (False, True)),
    )
)
UNITS = 5


def problem_of(seed: int, last: float, first: float = 1.0) -> Problem:
    """A network of random weights, its first and last layer multiplied by factors; a fifth of the rows is accepted."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "a": rng.uniform(size=300),
            "b": rng.uniform(-2, 2, size=300),
            "c": rng.uniform(0, 50, size=300),
            "member": rng.random(300) < 0.5,
        }
    )
    inputs = SPACE.encode(rows)
    estimator = random_network(MLPClassifier((UNITS,), max_iter=1, random_state=0), inputs, np.arange(300) % 2, rng)
    score = np.maximum(inputs @ estimator.coefs_[0] + estimator.intercepts_[0], 0) @ estimator.coefs_[1]
    estimator.intercepts_[1][:] = -np.quantile(score, 0.8)
    estimator.coefs_[0] *= first
    estimator.intercepts_[0] *= first
    estimator.coefs_[1] *= last
    estimator.intercepts_[1] *= last * first
    judge = Classifier(estimator, space_inputs(SPACE), ("no", "yes"))
    return Problem(SPACE, judge, rows, np.empty(300, dtype=object), Label("yes"))


def infimum(problem: Problem, factual: pd.DataFrame) -> float:
    """The least l1 distance to score >= 0, by one linear program a pattern of active units and a binary value."""
    estimator = problem.classifier.estimator
    first, shift = estimator.coefs_[0].T, estimator.intercepts_[0]
    first, shift = first / np.abs(first).max(), shift / np.abs(first).max()
    last = estimator.coefs_[1][:, 0] / np.abs(estimator.coefs_[1]).max()
    end = estimator.intercepts_[1][0] / np.abs(estimator.coefs_[1]).max() / np.abs(estimator.coefs_[0]).max()
    origin = SPACE.encode(factual)[0]
    best = math.inf
    for member in (0.0, 1.0):
        fixed = abs(member - origin[3])
        for pattern in itertools.product((0.0, 1.0), repeat=UNITS):
            on = np.array(pattern)
            side = 1.0 - 2.0 * on  # a unit that is on has a sum of at least 0
            sums = first[:, :3]
            known = first[:, 3] * member + shift
            score = -(last * on) @ sums
            rows = np.vstack([side[:, None] * sums, score[None]])
            sides = np.append(-side * known, (last * on) @ known + end)
            # Moves up and down from the factual in the three numbers.
            moves = np.hstack([rows, -rows])
            room = [(0, 1 - x) for x in origin[:3]] + [(0, x) for x in origin[:3]]
            found = linprog(np.ones(6), moves, sides - rows @ origin[:3], bounds=room)
            if found.status == 0:
                best = min(best, fixed + found.fun)
    return best


def asked(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> Answer:
    return start(method, problem).answers(factual, 1, Deadline.after(60.0))[0]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1e-3, 1.0), (1e-8, 1.0), (1e3, 1.0), (1.0, 1e-4), (1e-4, 1e-4)])
def test_a_small_network_has_no_margin(sizes: tuple[float, float], few: bool) -> None:
    """Of its last and first layer; ``few``: with the search over few changes before the program."""
    for seed in range(3):
        problem = problem_of(seed, *sizes)
        refused = problem.train[~problem.valid(problem.train)]
        for person in (0, 1):
            factual = refused.iloc[[person]]
            expected = infimum(problem, factual)
            method = CeOcl("l1", engine="auto" if few else "milp")
            engine = start(method, problem)
            engine.few = engine.few if few else None
            answer = engine.answers(factual, 1, Deadline.after(60.0))[0]
            assert answer.row is not None
            assert problem.valid(SPACE.frame([answer.row]))[0]
            assert answer.status is Status.OPTIMAL
            assert answer.bound <= expected + 1e-8
            assert answer.objective == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("far", [1e3, 1e9, 1e12])
def test_inputs_of_a_great_range_lose_no_digits(far: float) -> None:
    """As seconds or amounts are, which a network without shifts may see as they come: the optimum is that of shares."""
    kinds = [Feature(name, "continuous", scale=(0.0, far), bounds=(0.0, far)) for name in "abc"]
    space, plain = (
        Space(tuple(kinds)),
        Space(tuple(replace(kind, scale=(0.0, 1.0), bounds=(0.0, 1.0)) for kind in kinds)),
    )
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame(rng.uniform(size=(300, 3)), columns=[*"abc"])
        estimator = MLPClassifier((6, 5)[: 1 + seed % 2], max_iter=1, random_state=0)
        random_network(estimator, rows.to_numpy(), np.arange(300) % 2, rng)
        for shifts in estimator.intercepts_:
            shifts[:] = 0.0
        score = rows.to_numpy()
        for weights in estimator.coefs_[:-1]:
            score = np.maximum(score @ weights, 0)
        score = (score @ estimator.coefs_[-1])[:, 0]
        estimator.intercepts_[-1][:] = -np.quantile(score, 0.95)
        found = []
        for here, size in ((plain, 1.0), (space, far)):
            scaled = copy.deepcopy(estimator)
            scaled.coefs_[0] /= size
            judge = Classifier(scaled, tuple(Affine(name) for name in "abc"), ("no", "yes"))
            problem = Problem(here, judge, rows * size, np.empty(300, dtype=object), Label("yes"))
            factual = (rows * size).iloc[[int(score.argmin())]]
            found.append(asked(CeOcl("l1", engine="milp"), problem, factual))
        assert [answer.status for answer in found] == [Status.OPTIMAL] * 2
        assert found[1].objective == pytest.approx(found[0].objective, abs=2e-6)


def test_a_limit_on_changes_keeps_to_the_rule() -> None:
    """Where one change is too few for the closed problem, and two are enough."""
    for last in (1.0, 1e-8):
        problem = problem_of(0, last)
        refused = problem.train[~problem.valid(problem.train)]
        for person in range(4):
            one, two, all_ = (
                asked(CeOcl("l1", max_changes=most), problem, refused.iloc[[person]]) for most in (1, 2, None)
            )
            values = [math.inf if answer.row is None else answer.objective for answer in (one, two, all_)]
            assert values[1] <= values[0] + 1e-6
            assert values[2] <= values[1] + 1e-6
            assert all(answer.status in {Status.OPTIMAL, Status.INFEASIBLE} for answer in (one, two, all_))
            same = asked(replace(CeOcl("l1"), max_changes=2, engine="milp"), problem, refused.iloc[[person]])
            assert same.status is two.status
            assert same.objective == two.objective or same.objective == pytest.approx(two.objective, abs=2e-6)
