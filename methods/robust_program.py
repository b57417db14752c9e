"""Robust counterfactuals by mixed-integer programs: one solve for linear models, else Algorithm 1 or one leaf."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from harness.certificate import Ball, Checker
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.solvers.highs import FEASIBILITY, Solution
from harness.solvers.highs import Linear as Form
from harness.solvers.program import Compiled, Program
from methods.milp.bounds import Knapsack
from methods.milp.distance import Separable, distance_of
from methods.milp.embed import embed
from methods.milp.manifold import SHARED, Hull, Outside, Piece, Shares
from methods.milp.space import Free, Scaled, Source, Variables, last_left
from methods.milp.target import leads, raw_interval
from methods.perturbation import Outcome, Perturbation, Settings
from methods.trees import Leaf as Cell
from methods.trees import ensemble, leaves_of, splits_only

ENOUGH = 1e-9  # by which a certified radius may fall short of rho: rounding of the last bits of x
WIDE = 10.0  # scaled units around the factual in which unbounded numbers are looked at while nothing is known
TRIED = 40  # training rows whose neighbourhood is certified, in search of a first robust point
HALVINGS = 12  # of its way back to the factual
FARTHER = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  # times rho beyond a point that is not robust, in its number that moves most
SHARE = 0.25  # of the time left that a certificate may take
PLANES = 50  # that cut a ball out of its box, for one adversary
EXCLUDED = 25  # combinations of leaves that only tolerances or ties allow, before a program is given up
INSET, ULPS = 1e-12, 8e-15  # what a number keeps away from a threshold for rounding: of its range, of its size
SHARP = 1e-9  # feasibility under squares: what a row is missed by counts more than their own tolerance
BEYOND = 1e-6  # relative excess of a norm that needs no further plane
BISECTIONS = 50  # for the depth of a leaf


@dataclass
class Judge:
    """Certified radii of rows, by the harness's own checker."""

    problem: Problem
    settings: Settings

    def __post_init__(self) -> None:
        problem, settings = self.problem, self.settings
        self.checker = Checker(problem.space, problem.classifier, problem.target)
        self.ball = Ball.scaled(problem.space, settings.norm, settings.unperturbed)

    def radius(self, row: Mapping[str, Any], seconds: float) -> float:
        """The largest proven radius of a row, at most rho; -1 for a row that is invalid itself."""
        if not self.checker.valid(row):
            return -1.0
        return self.checker.certify(row, self.ball, self.settings.radius, seconds).radius

    def robust(self, row: Mapping[str, Any], seconds: float) -> bool:
        return self.radius(row, seconds) >= self.settings.radius - ENOUGH


class Starts:
    """Robust points without a program: training rows with room around them, moved on lines as far as they keep it."""

    def __init__(self, problem: Problem, space: Space, objective: Objective, judge: Judge) -> None:
        self.space, self.objective, self.judge = space, objective, judge
        valid = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        self.rows = valid.reset_index(drop=True)
        self.numbers = [s.start for s, f in zip(space.slices, space.features, strict=True) if f.numeric]
        # A hull is a linear program a row: asked of those that are tried only.
        self.cheap = replace(objective, limits=tuple(part for part in objective.limits if part.term.name != "slack"))

    def near(self, factual: pd.DataFrame, deadline: Deadline) -> tuple[dict[str, Any] | None, float]:
        """A robust row moved towards the factual, and its cost; None and infinity where none was met."""
        rows = self.rows
        allowed = [not faults for faults in self.space.violations(factual, rows)]
        rows = rows.loc[allowed]
        if not rows.empty:
            rows = rows.loc[[not faults for faults in self.cheap.exceeded(self.space, factual, rows)]]
        if rows.empty:
            return None, math.inf
        values = self.objective.evaluate(self.space, factual, rows)
        seconds = 0.2 * deadline.left / TRIED
        for place in np.argsort(values, kind="stable")[:TRIED]:
            row = rows.iloc[[int(place)]].to_dict("records")[0]
            if self.stands(row, factual, seconds):
                return self.between(factual, row, factual, Deadline.after(TRIED * seconds))
        return None, math.inf

    def stands(self, row: Mapping[str, Any], factual: pd.DataFrame, seconds: float) -> bool:
        """Whether a row may be answered: permitted, within the limits, and robust."""
        frame = self.space.frame([row])
        if self.space.violations(factual, frame)[0] or self.objective.exceeded(self.space, factual, frame)[0]:
            return False
        return self.judge.robust(row, seconds)

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
            if self.stands(trial, factual, deadline.left):
                best, high = trial, middle
            else:
                low = middle
        return best, float(self.objective.evaluate(self.space, factual, self.space.frame([best]))[0])

    def beyond(self, row: Mapping[str, Any], factual: pd.DataFrame, deadline: Deadline) -> dict[str, Any] | None:
        """The first robust row found on the way from the factual through one that is not; None where none was met."""
        ends, start = self.space.encode(self.space.frame([row]))[0], self.space.encode(factual)[0]
        far = np.abs(ends - start)[self.numbers].max(initial=0.0)
        for times in FARTHER if far > 0 else ():
            trial = self._on(start, ends, 1.0 + times * self.judge.settings.radius / far, factual)
            if deadline.passed:
                return None
            if self.stands(trial, factual, deadline.left):
                return trial
        return None

    def _on(self, start: np.ndarray, ends: np.ndarray, share: float, factual: pd.DataFrame) -> dict[str, Any]:
        """A point on the line through two others, whose categories are those of the second."""
        point = ends.copy()
        point[self.numbers] = start[self.numbers] + share * (ends[self.numbers] - start[self.numbers])
        found: dict[str, Any] = self.space.decode(point, like=factual).to_dict("records")[0]
        return found


