"""Files that are written in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.writing import write_whole


def test_what_is_no_letter_is_written_as_its_code(tmp_path: Path) -> None:
    """As an error about a file has it whose name is no text."""
    write_whole(tmp_path / "page.html", "caf\udce9 é")
    assert (tmp_path / "page.html").read_text() == "caf\\udce9 é"


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    """Here since a folder has the file's name."""
    (tmp_path / "page.html").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "page.html", "a page")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
