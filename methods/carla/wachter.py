"""The gradient search of Wachter et al., by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness.core.numbers import check_above, check_counts
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, moving_columns
from methods.carla.gradient import GradientMethod, module_of
from methods.carla.method import CarlaExplainer
from methods.estimators.gradients import torch_library
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Wachter(GradientMethod):
    r"""Descends the loss of the wanted class plus the distance from the factual, until the class changes [1]_.

    .. math::
        \min_x \; \ell(h(x), \tilde y) + \lambda \|x - \hat x\|_1

    :math:`\ell` is the cross entropy; [1]_ has a squared difference there, and divides the distance by the MAD.

    The published code clamps a copy of the point to the training range, which does nothing; here the point itself is
    clamped, as it intends. Categories stay as they are: the published code rounds them, which lets no gradient through.
    So do immutable features, which it does not know and is not shown. There is one counterfactual a factual.

    Parameters
    ----------
    lr
        Step of Adam, in scaled units, > 0.
    lambda_
        Weight of the l1 distance, which falls by 0.05 after every ``n_iter`` steps.
    n_iter
        Steps with one weight, at least 1.

    References
    ----------
    .. [1] Wachter, S., B. Mittelstadt, and C. Russell (2017). Counterfactual explanations without opening the black
       box. *Harvard Journal of Law & Technology* 31(2).
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = stated(
        f"{compat.CATALOG}.wachter.model:Wachter._DEFAULT_HYPERPARAMS", lr=0.01, lambda_=0.01, n_iter=1000
    )

    lr: float = 0.01
    lambda_: float = 0.01
    n_iter: int = 1000

    def __post_init__(self) -> None:
        check_above(self, 0, "lr")
        check_counts(self, 1, "n_iter")

    title: ClassVar[str] = "Wachter"

    def build(self, problem: Problem) -> CarlaExplainer:
        torch = torch_library()

        class Shares(torch.Tensor):  # type: ignore[name-defined]
            """Probabilities whose columns may be named by a float tensor, as torch 1.7 had it."""

            def __getitem__(self, key: Any) -> Any:
                named = tuple(int(k) if isinstance(k, torch.Tensor) and k.is_floating_point() else k for k in key)
                return super().__getitem__(named)

        question = Question(problem, moving_columns(problem.space))
        module = module_of(problem, question)
        model = model_of(question, problem.train, module=lambda rows: module(rows).as_subclass(Shares))
        method = compat.library().Wachter(model, self.options())
        return self.explainer(question, method, steps=True)
