"""Every published cell belongs to a table, and each claim is decided by numbers that are known to hold or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from harness.papers import pso
from harness.reports import registry, reproduction, stored

CLAIMS = registry.collected("CLAIMS")


def test_every_published_file_belongs_to_a_table() -> None:
    assert reproduction._uncovered(registry.known()) == ""


@pytest.mark.parametrize("name", registry.known())
def test_what_was_not_run_still_counts_its_published_cells(name: str) -> None:
    """One line a cell: keys, measure, published; nothing of ours."""
    table = registry.known()[name]
    lines = table.compared(table.build(())[1])
    if "published" in lines:
        assert {"measure", "ours"} <= set(lines)
        keys = list(lines.columns[: list(lines.columns).index("measure") + 1])
        assert lines["published"].notna().any()
        assert not lines.duplicated(keys).any()
        assert (lines["ours"].isna() | (lines["ours"].astype(str) == "")).all()


@pytest.mark.parametrize(
    ("name", "files", "keys"),
    [
        ("robust_table1", ["robust_tables1_2.csv"], 6),
        ("robust_table3", ["robust_table3.csv"], 3),
        ("robust_table4", ["robust_table4_accuracy.csv"], 2),
        ("pso_table2", ["pso_table1.csv", "pso_table2.csv"], 2),
    ],
)
def test_counts_are_those_of_the_file(name: str, files: list[str], keys: int) -> None:
    """Every number of a file after its keys, but for standard errors, and radii of runs that stopped early."""
    cells = 0
    for file in files:
        frame = pd.read_csv(stored.PUBLISHED / file)
        frame = frame[frame["table"] == int(name[-1])] if "table" in frame else frame
        skipped = 1 if file == "pso_table1.csv" else keys
        numbers = [column for column in frame.columns[skipped:] if not column.endswith(("_se", "of_early_stops"))]
        cells += int(frame[numbers].count().sum())
    table = registry.known()[name]
    assert table.compared(table.build(())[1])["published"].notna().sum() == cells


@pytest.mark.parametrize("name", CLAIMS)
def test_nothing_decides_nothing(name: str) -> None:
    """Without numbers a claim stays open, and says why."""
    claim = CLAIMS[name]
    if not claim.needs:
        holds, why = claim.decide({})
        assert holds is None
        assert why
    assert set(claim.needs) <= set(registry.known())


def long(measure: str, values: Mapping[Any, float], keys: tuple[str, ...]) -> pd.DataFrame:
    lines = [{**dict(zip(keys, place, strict=True)), "measure": measure, "published": 1.0, "ours": value}
             for place, value in values.items()]  # fmt: skip
    return pd.DataFrame(lines)


@pytest.mark.parametrize(("seconds", "holds"), [((1.0, 2.0), True), ((2.0, 1.0), False), ((math.nan, 1.0), None)])
def test_column_generation_is_compared_from_20_on(seconds: tuple[float, float], holds: bool | None) -> None:
    """Where the whole program wins below 20, that does not count."""
    keys = ("n_factuals", "t_max")
    frame = pd.concat(
        long(name, {(10, 2): own, (20, 2): value, (50, 2): value}, keys)
        for name, own, value in (("cg_seconds", 9.0, seconds[0]), ("mip_seconds", 1.0, seconds[1]))
    )
    assert CLAIMS["cg_faster"].decide({"cg_table4": frame})[0] is holds


@pytest.mark.parametrize(("proven", "holds"), [(5, True), (4, False)])
def test_certified_runs_are_counted(proven: int, holds: bool) -> None:
    keys = ("n_factuals", "t_max")
    frame = pd.concat([long("CG proven", {(10, 2): proven}, keys), long("CG runs", {(10, 2): 5}, keys)])
    assert CLAIMS["cg_proven"].decide({"cg_table4": frame}) == (holds, f"{proven / 5:.1%} of 5 runs (published 94.1%)")


@pytest.mark.parametrize(("second", "holds"), [(3.0, True), (5.0, False)])
def test_more_changes_need_no_more_counterfactuals(second: float, holds: bool) -> None:
    frame = long("ours mean", {(10, 3): second, (10, 2): 4.0}, ("n_factuals", "t_max"))
    assert CLAIMS["cg_fewer"].decide({"cg_table4": frame})[0] is holds


@pytest.mark.parametrize(("own", "holds"), [(0.1, True), (0.35, True), (0.9, False)])
def test_ranks_are_among_all_six(own: float, holds: bool) -> None:
    """MD-PSO first, second and last; a dataset that lacks a method is left out."""
    values = {("lsvt", method): 0.3 + place / 10 for place, method in enumerate(pso.METHODS)}
    values["lsvt", "md_pso_pullback_tuned"] = 0.1  # none of the six
    values[("lsvt", "MD-PSO")] = own
    values[("compas", "MD-PSO")] = 7.0
    frame = long("proximity", values, ("dataset", "method"))
    decided, text = CLAIMS["pso_near"].decide({"pso_table2": frame})
    assert decided is holds
    assert "compas" not in text


@pytest.mark.parametrize(("share", "holds"), [(0.99, True), (0.2, False)])
def test_growing_spheres_on_wide_data(share: float, holds: bool) -> None:
    frame = long("sparsity", {("lsvt", "GS"): share, ("compas", "GS"): 0.1}, ("dataset", "method"))
    assert CLAIMS["pso_wide"].decide({"pso_table2": frame}) == (holds, f"share changed: {share:.2f} on lsvt")


@pytest.mark.parametrize(
    ("seconds", "distance", "certified", "holds"),
    [(1.0, 2.0, 20, True), (3.0, 2.0, 20, False), (1.0, 0.9, 20, False), (1.0, 2.0, 19, None)],
    ids=["holds", "slower", "nearer", "other factuals"],
)
def test_the_leaf_heuristic(seconds: float, distance: float, certified: int, holds: bool | None) -> None:
    line = {"leaf_median": seconds, "leaf_distance": distance, "leaf_certified": certified, "leaf_asked": 20}
    line |= {"paper_algorithm_median": 2.0, "ours_distance": 1.0, "ours_certified": 20, "ours_asked": 20}
    assert CLAIMS["robust_leaf"].decide({"robust_table1": pd.DataFrame([line])})[0] is holds


@pytest.mark.parametrize(("rival", "own", "holds"), [(0.5, 1.0, (True, True)), (1.0, 1.0, (True, False)),
                                                     (0.5, 0.9, (False, True))])  # fmt: skip
def test_robustness_beside_the_rival(rival: float, own: float, holds: tuple[bool, bool]) -> None:
    frame = pd.DataFrame([{"ours_robustness": own, "ours_dominguez_olmedo_robustness": rival}])
    names = ("robust_certain", "robust_rival")
    assert tuple(CLAIMS[name].decide({"robust_table3": frame})[0] for name in names) == holds


@pytest.mark.parametrize(("wider", "holds"), [(8.0, True), (2.0, False)])
def test_a_larger_radius_takes_more_iterations(wider: float, holds: bool) -> None:
    place = {"table": 1, "dataset": "banknote", "model": "rf", "spec": "# est.: 5"}
    lines = [{**place, "rho": rho, "paper_algorithm_iterations": n} for rho, n in ((0.01, 4.0), (0.05, wider))]
    assert CLAIMS["robust_larger"].decide({"robust_table1": pd.DataFrame(lines)})[0] is holds


@pytest.mark.parametrize(("first", "holds"), [(0.9, True), (1.5, False)])
def test_proximity_first_is_the_nearest(first: float, holds: bool) -> None:
    values = {(2, "weighted"): 1.2, (2, "hierarchical(1,0)"): first, (3, "weighted"): 0.1}
    frame = long("proximity", values, ("max_changes", "approach"))
    decided, text = CLAIMS["scorecard_proximity"].decide({"scorecard_table4": frame})
    assert (decided, text) == (holds, f"least in {int(holds)} of 1 rows")


@pytest.mark.parametrize(("other", "holds"), [(4.0, True), (6.0, False)])
def test_approaches_agree_on_diversity(other: float, holds: bool) -> None:
    keys = ("n_counterfactuals", "max_changes", "approach")
    frame = long("diversity_features", {(3, 2, "weighted"): 4.0, (3, 2, "hierarchical(1,0)"): other}, keys)
    assert CLAIMS["scorecard_agree"].decide({"scorecard_table6": frame})[0] is holds
