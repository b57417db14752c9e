"""Models of other libraries: what is read of them is what their library computes, and every misfit is one sentence."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.brought import FOLDER, INPUTS, PIMA, asked
from support.loans import FRAME as LOANS
from support.loans import SPACE as LOAN_SPACE

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from harness.evaluation import checker
from harness.library import explain, pose
from harness.models.adopt import from_file
from harness.models.runtime.source import ModelSource
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.ce_ocl import CeOcl
from methods.estimators.trees import ensemble
from methods.nearest import Nearest

onnx = pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'onnx'")
helper, FLOAT, DOUBLE, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64

TREES = ("sk_forest", "sk_forest_three", "sk_boosting", "sk_number", "sk_scaled_forest", "catboost", "catboost_three",
         "catboost_number", "lightgbm", "lightgbm_dictionaries", "lightgbm_three", "lightgbm_number")  # fmt: skip
NETWORKS = ("sk_linear", "sk_network", "sk_network_three", "torch_one", "torch_three_row", "torch_two_older",
            "torch_batchnorm")  # fmt: skip


def session(model: Path | Any) -> Any:
    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def computed(model: Path | Any, points: np.ndarray, kind: Any = np.float32) -> list[Any]:
    """All outputs, row by row, of the runtime asked directly."""
    runs, (given,) = session(model), session(model).get_inputs()
    rows = [runs.run(None, {given.name: row[None].astype(kind)}) for row in points]
    return [[row[place] for row in rows] for place in range(len(rows[0]))]


def scores_of(outputs: list[Any]) -> np.ndarray:
    """The last output as a matrix."""
    rows = [list(row[0].values()) if isinstance(row, list) else np.ravel(row) for row in outputs[-1]]
    return np.array(rows, dtype=float)


def around(cuts: Sequence[np.ndarray], base: np.ndarray, count: int = 3000) -> np.ndarray:
    """Rows with values at thresholds, and one float32, one float64 and half a float32 aside."""
    rng = np.random.default_rng(0)
    points = base[rng.integers(0, len(base), count)].copy()
    for column, own in enumerate(cuts):
        if not len(own):
            continue
        at = own[rng.integers(0, len(own), count)]
        single = at.astype(np.float32)
        above, below = (np.nextafter(single, np.float32(side)).astype(float) for side in (np.inf, -np.inf))
        ways = [
            at,
            above,
            below,
            np.nextafter(at, np.inf),
            np.nextafter(at, -np.inf),
            (at + above) / 2,
            (at + below) / 2,
        ]
        chosen, change = rng.integers(0, len(ways), count), rng.random(count) < 0.7
        points[change, column] = np.choose(chosen, ways)[change]
    return points


def thresholds(classifier: Classifier, width: int) -> list[np.ndarray]:
    trees = ensemble(classifier.estimator).trees
    return [np.concatenate([t.threshold[(t.column == k) & (t.left >= 0)] for t in trees]) for k in range(width)]


# --- what is read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", TREES)
def test_trees_are_read_as_the_runtime_computes_them(stem: str) -> None:
    """At random points, on and next to every threshold in float32 and float64, and with gaps."""
    path = FOLDER / f"{stem}.onnx"
    classifier = asked(path, stem)
    assert classifier.opaque is None
    model = ensemble(classifier.estimator)
    rng = np.random.default_rng(1)
    anywhere = rng.uniform(INPUTS.min(axis=0), INPUTS.max(axis=0), (500, 8))
    points = np.vstack([around(thresholds(classifier, 8), INPUTS), anywhere])
    points = np.vstack([points, np.where(rng.random((1000, 8)) < 0.3, np.nan, points[:1000])])
    sums, outputs = model.raw(points), computed(path, points)
    scores, near = scores_of(outputs), max(model.rounding(0.0), 1e-9)
    if "number" in stem:
        np.testing.assert_allclose(sums, scores, atol=near + 1e-6 * np.abs(sums).max())
        return
    if sums.shape[1] == 1:
        own = 1 / (1 + np.exp(-sums[:, 0])) if model.logistic else sums[:, 0]
        np.testing.assert_allclose(own, scores[:, 1], atol=1e-5)
        lead = sums[:, 0] - classifier.raw_threshold
        codes, sure = (lead > 0).astype(int), np.abs(lead) > near
    else:
        ordered = np.sort(sums, axis=1)
        codes, sure = sums.argmax(axis=1), ordered[:, -1] - ordered[:, -2] > 2 * near
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(codes[sure], np.ravel(outputs[0])[sure])
    np.testing.assert_array_equal(classifier.decide(points), np.ravel(outputs[0]))


@pytest.mark.parametrize("stem", NETWORKS)
def test_networks_are_read_as_the_runtime_computes_them(stem: str) -> None:
    path = FOLDER / f"{stem}.onnx"
    classifier = asked(path, stem)
    assert classifier.opaque is None
    points = np.vstack([INPUTS, np.random.default_rng(1).uniform(0, INPUTS.max(axis=0), (300, 8))])
    scores, raw = scores_of(computed(path, points)), classifier.estimator.decision_function(points)
    if scores.shape[1] == 1 and "batchnorm" not in stem:  # log odds
        np.testing.assert_allclose(raw, scores[:, 0], rtol=1e-4, atol=1e-4)
    elif raw.ndim == 1:
        np.testing.assert_allclose(1 / (1 + np.exp(-raw)), scores[:, -1], atol=1e-4)
    expected = scores.argmax(axis=1) if scores.shape[1] > 1 else raw > 0
    wrong = classifier.decide(points) != expected
    assert not (wrong & (np.abs(raw) > 1e-4 if raw.ndim == 1 else wrong)).any()
    if raw.ndim > 1:
        np.testing.assert_array_equal(raw.argmax(axis=1), expected)


@pytest.mark.parametrize("stem", ["sk_forest", "sk_boosting", "torch_one", "sk_network", "catboost", "lightgbm"])
def test_counterfactuals_are_proven_and_hold_for_the_runtime(stem: str) -> None:
    """Each is re-predicted by a session of the test's own; none of many random points is nearer."""
    path = FOLDER / f"{stem}.onnx"
    question = pose(PIMA, "Outcome", path, desired="0", immutable=["Age"])
    factual = int(np.flatnonzero(question.classifier.codes(question.dataset.frame) == 1)[0])
    explanation = explain(CeOcl(alpha=0.0), question, factual, n=2, time_limit=30)
    assert [answer.status.name for answer in explanation.answers] == ["OPTIMAL", "OPTIMAL"]
    assert explanation.context.verdicts == ("accepted", "accepted")
    rows = np.array([list(answer.row.values()) for answer in explanation.answers], dtype=float)
    scores = scores_of(computed(path, rows))
    assert (scores[:, 0] <= 0 if stem == "torch_one" else scores[:, 1] <= 0.5).all()
    rng, start = np.random.default_rng(0), INPUTS[factual]
    whole = [feature.kind.value == "integer" for feature in question.dataset.space.features]
    span = np.array([feature.range for feature in question.dataset.space.features])
    drawn = start + rng.normal(size=(20_000, 8)) * span * rng.choice([0.02, 0.1, 0.3], (20_000, 1))
    drawn = np.where(whole, np.round(drawn), drawn)
    drawn[:, 7] = start[7]
    drawn = np.clip(drawn, INPUTS.min(axis=0), INPUTS.max(axis=0))
    valid = question.classifier.decide(drawn) == 0
    best = np.abs((drawn[valid] - start) / span).sum(axis=1).min()
    assert explanation.answers[0].objective <= best + 1e-9


