"""Model files of version 0.1 are read: our classes lay elsewhere then."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.errors import HarnessError
from harness.models.addresses import MOVED, with_todays_addresses
from harness.models.files import load, save
from harness.models.scorecard import ScorecardClassifier
from harness.models.torch_mlp import TorchMLPClassifier

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"


def expected(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


def node(address: str, **rest: Any) -> dict[str, Any]:
    module, _, kind = address.rpartition(".")
    return {"__module__": module, "__class__": kind, "__loader__": "ObjectNode", **rest}


def archive(path: Path, schema: dict[str, Any], **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps({"protocol": 2, "_skops_version": "0.16", "__id__": 1, **schema}))
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def test_a_scorecard_of_version_0_1_predicts_as_it_did() -> None:
    """Saved by the code of then; probabilities and points are those that it gave."""
    model, known = load(FIXTURES / "scorecard_0_1.skops"), expected("scorecard_0_1")
    assert type(model) is ScorecardClassifier
    rows = pd.DataFrame(known["rows"]).astype({"city": object})
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], known["probability"], rtol=1e-12)
    np.testing.assert_allclose(model.card_.points(model.card_.bins(rows)), known["points"], rtol=1e-12)


def test_a_torch_network_of_version_0_1_predicts_as_it_did() -> None:
    """Reading one does not need torch."""
    model, known = load(FIXTURES / "torch_mlp_0_1.skops"), expected("torch_mlp_0_1")
    assert type(model) is TorchMLPClassifier
    np.testing.assert_allclose(model.predict_proba(known["rows"])[:, 1], known["probability"], rtol=1e-12)


@pytest.mark.parametrize("name", ["scorecard_0_1", "torch_mlp_0_1"])
def test_a_file_saved_again_names_todays_addresses(name: str, tmp_path: Path) -> None:
    """So it is read as it is."""
    path = tmp_path / "model.skops"
    save(load(FIXTURES / f"{name}.skops"), path)
    assert with_todays_addresses(path) is path
    assert type(load(path)) is type(load(FIXTURES / f"{name}.skops"))


@pytest.mark.parametrize("old", MOVED)
def test_every_moved_class_is_where_the_map_says(old: str, tmp_path: Path) -> None:
    """At any depth of the schema; the other members keep their bytes."""
    module, _, kind = MOVED[old].rpartition(".")
    assert getattr(importlib.import_module(module), kind).__module__ == module
    path = archive(tmp_path / "model.skops", node("sklearn.pipeline.Pipeline", content={"steps": [node(old)]}), a=b"1")
    source = with_todays_addresses(path)
    assert isinstance(source, io.BytesIO)
    with zipfile.ZipFile(source) as file:
        schema, member = json.loads(file.read("schema.json")), file.read("a.npy")
    assert schema["content"]["steps"] == [node(MOVED[old])]
    assert (schema["__module__"], schema["protocol"], member) == ("sklearn.pipeline", 2, b"1")


@pytest.mark.parametrize("name", ["OptBinned", "os", "read_card"])
def test_other_names_of_a_moved_module_are_refused(name: str, tmp_path: Path) -> None:
    """The map renames its own classes and trusts nothing more."""
    with zipfile.ZipFile(FIXTURES / "scorecard_0_1.skops") as file:
        schema = json.loads(file.read("schema.json")) | {"__class__": name}
        members = {Path(part).stem: file.read(part) for part in file.namelist() if part != "schema.json"}
    with pytest.raises(HarnessError, match=rf"types that are not trusted: .*harness\.scorecard\.{name}"):
        load(archive(tmp_path / "model.skops", schema, **members))
