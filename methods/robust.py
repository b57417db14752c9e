"""Robust counterfactuals: the closest point whose whole box or ball of radius rho is put in the wanted class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier, MLPRegressor

from harness.certificate import checker
from harness.errors import UnsupportedError
from harness.explanation import Answer, Explanation, Reason, Status
from harness.method import Deadline
from harness.objective import Limit, Objective, Term
from harness.problem import Problem
from methods.cells.robust import RobustCells
from methods.perturbation import Outcome, Perturbation, RobustObjective, Settings, Solver
from methods.trees import splits_only

RESERVE = 0.05  # of the time limit: for reading and checking the last solution
ONCE = "a factual has one closest region; ask for one counterfactual"


@dataclass(frozen=True)
class Robust(Settings):
    r"""Closest point that the model puts in the wanted class together with everything within :math:`\rho` of it.

    .. math::
        \min_x \;       & d(x, \hat x) + \alpha \textstyle\sum_l z_l                                   & (3) \\
        \text{s.t. } \; & h(x + s) \ge \tau \quad \forall s \in S                                      & (4) \\
                        & S = \{s : \|s\| \le \rho,\; s_j = 0 \text{ for } j \notin P\}                & (5)

    Equation numbers are those of [1]_. P are the scaled columns of numbers, but for immutable features and those that
    ``unperturbed`` names; categories are not perturbed, integers are perturbed as reals. x keeps to bounds and
    actionability. This guards against a counterfactual that is carried out inexactly, not against another model.

    OPTIMAL means that the whole region is proven valid for the fitted estimator, ties and single precision included,
    and that nothing cheaper is. FOUND is a certified point with a lower bound on the optimum. ``Answer.region`` are the
    values, in original units, that stay valid together: :math:`x_j \pm \rho R_j`, for a ball
    :math:`x_j \pm \rho R_j / \sqrt{|P|}`.

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
        ``auto``: cells for trees (``adversarial`` with ``linf``),
        one program for linear models, network for networks.
    clip
        Whether perturbed points keep to the bounds of the features; as published they may leave them.
    unperturbed
        Names of further features that are carried out exactly.
    alpha
        Weight :math:`\alpha \ge 0` of the number of changed features.
    max_changes
        The most features that may change; None for no bound.
    margin
        :math:`\delta` > 0 by which programs keep a score away from its threshold; above the solver's tolerance of
        1e-7. The cells need none.
    probability, sigma
        With ``rho`` None: the region is to hold a random perturbation with this probability, in (0, 1), each perturbed
        column being moved by an independent normal of standard deviation ``sigma`` > 0 in scaled units; (69), (72).

    References
    ----------
    .. [1] Maragno, D., J. Kurtz, T. E. Röber, R. Goedhart, Ş. İ. Birbil, and D. den Hertog (2024). Finding regions of
       counterfactual explanations via robust optimization. *INFORMS Journal on Computing* 36(5).
    """

    def refuses(self, problem: Problem) -> str | None:
        if problem.classifier.opaque:
            return problem.classifier.opaque
        try:
            checker(problem.space, problem.classifier, problem.target)  # no region without somebody to prove it again
            self.start(problem)
        except UnsupportedError as fault:
            return str(fault)
        return None

    def objective(self, problem: Problem) -> Objective:
        terms = [Term(self.distance)]
        if self.alpha:
            terms.append(Term("l0", self.alpha))
        limits = () if self.max_changes is None else (Limit(Term("l0"), self.max_changes),)
        return RobustObjective(
            tuple(terms), limits=limits, problem=problem, perturbation=Perturbation.of(self, problem)
        )

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)

    def start(self, problem: Problem) -> Solver:
        """The algorithm that answers.

        Raises
        ------
        UnsupportedError
            Where it cannot take the model or the target.
        """
        settings, algorithm = self.resolved(problem), self.algorithm
        if algorithm == "auto" and splits_only(problem.classifier.estimator):
            # The cells count costs by feature, which the greatest move is not a sum of.
            algorithm = "adversarial" if self.distance == "linf" else "cells"
        if algorithm == "cells":
            return RobustCells(problem, settings)
        if algorithm == "adversarial":
            from methods.robust_program import Adversarial

            return Adversarial(problem, settings)
        if algorithm == "leaf":
            from methods.robust_program import Leaf

            return Leaf(problem, settings)
        if algorithm == "network" or isinstance(problem.classifier.estimator, MLPClassifier | MLPRegressor):
            from methods.robust_network import Network

            return Network(problem, settings)
        from methods.robust_program import Linear

        return Linear(problem, settings)


class _Explainer:
    """A solver, and its outcome as an answer."""

    def __init__(self, method: Robust, problem: Problem) -> None:
        self.problem = problem
        self.perturbation = Perturbation.of(method, problem)
        self.solver = method.start(problem)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        deadline = Deadline(deadline.at - RESERVE * deadline.left)
        origin = dict(zip(factual.columns, factual.to_numpy(object)[0].tolist(), strict=True))
        outcome = self.solver.solve(origin, deadline)
        filler = Answer(Status.GAVE_UP, reason=Reason.FINISHED, detail=ONCE)
        return Explanation((self._told(outcome),), trace=outcome.trace).padded(n, filler)

    def _told(self, outcome: Outcome) -> Answer:
        if outcome.row is None:
            if math.isinf(outcome.bound):
                detail = "no point is valid together with everything within rho of it; try a smaller rho"
                return Answer(Status.INFEASIBLE, reason=Reason.PROOF, detail=detail)
            return Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT, detail="no region was certified within the limits")
        region = self.perturbation.region(outcome.row)
        status, reason = (Status.OPTIMAL, Reason.PROOF) if outcome.proven else (Status.FOUND, Reason.TIME_LIMIT)
        return Answer(status, outcome.row, reason, outcome.value, outcome.bound, region)
