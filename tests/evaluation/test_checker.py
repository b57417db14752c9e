"""The checker recomputes everything from what is stored, and believes no claim."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from support.tables import GRANTED

from harness import check
from harness.check import main
from harness.core.classifier import Classifier
from harness.core.equation import Equation, Formula
from harness.core.explanation import Answer, Status
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.core.wording import UNCHECKED
from harness.evaluation import checker
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.nearest import Nearest
from metrics import _example as loans

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(params=["lr", "ridge"])
def problem(problem_of: Callable[[str], Problem], request: pytest.FixtureRequest) -> Problem:
    """The small problem with a class and with an interval of numbers as its target."""
    return problem_of(request.param)


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """Honest answers of the nearest neighbour to four factuals, two each."""
    method = Nearest()
    cell = StoredRun(tmp_path / "answers" / "toy-lr-nearest")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 2, "config": {}}
    targets = dict.fromkeys(factuals.index, problem.target)
    cell.start(meta, problem.space, problem.classifier, targets, method.objective(problem), factuals)
    explainer, timing = method.fit(problem), {"seconds": 0.1, "fit_seconds": 0.1, "late": False}
    for index in factuals.index:
        explained = explainer.explain(factuals.loc[[index]], 2, np.random.default_rng(0), Deadline.after(9))
        cell.append(answer_row(index, number + 1, answer, **timing) for number, answer in enumerate(explained.answers))
    cell.finish()
    return cell


def tamper(cell: StoredRun, change: Change) -> tuple[Any, int]:
    """Change the first stored row that holds a counterfactual, and say which it was."""
    lines = cell.rows()
    row = next(row for row in lines if row["row"] is not None)
    change(row)
    (cell.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return row["factual"], row["ce"]


def verdict_of(cell: StoredRun, change: Change) -> dict[str, Any]:
    which = tamper(cell, change)
    return next(v for v in checker.verdicts(cell) if (v["factual"], v["ce"]) == which)


def test_honest_answers_are_valid(cell: StoredRun) -> None:
    """A verdict a row; ``none`` where there is no counterfactual; the objective is the claimed one."""
    verdicts, rows = checker.verdicts(cell), cell.rows()
    assert [(v["factual"], v["ce"]) for v in verdicts] == [(row["factual"], row["ce"]) for row in rows]
    assert {v["verdict"] for v in verdicts} <= {"accepted", "none"}
    for verdict, row in zip(verdicts, rows, strict=True):
        assert (verdict["verdict"] == "none") == (row["row"] is None)
        if row["row"] is not None:
            assert verdict["objective"] == pytest.approx(row["objective"], abs=1e-12)
    assert any(v["verdict"] == "accepted" for v in verdicts)


def test_the_wrong_class_is_invalid(cell: StoredRun) -> None:
    """The stored model is asked, not the status."""
    frame, _ = cell.factuals()

    def change(row: dict[str, Any]) -> None:
        row["row"] = frame.loc[[row["factual"]]].astype(object).to_dict("records")[0]

    verdict = verdict_of(cell, change)
    assert (verdict["verdict"], verdict["valid"]) == ("invalid", False)


def test_an_answer_is_judged_by_what_was_wanted_for_its_person(tmp_path: Path) -> None:
    """Two people get the same row, which the model grants: the first wants that, the second wants to be refused."""
    run, wanted = StoredRun(tmp_path / "run"), {0: Label("granted"), 1: Label("refused")}
    people = pd.concat([loans.factual] * 2).set_axis(list(wanted))
    meta = {"dataset": "loans", "model": "tree", "method": "m", "n_counterfactuals": 1}
    run.start(meta, loans.SPACE, loans.problem.classifier, wanted, None, people)
    run.append(answer_row(person, 1, Answer(Status.FOUND, GRANTED), seconds=1.0) for person in wanted)
    assert [verdict["verdict"] for verdict in checker.verdicts(run)] == ["accepted", "invalid"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("visits", 3.5), ("income", None), ("income", "much"), ("city", "Trier"), ("member", "x"), ("income", True)],
)
def test_a_value_that_does_not_exist_is_incoherent(cell: StoredRun, name: str, value: Any) -> None:
    verdict = verdict_of(cell, lambda row: row["row"].update({name: value}))
    assert (verdict["verdict"], verdict["incoherent"]) == ("incoherent", [name])


def test_a_missing_column_is_incoherent(cell: StoredRun) -> None:
    assert verdict_of(cell, lambda row: row["row"].pop("income"))["incoherent"] == ["income"]


def test_an_immutable_feature_that_changed_is_not_permitted(cell: StoredRun) -> None:
    """The model does not care for ``height`` enough to change its mind, the checker does."""
    verdict = verdict_of(cell, lambda row: row["row"].update(height=row["row"]["height"] + 1e-3))
    assert (verdict["verdict"], verdict["violations"], verdict["valid"]) == ("not permitted", ["height"], True)


@pytest.mark.parametrize(
    ("text", "broken"), [("at most 0 of [A, B] change", True), ("at most 1 of [A, B] change", False)]
)
def test_a_relation_that_is_broken_is_not_permitted(cell: StoredRun, text: str, broken: bool) -> None:
    """A stored question with a relation is judged by it, whatever the method knew of it."""
    path = cell.path / "cell.json"
    meta = json.loads(path.read_text())
    names = [feature["name"] for feature in meta["space"]["features"] if feature["actionability"] == "free"][:2]
    meta["space"]["constraints"] = [text.replace("A", f"`{names[0]}`").replace("B", f"`{names[1]}`")]
    path.write_text(json.dumps(meta))
    factuals, _ = cell.factuals()
    for verdict, row in zip(checker.verdicts(cell), cell.rows(), strict=True):
        if row["row"] is None:
            continue
        changed = sum(row["row"][name] != factuals.loc[row["factual"], name] for name in names)
        assert (verdict["verdict"] == "not permitted") == (changed > (0 if broken else 1))
        assert len(verdict["violations"]) == (changed > (0 if broken else 1))


def test_an_understated_objective_is_worse_than_claimed(cell: StoredRun) -> None:
    """Beyond 1e-6; a claim that is too high is no fault of the answer."""
    assert verdict_of(cell, lambda row: row.update(objective=row["objective"] + 0.1))["verdict"] == "accepted"
    assert verdict_of(cell, lambda row: row.update(objective=row["objective"] - 0.2))["verdict"] == "worse than claimed"


def test_a_late_answer_is_late(cell: StoredRun) -> None:
    assert verdict_of(cell, lambda row: row.update(late=True))["verdict"] == "late"


def test_exit_codes(cell: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 where every counterfactual holds, 1 where one does not, 2 where there is nothing to check."""
    assert check.main([str(tmp_path)]) == 0
    assert "0 of them do not hold" in capsys.readouterr().out
    assert len(cell.verdicts()) == len(cell.rows())
    assert any(row["status"] == Status.FOUND for row in cell.rows())
    tamper(cell, lambda row: row["row"].update(visits=0.5))
    assert check.main([str(tmp_path)]) == 1
    assert "1 of them do not hold" in capsys.readouterr().out
    (cell.path / "verdicts.jsonl").unlink()
    (cell.path / "done").unlink()
    assert check.main([str(tmp_path)]) == 1
    assert not (cell.path / "verdicts.jsonl").exists()  # its sweep goes on
    assert check.main([str(tmp_path / "nowhere")]) == 1
    assert "no stored answers" in capsys.readouterr().err


