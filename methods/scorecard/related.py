"""Relations between features in the scorecard's program: the values that moved features take within their bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.relations import clauses_of
from harness.core.space import Space
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.milp.cost import Cost
from methods.milp.relations import RelationRows
from methods.milp.variables import Variables
from methods.scorecard.moves import MoveFinder, Moves

FREE = Cost(0.0, 0.0, 0.0)  # what a value costs: bins do that


class RelatedValues:
    """The related features of one counterfactual, each in the bin that the program moves it to, or where it was.

    Parameters
    ----------
    origin
        The factual's decoded values.
    """

    def __init__(self, program: Program, finder: MoveFinder, moves: Moves, origin: Mapping[str, Any]) -> None:
        names = {name for relation in finder.space.relations for name in relation.features}
        features = tuple(feature for feature in finder.space.features if feature.name in names)
        self.finder, self.moves = finder, moves
        self.space = Space(features, finder.space.constraints)
        self.factual = self.space.frame([{name: origin[name] for name in self.space.names}])
        self.variables = Variables(program, self.space, cells=False)
        self.variables.close()

    def pose(self, compiled: Compiled, columns: Sequence[int]) -> None:
        """Tie values to moves, whose 0/1 ``columns`` are by option, and state the relations."""
        self.compiled = compiled
        self.variables.attach(compiled)
        self.variables.pose(self.factual, [FREE] * len(self.space.features))
        for name in self.space.names:
            f = self.finder.card.names.index(name) if name in self.finder.card.names else None
            options = range(0) if f is None else range(self.moves.start[f], self.moves.start[f + 1])
            own = {int(columns[o]): self.finder.within(self.moves, o, self.factual[name].iloc[0]) for o in options}
            (self._number if self.space[name].numeric else self._category)(name, own)
        self.related = RelationRows(compiled, self.variables, clauses_of(self.space.relations, self.factual))

    def _number(self, name: str, within: Mapping[int, Any]) -> None:
        """A number is at the factual's value, or between the ends of the bin that it is moved to."""
        feature, (x,) = self.space[name], self.variables.by_name[name].encoded()
        origin, *ends = (
            (value - feature.scale[0]) / feature.range
            for value in (float(self.factual[name].iloc[0]), *(end for pair in within.values() for end in pair))
        )
        for side, sign in ((0, 1.0), (1, -1.0)):
            steps = [(column, -sign * (end - origin)) for column, end in zip(within, ends[side::2], strict=True)]
            form = Linear.sum([Linear(x.columns, sign * x.coefficients, sign * x.constant), Linear.of(steps)])
            self.compiled.add_row(form, low=sign * origin)

    def _category(self, name: str, within: Mapping[int, Any]) -> None:
        """A category is the factual's, or one of those of the bin that it is moved to."""
        feature, block = self.space[name], self.variables.by_name[name]
        for code, category in enumerate(feature.categories):
            level = block.form((np.arange(len(feature.categories)) == code).astype(float))
            own = float(category == self.factual[name].iloc[0])
            opened = [(column, -1.0 + own) for column, members in within.items() if category in members]
            closed = [(column, own) for column, members in within.items() if category not in members]
            self.compiled.add_row(Linear.sum([level, Linear.of(opened + closed)]), high=own)

    def keeps(self, x: np.ndarray) -> dict[str, Any] | None:
        """The values of a solution, which keep the relations; None where the solver's tolerance breaks one."""
        row = self.related.settle(self.variables.read(x))
        return row if self.related.keeps(self.space.frame([row]))[0] else None

    def gaps(self) -> Linear:
        """How far the values are from the factual's, in scaled units."""
        return Linear.sum(self.variables.gaps())
