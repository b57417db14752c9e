"""The page about a sweep: what it ranks, what it shows, and what it leaves to no other file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness.reports.page.results import Results
from harness.reports.page.statistics import rank
from scipy import stats
from support.tables import GRANTED, MEMBER, YOUNGER, started

from harness.core.errors import HarnessError
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


def test_a_method_without_an_accepted_answer_is_put_last(folder: Path) -> None:
    results = Results.of(folder)
    assert set(results.general) == {"exact", "guess", "silent"}
    matrix = results.matrix("mothilal/sparsity", results.general, "higher")
    assert matrix.shape == (8, 3)
    assert (matrix["silent"] == -np.inf).all()
    ranking = rank(results.matrix("accepted", results.general, "higher"), "higher")
    assert list(ranking.ranks.index) == ["exact", "guess", "silent"]


def test_ranks_and_tests_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(np.array([0.0, 0.1, 2.0, 4.0]), size=(30, 4)), columns=list("abcd"))
    ranking = rank(table, "lower")
    assert ranking.p == pytest.approx(stats.friedmanchisquare(*(table[name] for name in table)).pvalue)
    assert ranking.ranks["a"] == pytest.approx(table.rank(axis=1)["a"].mean())
    # Nemenyi: two mean ranks differ significantly iff they are farther apart than the critical difference.
    apart = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2) * np.sqrt(4 * 5 / (6 * 30))
    for one in table:
        for other in table:
            if one != other:
                differ = bool(ranking.pairs.loc[one, other] < 0.05)
                assert differ == (abs(ranking.ranks[one] - ranking.ranks[other]) > apart)
    assert ranking.places["a"] == ranking.places["b"] == 1 < ranking.places["c"] <= ranking.places["d"]


def test_without_differences_all_tie() -> None:
    ranking = rank(pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 1.0]}), "lower")
    assert set(ranking.places) == {1}
    assert np.isnan(ranking.p)


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
    assert "loans / tree / silent 8 GAVE_UP" in words
    assert "loans / tree / guess 2 GAVE_UP 4 invalid" in words
    assert "not measured here (robustness/certified_radius_linf" in words
    assert "exact (1.1)" in words  # of eight blocks, two are ties for the first place


def test_a_proven_radius_stands_for_robustness_before_a_sampled_share() -> None:
    """The first metric with any number; of a sweep whose models none can certify, the second."""
    (robust,) = (requirement for requirement in page.REQUIREMENTS if requirement.name == "robust")
    sampled = pd.DataFrame({"robustness/region_validity": [0.9, 1.0]})
    assert robust.metric(sampled.assign(**{"robustness/certified_radius_linf": [0.1, np.nan]})) == robust.metrics[0]
    assert robust.metric(sampled.assign(**{"robustness/certified_radius_linf": [np.nan] * 2})) == robust.metrics[1]
    assert robust.better == "higher"


def test_values_of_data_are_escaped(tmp_path: Path) -> None:
    started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method="<b>exact</b>".replace("/", "_"))
    text = page.write(tmp_path).read_text()
    assert "<b>exact" not in text
    assert "&lt;b&gt;exact" in text


def test_nothing_finished_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="stored answers"):
        page.write(tmp_path)
