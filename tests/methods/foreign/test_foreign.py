"""Methods in processes of their own: what they are told, what is made of their answers, and what their faults cost."""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io

from harness.core.errors import HarnessError
from harness.core.explanation import Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Space
from harness.execution.clocks import CompileClock
from harness.execution.messages import ExplainRequest
from harness.execution.pool import Limits, Pool
from harness.execution.worker import _timed
from methods.estimators.trees import ensemble
from methods.foreign import environment, far
from methods.foreign.environment import Environment
from methods.foreign.method import Foreign
from methods.foreign.process import FarSide, LostError
from methods.foreign.served import Served, reach_of
from methods.foreign.served import values as values_of
from tests.support.applicants import FREE, SPACES, VALUES, classifier, factuals, problem_of

HERE = Path(__file__).parent
SIDES, ASKING, PERL = HERE / "far_sides.py", HERE / "asking.py", HERE / "nearest.pl"
SAID = {  # by what the far side does wrong, a part of what is told of it
    "garbage": "'this is no JSON'",
    "list": "no JSON object",
    "half": "code 0",
    "exit": "code 3",
    "question": "code 4",
    "category": "list of 5 values",
    "status": "'PERFECT'",
    "reason": "'tired'",
    "other": "message 4, not to 3",
    "unclear": "cannot ask for ['accepts']",
    "flood": "64 MiB",
    "complaints": "code 5: xxx",
}
ALIKE = {"list", "half", "question", "category", "status", "reason"}  # told as others of which the quick tests are
WITHOUT_FAULT = {"silence": Reason.TIME_LIMIT, "memory": Reason.MEMORY}


def explained(
    method: Foreign, problem: Problem, people: list[pd.DataFrame], seconds: float = 10.0, memory: float | None = None
) -> list[Any]:
    asked = pd.concat(people).reset_index(drop=True)
    outcomes = Pool().explain(method, lambda _: problem, asked, 1, lambda _: (0,), Limits(seconds, 60.0, memory))
    return sorted(outcomes, key=lambda outcome: outcome.factual)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in ALIKE else kind for kind in [*SAID, *WITHOUT_FAULT]]
)
def test_what_a_far_side_does_wrong_costs_one_factual(kind: str, tmp_path: Path) -> None:
    problem = problem_of(classifier("cart"), "yes")
    program = (sys.executable, "{script}", kind, str(tmp_path / "once"))
    method = Foreign("sides", str(SIDES), program, deterministic=True)
    first, second, third = explained(method, problem, factuals(problem, 3), 2.0 if kind == "silence" else 10.0)
    (answer,) = first.explanation.answers
    assert answer.status is (Status.GAVE_UP if kind in WITHOUT_FAULT else Status.FAILED)
    assert answer.reason is WITHOUT_FAULT.get(kind, Reason.CRASH)
    assert SAID.get(kind, "") in answer.detail
    for outcome in (second, third):
        assert outcome.explanation.answers[0].status is Status.FOUND
        assert problem.valid(problem.space.frame([outcome.explanation.answers[0].row])).all()


def test_the_memory_limit_is_the_far_sides_too(tmp_path: Path) -> None:
    """Two gibibytes are an answer where there is no limit, and where there is one the failure of one factual."""
    problem = problem_of(classifier("cart"), "yes")
    statuses = []
    for memory in (None, 1.5):
        program = (sys.executable, "{script}", "hog", str(tmp_path / str(memory)))
        outcomes = explained(Foreign("sides", str(SIDES), program), problem, factuals(problem, 2), memory=memory)
        statuses.append([outcome.explanation.answers[0].status for outcome in outcomes])
    assert statuses == [[Status.FOUND, Status.FOUND], [Status.FAILED, Status.FOUND]]
    assert "code 1: MemoryError" in outcomes[0].explanation.answers[0].detail


