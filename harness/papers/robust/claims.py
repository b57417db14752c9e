"""What Maragno et al. (2024) claim, decided by the numbers of Tables 1 to 3."""

from __future__ import annotations

import pandas as pd

from harness.reports.claim import Claim, Numbers, Verdict


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
