"""What text says can be typed and is found: commands in README and docs compose, modules and files of ours exist."""

from __future__ import annotations

import ast
import io
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from support.pages import DOCS, PAGES, PROSE, ROOT, SOURCES
from support.sweep import runner

from harness.cli.arguments import readable

COMMAND = re.compile(
    r"^(?: {4}|\$ |pip install uv && )?(?:uv run (?:--\S+ (?:\w+ )??)*)?python -m harness(\.\w+)? (.+)$", re.M
)
FOUND = COMMAND.findall(PROSE.replace("\\\n", " "))
PRINTED = {  # but for cells of notebooks, which print it themselves
    arguments: PROSE.split(f"harness.explain {arguments}\n", 1)[1]
    for part, arguments in FOUND
    if part == ".explain" and f"%%bash\npython -m harness.explain {arguments}\n" not in PROSE
}


(LOANS,) = re.findall(r"```python\n(import numpy .+?)```", PROSE, re.S)  # makes the CSVs of the examples


NO_SETTINGS = {"list", "info", "ui", "warm"}
COMPOSED = [text for part, text in FOUND if part in {"", ".explain"} and text.split()[0] not in NO_SETTINGS]


def words(arguments: str) -> list[str]:
    return [word for word in shlex.split(arguments, comments=True) if word not in {"-m", "--help", "--cfg", "job"}]


def first(words: list[str]) -> list[str]:
    """Of choices that a sweep would run through, the first."""
    parsed = OverridesParser.create().parse_overrides([readable(word) for word in words])
    return [
        f"{override.key_or_group}={next(override.sweep_string_iterator())}" if override.is_sweep_override()
        else str(override.input_line)
        for override in parsed
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", COMPOSED)
def test_each_command_composes(arguments: str) -> None:
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    GlobalHydra.instance().clear()
    asked = [word for word in first(words(arguments)) if not word.startswith("factual=")]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        OmegaConf.to_container(compose("config", overrides=asked), resolve=True)


def test_all_kinds_of_commands_are_found() -> None:
    named = {"", ".archive", ".explain", ".check", ".figures", ".tables", ".report", ".site"}
    assert {part for part, _ in FOUND} == named


# What needs the folder of a table cannot be run here.
@pytest.mark.parametrize("arguments", [given for given in PRINTED if "scorecard_table" not in given])
@pytest.mark.every(3)
def test_people_are_explained_as_printed(arguments: str, tmp_path: Path) -> None:
    """Each line of what the command prints follows the command where it stands, in this order."""
    subprocess.run([sys.executable, "-c", LOANS], cwd=tmp_path, check=True)
    (tmp_path / "accounts.csv").write_text("from,to,cost\n<0,0<=X<200,0.05\n<0,no checking,3\n")
    done = runner(tmp_path)(*words(arguments), module="harness.explain")
    assert done.returncode == 0, done.stderr
    shown = [line.strip() for line in PRINTED[arguments].splitlines()]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if "dataset.path=" in arguments:  # what a cost is, which other examples show
        lines = [line for line in lines if not line.startswith(("objective: ", "data.", "OPTIMAL: "))]
    assert len(lines) > 5
    places = [shown.index(line) for line in lines]
    assert places == sorted(places)


# --- pages --------------------------------------------------------------------------------------------------------

TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)\s]*\)")
LONGEST = 250  # lines of the README


def listed(page: Path) -> list[Path]:
    """The pages in the toctrees of a page, but for those that a build writes."""
    lines = [line for block in TOCTREE.findall(page.read_text()) for line in block.splitlines()]
    return [page.parent / f"{line}.md" for line in lines if line and not line.startswith((":", "generated/"))]


