"""The floors of the house: which file may import which, which may know a large library, and how long code may be."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for folder in ("harness", "methods", "metrics")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
FLOORS = (  # folders and files of harness, the lowest first: each may know those of lower floors
    ("core",),
    ("data", "solvers"),
    ("models", "certificate"),
    ("store",),
    ("execution", "evaluation"),
    ("reports",),
    ("check.py",),
    ("library.py", "papers"),
    ("cli", "report.py", "figures.py", "tables.py", "site.py"),
    ("__main__.py", "explain.py", "archive.py"),
)
FEWER = {  # folders of harness that may know only these of the lower floors
    "models": ("core", "data"),
    "certificate": ("core", "solvers"),
    "store": ("core", "data", "models"),
    "execution": ("core", "data", "models", "store"),
}
SHARED = {  # what methods share, and what it may know
    "methods/estimators": {"harness/core", "harness/models"},
    "methods/cells": {"harness/core", "harness/solvers", "methods/estimators"},
    "methods/milp": {"harness/core", "harness/solvers", "methods/estimators"},
    "methods/hull_search": {"harness/core", "harness/solvers", "methods/estimators", "methods/milp"},
    "methods/wrapping.py": {"harness/core"},
    "methods/delta.py": {"harness/core", "harness/models", "harness/certificate"},
    "methods/descent.py": {"harness/core", "methods/estimators"},
}
METHOD = {"harness/core", "harness/solvers", "harness/models", "harness/certificate", *SHARED}
WARMING = "methods/warming.py"  # asks every method that has kernels
METRIC = {"harness/core", "harness/certificate"}
TOP = {  # files and folders in the repository, but for hidden ones
    "pyproject.toml", "uv.lock", "harness", "methods", "metrics", "conf", "results", "tests", "docs", "README.md",
    "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "Dockerfile",
}  # fmt: skip
COMMANDS = {"__init__", "__main__", "archive", "check", "tables", "figures", "explain", "report", "site", "library"}
LATE = {  # files that import modules of ours inside functions, and why
    "harness/explain.py": {"harness.cli.explained", "harness.reports.person"},
    "harness/cli/main.py": {"harness.cli.job"},  # --help and wrong input need none of the libraries of a job
    # Nor those of settings, archives, tables and MLflow.
    "harness/cli/sweep.py": {
        "harness.cli.ending",
        "harness.cli.settings",
        "harness.store.archive",
        "harness.store.mlflow",
    },
    "harness/evaluation/checker.py": {"harness.evaluation.regions"},  # scipy.optimize, and few methods give regions
    "methods/carla/compat.py": {"methods.carla.eager"},  # torch, which is optional
    "methods/robust/method.py": {
        "methods.robust.adversarial",
        "methods.robust.cells",
        "methods.robust.hull",
        "methods.robust.leaf",
        "methods.robust.linear",
        "methods.robust.network",
    },  # numba and Pyomo: a method uses one
    # Numba, which only workers need, and kernels that trees need for hulls alone.
    "methods/ce_ocl/method.py": {"methods.ce_ocl.explainer"},
    "methods/ce_ocl/explainer.py": {"methods.ce_ocl.program_engine"},
}
LIBRARIES = {  # which files may know a large library
    "hydra": "harness/cli/*",
    "omegaconf": "harness/cli/*",
    "mlflow": "harness/store/mlflow.py",
    "pyarrow": "harness/store/*",
    "highspy": "harness/solvers/*",
    "pyomo": "harness/solvers/*",
    "dice_ml": "methods/dice/method.py",
    "nice": "methods/peers/nice.py",
    "cfnow": "methods/peers/cfnow.py",
    "treecf": "methods/peers/treecf.py",
}
MOST_LATE, MOST_FILE, MOST_FUNCTION = 28, 500, 60  # import statements; lines; lines
MOST_ARGUMENTS, MOST_ATTRIBUTES = 8, 15  # of functions, without self; of classes, without inherited
WIDE = {  # classes and functions that have more, and why
    "harness/core/metric.py:metric": "keywords by which a user declares a metric, all but two with a default",
}
READERS = "methods/estimators/"  # turn what estimators have learnt into arrays, for all methods
LEARNT = {"coef_", "intercept_", "coefs_", "intercepts_", "tree_", "estimators_"}
OWN_READERS = {  # other files of methods that touch what estimators have learnt, and why
    "methods/carla/adapter.py": "exchanges the classes of scikit-learn's tree, which the library takes",
    "methods/carla/feature_tweak.py": "hands scikit-learn's trees to the library",
    "methods/carla/focus.py": "hands scikit-learn's trees to the library",
    "methods/delta.py": "writes other weights into a copy",
    "methods/md_pso/guide.py": "asks the members of a vote to predict",
    "methods/peers/treecf.py": "hands a tree to the library as a forest of one",
}
TOLERANCES = "harness/core/tolerances.py"
SMALL = 1e-5
NO_TOLERANCES = {  # files with other numbers as small as ``SMALL``, and what these are
    "harness/core/objective.py": "a share of the variance, which keeps a matrix regular",
    "harness/data/csv_columns.py": "the smallest number that a file may hold",
    "harness/data/encoded.py": "a chance",
    "harness/models/published.py": "a gap between thresholds of published trees",
    "harness/models/runtime/onnx_operators.py": "a default of ONNX",
    "harness/models/scorecard.py": "a parameter of scikit-learn's",
    "methods/carla/eager.py": "a parameter of Adam",
    "methods/descent.py": "a parameter of Adam",
    "methods/foreign/ocean/ocean_cp.py": "runs in an environment that knows no harness",
    "methods/scorecard/moves.py": "a share of the variance, which keeps a matrix regular",
}

Sources = Mapping[str, str]  # by path


class Import(NamedTuple):
    """One imported name."""

    name: str  # dotted, with the name that is imported from the module
    line: int
    late: bool  # inside a function
    reason: str  # comment of its statement, without what tools read


@cache
def imports(source: str) -> tuple[Import, ...]:
    """Every import of a file: at its top, under ``if TYPE_CHECKING`` and inside functions."""
    tree, lines = ast.parse(source), source.splitlines()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = {child for function in functions for child in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        comments = re.findall(r"#([^#]*)", "\n".join(lines[node.lineno - 1 : node.end_lineno]))
        reason = " ".join(text.strip() for text in comments if not re.match(r"\s*(type:|noqa)", text))
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"imports are absolute: {ast.unparse(node)}"
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        found += [Import(prefix + alias.name, node.lineno, node in late, reason) for alias in node.names]
    return tuple(found)


def modules(sources: Sources) -> dict[str, str]:
    """Path by dotted name; a package's is that of its ``__init__``."""
    return {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources}


