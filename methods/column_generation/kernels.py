"""Compiled kernels of the search for groups: points of a group, the heaviest and the maximal groups, set covers.

Instances are rows of level codes, ``codes[i, j]``. A group is a set Z of instances; D(Z), the features on which its
instances differ, is a bit mask over features, Z itself one over instances (64-bit words, least significant bit first).
The arrays, and their shapes, are those of ``records``.
"""

from __future__ import annotations

import numpy as np

from harness.core.compiling import njit
from methods.column_generation.records import CodedArrays, Cover, Incidence, Listing, Profiles, Room

LINEAR, NETWORK, TREES = 0, 1, 2
ONE = np.uint64(1)
NONE = np.uint64(0)
WORD = 64
SWEEPS = 4  # of coordinate ascent over the values of a point before the exact search


@njit(cache=True)
def ones(word):
    """Number of bits that are set in a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def lowest(word):
    """Position of the lowest bit that is set."""
    return ones((word & (~word + ONE)) - ONE)


@njit(cache=True)
def holds(mask, place):
    """Whether a bit of a mask of several words is set."""
    return (mask[place >> 6] >> np.uint64(place & 63)) & ONE != NONE


@njit(cache=True)
def best_of(table, j, mask):
    """The greatest entry of row j over a mask of codes, and its code; -1 for an empty mask."""
    best, code = -np.inf, -1
    while mask != NONE:
        v = lowest(mask)
        mask &= mask - ONE
        if table[j, v] > best:
            best, code = table[j, v], v
    return best, code


@njit(cache=True)
def propose(table, within, point):
    """The point of a room that a linear ``table`` puts highest: best codes where it has to change, and the best extras.

    Returns its total over the table; -inf where a changed feature has no code.
    """
    x, changed, allowed, movable, extras = within
    d = len(x)
    total = 0.0
    gains = np.empty(d)
    count = 0
    for j in range(d):
        here = table[j, x[j]]
        point[j] = x[j]
        if holds(changed, j):
            best, code = best_of(table, j, allowed[j])
            if code < 0:
                return -np.inf
            point[j] = code
            total += best
            continue
        total += here
        gains[j] = 0.0
        if extras > 0 and movable[j]:
            best, code = best_of(table, j, allowed[j])
            gains[j] = best - here
            if gains[j] > 0:
                count += 1
    for _ in range(min(extras, count)):
        chosen = -1
        for j in range(d):
            if not holds(changed, j) and point[j] == x[j] and gains[j] > 0 and (chosen < 0 or gains[j] > gains[chosen]):
                chosen = j
        if chosen < 0:
            break
        total += gains[chosen]
        point[chosen] = best_of(table, chosen, allowed[chosen])[1]
    return total


@njit(cache=True)
def most_of(sums, count, d):
    """The sum of the ``count`` largest of d numbers, none negative."""
    if count >= d:
        total = 0.0
        for j in range(d):
            total += sums[j]
        return total
    top = np.zeros(count + 1)
    size = 0
    for j in range(d):
        value = sums[j]
        if value <= 0.0 or (size == count and (count == 0 or value <= top[size - 1])):
            continue
        place = size if size < count else count - 1
        while place > 0 and top[place - 1] < value:
            top[place] = top[place - 1]
            place -= 1
        top[place] = value
        if size < count:
            size += 1
    total = 0.0
    for place in range(size):
        total += top[place]
    return total


@njit(cache=True)
def upper(model, x, options, changed, extras):
    """An upper bound on the score over the codes in ``options``, exact where each feature has one.

    Beside ``changed`` at most ``extras`` features may leave ``x``; the caller has already counted those whose single
    code is another.
    """
    d = len(x)
    if model.kind == LINEAR:
        table = model.table
        total = model.base
        gains = np.zeros(d)
        for j in range(d):
            best, _ = best_of(table, j, options[j])
            if options[j] & (options[j] - ONE) != NONE and not holds(changed, j):
                gains[j] = best - table[j, x[j]]
                best = table[j, x[j]]
            total += best
        return total + most_of(gains, extras, d)
    if model.kind == TREES:
        masks, values, start = model.masks, model.values, model.start
        total = model.base
        for t in range(len(start) - 1):
            best = -np.inf
            for k in range(start[t], start[t + 1]):
                if values[k] <= best:
                    continue
                meets = True
                for j in range(d):
                    if masks[k, j] & options[j] == NONE:
                        meets = False
                        break
                if meets:
                    best = values[k]
            total += best
        return total
    first, weights, shifts, widths = model.first, model.weights, model.shifts, model.widths
    low, high = model.shift.copy(), model.shift.copy()
    width = len(low)
    rises, falls = np.zeros((width, extras + 1)), np.zeros((width, extras + 1))  # the largest first
    for j in range(d):
        mask = options[j]
        if mask & (mask - ONE) == NONE:
            low += first[j, lowest(mask)]
            high += first[j, lowest(mask)]
            continue
        free = holds(changed, j)
        for h in range(width):
            most, least = -np.inf, np.inf
            rest = mask
            while rest != NONE:
                value = first[j, lowest(rest), h]
                rest &= rest - ONE
                most, least = max(most, value), min(least, value)
            if free:
                high[h] += most
                low[h] += least
            else:
                here = first[j, x[j], h]
                high[h] += here
                low[h] += here
                for gains, gain in ((rises, most - here), (falls, here - least)):
                    place = extras
                    while place > 0 and gains[h, place - 1] < gain:
                        gains[h, place] = gains[h, place - 1]
                        place -= 1
                    gains[h, place] = gain
    for h in range(width):
        for place in range(extras):
            high[h] += rises[h, place]
            low[h] -= falls[h, place]
    at, shift_at = 0, 0
    for layer in range(len(widths) - 1):
        rows, columns = widths[layer], widths[layer + 1]
        next_low, next_high = np.empty(columns), np.empty(columns)
        for c in range(columns):
            next_low[c] = next_high[c] = shifts[shift_at + c]
        for r in range(rows):
            bottom, top = max(low[r], 0.0), max(high[r], 0.0)
            for c in range(columns):
                weight = weights[at + r * columns + c]
                if weight > 0:
                    next_high[c] += weight * top
                    next_low[c] += weight * bottom
                else:
                    next_high[c] += weight * bottom
                    next_low[c] += weight * top
        at += rows * columns
        shift_at += columns
        low, high = next_low, next_high
    return high[0]


@njit(cache=True)
def score(model, x, point, options):
    """The model's score of a point; ``options`` is scratch space."""
    for j in range(len(x)):
        options[j] = ONE << np.uint64(point[j])
    return upper(CodedArrays(*model), x, options, options, 0)


