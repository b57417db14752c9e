"""What the site says of studies and files that it cannot read, of its size, and by which rules it compares."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sites import built, data, ran, results
from support.tables import GRANTED

from harness.evaluation.statistics import LEVEL, NEARLY
from harness.evaluation.study import Study
from harness.reports.site import build
from harness.store.run import StoredRun

Built = Callable[[Path], int]


@pytest.fixture
def build_site(monkeypatch: pytest.MonkeyPatch) -> Built:
    return lambda home: built(home, monkeypatch)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a study of one method beside that which is shown first."""
    folder = results(tmp_path)
    ran(folder / "odd", [GRANTED] * 3, method="one")
    return folder


def odd(home: Path) -> StoredRun:
    (path,) = (home / "odd" / "answers").iterdir()
    return StoredRun(path)


def listed(home: Path) -> list[str]:
    """The studies that are in the site."""
    return [study["name"] for study in data(home / "site" / "data" / "studies.js")]


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("scores.csv", "factual\n", "it is damaged ("),
        ("scores.csv", 'factual,coverage\n"1,2\n', "it is damaged ("),
        ("factuals.jsonl", None, "factuals.jsonl cannot be read (No such file or directory); get or make it again."),
    ],
    ids=["no columns", "an open quote", "no people"],
)
def test_a_damaged_folder_is_left_out(
    file: str, content: str | None, why: str, home: Path, build_site: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    """The board and the downloads say so, and the command ends with 1."""
    path = odd(home).path / file
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert build_site(home) == 1
    assert listed(home) == ["<b>"]
    pages = {name for name in build.PAGES if f"left out: odd, {why}" in (home / "site" / f"{name}.html").read_text()}
    assert pages == {"index", "downloads"}
    assert capsys.readouterr().err.splitlines()[-1] == "left out: 1 study; the board says why."


def test_nothing_is_left_out_where_all_is_read(
    home: Path, build_site: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_site(home) == 0
    assert "left out" not in (home / "site" / "index.html").read_text() + capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "where", "ends"),
    [(errno.ENOENT, "study", False), (errno.EACCES, "site", True), (errno.ENOSPC, "disk", True)],
)
def test_a_fault_of_what_is_written_ends_the_site(
    number: int, where: str, ends: bool, home: Path, build_site: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the study alone does not."""
    write = build._study

    def fails(folder: Path, name: str, numbers: Any) -> None:
        write(folder, name, numbers)
        if numbers.study.name == "odd":
            file = {"site": folder / "board.js", "study": home / "odd" / "rows.jsonl"}.get(where)
            raise OSError(number, os.strerror(number), file)

    monkeypatch.setattr(build, "_study", fails)
    assert build_site(home) == 1
    assert (home / "site").exists() != ends
    if not ends:
        assert listed(home) == ["<b>"]
        assert not (home / "site" / "data" / "1").exists()


def test_a_full_disk_is_no_fault_of_a_study(
    home: Path, build_site: Built, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where an archive is unpacked to be read."""

    def full(folder: Path) -> Study:
        raise OSError(errno.ENOSPC, "No space left on device", "cache")

    monkeypatch.setattr(Study, "of", full)
    assert build_site(home) == 1
    assert capsys.readouterr().err == "cache cannot be written (No space left on device); make room, or allow it.\n"


def test_the_papers_page_has_headings_alone_and_names_missing_figures(home: Path, build_site: Built) -> None:
    (home / "REPRODUCTION.md").write_text("# One\n## Two\n\n![a](figures/gone.png) ![b](figures/one.png)\n")
    assert build_site(home) == 0
    page = (home / "site" / "reproduction.html").read_text()
    assert re.findall("<h2>(.*?)</h2>", page) == ["One", "Two"]
    assert "figures/gone.png is not there" in page
    assert re.findall('<img src="(.*?)"', page) == ["figures/one.png"]


def test_a_papers_page_that_is_no_text_is_one_sentence(
    home: Path, build_site: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "REPRODUCTION.md").write_bytes(b"# \xff\n")
    assert build_site(home) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{home / 'REPRODUCTION.md'} cannot be read (")


def test_sizes_are_said_and_bounded(
    home: Path,
    build_site: Built,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """That of all files, and of those that the first page asks for."""
    caplog.set_level(logging.WARNING)
    assert build_site(home) == 0
    assert not re.search("the site has|the first page", caplog.text)
    site = home / "site"
    asked = re.findall(r'<(?:script src|link rel="stylesheet" href)="(.*?)"', (site / "index.html").read_text())
    files = {site / name for name in ("index.html", *asked, "data/0/board.js", "data/0/view0.js")}
    first = sum(path.stat().st_size for path in files)
    whole = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert f" {whole / 1e6:.1f} MB, of which the first page reads {first / 1e6:.1f} MB\n" in capsys.readouterr().out
    for less in (0, 1):
        monkeypatch.setattr(build, "LARGEST", whole - less)
        monkeypatch.setattr(build, "LARGEST_FIRST", first - less)
        assert build_site(home) == 0
        assert ("the site has more than " in caplog.text) == bool(less)
        assert ("the first page reads more than " in caplog.text) == bool(less)


def test_the_board_has_the_rules_numbers(home: Path, build_site: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """By which the numbers are computed."""
    assert build.RULES["sure"] == f"{100 - 100 * LEVEL:.0f} %"
    assert build.RULES["nearly"] == f"{100 * NEARLY:.0f} %"
    monkeypatch.setattr(build, "RULES", build.RULES | {"sure": "90 %", "nearly": "a third"})
    assert build_site(home) == 0
    page = (home / "site" / "index.html").read_text()
    assert "Intervals are of 90 %, " in page
    assert "covers less than a third of what another covers" in page
    assert not re.search("95 %|half", page)
