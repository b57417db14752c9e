"""The machine and the versions that a run is noted with."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def environment(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to judge a timing and to repeat a run."""
    import psutil

    return {**_machine(), "threads": plain["threads"], "jobs": plain["jobs"], "load": psutil.getloadavg()[0]}


@functools.cache
def _machine() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    import psutil

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = (
        "ce-harness",
        "numpy",
        "pandas",
        "scikit-learn",
        "pyomo",
        "highspy",
        "dice-ml",
        "carla-recourse",
        "optbinning",
        "torch",
        "numba",
    )
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "packages": {package: installed(package) for package in packages},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
