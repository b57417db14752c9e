"""Stored groups beside the tables and figures of the column generation paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from matplotlib.colors import to_rgb
from omegaconf import OmegaConf
from sklearn.linear_model import LogisticRegression
from support.figures import covered
from support.groups import CONF, LIMITS, SPACE, Recorder, at_one, question, started
from support.tables import cells

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.core.objective import Limit, Objective, Term
from harness.data import load_dataset
from harness.execution.experiment import Workers, run_groups
from harness.execution.pool import GroupOutcome
from harness.execution.task import make_task
from harness.models.train import train
from harness.papers.column_generation.figures import heat_map, perturbed
from harness.papers.column_generation.tables import Fewest, Models, spread
from harness.reports import figures, groups, registry, stored
from harness.reports.canvas import GREEN
from harness.reports.latex import of_markdown, tex
from harness.store.run import StoredRun
from methods.group_greedy import GroupGreedy


@dataclass(frozen=True)
class Made:
    """What a stored cell of one group says of itself."""

    size: int
    t_max: int
    picked: int
    solver: str | None = "cells"
    proven: bool = True
    threshold: float | None = None


def cell_of(folder: Path, made: Made) -> StoredRun:
    """A finished cell: one point for everybody, whom the checker has passed."""
    method: dict[str, Any] = {"t_max": made.t_max} | ({} if made.solver is None else {"solver": made.solver})
    settings = {"method": method, "n_factuals": made.size, "factuals_seed": made.picked, "group_time_limit": 120}
    settings |= {"model": {"threshold": made.threshold}}
    name = f"{made.solver}-{made.size}-{made.t_max}-{made.picked}-{made.threshold}"
    cell = started(folder / name, question(), GroupGreedy(), **settings)
    status = Status.OPTIMAL if made.proven else Status.FOUND
    found = Recorder(lambda factuals: at_one(factuals, status=status))
    run_groups(cell, question(), GroupGreedy(), True, 0, Workers(found, LIMITS))  # type: ignore[arg-type]
    cell.put_verdicts({"factual": row["factual"], "ce": 1, "verdict": "accepted"} for row in cell.rows())
    return cell


@pytest.fixture
def found(tmp_path: Path) -> list[StoredRun]:
    """Three groups of ours, one of which is not proven; one of the paper's, one of the baseline's."""
    return [
        cell_of(tmp_path, made)
        for made in (
            Made(10, 2, 0), Made(10, 2, 1, proven=False), Made(20, 3, 0), Made(10, 2, 0, "column_generation"),
            Made(10, 2, 0, None),
        )
    ]  # fmt: skip


def shown(text: str) -> list[dict[str, str]]:
    """The rows of the first table of a text in Markdown."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [dict(zip(lines[0], (cell.strip() for cell in line), strict=False)) for line in lines[2:]]


@pytest.mark.parametrize("number", range(4, 10))
def test_every_published_row_is_there(number: int, found: list[StoredRun]) -> None:
    """In the published order, with its y* and seconds, where nothing was run; else those of which something was."""
    published = pd.read_csv(stored.PUBLISHED / "column_generation_tables4_9.csv")
    published = published[published["table"] == number]
    rows = shown(Fewest(number).build(())[0])
    assert "y* ours" not in rows[0]
    for row, known in zip(rows, published.to_dict("records"), strict=True):
        assert (row["\\|S\\|"], row["T_max"]) == (str(known["n_instances"]), str(known["t_max"]))
        assert row["y* published"] == str(known["n_explanations"])
        late = known["cg_seconds"] >= 3600
        assert row["CG s published"] == ("≥ 3600" if late else f"{known['cg_seconds']:,.2f}")
        assert row["CG − MIP published"] == str(known["gap_cg_minus_mip"])
    text, _ = Fewest(number).build(found[2:3])
    (row,) = shown(text)
    assert (row["\\|S\\|"], row["T_max"], row["y* ours"]) == ("20", "3", "1")
    others = len(published) - (published["n_instances"].eq(20) & published["t_max"].eq(3)).sum()
    assert f"- {others} published rows are not shown" in text


