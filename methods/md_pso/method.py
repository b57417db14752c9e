"""Counterfactuals by a mixed-discrete particle swarm: any model, many features, one prediction a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Actionability, Kind
from harness.core.target import Probability
from methods.md_pso.actions import Actions
from methods.md_pso.information_value import information_value
from methods.md_pso.oracle import Oracle
from methods.md_pso.parameters import Parameters
from methods.md_pso.pull_back import pull_back
from methods.md_pso.swarm import Swarms, distinct


@dataclass(frozen=True)
class MdPso(Parameters):
    r"""Particles that fly through a box around the factual, in the features that tell the classes apart [1]_.

    Algorithm 1: the ``n_active`` features of highest information value (16) may change; each number of value z, scaled
    to [0, 1], within :math:`z \pm \max(\epsilon z, \epsilon_0)`; a swarm moves by

    .. math::
        V \leftarrow c_0 V + c_1 r_1 (P - X) + c_2 r_2 (G - X) + c_3 r_3 (X - \bar X), \; X \leftarrow X + V  & (1, 2)

    with P a particle's own best position, G the swarm's, and the last term for continuous features alone [2]_; the
    counterfactuals are selected from the valid points it met. Every other feature moves in a hypercube and counts as
    the nearest vertex that actionability and bounds allow, so that no particle leaves the space, but for relations.

    The paper minimises :math:`l_1 + l_2 + l_3` (3): distance of the score from the wanted ones (4), mean Gower
    distance (5) and number of changes (7). Of probabilities the factual itself is that sum's minimum, as
    :math:`l_1 < 1` and one change costs 1. So by default points are compared by Deb's rule: a valid one is better than
    any invalid one; invalid ones by :math:`l_1` alone, valid ones by :math:`w_2 l_2 + w_3 l_3 / p` with p features.

    Departures from the paper that are options: what a swarm met is kept in an archive, since personal bests
    collapse onto few points where features are discrete; a factual with fewer valid points than wanted is tried
    again in a box twice as large; ``epsilon_abs``, ``clamp``, and ``pull_back``. Others that are none: information
    values have the logarithm that (16) lacks, integers and ordinals may always move by a step, and counterfactuals are
    selected from valid points alone.

    Parameters
    ----------
    n_active
        h, the most features that may change.
    epsilon, epsilon_abs
        :math:`\epsilon`, a share of the value, and :math:`\epsilon_0`, in scaled units, without which 0 cannot move. An
        integer or ordinal feature may always move by a step, a binary or categorical one to any category.
    inertia, cognitive, social, diversity
        :math:`c_0` to :math:`c_3`.
    draws
        ``unit``: every r is uniform on [0, 1]; ``paper``: on [0, c_1], [0, c_2] and between c_1 and c_2.
    cost
        ``deb``, or ``paper`` for the literal sum.
    proximity_weight, sparsity_weight
        :math:`w_2` and :math:`w_3`, for ``deb``.
    clamp
        Most velocity of a continuous feature, as a share of its box; of any other, the whole box.
    archive
        Best distinct valid points kept to select from; 0, as in the paper: the particles' last positions.
    doublings
        How often a box may double.
    selection
        ``kmeans``: one point of each cluster; ``top``: the best points; ``personal``: the best personal bests.
    pick
        Of a cluster: its ``best`` point or, as in the paper, a ``random`` one.
    pull_back
        Undo changes of 120 of the points met, the smallest first and in seven random orders, as long as they stay
        valid, and halve the other changes of the best 30; the results are candidates beside what they came from.

    References
    ----------
    .. [1] Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate
       actionable counterfactuals for high dimensional data. arXiv:2311.12825.
    .. [2] Chowdhury, S., W. Tong, A. Messac, and J. Zhang (2013). A mixed-discrete particle swarm optimization
       algorithm with explicit diversity-preservation. *Structural and Multidisciplinary Optimization*.
    """

    def refuses(self, problem: Problem) -> str | None:
        if isinstance(problem.target, Probability) and not problem.classifier.probabilistic:
            return "this model gives no probabilities, and the target is one; set 'desired' to a class."
        return None

    def objective(self, problem: Problem) -> Objective:
        """The cost by which valid points are compared."""
        if self.cost == "paper":
            return Objective((Term("gower"), Term("l0")))
        count = max(len(problem.space.names), 1)
        return Objective((Term("gower", self.proximity_weight), Term("l0", self.sparsity_weight / count)))

    def fit(self, problem: Problem) -> MdPsoExplainer:
        return MdPsoExplainer(self, problem)


class MdPsoExplainer:
    """MD-PSO fitted to one problem. ``active`` are the features that may change, by decreasing information value."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.parameters, self.problem = parameters, problem
        free = [f for f in problem.space.features if f.actionability is not Actionability.IMMUTABLE]
        wanted = problem.labelled(problem.labels)
        wanted = wanted if wanted.any() and not wanted.all() else problem.valid(problem.train)
        information = [information_value(feature, problem.train[feature.name], wanted) for feature in free]
        order = np.argsort(-np.array(information), kind="stable")[: parameters.n_active]
        self.active = tuple(free[i].name for i in order)
        self.oracle = Oracle(problem, self.active)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        return self.explain_many(factual, n, [rng], deadline)[0]

    def explain_many(
        self, factuals: pd.DataFrame, n: int, rngs: Sequence[np.random.Generator], deadline: Deadline
    ) -> tuple[Explanation, ...]:
        """``n`` answers for each of several factuals, whose swarms share every call of the model.

        Parameters
        ----------
        factuals
            Decoded rows, all with the fitted problem's target.
        rngs
            One generator a factual: it is answered as ``explain`` with that generator would.
        """
        pools = [_Pool(len(self.oracle.places)) for _ in range(len(factuals))]
        lacking = list(range(len(factuals) if self.active else 0))
        most, soon = max(self.parameters.archive, n) if self.parameters.archive else None, deadline.sooner()
        for doubled in range(self.parameters.doublings + 1):
            if not lacking or soon.passed:
                break
            actions = Actions(self.oracle, factuals.iloc[lacking], self.parameters.box(doubled))
            swarms = Swarms(self.parameters, actions, [rngs[s] for s in lacking])
            while swarms.age < self.parameters.iterations and not soon.passed:
                swarms.step()
            pulling = self.parameters.pull_back and not soon.passed
            points, owner = swarms.candidates(None if pulling else most)
            if pulling:
                pulled, whose = pull_back(swarms, points, owner, soon)
                points, owner = np.concatenate([points, pulled]), np.concatenate([owner, whose])
                if soon.passed:
                    points, owner = swarms.best_of(points, owner, most)
            valid, merit = swarms.verdict(points, owner)
            for place, s in enumerate(lacking):
                mine = valid & (owner == place)
                pools[s].add(points[mine], merit[mine], most)
            lacking = [s for s in lacking if len(pools[s].cost) < n]
        return self._explanations(factuals, n, rngs, pools, Reason.TIME_LIMIT if soon.passed else Reason.FINISHED)

    def _explanations(
        self,
        factuals: pd.DataFrame,
        n: int,
        rngs: Sequence[np.random.Generator],
        pools: Sequence[_Pool],
        late: Reason,
    ) -> tuple[Explanation, ...]:
        """Counterfactuals selected from each pool; decoded rows are predicted once more, and invalid ones dropped."""
        origins = factuals[list(self.problem.space.names)].astype(object).to_dict("records")
        starts = self.problem.space.encode(factuals)[:, self.oracle.places]
        chosen = [self._selected(pool, n, rng) for pool, rng in zip(pools, rngs, strict=True)]
        rows = [self._rows(origins[s], starts[s], pool.points[chosen[s]]) for s, pool in enumerate(pools)]
        valid = self._valid([row for several in rows for row in several])
        explanations = []
        for s, pool in enumerate(pools):
            mine, valid = valid[: len(rows[s])], valid[len(rows[s]) :]
            if not mine.all():  # decoding rounds, and a few points lie that close to the decision boundary
                pool.keep(self._valid(self._rows(origins[s], starts[s], pool.points)))
                chosen[s] = self._selected(pool, n, rngs[s])
                rows[s] = self._rows(origins[s], starts[s], pool.points[chosen[s]])
            costs = pool.cost[chosen[s]].tolist()
            answers = tuple(Answer(Status.FOUND, row, late, c) for row, c in zip(rows[s], costs, strict=True))
            count = len(pool.cost)
            why = f"the swarm met {count or 'no'} distinct valid point{'s' if count > 1 else ''}"
            if not self.active:
                why = "no feature may change"
            elif self.oracle.blind and not count:
                why += "; this model's scores are 0 or 1 alone, which show it no way"
            explanations.append(Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=late, detail=why)))
        return tuple(explanations)

    def _rows(self, origin: dict[str, Any], start: np.ndarray, points: np.ndarray) -> list[dict[str, Any]]:
        """Points as decoded values: of features that did not move, the factual's own."""
        rows, values, place = [dict(origin) for _ in points], self.oracle.values(points), 0
        for feature, columns in zip(self.oracle.features, self.oracle.slices, strict=True):
            moved = np.flatnonzero((points[:, columns] != start[columns]).any(axis=1))
            if feature.numeric:
                kind = int if feature.kind is Kind.INTEGER else float
                for row in moved:
                    rows[row][feature.name] = kind(values[row, place])
                place += 1
            else:
                codes = self.oracle.codes(points, columns)
                for row in moved:
                    rows[row][feature.name] = feature.categories[codes[row]]
        return rows

    def _valid(self, rows: Sequence[dict[str, Any]]) -> np.ndarray:
        return self.problem.valid(self.problem.space.frame(rows)) if rows else np.zeros(0, dtype=bool)

    def _selected(self, pool: _Pool, n: int, rng: np.random.Generator) -> list[int]:
        """Places of the counterfactuals in a pool, the best first."""
        if len(pool.cost) <= n or self.parameters.selection != "kmeans":
            return list(range(min(n, len(pool.cost))))
        clusters = KMeans(n, n_init=1, random_state=int(rng.integers(2**31))).fit_predict(pool.points)
        members = [np.flatnonzero(clusters == cluster) for cluster in range(n)]
        random = self.parameters.pick == "random"
        chosen = [int(rng.choice(found)) if random else int(found[0]) for found in members if len(found)]
        rest = [place for place in range(len(pool.cost)) if place not in chosen]
        return sorted(chosen + rest[: n - len(chosen)])  # k-means may leave a cluster empty


class _Pool:
    """Distinct valid points of one factual, in the active features' columns, and their costs; the best first."""

    def __init__(self, width: int) -> None:
        self.points, self.cost = np.empty((0, width)), np.empty(0)

    def add(self, points: np.ndarray, cost: np.ndarray, most: int | None) -> None:
        points, cost = np.concatenate([self.points, points]), np.concatenate([self.cost, cost])
        best = distinct(points, np.argsort(cost, kind="stable"), most)
        self.points, self.cost = points[best], cost[best]

    def keep(self, which: np.ndarray) -> None:
        self.points, self.cost = self.points[which], self.cost[which]
