"""NICE, nearest instance counterfactual explanations, as its authors' library ``NICEx`` runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from harness.core.errors import check_choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.target import Label
from methods.wrapping import Defaults, LateError, check_clock, missing, not_a_class, one_class, plain, shares, stated

REWARDS = ("none", "sparsity", "proximity", "plausibility")


@dataclass(frozen=True)
class Nice:
    """The nearest unlike training row, of which the reward chooses the features to copy onto the factual [1]_.

    The library searches; this class translates. Numbers and ordinal ranks are its numeric features, all others are
    categorical; its distance is HEOM with numbers over their training range. It knows no actionability:
    answers that break it are returned, and counted as such, as is one of another class than the wanted one. There is
    one counterfactual a factual.

    Parameters
    ----------
    reward
        ``none`` (the row itself), ``sparsity``, ``proximity`` or ``plausibility``: by what the features to copy are
        chosen, one after another.
    justified
        Whether only rows that the model classifies correctly are candidates.
    auto_encoder
        For ``plausibility``: reconstruction error, shape (rows,), of a decoded frame.

    References
    ----------
    .. [1] Brughmans, D., P. Leyman, and D. Martens (2023). NICE: an algorithm for nearest instance counterfactual
       explanations. *Data Mining and Knowledge Discovery*. NICEx 0.2.3, https://github.com/ADMAntwerp/NICE
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = stated(
        "nice:NICE.__init__", justified=(True, "justified_cf"), auto_encoder=None
    )

    reward: str = "sparsity"
    justified: bool = True
    auto_encoder: Callable[[pd.DataFrame], np.ndarray] | None = None

    def __post_init__(self) -> None:
        check_choices(self, {"reward": REWARDS})

    def refuses(self, problem: Problem) -> str | None:
        """A missing library, targets other than a class, and plausibility without anything to judge it."""
        if why := missing("nice", "NICEx") or not_a_class("NICE", problem):
            return why
        if self.reward == "plausibility" and self.auto_encoder is None:
            return (
                "NICE's plausibility needs an autoencoder, which the harness has not; give 'auto_encoder' a function."
            )
        return None

    def objective(self, problem: Problem) -> Objective | None:
        """None: the search is greedy, and its reward divides the gain in score by the distance."""
        return None

    def fit(self, problem: Problem) -> _Explainer:
        """Have the library classify the training rows once."""
        return _Explainer(self, one_class(problem))


@dataclass(eq=False)
class _Explainer:
    method: Nice
    problem: Problem
    deadline: Deadline | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        from nice import NICE  # optional

        problem, judge = self.problem, self.method.auto_encoder
        assert isinstance(problem.target, Label)
        self.wanted = problem.classifier.code(problem.target.value)
        self.codes = _Codes(problem.space)
        coded = {Kind.CATEGORICAL, Kind.BINARY}
        self.library: Any = NICE(
            self._shares,
            self.codes.matrix(problem.train),
            cat_feat=[place for place, feature in enumerate(problem.space.features) if feature.kind in coded],
            y_train=np.array([problem.classifier.code(label) for label in problem.labels]),
            optimization=self.method.reward,
            justified_cf=self.method.justified,
            auto_encoder=None if judge is None else lambda matrix: judge(self.codes.frame(matrix)),
        )

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """The library's counterfactual, whatever class the model gives it; GAVE_UP for all others."""
        data = self.library.data
        if not (data.candidates_mask & (data.X_train_class == self.wanted)).any():
            lacking = "NICE found no training row that the model classifies as wanted, and rightly so."
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, lacking)
        if deadline.passed:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT)
        self.deadline, ended = deadline.sooner(), Reason.FINISHED
        try:
            point = self.library.explain(self.codes.matrix(factual), target_class=[self.wanted])
        except LateError:  # on the way from the nearest such row, with which it begins
            point, ended = self.library.nearest_neighbour.find_neighbour(data.X), Reason.TIME_LIMIT
        finally:
            self.deadline = None
        (row,), (origin,) = plain(self.codes.frame(point)), plain(factual)
        if row == origin:
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, "NICE handed the factual back.")
        filler = Answer(Status.GAVE_UP, detail="NICE gives one counterfactual.")
        return Explanation((Answer(Status.FOUND, row, ended),)).padded(n, filler)

    def _shares(self, matrix: np.ndarray) -> np.ndarray:
        check_clock(self.deadline)
        return shares(self.problem.classifier, self.codes.frame(matrix))


class _Codes:
    """Decoded frames as one array, numbers in their own units and categories by code, and back."""

    def __init__(self, space: Space) -> None:
        self.space, self.types = space, space.frame([]).dtypes
        self.levels = {
            feature.name: np.array([*feature.categories, None], dtype=object)[:-1]
            for feature in space.features
            if not feature.numeric
        }

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """Shape (rows, features), float64."""
        features = self.space.features
        return np.column_stack([frame[f.name] if f.numeric else f.codes(frame[f.name]) for f in features]).astype(float)

    def frame(self, matrix: np.ndarray) -> pd.DataFrame:
        """The inverse of ``matrix``."""
        columns = dict(zip(self.space.names, matrix.T, strict=True))
        values = {
            name: self.levels[name][column.astype(int)] if name in self.levels else column
            for name, column in columns.items()
        }
        return pd.DataFrame(values, columns=self.space.index).astype(self.types)