def test_seeds_and_limits_reach_a_far_side_and_seeds_are_stored(tmp_path: Path) -> None:
    problem = problem_of(classifier("cart"), "yes")
    method = Foreign("sides", str(SIDES), (sys.executable, "{script}", "draw", str(tmp_path / "none")))
    drawn = []
    for seed in (0, 0, 1):
        explainer, rng = method.fit(problem), np.random.default_rng(seed)
        drawn.append([explainer.explain(person, 1, rng, Deadline.after(7.0)) for person in factuals(problem, 4)])
    first, again, other = ([(found.answers[0].row, found.trace[0]["seed"]) for found in each] for each in drawn)
    assert first == again
    assert all(one[1] != two[1] for one, two in zip(first, other, strict=True))
    assert [row for row, _ in first] != [row for row, _ in other]
    assert all(5.0 < float(found.answers[0].detail) <= 7.0 for found in drawn[0])


HUGE = "1" + "0" * 400  # a whole number of JSON that no float64 is
ROW = '{"row": [1, 4, true, "high", "s"], '  # distance 0.2 to the person below


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ('[{"row": [NaN, 4, true, "high", "s"]}]', "age is integer, and cannot be nan"),
        ('[{"row": [0.5, 4, true, "high", "s"]}]', "age is integer, and cannot be 0.5"),
        (f'[{{"row": [{HUGE}, 4, true, "high", "s"]}}]', "age is integer, and cannot be 10{59}[.]"),
        ('[{"row": [1e300, 4, true, "high", "s"]}]', "age is integer, and cannot be 1e[+]300"),
        ('[{"row": [1, 4, true, ["high"], "s"]}]', "grade cannot be .'high'.; its categories"),
        ('[{"row": [1, 4, true, {"npy": "UEsDBHp6eno="}, "s"]}]', "grade cannot be .'npy'"),
        ('[{"row": "x"}]', "a row must be a list of 5 values"),
        ("[7]", "did not give a list of answers"),
        (f'[{ROW}"status": "OPTIMAL", "bound": 0.0}}]', "says OPTIMAL and at least 0 of a point at"),
        (f'[{ROW}"bound": 9.0}}]', "says FOUND and at least 9 of a point at"),
    ],
)
def test_an_answer_that_is_none_is_one_sentence(answers: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=why):
        told_by(answers, tmp_path)


def test_bounds_beyond_all_numbers_are_none_and_long_words_are_cut(tmp_path: Path) -> None:
    (answer,) = told_by(f'[{ROW}"bound": {HUGE}, "detail": "{"word " * 200}"}}]', tmp_path)
    assert (answer.status, answer.bound) == (Status.FOUND, None)
    assert len(answer.detail) == 400


def told_by(answers: str, folder: Path) -> tuple[Any, ...]:
    """The answers about one person, as a far side gives them."""
    problem = problem_of(classifier("cart"), "yes")
    method = Foreign("sides", str(SIDES), (sys.executable, "{script}", answers, str(folder / "once")), distance="l1")
    person = factuals(problem, 1)[0]
    return method.fit(problem).explain(person, 1, np.random.default_rng(0), Deadline.after(10.0)).answers


@pytest.mark.parametrize("kind", ["flood", "complaints"])
def test_what_a_far_side_floods_does_not_stay_in_memory(kind: str, tmp_path: Path) -> None:
    """A line of a gigabyte is given up at 64 MiB; of its standard error, 256 MiB here, the last words are kept."""
    side = FarSide([sys.executable, str(SIDES), kind, str(tmp_path / "once")], {})
    side.ask({"do": "hello"}, lambda question: None)
    side.ask({"do": "fit", "train": []}, lambda question: [])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LostError, match="64 MiB" if kind == "flood" else "code 5: x{3,400}[.]$"):
        side.ask({"do": "explain", "factual": []}, lambda question: None)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


@pytest.mark.parametrize("waits", ["wait", "poll"])
def test_what_a_far_side_has_others_compute_is_its_time(waits: str) -> None:
    """Of a child that has ended as of one that runs."""
    burn = "import time; t = time.process_time(); [0 for _ in iter(lambda: time.process_time() - t < 0.4, False)]"
    burn += "; print(1, flush=True); input()"
    end = "None" if waits == "poll" else "subprocess.DEVNULL"  # its input, at whose end it ends
    start = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', '{burn}']"
    side = FarSide([sys.executable, "-c", f"{start}, stdin={end}); c.{waits}(); input()"], {})
    assert side.process.stdout is not None
    side.process.stdout.readline()
    assert 0.4 <= side.processor_seconds < 3
    side.end()
    assert side.processor_seconds == 0


