"""Classes of ours that have moved: model files written before name them by the addresses of then."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

SCHEMA = "schema.json"  # the member of a skops file that names the classes
MOVED = {  # in version 0.1 -> today
    "harness.causality.Formula": "harness.core.equation.Formula",
    "harness.scorecard.Bin": "harness.models.card.Bin",
    "harness.scorecard.Card": "harness.models.card.Card",
    "harness.scorecard.ScorecardClassifier": "harness.models.scorecard.ScorecardClassifier",
    "harness.scorecard.ScorecardRegressor": "harness.models.scorecard.ScorecardRegressor",
    "harness.scorecard.Variable": "harness.models.card.Variable",
    "harness.selection.BestOfGridSearchCV": "harness.models.best_of.BestOfGridSearchCV",
    "harness.torch_mlp.TorchMLPClassifier": "harness.models.torch_mlp.TorchMLPClassifier",
}
_MODULES = {old.rpartition(".")[0].encode() for old in MOVED}


def with_todays_addresses(path: Path) -> Path | io.BytesIO:
    """A skops file, or, where it names classes of ``MOVED``, a copy in memory that names them as they are called today.

    Nothing is built from the file; only exact names of the map are replaced, and all other bytes are kept.
    """
    with zipfile.ZipFile(path) as archive:
        schema = archive.read(SCHEMA)
        if not any(module in schema for module in _MODULES):
            return path
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
            written.writestr(SCHEMA, json.dumps(json.loads(schema, object_hook=_renamed)))
            for name in archive.namelist():
                if name != SCHEMA:
                    written.writestr(name, archive.read(name))
    copy.seek(0)
    return copy


def _renamed(node: dict[str, Any]) -> dict[str, Any]:
    """A node of the schema, by today's address of its class."""
    address = MOVED.get(f"{node.get('__module__')}.{node.get('__class__')}")
    if address is not None:
        node["__module__"], _, node["__class__"] = address.rpartition(".")
    return node
