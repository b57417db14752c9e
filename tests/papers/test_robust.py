"""Tables 1 to 4 of Maragno et al. (2024) from stored runs whose numbers are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.tables import GRANTED, cells, started

from harness.core.explanation import Answer, Reason, Status
from harness.core.target import Label
from harness.core.wording import BROKEN, HOLDS, UNCHECKED
from harness.papers.robust import CLAIMS, TABLES, tables
from harness.reports import reproduction
from harness.reports.claim import decided
from harness.reports.markup import DASH
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from metrics import _example as loans

Made = Callable[..., StoredRun]
SMALL = {"rho": 0.01}
RADIUS = 0.1  # of Table 3, in scaled columns: incomes of 50 and more are granted, on a range of 100


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A stored run of a table: a row an answer, None for none; further entries of its stored rows by ``rows``."""

    def run(*answers: Any, rows: list[dict[str, Any]] | None = None, **settings: Any) -> StoredRun:
        found = started(tmp_path, loans.problem, loans.factual, list(answers), **settings)
        changed = [row | entries for row, entries in zip(found.rows(), rows or [{}] * len(answers), strict=True)]
        (found.path / "rows.jsonl").write_text(pd.Series(changed).to_json(orient="records", lines=True))
        return found

    return run


def timed(seconds: float, steps: int, distance: float | None = 1.0, late: bool = False) -> dict[str, Any]:
    """A stored row's entries after some solutions of the master, the last of them robust for a radius up to 1."""
    trace = [{"iteration": step + 1, "radius": float(step + 1 == steps)} for step in range(steps)]
    reason = Reason.TIME_LIMIT if late else Reason.FINISHED
    status = "GAVE_UP" if distance is None else "FOUND" if late else "OPTIMAL"
    return {"seconds": seconds, "objective": distance, "trace": trace, "reason": reason, "status": status}


def test_runs_that_stopped_early_are_left_out_of_means(made: Made) -> None:
    """By the time limit, with a region or without one: of the first two alone are the mean seconds and iterations."""
    rows = [timed(1.0, 2, 0.5), timed(3.0, 4, 0.7), timed(60.0, 90, 0.9, late=True), timed(50.0, 80, None)]
    run = made(GRANTED, GRANTED, GRANTED, None, rows=rows, options=SMALL)
    put_regions(run, HOLDS, BROKEN, HOLDS, None)
    assert tables.statistics_of(run) == pytest.approx(
        {"median": 26.5, "worst": 60.0, "mean": 2.0, "iterations": 2.0, "distance": 0.7, "proven": 2, "answered": 3,
         "certified": 2, "stopped": 2, "asked": 4}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("radii", "expected"),
    [((0.1,), 0), ((0.0, 0.1), 1), ((0.0, 0.05, 0.0991, 0.1), 2), ((0.0, 0.0989, 0.1), 2), ((0.0, 0.0), 2), ((), 0)],
)
def test_iterations_are_perturbations_added(radii: tuple[float, ...], expected: int) -> None:
    """One after each solution that is not robust for .99 of the radius of .1, as the authors stop there; the last of a
    run whose master then has no solution left is one, too."""
    steps = [{"iteration": place + 1, "radius": radius} for place, radius in enumerate(radii)]
    assert tables.added(steps, 0.1) == expected


def test_a_doubt_about_the_solver_is_no_iteration(made: Made) -> None:
    """It stands in the trace after the iterations of an answer."""
    row = timed(1.0, 3)
    row["trace"] = [*row["trace"], {"proof": "unconfirmed", "of": "a solver's run claimed an optimum"}]
    assert tables.statistics_of(made(GRANTED, rows=[row], options=SMALL))["iterations"] == 2.0
    assert [step["iteration"] for step in tables.steps_of(row)] == [1, 2, 3]
    assert tables.steps_of({"trace": None}) == []


