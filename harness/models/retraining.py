"""Models as the next training would give them: other seeds, other rows, other settings, and later rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from harness.core.classifier import Classifier
from harness.core.frames import with_columns
from harness.models.files import log
from harness.models.train import Trained, Training

MODELS = 20  # of each change
LEFT_OUT = {"leave_out_1": 0.01, "leave_out_10": 0.1}  # shares of the rows
CHANGES = ("seeds", "bootstrap", *LEFT_OUT, "hyperparameters", "later", "more_or_fewer")
RANDOM = "random_state"
SAY = 10.0  # seconds between lines on how far a training of many models has come


@dataclass(frozen=True, eq=False)
class Retraining:
    """How a model was trained, and others that were trained almost so; each is trained once, and cached.

    The features' scaling and the threshold stay those of the model; a search over settings is made again.

    Parameters
    ----------
    training
        How the model itself is trained.
    grid
        Gives the settings of the estimator within which it is tuned, by name; None where no grid is known.
    others
        Decoded rows that the training left out, and their labels; None where there are none.
    later
        Whether the other rows came after those of the training.
    """

    training: Training
    grid: Callable[[], Mapping[str, Sequence[Any]] | None] = lambda: None
    others: tuple[pd.DataFrame, np.ndarray] | None = None
    later: bool = False
    _made: dict[str, tuple[Trained, ...]] = field(default_factory=dict, init=False, repr=False)

    def models(self, change: str) -> tuple[Classifier, ...]:
        """The models of a change; none where it is not defined.

        Parameters
        ----------
        change
            ``seeds``: 20 other random seeds, of estimators that one changes; ``bootstrap``: 20 samples of as many rows,
            with replacement; ``leave_out_1`` and ``leave_out_10``: 20 times without 1 % or 10 % of the rows;
            ``hyperparameters``: each other setting of the grid, 20 drawn where there are more; ``later``: one model,
            of the later rows alone; ``more_or_fewer``: with other seeds, ten models of the rows and of as many others,
            all where there are fewer, and ten without 1 % of the rows, the same rows for all ten. What is drawn is the
            same in every process.
        """
        if change not in self._made:
            made = tuple(self._trained(change))
            self._made[change] = () if change == "seeds" and self._alike(made) else made
        return tuple(trained.classifier for trained in self._made[change])

    @property
    def names(self) -> dict[str, list[str]]:
        """By change, the names in the cache of the models that were asked for."""
        return {change: [trained.content for trained in made] for change, made in self._made.items() if made}

    def _trained(self, change: str) -> Iterator[Trained]:
        """The models of a change, and a line at times on how far this has come, where it takes long."""
        said = time.monotonic()
        for place, training in enumerate(self._trainings(change)):
            if time.monotonic() - said > SAY:
                log.info("training again (%s): %d of at most %d models, kept in the cache", change, place, MODELS)
                said = time.monotonic()
            yield training.done()

    def _trainings(self, change: str) -> Iterator[Training]:
        training, size = self.training, len(self.training.labels)
        if change == "seeds":
            yield from map(training.by, self._seeded())
        elif change == "hyperparameters":
            yield from map(training.by, self._set_otherwise())
        elif change == "later":
            if self.later and self.others is not None and len(np.unique(self.others[1])) >= self._needed:
                yield training.on(*self.others)
        elif change == "more_or_fewer":
            yield from self._more_or_fewer()
        else:
            for step in range(MODELS):
                yield self._drawn(np.random.default_rng([CHANGES.index(change), step]), size, LEFT_OUT.get(change))

    def _drawn(self, rng: np.random.Generator, size: int, left_out: float | None) -> Training:
        """With a sample of the rows that has every class: without a share of them, or else with replacement."""
        while True:
            if left_out is None:
                rows = rng.integers(size, size=size)
            else:
                rows = rng.permutation(size)[max(1, round(left_out * size)) :]
            rows.sort()
            labels = self.training.labels[rows]
            if len(np.unique(labels)) >= self._needed:
                return self.training.on(self.training.frame.iloc[rows], labels)

    def _alike(self, made: Sequence[Trained]) -> bool:
        """Whether models say the same everywhere: a seed that nothing is drawn by tests nothing.

        Asked of points whose values are those of different rows, as trees may differ between the rows alone.
        """
        rng, frame = np.random.default_rng(CHANGES.index("seeds")), self.training.frame
        mixed = with_columns(frame, {name: rng.permutation(frame[name].to_numpy()) for name in frame})
        scores = (trained.classifier.score(mixed) for trained in made)
        first = next(scores, np.zeros(0))
        return all(np.array_equal(first, other) for other in scores)

    def _seeded(self) -> Iterator[Any]:
        """The estimator with each of the other seeds; none where it has none."""
        given = self.training.estimator.get_params()
        seeds = {name: seed for name, seed in given.items() if name.endswith(RANDOM) and isinstance(seed, int)}
        for step in range(1, MODELS + 1) if seeds else ():
            yield clone(self.training.estimator).set_params(**{name: seed + step for name, seed in seeds.items()})

    def _more_or_fewer(self) -> Iterator[Training]:
        """Half of the seeds with other rows beside the training's, half without some of them."""
        if self.others is None:
            return
        (frame, labels), given = self.others, self.training
        rng, size = np.random.default_rng(CHANGES.index("more_or_fewer")), len(given.labels)
        added = np.sort(rng.permutation(len(labels))[:size])
        more = given.on(pd.concat([given.frame, frame.iloc[added]]), np.concatenate([given.labels, labels[added]]))
        fewer = self._drawn(rng, size, LEFT_OUT["leave_out_1"])
        for place, estimator in enumerate(self._seeded()):
            yield (more if place < MODELS // 2 else fewer).by(estimator)

    def _set_otherwise(self) -> Iterator[Any]:
        """The estimator, or that which a search has chosen, with other settings of the grid."""
        tuned = self.training.estimator
        if isinstance(search := tuned, GridSearchCV):
            made = self.training.done().classifier
            chosen = (made.estimator if made.wrapped is None else made.wrapped.model).get_params()
            names = {name for setting in ParameterGrid(search.param_grid) for name in setting}
            tuned = clone(search.estimator).set_params(**{name: chosen[name] for name in names})
        grid, given = self.grid(), tuned.get_params()
        settings = () if grid is None else ParameterGrid(dict(grid))
        others = [setting for setting in settings if any(given[name] != value for name, value in setting.items())]
        drawn = np.random.default_rng(CHANGES.index("hyperparameters")).permutation(len(others))[:MODELS]
        for place in sorted(drawn):
            yield clone(tuned).set_params(**others[place])

    @cached_property
    def _needed(self) -> int:
        """How many distinct labels a training needs: every class, or of numbers two."""
        return len(np.unique(self.training.labels)) if self.training.classes else 2
