"""Feed-forward networks of ReLUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.tolerances import BOUND_ROUNDING, BOUND_SOLVED
from harness.solvers.highs import Linear
from harness.solvers.lp import Lp, LpRow
from harness.solvers.program import Compiled, Program
from harness.solvers.scaling import balanced_by_powers
from methods.estimators.network import NETWORKS, dense_layers, has_hidden_units
from methods.milp.embed.embedded import Bounds, Corners, Embedded, Simplex
from methods.milp.embed.linear import affine
from methods.milp.embed.registry import embed, embeddable
from methods.milp.sources import Source

ROUNDS = 3  # of bounds by linear programs: each makes the next relaxation tighter
TRIALS = 5  # units that are tried before a round without a settled phase is given up


def embed_network(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    r"""A hidden unit is :math:`v = \max(0, a)`, :math:`a = W v_{prev} + b`, :math:`L \le a \le U`, with a 0/1 phase z:

    .. math:: v \ge a, \quad v \ge 0, \quad v \le a - L(1 - z), \quad v \le U z .

    L and U are set for each factual by ``tighten``. In the last hidden layer of a network with one output, a unit whose
    outgoing weight has the sign opposite to ``sense`` can only do harm by exceeding max(0, a): the first two rows do,
    and it needs no phase. The network is the one that is ``balanced_by_powers``.
    """
    embeddable(estimator)
    layers: list[_Layer] = []
    *dense, (outgoing, constants) = dense_layers(estimator)
    reach = np.array([source.size for source in inputs])
    hidden, sizes = balanced_by_powers([(weights.T, shifts) for weights, shifts in dense], reach)
    outgoing = outgoing * sizes[:, None]
    for depth, (weights, shifts) in enumerate(hidden):
        layer = _Layer(weights, shifts)
        for unit in range(len(shifts)):
            if depth == 0:
                total = affine(weights[unit], shifts[unit], inputs)
            else:
                total = _weighted(weights[unit], layers[-1].outputs, shifts[unit])
            last = depth == len(hidden) - 1
            harmless = last and sense != 0 and outgoing.shape[1] == 1 and sense * outgoing[unit, 0] <= 0
            layer.add(program, total, phase=not harmless)
        layers.append(layer)
    ends = zip(outgoing.T, constants, strict=True)
    if layers:
        outputs = tuple(_weighted(weights, layers[-1].outputs, shift) for weights, shift in ends)
    else:
        outputs = tuple(affine(weights, shift, inputs) for weights, shift in ends)
    network = _Network(layers)
    return Embedded(
        outputs,
        phases=tuple(phase for layer in layers for _, phase, _, _ in layer.phased),
        attach=network.attach,
        tighten=network.tighten,
        fix_phases=network.fix_phases if layers else None,
    )


def _relu(estimator: Any) -> None:
    if estimator.activation != "relu" and has_hidden_units(estimator):
        raise UnsupportedError(f"cannot embed a network with activation {estimator.activation!r}; use 'relu'.")
    if estimator.out_activation_ == "exp":
        raise UnsupportedError("cannot embed a network with loss 'poisson', an exponential; use 'squared_error'.")


for kind in NETWORKS:
    embed.register(kind)(embed_network)
    embeddable.register(kind)(_relu)


def _weighted(weights: np.ndarray, values: Sequence[Any], shift: float) -> Any:
    """The weighted sum of the outputs of a layer, plus a shift."""
    return sum(float(w) * v for w, v in zip(weights, values, strict=True)) + float(shift)


@dataclass(frozen=True)
class _Network:
    """The hidden layers of an embedded network; its methods are those of ``Embedded``."""

    layers: list[_Layer]

    def attach(self, compiled: Compiled) -> None:
        for layer in self.layers:
            layer.attach(compiled)

    def tighten(self, bounds: Bounds, simplex: Simplex | None = None) -> None:
        if not self.layers:
            return
        first = self.layers[0]
        low, high = bounds(first.weights, first.shifts)
        corners = None if simplex is None else simplex(first.weights, first.shifts)
        ends = None if corners is None else (corners.values, corners.values)
        for depth, layer in enumerate(self.layers):
            if depth:
                low, high = layer.between(low, high, layer.shifts)
                ends = ends and layer.between(*ends, layer.shifts[:, None])
            if ends is not None:
                low, high = _within(low, high, *ends)
            layer.set(low, high)
            if corners is not None and ends is not None:
                ends = layer.chords(corners, *ends)
            low, high = np.maximum(low, 0), np.maximum(high, 0)

    def fix_phases(self, cost: Linear, budget: float, seconds: float) -> bool:
        compiled, until = self.layers[0].compiled, time.monotonic() + seconds
        for _ in range(ROUNDS):
            lp = compiled.relaxation()
            lp.add_rows([LpRow(cost, high=budget)])
            settled = 0
            for layer in self.layers:
                found = layer.fix_phases(lp, until)
                if found is None:
                    return True
                settled += found
            if settled <= 1:
                break
        return False


def _within(low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds no wider than linear ones are at the corners of a simplex, shape (units, 1 + corners)."""
    slack = BOUND_ROUNDING * (1.0 + np.maximum(np.abs(lower), np.abs(upper)).max(axis=1))
    return np.maximum(low, lower.min(axis=1) - slack), np.minimum(high, upper.max(axis=1) + slack)


