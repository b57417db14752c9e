"""What the site's data say of small studies, of which every number is worked out by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.sites import BOX, FAR, ran, ran_for_several, several, timed_elsewhere
from support.tables import GRANTED, MEMBER, PATHS, YOUNGER, started

from harness.core.explanation import Answer, Reason, Status
from harness.core.target import Label
from harness.evaluation.contest import Criterion, too_few
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports.overview import for_paper, overview
from harness.reports.page.elements import Names
from harness.reports.page.which import meaning, places
from harness.reports.site import catalogue
from harness.reports.site.board import board, choices, views
from harness.reports.site.catalogue import methods
from harness.reports.site.questions import Asked, answers, questions
from harness.store.run import StoredRun
from metrics import _example as loans
from metrics.proximity import cost
from metrics.robustness import certified_radius_linf


def of_loans(folder: Path) -> dict[str, dict[str, Any]]:
    """By model, the board of a study of one data set."""
    return views(Numbers(Study.of(folder)), ["loans"])


def test_the_board_has_the_least_of_several_coverages(tmp_path: Path) -> None:
    """Four of twelve on one model, eight on the other: a half together, a third at least, to six digits.

    Wilson's intervals are .138120 to .609378 and .390622 to .861880: of the same people, distances add up, and by two
    they are .235629.
    """
    for model, answered in (("lr", 4), ("rf", 8)):
        ran(tmp_path, [GRANTED] * answered + [None] * (12 - answered), model=model)
    found = {model: view["methods"][0] for model, view in of_loans(tmp_path).items()}
    common = {"coverage": [0.5, 0.264371, 0.735629], "least": 0.333333, "few": False, "took": 2}
    assert found[""] == {**common, "n": 24, "setup": 0.1, "faults": {}, "missing": {"GAVE_UP": 12}}
    assert (found["lr"]["least"], found["rf"]["least"]) == (0.333333, 0.666667)


def test_set_up_is_that_of_the_slowest_task(tmp_path: Path) -> None:
    """Of three tasks of which one was not noted; of twelve questions and four and one; nothing where none was noted."""
    for method, seconds in (("one", (3.0, None, 5.0)), ("two", (None, None, None))):
        for model, count, setup in zip(("lr", "mlp", "rf"), (12, 4, 1), seconds, strict=True):
            run = ran(tmp_path, [GRANTED] * count, model=model, method=method)
            run.update(setup={"seconds": setup, "cpu_seconds": setup})
    view = of_loans(tmp_path)
    assert {model: [line["setup"] for line in view[model]["methods"].values()] for model in view} == {
        "": [5.0, None], "lr": [3.0, None], "mlp": [None, None], "rf": [5.0, None],
    }  # fmt: skip
    assert [line["n"] for line in view[""]["methods"].values()] == [17, 17]
    assert view["lr"]["methods"][0]["n"] == 12


def test_a_task_has_validity_and_what_is_filled(tmp_path: Path) -> None:
    """Of four answers to two questions three are valid and accepted; who may give one fills nothing."""
    ran_for_several(tmp_path, [[GRANTED, MEMBER], [GRANTED, FAR]], method="both")
    ran(tmp_path, [GRANTED, YOUNGER], method="single")
    both, single = of_loans(tmp_path)["lr"]["methods"].values()
    assert (both["filled"], both["validity"]) == (0.75, 0.75)
    assert (single["filled"], single["validity"]) == (None, 0.5)
    assert both["coverage"][1] is not None


def test_what_is_not_accepted_is_counted(tmp_path: Path) -> None:
    """By its first fault; what was not returned by how its search ended."""
    stopped = Answer(Status.FAILED, None, Reason.FINISHED, detail="a fault")
    for model, given in (("lr", [GRANTED, MEMBER, YOUNGER, None]), ("rf", [MEMBER, None, stopped, GRANTED])):
        ran(tmp_path, given, model=model)
    lines = {model: view["methods"][0] for model, view in of_loans(tmp_path).items()}
    assert {model: line["faults"] for model, line in lines.items()} == {
        "": {"invalid": 3}, "lr": {"invalid": 2}, "rf": {"invalid": 1},
    }  # fmt: skip
    assert [line["missing"] for line in lines.values()] == [
        {"GAVE_UP": 2, "FAILED": 1}, {"GAVE_UP": 1}, {"GAVE_UP": 1, "FAILED": 1},
    ]  # fmt: skip


def test_a_rank_is_of_the_tasks_in_which_a_method_has_one(tmp_path: Path) -> None:
    """By the requirement that is shown: seconds of another machine are of none."""
    view = of_loans(timed_elsewhere(tmp_path) / "timed")[""]
    known = {name: {line["method"]: line["ranked"] for line in by["lines"]} for name, by in view["by"].items()}
    assert known == {"proximity": {0: 2, 1: 2, 2: 2}, "seconds": {0: 2, 1: 1, 2: 2}}
    assert {by["tasks"] for by in view["by"].values()} == {2}


def test_a_rank_lies_within_its_interval(tmp_path: Path) -> None:
    """Each of two methods is the nearer in half of the questions."""
    for method, given in (("one", [GRANTED, FAR]), ("two", [FAR, GRANTED])):
        ran(tmp_path, given * 6, method=method)
    for line in of_loans(tmp_path)["lr"]["by"]["proximity"]["lines"]:
        rank, low, high = line["rank"]
        assert low < rank == 0.5 < high


def test_who_answers_too_few_of_a_task_is_who_has_no_place_in_it(tmp_path: Path) -> None:
    """Of twelve questions one answers seven; each of three seeds of another four more, no question by two of them."""
    ran(tmp_path, [GRANTED] * 7 + [None] * 5, method="most")
    for seed in range(3):
        given = [GRANTED if place % 3 == seed else None for place in range(12)]
        ran(tmp_path, given, method="seeds", fingerprint=f"{seed}").update(seed=seed)
    numbers = Numbers(study := Study.of(tmp_path))
    assert too_few(study) == frozenset()  # its coverage is a third, more than half of seven twelfths
    assert [line["few"] for line in of_loans(tmp_path)["lr"]["methods"].values()] == [False, True]
    assert dict(places(numbers, "loans / lr", Names(())))["proximity"] == "1: most; answers too few: seeds"


def test_what_all_methods_of_a_task_see_is_not_said(tmp_path: Path) -> None:
    """Nor what one sees that refuses the task."""
    for method, sees in (("one", ["a"]), ("two", ["a", "b"])):
        ran(tmp_path, [GRANTED], method=method).update(sees=sees)
    refusal = Answer(Status.UNSUPPORTED, None, Reason.FINISHED, detail="takes no tree")
    ran(tmp_path, [refusal], method="none").update(sees=["c"])
    (task,) = board(Numbers(Study.of(tmp_path)))["tasks"]
    assert task["sees"] == [[2, "b"]]


def test_a_task_has_its_pairs(tmp_path: Path) -> None:
    """Both answer two of twelve questions, one of them ten more: p is 2 / 2^2 by Wilcoxon, 2 / 2^10 by McNemar."""
    ran(tmp_path, [GRANTED] * 12, method="all")
    ran(tmp_path, [FAR] * 2 + [None] * 10, method="few")
    near = of_loans(tmp_path)["lr"]["by"]["proximity"]
    gap = pytest.approx([-0.02] * 3)
    assert near["pairs"] == [[0, 1, 2, gap, 0.5, 10, 0, pytest.approx(2 / 2**10, rel=1e-5)]]
    assert (near["n"], near["enough"]) == (12, True)


@pytest.mark.parametrize(("count", "shown"), [(12, [(0, 1), (0, 2)]), (9, [(0, 1), (0, 2), (1, 2)])])
def test_where_few_questions_are_common_all_pairs_are_there(
    count: int, shown: list[tuple[int, int]], tmp_path: Path
) -> None:
    """Else those of who is first; both have no test of who answers."""
    for method, answer in (("a", GRANTED), ("b", FAR), ("c", FAR)):
        ran(tmp_path, [answer] * count, method=method)
    near = of_loans(tmp_path)["lr"]["by"]["proximity"]
    assert [tuple(pair[:2]) for pair in near["pairs"]] == shown
    assert (near["enough"], {pair[-1] for pair in near["pairs"]}) == (count == 12, {None})


def test_several_tasks_have_no_pairs(tmp_path: Path) -> None:
    """But in how many of them a method is first: each in one of two."""
    view = views(Numbers(Study.of(several(tmp_path) / "three")), ["a", "b"])
    near = view["lr"]["by"]["proximity"]
    assert "pairs" not in near
    assert {(line["place"], line["first"], line["blocks"]) for line in near["lines"]} == {("–", "1 of 2 tasks", "")}


def test_data_sets_are_chosen_together(tmp_path: Path) -> None:
    """Ranks are means over those chosen: of three, the first method has 1/3 of the best; of the first two a half."""
    numbers = Numbers(Study.of(several(tmp_path) / "three"))
    ranks = {}
    for chosen in choices(["a", "b", "c"]):
        (view,) = views(numbers, chosen).values()
        ranks["".join(chosen)] = {line["method"]: line["rank"][0] for line in view["by"]["proximity"]["lines"]}
        assert view["tasks"] == len(chosen)
    assert {chosen: rank[0] for chosen, rank in ranks.items()} == pytest.approx(
        {"abc": 2 / 3, "a": 0.0, "b": 1.0, "c": 1.0, "ab": 0.5, "ac": 0.5, "bc": 1.0}, rel=1e-5
    )
    assert all(sum(rank.values()) == pytest.approx(1.0) for rank in ranks.values())


def test_the_board_says_who_was_not_asked_and_what_was_timed_beside_others(tmp_path: Path) -> None:
    """One method of two about the second model; of three runs, one went on beside others."""
    for model, method in (("lr", "one"), ("rf", "one"), ("lr", "two")):
        run = ran(tmp_path, [GRANTED] * 12, paths=[*PATHS, "metrics.proximity.gower"], model=model, method=method)
    rows = run.path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"seconds"', '"beside": 2, "seconds"', 1))
    run.update(sees=["reference=all"])
    numbers = Numbers(Study.of(tmp_path))
    shown = board(numbers)
    assert shown["methods"] == ["one", "two"]
    assert [task["sees"] for task in shown["tasks"]] == [[[1, "reference=all"]], []]
    assert {task["name"]: task["unasked"] for task in shown["tasks"]} == {"loans / lr": [], "loans / rf": [1]}
    shown_of = {model: view["clocks"] for model, view in views(numbers, ["loans"]).items()}
    ((said,), (beside,)) = shown_of[""], shown_of["lr"]
    assert beside.startswith("Seconds of 1 of 2 runs were taken while")
    assert shown_of["rf"] == []
    assert said.startswith("Seconds of 1 of 3 runs were taken while other factuals or runs went on")
    assert shown["conditions"] == []  # what is seen stands with the task
    seen = "loans / lr: two sees what others do not: reference=all."
    assert f"- {said}\n- {seen}\n" in overview(numbers)[0]
    first, second = (table.caption for table in for_paper(numbers))
    assert "Seconds of 1 of 2 runs were taken while" in first
    assert seen in first
    assert "sees what" not in second


def test_the_board_says_which_runs_had_less_than_a_processor(tmp_path: Path) -> None:
    """Twelve questions of a second each: one method had .4 and .7 of them, another .9; of no time nothing is known."""
    for method, model, own, seconds in [
        ("a", "lr", 0.4, 1),
        ("a", "rf", 0.7, 1),
        ("b", "lr", 0.9, 1),
        ("b", "rf", 0, 0),
    ]:
        run = ran(tmp_path, [GRANTED] * 12, model=model, method=method)
        lines = [{**row, "seconds": seconds, "cpu_seconds": own * seconds} for row in run.rows()]
        (run.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (said,) = views(Numbers(Study.of(tmp_path)), ["loans"])[""]["clocks"]
    assert said.startswith("2 of 3 runs had less than 80% of a processor while they were asked, the least 40% (a 2): ")


def test_the_board_says_what_was_run_and_what_is_unlike(tmp_path: Path) -> None:
    """One method has other steps on the second data set, which has fewer questions."""
    for dataset, steps, count in (("a", 1, 4), ("b", 2, 3)):
        ran(tmp_path, [GRANTED] * count, dataset=dataset, method="one", options={"steps": steps})
        ran(tmp_path, [GRANTED] * count, dataset=dataset, method="two")
    shown = board(Numbers(Study.of(tmp_path)))
    assert shown["conditions"] == ["one is not set alike on all tasks: steps differs."]
    for part in ("seed 0", "seconds per factual 5", "packages numpy 2", "machine a processor, 2 cores, 1 thread(s)"):
        assert f"; {part}" in shown["provenance"]
    assert shown["provenance"].endswith(" Asked: questions a task 3, 4; counterfactuals a question 1.")


def posed(run: StoredRun) -> dict[str, Any]:
    study = Study.among("one", [run])
    return questions(study.methods, Asked.of(study))


def test_of_several_answers_the_nearest_accepted_one_is_taken(tmp_path: Path) -> None:
    """At a distance of 0.15, not 0.17; where none is accepted, the first."""
    shown = posed(ran_for_several(tmp_path, [[MEMBER, FAR, GRANTED], [YOUNGER, MEMBER, MEMBER]]))
    taken = [[each["ce"] for each in question["answers"] if each.get("taken")] for question in shown["questions"]]
    assert taken == [[3], [1]]


def test_a_question_says_what_is_predicted_and_wanted(tmp_path: Path) -> None:
    """Of which column; what the model says now is not known without the model."""
    run = ran(tmp_path, [GRANTED])
    assert posed(run)["column"] == ""
    run.update(config={**run.meta["config"], "dataset": {"target": "loan"}})
    shown = posed(run)
    (question,) = shown["questions"]
    assert (shown["column"], question["now"], question["wanted"]) == ("loan", "refused", "granted")
    (run.path / "estimator.skops").unlink()
    assert posed(run)["questions"][0]["now"] == ""


def test_an_answer_has_its_region_beside_what_the_checker_says_of_it(tmp_path: Path) -> None:
    """A feature that is left one value is no part of it."""
    run = ran(tmp_path, [BOX, None])
    table = answers(Asked.of(Study.among("one", [run])))
    assert table["region"].tolist() == ["income: 60 to 90", ""]
    assert table["changes"].tolist() == ["income: 30 → 80; age: 30 → 40", ""]
    assert table["region_checked"].fillna("").tolist() == ["holds", ""]


def test_an_accepted_answer_has_as_many_digits_as_it_takes(tmp_path: Path) -> None:
    """The tree splits at 50: what is not accepted, or of a model that is not there, is rounded to the nearest."""
    near = {**GRANTED, "income": 50.00001}
    run = ran(tmp_path, [near, {**near, "income": 49.99999}])
    told = [question["answers"][0]["changed"]["income"] for question in posed(run)["questions"]]
    assert told == ["50.0001", "50"]
    assert answers(Asked.of(Study.among("one", [run])))["changes"][0] == "income: 30 → 50.0001; age: 30 → 40"
    (run.path / "estimator.skops").unlink()
    assert posed(run)["questions"][0]["answers"][0]["changed"]["income"] == "50"


def test_a_data_set_says_what_is_wanted_in_all_studies(tmp_path: Path) -> None:
    for study, label in (("first", "granted"), ("second", "refused")):
        problem = replace(loans.problem, target=Label(label))
        run = started(tmp_path / study, problem, loans.factual, [GRANTED])
        run.update(config={**run.meta["config"], "dataset": {"target": "loan"}})
    (shown,) = catalogue.data([Study.of(tmp_path / study) for study in ("first", "second")], "dataset")
    assert (shown.column, shown.wanted, shown.studies) == ("loan", "granted, refused", ["first", "second"])


@pytest.mark.parametrize(
    ("name", "size", "text"),
    [
        ("forest_100x3", {"trees": 100, "depth": 3}, "Random forest, for questions about size"),
        ("relus_10", {"units": 10}, "Neural network of ReLUs"),
        ("lr", None, "Logistic regression"),
        ("lr_10", None, "of a user's own"),
        ("mine_10", {"units": 10}, "of a user's own"),
    ],
)
def test_a_model_is_known_by_its_name_without_its_size(
    name: str, size: dict[str, int] | None, text: str, tmp_path: Path
) -> None:
    run = ran(tmp_path, [GRANTED], model=name)
    run.update(config={**run.meta["config"], "model": {"size": size}})
    (shown,) = catalogue.data([Study.of(tmp_path)], "model")
    assert shown.text.startswith(text)


def test_a_setting_that_a_study_has_otherwise_is_said(tmp_path: Path) -> None:
    """Beside today's YAML, each other value with the studies that have it."""
    for study, metric in (("first", "l1"), ("second", "gower"), ("third", "l1")):
        named = {"method": "nearest", "options": {"distance": metric}}
        started(tmp_path / study, loans.problem, loans.factual, [GRANTED] * 12, **named)
    listed = methods([Study.of(tmp_path / study) for study in ("first", "second", "third")])
    nearest = next(each for each in listed if each.name == "nearest")
    lines = [re.findall(r"<td[^>]*>(?:<span>(.*?)</span>)?</td>", line) for line in nearest.settings.split("\n")]
    assert {line[0]: line[4] for line in lines}["distance"] == "first, third: l1"
    assert sum(line[4] != "" for line in lines) == 1