@njit(cache=True)
def climb(model, within, point, options):
    """Coordinate ascent from a point within a room: whether it reaches the threshold, and how many points it tried."""
    x, changed, allowed, movable, extras = within
    d = len(x)
    value, tried = score(model, x, point, options), 0
    for _ in range(SWEEPS):
        before = value
        for j in range(d):
            own = holds(changed, j)
            if not own and (extras == 0 or not movable[j]):
                continue
            used = 0
            for k in range(d):
                used += int(not holds(changed, k) and point[k] != x[k])
            mask = allowed[j]
            if not own:
                mask |= ONE << np.uint64(x[j])
            kept = point[j]
            while mask != NONE:
                v = lowest(mask)
                mask &= mask - ONE
                if v == point[j] or (not own and point[j] == x[j] and used >= extras):
                    continue
                old = point[j]
                point[j] = v
                found = score(model, x, point, options)
                tried += 1
                if found > value:
                    value, kept = found, v
                else:
                    point[j] = old
            point[j] = kept
            if value >= model.threshold:
                return True, tried
        if value <= before:
            break
    return False, tried


@njit(cache=True)
def attains(model, within, point, limit):
    """Whether a point of a room reaches the threshold, and the nodes that this took, points of the ascent among them.

    1: yes, and it is in ``point``; 0: no; -1: undecided, as the search had no end within ``limit`` nodes. The ascent
    is made whatever the limit.
    """
    model, within = CodedArrays(*model), Room(*within)
    x, changed, allowed, movable, extras = within
    table, threshold = model.table, model.threshold
    total = propose(table, within, point)
    if total == -np.inf:
        return 0, 1
    if model.kind == LINEAR:
        return int(total + model.base >= threshold), 1
    d = len(x)
    options = np.empty(d, np.uint64)
    if score(model, x, point, options) >= threshold:
        return 1, 1
    reached, tried = climb(model, within, point, options)
    if reached:
        return 1, tried
    # Depth first over the features that may move, those with the largest effects first.
    order, spread = np.empty(d, np.int64), np.zeros(d)
    count = 0
    for j in range(d):
        own = holds(changed, j)
        options[j] = ONE << np.uint64(x[j])
        if own:
            options[j] = allowed[j]
        elif movable[j] and extras > 0:
            options[j] |= allowed[j]
        if options[j] & (options[j] - ONE) != NONE:
            most, least = -np.inf, np.inf
            for v in range(WORD):
                if (options[j] >> np.uint64(v)) & ONE != NONE:
                    most, least = max(most, table[j, v]), min(least, table[j, v])
            spread[j] = most - least + (1e6 if own else 0.0)
            place = count
            while place > 0 and spread[order[place - 1]] < spread[j]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = j
            count += 1
    if upper(model, x, options, changed, extras) < threshold:
        return 0, tried
    every = options.copy()
    left = np.empty(count + 1, np.int64)  # extras that are left
    rest = np.empty(count + 1, np.uint64)  # codes not tried yet
    depth, nodes = 0, 0
    left[0] = extras
    rest[0] = every[order[0]] if count else NONE
    while depth >= 0:
        j = order[depth]
        if rest[depth] == NONE:
            options[j] = every[j]
            depth -= 1
            continue
        v = lowest(rest[depth])
        rest[depth] &= rest[depth] - ONE
        remaining = left[depth] - int(not holds(changed, j) and v != x[j])
        if remaining < 0:
            continue
        options[j] = ONE << np.uint64(v)
        nodes += 1
        if nodes > limit:
            return -1, tried + nodes
        if upper(model, x, options, changed, remaining) < threshold:
            continue
        if depth == count - 1:
            for k in range(d):
                point[k] = lowest(options[k])
            return 1, tried + nodes
        depth += 1
        left[depth] = remaining
        rest[depth] = every[order[depth]]
    return 0, tried + nodes


