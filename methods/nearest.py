"""Nearest unlike neighbour: the closest training row that the model already classifies as desired."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.certificate import perturbed, proven
from harness.core.errors import check_choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_counts
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.target import Label
from methods.delta import check_delta, limited, refusal
from methods.wrapping import not_a_class, one_class, shares

BLOCK = 64  # rows that are looked at together


@dataclass(frozen=True)
class Nearest:
    r"""Training row :math:`x_i` with :math:`h(x_i) \models \tilde y` and the least distance :math:`d(x_i, \hat x)`.

    NICE [1]_ starts from such a row. Rows that differ from the factual in an immutable feature, or against a feature's
    actionability, are no candidates. Several counterfactuals are the next rows in order of distance, without
    repetition. The answer is the best among the training rows and carries no proof over the space: its status is FOUND.

    With ``delta`` it is RNCE [2]_, the nearest row that meets Δ-robustness [3]_:

    .. math::
        \min_{x_i} d(x_i, \hat x) \; \text{s.t.} \;
        h_{\theta'}(x_i) \models \tilde y \text{ for all } \|\theta' - \theta\|_\infty \le \delta

    Whether a row does is proven by intervals (``harness.certificate.weights``): exactly for linear models and networks
    of one hidden layer, for deeper ones by a bound, so that rows which meet it may be left out.

    Parameters
    ----------
    distance
        ``gower``, ``l1`` or ``l0``, in scaled space.
    delta
        In [0, 1], in units of the model's weights; 0 for the model as it is.

    References
    ----------
    .. [1] Brughmans, D., P. Leyman, and D. Martens (2023). NICE: an algorithm for nearest instance counterfactual
       explanations. *Data Mining and Knowledge Discovery*.
    .. [2] Jiang, J., F. Leofante, A. Rago, and F. Toni (2024). Interval abstractions for robust counterfactual
       explanations. *Artificial Intelligence*.
    .. [3] Jiang, J., F. Leofante, A. Rago, and F. Toni (2023). Formalising the robustness of counterfactual
       explanations for neural networks. *AAAI 37*.
    """

    deterministic: ClassVar[bool] = True
    takes_gaps: ClassVar[bool] = True

    distance: str = "gower"
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_choices(self, {"distance": ("gower", "l1", "l0")})

    def refuses(self, problem: Problem) -> str | None:
        return refusal(problem) if self.delta else None

    def objective(self, problem: Problem) -> Objective:
        return limited(Objective((Term(self.distance),)), problem, self.delta)

    def fit(self, problem: Problem) -> _Neighbours:
        return _Neighbours(problem, self.objective(problem), self.candidates(problem))

    def candidates(self, problem: Problem) -> pd.DataFrame:
        """The training rows that may be answers, decoded, each once."""
        unlike = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        if self.delta:
            unlike = unlike.loc[proven(problem.classifier, problem.target, unlike, self.delta)]
        return unlike


class _Neighbours:
    def __init__(self, problem: Problem, objective: Objective, unlike: pd.DataFrame) -> None:
        self.problem, self.objective, self.unlike = problem, objective, unlike
        self.encoded = problem.space.encode(unlike)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        space = self.problem.space
        inside = space.reached(factual, self.encoded) | ~space.changed(factual, self.unlike)
        candidates = self.unlike.loc[inside.all(axis=1)]
        cost = self.objective.evaluate(space, factual, candidates)
        ranked = np.argsort(cost, kind="stable")
        best: list[int] = []
        for start in range(0, len(ranked), BLOCK):
            if len(best) >= n or deadline.passed:
                break
            block = ranked[start : start + BLOCK]  # what is reached may be a special code inside the bounds
            faults = space.violations(factual, candidates.iloc[block])
            best += [int(i) for i, fault in zip(block, faults, strict=True) if not fault]
        best, late = best[:n], len(best) < n and deadline.passed
        rows = candidates.iloc[best].to_dict("records")
        answers = tuple(Answer(Status.FOUND, row, objective=float(cost[i])) for row, i in zip(rows, best, strict=True))
        why = f"no {'further ' * bool(best)}training row that the method may give is within the constraints"
        if late:
            return Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT))
        return Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=Reason.FINISHED, detail=why))


@dataclass(frozen=True)
class Stable(Nearest):
    r"""Nearest training row whose scores nearby are high and alike: T-Rex, by its nearest neighbour [4]_.

    .. math::
        \min_{x_i} d(x_i, \hat x) \; \text{s.t.} \; \hat R_{k, \sigma^2}(x_i) \ge \tau, \quad
        \hat R_{k, \sigma^2}(x) = \frac 1 k \sum_{j=1}^k \left(m(x^{(j)}) - \left|m(x) - m(x^{(j)})\right|\right)

    m is the probability of the wanted class, with the threshold at 0.5, and :math:`x^{(j)}` are k copies of x with
    normal noise on the numbers that are not immutable, the same for every row. This is the relaxed stability of [4]_,
    with the differences of scores in place of the unknown Lipschitz constant. Rows of a high stability are likely
    to stay valid when the model is trained again; nothing is proven. Any model of classes will do.

    Parameters
    ----------
    tau
        :math:`\tau` in [0, 1], the least stability.
    copies, sigma
        k >= 1, and :math:`\sigma` > 0 in scaled units.

    References
    ----------
    .. [4] Hamman, F., E. Noorani, S. Mishra, D. Magazzeni, and S. Dutta (2023). Robust counterfactual explanations for
       neural networks with probabilistic guarantees. *ICML*.
    """

    takes_gaps: ClassVar[bool] = False

    tau: float = 0.5
    copies: int = 100
    sigma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.tau <= 1:
            raise ValueError(f"tau is {self.tau}; it must be from 0 to 1, as probabilities are.")
        check_counts(self, 1, "copies")
        if not (math.isfinite(self.sigma) and self.sigma > 0):
            raise ValueError(f"sigma is {self.sigma}; it must be a finite number > 0, in scaled units.")

    def refuses(self, problem: Problem) -> str | None:
        return not_a_class("T-Rex", problem) or super().refuses(problem)

    def candidates(self, problem: Problem) -> pd.DataFrame:
        """The training rows that may be answers, decoded, each once."""
        unlike = super().candidates(problem)
        return unlike.loc[self.stability(problem, unlike) >= self.tau]

    def stability(self, problem: Problem, frame: pd.DataFrame) -> np.ndarray:
        r""":math:`\hat R` of decoded rows, shape (rows,)."""
        problem = one_class(problem)
        assert isinstance(problem.target, Label)
        code = problem.classifier.code(problem.target.value)
        moving = [problem.space[name] for name in perturbed(problem.space)]
        noise = np.random.default_rng(0).normal(0.0, self.sigma, (self.copies, len(moving)))
        found = np.empty(len(frame))
        for start in range(0, len(frame), BLOCK):
            rows = frame.iloc[start : start + BLOCK]
            copies = rows.iloc[np.repeat(np.arange(len(rows)), self.copies)].reset_index(drop=True)
            for feature, shift in zip(moving, noise.T, strict=True):
                copies[feature.name] = copies[feature.name].to_numpy(float) + np.tile(shift, len(rows)) * feature.range
            near = shares(problem.classifier, copies)[:, code].reshape(len(rows), self.copies)
            own = shares(problem.classifier, rows)[:, [code]]
            found[start : start + BLOCK] = (near - np.abs(own - near)).mean(axis=1)
        return found
