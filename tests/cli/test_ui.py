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
    for name in ("MLFLOW_TRACKING_URI", *ui.QUIET):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "execve", lambda *given: found.extend(given))
    return found


@pytest.mark.parametrize("named", [True, False])
def test_the_store_is_that_of_the_environment_or_of_the_folder(
    named: bool,
    became: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
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
    assert command[command.index("--registry-store-uri") + 1] == f"sqlite:///{store}"
    assert command[-2:] == ["--port", "5001"]
    assert {key: environment[key] for key in ui.QUIET} == {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    assert "http://127.0.0.1:5001 " in capsys.readouterr().out
    assert "No such option" not in CliRunner().invoke(cli, [*command[3:], "--help"]).output


def test_without_a_store_there_is_one_sentence(became: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError, match=r"there is no .*mlflow\.db; run something first, or go where it ran"):
        ui.serve([])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    with pytest.raises(HarnessError, match="http://host:5000 is a server; open that address"):
        ui.serve([])
    assert not became


@pytest.mark.parametrize(
    "asked", [["--help"], ["--backend-store-uri", "sqlite:////there.db"], ["--backend-store-uri=x"]]
)
def test_who_names_a_store_needs_none_here(asked: list[str], became: list[Any]) -> None:
    ui.serve(asked)
    assert became[1][-len(asked) :] == asked
    assert "--registry-store-uri" not in became[1]


def test_options_of_a_store_are_no_part_of_its_name(
    became: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "all.db").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/all.db?timeout=30")
    ui.serve([])
    assert became
