"""Print what pytest skipped, by reason, from its JUnit files; exit code 1 where a reason is on no line of skips.txt.

usage: python .ci/skips.py REPORT.xml...
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

WHOLE = "collection skipped"  # pytest's message for a file that is skipped as a whole; the reason is in the text
ALLOWED = Path(__file__).with_name("skips.txt")


def reasons(report: Path) -> Counter[str]:
    """How many tests were skipped, by the reason that they gave."""
    found = ElementTree.parse(report).iter("skipped")
    given = ((str(skip.get("message")), str(skip.text)) for skip in found)
    return Counter(re.search(r"Skipped: (.*)[\'\"]\)$", text)[1] if said == WHOLE else said for said, text in given)


def unlisted(given: Counter[str], allowed: str) -> list[str]:
    """The reasons that no line of a text, each a regular expression, is found in."""
    lines = [line for line in allowed.splitlines() if line and not line.startswith("#")]
    return sorted(reason for reason in given if not any(re.search(line, reason) for line in lines))


def main(reports: list[str]) -> int:
    given = sum((reasons(Path(report)) for report in reports), Counter[str]())
    print(f"{given.total()} tests were skipped:")
    for reason, count in given.most_common():
        print(f"{count:6d}  {reason[:200]}")
    strange = unlisted(given, ALLOWED.read_text())
    for reason in strange:
        print(f"not on the list of {ALLOWED.name}: {reason}", file=sys.stderr)
    return int(bool(strange))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