def arrows(sources: Sources) -> dict[str, set[str]]:
    """For each file, those of ours that it imports."""
    known = modules(sources)
    found: dict[str, set[str]] = {}
    for path, source in sources.items():
        named = (_file(imported.name, known) for imported in imports(source))
        found[path] = {other for other in named if other not in (None, path)}  # type: ignore[misc]
    return found


def _file(name: str, known: Mapping[str, str]) -> str | None:
    """The file of the longest part of a dotted name that is a module."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name)


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of a graph, from a node back to itself; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as fault:
        return fault.args[1]
    return []


def room(path: str) -> str:
    """The folder or file that the table speaks of: ``harness/core``, ``methods/dice.py``, ``metrics``."""
    parts = path.split("/")
    return parts[0] if parts[0] == "metrics" else "/".join(parts[:2])


def knows(name: str) -> set[str]:
    """The rooms that a room may import from; its own is always allowed."""
    top, _, part = name.partition("/")
    if part == "__init__.py":
        return set()
    if top == "metrics":
        return METRIC
    if name == WARMING:
        return METHOD | {room(path) for path in SOURCES if path.startswith("methods/")} - {WARMING}
    if top == "methods":
        return SHARED.get(name, METHOD)
    floor = next((floor for floor, parts in enumerate(FLOORS) if part in parts), 0)
    below = [other for parts in FLOORS[:floor] for other in parts]
    return {f"harness/{other}" for other in FEWER.get(part, below)}


def forbidden(sources: Sources) -> set[tuple[str, str]]:
    """Pairs of a file and one that it imports, although its room may not know the other's."""
    return {
        (path, other)
        for path, others in arrows(sources).items()
        for other in others
        if room(other) not in {room(path), *knows(room(path))}
    }


