"""Equal models have equal names, whatever lay in memory where they were made."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from harness.models.canonical import canonical
from harness.models.files import load, save

X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
FOREST = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, X["b"] > 3)


def rewritten(path: Path, other: Path, change: Callable[[bytearray], None]) -> Path:
    """A copy of a model file with the nodes of its first tree changed."""
    with zipfile.ZipFile(path) as read, zipfile.ZipFile(other, "w") as write:
        contents = {name: bytearray(read.read(name)) for name in read.namelist()}
        change(next(content for content in contents.values() if b"'left_child'" in content))
        for name, content in contents.items():
            write.writestr(name, bytes(content))
    return other


def test_bytes_of_no_field_do_not_count(tmp_path: Path) -> None:
    """A node of a tree has 57 bytes, and takes 64: the others are whatever was in memory."""
    save(FOREST, tmp_path / "one.skops")

    def stray(content: bytearray) -> None:
        content[-1] ^= 0xFF

    def threshold(content: bytearray) -> None:
        content[-64 + 24] ^= 0xFF

    digest, held = canonical(tmp_path / "one.skops")
    other = rewritten(tmp_path / "one.skops", tmp_path / "two.skops", stray)
    assert canonical(other) == (digest, held)
    changed = rewritten(tmp_path / "one.skops", tmp_path / "three.skops", threshold)
    assert canonical(changed)[0] != digest
    (tmp_path / "held.skops").write_bytes(held)
    assert canonical(tmp_path / "held.skops")[0] == digest
    assert (load(tmp_path / "held.skops").predict_proba(X) == FOREST.predict_proba(X)).all()
