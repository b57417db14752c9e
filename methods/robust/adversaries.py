"""The worst point of a region, by family of model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from harness.certificate.margins import Margin, margins
from harness.core.method import Deadline
from harness.core.tolerances import COORDINATE_TIE, NORM_SOLVED, SCORE_TIE
from harness.solvers.highs import Linear as Form
from harness.solvers.program import Compiled, Program
from methods.estimators.tree_arrays import Leaf as Cell
from methods.estimators.trees import ensemble
from methods.milp.block import Free
from methods.milp.embed.registry import embed
from methods.milp.sources import Source
from methods.robust.program import RobustProgram
from methods.robust.settings import Settings

PLANES = 50  # that cut a ball out of its box, for one adversary
BISECTIONS = 50  # for the depth of a leaf


class Worst(NamedTuple):
    """A perturbation of features, in scaled units, and a lower bound on the score there, in ``RobustProgram.unit``.

    The score counts from the threshold, and is at most 0 where the perturbation is known to break the region.
    """

    move: np.ndarray
    score: float


class TreeAdversary:
    """Finds the perturbation that lies deepest in leaves on which the trees are wrong."""

    def __init__(self, robust: RobustProgram) -> None:
        self.robust = robust
        problem = robust.problem
        self.model = ensemble(problem.classifier.estimator)
        self.margins = margins(problem.classifier, problem.target)

    def worst(self, row: Mapping[str, Any], deadline: Deadline) -> Worst | None:
        """A perturbation that breaks the region, for the first other class that has one; None where none was found."""
        found = (self._breaking(row, margin, deadline) for margin in self.margins)
        return next((worst for worst in found if worst is not None), None)

    def _breaking(self, row: Mapping[str, Any], margin: Margin, deadline: Deadline) -> Worst | None:
        """(41)-(45), and (26)-(35) for one tree: the program over one leaf of each tree; None where it found nothing.

        Leaves that the box does not enter are left out; a leaf's depth is measured in scaled units, so that its faces'
        normals have length 1. The program finds the leaves, ``deepest`` how deep they are entered: leaves that only its
        tolerance enters, or on which the model is right (a tie), are excluded. A ball is cut out of its box.
        """
        robust, rho = self.robust, self.robust.settings.radius
        inputs = robust.problem.classifier.vector(row)[0]
        moved = robust.perturbation.moved
        program = Program()
        moves = [program.variable(-rho, rho) if free else None for free in moved]
        depth = program.variable(-1.0, 1.0)
        forms = np.atleast_2d(margin.weights)
        totals = list(forms @ self.model.base + margin.constant)
        listed: list[list[tuple[Any, list[tuple[int, float, float]]]]] = []
        for tree, cells in zip(self.model.trees, robust.leaves, strict=True):
            chosen, worth = [], np.stack([self.model.gains(tree, form) for form in forms], axis=1)
            for cell in cells:
                faces = self._faces(cell, inputs, robust.slopes)
                if any(gap + (rho if moved[feature] else 0.0) < -COORDINATE_TIE for feature, _, gap in faces):
                    continue
                leaf = program.binary()
                chosen.append((leaf, faces))
                totals = [total + float(add) * leaf for total, add in zip(totals, worth[cell.node], strict=True)]
                for feature, side, gap in faces:
                    # side * x_j <= bound: the depth is gap - side * s_j, gap that of the point itself.
                    move = moves[feature]
                    most = 1.0 - gap + rho
                    program.add(depth <= gap - (side * move if move is not None else 0.0) + most * (1 - leaf))
            program.add(sum(leaf for leaf, _ in chosen) == 1)
            listed.append(chosen)
        for total in totals:
            program.add(total <= SCORE_TIE)
        compiled = program.compile()
        at = [None if move is None else compiled.column(move) for move in moves]
        goal = Form.of([(compiled.column(depth), -1.0)])
        leaves = [([compiled.column(leaf) for leaf, _ in chosen], chosen) for chosen in listed]
        for _ in range(PLANES):
            found = compiled.solve(goal, deadline.left)
            if found.x is None:
                return None
            below, above, taken = np.full(len(moved), math.inf), np.full(len(moved), math.inf), []
            for columns, chosen in leaves:
                place = int(found.x[columns].argmax())
                taken.append(columns[place])
                for feature, side, gap in chosen[place][1]:
                    gaps = above if side > 0 else below
                    gaps[feature] = min(gaps[feature], gap)
            move = deepest(below, above, moved, rho, robust.settings.norm)
            if move is not None and not robust.certifier.checker.valid(robust.moved(row, move)):
                return Worst(move, -math.inf)
            if move is not None or not _cut_out(compiled, found.x, at, robust.settings):
                compiled.add_row(Form.of([(column, 1.0) for column in taken]), high=len(taken) - 1.0)
        return None

    def _faces(self, cell: Cell, inputs: np.ndarray, slopes: np.ndarray) -> list[tuple[int, float, float]]:
        """A leaf's faces at a point: feature, outward side, scaled distance to the face (negative outside)."""
        faces = []
        for sides, outward in ((cell.above, -1.0), (cell.at_most, 1.0)):
            for column, threshold in sides.items():
                slope = slopes[column]
                if math.isinf(threshold):
                    continue
                if not slope:
                    inside = (threshold - inputs[column]) * outward >= 0
                    faces.append((self.robust.owners[column], outward, 1.0 if inside else -2.0))
                    continue
                gap = (threshold - inputs[column]) * outward / abs(slope)
                faces.append((self.robust.owners[column], outward * math.copysign(1.0, slope), gap))
        return faces