class Programmed:
    """What the programs share: the space around a factual, the objective, and a solve that squares are refined in."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        if settings.clip:
            raise UnsupportedError("clip=true is for the search over cells; set algorithm=cells, or leave clip unset.")
        classifier = problem.classifier
        self.problem, self.settings = problem, settings
        self.space = problem.space
        self.perturbation = Perturbation.of(settings, problem)
        self.objective = settings.claim(problem)
        self.distance = distance_of(self.objective.terms[0], problem, "features")
        self.judge = Judge(problem, settings)
        self.starts = Starts(problem, self.space, self.objective, self.judge)
        self.slopes = np.array([self._slope(source) for source in classifier.inputs])
        self.manifold = _manifold(self.objective)
        model = ensemble(classifier.estimator) if splits_only(classifier.estimator) else None
        self.leaves: list[list[Cell]] = [] if model is None else [leaves_of(tree) for tree in model.trees]
        self.single = model is not None and model.single

    def _slope(self, source: Input) -> float:
        """What a scaled unit of a number is in its input; 0 for categories."""
        if not isinstance(source, Affine):
            if self.problem.space[source.feature].numeric:
                raise UnsupportedError(
                    f"{type(source).__name__} of {source.feature}, a number, cannot be embedded yet."
                )
            return 0.0
        return self.problem.space[source.feature].range / source.unit

    def piece(self) -> Piece | None:
        """The data manifold, for one program."""
        hull = self.manifold
        if hull is None:
            return None
        every = np.arange(hull.points.shape[1])
        if len(hull.points) <= SHARED and hull.norm != 2:
            return Shares(hull.points, every, norm=hull.norm, most=hull.most)
        return Outside(hull.hull, every, hull.most)

    def frame(self, row: Mapping[str, Any]) -> pd.DataFrame:
        return self.space.frame([row])

    def value(self, row: Mapping[str, Any], factual: pd.DataFrame) -> float:
        return float(self.objective.evaluate(self.space, factual, self.frame(row))[0])

    def around(self, factual: pd.DataFrame, budget: float) -> Space:
        """The space, its numbers bounded by what a budget allows, or by ``WIDE``."""
        reach = min(WIDE, math.sqrt(budget) if self.settings.distance == "l2sq" else budget)
        changes = {}
        for feature in self.space.features:
            if feature.numeric:
                value = float(factual[feature.name].iloc[0])
                near = (value - reach * feature.range, value + reach * feature.range)
                if not math.isfinite(budget) and not _boundless(feature):
                    continue
                bounds = max(feature.bounds[0], near[0]), min(feature.bounds[1], near[1])
                if bounds[0] <= bounds[1]:
                    changes[feature.name] = {"bounds": bounds}
        return self.space.replace(changes)

    def outcome(
        self,
        row: dict[str, Any] | None,
        factual: pd.DataFrame,
        bound: float,
        trace: Sequence[dict[str, Any]],
    ) -> Outcome:
        """What was found; no proof that there is nothing where only a part of the space was looked at."""
        if row is None:
            wide = any(_boundless(feature) for feature in self.space.features)
            return Outcome(None, math.inf, min(bound, WIDE) if wide else bound, 0.0, tuple(trace))
        value = self.value(row, factual)
        return Outcome(row, value, min(bound, value), self.settings.radius, tuple(trace))


def _boundless(feature: Feature) -> bool:
    """Whether a feature may go farther than programs look while nothing is known."""
    return feature.numeric and feature.bounds[1] - feature.bounds[0] > 2 * WIDE * feature.range


@dataclass(frozen=True)
class Within:
    """A convex hull that points have to lie in, but for ``most`` in a norm, and the cuts that are known of it."""

    points: np.ndarray
    norm: float
    most: float
    hull: Hull


def _manifold(objective: Objective) -> Within | None:
    for limit in objective.limits:
        if limit.term.name == "slack":
            points, norm = limit.term.params["points"], float(limit.term.params["norm"])
            return Within(points, norm, limit.most, Hull(points, norm))
    return None


class Posed:
    """One program over a space around one factual: variables, and rows that further embeddings add before ``close``."""

    def __init__(self, whole: Programmed, space: Space, factual: pd.DataFrame, budget: float) -> None:
        self.whole, self.space, self.factual, self.budget = whole, space, factual, budget
        self.program = Program()
        self.variables = Variables(self.program, space, cells=False)
        self.inputs = [self.variables.source(source) for source in whole.problem.classifier.inputs]
        self.embedded: list[tuple[Any, np.ndarray]] = []
        self.moved: dict[tuple[int, float, float], Free] = {}  # shared by the perturbations that move an input alike
        self.piece = whole.piece()

    def sources(self, shift: np.ndarray, margin: float | np.ndarray = 0.0) -> list[Source]:
        """The estimator's inputs at x + s, ``shift`` by input; those that do not move are the inputs themselves.

        A split keeps ``margin`` away from its threshold. Without one both sides hold the threshold itself, so that the
        program is a relaxation, and its value a bound; ``read`` finds the point that is on the right side.
        """
        problem, found = self.whole.problem, list[Source]()
        margins = np.broadcast_to(margin, len(self.inputs))
        low, high = self.space.reach(self.factual)
        origin = self.space.encode(self.factual)[0]
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        place = {f.name: s.start for f, s in zip(self.space.features, self.space.slices, strict=True)}
        parts = zip(self.inputs, problem.classifier.inputs, self.whole.slopes, shift, margins, strict=True)
        for k, (made, source, slope, far, gap) in enumerate(parts):
            if not slope or (not far and not gap):
                found.append(made)
                continue
            key = (k, float(far), float(gap))
            if key not in self.moved:
                feature = problem.space[source.feature]
                assert isinstance(source, Affine)
                offset = (feature.scale[0] - source.shift) / source.unit + far
                ends = sorted(slope * end[place[source.feature]] + offset for end in (low, high))
                moved = Free(self.program, made.expression + far, ends[0] - Free.margin, ends[1] + Free.margin)
                moved.margin = float(gap)
                self.moved[key] = moved
            found.append(self.moved[key])
        return found

    def embed(self, inputs: Sequence[Source], shift: np.ndarray) -> tuple[Any, ...]:
        sense = 0
        if len(self.whole.problem.classifier.classes) <= 2:
            sense = raw_interval(self.whole.problem).sense
        made = embed(self.whole.problem.classifier.estimator, self.program, inputs, sense)
        self.embedded.append((made, shift))
        return made.outputs

    def require(self, outputs: Sequence[Any], excess: Callable[[np.ndarray], float]) -> None:
        """(4): outputs as wanted, by the margin and ``excess`` of the weights of each row over the outputs."""
        problem, margin, program = self.whole.problem, self.whole.settings.margin, self.program
        if len(problem.classifier.classes) <= 2:
            low, high = raw_interval(problem).bounds(margin)
            more = excess(np.ones(1))
            if math.isfinite(low):
                program.add(outputs[0] >= low + more)
            if math.isfinite(high):
                program.add(outputs[0] <= high - more)
            return
        assert isinstance(problem.target, Label)
        wanted = problem.classifier.code(problem.target.value)
        earlier, later = leads(problem.classifier, margin)
        unit = np.eye(len(outputs))
        for other, output in enumerate(outputs):
            if other != wanted:
                least = earlier if other < wanted else later
                program.add(outputs[wanted] - output >= least + excess(unit[wanted] - unit[other]))

    def close(self) -> None:
        """Compile, and pose the factual."""
        whole, settings = self.whole, self.whole.settings
        self.variables.close()
        self.compiled: Compiled = self.program.compile()
        self.variables.attach(self.compiled)
        for block in self.variables.blocks:
            if isinstance(block, Scaled):
                block.counted = settings.alpha > 0 or settings.max_changes is not None
        for made, _ in self.embedded:
            made.attach(self.compiled)
        for columns in (made.leaves for made, _ in self.embedded):
            for tree in columns:  # HiGHS 1.12 was seen to call wrong optima proven where leaves were continuous
                self.compiled.integer[[self.compiled.column(leaf) for leaf in tree]] = 1
        extra = np.full(len(self.space.features), settings.alpha)
        budget = self.budget * (1 + 1e-6) + 1e-6 if math.isfinite(self.budget) else math.inf
        costs = whole.distance.costs(extra, budget)
        box = whole.distance.box(extra, budget, self.space.encode(self.factual)[0])
        self.variables.pose(self.factual, costs, box)
        if settings.max_changes is not None:
            ones = np.ones(len(self.space.features))
            self.compiled.add_row(self.variables.changed(ones), high=float(settings.max_changes))
        self.cost = whole.distance.form(self.variables, extra, self.compiled)
        if self.piece is not None:
            self.piece.pose(self.compiled, self.variables.encoded())
        if any(made.tighten is not None for made, _ in self.embedded):
            knapsack = Knapsack(self.variables, whole.problem.classifier.inputs)
            count = math.inf if settings.max_changes is None else float(settings.max_changes)
            priced = budget if isinstance(whole.distance, Separable) else math.inf
            knapsack.limit(costs, np.ones(len(extra)), count, priced)
            for made, shift in self.embedded:
                made.tighten(lambda weights, constant, shift=shift: knapsack(weights, constant + weights @ shift))

    def solve(self, deadline: Deadline) -> Solution:
        """The optimum; squares are refined until their tangents touch, and a hull until its cuts hold the solution."""
        feasibility = SHARP if self.whole.settings.distance == "l2sq" else FEASIBILITY
        while True:
            found = self.compiled.solve(self.cost, deadline.left, feasibility=feasibility)
            if found.x is None:
                return found
            cuts = [] if self.piece is None else self.piece.refine(found.x, deadline.left)
            for cut, end in cuts:
                self.compiled.add_row(cut, high=end)
            if deadline.passed and (cuts or (self.piece is not None and self.piece.partial)):
                return Solution(None, math.inf, found.bound)  # nobody knows whether the point is in the hull
            if not cuts and (deadline.passed or not self.variables.refine(found.x)):
                return found

    def settled(self, deadline: Deadline) -> tuple[Solution, dict[str, Any] | None]:
        """``solve``, and its point as a row.

        Combinations of leaves that hold no point at all, or on which the real model says something else, are excluded.
        """
        for _ in range(EXCLUDED):
            found = self.solve(deadline)
            if found.x is None:
                return found, None
            row = self.read(found)
            if row is None:
                self.exclude(found, len(self.embedded))
            elif self.whole.leaves and not self.whole.judge.checker.valid(row):
                self.exclude(found, 1)
            else:
                return found, row
        return Solution(None, math.inf, found.bound), None

    def exclude(self, found: Solution, copies: int) -> None:
        """Rule out the leaves that a solution takes in the first copies of the model."""
        assert found.x is not None
        chosen = []
        for made, _ in self.embedded[:copies]:
            for tree in made.leaves:
                columns = [self.compiled.column(leaf) for leaf in tree]
                chosen.append(columns[int(found.x[columns].argmax())])
        chosen = sorted(set(chosen))
        self.compiled.add_row(Form.of([(leaf, 1.0) for leaf in chosen]), high=len(chosen) - 1.0)

    def read(self, found: Solution) -> dict[str, Any] | None:
        """Decoded values, on the sides of all thresholds that the solution's leaves say; None where that is nowhere.

        The solver's tolerance decides no side: a number takes the end of the interval that the leaves of all
        perturbations leave it, an inset for rounding away from it.
        """
        assert found.x is not None
        row = self.variables.read(found.x)
        if not self.whole.leaves:
            return row
        ends = self._ends(found.x)
        for feature in self.space.features:
            if not feature.numeric:
                continue
            (low, high), value = ends[feature.name], row[feature.name]
            home = float(self.factual[feature.name].iloc[0])
            loose = 2 * self._inset(feature, value) if value == home or feature.kind is Kind.INTEGER else 0.0
            if low - loose <= value <= high + loose:
                continue
            floor, ceiling = feature.interval(home)
            row[feature.name] = low if value < low else high
            if feature.kind is Kind.INTEGER or not max(low, floor) <= row[feature.name] <= min(high, ceiling):
                return None
        return row

    def _ends(self, x: np.ndarray) -> dict[str, list[float]]:
        """The interval that each number has to lie in, for all perturbations to reach the leaves that a solution takes.

        Where nothing moves a number, rounding may not take it out of its own cell; where it moves, it stays inside.
        """
        inputs, ends = self.whole.problem.classifier.inputs, {name: [-math.inf, math.inf] for name in self.space.names}
        for made, shift in self.embedded:
            for cells, tree in zip(self.whole.leaves, made.leaves, strict=True):
                cell = cells[int(x[[self.compiled.column(leaf) for leaf in tree]].argmax())]
                for sides, upper in ((cell.above, False), (cell.at_most, True)):
                    for column, threshold in sides.items():
                        source = inputs[column]
                        if not self.whole.slopes[column]:
                            continue
                        assert isinstance(source, Affine)
                        end = last_left(threshold, self.whole.single) - shift[column]
                        value, pair = source.shift + end * source.unit, ends[source.feature]
                        inset = self._inset(self.space[source.feature], value) * (1.0 if shift[column] else -1.0)
                        if upper == (source.unit > 0):
                            pair[1] = min(pair[1], value - inset)
                        else:
                            pair[0] = max(pair[0], value + inset)
        return ends

    @staticmethod
    def _inset(feature: Feature, value: float) -> float:
        return INSET * feature.range + ULPS * abs(value)


class Linear(Programmed):
    r"""(75): the worst perturbation costs a linear model :math:`\rho \|\beta_P\|_*`, so one solve is enough."""

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        factual = self.frame(row)
        start, budget = self.starts.near(factual, Deadline(deadline.at - 0.8 * deadline.left))
        space = self.around(factual, budget)
        posed = Posed(self, space, factual, budget)
        estimator = self.problem.classifier.estimator
        if not hasattr(estimator, "coef_"):
            raise UnsupportedError(f"{type(estimator).__name__} is no linear model; set algorithm=adversarial.")
        still = np.zeros(len(self.slopes))
        weights = np.atleast_2d(estimator.coef_)
        moved = self.perturbation.moved
        by_name = dict(zip(self.problem.space.names, moved, strict=True))
        features = [source.feature for source in self.problem.classifier.inputs]

        def excess(outputs: np.ndarray) -> float:
            slope: dict[str, float] = {}
            for name, weight, rate in zip(features, outputs @ weights, self.slopes, strict=True):
                if by_name[name]:
                    slope[name] = slope.get(name, 0.0) + float(weight * rate)
            dual = np.array(list(slope.values()))
            return self.settings.radius * float(
                np.abs(dual).sum() if self.settings.norm == "linf" else np.linalg.norm(dual)
            )

        posed.require(posed.embed(posed.inputs, still), excess)
        posed.close()
        began = time.monotonic()
        found, answer = posed.settled(deadline)
        if answer is None:
            return self.outcome(start, factual, budget if found.infeasible else 0.0, ())
        radius = self.judge.radius(answer, deadline.left)
        trace = [_step(1, found.objective, radius, time.monotonic() - began, 0.0)]
        kept = answer if radius >= self.settings.radius - ENOUGH else start
        return self.outcome(kept, factual, found.bound, trace)


class Leaf(Programmed):
    """(36)-(39): the best cell, one leaf a tree, shrunk by rho on the perturbed columns: an upper bound.

    No region that reaches over several cells is seen; where no cell is wide enough nothing is found.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        if not splits_only(problem.classifier.estimator):
            name = type(problem.classifier.estimator).__name__
            raise UnsupportedError(f"algorithm=leaf needs trees (here: {name}); set algorithm=auto.")
        super().__init__(problem, settings)

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        factual, began = self.frame(row), time.monotonic()
        start, budget = self.starts.near(factual, Deadline(deadline.at - 0.8 * deadline.left))
        space = self.around(factual, budget)
        posed = Posed(self, space, factual, budget)
        still = np.zeros(len(self.slopes))
        radii = dict(zip(self.problem.space.names, self.perturbation.moved, strict=True))
        moved = np.array([radii[source.feature] for source in self.problem.classifier.inputs])
        inset = Free.margin + self.settings.radius * np.abs(self.slopes) * moved
        posed.require(posed.embed(posed.sources(still, inset), still), lambda outputs: 0.0)
        posed.close()
        found, answer = posed.settled(deadline)
        if answer is not None:
            radius = self.judge.radius(answer, deadline.left)
            trace = [_step(1, found.objective, radius, time.monotonic() - began, 0.0)]
            if radius >= self.settings.radius - ENOUGH:
                return self.outcome(answer, factual, 0.0, trace)
        return self.outcome(start, factual, 0.0, ())