def tree_model(mode: str, kind: int = FLOAT, scale: float | None = None) -> Any:
    """Two trees whose splits all have one mode, in front of them a ``Scaler`` or not."""
    split = (0.3, -1.7, 2.5)
    given = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0], "nodes_values": [split[0], split[1], 0, 0, 0, split[2], 0, 0],
        "nodes_modes": [mode, mode, "LEAF", "LEAF", "LEAF", mode, "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1] * 8,
        "target_treeids": [0, 0, 0, 1, 1], "target_nodeids": [2, 3, 4, 1, 2], "target_ids": [0] * 5,
        "target_weights": [1.0, 2.5, -3.0, 0.125, 10.0], "n_targets": 1, "base_values": [0.5],
    }  # fmt: skip
    nodes, source = [], "X"
    if scale is not None:
        nodes.append(
            helper.make_node("Scaler", ["X"], ["S"], domain="ai.onnx.ml", offset=[0.1, 7.0], scale=[scale, 0.7])
        )
        source = "S"
    nodes.append(helper.make_node("TreeEnsembleRegressor", [source], ["y"], domain="ai.onnx.ml", **given))
    return model_of(nodes, 2, [("y", FLOAT, [None, 1])], kind=kind)


def model_of(
    nodes: list[Any], width: int | None, outputs: list[Any], constants: Sequence[Any] = (), kind: int = FLOAT
) -> Any:
    shown = [helper.make_tensor_value_info(*output) for output in outputs]
    inputs = [helper.make_tensor_value_info("X", kind, [None, width])]
    graph = helper.make_graph(nodes, "g", inputs, shown, list(constants))
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


