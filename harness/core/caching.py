"""Where the harness keeps what it would otherwise make again: trained models, environments of methods."""

from __future__ import annotations

import os
from pathlib import Path

import pooch


def cache() -> Path:
    """The folder that ``CE_HARNESS_CACHE`` names, or that of the user's cache."""
    return Path(os.environ.get("CE_HARNESS_CACHE") or pooch.os_cache("ce-harness"))
