"""What Maragno, Röber and Birbil (2022) claim, decided by numbers of which the answer is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from harness.papers.ce_ocl import CLAIMS

MEASURES = ("sparsity", "continuous_proximity", "validity", "continuous_diversity")


def table(values: Mapping[str, Sequence[float]], measure: str) -> pd.DataFrame:
    """A compared table with a row a dataset, by method; the other measures are 0."""
    return pd.DataFrame(
        {"dataset": f"d{row}", "method": method, "measure": name, "published": 1.0, "ours": value * (name == measure)}
        for method, column in values.items()
        for row, value in enumerate(column)
        for name in MEASURES
    )


@pytest.mark.parametrize("name", ["sparsity", "proximity"])
@pytest.mark.parametrize(
    ("region", "holds", "rows"),
    [
        ((0.1, 0.5, 0.6), True, "2 of 3"),  # lower, equal, higher
        ((0.1, 0.6, 0.6), False, "1 of 3"),
        ((0.9, 0.9, 0.1), False, "1 of 3"),
    ],
)
def test_the_trust_region_lowers_in_most_rows(name: str, region: tuple[float, ...], holds: bool, rows: str) -> None:
    """Of both tables together: below or equal counts, above does not."""
    measure = {"sparsity": "sparsity", "proximity": "continuous_proximity"}[name]
    second = table({"CE-OCL": (0.5,), "CE-OCL_tr": region[2:]}, measure)
    first = table({"CE-OCL": (0.5, 0.5), "CE-OCL_tr": region[:2]}, measure)
    found = CLAIMS[f"ce_ocl_tr_{name}"].decide({"ce_ocl_table2": first, "ce_ocl_table3": second})
    assert found == (holds, f"lower or equal in {rows} rows")


@pytest.mark.parametrize(
    ("shares", "holds"), [((1.0, 1.0), True), ((1.0, 0.98), False), ((0.0, 0.0), False), ((), None)]
)
def test_always_valid_is_in_every_row(shares: tuple[float, ...], holds: bool | None) -> None:
    """One row below 1.00 in either table refutes it; other methods do not count."""
    first = table({"CE-OCL": shares[:1], "DiCE": (0.3,)}, "validity")
    second = table({"CE-OCL": shares[1:], "DiCE": (0.3,)}, "validity")
    decided, text = CLAIMS["ce_ocl_valid"].decide({"ce_ocl_table2": first, "ce_ocl_table3": second})
    assert decided is holds
    assert text == f"1.00 in {shares.count(1.0)} of {len(shares)} rows"


@pytest.mark.parametrize(
    ("dice", "holds", "rows"),
    [((9.0, 4.0), True, "2 of 2"), ((9.0, 3.9), False, "1 of 2"), ((0.0, 0.0), False, "0 of 2")],
)
def test_dice_leads_where_neither_of_ours_is_above(dice: tuple[float, ...], holds: bool, rows: str) -> None:
    """In more than half of the rows; as diverse as the best of ours is enough."""
    frame = table({"DiCE": dice, "CE-OCL": (1.0, 4.0), "CE-OCL_tr": (2.0, 1.0)}, "continuous_diversity")
    assert CLAIMS["ce_ocl_dice_diversity"].decide({"ce_ocl_table3": frame}) == (holds, f"greatest in {rows} rows")
