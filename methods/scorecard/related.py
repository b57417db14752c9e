"""Relations between features in the scorecard's program: the values that related features take within their bins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

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


class Place(NamedTuple):
    """Where a feature may be: ends of its numbers, or categories; and the weight of evidence that it then has."""

    within: Sequence[Any]
    evidence: float


class RelatedValues:
    """The related features of one counterfactual, each where it was, or within the bin that it is moved to.

    Or it changes at no change of the score, as far as that is possible: within its own bin, or to one of the same
    weight of evidence. That costs nothing but a change.

    Parameters
    ----------
    origin
        The factual's decoded values.

    Attributes
    ----------
    slides
        0/1 variables of changes that leave the score as it is.
    """

    def __init__(self, program: Program, finder: MoveFinder, moves: Moves, origin: Mapping[str, Any]) -> None:
        names = {name for relation in finder.space.relations for name in relation.features}
        features = tuple(feature for feature in finder.space.features if feature.name in names)
        self.finder, self.moves = finder, moves
        self.space = Space(features, finder.space.constraints)
        self.origin = {name: origin[name] for name in self.space.names}
        self.factual = self.space.frame([self.origin])
        self.variables = Variables(program, self.space, cells=False)
        self.variables.close()
        own = {name: finder.alike(name, value) for name, value in self.origin.items()}
        self._own = {name: [(program.binary(), within) for within in found] for name, found in own.items()}
        self.slides = [slide for found in self._own.values() for slide, _ in found]
        self._whole = all(finder.lists(name, value) for name, value in self.origin.items())

    def pose(self, compiled: Compiled, columns: Sequence[int]) -> None:
        """Tie values to moves, whose 0/1 ``columns`` are by option, and state the relations."""
        self.compiled = compiled
        self.variables.attach(compiled)
        self.variables.pose(self.factual, [FREE] * len(self.space.features))
        self.places: dict[str, dict[int, Place]] = {}
        for name, value in self.origin.items():
            places = self._moved(name, columns)
            stays = self.finder.evidence(name, value)
            places |= {compiled.column(slide): Place(within, stays) for slide, within in self._own[name]}
            if len(places) > 1:
                compiled.add_row(Linear.of([(column, 1.0) for column in places]), high=1.0)
            (self._number if self.space[name].numeric else self._category)(name, places)
            self.places[name] = places
        self.related = RelationRows(compiled, self.variables, clauses_of(self.space.relations, self.factual))

    @property
    def exact(self) -> bool:
        """Whether what the program rules out is ruled out: relations have no margins, places all their values."""
        return self._whole and self.related.exact

    def _moved(self, name: str, columns: Sequence[int]) -> dict[int, Place]:
        """By column, where the options of a feature lead."""
        if name not in self.finder.card.names:
            return {}
        f = self.finder.card.names.index(name)
        values, moves = self.finder.card.variables[f].values, self.moves
        return {
            int(columns[o]): Place(self.finder.within(moves, o, self.origin[name]), float(values[moves.place[o]]))
            for o in range(moves.start[f], moves.start[f + 1])
        }

    def _number(self, name: str, places: Mapping[int, Place]) -> None:
        """A number is at the factual's value, or between the ends of the place that is chosen."""
        feature, (x,) = self.space[name], self.variables.by_name[name].encoded()
        origin, *ends = (
            (value - feature.scale[0]) / feature.range
            for value in (float(self.origin[name]), *(end for place in places.values() for end in place.within))
        )
        for side, sign in ((0, 1.0), (1, -1.0)):
            steps = [(column, -sign * (end - origin)) for column, end in zip(places, ends[side::2], strict=True)]
            form = Linear.sum([Linear(x.columns, sign * x.coefficients, sign * x.constant), Linear.of(steps)])
            self.compiled.add_row(form, low=sign * origin)

    def _category(self, name: str, places: Mapping[int, Place]) -> None:
        """A category is the factual's, or one of those of the place that is chosen."""
        feature, block = self.space[name], self.variables.by_name[name]
        for code, category in enumerate(feature.categories):
            level = block.form((np.arange(len(feature.categories)) == code).astype(float))
            own = float(category == self.origin[name])
            opened = [(column, -1.0 + own) for column, place in places.items() if category in place.within]
            closed = [(column, own) for column, place in places.items() if category not in place.within]
            self.compiled.add_row(Linear.sum([level, Linear.of(opened + closed)]), high=own)

    def keeps(self, x: np.ndarray) -> dict[str, Any] | None:
        """The values of a solution, which keep the relations; None where the solver's tolerance breaks one.

        None, too, where a number in a bin is one of the codes that have a bin of their own.
        """
        row, ends, expected = self.variables.read(x), dict[str, tuple[float, float]](), dict[str, float]()
        for name, value in self.origin.items():
            chosen = [place for column, place in self.places[name].items() if x[column] > 0.5]
            within, expected[name] = chosen[0] if chosen else Place((value, value), self.finder.evidence(name, value))
            if not chosen:
                row[name] = value
            if self.space[name].numeric:
                ends[name] = float(within[0]), float(within[1])
                row[name] = type(row[name])(min(max(row[name], ends[name][0]), ends[name][1]))
        row = self.related.complete(row, ends)
        sound = all(self.finder.evidence(name, row[name]) == value for name, value in expected.items())
        return row if sound and self.related.keeps(self.space.frame([row]))[0] else None

    def slid(self, row: Mapping[str, Any], moved: Collection[str]) -> int:
        """How many of the related features change beside those that are moved to another bin."""
        return sum(row[name] != value and name not in moved for name, value in self.origin.items())

    def gaps(self) -> Linear:
        """How far the values are from the factual's, in scaled units."""
        return Linear.sum(self.variables.gaps())
