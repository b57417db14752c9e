"""Mutation testing: plant faults in the sources, one at a time, and report by folder how many the tests notice.

    uv run python tests/mutation.py                              # 300 faults, at most three hours
    uv run python tests/mutation.py --only metrics --sample 40   # one folder

Faults are drawn by a seed, in equal numbers from the folders of ``PARTS``. The tests run in a throw-away copy, with
numba off, so that kernels run as they are written: those of the file's name first, the quickest of each file first,
until one fails. A time-out counts only where one test takes more than 20 times what it does without a fault, and a
minute of the processor's time (or five of the clock's) besides. Results go to a journal, with the test that failed;
from it an interrupted run goes on, and what survived is tried again once its tests have changed. Faults that no test
can notice are not tried: they are listed with the reason in ``mutation_equivalent.toml``. The exit code is 0 only where
every folder reaches 90 %.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, count, islice, repeat, zip_longest
from pathlib import Path
from typing import Any

from support.mutants import Fault, drawn, planted
from support.watched import HANGING, IMPORTED, NOTES, Seconds, become

ROOT = Path(__file__).parents[1]
EXAMPLE = "metrics/_example.py"  # data of doctests
JOURNAL = ROOT / "results" / "mutation.jsonl"
LEAST = 0.9  # share of a folder's faults that its tests have to notice
FORKS = multiprocessing.get_context("forkserver")
LEFT_OUT = {  # but for the file of the same name
    "tests/reports/test_departures.py",  # imports every library that a method wraps
    "tests/reports/test_person.py",  # asks workers
    "tests/reports/test_own_metric.py",  # the metrics that others write
}
SWEEP = "tests/evaluation/test_study.py"  # of 72 runs: minutes for each fault that no other test notices
SLOW = [  # minutes each without numba
    f"--deselect=tests/certificate/test_certificate.py::test_the_radius_is_the_largest[{model}-l2]"
    for model in ("mlp", "mlp_deep")
]
POOL, BATCH = "tests/execution/test_pool.py", "tests/execution/test_batch.py"
SET_UP = tuple(  # the others compile, or fit without numba: minutes
    f"tests/execution/test_clocks.py::test_{name}"
    for name in ("set_up_is_known_of_a_run_that_is_not_asked", "set_up_is_the_first_workers",
                 "what_one_fit_compiled_is_not_the_next_ones")
)  # fmt: skip
COMPILING = tuple(  # of these tests there is nothing to see without numba
    f"--deselect=tests/execution/test_clocks.py::test_{name}"
    for name in (
        "a_set_up_that_compiled_is_measured_again",
        "who_waits_for_our_kernels_is_told_once",
        "compiling_is_noticed_whoever_imports_numba",
    )
)
CLAIMS = tuple(
    f"tests/execution/test_broken_methods.py::test_{name}"
    for name in ("a_group_method_is_held_to_the_limit_that_it_states", "refusals_are_asked_of_workers_only")
)
GROUPS = tuple(  # of these tests, the others are of methods
    f"tests/methods/test_groups.py::test_{name}"
    for name in (
        "a_group_answered_within_the_grace_is_late", "a_group_has_one_target", "a_group_is_scored",
        "a_group_of_one_is_a_group", "an_interrupted_cell_goes_on_with_the_groups_it_lacks",
        "each_factual_has_a_row_and_each_group_a_line", "factuals_may_be_filled_from_training_rows",
        "groups_are_everybody_or_by_value", "what_goes_wrong_is_an_answer", "who_cannot_be_served_is_named",
    )
)  # fmt: skip
# Sources, less those that another part names, and tests of all of them.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "metrics": (("metrics",), ("metrics", "tests/metrics")),
    "harness/certificate": (("harness/certificate",), ("tests/certificate", *SLOW)),
    "harness/papers": (("harness/papers",), ("tests/reports/test_claims.py",)),
    "harness/execution": (("harness/execution",), COMPILING),  # tests start processes: those of each file alone
    "harness/evaluation": (
        ("harness/evaluation",),
        ("harness/evaluation", "tests/evaluation", "tests/reports/test_page.py", "tests/reports/test_summary.py"),
    ),
    "harness/reports": (("harness/reports",), ("harness/reports", "tests/reports")),
    "checker": (("harness/evaluation/checker.py",), ("tests/evaluation/test_checker.py",)),
    "baselines": (
        ("methods/dice", *(f"methods/{n}.py" for n in ("nearest", "group_greedy", "globe_ce", "adversarial_recourse"))),
        (),
    ),
    "descents": (tuple(f"methods/{n}.py" for n in ("descent", "roar", "probe")), ("tests/methods/test_descents.py",)),
}
MORE = {  # tests of some files, which come before those of their part
    "harness/execution/contract.py": GROUPS,
    "harness/execution/experiment.py": (
        *GROUPS,
        *CLAIMS,
        "tests/execution/test_overhead.py",
        "tests/reports/test_group_tables.py::test_of_a_groups_claim_the_limits_are_stored",
    ),
    "harness/execution/messages.py": (BATCH, POOL, *GROUPS, *SET_UP),
    "harness/execution/pool.py": (BATCH, "tests/execution/test_experiment.py", *GROUPS, *SET_UP),
    "harness/execution/task.py": ("tests/execution/test_experiment.py", *GROUPS),
    "harness/execution/worker.py": (POOL, *GROUPS, *SET_UP),
    "harness/evaluation/scoring.py": GROUPS,
    "harness/evaluation/study.py": ("tests/evaluation/test_contest.py",),
    "harness/reports/groups.py": (
        "tests/methods/test_groups.py::test_the_report_names_who_what_and_to_what",
        "tests/reports/test_group_tables.py",
    ),
    "methods/descent.py": ("tests/methods/test_adversarial_recourse.py",),
    "methods/nearest.py": ("tests/methods/test_stable.py",),
    "methods/group_greedy.py": (
        "tests/methods/test_groups.py::test_the_greedy_cover_takes_no_more_points_than_people",
    ),
    "harness/papers/ce_ocl.py": ("tests/reports/test_figures.py",),
    "harness/papers/column_generation/figures.py": ("tests/reports/test_group_tables.py",),
    "harness/papers/column_generation/tables.py": ("tests/reports/test_group_tables.py",),
    "harness/papers/pso.py": ("tests/reports/test_tables.py",),
    "harness/papers/scorecard.py": ("tests/papers/test_scorecard_text.py",),
    "harness/papers/robust/tables.py": ("tests/papers/test_robust.py", "tests/reports/test_tables.py"),
    "harness/papers/robust/claims.py": ("tests/papers/test_robust.py",),
    "harness/papers/robust/figures.py": ("tests/papers/test_robust_figures.py",),
}

EQUIVALENT = {
    (entry["file"], entry["before"], entry["after"])
    for entry in tomllib.loads((ROOT / "tests" / "mutation_equivalent.toml").read_text()).get("equivalent", [])
}
SOURCES = ("harness", "methods", "metrics", "tests/support", "tests/conftest.py")

Line = dict[str, Any]
Notes = dict[str, Any]


class Copy:
    """A throw-away copy of the working tree, in which tests run."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mutation-"))
        self.times = count(1)
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(lambda name: name and (ROOT / name).is_file(), listed.split("\0")):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.path / name)

    def files(self, paths: Sequence[str]) -> list[str]:
        """Python files among some paths, and below them."""
        found = chain.from_iterable(
            sorted(p.rglob("*.py")) if p.is_dir() else [p] for p in map(self.path.joinpath, paths)
        )
        return [file.relative_to(self.path).as_posix() for file in found]

    def sources(self, part: str) -> list[str]:
        """The files of a part: a file that another part names is that one's."""
        others = {EXAMPLE, *(path for name, (own, _) in PARTS.items() if name != part for path in own)}
        return [path for path in self.files(PARTS[part][0]) if path not in others]

    def tests(self, part: str, path: str) -> tuple[list[str], list[str]]:
        """Tests of a source file, as arguments of pytest: its own, which come first, and all, files one by one."""
        folder = Path("tests", *Path(path).parts[path.startswith("harness") : -1])
        named = (folder / f"test_{Path(path).stem}.py").as_posix()
        own = [*([named] if named != SWEEP and (self.path / named).exists() else []), *MORE.get(path, ())]
        shared = [test for test in PARTS[part][1] if "-" in test[:1] or "::" in test]
        files = [
            file
            for file in self.files([test for test in PARTS[part][1] if test not in shared])
            if file not in {*LEFT_OUT, SWEEP} and (not file.startswith("tests/") or Path(file).name.startswith("test_"))
        ]
        return own, list(dict.fromkeys([*own, *files, *shared]))

    def digest(self, paths: Sequence[str]) -> str:
        """A short hash of the contents of Python files; arguments such as ``--deselect`` are left out."""
        named = dict.fromkeys(path.partition("::")[0] for path in paths if not path.startswith("-"))
        read = [(self.path / file).read_bytes() for file in self.files(list(named))]
        return hashlib.sha256(b"".join(read)).hexdigest()[:12]

    def write(self, path: str, text: str) -> None:
        """Change a file, with a time of its own: or Python would take compiled code of the same second for its."""
        (self.path / path).write_text(text)
        os.utime(self.path / path, (next(self.times),) * 2)

    def run(self, tests: Sequence[str], own: Sequence[str] = (), known: Seconds | None = None) -> tuple[str, Notes]:
        """What becomes of the tests (survived: they pass; killed, timed out or untested), and what was noted of them.

        Parameters
        ----------
        own
            Those that come first.
        known
            The seconds of each test without a fault.
        """
        (self.path / NOTES).unlink(missing_ok=True)
        files = list(dict.fromkeys(test.partition("::")[0] for test in own))
        more = {"PYTHONPATH": str(self.path), "CE_HARNESS_CACHE": str(self.path / ".models")}
        process = FORKS.Process(target=become, args=(str(self.path), tests, files, known or {}, more))
        process.start()
        try:
            process.join()
        finally:
            with suppress(ProcessLookupError):  # what the tests have left running, or all where this is interrupted
                os.killpg(process.pid or 0, signal.SIGKILL)
        noted = json.loads((self.path / NOTES).read_text()) if (self.path / NOTES).exists() else {}
        code = process.exitcode
        result = "timed out" if code in HANGING else {0: "survived", 5: "untested"}.get(code or 0, "killed")
        return result, noted


