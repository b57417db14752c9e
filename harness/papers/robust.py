"""Robust regions: Maragno, Kurtz, Röber, Goedhart, Birbil and den Hertog (2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.certificate import Ball, checker
from harness.core.errors import HarnessError
from harness.core.explanation import Reason
from harness.data import load_dataset
from harness.reports.claim import Claim, Numbers, Verdict
from harness.reports.comparison import paired
from harness.reports.drawing import BLUE, COLOURS, GREY, ORANGE, SKY, Drawing
from harness.reports.markup import DASH, markdown, number
from harness.reports.registry import Table
from harness.reports.stored import PUBLISHED
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PAPER = (
    "Maragno, Kurtz, Röber, Goedhart, Birbil and den Hertog (2024), Finding regions of counterfactual explanations via "
    "robust optimization"
)
DATASETS = {"banknote": "banknote", "diabetes": "pima_robust", "ionosphere": "ionosphere"}
MODELS = {
    ("linear", "ElasticNet"): "robust_lr",
    **{("dt", f"max depth: {depth}"): f"robust_cart_{depth}" for depth in (3, 5, 10)},
    **{("rf", f"# est.: {size}"): f"robust_rf_{size}" for size in (5, 10, 20, 50, 100)},
    **{("gbm", f"# est.: {size}"): f"robust_gbm_{size}" for size in (5, 10, 20, 50, 100)},
    ("nn", "(10,)"): "robust_mlp_10",
    ("nn", "(10, 10, 10)"): "robust_mlp_10_10_10",
    ("nn", "(50,)"): "robust_mlp_50",
    ("nn", "(100,)"): "robust_mlp_100",
}
TABLE_3 = {"nn(10)": "robust_mlp_10", "nn(50)": "robust_mlp_50"}
TABLE_4 = {
    "lr": "robust_lr", **{f"cart_{depth}": f"robust_cart_{depth}" for depth in (3, 5, 10)},
    **{f"{kind}_{size}": f"robust_{kind}_{size}" for kind in ("rf", "gbm") for size in (5, 10, 20, 50, 100)},
    "nn_10": "robust_mlp_10", "nn_10_10_10": "robust_mlp_10_10_10", "nn_50": "robust_mlp_50",
    "nn_100": "robust_mlp_100",
}  # fmt: skip
ALGORITHMS = {"adversarial": "paper_algorithm", "leaf": "leaf"}  # of ours, besides the default
PREFIXES = ("paper_algorithm", "ours")
BASELINE = "adversarial_recourse"
SHORT = 1e-6  # relative, by which a radius may fall short of rho in Table 3
SECONDS = 60.0  # for the certificate of one answer
CAPTIONS = {"auto": "cells (exact)", "adversarial": "Algorithm 1 (exact)", "leaf": "one leaf (heuristic)"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SIDE = 400  # points a side on which a model's classes are drawn


@dataclass(frozen=True)
class Runs:
    """Seconds, iterations and early stops of every model, published beside ours.

    Parameters
    ----------
    number
        Of the published table: 1 for the box, 2 for the ball.
    norm
        ``linf`` or ``l2``.
    """

    number: int
    norm: str
    published: str = "robust_tables1_2.csv"

    @property
    def title(self) -> str:
        return f"Table {self.number} of {PAPER}"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / self.published)
        published = published.loc[published["table"] == self.number]
        ran = {_place(cell): cell for cell in found}
        records = []
        for row in published.to_dict("records"):
            key = DATASETS[str(row["dataset"])], MODELS[str(row["model"]), str(row["spec"])], float(row["rho"])
            record = {str(name): value for name, value in row.items()}
            for prefix in ("ours", *ALGORITHMS.values()):
                cell = ran.get((*key, self.norm, prefix))
                if cell is not None:
                    record |= {f"{prefix}_{name}": value for name, value in runs(cell).items()}
            records.append(record)
        lines = pd.DataFrame(records)
        return f"{self._markdown(lines)}\n{self._notes()}", lines

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Published numbers beside those of the paper's own algorithm here; of the default one where it was not run."""
        names = {"seconds": "mean", "iterations": "iterations", "early_stops_of_20": "stopped"}
        wide = lines.copy()
        for name in names.values():
            both = (lines.get(f"{prefix}_{name}", pd.Series(math.nan, lines.index)) for prefix in PREFIXES)
            wide[f"here_{name}"] = next(both).fillna(next(both))
        default = wide.get("paper_algorithm_asked", pd.Series(math.nan, lines.index)).isna()
        wide.loc[default, "here_iterations"] = math.nan  # it has none that compare
        columns = {published: f"here_{name}" for published, name in names.items()}
        return paired(wide, ["rho", "dataset", "model", "spec"], columns)

    def _markdown(self, lines: pd.DataFrame) -> str:
        head = [
            "ρ", "dataset", "model", "published s", "iterations", "early stops of 20",
            "ours median s", "max s", "proven", "regions", "Algorithm 1: s", "iterations", "early stops",
        ]  # fmt: skip
        body = []
        for row in lines.to_dict("records"):
            line = {str(name): value for name, value in row.items()}
            body.append(
                [
                    line["rho"], line["dataset"], f"{line['model']} {line['spec']}", _number(line, "seconds"),
                    _number(line, "iterations"), _number(line, "early_stops_of_20", 0), _number(line, "ours_median", 3),
                    _number(line, "ours_worst", 3), _share(line, "ours", "proven"), _share(line, "ours", "certified"),
                    _number(line, "paper_algorithm_mean"), _number(line, "paper_algorithm_iterations"),
                    _share(line, "paper_algorithm", "stopped"),
                ]
            )  # fmt: skip
        return markdown(head, body)

    @staticmethod
    def _notes() -> str:
        notes = (
            "*published*: mean seconds and iterations of runs that did not stop early at 1,000 s; the authors' code "
            "solves each problem twice within the time that it measures.",
            "*ours*: the default algorithm, all factuals; *proven*: optimal, with a proof; *regions*: certified by the "
            "checker, which shares no search with any method.",
            "*Algorithm 1*: the paper's own, on HiGHS; seconds and iterations of runs that did not stop early.",
        )
        return "".join(f"- {note}\n" for note in notes)


