"""Counterfactuals that stay valid when each weight of the model moves by at most delta: as a model, and as a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.certificate import proven, weight_box
from harness.core.errors import UnsupportedError
from harness.core.explanation import Explanation
from harness.core.inputs import Step, by_category
from harness.core.method import Deadline, Explainer
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Space
from harness.models.torch_mlp import TorchMLPClassifier


def check_delta(delta: float) -> None:
    """Refuse what cannot be a change of weights.

    Raises
    ------
    ValueError
        Where it is not from 0 to 1.
    """
    if not 0 <= delta <= 1:
        raise ValueError(f"delta is {delta}; it must be from 0 to 1, in units of the model's weights.")


@dataclass(frozen=True)
class DeltaObjective(Objective):
    """An objective that is also limited to points that are valid for all weights within ``domain["delta"]``.

    What is stored is the plain objective with this domain, which the checker judges by itself.
    """

    problem: Problem | None = field(default=None, compare=False, repr=False)

    def exceeded(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """As ``Objective.exceeded``; the limit is named ``delta``."""
        assert self.problem is not None
        kept = proven(self.problem.classifier, self.problem.target, frame, self.domain["delta"])
        faults = super().exceeded(space, factual, frame)
        return [fault if sure else [*fault, "delta"] for fault, sure in zip(faults, kept, strict=True)]


def limited(objective: Objective, problem: Problem, delta: float) -> Objective:
    """The objective, of points that stay valid for all weights within ``delta``."""
    if not delta:
        return objective
    domain = {**objective.domain, "delta": delta}
    return DeltaObjective(**{**vars(objective.stored()), "domain": domain}, problem=problem)


def refusal(problem: Problem) -> str | None:
    """Why validity under changes of weights is not defined here, in a sentence; None where it is."""
    try:
        weight_box(problem.classifier, problem.target)
    except UnsupportedError as fault:
        return str(fault)
    return None


def inexact(problem: Problem) -> str | None:
    """Why there is no single model that says the worst of all within ``delta``; None where ``pessimistic`` is one."""
    if (why := unbounded(problem)) is not None:
        return why
    if not weight_box(problem.classifier, problem.target).exact:
        return "delta is exact for linear models and networks of one hidden layer; this one has more."
    return None


def unbounded(problem: Problem) -> str | None:
    """Why ``pessimistic`` is no model that says at most what any within ``delta`` does; None where it is."""
    if (why := refusal(problem)) is not None:
        return why
    box = weight_box(problem.classifier, problem.target)
    if len(box.margins) != 1 or len(box.margins[0].weights) != 1 or not problem.classifier.binary:
        return "delta needs a model with two classes, and a class or one bound of its probability as what is desired."
    if getattr(problem.classifier.estimator, "activation", "relu") != "relu":
        return f"delta needs a network of ReLUs, not of {problem.classifier.estimator.activation!r}."
    return None


def signs(problem: Problem) -> np.ndarray:
    """The sign that each input of the estimator has at all points of the space, 1 where it is 0, or else 0."""
    found = []
    for source in problem.classifier.inputs:
        feature = problem.space[source.feature]
        if not feature.numeric:
            values = by_category(feature, source)
        elif isinstance(source, Step):
            values = np.array(source.values)
        else:
            values = np.array([source.of(value) for value in (*feature.bounds, *feature.special)])
        found.append(1.0 if (values >= 0).all() else -1.0 if (values <= 0).all() else 0.0)
    return np.array(found)


def pessimistic(problem: Problem, delta: float, sign: np.ndarray) -> Problem:
    r"""The problem of the model that says the worst that any model with weights within ``delta`` would.

    Of :math:`w^\top x + b` that is :math:`w^\top x + b - \delta (\|x\|_1 + 1)`, and a unit of a hidden layer has the
    least sum where its outgoing weight, at its worst, helps, and the greatest where it harms. With several hidden
    layers a unit stands for both, which no one model says: what this one says is then a bound. With inputs of known
    sign :math:`\|x\|_1` is linear, and the model of the same family; otherwise each input is split by two ReLUs into
    what it is above and below 0, and the model is a network.

    Parameters
    ----------
    sign
        Of each input, as ``signs`` has it; 0 where both occur.
    """
    classifier = problem.classifier
    box = weight_box(classifier, problem.target)
    towards = float(box.margins[0].weights[0])  # 1 where a greater output is wanted, -1 where a smaller
    first, last = box.layers[0], box.layers[-1]
    end = last.shifts - towards * delta * last.shifted
    entering = first.weights, sign[:, None]
    changed = []
    if not sign.all():
        halves = np.hstack([np.eye(len(sign)), -np.eye(len(sign))])
        changed.append((halves, np.zeros(halves.shape[1])))
        entering = halves.T @ first.weights, np.ones((halves.shape[1], 1))
    weights, size = entering
    if len(box.layers) == 1:
        changed.append((weights - towards * delta * size, end))
    else:
        # Each unit twice, by its least sum and by its greatest; those that nothing asks for are left out below.
        ends = [(weights + side * delta * size, first.shifts + side * delta) for side in (-1, 1)]
        for layer in (*box.layers[1:-1], None):
            changed.append((np.hstack([part for part, _ in ends]), np.hstack([part for _, part in ends])))
            if layer is not None:
                ends = [(_of_ends(layer.weights, side * delta), layer.shifts + side * delta) for side in (-1, 1)]
        changed.append((_of_ends(last.weights, -towards * delta), end))
        changed = _asked(changed)
    return replace(problem, classifier=_with(problem, changed))


def _of_ends(weights: np.ndarray, change: float) -> np.ndarray:
    """The weights of units' least and greatest values, all >= 0, in the sums that a change makes least, or greatest.

    Of shape (2 * inputs, outputs), for weights of shape (inputs, outputs): least where the change is negative.
    """
    moved = weights + change
    near, far = np.maximum(moved, 0.0), np.minimum(moved, 0.0)
    return np.vstack([near, far] if change < 0 else [far, near])


def _asked(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same network without units that no later layer asks for."""
    found = list(layers)
    for place in range(len(found) - 1, 0, -1):
        used = found[place][0].any(axis=1)
        found[place] = found[place][0][used], found[place][1]
        found[place - 1] = found[place - 1][0][:, used], found[place - 1][1][used]
    return found


