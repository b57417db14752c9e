"""What a method claims to minimise, as data: stored with the answers, evaluated here in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.core.costs import UNSTORED
from harness.core.density import Density
from harness.core.errors import choices
from harness.core.hull import distance
from harness.core.space import Kind, Space
from harness.core.tolerances import LIMIT_MET, OPTIMALITY_GAP, SMALL_SQUARE

HEAVIEST = 1e9  # a weight: beyond, distances beside it are lost in rounding, and with them proofs


def check_weight(name: str, value: float) -> None:
    """Refuse what cannot be a weight of an objective.

    Raises
    ------
    ValueError
        Where a value is not from 0 to ``HEAVIEST``.
    """
    if not 0 <= value <= HEAVIEST:
        raise ValueError(f"{name} is {value}; it must be from 0 to {HEAVIEST:.0e}.")


def tolerance(value: float, squared: bool) -> float:
    """The gap that counts as none: relative to max(1, |value|), and to the value itself where squares make it small."""
    return OPTIMALITY_GAP * max(SMALL_SQUARE if squared else 1.0, abs(value))


@dataclass(frozen=True)
class Term:
    r"""``weight`` times a named distance; ``params`` are the numbers that some names need.

    ``mad_l1``: the MAD by feature name. ``mahalanobis``: ``factor``, the L of :math:`\|L^T v\|_1`, v the difference in
    scaled columns. ``slack``, the distance from a convex hull: ``points`` in scaled columns, the ``norm`` (1, 2 or
    inf), the ``cluster`` of each point where the nearest of several hulls counts, and as ``entry`` the distance that
    lying outside counts besides; then points within ``LIMIT_MET`` of a hull are in it, and count 0, as where the hull
    is a limit. ``rarity``: the negative log-likelihood of a ``Density``, by its ``plain`` data. Distances between
    weights of evidence of a scorecard's bins, by its ``table`` (see ``woe``): ``woe_l1`` with the ``unit`` of each
    feature; ``woe_mahalanobis`` with ``factor`` and ``mean``, from that mean; ``woe_outcome``, of the outcome from its
    ``target``, with ``coefficients``, ``intercept`` and whether the outcome is ``logistic``.
    """

    name: str
    weight: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in TERMS:
            raise ValueError(f"there is no objective term {self.name!r}; {choices(self.name, TERMS)}.")
        if self.weight < 0:
            raise ValueError(f"the weight of {self.name} is {self.weight}; it must be >= 0.")


@dataclass(frozen=True)
class Limit:
    """A term whose value may be at most ``most``."""

    term: Term
    most: float


@dataclass(frozen=True)
class Objective:
    """A weighted sum of distances between a factual and a counterfactual, in scaled space.

    Parameters
    ----------
    terms
        The weighted distances; none where only the limits are claimed.
    count
        Unit of ``l0``: ``features``, or ``columns`` as in some papers' tables, where a changed one-hot category
        counts 2.
    categories
        What a changed one-hot category weighs in the other distances: 1, or ``columns`` (each changed column 1).
    limits
        What the method keeps its counterfactuals within, besides the question's own constraints. Of a group, ``l0``
        counts the features that a point changes for any of the factuals assigned to it.
    causal
        Whether it keeps to the question's structural equations.
    domain
        What else limits the points that it is minimised over, as plain data: it tells two claims apart, and is not
        evaluated here.
    costed
        Whether it is one of the features' own costs, where they have any.
    """

    terms: tuple[Term, ...]
    count: str = "features"
    categories: str | int = 1
    limits: tuple[Limit, ...] = ()
    causal: bool = False
    domain: Mapping[str, Any] = field(default_factory=dict)
    costed: bool = field(default=True, metadata=UNSTORED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "limits", tuple(self.limits))
        if self.count not in {"features", "columns"}:
            raise ValueError(f"count is {self.count!r}; allowed: features, columns.")
        if self.categories not in {1, "columns"}:
            raise ValueError(f"categories is {self.categories!r}; allowed: 1, columns.")

    def evaluate(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """The objective of each decoded row, shape (rows,)."""
        space = space if self.costed else space.unpriced
        moves, total = Moves(space, factual, frame), np.zeros(len(frame))
        for term in self.terms:
            total += term.weight * TERMS[term.name](moves, self._weights(space, term), term.params)
        return total

    def exceeded(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """Per decoded row, the names of the limits that it does not keep."""
        space = space if self.costed else space.unpriced
        moves = Moves(space, factual, frame)
        faults: list[list[str]] = [[] for _ in range(len(frame))]
        for limit in self.limits:
            term = limit.term
            values = TERMS[term.name](moves, self._weights(space, term), term.params)
            for fault, value in zip(faults, values, strict=True):
                if not value <= limit.most + LIMIT_MET:  # of a gap it may be NaN
                    fault.append(term.name)
        return faults

    def separable(self, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Coefficients (fixed, linear, quadratic), each of shape (features,), or None where it does not separate.

        The objective is then the sum over changed features of fixed + linear * gap + quadratic * gap**2, with the
        gaps of ``Moves.priced``.
        """
        parts = {"fixed": np.zeros(len(space.names)), "linear": np.zeros(len(space.names))}
        parts["quadratic"] = np.zeros(len(space.names))
        for term in self.terms:
            part = SEPARABLE.get(term.name)
            if part is None:
                return None
            parts[part] += term.weight * self._weights(space, term)
        return parts["fixed"], parts["linear"], parts["quadratic"]

    def gap_costs(self, space: Space) -> np.ndarray:
        """What it costs that a number becomes missing, or was, where the objective separates; shape (features,)."""
        total = np.zeros(len(space.names))
        for term in self.terms:
            weights = self._weights(space, term)
            own = space.weights ** {"fixed": 0, "linear": 1, "quadratic": 2}[SEPARABLE[term.name]]
            total += term.weight * own * (np.ones_like(weights) if term.name == "mad_l1" else weights)
        return total

    def _weights(self, space: Space, term: Term) -> np.ndarray:
        """Per feature, what one unit of gap (for ``l0``: a change) weighs in this term."""
        by_column = self.count == "columns" if term.name == "l0" else self.categories == "columns"
        double = [2.0 if by_column and feature.kind is Kind.CATEGORICAL else 1.0 for feature in space.features]
        weights = np.array(double)
        if term.name == "gower":
            weights /= len(space.names)
        if term.name == "mad_l1":
            weights *= [1.0 / term.params[f.name] if f.numeric else 1.0 for f in space.features]
        return weights

    def common(self) -> Objective | None:
        """The part that all targets share: without the data manifold of the wanted class; None where that is minimised.

        That there is such a hull, or density, stays on record, in ``domain``.
        """
        if any(term.name == "slack" for term in self.terms):
            return None
        limits = tuple(limit for limit in self.limits if limit.term.name not in MANIFOLD)
        domain = self.domain if len(limits) == len(self.limits) else {**self.domain, "hull": "of each target"}
        return replace(self, limits=limits, domain=domain)

    def stored(self) -> Objective:
        """What is stored with the answers: all but what needs the model to be evaluated, which a subclass may add."""
        return Objective(**{name: getattr(self, name) for name in Objective.__dataclass_fields__})

    def counts(self) -> Objective:
        """The part that counts changes, which is exact whatever they weigh; without limits."""
        return replace(self.stored(), terms=tuple(term for term in self.terms if term.name == "l0"), limits=())

    def limiting(self) -> Objective:
        """Its limits alone, for answers that are not judged by what is minimised."""
        return replace(self.stored(), terms=())


