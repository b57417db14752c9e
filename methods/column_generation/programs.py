"""The published solvers: one mixed-integer program, and column generation that prices by one; and their refinements."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.space import Kind, Space
from harness.core.tolerances import BOUND_ROUNDING, COLUMN_WEIGHT, WHOLE_BOUND
from harness.solvers.cover import Cover
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.column_generation.group import Group, places
from methods.column_generation.search import Found, greedy, maximal
from methods.milp.category_block import CategoryBlock
from methods.milp.embed.registry import embed
from methods.milp.variables import Variables

SHARE = 0.25  # of the remaining time, for the integer master


class Point:
    """A point in a program: its levels, the embedded classifier, and the constraint that it predicts the target."""

    def __init__(self, group: Group, program: Program) -> None:
        self.group = group
        self.space: Space = group.space
        variables = Variables(program, self.space, cells=False)
        self.blocks: list[CategoryBlock] = variables.blocks
        self.inputs: list[Any] = [variables.source(source) for source in group.inputs]
        coded = group.coded
        self.embedded = embed(coded.estimator, program, self.inputs, coded.sign)
        program.add(coded.sign * self.embedded.outputs[0] >= coded.threshold)  # (2), (24)
        self.program = program

    def compile(self) -> Compiled:
        compiled = self.program.compile()
        self.compiled = compiled
        self.embedded.attach(compiled)
        if self.embedded.tighten is not None:
            self.embedded.tighten(self._bounds)
        self.levels = [[compiled.linear(block.level(code) + 0) for code in range(block.size)] for block in self.blocks]
        return compiled

    def keep_within_reach(self, serves: list[Any]) -> None:
        """A point that serves an instance takes no value that the instance may not change to."""
        group = self.group
        for i, served in enumerate(serves):
            for j, block in enumerate(self.blocks):
                own, mask = int(group.codes[i, j]), int(group.reach[i, j])
                if not group.movable[j]:
                    self.program.add(served <= block.level(own))
                    continue
                forbidden = [code for code in range(block.size) if not mask >> code & 1]
                if forbidden:
                    self.program.add(served + sum(block.level(code) for code in forbidden) <= 1)

    def read(self, x: np.ndarray, shift: int = 0) -> np.ndarray:
        """Level codes of a solution, in the copy whose columns begin at ``shift``."""
        part = x[shift : shift + len(self.compiled.low)]
        return np.array([int(np.argmax([level(part) for level in levels])) for levels in self.levels])

    def _bounds(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = shift.astype(float).copy(), shift.astype(float).copy()
        for block in self.blocks:
            table = np.zeros((len(weights), block.size))
            for column, source in enumerate(self.inputs):
                if source.block is block:
                    table += np.outer(weights[:, column], source.table)
            low, high = low + table.min(axis=1), high + table.max(axis=1)
        slack = BOUND_ROUNDING * (1.0 + np.abs(low) + np.abs(high))
        return low - slack, high + slack


class Pricing:
    r"""The heaviest group by mixed-integer program.

    .. math::
        \max \; & \textstyle\sum_i w_i z_i                                          & (23) \\
        \text{s.t. } & P(v) \ge \tau                                                & (24) \\
             & f_l \ge z_i - [v_l = \hat x_{il}]                                    & (25, 26) \\
             & \textstyle\sum_l f_l \le T, \quad \textstyle\sum_{h \in T_l} v_h = 1 & (27, 28)

    (25) and (26) stand in one row a feature and instance, without the auxiliary variables of their linearisation.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        program = Program()
        self.point = Point(group, program)
        serves = [program.binary() for _ in range(group.size)]
        moves = [program.variable(0, int(movable)) for movable in group.movable]  # integral as the levels are
        for i, served in enumerate(serves):
            for j, block in enumerate(self.point.blocks):
                if group.movable[j]:
                    program.add(moves[j] >= served - block.level(int(group.codes[i, j])))
        program.add(sum(moves) <= group.most)
        self.point.keep_within_reach(serves)
        self.compiled = self.point.compile()
        self.serves = np.array([self.compiled.column(served) for served in serves], dtype=np.int32)
        self.moves = np.array([self.compiled.column(move) for move in moves], dtype=np.int32)

    def solve(self, weight: np.ndarray, seconds: float) -> tuple[list[np.ndarray], float, bool]:
        """Groups that the solver found, the best last, a bound on the weight of any group, and whether it is proven."""
        met: list[np.ndarray] = []
        solution = self.compiled.solve(Linear(self.serves, -weight), seconds, met=met)
        if solution.x is not None:
            met.append(solution.x)
        return [self._members(x) for x in met], -solution.bound, solution.proven

    def wider(self, members: np.ndarray, deadline: Deadline) -> list[np.ndarray]:
        """Groups by the two programs of section 4.3: the assignment for a fixed point, the point for the assignment."""
        found = []
        low, high = self.compiled.low.copy(), self.compiled.high.copy()
        point = self.group.point(members, deadline)
        for _ in range(2):
            if point is None:
                break
            mark = self.compiled.mark()
            for level, code in zip(self.point.levels, point, strict=True):
                self.compiled.add_row(level[code], low=1.0)
            every = Linear(self.serves, -np.ones(len(self.serves)))
            solution = self.compiled.solve(every, deadline.left, confirm=False)
            self.compiled.rewind(mark)
            if solution.x is None:
                break
            found.append(self._members(solution.x))
            self.compiled.low[self.serves[found[-1]]] = 1.0
            fewest = Linear(self.moves, np.ones(len(self.moves)))
            solution = self.compiled.solve(fewest, deadline.left, confirm=False)
            self.compiled.low[:], self.compiled.high[:] = low, high
            point = None if solution.x is None else self.point.read(solution.x)
        return found

    def _members(self, x: np.ndarray) -> np.ndarray:
        return np.flatnonzero(x[self.serves] > 0.5)


