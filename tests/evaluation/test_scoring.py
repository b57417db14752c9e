"""Scores of stored answers count what is missing, invalid or does not exist."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.tables import GRANTED, MEMBER, YOUNGER

from harness.cli import job
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, GroupExplanation, Reason, Status
from harness.core.method import Deadline
from harness.core.metric import Metric, metric, together
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.target import Label
from harness.core.wording import SATISFIED
from harness.evaluation import checker, scoring
from harness.evaluation.scoring import MetricError
from harness.evaluation.study import SCORES, Study
from harness.reports import summary
from harness.store.rows import answer_row, group_line
from harness.store.run import StoredRun
from methods.nearest import Nearest
from metrics import _example as loans
from metrics.actionability import incoherent
from metrics.plausibility import ynn
from metrics.proximity import gower, l0
from metrics.validity import validity

TIMING = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """One factual asked for four: a valid answer, an invalid one, one that does not exist, one missing."""
    undesired = problem.train.loc[~problem.valid(problem.train)]
    factual = undesired.iloc[[0]]
    row = Nearest().fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0].row
    wrong = undesired.loc[problem.space.changed(factual, undesired).any(axis=1)].iloc[[0]].to_dict("records")[0]
    answers = [Answer(Status.FOUND, row), Answer(Status.FOUND, wrong), Answer(Status.FOUND, {**row, "visits": 0.5})]
    answers.append(Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT))
    made = StoredRun(tmp_path / "toy")
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 4}
    target = {factual.index[0]: problem.target}
    made.start(meta, problem.space, problem.classifier, target, None, factual)
    made.append(answer_row(int(factual.index[0]), k + 1, answer, **TIMING) for k, answer in enumerate(answers))
    checker.judge(made)
    return made


def scored(cell: StoredRun, problem: Problem, population: str) -> pd.Series:
    return scoring.score(cell, {cell.rows()[0]["factual"]: problem}, [validity, incoherent, l0], population).iloc[0]


def test_nothing_is_averaged_away(cell: StoredRun, problem: Problem) -> None:
    """One of four asked for is valid, one of three returned; the one that does not exist is counted as such."""
    scores = scored(cell, problem, "accepted")
    counts = ["requested", "returned", "valid", "accepted", "coverage", "filled"]
    assert scores[counts].tolist() == [4, 3, 1, 1, 1, 0.25]
    assert scores["mothilal/validity"] == pytest.approx(1 / 3)
    assert scores["actionability/incoherent"] == pytest.approx(1 / 3)


@metric(better="lower", family="own")
def lost(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Needs what is not there."""
    return float(answers["postcode"].nunique())


def test_a_metric_that_fails_leaves_all_others(cell: StoredRun, problem: Problem) -> None:
    """It is named with the dataset and what is missing; its two columns go, those of others stay as they are."""
    problems = {cell.rows()[0]["factual"]: problem}
    with pytest.raises(MetricError) as caught:
        scoring.score(cell, problems, [lost, l0])
    words = "own/lost (there is no column 'postcode') cannot be computed on toy; all other metrics are."
    assert (str(caught.value), caught.value.names) == (words, ("own/lost",))
    pd.testing.assert_frame_equal(caught.value.scores, scoring.score(cell, problems, [l0]))
    assert "nearest/distance/l0" in caught.value.scores


def test_what_the_checker_found_is_not_asked_again(cell: StoredRun, problem: Problem, monkeypatch: Any) -> None:
    """The model is asked about rows that nobody has judged, and about none once the scores are known."""
    asked: list[int] = []
    holds = type(problem.target).holds
    monkeypatch.setattr(
        type(problem.target), "holds", lambda self, c, frame: asked.append(len(frame)) or holds(self, c, frame)
    )
    before = scored(cell, problem, "returned")
    assert asked == []
    assert before["mothilal/validity"] == pytest.approx(1 / 3)
    rows = problem.space.frame(row["row"] for row in cell.rows()[:2])
    values = tuple(rows.iloc[0])
    with problem.knowing({values: False}):
        assert problem.valid(rows.iloc[[0, 0]]).tolist() == [False, False]
        assert problem.valid(rows.iloc[:0]).tolist() == []
        assert asked == []
        assert problem.valid(rows).tolist() == [True, False]
    assert problem.valid(rows.iloc[:1]).tolist() == [True]
    assert asked == [2, 1]


