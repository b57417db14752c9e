"""C-CHVAE, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.core.numbers import check_above, check_counts
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, moving_columns
from methods.carla.gradient import BATCH, LAYERS, TorchMethod, autoencoder, check_layers, in_batches
from methods.carla.method import CarlaExplainer
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Cchvae(TorchMethod):
    r"""Samples in growing spheres around the factual's code in a variational autoencoder, until one decodes to a row of
    the wanted class [1]_; the closest is the answer.

    .. math::
        \min_\delta \; \|D(z + \delta) - \hat x\|_1 \quad \text{s.t. } h(D(z + \delta)) \models \tilde y, \quad
        (m - 1) \eta \le \|\delta\|_1 \le m \eta

    z is the factual's code, D the decoder, cut to [0, 1], and :math:`\eta` is ``step``. The minimum is over samples of
    :math:`\delta`, for the first m = 1, 2, ... that has a valid one.

    The autoencoder is trained on the training rows. Features with more than two categories, which the published code
    cannot keep coherent, stay as they are, and so do immutable ones, which it is not shown. Further counterfactuals are
    those of further draws.

    Parameters
    ----------
    hidden, latent
        Units of the autoencoder's hidden layers, and of its code.
    epochs
        Of its training.
    n_search_samples, step, max_iter
        Samples in a sphere, by how much the next is wider, and the most spheres.

    References
    ----------
    .. [1] Pawelczyk, M., K. Broelemann, and G. Kasneci (2020). Learning model-agnostic counterfactual explanations for
       tabular data. *The Web Conference*. doi:10.1145/3366423.3380087.
    """

    library_defaults: ClassVar[Defaults] = {
        **LAYERS,
        **stated(
            f"{compat.CATALOG}.cchvae.model:CCHVAE._DEFAULT_HYPERPARAMS",
            epochs=(5, "vae_params/epochs"),
            n_search_samples=300,
            step=0.1,
            max_iter=1000,
        ),
    }

    hidden: tuple[int, ...] = (32, 16)
    latent: int = 8
    epochs: int = 5
    n_search_samples: int = 300
    step: float = 0.1
    max_iter: int = 1000

    def __post_init__(self) -> None:
        check_layers(self.hidden, self.latent, self.epochs)
        check_counts(self, 1, "n_search_samples", "max_iter")
        check_above(self, 0, "step")

    title: ClassVar[str] = "CCHVAE"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, moving_columns(problem.space))
        coder = autoencoder(question, self.hidden, self.latent, self.epochs, batch_size=BATCH)
        with compat.workshop():
            model = model_of(question, in_batches(problem.train))
            method = compat.library().CCHVAE(model, self.options() | coder)
        return self.explainer(question, method, draws=True, steps=True)