class Adversarial(Programmed):
    """Algorithm 1: a master program over perturbations found so far, and an adversary that looks for another one.

    The master has one copy of the model for each perturbation. Trees are extended continuously over their wrong leaves
    by the depth inside them (20), which the adversary maximises (26)-(35), (41)-(45). For a network it minimises the
    score (56)-(59). The master is a relaxation, in which both sides of a split hold its threshold, so that its value is
    a lower bound throughout. A point is accepted when its certified radius is rho: a depth below epsilon is no
    validity.

    Meanwhile points of the master that are not robust yet are moved to robust ones, so that there is an answer at the
    time limit. Where there is none, the trace holds every point with its certified radius.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        estimator = problem.classifier.estimator
        embed(
            estimator,
            Program(),
            [
                Variables(Program(), self.around(problem.train.iloc[[0]], 1.0), cells=False).source(source)
                for source in problem.classifier.inputs
            ],
        )  # refuses what cannot be embedded
        self.adversary = TreeAdversary(self) if self.leaves else ScoreAdversary(self)

    def shift(self, move: np.ndarray) -> np.ndarray:
        """A perturbation of features, in scaled units, as one of estimator inputs."""
        by_name = dict(zip(self.problem.space.names, move, strict=True))
        features = (source.feature for source in self.problem.classifier.inputs)
        return np.array([slope * by_name[name] for name, slope in zip(features, self.slopes, strict=True)])

    def pushed(self, row: Mapping[str, Any], move: np.ndarray) -> dict[str, Any]:
        """A decoded row perturbed by a move of features, in scaled units; integers as reals."""
        return {
            f.name: row[f.name] + far * f.range if far else row[f.name]
            for f, far in zip(self.space.features, move, strict=True)
        }

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        factual, rho = self.frame(row), self.settings.radius
        best, budget = self.starts.near(factual, Deadline(deadline.at - 0.8 * deadline.left))
        moves, trace, bound = [np.zeros(len(self.space.features))], list[dict[str, Any]](), 0.0
        while not deadline.passed and bound < budget:
            start = time.monotonic()
            posed = Posed(self, self.around(factual, budget), factual, budget)
            for move in moves:
                shift = self.shift(move)
                posed.require(posed.embed(posed.sources(shift), shift), lambda outputs: 0.0)
            posed.close()
            found, answer = posed.settled(deadline)
            if answer is None:
                # Nothing within the budget: the best point is optimal, or there is no point at all.
                bound = budget if found.infeasible else bound
                break
            master = time.monotonic() - start
            bound = max(bound, found.bound)
            start = time.monotonic()
            radius, worst = self.judge.radius(answer, SHARE * deadline.left), None
            if radius < rho - ENOUGH:
                worst = self.adversary.worst(answer, deadline)
            step = _step(len(moves), found.objective, radius, master, time.monotonic() - start)
            trace.append(step | {"row": answer})
            better: dict[str, Any] | None = answer if radius >= rho - ENOUGH else None
            if better is None and len(moves).bit_count() == 1:  # 1, 2, 4, 8 ...: not by the clock, which never repeats
                better = self._repaired(answer, best, factual, Deadline.after(SHARE * deadline.left))
            if better is not None and (value := self.value(better, factual)) < budget:
                best, budget = better, value
            if radius >= rho - ENOUGH or worst is None:
                break
            moves.append(worst)
        return self.outcome(best, factual, bound, trace)

    def _repaired(
        self, row: dict[str, Any], best: dict[str, Any] | None, factual: pd.DataFrame, deadline: Deadline
    ) -> dict[str, Any] | None:
        """A robust row near one that is not: on the way to the best known one, else beyond it; None where none is."""
        if deadline.passed:
            return None
        if best is None:
            best = self.starts.beyond(row, factual, deadline)
        return None if best is None else self.starts.between(self.frame(row), best, factual, deadline)[0]


def _step(iteration: int, distance: float, radius: float, master: float, adversary: float) -> dict[str, Any]:
    return {
        "iteration": iteration, "distance": float(distance), "radius": max(float(radius), 0.0),
        "master_seconds": master, "adversary_seconds": adversary,
    }  # fmt: skip


class TreeAdversary:
    """The perturbation that goes deepest into what the trees get wrong."""

    def __init__(self, whole: Adversarial) -> None:
        self.whole = whole
        problem = whole.problem
        self.model = ensemble(problem.classifier.estimator)
        interval = raw_interval(problem)
        self.sign = interval.sense
        self.threshold = interval.low if self.sign > 0 else interval.high
        names = problem.space.names
        self.feature = [names.index(source.feature) for source in problem.classifier.inputs]

    def worst(self, row: Mapping[str, Any], deadline: Deadline) -> np.ndarray | None:
        """(41)-(45), and (26)-(35) for one tree: the program over one leaf of each tree; None where it found nothing.

        Leaves that the box does not enter are left out; a leaf's depth is measured in scaled units, so that its faces'
        normals have length 1. The program says which leaves, ``deepest`` how deep they are entered: leaves that only
        its tolerance enters, or that the model is right on (a tie), are excluded. A ball is cut out of its box.
        """
        whole, rho = self.whole, self.whole.settings.radius
        inputs = whole.problem.classifier.vector(row)[0]
        moved = whole.perturbation.moved
        program = Program()
        moves = [program.variable(-rho, rho) if free else None for free in moved]
        depth = program.variable(-1.0, 1.0)
        total = self.sign * float(self.model.base[0])
        listed: list[list[tuple[Any, list[tuple[int, float, float]]]]] = []
        for tree, cells in zip(self.model.trees, whole.leaves, strict=True):
            chosen = []
            for cell in cells:
                faces = self._faces(cell, inputs, whole.slopes)
                if any(gap + (rho if moved[feature] else 0.0) < -1e-9 for feature, _, gap in faces):
                    continue
                leaf = program.binary()
                chosen.append((leaf, faces))
                total = total + self.sign * self.model.weight * float(tree.value[cell.node, 0]) * leaf
                for feature, side, gap in faces:
                    # side * x_j <= bound: the depth is gap - side * s_j, gap that of the point itself.
                    move = moves[feature]
                    most = 1.0 - gap + rho
                    program.add(depth <= gap - (side * move if move is not None else 0.0) + most * (1 - leaf))
            program.add(sum(leaf for leaf, _ in chosen) == 1)
            listed.append(chosen)
        program.add(total <= self.sign * self.threshold + 1e-9)
        compiled = program.compile()
        at = [None if move is None else compiled.column(move) for move in moves]
        goal = Form.of([(compiled.column(depth), -1.0)])
        leaves = [([compiled.column(leaf) for leaf, _ in chosen], chosen) for chosen in listed]
        for _ in range(PLANES):
            found = compiled.solve(goal, deadline.left)
            if found.x is None:
                return None
            below, above, taken = np.full(len(moved), math.inf), np.full(len(moved), math.inf), []
            for columns, chosen in leaves:
                place = int(found.x[columns].argmax())
                taken.append(columns[place])
                for feature, side, gap in chosen[place][1]:
                    gaps = above if side > 0 else below
                    gaps[feature] = min(gaps[feature], gap)
            move = deepest(below, above, moved, rho, whole.settings.norm)
            if move is not None and not whole.judge.checker.valid(whole.pushed(row, move)):
                return move
            if move is not None or not _cut_out(compiled, found.x, at, whole.settings):
                compiled.add_row(Form.of([(column, 1.0) for column in taken]), high=len(taken) - 1.0)
        return None

    def _faces(self, cell: Cell, inputs: np.ndarray, slopes: np.ndarray) -> list[tuple[int, float, float]]:
        """A leaf's faces at a point: feature, outward side, scaled distance to the face (negative outside)."""
        faces = []
        for sides, outward in ((cell.above, -1.0), (cell.at_most, 1.0)):
            for column, threshold in sides.items():
                slope = slopes[column]
                if math.isinf(threshold):
                    continue
                if not slope:
                    inside = (threshold - inputs[column]) * outward >= 0
                    faces.append((self.feature[column], outward, 1.0 if inside else -2.0))
                    continue
                gap = (threshold - inputs[column]) * outward / abs(slope)
                faces.append((self.feature[column], outward * math.copysign(1.0, slope), gap))
        return faces


