"""CatBoost models: symmetric trees are read from its own JSON, and CatBoost computes the predictions."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError, short
from harness.core.inputs import Indicator, Input
from harness.core.processes import ended_by
from harness.core.space import Feature, Space
from harness.models.runtime.columns import Decoder, number
from harness.models.runtime.engine import LOGITS, PROBABILITIES, Engine, Predicted
from harness.models.runtime.optional import library
from harness.models.runtime.records import DOUBLE, Split, Tree, Trees, flat_tree

READING = """
import sys, tempfile, catboost
model = catboost.CatBoost()
model.load_model(blob=sys.stdin.buffer.read())
with tempfile.TemporaryDirectory() as folder:
    model.save_model(f"{folder}/model.json", format="json")
"""
# By loss, what CatBoost predicts by itself, of a model in memory, where that is no logarithm nor a softmax's logits.
PREDICTED = {"Poisson": "Exponent", "Tweedie": "Exponent", "MultiClassOneVsAll": "Probability"}
GREATEST = float(np.nextafter(np.finfo(np.float32).max, np.float32(0)))  # the border before gaps lies one beyond


class CatBoostEngine(Engine):
    """A CatBoost model; its scores are sums of leaves, log odds where it has classes.

    Parameters
    ----------
    content
        The bytes of its ``.cbm`` file.
    space
        The features of the data, which a model that takes categories is given by their names.
    classes
        Of the data; 0 where the target is a number.

    Raises
    ------
    UnsupportedError
        For files that are no such model, and for those that do not fit the data or take texts.
    """

    library: ClassVar[str] = "catboost"

    def __init__(self, content: bytes, space: Space, classes: int) -> None:
        self.content, self.classifier, self._model = content, classes > 0, None
        self.text: Callable[[Any], str] = str
        with _read_by_catboost():
            self.names = tuple(map(str, self.model.feature_names_))
            self.coded = frozenset(self.model.get_cat_feature_indices())
            own = np.asarray(self.model.classes_).tolist() if classes else []
        self.width, self.columns, self.kind = len(self.names), (), LOGITS
        features = named(self.names, space) if self.coded else ()
        described = self._described(features)
        info = described["features_info"]
        if others := [sort for sort in ("text_features", "embedding_features") if info.get(sort)]:
            raise UnsupportedError(f"it takes {others[0].replace('_', ' ')}; train it on numbers and categories")
        if classes and not own:
            raise UnsupportedError("it predicts numbers, and the target has classes")
        if not classes and np.size(described["scale_and_bias"][1]) > 1:
            raise UnsupportedError("it predicts several numbers; train it with a loss of one")
        self.labels, self.columns = tuple(own), tuple(feature.name for feature in features)
        with _read_by_catboost():
            parts = Parts(described, features, self.coded)
            self.text = parts.text
            self.asked = PREDICTED.get(_loss(described), "RawFormulaVal")
            self.kind = PROBABILITIES if self.asked == "Probability" else LOGITS
            try:
                self.reading = _read(described, len(own) if len(own) > 2 else 1, self.classifier, parts)
                self.decoder = Decoder(features, tuple(parts.inputs)) if features else None
                if len(own) == 2 and (threshold := self.model.get_probability_threshold()) != 0.5:
                    self.reading = (
                        f"its own threshold of probabilities is {threshold:g}, which is not read; save it with "
                        f"set_probability_threshold(0.5), and set the model's threshold={threshold:g} here"
                    )
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
            with _read_by_catboost():
                made.load_model(blob=self.content)
            self._model = made
        return self._model

    def _described(self, features: tuple[Feature, ...]) -> Mapping[str, Any]:
        """Its JSON; with the codes of all categories of the features, where there are any."""
        pool = None
        if features:
            known = [f.scale[:1] if f.numeric else (*f.categories, *_codes_of_logical(f)) for f in features]
            rows = max(map(len, known))
            listed = {
                f.name: [each[k % len(each)] for k in range(rows)] for f, each in zip(features, known, strict=True)
            }
            pool = library("catboost", "catboost").Pool(self._table(pd.DataFrame(listed)), cat_features=[*self.coded])
        with tempfile.TemporaryDirectory() as folder, _read_by_catboost():
            path = Path(folder) / "model.json"
            self.model.save_model(str(path), format="json", pool=pool)
            return json.loads(path.read_text())

    def _table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of features under the model's own names: categories as texts, by which it knows them."""
        kinds = [self.text if place in self.coded else float for place in range(len(self.names))]
        columns = zip(self.names, rows, kinds, strict=True)
        return pd.DataFrame({name: [kind(v) for v in rows[own].tolist()] for name, own, kind in columns})

    def __call__(self, rows: Any) -> Predicted:
        if self.columns:
            matrix: Any = self._table(rows[list(self.columns)])
        else:
            matrix = np.ascontiguousarray(rows, dtype=float)
        raw = self.model.predict(matrix, prediction_type=self.asked, thread_count=1)
        scores = np.asarray(raw, dtype=float).reshape(len(matrix), -1)
        if not self.classifier:
            return Predicted(None, scores)
        labels = self.model.predict(matrix, prediction_type="Class", thread_count=1)
        return Predicted(np.ravel(labels).astype(np.asarray(self.labels).dtype), scores)


