"""Archives that are merged: pieces of one study come together, and nothing that only has the same name."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.studies import stored_run

from harness import archive as command
from harness.core.errors import HarnessError
from harness.core.problem import Problem
from harness.evaluation.merging import merge
from harness.evaluation.pace import Calibration, calibrations
from harness.store import archive
from harness.store.run import StoredRun, stored_runs

Packed = Callable[[str], Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    """Packs the study in a folder."""

    def pack(name: str) -> Path:
        assert command.main(["pack", str(tmp_path / name / "toy"), str(tmp_path / f"{name}.ceh")]) == 0
        return tmp_path / f"{name}.ceh"

    return pack


def begun_and_gone_on(problem: Problem, folder: Path) -> None:
    """A run in ``a`` with the first of its two answers, and whole in ``b``."""
    run = stored_run(folder / "a" / "toy", problem, "lr", "one")
    shutil.copytree(folder / "a", folder / "b")
    lines = (run.path / "rows.jsonl").read_text().splitlines(keepends=True)
    (run.path / "rows.jsonl").write_text(lines[0])
    (run.path / "done").unlink()


def test_pieces_come_together(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """As one that was never in pieces, whatever their order."""
    for name, methods in {"a": ("one", "two"), "b": ("two", "three"), "whole": ("one", "two", "three")}.items():
        for method in methods:
            stored_run(tmp_path / name / "toy", problem, "lr", method)
    files, into = [packed("a"), packed("b")], tmp_path / "merged.ceh"
    for order in (files, files[::-1]):
        assert merge(order, into) == [f"{into}: 3 runs of 2 archives"]
        assert into.read_bytes() == packed("whole").read_bytes()


def test_of_a_run_that_went_on_the_longer_one_is_kept(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    begun_and_gone_on(problem, tmp_path)
    for files in ([packed("a"), packed("b")], [packed("b"), packed("a")]):
        merge(files, tmp_path / "merged.ceh")
        (found,) = stored_runs(tmp_path / "merged.ceh")
        assert found.done
        assert len(found.rows()) == 2


def test_a_run_that_went_on_elsewhere_is_the_same_run(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """The longer one is kept, with the machine that it went on on."""
    begun_and_gone_on(problem, tmp_path)
    for longer in stored_runs(tmp_path / "b" / "toy"):
        longer.update(also_on=["elsewhere, 2 cores"])
    merge([packed("a"), packed("b")], tmp_path / "merged.ceh")
    (found,) = stored_runs(tmp_path / "merged.ceh")
    assert (len(found.rows()), found.meta["also_on"]) == (2, ["elsewhere, 2 cores"])


def test_a_run_that_went_on_keeps_the_set_up_that_was_measured(
    problem: Problem, tmp_path: Path, packed: Packed
) -> None:
    """The longer one may know a set-up that the other did not measure yet, but no other one."""
    begun_and_gone_on(problem, tmp_path)
    (begun,), (longer,) = (stored_runs(tmp_path / name / "toy") for name in "ab")
    longer.update(setup={"seconds": 2.0, "cpu_seconds": 1.0})
    assert len(merge([packed("a"), packed("b")], tmp_path / "merged.ceh")) == 1
    begun.update(setup={"seconds": 3.0, "cpu_seconds": 1.0})
    with pytest.raises(HarnessError, match="has other answers than"):
        merge([packed("a"), packed("b")], tmp_path / "merged.ceh")


def test_the_first_archive_has_precedence(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """Of runs that went on equally far, and of calibrations of the same machines."""
    for name in ("a", "b"):
        run = stored_run(tmp_path / name / "toy", problem, "lr", "one")
        scores = run.path / "scores.csv"
        scores.write_text(scores.read_text().replace(",0.1,", f",{name == 'b':.1f},"))
        (sweeps := tmp_path / name / "toy" / "sweeps").mkdir()
        ratios = dict.fromkeys(("one", "two", "three"), 2.0 if name == "b" else 0.5)
        ends = ("far", "near") if name == "a" else ("near", "far")  # turned round, it has another name
        made = Calibration(*ends, ratios, dict.fromkeys(ratios, 5))
        (sweeps / made.file).write_text(made.text)
        (sweeps / "1.jsonl").write_text("one\n" if name == "a" else "two\ntwo\n")
    for first, second in (("a", "b"), ("b", "a")):
        merge([packed(first), packed(second)], tmp_path / "merged.ceh")
        (found,) = stored_runs(tmp_path / "merged.ceh")
        assert (found.path / "scores.csv").read_bytes() == next((tmp_path / first).rglob("scores.csv")).read_bytes()
        assert [each.source for each in calibrations(found.path.parents[1])] == ["far" if first == "a" else "near"]
        kept = (found.path.parents[1] / "sweeps" / "1.jsonl").read_text()
        assert kept == ("one\n" if first == "a" else "two\ntwo\n")


def test_of_a_sweep_that_went_on_the_longer_record_is_kept(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    for name, record in {"a": "one\n", "b": "one\ntwo\n"}.items():
        stored_run(tmp_path / name / "toy", problem, "lr", "one")
        (sweeps := tmp_path / name / "toy" / "sweeps").mkdir()
        (sweeps / "1.jsonl").write_text(record)
    for files in ([packed("a"), packed("b")], [packed("b"), packed("a")]):
        merge(files, tmp_path / "merged.ceh")
        (found,) = stored_runs(tmp_path / "merged.ceh")
        assert (found.path.parents[1] / "sweeps" / "1.jsonl").read_text() == "one\ntwo\n"


def test_what_is_in_the_files_is_merged(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """And not what became of the copies that were unpacked to be read."""
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    stored_run(tmp_path / "b" / "toy", problem, "lr", "two")
    files = [packed("a"), packed("b")]
    for file in files:
        (copied,) = stored_runs(file)
        (copied.path / "rows.jsonl").unlink()
    merge(files, tmp_path / "merged.ceh")
    assert [len(run.rows()) for run in stored_runs(tmp_path / "merged.ceh")] == [2, 2]


def test_answers_by_other_code_do_not_replace_those_of_the_first(
    problem: Problem, tmp_path: Path, packed: Packed
) -> None:
    """One that differs in nothing but the code is left out, and said to be; within an archive both stay."""
    for name, codes in {"a": ("1", "2"), "b": ("2", "3")}.items():
        for code in codes:
            run = stored_run(tmp_path / name / "toy", problem, "lr", "one")
            run.path.rename(run.path.with_name(f"toy-lr-one-{code}"))
    into = tmp_path / "merged.ceh"
    _, said = merge([packed("a"), packed("b")], into)
    first, second = tmp_path / "a.ceh", tmp_path / "b.ceh"
    assert said == f"toy-lr-one-3 of {second} is left out, as {first} has its answers by other code"
    assert [run.path.name for run in stored_runs(into)] == ["toy-lr-one-1", "toy-lr-one-2"]


def test_answers_that_were_only_begun_give_way_to_finished_ones(
    problem: Problem, tmp_path: Path, packed: Packed
) -> None:
    for name, code in {"a": "1", "b": "2"}.items():
        run = stored_run(tmp_path / name / "toy", problem, "lr", "one")
        if name == "a":
            (run.path / "done").unlink()
        run.path.rename(run.path.with_name(f"toy-lr-one-{code}"))
    into = tmp_path / "merged.ceh"
    for files in (["a", "b"], ["b", "a"]):
        _, said = merge([packed(name) for name in files], into)
        assert said.startswith("toy-lr-one-1 of ")
        assert [run.path.name for run in stored_runs(into)] == ["toy-lr-one-2"]


def test_each_piece_is_compared_with_the_longest(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """Begun in one archive, and ended with other seconds in two."""
    for name in ("a", "b", "c"):
        run = stored_run(tmp_path / name / "toy", problem, "lr", "one")
        path = run.path / "rows.jsonl"
        first, second = path.read_text().splitlines(keepends=True)
        ended = {"a": "", "b": second, "c": second.replace('"seconds": 0.1', '"seconds": 0.2')}[name]
        path.write_text(first + ended)
        if name == "a":
            (run.path / "done").unlink()
    for files in ("abc", "cab", "bac"):
        with pytest.raises(HarnessError, match="has other answers than"):
            merge([packed(name) for name in files], tmp_path / "merged.ceh")
    assert len(merge([packed("a"), packed("b")], tmp_path / "merged.ceh")) == 1


@pytest.mark.parametrize("changed", ["GAVE_UP", "copied"])
def test_what_is_done_goes_on_no_further(changed: str, problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """Lines that give a competitor's answers up, or count them on another machine, do not replace them."""
    run = stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (other,) = stored_runs(tmp_path / "b" / "toy")
    if changed == "copied":
        other.update(environment={"cpu": "Faraway"})
    else:
        lines = [json.loads(line) for line in (run.path / "rows.jsonl").read_text().splitlines()]
        other.append([{**line, "status": changed, "row": None} for line in lines])
    for files in (["a", "b"], ["b", "a"]):
        with pytest.raises(HarnessError, match="has other answers than"):
            merge([packed(name) for name in files], tmp_path / "merged.ceh")


