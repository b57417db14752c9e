"""Causal Recourse, by CARLA."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import pandas as pd

from harness.core.equation import Equation
from harness.core.method import LibraryDefault
from harness.core.numbers import check_counts
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from methods.carla import compat
from methods.carla.adapter import TARGET, Columns, Question, model_of, multicolumn, single_columns
from methods.carla.method import CarlaExplainer, CarlaMethod
from methods.wrapping import Defaults

NUMBERS, BINARIES = 11, 3  # the published grid's values of a column, "no action" among them
NAME = "the problem's equations"


@dataclass(frozen=True)
class CausalRecourse(CarlaMethod):
    r"""The cheapest action on some features that, with what it causes by the structural equations, changes the class
    [1]_.

    .. math::
        \min_{I, a} \; & \textstyle\sqrt{\sum_{i \in I} ((a_i - \hat x_i) / R_i)^2} \\
        \text{s.t. } \; & h(x) \models \tilde y, \quad x_i = a_i \; (i \in I), \quad
                          x_i = \hat x_i + f_i(x) - f_i(\hat x) \; (i \notin I)

    I are the features that are acted on, :math:`R_i` the ranges of the training rows, :math:`f_i` the structural
    equation of a feature from its causes, 0 where it has none.

    Every combination of actions on a grid is tried, eleven values a number, so that only few features are acted on: of
    those that may change the causes in the equations first, then the effects, then the others. An action on an effect
    takes the place of its equation. The published code returns the action alone; here the answer is the row that
    follows from it. Features with more than two categories stay as they are. There is one counterfactual a factual.

    Parameters
    ----------
    max_actions
        The most combinations of actions, some milliseconds each.

    References
    ----------
    .. [1] Karimi, A.-H., B. Schölkopf, and I. Valera (2021). Algorithmic recourse: from counterfactual explanations to
       interventions. *FAccT*. doi:10.1145/3442188.3445899.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    sees_equations: ClassVar[bool] = True
    library_defaults: ClassVar[Defaults] = {
        "max_actions": LibraryDefault("no limit", "the published code tries every combination")
    }

    max_actions: int = 150

    def __post_init__(self) -> None:
        check_counts(self, NUMBERS, "max_actions")

    title: ClassVar[str] = "Causal Recourse"

    def needs(self, problem: Problem) -> str | None:
        if not problem.equations:
            return "CARLA's Causal Recourse needs structural equations; describe them in the dataset's 'causality'."
        if not _acted(problem, self.max_actions):
            return "CARLA's Causal Recourse needs a number, rank or binary feature that may change."
        return None

    def build(self, problem: Problem) -> CarlaExplainer:
        carla = compat.library()
        question = Question(problem, _Nodes(problem.space, _acted(problem, self.max_actions)))
        scm = _model(carla, question, problem.equations)
        options = {
            "optimization_approach": "brute_force",
            "num_samples": 1,
            "scm": scm,
            "constraint_handle": carla.point_constraint,
            "sampler_handle": carla.sample_true_m0,
        }
        method = carla.CausalRecourse(model_of(question, problem.train), options)

        def ask(table: pd.DataFrame, _: int) -> pd.DataFrame:
            factual = table.drop(columns=TARGET).iloc[0]
            action, _ = method.compute_optimal_action_set(factual, carla.point_constraint, carla.sample_true_m0)
            if not action:
                return table.iloc[:0]
            return carla.Sampler(scm).sample(1, factual, action, carla.sample_true_m0)

        return CarlaExplainer(self.title, question, ask)


class _Nodes(Columns):
    """Columns in which only some features are acted on; to CARLA the others are immutable."""

    def __init__(self, space: Space, acted: frozenset[str]) -> None:
        super().__init__(space, multicolumn(space))
        self.acted = acted

    @property
    def immutable(self) -> list[str]:
        return [name for name, feature in self.features.items() if feature.name not in self.acted]


def _acted(problem: Problem, most: int) -> frozenset[str]:
    """The features that are acted on: as many as ``most`` combinations of values permit."""
    columns = single_columns(problem.space)
    table = columns.encode(problem.train)
    still = set(columns.immutable)
    flat = {name for name in columns.names if table[name].nunique() < 2}  # the published cost divides by their range
    able = [feature for name, feature in columns.features.items() if name not in still | flat]
    causes = {name for equation in problem.equations for name in equation.parents}
    effects = {equation.feature for equation in problem.equations}

    def place(feature: Feature) -> int:
        return 0 if feature.name in causes else 1 if feature.name in effects else 2

    chosen, product = [], 1
    for feature in sorted(able, key=place):
        product *= BINARIES if feature.kind in {Kind.BINARY, Kind.CATEGORICAL} else NUMBERS
        if product > most:
            break
        chosen.append(feature.name)
    return frozenset(chosen)


def _model(carla: Any, question: Question, equations: tuple[Equation, ...]) -> Any:
    """CARLA's causal model of the equations, over its columns; a column without an equation has no parents."""
    columns = question.columns
    endogenous = {equation.feature: equation for equation in equations}
    functions = {
        name: _function(question, feature, endogenous.get(feature.name)) for name, feature in columns.features.items()
    }
    noise = {f"u{name[1:]}": None for name in columns.names}  # never drawn: a factual's own is computed
    described = functions, functions, noise, columns.continuous, columns.names, columns.immutable
    known = carla.modules["equations"].scm_dict
    known[NAME] = lambda: described
    try:
        return carla.CausalModel(NAME)
    finally:
        del known[NAME]


def _function(question: Question, feature: Feature, equation: Equation | None) -> Callable[..., Any]:
    """A feature's scaled value for the noise and its parents' scaled values; its signature names their columns."""
    space, columns = question.space, question.columns
    causes = () if equation is None else equation.parents
    parents = [(name, place) for name, place in zip(columns.names, columns.shown, strict=True)
               if columns.features[name].name in causes]  # fmt: skip

    @lru_cache(maxsize=4096)
    def expected(origin: bytes, values: tuple[float, ...]) -> float:
        assert equation is not None
        matrix = question.origin[None].copy()
        matrix[0, [place for _, place in parents]] = values
        value = equation.predict(space.decode(matrix, like=question.factual))[0]
        return (float(value) - feature.scale[0]) / feature.range

    def function(noise: Any, *values: Any) -> Any:
        if equation is None:
            return noise
        return noise + expected(question.origin.tobytes(), tuple(float(pd.Series(v).iloc[0]) for v in values))

    named = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name, _ in parents]
    first = inspect.Parameter("n_samples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    function.__signature__ = inspect.Signature([first, *named])  # type: ignore[attr-defined]
    return function
