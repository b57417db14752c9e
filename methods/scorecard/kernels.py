"""Compiled kernels of the search over a scorecard's moves: Lagrangian bounds, cheapest moves, cheapest sets of them.

A *move* takes one feature to another bin, an *option*. A counterfactual is at most ``most`` moves of different
features, a *choice*. It costs, for each of some *forms* of weights, the weighted sum of four *parts*: proximity,
closeness, distance of the outcome from its target, number of moves. The first form is minimised, the others have caps.
The arrays, and their shapes, are those of ``records``.
"""

from __future__ import annotations

import math

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import CARD_COST_TIE, NO_DIVISOR, NO_LENGTH
from methods.scorecard.records import Bounds, Choices, Forms, Kept, Limits, MoveArrays, Path, Plan, SetPath, SetRules

PROXIMITY, CLOSENESS, OUTCOME, CHANGES = range(4)  # the parts, as columns of a form
NO_OUTCOME, LOGISTIC, LINEAR = range(3)  # the outcome as a function of the score
STALL = 6  # rounds without a better bound until the step is halved


@njit(cache=True)
def under(cap: float) -> float:
    """The greatest cost that is below a cap by more than rounding."""
    return cap - CARD_COST_TIE * max(1.0, abs(cap)) if cap < np.inf else cap


@njit(cache=True)
def outcome_of(score: float, link: int) -> float:
    """The probability, or the predicted number, at a score."""
    if link == LINEAR:
        return score
    return 1.0 / (1.0 + math.exp(-score)) if score >= 0 else 1.0 - 1.0 / (1.0 + math.exp(score))


@njit(cache=True)
def miss(low: float, high: float, link: int, target: float) -> float:
    """The least distance between the target and the outcome of a score in [low, high]."""
    if link == NO_OUTCOME:
        return 0.0
    return max(outcome_of(low, link) - target, target - outcome_of(high, link), 0.0)


@njit(cache=True)
def dual(moves, limits, fixed, weight, rounds, reduced):
    r"""A Lagrangian bound on one form, of the shape ``base`` + the sum of ``reduced`` costs of a choice's options.

    The form is ``fixed`` by option, and ``weight`` times the closeness:

    .. math::
        \omega \|v + \textstyle\sum_o L_o \delta_o\|_1 \ge \omega\, y^T (v + \sum_o L_o \delta_o), \; y \in [-1, 1]^p

    and a multiplier for each end of the score; both by projected subgradients. Writes ``reduced``, shape (options,),
    and returns the base.
    """
    start, delta, gain, _, factor, deviation, score = MoveArrays(*moves)
    low, high, most, _, _ = Limits(*limits)
    size = len(deviation)
    y, side = np.sign(deviation), np.zeros(2)
    best_y, best_side, best = y.copy(), side.copy(), -np.inf
    pull, least, pick = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    slope, gap = np.empty(size), np.zeros(2)
    widest, steepest = NO_DIVISOR, NO_DIVISOR
    for f in range(size):
        length = 0.0
        for i in range(f + 1):
            length += factor[f, i] ** 2
        for o in range(start[f], start[f + 1]):
            widest = max(widest, abs(fixed[o]) + weight * math.sqrt(length) * abs(delta[o]))
            steepest = max(steepest, abs(gain[o]))
    unit = widest / steepest  # cost a unit of score, so that all multipliers have one scale
    step, stalled = 1.0, 0
    for turn in range(rounds + 1):
        last = turn == rounds
        if last:
            y[:], side[:] = best_y, best_side
        value, force = 0.0, unit * (side[0] - side[1])
        for f in range(size):
            value += weight * y[f] * deviation[f]
            total = 0.0
            for i in range(f + 1):
                total += factor[f, i] * y[i]
            pull[f] = weight * total
        if side[0] > 0.0:
            value += unit * side[0] * (low - score)
        if side[1] > 0.0:
            value += unit * side[1] * (score - high)
        for f in range(size):
            least[f], pick[f] = 0.0, -1
            for o in range(start[f], start[f + 1]):
                cost = fixed[o] + pull[f] * delta[o] - force * gain[o]
                reduced[o] = cost
                if cost < least[f]:
                    least[f], pick[f] = cost, o
        if last:
            return value
        slope[:] = deviation
        reached = score
        for _ in range(min(most, size)):
            f = int(np.argmin(least))
            if least[f] >= 0.0:
                break
            value += least[f]
            o = pick[f]
            least[f] = 0.0
            reached += gain[o]
            for i in range(f + 1):
                slope[i] += factor[f, i] * delta[o]
        if value > best:
            best, stalled = value, 0
            best_y[:], best_side[:] = y, side
        else:
            stalled += 1
            if stalled >= STALL:
                step, stalled = 0.5 * step, 0
                y[:], side[:] = best_y, best_side
                continue
        length = 0.0
        for i in range(size):
            slope[i] *= weight
            if (slope[i] > 0.0 and y[i] >= 1.0) or (slope[i] < 0.0 and y[i] <= -1.0):
                slope[i] = 0.0
            length += slope[i] ** 2
        gap[0] = unit * (low - reached) if low > -np.inf else 0.0
        gap[1] = unit * (reached - high) if high < np.inf else 0.0
        for k in range(2):
            if gap[k] < 0.0 and side[k] <= 0.0:
                gap[k] = 0.0
            length += gap[k] ** 2
        if length < NO_LENGTH:
            continue
        ahead = max(abs(best) * 0.2, 0.05 * widest)
        move = step * ahead / length
        for i in range(size):
            y[i] = min(max(y[i] + move * slope[i], -1.0), 1.0)
        for k in range(2):
            side[k] = max(side[k] + move * gap[k], 0.0)
    return best


