"""``python -m harness.site`` writes results/site: all studies and archives of a folder as pages to explore."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.core.errors import HarnessError
from harness.reports.rebuild import command
from harness.reports.site import build


def main() -> int:
    """Write the site of a folder of results; the exit code is 1 where that cannot be done."""
    parser = command("site", "Write SITE/index.html and all that it needs, from stored studies and archives.", "?")
    home = Path(str(parser.parse_args().folder or "results").removeprefix("output_dir="))
    try:
        if not home.is_dir():
            raise HarnessError(f"there is no folder {home}; give the one with the studies, such as results.")
        print(build.write(home))
        return 0
    except HarnessError as fault:
        print(fault, file=sys.stderr)
    except OSError as fault:
        print(
            f"{fault.filename or home} cannot be written ({fault.strerror}); make room, or allow it.", file=sys.stderr
        )
    return 1


if __name__ == "__main__":
    sys.exit(main())
