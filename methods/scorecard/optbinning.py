"""OptBinning's own ``Counterfactual`` on scorecards: the formulation of its author, solved by CBC."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline, LibraryDefault
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.relations import refusal
from harness.core.space import Actionability, values_of
from harness.core.target import Interval, Label, Probability
from harness.core.tolerances import CBC_GAP
from harness.models.card import Card, card_of
from methods.scorecard.method import Scorecard
from methods.scorecard.moves import MoveFinder, closeness_factor
from methods.wrapping import Defaults, quiet, stated

RESERVE = 0.15  # of the time limit: for what the library does before and after its solver's search
LEFT = 0.25  # of the time limit: for fewer counterfactuals than were asked for
PIECES = "its probabilities are approximate, so that this is no proof."
GENERATE = "optbinning.scorecard.counterfactual.counterfactual:Counterfactual.generate"


@dataclass(frozen=True)
class OptBinningCounterfactual:
    r"""Optimal counterfactuals of a scorecard, as OptBinning [1]_ generates them.

    .. math::
        \min \;         & \omega_1 \textstyle\sum_j r_j |x'_j - x_j| + \omega_2 \|L^T (x' - \mu)\|_1  & (3) \\
        \text{s.t. } \; & x'_j = x_j + \textstyle\sum_b (w_{jb} - x_j) z_{jb}, \; t_j = \sum_b z_{jb} \le 1, \;
                          \sum_j t_j \le K                                                                  \\
                        & \beta_0 + \beta^T x' \ge 10^{-6} \text{ or } \le 0, \text{ or one end of the target} \\
                        & \textstyle\sum_j |t^m_j - t^n_j| \ge 1                                      & (10, 11) \\
                        & z^m_{jb} + z^n_{jb} \le 1                                                   & (12)

    Equation numbers are those of [2]_, letters those of ``Scorecard``; several counterfactuals m, n minimise the sum of
    their objectives.

    The library searches; this class translates. Its proximity is relative to the range of each feature's contribution
    to the score, which is the objective claimed here (``Scorecard`` with ``weights: optbinning``). It knows immutable
    features, but no other actionability and no bounds: answers that break them are returned, and counted as such, as
    are those that miss the target. A new bin becomes the value in it that is nearest to the factual's. CBC stops at a
    relative gap of 1e-4, so that answers are FOUND, with that bound. Targets of probabilities and numbers have one end
    only. For a probability the library takes 15 pieces of a line, which are off by .003 to .017 for scores within 4 to
    12 of 0: there is neither bound nor proof then.

    Parameters
    ----------
    objectives
        Weights of ``proximity`` (always needed: without it the library's constraints come apart) and ``closeness``.
    priorities
        By objective, for its hierarchical method; None: the weighted one.
    degradation
        Its ``priority_tol``.
    max_changes
        K; None for no bound.
    diversity
        ``features`` and ``values``: its hard constraints on several counterfactuals.

    References
    ----------
    .. [1] Navas-Palencia, G. OptBinning 1.0. https://github.com/guillermo-navas-palencia/optbinning
    .. [2] Navas-Palencia, G. (2021). Optimal counterfactual explanations for scorecard modelling. arXiv:2104.08619.
    """

    deterministic: ClassVar[bool] = True
    library_defaults: ClassVar[Defaults] = {
        **stated(GENERATE, degradation=(0.1, "priority_tol"), max_changes=None),
        "objectives": LibraryDefault({"proximity": 1, "closeness": 1}, "what it takes for objectives of None"),
        "priorities": LibraryDefault(None, "its method is 'weighted', to which priorities are unknown"),
        "diversity": LibraryDefault([], "its hard_constraints are None"),
    }

    objectives: Mapping[str, float] | None = None
    priorities: Mapping[str, int] | None = None
    degradation: float = 0.1
    max_changes: int | None = 3
    diversity: tuple[str, ...] | list[str] = ("features",)

    def __post_init__(self) -> None:
        if unknown := set(self.own.weighed) - {"proximity", "closeness"}:
            raise ValueError(f"objectives name {sorted(unknown)}; allowed: proximity, closeness.")
        if "proximity" not in self.own.weighed:
            raise ValueError("objectives lack 'proximity', without which OptBinning changes nothing; give it a weight.")

    @property
    def own(self) -> Scorecard:
        """The method of this harness with the same parameters, and the library's weights."""
        return Scorecard(
            self.objectives, self.priorities, self.degradation, "optbinning", self.max_changes, self.diversity
        )

    def refuses(self, problem: Problem) -> str | None:
        """A missing library, models other than scorecards, and targets with two ends."""
        if importlib.util.find_spec("optbinning") is None:
            return "OptBinning is not installed; run `uv sync`."
        if why := self.own.refuses(problem) or refusal(problem.space.relations, "optbinning_cf"):
            return why
        if not isinstance(problem.target, Label) and _ends(problem)[1] is None:
            return "OptBinning is run for one end of a probability or a number, not for both or none."
        return None

    def objective(self, problem: Problem) -> Objective:
        return self.own.objective(problem)

    def fit(self, problem: Problem) -> _Explainer:
        """Hand the card to the library."""
        return _Explainer(self, problem)


def _ends(problem: Problem) -> tuple[float, str | None]:
    """The end that the outcome (of class 1, or a number) has to reach, and the library's name for such an end."""
    target, classifier = problem.target, problem.classifier
    assert isinstance(target, Interval | Probability)
    low, high, least, most = target.low, target.high, 0.0, 1.0
    if isinstance(target, Interval):
        least, most = -math.inf, math.inf
    elif classifier.code(target.label) == 0:
        low, high = 1.0 - high, 1.0 - low
    if (low > least) == (high < most):
        return low, None
    return (low, "min_outcome") if low > least else (high, "max_outcome")


class _Seconds(float):
    """Seconds whose thousandfold is whole: the library multiplies them so, for a solver that takes milliseconds."""

    def __mul__(self, by: float) -> int:
        return max(1, int(float(self) * by))


class _Explainer:
    def __init__(self, method: OptBinningCounterfactual, problem: Problem) -> None:
        card = card_of(problem.classifier)
        assert card is not None
        self.method, self.problem, self.card = method, problem, card
        self.exact = not isinstance(problem.target, Probability)
        self.claim = method.objective(problem)
        free = {f.name: {"actionability": Actionability.FREE} for f in problem.space.features}
        self.finders = [
            MoveFinder(card, problem),
            MoveFinder(card, replace(problem, space=problem.space.replace(free))),
        ]
        self.library = prepared(card, problem.train)
        own = {"proximity": 1.0, "closeness": 1.0}
        self.request: dict[str, Any] = {
            "method": "weighted" if method.priorities is None else "hierarchical",
            "objectives": dict(method.priorities or method.objectives or own),
            "max_changes": method.max_changes or len(card.names),
            "actionable_features": [name for name in card.names if name not in problem.space.immutable],
            "priority_tol": method.degradation,
        }
        if isinstance(problem.target, Label):
            self.request |= {"outcome_type": "binary", "y": problem.classifier.code(problem.target.value)}
            self.library._intercept -= problem.classifier.raw_threshold  # its own threshold is a score of 0
            self.hard: list[str] = []
        else:
            number = isinstance(problem.target, Interval)
            y, end = _ends(problem)
            self.request |= {"outcome_type": "continuous" if number else "probability", "y": y}
            self.hard = [str(end)]

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """The library's counterfactuals, whatever the model predicts for them; GAVE_UP for those it did not find.

        Where there are none so many that differ, as many as there are; where time ends before so many are found, one.
        """
        found, counts = Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT), [*range(n, 0, -1)]
        while counts and found.answers[0].row is None and not deadline.passed:
            count = counts.pop(0)
            found = self._asked(factual, count, deadline.sooner(LEFT) if counts else deadline)
            if found.answers[0].status is not Status.INFEASIBLE and not found.answers[0].detail.endswith(PIECES):
                counts = counts[-1:]  # time ended it, which fewer of them would not change
        last, fewer = found.answers[0], Answer(Status.GAVE_UP, detail="OptBinning found no more that differ.")
        return found.padded(n, last if last.row is None else fewer)

    def _asked(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> Explanation:
        """The library's ``n`` counterfactuals at once."""
        hard = [*self.hard, *(f"diversity_{name}" for name in self.method.diversity)] if n > 1 else self.hard
        searches = len(self.method.priorities or "1")  # each has the limit for itself
        seconds = _Seconds(deadline.sooner(RESERVE).left / searches)
        query = factual[list(self.card.names)].astype(object)
        with quiet():
            try:
                self.library.generate(query, n_cf=n, hard_constraints=hard or None, time_limit=seconds, **self.request)
            except Exception as fault:  # the library raises nothing more special from its hierarchical method
                if "problem in hierarchical model" not in str(fault):
                    raise
                status = str(fault).split()[0]
            else:
                status = self.library.status
        if status == "INFEASIBLE" and not self.exact:
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, "OptBinning's program found none; " + PIECES)
        if status == "INFEASIBLE":
            return Explanation.none(n, Status.INFEASIBLE, Reason.PROOF, "OptBinning found this to be infeasible.")
        if status not in {"OPTIMAL", "FEASIBLE"}:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT, f"OptBinning ended with {status}.")
        return self._explanation(factual, n, status == "OPTIMAL")

    def _explanation(self, factual: pd.DataFrame, n: int, proven: bool) -> Explanation:
        origin = values_of(factual)
        rows: list[dict[str, Any]] = []
        answers: list[Answer] = []
        for found in self.library._cfs:
            places = {name: int(found["query"][name].iloc[0]) for name in found["features"]}
            row = self._row(origin, places)
            if row is None or row == origin or row in rows:
                why = "OptBinning's bins contain no permitted value, or no new one."
                answers.append(Answer(Status.GAVE_UP, detail=why))
            else:
                rows.append(row)
        frame = self.problem.space.frame(rows)
        values = self.claim.evaluate(self.problem.space, factual, frame)
        reason = Reason.FINISHED if proven else Reason.TIME_LIMIT
        proven = (
            proven
            and self.exact
            and self.method.priorities is None
            and bool(rows)
            and bool(self.problem.valid(frame).all())
        )
        for row, value in sorted(zip(rows, map(float, values), strict=True), key=lambda pair: -pair[1]):
            bound = value - CBC_GAP * abs(float(np.sum(values))) if proven else None
            answers.insert(0, Answer(Status.FOUND, row, reason, value, bound))
        return Explanation(tuple(answers)).padded(n, Answer(Status.GAVE_UP))

    def _row(self, origin: Mapping[str, Any], places: Mapping[str, int]) -> dict[str, Any] | None:
        """The factual with values of other bins, permitted ones where there are any; None where a bin contains none."""
        row = dict(origin)
        for f, name in enumerate(self.card.names):
            if name not in places:
                continue
            for finder in self.finders:
                axis = finder.axes[f]
                found = dict(axis.options(origin[name], axis.bin_of(origin[name]))).get(places[name])
                if found is not None:
                    row[name] = found
                    break
            else:
                return None
        return row


