"""The page about a sweep: what it recommends, what it shows, and what it leaves to no other file."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from support import tables
from support.figures import curves
from support.markup import Page
from support.sites import FAR, ran_for_several
from support.tables import GRANTED, MEMBER, YOUNGER, started

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.space import Feature
from harness.core.target import Label
from harness.evaluation import statistics
from harness.evaluation.contest import Contest, Criterion, Standing, contests
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import Better
from harness.evaluation.study import SCORES, Study, read_scores
from harness.reports import canvas, markup
from harness.reports.page import against, charts, elements, figures, page
from harness.reports.page.which import _recommended, beside, how, places, recommendations
from metrics import _example as loans

LATE = Answer(Status.GAVE_UP, None, Reason.TIME_LIMIT, detail="no tree was left in time")
METHODS = {
    "exact": [GRANTED] * 8,
    "guess": [GRANTED, YOUNGER, MEMBER, None] * 2,
    "silent": [LATE] * 6 + [None] * 2,
}
PATHS = [*tables.PATHS, "metrics.proximity.gower", "metrics.plausibility.ynn"]
NAN = math.nan
SECTIONS = ["which", "question", "against", "numbers", "figures", "failures", "departures", "runs"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods: one right, one half right, one without any answer; and runs that were stopped, one to the end."""
    home = tmp_path_factory.mktemp("three")
    (home / "sweeps").mkdir()
    stopped = [
        {
            "state": state,
            "label": label,
            "message": "memory is full.",
            "cell": label,
            **({"asked": asked} if asked else {}),
        }
        for state, label, asked in (
            ("failed", "lost", ""),
            ("failed", "loans/tree/exact", ""),
            ("failed", "again (seed=2)", "a"),
            ("failed", "mistyped", "b"),
            ("done", "again", "a"),  # the same command, in a sweep where nothing else varies
            ("done", "mistyped (jobs=2)", "c"),  # another command for the same
            ("done", "beside", "d"),
            ("failed", "beside", "e"),  # of another seed, say
            ("failed", "both", "f"),
            ("failed", "both", "g"),
        )
    ]
    (home / "sweeps" / "1.jsonl").write_text("\n".join(map(json.dumps, stopped)))
    for method, answers in METHODS.items():
        named = {"method": method, "fingerprint": method, "paths": PATHS}
        started(home, loans.problem, loans.factual, answers, n_counterfactuals=1, **named)
    return home


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return page.write(folder).read_text()


@pytest.fixture(scope="module")
def read(text: str) -> Page:
    return Page(text)


def test_the_front_is_what_nothing_beats() -> None:
    """Against every pair of points."""
    rng = np.random.default_rng(1)
    x, y = (pd.Series(rng.integers(0, 6, 40).astype(float), name=name) for name in ("x", "y"))
    front = charts.pareto(x, y, "lower", "higher")
    for i in range(40):
        beaten = any(x[j] <= x[i] and y[j] >= y[i] and (x[j] < x[i] or y[j] > y[i]) for j in range(40))
        assert beaten != (i in front.index)


def test_methods_of_other_people_or_numbers_are_not_said_to_be_asked_alike() -> None:
    """One method of a model about twelve people, the other about four, makes two tasks of it."""

    def alike(*asked: tuple[str, float, int]) -> bool:
        metas = [{"config": {"time_limit": limit}, "n_counterfactuals": count} for _, limit, count in asked]
        entries = [SimpleNamespace(dataset="d", model="m", metas=[meta]) for meta in metas]
        tasks = list(dict.fromkeys(task for task, *_ in asked))
        study: Any = SimpleNamespace(entries=entries, datasets=["d"], tasks=tasks, faults=())
        return page._alike(study)

    assert alike(("d / m", 5, 1), ("d / m", 5, 1))
    assert not alike(("d / m (n_factuals=12)", 5, 1), ("d / m (n_factuals=4)", 5, 1))
    assert not alike(("d / m", 5, 1), ("d / m", 9, 1))
    assert not alike(("d / m", 5, 1), ("d / m", 5, 3))


def test_no_two_methods_look_alike() -> None:
    """Of 96 by colour and marker; of 32 by colour and dash."""
    looks = list(charts.look([str(number) for number in range(96)]).values())
    assert len({(look["color"], look["marker"]) for look in looks}) == 96
    assert len({(look["color"], look["linestyle"]) for look in looks[:32]}) == 32


def test_the_page_stands_alone(text: str, read: Page) -> None:
    """Ids are used once, those referred to are there, and nothing is loaded from elsewhere."""
    ids = read.all("id")
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in read.all("href") if link.startswith("#")} <= set(ids)
    assert all(source.startswith("data:") for source in read.all("src"))
    assert not re.search(r"<(link|script)\b", text)


def test_the_sections_are_in_order(read: Page) -> None:
    places = [SECTIONS.index(name) for name in read.all("id") if name in SECTIONS]
    assert places == sorted(places)
    assert places[:6] == list(range(6))


