"""Tables on pages of the documentation that are made of answers kept in the repository."""

from __future__ import annotations

from pathlib import Path

from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study, read_scores
from harness.reports.overview import overview

ROOT = Path(__file__).parents[2]


def test_the_page_of_peers_shows_its_archive() -> None:
    """Every line, as ``python -m harness.tables results/archives/compas_all.ceh`` writes it, of at least 35 methods."""
    text, _ = overview(Numbers(Study.of(ROOT / "results" / "archives" / "compas_all.ceh")))
    assert text.strip() in (ROOT / "docs" / "explanation" / "peers.md").read_text()
    assert text.count("\n| `") >= 35


def test_the_page_of_regions_says_what_its_archive_has() -> None:
    """Of German credit, in the mean over kinds of training: the share that stays valid, and how far it is."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in Study.of(ROOT / "results" / "archives" / "model_change.ceh").entries:
        for run in entry.runs:
            if run.meta["dataset"] == "german_credit" and run.meta["model"] in ("lr", "mlp"):
                scores = read_scores(run)
                share = scores.filter(regex="^retraining/").mean().mean()
                found.setdefault(run.meta["method"], []).append(
                    (f"{100 * share:.0f} %", f"{scores['distance/gower'].mean():.3f}")
                )
    page = " ".join((ROOT / "docs" / "howto" / "regions.md").read_text().split())
    said = page[page.index("They say, of German credit") :]
    for method in ("ce_ocl", "ce_ocl_delta", "roar", "probe"):
        for kind in range(2):  # shares, then distances, each of both models
            for numbers in found[method]:
                place = said.index(numbers[kind])
                said = said[place + len(numbers[kind]) :]
