"""Scorecards: a linear model of binned features, as OptBinning fits them and as banks use them.

A ``Card`` is one as plain data, bins and points included; OptBinning itself is only needed to fit one, and to
predict by a ``Scorecard`` that a user fitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.metaestimators import available_if

from harness.core.errors import HarnessError, UnsupportedError
from harness.core.frames import with_columns
from harness.core.inputs import Input
from harness.core.space import Space
from harness.core.tolerances import SCORE_TIE
from harness.models.card import Bin, Card, Nothing, Variable


class ScorecardEstimator(BaseEstimator):
    """What scorecards have in common, given ``card_``; rows are decoded frames, or arrays of the card's columns."""

    card_: Card
    fitted_by = ("optbinning", "ortools")  # libraries whose versions a fit depends on

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The features that it uses, in the order of its table."""
        return np.array(self.card_.names, dtype=object)

    @property
    def inside(self) -> Any:
        """Itself, as nothing is around it."""
        return self

    def inputs(self, space: Space) -> tuple[Input, ...]:
        """As ``Card.inputs``: this estimator is trained on decoded frames, and predicts arrays too."""
        return self.card_.inputs(space)

    def _bins(self, rows: Any) -> np.ndarray:
        if isinstance(rows, pd.DataFrame):
            return self.card_.bins(rows)
        matrix = np.asarray(rows, dtype=float)
        columns = [v.bins_of_codes(matrix[:, j]) for j, v in enumerate(self.card_.variables)]
        return np.column_stack(columns)

    def _score(self, rows: Any) -> np.ndarray:
        return self.card_.score(self._bins(rows))


class ScorecardClassifier(ClassifierMixin, ScorecardEstimator):
    """Logistic regression on weights of evidence, binned and scaled by OptBinning.

    Parameters
    ----------
    selection
        Which features are taken, as OptBinning's ``BinningProcess`` has ``selection_criteria``; all where None.
    special_codes
        Codes with a bin of their own in every feature, beside those that the dataset names.
    binning
        Any other parameter of ``BinningProcess``, such as ``max_n_bins``.
    C
        Inverse strength of the ridge penalty.
    points
        The least and greatest points a row can have, over the ordinary bins and what special and missing ones count.
    reverse
        Whether more points are a higher probability of class 1; else a lower one.
    """

    def __init__(
        self,
        selection: Mapping[str, Any] | None = None,
        special_codes: Sequence[Any] | None = None,
        binning: Mapping[str, Any] | None = None,
        C: float = 1.0,
        points: tuple[float, float] | None = (300.0, 850.0),
        reverse: bool = False,
    ) -> None:
        self.selection = selection
        self.special_codes = special_codes
        self.binning = binning
        self.C = C
        self.points = points
        self.reverse = reverse

    def fit(self, frame: pd.DataFrame, labels: Any, space: Space | None = None) -> ScorecardClassifier:
        """Bin the features of a decoded frame and weigh them.

        Parameters
        ----------
        labels
            Two classes, in any coding, shape (rows,).
        space
            Which features are categories and which codes are special; by the columns' types where None.

        Raises
        ------
        HarnessError
            For other than two classes, and where ``selection`` leaves no feature.
        """
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise HarnessError(
                f"a scorecard tells two classes apart, and there are {len(self.classes_)}; choose another model."
            )
        model = LogisticRegression(C=self.C, solver="newton-cholesky", tol=1e-8, max_iter=1000)
        self.card_ = _fitted(self, frame, (np.asarray(labels) == self.classes_[1]).astype(int), space, model)
        return self

    def decision_function(self, rows: Any) -> np.ndarray:
        """Log-odds of the second class, shape (rows,)."""
        return self._score(rows)

    def predict(self, rows: Any) -> np.ndarray:
        """Labels, shape (rows,)."""
        return self.classes_[(self._score(rows) > 0).astype(int)]

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Probability of each class, shape (rows, 2)."""
        probability = expit(self._score(rows))
        return np.column_stack([1.0 - probability, probability])


class ScorecardRegressor(RegressorMixin, ScorecardEstimator):
    """Linear regression on mean outcomes of bins, binned and scaled by OptBinning; parameters as the classifier's."""

    def __init__(
        self,
        selection: Mapping[str, Any] | None = None,
        special_codes: Sequence[Any] | None = None,
        binning: Mapping[str, Any] | None = None,
        points: tuple[float, float] | None = (0.0, 100.0),
        reverse: bool = True,
    ) -> None:
        self.selection = selection
        self.special_codes = special_codes
        self.binning = binning
        self.points = points
        self.reverse = reverse

    def fit(self, frame: pd.DataFrame, labels: Any, space: Space | None = None) -> ScorecardRegressor:
        """As ``ScorecardClassifier.fit``; ``labels`` are numbers, shape (rows,)."""
        self.card_ = _fitted(self, frame, np.asarray(labels, dtype=float), space, LinearRegression())
        return self

    def predict(self, rows: Any) -> np.ndarray:
        """Numbers, shape (rows,)."""
        return self._score(rows)


