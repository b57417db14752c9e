"""All files of the site: pages, data as scripts that a page loads from disk, figures, and tables to download."""

from __future__ import annotations

import gzip
import json
import logging
import re
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.core.errors import FULL, HarnessError, UnsupportedError, short
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import BLOCKS, ENOUGH, LEVEL, NEARLY
from harness.evaluation.study import Study
from harness.models.canonical import zipped
from harness.models.runtime.optional import library
from harness.reports.markup import csv_of
from harness.reports.page.against import FEW
from harness.reports.page.elements import PICTURE, Names, markdown
from harness.reports.site.board import board, choices, views
from harness.reports.site.catalogue import data, methods
from harness.reports.site.questions import Asked, answers, questions
from harness.store.archive import has_answers, studies

log = logging.getLogger("harness")

HERE = Path(__file__).parent
NAME = "site"
LARGEST, LARGEST_FIRST = 40_000_000, 6_000_000  # bytes of the site, and of its first page, of which more is said
CHARTS = "vega.js"  # Vega-Lite, by which the board draws
FIRST = (  # what the first page reads
    "index.html", "page.css", "site.css", "site.js", CHARTS, "data/studies.js", "data/0/board.js", "data/0/view0.js",
)  # fmt: skip
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
RULES = {
    "level": LEVEL, "sure": f"{100 * (1 - LEVEL):.0f} %", "nearly": f"{100 * NEARLY:.0f} %", "blocks": BLOCKS,
    "enough": ENOUGH, "few": FEW,
}  # fmt: skip


def write(home: Path) -> tuple[str, int]:
    """Write ``home/site`` of all studies and archives under a folder, whole or not at all.

    Returns a message, and how many studies are left out.

    Raises
    ------
    HarnessError
        Where there is no study that is finished and scored, and for an archive that cannot be read.
    """
    if has_answers(home / NAME):
        raise HarnessError(f"{home / NAME} holds answers, and is where the pages go; give that study another name.")
    found, left = _numbers(home)
    with tempfile.TemporaryDirectory(dir=home, prefix=".site-") as temporary:
        made = Path(temporary) / NAME
        made.mkdir()
        found = _fill(made, home, found, left)
        size = _size(made)
        place = home / NAME
        if place.exists():
            place.replace(Path(temporary) / "before")
        made.replace(place)
    return f"{place / 'index.html'}: {len(found)} {'study' if len(found) == 1 else 'studies'}, {size}", len(left)


def _size(site: Path) -> str:
    """How large the site and its first page are, in words; the log says what is too large."""
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    whole, first = sum(sizes.values()), sum(sizes.get(name, 0) for name in FIRST)
    if whole > LARGEST:
        log.warning("the site has more than %.0f MB; build it of fewer studies to pass it on.", LARGEST / 1e6)
    if first > LARGEST_FIRST:
        log.warning("the first page reads more than %.0f MB; split the study that it shows.", LARGEST_FIRST / 1e6)
    return f"{whole / 1e6:.1f} MB, of which the first page reads {first / 1e6:.1f} MB"


def _numbers(home: Path) -> tuple[list[Numbers], dict[str, str]]:
    """Of each study under a folder that is finished and scored; those that compare most methods and tasks first.

    And by name why others are left out.
    """
    found, left = [], {}
    for folder in studies(home):
        try:
            found.append(Numbers(Study.of(folder).held()))
        except Exception as fault:
            left[folder.name] = _why(folder.name, fault)
    if not found:
        raise HarnessError(NONE.format(home))
    found.sort(key=lambda one: -sum(len(of) for t in one.study.tasks if len(of := one.study.of_task(t)) > 1))
    return found, left


def _why(name: str, fault: Exception, site: Path | None = None) -> str:
    """Why a study is not in the site, which the log says, too; raises what is no fault of the study.

    That is one of the memory, of a disk that takes nothing more, or of the folder that is written.
    """
    why = fault if isinstance(fault, HarnessError) else f"it is damaged ({short(fault)}); get or make it again."
    if isinstance(fault, OSError):
        file = Path(str(fault.filename or name))
        if fault.errno in FULL or (site is not None and file.is_relative_to(site)):
            raise fault
        why = f"{file.name} cannot be read ({fault.strerror or short(fault)}); get or make it again."
    if isinstance(fault, MemoryError):
        raise fault
    log.warning("%s is left out: %s", name, why)
    return str(why)


def _fill(site: Path, home: Path, given: Sequence[Numbers], left: dict[str, str]) -> list[Numbers]:
    """Write every file of the site into a folder; returns the studies that are in it, and adds to those left out."""
    found: list[Numbers] = []
    for numbers in given:
        folder = site / "data" / str(len(found))
        folder.mkdir(parents=True)
        try:
            _study(folder, f"{len(found)}", numbers)
        except Exception as fault:
            left[numbers.study.name] = _why(numbers.study.name, fault, site)
            shutil.rmtree(folder)
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
        "left": left,
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
        _script(folder / f"task{place}.js", f"task {name} {place}", questions(study.methods, of_task), packed=True)
    tables = dict(zip(FILES, (numbers.table(), numbers.pairs(), answers(asked)), strict=True))
    texts = {file: csv_of(table).encode() for file, table in tables.items()}
    (folder / TABLES).write_bytes(zipped(texts, deflated=FILES))


def _reproduction(home: Path, site: Path) -> list[tuple[str, Markup]]:
    """The sections of the page about the papers' tables, which has none where it is not there; copies its figures.

    One that is not there is named.
    """
    path, names = home / "REPRODUCTION.md", Names(())
    if not path.is_file():
        return []
    (site / "figures").mkdir()
    for picture in sorted((home / "figures").glob("*.png")):
        shutil.copyfile(picture, site / "figures" / picture.name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise HarnessError(f"{path} cannot be read ({short(fault)}); write it by harness.tables --all.") from None
    text = PICTURE.sub(lambda found: found[0] if (site / found[2]).is_file() else f"{found[2]} is not there", text)
    parts = re.split(r"^#+ (.*)\n", text, flags=re.MULTILINE)[1:]
    return [(title, markdown(text, names)) for title, text in zip(parts[::2], parts[1::2], strict=True)]


def _summary(study: Study) -> str:
    counts = {"method": len(study.methods), "data set": len(study.datasets), "task": len(study.tasks)}
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())


def _script(path: Path, name: str, value: Any, packed: bool = False) -> None:
    """Data as a script, which a page that was opened from disk may load where it may not read files.

    ``packed`` with gzip, as text of base64: a tenth of the bytes of answers.
    """
    text, put = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False), "put"
    if packed:
        text, put = json.dumps(b64encode(gzip.compress(text.encode(), mtime=0)).decode()), "unpack"
    path.write_text(f"site.{put}({json.dumps(name)}, {text});\n", encoding="utf-8")