def _place(cell: StoredRun) -> tuple[str, str, float, str, str]:
    method = cell.meta["config"]["method"]
    kind = ALGORITHMS.get(method.get("algorithm"), "ours")
    return cell.meta["dataset"], cell.meta["model"], float(method.get("rho") or 0.0), method.get("norm", ""), kind


def runs(cell: StoredRun) -> dict[str, float]:
    """What a cell's runs came to: ``median``, ``worst`` seconds of all; ``mean`` seconds and ``iterations`` of those
    that did not stop early, by the time limit or without a region; the ``distance`` of all regions; how many were
    ``proven``, ``certified`` or ``stopped``, of ``asked``."""
    rows = [row for row in cell.rows() if row["ce"] == 1]
    seconds = np.array([row["seconds"] for row in rows], dtype=float)
    found = np.array([row["row"] is not None for row in rows], dtype=bool)
    late = np.array([row["reason"] == Reason.TIME_LIMIT for row in rows], dtype=bool)
    ended = found & ~late
    distances = np.array([row["objective"] for row in rows], dtype=float)
    steps = [max((int(step["iteration"]) for step in row.get("trace") or ()), default=0) for row in rows]
    return {
        "median": float(np.median(seconds)) if len(rows) else math.nan,
        "worst": float(seconds.max()) if len(rows) else math.nan,
        "mean": float(seconds[ended].mean()) if ended.any() else math.nan,
        "iterations": float(np.array(steps)[ended].mean()) if ended.any() else math.nan,
        "distance": float(distances[found].mean()) if found.any() else math.nan,
        "proven": float(sum(row["status"] == "OPTIMAL" for row in rows)),
        "certified": float(found.sum()),
        "stopped": float((~ended).sum()),
        "asked": float(len(rows)),
    }


def _number(line: dict[str, Any], name: str, decimals: int = 2) -> str:
    value = line.get(name, math.nan)
    return DASH if value is None or pd.isna(value) else number(float(value), decimals)


