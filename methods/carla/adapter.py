"""Space and classifier as the data and the model that CARLA's methods take, and their rows as points of the space."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.target import Label
from methods.carla.compat import check_clock, library
from methods.wrapping import LateError, Met, plain, shares

TARGET = "y"


class Columns:
    """Scaled columns of a space, as CARLA has its data: numbers and ranks in [0, 1] over the training rows, binaries
    as one 0/1 column, other categories one-hot.

    Names are all equally long, since CARLA looks for some of them as parts of others. Hidden features are not among
    the columns, and never change.

    Parameters
    ----------
    hidden
        Names of features.
    """

    def __init__(self, space: Space, hidden: frozenset[str] = frozenset()) -> None:
        self.space = space
        owners = [feature for feature in space.features for _ in range(feature.width)]
        self.shown = [place for place, feature in enumerate(owners) if feature.name not in hidden]
        self.features = {f"x{place:04d}": owners[place] for place in self.shown}

    @property
    def names(self) -> list[str]:
        return list(self.features)

    @property
    def continuous(self) -> list[str]:
        """Columns that CARLA takes for continuous: numbers and ranks."""
        return [name for name, feature in self.features.items() if feature.numeric or feature.kind is Kind.ORDINAL]

    @property
    def immutable(self) -> list[str]:
        return [name for name, feature in self.features.items() if feature.name in self.space.immutable]

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """CARLA's columns of a decoded frame, rows numbered from 0."""
        return pd.DataFrame(self.space.encode(frame)[:, self.shown], columns=self.names)

    def matrix(self, rows: Any, origin: np.ndarray) -> np.ndarray:
        """All scaled columns, shape (rows, columns), of CARLA's; those hidden are as in ``origin``."""
        matrix = np.repeat(origin[None], len(rows), axis=0)
        matrix[:, self.shown] = np.asarray(rows, dtype=float)
        return matrix


class Codes(Columns):
    """One column a feature: numbers and ranks in [0, 1], and the code of any other category as text, for DiCE."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.features = {f"x{place:04d}": feature for place, feature in enumerate(space.features)}

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        encoded, data = self.space.encode(frame), {}
        for (name, feature), columns in zip(self.features.items(), self.space.slices, strict=True):
            ranked = feature.numeric or feature.kind is Kind.ORDINAL
            data[name] = encoded[:, columns.start] if ranked else feature.codes(frame[feature.name]).astype(str)
        return pd.DataFrame(data)

    def matrix(self, rows: Any, origin: np.ndarray) -> np.ndarray:
        table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=self.names)
        matrix = np.empty((len(table), len(self.space.columns)))
        for (name, feature), columns in zip(self.features.items(), self.space.slices, strict=True):
            values = table[name].to_numpy(dtype=float)
            if feature.kind is Kind.CATEGORICAL:
                matrix[:, columns] = values[:, None] == np.arange(feature.width)
            else:
                matrix[:, columns.start] = values
        return matrix


def coherent(space: Space, matrix: np.ndarray) -> np.ndarray:
    """Which scaled rows are points of the space once their categories are rounded, bool, shape (rows,).

    As CARLA reads its own encoding: a 0/1 column is rounded, and of the columns of one feature exactly one is 1. Ranks
    and integers are rounded likewise. Bounds are not checked.
    """
    ok = np.isfinite(matrix).all(axis=1)
    for feature, columns in zip(space.features, space.slices, strict=True):
        if feature.kind is Kind.CATEGORICAL:
            ones = np.rint(matrix[:, columns])
            ok &= np.isin(ones, (0.0, 1.0)).all(axis=1) & (ones.sum(axis=1) == 1)
        elif not feature.numeric:
            top = feature.steps
            rank = np.rint(matrix[:, columns.start] * top)
            ok &= (rank >= 0) & (rank <= len(feature.categories) - 1)
    return ok


class Question:
    """A problem as CARLA takes it: its columns, the wanted class as 1, and rows predicted as they would be returned.

    Parameters
    ----------
    problem
        With a binary model and a label as target.
    columns
        CARLA's columns.
    """

    def __init__(self, problem: Problem, columns: Columns) -> None:
        assert isinstance(problem.target, Label)
        self.problem, self.columns, self.space = problem, columns, problem.space
        self.classifier: Classifier = problem.classifier
        self.wanted = self.classifier.code(problem.target.value)
        self.lenient = False  # whether a row that is no point counts as the nearest one: for local approximations
        self.budget: int | None = None  # of calls, for a search without an end of its own
        self.met: Met | None = None  # what is wanted of the points that a search has met, where it is to be kept
        self._set(problem.train.iloc[[0]])

    def _set(self, factual: pd.DataFrame) -> None:
        self.factual, self.origin = factual, self.space.encode(factual)[0]

    @contextlib.contextmanager
    def about(self, factual: pd.DataFrame, budget: int | None = None) -> Iterator[pd.DataFrame]:
        """Within, rows are counterfactuals of ``factual``, which is given as CARLA wants it: its class column last."""
        self._set(factual)
        self.budget = budget
        try:
            yield self.table(factual, np.zeros(1, dtype=int))
        finally:
            self.budget = None

    def table(self, frame: pd.DataFrame, labels: np.ndarray) -> pd.DataFrame:
        """CARLA's columns of a decoded frame with those of the class, 1 for the wanted one."""
        return self.columns.encode(frame).assign(**{TARGET: labels})

    def probabilities(self, rows: Any) -> np.ndarray:
        """Of the other and of the wanted class, shape (rows, 2), the model's decision strictly on its side of 0.5.

        A row that is no point of the space, such as one with NaN, is not wanted.
        """
        check_clock()
        if self.budget is not None:
            self.budget -= 1
            if self.budget < 0:
                raise BudgetError
        if isinstance(rows, pd.DataFrame):
            rows = rows[self.columns.names]
        matrix = self.columns.matrix(rows, self.origin)
        ok = np.isfinite(matrix).all(axis=1) if self.lenient else coherent(self.space, matrix)
        share = np.zeros(len(matrix))
        if ok.any():
            points = self.space.decode(matrix[ok], like=self.factual)
            share[ok] = shares(self.classifier, points)[:, self.wanted]
        self.note(matrix, share)
        return np.column_stack([1.0 - share, share])

    def note(self, matrix: np.ndarray, share: np.ndarray) -> None:
        """Keep those of scaled rows that the model gives more than half of the wanted class."""
        if self.met is not None and (share > 0.5).any():
            wanted = matrix[share > 0.5]
            self.met.parts.append(wanted[coherent(self.space, wanted)])

    def read(self, table: pd.DataFrame) -> list[dict[str, Any]]:
        """Decoded rows of CARLA's, without those that are no point of the space."""
        matrix = self.columns.matrix(table[self.columns.names], self.origin)
        frame = self.space.decode(matrix[coherent(self.space, matrix)], like=self.factual)
        return plain(frame)