@contextlib.contextmanager
def _read_by_catboost() -> Iterator[None]:
    """What CatBoost says of a damaged file, which it may read in part, as ``UnsupportedError``."""
    try:
        yield
    except UnsupportedError:
        raise
    except Exception as fault:
        raise UnsupportedError(f"it is no CatBoost model ({short(fault)})") from fault


@lru_cache(maxsize=8)
def checked(content: bytes) -> bytes:
    """The same bytes, of a file that CatBoost can read: tried in another process, which a damaged one may end.

    Raises
    ------
    UnsupportedError
        Where it does.
    """
    library("catboost", "catboost")
    if ended_by(READING, given=content):
        raise UnsupportedError("it is no CatBoost model (CatBoost's process ends where it reads it)")
    return content


def content_of(model: Any) -> bytes:
    """The bytes of a fitted model in memory, as its ``.cbm`` file has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        try:
            model.save_model(str(path))
        except Exception as fault:
            raise UnsupportedError(f"the {type(model).__name__} is not fitted ({short(fault)})") from fault
        return path.read_bytes()


def knows_names(names: tuple[str, ...]) -> bool:
    """Whether a model was trained on columns with names: CatBoost numbers the others from 0."""
    return names != tuple(map(str, range(len(names))))


def named(names: tuple[str, ...], space: Space, remedy: str = "") -> tuple[Feature, ...]:
    """The features that a model takes: by name, or in their order where it knows no names."""
    unnamed = not knows_names(names) and len(names) == len(space.names)
    if not unnamed and (strange := [name for name in names if name not in space.names]):
        raise UnsupportedError(
            f"it takes the columns {', '.join(strange)}, which the data have not as features; they have "
            f"{', '.join(space.names)}{remedy}"
        )
    return tuple(space.features) if unnamed else tuple(space[name] for name in names)


class Parts:
    """What trees split on: numbers of their inputs, which are listed as they are met.

    Parameters
    ----------
    described
        The model's JSON.
    features, coded
        Those that it takes, and the places of those that are categories; none where it takes numbers alone.
    """

    def __init__(self, described: Mapping[str, Any], features: tuple[Feature, ...], coded: frozenset[int]) -> None:
        self.features, self.inputs = features, list[Input]()
        info = described["features_info"]
        self.numbers = [
            (each["flat_feature_index"], each.get("nan_value_treatment") != "AsTrue")
            for each in info.get("float_features", ())
        ]
        self.categories = [each["flat_feature_index"] for each in info.get("categorical_features", ())]
        self.texts = {each["hash"]: each["value"] for each in info.get("cat_features_hash", ())}
        for place, feature in enumerate(features):
            if place in coded and feature.numeric:
                raise UnsupportedError(
                    f"it takes {feature.name} for a category, which is a number here; set "
                    f"features.{feature.name}.kind=categorical"
                )
            if place not in coded and number(feature) is None:
                raise UnsupportedError(f"it takes {feature.name} for a number, and its categories are texts")
        self.text = self._spelling(list(_splits(described)))  # of a category, as the model knows it

    def of(self, split: Mapping[str, Any]) -> tuple[int, float, bool]:
        """The input of a split, the threshold above which the leaf's number gets a bit, and whether a gap gets none."""
        if split["split_type"] == "FloatFeature":
            place, gap_left = self.numbers[split["float_feature_index"]]
            border = min(float(np.float32(split["border"])), GREATEST)
            if not self.features:
                return place, border, gap_left
            source = number(self.features[place])
            assert source is not None
            return self._place(source), border, gap_left
        if split["split_type"] == "OneHotFeature":
            feature, text = self.category_of(split)
            levels = tuple(value for value in feature.categories if self.text(value) == text)
            return self._place(Indicator(feature.name, levels)), 0.5, True
        raise UnsupportedError(
            f"its trees split by {split['split_type']}, statistics of categories; train it with a one_hot_max_size of "
            f"as many categories as a feature has"
        )

    def category_of(self, split: Mapping[str, Any]) -> tuple[Feature, str | None]:
        """The feature of a split by one category, and the category's text."""
        feature = self.features[self.categories[split["cat_feature_index"]]]
        return feature, self.texts.get(split["value"] % 2**32)

    def _spelling(self, splits: Sequence[Mapping[str, Any]]) -> Callable[[Any], str]:
        """Of a category: CatBoost writes True as 1 where it was given truth values, and as True where texts.

        Raises
        ------
        UnsupportedError
            Where neither, or both, are known to the model.
        """
        logical = [feature for feature in self.features if _codes_of_logical(feature)]
        told = [self.category_of(split) for split in splits if split["split_type"] == "OneHotFeature"]
        spelled = {text in ("0", "1") for feature, text in told if feature in logical}
        counted = any(split["split_type"] not in ("FloatFeature", "OneHotFeature") for split in splits)
        if logical and (len(spelled) > 1 or (not spelled and counted)):
            raise UnsupportedError(
                f"it does not tell how {logical[0].name} was written when it was trained; train it on texts, as by "
                f"table[{logical[0].name!r}].astype(str), and give the data so"
            )
        return _as_code if True in spelled else str

    def _place(self, source: Input) -> int:
        if source not in self.inputs:
            self.inputs.append(source)
        return self.inputs.index(source)