def _with(problem: Problem, layers: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    """The classifier with other weights, deciding at the same raw output."""
    classifier = problem.classifier
    estimator, threshold = deepcopy(classifier.estimator), classifier.raw_threshold
    if len(layers) == 1 and hasattr(estimator, "coef_"):
        estimator.coef_, estimator.intercept_ = layers[0][0].T, layers[0][1]
    else:
        estimator = TorchMLPClassifier()
        estimator.coefs_, estimator.intercepts_ = map(list, zip(*layers, strict=True))
        estimator.classes_, estimator.out_activation_ = np.arange(2), "logistic"
        estimator.n_features_in_ = len(classifier.inputs)
    if hasattr(estimator, "predict_proba"):
        threshold = float(expit(threshold))
    return replace(classifier, estimator=estimator, threshold=threshold, wrapped=None, labels=(), cut=None)


class DeltaExplainer:
    """A method's answers to the pessimistic problem.

    Factuals beyond the bounds may have inputs of other signs than all points within: the network with split inputs is
    then asked, built for the first such factual.
    """

    def __init__(self, build: Callable[[Problem], Explainer], problem: Problem, delta: float) -> None:
        self.build, self.problem, self.delta, self.sign = build, problem, delta, signs(problem)
        self.explainers = {False: build(pessimistic(problem, delta, self.sign))}

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        other = bool((self.problem.classifier.matrix(factual)[0] * self.sign < 0).any())
        if other not in self.explainers:
            split = pessimistic(self.problem, self.delta, np.zeros_like(self.sign))
            self.explainers[other] = self.build(split)
        return self.explainers[other].explain(factual, n, rng, deadline)
