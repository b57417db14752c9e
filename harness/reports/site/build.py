"""All files of the site: pages, data as scripts that a page loads from disk, figures, and tables to download."""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.core.errors import HarnessError, UnsupportedError, short
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import BLOCKS, ENOUGH, LEVEL
from harness.evaluation.study import Study
from harness.models.canonical import zipped
from harness.models.runtime.optional import library
from harness.reports.markup import csv_of
from harness.reports.page.against import FEW
from harness.reports.page.elements import Names, markdown
from harness.reports.site.board import board, choices, views
from harness.reports.site.catalogue import data, methods
from harness.reports.site.questions import Asked, answers, questions
from harness.store.archive import has_answers, studies

log = logging.getLogger("harness")

HERE = Path(__file__).parent
NAME = "site"
LARGEST = 40_000_000  # bytes, of which more is said
CHARTS = "vega.js"  # Vega-Lite, by which the board draws
PAGES = {
    "index": "Board", "question": "One question", "methods": "Methods", "data": "Data sets and models",
    "reproduction": "The papers' tables", "downloads": "Downloads",
}  # fmt: skip
TABLES = "tables.zip"
NONE = "there is no finished study and no archive under {}; give a results folder, such as results."
FILES = {  # in it, of each study
    "summary.csv": "every number of each method and task, with intervals, common means and ranks",
    "pairs.csv": "every pair of methods of a task and criterion, with tests",
    "answers.csv": "every answer: how it ended, what the checker says, its region, what it changes",
}
RULES = {"level": LEVEL, "blocks": BLOCKS, "enough": ENOUGH, "few": FEW}


def write(home: Path) -> str:
    """Write ``home/site`` of all studies and archives under a folder, whole or not at all; returns a message.

    Raises
    ------
    HarnessError
        Where there is no study that is finished and scored, and for an archive that cannot be read.
    """
    if has_answers(home / NAME):
        raise HarnessError(f"{home / NAME} holds answers, and is where the pages go; give that study another name.")
    found = _numbers(home)
    with tempfile.TemporaryDirectory(dir=home, prefix=".site-") as temporary:
        made = Path(temporary) / NAME
        made.mkdir()
        found = _fill(made, home, found)
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        if size > LARGEST:
            log.warning("the site has more than %d MB; build it of fewer studies to pass it on.", LARGEST / 1e6)
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
            found.append(Numbers(Study.of(folder).held()))
        except (OSError, MemoryError):
            raise
        except Exception as fault:
            _leave_out(folder.name, fault)
    if not found:
        raise HarnessError(NONE.format(home))
    return sorted(
        found, key=lambda numbers: -sum(len(of) for t in numbers.study.tasks if len(of := numbers.study.of_task(t)) > 1)
    )


def _leave_out(name: str, fault: Exception) -> None:
    """Say that a study is not in the site, and why."""
    why = fault if isinstance(fault, HarnessError) else f"it is damaged ({short(fault)}); get or make it again."
    log.warning("%s is left out: %s", name, why)


def _fill(site: Path, home: Path, given: Sequence[Numbers]) -> list[Numbers]:
    """Write every file of the site into a folder; returns the studies that are in it."""
    found: list[Numbers] = []
    for numbers in given:
        folder = site / "data" / str(len(found))
        folder.mkdir(parents=True)
        try:
            _study(folder, f"{len(found)}", numbers)
        except (OSError, MemoryError):
            raise
        except Exception as fault:
            shutil.rmtree(folder)
            _leave_out(numbers.study.name, fault)
        else:
            found.append(numbers)
    if not found:
        raise HarnessError(NONE.format(home))
    for path in (HERE / "site.js", HERE / "site.css", HERE.parent / "page" / "page.css"):
        shutil.copyfile(path, site / path.name)
    listed = [{"name": numbers.study.name, "text": _summary(numbers.study)} for numbers in found]
    _script(site / "data" / "studies.js", "studies", listed)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    known = [numbers.study for numbers in found]
    shown = {
        "methods": methods(known),
        "groups": {"data sets": data(known, "dataset"), "models": data(known, "model")},
        "sections": _reproduction(home, site),
        "charts": CHARTS if _charts(site) else "",
        "studies": listed,
        "files": FILES,
        "tables": TABLES,
    }
    for name, title in PAGES.items():
        page = environment.get_template("page.html").render(name=name, title=title, pages=PAGES, **RULES, **shown)
        (site / f"{name}.html").write_text(page, encoding="utf-8")
    return found


def _charts(site: Path) -> bool:
    """Write Vega-Lite as one script; False where the package that has it is not installed: the board has no chart."""
    try:
        bundle = library("vl_convert", "site").javascript_bundle()
    except UnsupportedError as fault:
        log.warning("the board has no chart: %s.", fault)
        return False
    (site / CHARTS).write_text(bundle, encoding="utf-8")
    return True


def _study(folder: Path, name: str, numbers: Numbers) -> None:
    """Write the data of a study, and its tables."""
    study, asked = numbers.study, Asked.of(numbers.study)
    _script(folder / "board.js", f"board {name}", board(numbers))
    for place, chosen in enumerate(choices(study.datasets)):
        _script(folder / f"view{place}.js", f"view {name} {place}", views(numbers, chosen))
    for place, task in enumerate(study.tasks):
        of_task = [each for each in asked if each.entry.task == task]
        _script(folder / f"task{place}.js", f"task {name} {place}", questions(study.methods, of_task))
    tables = dict(zip(FILES, (numbers.table(), numbers.pairs(), answers(asked)), strict=True))
    texts = {file: csv_of(table).encode() for file, table in tables.items()}
    (folder / TABLES).write_bytes(zipped(texts, deflated=FILES))


def _reproduction(home: Path, site: Path) -> list[tuple[str, Markup]]:
    """The sections of the page about the papers' tables, which has none where it is not there; copies its figures."""
    path, names = home / "REPRODUCTION.md", Names(())
    if not path.is_file():
        return []
    (site / "figures").mkdir()
    for picture in sorted((home / "figures").glob("*.png")):
        shutil.copyfile(picture, site / "figures" / picture.name)
    parts = re.split(r"^#+ (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(title, markdown(text, names)) for title, text in zip(parts[::2], parts[1::2], strict=True)]


def _summary(study: Study) -> str:
    counts = {"method": len(study.methods), "data set": len(study.datasets), "task": len(study.tasks)}
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())


def _script(path: Path, name: str, value: Any) -> None:
    """Data as a script, which a page that was opened from disk may load where it may not read files."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    path.write_text(f"site.put({json.dumps(name)}, {text});\n", encoding="utf-8")
