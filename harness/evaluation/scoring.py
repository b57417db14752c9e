"""Metrics of stored answers, one row a question: after the checker has spoken, with no failure averaged away."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from harness.core.asked import Asked
from harness.core.errors import HarnessError
from harness.core.explanation import Reason, Status, gap
from harness.core.metric import Metric
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Space
from harness.core.tolerances import WHOLE_BOUND
from harness.core.wording import SATISFIED
from harness.evaluation.checker import ACCEPTED
from harness.store.run import StoredRun

GROUP = (
    "group", "size", "settled", "covered", "uncoverable", "left", "points", "bound", "gap", "optimal", "changed",
    "total_change", "total_change_bound", "least_change", "seconds", "fit_seconds", "late",
)  # fmt: skip
GROUPED = (  # in the scores of factuals
    "group/points", "group/bound", "group/gap", "group/changed", "group/total_change", "group/total_change_bound",
    "group/seconds",
)  # fmt: skip
COUNTS = (
    "requested", "returned", "valid", "accepted", "coverage", "filled", "optimal", "gap", "seconds", "cpu_seconds",
    "model_seconds", "peak_mib", "fit_seconds", "late", "impossible",
)  # fmt: skip
SOUND = (ACCEPTED, "late")  # verdicts on counterfactuals that are as claimed, whenever they came
NEAREST = "nearest/"  # before the name of a metric: of the nearest accepted counterfactual alone
LEAST_TIMED = 0.2  # seconds: less tells nothing of the share of a processor
GOWER = Objective((Term("gower"),), costed=False)


def score(
    run: StoredRun, problems: Mapping[Any, Problem], metrics: Sequence[Metric], population: str = "accepted"
) -> pd.DataFrame:
    """One row a question: what was asked and came back, and each metric (NaN where it is undefined).

    ``coverage``: 1 where a counterfactual was accepted, else 0; ``filled``: accepted ones per one asked for;
    ``valid``: returned ones of which the model says what was wanted; ``seconds``: to the last answer, or, where none
    was accepted, the limit; ``model_seconds``: of those, on what a method's own process asked about the model;
    ``peak_mib``: the most memory of the worker, where it was noted; ``impossible``: 1 where the run proves that the
    question's own constraints leave no counterfactual. ``nearest/`` before a metric: of the nearest accepted
    counterfactual alone (Gower's distance). A factual that has what is wanted is no question, and left out.

    Parameters
    ----------
    problems
        The problem of each factual, by id.
    population
        Which answers the metrics see: ``accepted``; or, as some papers average them, ``returned`` (all) or ``valid``
        (by the model, permitted or not). Metrics of what comes back (``over="returned"``) see all that were returned.

    Raises
    ------
    MetricError
        For a metric that fails, after all others are computed.
    """
    factuals, _ = run.factuals()
    verdicts = {(v["factual"], v["ce"]): v for v in run.verdicts()}
    by_factual: dict[Any, list[dict[str, Any]]] = {}
    for row in run.rows():
        by_factual.setdefault(row["factual"], []).append(row)
    groups, meta, objective = _groups(run), run.meta, run.objective
    table = {}
    asked: dict[int, list[_Judged]] = {}  # by problem, which many questions share
    for identity, rows in by_factual.items():
        if all(map(left_out, rows)):
            continue
        judged = [(row, verdicts[identity, row["ce"]]) for row in rows]
        counts = _counts(judged, limit_of(meta), objective)
        table[identity] = {"factual": identity, **counts, **groups.get(identity, {})}
        asked.setdefault(id(problems[identity]), []).append(_Judged(factuals.loc[[identity]], judged))
    measure = _Measures(metrics, population, str(meta["dataset"]))
    for questions in asked.values():
        problem = problems[questions[0].factual.index[0]]
        for question, line in zip(questions, measure.of(questions, problem), strict=True):
            table[question.factual.index[0]] |= line
    columns = columns_of(metrics, grouped=bool(groups))
    scores = pd.DataFrame(table.values(), columns=["factual", *columns]).set_index("factual")
    measure.raise_faults(scores)
    return scores


def columns_of(metrics: Iterable[Metric], *, grouped: bool) -> list[str]:
    """What ``score`` has of a question. ``grouped``: whether whole groups are asked."""
    names = {metric.name: metric.over != "returned" for metric in metrics}
    nearest = [NEAREST + name for name, alone in names.items() if alone]
    return [*COUNTS, *(GROUPED if grouped else ()), *names, *nearest]


def stored_problems(run: StoredRun) -> dict[Any, Problem]:
    """The problem of each factual, one for all of one target, as the run's folder has it: without training rows."""
    frame, targets = run.factuals()
    asked = (run.space, run.classifier, frame.iloc[:0], np.zeros(0, dtype=object))
    problems = {target: Problem(*asked, target) for target in set(targets.values())}
    return {index: problems[target] for index, target in targets.items()}


class MetricError(HarnessError):
    """Metrics (``names``) failed; ``scores`` has all others."""

    def __init__(self, message: str, names: Sequence[str], scores: pd.DataFrame) -> None:
        super().__init__(message)
        self.names, self.scores = tuple(names), scores


@dataclass(frozen=True)
class _Judged:
    """A question: its factual, a one-row frame, and the stored rows of its answers, each with its verdict."""

    factual: pd.DataFrame
    rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]

    def answers(self, kept: Callable[[dict[str, Any]], bool] = lambda verdict: True) -> list[dict[str, Any]]:
        """What came back, of answers whose verdict is ``kept``."""
        return [row["row"] for row, verdict in self.rows if row["row"] is not None and kept(verdict)]

    def nearest(self, space: Space) -> list[dict[str, Any]]:
        """The nearest accepted answer, if there is one."""
        accepted = self.answers(_accepted)
        if len(accepted) > 1:
            return [accepted[int(np.argmin(GOWER.evaluate(space, self.factual, space.frame(accepted))))]]
        return accepted


