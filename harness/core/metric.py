"""What a metric is: a plain function that says which way is better, which family it belongs to and its range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from harness.core.problem import Problem

Function = Callable[[pd.DataFrame, pd.DataFrame, Problem], float | None]


@dataclass(frozen=True)
class Metric:
    """``function(factual, answers, problem)``: a number for one factual and its answers, or None where undefined.

    ``factual`` is a one-row decoded frame; ``answers`` a decoded frame of counterfactuals, possibly empty: those that
    the checker found valid, unless ``over`` is ``returned`` (for what measures validity itself) or the experiment's
    ``population`` says so. The name a metric is logged by is ``family/name``.
    """

    function: Function
    better: Literal["higher", "lower"]
    family: str
    range: tuple[float, float]
    over: Literal["valid", "returned"] = "valid"

    def __post_init__(self) -> None:
        # functools.update_wrapper would assign, which a frozen class refuses; with these, help() shows the function's
        # docstring and doctest runs it, as one of the function's own module.
        function = self.function
        self.__dict__.update(__doc__=function.__doc__, __module__=function.__module__, __wrapped__=function)

    @property
    def name(self) -> str:
        return f"{self.family}/{self.function.__name__}"

    def __call__(self, factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
        value = self.function(factual, answers, problem)
        return None if value is None or not np.isfinite(value) else float(value)


def metric(
    *,
    better: Literal["higher", "lower"],
    family: str,
    range: tuple[float, float] = (0.0, np.inf),
    over: Literal["valid", "returned"] = "valid",
) -> Callable[[Function], Metric]:
    """Declare a metric: which way is better, its family (a chart section in MLflow) and the range it may take."""
    return lambda function: Metric(function, better, family, range, over)
