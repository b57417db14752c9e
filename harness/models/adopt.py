"""Take a fitted model of the user's own: its columns, classes and threshold."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from harness.core.classifier import Classifier, WrappedModel
from harness.core.errors import HarnessError, UnsupportedError, lacking, short
from harness.core.inputs import space_inputs
from harness.core.space import Feature, Space
from harness.core.target import class_text
from harness.core.tolerances import SCORE_TIE, VALUE_TIE
from harness.core.wording import PREDICT
from harness.models import gaps, pipeline
from harness.models.composite import MADE_OF_OTHERS, THRESHOLDS
from harness.models.files import check_size, checksum, fitted, read
from harness.models.runtime.estimators import RuntimeModel
from harness.models.runtime.source import ModelSource, source_of
from harness.models.scorecard import as_scorecard

EXCHANGED = 0.45  # of two classes found less often than this, on average, each is likely called by the other's name
COLUMN = "it predicts a column of its own; train it on y, a Series or an array of one dimension"
SEVERAL = "it has several outputs, and one is explained; train a model for one target"


def from_file(
    path: str | Path | ModelSource,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    *,
    name: str = "the data",
    trust: bool = False,
    threshold: float | None = None,
    names: Sequence[Any] | None = None,
) -> Classifier:
    """The classifier of a fitted model in a file, checked against the data.

    Parameters
    ----------
    path
        A skops file; with ``trust`` also a pickle. Or a file of another library, as ``ModelSource`` takes it.
    frame
        Decoded rows on which what is known of the model's inside is compared with its predictions.
    classes
        Class names of the data; empty for regression.
    name
        What errors call the data.
    threshold
        The model's second class iff its score exceeds this; the model's own rule where None.
    names
        What the data call the model's classes, in the order of its ``classes_``, where the model calls them otherwise.

    Raises
    ------
    HarnessError
        As ``read``, and if model and data do not fit.
    """
    if (source := source_of(path)) is not None:
        return adopt(source, space, frame, classes, name=name, threshold=threshold, names=names)
    path = Path(path).expanduser()  # type: ignore[arg-type]
    model, needed = read(path, trust)
    own = WrappedModel(model, (), path=str(path), sha256=checksum(path), trusted=needed)
    return _fitted(own, space, frame, classes, name, threshold, names)


def adopt(
    model: Any,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    *,
    name: str = "the data",
    threshold: float | None = None,
    names: Sequence[Any] | None = None,
) -> Classifier:
    """As ``from_file``, of a fitted model in memory, of one that ``source_of`` knows, or of a ``Classifier``."""
    if isinstance(model, Classifier):
        if threshold is not None or names is not None:
            raise HarnessError("a Classifier brings threshold and classes of its own; leave them out.")
        return _checked(model, space, classes)
    if (source := source_of(model)) is None:
        check_fitted(model)
    own = WrappedModel(as_scorecard(model), ()) if source is None else _opened(source, space, len(classes), name)
    return _fitted(own, space, frame, classes, name, threshold, names)


def _checked(classifier: Classifier, space: Space, classes: Sequence[Any]) -> Classifier:
    """A classifier that takes columns of a space, and says classes of a data set."""
    takes = classifier.wrapped.columns if classifier.wrapped is not None else ()
    for name in dict.fromkeys([*takes, *(column.feature for column in classifier.inputs)]):
        if name not in space.names:
            raise HarnessError(lacking("the table", name, space.names, takes))
    if bool(classes) != bool(classifier.classes) or not {*classes} <= {*classifier.classes}:
        says, has = (", ".join(map(repr, names)) or "numbers" for names in (classifier.classes, classes))
        raise HarnessError(f"the Classifier says {says}, and the target's column {has}; give one of these classes.")
    return classifier


def predicts_numbers(model: Any) -> bool:
    """Whether a model in memory says of itself that it predicts numbers; raises ``HarnessError`` of what is none."""
    if (source := source_of(model)) is not None:
        return source.regressor
    if isinstance(model, Classifier):
        return model.classes == ()
    check_fitted(model)
    return is_regressor(as_scorecard(model))


def check_fitted(model: Any) -> None:
    """Raise ``HarnessError`` unless a model in memory is a fitted estimator of scikit-learn's kind."""
    if (ready := fitted(model)) is None:
        own = callable(model) or hasattr(model, "predict") or hasattr(model, "predict_proba")
        how = ", or put your own into a class as docs/howto/model.md does" * (own and not isinstance(model, type))
        raise HarnessError(
            f"model={str(model)[:60]!r} is no fitted scikit-learn estimator or pipeline, nor what ModelSource takes; "
            f"give one of these (skops.io.load reads a .skops file){how}."
        )
    if not ready:
        raise HarnessError(f"the model, a {type(model).__name__}, is not fitted; call fit first.")


