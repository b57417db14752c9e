"""Tables, figures and claims of Lodi and Ramírez-Ayerbe (2024), from made-up runs with numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from support.tables import cells

from harness.core.errors import HarnessError
from harness.core.space import Feature, Space
from harness.papers.column_generation import CLAIMS, FIGURES, TABLES, tables
from harness.papers.column_generation.claims import FEWEST
from harness.papers.column_generation.figures import _columns, heat_map, perturbed
from harness.papers.column_generation.tables import Fewest, Models, Thresholds, _remark, solved, summed
from harness.reports.canvas import COLOURS
from harness.reports.markup import DASH

SPACE = Space(
    (
        Feature("sex", "binary", ("f", "m")),
        Feature("job", "categorical", ("none", "part", "full")),
        Feature("town", "categorical", ("Bonn", "Ulm")),
    )
)


def run_of(
    size: int, t_max: int, points: int, solver: str | None = "cells", *, people: str = "", bound: float | None = None,
    seconds: float = 0.5, late: bool = False, lost: int = 0, left: int = 0, picked: int | None = 0,
    threshold: float | None = None, seed: int = 0, priced: tuple[float, float] | None = None,
) -> Any:  # fmt: skip
    """A run of one group: so many points serve its factuals by turns, but for those who are lost, or just left.

    It is proven where the ``bound`` is that number of points; ``people`` tells one group from another; ``priced`` are
    value and bound of the last pricing of columns.
    """
    group = [f"{people}{number}" for number in range(size)]
    served = group[lost + left :] if points else []
    status = "OPTIMAL" if bound == points else "FOUND" if points else "GAVE_UP"
    line = {"group": "all", "factuals": group, "points": [{}] * points, "changed": [["sex"]] * points,
            "status": status, "bound": bound,
            "uncoverable": group[:lost], "seconds": seconds, "fit_seconds": 0.0, "late": late,
            "trace": [{"step": "pricing", "value": priced[0], "bound": priced[1]}] if priced else None}  # fmt: skip
    rows = [{"factual": each, "group": "all", "row": None, "point": None} for each in group if each not in served]
    rows += [{"factual": e, "group": "all", "row": {}, "point": k % max(points, 1)} for k, e in enumerate(served)]
    method = {"t_max": t_max} | ({} if solver is None else {"solver": solver})
    config = {"method": method, "n_factuals": size, "seed": seed, "factuals_seed": picked, "group_time_limit": 120.0,
              "model": {"threshold": threshold}}  # fmt: skip
    verdicts = [{"factual": each, "verdict": "accepted"} for each in served]
    return SimpleNamespace(
        meta={"config": config}, groups=lambda: [line], rows=lambda: rows, verdicts=lambda: verdicts, space=SPACE,
        label="a run",
    )  # fmt: skip


FOUND = [
    *(run_of(10, 2, n, people=p, bound=b, seconds=s, picked=k, left=left)
      for k, (n, p, b, s, left) in enumerate([(3, "a", 3, 0.1, 0), (4, "b", 1.5, 0.2, 3), (5, "a", 5, 0.9, 0)])),
    run_of(10, 2, 5, "column_generation", bound=5, seconds=2.0),
    run_of(10, 2, 6, "column_generation", bound=2, seconds=3.0, priced=(1.5, 1.5)),
    run_of(10, 2, 6, "column_generation", bound=6, seconds=7.0, late=True),
    run_of(10, 2, 0, "column_generation", seconds=4.0),
    run_of(10, 2, 3, "milp_paper", bound=3, seconds=1.25),
    run_of(10, 2, 8, None, seconds=0.01),
    run_of(20, 2, 7, bound=7, people="c"),
    run_of(10, 3, 1, people="a", bound=1, lost=2),
    run_of(30, 4, 2, bound=2, people="d"),
]  # fmt: skip


def test_a_table_has_ours_beside_the_published_numbers() -> None:
    """Means, ranges, proofs and seconds over the groups of a place; others beside, and places of ours alone last."""
    text, _ = Fewest(4).build(FOUND)
    head, *rows = cells(text)
    assert head == [
        "\\|S\\|", "T_max", "y* published", "y* ours", "proven", "gap", "CG − MIP published", "CG s published",
        "MIP s published", "ours s, median (worst)", "y CG", "proven CG", "s CG", "y MIP", "proven MIP", "s MIP",
        "y greedy", "s greedy", "why",
    ]  # fmt: skip
    none = ["not run", "", "", "not run", "", "", "not run", ""]
    larger, smaller = "larger, proven for our S: other bins, model and S", "smaller: other bins, model and S"
    assert rows == [
        ["10", "2", "4", "4.0 (3–5), 1.0 left", "2 of 3", "2", "0", "2.82", "1.67", "0.200 (0.900)",
         "5.7 (5–6), 2.5 left", "2 of 4", "3.500 (7.000)", "3", "1 of 1", "1.250 (1.250)", "8", "0.010 (0.010)",
         "in our range"],
        ["20", "2", "6", "7", "1 of 1", "0", "0", "6.25", "70.92", "0.500 (0.500)", *none, larger],
        ["10", "3", "2", "1", "1 of 1", "0", "0", "2.08", "0.72", "0.500 (0.500)", *none, smaller],
        ["30", "4", DASH, "2", "1 of 1", "0", DASH, DASH, DASH, "0.500 (0.500)", *none, ""],
    ]  # fmt: skip
    assert text.splitlines()[1].startswith("| :--- | :--- | --- | --- |")
    notes = text.split("\n\n")[-1].splitlines()
    assert notes[0] == "- 5 published rows are not shown: nothing of them was run here."
    assert notes[-4:] == [
        "- Limit of ours: 120 s a group.",
        "- Mean y* of ours: 0.5 to 1.2 times the published one, in 3 settings.",  # 4 / 4, 7 / 6 and 1 / 2
        "- |S| = 10: 3 draws gave 2 different groups.",
        "- Of 3 runs of the paper's CG that the clock did not end, 66.7% are certified (94.1%).",
    ]


def test_the_numbers_behind_a_table_are_kept() -> None:
    """With which of them a clock ended: of ours, of column generation, and of their gap, but not of the program."""
    _, numbers = Fewest(4).build(FOUND)
    here = numbers[numbers["n_factuals"].eq(10) & numbers["t_max"].eq(2)].set_index("measure")
    assert here["ours"].drop(["greedy bound", "gap_cg_minus_mip"]).to_dict() == {
        **{"n_explanations, ours": 4.0, "n_explanations, CG": pytest.approx(17 / 3)},
        **{"cg_seconds": 3.5, "mip_seconds": 1.25},
        **{"ours stopped": 1, "CG stopped": 1, "MIP stopped": 0, "greedy stopped": 1},
        **statistics("ours", 3, 2, 4.0, 1.0, 3, 5, 2, 2, 1.0, 0.2, 0.9),
        **statistics("CG", 4, 2, 17 / 3, 3**-0.5, 5, 6, 2, 4, 2.5, 3.5, 7.0),
        **statistics("MIP", 1, 1, 3, math.nan, 3, 3, 3, 0, 0.0, 1.25, 1.25),
        **{name: value for name, value in
           statistics("greedy", 1, 0, 8, math.nan, 8, 8, 0, math.nan, 0.0, 0.01, 0.01).items() if "bound" not in name},
    }  # fmt: skip
    assert (
        here.loc[["greedy bound", "gap_cg_minus_mip"], "ours"].isna().all()
    )  # a search that the clock ended says no gap
    assert here["published"].dropna().to_dict() == {
        "n_explanations, ours": 4, "n_explanations, CG": 4, "gap_cg_minus_mip": 0, "cg_seconds": 2.82,
        "mip_seconds": 1.67,
    }  # fmt: skip
    assert set(here.index[here["alone"]]) == {"ours stopped", "CG stopped", "MIP stopped"}  # shown on the page
    assert here["stopped"].dropna().to_dict() == {
        "n_explanations, ours": True, "n_explanations, CG": True, "gap_cg_minus_mip": True, "cg_seconds": True,
        "mip_seconds": False,
    }  # fmt: skip
    assert here["why"].dropna().to_dict() == {"gap_cg_minus_mip": "ended by the clock"}
    fifty = numbers[numbers["n_factuals"].eq(50) & numbers["t_max"].eq(2)].set_index("measure")["published_stopped"]
    assert (fifty["cg_seconds"], fifty["mip_seconds"]) == (False, True)  # 106 s and 3,600 s are printed
    assert {"better", "published_se"}.isdisjoint(numbers)  # another group than the paper's has no better number


@pytest.mark.parametrize(("columns", "program", "gap"), [(6, 5, 1.0), (6, 2, None), (2, 5, None)])
def test_points_of_both_are_compared_only_where_no_clock_ended_either(
    columns: int, program: int, gap: float | None
) -> None:
    """Six points less five, where these are the bounds, too: of a lower bound nobody knows how many would be left."""
    runs = [run_of(10, 2, 6, "column_generation", bound=columns), run_of(10, 2, 5, "milp_paper", bound=program)]
    lines = Fewest(4).build(runs)[1].set_index(["n_factuals", "t_max", "measure"])
    found = lines.loc[(10, 2, "gap_cg_minus_mip"), "ours"]
    assert math.isnan(found) if gap is None else found == gap


def test_columns_are_priced_until_the_last_pricing_says_that_none_is_left() -> None:
    """By the last of several: at first 1.5 of 3 are proven, at last all 2.5 are."""
    open_, closed = ({"step": "pricing", "value": value, "bound": bound} for value, bound in ((3.0, 1.5), (2.5, 2.5)))
    other = {"step": "least change", "change": 4, "bound": 1.0}
    assert not tables._stopped({"status": "FOUND", "trace": [open_, closed, other]})
    assert tables._stopped({"status": "FOUND", "trace": [open_, other]})


def test_that_there_are_too_few_people_is_told_where_one_draw_has_them() -> None:
    """Of two models one predicts 12 people undesired, of 20 asked for."""
    enough, fewer = (run_of(size, 2, 3, bound=3, people=f"{size}-", picked=size) for size in (20, 12))
    fewer.meta["config"]["n_factuals"] = 20
    text, _ = Fewest(4).build([enough, fewer])
    assert "- |S| = 20: only 12 people are predicted undesired.\n" in text


def statistics(name: str, *values: float) -> dict[str, Any]:
    """Twelve numbers of an approach as lines of the file have them."""
    names = ("runs", "proven", "mean", "deviation", "least", "most", "bound", "gap", "left", "median", "worst")
    return {
        f"{name} {key}": pytest.approx(value, nan_ok=True)
        for key, value in zip((*names, "uncoverable"), (*values, 0.0), strict=True)
    }


def test_gaps_are_those_of_column_generation_beyond_the_program() -> None:
    """Of |S| = 100 and T_max = 3 a gap of +1 is published; of 10 and 2 it is 0, beside 6 - 5 here."""
    runs = [run_of(*place, n, solver, bound=n) for place in ((100, 3), (10, 2))
            for n, solver in ((6, "column_generation"), (5, "milp_paper"))]  # fmt: skip
    _, lines = Fewest(4).build(runs)
    gaps = lines.loc[lines["measure"] == "gap_cg_minus_mip"].set_index(["n_factuals", "t_max"])
    assert gaps.loc[(100, 3), "published"] == 1.0
    assert gaps.loc[(100, 3), "ours"] == 1.0
    assert gaps.loc[(10, 2), ["published", "ours"]].tolist() == [0.0, 1.0]


def test_that_nobody_can_be_served_is_proven() -> None:
    """Though there is no fewest number of points then."""
    run = run_of(2, 3, 0, lost=2)
    run.groups()[0]["status"] = "INFEASIBLE"
    (line,) = summed(solved([run, run_of(2, 3, 0)]), ["n_factuals"]).to_dict("records")
    assert (line["runs"], line["proven"], line["stopped"]) == (2, 1, 1)


def test_groups_are_read_with_their_settings() -> None:
    """A threshold is a half, and the seed that of all, where none is set; factuals are named in order."""
    found = [run_of(2, 3, 1, people="b"), run_of(2, 3, 1, None, threshold=0.9, picked=None, seed=7)]
    frame = solved(found)
    assert frame["approach"].tolist() == ["ours", "greedy"]
    assert frame["threshold"].tolist() == [0.5, 0.9]
    assert frame["picked"].tolist() == [0, 7]
    assert frame["people"].tolist() == ["b0 b1", "0 1"]
    assert list(solved([]).columns) == ["approach", "n_factuals", "t_max", "threshold", "points", "settled", "stopped"]


def test_too_few_people_are_told() -> None:
    """Of 50 asked for, 12; the same twelve twice."""
    found = [run_of(12, 2, 3, picked=seed) for seed in (0, 1)]
    for run in found:
        run.meta["config"]["n_factuals"] = 50
    text, _ = Fewest(4).build(found)
    assert "- |S| = 50: only 12 people are predicted undesired, and 2 draws gave 1 different group.\n" in text
    assert "- |S| = " not in Fewest(4).build([run_of(10, 2, 1, None), run_of(20, 2, 2)])[0]


@pytest.mark.parametrize(
    ("changes", "seconds", "text"),
    [
        ({"least": 4}, 9.0, "larger: other bins, model and S"),
        ({"least": 3}, 9.0, "in our range"),
        ({"least": 1, "most": 3}, 9.0, "in our range"),
        ({"least": 1, "most": 2}, 9.0, "smaller: other bins, model and S"),
        ({"least": 1, "most": 2}, 3600.0, "smaller: published run stopped unproven"),
        ({"least": 5, "bound": 4}, 9.0, "larger, at least 4 proven for every S of ours: other bins, model and S"),
        ({"least": 5, "bound": 3}, 9.0, "larger: other bins, model and S"),
        ({"mean": math.nan}, 9.0, ""),
    ],
)
def test_why_ours_is_smaller_or_larger(changes: dict[str, float], seconds: float, text: str) -> None:
    """Than 3, in five runs of which four are proven."""
    ours = {"mean": 5.0, "least": 4, "most": 9, "runs": 5, "proven": 4, "bound": 2} | changes
    assert _remark({"n_explanations": 3, "cg_seconds": seconds}, ours) == text


def test_thresholds_are_printed() -> None:
    """Two runs of a threshold are one row, in which 1 and 2 factuals are uncoverable."""
    found = [
        run_of(10, 1, n, threshold=0.99, bound=n, lost=lost, seconds=s) for n, lost, s in ((2, 1, 0.5), (3, 2, 1.5))
    ]
    text, lines = Thresholds().build([*found, run_of(10, 1, 4, None)])
    assert cells(text) == [
        ["threshold", "T_max", "approach", "y*", "proven", "gap", "uncoverable", "s, median (worst)"],
        ["0.5", "1", "greedy", "4", "0 of 1", DASH, "0.0", "0.500 (0.500)"],
        ["0.99", "1", "ours", "2.5 (2–3)", "2 of 2", "0", "1.5", "1.000 (1.500)"],
    ]
    assert text.splitlines()[1] == "| :--- | :--- | :--- | --- | --- | --- | --- | --- |"
    assert Thresholds().compared(lines) is lines


def test_models_are_printed_beside_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four test rows the network has three right, the linear one; of eight rows, three features and six columns."""
    labels = np.array(list("aaaaabbb"))
    data = SimpleNamespace(frame=pd.DataFrame({"x": range(8)}), labels=labels, test=np.arange(4, 8))
    monkeypatch.setattr(tables, "data_of", lambda run: data)
    models = {"mlp_10x2": "bbbb", "lr_c10": "aaaa"}
    found: Any = [
        SimpleNamespace(
            meta={"dataset": "compas_binned", "model": name, "config": {
                "dataset": {}, "split": {}, "features": {}, "model": {"estimator": {"hidden_layer_sizes": [7, 5, 3]}}}},
            space=SPACE, classifier=SimpleNamespace(predict=lambda rows, said=said: np.array(list(said))[: len(rows)]),
        )
        for name, said in models.items()
    ]  # fmt: skip
    text, numbers = Models().build(found)
    assert cells(text) == [
        ["dataset", "", "n instances", "n features", "n binary columns", "nn width", "nn depth", "nn test accuracy",
         "lr test accuracy"],
        ["compas", "published", "6,172", "5", "15", "10", "2", "0.670", "0.671"],
        ["", "ours", "8", "3", "6", "7", "3", "0.750", "0.250"],
    ]  # fmt: skip
    assert text.splitlines()[1].startswith("| :--- | :--- | --- |")
    assert "- 2 published rows are not shown: nothing of them was run here.\n- Accuracy on" in text
    ours = numbers[numbers["dataset"] == "compas"].set_index("measure")["ours"]
    assert ours.tolist() == [8, 3, 6, 7, 3, 0.75, 0.25]
    assert len(numbers) == 3 * 7
    assert [row[1] for row in cells(Models().build(found[1:])[0])[1:]] == ["published", "ours"]


