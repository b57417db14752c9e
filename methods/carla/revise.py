"""REVISE, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, moving_columns
from methods.carla.gradient import BATCH, LAYERS, CodeDescent, autoencoder, in_batches, module_of
from methods.carla.method import CarlaExplainer
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Revise(CodeDescent):
    r"""Descends the loss of the wanted class plus the distance from the factual in the code of a variational
    autoencoder [1]_; of the decoded rows of the wanted class, the one of least loss is the answer.

    .. math::
        \min_z \; \ell(h(D(z)), \tilde y) + \lambda \|D(z) - \hat x\|_1

    :math:`\ell` is the cross entropy, D the decoder, and z starts at the factual's code.

    The autoencoder is trained on the training rows. Features with more than two categories stay as they are, and so do
    immutable ones, which the published code does not know and is not shown. There is one counterfactual a factual.

    Parameters
    ----------
    hidden, latent
        Units of the autoencoder's hidden layers, and of its code.
    epochs
        Of its training.
    lambda_
        Weight of the l1 distance.
    lr
        Step of Adam in the code, > 0.
    max_iter
        Steps, all of which are always taken.

    References
    ----------
    .. [1] Joshi, S., O. Koyejo, W. Vijitbenjaronk, B. Kim, and J. Ghosh (2019). Towards realistic individual recourse
       and actionable explanations in black-box decision making systems. arXiv:1907.09615.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = {
        **LAYERS,
        **stated(
            f"{compat.CATALOG}.revise.model:Revise._DEFAULT_HYPERPARAMS",
            epochs=(5, "vae_params/epochs"),
            lambda_=(0.5, "lambda"),
            lr=0.1,
            max_iter=1000,
        ),
    }

    max_iter: int = 1000

    title: ClassVar[str] = "REVISE"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, moving_columns(problem.space))
        model = model_of(question, in_batches(problem.train), module=module_of(problem, question))
        coder = autoencoder(question, self.hidden, self.latent, self.epochs, batch_size=BATCH)
        with compat.workshop():
            method = compat.library().Revise(model, model.data, self.options() | coder)
        return self.explainer(question, method, steps=True)
