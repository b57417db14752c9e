"""What the mixed-integer programs of robust counterfactuals share, and one of them around a factual."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from harness.core.inputs import Affine, Input, owners
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.target import Classes, Label
from harness.core.tolerances import (
    BUDGET_CUTOFF,
    FEASIBILITY,
    OPTIMALITY_GAP,
    SHARP_FEASIBILITY,
)
from harness.solvers.highs import Linear as Form
from harness.solvers.highs import Solution
from harness.solvers.program import Compiled, Program
from methods.estimators.linear import unit_of
from methods.estimators.raw_target import leads, raw_interval
from methods.estimators.thresholds import last_left
from methods.estimators.tree_arrays import Leaf as Cell
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import ensemble, splits_only
from methods.milp.block import Free
from methods.milp.distance import Separable, distance_of
from methods.milp.embed.registry import embed
from methods.milp.hull import Hull, Piece
from methods.milp.knapsack import Knapsack
from methods.milp.manifold import whole
from methods.milp.number_block import NumberBlock
from methods.milp.relations import RelationRows
from methods.milp.sources import Source
from methods.milp.variables import Variables, affine
from methods.robust.incumbents import Certifier, RobustGuess
from methods.robust.outcome import Outcome
from methods.robust.perturbation import WIDE, boundless
from methods.robust.related import clauses
from methods.robust.settings import Settings
from methods.robust.whole import Whole, inset_of

SHARE = 0.25  # of the time left that a certificate may take
EXCLUDED = 25  # combinations of leaves that only tolerances or ties allow, before a program is given up


class RobustProgram:
    """What the programs of one problem share: the space around a factual, the objective, the certifier."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        classifier = problem.classifier
        self.problem, self.settings = problem, settings
        self.space = problem.space
        self.perturbation = settings.perturbation(problem)
        self.objective = settings.claim(problem)
        self.distance = distance_of(self.objective.terms[0], problem, "features")
        self.certifier = Certifier(problem, settings)
        self.first_guess = RobustGuess(problem, self.space, self.objective, self.certifier)
        self.unit = unit_of(problem)
        self.slopes = np.array([self._slope(source) for source in classifier.inputs])
        self.owners = owners(self.space, classifier.inputs)
        self.manifold = _manifold(self.objective)
        self.model = ensemble(classifier.estimator) if splits_only(classifier.estimator) else None
        self.leaves: list[list[Cell]] = [] if self.model is None else [leaves_of(tree) for tree in self.model.trees]
        self.single = self.model is not None and self.model.single
        Program()  # imports Pyomo, which is no part of a question

    def _slope(self, source: Input) -> float:
        """By how much an estimator input grows with a scaled unit of its number; 0 for categories."""
        feature = self.problem.space[source.feature]
        known = feature.numeric or isinstance(source, Affine)
        return feature.range / affine(source).unit if known else 0.0

    def piece(self) -> Piece | None:
        """The data manifold, for one program."""
        return None if self.manifold is None else whole(*self.manifold)

    def least(self, form: np.ndarray) -> float:
        """No more than a form of the outputs of trees is anywhere."""
        assert self.model is not None  # several classes are wanted of trees alone
        worst = (self.model.gains(tree, form)[tree.left < 0].min() for tree in self.model.trees)
        return float(form @ self.model.base) + float(sum(worst))

    def frame(self, row: Mapping[str, Any]) -> pd.DataFrame:
        return self.space.frame([row])

    def value(self, row: Mapping[str, Any], factual: pd.DataFrame) -> float:
        return float(self.objective.evaluate(self.space, factual, self.frame(row))[0])

    def few_enough(self, row: Mapping[str, Any], factual: pd.DataFrame) -> bool:
        """Whether a row changes no more features than may be changed."""
        most = self.settings.max_changes
        return most is None or int(self.space.changed(factual, self.frame(row)).sum()) <= most

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        """Near the factual first; then everywhere, where a point farther away may be cheaper than what was found."""
        factual = self.frame(row)
        start, budget = self.first_guess.near(factual, Deadline(deadline.at - 0.8 * deadline.left))
        near = self.search(factual, start, budget, WIDE, deadline)
        least = self.beyond(factual, near.value)
        near = replace(near, bound=min(near.bound, least))
        if near.row is None or math.isinf(least):
            return near
        far = self.search(factual, near.row, near.value, math.inf, deadline)
        bound = min(max(near.bound, far.bound), far.value)
        return replace(far, bound=bound, trace=(*near.trace, *far.trace))

    def search(
        self, factual: pd.DataFrame, start: dict[str, Any] | None, budget: float, far: float, deadline: Deadline
    ) -> Outcome:
        """The cheapest robust point of ``around``, with a bound on what that holds; from a known one and its cost."""
        raise NotImplementedError

    def around(self, factual: pd.DataFrame, budget: float, far: float) -> Space:
        """The space, its numbers bounded by what a budget allows; those that are ``boundless``, by ``far`` ranges too.

        ``far`` is ``WIDE``, or infinite where the budget is not.
        """
        afforded = max(budget - self.settings.alpha, 0.0)  # whatever moves is a change, too
        afforded = math.sqrt(afforded) if self.settings.distance == "l2sq" else afforded
        changes = {}
        for feature in self.space.features:
            if not feature.numeric or feature.curved:
                continue
            reach = min(afforded / min(feature.rates), far if boundless(feature) else math.inf) * feature.range
            value = float(factual[feature.name].iloc[0])
            bounds = max(feature.bounds[0], value - reach), min(feature.bounds[1], value + reach)
            if math.isfinite(reach) and bounds[0] <= bounds[1]:
                changes[feature.name] = {"bounds": bounds}
        return self.space.replace(changes)

    def beyond(self, factual: pd.DataFrame, budget: float) -> float:
        """No more than any point costs that a budget allows and ``WIDE`` leaves out; infinite where there is none."""
        power, ways = 2 if self.settings.distance == "l2sq" else 1, [math.inf]
        for feature in filter(boundless, self.space.features):
            value = float(factual[feature.name].iloc[0])
            low, high = feature.interval(value)
            rooms = zip(feature.rates, (value - low, high - value), strict=True)
            ways += [(WIDE * rate) ** power for rate, room in rooms if room > WIDE * feature.range]
        least = self.settings.alpha + min(ways)
        return least if least < budget else math.inf

    def moved(self, row: Mapping[str, Any], move: np.ndarray) -> dict[str, Any]:
        """A decoded row moved by a perturbation of its features, in scaled units; integers as reals."""
        return {
            f.name: row[f.name] + far * f.range if far else row[f.name]
            for f, far in zip(self.space.features, move, strict=True)
        }

    def outcome(
        self,
        row: dict[str, Any] | None,
        factual: pd.DataFrame,
        bound: float,
        trace: Sequence[dict[str, Any]],
    ) -> Outcome:
        """What was found, with a bound on what was looked at."""
        if row is None:
            return Outcome(None, math.inf, bound, 0.0, tuple(trace))
        value = self.value(row, factual)
        return Outcome(row, value, min(bound, value), self.settings.radius, tuple(trace))


