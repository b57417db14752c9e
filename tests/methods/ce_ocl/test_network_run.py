"""Networks searched over boxes in a hull: no valid point is lost, by a row or by a branch."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier
from support.noisy_rule import factuals, make

from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.tolerances import COORDINATE_TIE, ROW_MISSED, SCORE_TIE
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program_engine import ProgramEngine
from methods.hull_search.bounds import Costs, Node, Solved
from methods.hull_search.network_run import Known, NetworkProgram, NetworkRun
from methods.hull_search.part import HullPart
from methods.hull_search.search import BoxSearch
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Shares

ONES = np.ones(5)


def parts(problem: Problem, factual: pd.DataFrame) -> list[HullPart]:
    """The pieces of the hull as a factual reaches them."""
    engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
    search = BoxSearch(problem, Separable(0 * ONES, ONES, 0 * ONES), 0.0, ONES, None, 0.0, bare=True)
    found = []
    for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
        assert isinstance(piece, Shares | Outside)
        found.append(search.fewest(factual, piece).part)
    return [part for part in found if part.possible]


class Watched:
    """Valid points of a part: each has to be in every row of a box that it is in, and in a child of each division."""

    def __init__(self, part: HullPart, program: NetworkProgram) -> None:
        rng, points = np.random.default_rng(0), part.points.points
        shares = rng.exponential(size=(3000, points.shape[1])) ** 3
        self.moves = (shares / shares.sum(axis=1, keepdims=True)) @ points.T - part.origin
        # Halfway between two rows, where whole numbers are whole there: those that the search may answer with.
        halves = points.T[rng.integers(points.shape[1], size=(3000, 2))].mean(axis=1) - part.origin
        numbers = part.numbers
        decoded = (numbers.value + halves * numbers.unit)[:, np.asarray(numbers.integer, dtype=bool)]
        halves = halves[(np.abs(decoded - decoded.round()) < 1e-9).all(axis=1)]
        self.prices = [float(np.abs(move).sum()) for move in halves if program.margin(move)[0] >= 0.0]
        values = [program.margin(move) for move in self.moves]
        valid = np.array([margin >= 0.0 for margin, _ in values])
        self.signs = np.array([np.sign(np.concatenate(sums, axis=1)[0]) for _, sums in values])[valid]
        self.moves, self.part, self.rows, self.divided = self.moves[valid], part, 0, 0

    def within(self, low: np.ndarray, high: np.ndarray, known: Known) -> np.ndarray:
        """Which of the points a box has, where units are known to be at work or not."""
        numbers = self.part.numbers
        ends = [(end - numbers.value) / numbers.unit for end in (low, high)]
        inside = (self.moves >= ends[0] - COORDINATE_TIE) & (self.moves <= ends[1] + COORDINATE_TIE)
        return np.asarray(inside.all(axis=1) & (self.signs * known.phases >= 0).all(axis=1))


def rows_by_layers(program: NetworkProgram, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, float]] | None:
    """A program's rows of its patterns, layer by layer, as the search over few changes has its forms."""
    lows, highs = program.ends(low, high)
    if any((below > above + ROW_MISSED).any() for below, above in zip(lows, highs, strict=True)):
        return None
    patterns = program.by_layer(np.array(program.known.patterns or program.usual))
    ((weights, shifts),) = program.net.above(lows, highs, patterns)
    units = program.units
    return [
        (form @ units.slope, -SCORE_TIE - float(shift + form @ units.sums))
        for form, shift in zip(weights, shifts, strict=True)
    ]


@pytest.mark.parametrize("hidden", [(12,), (7, 6)])
def test_no_valid_point_is_lost(hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    network = MLPClassifier(hidden, solver="lbfgs", max_iter=2000, random_state=0)
    problem = make(network, seed=3, whole=False, rows=150)
    watched: list[Watched] = []
    rows_of, phase = NetworkProgram.rows_of, NetworkRun._phase
    stated = 0

    def asked(self: NetworkProgram, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, float]] | None:
        nonlocal stated
        rows, seen = rows_of(self, low, high), watched[-1]
        inside = seen.within(low, high, self.known)
        assert rows is not None or not inside.any()
        compared = rows_by_layers(self, low, high)
        assert (rows is None) == (compared is None)
        for (slopes, least), (other, end) in zip(rows or [], compared or [], strict=False):  # units' own rows follow
            assert slopes == pytest.approx(other, rel=1e-9, abs=1e-12)
            assert least == pytest.approx(end, rel=1e-9, abs=1e-9)
        for slopes, least in rows or []:
            assert (seen.moves[inside] @ slopes >= least - 1e-9).all()
            seen.rows += int(inside.sum())
        stated += len(self.known.stated)
        return rows

    def divided(self: NetworkRun, solved: Solved, sums: list[np.ndarray]) -> list[Node]:
        children, seen = phase(self, solved, sums), watched[-1]
        before = seen.within(solved.node.low, solved.node.high, self.program.known)
        each = [seen.within(child.low, child.high, self.known[child.number]) for child in children]
        assert not children or (np.any(each, axis=0) == before).all()
        seen.divided += len(children)
        return children

    monkeypatch.setattr(NetworkProgram, "rows_of", asked)
    monkeypatch.setattr(NetworkRun, "_phase", divided)
    for factual in factuals(problem, 6):
        for part in parts(problem, factual)[:6]:
            run = NetworkRun(part, Costs.of(part, Separable(0 * ONES, ONES, 0 * ONES), math.inf), math.inf,
                             Deadline.after(5.0))  # fmt: skip
            watched.append(Watched(part, run.program))
            run.search(nodes=400)
            prices = watched[-1].prices
            assert run.bound <= min(prices, default=math.inf) + 1e-9 + part.still.gaps.sum()
    assert sum(len(seen.prices) for seen in watched) > 1000
    assert sum(seen.rows for seen in watched) > 1000
    assert sum(seen.divided for seen in watched) > 0
    assert stated > 0
