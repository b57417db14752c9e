"""A network of ReLUs trained by torch, behind scikit-learn's protocol. Only training needs torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from harness.core.errors import UnsupportedError
from harness.core.packages import install
from harness.models.runtime.engine import LOGITS, probabilities
from harness.models.runtime.records import Layers

ABSENT = f"torch is not installed; run `{install('torch')}`."


def installed() -> bool:
    """Whether torch can be imported."""
    return importlib.util.find_spec("torch") is not None


class TorchMLPClassifier(ClassifierMixin, BaseEstimator):
    """A multi-layer perceptron of ReLUs, trained by torch's Adam on the cross-entropy, in double precision.

    Equal data and parameters give equal weights: initial weights and batches are drawn from a generator of its own, on
    one thread. Fitted weights are numpy arrays laid out as those of ``sklearn.neural_network.MLPClassifier`` are, so
    that a stored model is loaded, checked and embedded in mixed-integer programs without torch.

    Parameters
    ----------
    hidden_layer_sizes
        Units of each hidden layer.
    max_iter
        Epochs, at least 1.
    batch_size
        Rows a step.
    learning_rate
        Of Adam, > 0.
    alpha
        Weight of the squared weights in the loss, >= 0.
    random_state
        Seed, 0 to 2**63 - 1.

    Attributes
    ----------
    coefs_, intercepts_
        By layer, shapes (inputs, units) and (units,), float64. The last layer has one unit for two classes.
    classes_
        Labels, sorted.
    """

    activation = "relu"
    fitted_by = ("torch",)  # libraries whose versions a fit depends on

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (50,),
        max_iter: int = 50,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        alpha: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, x: Any, y: Any) -> TorchMLPClassifier:
        """Train on x, shape (rows, inputs), and labels of at least two classes, shape (rows,).

        Raises
        ------
        UnsupportedError
            Where torch is not installed.
        """
        if not installed():
            raise UnsupportedError(f"a torch model cannot be trained: {ABSENT}")
        import torch  # optional

        matrix = np.asarray(x, dtype=float)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.n_features_in_ = matrix.shape[1]
        binary = len(self.classes_) == 2
        self.out_activation_ = "logistic" if binary else "softmax"
        inputs = torch.from_numpy(matrix)
        targets = torch.from_numpy(codes.astype(float) if binary else codes)
        loss = torch.nn.BCEWithLogitsLoss() if binary else torch.nn.CrossEntropyLoss()
        generator = torch.Generator().manual_seed(int(self.random_state))
        sizes = [matrix.shape[1], *self.hidden_layer_sizes, 1 if binary else len(self.classes_)]
        layers = [_drawn(torch, *pair, generator) for pair in pairwise(sizes)]
        optimizer = torch.optim.Adam(
            [part for layer in layers for part in layer], lr=self.learning_rate, weight_decay=self.alpha
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # sums in another order give other weights
        try:
            for _ in range(self.max_iter):
                for batch in torch.randperm(len(matrix), generator=generator).split(self.batch_size):
                    scores = inputs[batch]
                    for depth, (weights, shifts) in enumerate(layers):
                        scores = (scores.relu() if depth else scores) @ weights + shifts
                    optimizer.zero_grad()
                    loss(scores[:, 0] if binary else scores, targets[batch]).backward()
                    optimizer.step()
        finally:
            torch.set_num_threads(threads)
        self.coefs_ = [weights.detach().numpy() for weights, _ in layers]
        self.intercepts_ = [shifts.detach().numpy() for _, shifts in layers]
        return self

    def predict_proba(self, x: Any) -> np.ndarray:
        """Shape (rows, classes), columns in the order of ``classes_``."""
        return probabilities(Layers(tuple(self.coefs_), tuple(self.intercepts_)).sums(x), LOGITS)

    def predict(self, x: Any) -> np.ndarray:
        """Labels, shape (rows,); of two classes the first where they tie."""
        return self.classes_[self.predict_proba(x).argmax(axis=1)]


def _drawn(torch: Any, inputs: int, units: int, generator: Any) -> tuple[Any, Any]:
    """Weights and intercepts of a layer, drawn evenly as Glorot and Bengio (2010), (16), have it."""
    bound = float(np.sqrt(6.0 / (inputs + units)))
    drawn = torch.rand(inputs + 1, units, dtype=torch.float64, generator=generator) * 2 * bound - bound
    return drawn[:-1].clone().requires_grad_(), drawn[-1].clone().requires_grad_()
