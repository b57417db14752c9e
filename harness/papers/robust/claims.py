"""What Maragno et al. (2024) claim, decided by the numbers of Tables 1 to 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from harness.core.tolerances import VALUE_TIE
from harness.papers.robust.tables import ASKED, Rivals
from harness.reports.claim import Claim, Numbers, Verdict

KEYS = ["table", "dataset", "model", "spec"]
BOTH = ("robust_table1", "robust_table2")


def _rows(numbers: Numbers, names: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows of the tables, of those that were run, in which all columns have a number."""
    frames = [numbers[name] for name in names if name in numbers and set(columns) <= set(numbers[name])]
    return pd.concat(frames).dropna(subset=list(columns)) if frames else pd.DataFrame(columns=list(columns))


def _leaf(numbers: Numbers) -> Verdict:
    """Whether one leaf of each tree is faster than Algorithm 1, and nowhere nearer than the optimum over all leaves."""
    rows = _rows(numbers, BOTH, ("leaf_common", "leaf_distance", "paper_algorithm_common", "ours_distance"))
    if len(rows):  # means are of the same factuals only where every one was answered
        rows = rows.loc[rows["leaf_answered"].eq(rows["leaf_asked"]) & rows["ours_answered"].eq(rows["ours_asked"])]
        rows = rows.loc[rows["leaf_asked"].eq(rows["ours_asked"])]
    faster = int((rows["leaf_common"] < rows["paper_algorithm_common"]).sum())
    farther = int((rows["leaf_distance"] > rows["ours_distance"] * (1 + VALUE_TIE)).sum())
    nearer = int((rows["leaf_distance"] < rows["ours_distance"] * (1 - VALUE_TIE)).sum())
    holds = faster > len(rows) / 2 and farther > 0 == nearer
    text = f"faster in {faster}, farther in {farther}, nearer in {nearer} of {len(rows)} rows"
    return _by_as_many(holds, text, rows.filter(["leaf_asked", "paper_algorithm_asked"]), ASKED)


def _by_as_many(holds: bool, text: str, asked: pd.DataFrame, least: int) -> Verdict:
    """A verdict that counts settings of at least as many people as the paper's alone, and says where there are fewer.

    ``asked`` has how many were asked, a row a setting.
    """
    fewest = asked.min(axis=1)
    fewer = bool((fewest < least).any())
    text += f", of {fewest.min():.0f} people or more where the paper has {least}" if fewer else ""
    return Verdict(holds, int((fewest >= least).sum()), text, fewer=fewer)


def _all_valid(numbers: Numbers) -> Verdict:
    """Whether every answer of ours to Table 3's networks is valid; where some lack, only an invalid one tells."""
    rows = _rows(numbers, ("robust_table3",), ("ours_validity", "ours_answered", "ours_asked"))
    valid = rows["ours_validity"] == rows["ours_answered"]
    kept = ~valid | rows["ours_answered"].eq(1.0)
    text = f"1.00 in {valid[kept].sum()} of {kept.sum()} rows"
    found = _by_as_many(bool(valid.all()), text, rows.loc[kept, ["ours_asked"]], Rivals.asked)
    return replace(found, text=f"{found.text}: what the model refuses is not returned")


def _rival(measure: str, least: int | None, dataset: str | None = None) -> Callable[[Numbers], Verdict]:
    """Whether the rival's share falls short of 1 in most rows, or in ``least``, of a data set or of all."""

    def decide(numbers: Numbers) -> Verdict:
        mean, asked = (f"ours_dominguez_olmedo_{name}" for name in (measure, "asked"))
        found = _rows(numbers, ("robust_table3",), (mean, asked))
        found = found.loc[found["dataset"] == dataset] if dataset is not None and len(found) else found
        short = int((found[mean] < 1.0).sum())
        holds = short > len(found) / 2 if least is None else short >= least
        return _by_as_many(holds, f"below 1 in {short} of {len(found)} rows", found[[asked]], Rivals.asked)

    return decide


def _grows(measure: str, along: str, keys: list[str]) -> Callable[[Numbers], Verdict]:
    """Whether a measure of Algorithm 1 is greater at the greater value of a column, in most rows that have both.

    Of rows in which it ended for everybody: means of others are of the easier people alone.
    """
    mean, stopped, asked = (f"paper_algorithm_{name}" for name in (measure, "stopped", "asked"))

    def decide(numbers: Numbers) -> Verdict:
        rows = _rows(numbers, BOTH, (mean, stopped, asked))
        rows = rows.loc[rows[stopped].eq(0)]
        if rows.empty or rows[along].nunique() < 2:
            return Verdict(False, 0, "")
        wide = rows.pivot_table(index=keys, columns=along, values=[mean, asked]).dropna()
        gaps = wide[mean].iloc[:, 1] - wide[mean].iloc[:, 0]
        more, same = int((gaps > 0).sum()), int((gaps == 0).sum())
        text = f"more in {more}, as many in {same} of {len(wide)} models"
        return _by_as_many(more > len(wide) / 2, text, wide[asked], ASKED)

    return decide


PLACE = "section 4, on Table 3"
MODELS = 54  # models and data sets of Table 1, and of Table 2
TREES = 78  # of Table 1, rows of trees and sums of them
RIVAL = "our implementation, with a weight of 1"
CLAIMS = {
    "robust_valid": Claim("The method's counterfactuals of networks are all valid.", PLACE, 8, _all_valid),
    "robust_rival": Claim(
        "The method of Dominguez-Olmedo et al. often returns solutions that are not entirely robust.",
        PLACE,
        8,
        _rival("robustness", None),
        RIVAL,
    ),
    "robust_invalid": Claim(
        "The method of Dominguez-Olmedo et al. returns invalid solutions on Ionosphere.",
        PLACE,
        4,
        _rival("validity", 1, "ionosphere"),
        RIVAL,
    ),
    "robust_larger": Claim(
        "With a smaller radius Algorithm 1 reaches the optimum faster.",
        "section 4, on Tables 1 and 2",
        2 * MODELS,
        _grows("mean", "rho", KEYS),
    ),
    "robust_ball": Claim(
        "Algorithm 1 converges more slowly with balls than with boxes.",
        "section 4, on Table 2",
        2 * MODELS,
        _grows("iterations", "table", [*KEYS[1:], "rho"]),
    ),
    "robust_leaf": Claim(
        "Robust within one leaf of each tree is faster than Algorithm 1, but farther.",
        "section 3, heuristic",
        TREES,
        _leaf,
    ),
}
