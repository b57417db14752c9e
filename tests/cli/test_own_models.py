"""Models of a user's own, made of others or of other libraries: a CSV, the YAML beside it, a sweep, and a notebook."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from support.own import GRADES, table
from support.sweep import runner, stored
from support.wrapped import WRAPPED

from harness.library import explain, pose
from methods.ce_ocl import CeOcl

EXPORTED = Path(__file__).parents[1] / "fixtures" / "exported"
YAML = """target: outcome
desired: good
immutable: [member]
features: {grade: {kind: ordinal, categories: [low, mid, high]}}
"""
GRADE = {"kind": "ordinal", "categories": GRADES}


def models(folder: Path) -> dict[str, Any]:
    """Files of models, and what a notebook is given instead: the model itself, or the file."""
    frame = table("loans")
    found: dict[str, Any] = {}
    for kind, name in (("soft votes", "votes"), ("stacking", "stack"), ("calibrated", "averaged")):
        found[name] = WRAPPED[kind]().fit(frame.drop(columns="outcome"), frame["outcome"])
        skops.io.dump(found[name], folder / f"{name}.skops")
    if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
        found["columns"] = folder / "columns.onnx"
        shutil.copy(EXPORTED / "columns_forest.onnx", found["columns"])
    if importlib.util.find_spec("catboost"):
        import catboost

        settings = {"iterations": 6, "depth": 3, "one_hot_max_size": 9, "verbose": False, "allow_writing_files": False}
        model = catboost.CatBoostClassifier(**settings)
        found["groups"] = model.fit(
            frame.drop(columns="outcome"), frame["outcome"], cat_features=["grade", "home", "member"]
        )
        model.save_model(str(folder / "groups.cbm"))
    return found


@pytest.mark.slow
def test_a_sweep_over_files_beside_a_csv_is_what_a_notebook_finds(tmp_path: Path) -> None:
    table("loans").to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(YAML)
    known, run = models(tmp_path), runner(tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".skops", ".onnx", ".cbm"))
    done = run("-m", "dataset=csv", "dataset.path=loans.csv", "model=file", f"model.path={','.join(files)}",
               "method=nearest,ce_ocl", "n_factuals=1")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "done: " in line]
    assert len(lines) == 2 * len(known)
    for line in lines:
        opaque = "/stack/ce_ocl" in line
        assert ("a model that learns from other models' answers" if opaque else "coverage 1.00, validity 1.00") in line
    checked = run("results", module="harness.check")
    assert f"{2 * len(known) - 1} stored counterfactuals checked, 0 of them do not hold" in checked.stdout
    features = {"income": {}, "age": {}, "grade": GRADE, "home": {}, "member": {"actionability": "immutable"}}
    for name in set(known) - {"stack"}:
        (row,) = stored(tmp_path)[f"loans/{name}/ce_ocl"].rows()
        task = pose(pd.read_csv(tmp_path / "loans.csv"), "outcome", known[name], desired="good", features=features)
        (answer,) = explain(CeOcl(), task, row["factual"], time_limit=30).answers
        assert (answer.status.name, row["status"]) == ("OPTIMAL", "OPTIMAL")
