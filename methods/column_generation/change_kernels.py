"""The compiled search for points that serve their group at the greatest profit: pricing of the least total change."""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit
from harness.core.tolerances import BOUND_ROUNDING, PSEUDO_GAIN
from methods.column_generation.kernels import NONE, ONE, WORD, holds, lowest, propose, score, upper
from methods.column_generation.records import Aim, CodedArrays, Frame, Profiles, Room, Worth


@njit(cache=True)
def profit(worth, frame, depth, anchor, moves):
    r"""An upper bound on the profit of points below a node that leave the anchor on ``moves`` undecided features.

    A profile that differs from the anchor on r undecided features changes at least :math:`|r - moves|` of them: each
    move settles one of the r, or costs one.
    """
    price, people, alone = worth
    total = price[anchor] - people[anchor] * max(frame.own[depth] + moves, alone[anchor])
    for c in range(frame.size[depth]):
        k = frame.who[depth, c]
        changes = max(frame.paid[depth, c] + abs(frame.open[depth, c] - moves), alone[k])
        total += max(price[k] - people[k] * changes, 0.0)
    return total


@njit(cache=True)
def promising(model, profiles, worth, frame, depth, anchor, left, cutoff):
    """Whether a node may hold a valid point of at least a profit; ``left`` undecided features may move."""
    spare = min(profiles.most - frame.used[depth], left)
    for moves in range(spare, -1, -1):
        if profit(worth, frame, depth, anchor, moves) >= cutoff:
            # The most moves that are worth it; a node whose points need more to be valid is left.
            return upper(model, profiles.codes[anchor], frame.options, frame.nothing, moves) >= model.threshold
    return False


@njit(cache=True)
def keep(profiles, frame, depth, feature, code, anchor_code, moved, opened):
    """The profiles that stay below a branch: the point takes ``code`` on a feature, which may change or not."""
    size = 0
    spare = profiles.most - frame.used[depth + 1]
    bit = ONE << np.uint64(code)
    for c in range(frame.size[depth]):
        k = frame.who[depth, c]
        own = profiles.codes[k, feature]
        paid, rest = frame.paid[depth, c], frame.open[depth, c] - int(own != anchor_code)
        if own != code:
            if not opened or profiles.reach[k, feature] & bit == NONE:
                continue
            paid += 1
        if rest > spare:
            continue
        frame.who[depth + 1, size], frame.paid[depth + 1, size], frame.open[depth + 1, size] = k, paid, rest
        size += 1
    frame.size[depth + 1] = size
    frame.own[depth + 1] = frame.own[depth] + int(moved)


@njit(cache=True)
def first_frame(profiles, worth, every, order, place, frame, features):
    """The root of an anchor: who can share a point with it, and its features, the most telling first.

    Returns how many features can move.
    """
    codes, reach, movable, most, _ = profiles
    price, people, alone = worth
    options = frame.options
    d = codes.shape[1]
    anchor = order[place]
    size = 0
    telling = np.zeros(d)
    for rank in range(place + 1, len(order)):
        k = order[rank]
        gain = price[k] - people[k] * alone[k]
        if gain <= 0.0 and not every:
            continue
        many = 0
        for j in range(d):
            if codes[k, j] != codes[anchor, j]:
                many += 1 if movable[j] else d + 1
        if many > most:
            continue
        frame.who[0, size], frame.paid[0, size], frame.open[0, size] = k, 0, many
        size += 1
        for j in range(d):
            if codes[k, j] != codes[anchor, j]:
                telling[j] += max(gain, 0.0) + PSEUDO_GAIN
    frame.size[0], frame.used[0], frame.own[0] = size, 0, 0
    count = 0
    for j in range(d):
        options[j] = ONE << np.uint64(codes[anchor, j])
        if not movable[j]:
            continue
        options[j] |= reach[anchor, j]
        at = count
        while at > 0 and telling[features[at - 1]] < telling[j]:
            features[at] = features[at - 1]
            at -= 1
        features[at] = j
        count += 1
    return count


