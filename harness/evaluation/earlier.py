"""Settings that runs of earlier versions lack, as they were then: so that what is asked again is known as the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.tolerances import MARGIN

LATER = {"split.time": None}
DESCENT = {"steps": 100, "rate": 0.02, "rounds": 10, "last": False}
METHODS: Mapping[str, Mapping[str, Any]] = {  # by class, or the name of what is asked in an environment of its own
    "methods.adversarial_recourse.AdversarialRecourse": {**DESCENT, "ascents": 10},
    "methods.ce_ocl.CeOcl": {"delta": 0.0, "likelihood": 0.0},
    "methods.nearest.Nearest": {"delta": 0.0},
    "methods.probe.Probe": DESCENT,
    "methods.roar.Roar": DESCENT,
    "methods.robust.Robust": {
        "algorithm": "auto", "alpha": 0.0, "clip": False, "epsilon": 0.0, "hull": "none", "hull_norm": 1,
        "hull_points": "labelled", "margin": MARGIN, "max_changes": None, "unperturbed": [],
    },
    "methods.scorecard.Scorecard": {"priorities": None},
    "pertcf": {"deterministic": True},
    "reachml": {"settings.most": 2_000_000},
}  # fmt: skip


def earlier(config: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted name, what the settings of a run are where they do not say so."""
    method = config.get("method") or {}
    own = {**METHODS.get(method.get("_target_", ""), {}), **METHODS.get(method.get("name", ""), {})}
    return {**LATER, **{f"method.{name}": value for name, value in own.items()}}
