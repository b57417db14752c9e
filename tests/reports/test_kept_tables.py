"""Tables on pages of the documentation that are made of answers kept in the repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study, read_scores
from harness.reports.overview import overview
from harness.reports.scaling import measured
from harness.reports.stored import latest

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


def test_the_page_of_speed_says_what_its_archive_has() -> None:
    """Of forests: how many each method proves, that none proves another optimum, and how much longer others take."""
    asked: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    found = latest(ROOT / "results" / "archives" / "scaling.ceh")
    for run in found:
        if run.meta["model"].startswith("forest_"):
            for row in run.rows():
                question = (run.meta["dataset"], run.meta["model"], row["factual"])
                asked.setdefault(question, {})[run.meta["method"]] = row
    proven = {
        name: {question for question, rows in asked.items() if rows[name]["status"] == "OPTIMAL"}
        for name in ("ce_ocl", "treecf", "ocean_cp")
    }
    page = " ".join((ROOT / "docs" / "explanation" / "speed.md").read_text().split())
    many = {name: len(questions) for name, questions in proven.items()}
    assert f"Of {len(asked)} questions about forests `ce_ocl` proves {many['ce_ocl']}, treecf {many['treecf']}" in page
    assert f"OCEAN's constraint program {many['ocean_cp']}, none of them one that `ce_ocl` leaves open" in page
    details = Counter(rows["ocean_cp"]["detail"] for rows in asked.values())
    verdicts = Counter(line["verdict"] for run in found if run.meta["method"] == "ocean_cp" for line in run.verdicts())
    assert f"the forests refuse {verdicts['invalid']}, one of which it calls optimal." in page
    assert details["called optimal, and the model refuses it"] == 1
    times = []
    for name in ("treecf", "ocean_cp"):
        assert proven[name] <= proven["ce_ocl"]
        pairs = [(asked[question][name], asked[question]["ce_ocl"]) for question in proven[name]]
        assert [theirs["objective"] for theirs, _ in pairs] == pytest.approx([ours["objective"] for _, ours in pairs])
        times.append([theirs["seconds"] / ours["seconds"] for theirs, ours in pairs])
    middle, least = ([f"{value:,.0f}" for value in map(of, times)] for of in (np.median, min))
    assert f"faster by {middle[0]} times (treecf) and {middle[1]} times (OCEAN) in the median" in page
    assert f"by {least[0]} and {least[1]} times at least" in page
    people = measured(found).query("axis == 'people'")
    assert people["line"].unique().tolist() == ["column_generation, lr_c10"]
    assert sorted(set(people["size"])) == [10, 32, 100, 320, 1000]
