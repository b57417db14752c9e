"""CE-OCL by its mixed-integer program: first guesses, hulls tried in turn, and several counterfactuals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from harness.core.equation import follow
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.tolerances import COORDINATE_TIE, OPTIMALITY_GAP
from methods.ce_ocl.answers import cost_of, infeasible
from methods.ce_ocl.assignments import Assignment
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.constraints import manifolds
from methods.ce_ocl.few_changes import FewChanges
from methods.ce_ocl.first_guess import FirstGuess
from methods.ce_ocl.formulation import blocking
from methods.ce_ocl.incumbent import printed
from methods.ce_ocl.one_answer import AnswerSearch
from methods.ce_ocl.parameters import Parameters
from methods.ce_ocl.program import CounterfactualProgram
from methods.hull_search.search import BoxSearch
from methods.milp.distance import Separable
from methods.milp.likely import Likely
from methods.milp.manifold import Manifold

NEAREST = 40  # rows of the hull that are tried together as first counterfactuals


@dataclass(frozen=True)
class Request:
    """A factual, valid points near it (computed where they are needed first), and the deadline."""

    factual: pd.DataFrame
    guesses: Callable[[], pd.DataFrame]
    deadline: Deadline


class ProgramEngine:
    """The program of one problem, and what finds first counterfactuals for it.

    Parameters
    ----------
    plain
        The engine of the same parameters without a hull, whose answers are first guesses where a hull may be left.
    """

    def __init__(
        self, parameters: Parameters, problem: Problem, plain: CellEngine | ProgramEngine | None = None
    ) -> None:
        self.plain = plain
        self.program = program = CounterfactualProgram(parameters, problem)
        self.manifolds = manifolds(parameters, problem, program.aim.claim.terms[-1].params.get("entry", 0.0))
        if self.manifolds:
            points, cluster = self.manifolds[0].points, self.manifolds[0].cluster
            valid = problem.valid(problem.space.decode(points)) if len(points) else np.zeros(0, dtype=bool)
            self.rows, self.row_cluster = points[valid], cluster[valid]
        guess = program.splits or program.knapsack is not None or program.aim.squared or program.causality is not None
        # A linear model is solved faster than a first guess is found, unless tangents have to know where to touch. With
        # nothing to spare around a hull, its own rows are the only guesses that lie in it.
        loose = any(not manifold.exact for manifold in self.manifolds) or not self.manifolds
        self.starts = FirstGuess(problem) if guess and (loose or program.causality is not None) else None
        few = blocking("few", parameters, problem) is None
        self.few = FewChanges(problem, 0.0 if program.bare else parameters.margin, program.aim.weights) if few else None
        self.boxes = self._box_search(parameters, problem)
        self.all_boxed = blocking("hull", parameters, problem) is None  # answers after the first, too

    def _box_search(self, parameters: Parameters, problem: Problem) -> BoxSearch | None:
        """The search within hulls, where it takes the problem."""
        distance = self.program.aim.distance
        if not self.manifolds or parameters.engine == "milp" or blocking("hull", parameters, problem, first=True):
            return None
        assert isinstance(distance, Separable)  # as the table has it
        return BoxSearch(
            problem,
            distance,
            parameters.alpha,
            self.program.aim.weights,
            parameters.max_changes,
            parameters.margin,
            self.program.bare,
        )

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each separated from those before; fewer than ``n`` end with one that has no point."""
        request = Request(factual, cache(lambda: self._guesses(factual, deadline)), deadline)
        diversity = self.program.parameters.diversity
        if diversity == "clusters" and self.manifolds:
            return self._by_cluster(request, n)
        if diversity == "epsilon" and self.manifolds:
            return self._by_epsilon(request, n)
        if diversity == "assignments":
            return self._by_assignment(request, n)
        if diversity == "pool" and n > 1:
            return self._pooled(request, n)
        answers: list[Answer] = []
        while len(answers) < n and (not answers or answers[-1].row is not None):
            answers.append(self._next(request, _rows(answers))[0])
        return answers

    def further(self, factual: pd.DataFrame, earlier: Sequence[dict[str, Any]], deadline: Deadline) -> Answer:
        """The best answer that is separated from earlier ones."""
        return self._next(Request(factual, cache(lambda: self._guesses(factual, deadline)), deadline), earlier)[0]

    @contextmanager
    def under(self, parameters: Parameters, problem: Problem) -> Iterator[None]:
        """The same program under other bounds, actionability and number of changes, for a while."""
        before = self.program.parameters, self.program.problem
        try:
            self._adopt(parameters, problem)
            yield
        finally:
            self._adopt(*before)

    def _adopt(self, parameters: Parameters, problem: Problem) -> None:
        self.program.adopt(parameters, problem)
        for manifold in self.manifolds:
            manifold.space = problem.space
        for part in (self.starts, self.few):
            if part is not None:
                part.problem = problem
        if self.boxes is not None:
            self.boxes.adopt(problem, parameters.max_changes)

    def _next(self, request: Request, earlier: Sequence[Any]) -> tuple[Answer, AnswerSearch]:
        """The best counterfactual separated from all earlier ones, in the first manifold that has one; its search."""
        for manifold in self._tried():
            search = self._search(request, earlier, manifold)
            answer = search.run()
            if answer.status is not Status.INFEASIBLE:
                break
        return self._explained(answer, request.factual), search

    def _tried(self) -> list[Manifold | Likely | None]:
        """The manifolds in the order in which they are tried, or the whole space."""
        return [*self.manifolds] or [None]

    def _search(
        self, request: Request, earlier: Sequence[Any], manifold: Manifold | Likely | None, label: Any = None
    ) -> AnswerSearch:
        """A search that starts from the best first counterfactual."""
        boxes = self.boxes if self.all_boxed or not earlier else None
        search = AnswerSearch(self.program, boxes, request.factual, earlier, request.deadline, manifold, label)
        if manifold is not None:
            self._guess_rows(search, request.factual, label)
        if manifold is None or not manifold.exact:
            if self.few is not None and search.floor:  # it knows of changes alone
                search.use(self.few)
            if search.best.row is None:
                search.guess(request.guesses())
        return search

    def _explained(self, answer: Answer, factual: pd.DataFrame) -> Answer:
        """The answer, with the reason why an infeasible manifold is so."""
        if answer.status is not Status.INFEASIBLE or not self.manifolds:
            return answer
        why = self.manifolds[-1].unreachable(factual)
        why = why or "no part of the data manifold within reach holds a valid point"
        return replace(answer, detail=f"{answer.detail}: {why}")

    def _pooled(self, request: Request, n: int) -> list[Answer]:
        """A pool filled up by distance, the best first; what only a further enlargement holds comes after it."""
        answers: list[Answer] = []
        last: Answer | None = None
        for manifold in self._tried():
            here: list[Answer] = []
            while len(answers) + len(here) < n and (not here or here[-1].row is not None):
                earlier = _rows([*answers, *here])
                search = self._search(request, earlier, manifold)
                here += [search.run()] if earlier else search.pooled(n)
            last = here[-1] if here and here[-1].row is None else None
            # What fills the pool up may be better than what the solver met.
            answers += sorted((a for a in here if a.objective is not None), key=cost_of)
            if last is None or last.status is not Status.INFEASIBLE:
                break
        return answers if last is None else [*answers, self._explained(last, request.factual)]

    def _by_assignment(self, request: Request, n: int) -> list[Answer]:
        """The best points, each of another assignment; a point that another assignment allows too is told once.

        A point that stays, as the factual of which the model says what is wanted, inside a hull or out, would be the
        best of all assignments that let more change: they are asked for their best points apart from it.
        """
        answers: list[Answer] = []
        taken: list[Assignment | dict[str, Any]] = []
        seen = set()
        while len(answers) < n:
            answer, search = self._next(request, taken)
            if answer.row is None:
                return [*answers, answer]
            taken += search.assignments()
            if search.best.stays:
                taken.append(answer.row)
            if (name := printed(self.program.problem.space, answer.row)) not in seen:
                seen.add(name)
                answers.append(answer)
        return answers

    def _by_cluster(self, request: Request, n: int) -> list[Answer]:
        """One answer a cluster, each the best that is left for any of them; those without a point last.

        What only a further enlargement holds comes after what an earlier one does.
        """
        labels = [*self.manifolds[0].labels]
        if not labels:
            return [self._explained(infeasible(False), request.factual)]
        ended = _ended(f"the {len(labels)} clusters give no more than one counterfactual each")
        answers, rest = list[Answer](), dict[Any, Answer]()
        for manifold in self.manifolds:
            rest = self._best_first(request, n, manifold, labels, answers)
            labels = list(rest)
            if len(answers) >= n or any(answer.status is not Status.INFEASIBLE for answer in rest.values()):
                break
        # Those that gave up come before proofs that there is none: a first answer speaks for all clusters.
        without = sorted(rest.values(), key=lambda answer: answer.status is Status.INFEASIBLE)
        return [*answers, *without, ended][:n]

    def _best_first(
        self, request: Request, n: int, manifold: Manifold | Likely, labels: Sequence[Any], answers: list[Answer]
    ) -> dict[Any, Answer]:
        """Append the best answer of a cluster that is apart from those before, until ``n``; returns other clusters'.

        A cluster's best point stays that as long as it is apart from what was chosen since it was found. Only where it
        is not, the cluster is searched again.
        """
        program, best = self.program, dict[Any, tuple[Answer, int]]()  # the number: of answers that it is apart from

        def search(label: Any) -> None:
            best[label] = self._search(request, _rows(answers), manifold, label).run(), len(answers)

        for label in labels:
            search(label)
        while len(answers) < n and any(answer.row is not None for answer, _ in best.values()):
            label = min(best, key=lambda one: cost_of(best[one][0]))
            answer, known = best[label]
            assert answer.row is not None  # some cluster has a point, and others cost infinitely much
            since, frame = _rows(answers[known:]), program.problem.space.frame([answer.row])
            if since and not program.keeps(request.factual, since, frame)[0]:
                search(label)
                continue
            del best[label]
            answers.append(_best_of(answer, [other for other, _ in best.values()]))
        return {label: answer for label, (answer, _) in best.items()}

    def _by_epsilon(self, request: Request, n: int) -> list[Answer]:
        """An answer for each enlargement, as long as the manifold is active: as long as enlarging it improves."""
        answers: list[Answer] = []
        for manifold in self.manifolds:
            if len(answers) == n:
                return answers
            answer = self._search(request, (), manifold).run()
            if answer.row is None:
                if answers or manifold is self.manifolds[-1] or answer.status is not Status.INFEASIBLE:
                    return [*answers, self._explained(answer, request.factual)]
                continue
            if answers and not _better(answer, answers[-1]):
                return [
                    *answers,
                    _ended("the data manifold no longer pays: enlarging it gives no better counterfactual"),
                ]
            answers.append(answer)
        if len(answers) < n:
            answers.append(_ended("no further enlargement is listed in epsilon"))
        return answers

    def _guesses(self, factual: pd.DataFrame, deadline: Deadline) -> pd.DataFrame:
        """Valid points near the factual, the structural equations kept; possibly none."""
        if self.starts is None:
            return factual.iloc[:0]
        program, problem = self.program, self.program.problem
        space = problem.space
        guesses = self.starts.near(factual, program.aim.weights * (1.0 if program.parameters.alpha else 0.01))
        program.pose(factual, [], math.inf, math.inf)
        origin = factual.iloc[0].to_dict()
        singles = [{**origin, name: value} for name, value in program.variables.singles()]
        if singles:
            frame = space.frame(singles)
            guesses = pd.concat([guesses, frame.loc[problem.valid(frame)]], ignore_index=True)
        if self.plain is not None:
            closest = self.plain.answers(factual, 1, Deadline.after(deadline.left / 4))[0].row
            if closest is not None:
                guesses = pd.concat([guesses, space.frame([closest])], ignore_index=True)
        return self._caused(factual, guesses)

    def _caused(self, factual: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with their endogenous features where the equations put them, as far as that is allowed and valid."""
        if self.program.causality is None or frame.empty:
            return frame
        problem = self.program.problem
        frame = follow(problem.equations, factual, frame)
        allowed = np.array([not faults for faults in problem.space.violations(factual, frame)])
        return frame.loc[allowed & problem.valid(frame)]

    def _guess_rows(self, search: AnswerSearch, factual: pd.DataFrame, label: Any) -> None:
        """Try the hull's own rows, the cheapest first by a lower bound, as long as that is below the best of them.

        A part of the hull that is a single row has no other way to be found.
        """
        problem = self.program.problem
        space = problem.space
        origin = space.encode(factual)[0]
        points = self.rows if label is None else self.rows[self.row_cluster == label]
        moved = np.abs(points - origin)
        gaps = np.column_stack([moved[:, columns].max(axis=1) for columns in space.slices])
        near = (space.reached(factual, points) | (gaps <= COORDINATE_TIE)).all(axis=1)
        points, gaps = points[near], gaps[near]
        cost, changes = self.program.aim.least(gaps, gaps > COORDINATE_TIE)
        order = np.argsort(cost, kind="stable")
        order = order[changes[order] <= self.program.parameters.most]
        for first in range(0, len(order), NEAREST):
            batch = order[first : first + NEAREST]
            if cost[batch[0]] >= search.best.value:
                return
            frame = space.decode(points[batch], like=factual)
            search.guess(frame, inside=True)


def _rows(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The counterfactuals among answers."""
    return [answer.row for answer in answers if answer.row is not None]


def _best_of(answer: Answer, others: Sequence[Answer]) -> Answer:
    """The best answer of several clusters, which is not proven where another cluster may hold a better point."""
    unproven = [other for other in others if other.status in {Status.FOUND, Status.GAVE_UP}]
    least = min((-math.inf if other.bound is None else other.bound for other in unproven), default=math.inf)
    if answer.bound is None or least >= answer.bound:
        return answer
    bound = least if math.isfinite(least) else None
    return replace(answer, status=Status.FOUND, reason=unproven[0].reason, bound=bound)


def _ended(detail: str) -> Answer:
    """The answer after the last one that a rule of diversity allows."""
    return Answer(Status.GAVE_UP, None, Reason.FINISHED, detail=detail)


def _better(answer: Answer, other: Answer) -> bool:
    """Whether an objective is less, by more than what counts as proven."""
    return cost_of(answer) < cost_of(other) - OPTIMALITY_GAP * max(1.0, abs(cost_of(other)))
