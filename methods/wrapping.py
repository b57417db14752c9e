"""What wrappers of other libraries share: silence, seeding, deadlines, probabilities, and many classes as two."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import random
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from harness.core.classifier import Classifier, WrappedModel
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline, LibraryDefault
from harness.core.packages import install
from harness.core.problem import Problem
from harness.core.randomness import generators_kept
from harness.core.target import Classes, Label
from harness.core.tolerances import PROBABILITY_INSET

Defaults = Mapping[str, LibraryDefault]  # a library's own, by the wrapper's name of the setting
REST, WANTED = "not wanted", "wanted"
KEPT = 200  # tables of points that a search has met
BLOCK = 32  # of them, which the model is asked about at once
LATE = Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT)


def stated(place: str, **settings: Any) -> dict[str, LibraryDefault]:
    """Defaults of the signature or mapping at a place, ``module:Class.function``, by the wrapper's name of the setting.

    A value is the library's default, or a pair of it and the library's own name, where that is another.
    """
    pairs = {name: value if isinstance(value, tuple) else (value, name) for name, value in settings.items()}
    return {name: LibraryDefault(value, f"{place}:{own}") for name, (value, own) in pairs.items()}


class LateError(Exception):
    """Ends a search inside a library once the deadline has passed: raised where it calls the model."""


def check_clock(deadline: Deadline | None) -> None:
    """Raise ``LateError`` where a deadline has passed."""
    if deadline is not None and deadline.passed:
        raise LateError


class Met:
    """Points that a search inside a library has met, the last of them, for when the clock ends it.

    Attributes
    ----------
    parts
        Decoded frames, or scaled columns of shape (rows, columns).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts = problem, deque[Any](maxlen=KEPT)

    def explanation(self, factual: pd.DataFrame, n: int, none: Answer = LATE) -> Explanation:
        """Of those that the model gives what is wanted, the nearest n in l1 of scaled columns, without repeats.

        ``none`` stands for those that are lacking, and says what ended the search. The model is asked about the nearest
        first, as little time is left.
        """
        rows = list[dict[str, Any]]()
        if self.parts:
            space = self.problem.space
            frames = [part for part in self.parts if not isinstance(part, np.ndarray)]
            if len(scaled := [part for part in self.parts if isinstance(part, np.ndarray)]):
                frames.append(space.decode(np.concatenate(scaled), like=factual))  # at once: 200 parts take a second
            frame = pd.concat(frames, ignore_index=True).drop_duplicates(ignore_index=True)
            far = np.abs(space.encode(frame) - space.encode(factual)).sum(axis=1)
            frame = frame.iloc[np.argsort(far, kind="stable")]
            for start in range(0, len(frame), BLOCK):
                block = frame.iloc[start : start + BLOCK]
                rows += plain(block[self.problem.valid(block)])
                if len(rows) >= n:
                    break
        return Explanation(tuple(Answer(Status.FOUND, row, none.reason) for row in rows[:n])).padded(n, none)


def missing(module: str, package: str) -> str | None:
    """That a library is not installed, as a sentence, or None; its extra has the name of its module."""
    found = importlib.util.find_spec(module) is not None
    return None if found else f"{package} is not installed; run `{install(module)}`."


def not_a_class(title: str, problem: Problem) -> str | None:
    """That the target is no class, as a sentence, or None."""
    if not problem.classifier.classes or not isinstance(problem.target, Label | Classes):
        return f"{title} is run for a wanted class only, not for an interval of a prediction or a probability."
    return None


@contextlib.contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed the two global generators that libraries draw from, and put both back as they were."""
    with generators_kept():
        random.seed(int(rng.integers(2**32)))
        np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars, prints, warnings and log messages of a library; exceptions pass."""
    root, level = logging.getLogger(), logging.root.manager.disable
    handler = logging.NullHandler()  # without any handler, ``logging.log`` would set one up for the whole process
    root.addHandler(handler)
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            yield
    finally:
        logging.disable(level)
        root.removeHandler(handler)


@contextlib.contextmanager
def old_pandas() -> Iterator[None]:
    """``quiet``, and new frames hold strings as objects: libraries write single cells, at which Arrow's are slow."""
    with quiet(), pd.option_context("future.infer_string", False):
        yield


def shares(classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
    """Probabilities, shape (rows, classes), the greatest of which is that of the predicted class.

    With two classes a threshold is moved to 0.5; a model without probabilities has its decision values squashed.
    """
    codes, scores = classifier.graded(frame)
    if classifier.binary:
        middle = classifier.threshold
        if classifier.probabilistic:
            share = np.interp(scores, [0.0, 0.5 if middle is None else middle, 1.0], [0.0, 0.5, 1.0])
        else:
            share = expit(scores - (middle or 0.0))
        share = np.where(
            codes == 1, np.maximum(share, 0.5 + PROBABILITY_INSET), np.minimum(share, 0.5 - PROBABILITY_INSET)
        )
        return np.column_stack([1.0 - share, share])
    found = np.array(scores) if classifier.probabilistic else softmax(scores, axis=1)
    places = np.arange(len(found))
    found[places, codes] = np.maximum(found[places, codes], found.max(axis=1) + PROBABILITY_INSET)
    return found


def plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values by feature."""
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.astype(object).itertuples(index=False)]


@dataclass(frozen=True, eq=False)
class AgainstRest:
    """Whether a model says one of some classes, as a model of two.

    Parameters
    ----------
    classifier
        Of more than two classes.
    codes
        Of those that are wanted.
    """

    classifier: Classifier
    codes: tuple[int, ...]

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """1 where the model itself says a wanted class, else 0, shape (rows,)."""
        return np.isin(self.classifier.codes(frame), self.codes).astype(int)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Shape (rows, 2): shares of the most probable class of either side, above 0.5 of the predicted one."""
        found = shares(self.classifier, frame)
        wanted = found[:, self.codes].max(axis=1)
        share = wanted / (wanted + np.delete(found, self.codes, axis=1).max(axis=1))
        return np.column_stack([1.0 - share, share])


def against_rest(problem: Problem) -> Problem:
    """The same question to a model of two classes, for methods that only have it predict."""
    target, classifier, names = problem.target, problem.classifier, problem.space.names
    assert isinstance(target, Label | Classes)
    values = (target.value,) if isinstance(target, Label) else target.values
    model = AgainstRest(classifier, tuple(classifier.code(value) for value in values))
    two = Classifier(
        model, (), (REST, WANTED), wrapped=WrappedModel(model, names),
        opaque="a question about several classes is put to the model's predictions alone.",
    )  # fmt: skip
    reference = problem.labelled(problem.reference_labels)
    return replace(
        problem,
        classifier=two,
        labels=np.where(problem.labelled(problem.labels), WANTED, REST).astype(object),
        reference_labels=np.where(reference, WANTED, REST).astype(object),
        target=Label(WANTED),
    )


def one_class(problem: Problem) -> Problem:
    """The problem itself, or, where several classes are wanted, ``against_rest`` of it."""
    return against_rest(problem) if isinstance(problem.target, Classes) else problem
