"""Tables of stored answers: ``python -m harness.tables results/ce_ocl_table2``."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.reports import reproduction
from harness.reports.rebuild import rebuild
from harness.reports.tables import write


def main() -> None:
    """Rebuild the tables of result folders, or, with ``--all``, the page about every published cell."""
    if "--all" in sys.argv[1:]:
        homes = [argument.removeprefix("output_dir=") for argument in sys.argv[1:] if argument != "--all"]
        print(reproduction.write(Path(homes[0] if homes else "results")))
        return
    rebuild("table", write)


if __name__ == "__main__":
    main()
