"""The laws of methods on models of other libraries, whose float32 decides: categories, orders and numbers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from support import laws
from support.laws import Case
from support.own import GRADES, SETTINGS, table

from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import load_dataset
from harness.models.adopt import from_file
from methods.ce_ocl import CeOcl
from methods.dice import Dice
from methods.md_pso import MdPso
from methods.nearest import Nearest
from methods.robust import Robust

pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'onnx'")

FOLDER = Path(__file__).parents[1] / "fixtures" / "exported"
METHODS = {
    "nearest": (Nearest(), True),
    "robust": (Robust(rho=0.01), True),
    "ce_ocl": (CeOcl(), True),
    "ce_ocl_milp": (CeOcl(engine="milp"), True),
    "dice_random": (Dice("random"), False),
    "md_pso": (MdPso(), True),
}


@cache
def posed(model: str) -> tuple[Problem, pd.DataFrame]:
    """The problem of an exported model, and two factuals."""
    grade = {"kind": "ordinal", "categories": GRADES, **SETTINGS["loans"]}
    frame = table("loans")
    features = {**dict.fromkeys(frame.columns.drop("outcome")), "grade": grade}
    given = {"desired": "good", "immutable": ["member"], "features": features, "split": "none"}
    data = load_dataset("applicants", (), "outcome", tables=([frame], ""), **given)
    classifier = from_file(FOLDER / f"{model}.onnx", data.space, data.frame, data.classes)
    assert classifier.opaque is None
    assert (classifier.predict(data.frame) == data.labels).mean() > 0.8  # its columns are those it was trained on
    problem = Problem(data.space, classifier, data.frame, data.labels, Label("good"))
    return problem, data.frame.loc[~problem.valid(data.frame)].iloc[:2]


@pytest.mark.parametrize("method", [pytest.param(n, marks=pytest.mark.slow if n == "robust" else ()) for n in METHODS])
@pytest.mark.parametrize("model", ["applicants_forest", "applicants_network"])
def test_method_on_an_exported_model(model: str, method: str) -> None:
    built, own = METHODS[method]
    laws.judge(Case(built, *posed(model), own=own), *laws.ALL)