def solve_by_columns(group: Group, seed: int, deadline: Deadline) -> Found:
    """Column generation with ``Pricing``, then the master over the columns found; certified where ⌈LP⌉ meets it."""
    columns = _first(group, deadline)
    cover, known = Cover(group.size), {column.tobytes() for column in columns}
    cover.add(columns)
    pool: list[np.ndarray] = []
    bound, single, trace = 0.0, 0.0, []
    pricing = Pricing(group)
    end = deadline.at - SHARE * deadline.left

    def add(found: list[np.ndarray], weight: np.ndarray) -> int:
        """Add violated columns (20) to the master, others to the pool; drop those valid only within a tolerance."""
        new = []
        for column in found:
            if not len(column) or column.tobytes() in known:
                continue
            if weight[column].sum() <= 1.0 + COLUMN_WEIGHT:
                pool.append(column)
            elif group.point(column, deadline) is not None:
                known.add(column.tobytes())
                new.append(column)
        cover.add(new)
        return len(new)

    while not (inner := Deadline(end)).passed and (relaxed := cover.relax(inner.left)) is not None:
        value, weight = relaxed
        waiting, pool = pool, []
        if add(waiting, weight):
            continue
        found, heaviest, proven = pricing.solve(weight, inner.left)
        # Farley's bound, which holds for a pricing that was stopped too: by a single run, which proves nothing.
        farley = weight.sum() / max(heaviest, 1.0) if math.isfinite(heaviest) else 0.0
        bound, single = max(bound, farley if proven else 0.0), max(single, farley)
        trace.append({"step": "pricing", "columns": len(cover.columns), "value": value, "bound": single})
        if not found or weight[found[-1]].sum() <= 1.0 + COLUMN_WEIGHT:
            break
        if not add([*found, *pricing.wider(found[-1], inner)], weight):
            break
    solution = Cover.solve(group.size, cover.columns, deadline.left)
    groups = greedy(group.size, cover.columns)
    if solution.x is not None and solution.x.round().sum() < len(groups):
        groups = [cover.columns[place] for place in np.flatnonzero(solution.x > 0.5)]
    bound = max(bound, min(single, len(groups) - 1.0))
    trace.append({"step": "master", "columns": len(cover.columns), "bound": bound, "groups": len(groups)})
    return Found(groups, min(max(math.ceil(bound - WHOLE_BOUND), 1), len(groups)), trace)


