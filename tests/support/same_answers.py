"""Whether two stores hold the same answers: ``python tests/support/same_answers.py BEFORE AFTER``.

Both are output folders of ``python -m harness``. Compared are, by experiment, dataset, model, method, factual and
number, the counterfactual, status, objective and bound, bit for bit; of groups also the points. Timings, and anything
else that a machine decides, are not compared. Rows in which a limit was reached, before or after, are listed apart: how
far a search comes in so many seconds is the machine's. The exit code is 1 where other rows differ, or where a run has
no counterpart.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.store.run import StoredRun, stored_runs

COMPARED = ("row", "status", "objective", "bound", "point", "region")
GROUPS = ("points", "changed", "bound", "uncoverable", "undecided", "status")
LIMITED = {"time limit", "memory"}


def keyed(folder: Path) -> dict[tuple[str, ...], StoredRun]:
    """The stored runs that were asked to the end, by experiment, names and what else tells two of them apart."""
    found: dict[tuple[str, ...], StoredRun] = {}
    for run in stored_runs(folder):
        if not run.asked:
            continue
        meta = run.meta
        config = meta["config"]
        settings = {name: config.get(name) for name in ("seed", "factuals_seed", "n_factuals", "time_limit", "desired")}
        key = (meta["experiment"], meta["dataset"], meta["model"], meta["method"], repr(settings))
        assert key not in found, f"{run.path} and {found[key].path} cannot be told apart"
        found[key] = run
    return found


def rows_of(run: StoredRun) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(row["factual"], row["ce"]): row for row in run.rows()}


def differences(before: StoredRun, after: StoredRun) -> Iterator[tuple[bool, str]]:
    """Of each row or group that differs: whether a limit was reached, and a sentence."""
    old, new = rows_of(before), rows_of(after)
    for key in old.keys() | new.keys():
        one, other = old.get(key, {}), new.get(key, {})
        names = [name for name in COMPARED if one.get(name) != other.get(name)]
        if names:
            limited = bool(LIMITED & {one.get("reason"), other.get("reason")}) or one.get("late") or other.get("late")
            changed = "; ".join(f"{name} {one.get(name)!r} -> {other.get(name)!r}" for name in names)
            yield bool(limited), f"factual {key[0]}, CE {key[1]}: {changed}"
    groups = {line["group"]: line for line in before.groups()}, {line["group"]: line for line in after.groups()}
    for name in groups[0].keys() | groups[1].keys():
        one, other = (known.get(name, {}) for known in groups)
        if any(one.get(field) != other.get(field) for field in GROUPS):
            yield bool(LIMITED & {one.get("reason"), other.get("reason")}), f"group {name}"


def main(before: Path, after: Path) -> int:
    old, new = keyed(before), keyed(after)
    counts, faults = Counter[str](), 0
    for key in sorted(old.keys() | new.keys()):
        label = " / ".join(key[:4])
        if key not in old or key not in new:
            print(f"{label}: only {'before' if key in old else 'after'} {key[4]}")
            counts["without a counterpart"] += 1
            faults += 1
            continue
        counts["runs"] += 1
        counts["rows"] += len(rows_of(old[key]))
        for limited, sentence in differences(old[key], new[key]):
            counts["at a limit" if limited else "different"] += 1
            faults += not limited
            print(f"{label}: {'at a limit' if limited else 'DIFFERENT'}: {sentence}"[:400])
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