PAIR = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)) * 3, columns=["a", "b"])
PAIR["y"] = PAIR["a"] * 2


def pair(model: Any, **settings: Any) -> Classifier:
    return pose(PAIR, "y", ModelSource(model, **settings), desired=">= 0", task="regression").classifier


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
def test_every_way_of_comparing_is_read(mode: str, kind: int) -> None:
    model = tree_model(mode, kind)
    classifier = pair(model)
    assert classifier.opaque is None
    cuts = [np.float32([0.3]).astype(float), np.float32([-1.7, 2.5]).astype(float)]
    points = around(cuts, PAIR[["a", "b"]].to_numpy())
    points = np.where(np.random.default_rng(1).random(points.shape) < 0.1, np.nan, points)
    found = scores_of(computed(model, points, np.float32 if kind == FLOAT else np.float64))
    np.testing.assert_allclose(ensemble(classifier.estimator).raw(points), found, atol=1e-5)


@pytest.mark.parametrize("scale", [0.37, -2.1, 1e6, 1e-6])
def test_thresholds_behind_a_scaler_are_those_of_its_own_float32(scale: float) -> None:
    """Also where it turns the order round; where two inputs of float32 become one, and one becomes two."""
    model = tree_model("BRANCH_LEQ", scale=scale)
    classifier = pair(model)
    assert classifier.opaque is None
    cuts = thresholds(classifier, 2)
    far = np.abs(np.concatenate(cuts)).max()
    points = around(cuts, np.random.default_rng(0).uniform(-far, far, (50, 2)))
    found = scores_of(computed(model, points))
    np.testing.assert_allclose(ensemble(classifier.estimator).raw(points), found, atol=1e-5)
    assert len(np.unique(np.round(found, 3))) > 3


@pytest.mark.parametrize("mode", ["BRANCH_EQ", "BRANCH_NEQ"])
def test_equalities_are_refused_by_name(mode: str) -> None:
    classifier = pair(tree_model(mode))
    assert f"nodes of mode {mode}" in classifier.opaque
    assert classifier.opaque == CeOcl().refuses(Problem(None, classifier, None, None, None))


def test_a_reading_that_differs_from_the_runtime_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.models.runtime import onnx_trees

    monkeypatch.setattr(onnx_trees, "MODES", ("BRANCH_LEQ", "BRANCH_EQ"))
    assert "gives other numbers than onnxruntime does" in pair(tree_model("BRANCH_EQ")).opaque


@pytest.mark.parametrize(("stem", "named"), [("sk_tanh", "operator Tanh"), ("sk_products", "operator ConstantOfShape")])
def test_what_is_not_read_is_named_and_predicts(stem: str, named: str) -> None:
    path = FOLDER / f"{stem}.onnx"
    question = pose(PIMA, "Outcome", path, desired="0")
    assert named in question.classifier.opaque
    np.testing.assert_array_equal(
        question.classifier.codes(question.dataset.frame), np.ravel(computed(path, INPUTS)[0])
    )
    factual = int(np.flatnonzero(question.classifier.codes(question.dataset.frame) == 1)[0])
    assert explain(Nearest(), question, factual).context.verdicts == ("accepted",)
    refused = explain(CeOcl(), question, factual).answers[0]
    assert named in refused.detail


# --- outputs, columns ---------------------------------------------------------------------------------------------


def affine(outputs: list[Any], width: int | None = 2, end: Sequence[Any] = ()) -> Any:
    weights = np.array([[1.0], [-2.0]], dtype=np.float32)
    constants = [onnx.numpy_helper.from_array(weights, "W"), onnx.numpy_helper.from_array(np.float32([0.25]), "b")]
    return model_of([helper.make_node("Gemm", ["X", "W", "b"], ["s"]), *end], width, outputs, constants)


def two(model: Any, **settings: Any) -> Classifier:
    table = PAIR.assign(y=(PAIR["a"] > 0).astype(int))
    return pose(table, "y", ModelSource(model, **settings), desired="1").classifier


