"""Checks of CE-OCL's parameters."""

from __future__ import annotations

from typing import Any

import pytest

from methods.ce_ocl import CeOcl


@pytest.mark.parametrize(
    "wrong",
    [
        {"distance": "l3"},
        {"alpha": -1.0},
        {"max_changes": 0},
        {"separation": 0.0},
        {"separation": 1.5},
        {"margin": 1e-9},
        {"count": "rows"},
        {"engine": "annealing"},
        {"hull": "soft"},
        {"hull_norm": 3},
        {"epsilon": []},
        {"epsilon": [0.2, 0.1]},
        {"epsilon": 0.1, "hull": "fallback"},
        {"penalty": 0.0},
        {"clusters": 0},
    ],
    ids=str,
)
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CeOcl(**wrong)
