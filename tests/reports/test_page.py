"""The page about a sweep: what it ranks, what it shows, and what it leaves to no other file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.tables import GRANTED, MEMBER, YOUNGER, started

from harness.core.errors import HarnessError
from harness.evaluation.contest import Criterion, contests
from harness.evaluation.study import Study
from harness.reports.page import charts, page
from metrics import _example as loans

VOID = {"meta", "br", "img", "link", "path", "use", "rect", "circle"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three methods: one right, one half right, one without any answer."""
    for method, answers in {
        "exact": [GRANTED] * 8,
        "guess": [GRANTED, YOUNGER, MEMBER, None] * 2,
        "silent": [None] * 8,
    }.items():
        started(tmp_path, loans.problem, loans.factual, answers, method=method, n_counterfactuals=1, fingerprint=method)
    return tmp_path


def test_the_front_is_what_nothing_beats() -> None:
    """Against every pair of points."""
    rng = np.random.default_rng(1)
    x, y = (pd.Series(rng.integers(0, 6, 40).astype(float), name=name) for name in ("x", "y"))
    front = charts.pareto(x, y, "lower", "higher")
    for i in range(40):
        beaten = any(x[j] <= x[i] and y[j] >= y[i] and (x[j] < x[i] or y[j] > y[i]) for j in range(40))
        assert beaten != (i in front.index)


def test_no_two_methods_look_alike() -> None:
    looks = charts.look([str(number) for number in range(30)])
    assert len({(look["color"], look["linestyle"]) for look in looks.values()}) == 30
    assert len({(look["color"], look["marker"]) for look in looks.values()}) == 30


class Checker(HTMLParser):
    """Every element is closed, ids are used once, and nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids += [known["id"] or ""] if "id" in known else []
        self.loaded += [known["src"] or ""] if "src" in known else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_stands_alone(folder: Path) -> None:
    text = page.write(folder).read_text()
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert all(source.startswith("data:") for source in checker.loaded)
    assert not re.search(r"<(link|script)\b", text)


def test_the_page_says_what_happened(folder: Path) -> None:
    text = page.write(folder).read_text()
    words = re.sub(r"\s+", " ", re.sub(r"<svg.*?</svg>|<[^>]+>", " ", text, flags=re.S))
    assert "loans / tree / silent 8 GAVE_UP finished (8x)" in words
    assert "loans / tree / guess 2 GAVE_UP 4 invalid" in words
    assert "answers too few: guess, silent" in words  # a quarter, and none
    assert "paired comparisons of this one task" in words


def test_a_curve_of_answers_ends_at_the_share_answered(folder: Path) -> None:
    """Two of eight questions of a method that is as near as the nearest; infinite times as far where it has none."""
    study = Study.of(folder)
    proximity = Criterion("proximity", "mothilal/sparsity", "lower")
    ratios, seconds = charts.reached(study, contests(study, proximity))
    assert {name: np.isfinite(values).sum() for name, values in ratios.items()} == {"exact": 8, "guess": 2, "silent": 0}
    assert set(ratios["exact"]) == {1.0}
    assert np.isinf(seconds["silent"]).all()
    assert set(seconds["exact"]) == {0.5}


def test_values_of_data_are_escaped(tmp_path: Path) -> None:
    started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method="<b>exact</b>".replace("/", "_"))
    text = page.write(tmp_path).read_text()
    assert "<b>exact" not in text
    assert "&lt;b&gt;exact" in text


def test_nothing_finished_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="stored answers"):
        page.write(tmp_path)
