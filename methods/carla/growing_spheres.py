"""Growing Spheres, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from unittest.mock import patch

import pandas as pd

from harness.core.numbers import check_above, check_counts
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Question, model_of, single_columns
from methods.carla.method import CarlaExplainer, CarlaMethod
from methods.wrapping import Defaults, against_rest, stated


@dataclass(frozen=True)
class GrowingSpheres(CarlaMethod):
    r"""Samples in growing spheres around the factual, until one is of the wanted class [1]_; the closest is the answer.

    .. math::
        \min_x \; \|x - \hat x\|_2 \quad \text{s.t. } h(x) \models \tilde y, \quad
        (m - 1) \eta \le \|x_C - \hat x_C\|_2 \le m \eta

    C are the numbers and ranks that may change, and :math:`\eta` is ``step``. The minimum is over 1000 samples, for the
    first m = 1, 2, ... that has a valid one. The second phase of [1]_, which undoes changes, is not in the published
    code.

    Binary features are drawn anew. Those with more categories, which the published code cannot draw, stay as they are,
    as do immutable ones. Further counterfactuals are those of further draws.

    Parameters
    ----------
    step
        By which each sphere is wider than the last, in scaled units; above 0. The published code's is 0.2.
    max_iter
        The most spheres; the published code has no end where none holds the wanted class.

    References
    ----------
    .. [1] Laugel, T., M.-J. Lesot, C. Marsala, X. Renard, and M. Detyniecki (2018). Comparison-based inverse
       classification for interpretability in machine learning. *IPMU*.
    """

    many: ClassVar[bool] = True
    library_defaults: ClassVar[Defaults] = stated(
        f"{compat.CATALOG}.growing_spheres.library.gs_counterfactuals:growing_spheres_search", step=0.2, max_iter=1000
    )

    step: float = 0.2
    max_iter: int = 1000

    def __post_init__(self) -> None:
        check_above(self, 0, "step")
        check_counts(self, 1, "max_iter")

    title: ClassVar[str] = "Growing Spheres"

    def build(self, problem: Problem) -> CarlaExplainer:
        if not problem.classifier.binary:
            problem = against_rest(problem)
        question = Question(problem, single_columns(problem.space))
        library = compat.library()
        method, spheres = library.GrowingSpheres(model_of(question, problem.train)), library.modules["spheres"]
        search = partial(spheres.growing_spheres_search, step=self.step)

        def ask(table: pd.DataFrame, _: int) -> pd.DataFrame:
            with patch.object(spheres, "growing_spheres_search", search):  # CARLA has no way to set the step
                return method.get_counterfactuals(table)

        # Calls of the model beside one a sphere: the factual's class, and the verdict at the end.
        return CarlaExplainer(self.title, question, ask, draws=True, budget=self.max_iter + 2)