def strangers(sources: Sources) -> set[str]:
    """Files of harness that are on no floor."""
    rooms = {f"harness/{part}" for parts in FLOORS for part in parts} | {"harness/__init__.py"}
    return {path for path in sources if path.startswith("harness/") and room(path) not in rooms}


def late(sources: Sources) -> set[tuple[str, int]]:
    """Path and line of the import statements inside functions."""
    return {(path, found.line) for path, source in sources.items() for found in imports(source) if found.late}


def late_without_reason(sources: Sources) -> set[tuple[str, int]]:
    """Those of them that have no comment."""
    reasons = {(path, i.line): i.reason for path, source in sources.items() for i in imports(source)}
    return {place for place in late(sources) if not reasons[place]}


def late_own(sources: Sources) -> dict[str, set[str]]:
    """The modules of ours that files import inside functions."""
    known = modules(sources)
    names = {path: name for name, path in known.items()}
    found: dict[str, set[str]] = {}
    for path, source in sources.items():
        files = {_file(imported.name, known) for imported in imports(source) if imported.late}
        if own := {names[file] for file in files if file is not None}:
            found[path] = own
    return found


def users(library: str, sources: Sources) -> set[str]:
    """The files that import a library or a part of it."""
    return {
        path
        for path, source in sources.items()
        if any(found.name == library or found.name.startswith(f"{library}.") for found in imports(source))
    }


def kernel(function: ast.FunctionDef) -> bool:
    """Whether numba compiles a function."""
    return any(re.search("njit|vectorize", ast.unparse(decorator)) for decorator in function.decorator_list)


def functions(source: str) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))


def long_files(sources: Sources) -> dict[str, int]:
    """Lines of files without kernels that have too many."""
    lengths = {path: len(source.splitlines()) for path, source in sources.items()}
    return {
        path: length
        for path, length in lengths.items()
        if length > MOST_FILE and not any(map(kernel, functions(sources[path])))
    }


def long_functions(sources: Sources) -> dict[str, int]:
    """Lines of functions that are no kernels and have too many, from the first decorator to the end."""
    found = {}
    for path, source in sources.items():
        for function in functions(source):
            start = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            length = (function.end_lineno or start) - start + 1
            if length > MOST_FUNCTION and not kernel(function):
                found[f"{path}:{function.name}"] = length
    return found


def wide_functions(sources: Sources) -> dict[str, int]:
    """Arguments of functions that have too many; ``self``, ``*args`` and ``**kwargs`` are none."""
    found = {}
    for path, source in sources.items():
        for function in functions(source):
            given = function.args
            names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > MOST_ARGUMENTS:
                found[f"{path}:{function.name}"] = count
    return found


def wide_classes(sources: Sources) -> dict[str, int]:
    """Attributes of classes that have too many: fields, and what methods assign to ``self``."""
    found = {}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ClassDef):
                continue
            fields = (line.target for line in node.body if isinstance(line, ast.AnnAssign))
            names = {field.id for field in fields if isinstance(field, ast.Name)}
            names |= {
                part.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
                if isinstance(part.value, ast.Name) and part.value.id == "self"
            }
            if len(names) > MOST_ATTRIBUTES:
                found[f"{path}:{node.name}"] = len(names)
    return found


# --- the house ------------------------------------------------------------------------------------------------------


def test_no_file_imports_upward() -> None:
    assert forbidden(SOURCES) == set()


def test_no_imports_go_in_a_circle() -> None:
    assert circle(arrows(SOURCES)) == []


def test_every_file_is_on_a_floor() -> None:
    assert strangers(SOURCES) == set()


def test_the_root_holds_commands_alone() -> None:
    assert {path.stem for path in (ROOT / "harness").glob("*.py")} == COMMANDS


def test_the_top_level_is_known() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    if not listed:
        pytest.skip("what is committed is known to git alone")
    assert {name for line in listed if not (name := line.split("/")[0]).startswith(".")} == TOP


