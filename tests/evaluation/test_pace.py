"""Seconds of several machines: numbers worked by hand, and no rank where nothing is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.studies import stored_run
from support.tables import GRANTED, started

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.problem import Problem
from harness.evaluation.contest import SECONDS, Criterion, contests
from harness.evaluation.numbers import Numbers
from harness.evaluation.pace import Calibration, calibrations, grouped, paces, scaled
from harness.evaluation.scoring import GROUPED
from harness.evaluation.study import SCORES, Study, read_scores
from harness.reports.overview import overview
from harness.reports.page.charts import reached
from harness.store.run import StoredRun
from metrics import _example as loans

RATIOS = {"one": 0.5, "two": 0.6, "three": 0.45}
HERE = Calibration("far", "near", RATIOS, dict.fromkeys(RATIOS, 5))

NAN = math.nan
NEAR = Criterion("proximity", "distance/l1", "lower")


def test_the_factor_is_the_median_of_the_ratios() -> None:
    assert (HERE.factor, HERE.doubt) == (0.5, "")
    assert HERE.spread == "one 0.5, three 0.45, two 0.6"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ratios": {**RATIOS, "two": 0.68}}, "the greatest is 1.51 times the least, and 1.5 is allowed"),
        ({"questions": {**HERE.questions, "two": 4}}, "two has 4 questions"),
        ({"ratios": {"one": 0.5, "two": 0.6}, "questions": {"one": 9, "two": 9}}, "it is of 2 methods, and 3"),
    ],
)
def test_doubtful_ones_have_no_factor(change: dict[str, object], why: str) -> None:
    doubtful = replace(HERE, **change)  # type: ignore[arg-type]
    assert math.isnan(doubtful.factor)
    assert why in doubtful.doubt
    factors, notes = paces([("t", "a", _on("near")), ("t", "b", _on("near")), ("t", "c", _on("far"))], [doubtful])
    assert why in notes[0]
    assert notes[0].endswith("have no rank.")
    assert math.isnan(factors[2])


def _on(cpu: str) -> dict[str, dict[str, str]]:
    return {"environment": {"cpu": cpu}}


def test_all_times_of_a_question_are_scaled() -> None:
    """By a half each; seconds of a fit stay as they are, and so does all of who goes on until the limit. Who ends
    without an answer counts the limit, and the processor's seconds that it took."""
    columns = ["coverage", "seconds", "cpu_seconds", "model_seconds", "fit_seconds"]
    scores = pd.DataFrame([[1.0, 2.0, 4.0, 1.0, 8.0], *[[0.0, 5.0, 4.0, 1.0, 8.0]] * 2], columns=columns)
    found = scaled(scores, 0.5, 5.0, lambda: {"1"})
    expected = [[1.0, 1.0, 2.0, 0.5, 8.0], [0.0, 5.0, 4.0, 1.0, 8.0], [0.0, 5.0, 2.0, 0.5, 8.0]]
    assert found.to_numpy().tolist() == expected


