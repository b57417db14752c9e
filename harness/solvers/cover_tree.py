"""A cover by few of many columns, or the proof that there is none: branch and bound over pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
import scipy.sparse as sparse

from harness.core.method import Deadline
from harness.core.tolerances import LINEAR_WHOLE, WHOLE_BOUND
from harness.solvers.cover import add_rows
from harness.solvers.highs import new_solver

TRIED = 6  # pairs of a node that are tried, to branch on the best of them
EVEN = 0.55  # how much of a pair's rows is covered together where it is tried first
APART = 0.1, 0.99  # pairs outside are not tried
LITTLE = 1e-4  # by which a child that does not raise the bound counts
BEYOND = 1e-3  # above the most columns, by which a relaxation's value tells enough, whatever scaling takes off
STATES = highspy.HighsModelStatus


def cover_within(
    rows: int, columns: Sequence[np.ndarray], most: int, deadline: Deadline
) -> tuple[np.ndarray | None, bool]:
    r"""At most so many columns that cover every row, by their places, or None; and whether either is proven.

    Depth first. A node is the relaxation :math:`\min \sum_c y_c, \; \sum_{c \ni i} y_c \ge 1`. Of two rows that it
    covers together in part, one child asks for a column with both, :math:`\sum_{c \ni i, j} y_c \ge 1`, and the other
    has none of those (for partitions: Ryan and Foster, 1981). A node is done, and a column is left out below it, by
    duals that are scaled until no column is worth more than it costs: no tolerance of the solver takes part.

    Parameters
    ----------
    rows
        Their number.
    columns
        Of each the rows that it covers.
    most
        A whole number.
    """
    stack = [_Node.root(rows, columns)]
    matrix = stack[0].matrix
    while stack:
        relaxation = _Relaxation(stack.pop(), most, deadline)
        if deadline.passed or relaxation.stopped:
            return None, False
        if relaxation.bound > most + WHOLE_BOUND:
            continue
        chosen = relaxation.node.places[relaxation.shares > 0.5]
        if len(chosen) <= most and len(np.unique(matrix[:, chosen].indices)) == rows:
            return chosen, True
        children = relaxation.children(rows)
        if not children:
            return None, False
        stack += children
    return None, True


@dataclass(frozen=True)
class _Node:
    """Rows to be covered by columns, but those that are ``off``; the columns' places; basic columns and rows.

    ``off`` are such as are basic, or were so above. ``shared``: the columns of one more row, if there is one.
    """

    matrix: sparse.csc_matrix
    off: np.ndarray
    places: np.ndarray
    basic: tuple[np.ndarray, np.ndarray]
    shared: np.ndarray | None = None

    @classmethod
    def root(cls, rows: int, columns: Sequence[np.ndarray]) -> _Node:
        """All columns, and the basis of the rows' slacks."""
        size, sizes = len(columns), [len(column) for column in columns]
        entries = np.ones(sum(sizes)), np.concatenate(columns), np.concatenate([[0], np.cumsum(sizes)])
        matrix = sparse.csc_matrix(entries, shape=(rows, size))
        return cls(matrix, np.zeros(size, dtype=bool), np.arange(size), (np.arange(0), np.arange(rows)))

    def opened(self) -> _Node:
        """With that row in the matrix, its slack basic."""
        if self.shared is None:
            return self
        row = sparse.csc_matrix(self.shared.astype(float)[None])
        basic = self.basic[0], np.append(self.basic[1], self.matrix.shape[0])
        return _Node(sparse.vstack([self.matrix, row], format="csc"), self.off, self.places, basic)