def test_few_imports_are_inside_functions() -> None:
    places = late(SOURCES)
    assert len(places) <= MOST_LATE, sorted(places)


def test_an_import_inside_a_function_has_its_reason() -> None:
    assert late_without_reason(SOURCES) == set()


def test_own_modules_are_imported_at_the_top() -> None:
    """But where the command line must start fast."""
    assert late_own(SOURCES) == LATE


@pytest.mark.parametrize("library", LIBRARIES)
def test_few_files_know_a_large_library(library: str) -> None:
    found = users(library, SOURCES)
    assert found, f"nothing imports {library}"
    assert {path for path in found if not fnmatch(path, LIBRARIES[library])} == set()


def test_no_file_is_long() -> None:
    assert long_files(SOURCES) == {}


def test_no_function_is_long() -> None:
    assert long_functions(SOURCES) == {}


def test_few_are_wide() -> None:
    """Arguments and attributes that belong together are records; those named above have their reasons."""
    assert {**wide_functions(SOURCES), **wide_classes(SOURCES)}.keys() == WIDE.keys()


def clocked(sources: Sources) -> set[tuple[str, int]]:
    """Where metrics read a clock, or give something so many seconds: their numbers would hang on the machine."""
    found = set()
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)) if path.startswith("metrics/") else ():
            if isinstance(node, ast.Name | ast.Attribute | ast.alias | ast.keyword):
                name = next(getattr(node, key) for key in ("id", "attr", "name", "arg") if hasattr(node, key)) or ""
                if CLOCKS & set(name.lower().split(".")):
                    found.add((path, node.lineno))
            if isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
                found.add((path, node.lineno))
    return found


def learnt_readers(sources: Sources) -> set[str]:
    """Files of methods outside ``READERS`` that name weights, trees or members of fitted estimators."""
    return {
        path
        for path, source in sources.items()
        if path.startswith("methods/") and not path.startswith(READERS)
        if any(isinstance(node, ast.Attribute) and node.attr in LEARNT for node in ast.walk(ast.parse(source)))
    }


def small_numbers(sources: Sources) -> set[tuple[str, int]]:
    """Where a tolerance is written, and not taken from ``TOLERANCES``."""
    found = set()
    for path in sorted(sources.keys() - NO_TOLERANCES.keys() - {TOLERANCES}):
        for node in ast.walk(ast.parse(sources[path])):
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= SMALL:
                found.add((path, node.lineno))
    return found


def test_tolerances_lie_in_one_file_and_are_used() -> None:
    assert small_numbers(SOURCES) == set()
    names = re.findall(r"^([A-Z_]+) = ", SOURCES[TOLERANCES], re.MULTILINE)
    users = [source for path, source in SOURCES.items() if path != TOLERANCES]
    assert [name for name in names if not any(re.search(rf"\b{name}\b", source) for source in users)] == []


def test_estimators_are_read_in_one_place() -> None:
    assert learnt_readers(SOURCES) == OWN_READERS.keys()


def test_no_metric_has_a_clock() -> None:
    assert clocked(SOURCES) == set()


def test_the_table_has_no_circle() -> None:
    """What each room may know makes an order of rooms."""
    rooms = {room(path) for path in SOURCES}
    assert circle({name: knows(name) for name in rooms}) == []


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--cfg", "job"), ("model=lrr",)], ids=" ".join)
def test_the_command_line_starts_light(arguments: tuple[str, ...]) -> None:
    """Help and wrong input need none of the large libraries, so none is loaded."""
    heavy = (
        "pandas", "sklearn", "mlflow", "torch", "pyomo", "matplotlib", "numpy", "dice_ml", "highspy", "scipy", "numba",
    )  # fmt: skip
    start = "try: main()\nexcept SystemExit: pass" if arguments else "pass"
    loaded = f"print('loaded', *(name for name in {heavy} if name in sys.modules))"
    code = f"import sys\nfrom harness.__main__ import main\n{start}\n{loaded}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_a_worker_starts_light() -> None:
    """With numpy and pandas alone: what else a method or a model needs is loaded, and charged, with it."""
    heavy = ("scipy", "sklearn", "numba", "pyomo", "highspy", "torch", "hydra", "mlflow", "matplotlib")
    code = f"import sys, harness.execution.worker\nprint(*(name for name in {heavy} if name in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- the rules themselves, on a house that keeps them and on houses that break one each -----------------------------