def test_seconds_of_groups_are_scaled_but_for_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a factor of 2, and a limit of 120 s: 10 s are 20, 100 s are 120, and a search that ended with it stays, also
    by the clock of its own, which keeps a twentieth."""
    lines = [{"group": n, "reason": Reason.TIME_LIMIT if n == "c" else Reason.FINISHED} for n in "abcd"]
    table = pd.DataFrame({"seconds": [10.0, 100.0, 50.0, 114.0]}, index=list("abcd"))
    monkeypatch.setattr("harness.evaluation.pace.group_table", lambda _: table)
    monkeypatch.setattr(StoredRun, "groups", lambda _: lines)
    monkeypatch.setattr(StoredRun, "meta", {"config": {"group": "all", "group_time_limit": 120.0}})
    run = StoredRun(tmp_path)
    assert grouped(run, 2.0)["seconds"].tolist() == [20.0, 120.0, 50.0, 114.0]
    assert grouped(run, 0.5)["seconds"].tolist() == [5.0, 50.0, 50.0, 114.0]
    assert grouped(run, NAN)["seconds"].tolist() == [10.0, 100.0, 50.0, 114.0]


def test_a_limit_is_the_same_on_every_machine() -> None:
    """Who goes on until it takes as long everywhere; on a machine that takes twice as long nobody takes more than it,
    but who had more already."""
    scores = pd.DataFrame({"coverage": 1.0, "seconds": [4.9, 2.0, 4.0, 5.1]}, index=[7, 8, 9, 10])
    for factor, expected in ((0.5, [4.9, 1.0, 2.0, 2.55]), (2.0, [4.9, 4.0, 5.0, 5.1])):
        assert scaled(scores, factor, 5.0, lambda: {"7"})["seconds"].tolist() == expected
    assert scaled(scores, 2.0, NAN, lambda: ())["seconds"].tolist() == [9.8, 4.0, 8.0, 10.2]


def test_each_task_is_of_the_machine_of_most_of_its_runs() -> None:
    """Whichever way round it was calibrated; a task that is of one machine needs no factor."""
    near, far = _on("near"), _on("far")
    runs = [("s", "a", near), ("s", "b", near), ("s", "c", far), ("t", "a", far), ("t", "b", far), ("t", "c", near)]
    factors, notes = paces([*runs, ("u", "a", far)], [HERE])
    assert factors == (1.0, 1.0, 0.5, 1.0, 1.0, 2.0, 1.0)
    assert "(far) than others' (near)" in notes[0]
    assert "(near) than others' (far)" in notes[1]
    assert "× 0.5, by calibration (one 0.5, three 0.45, two 0.6)." in notes[0]
    assert "× 2, by calibration (one 0.5, three 0.45, two 0.6, each turned round)." in notes[1]
    _, notes = paces([("t", "a", far), ("t", "b", far), ("t", "c", _on("third"))], [HERE])
    assert "are not calibrated, and have no rank" in notes[0]


def test_of_two_machines_with_as_many_runs_the_first_by_name_is_the_tasks() -> None:
    """Whichever was run first: one second on the near one is two on the far one."""
    for order in (("near", "far"), ("far", "near")):
        factors, _ = paces([("t", cpu, _on(cpu)) for cpu in order], [HERE])
        assert dict(zip(order, factors, strict=True)) == {"far": 1.0, "near": 2.0}


def test_tasks_of_another_machine_are_named() -> None:
    """Methods of the same ones together; not where they are all; of many some."""
    near, far = _on("near"), _on("far")
    runs = [(task, method, near) for task in "stuvw" for method in "pqxyz"]
    runs += [("s", "a", far), ("t", "a", far), ("s", "b", far), ("t", "b", far), ("u", "c", far)]
    runs += [(task, "d", far) for task in "stuv"] + [(task, "e", far) for task in "stuvw"]
    (note,) = paces(runs, [])[1]
    who = "a, b on s, t; c on u; d on s, t, u and 1 more; e"
    assert note.startswith(f"Seconds of {who} were taken on another machine (far)")


def test_a_run_of_two_machines_is_compared_with_none() -> None:
    """Not with another of the same two, which shared the work otherwise, and whichever is calibrated."""
    both = {**_on("near"), "also_on": ["far"]}
    factors, notes = paces([("t", "a", both), ("t", "b", both), ("t", "c", _on("near"))], [HERE])
    assert [math.isnan(factor) for factor in factors] == [True, True, False]
    assert notes == ("Seconds of a, b were taken on near and far by turns, and have no rank.",)


def test_a_study_ranks_seconds_as_calibrated_and_no_others(problem: Problem, tmp_path: Path) -> None:
    """Two methods of one machine answer in 0.1 s, a third in 0.1 s of a machine that takes half as long."""
    for method, cpu in {"one": "near", "two": "near", "three": "far"}.items():
        stored_run(tmp_path / "toy", problem, "lr", method).update(environment={"cpu": cpu})
    study = Study.of(tmp_path / "toy")
    (contest,) = Numbers(study).contests[SECONDS]
    assert list(contest.values) == ["one", "two"]
    (note,) = study.clocks(study.tasks)
    assert study.clocks(["another task"]) == []
    assert set(reached(study, contests(study, NEAR))[1]) == {"one", "two"}
    assert note == (
        "Seconds of three were taken on another machine (far) than others' (near), are not calibrated, and have no "
        "rank."
    )
    (tmp_path / "toy" / "sweeps").mkdir()
    (tmp_path / "toy" / "sweeps" / HERE.file).write_text(HERE.text)
    assert calibrations(tmp_path / "toy") == [HERE]
    study = Study.of(tmp_path / "toy")
    (contest,) = Numbers(study).contests[SECONDS]
    means = contest.mean_ranks  # of two questions, the second answered by nobody
    assert means["three"] == pytest.approx((0 + 0.5) / 2)
    assert means["one"] == means["two"] == pytest.approx((0.75 + 0.5) / 2)
    assert reached(study, contests(study, NEAR))[1]["three"][0] == pytest.approx(0.05)
    shown = Numbers(study).table().query("number == 'seconds' and method == 'three'")["value"].item()
    assert shown == pytest.approx((0.5 * 0.1 + 5) / 2)  # the median of 0.1 s, as on the other, and of a limit of 5 s


def test_a_study_leaves_limits_where_they_are(tmp_path: Path) -> None:
    """By a factor of 2, and a limit of 5 s: 2 s are 4, 4 s are 5, and what went on until its limit stays at 4.9 s."""
    runs = []
    for method, cpu in {"one": "far", "two": "far", "three": "near"}.items():
        ended = Answer(Status.FOUND, GRANTED, Reason.TIME_LIMIT)
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED, GRANTED, ended], method=method)
        run.update(environment={"cpu": cpu})
        read_scores(run).assign(seconds=[2.0, 4.0, 4.9]).to_csv(run.path / SCORES)
        runs.append(run)
    found = {entry.method: entry for entry in Study.among("s", runs, [HERE]).entries}
    assert found["one"].table["seconds"].tolist() == [2.0, 4.0, 4.9]
    assert found["three"].table["seconds"].tolist() == [4.0, 5.0, 4.9]
    assert found["three"].by_seed[0]["seconds"].tolist() == [4.0, 5.0, 4.9]


def test_who_refuses_a_task_says_nothing_of_its_machine(tmp_path: Path) -> None:
    """Most runs are of a machine whose methods all refuse: two answer on another one, and compare there."""
    refused = Answer(Status.UNSUPPORTED, None, Reason.REFUSED, detail="trees alone.")
    named = {"one": "near", "two": "near", "three": "far", "four": "far", "five": "far"}
    runs = []
    for method, cpu in named.items():
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED if cpu == "near" else refused], method=method)
        run.update(environment={"cpu": cpu})
        runs.append(run)
    study = Study.among("s", runs)
    assert [entry.timed for entry in study.entries] == [True] * 5
    assert study.clocks(study.tasks) == []
    (contest,) = Numbers(study).contests[SECONDS]
    assert list(contest.values) == ["one", "two"]


def test_the_peak_of_several_seeds_is_the_greatest(tmp_path: Path) -> None:
    runs = []
    for seed, peaks in enumerate(([900.0, 1000.0], [3000.0, 800.0])):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, fingerprint=f"{seed}")
        run.update(seed=seed)
        read_scores(run).assign(peak_mib=peaks).to_csv(run.path / SCORES)
        runs.append(run)
    (entry,) = Study.among("s", runs).entries
    assert (entry.seeds, entry.peak_mib) == (2, 3000.0)


def test_the_processors_set_up_is_not_known_where_a_seed_did_not_note_it(tmp_path: Path) -> None:
    """Its worker crashed: seconds are the mean of 1 and 3, and the processor's 2 are those of one seed alone."""
    runs = []
    for seed, cpu in enumerate((2.0, None)):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED], fingerprint=f"{seed}")
        run.update(seed=seed, setup={"seconds": 1.0 + 2 * seed, "cpu_seconds": cpu})
        runs.append(run)
    (entry,) = Study.among("s", runs).entries
    seconds, processor = entry.setup
    assert seconds == 2.0
    assert math.isnan(processor)