def _coherent(verdict: Mapping[str, Any]) -> bool:
    return not verdict["incoherent"]


def _accepted(verdict: Mapping[str, Any]) -> bool:
    return verdict["verdict"] == ACCEPTED


KEPT = {
    "accepted": _accepted,
    "returned": _coherent,
    "valid": lambda verdict: verdict["valid"] and _coherent(verdict),  # permitted or not, in time or not
}


class _Measures:
    """The metrics of a run, and those of them that failed."""

    def __init__(self, metrics: Sequence[Metric], population: str, dataset: str) -> None:
        self.metrics, self.population, self.dataset = metrics, population, dataset
        self.faults: dict[str, str] = {}

    def of(self, questions: Sequence[_Judged], problem: Problem) -> list[dict[str, float]]:
        """Each metric of the answers to each question; the questions are of one problem."""
        space, factuals = problem.space, pd.concat([question.factual for question in questions])

        def together(found: list[list[dict[str, Any]]], frame: Callable[[list[Any]], pd.DataFrame]) -> Asked:
            return Asked(problem, factuals, frame(list(chain(*found))), np.array(list(map(len, found))))

        # Metrics of what comes back see every row as it came; all others need values that exist.
        stored = together(
            [question.answers() for question in questions],
            lambda rows: pd.DataFrame(rows, columns=space.index, dtype=object),
        )
        kept = KEPT[self.population]
        seen = together([question.answers(kept) for question in questions], space.frame)
        nearest = together([question.nearest(space) for question in questions], space.frame)
        known = {
            tuple(row["row"][name] for name in space.names): verdict["valid"]
            for question in questions
            for row, verdict in question.rows
            if row["row"] is not None and _coherent(verdict)
        }
        same = self.population == "accepted" and (seen.counts == nearest.counts).all()
        values = {}
        with problem.knowing(known):
            for metric in self.metrics:
                over_returned = metric.over == "returned"
                values[metric.name] = self._values(metric, stored if over_returned else seen)
                if not over_returned:
                    alone = values[metric.name] if same else self._values(metric, nearest)
                    values[NEAREST + metric.name] = alone
        return [{name: found[place] for name, found in values.items()} for place in range(len(questions))]

    def _values(self, metric: Metric, asked: Asked) -> np.ndarray:
        try:
            return metric.measure(asked)
        except Exception as fault:
            why = f"{type(fault).__name__}: {fault}"
            if isinstance(fault, KeyError):
                why = f"there is no column {fault}"
            elif isinstance(fault, HarnessError):
                why = str(fault).removeprefix(f"the metric {metric.name} ")  # is said before
            self.faults.setdefault(metric.name, why)
            return np.full(len(asked.counts), np.nan)

    def raise_faults(self, scores: pd.DataFrame) -> None:
        """Say which metrics failed, if any; their columns go."""
        if not self.faults:
            return
        names = [NEAREST + name for name in self.faults] + list(self.faults)
        texts = (f"{name} ({why})" for name, why in self.faults.items())
        message = f"{'; '.join(texts)} cannot be computed on {self.dataset}; all other metrics are."
        raise MetricError(message, list(self.faults), scores.drop(columns=names, errors="ignore"))


