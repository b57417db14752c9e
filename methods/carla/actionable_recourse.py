"""Actionable Recourse, by CARLA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.core.numbers import check_counts
from harness.core.problem import Problem
from harness.core.space import Actionability
from harness.core.tolerances import COORDINATE_TIE
from methods.carla import compat
from methods.carla.adapter import Columns, Question, model_of, multicolumn
from methods.carla.method import CarlaExplainer, CarlaMethod
from methods.estimators.gradients import linear
from methods.wrapping import Defaults, stated

DIRECTIONS = {Actionability.INCREASE: 1, Actionability.DECREASE: -1}  # as the package writes them
PERCENTILES = (1, 99)  # between which the recourse package moves a number


@dataclass(frozen=True)
class ActionableRecourse(CarlaMethod):
    r"""The cheapest change of a linear model's class, as a mixed-integer program over a grid of actions [1]_.

    .. math::
        \min_a \; & \textstyle\sum_j \left|\log \frac{1 - Q_j(\hat x_j + a_j)}{1 - Q_j(\hat x_j)}\right| \\
        \text{s.t. } \; & w^\top (\hat x + a) + b \ge 0, \quad a_j \in A_j(\hat x_j)

    :math:`Q_j` is the share of training rows below a value, :math:`A_j` the grid of a column; w and b are coefficients.
    The items of a flipset change different sets of columns.

    Its own coefficients serve a linear model, LIME's around the factual any other. Of the flipset the first item is
    taken that the model itself gives the wanted class, so there is one counterfactual a factual. Features with more
    than two categories, which the published code cannot change, stay as they are, as do immutable ones. What may only
    rise or fall, and each person's bounds, are told to the package.

    Parameters
    ----------
    fs_size
        The most items of a flipset, each a mixed-integer program of some 0.1 s, made until one is valid.
    discretize, sample
        Whether LIME bins numbers, and whether it samples around the factual instead of the mean of the training rows.

    References
    ----------
    .. [1] Ustun, B., A. Spangher, and Y. Liu (2019). Actionable recourse in linear classification. *FAT\**.
       doi:10.1145/3287560.3287566.
    """

    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = stated(
        f"{compat.CATALOG}.actionable_recourse.model:ActionableRecourse._DEFAULT_HYPERPARAMS",
        fs_size=100,
        discretize=False,
        sample=True,
    )

    fs_size: int = 100
    discretize: bool = False
    sample: bool = True

    def __post_init__(self) -> None:
        check_counts(self, 1, "fs_size")

    title: ClassVar[str] = "Actionable Recourse"

    def needs(self, problem: Problem) -> str | None:
        if not _columns(problem).shown:
            return "CARLA's Actionable Recourse needs a number, rank or binary feature that varies among the rows."
        return None

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, _columns(problem))
        carla = compat.library()

        class Lenient(carla.ActionableRecourse):  # type: ignore[name-defined]
            """LIME's samples are no rows: binaries and ranks take any number."""

            def _get_lime_coefficients(self, factuals: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
                question.lenient = True
                try:
                    return super()._get_lime_coefficients(factuals)
                finally:
                    question.lenient = False

        method = Lenient(model_of(question, problem.train), self.options())
        numbers = {name: feature for name, feature in question.columns.features.items() if feature.numeric}
        for name, feature in question.columns.features.items():
            method.action_set[name].step_direction = DIRECTIONS.get(feature.actionability, 0)
        for name in numbers:  # its costs are percentiles of the whole grid, which a person's own bounds cut
            method.action_set[name].update_interpolator()
        grids = {name: method.action_set[name].grid for name in numbers}

        def ask(table: pd.DataFrame, _: int) -> pd.DataFrame:
            for name, feature in numbers.items():
                ends = np.array(feature.interval(float(question.factual[feature.name].iloc[0])))
                low, high = (ends - feature.scale[0]) / feature.range + (-COORDINATE_TIE, COORDINATE_TIE)
                method.action_set[name]._grid = grids[name][(grids[name] >= low) & (grids[name] <= high)]
            plane = linear(problem.space, problem.classifier)
            if plane is not None:
                sign = 1.0 if question.wanted == 1 else -1.0
                weights, intercept = sign * plane[0], sign * plane[1]
                shown = question.columns.shown
                unseen = np.delete(weights, shown) @ np.delete(question.origin, shown)  # by features that stay
                method._coeffs, method._intercepts = weights[shown], np.array([intercept + unseen])
            try:
                return method.get_counterfactuals(table)
            except AssertionError:  # the package's own check of an item that meets the plane up to rounding only
                return table.iloc[:0]

        return CarlaExplainer(self.title, question, ask)


def _columns(problem: Problem) -> Columns:
    """Without features that take several columns, and those that the package makes no grid or density of."""
    every = Columns(problem.space)
    table = every.encode(problem.train).to_numpy()
    low, high = np.percentile(table, PERCENTILES, axis=0)
    binary = np.isin(table, (0.0, 1.0)).all(axis=0)
    flat = (table.min(axis=0) == table.max(axis=0)) | (~binary & (low == high))
    still = {feature.name for feature, alike in zip(every.features.values(), flat, strict=True) if alike}
    return Columns(problem.space, multicolumn(problem.space) | still)