def _library() -> ModuleType:
    """OptBinning, with its scorecards."""
    import optbinning.scorecard  # slow: seconds

    return optbinning


def prepared(card: Card, train: pd.DataFrame) -> Any:
    """The library's generator for a card, with the statistics of the training rows that its ``fit`` would compute.

    Unlike ``fit``, it takes a singular covariance too.
    """
    values = card.values(card.bins(train))
    parts = [v.contributions[[b.role != "unknown" for b in v.bins]] for v in card.variables]
    low, high = np.array([part.min() for part in parts]), np.array([part.max() for part in parts])
    width = np.where(high > low, high - low, 1.0)  # a feature of one bin has no proximity
    library = _library().scorecard.Counterfactual(restated(card))
    library._variable_names = list(card.names)
    library._intercept, library._coef = float(card.intercept), card.coefficients
    library._min_p, library._max_p = float(low.sum() + card.intercept), float(high.sum() + card.intercept)
    library._wrange, library._F, library._mu = 1.0 / width, closeness_factor(values), values.mean(axis=0)
    library._time_fit, library._is_fitted, library._is_generated = 0.0, True, False
    return library


def restated(card: Card) -> Any:
    """A card as the library's ``Scorecard``, as far as its counterfactuals ask for one; bins by position.

    Special and missing bins have the values that the model computes with. The library's own table has their empirical
    weights of evidence instead, which widens the range that it divides proximity by. A feature without special codes
    has a line for them too, equal to that of missing values: the library never moves to the last two lines of a
    feature.
    """
    lines = []
    for variable in card.variables:
        listed = [place for place, b in enumerate(variable.bins) if b.role != "unknown"]
        if all(b.role != "special" for b in variable.bins):
            listed.append(listed[-1])
        metric, weight = variable.values[listed], np.full(len(listed), variable.coefficient)
        columns = {"Variable": variable.name, "Bin": listed, "WoE": metric, "Mean": metric, "Coefficient": weight}
        lines.append(pd.DataFrame(columns))
    lines_of_card = pd.concat(lines)  # whose index starts anew with each variable, as the library's does

    class Restated(_library().Scorecard):  # type: ignore[misc]
        def table(self, style: str = "summary") -> pd.DataFrame:
            return lines_of_card.copy()

        def _check_is_fitted(self) -> None:
            """It is."""

    scorecard = Restated(None, None)
    names = np.array(card.names, dtype=object)
    scorecard.binning_process_ = SimpleNamespace(
        get_support=lambda **_: names,
        transform=lambda frame: pd.DataFrame(card.values(card.bins(frame)), columns=names),
    )
    scorecard.estimator_ = SimpleNamespace(coef_=card.coefficients[None], intercept_=float(card.intercept))
    scorecard._target_dtype = "binary" if card.binary else "continuous"
    return scorecard
