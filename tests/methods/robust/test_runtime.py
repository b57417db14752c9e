"""Regions of models that other libraries compute in float32: those of trees are exact, those of networks refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import ndimage

from harness.data.sources import RAW
from harness.library import explain, pose
from harness.models.runtime.source import ModelSource
from methods.robust import Robust

onnx = pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'onnx'")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT

FOLDER = Path(__file__).parents[2] / "fixtures" / "exported"
PIMA = pd.read_csv(RAW / "pima.csv")
STEP, SIDE = 1 / 400, 8.0  # of the grid, in scaled units; the range of each feature
PAIR = pd.DataFrame(
    np.vstack([[0, 0], [SIDE, SIDE], np.random.default_rng(0).uniform(0, SIDE, (60, 2))]), columns=["a", "b"]
)


def stairs(cuts: Any, weights: Any) -> Any:
    """A tree for each cut, on a and b in turn, that adds a weight above it; behind a ``Scaler``."""
    count = len(cuts)
    ids = np.repeat(np.arange(count), 3).tolist()
    given = {
        "nodes_treeids": ids, "nodes_nodeids": [0, 1, 2] * count,
        "nodes_featureids": [part for k in range(count) for part in (k % 2, 0, 0)],
        "nodes_values": [part for cut in cuts for part in (float(cut), 0.0, 0.0)],
        "nodes_modes": ["BRANCH_LT", "LEAF", "LEAF"] * count, "nodes_truenodeids": [1, 0, 0] * count,
        "nodes_falsenodeids": [2, 0, 0] * count, "target_treeids": np.arange(count).tolist(),
        "target_nodeids": [2] * count, "target_ids": [0] * count, "target_weights": [float(w) for w in weights],
        "n_targets": 1,
    }  # fmt: skip
    nodes = [
        helper.make_node("Scaler", ["X"], ["S"], domain="ai.onnx.ml", offset=[0.0, 0.1], scale=[1 / SIDE, 0.37]),
        helper.make_node("TreeEnsembleRegressor", ["S"], ["y"], domain="ai.onnx.ml", **given),
    ]
    shown = [helper.make_tensor_value_info("y", FLOAT, [None, 1])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("X", FLOAT, [None, 2])], shown)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def computed(model: Any, points: np.ndarray) -> np.ndarray:
    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: points.astype(np.float32)})


@pytest.mark.parametrize("seed", range(4))
def test_the_closest_region_is_that_of_a_grid(seed: int) -> None:
    """By onnxruntime's numbers at 160,000 points: the nearest one around which all within rho are high enough."""
    rng, rho = np.random.default_rng(seed), 0.05
    model = stairs(rng.uniform(0.05, 0.95, 14) * np.tile([1.0, 2.8], 7), rng.normal(size=14))
    axis = (np.arange(400) + 0.5) * STEP * SIDE
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    numbers = computed(model, grid)[0].reshape(400, 400)
    high = numbers >= (level := float(np.float32(np.quantile(numbers, 0.6))))
    task = pose(PAIR.assign(y=PAIR["a"]), "y", ModelSource(model), desired=f">= {level!r}", task="regression")
    assert task.classifier.opaque is None
    wide = int(rho / STEP)
    inside = {k: ndimage.minimum_filter(high, size=2 * k + 1, mode="nearest") for k in (wide - 1, wide + 1)}
    rows = [row for row in range(len(PAIR)) if task.classifier.predict(task.dataset.frame)[row] < level][:4]
    for row in rows:
        explanation = explain(Robust(rho=rho, distance="l1", clip=True), task, row, time_limit=60)
        (answer,) = explanation.answers
        away = np.abs(grid - PAIR.iloc[row].to_numpy()).sum(axis=1).reshape(400, 400) / SIDE
        least, most = (away[inside[k]].min(initial=np.inf) for k in (wide - 1, wide + 1))
        if answer.status.name == "INFEASIBLE":
            assert np.isinf(most)
            continue
        assert answer.status.name == "OPTIMAL"
        assert explanation.context.verdicts == ("accepted",)
        assert least - 3 * STEP <= answer.objective <= most + 3 * STEP
        ends = np.array([answer.region["a"], answer.region["b"]])
        points = ends[:, 0] + rng.random((4000, 2)) * (ends[:, 1] - ends[:, 0])
        points[:500] = np.where(rng.random((500, 2)) < 0.5, ends[:, 0], ends[:, 1])
        assert (computed(model, np.clip(points, 0, SIDE))[0] >= level).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("stem", ["sk_forest", "sk_boosting", "sk_scaled_forest"])
def test_a_region_is_accepted_by_onnxruntime_itself(stem: str, norm: str) -> None:
    path = FOLDER / f"{stem}.onnx"
    task = pose(PIMA, "Outcome", path, desired="0", immutable=["Age"])
    factual = int(np.flatnonzero(task.classifier.codes(task.dataset.frame) == 1)[0])
    explanation = explain(Robust(rho=0.01, norm=norm), task, factual, time_limit=60)
    (answer,) = explanation.answers
    assert answer.status.name == "OPTIMAL"
    assert explanation.context.verdicts == ("accepted",)
    rng, row = np.random.default_rng(0), np.array(list(answer.row.values()), dtype=float)
    low, high = (row.copy() for _ in range(2))
    for name, ends in answer.region.items():
        low[list(answer.row).index(name)], high[list(answer.row).index(name)] = ends
    points = low + rng.random((3000, len(row))) * (high - low)
    points[:1000] = np.where(rng.random((1000, len(row))) < 0.5, low, high)
    assert (np.ravel(computed(path, points)[0]) == 0).all()


@pytest.mark.parametrize("stem", ["sk_network", "torch_one"])
def test_networks_are_refused_by_name(stem: str) -> None:
    task = pose(PIMA, "Outcome", FOLDER / f"{stem}.onnx", desired="0")
    factual = int(np.flatnonzero(task.classifier.codes(task.dataset.frame) == 1)[0])
    (answer,) = explain(Robust(rho=0.01), task, factual).answers
    assert answer.status.name == "UNSUPPORTED"
    assert (
        answer.detail == "no radius can be certified for a network whose sums onnxruntime rounds in a way of its own."
    )