def test_means_over_groups_have_each_seeds_seconds_as_on_one_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """2 s of a group are 4 where a second is two, and stay so on the machine of the task: 3 of both seeds, within 5."""
    runs = []
    for seed in range(2):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED], fingerprint=f"{seed}")
        run.update(seed=seed)
        runs.append(run)
    (entry,) = Study.among("s", runs).entries
    table = pd.DataFrame({name.partition("/")[2]: [2.0] for name in GROUPED}, index=["all"])
    monkeypatch.setattr("harness.evaluation.pace.group_table", lambda _: table)
    entry = replace(entry, table=entry.table.assign(**{GROUPED[0]: 2.0}), paces=(2.0, 1.0))
    assert (entry.groups["group/seconds"], entry.groups["group/points"]) == (3.0, 2.0)


def test_seconds_without_a_factor_stay_as_they_are() -> None:
    scores = pd.DataFrame({"coverage": [1.0, 0.0], "seconds": [2.0, 5.0], "cpu_seconds": [1.0, 3.0]})
    pd.testing.assert_frame_equal(scaled(scores, NAN, 5.0, lambda: ()), scores)


def test_other_machines_are_said_where_seconds_are_shown(problem: Problem, tmp_path: Path) -> None:
    for method, cpu in {"one": "near", "two": "near", "three": "far"}.items():
        stored_run(tmp_path / "toy", problem, "lr", method).update(environment={"cpu": cpu})
    numbers = Numbers(Study.of(tmp_path / "toy"))
    (note,) = numbers.study.clocks(numbers.study.tasks)
    assert f"- {note}\n" in overview(numbers)[0]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"source": 1}', HERE.text.replace("0.45", "-1"), HERE.text.replace("0.45", "NaN")]
)
def test_a_file_that_is_none_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "calibration-0.json").write_text(text)
    with pytest.raises(HarnessError, match=r"calibration-0.json is no calibration .*; delete it, and calibrate again"):
        calibrations(tmp_path)


def test_a_calibration_has_the_name_of_its_machines(tmp_path: Path) -> None:
    """So that of two machines there is one, and none of another name comes after it."""
    made = Calibration("near", "far", {"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 5, "b": 5, "c": 5})
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / made.file).write_text(made.text)
    assert calibrations(tmp_path) == [made]
    (tmp_path / "sweeps" / "calibration-zzzzzzzz.json").write_text(made.text)
    with pytest.raises(HarnessError, match=f"its machines are those of {made.file}"):
        calibrations(tmp_path)
