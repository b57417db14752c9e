"""The variables of a feature space in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, by_category
from harness.core.space import Space
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.milp.category_block import CategoryBlock
from methods.milp.cost import Cost
from methods.milp.forms import scaled
from methods.milp.interval_block import IntervalBlock
from methods.milp.number_block import NumberBlock
from methods.milp.sources import LevelSource, Moved, NumberSource


def affine(source: Input) -> Affine:
    """An input that is made of a number, as the affine one that it has to be; UnsupportedError for any other."""
    if not isinstance(source, Affine):
        raise UnsupportedError(f"{type(source).__name__} of {source.feature}, a number, cannot be embedded yet.")
    return source


class Variables:
    """The mixed-integer variables of a space: one block a feature, and the estimator inputs made of them.

    Parameters
    ----------
    cells
        See numbers only through thresholds (trees, where nothing else looks at a number), else as scaled variables.
    """

    def __init__(self, program: Program, space: Space, cells: bool) -> None:
        self.space = space
        number = IntervalBlock if cells else NumberBlock
        self.blocks: list[Any] = [(number if f.numeric else CategoryBlock)(program, f) for f in space.features]
        self.by_name = dict(zip(space.names, self.blocks, strict=True))

    def source(self, source: Input) -> Moved:
        """An estimator input as an object that classifiers are embedded on."""
        block = self.by_name[source.feature]
        if isinstance(block, CategoryBlock):
            return LevelSource(block, by_category(block.feature, source))
        return NumberSource(block, affine(source))

    def close(self) -> None:
        """State what depends on all embedded inputs."""
        for block in self.blocks:
            block.close()

    def attach(self, compiled: Compiled) -> None:
        """Find the blocks' columns in the compiled program."""
        for block in self.blocks:
            block.attach(compiled)

    def pose(self, factual: pd.DataFrame, costs: Sequence[Cost], box: Sequence[Any] | None = None) -> None:
        """Set bounds and coefficients for a factual; ``box`` holds what each block has to stay ``within``, or None."""
        self.factual = factual
        for place, (block, cost) in enumerate(zip(self.blocks, costs, strict=True)):
            value = factual[block.feature.name].iloc[0]
            if box is None or box[place] is None:
                block.pose(value, cost)
            else:
                block.pose(value, cost, box[place])

    def forbid(self, row: dict[str, Any], factual: pd.DataFrame) -> None:
        """Rule out the states that an earlier counterfactual's changed features took."""
        for block in self.blocks:
            name = block.feature.name
            if row[name] != factual[name].iloc[0]:
                block.forbid(row[name])

    def encoded(self) -> list[Linear]:
        """The scaled columns of the space, in its order."""
        return [column for block in self.blocks for column in block.encoded()]

    def gaps(self) -> list[Linear]:
        """What each posed feature's move costs, in scaled units."""
        return [block.gap() for block in self.blocks]

    def cost(self) -> Linear:
        """The distance of the posed factual, with the costs given to ``pose``."""
        return Linear.sum([block.cost() for block in self.blocks])

    def changed(self, weights: np.ndarray) -> Linear:
        """The weighted number of changed features."""
        forms = zip(self.blocks, weights, strict=True)
        return Linear.sum([scaled(block.changed(), weight) for block, weight in forms])

    def distance_form(self, row: dict[str, Any], separation: float) -> Linear:
        """A form that is >= 1 iff some category differs from ``row``'s or some number is ``separation`` away."""
        return Linear.sum([block.distance_form(row[block.feature.name], separation) for block in self.blocks])

    def refine(self, x: np.ndarray) -> bool:
        """Tighten what stands for squared gaps around a solution; whether there was anything to tighten."""
        return sum(block.refine(x) for block in self.blocks if isinstance(block, NumberBlock)) > 0

    def singles(self) -> Iterator[tuple[str, Any]]:
        """Every value that a single changed feature can take, as far as the blocks list them."""
        for block in self.blocks:
            for value in block.values_listed():
                yield block.feature.name, value

    def read(self, x: np.ndarray) -> dict[str, Any]:
        """Decoded values of a solution."""
        return {block.feature.name: block.read(x) for block in self.blocks}
