"""Models with gradients on two numbers and a category: a linear one, and networks of each activation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label

SPACE = Space(
    (
        Feature("a", Kind.CONTINUOUS, scale=(0, 10), bounds=(0, 10)),
        Feature("b", Kind.CONTINUOUS, scale=(-1, 1), bounds=(-1, 1)),
        Feature("c", Kind.CATEGORICAL, ("red", "green", "blue")),
    )
)
MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=100),
    "relu": MLPClassifier((8,), max_iter=300, random_state=0),
    "tanh": MLPClassifier((5, 5), activation="tanh", max_iter=300, random_state=1),
    "logistic": MLPClassifier((5,), activation="logistic", max_iter=300, random_state=1),
}


@cache
def problem(name: str, wanted: str = "yes") -> Problem:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"a": rng.uniform(0, 10, 300), "b": rng.uniform(-1, 1, 300), "c": rng.choice(["red", "green", "blue"], 300)}
    )
    right = frame["a"] / 10 + frame["b"] ** 2 + 0.2 * (frame["c"] == "red") > 0.8
    labels = np.where(right, "yes", "no")
    classifier = Classifier(MODELS[name], space_inputs(SPACE), ("no", "yes"))
    classifier.estimator.fit(classifier.matrix(frame), right.astype(int))
    return Problem(SPACE, classifier, frame, labels, Label(wanted))


def refused(question: Problem) -> pd.DataFrame:
    return question.train.loc[~question.valid(question.train)]