Asked = Callable[..., StoredRun]
NOTHING = Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT)
NONE_EXISTS = Answer(Status.INFEASIBLE, reason=Reason.PROOF)
OWN = Objective(())  # a method that keeps to the question's constraints alone
SPENT = {"fit_seconds": 0.1, "peak_mib": 8.0}


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """A judged run: the answers to each question, all by the same person, and the seconds that each answer's row has;
    5 s were allowed. To be granted is wanted, or what ``wanted`` says of a question."""

    def run(
        *questions: list[tuple[Answer, float]],
        objective: Objective | None = None,
        late: bool = False,
        wanted: dict[int, Label] | None = None,
    ) -> StoredRun:
        made = StoredRun(tmp_path / f"run-{len(list(tmp_path.iterdir()))}")
        factuals = pd.concat([loans.factual] * len(questions)).set_axis(range(len(questions)))
        targets = dict.fromkeys(factuals.index, loans.problem.target) | (wanted or {})
        names = {"dataset": "loans", "model": "tree", "method": "m"}
        meta = {**names, "n_counterfactuals": len(questions[0]), "config": {"time_limit": 5}}
        made.start(meta, loans.SPACE, loans.problem.classifier, targets, objective, factuals)
        for index, answers in enumerate(questions):
            made.append(
                answer_row(index, place + 1, answer, seconds=seconds, cpu_seconds=None, late=late, **SPENT)
                for place, (answer, seconds) in enumerate(answers)
            )
        checker.judge(made)
        return made

    return run


