"""Write a paper's figure, or one of any study, from stored answers, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.core.errors import HarnessError, choices
from harness.reports import registry, scaling, survival
from harness.reports.drawing import Drawing
from harness.reports.stored import latest

OF_STUDIES = {**survival.FIGURES, **scaling.FIGURES}  # of no paper


def known() -> dict[str, tuple[str, Drawing]]:
    """File name and drawing of every figure, by the name under which an experiment asks for it."""
    return {**registry.collected("FIGURES"), **OF_STUDIES}


def write(folder: Path, name: str | None) -> str:
    """Draw a figure from an experiment's stored runs, as PNG and SVG, and return a message that names the files.

    Raises
    ------
    HarnessError
        For a figure that does not exist, for None, or without finished runs.
    """
    if name is None:
        raise HarnessError(f"the experiment of {folder} names no figure; known: {', '.join(known())}.")
    if name not in known():
        raise HarnessError(f"there is no figure {name!r}; {choices(name, known())}.")
    path = folder / known()[name][0]
    draw(folder, name, path, ("png", "svg"))
    return f"{path}.png, .svg"


def draw(folder: Path, name: str, path: Path, suffixes: Iterable[str]) -> None:
    """Draw a figure that there is from an experiment's stored runs, as ``path`` with each suffix."""
    _, drawing = known()[name]
    figure = drawing(latest(folder))
    for suffix in suffixes:
        figure.savefig(path.with_name(f"{path.name}.{suffix}"), dpi=150)
