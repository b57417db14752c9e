"""Which choices of ``conf`` can be tried as they stand, and which need settings of the user first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CONF = Path(__file__).parents[2] / "conf"
MISSING = "???"  # what stands for a setting that has to be given


def complete(group: str) -> list[str]:
    """The choices of a group in which no setting is left to the user, sorted."""
    paths = sorted((CONF / group).glob("*.yaml"))
    return [path.stem for path in paths if not _lacking(yaml.safe_load(path.read_text()))]


def _lacking(node: Any) -> bool:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return node == MISSING or any(map(_lacking, inner))
