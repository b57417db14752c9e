"""A sweep says how far it is: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from omegaconf import DictConfig, OmegaConf
from support.tables import GRANTED, started

from harness.cli import ending, job, main, process, progress, sweep
from harness.cli.process import BEGAN, CELLS
from harness.core.errors import HarnessError
from harness.core.objective import Objective, Term
from harness.evaluation.study import EQUATIONS
from metrics import _example as loans

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


TALKS = """
import sys
from harness.cli.process import results, talk
talk()
for _ in range(10000):
    results.info("\u2013 " + "x" * 100)
print("the end", file=sys.stderr)
"""


@pytest.mark.parametrize("reader", ["all", "head", "full"])
def test_results_that_nobody_can_read_stop_nothing(reader: str) -> None:
    """Nor does a terminal without dashes; a full disk does, as nothing more can be stored."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    with open("/dev/full" if reader == "full" else os.devnull, "w") as full:
        into = full if reader == "full" else subprocess.PIPE
        command = [sys.executable, "-c", TALKS]
        talks = subprocess.Popen(command, stdout=into, stderr=subprocess.PIPE, text=True, env=environment)
    lines = []
    if talks.stdout is not None:
        lines = talks.stdout.readlines(1 if reader == "head" else -1)
        talks.stdout.close()
    assert talks.stderr is not None
    said = talks.stderr.read()
    if reader == "full":
        assert talks.wait() == 1
        assert "No space left" in said
        return
    assert (talks.wait(), said) == (0, "the end\n")
    assert set(lines) == {"\\u2013 " + "x" * 100 + "\n"}
    assert (len(lines) == 10000) == (reader == "all")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of six runs one was asked and one skipped, a hundred seconds after the sweep began."""
    monkeypatch.setenv(CELLS, "6")
    monkeypatch.setenv(BEGAN, str(time.time() - 100))
    monkeypatch.setattr(progress, "_last", -progress.OFTEN)
    path = tmp_path / "sweep.jsonl"
    path.write_text("".join(json.dumps({"state": state}) + "\n" for state in ("done", "skipped")))
    return path


def test_what_is_left_follows_the_pace_of_runs_that_were_asked(record: Path) -> None:
    """One run in 100 s: four more take 400 s; half a run more done, two thirds of the pace: 3.5 runs at 66.7 s."""
    assert progress.seconds_left(2, 1) == pytest.approx(400, abs=1)
    assert progress.seconds_left(2, 1, 0.5) == pytest.approx(3.5 * 100 / 1.5, abs=1)
    assert progress.seconds_left(2, 0) is None
    assert progress.seconds_left(0, 0, 0.6, 0.5) == pytest.approx(5.4 * 100 / 0.1, abs=1)  # half was there before
    assert progress.seconds_left(0, 0, 0.5, 0.5) is None


def test_a_run_that_goes_on_says_how_much_was_there(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the answers of before would be part of the pace."""
    shown = []

    def bar(*given: object) -> None:
        shown.append(given)
        raise InterruptedError

    monkeypatch.setattr(job, "Progress", bar)
    monkeypatch.setattr(job, "_seen", lambda *_: [])
    task: Any = SimpleNamespace(factuals=range(4))
    plain = {"rescore": False, "force": False}
    for begun, before in ((True, 2), (False, 0)):
        stored: Any = SimpleNamespace(path=record, done=False, started=begun, answered=lambda: {7, 9})
        with pytest.raises(InterruptedError):
            job._brought_up_to_date(stored, task, None, [], {}, plain, record, "a/run")
        assert shown.pop() == (record, "a/run", 4, before)


def test_methods_say_whether_they_see_structural_equations() -> None:
    """As Causal Recourse does; a run's tables mark who sees what others do not."""
    plain = {"reference": "train"}
    seen = [job._seen(SimpleNamespace(sees_equations=says), plain) for says in (True, False)]
    assert [EQUATIONS in each for each in seen] == [True, False]