@pytest.mark.parametrize("longer", ["rows", "scores"])
def test_a_finished_run_is_not_replaced_by_a_longer_copy(
    longer: str, problem: Problem, tmp_path: Path, packed: Packed
) -> None:
    """A line that failed first, or one more column of scores, gives no precedence to what else a copy says."""
    run = stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (other,) = stored_runs(tmp_path / "b" / "toy")
    if longer == "rows":
        lines = (run.path / "rows.jsonl").read_text()
        failed = {**json.loads(lines.splitlines()[0]), "status": "FAILED", "row": None}
        (other.path / "rows.jsonl").write_text(f"{json.dumps(failed)}\n{lines}")
    text = (run.path / "scores.csv").read_text().replace(",0.1,", ",0.0,")
    wider = "\n".join(f"{line},0" for line in text.splitlines()) + "\n"
    (other.path / "scores.csv").write_text(wider if longer == "scores" else text)
    said = merge([packed("a"), packed("b")], tmp_path / "merged.ceh")
    assert said[1] == (
        f"toy-lr-one-0123abcd of {tmp_path / 'b.ceh'} has more lines or scores than {tmp_path / 'a.ceh'}, "
        "which is kept; name it first to have them"
    )
    (found,) = stored_runs(tmp_path / "merged.ceh")
    assert (found.path / "scores.csv").read_bytes() == (run.path / "scores.csv").read_bytes()


