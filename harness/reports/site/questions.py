"""Every answer of a study: by task and question for the page, and as one table to download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from harness.core.gaps import same
from harness.core.space import Space
from harness.core.wording import changes, target_text
from harness.evaluation import scoring
from harness.evaluation.export import escape
from harness.evaluation.study import Entry, Study
from harness.store.run import StoredRun

COLUMNS = (
    "task", "method", "seed", "factual", "ce", "status", "verdict", "objective", "bound", "seconds", "region",
    "changes",
)  # fmt: skip


class Asked(NamedTuple):
    """A run that answers, and what it was asked."""

    entry: Entry
    run: StoredRun
    seed: int
    space: Space
    factuals: Mapping[Any, Mapping[str, Any]]
    targets: Mapping[Any, str]
    verdicts: Mapping[tuple[Any, int], Mapping[str, Any]]

    @classmethod
    def of(cls, entry: Entry) -> Iterator[Asked]:
        """The runs of an entry, one a seed."""
        for run, meta in zip(entry.runs, entry.metas, strict=True):
            frame, targets = run.factuals()
            rows = dict(zip(frame.index, frame.to_dict("records"), strict=True))
            words = {index: target_text(target) for index, target in targets.items()}
            verdicts = {(verdict["factual"], verdict["ce"]): verdict for verdict in run.verdicts()}
            yield cls(entry, run, meta["seed"], run.space, rows, words, verdicts)


def questions(study: Study, task: str) -> dict[str, Any]:
    """All answers to the questions of a task, as JSON data; methods are given by their places in the study."""
    found: dict[Any, dict[str, Any]] = {}
    names: list[str] = []
    for asked in (asked for entry in study.of_task(task) for asked in Asked.of(entry)):
        names = names or list(asked.space.names)
        for row in asked.run.rows():
            factual = row["factual"]
            if factual not in found:
                origin = asked.factuals[factual]
                values = {name: asked.space[name].text(origin[name]) for name in names}
                found[factual] = {"wanted": asked.targets[factual], "values": values, "answers": []}
            found[factual]["answers"].append(_answer(asked, row, study.methods.index(asked.entry.method)))
    return {"features": names, "questions": [{"id": str(index), **question} for index, question in found.items()]}


def _answer(asked: Asked, row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """What came back for one counterfactual that was asked for, in words."""
    verdict = asked.verdicts.get((row["factual"], row["ce"]), {})
    origin, point = asked.factuals[row["factual"]], row["row"]
    told = {"method": place, "ce": row["ce"], "status": row["status"], "verdict": verdict.get("verdict", "none")}
    told |= {"seed": asked.seed} if asked.entry.seeds > 1 else {}
    if point is None:
        return told | {"why": scoring.reason(row)}
    moved = [f for f in asked.space.features if not same(point[f.name], origin[f.name])]
    told["changed"] = {feature.name: feature.text(point[feature.name]) for feature in moved}
    if row["region"]:
        known = [feature for feature in asked.space.features if feature.name in row["region"]]
        texts = {feature.name: feature.span(*row["region"][feature.name]) for feature in known}
        told["region"] = {name: text for name, text in texts.items() if text}
        told["holds"] = verdict.get("region", "")
    return told


def answers(study: Study) -> pd.DataFrame:
    """One row an answer of a study: ``COLUMNS``; texts so that no spreadsheet runs them as a formula."""
    rows = []
    for asked in (asked for entry in study.entries if entry.refusal is None for asked in Asked.of(entry)):
        features = asked.space.features
        for row in asked.run.rows():
            verdict = asked.verdicts.get((row["factual"], row["ce"]), {})
            moved = "" if row["row"] is None else changes(features, asked.factuals[row["factual"]], row["row"])
            own = {"task": asked.entry.task, "method": asked.entry.method, "seed": asked.seed, "changes": moved}
            judged = {"verdict": verdict.get("verdict", "none"), "region": verdict.get("region")}
            rows.append({**row, **own, **judged})
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.map(lambda value: escape(value) if isinstance(value, str) else value)
