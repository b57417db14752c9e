"""Files replaced in one step: whoever reads one, now or after a crash, finds it as it was or as it is to be."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file, of a name that nobody else takes, to write ``path`` to; nothing is left of it where that fails."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file; what is no letter, as in an error about a file whose name is no text, is written as its code."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
