"""The figure of how cost grows: seconds, memory and the share proven against the size of what is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.evaluation import scoring
from harness.evaluation.study import read_scores
from harness.reports.canvas import blank, legend_below, plain_logarithmic
from harness.reports.drawing import Drawing
from harness.reports.page.charts import look
from harness.reports.stored import unsized
from harness.store.run import StoredRun, method_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {
    "trees": "trees",
    "depth": "depth of the trees",
    "features": "features",
    "units": "ReLUs",
    "points": "rows that a hull is of",
    "people": "people asked at once; seconds are of all",
}
MEASURES = {"seconds": "seconds a question", "memory": "memory of the process, MiB", "proven": "share proven"}
BESIDE = 3  # axes, before the next go below
LEAST = {"seconds": 1e-4, "memory": 1.0}  # what is less is drawn here: no clock is finer


def measured(found: Sequence[StoredRun]) -> pd.DataFrame:
    """One row a run and axis that it has a place on.

    Columns: ``axis``, of ``AXES``; ``size``, the place on it; ``line``, method and kind of model; ``dataset``;
    ``seconds``, the median over the questions (the limit where none was accepted, unless there is proven to be none),
    or the mean over the groups;
    ``memory``, the most of a worker in MiB, NaN where it was not noted or another process did the work; ``proven``, a
    share of the questions or groups: an optimum, or that there is no counterfactual.
    A run whose model has a size (``model.size``) lies on the axis of trees where its depth is the most frequent one of
    the runs, on that of depth where its trees are, and on that of features where both are; one of groups on that of
    people; of networks (``model.size={units:50}``) on that of ReLUs; one with a number as ``reference`` on that of
    points.

    Raises
    ------
    HarnessError
        Where no axis has two different sizes.
    """
    rows = [row for run in found if scoring.refusal(run) is None for row in _of(run)]
    table = pd.DataFrame(rows, columns=["axis", "size", "trees", "depth", "line", "dataset", *MEASURES])
    sized = table.loc[table["trees"].notna()]
    kept = table["axis"].isin(["people", "units", "points"])
    if len(sized):
        usual = {name: sized[name].mode().iloc[-1] for name in ("trees", "depth")}
        same = {name: table[name] == value for name, value in usual.items()}
        kept |= (table["axis"] == "trees") & same["depth"] | (table["axis"] == "depth") & same["trees"]
        kept |= (table["axis"] == "features") & same["depth"] & same["trees"]
    table = table.loc[kept].drop(columns=["trees", "depth"])
    several = table.groupby("axis")["size"].transform("nunique") > 1
    if not several.any():
        raise HarnessError(
            "no two runs differ in trees, depth, features, ReLUs, points or people; run +experiment=scaling, whose "
            "models have sizes (model.size={trees:50,depth:5})."
        )
    return table.loc[several].sort_values(["axis", "size"], ignore_index=True)


def _of(run: StoredRun) -> list[dict[str, Any]]:
    """The rows of a run, one an axis, whichever these are in the end."""
    meta, scores = run.meta, read_scores(run)
    line, size = f"{method_of(meta)}, {unsized(meta)}", meta["config"].get("model", {}).get("size") or {}
    elsewhere = "model_seconds" in scores and scores["model_seconds"].notna().any()  # in a process of the method's own
    memory = float(scores["peak_mib"].max()) if "peak_mib" in scores and not elsewhere else math.nan
    row: dict[str, Any] = {"line": line, "dataset": meta["dataset"], "memory": memory, **size}
    if run.groups():
        groups = scoring.group_table(run)
        spent = {"seconds": groups["seconds"].mean(), "proven": groups["settled"].mean()}
        return [{**row, **spent, "axis": "people", "size": float(groups["size"].mean())}]
    points = meta["config"].get("reference")
    sizes = {"points": points} if isinstance(points, int) else {**size}
    if not sizes or not len(scores):
        return []
    none = {each["factual"]: each["seconds"] for each in run.rows() if each["status"] == Status.INFEASIBLE}
    seconds = scores["seconds"].where(~scores.index.isin(list(none)), scores.index.map(none))
    row |= {"seconds": seconds.median(), "proven": ((scores["optimal"] > 0) | scores.index.isin(list(none))).mean()}
    if "trees" in sizes:
        sizes["features"] = len(run.space.features)
    return [{**row, "axis": axis, "size": float(at)} for axis, at in sizes.items()]


def slope(points: pd.DataFrame, measure: str) -> float:
    """The power of the size with which a measure grows: least squares on logarithms, one factor a data set.

    Against features, which differ between data sets alone, the factor is common. NaN of fewer than three points, or
    where no size differs.
    """
    known = points.loc[points[measure].notna()]
    free = (points["axis"] == "features").all()
    if len(known) < 3 or known.groupby("axis" if free else "dataset")["size"].nunique().max() < 2:
        return math.nan
    x = np.log(known["size"].to_numpy())
    y = np.log(known[measure].clip(lower=LEAST[measure]).to_numpy())
    own = np.zeros(len(known), int) if free else pd.factorize(known["dataset"])[0]
    x, y = (values - (np.bincount(own, values) / np.bincount(own))[own] for values in (x, y))
    return float(x @ y / (x @ x))


def typical(points: pd.DataFrame, measure: str) -> pd.Series:
    """By size, the geometric mean over the data sets that a line has at each of its sizes; of shares the mean.

    Where no data set is at each of them, over all that there are.
    """
    known = points.loc[points[measure].notna()]
    wide = known.pivot_table(index="size", columns="dataset", values=measure)
    whole = wide.dropna(axis=1)
    wide = whole if whole.shape[1] else wide
    return wide.mean(axis=1) if measure == "proven" else np.exp(np.log(wide.clip(lower=LEAST[measure])).mean(axis=1))


def scaling(found: Sequence[StoredRun]) -> Figure:
    """A column an axis and a row a measure, ``BESIDE`` columns at once; a line a method and kind of model.

    In each panel are the powers of its lines.
    """
    table = measured(found)
    looks = look(list(dict.fromkeys(table["line"])))
    axes_shown = [axis for axis in AXES if axis in set(table["axis"])]
    measures = [measure for measure in MEASURES if table[measure].notna().any()]
    columns, blocks = min(len(axes_shown), BESIDE), -(-len(axes_shown) // BESIDE)
    figure = blank(3.3 * columns + 0.4, 2.2 * len(measures) * blocks + 1.2)
    panels = figure.subplots(len(measures) * blocks, columns, squeeze=False, sharey="row")
    for place, axis in enumerate(axes_shown):
        above = len(measures) * (place // columns)
        column = panels[above : above + len(measures), place % columns]
        for panel, measure in zip(column, measures, strict=True):
            _panel(panel, table.loc[table["axis"] == axis], measure, looks)
            panel.tick_params(labelbottom=measure == measures[-1])
            if place % columns == 0:
                panel.set_ylabel(MEASURES[measure], fontsize=8)
        column[-1].set_xlabel(AXES[axis], fontsize=8)
    for panel in panels[-len(measures) :, (len(axes_shown) - 1) % columns + 1 :].ravel():
        panel.set_axis_off()
    text = (
        "How cost grows: geometric means over data sets, of shares plain ones; ^ is the fitted power of what lies below"
    )
    figure.suptitle(text, fontsize=9)
    legend_below(figure, panels.ravel(), columns=min(len(looks), 3), size=8)
    return figure


def _panel(axis: Axes, table: pd.DataFrame, measure: str, looks: dict[str, dict[str, Any]]) -> None:
    powers = []
    for line, points in table.groupby("line", sort=False):
        shown = typical(points, measure)
        if not len(shown):
            continue
        style = {"color": looks[str(line)]["color"], "marker": looks[str(line)]["marker"]}
        joined = "none" if (table["axis"] == "features").all() else looks[str(line)]["linestyle"]
        axis.plot(shown.index, shown, label=str(line), linestyle=joined, lw=1.2, markersize=4, **style)
        power = math.nan if measure == "proven" else slope(points, measure)
        powers += [] if math.isnan(power) else [(f"^{power:.1f}", style["color"])]
    sizes = np.unique(table["size"])
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=0 if len(sizes) < 8 else 90)
    axis.set_xticks([], minor=True)
    if measure == "proven":
        axis.set_ylim(-0.04, 1.04)
    else:
        axis.margins(y=0.25)
        plain_logarithmic(axis)
    for place, (text, colour) in enumerate(powers):
        axis.text(
            0.03 + 0.16 * (place % 6), 0.95 - 0.09 * (place // 6), text, color=colour, fontsize=7, va="top",
            transform=axis.transAxes,
        )  # fmt: skip
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)


FIGURES: dict[str, tuple[str, Drawing]] = {"scaling": ("scaling", scaling)}
