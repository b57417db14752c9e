"""CFNOW's greedy and random tabu searches for tables, as its authors' library ``cfnow`` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pandas as pd

from harness.core.errors import check_choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_above, check_counts
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.target import Label
from methods.wrapping import (
    Defaults,
    LateError,
    Met,
    check_clock,
    missing,
    not_a_class,
    one_class,
    quiet,
    seeded,
    shares,
    stated,
)

STRATEGIES = ("greedy", "random", "random-sequential")
FAR = 1e6  # ranges to which numbers are cut, as the search may raise them without end: no integer overflows


@dataclass(frozen=True)
class Cfnow:
    """Some counterfactual, found by steps that raise the score, then moved back towards the factual [1]_.

    The library searches; this class translates. It searches the scaled columns of the space, its distance being their
    :math:`\\ell_1`; each row it has predicted is first rounded to a point of the space. It steps by a share
    of the value, so that a number at the least of the training range (0 when scaled) never moves. It knows neither
    bounds nor actionability: immutable features are not among the columns that it is shown, and answers that break
    another constraint are returned, and counted as such, as are those of another class than the wanted one. Where the
    greedy search has no step left (its list of forbidden features holds all, or nothing new is reached), the library
    would look for one until its clock ends that, or without end; here it goes on with what it has. Stopped by the
    clock, it hands back the nearest points of the wanted class that it has met.

    Parameters
    ----------
    strategy
        ``greedy``, ``random`` or ``random-sequential``.
    ft_change_factor
        The share of its value by which a number is changed.
    threshold_changes
        Random strategies: the most changes that are tried in a step.
    it_max
        The most steps to the first counterfactual.
    ft_it_max
        The most steps of moving back; the library's own number (greedy 1000, random 5000) where it is None.

    References
    ----------
    .. [1] de Oliveira, R. M. B., K. Sörensen, and D. Martens (2024). A model-agnostic and data-independent tabu search
       algorithm to generate counterfactuals for tabular, image, and text data. *European Journal of Operational
       Research*. cfnow 0.0.6, https://github.com/rmazzine/CFNOW
    """

    library_defaults: ClassVar[Defaults] = stated(
        "cfnow.cf_finder:find_tabular", ft_change_factor=0.1, threshold_changes=100, it_max=5000, ft_it_max=None
    )

    strategy: str = "greedy"
    ft_change_factor: float = 0.1
    threshold_changes: int = 100
    it_max: int = 5000
    ft_it_max: int | None = None

    def __post_init__(self) -> None:
        check_choices(self, {"strategy": STRATEGIES})
        check_above(self, 0, "ft_change_factor")
        optional = ("threshold_changes", "it_max", "ft_it_max")
        check_counts(self, 1, *(name for name in optional if getattr(self, name) is not None))

    @property
    def deterministic(self) -> bool:
        """Whether no answer depends on the seed: only the greedy search draws nothing."""
        return self.strategy == "greedy"

    def refuses(self, problem: Problem) -> str | None:
        """A missing library, targets other than a class, and a space in which nothing may change."""
        if why := missing("cfnow", "cfnow") or not_a_class("CFNOW", problem):
            return why
        return None if _moving(problem.space) else "CFNOW is not shown immutable features, and here all are."

    def objective(self, problem: Problem) -> Objective | None:
        """None: the distance is only lowered after a point is found, and stays a heuristic's."""
        return None

    def fit(self, problem: Problem) -> _Explainer:
        """Import the library, which takes seconds, and name the columns as it wants them."""
        return _Explainer(self, one_class(problem))


class _EndlessError(Exception):
    """Ends a greedy search that has no step left."""


