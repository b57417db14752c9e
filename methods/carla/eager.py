"""TensorFlow's functions that CARLA's FOCUS calls, computed by torch, and what code for torch 1.7 needs of it today."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

BETAS, EPSILON = (0.9, 0.999), 1e-8  # TensorFlow's defaults for Adam


class Tensor(torch.Tensor):
    """A tensor that meets numpy arrays in arithmetic, and becomes one although it has gradients."""

    def __sub__(self, other: Any) -> Any:
        return super().__sub__(_tensor(other))

    def __rmul__(self, other: Any) -> Any:
        return super().__rmul__(_tensor(other))

    def numpy(self, *_: Any, **__: Any) -> np.ndarray:
        return np.array(self.detach().tolist(), dtype=float).reshape(tuple(self.shape))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.numpy()


class Clamped(torch.optim.Adam):
    """Keeps its parameters in [0, 1], as Wachter's code intends: it clamps a copy."""

    def step(self, *args: Any) -> None:
        super().step(*args)
        for group in self.param_groups:
            for part in group["params"]:
                part.data.clamp_(0, 1)


class OldTorch:
    """torch whose ``load`` reads files with classes in them; CLUE reads only what it has just written itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def load(self, path: str) -> Any:
        return torch.load(path, weights_only=False)


class Tape:
    """Gradients of what was computed within: torch keeps them anyway."""

    def __init__(self, persistent: bool = False) -> None:
        return

    def __enter__(self) -> Tape:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def gradient(self, loss: Any, variables: Sequence[Any]) -> tuple[Any, ...]:
        return torch.autograd.grad(loss, variables)


class Adam:
    """Adam with TensorFlow's epsilon, which is added before the correction of the second moment.

    Moments and steps belong to a variable: where they outlive it, one search depends on the one before.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def apply_gradients(self, pairs: Iterable[tuple[Any, Any]], global_step: Any = None) -> None:
        for gradient, variable in pairs:
            first, second, step = getattr(variable, "moments", (0.0, 0.0, 0))
            step += 1
            first = BETAS[0] * first + (1 - BETAS[0]) * gradient
            second = BETAS[1] * second + (1 - BETAS[1]) * gradient**2
            rate = self.learning_rate * np.sqrt(1 - BETAS[1] ** step) / (1 - BETAS[0] ** step)
            variable.data -= rate * first / (second.sqrt() + EPSILON)
            variable.moments = first, second, step


def _tensor(values: Any) -> Any:
    """Arrays as tensors, anything else as it is."""
    return torch.from_numpy(values).as_subclass(Tensor) if isinstance(values, np.ndarray) else values


def _variable(initial_value: np.ndarray, **_: Any) -> Any:
    return torch.tensor(initial_value, dtype=torch.float64).as_subclass(Tensor).requires_grad_()


def _constant(value: Any, dtype: Any = None, shape: int | None = None) -> Any:
    return torch.as_tensor(value if shape is None else np.full(shape, value), dtype=dtype).as_subclass(Tensor)


def _assign(variable: Any, value: Any) -> None:
    variable.data.copy_(value.detach())


def _masked(values: Any, mask: np.ndarray) -> Any:
    return _tensor(values)[torch.from_numpy(np.asarray(mask, dtype=bool))]


def _scattered(tensor: np.ndarray, indices: np.ndarray, updates: Any) -> Any:
    """The tensor with updates added to its rows."""
    return _tensor(tensor).index_add(0, torch.from_numpy(indices[:, 0]), updates)


def _gathered(values: Any, indices: Any) -> Any:
    """One entry for each row of indices."""
    return _tensor(values)[indices[:, 0], indices[:, 1]]


@contextlib.contextmanager
def _session() -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(run=lambda value: value)


def _called(function: Callable[..., Any], arguments: Sequence[Any], dtype: Any) -> Any:
    return function(*arguments)


py_func = _called
tensorflow = SimpleNamespace(
    float32=torch.float32,
    float64=torch.float64,
    int64=torch.int64,
    Variable=_variable,
    GradientTape=Tape,
    abs=torch.abs,
    boolean_mask=_masked,
    constant=_constant,
    exp=torch.exp,
    gather_nd=_gathered,
    reduce_mean=torch.mean,
    reduce_sum=lambda values, axis: values.sum(dim=axis),
    reshape=lambda values, shape: values.reshape(shape),
    stack=lambda values, axis: torch.stack(tuple(values), dim=axis),
    tensor_scatter_nd_add=_scattered,
    math=SimpleNamespace(
        maximum=lambda least, values: values.clamp(min=least),
        minimum=lambda most, values: values.clamp(max=most),
        sigmoid=torch.sigmoid,
    ),
    compat=SimpleNamespace(
        v1=SimpleNamespace(
            Session=_session,
            assign=_assign,
            train=SimpleNamespace(AdamOptimizer=Adam, get_or_create_global_step=lambda: None),
        )
    ),
)
