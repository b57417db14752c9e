"""``python -m harness ui``: which store it shows, and what it does without one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mlflow.cli import cli

from harness.cli import ui
from harness.core.errors import HarnessError


@pytest.fixture
def became(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the process becomes, in a folder without a store."""
    found: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(os, "execve", lambda *given: found.extend(given))
    return found


@pytest.mark.parametrize("named", [True, False])
def test_the_store_is_that_of_the_environment_or_of_the_folder(
    named: bool, became: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / ("other.db" if named else "mlflow.db")
    store.touch()
    if named:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}")
    ui.serve(["--port", "5001"])
    program, command, environment = became
    assert program == sys.executable == command[0]
    assert command[1:4] == ["-m", "mlflow", "ui"]
    assert command[command.index("--backend-store-uri") + 1] == f"sqlite:///{store}"
    assert command[-2:] == ["--port", "5001"]
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert "No such option" not in CliRunner().invoke(cli, [*command[3:], "--help"]).output


def test_without_a_store_there_is_one_sentence(became: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError, match=r"there is no .*mlflow\.db; run something first, or go where it ran"):
        ui.serve([])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    with pytest.raises(HarnessError, match="http://host:5000 is a server; open that address"):
        ui.serve([])
    assert not became
