"""Write the table of an experiment: Markdown, LaTeX and CSV."""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import HarnessError, choices
from harness.reports.markup import latex
from harness.reports.overview import Overview
from harness.reports.registry import known
from harness.reports.stored import latest, provenance


def write(folder: Path, name: str | None) -> str:
    """Write ``table.md``, ``table.tex`` and ``table.csv`` of an experiment from its stored runs.

    Without a name, what every method answered on every model.

    Raises
    ------
    HarnessError
        For a table that does not exist, or without finished runs.
    """
    if name is not None and name not in known():
        raise HarnessError(f"there is no table {name!r}; {choices(name, known())}.")
    found, table = latest(folder), Overview() if name is None else known()[name]
    text, numbers = table.build(found)
    (folder / "table.md").write_text(f"# {table.title}\n\n{provenance(found)}\n\n{text}")
    (folder / "table.tex").write_text(latex(text))
    numbers.to_csv(folder / "table.csv", index=False)
    return f"{folder / 'table.md'}: {table.title}"