def test_the_output_is_the_only_one_that_can_be_or_said() -> None:
    sigmoid = [helper.make_node("Sigmoid", ["s"], ["p"])]
    both = affine([("s", FLOAT, [None, 1]), ("p", FLOAT, [None, 1])], end=sigmoid)
    with pytest.raises(
        HarnessError, match=r"has the outputs s, p; set ModelSource\(..., output='p'\), or another that has"
    ):
        two(both)
    with pytest.raises(HarnessError, match=r"no output 'q'; set output of ModelSource to one of s, p"):
        two(both, output="q")
    rows = PAIR[["a", "b"]].to_numpy()
    odds, share = two(both, output="s"), two(both, output="p")
    assert odds.opaque is share.opaque is None
    np.testing.assert_allclose(odds.grade(rows), share.grade(rows), atol=1e-6)
    np.testing.assert_array_equal(share.decide(rows), rows @ [1, -2] + 0.25 > 0)


def test_scores_of_an_unknown_kind_are_asked_for() -> None:
    tanh = [helper.make_node("Tanh", ["s"], ["t"])]
    model = affine([("t", FLOAT, [None, 1])], end=tanh)
    with pytest.raises(
        HarnessError, match=r"or log odds .* scores='probabilities'\) or ModelSource\(..., scores='logits'\)"
    ):
        two(model)
    with pytest.raises(HarnessError, match=r"scores='odds'\) does not exist; allowed: probabilities, logits"):
        two(model, scores="odds")
    rows = PAIR[["a", "b"]].to_numpy()
    np.testing.assert_array_equal(two(model, scores="logits").codes(PAIR), rows @ [1, -2] + 0.25 > 0)


def test_columns_are_counted_and_named() -> None:
    def of(width: int | None, **settings: Any) -> Classifier:
        constants = [onnx.numpy_helper.from_array(np.arange(width or 0, dtype=np.float32)[:, None] - 2, "W")]
        model = model_of([helper.make_node("MatMul", ["X", "W"], ["s"])], width, [("s", FLOAT, [None, 1])], constants)
        source = ModelSource(model, **settings)
        return from_file(source, LOAN_SPACE, LOANS, ("bad", "good"), name="loans", names=("bad", "good"))

    spread = of(7)
    expected = np.column_stack(
        [
            LOANS["age"], LOANS["income"], *((LOANS["city"] == city) for city in ("Bonn", "Köln", "Ulm")),
            *((LOANS["member"] == value) for value in (False, True)),
        ]
    ).astype(float)  # fmt: skip
    np.testing.assert_array_equal(spread.matrix(LOANS), expected)
    np.testing.assert_array_equal(spread.codes(LOANS), expected @ (np.arange(7) - 2) > 0)
    np.testing.assert_array_equal(of(6).matrix(LOANS), expected[:, [0, 1, 2, 3, 4, 6]])
    np.testing.assert_array_equal(of(6, columns="scaled").matrix(LOANS), LOAN_SPACE.encode(LOANS))
    listed = of(3, columns=["income", "city=Ulm", "member"])
    np.testing.assert_array_equal(listed.matrix(LOANS), expected[:, [1, 4, 6]])
    names = "age, income, city=Bonn, city=Köln, city=Ulm, member=False, member=True"
    for width, settings, sentence in (
        (5, {}, rf"has 5 columns, and the data have 6 or 7: {names}; set model.columns=\[...\]"),
        (5, {"columns": "scaled"}, "has 5 columns, and the data have 6 scaled ones"),
        (5, {"columns": ["age", "income"]}, "has 5 columns, and model.columns names 2"),
        (2, {"columns": ["age", "incom"]}, "'incom', which is no feature; did you mean 'income'"),
        (2, {"columns": ["age", "city"]}, "names city, whose categories are texts; name some of city=Bonn"),
        (2, {"columns": ["age", "city=Rom"]}, "city has no category 'Rom'"),
        (2, {"columns": "all"}, "model.columns=all does not fit; give a list of names, or scaled"),
    ):
        with pytest.raises(HarnessError, match=sentence):
            of(width, **settings)


# --- files --------------------------------------------------------------------------------------------------------


def test_a_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"\x08\x07")
    (tmp_path / "pickle.onnx").write_bytes(b"\x80\x04K\x01.")
    for name in ("no", "pickle"):
        with pytest.raises(HarnessError, match="it is no ONNX file") as fault:
            two(tmp_path / f"{name}.onnx")
        assert "\n" not in str(fault.value)
    with pytest.raises(HarnessError, match="there is no model file"):
        two(tmp_path / "absent.onnx")


