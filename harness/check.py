"""An independent verdict on stored answers: ``python -m harness.check results/compas``. Shares no code with methods."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.answers import Cell, cells
from harness.errors import HarnessError
from harness.objective import WITHIN, Objective
from harness.problem import Actionability, Feature, Kind, Space, Target

if TYPE_CHECKING:
    import pandas as pd

    from harness.causality import Equation
    from harness.classifier import Classifier

ROUNDING = 1e-9  # of a feature's range: what decoding to floats may move a bound
FAULTS = ("invalid", "beyond its limits", "worse than claimed")
CLAIM = 1e-6  # an objective this much above its claim, relative to max(1, |claim|), is worse than claimed


def verdicts(cell: Cell) -> list[dict[str, Any]]:
    """Judge every stored row from the row, the question and the stored estimator alone.

    Each verdict names ``factual`` and ``ce``; says ``valid`` (the estimator's own answer on the decoded row),
    ``incoherent`` and ``violations`` (feature names), the recomputed ``objective``, and as ``verdict``: ``valid``,
    ``invalid`` (target missed, or a value that does not exist), ``not actionable``, ``beyond its limits`` (those that
    the method stated), ``worse than claimed``, ``late``, or ``none`` where there is no counterfactual.
    """
    space, classifier, objective = cell.space, cell.classifier, cell.objective
    frame, targets = cell.factuals()
    imposed = cell.equations if objective is not None and objective.causal else ()
    result = []
    for row in cell.rows():
        verdict: dict[str, Any] = {"factual": row["factual"], "ce": row["ce"], "verdict": "none"}
        if row["row"] is not None:
            identity = row["factual"]
            verdict |= examine(row, frame.loc[[identity]], space, classifier, targets[identity], objective, imposed)
        result.append(verdict)
    return result


def examine(
    row: Mapping[str, Any],
    factual: pd.DataFrame,
    space: Space,
    classifier: Classifier,
    target: Target,
    objective: Objective | None,
    imposed: Sequence[Equation] = (),
) -> dict[str, Any]:
    """The verdict on one answer that has a point, as ``verdicts`` gives it.

    Parameters
    ----------
    row
        A stored row, as ``harness.answers.answer_row`` makes it: its ``row``, claimed ``objective``, and ``late``.
    factual
        One decoded row.
    imposed
        The structural equations that the method says it keeps to.
    """
    origin, values = factual.iloc[0].to_dict(), row["row"]
    incoherent = [f.name for f in space.features if not exists(f, values.get(f.name))]
    verdict: dict[str, Any] = {"incoherent": incoherent, "violations": [], "limits": []}
    verdict |= {"valid": False, "objective": None}
    if not incoherent:
        answer = space.frame([values])
        verdict["violations"] = _forbidden(space, origin, values)
        verdict["valid"] = bool(target.holds(classifier, answer)[0])
        if objective is not None:
            verdict["objective"] = float(objective.evaluate(space, factual, answer)[0])
            verdict["limits"] = objective.exceeded(space, factual, answer)[0]
        off = [abs(equation.residual(space, factual, answer)[0]) for equation in imposed]
        verdict["limits"] += ["causality"] if max(off, default=0.0) > WITHIN else []
    return {**verdict, "verdict": _word(verdict, row)}


def _word(verdict: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    if verdict["incoherent"] or not verdict["valid"]:
        return "invalid"
    if verdict["violations"]:
        return "not actionable"
    if verdict["limits"]:
        return "beyond its limits"
    claimed, actual = row["objective"], verdict["objective"]
    if claimed is not None and actual is not None and actual > claimed + CLAIM * max(1.0, abs(claimed)):
        return "worse than claimed"
    return "late" if row.get("late") else "valid"


def exists(feature: Feature, value: Any) -> bool:
    """Whether a value is one that the feature can have at all."""
    if not feature.numeric:
        return value in feature.categories
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return feature.kind is Kind.CONTINUOUS or float(value).is_integer()


def _forbidden(space: Space, origin: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    return [f.name for f in space.features if not permitted(f, origin[f.name], row[f.name])]


def permitted(feature: Feature, old: Any, new: Any) -> bool:
    """Whether a feature may go from one value to another: actionability, bounds, special codes."""
    if new == old:
        return True
    kind = feature.actionability
    if kind is Actionability.IMMUTABLE:
        return False
    if feature.numeric:
        rounding = ROUNDING * feature.range
        low, high = feature.bounds
        beyond_low, beyond_high = new < low - rounding, new > high + rounding
        nearer = old not in feature.special and (old <= new < low if beyond_low else high < new <= old)
        if ((beyond_low or beyond_high) and not nearer) or new in feature.special:
            return False
        rise = new - old
        return not ((kind is Actionability.INCREASE and rise < 0) or (kind is Actionability.DECREASE and rise > 0))
    if kind is Actionability.FREE:
        return True
    ladder = list(feature.order) if kind is Actionability.CONDITIONAL and feature.order else list(feature.categories)
    if old not in ladder or new not in ladder:
        return False
    rise = ladder.index(new) - ladder.index(old)
    return rise < 0 if kind is Actionability.DECREASE else rise > 0


def judge(cell: Cell) -> list[dict[str, Any]]:
    """Judge a cell and store what was found."""
    found = verdicts(cell)
    cell.put_verdicts(found)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Check every cell under the folders given; the exit code is 1 where a counterfactual does not hold, 2 where a
    cell cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m harness.check", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="results folders, such as results/compas")
    parser.add_argument("--trust", action="store_true", help="read models from pickles, which runs their makers' code")
    options = parser.parse_args(arguments)
    faults = total = unread = 0
    for folder in options.folders:
        try:
            found = cells(folder, options.trust)
        except HarnessError as fault:
            print(fault, file=sys.stderr)
            return 2
        for cell in found:
            try:
                words = Counter(verdict["verdict"] for verdict in judge(cell))
            except HarnessError as fault:
                unread += 1
                print(fault, file=sys.stderr)
                continue
            present = sum(words.values()) - words["none"]
            total += present
            faults += sum(words[fault] for fault in FAULTS)
            told = ", ".join(f"{count} {word}" for word, count in sorted(words.items()) if word != "none")
            print(f"{cell.label}: {present} counterfactuals: {told or 'none'}")
    print(f"{total} stored counterfactuals checked, {faults} of them do not hold")
    if unread:
        print(f"{unread} cells could not be read", file=sys.stderr)
        return 2
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
