"""Numbers of Navas-Palencia's tables (2021), from stored counterfactuals that are chosen, not searched."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from support.scorecards import SPACE, VALUES, toy, undesired

from harness.core.explanation import Answer, Reason, Status
from harness.core.target import Label
from harness.models.card import Bin
from harness.papers import scorecard as papers
from harness.store.rows import answer_row
from harness.store.run import StoredRun

PROBLEM = toy(0, Label("yes"))
CARD = PROBLEM.classifier.estimator.card_
FACTUAL = next(undesired(PROBLEM, 1))
ORIGIN = FACTUAL.iloc[0].to_dict()
KEYS = ("n_counterfactuals", "max_changes", "approach")
MEASURES = (
    "proximity", "closeness", "probability_of_default", "mean_proximity", "mean_closeness", "diversity_features",
    "diversity_values", "pd_min", "pd_max", "probability_min", "probability_max",
)  # fmt: skip


def moved(*names: str) -> dict[str, Any]:
    """The factual with some features in another bin, the first there is."""
    row = dict(ORIGIN)
    for name in names:
        variable = CARD.variables[CARD.names.index(name)]
        here = variable.bin_of(ORIGIN[name])
        row[name] = next(value for value in VALUES[name] if variable.bin_of(value) != here)
    return row


ROWS = [moved("age", "debt"), moved("debt"), moved("city", "grade", "debt")]


def sheet(folder: Path, rows: list[dict[str, Any] | None], **method: Any) -> StoredRun:
    """A run with these rows as counterfactuals of the factual."""
    run, index = StoredRun(folder / "run"), FACTUAL.index[0]
    settings = {"max_changes": 3, "priorities": None, "diversity": ["features"]} | method
    meta = {"n_counterfactuals": len(rows), "config": {"method": settings, "dataset": {}}}
    run.start(meta, SPACE, PROBLEM.classifier, {index: PROBLEM.target}, None, FACTUAL)
    answers = [Answer(Status.FOUND, row) if row else Answer(Status.GAVE_UP, None, Reason.FINISHED) for row in rows]
    timing = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}
    run.append([answer_row(index, place + 1, answer, **timing) for place, answer in enumerate(answers)])
    return run


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> papers.Numbers:
    """A published table of one row, 1, 2, 3 and so on; units of proximity are 1, data lie at 0 without correlation."""
    numbers = ",".join(map(str, range(1, len(MEASURES) + 1)))
    (tmp_path / "numbers.csv").write_text(f"{','.join((*KEYS, *MEASURES))}\n3,3,weighted,{numbers}\n")
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    width = len(CARD.variables)
    seen = np.ones(width), np.eye(width), np.zeros(width)
    monkeypatch.setattr(papers.Sheet, "_seen", property(lambda _: seen))
    return papers.Numbers(6, "numbers.csv", KEYS, ("A note.",), ("mean_proximity", "mean_closeness"))


def test_every_number_of_a_set_is_recomputed(table: papers.Numbers, tmp_path: Path) -> None:
    """The first counterfactual's, the means, the least and the greatest probability, and how many changes differ."""
    text, records = table.build([sheet(tmp_path, ROWS)])  # type: ignore[arg-type]
    after = CARD.values(CARD.bins(SPACE.frame(ROWS)))
    near = np.abs(after - CARD.values(CARD.bins(FACTUAL))).sum(axis=1)
    close, chance = np.abs(after).sum(axis=1), expit(CARD.score(CARD.bins(SPACE.frame(ROWS))))
    assert len({*near, *chance}) == 6
    changes = [{name for name in SPACE.names if row[name] != ORIGIN[name]} for row in ROWS]
    apart = sum(len(one ^ other) for one, other in combinations(changes, 2))
    assert apart == 1 + 3 + 2  # of {age, debt}, {debt}, {city, grade, debt}
    expected = (
        near[0],
        close[0],
        chance[0],
        near.mean(),
        close.mean(),
        apart,
        apart,
        *(chance.min(), chance.max()) * 2,
    )
    ours = records.set_index("measure")["ours"].astype(float)
    assert ours[list(MEASURES)].tolist() == pytest.approx(expected)
    assert records.set_index("measure")["published"].tolist() == list(range(1, len(MEASURES) + 1))
    published, own = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:4])
    assert published[:5] == ["3", "3", "weighted", "published", "1.000"]
    assert (published[-1], own[-1]) == (f"{4 + 5:.3f}", f"{near.mean() + close.mean():.3f}")
    assert own[:4] == ["", "", "", "ours"]
    assert (own[9], own[10]) == (str(apart), str(apart))
    assert text.endswith("- A note.\n")


