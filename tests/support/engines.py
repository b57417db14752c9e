"""Questions to CE-OCL, and the engines that answer them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from harness.core.problem import Problem
from harness.data import load_dataset
from harness.execution import task
from methods.ce_ocl import CeOcl


def engines(method: CeOcl, problem: Problem) -> list[CeOcl]:
    """The method with each engine that takes the problem."""
    return [m for m in (replace(method, engine=name) for name in ("milp", "search")) if m.refuses(problem) is None]


CONF = Path(__file__).parents[2] / "conf"


def question_of(name: str, model: str, count: int = 30) -> task.Task:
    """The factuals of a model of a published dataset; the test is skipped where its file is missing."""
    settings = OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / f"{name}.yaml"))
    assert isinstance(settings, dict)
    folder = Path(os.environ.get("CE_HARNESS_DATA", "/nonexistent"))
    for source in settings["sources"]:
        if not source["file"].startswith("packaged/") and not (folder / source["file"]).is_file():
            pytest.skip(f"{source['file']} is neither packaged nor under CE_HARNESS_DATA")
    dataset = load_dataset(**settings)
    config = OmegaConf.create({"seed": 0, "model": OmegaConf.load(CONF / "model" / f"{model}.yaml")})
    train, labels = dataset.frame.iloc[dataset.train], dataset.labels[dataset.train]
    fitted = train(instantiate(config.model.estimator), dataset.space, train, labels, dataset.classes)
    return task.make_task(dataset, fitted, n_factuals=count)