def doubt(classifier: Classifier, frame: pd.DataFrame, labels: np.ndarray) -> str | None:
    """Why a model may not be given what it was trained on, in a sentence; None where it knows more than nothing.

    Of a class it finds no more than whoever says one class of everybody, over classes alike; a number it misses by more
    than the mean does.
    """
    said = classifier.predict(frame)
    if classifier.classes:
        found = [float(np.mean(said[labels == known] == known)) for known in pd.unique(labels)]
        if np.mean(found) > 1.0 / len(found) + VALUE_TIE or len(found) < 2:
            return None
        what = f"finds the target's classes in {np.mean(found):.0%} of their rows"
        if len(found) == 2 and np.mean(found) < EXCHANGED:
            other = f"with both of them exchanged in {1.0 - np.mean(found):.0%}"
            return f"the model {what}, {other}: are they named in the model's own order, and the columns, too?"
        what += f", and who says one of them always, in {1.0 / len(found):.0%}"
    else:
        numbers = np.asarray(labels, dtype=float)
        if np.square(said - numbers).mean() < numbers.var() or numbers.var() == 0.0:
            return None
        what = "is farther from the target's numbers than their mean is"
    rare = " A class that is rare, or a high threshold, looks the same." if classifier.classes else ""
    return f"the model {what}: was it trained on these columns, in this order, and not on scaled or coded ones?{rare}"


def check_file(source: ModelSource) -> None:
    """Raise ``HarnessError`` unless the file of a model that is in one is there, and not too large."""
    if source.path is not None:
        check_size(source.path)


def _opened(source: ModelSource, space: Space, classes: int, name: str) -> WrappedModel:
    """The model of another library, behind the columns of the data."""
    path = source.path
    check_file(source)
    try:
        model = source.opened(space, classes)
    except UnsupportedError as fault:
        raise HarnessError(_listed(str(path or ""), name, [str(fault).removesuffix(".")])) from fault
    file = {} if path is None else {"path": str(path), "sha256": checksum(path), "settings": source.settings}
    return WrappedModel(model, (), **file)  # type: ignore[arg-type]


def _fitted(
    own: WrappedModel,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    name: str,
    threshold: float | None,
    names: Sequence[Any] | None,
) -> Classifier:
    wrapped, faults = _laid_out(own, space, name)
    if not faults and all(_attribute(own.model, known) is None for known in ("feature_names_in_", "n_features_in_")):
        wrapped = replace(wrapped, named=_takes_names(wrapped, frame))
    labels, ordered, unlike = _named(own.model, classes, names)
    if faults := [*faults, *unlike]:
        raise HarnessError(_listed(own.path, name, faults))
    return assemble(wrapped, space, ordered, labels, threshold, frame, name)


def of_inputs(
    model: Any,
    space: Space,
    classes: Sequence[Any],
    threshold: float | None,
    frame: pd.DataFrame,
) -> Classifier:
    """The classifier of a model that was trained on the scaled columns of a space, and on codes of ``classes``.

    One made of others, or a pipeline, is read as what exact methods know.
    """
    inputs = space_inputs(space)
    if not isinstance(model, (*THRESHOLDS, *MADE_OF_OTHERS, Pipeline)):
        return Classifier(model, inputs, tuple(classes), threshold)
    wrapped = WrappedModel(model, space.names, named=False, inputs=inputs)
    found = assemble(wrapped, space, classes, (), threshold, frame)
    if found.opaque is None:
        return found
    return Classifier(model, inputs, found.classes, found.threshold, opaque=found.opaque)  # asked through its inputs


def assemble(
    wrapped: WrappedModel,
    space: Space,
    classes: Sequence[Any],
    labels: Sequence[Any],
    threshold: float | None,
    frame: pd.DataFrame,
    name: str = "the data",
) -> Classifier:
    """The classifier of a model with its pipeline; opaque where its steps cannot be read, or read as another model.

    Raises
    ------
    HarnessError
        If the model cannot read the rows of ``frame``.
    """
    try:
        described = pipeline.describe(wrapped.model, space, wrapped.columns, threshold, wrapped.inputs)
    except Exception:
        with _asked(wrapped, name):  # which a damaged model cannot be, either
            wrapped.model.predict(wrapped.table(frame))
        raise
    if described.faults:
        raise HarnessError(_listed(wrapped.path, name, described.faults))
    frame = gaps.probes(space, frame)
    names, threshold = tuple(labels), described.threshold
    inside = Classifier(described.estimator, described.inputs, tuple(classes), threshold, labels=names)
    outside = replace(inside, estimator=wrapped, inputs=(), wrapped=wrapped)
    inside = replace(inside, cut=described.cut)
    gaps.taken(outside, space, frame)
    with _asked(wrapped, name):
        with warnings.catch_warnings(action="ignore"):
            shape = np.shape(wrapped.model.predict(wrapped.table(frame.iloc[:1])))
        if len(shape) > 1:
            raise ValueError(COLUMN if shape[1:] == (1,) else SEVERAL)
        predicted = outside.graded(frame)
    opaque = described.opaque or _difference(inside, wrapped, frame, predicted)
    return replace(inside, wrapped=wrapped) if opaque is None else replace(outside, opaque=f"{opaque}; {PREDICT}")


