"""First robust points, and the certifier of their radii."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from harness.certificate import Ball, Checker
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.relations import all_kept
from harness.core.space import Space
from methods.robust.related import clauses
from methods.robust.settings import Settings

TRIED = 40  # training rows whose neighbourhood is certified, in search of a first robust point
HALVINGS = 12  # of its way back to the factual
FARTHER = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  # times rho beyond a point that is not robust, in its number that moves most


@dataclass
class Certifier:
    """Certified radii of rows, by the harness's own checker."""

    problem: Problem
    settings: Settings

    def __post_init__(self) -> None:
        problem, settings = self.problem, self.settings
        self.checker = Checker(problem.space, problem.classifier, problem.target)
        self.ball = Ball.scaled(problem.space, settings.norm, settings.unperturbed)

    def related(self, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """Which decoded rows keep the relations, where that is asked for in their whole region; bool, shape (rows,)."""
        everywhere = self.settings.relations_in_region
        return all_kept(clauses(self.settings.perturbation(self.problem), factual, everywhere), frame)

    def radius(self, row: Mapping[str, Any], seconds: float) -> float:
        """The largest proven radius of a row, at most rho; -1 for a row that is invalid itself."""
        if not self.checker.valid(row):
            return -1.0
        return self.checker.certify(row, self.ball, self.settings.radius, seconds).radius

    def robust(self, row: Mapping[str, Any], seconds: float) -> bool:
        """Whether a row is proven robust; cheaper than its radius, where it is not."""
        if not self.checker.valid(row):
            return False
        radius = self.settings.radius
        return self.checker.certify(row, self.ball, radius, seconds, exact=False).radius >= radius


class RobustGuess:
    """Robust points without a program: training rows with room around them, moved on lines as far as they keep it."""

    def __init__(self, problem: Problem, space: Space, objective: Objective, certifier: Certifier) -> None:
        self.space, self.objective, self.certifier = space, objective, certifier
        valid = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        self.rows = valid.reset_index(drop=True)
        self.numbers = [s.start for s, f in zip(space.slices, space.features, strict=True) if f.numeric]
        # A hull is a linear program a row: asked of those that are tried only.
        self.cheap = replace(objective, limits=tuple(part for part in objective.limits if part.term.name != "slack"))
        for row in problem.train.head(1).to_dict("records"):
            certifier.checker.compile(row, certifier.ball)

    def near(self, factual: pd.DataFrame, deadline: Deadline) -> tuple[dict[str, Any] | None, float]:
        """A robust row moved towards the factual, and its cost; None and infinity where none was met."""
        rows = self.rows
        allowed = np.array([not faults for faults in self.space.violations(factual, rows)], dtype=bool)
        rows = rows.loc[allowed & self.certifier.related(factual, rows)]
        if not rows.empty:
            rows = rows.loc[[not faults for faults in self.cheap.exceeded(self.space, factual, rows)]]
        if rows.empty:
            return None, math.inf
        values = self.objective.evaluate(self.space, factual, rows)
        seconds = 0.2 * deadline.left / TRIED
        for place in np.argsort(values, kind="stable")[:TRIED]:
            row = rows.iloc[[int(place)]].to_dict("records")[0]
            if self.answerable(row, factual, seconds):
                return self.between(factual, row, factual, Deadline.after(TRIED * seconds))
        return None, math.inf

    def answerable(self, row: Mapping[str, Any], factual: pd.DataFrame, seconds: float) -> bool:
        """Whether a row may be answered: permitted, within the limits, and robust."""
        frame = self.space.frame([row])
        if self.space.violations(factual, frame)[0] or self.objective.exceeded(self.space, factual, frame)[0]:
            return False
        return bool(self.certifier.related(factual, frame)[0]) and self.certifier.robust(row, seconds)

    def between(
        self, near: pd.DataFrame, row: dict[str, Any], factual: pd.DataFrame, deadline: Deadline
    ) -> tuple[dict[str, Any], float]:
        """A robust row, its numbers moved towards those of another one as far as it may be answered; and its cost."""
        ends, start = self.space.encode(self.space.frame([row]))[0], self.space.encode(near)[0]
        low, high, best = 0.0, 1.0, row
        for _ in range(HALVINGS):
            if deadline.passed:
                break
            middle = (low + high) / 2
            trial = self._on(start, ends, middle, factual)
            if self.answerable(trial, factual, deadline.left):
                best, high = trial, middle
            else:
                low = middle
        return best, float(self.objective.evaluate(self.space, factual, self.space.frame([best]))[0])

    def beyond(self, row: Mapping[str, Any], factual: pd.DataFrame, deadline: Deadline) -> dict[str, Any] | None:
        """The first robust row found on the way from the factual through one that is not; None where none was met."""
        ends, start = self.space.encode(self.space.frame([row]))[0], self.space.encode(factual)[0]
        far = np.abs(ends - start)[self.numbers].max(initial=0.0)
        for times in FARTHER if far > 0 else ():
            trial = self._on(start, ends, 1.0 + times * self.certifier.settings.radius / far, factual)
            if deadline.passed:
                return None
            if self.answerable(trial, factual, deadline.left):
                return trial
        return None

    def _on(self, start: np.ndarray, ends: np.ndarray, share: float, factual: pd.DataFrame) -> dict[str, Any]:
        """A point on the line through two others, whose categories are those of the second."""
        point = ends.copy()
        point[self.numbers] = start[self.numbers] + share * (ends[self.numbers] - start[self.numbers])
        found: dict[str, Any] = self.space.decode(point, like=factual).to_dict("records")[0]
        return found
