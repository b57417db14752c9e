"""What the README says can be typed: every command composes, and people are explained as printed there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from harness.cli.arguments import readable

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMAND = re.compile(
    r"^(?: {4}|\$ |pip install uv && )?uv run (?:--\S+ (?:\w+ )??)*python -m harness(\.\w+)? (.+)$", re.M
)
FOUND = COMMAND.findall(README.replace("\\\n", " "))
PRINTED = {
    arguments: README.split(f"harness.explain {arguments}\n", 1)[1] for part, arguments in FOUND if part == ".explain"
}


def words(arguments: str) -> list[str]:
    return [word for word in shlex.split(arguments, comments=True) if word not in {"-m", "--help", "--cfg", "job"}]


def first(words: list[str]) -> list[str]:
    """Of choices that a sweep would run through, the first."""
    parsed = OverridesParser.create().parse_overrides([readable(word) for word in words])
    return [
        f"{override.key_or_group}={next(override.sweep_string_iterator())}" if override.is_sweep_override()
        else str(override.input_line)
        for override in parsed
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [arguments for part, arguments in FOUND if part in {"", ".explain"}])
def test_each_command_composes(arguments: str) -> None:
    OmegaConf.register_new_resolver("experiment_name", lambda: "adhoc", replace=True)
    GlobalHydra.instance().clear()
    asked = [word for word in first(words(arguments)) if not word.startswith("factual=")]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        OmegaConf.to_container(compose("config", overrides=asked), resolve=True)


def test_all_kinds_of_commands_are_found() -> None:
    assert {part for part, _ in FOUND} == {"", ".explain", ".check", ".tables", ".report"}


@pytest.mark.parametrize("arguments", [arguments for arguments in PRINTED if "scorecard_table" not in arguments])
def test_people_are_explained_as_printed(arguments: str, tmp_path: Path) -> None:
    """Each line of what the command prints follows the command in the README, in this order."""
    command = [sys.executable, "-m", "harness.explain", *words(arguments)]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    shown = [line.strip() for line in PRINTED[arguments].splitlines()]
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    assert len(lines) > 5
    places = [shown.index(line) for line in lines]
    assert places == sorted(places)