@njit(cache=True)
def tails(start, sequence, reduced, most, out):
    """Into ``out[k, r]``: the least sum of reduced costs of at most r options of features from position k on."""
    size = len(sequence)
    taken = np.zeros(most)  # the least ones so far, ascending
    out[size, :] = 0.0
    for k in range(size - 1, -1, -1):
        f, least = sequence[k], 0.0
        for o in range(start[f], start[f + 1]):
            least = min(least, reduced[o])
        for r in range(most):
            if least < taken[r]:
                taken[r], least = least, taken[r]
        out[k, 0] = 0.0
        for r in range(most):
            out[k, r + 1] = out[k, r] + taken[r]


@njit(cache=True)
def push(values, picks, parts, size, value, pick, part):
    """Keep a choice among the cheapest: a heap with the costliest on top. Returns how many are kept."""
    room = len(values)
    if size < room:
        at = size
        size += 1
        while at > 0 and values[(at - 1) // 2] < value:
            above = (at - 1) // 2
            values[at], picks[at], parts[at] = values[above], picks[above], parts[above]
            at = above
    else:
        at = 0
        while True:
            below = 2 * at + 1
            if below + 1 < room and values[below + 1] > values[below]:
                below += 1
            if below >= room or values[below] <= value:
                break
            values[at], picks[at], parts[at] = values[below], picks[below], parts[below]
            at = below
    values[at], picks[at], parts[at] = value, pick, part
    return size


@njit(cache=True)
def descend(moves, limits, plan, forms, bounds, path, kept, budget):
    """Go on with the depth-first search over choices, for at most ``budget`` options; True once it has ended."""
    start, delta, gain, near, factor, _, _ = MoveArrays(*moves)
    low, high, most, link, target = Limits(*limits)
    sequence, order = Plan(*plan)
    weights, caps = Forms(*forms)
    base, reduced, tail, reach = Bounds(*bounds)
    state, place, turn, scores, closest, near_sums, sums, chosen = Path(*path)
    values, picks, parts = Kept(*kept)
    size, count = len(sequence), len(caps)
    depth, many = state[0], state[1]
    room = len(values)
    part = np.zeros(4)
    pick = np.full(most, -1, dtype=np.int64)
    for _ in range(budget):
        if depth < 0:
            break
        k, rest = place[depth], most - depth
        edge = min(caps[0], under(values[0])) if many == room else caps[0]
        if rest == 0 or k == size or base[0] + sums[depth, 0] + tail[0, k, rest] > edge:
            depth -= 1
            continue
        f = sequence[k]
        if turn[depth] == start[f + 1] - start[f]:
            place[depth], turn[depth] = k + 1, 0
            continue
        o = order[start[f] + turn[depth]]
        if base[0] + sums[depth, 0] + reduced[0, o] + tail[0, k + 1, rest - 1] > edge:
            place[depth], turn[depth] = k + 1, 0
            continue
        turn[depth] += 1
        score = scores[depth] + gain[o]
        least, greatest = score + reach[0, k + 1, rest - 1], score + reach[1, k + 1, rest - 1]
        if greatest < low or least > high:
            continue
        off = miss(max(least, low), min(greatest, high), link, target)
        beyond = False
        for q in range(count):
            bound = sums[depth, q] + reduced[q, o]
            sums[depth + 1, q] = bound
            bound += base[q] + tail[q, k + 1, rest - 1] + weights[q, OUTCOME] * off
            beyond = beyond or bound > (edge if q == 0 else caps[q])
        if beyond:
            continue
        chosen[depth] = o
        part[PROXIMITY] = near_sums[depth] + near[o]
        total = 0.0
        for i in range(size):
            moved = closest[depth, i]
            if i <= f:
                moved += factor[f, i] * delta[o]
            closest[depth + 1, i] = moved
            total += abs(moved)
        part[CLOSENESS] = total
        if low <= score <= high:
            part[OUTCOME] = miss(score, score, link, target)
            part[CHANGES] = depth + 1.0
            kept_within = True
            for q in range(count):
                value = 0.0
                for c in range(4):
                    value += weights[q, c] * part[c]
                kept_within = kept_within and value <= (edge if q == 0 else caps[q])
            if kept_within:
                value = 0.0
                for c in range(4):
                    value += weights[0, c] * part[c]
                pick[: depth + 1] = chosen[: depth + 1]
                pick[depth + 1 :] = -1
                many = push(values, picks, parts, many, value, pick, part)
        if rest > 1:
            depth += 1
            place[depth], turn[depth] = k + 1, 0
            scores[depth], near_sums[depth] = score, part[PROXIMITY]
    state[0], state[1] = depth, many
    return depth < 0


@njit(cache=True)
def common(first: np.uint64, second: np.uint64) -> int:
    """How many bits two masks share."""
    both, shared = first & second, 0
    while both:
        both &= both - np.uint64(1)
        shared += 1
    return shared


@njit(cache=True)
def together(choices, rules, path, budget):
    """Go on with the search for the cheapest compatible set of choices; True once it has ended."""
    costs, features, options = Choices(*choices)
    caps, floors, separated, penalty = SetRules(*rules)
    state, place, sums, best = SetPath(*path)
    n, count = len(best), len(caps)
    depth = state[0]
    total = np.empty(count)
    for _ in range(budget):
        if depth < 0:
            break
        i, rest = place[depth], n - depth
        if i + rest > len(costs):
            depth -= 1
            continue
        ahead = sums[depth, 0]
        for r in range(rest):
            ahead += costs[i + r, 0]
        if ahead >= under(caps[0]):
            depth -= 1
            continue
        place[depth] += 1
        total[:] = sums[depth] + costs[i]
        fits = True
        for d in range(depth):
            other = place[d] - 1
            both, alike, shared = 0, True, 0
            for w in range(features.shape[1]):
                both += common(features[i, w], features[other, w])
                alike = alike and features[i, w] == features[other, w]
            if separated[0] and alike:
                fits = False
                break
            for w in range(options.shape[1]):
                shared += common(options[i, w], options[other, w])
            if separated[1] and shared:
                fits = False
                break
            for q in range(count):
                total[q] += penalty[q, 0] * both + penalty[q, 1] * shared
        if not fits:
            continue
        for q in range(count):
            most = under(caps[q]) if q == 0 else caps[q]
            fits = fits and total[q] + (rest - 1) * floors[q] <= most
        if not fits:
            continue
        if rest == 1:
            caps[0] = total[0]
            for d in range(depth + 1):
                best[d] = place[d] - 1
            continue
        depth += 1
        place[depth] = i + 1
        sums[depth] = total
    state[0] = depth
    return depth < 0
