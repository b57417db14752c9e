"""What the graph of an ONNX file computes, as layers or trees; an operator that is neither is named.

A new operator is one function registered with ``operator``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.models.runtime.columnwise import Step, last_before, run
from harness.models.runtime.engine import LOGITS, PROBABILITIES
from harness.models.runtime.onnx_trees import tree_ensemble
from harness.models.runtime.optional import library
from harness.models.runtime.records import DOUBLE, SINGLE, Layers, Trees

FLOATS = {1: np.float32, 11: np.float64}  # ONNX's numbers of the types that are read


@dataclass(frozen=True, eq=False)
class Stage:
    """A tensor of the graph: affine in the units of the last of ``closed`` layers, or in the inputs.

    Parameters
    ----------
    weights, shifts
        Shapes (units, columns) and (columns,), float64.
    closed
        Layers that a ReLU follows.
    steps
        How its columns come of the inputs, an operation on each after another, as the file computes them; None once
        columns are added up.
    end
        What the sums went through: ``Sigmoid``, ``Softmax``, or nothing.
    single
        Whether inputs are rounded to float32 before anything else.
    epsilon
        Relative spacing of the numbers in which the file computes it.
    opposite
        Whether it is 1 less the probability that ``end`` gives; with ``pair`` that and the probability.
    """

    weights: np.ndarray
    shifts: np.ndarray
    single: bool
    epsilon: float
    closed: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    steps: tuple[Step, ...] | None = ()
    end: str = ""
    opposite: bool = False
    pair: bool = False

    def affine(self, weights: np.ndarray | float, shifts: np.ndarray | float, step: Step | None = None) -> Stage:
        """Its columns each times a number, plus a number."""
        self.plain()
        if any(np.size(part) not in (1, self.weights.shape[1]) for part in (weights, shifts)):
            raise UnsupportedError(f"constants of another size follow {self.weights.shape[1]} columns")
        steps = None if self.steps is None or step is None else (*self.steps, step)
        return replace(self, weights=self.weights * weights, shifts=self.shifts * weights + shifts, steps=steps)

    def mixed(self, weights: np.ndarray, shifts: np.ndarray | float) -> Stage:
        """Its columns times a matrix, plus a number each."""
        self.plain()
        if weights.ndim != 2 or weights.shape[0] != self.weights.shape[1]:
            raise UnsupportedError(f"a matrix of shape {weights.shape} follows {self.weights.shape[1]} columns")
        shifted = self.shifts @ weights + np.asarray(shifts, dtype=float)
        return replace(self, weights=self.weights @ weights, shifts=np.ravel(shifted), steps=None)

    def plain(self) -> None:
        """UnsupportedError where something follows probabilities."""
        if self.end:
            raise UnsupportedError(f"its {self.end} is not the last that it computes")


Found = Stage | Trees | np.ndarray
Operator = Callable[["Graph", Any, Mapping[str, Any]], Any]
OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register a function of the graph, a node and its attributes by the names of operators."""

    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


