"""What a study's own run in MLflow keeps: its tables, figures and report."""

from __future__ import annotations

from pathlib import Path

from harness.core.wording import number_of
from harness.evaluation.contest import criteria_of
from harness.evaluation.study import Study
from harness.reports.markup import ARROWS
from harness.store import mlflow

FILES = ("report.html", "table.md", "table.tex", "table.csv", "summary.md", "summary.csv", "pairs.csv", "figures")
DRAWN = {".png", ".svg"}


def keep(study: Study, folder: Path) -> None:
    """Keep what is in a study's folder, as it is now, where there is a store that knows the study."""
    if not mlflow.there():
        return
    files = [path for path in sorted(folder.iterdir()) if path.name in FILES or path.suffix in DRAWN]
    lists = {"data sets": study.datasets, "methods": study.methods}
    named = "; ".join(f"{len(names)} {kind}: {', '.join(names)}" for kind, names in lists.items())
    criteria = criteria_of(study.runs)
    arrows = {criterion.name: ARROWS[criterion.better] for criterion in criteria}
    note = f"**{study.name}**: {number_of(len(study.runs), 'run')}, {number_of(len(study.tasks), 'task')}; {named}."
    with mlflow.alone(folder):  # of two sweeps that end together, each would make the study's run
        mlflow.log_study(study.name, note, files, arrows)
