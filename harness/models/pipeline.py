"""What a fitted scikit-learn pipeline does to its columns, as inputs of its last step, equal to the last bit.

A new transformer is one function registered with ``through``; where there is none, only the pipeline's predictions are
of use.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import MetaEstimatorMixin
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import BaseEnsemble
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Chain, Indicator, Input, Lookup, beyond_by_rounding, by_category, run_steps
from harness.core.space import Feature, Kind, Space
from harness.core.wording import some
from harness.models.composite import MADE_OF_OTHERS, chosen, own_threshold, read
from harness.models.runtime.estimators import RuntimeModel
from harness.models.scorecard import OptBinned, ScorecardEstimator
from harness.models.unseen import NAMED, unseen

NUMERIC = frozenset({"sklearn", "xgboost", "lightgbm"})  # libraries whose estimators take no texts


@dataclass(frozen=True)
class Number:
    """A column that is a number of the data after some steps: an operation and a float each."""

    feature: Feature
    steps: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """A column that is a function of a feature's category: a value for each, which need be no number yet."""

    feature: Feature
    values: tuple[Any, ...]


Column = Number | Table


@dataclass
class PipelineStep:
    """A place in a pipeline, and the faults found up to it.

    Parameters
    ----------
    space
        The features of the data.
    faults
        Why the model cannot read the data: sentences without a full stop, filled while reading.
    path
        Names of the steps that lead here.
    """

    space: Space
    faults: list[str] = field(default_factory=list)
    path: tuple[str, ...] = ()

    def into(self, name: str) -> PipelineStep:
        """The place one step further."""
        return PipelineStep(self.space, self.faults, (*self.path, name))

    def step(self, transformer: Any) -> str:
        """The step in words; the last one where no name leads here."""
        name = f"step {self.path[-1]!r}" if self.path else "the last step"
        return f"{name} ({type(transformer).__name__})"


@dataclass(frozen=True)
class ColumnFlow:
    """Columns between two steps, and whether scikit-learn holds them as a sparse matrix, which it scales otherwise."""

    columns: tuple[Column, ...]
    sparse: bool = False


class Described(NamedTuple):
    """What exact methods see of a model.

    Parameters
    ----------
    estimator
        The last step, knowing no column names, as it is called with arrays; the model itself where it is opaque.
    inputs
        Its inputs as maps of the data's features; none where it is opaque.
    faults
        Why the model cannot read the data; empty where it can.
    opaque
        Why the model cannot be read, a sentence.
    threshold, cut
        As of ``Classifier``.
    """

    estimator: Any
    inputs: tuple[Input, ...]
    faults: Sequence[str] = ()
    opaque: str | None = None
    threshold: float | None = None
    cut: float | None = None


def describe(
    model: Any, space: Space, columns: Sequence[str], threshold: float | None = None, given: Sequence[Input] = ()
) -> Described:
    """The last step of a model, and its inputs as maps of the data's features.

    Parameters
    ----------
    model
        A fitted estimator or ``Pipeline``, also one inside a search, a calibration or an average.
    columns
        Names of the features that it takes, in its order.
    threshold
        That the score of class 1 has to exceed, where the model's own rule is not to decide.
    given
        The columns that it takes instead, where those are maps of the features.
    """
    if isinstance(model, ScorecardEstimator | OptBinned):
        return _scorecard(model, space, threshold)
    if isinstance(model, RuntimeModel):
        opaque = None if model.opaque is None else f"this model is opaque: {model.opaque}"
        return Described(model, () if opaque else tuple(model.inputs), opaque=opaque, threshold=threshold)
    at = PipelineStep(space)
    raw = (Number(f) if f.numeric else Table(f, f.categories) for f in (space[name] for name in columns))
    flow = ColumnFlow(tuple(_column(source, space) for source in given) or tuple(raw))
    known = {id(column): source for column, source in zip(flow.columns, given, strict=False)}

    def walk(member: Any, flow: ColumnFlow) -> tuple[Any, ColumnFlow]:
        while isinstance(member, Pipeline) or chosen(member) is not member:
            for name, step in member.steps[:-1] if isinstance(member, Pipeline) else ():
                flow = through(step, flow, at.into(name))
            member = member.steps[-1][1] if isinstance(member, Pipeline) else chosen(member)
        return member, flow

    own = own_threshold(model) if threshold is None else threshold
    threshold = None if threshold == own_threshold(model) else threshold
    try:
        with warnings.catch_warnings(action="ignore"):
            found = read(model, flow, walk, threshold)
        inputs = tuple(known.get(id(column)) or _input(column, found.estimator, at) for column in found.columns)
    except UnsupportedError as fault:
        return Described(model, (), at.faults, f"this model is opaque: {str(fault).rstrip('.')}", own)
    estimator = copy.copy(found.estimator)
    vars(estimator).pop("feature_names_in_", None)
    return Described(estimator, inputs, at.faults, None, own, found.cut)


