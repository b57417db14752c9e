"""An archive of another machine is calibrated: its questions asked again here, and its answers left as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.sweep import runner

from harness import archive as command
from harness.cli import job
from harness.cli.calibrate import _measured
from harness.cli.environment import machine
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.evaluation.pace import calibrations, machine_of
from harness.execution.pool import Outcome
from harness.store.archive import Archive, answers_of, pack
from harness.store.run import StoredRun, stored_runs

METHODS = ("ce_ocl", "growing_spheres", "nearest")
RATIOS = {"CeOcl": 0.5, "GrowingSpheres": 0.6, "Nearest": 0.45}
NARROW = ("dataset=pima", "model=lr", "method=nearest", "n_factuals=9", "study=small")
SWEEP = ("-m", "dataset=pima", "model=lr", f"method={','.join(METHODS)}", "n_factuals=9", "study=small")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study as another machine's, whose answers took 10 ms of the processor each."""
    folder = tmp_path_factory.mktemp("calibrate")
    done = runner(folder)(*SWEEP)
    assert done.returncode == 0, done.stderr
    for run in stored_runs(folder / "results" / "small"):
        run.update(environment={**run.meta["environment"], "cpu": "Faraway", "cores": 8})
        lines = [{**json.loads(line), "cpu_seconds": 0.01} for line in (run.path / "rows.jsonl").open()]
        (run.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def file(swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    assert command.main(["pack", str(swept / "results" / "small"), str(tmp_path / "small.ceh")]) == 0
    return tmp_path / "small.ceh"


Change = Callable[[int, Outcome], Outcome]


def answering(runs: list[StoredRun], ratios: dict[str, float], change: Change) -> type:
    """A pool that answers as is stored, in other times; ``change`` makes the outcome of each question another."""
    by_method = {run.meta["method"].replace("_", ""): run for run in runs}

    class Replayed:
        def explain(self, method: Any, problem_of: Any, asked: pd.DataFrame, *_: Any) -> Iterator[Outcome]:
            run = by_method[type(method).__name__.lower()]
            rows = {row["factual"]: row for row in run.rows()}
            for place, factual in enumerate(asked.index):
                problem = problem_of(factual)
                assert problem.target == run.factuals()[1][factual]
                row = rows[factual]
                parts = {"objective": row["objective"], "bound": row["bound"]}
                answer = Answer(Status(row["status"]), row["row"], Reason(row["reason"]), **parts)
                cpu = 0.01 * ratios[type(method).__name__]
                yield change(place, Outcome(factual=factual, explanation=Explanation((answer,)), cpu_seconds=cpu))

    return Replayed


def unchanged(place: int, outcome: Outcome) -> Outcome:
    return outcome


def calibrated(
    file: Path, monkeypatch: pytest.MonkeyPatch, ratios: dict[str, float], change: Change = unchanged
) -> int:
    pool = answering(stored_runs(file), ratios, change)
    monkeypatch.setattr("harness.cli.calibrate.Pool", pool)
    return command.main(["calibrate", str(file), "--methods", *METHODS])


def test_the_factor_is_kept_beside_the_answers(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the questions that are answered alike; it goes along where the archive is merged, and packed again."""

    def change(place: int, outcome: Outcome) -> Outcome:
        if place == 0:  # another answer: no measure of the same work
            other = Explanation.none(1, Status.INFEASIBLE, Reason.PROOF)
            return Outcome(factual=outcome.factual, explanation=other, cpu_seconds=9.0)
        return outcome if place > 1 else Outcome(factual=outcome.factual, explanation=outcome.explanation)

    before = {run.path.name: (run.path / "rows.jsonl").read_bytes() for run in stored_runs(file)}
    assert calibrated(file, monkeypatch, RATIOS, change) == 0
    here = machine_of({"environment": machine()})
    ratios = "ce_ocl 0.5, growing_spheres 0.6, nearest 0.45"
    said = f"{file}: seconds of Faraway, 8 cores × 0.5 are as those of this machine, {here}: {ratios}\n"
    assert capsys.readouterr().out.endswith(said)
    assert {run.path.name: (run.path / "rows.jsonl").read_bytes() for run in stored_runs(file)} == before
    (kept,) = calibrations(answers_of(file))
    assert (kept.factor, set(kept.questions.values())) == (pytest.approx(0.5), {7})
    assert command.main(["merge", str(file), str(file), "--into", str(tmp_path / "two.ceh")]) == 0
    assert calibrations(answers_of(tmp_path / "two.ceh")) == [kept]
    assert command.main(["unpack", str(file), str(tmp_path / "small")]) == 0
    assert command.main(["pack", str(tmp_path / "small"), str(tmp_path / "again.ceh")]) == 0
    assert (tmp_path / "again.ceh").read_bytes() == file.read_bytes()


def test_what_others_write_meanwhile_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the file as it is when all is asked, and not of a copy of it that somebody has tidied."""
    runs = {run.path.name: run.path for run in stored_runs(file)}

    def change(place: int, outcome: Outcome) -> Outcome:
        if "small-again" not in Archive(file).manifest["runs"]:
            pack("small", {**runs, "small-again": next(iter(runs.values()))}, [], file)
            for run in stored_runs(file):
                (run.path / "rows.jsonl").unlink()
        return outcome

    assert calibrated(file, monkeypatch, RATIOS, change) == 0
    assert set(Archive(file).manifest["runs"]) == {*runs, "small-again"}
    assert all(Archive(file).content(run, "rows.jsonl") for run in runs)


def test_a_run_that_went_on_elsewhere_is_of_no_one_machine(swept: Path, tmp_path: Path) -> None:
    """Its seconds are compared with nobody's, and so it stays."""
    shutil.copytree(swept, tmp_path / "two")
    runs = {run.meta["method"]: run for run in stored_runs(tmp_path / "two" / "results" / "small")}
    before, run = len(runs["nearest"].rows()), runs["nearest"]
    lines = (run.path / "rows.jsonl").read_text().splitlines(keepends=True)
    (run.path / "rows.jsonl").write_text("".join(lines[:-1]))
    (run.path / "done").unlink()
    done = runner(tmp_path / "two")(*NARROW)
    assert done.returncode == 0, done.stderr
    assert len(run.rows()) == before
    job._go_on_here(run)
    assert machine_of(run.meta) == f"Faraway, 8 cores and {machine_of({'environment': machine()})}"
    assert machine_of(runs["ce_ocl"].meta) == "Faraway, 8 cores"


def test_a_run_of_two_machines_makes_no_factor(swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(swept / "results" / "small", tmp_path / "both")
    for run in stored_runs(tmp_path / "both"):
        run.update(also_on=["Further away, 2 cores"])
    assert command.main(["pack", str(tmp_path / "both"), str(tmp_path / "both.ceh")]) == 0
    assert command.main(["calibrate", str(tmp_path / "both.ceh"), "--methods", *METHODS]) == 1
    assert "has no runs of all of ce_ocl, growing_spheres, nearest by another machine" in capsys.readouterr().err


def _few(place: int, outcome: Outcome) -> Outcome:
    return outcome if place < 4 else Outcome(factual=outcome.factual, explanation=outcome.explanation)


@pytest.mark.parametrize(
    ("ratios", "change", "why"),
    [
        ({**RATIOS, "Nearest": 0.39}, unchanged, "differ too much (ce_ocl 0.5, growing_spheres 0.6, nearest 0.39)"),
        (RATIOS, _few, "ce_ocl has 4 questions that both machines answer alike in measurable time, 5 are needed"),
        ({**RATIOS, "CeOcl": 0.09}, unchanged, "ce_ocl has 0 questions"),
    ],
)
def test_what_makes_no_factor_is_one_sentence(
    ratios: dict[str, float], change: Change, why: str, file: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """And the archive stays as it was."""
    before = file.read_bytes()
    assert calibrated(file, monkeypatch, ratios, change) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{file} is not calibrated: ")
    assert why in said
    assert file.read_bytes() == before


def test_what_ended_with_its_limit_is_no_measure(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five of nine questions of a method were late, or ended by the limit; tasks that are not named are not asked."""
    shutil.copytree(swept / "results" / "small", tmp_path / "late")
    run = next(run for run in stored_runs(tmp_path / "late") if run.meta["method"] == "nearest")
    lines = [json.loads(line) for line in (run.path / "rows.jsonl").open()]
    assert len(lines) == 9
    lines[:5] = [
        {**line, "late": True} if k < 2 else {**line, "reason": "time limit"} for k, line in enumerate(lines[:5])
    ]
    (run.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = tmp_path / "late.ceh"
    assert command.main(["pack", str(tmp_path / "late"), str(file)]) == 0
    assert calibrated(file, monkeypatch, RATIOS) == 1
    assert "nearest has 4 questions that both machines answer alike" in capsys.readouterr().err
    assert command.main(["calibrate", str(file), "--methods", *METHODS, "--tasks", "pima/rf"]) == 1
    assert "has no runs of all of ce_ocl, growing_spheres, nearest by another machine" in capsys.readouterr().err


def test_runs_of_this_machine_and_other_methods_need_none(
    swept: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["calibrate", str(file)]) == 1
    shutil.copytree(swept / "results" / "small", tmp_path / "own")
    for run in stored_runs(tmp_path / "own"):
        run.update(environment=machine())
    assert command.main(["pack", str(tmp_path / "own"), str(tmp_path / "own.ceh")]) == 0
    assert command.main(["calibrate", str(tmp_path / "own.ceh"), "--methods", *METHODS]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "has no runs of all of ce_ocl, dice_random, nearest by another machine than this one" in first
    assert "has no runs of all of ce_ocl, growing_spheres, nearest by another machine" in second


def test_other_data_are_refused(swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(swept / "results" / "small", tmp_path / "other")
    for run in stored_runs(tmp_path / "other"):
        run.update(data_sha256="0")
    assert command.main(["pack", str(tmp_path / "other"), str(tmp_path / "other.ceh")]) == 0
    assert command.main(["calibrate", str(tmp_path / "other.ceh"), "--methods", *METHODS]) == 1
    assert "is of other data than pima here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "given", "said"),
    [
        ("method", {"_target_": "pathlib.Path.touch", "self": "ran"}, "has a method with other settings than this"),
        ("method", {"_target_": "methods.nearest.Nearest", "columns": ["Age"]}, "has a method with other settings"),
        ("dataset", {"sources": [{"file": "../ran.csv"}]}, "is of ../ran.csv, which no choice of this installation"),
        ("dataset", {"sources": [{"file": "a.csv", "sha256": "0", "urls": ["http://evil"]}]}, "a.csv is not in"),
        ("dataset", {"published": {"file": "ran", "sha256": "0", "urls": ["http://evil"]}}, "is not calibrated: "),
    ],
)
def test_what_an_archive_names_is_not_built(
    part: str, given: dict[str, Any], said: str, swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Its methods are those of this installation, and so are its data; nothing is fetched."""
    monkeypatch.setattr("harness.data.sources._get", lambda url: (tmp_path / "ran").touch())
    shutil.copytree(swept / "results" / "small", tmp_path / "evil")
    monkeypatch.chdir(tmp_path)
    for run in stored_runs(tmp_path / "evil"):
        config = {**run.meta["config"], "factuals": "published"}
        run.update(config={**config, part: {**config[part], **given} if part == "dataset" else given})
    assert command.main(["pack", str(tmp_path / "evil"), str(tmp_path / "evil.ceh")]) == 0
    assert command.main(["calibrate", str(tmp_path / "evil.ceh"), "--methods", *METHODS]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("busy", [{}, {"jobs": 2}, {"beside": 2}])
def test_what_ran_beside_others_makes_no_factor(busy: dict[str, int]) -> None:
    """Two that share caches take longer each."""
    row = {"late": False, "reason": "finished", "jobs": 1, "beside": 1, **busy}
    assert _measured([row], 0.01) == (not busy)
