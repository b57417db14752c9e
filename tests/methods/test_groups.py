"""Groups: asked, stored, checked, scored and told as sentences; and what every method that explains groups keeps to."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from sklearn.tree import DecisionTreeClassifier
from support.complete import complete
from support.groups import BREACHES, CONF, LIMITS, POINTS, SPACE, Recorder, at_one, dataset, problem, question, started

from harness.core.errors import DatasetError
from harness.core.explanation import Answer, GroupExplanation, Reason, Status
from harness.core.method import Deadline, GroupExplainer, Method
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.target import Label
from harness.evaluation import checker, scoring
from harness.execution.contract import group_breach
from harness.execution.experiment import Workers, entropy, run_groups
from harness.execution.experiment import groups as grouped
from harness.execution.messages import GroupReply
from harness.execution.pool import Pool
from harness.execution.task import make_task
from harness.library import pose
from harness.reports import groups
from harness.store.run import StoredRun
from methods.group_greedy import GroupGreedy


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Honest answers of the greedy cover to one group of twelve."""
    method = GroupGreedy(t_max=2, neighbours=3)
    run = started(tmp_path_factory.mktemp("honest"), question(), method)
    run_groups(run, question(), method, True, 0, Workers(Pool(), LIMITS))
    return run.path


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> StoredRun:
    """A copy of them to go on with."""
    return StoredRun(Path(shutil.copytree(honest, tmp_path / "cell")))


# --- asking -------------------------------------------------------------------------------------------------------


def test_groups_by_a_number_are_apart_where_six_digits_are_alike() -> None:
    rows = pd.DataFrame({"a": [1000000.25, 1000000.75, 1000000.25, 5000000.5], "y": [0, 0, 0, 1]})
    task = pose(rows, "y", DecisionTreeClassifier().fit(rows[["a"]], rows["y"]), desired=1)
    asked = SimpleNamespace(
        dataset=task.dataset, factuals=rows[["a"]], content=task.content, targets=dict.fromkeys(rows.index, Label(1))
    )
    assert {name: list(group.index) for name, group in grouped(asked, "a").items()} == {
        "a=1000000.25": [0, 2],
        "a=1000000.75": [1],
    }


def test_groups_are_everybody_or_by_value() -> None:
    """Each factual is in one group; a name says which value."""
    factuals = question().factuals
    assert list(grouped(question(), True)) == ["all"]
    by_sex = grouped(question(), "sex")
    assert set(by_sex) == {f"sex={value}" for value in factuals["sex"]}
    assert sorted(i for group in by_sex.values() for i in group.index) == sorted(factuals.index)
    for name, group in by_sex.items():
        assert set(group["sex"]) == {name.removeprefix("sex=")}
    with pytest.raises(DatasetError, match="group=sx is no feature of the dataset; did you mean 'sex'"):
        grouped(question(), "sx")


def test_a_group_has_one_target() -> None:
    """With two wishes, there are two groups."""
    data = dataset()
    both = make_task(data, question().classifier, "opposite", n_factuals=20)
    found = grouped(both, True)
    assert set(found) == {"all, wanted bad", "all, wanted good"}
    for group in found.values():
        assert len({both.targets[index] for index in group.index}) == 1


