"""CE-OCL among likely points: the density worked out apart, and the best of all points that are likely enough."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from support import enumeration

from harness.core.classifier import Classifier
from harness.core.clusters import clustered
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from methods.ce_ocl import CeOcl
from methods.ce_ocl.one_answer import AnswerSearch
from methods.milp.hull import Shares
from methods.milp.likely import Component, Likely, _bins
from metrics import plausibility

PLANE = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0), bounds=(-0.5, 1.5)) for name in "xy"))


def bins_of(feature: Feature, values: list[Any]) -> list[float]:
    """Where the bins of a number end, in its own units, but the last."""
    low, high = min(values), max(values)
    if feature.kind != "integer":
        return [low + (high - low) * step / 10 for step in range(11)]
    steps = [round(low + (high - low) * step / 10) for step in range(11)]
    return sorted({*(step - 0.5 for step in steps[:-1]), steps[-1] + 0.5})


class Oracle:
    """The density of the rows of the wanted class, value by value."""

    def __init__(self, problem: Problem, clusters: int) -> None:
        self.space = problem.space
        rows = problem.reference[problem.labelled(problem.reference_labels)].reset_index(drop=True)
        of = clustered(problem.space.encode(rows), clusters)
        self.rows, self.ends = (
            rows,
            {
                feature.name: bins_of(feature, rows[feature.name].tolist())
                for feature in self.space.features
                if feature.numeric
            },
        )
        self.groups = [rows[of == label] for label in np.unique(of)]

    def bin(self, feature: Feature, value: Any) -> int:
        """Below all ends is bin 0; a value on an end belongs to the bin below, but the least one to the bin above."""
        ends = self.ends[feature.name]
        return max(sum(end < value for end in ends), 1 if ends[0] <= value <= ends[-1] else 0)

    def level(self, feature: Feature, group: pd.DataFrame, place: int) -> float:
        """The log-density of a group in a bin or category."""
        if not feature.numeric:
            held = sum(feature.categories.index(value) == place for value in group[feature.name])
            return math.log((held + 1) / (len(group) + len(feature.categories)))
        ends = self.ends[feature.name]
        held = sum(self.bin(feature, value) == place for value in group[feature.name])
        inner = [(after - before) / feature.range for before, after in itertools.pairwise(ends)]
        width = inner[place - 1] if 1 <= place <= len(inner) else sum(inner) / len(inner)
        return math.log((held + 1) / (len(group) + len(ends) + 1) / width)

    def likelihood(self, frame: pd.DataFrame) -> np.ndarray:
        found = []
        for group in self.groups:
            total = np.full(len(frame), math.log(len(group) / len(self.rows)))
            for feature in self.space.features:
                value = feature.categories.index if not feature.numeric else lambda v, f=feature: self.bin(f, v)
                known = {v: self.level(feature, group, value(v)) for v in set(frame[feature.name])}
                total += frame[feature.name].map(known).to_numpy(float)
            found.append(total)
        return np.max(found, axis=0)

    def least(self, share: float) -> float:
        """The value that a share of the rows does not reach."""
        listed = sorted(self.likelihood(self.rows))
        return listed[math.floor(share * (len(listed) - 1))]


@pytest.mark.parametrize(
    ("model", "kept", "clusters", "share", "parameters"),
    [
        ("lr", "free", 1, 0.5, {}),
        ("lr", "increase", 3, 0.8, {"alpha": 1e4}),
        ("cart", "coded", 2, 0.5, {"distance": "l2sq"}),
        ("rf", "free", 3, 0.8, {"alpha": 0.3}),
        ("gbm", "decrease", 2, 0.3, {"distance": "gower", "max_changes": 2}),
        ("mlp", "conditional", 3, 0.6, {"delta": 0.0}),
        ("mlp", "free", 2, 0.9, {"alpha": 1e4, "hull_points": "labelled"}),
    ],
)
def test_the_answer_is_the_best_of_all_likely_points(
    model: str, kept: str, clusters: int, share: float, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = CeOcl(likelihood=share, clusters=clusters, **parameters)
    problem = enumeration.problem_of(model, kept, span=150)
    oracle, judged = Oracle(problem, clusters), enumeration.allowed
    least = oracle.least(share)

    def likely(*question: Any) -> np.ndarray:
        return judged(*question) & (oracle.likelihood(question[3]) >= least - 1e-9)

    plain = [enumeration.optimum(method, problem, factual) for factual in enumeration.factuals(problem, 4)]
    monkeypatch.setattr(enumeration, "allowed", likely)
    found = [enumeration.assert_optimal(method, problem, factual, 2)[0] for factual in enumeration.factuals(problem, 4)]
    assert any(answer.row is None or answer.objective > best + 0.1 for answer, best in zip(found, plain, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_continuous_numbers_come_to_the_ends_of_bins(seed: int) -> None:
    """The best point of each pair of bins is that of a linear program; of all likely pairs it is what is proven."""
    rng = np.random.default_rng(seed)
    train = pd.DataFrame(rng.beta(2, 5, (80, 2)), columns=["x", "y"])
    labels = np.where(train["x"] + 2 * train["y"] + rng.normal(0, 0.2, 80) > 0.9, "yes", "no").astype(object)
    estimator = LogisticRegression(C=100).fit(PLANE.encode(train), labels == "yes")
    judge = Classifier(estimator, space_inputs(PLANE), ("no", "yes"))
    problem = Problem(PLANE, judge, train, labels, Label("yes"))
    oracle, weights = Oracle(problem, 2), estimator.coef_[0]
    least, tried = oracle.least(0.6), 0
    for place in np.flatnonzero(~problem.valid(train))[:4]:
        factual = train.iloc[[place]]
        best = math.inf
        ends = {name: [-0.5, *(min(max(e, -0.5), 1.5) for e in oracle.ends[name]), 1.5] for name in "xy"}
        for pair in itertools.product(*(range(len(ends[name]) - 1) for name in "xy")):
            middle = pd.DataFrame([{n: (ends[n][k] + ends[n][k + 1]) / 2 for n, k in zip("xy", pair, strict=True)}])
            if oracle.likelihood(middle)[0] < least - 1e-9:
                continue
            x = linprog(
                [0, 0, 1, 1],
                A_ub=[[1, 0, -1, 0], [-1, 0, -1, 0], [0, 1, 0, -1], [0, -1, 0, -1], [*-weights, 0, 0]],
                b_ub=[*np.repeat(factual.to_numpy()[0], 2) * [1, -1, 1, -1], estimator.intercept_[0]],
                bounds=[(ends[n][k], ends[n][k + 1]) for n, k in zip("xy", pair, strict=True)] + [(0, None)] * 2,
            )
            best = min(best, x.fun if x.status == 0 else math.inf)
        method = CeOcl(likelihood=0.6, clusters=2)
        (answer,) = method.fit(problem).explain(factual, 1, rng, Deadline.after(20)).answers
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(best, abs=2e-6)
        tried += 1
    assert tried == 4


def test_the_claim_is_kept_as_data_and_judged_by_itself() -> None:
    """Stored and read again it tells rows that are too rare, and no other."""
    method, problem = CeOcl(likelihood=0.5, clusters=3), enumeration.problem_of("lr", span=150)
    claim = from_plain(to_plain(method.objective(problem).stored()))
    oracle, points = Oracle(problem, 3), enumeration.points()
    faults = claim.exceeded(problem.space, points.iloc[[0]], points)
    assert [fault == ["rarity"] for fault in faults] == (oracle.likelihood(points) < oracle.least(0.5) - 1e-7).tolist()
    assert 0 < sum(map(bool, faults)) < len(points)
    assert claim.common().limits == ()


def test_a_value_on_an_edge_has_the_bins_on_both_sides() -> None:
    """Also where it cannot move; neighbours of one value are one bin."""
    edges = np.array([0.0, 1.0, 2.0])
    assert _bins(edges, np.array([1.0, 2.0, 3.0, 4.0]), 1.0, 1.0) == [(1.0, 1.0, 2.0), (1.0, 1.0, 3.0)]
    assert _bins(edges, np.array([1.0, 2.0, 2.0, 4.0]), 0.5, 2.0) == [(0.5, 2.0, 2.0), (2.0, 2.0, 4.0)]


def test_what_lies_between_likely_points_is_judged_itself() -> None:
    """Between points of a hull it is not: that is in it."""
    rows = np.random.default_rng(0).random((20, 2))
    likely = Likely(PLANE, rows, np.zeros(20, dtype=int), 0.5)
    for piece, inside in ((Component(likely, 0), False), (Shares(rows, np.arange(2)), True)):
        assert AnswerSearch._inside.fget(SimpleNamespace(piece=piece, price=None)) is inside


def test_the_metric_is_the_share_of_the_rows_that_are_no_likelier() -> None:
    """Of each point of a small space, counted with the density worked out apart."""
    problem = enumeration.problem_of("lr", span=150)
    oracle, points = Oracle(problem, plausibility.COMPONENTS), enumeration.points()[::40]
    known = oracle.likelihood(oracle.rows)
    shares = [(known <= value + 1e-7).mean() for value in oracle.likelihood(points)]
    found = [plausibility.likelihood(points.iloc[[0]], points.iloc[[k]], problem) for k in range(len(points))]
    assert found == pytest.approx(shares)
    assert len(set(found)) > 10


def test_where_nothing_likely_is_valid_the_data_manifold_is_named() -> None:
    problem = enumeration.problem_of("lr", span=150)
    factual = enumeration.factuals(problem, 2)[0]
    still = {name: {"actionability": "immutable"} for name in ("member", "region", "grade")}
    asked = replace(problem, space=problem.space.replace(still))
    found = enumeration.ask(CeOcl(likelihood=0.97, clusters=2), asked, factual)
    assert found.answers[0].status is Status.INFEASIBLE
    assert "data manifold" in found.conflict


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"likelihood is 1.0; it must be in \[0, 1\), 0 for no density"):
        CeOcl(likelihood=1.0)
    with pytest.raises(ValueError, match=r"likelihood is 0.5, hull 'hard'; set likelihood to 0 or hull to none"):
        CeOcl(likelihood=0.5, hull="hard")
    assert CeOcl(likelihood=0.5).sees_reference
