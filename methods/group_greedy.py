"""A few counterfactuals for a group without optimisation: a greedy cover by nearest-unlike-neighbour explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.gaps import missing
from harness.core.method import Deadline
from harness.core.numbers import check_counts
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.target import Classes, Label
from methods.wrapping import one_class


@dataclass(frozen=True)
class GroupGreedy:
    r"""Few counterfactuals that explain a group, each with at most :math:`T_{\max}` changed features: a baseline.

    .. math::
        \min \;      & \textstyle\sum_k y_k                                    & (1) \\
        \text{s.t. } & h(x^k) \models \tilde y                                & (2) \\
                     & |\{l : x^k_l \ne \hat x_{il} \text{ for an i with } a_{ik} = 1\}| \le T_{\max} & (3\text{-}5) \\
                     & \textstyle\sum_k a_{ik} \ge 1, \quad a_{ik} \le y_k     & (7\text{-}8)

    Equation numbers are those of [2]_, whose problem this is: :math:`a_{ik} = 1` where the counterfactual
    :math:`x^k` serves factual i, :math:`y_k = 1` where it is used; (2) has the rule of the model h itself. Here the
    points are candidates in the manner of [1]_, and a greedy cover takes the place of the minimum. A factual that no
    candidate serves is left out.

    Candidates: of each factual, its nearest training rows that the model puts in the desired class; from such a row,
    the features that raise the score most are copied, one by one, until the prediction changes or :math:`T_{\max}`
    features have changed. A candidate can serve a factual where all features that differ may change; over all factuals
    that it serves, at most :math:`T_{\max}` features differ. The candidate that serves most of the remaining factuals
    is taken, again and again. Nothing is proven: the status is FOUND.

    Parameters
    ----------
    t_max
        :math:`T_{\max}`, features that the factuals of one counterfactual may change together; at least 1.
    neighbours
        Training rows tried per factual; at least 1.

    References
    ----------
    .. [1] Brughmans, D., P. Leyman, and D. Martens (2023). NICE: an algorithm for nearest instance counterfactual
       explanations. *Data Mining and Knowledge Discovery*.
    .. [2] Lodi, A., and J. Ramírez-Ayerbe (2024). One-for-many counterfactual explanations by column generation.
       arXiv:2402.09473.
    """

    deterministic: ClassVar[bool] = True

    t_max: int = 5
    neighbours: int = 10

    def __post_init__(self) -> None:
        check_counts(self, 1, "t_max", "neighbours")

    def refuses(self, problem: Problem) -> str | None:
        if isinstance(problem.target, Label | Classes):
            return None
        return "group_greedy follows the score of a class, and a number is wanted; give a class as 'desired'"

    def objective(self, problem: Problem) -> Objective:
        """Nothing is claimed to be least; the limit on changes alone."""
        return Objective((), limits=(Limit(Term("l0"), self.t_max),))

    def fit(self, problem: Problem) -> _Greedy:
        return _Greedy(self, one_class(problem))


def _differing(one: pd.DataFrame, points: pd.DataFrame) -> np.ndarray:
    """Which features of some points have another value than a row, to the last bit; bool, shape (points, features)."""
    own = one.iloc[0]
    return np.column_stack([(points[n] != own[n]) & ~(points[n].isna() & missing(own[n])) for n in points])


class _Greedy:
    def __init__(self, method: GroupGreedy, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.unlike = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        self.encoded = problem.space.encode(self.unlike)
        self.gower = Objective((Term("gower"),))

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        rows: list[dict[str, object]] = []
        for neighbour, differing in self._neighbours(factual):
            if deadline.passed or len(rows) == n:
                break
            point = self._towards(factual, neighbour, differing)
            if point is not None and (row := point.to_dict("records")[0]) not in rows:
                rows.append(row)
        late = deadline.passed
        why = "no near training row of the desired class shows how, within so few features"
        filler = Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT if late else Reason.FINISHED, detail=why)
        return Explanation(tuple(Answer(Status.FOUND, row) for row in rows)).padded(n, filler)

    def explain_group(self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline) -> GroupExplanation:
        if factuals.empty:
            return GroupExplanation((), bound=0.0, status=Status.OPTIMAL, total_change=0, total_change_bound=0.0)
        space = self.problem.space
        profiles = factuals.drop_duplicates()
        points = self._candidates(profiles, deadline)
        if points.empty:
            return GroupExplanation(())
        encoded = space.encode(points)
        differs, serves = [], []
        for place in range(len(profiles)):
            one = profiles.iloc[[place]]
            changed = space.changed(one, points)
            differs.append(_differing(one, points))
            kept = [not broken for broken in space.breaches(one, points)] if space.relations else True
            serves.append((space.reached(one, encoded) | ~changed).all(axis=1) & kept)
        found = self._cover(np.stack(differs, axis=1), np.stack(serves, axis=1))
        place_of = {tuple(row): place for place, row in enumerate(profiles.itertuples(index=False))}
        rows = points.to_dict("records")
        served = {place: number for number, (_, members, _) in enumerate(found) for place in members}
        assigned = {
            index: served[place]
            for index, row in zip(factuals.index, factuals.itertuples(index=False), strict=True)
            if (place := place_of[tuple(row)]) in served
        }
        changed_names = tuple(
            tuple(name for name, moved in zip(space.names, features, strict=True) if moved) for _, _, features in found
        )
        answers = tuple(Answer(Status.FOUND, rows[point]) for point, _, _ in found)
        origins = factuals.to_dict("index")
        total = sum(
            origins[index][name] != value
            for index, point in assigned.items()
            for name, value in rows[found[point][0]].items()
        )
        return GroupExplanation(answers, assigned, changed=changed_names, total_change=total)

    def _candidates(self, profiles: pd.DataFrame, deadline: Deadline) -> pd.DataFrame:
        """Counterfactuals of the profiles, one or more each, without repetition."""
        found = []
        for place in range(len(profiles)):
            one = profiles.iloc[[place]]
            for neighbour, differing in self._neighbours(one):
                if deadline.passed:
                    break
                if (point := self._towards(one, neighbour, differing)) is not None:
                    found.append(point)
        return pd.concat(found, ignore_index=True).drop_duplicates(ignore_index=True) if found else profiles.iloc[:0]

    def _neighbours(self, factual: pd.DataFrame) -> list[tuple[pd.DataFrame, np.ndarray]]:
        """The nearest training rows of the desired class, and which features may be copied from each."""
        space = self.problem.space
        if self.unlike.empty:
            return []
        movable = space.changed(factual, self.unlike) & space.reached(factual, self.encoded)
        distance = self.gower.evaluate(space, factual, self.unlike)
        order = np.argsort(distance, kind="stable")[: self.method.neighbours]
        return [(self.unlike.iloc[[place]], np.flatnonzero(movable[place])) for place in order]

    def _towards(self, factual: pd.DataFrame, neighbour: pd.DataFrame, differing: np.ndarray) -> pd.DataFrame | None:
        """The factual with at most ``t_max`` values of the neighbour, predicted as the target; or None."""
        space = self.problem.space
        row, other = factual.to_dict("records")[0], neighbour.to_dict("records")[0]
        left = [space.names[place] for place in differing]
        for _ in range(min(self.method.t_max, len(left))):
            tried = space.frame([{**row, name: other[name]} for name in left])
            best = int(np.argmax(self._merit(tried)))
            row[left[best]] = other[left[best]]
            left.pop(best)
            point = tried.iloc[[best]]
            if self.problem.valid(point)[0] and not space.violations(factual, point)[0]:
                return point
        return None

    def _merit(self, frame: pd.DataFrame) -> np.ndarray:
        """The score of the wanted class, shape (rows,)."""
        classifier, target = self.problem.classifier, self.problem.target
        assert isinstance(target, Label)
        scores, code = classifier.score(frame), classifier.code(target.value)
        return scores[:, code] if scores.ndim > 1 else scores if code == 1 else -scores

    def _cover(self, differs: np.ndarray, serves: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """A greedy cover: each point with the places of the profiles that it serves, and the features that change.

        Parameters
        ----------
        differs
            Per point and profile, the features that differ, bool, shape (points, profiles, features).
        serves
            Whether what differs may change, shape (points, profiles).
        """
        left = np.ones(serves.shape[1], dtype=bool)
        serves = serves & (differs.sum(axis=2) <= self.method.t_max)
        found = []
        while left.any():
            best: tuple[int, np.ndarray, np.ndarray] | None = None
            for point, most in enumerate((serves & left).sum(axis=1)):
                if best is not None and most <= len(best[1]):
                    continue
                members, features = self._grown(differs[point], serves[point] & left)
                if best is None or len(members) > len(best[1]):
                    best = (point, members, features)
            if best is None or not len(best[1]):
                break
            found.append(best)
            left[best[1]] = False
        return found

    def _grown(self, differs: np.ndarray, open_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of open profiles that share a point, the nearest first, and the features that they change."""
        features = np.zeros(differs.shape[1], dtype=bool)
        while True:
            more = (differs & ~features).sum(axis=1)
            joining = open_ & (more > 0) & (more + features.sum() <= self.method.t_max)
            if not joining.any():
                return np.flatnonzero(open_ & (more == 0)), features
            features = features | differs[np.flatnonzero(joining)[np.argmin(more[joining])]]
