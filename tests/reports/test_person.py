"""``python -m harness.explain``: what it prints is what the model says, and it leaves nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra.core.hydra_config import HydraConfig
from support.sweep import runner

from harness import explain
from harness.cli.explained import explained
from harness.core.explanation import Explanation
from harness.execution import clocks

CART = ("dataset=pima", "model=cart")
CHANGING = ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI")
Command = Callable[..., str]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty folder, Hydra as it was found, and nobody told on a busy machine that there is something to wait for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clocks, "SILENT", 600.0)
    before = HydraConfig.instance().cfg
    yield
    HydraConfig.instance().cfg = before


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """What the command prints: on standard output, or, where it exits with 1, on standard error."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["harness.explain", *arguments])
        code: object = 0
        try:
            explain.main()
        except SystemExit as fault:
            code = fault.code
        printed = capsys.readouterr()
        assert code == (1 if printed.err else 0)
        return printed.err or printed.out

    return run


def asked(*arguments: str) -> Explanation:
    ((explanation, _),) = explained(list(arguments))
    return explanation


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Two people whom the tree refuses, and one whom it does not, by row."""
    ((first, _),) = explained([*CART, "method=nearest", "n_factuals=1"])
    assert first.context is not None
    problem = first.context.problem
    fine = problem.valid(problem.train)
    return pd.concat([problem.train[~fine].iloc[:2], problem.train[fine].iloc[:1]])


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        (["method=ce_ocl", "method=nearest"], ["methods.nearest"]),
        (["model=rf"], []),
        (["method=no such"], []),
        ([f"method={'a' * 5000}"], []),
    ],
)
def test_the_worker_imports_the_method_beforehand(arguments: list[str], modules: list[str]) -> None:
    """The last one named, as Hydra has it; a name that is none is told later."""
    assert explain._module(arguments) == modules


def test_a_person_is_explained_and_nothing_is_stored(printed: Command, people: pd.DataFrame, tmp_path: Path) -> None:
    """The changed features, scores that the model gives, the objective, and what proves it."""
    row = people.index[0]
    text = printed(*CART, "method=ce_ocl", f"factual={row}", "n_counterfactuals=2")
    explanation = asked(*CART, "method=ce_ocl", f"factuals={row}", "n_counterfactuals=2")
    context = explanation.context
    assert context is not None
    assert text.startswith(str(explanation))
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    for answer, told in zip(explanation.answers, context.told, strict=True):
        after = pd.DataFrame([answer.row])
        assert told is not None
        classifier = context.problem.classifier
        assert f"→ {classifier.score(after)[0]:.6g}" in next(line for line in lines.values() if "score of" in line)
        assert f"{answer.objective:.4f}".rstrip("0") in lines["objective"]
        changed = [name for name in after if after[name][0] != people.loc[row, name]]
        assert changed
        for name in changed:
            assert f"→ {told[name]:g}" in lines[name]
            assert told[name] == pytest.approx(after[name][0], rel=1e-5)
    assert "OPTIMAL: proven" in text
    assert list(tmp_path.iterdir()) == []


def test_what_is_printed_is_a_counterfactual(printed: Command) -> None:
    """Thresholds of a forest lie between numbers of six digits: the row with what is printed is accepted, too."""
    arguments = ("dataset=pima", "model=rf", "method=ce_ocl")
    found = [explanation for explanation, _ in explained([*arguments, "n_factuals=4"])]
    for explanation in found:
        assert explanation.context is not None
        problem, factual = explanation.context.problem, explanation.context.factual
        text = printed(*arguments, f"factual={factual.index[0]}")
        read = {line.split()[0]: float(line.split()[-1]) for line in text.splitlines() if line.startswith(CHANGING)}
        assert read
        assert problem.valid(factual.assign(**read)).all()


def test_people_who_want_different_things_get_their_own_answers(people: pd.DataFrame) -> None:
    """They are asked about by what they want, and told in the order of the command."""
    first, last, between = people.index
    found = explained([*CART, "method=ce_ocl", f"factuals=[{first},{between},{last}]", "desired=opposite"])
    for row, (explanation, _) in zip((first, between, last), found, strict=True):
        assert explanation.context is not None
        assert explanation.context.factual.iloc[0].to_dict() == people.loc[row].to_dict()
        problem, (answer,) = explanation.context.problem, explanation.answers
        assert problem.target.holds(problem.classifier, pd.DataFrame([answer.row])).all()


def test_who_has_what_is_wanted_gets_one_sentence(printed: Command, people: pd.DataFrame) -> None:
    row = people.index[2]
    text = printed(*CART, "method=ce_ocl", f"factual={row}")
    assert text == f"Factual {row}: the model already says what is wanted of this factual.\n"
    asked = printed(*CART, "method=ce_ocl", f"factual={row}", "satisfied=ask")
    assert "OPTIMAL: proven" in asked
    assert "already says" not in asked


def test_a_file_names_several_people(printed: Command, people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    text = printed(*CART, "method=ce_ocl", "factual=people.csv")
    assert text.count("wanted is") == 2
    assert text.count("already says what is wanted") == 1


def test_a_robust_answer_shows_intervals_that_hold(printed: Command, people: pd.DataFrame) -> None:
    """Each feature with room is shown with it; the model says what is wanted at random points of the whole box."""
    arguments = (*CART, "method=robust")
    explanation = asked(*arguments, f"factuals={people.index[0]}")
    answer, context = explanation.answers[0], explanation.context
    assert context is not None
    assert answer.region
    text = printed(*arguments, f"factual={people.index[0]}")
    rng = np.random.default_rng(0)
    points = pd.concat([pd.DataFrame([answer.row])] * 500, ignore_index=True)
    for name, (low, high) in answer.region.items():
        assert (f"{name} may be" in text) == (low < high)
        if low < high:
            points[name] = rng.uniform(low, high, len(points))
    assert context.problem.valid(points).all()
    assert "may be: the prediction is proven" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no factual is given"),
        (("factual=100000",), "there is no row 100000"),
        (("factual=absent.csv",), "absent.csv is no file"),
        (("factual=3", "methd=nearest"), "did you mean 'method'"),
        (("factual=3", "method=nearst"), "did you mean 'nearest'"),
        (("factual=3", "group=true"), "group does not fit"),
        (("factual=3", "time_limit=0"), "time_limit=0"),
    ],
    ids=["none", "no row", "no file", "no setting", "no method", "group", "limit"],
)
def test_a_wrong_argument_is_one_sentence(printed: Command, arguments: tuple[str, ...], words: str) -> None:
    text = printed(*CART, *arguments)
    assert words in text
    assert len(text.strip().splitlines()) == 1


def test_what_was_done_to_the_data_is_said(tmp_path: Path) -> None:
    """Beside what is printed, on standard error, where ``python -m harness`` has it."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": rng.normal(50, 9, 60).round(1), "debt": rng.integers(0, 9, 60)})
    table["approved"] = np.where(table["income"] > 50, "yes", "no")
    table.loc[3, "income"] = np.nan
    table.to_csv(tmp_path / "gaps.csv", index=False)
    loans = ("dataset=csv", "dataset.path=gaps.csv", "dataset.target=approved", "dataset.missing=median")
    done = runner(tmp_path)(*loans, "model=cart", "method=nearest", "factual=3", module="harness.explain")
    assert done.returncode == 0, done.stderr
    assert "gaps: missing cells: filled 1 of income by its median" in done.stderr
    assert "missing cells" not in done.stdout
