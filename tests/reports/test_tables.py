"""Tables from stored answers: known numbers from hand-made cells, published ones beside them, and what was not run."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_object
from omegaconf import OmegaConf
from support.tables import GRANTED, MEMBER, YOUNGER, started

from harness import check
from harness import tables as command
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.evaluation.checker import judge
from harness.evaluation.lookup import packaged
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study, read_scores
from harness.papers import robust
from harness.papers.ce_ocl import ASSIGNED
from harness.reports import registry, stored, summary, tables
from harness.reports.comparison import Comparison
from harness.reports.listing import Listing
from harness.reports.markup import DASH
from harness.reports.overview import for_paper
from harness.store.run import StoredRun
from metrics import _example as loans

CONF = Path(__file__).parents[2] / "conf"
NAMES = ("validity", "categorical_proximity", "continuous_proximity", "sparsity")
MEASURES = {name: f"mothilal/{name}" for name in NAMES}
Made = Callable[..., StoredRun]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A cell of the loan problem: by default a valid answer, two invalid ones and one that is missing."""

    def cell(*answers: Any, **settings: Any) -> StoredRun:
        return started(
            tmp_path, loans.problem, loans.factual, list(answers) or [GRANTED, YOUNGER, MEMBER, None], **settings
        )

    return cell


@pytest.fixture
def comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """A published table of three methods, of which ours has two."""
    text = "dataset,method,validity,validity_se,continuous_proximity,continuous_proximity_se\n"
    text += "Loans,Exact,1.00,0.00,-20.00,5.00\nLoans,Guess,0.80,0.10,,\nLoans,Other,0.20,0.01,-90.00,1.00\n"
    (tmp_path / "small.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    return Comparison(
        title="A table",
        file="small.csv",
        keys={"dataset": "dataset", "method": "method"},
        ours={"dataset": {"Loans": "loans"}, "method": {"Exact": "exact", "Guess": "guess"}},
        measures=MEASURES,
    )


def line(lines: pd.DataFrame, method: str, measure: str) -> pd.Series:
    (found,) = (row for _, row in lines.iterrows() if (row["method"], row["measure"]) == (method, measure))
    return found


def test_means_are_those_of_the_answers(made: Made, comparison: Comparison) -> None:
    """As the paper: over what was returned, each score rounded first; beside it, over accepted answers."""
    lines = comparison.compare([made(method="exact")])
    near = line(lines, "Exact", "continuous_proximity")
    moved = np.array([-60.0, -10.0, 0.0])
    assert near["ours"] == pytest.approx(moved.mean())
    assert near["ours_se"] == pytest.approx(moved.std(ddof=1) / math.sqrt(3))
    assert (near["n"], near["accepted"], near["accepted_n"], near["factuals"]) == (3, -60.0, 1, 4)
    assert math.isnan(near["accepted_se"])
    assert near["filled"] == 0.25
    assert line(lines, "Exact", "validity")["ours"] == pytest.approx(1 / 3)
    assert line(lines, "Exact", "sparsity")["ours"] == pytest.approx((0.6 + 0.2 + 0.8) / 3)
    assert line(lines, "Exact", "categorical_proximity")["ours"] == pytest.approx((1.0 + 0.0 + 0.67) / 3, abs=1e-12)


def test_each_algorithm_of_robust_regions_has_its_own_place(made: Made) -> None:
    """The default, the paper's own and the heuristic one stand beside one published cell, each in its place."""
    names = {"dataset": "banknote", "model": "robust_rf_5"}
    asked = {"auto": [GRANTED], "adversarial": [GRANTED, None], "leaf": [GRANTED, None, None]}
    cells = [
        made(*answers, **names, method=kind, options={"algorithm": kind, "norm": "linf", "rho": 0.01})
        for kind, answers in asked.items()
    ]
    text, lines = robust.TABLES["robust_table1"].build(cells)
    place = lines["rho"].eq(0.01) & lines["dataset"].eq("banknote") & lines["spec"].eq("# est.: 5")
    (row,) = lines.loc[place & lines["model"].eq("rf")].to_dict("records")
    assert [row[f"{prefix}_asked"] for prefix in ("ours", "paper_algorithm", "leaf")] == [1, 2, 3]
    assert [row[f"{prefix}_stopped"] for prefix in ("ours", "paper_algorithm", "leaf")] == [0, 1, 2]
    assert lines["ours_asked"].notna().sum() == 1
    assert "| 0.50 |" in next(line for line in text.splitlines() if "| banknote | rf # est.: 5 |" in line)


