"""Datasets of ``conf/dataset``, and problems of models trained on them."""

from __future__ import annotations

from typing import Any

import pytest
from support.complete import settings

from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import Dataset, Source, data_folder, load_dataset, parse_target
from harness.models.train import train


def dataset_of(name: str, **changes: Any) -> Dataset:
    """A choice of ``conf/dataset`` with other settings; the test is skipped where a file is missing."""
    given = settings("dataset", name) | changes
    for source in given["sources"]:
        if not Source(**source).path.is_file():
            pytest.skip(f"{source['file']} is neither packaged nor in CE_HARNESS_DATA ({data_folder()})")
    return load_dataset(**given)


def problem_on(dataset: Dataset, estimator: Any, threshold: float | None = None) -> Problem:
    """The problem of an estimator fitted to the training rows; where either class may be desired, it is the second."""
    frame, labels = dataset.frame.iloc[dataset.train], dataset.labels[dataset.train]
    classifier = train(estimator, dataset.space, frame, labels, dataset.classes, threshold)
    target = parse_target(dataset)
    if target == "opposite":
        target = Label(dataset.classes[-1])
    return Problem(dataset.space, classifier, frame, labels, target)
