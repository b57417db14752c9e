"""The harness. ``methods`` and ``metrics`` are the packages beside it, whatever else lies in the working directory."""

import sys as _sys
from importlib.machinery import PathFinder as _PathFinder
from importlib.util import module_from_spec as _module_from_spec
from pathlib import Path as _Path

for _name in ("methods", "metrics"):
    _own = _PathFinder.find_spec(_name, [str(_Path(__file__).parents[1])])
    assert _own is not None
    assert _own.loader is not None  # both are installed with the harness
    if _name not in _sys.modules:
        _sys.modules[_name] = _module_from_spec(_own)
        _own.loader.exec_module(_sys.modules[_name])
    elif _Path(_found := _sys.modules[_name].__file__ or "").resolve() != _Path(_own.origin or "").resolve():
        raise ImportError(f"{_found} hides the package {_name!r} of ce-harness; rename it, or import harness first.")
