"""ONNX files: read without running anything, and computed by onnxruntime on one thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from harness.core.errors import UnsupportedError, short
from harness.core.space import Space
from harness.models.runtime import onnx_graph, onnx_operators, onnx_texts  # noqa: F401  (which register operators)
from harness.models.runtime.columns import Decoder
from harness.models.runtime.engine import Engine, Predicted
from harness.models.runtime.onnx_graph import Graph, width_of
from harness.models.runtime.optional import library

TYPES = {1: np.float32, 11: np.float64, 7: np.int64, 6: np.int32, 9: np.bool_, 8: np.str_}  # ONNX's numbers of types
TABULAR = (1, 11, 7, 6)  # types of a matrix with all columns
SEQUENCE, TENSOR = "sequence_type", "tensor_type"


class OnnxEngine(Engine):
    """An ONNX file's model.

    Parameters
    ----------
    content
        The file's bytes.
    score, label
        Names of the outputs that are taken; None where there is no label.
    """

    library: ClassVar[str] = "onnxruntime"

    def __init__(self, content: bytes, model: Any, score: str | None, label: str | None) -> None:
        self.content, self.score, self.label = content, score, label
        graph = model.graph
        constants = {each.name for each in graph.initializer}
        inputs = [each for each in graph.input if each.name not in constants]
        kinds = [each.type.tensor_type for each in inputs]
        if any(
            each.type.WhichOneof("value") != TENSOR or kind.elem_type not in TYPES
            for each, kind in zip(inputs, kinds, strict=True)
        ):
            raise UnsupportedError("it has an input that is no tensor of numbers or texts")
        self.names, self.types = [each.name for each in inputs], [TYPES[kind.elem_type] for kind in kinds]
        one = (
            len(inputs) == 1
            and kinds[0].elem_type in TABULAR
            and (len(kinds[0].shape.dim) != 2 or width_of(kinds[0]) != 1)
        )
        self.width = width_of(kinds[0]) if one else None
        self.columns = () if one else tuple(self.names)
        sizes = {kind.shape.dim[0].dim_value for kind in kinds if len(kind.shape.dim)}
        if any(len(kind.shape.dim) not in ((0, 2) if one else (0, 1, 2)) for kind in kinds):
            raise UnsupportedError("its input is no matrix of rows and columns")
        self.whole = tuple(n for n, t in zip(self.columns, self.types, strict=False) if issubclass(t, np.integer))
        self.flat = [len(kind.shape.dim) == 1 for kind in kinds]
        self.rows = max(sizes, default=0)  # in one call; 0: any number
        self.labels, self.kind, self.reading = (), onnx_graph.PROBABILITIES, ""
        if self.rows > 1:
            raise UnsupportedError(
                f"it takes {self.rows} rows at a time; export it with a first dimension that may be any (dynamic)"
            )
        self._session: tuple[int, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None}

    @property
    def session(self) -> Any:
        """The runtime's session of this process."""
        if self._session is None or self._session[0] != os.getpid():
            runtime = library("onnxruntime", "onnx")
            options = runtime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            self._session = os.getpid(), runtime.InferenceSession(self.content, options, ["CPUExecutionProvider"])
        return self._session[1]

    def __call__(self, rows: Any) -> Predicted:
        parts: list[np.ndarray]
        if self.columns:
            parts = [
                np.array(rows[name].tolist(), dtype=kind) for name, kind in zip(self.columns, self.types, strict=True)
            ]
            parts = [part if flat else part[:, None] for part, flat in zip(parts, self.flat, strict=True)]
            parts = [part.astype(object) if part.dtype.kind == "U" else part for part in parts]
        else:
            parts = [np.ascontiguousarray(rows, dtype=self.types[0])]
        count = len(parts[0])
        asked = [name for name in (self.label, self.score) if name is not None]
        chunks = [slice(k, k + 1) for k in range(count)] if self.rows == 1 else [slice(None)]
        answers = [
            self.session.run(asked, {name: part[chunk] for name, part in zip(self.names, parts, strict=True)})
            for chunk in chunks
        ]
        found = [_stacked(list(parts)) for parts in zip(*answers, strict=True)] if answers else []
        if not found:
            return Predicted(None, np.zeros((0, 1)))
        labels = None if self.label is None else np.asarray(found[0]).reshape(count)
        if self.score is None:
            assert labels is not None
            return Predicted(labels, np.array([[float(label == own) for own in self.labels] for label in labels]))
        return Predicted(labels, np.asarray(found[-1], dtype=float).reshape(count, -1))


def _stacked(parts: Sequence[Any]) -> np.ndarray:
    """One output of several calls; lists of dictionaries as a matrix."""
    return np.concatenate(
        [
            np.array([list(row.values()) for row in part], dtype=float) if isinstance(part, list) else np.asarray(part)
            for part in parts
        ]
    )


