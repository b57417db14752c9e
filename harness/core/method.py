"""What a counterfactual method is to the harness: parameters that fit into an explainer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import Explanation, GroupExplanation
from harness.core.objective import Objective
from harness.core.problem import Problem


def prepare(method: object) -> None:
    """Have a method make what it needs once a machine, where it needs anything.

    Raises
    ------
    HarnessError
        For a name, or a class, in place of a method.
    """
    if isinstance(method, type) or not hasattr(method, "fit"):
        given = f"the class {method.__name__}" if isinstance(method, type) else repr(method)
        raise HarnessError(f"{given} is no method; give one with its parameters, such as Nearest() of methods.nearest.")
    getattr(method, "prepare", lambda: None)()


def equal(one: Method, other: Method) -> bool:
    """Whether two methods are the same with the same parameters; of arrays, the same objects."""
    try:
        return bool(one == other)
    except ValueError:  # of other arrays, which compare by element
        return False


RESERVE = 0.05  # of the seconds of a question: for reading, checking and handing back what a search found


@dataclass(frozen=True)
class Deadline:
    """A moment by which to answer. The harness keeps the clock; a method only asks what is left."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(self.at - time.monotonic(), 0.0)

    def sooner(self, share: float = RESERVE) -> Deadline:
        """The moment by which a search has to end, so that a share of the seconds is left to read what it found."""
        return Deadline(self.at - share * self.left)

    @property
    def passed(self) -> bool:
        return self.left <= 0.0


REQUIRED = "none, it has to be given"  # in place of a library's default


class LibraryDefault(NamedTuple):
    """What a wrapped library takes for a setting that it is not given.

    Parameters
    ----------
    value
        Of the setting, as the wrapper takes it; ``REQUIRED`` where the library has no default.
    place
        Where the library states it: ``module:Class.function:parameter``, or ``module:Class.mapping:key`` with ``/``
        between the keys of nested mappings; a sentence where neither a signature nor a mapping does.
    """

    value: Any
    place: str


class Explainer(Protocol):
    """A method fitted to one problem. It holds all state, lives in one process and is never pickled.

    Three attributes are optional: ``lost``, bool, whether it can answer no more, so that another is fitted for the next
    factual; ``cpu_seconds``, float, what processes that it started and that still run have taken so far; and
    ``model_seconds``, float, wall-clock seconds that it has so far spent on what such a process asked about the model.
    """

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """``n`` answers for a one-row decoded frame whose index is the factual's id."""
        ...


@runtime_checkable
class GroupExplainer(Protocol):
    """A method that explains a group of factuals at once."""

    def explain_group(
        self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline
    ) -> GroupExplanation: ...


class Method(Protocol):
    """A frozen dataclass of parameters. Anything with these three can be benchmarked.

    Eight attributes are optional, of the class or, where they depend on a parameter, properties:

    ``deterministic``, bool
        Whether the answers are the same whatever generator ``explain`` and ``explain_group`` are given, as long as time
        does not run out. Such a method runs once and stands for every seed. False where it is missing.
    ``gives``, str
        ``"one"`` where the method by design gives no more than one counterfactual, however many are asked for;
        ``"several"`` otherwise, and where it is missing.
    ``sees_reference``, bool
        Whether it uses ``problem.reference``, which by a setting holds rows that no other method sees; such a method
        is marked. False where it is missing.
    ``takes_gaps``, bool
        Whether it explains people with missing values, in features that keep them (``Feature.missing``): decoded frames
        then hold NaN. Where it is False or missing, the harness refuses for it.
    ``prepare()``
        Called once before a run, outside every clock, and never fails: what is missing is for ``refuses`` to say.
    ``fit_within(problem, deadline)``
        Called in place of ``fit`` where the time to fit is limited, by a method that can make use of that.
    ``files``, sequence of paths
        What its answers depend on beside its package's Python files.
    ``library_defaults``, mapping of names of parameters to ``LibraryDefault``
        Of a method that runs another library: every parameter but the one that chooses the algorithm.
    """

    def refuses(self, problem: Problem) -> str | None:
        """Why this problem cannot be taken, in one sentence, or None."""
        ...

    def fit(self, problem: Problem) -> Explainer:
        """Build what serves every factual of the problem."""
        ...

    def objective(self, problem: Problem) -> Objective | None:
        """What the method claims to minimise, or None where it claims nothing."""
        ...


def fit(method: Method, problem: Problem, deadline: Deadline) -> Explainer:
    """Have a method fit to a problem by a deadline, which it is told if it asks for that."""
    within = getattr(method, "fit_within", None)
    found: Explainer = method.fit(problem) if within is None else within(problem, deadline)
    if found is None:
        raise TypeError("the method's fit returned None; return an object with explain(factual, n, rng, deadline)")
    return found


def refusal(method: Method, problem: Problem) -> str | None:
    """Why a method does not take a problem, in one sentence, or None: also where it cannot take missing values."""
    gaps = problem.space.gaps
    if gaps and not getattr(method, "takes_gaps", False):
        name, shown = gaps[0].name, getattr(method, "shown", type(method).__name__)
        return (
            f"{shown} takes no missing values, and {name} keeps them; set features.{name}.missing to "
            f"median, or another filler, or drop."
        )
    why = method.refuses(problem)
    if not isinstance(why, str | None):
        raise TypeError(f"refuses returned {why!r}; return a sentence that says why, or None")
    return why
