"""The machine and the versions that a run is noted with."""

from __future__ import annotations

import functools
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

from harness.core.packages import commit, extras, installed, version

PACKAGES = (
    "ce-harness", "numpy", "pandas", "scikit-learn", "pyomo", "highspy", "dice-ml", "carla-recourse", "optbinning",
    "torch", "numba",
)  # fmt: skip


def environment(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to judge a timing and to repeat a run."""
    return {**machine(), "threads": plain["threads"], "jobs": plain["jobs"], "load": psutil.getloadavg()[0]}


@functools.cache
def machine() -> dict[str, Any]:
    """Python, the processor, memory, versions of ``PACKAGES`` and of what extras bring, and in a clone its commit."""
    brought = dict(installed(name) for names in extras().values() for name in names)
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "packages": {package: version(package) for package in PACKAGES} | {name: v for name, v in brought.items() if v},
        "commit": commit(),
    }


def _cpu() -> str:
    """The processor's name; where the system has none, one that no other machine shares."""
    with suppress(OSError, KeyError):
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        told = {name.strip(): value.strip() for name, _, value in lines}
        arm = f"ARM {told['CPU implementer']} {told['CPU part']}" if "CPU part" in told else None
        if (found := told.get("model name") or arm) is not None:
            return found
    with suppress(OSError, subprocess.SubprocessError):
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    return f"{platform.processor() or platform.machine()} of host {sha256(platform.node().encode()).hexdigest()[:8]}"
