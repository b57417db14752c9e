"""Proofs are held against what others found: of the loans, an income v is (v - 30) / 100 from the factual's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from support.tables import started

from harness import check
from harness.core.classifier import Classifier
from harness.core.equation import Equation, Formula
from harness.core.errors import HarnessError
from harness.core.inputs import Affine
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.space import Space
from harness.core.target import Label
from harness.evaluation import checker, proofs
from harness.store.run import StoredRun
from metrics import _example as loans

NEAREST = Objective((Term("l1"),))


def earning(income: float, **others: Any) -> dict[str, Any]:
    return loans.factual.iloc[0].to_dict() | {"income": income} | others


def proving(folder: Path, bound: float | None, objective: Objective, **changes: Any) -> StoredRun:
    """A run that answers with an income of 90, or with none where it proves that; its row with further changes."""
    run = started(folder, loans.problem, loans.factual, [earning(90.0)], method="exact")
    run.put_objective(objective)
    row = run.rows()[0] | {"bound": bound, "status": "OPTIMAL", "objective": None} | changes
    (run.path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return run


def within(low: float, high: float) -> Limit:
    """The hull of the factual with two incomes."""
    points = loans.SPACE.encode(loans.SPACE.frame([earning(low), earning(high)]))
    return Limit(Term("slack", params={"points": points, "norm": 1}), 0.0)


def told(*runs: StoredRun) -> tuple[list[str], int]:
    return proofs.contradicted([(run, checker.verdicts(run)) for run in runs])


def rival(folder: Path, income: float, problem: Problem = loans.problem, age: int = 30, years: int = 30) -> StoredRun:
    """Somebody of an age is answered with an income, and ``years``."""
    factual = loans.factual.assign(age=age)
    return started(folder, problem, factual, [earning(income, age=years)], method="rival")


@pytest.mark.parametrize(
    ("bound", "income", "wrong"),
    [
        (0.5, 80.0, False),
        (0.4, 80.0, False),
        (0.5 + 5e-7, 80.0, False),
        (0.5 + 5e-6, 80.0, True),
        (0.55, 80.0, True),
        (0.6 + 5e-6, 95.0, True),  # by its own point
        (0.55, 40.0, False),  # no counterfactual: refused
    ],
)
def test_a_bound_is_held_against_the_nearest_point(tmp_path: Path, bound: float, income: float, wrong: bool) -> None:
    said, held = told(proving(tmp_path, bound, NEAREST), rival(tmp_path, income))
    assert held == 1
    whose, distance = ("rival", 0.5) if income == 80.0 else ("exact", 0.6)
    expected = (
        f"loans/tree/exact: it proves of question 0 that no objective is below {bound:.9g}, and loans/tree/{whose} "
    )
    assert said == ([f"{expected}reaches {distance}"] if wrong else [])


@pytest.mark.parametrize(("power", "wrong"), [("l1", False), ("l2sq", True)])
def test_a_small_square_is_known_more_exactly(tmp_path: Path, power: str, wrong: bool) -> None:
    bound = {"l1": 0.21, "l2sq": 0.21**2}[power] + 2e-7
    said, held = told(proving(tmp_path, bound, Objective((Term(power),))), rival(tmp_path, 51.0))
    assert (len(said), held) == (int(wrong), 1)


def test_that_there_is_none_is_a_proof(tmp_path: Path) -> None:
    none = {"status": "INFEASIBLE", "row": None}
    said, held = told(proving(tmp_path, None, NEAREST, **none), rival(tmp_path, 80.0))
    assert held == 1
    assert said == [
        "loans/tree/exact: it proves of question 0 that there is no counterfactual, and loans/tree/rival has one"
    ]


@pytest.mark.parametrize(
    ("objective", "wrong", "held"),
    [
        (replace(NEAREST, limits=(Limit(Term("l0"), 1),)), 1, 1),
        (replace(NEAREST, limits=(Limit(Term("l0"), 0.5),)), 0, 1),  # nobody changes less than one feature
        (replace(NEAREST, limits=(within(80.0, 90.0),)), 1, 1),
        (replace(NEAREST, limits=(within(81.0, 90.0),)), 0, 1),
        (replace(NEAREST, terms=(*NEAREST.terms, within(80.0, 90.0).term)), 1, 1),
        (replace(NEAREST, terms=(*NEAREST.terms, within(86.0, 90.0).term)), 0, 1),
        (replace(NEAREST, domain={"rows": "of a list"}), 0, 0),
        (None, 0, 0),  # a bound of nothing
    ],
)
def test_only_points_that_the_proof_is_about_contradict_it(
    tmp_path: Path, objective: Objective | None, wrong: int, held: int
) -> None:
    exact = proving(tmp_path, 0.55, NEAREST)
    exact.update(objective=None) if objective is None else exact.put_objective(objective)
    said, looked = told(exact, rival(tmp_path, 80.0))
    assert (len(said), looked) == (wrong, held)


@pytest.mark.parametrize(
    ("bound", "change"), [(0.55, {"ce": 2}), (None, {}), (None, {"status": "GAVE_UP", "row": None})], ids=str
)
def test_what_proves_nothing_of_all_points_is_not_looked_at(
    tmp_path: Path, bound: float | None, change: dict[str, Any]
) -> None:
    """A second answer is to differ from the first, so that its bound may be above the nearest point."""
    assert told(proving(tmp_path, bound, NEAREST, **change), rival(tmp_path, 80.0)) == ([], 0)


FREE = Space(tuple(replace(f, actionability="free") for f in loans.SPACE.features))
OTHERS = {
    "person": {"age": 29},
    "model": {"problem": loans.linear},
    "target": {"problem": replace(loans.problem, target=Label("refused")), "income": 40.0},
    "space": {"problem": replace(loans.problem, space=FREE), "income": 51.0, "years": 29},
}


@pytest.mark.parametrize("other", OTHERS)
def test_points_of_other_questions_say_nothing(tmp_path: Path, other: str) -> None:
    point = rival(tmp_path, **({"income": 80.0} | OTHERS[other]))
    assert checker.verdicts(point)[0]["verdict"] == "accepted"
    assert told(proving(tmp_path, 0.6, NEAREST), point) == ([], 1)  # its own point


def test_points_that_the_question_forbids_say_nothing(tmp_path: Path) -> None:
    """Nobody grows younger."""
    assert told(proving(tmp_path, 0.6, NEAREST), rival(tmp_path, 51.0, years=29)) == ([], 1)


ROBUST = {"rho": 0.05, "norm": "linf", "unperturbed": [], "clip": False}


def withstanding(run: StoredRun, rho: float, **domain: Any) -> StoredRun:
    """That run, of a method that says its point withstands so much, with the box that this takes."""
    run.put_objective(replace(NEAREST, domain=ROBUST | {"rho": rho} | domain))
    row = run.rows()[0]
    ends = {
        name: [row["row"][name] - r * rho, row["row"][name] + r * rho] for name, r in (("income", 100), ("age", 40))
    }
    (run.path / "rows.jsonl").write_text(json.dumps(row | {"region": ends}) + "\n")
    return run


@pytest.mark.parametrize(
    ("income", "rho", "domain", "held"),
    [
        (80.0, 0.05, {}, 1),
        (80.0, 0.2, {}, 1),
        (80.0, 0.04, {}, 0),  # less than what the proof is about
        (51.0, 0.05, {}, 0),  # incomes below 50 are refused: so much it does not withstand
        (80.0, 0.05, {"norm": "l2"}, 0),
        (80.0, 0.05, {"clip": True}, 0),
        (80.0, 0.05, {"unperturbed": ["age"]}, 0),
    ],
)
def test_what_withstands_as_much_contradicts_a_proof_of_robust_points(
    tmp_path: Path, income: float, rho: float, domain: dict[str, Any], held: int
) -> None:
    rob = replace(NEAREST, domain=ROBUST)
    found = withstanding(rival(tmp_path / "rival", income), rho, **domain)
    for bound, status, row in ((0.55, "OPTIMAL", earning(90.0)), (None, "INFEASIBLE", None)):
        proof = proving(tmp_path / status, bound, rob, status=status, row=row)  # its own point has no region
        assert [len(said) if isinstance(said, list) else said for said in told(proof, found)] == [held, held]
    assert told(proving(tmp_path / "weak", 0.5, rob), found) == ([], held)
    plain = proving(tmp_path / "plain", 0.55, NEAREST)
    assert len(told(plain, found)[0]) == 1  # each of them is a counterfactual
    ball = withstanding(proving(tmp_path / "ball", 0.55, NEAREST), 0.05, norm="l2")
    assert told(ball, found) == ([], 0)  # of a ball the checker proves less
    assert told(proving(tmp_path / "own", 0.55, rob), rival(tmp_path / "none", 80.0)) == ([], 0)


@pytest.mark.parametrize(
    ("income", "delta", "held"),
    [(95.0, 0.02, 1), (95.0, 0.01, 1), (95.0, 0.03, 0), (95.0, None, 0), (50.5, 0.02, 0)],
)
def test_what_is_valid_under_as_many_weights_contradicts_a_proof_of_them(
    tmp_path: Path, income: float, delta: float | None, held: int
) -> None:
    found = rival(tmp_path / "rival", income, loans.linear)
    if delta is not None:
        found.put_objective(replace(NEAREST, domain={"delta": 0.02}))
    proof = started(tmp_path / "exact", loans.linear, loans.factual, [earning(99.0)], method="exact")
    proof.put_objective(replace(NEAREST, domain={"delta": delta or 0.02}))
    row = proof.rows()[0] | {"bound": 0.69, "status": "OPTIMAL", "objective": None}
    (proof.path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    said, looked = proofs.contradicted([(proof, []), (found, checker.verdicts(found))])
    assert (len(said), looked) == (held, held)


def test_proofs_of_groups_are_not_about_a_single_person(tmp_path: Path) -> None:
    group = proving(tmp_path, 0.55, NEAREST)
    group.append_group({"group": "all", "factuals": [0], "points": [], "bound": 1.0, "uncoverable": []})
    assert proofs.contradicted([(group, []), (point := rival(tmp_path, 80.0), checker.verdicts(point))]) == ([], 0)


def grouped(folder: Path, incomes: tuple[float, ...], method: str, **line: Any) -> StoredRun:
    """A run about two people of 30 and 30.5 thousand a year, given the first income and the last; or nobody is."""
    people = loans.rows((30.0, 30, "no", "school", "clerk"), (30.5, 30, "no", "school", "clerk"))
    found = [None, None] if not incomes else [earning(incomes[0]), earning(incomes[-1])]
    run = started(folder, loans.problem, people, found, method=method)
    run.put_objective(Objective((Term("l0"),), limits=(Limit(Term("l0"), 1),)))
    rows = [row | {"point": place % max(len(incomes), 1)} for place, row in enumerate(run.rows())]
    (run.path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    points = [earning(income) for income in incomes]
    run.append_group(
        {"group": "all", "factuals": [0, 1], "points": points, "bound": None, "uncoverable": [], "status": "FOUND"}
        | {"changed": [["income"]] * len(points)}
        | line
    )
    return run


def test_the_fewest_points_of_a_group_are_held_against_who_serves_it_by_fewer(tmp_path: Path) -> None:
    proof, one = grouped(tmp_path, (80.0, 90.0), "exact", bound=2.0), grouped(tmp_path, (70.0,), "rival")
    wrong = "it proves of group all that no fewer than 2 points serve it, and loans/tree/rival serves it by 1"
    assert told(proof, one) == ([f"loans/tree/exact: {wrong}"], 1)
    assert told(proof, grouped(tmp_path, (70.0, 80.0), "other")) == ([], 1)
    assert told(proof, grouped(tmp_path, (40.0,), "refused")) == ([], 1)  # by what the model refuses


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": {"round_weights": 2}},
        {"causal": True},
        {"limits": (Limit(Term("l0"), 1), Limit(Term("l1"), 0.1))},
        {"limits": (Limit(Term("l0"), 0),)},
    ],
    ids=["rounded weights", "equations", "another limit", "fewer changes"],
)
def test_a_proof_of_a_group_is_about_what_its_method_may_answer(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Not about points of another validity, off its equations or beyond its limits."""
    proof, one = grouped(tmp_path, (80.0, 90.0), "exact", bound=2.0), grouped(tmp_path, (70.0,), "rival")
    assert proof.objective is not None
    proof.put_objective(replace(proof.objective, **changes))
    assert proofs.contradicted([(proof, []), (one, checker.verdicts(one))]) == ([], 0)


