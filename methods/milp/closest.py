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
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import SAME
from harness.core.target import Label
from harness.solvers.highs import FEASIBILITY, PROVEN, Linear, Solution
from harness.solvers.program import Compiled, Program
from methods.boxes import BoxSearch
from methods.milp.bounds import Knapsack
from methods.milp.causality import Causality
from methods.milp.distance import Separable, distance_of, dominated, tolerance
from methods.milp.embed import Embedded, embed, splits_only
from methods.milp.few import FewChanges
from methods.milp.manifold import INSIDE, Manifold, Outside, Piece, Shares, clustered, supports
from methods.milp.space import INTEGRAL, Scaled, Variables
from methods.milp.start import Starts
from methods.milp.target import leads, raw_interval

if TYPE_CHECKING:
    from methods.ce_ocl import CeOcl


BOXED = 0.6  # share of the time left for the box search, where it only finds the fewest changes
REPAIRS = 25  # solutions that the real model refuses before the answer is given up
ROUNDS = 60  # of cuts on the relaxation, before integers are looked at
TOO_LITTLE = 1e-4  # tolerances of progress in bound and incumbent: after PATIENCE rounds more tangents would not help
PATIENCE = 4
SHARP = 1e-9  # feasibility under squares: what a row may be missed by counts more than their own tolerance
NEAREST = 40  # rows of the hull that are tried as first counterfactuals
PRICED = 8  # guesses whose distance from the hull is asked for
POOLING = 0.3  # share of the time left that a pool's own solve may take
DIGITS = 4  # of scaled columns, in which counterfactuals of one pool differ


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


class Programmed:
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
        self.starts = Starts(problem) if guess and (loose or self.causality is not None) else None
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
            if isinstance(block, Scaled):
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
    ) -> Search:
        search = Search(self, factual, earlier, deadline, manifold, label)
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

    def _guess_rows(self, search: Search, factual: pd.DataFrame, label: Any) -> None:
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


