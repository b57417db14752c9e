"""Write results/site: all studies and archives of a folder as pages to explore (``python -m harness.site``)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.core.errors import HarnessError
from harness.core.processes import be_command
from harness.reports.site import build


def main() -> int:
    """Write the site of a folder of results; the exit code is 1 where that cannot be done, or not of all studies."""
    parser = argparse.ArgumentParser(prog="python -m harness.site", description=__doc__)
    parser.add_argument("folder", nargs="?", default="results", help="that of studies and archives (default: results)")
    home = Path(parser.parse_args().folder.removeprefix("output_dir="))
    try:
        if not home.is_dir():
            raise HarnessError(f"there is no folder {home}; give the one with the studies, such as results.")
        message, left = build.write(home)
        print(message)
        if left:
            print(f"left out: {left} stud{'y' if left == 1 else 'ies'}; the board says why.", file=sys.stderr)
        return min(left, 1)
    except HarnessError as fault:
        print(fault, file=sys.stderr)
    except OSError as fault:
        print(
            f"{fault.filename or home} cannot be written ({fault.strerror}); make room, or allow it.", file=sys.stderr
        )
    return 1


if __name__ == "__main__":
    be_command(main)
