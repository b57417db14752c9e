"""The closest valid point as a mixed-integer program: built once a problem, posed for one factual after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.equation import follow
from harness.core.errors import UnsupportedError
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import SAME
from harness.core.target import Label
from harness.solvers.highs import PROVEN
from harness.solvers.program import Compiled, Program
from methods.ce_ocl.few_changes import FewChanges
from methods.ce_ocl.first_guess import FirstGuess
from methods.ce_ocl.hull_search.search import BoxSearch
from methods.ce_ocl.one_answer import DIGITS, AnswerSearch
from methods.estimators.raw_target import leads, raw_interval
from methods.estimators.trees import splits_only
from methods.milp.block import INTEGRAL
from methods.milp.causality import Causality
from methods.milp.distance import Separable, distance_of, dominated
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.registry import embed
from methods.milp.hull import Piece, clustered, supports
from methods.milp.knapsack import Knapsack
from methods.milp.manifold import Manifold
from methods.milp.number_block import NumberBlock
from methods.milp.variables import Variables

if TYPE_CHECKING:
    from methods.ce_ocl.method import CeOcl


NEAREST = 40  # rows of the hull that are tried as first counterfactuals


def coupled(method: CeOcl, problem: Problem) -> bool:
    """Whether anything but the model looks at the values of numbers: a tree's cells are then not enough."""
    return (
        method.hull != "none"
        or method.distance in {"linf", "mahalanobis"}
        or method.diversity == "features"
        or (method.causality and bool(problem.equations))
    )


def build(program: Program, method: CeOcl, problem: Problem) -> tuple[Variables, Embedded, Causality | None]:
    """Space, model and structural equations as variables and rows of a program."""
    classifier = problem.classifier
    if classifier.opaque:
        raise UnsupportedError(classifier.opaque)
    cells = splits_only(classifier.estimator) and not coupled(method, problem)
    variables = Variables(program, problem.space, cells=cells)
    sense = raw_interval(problem).sense if len(classifier.classes) <= 2 else 0
    embedded = embed(classifier.estimator, program, [variables.source(s) for s in classifier.inputs], sense)
    imposed = method.causality and problem.equations
    return variables, embedded, Causality(program, variables, problem.equations) if imposed else None