def test_every_page_is_in_one_toctree() -> None:
    assert sorted(entry for page in SOURCES for entry in listed(page)) == sorted({*SOURCES} - {DOCS / "index.md"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file(page: Path) -> None:
    """Relative to the page, as a browser and a repository's site follow it."""
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert len(PAGES[0].read_text().splitlines()) <= LONGEST


# --- addresses ----------------------------------------------------------------------------------------------------

ADDRESS = re.compile(  # harness.core.space.Space, but no page named so
    r"(?<![\w./-])(?:harness|methods|metrics)(?!\.html\b)(?:\.[A-Za-z_]\w*)+"
)
PLACE = re.compile(r"(?<![\w./-])(?:harness|methods|metrics|tests|conf)/[\w./-]*\w")  # harness/core/space.py
MADE_UP = {  # by the examples of what a user writes
    "methods.mine.Mine", "methods/mine.py", "conf/method/mine.yaml", "metrics.mine.oldest", "metrics/mine.py",
    "conf/dataset/loans.yaml", "conf/model/deep_forest.yaml", "conf/method/draw.yaml", "conf/metrics/money.yaml",
    "conf/experiment/mine.yaml",
}  # fmt: skip
IN_THE_WHEEL = {"harness/conf", "harness/published"}  # where pyproject.toml puts conf and results/published
SETTINGS = {"metrics.names"}  # of a configuration, in which ``metrics`` is a group of settings
TEXTS = PAGES + sorted(
    path
    for pattern in ("pyproject.toml", "docs/*.py", "conf/**/*.yaml", "[hmt]*/**/*.py", "tests/**/*.md")
    for path in ROOT.glob(pattern)
    if path.name not in {"test_imports.py", "test_readme.py"}  # which make up files to test themselves
)


def text(path: Path) -> str:
    """What a file says: of a Python file, its strings and comments alone."""
    if path.suffix != ".py":
        return path.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    kept = {"STRING", "FSTRING_MIDDLE", "COMMENT"}
    return "\n".join(token.string for token in tokens if tokenize.tok_name[token.type] in kept)


def missing(content: str, root: Path) -> set[str]:
    """The addresses and paths of ours in a text that lead nowhere below a folder."""
    addresses, places = set(ADDRESS.findall(content)), set(PLACE.findall(content))
    return {a for a in addresses if not resolves(a, root)} | {p for p in places if not (root / p).exists()}


def resolves(address: str, root: Path) -> bool:
    """Whether a dotted name is a module, or what a module or a class of it defines; nothing is imported."""
    parts = address.split(".")
    for length in range(len(parts), 0, -1):
        folder = root.joinpath(*parts[:length])
        if (file := folder.with_suffix(".py")).is_file() or (file := folder / "__init__.py").is_file():
            return _defines(parsed(file).body, parts[length:])
        if folder.is_dir() and length == len(parts):
            return True
    return False


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _defines(body: list[ast.stmt], names: list[str]) -> bool:
    """Whether a module has a name, and the class of that name the next; what classes inherit is not looked up."""
    if not names:
        return True
    defined = dict(_definitions(body))
    node = defined.get(names[0])
    if len(names) > 1 and isinstance(node, ast.ClassDef) and not node.bases:
        return _defines(node.body, names[1:])
    return names[0] in defined


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (((alias.asname or alias.name).split(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from ((name.id, node) for name in ast.walk(node) if isinstance(name, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from _definitions(node.body)


def test_every_address_of_ours_exists() -> None:
    """Modules, functions, classes and files that text, settings, strings and comments name."""
    assert len(TEXTS) > 300
    found = {path.relative_to(ROOT).as_posix(): missing(text(path), ROOT) for path in TEXTS}
    stale = {path: names - MADE_UP - IN_THE_WHEEL - SETTINGS for path, names in found.items()}
    assert {path: names for path, names in stale.items() if names} == {}


def test_what_is_made_up_is_made_up() -> None:
    """And named: no exception outlives its reason."""
    assert missing(PROSE, ROOT) >= MADE_UP
    assert missing((ROOT / "pyproject.toml").read_text(), ROOT) == IN_THE_WHEEL


def test_a_stale_address_is_found(tmp_path: Path) -> None:
    """As a module, a name of a module, a name of a class, or a path; in comments, docstrings and code in strings."""
    (tmp_path / "harness" / "raw").mkdir(parents=True)
    (tmp_path / "harness" / "__init__.py").write_text("")
    (tmp_path / "harness" / "space.py").write_text(
        "from math import inf\nEPS: float = inf\nclass Space:\n    x: int = 0\n"
    )
    right = {"harness.space", "harness.space.EPS", "harness.space.inf", "harness.space.Space.x", "harness.raw"}
    wrong = {"harness.hull", "harness.space.Hull", "harness.space.Space.y", "harness.raw.a", "methods.dice.Dice"}
    assert missing(" ".join(right | wrong), tmp_path) == wrong
    assert missing("see harness/space.py, harness/raw, and harness/hull.py.", tmp_path) == {"harness/hull.py"}
    code = tmp_path / "code.py"
    code.write_text(
        '"""``harness.a``"""\nimport harness.b  # harness.c\nrun("import harness.d")\nharness.space.e = f"harness.f"\n'
    )
    assert missing(text(code), tmp_path) == {"harness.a", "harness.c", "harness.d", "harness.f"}
