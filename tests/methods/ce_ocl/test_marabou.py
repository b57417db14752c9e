"""Optima of networks, by Marabou: nothing valid is a thousandth nearer, and something is within a thousandth more.

Marabou is in an environment of its own, which uv makes.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.engines import question_of

from harness.core.explanation import Status
from harness.core.inputs import Affine
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability
from methods.ce_ocl import CeOcl
from methods.estimators.network import dense_layers
from methods.estimators.raw_target import raw_interval

SCRIPT = Path(__file__).parents[2] / "support" / "marabou.py"
PACKAGES = "maraboupy==2.0.0", "numpy<2"
SLACK, SECONDS = 0.001, 120
pytestmark = pytest.mark.slow


def asked(problem: Problem, factual: pd.DataFrame, radius: float) -> dict[str, Any]:
    """A question as the script takes it; categories stay, as one that changes costs a whole unit."""
    inputs, space, limits = problem.classifier.inputs, problem.space, raw_interval(problem)
    free = [
        isinstance(source, Affine)
        and space[source.feature].numeric
        and space[source.feature].actionability is not Actionability.IMMUTABLE
        for source in inputs
    ]
    units = [
        space[s.feature].range / s.unit if f and isinstance(s, Affine) else 0.0
        for s, f in zip(inputs, free, strict=True)
    ]
    return {
        "base": problem.classifier.matrix(factual)[0].tolist(),
        "unit": [float(unit) for unit in units],
        "layers": [(w.tolist(), b.tolist()) for w, b in dense_layers(problem.classifier.estimator)],
        "low": limits.low if math.isfinite(limits.low) else None,
        "high": limits.high if math.isfinite(limits.high) else None,
        "radius": radius,
    }


@pytest.mark.parametrize("model", ["robust_mlp_10", "robust_mlp_10_10_10", "robust_mlp_50"])
@pytest.mark.parametrize("dataset", ["banknote", "ionosphere"])
def test_marabou_finds_nothing_nearer(dataset: str, model: str, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv, which makes Marabou's environment, is not installed")
    task, questions = question_of(dataset, model, 8, unbounded=True), []
    for place in range(len(task.factuals)):
        factual = task.factuals.iloc[[place]]
        problem = next(each for each in task.problems.values() if not each.valid(factual)[0])
        explainer = CeOcl("l1", 0.0).fit(problem)
        answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60.0)).answers[0]
        assert answer.status is Status.OPTIMAL
        if (value := answer.objective or math.inf) < 1.0:
            questions += [asked(problem, factual, factor * value) for factor in (1.0 - SLACK, 1.0 + SLACK)]
    assert len(questions) >= 4
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(questions))
    made = [part for package in PACKAGES for part in ("--with", package)]
    python = [uv, "run", "--quiet", "--no-project", "--python", "3.11", *made, "python"]
    there = subprocess.run([*python, "-c", "import maraboupy"], capture_output=True, text=True, check=False)
    if there.returncode:
        pytest.skip(f"Marabou cannot be installed here: {there.stderr.splitlines()[-1][:200]}")
    done = subprocess.run([*python, SCRIPT, path, str(SECONDS)], capture_output=True, text=True, check=False)
    said = [line.split()[0] for line in done.stdout.splitlines()]
    assert said == ["unsat", "sat"] * (len(questions) // 2), done.stderr
