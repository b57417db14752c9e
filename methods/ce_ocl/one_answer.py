"""The search for one counterfactual of a factual by the program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.space import Kind
from harness.core.tolerances import HULL_INSIDE, LITTLE_PROGRESS, OPTIMALITY_GAP, WHOLE_BOUND
from harness.solvers.highs import Linear, Solution
from harness.solvers.lp import LpRow
from methods.ce_ocl.answers import gave_up, infeasible, proves
from methods.ce_ocl.assignments import Assignment
from methods.ce_ocl.few_changes import FewChanges
from methods.ce_ocl.incumbent import Incumbent, Pool, printed
from methods.ce_ocl.program import CounterfactualProgram
from methods.ce_ocl.reach import Reached, hull_cores, in_order
from methods.ce_ocl.runs import Runs
from methods.estimators.linear import surely_valid
from methods.hull_search.fewest import Fewest
from methods.hull_search.search import BoxSearch
from methods.milp.cores import Cores, HullCores
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Piece, Shares
from methods.milp.likely import Likely
from methods.milp.manifold import Manifold

REPAIRS = 25  # solutions that the real model refuses before the search gives up
ROUNDS = 60  # of cuts on the relaxation, before integers are looked at
PATIENCE = 4
POOLING = 0.3  # share of the time left that a pool's own solve may take
POINTS, NARROWED = 33, 4  # of a line between a point that the model refuses and one that it accepts; how often
AGAIN = 0.7  # of a budget: below it, squares are posed again, whose bounds and tangents are sharper within the new one
PRICED = 8  # guesses whose distance from the hull is computed


class AnswerSearch:
    """The search for one counterfactual: an incumbent, a bound, and the stages between them."""

    def __init__(
        self,
        program: CounterfactualProgram,
        boxes: BoxSearch | None,
        factual: pd.DataFrame,
        earlier: Sequence[Any],
        deadline: Deadline,
        manifold: Manifold | Likely | None,
        label: Any,
    ) -> None:
        self.program, self.boxes, self.deadline = program, boxes, deadline
        self.problem, self.parameters = program.problem, program.parameters
        self.factual, self.earlier = factual, earlier
        self.manifold, self.label = manifold, label
        self.lexical = self.price is None and program.lexical(factual, manifold)
        self.best = Incumbent()
        self.pool = Pool(self.problem.space) if self.parameters.diversity == "pool" else None
        self.piece: Piece | None = None
        self.cores: Cores | None = None
        self.least = self.floor  # changes of what few changes do not settle; inf: they settle all

    @cached_property
    def floor(self) -> float:
        """The fewest changes that there can be: a valid factual may stay as it is."""
        return 0.0 if self.problem.valid(self.factual)[0] else 1.0

    @property
    def price(self) -> float | None:
        """Of a unit of distance from the manifold; None where that is bounded instead."""
        return None if self.manifold is None else self.manifold.price

    @property
    def entry(self) -> float:
        """What lying outside the manifold costs besides."""
        return 0.0 if self.manifold is None else self.manifold.entry

    @property
    def distance(self) -> float:
        """Of the incumbent, that from the manifold at its price included, without ``entry``: all points pay that."""
        return self.best.distance - self.entry

    def guess(self, frame: pd.DataFrame, inside: bool = False) -> None:
        """Take the best of some valid points as incumbent, as far as they are allowed; ``inside``: of the manifold.

        Points that are not rows of it have to be valid by more than rounding.
        """
        if not inside and len(frame):
            frame = frame[surely_valid(self.problem, frame)]
        if frame.empty:
            return
        space, program = self.problem.space, self.program
        values = program.aim.values(space, self.factual, frame)
        allowed = program.keeps(self.factual, self.earlier, frame)
        if self.floor:
            allowed &= space.changed(self.factual, frame).any(axis=1)
        order = [int(i) for i in np.argsort(values, kind="stable") if allowed[i]]
        for place in order[: PRICED if self.manifold is not None else 1]:
            if values[place] >= self.best.value:
                return
            self._take(frame.iloc[[place]], inside)
            if inside or (self.price is None and self.best.row is not None):
                return

    def _take(
        self, frame: pd.DataFrame, inside: bool = True, x: np.ndarray | None = None, improves: bool = False
    ) -> None:
        """A new incumbent, if it is better and lies in the manifold (``inside``: known to).

        ``x``: the solution that it was read from. One that ``improves`` on another solve's incumbent joins a pool.
        """
        program, space = self.program, self.problem.space
        value = float(program.aim.values(space, self.factual, frame)[0])
        if value >= self.best.value and not improves:
            return
        if self.manifold is not None and not inside:
            slack = self.manifold.slack(space.encode(frame)[0], self.label)
            if self.price is None and slack > self.manifold.most + 2 * HULL_INSIDE:
                return
            value += (self.price or 0.0) * slack
        value += self.entry
        row = frame.to_dict("records")[0]
        if self.pool is not None:
            self.pool.add(value, row)
        if value < self.best.value:
            read = None if x is None or program.assignments is None else program.assignments.read(x)
            count = float(program.aim.changes(space, self.factual, frame)[0])
            self.best = Incumbent(row, value, count, value - self.parameters.alpha * count, read)

    def use(self, few: FewChanges) -> None:
        """Take the cheapest point of few changes, and what that proves; ``engine=milp`` takes no proof."""
        program, origin = self.program, self.factual.to_dict("records")[0]
        distance, proves = program.aim.distance, self.parameters.engine != "milp"
        assert isinstance(distance, Separable)
        fixed, linear, quadratic = distance.own
        price = np.column_stack([fixed + program.aim.price(self.lexical), linear, quadratic])
        for most in (1.0, 2.0) if self.lexical else (min(2.0, self.parameters.most),):
            if most > self.parameters.most:
                return
            found = few.closest(origin, price, most, math.inf, self.earlier, self.parameters.separation, self.deadline)
            if found.row is not None:
                self._take(self.problem.space.frame([found.row]))
            if proves and found.proven:
                whole = most >= self.parameters.most or (self.lexical and found.row is not None)
                self.least = math.inf if whole else most + 1.0 if self.lexical else 1.0
            if found.row is not None or not found.proven:
                return

    def run(self) -> Answer:
        """Prove the incumbent, or find better: in the whole space, or in one part of the manifold after another."""
        if self.manifold is None:
            if self.least < math.inf:
                return self._answer(self._prove(self.least))
            best = self.best  # the search over few changes ends within a tenth of the tolerance
            return self._answer(best.value - self.program.aim.tolerance(best.distance) / 10 if best.row else math.inf)
        bound = math.inf
        for reached in self._parts(self.manifold):
            if reached.least >= self._enough() or self.deadline.passed:
                bound = min(bound, reached.least)
                break
            self.piece, self.cores = reached.piece, reached.cores
            bound = min(bound, max(self._prove(max(reached.changes, self.floor)), reached.least))
        return self._answer(bound)

    def _parts(self, manifold: Manifold | Likely) -> Iterator[Reached]:
        """The manifold's parts, the cheapest first by a lower bound."""
        pieces, aim = manifold.pieces(self.factual, self.program.aim.least, self.label), self.program.aim
        if self.lexical:
            cores = hull_cores(self.problem.space, self.factual, aim.weights)
            return in_order(
                pieces, lambda piece: self._fewest(piece) or cores(piece), aim.alpha, self._enough, self.deadline
            )
        return (Reached(piece, None, piece.least) for piece in pieces)

    def _fewest(self, piece: Piece) -> Fewest | None:
        """The fewest changes of a piece, as far as the box search tells, where it takes the piece."""
        boxed = self._boxed(piece)
        return boxed and boxed[0].fewest(self.factual, boxed[1])

    def _enough(self) -> float:
        """The bound from which on nothing is better than the incumbent."""
        return self.best.value - self.program.aim.tolerance(self.distance)

    def pooled(self, n: int) -> list[Answer]:
        """The improving incumbents of one solve, the best first and proven, up to ``n`` distinct ones."""
        assert self.pool is not None
        space = self.problem.space
        pieces = [None] if self.manifold is None else self.manifold.pieces(self.factual, self.program.aim.least)
        for piece in pieces:
            self.piece = piece
            best = self.pool.best(n)
            radius = best[-1][0] - self.entry if len(best) == n else math.inf
            if self.deadline.passed or (piece is not None and piece.least >= radius):
                break
            self._collect(radius)
        answer = self.run()
        if answer.row is None:
            return [answer]
        proven = printed(space, answer.row)
        others = [
            Answer(Status.FOUND, row, Reason.FINISHED, value, answer.bound)
            for value, row in self.pool.best(n + 1)
            if row != answer.row and printed(space, row) != proven
        ]
        return [answer, *others][:n]

    def _collect(self, radius: float) -> None:
        """Let the incumbents of one solve join the pool; a part of the time, as what is best is proven afterwards."""
        compiled = self.program.compiled
        self.program.pose(self.factual, self.earlier, self.parameters.most, radius, piece=self.piece)
        form = self._cost()
        if self._relax(form):
            return
        met: list[np.ndarray] = []
        compiled.solve(form, POOLING * self.deadline.left, met=met, confirm=False)
        for x in met:
            self._meet(x)

    def assignments(self) -> list[Assignment]:
        """Those of which the incumbent is the best: of its row, and of the solution that it was read from.

        Of one that stays its own alone: it is kept apart from the others' points.
        """
        known = self.program.assignments
        if known is None or self.best.row is None:
            return []
        read = [self.best.read] if self.best.read and not self.best.stays else []
        return [*known.of(self.factual, self.problem.space.frame([self.best.row])), *read]

    def _prove(self, least: float) -> float:
        """A lower bound on what the piece holds, of at least ``least`` changes; inf: nothing below the incumbent."""
        boxed = self._boxed(self.piece)
        alpha, dominated = self.parameters.alpha, self.lexical
        if boxed:
            boxes, piece = boxed
            fewest = self.cores if isinstance(self.cores, Fewest) else None
            row, _, bound = boxes.closest(self.factual, piece, self.best.value - self.entry, self.deadline, fewest)
            self._accept(row)
            bound += self.entry
            if self.price is None or self.deadline.passed or bound == math.inf:
                return bound
            if bound >= self._enough():
                return bound
            return max(bound, self._together())
        # A point of more changes costs alpha more at least: a distance below alpha puts the fewest changes first, too.
        if not dominated and not self.distance < alpha:
            return self._together()
        if self.best.count > least:
            first = self._stage(min(self.parameters.most, self.best.count - 1), math.inf, fewest=True)
            if first.infeasible and self.best.row is None:
                return math.inf
            if first.x is None and not first.infeasible:
                return alpha * max(first.bound, least) + self.entry
            least = self.best.count if first.infeasible else max(math.ceil(max(first.bound - WHOLE_BOUND, 0.0)), least)
        if self.best.count > least:
            return alpha * least if dominated else max(alpha * least, self._together())
        second = self._stage(self.best.count, self.distance, lexical=True)
        if not dominated and self.distance > alpha:
            return self._together()
        return math.inf if second.infeasible else alpha * self.best.count + second.bound + self.entry

    def _boxed(self, piece: Piece | None) -> tuple[BoxSearch, Shares | Outside] | None:
        """The box search and the piece it is to search, where it can."""
        boxes = self.boxes
        if boxes is None or self.manifold is None:
            return None
        if not self.manifold.exact and self.price is None:
            return None
        return (boxes, piece) if isinstance(piece, Shares | Outside) else None

    def _accept(self, row: dict[str, Any] | None) -> None:
        if row is not None:
            self._take(self.problem.space.frame([row]), inside=self.price is None)

    def _together(self) -> float:
        """A lower bound on changes and distance in one stage; inf: nothing below the incumbent."""
        solution = self._stage(self.parameters.most, self.best.value - self.entry)
        return math.inf if solution.infeasible else solution.bound + self.entry

    def _cost(self, lexical: bool = False) -> Linear:
        form = self.program.cost(lexical)
        return form if self.piece is None else Linear.sum([form, self.piece.cost()])

    def _stage(self, count: float, budget: float, lexical: bool = False, fewest: bool = False) -> Solution:
        """Minimise under at most ``count`` changes and a cost of at most ``budget``; valid solutions become incumbents.

        The objective is the cost; with ``lexical`` the distance alone, with ``fewest`` the number of changes. The bound
        returned is valid whatever happened; ``infeasible`` is a proof that nothing is better than the incumbent within
        the limits.
        """
        program = self.program
        slack = budget + OPTIMALITY_GAP * max(1.0, abs(budget)) if math.isfinite(budget) else math.inf
        form = self._posed(count, slack, lexical, fewest)
        runs = Runs.of(program, form, budget, slack)
        negligible = LITTLE_PROGRESS * program.aim.tolerance(budget if math.isfinite(budget) else 1.0)
        bound, proof, repairs, patience = -math.inf, -math.inf, 0, PATIENCE
        refused, ruled_out = self.problem.train[:0], program.splits  # whether what exclusions leave out is all refused
        if self._relax(form) or self._ruled_out_by_bounds(form, slack):
            return Solution(None, math.inf, math.inf, infeasible=True)
        while repairs < REPAIRS:
            solution = runs.next(self.deadline.left)
            exact = program.exact and (repairs == 0 or ruled_out)  # a wider margin proves nothing else
            before, value = bound, self.best.value
            bound = max(bound, solution.bound) if exact else bound
            if exact and runs.confirmed:
                known = min(budget, solution.objective)
                proof = max(proof, solution.limit(known, 1.0 if fewest else 2 * program.aim.tolerance(known)))
            if solution.x is None:
                if not runs.counts():
                    continue
                return Solution(None, math.inf, proof, solution.infeasible and exact)
            if self._cuts(solution.x):
                self._relax(form, around=solution.x)
                continue
            if self.deadline.passed and self.piece is not None and self.piece.partial:
                break
            frame = program.read(solution.x, self.factual)
            if program.broken(frame):
                if (not exact or runs.counts()) and not program.tighten():
                    break
                continue
            if not surely_valid(self.problem, frame)[0]:
                patience -= program.bare and bound <= before + negligible
                if program.bare and not repairs and patience and program.variables.refine(solution.x):
                    continue  # tangents first: once there is a margin, bounds prove nothing
                if not repairs and not program.splits and not runs.counts():
                    continue
                if program.bare and not repairs and self._nudge(solution, form, frame, proof, lexical, fewest):
                    return Solution(solution.x, solution.objective, min(proof, solution.objective))
                program.exclusion.add(solution.x, repairs)  # of one that strayed, its leaves may hold other points
                repairs, refused, ruled_out = repairs + 1, frame, ruled_out and not program.strayed
                continue
            self._take(frame, self._inside, solution.x)
            if exact and not fewest and self._far_below(budget, lexical):
                return self._anew(count, lexical, proof)
            if len(refused) and program.bare:
                self.guess(self._between(refused, frame), self._inside)
            patience -= bound <= before + negligible and self.best.value >= value - negligible
            if patience <= 0 or self.deadline.passed or not program.variables.refine(solution.x):
                if exact and not runs.counts():
                    continue
                return Solution(solution.x, solution.objective, min(proof, solution.objective))
        return Solution(None, math.inf, proof)

    def _posed(self, count: float, budget: float, lexical: bool, fewest: bool) -> Linear:
        """Set the program for the factual, of each core a feature changing; returns the objective of ``_stage``."""
        program = self.program
        program.pose(self.factual, self.earlier, count, budget, lexical, self.piece)
        for core in self.cores.sets if isinstance(self.cores, HullCores) else []:
            among = np.isin(np.arange(len(program.aim.weights)), list(core))
            program.compiled.add_row(program.variables.changed(among.astype(float)), low=1.0)
        return program.changes() if fewest else self._cost(lexical)

    def _ruled_out_by_bounds(self, form: Linear, budget: float) -> bool:
        """Tighten the model's bounds within a finite budget; whether that proves that nothing lies within it."""
        fix = self.program.embedded.fix_phases
        return fix is not None and math.isfinite(budget) and fix(form, budget, 0.2 * self.deadline.left)

    def _far_below(self, budget: float, lexical: bool) -> bool:
        """Whether squares are to be posed again, since the incumbent is so far below the budget."""
        squares = self.program.aim.squared and not self.program.splits
        return squares and not self.deadline.passed and self._reached(lexical) < AGAIN * budget

    def _anew(self, count: float, lexical: bool, proof: float) -> Solution:
        """The stage posed again within the incumbent's budget; ``proof`` is a bound that is known."""
        found = self._stage(count, self._reached(lexical), lexical)
        return replace(found, bound=max(found.bound, proof))

    def _reached(self, lexical: bool, fewest: bool = False) -> float:
        """The incumbent's objective of ``_stage``."""
        return self.best.count if fewest else self.distance if lexical else self.best.value - self.entry

    @property
    def _inside(self) -> bool:
        """Whether solutions of the posed program, and what lies between them, lie in the manifold for sure."""
        return self.piece is None or (self.price is None and self.piece.convex and not self.piece.partial)

    def _nudge(
        self, solution: Solution, form: Linear, refused: pd.DataFrame, proof: float, lexical: bool, fewest: bool
    ) -> bool:
        """Move a solution on the threshold beyond it, phases and categories as they are; whether that proves it.

        A linear program does it, where ``_stage`` would take another mixed-integer one with a margin.
        """
        compiled = self.program.compiled
        assert solution.x is not None
        mark, ends = compiled.mark(), (compiled.low.copy(), compiled.high.copy())
        whole = compiled.integer == 1
        compiled.low[whole] = compiled.high[whole] = np.rint(solution.x[whole])
        self.program.exclusion.add(solution.x, 0)
        moved = compiled.solve(form, self.deadline.left, confirm=False)
        compiled.rewind(mark)
        compiled.low[:], compiled.high[:] = ends
        if moved.x is None:
            return False
        frame = self.program.read(moved.x, self.factual)
        if not surely_valid(self.problem, frame)[0] or self.program.broken(frame):
            return False
        self._take(frame, self._inside, moved.x)
        self.guess(self._between(refused, frame), self._inside)
        return self._reached(lexical, fewest) - proof <= self.program.aim.tolerance(self.distance)

    def _between(self, refused: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """Valid points on the line from a point that the model refuses to one that it accepts, as near to the first.

        Empty where more than continuous features differ, or structural equations hold.
        """
        space = self.problem.space
        names = [feature.name for feature in space.features if feature.kind is Kind.CONTINUOUS]
        others = [name for name in space.names if name not in names]
        if self.program.causality is not None or not frame[others].equals(refused[others]):
            return frame.iloc[:0]
        start, end = (part[names].to_numpy(float)[0] for part in (refused, frame))
        low, high = 0.0, 1.0
        for _ in range(NARROWED):
            shares = np.linspace(low, high, POINTS)
            points = pd.concat([frame] * POINTS, ignore_index=True)
            points[names] = start + shares[:, None] * (end - start)
            points.iloc[-1] = frame.iloc[0] if high == 1.0 else points.iloc[-1]
            valid = surely_valid(self.problem, points)
            if not valid.any():
                return frame.iloc[:0]
            first = int(valid.argmax())
            low, high = shares[max(first - 1, 0)], shares[first]
        return points.iloc[[first]]

    def _meet(self, x: np.ndarray) -> None:
        """Let an incumbent of the solver join the pool, if it is a counterfactual."""
        frame = self.program.read(x, self.factual)
        kept = self.problem.valid(frame)[0] and self.program.keeps(self.factual, self.earlier, frame)[0]
        if kept and self.problem.space.changed(self.factual, frame).any():
            self._take(frame, inside=self.manifold is None, improves=True)

    def _relax(self, form: Linear, around: np.ndarray | None = None) -> bool:
        """Add the cuts that the relaxation's solutions lack; whether it has none at all.

        With a solution ``around``, its 0/1 columns stay as they are: the cuts near its categories and phases, at the
        price of a linear program each instead of a mixed-integer one.
        """
        compiled = self.program.compiled
        if self.piece is None or not self.piece.partial or (compiled.low > compiled.high).any():
            return False
        lp = compiled.relaxation()
        cost = np.zeros(lp.size)
        cost[form.columns] = form.coefficients
        if around is not None:
            for column in np.flatnonzero((compiled.integer == 1) & (compiled.high - compiled.low <= 1)):
                lp.bound(int(column), *(2 * [float(np.rint(around[column]))]))
        for _ in range(ROUNDS):
            solution = lp.prove(cost, self.deadline.left)
            if solution.x is None:
                return solution.infeasible and around is None
            cuts = self._cuts(solution.x)
            if not cuts:
                return False
            lp.add_rows([LpRow(cut, high=end) for cut, end in cuts])
        return False

    def _cuts(self, x: np.ndarray) -> list[tuple[Linear, float]]:
        """The cuts that a solution lacks, added to the program; none in time, where time is up."""
        cuts = [] if self.piece is None or self.deadline.passed else self.piece.refine(x, self.deadline.left)
        for cut, end in cuts:
            self.program.compiled.add_row(cut, high=end)
        return cuts

    def _answer(self, bound: float) -> Answer:
        """The incumbent with its proof; ``bound`` is one on everything but the incumbent."""
        reason = Reason.TIME_LIMIT if self.deadline.passed else Reason.FINISHED
        if self.best.row is None:
            if bound == math.inf:
                return infeasible(bool(self.earlier))
            return gave_up(reason)
        bound = min(bound, self.best.value)
        # Being outside the hull at all has no part in the tolerance, either.
        if proves(bound, self.best.value, self.distance, self.program.aim.squared):
            return Answer(Status.OPTIMAL, self.best.row, Reason.PROOF, self.best.value, bound)
        return Answer(Status.FOUND, self.best.row, reason, self.best.value, bound if math.isfinite(bound) else None)