def _fitted(own: Any, frame: pd.DataFrame, targets: np.ndarray, space: Space | None, model: Any) -> Card:
    """Fit an OptBinning scorecard with the settings of an estimator, and read it."""
    from optbinning import BinningProcess, Scorecard  # slow: it imports ortools

    names = list(frame.columns)
    if space is None:
        categorical = [name for name in names if not pd.api.types.is_numeric_dtype(frame[name])]
        special: dict[str, list[Any]] = {}
    else:
        categorical = [name for name in names if not space[name].numeric]
        special = {name: list(space[name].special) for name in names if space[name].special}
    common = list(own.special_codes or ())
    codes = {name: {"special_codes": sorted({*common, *codes})} for name, codes in special.items()}
    process = BinningProcess(
        names,
        categorical_variables=categorical,
        special_codes=common or None,
        selection_criteria=None if own.selection is None else _plain(own.selection),
        binning_fit_params=codes or None,
        **dict(own.binning or {}),
    )
    scaling = {} if own.points is None else {"min": float(own.points[0]), "max": float(own.points[1])}
    card = Scorecard(
        process, model, scaling_method="min_max" if scaling else None, scaling_method_params=scaling or None,
        reverse_scorecard=own.reverse,
    )  # fmt: skip
    with warnings.catch_warnings(action="ignore"):  # of pandas, about OptBinning's tables
        try:
            card.fit(frame.astype(dict.fromkeys(categorical, object)), targets)
        except (ValueError, TypeError) as fault:
            binned = getattr(card, "binning_process_", None)
            if binned is not None and own.selection is not None and not binned.get_support().any():
                raise HarnessError(
                    f"selection={own.selection} leaves no feature for the scorecard; widen its limits."
                ) from None
            raise HarnessError(f"OptBinning cannot fit a scorecard ({fault}); change model.estimator.") from fault
        return read_card(card)


def _plain(node: Any) -> Any:
    return {key: _plain(item) for key, item in node.items()} if isinstance(node, Mapping) else node


def read_card(scorecard: Any) -> Card:
    """A fitted OptBinning ``Scorecard`` as plain data.

    Every value comes from the scorecard's own transformation of one value of each bin, so that it is the same to the
    last bit.

    Raises
    ------
    UnsupportedError
        For binning that is no step function, and for an estimator that is not linear in the bins' values.
    """
    process = scorecard.binning_process_
    names = [str(name) for name in process.get_support(names=True)]
    bins = {name: _bins_of(process.get_binned_variable(name)) for name in names}
    rows = max(map(len, bins.values()))
    probes = pd.DataFrame({name: _one_each(bins[name], rows) for name in names})
    values = _matrix(scorecard._transform(_widened(process, probes), None, *_metrics(scorecard)))
    points = _matrix(scorecard.transform(_widened(process, probes)))
    estimator = scorecard.estimator_
    coefficients = np.ravel(estimator.coef_).astype(float)
    if len(coefficients) != len(names):
        raise UnsupportedError("its scorecard has another number of coefficients than features")
    variables = tuple(
        Variable(
            name, bins[name], values[: len(bins[name]), j].copy(), float(weight), points[: len(bins[name]), j].copy()
        )
        for j, (name, weight) in enumerate(zip(names, coefficients, strict=True))
    )
    binary = is_classifier(estimator)
    card = Card(
        variables,
        float(np.ravel(getattr(estimator, "intercept_", 0.0))[0]),
        binary,
        float(np.ravel(getattr(scorecard, "intercept_", 0.0))[0]),
    )
    own = scorecard.decision_function if binary else scorecard.predict
    if np.abs(card.score(card.bins(probes)) - np.ravel(own(_widened(process, probes)))).max() > SCORE_TIE:
        raise UnsupportedError("its scorecard's score is not the sum of its bins' values")
    return card


def _metrics(scorecard: Any) -> tuple[Any, Any]:
    """What the scorecard puts for special codes and for missing values."""
    return getattr(scorecard, "_metric_special", 0), getattr(scorecard, "_metric_missing", 0)