class Graph:
    """The graph of a file, whose tensors are worked out from its input."""

    def __init__(self, model: Any) -> None:
        self.onnx = library("onnx", "onnx")
        graph = model.graph
        self.constants = {each.name: each for each in graph.initializer}
        self.inputs = [each for each in graph.input if each.name not in self.constants]
        self.outputs = list(graph.output)
        self.made = {name: node for node in graph.node for name in node.output}
        self._known: dict[str, Found] = {}

    def attributes(self, node: Any) -> dict[str, Any]:
        """Of a node, by name; tensors as arrays."""
        found = {each.name: self.onnx.helper.get_attribute_value(each) for each in node.attribute}
        tensors = self.onnx.TensorProto
        return {
            name: self.onnx.numpy_helper.to_array(value) if isinstance(value, tensors) else value
            for name, value in found.items()
        }

    def value(self, name: str) -> Found:
        """A tensor: a constant, or how it comes of the input.

        Raises
        ------
        UnsupportedError
            Naming the first operator that is not read.
        """
        if name not in self._known:
            self._known[name] = self._value(name)
        return self._known[name]

    def _value(self, name: str) -> Found:
        if name in self.constants:
            return np.asarray(self.onnx.numpy_helper.to_array(self.constants[name]))
        if name not in self.made:
            kind = self.inputs[0].type.tensor_type if len(self.inputs) == 1 else None
            width = None if kind is None else width_of(kind)
            if kind is None or kind.elem_type not in FLOATS or width is None:
                raise UnsupportedError("its inputs are not one tensor of floats with a fixed number of columns")
            single = FLOATS[kind.elem_type] is np.float32
            return Stage(np.eye(width), np.zeros(width), single, SINGLE if single else DOUBLE)
        node = self.made[name]
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
            raise UnsupportedError(f"its operator {node.op_type} is not read")
        if len(node.output) > 1 and node.domain == "ai.onnx.ml" and name == node.output[0]:
            raise UnsupportedError("its scores are labels")
        return OPERATORS[node.op_type](self, node, self.attributes(node))

    def stage(self, name: str) -> Stage:
        """A tensor that has to be one of columns."""
        found = self.value(name)
        if not isinstance(found, Stage):
            raise UnsupportedError("its trees are not the last that it computes")
        return found

    def constant(self, name: str) -> np.ndarray:
        """A tensor that has to be a constant, as the file has it."""
        found = self.value(name)
        if not isinstance(found, np.ndarray):
            raise UnsupportedError("it multiplies or compares columns with each other")
        return found

    def passed(self, name: str) -> str:
        """The tensor that another one is, after operators that change nothing but its type and shape."""
        while name in self.made and self.made[name].op_type in PASSING:
            name = self.made[name].input[0]
        return name

    def decides(self, label: str) -> str:
        """The tensor of scores whose greatest is the label; the node's own where a model operator gives both."""
        node = self.made.get(name := self.passed(label))
        if node is not None and node.op_type == "ArrayFeatureExtractor":
            node = self.made.get(name := self.passed(node.input[1]))
        if node is not None and node.op_type == "ArgMax":
            given = self.attributes(node)
            if given.get("axis", 0) in (1, -1) and not given.get("select_last_index", 0):
                return self.passed(node.input[0])
        if node is not None and node.domain == "ai.onnx.ml" and list(node.output).index(name) == 0:
            return str(node.output[1])
        raise UnsupportedError("its label is not the greatest of its scores")


