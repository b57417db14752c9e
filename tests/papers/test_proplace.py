"""PROPLACE's measures, and the table that has them beside the paper's, of stored runs."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor
from support.tables import started
from support.weight_corners import DELTA, GRID, SPACE, least, posed

from harness.evaluation.study import SCORES, read_scores
from harness.papers import proplace


def test_measures_are_those_of_the_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two answers, one of which no weights within delta refuse, by all corners; one without an answer is not valid."""
    problem = posed("lr", "centred", "yes", 0)
    margins, refused = least(problem, GRID), np.flatnonzero(~problem.valid(GRID))
    sure, unsure = np.flatnonzero(margins > 0)[0], np.flatnonzero(problem.valid(GRID) & (margins < 0))[0]
    answers = [GRID.iloc[place].to_dict() for place in (sure, unsure)]
    paths = ["metrics.validity.validity"]
    factual = GRID.iloc[[refused[0]]]
    run = started(
        tmp_path, problem, factual, [*answers, None], dataset="compas_carla", method="proplace", paths=paths,
        options={"delta": DELTA},
    )  # fmt: skip
    data: Any = SimpleNamespace(frame=GRID, labels=problem.classifier.predict(GRID), train=np.arange(len(GRID)))
    monkeypatch.setattr(proplace, "data_of", lambda run: data)
    scores = read_scores(run)
    assert math.isnan(proplace.measured(run)["m2_validity"][0])  # scored by no other networks
    (run.path / SCORES).write_text(scores.assign(**{"retraining/more_or_fewer": [0.75, 0.5, math.nan]}).to_csv())
    found = proplace.measured(run)
    assert found["validity"].tolist() == [1.0, 1.0, 0.0]
    assert found["delta_validity"].tolist()[:2] == [1.0, 0.0]
    assert found["m2_validity"].tolist()[:2] == [0.75, 0.5]
    moved = np.abs(SPACE.encode(SPACE.frame(answers)) - SPACE.encode(factual)).sum(axis=1) / len(SPACE.names)
    assert found["l1"].tolist()[:2] == pytest.approx(moved.tolist())
    text, lines = proplace.Rows().build([run])
    ours = lines.set_index(["dataset", "measure"])["ours"]
    assert ours["compas", "validity"] == pytest.approx(2 / 3)
    assert ours["compas", "delta_validity"] == 0.5
    assert ours["compas", "l1"] == pytest.approx(moved.mean())
    wanted = SPACE.encode(GRID.loc[problem.valid(GRID)])
    factors = [proplace.outlying(SPACE.encode(SPACE.frame([answer])), wanted) for answer in answers]
    assert ours["compas", "lof"] == pytest.approx(np.mean(factors))
    assert ours["compas", "m2_validity"] == 0.625
    assert lines["n"].gt(0).sum() == 5
    assert "| compas | delta_validity | 1.000 | 0.500 (0.500) | 2 |" in text


def test_the_outlier_factor_is_that_among_all_rows() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(400, 3)), rng.normal(6, 0.3, size=(300, 3))])
    for point in ([0.0, 0.0, 0.0], [3.0, 3.0, 3.0], [6.0, 6.0, 6.0]):
        whole = LocalOutlierFactor(proplace.NEIGHBOURS).fit(np.vstack([[point], rows])).negative_outlier_factor_[0]
        assert proplace.outlying(np.array([point]), rows) == pytest.approx(-whole, rel=1e-12)
