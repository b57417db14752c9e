"""The site: its numbers are those of the study, its bytes those of the answers, and it asks nothing of others."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from markupsafe import escape
from support.driver import CHROMIUM, DOWN, DRIVER, ENTER, TAB, Browser, browser
from support.markup import Page
from support.sites import CELLS, FAR, built, data, put, ran, results, several, timed_elsewhere
from support.tables import GRANTED

from harness import archive
from harness.evaluation.numbers import COLUMNS, PAIRED, Numbers
from harness.evaluation.study import Study
from harness.reports.canvas import COLOURS
from harness.reports.departures import departures
from harness.reports.site import questions
from harness.reports.site.build import PAGES


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = results(tmp_path_factory.mktemp("site"))
    with pytest.MonkeyPatch.context() as patch:
        assert built(folder, patch) == 0
    return folder


def test_the_board_has_the_numbers_of_the_study(home: Path) -> None:
    study = Study.of(home / "<b>")
    table = Numbers(study).table()
    shown = data(home / "site" / "data" / "0" / "board.js")
    assert (shown["name"], shown["methods"]) == ("<b>", ["exact", "guess", "nearest", "silent"])
    assert set(re.findall(r'(?:stroke|fill)="(#\w+)"', shown["looks"])) <= set(COLOURS)
    assert shown["choices"] == [["loans"]]
    seen = data(home / "site" / "data" / "0" / "view0.js")
    assert set(seen) == {"", "lr", "rf"}
    for model in ("lr", "rf"):
        for line in seen[model]["by"]["proximity"]["lines"]:
            method = shown["methods"][line["method"]]
            of = table.loc[(table["method"] == method) & (table["model"] == model)].set_index("number")
            assert line["rank"][0] == pytest.approx(of.loc["distance/gower", "rank"], rel=1e-5)
            cover = seen[model]["methods"][str(line["method"])]["coverage"]
            assert cover == pytest.approx(of.loc["coverage", ["value", "low", "high"]].tolist(), rel=1e-5)
    third = pytest.approx(1 / 3, rel=1e-5)
    ends = [pytest.approx(0.13812, rel=1e-4), pytest.approx(0.609378, rel=1e-4)]  # Wilson's of 4 in 12, twice
    guess = {"coverage": [third, *ends], "least": third, "few": True, "took": 2, "n": 24, "setup": 0.1}
    assert seen[""]["methods"]["1"] == guess | {"faults": {"invalid": 16}, "missing": {}}
    places = [(line["method"], line["place"]) for line in seen["lr"]["by"]["proximity"]["lines"]]
    assert places == [(0, "1"), (1, "not tested"), (3, "not tested")]  # who answers too few


def test_a_question_has_every_answer_with_what_changes(home: Path) -> None:
    """And the region within which the checker, too, finds nothing invalid."""
    script = home / "site" / "data" / "0" / "task0.js"
    assert script.read_text().startswith("site.unpack(")  # answers are most of a site
    shown = data(script)
    question = shown["questions"][1]
    assert (question["id"], question["wanted"]) == ("1", "granted")
    assert question["values"] == {"income": "30", "age": "30", "member": "no", "education": "school", "job": "clerk"}
    exact, guess, silent = question["answers"]
    assert exact["changed"] == {"income": "80", "age": "40"}
    assert (exact["taken"], question["now"], shown["column"]) == (True, "refused", "")
    assert (exact["region"], exact["holds"], exact["verdict"]) == ({"income": "60 to 90"}, "holds", "accepted")
    assert guess["changed"] == {"age": "20", "member": "yes", "education": "college", "job": "nurse"}
    assert (guess["verdict"], silent["verdict"], silent["method"]) == ("invalid", "none", 3)
    with zipfile.ZipFile(home / "site" / "data" / "0" / "tables.zip") as tables:
        assert tables.namelist() == ["summary.csv", "pairs.csv", "answers.csv"]
        table = pd.read_csv(tables.open("answers.csv"))
    assert len(table) == 2 * 3 * 12
    assert table.loc[0, "changes"] == "income: 30 → 80; age: 30 → 40"
    assert table.loc[0, ["region", "region_checked"]].tolist() == ["income: 60 to 90", "holds"]
    assert (table["verdict"] == "accepted").sum() == 2 * (12 + 4 + 1)


def test_each_file_of_the_zip_has_its_own_table(home: Path) -> None:
    with zipfile.ZipFile(home / "site" / "data" / "0" / "tables.zip") as tables:
        heads = {name: tuple(pd.read_csv(tables.open(name))) for name in tables.namelist()}
    assert heads == {"summary.csv": COLUMNS, "pairs.csv": PAIRED, "answers.csv": questions.COLUMNS}


def test_the_board_says_who_refuses_what_and_why(home: Path) -> None:
    shown = data(home / "site" / "data" / "0" / "board.js")
    told = {task["name"]: [(shown["methods"][place], why) for place, why in task["refused"]] for task in shown["tasks"]}
    assert told == {"loans / lr": [("nearest", "takes no tree; give another")], "loans / rf": []}


def test_pages_say_what_things_are(home: Path) -> None:
    """A method with its settings and refusals, a user's own data, and the papers' tables with their pictures."""
    text = (home / "site" / "methods.html").read_text()
    nearest = text[text.index('id="nearest"') : text.index('id="nice_none"')]
    for part in (
        "Nearest unlike neighbour: the baseline",
        "gower",
        "&lt;b&gt;, loans / lr: takes no tree; give another",
    ):
        assert part in nearest, part
    one = next(one for one in departures() if one.why)
    assert escape(one.why) in text[text.index(f'id="{one.method}"') :].partition("</section>")[0]
    shown = data(home / "site" / "data" / "0" / "board.js")
    assert {kind for kind in shown["kinds"] if f'id="{kind}"' not in text} == set()  # names on the board lead there
    own = text[text.index('id="guess"') :].partition("</section>")[0]
    assert "of a user&#39;s own" in own
    assert "index.html#study=%3Cb%3E" in own
    features = (home / "site" / "data.html").read_text()
    assert "<span>0 to 100</span>" in features
    assert "<span>18 to 90</span>" in features  # an age may be, though those of the training rows are 20 to 60
    papers = (home / "site" / "reproduction.html").read_text()
    assert "<span>x|y</span>" in papers
    assert '<img src="figures/one.png"' in papers
    assert (home / "site" / "figures" / "one.png").read_bytes() == b"a picture"


def test_the_same_answers_give_the_same_bytes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built over what was there before, of which nothing stays."""
    sums = digests(home / "site")
    (home / "site" / "old.html").write_text("of an earlier version")
    assert built(home, monkeypatch) == 0
    assert digests(home / "site") == sums
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_nothing_is_asked_of_others(home: Path) -> None:
    """Every address in the pages is a file of the site, and scripts know the one name that SVG needs."""
    for path in (home / "site").rglob("*"):
        if path.suffix == ".html":
            for address in re.findall(r'(?:src|href)="([^"#]+)', path.read_text()):
                assert address == "data:," or (path.parent / address).is_file(), address
        if path.name == "site.js" or path.suffix == ".css":
            assert set(re.findall(r"\w+://[\w./]+", path.read_text())) <= {"http://www.w3.org/2000/svg"}