def test_an_example_in_perl_finds_the_permitted_row_that_differs_least() -> None:
    if shutil.which("perl") is None:
        pytest.skip("perl is not on this machine")
    problem = problem_of(classifier("rf"), "yes", SPACES["kept"])
    method = Foreign("perl", str(PERL), ("perl", "{script}"))
    people = factuals(problem, 8)
    for person, outcome in zip(people, explained(method, problem, people), strict=True):
        accepted = problem.train[problem.valid(problem.train)]
        accepted = accepted[[not broken for broken in problem.space.violations(person, accepted)]]
        if accepted.empty:
            assert outcome.explanation.answers[0].status is Status.GAVE_UP
            continue
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
    problem, told = asked("rf", ["trees", "estimator"], tmp_path)
    rows = problem.train.iloc[:20]
    assert told["limit"] is None
    file = bytes.fromhex(told["estimator"])
    read = skops.io.loads(file, trusted=skops.io.get_untrusted_types(data=file))
    np.testing.assert_array_equal(
        read.predict_proba(problem.classifier.matrix(rows)),
        problem.classifier.estimator.predict_proba(problem.classifier.matrix(rows)),
    )
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


def test_what_is_sent_is_what_the_stub_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    write = FarSide._write

    def noted(side: FarSide, line: bytes) -> None:
        sent.append(line)
        write(side, line)

    monkeypatch.setattr(FarSide, "_write", noted)
    problem = problem_of(classifier("rf"), "yes")
    method = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": ["trees"]})
    method.fit(problem).explain(factuals(problem, 1)[0], 1, np.random.default_rng(0), Deadline.after(10.0))
    told = [json.loads(line) for line in sent]
    (trees,) = [each["reply"] for each in told if isinstance(each.get("reply"), dict) and "trees" in each["reply"]]
    written = f"{far.__doc__} {far.Problem.__doc__} {far.Problem.trees.__doc__}"
    for key in {*(key for message in told for key in message), *trees, *trees["trees"][0]}:
        assert f'"{key}"' in written or f"``{key}``" in written


def test_numbers_that_json_has_not_are_an_error_that_the_far_side_is_told() -> None:
    """It waits for a reply: what is wrong must not cost the next question its answer, too."""
    side = FarSide([sys.executable, str(SIDES), "beyond", "no marker"], {})
    side.ask({"do": "hello"}, lambda question: None)
    reply = side.ask({"do": "fit", "train": []}, lambda question: [np.inf])
    assert "not JSON compliant" in reply["error"]
    assert not side.lost


def test_optimal_is_taken_only_with_a_claim_and_an_accepted_point(tmp_path: Path) -> None:
    problem = problem_of(classifier("rf"), "yes")
    claiming = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []}, distance="l1")
    person = factuals(problem, 1)[0]

    def statuses(method: Foreign) -> list[Status]:
        found = method.fit(problem).explain(person, 3, np.random.default_rng(0), Deadline.after(10.0))
        return [answer.status for answer in found.answers]

    assert statuses(claiming) == [Status.OPTIMAL, Status.FOUND, Status.INFEASIBLE]
    assert statuses(replace(claiming, distance=None)) == [Status.FOUND, Status.FOUND, Status.INFEASIBLE]


@pytest.mark.parametrize("name", SPACES)
def test_a_far_side_is_told_what_a_person_may_take(name: str) -> None:
    """Of every value of every feature, as the checker judges a row that differs from the person in it alone."""
    space = SPACES[name]
    asked = factuals(problem_of(classifier("rf"), "yes", space), 4)
    people = pd.concat([*asked, asked[0].assign(debt=12)])  # codes lie between 12 and what it may fall to
    for place in range(len(people)):
        person = people.iloc[[place]]
        reach = reach_of(space, person)
        for feature, values in VALUES.items():
            moved = space.frame([{**person.iloc[0], feature: value} for value in values])
            told = far.Reach(values_of(person)[0][space.names.index(feature)], json.loads(json.dumps(reach[feature])))
            permitted = [not faults for faults in space.violations(person, moved)]
            assert [told.permits(value) for value in values] == permitted


