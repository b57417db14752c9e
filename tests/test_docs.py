"""The pages of ``docs``, as Sphinx builds them: no warning, and every notebook runs."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.pages import DOCS, ROOT, SOURCES

GROUPS = ("dataset", "experiment", "method", "metrics", "model", "hydra/launcher", "hydra/sweeper")
CONF = ROOT / "conf"
CHOICES = sorted({*CONF.glob("*/*.yaml"), *CONF.glob("experiment/*/*.yaml"), *CONF.glob("hydra/*/*.yaml")})
# Of choices that build upon others: a setting of theirs that another file has, and its value.
INHERITED = {
    "experiment/scorecard_table2": ("factuals", "7"),
    "experiment/scorecard_table9": ("dataset", "adult_dice8"),
    "experiment/ce_ocl_table5": ("variant", "A"),
    "experiment/ce_ocl_heart/d": ("method", "ce_ocl_paper"),
}
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


@pytest.mark.parametrize("path", CHOICES, ids=lambda path: path.relative_to(CONF).with_suffix("").as_posix())
def test_the_reference_has_each_setting_of_a_choice(path: Path, choices: dict[str, Any]) -> None:
    """Its name, its value, and the comment of its line; those of the choice that it builds upon come first."""
    said = {each.name: each for each in choices["settings"](path)}
    shown = given({name: yaml.safe_load(each.value) for name, each in said.items() if each.value})
    own = yaml.safe_load(path.read_text()) or {}
    defaults = own.pop("defaults", None) or []
    (own.get("hydra") or {}).pop("mode", None)  # a sweep is one where a setting has several values
    values = {name.removeprefix("hydra.sweeper.params."): value for name, value in given(own).items()}
    parts = (
        [each for each in defaults[defaults.index("_self_") :] if isinstance(each, dict)]
        if "_self_" in defaults
        else []
    )
    for group, name in (pair for part in parts for pair in part.items() if pair[0].startswith("/")):  # these come later
        values |= given(yaml.safe_load((CONF / group.strip("/") / f"{name}.yaml").read_text()) or {})
    values = {name: value for name, value in values.items() if name.partition(".")[0] != "defaults"}
    assert {name: shown[name] for name in values} == values
    for line in path.read_text().splitlines():
        if line_of := re.fullmatch(r"(\w+):.*?\s# (.*)", line):
            assert said[line_of[1]].comment == line_of[2]


def test_the_reference_is_written_whole(choices: dict[str, Any], tmp_path: Path) -> None:
    """A page a folder with a section a choice, and each class and metric that a YAML names."""
    choices["write"](tmp_path)
    for group in GROUPS:
        text = (tmp_path / f"{group.replace('/', '_')}.md").read_text()
        names = re.findall(r"^## (.*)$", text, re.MULTILINE)
        paths = sorted((CONF / group).glob("**/*.yaml" if group == "experiment" else "*.yaml"))
        assert names == [path.relative_to(CONF / group).with_suffix("").as_posix() for path in paths]
        rows = re.findall(r"^\| (?!setting|---)(.*?) \|", text, re.MULTILINE)
        assert rows == [f"`{each.name}`" for path in paths for each in choices["settings"](path)]
    assert ".. autoclass:: methods.ce_ocl.CeOcl\n" in (tmp_path / "classes.rst").read_text()
    assert ".. autofunction:: metrics.proximity.cost\n" in (tmp_path / "functions.rst").read_text()
    parts = {name: {each.name: each.value for each in choices["settings"](CONF / f"{name}.yaml")} for name in INHERITED}
    for name, (setting, value) in INHERITED.items():
        assert parts[name][setting] == value
    assert "| `n_factuals` | `30` |" in (tmp_path / "settings.md").read_text()


@pytest.mark.parametrize("group", ["model", "method", "dataset"])
def test_the_page_at_a_glance_has_every_choice(group: str) -> None:
    """By its name, or by a pattern that it fits."""
    named = re.findall(r"`([\w*]+)`", (DOCS / "reference" / "overview.md").read_text())
    absent = [path.stem for path in CONF.glob(f"{group}/*.yaml") if not any(fnmatch(path.stem, name) for name in named)]
    assert absent == []