def test_a_difference_is_in_standard_errors_of_both(made: Made, comparison: Comparison) -> None:
    """Of -70 / 3 to -20, where our error is 18.6, theirs 5, and both 19.2 together."""
    text, lines = comparison.build([made(method="exact")])
    near = line(lines, "Exact", "continuous_proximity")
    error = math.hypot(5.0, np.std([-60.0, -10.0, 0.0], ddof=1) / math.sqrt(3))
    assert near["difference"] == pytest.approx(-70 / 3 + 20)
    assert near["difference_se"] == pytest.approx((-70 / 3 + 20) / error)
    (row,) = [row for row in text.splitlines() if "| difference |" in row]
    assert "| -3.33 (-0.2) |" in row


def test_what_was_not_run_is_counted_and_not_shown(made: Made, comparison: Comparison) -> None:
    """But kept among the numbers; and a method of ours that the paper lacks has a place of its own."""
    text, lines = comparison.build([made(method="exact"), made(GRANTED, method="extra")])
    rows = [[part.strip() for part in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("|")]
    assert [row[:3] for row in rows[2:] if row[0]] == [["Loans", "Exact", "published"], ["loans", "extra", "published"]]
    assert "not run" not in text.split("\n\n")[0]
    assert "\n- 2 published rows are not shown: nothing of them was run here.\n" in text
    assert line(lines, "Other", "validity")["published"] == 0.2
    assert line(lines, "extra", "validity")["ours"] == 1.0
    assert math.isnan(line(lines, "extra", "validity")["published"])
    assert math.isnan(line(lines, "Guess", "continuous_proximity")["published"])


def test_a_row_says_how_many_people_are_behind_it(made: Made, comparison: Comparison) -> None:
    """Of four asked three have an answer, and one of these is accepted."""
    nearness = dataclasses.replace(comparison, measures={"continuous_proximity": MEASURES["continuous_proximity"]})
    text, _ = nearness.build([made(method="exact")])
    (ours,) = [line for line in text.splitlines() if "| ours |" in line]
    assert ours.endswith("| 0.25 | 3 of 4 |")


def test_the_best_of_a_column_is_bold(made: Made, comparison: Comparison) -> None:
    """By the metric's direction, among methods, published and ours each; ties are all best."""
    cells = [made(GRANTED, method="exact"), made(GRANTED, MEMBER, method="guess"), made(None, method="Other")]
    text, _ = comparison.build(cells)
    rows = {}
    for row in text.splitlines():
        cells = [part.strip() for part in row.split("|")[1:-1]]
        if row.startswith("|") and len(cells) > 3:
            rows.setdefault(cells[2], []).append(cells[3:])
    assert [cells[0] for cells in rows["published"]] == ["**1.00 (0.00)**", "0.80 (0.10)", "0.20 (0.01)"]
    assert [cells[0] for cells in rows["ours"]][:2] == ["**1.00**", "0.50 (0.50)"]
    assert [cells[2] for cells in rows["ours"]][:2] == ["-60.00", "**-30.00 (30.00)**"]
    assert [cells[1] for cells in rows["ours, accepted"]] == ["**1.00**", "**1.00**", DASH]


def test_columns_that_were_not_scored_are_not_shown(made: Made, comparison: Comparison) -> None:
    """And where nothing was run, everything that is published is there."""
    cell = made(method="exact")
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    scores.drop(columns="mothilal/sparsity").to_csv(cell.path / "scores.csv")
    text, _ = Comparison(**{**vars(comparison), "as_published": _stored}).build([cell])
    shown = ["validity ↑", "categorical proximity ↑", "continuous proximity ↑"]
    assert text.splitlines()[0].split(" | ")[3:-2] == shown
    text, _ = comparison.build([])
    rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| Loans")]
    assert [row[1] for row in rows] == ["Exact", "Guess", "Other"]


def _stored(cell: StoredRun) -> pd.DataFrame:
    return pd.read_csv(cell.path / "scores.csv", index_col="factual")


def test_only_fitting_cells_are_compared(made: Made, comparison: Comparison) -> None:
    fixed = Comparison(**{**vars(comparison), "fixed": {"model": "forest"}})
    lines = fixed.compare([made(method="exact")])
    assert lines["ours"].isna().all()
    assert fixed.compare([made(method="exact", model="forest")])["ours"].notna().any()


def test_a_table_is_written_from_files_alone(
    made: Made, comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """By the end of a sweep and by the command line alike; its first lines say what was run."""
    monkeypatch.setitem(registry.known(), "small", comparison)
    made(method="exact", table="small")
    assert str(tmp_path / "table.md") in tables.write(tmp_path, "small")
    text, numbers = (tmp_path / "table.md").read_text(), pd.read_csv(tmp_path / "table.csv")
    for part in ("# A table", "loans abc", "seed 0", "factual 5", "python 3.11", "numpy 2", "a processor, 2 cores"):
        assert part in text
    assert "torch" not in text
    assert len(numbers) == 3 * len(MEASURES)
    (tmp_path / "table.md").unlink()
    monkeypatch.setattr(sys, "argv", ["tables", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 0
    assert (tmp_path / "table.md").read_text() == text


def test_faults_are_reported(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A table that does not exist; a folder without answers, and one without a finished cell."""
    cell = made(method="exact")
    with pytest.raises(HarnessError, match="no table 'ce_ocl_table4'; did you mean"):
        tables.write(tmp_path, "ce_ocl_table4")
    monkeypatch.setattr(sys, "argv", ["tables", str(tmp_path), str(tmp_path / "nothing")])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 1
    message = capsys.readouterr().err
    assert "there are no stored answers" in message
    (cell.path / "done").unlink()
    (cell.path / "rows.jsonl").write_text("")
    with pytest.raises(HarnessError, match=r"no cell under .* is finished"):
        stored.latest(tmp_path)


def test_an_experiment_without_a_paper_shows_methods_by_models(made: Made, tmp_path: Path) -> None:
    """Coverage, and the median second, three in four at the limit; a dash only where the method refused."""
    made(method="exact", model="tree")
    made(GRANTED, method="exact", model="forest")
    made(None, None, method="guess", model="tree")
    tables.write(tmp_path, None)
    rows = [line.split(" | ") for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| `")]
    assert [row[:3] for row in rows] == [["| `exact`", "1.00, 0.5 s", "0.25, 5 s"], ["| `guess`", "", "0.00, 5 s"]]
    numbers = pd.read_csv(tmp_path / "table.csv").set_index(["number", "model", "method"])
    coverage = {("forest", "exact"): 1, ("tree", "exact"): 0.25, ("tree", "guess"): 0}
    assert numbers.loc["coverage", "value"].to_dict() == coverage


def test_equal_objectives_are_averaged_over_what_all_have(made: Made, tmp_path: Path) -> None:
    """As the checker finds them; not over the second answer, which one method lacks; who minimises another has none.

    Claims that differ in their domains alone are compared: they minimise the same.
    """
    near, robust = (Objective((Term("l1"),), domain=domain) for domain in ({}, {"rho": 0.1}))
    few = Objective((Term("l0"),))
    claims = {"exact": (near, [2.0, 9.0]), "guess": (robust, [3.0, None]), "other": (few, [1.0, 1.0])}
    for method, (objective, values) in claims.items():
        cell = made(GRANTED, GRANTED, method=method)
        rows = [json.loads(line) for line in (cell.path / "verdicts.jsonl").read_text().splitlines()]
        lines = [json.dumps(row | {"objective": value}) for row, value in zip(rows, values, strict=True)]
        (cell.path / "verdicts.jsonl").write_text("\n".join(lines) + "\n")
        cell.update(objective=objective)
    tables.write(tmp_path, None)
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| `")]
    assert [line.split(" | ")[-1] for line in lines] == ["2 (1) |", "3 (1) |", "– |"]


def test_different_objectives_are_told_apart(made: Made, tmp_path: Path) -> None:
    """Each says what is minimised, with the digits of the distance beside a great weight."""
    near, few = Objective((Term("l1"),)), Objective((Term("l1"), Term("l0", 10000)))
    claims = {"a": (near, 0.0372), "b": (near, 0.5), "c": (few, 20000.03719), "d": (few, 30000.0)}
    for method, (objective, value) in claims.items():
        cell = made(GRANTED, method=method)
        (row,) = (json.loads(line) for line in (cell.path / "verdicts.jsonl").read_text().splitlines())
        (cell.path / "verdicts.jsonl").write_text(json.dumps(row | {"objective": value}) + "\n")
        cell.update(objective=objective)
    tables.write(tmp_path, None)
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| `")]
    both = "(l1 + 10000 × number of changes, 1) |"
    assert [line.split(" | ")[-1] for line in lines] == [
        *("0.0372 (l1, 1) |", "0.5 (l1, 1) |", f"20000.0372 {both}", f"30000 {both}"),
    ]


def test_objectives_of_several_tasks_stand_side_by_side(made: Made, tmp_path: Path) -> None:
    """Of one kind, and relative to other training rows on each."""
    for model, (scale, values) in {"lr": (1.0, (10.0, 20.0)), "rf": (2.0, (1.0, 2.0))}.items():
        for method, value in zip("ab", values, strict=True):
            cell = made(GRANTED, method=method, model=model)
            (row,) = (json.loads(line) for line in (cell.path / "verdicts.jsonl").read_text().splitlines())
            (cell.path / "verdicts.jsonl").write_text(json.dumps(row | {"objective": value}) + "\n")
            cell.update(objective=Objective((Term("mad_l1", params={"income": scale}),)))
    tables.write(tmp_path, None)
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| `")]
    assert [line.split(" | ")[-1] for line in lines] == ["10 (lr, 1); 1 (rf, 1) |", "20 (lr, 1); 2 (rf, 1) |"]


def test_who_refuses_a_model_takes_no_other_from_the_means(made: Made, tmp_path: Path) -> None:
    """Of the same objective: two methods on both models, a third on the forest alone, each without costs or with."""
    near = Objective((Term("l1"),))
    asked = {"a": {"lr": 10.0, "rf": 1.0}, "b": {"lr": 20.0, "rf": 2.0}, "c": {"rf": 4.0}}
    for method, values in asked.items():
        for model, value in values.items():
            cell = made(GRANTED, method=method, model=model)
            (row,) = (json.loads(line) for line in (cell.path / "verdicts.jsonl").read_text().splitlines())
            (cell.path / "verdicts.jsonl").write_text(json.dumps(row | {"objective": value}) + "\n")
            cell.update(objective=dataclasses.replace(near, costed=method != "c").stored())
    tables.write(tmp_path, None)
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| `")]
    told = [line.split(" | ")[-1] for line in lines]
    assert told == ["10 (lr, 1); 1 (rf, 1) |", "20 (lr, 1); 2 (rf, 1) |", "4 (rf, 1) |"]


def test_a_metric_of_some_models_alone_has_no_mean(made: Made, tmp_path: Path) -> None:
    """As where one model's runs were scored again with more; what it is of is said below the table."""
    paths = ["metrics.validity.validity", "metrics.actionability.violations"]
    for model in ("lr", "rf"):
        made(GRANTED, method="part", model=model, paths=paths[: 2 if model == "lr" else 1])
        made(GRANTED, method="whole", model=model, paths=paths)
    tables.write(tmp_path, None)
    text = (tmp_path / "table.md").read_text()
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| `")}
    assert [rows[f"| `{name}`"].rstrip(" |").split(" | ")[-1] for name in ("part", "whole")] == ["–", "0.000"]
    assert (
        "one on every model on which any has: *violations*, mean number of constraints broken: features changed" in text
    )


def test_a_metric_that_nobody_has_is_no_sentence_of_a_caption(made: Made, tmp_path: Path) -> None:
    """As of a model of which no region is certified."""
    for method in ("one", "two"):
        run = made(GRANTED, method=method, paths=["metrics.proximity.l0", "metrics.robustness.certified_radius_linf"])
        scores = read_scores(run)
        scores.assign(**dict.fromkeys((n for n in scores if "certified_radius" in n), np.nan)).to_csv(
            run.path / "scores.csv"
        )
    (table,) = for_paper(Numbers(Study.of(tmp_path)))
    assert "certified radius" not in table.caption
    assert "is –" not in table.caption


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("distance/gower", "Mean over answers and features of the scaled changes of l1, in [0, inf)"),
        ("distance/l1", "Mean sum of the scaled changes, in [0, inf)"),
        (
            "robustness/certified_radius_linf",
            "Mean of the radius, in [0, 1], of the largest box proven valid around each",
        ),
    ],
)
def test_what_a_metric_is_of_is_a_sentence(name: str, said: str) -> None:
    assert stored.measured(packaged()[name]) == said


def test_who_failed_is_told(made: Made, tmp_path: Path) -> None:
    """Beside its coverage, which a search that came to nothing has, too; in a paper's table as well."""
    crashed = Answer(Status.FAILED, None, Reason.CRASH, detail="Traceback\nImportError: no torch")
    made(GRANTED, None, method="right")
    made(crashed, crashed, method="torn")
    tables.write(tmp_path, None)
    summary.write(tmp_path, [], Numbers(Study.of(tmp_path)))
    told = "loans / tree: torn failed to give 2 answers (crash, ImportError: no torch)."
    assert all(f"- {told}\n" in (tmp_path / name).read_text() for name in ("table.md", "summary.md"))
    assert "torn failed to give 2 answers" in (tmp_path / "table.tex").read_text()
    assert "right failed" not in (tmp_path / "table.md").read_text()


def test_a_cell_with_failures_is_shown(made: Made, tmp_path: Path) -> None:
    """It is not done, since what failed is tried again; one whose factuals were not all asked about is left out."""
    cell = made(GRANTED, None, method="exact")
    (cell.path / "done").unlink()
    assert [found.path for found in stored.latest(tmp_path)] == [cell.path]
    (cell.path / "rows.jsonl").write_text((cell.path / "rows.jsonl").read_text().splitlines()[0] + "\n")
    with pytest.raises(HarnessError, match=r"no cell under .* is finished"):
        stored.latest(tmp_path)


def test_a_cell_that_is_not_scored_yet_is_left_out(made: Made, tmp_path: Path) -> None:
    """As where a sweep was killed between a run's answers and its scores."""
    scored, killed = made(GRANTED, None, method="exact"), made(MEMBER, fingerprint="2", method="other")
    assert {found.path for found in stored.latest(tmp_path)} == {scored.path, killed.path}
    (killed.path / "scores.csv").unlink()
    assert [found.path for found in stored.latest(tmp_path)] == [scored.path]


def test_runs_of_one_name_with_other_settings_are_said(
    made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The last is shown; runs that differ in code alone are no such."""
    made(GRANTED, fingerprint="1")
    made(GRANTED, fingerprint="2")
    assert len(stored.latest(tmp_path)) == 1
    last = made(MEMBER, fingerprint="3", factuals_seed=1)
    assert [run.path for run in stored.latest(tmp_path)] == [last.path]
    assert caplog.messages == []  # nothing of a paper shows one of them
    last.update(config=last.meta["config"] | {"table": "small"})
    assert [run.path for run in stored.latest(tmp_path)] == [last.path]
    (said,) = caplog.messages
    assert said.startswith(f"{tmp_path}: runs of {last.label} differ in seed or settings; tables and figures of papers")


def test_the_last_sweep_decides_between_cells_of_one_name(made: Made, tmp_path: Path) -> None:
    """A cell that a later sweep took over stands, though another of its name is younger."""
    first, second = made(GRANTED, fingerprint="1"), made(MEMBER, fingerprint="2")
    (tmp_path / "sweeps").mkdir()
    for name, cell, state in (("1", first, "done"), ("2", second, "done"), ("3", first, "skipped")):
        entry = {"cell": f"elsewhere/{cell.path.name}", "label": cell.label, "state": state}
        (tmp_path / "sweeps" / f"{name}.jsonl").write_text(json.dumps(entry) + "\n")
        assert [c.path for c in stored.latest(tmp_path)] == [cell.path]
    failed = {"label": first.label, "state": "failed", "message": "no"}
    (tmp_path / "sweeps" / "4.jsonl").write_text(json.dumps(failed) + "\n")
    assert [c.path for c in stored.latest(tmp_path)] == [first.path]


def test_counterfactuals_are_listed_as_changes(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Part by part, published above ours; a dash where unchanged, a status where there is none."""
    text = "part,counterfactual,income,age,job\nfactual,,30,30,clerk\nA,a,81,,\nB,a,,31.5,nurse\n"
    (tmp_path / "listed.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    cells = [made(GRANTED, variant="A", method="m-A"), made(None, variant="B", method="m-B")]
    written, _ = Listing("A listing", "variant", "listed.csv").build(cells)
    rows = [[part.strip() for part in row.split("|")[1:-1]] for row in written.splitlines() if row.startswith("|")]
    assert rows[0] == ["variant", "", "", "income", "age", "job", "status"]
    assert rows[2:] == [
        ["factual", "", "", "30.00", "30", "clerk", ""],
        ["A", "a", "published", "81", DASH, DASH, ""],
        ["A", "a", "ours", "80.00", "40", DASH, "FOUND"],
        ["B", "a", "published", DASH, "31.50", "nurse", ""],
        ["B", "a", "ours", DASH, DASH, DASH, "GAVE_UP"],
    ]


@pytest.mark.parametrize(
    ("printed", "answer", "why"),
    [
        ("A,a,49.4,,", GRANTED, "refused: score 0.25; wanted: above 0.5"),  # up to 49.45
        ("A,a,49.96,,", GRANTED, None),  # of 49.965, rounded in scaled units as well, it may have been 50.06
        ("A,a,50.0,,", GRANTED, None),  # of 50.05: granted, and nearer than ours
        ("A,a,81,,", GRANTED, "not the nearest: its objective is at least 0.505, that of an accepted one 0.5"),
        ("A,b,81,,", GRANTED, None),  # of the first alone it is said that it is the nearest
        ("A,a,80.1,,", GRANTED, None),  # it may have been 80
        ("A,a,81,,", YOUNGER, None),  # ours is refused
        ("A,a,81,,nurse", GRANTED, "not the nearest: its objective is at least 1.505, that of an accepted one 0.5"),
        ("B,a,49.4,,", GRANTED, None),  # not run
    ],
)
def test_what_is_printed_of_a_counterfactual_may_be_excluded(
    printed: str, answer: dict[str, Any], why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the authors' own model, whose split is at 50, or by a nearer one that it accepts; our model says nothing.

    Incomes are scaled by 100; the second objective counts the hull, of which rounded rows are no judges.
    """
    (tmp_path / "listed.csv").write_text(f"part,counterfactual,income,age,job\nfactual,,30,30,clerk\n{printed}\n")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    near = {**answer, "age": 30} if answer is GRANTED else answer
    hull = {"points": loans.SPACE.encode(loans.TRAIN), "norm": 1}
    for terms in ((Term("l1"),), (Term("l1"), Term("slack", 1e6, hull))):
        for model, expected in (("published_tree", why), ("tree", None)):
            run = started(tmp_path / str(len(terms)), loans.problem, loans.factual, [near], variant="A", model=model)
            run.put_objective(Objective(terms))
            found, looked = Listing("A listing", "variant", "listed.csv", rounding=1e-3).refuted([run])
            assert [each.why for each in found] == ([] if expected is None else [expected])
            assert looked == (model == "published_tree" and printed.startswith("A"))
            if found:
                values = [value for value in printed.split(",")[2:] if value]
                words = [f"{name} {value}" for name, value in zip(("income", "job"), values, strict=False)]
                assert (found[0].place, found[0].published) == ("variant A, a", ", ".join(words))


def test_a_second_answer_that_is_accepted_makes_no_first_one_nearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, of an income of 40, is refused: 81 may be the nearest, whatever comes after."""
    (tmp_path / "listed.csv").write_text("part,counterfactual,income\nA,a,81\n")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    refused, granted = ({**GRANTED, "age": 30, "income": income} for income in (40.0, 80.0))
    settings = {"variant": "A", "model": "published_tree"}
    run = started(tmp_path, loans.problem, loans.factual, [refused], **settings)
    run.put_objective(Objective((Term("l1"),)))
    run.append([{**row, "ce": 2, "row": granted} for row in run.rows()])
    run.update(n_counterfactuals=2)
    judge(run)
    assert [line["verdict"] for line in run.verdicts()] == ["invalid", "accepted"]
    assert Listing("A listing", "variant", "listed.csv").refuted([run]) == ([], 1)


def test_the_checker_judges_what_is_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the model itself; but says nothing once an answer does not hold, as that may be what a proof rests on."""
    (tmp_path / "listed.csv").write_text("part,counterfactual,income\nA,a,49.4\nB,a,50.2\n")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    monkeypatch.setattr(registry, "known", lambda: {"mine": Listing("A listing", "variant", "listed.csv")})
    for part in "AB":
        run = started(
            tmp_path, loans.problem, loans.factual, [GRANTED], variant=part, fingerprint=part, table="mine",
            model="published_tree",
        )  # fmt: skip
        run.put_objective(Objective((Term("l1"),)))
    assert check.main([str(tmp_path)]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine")]
    assert told == [
        "mine: 1 of 2 published numbers that can be judged are proven wrong",
        "mine: variant A, a: income 49.4: refused: score 0.25; wanted: above 0.5",
    ]
    rows = run.path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"income": 80', '"income": 20'))
    assert check.main([str(tmp_path)]) == 1
    assert "mine" not in capsys.readouterr().out


def test_the_share_of_first_counterfactuals_that_the_authors_model_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The split is at 50: of three first ones that were run two have more, whatever the second ones have; one was not
    run. Nothing is said of a model of ours."""
    printed = "A,a,49.4,,\nA,b,60,,\nB,a,81,,\nC,a,50.4,,\nC,b,10,,\nD,a,10,,\n"
    (tmp_path / "listed.csv").write_text(f"part,counterfactual,income,age,job\nfactual,,30,30,clerk\n{printed}")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    for model, told in (("published_tree", True), ("tree", False)):
        runs = [
            started(tmp_path / f"{model}{part}", loans.problem, loans.factual, [GRANTED], variant=part, model=model)
            for part in "ABC"
        ]
        text, _ = Listing("A listing", "variant", "listed.csv").build(runs)
        assert ("- The authors' own model accepts 2 of their 3 first counterfactuals here.\n" in text) is told


@pytest.mark.parametrize(("printed", "excluded"), [(0.806, True), (0.81, True), (0.80, False), (0.805, False)])
def test_a_mean_above_what_it_can_be_is_excluded(
    printed: float, excluded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five features at most four stay: .80; a printed .805 may have been .80."""
    text = f"dataset,method,sparsity,sparsity_se\nloans,ours,{printed},0.01\nloans,other,0.9,0.01\n"
    (tmp_path / "means.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    table = Comparison(
        title="A table", file="means.csv", keys={"dataset": "dataset", "method": "method"},
        measures={"sparsity": "mothilal/sparsity"}, most={"sparsity": lambda run: 1 - 1 / len(run.space.features)},
    )  # fmt: skip
    found, looked = table.refuted([run])
    assert looked == 1
    assert [(each.place, each.why) for each in found] == [
        ("loans, ours", "a mean of sparsity is at most 0.8 where every counterfactual changes something")
    ] * excluded
    assert dataclasses.replace(table, most={}).refuted([run]) == ([], 0)


def test_answers_that_are_not_permitted_are_counted_below_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two makes the person younger; the paper's validity would say nothing of it."""
    (tmp_path / "means.csv").write_text("dataset,method,validity\nloans,ours,1\n")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED, {**GRANTED, "age": 25}, None])
    table = Comparison(
        title="A table", file="means.csv", keys={"dataset": "dataset", "method": "method"},
        measures={"validity": "validity/validity"},
    )  # fmt: skip
    assert "- loans, ours: 1 of 2 counterfactuals are not permitted, as they change" in table.build([run])[0]


@pytest.mark.parametrize(
    ("statuses", "asked", "told"),
    [
        ([Status.OPTIMAL, Status.OPTIMAL], 1, True),
        ([Status.OPTIMAL, Status.FOUND], 1, False),
        ([Status.OPTIMAL, Status.OPTIMAL], 3, False),
    ],
)
def test_means_of_proven_optima_that_are_not_as_printed_are_told(
    statuses: list[Status], asked: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the paper asked the same; a validity of 1 is as printed. Who got no answer does not count."""
    text = "dataset,method,validity,continuous_proximity\nloans,ours,1.0,-12.5\n"
    (tmp_path / "means.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    answers = [Answer(status, GRANTED, Reason.FINISHED, 1.0, 1.0) for status in statuses]
    run = started(tmp_path, loans.problem, loans.factual, [*answers, None])
    run.update(n_counterfactuals=asked)
    table = Comparison(
        title="A table", file="means.csv", keys={"dataset": "dataset", "method": "method"}, exact=True,
        measures={"validity": "mothilal/validity", "continuous_proximity": "mothilal/continuous_proximity"},
    )  # fmt: skip
    note = (
        "- loans, ours: at the proven optima of all 2 answered factuals, continuous proximity is -60.00; -12.50 is "
        "printed.\n"
    )
    assert (note in table.build([run])[0]) is told
    assert "proven optima" not in dataclasses.replace(table, exact=False).build([run])[0]


def test_means_of_several_proven_answers_to_a_question_are_no_optima(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second counterfactual is proven of what is left without the first, and a printed mean is of both."""
    (tmp_path / "means.csv").write_text("dataset,method,continuous_proximity\nloans,ours,-12.5\n")
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    proven = Answer(Status.OPTIMAL, GRANTED, Reason.PROOF, 1.0, 1.0)
    run = started(tmp_path, loans.problem, loans.factual, [proven, proven])
    table = Comparison(
        title="A table", file="means.csv", keys={"dataset": "dataset", "method": "method"}, exact=True,
        measures={"continuous_proximity": "mothilal/continuous_proximity"},
    )  # fmt: skip
    assert "at the proven optima of all 2 answered factuals" in table.build([run])[0]
    run.append([{**row, "ce": 2} for row in run.rows()])
    judged = [{**verdict, "ce": place} for verdict in run.verdicts() for place in (1, 2)]
    run.put_verdicts(judged)
    run.update(n_counterfactuals=2)
    assert [row["status"] for row in run.rows()] == [Status.OPTIMAL] * 4
    assert "proven optima" not in table.build([run])[0]


def test_optima_are_compared_to_the_last_digit(problem: Problem, factual: pd.DataFrame, tmp_path: Path) -> None:
    """The squared scaled distance of the answer itself, beside the exact value."""
    origin = factual.to_dict("records")[0]
    cell = started(tmp_path, problem, factual, [{**origin, "income": origin["income"] + 20.0}], variant="A")
    none = started(tmp_path, problem, factual, [None], variant="B", method="none")
    table = Listing("Optima", "variant", optima={"A": 0.03, "B": 0.05})
    written, numbers = table.build([cell, none])
    assert table.compared(numbers).to_dict("records") == [
        {
            "variant": "A",
            "measure": "squared distance",
            "better": "lower",
            "published": 0.03,
            "ours": pytest.approx(0.04),
        }
    ]
    part = [entry.strip() for entry in written.split("## Optima")[1].splitlines()[4].split("|")[1:-1]]
    assert part[:4] == ["A", "FOUND", "0.0400000000000", "0.0300000000000"]
    assert float(part[4]) == pytest.approx(0.01)


@pytest.mark.parametrize("name", registry.known())
def test_a_table_fits_its_published_file_and_its_experiment(name: str) -> None:
    """Every column it compares is published, and its experiment names it and computes its metrics."""
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"+experiment={name}"])
    assert config.table == name
    table = registry.known()[name]
    comparison = table if isinstance(table, Comparison) else table.metrics if isinstance(table, Listing) else None
    if comparison is not None:
        published = pd.read_csv(stored.PUBLISHED / comparison.file)
        assert {*comparison.keys, *comparison.measures} - {"validity_measured"} <= set(published.columns)
        logged = {get_object(path).name for path in config.metrics.names}
        assert set(comparison.measures.values()) - {ASSIGNED} <= logged
    if isinstance(table, Comparison):
        for key, names in table.ours.items():
            assert set(names) >= set(published[key])
    if isinstance(table, Listing) and table.file is not None:
        assert set(pd.read_csv(stored.PUBLISHED / table.file).columns) >= {"part", "counterfactual"}


def test_the_command_lists_its_options(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """And without any, or a folder, it says what is missing."""
    for arguments, code in (["--help"], 0), ([], 2):
        monkeypatch.setattr(sys, "argv", ["tables", *arguments])
        with pytest.raises(SystemExit) as ended:
            command.main()
        assert ended.value.code == code
    printed = capsys.readouterr()
    assert all(option in printed.out for option in ("--all", "--departures", "folder"))
    assert "error: name a folder, or --all" in printed.err
