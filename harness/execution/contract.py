"""What an explanation must keep to, whatever method gave it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import short
from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status, closed
from harness.core.gaps import same_row
from harness.core.problem import Problem
from harness.execution.messages import ExplainRequest
from harness.store.plain import to_plain

PLAIN = (str, int, float, np.bool_, np.integer, np.floating, type(None))  # of what is stored
NUMBER = (int, float, np.integer, np.floating)


def group_breach(explanation: GroupExplanation, problem: Problem, factuals: pd.DataFrame) -> str | None:
    """How an explanation breaks the contract of ``GroupExplainer``, if it does."""
    if fault := _no_explanation(explanation, GroupExplanation, "explain_group", "points"):
        return fault
    assigned, left = explanation.assignment, explanation.uncoverable
    if strangers := (set(assigned) | set(left)) - set(factuals.index):
        return f"the method assigned {sorted(map(str, strangers))}, which are not in the group"
    if both := set(assigned) & set(left):
        return f"the method both explained {sorted(map(str, both))} and called them uncoverable"
    if strange := [each for each in assigned.values() if not isinstance(each, int | np.integer)]:
        return f"the method assigned {strange[0]!r}, which is no number of a point; give its place among the points"
    if odd := set(assigned.values()) ^ set(range(len(explanation.points))):
        return f"the method gave {len(explanation.points)} points, of which {sorted(odd)} have no factual"
    if len(explanation.changed) != len(explanation.points):
        return f"the method gave {len(explanation.points)} points and changed features of {len(explanation.changed)}"
    bounds = ("bound", "total_change", "total_change_bound")
    if fault := _no_number({name: getattr(explanation, name) for name in bounds}):
        return fault
    if fault := _unstorable(explanation, ("changed", "uncoverable", "undecided", "trace")):
        return fault
    for point in explanation.points:
        if point.row is None:
            return "the method gave a point without a row"
        if fault := _odd({"detail": point.detail}) or _odd(point.row) or _odd(point.region or {}):
            return fault
        if fault := _misfit(point.row, problem):
            return fault
    return None


def _odd(values: Mapping[str, Any]) -> str | None:
    """What of an answer cannot be stored: neither text, number nor truth, nor several of them."""
    for name, value in values.items():
        for each in value if isinstance(value, tuple | list) else (value,):
            if not isinstance(each, PLAIN):
                return f"the method gave {each!r} as {name}, a {type(each).__name__}, which is no plain value"
    return None


def _no_number(values: Mapping[str, Any]) -> str | None:
    """What of an answer is to be a number and is none."""
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, NUMBER)):
            return f"the method gave {value!r} as {name}; give a number, or None where nothing is claimed"
    return None


def _unstorable(found: Explanation | GroupExplanation, names: tuple[str, ...]) -> str | None:
    """Which part of an explanation is not made of plain values alone."""
    for name in names:
        try:
            json.dumps(to_plain(getattr(found, name)))
        except (TypeError, ValueError, RecursionError) as fault:
            return f"the method gave a {name} that cannot be stored ({short(fault)}); give plain values alone"
    return None


def _misfit(row: dict[str, Any], problem: Problem) -> str | None:
    names = set(problem.space.names)
    if lacking := names - set(row):
        return f"the method gave a row without {_listed(lacking)}"
    if more := set(row) - names:
        return f"the method gave a row with {_listed(more)}, which {'is' if len(more) == 1 else 'are'} no feature"
    gaps = [feature.name for feature in problem.space.features if not feature.missing and pd.isna(row[feature.name])]
    return f"the method gave a row with missing values: {', '.join(gaps)}" if gaps else None


def _listed(names: set[Any]) -> str:
    return ", ".join(sorted(map(repr, names)))


def breach(explanation: Explanation, problem: Problem, request: ExplainRequest, claims: bool = True) -> str | None:
    """How an explanation breaks the contract of ``Explainer``, if it does.

    Parameters
    ----------
    claims
        Whether the method says by ``objective`` what it minimises: without that nothing can be proven.
    """
    if fault := _no_explanation(explanation, Explanation, "explain", "answers"):
        return fault
    if len(explanation.answers) != request.count:
        return f"the method was asked for {request.count} answers and gave {len(explanation.answers)}"
    if fault := _unstorable(explanation, ("conflict", "trace")):
        return fault
    origin = request.factual.iloc[0].to_dict()
    for answer in explanation.answers:
        if fault := _no_number({"objective": answer.objective, "bound": answer.bound}):
            return fault
        if not claims and (fault := _unclaimed(answer)):
            return fault
        if answer.status is Status.OPTIMAL and (answer.objective is None or answer.bound is None):
            return "the method called an answer OPTIMAL without its objective and bound; without a proof it is FOUND"
        if answer.status is Status.OPTIMAL and not closed(answer.objective, answer.bound):
            return (
                f"the method called an answer OPTIMAL whose objective {answer.objective:.9g} its bound "
                f"{answer.bound:.9g} does not prove; without a proof it is FOUND"
            )
        if fault := _odd({"detail": answer.detail}) or _odd(answer.row or {}) or _odd(answer.region or {}):
            return fault
        if answer.row is None:
            continue
        if fault := _misfit(answer.row, problem):
            return fault
        if same_row(answer.row, origin):
            return "the method handed the factual back as an answer"
    return None


def _unclaimed(answer: Answer) -> str | None:
    """What an answer claims to have minimised, of a method that claims to minimise nothing."""
    given = ["the status OPTIMAL"] * (answer.status is Status.OPTIMAL)
    given += [
        f"{name} {getattr(answer, name)!r}" for name in ("objective", "bound") if getattr(answer, name) is not None
    ]
    if not given:
        return None
    return (
        f"the method gave an answer with {' and '.join(given)}, and its objective() returns None; return an Objective "
        f"there, or call the answer FOUND, without objective and bound"
    )


def _no_explanation(found: Any, kind: type, function: str, parts: str) -> str | None:
    """What of an explanation is of another type than a function of a method has to return."""
    if not isinstance(found, kind):
        return (
            f"{function} returned {_a(found)}; return {'an' if kind is Explanation else 'a'} {kind.__name__} of Answers"
        )
    for answer in getattr(found, parts):
        if not isinstance(answer, Answer):
            return f"{function} returned {_a(answer)} in its {kind.__name__}; return an Answer, with a status"
        if answer.row is not None and not isinstance(answer.row, dict):
            return f"the method gave {_a(answer.row)} as the row of an answer; give a dict of plain values by feature"
    return None


def _a(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def refused(count: int, why: str) -> Explanation:
    """The answers of a method that does not take the question."""
    return Explanation.none(count, Status.UNSUPPORTED, Reason.REFUSED, why)