def runs(made: Made, **asked: list[dict[str, Any]]) -> list[StoredRun]:
    """Runs of one place of Table 1 by algorithm."""
    place = {"dataset": "banknote", "model": "robust_rf_5"}
    return [
        made(*[GRANTED] * len(rows), rows=rows, **place, method=kind,
             options={"algorithm": kind, "norm": "linf", "rho": 0.01})
        for kind, rows in asked.items()
    ]  # fmt: skip


def put_regions(run: StoredRun, *regions: str | None) -> None:
    """Have the checker say this of the regions of a run's answers."""
    verdicts = zip(run.verdicts(), regions, strict=True)
    run.put_verdicts([verdict | ({"region": region} if region else {}) for verdict, region in verdicts])


def compared(found: list[StoredRun]) -> pd.DataFrame:
    """Our numbers beside the published ones of that place, by measure."""
    table = TABLES["robust_table1"]
    lines = table.compared(table.build(found)[1])
    place = lines["rho"].eq(0.01) & lines["dataset"].eq("banknote") & lines["spec"].eq("# est.: 5")
    return lines.loc[place & lines["model"].eq("rf")].set_index("measure")


def test_each_algorithm_stands_beside_the_published_one(made: Made) -> None:
    """Under its own name; of the default no iterations. Early stops are so many of those that were asked."""
    ours, paper = [timed(0.25, 0)], [timed(2.0, 5), timed(4.0, 7), timed(60.0, 9, late=True)]
    both = compared(runs(made, auto=ours, adversarial=paper))["ours"]
    assert both.to_dict() == {
        "seconds, Algorithm 1": 3.0, "iterations, Algorithm 1": 5.0, "early_stops, Algorithm 1": 1.0,
        "seconds, ours": 0.25, "early_stops, ours": 0.0,
    }  # fmt: skip
    table, lines = TABLES["robust_table1"], compared(runs(made, auto=ours, adversarial=paper))
    stops = lines.loc["early_stops, Algorithm 1"].to_dict()
    assert (stops["of"], stops["published_of"]) == (3.0, 20.0)
    printed = reproduction.entry(stops | {"measure": "early_stops, Algorithm 1"}, table)
    assert printed == f"1 of 3 ({stops['published']:g} of 20)"
    lacking = reproduction.entry(stops | {"ours": math.nan, "of": math.nan}, table)
    assert lacking == f"– ({stops['published']:g} of 20)"


def test_nothing_stands_in_for_algorithm_1(made: Made) -> None:
    alone = compared(runs(made, auto=[timed(0.25, 0)]))["ours"]
    assert (alone["seconds, ours"], alone["early_stops, ours"]) == (0.25, 0.0)
    assert alone[[name for name in alone.index if name.endswith("Algorithm 1")]].isna().all()


def test_boosting_by_the_sum_of_its_trees_stands_apart(made: Made) -> None:
    """In columns of its own, of boosting alone: what was asked by the model's own rule is another question."""
    options = {"algorithm": "auto", "norm": "linf", "rho": 0.01}
    found = [
        made(GRANTED, rows=[timed(seconds, 0)], dataset="banknote", model=model, method="auto", options=options)
        for model, seconds in (("robust_gbm_5", 0.25), ("robust_gbm_5_sum", 0.5))
    ]
    table = TABLES["robust_table1"]
    text, lines = table.build(found)
    (row,) = cells(text)[1:]
    head = cells(text)[0]
    assert row[head.index("ours median s")] == "0.250"
    assert row[head.index("by the sum: ours median s")] == "0.500"
    compared = table.compared(lines)
    by_sum = compared["measure"].str.endswith("by the sum")
    assert set(compared.loc[by_sum, "model"]) == {"gbm"}
    shown = compared.dropna(subset="ours").set_index("measure")["ours"]
    assert shown.to_dict() == {
        "seconds, ours": 0.25, "early_stops, ours": 0.0,
        "seconds, ours by the sum": 0.5, "early_stops, ours by the sum": 0.0,
    }  # fmt: skip