def _share(line: dict[str, Any], prefix: str, name: str) -> str:
    value = line.get(f"{prefix}_{name}", math.nan)
    return DASH if pd.isna(value) else f"{int(value)}/{int(line[f'{prefix}_asked'])}"


@dataclass(frozen=True)
class Rivals:
    """Robustness and validity on networks, beside the method of Dominguez-Olmedo et al."""

    title: str = f"Table 3 of {PAPER}"
    published: str = "robust_table3.csv"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / self.published)
        ran = {}
        for cell in found:
            baseline = cell.meta["method"].startswith(BASELINE)
            rho = float(cell.meta["config"]["method"]["rho"])
            ran[cell.meta["dataset"], cell.meta["model"], rho, baseline] = cell
        records = []
        for row in published.to_dict("records"):
            key = DATASETS[str(row["dataset"])], TABLE_3[str(row["model"])], float(row["rho"])
            record = {str(name): value for name, value in row.items()}
            for prefix, baseline in (("ours", False), ("ours_dominguez_olmedo", True)):
                mine = ran.get((*key, baseline))
                if mine is not None:
                    robust, valid = shares(mine, key[2])
                    record |= {f"{prefix}_robustness": robust, f"{prefix}_validity": valid}
            records.append(record)
        lines = pd.DataFrame(records)
        names = [
            f"{who}_{what}"
            for who in ("dominguez_olmedo", "ours_dominguez_olmedo", "robust", "ours")
            for what in ("robustness", "validity")
        ]
        head = ["dataset", "model", "ρ", *(name.replace("_", " ") for name in names)]
        body = [
            [line["dataset"], line["model"], line["rho"]]
            + [_number({str(k): v for k, v in line.items()}, name) for name in names]
            for line in lines.to_dict("records")
        ]
        note = (
            "- *robustness*: share of factuals whose answer has a certified radius of at least ρ; *validity*: share "
            "predicted as desired. Of all factuals. *robust*: the paper's own method as published; *ours*: here.\n"
        )
        return f"{markdown(head, body)}\n{note}", lines

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Published numbers beside ours, of both methods."""
        whose = {"dominguez_olmedo": "ours_dominguez_olmedo", "robust": "ours"}
        columns = {f"{a}_{what}": f"{b}_{what}" for a, b in whose.items() for what in ("robustness", "validity")}
        return paired(lines, ["dataset", "model", "rho"], columns)


def shares(cell: StoredRun, rho: float) -> tuple[float, float]:
    """The shares of a cell's factuals whose answer is certified for a ball of radius rho, and is valid at all."""
    _, targets = cell.factuals()
    ball = Ball.scaled(cell.space, "l2")
    robust = valid = 0
    rows = [row for row in cell.rows() if row["ce"] == 1]
    for row in rows:
        if row["row"] is None:
            continue
        judge = checker(cell.space, cell.classifier, targets[row["factual"]])
        valid += judge.valid(row["row"])
        robust += judge.certify(row["row"], ball, rho, SECONDS).radius >= rho * (1 - SHORT)
    return robust / max(len(rows), 1), valid / max(len(rows), 1)


