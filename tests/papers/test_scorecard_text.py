"""Tables of Navas-Palencia (2021) as printed, from made-up runs of a card whose numbers are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from support.tables import cells

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.space import Feature, Space
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier
from harness.papers import scorecard
from harness.papers.scorecard import CLAIMS, TABLES, Changes, Numbers, Sheet, _known, _matched
from harness.reports.markup import DASH

SPACE = Space((Feature("age", "integer", scale=(0, 9), bounds=(0, 9)), Feature("city", "categorical", ("a", "b", "c"))))
CARD = Card(
    (
        Variable("age", (Bin("interval", high=2.5), Bin("interval", 2.5, 5.0), Bin("interval", 5.0), Bin("missing")),
                 np.array([0.0, 1.0, 2.0, 0.0]), -2.0, np.array([10.0, 25.0, 40.0, 0.0])),
        Variable("city", (Bin("categories", members=("a",)), Bin("categories", members=("b", "c")), Bin("missing"),
                          Bin("unknown")),
                 np.array([0.0, 2.0, 1.0, 9.0]), 0.5, np.array([5.0, 7.5, 0.0, 0.0])),
    ), 1.0, True, 100.0,
)  # fmt: skip
FACTUAL = {"age": 1, "city": "a"}  # score 1, 115 points
OLDER, BOTH, HALF = ({"age": age, "city": city} for age, city in ((3, "a"), (7, "b"), (3, "c")))  # scores -1, -2, 0
ROOT = 0.75**0.5  # of 1 / (4 / 3), the variance of either column of the training rows


@pytest.fixture(autouse=True)
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training rows in all four corners of what the card sees, whose mean is 1 and 1; the last row is of the test."""
    frame = pd.DataFrame({"age": [1, 1, 7, 7, 7], "city": ["a", "b", "a", "b", "b"]})
    monkeypatch.setattr(scorecard, "data_of", lambda run: SimpleNamespace(frame=frame, train=np.arange(4)))


def run_of(*rows: dict[str, Any] | None, asked: int | None = None, **method: Any) -> Any:
    """A run whose later answers are stored first, and which has another factual besides."""
    estimator: Any = ScorecardClassifier()
    estimator.card_, estimator.classes_ = CARD, np.array([0, 1])
    answers = [
        {"ce": place + 1, "row": row, "status": "OPTIMAL" if row else "INFEASIBLE", "seconds": 0.25 + place}
        for place, row in enumerate(rows)
    ]
    settings = {"max_changes": 3, "priorities": None, "diversity": ["features"]} | method
    config = {"method": settings, "dataset": {}, "split": {}, "features": {}}
    factuals = SPACE.frame([FACTUAL, {"age": 9, "city": "c"}])
    return SimpleNamespace(
        meta={"n_counterfactuals": asked or len(rows), "config": config}, space=SPACE, rows=lambda: answers[::-1],
        factuals=lambda: (factuals, {}), classifier=Classifier(estimator, CARD.inputs(SPACE), ("no", "yes")),
        label="a run",
    )  # fmt: skip


def test_every_number_of_a_set() -> None:
    """Proximity in units of 4 and 1, closeness from the mean, pairs of changes and bins that differ."""
    found = _known(Sheet(run_of(OLDER, BOTH, HALF)))
    assert {name: value for name, value in found.items() if not isinstance(value, float)} == {
        "max_changes": 3, "n_counterfactuals": 3, "approach": "weighted", "diversity": "F", "status": "optimal",
        "diversity_features": 1 + 1 + 0, "diversity_values": 3 + 1 + 2,
    }  # fmt: skip
    least, most = expit([-2.0, 0.0])
    assert {name: value for name, value in found.items() if isinstance(value, float)} == pytest.approx({
        "seconds": 0.25, "proximity": 0.25, "mean_proximity": (0.25 + 2.5 + 2.25) / 3, "closeness": ROOT,
        "mean_closeness": (ROOT + 2 * ROOT + ROOT) / 3, "probability_of_default": expit(-1.0), "pd_min": least,
        "pd_max": most, "probability_min": least, "probability_max": most,
    })  # fmt: skip
    short = _known(Sheet(run_of(OLDER, None)))
    assert (short["n_counterfactuals"], short["status"], short["proximity"], short["pd_max"]) == (
        2,
        "infeasible",
        None,
        None,
    )
    alone = run_of(OLDER)
    alone.classifier = SimpleNamespace(estimator=None)
    with pytest.raises(HarnessError, match="a run is of no scorecard"):
        _ = Sheet(alone).card


def test_that_there_are_no_more_is_told_whatever_else_was_given_up() -> None:
    """One of three asked for is proven, one was given up, and a proof says that there are no three."""
    run = run_of(OLDER, None, None)
    last, second, _ = run.rows()
    second["status"] = "GAVE_UP"
    assert Sheet(run).status == "infeasible"
    last["status"] = "FOUND"
    assert Sheet(run).status == "gave_up"