def test_further_metrics_say_once_which_way_is_better() -> None:
    """And of which answer they are, in place of a mean over answers."""
    radius, charge = certified_radius_linf, cost
    numbers: Any = SimpleNamespace(metrics={each.name: each for each in (radius, charge)})
    told = [meaning(numbers, Criterion(each.column, each.name, each.better)) for each in (radius, charge)]
    assert told == [
        f"{text}; of the nearest accepted counterfactual"
        for text in (
            "Mean of the radius, in [0, 1], of the largest box proven valid around each",
            "Mean sum of the scaled changes of l1, each at its feature's own cost, in [0, inf)",
        )
    ]


def test_a_metric_of_ones_own_for_a_criterion_is_told_as_it_tells() -> None:
    """In place of Gower's distance, which is told in words of its own."""
    numbers: Any = SimpleNamespace(metrics={cost.name: cost})
    assert meaning(numbers, Criterion("proximity", cost.name, "lower")).startswith("Mean sum of the scaled changes")
    assert meaning(numbers, Criterion("proximity", "distance/gower", "lower")).startswith("Gower distance")


def test_the_best_mean_of_a_task_is_marked(tmp_path: Path) -> None:
    """From an income of 30 to 80 is .5, over five features .1; from an age of 30 to 50 is as much again."""
    near = {**MEMBER, "member": "no", "income": 80.0}
    for method, answer in (("near", near), ("far", {**near, "age": 50})):
        named = {"method": method, "paths": ["metrics.proximity.gower"]}
        started(tmp_path, loans.problem, loans.factual, [answer] * 12, **named)
    (view,) = views(Numbers(Study.of(tmp_path)), ["loans"]).values()
    lines = view["by"]["proximity"]["lines"]
    assert [line["best"] for line in lines] == [True, False]
    assert [line["mean"][0] for line in lines] == pytest.approx([0.1, 0.2])