@njit(cache=True)
def search(model, profiles, weight, order, first, aim):
    r"""Groups of at least a weight, by depth-first search over their members.

    Each group is built from its first member in ``order``, the anchor. A member j joins the group Z, whose instances
    differ on the features D(Z). An instance that differs from the anchor on D(Z) only joins at once; a branch that such
    an excluded instance would join has been searched before. A group keeps its valid point when members leave, so a
    group without one is not extended. The candidates j of a node can add at most

    .. math:: \max_{|G| \le T - |D|} \sum_{l \in G} S_l, \quad S_l = \textstyle\sum_j s_{jl},

    for any shares :math:`\sum_{l \in D_j \setminus D} s_{jl} = w_j` of the weights: the bound.

    Parameters
    ----------
    weight
        Of each instance, not negative, shape (n,).
    first
        Anchors before this place in ``order`` are done.
    aim
        A ``Listing``.

    Returns
    -------
    groups : uint64, shape (found, words)
    weights : shape (found,)
    reached : the place of the first anchor that is not done, the number of instances when all are; -1 without room
    """
    model, profiles, aim = CodedArrays(*model), Profiles(*profiles), Listing(*aim)
    codes, reach, movable, most, free = profiles
    least, listing, room, limit = aim
    n, d = codes.shape
    words, bands = (n + 63) // 64, (d + 63) // 64
    groups, heavy = np.zeros((16, words), np.uint64), np.zeros(16)
    found, spent = 0, 0
    diff = np.zeros((n, bands), np.uint64)
    pool, out = np.empty((n + 2, n), np.int64), np.empty((n + 2, n), np.bool_)
    lot = np.empty((n + 2, n), np.int64)  # the feature that bears a candidate's weight in the bound, -1: none
    sums = np.zeros((n + 2, d))
    size, at = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    changed, members = np.zeros((n + 2, bands), np.uint64), np.zeros((n + 2, words), np.uint64)
    allowed = np.zeros((n + 2, d), np.uint64)
    total, spares, extensible = np.zeros(n + 2), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.bool_)
    base = np.zeros(n + 2)
    point = np.empty(d, np.int64)
    best_group = np.zeros(words, np.uint64)
    for place in range(first, n):
        anchor = order[place]
        start = found
        # Depth 0: the anchor alone; all near enough instances are candidates, those before it in order excluded.
        for k in range(n):
            for b in range(bands):
                diff[k, b] = NONE
        used = 0
        for rank in range(n):
            k = order[rank]
            if k == anchor:
                continue
            many = 0
            for j in range(d):
                if codes[k, j] != codes[anchor, j]:
                    if not movable[j]:
                        many = d + 1
                        break
                    many += 1
                    diff[k, j >> 6] |= ONE << np.uint64(j & 63)
            if many <= most:
                pool[1, used], out[1, used] = k, rank < place
                used += 1
        size[1] = used
        members[0, :] = NONE
        members[0, anchor >> 6] |= ONE << np.uint64(anchor & 63)
        changed[0, :] = NONE
        allowed[0, :] = reach[anchor]
        total[0] = weight[anchor]
        cutoff = least  # weight that a group of this anchor has to exceed, or when listing to reach
        found_here = False
        depth = 0
        child = anchor
        making = True  # a node, at ``depth``, of the candidates in pool[depth + 1], which it narrows in place
        while True:
            if making:
                making = False
                here = depth
                spent += 1
                if spent > limit:
                    return groups[:start], heavy[:start], place
                # Narrow the candidates; those that differ nowhere else join. If one is excluded, this was searched.
                spare = most - _size(changed[here])
                kept, seen = 0, False
                for c in range(size[here + 1]):
                    k = pool[here + 1, c]
                    if k == child:
                        continue
                    many = 0
                    for b in range(bands):
                        many += ones(diff[k, b] & ~changed[here, b])
                    if many > spare:
                        continue
                    if many == 0 and (free or _unmoved(allowed[here], reach[k])):
                        if out[here + 1, c]:
                            seen = True
                            break
                        members[here, k >> 6] |= ONE << np.uint64(k & 63)
                        total[here] += weight[k]
                        continue
                    pool[here + 1, kept], out[here + 1, kept] = k, out[here + 1, c]
                    kept += 1
                alive = not seen
                if alive:
                    size[here + 1] = kept
                    sums[here, :] = 0.0
                    base[here] = 0.0
                    for turn in range(2):  # a candidate with one missing feature has no choice where to put its weight
                        for c in range(kept):
                            k = pool[here + 1, c]
                            if turn == 0:
                                lot[here, c] = -1
                            if out[here + 1, c] or weight[k] == 0.0:
                                continue
                            many, chosen = 0, -1
                            for b in range(bands):
                                rest = diff[k, b] & ~changed[here, b]
                                many += ones(rest)
                                while rest != NONE:
                                    j = (b << 6) + lowest(rest)
                                    rest &= rest - ONE
                                    if chosen < 0 or sums[here, j] < sums[here, chosen]:
                                        chosen = j
                            if many == 0:
                                if turn == 0:
                                    base[here] += weight[k]
                            elif (many == 1) == (turn == 0):
                                lot[here, c] = chosen
                                sums[here, chosen] += weight[k]
                    spares[here] = spare
                    bound = total[here] + base[here] + most_of(sums[here], spare, d)
                    alive = bound >= cutoff if listing else bound > cutoff
                if alive or (seen and listing and not extensible[depth - 1]):
                    within = Room(codes[anchor], changed[here], allowed[here], movable, spare)
                    settled, taken = attains(model, within, point, limit - spent)
                    spent += taken
                    if settled < 0:
                        return groups[:start], heavy[:start], place
                    if settled == 0:
                        alive = False
                    elif depth > 0:
                        extensible[depth - 1] = True
                if not alive:
                    depth -= 1
                    if depth < 0:
                        break
                    continue
                at[here] = 0
                extensible[here] = False
                if not listing and total[here] > cutoff:
                    cutoff, found_here = total[here], True
                    best_group[:] = members[here]
                continue
            # The next candidate of the node at ``depth``.
            c = at[depth]
            if c >= size[depth + 1]:
                if listing and not extensible[depth] and total[depth] >= cutoff:
                    if found == len(groups):
                        groups, heavy = _grown(groups), np.append(heavy, np.zeros(found))
                    groups[found], heavy[found] = members[depth], total[depth]
                    found += 1
                    if found >= room:
                        return groups[:start], heavy[:start], -1
                depth -= 1
                if depth < 0:
                    break
                continue
            at[depth] = c + 1
            k = pool[depth + 1, c]
            if out[depth + 1, c]:
                if listing and not extensible[depth]:
                    # Excluded candidates only tell whether the group could be larger.
                    spent += 1
                    for b in range(bands):
                        changed[depth + 1, b] = changed[depth, b] | diff[k, b]
                    for j in range(d):
                        allowed[depth + 1, j] = allowed[depth, j] & reach[k, j]
                    spare = most - _size(changed[depth + 1])
                    within = Room(codes[anchor], changed[depth + 1], allowed[depth + 1], movable, spare)
                    settled, taken = attains(model, within, point, limit - spent)
                    spent += taken
                    if settled < 0:
                        return groups[:start], heavy[:start], place
                    if settled == 1:
                        extensible[depth] = True
                continue
            bound = total[depth] + base[depth] + most_of(sums[depth], spares[depth], d)
            if (listing and bound < cutoff) or (not listing and bound <= cutoff):
                at[depth] = size[depth + 1]  # the remaining candidates are too light, and so is the group itself
                continue
            # Include k below; from then on it is excluded here.
            out[depth + 1, c] = True
            if lot[depth, c] >= 0:
                sums[depth, lot[depth, c]] -= weight[k]
            elif weight[k] > 0.0:
                base[depth] -= weight[k]
            for b in range(bands):
                changed[depth + 1, b] = changed[depth, b] | diff[k, b]
            for j in range(d):
                allowed[depth + 1, j] = allowed[depth, j] & reach[k, j]
            members[depth + 1, :] = members[depth]
            members[depth + 1, k >> 6] |= ONE << np.uint64(k & 63)
            total[depth + 1] = total[depth] + weight[k]
            for e in range(size[depth + 1]):
                pool[depth + 2, e], out[depth + 2, e] = pool[depth + 1, e], out[depth + 1, e]
            size[depth + 2] = size[depth + 1]
            depth += 1
            child = k
            making = True
        if not listing and found_here:
            if found == len(groups):
                groups, heavy = _grown(groups), np.append(heavy, np.zeros(found))
            groups[found], heavy[found] = best_group, cutoff
            found += 1
    return groups[:found], heavy[:found], n


