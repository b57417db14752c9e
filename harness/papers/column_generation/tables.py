"""Tables of the paper on one-for-many counterfactuals, beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.core.explanation import Status
from harness.core.tolerances import WHOLE_BOUND
from harness.evaluation.scoring import group_table
from harness.reports.comparison import NOT_RUN, beside, narrowed, without_blanks
from harness.reports.markup import DASH, markdown, noted, number
from harness.reports.registry import Lines, OneFile, Table
from harness.reports.stored import data_of, published, records_of
from harness.store.run import StoredRun

PAPER = "Lodi and Ramírez-Ayerbe (2024), One-for-many counterfactual explanations by column generation"
LIMIT = 3600.0  # seconds after which the paper stopped; what stopped is not proven
PROVEN = 0.941  # the published share of runs within the limit that are certified
OURS, GREEDY = "ours", "greedy"
APPROACHES = {"cells": OURS, "column_generation": "CG", "milp_paper": "MIP", "milp": "MIP and more"}  # by solver
NETWORKS = {"compas": "mlp_10x2", "german_credit": "mlp_20x2", "student_performance": "mlp_14x3"}
DATASETS = {
    "compas": "compas_binned",
    "german_credit": "german_credit_binned",
    "student_performance": "students_binned",
}
STATISTICS = (
    "runs", "proven", "stopped", "mean", "deviation", "least", "most", "bound", "gap", "left", "uncoverable", "median",
    "worst",
)  # fmt: skip


def solved(found: Sequence[StoredRun]) -> pd.DataFrame:
    """One row a stored group: ``approach``, ``n_factuals``, ``t_max``, ``threshold``, ``picked`` (the seed of S),
    ``people`` (S as text), ``stopped``, and the columns of ``harness.evaluation.scoring.group_table``."""
    parts = []
    for run in found:
        config = run.meta["config"]
        settings = {
            "approach": APPROACHES.get(config["method"].get("solver", ""), GREEDY),
            "n_factuals": config["n_factuals"],
            "t_max": config["method"]["t_max"],
            "threshold": config["model"].get("threshold") or 0.5,
            "picked": config["seed"] if config["factuals_seed"] is None else config["factuals_seed"],
        }
        people = {line["group"]: " ".join(map(str, sorted(line["factuals"]))) for line in run.groups()}
        table = group_table(run).reset_index()
        stopped = [_stopped(line) for line in run.groups()]
        parts.append(table.assign(people=table["group"].map(people), stopped=stopped, **settings))
    columns = ["approach", "n_factuals", "t_max", "threshold", "points", "settled", "stopped"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _stopped(line: Mapping[str, Any]) -> bool:
    """Whether the clock ended a search: of column generation, while columns were left to price."""
    priced = [step for step in line.get("trace") or () if step.get("step") == "pricing"]
    through = bool(priced) and priced[-1]["bound"] >= priced[-1]["value"] - WHOLE_BOUND
    return not through and line["status"] not in {Status.OPTIMAL, Status.INFEASIBLE}


def summed(groups: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """One row per setting and approach: ``runs``, ``proven`` and ``stopped`` ones; ``mean``, standard ``deviation``,
    ``least`` and ``most`` points, of runs that found any; the least proven ``bound`` on them and the greatest ``gap``;
    factuals ``left`` and ``uncoverable``; seconds (``median``, ``worst``)."""
    lines = []
    for place, runs in groups.groupby([*keys, "approach"], sort=True):
        points = runs["points"].dropna()
        lines.append(
            dict(zip([*keys, "approach"], place, strict=True))
            | {"runs": len(runs), "proven": int(runs["settled"].sum()), "stopped": int(runs["stopped"].sum())}
            | {"mean": points.mean(), "deviation": points.std(), "least": points.min(), "most": points.max()}
            | {"bound": (runs["points"] - runs["gap"]).min(), "gap": runs["gap"].max()}
            | {"left": runs["left"].mean(), "uncoverable": runs["uncoverable"].mean()}
            | {"median": runs["seconds"].median(), "worst": runs["seconds"].max()}
        )
    return pd.DataFrame(lines, columns=[*keys, "approach", *STATISTICS])


def spread(line: Mapping[str, Any]) -> str:
    """A mean, and the range where there is one.

    >>> spread({"mean": 3.5, "least": 3, "most": 4}), spread({"mean": 3, "least": 3, "most": 3})
    ('3.5 (3–4)', '3')
    """
    if math.isnan(line["mean"]):
        return DASH
    if line["least"] == line["most"]:
        return f"{line['least']:.0f}"
    return f"{line['mean']:.1f} ({line['least']:.0f}–{line['most']:.0f})"


@dataclass(frozen=True)
class Fewest(OneFile):
    """A table of the fewest counterfactuals by |S| and T_max, published beside ours and whatever else was run.

    Parameters
    ----------
    number
        Of the published table, 4 to 9.
    notes
        What a reader has to know, one sentence each.
    uncounted
        Whether runs lack the features whose changes the paper seems not to count.
    """

    number: int
    notes: tuple[str, ...] = ()
    uncounted: bool = False
    file: str = "column_generation_tables4_9.csv"
    costs = frozenset({"cg_seconds", "mip_seconds"})

    @property
    def title(self) -> str:
        return f"Table {self.number} of {PAPER}{', without the eight features of yes and no' * self.uncounted}"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        groups = solved(found)
        lines = summed(groups, ["n_factuals", "t_max"])
        by_place = {(line["n_factuals"], line["t_max"], line["approach"]): line for line in lines.to_dict("records")}
        others = [name for name in ("CG", "MIP", GREEDY) if name in set(lines["approach"])]
        head = ["\\|S\\|", "T_max", "y* published", "y* ours", "proven", "gap"]
        head += ["CG − MIP published", "CG s published", "MIP s published", "ours s, median (worst)"]
        for name in others:  # the baseline proves nothing
            head += [f"{what} {name}" for what in ("y", "proven", "s") if (what, name) != ("proven", GREEDY)]
        body: list[list[Any]] = []
        rows = records_of(published(self.file, self.number))
        measures = list(rows[0])[5:]
        known = {(row["n_instances"], row["t_max"]) for row in rows}
        ran = {place[:2] for place in by_place}
        rows += [{"n_instances": n, "t_max": t, **dict.fromkeys(measures, math.nan)} for n, t in sorted(ran - known)]
        asked, hidden = narrowed(rows, lambda row: (row["n_instances"], row["t_max"]) in ran)
        records: list[dict[str, Any]] = []
        for row in rows:
            place = (row["n_instances"], row["t_max"])
            ours = by_place.get((*place, OURS))
            line = [*place, number(row["n_explanations"], 0), *_found(ours)]
            line += [number(row["gap_cg_minus_mip"], 0), _seconds(row["cg_seconds"]), _seconds(row["mip_seconds"])]
            line.append(_spent(ours))
            for name in others:
                other = by_place.get((*place, name))
                line += [*_found(other)[: 1 if name == GREEDY else 2], _spent(other)]
            if row in asked:
                body.append([*line, _remark(row, ours)])
            records += _measured(
                row, {name: by_place[*place, name] for name in (OURS, *others) if (*place, name) in by_place}
            )
        limits = ", ".join(dict.fromkeys(f"{run.meta['config']['group_time_limit']:g} s" for run in found))
        notes = [*hidden, *self.notes, *NOTES, f"Limit of ours: {limits} a group."]
        notes += [*_ratios(records), *_drawn(groups), *_certified(groups)]
        numbers = pd.DataFrame(records)
        text = noted(without_blanks([*head, "why"], body, 2), notes)
        return text, numbers.assign(alone=numbers["measure"].isin(("ours stopped", "CG stopped", "MIP stopped")))


def _measured(row: Mapping[str, Any], lines: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The numbers of one |S| and T_max, one a line: those that are published, then whatever each approach gave."""
    place = {"n_factuals": row["n_instances"], "t_max": row["t_max"]}
    none = {"mean": math.nan, "median": math.nan, "stopped": 0}
    ours, columns, program = (lines.get(name, none) for name in (OURS, "CG", "MIP"))
    made = {
        "n_explanations, ours": (ours["mean"], ours),
        "n_explanations, CG": (columns["mean"], columns),
        "gap_cg_minus_mip": (columns["mean"] - program["mean"], columns, program),  # says something of both in full
        "cg_seconds": (columns["median"], columns),
        "mip_seconds": (program["median"], program),
    }
    records = [
        {**place, "measure": name, "published": row[name.partition(",")[0]], "ours": value}
        | {"stopped": any(line["stopped"] for line in behind)}
        | {"published_stopped": name.endswith("seconds") and row[name] >= LIMIT}
        for name, (value, *behind) in made.items()
    ]
    if records[2]["stopped"] and {"CG", "MIP"} <= set(lines):
        records[2] |= {"ours": math.nan, "why": "ended by the clock"}
    records += [
        {**place, "measure": f"{name} {key}", "published": math.nan, "ours": line[key]}
        for name, line in lines.items()
        for key in STATISTICS
    ]
    return records


