"""``python -m harness warm``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main, warm


@dataclass
class Asked:
    """A question whose method notes that it was refused or fitted."""

    title: str
    done: list[str]

    @property
    def problem(self) -> str:
        return self.title

    @property
    def method(self) -> Any:
        return SimpleNamespace(refuses=lambda p: self.done.append(f"refuses {p}"), fit=self.done.append)


def test_each_method_is_fitted_and_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    module = SimpleNamespace(QUESTIONS=[Asked("one", done), Asked("two", done)])
    monkeypatch.setattr(warm, "import_module", lambda name: module)
    monkeypatch.setattr(sys, "argv", ["harness", "warm"])
    monkeypatch.setattr(main, "talk", lambda: None)
    main.main()
    assert done == ["refuses one", "one", "refuses two", "two"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["[1/2] one: compiled already", "[2/2] two: compiled already"]
    assert lines[-1].startswith("done: 0 s of compiling")