@contextlib.contextmanager
def _asked(wrapped: WrappedModel, name: str) -> Iterator[None]:
    """Whatever a model raises that is asked about the data's rows, as a sentence."""
    try:
        yield
    except Exception as fault:
        raise HarnessError(
            _listed(wrapped.path, name, [f"its prediction of the data's rows fails: {short(fault)}"])
        ) from fault


def _difference(
    inside: Classifier, wrapped: WrappedModel, frame: pd.DataFrame, predicted: tuple[np.ndarray, np.ndarray]
) -> str | None:
    """Why estimator and inputs are another model than the pipeline, as a sentence; None where they are the same."""
    prefix = "this model is opaque: what is known of its steps gives other"
    if isinstance(inside.estimator, RuntimeModel):
        what = inside.estimator.differs(inside.matrix(frame))
        library = inside.estimator.engine.library
        return f"this model is opaque: what is read of it gives other {what} than {library} does" if what else None
    steps: Any = getattr(wrapped.model, "steps", ())
    try:
        if len(steps) > 1:
            with warnings.catch_warnings(action="ignore"):
                made = wrapped.model[:-1].transform(wrapped.table(frame))
            made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)
            matrix = inside.matrix(frame)
            # The last step may have steps itself.
            last = type(steps[-1][1]) is type(inside.estimator)
            if made.shape == matrix.shape and last and _unlike(made, matrix).any():
                column = int(np.flatnonzero(_unlike(made, matrix).any(axis=0))[0])
                return f"{prefix} values of {inside.inputs[column].feature} than they do"
        if inside.cut is not None:
            return None if _same_decisions(inside, frame, predicted[0]) else f"{prefix} predictions than it does"
        codes, scores = inside.graded(frame)
        slack = SCORE_TIE * _size(inside, frame, scores)
    except Exception as fault:
        return f"{prefix} inputs than its last step takes ({short(fault)})"
    if inside.classes and (codes != predicted[0]).any():
        return f"{prefix} predictions than it does"
    return f"{prefix} scores than it does" if np.abs(scores - predicted[1]).max() > slack else None


def _same_decisions(inside: Classifier, frame: pd.DataFrame, codes: np.ndarray) -> bool:
    """Whether raw outputs decide as the model does, wherever they are farther from a tie than by rounding."""
    raw = inside.raw(frame)
    if inside.binary:
        said, lead = (raw > inside.raw_threshold).astype(int), np.abs(raw - inside.raw_threshold)
    else:
        said, lead = raw.argmax(axis=1), np.diff(np.sort(raw, axis=1)[:, -2:], axis=1)[:, 0]
    return bool(((said == codes) | (lead <= SCORE_TIE * np.maximum(1.0, np.abs(raw).max()))).all())