@dataclass(frozen=True)
class Accuracies:
    """Accuracy of every model on training and test rows."""

    title: str = f"Table 4 of {PAPER}"
    published: str = "robust_table4_accuracy.csv"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / self.published)
        ran = {(cell.meta["dataset"], cell.meta["model"]): cell for cell in found}
        records = []
        for row in published.to_dict("records"):
            mine: dict[str, float] = {}
            for column, model in TABLE_4.items():
                cell = ran.get((DATASETS[str(row["dataset"])], model))
                if cell is None:
                    continue
                config = cell.meta["config"]
                data = load_dataset(**config["dataset"], split=config["split"], overrides=config["features"])
                part = data.train if row["split"] == "train" else data.test
                right = cell.classifier.predict(data.frame.iloc[part]) == data.labels[part]
                mine[column] = float(right.mean())
            place = {"split": row["split"], "dataset": row["dataset"]}
            records.append({**place, "": "published", **{name: row[name] for name in TABLE_4}})
            records.append({**place, "": "ours", **mine})
        lines = pd.DataFrame(records)
        body = [
            [
                line["split"],
                line["dataset"],
                line[""],
                *(_number({str(k): v for k, v in line.items()}, n) for n in TABLE_4),
            ]
            for line in lines.to_dict("records")
        ]
        note = "- The paper's split is not published; ours is stratified.\n"
        return f"{markdown(['split', 'dataset', '', *TABLE_4], body)}\n{note}", lines

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Published accuracies beside ours, which are in rows of their own."""
        known, ours = lines[lines[""] == "published"], lines[lines[""] == "ours"]
        wide = known.merge(ours, on=["split", "dataset"], suffixes=("", "_ours"))
        return paired(wide, ["split", "dataset"], {name: f"{name}_ours" for name in TABLE_4})


TABLES: dict[str, Table] = {
    "robust_table1": Runs(1, "linf"),
    "robust_table2": Runs(2, "l2"),
    "robust_table3": Rivals(),
    "robust_table4": Accuracies(),
}


def pareto(found: Sequence[StoredRun], title: str, key: str = "model") -> Figure:
    """Mean distance, left, and mean seconds, right, against rho, a line for each ``key`` of the cells.

    Only factuals that have a region at every radius, on every line of the same model, count, so that an exact line can
    only rise and lines of one model can be compared.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    runs_of: dict[str, dict[float, dict[Any, dict[str, Any]]]] = {}
    model_of = {}
    for cell in found:
        name = cell.meta["model"] if key == "model" else _algorithm(cell)
        model_of[name] = cell.meta["model"]
        runs_of.setdefault(name, {})[float(cell.meta["config"]["method"]["rho"])] = _first(cell)
    common = {}
    for name in runs_of:
        peers = [run for other, parts in runs_of.items() if model_of[other] == model_of[name] for run in parts.values()]
        common[name] = [f for f in peers[0] if all((run.get(f) or {}).get("row") is not None for run in peers)]
    for place, name in enumerate(sorted(name for name in runs_of if common[name])):
        radii, label = sorted(runs_of[name]), f"{name.removeprefix('robust_')} ({len(common[name])})"
        look = {"marker": MARKERS[place % len(MARKERS)], "color": COLOURS[place % len(COLOURS)], "markersize": 4}
        for axis, value in ((left, "objective"), (right, "seconds")):
            means = [np.mean([runs_of[name][rho][f][value] for f in common[name]]) for rho in radii]
            axis.plot(radii, means, label=label, **look)
    right.set_yscale("log")
    for axis, name in ((left, "mean distance"), (right, "mean seconds")):
        axis.set_xlabel("ρ, scaled")
        axis.set_ylabel(name)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, title=f"{key} (factuals)", title_fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _algorithm(cell: StoredRun) -> str:
    algorithm = cell.meta["config"]["method"].get("algorithm", "auto")
    return CAPTIONS.get(algorithm, algorithm)


def _first(cell: StoredRun) -> dict[Any, dict[str, Any]]:
    return {row["factual"]: row for row in cell.rows() if row["ce"] == 1}


def _traces(found: Sequence[StoredRun]) -> list[tuple[StoredRun, Any, list[dict[str, Any]]]]:
    """Cell, factual and trace of every run that has a trace; HarnessError where none has."""
    traces = [(cell, row["factual"], list(row["trace"])) for cell in found for row in cell.rows() if row.get("trace")]
    if not traces:
        raise HarnessError("no stored run has a trace; run the experiment to its end.")
    return traces