STUDENTS = (
    "The paper speaks of 30 features, but with all of them y* of students is greater than published, and proven; "
    "without the eight of yes and no (+experiment=cg_table8_uncounted, cg_table9_uncounted) it comes near the "
    "published one: their changes seem not to be counted.",
)
NOTES = (
    "y*: the fewest counterfactuals; *ours*: mean (least–most) over random groups S of the same model; *proven*: of "
    "these groups, those whose number is proven minimal; *stopped*: those that the clock ended; *gap*: the greatest "
    "that is left; *left*: factuals neither served nor proven uncoverable, mean.",
    "The paper's S, bins and models are not published: where five groups disagree among themselves, a published number "
    "outside their range says nothing of either method.",
    "*CG − MIP published*: the published gap, y* of column generation less that of the program, whose own y* therefore "
    "is the difference; where it is +1 (COMPAS, |S| = 100, T_max = 3), the published y* may be that of either.",
    "Published seconds are a commercial solver's on the paper's machine, which stopped it at 3,600.",
)


def _found(line: Mapping[str, Any] | None) -> list[str]:
    if line is None:
        return [NOT_RUN, "", ""]
    left = f", {line['left']:.1f} left" if line["left"] else ""
    return [spread(line) + left, f"{line['proven']} of {line['runs']}", number(line["gap"], 0)]