def test_an_invalid_point_of_a_method_without_claims_is_counted_apart(
    cell: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But not where it was accepted when it was stored: then the file has changed since."""
    cell.update(objective=None)
    good = (cell.path / "rows.jsonl").read_text()
    tamper(cell, lambda row: row["row"].update(visits=0.5))
    assert check.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "0 of them do not hold" in out
    assert "1 more are not valid, by methods that claim nothing" in out
    (cell.path / "rows.jsonl").write_text(good)
    checker.judge(cell)
    assert check.main([str(tmp_path)]) == 0
    tamper(cell, lambda row: row["row"].update(visits=0.5))
    for _ in range(2):  # what was said when it was stored stays there
        assert check.main([str(tmp_path)]) == 1


def test_what_was_accepted_has_to_be_so_still(
    cell: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the row is of the wanted class as before, but a feature moves that may not, or it is gone."""
    cell.update(objective=None)
    checker.judge(cell)
    good = (cell.path / "rows.jsonl").read_text()
    changes: list[tuple[str, Change]] = [
        ("not permitted", lambda row: row["row"].update(height=row["row"]["height"] + 1e-3)),
        ("none", lambda row: row.update(row=None)),
    ]
    for word, change in changes:
        assert verdict_of(cell, change)["verdict"] == word
        assert check.main([str(tmp_path)]) == 1
        assert "1 of them do not hold" in capsys.readouterr().out
        (cell.path / "rows.jsonl").write_text(good)
    assert check.main([str(tmp_path)]) == 0


def test_the_same_point_is_repeated_in_whatever_order_its_values_stand(cell: StoredRun) -> None:
    lines = cell.rows()
    first, second = (row for row in lines if row["factual"] == lines[0]["factual"])
    second.update(first, ce=2, row=dict(reversed(first["row"].items())))
    (cell.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [verdict["verdict"] for verdict in checker.verdicts(cell)[:2]] == ["accepted", "repeated"]


NUMBER = Feature("x", "continuous", scale=(0, 10), bounds=(0, 10), special=(-9.0, 11.5))
RISING, FALLING = (
    Feature("x", "continuous", scale=(0, 10), bounds=(0, 10), actionability=way) for way in ("increase", "decrease")
)
STEPS_UP, STEPS_DOWN, FIXED = (
    Feature("g", "ordinal", ("a", "b", "c"), actionability=way) for way in ("increase", "decrease", "immutable")
)
FREE = Feature("g", "categorical", ("a", "b", "c", "d"), special=("d",))
CODED = Feature("g", "ordinal", ("a", "b", "c", "d"), actionability="increase", special=("d",))
LADDER = Feature("g", "ordinal", ("a", "b", "c", "d"), actionability="conditional", order=("b", "a", "d"))


@pytest.mark.parametrize(
    ("feature", "old", "new", "allowed"),
    [
        (NUMBER, 3.0, 10.0, True),
        (NUMBER, 3.0, 10.0 + 1e-9, True),
        (NUMBER, 3.0, 10.1, False),
        (NUMBER, 12.0, 11.0, True),
        (NUMBER, 12.0, 13.0, False),
        (NUMBER, 12.0, 12.0, True),
        (NUMBER, 12.0, 11.5, False),
        (NUMBER, -9.0, -9.0, True),
        (NUMBER, -9.0, -8.0, False),
        (NUMBER, -9.0, 0.0, True),
        (NUMBER, 3.0, -1e-8, True),  # a billionth of the range is rounding
        (NUMBER, 3.0, 10.0 + 1e-8, True),
        (NUMBER, 3.0, -1.1e-8, False),
        (NUMBER, -5.0, -3.0, True),  # nearer to the bounds
        (NUMBER, -5.0, -6.0, False),
        (NUMBER, 5.0, -9.0, False),
        (RISING, 3.0, 4.0, True),
        (RISING, 3.0, 2.0, False),
        (FALLING, 3.0, 2.0, True),
        (FALLING, 3.0, 4.0, False),
        (FALLING, 0.1, 0.1 + 2e-9, True),  # of a range of 10
        (FALLING, 0.1, 0.1 + 1e-7, False),
        (STEPS_UP, "b", "c", True),
        (STEPS_UP, "b", "a", False),
        (STEPS_DOWN, "b", "a", True),
        (STEPS_DOWN, "b", "c", False),
        (FREE, "b", "c", True),
        (FREE, "b", "d", False),
        (CODED, "b", "c", True),
        (CODED, "b", "d", False),
        (CODED, "d", "d", True),
        (FIXED, "b", "c", False),
        (FIXED, "b", "b", True),
        (LADDER, "b", "a", True),
        (LADDER, "a", "b", False),
        (LADDER, "b", "c", False),
        (LADDER, "c", "d", False),
        (LADDER, "c", "c", True),
    ],
)
def test_permitted(feature: Feature, old: Any, new: Any, allowed: bool) -> None:
    """Bounds widen to the factual's own value, special codes are no goal, an order's gaps are not entered or left."""
    assert checker.permitted(feature, old, new) is allowed


def test_a_point_that_does_not_exist_is_not_asked_about(cell: StoredRun) -> None:
    """It has no class, no objective, and breaks nothing else."""
    verdict = verdict_of(cell, lambda row: row["row"].update(city="Trier", height=0.0))
    assert (verdict["valid"], verdict["objective"], verdict["violations"], verdict["limits"]) == (False, None, [], [])


@pytest.mark.parametrize(("claimed", "kept"), [(True, False), (False, True)])
def test_equations_are_checked_of_whoever_claims_to_keep_them(
    problem_of: Callable[[str], Problem], tmp_path: Path, claimed: bool, kept: bool
) -> None:
    """Debt is to fall with income; an answer that only earns more breaks that, where the method says it would not."""
    problem, run = problem_of("lr"), StoredRun(tmp_path / "run")
    factual = problem.train.loc[~problem.valid(problem.train)].iloc[:1]
    debt = Equation("debt", Classifier(Formula((-100.0,)), (Affine("income"),)))
    meta = {"dataset": "toy", "model": "lr", "method": "m", "n_counterfactuals": 1}
    targets = dict.fromkeys(factual.index, problem.target)
    run.start(meta, problem.space, problem.classifier, targets, Objective((), causal=claimed), factual, (debt,))
    richer = {**factual.iloc[0].to_dict(), "income": factual["income"].iloc[0] + 1.0}
    run.append([answer_row(factual.index[0], 1, Answer(Status.FOUND, richer), seconds=1.0)])
    (verdict,) = checker.verdicts(run)
    assert verdict["limits"] == ([] if kept else ["causality"])


@pytest.mark.parametrize(
    ("rates", "limits"), [((5.0,), []), ((0.0,), ["causality"]), ((7.0,), ["causality"]), ((0.0, 5.0), ["causality"])]
)
def test_each_equation_is_to_be_kept_from_both_sides(rates: tuple[float, ...], limits: list[str]) -> None:
    """Income rises by 50 of its 100 in ten years: as it is to at 5 a year, by .5 more at 0, by .2 less at 7."""
    imposed = [Equation("income", Classifier(Formula((rate,)), (Affine("age"),))) for rate in rates]
    question = loans.factual, loans.SPACE, loans.problem.classifier, Label("granted"), Objective((), causal=True)
    verdict = checker.examine(answer_row(0, 1, Answer(Status.FOUND, GRANTED)), *question, imposed)
    assert verdict["limits"] == limits


@pytest.mark.parametrize(
    ("too_low", "word"), [(9e-7, None), (2e-6, "worse than claimed"), (1e-3, "worse than claimed")]
)
def test_a_claim_is_taken_to_a_millionth(cell: StoredRun, too_low: float, word: str | None) -> None:
    """Of the objective, or of 1 where that is less."""
    verdict = verdict_of(cell, lambda row: row.update(objective=row["objective"] - too_low))
    assert 0 < verdict["objective"] < 1
    assert (verdict["verdict"] == "worse than claimed") is (word is not None)


@pytest.mark.parametrize(("above", "sound"), [(-1.0, True), (9e-7, True), (2e-6, False)])
def test_no_bound_lies_above_its_answer(cell: StoredRun, above: float, sound: bool) -> None:
    verdict = verdict_of(cell, lambda row: row.update(bound=row["objective"] + above))
    assert (verdict["verdict"] == "worse than claimed") is not sound


@pytest.mark.parametrize(("share", "sound"), [(0.99, True), (1.01, False)])
def test_a_region_is_checked_to_its_ends(problem: Problem, cell: StoredRun, share: float, sound: bool) -> None:
    """Of a linear model the nearest invalid income is known: a region up to it stands, one beyond it does not."""

    def widen(row: dict[str, Any]) -> None:
        points = problem.space.frame([{**row["row"], "income": income} for income in np.linspace(0, 100, 20_001)])
        valid, own = points["income"][problem.valid(points)], row["row"]["income"]
        ends = [abs(own - end) for end in (valid.min(), valid.max()) if end not in (0, 100)]
        reach = share * min(ends) + 0.01 * (share > 1)  # the step of the incomes is 0.005
        row["region"] = {"income": [own - reach, own + reach]}

    verdict = verdict_of(cell, widen)
    assert verdict["valid"]
    assert verdict["limits"] == ([] if sound else ["region"])


def robust(income: float, region: Any, norm: str, **claimed: Any) -> dict[str, Any]:
    """The verdict on an answer that is said to withstand 0.05 in scaled units: 5 of income, 2 of age."""
    row = {**GRANTED, "income": income}
    domain = {"rho": 0.05, "norm": norm, "unperturbed": (), "clip": False, **claimed}
    answer = answer_row(0, 1, Answer(Status.FOUND, row, region=region))
    question = loans.factual, loans.SPACE, loans.problem.classifier, Label("granted"), Objective((), domain=domain)
    return checker.examine(answer, *question)


@pytest.mark.parametrize(
    ("income", "region", "sound"),
    [
        (60.0, {"income": (55.0, 65.0), "age": (38.0, 42.0)}, True),
        (60.0, {"income": (55.1, 65.0), "age": (38.0, 42.0)}, False),
        (60.0, {"income": (55.0, 64.9), "age": (38.0, 42.0)}, False),
        (60.0, {"income": (55.0, 65.0)}, False),
        (60.0, None, False),
        (50.1, {"income": (50.1, 50.1), "age": (40.0, 40.0)}, False),
        (54.0, {"income": (49.0, 59.0), "age": (38.0, 42.0)}, False),  # granted above 50
        (60.0, {"income": (55.0, 65.0), "age": (38.0, 42.0), "height": (1.0, 2.0)}, False),  # no feature
        (60.0, {"income": (55.0, None), "age": (38.0, 42.0)}, False),
        (60.0, {"income": (np.float32(55), np.int64(65)), "age": (np.int64(38), np.float64(42))}, True),
    ],
)
def test_a_region_is_as_wide_as_was_claimed(income: float, region: Any, sound: bool) -> None:
    """And not only as the method has written it."""
    verdict = robust(income, region, "linf")
    assert verdict["valid"]
    assert verdict["verdict"] == ("accepted" if sound else "beyond its limits")


def test_what_is_not_perturbed_needs_no_region() -> None:
    """Nor do values beyond the bounds where perturbed points keep to these, at an income of 98 of 100."""
    assert robust(60.0, {"income": (55.0, 65.0)}, "linf", unperturbed=("age",))["verdict"] == "accepted"
    clipped = {"income": (93.0, 100.0), "age": (38.0, 42.0)}
    words = [robust(98.0, clipped, "linf", clip=clip)["verdict"] for clip in (True, False)]
    assert words == ["accepted", "beyond its limits"]


@pytest.mark.parametrize(("income", "sound"), [(56.0, True), (54.0, False)])
def test_of_a_ball_more_than_the_box_in_it_is_asked_about(income: float, sound: bool) -> None:
    """The box reaches 3.5 below, and is valid both times; the ball 5, where 50 is refused."""
    reach = 5 / np.sqrt(2), 2 / np.sqrt(2)
    region = {"income": (income - reach[0], income + reach[0]), "age": (40 - reach[1], 40 + reach[1])}
    verdict = robust(income, region, "l2")
    assert verdict["valid"]
    assert verdict["verdict"] == ("accepted" if sound else "beyond its limits")
    narrow = {**region, "age": (40.0, 40.0)}
    assert robust(income, narrow, "l2")["verdict"] == "beyond its limits"


@pytest.mark.parametrize(("too_low", "word"), [(9e-7, "accepted"), (2e-6, "worse than claimed")])
def test_a_claim_is_as_exact_where_changes_weigh_ten_thousand(too_low: float, word: str) -> None:
    """A millionth of 20,000 would be a fiftieth of the distance."""
    objective = Objective((Term("l1"), Term("l0", 10_000.0)))
    value = objective.evaluate(loans.SPACE, loans.factual, loans.SPACE.frame([GRANTED])).item()
    assert value > 20_000
    row = answer_row(0, 1, Answer(Status.OPTIMAL, GRANTED, objective=value - too_low, bound=value - too_low))
    question = loans.factual, loans.SPACE, loans.problem.classifier, Label("granted"), objective
    assert checker.examine(row, *question)["verdict"] == word


@pytest.mark.parametrize(
    ("off", "limits"), [([0.0], []), ([math.nan], ["causality"]), ([0.0, math.nan], ["causality"])]
)
def test_what_an_equation_says_nothing_of_is_no_proof(off: list[float], limits: list[str]) -> None:
    """As of a missing value."""
    imposed: list[Any] = [SimpleNamespace(residual=lambda *_, each=each: np.array([each])) for each in off]
    question = loans.factual, loans.SPACE, loans.problem.classifier, Label("granted"), Objective((), causal=True)
    verdict = checker.examine(answer_row(0, 1, Answer(Status.FOUND, GRANTED)), *question, imposed)
    assert verdict["limits"] == limits


def test_a_region_that_was_not_settled_is_said(
    cell: StoredRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is neither proven nor a fault: the verdict has it, and the command counts it."""
    monkeypatch.setattr("harness.evaluation.regions.verdict", lambda *_: UNCHECKED)
    tamper(cell, lambda row: row.update(region={"income": [row["row"]["income"]] * 2}))
    assert main([str(cell.path.parent)]) == 0
    assert "; 1 regions not checked" in capsys.readouterr().out
    assert [verdict["region"] for verdict in cell.verdicts() if "region" in verdict] == [UNCHECKED]


FOUR = Space(tuple(Feature(name, "binary", (0, 1)) for name in "abcd"))
PLACES = FOUR.frame(dict(zip("abcd", values, strict=True)) for values in product((0, 1), repeat=4))
PEOPLE = FOUR.frame(dict(zip("abcd", values, strict=True)) for values in [(0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 1)])
POINT = {"a": 1, "b": 0, "c": 0, "d": 0}  # differs from the first two in a and b together, from the third in a, c, d
SERVED: dict[str, Any] = {
    "group": "all", "factuals": [0, 1, 2], "points": [POINT], "changed": [["a", "b"]], "bound": 1.0, "uncoverable": [2],
    "status": "OPTIMAL",
}  # fmt: skip


def group_words(folder: Path, most: int | None, members: tuple[int, ...] = (0, 1), **changes: Any) -> dict[int, str]:
    """What is wrong with a group of three, of which some share the point; whoever has a is granted."""
    model = DecisionTreeClassifier(max_depth=1).fit(FOUR.encode(PLACES), PLACES["a"])
    classifier = Classifier(model, space_inputs(FOUR), ("refused", "granted"))
    run, limits = StoredRun(folder / "run"), () if most is None else (Limit(Term("l0"), most),)
    targets = dict.fromkeys(PEOPLE.index, Label("granted"))
    meta = {"dataset": "four", "model": "cart", "method": "m", "n_counterfactuals": 1}
    run.start(meta, changes.pop("space", FOUR), classifier, targets, Objective((), limits=limits), PEOPLE)
    point, at, lost = changes.pop("row", POINT), changes.pop("at", {}), changes.pop("lost", None)
    done = changes.pop("done", lost is not None)
    for index in PEOPLE.index.difference([lost]):
        there = index in members
        row = answer_row(index, 1, Answer(Status.FOUND, point) if there else Answer(Status.GAVE_UP), seconds=1.0)
        run.append([row | {"group": "all", "point": at.get(index, 0) if there else None}])
    run.append_group(SERVED | changes)
    if done:
        run.finish()
    return checker.group_faults(run)


@pytest.mark.parametrize(
    ("most", "members", "wrong"),
    [
        (2, (0, 1), {}),
        (1, (0, 1), dict.fromkeys((0, 1), "beyond its limits")),  # a and b together are two
        (1, (0,), {}),
        (None, (0, 1), {2: "worse than claimed"}),  # without a limit the third can be served
        (3, (0, 1), {2: "worse than claimed"}),
        (2, (0, 1, 2), dict.fromkeys((0, 1, 2), "beyond its limits")),
    ],
)
def test_a_group_changes_no_more_features_together_than_claimed(
    most: int | None, members: tuple[int, ...], wrong: dict[int, str], tmp_path: Path
) -> None:
    left = [factual for factual in (0, 1, 2) if factual not in members]
    found = group_words(tmp_path, most, members, uncoverable=left if len(members) != 1 else [], status="FOUND")
    assert found == wrong


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"bound": 1.0 + 9e-7}, set()),
        ({"bound": 1.0 + 1e-6}, set()),
        ({"bound": 1.01}, {0, 1, 2}),  # more than the points there are
        ({"bound": 0.01}, set()),  # a fraction of a point is a whole one
        ({"bound": 0.0}, {0, 1, 2}),  # proves nothing of one point
        ({"bound": None}, {0, 1, 2}),
        ({"bound": None, "status": "FOUND"}, set()),
        ({"bound": 2.0, "status": "FOUND"}, {0, 1, 2}),
        ({"uncoverable": []}, {0, 1, 2}),  # the third is neither served nor called uncoverable
        ({"uncoverable": [], "status": "FOUND"}, set()),
        ({"points": [POINT, POINT], "changed": [["a", "b"]] * 2}, {0, 1, 2}),  # a point that serves no factual
        ({"changed": [["a", "b", "c"]]}, set()),
        ({"changed": [["a"]]}, {0, 1}),  # b changes, too
        ({"row": {**POINT, "b": 1}, "status": "FOUND"}, {0, 1}),  # not the group's point
        ({"uncoverable": [1, 2]}, {1}),  # the point serves the second
        ({"points": [{**POINT, "a": 2}], "row": {**POINT, "a": 2}, "uncoverable": [1, 2]}, set()),  # no point at all
        ({"points": [], "changed": [], "bound": None, "status": "FOUND"}, {0, 1, 2}),  # two are at a point of no list
        ({"at": {1: None}, "status": "FOUND"}, {0, 1, 2}),
        ({"status": "INFEASIBLE", "bound": None}, {0, 1, 2}),  # and two are served
        ({"total_change": 3}, set()),  # of the first a, of the second a and b
        ({"total_change": 2}, {0, 1, 2}),
        ({"total_change": 4}, {0, 1, 2}),
        # One point, which is listed twice.
        ({"points": [POINT, POINT], "changed": [["a"], ["a", "b"]], "at": {1: 1}, "bound": 2.0}, {0, 1, 2}),
        ({"points": [POINT, POINT], "changed": [["a"], ["a", "b"]], "at": {1: 1}, "status": "FOUND"}, set()),
        ({"lost": 2}, {0, 1}),  # a run that has ended without a row of the third
        ({"lost": 2, "done": False}, set()),  # or has not ended
    ],
)
def test_a_groups_proof_follows_from_its_rows(changes: dict[str, Any], wrong: set[int], tmp_path: Path) -> None:
    """At most two changes together: two factuals share the point, the third needs three changes."""
    found = group_words(tmp_path, 2, **changes)
    assert found == dict.fromkeys(wrong, "worse than claimed")


def test_that_nobody_can_be_served_is_a_proof(tmp_path: Path) -> None:
    nobody = {"points": [], "changed": [], "bound": None, "uncoverable": [0, 1, 2]}
    assert group_words(tmp_path, 2, (), status="INFEASIBLE", **nobody) == {}


def test_one_point_may_be_two_where_together_too_much_changes(tmp_path: Path) -> None:
    """Of all three four features, where three may change; each of the two serves within that."""
    two = {"points": [POINT, POINT], "changed": [["a", "b"], ["a", "c", "d"]], "at": {2: 1}, "bound": 2.0}
    assert group_words(tmp_path, 3, (0, 1, 2), uncoverable=[], **two) == {}


def test_who_may_not_reach_a_point_is_uncoverable(tmp_path: Path) -> None:
    """A point of another class serves no factual either."""
    refused = {**POINT, "a": 0, "b": 1}
    assert group_words(tmp_path, 2, (), points=[refused], status="FOUND", uncoverable=[0, 1, 2], bound=None) == {}


@pytest.mark.parametrize(
    ("actionability", "wrong"), [("immutable", {}), ("free", dict.fromkeys((0, 1, 2), "worse than claimed"))]
)
def test_whom_a_constraint_keeps_from_a_point_is_uncoverable(
    actionability: str, wrong: dict[int, str], tmp_path: Path
) -> None:
    """The point has an a that nobody has: where a must stay it serves nobody, else all, as there is no limit."""
    space = Space((Feature("a", "binary", (0, 1), actionability=actionability), *FOUR.features[1:]))
    nobody = {"uncoverable": [0, 1, 2], "bound": None, "status": "FOUND"}
    assert group_words(tmp_path, None, (), space=space, **nobody) == wrong


def test_a_model_is_asked_about_all_answers_at_once(cell: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that it accepts; what it refuses among others is asked about alone."""
    sizes: list[int] = []
    target: Any = type(next(iter(cell.factuals()[1].values())))
    holds = target.holds

    def counted(self: Any, classifier: Any, frame: Any) -> Any:
        sizes.append(len(frame))
        return holds(self, classifier, frame)

    monkeypatch.setattr(target, "holds", counted)
    words = [verdict["verdict"] for verdict in checker.verdicts(cell)]
    assert words.count("accepted") > 1
    assert sizes[0] == len(words) - words.count("none")
    assert sizes[1:] == [1] * words.count("invalid")


@pytest.mark.parametrize(("bound", "word"), [(1.0, "late"), (2.0, "worse than claimed")])
def test_a_late_answer_of_a_group_is_held_against_the_groups_claims(bound: float, word: str, tmp_path: Path) -> None:
    """Two points at least, it says, and one is there: being late is no excuse."""
    group_words(tmp_path, 2, bound=bound, status="FOUND")
    run = StoredRun(tmp_path / "run")
    lines = [json.loads(line) | {"late": True} for line in (run.path / "rows.jsonl").read_text().splitlines()]
    (run.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [verdict["verdict"] for verdict in checker.verdicts(StoredRun(run.path))]
    assert words[:2] == [word, word]


def test_every_limit_that_is_broken_is_named() -> None:
    """A point of too many changes that other weights refuse, too: both, not the first alone."""
    space, values = loans.linear.space, loans.answers.iloc[0].to_dict()
    claim = Objective((Term("l1"),), limits=(Limit(Term("l0"), 1),), domain={"delta": 0.5})
    question = loans.factual, space, loans.linear.classifier, loans.linear.target, claim
    found = checker.examine({"row": values, "objective": None}, *question)
    assert found["limits"] == ["l0", "delta"]


def test_a_gap_is_not_filled_by_a_special_code() -> None:
    """Which lies within bounds where these have no upper end."""
    amount = Feature("x", "continuous", scale=(0, 10), bounds=(0, np.inf), special=(9999.0,))
    assert checker.permitted(amount, np.nan, 9998.0)
    assert not checker.permitted(amount, np.nan, 9999.0)