def test_a_narrow_page_needs_no_scrolling(text: str, read: Page) -> None:
    """Every row can be stacked, a cell with its heading; no element asks for a width of its own."""
    for table, columns in zip(read.tables, read.columns, strict=True):
        assert all(len(row) == len(columns) for row in table.rows)
    style = re.sub(r"/\*.*?\*/", "", text[text.index("<style>") : text.index("</style>")])
    assert not re.search(r"[{; ](min-)?width: *[\d.]+(px|rem|pt|cm|mm)", style)
    assert "svg, img { max-width: 100%; height: auto; }" in style
    assert {tag for tag, known in read.attributes if known.keys() & {"width", "height", "style"}} <= {
        "svg", "rect", "path", "g", "image", "use",
    }  # fmt: skip


def test_the_page_says_why(text: str, read: Page) -> None:
    """Of each answer without a counterfactual, its status with the reason and what the method says of it."""
    shown = {row["method"]: list(row.values())[1:] for row in read.tables[-1].rows}
    nothing = "GAVE_UP: finished, with no reason given"
    assert shown == {
        "guess": ["guess", f"2 {nothing}", "4 invalid"],
        "silent": ["silent", f"6 GAVE_UP: time limit, no tree was left in time2 {nothing}", ""],
    }
    assert text.count("did not come to an end") == 4
    assert text.count("both did not come to an end: memory is full.") == 2
    assert "beside did not come to an end: memory is full." in text
    assert "lost did not come to an end: memory is full." in text


def test_pictures_are_those_of_the_folder_alone() -> None:
    """A text of an archive that anybody may have made names one elsewhere: it is shown as text."""
    text = str(
        elements.markdown("- ![a](figures/a.png) and ![b](https://example.org/b.png?x=1)", elements.Names(["m"]))
    )
    assert re.findall(r'src="([^"]*)"', text) == ["figures/a.png"]
    assert "![b](https://example.org/b.png?x=1)" in text


def test_coverage_is_beside_what_is_recommended(read: Page) -> None:
    """All, a quarter and nothing of eight: only the first is recommended, and Wilson's interval goes with it.

    Its rank is a quarter in the two questions of which another has the same answer, else 0.
    """
    shown = [table for table in read.tables if table.rows and "place" in table.rows[0]]
    for table in shown:
        best, none = table.rows
        assert best["place"] == "1"
        assert re.fullmatch(r"exact \(rank 0\.06, coverage 1 \(0\.676 to 1\)\)", best["methods"])
        assert re.fullmatch(
            r"answers too few: guess \(coverage 0\.25 \(0\.0715 to 0\.591\)\) silent \(coverage 0 \(0 to 0\.324\)\)",
            none["methods"],
        )
    assert [table.heading.split(",")[0] for table in shown] == ["proximity", "plausibility", "seconds"]


def test_what_no_answer_has_a_value_of_recommends_nobody(tmp_path: Path) -> None:
    """Rows have no time, so there is no share for later ones; the distance is there as before."""
    paths = [*PATHS, "metrics.retraining.later"]
    for method, answers in METHODS.items():
        named = {"method": method, "fingerprint": method, "paths": paths}
        started(tmp_path, loans.problem, loans.factual, answers, n_counterfactuals=1, **named)
    numbers = Numbers(Study.of(tmp_path))
    assert "later rows" in {criterion.name for criterion in numbers.criteria}
    told = {each.name for each in recommendations(numbers, Markup)}
    assert "later rows" not in told
    assert {"proximity", "seconds"} <= told


def test_where_nobody_has_a_rival_nobody_is_recommended(tmp_path: Path) -> None:
    started(tmp_path, loans.problem, loans.factual, [GRANTED] * 4, paths=PATHS)
    assert recommendations(Numbers(Study.of(tmp_path)), Markup) == []
    assert "Nothing to compare: no method answers, or none has a rival in its task." in page.write(tmp_path).read_text()


@pytest.mark.parametrize(("limit", "alike"), [(5, True), (60, False)])
def test_limits_that_differ_are_not_called_the_same(limit: int, alike: bool, tmp_path: Path) -> None:
    for method, seconds in {"one": 5, "two": limit}.items():
        started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method=method, time_limit=seconds)
    assert ("Every method answers for the same people" in page.write(tmp_path).read_text()) == alike


def test_other_people_are_not_called_the_same(tmp_path: Path) -> None:
    for method, people in {"one": 2, "two": 3}.items():
        started(tmp_path, loans.problem, loans.factual, [GRANTED] * people, method=method)
    text = page.write(tmp_path).read_text()
    assert "was asked about other people or data" in text
    assert "Every method answers for the same people" not in text


