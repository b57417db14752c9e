"""Models with gradients: linear ones and networks, read as layers and rebuilt in torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from harness.core.classifier import Classifier
from harness.core.inputs import Affine, Step, by_category, space_inputs
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.tolerances import COORDINATE_TIE
from methods.estimators.network import dense_layers

ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}  # scikit-learn's names and torch's


def torch_library() -> ModuleType:
    """PyTorch."""
    import torch  # optional, and slow: seconds

    return torch


def of_scaled(space: Space, classifier: Classifier) -> tuple[np.ndarray, np.ndarray] | None:
    """The matrix (columns, inputs) and shifts (inputs,) by which scaled columns become the model's inputs.

    None where an input is no affine function of them, as ranks that are not evenly spaced are none.
    """
    inputs = classifier.inputs
    matrix, shifts = np.zeros((len(space.columns), len(inputs))), np.zeros(len(inputs))
    if inputs == space_inputs(space):
        return np.eye(len(inputs)), shifts
    places = {feature.name: columns.start for feature, columns in zip(space.features, space.slices, strict=True)}
    for column, source in enumerate(inputs):
        feature, place = space[source.feature], places[source.feature]
        if feature.numeric:
            if not isinstance(source, Affine):
                return None
            matrix[place, column] = feature.range / source.unit
            shifts[column] = (feature.scale[0] - source.shift) / source.unit
            continue
        if isinstance(source, Step):
            return None
        values = by_category(feature, source)
        if feature.kind is Kind.CATEGORICAL:
            matrix[place : place + len(values), column] = values
            continue
        shifts[column], matrix[place, column] = values[0], values[-1] - values[0]
        even = np.linspace(values[0], values[-1], len(values))
        if np.abs(values - even).max() > COORDINATE_TIE * max(1.0, np.abs(values).max()):
            return None
    return matrix, shifts


def linear(space: Space, classifier: Classifier) -> tuple[np.ndarray, float] | None:
    """Weights of the scaled columns and intercept of a linear model, which decides by their sign; else None."""
    estimator = classifier.estimator
    if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
        return None
    if classifier.opaque or np.size(estimator.intercept_) != 1 or (scaled := of_scaled(space, classifier)) is None:
        return None
    weights, intercept = np.ravel(estimator.coef_), float(np.ravel(estimator.intercept_)[0])
    matrix, shifts = scaled
    return matrix @ weights, float(shifts @ weights) + intercept - classifier.raw_threshold


def layers_of(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Weights and intercepts from the scaled columns to one score, which is above 0 for class 1 of two.

    None for models other than linear ones and networks, and for those of inputs that are not affine.
    """
    classifier, space = problem.classifier, problem.space
    plane = linear(space, classifier)
    if plane is not None:
        return [(plane[0][:, None], np.array([plane[1]]))]
    estimator = classifier.estimator
    if classifier.opaque or not hasattr(estimator, "coefs_") or estimator.activation not in ACTIVATIONS:
        return None
    if (scaled := of_scaled(space, classifier)) is None:
        return None
    layers = [(np.asarray(weights), np.asarray(shifts)) for weights, shifts in dense_layers(estimator)]
    layers[0] = scaled[0] @ layers[0][0], scaled[1] @ layers[0][0] + layers[0][1]
    layers[-1] = layers[-1][0], layers[-1][1] - classifier.raw_threshold
    return layers


def without_gradients(problem: Problem, title: str) -> str | None:
    """Why a method that follows gradients cannot take this model, as a sentence, or None where it can."""
    classifier = problem.classifier
    if classifier.opaque:
        return classifier.opaque
    if layers_of(problem) is not None:
        return None
    name = type(classifier.estimator).__name__
    return (
        f"{title} follows gradients, which {name} has not on these columns; choose a linear model or a network, such "
        f"as model=torch_mlp, of numbers, evenly spaced ranks and categories."
    )


def network(problem: Problem) -> Any:
    """A torch module: the score of ``layers_of`` for scaled columns, shapes (rows, columns) and (rows, 1), float64."""
    torch, layers = torch_library(), layers_of(problem)
    assert layers is not None
    activation = getattr(torch, ACTIVATIONS[getattr(problem.classifier.estimator, "activation", "relu")])
    parts = [(torch.tensor(np.array(weights)), torch.tensor(np.array(shifts))) for weights, shifts in layers]

    class Network(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, rows: Any) -> Any:
            for depth, (weights, shifts) in enumerate(parts):
                rows = (activation(rows) if depth else rows) @ weights + shifts
            return rows

    return Network()


def warm() -> None:
    """Have torch load what its first step of descent needs, which takes seconds, before a clock runs."""
    torch = torch_library()
    point = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([point])
    (point**2).sum().backward()
    optimizer.step()