def test_robust_is_certified_for_the_whole_radius(made: Made) -> None:
    """Granted are incomes above 50: 61 stands a ball of .1, 56 (.06) does not, 40 is not valid, one is missing."""
    rows = [{**GRANTED, "income": income} for income in (61.0, 56.0, 40.0)]
    run = made(*rows, None)
    assert tables.shares(run, RADIUS) == (0.25, 0.5, 0.75, 4)
    assert tables.shares(run, 0.05) == (0.5, 0.5, 0.75, 4)


def test_each_answer_is_held_against_what_was_wanted_for_its_person(tmp_path: Path) -> None:
    """An income of 61 is granted and one of 39 refused, each as wanted: both are .11 from 50 and stand a ball of .1."""
    run, wanted = StoredRun(tmp_path / "run"), {0: Label("granted"), 1: Label("refused")}
    people = pd.concat([loans.factual] * 2).set_axis(list(wanted))
    meta = {"dataset": "loans", "model": "tree", "method": "ours", "n_counterfactuals": 1}
    run.start(meta, loans.SPACE, loans.problem.classifier, wanted, None, people)
    points = ({**GRANTED, "income": income} for income in (61.0, 39.0))
    run.append(answer_row(person, 1, Answer(Status.FOUND, point)) for person, point in enumerate(points))
    assert tables.shares(run, RADIUS) == (1.0, 1.0, 1.0, 2)


def test_table_3_has_shares_of_both_methods(made: Made) -> None:
    """Each under its own name, at its radius."""
    options = {"rho": RADIUS}
    place = {"dataset": "banknote", "model": "robust_mlp_50", "options": options}
    robust, near = ({**GRANTED, "income": income} for income in (61.0, 56.0))
    found = [
        made(robust, method="robust_l2", **place),
        made(near, near, near, robust, method="adversarial_recourse_1", **place),
        made(near, robust, method="adversarial_recourse_fixed_1", **place | {"options": options | {"last": True}}),
    ]
    table = TABLES["robust_table3"]
    _, lines = table.build(found)
    place_of = lines["dataset"].eq("banknote") & lines["model"].eq("nn(50)") & lines["rho"].eq(RADIUS)
    (row,) = lines[place_of].to_dict("records")
    assert (row["ours_robustness"], row["ours_validity"]) == (1.0, 1.0)
    assert (row["ours_dominguez_olmedo_robustness"], row["ours_dominguez_olmedo_validity"]) == (0.5, 1.0)
    assert (row["ours_lowered_robustness"], row["ours_lowered_validity"]) == (0.25, 1.0)
    shown = table.compared(lines).set_index(["dataset", "model", "rho"]).loc[("banknote", "nn(50)", RADIUS)]
    numbers = shown.set_index("measure")[["ours", "alone"]]
    assert numbers.loc["dominguez_olmedo_robustness"].tolist() == [0.5, False]
    assert numbers.loc["lowered_robustness"].tolist() == [0.25, True]
    assert lines["ours_robustness"].notna().sum() == 1