def _matrix(transformed: Any) -> np.ndarray:
    return np.asarray(transformed, dtype=float).reshape(len(transformed), -1)


def _widened(process: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every column that the scorecard was trained on: it asks for those it does not use, too."""
    lacking = [name for name in process.variable_names if name not in frame.columns]
    return with_columns(frame, dict.fromkeys(lacking, np.nan))


def _bins_of(binned: Any) -> tuple[Bin, ...]:
    """The bins of one fitted variable, in the order of its table, then the unknown ones."""
    if type(binned).__name__ not in {"OptimalBinning", "ContinuousOptimalBinning"}:
        raise UnsupportedError(
            f"its scorecard bins {binned.name} by {type(binned).__name__}, which is no step function"
        )
    if binned.dtype == "numerical":
        ends = [-np.inf, *map(float, binned.splits), np.inf]
        found = [Bin("interval", low, high) for low, high in pairwise(ends)]
    else:
        found = [Bin("categories", members=tuple(np.asarray(group).tolist())) for group in binned.splits]
    codes = binned.special_codes
    if isinstance(codes, Mapping):
        found += [Bin("special", members=tuple(np.ravel(group).tolist())) for group in codes.values()]
    elif codes is not None:
        found.append(Bin("special", members=tuple(codes)))
    found.append(Bin("missing"))
    return tuple(found) if binned.dtype == "numerical" else (*found, Bin("unknown"))


def _one_each(bins: Sequence[Bin], rows: int) -> pd.Series:
    """A value of each bin, the last one again up to so many rows."""
    found: list[Any] = []
    codes = {code for b in bins if b.role == "special" for code in b.members}
    for b in bins:
        if b.role == "interval":
            found.append(_number_in(b, codes))
        elif b.role == "missing":
            found.append(np.nan)
        else:
            found.append(b.members[0] if b.members else Nothing)
    found += found[-1:] * (rows - len(found))
    return pd.Series(found, dtype=float if bins[0].role == "interval" else object)


def _number_in(b: Bin, codes: Collection[Any]) -> float:
    """A number of an interval that is no code, which has a bin of its own even where an interval begins with it."""
    number = b.low if np.isfinite(b.low) else np.nextafter(b.high, -np.inf) if np.isfinite(b.high) else 0.0
    while number in codes:
        number = np.nextafter(number, np.inf if np.isfinite(b.low) else -np.inf)
    return float(number)


class OptBinned(BaseEstimator):
    """A fitted ``Scorecard`` of OptBinning's with what scikit-learn's estimators have; every answer is its own.

    Parameters
    ----------
    scorecard
        The fitted ``Scorecard``.
    """

    def __init__(self, scorecard: Any) -> None:
        self.scorecard = scorecard

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The features that it uses, in the order of its table; it was trained on more, perhaps."""
        return np.array(self.scorecard.binning_process_.get_support(names=True), dtype=object)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Labels or numbers, shape (rows,)."""
        return self.scorecard.predict(_widened(self.scorecard.binning_process_, frame))


class OptBinnedClassifier(ClassifierMixin, OptBinned):
    """With classes."""

    @property
    def classes_(self) -> np.ndarray:
        """Labels, shape (2,)."""
        return self.scorecard.estimator_.classes_

    @available_if(lambda self: hasattr(self.scorecard.estimator_, "predict_proba"))
    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probability of each class, shape (rows, 2)."""
        return self.scorecard.predict_proba(_widened(self.scorecard.binning_process_, frame))

    @available_if(lambda self: hasattr(self.scorecard.estimator_, "decision_function"))
    def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
        """Score of the second class, shape (rows,)."""
        return self.scorecard.decision_function(_widened(self.scorecard.binning_process_, frame))

    @cached_property
    def inside(self) -> ScorecardClassifier:
        """The same as plain data; UnsupportedError as ``read_card``."""
        found = ScorecardClassifier()
        found.classes_, found.card_ = self.classes_, read_card(self.scorecard)
        return found


class OptBinnedRegressor(RegressorMixin, OptBinned):
    """With numbers."""

    @cached_property
    def inside(self) -> ScorecardRegressor:
        """The same as plain data; UnsupportedError as ``read_card``."""
        found = ScorecardRegressor()
        found.card_ = read_card(self.scorecard)
        return found


def as_scorecard(model: Any) -> Any:
    """A fitted OptBinning ``Scorecard`` as an estimator; anything else as it is."""
    if type(model).__name__ != "Scorecard" or not type(model).__module__.startswith("optbinning."):
        return model
    return OptBinnedClassifier(model) if is_classifier(model.estimator_) else OptBinnedRegressor(model)
