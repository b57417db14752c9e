"""A hash of all that stored answers depend on."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import plugins
from harness.cli.process import PACKAGE

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness.execution.task import Task

# What answers depend on.
SOURCES = (
    "problem.py", "causality.py", "classifier.py", "pipeline.py", "models.py", "torch_mlp.py", "scorecard.py",
    "program.py", "worker.py", "data",
)  # fmt: skip


def fingerprint_of(plain: Mapping[str, Any], dataset: Dataset, question: Task, method: Any) -> str:
    """A hash of all that stored answers depend on, and of nothing else."""
    asked = {
        key: plain[key]
        for key in (
            "dataset",
            "model",
            "method",
            "split",
            "features",
            "n_counterfactuals",
            "seed",
            "time_limit",
            "fit_time_limit",
            "memory_limit",
            "threads",
        )
    }
    if (whole := question.classifier.whole) is not None:  # wherever the file lies
        asked["model"] = {**asked["model"], "path": whole.sha256}
    asked["reference"] = plain["reference"]
    if plain["group"]:
        asked |= {key: plain[key] for key in ("group", "group_time_limit")}
    asked["factuals"] = [str(index) for index in question.factuals.index]
    asked["rows"] = hashlib.sha256(question.factuals.to_csv().encode()).hexdigest()
    asked["targets"] = [repr(question.targets[index]) for index in question.factuals.index]
    asked["data"] = dataset.sha256
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
    digest.update(_source_digest(sys.modules[type(method).__module__].__file__ or ""))
    return digest.hexdigest()


@functools.lru_cache(maxsize=8)
def _source_digest(module: str) -> bytes:
    """A hash of the code that answers depend on: the methods, and the harness's part in asking."""
    digest = hashlib.sha256()
    folders = [PACKAGE / name for name in SOURCES] + [PACKAGE.parent / "methods"]
    for root in folders:
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root] if root.is_file() else []:
            digest.update(path.read_bytes())
    for path in plugins.sources(Path(module)):
        digest.update(path.read_bytes())
    return digest.digest()