def test_table_4_has_the_accuracy_of_each_part(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight training rows the model has one wrong; of four test rows, labelled here, three."""
    run = made(GRANTED, dataset="banknote", model="robust_lr")
    frame = pd.concat([loans.TRAIN, loans.TRAIN.iloc[:4]], ignore_index=True)
    labels = np.array([*loans.LABELS, "granted", "granted", "granted", "refused"], dtype=object)
    data = SimpleNamespace(frame=frame, labels=labels, train=np.arange(8), test=np.arange(8, 12))
    monkeypatch.setattr(tables, "data_of", lambda run: data)
    run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    text, lines = TABLES["robust_table4"].build([run])
    ours = lines[lines[""].eq("ours") & lines["dataset"].eq("banknote")].set_index("split")["lr"]
    assert ours.to_dict() == {"train": 7 / 8, "test": 1 / 4}
    assert cells(text) == [
        ["split", "dataset", "", "lr"],
        ["train", "banknote", "published", "0.97"],
        ["train", "banknote", "ours", "0.88"],
        ["test", "banknote", "published", "0.96"],
        ["test", "banknote", "ours", "0.25"],
    ]
    assert text.splitlines()[1] == "| :--- | :--- | :--- | --- |"
    assert "- 4 published rows are not shown: nothing of them was run here.\n- The paper's split is" in text
    compared = TABLES["robust_table4"].compared(lines).dropna(subset="ours")
    assert compared[["split", "measure", "published", "ours"]].to_numpy().tolist() == [
        ["train", "lr", 0.97, 7 / 8],
        ["test", "lr", 0.96, 1 / 4],
    ]


@pytest.mark.parametrize(
    ("seconds", "distances", "holds"),
    [
        ((1.0, 1.0), (1.5, 1.6), True),
        ((1.0, 1.0), (1.5, 1.5), False),  # nowhere farther
        ((1.0, 3.0), (1.5, 1.6), False),  # faster in one of two is not most
        ((1.0, 2.0), (1.5, 1.6), False),  # as fast is no faster
        ((1.0, 1.0), (1.6, 1.2), False),  # once nearer
        ((1.0, 1.0), (1.6, 1.5 - 1e-6), True),  # but for rounding
    ],
)
def test_one_leaf_is_faster_and_nowhere_nearer(
    seconds: tuple[float, float], distances: tuple[float, float], holds: bool
) -> None:
    """Algorithm 1 takes 2 s, the optimum is at 1.5, in both rows; all factuals are answered."""
    line = {f"{who}_{what}": 20 for who in ("leaf", "ours") for what in ("answered", "asked")}
    line |= {"paper_algorithm_common": 2.0, "paper_algorithm_asked": 20, "ours_distance": 1.5}
    lines = [line | {"leaf_common": s, "leaf_distance": d} for s, d in zip(seconds, distances, strict=True)]
    tables_of = {"robust_table1": pd.DataFrame(lines[:1]), "robust_table2": pd.DataFrame(lines[1:])}
    found = CLAIMS["robust_leaf"].decide(tables_of)
    assert found.holds is holds
    assert found.text.endswith("of 2 rows")
    assert found.settings == 2
    fewer = tables_of | {"robust_table2": tables_of["robust_table2"].assign(leaf_asked=4, leaf_answered=4)}
    assert CLAIMS["robust_leaf"].decide(fewer).settings == 1  # of other factuals
    fewer = tables_of | {"robust_table2": tables_of["robust_table2"].assign(paper_algorithm_asked=5)}
    found = CLAIMS["robust_leaf"].decide(fewer)
    assert found.settings == 1
    alone = {"robust_table2": fewer["robust_table2"]}
    assert decided(CLAIMS["robust_leaf"], alone)[1].startswith("0 of 78 settings: faster in ")
    assert found.text.endswith("of 2 rows, of 5 people or more where the paper has 20")


def test_two_algorithms_are_timed_on_the_same_people(made: Made) -> None:
    """Medians over the first two people, whom both were asked: 2 and 4 s, and 1 and 9 s; the first alone has 50 s."""
    first = made(*[GRANTED] * 3, rows=[timed(seconds, 1) for seconds in (2.0, 4.0, 50.0)], method="one")
    second = made(*[GRANTED] * 2, rows=[timed(seconds, 1) for seconds in (1.0, 9.0)], method="other")
    assert tables.common({"leaf": first, "paper_algorithm": second}) == {"leaf": 3.0, "paper_algorithm": 5.0}
    assert tables.common({"leaf": first, "paper_algorithm": None}) == {}


def test_a_row_of_table_1_is_printed_with_all_algorithms(made: Made) -> None:
    """Two of ours, one of them proven in time, and three of the paper's, of which one stopped, at a published place."""
    ours = [timed(0.25, 0), timed(0.75, 0, late=True)]
    paper = [timed(2.0, 5), timed(4.0, 8), timed(60.0, 9, late=True)]
    found = runs(made, auto=ours, adversarial=paper, leaf=[timed(0.1, 0)])
    put_regions(found[0], UNCHECKED, HOLDS)
    text, lines = TABLES["robust_table1"].build(found)
    head, row = cells(text)
    known = tables.published("robust_tables1_2.csv", 1)
    place = known["rho"].eq(0.01) & known["dataset"].eq("banknote") & known["spec"].eq("# est.: 5")
    (line,) = known[place & known["model"].eq("rf")].to_dict("records")
    assert dict(zip(head[:6], row[:6], strict=True)) == {
        "ρ": "0.01", "dataset": "banknote", "model": "rf # est.: 5", "published s": f"{line['seconds']:.2f}",
        "iterations": f"{line['iterations']:.2f}", "early stops of 20": f"{line['early_stops_of_20']:.0f}",
    }  # fmt: skip
    assert list(zip(head[6:], row[6:], strict=True)) == [
        ("ours median s", "0.500"), ("max s", "0.750"), ("proven", "1/2"), ("regions", "1/2"),
        ("Algorithm 1: s", "3.00"), ("iterations", "5.50"), ("early stops", "1/3"),
    ]  # fmt: skip
    assert text.splitlines()[1] == "| " + " | ".join([":---"] * 3 + ["---"] * 10) + " |"
    assert "- 107 published rows are not shown: nothing of them was run here.\n- *published*: mean" in text
    assert TABLES["robust_table2"].build(runs(made, auto=ours))[1].filter(like="ours").empty  # of another norm
    assert (len(lines), len(known)) == (108, 108)


def test_a_run_without_rows_has_no_statistics(made: Made) -> None:
    """Nor any that needs a region where there is none."""
    alone = tables.statistics_of(made(None, rows=[timed(5.0, 3, None) | {"status": "UNSUPPORTED"}]))
    assert (alone["median"], alone["worst"], alone["stopped"]) == (5.0, 5.0, 1.0)
    assert (alone["answered"], alone["certified"], alone["proven"]) == (0.0, 0.0, 0.0)
    assert np.isnan([alone["mean"], alone["iterations"], alone["distance"]]).all()
    run = made(None)
    (run.path / "rows.jsonl").write_text("")
    nothing = tables.statistics_of(run)
    assert np.isnan([nothing[name] for name in ("median", "worst", "mean", "iterations", "distance")]).all()
    assert [nothing[name] for name in ("proven", "answered", "certified", "stopped", "asked")] == [0.0] * 5
    assert tables.shares(run, RADIUS) == (0.0, 0.0, 0.0, 0)


def test_only_first_counterfactuals_count(made: Made) -> None:
    """Of a factual with two, the second neither counts nor is timed."""
    second = {"ce": 2, "factual": 0}
    run = made({**GRANTED, "income": 61.0}, None, rows=[timed(1.0, 2), timed(9.0, 9) | second], options=SMALL)
    run.update(n_counterfactuals=2)
    found = tables.statistics_of(run)
    assert (found["asked"], found["worst"], found["iterations"]) == (1.0, 1.0, 1.0)
    assert tables.shares(run, RADIUS) == (1.0, 1.0, 1.0, 1)


def test_table_3_is_printed_and_compared(made: Made) -> None:
    """Ours at .1 on the network of 50: robust in one of two, valid in both; the rival's only at .2."""
    place = {"dataset": "banknote", "model": "robust_mlp_50"}
    far, near = ({**GRANTED, "income": income} for income in (71.0, 56.0))
    found = [
        made(far, near, method="robust_l2", options={"rho": 0.1}, **place),
        made(far, near, near, near, method="adversarial_recourse_fixed_1", options={"rho": 0.2, "last": True}, **place),
    ]
    table = TABLES["robust_table3"]
    text, lines = table.build(found)
    head, *rows = cells(text)
    assert head == [
        "dataset", "model", "ρ", "dominguez olmedo robustness", "dominguez olmedo validity",
        "ours dominguez olmedo robustness", "ours dominguez olmedo validity", "robust robustness", "robust validity",
        "ours robustness", "ours validity",
    ]  # fmt: skip
    assert rows == [
        ["banknote", "nn(50)", "0.1", "0.80", "1.00", DASH, DASH, "1.00", "1.00", "0.50", "1.00"],
        ["banknote", "nn(50)", "0.2", "0.00", "1.00", "0.25", "1.00", "1.00", "1.00", DASH, DASH],
    ]
    assert text.splitlines()[1].startswith("| :--- | :--- | :--- | --- |")
    assert "- 6 published rows are not shown" in text
    compared = table.compared(lines).query("dataset == 'banknote' and model == 'nn(50)'")
    assert compared[["rho", "measure", "published", "ours"]].dropna().to_numpy().tolist() == [
        [0.2, "dominguez_olmedo_robustness", 0.0, 0.25],
        [0.2, "dominguez_olmedo_validity", 1.0, 1.0],
        [0.1, "robust_robustness", 1.0, 0.5],
        [0.1, "robust_validity", 1.0, 1.0],
    ]


@pytest.mark.parametrize(
    ("short", "holds"), [(0, (False, False)), (1, (False, True)), (4, (False, True)), (5, (True, True))]
)
def test_the_rival_falls_short_in_most_rows_or_in_one(short: int, holds: tuple[bool, bool]) -> None:
    """Of eight rows, four of them of Ionosphere, and a ninth that was not run; of ours just as many are not valid."""
    shares = [0.9] * short + [1.0] * (8 - short)
    measures = {f"ours_dominguez_olmedo_{name}": [*shares, None] for name in ("robustness", "validity")}
    ours = {"ours_validity": [*shares, None], "ours_answered": [1.0] * 8 + [None], "ours_asked": 10}
    ours["ours_dominguez_olmedo_asked"] = 10
    names = {"dataset": ["ionosphere"] * 4 + ["banknote"] * 5}
    numbers = {"robust_table3": pd.DataFrame(names | measures | ours)}
    found = [CLAIMS[name].decide(numbers) for name in ("robust_rival", "robust_invalid", "robust_valid")]
    assert tuple(each.holds for each in found) == (*holds, short == 0)
    told = "below 1 in {} of {} rows"
    own = f"1.00 in {8 - short} of 8 rows: what the model refuses is not returned"
    texts = [told.format(short, 8), told.format(min(short, 4), 4), own]
    assert [(each.settings, each.text) for each in found] == list(zip((8, 4, 8), texts, strict=True))


@pytest.mark.parametrize(
    ("second", "holds", "text"),
    [
        ([5.0, 4.0], False, "more in 1, as many in 1 of 2 models"),
        ([5.0, 3.0], False, "more in 1, as many in 0 of 2 models"),
        ([5.0, 5.0, 3.0], True, "more in 2, as many in 0 of 3 models"),
        ([5.0, 5.0, None], True, "more in 2, as many in 0 of 2 models"),
    ],
)
def test_most_models_have_to_take_more(second: list[float | None], holds: bool, text: str) -> None:
    """Of those with both: the first takes 4 seconds and iterations; equal ones are not more."""
    lines = [
        {"table": table, "dataset": "d", "model": "rf", "spec": str(spec), "rho": rho}
        | {f"paper_algorithm_{name}": value for name in ("mean", "iterations")}
        | {"paper_algorithm_stopped": 0.0, "paper_algorithm_asked": 20}
        for spec, later in enumerate(second)
        for table, rho, value in ((1, 0.01, 4.0), (1, 0.05, later), (2, 0.01, later))
    ]
    frame = pd.DataFrame(lines)
    numbers = {f"robust_table{number}": frame[frame["table"] == number] for number in (1, 2)}
    for name in ("robust_larger", "robust_ball"):
        found = CLAIMS[name].decide(numbers)
        assert (found.holds, found.text, found.settings) == (holds, text, int(text.split()[-2]))
        few = {
            table: rows.assign(paper_algorithm_asked=[5, *[20] * (len(rows) - 1)]) for table, rows in numbers.items()
        }
        found = CLAIMS[name].decide(few)
        assert (found.holds, found.settings) == (holds, int(text.split()[-2]) - 1)
        assert found.text == f"{text}, of 5 people or more where the paper has 20"
    alone = CLAIMS["robust_ball"].decide({"robust_table1": numbers["robust_table1"]})
    assert (alone.holds, alone.settings) == (False, 0)