class Search:
    """The search for one counterfactual: an incumbent, a bound, and the stages between them."""

    def __init__(
        self,
        explainer: Programmed,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        deadline: Deadline,
        manifold: Manifold | None,
        label: Any,
    ) -> None:
        self.explainer, self.factual, self.earlier, self.deadline = explainer, factual, earlier, deadline
        self.manifold, self.label = manifold, label
        self.problem = explainer.problem
        method = explainer.method
        self.most = math.inf if method.max_changes is None else float(method.max_changes)
        self.row: dict[str, Any] | None = None
        self.count = self.distance = self.value = math.inf
        self.price, self.entry = (None, 0.0) if manifold is None else (manifold.price, manifold.entry)
        self.lexical = self.price is None and explainer.lexical(factual, manifold)
        self.piece: Piece | None = None
        self.least, self.settled = 1.0, False
        self.pool: list[tuple[float, dict[str, Any]]] = []
        self.pooling = method.diversity == "pool"

    def guess(self, frame: pd.DataFrame, inside: bool = False) -> None:
        """Take the best of some valid points as incumbent, as far as they are allowed; ``inside``: of the manifold."""
        if frame.empty:
            return
        space, explainer = self.problem.space, self.explainer
        changes = space.changed(self.factual, frame) @ explainer.weights
        features = space.changed(self.factual, frame).sum(axis=1)
        values = _claimed(explainer.claim, space, self.factual, frame)
        allowed = (features > 0) & (changes <= self.most) & self._apart(frame)
        order = [int(i) for i in np.argsort(values, kind="stable") if allowed[i]]
        for place in order[: PRICED if self.manifold is not None or self.pooling else 1]:
            if values[place] >= self.value and not self.pooling:
                return
            self._take(frame.iloc[[place]], inside)
            if (inside or (self.price is None and self.row is not None)) and not self.pooling:
                return

    def _apart(self, frame: pd.DataFrame) -> np.ndarray:
        apart = np.ones(len(frame), dtype=bool)
        for row in self.earlier:
            other = self.problem.space.frame([row])
            if self.explainer.method.diversity == "features":
                apart &= self._state(frame, row)
                continue
            differs = np.zeros(len(frame), dtype=bool)
            for feature in self.problem.space.features:
                values, value = frame[feature.name], row[feature.name]
                if feature.numeric:
                    gap = np.abs(values.to_numpy(float) - float(other[feature.name].iloc[0])) / feature.range
                    differs |= gap >= self.explainer.method.separation
                else:
                    differs |= (values != value).to_numpy(bool)
            apart &= differs
        return apart

    def _state(self, frame: pd.DataFrame, row: dict[str, Any]) -> np.ndarray:
        """Which rows take no state that an earlier counterfactual's changed features took."""
        free = np.ones(len(frame), dtype=bool)
        for feature in self.problem.space.features:
            origin, value, values = self.factual[feature.name].iloc[0], row[feature.name], frame[feature.name]
            if value == origin:
                continue
            if feature.numeric:
                free &= ((values <= origin) if value > origin else (values >= origin)).to_numpy(bool)
            else:
                free &= (values != value).to_numpy(bool)
        return free

    def _take(self, frame: pd.DataFrame, inside: bool = True) -> None:
        """A new incumbent, if it is better and lies in the manifold (``inside``: known to)."""
        explainer, space = self.explainer, self.problem.space
        value = float(_claimed(explainer.claim, space, self.factual, frame)[0])
        if value >= self.value and not self.pooling:
            return
        if self.manifold is not None and not inside:
            slack = self.manifold.slack(space.encode(frame)[0])
            if self.price is None and slack > self.manifold.most + 2 * INSIDE:
                return
            value += (self.price or 0.0) * slack
        value += self.entry
        row = frame.to_dict("records")[0]
        if self.pooling:
            self.pool.append((value, row))
        if value < self.value:
            self.row, self.value = row, value
            self.count = float((space.changed(self.factual, frame) @ explainer.weights)[0])
            self.distance = value - explainer.method.alpha * self.count

    def settle(self, few: FewChanges) -> None:
        """Take the cheapest point of few changes, and what that proves; ``engine=milp`` takes no proof."""
        explainer, origin = self.explainer, self.factual.to_dict("records")[0]
        distance, proves = explainer.distance, explainer.method.engine != "milp"
        assert isinstance(distance, Separable)
        extra = 0.0 if self.lexical else explainer.extra
        price = np.column_stack([distance.fixed + extra, distance.linear, distance.quadratic])
        for most in (1.0, 2.0) if self.lexical else (min(2.0, self.most),):
            if most > self.most:
                return
            found = few.closest(origin, price, most, math.inf, self.earlier, explainer.method.separation, self.deadline)
            if found.row is not None:
                self._take(self.problem.space.frame([found.row]))
            if proves and found.proven:
                self.settled = most >= self.most or (self.lexical and found.row is not None)
                self.least = most + 1.0 if self.lexical else 1.0
            if found.row is not None or not found.proven:
                return

    def run(self) -> Answer:
        """Prove the incumbent, or find better: in the whole space, or in one part of the manifold after another."""
        if self.manifold is None:
            return self._answer(math.inf if self.settled else self._prove(self.least))
        bound = math.inf
        for piece in self.manifold.pieces(self.factual, self.explainer.least, self.label):
            if piece.least >= self.value - tolerance(self.distance, self.explainer.squared):
                bound = min(bound, self.value)
                break
            if self.deadline.passed:
                bound = min(bound, piece.least)
                break
            self.piece = piece
            bound = min(bound, self._prove(max(piece.changes, 1.0)))
        return self._answer(bound)

    def pooled(self, n: int) -> list[Answer]:
        """The improving incumbents of one solve, the best first and proven, up to ``n`` distinct ones."""
        pieces = [None] if self.manifold is None else self.manifold.pieces(self.factual, self.explainer.least)
        for piece in pieces:
            self.piece = piece
            best = self._distinct(n)
            radius = best[-1][0] - self.entry if len(best) == n else math.inf
            if self.deadline.passed or (piece is not None and piece.least >= radius):
                break
            self._collect(radius)
        answer = self.explainer._explained(self.run(), self.factual)
        others = [entry for entry in self._distinct(n + 1) if entry[1] != answer.row]
        others = [(v, row) for v, row in others if answer.row is None or self.explainer._other(row, answer.row)]
        if answer.row is None:
            return [answer]
        return [answer, *(Answer(Status.FOUND, row, Reason.FINISHED, v, answer.bound) for v, row in others)][:n]

    def _collect(self, radius: float) -> None:
        """Let the incumbents of one solve join the pool; a part of the time, as what is best is proven afterwards."""
        compiled = self.explainer.compiled
        self.explainer.pose(self.factual, self.earlier, self.most, radius, piece=self.piece)
        form = self._cost()
        if self._relax(form):
            return
        met: list[np.ndarray] = []
        compiled.solve(form, POOLING * self.deadline.left, met=met)
        for x in met:
            self._meet(x)

    def _distinct(self, n: int) -> list[tuple[float, dict[str, Any]]]:
        """The best of the pool that differ after rounding."""
        space, seen = self.problem.space, set()
        kept: list[tuple[float, dict[str, Any]]] = []
        for value, row in sorted(self.pool, key=lambda entry: entry[0]):
            key = tuple(np.round(space.encode(space.frame([row]))[0], DIGITS))
            if key not in seen and len(kept) < n:
                seen.add(key)
                kept.append((value, row))
        return kept

    def _prove(self, least: float) -> float:
        """A lower bound on what the piece holds, of at least ``least`` changes; inf: nothing below the incumbent."""
        explainer, boxed = self.explainer, self._boxed()
        alpha, dominated = explainer.method.alpha, self.lexical
        if boxed and not explainer.squared:
            boxes, piece = boxed
            row, _, bound = boxes.closest(self.factual, piece, self.value, self.deadline, dominated)
            self._accept(row)
            return bound
        # A point of more changes costs alpha more at least: a distance below alpha puts the fewest changes first, too.
        if not dominated and (self.price is not None or not self.distance < alpha):
            return self._together()
        if boxed and self.count > least:
            boxes, piece = boxed
            row, fewest = boxes.fewest(self.factual, piece, self.count, Deadline.after(BOXED * self.deadline.left))
            self._accept(row)
            if fewest == math.inf and self.row is None:
                return math.inf
            least = max(min(fewest, self.count), least)
        if self.count > least:
            first = self._stage(self._changes, min(self.most, self.count - 1), math.inf)
            if first.infeasible and self.row is None:
                return math.inf
            if first.x is None and not first.infeasible:
                return alpha * max(first.bound, least)
            least = self.count if first.infeasible else max(math.ceil(first.bound - 1e-6), least)
        if self.count > least:
            return alpha * least if dominated else max(alpha * least, self._together())
        second = self._stage(self._cost, self.count, self.distance, lexical=True)
        bound = math.inf if second.infeasible else alpha * self.count + second.bound
        if dominated:
            return bound
        bound = min(bound, alpha * (self.count + 1.0))
        return bound if self.distance <= alpha else max(bound, self._together())

    def _boxed(self) -> tuple[BoxSearch, Shares | Outside] | None:
        """The box search and the piece it is to search, where it can."""
        boxes, piece = self.explainer.boxes, self.piece
        if boxes is None or self.manifold is None or not self.manifold.exact or self.earlier:
            return None
        return (boxes, piece) if isinstance(piece, Shares | Outside) else None

    def _accept(self, row: dict[str, Any] | None) -> None:
        if row is not None:
            self._take(self.problem.space.frame([row]))

    def _together(self) -> float:
        """A lower bound on changes and distance in one stage; inf: nothing below the incumbent."""
        solution = self._stage(self._cost, self.most, self.value - self.entry)
        return math.inf if solution.infeasible else solution.bound + self.entry

    def _cost(self, lexical: bool = False) -> Linear:
        explainer = self.explainer
        extra = np.zeros(len(explainer.extra)) if lexical else explainer.extra
        form = explainer.distance.form(explainer.variables, extra, explainer.compiled)
        return form if self.piece is None else Linear.sum([form, self.piece.cost()])

    def _changes(self, lexical: bool = False) -> Linear:
        return self.explainer.variables.changed(self.explainer.weights)

    def _stage(
        self,
        objective: Callable[[bool], Linear],
        count: float,
        budget: float,
        lexical: bool = False,
    ) -> Solution:
        """Minimise under at most ``count`` changes and a cost of at most ``budget``; valid solutions become incumbents.

        The bound returned is valid whatever happened; ``infeasible`` is a proof that nothing is better than the
        incumbent within the limits.
        """
        explainer, compiled = self.explainer, self.explainer.compiled
        slack = budget + PROVEN * max(1.0, abs(budget)) if math.isfinite(budget) else math.inf
        explainer.pose(self.factual, self.earlier, count, slack, lexical, self.piece)
        form = objective(lexical)
        squared = explainer.squared and math.isfinite(budget)
        scale = 10.0 / max(budget, 1e-6) if squared else 1.0  # squares are small beside absolute tolerances
        little = TOO_LITTLE * tolerance(budget if math.isfinite(budget) else 1.0, explainer.squared)
        feasibility = SHARP if explainer.squared and not explainer.splits else FEASIBILITY
        bound, repairs, patience = -math.inf, 0, PATIENCE
        settle = explainer.embedded.settle
        if self._relax(form) or (settle and math.isfinite(slack) and settle(form, slack, 0.2 * self.deadline.left)):
            return Solution(None, math.inf, math.inf, infeasible=True)
        while repairs < REPAIRS:
            solution = compiled.solve(form, self.deadline.left, scale=scale, cutoff=slack, feasibility=feasibility)
            exact = repairs == 0 or explainer.splits  # a wider margin proves nothing of the narrower one
            before, known = bound, self.value
            bound = max(bound, solution.bound) if exact else bound
            if solution.x is None:
                return Solution(None, math.inf, bound, solution.infeasible and exact)
            if self._cuts(solution.x):
                self._relax(form, around=solution.x)
                continue
            if self.deadline.passed and self.piece is not None and self.piece.partial:
                break
            frame = self._read(solution.x)
            if not self.problem.valid(frame)[0]:
                self._exclude(solution.x, 10.0 ** (repairs + 1))
                repairs += 1
                continue
            self._take(frame, inside=self.piece is None or (self.price is None and not self.piece.partial))
            patience -= bound <= before + little and self.value >= known - little
            if not patience or self.deadline.passed or not explainer.variables.refine(solution.x):
                return Solution(solution.x, solution.objective, min(bound, solution.objective))
        return Solution(None, math.inf, bound)

    def _read(self, x: np.ndarray) -> pd.DataFrame:
        row, causality = self.explainer.variables.read(x), self.explainer.causality
        return self.problem.space.frame([row if causality is None else causality.settle(self.factual, row)])

    def _meet(self, x: np.ndarray) -> None:
        """Let an incumbent of the solver join the pool, if it is a counterfactual."""
        frame = self._read(x)
        changes = self.problem.space.changed(self.factual, frame) @ self.explainer.weights
        if self.problem.valid(frame)[0] and 0 < changes[0] <= self.most and self._apart(frame)[0]:
            self._take(frame, inside=self.manifold is None)

    def _relax(self, form: Linear, around: np.ndarray | None = None) -> bool:
        """Add the cuts that the relaxation's solutions lack; whether it has none at all.

        With a solution ``around``, its 0/1 columns stay as they are: the cuts near its categories and phases, at the
        price of a linear program each instead of a mixed-integer one.
        """
        compiled = self.explainer.compiled
        if self.piece is None or not self.piece.partial or (compiled.low > compiled.high).any():
            return False
        lp = compiled.relaxation()
        cost = np.zeros(lp.size)
        cost[form.columns] = form.coefficients
        if around is not None:
            for column in np.flatnonzero((compiled.integer == 1) & (compiled.high - compiled.low <= 1)):
                lp.bound(int(column), *(2 * [float(np.rint(around[column]))]))
        for _ in range(ROUNDS):
            solution = lp.solve(cost, self.deadline.left)
            if solution.x is None:
                return solution.infeasible and around is None
            cuts = self._cuts(solution.x)
            if not cuts:
                return False
            for cut, end in cuts:
                lp.add(
                    np.array([0, len(cut.columns)]), cut.columns, cut.coefficients,
                    np.array([-math.inf]), np.array([end - cut.constant]),
                )  # fmt: skip
        return False

    def _cuts(self, x: np.ndarray) -> list[tuple[Linear, float]]:
        """The cuts that a solution lacks, added to the program; none in time, where time is up."""
        cuts = [] if self.piece is None or self.deadline.passed else self.piece.refine(x, self.deadline.left)
        for cut, end in cuts:
            self.explainer.compiled.add_row(cut, high=end)
        return cuts

    def _exclude(self, x: np.ndarray, factor: float) -> None:
        """Rule out a solution that the real model refuses: its combination of leaves, or a margin ten times as wide."""
        explainer, compiled = self.explainer, self.explainer.compiled
        if explainer.splits:
            chosen = [int(tree[x[tree].argmax()]) for tree in explainer.leaves]
            compiled.add_row(Linear.of([(leaf, 1.0) for leaf in chosen]), high=len(chosen) - 1.0)
            return
        for row in explainer.valid_rows:
            start, end = compiled.matrix.indptr[row], compiled.matrix.indptr[row + 1]
            form = Linear(compiled.matrix.indices[start:end], compiled.matrix.data[start:end])
            extra = explainer.method.margin * factor
            if math.isfinite(compiled.row_low[row]):
                compiled.add_row(form, low=compiled.row_low[row] + extra)
            else:
                compiled.add_row(form, high=compiled.row_high[row] - extra)

    def _answer(self, bound: float) -> Answer:
        """The incumbent with its proof; ``bound`` is one on everything but the incumbent."""
        late = self.deadline.passed
        if self.row is None:
            if bound == math.inf:
                return Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=nothing(bool(self.earlier)))
            reason = Reason.TIME_LIMIT if late else Reason.FINISHED
            return Answer(Status.GAVE_UP, None, reason, detail="no counterfactual was found within the limits")
        bound = min(bound, self.value)
        rest = self.distance - self.entry  # what counts changes, or being outside at all, has no part in the tolerance
        rounding = 4 * np.finfo(float).eps * abs(self.value)
        if self.value - bound <= tolerance(rest, self.explainer.squared) + rounding:
            return Answer(Status.OPTIMAL, self.row, Reason.PROOF, self.value, bound)
        reason = Reason.TIME_LIMIT if late else Reason.FINISHED
        return Answer(Status.FOUND, self.row, reason, self.value, bound if math.isfinite(bound) else None)


def _claimed(claim: Objective, space: Any, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """The objective without what lying outside the hull costs: that is asked of the cuts, not of all points."""
    terms = tuple(term for term in claim.terms if term.name != "slack")
    return replace(claim, terms=terms).evaluate(space, factual, frame)


def nothing(further: bool) -> str:
    """Why there is no (further) counterfactual."""
    beyond = " further from those before it" if further else ""
    return f"no point within the features' actionability, bounds and sparsity is classified as wanted{beyond}"