class Session:
    """What earlier runs found, where faults are planted, and until when."""

    def __init__(self, journal: Path, hours: float, copies: Sequence[Copy]) -> None:
        self.journal, self.until = journal, time.monotonic() + 3600 * hours
        self.copies: queue.Queue[Copy] = queue.Queue()
        for copy in copies:
            self.copies.put(copy)
        self.seconds: Seconds = {}  # of each test, without a fault
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.touch()
        self.known: dict[tuple[Any, ...], Line] = {}
        self.clean: dict[str, str] = {}  # what once passed without a fault: arguments of pytest, with their hash
        self.passed: set[str] = set()  # of these what did today
        for line in map(json.loads, journal.read_text().splitlines()):
            if "clean" in line:
                self._clean(line)
            else:
                self.known[tuple(line["key"])] = line

    def _clean(self, line: Line) -> None:
        self.clean[line["clean"]] = line["hash"]
        self.seconds |= line["seconds"]

    def _note(self, line: Line) -> None:
        with self.journal.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def measure(self, tests: Sequence[str], copy: Copy) -> None:
        """Note what tests take without a fault, where it is not known."""
        options = [test for test in tests if test.startswith("-")]
        hashes = {test: copy.digest([*SOURCES, test]) for test in tests if test not in {*options, *self.passed}}
        new = [test for test, now in hashes.items() if self.clean.get(test) != now]
        if new:
            result, noted = copy.run([*new, *options])
            if result == "killed":  # perhaps the machine was busy
                result, noted = copy.run([*new, *options])
            if result not in ("survived", "untested"):
                raise SystemExit(f"without a fault, the tests are {result} by {noted.get('failed')}; first mend them")
            for test in new:
                seconds = {name: each for name, each in noted["seconds"].items() if name.startswith(test)}
                self._clean(line := {"clean": test, "hash": hashes[test], "seconds": seconds})
                self._note(line)
        self.passed |= set(hashes)

    def try_one(self, part: str, fault: Fault) -> Line | None:
        """The journal's line of a fault, tried now where it has none; None where time is up."""
        copy = self.copies.get()
        try:
            own, tests = copy.tests(part, fault.path)
            key, now = (*fault[:3], copy.digest([fault.path])), copy.digest(tests)
            original, text, before, after = planted(copy.path, fault)
            line = {"key": key, "line": fault.line, "before": before, "after": after, "tests": now}
            if (fault.path, before, after) in EQUIVALENT:
                return {**line, "result": "equivalent"}
            known = self.known.get(key)
            if known and (known["result"] in ("killed", "timed out") or known["tests"] == now):
                return known
            if time.monotonic() > self.until:
                return None
            self.measure(tests, copy)
            copy.write(fault.path, text)
            result, noted = copy.run(tests, own, self.seconds) if tests else ("untested", {})
            copy.write(fault.path, original)
        finally:
            self.copies.put(copy)
        line |= {"result": result, "by": next(iter(noted.get("failed", ())), None)}
        self._note(line)
        print(f"{result:10}{shown(line)}", flush=True)
        return line


