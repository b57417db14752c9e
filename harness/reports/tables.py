"""Write the table of an experiment: Markdown, LaTeX and CSV."""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import HarnessError, choices
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports.latex import document, of_markdown
from harness.reports.overview import TITLE, for_paper, overview
from harness.reports.registry import known
from harness.reports.stored import latest, provenance


def write(folder: Path, name: str | None, numbers: Numbers | None = None) -> str:
    """Write ``table.md``, ``table.tex`` and ``table.csv`` of an experiment from its stored runs.

    Without a name, what every method answered on every model; ``numbers`` of the study are computed where not given.

    Raises
    ------
    HarnessError
        For a table that does not exist, or without finished runs.
    """
    if name is not None and name not in known():
        raise HarnessError(f"there is no table {name!r}; {choices(name, known())}.")
    if name is None:
        compared = numbers or Numbers(Study.of(folder).held())
        title, found = TITLE, compared.study.runs
        text, lines = overview(compared)
        tables, notes = for_paper(compared), list[str]()
    else:
        title, found = known()[name].title, latest(folder)
        text, lines = known()[name].build(found)
        tables, notes = of_markdown(title, text)
    (folder / "table.md").write_text(f"# {title}\n\n{provenance(found)}\n\n{text}")
    (folder / "table.tex").write_text(document(folder.resolve().name, tables, [provenance(found), *notes]))
    lines.to_csv(folder / "table.csv", index=False)
    return f"{folder / 'table.md'}: {title}"
