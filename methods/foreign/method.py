"""A method whose code runs in a process of its own: another Python, other packages, or another language."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError, check_choices, choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term, check_weight
from harness.core.problem import Problem
from harness.core.relations import refusal
from harness.core.tolerances import CLAIM, OPTIMALITY_GAP
from methods.foreign.environment import Environment, located
from methods.foreign.process import SAID, VERSION, FarSide, LostError
from methods.foreign.served import Served, described, finite, reach_of, read, values

ENDINGS = ("finished", "time limit")
STATUSES = ("OPTIMAL", "FOUND", "INFEASIBLE", "GAVE_UP", "UNSUPPORTED")
WITHOUT = {  # status and reason of an answer without a point
    "GAVE_UP": (Status.GAVE_UP, Reason.FINISHED),
    "INFEASIBLE": (Status.INFEASIBLE, Reason.PROOF),
    "UNSUPPORTED": (Status.UNSUPPORTED, Reason.REFUSED),
}
REFUSED = "called optimal, and the model refuses it"
KEYS = ("python", "lock", "index", "variables")


@dataclass(frozen=True)
class Foreign:
    """Answers of a program that speaks one JSON line at a time on its standard input and output.

    The program is told the problem once (features, training rows, target, the model's inputs, seconds to fit) and then
    asked a factual at a time, with what this person may take of each feature; before it answers it may ask about the
    model as often as it likes: predictions, scores, the estimator's columns, gradients, layers, trees, or the estimator
    itself as bytes. ``far.py`` does that in Python. Limits, checks, seeds and clocks are those of every method; the
    seconds in which the harness served the program's questions are part of its time, and stored apart
    (``model_seconds``); the memory limit is that of the program's process, too, by itself. A program that ends, or says
    what it must not, costs one factual.

    Parameters
    ----------
    name
        What it is called in messages, and its environment: letters, digits, ``_`` and ``-``.
    script
        Its file, by path or as ``package/path`` of an installed package.
    program
        What runs the script where that is no Python: program and arguments, ``{script}`` for the script's path.
    environment
        ``python``, a version, ``lock``, a file of pinned requirements (as ``script``), ``index``, the address of a
        further index of packages, and ``variables``, for the process; nothing for the harness's own Python.
    settings
        What the script is given, as it is.
    distance
        The distance that it claims to minimise (l1, l0, l2sq, ...), or null: it then cannot say OPTIMAL.
    alpha
        Weight of the number of changed features in what it claims to minimise, beside the distance.
    deterministic
        Whether its answers are the same whatever the seed.
    gives
        ``one`` or ``several`` counterfactuals a factual.
    """

    name: str
    script: str
    program: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    distance: str | None = None
    alpha: float = 0.0
    deterministic: bool = False
    gives: str = "one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "program", tuple(self.program))
        if not re.fullmatch(r"[\w-]+", self.name):  # of a folder, and of files beside it
            raise ValueError(f"name is {self.name!r}; use letters, digits, _ and - only.")
        for key in self.environment:
            if key not in KEYS:
                raise ValueError(f"environment of {self.name} has no {key!r}; {choices(key, KEYS)}.")
        check_choices(self, {"gives": ("one", "several")})
        if self.distance is not None:
            Term(self.distance)
        check_weight("alpha", self.alpha)

    @property
    def files(self) -> tuple[Path, ...]:
        """Files beside the harness's own that its answers depend on."""
        lock = self.environment.get("lock")
        return (located(self.script), *([located(str(lock))] if lock else []))

    @cached_property
    def home(self) -> Environment:
        """Its environment."""
        return Environment.of(self.name, self.environment)

    def prepare(self) -> None:
        """Make its environment, once a machine; what is in the way is what ``refuses`` then says."""
        with contextlib.suppress(HarnessError):
            self.home.make()

    def refuses(self, problem: Problem) -> str | None:
        """A missing file or environment, or relations where it claims proofs. Other refusals are the script's."""
        if self.distance is not None and (why := refusal(problem.space.relations, self.name)):
            return why
        try:
            located(self.script)
            return self.home.lacking
        except HarnessError as fault:
            return str(fault)

    def objective(self, problem: Problem) -> Objective | None:
        if self.distance is None:
            return None
        terms = (Term(self.distance), *([Term("l0", self.alpha)] if self.alpha else []))
        return Objective(terms, costed=False)

    def fit(self, problem: Problem) -> _Explainer:
        """Start the program and tell it the problem.

        Raises
        ------
        HarnessError
            Where it refuses the problem, or ends.
        """
        return _Explainer(self, problem)

    def fit_within(self, problem: Problem, deadline: Deadline) -> _Explainer:
        """As ``fit``; the program is told the seconds that are left to fit."""
        return _Explainer(self, problem, deadline)

    def start(self) -> FarSide:
        """The running program."""
        script = str(located(self.script))
        command = [part.replace("{script}", script) for part in self.program]
        here = str(Path(__file__).parent)
        variables = {"PYTHONPATH": here, "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
        variables |= {str(name): str(value) for name, value in dict(self.environment.get("variables") or {}).items()}
        return FarSide(command or [str(self.home.interpreter), script], variables)


class _Explainer:
    """The program, fitted to one problem."""

    def __init__(self, method: Foreign, problem: Problem, deadline: Deadline | None = None) -> None:
        self.method, self.problem, self.claim = method, problem, method.objective(problem)
        self.served, self.model_seconds = Served(problem), 0.0
        self.far = method.start()
        hello = self._ask({"do": "hello", "version": VERSION, "arrays": "npy"})
        if hello.get("version") != VERSION:
            raise HarnessError(f"{method.name} speaks version {hello.get('version')!r} of the protocol, not {VERSION}.")
        self.far.arrays = hello.get("arrays") == "npy"
        claim = {"distance": method.distance, "alpha": method.alpha}
        limit = None if deadline is None else deadline.left
        told = self._ask({**described(problem, limit), "do": "fit", "settings": dict(method.settings), "claim": claim})
        if not told.get("ok"):
            raise LostError(f"{method.name} neither took the problem nor refused it.")

    @property
    def lost(self) -> bool:
        """Whether the program cannot be asked again."""
        return self.far.lost

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of the program, which runs on."""
        return self.far.processor_seconds

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        space, before = self.problem.space, dict(self.far.called)
        question = {
            "do": "explain",
            "factual": values(factual[list(space.names)])[0],
            "reach": reach_of(space, factual),
            "count": n,
            "seed": int(rng.integers(2**31)),
            "limit": deadline.left,
        }
        reply = self._ask(question).get("answers")
        if not isinstance(reply, list) or not all(isinstance(each, dict) for each in reply):
            raise HarnessError(f"{self.method.name} did not give a list of answers.")
        answers = [self._answer(each, factual) for each in reply[:n]]
        called = {f"asked {name}": count - before.get(name, 0) for name, count in self.far.called.items()}
        last = answers[-1] if answers and answers[-1].row is None else Answer(Status.GAVE_UP)
        return Explanation(tuple(answers), trace=({"seed": question["seed"], **called},)).padded(n, last)

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        reply = self.far.ask(message, self._serve)
        if "refused" in reply:
            raise HarnessError(str(reply["refused"])[:SAID])
        if "memory" in reply:
            raise MemoryError
        if "error" in reply:
            raise RuntimeError(f"{self.method.name}: {str(reply['error'])[-10 * SAID :]}")
        return reply

    def _serve(self, question: Mapping[str, Any]) -> Any:
        start = time.perf_counter()
        try:
            return self.served(question)
        finally:
            self.model_seconds += time.perf_counter() - start

    def _answer(self, told: Mapping[str, Any], factual: pd.DataFrame) -> Answer:
        """An answer of the program; OPTIMAL only with a claim, and where the model says what is wanted."""
        status = str(told.get("status") or ("GAVE_UP" if told.get("row") is None else "FOUND"))
        if status not in STATUSES:
            raise HarnessError(f"{self.method.name} gave the status {status[:SAID]!r}; {choices(status, STATUSES)}.")
        late = _reason(self.method.name, told.get("reason")) is Reason.TIME_LIMIT
        detail = str(told.get("detail") or "")[:SAID]
        if told.get("row") is None:
            given, reason = WITHOUT.get(status, WITHOUT["GAVE_UP"])
            return Answer(given, reason=Reason.TIME_LIMIT if late else reason, detail=detail)
        row = read(self.problem, told["row"])
        frame = self.problem.space.frame([row])
        value, bound = None, finite(told.get("bound"))
        if self.claim is not None:
            value = float(self.claim.evaluate(self.problem.space, factual, frame)[0])
            gap = value - (value if bound is None else bound)
            if gap < -CLAIM or (status == "OPTIMAL" and gap > OPTIMALITY_GAP * max(1.0, value)):
                raise HarnessError(f"{self.method.name} says {status} and at least {bound:g} of a point at {value:g}.")
        proven = status == "OPTIMAL" and value is not None
        if proven and not self.problem.valid(frame)[0]:
            proven, detail = False, REFUSED
        return Answer(
            Status.OPTIMAL if proven else Status.FOUND,
            row,
            Reason.PROOF if proven else Reason.TIME_LIMIT if late else Reason.FINISHED,
            objective=value,
            bound=None if value is None else (value if proven and bound is None else bound),
            detail=detail,
        )


def _reason(name: str, told: Any) -> Reason | None:
    """What the far side says of how an answer ended, if it does."""
    if told is None:
        return None
    if told not in ENDINGS:
        raise HarnessError(f"{name} gave the reason {told!r}; {choices(str(told), ENDINGS)}.")
    return Reason(told)
