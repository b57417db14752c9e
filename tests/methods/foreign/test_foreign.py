"""Methods in processes of their own: what they are told, what is made of their answers, and what their faults cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from harness.core.errors import HarnessError
from harness.core.explanation import Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.execution.pool import Limits, Pool
from methods.ce_ocl import CeOcl
from methods.estimators.trees import ensemble
from methods.foreign import environment
from methods.foreign.environment import Environment
from methods.foreign.method import Foreign
from tests.support.applicants import FREE, GRID, SPACES, ask, classifier, factuals, problem_of

HERE = Path(__file__).parent
SIDES, ASKING, PERL = HERE / "far_sides.py", HERE / "asking.py", HERE / "nearest.pl"
SAID = {
    "garbage": "'this is no JSON'",
    "list": "no JSON object",
    "half": "code 0",
    "exit": "code 3",
    "question": "code 4",
    "category": "list of 5 values",
    "status": "'PERFECT'",
    "flood": "64 MiB",
}


def explained(method: Foreign, problem: Problem, people: list[pd.DataFrame], seconds: float = 10.0) -> list[Any]:
    asked = pd.concat(people).reset_index(drop=True)
    outcomes = Pool().explain(method, lambda _: problem, asked, 1, lambda _: (0,), Limits(seconds, 60.0))
    return sorted(outcomes, key=lambda outcome: outcome.factual)


@pytest.mark.parametrize("kind", [*SAID, "silence"])
def test_what_a_far_side_does_wrong_costs_one_factual(kind: str, tmp_path: Path) -> None:
    problem = problem_of(classifier("cart"), "yes")
    program = (sys.executable, "{script}", kind, str(tmp_path / "once"))
    method = Foreign("sides", str(SIDES), program, deterministic=True)
    first, second, third = explained(method, problem, factuals(problem, 3), 2.0 if kind == "silence" else 10.0)
    (answer,) = first.explanation.answers
    assert answer.status is (Status.GAVE_UP if kind == "silence" else Status.FAILED)
    if kind != "silence":
        assert answer.reason is Reason.CRASH
        assert SAID[kind] in answer.detail
    for outcome in (second, third):
        assert outcome.explanation.answers[0].status is Status.FOUND
        assert problem.valid(problem.space.frame([outcome.explanation.answers[0].row])).all()


def test_an_example_in_perl_finds_the_accepted_row_that_differs_least() -> None:
    if shutil.which("perl") is None:
        pytest.skip("perl is not on this machine")
    problem = problem_of(classifier("rf"), "yes")
    method = Foreign("perl", str(PERL), ("perl", "{script}"))
    people = factuals(problem, 4)
    accepted = problem.train[problem.valid(problem.train)]
    for person, outcome in zip(people, explained(method, problem, people), strict=True):
        differing = (accepted.to_numpy(object) != person.to_numpy(object)).sum(axis=1)
        row = outcome.explanation.answers[0].row
        assert sum(row[name] != person[name].iloc[0] for name in row) == differing.min()
        assert outcome.cpu_seconds > 0


def asked(model: str, ask: list[str], folder: Path) -> tuple[Problem, dict[str, Any]]:
    problem, file = problem_of(classifier(model), "yes"), folder / "told.json"
    method = Foreign("asking", str(ASKING), settings={"file": str(file), "ask": ask})
    method.fit(problem)
    return problem, json.loads(file.read_text())


def test_a_far_side_is_told_what_the_model_says(tmp_path: Path) -> None:
    problem, told = asked("rf", ["trees"], tmp_path)
    rows = problem.train.iloc[:20]
    assert told["predict"] == problem.classifier.predict(rows).tolist()
    assert told["accepts"] == problem.valid(rows).tolist()
    np.testing.assert_array_equal(told["score"], problem.classifier.score(rows))
    np.testing.assert_array_equal(told["matrix"], problem.classifier.matrix(rows))
    trees = told["trees"]["trees"]
    raw = np.full(20, told["trees"]["base"][0])
    for place, row in enumerate(problem.classifier.matrix(rows)):
        for tree in trees:  # walked here, by what was told alone
            node = 0
            while tree["left"][node] >= 0:
                goes = np.float32(row[tree["column"][node]]) <= tree["threshold"][node]
                node = tree["left" if goes else "right"][node]
            raw[place] += told["trees"]["weight"] * tree["value"][node][0]
    np.testing.assert_allclose(raw, problem.classifier.raw(rows), rtol=0, atol=1e-12)
    assert len(trees) == len(ensemble(problem.classifier.estimator).trees)


@pytest.mark.parametrize("model", ["lr", "mlp"])
def test_gradients_are_differences_of_the_raw_output(model: str, tmp_path: Path) -> None:
    problem, told = asked(model, ["gradient", "layers"], tmp_path)
    matrix = problem.classifier.matrix(problem.train.iloc[:20])
    for column in range(matrix.shape[1]):
        moved = matrix.copy()
        moved[:, column] += 1e-7
        slopes = (problem.classifier._raw(moved) - problem.classifier._raw(matrix)) / 1e-7
        np.testing.assert_allclose(np.array(told["gradient"])[:, column], slopes, atol=1e-4)
    values = matrix
    for depth, layer in enumerate(told["layers"]):
        values = (np.maximum(values, 0) if depth else values) @ np.array(layer["weights"]) + np.array(
            layer["intercepts"]
        )
    np.testing.assert_allclose(values[:, 0], problem.classifier._raw(matrix), atol=1e-9)


def test_optimal_is_taken_only_with_a_claim_and_an_accepted_point(tmp_path: Path) -> None:
    problem = problem_of(classifier("rf"), "yes")
    claiming = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []}, distance="l1")
    person = factuals(problem, 1)[0]

    def statuses(method: Foreign) -> list[Status]:
        found = method.fit(problem).explain(person, 3, np.random.default_rng(0), Deadline.after(10.0))
        return [answer.status for answer in found.answers]

    assert statuses(claiming) == [Status.OPTIMAL, Status.FOUND, Status.INFEASIBLE]
    assert statuses(replace(claiming, distance=None)) == [Status.FOUND, Status.FOUND, Status.INFEASIBLE]


def test_a_refusal_of_the_far_side_is_its_sentence() -> None:
    method = Foreign("asking", str(ASKING), settings={"refuse": True})
    with pytest.raises(HarnessError, match=r"^not this one\.$"):
        method.fit(problem_of(classifier("rf"), "yes"))


def test_time_in_the_harness_is_told_apart(tmp_path: Path) -> None:
    problem = problem_of(classifier("rf"), "yes")
    method = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []})
    start = time.perf_counter()
    found = method.fit(problem).explain(factuals(problem, 1)[0], 1, np.random.default_rng(0), Deadline.after(10.0))
    (trace,) = found.trace
    assert 0 < trace["seconds in the harness"] < time.perf_counter() - start
    assert trace["asked accepts"] == 1
    assert trace["asked predict"] == 0


def test_an_environment_is_made_once_listed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("uv") is None:
        pytest.skip("uv is not on this machine")
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    lock = tmp_path / "nothing.lock"
    lock.write_text("# no packages\n")
    made = Environment("bare", str(lock))
    assert "environments make bare" in str(made.lacking)
    made.make()
    assert made.lacking is None
    assert made.interpreter.is_file()
    other = tmp_path / "other.lock"
    other.write_text("# another\n")
    assert Environment("bare", str(other)).lacking is not None
    stamp = (made.folder / environment.MADE).stat().st_mtime_ns
    made.make()
    assert (made.folder / environment.MADE).stat().st_mtime_ns == stamp
    made.remove()
    assert made.lacking is not None


def test_a_python_that_is_not_installed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    method = Foreign("old", str(ASKING), environment={"python": "3.2"})
    method.prepare()
    why = method.refuses(problem_of(classifier("rf"), "yes"))
    assert why is not None
    assert why.count("\n") == 0
    assert "the environment of old is not there (" in why


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"environment": {"pyton": "3.12"}}, "environment of x has no 'pyton'"),
        ({"gives": "many"}, "gives is 'many'"),
        ({"distance": "l3"}, "no objective term 'l3'"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Foreign("x", str(ASKING), **settings)


def test_a_script_that_is_not_there_is_refused() -> None:
    problem = problem_of(classifier("rf"), "yes")
    assert "there is no file 'nowhere/far.py'" in str(Foreign("x", "nowhere/far.py").refuses(problem))


def test_the_stub_runs_with_python_3_8() -> None:
    """Numpy need not be there: arrays are lists then."""
    pythons = sorted((Path.home() / ".pyenv" / "versions").glob("3.8.*/bin/python"))
    if not pythons:
        pytest.skip("no Python 3.8 on this machine")
    far = HERE.parents[2] / "methods" / "foreign"
    lines = '{"do": "hello"}\n'
    script = "import far; far.serve(None)"
    done = subprocess.run([pythons[0], "-c", script], input=lines, cwd=far, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["version"] == 1


@pytest.mark.slow
def test_ocean_finds_the_optima_of_the_cell_search() -> None:
    """OCEAN's constraint program is another exact method, by another solver, on integers, ranks and categories."""
    method = Foreign(
        "ocean_cp",
        "methods/foreign/ocean/ocean_cp.py",
        environment={"python": "3.12", "lock": "methods/foreign/ocean/ocean_cp.lock"},
        distance="l1",
    )
    method.prepare()
    for name in SPACES:
        problem = problem_of(classifier("rf"), "yes", SPACES[name])
        if why := method.refuses(problem):
            pytest.skip(why)
        for person in factuals(problem, 8):
            rival = method.fit(problem).explain(person, 1, np.random.default_rng(0), Deadline.after(30.0)).answers[0]
            (ours,) = ask(CeOcl(alpha=0.0), problem, person).answers
            assert (rival.status, ours.status) in {
                (Status.OPTIMAL, Status.OPTIMAL),
                (Status.INFEASIBLE, Status.INFEASIBLE),
            }
            if ours.objective is not None:
                assert rival.objective == pytest.approx(ours.objective, abs=2e-6)