def test_points_are_told_by_what_they_are(tmp_path: Path) -> None:
    """Not by their number in a file, which gives two of them one."""
    proof, two = grouped(tmp_path, (80.0, 90.0), "exact", bound=2.0), grouped(tmp_path, (70.0, 75.0), "rival")
    rows = [row | {"point": 0} for row in two.rows()]
    (two.path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fine = [{**verdict, "verdict": "accepted"} for verdict in checker.verdicts(two)]
    assert proofs.contradicted([(proof, []), (two, fine)]) == ([], 1)


def test_whom_nothing_serves_is_held_against_every_point_within_the_limits(tmp_path: Path) -> None:
    proof = grouped(tmp_path, (), "exact", bound=0.0, uncoverable=[0, 1], status="INFEASIBLE")
    wrong = "that there is no counterfactual within its limits, and loans/tree/rival has one"
    assert told(proof, rival(tmp_path, 80.0)) == ([f"loans/tree/exact: it proves of question 0 {wrong}"], 1)
    assert told(proof, rival(tmp_path, 80.0, years=31)) == ([], 1)  # changes two features


def test_late_points_contradict_a_proof_as_well(tmp_path: Path) -> None:
    late = rival(tmp_path, 80.0)
    (late.path / "rows.jsonl").write_text(json.dumps(late.rows()[0] | {"late": True, "seconds": 9.0}) + "\n")
    assert len(told(proving(tmp_path, 0.55, NEAREST), late)[0]) == 1


def test_points_off_an_imposed_equation_say_nothing() -> None:
    """Age is to rise by a year for each 10 of income: of two points the farther keeps to it."""
    equation = Equation("age", Classifier(Formula((0.1,)), (Affine("income"),)))
    points = [proofs.Point("off", earning(80.0)), proofs.Point("on", earning(80.0, age=35))]
    found = proofs._nearer(NEAREST, [equation], loans.SPACE, loans.factual, points, 1.0)
    assert found is not None
    assert found[0] == "on"
    assert found[1] == pytest.approx(0.5 + 5 / 40)


def test_check_fails_where_a_proof_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = proving(tmp_path, 0.5, NEAREST)
    rival(tmp_path, 80.0)
    assert check.main([str(tmp_path)]) == 0
    assert (
        "1 proofs were held against all that methods found for the same question: 0 are wrong"
        in capsys.readouterr().out
    )
    row = exact.rows()[0] | {"bound": 0.55}
    (exact.path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert check.main([str(tmp_path)]) == 1
    assert "that no objective is below 0.55, and loans/tree/rival reaches 0.5" in capsys.readouterr().err


def test_the_nearest_that_keeps_to_the_limits_is_named(tmp_path: Path) -> None:
    """Six are nearer, and change more than one feature."""
    exact = proving(tmp_path, 0.55, replace(NEAREST, limits=(Limit(Term("l0"), 1),)))
    many = [proofs.Point(f"{income}", earning(income, age=31)) for income in range(51, 57)]
    points = [
        proofs.Point("far", earning(80.0)),
        *many,
        proofs.Point("near", earning(75.0)),
        proofs.Point("middle", earning(76.0)),
    ]
    found = proofs.Found(dict.fromkeys(proofs.questions(exact).values(), points))
    assert found.against(exact) == (
        ["it proves of question 0 that no objective is below 0.55, and near reaches 0.45"],
        1,
    )


@pytest.mark.parametrize(
    ("options", "n", "held"),
    [
        ({"diversity": ["features"]}, 2, 1),
        ({"diversity": ["features", "values"]}, 2, 0),
        ({"diversity": ["values"]}, 1, 1),
        ({"diversity": "values"}, 2, 1),
        ({"objectives": {"proximity": 1, "diversity_features": 0.1}}, 2, 0),
        ({"objectives": {"proximity": 1, "diversity_values": 0.1}}, 1, 1),
    ],
)
def test_an_answer_of_a_set_is_no_best_one(tmp_path: Path, options: dict[str, Any], n: int, held: int) -> None:
    """Where two answers may share no bin, the best point of all may be in no best set."""
    run = proving(tmp_path, 0.5, NEAREST)
    meta = run.meta
    run.update(n_counterfactuals=n, config={**meta["config"], "method": options})
    row = run.rows()[0] if n == 1 else json.loads((run.path / "rows.jsonl").read_text())
    (run.path / "rows.jsonl").write_text("".join(json.dumps(row | {"ce": ce + 1}) + "\n" for ce in range(n)))
    assert told(run, rival(tmp_path, 80.0))[1] == held


def test_who_has_what_is_wanted_is_no_answer(tmp_path: Path) -> None:
    """Who was asked all the same: what the method proves is of points away from the person's own."""
    fine = loans.factual.assign(income=70.0)
    run = started(tmp_path, loans.problem, fine, [earning(90.0)], method="exact")
    run.put_objective(NEAREST)
    row = run.rows()[0] | {"bound": 0.2, "status": "OPTIMAL"}
    (run.path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert told(run, started(tmp_path, loans.problem, fine, [earning(75.0)], method="rival")) == ([], 0)


def test_a_distance_is_as_exact_where_changes_weigh_ten_thousand(tmp_path: Path) -> None:
    fewest = Objective((Term("l1"), Term("l0", 1e4)))
    said, _ = told(proving(tmp_path, 1e4 + 0.501, fewest), rival(tmp_path, 80.0))
    assert len(said) == 1


def test_a_learnt_equation_is_asked_of_no_empty_table(tmp_path: Path) -> None:
    """Where no point is below the bound."""
    equation = Equation("age", Classifier(LinearRegression().fit([[0.0], [9.0]], [0.0, 0.9]), (Affine("income"),)))
    points = [proofs.Point("on", earning(80.0, age=35))]
    assert proofs._nearer(NEAREST, [equation], loans.SPACE, loans.factual, points, 0.1) is None


def test_proofs_within_hulls_wait_where_not_all_are_asked_about(tmp_path: Path) -> None:
    """As at the end of a sweep; so do those that there is none at all, which its tables tell."""
    hull = replace(NEAREST, limits=(within(80.0, 90.0),))
    for objective, changes, wrong in (
        (NEAREST, {}, (1, 1)),
        (hull, {}, (1, 0)),
        (replace(NEAREST, terms=(*NEAREST.terms, within(80.0, 90.0).term)), {}, (1, 0)),
        (NEAREST, {"status": "INFEASIBLE", "row": None}, (1, 0)),
        (
            replace(NEAREST, limits=(Limit(Term("l0"), 1),)),
            {"status": "INFEASIBLE", "row": None},
            (1, 1),
        ),
    ):
        found, run, point = proofs.Found(), proving(tmp_path, 0.55, objective, **changes), rival(tmp_path, 80.0)
        found.add(point, checker.verdicts(point))
        assert tuple(len(found.against(run, whole=whole)[0]) for whole in (True, False)) == wrong


def test_a_model_that_cannot_be_read_hides_no_contradiction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the person has what is wanted is then not known, and rarely so."""

    def untrusted(run: StoredRun) -> set[Any]:
        raise HarnessError("add --trust")

    monkeypatch.setattr(proofs, "satisfied", untrusted)
    said, held = told(proving(tmp_path, 0.55, NEAREST), rival(tmp_path, 80.0))
    assert (len(said), held) == (1, 1)


def test_nothing_is_near_a_hull_of_nobody(tmp_path: Path) -> None:
    """That a question has no counterfactual in it is contradicted by none."""
    empty = Term("slack", params={"points": np.zeros((0, loans.SPACE.encode(loans.factual).shape[1])), "norm": 1})
    clusters = replace(empty, params={**empty.params, "cluster": np.zeros(0)})
    for term in (empty, clusters):
        objective = replace(NEAREST, limits=(Limit(term, 0.0),))
        assert objective.evaluate(loans.SPACE, loans.factual, loans.factual).tolist() == [0.0]
        assert objective.exceeded(loans.SPACE, loans.factual, loans.factual) == [["slack"]]
        none = {"status": "INFEASIBLE", "row": None}
        assert told(proving(tmp_path, None, objective, **none), rival(tmp_path, 80.0)) == ([], 1)
