"""Models with gradients, as CARLA's torch methods ask for them, and what those methods have in common here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import REQUIRED, LibraryDefault
from harness.core.numbers import check_above, check_counts
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.models import torch_mlp
from methods.carla.adapter import Columns, Question, moving_columns
from methods.carla.compat import check_clock
from methods.carla.method import CarlaMethod
from methods.estimators.gradients import network, torch_library, without_gradients

BATCH = 32  # rows a step of an autoencoder's training, as published
LAYERS = dict.fromkeys(("hidden", "latent"), LibraryDefault(REQUIRED, "its layers have no default"))


@dataclass(frozen=True)
class TorchMethod(CarlaMethod):
    """A method of CARLA's that runs on torch."""

    def absent(self) -> str | None:
        return super().absent() or (None if torch_mlp.installed() else torch_mlp.ABSENT)

    def needs(self, problem: Problem) -> str | None:
        if not moving_columns(problem.space).shown:
            return f"CARLA's {self.title} needs a number, rank or binary feature that may change."
        return None


@dataclass(frozen=True)
class GradientMethod(TorchMethod):
    """A method of CARLA's that follows the model's gradient."""

    def needs(self, problem: Problem) -> str | None:
        return without_gradients(problem, f"CARLA's {self.title}") or super().needs(problem)


@dataclass(frozen=True)
class CodeDescent(GradientMethod):
    """A descent in the code of an autoencoder; the methods describe the parameters."""

    hidden: tuple[int, ...] = (32, 16)
    latent: int = 8
    epochs: int = 5
    lambda_: float = 0.5
    lr: float = 0.1
    max_iter: int = 500

    def __post_init__(self) -> None:
        check_layers(self.hidden, self.latent, self.epochs)
        check_counts(self, 1, "max_iter")
        check_above(self, 0, "lr")


def module_of(problem: Problem, question: Question) -> Any:
    """A torch module: probabilities of the other and the wanted class for CARLA's columns, shape (rows, 2), float32.

    As ``Question.probabilities`` judges rows, integers, ranks and binaries rounded; rounding lets gradients through.
    """
    torch, score = torch_library(), network(problem)
    sign = 1.0 if question.wanted == 1 else -1.0
    steps, offsets = _grid(question.columns)
    stepped = torch.from_numpy(steps > 0)
    step, offset = torch.from_numpy(np.where(steps > 0, steps, 1.0)), torch.from_numpy(offsets)

    class Module(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, rows: Any) -> Any:
            check_clock()
            rows = rows.double()
            rounded = torch.round((rows - offset) / step) * step + offset
            rows = rows + torch.where(stepped, rounded - rows, 0.0).detach()
            matrix = torch.from_numpy(question.origin).repeat(len(rows), 1)
            matrix[:, question.columns.shown] = rows
            share = torch.sigmoid(sign * score(matrix))
            question.note(matrix.detach().numpy(), share.detach().numpy()[:, 0])
            return torch.cat([1.0 - share, share], dim=1).float()

    return Module()


def _grid(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """By column, the distance of the values that a feature can have, 0 for any number, and one of these values."""
    steps, offsets = np.zeros(len(columns.names)), np.zeros(len(columns.names))
    for place, feature in enumerate(columns.features.values()):
        if feature.kind is Kind.INTEGER:
            steps[place], offsets[place] = 1.0 / feature.range, -feature.scale[0] / feature.range
        elif not feature.numeric:
            steps[place] = 1.0 / feature.steps
    return steps, offsets


def in_batches(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows without the last where it would be a batch of its own, on which batch normalisation fails."""
    return frame.iloc[:-1] if len(frame) % BATCH == 1 else frame


def check_layers(hidden: Sequence[int], latent: int, epochs: int) -> None:
    """ValueError unless an autoencoder of these layers can be trained."""
    if min((*hidden, latent, epochs, len(hidden))) < 1:
        raise ValueError(
            f"hidden is {list(hidden)}, latent {latent}, epochs {epochs}; give at least one hidden layer, and "
            f"at least 1 everywhere."
        )


def autoencoder(question: Question, hidden: Sequence[int], latent: int, epochs: int, **more: int) -> dict[str, Any]:
    """CARLA's settings of a method with an autoencoder of the shown columns."""
    layers = [len(question.columns.names), *hidden, latent]
    return {"data_name": "rows", "vae_params": {"layers": layers, "epochs": epochs, **more}}
