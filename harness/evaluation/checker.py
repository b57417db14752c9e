"""An independent verdict on stored answers, from the stored rows and estimator alone. Shares no code with methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.core.gaps import missing, same
from harness.core.objective import Objective
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Target
from harness.core.tolerances import CLAIM, COORDINATE_TIE, DECODING, LIMIT_MET
from harness.core.wording import BROKEN
from harness.evaluation.covers import differing
from harness.evaluation.weights import withstands
from harness.store.run import StoredRun

if TYPE_CHECKING:
    import pandas as pd

    from harness.core.classifier import Classifier
    from harness.core.equation import Equation
    from harness.core.problem import Problem


ACCEPTED = "accepted"
NOT_PERMITTED = "not permitted"
WORSE = "worse than claimed"
FAULTS = ("invalid", "incoherent", "beyond its limits", WORSE)


def verdicts(run: StoredRun) -> list[dict[str, Any]]:
    """Judge every stored row from the row, the question and the stored estimator alone.

    Each verdict names ``factual`` and ``ce``; says ``valid`` (the estimator's own answer on the decoded row),
    ``incoherent`` (features) and ``violations`` (features, and relations between them), the recomputed ``objective``,
    and as ``verdict``: ``accepted``, ``none`` where there is no counterfactual, or its first fault: ``invalid`` (target
    missed), ``incoherent`` (a value that does not exist, of which the model says nothing), ``not permitted`` (by the
    question's constraints), ``beyond its limits`` (those that the method stated), ``worse than claimed`` (or better
    than its bound), ``late``, ``repeated`` (as one accepted before it of the same question). ``region``, where the
    answer has one, is as ``harness.evaluation.regions.verdict`` has it.
    """
    space, classifier, objective = run.space, run.classifier, run.objective
    frame, targets = run.factuals()
    imposed = run.equations if objective is not None and objective.causal else ()
    wrong = group_faults(run)
    result = []
    rows = run.rows()
    valid, given = valid_places(rows, space, classifier, targets), set[tuple[Any, ...]]()
    for place, row in enumerate(rows):
        identity = row["factual"]
        verdict: dict[str, Any] = {"factual": identity, "ce": row["ce"], "verdict": "none"}
        if row["row"] is not None:
            question = frame.loc[[identity]], space, classifier, targets[identity], objective, imposed
            verdict |= examine(row, *question, True if place in valid else None)
        if verdict["verdict"] == ACCEPTED:
            values = (row["row"][name] for name in space.names)
            point = identity, *("" if missing(value) else value for value in values)
            verdict["verdict"] = "repeated" if point in given else ACCEPTED
            given.add(point)
        if identity in wrong and verdict["verdict"] in {"none", ACCEPTED, "late"}:
            verdict["verdict"] = wrong[identity]
        result.append(verdict)
    return result


def valid_places(
    rows: Sequence[Mapping[str, Any]], space: Space, classifier: Classifier, targets: Mapping[Any, Target]
) -> set[int]:
    """The places of rows that the estimator accepts among all others of their target; the rest is asked one by one.

    Libraries take milliseconds for a row, and hardly more for a thousand.
    """
    asked: dict[Target, list[int]] = {}
    for place, row in enumerate(rows):
        if row["row"] is not None and coherent(space, row["row"]):
            asked.setdefault(targets[row["factual"]], []).append(place)
    found = set[int]()
    for target, places in asked.items():
        holds = target.holds(classifier, space.frame([rows[place]["row"] for place in places]))
        found.update(place for place, held in zip(places, holds, strict=True) if held)
    return found


def group_faults(run: StoredRun) -> dict[Any, str]:
    """By factual, what is wrong with the group that it is in, read off the stored rows: ``line_faults`` of all."""
    lines = run.groups()
    if not lines:
        return {}
    frame, targets = run.factuals()
    rows = {row["factual"]: row for row in run.rows()}
    wrong: dict[Any, str] = {}
    for line in lines:
        wrong |= line_faults(line, rows, frame, run, targets[line["factuals"][0]], run.objective)
        members = [factual for factual in line["factuals"] if factual in rows]
        if run.done and len(members) < len(line["factuals"]):
            wrong |= dict.fromkeys(members, WORSE)
    return wrong


def line_faults(
    line: Mapping[str, Any],
    rows: Mapping[Any, Mapping[str, Any]],
    factuals: pd.DataFrame,
    asked: StoredRun | Problem,
    target: Target,
    objective: Objective | None,
) -> dict[Any, str]:
    """By factual, what is wrong with its group.

    ``beyond its limits``: the factuals of its point change more features together than the method claims. ``worse than
    claimed``: the group's proof, bounds, total change or changed features do not agree with the rows, two of its points
    are one, or a factual called uncoverable could be served by a point that is there.

    Parameters
    ----------
    line, rows
        As stored: of the group, and by factual of its answers.
    asked
        What has the space and the model.
    """
    space, limits = asked.space, () if objective is None else objective.limits
    most = min((limit.most for limit in limits if limit.term.name == "l0"), default=math.inf)
    origins = dict(zip(factuals.index, factuals.to_dict("records"), strict=True))
    wrong: dict[Any, str] = {}
    members = [rows[factual] for factual in line["factuals"] if factual in rows]
    if _unsound(line, members) or _miscounted(line, members, origins):
        wrong |= {row["factual"]: WORSE for row in members}
    before: list[tuple[Mapping[str, Any], set[str]]] = []
    for point, values in enumerate(line["points"]):
        sharing = [row for row in members if row["row"] is not None and row["point"] == point]
        changed = set[str]().union(*(differing(origins[row["factual"]], row["row"]) for row in sharing))
        if len(changed) > most:
            wrong |= {row["factual"]: "beyond its limits" for row in sharing}
        elif not changed <= set(line["changed"][point]) or any(row["row"] != values for row in sharing):
            wrong |= {row["factual"]: WORSE for row in sharing}
        twice = any(values == other and len(changed | its) <= most for other, its in before)
        if twice and line["status"] == "OPTIMAL":
            wrong |= {row["factual"]: WORSE for row in members}
        before.append((values, changed))
    real = [point for point in line["points"] if coherent(space, point)]
    holds = target.holds(asked.classifier, space.frame(real)) if real else ()
    for factual in line["uncoverable"]:
        for point, valid in zip(real, holds, strict=True):
            near = valid and len(differing(origins[factual], point)) <= most
            if near and not _forbidden(space, origins[factual], point):
                wrong[factual] = WORSE
    return wrong


def _unsound(line: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a group's bound lies above its number of points, they are not those that serve, or no proof follows."""
    served = {row["point"] for row in members if row["row"] is not None}
    bound = line["bound"]
    if (bound is not None and bound > len(served) + CLAIM) or not served <= set(range(len(line["points"]))):
        return True
    if line["status"] != "OPTIMAL":
        return bool(served) and line["status"] == "INFEASIBLE"
    forgotten = {row["factual"] for row in members if row["row"] is None} - set(line["uncoverable"])
    unproven = bound is None or math.ceil(bound - CLAIM) < len(served)
    return bool(forgotten) or unproven or served != set(range(len(line["points"])))


def _miscounted(
    line: Mapping[str, Any], members: Sequence[Mapping[str, Any]], origins: Mapping[Any, Mapping[str, Any]]
) -> bool:
    """Whether factuals change more or fewer features in total than the group's line says, or fewer than its bound."""
    claimed, bound = line.get("total_change"), line.get("total_change_bound")
    served = [row for row in members if row["row"] is not None]
    total = sum(len(differing(origins[row["factual"]], row["row"])) for row in served)
    return (claimed is not None and abs(total - claimed) > CLAIM) or (bound is not None and bound > total + CLAIM)


def examine(
    row: Mapping[str, Any],
    factual: pd.DataFrame,
    space: Space,
    classifier: Classifier,
    target: Target,
    objective: Objective | None,
    imposed: Sequence[Equation] = (),
    valid: bool | None = None,
) -> dict[str, Any]:
    """The verdict on one answer that has a point, as ``verdicts`` gives it.

    Parameters
    ----------
    row
        A stored row, as ``harness.store.rows.answer_row`` makes it: its ``row``, claimed ``objective``, and ``late``.
    factual
        One decoded row.
    imposed
        The structural equations that the method says it keeps to.
    valid
        What the estimator says of the answer, where it was asked already.
    """
    origin, values = factual.iloc[0].to_dict(), row["row"]
    incoherent = [f.name for f in space.features if f.name not in values or not exists(f, values[f.name])]
    verdict: dict[str, Any] = {"incoherent": incoherent, "violations": [], "limits": []}
    verdict |= {"valid": False, "objective": None}
    if not incoherent:
        answer = space.frame([values])
        verdict["violations"] = _forbidden(space, origin, values)
        verdict["valid"] = bool(target.holds(classifier, answer).item()) if valid is None else valid
        if objective is not None:
            verdict["objective"] = float(objective.evaluate(space, factual, answer).item()) if objective.terms else None
            verdict["limits"] = objective.exceeded(space, factual, answer)[0]
        off = (abs(equation.residual(space, factual, answer).item()) for equation in imposed)
        verdict["limits"] += [] if all(each <= LIMIT_MET for each in off) else ["causality"]  # of a gap it is NaN
        if objective is not None and (delta := objective.domain.get("delta")) and "delta" not in verdict["limits"]:
            verdict["limits"] += [] if withstands(space, classifier, target, values, delta) else ["delta"]
        domain = {} if objective is None else objective.domain
        claimed = domain if {"rho", "norm"} <= {*domain} else {}
        if verdict["valid"] and (row.get("region") or claimed):
            from harness.evaluation import regions  # slow: scipy.optimize, and few methods give regions

            verdict["region"] = regions.verdict(space, classifier, target, values, row.get("region") or {}, claimed)
            verdict["limits"] += ["region"] if verdict["region"] == BROKEN else []
    return {**verdict, "verdict": _word(verdict, row, _slack(verdict["objective"], objective, space, factual, values))}


def _slack(
    value: float | None, objective: Objective | None, space: Space, factual: pd.DataFrame, values: Mapping[str, Any]
) -> float:
    """How far an objective may be above its claim: relative to distances, not to what a number of changes weighs."""
    if value is not None and objective is not None:
        value -= float(objective.counts().evaluate(space, factual, space.frame([values])).item())
    return CLAIM * max(1.0, abs(value or 0.0))


def coherent(space: Space, values: Mapping[str, Any]) -> bool:
    """Whether every value of a row is one that its feature can have."""
    return all(feature.name in values and exists(feature, values[feature.name]) for feature in space.features)


def _word(verdict: Mapping[str, Any], row: Mapping[str, Any], slack: float) -> str:
    if verdict["incoherent"]:
        return "incoherent"
    if not verdict["valid"]:
        return "invalid"
    if verdict["violations"]:
        return NOT_PERMITTED
    if verdict["limits"]:
        return "beyond its limits"
    claimed, actual = row["objective"], verdict["objective"]
    known = claimed is not None and actual is not None and not math.isnan(claimed)
    if known and not actual <= claimed + slack:
        return WORSE
    if actual is not None and row.get("bound") is not None and row["bound"] > actual + slack:
        return WORSE
    return "late" if row.get("late") else ACCEPTED


def exists(feature: Feature, value: Any) -> bool:
    """Whether a value is one that the feature can have at all."""
    if missing(value):
        return feature.missing
    if not feature.numeric:
        return value in feature.categories
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return feature.kind is Kind.CONTINUOUS or float(value).is_integer()


def _forbidden(space: Space, origin: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    found = [f.name for f in space.features if not permitted(f, origin[f.name], row[f.name])]
    return found + (space.breaches(space.frame([origin]), space.frame([row]))[0] if space.relations else [])


def within_bounds(feature: Feature, number: Any) -> bool:
    """Whether a number lies within the bounds of its feature, but for what decoding rounds."""
    rounding = DECODING * feature.range
    return bool(feature.bounds[0] - rounding <= number <= feature.bounds[1] + rounding)


def permitted(feature: Feature, old: Any, new: Any) -> bool:
    """Whether a feature may go from one value to another: actionability, bounds, special codes, gaps."""
    if same(new, old):
        return True
    known = feature.kind is Kind.CONTINUOUS and not (missing(new) or missing(old))
    if known and abs(new - old) <= COORDINATE_TIE * feature.range:  # as in distances and the count of changes
        return True
    kind = feature.actionability
    if kind is Actionability.IMMUTABLE:
        return False
    if missing(new):
        return feature.may_be_missing
    if missing(old):  # a gap is filled by anything that anybody may have
        return within_bounds(feature, new) and new not in feature.special
    if feature.numeric:
        low, high = feature.bounds
        nearer = old not in feature.special and (old <= new < low or high < new <= old)
        if not (within_bounds(feature, new) or nearer) or new in feature.special:
            return False
        rise = new - old
        return not ((kind is Actionability.INCREASE and rise < 0) or (kind is Actionability.DECREASE and rise > 0))
    if new in feature.special:
        return False
    if kind is Actionability.FREE:
        return True
    ladder = list(feature.order) if kind is Actionability.CONDITIONAL and feature.order else list(feature.categories)
    if old not in ladder or new not in ladder:
        return False
    before, after = ladder.index(old), ladder.index(new)
    return after < before if kind is Actionability.DECREASE else after > before


def judge(run: StoredRun) -> list[dict[str, Any]]:
    """Judge a run and store what was found; not in the copy of an archive, which stays as it is."""
    found = verdicts(run)
    if not run.packed:
        run.put_verdicts(found)
    return found
