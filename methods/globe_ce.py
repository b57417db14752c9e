"""GLOBE-CE: one direction for a whole group, and how far along it each person has to go (Ley, Mishra, Magazzeni)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_above, check_counts
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import COORDINATE_TIE, Actionability, Space

FINALISTS = 20  # directions that serve equally many, of which the shortest way is looked for
BLOCK = 50  # directions that are tried together, between two looks at the clock


@dataclass(frozen=True)
class GlobeCe:
    r"""A direction :math:`\delta` of scaled columns that serves most of a group, and each person's least step along it.

    .. math::
        \max_\delta \; |\{i : h(x_i + \delta) \models \tilde y\}|, \quad \|\delta\|_1 = c, \qquad
        k_i = \min \{k \in (0, 1] : h(x_i + k \delta) \models \tilde y\}

    Algorithm 1 of [1]_: directions of the same cost are drawn, the one of the greatest coverage is kept (of equal ones,
    that of the least mean k), and scaled down for each person. The columns of a category follow the direction, and the
    greatest of them is its value, so that a category is entered from some k on (theorems 4.1 and 4.2 there). No
    direction leads where no one may go; each person stops at bounds, and is served by a permitted point or not at all.
    Everybody served has a point of their own, unless two points are the same. Nothing is proven: the status is FOUND.

    Parameters
    ----------
    draws
        Directions that are drawn, at least 1.
    cost
        c > 0, in scaled units.
    scalings
        Values of k that are tried, evenly from 0 to 1, at least 1.
    power
        > 0: entries of a direction are normal numbers to this power, so that a greater one favours few features.

    References
    ----------
    .. [1] Ley, D., S. Mishra, and D. Magazzeni (2023). GLOBE-CE: a translation-based approach for global
       counterfactual explanations. *ICML*.
    """

    gives: ClassVar[str] = "one"

    draws: int = 200
    cost: float = 2.0
    scalings: int = 20
    power: float = 3.0

    def __post_init__(self) -> None:
        check_counts(self, 1, "draws", "scalings")
        check_above(self, 0, "cost", "power")

    def refuses(self, problem: Problem) -> str | None:
        return None

    def objective(self, problem: Problem) -> Objective | None:
        """None: directions are drawn, and none is claimed to be the best."""
        return None

    def fit(self, problem: Problem) -> _Translations:
        return _Translations(self, problem)

    def directions(self, space: Space, rng: np.random.Generator) -> np.ndarray:
        """Directions of scaled columns that lead where somebody may go, shape (draws, columns)."""
        drawn = rng.normal(size=(self.draws, len(space.columns)))
        drawn = np.sign(drawn) * np.abs(drawn) ** self.power
        for feature, columns in zip(space.features, space.slices, strict=True):
            if feature.actionability is Actionability.IMMUTABLE:
                drawn[:, columns] = 0.0
            elif feature.actionability in {Actionability.INCREASE, Actionability.DECREASE}:
                up = 1.0 if feature.actionability is Actionability.INCREASE else -1.0
                drawn[:, columns] = up * np.abs(drawn[:, columns])
        size = np.abs(drawn).sum(axis=1, keepdims=True)
        return self.cost * drawn / np.where(size > 0, size, 1.0)


class _Translations:
    def __init__(self, method: GlobeCe, problem: Problem) -> None:
        self.method, self.problem = method, problem

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        served, _ = self._served(factual, rng, deadline)
        why = Reason.TIME_LIMIT if deadline.passed else Reason.FINISHED
        answers = tuple(Answer(Status.FOUND, row, why) for row in served.values())
        return Explanation(answers).padded(
            n, Answer(Status.GAVE_UP, reason=why, detail="no further direction is given")
        )

    def explain_group(self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline) -> GroupExplanation:
        if factuals.empty:
            return GroupExplanation((), bound=0.0, status=Status.OPTIMAL, total_change=0, total_change_bound=0.0)
        served, direction = self._served(factuals, rng, deadline)
        rows: list[dict[str, object]] = []
        assigned, origins = {}, factuals.to_dict("index")
        changed: list[set[str]] = []
        total = 0
        for index, row in served.items():
            if row not in rows:
                rows.append(row)
                changed.append(set())
            assigned[index] = rows.index(row)
            moved = {name for name, value in row.items() if value != origins[index][name]}
            changed[assigned[index]] |= moved
            total += len(moved)
        names = self.problem.space.names
        return GroupExplanation(
            tuple(Answer(Status.FOUND, row) for row in rows),
            assigned,
            changed=tuple(tuple(name for name in names if name in moved) for moved in changed),
            total_change=total,
            trace=({"direction": dict(zip(self.problem.space.columns, direction.tolist(), strict=True))},),
        )

    def _served(
        self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline
    ) -> tuple[dict[object, dict[str, object]], np.ndarray]:
        """By factual id, the decoded row of each person that the best direction serves; and that direction."""
        directions = self.method.directions(self.problem.space, rng)
        people, counts = _People(self.problem, factuals), list[int]()
        for start in range(0, len(directions), BLOCK):
            if deadline.passed:
                break
            counts += people.served(directions[start : start + BLOCK])[0].sum(axis=1).tolist()
        most = max(counts, default=0)
        best, found, chosen = math.inf, dict[object, dict[str, object]](), np.zeros(directions.shape[1])
        steps = np.arange(1, self.method.scalings + 1)[:, None] / self.method.scalings
        for place in np.flatnonzero(np.array(counts) == most)[:FINALISTS] if most else ():
            if deadline.passed and found:
                break
            valid, frame = people.served(steps * directions[place])
            least = np.where(valid.any(axis=0), valid.argmax(axis=0), len(steps))
            if least.mean() < best:
                found = {
                    index: frame.iloc[[step * len(factuals) + one]].to_dict("records")[0]
                    for one, (index, step) in enumerate(zip(factuals.index, least, strict=True))
                    if step < len(steps)
                }
                best, chosen = float(least.mean()), directions[place]
        return found, chosen


class _People:
    """Some factuals, who go along directions."""

    def __init__(self, problem: Problem, factuals: pd.DataFrame) -> None:
        self.problem, self.factuals = problem, factuals
        self.origins = problem.space.encode(factuals)
        ends = [problem.space.reach(factuals.iloc[[place]]) for place in range(len(factuals))]
        self.low = np.minimum([low for low, _ in ends], self.origins)
        self.high = np.maximum([high for _, high in ends], self.origins)

    def served(self, moves: np.ndarray) -> tuple[np.ndarray, pd.DataFrame]:
        """Whether each person has a counterfactual by each move, bool, shape (moves, people); and the decoded points.

        A feature of which no column has moved keeps its value to the last bit.
        """
        space, count = self.problem.space, len(moves)
        points = np.clip(self.origins + moves[:, None], self.low, self.high).reshape(-1, moves.shape[1])
        factuals = self.factuals.iloc[np.tile(np.arange(len(self.factuals)), count)].reset_index(drop=True)
        frame, moved = space.decode(points), np.abs(points - np.tile(self.origins, (count, 1))) > COORDINATE_TIE
        for name, columns in zip(space.names, space.slices, strict=True):
            frame[name] = frame[name].where(moved[:, columns].any(axis=1), factuals[name])
        valid = self.problem.valid(frame) & space.changed(factuals, frame).any(axis=1)
        places = np.flatnonzero(valid)
        valid[places] = [not faults for faults in space.violations(factuals.iloc[places], frame.iloc[places])]
        return valid.reshape(count, -1), frame