@njit(cache=True)
def _size(mask):
    total = 0
    for b in range(len(mask)):
        total += ones(mask[b])
    return total


@njit(cache=True)
def _unmoved(allowed, reach):
    """Whether a further member leaves the codes that a group may take unchanged."""
    return np.all(allowed & ~reach == NONE)


@njit(cache=True)
def _grown(rows):
    larger = np.zeros((2 * len(rows), rows.shape[1]), np.uint64)
    larger[: len(rows)] = rows
    return larger


@njit(cache=True)
def extend(model, profiles, order, groups, points, limit):
    """Make groups maximal, in place: instances join in this order where they can, and -1 in ``points`` is overwritten.

    Returns whether that ended within ``limit`` nodes. Groups are as they were where none joined, their points too.
    """
    model, profiles = CodedArrays(*model), Profiles(*profiles)
    codes, reach, movable, most, _ = profiles
    n, d = codes.shape
    bands = (d + 63) // 64
    changed, wider = np.zeros(bands, np.uint64), np.zeros(bands, np.uint64)
    allowed, narrower = np.zeros(d, np.uint64), np.zeros(d, np.uint64)
    point, spent = np.empty(d, np.int64), 0
    for g in range(len(groups)):
        anchor = -1
        for k in range(n):
            if not holds(groups[g], k):
                continue
            if anchor < 0:
                anchor = k
                changed[:] = NONE
                allowed[:] = reach[k]
            for j in range(d):
                allowed[j] &= reach[k, j]
                if codes[k, j] != codes[anchor, j]:
                    changed[j >> 6] |= ONE << np.uint64(j & 63)
        for k in order:
            if holds(groups[g], k):
                continue
            wider[:] = changed
            possible = True
            for j in range(d):
                narrower[j] = allowed[j] & reach[k, j]
                if codes[k, j] != codes[anchor, j]:
                    possible &= movable[j]
                    wider[j >> 6] |= ONE << np.uint64(j & 63)
            extras = most - _size(wider)
            if not possible or extras < 0:
                continue
            within = Room(codes[anchor], wider, narrower, movable, extras)
            settled, taken = attains(model, within, point, limit - spent)
            spent += taken
            if settled < 0:
                return False
            if settled == 1:
                groups[g, k >> 6] |= ONE << np.uint64(k & 63)
                points[g] = point
                changed[:] = wider
                allowed[:] = narrower
    return True


