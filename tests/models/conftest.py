"""What tests of model files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest
from skops import io


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    def save(model: Any, name: str = "model.skops") -> Path:
        (io if name.endswith(".skops") else joblib).dump(model, tmp_path / name)
        return tmp_path / name

    return save
