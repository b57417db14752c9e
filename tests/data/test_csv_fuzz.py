"""Whatever a CSV, the YAML beside it and the settings hold: a sound dataset, or one sentence."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fuzz import NASTY, SECONDS

from harness.core.errors import HarnessError
from harness.data import Dataset
from harness.data.csv_factuals import read_factuals
from harness.data.csv_load import load_settled
from harness.data.csv_report import introduce
from harness.data.csv_settings import settle

cell = st.one_of(
    st.integers(-5, 5).map(str), st.sampled_from(("a", "b", "c")), st.floats().map(str), st.sampled_from(NASTY),
    st.text(max_size=6),
)  # fmt: skip
units = st.sampled_from(("1 %", "2,5 %", "1.200 %", "-3%"))
dates = st.sampled_from(("2020-01-31", "1969-12-01", "2024-02-29 12:00"))
tame = st.sampled_from(("1", "2", "3.5", "-4", "100", "0.25"))
mild = st.sampled_from(
    (tame, units, dates, st.sampled_from(("x", "y")), st.sampled_from(("0", "1")), st.integers().map(str))
)
column_cells = st.sampled_from(
    (tame, st.sampled_from(("x", "y")), st.sampled_from(("0", "1")), st.integers().map(str), cell)
)
name = st.one_of(
    st.sampled_from(("a", "b", "y", "id", "", "a.b", "a=b", "{x}", "=x", "größe", "a b", "y.kind")), st.text(max_size=8)
)
scalar = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), name, st.sampled_from(NASTY))
junk = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(name, inner, max_size=3), max_leaves=6
)
TARGETS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {}, {}, {"desired": "q"}, {"desired": "yes"}, {"desired": 1}, {"desired": "2..3", "task": "regression"},
)  # fmt: skip
LIMITS = {"max_megabytes": 0.1, "max_categories": 30}


@st.composite
def tables(draw: st.DrawFn, header: list[str] | None = None, height: int = 0) -> bytes:
    """Mostly well-formed tables with a target y, in some encoding and dialect."""
    width = 4 if header else draw(st.integers(1, 4))
    rows_of = range(draw(st.integers(height, 30)))
    names = header or draw(st.just(["y", "a", "b", "c"][:width]) | st.lists(name, min_size=width, max_size=width))
    kinds = [st.sampled_from(draw(st.sampled_from((("no", "yes"), ("0", "1"), ("p", "q", "r"), ("1.5", "2")))))]
    kinds += [draw(st.one_of(mild, column_cells) if header else column_cells) for _ in range(width - 1)]
    rows = [names, *([draw(kind) for kind in kinds] for _ in rows_of)]
    sep = draw(st.sampled_from((",", ";", "\t", "|")))
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    quote = draw(st.booleans())

    def written(text: str) -> str:
        doubled = text.replace('"', '""')
        return f'"{doubled}"' if quote else text

    text = end.join(sep.join(map(written, row)) for row in rows) + end
    encoding = "utf-8" if header else draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-16-le")))
    return text.encode(encoding, errors="replace")


attributes = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(("continuous", "integer", "binary", "ordinal", "categorical", "int")),
        "actionability": st.sampled_from(("free", "immutable", "increase", "decrease", "conditional", "up")),
        "bounds": st.lists(st.one_of(st.none(), st.integers(-9, 9), st.floats()), max_size=3),
        "special": st.lists(st.one_of(st.integers(-3, 3), st.floats()), max_size=2),
        "categories": st.lists(scalar, max_size=4),
        "order": st.lists(scalar, max_size=3),
        "decimal": st.sampled_from((".", ",", "x")),
        "thousands": st.sampled_from((".", ",", " ", "'")),
        "format": st.sampled_from(("%d.%m.%Y", "%Y", "%d", "%%", "%d.%m.%y")),
    },
)
given_settings = st.fixed_dictionaries(
    {},
    optional={
        "target": st.one_of(st.just("y"), scalar),
        "desired": st.one_of(st.sampled_from(("yes", "no", "0", "opposite", ">= 1", "1..2")), junk),
        "immutable": st.one_of(st.lists(st.sampled_from("abc"), max_size=2), junk),
        "drop": st.one_of(st.lists(st.sampled_from("abc"), max_size=2), junk),
        "missing": st.sampled_from(("error", "drop", "median", "mean", "most_frequent", "category", 0, "modal")),
        "features": st.one_of(st.dictionaries(st.sampled_from("abc"), attributes, max_size=3), junk),
        "causality": st.one_of(
            st.dictionaries(
                st.sampled_from("abc"),
                st.fixed_dictionaries(
                    {}, optional={"formula": st.sampled_from(("0.5 * a", "a +", "b == 'x'", "(" * 300, "1e999 * b")),
                                  "parents": junk, "learn": junk}
                ),
                max_size=2,
            ),
            junk,
        ),
        "label": st.one_of(
            st.fixed_dictionaries(
                {"column": st.just("y"), "classes": st.dictionaries(name, st.lists(scalar, max_size=3), max_size=3)}
            ),
            junk,
        ),
        "classes": st.one_of(st.sampled_from((["no", "yes"], ["yes", "no"], [1, 0])), junk),
        "task": st.sampled_from(("classification", "regression", "ranking")),
        "empty": junk,
        "outliers": st.one_of(st.floats(0, 4), junk),
        "unbounded": st.one_of(st.booleans(), junk),
        "sep": st.one_of(st.sampled_from((",", ";", "tab", "a", '"', "\n", " ")), junk),
        "decimal": st.one_of(st.sampled_from((".", ",")), junk),
        "thousands": st.one_of(st.sampled_from((".", ",", " ")), junk),
        "encoding": st.one_of(st.sampled_from(("utf-8", "latin-1", "utf-16", "zlib", "idna", "rot13")), junk),
        "na": st.one_of(st.lists(st.sampled_from(NASTY), max_size=2), junk),
        "names": st.one_of(st.just(["y", "a", "b", "c"]), junk),
    },
)  # fmt: skip
splits = st.one_of(
    st.sampled_from(("none", "files", None, {"test_size": 0.5}, {"stratify": False}, {"seed": 3, "test_size": 0.1})),
    junk,
)


def sidecar_text(draw: st.DrawFn) -> bytes | None:
    """Nothing, YAML of settings, lines of text, or any bytes."""
    import yaml

    match draw(st.integers(0, 9)):
        case 0:
            return yaml.safe_dump(draw(given_settings), allow_unicode=True).encode(errors="replace")
        case 1:
            return draw(st.text(alphabet="ab: -[]{}&*!|>%@`'\"\n#,?~<$", max_size=40)).encode()
        case 2:
            return draw(st.binary(max_size=40))
    return None


sound = st.fixed_dictionaries(
    {"target": st.just("y")},
    optional={
        "immutable": st.just(["a"]),
        "drop": st.just(["b"]),
        "missing": st.sampled_from(("drop", "median", "category")),
        "unbounded": st.booleans(),
        "na": st.just([]),
    },
)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Half of them mostly sound, so that much of the loader is reached."""
    if draw(st.booleans()):
        parts: dict[str, Any] = {
            "content": draw(tables(["y", "a", "b", "c"], height=8)),
            "given": {**draw(sound), **draw(st.sampled_from(TARGETS))},
            "features": draw(
                st.just({}) | st.just({}) | st.dictionaries(st.sampled_from("abc"), attributes, max_size=1)
            ),
        }
    else:
        content = st.one_of(tables(), st.binary(max_size=60), st.text(max_size=60).map(encoded))
        features = st.one_of(st.just({}), st.dictionaries(st.sampled_from("abc"), attributes, max_size=2), junk)
        extra = draw(st.dictionaries(name, junk, max_size=1))
        parts = {"content": draw(content), "given": {**draw(given_settings), **extra}, "features": draw(features)}
        parts |= {"beside": sidecar_text(draw), "split": draw(st.one_of(st.just({}), splits))}
    return {"beside": None, "split": {}, "people": draw(st.one_of(st.none(), tables())), **parts}


def encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def one_line(fault: HarnessError) -> None:
    text = str(fault)
    assert len(text.splitlines()) == 1, text
    assert 10 < len(text) < 2000
    assert text.endswith((".", ".)"))


def is_sound(dataset: Dataset) -> None:
    """It has points of its space only, which encoding and decoding give back, and disjoint parts with known labels."""
    space, frame = dataset.space, dataset.frame
    space.check(frame)
    encoded = space.encode(frame)
    assert np.isfinite(encoded).all()
    decoded = space.decode(encoded)
    assert (decoded.dtypes == frame.dtypes).all()
    for feature in space.features:
        values, again = frame[feature.name].to_numpy(), decoded[feature.name].to_numpy()
        if feature.kind == "continuous":
            size = np.maximum(np.abs(values), max(map(abs, feature.scale)))
            assert (np.abs(values - again) <= 4 * np.spacing(size)).all(), feature
        else:
            assert (values == again).all(), feature
    assert set(dataset.train) | set(dataset.test) == set(range(len(frame)))
    whole = np.array_equal(dataset.train, dataset.test)
    assert whole or not set(dataset.train) & set(dataset.test)
    assert len(dataset.train)
    assert len(dataset.test)
    if dataset.classes:
        assert set(dataset.labels) == set(dataset.classes)
        assert len(dataset.classes) > 1
    else:
        assert np.isfinite(dataset.labels).all()


def check(case: dict[str, Any]) -> str:
    """Load a case; what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(case["content"])
        if case["beside"] is not None:
            path.with_suffix(".yaml").write_bytes(case["beside"])
        try:
            settled, origins = settle({**case["given"], "path": str(path), **LIMITS}, case["features"])
            dataset = load_settled(settled, case["split"] or {"test_size": 0.25})
        except HarnessError as fault:
            one_line(fault)
            return "error"
        is_sound(dataset)
        assert introduce(dataset, origins).count("\n") == len(dataset.space.features) + 1
        people = Path(folder) / "people.csv"
        people.write_bytes(case["people"] if case["people"] is not None else case["content"])
        try:
            frame = read_factuals(dataset, people)
        except HarnessError as fault:
            one_line(fault)
            return "dataset"
        assert (frame.dtypes == dataset.frame.dtypes).all()
        assert np.isfinite(dataset.space.encode(frame)).all()
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)
        return "people"


EASY = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.filterwarnings("error")
@given(cases())
@settings(max_examples=150, derandomize=True, **EASY)
def test_anything_is_a_dataset_or_a_sentence(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_anything_at_length(record_property: Callable[[str, object], None]) -> None:
    """As many cases as there are seconds for are tried, and told."""
    began, tried = time.monotonic(), 0

    @given(cases())
    @settings(max_examples=10_000, **EASY)
    def ask(case: dict[str, Any]) -> None:
        nonlocal tried
        if time.monotonic() - began < SECONDS:
            tried += 1
            check(case)

    ask()
    record_property("cases", tried)
