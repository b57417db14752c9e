"""All files of the site: pages, data as scripts that a page loads from disk, figures, and tables to download."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.core.errors import HarnessError
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import BLOCKS, ENOUGH, LEVEL
from harness.evaluation.study import Study
from harness.reports.site.board import board
from harness.store.archive import studies

log = logging.getLogger("harness")

HERE = Path(__file__).parent
NAME = "site"
PAGES = {"index": "Board"}
RULES = {"level": LEVEL, "blocks": BLOCKS, "enough": ENOUGH}


def write(home: Path) -> str:
    """Write ``home/site`` of all studies and archives under a folder, whole or not at all; returns a message.

    Raises
    ------
    HarnessError
        Where there is no study that is finished and scored, and for an archive that cannot be read.
    """
    found = _numbers(home)
    with tempfile.TemporaryDirectory(dir=home, prefix=".site-") as temporary:
        made = Path(temporary) / NAME
        made.mkdir()
        _fill(made, found)
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        place = home / NAME
        if place.exists():
            place.replace(Path(temporary) / "before")
        made.replace(place)
    return f"{place / 'index.html'}: {len(found)} studies, {size / 1e6:.1f} MB"


def _numbers(home: Path) -> list[Numbers]:
    """Of each study under a folder that is finished and scored; those that compare most methods and tasks first."""
    found = []
    for folder in studies(home):
        try:
            found.append(Numbers(Study.of(folder)))
        except HarnessError as fault:
            log.warning("%s is left out: %s", folder.name, fault)
    if not found:
        raise HarnessError(
            f"there is no finished study and no archive under {home}; give a results folder, such as results."
        )
    return sorted(
        found, key=lambda numbers: -sum(len(of) for t in numbers.study.tasks if len(of := numbers.study.of_task(t)) > 1)
    )


def _fill(site: Path, found: Sequence[Numbers]) -> None:
    """Write every file of the site into a folder."""
    for number, numbers in enumerate(found):
        folder = site / "data" / str(number)
        folder.mkdir(parents=True)
        _script(folder / "board.js", f"board {number}", board(numbers))
    for name in ("site.js", "site.css"):
        shutil.copyfile(HERE / name, site / name)
    shutil.copyfile(HERE.parent / "page" / "page.css", site / "page.css")
    listed = [{"name": numbers.study.name, "text": _summary(numbers.study)} for numbers in found]
    _script(site / "data" / "studies.js", "studies", listed)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    bodies: Mapping[str, Markup] = {"index": Markup("")}
    for name, title in PAGES.items():
        text = environment.get_template("page.html").render(
            name=name, title=title, pages=PAGES, body=bodies[name], **RULES
        )
        (site / f"{name}.html").write_text(text, encoding="utf-8")


def _summary(study: Study) -> str:
    counts = {"method": len(study.methods), "data set": len(study.datasets), "task": len(study.tasks)}
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())


def _script(path: Path, name: str, value: Any) -> None:
    """Data as a script, which a page that was opened from disk may load where it may not read files."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    path.write_text(f"site.put({json.dumps(name)}, {text});\n", encoding="utf-8")
