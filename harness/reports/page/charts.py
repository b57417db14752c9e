"""Figures of a comparison, in colours that every kind of vision tells apart, never distinguished by colour alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.wording import number
from harness.reports.canvas import add_rectangle, blank, legend_below
from harness.reports.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY
from harness.reports.page.results import ACCEPTED, Results
from harness.reports.page.statistics import LEVEL, Ranking, posthocs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, SKY, "#000000", GREY)
MARKERS = "osD^vPX*<>hp"
DASHES = ("-", "--", ":", "-.")
SHORT = 14  # characters of a value in a cell


def look(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash of each method: the same in every figure, no two alike."""
    pairs = product(range(len(DASHES)), range(len(COLOURS)))
    return {
        name: {"color": COLOURS[c], "marker": MARKERS[(c + 3 * d) % len(MARKERS)], "linestyle": DASHES[d]}
        for name, (d, c) in zip(methods, pairs, strict=False)
    }


def tradeoff(results: Results, across: tuple[str, str], up: tuple[str, str]) -> Figure:
    """Means of two metrics, one panel a model; a line joins what no method beats in both.

    Parameters
    ----------
    across, up
        Metric and which way is better.
    """
    panels = [(d, m) for d, m in product(results.among("dataset"), results.among("model"))]
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = blank(4.2 * columns, 3.4 * rows + 1.2)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    looks = look(results.among("method"))
    means = results.scores.groupby(["dataset", "model", "method"], sort=False).mean(numeric_only=True)
    for axis, panel in zip(axes, panels, strict=False):
        shown = means.xs(panel, level=("dataset", "model")).dropna(subset=[across[0], up[0]])
        for name, row in shown.iterrows():
            style = {key: looks[str(name)][key] for key in ("color", "marker")}
            axis.scatter(row[across[0]], row[up[0]], s=64, label=name, edgecolors="white", linewidths=0.6, **style)
        front = pareto(shown[across[0]], shown[up[0]], across[1], up[1])
        axis.step(
            front[across[0]], front[up[0]], where="post" if across[1] != up[1] else "pre", color=GREY, lw=1.2, zorder=0
        )
        axis.set_title(" / ".join(panel), fontsize=10)
        axis.set_xlabel(f"{across[0]} ({across[1]} is better)", fontsize=9)
        axis.set_ylabel(f"{up[0]} ({up[1]} is better)", fontsize=9)
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


def profile(results: Results, metric: str) -> Figure:
    """Share of factuals answered within a factor of the best method's ``metric``, and within so many seconds.

    Factuals without an accepted counterfactual are never reached: a curve ends below 1 by their share.
    """
    methods = results.general
    figure = blank(10.5, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    looks = look(results.among("method"))
    quality = results.matrix(metric, methods, "lower")
    best = quality.min(axis=1)
    ratio = (quality + 1e-12).div(best + 1e-12, axis=0).where(np.isfinite(quality), np.inf)
    block = list(quality.index.names)
    scores = results.scores.loc[results.scores["method"].isin(methods)].copy()
    scores.loc[scores[ACCEPTED] == 0, "seconds"] = np.inf
    seconds = scores.pivot_table(index=block, columns="method", values="seconds", aggfunc="mean")
    for axis, table, label in ((left, ratio, f"{metric}: times the best"), (right, seconds, "seconds per factual")):
        finite = table.to_numpy()[np.isfinite(table.to_numpy())]
        end = max(float(finite.max()), 1.0) if finite.size else 1.0
        for name in methods:
            reached = np.sort(table[name].to_numpy())
            reached = reached[np.isfinite(reached)]
            steps = np.arange(1, len(reached) + 1) / len(table)
            last = len(reached) / len(table)
            style = {key: looks[name][key] for key in ("color", "linestyle")}
            axis.step(np.append(reached, end), np.append(steps, last), where="post", label=name, lw=1.8, **style)
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.grid(alpha=0.25)
    left.set_ylabel("share of factuals")
    left.set_ylim(0, 1.02)
    legend_below(figure, [left], columns=_columns(figure))
    return figure


def critical(ranking: Ranking, title: str) -> Figure:
    """Mean ranks on a line; a bar joins methods that Nemenyi's test does not tell apart."""
    figure = blank(9.0, 1.6 + 0.24 * len(ranking.ranks))
    axis = figure.subplots()
    looks = look(list(ranking.ranks.index))
    posthocs().critical_difference_diagram(
        ranking.ranks, ranking.pairs.fillna(1.0), ax=axis, alpha=LEVEL,
        color_palette={name: style["color"] for name, style in looks.items()}, label_fmt_left="{label}  {rank:.2f} ",
        label_fmt_right=" {rank:.2f}  {label}", text_h_margin=0.3,
    )  # fmt: skip
    axis.set_title(f"{title}: mean rank over {ranking.blocks} blocks (p = {ranking.p:.1g})", fontsize=10)
    return figure


def heat(rankings: Mapping[str, Ranking], methods: Sequence[str]) -> Figure:
    """Methods × requirements, each cell the mean rank; dark is good."""
    table = pd.DataFrame({name: ranking.ranks for name, ranking in rankings.items()}).reindex(list(methods))
    table = table.loc[table.mean(axis=1).sort_values().index]
    figure = blank(2.4 + 1.25 * table.shape[1], 1.2 + 0.36 * len(table))
    axis = figure.subplots()
    axis.imshow(table.to_numpy(), cmap="cividis", vmin=1, vmax=len(table), aspect="auto")
    axis.set_xticks(range(table.shape[1]), table.columns)
    axis.set_yticks(range(len(table)), table.index)
    axis.tick_params(length=0)
    axis.xaxis.tick_top()
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        shade = "white" if value < 0.55 * len(table) else "black"
        axis.text(j, i, "–" if np.isnan(value) else f"{value:.1f}", ha="center", va="center", color=shade, fontsize=9)
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
