"""Archives: what is packed comes back, from the same bytes, and nothing else is ever read."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sklearn.linear_model import LogisticRegression
from support.studies import stored_run

from harness import archive as command
from harness import check
from harness.core.errors import HarnessError
from harness.core.inputs import Affine
from harness.core.packages import CONF
from harness.core.problem import Problem
from harness.core.wording import SATISFIED
from harness.data.stored import stored_source
from harness.models.canonical import zipped
from harness.models.files import save
from harness.store import archive as archives
from harness.store.archive import Archive, unpack
from harness.store.plain import to_plain
from harness.store.run import stored_runs, sweep_lines
from methods.nearest import Nearest

MODELS = ("lr", "rf")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def made(problem_of: Callable[[str], Problem], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of two models, judged and scored; the last one goes on, and its last line is torn."""
    folder = tmp_path_factory.mktemp("made") / "toy"
    for model, method in [("lr", "nearest"), ("rf", "nearest"), ("rf", "other")]:
        run = stored_run(folder, problem_of(model), model, method)
        if method == "other":
            (run.path / "done").unlink()
    with (run.path / "rows.jsonl").open("a") as file:
        file.write('{"schema": 3, "fact')
    lines = [{"cell": f"results/toy/answers/{run.path.name}", "label": run.label, "state": "done"}]
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "20261124.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "report.html").write_text("is made of the answers")
    assert command.main(["pack", str(folder)]) == 0
    return folder


@pytest.fixture
def study(made: Path, tmp_path: Path) -> Path:
    """A study that a test may change."""
    return shutil.copytree(made, tmp_path / "results" / "toy")


@pytest.fixture
def packed(made: Path, tmp_path: Path) -> Path:
    """The archive of the study, in a folder that has nothing else."""
    file = tmp_path / "elsewhere" / "results" / "archives" / "toy.ceh"
    file.parent.mkdir(parents=True)
    return shutil.copyfile(made.parent / "archives" / "toy.ceh", file)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_packed_comes_back(study: Path, packed: Path, tmp_path: Path) -> None:
    """To the byte, but for a torn line, memory addresses in estimators, and what is made of the answers."""
    unpack(packed, tmp_path / "again")
    before, after = files_of(study), files_of(tmp_path / "again")
    assert before.keys() - after.keys() == {"report.html"}
    differ = {name for name in after if after[name] != before[name]}
    torn = "answers/toy-rf-other-0123abcd/rows.jsonl"
    assert differ == {torn} | {name for name in after if name.endswith(".skops")}
    assert before[torn].startswith(after[torn])
    assert len(after[torn].splitlines()) == 2
    for ours, theirs in zip(stored_runs(study), stored_runs(tmp_path / "again"), strict=True):
        frame, _ = ours.factuals()
        np.testing.assert_array_equal(ours.classifier.score(frame), theirs.classifier.score(frame))


@pytest.mark.parametrize("named", [".", "..", "new"])
def test_an_archive_is_unpacked_into_the_folder_that_is_named(
    named: str, made: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inner := tmp_path / "outer" / "inner").mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert command.main(["unpack", str(packed), named]) == 0
    assert {*os.listdir(named)} - {"inner"} == {"answers", "sweeps"}
    assert Path.cwd() == inner
    assert len(stored_runs(inner / named)) == len(stored_runs(made))


