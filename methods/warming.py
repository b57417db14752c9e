"""Small questions by which, between them, every kernel of the methods is compiled: for ``python -m harness warm``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.method import Method
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier
from methods.ce_ocl import CeOcl
from methods.column_generation import ColumnGeneration
from methods.md_pso import MdPso
from methods.robust import Robust
from methods.scorecard import Scorecard

ROWS = 80
NUMBERS = (
    Feature("a", Kind.CONTINUOUS, scale=(-3.0, 5.0), bounds=(-3.0, 5.0)),
    Feature("b", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 1.0)),
)
COUNT = Feature("n", Kind.INTEGER, scale=(0, 12), bounds=(0, 12))
CATEGORIES = (
    Feature("region", Kind.CATEGORICAL, ("n", "e", "s")),
    Feature("grade", Kind.ORDINAL, (1, 2, 3)),
    Feature("member", Kind.BINARY, (False, True)),
)
SPACES = {
    "mixed": Space((*NUMBERS, COUNT, *CATEGORIES)),
    "real": Space((*NUMBERS, *CATEGORIES)),
    "discrete": Space(CATEGORIES),
}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": lambda: RandomForestClassifier(4, max_depth=3, random_state=0),
    "linear": LogisticRegression,
    "network": lambda: MLPClassifier((4,), solver="lbfgs", max_iter=2000, random_state=0),
}


@dataclass(frozen=True)
class Question:
    """A method, and a problem that it is fitted to; ``title`` says which of its searches that is.

    Questions whose ``kernels`` are of one name share some.
    """

    title: str
    method: Method
    model: str
    space: str = "mixed"
    kernels: str = "cells"

    @property
    def problem(self) -> Problem:
        return card() if self.model == "scorecard" else problem(self.model, self.space)


@cache
def problem(model: str, space: str) -> Problem:
    """A model that is trained on random rows of a space."""
    rows, frame = _rows(SPACES[space])
    merit = SPACES[space].encode(frame) @ np.linspace(1.0, 2.0, len(SPACES[space].columns)) + rows
    estimator = ESTIMATORS[model]().fit(SPACES[space].encode(frame), merit > np.median(merit))
    classifier = Classifier(estimator, space_inputs(SPACES[space]), ("no", "yes"))
    labels = np.where(merit > np.median(merit), "yes", "no").astype(object)
    return Problem(SPACES[space], classifier, frame, labels, Label("yes"))


def _rows(space: Space) -> tuple[np.ndarray, pd.DataFrame]:
    """Noise, and random rows of a space."""
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {}
    for feature in space.features:
        if feature.kind is Kind.CONTINUOUS:
            data[feature.name] = rng.uniform(*feature.bounds, ROWS)
        elif feature.kind is Kind.INTEGER:
            data[feature.name] = rng.integers(int(feature.bounds[0]), int(feature.bounds[1]) + 1, ROWS)
        else:
            data[feature.name] = [feature.categories[k] for k in rng.integers(0, len(feature.categories), ROWS)]
    return rng.normal(size=ROWS), pd.DataFrame(data)


@cache
def card() -> Problem:
    """A scorecard of two numbers."""
    space = Space((COUNT, Feature("m", Kind.INTEGER, scale=(0, 9), bounds=(0, 9))))
    _, frame = _rows(space)
    bins = (Bin("interval", high=2.5), Bin("interval", 2.5, 6.0), Bin("interval", 6.0), Bin("missing"))
    values = np.array([-1.0, 0.2, 1.0, 0.0])
    variables = tuple(Variable(name, bins, values * scale, 1.0, values) for name, scale in (("n", 1.0), ("m", 0.7)))
    estimator = ScorecardClassifier()
    estimator.card_, estimator.classes_ = Card(variables, -0.3, True), np.array([0, 1])
    classifier = Classifier(estimator, estimator.card_.inputs(space), ("no", "yes"))
    return Problem(space, classifier, frame, np.full(ROWS, "no", dtype=object), Label("yes"))


QUESTIONS = (
    Question("ce_ocl on trees", CeOcl(), "forest"),
    Question("ce_ocl on trees within a hull", CeOcl(hull="hard"), "forest"),
    Question("ce_ocl on a linear model within a hull", CeOcl(hull="hard", alpha=0.1), "linear"),
    Question("md_pso on trees", MdPso(iterations=3), "forest"),
    Question("scorecard", Scorecard(), "scorecard", kernels="scorecard"),
    Question("column_generation on trees", ColumnGeneration(), "forest", "discrete", "groups"),
    Question("column_generation on a linear model", ColumnGeneration(), "linear", "discrete", "groups"),
    Question("column_generation on a network", ColumnGeneration(), "network", "discrete", "groups"),
    Question("robust boxes on trees", Robust(), "forest"),
    Question("robust balls on trees", Robust(norm="l2"), "forest"),
    Question("robust boxes on trees within a hull", Robust(hull="hard", rho=0.01), "forest"),
    Question("robust balls on trees within a hull", Robust(hull="hard", rho=0.01, norm="l2"), "forest"),
    Question("robust boxes on trees by programs", Robust(algorithm="adversarial"), "tree"),
    Question("robust balls on trees by programs", Robust(norm="l2", algorithm="adversarial"), "tree"),
    Question("robust boxes on a network", Robust(), "network", "real", "networks"),
    Question("robust balls on a network", Robust(norm="l2"), "network", "real", "networks"),
    Question("robust boxes on a linear model", Robust(), "linear"),
)
