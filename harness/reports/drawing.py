"""What figures of several papers draw: bars of measures, and a plane with its decision boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.spatial import ConvexHull

from harness.core.errors import HarnessError
from harness.reports import registry
from harness.reports.canvas import BLUE, COLOURS, GREEN, ORANGE, RED, SKY, blank, legend_below
from harness.reports.comparison import Comparison
from harness.reports.stored import data_of
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Drawing = Callable[[Sequence[StoredRun]], "Figure"]

HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "--")
GRID = 700  # points a side on which a model's boundary is looked for


PANELS = ("published", "ours")


def rescaled(table: Comparison, lines: pd.DataFrame, where: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Each measure from 0, worst, to 1, best: a share as it is, any other between the worst and best of both panels.

    Parameters
    ----------
    lines
        What ``table.compare`` gives.
    where
        The block of the table, by key.

    Returns
    -------
    ``published`` and ``ours``: one row a method, in the order of the table, one column a measure; NaN where a method
    was not run.
    """
    for key, value in where.items():
        lines = lines.loc[lines[key] == value]
    scaled: dict[str, dict[str, pd.Series]] = {panel: {} for panel in PANELS}
    for measure in table.measures:
        block = lines.loc[lines["measure"] == measure].set_index("method")
        values = block[list(PANELS)].astype(float)
        low, high = values.min(axis=None), values.max(axis=None)
        if not (low >= 0.0 and high <= 1.0):
            values = (values - low) / (high - low) if high > low else values * 0.0 + 1.0
        if block["better"].max() == "lower":
            values = 1.0 - values
        for panel in PANELS:
            scaled[panel][measure] = values[panel]
    return {panel: pd.DataFrame(columns) for panel, columns in scaled.items()}


def performance(found: Sequence[StoredRun], table: str, where: Mapping[str, str], title: str) -> Figure:
    """Grouped bars, longer is better: each measure of a block of a table, published above ours."""
    comparison = registry.known()[table]
    assert isinstance(comparison, Comparison)
    panels = rescaled(comparison, comparison.compare(found), where)
    figure = blank(9.0, 6.4)
    axes = figure.subplots(len(panels), 1, sharex=True)
    for axis, (name, scaled) in zip(axes, panels.items(), strict=True):
        _bars(axis, scaled)
        axis.set_title(name, loc="left", fontsize=10)
    figure.suptitle(title, fontsize=11)
    legend_below(figure, axes[:1])
    return figure


def _bars(axis: Axes, scaled: pd.DataFrame) -> None:
    width = 0.84 / len(scaled)
    places = np.arange(len(scaled.columns), dtype=float)
    for number, (method, heights) in enumerate(scaled.iterrows()):
        at = places + (number - (len(scaled) - 1) / 2) * width
        bars = axis.bar(at, heights.fillna(0.0), width * 0.9, label=str(method), color=COLOURS[number % len(COLOURS)])
        for bar in bars:
            bar.set(hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.5)
        for place, height in zip(at, heights, strict=True):
            mark = "n/a" if np.isnan(height) else "0" if height < 0.005 else ""
            axis.text(place, 0.01, mark, ha="center", va="bottom", fontsize=6.5, color="#444444")
    axis.set_xticks(places, [str(name).replace("_", "\n", 1) for name in scaled.columns], fontsize=9)
    axis.set_ylim(0, 1.05)
    axis.set_yticks([0, 0.5, 1], ["worst", "", "best"], fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)


