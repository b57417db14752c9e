"""Sums of trees as ONNX lists them: attribute by attribute, of nodes and of leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.errors import UnsupportedError
from harness.models.runtime.onnx_trees import tree_ensemble

# One split of the first column at .5, and three leaves' weights: of the left one for two classes.
STUMP: dict[str, Any] = {
    "classlabels_int64s": [0, 1, 2], "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": [b"BRANCH_LEQ", b"LEAF", b"LEAF"],
    "class_treeids": [0, 0, 0], "class_nodeids": [1, 1, 2], "class_ids": [0, 1, 2], "class_weights": [0.25, 0.75, 1.0],
}  # fmt: skip


def read(**other: Any) -> Any:
    def compared(features: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return features, thresholds, np.zeros(len(features), dtype=bool)

    return tree_ensemble("TreeEnsembleClassifier", {**STUMP, **other}, True, compared)


def test_each_leaf_has_the_weights_that_name_it() -> None:
    (tree,) = read().trees
    assert sorted(tree.value[tree.left < 0].tolist()) == [[0.0, 0.0, 1.0], [0.25, 0.75, 0.0]]


@pytest.mark.parametrize("name", ["class_treeids", "class_nodeids", "class_ids", "class_weights"])
@pytest.mark.parametrize("classes", [[0, 1, 2], [0, 1]])
def test_a_list_that_is_cut_short_is_a_sentence(name: str, classes: list[int]) -> None:
    with pytest.raises(UnsupportedError, match="lists attributes of leaves of different lengths"):
        read(**{"classlabels_int64s": classes, name: STUMP[name][:2]})


def test_a_mean_of_trees_is_read_of_regressors_too() -> None:
    """Of two trees each leaf counts half."""
    nodes = {name: STUMP[name] * 2 for name in STUMP if name.startswith("nodes_")} | {
        "nodes_treeids": [0] * 3 + [1] * 3
    }
    leaves = {"target_treeids": [0, 0, 1, 1], "target_nodeids": [1, 2] * 2, "target_ids": [0] * 4}
    given = {**nodes, **leaves, "target_weights": [1.0, 2.0, 4.0, 8.0], "n_targets": 1}

    def compared(features: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return features, thresholds, np.zeros(len(features), dtype=bool)

    for aggregate, share in ((b"SUM", 1.0), (b"AVERAGE", 0.5)):
        found = tree_ensemble("TreeEnsembleRegressor", {**given, "aggregate_function": aggregate}, True, compared)
        values = [sorted(tree.value[tree.left < 0].ravel().tolist()) for tree in found.trees]
        assert values == [[share, 2 * share], [4 * share, 8 * share]]
