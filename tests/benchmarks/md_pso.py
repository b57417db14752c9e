"""What a swarm costs beside the model's own predictions: ``python tests/benchmarks/md_pso.py``.

50 particles fly 100 generations on Arrhythmia, before a forest of 100 trees; CPU seconds of one thread, over those of
100 bare calls of ``predict_proba`` on 50 rows, medians of several repeats. A box is not doubled. The data are read from
CE_HARNESS_DATA, or downloaded.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy loads

import logging
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf
from sklearn.ensemble import RandomForestClassifier

from harness.core.method import Deadline
from harness.data import load_dataset
from harness.execution.task import make_task
from harness.models.train import train
from methods.md_pso import MdPso

CONF = Path(__file__).parents[2] / "conf"
SHARED = 20  # factuals that share generations


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return statistics.median(spent)


def main() -> None:
    """Print the ratio for one factual, and each's share where several fly together."""
    parser = argparse.ArgumentParser(description="Cost of MD-PSO's swarms in bare predictions.")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    logging.disable(logging.WARNING)
    data = load_dataset(**OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / "arrhythmia.yaml")))  # type: ignore[arg-type]
    frame, labels = data.frame.iloc[data.train], data.labels[data.train]
    classifier = train(RandomForestClassifier(100, random_state=0), data.space, frame, labels, data.classes)
    question = make_task(data, classifier, n_factuals=SHARED)
    problem, factuals = question.problem(question.factuals.index[0]), question.factuals
    explainer = MdPso(particles=50, iterations=100, doublings=0).fit(problem)
    rows = classifier.matrix(frame.iloc[:50])

    def bare() -> None:
        for _ in range(100):
            classifier.estimator.predict_proba(rows)

    def fly(count: int) -> None:
        rngs = [np.random.default_rng(i) for i in range(count)]
        explainer.explain_many(factuals.iloc[:count], 5, rngs, Deadline.after(600))

    fly(1)
    base, alone, together = seconds(bare, repeats), seconds(lambda: fly(1), repeats), seconds(lambda: fly(SHARED), 1)
    print(f"100 calls of predict_proba on 50 rows: {base:.3f} s")
    print(f"one swarm: {alone:.3f} s, {alone / base:.2f} times that")
    each = together / SHARED
    print(f"{SHARED} swarms together: {each:.3f} s each, {alone / each:.1f} times cheaper than alone")


if __name__ == "__main__":
    main()
