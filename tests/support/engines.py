"""Questions to CE-OCL, and the engines that answer them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hydra.utils import instantiate
from omegaconf import OmegaConf
from support.complete import settings
from support.datasets import dataset_of, problem_on

from harness.core.problem import Problem
from harness.execution import task
from methods.ce_ocl import CeOcl


def engines(method: CeOcl, problem: Problem) -> list[CeOcl]:
    """The method with each engine that takes the problem."""
    return [m for m in (replace(method, engine=name) for name in ("milp", "search")) if m.refuses(problem) is None]


def question_of(name: str, model: str, count: int = 30, **changes: Any) -> task.Task:
    """The factuals of a model of a published dataset, as changed; the test is skipped where its file is missing."""
    dataset = dataset_of(name, **changes)
    config = OmegaConf.create({"model_seed": 0, "model": settings("model", model)})
    problem = problem_on(dataset, instantiate(config.model.estimator))
    return task.make_task(dataset, problem.classifier, n_factuals=count)
