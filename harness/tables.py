"""Tables of stored answers: ``python -m harness.tables results/ce_ocl_table2``."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.core.errors import HarnessError
from harness.reports import departures, reproduction
from harness.reports.rebuild import rebuild
from harness.reports.tables import write


def main() -> None:
    """Rebuild the tables of result folders; with ``--all``, the page about every published cell; with ``--departures``
    and a page, the table in it of settings that are not the defaults of the libraries that methods run."""
    if "--departures" in sys.argv[1:]:
        page = Path(next((argument for argument in sys.argv[1:] if argument != "--departures"), "README.md"))
        try:
            page.write_text(departures.renewed(page.read_text()))
        except HarnessError as fault:
            sys.exit(f"{page}: {fault}")
        except OSError as fault:
            sys.exit(f"{page} cannot be read and written ({fault.strerror}); give the path of a Markdown page.")
        return
    if "--all" in sys.argv[1:]:
        homes = [argument.removeprefix("output_dir=") for argument in sys.argv[1:] if argument != "--all"]
        if not (home := Path(homes[0] if homes else "results")).is_dir():
            sys.exit(f"there is no folder {home}; give the one with the studies, such as output_dir=results.")
        print(reproduction.write(home))
        return
    rebuild("table", write)


if __name__ == "__main__":
    main()