def test_who_refuses_is_no_failure(tmp_path: Path) -> None:
    """And has its own place on the page."""
    refused = Answer(Status.UNSUPPORTED, None, Reason.REFUSED, detail="trees alone.")
    for method, answer in {"first": GRANTED, "second": refused, "third": None}.items():
        started(tmp_path, loans.problem, loans.factual, [answer] * 2, method=method)
    failures = str(page._failures(Study.of(tmp_path), Markup))
    assert "third" in failures
    assert "second" not in failures
    assert "trees alone" in page.write(tmp_path).read_text()


def test_every_data_set_has_its_own_question(tmp_path: Path) -> None:
    """Another target, number of people and limit of the second."""
    other = replace(loans.problem, target=Label("refused"))
    started(tmp_path, loans.problem, loans.factual, [GRANTED] * 4)
    started(tmp_path, other, loans.factual, [GRANTED] * 2, dataset="debts", time_limit=9)
    rows = Page(page.write(tmp_path).read_text()).table("The question", "wanted")
    assert [list(row.values()) for row in rows.values()] == [
        ["debts", "refused", "tree", "2", "1", "9"],
        ["loans", "granted", "tree", "4", "1", "5"],
    ]


def test_people_without_a_counterfactual_were_asked(tmp_path: Path) -> None:
    """Of two there is none for one, by proof."""
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail="all is settled")
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED, none])
    read_scores(run).assign(impossible=[0.0, 1.0]).to_csv(run.path / SCORES)
    shown = Page(f"<h2>The question</h2>{page._question(Study.of(tmp_path))}")
    assert shown.table("The question", "wanted")["loans"]["people asked"] == "2"


def test_processor_seconds_say_of_how_many_questions_they_are(tmp_path: Path) -> None:
    """One of two was stopped: what it took of the processor is not known."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2)
    for known, text in (([0.5, NAN], "0.5 (1)"), ([0.5, 0.5], "0.5"), ([NAN, NAN], "–")):
        read_scores(run).assign(cpu_seconds=known).to_csv(run.path / SCORES)
        numbers = Numbers(Study.of(tmp_path))
        (row,) = (
            Page(f"<h2>x</h2>{page._alone(numbers, numbers.study.tasks[0], elements.Names(['ours']))}").tables[0].rows
        )
        assert row["cpu_s"] == text


def test_numbers_have_three_decimals() -> None:
    assert (markup.figure(0.0274), markup.figure(NAN)) == ("0.027", "–")


def test_a_method_has_one_look_everywhere(text: str, folder: Path) -> None:
    """The sample beside its name has the colour of its curve, and each method's sample is another."""
    samples = dict(re.findall(r'<g id="look-(\d)"><path d="[^"]*" stroke="(#\w+)"', text))
    assert len(set(samples.values())) == len(METHODS)
    drawn = (folder / "figures" / "performance_profiles.svg").read_text()
    for place, method in enumerate(Study.of(folder).methods):
        assert f'<use href="#look-{place}"/></svg>{method}' in text
        assert f"stroke: {samples[str(place)].lower()}" in drawn


def test_figures_are_files_for_a_journal(text: str, folder: Path) -> None:
    """Of each an SVG, which the page has as it is, a PDF and a PNG, the same bytes when drawn again; 85 mm wide, and
    with three methods no higher than half a page."""
    home = folder / "figures"
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    names = {"ranks", "performance_profiles", "trade_off_loans", "one_person"}
    assert before.keys() == {f"{name}.{suffix}" for name in names for suffix in ("svg", "pdf", "png")}
    for name in names:
        drawn = before[f"{name}.svg"].decode()
        assert drawn[drawn.index("<svg") :] in text
        size = re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', drawn)
        assert size
        assert float(size[1]) == pytest.approx(85 / 25.4 * 72, abs=0.01)
        assert float(size[2]) < 120 / 25.4 * 72
        assert before[f"{name}.pdf"].startswith(b"%PDF")
        assert imread(home / f"{name}.png").shape[1] == pytest.approx(85 / 25.4 * 300, abs=1)
    stale, mine = home / "trade_off_old.pdf", home / "mine.png"
    stale.touch()
    mine.touch()
    page.write(folder)
    assert (stale.exists(), mine.exists()) == (False, True)
    mine.unlink()
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    with canvas.column_style():
        plan = next(figures.plans(Numbers(Study.of(folder))))
        canvas.save(plan.draw(), home / plan.name, plan.title)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


@pytest.mark.parametrize(("second", "shown"), [(GRANTED, 1), (None, 2)])
def test_one_person_is_whom_most_methods_answer(second: dict[str, Any] | None, shown: int, tmp_path: Path) -> None:
    """The first of those, not the first of all; nobody where there is no answer."""
    answers = {"a": [GRANTED, second, GRANTED], "b": [None, GRANTED, GRANTED]}
    for method, rows in answers.items():
        started(tmp_path / "some", loans.problem, loans.factual, rows, method=method, fingerprint=method)
        started(tmp_path / "none", loans.problem, loans.factual, [None] * 3, method=method, fingerprint=method)
    looks = charts.look(list(answers))
    plan = figures._person(Study.of(tmp_path / "some"), looks)
    assert plan is not None
    assert plan.text.startswith(f"Factual {shown} of ")
    assert figures._person(Study.of(tmp_path / "none"), looks) is None