def _manifold(objective: Objective) -> tuple[Hull, float] | None:
    """A convex hull that points have to lie in, and how far outside they may be."""
    for limit in objective.limits:
        if limit.term.name == "slack":
            return Hull(limit.term.params["points"], float(limit.term.params["norm"])), limit.most
    return None


class InstanceProgram:
    """One program over a space around one factual: variables, and rows that further embeddings add before ``close``."""

    def __init__(self, robust: RobustProgram, space: Space, factual: pd.DataFrame, budget: float) -> None:
        self.robust, self.space, self.factual, self.budget = robust, space, factual, budget
        self.program = Program()
        self.variables = Variables(self.program, space, cells=False)
        self.inputs = [self.variables.source(source) for source in robust.problem.classifier.inputs]
        self.embedded: list[tuple[Any, np.ndarray]] = []
        self.leaves: list[list[np.ndarray]] = []  # of what is embedded, the columns of each tree's leaves
        self.moved: dict[tuple[int, float, float], Free] = {}  # shared by the perturbations that move an input alike
        self.piece = robust.piece()

    def _sources(self, shift: np.ndarray, margin: float | np.ndarray) -> list[Source]:
        """The estimator's inputs at x + s; those that do not move are the inputs themselves."""
        problem, found = self.robust.problem, list[Source]()
        margins = np.broadcast_to(margin, len(self.inputs))
        low, high = self.space.reach(self.factual)
        origin = self.space.encode(self.factual)[0]
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        place = {f.name: s.start for f, s in zip(self.space.features, self.space.slices, strict=True)}
        parts = zip(self.inputs, problem.classifier.inputs, self.robust.slopes, shift, margins, strict=True)
        for k, (made, source, slope, far, gap) in enumerate(parts):
            if not slope or (not far and not gap):
                found.append(made)
                continue
            key = (k, float(far), float(gap))
            if key not in self.moved:
                assert isinstance(source, Affine)
                at = place[source.feature]
                self.moved[key] = self._moved(made.expression, source, float(far), float(gap), (low[at], high[at]))
            found.append(self.moved[key])
        return found

    def _moved(self, expression: Any, source: Affine, far: float, gap: float, reach: tuple[float, float]) -> Free:
        """An input at x + s, of a number that reaches from one scaled value to another; splits keep ``gap`` away."""
        feature = self.robust.problem.space[source.feature]
        ends = sorted(source.of(feature.scale[0] + end * feature.range) + far for end in reach)
        place = expression + far, ends[0] - Free.margin, ends[1] + Free.margin
        if feature.kind is Kind.INTEGER and not gap:
            return Whole(self.program, *place, feature, source, far)
        made = Free(self.program, *place)
        made.margin = gap
        return made

    def embed(self, shift: np.ndarray, margin: float | np.ndarray = 0.0) -> tuple[Any, ...]:
        """The model's outputs at x + s, ``shift`` by input.

        A split keeps ``margin`` away from its threshold. Without one both sides hold the threshold itself, so that the
        program is a relaxation, and its value a bound; ``read`` finds the point that is on the right side. Splits of
        whole numbers lie between two of them (``Whole``).
        """
        sense = 0
        if len(self.robust.problem.classifier.classes) <= 2:
            sense = raw_interval(self.robust.problem).sense
        inputs = self._sources(shift, margin)
        made = embed(self.robust.problem.classifier.estimator, self.program, inputs, sense)
        self.embedded.append((made, shift))
        return made.outputs

    def require(
        self, outputs: Sequence[Any], margin: float, excess: Callable[[np.ndarray], float] = lambda weights: 0.0
    ) -> None:
        """(4): outputs of the wanted class, by a margin and ``excess``, a function of the weights of outputs.

        Those of a linear model or network are posed in a unit of their own size, the margin too.
        """
        problem, program, size = self.robust.problem, self.program, self.robust.unit
        margin *= size
        if len(problem.classifier.classes) <= 2:
            low, high = raw_interval(problem).bounds(margin)
            more = excess(np.ones(1))
            if math.isfinite(low):
                program.add(outputs[0] / size >= (low + more) / size)
            if math.isfinite(high):
                program.add(outputs[0] / size <= (high - more) / size)
            return
        self._lead(outputs, excess, margin)

    def _lead(self, outputs: Sequence[Any], excess: Callable[[np.ndarray], float], margin: float) -> None:
        """(4) of more than two classes: a wanted one is ahead of all that are not."""
        classifier, target, size = self.robust.problem.classifier, self.robust.problem.target, self.robust.unit
        assert isinstance(target, Classes | Label)
        values = target.values if isinstance(target, Classes) else (target.value,)
        wanted, several = [classifier.code(value) for value in values], len(values) > 1
        ahead = [self.program.binary() for _ in wanted] if several else [1]
        if several:
            self.program.add(sum(ahead) == 1)
        earlier, later = leads(classifier, margin)
        unit = np.eye(len(outputs))
        for (code, first), other in product(zip(wanted, ahead, strict=True), set(range(len(unit))) - set(wanted)):
            form = unit[code] - unit[other]
            lead = (earlier if other < code else later) + excess(form)
            if several:
                lead -= (lead - self.robust.least(form)) * (1 - first)
            self.program.add((outputs[code] - outputs[other]) / size >= lead / size)

    def close(self) -> None:
        """Compile, with the rows of the factual."""
        robust, settings = self.robust, self.robust.settings
        self.variables.close()
        self.compiled: Compiled = self.program.compile()
        self.variables.attach(self.compiled)
        for block in self.variables.blocks:
            if isinstance(block, NumberBlock):
                block.counted = settings.alpha > 0 or settings.max_changes is not None
        for made, _ in self.embedded:
            made.attach(self.compiled)
            trees = [np.array([self.compiled.column(leaf) for leaf in tree]) for tree in made.leaves]
            self.leaves.append(trees)
            for columns in trees:  # HiGHS 1.12 was seen to call wrong optima proven where leaves were continuous
                self.compiled.integer[columns] = 1
        extra = np.full(len(self.space.features), settings.alpha)
        budget = self.budget * (1 + BUDGET_CUTOFF) + BUDGET_CUTOFF if math.isfinite(self.budget) else math.inf
        costs = robust.distance.costs(extra, budget)
        box = robust.distance.box(extra, budget, self.space.encode(self.factual)[0])
        self.variables.pose(self.factual, costs, box)
        if settings.max_changes is not None:
            ones = np.ones(len(self.space.features))
            self.compiled.add_row(self.variables.changed(ones), high=float(settings.max_changes))
        self.cost = robust.distance.form(self.variables, extra, self.compiled)
        everywhere = settings.relations_in_region
        self.related = RelationRows(
            self.compiled, self.variables, clauses(robust.perturbation, self.factual, everywhere)
        )
        if self.piece is not None:
            self.piece.pose(self.compiled, self.variables.encoded())
        if any(made.tighten is not None for made, _ in self.embedded):
            knapsack = Knapsack(self.variables, robust.problem.classifier.inputs)
            count = math.inf if settings.max_changes is None else float(settings.max_changes)
            priced = budget if isinstance(robust.distance, Separable) else math.inf
            knapsack.limit(costs, np.ones(len(extra)), count, priced)
            for made, shift in self.embedded:
                made.tighten(lambda weights, constant, shift=shift: knapsack(weights, constant + weights @ shift))

    def solve(self, deadline: Deadline) -> Solution:
        """The optimum; squares are refined until their tangents touch, and a hull until its cuts hold the solution."""
        feasibility = SHARP_FEASIBILITY if self.robust.settings.distance == "l2sq" else FEASIBILITY
        while True:
            found = self.compiled.solve(self.cost, deadline.left, feasibility=feasibility)
            if found.x is None:
                return found
            cuts = [] if self.piece is None else self.piece.refine(found.x, deadline.left)
            for cut, end in cuts:
                self.compiled.add_row(cut, high=end)
            if deadline.passed and (cuts or (self.piece is not None and self.piece.partial)):
                return Solution(None, math.inf, found.bound)  # the point may lie outside the hull
            if not cuts and (deadline.passed or not self.variables.refine(found.x)):
                return found

    def settled(self, deadline: Deadline) -> tuple[Solution, dict[str, Any] | None]:
        """``solve``, and its point as a row.

        Combinations of leaves that hold no point at all, or that the real model puts in another class, are excluded.
        Where the solver's tolerance breaks a relation, a margin keeps it, and the bound is the one from before.
        """
        bound = -math.inf
        for _ in range(EXCLUDED):
            found = self.solve(deadline)
            bound = found.bound if self.related.exact else bound
            found = found if self.related.exact else replace(found, bound=bound, infeasible=False)
            if found.x is None:
                return found, None
            row = self.read(found)
            if row is None:
                self.exclude(found, len(self.embedded))
            elif self.robust.leaves and not self.robust.certifier.checker.valid(row):
                inside = self.robust.certifier.checker.valid(self.variables.read(found.x))
                self.exclude(found, len(self.embedded) if inside else 1)  # else its own leaves are wrong
            elif not self.robust.few_enough(row, self.factual):
                if not self.count(found):
                    break
            elif not self.related.keeps(self.robust.frame(row))[0]:
                if not self.related.tighten():
                    break
            else:
                return found, row
        return Solution(None, math.inf, bound), None

    def exclude(self, found: Solution, copies: int, unless: int | None = None) -> None:
        """Rule out the leaves that a solution takes in the first copies of the model, unless a 0/1 column is 1."""
        assert found.x is not None
        chosen = sorted({int(tree[found.x[tree].argmax()]) for trees in self.leaves[:copies] for tree in trees})
        pairs = [(leaf, 1.0) for leaf in chosen] + ([] if unless is None else [(unless, -1.0)])
        self.compiled.add_row(Form.of(pairs), high=len(chosen) - 1.0)

    def count(self, found: Solution) -> bool:
        """Have numbers change where a solution's leaves leave no room for them as they are; whether there were any.

        The solver's tolerance took them for unchanged, and ``read`` has to move them: a change too many.
        """
        assert found.x is not None
        ends, moving = self._ends(found.x), list[int]()
        for block in self.variables.blocks:
            if isinstance(block, NumberBlock) and found.x[block.at.change] < 0.5:
                (low, high), loose = ends[block.feature.name], 2 * inset_of(block.feature, block.value)
                if not low - loose <= block.value <= high + loose:
                    moving.append(block.at.change)
        for change in moving:
            self.exclude(found, len(self.embedded), unless=change)
        return bool(moving)

    def read(self, found: Solution) -> dict[str, Any] | None:
        """Decoded values, on the sides of all thresholds that the solution's leaves demand; None where there are none.

        The solver's tolerance decides no side: a number takes the end of the interval that the leaves of all
        perturbations leave it, an inset for rounding away from it; a whole number, the next one within.
        """
        assert found.x is not None
        row = self.variables.read(found.x)
        if not self.robust.leaves:
            return self.related.complete(row)
        ends = self._ends(found.x)
        for feature in self.space.features:
            if not feature.numeric:
                continue
            (low, high), value = ends[feature.name], row[feature.name]
            own, whole = float(self.factual[feature.name].iloc[0]), feature.kind is Kind.INTEGER
            loose = 2 * inset_of(feature, value) if value == own or whole else 0.0
            if low - loose <= value <= high + loose:
                continue
            floor, ceiling = feature.interval(own)
            least, most = max(low, floor), min(high, ceiling)
            if whole:
                least, most = math.ceil(max(low - loose, floor)), math.floor(min(high + loose, ceiling))
            if least > most:
                return None
            row[feature.name] = least if value < least else most
        return self.related.complete(row, self._settling(ends))

    def _settling(self, ends: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
        """Where numbers may be moved to within the intervals that a solution's leaves leave them."""
        found = {}
        for feature in self.space.features:
            if feature.numeric:
                floor, ceiling = feature.interval(float(self.factual[feature.name].iloc[0]))
                low, high = ends[feature.name]
                found[feature.name] = max(low, floor), min(high, ceiling)
        return found

    def _ends(self, x: np.ndarray) -> dict[str, list[float]]:
        """The interval that each number has to lie in, for all perturbations to reach the leaves that a solution takes.

        Where nothing moves a number, rounding may not take it out of its own cell; where it moves, it stays inside.
        """
        inputs, ends = self.robust.problem.classifier.inputs, {name: [-math.inf, math.inf] for name in self.space.names}
        for (_, shift), trees in zip(self.embedded, self.leaves, strict=True):
            for cells, columns in zip(self.robust.leaves, trees, strict=True):
                cell = cells[int(x[columns].argmax())]
                for sides, upper in ((cell.above, False), (cell.at_most, True)):
                    for column, threshold in sides.items():
                        source = inputs[column]
                        if not self.robust.slopes[column]:
                            continue
                        assert isinstance(source, Affine)
                        end = last_left(threshold, self.robust.single) - shift[column]
                        value, pair = source.shift + end * source.unit, ends[source.feature]
                        inset = inset_of(self.space[source.feature], value) * (1.0 if shift[column] else -1.0)
                        if upper == (source.unit > 0):
                            pair[1] = min(pair[1], value - inset)
                        else:
                            pair[0] = max(pair[0], value + inset)
        return ends


def limit(found: Solution, budget: float) -> float:
    """The bound of a program, which proves nothing of points within the budget unless two runs came to it."""
    best = min(budget, found.objective)
    return found.limit(best, 2 * OPTIMALITY_GAP * max(1.0, best))


def next_step(iteration: int, distance: float, radius: float, master: float, adversary: float) -> dict[str, Any]:
    return {
        "iteration": iteration, "distance": float(distance), "radius": max(float(radius), 0.0),
        "master_seconds": master, "adversary_seconds": adversary,
    }  # fmt: skip