@pytest.mark.parametrize("points", [2, 12, 13])
def test_a_group_is_divided_by_a_features_values(points: int) -> None:
    """By hand: of three women two are served by two points, which change two features and one; the man by none.

    How many each point serves is listed of up to twelve points.
    """
    people = pd.DataFrame(
        {"sex": ["f", "f", "f", "m"], "job": ["none", "part", "none", "full"], "owner": ["no", "no", "yes", "no"]},
        index=[5, 6, 7, 8],
    )
    rows = [{"sex": "f", "job": "full", "owner": "yes"}, {"sex": "f", "job": "part", "owner": "yes"}]
    text = groups._division("sex", people, {5: 0, 6: 1}, rows + rows[:1] * (points - 2))
    each = [str(point + 1) for point in range(points)] if points <= 12 else []
    assert cells(text) == [
        ["sex", "factuals", "without", "explanations", "explanations a factual", "changes (mean)", *each],
        ["f", "3", "1", "2", "1.00", "1.50", *(["1", "1"] + [""] * (points - 2) if each else [])],
        ["m", "1", "1", "0", "–", "–", *[""] * len(each)],
    ]


def test_who_shares_an_explanation_is_not_without_one() -> None:
    """By hand: of three women two are served by one point, of which each changes the job and the owner."""
    people = pd.DataFrame(
        {"sex": ["f", "f", "f", "m"], "job": ["none", "part", "none", "full"], "owner": ["no"] * 4}, index=[5, 6, 7, 8]
    )
    text = groups._division("sex", people, {5: 0, 6: 0}, [{"sex": "f", "job": "full", "owner": "yes"}])
    women, men = cells(text)[1:]
    assert women == ["f", "3", "1", "1", "0.50", "2.00", "2"]
    assert men[:4] == ["m", "1", "1", "0"]


def test_who_could_be_served_is_not_proven_uncoverable() -> None:
    """5 is served; 6 is uncoverable; of 7 the checker found otherwise; 8 was left."""
    line = {"factuals": [5, 6, 7, 8], "uncoverable": [6, 7], "points": [{}]}
    verdicts = {5: "accepted", 6: "none", 7: "worse than claimed", 8: "none"}
    assert groups._without(line, {5: 0}, verdicts) == [
        "Uncoverable, proven: 1 factual (6).",
        "Without an explanation: 2 factuals (7, 8).",
    ]


def test_a_group_is_divided_by_what_is_missing_too() -> None:
    people = pd.DataFrame({"age": [1.0, math.nan, math.nan], "job": ["a", "b", "c"]}, index=[5, 6, 7])
    text = groups._division("age", people, {6: 0}, [{"age": math.nan, "job": "a"}])
    assert [line[:4] for line in cells(text)[1:]] == [["1", "1", "1", "0"], ["missing", "2", "1", "1"]]


def test_a_heading_says_how_many_are_needed() -> None:
    """Of three points where 1.2 are proven two, as there is no part of a point."""
    line = {"factuals": range(4), "points": [{}] * 3, "status": "FOUND", "bound": 1.2, "seconds": 0.5}
    told = groups._heading(pd.Series({"points": 3, "gap": 1, "total_change": math.nan}), line, "good")
    assert told == "4 factuals, wanted good: 3 explanations, at least 2 are needed; 0.50 s"
    for optimal, word in ((1.0, "proven"), (0.0, "called")):  # of the latter the checker found something wrong
        numbers = pd.Series({"points": 3, "gap": 0, "optimal": optimal, "total_change": math.nan})
        assert f"3 explanations, {word} the fewest;" in groups._heading(numbers, line | {"status": "OPTIMAL"}, "good")


def test_who_is_already_there_is_told() -> None:
    """Of three people one has the job to which the others change."""
    people = pd.DataFrame({"sex": ["f"] * 3, "job": ["none", "full", "none"]}, index=[5, 6, 7])
    told = groups.explanation_text(0, people, {"sex": "f", "job": "full"}, ["job"], SPACE.features[:2])
    says = "1. 3 factuals (5, 6, 7): change job to full (from none: 2; 1 already there)."
    assert told == f"{says}\n   Alike in sex f."


def test_of_a_groups_claim_the_limits_are_stored(tmp_path: Path) -> None:
    """What it minimises is the number of its points; the limits are each answer's."""
    hull = Term("slack", 1.0, {"points": np.zeros((1, 1)), "norm": 1})
    claim = Objective((Term("l1"),), limits=(Limit(Term("l0"), 2), Limit(hull, 0.5)))

    class Claiming(Recorder):
        def explain_groups(self, *given: Any, **more: Any) -> Iterator[GroupOutcome]:
            for outcome in super().explain_groups(*given, **more):
                yield replace(outcome, claim=claim)

    cell = started(tmp_path, question(), GroupGreedy())
    run_groups(cell, question(), GroupGreedy(), True, 0, Workers(Claiming(at_one), LIMITS))  # type: ignore[arg-type]
    assert StoredRun(cell.path).objective == claim.limiting()
    assert claim.limiting().terms == ()


