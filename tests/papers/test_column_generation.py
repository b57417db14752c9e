"""What the figures of Lodi and Ramírez-Ayerbe (2024) name, by hand."""

from __future__ import annotations

import pytest

from harness.core.space import Feature
from harness.papers.column_generation import _columns


@pytest.mark.parametrize(
    ("kind", "categories", "names"),
    [
        ("binary", ("f", "m"), ["sex m"]),
        ("categorical", ("f", "m"), ["sex f", "sex m"]),
        ("categorical", ("f", "m", "x"), ["sex f", "sex m", "sex x"]),
    ],
)
def test_a_column_is_named_by_what_a_one_says(kind: str, categories: tuple[str, ...], names: list[str]) -> None:
    """A binary feature has one column, for its second category; a categorical one has a column a category."""
    assert _columns(Feature("sex", kind, categories)) == names