def _codes_of_logical(feature: Feature) -> tuple[str, ...]:
    """How CatBoost spells True and False itself, of a feature that has them."""
    return ("0", "1") if any(isinstance(value, bool) for value in feature.categories) else ()


def _as_code(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _splits(described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Of all trees, symmetric or not."""
    for tree in described.get("oblivious_trees", ()):
        yield from tree["splits"] or ()
    nodes = list(described.get("trees", ()))
    while nodes:
        node = nodes.pop()
        if "split" in node:
            yield node["split"]
            nodes += [node["left"], node["right"]]


def _read(described: Mapping[str, Any], outputs: int, classifier: bool, parts: Parts) -> Trees:
    """The trees of a model's JSON; ``x > border`` of float32 adds a bit to the leaf's number."""
    if "oblivious_trees" not in described:
        raise UnsupportedError("its trees are not symmetric (grow_policy), which is not read")
    if not classifier and (loss := _loss(described)) not in ("RMSE", "MAE", "Quantile", "Huber", "MAPE"):
        raise UnsupportedError(f"its loss {loss} is not read")
    scale, bias = described["scale_and_bias"]
    trees = tuple(_tree(tree, parts, outputs, float(scale)) for tree in described["oblivious_trees"])
    base = np.broadcast_to(np.array(bias, dtype=float), outputs).copy()
    return Trees(trees, base, True, DOUBLE, logistic=classifier)


def _loss(described: Mapping[str, Any]) -> str:
    given = described["model_info"].get("params", {})
    given = json.loads(given) if isinstance(given, str) else given
    return str(given.get("loss_function", {}).get("type", "RMSE"))


def _tree(tree: Mapping[str, Any], parts: Parts, outputs: int, scale: float) -> Tree:
    splits = [parts.of(split) for split in tree["splits"] or []]
    values = scale * np.array(tree["leaf_values"], dtype=float).reshape(-1, outputs)
    inner = 2 ** len(splits) - 1
    if len(values) != inner + 1:
        raise UnsupportedError(f"a tree of its has {len(values)} leaves for {len(splits)} splits")
    nodes: dict[int, Split] = {}
    for node in range(inner):  # the last split first, so that leaves are in the order of their numbers
        nodes[node] = Split(2 * node + 1, 2 * node + 2, *splits[len(splits) - (node + 1).bit_length()])
    return flat_tree(nodes, {inner + leaf: value for leaf, value in enumerate(values)}, outputs)