def test_ours_are_counted_over_groups(found: list[StoredRun]) -> None:
    """How many are proven; a smaller number than published says why that may be; the paper's own runs beside."""
    text, numbers = Fewest(4).build(found)
    first, second = shown(text)
    assert (first["y* ours"], first["proven"], first["gap"]) == ("1", "1 of 2", "0")
    assert first["y CG"] == first["y greedy"] == "1"
    assert second["y* ours"] == "1"
    assert second["y greedy"] == "not run"
    assert "smaller: other bins, model and S" in text
    (table,), _ = of_markdown("t", text)
    assert [tex(cell) for cell in table.head[:3]] == ["$|S|$", r"$T_{\max}$", "$y^*$ published"]
    assert "Of 1 runs of the paper's CG that the clock did not end, 100.0% are certified" in text
    ours = numbers[(numbers["n_factuals"] == 10) & (numbers["t_max"] == 2)].set_index("measure")
    for name in ("n_explanations, ours", "n_explanations, CG"):
        assert (ours.loc[name, "ours"], ours.loc[name, "published"]) == (1.0, 4)
    assert (ours.loc["ours runs", "ours"], ours.loc["ours proven", "ours"]) == (2, 1)


def test_every_published_number_is_accounted_for(found: list[StoredRun]) -> None:
    """On the page about all papers: y*, the gap and both seconds of every row; what was not run is missing there."""
    published = pd.read_csv(stored.PUBLISHED / Fewest(4).file)
    published = published[published["table"] == 4]
    _, numbers = Fewest(4).build(found)
    cells = numbers[numbers["published"].notna()]
    measures = ["n_explanations, ours", "n_explanations, CG", "gap_cg_minus_mip", "cg_seconds", "mip_seconds"]
    for name in measures:
        assert cells.loc[cells["measure"] == name, "published"].tolist() == published[name.partition(",")[0]].tolist()
    assert len(cells) == len(measures) * len(published)
    there = cells.loc[cells["ours"].notna(), ["n_factuals", "t_max", "measure"]]
    assert set(there.itertuples(index=False, name=None)) == {
        (10, 2, "n_explanations, ours"), (10, 2, "n_explanations, CG"), (10, 2, "cg_seconds"),
        (20, 3, "n_explanations, ours"),
    }  # fmt: skip


def test_a_published_gap_is_compared_where_both_were_run(tmp_path: Path) -> None:
    """The published +1 as any other: the paper says that it is y* of column generation less that of the program."""
    run = [cell_of(tmp_path, Made(100, t, 0, solver)) for t in (2, 3) for solver in ("column_generation", "milp_paper")]
    text, numbers = Fewest(4).build(run)
    gaps = numbers[(numbers["measure"] == "gap_cg_minus_mip") & (numbers["n_factuals"] == 100)].set_index("t_max")
    assert gaps["published"].to_dict() == {2: -7, 3: 1}
    assert gaps["ours"].to_dict() == {2: 0, 3: 0}
    assert [row["CG − MIP published"] for row in shown(text) if row["\\|S\\|"] == "100"] == ["-7", "1"]


def test_groups_that_are_none_of_their_own_are_told(found: list[StoredRun]) -> None:
    """The same people twice, and fewer people than asked for."""
    text, _ = Fewest(4).build(found)
    assert "|S| = 10: 2 draws gave 1 different group." in text
    assert "|S| = 20: only 12 people are predicted undesired." in text


def test_tables_2_and_3_count_what_was_loaded(tmp_path: Path) -> None:
    """Rows, features, columns and the accuracy on the test half of a model trained as the experiment has it."""
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        chosen = compose("config", overrides=["+experiment=cg_table2_3"])
    config: Any = {name: OmegaConf.to_container(chosen[name]) for name in ("dataset", "split", "features")}
    config["model"] = {"estimator": OmegaConf.to_container(chosen.model.estimator)}
    data = load_dataset(**config["dataset"], split=config["split"], overrides=config["features"])
    estimator = LogisticRegression(C=10.0, solver="newton-cholesky")
    classifier = train(estimator, data.space, data.frame.iloc[data.train], data.labels[data.train], data.classes)
    asked, cell = make_task(data, classifier, n_factuals=1), StoredRun(tmp_path / "cell")
    meta = {"dataset": "compas_binned", "model": "lr_c10", "method": "m", "n_counterfactuals": 1, "config": config}
    cell.start(meta, data.space, classifier, asked.targets, None, asked.factuals)
    text, numbers = Models().build([cell])
    ours = numbers[numbers["dataset"] == "compas"].set_index("measure")["ours"]
    assert (ours["n_instances"], ours["n_features"], ours["n_binary_columns"]) == (6172, 5, 15)
    rows, labels = data.frame.iloc[data.test], data.labels[data.test]
    right = (estimator.predict(classifier.matrix(rows)) == (labels == classifier.classes[1])).mean()
    assert ours["lr_test_accuracy"] == pytest.approx(right)
    assert right == pytest.approx(0.671, abs=0.02)
    assert len(data.test) == 3086
    assert numbers["published"].notna().all()
    assert numbers.loc[numbers["dataset"] != "compas", "ours"].isna().all()
    assert "| compas | published | 6,172 | 5 | 15 |" in text


