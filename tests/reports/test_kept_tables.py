"""Tables on pages of the documentation that are made of answers kept in the repository."""

from __future__ import annotations

from pathlib import Path

from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports.overview import overview

ROOT = Path(__file__).parents[2]


def test_the_page_of_peers_shows_its_archive() -> None:
    """Every line, as ``python -m harness.tables results/archives/compas_all.ceh`` writes it, of at least 35 methods."""
    text, _ = overview(Numbers(Study.of(ROOT / "results" / "archives" / "compas_all.ceh")))
    assert text.strip() in (ROOT / "docs" / "explanation" / "peers.md").read_text()
    assert text.count("\n| `") >= 35