def test_one_person_is_shown_the_nearest_accepted_answer(tmp_path: Path) -> None:
    """Of several; where none is accepted the first, with the checker's word."""
    run = ran_for_several(tmp_path, [[MEMBER, FAR, GRANTED], [YOUNGER, MEMBER, MEMBER]])
    assert figures._taken(run) == {0: (GRANTED, "accepted"), 1: (YOUNGER, "invalid")}


def test_who_finds_nothing_for_one_person_says_so() -> None:
    """In its own line, below the factual's; who changes something shows the value."""
    rows = {"a": GRANTED, "b": None, "c": MEMBER}
    figure = charts.strip(loans.factual.iloc[0], rows, loans.SPACE.features, charts.look(list(rows)))
    (axis,) = figure.axes
    texts = {text.get_text(): text.get_position() for text in axis.texts}
    assert texts["none found"][1] == 2
    assert {text for text, (_, line) in texts.items() if line == 1} == {"80", "40"}
    assert axis.get_ylim() == (3.5, -0.5)  # the factual's line, and one for each method


def test_the_farthest_answers_are_listed_by_how_many_times_as_far() -> None:
    """Of a question whose nearest answer lies at no distance nothing can be said; who has none is no case."""
    values = pd.DataFrame({"a": [1.0, 0.0, 2.0], "b": [4.0, 5.0, math.nan], "c": [2.0, 1.0, 3.0]}, index=[7, 8, 9])
    contest: Any = SimpleNamespace(values=values, task="d / m")
    numbers: Any = SimpleNamespace(contests={"proximity": [contest]})
    found = against.farthest(numbers, lambda name: Markup(name))
    cells = [re.findall(r"<span>(.*?)</span>", row) for row in str(found).split("<tr>")[2:]]
    assert [row[1:] for row in cells] == [
        ["b", "7", "4", "1", "4.0"],
        ["c", "7", "2", "1", "2.0"],
        ["c", "9", "3", "2", "1.5"],
        ["a", "7", "1", "1", "1.0"],
        ["a", "9", "2", "2", "1.0"],
    ]
    assert against.farthest(SimpleNamespace(contests={}), lambda name: Markup(name)) is None  # type: ignore[arg-type]


def test_a_pair_has_its_tests_beside_its_counts() -> None:
    """Both answer two of twelve questions, one of them ten more: p is 2 / 2^2 by Wilcoxon, 2 / 2^10 by McNemar."""
    values = pd.DataFrame({"a": [0.1] * 12, "b": [0.2] * 2 + [NAN] * 10})
    nearest = Criterion("proximity", "gower", "lower")
    contest = Contest("d / m", nearest, values, values.notna())
    (row,) = against._pairs(contest, Markup)
    assert dict(zip((column.heading for column in against.PAIRS), row, strict=True)) == {
        "criterion": "proximity", "first": "a", "second": "b", "both": "2",
        "median of first − second": '-0.1 <span class="ci">(-0.1 to -0.1)</span>', "Wilcoxon, Holm": "0.5",
        "only first": "10", "only second": "0", "McNemar, Holm": "0.002",
    }  # fmt: skip


def test_pairs_are_of_who_ranks_first_with_each_other() -> None:
    """Where twelve questions are answered by all; the second and the third are no pair of the page."""
    values = pd.DataFrame({"a": [0.1] * 12, "b": [0.2] * 12, "c": [0.3] * 12})
    contest = Contest("d / m", Criterion("proximity", "gower", "lower"), values, values.notna())
    assert [row[1:3] for row in against._pairs(contest, Markup)] == [["a", "b"], ["a", "c"]]


NAMES = [f"method_number_{place}" for place in range(14)] + ["ce_ocl (features.x.actionability=free, alpha=0)"]


def fifteen() -> dict[str, Figure]:
    """Figures of 15 methods, one with a long name, over six data sets."""
    looks, rng = charts.look(NAMES), np.random.default_rng(0)
    ranks = pd.DataFrame(rng.uniform(0, 0.3, (6, 15)) + np.linspace(0, 0.7, 15), columns=NAMES)
    test = statistics.friedman(ranks)
    criteria = [Criterion(name, name, "lower") for name in ("proximity", "largest box around it", "seconds")]
    standings = {c.name: Standing(c, ranks, test, {}, frozenset()) for c in criteria}
    features = [f"a_long_name_of_feature_{place}" for place in range(7)]
    factual = pd.Series("a value of many letters", index=features, name=12345)
    rows = {name: dict.fromkeys(features, "another value") if place % 3 else None for place, name in enumerate(NAMES)}
    return {
        "critical": charts.critical(standings["proximity"], looks),
        "heat": charts.heat(standings, looks),
        "strip": charts.strip(factual, rows, [Feature(name, "ordinal", ("a", "b")) for name in features], looks),
    }


