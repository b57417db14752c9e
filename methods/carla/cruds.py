"""CRUDS, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, moving_columns
from methods.carla.gradient import LAYERS, CodeDescent, autoencoder, module_of
from methods.carla.method import CarlaExplainer
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Cruds(CodeDescent):
    r"""Descends the loss of the wanted class plus the distance from the factual in that part of the code of a
    conditional subspace autoencoder which tells the classes apart [1]_.

    .. math::
        \min_w \; \ell(h(D(z, w)), \tilde y) + \lambda \|D(z, w) - \hat x\|_2^2

    :math:`\ell` is the cross entropy, D the decoder, z the part of the factual's code that both classes share, w the
    part that moves, from a random start. Of the rows of the wanted class that RMSprop passes, the one of least loss is
    the answer.

    The autoencoder is trained on the training rows and their labels. Features with more than two categories stay as
    they are, and so do immutable ones, which the published code does not know and is not shown. Further counterfactuals
    are those of further starts.

    Parameters
    ----------
    hidden, latent
        Units of the autoencoder's hidden layers, and of the part of its code that both classes share.
    epochs
        Of its training.
    lambda_
        Weight of the squared l2 distance.
    lr
        Step of RMSprop in the code, > 0.
    max_iter
        Steps, all of which are always taken; the published default is 2000.

    References
    ----------
    .. [1] Downs, M., J. L. Chu, Y. Yacoby, F. Doshi-Velez, and W. Pan (2020). CRUDS: counterfactual recourse using
       disentangled subspaces. *ICML Workshop on Human Interpretability in Machine Learning*.
    """

    library_defaults: ClassVar[Defaults] = {
        **LAYERS,
        **stated(
            f"{compat.CATALOG}.crud.model:CRUD._DEFAULT_HYPERPARAMS",
            epochs=(5, "vae_params/epochs"),
            lambda_=(0.001, "lambda_param"),
            lr=0.008,
            max_iter=2000,
        ),
    }

    hidden: tuple[int, ...] = (16,)
    lambda_: float = 0.001
    lr: float = 0.008

    title: ClassVar[str] = "CRUDS"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, moving_columns(problem.space))
        coder = autoencoder(question, self.hidden, self.latent, self.epochs)
        with compat.workshop():
            wanted = problem.labelled(problem.labels)
            model = model_of(question, problem.train, module=module_of(problem, question), wanted=wanted)
            method = compat.library().CRUD(model, self.options() | coder)
        return self.explainer(question, method, draws=True, steps=True)
