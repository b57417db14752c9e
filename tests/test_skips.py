"""What CI says of skipped tests: each reason has to be on a list, and what an extra is lacking for can be run again."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import pytest

from tests.conftest import FirstCases

CI = Path(__file__).parents[1] / ".ci"
LISTS = [str(CI / "skips.txt"), str(CI / "skips-extras.txt")]
TESTS = """
import pytest

def test_refused():
    pytest.skip("refused: it takes no model")

@pytest.mark.parametrize("word", ["a b", "a@b"])
@pytest.mark.skip(reason={reason})
def test_marked(word):
    pass
"""
WHOLE = "import pytest\npytest.importorskip('absent_library', reason={reason})\n"


def skipped(text: str, reason: str, folder: Path) -> Path:
    """Pytest's report of a test file that skips for a reason."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_some.py").write_text(text.replace("{reason}", repr(reason)))
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", "--rootdir", str(folder), str(folder)]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=folder, env=alone, capture_output=True, check=False)
    return report


@pytest.mark.parametrize("text", [TESTS, WHOLE], ids=["a test", "a file"])
@pytest.mark.parametrize(("reason", "code"), [("onnx is in the extra 'onnx'", 0), ("it is hard", 1)])
def test_a_reason_on_no_list_fails(text: str, reason: str, code: int, tmp_path: Path) -> None:
    report = skipped(text, reason, tmp_path)
    counted = runpy.run_path(str(CI / "skips.py"))
    assert counted["main"]([str(report), *LISTS]) == code
    assert counted["main"]([str(report), LISTS[0]]) == 1
    assert reason in counted["reasons"](report)


@pytest.mark.parametrize(
    ("text", "tests"),
    [(TESTS, ["test_some.py::test_marked[a b]", "test_some.py::test_marked[a@b]"]), (WHOLE, ["test_some.py"])],
    ids=["a test", "a file"],
)
def test_what_lacks_an_extra_is_named_as_pytest_names_it(
    text: str, tests: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = skipped(text, "onnx is in the extra 'onnx'", tmp_path)
    assert runpy.run_path(str(CI / "skips.py"))["main"](["--tests", str(report), LISTS[1]]) == 0
    assert capsys.readouterr().out == "".join(f"tests/{test}\n" for test in tests)


def test_each_extra_is_run_by_one_of_the_commands() -> None:
    """But for those that need a cluster or hardware: else its tests would run nowhere."""
    project = (CI.parent / "pyproject.toml").read_text()
    extras = re.findall(r"^(\w+) = \[", project.split("[project.optional-dependencies]")[1].split("\n[")[0], re.M)
    (named,) = re.findall(r"^for extra in (.+); do$", (CI / "extras").read_text(), re.M)
    assert {*extras} - {*named.split()} == {"torch", "ray", "slurm", "optuna"}


def test_a_run_asks_first_cases_first_and_begins_nothing_when_its_time_is_over(tmp_path: Path) -> None:
    """So that a slow machine tries each test at least once, and what it does not is told and run elsewhere."""
    report = tmp_path / "report.xml"
    files = ["tests/core/test_numbers.py", "tests/core/test_conflict.py"]
    command = [sys.executable, "-m", "pytest", "-n", "1", f"--junitxml={report}", *files]

    def asked(*options: str) -> tuple[list[str], list[str]]:
        """The tests in the order of the run, and those that were not skipped."""
        subprocess.run([*command, *options], cwd=CI.parent, capture_output=True, check=True)
        cases = {f"{c.get('classname')}.{c.get('name')}": c for c in ElementTree.parse(report).iter("testcase")}
        return [*cases], [name for name, case in cases.items() if case.find("skipped") is None]

    run, done = asked()
    first = {name.partition("[")[0]: name for name in reversed(run)}.values()
    assert {name.split(".")[2] for name in first} == {"test_numbers", "test_conflict"}
    assert run == done
    assert {*run[: len(first)]} == {*first} != {*run}
    assert asked("--seconds=0") == (run, [])
    assert runpy.run_path(str(CI / "skips.py"))["main"]([str(report), LISTS[0]]) == 1
    assert runpy.run_path(str(CI / "skips.py"))["main"]([str(report), *LISTS]) == 0


def test_what_a_crashed_worker_has_ended_is_given_to_nobody() -> None:
    """Who is given a file without a test that is left reports nothing, and is given no other."""
    scheduler = FirstCases.__new__(FirstCases)
    one, other = mock.Mock(shutting_down=True), mock.Mock(shutting_down=True)
    scheduler.workqueue = OrderedDict({"c": {"c::x": False}})
    scheduler.assigned_work = {one: {"a": {"a::x": True}, "b": {"b::x": True, "b::y": False}}, other: {}}
    assert scheduler.remove_node(one) == "b::y"
    assert [*scheduler.workqueue] == ["c", "b"]


def test_the_slowest_are_listed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.xml"
    cases = (("tests.a", "quick", "0.2"), ("tests.b", "slow", "31.6"), ("tests.a", "middling", "4"))
    listed = "".join(f'<testcase classname="{where}" name="{name}" time="{time}"/>' for where, name, time in cases)
    report.write_text(f"<testsuite>{listed}</testsuite>")
    assert runpy.run_path(str(CI / "slowest.py"))["main"]([str(report), "2"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| 32 | `tests.b::slow` |", "| 4 | `tests.a::middling` |"]
