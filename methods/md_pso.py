"""Counterfactuals by a mixed-discrete particle swarm: any model, many features, one prediction a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from harness.core.errors import choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind
from harness.core.target import Probability
from methods.md_pso_swarm import Actions, Oracle, Swarms, distinct

BINS = 10  # of a number, for its information value
OUTLYING = 1.5  # interquartile ranges beyond the quartiles
EMPTY = 0.5  # what an empty bin is taken to hold
UNDONE = 120  # candidates of which changes are undone, of all valid points met
SHUFFLED = 7  # random orders in which they are, beside the smallest first
HALVED = 30  # of them, the best whose other changes are halved
HALVINGS = 8  # of each change in a pull-back
CHOICES = {
    "selection": ("kmeans", "top", "personal"),
    "pick": ("best", "random"),
    "draws": ("unit", "paper"),
    "cost": ("deb", "paper"),
}


@dataclass(frozen=True)
class MdPso:
    r"""Particles that fly through a box around the factual, in the features that tell the classes apart [1]_.

    Algorithm 1: the ``n_active`` features of highest information value (16) may change; each number of value z, scaled
    to [0, 1], within :math:`z \pm \max(\epsilon z, \epsilon_0)`; a swarm moves by

    .. math::
        V \leftarrow c_0 V + c_1 r_1 (P - X) + c_2 r_2 (G - X) + c_3 r_3 (X - \bar X), \quad X \leftarrow X + V  & (1)

    with P a particle's own best position, G the swarm's, and the last term for continuous features alone [2]_; the
    counterfactuals are selected from what it met. Every other feature moves in a hypercube and counts as the nearest
    vertex that actionability and bounds allow, so that no particle ever leaves the space.

    The paper minimises :math:`l_1 + l_2 + l_3` (3): distance of the score from the wanted ones (4), mean Gower
    distance (5) and number of changes (7). The factual itself is that sum's minimum, as :math:`l_1 < 1` and one change
    costs 1. So by default points are compared by Deb's rule: a valid one is better than any invalid one; invalid ones
    by :math:`l_1` alone, valid ones by :math:`w_2 l_2 + w_3 l_3 / p` with p features.

    Two departures from the paper, each an option: what a swarm met is kept in an archive, since personal bests
    collapse onto few points where features are discrete; and a factual with fewer valid points than wanted is tried
    again in a box twice as large. ``pull_back`` is an extra that the paper does not have.

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

    n_active: int = 25
    epsilon: float = 0.6
    epsilon_abs: float = 0.1
    particles: int = 50
    iterations: int = 100
    inertia: float = 0.72
    cognitive: float = 1.49
    social: float = 1.49
    diversity: float = 0.1
    draws: str = "unit"
    cost: str = "deb"
    proximity_weight: float = 1.0
    sparsity_weight: float = 1.0
    clamp: float = 0.5
    archive: int = 60
    doublings: int = 5
    selection: str = "kmeans"
    pick: str = "best"
    pull_back: bool = False

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} is {value!r}; {choices(value, allowed)}.")
        for name in ("n_active", "particles", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        signed = ("epsilon", "epsilon_abs", "inertia", "cognitive", "social", "diversity", "archive", "doublings")
        for name in (*signed, "proximity_weight", "sparsity_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative.")
        if not 0 < self.clamp <= 1:
            raise ValueError(f"clamp is {self.clamp}; it must lie in (0, 1], a share of the box.")

    def refuses(self, problem: Problem) -> str | None:
        if isinstance(problem.target, Probability) and not problem.classifier.probabilistic:
            return "this model gives no probabilities, and the target is one; set 'desired' to a class."
        return None

    def objective(self, problem: Problem) -> Objective:
        """What valid points are compared by."""
        if self.cost == "paper":
            return Objective((Term("gower"), Term("l0")))
        count = max(len(problem.space.names), 1)
        return Objective((Term("gower", self.proximity_weight), Term("l0", self.sparsity_weight / count)))

    def fit(self, problem: Problem) -> MdPsoExplainer:
        return MdPsoExplainer(self, problem)


class MdPsoExplainer:
    """MD-PSO fitted to one problem. ``active`` are the features that may change, by decreasing information value."""

    def __init__(self, method: MdPso, problem: Problem) -> None:
        self.method, self.problem = method, problem
        free = [f for f in problem.space.features if f.actionability is not Actionability.IMMUTABLE]
        wanted = problem.labelled(problem.labels)
        worth = [information_value(feature, problem.train[feature.name], wanted) for feature in free]
        order = np.argsort(-np.array(worth), kind="stable")[: method.n_active]
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
        for doubled in range(self.method.doublings + 1):
            if not lacking or deadline.passed:
                break
            reach = (self.method.epsilon * 2.0**doubled, self.method.epsilon_abs * 2.0**doubled)
            swarms = Swarms(
                self.method, Actions(self.oracle, factuals.iloc[lacking], reach), [rngs[s] for s in lacking]
            )
            while swarms.age < self.method.iterations and not deadline.passed:
                swarms.step()
            points, owner = swarms.candidates()
            if self.method.pull_back:
                pulled, whose = pull_back(swarms, points, owner, deadline)
                points, owner = np.concatenate([points, pulled]), np.concatenate([owner, whose])
            held, merit = swarms.verdict(points, owner)
            for place, s in enumerate(lacking):
                mine = held & (owner == place)
                pools[s].add(points[mine], merit[mine], self.method.archive or None)
            lacking = [s for s in lacking if len(pools[s].cost) < n]
        return self._told(factuals, n, rngs, pools, Reason.TIME_LIMIT if deadline.passed else Reason.FINISHED)

    def _told(
        self,
        factuals: pd.DataFrame,
        n: int,
        rngs: Sequence[np.random.Generator],
        pools: Sequence[_Pool],
        late: Reason,
    ) -> tuple[Explanation, ...]:
        """A selection of each pool, after the model itself is asked once more, about decoded rows."""
        origins = factuals[list(self.problem.space.names)].astype(object).to_dict("records")
        chosen = [self._selected(pool, n, rng) for pool, rng in zip(pools, rngs, strict=True)]
        rows = [self._rows(origins[s], pool.points[chosen[s]]) for s, pool in enumerate(pools)]
        sound = self._valid([row for several in rows for row in several])
        told = []
        for s, pool in enumerate(pools):
            held, sound = sound[: len(rows[s])], sound[len(rows[s]) :]
            if not held.all():  # decoding rounds, and a few points lie that close to the model's border
                pool.keep(self._valid(self._rows(origins[s], pool.points)))
                chosen[s] = self._selected(pool, n, rngs[s])
                rows[s] = self._rows(origins[s], pool.points[chosen[s]])
            costs = pool.cost[chosen[s]].tolist()
            answers = tuple(Answer(Status.FOUND, row, objective=c) for row, c in zip(rows[s], costs, strict=True))
            count = len(pool.cost)
            why = f"the swarm met {count or 'no'} distinct valid point{'s' if count > 1 else ''}"
            told.append(Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=late, detail=why)))
        return tuple(told)

    def _rows(self, origin: dict[str, Any], points: np.ndarray) -> list[dict[str, Any]]:
        """Points as decoded values: of features that did not move, the factual's own."""
        rows, values = [dict(origin) for _ in points], self.oracle.values(points)
        home, place = self.oracle.encode(origin), 0
        for feature, columns in zip(self.oracle.features, self.oracle.slices, strict=True):
            moved = np.flatnonzero((points[:, columns] != home[columns]).any(axis=1))
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
        if len(pool.cost) <= n or self.method.selection != "kmeans":
            return list(range(min(n, len(pool.cost))))
        clusters = KMeans(n, n_init=1, random_state=int(rng.integers(2**31))).fit_predict(pool.points)
        members = [np.flatnonzero(clusters == cluster) for cluster in range(n)]
        random = self.method.pick == "random"
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