class ProgramEngine:
    """The program of one problem; factuals change bounds, coefficients and temporary rows only."""

    def __init__(self, method: CeOcl, problem: Problem) -> None:
        self.method, self.problem = method, problem
        classifier = problem.classifier
        self.claim = method.objective(problem)
        self.distance = distance_of(self.claim.terms[0], problem, method.count)
        self.weights = method.weights(problem)
        self.extra = method.alpha * self.weights
        self.squared = isinstance(self.distance, Separable) and bool(self.distance.quadratic.any())
        program = Program()
        self.variables, self.embedded, self.causality = build(program, method, problem)
        self.variables.close()
        rows = self._validity(program)
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.embedded.attach(self.compiled)
        if self.causality is not None:
            self.causality.attach(self.compiled)
        self.valid_rows = [self.compiled.row(row) for row in rows]
        self.leaves = [
            np.array([self.compiled.column(leaf) for leaf in tree], dtype=np.int32) for tree in self.embedded.leaves
        ]
        self.splits = splits_only(classifier.estimator)
        self.knapsack = None if self.embedded.tighten is None else Knapsack(self.variables, classifier.inputs)
        if coupled(method, problem):  # HiGHS 1.12 was seen to call wrong optima proven where leaves were continuous
            for tree in self.leaves:
                self.compiled.integer[tree] = 1
        self.manifolds = self._manifolds()
        guess = self.splits or self.knapsack is not None or self.squared or self.causality is not None
        # A linear model is solved faster than a first guess is found, unless tangents have to know where to touch. With
        # nothing to spare around a hull, its own rows are the only guesses that lie in it.
        loose = any(not manifold.exact for manifold in self.manifolds) or not self.manifolds
        self.starts = FirstGuess(problem) if guess and (loose or self.causality is not None) else None
        few = isinstance(self.distance, Separable) and method.diversity == "distance" and not coupled(method, problem)
        self.few = FewChanges(problem, method.margin, self.weights) if few and FewChanges.takes(problem) else None
        exact = bool(self.manifolds) and self.manifolds[0].exact and self.causality is None
        self.boxes: BoxSearch | None = None
        searched = exact and method.engine != "milp"
        if searched and isinstance(self.distance, Separable) and BoxSearch.takes(problem, self.distance):
            rule = method.alpha, self.weights, method.max_changes, method.margin
            self.boxes = BoxSearch(problem, self.distance, *rule)
        soft = method.hull in {"penalised", "fallback"}
        self.plain = replace(method, hull="none", diversity="distance").start(problem) if soft else None
        self._ask(method, problem)
        self.base = self.compiled.mark()

    def _validity(self, program: Program) -> list[Any]:
        """(2c): the raw output on the wanted side of its threshold, or within the wanted interval, by the margin."""
        problem, outputs, margin = self.problem, self.embedded.outputs, self.method.margin
        if len(problem.classifier.classes) <= 2:
            low, high = raw_interval(problem).bounds(margin)
            rows = [program.add(outputs[0] >= low)] if math.isfinite(low) else []
            return rows + ([program.add(outputs[0] <= high)] if math.isfinite(high) else [])
        assert isinstance(problem.target, Label)  # anything else is refused
        # The first of several equal classes is predicted, and averaged leaf fractions do tie.
        wanted = problem.classifier.code(problem.target.value)
        earlier, later = leads(problem.classifier, margin)
        return [
            program.add(outputs[wanted] - output >= (later if wanted < other else earlier))
            for other, output in enumerate(outputs)
            if other != wanted
        ]

    def _manifolds(self) -> list[Manifold]:
        """(3): the hulls of the method, in the order in which they are tried."""
        method, problem, space = self.method, self.problem, self.problem.space
        if method.hull == "none":
            return []
        rows = problem.reference.loc[supports(problem, method.hull_points)]
        points = np.unique(space.encode(rows), axis=0)
        cluster, norm = clustered(points, method.clusters), float(method.hull_norm)
        valid = problem.valid(space.decode(points)) if len(points) else np.zeros(0, dtype=bool)
        self.rows = points[valid]
        self.row_cluster = cluster[valid]
        hard = method.epsilons if method.hull != "penalised" else ()
        found = [Manifold(space, points, cluster, norm, most, None) for most in hard]
        if method.hull == "hard":
            return found
        entry = method.penalty * self.claim.terms[-1].params.get("entry", 0.0)
        return [*found, Manifold(space, points, cluster, 1, 0.0, method.penalty, entry)]

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each apart from those before; fewer than ``n`` end with one that has no point."""
        guesses = cache(lambda: self._guesses(factual, deadline))
        if self.method.diversity == "clusters" and self.manifolds:
            return self._by_cluster(factual, n, guesses, deadline)
        if self.method.diversity == "epsilon" and self.manifolds:
            return self._by_epsilon(factual, n, guesses, deadline)
        if self.method.diversity == "pool" and n > 1:
            return self._pooled(factual, n, guesses, deadline)
        answers: list[Answer] = []
        while len(answers) < n and (not answers or answers[-1].row is not None):
            answers.append(self._next(factual, [a.row for a in answers if a.row is not None], guesses, deadline))
        return answers

    def _pooled(
        self, factual: pd.DataFrame, n: int, guesses: Callable[[], pd.DataFrame], deadline: Deadline
    ) -> list[Answer]:
        """A pool filled up by distance, the best first; what only a further enlargement holds comes after it."""
        answers: list[Answer] = []
        last: Answer | None = None
        for manifold in self._tried():
            here: list[Answer] = []
            while len(answers) + len(here) < n and (not here or here[-1].row is not None):
                earlier = [answer.row for answer in (*answers, *here) if answer.row is not None]
                search = self._search(factual, earlier, guesses, deadline, manifold)
                here += [search.run()] if earlier else search.pooled(n)
            last = here[-1] if here and here[-1].row is None else None
            # What fills the pool up may be better than what the solver met.
            answers += sorted((a for a in here if a.objective is not None), key=lambda answer: answer.objective or 0.0)
            if last is None or last.status is not Status.INFEASIBLE:
                break
        return answers if last is None else [*answers, self._explained(last, factual)]

    @contextmanager
    def asked(self, method: CeOcl, problem: Problem) -> Iterator[None]:
        """The same program under other bounds, actionability and number of changes, for a while."""
        before = self.method, self.problem
        try:
            self._ask(method, problem)
            yield
        finally:
            self._ask(*before)

    def _ask(self, method: CeOcl, problem: Problem) -> None:
        self.method, self.problem = method, problem
        for block, feature in zip(self.variables.blocks, problem.space.features, strict=True):
            block.feature = feature
            if isinstance(block, NumberBlock):
                block.counted = method.distance == "l0" or method.alpha > 0 or method.max_changes is not None
        for manifold in self.manifolds:
            manifold.space = problem.space
        for part in (self.starts, self.few):
            if part is not None:
                part.problem = problem

    def _next(
        self,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        guesses: Callable[[], pd.DataFrame],
        deadline: Deadline,
    ) -> Answer:
        """The best counterfactual apart from all earlier ones, in the first manifold that has one."""
        for manifold in self._tried():
            answer = self._search(factual, earlier, guesses, deadline, manifold).run()
            if answer.status is not Status.INFEASIBLE:
                break
        return self._explained(answer, factual)

    def _tried(self) -> list[Manifold | None]:
        """The manifolds in the order in which they are tried, or the whole space."""
        return [*self.manifolds] or [None]

    def _search(
        self,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        guesses: Callable[[], pd.DataFrame],
        deadline: Deadline,
        manifold: Manifold | None,
        label: Any = None,
    ) -> AnswerSearch:
        search = AnswerSearch(self, factual, earlier, deadline, manifold, label)
        if manifold is not None:
            self._guess_rows(search, factual, label)
        if manifold is None or not manifold.exact:
            if self.few is not None:
                search.settle(self.few)
            if search.row is None:
                search.guess(guesses())
        return search

    def _explained(self, answer: Answer, factual: pd.DataFrame) -> Answer:
        """Why an infeasible manifold is so."""
        if answer.status is not Status.INFEASIBLE or not self.manifolds:
            return answer
        why = self.manifolds[-1].unreachable(factual)
        why = why or "no part of the data manifold within reach holds a valid point"
        return replace(answer, detail=f"{answer.detail}: {why}")

    def _by_cluster(
        self, factual: pd.DataFrame, n: int, guesses: Callable[[], pd.DataFrame], deadline: Deadline
    ) -> list[Answer]:
        """One answer a cluster, the best first; those without a point last."""
        manifold = self.manifolds[0]
        found: list[Answer] = []
        for label in manifold.labels:
            search = self._search(factual, [a.row for a in found if a.row], guesses, deadline, manifold, label)
            found.append(search.run())
        found.sort(key=lambda answer: math.inf if answer.objective is None else answer.objective)
        if len(found) < n:
            detail = f"the {len(manifold.labels)} clusters give no more than one counterfactual each"
            found.append(Answer(Status.GAVE_UP, None, Reason.FINISHED, detail=detail))
        return found[:n]

    def _by_epsilon(
        self, factual: pd.DataFrame, n: int, guesses: Callable[[], pd.DataFrame], deadline: Deadline
    ) -> list[Answer]:
        """An answer for each enlargement, as long as the manifold is active: as long as enlarging it pays."""
        answers: list[Answer] = []
        for manifold in self.manifolds:
            if len(answers) == n:
                return answers
            answer = self._search(factual, (), guesses, deadline, manifold).run()
            if answer.row is None:
                if answers or manifold is self.manifolds[-1]:
                    return [*answers, self._explained(answer, factual)]
                continue
            if answers and not _better(answer, answers[-1]):
                detail = "the data manifold no longer pays: enlarging it gives no better counterfactual"
                return [*answers, Answer(Status.GAVE_UP, None, Reason.FINISHED, detail=detail)]
            answers.append(answer)
        if len(answers) < n:
            detail = "no further enlargement is listed in epsilon"
            answers.append(Answer(Status.GAVE_UP, None, Reason.FINISHED, detail=detail))
        return answers

    def _other(self, row: dict[str, Any], other: dict[str, Any] | None) -> bool:
        """Whether two rows differ in what is printed of them."""
        frames = self.problem.space.encode(self.problem.space.frame([row, other or row]))
        return bool((np.round(frames[0], DIGITS) != np.round(frames[1], DIGITS)).any())

    def _guesses(self, factual: pd.DataFrame, deadline: Deadline) -> pd.DataFrame:
        """Valid points near the factual, the structural equations kept; possibly none."""
        if self.starts is None:
            return factual.iloc[:0]
        space = self.problem.space
        guesses = self.starts.near(factual, self.weights * (1.0 if self.method.alpha else 0.01))
        self.pose(factual, [], math.inf, math.inf)
        origin = factual.iloc[0].to_dict()
        singles = [{**origin, name: value} for name, value in self.variables.singles()]
        if singles:
            frame = space.frame(singles)
            guesses = pd.concat([guesses, frame.loc[self.problem.valid(frame)]], ignore_index=True)
        if self.plain is not None:
            closest = self.plain.answers(factual, 1, Deadline.after(deadline.left / 4))[0].row
            if closest is not None:
                guesses = pd.concat([guesses, space.frame([closest])], ignore_index=True)
        return self._caused(factual, guesses)

    def _caused(self, factual: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with their endogenous features where the equations put them, as far as that is allowed and valid."""
        if self.causality is None or frame.empty:
            return frame
        frame = follow(self.problem.equations, factual, frame)
        allowed = np.array([not faults for faults in self.problem.space.violations(factual, frame)])
        return frame.loc[allowed & self.problem.valid(frame)]

    def _guess_rows(self, search: AnswerSearch, factual: pd.DataFrame, label: Any) -> None:
        """Try the hull's own rows, the cheapest first by a lower bound, as long as that is below the best of them.

        A part of the hull that is a single row has no other way to be found.
        """
        space = self.problem.space
        origin = space.encode(factual)[0]
        points = self.rows if label is None else self.rows[self.row_cluster == label]
        moved = np.abs(points - origin)
        gaps = np.column_stack([moved[:, columns].max(axis=1) for columns in space.slices])
        near = (space.reached(factual, points) | (gaps <= SAME)).all(axis=1)
        points, gaps = points[near], gaps[near]
        cost, changes = self.least(gaps, gaps > SAME)
        order = np.argsort(cost, kind="stable")
        order = order[changes[order] <= search.most]
        for first in range(0, len(order), NEAREST):
            batch = order[first : first + NEAREST]
            if cost[batch[0]] >= search.value:
                return
            frame = space.decode(points[batch], like=factual)
            if self.causality is not None:
                off = [np.abs(equation.residual(space, factual, frame)) for equation in self.problem.equations]
                frame = frame[(np.array(off) <= INTEGRAL).all(axis=0)] if off else frame
            search.guess(frame, inside=True)

    def least(self, gaps: np.ndarray, changed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower bounds on objective and weighted changes of moves of at least these gaps."""
        changes = changed @ self.weights
        return self.distance.least(gaps, changed) + self.method.alpha * changes, changes

    def lexical(self, factual: pd.DataFrame, manifold: Manifold | None) -> bool:
        """Whether alpha exceeds every distance from this factual, so that the fewest changes come first."""
        low, high = self.problem.space.reach(factual)
        if manifold is not None and len(manifold.points):
            low = np.maximum(low, manifold.points.min(axis=0) - manifold.most)
            high = np.minimum(high, manifold.points.max(axis=0) + manifold.most)
        return dominated(self.distance, self.method.alpha, self.problem.space, factual, low, high)

    def pose(
        self,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        count: float,
        budget: float,
        lexical: bool = False,
        piece: Piece | None = None,
    ) -> None:
        """Set the program for a factual: bounds within the budget, separation from earlier answers, tight big-M."""
        space, extra = self.problem.space, np.zeros(len(self.extra)) if lexical else self.extra
        self.compiled.rewind(self.base)
        costs = self.distance.costs(extra, budget)
        box = self.distance.box(extra, budget, space.encode(factual)[0])
        self.variables.pose(factual, costs, _narrowed(box, None if piece is None else piece.box))
        for row in earlier:
            if self.method.diversity == "features":
                self.variables.bar(row, factual)
            else:
                self.compiled.add_row(self.variables.apart(row, self.method.separation), low=1.0)
        if math.isfinite(count):
            self.compiled.add_row(self.variables.changed(self.weights), high=count)
        if self.knapsack is not None and self.embedded.tighten is not None:
            self.knapsack.limit(costs, self.weights, count, budget)
            self.embedded.tighten(self.knapsack)
        if self.causality is not None:
            self.causality.pose(factual, (costs, self.weights, count, budget))
        if piece is not None:
            piece.pose(self.compiled, self.variables.encoded())


def _better(answer: Answer, other: Answer) -> bool:
    """Whether an objective is less, by more than what counts as proven."""
    assert answer.objective is not None
    assert other.objective is not None
    return answer.objective < other.objective - PROVEN * max(1.0, abs(other.objective))


def _narrowed(box: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    """Both boxes at once."""
    if box is None or other is None:
        return other if box is None else box
    return [
        b if a is None else a if b is None else (max(a[0], b[0]), min(a[1], b[1]))
        for a, b in zip(box, other, strict=True)
    ]