def test_charts_are_there_where_their_library_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one file, which the board alone reads; without it, the log says what brings it."""
    folder = tmp_path / "results"
    shutil.copytree(home, folder)
    monkeypatch.setattr("harness.core.packages.CLONED", True)
    there = ModuleType("vl_convert")
    there.__spec__ = ModuleSpec("vl_convert", None)
    vars(there)["javascript_bundle"] = lambda: "window.vegaEmbed = 1"
    for library in (None, there):
        monkeypatch.setitem(sys.modules, "vl_convert", library)
        assert built(folder, monkeypatch) == 0
        script = folder / "site" / "vega.js"
        assert script.is_file() == (library is not None)
        pages = {page for page in PAGES if "vega.js" in (folder / "site" / f"{page}.html").read_text()}
        assert pages == ({"index"} if library else set())
        if library:
            text = (folder / "site" / "index.html").read_text()
            assert text.index('id="table"') < text.index('id="chart"')  # coverage comes first
        assert ("vl_convert is not installed; run `uv sync --extra site`." in caplog.text) == (library is None)
        caplog.clear()
    assert script.read_text() == "window.vegaEmbed = 1"


def test_wrong_input_is_one_sentence(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the site before it stays."""
    assert built(tmp_path / "none", monkeypatch) == 1
    assert built(tmp_path, monkeypatch) == 1
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "torn.ceh").write_bytes(b"PK\x03\x04 torn")
    assert built(tmp_path, monkeypatch) == 1
    before = digests(home / "site")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "site.js")

    monkeypatch.setattr("shutil.copyfile", full)
    assert built(home, monkeypatch) == 1
    assert digests(home / "site") == before
    lines = capsys.readouterr().err.splitlines()
    assert [line[:26] for line in lines] == [
        "there is no folder " + str(tmp_path)[:7], "there is no finished study", f"{tmp_path}"[:26],
        "site.js cannot be written ",
    ]  # fmt: skip
    assert "torn.ceh is no archive of answers" in lines[2]