def shown(line: Line) -> str:
    return f"{line['key'][0]}:{line['line']}  {line['before']}  ->  {line['after']}"


def report(chosen: Sequence[tuple[str, Fault]], lines: Sequence[Line | None]) -> bool:
    """Print the score by folder, and what survived; whether every fault was tried and every folder has enough."""
    results: dict[str, list[str]] = {part: [] for part, _ in chosen}
    for (part, _), line in zip(chosen, lines, strict=True):
        if line is None:
            results[part].append("not tried")
        else:
            results[part].append(result := line["result"])
            if result in ("survived", "untested"):
                print(f"{result:10}{shown(line)}")
    words = ("killed", "timed out", "survived", "untested", "equivalent", "not tried")
    print(f"\n{'':20}{'tried':>11}" + "".join(f"{word:>11}" for word in words) + f"{'score':>9}")
    scores = []
    for part, found in results.items():
        counts = [found.count(word) for word in words]
        tried = sum(counts[:4])
        scores.append((counts[0] + counts[1]) / max(1, tried))
        print(f"{part:20}{tried:11}" + "".join(f"{count:11}" for count in counts) + f"{scores[-1]:9.1%}")
    if left := lines.count(None):
        print(f"{left} faults are not tried yet: give the same command again.")
    return not left and min(scores) >= LEAST


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Plant faults, and report by folder how many the tests notice.")
    parser.add_argument("--sample", type=int, default=300, help="faults, spread evenly over the folders (300)")
    parser.add_argument("--only", action="append", choices=PARTS, help="a folder; may be given several times (all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--hours", type=float, default=3.0, help="after which no further fault is tried (3)")
    parser.add_argument("--workers", type=int, default=1, choices=(1, 2), help="faults at once (1)")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where results are kept (%(default)s)")
    given = parser.parse_args(arguments)
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    FORKS.set_forkserver_preload(IMPORTED)
    copies = [Copy() for _ in range(given.workers)]
    try:
        root, parts = copies[0].path, given.only or PARTS
        of_parts = [zip(repeat(part), drawn(root, copies[0].sources(part), given.seed)) for part in parts]
        by_turns = (pair for turn in zip_longest(*of_parts) for pair in turn if pair is not None)
        chosen = list(islice(by_turns, given.sample))
        session = Session(given.journal, given.hours, copies)
        with ThreadPoolExecutor(given.workers) as threads:
            lines = list(threads.map(session.try_one, *zip(*chosen, strict=True)))
    finally:
        for copy in copies:
            shutil.rmtree(copy.path, ignore_errors=True)
    return 0 if report(chosen, lines) else 1


if __name__ == "__main__":
    sys.exit(main())