def _spent(line: Mapping[str, Any] | None) -> str:
    return "" if line is None else f"{line['median']:.3f} ({line['worst']:.3f})"


def _seconds(value: float) -> str:
    return f"≥ {LIMIT:.0f}" if value >= LIMIT else number(value, 2)


def _remark(row: Mapping[str, Any], ours: Mapping[str, Any] | None) -> str:
    """What is known of why ours is smaller or larger than published."""
    if ours is None or math.isnan(ours["mean"]) or math.isnan(row["n_explanations"]):
        return ""
    published = row["n_explanations"]
    if ours["least"] <= published <= ours["most"]:
        return "in our range"
    if ours["most"] < published:
        unproven = row["cg_seconds"] >= LIMIT
        return "smaller: published run stopped unproven" if unproven else "smaller: other bins, model and S"
    if ours["proven"] == ours["runs"]:
        return "larger, proven for our S: other bins, model and S"
    known = f", at least {ours['bound']:.0f} proven for every S of ours" if ours["bound"] > published else ""
    return f"larger{known}: other bins, model and S"


def _ratios(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many times the published y* ours is, from the least to the greatest."""
    known = [row for row in records if row["measure"] == "n_explanations, ours"]
    found = [row["ours"] / row["published"] for row in known if not math.isnan(row["ours"] / row["published"])]
    if not found:
        return []
    return [f"Mean y* of ours: {min(found):.2g} to {max(found):.2g} times the published one, in {len(found)} settings."]


def _drawn(groups: pd.DataFrame) -> list[str]:
    """Of which |S| there are too few people, or too few to draw as many different groups."""
    notes = []
    for asked, runs in groups.loc[groups["approach"] == OURS].groupby("n_factuals"):
        draws, different, size = runs["picked"].nunique(), runs["people"].nunique(), int(runs["size"].min())
        few = [f"only {size} people are predicted undesired"] if size < asked else []
        few += [f"{draws} draws gave {different} different group{'s' * (different > 1)}"] if different < draws else []
        notes += [f"|S| = {asked}: {', and '.join(few)}."] if few else []
    return notes


def _certified(groups: pd.DataFrame) -> list[str]:
    """The share of the paper's column generation's runs within the limit that are proven; 94.1 % are published."""
    runs = groups.loc[(groups["approach"] == "CG") & (groups["stopped"] == 0)]
    if runs.empty:
        return []
    share = f"{runs['optimal'].mean():.1%} are certified ({PROVEN:.1%})"
    return [f"Of {len(runs)} runs of the paper's CG that the clock did not end, {share}."]


@dataclass(frozen=True)
class Thresholds(Lines):
    """Our counterfactuals by threshold and T_max; nothing of it is published."""

    title: str = f"Stricter thresholds and few changes, beyond {PAPER}"
    published: tuple[str, ...] = ()

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        lines = summed(solved(found), ["threshold", "t_max"])
        head = ["threshold", "T_max", "approach", "y*", "proven", "gap", "uncoverable", "s, median (worst)"]
        body = []
        for line in lines.to_dict("records"):
            place = (f"{line['threshold']:g}", line["t_max"], line["approach"])
            body.append([*place, *_found(line), f"{line['uncoverable']:.1f}", _spent(line)])
        note = "*uncoverable*: mean number of factuals that no counterfactual within T_max changes can serve: proven."
        return noted(markdown(head, body, 3), [note]), lines


@dataclass(frozen=True)
class Models(OneFile):
    """Data, columns, networks and accuracies on the test half, published beside ours."""

    title: str = f"Tables 2 and 3 of {PAPER}"
    file: str = "column_generation_table2_3.csv"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        ran = {(run.meta["dataset"], run.meta["model"]): run for run in found}
        records: list[dict[str, Any]] = []
        for row in records_of(published(self.file)):
            name = row["dataset"]
            here = {"nn": ran.get((DATASETS[name], NETWORKS[name])), "lr": ran.get((DATASETS[name], "lr_c10"))}
            ours: dict[str, Any] = {}
            for kind, run in here.items():
                if run is None:
                    continue
                data = data_of(run)
                space, rows = run.space, data.frame.iloc[data.test]
                ours |= {"n_instances": len(data.frame), "n_features": len(space.names)}
                ours |= {"n_binary_columns": len(space.columns)}
                ours[f"{kind}_test_accuracy"] = float((run.classifier.predict(rows) == data.labels[data.test]).mean())
                if kind == "nn":
                    layers = run.meta["config"]["model"]["estimator"]["hidden_layer_sizes"]
                    ours |= {"nn_width": layers[0], "nn_depth": len(layers)}
            records += [{"dataset": name, "": "published", **{k: v for k, v in row.items() if k != "dataset"}}]
            records += [{"dataset": name, "": "ours", **ours}]
        lines = pd.DataFrame(records)
        shown, hidden = beside(lines, 2)
        body = [
            [row["dataset"] if row[""] == "published" else "", row[""]]
            + [number(float(row[name]), 3 if name.endswith("accuracy") else 0) for name in shown.columns[2:]]
            for row in records_of(shown)
        ]
        head = ["dataset", "", *(name.replace("_", " ") for name in shown.columns[2:])]
        numbers = [
            {"dataset": known["dataset"], "measure": name, "published": value, "ours": made.get(name, math.nan)}
            | {"given": name in {"nn_width", "nn_depth"}}
            for known, made in zip(records[::2], records[1::2], strict=True)
            for name, value in known.items()
            if name not in {"dataset", ""}
        ]
        notes = [*hidden, "Accuracy on the test half; the paper's split is not published."]
        return noted(markdown(head, body, 2), notes), pd.DataFrame(numbers)


TABLES: dict[str, Table] = {
    "cg_table2_3": Models(),
    **{f"cg_table{place}": Fewest(place, STUDENTS if place in {8, 9} else ()) for place in range(4, 10)},
    **{f"cg_table{place}_uncounted": Fewest(place, STUDENTS, uncounted=True) for place in (8, 9)},
    "cg_thresholds": Thresholds(),
}