def group(points: Sequence[dict[str, Any]], changed: Sequence[list[str]], served: Sequence[int], **method: Any) -> Any:
    """A run of one group with these points, features that each changes, and the point that serves each factual."""
    run = run_of(len(served), method.get("t_max", 2), len(points), method.get("solver", "cells"))
    line = run.groups()[0] | {"points": list(points), "changed": list(changed)}
    rows = [{"factual": k, "row": {} if point >= 0 else None, "point": point} for k, point in enumerate(served)]
    run.groups, run.rows = (lambda: [line]), (lambda: rows)
    return run


def test_explanations_are_drawn_as_rows_of_columns() -> None:
    """Green where a column is 1, dots on the features that change, lines between features; how many each serves."""
    points = [{"sex": "m", "job": "part", "town": "Bonn"}, {"sex": "f", "job": "full", "town": "Ulm"}]
    run = group(points, [["job"], ["sex", "town"]], [1, 0, 1, 1, -1])
    empty, line = run.groups()[0] | {"points": []}, run.groups()[0]
    run.groups = lambda: [empty, line]
    (axis,) = heat_map([run], "a title").axes
    mesh, *dots = axis.collections
    assert np.asarray(mesh.get_array()).tolist() == [[1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 0, 1]]
    assert mesh.get_clim() == (0.0, 1.0)
    assert [np.asarray(each.get_offsets()).tolist() for each in dots] == [
        [[1.5, 0.5], [2.5, 0.5], [3.5, 0.5]],
        [[0.5, 1.5]],
        [[4.5, 1.5], [5.5, 1.5]],
    ]
    assert [list(line.get_xdata()) for line in axis.get_lines()] == [[1, 1], [4, 4]]
    assert [
        (tick, label.get_text()) for tick, label in zip(axis.get_yticks(), axis.get_yticklabels(), strict=True)
    ] == [
        (0.5, "1 (serves 1)"),
        (1.5, "2 (serves 3)"),
    ]
    names = ["sex m", "job none", "job part", "job full", "town Bonn", "town Ulm"]
    assert [label.get_text() for label in axis.get_xticklabels()] == names
    assert list(axis.get_xticks()) == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert axis.get_ylim() == (2.0, 0.0)
    assert axis.get_title() == "a title\ngreen: 1, white: 0, dots: features that the served ones change"
    assert {tick.tick1line.get_markersize() for tick in axis.xaxis.get_major_ticks()} == {0.0}
    run.groups = lambda: [empty]
    with pytest.raises(HarnessError, match="has no explanations of a group to draw"):
        heat_map([run], "")


