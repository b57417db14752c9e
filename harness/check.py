"""An independent verdict on stored answers: ``python -m harness.check results/compas``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from harness.core.errors import HarnessError
from harness.evaluation.checker import FAULTS, judge
from harness.store.run import stored_runs


def main(arguments: list[str] | None = None) -> int:
    """Check every run under the folders given; the exit code is 1 where a counterfactual does not hold, 2 where a
    run cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m harness.check", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="results folders, such as results/compas")
    parser.add_argument("--trust", action="store_true", help="read models from pickles, which runs their makers' code")
    options = parser.parse_args(arguments)
    faults = total = unread = 0
    for folder in options.folders:
        try:
            found = stored_runs(folder, options.trust)
        except HarnessError as fault:
            print(fault, file=sys.stderr)
            return 2
        for run in found:
            try:
                words = Counter(verdict["verdict"] for verdict in judge(run))
            except HarnessError as fault:
                unread += 1
                print(fault, file=sys.stderr)
                continue
            present = sum(words.values()) - words["none"]
            total += present
            faults += sum(words[fault] for fault in FAULTS)
            listed = ", ".join(f"{count} {word}" for word, count in sorted(words.items()) if word != "none")
            print(f"{run.label}: {present} counterfactuals: {listed or 'none'}")
    print(f"{total} stored counterfactuals checked, {faults} of them do not hold")
    if unread:
        print(f"{unread} runs could not be read", file=sys.stderr)
        return 2
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
