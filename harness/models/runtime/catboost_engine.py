"""CatBoost models of numbers: symmetric trees are read from its own JSON, and CatBoost computes the predictions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harness.core.errors import UnsupportedError, short
from harness.models.runtime.engine import LOGITS, Engine, Predicted
from harness.models.runtime.optional import library
from harness.models.runtime.records import DOUBLE, FlatTree, Trees, flat_tree


class CatBoostEngine(Engine):
    """A CatBoost model; its scores are sums of leaves, log odds where it has classes.

    Parameters
    ----------
    content
        The bytes of its ``.cbm`` file.
    classes
        Of the data; 0 where the target is a number.

    Raises
    ------
    UnsupportedError
        For files that are no such model, and for those that take categories.
    """

    library: ClassVar[str] = "catboost"

    def __init__(self, content: bytes, classes: int) -> None:
        self.content, self.classifier, self._model = content, classes > 0, None
        described = self._described()
        info = described["features_info"]
        if others := [sort for sort in info if sort != "float_features" and info[sort]]:
            raise UnsupportedError(f"it takes {others[0].replace('_', ' ')}; train it on numbers, or on 0/1 columns")
        self.names = tuple(map(str, self.model.feature_names_))
        self.width, self.columns, self.kind = len(self.names), (), LOGITS
        own = np.asarray(self.model.classes_).tolist() if classes else []
        if classes and not own:
            raise UnsupportedError("it predicts numbers, and the target has classes")
        self.labels = tuple(own)
        try:
            self.reading = _read(described, len(own) if len(own) > 2 else 1, self.classifier)
        except UnsupportedError as why:
            self.reading = str(why)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_model": None}

    @property
    def model(self) -> Any:
        """The model in CatBoost's own hands."""
        if self._model is None:
            catboost = library("catboost", "catboost")
            made = catboost.CatBoostClassifier() if self.classifier else catboost.CatBoostRegressor()
            try:
                made.load_model(blob=self.content)
            except Exception as fault:
                raise UnsupportedError(f"it is no CatBoost model ({short(fault)})") from fault
            self._model = made
        return self._model

    def _described(self) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            self.model.save_model(str(path), format="json")
            return json.loads(path.read_text())

    def __call__(self, rows: Any) -> Predicted:
        matrix = np.ascontiguousarray(rows, dtype=float)
        raw = self.model.predict(matrix, prediction_type="RawFormulaVal", thread_count=1)
        scores = np.asarray(raw, dtype=float).reshape(len(matrix), -1)
        if not self.classifier:
            return Predicted(None, scores)
        labels = self.model.predict(matrix, prediction_type="Class", thread_count=1)
        return Predicted(np.ravel(labels).astype(np.asarray(self.labels).dtype), scores)


def content_of(model: Any) -> bytes:
    """The bytes of a fitted model in memory, as its ``.cbm`` file has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        try:
            model.save_model(str(path))
        except Exception as fault:
            raise UnsupportedError(f"the {type(model).__name__} is not fitted ({short(fault)})") from fault
        return path.read_bytes()


def _read(described: Mapping[str, Any], outputs: int, classifier: bool) -> Trees:
    """The trees of a model's JSON; ``x > border`` of float32 adds a bit to the leaf's number."""
    if "oblivious_trees" not in described:
        raise UnsupportedError("its trees are not symmetric (grow_policy), which is not read")
    if not classifier and (loss := _loss(described)) not in ("RMSE", "MAE", "Quantile", "Huber", "MAPE"):
        raise UnsupportedError(f"its loss {loss} is not read")
    place = [feature["flat_feature_index"] for feature in described["features_info"]["float_features"]]
    scale, bias = described["scale_and_bias"]
    trees = tuple(_tree(tree, place, outputs, float(scale)) for tree in described["oblivious_trees"])
    base = np.broadcast_to(np.array(bias, dtype=float), outputs).copy()
    return Trees(trees, base, True, DOUBLE, logistic=classifier)


def _loss(described: Mapping[str, Any]) -> str:
    given = described["model_info"].get("params", {})
    given = json.loads(given) if isinstance(given, str) else given
    return str(given.get("loss_function", {}).get("type", "RMSE"))


def _tree(tree: Mapping[str, Any], place: list[int], outputs: int, scale: float) -> FlatTree:
    splits = tree["splits"] or []
    if strange := [split["split_type"] for split in splits if split["split_type"] != "FloatFeature"]:
        raise UnsupportedError(f"its trees split by {strange[0]}, which is no threshold")
    values = scale * np.array(tree["leaf_values"], dtype=float).reshape(-1, outputs)
    inner = 2 ** len(splits) - 1
    if len(values) != inner + 1:
        raise UnsupportedError(f"a tree of its has {len(values)} leaves for {len(splits)} splits")
    nodes: dict[int, tuple[int, int, int, float]] = {}
    for number in range(inner):  # the last split first, so that leaves are in the order of their numbers
        split = splits[len(splits) - (number + 1).bit_length()]
        border = float(np.float32(split["border"]))
        nodes[number] = 2 * number + 1, 2 * number + 2, place[split["float_feature_index"]], border
    return flat_tree(nodes, {inner + leaf: value for leaf, value in enumerate(values)}, outputs)
