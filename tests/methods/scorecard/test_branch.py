"""Branch and bound over a scorecard's moves: the choices of an enumeration, the program's optima, and in time."""

from __future__ import annotations

import math
import time
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from support.scorecards import ask, refused, wide

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.scorecard import ScorecardClassifier
from methods.scorecard import Scorecard, search
from methods.scorecard.kernels import LOGISTIC, NO_OUTCOME
from methods.scorecard.milp import ScorecardProgram
from methods.scorecard.moves import Moves
from methods.scorecard.search import Form, Rules, Search

FEATURES = 6


def random_moves(rng: np.random.Generator) -> tuple[Moves, np.ndarray, np.ndarray]:
    """Up to four moves of each of six features, up, down or both; by move, its gain in score and its proximity."""
    counts = rng.integers(0, 5, FEATURES)
    owner = np.repeat(np.arange(FEATURES), counts)
    delta = rng.normal(size=len(owner)) + rng.choice([-1.0, 0.0, 1.0], FEATURES)[owner]
    gain, near = rng.normal(size=FEATURES)[owner] * delta, np.abs(delta) / rng.uniform(0.5, 3, FEATURES)[owner]
    start = np.append(0, np.cumsum(counts))
    blank = np.zeros(len(owner), dtype=np.int64)
    moves = Moves(np.zeros(FEATURES), float(rng.normal()), start, owner, blank, delta, tuple(blank))
    return moves, gain, near


def all_choices(engine: Search, weights: np.ndarray) -> list[float]:
    """What the choices cost that keep to the rules, ascending, from every combination of moves."""
    moves, rules, costs = engine.moves, engine.rules, []
    for combo in product(*([-1, *range(a, b)] for a, b in zip(moves.start, moves.start[1:], strict=False))):
        picks = np.array([o for o in combo if o >= 0], dtype=int)
        score = moves.score + engine.gain[picks].sum()
        if 0 < len(picks) <= rules.most and rules.low <= score <= rules.high:
            away = engine.deviation.copy()
            for o in picks:
                away += engine.factor[moves.owner[o]] * moves.delta[o]
            parts = [engine.near[picks].sum(), np.abs(away).sum(), 0.0, len(picks)]
            costs.append(float(weights @ parts))
    return sorted(costs)


