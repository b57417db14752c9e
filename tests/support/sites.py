"""Studies of which the site's tests know every number, the site of them, and what its data scripts hold."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.tables import GRANTED, MACHINE, MEMBER, PATHS, TIMING, YOUNGER, started

from harness import site as command
from harness.core.explanation import Answer, Reason, Status
from harness.evaluation import scoring
from harness.evaluation.checker import judge
from harness.evaluation.contest import metrics_of
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from metrics import _example as loans

FAR = {**GRANTED, "income": 90.0}  # accepted: Gower's distance is (0.6 + 0.25) / 5 = 0.17, that of GRANTED 0.15
BOX = Answer(Status.FOUND, GRANTED, region={"income": (60.0, 90.0), "age": (40.0, 40.0)})
METHODS = {"exact": [BOX] * 12, "guess": [GRANTED, YOUNGER, MEMBER] * 4, "silent": [None] * 11 + [GRANTED]}
# Of the page about papers, by the numbers that they begin with; the first two have none.
CELLS = [
    "– (0.2)", "✗ (-8.47)", "≈ -54.5 (-98.8)", "▲ 0.598 (0.37)", "7.63 (2.15; 0.282×)", "12 of 40", "≥ 214 (1,677)",
    "≥ 285 (≥ 3,600)", "≈ 1,154 (1,108)", "2e+04",
]  # fmt: skip


def results(home: Path) -> Path:
    """A folder with the study of three methods on two models."""
    for model in ("lr", "rf"):
        for method, answers in METHODS.items():
            named = {"model": model, "method": method, "fingerprint": method}
            paths = [*PATHS, "metrics.proximity.gower"]
            started(home / "results" / "<b>", loans.problem, loans.factual, answers, paths=paths, **named)
    refusal = Answer(Status.UNSUPPORTED, None, Reason.FINISHED, detail="takes no tree; give another")
    named = {"model": "lr", "method": "nearest", "fingerprint": "no"}
    started(home / "results" / "<b>", loans.problem, loans.factual, [refusal] * 12, paths=paths, **named)
    (home / "results" / "figures").mkdir()
    (home / "results" / "figures" / "one.png").write_bytes(b"a picture")
    page = "# Regenerated\n\n| a | b |\n| --- | --- |\n| 1 | x|y |\n\n## Figures\n\n![one](figures/one.png)\n\n"
    page += "## Numbers\n\n| of |\n| --- |\n" + "".join(f"| {cell} |\n" for cell in CELLS)
    (home / "results" / "REPRODUCTION.md").write_text(page)
    return home / "results"


def built(home: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["site", str(home)])
    return command.main()


def data(path: Path) -> Any:
    """What a data script brings."""
    call, _, text = path.read_text().removesuffix(");\n").partition(", ")
    found = json.loads(text)
    return json.loads(gzip.decompress(b64decode(found))) if call.startswith("site.unpack(") else found


def put(path: Path, text: str) -> None:
    """Have a data script bring something else, as JSON."""
    path.write_text(f"{path.read_text().partition(', ')[0].replace('unpack', 'put')}, {text});\n")


def several(home: Path) -> Path:
    """A folder with a study of two methods on three data sets, on the first of which the first is the nearer."""
    for dataset, answers in (("a", (GRANTED, FAR)), ("b", (FAR, GRANTED)), ("c", (FAR, GRANTED))):
        for method, answer in zip(("one", "two"), answers, strict=True):
            ran(home / "results" / "three", [answer] * 12, dataset=dataset, method=method)
    return home / "results"


def timed_elsewhere(home: Path) -> Path:
    """A folder with a study of two models; the quickest of three methods was timed on another machine on the second."""
    for model in ("lr", "rf"):
        for method, seconds in (("one", 0.5), ("two", 0.5), ("quick", 0.1)):
            run = ran(home / "results" / "timed", [GRANTED] * 12, model=model, method=method)
            scores = run.path / "scores.csv"
            pd.read_csv(scores, index_col="factual").assign(seconds=seconds).to_csv(scores)
    run.update(environment={**MACHINE, "cpu": "another processor"})
    return home / "results"


def ran(folder: Path, answers: list[Any], **named: Any) -> StoredRun:
    """A run that is scored by its distance, one answer a question."""
    paths = ["metrics.proximity.gower"]
    return started(folder, loans.problem, loans.factual, answers, **{"model": "lr", "paths": paths, **named})


def ran_for_several(folder: Path, answers: Sequence[Sequence[dict[str, Any]]], **named: Any) -> StoredRun:
    """As ``ran``, with as many answers a question as are given."""
    run = ran(folder, [first for first, *_ in answers], **named)
    run.update(n_counterfactuals=len(answers[0]))
    for question, (_, *further) in enumerate(answers):
        found = (Answer(Status.FOUND, row) for row in further)
        run.append(answer_row(question, place, answer, **TIMING) for place, answer in enumerate(found, 2))
    judge(run)
    problems = dict.fromkeys(range(len(answers)), loans.problem)
    scoring.score(run, problems, list(metrics_of(run).values())).to_csv(run.path / "scores.csv")
    return run
