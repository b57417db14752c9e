"""Whether what methods prove of a question holds against every counterfactual that others found for it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.core.equation import Equation
from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.core.objective import Objective, tolerance
from harness.core.space import Space
from harness.core.tolerances import LIMIT_MET
from harness.core.wording import HOLDS
from harness.evaluation.covers import Cover, cheaper, differing
from harness.evaluation.scoring import owns_nothing, reason
from harness.store.plain import to_plain
from harness.store.run import StoredRun, model_of

HULL = "slack"  # the distance from one
NONE = "that there is no counterfactual"
FEW = 2  # points of one question that are held against a hull, by a program of seconds where it has 100,000 rows
AMOUNTS = ("rho", "delta")  # of what a point withstands; all else of it is its kind


class Point(NamedTuple):
    """A counterfactual."""

    whose: str
    row: Mapping[str, Any]  # decoded
    withstands: Mapping[str, Any] = MappingProxyType({})  # what it is known to, of ``Objective.domain``


@dataclass
class Found:
    """The counterfactuals of some runs that the model and the constraints of their questions take, by question."""

    points: dict[str, list[Point]] = field(default_factory=dict)
    covers: dict[frozenset[str], list[Cover]] = field(default_factory=dict)  # of groups, by their questions

    def add(self, run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> None:
        """Take in a run's; late and repeated ones contradict a proof as well as others do."""
        fine = {
            (v["factual"], v["ce"]): v for v in verdicts if v.get("valid") and not v["incoherent"] + v["violations"]
        }
        asked, rows = questions(run), [row for row in run.rows() if (row["factual"], row["ce"]) in fine]
        for row in rows:
            known = _withstands(run.objective, fine[row["factual"], row["ce"]])
            self.points.setdefault(asked[row["factual"]], []).append(Point(run.label, row["row"], known))
        origins = run.factuals()[0].to_dict("index") if (lines := run.groups()) else {}
        for line in lines:
            served = {
                asked[row["factual"]]: (json.dumps(row["row"]), differing(origins[row["factual"]], row["row"]))
                for row in rows
                if row["factual"] in line["factuals"]
            }
            people = frozenset(asked[factual] for factual in line["factuals"])
            self.covers.setdefault(people, []).append(Cover(run.label, served))

    def against(self, run: StoredRun, whole: bool = True) -> tuple[list[str], int]:
        """Sentences about proofs of a run that a point contradicts; and how many proofs there were points against.

        Looked at are lower bounds on the objective of a question's first answer, and proofs that it has none, of which
        each point is an instance that keeps to the method's own limits and equations. What it proves of points that
        withstand perturbations is held against those that are known to withstand as much. What a method proves of
        another domain of its own, or of a set of several answers at once is no statement about other methods' points;
        nor is, where people who have what is wanted were asked, what it proves of them: they are no answer to
        themselves. What it proves of a group is held against how others serve the same group.
        Not ``whole``: not proofs that a question has no counterfactual at all, which the tables of a study tell, nor
        those within hulls, each of which is a program of seconds.
        """
        claim, proven = run.objective, [(row, bound) for row in run.rows() if (bound := _bound(row)) is not None]
        if claim is None or (owns_nothing(claim) and not whole):
            proven = [(row, bound) for row, bound in proven if math.isinf(bound) == (claim is None)]
        objective = claim or Objective(())
        if not whole and HULL in {term.name for term in (*objective.terms, *(e.term for e in objective.limits))}:
            return [], 0
        if lines := run.groups():
            return self._against_groups(run, lines)
        if _of_sets(run.meta) or not proven:
            return [], 0
        (frame, _), asked, imposed = run.factuals(), questions(run), run.equations if objective.causal else ()
        said, held = [], 0
        for row, bound in proven:
            points = self.points.get(asked[row["factual"]], ())
            if not (points := [point for point in points if _as_strong(point.withstands, objective.domain)]):
                continue
            nearer = _nearer(objective, imposed, run.space, frame.loc[[row["factual"]]], points, bound)
            if nearer and _content(run, row["factual"]):  # asked only then, as it takes the model
                continue
            held += 1
            if nearer:
                whose, value = nearer
                least = f"that no objective is below {bound:.9g}, and {whose} reaches {value:.9g}"
                none = f"{NONE}, and {whose} has one"
                said.append(f"it proves of question {row['factual']} {least if math.isfinite(bound) else none}")
        return said, held

    def _against_groups(self, run: StoredRun, lines: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
        """As ``against``, of how few points serve groups, and of people of whom nothing does."""
        claim, asked, said, held = run.objective, questions(run), list[str](), 0
        if claim is None or claim.domain or claim.causal or any(limit.term.name != "l0" for limit in claim.limits):
            return [], 0  # of other counterfactuals than the question allows
        most = min((limit.most for limit in claim.limits), default=math.inf)
        (frame, _), nothing = run.factuals(), replace(claim, terms=())
        for line in lines:
            people = frozenset(asked[factual] for factual in line["factuals"])
            told = [cheaper(line, asked, most, cover) for cover in self.covers.get(people, ())]
            held += line["bound"] is not None and any(wrong is not None for wrong in told)
            said += [f"it proves of group {line['group']} {wrong[0]}" for wrong in told if wrong][:1]
            for factual in line["uncoverable"]:
                points = self.points.get(asked[factual], ())
                held += bool(points)
                if near := points and _nearer(nothing, (), run.space, frame.loc[[factual]], points, math.inf):
                    said.append(f"it proves of question {factual} {NONE} within its limits, and {near[0]} has one")
        return said, held


def questions(run: StoredRun) -> dict[Any, str]:
    """By factual, all that a proof is about: the person, what is wanted, the constraints and the model."""
    frame, targets = run.factuals()
    about = json.dumps([run.meta["space"], model_of(run)], sort_keys=True, default=str)
    people = zip(frame.index, frame.to_dict("records"), strict=True)
    return {factual: json.dumps([about, to_plain(row), to_plain(targets[factual])]) for factual, row in people}


def contradicted(
    judged: Sequence[tuple[StoredRun, Sequence[Mapping[str, Any]]]],
) -> tuple[list[str], int]:
    """Of some runs, each with its verdicts, a sentence for each proof that a counterfactual of any of them contradicts;
    and how many proofs there were counterfactuals to hold against."""
    found, said, held = Found(), list[str](), 0
    for run, verdicts in judged:
        found.add(run, verdicts)
    for run, _ in judged:
        sentences, looked = found.against(run)
        said += [f"{run.label}: {sentence}" for sentence in sentences]
        held += looked
    return said, held


def impossible(
    labels: Sequence[tuple[str, str, str]], runs: Sequence[StoredRun], tables: Sequence[pd.DataFrame]
) -> tuple[dict[tuple[str, str], dict[Any, str]], tuple[str, ...]]:
    """By task and constraints, the questions proven to have no counterfactual and why; and proofs that are refuted."""
    proven: dict[tuple[str, str], dict[Any, list[str]]] = {}
    whys: dict[tuple[str, str], dict[Any, str]] = {}
    refuted = []
    for (task, method, posed), run, table in zip(labels, runs, tables, strict=True):
        if not len(questions := table.index[table["impossible"] > 0]):
            continue
        said = {str(row["factual"]): reason(row) for row in reversed(run.rows())}  # of the first
        for question in questions:
            proven.setdefault((task, posed), {}).setdefault(question, []).append(method)
            whys.setdefault((task, posed), {}).setdefault(question, said[str(question)])
    for (task, _, posed), run, table in zip(labels, runs, tables, strict=True):
        for question in table.index[table["coverage"] > 0]:
            refuted += [
                f"{task}: {prover}: it proves of question {question} {NONE}, and {run.label} has one"
                for prover in proven.get((task, posed), {}).pop(question, ())
            ]
    kept = {key: {question: whys[key][question] for question in found} for key, found in proven.items() if found}
    return kept, tuple(refuted)


def _of_sets(meta: Mapping[str, Any]) -> bool:
    """Whether answers are proven together, as a scorecard's are, and differ so that the best may be in no set."""
    method = meta.get("config", {}).get("method") or {}
    ways, rewards = method.get("diversity"), method.get("objectives") or ()
    apart = isinstance(ways, list) and "values" in ways
    return meta["n_counterfactuals"] > 1 and (apart or any(name.startswith("diversity_") for name in rewards))


def _withstands(objective: Objective | None, verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of what a method claims that a counterfactual withstands, what the checker has proven of it: boxes and weights.

    Of a ball it proves the box within it alone.
    """
    claimed = {} if objective is None else objective.domain
    if "delta" in claimed:
        return {} if "delta" in verdict["limits"] else {"delta": claimed["delta"]}
    return claimed if claimed.get("norm") == "linf" and verdict.get("region") == HOLDS else {}


def _as_strong(known: Mapping[str, Any], claimed: Mapping[str, Any]) -> bool:
    """Whether what a point is known to withstand is of the kind that a proof is about, and as much; of all, nothing."""
    if not claimed or known.keys() != claimed.keys():
        return not claimed
    return all(known[name] >= claimed[name] if name in AMOUNTS else known[name] == claimed[name] for name in claimed)


def _content(run: StoredRun, factual: Any) -> bool:
    """Whether the model already says of a factual what is wanted, as far as it can be read."""
    try:
        return factual in satisfied(run)
    except HarnessError:  # a model that is read only by whom its maker is trusted
        return False


def satisfied(run: StoredRun) -> set[Any]:
    """Of whom the model already says what is wanted."""
    (frame, targets), classifier, found = run.factuals(), run.classifier, set[Any]()
    for target in set(targets.values()):
        people = frame.loc[[factual for factual in frame.index if targets[factual] == target]]
        found.update(people.index[target.holds(classifier, people)])
    return found


def _bound(row: Mapping[str, Any]) -> float | None:
    """What a row proves that no counterfactual is below; further ones are to differ, of which it proves less."""
    if row["ce"] != 1:
        return None
    if row["status"] == Status.INFEASIBLE:
        return math.inf
    return None if row["bound"] is None else float(row["bound"])


def _nearer(
    objective: Objective,
    imposed: Sequence[Equation],
    space: Space,
    factual: pd.DataFrame,
    points: Sequence[Point],
    bound: float,
) -> tuple[str, float] | None:
    """Whose point is below a bound, and at what, of those that a method's own limits and equations take: the least.

    None without any. Whether a point is in a hull, or how far from it, is a program of its own: asked that are only the
    few that lie least below the bound otherwise, of which the hull is likeliest to hold one.
    """
    rows = space.frame([point.row for point in points])
    limits = tuple(limit for limit in objective.limits if limit.term.name != HULL)
    quick = replace(objective, terms=tuple(term for term in objective.terms if term.name != HULL), limits=limits)
    below = _kept(quick, imposed, space, factual, rows, _below(quick, space, factual, rows, bound))
    if len(quick.terms) + len(limits) < len(objective.terms) + len(objective.limits):
        few = rows.iloc[below[-FEW:]]
        places = [below[-FEW:][place] for place in _below(objective, space, factual, few, bound)]
        below = _kept(objective, (), space, factual, rows, places)
    if not below:
        return None
    return points[below[0]].whose, float(objective.evaluate(space, factual, rows.iloc[below[:1]]).item())


def _below(objective: Objective, space: Space, factual: pd.DataFrame, rows: pd.DataFrame, bound: float) -> list[int]:
    """The places of rows whose objective is below a bound, the least first."""
    values = objective.evaluate(space, factual, rows)
    squared = any(term.name == "l2sq" for term in objective.terms)
    distances = values - objective.counts().evaluate(space, factual, rows)
    order = np.argsort(values, kind="stable")
    return [k for k in order.tolist() if values[k] < bound - tolerance(distances[k], squared)]


def _kept(
    objective: Objective,
    imposed: Sequence[Equation],
    space: Space,
    factual: pd.DataFrame,
    rows: pd.DataFrame,
    places: Sequence[int],
) -> list[int]:
    """Of some places of rows, those that keep to limits and equations."""
    if not places:
        return []  # a regressor takes no empty table
    some = rows.iloc[list(places)]
    fine = np.array([not names for names in objective.exceeded(space, factual, some)], dtype=bool)
    for equation in imposed:
        fine &= np.abs(equation.residual(space, factual, some)) <= LIMIT_MET
    return [place for place, kept in zip(places, fine, strict=True) if kept]