def _spread(places: np.ndarray) -> np.ndarray:
    """At most ``UNDONE`` of some places, the first among them: the best points lie together, and pull back to one."""
    return places[np.unique(np.linspace(0, len(places) - 1, min(UNDONE, len(places))).astype(int))]


def pull_back(
    swarms: Swarms, points: np.ndarray, owner: np.ndarray, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray]:
    """Valid points with fewer and smaller changes than some valid points, each swarm's best first; and their owners.

    Changes are undone from up to ``UNDONE`` points of each swarm, the smallest first and in ``SHUFFLED`` random orders,
    and those of its best ``HALVED`` results halved. All swarms' points are asked about at once.
    """
    actions, places = swarms.actions, range(swarms.shape[0])
    chosen = [_spread(np.flatnonzero(owner == place)) for place in places]
    points, owner = points[np.concatenate(chosen)], owner[np.concatenate(chosen)]
    gaps = actions.displacement(points, owner)
    drawn = [rng.random((SHUFFLED, len(mine), gaps.shape[1])) for rng, mine in zip(swarms.rngs, chosen, strict=True)]
    turns = np.argsort(np.stack([gaps, *np.concatenate(drawn, axis=1)]), axis=2, kind="stable")
    points, owner = np.concatenate([points] * len(turns)), np.concatenate([owner] * len(turns))
    points = undo(actions, points, owner, np.concatenate(turns), deadline)
    cost = swarms.merit(actions.displacement(points, owner))
    order = np.argsort(cost, kind="stable")
    best = np.concatenate([distinct(points, order[owner[order] == place], HALVED) for place in places])
    return halve(actions, points[best], owner[best], deadline), owner[best]


