"""The mixed-integer program of moves between bins, (3), (7) and (9) to (13): the search's problem, for a solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.special import expit, logit

from harness.core.method import Deadline
from harness.core.tolerances import OPTIMALITY_GAP
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.scorecard import kernels
from methods.scorecard.moves import Moves
from methods.scorecard.related import RelatedValues
from methods.scorecard.search import Form, Rules, Sets

STEEP = math.log(2 + math.sqrt(3))  # where the logistic function bends most, to both sides of 0


class ScorecardProgram:
    """The cheapest counterfactuals of one factual, by a solver; parameters as those of ``search.Search``.

    Parameters
    ----------
    error
        Greatest error of the piecewise linear |P - y'|; claimed bounds allow for it.
    related
        Makes the values of a counterfactual's related features in a program; None without relations between features.
    """

    def __init__(
        self, moves: Moves, rules: Rules, gain: np.ndarray, near: np.ndarray, factor: np.ndarray, deviation: np.ndarray,
        error: float, related: Callable[[Program], RelatedValues] | None = None,
    ) -> None:  # fmt: skip
        self.moves, self.rules, self.error, self.related = moves, rules, error, related
        self.gain, self.near, self.factor, self.deviation = gain, near, factor, deviation
        self.options = range(len(gain))
        self.of = [range(moves.start[f], moves.start[f + 1]) for f in range(len(deviation))]

    def best(self, n: int, forms: Sequence[Form], caps: np.ndarray, deadline: Deadline, first: bool = False) -> Sets:
        """As ``Search.best``; the solver does not stop at a ``first`` set."""
        program = Program()
        related = [] if self.related is None else [self.related(program) for _ in range(n)]
        slides = [values.slides for values in related] or [[]] * n
        copies = [self._copy(program, forms, own) for own in slides]
        pairs = [self._pair(program, one, other, forms) for one, other in combinations(copies, 2)]
        for one, other in pairwise(copies):  # any order of the set is as good
            program.add(one["parts"][0] <= other["parts"][0])
        sums = [self._sum(form, copies, pairs) for form in forms]
        for form, value, cap in zip(forms[1:], sums[1:], caps[1:], strict=True):
            if math.isfinite(cap):
                program.add(value <= cap + self._error(form, n))  # or what keeps to it by its own outcome may not here
        compiled = program.compile()
        objective = compiled.linear(sums[0])
        columns = np.array([[compiled.column(z) for z in copy["z"]] for copy in copies], dtype=int).reshape(n, -1)
        choosing = np.array([*columns.ravel(), *(compiled.column(slide) for own in slides for slide in own)], dtype=int)
        for values, own in zip(related, columns, strict=False):
            values.pose(compiled, own.tolist())
        exact = -math.inf
        while True:
            found = compiled.solve(objective, deadline.left)
            if any(not values.exact for values in related):
                found = replace(found, bound=exact, infeasible=False)  # points that keep them are cut off: no proof
            exact = found.bound
            if found.x is None:
                return Sets((), np.empty((0, 4)), math.inf, math.inf if found.infeasible else exact, found.infeasible)
            taken = found.x[columns] > 0.5
            choices = [np.flatnonzero(row) for row in taken]
            wrong = ~self.rules.accepted(self.moves.score + taken @ self.gain, choices)
            if not wrong.any():
                rows = self._values(compiled, choosing, found.x, related, deadline)
                if all(row is not None for row in rows):
                    return self._set(choices, forms[0], exact, [row or {} for row in rows], related)
                if not [values.related.tighten() for values in related if values.related.exact]:
                    return Sets((), np.empty((0, 4)), math.inf, exact, False)
            for row in taken[wrong]:  # near an end only, and not as the model has it
                for copy in columns:
                    flips = [(int(c), -1.0 if w else 1.0) for c, w in zip(copy, row, strict=True)]
                    compiled.add_row(objective.of(flips), low=1.0 - int(row.sum()))

    def _set(
        self, choices: list[np.ndarray], form: Form, exact: float, rows: list[dict[str, Any]],
        related: Sequence[RelatedValues],
    ) -> Sets:  # fmt: skip
        """What the program found; ``exact``: its bound, which the error of outcomes lowers; proven but for that."""
        parts = np.array([self._parts(picks) for picks in choices])
        names = related[0].finder.card.names if related else ()
        slid = [
            values.slid(row, {names[f] for f in self.moves.owner[picks].tolist()})
            for values, row, picks in zip(related, rows, choices, strict=False)
        ]
        cost = self._cost(form, choices, parts) + form.slides * sum(slid)
        slack = self._error(form, len(choices))
        proven = cost - exact <= OPTIMALITY_GAP * max(1.0, abs(cost)) + slack
        return Sets(tuple(choices), parts, cost, min(exact - slack, cost), proven, tuple(rows), tuple(slid))

    def _error(self, form: Form, n: int) -> float:
        """By how much the program's cost of n counterfactuals may be off: that of their outcomes."""
        return n * float(form.weights[kernels.OUTCOME]) * self.error * (self.rules.link == kernels.LOGISTIC)

    def _values(
        self, compiled: Compiled, choosing: np.ndarray, x: np.ndarray, related: Sequence[RelatedValues],
        deadline: Deadline,
    ) -> list[dict[str, Any] | None]:  # fmt: skip
        """The related values of each counterfactual, nearest to the factual's for these moves; None: one is broken.

        Parameters
        ----------
        choosing
            The columns that say where features are moved.
        """
        if not related:
            return []
        low, high = compiled.low.copy(), compiled.high.copy()
        compiled.low[choosing] = compiled.high[choosing] = np.rint(x[choosing])
        near = compiled.solve(Linear.sum([values.gaps() for values in related]), deadline.left)
        compiled.low[:], compiled.high[:] = low, high
        return [None if near.x is None else values.keeps(near.x) for values in related]

    def _copy(self, program: Program, forms: Sequence[Form], slides: Sequence[Any]) -> dict[str, Any]:
        """One counterfactual: its options, changed features and parts, and the ``slides`` of ``RelatedValues``."""
        rules, z = self.rules, [program.binary() for _ in self.options]
        changed = [sum(z[o] for o in own) for own in self.of]
        for own, t in zip(self.of, changed, strict=True):
            if len(own) > 1:
                program.add(t <= 1)
        program.add(sum(z) + sum(slides) <= rules.most)
        program.add(sum(z) >= 1)
        score = self.moves.score + sum(self.gain[o] * z[o] for o in self.options if self.gain[o])
        if math.isfinite(rules.low):
            program.add(score >= rules.low)
        if math.isfinite(rules.high):
            program.add(score <= rules.high)
        parts: list[Any] = [sum(self.near[o] * z[o] for o in self.options), 0.0, 0.0, sum(z)]
        if any(form.weights[kernels.CLOSENESS] for form in forms):
            parts[1] = self._closeness(program, z)
        if any(form.weights[kernels.OUTCOME] for form in forms):
            off = program.variable(0.0, None)
            self._outcome(program, score, off)
            parts[2] = off
        return {"z": z, "changed": changed, "parts": parts, "slides": sum(slides)}

    def _closeness(self, program: Program, z: list[Any]) -> Any:
        total: Any = 0.0
        for i in range(len(self.deviation)):
            size = program.variable(0.0, None)
            away = self.deviation[i] + sum(
                self.factor[self.moves.owner[o], i] * self.moves.delta[o] * z[o]
                for o in self.options
                if self.moves.owner[o] >= i
            )
            program.add(size >= away)
            program.add(size >= -away)
            total += size
        return total

    def _outcome(self, program: Program, score: Any, off: Any) -> None:
        """``off`` >= |outcome - target|; of a probability, of its chords between ``knots``."""
        target = self.rules.target
        if self.rules.link == kernels.LINEAR:
            program.add(off >= score - target)
            program.add(off >= target - score)
            return
        low = sum(min(0.0, *self.gain[list(own)]) for own in self.of if own)
        high = sum(max(0.0, *self.gain[list(own)]) for own in self.of if own)
        points = knots(
            max(self.moves.score + low, self.rules.low),
            min(self.moves.score + high, self.rules.high),
            target,
            self.error,
        )
        heights = np.abs(expit(points) - target)
        piece = [program.binary() for _ in points[1:]]
        share = [program.variable(0.0, 1.0) for _ in points]
        program.add(sum(piece) == 1)
        program.add(sum(share) == 1)
        for k in range(len(points)):
            program.add(share[k] <= sum(piece[max(k - 1, 0) : k + 1]))
        program.add(score == sum(float(p) * s for p, s in zip(points, share, strict=True)))
        program.add(off >= sum(float(h) * s for h, s in zip(heights, share, strict=True)))

    def _pair(self, program: Program, one: dict[str, Any], other: dict[str, Any], forms: Sequence[Form]) -> list[Any]:
        """Lower bounds on the features and options that two counterfactuals share; adds how they have to differ."""
        rules = self.rules
        if rules.disjoint_options:
            for z, w in zip(one["z"], other["z"], strict=True):
                program.add(z + w <= 1)  # (12)
        if rules.distinct_features:
            self._differ(program, one["changed"], other["changed"])  # (10), (11)
        elif not rules.disjoint_options:
            self._differ(program, one["z"], other["z"])
        shared: list[Any] = [0.0, 0.0]
        for kind, name in enumerate(("changed", "z")):
            if any((form.features, form.options)[kind] for form in forms):
                for a, b in zip(one[name], other[name], strict=True):
                    both = program.variable(0.0, 1.0)
                    program.add(both >= a + b - 1)
                    shared[kind] += both
        return shared

    def _differ(self, program: Program, one: list[Any], other: list[Any]) -> None:
        total: Any = 0.0
        for a, b in zip(one, other, strict=True):
            differs = program.variable(0.0, 1.0)
            program.add(differs <= a + b)
            program.add(differs <= 2 - a - b)
            total += differs
        program.add(total >= 1)

    def _sum(self, form: Form, copies: list[dict[str, Any]], pairs: list[list[Any]]) -> Any:
        total: Any = 0.0
        for copy in copies:
            total += sum(float(weight) * part for weight, part in zip(form.weights, copy["parts"], strict=True))
            total += form.slides * copy["slides"]
        return total + sum(form.features * features + form.options * options for features, options in pairs)

    def _parts(self, picks: np.ndarray) -> list[float]:
        """The exact parts of a choice."""
        owners = self.moves.owner[picks]
        away = self.deviation + self.factor[owners].T @ self.moves.delta[picks]
        score = float(self.moves.score + self.gain[picks].sum())
        off = kernels.miss(score, score, self.rules.link, self.rules.target)
        return [float(self.near[picks].sum()), float(np.abs(away).sum()), off, float(len(picks))]

    def _cost(self, form: Form, choices: Sequence[np.ndarray], parts: np.ndarray) -> float:
        cost = float((parts @ form.weights).sum())
        for one, other in combinations(choices, 2):
            cost += form.features * len(np.intersect1d(self.moves.owner[one], self.moves.owner[other]))
            cost += form.options * len(np.intersect1d(one, other))
        return cost