class BudgetError(LateError):
    """Ends a search that has used its budget of calls."""


def model_of(
    question: Question, frame: pd.DataFrame, trees: Any = None, module: Any = None, wanted: np.ndarray | None = None
) -> Any:
    """CARLA's model of a question, with its data inside.

    Parameters
    ----------
    frame
        Decoded rows of CARLA's data.
    trees
        The fitted trees of a forest whose inputs are the columns, with class 1 for the wanted one.
    module
        Of torch: the probabilities of ``Question.probabilities``, with gradients, for CARLA's columns as a tensor.
        Without one, tensors are answered without gradients.
    wanted
        Which rows are of the wanted class, bool; by default as the classifier predicts.
    """
    labels = (question.classifier.codes(frame) == question.wanted if wanted is None else wanted).astype(int)
    data = _data_class()(question, question.table(frame, labels))
    return _model_class()(question, data, trees, module)


@cache
def _data_class() -> type:
    """A subclass of CARLA's ``Data``, which exists only once CARLA is imported."""

    carla = library()

    class OurData(carla.Data):  # type: ignore[name-defined]
        scaler = None  # nothing is clipped to [0, 1]
        encoder = SimpleNamespace(get_feature_names=list)  # names of categorical columns after encoding: the same

        def __init__(self, question: Question, table: pd.DataFrame) -> None:
            self._columns, self._table = question.columns, table

        @property
        def categorical(self) -> list[str]:
            return [name for name in self._columns.names if name not in self._columns.continuous]

        @property
        def continuous(self) -> list[str]:
            return self._columns.continuous

        @property
        def immutables(self) -> list[str]:
            return self._columns.immutable

        @property
        def target(self) -> str:
            return TARGET

        @property
        def df(self) -> pd.DataFrame:
            return self._table.copy()

        @property
        def df_train(self) -> pd.DataFrame:
            return self._table.copy()

        @property
        def df_test(self) -> pd.DataFrame:  # the real test rows stay unseen
            return self._table.copy()

        def transform(self, df: pd.DataFrame) -> pd.DataFrame:
            return df.copy()

        def inverse_transform(self, df: pd.DataFrame) -> pd.DataFrame:
            return df.copy()

    return OurData


@cache
def _model_class() -> type:
    """A subclass of CARLA's ``MLModel``, registered in its catalog, which Feature Tweak requires."""

    carla = library()

    class OurModel(carla.MLModel):  # type: ignore[name-defined]
        backend = "sklearn"

        @property
        def feature_input_order(self) -> list[str]:
            return self.question.columns.names

        def __init__(self, question: Question, data: Any, trees: Any, module: Any) -> None:
            super().__init__(data)
            self.question, self.tree_iterator, self.module = question, trees, module

        @property
        def raw_model(self) -> Any:
            return self.tree_iterator if self.module is None else self.module

        def predict(self, x: Any) -> np.ndarray:
            return (self.predict_proba(x)[:, 1] > 0.5).astype(int)

        def predict_proba(self, x: Any) -> Any:
            if not hasattr(x, "detach"):
                return self.question.probabilities(x)
            if self.module is not None:
                return self.module(x)
            return x.new_tensor(self.question.probabilities(x.detach().numpy()))

    carla.MLModelCatalog.register(OurModel)
    return OurModel


def single_columns(space: Space) -> Columns:
    """The columns of features that take one each; all other features are hidden."""
    return Columns(space, multicolumn(space))


def moving_columns(space: Space) -> Columns:
    """Those without immutable features, for searches that know no constraint: hidden, a feature cannot move."""
    return Columns(space, multicolumn(space) | space.immutable)


def multicolumn(space: Space) -> frozenset[str]:
    """Features that take several columns: CARLA's searches by column cannot keep those coherent."""
    return frozenset(feature.name for feature in space.features if feature.kind is Kind.CATEGORICAL)


def swapped(tree: Any) -> Any:
    """A copy of scikit-learn's tree with its two classes exchanged: the published code moves towards class 1 only."""
    tree = copy.deepcopy(tree)
    values = tree.tree_.value
    values[:] = values[:, :, ::-1].copy()
    return tree
