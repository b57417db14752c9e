"""The loop over result folders that reports, tables and figures share."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import HarnessError
from harness.reports.rebuild import each


def test_a_folder_that_fails_is_told_and_the_rest_is_done(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A refusal and a full disk are a sentence each, and exit code 1; without them it is 0."""
    done = []

    def act(folder: Path) -> None:
        if folder.name == "refused":
            raise HarnessError("there is nothing here.")
        if folder.name == "full":
            raise OSError(28, "No space left on device", "report.html")
        done.append(folder.name)

    with pytest.raises(SystemExit) as ended:
        each(act, [tmp_path / name for name in ("refused", "full", "fine")])
    assert (ended.value.code, done) == (1, ["fine"])
    told = "there is nothing here.\nreport.html cannot be written (No space left on device); make room, or allow it.\n"
    assert capsys.readouterr().err == told
    with pytest.raises(SystemExit) as ended:
        each(act, [tmp_path / "fine"])
    assert ended.value.code == 0