def test_critical_differences_are_drawn_at_the_ranks_of_their_test() -> None:
    """Of 18 data sets b is first, in two far behind: it is best by the test, and the worst by mean ranks."""
    often, seldom = {"a": 0.52, "b": 0.48, "c": 0.50}, {"a": 0.0, "b": 1.0, "c": 0.5}
    ranks = pd.DataFrame([often] * 18 + [seldom] * 2)
    proximity = Criterion("proximity", "proximity", "lower")
    standing = Standing(proximity, ranks, statistics.friedman(ranks), {}, frozenset())
    assert list(standing.mean_ranks.index) == ["a", "c", "b"]
    with canvas.column_style():
        figure = charts.critical(standing, charts.look(list("abc")))
    labels = {tuple(sorted(text.get_text().split())) for text in figure.findobj(Text)}
    assert {("1.20", "b"), ("2.00", "c"), ("2.80", "a")} <= labels


def test_every_letter_of_a_figure_can_be_read(folder: Path) -> None:
    """At 85 mm: none smaller than 6.5 points, none cut by an edge, no two texts on each other."""
    with canvas.column_style():
        drawn = fifteen() | {plan.name: plan.draw() for plan in figures.plans(Numbers(Study.of(folder)))}
        for name, figure in drawn.items():
            figure.draw_without_rendering()
            legible(name, figure)


def legible(name: str, figure: Figure) -> None:
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = {text: text.get_window_extent() for text in shown}
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        low, high = sorted(axis.get_view_interval())
        beyond = [tick for tick in (*axis.majorTicks, *axis.minorTicks) if not low <= tick.get_loc() <= high]
        hidden = {label for tick in beyond for label in (tick.label1, tick.label2)}  # not drawn
        shown = [text for text in shown if text not in hidden]
    level = [text for text in shown if boxes[text].width > 0 and text.get_rotation() in {0, 90}]
    for text in shown:
        assert text.get_fontsize() >= 6.5 - 1e-9, (name, text.get_text())
        inside = Bbox.intersection(boxes[text], figure.bbox)
        whole = inside is not None and np.allclose(inside.size, boxes[text].size, atol=1.0)
        assert whole or boxes[text].width == 0, (name, text.get_text())
    for one, other in combinations(level, 2):
        both = Bbox.intersection(boxes[one], boxes[other])
        assert both is None or min(both.size) < 1.5, (name, one.get_text(), other.get_text())


def test_a_curve_of_answers_ends_at_the_share_answered(folder: Path) -> None:
    """Two of eight questions of a method that is as near as the nearest; infinite times as far where it has none."""
    study = Study.of(folder)
    proximity = Criterion("proximity", "mothilal/sparsity", "lower")
    found = contests(study, proximity)
    ratios, seconds = charts.reached(study, found)
    assert {name: np.isfinite(values).sum() for name, values in ratios.items()} == {"exact": 8, "guess": 2, "silent": 0}
    assert set(ratios["exact"]) == {1.0}
    assert np.isinf(seconds["silent"]).all()
    assert set(seconds["exact"]) == {0.5}
    for panel in charts.profile(study, found).axes:
        tops = {line.get_label(): max(line.get_ydata()) for line in panel.lines}
        assert tops == {"exact": 1.0, "guess": 0.25, "silent": 0.0}


def test_a_curve_counts_a_question_once_a_seed() -> None:
    """Of two questions one seed answers both, the other the first, twice as far: three of four cases, one of them far.

    The method of one seed has two, and the second at half the distance.
    """
    found = {"several": [[1.0, 2.0], [2.0, NAN]], "one": [[1.0, 1.0]]}
    parts = {
        name: [
            pd.DataFrame({"nearest/gap": gaps, "seconds": [0.5, 3.0], "coverage": np.isfinite(gaps).astype(float)})
            for gaps in seeds
        ]
        for name, seeds in found.items()
    }
    entries = [SimpleNamespace(method=name, by_seed=tables, timed=True) for name, tables in parts.items()]
    study: Any = SimpleNamespace(of_task=lambda task: entries)
    contest: Any = SimpleNamespace(task="d / m", criterion=Criterion("gap", "gap", "lower"))
    ratios, seconds = charts.reached(study, [contest])
    np.testing.assert_allclose(ratios["several"], [1, 2, 2, np.inf])
    np.testing.assert_allclose(ratios["one"], [1, 1])
    np.testing.assert_equal(seconds["several"], [0.5, 3, 0.5, np.inf])


def test_a_curve_rises_with_each_answer() -> None:
    """Of four questions one has no answer: a quarter after .5 s, and three quarters from the last answer to the end."""
    answered = {"nearest/gap": [1.0, 1.0, 1.0, NAN], "seconds": [2.0, 0.5, 1.0, 5.0], "coverage": [1.0, 1.0, 1.0, 0.0]}
    entry = SimpleNamespace(method="one", by_seed=[pd.DataFrame(answered)], timed=True)
    study: Any = SimpleNamespace(methods=["one"], of_task=lambda task: [entry])
    contest: Any = SimpleNamespace(task="d / m", criterion=Criterion("gap", "gap", "lower"))
    assert curves(charts.profile(study, [contest]).axes[1])["one"][:2] == ([0.5, 1, 2, 2], [0.25, 0.5, 0.75, 0.75])


