"""Linear models, trees and networks as arrays for the search within hulls."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, by_category
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.core.tolerances import SCORE_TIE, SUM_ROUNDING
from methods.estimators import network_margins
from methods.estimators.linear import is_linear, unit_of, weights_of
from methods.estimators.network import dense_layers
from methods.estimators.network_margins import Margins
from methods.estimators.raw_target import RawInterval, raw_interval
from methods.estimators.thresholds import as_compared, last_decoded
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import ensemble, splits_only


class Trees:
    """A sum of trees as flat arrays over its leaves; valid is a score of base + the leaves' values above 0.

    Scores are in a unit of which ``SCORE_TIE`` is the rounding error of the model's own summation.
    """

    def __init__(self, problem: Problem, sense: int, threshold: float) -> None:
        model, space = ensemble(problem.classifier.estimator), problem.space
        inputs = problem.classifier.inputs
        place = {name: index for index, name in enumerate(space.names)}
        unit = max(model.rounding(threshold) / SCORE_TIE, 1.0)
        self.base = sense * float(model.base[0] - threshold) / unit
        leaves = [(t, leaf) for t, tree in enumerate(model.trees) for leaf in leaves_of(tree)]
        self.owner = np.array([t for t, _ in leaves])
        self.value = sense * model.weight / unit * np.array([model.trees[t].value[leaf.node, 0] for t, leaf in leaves])
        count = len(space.features)
        self.first, self.last = np.full((len(leaves), count), -np.inf), np.full((len(leaves), count), np.inf)
        self.met = [np.ones((len(leaves), max(len(f.categories), 1)), dtype=bool) for f in space.features]
        known: dict[tuple[int, float], float] = {}
        for k, (_, leaf) in enumerate(leaves):
            for side, right in ((leaf.above, True), (leaf.at_most, False)):
                for column, end in side.items():
                    source = inputs[column]
                    j = place[source.feature]
                    feature = space.features[j]
                    if not feature.numeric:
                        values = as_compared(by_category(feature, source), model.single)
                        self.met[j][k] &= (values > end) if right else (values <= end)
                        continue
                    if not isinstance(source, Affine):
                        raise UnsupportedError(
                            f"{type(source).__name__} of {feature.name} cannot be searched by boxes."
                        )
                    if (column, end) not in known:
                        known[column, end] = last_decoded(feature, source, end, model.single)
                    value = known[column, end]
                    if right == (source.unit > 0):
                        self.first[k, j] = max(self.first[k, j], _after(feature, value))
                    else:
                        self.last[k, j] = min(self.last[k, j], value)
        for j, feature in enumerate(space.features):
            if feature.kind is Kind.ORDINAL:
                self._ranks(j, feature)

    def _ranks(self, j: int, feature: Feature) -> None:
        """The ranks that each leaf takes of an ordinal feature, as an interval."""
        met = self.met[j]
        some = met.any(axis=1)
        first, last = met.argmax(axis=1), met.shape[1] - 1 - met[:, ::-1].argmax(axis=1)
        if (met.sum(axis=1)[some] != (last - first + 1)[some]).any():
            raise UnsupportedError(f"{feature.name} is ordinal, and split out of its order.")
        self.first[:, j] = np.where(some, first, np.inf)
        self.last[:, j] = np.where(some, last, -np.inf)


def _after(feature: Feature, value: float) -> float:
    """The next value of a number, or the next rank."""
    return float(np.nextafter(value, math.inf)) if feature.kind is Kind.CONTINUOUS else math.floor(value) + 1.0


class Sums:
    """Weighted sums of the model's inputs as functions of the features.

    Parameters
    ----------
    weights, constant
        Of inputs, shapes (sums, inputs) and (sums,).

    Attributes
    ----------
    slope
        Of decoded numbers and ranks, shape (sums, features); ``tables`` have the others, (sums, categories) a feature.

    Raises
    ------
    UnsupportedError
        Where the sums are not affine in a number, or in the ranks of an ordinal feature.
    """

    def __init__(self, problem: Problem, weights: np.ndarray, constant: np.ndarray) -> None:
        space = problem.space
        self.constant = constant.astype(float)
        self.slope = np.zeros((len(weights), len(space.features)))
        self.tables = [np.zeros((len(weights), max(len(f.categories), 1))) for f in space.features]
        place = {name: index for index, name in enumerate(space.names)}
        for weight, source in zip(weights.T, problem.classifier.inputs, strict=True):
            j = place[source.feature]
            feature = space.features[j]
            if not feature.numeric:
                self.tables[j] += np.outer(weight, by_category(feature, source))
            elif isinstance(source, Affine):
                self.slope[:, j] += weight / source.unit
                self.constant = self.constant - weight * source.shift / source.unit
            else:
                raise UnsupportedError(f"{type(source).__name__} of {feature.name} cannot be searched by boxes.")
        for j, feature in enumerate(space.features):
            if feature.kind is not Kind.ORDINAL:
                continue
            steps = np.diff(self.tables[j], axis=1)
            if steps.size and (np.ptp(steps, axis=1) > SUM_ROUNDING * np.maximum(1.0, np.abs(steps).max(axis=1))).any():
                raise UnsupportedError(f"{feature.name} is ordinal, and its ranks are not evenly apart.")
            self.slope[:, j] = steps.mean(axis=1) if steps.size else 0.0
            self.constant += self.tables[j][:, 0]


def line_of(problem: Problem) -> Sums:
    """The score of a linear model."""
    rows, intercepts = weights_of(problem.classifier.estimator)
    return Sums(problem, rows[:1], intercepts[:1])


def units_of(problem: Problem) -> Sums:
    """The first layer's sums of a network."""
    weights, shifts = dense_layers(problem.classifier.estimator)[0]
    return Sums(problem, weights.T, shifts)


