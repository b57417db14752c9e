"""A sweep's summary says where runs of the same task have proven different optima."""

from __future__ import annotations

import html
import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import skops.io
from markupsafe import Markup
from sklearn.tree import DecisionTreeClassifier
from support.tables import GRANTED, MEMBER, YOUNGER, cells, started

from harness.cli import mlflow_run
from harness.core.explanation import Answer, Reason, Status
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.wording import SATISFIED
from harness.evaluation import scoring
from harness.evaluation.checker import judge
from harness.evaluation.contest import Criterion, too_few
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import Estimate
from harness.evaluation.study import SCORES, Study, latest, read_scores
from harness.models.files import load
from harness.reports import overview as overviews
from harness.reports import summary, tables
from harness.reports.overview import for_paper, overview
from harness.reports.page import page
from harness.reports.site import board, build
from harness.store.plain import to_plain
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.robust import Robust
from metrics import _example as loans

Made = Callable[..., StoredRun]
TIMING = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}
L1 = Objective((Term("l1"),))
L1_L0 = Objective((Term("l1"), Term("l0", 10.0)))
TWO_CHANGES = Objective((Term("l1"),), limits=(Limit(Term("l0"), 2),))
ROBUST = Objective((Term("l1"),), domain={"rho": 0.1})


@pytest.fixture
def made(problem: Problem, factual: pd.DataFrame, tmp_path: Path) -> Made:
    """A finished cell in which a method claims two values for one factual, the first of them 1.0 unless given."""
    identity = int(factual.index[0])
    reachable = problem.valid(problem.train) & [not f for f in problem.space.violations(factual, problem.train)]
    row = problem.train.loc[reachable].iloc[[0]].to_dict("records")[0]
    wrong = factual.to_dict("records")[0]
    younger = {**row, "age": wrong["age"] - 1}

    def cell(
        method: str,
        value: float = 1.0,
        second: float = 2.0,
        status: Status = Status.OPTIMAL,
        claims: Objective | None = L1,
        seed: int = 0,
        model: str = "lr",
        refused: bool = False,
        infeasible: bool = False,
        valid: bool = True,
        permitted: bool = True,
        limit: int = 5,
    ) -> StoredRun:
        made = StoredRun(tmp_path / f"{method}-{model}")
        config = {"model_seed": seed, "method": {"_target_": method}, "time_limit": limit}
        names = {"dataset": "toy", "model": model, "method": method}
        meta = {**names, "n_counterfactuals": 2, "seed": 0, "config": config}
        made.start(meta, problem.space, problem.classifier, {identity: problem.target}, claims, factual)
        answers = (Answer(status, row, Reason.PROOF, claimed, min(claimed, 0.0)) for claimed in (value, second))
        if not valid:
            answers = (Answer(status, {**wrong, "visits": number}, Reason.FINISHED) for number in (1, 2))
        if not permitted:
            answers = (Answer(Status.FOUND, younger, Reason.FINISHED) for _ in range(2))
        if infeasible:
            detail = "everything is immutable"
            answers = (Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=detail) for _ in range(2))
        if refused:
            answers = (Answer(Status.UNSUPPORTED, None, Reason.REFUSED, detail="not for this model") for _ in range(2))
        made.append(answer_row(identity, number + 1, answer, **TIMING) for number, answer in enumerate(answers))
        judge(made)
        scoring.score(made, {identity: problem}, []).to_csv(made.path / "scores.csv")
        return made

    return cell


def written(folder: Path, runs: list[StoredRun]) -> int:
    return summary.write(folder, runs, Numbers(Study.among("toy", runs)))


