"""Mutation testing: plant faults in the sources, one at a time, and report by folder how many the tests notice.

    uv run python tests/mutation.py                              # 300 faults, at most three hours
    uv run python tests/mutation.py --only metrics --sample 40   # one folder

Faults are drawn by a seed, in equal numbers from the folders of ``PARTS``. The tests run in a throw-away copy, with
numba off, so that kernels run as they are written. Results go to a journal, from which an interrupted run goes on; what
survived is tried again once its tests have changed. Faults that no test can notice are listed with the reason in
``mutation_equivalent.toml``. The exit code is 0 only where every folder reaches 90 %.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import Any

from support.mutants import Fault, drawn, planted

ROOT = Path(__file__).parents[1]
EXAMPLE = "metrics/_example.py"  # data of doctests
JOURNAL = ROOT / "results" / "mutation.jsonl"
LEAST = 0.9  # share of a folder's faults that its tests have to notice
MEMORY = 8 * 2**30  # bytes that the tests of one fault may take
INFINITE = "ignore:overflow encountered:RuntimeWarning"  # numpy warns where compiled code goes on
SLOW = [  # minutes each without numba
    f"--deselect=tests/certificate/test_certificate.py::test_the_radius_is_the_largest[{model}-l2]"
    for model in ("mlp", "mlp_deep")
]
# Sources, less those that another part names, and tests of all of them.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "metrics": (("metrics",), ("metrics", "tests/metrics")),
    "harness/certificate": (("harness/certificate",), ("tests/certificate", *SLOW)),
    "harness/papers": (("harness/papers",), ("tests/reports/test_claims.py",)),
    "harness/execution": (("harness/execution",), ("tests/execution",)),
    "harness/evaluation": (("harness/evaluation",), ("tests/evaluation",)),
    "harness/reports": (
        ("harness/reports",),
        ("harness/reports", "tests/reports", "--ignore=tests/reports/test_own_metric.py"),
    ),
    "checker": (("harness/evaluation/checker.py",), ("tests/evaluation/test_checker.py",)),
    "baselines": (tuple(f"methods/{n}.py" for n in ("nearest", "group_greedy", "adversarial_recourse", "dice")), ()),
}
MORE = {  # tests of some files, besides their part's and the one of the file's name
    "methods/group_greedy.py": (
        "tests/methods/test_groups.py::test_the_greedy_cover_takes_no_more_points_than_people",
    ),
    "harness/papers/ce_ocl.py": ("tests/reports/test_figures.py",),
    "harness/papers/column_generation.py": ("tests/reports/test_group_tables.py",),
    "harness/papers/pso.py": ("tests/reports/test_tables.py",),
    "harness/papers/scorecard.py": tuple(
        f"tests/methods/scorecard/test_method.py::test_a_table_of_{name}"
        for name in ("changes_is_read_off_the_card", "numbers_is_recomputed_from_the_rows")
    ),
    "harness/papers/robust/tables.py": ("tests/papers/test_robust.py", "tests/reports/test_tables.py"),
    "harness/papers/robust/claims.py": ("tests/papers/test_robust.py",),
    "harness/papers/robust/figures.py": ("tests/papers/test_robust.py", "tests/reports/test_figures.py"),
}

Line = dict[str, Any]


class Copy:
    """A throw-away copy of the working tree, in which tests run."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mutation-"))
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

    def tests(self, part: str, path: str) -> list[str]:
        """Tests of a source file, as arguments of pytest: those of its name first."""
        folder = Path("tests", *Path(path).parts[path.startswith("harness") : -1])
        own = (folder / f"test_{Path(path).stem}.py").as_posix()
        found = [*([own] if (self.path / own).exists() else []), *MORE.get(path, ()), *PARTS[part][1]]
        return list(dict.fromkeys(found))

    def digest(self, paths: Sequence[str]) -> str:
        """A short hash of the contents of Python files; arguments such as ``--ignore`` are left out."""
        named = dict.fromkeys(path.partition("::")[0] for path in paths if not path.startswith("-"))
        read = [(self.path / file).read_bytes() for file in self.files(list(named))]
        return hashlib.sha256(b"".join(read)).hexdigest()[:12]

    def run(self, tests: Sequence[str], limit: float) -> str:
        """What becomes of the tests within some seconds: survived (they pass), killed, timed out or untested."""
        own = {"PYTHONPATH": str(self.path), "CE_HARNESS_CACHE": str(self.path / ".models"), "NUMBA_DISABLE_JIT": "1"}
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-W", INFINITE, f"--basetemp={self.path / '.tmp'}"]
        command, nothing = [sys.executable, "-m", "pytest", *options, *tests], subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=self.path, env=os.environ | own, start_new_session=True, stdout=nothing, stderr=nothing
        ) as process:
            if hasattr(resource, "prlimit"):  # Linux: a fault may ask for memory without end
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))
            try:
                return {0: "survived", 5: "untested"}.get(process.wait(limit), "killed")
            except subprocess.TimeoutExpired:
                return "timed out"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