class _Relaxation:
    """A node's relaxation, solved: each column's share, and bounds on a cover's columns: of any cover, and with each.

    ``stopped``: there was no time, or the solver failed.
    """

    def __init__(self, node: _Node, most: int, deadline: Deadline) -> None:
        self.node, self.most, self.deadline = (node := node.opened()), most, deadline
        count, size = node.matrix.shape
        self.solver = solver = new_solver(deadline.left, options={"presolve": "off", "objective_bound": most + BEYOND})
        add_rows(solver, count, np.inf)
        solver.addCols(
            size, np.ones(size), np.zeros(size), np.where(node.off, 0.0, np.inf), node.matrix.nnz,
            node.matrix.indptr[:-1].astype(np.int32), node.matrix.indices.astype(np.int32), node.matrix.data,
        )  # fmt: skip
        self._value(node.basic)
        self.stopped = solver.getModelStatus() not in {STATES.kOptimal, STATES.kObjectiveBound}
        solution = solver.getSolution()
        self.shares, duals = np.array(solution.col_value), np.maximum(np.array(solution.row_dual), 0.0)
        worth = np.where(node.off, -np.inf, node.matrix.T @ duals)
        scale = max(1.0, float(worth.max(initial=0.0)))
        self.bound = float(duals.sum()) / scale
        self.least = self.bound + 1.0 - worth / scale
        if (node.matrix[:, ~node.off].getnnz(axis=1) == 0).any():
            self.bound, self.stopped = np.inf, False

    def _value(self, basic: tuple[np.ndarray, np.ndarray]) -> float:
        """Solve from a basis."""
        self.solver.setBasis(_basis((self.solver.getNumCol(), self.solver.getNumRow()), basic))
        self.solver.run()
        if self.solver.getModelStatus() == STATES.kOptimal:
            return min(float(self.solver.getInfo().objective_function_value), self.most + BEYOND)
        return self.most + BEYOND

    def children(self, rows: int) -> list[_Node]:
        """Two nodes, the one whose relaxation seems smaller last; none where no column is there in part."""
        self._leave_out()
        matrix, off, places = self.node.matrix, self.node.off, self.node.places
        pairs = self._pairs(rows)
        tries = [(self._without(both), self._shared(both), both) for both in pairs if not self.deadline.passed]
        if not tries:
            return []
        gains = [(without - self.bound + LITTLE) * (shared - self.bound + LITTLE) for without, shared, _ in tries]
        without, shared, both = tries[int(np.argmax(gains))]
        held, basic = np.isin(np.arange(len(off)), both), self.node.basic
        children = [_Node(matrix, off | held, places, basic), _Node(matrix, off, places, basic, held & ~off)]
        return children if without > shared else children[::-1]

    def _leave_out(self) -> None:
        """Go on from the basis of the solution, without columns that no cover that is small enough has."""
        _, basic = self.solver.getBasicVariables()
        columns, slacks = basic[basic >= 0], -1 - basic[basic < 0]
        node, kept = self.node, self.least <= self.most + WHOLE_BOUND
        kept[columns] = True
        left = np.flatnonzero(~kept).astype(np.int32)
        self.solver.deleteCols(len(left), left)
        columns = np.cumsum(kept)[columns] - 1
        self.node = _Node(node.matrix[:, kept], node.off[kept], node.places[kept], (columns, slacks))
        self.shares = self.shares[kept]

    def _pairs(self, rows: int) -> list[np.ndarray]:
        """The columns with both of two rows, by pair to be tried; or one column, where no pair is covered in part."""
        matrix, off = self.node.matrix, self.node.off
        used = np.flatnonzero(self.shares > LINEAR_WHOLE)
        covers = matrix[:rows, used].toarray()
        together = np.triu((covers * self.shares[used]) @ covers.T, 1)
        pairs = np.argwhere((together > APART[0]) & (together < APART[1]))
        first = np.argsort(np.abs(together[pairs[:, 0], pairs[:, 1]] - EVEN), kind="stable")[:TRIED]
        if len(first):
            by_row = matrix.tocsr()
            both = [(by_row[i].indices, by_row[j].indices) for i, j in pairs[first]]
            return [np.intersect1d(one, other, assume_unique=True) for one, other in both]
        part = used[(self.shares[used] < 1 - LINEAR_WHOLE) & ~off[used]]
        return [part[:1]] if len(part) else []

    def _without(self, both: np.ndarray) -> float:
        """The relaxation's value without some columns."""
        size, places = len(both), both.astype(np.int32)
        self.solver.changeColsBounds(size, places, np.zeros(size), np.zeros(size))
        value = self._value(self.node.basic)
        self.solver.changeColsBounds(size, places, np.zeros(size), np.where(self.node.off[both], 0.0, np.inf))
        return value

    def _shared(self, both: np.ndarray) -> float:
        """Its value with one of some columns."""
        count = self.node.matrix.shape[0]
        self.solver.addRow(1.0, np.inf, len(both), both.astype(np.int32), np.ones(len(both)))
        columns, slacks = self.node.basic
        value = self._value((columns, np.append(slacks, count)))
        self.solver.deleteRows(1, np.array([count], dtype=np.int32))
        return value


def _basis(shape: tuple[int, int], basic: tuple[np.ndarray, np.ndarray]) -> highspy.HighsBasis:
    """A basis of so many columns and rows, of which some are basic."""
    basis = highspy.HighsBasis()
    status = []
    for size, places in zip(shape, basic, strict=True):
        one = [highspy.HighsBasisStatus.kLower] * size
        for place in places:
            one[place] = highspy.HighsBasisStatus.kBasic
        status.append(one)
    basis.col_status, basis.row_status = status
    basis.valid = True
    return basis
