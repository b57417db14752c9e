"""The constraints of CE-OCL in a program, a class each: what it builds, poses for a factual, and asks of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.clusters import clustered
from harness.core.inputs import Input
from harness.core.problem import Problem
from harness.core.relations import all_kept, clauses_of
from harness.core.target import Label
from harness.core.tolerances import MARGIN
from harness.solvers.program import Compiled, Program
from methods.ce_ocl.aim import Aim
from methods.ce_ocl.assignments import Assignment, Assignments
from methods.ce_ocl.exclusion import Exclusion
from methods.ce_ocl.parameters import Parameters
from methods.estimators import network
from methods.estimators.linear import is_linear, surely_valid, unit_of, weights_of
from methods.estimators.raw_target import leads, raw_interval
from methods.milp.block import INTEGRAL
from methods.milp.causality import Causality
from methods.milp.cost import Cost
from methods.milp.embed import Embedded, embed
from methods.milp.embed.registry import embeddable
from methods.milp.hull import Piece
from methods.milp.knapsack import Knapsack
from methods.milp.likely import Likely
from methods.milp.manifold import Manifold
from methods.milp.number_block import bounded
from methods.milp.relations import RelationRows
from methods.milp.supports import support_points
from methods.milp.variables import Variables, affine


class Stated:
    """What the constraints of one program share; each makes its own part of it.

    Attributes
    ----------
    coupled
        Whether anything but the model depends on the values of numbers.
    splits
        Whether the model sees its inputs through thresholds only.
    bare
        Whether the model is embedded without a margin, so that bounds are those of its own rule; an exclusion adds one.
    assignments
        What tells counterfactuals apart where their assignments do.
    """

    parameters: Parameters
    problem: Problem
    aim: Aim
    coupled: bool
    splits: bool
    program: Program
    compiled: Compiled
    variables: Variables
    embedded: Embedded
    bare: bool
    exclusion: Exclusion
    knapsack: Knapsack | None
    causality: Causality | None = None
    assignments: Assignments | None = None

    @property
    def cells(self) -> bool:
        """Whether numbers are seen through thresholds alone."""
        return self.splits and not self.coupled


@dataclass(frozen=True)
class Posed:
    """For what a program is posed.

    Parameters
    ----------
    earlier
        Rows that the answer is kept from; with ``diversity=assignments`` their assignments, too.
    most, budget
        The greatest weighted number of changes, and cost.
    costs, box
        Of each feature: what its change costs, and where it has to stay (None: anywhere).
    piece
        Of the data manifold.
    """

    factual: pd.DataFrame
    earlier: Sequence[Any]
    most: float
    budget: float
    costs: Sequence[Cost]
    box: Sequence[Any] | None
    piece: Piece | None


class ConstraintPart:
    """A constraint in a program; what a subclass leaves out takes nothing.

    Attributes
    ----------
    exact
        Whether bounds of the posed program are those of the constraint: it keeps no margin yet.
    """

    exact = True

    def __init__(self, stated: Stated) -> None:
        self.stated = stated

    @staticmethod
    def check(problem: Problem, cells: bool) -> None:
        """Raise UnsupportedError where the program cannot be built, without building it."""

    def attach(self) -> None:
        """Find rows and columns in the compiled program."""

    def pose(self, posed: Posed) -> None:
        """Set bounds, coefficients and temporary rows for a factual."""

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        """Which decoded rows keep the constraint, bool of shape (rows,); all, where rows are judged elsewhere."""
        return np.ones(len(frame), dtype=bool)

    def complete(self, factual: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
        """A decoded solution, moved by what tolerances took it off the constraint."""
        return row

    def broken(self, frame: pd.DataFrame) -> bool:
        """Whether a completed solution is still off the constraint."""
        return False

    def tighten(self) -> bool:
        """Keep a margin from here on; False where there is none to keep, or it is kept already."""
        return False


class Coherence(ConstraintPart):
    """(4) and (6): one category of each feature; bounds and actionability, which bound variables."""

    def __init__(self, stated: Stated) -> None:
        super().__init__(stated)
        stated.variables = Variables(stated.program, stated.problem.space, cells=stated.cells)

    @staticmethod
    def check(problem: Problem, cells: bool) -> None:
        for feature in problem.space.features:
            if feature.numeric and not cells:
                bounded(feature)

    def attach(self) -> None:
        self.stated.variables.attach(self.stated.compiled)

    def pose(self, posed: Posed) -> None:
        self.stated.variables.pose(posed.factual, posed.costs, posed.box)


class Sparsity(ConstraintPart):
    """(5a) and (5b): at most so many changes, in weights of changed features."""

    def pose(self, posed: Posed) -> None:
        if math.isfinite(posed.most):
            self.stated.compiled.add_row(self.stated.variables.changed(self.stated.aim.weights), high=posed.most)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        stated = self.stated
        return stated.aim.changes(stated.problem.space, factual, frame) <= stated.parameters.most


class Apart(ConstraintPart):
    """Each answer differs from all earlier ones in a category, or by ``separation`` in a number."""

    def pose(self, posed: Posed) -> None:
        stated = self.stated
        for row in posed.earlier:
            stated.compiled.add_row(stated.variables.distance_form(row, stated.parameters.separation), low=1.0)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        kept = super().keeps(factual, earlier, frame)
        for row in earlier:
            far = np.zeros(len(frame), dtype=bool)
            for feature in self.stated.problem.space.features:
                values = frame[feature.name]
                if feature.numeric:
                    gap = np.abs(values.to_numpy(float) - float(row[feature.name])) / feature.range
                    far |= gap >= self.stated.parameters.separation
                else:
                    far |= (values != row[feature.name]).to_numpy(bool)
            kept &= far
        return kept


class Unrepeated(ConstraintPart):
    """No change of an earlier answer is made again: a category entered, or a number moved to the same side."""

    def pose(self, posed: Posed) -> None:
        for row in posed.earlier:
            self.stated.variables.forbid(row, posed.factual)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        kept = super().keeps(factual, earlier, frame)
        for row in earlier:
            for feature in self.stated.problem.space.features:
                origin, value, values = factual[feature.name].iloc[0], row[feature.name], frame[feature.name]
                if value == origin:
                    continue
                if feature.numeric:
                    kept &= ((values <= origin) if value > origin else (values >= origin)).to_numpy(bool)
                else:
                    kept &= (values != value).to_numpy(bool)
        return kept


class Validity(ConstraintPart):
    """(2c): the raw output beyond its threshold, within the wanted interval, or ahead of the other classes' outputs."""

    def __init__(self, stated: Stated) -> None:
        super().__init__(stated)
        parameters, problem = stated.parameters, stated.problem
        classifier, space = problem.classifier, stated.variables
        # Assignments are told apart by the phases of all units, those that could be spared, too.
        told_apart = parameters.diversity == "assignments"
        sense = raw_interval(problem).sense if len(classifier.classes) <= 2 and not told_apart else 0
        inputs = [space.source(source) for source in classifier.inputs]
        stated.embedded = embed(classifier.estimator, stated.program, inputs, sense)
        stated.bare = bare(parameters, problem)
        stated.knapsack = None if stated.embedded.tighten is None else Knapsack(space, classifier.inputs)
        self.unit = unit_of(problem)
        self.rows = self._rows(0.0 if stated.bare else parameters.margin)

    @staticmethod
    def check(problem: Problem, cells: bool) -> None:
        classifier = problem.classifier
        if len(classifier.classes) <= 2:
            raw_interval(problem)
        _readable(problem, classifier.inputs, classifier.estimator)

    def _rows(self, margin: float) -> list[Any]:
        """Outputs and margin are divided by ``unit``, in which the solver's tolerances are small."""
        problem, unit = self.stated.problem, self.unit
        outputs = [output if unit == 1 else output / unit for output in self.stated.embedded.outputs]
        if len(problem.classifier.classes) <= 2:
            low, high = (end / unit for end in raw_interval(problem).bounds(margin))
            return [*self._least(outputs[0], low, False), *self._least(-outputs[0], -high, False)]
        assert isinstance(problem.target, Label)  # anything else is refused
        # The first of several equal classes is predicted, and averaged leaf fractions do tie.
        wanted = problem.classifier.code(problem.target.value)
        earlier, later = (lead / unit for lead in leads(problem.classifier, margin))
        return [
            row
            for other, output in enumerate(outputs)
            if other != wanted
            for row in self._least(outputs[wanted] - output, later if wanted < other else earlier, wanted > other)
        ]

    def _least(self, output: Any, low: float, beyond: bool) -> list[Any]:
        """The row by which an output is at least ``low``; none of a constant that is, or that is ``beyond``."""
        program = self.stated.program
        if not math.isfinite(low):
            return []
        if (value := program.constant(output)) is None:
            return [program.add(output >= low)]
        return [] if value > low or (value == low and not beyond) else [program.add(False)]

    def attach(self) -> None:
        stated, compiled, parameters = self.stated, self.stated.compiled, self.stated.parameters
        stated.embedded.attach(compiled)
        leaves = [np.array([compiled.column(leaf) for leaf in tree], dtype=np.int32) for tree in stated.embedded.leaves]
        phases = np.array([compiled.column(phase) for phase in stated.embedded.phases], dtype=np.int32)
        wider = parameters.margin if stated.bare else 10.0 * parameters.margin / self.unit
        valid_rows = [compiled.row(row) for row in self.rows]
        stated.exclusion = Exclusion(compiled, valid_rows, wider, leaves if stated.splits else None)
        if parameters.diversity == "assignments":
            # Where leaves tell all, they tell what changes: all that they allow to stay does.
            counted = parameters.counted and not stated.cells
            stated.assignments = Assignments(stated.problem, stated.variables, counted, leaves, phases)
        if stated.coupled:  # HiGHS 1.12 was seen to call wrong optima proven where leaves were continuous
            for tree in leaves:
                compiled.integer[tree] = 1

    def pose(self, posed: Posed) -> None:
        stated = self.stated
        if stated.knapsack is not None and stated.embedded.tighten is not None:
            stated.knapsack.limit(posed.costs, stated.aim.weights, posed.most, posed.budget)
            stated.embedded.tighten(stated.knapsack, stated.knapsack.corners)