def plane(found: Sequence[StoredRun], methods: Mapping[str, str], title: str) -> Figure:
    """Two numbers of a dataset: its rows, the model's boundary, the hull of the desired class, factual and answers.

    Parameters
    ----------
    methods
        Name of a method, and the title of its panel, which are drawn side by side on the same axes.

    Raises
    ------
    HarnessError
        For a run without exactly two features, both numbers.
    """
    by_method = {run.meta["method"]: run for run in found}
    drawn = {name: by_method[name] for name in methods if name in by_method}
    if not drawn:
        raise HarnessError(f"none of {', '.join(methods)} has finished; run the experiment to its end.")
    figure = blank(5.2 * len(drawn), 5.0)
    axes = figure.subplots(1, len(drawn), sharex=True, sharey=True, squeeze=False)[0]
    points = pd.concat([_points(run) for run in drawn.values()])
    for axis, (name, run) in zip(axes, drawn.items(), strict=True):
        _plane(axis, run, points)
        axis.set_title(methods[name], fontsize=10)
    axes[0].set_ylabel(str(points.columns[1]))
    figure.suptitle(title, fontsize=11)
    legend_below(figure, axes[:1], columns=4)
    return figure


def two_numbers(run: StoredRun) -> tuple[str, str]:
    """Names of the two features of a run, which span a plane.

    Raises
    ------
    HarnessError
        For a run without exactly two features, both numbers.
    """
    names = run.space.names
    if len(names) != 2 or not all(feature.numeric for feature in run.space.features):
        raise HarnessError(f"{run.label} has the features {', '.join(names)}; a plane has two numbers.")
    return names[0], names[1]


def _points(run: StoredRun) -> pd.DataFrame:
    """Factuals, then counterfactuals."""
    factuals, _ = run.factuals()
    return pd.concat([factuals, run.space.frame(row["row"] for row in run.rows() if row["row"] is not None)])


def _plane(axis: Axes, run: StoredRun, shown: pd.DataFrame) -> None:
    """One panel; ``shown`` are points that must be within the axes."""
    across, up = two_numbers(run)
    data, (factuals, targets) = data_of(run), run.factuals()
    target = targets[factuals.index[0]]
    wanted = data.labels == getattr(target, "value", None)
    train = data.frame.iloc[data.train]
    good = wanted[data.train]
    every = pd.concat([train, shown])
    ends = [(every[name].min(), every[name].max()) for name in (across, up)]
    (left, right), (bottom, top) = ((low - 0.05 * (high - low), high + 0.05 * (high - low)) for low, high in ends)
    xs, ys = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid = pd.DataFrame({across: xs.ravel(), up: ys.ravel()})
    accepted = target.holds(run.classifier, grid).reshape(xs.shape)
    axis.contourf(xs, ys, accepted, levels=[0.5, 1.5], colors=[SKY], alpha=0.22)
    axis.contour(xs, ys, accepted, levels=[0.5], colors=["#444444"], linewidths=1.2)
    axis.plot([], [], color="#444444", linewidth=1.2, label="decision boundary")
    for mask, colour, marker, name in ((~good, RED, "x", "other"), (good, BLUE, "o", "desired class")):
        axis.scatter(train[across][mask], train[up][mask], s=9, c=colour, marker=marker, alpha=0.35, lw=0.7, label=name)
    which = run.meta["config"].get("reference", "train")
    span = data.train if which == "train" else np.arange(len(data.frame))[: None if which == "all" else which]
    rows = data.frame.iloc[span[wanted[span]]][[across, up]].to_numpy(float)
    around = ConvexHull(rows).vertices
    corners = rows[np.append(around, around[0])]
    axis.plot(*corners.T, color=GREEN, linestyle="--", linewidth=1.5, label="hull of the desired class")
    found = _points(run).iloc[len(factuals) :]
    for origin in factuals[[across, up]].to_numpy(float):
        for point in found[[across, up]].to_numpy(float):
            axis.annotate("", point, origin, arrowprops={"arrowstyle": "->", "color": "black", "lw": 1.3})
    axis.scatter(
        factuals[across], factuals[up], s=90, c="white", edgecolors="black", marker="s", zorder=5, label="factual"
    )
    axis.scatter(
        found[across], found[up], s=150, c=ORANGE, edgecolors="black", marker="*", zorder=6, label="counterfactual"
    )
    axis.set_xlabel(across)
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)
