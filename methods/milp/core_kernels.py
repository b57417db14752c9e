"""What cores, sets of numbers that cannot all stay, say: the fewest changes, and what surely stays or changes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import COST_TIE

MOST = 63  # numbers whose sets are words


def word(numbers: Iterable[int]) -> np.uint64:
    """A word of some numbers."""
    return np.uint64(sum(1 << int(k) for k in numbers))


def among(number: np.uint64, count: int) -> np.ndarray:
    """Which of so many numbers a word has."""
    flags: np.ndarray = (int(number) >> np.arange(count)) & 1 == 1
    return flags


@njit(cache=True)
def propagate(sets, weights, kept, forced, most):
    """Numbers that stay and that change, as far as that follows.

    Parameters
    ----------
    sets
        Cores, each a word of numbers, uint64 of shape (cores,).
    weights
        What changes count, shape (numbers,).
    kept, forced
        Words of the numbers that stay, and that change.
    most
        What all changes may count.

    Returns
    -------
    Whether that is possible, and both words with more numbers.
    """
    one, none = np.uint64(1), np.uint64(0)
    moved = True
    while moved:
        moved = False
        for s in sets:
            if s & forced:
                continue
            free = s & ~kept
            if free == none:
                return False, kept, forced
            if free & (free - one) == none:
                forced |= free
                moved = True
        used = 0.0
        for j in range(len(weights)):
            if forced >> np.uint64(j) & one:
                used += weights[j]
        # Open cores that have no number in common, the smallest first, need a change each.
        packed, need = none, 0.0
        for size in range(2, len(weights) + 1):
            left = False
            for s in sets:
                free = s & ~kept
                if s & forced or free & packed:
                    continue
                count, least = 0, np.inf
                for j in range(len(weights)):
                    if free >> np.uint64(j) & one:
                        count += 1
                        least = min(least, weights[j])
                if count == size:
                    packed |= free
                    need += least
                elif count > size:
                    left = True
            if not left:
                break
        if used + need > most + COST_TIE:
            return False, kept, forced
        for j in range(len(weights)):
            bit = one << np.uint64(j)
            if not bit & (kept | forced | packed) and used + need + weights[j] > most + COST_TIE:
                kept |= bit
                moved = True
    return True, kept, forced


@njit(cache=True)
def lightest(member, weights, least):
    """The lightest numbers of which each core has one, by depth first search over the core with the fewest left.

    Parameters
    ----------
    member
        Whether a core has a number, bool of shape (cores, numbers), the smallest cores first.
    weights
        Of the numbers, > 0 or infinite.
    least
        A lower bound on the weight.

    Returns
    -------
    Which numbers are taken, bool of shape (numbers,), and their weight; infinite where a core has none of finite one.
    """
    cores, count = member.shape
    state = np.zeros(count, np.int8)  # 1: taken, -1: barred, 0: neither
    hits, degree = np.zeros(cores, np.int64), np.zeros(count)
    branches, widths, places = (
        np.empty((count + 1, count), np.int64),
        np.zeros(count + 1, np.int64),
        np.zeros(count + 1, np.int64),
    )
    packed, best, taken, weight, depth = np.empty(count, np.bool_), np.inf, np.zeros(count, np.bool_), 0.0, 0
    down = True
    while True:
        if down:
            widths[depth] = places[depth] = 0
            need, pick, fewest = 0.0, -1, count + 1
            packed[:], degree[:] = False, 0.0
            for c in range(cores):
                if hits[c]:
                    continue
                free, apart, low = 0, True, np.inf
                for j in range(count):
                    if member[c, j] and state[j] == 0:
                        free += 1
                        degree[j] += 1.0
                        low = min(low, weights[j])
                        apart = apart and not packed[j]
                if free < fewest:
                    fewest, pick = free, c
                if apart:
                    need += low
                    for j in range(count):
                        packed[j] = packed[j] or (member[c, j] and state[j] == 0)
            if weight + need < best - COST_TIE:
                if pick < 0:
                    best, taken[:] = weight, state == 1
                    if best <= least + COST_TIE:
                        return taken, best
                else:
                    for j in range(count):
                        if member[pick, j] and state[j] == 0 and weights[j] < np.inf:
                            k = widths[depth]
                            while k > 0 and degree[branches[depth, k - 1]] < degree[j]:
                                branches[depth, k] = branches[depth, k - 1]
                                k -= 1
                            branches[depth, k] = j
                            widths[depth] += 1
        if places[depth] < widths[depth]:
            j = branches[depth, places[depth]]
            places[depth] += 1
            state[j], weight = 1, weight + weights[j]
            for c in range(cores):
                hits[c] += member[c, j]
            depth, down = depth + 1, True
            continue
        for k in range(widths[depth]):
            state[branches[depth, k]] = 0
        if depth == 0:
            return taken, best
        depth, down = depth - 1, False
        j = branches[depth, places[depth] - 1]
        state[j], weight = -1, weight - weights[j]
        for c in range(cores):
            hits[c] -= member[c, j]


def compile_all() -> None:
    """Compile what has not been."""
    one = np.uint64(1)
    propagate(np.array([1], dtype=np.uint64), np.ones(1), np.uint64(0), one, 1.0)
    lightest(np.ones((1, 1), dtype=bool), np.ones(1), 0.0)