def test_what_a_system_leaves_is_not_packed_and_other_files_are_named(
    study: Path, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As macOS does; the archive is that of the study without."""
    run = next((study / "answers").iterdir())
    for folder in (run, study / "sweeps"):
        (folder / ".DS_Store").touch()
    (study / "sweeps" / "old").mkdir()
    file = tmp_path / "toy.ceh"
    assert command.main(["pack", str(study), str(file)]) == 0
    assert file.read_bytes() == packed.read_bytes()
    (run / "notes.py").touch()
    assert command.main(["pack", str(study), str(file)]) == 1
    assert f"{run / 'notes.py'} is none of a study's files; move it away." in capsys.readouterr().err


def test_the_same_answers_give_the_same_bytes(
    study: Path, packed: Path, tmp_path: Path, problem_of: Callable[[str], Problem]
) -> None:
    """Also where another process saved the estimator, at other addresses, and from an unpacked folder."""
    unpack(packed, tmp_path / "again")
    other = copy.deepcopy(problem_of("lr").classifier.estimator)
    path = study / "answers" / "toy-lr-nearest-0123abcd" / "estimator.skops"
    before = path.read_bytes()
    save(other, path)
    assert path.read_bytes() != before
    for number, folder in enumerate([study, tmp_path / "again"]):
        file = tmp_path / f"{number}.ceh"
        assert command.main(["pack", str(folder), str(file)]) == 0
        archive, first = Archive(file), Archive(packed)
        assert archive.manifest | {"study": "toy"} == first.manifest
        assert archive.contents == first.contents
    (tmp_path / "again").rename(tmp_path / "toy")
    assert command.main(["pack", str(tmp_path / "toy")]) == 0
    assert (tmp_path / "archives" / "toy.ceh").read_bytes() == packed.read_bytes()


def test_estimators_and_questions_are_held_once(packed: Path) -> None:
    contents = Archive(packed).contents
    assert sum(name.startswith("estimators/") for name in contents) == len(MODELS)
    assert sum(b'"target"' in content for content in contents.values()) == 1


def test_tables_can_be_read_by_others(made: Path, packed: Path) -> None:
    with zipfile.ZipFile(packed) as file:
        answers = pd.read_parquet(io.BytesIO(file.read("answers.parquet")))
        scores = pd.read_parquet(io.BytesIO(file.read("scores.parquet")))
    assert answers["status"].tolist() == ["FOUND", "GAVE_UP"] * 3
    files = [pd.read_csv(path) for path in sorted(made.rglob("scores.csv"))]
    expected = pd.concat(files, ignore_index=True).astype(float)
    pd.testing.assert_frame_equal(scores[list(expected)].astype(float), expected, check_exact=True)


def test_a_study_is_packed_and_unpacked_from_within_its_folders(
    study: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where paths do not end in names: into ``archives`` beside the study, beside ``archives``, and read there."""
    monkeypatch.chdir(study)
    assert command.main(["pack", "."]) == 0
    assert (study.parent / "archives" / "toy.ceh").is_file()
    monkeypatch.chdir(packed.parent)
    assert command.main(["unpack", "toy.ceh"]) == 0
    assert (packed.parents[1] / "toy" / "answers").is_dir()
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    capsys.readouterr()
    assert check.main(["."]) == 1
    assert "there are no stored answers under .; give a results folder" in "".join(capsys.readouterr())


def test_readers_find_the_archive(study: Path, packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the name of the study, by the folder of all, and by its own path; the copy that is read stays as it is."""
    check.main([str(study)])
    expected = capsys.readouterr().out
    home = packed.parents[1]
    (home / "toy").mkdir()  # as tables and pages leave it
    for name in (home / "toy", packed, home):
        check.main([str(name)])
        assert capsys.readouterr().out == expected
    copied = stored_runs(home / "toy")[0].path.parents[1]
    before = files_of(copied)
    verdicts = copied / "answers" / "toy-lr-nearest-0123abcd" / "verdicts.jsonl"
    verdicts.write_text("")
    check.main([str(packed)])
    assert verdicts.read_text() == ""
    assert before.keys() == files_of(copied).keys()
    assert sweep_lines(home / "toy") == sweep_lines(study)


def test_a_folder_goes_before_an_archive(study: Path, packed: Path) -> None:
    shutil.rmtree(study / "answers" / "toy-lr-nearest-0123abcd")
    shutil.copytree(study, packed.parents[1] / "toy")
    assert len(stored_runs(packed.parents[1] / "toy")) == 2
    with pytest.raises(HarnessError, match="holds answers already"):
        unpack(packed, packed.parents[1] / "toy")


def test_a_sweep_goes_on_from_an_archive(packed: Path) -> None:
    """Its folder may hold tables and records of sweeps, but no answers."""
    folder = packed.parents[1] / "toy"
    (folder / "sweeps").mkdir(parents=True)
    (folder / "sweeps" / "20261125.jsonl").write_text("")
    (folder / "answers" / "begun").mkdir(parents=True)
    assert archives.restore(folder) == packed
    runs = {run.path.name: run for run in stored_runs(folder)}
    assert len(runs) == 3
    assert not any(run.packed for run in runs.values())
    assert runs["toy-rf-other-0123abcd"].answered() == runs["toy-rf-nearest-0123abcd"].answered()
    assert len(list((folder / "sweeps").iterdir())) == 2
    assert archives.restore(folder) is None


def test_of_two_sweeps_that_unpack_at_once_neither_loses_answers(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that comes later finds the other's, which has gone on from them."""
    folder, unpack_all, first = packed.parents[1] / "toy", archives.Archive.unpack, []

    def late(self: archives.Archive, into: Path) -> None:
        unpack_all(self, into)
        if not first:
            first.append(into)
            archives.restore(folder)
            for run in stored_runs(folder):
                (run.path / "mine").touch()

    monkeypatch.setattr(archives.Archive, "unpack", late)
    archives.restore(folder)
    assert [(run.path / "mine").exists() for run in stored_runs(folder)] == [True] * 3


def test_verify_finds_an_answer_that_does_not_hold(study: Path, tmp_path: Path) -> None:
    path = study / "answers" / "toy-lr-nearest-0123abcd" / "rows.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert command.main(["pack", str(study), str(tmp_path / "good.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "good.ceh")]) == 0
    lines[0]["objective"] = 0.0  # better than it is
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("verdicts.jsonl", '"accepted"', '"invalid"', "1 stored verdicts are others than the checker's"),
        ("scores.csv", ",1.0,0.0", ",1.0,1.0", "its scores do not follow from its answers: optimal"),
        ("scores.csv", "\n", "\n99", "its scores are of other questions than its answers"),
        ("verdicts.jsonl", '"valid": true', '"valid": false', "1 stored verdicts are others than the checker's"),
        ("verdicts.jsonl", "\n", '\n{"factual": 99, "ce": 1, "verdict": "accepted"}\n', "1 stored verdicts are others"),
        ("verdicts.jsonl", "\n", '\n{"factual": 99, "ce": 1, "verdict": "none"}\n' * 2, "2 stored verdicts are others"),
        ("verdicts.jsonl", '"objective": ', '"objective": 1', "1 stored verdicts are others"),
        ("rows.jsonl", '"seconds": 0.1', '"seconds": 1e6', "1 questions are late by their seconds, or are not"),
        ("rows.jsonl", '"seconds": 0.1', '"seconds": -1.5', "1 questions took no time that there is"),
        ("rows.jsonl", '"fit_seconds": 0', '"fit_seconds": -1', "1 questions took no time that there is"),
        ("rows.jsonl", '"FOUND"', '"OPTIMAL"', "1 answers are said to be optimal, and their bounds do not say so"),
        ("rows.jsonl", '"FOUND"', '"GAVE_UP"', "1 answers have a counterfactual and are said to have none"),
        ("rows.jsonl", '"GAVE_UP"', '"OPTIMAL"', "1 answers have a counterfactual and are said to have none"),
        ("cell.json", '"time_limit": 5', '"time": 5', "its limit of time is not on record"),
        ("rows.jsonl", '"ce": 1', '"ce": 7', "answers to 1 questions are not numbered from 1 to"),
        ("scores.csv", ",coverage,", ",covered,", "its scores have no columns coverage"),
        (
            "scores.csv",
            "nearest/distance/l1",
            "nearest/distance/l9",
            "no columns nearest/distance/l1, of metrics",
        ),
    ],
)
def test_verify_finds_what_does_not_follow_from_the_answers(
    file: str, old: str, new: str, said: str, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study / "answers" / "toy-lr-nearest-0123abcd" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("act", ["verify", "merge"])
@pytest.mark.parametrize(
    "changes", [{"space": []}, {"also_on": 5}, {"config": {"method": ["x"], "time_limit": 5}}], ids=list("abc")
)
def test_what_describes_no_run_is_one_sentence(
    act: str, changes: dict[str, Any], study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever of it a reader stumbles over."""
    meta = stored_runs(study)[0].path / "cell.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | changes))
    file, into = str(tmp_path / "toy.ceh"), ["--into", str(tmp_path / "both.ceh")]
    assert command.main(["pack", str(study), file]) == 0
    capsys.readouterr()
    assert command.main([act, file, *into * (act == "merge")]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(rf"{re.escape(file)}: damaged inside \(.+\); get or pack it again\.", said)


@pytest.mark.parametrize(("cpu", "told"), [("AMD EPYC", True), ("AMD EPYC 9B14", False), (None, False)])
def test_a_processor_without_a_model_is_told(
    cpu: str | None, told: bool, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As clouds mask them: what takes twice as long may have the same name."""
    for run in stored_runs(study):
        run.update(environment={"cpu": cpu, "cores": 2})
    assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 0
    assert ("AMD EPYC is no model's name: seconds of any such" in capsys.readouterr().out) == told


def test_runs_are_not_lost_by_packing_others(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a study that was narrowed, say; of code that changed the same runs take the place of those before."""
    file = tmp_path / "toy.ceh"
    assert command.main(["pack", str(study), str(file)]) == 0
    before = file.read_bytes()
    first = stored_runs(study)[0].path
    moved = first.rename(first.with_name(first.name[:-8] + "fedcba98"))
    assert command.main(["pack", str(study), str(file)]) == 0
    shutil.rmtree(moved)
    before = file.read_bytes()
    capsys.readouterr()
    assert command.main(["pack", str(study), str(file)]) == 1
    lost = f"{file} has runs that would be lost: {moved.name}; give another name, merge, or give --replace."
    assert (capsys.readouterr().err.strip(), file.read_bytes()) == (lost, before)
    other = tmp_path / "less.ceh"
    assert command.main(["pack", str(study), str(other)]) == 0
    assert command.main(["merge", str(other), "--into", str(file)]) == 1
    assert (lost in capsys.readouterr().err, file.read_bytes()) == (True, before)
    assert command.main(["merge", str(other), str(file), "--into", str(file)]) == 0
    assert len(Archive(file).metas()) == len(stored_runs(study)) + 1
    assert command.main(["pack", str(study), str(file), "--replace"]) == 0
    assert len(Archive(file).metas()) == len(stored_runs(study))


def test_verify_finds_who_is_left_out_and_should_not_be(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question that is said to be none leaves every count, and the model says that it is one."""
    run = stored_runs(study)[0]
    lines = [json.loads(line) for line in (run.path / "rows.jsonl").read_text().splitlines()]
    lines[0] |= {"status": "UNSUPPORTED", "row": None, "objective": None, "detail": SATISFIED}
    (run.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 1
    assert "1 people are left out as having what is wanted, of whom the model says" in capsys.readouterr().err


@pytest.mark.parametrize("satisfied", ["leave_out", "ask"])
def test_verify_finds_who_is_no_answer_to_themselves(
    satisfied: str, problem: Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of whom the model says what is wanted: left out of what is asked, or answered by somebody else."""
    run = stored_run(tmp_path / "toy", problem, "lr", "one", satisfied=satisfied)
    frame, targets = run.factuals()
    content = problem.train.loc[problem.valid(problem.train)].iloc[[0]].set_axis(frame.index[:1])
    people = pd.concat([content, frame.iloc[1:]])
    objective = Nearest().objective(problem)
    rows, meta = run.rows(), {**run.meta, "also_on": ()}
    run.reset()
    run.start(meta, problem.space, problem.classifier, targets, objective, people)
    itself = {name: value.item() if hasattr(value, "item") else value for name, value in content.iloc[0].items()}
    rows[0] |= {"row": itself, "objective": 0.0}
    run.append(rows)
    assert command.main(["pack", str(tmp_path / "toy"), str(tmp_path / "toy.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 1
    said = capsys.readouterr().err
    assert "1 answers are the person asked about" in said
    assert ("1 people have what is wanted, and are not left out" in said) == (satisfied == "leave_out")


def test_verify_finds_columns_that_nobody_computes(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By which the run would be ranked where another names the metric."""
    run = stored_runs(study)[0]
    run.update(scored={"metrics": {"names": ["elsewhere.away"]}, "population": "accepted"})
    scores = pd.read_csv(run.path / "scores.csv")
    kept = scores[[name for name in scores if "/" not in name]]
    for name in ("distance/gower", "distance/cost"):
        kept.assign(**{f"nearest/{name}": 0.0}).to_csv(run.path / "scores.csv", index=False)
        assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
        assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 1
        assert f"columns of metrics that it does not name: {name}" in capsys.readouterr().err


def test_verify_finds_another_estimator_within_an_archive(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [run for run in stored_runs(study) if run.meta["model"] == "rf"]
    runs[1].update(threshold=0.9)
    assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "toy.ceh")]) == 1
    assert "has another estimator than" in capsys.readouterr().err


def test_verify_judges_what_is_in_the_file(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And not what became of the copy in the cache."""
    path = study / "answers" / "toy-lr-nearest-0123abcd" / "rows.jsonl"
    path.write_text(path.read_text().replace('"objective": ', '"objective": -', 1))
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    for copied in stored_runs(tmp_path / "bad.ceh"):
        for name in ("rows.jsonl", "scores.csv"):
            (copied.path / name).unlink()
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1
    assert "1 of them do not hold" in capsys.readouterr().out


def test_nothing_that_an_archive_names_is_imported(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A metric of a module beside it; unpacked, it is the user's own."""
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('ran').touch()\nraise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    stored_runs(study)[0].update(scored={"metrics": {"names": ["evil.metric"]}, "population": "accepted"})
    assert command.main(["pack", str(study), str(tmp_path / "toy.ceh")]) == 0
    command.main(["verify", str(tmp_path / "toy.ceh")])
    assert not (tmp_path / "ran").exists()
    assert "an archive's own are not imported" in caplog.text


def test_nothing_that_an_archive_names_is_fetched(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither written anywhere, nor read outside the data folder; what a choice of this installation names may be."""
    asked: list[str] = []
    monkeypatch.setattr("harness.data.sources._get", lambda url: asked.append(url) or b"")
    monkeypatch.setenv("CE_HARNESS_DATA", str(tmp_path / "data"))
    run = next(run for run in stored_runs(study) if run.meta["model"] == "lr")
    (run.path / "estimator.skops").unlink()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    ours = yaml.safe_load((CONF / "model" / "published_lr.yaml").read_text())["sources"]["compas_carla"]
    nested = yaml.safe_load((CONF / "experiment" / "ce_ocl_table5" / "f_published.yaml").read_text())
    theirs = next(entry["published"] for entry in nested["dataset"]["causality"].values())
    assert stored_source("an equation", theirs, foreign=True).urls == tuple(theirs["urls"])
    for number, source in enumerate([
        {"file": str(tmp_path / "evil.csv"), "sha256": "0" * 64, "urls": ["http://localhost/evil"]},
        {"file": "../secret.csv", "sha256": hashlib.sha256(b"a\n1\n").hexdigest()},
        {"file": "inside.csv", "sha256": "0" * 64, "urls": ["http://localhost/evil"]},
        ours,
    ]):  # fmt: skip
        run.update(config={**run.meta["config"], "model": {"family": "lr", "sources": {"toy": source}}})
        file = tmp_path / f"{number}.ceh"
        assert command.main(["pack", str(study), str(file)]) == 0
        copied = next(run for run in stored_runs(file) if run.meta["model"] == "lr")
        with pytest.raises(HarnessError, match=r"only files of the data folder|is not in .*data"):
            _ = copied.classifier
    assert asked == ours["urls"]
    assert not (tmp_path / "evil.csv").exists()


def test_verify_finds_distances_that_are_none_of_the_answers(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By which methods are ranked; and scores where an answer has no verdict."""
    run = stored_runs(study)[0]
    run.update(scored={"metrics": {"names": ["metrics.proximity.l1"]}, "population": "accepted"})
    assert command.main(["pack", str(study), str(tmp_path / "good.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "good.ceh")]) == 0
    path, verdicts = run.path / "scores.csv", run.path / "verdicts.jsonl"
    scores = pd.read_csv(path)
    assert scores["distance/l1"].notna().any()
    scores.assign(**{"nearest/distance/l1": scores["nearest/distance/l1"] / 2}).to_csv(path, index=False)
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1
    assert "its scores do not follow from its answers: nearest/distance/l1\n" in capsys.readouterr().err
    verdicts.write_text(verdicts.read_text().splitlines(keepends=True)[0])
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1
    assert "it has scores, and 1 answers without a verdict" in capsys.readouterr().err
    rows = run.path / "rows.jsonl"
    rows.write_text(rows.read_text().splitlines(keepends=True)[0])
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1
    assert "it has scores, and 1 people without answers" in capsys.readouterr().err


def test_a_run_that_is_damaged_inside_is_one_sentence(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are judged."""
    path = stored_runs(study)[0].path / "factuals.jsonl"
    path.write_text(path.read_text().replace('"row": {', '"row": {"other": 1, "', 1).replace('"target"', '"wanted"'))
    assert command.main(["pack", str(study), str(tmp_path / "bad.ceh")]) == 0
    assert command.main(["verify", str(tmp_path / "bad.ceh")]) == 1
    said = capsys.readouterr()
    assert "toy-lr-nearest-0123abcd cannot be judged, as what is stored of it is damaged" in said.err
    assert said.out.count("toy/rf/") == 2


def test_damage_is_found_wherever_it_is(packed: Path, tmp_path: Path) -> None:
    """A byte that is changed, or all that follows it lost: one sentence, or nothing that matters."""
    whole, good = packed.read_bytes(), Archive(packed)
    file, said = tmp_path / "damaged.ceh", []
    places = np.linspace(0, len(whole) - 1, 60, dtype=int)
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        for content in (bytes(changed), whole[:place]):
            file.write_bytes(content)
            try:
                read = Archive(file)
            except HarnessError as fault:
                said.append(str(fault))
            else:
                assert (read.manifest, read.contents, read.records) == (good.manifest, good.contents, good.records)
    assert len(said) > 1.8 * len(places)
    assert all(sentence.startswith(str(file)) and "\n" not in sentence for sentence in said)


@pytest.mark.parametrize("kind", ["text", "empty", "zip", "skops", "none"])
def test_a_foreign_file_is_one_sentence(
    kind: str, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "foreign.ceh"
    if kind == "skops":
        shutil.copyfile(next(study.rglob("*.skops")), file)
    elif kind != "none":
        file.write_bytes({"text": b"rows", "empty": b"", "zip": zipped({"../evil": b"", "a": b"b"})}[kind])
    for act in ("verify", "unpack"):
        assert command.main([act, str(file)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(file) in said
    assert not (tmp_path / "foreign").exists()


def altered(file: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> Path:
    """A copy of an archive with a changed manifest and members, and sums that fit."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    manifest["members"] = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    other = file.with_name("altered.ceh")
    other.write_bytes(zipped({"manifest.json": json.dumps(manifest).encode(), **members}, {"manifest.json"}))
    return other


def test_a_member_that_was_exchanged_is_named(packed: Path) -> None:
    """Also where the zip is sound, as its own sums are those of the new member."""
    with zipfile.ZipFile(packed) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["answers.parquet"] = members["groups.parquet"]
    packed.write_bytes(zipped(members, {"manifest.json"}))
    with pytest.raises(HarnessError, match=re.escape("it is damaged in answers.parquet")):
        Archive(packed)


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", ".", "", "a/b", "a\\b", "C:evil", "a\0b"])
@pytest.mark.parametrize("place", ["run", "file", "sweep", "study"])
def test_no_name_leads_out_of_the_folder(name: str, place: str, packed: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        run, files = next(iter(manifest["runs"].items()))
        if place == "run":
            manifest["runs"][name] = manifest["runs"].pop(run)
        elif place == "file":
            files[name] = files.pop("factuals.jsonl")
        elif place == "sweep":
            manifest["sweeps"] = {name: next(iter(manifest["sweeps"].values()))}
        else:
            manifest["study"] = name

    with pytest.raises(HarnessError, match="is no name of a file or folder"):
        unpack(altered(packed, change), tmp_path / "out" / "toy")
    assert not (tmp_path / "out").exists()


def _pickled(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    files = next(iter(manifest["runs"].values()))
    files["model.pkl"] = files["factuals.jsonl"]


def _code(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    files = next(iter(manifest["runs"].values()))
    files["evil.py"] = files["factuals.jsonl"]


def _module_among_sweeps(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    manifest["sweeps"]["evil.so"] = next(iter(manifest["sweeps"].values()))


def _loud_pickle(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    files = next(iter(manifest["runs"].values()))
    files["MODEL.PKL"] = files["factuals.jsonl"]


def _run_among_sweeps(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    manifest["sweeps"]["cell.json"] = next(iter(manifest["sweeps"].values()))


def _of_authors(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    """An easy model of one's own where the others' is read from its authors' file."""
    config = {"model": {"family": "lr", "sources": {}}, "dataset": {}}
    _described_by(manifest, members, dict.fromkeys(archives.DESCRIBED, "x") | {"config": config})


def _model_elsewhere(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    """Where merging would not compare it."""
    files = next(iter(manifest["runs"].values()))
    files["model.onnx"] = files["factuals.jsonl"]
    known = dict.fromkeys(archives.DESCRIBED, "x") | {"config": {}, "model_file": {"file": "model.onnx"}}
    _described_by(manifest, members, known)


def _later(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    manifest["version"] = 2


def _lacking(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    members.pop(next(name for name in members if name.startswith("estimators/")))


def _elsewhere(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    next(iter(manifest["runs"].values()))["factuals.jsonl"] = "verdicts"


def _other_content(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    table = pa.table({"sha256": ["0" * 64], "content": [b"evil"]})
    pq.write_table(table, file := io.BytesIO(), use_dictionary=False)
    members["contents.parquet"] = file.getvalue()


def _of_nothing(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    _described_by(manifest, members, dict.fromkeys(archives.DESCRIBED, "x"))


def _undescribed(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    _described_by(manifest, members, {})


def _described_by(manifest: dict[str, Any], members: dict[str, bytes], meta: dict[str, Any]) -> None:
    files, content = next(iter(manifest["runs"].values())), json.dumps(meta).encode()
    files["cell.json"] = hashlib.sha256(content).hexdigest()
    table = pq.read_table(io.BytesIO(members["contents.parquet"])).to_pydict()
    added = {"sha256": [*table["sha256"], files["cell.json"]], "content": [*table["content"], content]}
    pq.write_table(pa.table(added), file := io.BytesIO(), use_dictionary=False)
    members["contents.parquet"] = file.getvalue()


def _listed_as_text(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    manifest["runs"] = "all"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_pickled, "model.pkl would be run where it is read"),
        (_code, "evil.py would be run where it is read"),
        (_module_among_sweeps, "evil.so would be run where it is read"),
        (_loud_pickle, "MODEL.PKL would be run where it is read"),
        (_run_among_sweeps, "has the name of a run's"),
        (_of_authors, "estimator.skops of .* is of a paper's authors, and no archive holds it"),
        (_model_elsewhere, "model.onnx of .* is a model, and not among its models"),
        (_later, "is in version 2"),
        (_lacking, "is not in it"),
        (_elsewhere, "is not in it"),
        (_other_content, "has another content"),
        (_undescribed, "has no dataset, model, method, seed, config, space, inputs, classes, threshold, n_coun"),
        (_of_nothing, "describes no run"),
        (_listed_as_text, "or damaged"),
    ],
)
def test_an_archive_that_was_made_up_is_refused(change: Any, said: str, packed: Path) -> None:
    with pytest.raises(HarnessError, match=said):
        Archive(altered(packed, change))


def _xz(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    members[f"models/{'0' * 64}.onnx.xz"] = lzma.compress(bytes(20_000_000))


def _dictionary(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    pq.write_table(pa.table({"run": ["x" * 1000] * 100_000}), file := io.BytesIO(), compression="zstd")
    members["answers.parquet"] = file.getvalue()


def _prefixes(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    table, encoding = pa.table({"run": ["x" * 1000] * 100_000}), {"run": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, file := io.BytesIO(), use_dictionary=False, column_encoding=encoding)
    members["answers.parquet"] = file.getvalue()


def _page(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    table = pa.table({"run": ["x" * 1000] * 20_000})
    pq.write_table(table, file := io.BytesIO(), compression="zstd", use_dictionary=False)
    members["answers.parquet"] = file.getvalue()


def _nothing(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    table = pa.table({"run": pa.nulls(1_000_000, pa.string())})
    pq.write_table(table, file := io.BytesIO(), use_dictionary=False)
    members["answers.parquet"] = file.getvalue()


def _one_content_with_many_names(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    content = "x" * 400_000
    table = pq.read_table(io.BytesIO(members["contents.parquet"])).to_pydict()
    digest = hashlib.sha256(content.encode()).hexdigest()
    added = {"sha256": [*table["sha256"], digest], "content": [*table["content"], content.encode()]}
    pq.write_table(pa.table(added), file := io.BytesIO(), use_dictionary=False, compression="zstd")
    members["contents.parquet"] = file.getvalue()
    for files in manifest["runs"].values():
        files |= {f"note{number}.txt": digest for number in range(10)}


@pytest.mark.parametrize("change", [_xz, _dictionary, _prefixes, _page, _nothing, _one_content_with_many_names])
def test_a_small_file_does_not_become_a_large_one(change: Any, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes are allowed here."""
    monkeypatch.setattr(archives, "UNPACKED", 10_000_000)
    file = altered(packed, change)
    assert file.stat().st_size < 1_000_000
    with pytest.raises(HarnessError, match=r"unpacked|would have|written with|files would have"):
        Archive(file)


def test_members_that_are_compressed_are_refused(packed: Path) -> None:
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"models/{'0' * 64}.onnx.xz", bytes(1_000_000))
    with pytest.raises(HarnessError, match="compresses them otherwise"):
        Archive(packed)


def test_a_manifest_that_is_unpacked_whole_whatever_is_read_is_refused(packed: Path) -> None:
    with zipfile.ZipFile(packed) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(name, content, zipfile.ZIP_BZIP2 if name == "manifest.json" else zipfile.ZIP_STORED)
    with pytest.raises(HarnessError, match="compresses them otherwise"):
        Archive(packed)


@pytest.mark.parametrize(
    ("limit", "said"),
    [("LARGEST", "more than 3 bytes"), ("MEMBERS", "more than 3 files"), ("LISTED", "damaged")],
)
def test_nothing_is_read_beyond_a_limit(limit: str, said: str, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, limit, 3)
    with pytest.raises(HarnessError, match=said):
        Archive(packed)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(packed: Path) -> None:
    with zipfile.ZipFile(packed, "a") as file:
        file.writestr("answers.parquet", b"another")
    with pytest.raises(HarnessError, match="two of one name"):
        Archive(packed)


def test_a_pickle_is_not_packed(study: Path, tmp_path: Path) -> None:
    run = stored_runs(study)[0]
    run.update(model_file={"file": "model.pkl", "trusted": True})
    (run.path / "model.pkl").write_bytes(b"\x80")
    with pytest.raises(HarnessError, match="runs code when it is read"):
        archives.pack("toy", {"run": run.path}, [], tmp_path / "toy.ceh")


def test_what_cannot_be_read_again_is_not_packed(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive that is there already stays."""
    file = tmp_path / "toy.ceh"
    file.write_text("earlier")
    with monkeypatch.context() as patched:
        patched.setattr(archives, "UNPACKED", 10_000)
        assert command.main(["pack", str(study), str(file), "--replace"]) == 1
    assert "than 10,000 bytes unpacked" in capsys.readouterr().err
    assert command.main(["pack", str(study), str(file)]) == 1  # it may be one of a later version
    assert "get or pack it again. Or give another name, or --replace." in capsys.readouterr().err
    cell = next(study.rglob("cell.json"))
    cell.write_text(cell.read_text()[:-9])
    assert command.main(["pack", str(study), str(file), "--replace"]) == 1
    assert f"{cell} is damaged" in capsys.readouterr().err
    assert file.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["toy.ceh"]


def test_a_published_model_is_named_not_packed(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from the folder of downloads, by its sha256; without it the scores can still be read."""
    run = next(run for run in stored_runs(study) if run.meta["model"] == "lr")
    space, classifier = run.space, run.classifier
    names = [source.feature for source in classifier.inputs if type(source) is Affine]
    kept = tuple(source for source in classifier.inputs if type(source) is Affine)
    text = pd.DataFrame([[0.5] * len(names) + [-0.25]], columns=[*names, "intercept"]).to_csv(index=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lr.csv").write_text(text)
    source = {"file": "lr.csv", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    estimator = LogisticRegression()
    estimator.coef_, estimator.intercept_ = np.full((1, len(names)), 0.5), np.array([-0.25])
    estimator.classes_, estimator.n_features_in_ = np.array([0, 1]), len(names)
    save(estimator, run.path / "estimator.skops")
    config = {**run.meta["config"], "model": {"family": "lr", "sources": {"toy": source}}}
    run.update(config=config, inputs=to_plain(kept))
    expected = run.classifier.score(run.factuals()[0])
    file = tmp_path / "other" / "toy.ceh"
    file.parent.mkdir()
    assert command.main(["pack", str(study), str(file)]) == 0
    assert sum(name.startswith("estimators/") for name in Archive(file).contents) == 1
    monkeypatch.setenv("CE_HARNESS_DATA", str(tmp_path / "data"))
    copied = next(run for run in stored_runs(file) if run.meta["model"] == "lr")
    assert not (copied.path / "estimator.skops").exists()
    np.testing.assert_array_equal(copied.classifier.score(copied.factuals()[0]), expected)
    (tmp_path / "data" / "lr.csv").unlink()
    with pytest.raises(HarnessError, match=re.escape("lr.csv")):
        _ = copied.classifier
    assert len(copied.rows()) == 2
    assert space == copied.space
