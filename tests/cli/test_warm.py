"""``python -m harness warm``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.cli import main, warm

QUESTIONS = """
from pathlib import Path
from types import SimpleNamespace


def asked(title):
    def note(event):
        (Path(__file__).parent / f"{title} {event}").touch()

    method = SimpleNamespace(refuses=lambda problem: note(f"refuses {problem}"), fit=lambda problem: note(problem))
    return SimpleNamespace(title=title, problem="problem", method=method, kernels=title)


QUESTIONS = [asked("one"), asked("two")]
"""


def test_each_method_is_fitted_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some_questions.py").write_text(QUESTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(warm, "MODULE", "some_questions")
    monkeypatch.setattr(sys, "argv", ["harness", "warm"])
    monkeypatch.setattr(main, "talk", lambda: None)
    main.main()
    noted = {path.name for path in tmp_path.iterdir() if path.is_file()} - {"some_questions.py"}
    assert noted == {"one refuses problem", "one problem", "two refuses problem", "two problem"}
    lines = capsys.readouterr().out.splitlines()
    assert {line.partition("] ")[2] for line in lines[1:3]} == {"one: compiled already", "two: compiled already"}
    assert [line[:5] for line in lines[1:3]] == ["[1/2]", "[2/2]"]
    assert lines[-1].startswith("done: 0 s of compiling")
