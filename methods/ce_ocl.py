"""CE-OCL: counterfactual explanations by optimisation with constraint learning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import UnsupportedError
from harness.explanation import Answer, Explanation, Reason, Status
from harness.method import Deadline
from harness.objective import Objective, Term, mad
from harness.problem import Kind, Label, Problem
from harness.program import PROVEN, Compiled, Linear, Program, Solution
from methods.cells.grid import WORD, ensemble
from methods.cells.search import CellSearch, Closest
from methods.conflict import groups_of, irreducible, lifted
from methods.milp.bounds import Knapsack
from methods.milp.embed import Embedded, embed, splits_only
from methods.milp.space import Cost, Variables
from methods.milp.start import Starts
from methods.milp.target import averages, raw_interval

DISTANCES = {"l0", "l1", "mad_l1", "l2sq", "gower"}
REPAIRS = 25  # solutions that the real model refuses before the answer is given up
TOO_LITTLE = 1e-10  # of progress in bound and incumbent: after PATIENCE rounds of it more tangents would not help
PATIENCE = 4
RESERVE = 0.05  # of the time limit: for reading and checking the last solution


@dataclass(frozen=True)
class CeOcl:
    r"""Closest point, by a distance and the number of changed features, that the fitted model puts in the wanted class.

    .. math::
        \min_x \;        & d(x, \hat x) + \alpha \textstyle\sum_l z_l                                    & (2a) \\
        \text{s.t. } \;  & h(x) \models \tilde y                                     &\text{validity}    & (2c) \\
                         & \textstyle\sum_{h \in T_l} x_h = 1,\; x_h \in \{0, 1\}    &\text{coherence}   & (4) \\
                         & |x_j - \hat x_j| \le M_j z_j, \; \textstyle\sum_l z_l \le K &\text{sparsity}  & (5a, 5b) \\
                         & x_i = \hat x_i,\; x_i \ge \hat x_i, \dots                 &\text{actionability} & (6)

    Equation numbers are those of [1]_. The model is embedded exactly (``methods/milp/embed``); :math:`M_j` is how far
    the feature can go, not a big number. With :math:`\alpha` above every possible distance the problem is solved in its
    two stages, fewest changes first, which is the same optimum without the loss of digits. Several counterfactuals come
    one after another, each apart from all earlier ones [2]_: in some category, or by ``separation`` in some number.

    Each answer is predicted as wanted by the fitted estimator: a solution that the estimator refuses (a tie, rounding)
    is excluded and the program solved again. OPTIMAL means that objective and proven bound agree within 1e-6.
    Where no counterfactual exists, ``conflict`` names constraint groups that rule all of them out, none to be spared.

    Parameters
    ----------
    distance
        ``l0``, ``l1``, ``mad_l1``, ``gower`` or ``l2sq``, in scaled space. Squares are constants per cell on trees, and
        an outer approximation by tangents elsewhere, refined until the gap is closed.
    alpha
        Weight :math:`\alpha \ge 0` of the number of changes.
    max_changes
        Bound K on the number of changed features; None for no bound.
    count
        Unit of a change: ``features``, or ``columns`` (a changed one-hot category counts 2).
    separation
        Scaled distance in one number that tells two counterfactuals apart, in (0, 1].
    engine
        ``search``: branch and bound over the cells of a tree ensemble (``methods/cells``), without a solver and without
        a margin. ``milp``: the mixed-integer program. ``auto``: the search wherever it applies. Same optimum.
    margin
        :math:`\delta` > 0: validity is score − threshold ≥ δ (or ≤ −δ). Above the solver's tolerance of 1e-7.

    References
    ----------
    .. [1] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    .. [2] Karimi, A.-H., G. Barthe, B. Balle, and I. Valera (2020). Model-agnostic counterfactual explanations for
       consequential decisions. *AISTATS*.
    """

    distance: str = "l1"
    alpha: float = 0.0
    max_changes: int | None = None
    count: str = "features"
    separation: float = 0.05
    margin: float = 1e-6
    engine: str = "auto"

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise ValueError(f"distance is {self.distance!r}; allowed: {', '.join(sorted(DISTANCES))}.")
        if self.alpha < 0:
            raise ValueError(f"alpha is {self.alpha}; it must be >= 0.")
        if self.max_changes is not None and self.max_changes < 1:
            raise ValueError(f"max_changes is {self.max_changes}; it must be >= 1, or null for no bound.")
        if self.count not in {"features", "columns"}:
            raise ValueError(f"count is {self.count!r}; allowed: features, columns.")
        if self.engine not in {"auto", "search", "milp"}:
            raise ValueError(f"engine is {self.engine!r}; allowed: auto, search, milp.")
        if not 0 < self.separation <= 1:
            raise ValueError(f"separation is {self.separation}; it must be in (0, 1].")
        if self.margin < PROVEN:
            raise ValueError(f"margin is {self.margin}; it must be at least {PROVEN}, above the solver's tolerance.")

    def refuses(self, problem: Problem) -> str | None:
        if self.engine == "search" and not _searchable(problem):
            name = type(problem.classifier.estimator).__name__
            return f"engine=search needs a tree, forest or boosting model and a one-sided target, not {name}; use auto."
        if not isinstance(problem.target, Label) and len(problem.classifier.classes) > 2:
            return "a probability of one of several classes cannot be embedded; set 'desired' to a class."
        try:
            _embed(Program(), problem)
        except UnsupportedError as fault:
            return str(fault)
        return None

    def objective(self, problem: Problem) -> Objective:
        params = mad(problem.space, problem.train) if self.distance == "mad_l1" else {}
        terms = [Term(self.distance, 1.0, params)]
        if self.alpha:
            terms.append(Term("l0", self.alpha))
        return Objective(tuple(terms), count=self.count)

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)

    def start(self, problem: Problem) -> _Searching | _Programmed:
        """The engine that answers."""
        if self.engine == "search" or (self.engine == "auto" and _searchable(problem)):
            try:
                return _Searching(self, problem)
            except UnsupportedError:
                if self.engine == "search":
                    raise
        return _Programmed(self, problem)

    def weights(self, problem: Problem) -> np.ndarray:
        """What each changed feature counts, shape (features,)."""
        double = [self.count == "columns" and feature.kind is Kind.CATEGORICAL for feature in problem.space.features]
        return np.where(double, 2.0, 1.0)


def _searchable(problem: Problem) -> bool:
    """Whether the cell search takes the model, a sum of trees, and the target, one end of its output."""
    estimator = problem.classifier.estimator
    if ensemble.dispatch(type(estimator)) is ensemble.dispatch(object) or len(problem.classifier.classes) > 2:
        return False
    few = all(f.kind is not Kind.CATEGORICAL or len(f.categories) <= WORD for f in problem.space.features)
    return few and raw_interval(problem).sense != 0


class _Explainer:
    """An engine, and the reason where it finds that there is no counterfactual."""

    def __init__(self, method: CeOcl, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.engine = method.start(problem)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        deadline = Deadline(deadline.at - RESERVE * deadline.left)
        answers = self.engine.answers(factual, n, deadline)
        conflict: tuple[str, ...] = ()
        if answers[0].status is Status.INFEASIBLE:
            conflict = self._conflict(factual, deadline)
            if conflict:
                detail = f"{answers[0].detail}; these cannot hold together: {', '.join(conflict)}"
                answers[0] = replace(answers[0], detail=detail)
        return Explanation(tuple(answers), conflict).padded(n, answers[-1])

    def _conflict(self, factual: pd.DataFrame, deadline: Deadline) -> tuple[str, ...]:
        """Constraint groups that leave no valid point, none of which can be spared."""

        def infeasible(without: frozenset[str]) -> bool | None:
            if deadline.passed:
                return None
            method = replace(self.method, max_changes=None) if "max_changes" in without else self.method
            answer = method.start(lifted(self.problem, without)).answers(factual, 1, deadline)[0]
            return None if answer.status is Status.GAVE_UP else answer.status is Status.INFEASIBLE

        bounded = [] if self.method.max_changes is None else ["max_changes"]
        return irreducible([*groups_of(self.problem), *bounded], infeasible)


class _Searching:
    """CE-OCL on trees without a solver: the cheapest cell of the wanted class."""

    def __init__(self, method: CeOcl, problem: Problem) -> None:
        self.method = method
        coefficients = method.objective(problem).separable(problem.space)
        assert coefficients is not None
        most = math.inf if method.max_changes is None else float(method.max_changes)
        self.search = CellSearch(problem, coefficients, method.weights(problem), most)
        self.search.compile(problem.train.iloc[[0]].to_dict("records")[0])

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each apart from those before; fewer than ``n`` end with one that has no point."""
        origin = factual.to_dict("records")[0]
        answers: list[Answer] = []
        while len(answers) < n:
            earlier = [answer.row for answer in answers if answer.row is not None]
            found = self.search.closest(origin, earlier, self.method.separation, deadline)
            answers.append(_told(found, bool(earlier)))
            if found.row is None:
                break
        return answers


