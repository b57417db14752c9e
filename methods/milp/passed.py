"""The share of the population that a number passes, in a linear program."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.core.space import Feature
from harness.core.tolerances import COORDINATE_TIE
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled


@dataclass(frozen=True)
class Passed:
    """How much of the population a number passes on its way to one side, linear between its bends.

    Parameters
    ----------
    moves
        Where it bends, in scaled units, shape (bends,): ascending from 0 to the farthest move.
    shares
        What is passed up to there, likewise from 0.
    """

    moves: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, feature: Feature, value: float, side: int, far: float = math.inf) -> Passed:
        """From a value upwards (``side`` 1) or downwards (-1), up to ``far`` scaled units."""
        end = value + side * far * feature.range
        knots = np.array([knot for knot, _ in feature.price.shares])
        places = np.unique(np.clip([value, *knots, end], min(value, end), max(value, end)))[::side]
        moves = np.abs(places - value) / feature.range
        apart = np.append(True, np.diff(moves) > COORDINATE_TIE)
        return cls(moves[apart], np.abs(feature.share(places) - feature.share(np.array(value)))[apart])

    @property
    def rate(self) -> float:
        """The least share that a scaled unit of any move passes, from the start on."""
        return float((self.shares[1:] / self.moves[1:]).min(initial=math.inf)) if len(self.moves) > 1 else 0.0

    def farthest(self, most: float) -> float:
        """The farthest move that passes at most a share."""
        k = int(np.searchsorted(self.shares, most, side="right"))
        if k == len(self.shares):
            return float(self.moves[-1])
        return float(np.interp(most, self.shares[k - 1 : k + 1], self.moves[k - 1 : k + 1]))

    def state(self, compiled: Compiled, move: int) -> int:
        r"""A temporary column of what is passed, ``move`` being the column of the move.

        Of each stretch k between two bends a part :math:`d_k \in [0, 1]` is passed: the move is
        :math:`\sum_k L_k d_k`, the share :math:`\sum_k S_k d_k`. Where slopes :math:`S_k / L_k` rise, what is minimised
        fills stretches in order. Where they fall, a 0/1 column lets later ones begin only once all before are full.
        """
        widths, heights = np.diff(self.moves), np.diff(self.shares)
        parts = [compiled.add_column(0.0, 1.0, integer=False) for _ in widths]
        share = compiled.add_column(0.0, math.inf, integer=False)
        for column, sizes in ((move, widths), (share, heights)):
            compiled.add_row(Linear.of([(column, -1.0), *zip(parts, sizes, strict=True)]), low=0.0, high=0.0)
        falls = np.flatnonzero(np.diff(heights / widths) < -COORDINATE_TIE) + 1
        starts, gates = [0, *falls.tolist(), len(parts)], [compiled.add_column() for _ in falls]
        for k, gate in enumerate(gates):
            for part in parts[starts[k] : starts[k + 1]]:
                compiled.add_row(Linear.of([(part, 1.0), (gate, -1.0)]), low=0.0)
            for part in parts[starts[k + 1] : starts[k + 2]]:
                compiled.add_row(Linear.of([(part, 1.0), (gate, -1.0)]), high=0.0)
        return share