def test_a_study_that_cannot_be_shown_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An archive in which a stored answer lacks a feature: the others are there."""
    home = results(tmp_path)
    odd = ran(tmp_path / "odd", [GRANTED] * 3, method="one")
    lines = [json.loads(line) for line in (odd.path / "rows.jsonl").read_text().splitlines()]
    del lines[0]["row"]["age"]
    (odd.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (home / "archives").mkdir()
    assert archive.main(["pack", str(tmp_path / "odd"), str(home / "archives" / "odd.ceh")]) == 0
    assert built(home, monkeypatch) == 1
    assert "odd is left out: it is damaged" in caplog.text
    studies = data(home / "site" / "data" / "studies.js")
    assert [study["name"] for study in studies] == ["<b>"]


def test_answers_in_the_folder_of_the_pages_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = results(tmp_path)
    run = ran(home / "site", [GRANTED] * 3, method="one")
    assert built(home, monkeypatch) == 1
    assert "holds answers, and is where the pages go; give that study another name." in capsys.readouterr().err
    assert (run.path / "rows.jsonl").is_file()


def test_what_features_may_be_is_said_of_each_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two studies of one data set, in the second of which the age may not change."""
    home = results(tmp_path)
    run = ran(home / "fixed", [GRANTED] * 3, method="one")
    space = run.meta["space"]
    for feature in space["features"]:
        feature["actionability"] = "immutable" if feature["name"] == "age" else feature["actionability"]
    run.update(space=space)
    assert built(home, monkeypatch) == 0
    page = Page((home / "site" / "data.html").read_text())
    ages = [row["may"] for table in page.tables for row in table.rows if row.get("feature") == "age"]
    assert len(ages) == 2
    assert len({*ages}) == 2
    assert "In fixed (loans / lr):" in (home / "site" / "data.html").read_text()


MARKS = "return [...document.querySelectorAll('#chart .mark-symbol path[aria-label]')].map(each => each.ariaLabel)"
in_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(params=[1280, 400])
def width(request: pytest.FixtureRequest) -> int:
    """Of the window, in pixels."""
    return int(request.param)


@pytest.fixture
def site(home: Path, tmp_path: Path) -> Path:
    """A site whose files a test may change."""
    return Path(shutil.copytree(home / "site", tmp_path / "site"))


def shown(window: Browser, label: str) -> list[str]:
    """The cells of a column of the table, as they are read."""
    cells = f"document.querySelectorAll('#table td[data-label^=\"{label}\"]')"
    return list(window.run(f"return [...{cells}].map((cell) => cell.textContent)"))


