"""Branch and bound over moves whose costs and gains are linear in what they change, one form of cost at a time."""

from __future__ import annotations

import math

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COST_TIE, NO_DIVISOR, RESIDUAL_BLUR
from methods.scorecard import branch_kernels as kernels
from methods.scorecard.kernels import CLOSENESS, PROXIMITY
from methods.scorecard.records import Agenda, Kept, Ladders, Limits, MoveArrays, Tableau

BUDGET = 10_000_000  # numbers of tables between looks at the clock
STEEP = 100.0  # a unit outside the score's ends costs so many times what the score can be had for
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Branching:
    """The moves of a factual, ready for searches by forms without the distance of the outcome.

    ``linear``: whether proximity and gains are linear in what a move of a feature changes; else there is no search.
    """

    def __init__(self, moves: MoveArrays, limits: Limits) -> None:
        size = len(moves.deviation)
        self.first, self.linear = np.zeros(size + 1, dtype=np.int64), True
        dear, steep, level, option = np.zeros(size), np.zeros(size), list[float](), list[int]()
        home, feature, sign = np.zeros(size, dtype=np.int64), list[int](), list[float]()
        for f in range(size):
            own = np.arange(moves.start[f], moves.start[f + 1])
            own = own[np.argsort(moves.delta[own], kind="stable")]
            change = moves.delta[own]
            if len(own):
                longest = own[np.abs(change).argmax()]
                dear[f] = moves.near[longest] / abs(moves.delta[longest])
                steep[f] = moves.gain[longest] / moves.delta[longest]
            off = np.abs(moves.near[own] - dear[f] * np.abs(change)), np.abs(moves.gain[own] - steep[f] * change)
            self.linear &= max(part.max(initial=0.0) for part in off) <= COST_TIE
            below = int((change < 0).sum())
            home[f] = len(level) + below
            level += [*change[:below], 0.0, *change[below:]]
            option += [*own[:below], -1, *own[below:]]
            self.first[f + 1] = len(level)
            for way, many in ((1.0, len(own) - below), (-1.0, below)):
                if many:
                    feature.append(f)
                    sign.append(way)
        self.limits, self.option = limits, np.array(option, dtype=np.int64)
        self.feature, self.sign = np.array(feature, dtype=np.int64), np.array(sign)
        self.ladders = Ladders(np.array(level), home, dear, steep, moves.factor, moves.deviation, moves.score)

    def cheapest(self, weights: np.ndarray, cap: float, kept: Kept, deadline: Deadline) -> tuple[bool, float, int]:
        """Whether the search ended, a bound on every choice that is not kept, and how many are; fills ``kept``."""
        tableau, agenda = self._tableau(weights), self._agenda()
        posed = tuple(self.ladders), tuple(self.limits), (weights, cap)
        ended = False
        while not ended:  # the first node is looked at in any case, for its bound
            ended = kernels.explore(*posed, tuple(tableau), tuple(agenda), tuple(kept), BUDGET)
            if deadline.passed:
                break
        left, many = agenda.state[:2]
        kept.picks[:many] = np.where(kept.picks[:many] >= 0, self.option[kept.picks[:many]], -1)
        return ended, float(agenda.bound[:left].min(initial=math.inf)), int(many)

    def compile(self) -> None:
        """Have numba compile the kernels."""
        kept = Kept(np.empty(1), np.empty((1, self.limits.most), dtype=np.int64), np.empty((1, 4)))
        self.cheapest(np.array([1.0, 1.0, 0.0, 0.0]), math.inf, kept, Deadline.after(0.0))

    def _agenda(self) -> Agenda:
        """The node of all rungs."""
        size, rungs = len(self.first) - 1, len(self.option)
        room = rungs - size + 2  # each split settles a rung at least
        low, high = np.empty((room, size), dtype=np.int64), np.empty((room, size), dtype=np.int64)
        low[0], high[0] = self.first[:-1], self.first[1:] - 1
        return Agenda(np.array([1, 0, -1]), low, high, np.full(room, -math.inf), np.zeros(room))

    def _tableau(self, weights: np.ndarray) -> Tableau:
        """Room for the programs of nodes, and what does not differ among them."""
        ladders, limits, columns, size = self.ladders, self.limits, len(self.feature), len(self.first) - 1
        worth = weights[PROXIMITY] * ladders.dear + weights[CLOSENESS] * np.abs(ladders.factor).sum(axis=1)
        fastest = max(float(np.abs(ladders.steep).max()), NO_DIVISOR)
        steep = STEEP * max(float(worth.max()), 1.0) / fastest
        below, slope = np.zeros(columns + size + 1), np.zeros((columns + size + 1, 3))
        below[columns:-1] = RESIDUAL_BLUR * (np.arange(size) * GOLDEN % 1.0)
        above = below.copy()
        below[-1], above[-1] = limits.low, limits.high
        slope[columns:-1, 0], slope[columns:-1, 2] = -weights[CLOSENESS], weights[CLOSENESS]
        slope[-1, 0], slope[-1, 2] = -steep * math.isfinite(limits.low), steep * math.isfinite(limits.high)
        wall = float(worth.max()) + 2.0 * steep * fastest
        numbers = np.zeros(size + 1, dtype=np.int64), np.zeros(columns, dtype=np.int64)
        x = np.zeros(columns + size + 1)
        table = np.zeros((columns, size + 1))
        return Tableau(table, *numbers, x, below, above, slope, self.feature, self.sign, wall)