class ScoreAdversary:
    """The perturbation of the worst score, of a model that is continuous in its inputs."""

    def __init__(self, whole: Adversarial) -> None:
        self.whole = whole
        self.sign = raw_interval(whole.problem).sense

    def worst(self, row: Mapping[str, Any], deadline: Deadline) -> np.ndarray | None:
        """(56)-(59): the least score within the box, or the ball by planes; None where time ran out."""
        whole, rho = self.whole, self.whole.settings.radius
        classifier = whole.problem.classifier
        inputs = classifier.vector(row)[0]
        program = Program()
        moves = [program.variable(-rho, rho) if free else None for free in whole.perturbation.moved]
        names = whole.problem.space.names
        sources: list[Source] = []
        reach = np.zeros(len(inputs))
        for k, (source, slope) in enumerate(zip(classifier.inputs, whole.slopes, strict=True)):
            move = moves[names.index(source.feature)]
            reach[k] = abs(slope) * rho if move is not None else 0.0
            expression = float(inputs[k]) + (slope * move if move is not None and slope else 0.0)
            sources.append(Free(program, expression, inputs[k] - reach[k], inputs[k] + reach[k]))
        made = embed(classifier.estimator, program, sources, -self.sign)
        compiled = program.compile()
        made.attach(compiled)

        def box(weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            middle, half = weights @ inputs + shift, np.abs(weights) @ reach
            return middle - half, middle + half

        if made.tighten is not None:
            made.tighten(box)
        at = [None if move is None else compiled.column(move) for move in moves]
        return _lowest(compiled, compiled.linear(self.sign * made.outputs[0]), at, whole.settings, deadline)


def deepest(below: np.ndarray, above: np.ndarray, free: np.ndarray, rho: float, norm: str) -> np.ndarray | None:
    r"""The move from a point to where a box of leaves is deepest within reach; None where it is not entered.

    In a box of perturbations each number goes to the middle of the leaves by itself, or away from their only face. In a
    ball a depth :math:`\alpha` asks :math:`s_j = \operatorname{clip}(0, \alpha - below_j, above_j - \alpha)`; the
    greatest one with :math:`\|s\|_2 \le \rho` is found by halving.

    Parameters
    ----------
    below, above
        How far the point lies above the leaves' lower, and below their upper face, scaled; infinite without a face.
    """
    radii = np.where(free, rho, 0.0)

    def depth_of(s: np.ndarray) -> float:
        return float(np.minimum(below + s, above - s).min(initial=1.0))

    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(below) & np.isinf(above), 0.0, (above - below) / 2)
    move = np.clip(middle, -radii, radii)
    if norm == "linf" or np.linalg.norm(move) <= rho:
        return move if depth_of(move) > 0 else None
    low, high = 0.0, depth_of(move)
    if high <= 0:
        return None
    for _ in range(BISECTIONS):
        depth = (low + high) / 2
        move = np.where(free, np.clip(0.0, depth - below, above - depth), 0.0)
        low, high = (depth, high) if np.linalg.norm(move) <= rho else (low, depth)
    return np.where(free, np.clip(0.0, low - below, above - low), 0.0) if low > 0 else None


def _lowest(
    compiled: Compiled, goal: Form, at: list[int | None], settings: Settings, deadline: Deadline
) -> np.ndarray | None:
    """The perturbation that minimises a form; a ball is cut out of its box by planes, its last point scaled back."""
    move = None
    for _ in range(PLANES if settings.norm == "l2" else 1):
        found = compiled.solve(goal, deadline.left)
        if found.x is None:
            return move
        move = np.array([0.0 if column is None else found.x[column] for column in at])
        length = float(np.linalg.norm(move))
        if not _cut_out(compiled, found.x, at, settings):
            return move
        move *= settings.radius / length
    return move


def _cut_out(compiled: Compiled, x: np.ndarray, at: list[int | None], settings: Settings) -> bool:
    """Add the plane that cuts a solution's move off a ball; whether it needed one."""
    moves = [(column, float(x[column])) for column in at if column is not None]
    length = math.hypot(*(part for _, part in moves))
    if settings.norm != "l2" or length <= settings.radius * (1 + BEYOND):
        return False
    compiled.add_row(Form.of([(column, part / length) for column, part in moves]), high=settings.radius)
    return True