@njit(cache=True)
def best_points(model, profiles, worth, aim, order, first, last):
    """Points of at least a profit: the worth of the profiles that one serves, less the features that they change.

    Depth first, by anchor: the first profile in ``order`` that a point serves. Each level decides a feature: the point
    keeps the anchor's code, and nobody changes the feature or those do who differ; or it takes another one.

    Returns
    -------
    points : int64, shape (found, features)
    serves : bool, shape (found, n)
    profits : shape (found,)
    complete : whether the search of each anchor ended within its nodes, and the room sufficed
    """
    model, profiles, worth, aim = CodedArrays(*model), Profiles(*profiles), Worth(*worth), Aim(*aim)
    codes, reach, _, most, _ = profiles
    price, people, _ = worth
    n, d = codes.shape
    points, serves, profits = np.empty((16, d), np.int64), np.zeros((16, n), np.bool_), np.empty(16)
    frame = Frame(
        np.empty((d + 2, n), np.int64), np.empty((d + 2, n), np.int64), np.empty((d + 2, n), np.int64),
        np.zeros(d + 2, np.int64), np.zeros(d + 2, np.int64), np.zeros(d + 2, np.int64), np.zeros(d + 2, np.int64),
        np.zeros(d + 2, np.uint64), np.empty(d, np.uint64), np.zeros((d + 63) // 64, np.uint64),
    )  # fmt: skip
    features = np.empty(d, np.int64)
    options, whole = frame.options, np.empty(d, np.uint64)
    found, complete = 0, True
    for place in range(first, last):
        spent = 0
        anchor = order[place]
        start = found
        count = first_frame(profiles, worth, aim.every, order, place, frame, features)
        whole[:] = options
        cutoff = aim.least
        depth = 0
        alive = promising(model, profiles, worth, frame, 0, anchor, count, cutoff)
        if alive:
            frame.turn[0] = 0
            frame.rest[0] = whole[features[0]] if count else NONE
        else:
            depth = -1
        while depth >= 0:
            if depth == count:
                value = profit(worth, frame, depth, anchor, 0)
                if aim.every or found == start:
                    if found == len(points):
                        points = np.concatenate((points, np.empty((found, d), np.int64)))
                        serves = np.concatenate((serves, np.zeros((found, n), np.bool_)))
                        profits = np.concatenate((profits, np.empty(found)))
                    found += 1
                serves[found - 1] = False
                serves[found - 1, anchor] = True
                profits[found - 1] = value
                for j in range(d):
                    points[found - 1, j] = lowest(options[j])
                for c in range(frame.size[depth]):
                    k = frame.who[depth, c]
                    serves[found - 1, k] = aim.every or price[k] > people[k] * frame.paid[depth, c]
                if aim.every:
                    if found >= aim.room:
                        return points[:found], serves[:found], profits[:found], False
                else:
                    cutoff = value + BOUND_ROUNDING * (1.0 + abs(value))
                depth -= 1
                continue
            j = features[depth]
            here = codes[anchor, j]
            turn = frame.turn[depth]
            frame.turn[depth] += 1
            if turn < 2:  # keep the anchor's code: nobody changes, or those who differ do
                code, moved, opened = here, False, turn == 1
                frame.rest[depth] &= ~(ONE << np.uint64(here))
                if opened:
                    differ = False
                    for c in range(frame.size[depth]):
                        k = frame.who[depth, c]
                        if codes[k, j] != here and reach[k, j] & (ONE << np.uint64(here)) != NONE:
                            differ = True
                            break
                    if not differ:
                        continue
            elif frame.rest[depth] != NONE:
                code, moved, opened = lowest(frame.rest[depth]), True, True
                frame.rest[depth] &= frame.rest[depth] - ONE
            else:
                options[j] = whole[j]
                depth -= 1
                continue
            if opened and frame.used[depth] >= most:
                continue
            spent += 1
            if spent > aim.limit:
                complete = False
                break
            frame.used[depth + 1] = frame.used[depth] + int(opened)
            keep(profiles, frame, depth, j, code, here, moved, opened)
            options[j] = ONE << np.uint64(code)
            if not promising(model, profiles, worth, frame, depth + 1, anchor, count - depth - 1, cutoff):
                continue
            depth += 1
            frame.turn[depth] = 0
            frame.rest[depth] = whole[features[depth]] if depth < count else NONE
    return points[:found], serves[:found], profits[:found], complete


@njit(cache=True)
def codes_by_cost(codes, people, within, table):
    """Features that may move, codes that each may take, the cheapest first, and the costs of those.

    Features on which the members differ come first, and of both kinds those first on which the score depends most.
    """
    _, changed, allowed, movable, spare = within
    m, d = codes.shape
    features, spread = np.empty(d, np.int64), np.empty(d)
    choices, costs = np.empty((d, WORD), np.int64), np.zeros((d, WORD))
    sizes = np.zeros(d, np.int64)
    count = 0
    for j in range(d):
        mask = allowed[j]
        if not holds(changed, j):
            if not movable[j] or spare == 0:
                continue
            mask |= ONE << np.uint64(codes[0, j])
        most, least = -np.inf, np.inf
        while mask != NONE:
            v = lowest(mask)
            mask &= mask - ONE
            cost = 0.0
            for i in range(m):
                cost += people[i] * int(codes[i, j] != v)
            at = sizes[j]
            while at > 0 and (
                costs[j, at - 1] > cost or (costs[j, at - 1] == cost and table[j, choices[j, at - 1]] < table[j, v])
            ):
                costs[j, at], choices[j, at] = costs[j, at - 1], choices[j, at - 1]
                at -= 1
            costs[j, at], choices[j, at] = cost, v
            sizes[j] += 1
            most, least = max(most, table[j, v]), min(least, table[j, v])
        spread[j] = most - least + (1e12 if holds(changed, j) else 0.0)
        at = count
        while at > 0 and spread[features[at - 1]] < spread[j]:
            features[at] = features[at - 1]
            at -= 1
        features[at] = j
        count += 1
    return features[:count], choices, costs, sizes


@njit(cache=True)
def cheapest(model, within, codes, people, limit):
    """The point of least change for all these members, depth first over its features, the cheapest codes first.

    Parameters
    ----------
    within
        The points that serve them all, as they leave the first of them.
    codes, people
        Of each member, shape (m, features) and (m,).

    Returns
    -------
    point : shape (features,)
    cost : of the point, inf where none was found
    bound : proven on the cost of any point, inf where there is none; below the cost where ``limit`` nodes ended it
    """
    model, within = CodedArrays(*model), Room(*within)
    x, changed, _, _, spare = within
    table, threshold = model.table, model.threshold
    d = codes.shape[1]
    features, choices, costs, sizes = codes_by_cost(codes, people, within, table)
    count = len(features)
    after = np.zeros(count + 1)  # least costs of the features from a place on
    options, whole = np.empty(d, np.uint64), np.empty(d, np.uint64)
    for j in range(d):
        options[j] = ONE << np.uint64(x[j])
    for place in range(count - 1, -1, -1):
        j = features[place]
        if sizes[j] == 0:
            return x.copy(), np.inf, np.inf
        after[place] = after[place + 1] + costs[j, 0]
        mask = NONE
        for q in range(sizes[j]):
            mask |= ONE << np.uint64(choices[j, q])
        options[j] = mask
    whole[:] = options
    best = np.inf
    point, trial = np.empty(d, np.int64), np.empty(d, np.int64)
    # The point of the highest effects, so that there is something to improve on.
    total = propose(table, within, trial)
    if total > -np.inf and score(model, x, trial, np.empty(d, np.uint64)) >= threshold:
        best = 0.0
        for j in range(d):
            point[j] = trial[j]
            for i in range(len(codes)):
                best += people[i] * int(codes[i, j] != trial[j])
    paid, left, turn = np.zeros(count + 1), np.empty(count + 1, np.int64), np.zeros(count + 1, np.int64)
    everybody = people.sum()
    left[0] = spare
    depth, nodes = 0, 0
    if upper(model, x, options, changed, spare) < threshold:
        depth = -1
    if count == 0 and depth == 0:
        return x.copy(), 0.0, 0.0
    while depth >= 0:
        j = features[depth]
        q = turn[depth]
        if q == sizes[j] or paid[depth] + costs[j, q] + after[depth + 1] >= best - 0.5:
            options[j] = whole[j]
            depth -= 1
            continue
        turn[depth] += 1
        v = choices[j, q]
        remaining = left[depth] - int(not holds(changed, j) and v != x[j])
        if remaining < 0:
            continue
        nodes += 1
        if nodes > limit:
            return point, best, after[0]
        options[j] = ONE << np.uint64(v)
        total = paid[depth] + costs[j, q]
        worth = remaining
        if best < np.inf:
            worth = min(remaining, int((best - 0.5 - total - after[depth + 1]) / everybody))
        if upper(model, x, options, changed, worth) < threshold:
            continue
        if depth == count - 1:
            best = total
            for k in range(d):
                point[k] = lowest(options[k])
            continue
        depth += 1
        paid[depth], left[depth], turn[depth] = total, remaining, 0
    return point, best, best
