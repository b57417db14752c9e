"""Robust counterfactuals: the closest point whose box or ball of radius rho is put in the wanted class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier, MLPRegressor

from harness.certificate import readable
from harness.core.conflict import conflict_text, irreducible, lifted
from harness.core.errors import UnsupportedError
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.inputs import by_category
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind, values_of
from methods.estimators.raw_target import raw_interval
from methods.estimators.trees import ensemble, splits_only
from methods.robust.objective import RobustObjective
from methods.robust.outcome import Outcome, Solver
from methods.robust.perturbation import boundless
from methods.robust.related import check
from methods.robust.settings import Settings

WORD = 64  # categories that a mask of the cell search holds
ONCE = "a factual has one closest region; ask for one counterfactual"


@dataclass(frozen=True)
class Robust(Settings):
    r"""Closest point that the model puts in the wanted class together with everything within :math:`\rho` of it.

    Of several wanted classes points may be of one here and another there, for sums of trees.

    .. math::
        \min_x \;       & d(x, \hat x) + \alpha \textstyle\sum_l z_l                                   & (3) \\
        \text{s.t. } \; & h(x + s) \ge \tau \quad \forall s \in S                                      & (4) \\
                        & S = \{s : \|s\| \le \rho,\; s_j = 0 \text{ for } j \notin P\}                & (5)

    Equation numbers are those of [1]_. P are the scaled columns of numbers, but for immutable features and those that
    ``unperturbed`` names; categories are not perturbed, integers are perturbed as reals. x keeps to bounds and
    actionability. This guards against a counterfactual that is carried out inexactly, not against another model.

    OPTIMAL means that the whole region is proven valid for the fitted estimator, ties and single precision included,
    and that nothing cheaper is. FOUND is a point whose whole region is proven valid too, with a lower bound on the
    optimum. GAVE_UP has no such point, but the lower bound; the points on its trace say how far each of them is
    certified, all less than rho: none of them is an answer, as its region is not the one asked for.
    ``Answer.region`` are the values, in original units, that stay valid together: :math:`x_j \pm \rho R_j`, for a
    ball :math:`x_j \pm \rho R_j / \sqrt{|P|}`.

    Parameters
    ----------
    rho
        :math:`\rho \ge 0` in scaled units: a share of each column's range. None: from ``probability`` and ``sigma``.
    norm
        ``linf``, a box, or ``l2``, a ball.
    distance
        d in scaled space: ``l1``, ``l2sq`` or ``linf``.
    algorithm
        ``cells``: exact branch and bound over the cells of a tree ensemble (``methods/cells``). ``adversarial``:
        Algorithm 1 of [1]_, a program over perturbations and an adversary that finds new ones. ``leaf``: the best
        single cell shrunk by rho, an upper bound. ``network``: branch and bound over the phases of a ReLU network.
        ``auto``: cells for trees (``adversarial`` where these do not fit, such as with ``distance=linf``, relations, or
        more than two classes), one program for linear models, network for networks of at most two classes.
    clip
        Whether perturbed points keep to the bounds of the features; as published they may leave them.
    unperturbed
        Names of further features that are carried out exactly, though they may change: in [1]_ what is not perturbed is
        fixed, too.
    alpha
        Weight :math:`\alpha \ge 0` of the number of changed features, z in (3); 0 in [1]_.
    max_changes
        The most features that may change; None for no bound.
    hull
        The data manifold: ``hard`` keeps x, not what perturbations make of it, within the convex hull of the wanted
        class, as in ``CeOcl``; ``none``. Trees are left to ``adversarial`` where ``epsilon`` is not 0.
    epsilon
        How far, in scaled units, x may lie outside the hull, >= 0.
    hull_norm
        The norm that ``epsilon`` is measured in: 1, 2 or inf.
    hull_points
        Reference rows ``labelled`` as wanted, ``predicted`` as wanted, or ``both``.
    margin
        :math:`\delta` > 0 by which answers of programs keep a score away from its threshold; above the solver's
        tolerance of 1e-7, in a unit of the size of the scores. Bounds, and proofs that there is no region, are about
        the model's own rule, without a margin. The cells need none; the search over networks uses a tenth of it.
    relations_in_region
        Whether relations between features, those about changes aside, hold in the whole region, or at x alone.
    probability, sigma
        With ``rho`` None: the region is to hold a random perturbation with this probability, in (0, 1), each perturbed
        column being moved by an independent normal of standard deviation ``sigma`` > 0 in scaled units; (69), (72).

    References
    ----------
    .. [1] Maragno, D., J. Kurtz, T. E. Röber, R. Goedhart, Ş. İ. Birbil, and D. den Hertog (2024). Finding regions of
       counterfactual explanations via robust optimization. *INFORMS Journal on Computing* 36(5).
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"

    @property
    def sees_reference(self) -> bool:
        return self.hull != "none"

    def refuses(self, problem: Problem) -> str | None:
        """Why the problem is not taken, None where it is; neither compiled code nor a solver is loaded."""
        try:
            readable(problem.space, problem.classifier, problem.target)  # every region is certified anew
            self.perturbation(problem)
            self._fits(problem, self.chosen(problem))
        except UnsupportedError as fault:
            return str(fault)
        return None

    def chosen(self, problem: Problem) -> str:
        """The algorithm that answers: ``cells``, ``adversarial``, ``leaf``, ``network`` or ``linear``."""
        if self.algorithm != "auto":
            return self.algorithm
        if splits_only(problem.classifier.estimator):
            # Cells count costs by feature, which the greatest move is not a sum of.
            return "cells" if self._beyond_cells(problem) is None else "adversarial"
        if isinstance(problem.classifier.estimator, MLPClassifier | MLPRegressor):
            return "network" if len(problem.classifier.classes) <= 2 else "adversarial"
        return "linear"

    def _fits(self, problem: Problem, algorithm: str) -> None:
        """UnsupportedError where the algorithm cannot take the model, the target or the constraints."""
        estimator = problem.classifier.estimator
        name = type(estimator).__name__
        if self.relations_in_region:
            check(self.perturbation(problem))
        for curved in problem.space.curved if algorithm != "cells" else ():
            if boundless(problem.space[curved]):
                raise UnsupportedError(
                    f"{curved} is measured by percentiles and has no bounds, and beyond the population every move is "
                    f"free; give features.{curved}.bounds, or leave features.{curved}.percentile out."
                )
        for feature in problem.space.features if algorithm != "cells" else ():
            # Bounds are narrowed to what a budget affords, and no code may lie within finite ones.
            if feature.numeric and (
                codes := [c for c in feature.special if feature.bounds[0] <= c <= feature.bounds[1]]
            ):
                raise UnsupportedError(
                    f"{feature.name} has the special code {codes[0]:g} and no upper bound, which algorithm={algorithm} "
                    f"does not take; give features.{feature.name}.bounds without it."
                )
        if splits_only(estimator):
            ensemble(estimator)
        elif algorithm in {"cells", "leaf"}:
            raise UnsupportedError(f"algorithm={algorithm} needs trees (here: {name}); set algorithm=auto.")
        if algorithm == "network" and not isinstance(estimator, MLPClassifier | MLPRegressor):
            raise UnsupportedError(f"algorithm=network needs a network (here: {name}); set algorithm=auto.")
        if len(problem.classifier.classes) > 2:
            if algorithm == "network":
                raise UnsupportedError("algorithm=network takes two classes; set algorithm=auto.")
        elif algorithm in {"cells", "adversarial", "network"} and not raw_interval(problem).sense:
            raise UnsupportedError(f"algorithm={algorithm} needs a target with one end; leave out 'low' or 'high'.")
        if not self.clip and algorithm != "cells":
            return
        if not splits_only(estimator):
            raise UnsupportedError(f"clip=true needs trees (here: {name}); leave clip unset.")
        if (beyond := self._beyond_cells(problem)) is not None:
            why, remedy = beyond
            clips = "clip=true is for the search over cells; " if self.clip else ""
            raise UnsupportedError(f"{clips}{why}; {remedy}, or {'leave clip unset' if clips else 'algorithm=auto'}.")
        if algorithm != "cells":
            raise UnsupportedError("clip=true is for the search over cells; set algorithm=cells, or leave clip unset.")

    def _beyond_cells(self, problem: Problem) -> tuple[str, str] | None:
        """Why the cell search does not take trees, and what to set instead; None where it does."""
        if len(problem.classifier.classes) > 2:
            return "the cell search takes two classes", "ask a model of two"
        if problem.space.relations:
            return "the cell search keeps no relations between features", "drop 'constraints'"
        if self.distance == "linf":
            return "the cell search takes no distance 'linf'", "use l1 or l2sq"
        if not problem.space.even and (self.hull != "none" or self.norm == "l2"):
            what = "within a hull" if self.hull != "none" else "for balls"
            return (
                f"the cell search {what} takes weights of features, and no costs of directions or of pairs",
                "set weight alone",
            )
        if self.clip and self.norm == "l2":
            return "the cell search does not clip balls, only boxes", "set norm=linf"
        if self.hull != "none" and (self.epsilon or self.clip):
            what = "a hull enlarged by epsilon" if self.epsilon else "clip=true within a hull"
            return f"the cell search does not take {what}", "set epsilon=0" if self.epsilon else "set hull=none"
        if self.hull != "none" and (names := [f.name for f in problem.space.features if f.leaves_ranks_out]):
            return (
                f"the cell search within a hull takes levels in one order, and {names[0]} has its own, or special ones",
                "set hull=none",
            )
        if (unfit := _unfit_feature(problem)) is None:
            return None
        feature = problem.space[unfit]
        if feature.kind is Kind.CATEGORICAL:
            return f"the cell search takes at most {WORD} categories, and {unfit} has more", "merge some of them"
        why = f"the cell search takes levels in their order, and {unfit} has an input that is not monotone in them"
        return why, f"set features.{unfit}.kind=categorical"

    def objective(self, problem: Problem) -> Objective:
        claim, perturbation = self.claim(problem), self.perturbation(problem)
        return RobustObjective(claim.terms, limits=claim.limits, problem=problem, perturbation=perturbation)

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)

    def start(self, problem: Problem) -> Solver:
        """The algorithm that answers.

        Raises
        ------
        UnsupportedError
            Where it cannot take the model or the target.
        """
        settings, algorithm = self.resolved(problem), self.chosen(problem)
        self._fits(problem, algorithm)
        if algorithm == "cells" and settings.hull == "none":
            from methods.robust.cells import RobustCells  # slow: numba

            return RobustCells(problem, settings)
        if algorithm == "network":
            from methods.robust.network import Network  # slow: numba, pyomo

            return Network(problem, settings)
        from methods.robust import adversarial, hull, leaf, linear  # slow: numba, pyomo

        if algorithm == "cells":
            return hull.RobustHull(problem, settings)
        if algorithm == "adversarial":
            return adversarial.Adversarial(problem, settings)
        return leaf.Leaf(problem, settings) if algorithm == "leaf" else linear.LinearCounterpart(problem, settings)


