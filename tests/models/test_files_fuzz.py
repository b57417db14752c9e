"""Whatever a model file holds: a classifier that predicts, or one sentence; trusted pickles included."""

from __future__ import annotations

import io
import pickle
import random
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from support.fuzz import MANY, fuzz, mutated

from harness.core.errors import HarnessError
from harness.core.space import Space
from harness.data.sources import RAW
from harness.library import pose
from harness.models.adopt import from_file
from harness.models.files import PICKLES
from harness.models.runtime.source import SUFFIXES

EXPORTED = Path(__file__).parents[1] / "fixtures" / "exported"
ENDS = (".skops", *PICKLES, *SUFFIXES, ".json", ".ubj", ".txt", "")
MODELS = (
    make_pipeline(StandardScaler(), LogisticRegression()),
    DecisionTreeClassifier(max_depth=3),
    RandomForestClassifier(3, max_depth=3),
    GradientBoostingClassifier(n_estimators=3, max_depth=2),
    HistGradientBoostingClassifier(max_iter=3),
    MLPClassifier((4,), max_iter=5),
)


@cache
def known() -> tuple[Space, pd.DataFrame, tuple[Any, ...], list[tuple[str, bytes]]]:
    """Data, and sound files of models of them, by their endings; others that are no models."""
    rows = pd.read_csv(RAW / "pima.csv").iloc[:120]
    task = pose(rows, "Outcome", DecisionTreeClassifier(max_depth=2).fit(rows.iloc[:, :-1], rows["Outcome"]))
    files = [(path.suffix, path.read_bytes()) for path in sorted(EXPORTED.iterdir()) if path.suffix in SUFFIXES]
    for model in MODELS:
        with warnings.catch_warnings(action="ignore"):
            model.fit(rows.iloc[:, :-1], rows["Outcome"])
        dumped = io.BytesIO()
        joblib.dump(model, dumped)
        files += [(".skops", skops.io.dumps(model)), (".pkl", pickle.dumps(model)), (".joblib", dumped.getvalue())]
    files += [(".json", b'{"learner": {}}'), (".ubj", b"{L\x00\x00"), (".txt", (RAW / "pima.csv").read_bytes()[:2000])]
    dataset = task.dataset
    return dataset.space, dataset.frame, dataset.classes, files


def repacked(draw: random.Random, content: bytes) -> bytes:
    """A skops file whose members are changed, and whose checksums fit."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(packed, "w") as new:
        names = archive.namelist()
        hit = draw.choice((draw.choice(names), "schema.json"))
        for name in names:
            member = archive.read(name)
            if name == hit:
                text = mutated(draw, member.decode(errors="surrogateescape")) if name == "schema.json" else None
                member = flipped(draw, member) if text is None else text.encode(errors="surrogateescape")
            if draw.random() < 0.95:
                new.writestr(name, member)
    return packed.getvalue()


def flipped(draw: random.Random, content: bytes) -> bytes:
    """Some bits turned over."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 4, 32)) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def damaged(draw: random.Random) -> tuple[str, bytes, bool]:
    """A file's ending, its content, and whether it is trusted."""
    files = known()[-1]
    end, content = draw.choice(files)
    other = draw.choice(files)[1]
    start = draw.randrange(len(content))
    match draw.randrange(8):
        case 0:
            content = content[:start]
        case 1 | 2 | 3:
            content = repacked(draw, content) if end == ".skops" and draw.random() < 0.8 else flipped(draw, content)
        case 4:
            content = content[:start] + draw.randbytes(draw.choice((1, 16))) + content[start + draw.choice((0, 16)) :]
        case 5:
            content = content[:start] + other[draw.randrange(len(other)) :]
        case 6:
            content = draw.choice((b"", draw.randbytes(50), other, content * 2))
        case _:
            end = draw.choice(ENDS)
    return end, content, draw.random() < 0.7


def read(case: tuple[str, bytes, bool]) -> None:
    """As the command line reads a model of one's own."""
    end, content, trust = case
    path = Path(f"model{end}")
    path.write_bytes(content)
    space, frame, classes, _ = known()
    try:
        found = from_file(path, space, frame, classes, trust=trust)
    except HarnessError as fault:
        text = str(fault)
        if len(text.splitlines()) != 1 or not 10 < len(text) < 3000:
            raise AssertionError(f"no sentence: {text!r}") from None
        return
    with warnings.catch_warnings(action="ignore"):
        predicted = found.predict(frame)
    assert len(predicted) == len(frame)
    assert np.isin(predicted, classes).all()


@pytest.mark.parametrize("number", [40, *MANY])
def test_any_model_file_is_read_or_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    known()  # before forking
    record_property("cases", fuzz(damaged, read, number))
