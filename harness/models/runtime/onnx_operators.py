"""What the operators of ONNX files do to columns of numbers: each is one registered function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.models.runtime.columnwise import Step, last_before, run
from harness.models.runtime.onnx_graph import FLOATS, Found, Graph, Stage, Texts, operator, padded
from harness.models.runtime.onnx_trees import tree_ensemble
from harness.models.runtime.records import DOUBLE, SINGLE, Trees


def _wide(constant: np.ndarray) -> np.ndarray:
    return np.asarray(constant, dtype=float)


@operator("Identity", "Dropout", "ZipMap")
def _same(graph: Graph, node: Any, given: Mapping[str, Any]) -> Found:
    return graph.value(node.input[0])


@operator("Constant")
def _constant(graph: Graph, node: Any, given: Mapping[str, Any]) -> np.ndarray:
    return np.asarray(next(iter(given.values())))


@operator("Cast")
def _cast(graph: Graph, node: Any, given: Mapping[str, Any]) -> Found:
    found, kind = graph.value(node.input[0]), FLOATS.get(given["to"])
    if isinstance(found, np.ndarray):
        return found.astype(graph.onnx.helper.tensor_dtype_to_np_dtype(given["to"]))
    if kind is None:
        raise UnsupportedError("its Cast makes columns of another type than floats")
    if isinstance(found, Trees | Texts) or found.end or (found.single is None and found.steps == ()):
        return found
    if not found.steps and found.steps is not None and kind is np.float32:
        return replace(found, single=True, epsilon=SINGLE)
    steps = None if found.steps is None else (*found.steps, lambda rows: rows.astype(kind))
    return replace(found, steps=steps, epsilon=max(found.epsilon, SINGLE if kind is np.float32 else DOUBLE))


@operator("Transpose")
def _transpose(graph: Graph, node: Any, given: Mapping[str, Any]) -> np.ndarray:
    return np.transpose(graph.constant(node.input[0]), given.get("perm"))


@operator("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def _shaped(graph: Graph, node: Any, given: Mapping[str, Any]) -> Found:
    found = graph.value(node.input[0])
    if isinstance(found, np.ndarray):
        raise UnsupportedError(f"its operator {node.op_type} of a constant is not read")
    if isinstance(found, Trees | Texts) or found.weights.shape[1] == 1:
        return found
    if node.op_type == "Flatten" and given.get("axis", 1) in (1, -1):
        return found
    if node.op_type == "Reshape" and graph.constant(node.input[1])[1:].tolist() in ([-1], [found.weights.shape[1]]):
        return found
    raise UnsupportedError(f"its operator {node.op_type} changes the order of columns")


@operator("Normalizer")
def _normalizer(graph: Graph, node: Any, given: Mapping[str, Any]) -> Found:
    found = graph.value(node.input[0])
    if isinstance(found, Stage) and found.end and given.get("norm", b"MAX") == b"L1":
        return found  # of probabilities: their order stays
    raise UnsupportedError("its operator Normalizer is not read")


@operator("Relu")
def _relu(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    found = graph.stage(node.input[0])
    found.plain()
    count = found.weights.shape[1]
    closed = (*found.closed, (found.weights, found.shifts))
    return Stage(np.eye(count), np.zeros(count), found.single, found.epsilon, closed, steps=None)


@operator("Sigmoid", "Softmax", "LogSoftmax")
def _end(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    found = graph.stage(node.input[0])
    found.plain()
    if node.op_type != "Sigmoid" and given.get("axis", -1) not in (1, -1):
        raise UnsupportedError(f"its {node.op_type} is over rows")
    return replace(found, end=node.op_type.removeprefix("Log"))


@operator("MatMul")
def _matmul(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    return graph.stage(node.input[0]).mixed(_wide(graph.constant(node.input[1])), 0.0)


@operator("Gemm")
def _gemm(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    if given.get("transA", 0):
        raise UnsupportedError("its Gemm turns its rows into columns")
    weights = _wide(graph.constant(node.input[1]))
    weights = given.get("alpha", 1.0) * (weights.T if given.get("transB", 0) else weights)
    shifts = given.get("beta", 1.0) * _wide(graph.constant(node.input[2])) if len(node.input) > 2 else 0.0
    return graph.stage(node.input[0]).mixed(weights, np.ravel(shifts))


@operator("Add", "Sub", "Mul", "Div")
def _by_column(graph: Graph, node: Any, given: Mapping[str, Any]) -> Found:
    """A constant for each column, or for all; the only constant that may come first is that of a sum."""
    if graph.neutral(node):
        return graph.value(node.input[0])
    first, second = (graph.value(name) for name in node.input)
    turned = isinstance(first, np.ndarray)
    found, constant = (second, first) if turned else (first, second)
    if not isinstance(found, Stage) or not isinstance(constant, np.ndarray):
        raise UnsupportedError(f"its {node.op_type} is of columns with each other")
    if constant.dtype.kind != "f":
        raise UnsupportedError(f"its {node.op_type} is one of whole numbers")
    wide = np.ravel(_wide(constant))
    if constant.ndim > 1 and constant.shape[-1] != constant.size:
        raise UnsupportedError(f"its {node.op_type} has another constant for each row")
    if node.op_type == "Sub" and turned and found.end == "Sigmoid" and wide.tolist() == [1.0]:
        return replace(found, opposite=True)
    exact = np.ravel(constant)
    if node.op_type == "Add":
        return found.affine(1.0, wide, lambda rows: rows + exact)
    if node.op_type == "Sub":
        sign = -1.0 if turned else 1.0
        return found.affine(sign, -sign * wide, lambda rows: exact - rows if turned else rows - exact)
    if node.op_type == "Div" and turned:
        raise UnsupportedError("its Div is by columns")
    if node.op_type == "Div":
        return found.affine(1.0 / wide, 0.0, lambda rows: rows / exact)
    return found.affine(wide, 0.0, lambda rows: rows * exact)


@operator("Scaler")
def _scaler(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    found = graph.stage(node.input[0])
    offset, scale = (np.array(given.get(name, [default])) for name, default in (("offset", 0.0), ("scale", 1.0)))
    offset32, scale32 = offset.astype(np.float32), scale.astype(np.float32)
    moved = replace(found.affine(1.0, -offset, lambda rows: (rows.astype(np.float32) - offset32) * scale32))
    return replace(moved.affine(scale, 0.0), steps=moved.steps, epsilon=SINGLE)


@operator("BatchNormalization")
def _batch(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    scale, shift, mean, variance = (_wide(graph.constant(name)) for name in node.input[1:5])
    if given.get("training_mode", 0):
        raise UnsupportedError("its BatchNormalization is in training mode")
    rate = scale / np.sqrt(variance + given.get("epsilon", 1e-5))
    return graph.stage(node.input[0]).affine(rate, shift - mean * rate)


@operator("ArrayFeatureExtractor", "Gather")
def _taken(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage | Texts:
    found, places = graph.value(node.input[0]), np.ravel(graph.constant(node.input[1])).astype(int)
    if node.op_type == "Gather" and given.get("axis", 0) not in (1, -1):
        raise UnsupportedError("its Gather is of rows")
    if isinstance(found, Texts) and set(places.tolist()) <= set(range(len(found.features))):
        return Texts(tuple(found.features[place] for place in places.tolist()))
    found = graph.stage(node.input[0])
    found.plain()
    if len(places) and not -found.weights.shape[1] <= places.min() <= places.max() < found.weights.shape[1]:
        raise UnsupportedError(f"its {node.op_type} takes a column that there is not")
    taken = replace(found, weights=found.weights[:, places], shifts=found.shifts[places])
    if found.steps == ():
        return replace(taken, source=tuple(found.source[place] for place in places.tolist()))
    return replace(taken, steps=None if found.steps is None else (*found.steps, lambda rows: rows[:, places]))


@operator("Concat")
def _concat(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage | Texts:
    if given.get("axis") not in (1, -1, 2):  # 2: of codes of categories, which are no matrices yet
        raise UnsupportedError("its Concat is of rows")
    texts = [found for name in node.input if isinstance(found := graph.value(name), Texts)]
    if len(texts) == len(node.input):
        return Texts(tuple(feature for part in texts for feature in part.features))
    parts: Sequence[Stage] = [graph.stage(name) for name in node.input]
    first = parts[0]
    if first.opposite and len(parts) == 2 and parts[1].weights is first.weights and not parts[1].opposite:
        return replace(first, pair=True)
    singles = {part.single for part in parts} - {None}
    if len(singles) > 1 or any(part.end or part.closed is not first.closed for part in parts):
        raise UnsupportedError("its Concat is of columns of different layers")
    size = max(len(part.weights) for part in parts)
    weights = np.hstack([padded(part.weights, size) for part in parts])
    return replace(
        first,
        weights=weights,
        shifts=np.concatenate([part.shifts for part in parts]),
        single=singles.pop() if singles else None,
        epsilon=max(part.epsilon for part in parts),
        source=tuple(place for part in parts for place in part.source),
        steps=_joined(parts),
    )


def _joined(parts: Sequence[Stage]) -> tuple[Step, ...] | None:
    if any(part.steps is None for part in parts):
        return None
    if all(part.steps == () for part in parts):
        return ()
    ends = np.cumsum([0, *(len(part.source) for part in parts)]).tolist()

    def step(rows: np.ndarray) -> np.ndarray:
        own = (rows[:, first:last] for first, last in pairwise(ends))
        return np.concatenate([run(r, part.steps or ()) for r, part in zip(own, parts, strict=True)], axis=1)

    return (step,)


@operator("LinearClassifier", "LinearRegressor")
def _linear(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    found, post = graph.stage(node.input[0]), given.get("post_transform", b"NONE").decode()
    rows = np.array(given["coefficients"], dtype=float).reshape(-1, found.weights.shape[1])
    shifts = np.array(given.get("intercepts", np.zeros(len(rows))), dtype=float)
    moved = replace(found.mixed(rows.T, shifts), epsilon=SINGLE)
    if post == "NONE":
        return moved
    if post == "SOFTMAX":
        return replace(moved, end="Softmax")
    if post != "LOGISTIC":
        raise UnsupportedError(f"its {node.op_type} has post_transform={post}, which is not read")
    if len(rows) == 2 and (rows[0] == -rows[1]).all() and shifts[0] == -shifts[1]:
        return replace(moved, weights=moved.weights[:, 1:], shifts=moved.shifts[1:], end="Sigmoid")
    return replace(moved, end="Sigmoid")


@operator("TreeEnsembleClassifier", "TreeEnsembleRegressor")
def _trees(graph: Graph, node: Any, given: Mapping[str, Any]) -> Trees:
    found = graph.stage(node.input[0])
    if found.steps is None or found.closed:
        raise UnsupportedError(f"its {node.op_type} splits on sums of columns")
    if found.steps and found.single is False:
        raise UnsupportedError(f"its {node.op_type} splits on scaled columns of float64")
    source = list(found.source)
    steps = (lambda rows: rows[:, source], *found.steps)

    def compared(column: np.ndarray, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if ((column < 0) | (column >= found.weights.shape[1])).any():
            raise UnsupportedError(f"its {node.op_type} splits on a column that there is not")
        own = np.abs(found.weights[:, column]).argmax(axis=0)
        falls = found.weights[own, column] < 0
        if not found.steps:
            return own, threshold, falls
        return own, last_before(steps, len(found.weights), (own, column), threshold, falls), falls

    trees = tree_ensemble(node.op_type, given, found.epsilon == SINGLE, compared)
    return replace(trees, single=bool(found.single))
