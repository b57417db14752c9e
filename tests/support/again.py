"""Microseconds of a question where one process asks many: ``python tests/support/again.py DATASET MODEL [ALPHA]``.

Prints how many people, each asked about once, one after another; the median of their ``explain``, without the check of
the answer, and the slowest; and how many answers are proven, as the closest in l1 plus ALPHA (0) times the changes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.engines import question_of

from harness.core.explanation import Status
from harness.core.method import Deadline
from methods.ce_ocl import CeOcl

PEOPLE = 300


def main(dataset: str, model: str, alpha: float = 0.0) -> None:
    """Ask about some people, one after another."""
    asked = question_of(dataset, model, PEOPLE)
    (problem,) = asked.problems.values()
    explainer, rng = CeOcl("l1", alpha).fit(problem), np.random.default_rng(0)
    seconds, proven = [], 0
    for place in range(len(asked.factuals)):
        factual = asked.factuals.iloc[[place]]
        began = time.perf_counter()
        explanation = explainer.explain(factual, 1, rng, Deadline.after(20.0))
        seconds.append(time.perf_counter() - began)
        proven += explanation.answers[0].status is Status.OPTIMAL
    print(
        f"{dataset}, {model}: {len(seconds)} people, {len(problem.space.features)} features, "
        f"median {1e6 * np.median(seconds):.0f} us, slowest {1e6 * max(seconds):.0f} us, {proven} proven"
    )


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(float, sys.argv[3:]))
