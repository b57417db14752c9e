"""What users read: the pages at the top and those of ``docs``, as text for the tests that try what stands there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {"_build", "generated"}  # folders that a build writes
SOURCES = [page for page in sorted(DOCS.rglob("*.md")) if not MADE & set(page.relative_to(DOCS).parts)]
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *SOURCES]
PROSE = "\n\n".join(page.read_text() for page in PAGES)