@njit(cache=True)
def improve(incidence, chosen, rounds, seed):
    """Fewer columns that cover all rows, by local search with row weights; ``chosen`` is a cover and is improved.

    One column is dropped from the cover, then columns are swapped, the one whose loss weighs least against the one
    whose gain weighs most, rows that stay uncovered growing heavier, until all are covered again; and so on for so many
    swaps.
    """
    incidence = Incidence(*incidence)
    rows, row_start, columns, column_start = incidence
    count, size = len(row_start) - 1, len(column_start) - 1
    state = np.uint64(2 * seed + 1)
    best = chosen.copy()
    inside = chosen.copy()
    picked = np.empty(count, np.int64)  # the columns inside, in no order
    many = 0
    covered = np.zeros(size, np.int64)
    weight = np.ones(size)
    gain, loss = np.zeros(count), np.zeros(count)
    cover = Cover(inside, covered, weight, gain, loss)
    stamp = np.zeros(count, np.int64)
    for c in range(count):
        if inside[c]:
            picked[many] = c
            many += 1
            for p in range(row_start[c], row_start[c + 1]):
                covered[rows[p]] += 1
    for c in range(count):
        for p in range(row_start[c], row_start[c + 1]):
            if covered[rows[p]] == 1 and inside[c]:
                loss[c] += 1.0
    open_rows = np.empty(size, np.int64)
    into = -1
    for turn in range(rounds):
        missing = 0
        for i in range(size):
            if covered[i] == 0:
                open_rows[missing] = i
                missing += 1
        if missing == 0:
            best[:] = inside
            into = -1
        # The column to leave: not the one that came last.
        place = -1
        for q in range(many):
            c = picked[q]
            if c == into:
                continue
            least = picked[max(place, 0)]
            if place < 0 or loss[c] < loss[least] or (loss[c] == loss[least] and stamp[c] < stamp[least]):
                place = q
        out = -1
        if place >= 0:
            out = picked[place]
            many -= 1
            picked[place] = picked[many]
            _flip(out, incidence, cover)
            stamp[out] = turn
        if missing == 0:
            if out < 0:
                return best
            continue
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)  # Knuth's MMIX generator
        row = open_rows[np.int64(state >> np.uint64(33)) % missing]
        into = -1
        for p in range(column_start[row], column_start[row + 1]):
            c = columns[p]
            if c == out:
                continue
            if into < 0 or gain[c] > gain[into] or (gain[c] == gain[into] and stamp[c] < stamp[into]):
                into = c
        if into >= 0:
            _flip(into, incidence, cover)
            picked[many] = into
            many += 1
            stamp[into] = turn
        for i in range(size):
            if covered[i] == 0:
                weight[i] += 1.0
                for p in range(column_start[i], column_start[i + 1]):
                    gain[columns[p]] += 1.0
    return best