def _first(group: Group, deadline: Deadline) -> list[np.ndarray]:
    """A counterfactual for each profile; profiles with equal ones share a column as far as T allows."""
    columns: list[list[int]] = []
    by_point: dict[bytes, list[list[int]]] = {}
    for place in range(group.size):
        point = group.point(np.array([place]), deadline)
        assert point is not None  # all profiles here can be covered
        sharing = by_point.setdefault(point.tobytes(), [])
        for column in sharing:
            joined = np.array([*column, place])
            if (group.codes[joined] != point).any(axis=0).sum() <= group.most:
                column.append(place)
                break
        else:
            sharing.append([place])
            columns.append(sharing[-1])
    return [np.array(column) for column in columns]


def solve_at_once(group: Group, seed: int, deadline: Deadline, added: bool = True) -> Found:
    r"""The program (1)-(14), asked for fewer points than a greedy cover by maximal groups has, points in use first.

    .. math::
        \min \; & \textstyle\sum_k y^k                                                       & (1) \\
        \text{s.t. } & P(x^k) \ge \tau                                                       & (2) \\
             & d_h^k \ge \gamma_{ih}^k, \; \gamma_{ih}^k \le \xi_{ih}^k, \; \gamma_{ih}^k \le a_i^k, \;
               \gamma_{ih}^k \ge \xi_{ih}^k + a_i^k - 1                                       & (11\text{-}14) \\
             & |T_l| f_l^k \ge \textstyle\sum_{h \in T_l} d_h^k, \quad \textstyle\sum_l f_l^k \le T y^k & (4, 5) \\
             & \textstyle\sum_k a_i^k \ge 1, \quad a_i^k \le y^k                             & (7, 8) \\
             & |\hat x_{ih} - v_h^k| \le \xi_{ih}^k                                           & (9, 10) \\
             & y^k \ge y^{k+1}

    ``added``, none of which changes the optimum, C being instances of which no two can share a point: with K points in
    the greedy cover, there are K - 1, and where they do not suffice, K is the least; d, :math:`\gamma` and :math:`\xi`
    are continuous, as they are integral of themselves; and

    .. math::
        \textstyle\sum_{i \in C} a_i^k \le y^k, \qquad f_l^k \ge a_i^k - [v_l^k = \hat x_{il}]; \qquad
            a_{c_k}^k = 1, \quad a_{i_r}^k = 0 \text{ for } k > |C^*| + r

    against symmetry: the members :math:`c_1, c_2, \dots` of the largest known set :math:`C^*` have the first points,
    and the r-th of the others opens at most the r-th of the further ones.
    """
    larger = [places(bits[0], group.size) for bits in maximal(group, deadline)]
    groups = greedy(group.size, [*_first(group, deadline), *larger])
    cliques = _cliques(_apart(group, deadline)) if added else []
    known = max(map(len, cliques), default=1)
    if len(groups) <= known:
        return Found(groups, len(groups), [{"step": "cover", "bound": float(known), "groups": len(groups)}])
    single, used, columns_of = _one_point(group, cliques, added)
    width, copies = len(single.low), len(groups) - added
    repeated = single.repeated(copies)
    starts = width * np.arange(copies)
    for column in columns_of:
        repeated.add_row(Linear((starts + column).astype(np.int32), np.ones(copies)), low=1.0)  # (7)
    for start in starts[:-1]:
        repeated.add_row(Linear(np.array([start + used, start + width + used]), np.array([1.0, -1.0])), low=0.0)
    if added:
        largest = max(cliques, key=len, default=np.zeros(1, dtype=int))
        repeated.low[starts[: len(largest)] + columns_of[largest]] = 1.0
        for rank, place in enumerate(np.setdiff1d(np.arange(group.size), largest)):
            repeated.high[starts[len(largest) + rank + 1 :] + columns_of[place]] = 0.0
    solution = repeated.solve(Linear((starts + used).astype(np.int32), np.ones(copies)), deadline.left)
    if solution.x is not None:
        members = [np.flatnonzero(solution.x[start + columns_of] > 0.5) for start in starts]
        chosen = [column for start, column in zip(starts, members, strict=True) if solution.x[start + used] > 0.5]
        points = [group.point(column, deadline) for column in chosen if len(column)]
        if all(point is not None for point in points):  # not only within a tolerance
            groups = chosen
    bound = max(solution.limit(len(groups), 1.0), float(known))
    bound = len(groups) if solution.infeasible else max(math.ceil(bound - WHOLE_BOUND), 1)
    trace = [{"step": "program", "columns": width * copies, "bound": solution.bound, "groups": len(groups)}]
    return Found([column for column in groups if len(column)], min(bound, len(groups)), trace)