def test_an_incomplete_set_has_no_numbers(table: papers.Numbers, tmp_path: Path) -> None:
    _, records = table.build([sheet(tmp_path, [*ROWS[:2], None])])
    assert records["ours"].isna().all()


def test_a_set_is_matched_by_what_it_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published counterfactuals stand beside those of ours that make the same changes; ours alone come last."""
    lines = ["counterfactual,feature,current,required"]
    for place, row in ((1, ROWS[2]), (2, ROWS[0])):
        for name in SPACE.names:
            variable = CARD.variables[CARD.names.index(name)]
            if row[name] != ORIGIN[name]:
                lines.append(f'{place},{name},,"{papers.required(variable.bins[variable.bin_of(row[name])])}"')
    (tmp_path / "changes.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    text, records = papers.Changes(5, "changes.csv", ("counterfactual",), ()).build([sheet(tmp_path, ROWS)])  # type: ignore[arg-type]
    assert "2 of 2 published counterfactuals are ours too" in text
    names = {place: set(part["feature"]) for place, part in records.groupby("counterfactual")}
    assert names == {1: {"city", "grade", "debt"}, 2: {"age", "debt"}, 3: {"debt"}}
    assert (records["published"].eq(records["ours"]) == records["counterfactual"].lt(3)).all()


@pytest.mark.parametrize(
    ("statuses", "word"),
    [
        (["OPTIMAL", "OPTIMAL"], "optimal"),
        (["OPTIMAL", "FOUND"], "found"),
        (["GAVE_UP", "FOUND"], "gave_up"),
        (["OPTIMAL", "INFEASIBLE"], "infeasible"),
    ],
)
def test_a_set_is_what_its_worst_answer_is(tmp_path: Path, statuses: list[str], word: str) -> None:
    run = sheet(tmp_path, ROWS[:2])  # type: ignore[arg-type]
    rows = [row | {"status": status} for row, status in zip(run.rows(), statuses, strict=True)]
    (run.path / "rows.jsonl").write_text(pd.Series(rows).to_json(orient="records", lines=True))
    assert papers.Sheet(run).status == word


@pytest.mark.parametrize(
    ("priorities", "name"),
    [
        (None, "weighted"),
        ({"proximity": 1, "closeness": 0}, "hierarchical(1,0)"),
        ({"proximity": 0, "closeness": 1}, "hierarchical(0,1)"),
    ],
)
def test_an_approach_is_named_by_what_goes_first(tmp_path: Path, priorities: Any, name: str) -> None:
    assert papers.Sheet(sheet(tmp_path, ROWS, priorities=priorities)).approach == name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("diversity", "immutable", "name"),
    [(["features"], None, "F"), (["features", "values"], None, "F+FV"), (["features", "values"], ["sex"], "F+FV+NA")],
)
def test_diversity_is_named_as_published(tmp_path: Path, diversity: list[str], immutable: Any, name: str) -> None:
    run = sheet(tmp_path, [None], diversity=diversity)
    run.update(config=run.meta["config"] | {"dataset": {"immutable": immutable}})
    assert papers._known(papers.Sheet(run))["diversity"] == name


def test_a_change_has_the_points_of_its_bins(tmp_path: Path) -> None:
    """Of each feature in another bin, and of no other: its value, the bin, the new value, and the points gained."""
    changes = papers.Sheet(sheet(tmp_path, ROWS)).changes(0)  # type: ignore[arg-type]
    assert list(changes) == ["age", "debt"]
    for name, (before, found, value, gained) in changes.items():
        variable = CARD.variables[CARD.names.index(name)]
        old, new = variable.bin_of(ORIGIN[name]), variable.bin_of(ROWS[0][name])
        assert (before, found, value) == (ORIGIN[name], variable.bins[new], ROWS[0][name])
        assert gained == pytest.approx(variable.points[new] - variable.points[old])


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Bin("interval", high=2.5), "(-inf, 2.50)"),
        (Bin("categories", members=("a", "b")), "a|b"),
        (Bin("missing"), "missing"),
    ],
)
def test_a_bin_is_written_as_published(found: Bin, text: str) -> None:
    assert papers.required(found) == text
