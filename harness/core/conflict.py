"""Why a question has no answer: constraint groups that cannot hold together, and as few of them as time allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from harness.core.feature import Feature
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability

WIDE = 1000.0  # ranges to either side that stand for no bounds at all


def irreducible(
    groups: Sequence[str], infeasible: Callable[[frozenset[str], Deadline], bool | None], deadline: Deadline
) -> tuple[str, ...]:
    """A set of groups that conflict, from which none can be left out: a deletion filter.

    Parameters
    ----------
    groups
        Names, in the order in which they are tried: what comes first is blamed last.
    infeasible
        Whether the question has no answer without some groups; None where that could not be settled by then. It is
        given half of the time left: an answer is one before it is proven the best, and others are to be asked. Where
        it fails, nothing is settled either: that there is no answer is known already, and not to be lost over why. Nor
        is anything asked any more that would be late if it overran its time as far as one before it.

    Returns
    -------
    tuple of str
        The conflict. A group that could not be settled stays in it; empty where none was seen to be needed.

    Examples
    --------
    >>> soon = Deadline.after(60)
    >>> irreducible(["a", "b", "c"], lambda without, _: "b" not in without and "c" not in without, soon)
    ('b', 'c')
    >>> unsettled = lambda without, _: {"b": False}.get(*without)
    >>> irreducible(["b", "c"], unsettled, soon), irreducible(["c"], unsettled, soon)
    (('b', 'c'), ())
    """
    spared: frozenset[str] = frozenset()
    needed, doubtful, overrun = False, False, 0.0
    for group in groups:
        verdict, until = None, Deadline.after(deadline.left / 2)
        if until.left > overrun:
            with suppress(Exception):
                verdict = infeasible(spared | {group}, until)
            overrun = max(overrun, time.monotonic() - until.at)
        if verdict:
            spared |= {group}
        needed, doubtful = needed or verdict is False, doubtful or verdict is None
    return () if doubtful and not needed else tuple(group for group in groups if group not in spared)


def conflict_text(conflict: Sequence[str]) -> str:
    """A conflict in words; a group that leaves nothing by itself is one with the model.

    Examples
    --------
    >>> conflict_text(["immutable age", "max_changes=1"]), conflict_text(["max_changes=1"])
    ('immutable age, max_changes=1', 'max_changes=1 and the model')
    """
    return ", ".join(conflict) + (" and the model" if len(conflict) == 1 else "")


def groups_of(problem: Problem) -> dict[str, dict[str, dict[str, Any]]]:
    """The constraint groups of a problem's space, by name, with the changes that lift each of them.

    One group for each feature that is not free, and one for the bounds of all numbers. A number that had no least or
    greatest value, and needed none as long as it could not move that way, is given one together with its freedom.
    """
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for feature in problem.space.features:
        if feature.actionability is not Actionability.FREE:
            groups[f"{feature.actionability} {feature.name}"] = {feature.name: _freed(feature)}
    wide: dict[str, dict[str, Any]] = {
        f.name: {"bounds": _wide(f), "special": ()} for f in problem.space.features if f.numeric
    }
    return groups | ({"bounds": wide} if wide else {})


def _freed(feature: Feature) -> dict[str, Any]:
    """The changes that free a feature; open bounds are closed, without special codes that would then lie within."""
    freed: dict[str, Any] = {"actionability": Actionability.FREE}
    if feature.numeric and not all(map(math.isfinite, feature.bounds)):
        (low, high), (least, greatest) = feature.bounds, _wide(feature)
        low = low if math.isfinite(low) else min(least, high)
        high = high if math.isfinite(high) else max(greatest, low)
        special = tuple(code for code in feature.special if not low <= code <= high)
        freed |= {"bounds": (low, high), "special": special}
    return freed


def _wide(feature: Feature) -> tuple[float, float]:
    """Bounds of a number that stand for none."""
    return feature.scale[0] - WIDE * feature.range, feature.scale[1] + WIDE * feature.range


def equations_of(problem: Problem) -> tuple[str, ...]:
    """The constraint groups of a problem's structural equations, for methods that impose them."""
    return tuple(f"causality {equation.feature}" for equation in problem.equations)


def lifted(problem: Problem, names: frozenset[str]) -> Problem:
    """The problem without some of its constraint groups."""
    space = problem.space
    for name, changes in groups_of(problem).items():
        if name in names:
            space = space.replace(changes)
    space = replace(space, constraints=tuple(text for text in space.constraints if text not in names))
    named = zip(equations_of(problem), problem.equations, strict=True)
    return replace(problem, space=space, equations=tuple(equation for name, equation in named if name not in names))