class Session:
    """What earlier runs found, where faults are planted, and until when."""

    def __init__(self, journal: Path, hours: float, copies: Sequence[Copy]) -> None:
        self.journal, self.until = journal, time.monotonic() + 3600 * hours
        self.copies: queue.Queue[Copy] = queue.Queue()
        for copy in copies:
            self.copies.put(copy)
        self.limits: dict[tuple[str, ...], float] = {}
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.touch()
        self.known: dict[tuple[Any, ...], Line] = {}
        for line in map(json.loads, journal.read_text().splitlines()):
            self.known[tuple(line["key"])] = line

    def limit(self, tests: Sequence[str], copy: Copy) -> float:
        """Seconds that tests may take: three times what they do without a fault, and 20."""
        if tuple(tests) not in self.limits:
            start = time.monotonic()
            if (result := copy.run(tests, 1800)) != "survived":
                raise SystemExit(f"without a fault: {result}; first mend: pytest {' '.join(tests)}")
            self.limits[tuple(tests)] = 3 * (time.monotonic() - start) + 20
        return self.limits[tuple(tests)]

    def try_one(self, part: str, fault: Fault) -> Line | None:
        """The journal's line of a fault, tried now where it has none; None where time is up."""
        copy = self.copies.get()
        try:
            tests = copy.tests(part, fault.path)
            key, now = (*fault[:3], copy.digest([fault.path])), copy.digest(tests)
            known = self.known.get(key)
            if known and (known["result"] in ("killed", "timed out") or known["tests"] == now):
                return known
            if time.monotonic() > self.until:
                return None
            original, text, before, after = planted(copy.path, fault)
            limit = self.limit(tests, copy) if tests else 0.0
            (copy.path / fault.path).write_text(text)
            result = copy.run(tests, limit) if tests else "untested"
            (copy.path / fault.path).write_text(original)
        finally:
            self.copies.put(copy)
        line = {"key": key, "line": fault.line, "before": before, "after": after, "tests": now, "result": result}
        with self.journal.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{result:10}{shown(line)}", flush=True)
        return line


def shown(line: Line) -> str:
    return f"{line['key'][0]}:{line['line']}  {line['before']}  ->  {line['after']}"


def report(chosen: Sequence[tuple[str, Fault]], lines: Sequence[Line | None]) -> bool:
    """Print the score by folder, and what survived; whether every fault was tried and every folder has enough."""
    listed = tomllib.loads((ROOT / "tests" / "mutation_equivalent.toml").read_text()).get("equivalent", [])
    equivalent = {(entry["file"], entry["before"], entry["after"]) for entry in listed}
    results: dict[str, list[str]] = {part: [] for part, _ in chosen}
    for (part, _), line in zip(chosen, lines, strict=True):
        if line is not None:
            same = (line["key"][0], line["before"], line["after"]) in equivalent
            result = "equivalent" if same and line["result"] == "survived" else line["result"]
            results[part].append(result)
            if result in ("survived", "untested"):
                print(f"{result:10}{shown(line)}")
    words = ("killed", "timed out", "survived", "untested", "equivalent")
    print(f"\n{'':20}{'faults':>11}" + "".join(f"{word:>11}" for word in words) + f"{'score':>9}")
    scores = []
    for part, found in results.items():
        counts = [found.count(word) for word in words]
        scores.append((counts[0] + counts[1]) / max(1, len(found) - counts[4]))
        print(f"{part:20}{len(found):11}" + "".join(f"{count:11}" for count in counts) + f"{scores[-1]:9.1%}")
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
