"""Tables 1 to 4 of Maragno et al. (2024), beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.certificate import Ball, checker
from harness.core.explanation import Reason
from harness.core.tolerances import RADIUS
from harness.core.wording import HOLDS
from harness.reports.comparison import beside, narrowed, paired, without_blanks
from harness.reports.markup import DASH, markdown, noted, number
from harness.reports.registry import OneFile, Table
from harness.reports.stored import data_of, published, records_of
from harness.store.run import StoredRun

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
TABLE_4 = {name.removeprefix("robust_").replace("mlp", "nn"): name for name in MODELS.values()}  # by its columns
ALGORITHMS = {"adversarial": "paper_algorithm", "leaf": "leaf"}  # of ours, besides the default
SUM = "_sum"  # ends names of boosting that decides by the sum of its trees, and columns of what was run on it
PREFIXES = tuple(f"{kind}{end}" for end in ("", SUM) for kind in ("ours", *ALGORITHMS.values()))
SHOWN = {
    "paper_algorithm": "Algorithm 1", "ours": "ours", f"paper_algorithm{SUM}": "Algorithm 1 by the sum",
    f"ours{SUM}": "ours by the sum",
}  # fmt: skip
BASELINE = "adversarial_recourse"
RIVALS = {"robust": "ours", "dominguez_olmedo": "ours_dominguez_olmedo", "lowered": "ours_lowered"}  # of Table 3
STOPS = "early_stops"
MEASURED = {"seconds": "mean", "iterations": "iterations", STOPS: "stopped"}  # published, and of a run
ASKED = 20  # factuals of a published row
STOP = 0.99  # of rho, at which the authors' program stops
NODES = 1_000_000  # for the certificate of one answer: at most 46,000 are needed, and a clock would count the load, too
NOTES = (  # of Tables 1 and 2
    "*published*: mean seconds and iterations of runs that did not stop early at 1,000 s; the authors' code "
    "solves each problem twice within the time that it measures.",
    "*ours*: the default algorithm, all factuals; *proven*: optimal, with a proof; *regions*: that hold by the "
    "checker, which shares no search with any method.",
    "*Algorithm 1*: ours of it, on HiGHS; seconds and iterations of runs that did not stop early. "
    "*iterations*: perturbations added until the region has 0.99 ρ, where the authors stop; ours goes on to ρ.",
    "*early stops*: x of n: behind all numbers of a row and method are n factuals, behind published ones 20.",
    "*by the sum*: boosting that says 1 where the sum of its trees, without the start value, is at least 0.5, "
    "as the authors' program has it, which the published rows answer; elsewhere boosting decides by its own "
    "rule, start value and sum against 0: another question.",
)


@dataclass(frozen=True)
class Runs(OneFile):
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
    file: str = "robust_tables1_2.csv"
    costs = frozenset(MEASURED)
    asked = ASKED

    @property
    def title(self) -> str:
        return f"Table {self.number} of {PAPER}"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        ran = {_place(run): run for run in found}
        records = records_of(published(self.file, self.number))
        for record in records:
            key = DATASETS[record["dataset"]], MODELS[record["model"], record["spec"]], float(record["rho"])
            for prefix in PREFIXES:
                run = ran.get((*key, self.norm, prefix))
                if run is not None:
                    record |= {f"{prefix}_{name}": value for name, value in statistics_of(run).items()}
            pair = {prefix: ran.get((*key, self.norm, prefix)) for prefix in ALGORITHMS.values()}
            record |= {f"{prefix}_common": value for prefix, value in common(pair).items()}
        lines = pd.DataFrame(records)
        rows, hidden = narrowed(records, lambda record: any(f"{prefix}_asked" in record for prefix in PREFIXES))
        return noted(self._markdown(pd.DataFrame(rows)), (*hidden, *NOTES)), lines

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Published numbers beside those of the paper's own algorithm here, and beside those of the default one, which
        has no iterations that compare; of boosting by both rules of decision. All of them are costs."""
        parts = []
        for prefix, who in SHOWN.items():
            rows = lines.loc[lines["model"].eq("gbm")] if prefix.endswith(SUM) else lines
            columns = {f"{name}, {who}": f"{prefix}_{own}" for name, own in MEASURED.items()}
            if prefix.removesuffix(SUM) == "ours":
                del columns[f"iterations, {who}"]
            known = rows.rename(columns={f"{STOPS}_of_{ASKED}": STOPS})
            known = known.rename(columns={name: f"{name}, {who}" for name in MEASURED})
            part = paired(known, ["rho", "dataset", "model", "spec"], columns)
            asked = rows.get(f"{prefix}_asked", pd.Series(math.nan, rows.index)).to_numpy(dtype=float)
            stops = part["measure"] == f"{STOPS}, {who}"
            part.loc[stops, ["of", "published_of"]] = np.column_stack([asked, np.full(len(asked), float(ASKED))])
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def _markdown(self, lines: pd.DataFrame) -> str:
        head = [
            "ρ", "dataset", "model", "published s", "iterations", "early stops of 20",
            "ours median s", "max s", "proven", "regions", "Algorithm 1: s", "iterations", "early stops",
            "by the sum: ours median s", "proven", "Algorithm 1: s", "iterations", "early stops",
        ]  # fmt: skip
        body = []
        for line in records_of(lines):
            body.append(
                [
                    line["rho"], line["dataset"], f"{line['model']} {line['spec']}", _number(line, "seconds"),
                    _number(line, "iterations"), _number(line, "early_stops_of_20", 0), _number(line, "ours_median", 3),
                    _number(line, "ours_worst", 3), _share(line, "ours", "proven"), _share(line, "ours", "certified"),
                    _number(line, "paper_algorithm_mean"), _number(line, "paper_algorithm_iterations"),
                    _share(line, "paper_algorithm", "stopped"),
                    _number(line, f"ours{SUM}_median", 3), _share(line, f"ours{SUM}", "proven"),
                    _number(line, f"paper_algorithm{SUM}_mean"), _number(line, f"paper_algorithm{SUM}_iterations"),
                    _share(line, f"paper_algorithm{SUM}", "stopped"),
                ]
            )  # fmt: skip
        return without_blanks(head, body, 3)


