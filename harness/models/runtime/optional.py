"""Libraries that extras bring, imported where a model needs one."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from harness.core.errors import UnsupportedError
from harness.core.packages import install


def library(name: str, extra: str) -> Any:
    """A module by its dotted name.

    Raises
    ------
    UnsupportedError
        Where it is not installed; the sentence names the extra that brings it.
    """
    top = name.partition(".")[0]
    if importlib.util.find_spec(top) is None:
        raise UnsupportedError(f"{top} is not installed; run `{install(extra)}`")
    return importlib.import_module(name)