def test_a_stored_problem_is_that_of_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each person is held against the class wanted for them; the model is read once, however many people there are."""
    run, read = StoredRun(tmp_path / "run"), StoredRun.classifier
    wanted = dict(enumerate(map(Label, ("granted", "refused", "refused"))))
    people = pd.concat([loans.factual] * 3).set_axis(list(wanted))
    meta = {"dataset": "loans", "model": "tree", "method": "m", "n_counterfactuals": 1}
    run.start(meta, loans.SPACE, loans.problem.classifier, wanted, None, people)
    reads: list[StoredRun] = []
    monkeypatch.setattr(StoredRun, "classifier", property(lambda own: reads.append(own) or read.fget(own)))
    problems = scoring.stored_problems(run)
    assert {person: problem.target for person, problem in problems.items()} == wanted
    assert problems[1] is problems[2]
    assert [problems[k].valid(people.loc[[k]]).item() for k in wanted] == [False, True, True]
    assert len(reads) == 1


def told(run: StoredRun, *metrics: Metric) -> pd.DataFrame:
    factuals, _ = run.factuals()
    return scoring.score(run, dict.fromkeys(factuals.index, loans.problem), metrics)


def found(row: dict[str, Any], value: float | None = None, bound: float | None = None) -> Answer:
    proven = value is not None and value == bound
    return Answer(Status.OPTIMAL if proven else Status.FOUND, row, Reason.FINISHED, value, bound)


def test_the_population_says_which_answers_distances_see(asked: Asked) -> None:
    """The valid one, of which income and age change, or all that exist: of the other all changes but the income."""
    run = asked([(found(row), 0.1) for row in (GRANTED, YOUNGER, {**GRANTED, "age": 30.5})])
    for population, changes in (("accepted", 2), ("returned", (2 + 4) / 2)):
        assert scoring.score(run, {0: loans.problem}, [l0], population).loc[0, "distance/l0"] == changes


def test_the_nearest_is_so_whatever_changes_cost(asked: Asked) -> None:
    """Where income costs six times as much, 80 alone costs 3, 60 and a membership 1.8 + 1; .5 is less than .3 + 1."""
    run = asked([(found({**MEMBER, **more}), 0.1) for more in ({"income": 60.0}, {"income": 80.0, "member": "no"})])
    dear = replace(loans.problem, space=loans.SPACE.replace({"income": {"weight": 6}}))
    assert scoring.score(run, {0: dear}, [gower]).loc[0, "nearest/distance/gower"] == pytest.approx(0.5 / 5)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (np.True_, 1.0),
        (np.float32(0.5), 0.5),
        (math.inf, math.nan),
        (None, math.nan),
        (np.array(0.5), 0.5),
        (np.array(2), 2.0),
        (np.ma.masked, math.nan),
    ],
)
def test_a_metric_gives_a_number_or_none(asked: Asked, given: Any, value: float) -> None:
    run = asked([(found(GRANTED), 0.1)])
    scores = told(run, metric(better="lower", family="own")(lambda *_: given))
    assert scores.filter(like="own/").iloc[0].tolist() == pytest.approx([value] * 2, nan_ok=True)


def test_a_metric_of_many_questions_may_give_none(asked: Asked) -> None:
    run = asked([(found(GRANTED), 0.1)])
    scores = told(run, metric(better="lower", family="own")(together(lambda _: [None])))
    assert scores.filter(like="own/").isna().all(axis=None)


def test_a_metric_that_gives_no_number_is_named(asked: Asked) -> None:
    run = asked([(found(GRANTED), 0.1)])
    with pytest.raises(HarnessError, match=r"^own/<lambda> \(gave '1'; give a number, or None where it is"):
        told(run, metric(better="lower", family="own")(lambda *_: "1"))
    two = asked([(found(GRANTED), 0.1)])
    with pytest.raises(HarnessError, match="gave 'x'; give"):
        told(two, metric(better="lower", family="own")(together(lambda _: ["x"])))
    own = metric(better="lower", family="own")(together(lambda _: [1.0, "x"]))
    with pytest.raises(HarnessError, match="gave 'x'; give"):
        own.measure(mock.Mock())


@pytest.mark.parametrize(
    ("given", "ends", "fine"),
    [(1.0 + 1e-12, (0, 1), True), (0.0, (0, 1), True), (1.1, (0, 1), False), (-0.1, (0, 1), False), (-3.0, None, True)],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_metric_that_leaves_its_range_is_named(
    asked: Asked, given: float, ends: tuple[float, float] | None, fine: bool, at_once: bool
) -> None:
    """A share in percent, say; of a metric that names no range nothing is known."""
    run = asked([(found(GRANTED), 0.1)])
    function = together(lambda _: [given]) if at_once else lambda *_: given
    own = metric(better="lower", family="own", **({"range": ends} if ends else {}))(function)
    if fine:
        assert told(run, own).filter(like="own/").iloc[0].tolist() == [given] * 2
        return
    with pytest.raises(HarnessError, match=rf"^own/\S+ \(gave {given}, which is not in its range, 0 to 1; mend"):
        told(run, own)


def test_what_the_checker_refutes_is_not_proven(asked: Asked) -> None:
    """Of eight that are said to be optimal two are, one of them late; the others are refuted, or one of them again."""
    run = asked([(found({**GRANTED, "income": 60.0 + place}, 9.0, 9.0), 0.1) for place in range(8)])
    words = ["accepted", "late", "invalid", "worse than claimed", "not permitted", "repeated", "incoherent"]
    words.append("beyond its limits")
    run.put_verdicts([{**one, "verdict": word} for one, word in zip(run.verdicts(), words, strict=True)])
    assert told(run).loc[0, "optimal"] == 0.25


def test_a_question_is_counted_by_hand(asked: Asked) -> None:
    """Of four answers one is proven, two are accepted; gaps of .5, 0 and 2 where there is a bound."""
    richer = {**GRANTED, "income": 100.0}
    answers = [found(GRANTED, 2.0, 1.5), found(richer, 3.0, 3.0), found(YOUNGER, 4.0, 2.0), NOTHING]
    line = told(asked([(answer, 0.5 + place) for place, answer in enumerate(answers)])).loc[0]
    assert line[["requested", "returned", "valid", "accepted"]].tolist() == [4, 3, 2, 2]
    assert (line["coverage"], line["filled"], line["optimal"]) == (1.0, 0.5, 0.25)
    assert line["gap"] == pytest.approx(2.5 / 3)
    assert (line["seconds"], line["fit_seconds"], line["late"], line["impossible"]) == (0.5, 0.1, 0.0, 0.0)
    assert math.isnan(line["cpu_seconds"])
    assert line["peak_mib"] == 8.0


def test_a_bound_above_the_objective_is_no_gap(asked: Asked) -> None:
    assert told(asked([(found(GRANTED, 2.0, 2.5), 0.1)]))["gap"].tolist() == [0.0]


def test_what_breaks_a_constraint_is_nowhere_near(asked: Asked) -> None:
    """An income of 80 or 100 for 30, ten years older: (.5 + .25) / 5 and (.7 + .25) / 5. To be younger is no answer."""
    farther, younger = {**GRANTED, "income": 100.0}, {**GRANTED, "income": 60.0, "age": 29}
    line = told(asked([(found(row), 0.1) for row in (farther, younger, GRANTED)]), gower).loc[0]
    assert (line["returned"], line["valid"], line["accepted"]) == (3, 3, 2)
    assert line["nearest/distance/gower"] == pytest.approx(0.15)
    assert line["distance/gower"] == pytest.approx((0.15 + 0.19) / 2)


def test_a_question_without_an_answer_takes_its_limit(asked: Asked) -> None:
    """Or longer, where it did; an invalid answer is none, a late one is marked."""
    run = asked([(NOTHING, 0.2)], [(found(YOUNGER), 0.3)], [(NOTHING, 5.4)], [(found(GRANTED), 4.0)])
    table = told(run)
    assert table["seconds"].tolist() == [5.0, 5.0, 5.4, 4.0]
    assert table["coverage"].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert told(asked([(found(GRANTED), 5.2)], late=True))[["late", "coverage"]].to_numpy().tolist() == [[1.0, 0.0]]


def test_a_question_of_a_group_takes_the_limit_of_the_group(asked: Asked) -> None:
    """7 s, which all of a group have together, and not the 5 s of a question alone."""
    run = asked([(NOTHING, 0.2)])
    run.update(config={"group": True, "group_time_limit": 7, "time_limit": 5})
    assert told(run)["seconds"].tolist() == [7.0]


def test_each_person_has_the_numbers_of_their_own_group(asked: Asked) -> None:
    """Two of one group share a point, two of the other have one each."""
    points = [GRANTED, GRANTED, GRANTED, {**GRANTED, "income": 100.0}]
    run = asked(*([(found(point), 0.1)] for point in points))
    ending = {"status": "FOUND", "seconds": 0.1, "fit_seconds": 0.1, "late": False}
    for name, people, own in (("one", (0, 1), points[:1]), ("two", (2, 3), points[2:])):
        explained = GroupExplanation(tuple(map(found, own)), changed=(("income", "age"),) * len(own))
        run.append_group(group_line(name, people, explained, **ending))
    for row, (name, point) in zip(run.rows(), (("one", 0), ("one", 0), ("two", 0), ("two", 1)), strict=True):
        run.append([row | {"group": name, "point": point}])
    assert told(run)["group/points"].tolist() == [1, 1, 2, 2]


def test_each_answer_is_scored_by_what_was_wanted_of_its_question(asked: Asked) -> None:
    """Three of the five training rows nearest to each answer are granted: 3/5 if that is wanted, 2/5 if refused is."""
    wanted = {0: Label("granted"), 1: Label("refused")}
    run = asked([(found(GRANTED), 0.1)], [(found(YOUNGER), 0.1)], wanted=wanted)
    problems = {person: replace(loans.problem, target=target) for person, target in wanted.items()}
    shares = scoring.score(run, problems, [ynn], "returned")["plausibility/ynn"]
    assert shares.tolist() == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize(
    ("objective", "answer", "impossible"),
    [
        (OWN, NONE_EXISTS, 1.0),
        (OWN, NOTHING, 0.0),
        (OWN, Answer(Status.FAILED, reason=Reason.CRASH), 0.0),
        (OWN, found(GRANTED), 0.0),
        (None, NONE_EXISTS, 0.0),  # nobody knows what it keeps to
        (Objective((), limits=(Limit(Term("l0"), 2),)), NONE_EXISTS, 0.0),
        (Objective((), causal=True), NONE_EXISTS, 0.0),
        (Objective((), domain={"rho": 0.1}), NONE_EXISTS, 0.0),
    ],
)
def test_none_exists_where_a_proof_is_about_the_question(
    asked: Asked, objective: Objective | None, answer: Answer, impossible: float
) -> None:
    """A proof within limits of the method's own says nothing about others."""
    assert told(asked([(answer, 0.1)], objective=objective))["impossible"].tolist() == [impossible]