def test_weights_in_other_files_are_refused(tmp_path: Path) -> None:
    """Wherever these lie: no other file is opened."""
    model = affine([("s", FLOAT, [None, 1])])
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()
    with pytest.raises(HarnessError, match=r"weights lie in another file .* external_data=False"):
        two(tmp_path / "net.onnx")


def test_a_fixed_number_of_rows_is_asked_one_by_one_or_refused() -> None:
    model = affine([("s", FLOAT, [5, 1])])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    with pytest.raises(
        HarnessError, match=r"it takes 5 rows at a time; export it with a first dimension that may be any"
    ):
        two(model)
    assert asked(FOLDER / "torch_three_row.onnx", "three").opaque is None  # one row


def test_a_library_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *a, p=package: None if name == p else found(name, *a)
        )
        with pytest.raises(HarnessError, match=f"{package} is not installed; run `uv sync --extra onnx`"):
            asked(FOLDER / "sk_forest.onnx")


@pytest.mark.parametrize("stem", ["applicants_forest", "applicants_network"])
def test_a_run_is_judged_by_its_copy_of_the_file(tmp_path: Path, stem: str) -> None:
    """With the settings by which the file was taken."""
    original = tmp_path / "mine.onnx"
    shutil.copy(FOLDER / f"{stem.replace('applicants', 'sk')}.onnx", original)
    given = [name for name in PIMA if name != "Outcome"]
    task = pose(PIMA, "Outcome", ModelSource(original, columns=given), desired="0")
    problem = next(p for p in task.problems.values() if p.target == Label(0) or str(p.target.value) == "0")
    factuals = task.dataset.frame.loc[~problem.valid(task.dataset.frame)].iloc[:3]
    run, claim = StoredRun(tmp_path / "run"), Nearest().objective(problem)
    meta = {"dataset": "pima", "model": "mine", "method": "nearest", "n_counterfactuals": 1}
    run.start(meta, problem.space, task.classifier, dict.fromkeys(factuals.index, problem.target), claim, factuals)
    explainer = Nearest().fit(problem)
    for index in factuals.index:
        found = explainer.explain(factuals.loc[[index]], 1, np.random.default_rng(0), Deadline.after(9))
        run.append([answer_row(index, 1, found.answers[0], seconds=0.1, fit_seconds=0.1, late=False)])
    original.unlink()
    again = StoredRun(tmp_path / "run")
    assert again.classifier.opaque is None
    assert type(again.classifier.estimator) is type(task.classifier.estimator)
    np.testing.assert_array_equal(again.classifier.score(factuals), task.classifier.score(factuals))
    assert [row["verdict"] for row in checker.judge(again)] == ["accepted"] * 3


def test_a_batch_normalization_has_an_epsilon_of_its_own() -> None:
    """1e-5 where the file has none, which counts beside a variance of 1e-4."""
    ones = {"scale": [1.0, 2.0], "shift": [0.5, 0.0], "mean": [0.0, 1.0], "variance": [1e-4, 1e-4]}
    constants = [
        onnx.numpy_helper.from_array(np.array(values, dtype=np.float32), name) for name, values in ones.items()
    ]
    constants.append(onnx.numpy_helper.from_array(np.array([[1.0], [-2.0]], dtype=np.float32), "W"))
    nodes = [helper.make_node("BatchNormalization", ["X", *ones], ["n"]), helper.make_node("MatMul", ["n", "W"], ["s"])]
    known = two(model_of(nodes, 2, [("s", FLOAT, [None, 1])], constants), scores="logits")
    assert known.opaque is None


@pytest.mark.parametrize(("intercepts", "own"), [([-0.5, 0.5], False), ([-0.5, 1.5], True)])
def test_two_scores_are_one_only_where_they_are_opposite(intercepts: list[float], own: bool) -> None:
    """Two logistic scores with opposite weights and other intercepts are not 1 together, which is said."""
    linear = helper.make_node(
        "LinearClassifier", ["X"], ["l", "p"], domain="ai.onnx.ml", coefficients=[-1.0, 2.0, 1.0, -2.0],
        intercepts=intercepts, classlabels_ints=[0, 1], post_transform="LOGISTIC", multi_class=0,
    )  # fmt: skip
    opaque = two(model_of([linear], 2, [("l", onnx.TensorProto.INT64, [None]), ("p", FLOAT, [None, 2])])).opaque
    assert (opaque is not None) is own
    assert not own or "gives each class a probability of its own" in str(opaque)
