"""DiCE, as CARLA calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Codes, Question, model_of
from methods.carla.method import CarlaExplainer, CarlaMethod
from methods.wrapping import Defaults, stated


@dataclass(frozen=True)
class Dice(CarlaMethod):
    """DiCE's random search as CARLA sets it up [1]_: any feature may change, immutable ones too.

    Nothing is minimised: in 1000 copies of the factual one feature after another is drawn anew, and some of the copies
    that become valid are the answers.

    ``methods.dice.Dice`` runs the same library with the constraints stated to it.

    Parameters
    ----------
    posthoc_sparsity_param
        Above 0 DiCE takes its sparsity step, with scaled numbers more steps than there may be time. CARLA returns the
        rows from before it.

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    """

    library_defaults: ClassVar[Defaults] = stated(
        f"{compat.CATALOG}.dice.model:Dice._DEFAULT_HYPERPARAMS", posthoc_sparsity_param=0.1
    )

    posthoc_sparsity_param: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.posthoc_sparsity_param <= 1:
            raise ValueError(f"posthoc_sparsity_param is {self.posthoc_sparsity_param}; give 0 to 1.")

    title: ClassVar[str] = "DiCE"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, Codes(problem.space))
        options = {"num": 1, "desired_class": 1, "posthoc_sparsity_param": self.posthoc_sparsity_param}
        library = compat.library()
        method = library.Dice(model_of(question, problem.train), options)

        codes = [name for name in question.columns.names if name not in question.columns.continuous]
        rows = question.columns.encode(problem.train)
        seen = {name: set(rows[name]) for name in codes}

        def ask(table: pd.DataFrame, count: int) -> pd.DataFrame:
            if any(table[name].iloc[0] not in seen[name] for name in codes):
                return table.iloc[:0]  # the library raises for a category that the training rows lack
            method._num = count
            try:
                return method.get_counterfactuals(table)
            except library.UserConfigValidationException as error:
                if not str(error).startswith("No counterfactuals found"):
                    raise
                return table.iloc[:0]

        return CarlaExplainer(self.title, question, ask, steps=True)