@dataclass(eq=False)
class _Explainer:
    method: Cfnow
    problem: Problem
    query: tuple[pd.DataFrame, np.ndarray, Deadline] | None = field(default=None, init=False)
    known: dict[bytes, float] = field(default_factory=dict, init=False)  # the search has many points predicted twice
    idle: bool = field(default=False, init=False)  # whether nothing was predicted since the last step

    def __post_init__(self) -> None:
        # The library would download a dictionary, which only its search in texts reads.
        with quiet(), mock.patch("nltk.download"):
            from cfnow import _cf_searchers, _fine_tune, find_tabular  # optional

        assert isinstance(self.problem.target, Label)
        self.search: Any = find_tabular
        self.library: Any = _cf_searchers
        _fine_tune.np = _Numpy()
        self.wanted = self.problem.classifier.code(self.problem.target.value)
        self.types: dict[str, str] = {}  # columns with the same text before "_" are taken for one feature's
        self.shown: list[int] = []
        for place in _moving(self.problem.space):
            feature, columns = self.problem.space.features[place], self.problem.space.slices[place]
            self.shown += range(columns.start, columns.stop)
            for level in range(feature.width):
                self.types[f"x{place}_{level}"] = "cat" if feature.kind in {Kind.CATEGORICAL, Kind.BINARY} else "num"

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """Up to ``n`` points, the library's closest first; GAVE_UP for those it did not find."""
        if deadline.passed:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT)
        space, until = self.problem.space, deadline.sooner()
        origin = space.encode(factual)[0]
        half = until.left / 2  # for moving back only, whose clock starts at the first point
        self.query = factual, origin, until
        self.known.clear()
        steps, greedy = self.library._create_factual_changes, self.library._greedy_generator

        def watched(*arguments: Any) -> Any:
            """As the library's steps from a point; a point that had no new one has none the next time."""
            check_clock(until)
            if self.idle and self.method.strategy == "greedy":
                raise _EndlessError
            self.idle = True
            return steps(*arguments)

        def ended(**arguments: Any) -> Any:
            """As the library's greedy search, which adds what it finds to a list."""
            try:
                return greedy(**arguments)
            except _EndlessError:
                return arguments["cf_unique"]

        try:
            with (
                quiet(),
                seeded(rng),
                mock.patch.object(self.library, "_create_factual_changes", watched),
                mock.patch("cfnow.cf_finder._greedy_generator", ended),
            ):
                found = self.search(
                    pd.Series(origin[self.shown], index=list(self.types)),
                    self._share,
                    count_cf=n,
                    feat_types=dict(self.types),
                    cf_strategy=self.method.strategy,
                    it_max=self.method.it_max,
                    limit_seconds=half,
                    ft_change_factor=self.method.ft_change_factor,
                    ft_it_max=self.method.ft_it_max,
                    has_ohe=True,
                    threshold_changes=self.method.threshold_changes,
                )
                points = self._decoded(np.array(found.cfs)) if len(found.cfs) else space.frame([])
        except LateError:
            met = Met(self.problem)
            if rows := [np.frombuffer(key) for key, odds in self.known.items() if odds > 0.5]:
                met.parts.append(self._decoded(np.array(rows)))
            return met.explanation(factual, n)
        finally:
            self.query = None
        return self._read(points, factual, n, Reason.TIME_LIMIT if until.left <= half else Reason.FINISHED)

    def _read(self, points: pd.DataFrame, factual: pd.DataFrame, n: int, ended: Reason) -> Explanation:
        """The first ``n`` different points, without the factual; the model is not asked."""
        known = factual.astype(object).to_dict("records")
        for row in points.astype(object).to_dict("records"):
            if row not in known:
                known.append(row)
            if len(known) > n:
                break
        filler = Answer(Status.GAVE_UP, None, ended, detail=f"CFNOW found {len(known) - 1} different counterfactuals.")
        return Explanation(tuple(Answer(Status.FOUND, row, ended) for row in known[1:])).padded(n, filler)

    def _decoded(self, matrix: np.ndarray) -> pd.DataFrame:
        assert self.query is not None
        factual, origin, _ = self.query
        rows = np.repeat(origin[None], len(matrix), axis=0)
        rows[:, self.shown] = np.clip(matrix, -FAR, FAR)
        return self.problem.space.decode(rows, like=factual)

    def _share(self, rows: Any) -> np.ndarray:
        """Share of the wanted class beside the most probable other one, shape (rows,); above 0.5 iff predicted."""
        assert self.query is not None
        check_clock(self.query[2])
        self.idle = False
        matrix = np.asarray(rows, dtype=float)
        keys = [row.tobytes() for row in matrix]
        if new := {key: row for key, row in zip(keys, matrix, strict=True) if key not in self.known}:
            found = shares(self.problem.classifier, self._decoded(np.array(list(new.values()))))
            wanted = found[:, self.wanted]
            odds = wanted / (wanted + np.delete(found, self.wanted, axis=1).max(axis=1))
            self.known.update(zip(new, odds.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])


def _moving(space: Space) -> list[int]:
    """The places of features that may change."""
    return [place for place, name in enumerate(space.names) if name not in space.immutable]


class _Numpy:
    """numpy for the library's fine tuning, which would raise where a step yields no new point."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def concatenate(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """As numpy's, but for empty arrays of another number of dimensions."""
        return np.concatenate([array for array in arrays if len(array)])