PASSING = ("Identity", "Cast", "ZipMap", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout", "Normalizer")


def width_of(kind: Any) -> int | None:
    """The fixed number of columns of a tensor's type, None where it is open or the tensor is no matrix."""
    sizes = [size.dim_value for size in kind.shape.dim]
    return sizes[1] if len(sizes) == 2 and sizes[1] > 0 else None


def read(graph: Graph, score: str, label: str | None, classes: int) -> Layers | Trees:
    """What a model's scores are sums of; ``classes`` is 0 for numbers.

    Raises
    ------
    UnsupportedError
        Naming what is neither an affine map, a ReLU nor a sum of trees, without a full stop.
    """
    found = graph.value(score)
    if label is not None and graph.value(graph.decides(label)) is not found:
        raise UnsupportedError("its label is of other scores than those that it gives")
    if isinstance(found, np.ndarray):
        raise UnsupportedError("its scores are a constant")
    if isinstance(found, Trees):
        outputs = len(found.base)
        if outputs != (classes if classes > 2 else 1):
            raise UnsupportedError(f"its trees have {outputs} outputs for {classes or 'no'} classes")
        return found
    return _layers(found, classes)


def _layers(stage: Stage, classes: int) -> Layers:
    outputs = stage.weights.shape[1]
    weights, shifts = stage.weights, stage.shifts
    if stage.opposite and not stage.pair:
        raise UnsupportedError("its score is that of the first class")
    if stage.end == "Sigmoid" and outputs > 1 and classes <= 2:
        raise UnsupportedError("its Sigmoid gives each class a probability of its own")
    if not classes and (stage.end or outputs != 1):
        raise UnsupportedError(f"it gives {outputs} numbers{f' after a {stage.end}' if stage.end else ''}")
    if classes == 2 and outputs == 2:
        weights, shifts = weights[:, 1:] - weights[:, :1], shifts[1:] - shifts[:1]
    elif classes and outputs != (classes if classes > 2 else 1):
        raise UnsupportedError(f"it gives {outputs} scores for {classes} classes")
    closed = (*stage.closed, (weights, shifts))
    return Layers(tuple(part[0] for part in closed), tuple(part[1] for part in closed), stage.epsilon)


def kind_of(graph: Graph, score: str) -> str | None:
    """Whether scores are probabilities or log odds, where the operator that makes them tells; else None."""
    node = graph.made.get(name := graph.passed(score))
    if node is not None and node.op_type == "Concat":
        node = graph.made.get(graph.passed(node.input[-1]), node)
    if node is None:
        return None
    if node.op_type in ("Sigmoid", "Softmax"):
        return PROBABILITIES
    if node.op_type in ("Gemm", "MatMul", "Add", "LogSoftmax"):
        return LOGITS
    if node.op_type in ("LinearClassifier", "TreeEnsembleClassifier") and name == node.output[1]:
        given = graph.attributes(node)
        if given.get("post_transform", b"NONE") != b"NONE":
            return PROBABILITIES
        signed = node.op_type == "LinearClassifier" or min(given.get("class_weights", [0.0])) < 0
        return LOGITS if signed else PROBABILITIES
    made = graph.made.get(score)
    return PROBABILITIES if made is not None and made.op_type == "ZipMap" else None


# --- operators ----------------------------------------------------------------------------------------------------


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
    if isinstance(found, Trees) or found.end:
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
    if isinstance(found, Trees) or found.weights.shape[1] == 1:
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
    return Stage(np.eye(count), np.zeros(count), found.single, found.epsilon, closed, None)


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
def _by_column(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    """A constant for each column, or for all; the only constant that may come first is that of a sum."""
    first, second = (graph.value(name) for name in node.input)
    turned = isinstance(first, np.ndarray)
    found, constant = (second, first) if turned else (first, second)
    if not isinstance(found, Stage) or not isinstance(constant, np.ndarray):
        raise UnsupportedError(f"its {node.op_type} is of columns with each other")
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
def _taken(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    found, places = graph.stage(node.input[0]), np.ravel(graph.constant(node.input[1])).astype(int)
    if node.op_type == "Gather" and given.get("axis", 0) not in (1, -1):
        raise UnsupportedError("its Gather is of rows")
    found.plain()
    if len(places) and not -found.weights.shape[1] <= places.min() <= places.max() < found.weights.shape[1]:
        raise UnsupportedError(f"its {node.op_type} takes a column that there is not")
    steps = None if found.steps is None else (*found.steps, lambda rows: rows[:, places])
    return replace(found, weights=found.weights[:, places], shifts=found.shifts[places], steps=steps)


@operator("Concat")
def _concat(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    parts: Sequence[Stage] = [graph.stage(name) for name in node.input]
    if given.get("axis") not in (1, -1):
        raise UnsupportedError("its Concat is of rows")
    first = parts[0]
    if first.opposite and len(parts) == 2 and parts[1].weights is first.weights and not parts[1].opposite:
        return replace(first, pair=True)
    if any(part.end or part.closed is not first.closed or part.single != first.single for part in parts):
        raise UnsupportedError("its Concat is of columns of different layers")
    weights, shifts = (
        np.concatenate(rows, axis=-1) for rows in zip(*((p.weights, p.shifts) for p in parts), strict=True)
    )
    return replace(first, weights=weights, shifts=shifts, steps=_joined([part.steps for part in parts]))


def _joined(parts: Sequence[tuple[Step, ...] | None]) -> tuple[Step, ...] | None:
    if any(part is None for part in parts):
        return None

    def step(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([run(rows, part or ()) for part in parts], axis=1)

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
    if found.steps and not found.single:
        raise UnsupportedError(f"its {node.op_type} splits on scaled columns of float64")
    steps = found.steps

    def compared(column: np.ndarray, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if ((column < 0) | (column >= found.weights.shape[1])).any():
            raise UnsupportedError(f"its {node.op_type} splits on a column that there is not")
        own = np.abs(found.weights[:, column]).argmax(axis=0)
        falls = found.weights[own, column] < 0
        if not steps:
            return own, threshold, falls
        return own, last_before(steps, len(found.weights), (own, column), threshold, falls), falls

    trees = tree_ensemble(node.op_type, given, found.epsilon == SINGLE, compared)
    return replace(trees, single=found.single)
