"""Networks of torch: a file of weights (a state dict) with its activation, or a live module; torch computes them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harness.core.errors import UnsupportedError, choices
from harness.models.runtime.engine import LOGITS, PROBABILITIES, Engine, Predicted
from harness.models.runtime.optional import library
from harness.models.runtime.records import DOUBLE, SINGLE, Layers

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU", "elu": "ELU", "silu": "SiLU"}
KINDS = {"Sigmoid": PROBABILITIES, "Softmax": PROBABILITIES, "Linear": LOGITS, "LogSoftmax": LOGITS}  # by last part
PASSING = ("Identity", "Dropout", "Flatten")


class TorchEngine(Engine):
    """A module of torch, of which a copy is kept that is not in training.

    Parameters
    ----------
    classes
        Of the data; 0 where the target is a number.
    kind
        What its scores are, one of ``engine.KINDS``; as its last part tells where None.
    """

    library: ClassVar[str] = "torch"

    def __init__(self, module: Any, classes: int, kind: str | None) -> None:
        self.module, self.columns, self.labels = copy.deepcopy(module).eval(), (), tuple(range(classes))
        parts = list(_parts(self.module))
        self.width = next((part.in_features for part in parts if type(part).__name__ == "Linear"), None)
        last = next((type(p).__name__ for p in reversed(parts) if type(p).__name__ not in PASSING), "")
        found = kind or KINDS.get(last)
        if found is None and classes:
            raise UnsupportedError(
                f"whether the scores after its {last} are probabilities or log odds is not said; set model.scores="
                f"probabilities or model.scores=logits"
            )
        self.kind = found or LOGITS
        self.single = all(p.dtype == library("torch", "torch").float32 for p in self.module.parameters())
        try:
            self.reading = _read(parts, classes, SINGLE if self.single else DOUBLE)
        except UnsupportedError as why:
            self.reading = str(why)

    def __getstate__(self) -> dict[str, Any]:
        """With the module in bytes: torch would send a worker its tensors as handles, which it may not open."""
        return {**vars(self), "module": pickle.dumps(self.module)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "module": pickle.loads(state["module"])})

    def __call__(self, rows: Any) -> Predicted:
        torch = library("torch", "torch")
        matrix = np.ascontiguousarray(rows, dtype=np.float32 if self.single else float)
        with torch.no_grad():
            scores = self.module(torch.from_numpy(matrix)).numpy()
        return Predicted(None, np.asarray(scores, dtype=float).reshape(len(matrix), -1))


def from_state(path: Path, activation: str) -> Any:
    """The network of dense layers of a state dict, their order that of the file; nothing in the file is run.

    Raises
    ------
    UnsupportedError
        For a file with anything but tensors, or weights that do not follow each other.
    """
    torch = library("torch", "torch")
    if activation not in ACTIVATIONS:
        raise UnsupportedError(f"model.activation={activation} does not exist; {choices(activation, ACTIVATIONS)}")
    advice = "save torch.save(model.state_dict(), 'net.pt') of dense layers, or export the module as ONNX"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as fault:
        raise UnsupportedError(f"it is no state dict of tensors alone, and nothing else is read; {advice}") from fault
    if not isinstance(state, Mapping) or not all(isinstance(part, torch.Tensor) for part in state.values()):
        raise UnsupportedError(f"it is no state dict; {advice}")
    layers: list[Any] = []
    for name, weights in state.items():
        prefix, _, part = name.rpartition(".")
        shift = state.get(f"{prefix}.bias" if prefix else "bias")
        if part == "bias" and f"{prefix}.weight".lstrip(".") in state:
            continue
        if part != "weight" or weights.ndim != 2 or (shift is not None and shift.shape != weights.shape[:1]):
            raise UnsupportedError(f"it has {name!r}, which is no weight of a dense layer; {advice}")
        if layers and layers[-1].out_features != weights.shape[1]:
            before = layers[-1].out_features
            raise UnsupportedError(f"its layer {name!r} takes {weights.shape[1]} units, and {before} come before it")
        layer = torch.nn.Linear(weights.shape[1], weights.shape[0], bias=shift is not None, dtype=weights.dtype)
        layer.load_state_dict({"weight": weights, **({} if shift is None else {"bias": shift})})
        layers.append(layer)
    if not layers:
        raise UnsupportedError(f"it has no weights; {advice}")
    between = getattr(torch.nn, ACTIVATIONS[activation])
    parts = [part for layer in layers for part in (layer, between())][:-1]
    return torch.nn.Sequential(*parts)


def is_module(model: Any) -> bool:
    """Whether an object is a module of torch; torch is not imported for it."""
    return any(
        kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(model).__mro__
    )


def _parts(module: Any) -> Iterator[Any]:
    """The parts of a ``Sequential``, those within it in their place; any other module is one part."""
    if type(module).__name__ == "Sequential":
        for part in module:
            yield from _parts(part)
    else:
        yield module


def _read(parts: list[Any], classes: int, epsilon: float) -> Layers:
    """The layers of a chain of dense ones with ReLU between them."""
    closed: list[tuple[np.ndarray, np.ndarray]] = []
    current: tuple[np.ndarray, np.ndarray] | None = None
    for place, part in enumerate(parts):
        name = type(part).__name__
        if name in PASSING or (name in ("Sigmoid", "Softmax", "LogSoftmax") and place == len(parts) - 1):
            continue
        if name == "Linear":
            own = _array(part.weight).T
            shift = np.zeros(own.shape[1]) if part.bias is None else _array(part.bias)
            current = (own, shift) if current is None else (current[0] @ own, current[1] @ own + shift)
        elif name == "ReLU" and current is not None:
            closed.append(current)
            current = np.eye(len(current[1])), np.zeros(len(current[1]))
        else:
            raise UnsupportedError(f"its part {name} is not read")
    if current is None:
        raise UnsupportedError("it has no dense layer")
    weights, shifts = current
    if classes == 2 and len(shifts) == 2:
        if type(parts[-1]).__name__ == "Sigmoid":
            raise UnsupportedError("its Sigmoid gives each class a probability of its own")
        weights, shifts = weights[:, 1:] - weights[:, :1], shifts[1:] - shifts[:1]
    elif len(shifts) != (classes if classes > 2 else 1):
        raise UnsupportedError(f"it gives {len(shifts)} numbers for {classes or 'no'} classes")
    closed.append((weights, shifts))
    return Layers(tuple(part[0] for part in closed), tuple(part[1] for part in closed), epsilon)


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().numpy(), dtype=float)
