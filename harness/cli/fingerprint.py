"""A hash of all that stored answers depend on, and of nothing else."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.cli import plugins
from harness.cli.process import PACKAGE
from harness.core.packages import brought, digest_of, version
from harness.data.csv_settings import without_place
from harness.execution import satisfied
from harness.execution.task import Task

# Folders and files of the repository that answers depend on: the methods, and the harness's part in asking.
SOURCES = (
    "harness/core", "harness/solvers", "harness/data", "harness/models", "harness/certificate",
    "harness/execution/worker.py", "harness/execution/contract.py", "methods",
)  # fmt: skip
# Of the repository, what judges and scores stored answers.
SCORING = (
    "metrics", "harness/evaluation/checker.py", "harness/evaluation/covers.py", "harness/evaluation/scoring.py",
    "harness/evaluation/regions.py", "harness/evaluation/region_box.py", "harness/evaluation/region_network.py",
    "harness/evaluation/region_trees.py", "harness/evaluation/weights.py",
)  # fmt: skip
# Libraries that train models, solve programs, or are wrapped as methods: another version may answer otherwise.
LIBRARIES = (
    "numpy", "scipy", "pandas", "numba", "scikit-learn", "lightgbm", "catboost", "onnx", "onnxruntime", "optbinning",
    "torch", "highspy", "ortools", "pyscipopt", "dice-ml", "carla-recourse", "nicex", "cfnow", "treecf",
)  # fmt: skip
SETTINGS = (
    "dataset", "model", "method", "split", "features", "n_counterfactuals", "seed", "model_seed", "time_limit",
    "fit_time_limit", "memory_limit", "threads", "first_use", "reference",
)  # fmt: skip


def fingerprint_of(plain: Mapping[str, Any], task: Task, method: Any) -> str:
    """The hash of a run, 64 hexadecimal digits, from its settings in full, its task and its method."""
    asked = {key: plain[key] for key in SETTINGS}
    if (wrapped := task.classifier.wrapped) is not None:  # wherever the file lies
        asked["model"] = {**asked["model"], "path": wrapped.sha256}
    asked["dataset"] = without_place(asked["dataset"])
    if plain["group"]:
        asked |= {key: plain[key] for key in ("group", "group_time_limit")}
    if plain["satisfied"] == satisfied.ASK and task.content(task.factuals).any():  # else it is the same run
        asked["satisfied"] = digest_of(Path(satisfied.__file__)).hex()
    asked["factuals"] = [str(index) for index in task.factuals.index]
    asked["rows"] = hashlib.sha256(task.factuals.to_csv().encode()).hexdigest()
    asked["targets"] = [repr(task.targets[index]) for index in task.factuals.index]
    asked["data"] = task.dataset.sha256
    if task.dataset.space.priced:  # some are of a file
        asked["costs"] = [repr(feature.price) for feature in task.dataset.space.features]
    asked["libraries"] = {name: version(name) for name in LIBRARIES}
    asked["libraries"]["xgboost"] = version("xgboost-cpu") or version("xgboost")  # one package under two names
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
    digest.update(sources_of(PACKAGE.parent))
    digest.update(_plugged(sys.modules[type(method).__module__].__file__ or ""))
    for path in getattr(method, "files", ()):
        digest.update(Path(path).read_bytes())
        digest.update(_plugged(str(path)))
    return digest.hexdigest()


@functools.cache
def sources_of(root: Path, names: tuple[str, ...] = SOURCES) -> bytes:
    """A hash of some folders and files below a folder.

    Raises
    ------
    FileNotFoundError
        For one that does not exist.
    """
    return digest_of(*(root / name for name in names))


def scoring_code(metrics: Iterable[str]) -> str:
    """A hash of the code that scores depend on, 16 hexadecimal digits: ours, and modules of others' metrics.

    Parameters
    ----------
    metrics
        Their dotted names; those whose modules are not imported are left out.
    """
    digest = hashlib.sha256(sources_of(PACKAGE.parent, SCORING))
    modules = sorted({re.split(r"[.:]\w+$", path)[0] for path in metrics} & {*sys.modules})
    for module in modules:
        digest.update(_plugged(sys.modules[module].__file__ or ""))
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=8)
def _plugged(module: str) -> bytes:
    """A hash of the files that a method of a plug-in is made of, and of the libraries' versions that these import; of
    nothing for our own."""
    digest = hashlib.sha256()
    if any(Path(module).is_relative_to(PACKAGE.parent / name) for name in plugins.OURS):
        return digest.digest()
    files = plugins.sources(Path(module))
    for path in files:
        digest.update(path.read_bytes())
    digest.update(json.dumps(brought(plugins.libraries(files)), sort_keys=True).encode())
    return digest.digest()