def chosen(window: Browser) -> dict[str, str]:
    """What the lists have, but for the chart's, which is not there without its library."""
    lists = "document.querySelectorAll('select:not([name=against])')"
    return dict(window.run(f"return Object.fromEntries([...{lists}].map((list) => [list.name, list.value]))"))


@pytest.mark.slow
@in_browser
def test_pages_fit_and_ask_for_files_alone(home: Path, window: Browser, width: int) -> None:
    for page in PAGES:
        window.open(f"{(home / 'site').as_uri()}/{page}.html", width)
        assert window.run("return document.documentElement.scrollWidth") <= width, page
        assert window.run("return document.querySelector('[role=alert]')") is None
        asked = [address for address in window.requested() if not address.startswith(("data:", "about:", "chrome"))]
        assert asked
        assert {address.partition(":")[0] for address in asked} == {"file"}
        assert window.log("browser") == []


@pytest.mark.slow
@in_browser
def test_the_board_is_narrowed_and_sorted(home: Path, window: Browser, width: int) -> None:
    """And a link to what is shown shows it again."""
    board = (home / "site" / "index.html").as_uri()
    window.open(board, width)
    assert shown(window, "method") == ["exact", "guess", "silent"]
    assert shown(window, "place") == ["–", "answers too few", "answers too few"]
    assert shown(window, "first in") == ["2 of 2 tasks", "", ""]
    assert (shown(window, "questions"), shown(window, "tasks")) == (["24"] * 3, ["2"] * 3)
    window.choose("model", "rf")
    assert shown(window, "place") == ["1", "answers too few", "answers too few"]
    assert (shown(window, "questions"), shown(window, "filled")) == (["12"] * 3, ["–"] * 3)
    assert shown(window, "validity") == ["1", "0.333", "1"]
    assert shown(window, "set-up, s") == []
    window.choose("by", "seconds")
    assert shown(window, "set-up, s") == ["0.1"] * 3
    link = window.run("return location.href")
    assert link == f"{board}#model=rf&by=seconds"
    for wanted in (["silent", "guess", "exact"], ["exact", "guess", "silent"]):
        window.run("document.querySelectorAll('#table th button')[1].click()")
        assert shown(window, "method") == wanted
    window.open(link, width)
    assert chosen(window) == {"study": "<b>", "dataset": "loans", "model": "rf", "by": "seconds"}


@pytest.mark.slow
@in_browser
def test_data_sets_are_ticked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int) -> None:
    """All at first; the address has those that are; who unticks the last has all again; a study of one has a list."""
    folder = several(results(tmp_path).parent)
    assert built(folder, monkeypatch) == 0
    page = (folder / "site" / "index.html").as_uri()
    boxes = "[...document.querySelectorAll('fieldset input')]"
    ticked = f"return {boxes}.filter((each) => each.checked).map((each) => each.value).join('')"
    window.open(f"{page}#study=three&dataset=a&dataset=b&dataset=d", width)
    assert (
        window.run("return document.querySelector('[role=status]').textContent") == 'data sets: there is no "d" here.'
    )
    for box, left, rank in ((None, "ab", "0.5"), (0, "b", "1"), (1, "abc", "0.667"), (1, "ac", "0.5")):
        if box is not None:
            window.run(f"delete document.body.dataset.ready; {boxes}[{box}].click()")
            window.wait()
        assert window.run(ticked) == left
        found = dict(zip(shown(window, "method"), shown(window, "rank"), strict=True))
        assert found["one"].partition(" ")[0] == rank
        assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.run("return location.hash") == "#study=three&dataset=a&dataset=c"
    window.choose("study", "<b>")
    assert window.run("return location.hash") == "#study=%3Cb%3E"  # these data sets are of the other study
    links = "return [...document.querySelectorAll('nav a')].map((each) => each.hash)"
    assert window.run(links) == ["#study=%3Cb%3E"] * len(PAGES)
    assert window.run(f"return {boxes}.length") == 0
    assert chosen(window)["dataset"] == "loans"
    assert window.log("browser") == []