def test_who_has_what_is_wanted_is_no_question(asked: Asked) -> None:
    """Any other refusal is."""
    content = Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail=SATISFIED)
    refused = Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail="not for this model")
    failed = Answer(Status.FAILED, reason=Reason.CRASH, detail=SATISFIED)
    run = asked([(content, 0.0)] * 2, [(refused, 0.0)] * 2, [(content, 0.0), (refused, 0.0)], [(failed, 0.0)] * 2)
    assert told(run).index.tolist() == [1, 2, 3]
    assert scoring.refusal(run) is None
    assert scoring.refusal(asked([(content, 0.0)], [(refused, 0.0)])) == "not for this model"
    assert scoring.refusal(asked([(content, 0.0)])) == SATISFIED


def test_a_run_is_told_in_counts(asked: Asked) -> None:
    """Statuses, verdicts, what went wrong in which words, and of how many questions; the first answer counts."""
    crash = Answer(Status.FAILED, reason=Reason.CRASH, detail="Traceback\n  a line\nKeyError: 'job'.\n")
    less = Answer(Status.GAVE_UP, detail="no more rows.")
    questions = [[crash, crash], [less, less], [less, less], [NOTHING, NOTHING], [found(GRANTED), less]]
    told = scoring.outcome(asked(*([(answer, 0.1) for answer in answers] for answers in questions)))
    assert told["status"] == {"FAILED": 2, "GAVE_UP": 7, "FOUND": 1}
    assert told["verdict"] == {"none": 9, "accepted": 1}
    assert told["details"] == [crash.detail]
    assert list(told["reasons"].items()) == [("no more rows", 2), ("crash, KeyError: 'job'", 1), ("time limit", 1)]
    assert told["timed_beside"] is False
    assert math.isnan(told["share"])


