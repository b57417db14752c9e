"""Shims for CARLA's code of 2021 on a present-day Python, in place only while it is imported or runs.

Nothing here changes what a method computes, except where the published code cannot end, depends on chance outside
its seeds, or clamps a copy (``eager.Clamped``); such places say so.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import logging.config
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.packages import CLONED
from harness.models import torch_mlp
from methods import wrapping
from methods.estimators.gradients import warm

# pip would obey the pins of 2021 (TensorFlow 1.14), which pyproject.toml replaces for uv; it is to take these alone.
PARTS = "carla-recourse==0.0.5 lime==0.2.0.1 recourse==1.0.0 mip==2.0.0 causalgraphicalmodels==0.0.4 graphviz networkx"
ABSENT = f"CARLA is not installed; run `{'uv sync --group carla' if CLONED else f'pip install --no-deps {PARTS}'}`."
# None of the methods run here computes with these, but CARLA imports all of its methods at once. FOCUS needs a few of
# TensorFlow's functions, which ``eager.py`` gives it while it runs.
STAND_INS = ("tensorflow", "keras", "torchvision", "seaborn", "recourse.cplex_helper")
OPTIONAL = ("torch",)  # a stand-in only where it is not installed
CATALOG = "carla.recourse_methods.catalog"
FILES = "CF_MODELS"  # the environment variable that tells CARLA where its autoencoders are kept

_deadline: ContextVar[Deadline | None] = ContextVar("carla_deadline", default=None)


def installed() -> bool:
    """Whether the library can be imported at all."""
    return importlib.util.find_spec("carla") is not None


def check_clock() -> None:
    """Raise ``LateError`` where code of the library is running and its deadline has passed."""
    wrapping.check_clock(_deadline.get())


@cache
def library() -> SimpleNamespace:
    """CARLA's classes and functions by name, imported behind the shims, which are gone when this returns.

    Raises
    ------
    ModuleNotFoundError
        Where CARLA is not installed.
    """
    with wrapping.old_pandas(), np.errstate(all="ignore"), _import_shims():
        modules = {name: importlib.import_module(path) for name, path in _PATHS.items()}
    found = {name: getattr(modules[path], name) for path, names in _NAMES.items() for name in names}
    return SimpleNamespace(**found, modules=modules)


_PATHS = {
    "data": "carla.data.api",
    "models": "carla.models.api",
    "catalog": "carla.models.catalog.catalog",
    "xgboost": "carla.models.catalog.parse_xgboost",
    "distances": "carla.evaluation.distances",
    "spheres": f"{CATALOG}.growing_spheres.model",
    "spheres_search": f"{CATALOG}.growing_spheres.library.gs_counterfactuals",
    "face": f"{CATALOG}.face.model",
    "face_search": f"{CATALOG}.face.library.face_method",
    "recourse": f"{CATALOG}.actionable_recourse.model",
    "tweak": f"{CATALOG}.feature_tweak.model",
    "dice": f"{CATALOG}.dice.model",
    "dice_errors": "raiutils.exceptions",
    "wachter": f"{CATALOG}.wachter.model",
    "wachter_search": f"{CATALOG}.wachter.library.wachter",
    "cchvae": f"{CATALOG}.cchvae.model",
    "revise": f"{CATALOG}.revise.model",
    "cruds": f"{CATALOG}.crud.model",
    "clue": f"{CATALOG}.clue.model",
    "clue_nets": f"{CATALOG}.clue.library.clue_ml.src.utils",
    "focus": f"{CATALOG}.focus.model",
    "focus_distances": f"{CATALOG}.focus.distances",
    "trees": "carla.models.catalog.trees",
    "causal": f"{CATALOG}.causal_recourse.model",
    "causal_sampler": f"{CATALOG}.causal_recourse.sampler",
    "causal_samplers": f"{CATALOG}.causal_recourse.samplers",
    "causal_constraints": f"{CATALOG}.causal_recourse.constraints",
    "causal_model": "carla.data.causal_model.causal_model",
    "equations": "carla.data.load_scm.load_scm",
    "builder": "recourse.builder",
    "flipset": "recourse.flipset",
    "mip": "mip",
}
_NAMES = {
    "data": ("Data",),
    "models": ("MLModel",),
    "catalog": ("MLModelCatalog",),
    "spheres": ("GrowingSpheres",),
    "face": ("Face",),
    "recourse": ("ActionableRecourse",),
    "tweak": ("FeatureTweak",),
    "dice": ("Dice",),
    "dice_errors": ("UserConfigValidationException",),
    "wachter": ("Wachter",),
    "cchvae": ("CCHVAE",),
    "revise": ("Revise",),
    "cruds": ("CRUD",),
    "clue": ("Clue",),
    "focus": ("FOCUS",),
    "causal": ("CausalRecourse",),
    "causal_sampler": ("Sampler",),
    "causal_samplers": ("sample_true_m0",),
    "causal_constraints": ("point_constraint",),
    "causal_model": ("CausalModel",),
}


@contextlib.contextmanager
def running(rng: np.random.Generator, deadline: Deadline | None = None) -> Iterator[None]:
    """Within, code of the library runs patched, silent and with seeded generators; all is restored afterwards."""
    token = _deadline.set(deadline)
    try:
        with wrapping.old_pandas(), np.errstate(all="ignore"), _patched(_patches()), _seeded(rng):
            yield
    finally:
        _deadline.reset(token)


@cache
def _patches() -> list[tuple[Any, str, Any]]:
    """Objects of the library, the attributes that are replaced while it runs, and by what."""
    modules = library().modules
    numpy = _OldNumpy()
    old = ("face_search", "xgboost", "distances", "causal", "causal_sampler", "builder", "flipset")
    patches = [(modules[name], "np", numpy) for name in old]
    return [
        *patches,
        (modules["spheres_search"], "set", _Ordered),  # else columns are in the order of Python's hashes
        (modules["face_search"], "kneighbors_graph", _one_thread(modules["face_search"].kneighbors_graph)),
        (modules["face_search"], "radius_neighbors_graph", _one_thread(modules["face_search"].radius_neighbors_graph)),
        (
            modules["tweak"].FeatureTweak,
            "esatisfactory_instance",
            _timed(modules["tweak"].FeatureTweak.esatisfactory_instance),
        ),
        (modules["trees"], "get_prob_classification_tree", _timed(modules["trees"].get_prob_classification_tree)),
        (modules["builder"], "Model", _mip_model(modules["mip"])),
        (modules["builder"].RecourseBuilder, "_default_print_flag", False),
        (modules["flipset"].Flipset, "_add_to_df", lambda *_: None),  # a table for readers, by a removed pandas method
        *_one_by_one(modules["flipset"].Flipset),
        *_torch_patches(modules),
    ]


def _torch_patches(modules: dict[str, ModuleType]) -> list[tuple[Any, str, Any]]:
    """Patches of code for torch 1.7 and TensorFlow; none where torch is not installed."""
    if not torch_mlp.installed():
        return []
    from methods.carla import eager  # imports torch, which is optional

    warm()
    return [
        *((modules[name], "tf", eager.tensorflow) for name in ("focus", "focus_distances", "trees")),
        (modules["focus"], "tfe", eager),
        (modules["wachter_search"], "optim", SimpleNamespace(Adam=eager.Clamped)),
        (modules["clue_nets"], "torch", eager.OldTorch()),
        (modules["clue_nets"].BaseNet, "get_nb_parameters", lambda net: 0),  # for its log; by a removed way to sum
    ]


@contextlib.contextmanager
def workshop() -> Iterator[None]:
    """A new folder for the files of CARLA's autoencoders, whose names depend on neither model nor seed."""
    kept = os.environ.get(FILES)
    with tempfile.TemporaryDirectory(prefix="carla-") as folder:
        os.environ[FILES] = folder
        try:
            yield
        finally:
            del os.environ[FILES]
            if kept is not None:
                os.environ[FILES] = kept


