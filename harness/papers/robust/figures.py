"""Figures 7 and 9 to 12 of Maragno et al. (2024), drawn from our runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.papers.robust.tables import steps_of
from harness.reports.canvas import BLUE, COLOURS, GREY, ORANGE, SKY, add_rectangle, blank, legend_below, whole_ticks
from harness.reports.drawing import Drawing, two_numbers
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTIONS = {"auto": "cells (exact)", "adversarial": "Algorithm 1 (exact)", "leaf": "one leaf (heuristic)"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SIDE = 400  # points a side on which a model's classes are drawn


def pareto(found: Sequence[StoredRun], title: str, key: str = "model") -> Figure:
    """Mean distance, left, and mean seconds, right, against rho, a line for each ``key`` of the runs.

    Only factuals that have a region at every radius, on every line of the same model, count, so that an exact line can
    only rise and lines of one model can be compared. Hollow points: an exact algorithm stopped before its proof.
    """
    figure = blank(10, 4.2)
    left, right = figure.subplots(1, 2)
    runs_of: dict[str, dict[float, dict[Any, dict[str, Any]]]] = {}
    model_of = {}
    for run in found:
        name = run.meta["model"] if key == "model" else _algorithm(run)
        model_of[name] = run.meta["model"]
        runs_of.setdefault(name, {})[float(run.meta["config"]["method"]["rho"])] = _first(run)
    common, stopped = {}, False
    for name in runs_of:
        peers = [
            part for other, parts in runs_of.items() if model_of[other] == model_of[name] for part in parts.values()
        ]
        common[name] = [f for f in peers[0] if all((part.get(f) or {}).get("row") is not None for part in peers)]
    for place, name in enumerate(sorted(name for name in runs_of if common[name])):
        radii, label = sorted(runs_of[name]), f"{name.removeprefix('robust_')} ({len(common[name])})"
        look = {"marker": MARKERS[place % len(MARKERS)], "color": COLOURS[place % len(COLOURS)]}
        open_ = [rho for rho in radii if name != CAPTIONS["leaf"] and _unproven(runs_of[name][rho], common[name])]
        for axis, value in ((left, "objective"), (right, "seconds")):
            means = {rho: np.mean([runs_of[name][rho][f][value] for f in common[name]]) for rho in radii}
            axis.plot(radii, list(means.values()), label=label, markersize=4, **look)
            ends = [means[rho] for rho in open_]
            axis.scatter(open_, ends, marker=look["marker"], facecolors="white", edgecolors=look["color"], zorder=3)
        stopped |= bool(open_)
    right.set_yscale("log")
    for axis, name in ((left, "mean distance"), (right, "mean seconds")):
        axis.set_xlabel("ρ, scaled")
        axis.set_ylabel(name)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, title=f"{key} (factuals)", title_fontsize=8)
    figure.suptitle(title + "\n(hollow: stopped before some proofs)" * stopped, fontsize=11)
    return figure


def _unproven(rows: Mapping[Any, Mapping[str, Any]], factuals: Sequence[Any]) -> bool:
    """Whether a search stopped at a point of one of these factuals without a proof."""
    return any(rows[factual].get("status") == Status.FOUND for factual in factuals)


def _algorithm(run: StoredRun) -> str:
    algorithm = run.meta["config"]["method"].get("algorithm", "auto")
    return CAPTIONS.get(algorithm, algorithm)


def _first(run: StoredRun) -> dict[Any, dict[str, Any]]:
    return {row["factual"]: row for row in run.rows() if row["ce"] == 1}


def _traces(found: Sequence[StoredRun]) -> list[tuple[StoredRun, Any, list[dict[str, Any]]]]:
    """Stored run, factual and iterations of every answer that has any; HarnessError where none has."""
    traces = [(run, row["factual"], steps_of(row)) for run in found for row in run.rows() if steps_of(row)]
    if not traces:
        raise HarnessError("no stored run has a trace; run the experiment to its end.")
    return traces


def times(found: Sequence[StoredRun], title: str) -> Figure:
    """Seconds of master and adversary: summed by run, left; by iteration of the longest runs, right."""
    figure = blank(10, 4.2)
    left, right = figure.subplots(1, 2)
    traces = _traces(found)
    spent = [
        [sum(step[f"{part}_seconds"] for step in trace) for part in ("master", "adversary")] for *_, trace in traces
    ]
    left.scatter(*np.array(spent).T, s=16)
    left.set_xlabel("master, seconds of a run")
    left.set_ylabel("adversary, seconds of a run")
    left.set_xlim(left=0)
    left.set_ylim(bottom=0)
    longest = sorted(traces, key=lambda entry: -len(entry[2]))[:2]
    for place, (_, factual, trace) in enumerate(longest):
        steps = [step["iteration"] for step in trace]
        for part, style in (("master", "-"), ("adversary", "--")):
            values = [step[f"{part}_seconds"] for step in trace]
            right.plot(steps, values, style, color=COLOURS[place], label=f"factual {factual}, {part}")
    right.set_xlabel("iteration")
    whole_ticks(right)
    right.set_ylabel("seconds")
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def convergence(found: Sequence[StoredRun], title: str) -> Figure:
    """Distance (solid) and certified radius (dashed) by iteration: for each model, the run of most iterations."""
    longest: dict[str, tuple[Any, list[dict[str, Any]]]] = {}
    for run, factual, trace in _traces(found):
        model = run.meta["model"]
        if model not in longest or len(trace) > len(longest[model][1]):
            longest[model] = factual, trace
    figure = blank(4.4 * min(len(longest), 3), 3.4 * math.ceil(len(longest) / 3))
    axes = figure.subplots(math.ceil(len(longest) / 3), min(len(longest), 3), squeeze=False).ravel()
    for axis, (model, (factual, trace)) in zip(axes, sorted(longest.items()), strict=False):
        _converging(axis, trace)
        axis.set_title(f"{model.removeprefix('robust_')}, factual {factual}", fontsize=9)
    for axis in axes[len(longest) :]:
        axis.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure


def _converging(axis: Axes, trace: Sequence[dict[str, Any]]) -> None:
    steps = [step["iteration"] for step in trace]
    axis.plot(steps, [step["distance"] for step in trace], "o-", color=COLOURS[0], markersize=3)
    axis.set_xlabel("iteration")
    axis.set_ylabel("distance (solid)")
    whole_ticks(axis)
    other = axis.twinx()
    other.plot(steps, [step["radius"] for step in trace], "s--", color=COLOURS[1], markersize=3)
    other.set_ylabel("certified radius (dashed)")
    other.set_ylim(bottom=0)


def iterations(found: Sequence[StoredRun], title: str) -> Figure:
    """The points of Algorithm 1 on a plane, a panel a model, for the factual that takes the most iterations.

    One that every model has an answer for, where there is one.
    """
    runs_of: dict[Any, list[tuple[StoredRun, list[dict[str, Any]]]]] = {}
    for run, factual, trace in _traces(found):
        runs_of.setdefault(factual, []).append((run, trace))

    def rank(factual: Any) -> tuple[int, int, int]:
        panels = runs_of[factual]
        answered = sum(_first(run)[factual]["row"] is not None for run, _ in panels)
        return answered, len(panels), max(len(trace) for _, trace in panels)

    chosen = max(runs_of, key=rank)
    panels = sorted(runs_of[chosen], key=lambda panel: -len(panel[1]))
    figure = blank(5.4 * len(panels), 5.1)
    axes = figure.subplots(1, len(panels), squeeze=False).ravel()
    for axis, (run, trace) in zip(axes, panels, strict=True):
        answered = _iterating(axis, run, chosen, trace)
        shown = run.meta["model"].removeprefix("robust_")
        open_ = "" if answered else ", stopped at the time limit"
        axis.set_title(f"{shown}, factual {chosen}: {len(trace)} iterations{open_}", fontsize=9)
    legend_below(figure, axes, size=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _iterating(axis: Axes, run: StoredRun, factual: Any, trace: Sequence[dict[str, Any]]) -> bool:
    """One panel: where the model accepts, and each point with its box, the later the darker; whether one was robust."""
    space, names, answer = run.space, two_numbers(run), _first(run)[factual]["row"]
    frame, targets = run.factuals()
    rows = [step["row"] for step in trace] + ([answer] if answer is not None else [])
    points = np.array([[row[name] for name in names] for row in rows], dtype=float)
    origin = frame.loc[factual, list(names)].to_numpy(float)
    half = float(run.meta["config"]["method"]["rho"]) * np.array([feature.range for feature in space.features])
    corners = np.vstack([points - half, points + half, [origin]])
    low, high = corners.min(axis=0), corners.max(axis=0)
    low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
    xs, ys = np.meshgrid(*(np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True)))
    grid = pd.DataFrame(dict(zip(names, (xs.ravel(), ys.ravel()), strict=True)))
    accepted = targets[factual].holds(run.classifier, grid).reshape(xs.shape)
    axis.contourf(xs, ys, accepted, levels=[0.5, 1.5], colors=[SKY], alpha=0.25)
    axis.contour(xs, ys, accepted, levels=[0.5], colors=[GREY], linewidths=0.8)
    for place, point in enumerate(points[: len(trace)]):
        alpha = 0.25 + 0.6 * (place + 1) / len(trace)
        add_rectangle(axis, point - half, *(2 * half), fill=False, lw=0.8, edgecolor="black", alpha=alpha)
    axis.plot(*points[: len(trace)].T, "o-", color=ORANGE, markersize=3, lw=0.7, zorder=4, label="points of the master")
    if answer is not None:
        add_rectangle(axis, points[-1] - half, *(2 * half), fill=False, lw=1.8, edgecolor=BLUE, zorder=3)
        axis.plot(*points[-1], "*", color=BLUE, markersize=11, zorder=5, label="counterfactual and its box")
    axis.plot(*origin, "s", color="black", markerfacecolor="white", markersize=7, zorder=5, label="factual")
    axis.set_xlim(low[0], high[0])
    axis.set_ylim(low[1], high[1])
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
    return answer is not None


FIGURES: dict[str, tuple[str, Drawing]] = {
    "robust_figure7": (
        "figure7",
        partial(pareto, title="Robust regions, Figure 7: one leaf of a tree against the exact search", key="algorithm"),
    ),
    "robust_figure9": ("figure9", partial(times, title="Robust regions, Figure 9: Algorithm 1 on 100 boosted trees")),
    "robust_figure10": ("figure10", partial(iterations, title="Robust regions, Figure 10: deep and shallow trees")),
    "robust_figure11": ("figure11", partial(convergence, title="Robust regions, Figure 11: Algorithm 1 on diabetes")),
    "robust_figure12": ("figure12", partial(pareto, title="Robust regions, Figure 12: what a larger region costs")),
}
