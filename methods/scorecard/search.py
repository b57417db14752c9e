"""Exact search over moves: the cheapest counterfactual, or the cheapest compatible set, without a solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COST_TIE, SHARE_SOLVED
from harness.solvers.lp import Lp
from methods.scorecard import kernels
from methods.scorecard.branch import Branching
from methods.scorecard.moves import Moves
from methods.scorecard.records import Bounds, Choices, Forms, Kept, Limits, MoveArrays, Path, Plan, SetPath, SetRules

FIRST = 64  # cheapest choices that are tried first, a counterfactual of the set
GROWTH = 8  # factor by which more are tried where those prove nothing
MOST = 400_000  # choices that are kept at most
ROUNDS = 400  # of the subgradient method: with 40 a card of 60 features has a bound near 0
FEW = 4  # changes up to which moves are gone through before there is a program at each node
BUDGET = 200_000  # steps between looks at the clock
WORD = 63  # bits of a mask
FLOOR, LISTING = 0.7, 0.9  # shares of the time left for the cheapest choice alone, and for a list of them


@dataclass(frozen=True, eq=False)
class Form:
    """Cost of a set of counterfactuals, minimised or capped: a sum over them and over their pairs.

    Parameters
    ----------
    weights
        Of proximity, closeness, distance of the outcome, and number of changes of each; shape (4,).
    features, options
        Cost >= 0 of each feature, or bin, that two counterfactuals share.
    slides
        Cost >= 0 of each feature that changes and leaves the score as it is.
    """

    weights: np.ndarray
    features: float = 0.0
    options: float = 0.0
    slides: float = 0.0


@dataclass(frozen=True, eq=False)
class Rules:
    """Requirements of counterfactuals.

    Parameters
    ----------
    low, high
        Ends of the score, moved outwards by ``room``.
    most
        The most features that may change.
    distinct_features, disjoint_options
        Whether each two of a set change different sets of features, and share no bin.
    link, target
        The outcome as a function of the score (see ``kernels``), and the value it should have.
    room
        How near to an end the rounding of sums decides: what lies there is a counterfactual where ``accepts`` says so.
    accepts
        Whether the model itself predicts the target, of ascending options; all are accepted where it is None.
    """

    low: float
    high: float
    most: int
    distinct_features: bool = False
    disjoint_options: bool = False
    link: int = kernels.NO_OUTCOME
    target: float = 0.0
    room: float = 0.0
    accepts: Callable[[tuple[int, ...]], bool] | None = None

    def accepted(self, scores: np.ndarray, choices: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Which choices, by score and options (-1 for none), are counterfactuals, bool, shape (choices,)."""
        found = (scores >= self.low) & (scores <= self.high)
        if self.accepts is not None:
            near = np.minimum(np.abs(scores - self.low), np.abs(scores - self.high)) <= 3.0 * self.room
            for place in np.flatnonzero(near):
                found[place] = self.accepts(tuple(sorted(o for o in choices[int(place)].tolist() if o >= 0)))
        return found


@dataclass(frozen=True, eq=False)
class Listed:
    """The cheapest choices: options (-1 for none) and parts by choice, and how the forms weigh them, ascending.

    ``complete`` where no other choice keeps to the caps; ``ended`` where the search was not cut short; ``bound`` on the
    first form of every choice, those that a search cut short has not come to included. Near an end of the score there
    may be choices that the model rejects.
    """

    picks: np.ndarray
    parts: np.ndarray
    costs: np.ndarray
    complete: bool
    ended: bool
    bound: float

    def only(self, kept: np.ndarray) -> Listed:
        """Some of the choices, bool."""
        if kept.all():
            return self
        return replace(self, picks=self.picks[kept], parts=self.parts[kept], costs=self.costs[kept])


