"""Tables of stored answers: ``python -m harness.tables results/ce_ocl_table2``."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.core.errors import HarnessError
from harness.core.processes import be_command
from harness.reports import departures, reproduction
from harness.reports.rebuild import command, folders_of, rebuild
from harness.reports.tables import write


def main() -> None:
    """Rebuild the tables of result folders; with ``--all``, the page about every published cell; with ``--departures``
    and a page, the table in it of settings that are not the defaults of the libraries that methods run."""
    parser = command("tables", "Make table.md, table.tex and table.csv of stored answers.", "*")
    parser.add_argument(
        "--all",
        action="store_true",
        help="of all experiments in a folder (default: results), every published cell beside ours and the papers' "
        "claims, as REPRODUCTION.md there; tables of which less is at hand than on that page stay as they are",
    )
    parser.add_argument(
        "--departures",
        action="store_true",
        help="renew, in a page (default: docs/explanation/peers.md), the table of settings that depart from a library",
    )
    asked = parser.parse_args()
    if asked.departures:
        _depart(Path(next(iter(asked.folder), "docs/explanation/peers.md")))
    elif asked.all:
        homes = [argument.removeprefix("output_dir=") for argument in asked.folder]
        if not (home := Path(homes[0] if homes else "results")).is_dir():
            sys.exit(f"there is no folder {home}; give the one with the studies, such as output_dir=results.")
        try:
            print(reproduction.write(home))
        except HarnessError as fault:
            sys.exit(str(fault))
    elif asked.folder:
        rebuild("table", write, folders_of(asked.folder))
    else:
        parser.error("name a folder, or --all")


def _depart(page: Path) -> None:
    try:
        page.write_text(departures.renewed(page.read_text()))
    except HarnessError as fault:
        sys.exit(f"{page}: {fault}")
    except OSError as fault:
        sys.exit(f"{page} cannot be read and written ({fault.strerror}); give the path of a Markdown page.")


if __name__ == "__main__":
    be_command(main)
