"""Metrics by name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from harness.core.errors import HarnessError, choices
from harness.core.metric import Metric


def metric_named(name: str | Metric) -> Metric:
    """A metric by its name, family/name, or the dotted path of its function.

    Raises
    ------
    HarnessError
        Where there is none, or several.
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        given = getattr(name, "__name__", repr(name))
        raise HarnessError(f"{given} is no metric; declare it with @metric of harness.core.metric, or name one as l1.")
    module, _, function = name.rpartition(".")
    if module:
        try:
            found = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as fault:
            raise HarnessError(f"there is no metric {name!r} ({fault}); name one such as l1.") from fault
        if not isinstance(found, Metric):
            raise HarnessError(f"{name} is no metric; declare it with @metric of harness.core.metric.")
        return found
    known, last = packaged(), name.rpartition("/")[2]
    fitting = [metric for full, metric in known.items() if name in {full, full.rpartition("/")[2]}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise HarnessError(f"there are several metrics {name!r}; say {', '.join(m.name for m in fitting)}.")
    raise HarnessError(f"there is no metric {name!r}; {choices(last, (full.rpartition('/')[2] for full in known))}.")


@cache
def packaged() -> dict[str, Metric]:
    """All metrics of this package, by name."""
    package = importlib.import_module("metrics")
    names = [f"metrics.{entry.name}" for entry in pkgutil.iter_modules(package.__path__) if entry.name[0] != "_"]
    values = (value for name in names for value in vars(importlib.import_module(name)).values())
    return {value.name: value for value in values if isinstance(value, Metric)}
