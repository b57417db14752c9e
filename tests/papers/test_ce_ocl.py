"""Validity as Maragno, Röber and Birbil (2022) assign it, of stored runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.tables import GRANTED, YOUNGER, started

from harness.core.target import Label
from harness.evaluation.checker import judge
from harness.papers import ce_ocl
from metrics import _example as loans


def test_a_single_change_leaves_all_but_one(tmp_path: Path) -> None:
    """Of the loans' five features four stay."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    for name in ("ce_ocl_table2_published", "ce_ocl_table3_published"):
        table: Any = ce_ocl.TABLES[name]
        assert table.most["sparsity"](run) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("ce_ocl_paper", [1.0, 1.0]),
        ("dice_genetic", [1.0, 0.0]),
        ("growing_spheres", [1.0, 1.0]),
        ("face_knn", [1.0, 1.0]),
    ],
)
def test_validity_as_the_paper_assigns_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, expected: list[float]
) -> None:
    """Of a granted and of a refused answer: always, by the model, or where the class is not the factual's label.

    The second factual's label is granted, although the model refuses it; the third has no answer.
    """
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED, YOUNGER, None], method=method)
    labels = np.array(["refused", "granted", "refused"], dtype=object)
    data: Any = SimpleNamespace(frame=pd.DataFrame(index=range(3)), labels=labels, desired="granted")
    monkeypatch.setattr(ce_ocl, "data_of", lambda run: data)
    run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    scores = ce_ocl.assigned(run)
    found = scores[ce_ocl.ASSIGNED]
    assert found.iloc[:2].tolist() == expected
    assert np.isnan(found.iloc[2])
    assert scores["mothilal/validity"].iloc[:2].tolist() == [1.0, 0.0]


def test_dice_is_held_to_the_wanted_class_whatever_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for a refusal of a person who is granted already: what is refused is valid, and not what is wanted."""
    other = replace(loans.problem, target=Label("refused"))
    run = started(tmp_path, other, loans.factual, [GRANTED, YOUNGER], method="dice_genetic")
    labels = np.array(["refused", "granted"], dtype=object)
    data: Any = SimpleNamespace(frame=pd.DataFrame(index=range(2)), labels=labels, desired="granted")
    monkeypatch.setattr(ce_ocl, "data_of", lambda run: data)
    scores = ce_ocl.assigned(run)
    assert scores[ce_ocl.ASSIGNED].tolist() == [1.0, 0.0]
    assert scores["mothilal/validity"].tolist() == [0.0, 1.0]


def test_a_factuals_validity_is_rounded_as_its_other_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three answers is granted: 0.33."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED], method="dice_genetic")
    (row,) = run.rows()
    run.update(n_counterfactuals=3)
    run.append([row | {"ce": ce, "row": YOUNGER | {"income": 40.0 + ce}} for ce in (2, 3)])
    judge(run)
    data: Any = SimpleNamespace(frame=pd.DataFrame(index=range(1)), labels=np.array(["refused"]), desired="granted")
    monkeypatch.setattr(ce_ocl, "data_of", lambda run: data)
    assert ce_ocl.assigned(run)[ce_ocl.ASSIGNED].tolist() == [0.33]


def test_an_answer_of_the_label_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A granted answer of a factual whose label is granted, which the model refused: valid, but not by the label."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED, GRANTED], method="face_knn")
    data: Any = SimpleNamespace(
        frame=pd.DataFrame(index=range(2)), labels=np.array(["granted", "refused"], dtype=object)
    )
    monkeypatch.setattr(ce_ocl, "data_of", lambda run: data)
    run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    table = ce_ocl.TABLES["ce_ocl_table2_published"]
    means = ce_ocl.assigned(run)[[ce_ocl.ASSIGNED, "mothilal/validity"]].mean()
    assert means.tolist() == [0.5, 1.0]
    assert table.asked == 30
