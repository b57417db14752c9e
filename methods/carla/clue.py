"""CLUE, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.core.numbers import check_counts
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, moving_columns
from methods.carla.gradient import GradientMethod, module_of
from methods.carla.method import CarlaExplainer
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Clue(GradientMethod):
    r"""Descends the model's uncertainty plus the distance from the factual in the code of a variational autoencoder
    [1]_; a row of the wanted class that it passes is the answer.

    .. math::
        \min_z \; H(h(D(z))) + \frac{\lambda}{p} \|D(z) - \hat x\|_1

    H is the entropy of the predicted probabilities, D the decoder, p the number of columns, and :math:`\lambda = 4`. Of
    the rows of the wanted class that Adam passes, the nearest in l1 is taken.

    The search is for certainty, not for a class, which is therefore often not met. The autoencoder is trained on the
    training rows. Features with more than two categories stay as they are, and so do immutable ones, which the
    published code does not know and is not shown. There is one counterfactual a factual.

    Parameters
    ----------
    width, depth, latent
        Units of the autoencoder's hidden layers, their number, and units of its code.
    epochs
        Of its training, at least 1.

    References
    ----------
    .. [1] Antorán, J., U. Bhatt, T. Adel, A. Weller, and J. M. Hernández-Lobato (2021). Getting a CLUE: a method for
       explaining uncertainty estimates. *ICLR*.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = stated(
        f"{compat.CATALOG}.clue.model:Clue._DEFAULT_HYPERPARAMS", width=10, depth=3, latent=(12, "latent_dim"), epochs=1
    )

    width: int = 10
    depth: int = 3
    latent: int = 12
    epochs: int = 1

    def __post_init__(self) -> None:
        check_counts(self, 1, "width", "depth", "latent", "epochs")

    title: ClassVar[str] = "CLUE"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, moving_columns(problem.space))
        model = model_of(question, problem.train, module=module_of(problem, question))
        with compat.workshop():
            method = compat.library().Clue(model.data, model, {"data_name": "rows"} | self.options())
        return self.explainer(question, method, steps=True)