def test_what_the_checker_refuses_is_no_proof(found: list[StoredRun]) -> None:
    """And it lists whom it leaves without a counterfactual."""
    found[0].put_verdicts({"factual": row["factual"], "ce": 1, "verdict": "invalid"} for row in found[0].rows())
    row = shown(Fewest(4).build(found[:1])[0])[0]
    assert (row["y* ours"], row["proven"]) == ("1, 12.0 left", "0 of 1")


def test_a_spread_has_a_range_where_there_is_one() -> None:
    assert spread({"mean": math.nan, "least": math.nan, "most": math.nan}) == "–"
    assert spread({"mean": 2.2, "least": 2, "most": 3}) == "2.2 (2–3)"


def test_the_heat_map_is_the_points(found: list[StoredRun]) -> None:
    """A cell is green where its column is 1; no two texts lie on each other."""
    figure = heat_map(found, "a title")
    (axis,) = figure.axes
    (line,) = found[0].groups()
    values = SPACE.encode(SPACE.frame(line["points"]))
    mesh = axis.collections[0]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(values.shape), values)
    assert covered(figure) == []
    colours = mesh.get_facecolor().reshape(*values.shape, 4)
    np.testing.assert_allclose(colours[values == 1.0][:, :3], np.broadcast_to(to_rgb(GREEN), (int(values.sum()), 3)))
    dots = sum(len(collection.get_offsets()) for collection in axis.collections[1:])
    assert dots == len(SPACE.columns)
    assert "serves 12" in axis.get_yticklabels()[0].get_text()


def test_the_bars_count_changes(found: list[StoredRun]) -> None:
    """Of our explanations alone, one bar a feature and T_max."""
    figure = perturbed(found, "a title")
    (axis,) = figure.axes
    widths = {container.get_label(): [bar.get_width() for bar in container] for container in axis.containers}
    assert widths == {"$T_{max}$ = 2": [2.0] * 6, "$T_{max}$ = 3": [1.0] * 6}
    assert {label.get_text() for label in axis.get_yticklabels()} == set(SPACE.names)
    assert covered(figure) == []
    with pytest.raises(HarnessError, match="no cell of method=column_generation"):
        perturbed(found[3:], "")


EXPERIMENTS = {f"cg_table{number}": number for number in range(4, 10)}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_has_the_published_grid(experiment: str) -> None:
    """|S| and T_max of every published row, of the table's dataset and model; five groups of each."""
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"+experiment={experiment}"], return_hydra_config=True)
    published = pd.read_csv(stored.PUBLISHED / "column_generation_tables4_9.csv")
    published = published[published["table"] == EXPERIMENTS[experiment]]
    grid = {key: [part.strip() for part in str(value).split(",")] for key, value in config.hydra.sweeper.params.items()}
    assert {int(text) for text in grid["n_factuals"]} == set(published["n_instances"])
    assert {int(text) for text in grid["method.t_max"]} == set(published["t_max"])
    assert len(grid["factuals_seed"]) == 5
    dataset = {
        "compas": "compas_binned",
        "german_credit": "german_credit_binned",
        "student_performance": "students_binned",
    }
    chosen = config.hydra.runtime.choices
    assert chosen["dataset"] == dataset[published["dataset"].iloc[0]]
    assert chosen["model"].startswith({"lr": "lr", "nn": "mlp"}[published["model"].iloc[0]])
    assert config.table in registry.known()
    assert config.figure is None or config.figure in figures.known()
    free = {feature: entry.get("actionability") for feature, entry in config.features.items()}
    assert config.dataset.immutable == []
    changing = {f for f, entry in config.dataset.features.items() if "actionability" in (entry or {})}
    assert free == dict.fromkeys(changing, "free")
