"""What wrappers of other libraries share: randomness and noise kept in, and the classifier as libraries ask for it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import random
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from harness.core.classifier import Classifier
from harness.core.problem import Problem
from harness.core.target import Label

EDGE = 1e-6  # how far from 0.5 a probability is kept, on the side of the model's own decision


class LateError(Exception):
    """Ends a search inside a library once the deadline has passed: raised where it asks the model."""


def unfit(module: str, package: str, title: str, problem: Problem) -> str | None:
    """A missing library (its extra has its module's name), or a target other than a class, as a sentence; else None."""
    if importlib.util.find_spec(module) is None:
        return f"{package} is not installed; run `uv sync --extra {module}`."
    if not problem.classifier.classes or not isinstance(problem.target, Label):
        return f"{title} is run for a wanted class only, not for an interval of a prediction or a probability."
    return None


@contextlib.contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed the two global generators that libraries draw from, and put both back as they were."""
    kept = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        random.seed(int(rng.integers(2**32)))
        np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep a library's progress bars, prints, warnings and log messages to itself; exceptions pass."""
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


def shares(classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
    """Probabilities, shape (rows, classes), whose greatest is that of the class which the model decides for.

    With two classes a threshold is moved to 0.5; a model without probabilities has its decision values squashed.
    """
    codes, scores = classifier.graded(frame)
    if classifier.binary:
        share = _share(classifier, scores)
        share = np.where(codes == 1, np.maximum(share, 0.5 + EDGE), np.minimum(share, 0.5 - EDGE))
        return np.column_stack([1.0 - share, share])
    found = np.array(scores) if classifier.probabilistic else softmax(scores, axis=1)
    places = np.arange(len(found))
    found[places, codes] = np.maximum(found[places, codes], found.max(axis=1) + EDGE)
    return found


def _share(classifier: Classifier, scores: np.ndarray) -> np.ndarray:
    """Of class 1, with the threshold moved to 0.5."""
    threshold = classifier.threshold
    if not classifier.probabilistic:
        return expit(scores - (threshold or 0.0))
    middle = 0.5 if threshold is None else threshold
    return np.interp(scores, [0.0, middle, 1.0], [0.0, 0.5, 1.0])
