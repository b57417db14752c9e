"""Growing Spheres, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass

from harness.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Columns, Question, held, model_of
from methods.carla.method import CarlaExplainer, CarlaMethod


@dataclass(frozen=True)
class GrowingSpheres(CarlaMethod):
    """Samples in growing spheres around the factual, until one is of the wanted class [1]_; the closest is the answer.

    Binary features are drawn anew. Those with more categories, which the published code cannot draw, stay as they are,
    as do immutable ones. Further counterfactuals are those of further draws.

    Parameters
    ----------
    max_iter
        The most spheres; the published code has no end where none holds the wanted class.

    References
    ----------
    .. [1] Laugel, T., M.-J. Lesot, C. Marsala, X. Renard, and M. Detyniecki (2018). Comparison-based inverse
       classification for interpretability in machine learning. *IPMU*.
    """

    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter is {self.max_iter}; it must be at least 1.")

    @property
    def title(self) -> str:
        return "Growing Spheres"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, Columns(problem.space, held(problem.space)))
        method = compat.library().GrowingSpheres(model_of(question, problem.train))
        # Calls of the model beside one a sphere: the factual's class, and the verdict at the end.
        return CarlaExplainer(
            self.title, question, lambda table, _: method.get_counterfactuals(table), 3, self.max_iter + 2
        )
