"""FACE, by CARLA."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd

from harness.core.errors import check_choices
from harness.core.method import LibraryDefault
from harness.core.numbers import check_above, check_counts
from harness.core.problem import Problem
from methods.carla import compat
from methods.carla.adapter import Columns, Question, model_of
from methods.carla.method import Ask, CarlaExplainer, CarlaMethod
from methods.wrapping import Defaults, stated

MODES = ("knn", "epsilon")
LEAST = 60  # rows of a graph in which 53 neighbours, the published code's most, can be found


@dataclass(frozen=True)
class Face(CarlaMethod):
    r"""A row of the data that a path of near rows leads to [1]_.

    .. math::
        \min_i \; \|x_i - \hat x\|_2 \quad \text{s.t. } h(x_i) \models \tilde y, \quad n(\hat x, x_i) \le 4

    :math:`x_i` are rows of the data, and n is the least number of steps between near rows in one of three graphs; [1]_
    weighs a step by its length and the density.

    In the published code only the last immutable feature shapes the paths, and a factual without a path is given the
    closest wanted row it cannot reach. Without an immutable feature it ends in an error; here paths are then free.
    Further counterfactuals are those of further draws of rows.

    Parameters
    ----------
    mode
        ``knn`` or ``epsilon``: rows are near if among the 47 to 53 nearest, or within a distance.
    radius
        That distance, above 0, in scaled units; None: the published code's 0.15, 0.25 and 0.35 in turn.
    fraction
        Of the rows, drawn for each graph, 60 at least; between 0 and 1.
    max_rows
        The most rows of a graph, which takes memory and time by its square.

    References
    ----------
    .. [1] Poyiadzi, R., K. Sokol, R. Santos-Rodriguez, T. De Bie, and P. Flach (2020). FACE: feasible and actionable
       counterfactual explanations. *AIES*. doi:10.1145/3375627.3375850.
    """

    sees_reference: ClassVar[bool] = True
    library_defaults: ClassVar[Defaults] = {
        **stated(f"{compat.CATALOG}.face.model:Face._DEFAULT_HYPERPARAMS", fraction=0.1),
        "radius": LibraryDefault(None, "the published code takes 0.15, 0.25 and 0.35 in turn"),
        "max_rows": LibraryDefault(
            "no limit", "the published code takes a fraction of the rows, however many there are"
        ),
    }

    mode: str = "knn"
    radius: float | None = None
    fraction: float = 0.1
    max_rows: int = 1000

    def __post_init__(self) -> None:
        check_choices(self, {"mode": MODES})
        if self.radius is not None and self.mode != "epsilon":
            raise ValueError(f"radius is {self.radius}, but mode {self.mode!r} has none; leave it out, or use epsilon.")
        if self.radius is not None:
            check_above(self, 0, "radius")
        if not 0 < self.fraction < 1:
            raise ValueError(f"fraction is {self.fraction}; it must lie between 0 and 1.")
        check_counts(self, LEAST, "max_rows")

    title: ClassVar[str] = "FACE"

    def needs(self, problem: Problem) -> str | None:
        if len(problem.reference) <= LEAST:
            return f"CARLA's FACE needs more than {LEAST} rows, not {len(problem.reference)}; give more."
        return None

    def build(self, problem: Problem) -> CarlaExplainer:
        question = Question(problem, Columns(problem.space))
        rows = len(problem.reference)
        fraction = max(min(self.fraction, self.max_rows / rows), LEAST / rows)
        model = model_of(question, problem.reference)
        library = compat.library()
        method = library.Face(model, {"mode": self.mode, "fraction": fraction})
        free = not question.columns.immutable
        if free:
            method._immutables = question.columns.names[:1]  # any: it constrains nothing
        return CarlaExplainer(self.title, question, self._ask(method, library.modules["face_search"], free), draws=True)

    def _ask(self, method: Any, search: ModuleType, free: bool) -> Ask:
        def unconstrained(rows: pd.DataFrame, *_: Any) -> tuple[np.ndarray, np.ndarray]:
            return np.ones((len(rows), len(rows))), np.ones((len(rows), len(rows)))

        def ask(table: pd.DataFrame, _: int) -> pd.DataFrame:
            near = search.radius_neighbors_graph

            def within(rows: np.ndarray, **options: Any) -> Any:
                return near(rows, **{**options, "radius": self.radius})

            with ExitStack() as stack:
                if self.radius is not None:  # CARLA has no way to set it
                    stack.enter_context(patch.object(search, "radius_neighbors_graph", within))
                if free:
                    stack.enter_context(patch.object(search, "build_constraints", unconstrained))
                return method.get_counterfactuals(table)

        return ask