SOUND = {
    "harness/__init__.py": "",
    "harness/core/__init__.py": "",
    "harness/core/space.py": "import numpy",
    "harness/core/problem.py": "from harness.core.space import Space",
    "harness/data/__init__.py": "from harness.data.load import load_dataset",
    "harness/data/load.py": "from harness.core import problem\nfrom harness.core.space import Space",
    "harness/solvers/program.py": "from highspy import Highs\nfrom harness.core.problem import Problem",
    "harness/certificate/__init__.py": "from harness.solvers import program",
    "harness/cli/main.py": "def main():\n    from harness.cli import job  # slow: 0.4 s\n    job.run()",
    "harness/cli/job.py": "from harness.data import load_dataset",
    "methods/milp/hull.py": "from harness.solvers import program",
    "methods/mine/method.py": "from methods.milp.hull import Hull\nfrom harness.certificate import Ball",
    "methods/dice.py": "import harness.core.problem",
    "metrics/distance.py": "from harness.core.problem import Problem\nfrom metrics import once",
    "metrics/once.py": "",
}
KERNEL = "@njit(cache=True)\ndef walk(a, b, c, d, e, f, g, h, i):\n" + "    x = 1\n" * 600
UPWARD = {
    "upward": ("harness/core/space.py", "import harness.cli.job"),
    "upward for an annotation": ("harness/core/space.py", "if TYPE_CHECKING:\n    from harness.data import load"),
    "upward in a function": (
        "harness/core/space.py",
        "def f():\n    from harness.data.load import load_dataset  # why",
    ),
    "same floor": ("harness/data/load.py", "from harness.solvers.program import Program"),
    "known to few": ("harness/execution/pool.py", "from harness.solvers import program"),
    "another method": ("methods/dice.py", "from methods.mine.method import Mine"),
    "a method below": ("methods/milp/hull.py", "from methods.mine import method"),
    "cells and milp": ("methods/milp/hull.py", "import methods.cells.grid"),
    "method and data": ("methods/dice.py", "from harness.data import load_dataset"),
    "metric and data": ("metrics/distance.py", "from harness.data import load_dataset"),
    "harness and method": ("harness/cli/job.py", "from methods.dice import Dice"),
}


def with_file(path: str, source: str) -> dict[str, str]:
    """The sound house with one file more, or another."""
    return {"methods/cells/grid.py": "", **SOUND, path: source}


def test_a_sound_house_keeps_every_rule() -> None:
    assert arrows(SOUND)["harness/data/load.py"] == {"harness/core/problem.py", "harness/core/space.py"}
    assert arrows(SOUND)["harness/cli/job.py"] == {"harness/data/__init__.py"}
    assert forbidden(SOUND) == strangers(SOUND) == late_without_reason(SOUND) == set()
    assert long_files(SOUND) == long_functions(SOUND) == wide_functions(SOUND) == wide_classes(SOUND) == {}
    assert circle(arrows({**SOUND, "harness/data/__init__.py": ""})) == []
    assert late(SOUND) == {("harness/cli/main.py", 2)}
    assert late_own(SOUND) == {"harness/cli/main.py": {"harness.cli.job"}}


@pytest.mark.parametrize("case", UPWARD)
def test_an_arrow_that_is_not_allowed_is_found(case: str) -> None:
    path, source = UPWARD[case]
    assert {file for file, _ in forbidden(with_file(path, source))} == {path}


@pytest.mark.parametrize("place", ["", "if TYPE_CHECKING:\n    ", "def f():\n    "], ids=["top", "annotation", "late"])
def test_a_circle_is_found(place: str) -> None:
    """Of two files, and of three."""
    two = with_file("harness/core/space.py", f"{place}from harness.core.problem import Problem")
    assert set(circle(arrows(two))) == {"harness/core/space.py", "harness/core/problem.py"}
    three = {
        "harness/core/a.py": "import harness.core.b",
        "harness/core/b.py": "import harness.core.c",
        "harness/core/c.py": f"{place}import harness.core.a",
    }
    assert len(set(circle(arrows(three)))) == 3