def test_each_cell_of_ranks_is_at_its_method() -> None:
    """The better one is the upper row."""
    ranks = pd.DataFrame({"b": [0.75], "a": [0.25]})
    standing = Standing(Criterion("near", "gower", "lower"), ranks, None, {}, frozenset())
    (axis,) = charts.heat({"near": standing}, charts.look(["a", "b"])).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    assert {text.get_text(): text.get_position() for text in axis.texts} == {"0.25": (0, 0), "0.75": (0, 1)}
    assert axis.get_ylim() == (1.5, -0.5)


def test_who_does_not_compare_stands_below_the_line() -> None:
    """However good the ranks; above it the order is by what all there have a rank in, as diversity is not of c."""
    near = pd.DataFrame({"b": [0.5], "a": [0.6], "some": [0.1], "few": [0.0], "c": [0.4]})
    wide = pd.DataFrame({"b": [0.9], "a": [0.0], "some": [0.2], "few": [0.1]})
    standings = {
        name: Standing(Criterion(name, name, "lower"), ranks, None, {}, frozenset())
        for name, ranks in (("near", near), ("wide", wide))
    }
    remarks = {"some": "1 of 2 tasks", "few": "answers too few", "none": "answers too few"}
    (axis,) = charts.heat(standings, charts.look([*near]), remarks).axes
    labels = [label.get_text().replace("\n", "") for label in axis.get_yticklabels()]
    assert labels == ["c", "b", "a", "few, answers too few", "some, 1 of 2 tasks"]
    assert [line.get_ydata()[0] for line in axis.get_lines() if len(line.get_xdata()) == 2] == [2.5]
    assert {text.get_text(): text.get_position()[1] for text in axis.texts}["0.40"] == 0


def test_one_person_is_told_what_is_wrong() -> None:
    """A method that refuses the model has found nothing there; an answer that is not accepted has its fault beside."""
    rows = {"a": GRANTED, "b": None, "c": MEMBER}
    remarks = {"b": "refuses the model", "c": "not permitted"}
    (axis,) = charts.strip(loans.factual.iloc[0], rows, loans.SPACE.features, charts.look(list(rows)), remarks).axes
    assert "refuses the model" in {text.get_text() for text in axis.texts}
    assert "none found" not in {text.get_text() for text in axis.texts}
    assert [label.get_text().replace("\n", "") for label in axis.get_yticklabels()][1:] == [
        "a",
        "b",
        "c, not permitted",
    ]


def test_dollars_of_data_are_no_formula(tmp_path: Path) -> None:
    """Two of them in a category, which Matplotlib would read as one, or stop at; the same of a method's name."""
    prices = ("$10% to $20%", "$5k_$9k")
    feature, name = Feature("price", "ordinal", prices), "a ($x^$)"
    with canvas.column_style():
        drawn = charts.strip(
            pd.Series({"price": prices[0]}, name=1), {name: {"price": prices[1]}}, [feature], charts.look([name])
        )
        canvas.save_one(drawn, tmp_path / "strip.png", "strip")
    texts = [text for text in drawn.findobj(Text) if "$" in text.get_text()]
    assert {text.get_text() for text in texts} >= {charts._cut(prices[0]), prices[1], name}
    assert not any(text.get_parse_math() for text in texts)


def test_a_small_number_is_told_with_and_without_an_interval() -> None:
    assert elements.interval(statistics.Estimate(0.0004, NAN, NAN, 1)) == "0.0004"
    assert elements.interval(statistics.Estimate(0.0004, 0.0001, 0.0012, 9)).startswith("0.0004 ")


def test_a_task_without_a_rival_is_won_by_nobody() -> None:
    """Of four tasks the first of two is first in one; in the third it is alone, in the fourth it answers too few."""
    near = Criterion("proximity", "distance/gower", "lower")

    def contest(task: str, answered: int = 12, **values: float) -> Contest:
        table = pd.DataFrame({name: [value] * 12 for name, value in values.items()})
        table.loc[answered:, "one"] = NAN
        return Contest(task, near, table, table.notna().astype("boolean"))

    found = [contest("a", one=0.1, two=0.2), contest("b", one=0.2, two=0.1), contest("c", one=0.1)]
    found += [contest("d", answered=3, one=0.1, two=0.2)]
    standing = Standing(near, pd.DataFrame({"one": [0.0]}), None, {}, frozenset())
    assert beside(standing, found, "one") == ", first in 1 of 3 tasks"
    few = pd.DataFrame({"one": [0.1] * 4, "two": [0.2] * 4})
    alike = Contest("e", near, few, few.notna().astype("boolean"))
    assert beside(standing, [*found, alike], "one") == ", first in 1 of 3 tasks"  # four questions tell nothing apart
    assert beside(standing, [alike], "one") == ""