@dataclass(frozen=True)
class Model:
    """A linear model, a sum of trees or a network of ReLUs as arrays, and what its score has to meet.

    ``limits`` are those of a linear model's score, kept by ``margin`` times ``first`` to begin with; a sum of trees is
    valid above 0. ``sums`` are a linear model's score, or the first layer of the network whose ``margins`` are there.
    """

    problem: Problem
    limits: RawInterval
    margin: float
    first: float
    sums: Sums | None = None
    trees: Trees | None = None
    margins: Margins | None = None

    @property
    def linear(self) -> bool:
        """Whether the model's score is a sum of its inputs."""
        return self.sums is not None and self.margins is None

    @classmethod
    def of(cls, problem: Problem, margin: float, bare: bool = False) -> Model:
        """The model of a problem that ``searchable`` takes."""
        limits = raw_interval(problem)
        if is_linear(problem.classifier.estimator):
            unit = unit_of(problem) if bare else 1.0
            return cls(problem, limits, margin * unit, float(not bare), line_of(problem))
        if network_margins.takes(problem):
            own = Margins(problem, 0.0 if bare else margin)
            return cls(problem, limits, margin, 1.0, units_of(problem), margins=own)
        end = limits.low if limits.sense > 0 else limits.high
        return cls(problem, limits, margin, 1.0, trees=Trees(problem, limits.sense, end))


def searchable(problem: Problem) -> bool:
    """Whether the model is linear, or trees or a network with one end, whose features can be searched as intervals."""
    classifier = problem.classifier
    if len(classifier.classes) > 2 or any(feature.leaves_ranks_out for feature in problem.space.features):
        return False
    try:
        if is_linear(classifier.estimator):
            line_of(problem)
            return True
        if network_margins.takes(problem):
            units_of(problem)
            return raw_interval(problem).sense != 0
        if not splits_only(classifier.estimator):
            return False
        sense = raw_interval(problem).sense
        if sense:
            Trees(problem, sense, 0.0)
        return sense != 0
    except UnsupportedError:
        return False