def _unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two arrays differ, bool; gaps are equal."""
    return (one != other) & ~(np.isnan(one) & np.isnan(other))


def _size(inside: Classifier, frame: pd.DataFrame, scores: np.ndarray) -> float:
    """The greatest of the scores and, of a linear model, of the terms whose sums they are; at least 1.

    1 of probabilities.
    """
    if inside.probabilistic:
        return 1.0
    terms = 0.0
    if (weights := getattr(inside.estimator, "coef_", None)) is not None:
        terms = float((np.abs(inside.matrix(frame)) @ np.abs(np.atleast_2d(weights)).T).max(initial=0.0))
    return max(1.0, terms, float(np.abs(scores).max(initial=0.0)))


def _listed(path: str, name: str, faults: Sequence[str]) -> str:
    return f"the model{f' in {path}' if path else ''} does not fit {name}: {'; '.join(dict.fromkeys(faults))}."


def _laid_out(wrapped: WrappedModel, space: Space, name: str) -> tuple[WrappedModel, list[str]]:
    """The model with the columns it takes, and what is wrong with them."""
    known = _attribute(wrapped.model, "feature_names_in_")
    count = _attribute(wrapped.model, "n_features_in_")
    if known is not None:
        columns = tuple(str(column) for column in known)
        if hasattr(wrapped.model, "booster_"):  # LightGBM writes _ for a blank, and takes frames with either
            written = {feature.replace(" ", "_"): feature for feature in space.names}
            columns = tuple(column if column in space.names else written.get(column, column) for column in columns)
        if any(_own_categories(wrapped.model, space[column]) for column in columns if column in space.names):
            kind = type(wrapped.model).__name__
            return wrapped, [f"it is a {kind} of pandas' category columns; put an OrdinalEncoder before it"]
        lacking = [column for column in columns if column not in space.names]
        if lacking:
            hint = f"; {name} has {', '.join(space.names)}"
            return wrapped, [f"it takes the columns {', '.join(lacking)}, which {name} has not as features{hint}"]
    else:
        columns = space.names
        if count is not None and count != len(columns):
            listed = f"{len(columns)}: {', '.join(columns)}"
            return wrapped, [f"it was trained on an array of {count} columns, and {name} has {listed}"]
    logical = tuple(c for c in columns if _holds_logical(space[c]))
    return replace(wrapped, columns=columns, logical=logical, named=known is not None), []


def _own_categories(model: Any, feature: Feature) -> bool:
    """Whether a model takes pandas' category columns, and cannot be asked about a feature as the data hold it.

    LightGBM wants the columns as they were, XGBoost takes numbers for them.
    """
    if getattr(getattr(model, "booster_", None), "pandas_categorical", None):
        return True
    texts = any(isinstance(value, str) for value in feature.categories)
    return texts and hasattr(model, "get_booster") and "c" in (model.get_booster().feature_types or ())


def _takes_names(wrapped: WrappedModel, frame: pd.DataFrame) -> bool:
    """Whether a model that says neither which columns it takes nor how many is to be given them by name."""
    try:
        with warnings.catch_warnings(action="ignore"):
            wrapped.model.predict(replace(wrapped, named=True).table(frame.iloc[:1]))
    except Exception:
        return False
    return True


def _holds_logical(feature: Feature) -> bool:
    return bool(feature.categories) and all(isinstance(value, bool) for value in feature.categories)


def _attribute(model: Any, name: str) -> Any:
    """An attribute of a model, or of a pipeline's first step that has it."""
    try:
        return getattr(model, name)
    except Exception:  # a pipeline hands on whatever its first step raises
        return None


def _named(
    model: Any, classes: Sequence[Any], names: Sequence[Any] | None
) -> tuple[tuple[Any, ...], tuple[Any, ...], list[str]]:
    """What the model calls its classes, what the data call them in the same order, and what is wrong with them."""
    own = _attribute(model, "classes_")
    if isinstance(own, list) or (own is None and (_attribute(model, "n_outputs_") or 1) > 1):
        return (), (), [SEVERAL]
    if not classes:
        if own is not None or not is_regressor(model):
            return (), (), ["it predicts classes, and the target is a number; choose a regression model"]
        return (), (), []
    allowed = ", ".join(map(str, classes))
    if own is None or not is_classifier(model):
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in classes)
        remedy = "set dataset.task=regression, or choose a classifier" if numbers else "choose a classifier"
        return (), (), [f"it predicts no classes, and the target is one of {allowed}; {remedy}"]
    labels = tuple(np.asarray(own).tolist())
    own_order = ", ".join(map(str, labels))
    if len(labels) != len(classes):
        counts = f"it knows {len(labels)} classes, {own_order}, and the target has {len(classes)}, {allowed}"
        return (), (), [f"{counts}; give rows of each of its classes, or a model of these"]
    by_name = {class_text(value): value for value in classes}
    chosen = [class_text(value) for value in (labels if names is None else names)]
    if names is not None and (len(chosen) != len(labels) or sorted(chosen) != sorted(by_name)):
        listed = ", ".join(map(str, names))
        why = f"model.classes=[{listed}] must name each of {allowed} once, in the order of the model's {own_order}"
        return (), (), [why]
    if sorted(chosen) != sorted(by_name):
        pairs = " and ".join(f"{value} is {meant}" for value, meant in zip(labels, classes, strict=True))
        listed = ",".join(map(str, classes))
        remedy = f"name them in the model's order: with model.classes=[{listed}] {pairs}"
        return (), (), [f"its classes are {own_order}, and those of the target {allowed}; {remedy}"]
    return labels, tuple(by_name[value] for value in chosen), []