def test_who_takes_fewer_data_sets_is_told() -> None:
    near = Criterion("proximity", "distance/gower", "lower")
    ranks = pd.DataFrame({"one": [0.0, NAN, 0.5], "two": [1.0, 0.0, 0.5]})
    standing = Standing(near, ranks, None, {"one": 1, "two": 1}, frozenset())
    whole = pd.DataFrame({"one": [0.1] * 12, "two": [0.3] * 12, "three": [0.2] * 12})
    tables = {"a": whole, "b": whole[["two", "three"]], "c": whole, "d": whole[["two"]]}  # of d nobody has a rank
    found = [Contest(task, near, t, t.notna().astype("boolean")) for task, t in tables.items()]
    assert [beside(standing, found, name) for name in ranks] == [", 2 of 3 tasks", ""]


def test_who_is_not_tested_stands_below_who_is() -> None:
    """Though its mean rank, of the only task that it takes, is the best."""
    near = Criterion("proximity", "distance/gower", "lower")
    ranks = pd.DataFrame({"quick": [0.0, NAN], "second": [0.9, 0.7], "first": [0.5, 0.3]})
    standing = Standing(near, ranks, None, {"first": 1, "second": 2}, frozenset())
    numbers: Any = SimpleNamespace(standings={"proximity": standing}, contests={"proximity": []})
    shown = _recommended(numbers, near, Markup, dict.fromkeys(ranks, Markup("coverage 1"))).places.striptags()
    assert [shown.index(text) for text in ("first", "second", "not tested", "quick")] == sorted(
        shown.index(text) for text in ("first", "second", "not tested", "quick")
    )


def test_a_test_is_told_with_its_data_sets() -> None:
    """Three methods ranked alike on five: Friedman's statistic is 2 * 5, of which p is exp(-10 / 2)."""
    ranks = pd.DataFrame([[0.0, 0.5, 1.0]] * 5, columns=list("abc"))
    near = Criterion("proximity", "distance/gower", "lower")
    standing = Standing(near, ranks, statistics.friedman(ranks), {}, frozenset())
    assert how(standing) == "Friedman p = 0.0067 over 5 data sets, then Nemenyi"
    shared = replace(standing, places={"a": 1, "b": 1, "c": 3})
    assert how(shared) == "Friedman p = 0.0067 over 5 data sets, then Nemenyi; 2 methods share the first place"
    assert how(replace(shared, places={"a": 1, "b": 2, "c": 2})) == how(standing)
    assert how(replace(standing, test=None, places={"a": 1})) == "paired comparisons of this one task"
    assert how(replace(standing, test=None)) == "mean ranks, not tested over data sets"


def traded(*points: tuple[str, float, float, float], x: Better = "lower", y: Better = "higher") -> Axes:
    """The trade-off of methods by name, the two values of each of their answers, and coverage of ten questions."""

    def contest(_: str, criterion: Criterion) -> Contest:
        place = {"x": 1, "y": 2}[criterion.name]
        answers = {p[0]: [p[place]] * round(10 * p[3]) + [math.nan] * round(10 - 10 * p[3]) for p in points}
        values = pd.DataFrame(answers, dtype=float)
        return Contest("d / m", criterion, values, values.notna().astype("boolean"))

    def entry(method: str, x: float, y: float, _: float) -> Any:
        means = {"nearest/x": x, "nearest/y": y}
        return SimpleNamespace(
            method=method, task="d / m", dataset="d", mean=lambda name: SimpleNamespace(value=means[name])
        )

    entries = [entry(*point) for point in points]
    study: Any = SimpleNamespace(entries=entries, methods=[e.method for e in entries], of_task=lambda task: entries)
    numbers: Any = SimpleNamespace(study=study, contest=contest)
    return charts.tradeoff(numbers, "d", Criterion("x", "x", x), Criterion("y", "y", y)).axes[0]


@pytest.mark.parametrize(("x", "other"), [("lower", "a"), ("higher", "b")])
@pytest.mark.parametrize("y", ["lower", "higher"])
def test_the_line_of_a_trade_off_promises_nothing_that_nobody_reaches(x: Better, y: Better, other: str) -> None:
    """Between two methods that no other beats it is level with the one whose x is good enough."""
    rising = (x == "lower") == (y == "higher")
    points = {"a": (1.0, 1.0 if rising else 2.0), "b": (3.0, 2.0 if rising else 1.0)}
    (line,) = traded(*((name, *point, 1.0) for name, point in points.items()), x=x, y=y).lines
    assert line.get_drawstyle() == {"a": "steps-post", "b": "steps-pre"}[other]


