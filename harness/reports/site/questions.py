"""Every answer of a study: by task and question for the page, and as one table to download."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.gaps import same
from harness.core.notation import MOST, number
from harness.core.space import Space
from harness.core.target import Target
from harness.core.wording import changes, legible, rounded_row, target_text
from harness.evaluation import scoring
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.study import Entry, Study
from harness.reports import stored
from harness.store.run import StoredRun

COLUMNS = (
    "task", "method", "seed", "factual", "ce", "status", "verdict", "objective", "bound", "seconds", "region_checked",
    "region", "changes",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What a run was asked, and what came back; ``taken`` as ``stored.taken`` has it.

    ``model`` is None where the answers lack it, or it needs trust.
    """

    entry: Entry
    seed: int
    space: Space
    factuals: Mapping[Any, Mapping[str, Any]]
    targets: Mapping[Any, Target]
    rows: Sequence[Mapping[str, Any]]
    verdicts: Mapping[tuple[Any, int], Mapping[str, Any]]
    taken: Mapping[Any, int]
    model: Classifier | None

    @cached_property
    def told(self) -> dict[tuple[Any, int], dict[str, Any]]:
        """By factual and counterfactual, the row as a reader is told it; see ``legible``."""
        rows = {(row["factual"], row["ce"]): row["row"] for row in self.rows if row["row"] is not None}
        found = {place: rounded_row(self.space, self.factuals[place[0]], row) for place, row in rows.items()}
        if (model := self.model) is not None:
            fine = [place for place in rows if self.verdicts.get(place, {}).get("verdict") == ACCEPTED]
            for target in dict.fromkeys(self.targets.values()):
                own = [place for place in fine if self.targets[place[0]] == target]
                pairs = [(self.factuals[place[0]], rows[place]) for place in own]
                found.update(zip(own, legible(self.space, pairs, partial(target.holds, model)), strict=True))
        return found

    @classmethod
    def of(cls, study: Study) -> list[Asked]:
        """The runs of a study that refuse nothing, one a seed of an entry."""
        found, models, taken = [], dict[str, Classifier | None](), (e for e in study.entries if e.refusal is None)
        for entry, run, meta in ((e, *pair) for e in taken for pair in zip(e.runs, e.metas, strict=True)):
            frame, targets = run.factuals()
            factuals = dict(zip(frame.index, frame.to_dict("records"), strict=True))
            space, rows, judged = run.space, run.rows(), run.verdicts()
            verdicts = {(verdict["factual"], verdict["ce"]): verdict for verdict in judged}
            numbers = stored.taken(space, frame, rows, judged)
            if entry.task not in models:
                models[entry.task] = _model(run)
            model = models[entry.task]
            found.append(cls(entry, meta["seed"], space, factuals, targets, rows, verdicts, numbers, model))
        return found


def questions(methods: Sequence[str], found: Sequence[Asked]) -> dict[str, Any]:
    """All answers to the questions of a task, as JSON data; methods are given by their places."""
    posed: dict[Any, dict[str, Any]] = {}
    names = list(found[0].space.names) if found else []
    predicted = _predictions(found[0]) if found else {}
    for asked in found:
        for row in asked.rows:
            factual = row["factual"]
            if factual not in posed:
                origin = asked.factuals[factual]
                values = {name: asked.space[name].text(origin[name]) for name in names}
                told = {"wanted": target_text(asked.targets[factual]), "now": predicted.get(factual, "")}
                posed[factual] = {**told, "values": values, "answers": []}
            posed[factual]["answers"].append(_answer(asked, row, methods.index(asked.entry.method)))
    listed = [{"id": str(index), **question} for index, question in posed.items()]
    column = stored.predicted(meta for asked in found for meta in asked.entry.metas)
    return {"column": column, "features": names, "questions": listed}


def _model(run: StoredRun) -> Classifier | None:
    """The model of a run; None where the answers lack it, or it needs trust."""
    if run.meta.get("model_file") is None and not (run.path / "estimator.skops").is_file():
        return None
    try:
        return run.classifier
    except HarnessError:
        return None


def _predictions(asked: Asked) -> dict[Any, str]:
    """By factual, what the model says of it as it is."""
    if asked.model is None:
        return {}
    frame = asked.space.frame(asked.factuals.values())
    return dict(zip(asked.factuals, map(number, asked.model.predict(frame)), strict=True))


def _answer(asked: Asked, row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """What came back for one counterfactual that was asked for, in words."""
    verdict = asked.verdicts.get((row["factual"], row["ce"]), {})
    origin, point = asked.factuals[row["factual"]], row["row"]
    told = {"method": place, "ce": row["ce"], "status": row["status"], "verdict": verdict.get("verdict", "none")}
    told |= {"taken": True} if asked.taken[row["factual"]] == row["ce"] else {}
    told |= {"seed": asked.seed} if asked.entry.seeds > 1 else {}
    if point is None:
        return told | {"why": scoring.reason(row)}
    moved = [f for f in asked.space.features if not same(point[f.name], origin[f.name])]
    shown = asked.told[row["factual"], row["ce"]]
    told["changed"] = {feature.name: feature.text(shown[feature.name], MOST) for feature in moved}
    if row["region"]:
        told["region"] = _spans(asked.space, row["region"])
        told["holds"] = verdict.get("region", "")
    return told


def _spans(space: Space, region: Mapping[str, Sequence[float]] | None) -> dict[str, str]:
    """By feature, the values that a region leaves it, where they are more than one."""
    known = [feature for feature in space.features if feature.name in (region or {})]
    texts = {feature.name: feature.span(*(region or {})[feature.name]) for feature in known}
    return {name: text for name, text in texts.items() if text}


def answers(found: Iterable[Asked]) -> pd.DataFrame:
    """One row an answer: ``COLUMNS``."""
    rows = []
    for asked in found:
        features = asked.space.features
        for row in asked.rows:
            verdict = asked.verdicts.get((row["factual"], row["ce"]), {})
            shown = asked.told.get((row["factual"], row["ce"]), {})
            moved = changes(features, asked.factuals[row["factual"]], shown)
            own = {"task": asked.entry.task, "method": asked.entry.method, "seed": asked.seed, "changes": moved}
            judged = {"verdict": verdict.get("verdict", "none"), "region_checked": verdict.get("region")}
            spans = "; ".join(f"{name}: {text}" for name, text in _spans(asked.space, row["region"]).items())
            rows.append({**row, **own, **judged, "region": spans})
    return pd.DataFrame(rows, columns=list(COLUMNS))
