"""Feature Tweak, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.method import REQUIRED, LibraryDefault
from harness.core.numbers import check_above
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Columns, Question, model_of, swapped
from methods.carla.method import CarlaExplainer, CarlaMethod, without_scaled_trees
from methods.wrapping import Defaults

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)


@dataclass(frozen=True)
class FeatureTweak(CarlaMethod):
    r"""The factual moved just past the thresholds on a path to a wanted leaf of one tree [1]_; the nearest such point.

    .. math::
        \min_{t, l} \; \|x^{tl} - \hat x\|_2 \quad \text{s.t. } h_t(x^{tl}) \models \tilde y, \quad
        x^{tl}_j = \theta_r \pm \epsilon \text{ for each split r on j of the path to l}

    t are the trees that say of the factual what the forest says, l their leaves of the wanted class; the sign is +
    where the path goes to the right. Of several splits on one j, the one nearest to the root decides.

    Whether the forest follows its tree is seen only at the end, and immutable features move like any other. There is
    one counterfactual a factual. A single tree is a forest of one.

    Parameters
    ----------
    eps
        How far past a threshold, in scaled units.

    References
    ----------
    .. [1] Tolomei, G., F. Silvestri, A. Haines, and M. Lalmas (2017). Interpretable predictions of tree-based
       ensembles via actionable feature tweaking. *KDD*. doi:10.1145/3097983.3098039.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = {
        "eps": LibraryDefault(REQUIRED, "of its hyperparameters none has a default")
    }

    eps: float = 0.1

    def __post_init__(self) -> None:
        check_above(self, 0, "eps")

    title: ClassVar[str] = "Feature Tweak"

    def needs(self, problem: Problem) -> str | None:
        return without_scaled_trees(problem, self.title, (*FORESTS, DecisionTreeClassifier), "trees and forests")

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, Columns(problem.space))
        estimator = problem.classifier.estimator
        trees = list(estimator.estimators_) if isinstance(estimator, FORESTS) else [estimator]
        if question.wanted == 0:
            trees = [swapped(tree) for tree in trees]
        method = compat.library().FeatureTweak(model_of(question, problem.train, trees), {"eps": self.eps})
        return self.explainer(question, method)