def test_relations_are_refused_where_proofs_are_claimed(tmp_path: Path) -> None:
    related = Space(FREE.features, ("age >= debt",))
    problem = problem_of(classifier("rf"), "yes", related)
    method = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []}, distance="l1")
    assert "asking keeps no relations" in str(method.refuses(problem))
    assert replace(method, distance=None).refuses(problem) is None


def test_a_refusal_of_the_far_side_is_its_sentence() -> None:
    method = Foreign("asking", str(ASKING), settings={"refuse": True})
    with pytest.raises(HarnessError, match=r"^not this one\.$"):
        method.fit(problem_of(classifier("rf"), "yes"))


def test_time_on_the_model_is_told_apart(tmp_path: Path) -> None:
    problem = problem_of(classifier("rf"), "yes")
    method = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []})
    (outcome,) = explained(method, problem, factuals(problem, 1))
    (trace,) = outcome.explanation.trace
    assert 0 < outcome.model_seconds < outcome.seconds
    assert 50 < json.loads((tmp_path / "x").read_text())["limit"] <= 60  # of the fit
    assert trace["asked accepts"] == 1
    assert trace["asked predict"] == 0


def test_seconds_on_the_model_are_those_of_the_question_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question about the model takes 0.2 s here: four while it is fitted, one for the person."""
    answer = Served.__call__

    def slow(served: Served, message: Any) -> Any:
        time.sleep(0.2)
        return answer(served, message)

    monkeypatch.setattr(Served, "__call__", slow)
    problem = problem_of(classifier("rf"), "yes")
    explainer = Foreign("asking", str(ASKING), settings={"file": str(tmp_path / "x"), "ask": []}).fit(problem)
    reply = _timed(explainer, problem, ExplainRequest(factuals(problem, 1)[0], 1, (0,), 10.0), CompileClock())
    assert reply.model_seconds is not None
    assert 0.2 <= reply.model_seconds < 0.7
    assert reply.model_seconds < reply.seconds
    assert explainer.model_seconds >= 1.0


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
    assert made.earlier == []
    assert Environment("bare", str(other)).earlier == [made.folder]
    Environment("bar", str(other)).remove()
    assert made.lacking is None
    Environment("bare", str(other)).remove()  # whatever the lock was
    assert made.lacking is not None
    assert list(environment.home().iterdir()) == []


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
        ({"name": "my/method"}, "name is 'my/method'; use letters, digits, _ and - only"),
        ({"distance": "l3"}, "no objective term 'l3'"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Foreign(**{"name": "x", "script": str(ASKING), **settings})


def test_a_script_that_is_not_there_is_refused() -> None:
    problem = problem_of(classifier("rf"), "yes")
    assert "there is no file 'nowhere/far.py'" in str(Foreign("x", "nowhere/far.py").refuses(problem))


def test_the_stub_runs_with_python_3_8_and_without_numpy() -> None:
    """A method by it answers as it does in the harness's own Python, where arrays come as such."""
    pythons = sorted((Path.home() / ".pyenv" / "versions").glob("3.8.*/bin/python"))
    if not pythons:
        pytest.skip("no Python 3.8 on this machine")
    problem = problem_of(classifier("rf"), "yes")
    script = str(HERE.parents[1] / "plugin" / "loans_plugin" / "far" / "fewest.py")
    rows = []
    for python in (str(pythons[0]), sys.executable):
        explainer = Foreign("fewest", script, (python, "{script}"), settings={"rows": 1000}).fit(problem)
        assert explainer.far.arrays == (python == sys.executable)
        given = [
            explainer.explain(person, 2, np.random.default_rng(0), Deadline.after(10.0))
            for person in factuals(problem, 4)
        ]
        rows.append([answer.row for explanation in given for answer in explanation.answers])
    assert rows[0] == rows[1]
    assert all(rows[0])
