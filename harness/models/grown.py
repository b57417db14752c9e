"""Trees and boosting made of given nodes, as fitted scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

NODE = Tree(1, np.array([1], dtype=np.intp), 1).__getstate__()["nodes"].dtype  # a node as scikit-learn keeps it


def grown(estimator: Any, nodes: np.ndarray, values: np.ndarray, depth: int, width: int) -> Any:
    """A decision tree, given unfitted, with these nodes.

    Parameters
    ----------
    nodes
        Of the type ``NODE``, the root first, shape (nodes,).
    values
        What each node predicts, shape (nodes, 1), or a share for each class, shape (nodes, classes).
    depth
        The longest way from the root to a leaf.
    width
        How many columns the tree takes.
    """
    tree = Tree(width, np.array([values.shape[1]], dtype=np.intp), 1)
    kept = np.ascontiguousarray(values, dtype=float)[:, None, :]
    tree.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": kept})
    estimator.tree_, estimator.n_features_in_, estimator.n_outputs_, estimator.max_features_ = tree, width, 1, width
    return estimator


def boosting_of(
    trees: Sequence[Sequence[DecisionTreeRegressor]], rate: float, width: int
) -> GradientBoostingClassifier:
    """Fitted boosting that starts at 0, of classes coded 0, 1, ...

    Parameters
    ----------
    trees
        Stages: a single tree each for two classes, or one for each class.
    rate
        What the trees' values are multiplied with.
    width
        How many columns the trees take.
    """
    members = np.array(trees, dtype=object).reshape(len(trees), -1)
    codes = np.arange(max(members.shape[1], 2))
    estimator = GradientBoostingClassifier(n_estimators=1, max_depth=1, learning_rate=rate, init="zero").fit(
        np.zeros((len(codes), width)), codes
    )  # for what it keeps to itself
    estimator.n_estimators = estimator.n_estimators_ = len(members)
    estimator.estimators_, estimator.train_score_ = members, np.zeros(len(members))
    return estimator