def of_library(name: str, **settings: Any) -> Foreign:
    """The method of a YAML, with its environment made."""
    chosen = OmegaConf.to_container(OmegaConf.load(HERE.parents[2] / "conf" / "method" / f"{name}.yaml"))
    method = Foreign(**{key: value for key, value in chosen.items() if key != "_target_"})
    method.prepare()
    return replace(method, settings={**method.settings, **settings})


@pytest.mark.slow
def test_reachml_lists_every_reachable_point() -> None:
    """With all of them listed, the nearest by steps is that of the grid; 2 steps for another category."""
    problem = problem_of(classifier("rf"), "yes", FREE)
    method = of_library("reachml", batch=20)
    if why := method.refuses(problem):
        pytest.skip(why)
    levels = {"low": 0, "mid": 1, "high": 2}
    grid = GRID[(GRID["debt"] >= problem.train["debt"].min()) & (GRID["debt"] <= problem.train["debt"].max())]
    accepted = grid[problem.valid(grid)]
    for person in factuals(problem, 6):
        (answer,) = method.fit(problem).explain(person, 1, np.random.default_rng(0), Deadline.after(60.0)).answers
        assert answer.row is not None

        def steps(rows: pd.DataFrame, person: pd.DataFrame = person) -> np.ndarray:
            mine = person.iloc[0]
            numbers = (rows["age"] - mine["age"]).abs() + (rows["debt"] - mine["debt"]).abs()
            ranks = (rows["grade"].map(levels) - levels[mine["grade"]]).abs() + (rows["member"] != mine["member"])
            return (numbers + ranks + 2 * (rows["region"] != mine["region"])).to_numpy(float)

        assert steps(problem.space.frame([answer.row]))[0] == steps(accepted).min()


@pytest.mark.slow
def test_pertcf_keeps_to_the_constraints() -> None:
    problem = problem_of(classifier("rf"), "yes", SPACES["kept"])
    method = of_library("pertcf", shap_sample_size=20)
    if why := method.refuses(problem):
        pytest.skip(why)
    found = 0
    for person in factuals(problem, 6):
        (answer,) = method.fit(problem).explain(person, 1, np.random.default_rng(0), Deadline.after(60.0)).answers
        if answer.row is not None:
            found += 1
            assert problem.space.violations(person, problem.space.frame([answer.row])) == [[]]
    assert found
