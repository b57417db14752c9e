"""Every answer of a study: by task and question for the page, and as one table to download."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from harness.core.gaps import same
from harness.core.space import Space
from harness.core.wording import changes, target_text
from harness.evaluation import scoring
from harness.evaluation.export import escape
from harness.evaluation.study import Entry, Study

COLUMNS = (
    "task", "method", "seed", "factual", "ce", "status", "verdict", "objective", "bound", "seconds", "region",
    "changes",
)  # fmt: skip


class Asked(NamedTuple):
    """A run that answers, what it was asked, and what came back."""

    entry: Entry
    seed: int
    space: Space
    factuals: Mapping[Any, Mapping[str, Any]]
    targets: Mapping[Any, str]
    rows: Sequence[Mapping[str, Any]]
    verdicts: Mapping[tuple[Any, int], Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study) -> list[Asked]:
        """The runs of a study that refuse nothing, one a seed of an entry."""
        found, taken = [], (entry for entry in study.entries if entry.refusal is None)
        for entry, run, meta in ((e, *pair) for e in taken for pair in zip(e.runs, e.metas, strict=True)):
            frame, targets = run.factuals()
            factuals = dict(zip(frame.index, frame.to_dict("records"), strict=True))
            words = {index: target_text(target) for index, target in targets.items()}
            verdicts = {(verdict["factual"], verdict["ce"]): verdict for verdict in run.verdicts()}
            found.append(cls(entry, meta["seed"], run.space, factuals, words, run.rows(), verdicts))
        return found


def questions(methods: Sequence[str], found: Iterable[Asked]) -> dict[str, Any]:
    """All answers to the questions of a task, as JSON data; methods are given by their places."""
    posed: dict[Any, dict[str, Any]] = {}
    names: list[str] = []
    for asked in found:
        names = names or list(asked.space.names)
        for row in asked.rows:
            factual = row["factual"]
            if factual not in posed:
                origin = asked.factuals[factual]
                values = {name: asked.space[name].text(origin[name]) for name in names}
                posed[factual] = {"wanted": asked.targets[factual], "values": values, "answers": []}
            posed[factual]["answers"].append(_answer(asked, row, methods.index(asked.entry.method)))
    return {"features": names, "questions": [{"id": str(index), **question} for index, question in posed.items()]}


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


def answers(found: Iterable[Asked]) -> pd.DataFrame:
    """One row an answer: ``COLUMNS``; texts so that no spreadsheet runs them as a formula."""
    rows = []
    for asked in found:
        features = asked.space.features
        for row in asked.rows:
            verdict = asked.verdicts.get((row["factual"], row["ce"]), {})
            moved = "" if row["row"] is None else changes(features, asked.factuals[row["factual"]], row["row"])
            own = {"task": asked.entry.task, "method": asked.entry.method, "seed": asked.seed, "changes": moved}
            judged = {"verdict": verdict.get("verdict", "none"), "region": verdict.get("region")}
            rows.append({**row, **own, **judged})
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.map(lambda value: escape(value) if isinstance(value, str) else value)
