"""The tree ensembles of ONNX files, ``TreeEnsembleClassifier`` and ``TreeEnsembleRegressor``, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.models.runtime.records import SINGLE, Split, Tree, Trees, flat_tree

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")  # <=, <, >=, > goes to the true branch
Compared = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def tree_ensemble(kind: str, attributes: Mapping[str, Any], single: bool, compared: Compared) -> Trees:
    """The trees of one of both operators.

    Parameters
    ----------
    attributes
        Of the node, by name.
    single
        Whether it computes in float32, as it does unless its input is float64.
    compared
        From columns and thresholds of the operator's input to those of the model's, and whether sides change.

    Raises
    ------
    UnsupportedError
        For trees that are no sum of leaves chosen by thresholds, named by what they have.
    """
    word = _Attributes(kind, attributes, single)
    classifier = kind == "TreeEnsembleClassifier"
    part = "class" if classifier else "target"
    classes = len(word.numbers("classlabels_int64s")) or len(word.numbers("classlabels_strings"))
    outputs = max(classes, 1) if classifier else int(attributes.get("n_targets", 1))
    ids = word.numbers(f"{part}_ids").astype(int)
    weights, base = word.values(f"{part}_weights"), word.values("base_values")
    if {len(word.numbers(f"{part}_{name}")) for name in ("treeids", "nodeids")} != {len(ids)} or len(ids) != len(
        weights
    ):
        raise UnsupportedError(f"its {kind} lists attributes of leaves of different lengths")
    post = word.text("post_transform", "NONE")
    logistic = False
    if classifier and outputs == 2:
        logistic, outputs, decides = _binary(ids, weights, base, post), 1, ids == ids.max(initial=0)
        weights, ids = np.where(decides, weights, 0.0), np.zeros_like(ids)
    elif post not in (("NONE", "SOFTMAX", "LOGISTIC") if classifier else ("NONE",)):
        raise UnsupportedError(f"its {kind} has post_transform={post}, which is not read")
    if len(base) not in (0, outputs):
        raise UnsupportedError(f"its {kind} has {len(base)} base_values for {outputs} outputs")
    found = _trees(word, part, ids, weights, outputs, compared)
    if (aggregate := word.text("aggregate_function", "SUM")) == "AVERAGE":
        found = tuple(replace(tree, value=tree.value / len(found)) for tree in found)
    elif aggregate != "SUM":
        raise UnsupportedError(f"its {kind} has aggregate_function={aggregate}, which is no sum")
    start = base if len(base) else np.zeros(outputs)
    return Trees(found, start, single, SINGLE, logistic)  # scores are float32 even of float64 inputs


def _binary(ids: np.ndarray, weights: np.ndarray, base: np.ndarray, post: str) -> bool:
    """Whether the probability of two classes is logistic; the sum has to be that of the second class."""
    if len(set(ids.tolist())) != 1:
        if post == "LOGISTIC" and not len(base):
            return True  # of the second class's weights, which decide
        raise UnsupportedError(f"its TreeEnsembleClassifier has weights of both classes and post_transform={post}")
    if ids[0] != 0 and len(base):
        raise UnsupportedError("its TreeEnsembleClassifier has base_values of a class that its leaves do not have")
    positive = bool((weights >= 0).all())
    if post == "LOGISTIC" and not positive:
        return True
    if post == "NONE" and positive:
        return False
    sign = "no negative" if positive else "negative"
    raise UnsupportedError(f"its TreeEnsembleClassifier has post_transform={post} of {sign} weights, which is not read")


class _Attributes:
    """The attributes of a node, each as an array; floats also where they are given as a tensor of float64."""

    def __init__(self, kind: str, attributes: Mapping[str, Any], single: bool) -> None:
        self.kind, self.attributes, self.single = kind, attributes, single

    def numbers(self, name: str) -> np.ndarray:
        return np.asarray(self.attributes.get(name, ()))

    def values(self, name: str) -> np.ndarray:
        given = self.attributes.get(f"{name}_as_tensor")
        found = np.asarray(self.attributes.get(name, ()) if given is None else given)
        return found.astype(np.float32 if self.single else float).astype(float)

    def text(self, name: str, default: str) -> str:
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)


def _trees(
    word: _Attributes, part: str, ids: np.ndarray, weights: np.ndarray, outputs: int, compared: Compared
) -> tuple[Tree, ...]:
    tree, node, feature, yes, no = (
        word.numbers(f"nodes_{name}").astype(int)
        for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    )
    threshold = word.values("nodes_values")
    modes = np.array([mode.decode() if isinstance(mode, bytes) else mode for mode in word.numbers("nodes_modes")])
    if not len(tree) == len(node) == len(feature) == len(yes) == len(no) == len(modes) == len(threshold) > 0 or len(
        word.numbers("nodes_missing_value_tracks_true")
    ) not in (0, len(tree)):
        raise UnsupportedError(f"its {word.kind} lists attributes of nodes of different lengths")
    inner = modes != "LEAF"
    if strange := sorted(set(modes[inner].tolist()) - set(MODES)):
        raise UnsupportedError(f"its {word.kind} has nodes of mode {strange[0]}, which is no threshold")
    before = np.nextafter(threshold.astype(np.float32), np.float32(-np.inf)).astype(float)
    before = before if word.single else np.nextafter(threshold, -np.inf)
    threshold = np.where(np.isin(modes, ("BRANCH_LT", "BRANCH_GTE")), before, threshold)
    swapped = np.isin(modes, ("BRANCH_GTE", "BRANCH_GT"))
    feature[inner], threshold[inner], turned = compared(feature[inner], threshold[inner])
    swapped[inner] ^= turned
    left, right = np.where(swapped, no, yes), np.where(swapped, yes, no)
    tracked = word.numbers("nodes_missing_value_tracks_true").astype(bool)  # a gap holds no comparison but by this
    gap_left = (tracked if len(tracked) else np.zeros(len(tree), dtype=bool)) ^ swapped
    nodes: dict[int, dict[int, Split]] = {}
    leaves: dict[int, dict[int, np.ndarray]] = {}
    for place, key in enumerate(zip(tree.tolist(), node.tolist(), strict=True)):
        if inner[place]:
            children = int(left[place]), int(right[place])
            split = Split(*children, int(feature[place]), float(threshold[place]), bool(gap_left[place]))
            nodes.setdefault(key[0], {})[key[1]] = split
        else:
            leaves.setdefault(key[0], {})[key[1]] = np.zeros(outputs)
    places = (word.numbers(f"{part}_{name}").astype(int) for name in ("treeids", "nodeids"))
    for number, leaf, output, weight in zip(*places, ids.tolist(), weights.tolist(), strict=True):
        if leaf not in leaves.get(number, {}) or not 0 <= output < outputs:
            raise UnsupportedError(f"its {word.kind} has a weight of a leaf or an output that there is not")
        leaves[number][leaf][output] += weight
    return tuple(flat_tree(nodes.get(number, {}), leaves.get(number, {}), outputs) for number in sorted(nodes | leaves))