def test_variants_differ_in_constraints_alone(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """They merge, with learnt equations or without; but not with another scale, which distances are relative to."""
    for name, immutable in (("a", []), ("b", ["age"])):
        run = stored_run(tmp_path / name / "toy", problem, "lr", f"method_{name}")
        config = run.meta["config"]
        run.update(config={**config, "dataset": {**config["dataset"], "immutable": immutable}})
    run.update(equations=[{"feature": "savings", "model": "equation_0.skops"}])
    shutil.copyfile(run.path / "estimator.skops", run.path / "equation_0.skops")
    assert merge([packed("a"), packed("b")], tmp_path / "merged.ceh") == [
        f"{tmp_path / 'merged.ceh'}: 2 runs of 2 archives"
    ]
    space = run.meta["space"]
    space["features"][0]["scale"] = [0.0, 1e9]
    run.update(space=space)
    with pytest.raises(HarnessError, match="has another question than"):
        merge([packed("a"), packed("b")], tmp_path / "merged.ceh")


def test_what_failed_is_asked_again(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    run = stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    lines = [json.loads(line) for line in (run.path / "rows.jsonl").read_text().splitlines()]
    failed = {**lines[0], "status": "FAILED", "row": None}
    (run.path / "rows.jsonl").write_text(f"{json.dumps(failed)}\n")
    (run.path / "done").unlink()
    (other,) = stored_runs(tmp_path / "b" / "toy")
    (other.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [failed, *lines]))
    for files in (["a", "b"], ["b", "a"]):
        assert merge([packed(name) for name in files], tmp_path / "merged.ceh")
        (found,) = stored_runs(tmp_path / "merged.ceh")
        assert [row["status"] for row in found.rows()] == [line["status"] for line in lines]


def test_variants_of_a_constraint_are_of_one_estimator(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """They are compared in one task, so another estimator of a variant is refused."""
    for name, immutable in (("a", []), ("b", ["age"])):
        run = stored_run(tmp_path / name / "toy", problem, "lr", f"method_{name}")
        config = run.meta["config"]
        run.update(config={**config, "dataset": {**config.get("dataset", {}), "immutable": immutable}})
        if name == "b":
            run.update(threshold=0.9)
    with pytest.raises(HarnessError, match="has another estimator than"):
        merge([packed("a"), packed("b")], tmp_path / "merged.ceh")


def _another_person(run: StoredRun) -> None:
    lines = (run.path / "factuals.jsonl").read_text().splitlines(keepends=True)
    (run.path / "factuals.jsonl").write_text(lines[0])


def _other_data(run: StoredRun) -> None:
    run.update(data_sha256="0")


def _another_threshold(run: StoredRun) -> None:
    run.update(threshold=0.9)


def _otherwise_read(run: StoredRun) -> None:
    run.update(made_of_others=True)


def _other_seconds(run: StoredRun) -> None:
    path = run.path / "rows.jsonl"
    path.write_text(path.read_text().replace('"seconds": 0.1', '"seconds": 0.2'))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_another_person, "another question"),
        (_other_data, "another question"),
        (_another_threshold, "another estimator"),
        (_otherwise_read, "another estimator"),
        (_other_seconds, "other answers"),
    ],
)
def test_what_differs_under_one_name_is_refused(
    change: Callable[[StoredRun], None], said: str, problem: Problem, tmp_path: Path, packed: Packed
) -> None:
    """With the names of both runs, and of their archives; nothing is written."""
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    method = "one" if said == "other answers" else "two"
    change(stored_run(tmp_path / "b" / "toy", problem, "lr", method))
    files, into = [packed("a"), packed("b")], tmp_path / "merged.ceh"
    with pytest.raises(HarnessError, match=f"toy-lr-{method}-0123abcd of .*b.ceh has {said}.* toy-lr-one-.*a.ceh"):
        merge(files, into)
    assert not into.exists()


