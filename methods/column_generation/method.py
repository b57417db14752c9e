"""One for many: the fewest counterfactuals that explain a group, each by a few features changed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError, check_choices
from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_counts
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.relations import refusal
from harness.core.space import Kind
from harness.core.target import Label
from harness.core.tolerances import MARGIN
from methods.column_generation import change, kernels, programs, search
from methods.column_generation.estimator import CodedModel, encode_model, rounds
from methods.column_generation.group import Group

SOLVERS: dict[str, Callable[[Group, int, Deadline], search.Found]] = {
    "cells": search.solve,
    "column_generation": programs.solve_by_columns,
    "milp": programs.solve_at_once,
    "milp_paper": partial(programs.solve_at_once, added=False),
}
DISCRETE = {Kind.BINARY, Kind.CATEGORICAL, Kind.ORDINAL}
CHOICE = 64  # points with equally many changes, of which those of highest score are taken
LIMIT = 2_000_000  # nodes of the search for points of one number of changes
ROOM, MORE = 32_768, 8  # points that it may list, and the factor on their number where the model rejects too many
REPAIRS = 3  # times that the margin grows tenfold where the fitted model rejects a point


@dataclass(frozen=True)
class ColumnGeneration:
    r"""Fewest points such that each factual is served by one, each with at most T features changed collectively.

    .. math::
        \min \; & \textstyle\sum_k y_k                                            & (1) \\
        \text{s.t. } & P(x^k) \ge \tau                                            & (2) \\
                & |\{l : x^k_l \ne \hat x_{il} \text{ for some } i \text{ with } a_{ik} = 1\}| \le T & (3\text{-}5) \\
                & \textstyle\sum_k a_{ik} \ge 1, \quad a_{ik} \le y_k             & (7\text{-}8)

    Equation numbers are those of [1]_. Outside the features changed, all members of a group equal its point. All
    features have to be discrete. Beyond the paper: a group changes no immutable feature, and every feature only to
    values that each of its members may reach; factuals that no point within T changes can serve are named and left out.

    All solvers find the same optimum. ``cells``: column generation whose pricing is a depth-first search over
    members, exact and without a solver, and whose gap is closed by listing every column that a smaller answer could
    hold, and by branch and bound over these (``cover_within``). ``column_generation``: pricing by the mixed-integer
    program (23)-(28) with the refinements of section 4.3; the rounded-up relaxation certifies its answer, or does not.
    ``milp_paper``: (1)-(14) as one program, points in use first. ``milp``: the same with rows that say who cannot share
    a point, and against symmetry.

    The paper leaves open which of the equally few points, and who is served by which. Here a second stage follows
    whatever the solver: with k(i) the point of factual i, and K the number of points that the first stage found,

    .. math::
        \min \; \textstyle\sum_i |\{l : x^{k(i)}_l \ne \hat x_{il}\}|
            \quad \text{s.t. (2)-(8)}, \; \textstyle\sum_k y_k \le K

    by column generation over points with those that each serves, whose pricing is exact, or over all groups where those
    are few. Its bound is its own: the first stage may be proven, and the second one not.

    Parameters
    ----------
    t_max
        T >= 1.
    threshold
        :math:`\tau` in [0.5, 1), least probability of a class that is wanted. At 0.5 the model's own rule. A target
        that is a probability has its own end.
    solver
        ``cells``, ``column_generation``, ``milp`` or ``milp_paper``.
    round_weights
        Decimals to which the weights of linear models and networks are rounded before the search; None: as they are.
        What is proven is then proven of the rounded model. Points that the model itself rejects are repaired, and the
        answer is not called optimal.
    margin
        By how much the log odds (of other models the raw output) of a rounded model have to exceed the threshold; above
        a solver's tolerance. Ten times that is the first step by which the threshold rises where the model rejects a
        point. A model whose weights are as they are has no margin: the search includes all that its own rounding may
        accept, and the model is asked.
    change_seconds
        Of the time limit, what the second stage may take at most; 0: each factual goes to a near point, and nothing is
        searched for.

    References
    ----------
    .. [1] Lodi, A., and J. Ramírez-Ayerbe (2024). One-for-many counterfactual explanations by column generation.
       arXiv:2402.09473.
    """

    t_max: int = 5
    threshold: float = 0.5
    solver: str = "cells"
    round_weights: int | None = None
    margin: float = 1e-4
    change_seconds: float = 5.0

    def __post_init__(self) -> None:
        check_counts(self, 1, "t_max")
        check_choices(self, {"solver": SOLVERS})
        if not 0.5 <= self.threshold < 1:
            raise ValueError(f"threshold is {self.threshold}; it must be in [0.5, 1).")
        if self.round_weights is not None and self.round_weights < 0:
            raise ValueError(f"round_weights is {self.round_weights}; it must be >= 0, or null for no rounding.")
        if self.change_seconds < 0:
            raise ValueError(f"change_seconds is {self.change_seconds}; it must be >= 0, and 0 leaves the search out.")
        if self.margin < MARGIN:
            raise ValueError(f"margin is {self.margin}; it must be at least {MARGIN}, above the solver's tolerance.")

    @property
    def deterministic(self) -> bool:
        """Whether no answer depends on the seed: for groups, the search over cells improves covers at random."""
        return self.solver != "cells"

    def refuses(self, problem: Problem) -> str | None:
        if problem.classifier.opaque:
            return problem.classifier.opaque
        if why := refusal(problem.space.relations, "column_generation"):
            return why
        numbers = [feature.name for feature in problem.space.features if feature.kind not in DISCRETE]
        if numbers:
            shown = ", ".join(numbers[:3]) + (", ..." if len(numbers) > 3 else "")
            return (
                f"all features have to be discrete, and {shown} {'are' if len(numbers) > 1 else 'is'} not; "
                f"set dataset.discretise=quantile, median or levels."
            )
        wide = [feature.name for feature in problem.space.features if len(feature.categories) > kernels.WORD]
        if wide:
            return f"{wide[0]} has more than {kernels.WORD} categories; merge some of them."
        try:
            encode_model(problem, self.threshold, self.margin, self.round_weights)
        except UnsupportedError as fault:
            return str(fault)
        return None

    def objective(self, problem: Problem) -> Objective:
        """For one factual the number of changed features; the limit always.

        A threshold beside that of the target, and rounded weights, stand for another validity: these limit the points.
        """
        domain: dict[str, Any] = {}
        if isinstance(problem.target, Label) and self.threshold != 0.5:
            domain["threshold"] = self.threshold
        if rounds(problem.classifier.estimator, self.round_weights):
            domain |= {"round_weights": self.round_weights, "margin": self.margin}
        terms = () if domain else (Term("l0"),)
        return Objective(terms, limits=(Limit(Term("l0"), self.t_max),), domain=domain)

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)


class _Explainer:
    def __init__(self, method: ColumnGeneration, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.coded = encode_model(problem, method.threshold, method.margin, method.round_weights)
        pair = Group.of(problem, self.coded, problem.train.iloc[:2], method.t_max)
        search.warm(pair)
        change.warm(pair)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """Points in order of the number of changes, then of the score."""
        group = Group.of(self.problem, self.coded, factual, self.method.t_max)
        claims = bool(self.method.objective(self.problem).terms)
        answers: list[Answer] = []
        complete = self.coded.exact
        for changes in range(1, group.most + 1):
            if len(answers) >= n or deadline.passed:
                complete &= len(answers) >= n
                break
            rows, settled = self.points(group, changes, n - len(answers), deadline)
            for row in rows:
                proven = claims and complete and not answers
                answers.append(
                    Answer(
                        Status.OPTIMAL if proven else Status.FOUND,
                        row,
                        Reason.PROOF if proven else Reason.FINISHED,
                        objective=float(changes) if claims else None,
                        bound=float(changes) if proven else None,
                    )
                )
            complete &= settled
        if complete and (claims or answers):
            plain = isinstance(self.problem.target, Label) and self.method.threshold == 0.5
            wanted = "is classified as wanted" if plain else "has the wanted probability"
            detail = f"no other point with at most {self.method.t_max} changes {wanted}"
            filler = Answer(Status.INFEASIBLE, reason=Reason.PROOF, detail=detail)
        else:
            detail = f"no {'other ' if answers else ''}point with at most {self.method.t_max} changes was found"
            filler = Answer(
                Status.GAVE_UP, reason=Reason.TIME_LIMIT if deadline.passed else Reason.FINISHED, detail=detail
            )
        return Explanation(tuple(answers)).padded(n, filler)

    def explain_group(self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline) -> GroupExplanation:
        """The fewest points for the factuals, decoded rows whose index are their ids."""
        if factuals.empty:
            return GroupExplanation((), bound=0.0, status=Status.OPTIMAL, total_change=0, total_change_bound=0.0)
        inner = deadline.sooner()
        seed = int(rng.integers(2**31))
        found = first = self._solved(factuals, self.coded, seed, inner)
        raised = (self.method.margin * 10**repair for repair in range(1, REPAIRS + 1))
        for least in (self.coded.sure, *(self.coded.sure + more for more in raised)):
            if not found.rejected or inner.passed:
                break
            if least > self.coded.threshold:
                found = self._solved(factuals, self.coded.raised(least), seed, inner)
        return found.explanation if found is first else self._repaired(factuals, first, found)

    def _repaired(self, factuals: pd.DataFrame, first: _Solved, found: _Solved) -> GroupExplanation:
        """An answer by a raised threshold, with the bounds of the search that missed no point of the model."""
        answer, points = found.explanation, len(found.explanation.points)
        left = {i for i in factuals.index if i not in answer.assignment}
        proven = tuple(i for i in first.explanation.uncoverable if i in left)
        undecided = tuple(i for i in factuals.index if i in left.difference(proven))
        exact = self.coded.exact and not undecided
        optimal = exact and 0 < points <= first.bound
        return replace(
            answer,
            bound=min(first.bound, points),
            total_change_bound=first.change_bound if exact and found.most == first.most else None,
            status=Status.OPTIMAL if optimal else Status.FOUND if points else Status.GAVE_UP,
            uncoverable=proven,
            undecided=undecided,
        )

    def points(self, group: Group, changes: int, count: int, deadline: Deadline) -> tuple[list[dict[str, Any]], bool]:
        """At most ``count`` decoded points with so many changes that serve a group's first profile, the highest first.

        Also whether the model accepts no further one, unless there are as many as asked for.
        """
        room = max(CHOICE, count)
        while True:
            points, settled = group.listed(changes, room, LIMIT, deadline)
            full = len(points) == room
            points = points[np.argsort(-group.coded.scores(points), kind="stable")]
            rows = self.valid(points)[:count]
            if len(rows) == count or not settled or not full:
                return rows, settled
            # Where nothing is proven, no list is worth more.
            if room >= ROOM or deadline.passed or not group.coded.exact:
                return rows, False
            room *= MORE  # the model rejects points on its threshold, which may have filled the list

    def valid(self, points: np.ndarray) -> list[dict[str, Any]]:
        """The points, of shape (count, features), that the fitted model accepts, as decoded rows."""
        rows = [self.decoded(point) for point in points]
        return [row for row, accepted in zip(rows, self.accepted(rows), strict=True) if accepted]

    def decoded(self, point: np.ndarray) -> dict[str, Any]:
        features = self.problem.space.features
        return {feature.name: feature.categories[code] for feature, code in zip(features, point, strict=True)}

    def accepted(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Whether the fitted model predicts the target, a class with the required probability, bool, shape (rows,)."""
        if not rows:
            return np.zeros(0, dtype=bool)
        frame, target = self.problem.space.frame(rows), self.problem.target
        accepted = self.problem.valid(frame)
        if self.method.threshold != 0.5 and isinstance(target, Label):
            accepted &= self.problem.classifier.probability(frame, target.value) >= self.method.threshold
        return accepted

    def _coverable(self, group: Group, deadline: Deadline) -> np.ndarray:
        """As ``Group.coverable``, by the fitted model where the search met a point too near to its threshold."""
        settled, points = group.reached(deadline)
        if not group.coded.exact:
            return settled
        places = np.flatnonzero(settled == 1)
        close = places[group.coded.scores(points[places]) < group.coded.sure]
        for place in close[~self.accepted([self.decoded(point) for point in points[close]])]:
            alone, complete = group.part(np.array([place])), True
            for changes in range(group.most + 1):
                rows, known = ([], False) if deadline.passed else self.points(alone, changes, 1, deadline)
                complete &= known
                if rows:
                    break
            else:
                settled[place] = 0 if complete else -1
        return settled

    def _solved(self, factuals: pd.DataFrame, coded: CodedModel, seed: int, deadline: Deadline) -> _Solved:
        everyone = Group.of(self.problem, coded, factuals, self.method.t_max)
        settled = self._coverable(everyone, deadline)
        settled = settled if coded.exact else np.where(settled == 0, -1, settled)  # of rounded weights that is no proof
        uncoverable = tuple(i for place in np.flatnonzero(settled == 0) for i in everyone.members[place])
        undecided = [i for place in np.flatnonzero(settled < 0) for i in everyone.members[place]]
        group = everyone.part(np.flatnonzero(settled == 1))
        if not group.size:
            status = Status.GAVE_UP if undecided else Status.INFEASIBLE
            none = GroupExplanation(
                (), bound=0, status=status, total_change=0, total_change_bound=0.0, uncoverable=uncoverable,
                undecided=tuple(undecided),
            )  # fmt: skip
            return _Solved(none, rejected=False)
        found = SOLVERS[self.method.solver](group, seed, deadline)
        spare = min(self.method.change_seconds, deadline.left)
        least = change.least_change(group, found.groups, Deadline.after(spare))
        answers: list[Answer] = []
        assignment: dict[Any, int] = {}
        changed, total, rejected = [], 0, False
        for column in least.columns:
            ids = [i for profile in column.members for i in group.members[profile]]
            row = self.decoded(column.point)
            if not self.accepted([row])[0]:
                rejected = True
                undecided += ids
                continue
            assignment.update(dict.fromkeys(ids, len(answers)))
            answers.append(Answer(Status.FOUND, row))
            total += column.change
            differs = (group.codes[column.members] != column.point).any(axis=0)
            changed.append(tuple(compress(self.problem.space.names, differs)))
        proven = len(answers) <= found.bound and not undecided
        explanation = GroupExplanation(
            tuple(answers),
            {i: assignment[i] for i in factuals.index if i in assignment},
            bound=min(found.bound, len(answers)),  # which the points are held to that are left
            changed=tuple(changed),
            status=Status.OPTIMAL if proven else Status.FOUND if answers else Status.GAVE_UP,
            total_change=total,
            total_change_bound=None if rejected or (undecided and not coded.exact) else least.bound,
            uncoverable=uncoverable,
            undecided=tuple(undecided),
            trace=(*found.trace, {"step": "least change", "change": least.change, "bound": least.bound}),
        )
        return _Solved(explanation, rejected, found.bound, least.most, float(least.bound))


@dataclass(frozen=True)
class _Solved:
    """An explanation, and whether the fitted model rejected a point of it, which is then left out.

    Bounds, as they were before: on the number of points, and on the total change by at most ``most`` points.
    """

    explanation: GroupExplanation
    rejected: bool
    bound: int = 0
    most: int = 0
    change_bound: float = 0.0