@dataclass
class _Layer:
    """The units of one hidden layer, and where their bounds stand in the compiled program."""

    weights: np.ndarray
    shifts: np.ndarray
    sums: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    phased: list[tuple[int, Any, Any, Any]] = field(default_factory=list)

    def add(self, program: Program, total: Any, phase: bool) -> None:
        a, v = program.variable(None, None), program.variable(0, None)
        program.add(a == total)
        program.add(v >= a)
        if phase:
            z = program.binary()
            on = program.add(v - a + 2 * z <= 0)  # v <= a - L(1 - z): -L and its right side are set by set()
            off = program.add(v - 2 * z <= 0)  # v <= U z
            self.phased.append((len(self.sums), z, on, off))
        self.sums.append(a)
        self.outputs.append(v)

    def attach(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.sum_at = np.array([compiled.column(a) for a in self.sums])
        self.output_at = np.array([compiled.column(v) for v in self.outputs])
        self.units = np.array([unit for unit, *_ in self.phased], dtype=int)
        self.phase_at = np.array([compiled.column(z) for _, z, _, _ in self.phased], dtype=int)
        self.on_entry = np.array([compiled.position(on, z) for _, z, on, _ in self.phased], dtype=int)
        self.on_row = np.array([compiled.row(on) for _, _, on, _ in self.phased], dtype=int)
        self.off_entry = np.array([compiled.position(off, z) for _, z, _, off in self.phased], dtype=int)

    def fix_phases(self, lp: Lp, until: float) -> int | None:
        """Narrow the sums' bounds to what the linear program allows: how many phases that fixes; None: none is left.

        Units near to settled come first, and of each its nearer side. After ``TRIALS`` units without a settled phase
        no more are tried.
        """
        compiled = self.compiled
        low, high = compiled.low[self.sum_at].copy(), compiled.high[self.sum_at].copy()
        nearer = np.minimum(-low, high)[self.units]
        fixed = 0
        for trial, unit in enumerate(self.units[np.argsort(nearer, kind="stable")][(nearer <= 0).sum() :]):
            if (fixed == 0 and trial == TRIALS) or time.monotonic() > until:
                break
            column = int(self.sum_at[unit])
            for side in (1.0, -1.0) if -low[unit] < high[unit] else (-1.0, 1.0):
                cost = np.zeros(lp.size)
                cost[column] = side
                solution = lp.prove(cost, until - time.monotonic())
                if solution.infeasible:
                    return None
                end = solution.bound - BOUND_SOLVED * (1.0 + abs(solution.bound))
                if side > 0:
                    low[unit] = max(low[unit], end)
                else:
                    high[unit] = min(high[unit], -end)
                if low[unit] >= 0 or high[unit] <= 0:
                    fixed += 1
                    break
            if low[unit] > high[unit]:
                return None
            lp.bound(column, low[unit], high[unit])
        self.set(low, high)
        return fixed

    def between(self, low: np.ndarray, high: np.ndarray, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the sums, where these are of the outputs before."""
        rise, fall = np.maximum(self.weights, 0), np.minimum(self.weights, 0)
        return rise @ low + fall @ high + shifts, rise @ high + fall @ low + shifts

    def chords(self, corners: Corners, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keep outputs below what is linear between a simplex's corners; returns linear bounds of the outputs there.

        ``lower`` and ``upper`` are linear bounds of the sums at the corners, shape (units, 1 + corners). The greater of
        the upper one and 0 is convex, so that no output exceeds the mean of its values at the corners. At the factual,
        where nothing is spent, both bounds are equal: so are those of the outputs, and so on.
        """
        compiled = self.compiled
        low, high = compiled.low[self.sum_at][:, None], compiled.high[self.sum_at][:, None]
        above = np.where(low >= 0, upper, np.maximum(upper, 0.0)) * (high > 0)
        here, rises = above[:, 0], above[:, 1:] - above[:, :1]
        rates, constants = rises @ corners.rates, here + rises @ corners.constants
        for unit in self.units[((low < 0) & (high > 0))[self.units, 0]]:
            columns = np.append(corners.columns, np.int32(self.output_at[unit]))
            rounding = BOUND_ROUNDING * (1.0 + np.abs(above[unit]).max())
            compiled.add_row(Linear(columns, np.append(-rates[unit], 1.0)), high=constants[unit] + rounding)
        return np.where(lower[:, :1] > 0, lower, 0.0), above

    def set(self, low: np.ndarray, high: np.ndarray) -> None:
        """Bounds of the sums: a unit that cannot change sign has its phase fixed."""
        compiled, units = self.compiled, self.units
        compiled.low[self.sum_at], compiled.high[self.sum_at] = low, high
        compiled.high[self.output_at] = np.maximum(high, 0)
        below, above = low[units], high[units]
        compiled.low[self.phase_at] = below >= 0
        compiled.high[self.phase_at] = above > 0
        compiled.data[self.on_entry] = -np.minimum(below, 0)
        compiled.row_high[self.on_row] = -np.minimum(below, 0)
        compiled.data[self.off_entry] = -np.maximum(above, 0)
