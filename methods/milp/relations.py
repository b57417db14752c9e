"""Relations between features as rows of a program: of each clause at least one literal holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.core.relations import Row, all_kept
from harness.core.space import Kind
from harness.core.tolerances import DECODING
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled
from methods.milp.block import INTEGRAL
from methods.milp.forms import scaled
from methods.milp.variables import Variables

MARGIN = 2 * INTEGRAL  # of a row's range: what keeps a point within it where the solver's tolerance took it beyond
Ends = Mapping[str, tuple[float, float]]  # of numbers, in original units
POLISH = 10 * INTEGRAL  # of a number's range: how far a decoded number is moved at most so that it keeps a relation


class _Stated(NamedTuple):
    """A literal in units of its range: ``form <= most``, and the least and the greatest value of the form."""

    form: Linear
    most: float
    least: float
    greatest: float
    whole: bool  # whether the form takes whole numbers of a unit only, so that no tolerance decides


class RelationRows:
    r"""The relations of a space for one posed factual, as temporary rows of a compiled program.

    A clause of literals :math:`a_k x \le b_k` is :math:`a_k x \le b_k + (u_k - b_k)(1 - y_k)`,
    :math:`\sum_k y_k \ge 1`, with binaries y and :math:`u_k` the greatest value of :math:`a_k x` within the posed
    bounds. What always holds, and what never does, is left out. Strict literals are posed as closed ones, so that
    bounds are those of the closed problem; ``tighten`` keeps a margin.

    Parameters
    ----------
    variables
        Posed for the factual; numbers not seen through cells.
    clauses
        Those of the relations for the factual.
    """

    def __init__(self, compiled: Compiled, variables: Variables, clauses: Sequence[Sequence[Row]]) -> None:
        self.compiled, self.variables, self.clauses = compiled, variables, clauses
        self.inexact: list[int] = []  # rows that tolerances decide
        self.exact = True  # no margin is kept yet
        for clause in self.clauses:
            self._state([self._stated(row) for row in clause])

    def tighten(self) -> bool:
        """Keep a margin from here on; False where that was so already. Bounds are then of no use any more."""
        if self.exact:
            self.compiled.row_high[self.inexact] -= MARGIN
        before, self.exact = self.exact, False
        return before

    def keeps(self, frame: pd.DataFrame) -> np.ndarray:
        """Which decoded rows keep all relations, bool, shape (rows,)."""
        return all_kept(self.clauses, frame)

    def complete(self, row: Mapping[str, Any], within: Ends | None = None) -> dict[str, Any]:
        """A decoded solution, a continuous number moved by no more than ``POLISH`` where that keeps a relation.

        Only a number that has changed, and within its interval, or the ends that ``within`` gives.
        """
        space, found = self.variables.space, dict(row)
        origin = self.variables.factual.iloc[0]
        ends = within or {f.name: f.interval(float(origin[f.name])) for f in space.features if f.numeric}
        for clause in self.clauses:
            frame = space.frame([found])
            if any(literal.holds(frame)[0] for literal in clause):
                continue
            for literal in clause:
                beyond = literal.excess(frame)[0] + (2 * DECODING * literal.unit if literal.strict else 0.0)
                for feature, slope in literal.numbers.items():
                    before = found[feature.name]
                    moved = found | {feature.name: before - beyond / slope}
                    low, high = ends[feature.name]
                    near = abs(beyond / slope) <= POLISH * feature.range and low <= moved[feature.name] <= high
                    near &= feature.kind == Kind.CONTINUOUS and before != origin[feature.name]
                    if near and self.keeps(space.frame([moved]))[0]:
                        return moved
        return found

    def _stated(self, row: Row) -> _Stated:
        """A literal over the program's columns."""
        blocks, unit = self.variables.by_name, row.unit
        forms, least, greatest = [], 0.0, 0.0
        for feature, slope in row.numbers.items():
            (number,) = blocks[feature.name].encoded()
            start = self.variables.space[feature.name].scale[0]
            form = scaled(number, slope * feature.range / unit)
            forms += [form, Linear.of([], slope * start / unit)]
            ends = form.constant + float(form.coefficients[0]) * self._ends(int(form.columns[0]))
            least, greatest = least + ends.min() + slope * start / unit, greatest + ends.max() + slope * start / unit
        for feature, price in row.changes.items():
            form = scaled(blocks[feature.name].changed(), price / unit)
            forms.append(form)
            greatest += price / unit * float(self._ends(int(form.columns[0]))[1])
        for feature, table in row.tables.items():
            block = blocks[feature.name]
            forms.append(block.form(table / unit))
            within = table[block.open] if block.open.any() else table
            least, greatest = least + within.min() / unit, greatest + within.max() / unit
        most, whole = row.high, _whole(row)
        if whole:
            most = math.ceil(most - DECODING) - 1.0 if row.strict else math.floor(most + DECODING)
        return _Stated(Linear.sum(forms), most / unit, least, greatest, whole)

    def _ends(self, column: int) -> np.ndarray:
        return np.array([self.compiled.low[column], self.compiled.high[column]])

    def _state(self, clause: Sequence[_Stated]) -> None:
        """The rows of one clause."""
        compiled = self.compiled
        if any(literal.greatest <= literal.most - MARGIN for literal in clause):
            return
        open_ = [literal for literal in clause if literal.least <= literal.most + MARGIN]
        if len(open_) == 1:
            self._row(open_[0].form, open_[0].most, open_[0].whole)
            return
        # Without a literal left, no choice is one too few.
        chosen = [compiled.add_column() for _ in open_] or [compiled.add_column(0.0, 0.0)]
        compiled.add_row(Linear.of([(column, 1.0) for column in chosen]), low=1.0)
        for literal, column in zip(open_, chosen, strict=False):
            beyond = max(literal.greatest - literal.most, 0.0) + MARGIN
            form = Linear.sum([literal.form, Linear.of([(column, beyond)])])
            self._row(form, literal.most + beyond, literal.whole)

    def _row(self, form: Linear, most: float, whole: bool) -> None:
        self.compiled.add_row(form, high=most)
        if not whole:
            self.inexact.append(len(self.compiled.row_high) - 1)


def _whole(row: Row) -> bool:
    """Whether a literal adds up whole numbers only."""
    weights = [*row.numbers.values(), *row.changes.values(), *(value for t in row.tables.values() for value in t)]
    return all(float(w).is_integer() for w in weights) and all(f.kind == Kind.INTEGER for f in row.numbers)