def knots(low: float, high: float, target: float, error: float) -> np.ndarray:
    r"""Points from low to high, between which chords of :math:`|P(s) - y'|` are off by at most ``error``.

    A chord over a width h is off by at most :math:`h^2 \max|P''| / 8`; the kink at :math:`P = y'` is a point.

    >>> points = knots(-3.0, 3.0, 0.5, 1e-3)
    >>> s = np.linspace(-3.0, 3.0, 1001)
    >>> off = np.interp(s, points, np.abs(expit(points) - 0.5)) - np.abs(expit(s) - 0.5)
    >>> bool(0 in points and np.abs(off).max() <= 1e-3)
    True
    """
    high = max(low, high)
    kink = float(logit(target)) if 0.0 < target < 1.0 else low
    ends = [low, *([kink] if low < kink < high else []), high]
    points = [low]
    for stop in ends[1:]:
        pending = [stop]
        while pending:
            here = points[-1]
            width, steep = pending[-1] - here, [here, pending[-1]]
            steep += [s for s in (-STEEP, STEEP) if here < s < pending[-1]]
            bend = max(abs(_curvature(s)) for s in steep)
            if width**2 * bend / 8.0 <= error:
                points.append(pending.pop())
            else:
                pending.append(here + width / 2.0)
    return np.array(points)


def _curvature(score: float) -> float:
    share = float(expit(score))
    return share * (1.0 - share) * (1.0 - 2.0 * share)