def open_onnx(
    content: bytes, space: Space, classes: int, output: str | None = None, kind: str | None = None
) -> OnnxEngine:
    """The model of an ONNX file.

    Parameters
    ----------
    content
        The file's bytes.
    space
        The features of the data.
    classes
        Of the data; 0 where the target is a number.
    output
        The output whose scores or numbers are taken; the only one that can be where None.
    kind
        What these scores are, one of ``engine.KINDS``; as its last operator tells where None.

    Raises
    ------
    UnsupportedError
        For files that are no such model, without a full stop.
    """
    onnx = library("onnx", "onnx")
    library("onnxruntime", "onnx")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as fault:
        raise UnsupportedError(f"it is no ONNX file ({short(fault)})") from fault
    if any(each.data_location == onnx.TensorProto.EXTERNAL for each in _tensors(model.graph)):
        raise UnsupportedError(
            "its weights lie in another file (external data); save it as one: "
            "onnx.save(onnx.load('net.onnx'), 'whole.onnx'), or export with external_data=False"
        )
    try:
        onnx.checker.check_model(model)
        for each in (each for node in model.graph.node for each in node.attribute):
            b"".join((each.s, *each.strings)).decode()  # of which the checker does not ask that it is text
    except Exception as fault:
        raise UnsupportedError(f"it is no ONNX file ({short(fault)})") from fault
    score, label = _outputs(model, bool(classes), output)
    engine = OnnxEngine(content, model, score, label)
    graph = Graph(model, space if engine.columns else None)
    if strange := [name for name in engine.columns if name not in space.names]:
        raise UnsupportedError(
            f"it takes the columns {', '.join(strange)}, which the data have not as features; they have "
            f"{', '.join(space.names)}"
        )
    engine.labels = _labels(graph, label, score, classes)
    engine.kind = _kind(graph, score, kind) if classes and score is not None else onnx_graph.PROBABILITIES
    try:
        if score is None:
            raise UnsupportedError("it gives labels without scores")
        engine.reading = onnx_graph.read(graph, score, label, classes)
        if engine.columns:
            engine.decoder = Decoder(tuple(space[name] for name in engine.columns), tuple(graph.parts))
    except UnsupportedError as why:
        engine.reading = str(why)
    return engine


def _tensors(graph: Any) -> Iterator[Any]:
    """Every constant of a graph, and of those inside its nodes."""
    yield from graph.initializer
    for each in graph.sparse_initializer:
        yield from (each.values, each.indices)
    for node in graph.node:
        for given in node.attribute:
            yield from (given.t, *given.tensors)
            for inner in (given.g, *given.graphs):
                if inner.node or inner.initializer:
                    yield from _tensors(inner)


def _outputs(model: Any, classifier: bool, wanted: str | None) -> tuple[str | None, str | None]:
    """The outputs with scores and with labels."""
    scores, labels, all_of_them = [], [], []
    for each in model.graph.output:
        kind = each.type.WhichOneof("value")
        element = each.type.tensor_type.elem_type if kind == TENSOR else 0
        all_of_them.append(each.name)
        if kind == SEQUENCE or element in (1, 11):
            scores.append(each.name)
        elif kind == TENSOR and element in (6, 7, 8, 9):
            labels.append(each.name)
    listed = ", ".join(all_of_them)
    if wanted is not None and wanted not in all_of_them:
        raise UnsupportedError(f"it has no output {wanted!r}; set model.output to one of {listed}")
    if wanted in labels and not classifier:
        raise UnsupportedError(f"its output {wanted!r} is a label, and the target is a number")
    if wanted is not None:
        scores, labels = ([wanted] if wanted in scores else []), ([wanted] if wanted in labels else labels)
    if len(scores) > 1 or (classifier and len(labels) > 1):
        which = scores if len(scores) > 1 else labels
        raise UnsupportedError(f"it has the outputs {listed}; set model.output={which[-1]}, or another that has scores")
    if not scores and not (labels and classifier):
        raise UnsupportedError(f"none of its outputs {listed} is a tensor of {'scores' if classifier else 'numbers'}")
    return (scores or [None])[0], ((labels or [None])[0] if classifier else None)


def _labels(graph: Graph, label: str | None, score: str | None, classes: int) -> tuple[Any, ...]:
    """What the model calls its classes."""
    if not classes:
        return ()
    for name in (label, score):
        while name in graph.made:
            node = graph.made[name]
            given = graph.attributes(node)
            for key in ("classlabels_int64s", "classlabels_strings", "classlabels_ints"):
                if len(found := given.get(key, ())):
                    return tuple(each.decode() if isinstance(each, bytes) else int(each) for each in found)
            if node.op_type == "ArrayFeatureExtractor" and node.input[0] in graph.constants:
                own = np.ravel(graph.constant(node.input[0])).tolist()
                return tuple(each.decode() if isinstance(each, bytes) else each for each in own)
            name = node.input[0] if len(node.input) else None
    return tuple(range(classes))


def _kind(graph: Graph, score: str, given: str | None) -> str:
    found = given or onnx_graph.kind_of(graph, score)
    if found is None:
        raise UnsupportedError(
            f"whether its output {score!r} has probabilities or log odds is not said; set model.scores=probabilities "
            f"or model.scores=logits"
        )
    return found
