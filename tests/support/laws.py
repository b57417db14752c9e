"""What every method must keep to, whatever it is: each law takes a ``Case`` and raises AssertionError.

A test applies laws by ``judge``, which skips those that a refusal leaves nothing to look at.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.gaps import missing, same
from harness.core.method import Deadline, Explainer, Method, refusal
from harness.core.problem import Problem
from harness.evaluation.checker import exists, permitted
from harness.models.runtime.estimators import RuntimeModel
from methods.foreign.method import Foreign

TOLERANCE = 1e-5  # of a claimed optimum: the margin that keeps a class strict, and the solver's own
SAMPLES = 2000
ASKED = 200  # of them whose distance from a hull is asked for


@dataclass
class Case:
    """A method before a problem, and what it answers; asked once, judged by every law.

    ``own`` is False for wrappers of other libraries, whose points may break actionability or be of another class;
    ``traces`` names what a refusal, fitting and explaining wrote to or drew from, of what is not the method's.
    """

    method: Method
    problem: Problem
    factuals: pd.DataFrame
    count: int = 2
    own: bool = True
    seconds: float = 60.0
    traces: set[str] = field(default_factory=set)

    @cached_property
    def refusal(self) -> str | None:
        """In a process of another environment only fitting tells what a method takes."""
        with self._watched():
            why = refusal(self.method, self.problem)
            if why is None and isinstance(self.method, Foreign):
                try:
                    self.explainer  # noqa: B018
                except HarnessError as fault:
                    return str(fault)
            return why

    @cached_property
    def explainer(self) -> Explainer:
        return self.method.fit(self.problem)

    @cached_property
    def explanations(self) -> list[Explanation]:
        """One per factual; none where the method refuses."""
        if self.refusal is not None:
            return []
        with self._watched():
            return [self.ask(self.factuals.iloc[[i]], self.seconds) for i in range(len(self.factuals))]

    def ask(self, factual: pd.DataFrame, seconds: float, seed: int = 7) -> Explanation:
        """One explanation, of ``self.count`` answers."""
        given = factual.copy()
        found = self.explainer.explain(given, self.count, np.random.default_rng(seed), Deadline.after(seconds))
        if not given.equals(factual):
            self.traces.add("factual")
        return found

    def answers(self) -> Iterator[tuple[pd.DataFrame, int, Answer]]:
        """Factual, position and answer."""
        for number, explanation in enumerate(self.explanations):
            for position, answer in enumerate(explanation.answers):
                yield self.factuals.iloc[[number]], position, answer

    def points(self) -> Iterator[tuple[pd.DataFrame, dict[str, Any], Answer]]:
        """Factual, row and answer, where there is a row."""
        for factual, _, answer in self.answers():
            if answer.row is not None:
                yield factual, answer.row, answer

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Note in ``traces`` what is written to or drawn from meanwhile."""
        before, problem = _generators(), _content(self.problem)
        yield
        self.traces |= {"generators"} if _generators() != before else set()
        self.traces |= {"problem"} if _content(self.problem) != problem else set()


def as_many_answers_as_asked(case: Case) -> None:
    for explanation in case.explanations:
        assert len(explanation.answers) == case.count


def an_own_point_is_valid(case: Case) -> None:
    """The real model puts it in the target class, as it does every proven one; wrappers may return others as found."""
    for _, row, answer in case.points():
        if case.own or answer.status is Status.OPTIMAL:
            assert case.problem.valid(case.problem.space.frame([row]))[0], f"not of the wanted class: {row}"


def a_point_is_coherent(case: Case) -> None:
    """Every value of a row is one that its feature can have."""
    for _, row, _ in case.points():
        assert tuple(row) == case.problem.space.names
        assert [f.name for f in case.problem.space.features if not exists(f, _plain(row[f.name]))] == []


def a_point_is_permitted(case: Case) -> None:
    """No feature is changed against its actionability, its bounds, or to a special code."""
    if case.own:
        for factual, row, _ in case.points():
            origin = factual.iloc[0].to_dict()
            broken = {f.name for f in case.problem.space.features if not permitted(f, origin[f.name], row[f.name])}
            assert not broken, {name: (origin[name], row[name]) for name in broken}


def a_point_is_not_the_factual(case: Case) -> None:
    for factual, row, _ in case.points():
        assert _known(row) != _known(factual.iloc[0].to_dict())


def points_differ(case: Case) -> None:
    """No counterfactual of a factual is given twice."""
    for explanation in case.explanations:
        rows = [_known(answer.row) for answer in explanation.answers if answer.row is not None]
        assert not any(row in rows[:number] for number, row in enumerate(rows))


