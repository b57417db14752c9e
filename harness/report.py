"""``python -m harness.report experiment=compas`` writes results/compas/report.html."""

from __future__ import annotations

import sys

from harness.core.errors import HarnessError
from harness.evaluation.study import Study
from harness.reports.kept import keep
from harness.reports.page import page
from harness.reports.rebuild import asked, unwritable


def main() -> None:
    """Write the report of each experiment that the arguments name."""
    folders = asked("report", "Write one HTML page about an experiment's stored answers.")
    wrong = False
    for folder in folders:
        try:
            print(page.write(folder))
            keep(Study.of(folder), folder)
        except (HarnessError, OSError) as fault:
            print(unwritable(fault) if isinstance(fault, OSError) else fault, file=sys.stderr)
            wrong = True
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
