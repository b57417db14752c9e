"""Figures of the paper on one-for-many counterfactuals, drawn from our runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from harness.core.errors import HarnessError
from harness.core.space import Feature
from harness.reports.canvas import COLOURS, GREEN, blank, shades
from harness.reports.drawing import Drawing
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat_map(found: Sequence[StoredRun], title: str) -> Figure:
    """Explanations as rows, columns as the model has them: filled where the column is 1, a dot where the feature is one
    that the explanation's factuals change.

    Raises
    ------
    HarnessError
        Without a group that has explanations.
    """
    run = found[0]
    line = next((line for line in run.groups() if line["points"]), None)
    if line is None:
        raise HarnessError(f"{run.label} has no explanations of a group to draw; run it with group=true.")
    space = run.space
    values = space.encode(space.frame(line["points"]))
    points = len(values)
    figure = blank(1.8 + 0.42 * len(space.columns), 2.6 + 0.42 * points)
    axis = figure.subplots()
    axis.pcolormesh(values, cmap=shades(GREEN), vmin=0.0, vmax=1.0, edgecolors="#888888", linewidth=0.6)
    for point, changed in enumerate(line["changed"]):
        for feature, columns in zip(space.features, space.slices, strict=True):
            if feature.name in changed:
                places = np.arange(columns.start, columns.stop) + 0.5
                axis.scatter(places, np.full(len(places), point + 0.5), s=14, c="black", zorder=3)
    for columns in space.slices[1:]:
        axis.axvline(columns.start, color="black", linewidth=1.4)
    served = Counter(row["point"] for row in run.rows() if row["row"] is not None)
    axis.set_yticks(np.arange(points) + 0.5, [f"{point + 1} (serves {served[point]})" for point in range(points)])
    names = [text for feature in space.features for text in _columns(feature)]
    axis.set_xticks(np.arange(len(names)) + 0.5, names, rotation=90, fontsize=8)
    axis.tick_params(length=0)
    axis.invert_yaxis()
    axis.set_title(f"{title}\ngreen: 1, white: 0, dots: features that the served ones change", fontsize=9)
    return figure


def _columns(feature: Feature) -> list[str]:
    """What a 1 in each column of a feature says: of a binary feature, its second category."""
    shown = feature.categories if feature.width > 1 else feature.categories[-1:]
    return [f"{feature.name} {category}" for category in shown]


def perturbed(found: Sequence[StoredRun], title: str) -> Figure:
    """How often each feature changes, over all explanations of ours, stacked by T_max; the paper shows no axis.

    Raises
    ------
    HarnessError
        Without such runs.
    """
    counts: dict[int, Counter[str]] = {}
    names: tuple[str, ...] = ()
    for run in found:
        method = run.meta["config"]["method"]
        if method.get("solver") != "cells":
            continue
        names = run.space.names
        counter = counts.setdefault(method["t_max"], Counter())
        for line in run.groups():
            counter.update(name for changed in line["changed"] for name in changed)
    if not counts:
        raise HarnessError("no cell of method=column_generation has finished; run the experiment to its end.")
    total = sum(counts.values(), Counter[str]())
    order = sorted(names, key=lambda name: (-total[name], names.index(name)))
    figure = blank(7.0, 1.6 + 0.24 * len(order))
    axis = figure.subplots()
    left = np.zeros(len(order))
    for place, most in enumerate(sorted(counts)):
        widths = np.array([counts[most][name] for name in order], dtype=float)
        axis.barh(np.arange(len(order)), widths, left=left, color=COLOURS[place], label=f"$T_{{max}}$ = {most}")
        left += widths
    axis.set_yticks(np.arange(len(order)), order, fontsize=8)
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.set_xlabel("explanations that change the feature")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="lower right")
    axis.set_title(title, fontsize=10)
    return figure


_DRAWN = {3: "COMPAS", 4: "German credit", 5: "students"}
FIGURES: dict[str, tuple[str, Drawing]] = {
    **{
        f"cg_figure{place}": (
            f"figure{place}",
            partial(heat_map, title=f"Figure {place}: explanations for COMPAS, network, |S| = {size}, $T_{{max}}$ = 3"),
        )
        for place, size in ((1, 10), (2, 20))
    },
    **{
        f"cg_figure{place}": (
            f"figure{place}",
            partial(perturbed, title=f"Figure {place}: how often each feature changes, {name}, network"),
        )
        for place, name in _DRAWN.items()
    },
}