def times(found: Sequence[StoredRun], title: str) -> Figure:
    """Seconds of master and adversary: summed by run, left; by iteration of the longest runs, right."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10, 4.2), layout="constrained")
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
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set_ylabel("seconds")
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def convergence(found: Sequence[StoredRun], title: str) -> Figure:
    """Distance (solid) and certified radius (dashed) by iteration: for each model, the run of most iterations."""
    from matplotlib.figure import Figure

    longest: dict[str, tuple[Any, list[dict[str, Any]]]] = {}
    for cell, factual, trace in _traces(found):
        model = cell.meta["model"]
        if model not in longest or len(trace) > len(longest[model][1]):
            longest[model] = factual, trace
    figure = Figure(figsize=(4.4 * min(len(longest), 3), 3.4 * math.ceil(len(longest) / 3)), layout="constrained")
    axes = figure.subplots(math.ceil(len(longest) / 3), min(len(longest), 3), squeeze=False).ravel()
    for axis, (model, (factual, trace)) in zip(axes, sorted(longest.items()), strict=False):
        _converging(axis, trace)
        axis.set_title(f"{model.removeprefix('robust_')}, factual {factual}", fontsize=9)
    for axis in axes[len(longest) :]:
        axis.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure


def _converging(axis: Axes, trace: Sequence[dict[str, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    steps = [step["iteration"] for step in trace]
    axis.plot(steps, [step["distance"] for step in trace], "o-", color=COLOURS[0], markersize=3)
    axis.set_xlabel("iteration")
    axis.set_ylabel("distance (solid)")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    other = axis.twinx()
    other.plot(steps, [step["radius"] for step in trace], "s--", color=COLOURS[1], markersize=3)
    other.set_ylabel("certified radius (dashed)")
    other.set_ylim(bottom=0)


def iterations(found: Sequence[StoredRun], title: str) -> Figure:
    """The points of Algorithm 1 on a plane, a panel a model, for the factual that takes the most iterations.

    One that every model has an answer for, where there is one.
    """
    from matplotlib.figure import Figure

    runs_of: dict[Any, list[tuple[StoredRun, list[dict[str, Any]]]]] = {}
    for cell, factual, trace in _traces(found):
        runs_of.setdefault(factual, []).append((cell, trace))

    def rank(factual: Any) -> tuple[int, int, int]:
        panels = runs_of[factual]
        answered = sum(_first(cell)[factual]["row"] is not None for cell, _ in panels)
        return answered, len(panels), max(len(trace) for _, trace in panels)

    chosen = max(runs_of, key=rank)
    panels = sorted(runs_of[chosen], key=lambda panel: -len(panel[1]))
    figure = Figure(figsize=(5.4 * len(panels), 5.1), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False).ravel()
    for axis, (cell, trace) in zip(axes, panels, strict=True):
        answered = _iterating(axis, cell, chosen, trace)
        shown = cell.meta["model"].removeprefix("robust_")
        open_ = "" if answered else ", stopped at the time limit"
        axis.set_title(f"{shown}, factual {chosen}: {len(trace)} iterations{open_}", fontsize=9)
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=11)
    return figure


def _iterating(axis: Axes, cell: StoredRun, factual: Any, trace: Sequence[dict[str, Any]]) -> bool:
    """One panel: where the model accepts, and each point with its box, the later the darker; whether one was robust."""
    from matplotlib.patches import Rectangle

    space, answer = cell.space, _first(cell)[factual]["row"]
    if len(space.names) != 2 or not all(feature.numeric for feature in space.features):
        raise HarnessError(f"{cell.label} has the features {', '.join(space.names)}; a plane has two numbers.")
    frame, targets = cell.factuals()
    rows = [step["row"] for step in trace] + ([answer] if answer is not None else [])
    points = np.array([[row[name] for name in space.names] for row in rows], dtype=float)
    origin = frame.loc[factual, list(space.names)].to_numpy(float)
    half = float(cell.meta["config"]["method"]["rho"]) * np.array([feature.range for feature in space.features])
    corners = np.vstack([points - half, points + half, [origin]])
    low, high = corners.min(axis=0), corners.max(axis=0)
    low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
    xs, ys = np.meshgrid(*(np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True)))
    grid = pd.DataFrame(dict(zip(space.names, (xs.ravel(), ys.ravel()), strict=True)))
    accepted = targets[factual].holds(cell.classifier, grid).reshape(xs.shape)
    axis.contourf(xs, ys, accepted, levels=[0.5, 1.5], colors=[SKY], alpha=0.25)
    axis.contour(xs, ys, accepted, levels=[0.5], colors=[GREY], linewidths=0.8)
    for place, point in enumerate(points[: len(trace)]):
        alpha = 0.25 + 0.6 * (place + 1) / len(trace)
        axis.add_patch(Rectangle(point - half, *(2 * half), fill=False, lw=0.8, edgecolor="black", alpha=alpha))
    axis.plot(*points[: len(trace)].T, "o-", color=ORANGE, markersize=3, lw=0.7, zorder=4, label="points of the master")
    if answer is not None:
        axis.add_patch(Rectangle(points[-1] - half, *(2 * half), fill=False, lw=1.8, edgecolor=BLUE, zorder=3))
        axis.plot(*points[-1], "*", color=BLUE, markersize=11, zorder=5, label="counterfactual and its box")
    axis.plot(*origin, "s", color="black", markerfacecolor="white", markersize=7, zorder=5, label="factual")
    axis.set_xlim(low[0], high[0])
    axis.set_ylim(low[1], high[1])
    axis.set_xlabel(space.names[0])
    axis.set_ylabel(space.names[1])
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


def _rows(numbers: Numbers, names: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows of the tables, of those that were run, in which all columns have a number."""
    frames = [numbers[name] for name in names if name in numbers and set(columns) <= set(numbers[name])]
    return pd.concat(frames).dropna(subset=list(columns)) if frames else pd.DataFrame(columns=list(columns))


