"""What computes a model's predictions, and how its numbers are scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from harness.models.runtime.columns import Decoder
from harness.models.runtime.records import Layers, Trees

PROBABILITIES, LOGITS = "probabilities", "logits"
KINDS = (PROBABILITIES, LOGITS)


class Predicted(NamedTuple):
    """What a library says of rows: labels, shape (rows,), where it gives any, and scores, shape (rows, outputs)."""

    labels: np.ndarray | None
    scores: np.ndarray


class Engine(ABC):
    """A fitted model and the library that computes it; copies share it, and pickles hold what it is made of.

    Attributes
    ----------
    width
        Columns of its one input; None where the file leaves that open.
    columns
        Names of its inputs, where each column has one of its own; else empty.
    whole
        Those of ``columns`` that it takes as whole numbers.
    labels
        What the model calls its classes, in its order; empty where it says nothing, and of numbers.
    kind
        What the scores are, one of ``KINDS``.
    decoder
        Of a model whose columns are inputs of their own: what ``reading`` takes, and back to the columns; None where
        nothing is read.
    reading
        What its scores are sums of; a sentence without a full stop where that cannot be read.
    """

    library: ClassVar[str] = ""
    width: int | None
    columns: tuple[str, ...]
    labels: tuple[Any, ...]
    kind: str
    decoder: Decoder | None = None
    whole: tuple[str, ...] = ()
    reading: Layers | Trees | str

    @abstractmethod
    def __call__(self, rows: Any) -> Predicted:
        """Predictions of rows: a matrix of inputs, or a frame where ``columns`` are named."""

    def __deepcopy__(self, memo: Any) -> Engine:
        return self


def probabilities(scores: np.ndarray, kind: str) -> np.ndarray:
    """Of each class, shape (rows, classes), float64; scores with one column are those of the second class of two."""
    values = np.asarray(scores, dtype=float)
    if values.shape[1] > 1:
        return softmax(values, axis=1) if kind == LOGITS else values
    share = expit(values[:, 0]) if kind == LOGITS else values[:, 0]
    return np.column_stack([1.0 - share, share])


def decided(scores: np.ndarray, kind: str) -> np.ndarray:
    """The codes of classes by their scores, the first of equal ones, shape (rows,)."""
    if scores.shape[1] > 1:
        return np.asarray(scores.argmax(axis=1))
    return (scores[:, 0] > (0.0 if kind == LOGITS else 0.5)).astype(int)