def test_the_line_of_a_trade_off_joins_who_answers_enough() -> None:
    """The nearest and most plausible answers one of ten questions; of the other two one is beaten."""
    axis = traded(("rare", 0.1, 1.0, 0.1), ("near", 0.2, 0.5, 1.0), ("far", 0.4, 0.4, 1.0))
    (line,) = axis.lines
    assert np.array(line.get_xydata()).tolist() == [[0.2, 0.5]]
    assert drawn(axis) == [[0.2, 0.5], [0.4, 0.4]]


def test_points_of_a_trade_off_are_means_of_the_same_questions() -> None:
    """Two that the second method does not answer are in no mean; where nine have a common y, each has its own means."""
    values = {
        "x": pd.DataFrame({"a": [0.1] * 10 + [0.7] * 2, "b": [0.2] * 10 + [NAN] * 2}),
        "y": pd.DataFrame({"a": [0.5] * 10 + [1.0] * 2, "b": [0.4] * 10 + [NAN] * 2}),
    }
    own = {"nearest/x": 0.2, "nearest/y": 0.6}
    entries = [SimpleNamespace(method=name, mean=lambda name: SimpleNamespace(value=own[name])) for name in "ab"]

    def contest(task: str, criterion: Criterion) -> Contest:
        table = values[criterion.name]
        return Contest(task, criterion, table, table.notna().astype("boolean"))

    numbers: Any = SimpleNamespace(contest=contest, study=SimpleNamespace(of_task=lambda task: entries))
    two = Criterion("x", "x", "lower"), Criterion("y", "y", "higher")
    shown, common = charts._means(numbers, "d / m", two)
    assert common
    assert shown.loc["a"].tolist() == pytest.approx([0.1, 0.5])
    assert shown.loc["b"].tolist() == pytest.approx([0.2, 0.4])
    values["y"].loc[9, "b"] = NAN
    shown, common = charts._means(numbers, "d / m", two)
    assert (common, shown.loc["a"].tolist()) == (False, [0.2, 0.6])


def test_places_of_a_task_are_told_with_who_answers_too_few() -> None:
    """Of twelve questions a is the nearer of two in all; the nearest of all answers three."""
    near = Criterion("proximity", "gower", "lower")
    values = pd.DataFrame({"a": [0.1] * 12, "b": [0.2] * 12, "rare": [0.05] * 3 + [NAN] * 9})
    contest = Contest("d / m", near, values, values.notna().astype("boolean"))
    study = SimpleNamespace(of_task=lambda task: list(values))
    numbers: Any = SimpleNamespace(criteria=[near], contest=lambda task, criterion: contest, study=study)
    assert places(numbers, "d / m", Markup) == [("proximity", "1: a; 2: b; answers too few: rare")]  # type: ignore[arg-type]


def test_a_trade_off_of_few_common_questions_has_no_line() -> None:
    """Each method's own means are of other questions."""
    axis = traded(("half", 0.1, 1.0, 0.5), ("near", 0.2, 0.5, 1.0))
    assert len(axis.lines) == 0
    assert drawn(axis) == [[0.1, 1.0], [0.2, 0.5]]


def drawn(axis: Axes) -> list[list[float]]:
    """The places of markers; the others are the legend's."""
    return [np.array(each.get_offsets())[0].tolist() for each in axis.collections if len(each.get_offsets())]


def test_a_marker_is_seen_below_those_at_the_same_place() -> None:
    """Each is larger than what is drawn over it, and others are as large as the smallest."""
    axis = traded(("a", 0.1, 0.5, 1.0), ("b", 0.9, 0.1, 1.0), ("c", 0.105, 0.5, 1.0), ("d", 0.1, 0.5, 1.0))
    shown = [markers for markers in axis.collections if len(markers.get_offsets())]  # the others are the legend's
    sizes = [float(markers.get_sizes()[0]) for markers in shown]
    assert sizes[0] > sizes[2] > sizes[3] == sizes[1]


def test_values_of_data_are_escaped(tmp_path: Path) -> None:
    started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, method="<b>exact</b>".replace("/", "_"))
    text = page.write(tmp_path).read_text()
    assert "<b>exact" not in text
    assert "&lt;b&gt;exact" in text


def test_nothing_finished_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="stored answers"):
        page.write(tmp_path)


@pytest.mark.filterwarnings("error")
def test_where_every_method_refuses_there_is_a_page(tmp_path: Path) -> None:
    """It has the failures, and no figure that methods without a question would leave empty."""
    refused = Answer(Status.UNSUPPORTED, None, Reason.REFUSED, detail="trees alone.")
    (tmp_path / "sweeps").mkdir()
    for method in ("first", "second"):
        named = {"method": method, "fingerprint": method, "paths": PATHS}
        started(tmp_path, loans.problem, loans.factual, [refused] * 8, n_counterfactuals=1, **named)
    assert "trees alone" in page.write(tmp_path).read_text()
    names = {path.stem for path in (tmp_path / "figures").glob("*")}
    assert not names & {"ranks", "performance_profiles"}
