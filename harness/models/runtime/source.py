"""From a file or a live object of another library to an estimator over the columns of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import UnsupportedError, choices
from harness.core.space import Space
from harness.models.runtime.catboost_engine import CatBoostEngine, checked, content_of, knows_names, named
from harness.models.runtime.columns import inputs_of
from harness.models.runtime.engine import KINDS, Engine
from harness.models.runtime.estimators import RuntimeModel, estimator_of
from harness.models.runtime.onnx_engine import open_onnx
from harness.models.runtime.torch_engine import TorchEngine, from_state, is_module

BY_PLACE = "; list these in the model's order as model.columns=[...] if they are the same columns"
SUFFIXES = (".onnx", ".cbm", ".pt", ".pth")


@dataclass(frozen=True)
class ModelSource:
    """A model of another library, and how it is to be taken.

    Parameters
    ----------
    model
        The path of an ONNX file, of CatBoost's ``.cbm`` or of a state dict of torch (``.pt``, ``.pth``); or an
        ``onnx.ModelProto``, a fitted CatBoost model, a ``torch.nn.Module``.
    columns
        Names of its inputs in order, as ``columns.inputs_of`` takes them; None: as many as it has.
    output
        The output that is taken; None: the only one that can be.
    scores
        What that has, ``probabilities`` or ``logits``; None: as the model tells.
    activation
        Between the dense layers of a state dict, one of ``torch_engine.ACTIVATIONS``.
    """

    model: Any
    columns: str | Sequence[Any] | None = None
    output: str | None = None
    scores: str | None = None
    activation: str = "relu"

    def opened(self, space: Space, classes: int, stored: bool = False) -> RuntimeModel:
        """The estimator of data with so many classes; 0 where the target is a number.

        Parameters
        ----------
        stored
            Whether answers of it are there, of a version that took columns of other names by their place.

        Raises
        ------
        UnsupportedError
            Where model and data do not fit, without a full stop.
        """
        if self.scores is not None and self.scores not in KINDS:
            raise UnsupportedError(f"model.scores={self.scores} does not exist; {choices(self.scores, KINDS)}")
        engine = self._engine(space, classes)
        if not engine.columns:
            columns = self.columns
            if columns is None and isinstance(engine, CatBoostEngine) and knows_names(engine.names):
                columns = _by_name(engine, space, stored)
            inputs = inputs_of(space, engine.width, columns)
            return estimator_of(engine, inputs, space.names, classes > 0)
        if self.columns is not None:
            raise UnsupportedError("it takes its columns by their names; leave model.columns at null")
        inputs = () if engine.decoder is None else engine.decoder.inputs
        return estimator_of(engine, inputs, engine.columns, classes > 0)

    def _engine(self, space: Space, classes: int) -> Engine:
        model, path = self.model, self.path
        suffix = "" if path is None else path.suffix.lower()
        if suffix in (".pt", ".pth") or is_module(model):
            module = model if path is None else from_state(path, self.activation)
            return TorchEngine(module, classes, self.scores)
        if suffix == ".cbm" or is_catboost(model):
            content = content_of(model) if path is None else checked(path.read_bytes())
            return CatBoostEngine(content, space, classes)
        content = model.SerializeToString() if path is None else path.read_bytes()
        return open_onnx(content, space, classes, self.output, self.scores)

    @property
    def regressor(self) -> bool:
        """Whether the model itself says that it predicts a number."""
        return type(self.model).__name__ == "CatBoostRegressor"

    @property
    def path(self) -> Path | None:
        """The file that it is in, None of a live object."""
        return Path(self.model).expanduser() if isinstance(self.model, str | Path) else None

    @property
    def settings(self) -> Mapping[str, Any]:
        """All but the model."""
        return {name: value for name, value in vars(self).items() if name != "model"}


def _by_name(engine: CatBoostEngine, space: Space, stored: bool) -> Sequence[str] | None:
    """The names of a model's columns, where each is that of a feature, or of a category of one."""
    try:
        inputs_of(space, engine.width, engine.names)
    except UnsupportedError:
        if stored:
            return None
        named(engine.names, space, BY_PLACE)
        raise
    return engine.names


def is_proto(model: Any) -> bool:
    return type(model).__name__ == "ModelProto"


def is_catboost(model: Any) -> bool:
    return any(kind.__module__ == "catboost.core" and kind.__name__ == "CatBoost" for kind in type(model).__mro__)


def is_file(path: str | Path) -> bool:
    """Whether a file's name says that another library computes it."""
    return Path(path).suffix.lower() in SUFFIXES


def source_of(model: Any) -> ModelSource | None:
    """A model of another library as a source; None of anything else."""
    if isinstance(model, ModelSource):
        return model
    if is_proto(model) or is_catboost(model) or is_module(model) or (isinstance(model, str | Path) and is_file(model)):
        return ModelSource(model)
    return None