def _unfit_feature(problem: Problem) -> str | None:
    """A feature that does not fit the cells: too many categories, or levels that trees split out of their order."""
    for feature in problem.space.features:
        if feature.kind is Kind.CATEGORICAL and len(feature.categories) > WORD:
            return feature.name
    ordinal = {feature.name: feature for feature in problem.space.features if feature.kind is Kind.ORDINAL}
    if not ordinal:
        return None
    trees = ensemble(problem.classifier.estimator).trees
    split = {int(column) for tree in trees for column in np.unique(tree.column[tree.left >= 0])}
    for column, source in enumerate(problem.classifier.inputs):
        if column in split and source.feature in ordinal:
            steps = np.diff(by_category(ordinal[source.feature], source))
            if (steps < 0).any() and (steps > 0).any():
                return source.feature
    return None


class _Explainer:
    """A solver, and its outcome as an answer."""

    def __init__(self, method: Robust, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.perturbation = method.perturbation(problem)
        self.solver = method.start(problem)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        deadline = deadline.sooner()
        origin = values_of(factual)
        outcome = self.solver.solve(origin, deadline)
        answer = self._answer(outcome, origin, Reason.TIME_LIMIT if deadline.passed else Reason.FINISHED)
        conflict = self._conflict(origin, deadline) if answer.status is Status.INFEASIBLE else ()
        if conflict:
            detail = f"{answer.detail}; these cannot hold together: {conflict_text(conflict)}"
            answer = replace(answer, detail=detail)
        filler = Answer(Status.GAVE_UP, reason=Reason.FINISHED, detail=ONCE)
        return Explanation((answer,), conflict, trace=outcome.trace).padded(n, filler)

    def _conflict(self, origin: dict[str, Any], deadline: Deadline) -> tuple[str, ...]:
        """Relations without which there is an answer, none of which can be spared; none where that is not known."""

        def infeasible(without: frozenset[str], until: Deadline) -> bool | None:
            outcome = self.method.start(lifted(self.problem, without)).solve(origin, until)
            if outcome.row is None and not math.isinf(outcome.bound):
                return None
            return outcome.row is None

        return irreducible(self.problem.space.constraints, infeasible, deadline)

    def _answer(self, outcome: Outcome, origin: Mapping[str, Any], ended: Reason) -> Answer:
        if outcome.row is None:
            if math.isinf(outcome.bound):
                detail = "no point is valid together with everything within rho of it; try a smaller rho"
                return Answer(Status.INFEASIBLE, reason=Reason.PROOF, detail=detail)
            detail = f"no region of radius {self.perturbation.rho:g} was certified within the limits"
            if outcome.farthest > 0:
                detail += f"; the best point of the trace is certified up to {outcome.farthest:.4g}"
            return Answer(Status.GAVE_UP, reason=ended, bound=max(outcome.bound, 0.0), detail=detail)
        region = self.perturbation.region(outcome.row)
        proven = outcome.proven(self.method.alpha, origin)
        status, reason = (Status.OPTIMAL, Reason.PROOF) if proven else (Status.FOUND, ended)
        return Answer(status, outcome.row, reason, outcome.value, outcome.bound, region)