def undo(actions: Actions, points: np.ndarray, owner: np.ndarray, turns: np.ndarray, deadline: Deadline) -> np.ndarray:
    """Valid points whose features are put back in turn, where the point stays valid.

    Snapped, one a point given, shape (points, columns); ``turns``: each point's features in order, (points, features).
    """
    points, rows, home = points.copy(), np.arange(len(points)), actions.origin[owner]
    gaps = actions.displacement(points, owner)
    for feature in turns.T:
        if deadline.passed:
            return points
        tried = np.where(actions.owned[feature], home, points)
        _replace(points, tried, gaps[rows, feature] > 0, actions, owner)
    return points


def halve(actions: Actions, points: np.ndarray, owner: np.ndarray, deadline: Deadline) -> np.ndarray:
    """Valid points whose numbers are halved several times, towards the factual while valid and away from it while not.

    The largest change first; snapped, one a point given, shape (points, columns).
    """
    points, rows, home = points.copy(), np.arange(len(points)), actions.origin[owner]
    gaps = actions.displacement(points, owner)
    for feature in np.argsort(-gaps, axis=1, kind="stable").T:
        moved = (gaps[rows, feature] > 0) & actions.halved[feature]
        if deadline.passed or not (gaps[rows, feature] > 0).any():
            return points
        mask = actions.owned[feature] & moved[:, None]
        near, far = home.copy(), points.copy()
        for _ in range(HALVINGS):
            middle = actions.snap(np.where(mask, (near + far) / 2, points), owner)
            ok = _replace(points, middle, moved & (middle != points).any(axis=1), actions, owner)
            near = np.where(mask & ~ok[:, None], middle, near)
            far = np.where(mask, points, far)
    return points


def _replace(
    points: np.ndarray, tried: np.ndarray, which: np.ndarray, actions: Actions, owner: np.ndarray
) -> np.ndarray:
    """Put tried rows in the place of points, in place, where they are valid; which were, bool."""
    ok = np.zeros(len(points), dtype=bool)
    if which.any():
        ok[which] = actions.judge(tried[which], owner[which])[0]
    points[ok] = tried[ok]
    return ok


def information_value(feature: Feature, values: pd.Series, wanted: np.ndarray) -> float:
    r"""How well a feature tells wanted rows from others, :math:`\sum_i (p_i - n_i) \ln(p_i / n_i)`, at least 0.

    :math:`p_i` and :math:`n_i` are the shares of wanted and other rows that fall into bin i: ten bins of equal width
    for a number, after values beyond 1.5 interquartile ranges from the quartiles are left out (unless that range is 0,
    where all but one value would be), one a level for any other feature. A bin without rows of a kind is taken to hold
    half a row. The paper's (16) lacks the logarithm, and is no measure of information without it.

    >>> import pandas as pd
    >>> feature = Feature("member", "binary", ("no", "yes"))
    >>> values, wanted = pd.Series(["no", "no", "no", "yes"]), np.array([True, True, False, False])
    >>> round(information_value(feature, values, wanted), 4)  # (2/2 - 1/2) ln 2 + (0.5/2 - 1/2) ln 1/2
    0.5199
    """
    if feature.numeric:
        numbers = values.to_numpy(float)
        low, high = np.quantile(numbers, [0.25, 0.75])
        inside = np.abs(numbers - np.clip(numbers, low, high)) <= OUTLYING * (high - low)
        inside |= low == high
        numbers, wanted = numbers[inside], wanted[inside]
        edges = np.linspace(numbers.min(), numbers.max(), BINS + 1)[1:-1]
        bins, count = np.searchsorted(edges, numbers, side="right"), BINS
    else:
        bins, count = feature.codes(values), len(feature.categories)
    if wanted.all() or not wanted.any():
        return 0.0
    both = [np.bincount(bins[side], minlength=count).astype(float) for side in (wanted, ~wanted)]
    used = (both[0] + both[1]) > 0
    p, q = (np.where(held > 0, held, EMPTY)[used] / held.sum() for held in both)
    return float(((p - q) * np.log(p / q)).sum())
