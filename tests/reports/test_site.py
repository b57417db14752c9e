"""The site: its numbers are those of the study, its bytes those of the answers, and it asks nothing of others."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.tables import GRANTED, MEMBER, PATHS, YOUNGER, started

from harness import site as command
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from metrics import _example as loans

METHODS = {"exact": [GRANTED] * 12, "guess": [GRANTED, YOUNGER, MEMBER] * 4, "silent": [None] * 11 + [GRANTED]}


def results(home: Path) -> Path:
    """A folder with the study of three methods on two models."""
    for model in ("lr", "rf"):
        for method, answers in METHODS.items():
            named = {"model": model, "method": method, "fingerprint": method}
            paths = [*PATHS, "metrics.proximity.gower"]
            started(home / "results" / "<b>", loans.problem, loans.factual, answers, paths=paths, **named)
    return home / "results"


def built(home: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["site", str(home)])
    return command.main()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = results(tmp_path_factory.mktemp("site"))
    with pytest.MonkeyPatch.context() as patch:
        assert built(folder, patch) == 0
    return folder


def data(path: Path) -> Any:
    """What a data script brings."""
    return json.loads(path.read_text()[len("site.put(") : -len(");\n")].partition(", ")[2])


def test_the_board_has_the_numbers_of_the_study(home: Path) -> None:
    study = Study.of(home / "<b>")
    table = Numbers(study).table()
    shown = data(home / "site" / "data" / "0" / "board.js")
    assert (shown["name"], shown["methods"]) == ("<b>", list(METHODS))
    views = {(view["dataset"], view["model"]): view for view in shown["views"]}
    assert set(views) == {(dataset, model) for dataset in ("", "loans") for model in ("", "lr", "rf")}
    for model in ("lr", "rf"):
        for line in views["loans", model]["by"]["proximity"]["lines"]:
            method = shown["methods"][line["method"]]
            of = table.loc[(table["method"] == method) & (table["model"] == model)].set_index("number")
            assert line["rank"][0] == pytest.approx(of.loc["distance/gower", "rank"], rel=1e-5)
            cover = views["loans", model]["methods"][str(line["method"])]["coverage"]
            assert cover == pytest.approx(of.loc["coverage", ["value", "low", "high"]].tolist(), rel=1e-5)
    third = pytest.approx(1 / 3, rel=1e-5)
    guess = {"coverage": [third, None, None], "least": third, "few": True, "took": 2}
    assert views["", ""]["methods"]["1"] == guess
    places = [(line["method"], line["place"]) for line in views["loans", "lr"]["by"]["proximity"]["lines"]]
    assert places == [(0, "1"), (1, "2"), (2, "2")]


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
        if path.suffix in {".js", ".css", ".html"}:
            assert set(re.findall(r"\w+://[\w./]+", path.read_text())) <= {"http://www.w3.org/2000/svg"}


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
