"""The cheapest choice where costs of moves add up: a multiple-choice knapsack by its Pareto-best partial choices."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COST_DIGITS, NO_DIVISOR

LABELS = 3_000_000  # partial choices at one feature, beyond which the search is left


class Items(NamedTuple):
    """Options by the features that they change, and what they have to reach together.

    Parameters
    ----------
    groups
        The options of each feature, in the order in which features are decided.
    cost, gain
        By option, cost >= 0.
    reduced, tail
        A Lagrangian bound: ``base``, plus the reduced cost of each option taken, plus ``tail[k, r]``, the least that r
        options of the features from position k on can add.
    need
        The least gain of a choice, > 0.
    most
        The most options of a choice.
    """

    groups: list[np.ndarray]
    cost: np.ndarray
    gain: np.ndarray
    reduced: np.ndarray
    base: float
    tail: np.ndarray
    need: float
    most: int


class Packed(NamedTuple):
    """The cheapest choice found, its cost, and a lower bound on any; none and infinite where there is none."""

    picks: np.ndarray | None
    cost: float
    bound: float


def greedy(items: Items) -> np.ndarray | None:
    """A choice of options of the greatest gain for their cost, none of which can be spared; None where too few."""
    taken, reached, used = list[int](), 0.0, set[int]()
    owner = {int(o): k for k, group in enumerate(items.groups) for o in group}
    worth = items.gain / np.maximum(items.cost, NO_DIVISOR)
    for o in np.argsort(-worth, kind="stable").tolist():
        if items.gain[o] <= 0 or owner[o] in used:
            continue
        taken.append(o)
        used.add(owner[o])
        reached += items.gain[o]
        if reached >= items.need:
            break
    for o in sorted(taken, key=lambda one: -items.cost[one]):
        if reached - items.gain[o] >= items.need:
            taken.remove(o)
            reached -= items.gain[o]
    return np.array(taken) if reached >= items.need and len(taken) <= items.most else None


def packed(items: Items, known: float, deadline: Deadline) -> Packed:
    """The cheapest choice that costs less than a known one.

    After each feature a partial choice is kept unless one of as many options costs no more and gains no less, or its
    bound reaches the best choice known.
    """
    cost, gain, reduced, count = np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64)
    best, end, steps = known, None, list[tuple[np.ndarray, np.ndarray]]()
    least = math.inf  # of what is left undecided
    for k, group in enumerate(items.groups):
        useful = group[items.gain[group] > 0]
        size = len(cost)
        if deadline.passed or size * (len(useful) + 1) > LABELS:
            bounds = items.base + reduced + items.tail[k, items.most - count]
            least = float(bounds.min(initial=math.inf))
            break
        parent = np.tile(np.arange(size), len(useful) + 1)
        option = np.repeat(np.append(-1, useful), size)
        took = option >= 0
        cost, gain, reduced = (
            part[parent] + np.where(took, of[option], 0.0)
            for part, of in ((cost, items.cost), (gain, items.gain), (reduced, items.reduced))
        )
        count = count[parent] + took
        done = (gain >= items.need) & (count <= items.most)
        if done.any() and cost[done].min() < best:
            place = int(np.flatnonzero(done)[cost[done].argmin()])
            best, end = float(cost[place]), (k, int(parent[place]), int(option[place]))
        open_ = np.flatnonzero(~done & (count <= items.most))
        bounds = items.base + reduced[open_] + items.tail[k + 1, items.most - count[open_]]
        open_ = open_[bounds < best - COST_DIGITS * max(1.0, abs(best)) if math.isfinite(best) else slice(None)]
        kept = open_[_undominated(cost[open_], gain[open_], count[open_])]
        cost, gain, reduced, count = cost[kept], gain[kept], reduced[kept], count[kept]
        steps.append((parent[kept], option[kept]))
    return Packed(None if end is None else _traced(steps, *end), best, min(best, least))


def _undominated(cost: np.ndarray, gain: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Places of those that none of as few options, and no greater cost, gains as much as."""
    kept = []
    for number in np.unique(count):
        own = np.flatnonzero(count == number)
        own = own[np.lexsort((-gain[own], cost[own]))]
        before = np.append(-math.inf, np.maximum.accumulate(gain[own])[:-1])
        kept.append(own[gain[own] > before])
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _traced(steps: list[tuple[np.ndarray, np.ndarray]], k: int, parent: int, option: int) -> np.ndarray:
    """The options of a choice, from its last one back."""
    taken = [option]
    for parents, options in reversed(steps[:k]):
        taken.append(int(options[parent]))
        parent = int(parents[parent])
    return np.array([o for o in taken if o >= 0])
