"""What is too long for every change: slow tests, faults, fuzz, browser, mutation; each by itself, then one page.

    uv run python tests/weekly.py                            # all, seven and a half hours at most
    uv run python tests/weekly.py --only fuzz --minutes 5    # a section, for so long

Each part is a process with a time limit and a log in ``.weekly``. What has ended is not run again for the same files,
seed and minutes, so an interrupted command goes on where it stopped; ``--again`` forgets. The page is
``.weekly/page.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-m", "slow")
FAULTS = ("tests/cli/test_faults.py",)
BROWSER = ("tests/reports/test_browser.py", "tests/reports/test_site.py")
MINUTES = {"faults": 60, "fuzz": 90, "browser": 20, "slow": 90, "mutation": 180}
COUNTS = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Part:
    """A command of a section."""

    section: str
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What came of a part: how it ended, in how many seconds, how many tests, why some were skipped, what it noted."""

    section: str
    name: str
    ended: str
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[str] = ()
    notes: Sequence[str] = ()


def parts(root: Path, seed: int, minutes: float | None = None) -> list[Part]:
    """Everything there is to run; slow tests a file each, so that little is lost when interrupted."""
    files = sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))
    fuzzed = [file for file in files if file.endswith("fuzz.py")]
    slow = [file for file in files if "pytest.mark.slow" in (root / file).read_text()]
    found = {"faults": FAULTS, "fuzz": fuzzed, "browser": BROWSER}
    found["slow"] = [file for file in slow if file not in {*FAULTS, *BROWSER, *fuzzed}]
    seeded = ("--hypothesis-seed", str(seed))
    made = [Part(name, file, (*PYTEST, *seeded, file)) for name, each in found.items() for file in each]
    hours = 0.9 * (minutes or MINUTES["mutation"]) / 60  # the rest is for its report
    command = (sys.executable, "tests/mutation.py", "--seed", str(seed), "--hours", f"{hours:.2f}")
    return [*made, Part("mutation", "tests/mutation.py", command)]


def run(part: Part, folder: Path, seconds: float, environment: Mapping[str, str]) -> Result:
    """Run a part; what it leaves running is ended with it."""
    stem = re.sub(r"\W+", "_", f"{part.section}_{part.name}")
    report = folder / f"{stem}.xml"
    report.unlink(missing_ok=True)
    more = (f"--junitxml={report}",) if "pytest" in part.command else ()
    began, ended = time.monotonic(), "timed out"
    with (folder / f"{stem}.log").open("w") as log:
        process = subprocess.Popen(
            [*part.command, *more], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            ended = {0: "passed", 5: "nothing to run"}.get(process.wait(seconds), "failed")
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    spent, text = round(time.monotonic() - began, 1), (folder / f"{stem}.log").read_text(errors="replace")
    if not report.exists():
        return Result(part.section, part.name, ended, spent, notes=[] if more else text.splitlines()[-12:])
    return Result(part.section, part.name, ended, spent, **read(report))


def read(report: Path) -> dict[str, object]:
    """Counts, reasons of what was skipped, failures and noted properties in a JUnit file."""
    counts, reasons, failures, notes = Counter[str](), Counter[str](), [], []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        skips = [str(skip.get("message")) for skip in case.iter("skipped")]
        bad = case.find("failure") is not None or case.find("error") is not None
        counts["failed" if bad else "skipped" if skips else "passed"] += 1
        reasons.update(skips)
        failures += [name] if bad else []
        notes += [f"{name}: {each.get('name')} {each.get('value')}" for each in case.iter("property")]
    return {"counts": dict(counts), "reasons": dict(reasons), "failures": failures, "notes": notes}


def page(results: Sequence[Result], seed: int, commit: str) -> str:
    """What ran, in Markdown."""
    lines = [f"# Weekly tests of {commit}", "", f"Seed {seed}.", ""]
    lines += ["| section | part | ended | seconds | passed | failed | skipped |", "|---|---|---|---:|---:|---:|---:|"]
    for each in results:
        counted = " | ".join(str(each.counts.get(name, "–")) for name in COUNTS)
        lines.append(f"| {each.section} | {each.name} | {each.ended} | {each.seconds:g} | {counted} |")
    failures = [f"- {name}" for each in results for name in each.failures]
    reasons = sum((Counter(each.reasons) for each in results), Counter[str]())
    skips = [f"- {count} times: {' '.join(reason.split())[:200]}" for reason, count in reasons.most_common()]
    notes = [f"    {note}" for each in results for note in each.notes]
    for title, found in (("Failures", failures), ("Why tests were skipped", skips), ("Notes", notes)):
        lines += ["", f"## {title}", "", *(found or ["None."])]
    return "\n".join(lines) + "\n"


def state() -> str:
    """The commit, and a digest of what differs from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout

    changes = git("diff", "HEAD")
    digest = f"-{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else ""
    return f"{git('rev-parse', '--short', 'HEAD').strip()}{digest}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run what is too long for every change, and write one page.")
    parser.add_argument("--only", action="append", choices=list(MINUTES), help="a section; several times (all)")
    parser.add_argument("--minutes", type=float, help=f"of each section ({MINUTES})")
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%W")), help="of what is drawn (this week)")
    parser.add_argument("--folder", type=Path, default=ROOT / ".weekly", help="logs and page (%(default)s)")
    parser.add_argument("--again", action="store_true", help="run what has ended before, too")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    commit, journal = state(), given.folder / "journal.jsonl"
    if given.again:
        journal.unlink(missing_ok=True)
    key = {"commit": commit, "seed": given.seed, "minutes": given.minutes}
    known = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    results = {line["name"]: Result(**line["result"]) for line in known if line["key"] == key}
    chosen = [each for each in parts(ROOT, given.seed, given.minutes) if each.section in (given.only or MINUTES)]
    left = {name: 60 * (given.minutes or minutes) for name, minutes in MINUTES.items()}
    for place, part in enumerate(chosen):
        if part.name not in results:
            later = sum(each.section == part.section and each.name not in results for each in chosen[place:])
            share = max(60.0, left[part.section] / later if part.section == "fuzz" else left[part.section])
            seeds = {"FUZZ_SEED": str(given.seed), "FUZZ_SECONDS": f"{0.4 * share:.0f}"}  # a file has two tests
            result = run(part, given.folder, share, {**os.environ, **seeds})
            left[part.section] -= result.seconds
            results[part.name] = result
            with journal.open("a") as file:
                file.write(json.dumps({"key": key, "name": part.name, "result": asdict(result)}) + "\n")
            print(f"{part.section:10}{part.name:60}{result.ended:16}{result.seconds:8.1f} s", flush=True)
        (given.folder / "page.md").write_text(page([*results.values()], given.seed, commit))
    print(given.folder / "page.md")
    return int(any(each.ended in ("failed", "timed out") for each in results.values()))


if __name__ == "__main__":
    sys.exit(main())
