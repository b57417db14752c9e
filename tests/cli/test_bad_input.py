"""Bad input gets one sentence and exit code 1; what is legitimate but notable gets a line that says so, and 0."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bad_files import make
from support.sweep import runner

TABLE = Path(__file__).parents[1] / "bad_input.csv"
SHORT = {  # what commands of the table have in common
    "B": "harness dataset=compas model=cart method=nearest n_factuals=2",
    "C": "harness dataset=csv dataset.target=ok model=cart method=nearest n_factuals=2",
    "M": "harness dataset=csv dataset.target=ok dataset.path=good.csv method=nearest n_factuals=2 model=file",
}


def rows() -> Iterator[object]:
    """The commands of the table; ``slow`` are those that run something before they end, and further ones of a kind."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            marks = [pytest.mark.slow] if row["slow"] else []
            yield pytest.param(row["command"], int(row["exit"]), row["expected"], id=row["command"], marks=marks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files that the commands name."""
    folder = tmp_path_factory.mktemp("bad")
    make(folder)
    return folder


@pytest.mark.parametrize(("command", "code", "expected"), list(rows()))
@pytest.mark.every(4)
def test_bad_input_is_one_sentence(command: str, code: int, expected: str, folder: Path) -> None:
    """Parts of ``expected`` between dots stand in this order in one line; no traceback is printed."""
    whole = re.sub(r"(?<!\S)[BCM](?!\S)", lambda match: SHORT[match[0]], command)
    words = [word.replace("FOLDER", str(folder)) for word in shlex.split(whole)]
    place = next(place for place, word in enumerate(words) if re.fullmatch(r"harness(\.\w+)?", word))
    variables = dict(word.split("=", 1) for word in words[:place])
    done = runner(folder)(*words[place + 1 :], module=words[place], **variables)
    pattern = ".*".join(map(re.escape, expected.split(" ... ")))
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    assert re.search(pattern, text), text
    assert done.returncode == code, text


def test_a_score_that_is_none_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    """A sweep that optimises it would else ask all of its first run for nothing."""
    done = runner(tmp_path)(*shlex.split(SHORT["B"])[1:], "++optimise.coverge=1")
    assert (
        "optimise has 'coverge', which is no score of this run; did you mean 'coverage'?" in done.stdout + done.stderr
    )
    assert done.returncode == 1
    assert not list(tmp_path.rglob("rows.jsonl"))
