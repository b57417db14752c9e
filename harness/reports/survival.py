"""The figure of any study with ``metrics=model_change``: validity after another training against distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.evaluation.contest import metrics_of
from harness.evaluation.statistics import comparable
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
    """Means over the questions that each method answers, one row a task and method that has them.

    Columns: ``task``, ``method``; ``distance`` of the criterion proximity; ``kept``, the validity after another
    training, of which each kind of retraining counts the same; ``least`` and ``most`` of these kinds; ``few``, whether
    the method answers less than half as many questions as another.

    Raises
    ------
    HarnessError
        Where no run has a distance and a validity after another training.
    """
    metrics = metrics_of(*study.runs)
    near = next((name for name, metric in metrics.items() if metric.criterion == "proximity"), None)
    changes = [name for name, metric in metrics.items() if metric.family == FAMILY]
    rows = []
    for task in study.tasks if near else ():
        entries = study.of_task(task)
        enough = comparable(pd.Series({entry.method: entry.coverage.value for entry in entries}, dtype=float))
        for entry in entries:
            kinds = np.array([entry.mean(name).value for name in changes], dtype=float)
            kinds = kinds[np.isfinite(kinds)]
            if kinds.size:
                ends = {"kept": kinds.mean(), "least": kinds.min(), "most": kinds.max()}
                found = {"task": task, "method": entry.method, "distance": entry.mean(str(near)).value, **ends}
                rows.append({**found, "few": entry.method not in enough})
    if not rows:
        raise HarnessError(
            "no run has an answer that was asked of retrained models; run the experiment with metrics=model_change, or "
            "again with rescore=true metrics=model_change."
        )
    return pd.DataFrame(rows)


def survival(found: Sequence[StoredRun]) -> Figure:
    """Validity after another training against distance, a panel a task, a marker a method.

    A marker is at the mean over the kinds of retraining, a line goes from the worst kind to the best. Hollow: the
    method answers less than half as many questions as another.
    """
    study = Study.among("", found)
    points = measured(study)
    tasks = list(dict.fromkeys(points["task"]))
    columns = min(len(tasks), ACROSS)
    rows = -(-len(tasks) // columns)
    figure = blank(max(3.4 * columns, 5.0), 2.7 * rows + 1.2)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, task in zip(axes, tasks, strict=False):
        _panel(axis, points.loc[points["task"] == task], study.methods)
        axis.set_title(task, fontsize=9)
        axis.set_xlabel("mean distance", fontsize=8)
    for axis in axes[::columns]:
        axis.set_ylabel("valid after another training", fontsize=8)
    for axis in axes[len(tasks) :]:
        axis.set_axis_off()
    hollow = "\nhollow: answers less than half as many questions as another" * bool(points["few"].any())
    figure.suptitle(f"Validity after another training: mean, worst and best kind of it{hollow}", fontsize=9)
    legend_below(figure, axes, columns=min(len(study.methods), 2 * columns), size=8)
    return figure


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