def _one_by_one(flipset: type) -> list[tuple[Any, str, Any]]:
    """Patches of a flipset that find items one by one, in the same order: CARLA takes the first valid one."""
    populate = flipset.populate  # type: ignore[attr-defined]

    def begin(self: Any, total_items: int, **options: Any) -> Any:
        self.remaining = total_items - 1
        return populate(self, total_items=1, **options)

    def actions(self: Any) -> Iterator[np.ndarray]:
        yield from (item["actions"] for item in self._items)
        known = len(self._items)
        while known and self.remaining > 0:
            self.remaining -= 1
            populate(self, total_items=1)
            if len(self._items) == known:
                return
            known = len(self._items)
            yield self._items[-1]["actions"]

    return [(flipset, "populate", begin), (flipset, "actions", property(actions))]


class _OldNumpy:
    """numpy with the names that version 2 has no more."""

    int = int
    float = float
    float_ = np.float64
    infty = np.inf
    NaN = np.nan

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _Ordered(list[Any]):
    """The part of a set that the library uses, in the order given."""

    def __sub__(self, other: Iterable[Any]) -> _Ordered:
        left_out = list(other)
        return _Ordered(item for item in self if item not in left_out)


def _one_thread(graph: Callable[..., Any]) -> Callable[..., Any]:
    """The graph function on one core; the library would take all."""
    return _timed(lambda *args, n_jobs=None, **options: graph(*args, **options))