def test_different_optima_are_reported(
    made: Made, factual: pd.DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An error names the cells, the factual and both values, and counts as trouble."""
    with caplog.at_level(logging.ERROR, "harness"):
        assert written(tmp_path, [made("a"), made("b"), made("c", value=1.1)]) == 1
    (message,) = (record.getMessage() for record in caplog.records)
    for part in ("toy/lr/a", "toy/lr/c", f"factual {factual.index[0]}", "1.0", "1.1"):
        assert part in message


def test_agreement_is_no_trouble(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Up to 1e-6; further counterfactuals may differ with how methods keep them apart."""
    with caplog.at_level(logging.ERROR, "harness"):
        assert written(tmp_path, [made("a"), made("b", value=1.0 + 5e-7, second=3.0)]) == 0
    assert caplog.records == []


def test_counterfactuals_that_are_not_accepted_are_counted(made: Made, tmp_path: Path) -> None:
    """By fault, and also where the question has an accepted one, or none is."""
    runs = [made("a", value=0.0, second=1e9), made("b", valid=False), made("c", value=1e9, second=1e9)]
    written(tmp_path, [*runs, made("d", permitted=False)])
    notes = [
        line
        for line in (tmp_path / "summary.md").read_text().splitlines()
        if "accepted of" in line or "nothing" in line
    ]
    assert notes == [
        "- toy / lr: not accepted of a's counterfactuals: 1 worse than claimed.",
        "- toy / lr: b answers nothing: 2 invalid.",
        "- toy / lr: not accepted of c's counterfactuals: 1 repeated.",
        "- toy / lr: d answers nothing: 2 not permitted (age 2x).",
    ]


@pytest.mark.parametrize(
    "difference",
    [
        {"status": Status.FOUND},
        {"claims": L1_L0},
        {"claims": None},
        {"claims": TWO_CHANGES},
        {"claims": ROBUST},
        {"seed": 1},
    ],
    ids=str,
)
def test_only_proofs_of_the_same_are_compared(made: Made, difference: dict[str, object]) -> None:
    """Not points without a proof, other objectives, limits on changes or domains, other models."""
    assert summary.disagreements([made("a"), made("b", value=1.1, **difference)]) == []


def test_a_small_mean_is_told_as_it_is() -> None:
    mean = Estimate(0.0003, 0.0001, 0.0012, 12)
    assert overviews._estimate(mean, interval=True) == "0.0003 [0.0001, 0.0012]"
    assert overviews._estimate(mean, interval=False) == "0.0003"


def test_claims_without_costs_are_the_same_where_nothing_costs(made: Made, tmp_path: Path) -> None:
    """Of a method that keeps features' own costs and one that does not: two optima are told, and means are common."""
    cells = [made("a", claims=L1), made("b", value=1.1, claims=replace(L1, costed=False))]
    assert len(summary.disagreements(cells)) == 1
    space = cells[1].space
    for cell in cells:
        cell.update(space=to_plain(space.replace({space.names[0]: {"weight": 3.0}})))
    assert summary.disagreements(cells) == []


def test_whoever_comes_first(made: Made) -> None:
    """A cell without a proof does not keep later ones from being compared."""
    cells = [made("a", status=Status.FOUND), made("b"), made("c", value=0.5)]
    assert len(summary.disagreements(cells)) == 1
    assert len(summary.disagreements(cells[::-1])) == 1


def test_a_refusal_counts_where_the_method_answers_nowhere(made: Made, tmp_path: Path) -> None:
    """A comparison over models may hold a method that takes some of them."""
    assert written(tmp_path, [made("a"), made("a", model="rf", refused=True)]) == 0
    assert written(tmp_path, [made("b"), made("c", refused=True)]) == 1


def test_a_refusal_is_no_fault_of_an_experiments_own_list(
    made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a method that no one has named on the command line, unless nobody is left who takes anything."""
    for runs, chosen, wrong in (
        ([made("a"), made("c", refused=True), made("c", model="rf", refused=True)], False, []),
        ([made("a"), made("c", refused=True), made("c", model="rf", refused=True)], True, ["c"]),
        ([made("b", refused=True), made("c", refused=True)], False, ["b", "c"]),
    ):
        caplog.clear()
        assert summary.write(tmp_path, runs, Numbers(Study.among("toy", runs)), chosen) == len(wrong)
        said = [f"{name} refuses all that it is asked: not for this model" for name in wrong]
        assert [record.getMessage() for record in caplog.records] == said


def test_refusals_for_one_reason_are_one_sentence(made: Made) -> None:
    runs = [made(name, model=model, refused=True) for name in "ab" for model in ("lr", "rf")]
    runs += [made("c", model="lr", refused=True), made("d"), made("d", model="rf")]
    assert summary._refused(Study.among("toy", runs), {"toy / lr", "toy / rf"}) == [
        "toy / lr, toy / rf: a, b refuse them: not for this model",
        "toy / lr: c refuses it: not for this model",
    ]


def test_a_refusal_is_told_of_its_own_tasks(made: Made, tmp_path: Path) -> None:
    """And of no other: nor of tasks that are not asked about."""
    found: dict[str, Any] = {"status": Status.FOUND, "claims": None}
    runs = [made("a", **found), made("a", model="rf", **found), made("b", **found), made("b", model="rf", refused=True)]
    numbers = Numbers(Study.among("toy", runs))
    few = "common means are of the questions that all of these answer: 1 (seconds); fewer than 10 have no mean: see "
    few += "pairs.csv, or ask about more people."
    refused = "toy / rf: b refuses it: not for this model"
    assert summary._left_out(numbers, ["toy / lr"]) == [f"toy / lr: {few}"]
    assert summary._left_out(numbers, ["toy / rf", "toy / lr"]) == [refused, f"toy / lr: {few}"]


def test_other_people_or_data_under_one_name_are_a_fault(tmp_path: Path) -> None:
    """As where a file of data was edited between two sweeps: said once a method, and counted as wrong."""
    runs = []
    for method, seed, people in (("a", 0, 2), ("b", 0, 2), ("c", 0, 3), ("c", 1, 3)):
        named = {"method": method, "fingerprint": str(seed), "factuals_seed": 0}
        runs.append(started(tmp_path, loans.problem, loans.factual, [GRANTED] * people, **named))
    runs[1].update(data_sha256="def")
    study = Study.among("toy", runs)
    other = (
        "was asked about other people or data than a, and does not compare with it; run all methods of the task again."
    )
    assert study.faults == (f"loans / tree: b {other}", f"loans / tree: c {other}")
    assert written(tmp_path, runs) == 2
    assert Study.among("toy", runs[:1]).faults == ()


def test_another_model_under_one_name_is_a_fault(tmp_path: Path) -> None:
    """As of a model file that was edited; one that another process wrote again is the same model."""
    runs = [
        started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method=name) for name in ("a", "b", "c", "d")
    ]
    rewritten, other = (run.path / "estimator.skops" for run in runs[1:3])
    skops.io.dump(load(rewritten), rewritten)
    assert rewritten.read_bytes() != (runs[0].path / "estimator.skops").read_bytes()
    skops.io.dump(DecisionTreeClassifier(max_depth=1).fit([[0.0, 0.0], [1.0, 1.0]], [0, 1]), other)
    runs[3].update(threshold=0.75)
    does_not = "and does not compare with it; run all methods of the task again."
    assert Study.among("toy", runs).faults == tuple(
        f"loans / tree: {name} was asked of another model than a, {does_not}" for name in ("c", "d")
    )


def test_a_question_without_a_counterfactual_is_counted_apart(made: Made, tmp_path: Path) -> None:
    """By a proof that knows the question's constraints alone: the run that proves it has nothing to answer."""
    runs = [made("a", infeasible=True), made("b", status=Status.FOUND, valid=False)]
    study = Study.among("toy", runs)
    ((key, why),) = study.impossible.items()
    assert (key, [*why.values()]) == (("toy / lr", ""), ["proof, everything is immutable"])
    assert [len(entry.table) for entry in study.entries] == [0, 0]
    assert written(tmp_path, runs) == 0
    text = (tmp_path / "summary.md").read_text()
    assert "toy / lr: none exists for 1 question" in text
    assert "which are counted apart: proof, everything is immutable." in text
    assert "not accepted" not in text  # of what was returned all the same


def test_what_forbids_is_counted_where_something_exists(tmp_path: Path) -> None:
    """Of the rival's two younger answers one is to a question of which another method proves that there is none."""
    none, younger = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled"), {**GRANTED, "age": 25}
    proof = started(tmp_path, loans.problem, loans.factual, [GRANTED, none, GRANTED], method="proof")
    read_scores(proof).assign(impossible=[0.0, 1.0, 0.0]).to_csv(proof.path / SCORES)
    started(tmp_path, loans.problem, loans.factual, [GRANTED, younger, younger], method="rival")
    study = Study.of(tmp_path)
    assert summary._unaccepted(study.entries, study.tasks) == [
        "loans / tree: not accepted of rival's counterfactuals: 1 not permitted (age 1x)."
    ]


def test_answers_to_a_question_without_a_counterfactual_are_no_faults(tmp_path: Path) -> None:
    """Of the rival's two invalid answers one is to a question of which another method proves that there is none."""
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled")
    proof = started(tmp_path, loans.problem, loans.factual, [GRANTED, none, GRANTED], method="proof")
    read_scores(proof).assign(impossible=[0.0, 1.0, 0.0]).to_csv(proof.path / SCORES)
    started(tmp_path, loans.problem, loans.factual, [GRANTED, YOUNGER, YOUNGER], method="rival")
    found = {entry.method: entry for entry in Study.of(tmp_path).entries}
    assert (len(found["rival"].table), dict(found["rival"].faults)) == (2, {"invalid": 1})
    assert [found[name].outcomes[0]["missing"] for name in ("proof", "rival")] == [{}, {}]


def test_why_none_exists_is_what_most_proofs_say() -> None:
    gone = {0: "proof, frozen"} | dict.fromkeys(range(1, 6), "proof, settled")
    assert Study("s", (), {("d / m", ""): gone}, ()).absent("d / m") == (
        "none exists for 6 questions (0, 1, 2, 3, 4, ...), which are counted apart: proof, settled"
    )


def test_a_run_in_a_sentence(tmp_path: Path) -> None:
    """Nothing came back, so both questions count 5 s; a name that has "nan" in it stays."""
    run = started(tmp_path, loans.problem, loans.factual, [None, None], method="finance")
    run.update(sees=["reference=all"])
    (entry,) = Study.among("s", [run]).entries
    assert mlflow_run._note(entry) == (
        "**finance** on loans / tree, 2 questions: coverage 0.00, validity –, median 5 s. "
        "It sees what others do not: reference=all."
    )


def test_why_none_exists_is_the_provers_word_and_under_its_constraints(tmp_path: Path) -> None:
    """Whoever was asked first; another list of constraints is said, and its proof holds of it alone."""
    proof = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled")
    paths = ["metrics.proximity.gower"]
    for immutable, method, second in (([], "a", None), (["age"], "a", None), (["age"], "b", proof), ([], "b", GRANTED)):
        named = {"method": method, "fingerprint": f"{len(immutable)}", "dataset": "loans", "paths": paths}
        run = started(tmp_path / "toy", loans.problem, loans.factual, [GRANTED, second, YOUNGER], **named)
        run.update(config={**run.meta["config"], "dataset": {"immutable": immutable}})
        if second is proof:
            run.update(objective=L1)
            read_scores(run).assign(impossible=[0.0, 1.0, 0.0]).to_csv(run.path / SCORES)
    study = Study.of(tmp_path / "toy")
    under = 'dataset.immutable=["age"]'
    why = f"none exists under {under} for 1 question (1), which are counted apart: proof, all is settled"
    assert study.absent("loans / tree") == why
    counts = {entry.method: (len(entry.table), entry.impossible) for entry in study.entries}
    assert counts == {
        "a (dataset.immutable=[])": (3, 0), f"a ({under})": (2, 1), f"b ({under})": (2, 1),
        "b (dataset.immutable=[])": (3, 0),
    }  # fmt: skip


def test_a_bound_that_a_counterfactual_is_below_is_a_fault_of_the_sweep(tmp_path: Path) -> None:
    """Of its own task, whoever found it; a proof that there is none at all is told by the tables, once."""
    run = started(tmp_path / "toy", loans.problem, loans.factual, [GRANTED] * 2, method="exact")
    run.put_objective(L1)
    first, second = run.rows()
    none = {"status": "INFEASIBLE", "row": None, "reason": "proof"}
    run.path.joinpath("rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (first | {"bound": 9.0}, second | none))
    )
    judge(run)
    read_scores(run).assign(impossible=[0.0, 1.0], coverage=[1.0, 0.0]).to_csv(run.path / SCORES)
    started(tmp_path / "toy", loans.problem, loans.factual, [GRANTED] * 2, method="rival")
    study = Study.of(tmp_path / "toy")
    assert len(study.faults) == 1
    whole = "loans / tree: exact: it proves of question 1 that there is no counterfactual, and loans/tree/rival has one"
    assert study.faults[0] == whole
    said = study.held().faults[1:]
    assert len(said) == 1
    assert said[0].startswith("loans / tree: exact: it proves of question 0 that no objective is below 9, and ")
    assert "more of its proofs" not in said[0]
    text, _ = overview(Numbers(held := study.held()))
    assert all(f"- {fault}\n" in text for fault in held.faults)
    tables.write(tmp_path / "toy", None)
    assert all(f"- {fault}\n" in (tmp_path / "toy" / "table.md").read_text() for fault in held.faults)
    assert for_paper(Numbers(held))[0].caption.count(" it proves of question 0 that no objective is below 9, and ") == 1
    summary.write(tmp_path / "toy", [], Numbers(held))
    assert all(f"- {fault}\n" in (tmp_path / "toy" / "summary.md").read_text() for fault in held.faults)
    assert all(html.escape(fault) in page.write(tmp_path / "toy").read_text() for fault in held.faults)
    (of_the_site,), _ = build._numbers(tmp_path)
    assert of_the_site.study.faults == held.faults
    run.append([second | {"bound": 8.0}])
    (said_of_both,) = Study.of(tmp_path / "toy").held().faults[-1:]
    assert said_of_both.endswith("; 1 more of its proofs are contradicted")
    run.append([second | none])
    run.update(objective=None)  # it states nothing: that there is none is all that it proves
    said = Study.of(tmp_path / "toy").held().faults
    assert said[-1].endswith("question 1 that there is no counterfactual, and loans/tree/exact has one")


def test_a_papers_table_has_the_faults_of_its_own_task(tmp_path: Path) -> None:
    """Not those of a task whose name ends alike."""
    for dataset in ("credit", "my_credit"):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED], method="exact", dataset=dataset)
        run.put_objective(L1)
        started(tmp_path, loans.problem, loans.factual, [GRANTED], method="rival", dataset=dataset)
    run.append([run.rows()[0] | {"bound": 9.0}])
    captions = [table.caption for table in for_paper(Numbers(Study.of(tmp_path).held()))]
    assert ["no objective is below" in caption for caption in captions] == [False, True]


