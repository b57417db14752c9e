"""What Maragno et al. (2024) claim, decided by the numbers of Tables 1 to 3."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.core.tolerances import VALUE_TIE
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
        rows = rows.loc[rows["leaf_certified"].eq(rows["leaf_asked"]) & rows["ours_certified"].eq(rows["ours_asked"])]
        rows = rows.loc[rows["leaf_asked"].eq(rows["ours_asked"])]
    faster = int((rows["leaf_common"] < rows["paper_algorithm_common"]).sum())
    farther = int((rows["leaf_distance"] > rows["ours_distance"] * (1 + VALUE_TIE)).sum())
    nearer = int((rows["leaf_distance"] < rows["ours_distance"] * (1 - VALUE_TIE)).sum())
    holds = faster > len(rows) / 2 and farther > 0 == nearer
    return Verdict(
        holds, len(rows), f"faster in {faster}, farther in {farther}, nearer in {nearer} of {len(rows)} rows"
    )


def _all_valid(numbers: Numbers) -> Verdict:
    """Whether every answer of ours to Table 3's networks is valid; where some lack, only an invalid one tells."""
    rows = _rows(numbers, ("robust_table3",), ("ours_validity", "ours_answered"))
    valid = rows["ours_validity"] == rows["ours_answered"]
    found = valid[~valid | rows["ours_answered"].eq(1.0)]
    text = f"1.00 in {found.sum()} of {len(found)} rows: what the model refuses is not returned"
    return Verdict(bool(found.all()), len(found), text)


def _rival(measure: str, least: int | None, dataset: str | None = None) -> Callable[[Numbers], Verdict]:
    """Whether the rival's share falls short of 1 in most rows, or in ``least``, of a data set or of all."""

    def decide(numbers: Numbers) -> Verdict:
        found = _rows(numbers, ("robust_table3",), (f"ours_dominguez_olmedo_{measure}",))
        found = found.loc[found["dataset"] == dataset] if dataset is not None and len(found) else found
        short = int((found[f"ours_dominguez_olmedo_{measure}"] < 1.0).sum())
        holds = short > len(found) / 2 if least is None else short >= least
        return Verdict(holds, len(found), f"below 1 in {short} of {len(found)} rows")

    return decide


def _larger(numbers: Numbers) -> Verdict:
    """Whether the larger radius takes Algorithm 1 more seconds, for most models."""
    rows = _ended(numbers, "paper_algorithm_mean")
    return _steps(rows, "rho", "mean", KEYS)


def _ball(numbers: Numbers) -> Verdict:
    """Whether the ball takes Algorithm 1 more iterations than the box, for most models."""
    rows = _ended(numbers, "paper_algorithm_iterations")
    return _steps(rows, "table", "iterations", [*KEYS[1:], "rho"])


def _ended(numbers: Numbers, measure: str) -> pd.DataFrame:
    """Rows of both tables in which Algorithm 1 ended for everybody: means of others are of the easier people alone."""
    rows = _rows(numbers, BOTH, (measure, "paper_algorithm_stopped"))
    return rows.loc[rows["paper_algorithm_stopped"].eq(0)]


def _steps(rows: pd.DataFrame, along: str, measure: str, keys: list[str]) -> Verdict:
    """Whether a measure is greater at the greater value of a column, in most rows that have both."""
    if rows.empty or rows[along].nunique() < 2:
        return Verdict(False, 0, "")
    wide = rows.pivot_table(index=keys, columns=along, values=f"paper_algorithm_{measure}").dropna()
    first, second = wide.iloc[:, 0], wide.iloc[:, 1]
    more, same = int((second > first).sum()), int((second == first).sum())
    return Verdict(more > len(wide) / 2, len(wide), f"more in {more}, as many in {same} of {len(wide)} models")


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
        _larger,
    ),
    "robust_ball": Claim(
        "Algorithm 1 converges more slowly with balls than with boxes.",
        "section 4, on Table 2",
        2 * MODELS,
        _ball,
    ),
    "robust_leaf": Claim(
        "Robust within one leaf of each tree is faster than Algorithm 1, but farther.",
        "section 3, heuristic",
        TREES,
        _leaf,
    ),
}