@njit(cache=True)
def _flip(c, incidence, cover):
    """Put a column into a cover, or take it out."""
    rows, row_start, columns, column_start = incidence
    inside, covered, weight, gain, loss = cover
    step = -1 if inside[c] else 1
    inside[c] = False
    loss[c] = 0.0
    for p in range(row_start[c], row_start[c + 1]):
        i = rows[p]
        others = min(covered[i], covered[i] + step)
        covered[i] += step
        if others == 0:
            loss[c] += weight[i] if step > 0 else 0.0
        for q in range(column_start[i], column_start[i + 1]):
            if others == 0:
                gain[columns[q]] -= step * weight[i]
            elif others == 1 and inside[columns[q]]:
                loss[columns[q]] -= step * weight[i]
    inside[c] = step > 0


@njit(cache=True)
def effects(model, codes, sizes):
    """The effect of each code of each feature on the score, a mean over instances, shape (features, 64)."""
    model = CodedArrays(*model)
    n, d = codes.shape
    table = np.zeros((d, WORD))
    options = np.empty(d, np.uint64)
    point = np.empty(d, np.int64)
    for i in range(n):
        for j in range(d):
            point[j] = codes[i, j]
        for j in range(d):
            for v in range(sizes[j]):
                point[j] = v
                table[j, v] += score(model, codes[i], point, options) / n
            point[j] = codes[i, j]
    return table