class ScoreAdversary:
    """Finds the perturbation of the worst score, for a model that is continuous in its inputs."""

    def __init__(self, robust: RobustProgram) -> None:
        self.robust = robust
        self.margins = margins(robust.problem.classifier, robust.problem.target)

    def worst(self, row: Mapping[str, Any], deadline: Deadline) -> Worst | None:
        """The perturbation of the worst score, over all other classes; None where time ran out."""
        found = [self._lowest(row, margin, deadline) for margin in self.margins]
        return min((worst for worst in found if worst is not None), key=lambda worst: worst.score, default=None)

    def _lowest(self, row: Mapping[str, Any], margin: Margin, deadline: Deadline) -> Worst | None:
        """The least score within the box, or the ball by planes; None where time ran out."""
        robust, rho = self.robust, self.robust.settings.radius
        classifier = robust.problem.classifier
        inputs = classifier.vector(row)[0]
        program = Program()
        moves = [program.variable(-rho, rho) if free else None for free in robust.perturbation.moved]
        sources: list[Source] = []
        reach = np.zeros(len(inputs))
        for k, (place, slope) in enumerate(zip(robust.owners, robust.slopes, strict=True)):
            move = moves[place]
            reach[k] = abs(slope) * rho if move is not None else 0.0
            expression = float(inputs[k]) + (slope * move if move is not None and slope else 0.0)
            sources.append(Free(program, expression, inputs[k] - reach[k], inputs[k] + reach[k]))
        made = embed(classifier.estimator, program, sources, -int(margin.weights[0]) if len(margin.weights) == 1 else 0)
        compiled = program.compile()
        made.attach(compiled)

        def box(weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            middle, half = weights @ inputs + shift, np.abs(weights) @ reach
            return middle - half, middle + half

        if made.tighten is not None:
            made.tighten(box)
        at = [None if move is None else compiled.column(move) for move in moves]
        raw = sum(float(weight) * output for weight, output in zip(margin.weights, made.outputs, strict=True))
        score = (raw + margin.constant) / robust.unit
        return _lowest(compiled, compiled.linear(score), at, robust.settings, deadline)


def deepest(below: np.ndarray, above: np.ndarray, free: np.ndarray, rho: float, norm: str) -> np.ndarray | None:
    r"""The move from a point to where a box of leaves is deepest within reach; None where it is not entered.

    In a box of perturbations each number goes to the middle of the leaves by itself, or away from their only face. In a
    ball a depth :math:`\alpha` asks :math:`s_j = \operatorname{clip}(0, \alpha - below_j, above_j - \alpha)`; the
    greatest one with :math:`\|s\|_2 \le \rho` is found by halving.

    Parameters
    ----------
    below, above
        How far the point lies above the leaves' lower, and below their upper face, scaled; infinite without a face.
    """
    radii = np.where(free, rho, 0.0)

    def depth_of(s: np.ndarray) -> float:
        return float(np.minimum(below + s, above - s).min(initial=1.0))

    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(below) & np.isinf(above), 0.0, (above - below) / 2)
    move = np.clip(middle, -radii, radii)
    if norm == "linf" or np.linalg.norm(move) <= rho:
        return move if depth_of(move) > 0 else None
    low, high = 0.0, depth_of(move)
    if high <= 0:
        return None
    for _ in range(BISECTIONS):
        depth = (low + high) / 2
        move = np.where(free, np.clip(0.0, depth - below, above - depth), 0.0)
        low, high = (depth, high) if np.linalg.norm(move) <= rho else (low, depth)
    return np.where(free, np.clip(0.0, low - below, above - low), 0.0) if low > 0 else None


def _lowest(
    compiled: Compiled, goal: Form, at: list[int | None], settings: Settings, deadline: Deadline
) -> Worst | None:
    """The perturbation that minimises a form; a ball is cut out of its box by planes, its last point scaled back."""
    worst = None
    for _ in range(PLANES if settings.norm == "l2" else 1):
        found = compiled.solve(goal, deadline.left)
        if found.x is None:
            return worst
        move = np.array([0.0 if column is None else found.x[column] for column in at])
        length = float(np.linalg.norm(move))
        if not _cut_out(compiled, found.x, at, settings):
            return Worst(move, found.bound)
        worst = Worst(move * settings.radius / length, found.bound)
    return worst


def _cut_out(compiled: Compiled, x: np.ndarray, at: list[int | None], settings: Settings) -> bool:
    """Add the plane that cuts a solution's move off a ball; whether it needed one."""
    moves = [(column, float(x[column])) for column in at if column is not None]
    length = math.hypot(*(part for _, part in moves))
    if settings.norm != "l2" or length <= settings.radius * (1 + NORM_SOLVED):
        return False
    compiled.add_row(Form.of([(column, part / length) for column, part in moves]), high=settings.radius)
    return True
