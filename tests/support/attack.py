"""Attack the regions of stored answers on their models: ``python tests/support/attack.py results/robust_table1``.

From random corners of a box, or points of a ball's surface, one number at a time goes to the end that takes most of the
probability of what is wanted, until none does. Prints how many regions were attacked, and each that a point breaks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.certificate.balls import perturbed
from harness.core.problem import Problem
from harness.core.space import Space
from harness.store.run import StoredRun, stored_runs

STARTS, SWEEPS = 6, 2
INSIDE = 1.0 - 1e-9  # of the radius: the rounding of decoded values stays within the region


def attacked(
    problem: Problem,
    row: dict[str, Any],
    radius: float,
    ball: bool,
    rng: np.random.Generator,
    unperturbed: Sequence[str],
) -> bool:
    """Whether a point within a radius, a share of each number's range, of a row is invalid."""
    space = problem.space
    movable = [space[name] for name in perturbed(space, unperturbed)]
    centre = space.frame([row])
    moves = rng.choice([-1.0, 1.0], (STARTS, len(movable)))
    for _ in range(SWEEPS):
        for k in rng.permutation(len(movable)):
            tried = np.concatenate([moves, moves, moves])
            tried[STARTS : 2 * STARTS, k] = 0.0
            tried[2 * STARTS :, k] *= -1.0
            wanted, valid = _asked(problem, centre, movable, _within(tried, radius, ball))
            if not valid.all():
                return True
            best = wanted.reshape(3, STARTS).argmin(axis=0)
            moves = tried.reshape(3, STARTS, -1)[best, np.arange(STARTS)]
    return False


def _within(moves: np.ndarray, radius: float, ball: bool) -> np.ndarray:
    lengths = np.linalg.norm(moves, axis=1, keepdims=True) if ball else np.ones((len(moves), 1))
    return INSIDE * radius * moves / np.maximum(lengths, 1.0)


def _asked(problem: Problem, centre: Any, movable: list[Any], moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probability of what is wanted at moved points, and whether they are valid."""
    frame = centre.loc[centre.index.repeat(len(moves))].reset_index(drop=True)
    for k, feature in enumerate(movable):
        frame[feature.name] = frame[feature.name].astype(float) + moves[:, k] * feature.range
    classifier = problem.classifier
    code = classifier.code(problem.target.value)
    return classifier.estimator.predict_proba(classifier.matrix(frame))[:, code], problem.valid(frame)


def regions(run: StoredRun) -> list[tuple[Problem, dict[str, Any], float, bool, Sequence[str], Any]]:
    """The answers of a run that claim a region: problem, row, radius, whether a ball, what stays, and whose it is."""
    factuals, targets = run.factuals()
    space: Space = run.space
    method, found = run.meta["config"]["method"], []
    for row in run.rows():
        if row["row"] is not None and row["region"]:
            labels = np.empty(len(factuals), dtype=object)
            problem = Problem(space, run.classifier, factuals, labels, targets[row["factual"]])
            region = float(method["rho"]), method["norm"] == "l2", method.get("unperturbed") or ()
            found.append((problem, row["row"], *region, row["factual"]))
    return found


def main(*folders: str) -> None:
    rng, count = np.random.default_rng(0), 0
    for folder in folders:
        for run in stored_runs(Path(folder)):
            for problem, row, radius, ball, unperturbed, factual in regions(run):
                count += 1
                if attacked(problem, row, radius, ball, rng, unperturbed):
                    print(f"{run.label}, factual {factual}: a point of its region is invalid")
    print(f"{count} regions attacked")


if __name__ == "__main__":
    main(*sys.argv[1:])