def stopped(run: StoredRun) -> set[str]:
    """The questions, as texts, of which an answer ended with the limit of time."""
    return {str(row["factual"]) for row in run.rows() if row["reason"] == Reason.TIME_LIMIT}


def limit_of(meta: Mapping[str, Any]) -> float:
    """Seconds that were allowed for a question, or for the group that it is in; NaN where they are not on record."""
    config = meta.get("config", {})
    return float(config.get("group_time_limit" if config.get("group") else "time_limit", math.nan))


def group_table(run: StoredRun) -> pd.DataFrame:
    """One row per group: ``size``; ``covered``, ``uncoverable`` and ``left``, of its factuals; ``points`` that serve
    somebody, their proven ``bound``, ``gap``, and whether they are ``optimal`` and hold, or (``settled``) so many or
    none are proven; the greatest number of features ``changed`` by a point; the ``total_change``, features that each
    factual changes, over all of them, its proven bound, and whether it is the ``least_change`` of as few points, and
    they hold; seconds of the group and of the fit, and whether it was ``late``."""
    points: dict[Any, set[Any]] = {}
    for row in run.rows():
        if row["row"] is not None:
            points.setdefault(row["group"], set()).add(row["point"])
    verdicts = {verdict["factual"]: verdict["verdict"] for verdict in run.verdicts()}
    table = []
    for line in run.groups():
        used, bound = len(points.get(line["group"], ())), line["bound"]
        covered = sum(verdicts.get(factual) in SOUND for factual in line["factuals"])
        lost = sum(verdicts.get(factual, "none") == "none" for factual in line["uncoverable"])
        holds = {verdicts.get(factual, "none") for factual in line["factuals"]} <= {ACCEPTED, "late", "none"}
        found, settled = used > 0, line["status"] in {Status.OPTIMAL, Status.INFEASIBLE}
        table.append(
            {
                "group": line["group"],
                "size": len(line["factuals"]),
                "settled": float(settled and covered + lost == len(line["factuals"])),
                "covered": covered,
                "uncoverable": lost,
                "left": len(line["factuals"]) - covered - lost,
                "points": used if found or line["status"] == Status.OPTIMAL else np.nan,
                "bound": np.nan if bound is None else bound,
                "gap": np.nan if bound is None or not found else max(used - math.ceil(bound - WHOLE_BOUND), 0),
                "optimal": float(line["status"] == Status.OPTIMAL and covered + lost == len(line["factuals"])),
                "changed": max(map(len, line["changed"]), default=0),
                **_total_change(line, holds),
                **{name: line[name] for name in ("seconds", "fit_seconds", "late")},
            }
        )
    return pd.DataFrame(table, columns=GROUP).set_index("group")


def _total_change(line: Mapping[str, Any], holds: bool) -> dict[str, float]:
    """What a group's line says of the total change; NaN where the method, or an earlier version, does not count it.

    ``holds``: whether the checker finds nothing wrong with the group.
    """
    change, bound = (line.get(name) for name in ("total_change", "total_change_bound"))
    change, bound = (math.nan if value is None else float(value) for value in (change, bound))
    return {
        "total_change": change,
        "total_change_bound": bound,
        "least_change": float(holds and bound >= change - WHOLE_BOUND),
    }


def _groups(run: StoredRun) -> dict[Any, dict[str, float]]:
    """By factual, the numbers of its group."""
    lines = run.groups()
    table = group_table(run) if lines else pd.DataFrame()
    return {
        factual: {name: table.loc[line["group"], name.partition("/")[2]] for name in GROUPED}
        for line in lines
        for factual in line["factuals"]
    }


def _counts(
    judged: Sequence[tuple[dict[str, Any], dict[str, Any]]], limit: float, objective: Objective | None
) -> dict[str, Any]:
    rows = [row for row, _ in judged]
    accepted = sum(verdict["verdict"] == ACCEPTED for _, verdict in judged)
    proven = sum(row["status"] == Status.OPTIMAL and v["verdict"] in SOUND for row, v in judged)
    spent = float(rows[0]["seconds"])
    gaps = [far for row in rows if (far := gap(row["objective"], row["bound"])) is not None]
    cpu = rows[0].get("cpu_seconds")
    return {
        "requested": len(rows),
        "returned": sum(row["row"] is not None for row in rows),
        "valid": sum(verdict.get("valid", False) for _, verdict in judged),
        "accepted": accepted,
        "coverage": float(accepted > 0),
        "filled": accepted / len(rows),
        "optimal": proven / len(rows),
        "gap": float(np.mean(gaps)) if gaps else math.nan,
        "seconds": spent if accepted else float(np.nanmax([spent, limit])),
        "cpu_seconds": math.nan if cpu is None else float(cpu),
        "model_seconds": float(rows[0].get("model_seconds", math.nan)),
        "peak_mib": float(rows[0].get("peak_mib", math.nan)),
        "fit_seconds": float(rows[0]["fit_seconds"]),
        "late": float(any(row["late"] for row in rows)),
        "impossible": float(rows[0]["status"] == Status.INFEASIBLE and owns_nothing(objective)),
    }


