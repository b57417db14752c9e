"""Figures of Maragno et al. (2024) from stored runs whose numbers are made up: each line, box and text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from support.figures import curves, outlines

from harness.core.errors import HarnessError
from harness.core.space import Feature, Kind, Space
from harness.papers.robust.figures import FIGURES, MARKERS, convergence, iterations, pareto, times
from harness.reports.canvas import BLUE, COLOURS, GREY, ORANGE, SKY

SPACE = Space((Feature("x", Kind.CONTINUOUS, scale=(0, 10)), Feature("y", Kind.CONTINUOUS, scale=(0, 4))))


def run_of(rows: list[dict[str, Any]], model: str = "robust_rf_5", rho: float = 0.1, **method: Any) -> Any:
    """A run of a plane whose model accepts x above 4; each row may leave out what its test does not need."""
    stored = [{"ce": 1, "row": {}} | row for row in rows]
    frame = pd.DataFrame({"x": [3.0] * len(rows), "y": [1.0] * len(rows)}, index=[row["factual"] for row in stored])
    target = SimpleNamespace(holds=lambda classifier, grid: grid["x"].to_numpy() > classifier)
    return SimpleNamespace(
        meta={"model": model, "config": {"method": {"rho": rho} | method}}, rows=lambda: stored, space=SPACE,
        classifier=4.0, factuals=lambda: (frame, dict.fromkeys(frame.index, target)),
    )  # fmt: skip


def answered(values: dict[int, tuple[float, float] | None]) -> list[dict[str, Any]]:
    """Rows by factual of these distances and seconds; None where there is no region."""
    return [
        {"factual": factual, "row": {"x": 0.0} if pair else None}
        | dict(zip(("objective", "seconds"), pair or (None, 9.0), strict=True))
        for factual, pair in values.items()
    ]


def test_means_are_of_the_factuals_that_every_line_of_a_model_has() -> None:
    """Factual 3 has no region at .2, and 4 was not asked there: of the forest 1 and 2 count, of the other model all.

    The third model has no such factual, and no line; later counterfactuals of a factual do not count.
    """
    found = [
        run_of(answered({1: (3.0, 0.4), 2: (5.0, 0.6), 3: None, 5: (9.0, 9.0)}), rho=0.2),
        run_of([*answered({1: (1.0, 0.1), 2: (2.0, 0.2), 3: (9.0, 9.0), 4: (9.0, 9.0)}),
                {"factual": 1, "ce": 2, "objective": 50.0, "seconds": 50.0}], rho=0.1),
        run_of(answered({1: (2.0, 7.0)}), "robust_lr"),
        run_of(answered({1: None}), "robust_none"),
    ]  # fmt: skip
    figure = pareto(found, "a title")
    left, right = figure.axes
    assert curves(left) == {
        "lr (1)": ([0.1], [2.0], COLOURS[0], "-", MARKERS[0]),
        "rf_5 (2)": ([0.1, 0.2], [1.5, 4.0], COLOURS[1], "-", MARKERS[1]),
    }
    assert curves(right) == {
        "lr (1)": ([0.1], [7.0], COLOURS[0], "-", MARKERS[0]),
        "rf_5 (2)": ([0.1, 0.2], pytest.approx([0.15, 0.5]), COLOURS[1], "-", MARKERS[1]),
    }
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "log")
    assert [axis.get_xlabel() for axis in figure.axes] == ["ρ, scaled"] * 2
    assert [axis.get_ylabel() for axis in figure.axes] == ["mean distance", "mean seconds"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["lr (1)", "rf_5 (2)"]
    assert (legend.get_title().get_text(), figure.get_suptitle()) == ("model (factuals)", "a title")


def test_algorithms_are_compared_on_the_same_factuals() -> None:
    """The leaf has no region for factual 2, so that neither line counts it; an algorithm of no caption has its name."""
    found = [
        run_of(answered({1: (1.0, 1.0), 2: (5.0, 5.0)}), algorithm="auto"),
        run_of(answered({1: (2.0, 3.0), 2: None}), algorithm="leaf"),
        run_of(answered({1: (3.0, 4.0), 2: (1.0, 1.0)}), algorithm="new"),
        run_of(answered({1: (4.0, 2.0), 2: (1.0, 1.0)}), algorithm="adversarial"),
    ]
    figure = pareto(found, "", key="algorithm")
    assert {label: line[:2] for label, line in curves(figure.axes[0]).items()} == {
        "Algorithm 1 (exact) (1)": ([0.1], [4.0]),
        "cells (exact) (1)": ([0.1], [1.0]),
        "new (1)": ([0.1], [3.0]),
        "one leaf (heuristic) (1)": ([0.1], [2.0]),
    }
    assert figure.legends[0].get_title().get_text() == "algorithm (factuals)"
    assert list(curves(pareto([run_of(answered({1: (1.0, 1.0)}))], "", key="algorithm").axes[0])) == [
        "cells (exact) (1)"
    ]


@pytest.mark.parametrize(("algorithm", "hollow"), [("adversarial", [0.2]), ("leaf", [])])
def test_a_point_of_unproven_distances_is_hollow(algorithm: str, hollow: list[float]) -> None:
    """Stopped for factual 2 at .2; a heuristic proves nothing anyway; 3, without a region elsewhere, does not count."""
    proven = [row | {"status": "OPTIMAL"} for row in answered({1: (1.0, 1.0), 2: (3.0, 1.0)})]
    open_ = [proven[0], proven[1] | {"status": "FOUND"}, *answered({3: (9.0, 9.0)})]
    open_[2]["status"] = "FOUND"
    figure = pareto(
        [run_of(proven, algorithm=algorithm), run_of(open_, rho=0.2, algorithm=algorithm)], "t", "algorithm"
    )
    for axis in figure.axes:
        (points,) = axis.collections
        assert np.asarray(points.get_offsets())[:, 0].tolist() == hollow
        assert not hollow or to_hex(points.get_facecolor()[0]) == "#ffffff"
    assert figure.get_suptitle() == "t" + "\n(hollow: stopped before some proofs)" * bool(hollow)


def traced(factual: int, steps: int, **more: Any) -> dict[str, Any]:
    """A row whose trace has so many steps, each of half a second of the master's and as many of the adversary's."""
    trace = [
        {"iteration": k + 1, "master_seconds": 0.5, "adversary_seconds": float(steps), "distance": 2.0 * k,
         "radius": k / 10, "row": {"x": 2.0 + 2 * k, "y": 1.0 + k}}
        for k in range(steps)
    ]  # fmt: skip
    return {"factual": factual, "trace": trace} | more


def test_seconds_of_the_longest_runs_are_drawn() -> None:
    """Sums of all runs, left; the steps of the two longest, right; ticks at whole iterations, axes from 0."""
    figure = times([run_of([traced(1, 1), traced(2, 3), {"factual": 9}]), run_of([traced(3, 2)])], "a title")
    left, right = figure.axes
    assert np.asarray(left.collections[0].get_offsets()).tolist() == [[0.5, 1.0], [1.5, 9.0], [1.0, 4.0]]
    assert curves(right) == {
        "factual 2, master": ([1, 2, 3], [0.5] * 3, COLOURS[0], "-", "None"),
        "factual 2, adversary": ([1, 2, 3], [3.0] * 3, COLOURS[0], "--", "None"),
        "factual 3, master": ([1, 2], [0.5] * 2, COLOURS[1], "-", "None"),
        "factual 3, adversary": ([1, 2], [2.0] * 2, COLOURS[1], "--", "None"),
    }
    assert (left.get_xlim()[0], left.get_ylim()[0]) == (0.0, 0.0)
    assert (left.get_xlabel(), left.get_ylabel()) == ("master, seconds of a run", "adversary, seconds of a run")
    assert (right.get_xlabel(), right.get_ylabel(), figure.get_suptitle()) == ("iteration", "seconds", "a title")
    assert [text.get_text() for text in right.get_legend().get_texts()] == list(curves(right))
    assert all(tick == round(tick) for tick in right.get_xticks())
    with pytest.raises(HarnessError, match="no stored run has a trace"):
        times([run_of([{"factual": 1, "trace": []}, {"factual": 2}])], "")


def test_the_run_of_most_iterations_stands_for_its_model() -> None:
    """The first of equals. Distance from the left, radius from the right axis, at 0; four models are 3 and 1."""
    found = [
        run_of([traced(1, 2), traced(2, 3), traced(3, 3)], "robust_b"),
        run_of([traced(4, 2)], "robust_b"),
        *(run_of([traced(7, 1)], f"robust_{name}") for name in "dac"),
    ]
    figure = convergence(found, "a title")
    panels, twins = figure.axes[:6], figure.axes[6:]
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == (2, 3)
    titles = ["a, factual 7", "b, factual 2", "c, factual 7", "d, factual 7", "", ""]
    assert [axis.get_title() for axis in panels] == titles
    assert [axis.axison for axis in panels] == [True] * 4 + [False] * 2
    (line,), (dashed,) = panels[1].get_lines(), twins[1].get_lines()
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1, 2, 3], [0.0, 2.0, 4.0])
    assert (list(dashed.get_xdata()), list(dashed.get_ydata())) == ([1, 2, 3], [0.0, 0.1, 0.2])
    assert [(part.get_color(), part.get_linestyle(), part.get_marker()) for part in (line, dashed)] == [
        (COLOURS[0], "-", "o"),
        (COLOURS[1], "--", "s"),
    ]
    assert [panels[1].get_xlabel(), panels[1].get_ylabel()] == ["iteration", "distance (solid)"]
    assert (twins[1].get_ylabel(), twins[1].get_ylim()[0]) == ("certified radius (dashed)", 0.0)
    assert all(tick == round(tick) for tick in panels[1].get_xticks())
    assert figure.get_suptitle() == "a title"
    two = convergence(found[:1] + found[2:3], "").axes
    assert two[0].get_subplotspec().get_gridspec().get_geometry() == (1, 2)


def test_the_plane_shows_points_boxes_and_what_is_accepted() -> None:
    """By hand: rho .1 is half a box of 1 by .4, and the view passes all boxes by .15 of 5 and of 1.8, or 2.8.

    Factual 2 has an answer of every model; 1 takes more iterations of one, 3 of both, but without answers.
    """
    answer = {"x": 5.0, "y": 2.0}
    found = [
        run_of([traced(1, 9, row=answer), traced(2, 2, row=answer), traced(3, 8, row=None)], "robust_short"),
        run_of([traced(1, 9, row=None), traced(2, 3, row=answer), traced(3, 8, row=None)], "robust_long"),
    ]
    figure = iterations(found, "a title")
    long, short = figure.axes
    assert [axis.get_title() for axis in figure.axes] == [
        "long, factual 2: 3 iterations",
        "short, factual 2: 2 iterations",
    ]
    assert figure.get_suptitle() == "a title"
    assert curves(short) == {
        "points of the master": ([2.0, 4.0], [1.0, 2.0], ORANGE, "-", "o"),
        "counterfactual and its box": ([5.0], [2.0], BLUE, "None", "*"),
        "factual": ([3.0], [1.0], "black", "None", "s"),
    }
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(curves(short))
    boxes = [(p.get_xy(), p.get_width(), p.get_height(), p.get_alpha(), p.get_fill()) for p in short.patches]
    expected = [((1.0, 0.6), 0.55), ((3.0, 1.6), 0.85), ((4.0, 1.6), None)]
    assert boxes == [
        (pytest.approx(corner), 2.0, pytest.approx(0.8), alpha and pytest.approx(alpha), False)
        for corner, alpha in expected
    ]
    assert [to_hex(patch.get_edgecolor()) for patch in short.patches] == ["#000000"] * 2 + [BLUE.lower()]
    assert [*short.get_xlim(), *short.get_ylim()] == pytest.approx([0.25, 6.75, 0.33, 2.67])
    assert [*long.get_xlim(), *long.get_ylim()] == pytest.approx([1 - 0.9, 7 + 0.9, 0.6 - 0.42, 3.4 + 0.42])
    assert (short.get_xlabel(), short.get_ylabel()) == ("x", "y")
    shaded, edge = outlines(short)
    assert (shaded.colour, edge.colour) == (SKY.lower(), GREY.lower())
    assert shaded.extent == pytest.approx((4.0, 0.33, 6.75, 2.67), abs=0.02)
    assert edge.extent == pytest.approx((4.0, 0.33, 4.0, 2.67), abs=0.02)


def test_a_run_that_stopped_has_no_counterfactual() -> None:
    """Without any answer, the factual of most panels, then of most iterations; the points of the master alone."""
    found = [run_of([traced(1, 2, row=None), traced(2, 1, row=None), traced(3, 1, row=None)], "robust_a")]
    found += [run_of([traced(2, 1, row=None), traced(3, 2, row=None)], "robust_b")]
    figure = iterations(found, "")
    assert [axis.get_title() for axis in figure.axes] == [
        "b, factual 3: 2 iterations, stopped at the time limit",
        "a, factual 3: 1 iterations, stopped at the time limit",
    ]
    axis = figure.axes[0]
    assert list(curves(axis)) == ["points of the master", "factual"]
    assert len(axis.patches) == 2
    assert axis.get_xlim() == pytest.approx((1 - 0.6, 5 + 0.6))


def test_every_figure_is_drawn_under_its_title() -> None:
    run = run_of([traced(1, 2, row={"x": 5.0, "y": 2.0}, objective=1.0, seconds=1.0)])
    for name, (file, draw) in FIGURES.items():
        number = name.removeprefix("robust_figure")
        assert file == f"figure{number}"
        assert draw([run]).get_suptitle().startswith(f"Robust regions, Figure {number}: ")
    assert list(curves(FIGURES["robust_figure7"][1]([run]).axes[0])) == ["cells (exact) (1)"]
    assert list(curves(FIGURES["robust_figure12"][1]([run]).axes[0])) == ["rf_5 (1)"]