@pytest.mark.slow
@in_browser
def test_of_two_data_sets_both_or_one_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """From a list; both at first: the first method is the nearer on one of them, its rank the mean of 0 and 1."""
    folder = several(tmp_path)
    for run in (folder / "three" / "answers").glob("c-*"):
        shutil.rmtree(run)
    assert built(folder, monkeypatch) == 0
    window.open((folder / "site" / "index.html").as_uri(), width)
    assert window.run("return document.querySelectorAll('fieldset').length") == 0
    for dataset, rank in ((None, "0.5"), ("a", "0"), ("b", "1"), ("", "0.5")):
        if dataset is not None:
            window.choose("dataset", dataset)
        found = dict(zip(shown(window, "method"), shown(window, "rank"), strict=True))
        assert found["one"].partition(" ")[0] == rank
    assert window.log("browser") == []


@pytest.mark.slow
@in_browser
def test_what_is_left_out_is_that_of_the_chosen_task(home: Path, window: Browser, width: int) -> None:
    """One method refuses the first model, and was not asked about the second."""
    said, why = "return document.getElementById('notes').textContent", "takes no tree; give another"
    for model, refuses in (("lr", True), ("rf", False)):
        window.open(f"{(home / 'site').as_uri()}/question.html#question=0&task=loans+%2F+{model}", width)
        assert (f"nearest refuses this task: {why}" in window.run(said)) is refuses
    window.open((home / "site" / "index.html").as_uri(), width)
    assert f"nearest refuses loans / lr: {why}" in window.run(said)
    window.choose("model", "rf")
    told = window.run(said)
    assert "loans / rf: nearest" in told
    assert "loans / lr" not in told


@pytest.mark.slow
@in_browser
def test_the_chart_has_the_ranks_of_the_table(home: Path, window: Browser, width: int) -> None:
    """By one requirement with intervals, or by two; it fits, and says in words what it draws."""
    pytest.importorskip("vl_convert", reason="vl_convert is in the extra 'site'")
    folder = home / "site" / "data" / "0"
    view = data(folder / "view0.js")["rf"]
    names = data(folder / "board.js")["methods"]
    ranks = {
        by: {names[line["method"]]: line["rank"][0] for line in view["by"][by]["lines"]}
        for by in ("proximity", "seconds")
    }
    window.open(f"{(home / 'site' / 'index.html').as_uri()}#model=rf&by=proximity", width)
    assert drawn(window.run(MARKS), "rank by proximity: 0 best, 1 last") == pytest.approx(ranks["proximity"])
    assert window.run("return document.querySelectorAll('#chart .mark-rule.role-mark line').length") == len(
        ranks["proximity"]
    )
    window.choose("against", "seconds")
    for title, by in (("rank by proximity: 0 best, 1 last", "proximity"), ("rank by seconds", "seconds")):
        assert drawn(window.run(MARKS), title) == pytest.approx(ranks[by])
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.log("browser") == []
    window.choose("against", "")
    assert drawn(window.run(MARKS), "rank by proximity: 0 best, 1 last") == pytest.approx(ranks["proximity"])


@pytest.mark.slow
@in_browser
def test_the_chart_says_of_how_many_tasks_a_rank_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """By the requirement that is shown, or by both."""
    pytest.importorskip("vl_convert", reason="vl_convert is in the extra 'site'")
    folder = timed_elsewhere(tmp_path)
    assert built(folder, monkeypatch) == 0
    page = (folder / "site" / "index.html").as_uri()
    for picked, tasks in (
        ("by=seconds", "1 of 2 tasks"),
        ("by=proximity", "2 of 2 tasks"),
        ("by=proximity&against=seconds", "2 of 2 tasks and 1 of 2 tasks"),
    ):
        window.open(f"{page}#{picked}", width)
        (mark,) = (label for label in window.run(MARKS) if "method: quick" in label)
        assert f"of: {tasks}" in mark.split("; ")
    assert window.run("return document.documentElement.scrollWidth") <= width


