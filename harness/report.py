"""``python -m harness.report experiment=compas`` writes results/compas/report.html."""

from __future__ import annotations

from pathlib import Path

from harness.core.processes import be_command
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports.kept import keep
from harness.reports.page import page
from harness.reports.rebuild import asked, each


def main() -> None:
    """Write the report of each experiment that the arguments name."""
    each(_write, asked("report", "Write one HTML page about an experiment's stored answers."))


def _write(folder: Path) -> None:
    study = Study.of(folder).held()
    print(page.write(folder, Numbers(study)))
    keep(study, folder)


if __name__ == "__main__":
    be_command(main)
