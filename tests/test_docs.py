"""The pages of ``docs``, as Sphinx builds them: no warning, and every notebook runs."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.pages import DOCS, ROOT, SOURCES

CHOICES = sorted(ROOT.glob("conf/*/*.yaml"))
OFFLINE = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}  # nobody answers there


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx") is None, reason="sphinx is in the group 'docs'; run: uv sync --group docs")
def test_the_pages_are_built_without_a_warning_or_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    environment = {**os.environ, **OFFLINE, "NO_PROXY": "", "no_proxy": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    assert "  coverage  filled  validity  " in (tmp_path / "tutorials" / "compare.html").read_text()  # in one piece
    assert [page for page in SOURCES if not (tmp_path / page.relative_to(DOCS)).with_suffix(".html").exists()] == []


def given(node: Any, prefix: str = "") -> dict[str, Any]:
    """The values of a YAML by their dotted names, as its parser reads them; records in braces are values."""
    found = {}
    for key, value in node.items():
        found |= given(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return found


@pytest.fixture(scope="module")
def choices() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "choices.py"))


@pytest.mark.parametrize("path", CHOICES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_reference_has_each_setting_of_a_choice(path: Path, choices: dict[str, Any]) -> None:
    """Its name, its value, and the comment of its line; those of the choice that it builds upon come first."""
    said = {each.name: each for each in choices["settings"](path)}
    shown = given({name: yaml.safe_load(each.value) for name, each in said.items() if each.value})
    own = yaml.safe_load(path.read_text()) or {}
    own.pop("defaults", None)
    assert {name: shown[name] for name in given(own)} == given(own)
    for line in path.read_text().splitlines():
        if line_of := re.fullmatch(r"(\w+):.*?\s# (.*)", line):
            assert said[line_of[1]].comment == line_of[2]


def test_the_reference_is_written_whole(choices: dict[str, Any], tmp_path: Path) -> None:
    """A page a folder with a section a choice, and each class and metric that a YAML names."""
    choices["write"](tmp_path)
    for group in ("dataset", "experiment", "method", "metrics", "model"):
        names = re.findall(r"^## (.*)$", (tmp_path / f"{group}.md").read_text(), re.MULTILINE)
        paths = sorted(ROOT.glob(f"conf/{group}/*.yaml"))
        assert names == [path.stem for path in paths]
        rows = re.findall(r"^\| (?!setting|---)(.*?) \|", (tmp_path / f"{group}.md").read_text(), re.MULTILINE)
        assert rows == [f"`{each.name}`" for path in paths for each in choices["settings"](path)]
    assert ".. autoclass:: methods.ce_ocl.CeOcl\n" in (tmp_path / "classes.rst").read_text()
    assert ".. autofunction:: metrics.proximity.cost\n" in (tmp_path / "functions.rst").read_text()
    assert "| `n_factuals` | `30` |" in (tmp_path / "settings.md").read_text()