def drawn(labels: list[str], title: str) -> dict[str, float]:
    """By method, the number that a chart's marks have under a title."""
    found = {}
    for label in labels:
        parts = label.split("; ")
        (method,) = (part.removeprefix("method: ") for part in parts if part.startswith("method: "))
        (number,) = (part.removeprefix(f"{title}: ") for part in parts if part.startswith(f"{title}: "))
        found[method] = float(number)
    return found


@pytest.mark.slow
@in_browser
def test_the_keyboard_is_enough(home: Path, window: Browser, width: int) -> None:
    window.open((home / "site" / "index.html").as_uri(), width)
    for _ in range(len(PAGES) + 4):
        window.press(TAB)
    assert window.run("return document.activeElement.name") == "by"
    before = chosen(window)["by"]
    window.run("delete document.body.dataset.ready")
    window.press(DOWN)
    window.wait()
    assert chosen(window)["by"] != before
    assert window.run("return document.activeElement.name") == "by"
    while window.run("return document.activeElement.tagName") == "SELECT":
        window.press(TAB)
    window.press(ENTER)
    assert window.run("return document.querySelector('#table th').getAttribute('aria-sort')") == "ascending"


@pytest.mark.slow
@in_browser
def test_a_change_is_marked_by_more_than_colour(home: Path, window: Browser, width: int) -> None:
    """Of one question, by its address; what is shown of each method is chosen."""
    window.open(f"{(home / 'site').as_uri()}/question.html#task=loans+%2F+rf&question=1", width)
    assert chosen(window) == {"study": "<b>", "task": "loans / rf", "question": "1", "kept": "one"}
    said = "return document.getElementById('meaning').textContent"
    assert window.run(said) == "Factual 1: the model says refused; wanted: granted."
    assert shown(window, "method") == ["factual", "exact", "guess", "silent"]
    assert shown(window, "income, is 30") == ["30", "→\u00a080 60 to 90", "", ""]
    place = "return getComputedStyle(document.querySelector('#table td')).position"
    assert window.run(place) == ("sticky" if width > 1000 else "static")
    marked = "const style = getComputedStyle(document.querySelector('td.changed'));"
    assert window.run(f"{marked} return [style.fontWeight, style.borderLeftStyle]") == ["700", "solid"]
    window.choose("kept", "accepted")
    assert shown(window, "method") == ["factual", "exact"]


@pytest.mark.slow
@in_browser
def test_a_link_to_what_is_not_there_says_so(home: Path, window: Browser, width: int) -> None:
    """Until something is chosen, which leaves no such thing in the address."""
    window.open(
        f"{(home / 'site').as_uri()}/question.html#task=loans+%2F+rf&question=99&kept=all&kept=one&colour=red", width
    )
    told = "return [...document.querySelectorAll('[role=status]')].map((each) => each.textContent)"
    assert window.run(told) == [
        'question: there is no "99" here.',
        'answers: one is shown, without "one".',
        'There is no choice of "colour" here.',
    ]
    assert chosen(window)["question"] == "0"
    window.choose("question", "1")
    assert window.run(told) == []
    assert window.run("return location.hash") == "#task=loans+%2F+rf&kept=all&question=1"


@pytest.mark.slow
@in_browser
def test_a_method_is_found(home: Path, window: Browser, width: int) -> None:
    window.open((home / "site" / "methods.html").as_uri(), width)
    window.run("document.getElementById('find').focus()")
    window.press(*"growing spheres by carla with")
    found = "[...document.querySelectorAll('.found')].filter((each) => !each.hidden).map((each) => each.id)"
    assert window.run(f"return {found}") == ["growing_spheres_pso"]
    window.press(*"zzz", ENTER)  # which asks for no other page
    assert window.run(f"return {found}") == []
    assert window.run("return [document.getElementById('none').hidden, location.search]") == [False, ""]


