"""Print what pytest skipped, by reason, from its JUnit file; exit code 1 where a reason is on no line of the lists.

usage: python .ci/skips.py REPORT.xml LIST.txt...
       python .ci/skips.py --tests REPORT.xml LIST.txt...   prints the tests instead whose reason is on a list
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

WHOLE = "collection skipped"  # pytest's message for a file that is skipped as a whole; the reason is in the text


def skipped(report: Path) -> Iterator[tuple[str, str]]:
    """Each test that was skipped, as pytest is asked for it, or a whole file, and the reason that it gave."""
    for case in ElementTree.parse(report).iter("testcase"):
        for skip in case.iter("skipped"):
            name, said, text = case.get("name", ""), str(skip.get("message")), str(skip.text)
            if said == WHOLE and (found := re.search(r"Skipped: (.*)[\'\"]\)$", text)):
                yield f"{name.replace('.', '/')}.py", found[1]
            else:
                yield f"{case.get('classname', '').replace('.', '/')}.py::{name}", said


def reasons(report: Path) -> Counter[str]:
    """How many tests were skipped, by the reason that they gave."""
    return Counter(reason for _, reason in skipped(report))


def listed(reason: str, lists: Sequence[Path]) -> bool:
    """Whether a line of the lists, each a regular expression, is found in a reason."""
    lines = [line for path in lists for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return any(re.search(line, reason) for line in lines)


def main(arguments: Sequence[str]) -> int:
    report, *lists = (Path(each) for each in arguments if each != "--tests")
    if "--tests" in arguments:
        print(*(test for test, reason in skipped(report) if listed(reason, lists)), sep="\n")
        return 0
    given = reasons(report)
    print(f"{given.total()} tests were skipped:")
    for reason, count in given.most_common():
        print(f"{count:6d}  {reason[:200]}")
    strange = sorted(reason for reason in given if not listed(reason, lists))
    for reason in strange:
        print(f"not on the list of {', '.join(path.name for path in lists)}: {reason}", file=sys.stderr)
    return int(bool(strange))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