def _place(run: StoredRun) -> tuple[str, str, float, str, str]:
    method = run.meta["config"]["method"]
    model = run.meta["model"]
    kind = ALGORITHMS.get(method.get("algorithm"), "ours") + (SUM if model.endswith(SUM) else "")
    return run.meta["dataset"], model.removesuffix(SUM), float(method.get("rho") or 0.0), method.get("norm", ""), kind


def steps_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The solutions of the master in the trace of a stored row, which may also tell a doubt about a solver's claim."""
    return [step for step in row.get("trace") or () if "iteration" in step]


def added(steps: Sequence[Mapping[str, Any]], rho: float) -> int:
    """How many perturbations were added until a solution's region was large enough for the authors to stop.

    This is what they call iterations: a first solution lies on the boundary and needs one, and their least is 1.00.
    """
    return next((place for place, step in enumerate(steps) if step["radius"] >= STOP * rho), len(steps))


def statistics_of(run: StoredRun) -> dict[str, float]:
    """Statistics of the first answers: ``median`` and ``worst`` seconds of all; ``mean`` seconds and ``iterations``
    (perturbations added) of those that did not stop early, by the time limit or without a region; the ``distance`` of
    all answers; how many of ``asked`` were ``proven``, ``answered``, ``stopped``, or ``certified`` by the checker."""
    rows = [row for row in run.rows() if row["ce"] == 1]
    seconds = np.array([row["seconds"] for row in rows], dtype=float)
    found = np.array([row["row"] is not None for row in rows], dtype=bool)
    late = np.array([row["reason"] == Reason.TIME_LIMIT for row in rows], dtype=bool)
    ended = found & ~late
    distances = np.array([row["objective"] for row in rows], dtype=float)
    rho = float(run.meta["config"]["method"].get("rho") or 0.0)
    steps = [added(steps_of(row), rho) for row in rows]
    return {
        "median": float(np.median(seconds)) if len(rows) else math.nan,
        "worst": float(seconds.max()) if len(rows) else math.nan,
        "mean": float(seconds[ended].mean()) if ended.any() else math.nan,
        "iterations": float(np.array(steps)[ended].mean()) if ended.any() else math.nan,
        "distance": float(distances[found].mean()) if found.any() else math.nan,
        "proven": float(sum(row["status"] == "OPTIMAL" for row in rows)),
        "answered": float(found.sum()),
        "certified": float(sum(verdict["ce"] == 1 and verdict.get("region") == HOLDS for verdict in run.verdicts())),
        "stopped": float((~ended).sum()),
        "asked": float(len(rows)),
    }


def common(runs: Mapping[str, StoredRun | None]) -> dict[str, float]:
    """Median seconds of some runs, by name, over the factuals that all were asked; nothing where one is lacking."""
    found = {
        name: {row["factual"]: row["seconds"] for row in run.rows() if row["ce"] == 1}
        for name, run in runs.items()
        if run is not None
    }
    both = set.intersection(*map(set, found.values())) if len(found) == len(runs) else set()
    return {name: float(np.median([seconds[factual] for factual in both])) for name, seconds in found.items() if both}


def _number(line: dict[str, Any], name: str, decimals: int = 2) -> str:
    return number(line.get(name), decimals)


def _share(line: dict[str, Any], prefix: str, name: str) -> str:
    value = line.get(f"{prefix}_{name}", math.nan)
    return DASH if pd.isna(value) else f"{int(value)}/{int(line[f'{prefix}_asked'])}"