@dataclass(frozen=True, eq=False)
class Sets:
    """The cheapest set: the options of each of its choices, their parts, its cost, and a proven bound on that.

    Without choices, ``proven`` means that there is no such set. ``values``: where relations between features ask for
    others than the nearest ones of the bins, those of each choice, by feature; and ``slid``, how many of these change
    and leave the score as it is.
    """

    choices: tuple[np.ndarray, ...]
    parts: np.ndarray
    cost: float
    bound: float
    proven: bool
    values: tuple[dict[str, Any], ...] = ()
    slid: tuple[int, ...] = ()


def _none(proven: bool) -> Sets:
    return Sets((), np.empty((0, 4)), math.inf, math.inf if proven else -math.inf, proven)


def _listed(found: Kept, weights: np.ndarray, ended: bool, least: float, kept: int, whole: bool = True) -> Listed:
    """The choices that a search has kept, by cost; ``least``: a bound on those it has not come to.

    ``whole``: whether it looked for all that keep to the caps.
    """
    parts, picks = found.parts[:kept], found.picks[:kept]
    costs = parts @ weights.T
    ranked = np.argsort(costs[:, 0], kind="stable")
    least = min(least, float(costs[ranked[0], 0])) if kept else least
    complete = ended and whole and kept < len(found.values)
    return Listed(picks[ranked], parts[ranked], costs[ranked], complete, ended, least)


