"""A published table of means beside ours: which of its numbers are the best."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import cells

from harness.reports import stored
from harness.reports.comparison import Comparison


def test_each_data_set_has_its_own_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the second, .3 is the best of .3 and .2, although both methods have more on the first."""
    text = "dataset,method,validity\nA,one,0.9\nA,other,0.5\nB,one,0.3\nB,other,0.2\n"
    (tmp_path / "means.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    table = Comparison(
        title="A table", file="means.csv", keys={"dataset": "dataset", "method": "method"},
        measures={"validity": "mothilal/validity"},
    )  # fmt: skip
    published = [row for row in cells(table.build([])[0]) if row[2] == "published"]
    assert [row[3] for row in published] == ["**0.90**", "0.50", "**0.30**", "0.20"]