def test_changes_are_printed_beside_published_ones(published: Callable[[str], None]) -> None:
    """A change that only one side makes has a dash on the other; a run without a counterfactual says so."""
    published(
        "table,approach,max_changes,feature,current,required\n"
        '2,weighted,3,age,,"[2.50, 5.00)"\n2,weighted,3,city,,b|c\n2,weighted,4,age,,"[2.50, 5.00)"\n'
        '2,weighted,5,age,,old\n2,"hierarchical(1,0)",3,age,,"[5.00, inf)"\n3,weighted,1,age,,other\n'
    )
    found = [
        run_of(OLDER),
        run_of(OLDER, max_changes=4),
        run_of(None, priorities={"proximity": 1, "closeness": 0}),
        run_of(BOTH, priorities={"proximity": 0, "closeness": 1}),
    ]
    text, records = Changes(2, "file.csv", ("approach", "max_changes"), ("A note.",)).build(found)
    assert cells(text) == [
        ["approach", "max changes", "feature", "current", "required, published", "required, ours", "value in it",
         "points"],
        ["weighted", "3", "age", "1", "[2.50, 5.00)", "[2.50, 5.00)", "3", "+15.0"],
        ["", "", "city", "", "b or c", DASH, "", ""],
        ["", "", "*score*", "", "", "points 115.0 → 130.0", "P(yes) 0.731 → 0.269", "+15.0"],
        ["weighted", "4", "age", "1", "[2.50, 5.00)", "[2.50, 5.00)", "3", "+15.0"],
        ["", "", "*score*", "", "", "points 115.0 → 130.0", "P(yes) 0.731 → 0.269", "+15.0"],
        ["hierarchical(1,0)", "3", "age", "", "[5.00, inf)", DASH, "", ""],
        ["", "", "*none found*", "", "", "", "", ""],
        ["hierarchical(0,1)", "3", "age", "1", DASH, "[5.00, inf)", "7", "+30.0"],
        ["", "", "city", "a", DASH, "b or c", "b", "+2.5"],
        ["", "", "*score*", "", "", "points 115.0 → 147.5", "P(yes) 0.731 → 0.119", "+32.5"],
    ]  # fmt: skip
    assert text.splitlines()[1] == "| :--- | :--- | :--- | --- | --- | --- | --- | --- |"
    assert text.endswith(
        "\n\n- 1 of 3 published counterfactuals are ours too, bin for bin.\n"
        "- 1 published row is not shown: nothing of it was run here.\n- A note.\n"
    )
    assert records.drop(columns="max_changes").to_numpy().tolist() == [
        ["weighted", "age", "required", "[2.50, 5.00)", "[2.50, 5.00)"],
        ["weighted", "city", "required", "b|c", DASH],
        ["weighted", "age", "required", "[2.50, 5.00)", "[2.50, 5.00)"],
        ["weighted", "age", "required", "old", ""],
        ["hierarchical(1,0)", "age", "required", "[5.00, inf)", ""],
        ["hierarchical(0,1)", "age", "required", "", "[5.00, inf)"],
        ["hierarchical(0,1)", "city", "required", "", "b|c"],
    ]


