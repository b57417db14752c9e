"""The pages of ``docs``, as Sphinx builds them: no warning, and every notebook runs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.pages import DOCS, SOURCES

OFFLINE = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}  # nobody answers there


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx") is None, reason="sphinx is in the group 'docs'; run: uv sync --group docs")
def test_the_pages_are_built_without_a_warning_or_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    environment = {**os.environ, **OFFLINE, "NO_PROXY": "", "no_proxy": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    assert [page for page in SOURCES if not (tmp_path / page.relative_to(DOCS)).with_suffix(".html").exists()] == []
