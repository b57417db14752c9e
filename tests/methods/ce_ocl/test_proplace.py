"""The closest robust point of a plausible region, against all points of a grid and all corners of the weights' box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.weight_corners import DELTA, GRID, SPACE, least, posed

from harness.core.explanation import Reason, Status
from harness.core.hull import distance
from harness.core.method import Deadline
from harness.core.target import Probability
from harness.core.tolerances import HULL_INSIDE
from methods.ce_ocl.proplace import PROVEN, Proplace


@pytest.mark.parametrize("neighbours", [1, 3, 8])
@pytest.mark.parametrize(("kind", "wanted"), [("lr", "yes"), ("svm", "no"), ("network", "yes"), ("network", "no")])
def test_the_answer_is_the_best_of_all_points_of_the_region(kind: str, wanted: str, neighbours: int) -> None:
    """Its region is spanned by the factual and the nearest rows that every corner accepts."""
    found, method = 0, Proplace(neighbours, DELTA)
    for seed in range(4):
        problem = posed(kind, "scaled" if seed % 2 else "centred", wanted, seed)
        assert method.refuses(problem) is None
        robust = problem.train.loc[least(problem, problem.train) > 0]
        objective, fitted = method.objective(problem), method.fit(problem)
        for factual in (GRID.iloc[[15]], GRID.iloc[[188]], GRID.iloc[[97]]):
            if problem.valid(factual).all() or robust.empty:
                continue
            order = np.argsort(objective.evaluate(SPACE, factual, robust), kind="stable")[:neighbours]
            corners = np.vstack([SPACE.encode(factual), SPACE.encode(robust.iloc[order])])
            kept = GRID.loc[least(problem, GRID) > 0]
            inside = [distance(corners, point) <= HULL_INSIDE for point in SPACE.encode(kept)]
            best = objective.evaluate(SPACE, factual, kept.loc[inside]).min(initial=np.inf)
            (answer,) = fitted.explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers
            assert best < np.inf  # the nearest row itself
            assert (answer.status, answer.detail, answer.bound) == (Status.FOUND, PROVEN, None)
            assert answer.objective == pytest.approx(best, abs=1e-6)
            assert least(problem, SPACE.frame([answer.row or {}]))[0] > 0
            found += 1
    assert found > 1


def test_rows_that_one_may_not_become_span_nothing() -> None:
    """Where b is immutable the nearest rows are those of the same b; where nothing may change, nothing is found."""
    problem, found = posed("lr", "scaled", "yes", 0), 0
    for place in range(0, 100, 7):
        factual = GRID.loc[~problem.valid(GRID)].iloc[[place % 80]]
        for names in ("b", "abc"):
            space = SPACE.replace({name: {"actionability": "immutable"} for name in names})
            fitted = Proplace(3, DELTA).fit(replace(problem, space=space))
            (answer,) = fitted.explain(factual, 1, np.random.default_rng(0), Deadline.after(9)).answers
            rows = problem.train.loc[least(problem, problem.train) > 0]
            rows = rows.loc[(rows[[*names]] == factual[[*names]].iloc[0]).all(axis=1)]
            assert (answer.row is None) == rows.empty
            if answer.row is None:
                assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.FINISHED)
                assert "no reachable training row" in answer.detail
                continue
            assert answer.row["b"] == factual["b"].iloc[0]
            found += 1
    assert found > 2


def test_without_a_robust_row_nothing_is_found() -> None:
    problem = posed("lr", "scaled", "yes", 0)
    factual = GRID.loc[~problem.valid(GRID)].iloc[[0]]
    fitted = Proplace(3, 1.0).fit(problem)
    for deadline, reason in ((Deadline.after(9), Reason.FINISHED), (Deadline.after(-1), Reason.TIME_LIMIT)):
        answers = fitted.explain(factual, 2, np.random.default_rng(0), deadline).answers
        assert [(answer.status, answer.reason) for answer in answers] == [(Status.GAVE_UP, reason)] * 2


def test_what_is_refused() -> None:
    problem = posed("lr", "scaled", "yes", 0)
    unsure = replace(problem, target=Probability("yes", 0.6, 0.9))
    assert "PROPLACE is run for a wanted class only" in str(Proplace().refuses(unsure))
    with pytest.raises(ValueError, match="neighbours is 0; give a whole number of at least 1"):
        Proplace(0)
    with pytest.raises(ValueError, match="delta is 2"):
        Proplace(1, 2)


def test_a_row_that_is_there_twice_spans_no_more() -> None:
    """The nearest three are three points, however often each is in the training rows."""
    problem = posed("lr", "scaled", "yes", 0)
    twice = replace(problem, train=problem.train.loc[problem.train.index.repeat(4)], labels=problem.labels.repeat(4))
    factual = GRID.loc[~problem.valid(GRID)].iloc[[0]]
    once, again = (Proplace(3, DELTA).fit(one).region(factual) for one in (problem, twice))
    assert len(once) > 2
    assert again.to_dict("records") == once.to_dict("records")


def test_rows_with_the_same_special_code_span_a_region() -> None:
    """Whoever has a code may not come to it, and keeps it: rows that have it, too, are within reach."""
    problem = posed("lr", "scaled", "yes", 0)
    coded = replace(problem, space=SPACE.replace({"a": {"special": (-1,)}}), train=problem.train.assign(a=-1))
    fitted = Proplace(3, DELTA).fit(coded)
    factual = GRID.iloc[[0]].assign(a=-1)
    assert len(fitted.robust)
    assert len(fitted.region(factual)) == 1 + min(3, len(fitted.robust))
    assert len(fitted.region(factual.assign(a=2))) == 1
