"""What a choice of a configuration is, in a sentence: from the comment that its file begins with."""

from __future__ import annotations

import re
from pathlib import Path

from harness.core.packages import install

WIDTH = 110  # characters of a description


def described(path: Path, width: int = WIDTH) -> str:
    """The first sentence of a YAML's opening comment."""
    comment: list[str] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("#") or (comment and line.strip() == "#"):
            break
        comment += [] if "@package" in line else [line.lstrip("# ")]
    text = re.sub(r"uv sync --extra (\w+)", lambda found: install(found[1]), " ".join(comment))
    return sentence(text, width)


def sentence(text: str, width: int = WIDTH) -> str:
    """A text up to a semicolon, or a full stop before a capital: one of ``et al.`` or ``...`` ends no sentence."""
    first = re.split(r"(?<=;)\s|(?<=\.)\s(?=[A-Z])", text.strip(), maxsplit=1)[0].rstrip(".;")
    return first if len(first) <= width else f"{first[: width - 1]}…"