def _timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a loop in which the library asks the model seldom or never, with a look at the clock before."""

    def timed(*args: Any, **options: Any) -> Any:
        check_clock()
        return function(*args, **options)

    return timed


def _mip_model(mip: ModuleType) -> type:
    """Python-MIP's model for the recourse package, solved by HiGHS within the remaining time.

    The package's special ordered sets restate its "exactly one" constraints, and HiGHS takes none.
    """

    class Model(mip.Model):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__(solver_name="HIGHS")
            self.verbose = 0
            self.threads = 1

        def add_sos(self, *_: Any, **__: Any) -> None:
            return

        @property
        def max_seconds(self) -> float:
            return float(mip.Model.max_seconds.fget(self))

        @max_seconds.setter
        def max_seconds(self, seconds: float) -> None:
            if np.isfinite(seconds):
                mip.Model.max_seconds.fset(self, seconds)

        def optimize(self, *args: Any, **options: Any) -> Any:
            check_clock()
            deadline = _deadline.get()
            if deadline is not None:
                self.solver._lib.Highs_zeroAllClocks(self.solver._model)  # or earlier items' seconds count, too
                self.max_seconds = max(deadline.left, 1e-3)
            return super().optimize(*args, **options)

    return Model


@contextlib.contextmanager
def _patched(patches: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Attributes replaced within; those that were not there before are gone afterwards."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in patches:
            if name in vars(owner):
                stack.callback(setattr, owner, name, vars(owner)[name])
            else:
                stack.callback(delattr, owner, name)
            setattr(owner, name, value)
        yield


@contextlib.contextmanager
def _seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed every global generator that the library may draw from, torch's among them, and restore their states."""
    torch = sys.modules.get("torch")
    state = None if torch is None else torch.get_rng_state()
    with wrapping.seeded(rng):
        seed = int(rng.integers(2**32))
        try:
            if torch is not None:
                torch.manual_seed(seed)
            yield
        finally:
            if torch is not None:
                torch.set_rng_state(state)


@contextlib.contextmanager
def _import_shims() -> Iterator[None]:
    """Within, the library's imports work; afterwards no stand-in is left among the modules."""
    names = (*STAND_INS, *(name for name in OPTIONAL if importlib.util.find_spec(name) is None))
    finder = _Finder(names)
    kept = {name: module for name, module in sys.modules.items() if finder.covers(name)}
    columns = pd.get_option("display.max_columns")  # the recourse package sets it
    patches = [(collections, "Iterable", Iterable), (logging.config, "dictConfig", lambda *_: None)]
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        with _patched(patches):
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.covers(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        pd.set_option("display.max_columns", columns)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each of the names and for everything below them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def covers(self, name: str) -> bool:
        return any(name == known or name.startswith(f"{known}.") for known in self.names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if self.covers(fullname) else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        vars(module)["DEFAULT_CPLEX_PARAMETERS"] = {}  # read as a mapping when recourse is imported
        return module

    def exec_module(self, module: ModuleType) -> None:
        return


class _Nested(type):
    """A class whose every public attribute is again such a class: to inherit from, to annotate and to decorate with."""

    def __getattr__(cls, name: str) -> Any:
        return _within(cls, name, cls.__module__)


def _within(owner: Any, name: str, module: str) -> Any:
    """The class of a public name in a stand-in, made at its first use."""
    if name.startswith("__"):
        raise AttributeError(name)
    made = _Nested(name, (_Anything,), {"__module__": module})
    setattr(owner, name, made)
    return made


class _Anything(metaclass=_Nested):
    """An instance, called as a decorator, gives the function back."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if args else None


class _StandIn(ModuleType):
    """A module in which every public name is a class of its own."""

    def __getattr__(self, name: str) -> Any:
        return _within(self, name, self.__name__)
