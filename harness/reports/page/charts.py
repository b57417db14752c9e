"""Figures of a comparison, in colours that every kind of vision tells apart, never distinguished by colour alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.wording import number
from harness.evaluation.contest import Contest, Criterion, Standing
from harness.evaluation.statistics import LEVEL, posthocs
from harness.evaluation.study import Study
from harness.reports.canvas import add_rectangle, blank, legend_below
from harness.reports.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, SKY, "#000000", GREY)
MARKERS = "osD^vPX*<>hp"
DASHES = ("-", "--", ":", "-.")
SHORT = 14  # characters of a value in a cell
TINY = 1e-12  # distances below are as good as none


def look(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash of each method: the same in every figure, no two alike."""
    pairs = product(range(len(DASHES)), range(len(COLOURS)))
    return {
        name: {"color": COLOURS[c], "marker": MARKERS[(c + 3 * d) % len(MARKERS)], "linestyle": DASHES[d]}
        for name, (d, c) in zip(methods, pairs, strict=False)
    }


def tradeoff(study: Study, across: Criterion, up: Criterion) -> Figure:
    """Means of two criteria over accepted answers, one panel a task; a line joins what nothing beats in both."""
    panels = study.tasks
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = blank(4.2 * columns, 3.4 * rows + 1.2)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    looks = look(study.methods)
    for axis, panel in zip(axes, panels, strict=False):
        means = {e.method: [e.mean(c.metric).value for c in (across, up)] for e in study.of_task(panel)}
        shown = pd.DataFrame.from_dict(means, orient="index", columns=["x", "y"]).dropna()
        for name, row in shown.iterrows():
            style = {key: looks[str(name)][key] for key in ("color", "marker")}
            axis.scatter(row["x"], row["y"], s=64, label=name, edgecolors="white", linewidths=0.6, **style)
        front = pareto(shown["x"], shown["y"], across.better, up.better)
        where = "post" if across.better != up.better else "pre"
        axis.step(front["x"], front["y"], where=where, color=GREY, lw=1.2, zorder=0)
        axis.set_title(panel, fontsize=10)
        axis.set_xlabel(f"{across.name} ({across.better} is better)", fontsize=9)
        axis.set_ylabel(f"{up.name} ({up.better} is better)", fontsize=9)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    legend_below(figure, axes, columns=_columns(figure))
    return figure


def pareto(x: pd.Series, y: pd.Series, better_x: str, better_y: str) -> pd.DataFrame:
    """The points that no other point equals or beats in both and beats in one, by ascending x.

    >>> x, y = pd.Series([1.0, 2, 3, 2.5], name="cost"), pd.Series([1.0, 3, 2, 3.5], name="use")
    >>> pareto(x, y, "lower", "higher").values.tolist()
    [[1.0, 1.0], [2.0, 3.0], [2.5, 3.5]]
    """
    a = np.where(better_x == "lower", 1, -1) * x.to_numpy()
    b = np.where(better_y == "lower", 1, -1) * y.to_numpy()
    no_worse = (a[:, None] <= a) & (b[:, None] <= b)
    beaten = (no_worse & ((a[:, None] < a) | (b[:, None] < b))).any(axis=0)
    return pd.DataFrame({x.name: x[~beaten], y.name: y[~beaten]}).sort_values(by=[str(x.name), str(y.name)])


