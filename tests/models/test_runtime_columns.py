"""ONNX files with an input for each column: their codes of texts are read, and what is not is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.loans import FRAME as LOANS
from support.loans import SPACE as LOAN_SPACE
from support.own import GRADES, table

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.wording import PREDICT
from harness.library import explain, pose
from harness.models.adopt import from_file
from harness.models.runtime.source import ModelSource
from methods.ce_ocl import CeOcl

onnx = pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'onnx'")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64

FOLDER = Path(__file__).parents[1] / "fixtures" / "exported"


def by_column(nodes: list[Any], numbers: int = FLOAT, **columns: int) -> Any:
    """A model whose inputs are loans' columns, city a text; its output is p."""
    kinds = {"city": onnx.TensorProto.STRING, "income": numbers, **columns}
    inputs = [helper.make_tensor_value_info(name, kind, [None, 1]) for name, kind in kinds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("p", FLOAT, [None, 1])])
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def loans(model: Any, **settings: Any) -> Classifier:
    return from_file(ModelSource(model, **settings), LOAN_SPACE, LOANS, ("bad", "good"), names=("bad", "good"))


def coded(**given: Any) -> Any:
    keys = {"keys_strings": ["Bonn", "Köln", "Rom"], "values_floats": [0.0, 1.0, 5.0], "default_float": 7.0}
    return helper.make_node("LabelEncoder", ["city"], ["code"], domain="ai.onnx.ml", **{**keys, **given})


def test_an_input_for_each_column_is_taken_by_its_name() -> None:
    """Texts and numbers; what is not read predicts."""
    nodes = [coded(), helper.make_node("Add", ["code", "income"], ["sum"]), helper.make_node("Sigmoid", ["sum"], ["p"])]
    model = by_column(nodes)
    known = loans(model)
    assert "its Add is of columns with each other" in known.opaque
    code = LOANS["city"].map({"Bonn": 0.0, "Köln": 1.0, "Ulm": 7.0}) + LOANS["income"].astype(float)
    np.testing.assert_allclose(known.score(LOANS), 1 / (1 + np.exp(-code.astype(float))), atol=1e-6)
    with pytest.raises(HarnessError, match="it takes the columns city, income, which the data have not as features"):
        pose(pd.DataFrame({"a": range(9), "y": [0, 1, 1] * 3}), "y", ModelSource(model), desired="1")
    with pytest.raises(HarnessError, match=r"it takes its columns by their names; leave model\.columns at null"):
        loans(model, columns=["city", "income"])


@pytest.mark.parametrize("known", [["Bonn", "Ulm"], ["Rom", "Köln", "Bonn"]])
def test_codes_of_texts_are_functions_of_categories(known: list[str]) -> None:
    """A column for each text of the file, one that the data have not among them, and a code with a default."""
    encoder = {"cats_strings": known, "zeros": 1}
    size = len(known) + 2
    shape = onnx.numpy_helper.from_array(np.array([-1, len(known)]), "shape")
    weights = onnx.numpy_helper.from_array(np.float32([[k - 1.25] for k in range(size)]), "W")
    nodes = [
        coded(), helper.make_node("OneHotEncoder", ["city"], ["wide"], domain="ai.onnx.ml", **encoder),
        helper.make_node("Reshape", ["wide", "shape"], ["hot"]),
        helper.make_node("Concat", ["hot", "code", "income"], ["all"], axis=1),
        helper.make_node("MatMul", ["all", "W"], ["s"]), helper.make_node("Sigmoid", ["s"], ["p"]),
    ]  # fmt: skip
    model = by_column(nodes)
    model.graph.initializer.extend([shape, weights])
    read = loans(model)
    assert read.opaque is None
    hot = np.array([[city == text for text in known] for city in LOANS["city"]], dtype=float)
    code = LOANS["city"].map({"Bonn": 0.0, "Köln": 1.0, "Ulm": 7.0}).astype(float)
    odds = np.column_stack([hot, code, LOANS["income"].astype(float)]) @ (np.arange(size) - 1.25)
    np.testing.assert_allclose(read.raw(LOANS), odds, rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(read.decide(read.matrix(LOANS)), read.codes(LOANS))  # asked for rows of columns


def test_columns_that_are_not_read_are_named() -> None:
    """Whole numbers of a column that has others, and numbers that are taken as texts; both predict."""
    cut = by_column([helper.make_node("Cast", ["income"], ["p"], to=1)], numbers=INT64)
    written = helper.make_node("LabelEncoder", ["age"], ["p"], domain="ai.onnx.ml",
                               keys_strings=["30"], values_floats=[2.0], default_float=-1.0)  # fmt: skip
    for model, named in (
        (cut, "its input income takes whole numbers, and income has others"),
        (by_column([written], age=onnx.TensorProto.STRING), "its input age takes texts, and age is a number"),
    ):
        known = loans(model, scores="logits")
        assert known.opaque == f"this model is opaque: {named}; {PREDICT}"
    np.testing.assert_array_equal(known.codes(LOANS), LOANS["age"] == 30)


@pytest.mark.parametrize("stem", ["columns_forest", "columns_network"])
def test_a_pipeline_of_a_frame_is_read_as_skl2onnx_exports_it(stem: str) -> None:
    """Encoders, scalers and all: its optimum is not beaten by any of many points that the runtime accepts."""
    frame = table("loans")
    grade = {"kind": "ordinal", "categories": GRADES}
    features = {**dict.fromkeys(frame.columns.drop("outcome")), "grade": grade}
    question = pose(frame, "outcome", FOLDER / f"{stem}.onnx", desired="good", features=features, immutable=["member"])
    known, data = question.classifier, question.dataset.frame
    assert known.opaque is None
    np.testing.assert_array_equal(known.decide(known.matrix(data)), known.codes(data))
    factual = int(np.flatnonzero(known.codes(data) == 0)[0])
    for method in (CeOcl(), CeOcl(engine="milp")):
        explanation = explain(method, question, factual, time_limit=60)
        assert explanation.answers[0].status.name == "OPTIMAL"
        assert explanation.context.verdicts == ("accepted",)
        rng, origin = np.random.default_rng(0), data.iloc[factual]
        drawn = data.iloc[rng.integers(0, len(data), 5000)].reset_index(drop=True)
        for name in data:
            kept = rng.random(5000) < (1.0 if name == "member" else 0.6)
            drawn.loc[kept, name] = origin[name]
        objective = method.objective(next(iter(question.problems.values())))
        cost = objective.evaluate(question.dataset.space, data.iloc[[factual]], drawn[known.codes(drawn) == 1])
        assert explanation.answers[0].objective <= cost.min() + 1e-6