class Moves:
    """From a factual to each of some rows, as the terms look at it."""

    def __init__(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> None:
        self.space, self.factual, self.frame = space, factual, frame

    @cached_property
    def gaps(self) -> np.ndarray:
        """``displacement``, shape (rows, features)."""
        return displacement(self.space, self.factual, self.frame)

    @cached_property
    def priced(self) -> np.ndarray:
        """What the gaps cost, in scaled units, shape (rows, features)."""
        if not self.space.priced:
            return self.gaps
        columns = [f.charged(self.factual[f.name], self.frame[f.name]) for f in self.space.features]
        return np.column_stack(columns)

    @cached_property
    def changed(self) -> np.ndarray:
        """Which features changed, shape (rows, features)."""
        return self.space.changed(self.factual, self.frame)

    @cached_property
    def emptied(self) -> np.ndarray:
        """Which features became missing, or were, 0 or 1, shape (rows, features)."""
        columns = [
            self.frame[feature.name].isna().to_numpy() != self.factual[feature.name].isna().to_numpy()
            if feature.missing
            else np.zeros(len(self.frame), dtype=bool)
            for feature in self.space.features
        ]
        return np.column_stack(columns).astype(float) if columns else np.zeros((len(self.frame), 0))

    @cached_property
    def encoded(self) -> np.ndarray:
        """The rows in scaled columns."""
        return self.space.encode(self.frame)

    @cached_property
    def difference(self) -> np.ndarray:
        """The rows minus the factual, in scaled columns."""
        return self.encoded - self.space.encode(self.factual)


def displacement(space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """How far each feature moved, in scaled units, shape (rows, features): from one factual, or from one for each row.

    A number by its scaled difference, an ordinal one by ranks over levels - 1, any other changed feature by 1; so do
    numbers that become missing, or were.
    """
    gaps = np.empty((len(frame), len(space.features)))
    for feature, gap in zip(space.features, gaps.T, strict=True):
        origins, values = factual[feature.name].to_numpy(), frame[feature.name].to_numpy()
        if feature.numeric:
            gap[:] = feature.moved(origins, values)
        elif feature.kind is Kind.ORDINAL:
            gap[:] = np.abs(feature.codes(values) - feature.codes(origins)) / feature.steps
        else:
            gap[:] = values != origins
    return gaps


def mad(space: Space, frame: pd.DataFrame, floor: float = 0.01) -> dict[str, float]:
    """Median absolute deviation from the median of each number, in scaled units, by feature name.

    A MAD of 0 must not divide: values below ``floor`` (a share of the range) are raised to it; with ``floor`` 0, the
    published definition, a MAD of 0 becomes 1.

    >>> from harness.core.space import Feature
    >>> mad(Space((Feature("a", "continuous", scale=(0, 10)),)), pd.DataFrame({"a": [0.0, 1.0, 2.0, 10.0]}))
    {'a': 0.1}
    """
    result = {}
    for feature in space.features:
        if feature.numeric:
            values = frame[feature.name].dropna().to_numpy(float)
            spread = float(np.median(np.abs(values - np.median(values)))) / feature.range
            result[feature.name] = max(spread, floor) or 1.0
    return result


def covariance(columns: np.ndarray) -> np.ndarray:
    """The covariance of scaled columns, shape (columns, columns), made regular.

    One-hot columns sum to 1, so a millionth of the mean variance is added to each variance.
    """
    size = columns.shape[1]
    matrix = np.atleast_2d(np.cov(columns, rowvar=False))
    return matrix + (1e-6 * np.trace(matrix) / size or 1e-6) * np.eye(size)


def mahalanobis_factor(columns: np.ndarray) -> np.ndarray:
    r"""L, lower triangular with :math:`L L^T = \Sigma^{-1}`, of the ``covariance`` of some rows' scaled columns.

    :math:`\|L^T v\|_1` depends on the order of the columns: it is the space's.
    """
    return np.linalg.cholesky(np.linalg.inv(covariance(columns)))


def _weighted(power: int) -> Evaluation:
    return lambda moves, weights, params: (moves.priced**power) @ weights


def _mad_l1(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    """A change from or to missing counts 1, as one of a category does, and not a whole range in units of MAD."""
    return moves.priced @ weights + (moves.emptied * moves.priced) @ (1.0 - weights)


def _mahalanobis(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    return np.abs(moves.difference @ np.asarray(params["factor"])).sum(axis=1)


def _slack(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    points, cluster = np.asarray(params["points"]), params.get("cluster")
    hulls = [points] if cluster is None else [points[np.asarray(cluster) == label] for label in np.unique(cluster)]
    norm = float(params["norm"])
    values = np.array([min((distance(hull, row, norm) for hull in hulls), default=np.inf) for row in moves.encoded])
    return np.where(values > LIMIT_MET, values + params["entry"], 0.0) if "entry" in params else values


def _rarity(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    return -Density.read(params).likelihood(moves.encoded)


def woe(frame: pd.DataFrame, table: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Weights of evidence (means, for a number) of decoded rows in a scorecard, shape (rows, features).

    Each entry of the table names a ``feature`` and its ``values``: by ``levels``, or by ``thresholds`` t, values[k]
    being for numbers within (t[k - 1], t[k]].
    """
    columns = []
    for entry in table:
        values, own = np.asarray(entry["values"], dtype=float), frame[entry["feature"]]
        if "levels" in entry:
            place = {level: position for position, level in enumerate(entry["levels"])}
            columns.append(values[[place[value] for value in own]])
        else:
            columns.append(values[np.searchsorted(entry["thresholds"], own.to_numpy(float), side="left")])
    return np.column_stack(columns)


def _woe_l1(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    gaps = woe(moves.frame, params["table"]) - woe(moves.factual, params["table"])
    units = np.asarray(params["unit"])
    return np.abs(gaps) @ (1.0 / np.where(units > 0, units, 1.0))  # 0 of older answers: a variable without a weight


def _woe_mahalanobis(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    away = woe(moves.frame, params["table"]) - np.asarray(params["mean"])
    return np.abs(away @ np.asarray(params["factor"])).sum(axis=1)


def _woe_outcome(moves: Moves, weights: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
    from scipy.special import expit  # slow: 0.4 s, and workers start without

    score = woe(moves.frame, params["table"]) @ np.asarray(params["coefficients"]) + params["intercept"]
    return np.abs((expit(score) if params["logistic"] else score) - params["target"])


Evaluation = Callable[[Moves, np.ndarray, Mapping[str, Any]], np.ndarray]
TERMS: dict[str, Evaluation] = {
    "l0": lambda moves, weights, params: moves.changed @ weights,
    "l1": _weighted(1),
    "l2sq": _weighted(2),
    "linf": lambda moves, weights, params: moves.priced.max(axis=1, initial=0.0),
    "mad_l1": _mad_l1,
    "gower": _weighted(1),
    "mahalanobis": _mahalanobis,
    "slack": _slack,
    "rarity": _rarity,
    "woe_l1": _woe_l1,
    "woe_mahalanobis": _woe_mahalanobis,
    "woe_outcome": _woe_outcome,
}
MANIFOLD = {"slack", "rarity"}  # of the rows of the wanted class
SEPARABLE = {"l0": "fixed", "l1": "linear", "mad_l1": "linear", "gower": "linear", "l2sq": "quadratic"}