def test_means_of_what_is_not_accepted_are_said(made: Made, tmp_path: Path) -> None:
    for method, population in (("one", "accepted"), ("two", "returned")):
        run = made(method)
        run.update(scored={"population": population})
        said = Study.of(tmp_path).conditions(Study.of(tmp_path).tasks)
        assert ["population=returned" in text for text in said] == [True] * (population == "returned")


def test_who_is_not_set_alike_on_all_tasks_is_said(tmp_path: Path) -> None:
    for dataset, alpha in (("a", 0), ("b", 1)):
        for method in ("one", "two"):
            options = {"alpha": alpha if method == "one" else 0}
            named = {"method": method, "dataset": dataset, "options": options}
            started(tmp_path / "toy", loans.problem, loans.factual, [GRANTED], **named)
    study = Study.of(tmp_path / "toy")
    assert study.methods == ["one", "two"]
    assert study.conditions(study.tasks) == ["one is not set alike on all tasks: alpha differs."]
    assert study.conditions(study.tasks[:1]) == []


def test_a_proof_holds_whatever_the_limit(made: Made) -> None:
    """Also for a method that was asked with another one, which names it; and there, too, an answer refutes it."""
    runs = [made("a", infeasible=True), made("b", status=Status.FOUND, valid=False, limit=60)]
    study = Study.among("toy", runs)
    assert study.methods == ["a (time_limit=5)", "b (time_limit=60)"]
    assert [len(entry.table) for entry in study.entries] == [0, 0]
    refuted = Study.among("toy", [runs[0], made("c", status=Status.FOUND, claims=None, limit=60)])
    assert (refuted.impossible, len(refuted.faults)) == ({}, 1)


