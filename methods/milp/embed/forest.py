"""Ensembles of trees: random forests, extra trees and gradient boosting, over split variables that trees share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from harness.errors import UnsupportedError
from harness.program import Program
from methods.milp.embed import Embedded, embed, splits_only
from methods.milp.embed.tree import average, embed_tree, leaf_values
from methods.milp.space import Source


@splits_only.register(RandomForestClassifier)
@splits_only.register(RandomForestRegressor)
@splits_only.register(ExtraTreesClassifier)
@splits_only.register(ExtraTreesRegressor)
@splits_only.register(GradientBoostingClassifier)
@splits_only.register(GradientBoostingRegressor)
def _(estimator: Any) -> bool:
    return True


@embed.register(RandomForestClassifier)
@embed.register(RandomForestRegressor)
@embed.register(ExtraTreesClassifier)
@embed.register(ExtraTreesRegressor)
def _(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Outputs: the mean over trees of leaf fractions (of class 1, or of each class), or of leaf means."""
    return average(estimator.estimators_, program, inputs)


@embed.register(GradientBoostingClassifier)
@embed.register(GradientBoostingRegressor)
def _(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Outputs: the initial score plus the learning rate times the sum of leaf values, one a class beyond two."""
    stages, classes = estimator.estimators_.shape
    outputs: list[Any] = [float(value) for value in initial_score(estimator)]
    members = []
    for k in range(classes):
        for stage in range(stages):
            tree = estimator.estimators_[stage, k].tree_
            leaves, variables = embed_tree(tree, program, inputs)
            members.append(tuple(variables))
            values = estimator.learning_rate * leaf_values(tree, leaves)[:, 0]
            outputs[k] = outputs[k] + sum(float(v) * leaf for v, leaf in zip(values, variables, strict=True))
    return Embedded(tuple(outputs), leaves=tuple(members))


def initial_score(estimator: Any) -> np.ndarray:
    """The raw score before the first tree, shape (outputs,): what the whole model says minus what its trees say."""
    if estimator.init is not None and estimator.init != "zero":
        raise UnsupportedError("cannot embed gradient boosting with an 'init' estimator; leave init unset.")
    point = np.zeros((1, estimator.n_features_in_))
    raw = estimator.decision_function(point) if hasattr(estimator, "decision_function") else estimator.predict(point)
    trees = [
        sum(float(tree.tree_.predict(point.astype(np.float32))[0, 0]) for tree in column)
        for column in estimator.estimators_.T
    ]
    return np.ravel(raw) - estimator.learning_rate * np.array(trees)