def equal_generators_give_equal_answers(case: Case) -> None:
    """Also from an explainer that was asked other questions in between; unless the clock ended the search.

    One that declares itself deterministic answers alike with another seed.
    """
    deterministic = getattr(case.method, "deterministic", False)
    for number, explanation in enumerate(case.explanations):
        seed = 8 + number if deterministic else 7
        _same(explanation, case.ask(case.factuals.iloc[[number]], case.seconds, seed))


def one_that_gives_one_gives_no_more(case: Case) -> None:
    """One that declares to give one counterfactual returns at most one point where several are asked for."""
    given = getattr(case.method, "gives", "several")
    assert given in {"one", "several"}
    if given == "one":
        assert case.count > 1
        for explanation in case.explanations:
            assert sum(answer.row is not None for answer in explanation.answers) <= 1


def inputs_stay_untouched(case: Case) -> None:
    """Neither the problem nor the factual is written to, whether the method takes the problem or refuses it."""
    assert case.explanations or case.refusal
    assert not case.traces & {"problem", "factual"}


def global_generators_stay_untouched(case: Case) -> None:
    """Neither by a refusal nor by an explanation."""
    assert case.explanations or case.refusal
    assert "generators" not in case.traces


def a_refusal_is_a_sentence(case: Case) -> None:
    assert case.refusal is None or len(case.refusal.split()) > 2
    for _, _, answer in case.answers():
        assert answer.status is not Status.UNSUPPORTED or len(answer.detail.split()) > 2


def a_claim_is_the_objective(case: Case) -> None:
    """The objective of an answer is what ``Objective.evaluate`` makes of its row, which keeps the stated limits."""
    for factual, row, answer in case.points():
        objective = case.method.objective(case.problem)
        frame = case.problem.space.frame([row])
        if objective is not None:
            assert not objective.exceeded(case.problem.space, factual, frame)[0]
        if objective is None or not objective.terms:
            assert answer.objective is None
            assert answer.bound is None
            assert answer.status is not Status.OPTIMAL
        else:
            assert answer.objective is not None
            value = objective.evaluate(case.problem.space, factual, frame)[0]
            np.testing.assert_allclose(answer.objective, value, rtol=1e-9, atol=1e-9)


def a_bound_is_below_the_objective(case: Case) -> None:
    """And meets it where the answer is called optimal."""
    for _, _, answer in case.points():
        if answer.bound is not None:
            assert answer.objective is not None
            assert answer.bound <= answer.objective + 1e-9 * max(1.0, abs(answer.objective))
        if answer.status is Status.OPTIMAL:
            assert answer.gap is not None
            assert answer.gap <= 1e-6 * max(1.0, abs(answer.objective or 0.0))


def nothing_sampled_beats_a_proof(case: Case) -> None:
    """No valid permitted point is better than the first answer's proven bound, or exists where none should."""
    for factual, position, answer in case.answers():
        if position or answer.status not in {Status.OPTIMAL, Status.INFEASIBLE}:
            continue
        objective = case.method.objective(case.problem)
        assert objective is not None
        space, points = case.problem.space, _sampled(case.problem, factual)
        proven = np.inf if answer.objective is None else answer.objective - TOLERANCE
        hulls = [part.name for part in (*objective.terms, *(limit.term for limit in objective.limits))]
        if "slack" in hulls:  # a linear program a point: asked of the cheapest of those that a hull may spare
            plain = replace(objective, terms=tuple(term for term in objective.terms if term.name != "slack"))
            cheap = plain.evaluate(space, factual, points)
            points = points.iloc[[i for i in np.argsort(cheap, kind="stable") if cheap[i] < proven][:ASKED]]
        kept = [not limits for limits in objective.exceeded(space, factual, points)]
        best = objective.evaluate(space, factual, points.loc[kept]).min(initial=np.inf)
        assert best >= proven, f"sampled {best}, proven {answer.objective}"


def a_proof_keeps_the_relations(case: Case) -> None:
    """What is claimed as an optimum breaks no relation between features, further than the factual does."""
    for factual, row, answer in case.points():
        broken = case.problem.space.breaches(factual, case.problem.space.frame([row]))[0]
        assert answer.status is not Status.OPTIMAL or not broken, broken


def a_past_deadline_is_answered(case: Case) -> None:
    """As many answers as asked for, without an exception, and without a long look."""
    start = time.monotonic()
    explanation = case.ask(case.factuals.iloc[[0]], -1.0)
    assert len(explanation.answers) == case.count
    assert time.monotonic() - start < 20


