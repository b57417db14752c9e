"""Print the slowest tests of pytest's JUnit file, fixtures included, as a table of Markdown.

usage: python .ci/slowest.py REPORT.xml [HOW MANY]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree


def slowest(report: Path, count: int) -> list[tuple[float, str]]:
    """Seconds and names, the slowest first."""
    cases = ElementTree.parse(report).iter("testcase")
    timed = ((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases)
    return sorted(timed, reverse=True)[:count]


def main(arguments: Sequence[str]) -> int:
    count = int(arguments[1]) if len(arguments) > 1 else 20
    print("| seconds | test |\n|---:|---|")
    for seconds, name in slowest(Path(arguments[0]), count):
        print(f"| {seconds:.0f} | `{name}` |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