def test_a_terminal_has_one_bar_for_the_whole_sweep(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.Progress(record, "[3/6] pima/lr/nearest", 4) as bar:
        bar.update(1)
        time.sleep(0.15)  # tqdm draws ten times a second
        bar.update(1)
    drawn = terminal.getvalue()
    assert "[3/6] pima/lr/nearest:  33%" in drawn
    assert "0/4 factuals, about 6.7 min to go" in drawn
    assert "42%" in drawn
    assert "2/4 factuals, about 3.9 min to go" in drawn


def test_a_log_has_a_line_now_and_then(
    record: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not twice within half a minute, and not after the last run; by a clock that stands still with no machine."""
    logging.getLogger("harness").propagate = True
    now, began = [0.0], time.time()
    monkeypatch.setenv(BEGAN, str(began - 100))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: began))
    said = "2 of 6 runs in 1.7 min, about 6.7 min to go"
    with caplog.at_level(logging.INFO, "harness"):
        for now[0], lines in ((0.0, 1), (29.0, 1), (30.0, 2), (59.0, 2)):
            progress.say_what_is_left(record)
            assert caplog.messages == [said] * lines
        with record.open("a") as file:
            file.write('{"state": "done"}\n' * 4)
        now[0] = 90.0
        progress.say_what_is_left(record)
    assert len(caplog.messages) == 2


def test_the_end_of_a_sweep_says_its_sentence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where an earlier run's answers are damaged."""

    def damaged(*_: object) -> int:
        raise HarnessError("cell.json is damaged")

    logging.getLogger("harness").propagate = True
    monkeypatch.setattr("harness.cli.ending.sum_up", damaged)
    monkeypatch.setattr(sweep, "study_name", lambda *_: "some")
    with pytest.raises(SystemExit), caplog.at_level(logging.INFO, "harness"):
        sweep.Sweep().on_run_end(OmegaConf.create({"study": "some", "hydra": {}}))
    assert caplog.messages == ["cell.json is damaged"]


def chosen(typed: list[str], experiment: str | None = None) -> DictConfig:
    """Settings of which Hydra says what was typed and chosen."""
    told = {"overrides": {"task": typed}, "runtime": {"choices": {"experiment": experiment}}}
    return OmegaConf.create({"hydra": told})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (chosen(["n_factuals=2"]), True),  # of the method that is there without a word
        (chosen(["n_factuals=2"], "compas"), False),
        (chosen(["dataset=pima"], "compas"), False),
        (chosen(["method=nearest"], "compas"), True),
    ],
)
def test_whether_methods_were_chosen_is_known(
    config: DictConfig, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method of an experiment's own list may refuse all."""
    heard = []
    monkeypatch.setattr(ending.summary, "write", lambda *given: heard.append(given[-1]) or 0)
    monkeypatch.setattr(ending.tables, "write", lambda *given, **named: "")
    monkeypatch.setattr(ending, "log_study", lambda *given: None)
    monkeypatch.setattr(ending.tracking, "page", lambda *given: "")
    ending._show(config, tmp_path, [started(tmp_path, loans.problem, loans.factual, [GRANTED])])
    assert heard == [said]


def test_a_server_that_is_gone_at_the_end_is_said_once_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(*_: object) -> None:
        raise HarnessError("no server answers")

    logging.getLogger("harness").propagate = True
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    monkeypatch.setattr(ending, "log_study", gone)
    monkeypatch.setattr(ending.tracking, "page", gone)
    monkeypatch.setenv(process.SWEEP, "1")
    with caplog.at_level(logging.INFO, "harness"):
        assert ending._show(chosen([]), tmp_path, [run]) == 1
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["no server answers"]


def test_one_run_of_all_seeds_is_summed_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a method that draws nothing, whose further seeds are the same run."""
    (tmp_path / "some" / "sweeps").mkdir(parents=True)
    lines = [{"cell": "one", "state": "done"}, {"cell": "one", "state": "skipped"}, {"cell": "two", "state": "done"}]
    (tmp_path / "some" / "sweeps" / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv(process.SWEEP, "1")
    shown: list[Any] = []
    monkeypatch.setattr(ending, "_show", lambda config, folder, finished: shown.append(finished) or 0)
    assert ending.sum_up(OmegaConf.create({"output_dir": str(tmp_path)}), "some") == 0
    assert [[run.path.name for run in finished] for finished in shown] == [["one", "two"]]


def test_the_last_sweep_is_the_last_whatever_the_clock_says(tmp_path: Path) -> None:
    """After a sweep of another time zone, or of a clock that was put back since."""
    assert sweep._after_all(tmp_path)[:8] > "20260101"
    for name in ("20200101-000000-aaaaaa", "29990101-235959-ffffff"):
        (tmp_path / f"{name}.jsonl").touch()
    assert sweep._after_all(tmp_path).startswith("29990102-000000-")


def test_runs_that_fail_alike_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the data of all could not be downloaded; each is counted."""
    logging.getLogger("harness").propagate = True
    (tmp_path / "some" / "sweeps").mkdir(parents=True)
    lines = [
        {"label": label, "state": "failed", "message": why} for label, why in zip("abc", ("x", "y", "x"), strict=True)
    ]
    (tmp_path / "some" / "sweeps" / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv(process.SWEEP, "1")
    assert ending.sum_up(OmegaConf.create({"output_dir": str(tmp_path)}), "some") == 3
    assert [record.getMessage() for record in caplog.records] == ["a, c failed: x", "b failed: y"]


@pytest.mark.parametrize(("more", "told"), [([], ""), (["force=True"], " without force=true")])
def test_who_interrupts_is_told_how_to_go_on(
    more: list[str], told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same command begins anew where it asks for that."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    logging.getLogger("harness").propagate = True
    monkeypatch.setattr("harness.cli.main.hydra.main", interrupted)
    monkeypatch.setattr(sys, "argv", ["harness", "model=lr", *more])
    monkeypatch.setattr("harness.cli.main.talk", lambda: None)
    with pytest.raises(SystemExit) as ended, caplog.at_level(logging.INFO, "harness"):
        main.main()
    assert ended.value.code == 130
    assert f"the same command{told} goes on from there" in caplog.text


def test_no_terminal_has_no_bar(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress(record, "[3/6] pima/lr/nearest", 4) as bar:
        bar.update(4)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("value", "typed", "name"),
    [
        (202401, ["study=2024_01"], "2024_01"),
        (True, ["model=lr", "study=true"], "true"),
        ("mine", ["study=mine"], "mine"),
        ("1e3", ["study='1e3'"], "1e3"),
        (None, ["study=null"], "chosen"),
    ],
)
def test_a_study_is_named_as_it_was_typed(value: Any, typed: list[str], name: str) -> None:
    hydra: Any = SimpleNamespace(
        overrides=SimpleNamespace(task=typed), runtime=SimpleNamespace(choices={"experiment": "chosen"})
    )
    assert process.study_name(value, hydra) == name


def test_where_none_exists_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a run's line nor in what a sweeper optimises; where all are so, there is nothing else to say."""
    scores = pd.DataFrame({"returned": [1, 1, 0], "valid": [1, 1, 0], "coverage": [1.0, 1.0, 0.0]})
    scores = scores.assign(impossible=[0.0, 0.0, 1.0], seconds=[0.1, 0.3, 5.0])
    monkeypatch.setattr(job.scoring, "refusal", lambda stored: None)
    line = "done: 3 factuals, none exists for 1, coverage 1.00, validity 1.00, median 0.2 s"
    rows = list[dict[str, Any]]()
    stored: Any = SimpleNamespace(rows=lambda: rows)
    assert job._line(stored, scores, "done", 3) == line
    assert job._merit(scores, {"coverage": 1.0, "seconds": -1.0}) == pytest.approx(1.0 - 0.2)
    assert job._line(stored, scores.iloc[2:], "done", 1) == "done: 1 factuals, none exists for 1"
    why = {"status": "FAILED", "reason": "crash", "detail": "Traceback\nImportError: no torch"}
    rows += [{**why, "factual": 1, "ce": ce} for ce in (1, 2)] + [{**why, "factual": 2, "status": "GAVE_UP", "ce": 1}]
    assert job._line(stored, scores, "done", 3) == f"{line}, 2 answers failed: crash, ImportError: no torch"


def test_why_a_method_refuses_is_said_in_whole_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later lines of a sweep have its first part."""
    monkeypatch.setattr(job.scoring, "refusal", lambda stored: "the library is absent; install this and that")
    monkeypatch.setattr(job, "_told", set())
    scores = pd.DataFrame({"returned": [0]})
    stored: Any = None
    assert job._line(stored, scores, "done", 1) == "done: UNSUPPORTED, the library is absent; install this and that"
    assert job._line(stored, scores, "done", 1) == "done: UNSUPPORTED, the library is absent"


def test_what_is_no_setting_is_left_to_hydra() -> None:
    """So that what else is wrong, such as a sweeper that is not installed, is said."""
    hydra = {"sweeper": {"params": {"method.a": "1,2"}}, "overrides": {"task": ["seed=3"]}}
    config = OmegaConf.create({"hydra": hydra})
    assert sweep._jobs(config) == [["method.a=1", "seed=3"], ["method.a=2", "seed=3"]]
    config.hydra.sweeper.params = {"method.a 2020-01-31T10:00": "1,2"}
    assert sweep._jobs(config) == []


def test_a_sweep_ends_with_the_proofs_that_others_contradict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever was asked before; of every task, as its pages are of all."""
    logging.getLogger("harness").propagate = True
    monkeypatch.setattr(ending, "log_study", lambda *given: None)
    monkeypatch.setattr(ending.tracking, "page", lambda *given: "")
    monkeypatch.setenv(process.SWEEP, "1")
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED], method="exact")
    run.put_objective(Objective((Term("l1"),)))
    run.append([run.rows()[0] | {"bound": 9.0}])
    rival = started(tmp_path, loans.problem, loans.factual, [GRANTED], method="rival")
    with caplog.at_level(logging.INFO, "harness"):
        assert ending._show(chosen([]), tmp_path, [rival]) == 1
    (said,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert said.startswith("loans / tree: exact: it proves of question 0 that no objective is below 9, and ")
    other = started(tmp_path, loans.linear, loans.factual, [GRANTED], method="rival", model="lr")
    assert ending._show(chosen([]), tmp_path, [other]) == 1
    assert all(said in (tmp_path / name).read_text() for name in ("summary.md", "table.md"))