@njit(cache=True)
def listed(model, x, allowed, movable, changes, room, limit):
    """Up to ``room`` points that reach the threshold and leave x on exactly so many features.

    Returns the points, shape (found, features), and whether the search ended or filled ``room`` within ``limit``
    nodes.
    """
    model = CodedArrays(*model)
    d = len(x)
    points = np.empty((room, d), np.int64)
    found, nodes = 0, 0
    options = np.empty(d, np.uint64)
    every = np.empty(d, np.uint64)
    nothing = np.zeros((d + 63) // 64, np.uint64)
    after = np.zeros(d + 1, np.int64)  # features from a place on that can move
    for j in range(d - 1, -1, -1):
        own = ONE << np.uint64(x[j])
        every[j] = own | allowed[j] if movable[j] else own
        options[j] = every[j]
        after[j] = after[j + 1] + int(every[j] != own)
    left = np.empty(d + 1, np.int64)
    rest = np.empty(d + 1, np.uint64)
    left[0], rest[0] = changes, every[0]
    depth = 0
    while depth >= 0:
        if rest[depth] == NONE:
            options[depth] = every[depth]
            depth -= 1
            continue
        v = lowest(rest[depth])
        rest[depth] &= rest[depth] - ONE
        remaining = left[depth] - int(v != x[depth])
        if remaining < 0 or remaining > after[depth + 1]:
            continue
        options[depth] = ONE << np.uint64(v)
        nodes += 1
        if nodes > limit:
            return points[:found], False
        # Decided features have single codes: the bound gives the remaining changes to the others.
        if upper(model, x, options, nothing, remaining) < model.threshold:
            continue
        if depth == d - 1:
            for j in range(d):
                points[found, j] = lowest(options[j])
            found += 1
            if found == room:
                return points, True
            continue
        depth += 1
        left[depth], rest[depth] = remaining, every[depth]
    return points[:found], True