@pytest.mark.slow
@in_browser
def test_numbers_are_sorted_behind_their_marks(home: Path, window: Browser, width: int) -> None:
    """With commas between thousands, and beside what was published; who has none comes last, both ways."""
    window.open((home / "site" / "reproduction.html").as_uri(), width)
    cells = "return [...document.querySelectorAll('#part-3 td')].map((each) => each.textContent)"
    none, gone, *known = CELLS
    for wanted in (known, known[::-1]):
        window.run("document.querySelector('#part-3 th button').click()")
        assert window.run(cells) == [*wanted, none, gone]


@pytest.mark.slow
@in_browser
def test_a_method_alone_has_nothing_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """Nor too few questions for that, of which it answers all twelve."""
    ran(tmp_path / "alone", [GRANTED] * 12, method="one")
    assert built(tmp_path, monkeypatch) == 0
    window.open((tmp_path / "site" / "index.html").as_uri(), width)
    assert shown(window, "method") == ["one"]
    assert "nothing to compare" in window.run("return document.getElementById('meaning').textContent")
    assert "too few" not in window.run("return document.getElementById('table').textContent")
    assert window.log("browser") == []


@pytest.mark.slow
@in_browser
def test_pairs_are_open_where_few_questions_are_common(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """Of twelve questions the first answers eight and eleven more than others; of four there is no common mean."""
    page = "document.getElementById('pairs')"
    only = f"return [...{page}.querySelectorAll('td[data-label=\"only first\"]')].map((each) => each.textContent)"
    window.open(f"{(home / 'site' / 'index.html').as_uri()}#model=rf", width)
    assert window.run(f"return {page}.querySelector('details').open") is False
    assert window.run(only) == ["8", "11"]
    window.choose("model", "")
    assert window.run(f"return {page}.children.length") == 0
    for method in ("one", "two"):
        run = ran(tmp_path / "few", [GRANTED] * 4, method=method)
    run.update(sees=["reference=all"])
    assert built(tmp_path, monkeypatch) == 0
    window.open((tmp_path / "site" / "index.html").as_uri(), width)
    assert window.run(f"return {page}.querySelector('details').open") is True
    assert window.run(only) == ["0"]
    assert shown(window, "method") == ["one", "two *"]
    assert "* sees what others do not" in window.run("return document.getElementById('notes').textContent")
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.log("browser") == []


@pytest.mark.slow
@in_browser
def test_who_has_a_rank_in_some_tasks_stands_below_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """The quickest was timed on another machine on one of two models: by seconds alone."""
    folder = timed_elsewhere(tmp_path)
    assert built(folder, monkeypatch) == 0
    grey = "return [...document.querySelectorAll('#table .few td:first-child')].map((each) => each.textContent)"
    window.open(f"{(folder / 'site' / 'index.html').as_uri()}#by=seconds", width)
    assert shown(window, "method") == ["one", "two", "quick"]
    assert shown(window, "rank")[2].startswith("0 (")
    assert shown(window, "tasks") == ["2", "2", "2, rank in 1"]
    assert window.run(grey) == ["quick"]
    window.choose("by", "proximity")
    assert shown(window, "method") == ["one", "quick", "two"]
    assert shown(window, "tasks") == ["2"] * 3
    assert window.run(grey) == []
    assert window.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@in_browser
def test_what_is_not_accepted_is_on_the_board(home: Path, window: Browser, width: int) -> None:
    """By its first fault, sorted by the sum; below it what was not returned."""
    window.open((home / "site" / "index.html").as_uri(), width)
    assert shown(window, "returned, not accepted") == ["0", "16 invalid", "0 not returned: 22 GAVE_UP"]
    for wanted in (["exact", "silent", "guess"], ["guess", "exact", "silent"]):
        window.run("[...document.querySelectorAll('#table th button')].at(-1).click()")
        assert shown(window, "method") == wanted


@pytest.mark.slow
@in_browser
def test_ranks_have_their_intervals_and_the_best_mean_is_bold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """Of one data set the first of two methods is the nearer by 0.02; of another each is in half of the questions."""
    folder = several(tmp_path)
    for method, answers in (("one", [GRANTED, FAR]), ("two", [FAR, GRANTED])):
        ran(folder / "half", answers * 6, method=method)
    assert built(folder, monkeypatch) == 0
    page = (folder / "site" / "index.html").as_uri()
    window.open(f"{page}#study=three&dataset=a&by=proximity", width)
    bold = "return [...document.querySelectorAll('#table b')].map((each) => each.closest('tr').cells[0].textContent)"
    assert window.run(bold) == ["one"]
    window.open(f"{page}#study=half&by=proximity", width)
    for text in shown(window, "rank"):
        rank, low, high = (float(number) for number in re.findall(r"[\d.]+", text))
        assert low < rank == 0.5 < high


@pytest.mark.slow
@in_browser
def test_the_chosen_study_stays_over_pages_without_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: Browser, width: int
) -> None:
    """From the board over what a method is, and a part of that page, to the board again."""
    folder = several(results(tmp_path).parent)
    assert built(folder, monkeypatch) == 0
    window.open((folder / "site" / "index.html").as_uri(), width)
    window.choose("study", "three")
    window.open(window.run("return document.querySelector('#table td a').href"), width)
    assert window.run("return location.pathname.split('/').at(-1) + location.hash") == "methods.html#two"
    window.run("delete document.body.dataset.ready; location.hash = 'nearest'")
    window.wait()
    window.open(window.run("return document.querySelector('nav a').href"), width)
    assert chosen(window)["study"] == "three"


