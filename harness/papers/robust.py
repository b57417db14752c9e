"""Robust regions: Maragno, Kurtz, Röber, Goedhart, Birbil and den Hertog (2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.answers import Cell
from harness.certificate import Ball, checker
from harness.data import load_dataset
from harness.errors import HarnessError
from harness.figures import Drawing
from harness.tables import DASH, PUBLISHED, Table, markdown, number

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
BASELINE = "adversarial_recourse"
STOPPED = 0.99  # of rho: a certified radius below it is what the paper calls an early stop
SHORT = 1e-6  # relative, by which a radius may fall short of rho in Table 3
SECONDS = 60.0  # for the certificate of one answer


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

    @property
    def title(self) -> str:
        return f"Table {self.number} of {PAPER}"

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / "robust_tables1_2.csv")
        published = published.loc[published["table"] == self.number]
        ran = {_place(cell): cell for cell in found}
        records = []
        for row in published.to_dict("records"):
            key = DATASETS[str(row["dataset"])], MODELS[str(row["model"]), str(row["spec"])], float(row["rho"])
            record = {str(name): value for name, value in row.items()}
            for prefix, paper in (("ours", False), ("paper_algorithm", True)):
                cell = ran.get((*key, self.norm, paper))
                if cell is not None:
                    record |= {f"{prefix}_{name}": value for name, value in runs(cell).items()}
            records.append(record)
        lines = pd.DataFrame(records)
        return f"{self._markdown(lines)}\n{self._notes()}", lines

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
            "checker that shares no code with the search.",
            "*Algorithm 1*: the paper's own, on HiGHS; seconds and iterations of runs that did not stop early.",
        )
        return "".join(f"- {note}\n" for note in notes)


def _place(cell: Cell) -> tuple[str, str, float, str, bool]:
    method = cell.meta["config"]["method"]
    paper = method.get("algorithm") == "adversarial"
    return cell.meta["dataset"], cell.meta["model"], float(method.get("rho") or 0.0), method.get("norm", ""), paper


def runs(cell: Cell) -> dict[str, float]:
    """What a cell's runs came to: ``median``, ``worst`` seconds of all; ``mean`` seconds and ``iterations`` of those
    that did not stop early; how many were ``proven``, ``certified`` or ``stopped``, of ``asked``."""
    rows = [row for row in cell.rows() if row["ce"] == 1]
    seconds = np.array([row["seconds"] for row in rows], dtype=float)
    found = np.array([row["row"] is not None for row in rows], dtype=bool)
    steps = [max((int(step["iteration"]) for step in row.get("trace") or ()), default=0) for row in rows]
    return {
        "median": float(np.median(seconds)) if len(rows) else math.nan,
        "worst": float(seconds.max()) if len(rows) else math.nan,
        "mean": float(seconds[found].mean()) if found.any() else math.nan,
        "iterations": float(np.array(steps)[found].mean()) if found.any() else math.nan,
        "proven": float(sum(row["status"] == "OPTIMAL" for row in rows)),
        "certified": float(found.sum()),
        "stopped": float((~found).sum()),
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

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / "robust_table3.csv")
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


def shares(cell: Cell, rho: float) -> tuple[float, float]:
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

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        published = pd.read_csv(PUBLISHED / "robust_table4_accuracy.csv")
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


TABLES: dict[str, Table] = {
    "robust_table1": Runs(1, "linf"),
    "robust_table2": Runs(2, "l2"),
    "robust_table3": Rivals(),
    "robust_table4": Accuracies(),
}


def pareto(found: Sequence[Cell], title: str) -> Figure:
    """Mean distance, left, and mean seconds, right, against rho, a line a model.

    Only factuals that have a region at every radius count, so that the lines can only rise.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    models = sorted({cell.meta["model"] for cell in found})
    for model in models:
        parts = {
            float(cell.meta["config"]["method"]["rho"]): _first(cell) for cell in found if cell.meta["model"] == model
        }
        radii = sorted(parts)
        common = [f for f in parts[radii[0]] if all(parts[rho].get(f, {}).get("row") is not None for rho in radii)]
        if not common:
            continue
        label = f"{model.removeprefix('robust_')} ({len(common)})"
        left.plot(radii, [np.mean([parts[rho][f]["objective"] for f in common]) for rho in radii], ".-", label=label)
        right.plot(radii, [np.mean([parts[rho][f]["seconds"] for f in common]) for rho in radii], ".-", label=label)
    right.set_yscale("log")
    for axis, name in ((left, "mean distance"), (right, "mean seconds")):
        axis.set_xlabel("ρ, scaled")
        axis.set_ylabel(name)
    left.legend(frameon=False, fontsize=8, title="model (factuals)", title_fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _first(cell: Cell) -> dict[Any, dict[str, Any]]:
    return {row["factual"]: row for row in cell.rows() if row["ce"] == 1}


def _traces(found: Sequence[Cell]) -> list[tuple[Cell, Any, list[dict[str, Any]]]]:
    """Cell, factual and trace of every run that has a trace; HarnessError where none has."""
    traces = [(cell, row["factual"], list(row["trace"])) for cell in found for row in cell.rows() if row.get("trace")]
    if not traces:
        raise HarnessError("no stored run has a trace; run the experiment to its end.")
    return traces


def times(found: Sequence[Cell], title: str) -> Figure:
    """Seconds of master and adversary: summed by run, left; by iteration of the longest runs, right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    traces = _traces(found)
    spent = [
        [sum(step[f"{part}_seconds"] for step in trace) for part in ("master", "adversary")] for *_, trace in traces
    ]
    left.scatter(*np.array(spent).T, s=16)
    left.set_xlabel("master, seconds of a run")
    left.set_ylabel("adversary, seconds of a run")
    longest = sorted(traces, key=lambda entry: -len(entry[2]))[:2]
    for number_, (_, factual, trace) in enumerate(longest):
        steps = [step["iteration"] for step in trace]
        for part, style in (("master", "-"), ("adversary", "--")):
            values = [step[f"{part}_seconds"] for step in trace]
            right.plot(steps, values, style, color=f"C{number_}", label=f"factual {factual}, {part}")
    right.set_xlabel("iteration")
    right.set_ylabel("seconds")
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def convergence(found: Sequence[Cell], title: str) -> Figure:
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
    steps = [step["iteration"] for step in trace]
    axis.plot(steps, [step["distance"] for step in trace], "o-", markersize=3)
    axis.set_xlabel("iteration")
    axis.set_ylabel("distance (solid)")
    other = axis.twinx()
    other.plot(steps, [step["radius"] for step in trace], "s--", color="C1", markersize=3)
    other.set_ylabel("certified radius (dashed)")
    other.set_ylim(bottom=0)


FIGURES: dict[str, tuple[str, Drawing]] = {
    "robust_figure9": ("figure9", partial(times, title="Robust regions, Figure 9: Algorithm 1 on 100 boosted trees")),
    "robust_figure10": ("figure10", partial(convergence, title="Robust regions, Figure 10: shallow and deep trees")),
    "robust_figure11": ("figure11", partial(convergence, title="Robust regions, Figure 11: Algorithm 1 on diabetes")),
    "robust_figure12": ("figure12", partial(pareto, title="Robust regions, Figure 12: what a larger region costs")),
}
