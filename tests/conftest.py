"""A small problem with every kind of feature and actionability, and the models of ``conf/model`` trained on it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy loads: the tests share the machine

import numpy as np
import pandas as pd
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf
from sklearn.base import is_regressor
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.models import torch_mlp
from harness.models import train as models

THINNED = (  # folders and files of tests whose many cases take long
    "tests/certificate/test_parts.py", "tests/methods/", "tests/metrics/test_together.py",
    "tests/models/test_composite.py", "tests/models/test_composite_classes.py", "tests/models/test_train.py",
)  # fmt: skip
MANY, EVERY = 4, 5
BEGUN = time.monotonic()
LATER = "the time of this run is over: .ci/extras runs it"
CONF = Path(__file__).parents[1] / "conf"
ROWS = 200
SPACE = Space(
    (
        Feature("income", "continuous", scale=(0.0, 100.0), bounds=(0.0, 100.0)),
        Feature("savings", "continuous", scale=(-5.0, 5.0), bounds=(-5.0, 5.0), actionability="increase"),
        Feature("debt", "continuous", scale=(0.0, 1e4), bounds=(0.0, 1e4), actionability="decrease"),
        Feature("height", "continuous", scale=(150.0, 200.0), bounds=(150.0, 200.0), actionability="immutable"),
        Feature("age", "integer", scale=(18, 80), bounds=(18, 80), actionability="immutable"),
        Feature("visits", "integer", scale=(0, 20), bounds=(0, 20), actionability="increase"),
        Feature("loans", "integer", scale=(0, 6), bounds=(0, 6), actionability="decrease"),
        Feature("delay", "integer", scale=(0, 12), bounds=(0, 12), special=(-1,)),
        Feature("grade", "ordinal", ("low", "middle", "high"), actionability="increase"),
        Feature("risk", "ordinal", (1, 2, 3, 4), actionability="decrease"),
        Feature("stage", "ordinal", ("a", "b", "c", "d"), actionability="conditional", order=("a", "c", "d")),
        Feature("taste", "ordinal", ("mild", "hot", "fire")),
        Feature("city", "categorical", ("Bonn", "Köln", "Ulm")),
        Feature("job", "categorical", ("none", "part", "full", "other"), actionability="conditional",
                order=("none", "part", "full")),
        Feature("region", "categorical", ("n", "s", "w"), actionability="immutable"),
        Feature("member", "binary", (False, True)),
        Feature("owner", "binary", ("no", "yes"), actionability="increase"),
        Feature("native", "binary", (0, 1), actionability="immutable"),
    )
)  # fmt: skip


def sample(rows: int = ROWS) -> pd.DataFrame:
    """Points of the space: in three groups that share what is immutable; many rows are reachable from lesser ones.

    What may only rise or fall does so along one hidden rank, but for a third of the rows; all else is random.
    """
    rng = np.random.default_rng(0)
    group = rng.choice([0.1, 0.5, 0.9], rows)
    rank = rng.uniform(size=rows)
    stray = rng.random(rows) < 1 / 3
    data: dict[str, Any] = {}
    for feature in SPACE.features:
        share = rng.uniform(size=rows)
        if feature.actionability == "immutable":
            share = group
        elif feature.actionability != "free":
            falls = feature.actionability == "decrease"
            share = np.where(stray, share, 1 - rank if falls else rank)
        low, high = feature.bounds
        if not feature.numeric:
            ladder = feature.ladder if feature.actionability == "conditional" else feature.categories
            data[feature.name] = [ladder[int(part * len(ladder))] for part in share]
        else:
            values = low + share * (high - low)
            data[feature.name] = np.rint(values).astype(int) if feature.kind == "integer" else values
    strays = np.flatnonzero(stray)[::4]
    data["delay"][strays] = -1
    data["stage"] = ["b" if row in strays else value for row, value in enumerate(data["stage"])]
    data["job"] = ["other" if row in strays else value for row, value in enumerate(data["job"])]
    return SPACE.frame(pd.DataFrame(data).astype(object).to_dict("records"))


def merits(frame: pd.DataFrame) -> np.ndarray:
    """What the labels follow: linear in most features."""
    merit = frame["income"] / 50 + frame["savings"] / 5 - frame["debt"] / 5e3 + frame["visits"] / 10
    merit += 0.5 * (frame["city"] == "Ulm") + 0.5 * (frame["job"] == "full") + 0.3 * frame["member"].astype(float)
    merit += 0.5 * (frame["grade"] == "high") - frame["risk"] / 4 - frame["loans"] / 6 - (frame["delay"] > 6) / 2
    return merit.to_numpy()


@cache
def train(model: str, discrete: bool = False) -> Problem:
    """The problem of a model of ``conf/model``, shrunk where it can be; where ``discrete``, without the numbers.

    Wanted are the better half of the labels: a class, or for regression an interval that the best tenth lies above.
    """
    config = OmegaConf.merge(OmegaConf.load(CONF / "model" / f"{model}.yaml"), {"model_seed": 0})
    if "torch" in config.estimator._target_ and not torch_mlp.installed():
        pytest.skip(torch_mlp.ABSENT)
    for size, enough in (("n_estimators", 10), ("max_iter", 100)):
        if size in config.estimator:
            config.estimator[size] = min(config.estimator[size], enough)
    if "hidden_layer_sizes" in config.estimator:
        config.estimator.hidden_layer_sizes = [20]
    frame = sample()
    merit = merits(frame)
    space = Space(tuple(f for f in SPACE.features if not f.numeric)) if discrete else SPACE
    frame = frame[list(space.names)]
    estimator = instantiate(config.estimator, _convert_="all")
    if is_regressor(estimator):
        classifier = models.train(estimator, space, frame, merit, ())
        return Problem(space, classifier, frame, merit, Interval(*np.quantile(merit, (0.5, 0.9)).tolist()))
    labels = np.where(merit > np.median(merit), "good", "bad").astype(object)
    classifier = models.train(estimator, space, frame, labels, ("bad", "good"), config.threshold)
    return Problem(space, classifier, frame, labels, Label("good"))


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that ``every`` leaves to the slow tests: the same in every run, and never all of a test.

    Where a test of ``THINNED`` says nothing, and has ``MANY`` cases or more, one of ``EVERY`` is asked each time.
    """
    quick = [item for item in items if not item.get_closest_marker("slow")]
    cases = Counter(item.nodeid.partition("[")[0] for item in quick)
    begun = set()
    for item in quick:
        name, every = item.nodeid.partition("[")[0], item.get_closest_marker("every")
        thinned = cases[name] >= MANY and name.startswith(THINNED)
        share = every.args[0] if every else EVERY if thinned else 1
        if name in begun and crc32(item.nodeid.encode()) % share:
            item.add_marker(pytest.mark.slow)
        begun.add(name)


