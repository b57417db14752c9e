"""The weekly command: what it runs, how long, and what its page says, with small parts in place of hours of tests."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from support.pages import ROOT

TESTS = """
import pytest

def test_good(record_property):
    record_property("cases", 7)

def test_bad():
    assert False

def test_absent():
    pytest.skip("needs Chromium")
"""


@pytest.fixture
def weekly() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tests" / "weekly.py"))


def test_each_slow_test_is_in_one_part(weekly: dict[str, Any]) -> None:
    found = weekly["parts"](ROOT, 3)
    names = [part.name for part in found]
    assert len({*names}) == len(names)
    assert [name for name in names if not (ROOT / name).is_file()] == []
    slow = {
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "tests").rglob("test_*.py")
        if "pytest.mark.slow" in p.read_text()
    }
    assert slow <= {*names}
    assert {part.section for part in found} == {*weekly["MINUTES"]}


def test_the_page_says_what_ran_and_what_did_not(weekly: dict[str, Any], tmp_path: Path) -> None:
    """Tests that pass, fail and are skipped, a command that fails, and one that takes too long."""
    (tmp_path / "test_some.py").write_text(TESTS)
    part, run = weekly["Part"], weekly["run"]
    pytest_ = (sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path / "test_some.py"))
    results = [
        run(part("slow", "some tests", pytest_), tmp_path, 60, os.environ),
        run(
            part("mutation", "noted", (sys.executable, "-c", "print('score 91 %'); exit(1)")), tmp_path, 60, os.environ
        ),
        run(part("fuzz", "endless", (sys.executable, "-c", "import time; time.sleep(60)")), tmp_path, 0.5, os.environ),
    ]
    rows = [line.split(" | ") for line in weekly["page"](results, 3, "abc").splitlines() if line.startswith("| ")][1:]
    assert [(row[1], row[2], *row[4:]) for row in rows] == [
        ("some tests", "failed", "1", "1", "1 |"),
        ("noted", "failed", "–", "–", "– |"),
        ("endless", "timed out", "–", "–", "– |"),
    ]
    text = weekly["page"](results, 3, "abc")
    for said in ("Seed 3.", "- 1 times: needs Chromium", "test_some::test_bad", "test_good: cases 7", "score 91 %"):
        assert said in text
    assert results[2].seconds < 20


def test_what_has_ended_is_not_run_again(
    weekly: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the seed is another."""
    ran: list[str] = []
    inside = weekly["main"].__globals__
    monkeypatch.setitem(inside, "state", lambda: "abc")
    monkeypatch.setitem(
        inside, "parts", lambda *_: [weekly["Part"]("fuzz", "one", ()), weekly["Part"]("slow", "two", ())]
    )
    monkeypatch.setitem(
        inside,
        "run",
        lambda part, *_: ran.append(part.name) or weekly["Result"](part.section, part.name, "passed", 1.0),
    )
    for given in (["--only", "fuzz"], [], [], ["--seed", "9"]):
        assert weekly["main"]([*given, "--folder", str(tmp_path)] if "--seed" in given else
                              [*given, "--seed", "3", "--folder", str(tmp_path)]) == 0  # fmt: skip
    assert ran == ["one", "two", "one", "two"]
    assert "| slow | two | passed | 1 |" in (tmp_path / "page.md").read_text()
