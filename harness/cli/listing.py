"""What there is to choose from, one line each, and what a sweep would run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.core import packages
from harness.core.described import described, sentence
from harness.core.errors import HarnessError, choices

KINDS = {
    "datasets": "dataset", "models": "model", "methods": "method", "metrics": "metrics", "experiments": "experiment",
}  # fmt: skip


def listed(kind: str, folders: Sequence[Path]) -> str:
    """Every choice of a kind with its description, the first sentence of its file.

    Raises
    ------
    ValueError
        For a kind that does not exist.
    """
    if kind not in KINDS:
        raise HarnessError(f"there is no list of {kind!r}; {choices(kind, KINDS)}.")
    lines = dict(_metrics(folders) if kind == "metrics" else _choices(KINDS[kind], folders))
    width = max(map(len, lines), default=0)
    return "\n".join(f"{name:{width}}  {text}".rstrip() for name, text in sorted(lines.items()))


def _choices(group: str, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for path in _files(group, folders):
        yield path.stem, described(path)


def _files(group: str, folders: Sequence[Path]) -> list[Path]:
    """The YAMLs of a group; of two of one name, that which counts comes last."""
    return [path for folder in reversed(folders) for path in sorted((folder / group).glob("*.yaml"))]


def _metrics(folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The dotted name of each metric that ``metrics=all`` or a list of a plug-in names; nothing is imported."""
    paths = [path for folder in folders for path in sorted((folder / "metrics").glob("*.yaml"))]
    lists = [yaml.safe_load(path.read_text()) or {} for path in paths]
    names = dict.fromkeys(name for key in ("names", "priced") for found in lists for name in found.get(key, ()))
    for name in names:
        module, _, function = name.rpartition(".")
        yield name, _docstring(module, function)


def _docstring(module: str, function: str) -> str:
    package, _, last = module.rpartition(".")
    folder = packages.locate(package) if package else None
    path = None if folder is None else folder / f"{last}.py"
    if path is None or not path.is_file():
        return ""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return sentence((ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " "))
    return ""


def plan(jobs: Sequence[Mapping[str, str]], settings: Sequence[Mapping[str, Any]], folders: Sequence[Path]) -> str:
    """What a sweep would run: its tasks, its methods with a line each, and the most time that it may take.

    Parameters
    ----------
    jobs
        Of each run, ``dataset``, ``model``, ``method``, and whatever else the sweep varies.
    settings
        Of each run, ``factuals``, ``n_factuals``, ``time_limit``, ``fit_time_limit``, ``group``, ``group_time_limit``.

    Raises
    ------
    HarnessError
        For a data set, model or method that there is not.
    """
    for group in ("dataset", "model", "method"):
        known = sorted({path.stem for path in _files(group, folders)})
        for name in dict.fromkeys(job[group] for job in jobs):
            if name not in known:
                raise HarnessError(f"there is no {group} {name!r}; {choices(name, known)}.")
    tasks = dict.fromkeys((job["dataset"], job["model"]) for job in jobs)
    methods = dict.fromkeys(job["method"] for job in jobs)
    about = dict(_choices("method", folders))
    further = [key for key in jobs[0] if key not in {"dataset", "model", "method"}]
    varied = {key: dict.fromkeys(job[key] for job in jobs) for key in further}
    width = max(map(len, methods))
    lines = [f"{len(jobs)} runs: {len(tasks)} tasks x {len(methods)} methods"]
    lines[0] += "".join(f" x {key}={','.join(values)}" for key, values in varied.items() if len(values) > 1)
    lines += [f"  {dataset} / {model}" for dataset, model in tasks]
    lines += [f"  {name:{width}}  {about.get(name, '')}".rstrip() for name in methods]
    most = [_most(each) for each in settings]
    lines += dict.fromkeys(text for text, _ in most)
    total = duration(sum(seconds for _, seconds in most))
    lines.append(f"Together at most {total}, one run at a time; most end far sooner.")
    return "\n".join(lines)


def _most(settings: Mapping[str, Any]) -> tuple[str, float]:
    """The limits of a run in words, and the seconds that they add up to.

    How many groups a feature makes is known only once the data are read: as many as there are people, at most.
    """
    who = settings["factuals"]
    if isinstance(who, int | list):
        count = 1 if isinstance(who, int) else len(who)
    elif (file := Path(str(who)).expanduser()).is_file():
        count = max(len(file.read_text(errors="replace").splitlines()) - 1, 0)
    else:
        count = settings["n_factuals"]
    words, seconds, asked = f"{count} questions a run", float(settings["time_limit"]), count
    if settings["group"]:
        seconds, asked = float(settings["group_time_limit"]), 1 if settings["group"] is True else count
        words += ", which are one group" if settings["group"] is True else f" in groups by {settings['group']}"
    fit = float(settings["fit_time_limit"])
    return f"{words}; at most {seconds:g} s each and {fit:g} s to set up", asked * seconds + fit


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(45), duration(5400), duration(400000)
    ('45 s', '1.5 h', '4.6 days')
    """
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
