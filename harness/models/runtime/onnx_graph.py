"""What the graph of an ONNX file computes, as layers or trees; an operator that is neither is named.

A new operator is one function registered with ``operator``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Input
from harness.core.space import Feature, Kind, Space
from harness.models.runtime.columns import number
from harness.models.runtime.columnwise import Step
from harness.models.runtime.engine import LOGITS, PROBABILITIES
from harness.models.runtime.optional import library
from harness.models.runtime.records import DOUBLE, SINGLE, Layers, Trees

FLOATS = {1: np.float32, 11: np.float64}  # ONNX's numbers of the types that are read
WHOLE, TEXT = (7, 6), 8
EXACT = 2**24  # up to which float32 has all whole numbers


@dataclass(frozen=True, eq=False)
class Stage:
    """A tensor of the graph: affine in the units of the last of ``closed`` layers, or in the inputs.

    Parameters
    ----------
    weights, shifts
        Shapes (units, columns) and (columns,), float64.
    closed
        Layers that a ReLU follows.
    source, steps
        How its columns come of the inputs: their places, and an operation on each after another, as the file computes
        them; None once columns are added up.
    end
        What the sums went through: ``Sigmoid``, ``Softmax``, or nothing.
    single
        Whether inputs are rounded to float32 before anything else; None of codes of categories, which that leaves.
    epsilon
        Relative spacing of the numbers in which the file computes it.
    opposite
        Whether it is 1 less the probability that ``end`` gives; with ``pair`` that and the probability.
    """

    weights: np.ndarray
    shifts: np.ndarray
    single: bool | None
    epsilon: float
    closed: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    source: tuple[int, ...] = ()
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


@dataclass(frozen=True)
class Texts:
    """Inputs that are texts, a column each."""

    features: tuple[Feature, ...]


Found = Stage | Trees | Texts | np.ndarray
Operator = Callable[["Graph", Any, Mapping[str, Any]], Any]
OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register a function of the graph, a node and its attributes by the names of operators."""

    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


class Graph:
    """The graph of a file, whose tensors are worked out from its input.

    Parameters
    ----------
    space
        The features, where each of them is an input of its own, by its name. ``parts`` are then what is read of them.
    """

    def __init__(self, model: Any, space: Space | None = None) -> None:
        self.space, self.parts = space, list[Input]()
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
        if name not in self.made and self.space is not None:
            return self._column(name, self.space)
        if name not in self.made:
            kind = self.inputs[0].type.tensor_type if len(self.inputs) == 1 else None
            width = None if kind is None else width_of(kind)
            if kind is None or kind.elem_type not in FLOATS or width is None:
                raise UnsupportedError("its inputs are not one tensor of floats with a fixed number of columns")
            single = FLOATS[kind.elem_type] is np.float32
            source = tuple(range(width))
            return Stage(np.eye(width), np.zeros(width), single, SINGLE if single else DOUBLE, source=source)
        node = self.made[name]
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
            raise UnsupportedError(f"its operator {node.op_type} is not read")
        if len(node.output) > 1 and node.domain == "ai.onnx.ml" and name == node.output[0]:
            raise UnsupportedError("its scores are labels")
        return OPERATORS[node.op_type](self, node, self.attributes(node))

    def _column(self, name: str, space: Space) -> Stage | Texts:
        """An input that is a feature of its own."""
        kind = next(each.type.tensor_type.elem_type for each in self.inputs if each.name == name)
        feature = space[name]
        if kind == TEXT:
            if feature.numeric:
                raise UnsupportedError(f"its input {name} takes texts, and {name} is a number")
            return Texts((feature,))
        if (source := number(feature)) is None or kind not in (*FLOATS, *WHOLE):
            raise UnsupportedError(f"its input {name} takes other values than {name} has")
        if kind in WHOLE and feature.kind is Kind.CONTINUOUS:
            raise UnsupportedError(f"its input {name} takes whole numbers, and {name} has others")
        if kind in WHOLE and max(map(abs, (*feature.bounds, *feature.scale))) > EXACT:
            raise UnsupportedError(f"its input {name} takes whole numbers that float32 has not")
        return self.columns([source], kind != 11)

    def columns(self, sources: Sequence[Input], single: bool | None) -> Stage:
        """Columns that are maps of features each."""
        self.parts += [source for source in dict.fromkeys(sources) if source not in self.parts]
        places = tuple(self.parts.index(source) for source in sources)
        epsilon = SINGLE if single else DOUBLE
        return Stage(np.eye(len(self.parts))[:, list(places)], np.zeros(len(places)), single, epsilon, source=places)

    def stage(self, name: str) -> Stage:
        """A tensor that has to be one of columns."""
        found = self.value(name)
        if isinstance(found, Texts):
            raise UnsupportedError(f"it computes with the texts of {found.features[0].name}")
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
        while name in self.made and (self.made[name].op_type in PASSING or self.neutral(self.made[name])):
            name = self.made[name].input[0]
        return name

    def neutral(self, node: Any) -> bool:
        """Whether it adds 0 or multiplies by 1, as onnxmltools ends LightGBM's models without dictionaries."""
        if node.op_type not in NEUTRAL or node.input[1] not in self.constants:
            return False
        return bool(self.constant(node.input[1]).tolist() in (NEUTRAL[node.op_type], [NEUTRAL[node.op_type]]))

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
NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}  # the second operand that leaves the first as it is


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
    with np.errstate(over="ignore", invalid="ignore"):  # of a damaged file: its predictions tell
        found = graph.value(score)
    if isinstance(found, Texts):
        raise UnsupportedError("its scores are texts")
    if label is not None and graph.value(graph.decides(label)) is not found:
        raise UnsupportedError("its label is of other scores than those that it gives")
    if isinstance(found, np.ndarray):
        raise UnsupportedError("its scores are a constant")
    if isinstance(found, Trees):
        outputs = len(found.base)
        if outputs != (classes if classes > 2 else 1):
            raise UnsupportedError(f"its trees have {outputs} outputs for {classes or 'no'} classes")
        return found
    if graph.space is not None and not found.closed:
        found = replace(found, weights=padded(found.weights, len(graph.parts)))
    elif graph.space is not None:
        (weights, shifts), *others = found.closed
        found = replace(found, closed=((padded(weights, len(graph.parts)), shifts), *others))
    return _layers(found, classes)


def padded(weights: np.ndarray, rows: int) -> np.ndarray:
    """Weights of further inputs, which they leave out."""
    return np.vstack([weights, np.zeros((rows - len(weights), weights.shape[1]))])


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
