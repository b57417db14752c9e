"""Models that the authors of a paper published as CSV files of rules and weights, as fitted scikit-learn estimators.

A tree is one line a rule: ``column <= threshold`` where the column holds 1, ``-column <= threshold`` where it holds -1.
The rules of a leaf have its ``ID`` and run from the root down; a right branch's threshold lies a small gap beyond its
left one's, so that a solver may tell them apart. Trees compare inputs rounded to 32 bits: thresholds are rounded
likewise, so that an input goes as the rules have it wherever it is not in the gap.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError, choices
from harness.core.inputs import Input
from harness.data import Dataset, Source, read_bytes
from harness.data.published import Scale, inputs_of, published_name
from harness.models.grown import NODE, boosting_of, grown

NO_COLUMNS = {
    "Tree_id", "ID", "node_ID", "threshold", "prediction", "initial_prediction", "learning_rate", "intercept",
}  # fmt: skip
CODES = np.array([0, 1])
GAP = 1e-5  # the greatest between the thresholds of a left and of a right branch

Leaf = tuple[list[tuple[int, bool, float]], float]  # branches from the root: column, whether left, threshold; value
Node = tuple[int, int, int, float]  # left child, right child, column, threshold
LEAF: Node = (-1, -1, -2, -2.0)


def load_published(
    family: str,
    source: Source,
    dataset: Dataset,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
) -> Classifier:
    """The classifier of a published file.

    Parameters
    ----------
    family
        ``lr``, ``svm``, ``cart``, ``rf``, ``gbm`` or ``mlp``.
    columns
        The inputs in order, where the file does not name them.
    scale
        As in ``inputs_of``.

    Raises
    ------
    DatasetError
        If there is no such file, or it does not fit the dataset.
    """
    if family not in FAMILIES:
        raise HarnessError(f"model.family={family} does not exist; {choices(family, FAMILIES)}.")
    table = pd.read_csv(io.BytesIO(read_bytes(source)))
    named = columns or [column for column in table if column not in NO_COLUMNS]
    inputs = inputs_of(named, dataset, scale)
    estimator = _estimator(family, table, list(inputs), columns)
    return Classifier(estimator, tuple(inputs.values()), tuple(dataset.classes))


def reload_published(source: Source, model: Mapping[str, Any], dataset: str, inputs: Sequence[Input]) -> Any:
    """The estimator of a published file again, from the settings of the model and the inputs that it had.

    Raises
    ------
    DatasetError
        If there is no such file.
    """
    table = pd.read_csv(io.BytesIO(read_bytes(source)))
    return _estimator(
        model["family"], table, list(map(published_name, inputs)), (model.get("columns") or {}).get(dataset)
    )


def _estimator(family: str, table: pd.DataFrame, inputs: Sequence[str], columns: Sequence[str] | None) -> Any:
    """The estimator of a published file, of inputs that are named; ``columns`` as for ``load_published``."""
    own = [f"node_{columns.index(name)}" for name in inputs] if columns else list(inputs)
    estimator = FAMILIES[family](table, own)
    estimator.n_features_in_ = len(own)
    return estimator


def _linear(kind: type, table: pd.DataFrame, columns: Sequence[str]) -> Any:
    estimator = kind()
    estimator.coef_ = table[columns].to_numpy(float)[:1]
    estimator.intercept_ = table["intercept"].to_numpy(float)[:1]
    estimator.classes_, estimator.n_iter_ = CODES, np.array([1])
    return estimator


def load_regressor(source: Source, inputs: Sequence[Input]) -> Classifier:
    """A published network of ReLUs for a number, whose file has the inputs in this order as ``node_0`` and so on.

    Raises
    ------
    DatasetError
        If there is no such file.
    """
    table = pd.read_csv(io.BytesIO(read_bytes(source)))
    estimator = _layers(MLPRegressor(), table, [f"node_{place}" for place in range(len(inputs))])
    estimator.n_features_in_, estimator.out_activation_ = len(inputs), "identity"
    return Classifier(estimator, tuple(inputs))


def _network(table: pd.DataFrame, columns: Sequence[str]) -> MLPClassifier:
    estimator = _layers(MLPClassifier(), table, columns)
    estimator.out_activation_ = "logistic"
    estimator.classes_, estimator._label_binarizer = CODES, LabelBinarizer().fit(CODES)
    return estimator


def _layers(estimator: Any, table: pd.DataFrame, columns: Sequence[str]) -> Any:
    """The network of one output with the published weights of its layers."""
    coefs, intercepts, below = [], [], list(columns)
    for _, layer in table.sort_values(["layer", "node"]).groupby("layer"):
        coefs.append(layer[below].to_numpy(float).T)
        intercepts.append(layer["intercept"].to_numpy(float))
        below = [f"node_{k}" for k in range(len(layer))]
    estimator.set_params(hidden_layer_sizes=tuple(len(own) for own in intercepts[:-1]))
    estimator.coefs_, estimator.intercepts_ = coefs, intercepts
    estimator.n_layers_, estimator.n_outputs_ = len(coefs) + 1, 1
    return estimator


def _cart(table: pd.DataFrame, columns: Sequence[str]) -> DecisionTreeClassifier:
    estimator = _tree(DecisionTreeClassifier(), table, columns)
    estimator.classes_, estimator.n_classes_ = CODES, 2
    return estimator


def _forest(table: pd.DataFrame, columns: Sequence[str]) -> RandomForestClassifier:
    trees = [_cart(rules, columns) for _, rules in table.groupby("Tree_id")]
    estimator = RandomForestClassifier(len(trees))
    estimator.estimator_, estimator.estimators_ = DecisionTreeClassifier(), trees
    estimator.classes_, estimator.n_classes_, estimator.n_outputs_ = CODES, 2, 1
    return estimator


def _boosting(table: pd.DataFrame, columns: Sequence[str]) -> GradientBoostingClassifier:
    if set(table["initial_prediction"]) != {0}:
        raise HarnessError("a published boosting model starts from another score than 0, which cannot be read.")
    trees = [_tree(DecisionTreeRegressor(), rules, columns) for _, rules in table.groupby("Tree_id")]
    return boosting_of([[tree] for tree in trees], float(table["learning_rate"].iloc[0]), len(columns))


def _tree(estimator: Any, rules: pd.DataFrame, columns: Sequence[str]) -> Any:
    """The estimator with the tree that the rules describe; the value of an inner node is the mean of those below."""
    leaves, nodes, values = _leaves(rules, columns), list[Node](), list[float]()
    _grow(leaves, nodes, values)
    kinds = 2 if isinstance(estimator, DecisionTreeClassifier) else 1
    kept = np.zeros(len(nodes), dtype=NODE)
    for name, own in zip(("left_child", "right_child", "feature", "threshold"), zip(*nodes, strict=True), strict=True):
        kept[name] = own
    kept["threshold"] = kept["threshold"].astype(np.float32)
    kept["n_node_samples"] = kept["weighted_n_node_samples"] = 1
    shares = np.array([[1 - value, value][-kinds:] for value in values])
    return grown(estimator, kept, shares, max(len(branches) for branches, _ in leaves), len(columns))


def _leaves(rules: pd.DataFrame, columns: Sequence[str]) -> list[Leaf]:
    signs, thresholds = rules[list(columns)].to_numpy(float), rules["threshold"].to_numpy(float)
    at = np.abs(signs).argmax(axis=1)
    left = signs[np.arange(len(rules)), at] > 0
    branches = zip(at.tolist(), left.tolist(), np.where(left, thresholds, -thresholds).tolist(), strict=True)
    leaves: dict[Any, Leaf] = {}
    for leaf, value, branch in zip(rules["ID"], rules["prediction"], branches, strict=True):
        leaves.setdefault(leaf, ([], float(value)))[0].append(branch)
    return list(leaves.values())


def _grow(leaves: Sequence[Leaf], nodes: list[Node], values: list[float], depth: int = 0) -> int:
    """Append the nodes of the tree that has these leaves, depth first, and return the number of its root."""
    me = len(nodes)
    nodes.append(LEAF)
    values.append(float(np.mean([value for _, value in leaves])))
    if len(leaves) == 1 and len(leaves[0][0]) == depth:
        return me
    sides = [[leaf for leaf in leaves if leaf[0][depth:] and leaf[0][depth][1] is left] for left in (True, False)]
    cuts = [{branches[depth][::2] for branches, _ in side} for side in sides]
    if sum(map(len, sides)) < len(leaves) or [len(cut) for cut in cuts] != [1, 1]:
        raise HarnessError("the rules of a published model are no tree.")
    (column, threshold), (other, beyond) = cuts[0].pop(), cuts[1].pop()
    if column != other or not 0 <= beyond - threshold <= GAP:
        raise HarnessError("the rules of a published model are no tree.")
    below = [_grow(side, nodes, values, depth + 1) for side in sides]
    nodes[me] = (below[0], below[1], column, threshold)
    return me


FAMILIES: Mapping[str, Callable[[pd.DataFrame, Sequence[str]], Any]] = {
    "lr": partial(_linear, LogisticRegression),
    "svm": partial(_linear, LinearSVC),
    "cart": _cart,
    "rf": _forest,
    "gbm": _boosting,
    "mlp": _network,
}