def test_the_share_of_a_processor_that_a_run_had() -> None:
    """Of 3 s 1.5, by first answers whose processor seconds are known; nothing is said of less than .2 s."""
    kept = [(1.0, 1.0, 1), (2.0, 0.5, 1), (2.0, 2.0, 2), (5.0, None, 1)]
    rows = [{"seconds": seconds, "cpu_seconds": own, "ce": ce} for seconds, own, ce in kept]
    assert scoring.processor_share(rows) == pytest.approx(0.5)
    assert math.isnan(scoring.processor_share(rows[2:]))
    assert math.isnan(scoring.processor_share([{"seconds": 0.19, "cpu_seconds": 0.01, "ce": 1}]))
    assert scoring.processor_share([{"seconds": 0.2, "cpu_seconds": 0.05, "ce": 1}]) == pytest.approx(0.25)


def test_means_with_their_errors() -> None:
    """Of 1 and 3: 2, with the spread's root over two; a single value has no error, and all questions are counted."""
    summary = scoring.summarise(pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": [4.0, np.nan, np.nan]}))
    assert summary.loc["a"].tolist() == pytest.approx([2.0, 1.0, 2, 3])
    assert summary.loc["b", ["mean", "n", "of"]].tolist() == [4.0, 1, 3]
    assert math.isnan(summary.loc["b", "se"])


def test_a_group_counts_once_however_many_people_are_in_it(asked: Asked) -> None:
    """One person with a point in 1 s, three with three in 4 s: two points, 2.5 s, gaps of 0 and 2 to a bound of 1."""
    points = [{**GRANTED, "income": income} for income in (80.0, 85.0, 90.0, 95.0)]
    run = asked(*([(found(point), 0.1)] for point in points))
    for name, people, seconds in (("one", (0,), 1.0), ("three", (1, 2, 3), 4.0)):
        own = [points[person] for person in people]
        explained = GroupExplanation(tuple(map(found, own)), changed=(("income", "age"),) * len(own), bound=1.0)
        ending = {"status": "FOUND", "seconds": seconds, "fit_seconds": 0.1, "late": False}
        run.append_group(group_line(name, people, explained, **ending))
    placed = (("one", 0), ("three", 0), ("three", 1), ("three", 2))
    for row, (name, point) in zip(run.rows(), placed, strict=True):
        run.append([row | {"group": name, "point": point}])
    scores = told(run)
    scores.to_csv(run.path / SCORES)
    (entry,) = Study.among("s", [run]).entries
    assert [entry.groups[f"group/{name}"] for name in ("points", "gap", "seconds")] == [2.0, 1.0, 2.5]
    assert replace(entry, paces=(0.4,)).groups["group/seconds"] == 1.0  # as on the machine of others
    line = summary.line_of(entry)
    assert (line["points"], line["points_gap"]) == (2.0, 1.0)
    said = "done: 4 factuals, coverage 1.00, validity 1.00, 2 points a group, gap 1, 2.500 s a group"
    assert job._line(run, scores, "done", 4) == said


@pytest.mark.parametrize(("bound", "least"), [(5.0, 1.0), (3.0, 0.0), (None, 0.0)])
def test_a_total_change_is_the_least_where_its_bound_says_so(bound: float | None, least: float) -> None:
    """Of five changes, none fewer than the bound."""
    line = {"total_change": 5, "total_change_bound": bound}
    assert scoring._total_change(line, holds=True)["least_change"] == least
    assert scoring._total_change(line, holds=False)["least_change"] == 0.0


def test_who_is_wrongly_called_uncoverable_is_left(asked: Asked) -> None:
    """Two people, one with a point that would serve the other, too, who is said to have none."""
    run = asked([(found(GRANTED), 0.1)], [(NOTHING, 0.1)])
    ending = {"status": "OPTIMAL", "seconds": 1.0, "fit_seconds": 0.1, "late": False}
    explained = GroupExplanation(
        (found(GRANTED),),
        changed=(("income", "age"),),
        bound=1.0,
        uncoverable=(1,),
        total_change=2,
        total_change_bound=2.0,
    )
    run.append_group(group_line("g", (0, 1), explained, **ending))
    for row, point in zip(run.rows(), (0, None), strict=True):
        run.append([row | {"group": "g", "point": point}])
    columns = ["uncoverable", "left", "optimal", "settled", "least_change"]
    for verdict, expected in (("none", [1, 0, 1.0, 1.0, 1.0]), ("worse than claimed", [0, 1, 0.0, 0.0, 0.0])):
        run.put_verdicts([{"factual": 0, "ce": 1, "verdict": "accepted"}, {"factual": 1, "ce": 1, "verdict": verdict}])
        assert scoring.group_table(run).loc["g", columns].tolist() == expected


@pytest.mark.parametrize(("verdict", "settled"), [("none", 1.0), ("worse than claimed", 0.0)])
def test_that_nobody_can_be_served_is_settled(verdict: str, settled: float, asked: Asked) -> None:
    """Without a point there is no fewest number of them, and the proof is one all the same, where it holds."""
    run = asked([(NOTHING, 0.1)], [(NOTHING, 0.1)])
    ending = {"status": "INFEASIBLE", "seconds": 1.0, "fit_seconds": 0.1, "late": False}
    run.append_group(group_line("g", (0, 1), GroupExplanation((), uncoverable=(0, 1)), **ending))
    run.append([row | {"group": "g", "point": None} for row in run.rows()])
    run.put_verdicts([{"factual": n, "ce": 1, "verdict": verdict if n else "none"} for n in (0, 1)])
    table = scoring.group_table(run).loc["g"]
    assert table[["optimal", "settled"]].tolist() == [0.0, settled]
    assert math.isnan(table["points"])


def test_who_is_served_late_is_not_left(asked: Asked) -> None:
    """Of two people of a late group one has a point."""
    run = asked([(found(GRANTED), 0.1)], [(NOTHING, 0.1)], late=True)
    ending = {"status": "FOUND", "seconds": 9.0, "fit_seconds": 0.1, "late": True}
    explained = GroupExplanation((found(GRANTED),), changed=(("income", "age"),))
    run.append_group(group_line("g", (0, 1), explained, **ending))
    for row, point in zip(run.rows(), (0, None), strict=True):
        run.append([row | {"group": "g", "point": point}])
    assert scoring.group_table(run).loc["g", ["size", "covered", "left", "points"]].tolist() == [2, 1, 1, 1]


def test_optima_are_counted_per_answer(asked: Asked) -> None:
    """Of two answers to each of two questions one is proven."""
    answers = [(found(GRANTED, 2.0, 2.0), 0.1), (found({**GRANTED, "income": 90.0}, 3.0, 2.0), 0.1)]
    run = asked(answers, answers)
    told(run).to_csv(run.path / SCORES)
    (entry,) = Study.among("s", [run]).entries
    assert summary.line_of(entry)["optimal"] == 0.5


@pytest.mark.parametrize(("bound", "gap"), [(1.3, 0.0), (1.0, 1.0), (2.0 + 1e-7, 0.0), (0.2, 1.0)])
def test_a_fraction_of_a_point_is_a_whole_one(bound: float, gap: float, asked: Asked) -> None:
    """Of two points and a relaxation's bound: the gap is of whole points."""
    run = asked([(found(GRANTED), 0.1)], [(found({**GRANTED, "income": 90.0}), 0.1)])
    ending = {"status": "FOUND", "seconds": 1.0, "fit_seconds": 0.1, "late": False}
    points = (found(GRANTED), found({**GRANTED, "income": 90.0}))
    explained = GroupExplanation(points, changed=(("income", "age"),) * 2, bound=bound)
    run.append_group(group_line("g", (0, 1), explained, **ending))
    for point, row in enumerate(run.rows()):
        run.append([row | {"group": "g", "point": point}])
    assert scoring.group_table(run).loc["g", "gap"] == gap


def test_where_all_have_what_is_wanted_they_are_counted(asked: Asked) -> None:
    """People left out are counted nowhere, but where there is nobody else."""
    content = Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail=SATISFIED)
    assert scoring.outcome(asked([(content, 0.0)], [(content, 0.0)]))["status"] == {"UNSUPPORTED": 2}
    assert scoring.outcome(asked([(content, 0.0)], [(found(GRANTED), 0.1)]))["status"] == {"FOUND": 1}