Law = Callable[[Case], None]
ALL: tuple[Law, ...] = (
    as_many_answers_as_asked,
    an_own_point_is_valid,
    a_point_is_coherent,
    a_point_is_permitted,
    a_point_is_not_the_factual,
    points_differ,
    equal_generators_give_equal_answers,
    one_that_gives_one_gives_no_more,
    inputs_stay_untouched,
    global_generators_stay_untouched,
    a_refusal_is_a_sentence,
    a_claim_is_the_objective,
    a_bound_is_below_the_objective,
    nothing_sampled_beats_a_proof,
    a_past_deadline_is_answered,
)
OF_REFUSALS: tuple[Law, ...] = (inputs_stay_untouched, global_generators_stay_untouched, a_refusal_is_a_sentence)


def judge(case: Case, *laws: Law) -> None:
    """Apply laws to a case. Where the method refuses the problem, those about answers are skipped with its reason."""
    applicable = laws if case.refusal is None else tuple(law for law in laws if law in OF_REFUSALS)
    for law in applicable:
        law(case)
    if applicable != laws:
        pytest.skip(f"refused: {case.refusal}")


def some_problem_is_taken(cases: Iterable[Case]) -> None:
    """A method that refuses every problem, or, where it is our own, finds nothing for any, is no method.

    Cases after the first that is taken are not made. What other libraries train on a few hundred rows may find nothing;
    tests of theirs ask them on COMPAS.
    """
    refusals = []
    for case in cases:
        if case.refusal is None and (not case.own or any(True for _ in case.points())):
            return
        refusals.append(case.refusal)
    assert None in refusals, f"everything is refused: {'; '.join(map(str, refusals))}"
    raise AssertionError("nothing is found for any problem")


def _same(one: Explanation, other: Explanation) -> None:
    """AssertionError where two explanations differ and no clock ended either search.

    Numbers may differ by 1e-9 of their size: HiGHS 1.12, given the same program twice, byte for byte, was seen to end
    with points 3e-10 apart.
    """
    if not any(answer.reason is Reason.TIME_LIMIT for answer in (*one.answers, *other.answers)):
        assert len(one.answers) == len(other.answers)
        for first, again in zip(one.answers, other.answers, strict=True):
            words, numbers = _parts(first)
            assert _parts(again) == (words, pytest.approx(numbers, rel=1e-9, abs=1e-9))


def _parts(answer: Answer) -> tuple[Answer, dict[str, float]]:
    """An answer without its numbers, and those by name."""
    row = {} if answer.row is None else _known(answer.row)
    given = {**row, "its objective": answer.objective, "its bound": answer.bound}
    numbers = {name: float(value) for name, value in given.items() if isinstance(value, float)}
    words = {name: value for name, value in row.items() if name not in numbers}
    return replace(answer, row=None if answer.row is None else words, objective=None, bound=None), numbers


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that can be compared: None for a gap, which is not equal to itself."""
    return {name: None if missing(value) else value for name, value in row.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _content(problem: Problem) -> str:
    """A hash of everything that a problem hands to a method."""
    estimator: Any = problem.classifier.estimator
    if isinstance(estimator, RuntimeModel):  # its features keep what they have once computed of themselves
        state = {**estimator.engine.__getstate__(), "decoder": repr(estimator.engine.decoder)}
        estimator = {**vars(estimator), "engine": state}
    fields = (problem.train, problem.labels, problem.reference, problem.reference_labels)
    return joblib.hash((*fields, estimator, repr(replace(problem.classifier, estimator=None)),
                        repr(problem.space), repr(problem.target)))  # fmt: skip


def _generators() -> tuple[Any, str]:
    """The states of Python's and NumPy's global generators."""
    return random.getstate(), joblib.hash(np.random.get_state())  # noqa: NPY002


def _sampled(problem: Problem, factual: pd.DataFrame) -> pd.DataFrame:
    """Random valid points that are permitted from a factual and differ from it, near ones above all."""
    rng = np.random.default_rng(11)
    origin = factual.iloc[0].to_dict()
    pools = {
        f.name: [
            v
            for v in problem.train[f.name].unique().tolist()
            if not same(v, origin[f.name]) and permitted(f, origin[f.name], v)
        ]
        for f in problem.space.features
    }
    movable = [name for name, values in pools.items() if values]
    rows = []
    for number in range(SAMPLES if movable else 0):
        size = min(1 + number % 4 if number % 8 else len(movable), len(movable))
        chosen = rng.choice(len(movable), size, replace=False)
        rows.append({**origin, **{movable[i]: pools[movable[i]][rng.integers(len(pools[movable[i]]))] for i in chosen}})
    frame = problem.space.frame(rows)
    return frame.loc[problem.valid(frame)] if rows else frame
