"""The figure of any study with ``metrics=model_change``: validity after another training against distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from harness.core.errors import HarnessError
from harness.evaluation.contest import metrics_of
from harness.evaluation.scoring import NEAREST
from harness.evaluation.statistics import ENOUGH, comparable
from harness.evaluation.study import Study
from harness.reports.canvas import blank, legend_below
from harness.reports.drawing import Drawing
from harness.reports.page.charts import look
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAMILY = "retraining"
ACROSS = 3  # panels side by side


def measured(study: Study) -> pd.DataFrame:
    """Means over the questions that all methods answer, one row a task and method that has them.

    Where these are fewer than ``ENOUGH``, and of a method that answers less than half as many as another, means are
    over the questions that it answers itself. Columns: ``task``, ``method``; of the nearest counterfactual
    ``distance``, of the criterion proximity, and ``kept``, the validity after another training, of which each kind of
    retraining counts the same; ``least`` and ``most`` of these kinds; ``few``, whether the method answers so few;
    ``common``, whether the questions are those that all others answer, and ``n``, how many they are.

    Raises
    ------
    HarnessError
        Where no run has a distance and a validity after another training.
    """
    metrics = metrics_of(*study.runs)
    near = next((NEAREST + name for name, metric in metrics.items() if metric.criterion == "proximity"), None)
    changes = [NEAREST + name for name, metric in metrics.items() if metric.family == FAMILY]
    rows = []
    for task in study.tasks if near else ():
        tables = {entry.method: entry.table.reindex(columns=[near, *changes]) for entry in study.of_task(task)}
        coverage = {entry.method: entry.coverage.value for entry in study.of_task(task)}
        enough = comparable(pd.Series(coverage, dtype=float))
        distances = pd.DataFrame({method: tables[method][near] for method in enough}).dropna()
        for method, table in tables.items():
            common = method in enough and len(distances) >= ENOUGH
            means = (table.loc[distances.index] if common else table).mean()
            kinds = means[changes].dropna()
            if not kinds.empty:
                ends = {"kept": kinds.mean(), "least": kinds.min(), "most": kinds.max(), "few": method not in enough}
                n = len(distances) if common else int(table[near].notna().sum())
                rows.append({"task": task, "method": method, "distance": means[near], **ends, "common": common, "n": n})
    if not rows:
        raise HarnessError(
            "no run has an answer that was asked of retrained models; run the experiment with metrics=model_change, or "
            "again with rescore=true metrics=model_change."
        )
    return pd.DataFrame(rows)


def survival(found: Sequence[StoredRun]) -> Figure:
    """Validity after another training against distance, a panel a task, a marker a method.

    A marker is at the mean over the kinds of retraining, a line goes from the worst kind to the best. Hollow: the
    method answers less than half as many questions as another. Each title says over how many people means are.
    """
    study = Study.among("", found)
    points = measured(study)
    tasks = list(dict.fromkeys(points["task"]))
    columns = min(len(tasks), ACROSS)
    rows = -(-len(tasks) // columns)
    figure = blank(max(3.4 * columns, 5.0), 2.7 * rows + 1.2)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, task in zip(axes, tasks, strict=False):
        shown = points.loc[points["task"] == task]
        _panel(axis, shown, study.methods)
        axis.set_title(f"{task}\n{_people(shown)}", fontsize=9)
        axis.set_xlabel("mean distance", fontsize=8)
    for axis in axes[::columns]:
        axis.set_ylabel("valid after another training", fontsize=8)
    for axis in axes[len(tasks) :]:
        axis.set_axis_off()
    hollow = "\nhollow: answers less than half as many as another, over its own people" * bool(points["few"].any())
    figure.suptitle(f"Validity after another training: mean, worst and best kind of it{hollow}", fontsize=9)
    legend_below(figure, axes, columns=min(len(study.methods), 2 * columns), size=8)
    return figure


def _people(points: pd.DataFrame) -> str:
    """Over whom the means of a panel are, but for those of who answers few."""
    points = points.loc[points["few"] == points["few"].min()]
    low, high = points["n"].min(), points["n"].max()
    if points["common"].all():
        return f"the {low} people that all answer"
    return f"each method's own people, {low}" + (f" to {high}" if high > low else "")


def _panel(axis: Axes, points: pd.DataFrame, methods: Sequence[str]) -> None:
    looks = look(methods)
    for point in points.to_dict("records"):
        name, colour = point["method"], looks[point["method"]]["color"]
        axis.plot([point["distance"]] * 2, [point["least"], point["most"]], color=colour, lw=1.0, alpha=0.6)
        face = "white" if point["few"] else colour
        axis.scatter(
            point["distance"], point["kept"], s=30, marker=looks[name]["marker"], facecolors=face, edgecolors=colour,
            linewidths=1.0, label=name, zorder=3,
        )  # fmt: skip
    axis.set_ylim(-0.04, 1.04)
    axis.set_xlim(left=0.0)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)


FIGURES: dict[str, tuple[str, Drawing]] = {"model_change": ("model_change", survival)}
