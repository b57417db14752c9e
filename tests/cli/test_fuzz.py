"""Whatever a command line or a YAML holds: it is done, or one sentence says what is wrong; never a traceback."""

from __future__ import annotations

import os
import random
import re
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fuzz import MANY, NASTY, fuzz, junk, mutated
from support.pages import PROSE, ROOT

from harness.cli import job, main
from harness.core.errors import HarnessError

CONF = ROOT / "conf"
BASE = {"dataset": "pima", "model": "lr", "method": "nearest", "n_factuals": "2"}
FLAGS = ("-m", "--multirun", "--help", "--info", "--version", "--cfg", "job", "-c", "--nope", "list", "info", "--", "-")
ATTRIBUTES = ("kind", "actionability", "bounds", "clip", "special", "categories", "order", "weight", "costs", "missing")
# Choices that cost nothing to load or fit, of which other YAMLs are made.
CHEAP = {
    "dataset": ("pima", "compas", "ionosphere", "csv"),
    "model": ("lr", "cart", "svm", "file"),
    "metrics": ("default",),
}
CODES = {0, 1, 2, 130}


def built(config: Any, names: dict[str, str], record: Path, place: str, label: str) -> Any:
    """In place of ``job._run``: everything until the first question."""
    plain, _, _ = job.build_task(config, names, None)
    job.build.metrics_of(plain["metrics"])
    raise HarnessError(f"{label} is built.")


def run(words: list[str]) -> None:
    """Be the command; what it prints has no traceback, and says something where it fails."""
    from harness.store import mlflow

    printed = os.open(".", os.O_TMPFILE | os.O_RDWR)
    for number in (1, 2):
        os.dup2(printed, number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    job._run = built
    mlflow.log_failed = lambda *_: None
    mlflow.prepare = lambda folder: os.environ.update(MLFLOW_TRACKING_URI="sqlite:///none.db")
    sys.argv = ["harness", *words]
    code: Any = 0
    try:
        main.main()
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    text = os.pread(printed, 100_000, 0).decode(errors="replace")
    if code not in CODES or "Traceback" in text or (code and not text.strip()):
        raise AssertionError(f"exit code {code}: {text[:300]} ... {text[-1200:]}")


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to write to, and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")


@cache
def known() -> tuple[list[str], list[str]]:
    """Arguments that the pages show, and the names of settings, down to the third level."""
    shown = re.findall(r"(?<![\w./])\+*[a-z][\w./]*=(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s`'\"]+)", PROSE)
    quiet = [shlex.split(word)[0] for word in shown if not word.startswith(("hydra", "output_dir"))]
    settings = yaml.safe_load((CONF / "config.yaml").read_text())
    names = [name for name in settings if name not in {"defaults", "hydra", "output_dir"}]
    inner = ("method.seconds", "method.particles", "model.estimator.C", "model.path", "model.threshold", "model.trust")
    more = ("dataset.path", "dataset.target", "dataset.immutable", "dataset.sources", "hydra.job.num", "metrics.names")
    return sorted({*quiet}), [*names, *inner, *more, "export.sep", "features", "dataset.causality", "hydra.searchpath"]


def command(draw: random.Random) -> list[str]:
    """A sound command with up to three arguments that are odd or do not fit together."""
    words = [f"{key}={value}" for key, value in BASE.items() if draw.random() < 0.9]
    shown, names = known()
    for _ in range(draw.choice((1, 1, 2, 3))):
        value = draw.choice((*NASTY, str(junk(draw)), draw.choice(shown).partition("=")[2]))
        named = draw.choice((draw.choice(names), mutated(draw, draw.choice(names))))
        feature = f"features.{draw.choice(('Age', 'BMI', *NASTY))}.{draw.choice(ATTRIBUTES)}={value}"
        given = f"{draw.choice(('', '', '+', '++', '~'))}{named}={value}"
        odd = (draw.choice(shown), mutated(draw, draw.choice(shown)), given, given, feature, draw.choice(FLAGS))
        words.insert(draw.randint(0, len(words)), draw.choice(odd))
    if any(word.startswith(("-", "+exp")) or "," in word for word in words):
        words.append("dry=true")  # perhaps a sweep of hundreds
    return [word.replace("\0", "") for word in words]  # which no command line can have


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of a nested mapping or list are."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, value in inner for found in [(*path, key), *places(value, (*path, key))]]


def changed(draw: random.Random, text: str) -> str:
    """A YAML with up to three values replaced, left out, renamed, added or wrapped."""
    tree = yaml.safe_load(text) or {}
    for _ in range(draw.choice((1, 1, 2, 3))):
        if not isinstance(tree, dict) or not (found := places(tree)):
            return text
        *way, key = draw.choice(found)
        node = tree
        for step in way:
            node = node[step]
        match draw.randrange(5) if isinstance(node, dict) else 0:
            case 0:
                node[key] = junk(draw)
            case 1:
                del node[key]
            case 2:
                node[draw.choice((mutated(draw, str(key)), 7, None, True))] = node.pop(key)
            case 3:
                node[draw.choice(("name", "extra", "_target_", "_partial_", *NASTY))] = junk(draw)
            case _:
                node[key] = [node[key]]
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)


def choice(draw: random.Random) -> tuple[str, bytes]:
    """A YAML of some group, changed in its values, its text or its bytes."""
    group = draw.choice(("dataset", "model", "method", "metrics", "experiment"))
    names = CHEAP.get(group) or sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    text = (CONF / group / f"{draw.choice(names)}.yaml").read_text()
    match draw.randrange(8):
        case 0 | 1:
            return group, mutated(draw, text).encode()
        case 2:
            content = bytearray(text.encode())
            for _ in range(draw.randint(1, 4)):
                content[draw.randrange(len(content))] = draw.randrange(256)
            return group, bytes(content)
        case 3:
            cut = text[: draw.randrange(80)].encode()
            return group, draw.choice((b"", draw.randbytes(20), str(junk(draw)).encode(), cut))
        case _:
            head = "# @package _global_\n" if group == "experiment" and draw.random() < 0.9 else ""
            return group, (head + changed(draw, text)).encode()


def compose(case: tuple[str, bytes]) -> None:
    """Choose the YAML in the folder that is searched."""
    group, content = case
    path = Path("conf") / group / "odd.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    chosen = [f"{key}={value}" for key, value in BASE.items() if key != group]
    more = ["+experiment=odd", "dry=true"] if group == "experiment" else [f"{group}=odd"]
    run(["hydra.searchpath=[conf]", *chosen[:4], *more])


@pytest.mark.parametrize("number", [15, *MANY])
def test_any_command_line_is_answered(number: int, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", fuzz(command, run, number))


@pytest.mark.parametrize("number", [15, *MANY])
def test_any_yaml_is_answered(number: int, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", fuzz(choice, compose, number))