def test_a_set_stands_in_the_published_order(published: Callable[[str], None]) -> None:
    """Ours under the published one that they share most with; where fewer were found, those left are shown too."""
    published('counterfactual,feature,current,required\n1,age,,"[2.50, 5.00)"\n2,age,,"[2.50, 5.00)"\n2,city,,b|c\n')
    table = Changes(5, "file.csv", ("counterfactual",), ())
    text, _ = table.build([run_of(HALF, BOTH, OLDER)])
    values = [(row[0], row[1], row[5]) for row in cells(text)[1:] if row[1] != "*score*"]
    assert values == [("1", "age", "3"), ("2", "age", "3"), ("", "city", "c"), ("3", "age", "7"), ("", "city", "b")]
    assert text.endswith("\n\n- 2 of 2 published counterfactuals are ours too, bin for bin.\n")
    text, _ = table.build([run_of(HALF, None)])
    assert [row[0] + row[1] for row in cells(text)[1:]] == ["1age", "*none found*", "2age", "city", "*score*"]
    assert text.endswith("- 1 of 2 published counterfactuals are ours too, bin for bin.\n")
    text, _ = table.build([])
    assert [row[:3] for row in cells(text)[1:]] == [
        ["1", "age", ""],
        ["", "*none found*", ""],
        ["2", "age", ""],
        ["", "city", ""],
        ["", "*none found*", ""],
    ]
    sheet = Sheet(run_of(OLDER, BOTH, HALF))
    left = _matched({("x", 1): {"age": "[2.50, 5.00)"}}, {("x", place): (sheet, place) for place in range(3)})
    assert {key: place for key, (_, place) in left.items()} == {("x", 1): 0, ("x", 2): 1, ("x", 3): 2}


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write a file of published numbers, ``file.csv``, in place of all others."""
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)

    def write(text: str) -> None:
        (tmp_path / "file.csv").write_text(text)

    return write


def test_numbers_are_printed_above_ours(published: Callable[[str], None]) -> None:
    """The objective of weighted rows alone; three decimals, four of seconds, none of differences; words as they are."""
    measures = "proximity,closeness,diversity_features,seconds,status"
    published(
        f"max_changes,approach,{measures}\n3,weighted,1.5,2.25,4,0.3,optimal\n4,weighted,1,2,3,4,optimal\n"
        '3,"hierarchical(1,0)",1.25,2.5,4,0.1,found\n5,weighted,1.5,2.25,4,0.3,optimal\n'
    )
    table = Numbers(4, "file.csv", ("max_changes", "approach"), ("A note.",), ("proximity", "closeness"))
    found = [
        run_of(OLDER, HALF), run_of(OLDER, HALF, priorities={"proximity": 1, "closeness": 0}),
        run_of(OLDER, None, max_changes=4),
    ]  # fmt: skip
    text, records = table.build(found)
    head = ["max changes", "approach", "", "proximity", "closeness", "diversity features", "seconds", "status"]
    first = ["3", "weighted", "published", "1.500", "2.250", "4", "0.3000", "optimal", "3.750"]
    assert cells(text) == [
        [*head, "objective"],
        first,
        ["", "", "ours", "0.250", "0.866", "1", "0.2500", "optimal", "1.116"],
        ["4", "weighted", "published", "1.000", "2.000", "3", "4.0000", "optimal", "3.000"],
        ["", "", "ours", DASH, DASH, DASH, "0.2500", "infeasible", DASH],
        ["3", "hierarchical(1,0)", "published", "1.250", "2.500", "4", "0.1000", "found", DASH],
        ["", "", "ours", "0.250", "0.866", "1", "0.2500", "optimal", DASH],
    ]
    assert text.splitlines()[1] == "| " + " | ".join([":---"] * 3 + ["---"] * 6) + " |"
    assert text.endswith("\n\n- 1 published row is not shown: nothing of it was run here.\n- A note.\n")
    assert len(records) == 4 * 5
    assert records["ours"].iloc[-5:].isna().all()
    text, _ = table.build([])
    assert cells(text)[1:3] == [first, ["", "", "ours", "not run", "", "", "", "", ""]]
    text, _ = Numbers(9, "file.csv", ("max_changes", "approach"), ()).build(found[:1])
    assert cells(text)[:2] == [head, first[:-1]]
    assert cells(Numbers(9, "file.csv", ("max_changes", "approach"), ()).build([])[0])[2] == [
        *["", "", "ours", "not run", "", "", "", ""]
    ]


def test_tables_have_the_numbers_of_the_paper() -> None:
    for number in range(2, 10):
        assert TABLES[f"scorecard_table{number}"].title.startswith(f"Table {number} of Navas-Palencia (2021)")


@pytest.mark.parametrize(
    ("first", "second", "holds"), [(1.5, 3.0, True), (1.4, 2.0, False), (2.0, 3.1, False), (2.0, math.nan, None)]
)
def test_two_objectives_take_about_twice_the_seconds(first: float, second: float, holds: bool | None) -> None:
    """Between 1.5 and 3 times those of the sum, ends included, of two changes alone; open where one was not run."""
    approaches = ("weighted", "hierarchical(1,0)", "hierarchical(0,1)")
    lines = [
        {"max_changes": changes, "approach": approach, "measure": measure, "ours": value}
        for changes, measure, values in (
            (2, "seconds", (2.0, 2 * first, 2 * second)),
            (1, "seconds", (1.0, 9.0, 9.0)),
            (3, "seconds", (1.0, 9.0, 9.0)),
            (2, "closeness", (1.0, 9.0, 9.0)),
        )
        for approach, value in zip(approaches, values, strict=True)
    ]
    frame = pd.DataFrame(lines)
    found = CLAIMS["scorecard_doubles"].decide({"scorecard_table4": frame})
    if holds is None:
        assert (found.holds, found.settings, found.text) == (False, 0, "")
    else:
        assert (found.holds, found.settings) == (holds, 2)
        assert found.text == f"{first:.2g}, {second:.2g} times"
    without = frame[frame["approach"] != "weighted"]
    assert CLAIMS["scorecard_doubles"].decide({"scorecard_table4": without}).settings == 0
