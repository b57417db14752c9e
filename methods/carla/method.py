"""What all methods of CARLA share: refusals, calls of the library, and its rows as answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.target import Classes, Label
from methods.carla import compat
from methods.carla.adapter import BudgetError, Question
from methods.wrapping import Defaults, LateError, Met, plain


@dataclass(frozen=True)
class CarlaMethod:
    """A method of CARLA's [1]_, before a binary model and a wanted class.

    CARLA searches in scaled columns; every row it has predicted is judged as it would be returned, integers, ranks
    and categories rounded. What CARLA returns is handed back unjudged: out of bounds, or with immutable features
    changed. CARLA itself returns NaN where its model does not give its point the wanted class, and searches once; so
    there is no answer then, and no second search. A row whose rounded columns are no point of the space is no answer.
    Searches from point to point, ended by the clock, hand back the nearest of the wanted class that they have met.

    References
    ----------
    .. [1] Pawelczyk, M., S. Bielawski, J. van den Heuvel, T. Richter, and G. Kasneci (2021). CARLA: a Python library
       to benchmark algorithmic recourse and counterfactual explanation algorithms. *NeurIPS Datasets and Benchmarks*.
    """

    title: ClassVar[str]  # the method's name in sentences
    library_defaults: ClassVar[Defaults]
    many: ClassVar[bool] = False  # whether it takes more than two classes, as one or some against the rest

    def refuses(self, problem: Problem) -> str | None:
        """A missing library, targets other than a class, models other than binary ones, and the method's own needs."""
        if absent := self.absent():
            return absent
        if not isinstance(problem.target, Label | Classes):
            return f"CARLA's {self.title} is run for a wanted class only; set 'desired' to a class."
        if not problem.classifier.binary and not self.many:
            return (
                f"CARLA's {self.title} takes models with two classes, not {len(problem.classifier.classes) or 'none'}."
            )
        return self.needs(problem)

    def absent(self) -> str | None:
        """A missing library, as a sentence, or None."""
        return None if compat.installed() else compat.ABSENT

    def needs(self, problem: Problem) -> str | None:
        """Why the method itself cannot take this binary problem, or None."""
        return None

    def fit(self, problem: Problem) -> CarlaExplainer:
        """Set CARLA's method up, with the same seed each time."""
        compat.library()
        with compat.running(np.random.default_rng(0)):
            return self.build(problem)

    def build(self, problem: Problem) -> CarlaExplainer:
        """The explainer; code of CARLA's may run here."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        """Its settings as CARLA's own table of defaults names them, but for those of an autoencoder."""
        places = {name: default.place for name, default in self.library_defaults.items()}
        own = {name: place.rpartition(":")[2] for name, place in places.items() if place.startswith(compat.CATALOG)}
        return {key: getattr(self, name) for name, key in own.items() if "/" not in key}

    def explainer(self, question: Question, method: Any, draws: bool = False, steps: bool = False) -> CarlaExplainer:
        """Of rows that a method of CARLA's gives for a factual."""
        return CarlaExplainer(
            self.title, question, lambda table, _: method.get_counterfactuals(table), draws, steps=steps
        )

    def objective(self, problem: Problem) -> Objective | None:
        """None: CARLA's methods prove nothing about what they return."""
        return None


def without_scaled_trees(problem: Problem, title: str, models: tuple[type, ...], known: str) -> str | None:
    """Why a method of CARLA's that moves along splits cannot take a model, or None; ``known`` are those it takes."""
    classifier = problem.classifier
    if classifier.opaque:
        return classifier.opaque
    if not isinstance(classifier.estimator, models):
        name = type(classifier.estimator).__name__
        return f"CARLA's {title} takes scikit-learn's {known}, not {name}; choose such a model."
    if classifier.inputs != space_inputs(problem.space):
        return f"CARLA's {title} moves the model's inputs, which must be scaled columns; train such a model."
    return None


Ask = Callable[[pd.DataFrame, int], pd.DataFrame]


@dataclass(eq=False)
class CarlaExplainer:
    """One of CARLA's methods, set up for one problem.

    Parameters
    ----------
    question
        The problem in CARLA's terms.
    ask
        Rows found for a factual in CARLA's columns, and the number of rows wanted.
    draws
        Whether chance gives other answers: several counterfactuals are those of as many searches. Otherwise there is
        one search.
    budget
        Of model calls in one search.
    steps
        Whether the points that the search asks the model about are what it may return.
    """

    title: str
    question: Question
    ask: Ask
    draws: bool = False
    budget: int | None = None
    steps: bool = False

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """At most ``n`` answers in the order they were found, without repeats; GAVE_UP for all others."""
        if deadline.passed:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT)
        known, reason, lost = plain(factual[list(self.question.space.names)]), Reason.FINISHED, 0
        until, spent, late = deadline.sooner(), 0.0, list[Answer]()
        self.question.met = met = Met(self.question.problem) if self.steps else None
        try:
            with compat.running(rng, until):
                for _ in range(n if self.draws else 1):
                    if len(known) > 1 and until.left < spent:  # a draw may not ask for the clock, and lose all
                        reason = Reason.TIME_LIMIT
                        break
                    before = until.left
                    rows, strange = self._search(factual, n)
                    spent, lost = before - until.left, lost + strange
                    for row in rows:
                        if row not in known:
                            known.append(row)
        except LateError:
            reason = Reason.TIME_LIMIT
            points = () if met is None else met.explanation(factual, n).answers
            late = [answer for answer in points if answer.row is not None and answer.row not in known]
        answers = (*(Answer(Status.FOUND, row) for row in known[1:]), *late)[:n]
        detail = f"CARLA's {self.title} found {len(answers) or 'no'} counterfactual{'s' if len(answers) > 1 else ''}"
        detail += f", and {lost} that no row can be." if lost else "."
        return Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=reason, detail=detail))

    def _search(self, factual: pd.DataFrame, n: int) -> tuple[list[dict[str, Any]], int]:
        """Rows found, and how many were no points of the space."""
        with self.question.about(factual, self.budget) as table:
            try:
                found = self.ask(table, n)
            except BudgetError:
                return [], 0
            found = found[self.question.columns.names].dropna()
            rows = self.question.read(found)
            return rows, len(found) - len(rows)