class FirstCases(LoadScopeScheduling):
    """File by file, that of most tests first, as ``--dist loadscope`` does; after all first cases of tests the others.

    So that what a slow machine has no time for are further cases.
    """

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        first = {test.partition("[")[0]: test for test in reversed(collection)}
        self.further = {*collection} - {*first.values()}
        super().add_node_collection(node, collection)

    def remove_node(self, node: WorkerController) -> str | None:
        """Files that a crashed worker has ended are not given to another, which would wait for a report of them."""
        units = self.assigned_work[node].items()
        self.assigned_work[node] = {scope: unit for scope, unit in units if not all(unit.values())}
        return super().remove_node(node)

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid) + " further" * (nodeid in self.further)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=lambda scope: scope.endswith(" further")), last=False)
        super()._assign_work_unit(node)


def pytest_addoption(parser: pytest.Parser) -> None:
    explained = "skip what has not begun by then"
    parser.addoption("--seconds", type=float, default=float("inf"), help=explained)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return FirstCases(config, log) if config.option.dist == "loadscope" else None


@pytest.hookimpl(tryfirst=True)  # before a fixture is made for nothing
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - BEGUN > item.config.option.seconds:
        pytest.skip(LATER)


@pytest.fixture(scope="session")
def problem_of() -> Callable[..., Problem]:
    """The small problem, by name of a model in ``conf/model``."""
    return train


@pytest.fixture(scope="session")
def problem() -> Problem:
    """The small problem, with logistic regression."""
    return train("lr")


@pytest.fixture
def factual(problem: Problem) -> pd.DataFrame:
    """A row that the model of ``problem`` does not classify as wanted."""
    return problem.train.loc[~problem.valid(problem.train)].iloc[[0]]
