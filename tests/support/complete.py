"""The choices of ``conf`` as their files state them, read without Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CONF = Path(__file__).parents[2] / "conf"
MISSING = "???"  # what stands for a setting that has to be given


def complete(group: str) -> list[str]:
    """The choices of a group in which no setting is left to the user, sorted; of models, those that are trained."""
    found = {path.stem: _load(group, path.stem) for path in (CONF / group).glob("*.yaml")}
    return sorted(name for name, node in found.items() if not _lacking(node) and "family" not in node)


def settings(group: str, choice: str) -> dict[str, Any]:
    """A choice and the choices of its group that it builds upon; interpolations are left as text.

    Defaults that write to other parts of the configuration, ``# @package _global_``, add nothing.
    """
    node = _load(group, choice)
    defaults = [*node.pop("defaults", ["_self_"])]
    merged: dict[str, Any] = {}
    for name in defaults if "_self_" in defaults else [*defaults, "_self_"]:
        merged = _merged(merged, node if name == "_self_" else settings(group, name))
    return merged


def targets(node: Any) -> tuple[Any, ...]:
    """The classes that a setting is built of: nested as they are, in the order of the file."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = (node["_target_"],) if isinstance(node, dict) and "_target_" in node else ()
    return own + tuple(found for child in inner if (found := targets(child)))


def _load(group: str, choice: str) -> dict[str, Any]:
    text = (CONF / group / f"{choice}.yaml").read_text()
    return {} if text.startswith("# @package _global_") else yaml.load(text, Loader=yaml.CSafeLoader)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """The settings of both; where both have one, those above."""
    both = {key for key in below.keys() & above.keys() if isinstance(below[key], dict) and isinstance(above[key], dict)}
    return {**below, **above, **{key: _merged(below[key], above[key]) for key in both}}


def _lacking(node: Any) -> bool:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return node == MISSING or any(map(_lacking, inner))