def _one_point(group: Group, cliques: list[np.ndarray], added: bool) -> tuple[Compiled, int, np.ndarray]:
    """The rows of one point; the column that says whether it is in use, and those of the instances that it serves."""
    program = Program()
    point = Point(group, program)
    use = program.binary()
    serves = [program.binary() for _ in range(group.size)]
    moves = [program.binary() for _ in range(len(point.blocks))]
    for j, block in enumerate(point.blocks):
        codes = [1] if block.feature.kind is Kind.BINARY and block.size == 2 else range(block.size)
        number = program.variable if added else program.binary
        columns = [number() for _ in codes]
        program.add(len(columns) * moves[j] >= sum(columns))  # (4)
        for i, served in enumerate(serves):
            if added:
                program.add(moves[j] >= served - block.level(int(group.codes[i, j])))
            for code, column in zip(codes, columns, strict=True):
                differs, counted = number(), number()
                own = int(group.codes[i, j] == code)
                program.add(own - block.level(code) <= differs)  # (9)
                program.add(own - block.level(code) >= -differs)  # (10)
                program.add(column >= counted)  # (11)
                program.add(counted <= differs)  # (12)
                program.add(counted <= served)  # (13)
                program.add(counted >= differs + served - 1)  # (14)
    program.add(sum(moves) <= group.most * use)  # (5)
    for served in serves:
        program.add(served <= use)  # (8)
    for clique in cliques:
        program.add(sum(serves[place] for place in clique) <= use)
    point.keep_within_reach(serves)
    single = point.compile()
    return single, single.column(use), np.array([single.column(served) for served in serves])


def _apart(group: Group, deadline: Deadline) -> np.ndarray:
    """Pairs of instances that are proven to share no point, bool, shape (n, n)."""
    apart = np.zeros((group.size, group.size), dtype=bool)
    for i, j in combinations(range(group.size), 2):
        if deadline.passed:
            break
        apart[i, j] = apart[j, i] = not group.may_share(np.array([i, j]), deadline)
    return apart


def _cliques(apart: np.ndarray) -> list[np.ndarray]:
    """Sets within which no two share a point, grown greedily from pairs; every such pair is in one of them."""
    left, found = np.triu(apart), []
    while left.any():
        i, j = np.argwhere(left)[0]
        clique, open_ = [i, j], apart[i] & apart[j]
        while open_.any():
            clique.append(int(np.argmax(np.where(open_, (apart & open_).sum(axis=1), -1))))
            open_ = open_ & apart[clique[-1]]
        found.append(np.sort(clique))
        left[np.ix_(found[-1], found[-1])] = False
    return found