@pytest.mark.slow
@in_browser
def test_the_least_of_several_coverages_is_shown(site: Path, window: Browser, width: int) -> None:
    """Beside that of all tasks together, with its interval."""
    script = site / "data" / "0" / "view0.js"
    views = data(script)
    for line in (line for view in views.values() for line in view["methods"].values()):
        line.update(coverage=[0.5, 0.25, 0.75], least=0.125)
    put(script, json.dumps(views))
    window.open((site / "index.html").as_uri(), width)
    assert set(shown(window, "coverage")) == {"0.5 (0.25 to 0.75), least 0.125"}


@pytest.mark.slow
@in_browser
def test_a_region_that_is_not_proven_is_marked(site: Path, window: Browser, width: int) -> None:
    script = site / "data" / "0" / "task1.js"
    text = json.dumps(data(script))
    for holds, mark in (("holds", ""), ("broken", "✗ broken: "), ("not checked", "not proven: ")):
        put(script, text.replace('"holds": "holds"', f'"holds": "{holds}"'))
        window.open(f"{site.as_uri()}/question.html#task=loans+%2F+rf&question=1", width)
        assert shown(window, "income, is 30")[1] == f"→\u00a080 {mark}60 to 90"
        assert window.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@in_browser
def test_answers_are_sorted_below_the_factual(home: Path, window: Browser, width: int) -> None:
    """A feature that an answer leaves has the factual's value, one without an answer none."""
    window.open(f"{(home / 'site').as_uri()}/question.html#task=loans+%2F+rf&question=1", width)
    assert shown(window, "job") == ["clerk", "", "→\u00a0nurse", ""]
    for wanted in (["exact", "guess", "silent"], ["guess", "exact", "silent"]):
        window.run("[...document.querySelectorAll('#table th button')].at(-1).click()")
        assert shown(window, "method") == ["factual", *wanted]


@pytest.mark.slow
@in_browser
def test_a_feature_may_have_any_name(site: Path, window: Browser, width: int) -> None:
    """Such as one that every object of the page's own language has."""
    script = site / "data" / "0" / "task1.js"
    put(script, json.dumps(data(script)).replace('"job"', '"constructor"'))
    page = f"{site.as_uri()}/question.html#task=loans+%2F+rf&question=1"
    window.open(page, width)
    assert shown(window, "constructor") == ["clerk", "", "→\u00a0nurse", ""]
    changed = "return [...document.querySelectorAll('#table td.changed[data-label^=constructor]')].length"
    assert window.run(changed) == 1
    window.open(f"{page}&kept=accepted", width)
    assert shown(window, "constructor") == []