class OtherAssignment(Apart):
    """Each answer is the best of another assignment of the integer variables; after ``Validity``, which knows them.

    Of what is earlier, answers are kept apart from points as by ``Apart``.
    """

    def pose(self, posed: Posed) -> None:
        assert self.stated.assignments is not None
        points, assigned = _parted(posed.earlier)
        super().pose(replace(posed, earlier=points))
        self.stated.assignments.exclude(self.stated.compiled, assigned)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        assert self.stated.assignments is not None
        points, assigned = _parted(earlier)
        other = np.array([one not in assigned for one in self.stated.assignments.of(factual, frame)], dtype=bool)
        return super().keeps(factual, points, frame) & other


def _parted(earlier: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Assignment]]:
    """The points and the assignments among what is earlier."""
    assigned = [one for one in earlier if isinstance(one, Assignment)]
    return [one for one in earlier if not isinstance(one, Assignment)], assigned


class Causal(ConstraintPart):
    """(7): structural equations."""

    def __init__(self, stated: Stated) -> None:
        super().__init__(stated)
        self.causality = stated.causality = Causality(stated.program, stated.variables, stated.problem.equations)

    @staticmethod
    def check(problem: Problem, cells: bool) -> None:
        for equation in problem.equations:
            _readable(problem, equation.model.inputs, equation.model.estimator)

    def attach(self) -> None:
        self.causality.attach(self.stated.compiled)

    def pose(self, posed: Posed) -> None:
        self.causality.pose(posed.factual, (posed.costs, self.stated.aim.weights, posed.most, posed.budget))

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        kept = super().keeps(factual, earlier, frame)
        for equation in self.stated.problem.equations:
            kept &= np.abs(equation.residual(self.stated.problem.space, factual, frame)) <= INTEGRAL
        return kept

    def complete(self, factual: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
        return self.causality.complete(factual, row)


class Related(ConstraintPart):
    """Relations between features."""

    def pose(self, posed: Posed) -> None:
        stated = self.stated
        clauses = clauses_of(stated.problem.space.relations, posed.factual)
        self.rows = RelationRows(stated.compiled, stated.variables, clauses)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.rows.exact

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        return all_kept(clauses_of(self.stated.problem.space.relations, factual), frame)

    def complete(self, factual: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
        """As far as the model still takes it; else ``broken`` says that tolerances decide."""
        completed, problem = self.rows.complete(row), self.stated.problem
        if completed == row or surely_valid(problem, problem.space.frame([completed]))[0]:
            return completed
        return row

    def broken(self, frame: pd.DataFrame) -> bool:
        return not self.rows.keeps(frame)[0]

    def tighten(self) -> bool:
        return self.rows.tighten()


class Inside(ConstraintPart):
    """(3): a piece of the data manifold, hard or at a price; cuts and ``Manifold.slack`` tell rows off it."""

    def pose(self, posed: Posed) -> None:
        if posed.piece is not None:
            posed.piece.pose(self.stated.compiled, self.stated.variables.encoded())


def manifolds(parameters: Parameters, problem: Problem, entry: float) -> list[Manifold | Likely]:
    """(3): the hulls, in the order in which they are tried; or the points that are likely.

    Lying outside of a soft one costs as much as ``entry`` scaled units of distance from it, besides that distance.
    """
    if not parameters.manifold:
        return []
    if parameters.likelihood:
        return [parameters.likely(problem)]
    space = problem.space
    points = support_points(problem, parameters.hull_points)
    cluster, norm = clustered(points, parameters.clusters), float(parameters.hull_norm)
    hard = parameters.epsilons if parameters.hull != "penalised" else ()
    found: list[Manifold | Likely] = [Manifold(space, points, cluster, norm, most, None) for most in hard]
    if not parameters.soft:
        return found
    penalty = parameters.penalty
    return [*found, Manifold(space, points, cluster, 1, 0.0, penalty, penalty * entry)]


def bare(parameters: Parameters, problem: Problem) -> bool:
    """Whether a network or linear model is posed without a margin: unless constant, or more than 1e-6 is asked."""
    estimator = problem.classifier.estimator
    if parameters.margin > MARGIN:
        return False
    return isinstance(estimator, network.NETWORKS) or (is_linear(estimator) and bool(weights_of(estimator)[0].any()))


def _readable(problem: Problem, inputs: Sequence[Input], estimator: Any) -> None:
    """Raise UnsupportedError where a model's inputs or the model itself cannot be embedded."""
    for source in inputs:
        if problem.space[source.feature].numeric:
            affine(source)
    embeddable(estimator)
