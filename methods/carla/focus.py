"""FOCUS, by CARLA."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.errors import check_choices
from harness.core.method import REQUIRED, LibraryDefault
from harness.core.numbers import check_above
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Columns, Question, model_of, swapped
from methods.carla.gradient import TorchMethod
from methods.carla.method import CarlaExplainer, without_scaled_trees
from methods.wrapping import Defaults

MODELS = (RandomForestClassifier, DecisionTreeClassifier)


@dataclass(frozen=True)
class Focus(TorchMethod):
    r"""Descends the forest's class probability, its splits made smooth, plus the distance from the factual [1]_; the
    closest row that the forest itself gives the wanted class is the answer.

    .. math::
        \min_x \; [h(x) = \hat y] \; \tilde p(x) + \lambda d(x, \hat x), \quad x \in [0, 1]^p

    :math:`\tilde p` is the smooth probability of the factual's class :math:`\hat y`, which counts as long as the forest
    h itself predicts that class; p is the number of columns.

    Published for TensorFlow; the few functions it needs are here computed by torch. Every column is searched as a
    number, so that more than two categories seldom change coherently; immutable features move like any other. There
    is one counterfactual a factual. Of a forest the first hundred trees are looked at.

    Parameters
    ----------
    lr
        Step of Adam, in scaled units, > 0.
    n_iter
        Steps, all of which are always taken.
    sigma, temperature
        Steepness of the smooth splits, and of the smooth vote.
    distance_weight
        Weight of the distance.
    distance
        ``l1`` or ``l2``.

    References
    ----------
    .. [1] Lucic, A., H. Oosterhuis, H. Haned, and M. de Rijke (2022). FOCUS: flexible optimizable counterfactual
       explanations for tree ensembles. *AAAI*. arXiv:1911.12199.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = dict.fromkeys(
        ("lr", "n_iter", "sigma", "temperature", "distance_weight", "distance"),
        LibraryDefault(REQUIRED, "of its hyperparameters none has a default"),
    )

    lr: float = 0.01
    n_iter: int = 100
    sigma: float = 5.0
    temperature: float = 5.0
    distance_weight: float = 0.01
    distance: str = "l1"

    def __post_init__(self) -> None:
        check_choices(self, {"distance": ("l1", "l2")})
        check_above(self, 0, "lr", "n_iter", "sigma", "temperature")

    title: ClassVar[str] = "FOCUS"

    def needs(self, problem: Problem) -> str | None:
        known = " and ".join(model.__name__ for model in MODELS)
        return without_scaled_trees(problem, self.title, MODELS, known)

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, _Numbers(problem.space))
        trees = problem.classifier.estimator
        if isinstance(trees, RandomForestClassifier):
            if question.wanted == 0:
                trees = copy.copy(trees)
                trees.estimators_ = [swapped(tree) for tree in trees.estimators_]
        elif question.wanted == 0:
            trees = swapped(trees)
        options = {
            "optimizer": "adam",
            "lr": self.lr,
            "n_class": 2,
            "n_iter": self.n_iter,
            "sigma": self.sigma,
            "temperature": self.temperature,
            "distance_weight": self.distance_weight,
            "distance_func": self.distance,
        }
        method = compat.library().FOCUS(model_of(question, problem.train, trees), options)

        def ask(table: pd.DataFrame, _: int) -> pd.DataFrame:
            found = method.get_counterfactuals(table)
            return found[(found != 0.0).any(axis=1)]  # zeros stand for nothing found

        return CarlaExplainer(self.title, question, ask, steps=True)


class _Numbers(Columns):
    """Columns all of which CARLA takes for continuous."""

    @property
    def continuous(self) -> list[str]:
        return self.names