def _told(found: Closest, further: bool) -> Answer:
    """What a search found, as an answer."""
    if found.row is None:
        if found.proven:
            return Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=_nothing(further))
        return Answer(Status.GAVE_UP, None, Reason.TIME_LIMIT, detail="no counterfactual was found within the limits")
    if found.proven:
        return Answer(Status.OPTIMAL, found.row, Reason.PROOF, found.value, found.value)
    return Answer(Status.FOUND, found.row, Reason.TIME_LIMIT, found.value, found.bound)


def _nothing(further: bool) -> str:
    beyond = " further from those before it" if further else ""
    return f"no point within the features' actionability, bounds and sparsity is classified as wanted{beyond}"


def _embed(program: Program, problem: Problem) -> tuple[Variables, Embedded]:
    """The space and the model as variables and rows of a program."""
    classifier = problem.classifier
    variables = Variables(program, problem.space, cells=splits_only(classifier.estimator))
    sense = raw_interval(problem).sense if len(classifier.classes) <= 2 else 0
    inputs = [variables.source(source) for source in classifier.inputs]
    return variables, embed(classifier.estimator, program, inputs, sense)


class _Programmed:
    """The program of one problem, built once; factuals change bounds, coefficients and temporary rows only."""

    def __init__(self, method: CeOcl, problem: Problem) -> None:
        self.method, self.problem = method, problem
        space, classifier = problem.space, problem.classifier
        self.claim = method.objective(problem)
        coefficients = self.claim.separable(space)
        assert coefficients is not None
        self.fixed, self.linear, self.quadratic = coefficients
        self.weights = method.weights(problem)
        program = Program()
        self.variables, self.embedded = _embed(program, problem)
        self.variables.close()
        rows = self._validity(program)
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.embedded.attach(self.compiled)
        self.valid_rows = [self.compiled.row(row) for row in rows]
        self.leaves = [
            np.array([self.compiled.column(leaf) for leaf in tree], dtype=np.int32) for tree in self.embedded.leaves
        ]
        self.cells = splits_only(classifier.estimator)
        self.knapsack = None if self.embedded.tighten is None else Knapsack(self.variables, classifier.inputs)
        # A linear model is solved faster than a first guess is found, unless tangents have to know where to touch.
        self.starts = Starts(problem) if self.cells or self.knapsack or self.quadratic.any() else None
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
        wanted, tie = problem.classifier.code(problem.target.value), 0.0 if averages(problem.classifier) else margin
        return [
            program.add(outputs[wanted] - output >= (tie if wanted < other else margin))
            for other, output in enumerate(outputs)
            if other != wanted
        ]

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each apart from those before; fewer than ``n`` end with one that has no point."""
        guesses = None
        if self.starts is not None:
            preference = self.weights * (1.0 if self.method.alpha else 0.01)
            guesses = self._with_singles(factual, self.starts.near(factual, preference))
        answers: list[Answer] = []
        while len(answers) < n:
            answer = self._next(factual, [a.row for a in answers if a.row is not None], guesses, deadline)
            answers.append(answer)
            if answer.row is None:
                break
        return answers

    def _with_singles(self, factual: pd.DataFrame, guesses: pd.DataFrame) -> pd.DataFrame:
        """The guesses, and every valid point that differs from the factual in one listed value."""
        self._pose(factual, [], math.inf, math.inf)
        singles = list(self.variables.singles())
        if not singles:
            return guesses
        origin = factual.iloc[0].to_dict()
        frame = self.problem.space.frame([{**origin, name: value} for name, value in singles])
        return pd.concat([guesses, frame.loc[self.problem.valid(frame)]], ignore_index=True)

    def _next(
        self, factual: pd.DataFrame, earlier: Sequence[dict[str, Any]], guesses: pd.DataFrame | None, deadline: Deadline
    ) -> Answer:
        """The best counterfactual apart from all earlier ones."""
        search = _Search(self, factual, earlier, self._lexical(factual), deadline)
        if guesses is not None:
            search.guess(guesses)
        return search.run()

    def _lexical(self, factual: pd.DataFrame) -> bool:
        """Whether alpha exceeds every distance from this factual, so that the fewest changes come first."""
        low, high = self.problem.space.reach(factual)
        origin = self.problem.space.encode(factual)[0]
        reach = np.maximum(np.abs(high - origin), np.abs(low - origin))
        gaps = np.array([reach[columns].max(initial=0.0) for columns in self.problem.space.slices])
        return self.method.alpha > float(self.linear @ gaps + self.quadratic @ gaps**2)

    def _pose(
        self,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        count: float,
        budget: float,
        lexical: bool = False,
    ) -> None:
        """Set the program for a factual: bounds within the budget, separation from earlier answers, tight big-M."""
        self.compiled.rewind(self.base)
        fixed = self.fixed - self.method.alpha * self.weights if lexical else self.fixed
        costs = [Cost(*parts, budget) for parts in zip(fixed, self.linear, self.quadratic, strict=True)]
        self.variables.pose(factual, costs)
        for row in earlier:
            self.compiled.add_row(self.variables.apart(row, self.method.separation), low=1.0)
        if math.isfinite(count):
            self.compiled.add_row(self.variables.changed(self.weights), high=count)
        if self.knapsack is not None and self.embedded.tighten is not None:
            self.knapsack.limit(costs, self.weights, count, budget)
            self.embedded.tighten(self.knapsack)


class _Search:
    """The search for one counterfactual: an incumbent, a bound, and the stages between them."""

    def __init__(
        self,
        explainer: _Programmed,
        factual: pd.DataFrame,
        earlier: Sequence[dict[str, Any]],
        lexical: bool,
        deadline: Deadline,
    ) -> None:
        self.explainer, self.factual, self.earlier, self.deadline = explainer, factual, earlier, deadline
        self.problem = explainer.problem
        method = explainer.method
        self.most = math.inf if method.max_changes is None else float(method.max_changes)
        self.row: dict[str, Any] | None = None
        self.count = self.distance = self.value = math.inf
        self.lexical = lexical

    def guess(self, frame: pd.DataFrame) -> None:
        """Take the best of some valid points as incumbent, as far as they are allowed."""
        if frame.empty:
            return
        space, explainer = self.problem.space, self.explainer
        changes = space.changed(self.factual, frame) @ explainer.weights
        features = space.changed(self.factual, frame).sum(axis=1)
        values = explainer.claim.evaluate(space, self.factual, frame)
        allowed = (features > 0) & (changes <= self.most) & self._apart(frame)
        if allowed.any():
            best = int(np.flatnonzero(allowed)[values[allowed].argmin()])
            self._take(frame.iloc[[best]])

    def _apart(self, frame: pd.DataFrame) -> np.ndarray:
        apart = np.ones(len(frame), dtype=bool)
        for row in self.earlier:
            other = self.problem.space.frame([row])
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

    def _take(self, frame: pd.DataFrame) -> None:
        """A new incumbent, if it is better."""
        explainer, space = self.explainer, self.problem.space
        value = float(explainer.claim.evaluate(space, self.factual, frame)[0])
        if value < self.value:
            self.row, self.value = frame.to_dict("records")[0], value
            self.count = float((space.changed(self.factual, frame) @ explainer.weights)[0])
            self.distance = value - explainer.method.alpha * self.count

    def run(self) -> Answer:
        """Prove the incumbent, or find better."""
        alpha = self.explainer.method.alpha
        if not self.lexical:
            solution = self._stage(self._cost, self.most, self.value)
            return self._answer(0.0, solution)
        least = 1.0
        if self.count > 1:
            first = self._stage(self._changes, min(self.most, self.count - 1), math.inf)
            if first.x is None and not first.infeasible:
                return self._answer(0.0, Solution(None, math.inf, max(alpha * max(first.bound, 1.0), 0.0)))
            if first.x is None and self.row is None:
                return self._answer(0.0, first)
            least = self.count if first.infeasible else math.ceil(first.bound - 1e-6)
        if self.count > least:
            return self._answer(alpha * least, Solution(None, math.inf, 0.0))
        second = self._stage(self._cost, self.count, self.distance, lexical=True)
        return self._answer(alpha * self.count, second)

    def _cost(self) -> Linear:
        return self.explainer.variables.cost()

    def _changes(self) -> Linear:
        return self.explainer.variables.changed(self.explainer.weights)

    def _stage(self, objective: Callable[[], Linear], count: float, budget: float, lexical: bool = False) -> Solution:
        """Minimise under at most ``count`` changes and a cost of at most ``budget``; valid solutions become incumbents.

        The bound returned is valid whatever happened; ``infeasible`` is a proof that nothing is better than the
        incumbent within the limits.
        """
        explainer, compiled = self.explainer, self.explainer.compiled
        slack = budget + PROVEN * max(1.0, abs(budget)) if math.isfinite(budget) else math.inf
        explainer._pose(self.factual, self.earlier, count, slack, lexical)
        form = objective()
        squared = explainer.quadratic.any() and math.isfinite(budget)
        scale = 10.0 / max(budget, 1e-6) if squared else 1.0  # squares are small beside absolute tolerances
        bound, repairs, patience = -math.inf, 0, PATIENCE
        while repairs < REPAIRS:
            solution = compiled.solve(form, self.deadline.left, scale=scale)
            exact = repairs == 0 or explainer.cells  # a wider margin proves nothing of the narrower one
            before, known = bound, self.value
            bound = max(bound, solution.bound) if exact else bound
            if solution.x is None:
                return Solution(None, math.inf, bound, solution.infeasible and exact)
            frame = self.problem.space.frame([explainer.variables.read(solution.x)])
            if not self.problem.valid(frame)[0]:
                self._exclude(solution.x, 10.0 ** (repairs + 1))
                repairs += 1
                continue
            self._take(frame)
            patience -= bound <= before + TOO_LITTLE and self.value >= known - TOO_LITTLE
            if not patience or self.deadline.passed or not explainer.variables.refine(solution.x):
                return Solution(solution.x, solution.objective, min(bound, solution.objective))
        return Solution(None, math.inf, bound)

    def _exclude(self, x: np.ndarray, factor: float) -> None:
        """Rule out a solution that the real model refuses: its combination of leaves, or a margin ten times as wide."""
        explainer, compiled = self.explainer, self.explainer.compiled
        if explainer.cells:
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

    def _answer(self, settled: float, solution: Solution) -> Answer:
        """The incumbent with its proof; ``settled`` is the part of the objective decided by an earlier stage."""
        late = self.deadline.passed
        if self.row is None:
            if solution.infeasible:
                return Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=_nothing(bool(self.earlier)))
            reason = Reason.TIME_LIMIT if late else Reason.FINISHED
            return Answer(Status.GAVE_UP, None, reason, detail="no counterfactual was found within the limits")
        bound = self.value if solution.infeasible else min(settled + solution.bound, self.value)
        rest = self.value - settled if self.lexical else self.value
        if self.value - bound <= PROVEN * max(1.0, abs(rest)):
            return Answer(Status.OPTIMAL, self.row, Reason.PROOF, self.value, bound)
        reason = Reason.TIME_LIMIT if late else Reason.FINISHED
        return Answer(Status.FOUND, self.row, reason, self.value, bound if math.isfinite(bound) else None)