@dataclass(frozen=True)
class Rivals(OneFile):
    """Robustness and validity on networks, beside the method of Dominguez-Olmedo et al. with a fixed weight, and beside
    ours of it, which lowers the weight until the worst case found is valid."""

    title: str = f"Table 3 of {PAPER}"
    file: str = "robust_table3.csv"
    asked = 10

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        ran = {}
        for run in found:
            settings = run.meta["config"]["method"]
            rival = "dominguez_olmedo" if settings.get("last") else "lowered"
            who = rival if run.meta["method"].startswith(BASELINE) else "robust"
            ran[run.meta["dataset"], run.meta["model"], float(settings["rho"]), who] = run
        records = records_of(published(self.file))
        for record in records:
            key = DATASETS[record["dataset"]], TABLE_3[record["model"]], float(record["rho"])
            for who, prefix in RIVALS.items():
                mine = ran.get((*key, who))
                if mine is not None:
                    measured = zip(("robustness", "validity", "answered", "asked"), shares(mine, key[2]), strict=True)
                    record |= {f"{prefix}_{name}": share for name, share in measured}
        lines = pd.DataFrame(records)
        names = [
            f"{who}_{what}"
            for who in ("dominguez_olmedo", "ours_dominguez_olmedo", "ours_lowered", "robust", "ours")
            for what in ("robustness", "validity")
        ]
        head = ["dataset", "model", "ρ", *(name.replace("_", " ") for name in names)]
        rows, hidden = narrowed(records, lambda record: any(name.startswith("ours") for name in record))
        body = [[row["dataset"], row["model"], row["rho"], *(_number(row, name) for name in names)] for row in rows]
        notes = (
            *hidden,
            "*robustness*: share of factuals whose answer has a certified radius of at least ρ; *validity*: share "
            "predicted as desired. Of all factuals: one without an answer in time is neither.",
            "*robust*: the paper's own method as published; *ours*: here.",
            "*dominguez olmedo*: with a fixed weight of the distance, and the point that the descent ends in; ours is "
            "an implementation of our own with a weight of 1, as the paper does not say which it took; "
            "*lowered*: ours of it, whose weight falls until the worst case found is valid.",
        )
        return noted(without_blanks(head, body, 3), notes), lines

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Published numbers beside ours, of both methods."""
        whose = {"dominguez_olmedo": "ours_dominguez_olmedo", "robust": "ours", "lowered": "ours_lowered"}
        columns = {f"{a}_{what}": f"{b}_{what}" for a, b in whose.items() for what in ("robustness", "validity")}
        found = paired(lines, ["dataset", "model", "rho"], columns)
        lowered = found["measure"].str.startswith("lowered")
        return found.assign(better="higher", alone=lowered, rival=~found["measure"].str.startswith("robust"))


def shares(run: StoredRun, rho: float) -> tuple[float, float, float, int]:
    """The shares of a run's factuals whose answer is certified for a ball of radius rho, is valid, and is there; and
    how many factuals these are."""
    (_, targets), space, classifier = run.factuals(), run.space, run.classifier
    ball, least = Ball.scaled(space, "l2"), rho * (1 - RADIUS)
    robust = valid = 0
    rows = [row for row in run.rows() if row["ce"] == 1]
    answered = [row for row in rows if row["row"] is not None]
    for row in answered:
        judge = checker(space, classifier, targets[row["factual"]])
        valid += judge.valid(row["row"])
        robust += judge.certify(row["row"], ball, least, nodes=NODES, exact=False).radius >= least
    asked = max(len(rows), 1)
    return robust / asked, valid / asked, len(answered) / asked, len(rows)


@dataclass(frozen=True)
class Accuracies(OneFile):
    """Accuracy of every model on training and test rows."""

    title: str = f"Table 4 of {PAPER}"
    file: str = "robust_table4_accuracy.csv"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        ran = {(run.meta["dataset"], run.meta["model"]): run for run in found}
        records = []
        for row in records_of(published(self.file)):
            mine: dict[str, float] = {}
            for column, model in TABLE_4.items():
                run = ran.get((DATASETS[row["dataset"]], model))
                if run is None:
                    continue
                data = data_of(run)
                part = data.train if row["split"] == "train" else data.test
                right = run.classifier.predict(data.frame.iloc[part]) == data.labels[part]
                mine[column] = float(right.mean())
            place = {"split": row["split"], "dataset": row["dataset"]}
            records.append({**place, "": "published", **{name: row[name] for name in TABLE_4}})
            records.append({**place, "": "ours", **mine})
        lines = pd.DataFrame(records)
        shown, hidden = beside(lines, 3)
        body = [
            [*line[:3], *(number(value, 2) for value in line[3:])] for line in shown.itertuples(index=False, name=None)
        ]
        notes = (*hidden, "The paper's split is not published; ours is stratified.")
        return noted(markdown(list(shown.columns), body, 3), notes), lines

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