def owns_nothing(objective: Objective | None) -> bool:
    """Whether a method keeps to the question's constraints alone, so that a proof of its is one about the question."""
    return objective is not None and not objective.limits and not objective.causal and not objective.domain


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard error (``ddof=1``), and the number of questions behind them, per column of ``score``."""
    counted = scores.notna().sum()
    error = scores.std(ddof=1) / np.sqrt(counted.where(counted > 1))
    return pd.DataFrame({"mean": scores.mean(), "se": error, "n": counted, "of": len(scores)})


def left_out(row: Mapping[str, Any]) -> bool:
    """Whether a stored row is of a person who was not asked about, as the model already says what is wanted."""
    return row["status"] == Status.UNSUPPORTED and row["detail"] == SATISFIED


def refusal(run: StoredRun) -> str | None:
    """Why every factual of a run was refused; None where one was not. That one has what is wanted is no reason."""
    rows = run.rows()
    if not rows or any(row["status"] != Status.UNSUPPORTED for row in rows):
        return None
    return next((str(row["detail"]) for row in rows if row["detail"] != SATISFIED), SATISFIED)


def outcome(run: StoredRun, without: Collection[Any] = ()) -> dict[str, Any]:
    """How a run went, but for some questions, which are counted apart, and for people left out as they have what is
    wanted, where these are not all.

    ``status``: rows by status; ``verdict``: answers by the checker's word; ``details``: distinct reasons of refusal and
    failure; ``reasons``: why questions have no first answer, and of how many each is said; ``missing``: of all answers
    without a counterfactual, how many ended with which status and why, and ``ended``, by the reason's word alone;
    ``timed_beside``: whether anything was timed
    beside other factuals or runs, which makes its seconds longer; ``share``: ``processor_share``.
    """
    apart = set(map(str, without))
    rows = [row for row in run.rows() if str(row["factual"]) not in apart]
    rows = [row for row in rows if not left_out(row)] or rows
    verdicts = [verdict for verdict in run.verdicts() if str(verdict["factual"]) not in apart]
    bad = {Status.UNSUPPORTED, Status.FAILED}
    return {
        "status": dict(Counter(row["status"] for row in rows)),
        "verdict": dict(Counter(verdict["verdict"] for verdict in verdicts)),
        "details": list(dict.fromkeys(row["detail"] for row in rows if row["status"] in bad)),
        "reasons": dict(Counter(reason(row) for row in rows if row["row"] is None and row["ce"] == 1).most_common()),
        "missing": dict(Counter(f"{row['status']}: {reason(row)}" for row in rows if row["row"] is None)),
        "ended": dict(Counter(row["reason"] for row in rows if row["row"] is None)),
        "timed_beside": any(row.get("jobs", 1) * row.get("beside", 1) > 1 for row in rows),
        "share": processor_share(rows),
    }


def processor_share(rows: Iterable[Mapping[str, Any]]) -> float:
    """Processor seconds by seconds, over the questions of a run where both are known (they are not of one that was
    stopped); NaN where these took less than ``LEAST_TIMED`` together.

    Far below 1, something else took the processor, or the method waited.
    """
    known = [row for row in rows if row["ce"] == 1 and row.get("cpu_seconds") is not None]
    seconds = sum(row["seconds"] for row in known)
    return float(sum(row["cpu_seconds"] for row in known) / seconds) if seconds >= LEAST_TIMED else math.nan


def reason(row: Mapping[str, Any]) -> str:
    """Why a stored row has no counterfactual, in one line."""
    lines = str(row["detail"]).strip().splitlines()
    said = lines[-1].rstrip(".") if lines else ""
    if row["reason"] == Reason.FINISHED:
        return said or "finished, with no reason given"
    return ", ".join(filter(None, (str(row["reason"]), said)))