def _leaf(numbers: Numbers) -> Verdict:
    """Whether one leaf of each tree is faster than Algorithm 1, and nowhere nearer than the optimum over all leaves."""
    rows = _rows(numbers, BOTH, ("leaf_median", "leaf_distance", "paper_algorithm_median", "ours_distance"))
    if len(rows):  # means are of the same factuals only where every one was answered
        rows = rows.loc[rows["leaf_certified"].eq(rows["leaf_asked"]) & rows["ours_certified"].eq(rows["ours_asked"])]
    if rows.empty:
        return None, "the leaf heuristic was not run beside Algorithm 1 and the default"
    faster = int((rows["leaf_median"] < rows["paper_algorithm_median"]).sum())
    farther = int((rows["leaf_distance"] >= rows["ours_distance"] * (1 - 1e-6)).sum())
    holds = faster > len(rows) / 2 and farther == len(rows)
    return holds, f"faster in {faster}, not nearer in {farther} of {len(rows)} rows"


def _certain(numbers: Numbers) -> Verdict:
    """Whether every answer of ours to Table 3's networks is robust."""
    found = _rows(numbers, ("robust_table3",), ("ours_robustness",))["ours_robustness"]
    return bool((found == 1.0).all()) if len(found) else None, f"1.00 in {(found == 1.0).sum()} of {len(found)} rows"


def _rival(numbers: Numbers) -> Verdict:
    """Whether the rival's answers are less robust in every row where it was run."""
    rows = _rows(numbers, ("robust_table3",), ("ours_robustness", "ours_dominguez_olmedo_robustness"))
    less = int((rows["ours_dominguez_olmedo_robustness"] < rows["ours_robustness"]).sum())
    return less == len(rows) if len(rows) else None, f"less robust in {less} of {len(rows)} rows"


def _larger(numbers: Numbers) -> Verdict:
    """Whether the larger radius takes Algorithm 1 more iterations, for most models."""
    rows = _rows(numbers, BOTH, ("paper_algorithm_iterations",))
    keys, nothing = ["table", "dataset", "model", "spec"], "Algorithm 1 was not run at two radii"
    if rows.empty:
        return None, nothing
    wide = rows.pivot_table(index=keys, columns="rho", values="paper_algorithm_iterations").dropna()
    if wide.empty or wide.shape[1] < 2:
        return None, nothing
    more = int((wide.iloc[:, -1] >= wide.iloc[:, 0]).sum())
    return more > len(wide) / 2, f"as many or more in {more} of {len(wide)} models"


BOTH = ("robust_table1", "robust_table2")
CLAIMS = {
    "robust_certain": Claim(
        "Every counterfactual of a network is robust within its radius.", ("robust_table3",), _certain
    ),
    "robust_rival": Claim(
        "The method of Dominguez-Olmedo et al. is less robust in every row.", ("robust_table3",), _rival
    ),
    "robust_larger": Claim("A larger radius takes Algorithm 1 more iterations for most models.", (), _larger),
    "robust_leaf": Claim("The leaf heuristic is faster than Algorithm 1, but farther.", (), _leaf),
}
