"""Networks of ReLUs: the estimators that are ones."""

from __future__ import annotations

from sklearn.neural_network import MLPClassifier, MLPRegressor

from harness.models.torch_mlp import TorchMLPClassifier

NETWORKS = (MLPClassifier, MLPRegressor, TorchMLPClassifier)
