"""One module a paper: its ``TABLES`` and ``FIGURES`` by the name under which an experiment asks for them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any


@cache
def collected(kind: str) -> dict[str, Any]:
    """What the papers' modules list under ``TABLES`` or ``FIGURES``, merged."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return {name: entry for module in modules for name, entry in getattr(module, kind, {}).items()}
