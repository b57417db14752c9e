"""What a metric is: a plain function that says which way is better, which family it belongs to and its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from harness.core.asked import Asked
from harness.core.errors import HarnessError
from harness.core.problem import Problem
from harness.core.tolerances import VALUE_TIE

Function = Callable[[pd.DataFrame, pd.DataFrame, Problem], float | None]
Together = Callable[[Asked], np.ndarray]
TableName = Literal["summary", "overview", "report"]
TABLES: tuple[TableName, ...] = get_args(TableName)
CriterionName = Literal["", "proximity", "sparsity", "plausibility", "robustness", "diversity"]
CRITERIA: tuple[CriterionName, ...] = get_args(CriterionName)[1:]


@dataclass(frozen=True)
class Metric:
    """``function(factual, answers, problem)``: a number for one factual and its answers, or None where undefined.

    ``factual`` is a one-row decoded frame; ``answers`` a decoded frame of counterfactuals, possibly empty: those that
    were accepted, unless ``over`` is ``returned`` (for what measures validity itself) or the experiment's
    ``population`` says so. The name a metric is logged by is ``family/name``.

    Parameters
    ----------
    function, better, family, range, over
        As above; ``better`` and the ``range`` it may take, outside which a value is a HarnessError.
    heading
        Of its column in tables: by default the function's name, with spaces for underscores.
    unit
        Of its values, shown in brackets after the heading.
    shown
        The tables that have it as a column, where it was measured: ``summary`` (printed, and ``summary.md``),
        ``overview`` (``table.md`` and ``table.tex`` of methods by models), ``report`` (the numbers and the ranking of
        ``report.html``). Every metric is in ``summary.csv`` and in MLflow.
    place
        Columns stand by ascending place, those of equal place in the order in which the metrics are listed.
    criterion
        Which of the five criteria of a comparison it stands for, of which there is one metric each; its column is
        headed so. Any other metric of a report is a criterion of its own.
    """

    function: Function
    better: Literal["higher", "lower"]
    family: str
    range: tuple[float, float]
    over: Literal["accepted", "returned"] = "accepted"
    heading: str = ""
    unit: str = ""
    shown: tuple[TableName, ...] = TABLES
    place: int = 100
    criterion: CriterionName = ""

    def __post_init__(self) -> None:
        if unknown := set(self.shown) - set(TABLES):
            raise ValueError(f"shown names {', '.join(sorted(unknown))}; allowed: {', '.join(TABLES)}.")
        if self.criterion not in ("", *CRITERIA):
            raise ValueError(f"criterion is {self.criterion!r}; allowed: {', '.join(CRITERIA)}.")
        # functools.update_wrapper would assign, which a frozen class refuses; with these, help() shows the function's
        # docstring and doctest runs it, as one of the function's own module.
        function = self.function
        self.__dict__.update(__doc__=function.__doc__, __module__=function.__module__, __wrapped__=function)

    @property
    def name(self) -> str:
        return f"{self.family}/{self.function.__name__}"

    @property
    def column(self) -> str:
        """The heading of its column, with its unit."""
        heading = self.criterion or self.heading or self.function.__name__.replace("_", " ")
        return f"{heading} ({self.unit})" if self.unit else heading

    def __call__(self, factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
        value = self._sound(self.function(factual, answers, problem))
        return None if math.isnan(value) else value

    def _sound(self, value: Any) -> float:
        """A value as a number, NaN where it is undefined; HarnessError where it is none, or outside the range."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = np.ma.filled(value, np.nan).item()
        if value is None:
            return math.nan
        if not isinstance(value, Real | np.bool_):
            raise HarnessError(f"the metric {self.name} gave {value!r}; give a number, or None where it is undefined.")
        if not math.isfinite(value):
            return math.nan
        number, (low, high) = float(value), self.range
        slack = VALUE_TIE * max(1.0, abs(number))
        if not low - slack <= number <= high + slack:
            raise HarnessError(
                f"the metric {self.name} gave {number:.9g}, which is not in its range, {low:g} to {high:g}; mend it "
                "or declare another range=(low, high)."
            )
        return number

    def measure(self, asked: Asked) -> np.ndarray:
        """The value of each question, shape (questions,); NaN where it is undefined."""
        if (many := getattr(self.function, "together", None)) is not None:
            return np.array([self._sound(value) for value in many(asked)], dtype=float)
        found = (self(factual, answers, asked.problem) for factual, answers in asked.alone())
        return np.array([np.nan if value is None else value for value in found])


def together(function: Together) -> Function:
    """Make a metric's function of one that measures many questions at once, as models and libraries like to be asked.

    ``function(asked)`` gives a value for each question, shape (questions,), NaN where it is undefined. A question's
    value must not depend on which others are there.
    """

    @wraps(function)
    def alone(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
        return float(function(Asked.one(factual, answers, problem))[0])

    alone.together = function  # type: ignore[attr-defined]
    return alone


def metric(
    *,
    better: Literal["higher", "lower"],
    family: str,
    range: tuple[float, float] = (-np.inf, np.inf),
    over: Literal["accepted", "returned"] = "accepted",
    heading: str = "",
    unit: str = "",
    shown: bool | Sequence[TableName] = True,
    place: int = 100,
    criterion: CriterionName = "",
) -> Callable[[Function], Metric]:
    """Declare a metric: which way is better, its family (a chart section in MLflow), its range and its column.

    A value outside ``range`` is a HarnessError that names the metric: none is, unless ends are given.
    ``shown``: whether tables have it as a column, or the names of those that do, as in ``Metric``.
    """
    tables = (TABLES if shown else ()) if isinstance(shown, bool) else tuple(shown)
    return lambda function: Metric(function, better, family, range, over, heading, unit, tables, place, criterion)