CLOCKS = {"time", "datetime", "deadline", "seconds", "monotonic", "perf_counter", "process_time", "until"}

BREACHES: dict[str, tuple[Callable[[Sources], Any], str, str]] = {
    "no floor": (strangers, "harness/attic/old.py", ""),
    "file at the root": (strangers, "harness/answers.py", ""),
    "no reason": (late_without_reason, "methods/dice.py", "def f():\n    import torch"),
    "a tool's comment": (late_without_reason, "methods/dice.py", "def f():\n    import torch  # type: ignore[x]"),
    "long file": (long_files, "methods/dice.py", "x = 1\n" * 501),
    "long function": (long_functions, "methods/dice.py", "def f():\n" + "    x = 1\n" * 60),
    "long by its decorators": (long_functions, "methods/dice.py", "@cache\ndef f():\n" + "    x = 1\n" * 59),
    "nine arguments": (wide_functions, "methods/dice.py", "def f(a, b, /, c, d, e, f, *, g, h, i): pass"),
    "nine beside self": (
        wide_functions,
        "methods/dice.py",
        "class A:\n    def f(self, a, b, c, d, e, f, g, h, i): pass",
    ),
    "nine of a kernel": (wide_functions, "methods/kernels.py", KERNEL),
    "sixteen fields": (wide_classes, "methods/dice.py", "class A:\n" + "".join(f"    x{i}: int\n" for i in range(16))),
    "sixteen attributes": (
        wide_classes,
        "methods/dice.py",
        "class A:\n    x: int\n    def f(self):\n        self.x, self.y = 1, 2\n"
        + "".join(f"        self.x{i} = {i}\n" for i in range(14)),
    ),
    "a metric's clock": (clocked, "metrics/slow.py", "import time"),
    "a metric's moment": (clocked, "metrics/slow.py", "from time import monotonic as now"),
    "a metric's limit": (clocked, "metrics/slow.py", "def f(a):\n    return a.certify(\n        1, seconds=3.0)"),
    "a tolerance": (small_numbers, "methods/dice.py", "def f(a):\n    return a > -1e-7"),
    "a reader of its own": (learnt_readers, "methods/dice.py", "def f(a):\n    return a.coefs_[0]"),
    "long beside a kernel": (long_functions, "methods/dice.py", f"{KERNEL}\ndef f():\n" + "    x = 1\n" * 60),
}


@pytest.mark.parametrize("case", BREACHES)
def test_a_breach_is_found(case: str) -> None:
    rule, path, source = BREACHES[case]
    assert len(rule(with_file(path, source))) == 1


def test_kernels_may_be_long() -> None:
    sources = {"methods/kernels.py": KERNEL}
    assert long_files(sources) == long_functions(sources) == {}


def test_as_many_as_are_allowed_are_not_wide() -> None:
    """Eight arguments beside ``self``, and fifteen attributes, of which one is assigned twice."""
    attributes = "".join(f"        self.x{i} = {i}\n" for i in range(15))
    source = f"class A:\n    x0: int\n    def f(self, a, b, c, d, e, f, g, h, *more):\n{attributes}"
    assert wide_functions({"methods/dice.py": source}) == wide_classes({"methods/dice.py": source}) == {}


def test_late_imports_of_every_depth_are_found() -> None:
    source = "class A:\n    def f(self):\n        if True:\n            from harness.core import space  # why\n"
    assert late(with_file("methods/dice.py", source)) == {("harness/cli/main.py", 2), ("methods/dice.py", 4)}
    assert late_own(with_file("methods/dice.py", source))["methods/dice.py"] == {"harness.core.space"}


def test_users_of_a_library_are_found() -> None:
    """By its name and by its parts, and not by names that begin alike."""
    sources = {"a.py": "import nice", "b.py": "from nice.explain import NICE", "c.py": "from nicer import NICE"}
    assert users("nice", sources) == {"a.py", "b.py"}


def test_relative_imports_are_not_taken() -> None:
    with pytest.raises(AssertionError, match="imports are absolute"):
        imports("from . import space")