class Search:
    """Depth-first search for the cheapest counterfactuals of one factual.

    Parameters
    ----------
    gain
        By option: change of the score.
    near
        By option: proximity.
    factor
        L of the closeness, shape (features, features).
    deviation
        L'(x - mu) of the factual, shape (features,).
    """

    def __init__(
        self, moves: Moves, rules: Rules, gain: np.ndarray, near: np.ndarray, factor: np.ndarray, deviation: np.ndarray
    ) -> None:
        self.moves, self.rules = moves, rules
        self.gain, self.near, self.factor, self.deviation = gain, near, factor, deviation
        size = len(deviation)
        self.most = min(rules.most, size)
        self.arrays = MoveArrays(moves.start, moves.delta, gain, near, factor, deviation, moves.score)
        self.limits = Limits(rules.low, rules.high, self.most, rules.link, rules.target)
        self.posed = tuple(self.arrays), tuple(self.limits)
        swing = np.zeros(size)
        np.maximum.at(swing, moves.owner, np.abs(gain))
        self.sequence = np.argsort(-swing, kind="stable")
        self.reach = np.empty((2, size + 1, self.most + 1))
        kernels.tails(moves.start, self.sequence, gain, self.most, self.reach[0])
        kernels.tails(moves.start, self.sequence, -gain, self.most, self.reach[1])
        self.reach[1] *= -1.0
        self._crowded: dict[int, bool] = {}

    @cached_property
    def branching(self) -> Branching:
        """What takes over where there are too many moves to go through."""
        return Branching(self.arrays, self.limits)

    def cheapest(self, forms: Sequence[Form], caps: np.ndarray, room: int, deadline: Deadline) -> Listed:
        """At most ``room`` choices, cheapest by the first form, that keep to the caps."""
        size, most, count = len(self.deviation), self.most, len(forms)
        weights = np.array([form.weights for form in forms])
        found = Kept(np.empty(room), np.empty((room, most), dtype=np.int64), np.empty((room, 4)))
        branches = count == 1 and not weights[0, kernels.OUTCOME]
        if branches and most > FEW and self.branching.linear:
            return _listed(found, weights, *self.branching.cheapest(weights[0], float(caps[0]), found, deadline))
        bounds = self._bounds(weights)
        order = np.lexsort((bounds.reduced[0], self.moves.owner))
        path = Path(
            state=np.zeros(2, dtype=np.int64),
            place=np.zeros(most + 1, dtype=np.int64),
            turn=np.zeros(most + 1, dtype=np.int64),
            scores=np.zeros(most + 1),
            closest=np.zeros((most + 1, size)),
            near=np.zeros(most + 1),
            bounds=np.zeros((most + 1, count)),
            chosen=np.zeros(most, dtype=np.int64),
        )
        path.scores[0], path.closest[0] = self.moves.score, self.deviation
        within = tuple(Plan(self.sequence, order)), tuple(Forms(weights, caps)), tuple(bounds)
        ended = False
        while not ended and not deadline.passed:
            ended = kernels.descend(*self.posed, *within, tuple(path), tuple(found), BUDGET)
            if branches and not ended and self.branching.linear:
                known = float(found.values[0]) if path.state[1] == room else math.inf
                cap = known + COST_TIE * max(1.0, abs(known))  # which is to find them again, its sums rounded otherwise
                whole = cap > caps[0] or math.isinf(cap)
                cap = min(float(caps[0]), cap)
                return _listed(
                    found, weights, *self._again(weights[0], cap, found, int(path.state[1]), deadline), whole
                )
        least = math.inf
        for d in range(int(path.state[0]) + 1):  # what each depth of the search still has before it
            rest = bounds.tail[0, path.place[d], most - d]
            least = min(least, float(bounds.base[0] + path.bounds[d, 0] + rest))
        return _listed(found, weights, ended, least, int(path.state[1]))

    def _again(
        self, weights: np.ndarray, cap: float, found: Kept, held: int, deadline: Deadline
    ) -> tuple[bool, float, int]:
        """As ``Branching.cheapest``, which finds again what is held; where it did not end, the cheapest of both."""
        before = [part[:held].copy() for part in found]
        ended, least, many = self.branching.cheapest(weights, cap, found, deadline)
        if ended and many >= held:
            return ended, least, many
        both = [np.concatenate([part[:many], kept]) for part, kept in zip(found, before, strict=True)]
        costs = both[2] @ weights
        _, first = np.unique(np.sort(both[1], axis=1), axis=0, return_index=True)
        chosen = first[np.argsort(costs[first], kind="stable")]
        chosen, dropped = np.split(chosen, [len(found.values)])
        for part, values in zip(found, both, strict=True):
            part[: len(chosen)] = values[chosen]
        return False, float(min(least, costs[dropped].min(initial=math.inf))), len(chosen)

    def _bounds(self, weights: np.ndarray) -> Bounds:
        """The Lagrangian bounds of forms with these weights, shape (forms, 4)."""
        count, options = len(weights), len(self.moves.delta)
        base, reduced = np.empty(count), np.empty((count, options))
        tail = np.empty((count, *self.reach.shape[1:]))
        for q in range(count):
            fixed = weights[q, kernels.PROXIMITY] * self.near + weights[q, kernels.CHANGES]
            base[q] = kernels.dual(*self.posed, fixed, weights[q, kernels.CLOSENESS], ROUNDS, reduced[q])
            kernels.tails(self.moves.start, self.sequence, reduced[q], self.most, tail[q])
        return Bounds(base, reduced, tail, self.reach)

    def best(self, n: int, forms: Sequence[Form], caps: np.ndarray, deadline: Deadline, first: bool = False) -> Sets:
        """The cheapest set of n different choices by the first form, whose other forms keep to ``caps[1:]``.

        With ``first`` the search ends at the first set found, whatever it costs.
        """
        caps = np.array(caps, dtype=float)
        caps[0] = math.inf
        if n == 1:
            return self._one(forms, caps, deadline)
        least = [self.cheapest([form], np.array([math.inf]), 1, _part(deadline, FLOOR)) for form in forms]
        if any(one.complete and not len(one.picks) for one in least):
            return _none(True)
        floors = np.array([one.bound for one in least])
        room, found = FIRST * n, self._in_turn(n, forms, least[0], deadline)
        caps[0] = found.cost
        alone = caps - (n - 1) * floors  # the most that one choice may cost beside the cheapest others
        while True:
            listed = self.cheapest(forms, alone, room, _part(deadline, LISTING))
            sound = listed.only(self._sound(listed.picks))
            found = self._compatible(sound, n, forms, caps, floors, found, deadline)
            if found.proven:
                return found
            rest = listed.costs[: n - 1, 0].sum() + (listed.costs[-1, 0] if len(listed.costs) else math.inf)
            if not listed.ended or deadline.passed or (first and found.choices):
                return found
            if listed.complete or (found.choices and rest >= found.cost):
                return Sets(found.choices, found.parts, found.cost, found.cost, True)
            if not found.choices and self._too_many(n, deadline):
                return _none(True)
            if room >= MOST:
                return found
            room = min(room * GROWTH, MOST)
            alone[0] = found.cost - listed.costs[: n - 1, 0].sum()

    def _one(self, forms: Sequence[Form], caps: np.ndarray, deadline: Deadline) -> Sets:
        """The cheapest choice; of the cheapest ones so many are listed as the model rejects near an end, and more."""
        room = 1
        while True:
            listed = self.cheapest(forms, caps, room, deadline)
            sound = listed.only(self._sound(listed.picks))
            if len(sound.picks):
                cost = float(sound.costs[0, 0])
                bound = cost if listed.ended else listed.bound
                return Sets((sound.picks[0],), sound.parts[:1], cost, bound, listed.ended)
            if listed.complete:
                return _none(True)
            if not listed.ended or room >= MOST:
                return replace(_none(False), bound=listed.bound)
            room = min(room * GROWTH, MOST)

    def _sound(self, picks: np.ndarray) -> np.ndarray:
        """Which choices are counterfactuals, bool: near an end the model itself is asked."""
        gains = np.append(self.gain, 0.0)[picks].sum(axis=1)  # -1 is no option
        return self.rules.accepted(self.moves.score + gains, picks)

    def _in_turn(self, n: int, forms: Sequence[Form], least: Listed, deadline: Deadline) -> Sets:
        """A set of choices, each the cheapest (the first is ``least``) without the options of those before it, or none.

        Where there are many choices, none of the cheapest ones may be disjoint, so that the search for sets begins with
        nothing.
        """
        form, search, options = forms[0], self, np.arange(len(self.near))
        if not self.rules.disjoint_options or len(forms) > 1 or form.features:
            return _none(False)
        picks, parts, costs = [], [], []
        for turn in range(n):
            if turn and deadline.passed:
                return _none(False)
            part = _part(deadline, 1.0 / (n - turn + 1))  # as much for each of those left, and for the list of them
            listed = search.cheapest(forms, np.array([math.inf]), 1, part) if turn else least
            if not len(listed.picks):
                return _none(False)
            own = listed.picks[0]
            picks.append(np.where(own >= 0, options[own], -1))
            parts.append(listed.parts[0])
            costs.append(float(listed.costs[0, 0]))
            left = np.delete(np.arange(len(options)), own[own >= 0])
            search, options = search.only(left), options[left]
        changed = [frozenset(self.moves.owner[own[own >= 0]].tolist()) for own in picks]
        if (self.rules.distinct_features and len(set(changed)) < n) or not self._sound(np.array(picks)).all():
            return _none(False)
        return Sets(tuple(picks), np.array(parts), sum(costs), n * least.bound, False)

    def only(self, options: np.ndarray) -> Search:
        """The search over some of the options alone, in ascending order."""
        moves, counts = self.moves, np.bincount(self.moves.owner[options], minlength=len(self.deviation))
        start = np.concatenate([[0], np.cumsum(counts)]).astype(moves.start.dtype)
        targets = tuple(moves.targets[k] for k in options.tolist())
        left = replace(
            moves, start=start, owner=moves.owner[options], place=moves.place[options], delta=moves.delta[options],
            targets=targets,
        )  # fmt: skip
        return Search(left, self.rules, self.gain[options], self.near[options], self.factor, self.deviation)

    def _too_many(self, n: int, deadline: Deadline) -> bool:
        """Whether shares of options, summing to 1, are proof that no n choices are disjoint: each takes more than 1/n.

        The least share that a choice can take is raised by a linear program over the choices met so far, which gives an
        upper bound on it; the search gives the lower one.
        """
        if not self.rules.disjoint_options:
            return False
        if n not in self._crowded:
            self._crowded[n] = self._shares(n, deadline)
        return self._crowded[n]

    def _shares(self, n: int, deadline: Deadline) -> bool:
        """Whether there are such shares."""
        options = len(self.near)
        program = Lp(np.zeros(options + 1), np.append(np.ones(options), np.inf))
        one = np.ones(1)
        program.add_dense(np.append(np.ones(options), 0.0)[None], one, one)
        share, alone = np.full(options, 1.0 / options), Form(np.array([1.0, 0.0, 0.0, 0.0]))
        while not deadline.passed:
            search = Search(self.moves, self.rules, self.gain, share, self.factor, self.deviation)
            listed = search.cheapest([alone], np.array([math.inf]), 1, deadline)
            if not listed.ended:
                return False
            if not len(listed.picks) or listed.costs[0, 0] > 1.0 / n + SHARE_SOLVED:
                return True
            row = np.zeros((1, options + 1))
            row[0, listed.picks[0][listed.picks[0] >= 0]] = 1.0
            row[0, -1] = -1.0
            program.add_dense(row, np.zeros(1), np.full(1, np.inf))
            solved = program.solve(np.append(np.zeros(options), -1.0), deadline.left)
            if solved.x is None or solved.x[-1] <= 1.0 / n + SHARE_SOLVED:
                return False
            share = np.maximum(solved.x[:options], 0.0)
            share /= share.sum()
        return False

    def _compatible(
        self, listed: Listed, n: int, forms: Sequence[Form], caps: np.ndarray, floors: np.ndarray, known: Sets,
        deadline: Deadline,
    ) -> Sets:  # fmt: skip
        """The cheapest compatible set of listed choices where it is cheaper than the known one."""
        caps = caps.copy()
        caps[0] = known.cost
        count = len(forms)
        features, options = self._masks(listed.picks)
        separated = np.array([self.rules.distinct_features, self.rules.disjoint_options])
        penalty = np.array([(form.features, form.options) for form in forms])
        best = np.full(n, -1, dtype=np.int64)
        path = SetPath(np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros((n, count)), best)
        choices, rules = Choices(listed.costs, features, options), SetRules(caps, floors, separated, penalty)
        ended = False
        while not ended:  # also where the list took all of the time
            ended = kernels.together(tuple(choices), tuple(rules), tuple(path), BUDGET)
            if deadline.passed:
                break
            if not ended and best[0] < 0 and not known.choices and self._too_many(n, deadline):
                return _none(True)
        if best[0] < 0:
            return known
        bound = float(floors[0] * n)
        return Sets(tuple(listed.picks[i] for i in best), listed.parts[best], float(caps[0]), bound, False)

    def _masks(self, picks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which features and which options each choice changes, as bits: shapes (choices, words)."""
        owners = np.where(picks >= 0, self.moves.owner[np.maximum(picks, 0)], -1)
        return _bits(owners, len(self.deviation)), _bits(picks, len(self.moves.delta))


def _bits(taken: np.ndarray, size: int) -> np.ndarray:
    """Sets of numbers below a size, one a row and -1 for none, as bits, shape (rows, words)."""
    words = np.zeros((len(taken), size // WORD + 1), dtype=np.uint64)
    for word in range(words.shape[1]):
        within = (taken >= 0) & (taken // WORD == word)
        bits = np.uint64(1) << (np.where(within, taken, 0) % WORD).astype(np.uint64)
        words[:, word] = np.where(within, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return words


def _part(deadline: Deadline, share: float) -> Deadline:
    """A share of the time left."""
    return Deadline.after(share * deadline.left)