@pytest.mark.parametrize("most", [1, 3, 4, FEATURES])
@pytest.mark.parametrize("ends", [(0.7, math.inf), (-math.inf, -0.7), (0.2, 0.9)])
def test_the_cheapest_choices_are_those_of_an_enumeration(
    most: int, ends: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, or a list, or all below a cap: for any weights, a reward of changes among them."""
    monkeypatch.setattr(search, "FEW", 0)
    found, rng = 0, np.random.default_rng(most)
    for _ in range(40):
        moves, gain, near = random_moves(rng)
        factor = np.tril(rng.normal(size=(FEATURES, FEATURES)))
        engine = Search(moves, Rules(*ends, most), gain, near, factor, rng.normal(size=FEATURES))
        weights = np.array([rng.choice([0.0, 1.0]), rng.choice([0.0, 0.5, 1.0]), 0.0, rng.choice([0.0, 0.3, -0.4])])
        assert engine.branching.linear
        expected = all_choices(engine, weights)
        found += len(expected) > 1
        for room, cap in ((1, math.inf), (9, math.inf), (2000, expected[len(expected) // 2] if expected else 1.0)):
            listed = engine.cheapest([Form(weights)], np.array([cap + 1e-9]), room, Deadline.after(20))
            assert listed.ended
            within = [cost for cost in expected if cost <= cap + 1e-9][:room]
            assert listed.costs[:, 0] == pytest.approx(within, abs=1e-9)
            assert listed.complete == (len(within) < room)
    assert found > 15


@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize("n", [1, 2])
def test_optima_are_those_of_the_program(most: int | None, n: int) -> None:
    """On a card of seven correlated features."""
    problem, count = wide(7), 0
    for factual in refused(problem, 3):
        methods = (Scorecard(max_changes=most, engine=engine) for engine in ("search", "milp"))
        one, other = ([a.objective for a in ask(method, problem, factual, n).answers] for method in methods)
        assert one == pytest.approx(other, abs=2e-5)
        count += None not in one
    assert count


def test_moves_that_cost_by_no_line_are_left_to_the_other_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FEW", 0)
    rng = np.random.default_rng(0)
    moves, gain, _ = random_moves(rng)
    near, factor = rng.uniform(size=len(gain)), np.eye(FEATURES)
    engine = Search(moves, Rules(0.5, math.inf, 3, link=NO_OUTCOME), gain, near, factor, np.ones(FEATURES))
    assert not engine.branching.linear
    form = Form(np.array([1.0, 1.0, 0.0, 0.0]))
    listed = engine.cheapest([form], np.array([math.inf]), 4, Deadline.after(20))
    assert listed.costs[:, 0] == pytest.approx(all_choices(engine, form.weights)[:4], abs=1e-9)


@pytest.fixture(scope="module")
def breast_cancer() -> Problem:
    """OptBinning's card of scikit-learn's data, of all thirty features; wanted: benign."""
    data = load_breast_cancer(as_frame=True)
    ends = zip(data.data.min(), data.data.max(), strict=True)
    space = Space(tuple(Feature(n, "continuous", scale=e) for n, e in zip(data.data.columns, ends, strict=True)))
    rows = space.frame(data.data.to_dict("records"))
    model: Any = ScorecardClassifier().fit(rows, data.target, space)
    classifier = Classifier(model, model.inputs(space), ("malignant", "benign"))
    return Problem(space, classifier, rows, np.asarray(data.target), Label("benign"))


@pytest.mark.parametrize(
    ("most", "n", "best"), [(None, 1, 31.8), (6, 1, 37.1), (8, 1, 34.6), (None, 2, 63.7), (None, 3, 95.6)]
)
def test_thirty_features_are_proven_in_time(breast_cancer: Problem, most: int | None, n: int, best: float) -> None:
    """A malignant one's; OptBinning needs up to 9 s for one at a time, and proves no two at once in 60 s."""
    explainer = Scorecard(weights="optbinning", max_changes=most).fit(breast_cancer)
    factual: pd.DataFrame = breast_cancer.train.iloc[[0]]
    began = time.process_time()
    answers = explainer.explain(factual, n, np.random.default_rng(0), Deadline.after(10)).answers
    assert time.process_time() - began < 2.0
    assert [answer.status for answer in answers] == [Status.OPTIMAL] * n
    assert sum(answer.objective or 0.0 for answer in answers) <= best
    assert breast_cancer.valid(breast_cancer.space.frame([answer.row for answer in answers if answer.row])).all()


def correlated(seed: int, features: int, options: int, rules: Rules) -> Search:
    """A search over as many moves of each feature, whose values of evidence are correlated; the factual is refused."""
    rng = np.random.default_rng(seed)
    delta = rng.normal(size=features * options)
    steep, unit = -rng.uniform(0.5, 1.5, features), rng.uniform(1, 3, features)
    mixed = rng.normal(size=(features, features))
    factor = np.linalg.cholesky(np.linalg.inv(mixed @ mixed.T / features + np.eye(features)))
    deviation = factor.T @ rng.normal(size=features)
    owner, blank = np.repeat(np.arange(features), options), np.zeros(features * options, dtype=np.int64)
    start = np.arange(features + 1) * options
    moves = Moves(np.zeros(features), -3.0, start, owner, blank, delta, tuple(blank))
    return Search(moves, rules, steep[owner] * delta, np.abs(delta) / unit[owner], factor, deviation)


@pytest.mark.parametrize("seed", [3, 30])
def test_what_a_search_hands_over_is_found_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own cheapest choice among it, whose cost the other search sums in another order (seed 30: a digit more)."""
    engine, form = correlated(seed, 12, 6, Rules(0.0, math.inf, 4)), [Form(np.array([1.0, 1.0, 0.0, 0.0]))]
    for n in (1, 2):
        alone = engine.best(n, form, np.array([math.inf]), Deadline.after(60))
        assert alone.proven
        with monkeypatch.context() as planned:
            planned.setattr(search, "BUDGET", 8_000)
            handed = engine.best(n, form, np.array([math.inf]), Deadline.after(60))
        assert handed.proven
        assert len(handed.choices) == n
        assert handed.cost == pytest.approx(alone.cost, abs=1e-9)


@pytest.mark.parametrize("seed", [10, 12, 14, 19, 20])
def test_a_capped_outcome_leaves_the_program_what_the_search_finds(seed: int) -> None:
    """The nearest of those whose probability is as near to its target as can be: its chords may be off by its error."""
    rules = Rules(0.0, math.inf, 3, link=LOGISTIC, target=0.9)
    engine = correlated(seed, 8, 5, rules)
    data = engine.moves, rules, engine.gain, engine.near, engine.factor, engine.deviation
    program, (outcome, proximity) = ScorecardProgram(*data, 1e-3), (Form(np.eye(4)[place]) for place in (2, 0))
    least = engine.best(1, [outcome], np.array([math.inf]), Deadline.after(60))
    caps = np.array([math.inf, least.cost + 1e-9])
    exact, found = (each.best(1, [proximity, outcome], caps, Deadline.after(60)) for each in (engine, program))
    assert least.proven
    assert exact.proven
    assert len(found.choices) == 1
    assert found.bound <= exact.cost + 1e-6
    known = program.best(1, [outcome], np.array([math.inf]), Deadline.after(60))
    assert known.bound <= least.cost <= known.cost + 1e-9
