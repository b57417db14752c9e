"""The scores of an experiment's runs, one row a factual, and how each run ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.evaluation import scoring
from harness.reports import stored
from harness.store.run import StoredRun

ACCEPTED, VIOLATIONS = "accepted", "actionability/violations"
NAMES = ["dataset", "model", "method"]
REFUSED = {str(Status.UNSUPPORTED), str(Status.FAILED)}


@dataclass(frozen=True)
class Results:
    """Finished runs of one experiment, in the order in which they were made."""

    name: str
    folder: Path
    runs: Sequence[StoredRun]

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Read an experiment's folder.

        Raises
        ------
        HarnessError
            Where no run is finished and scored.
        """
        found = [run for run in stored.latest(folder) if (run.path / "scores.csv").is_file()]
        if not found:
            raise HarnessError(f"no cell under {folder} is scored; run its experiment to the end.")
        return cls(folder.resolve().name, folder, found)

    @cached_property
    def metas(self) -> list[dict[str, Any]]:
        return [run.meta for run in self.runs]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Columns dataset, model, method, factual, and every score; one row a factual of a run.

        ``accepted``: the share of what was asked for that the checker found valid, coherent and permitted.
        """
        parts = []
        for run, meta in zip(self.runs, self.metas, strict=True):
            part = pd.read_csv(run.path / "scores.csv")
            good = Counter(line["factual"] for line in run.verdicts() if line["verdict"] == "valid")
            part[ACCEPTED] = part["factual"].map(good).fillna(0) / part["requested"]
            parts.append(part.assign(**{name: meta[name] for name in NAMES}))
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """Rows by status and by verdict, and reasons, one row a run; ``refused``: no factual was taken."""
        lines = []
        for run, meta in zip(self.runs, self.metas, strict=True):
            outcome = scoring.outcome(run)
            refused = not set(outcome["status"]) - REFUSED
            lines.append({**{name: meta[name] for name in NAMES}, **outcome, "refused": refused})
        return pd.DataFrame(lines)

    def among(self, kind: str) -> list[str]:
        """Names of the methods, models or datasets, in the order in which they were run."""
        return list(dict.fromkeys(meta[kind] for meta in self.metas))

    @property
    def general(self) -> list[str]:
        """Methods with answers for every dataset and model of the sweep."""
        pairs = {(meta["dataset"], meta["model"]) for meta in self.metas}
        taken = self.outcomes.loc[~self.outcomes["refused"]].groupby("method").size()
        return [name for name in self.among("method") if taken.get(name, 0) == len(pairs)]

    def matrix(self, metric: str, methods: Sequence[str], better: str) -> pd.DataFrame:
        """Means by block (rows) and method (columns): what methods are ranked by.

        A block is a dataset with a model; where there are fewer than two datasets, a factual of a model, since five
        models of one dataset tell too little. A method without a valid counterfactual in a block is put last there:
        it gets plus or minus infinity, never a gap. So it is where one of its counterfactuals breaks the constraints of
        the question, as being nearer for that is no merit; ``accepted`` and seconds are ranked as they are.
        """
        scores = self.scores.loc[self.scores["method"].isin(methods)].copy()
        if metric not in {ACCEPTED, "seconds", VIOLATIONS} and VIOLATIONS in scores:
            scores.loc[scores[VIOLATIONS] > 0, metric] = np.nan
        block = ["dataset", "model"] + (["factual"] if len(self.among("dataset")) < 2 else [])
        table = scores.pivot_table(index=block, columns="method", values=metric, aggfunc="mean", dropna=False)
        table = table.reindex(columns=list(methods))
        known = table.dropna(how="all")
        return known.fillna(np.inf if better == "lower" else -np.inf)