def _column(source: Input, space: Space) -> Column:
    """A map of a feature as a column between two steps."""
    feature = space[source.feature]
    if isinstance(source, Affine) and feature.numeric:
        return Number(feature, (("-", source.shift), ("/", source.unit)))
    return Table(feature, tuple(by_category(feature, source).tolist()))


def _scorecard(model: Any, space: Space, threshold: float | None) -> Described:
    """As ``describe``, of a scorecard, whose bins are no step of a pipeline."""
    try:
        return Described(model.inside, model.inside.inputs(space), threshold=threshold)
    except UnsupportedError as fault:
        return Described(model, (), opaque=f"this model is opaque: {fault}", threshold=threshold)


@singledispatch
def through(transformer: Any, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    """The columns after a fitted transformer.

    Raises
    ------
    UnsupportedError
        Where they are no functions of one feature each, affine for numbers.
    """
    raise UnsupportedError(f"its {at.step(transformer)} is neither affine nor a code of categories")


@through.register(str)
@through.register(type(None))
def _(transformer: str | None, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    return ColumnFlow(()) if transformer == "drop" else flow


@through.register
def _(transformer: Pipeline, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    for name, step in transformer.steps:
        flow = through(step, flow, at.into(name))
    return flow


@through.register
def _(transformer: ColumnTransformer, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    taken = transformer._transformer_to_input_indices
    weights = transformer.transformer_weights or {}
    parts = [
        (
            name,
            step,
            ColumnFlow(tuple(flow.columns[place] for place in np.atleast_1d(taken[name]).tolist()), flow.sparse),
        )
        for name, step, _ in transformer.transformers_
    ]
    return replace(_side_by_side(parts, weights, at), sparse=transformer.sparse_output_)


@through.register
def _(transformer: FeatureUnion, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    parts = [(name, step, flow) for name, step in transformer.transformer_list]
    return _side_by_side(parts, transformer.transformer_weights or {}, at)


def _side_by_side(parts: Iterable[tuple[str, Any, ColumnFlow]], weights: Any, at: PipelineStep) -> ColumnFlow:
    """The columns of several transformers, one after another, sparse where any of theirs are; all are walked through
    before one that stops it does."""
    flows: list[ColumnFlow] = []
    stopped: UnsupportedError | None = None
    for name, step, flow in parts:
        if not flow.columns:
            continue
        try:
            after = through(step, flow, at.into(name))
            if name in weights:
                after = _stepwise(step, after, at.into(name), ("*", [weights[name]] * len(after.columns)))
        except UnsupportedError as fault:
            stopped = stopped or fault
            continue
        flows.append(after)
    if stopped is not None:
        raise stopped
    columns = tuple(column for after in flows for column in after.columns)
    return ColumnFlow(columns, any(after.sparse for after in flows))


@through.register
def _(transformer: FunctionTransformer, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    if transformer.func is not None:
        raise UnsupportedError(f"{at.step(transformer)} runs a function of its own")
    return flow


@through.register
def _(transformer: KBinsDiscretizer, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    raise UnsupportedError(
        f"{at.step(transformer)} bins numbers, of which no method sees the edges; bin the columns before the pipeline "
        f"(dataset.discretise=quantile), and have a OneHotEncoder in its place"
    )


@through.register
def _(transformer: SelectorMixin, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    return ColumnFlow(tuple(flow.columns[place] for place in transformer.get_support(indices=True)), flow.sparse)


@through.register
def _(transformer: StandardScaler, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    centre = transformer.mean_ if transformer.with_mean else None
    return _scaled(transformer, flow, at, centre, transformer.scale_)


@through.register
def _(transformer: RobustScaler, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    centre = transformer.center_ if transformer.with_centering else None
    return _scaled(transformer, flow, at, centre, transformer.scale_ if transformer.with_scaling else None)


@through.register
def _(transformer: MaxAbsScaler, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    after = _scaled(transformer, flow, at, None, transformer.scale_)
    return _clipped(transformer, after, at, (-1.0, 1.0)) if transformer.clip else after


@through.register
def _(transformer: MinMaxScaler, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    after = _stepwise(transformer, flow, at, ("*", transformer.scale_), ("+", transformer.min_))
    return _clipped(transformer, after, at, transformer.feature_range) if transformer.clip else after


def _scaled(transformer: Any, flow: ColumnFlow, at: PipelineStep, centre: Any, scale: Any) -> ColumnFlow:
    """(x - centre) / scale; a sparse matrix is multiplied with 1 / scale instead."""
    steps: list[tuple[str, Any]] = [] if centre is None else [("-", centre)]
    if scale is not None:
        steps.append(("*", 1.0 / np.asarray(scale)) if flow.sparse else ("/", scale))
    return _stepwise(transformer, flow, at, *steps)


def _stepwise(transformer: Any, flow: ColumnFlow, at: PipelineStep, *steps: tuple[str, Iterable[float]]) -> ColumnFlow:
    """The columns after operations with a number for each."""
    numbers = list(zip(*([(sign, float(value)) for value in values] for sign, values in steps), strict=True))
    numbers = numbers or [()] * len(flow.columns)
    if not all(math.isfinite(value) for own in numbers for _, value in own):
        raise UnsupportedError(f"{at.step(transformer)} has learnt numbers that are not finite")
    columns: list[Column] = []
    for column, own in zip(flow.columns, numbers, strict=True):
        if isinstance(column, Number):
            columns.append(Number(column.feature, column.steps + own))
        elif (values := _numbers(column, transformer, at)) is not None:
            columns.append(Table(column.feature, tuple(run_steps(values, own).tolist())))
        else:
            columns.append(column)
    return ColumnFlow(tuple(columns), flow.sparse)


def _clipped(transformer: Any, flow: ColumnFlow, at: PipelineStep, ends: tuple[float, float]) -> ColumnFlow:
    """The columns cut to an interval, which numbers must not leave anyway but by rounding."""
    low, high = ends
    columns: list[Column] = []
    for column in flow.columns:
        if isinstance(column, Number):
            feature = column.feature
            reach = [run_steps(float(x), column.steps) for x in (*feature.bounds, *feature.scale, *feature.special)]
            if min(reach) < low - beyond_by_rounding(low) or max(reach) > high + beyond_by_rounding(high):
                raise UnsupportedError(
                    f"{at.step(transformer)} clips {feature.name}, which may be from {feature.bounds[0]:g} to "
                    f"{feature.bounds[1]:g} here, further than in the model's training; set clip=False, or narrower "
                    f"features.{feature.name}.bounds"
                )
            cut = (("max", low), ("min", high)) if min(reach) < low or max(reach) > high else ()
            columns.append(Number(feature, column.steps + cut))
        else:
            columns.append(Table(column.feature, tuple(np.clip(np.array(column.values, float), *ends).tolist())))
    return ColumnFlow(tuple(columns), flow.sparse)


def _numbers(column: Table, transformer: Any, at: PipelineStep) -> np.ndarray | None:
    """A table's values as floats; None, and a fault noted, where some are text."""
    if any(isinstance(value, str) for value in column.values):
        feature = column.feature
        at.faults.append(
            f"column {feature.name!r} holds text ({some(feature.categories, NAMED)}), and {at.step(transformer)} of "
            f"the model takes numbers"
        )
        return None
    return np.array(column.values, dtype=float)


@through.register
def _(transformer: SimpleImputer, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    """Nothing is missing here: the columns stay as they are, without those that training had no value of."""
    columns: list[Column] = []
    gap = transformer.missing_values
    for column, filler in zip(flow.columns, transformer.statistics_.tolist(), strict=True):
        if isinstance(filler, float) and math.isnan(filler) and not transformer.keep_empty_features:
            continue
        if isinstance(gap, float) and math.isnan(gap):
            if column.feature.missing:
                raise UnsupportedError(
                    f"{at.step(transformer)} fills missing values, which {column.feature.name} keeps"
                )
            columns.append(column)
        elif isinstance(column, Table):
            columns.append(Table(column.feature, tuple(filler if value == gap else value for value in column.values)))
        else:
            raise UnsupportedError(
                f"{at.step(transformer)} takes {gap!r} for a missing value, and {column.feature.name} may hold that"
            )
    if transformer.add_indicator:
        if not isinstance(gap, float) or not math.isnan(gap):
            raise UnsupportedError(f"{at.step(transformer)} marks the value {gap!r}")
        columns += [_constant(flow, at, transformer)] * len(transformer.indicator_.features_)
    return ColumnFlow(tuple(columns), flow.sparse)


def _constant(flow: ColumnFlow, at: PipelineStep, transformer: Any) -> Table:
    """A column of zeros: hung on a category, as a number's share in a model must not vanish."""
    for feature in (*(column.feature for column in flow.columns), *at.space.features):
        if not feature.numeric:
            return Table(feature, (0.0,) * len(feature.categories))
    raise UnsupportedError(f"{at.step(transformer)} adds constant columns, and there is no category to hang them on")


@through.register
def _(transformer: OneHotEncoder, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    columns = _coded(transformer, flow, at, transformer._n_features_outs)
    return ColumnFlow(columns, transformer.sparse_output)


@through.register
def _(transformer: OrdinalEncoder, flow: ColumnFlow, at: PipelineStep) -> ColumnFlow:
    return ColumnFlow(_coded(transformer, flow, at, [1] * len(flow.columns)))


def _coded(encoder: Any, flow: ColumnFlow, at: PipelineStep, widths: Sequence[int]) -> tuple[Column, ...]:
    """The columns after an encoder, from its code of every category, one feature after another."""
    stopped = None
    usable: list[tuple[Any, ...]] = []
    for column, known in zip(flow.columns, encoder.categories_, strict=True):
        try:
            usable.append(_readable(encoder, column, known, at))
        except UnsupportedError as fault:
            stopped = stopped or fault
    if stopped is not None:
        raise stopped
    ends = np.cumsum([0, *widths])
    first = [values[0] for values in usable]
    columns: list[Column] = []
    for place, (column, values) in enumerate(zip(flow.columns, usable, strict=True)):
        probes = np.empty((len(values), len(first)), dtype=object)
        probes[:] = first
        probes[:, place] = values
        coded = encoder.transform(probes)
        coded = np.asarray(coded.toarray() if sparse.issparse(coded) else coded, dtype=float)
        if coded.shape[1] != ends[-1] or np.isnan(coded).any():
            raise UnsupportedError(f"{at.step(encoder)} gives {column.feature.name} codes that are no numbers")
        columns += [Table(column.feature, tuple(codes.tolist())) for codes in coded[:, ends[place] : ends[place + 1]].T]
    return tuple(columns)


def _readable(encoder: Any, column: Column, known: np.ndarray, at: PipelineStep) -> tuple[Any, ...]:
    """The values of a column, those that the encoder would fail on replaced and noted as a fault."""
    feature = column.feature
    if isinstance(column, Number):
        if encoder.handle_unknown == "error" or any(isinstance(value, str) for value in known):
            at.faults.append(
                f"column {feature.name!r} holds numbers of any size, and {at.step(encoder)} of the model takes "
                f"{some(known, NAMED)} only; set features.{feature.name}.kind=categorical"
            )
        raise UnsupportedError(
            f"{at.step(encoder)} takes the number {feature.name} for a category; set "
            f"features.{feature.name}.kind=categorical"
        )
    why = unseen(feature, column.values, known, lenient=encoder.handle_unknown != "error", step=at.step(encoder))
    if why is None:
        return column.values
    at.faults.append(why)
    if encoder.handle_unknown != "error":  # as answers that are stored were made
        return column.values
    listed = set(known.tolist())
    return tuple(value if value in listed else known.tolist()[0] for value in column.values)


def _input(column: Column, estimator: Any, at: PipelineStep) -> Input:
    """A column as an input of the last step."""
    feature = column.feature
    if isinstance(column, Number):
        return Chain.of_steps(feature.name, column.steps) if column.steps else Affine(feature.name)
    if getattr(estimator, "is_categorical_", None) is not None and any(isinstance(v, str) for v in column.values):
        raise UnsupportedError(
            f"{at.step(estimator)} takes the texts of {feature.name} for categories by itself; put an OrdinalEncoder "
            f"before it in a pipeline, and name its columns in categorical_features"
        )
    if any(isinstance(value, str) for value in column.values) and not _takes_numbers(estimator):
        raise UnsupportedError(f"{at.step(estimator)} takes the texts of {feature.name} by itself")
    values = _numbers(column, estimator, at)
    if values is None or not np.isfinite(values).all():
        raise UnsupportedError(f"{at.step(estimator)} is given {feature.name}, which is no number there")
    if set(values.tolist()) <= {0.0, 1.0} and feature.kind is not Kind.ORDINAL:
        levels = tuple(level for level, value in zip(feature.categories, values, strict=True) if value)
        return Indicator(feature.name, levels)
    return Lookup(feature.name, feature.categories, tuple(values.tolist()))


def _takes_numbers(estimator: Any) -> bool:
    """Whether an estimator is known to take numbers alone; what others make of texts, their predictions show."""
    if type(estimator).__module__.partition(".")[0] not in NUMERIC:
        return False
    made = isinstance(estimator, MetaEstimatorMixin) and not isinstance(estimator, BaseEnsemble)
    return not made and not isinstance(estimator, (*MADE_OF_OTHERS, DummyClassifier, DummyRegressor))