@pytest.mark.parametrize("claims", [None, TWO_CHANGES, ROBUST, replace(L1, causal=True)], ids=str)
def test_a_proof_under_limits_of_ones_own_is_nothing_found(made: Made, claims: Objective | None) -> None:
    study = Study.among("toy", [made("a", infeasible=True, claims=claims)])
    assert study.impossible == {}
    assert study.entries[0].coverage.value == 0.0


def test_an_accepted_answer_refutes_a_proof(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is an error, and the question is one like all others."""
    runs = [made("a", infeasible=True), made("b", status=Status.FOUND, claims=None)]
    with caplog.at_level(logging.ERROR, "harness"):
        assert written(tmp_path, runs) == 1
    assert "toy / lr: a: it proves of question" in caplog.text
    study = Study.among("toy", runs)
    assert study.impossible == {}
    assert [entry.coverage.value for entry in study.entries] == [0.0, 1.0]


def test_few_is_half_of_what_the_best_covers_in_the_tasks_that_each_takes(made: Made) -> None:
    """A method that refuses a task is judged by the other; one that answers nothing answers too few."""
    found: dict[str, Any] = {"status": Status.FOUND, "claims": None}
    runs = [made("a", **found), made("a", model="rf", **found), made("b", **found), made("b", model="rf", refused=True)]
    assert too_few(Study.among("toy", [*runs, made("c", valid=False, **found)])) == {"c"}


def test_people_who_are_left_out_are_no_refusal(
    problem: Problem, factual: pd.DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is their reason that of others who failed, of whom it is said how many they are."""
    content = Answer(Status.UNSUPPORTED, None, Reason.REFUSED, detail=SATISFIED)
    crash = Answer(Status.FAILED, None, Reason.CRASH, detail="no torch")
    for answers, said in (
        ([content, GRANTED], []),
        ([content, GRANTED, crash], ["loans/tree/ours (a=1): FAILED 1 of 2 answers (no torch)"]),
        ([content, crash], ["loans/tree/ours (a=1): FAILED (no torch)"]),
    ):
        run = started(
            tmp_path / str(len(said)), loans.problem, loans.factual, list(answers), fingerprint=str(len(answers))
        )
        caplog.clear()
        assert summary._refusals([(run, "ours (a=1)", scoring.outcome(run))], True) == len(said)
        assert [record.getMessage() for record in caplog.records] == said


def test_earlier_runs_of_a_study_are_told(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the tasks that are asked about: others' tables are not printed."""
    runs = [made("a"), made("b"), made("a", model="rf"), made("b", model="rf", refused=True)]  # which is in no table
    numbers = Numbers(Study.among("toy", runs))
    for finished, said in ((runs[:1], ["Earlier runs of"]), (runs, []), (runs[2:3], [])):
        records: list[str] = []
        with mock.patch.object(summary.results, "info", lambda text, *given, to=records: to.append(text % given)):
            summary.write(tmp_path, finished, numbers)
        assert [record.partition(f" {tmp_path}")[0] for record in records if "Earlier runs of" in record] == said


def test_reasons_are_those_of_all_seeds(tmp_path: Path) -> None:
    crash = Answer(Status.FAILED, None, Reason.CRASH, detail="no torch")
    runs = [started(tmp_path, loans.problem, loans.factual, [each] * 3, fingerprint=str(place))
            for place, each in enumerate((MEMBER, crash))]  # fmt: skip
    runs[1].update(seed=1)
    assert summary._unaccepted(Study.among("s", runs).entries, ["loans / tree"]) == [
        "loans / tree: ours answers nothing: 3 invalid; crash, no torch (3x)."
    ]


def test_a_run_without_answers_says_why(made: Made, tmp_path: Path) -> None:
    written(tmp_path, [made("a", infeasible=True, claims=TWO_CHANGES)])
    said = (tmp_path / "summary.md").read_text()
    assert "toy / lr: a answers nothing: proof, everything is immutable (1x)." in said


@pytest.mark.parametrize("other", [{"rho": 0.1}, {"norm": "l2"}, {"unperturbed": ("income",)}, {"clip": True}], ids=str)
def test_a_robust_claim_names_its_perturbation(made: Made, problem: Problem, other: dict[str, Any]) -> None:
    """Optima among points that withstand other perturbations are of other sets; what is stored tells them apart."""
    claim, rival = (Robust(**settings).objective(problem) for settings in ({}, other))
    assert summary.disagreements([made("a", claims=claim), made("b", value=1.1, claims=rival)]) == []
    assert len(summary.disagreements([made("c", claims=rival), made("d", value=1.1, claims=rival)])) == 1
    stored = made("e", claims=rival).objective
    assert stored is not None
    assert stored.domain == rival.stored().domain


def test_numbers_are_rounded_as_they_are_printed_elsewhere() -> None:
    """0.6065 is a little more than half between two of three decimals; less has two digits; what is no number stays."""
    assert [summary._rounded(value) for value in (0.6065, 2.0, 7, "a")] == [0.607, 2.0, 7, "a"]
    assert [summary._rounded(value) for value in (0.0003, 0.000424, 0.0)] == [0.0003, 0.00042, 0.0]
    assert [summary._rounded(value) for value in (0.9996, 1 - 1e-9, 1.0, 1.0004)] == [0.999, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(("value", "text"), [(0.9996, "0.999 [0.50]"), (1234.4, "1234 [0.50]"), (1.0, "1 [0.50]")])
def test_a_common_mean_is_1_only_where_it_is(value: float, text: str) -> None:
    """As in the report; and no number below a million has an exponent."""
    mean = SimpleNamespace(means={"m": SimpleNamespace(value=value)}, enough=True)
    contest = SimpleNamespace(values={"m": value}, common=mean, ranks={"m": pd.Series([0.5])}, best=set())
    numbers: Any = SimpleNamespace(contest=lambda task, criterion: contest)
    entry: Any = SimpleNamespace(task="t", method="m")
    assert summary._standing(numbers, entry, Criterion("c", "c", "lower")) == text


def test_the_slowest_set_up_that_is_known_stands_in_the_table(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that does not tell its own takes nothing from the others, whichever comes first; no share becomes 1."""
    monkeypatch.setattr(overviews, "_further", lambda numbers: {"share": SimpleNamespace(name="m.share")})
    monkeypatch.setattr(overviews, "_mean", lambda took, metric, known: {"m.share": 0.9996}[metric])
    for place, method in enumerate(("early", "late", "never")):
        for model, known in (("lr", place == 0), ("mlp", True), ("rf", place == 1)):
            run = made(method, model=model)
            seconds = {"lr": 1.25, "mlp": 2.5, "rf": 1.75}[model] if method != "never" and known else None
            run.update(setup={"seconds": seconds, "cpu_seconds": seconds})
    head, *rows = cells(overviews._block(Numbers(Study.of(tmp_path)), "toy"))
    told = {row[0]: (row[head.index("set-up s")], row[head.index("share")]) for row in rows}
    assert told == {"`early`": ("2.50", "0.999"), "`late`": ("2.50", "0.999"), "`never`": ("–", "0.999")}


def test_a_mean_over_models_is_of_each_on_which_anybody_has_one() -> None:
    """Who has none on the forest has no mean, nor who has one there alone; of the network nobody has, and who refuses
    the forest is not asked about it."""
    nan = math.nan
    known = {"tree": [0.2, 0.4], "forest": [0.6, nan], "net": [nan], "no tree": [nan], "no forest": [nan]}

    def mean(*models: str) -> float:
        took: Any = [SimpleNamespace(task=m.removeprefix("no "), table=pd.DataFrame({"m": known[m]})) for m in models]
        return overviews._mean(took, "m", {"tree", "forest"})

    assert mean("tree", "forest", "net") == pytest.approx(0.45)
    assert mean("tree", "net") == pytest.approx(0.3)
    for models in (("tree", "no forest"), ("no tree", "forest"), ("net",)):
        assert math.isnan(mean(*models)), models
    assert math.isnan(overviews._own(SimpleNamespace(table=pd.DataFrame()), "m"))  # type: ignore[arg-type]


def test_questions_without_a_counterfactual_are_in_no_number_of_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two, by another method's proof: the other is answered with both seeds. So say MLflow and the tables."""
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled")
    exact = started(tmp_path, loans.problem, loans.factual, [GRANTED, none], method="exact", fingerprint="e")
    exact.update(fingerprint="e")
    read_scores(exact).assign(impossible=[0.0, 1.0]).to_csv(exact.path / SCORES)
    for seed in (0, 1):
        made = started(tmp_path, loans.problem, loans.factual, [GRANTED, None], method="lucky", fingerprint=str(seed))
        made.update(seed=seed, fingerprint=str(seed))
    numbers = Numbers(Study.of(tmp_path))
    logged: dict[str, Any] = {}
    monkeypatch.setattr(mlflow_run.tracking, "amend", lambda name, found, earlier, families: logged.update(found))
    mlflow_run.log_study(numbers, tmp_path)
    assert set(logged) == {"e", "0", "1"}
    assert "seeds" not in logged["e"][1]
    for name, note, metrics in (logged["0"], logged["1"]):
        assert name.startswith("loans/tree/lucky, seed ")
        assert "1 question, none exists for 1: coverage 1.00" in note
        assert note.endswith("Ranks and common means are of all 2 seeds together.")
        assert (metrics["coverage"], metrics["more/none_exists"], metrics["n/coverage"]) == (1.0, 1.0, 1)
    said = "loans / tree: none exists for 1 question (1), which are counted apart: proof, all is settled."
    assert said in overview(numbers)[0]
    assert said.removeprefix("loans / tree: n") in for_paper(numbers)[0].caption


def test_objectives_are_those_that_the_checker_accepts(tmp_path: Path) -> None:
    """Two seeds are averaged first, one run stands for all of them, and a claim that is not so counts nothing.

    From an income of 30 and an age of 30: to 80 and 40 is 0.75, to 60 alone is 0.3.
    """
    near = {**loans.factual.to_dict("records")[0], "income": 60.0}
    asked = [("drawn", 0, near, 0.3), ("drawn", 1, GRANTED, 0.75), ("exact", 0, near, 0.3), ("liar", 0, GRANTED, 0.1)]
    for method, seed, row, claimed in asked:
        answer = Answer(Status.OPTIMAL, row, Reason.PROOF, claimed, claimed)
        run = started(tmp_path, loans.problem, loans.factual, [answer], method=method, fingerprint=str(seed))
        run.update(seed=seed, objective=to_plain(L1))
        judge(run)
    found = overview(Numbers(Study.of(tmp_path)))[0]
    head, *rows = cells(found)
    assert {row[0]: row[head.index("objective")] for row in rows} == {
        "`drawn`": "0.525 (1)",
        "`exact`": "0.3 (1)",
        "`liar`": "–",
    }


def test_each_wrong_proof_is_named(tmp_path: Path) -> None:
    """Of two methods that prove the same, and a third that answers."""
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled")
    for method in ("first", "second"):
        proof = started(tmp_path, loans.problem, loans.factual, [none], method=method)
        read_scores(proof).assign(impossible=1.0).to_csv(proof.path / SCORES)
    started(tmp_path, loans.problem, loans.factual, [GRANTED], method="third")
    faults = Study.of(tmp_path).faults
    assert [fault.partition(": it proves")[0] for fault in faults] == [
        f"loans / tree: {name}" for name in ("first", "second")
    ]


def test_no_spreadsheet_runs_a_name_as_a_formula(made: Made, tmp_path: Path) -> None:
    """Those of methods are a user's own; numbers stay numbers."""
    written(tmp_path, [made("=1+1"), made("-b")])
    table, pairs = (pd.read_csv(tmp_path / name) for name in ("summary.csv", "pairs.csv"))
    assert set(table["method"]) == {"'=1+1", "'-b"}
    assert set(pairs["first"]) | set(pairs["second"]) == set(table["method"])
    assert table["value"].dtype == float


def test_of_equal_runs_the_last_of_the_sweeps_counts(tmp_path: Path) -> None:
    """Two that differ in the code that answered alone: not the one whose folder comes last by name."""
    runs = [started(tmp_path, loans.problem, loans.factual, [GRANTED], fingerprint=name) for name in ("1", "2")]
    (tmp_path / "sweeps").mkdir()
    for order in (runs, runs[::-1]):
        lines = [{"cell": f"elsewhere/{run.path.name}", "label": run.label, "state": "done"} for run in order]
        (tmp_path / "sweeps" / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert [run.path for run in latest(tmp_path)] == [order[1].path]


def test_a_papers_table_has_common_means_or_ranks_by_criterion(tmp_path: Path) -> None:
    """Of twelve questions; ranks of plausibility where one method has it in four, though all have a distance."""
    paths, plausible = ["metrics.proximity.gower", "metrics.plausibility.ynn"], "nearest/plausibility/ynn"
    for method in ("whole", "partly"):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 12, method=method, paths=paths)
    assert "Means are common" in for_paper(Numbers(Study.of(tmp_path)))[0].caption
    scores = read_scores(run)
    scores.assign(**{plausible: scores[plausible].where(scores.index < 4)}).to_csv(run.path / SCORES)
    (table,) = for_paper(Numbers(Study.of(tmp_path)))
    assert table.head == ["method", "coverage ↑", "proximity ↓", "plausibility rank ↓", "seconds ↓"]
    assert "Means are common: of the nearest accepted counterfactual, over the 12 questions that all" in table.caption
    assert (
        "Too few questions are answered by all for common means of plausibility (4): mean normalised" in table.caption
    )
    assert [row[3] for row in table.body] == ["0.50", "0.50"]  # eight of twelve have none, and so no rank
    seldom = [GRANTED, *[Answer(Status.GAVE_UP)] * 11]
    started(tmp_path, loans.problem, loans.factual, seldom, method="seldom", paths=paths)
    caption = for_paper(Numbers(Study.of(tmp_path)))[0].caption
    assert "answered by all (without `seldom`, of too few answers) for common means of plausibility (4)" in caption


def test_a_papers_table_has_ranks_of_two_and_the_nearest_of_one(tmp_path: Path) -> None:
    """Of one question: a nearest of .125 and .25, where the mean over all answers is .5."""
    path = "metrics.proximity.gower"
    runs = [started(tmp_path, loans.problem, loans.factual, [GRANTED], method=name, paths=[path]) for name in "ab"]
    for run, near in zip(runs, (0.125, 0.25), strict=True):
        scores = read_scores(run)
        scores.assign(**{"distance/gower": 0.5, "nearest/distance/gower": near}).to_csv(run.path / SCORES)
    (table,) = for_paper(Numbers(Study.of(tmp_path)))
    assert "Means" not in table.caption
    assert "In brackets" not in table.caption
    assert "common means of proximity (1): mean normalised ranks over all questions" in table.caption
    assert [row[table.head.index("proximity rank ↓")] for row in table.body] == ["0.00", "1.00"]
    (alone,) = for_paper(Numbers(Study.among("alone", runs[:1])))
    assert "In brackets: the 95 % interval over questions." in alone.caption
    assert not any("**" in cell for row in alone.body for cell in row)
    assert "Means are of the nearest accepted counterfactual, over the questions that it answers." in alone.caption
    assert [row[alone.head.index("proximity ↓")] for row in alone.body] == ["0.125"]


def test_own_means_have_their_number_of_questions(tmp_path: Path) -> None:
    """Two of three questions are answered: by distances of .1 and .3, and in another seed by .2 and .6."""
    for seed in (0, 1):
        given: dict[str, Any] = {"method": "drawn", "paths": ["metrics.proximity.gower"], "fingerprint": str(seed)}
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED, GRANTED, None], **given)
        run.update(seed=seed)
        scores = read_scores(run)
        values = np.where(scores["coverage"] > 0, [0.1 * (1 + seed), 0.3 * (1 + seed), 0.0], np.nan)
        scores.assign(**{"distance/gower": values}).to_csv(run.path / SCORES)
    numbers = Numbers(Study.of(tmp_path))
    alone = summary._alone(numbers, numbers.study.tasks)
    told = alone.iloc[0]
    assert (told["asked"], told["seeds"], told["coverage_sd"], told["proximity"]) == (3, 2, 0.0, "0.300 (2)")
    cell = page._of_its_own(numbers.study.entries[0], "distance/gower")
    assert cell.striptags().endswith("n = 2; sd over seeds 0.141")  # of .2 and .4
    assert "coverage_sd" in str(page._alone(numbers, "loans / tree", Markup))
    whole = started(tmp_path / "whole", loans.problem, loans.factual, [GRANTED] * 3, paths=["metrics.proximity.gower"])
    numbers = Numbers(Study.among("whole", [whole]))
    assert "seeds" not in summary._alone(numbers, numbers.study.tasks)
    assert summary._alone(numbers, numbers.study.tasks)["proximity"].dtype == float
    assert "n =" not in page._of_its_own(numbers.study.entries[0], "distance/gower")
    assert "coverage_sd" not in str(page._alone(numbers, "loans / tree", Markup))


def test_means_over_fewer_questions_have_three_decimals_or_two_digits() -> None:
    """As the others of their column; where all are over all questions, they stay numbers."""
    means = pd.Series([Estimate(value, 0, 1, n) for value, n in ((1.5, 3), (0.000424, 2), (0.0, 1), (math.nan, 0))])
    told = summary._with_counts(means, pd.Series([3, 3, 3, 3]))
    assert told[:3].tolist() == ["1.500", "0.00042 (2)", "0.000 (1)"]
    assert pd.isna(told[3])
    assert summary._with_counts(means[:1], pd.Series([3])).tolist() == [1.5]


def test_each_criterion_has_its_number_of_common_questions(tmp_path: Path) -> None:
    """Two methods answer twelve questions, and one has a plausibility in four of them."""
    paths, plausible = ["metrics.proximity.gower", "metrics.plausibility.ynn"], "nearest/plausibility/ynn"
    for method in ("whole", "partly"):
        run = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 12, method=method, paths=paths)
    said = "common means are of the questions that all of these answer: "
    numbers = Numbers(Study.of(tmp_path))
    assert (
        summary._left_out(numbers, ["loans / tree"])[-1]
        == f"loans / tree: {said}12 (proximity, plausibility, seconds)."
    )
    scores = read_scores(run)
    scores.assign(**{plausible: scores[plausible].where(scores.index < 4)}).to_csv(run.path / SCORES)
    counts = "12 (proximity, seconds); 4 (plausibility); fewer than 10 have no mean: see pairs.csv, or ask about more "
    counts += "people."
    assert summary._left_out(Numbers(Study.of(tmp_path)), ["loans / tree"])[-1] == f"loans / tree: {said}{counts}"


def test_models_with_other_numbers_of_people_are_named() -> None:
    def entry(model: str, asked: int, impossible: int = 0, refusal: str | None = None) -> Any:
        return SimpleNamespace(model=model, table=[0] * asked, impossible=impossible, refusal=refusal)

    assert (
        page._people([entry("lr", 20), entry("rf", 3, 1), entry("mlp", 19, 1), entry("svm", 0, 0, "no")]) == "20; rf: 4"
    )
    assert page._people([]) == ""


def test_what_another_process_is_asking_stays_in_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the trash goes the run that another took the place of: the same but for the code."""
    for name in ("1", "2"):
        started(tmp_path, loans.problem, loans.factual, [GRANTED], fingerprint=name).update(fingerprint=name)
    numbers = Numbers(Study.of(tmp_path))
    new = started(tmp_path, loans.problem, loans.factual, [GRANTED], fingerprint="3", method="another")
    new.update(fingerprint="3")
    trash: list[set[str]] = []
    monkeypatch.setattr(mlflow_run.tracking, "amend", lambda name, found, earlier, families: trash.append(earlier))
    mlflow_run.log_study(numbers, tmp_path)
    ((shown,),) = (entry.metas for entry in numbers.study.entries)
    assert trash == [{"1", "2"} - {shown["fingerprint"]}]


def test_a_task_whose_questions_all_have_no_answer_is_not_asked(made: Made) -> None:
    """So that who takes the other one takes all."""
    runs = [made(name, model=model, infeasible=model == "lr") for name in "ab" for model in ("lr", "rf")]
    study = Study.among("toy", runs)
    assert (study.tasks, study.asked) == (["toy / lr", "toy / rf"], ["toy / rf"])
    view = board._view(Numbers(study), study)
    assert (view["tasks"], {ranked["tasks"] for ranked in view["by"].values()}) == (2, {1})
    assert {line["took"] for line in view["methods"].values()} == {1}
    assert {line["ranked"] for ranked in view["by"].values() for line in ranked["lines"]} == {1}


def test_what_a_fault_is_of_is_named(tmp_path: Path) -> None:
    """Values that there are not by their features, and limits of a method's own."""
    strange = started(tmp_path, loans.problem, loans.factual, [GRANTED | {"income": math.inf}] * 2, method="strange")
    far = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method="far")
    far.put_objective(Objective((Term("l1"),), limits=(Limit(Term("l0"), 0.5),)))
    judge(far)
    study = Study.of(tmp_path)
    assert {entry.method: summary._by_what(entry, word) for entry in study.entries for word in entry.faults} == {
        strange.meta["method"]: " (income 2x)", "far": " (l0 2x)"
    }  # fmt: skip
