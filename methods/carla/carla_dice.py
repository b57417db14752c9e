"""DiCE, as CARLA calls it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Codes, Question, model_of
from methods.carla.method import CarlaExplainer, CarlaMethod


@dataclass(frozen=True)
class Dice(CarlaMethod):
    """DiCE's random search as CARLA sets it up [1]_: any feature may change, immutable ones too.

    ``methods.dice.Dice`` runs the same library with the constraints stated to it.

    CARLA returns the rows from before DiCE's sparsity step, which is therefore left out: it changes no answer, and
    with scaled numbers it can take more steps than there is time.

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    """

    @property
    def title(self) -> str:
        return "DiCE"

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, Codes(problem.space))
        options = {"num": 1, "desired_class": 1, "posthoc_sparsity_param": 0.0}
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

        return CarlaExplainer(self.title, question, ask)