def test_bars_stack_how_often_a_feature_changes() -> None:
    """By T_max from the left; the feature that changes most comes first, of equals the earlier; our runs only."""
    point = {"sex": "m", "job": "part", "town": "Bonn"}
    found = [
        group([point] * 2, [["town"], ["town", "job"]], [0, 1], t_max=3),
        group([point], [["town", "sex"]], [0], t_max=2),
        group([point], [["town"]], [0], t_max=2),
        group([point], [["sex"]], [0], t_max=2, solver="milp_paper"),
    ]
    (axis,) = perturbed(found, "a title").axes
    bars = {
        container.get_label(): [(bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in container]
        for container in axis.containers
    }
    assert bars == {
        "$T_{max}$ = 2": [(0.0, 2.0, 0.0), (0.0, 1.0, 1.0), (0.0, 0.0, 2.0)],
        "$T_{max}$ = 3": [(2.0, 2.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 2.0)],
    }
    assert [to_hex(container[0].get_facecolor()).upper() for container in axis.containers] == list(COLOURS[:2])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["town", "sex", "job"]
    assert list(axis.get_yticks()) == [0.0, 1.0, 2.0]
    assert axis.get_ylim() == (2.5, -0.5)
    assert (axis.get_xlabel(), axis.get_title()) == ("explanations that change the feature", "a title")
    assert [axis.spines[side].get_visible() for side in ("top", "right", "left", "bottom")] == [
        False,
        False,
        True,
        True,
    ]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == list(bars)
    with pytest.raises(HarnessError, match="no cell of method=column_generation"):
        perturbed(found[3:], "")


def test_every_figure_is_drawn_under_its_title() -> None:
    run = group([{"sex": "m", "job": "part", "town": "Bonn"}], [["town"]], [0])
    titles = {}
    for name, (file, draw) in FIGURES.items():
        assert f"cg_{file}" == name
        titles[name] = draw([run]).axes[0].get_title().splitlines()[0]
    assert titles == {
        "cg_figure1": "Figure 1: explanations for COMPAS, network, |S| = 10, $T_{max}$ = 3",
        "cg_figure2": "Figure 2: explanations for COMPAS, network, |S| = 20, $T_{max}$ = 3",
        "cg_figure3": "Figure 3: how often each feature changes, COMPAS, network",
        "cg_figure4": "Figure 4: how often each feature changes, German credit, network",
        "cg_figure5": "Figure 5: how often each feature changes, students, network",
    }


def measured(**values: Sequence[tuple[int, float]]) -> pd.DataFrame:
    """Numbers of a table by measure: |S| and ours, a T_max each."""
    return pd.DataFrame(
        {"n_factuals": size, "t_max": step, "measure": name.replace("_", " ") if "CG" in name else name, "ours": value}
        for name, entries in values.items()
        for step, (size, value) in enumerate(entries)
    )


@pytest.mark.parametrize(
    ("seconds", "holds", "text"),
    [
        ([1.0, 1.0, 3.0, 3.0], False, "faster in 2 of 4 settings"),
        ([1.0, 1.0, 1.0, 3.0], True, "faster in 3 of 4 settings"),
        ([1.0, 1.0, 2.0, 3.0], False, "faster in 2 of 4 settings"),
    ],
)
def test_column_generation_is_faster_in_most_settings(seconds: list[float], holds: bool, text: str) -> None:
    """Than 2 s. Ten factuals do not count in Tables 4 and 5, twenty do, and ten in Table 6."""
    small = {"cg_seconds": [(10, 9.0)], "mip_seconds": [(10, 1.0)]}
    numbers = {
        "cg_table4": measured(cg_seconds=[*small["cg_seconds"], (20, seconds[0])], mip_seconds=[(10, 1.0), (20, 2.0)]),
        "cg_table5": measured(**small),  # type: ignore[arg-type]
        "cg_table6": measured(cg_seconds=[(10, s) for s in seconds[1:]], mip_seconds=[(10, 2.0)] * 3),
        "robust_table1": measured(cg_seconds=[(20, 9.0)], mip_seconds=[(20, 1.0)]),
    }
    found = CLAIMS["cg_faster"].decide(numbers)
    assert (found.holds, found.settings, found.text) == (holds, 4, text)
    stopped = {"cg_table6": measured(**{"CG stopped": [(10, 1.0), (20, 0.0)]}, cg_seconds=[(10, 1.0), (20, 3.0)],
                                     mip_seconds=[(10, 2.0), (20, 2.0)])}  # fmt: skip
    assert CLAIMS["cg_faster"].decide(stopped).text == "faster in 0 of 1 settings"
    alone = CLAIMS["cg_faster"].decide({"cg_table6": measured(cg_seconds=[(20, 1.0)])})
    assert (alone.holds, alone.settings) == (False, 0)


@pytest.mark.parametrize(
    ("priced", "bound", "stopped"),
    [((4.0, 4.0), 4, 0), ((4.0, 4.0 - 1e-9), 4, 0), ((4.0, 3.5), 4, 1), (None, 4, 1), (None, 5, 0)],
)
def test_a_search_that_the_clock_ended_is_told(priced: tuple[float, float] | None, bound: int, stopped: int) -> None:
    """Five points found. Of the relaxed master the value is proven where the last pricing's bound meets it."""
    _, lines = Fewest(4).build([run_of(10, 2, 5, "column_generation", bound=bound, priced=priced)])
    assert lines.loc[lines["measure"] == "CG stopped", "ours"].tolist() == [stopped]


@pytest.mark.parametrize(("proven", "holds"), [(940, False), (941, True), (942, True)])
def test_as_many_proofs_as_published_are_enough(proven: int, holds: bool) -> None:
    """94.1 % of 1,000 runs of two settings that the clock did not end, and 7 that it did, all of a third."""
    frame = measured(
        CG_proven=[(10, proven - 500), (20, 500), (50, 0)], CG_runs=[(10, 402), (20, 600), (50, 5)],
        CG_stopped=[(10, 2), (20, 0), (50, 5)],
    )  # fmt: skip
    found = CLAIMS["cg_proven"].decide({"cg_table4": frame})
    assert (found.holds, found.settings) == (holds, 2)
    assert found.text == f"{proven / 1000:.1%} of 1000 runs (published: 94.1%)"
    alone = CLAIMS["cg_proven"].decide({"cg_table4": measured(CG_runs=[(10, 1)])})
    assert (alone.holds, alone.settings) == (False, 0)


@pytest.mark.parametrize(
    ("kind", "categories", "names"),
    [
        ("binary", ("f", "m"), ["sex m"]),
        ("categorical", ("f", "m"), ["sex f", "sex m"]),
        ("categorical", ("f", "m", "x"), ["sex f", "sex m", "sex x"]),
    ],
)
def test_a_column_is_named_by_what_a_one_says(kind: str, categories: tuple[str, ...], names: list[str]) -> None:
    """A binary feature has one column, for its second category; a categorical one has a column a category."""
    assert _columns(Feature("sex", kind, categories)) == names


def test_a_table_without_uncounted_features_stands_apart() -> None:
    """Under a title of its own, with the reason, beside the same published numbers; no claim counts it."""
    whole, less = (TABLES[name] for name in ("cg_table8", "cg_table8_uncounted"))
    assert less.title == f"{whole.title}, without the eight features of yes and no"
    for table in (whole, less):
        assert "their changes seem not to be counted" in table.build([run_of(10, 10, 6)])[0]
    assert "their changes seem not to be counted" not in TABLES["cg_table7"].build([run_of(10, 5, 6)])[0]
    assert {f"cg_table{number}" for number in range(4, 10)} == FEWEST