def profile(study: Study, found: Sequence[Contest]) -> Figure:
    """Share of questions answered within a factor of the nearest answer, and within so many seconds.

    Over the tasks that a method takes. Questions without an accepted counterfactual are never reached: a curve ends
    below 1 by their share.

    Parameters
    ----------
    found
        The contests by proximity, one a task.
    """
    figure = blank(10.5, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    looks = look(study.methods)
    ratios, seconds = reached(study, found)
    for axis, curves, label in ((left, ratios, "times the nearest"), (right, seconds, "seconds per question")):
        finite = np.concatenate([values[np.isfinite(values)] for values in curves.values()])
        end = max(float(finite.max()), 1.0) if finite.size else 1.0
        for name, values in curves.items():
            known = np.sort(values[np.isfinite(values)])
            steps = np.arange(1, len(known) + 1) / max(len(values), 1)
            last = len(known) / max(len(values), 1)
            style = {key: looks[name][key] for key in ("color", "linestyle")}
            axis.step(np.append(known, end), np.append(steps, last), where="post", label=name, lw=1.8, **style)
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.grid(alpha=0.25)
    left.set_ylabel("share of questions")
    left.set_ylim(0, 1.02)
    legend_below(figure, [left], columns=_columns(figure))
    return figure


def reached(study: Study, found: Sequence[Contest]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By method, of each question it is asked: times the nearest answer, and seconds; infinite without an answer."""
    ratios: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for contest in found:
        best = contest.values.min(axis=1)
        for entry in study.of_task(contest.task):
            values = contest.values[entry.method]
            ratios.setdefault(entry.method, []).extend(((values + TINY) / (best + TINY)).fillna(np.inf))
            spent = entry.table["seconds"].where(entry.answered).reindex(values.index)
            seconds.setdefault(entry.method, []).extend(spent.fillna(np.inf))
    return tuple({name: np.array(each) for name, each in kind.items()} for kind in (ratios, seconds))  # type: ignore[return-value]


def critical(standing: Standing) -> Figure:
    """Mean ranks on a line; a bar joins methods that Nemenyi's test does not tell apart."""
    assert standing.test is not None
    names = list(standing.test.pairs.columns)
    ranks = standing.mean_ranks[names].sort_values(kind="stable")
    figure = blank(9.0, 1.6 + 0.24 * len(ranks))
    axis = figure.subplots()
    looks = look([str(name) for name in standing.ranks.columns])
    posthocs().critical_difference_diagram(
        ranks, standing.test.pairs, ax=axis, alpha=LEVEL,
        color_palette={name: looks[name]["color"] for name in names}, label_fmt_left="{label}  {rank:.2f} ",
        label_fmt_right=" {rank:.2f}  {label}", text_h_margin=0.3,
    )  # fmt: skip
    title = f"{standing.criterion.name}: mean rank over {len(standing.ranks)} data sets (p = {standing.test.p:.1g})"
    axis.set_title(title, fontsize=10)
    return figure


def heat(standings: Mapping[str, Standing]) -> Figure:
    """Methods × criteria, each cell the mean normalised rank; dark is good."""
    table = pd.DataFrame({name: standing.mean_ranks for name, standing in standings.items()})
    table = table.loc[table.mean(axis=1).sort_values().index]
    figure = blank(2.4 + 1.25 * table.shape[1], 1.2 + 0.36 * len(table))
    axis = figure.subplots()
    axis.imshow(table.to_numpy(), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(range(table.shape[1]), table.columns)
    axis.set_yticks(range(len(table)), table.index)
    axis.tick_params(length=0)
    axis.xaxis.tick_top()
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        shade = "white" if value < 0.55 else "black"
        axis.text(j, i, "–" if np.isnan(value) else f"{value:.2f}", ha="center", va="center", color=shade, fontsize=9)
    return figure


def strip(factual: pd.Series, rows: Mapping[str, Mapping[str, Any] | None], names: Sequence[str]) -> Figure:
    """What each method changes of one factual: a row a method, a column a feature that any of them changes.

    Parameters
    ----------
    rows
        First counterfactual by method, None where there is none.
    names
        All features, in order.
    """
    changed = [n for n in names if any(row is not None and row[n] != factual[n] for row in rows.values())]
    figure = blank(2.6 + 1.25 * max(len(changed), 2), 1.3 + 0.34 * (len(rows) + 1))
    axis = figure.subplots()
    axis.set_xlim(-0.5, max(len(changed), 1) - 0.5)
    axis.set_ylim(len(rows) + 0.5, -0.5)
    for j, name in enumerate(changed):
        axis.text(j, 0, _short(factual[name]), ha="center", va="center", fontsize=8)
        for i, row in enumerate(rows.values(), start=1):
            if row is not None and row[name] != factual[name]:
                add_rectangle(axis, (j - 0.48, i - 0.42), 0.96, 0.84, color=SKY, alpha=0.45, lw=0)
                axis.text(j, i, _short(row[name]), ha="center", va="center", fontsize=8)
    for i, row in enumerate(rows.values(), start=1):
        if row is None:
            axis.text(-0.4, i, "none found", va="center", fontsize=8, style="italic", color="#555555")
    axis.axhline(0.5, color="black", lw=0.8)
    axis.set_xticks(range(len(changed)), [_short(name) for name in changed], rotation=30, ha="left", fontsize=8)
    axis.xaxis.tick_top()
    axis.set_yticks(range(len(rows) + 1), [f"factual {factual.name}", *rows], fontsize=9)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    return figure


def _short(value: Any) -> str:
    text = number(value)
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def _columns(figure: Figure) -> int:
    """How many names of methods fit side by side below a figure."""
    return max(1, int(figure.get_figwidth() // 2.0))