def test_factuals_may_be_filled_from_training_rows() -> None:
    """Test rows come first, as without; then training rows, none twice."""
    data = dataset()
    halves = replace(data, train=data.train[: len(POINTS) // 2], test=data.train[len(POINTS) // 2 :])
    classifier = question().classifier
    few = make_task(halves, classifier, n_factuals=1000).factuals.index.tolist()
    filled = make_task(halves, classifier, which="test_then_train", n_factuals=1000).factuals.index.tolist()
    assert filled[: len(few)] == few
    assert len(set(filled)) == len(filled) == (classifier.predict(POINTS) == "bad").sum()


def test_each_factual_has_a_row_and_each_group_a_line(run: StoredRun) -> None:
    """The row holds the point that the factual is assigned to; seconds are the group's; the run is done."""
    (line,) = run.groups()
    rows = run.rows()
    assert run.done
    assert [row["factual"] for row in rows] == question().factuals.index.tolist() == line["factuals"]
    assert {row["seconds"] for row in rows} == {line["seconds"]}
    assert {row["group"] for row in rows} == {"all"}
    for row in rows:
        assert row["row"] == (None if row["point"] is None else line["points"][row["point"]])
        assert row["status"] == ("GAVE_UP" if row["point"] is None else "FOUND")


def test_an_interrupted_cell_goes_on_with_the_groups_it_lacks(tmp_path: Path) -> None:
    """A group is asked again as a whole where a row of it is missing or failed, and no other."""
    method = GroupGreedy()
    run = started(tmp_path, question(), method)
    first = Recorder(lambda factuals: GroupReply(None, 0.0, Status.FAILED, Reason.CRASH, "a fault"))
    run_groups(run, question(), method, "sex", 0, Workers(first, LIMITS))  # type: ignore[arg-type]
    assert first.asked == ["sex=f", "sex=m"]
    assert {row["status"] for row in run.rows()} == {"FAILED"}
    assert not run.done
    second = Recorder(at_one)
    run_groups(run, question(), method, "sex", 0, Workers(second, LIMITS))  # type: ignore[arg-type]
    assert second.asked == first.asked
    assert run.done
    rows = run.path / "rows.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    third = Recorder(at_one)
    run_groups(run, question(), method, "sex", 0, Workers(third, LIMITS))  # type: ignore[arg-type]
    assert third.asked == ["sex=m"]
    assert len(run.groups()) == 2


def test_who_cannot_be_served_is_named(tmp_path: Path) -> None:
    """Uncoverable: INFEASIBLE, proven; left open: GAVE_UP."""
    first, second, *rest = question().factuals.index
    found = lambda factuals: at_one(  # noqa: E731
        factuals, assignment=dict.fromkeys(rest, 0), uncoverable=(first,), status=Status.OPTIMAL
    )
    run = started(tmp_path, question(), GroupGreedy())
    run_groups(run, question(), GroupGreedy(), True, 0, Workers(Recorder(found), LIMITS))  # type: ignore[arg-type]
    status = {row["factual"]: (row["status"], row["reason"]) for row in run.rows()}
    assert status[first] == ("INFEASIBLE", "proof")
    assert status[second] == ("GAVE_UP", "finished")
    assert {status[index] for index in rest} == {("OPTIMAL", "proof")}


_SOMEWHERE = POINTS.iloc[0].to_dict()


@dataclass(frozen=True)
class Acts:
    """A method that sleeps, raises, or breaks the contract of groups."""

    act: str

    def refuses(self, problem: Problem) -> str | None:
        return "it takes nothing at all" if self.act == "refuse" else None

    def objective(self, problem: Problem) -> Objective | None:
        return None

    def fit(self, problem: Problem) -> Any:
        if self.act == "unfit":
            raise LookupError("no such luck")
        return object() if self.act == "alone" else _Actor(self.act)


@dataclass
class _Actor:
    act: str

    def explain_group(self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline) -> GroupExplanation:
        if self.act == "sleep":
            time.sleep(60.0)
        if self.act == "linger":
            time.sleep(1.4)
            everybody = dict.fromkeys(factuals.index, 0)
            return GroupExplanation((Answer(Status.FOUND, _SOMEWHERE),), everybody, changed=(SPACE.names,))
        if self.act == "where":
            return GroupExplanation((), trace=({"pid": os.getpid()},))
        if self.act == "raise":
            raise ZeroDivisionError
        return GroupExplanation((), {"stranger": 0})


@pytest.mark.parametrize(
    ("act", "status", "message"),
    [
        ("sleep", ("GAVE_UP", "time limit"), "no answer within 1 s"),
        ("raise", ("FAILED", "crash"), "ZeroDivisionError"),
        ("unfit", ("FAILED", "crash"), "no such luck"),
        ("stranger", ("FAILED", "crash"), "not in the group"),
        ("refuse", ("UNSUPPORTED", "refused"), "takes nothing at all"),
        ("alone", ("UNSUPPORTED", "refused"), "explains no groups; leave 'group' out"),
    ],
)
def test_what_goes_wrong_is_an_answer(act: str, status: tuple[str, str], message: str, tmp_path: Path) -> None:
    """Of every factual of the group, and of the group itself."""
    run = started(tmp_path, question(), Acts(act))
    run_groups(run, question(), Acts(act), True, 0, Workers(Pool(), replace(LIMITS, time=1.0)))
    assert {(row["status"], row["reason"]) for row in run.rows()} == {status}
    assert all(message in row["detail"] for row in run.rows())
    assert [line["status"] for line in run.groups()] == [status[0]]
    checker.judge(run)
    table = scoring.group_table(run).loc["all"]
    assert table[["points", "bound", "gap"]].isna().all()
    assert table[["size", "covered", "uncoverable", "left", "optimal"]].tolist() == [12, 0, 0, 12, 0]
    assert status[0] in groups.write(run, ["sex"])


@pytest.mark.parametrize(("limit", "late"), [(1.2, True), (2.5, False)])
def test_a_group_answered_within_the_grace_is_late(limit: float, late: bool, tmp_path: Path) -> None:
    """Of half a second, after 1.4 s; timings say how many went on at once: one."""
    run = started(tmp_path, question(), Acts("linger"))
    run_groups(run, question(), Acts("linger"), True, 0, Workers(Pool(), replace(LIMITS, time=limit)))
    (line,) = run.groups()
    assert 1.4 <= line["seconds"] < limit + 0.5
    assert line["late"] is late
    assert {(row["status"], row["late"], row["jobs"], row["beside"]) for row in run.rows()} == {("FOUND", late, 1, 1)}


def test_groups_are_asked_one_after_the_other() -> None:
    """By one worker, which fits once, unless there are to be several."""
    posed = {name: (problem(), group) for name, group in grouped(question(), "sex").items()}
    for jobs in ({}, {"jobs": 2}):
        found = list(Pool().explain_groups(Acts("where"), posed, entropy(0), LIMITS, **jobs))
        assert {outcome.group for outcome in found} == set(posed)
        pids = {outcome.explanation.trace[0]["pid"] for outcome in found if outcome.explanation}
        assert len(pids) == jobs.get("jobs", 1)


def test_a_group_of_one_is_a_group(tmp_path: Path) -> None:
    """Somebody alone of her sex, whose problem is that of anybody with her target."""
    task = question()
    women = task.factuals.index[task.factuals["sex"] == "f"]
    alone = replace(task, factuals=task.factuals.drop(women[1:]))
    run, pool = started(tmp_path, alone, GroupGreedy()), Recorder(at_one)
    run_groups(run, alone, GroupGreedy(), "sex", 0, Workers(pool, LIMITS))  # type: ignore[arg-type]
    assert sorted(pool.asked) == ["sex=f", "sex=m"]
    assert [line["factuals"] for line in run.groups() if line["group"] == "sex=f"] == [[women[0]]]
    assert run.done


# --- checking and scoring -----------------------------------------------------------------------------------------


def altered(run: StoredRun, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> dict[Any, str]:
    """Verdicts by factual after a change of the group's line and of its rows."""
    (line,), rows = run.groups(), run.rows()
    change(line, rows)
    (run.path / "groups.jsonl").write_text(json.dumps(line) + "\n")
    (run.path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {verdict["factual"]: verdict["verdict"] for verdict in checker.verdicts(run)}


def test_honest_groups_are_valid(run: StoredRun) -> None:
    assert set(altered(run, lambda line, rows: None).values()) <= {"accepted", "none"}


@pytest.mark.parametrize("breach", BREACHES)
def test_the_checker_believes_no_group(run: StoredRun, breach: str) -> None:
    word, change = BREACHES[breach]
    assert word in altered(run, change).values()


def test_forgotten_people_break_a_proof(run: StoredRun) -> None:
    def forget(line: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        line.update(status="OPTIMAL", bound=len(line["points"]))
        shared = next(row for row in rows if sum(row["point"] == other["point"] for other in rows) > 1)
        shared.update(row=None, point=None, status="GAVE_UP")

    assert set(altered(run, forget).values()) == {"worse than claimed"}


def test_a_group_is_scored(run: StoredRun) -> None:
    """Points that serve somebody, counted from the rows; each factual has the numbers of its group."""
    altered(run, lambda line, rows: line.update(bound=1.5))
    checker.judge(run)
    rows = run.rows()
    used = len({row["point"] for row in rows if row["row"] is not None})
    table = scoring.group_table(run).loc["all"]
    assert (table["size"], table["points"], table["gap"]) == (12, used, used - 2)
    assert table["covered"] + table["uncoverable"] + table["left"] == 12
    assert table["covered"] == sum(row["row"] is not None for row in rows)
    problems = {index: question().problem(index) for index in question().factuals.index}
    scores = scoring.score(run, problems, [])
    assert set(scores["group/points"]) == {used}
    assert scores["coverage"].sum() == table["covered"]


def test_the_report_names_who_what_and_to_what(run: StoredRun) -> None:
    """Each explanation once, with its number of factuals; the division counts everybody once."""
    checker.judge(run)
    text = groups.write(run, ["sex", "no such feature"])
    (line,) = run.groups()
    assert (run.path / groups.REPORT).read_text() == text
    for point, values in enumerate(line["points"]):
        served = sum(row["point"] == point for row in run.rows())
        text_of_point = " ".join(text.split(f"\n\n{point + 1}. ")[1].split("\n\n")[0].split())
        assert text_of_point.startswith(f"{served} factual")
        for name in line["changed"][point]:
            assert f"{name} to {values[name]} (from" in text_of_point
    rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| ")]
    counts = {row[0].strip("| "): int(row[1]) for row in rows if row[1].isdigit()}
    assert counts == question().factuals["sex"].value_counts().to_dict()


# --- laws ---------------------------------------------------------------------------------------------------------


@cache
def explainer(choice: str) -> tuple[Method, Any] | None:
    """A method of ``conf/method`` fitted to the small discrete problem, if it explains groups; two changes at most."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"method={choice}"]).method
    if not takes_groups(choice):
        return None
    if "t_max" in config:
        config.t_max = 2
    method = instantiate(config, _convert_="all")
    fitted = method.fit(problem())
    return (method, fitted) if isinstance(fitted, GroupExplainer) else None


def takes_groups(choice: str) -> bool:
    """Whether a choice of ``conf/method``, or one that it builds upon, has the setting ``t_max`` or needs none."""
    if choice in UNLIMITED:
        return True
    chosen = yaml.safe_load((CONF / "method" / f"{choice}.yaml").read_text())
    return "t_max" in chosen or any(takes_groups(other) for other in chosen.get("defaults", ()) if other != "_self_")


UNLIMITED = {"globe_ce"}  # methods of groups without a bound on the changes of those who share a point
METHODS = [choice for choice in complete("method") if takes_groups(choice)]
SLOW = pytest.mark.slow
FEW = 6  # factuals: the program over all points at once takes minutes for more


def explained(choice: str, seconds: float = 60.0) -> GroupExplanation:
    known = explainer(choice)
    assert known is not None
    return known[1].explain_group(question(FEW).factuals.copy(), np.random.default_rng(7), Deadline.after(seconds))


def best_of(factuals: pd.DataFrame, t_max: int) -> int:
    """The fewest points by exhaustion: whom each point and pair of features serves; then a cover."""
    valid = POINTS.loc[problem().valid(POINTS)]
    served: set[frozenset[Any]] = set()
    movable = [name for name in SPACE.names if SPACE[name].actionability != "immutable"]
    pairs = [(one, other) for one in movable for other in movable if one <= other]
    assert t_max == 2
    for point in valid.to_dict("records"):
        able = {
            index: {name for name in SPACE.names if row[name] != point[name]}
            for index, row in factuals.to_dict("index").items()
            if all(point[name] in SPACE[name].reachable(row[name]) for name in SPACE.names)
        }
        served |= {frozenset(i for i, differing in able.items() if differing <= {*pair}) for pair in pairs}
    everybody = frozenset().union(*served)
    widest = [one for one in served if not any(one < other for other in served)]
    reached, count = {frozenset[Any]()}, 0
    while everybody not in reached:
        reached = {done | more for done in reached for more in widest}
        reached = {one for one in reached if not any(one < other for other in reached)}
        count += 1
    return count


@pytest.mark.parametrize("choice", METHODS)
def test_a_group_method_keeps_the_laws(choice: str) -> None:
    """Valid points by the real model, T_max on the union of changes, everybody permitted; no proof beats exhaustion."""
    found, factuals = explained(choice), question(FEW).factuals
    assert group_breach(found, problem(), factuals) is None
    assert found.points
    assert problem().valid(SPACE.frame(point.row or {} for point in found.points)).all()
    for number, point in enumerate(found.points):
        members = factuals.loc[[index for index, other in found.assignment.items() if other == number]]
        row = SPACE.frame([point.row or {}])
        union = {name for name in SPACE.names if (members[name] != row[name].iloc[0]).any()}
        assert union == set(found.changed[number])
        assert len(union) <= 2 or choice in UNLIMITED
        for index in members.index:
            assert SPACE.violations(members.loc[[index]], row) == [[]]
    if choice in UNLIMITED:
        assert found.bound is None
        return
    least = best_of(factuals, 2)
    assert len(found.points) >= least or len(found.assignment) < len(factuals)
    if found.bound is not None:
        assert found.bound <= least + 1e-6
    if found.status is Status.OPTIMAL:
        assert len(found.points) == least


@pytest.mark.parametrize("choice", [pytest.param(c, marks=SLOW if c.endswith("_milp") else ()) for c in METHODS])
def test_a_group_method_is_repeatable_and_harmless(choice: str) -> None:
    """Equal generators give equal answers; neither factuals nor the global generator are touched."""
    state, given = np.random.get_state(), question(FEW).factuals.copy()  # noqa: NPY002
    first, second = explained(choice), explained(choice)
    assert (first.points, first.assignment, first.bound) == (second.points, second.assignment, second.bound)
    assert all(np.array_equal(a, b) for a, b in zip(state[1:], np.random.get_state()[1:], strict=True))  # noqa: NPY002
    pd.testing.assert_frame_equal(given, question(FEW).factuals)


@pytest.mark.parametrize("choice", METHODS)
def test_a_group_method_answers_a_past_deadline(choice: str) -> None:
    """With what it has, without an exception, and without a long look."""
    start = time.monotonic()
    found = explained(choice, seconds=-1.0)
    assert group_breach(found, problem(), question(FEW).factuals) is None
    assert time.monotonic() - start < 20


def test_every_method_of_groups_is_met() -> None:
    """The laws above are asked of every choice that takes a ``t_max``."""
    assert "group_greedy" in METHODS
    assert all(explainer(choice) is not None for choice in METHODS)


# --- the greedy cover ---------------------------------------------------------------------------------------------


def test_the_greedy_cover_takes_no_more_points_than_people() -> None:
    """Identical people share a point; more changes allowed never serve fewer."""
    twins = pd.concat([question().factuals, question().factuals.set_axis(range(1000, 1012))])
    covered = []
    for t_max in (1, 2, 3):
        fitted = GroupGreedy(t_max=t_max, neighbours=3).fit(problem())
        found = fitted.explain_group(twins, np.random.default_rng(0), Deadline.after(60.0))
        for index, twin in zip(question().factuals.index, range(1000, 1012), strict=True):
            assert found.assignment.get(index) == found.assignment.get(twin)
        assert len(found.points) <= 12
        covered.append(len(found.assignment))
    assert covered == sorted(covered)


def test_the_greedy_cover_needs_a_class(problem_of: Callable[[str], Problem]) -> None:
    assert GroupGreedy().refuses(problem_of("ridge")) is not None
    assert isinstance(problem().target, Label)
    assert GroupGreedy().refuses(problem()) is None
