"""The loop over result folders that reports, tables and figures share."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest
from support.studies import stored_run

from harness import archive, report, tables
from harness.cli.environment import environment
from harness.core.errors import HarnessError
from harness.core.problem import Problem
from harness.reports.rebuild import each, folders_of


def test_a_folder_that_fails_is_told_and_the_rest_is_done(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A refusal and a full disk are a sentence each, and exit code 1; without them it is 0."""
    done = []

    def act(folder: Path) -> None:
        if folder.name == "refused":
            raise HarnessError("there is nothing here.")
        if folder.name == "full":
            raise OSError(28, "No space left on device", "report.html")
        done.append(folder.name)

    with pytest.raises(SystemExit) as ended:
        each(act, [tmp_path / name for name in ("refused", "full", "fine")])
    assert (ended.value.code, done) == (1, ["fine"])
    told = "there is nothing here.\nreport.html cannot be written (No space left on device); make room, or allow it.\n"
    assert capsys.readouterr().err == told
    with pytest.raises(SystemExit) as ended:
        each(act, [tmp_path / "fine"])
    assert ended.value.code == 0


def told(command: ModuleType, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code or message of a command line, in the folder where the test is."""
    monkeypatch.setattr("sys.argv", ["", *arguments])
    try:
        command.main()
    except SystemExit as ended:
        return ended.code
    return 0


def test_tables_and_reports_of_an_archive_are_those_of_its_folder(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is named by its study or by its path; they go to the folder of the study."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    study = tmp_path / "first" / "results" / "toy"
    for method in ("one", "two"):
        run = stored_run(study, problem, "lr", method, threads=1, jobs=1)
        run.update(environment=environment({"threads": 1, "jobs": 1}), data_sha256="0", fingerprint=method)
    packed = tmp_path / "second" / "results" / "archives" / "toy.ceh"
    assert archive.main(["pack", str(study), str(packed)]) == 0
    made = {}
    for place, name in [("first", "results/toy"), ("second", "study=toy"), ("second", "results/archives/toy.ceh")]:
        monkeypatch.chdir(tmp_path / place)
        for command in (tables, report):
            assert told(command, name, monkeypatch=monkeypatch) == 0
        files = [Path("results/toy") / file for file in ("table.md", "table.csv", "table.tex", "report.html")]
        made[name] = [file.read_text() for file in files]
        shutil.rmtree("results/toy")
    assert made["results/toy"] == made["study=toy"] == made["results/archives/toy.ceh"]


def test_a_damaged_archive_is_a_sentence_to_every_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results/archives").mkdir(parents=True)
    Path("results/archives/toy.ceh").write_text("no archive")
    said = "results/archives/toy.ceh is no archive of answers, or damaged"
    assert str(told(tables, "--all", monkeypatch=monkeypatch)).startswith(said)
    for command in (tables, report):
        assert told(command, "study=toy", monkeypatch=monkeypatch) == 1
        assert capsys.readouterr().err.startswith(said)
    assert not Path("results/toy").exists()


@pytest.mark.parametrize(
    "arguments", [("output_dir=there", "experiment=a,b", "c"), ("study=a,b", "c", "output_dir=there")]
)
def test_the_folder_of_studies_is_said_before_or_after_them(arguments: tuple[str, ...]) -> None:
    """As on the command line of a sweep; a folder by its path stays where it is."""
    assert folders_of(arguments) == [Path("there/a"), Path("there/b"), Path("c")]
    assert folders_of(["study=a"]) == [Path("results/a")]
    several = ["output_dir=one", "study=a", "output_dir=two", "study=b"]
    assert folders_of(several) == [Path("one/a"), Path("two/b")]