def test_another_estimator_is_refused(
    problem: Problem, problem_of: Callable[[str], Problem], tmp_path: Path, packed: Packed
) -> None:
    other = problem_of("lr_c10")
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    stored_run(tmp_path / "b" / "toy", dataclasses.replace(problem, classifier=other.classifier), "lr", "two")
    with pytest.raises(HarnessError, match=r"toy-lr-two-0123abcd of .* has another"):
        merge([packed("a"), packed("b")], tmp_path / "merged.ceh")


def test_other_settings_are_another_task(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """As in the tables, which name both by their settings."""
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one", n_factuals=2)
    stored_run(tmp_path / "b" / "toy", problem, "lr", "two", people=3, n_factuals=3)
    assert len(merge([packed("a"), packed("b")], tmp_path / "merged.ceh")) == 1


def test_two_machines_are_told(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    for name, method in {"a": "one", "b": "two"}.items():
        stored_run(tmp_path / name / "toy", problem, "lr", method).update(environment={"cpu": f"cpu {name}"})
    (_, said) = merge([packed("a"), packed("b")], tmp_path / "merged.ceh")
    assert said == "seconds are of 2 machines, and compare only as calibrated: cpu a (1 runs); cpu b (1 runs)"
    (run,) = stored_runs(tmp_path / "a" / "toy")
    run.update(also_on=["cpu b"])
    for name, of in (("a", "cpu a and cpu b (1 runs)"), ("b", "cpu a and cpu b (1 runs); cpu b (1 runs)")):
        (_, said) = merge([packed("a"), packed(name)], tmp_path / f"{name}-merged.ceh")
        assert said == f"seconds are of 2 machines, and compare only as calibrated: {of}"


def test_seeds_of_two_archives_are_told(problem: Problem, tmp_path: Path, packed: Packed) -> None:
    """As they are averaged, and somebody's second seed may answer nothing; not so of two methods, or of one archive."""
    for name, method, seed in (("a", "one", 0), ("b", "one", 1), ("c", "two", 0)):
        run = stored_run(tmp_path / name / "toy", problem, "lr", method)
        run.update(seed=seed)
        run.path.rename(run.path.with_name(f"{run.path.name[:-8]}0000000{seed}"))
    a, b, c = map(packed, "abc")
    into = tmp_path / "merged.ceh"
    several = f"seeds of one on toy/lr are averaged, and are of several origins: 0 of {a}; 1 of {b}"
    assert merge([a, b], into)[1:] == [several]
    assert merge([a, c], tmp_path / "other.ceh")[1:] == []
    assert merge([into], tmp_path / "again.ceh")[1:] == []


def test_limits_that_differ_are_told(
    problem: Problem, tmp_path: Path, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within a task; by merge, and by verify."""
    for name, method, limit in (("a", "one", 5), ("a", "two", 5), ("b", "three", 60)):
        stored_run(tmp_path / name / "toy", problem, "lr", method, time_limit=limit)
    (_, said) = merge([packed("a"), packed("b")], tmp_path / "merged.ceh")
    assert said == "time_limit is not the same in all runs of toy/lr: 5 (2 runs), 60 (1 runs); tables name it"
    assert command.main(["verify", str(tmp_path / "merged.ceh")]) == 0
    assert f"{said}\n" in capsys.readouterr().out
    assert command.main(["verify", str(tmp_path / "a.ceh")]) == 0
    assert "time_limit" not in capsys.readouterr().out


def test_the_command_says_why(
    problem: Problem, tmp_path: Path, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    file = str(packed("a"))
    assert command.main(["merge", file, str(tmp_path / "none.ceh"), "--into", str(tmp_path / "c.ceh")]) == 1
    assert "there is no archive" in capsys.readouterr().err
    assert command.main(["merge", file, file, "--into", str(tmp_path / "c.zip")]) == 1
    assert "does not end in .ceh" in capsys.readouterr().err
    assert command.main(["merge", file, file, "--into", str(tmp_path / "c.ceh")]) == 0
    assert capsys.readouterr().out.startswith(str(tmp_path / "c.ceh"))


def test_an_estimator_is_known_by_what_it_holds(
    problem: Problem, tmp_path: Path, packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an archive gives it another name, as earlier ones do."""
    stored_run(tmp_path / "a" / "toy", problem, "lr", "one")
    stored_run(tmp_path / "b" / "toy", problem, "lr", "two")
    first, canonical = packed("a"), archive.canonical
    monkeypatch.setattr(archive, "canonical", lambda path: ("0" * 64, canonical(path)[1]))
    assert len(merge([first, packed("b")], tmp_path / "merged.ceh")) == 1
