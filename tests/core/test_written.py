"""With how many digits numbers are written, so that a model accepts what a reader copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.feature import Feature, Kind
from harness.core.notation import Notation, number
from harness.core.wording import changes, digits_of
from metrics import _example as loans

FACTUAL = loans.factual.to_dict("records")[0]
NONE = {"age": 40}


@pytest.mark.parametrize(
    ("income", "digits", "text"),
    [
        (80.0, 6, "80"),
        (50 + 1 / 3, 6, "50.3333"),
        (50.0000001, 9, "50.0000001"),  # at six digits 50, which is refused
        (50.0000006, 8, "50.000001"),  # as it is rounded upwards
        (np.nextafter(50.0, 100.0), 16, "50.00000000000001"),
    ],
    ids=["whole", "rounded", "near", "upwards", "next"],
)
def test_as_many_digits_as_it_takes(income: float, digits: int, text: str) -> None:
    """The line grants an income of more than 50."""
    row = {**FACTUAL, "income": float(income)}
    assert digits_of(loans.SPACE, [(FACTUAL, row)], loans.linear.valid) == [digits]
    assert changes(loans.SPACE.features, FACTUAL, row, digits) == f"income: 30 → {text}"


def test_what_does_not_change_is_not_rounded() -> None:
    """The person knows it to the last digit; of several rows each has its own digits."""
    near = {**FACTUAL, "income": 50.0000001}
    pairs = [(near, {**near, **NONE}), (FACTUAL, {**near, **NONE}), (FACTUAL, {**FACTUAL, "income": 60.1})]
    assert digits_of(loans.SPACE, pairs, loans.linear.valid) == [6, 9, 6]


def test_the_model_is_asked_about_rounded_numbers_alone() -> None:
    """And once for all rows of as many digits."""
    asked: list[list[Any]] = []

    def valid(frame: pd.DataFrame) -> np.ndarray:
        asked.append(frame["income"].tolist())
        return np.asarray(frame["income"] > 50.00001)

    rows = [{**FACTUAL, "income": income} for income in (51.0, 50.00001234, 50.123456789)]
    assert digits_of(loans.SPACE, [(FACTUAL, row) for row in rows], valid) == [6, 8, 6]
    assert asked == [[50.0, 50.1235], [50.00001], [50.000012]]


@pytest.mark.parametrize(
    ("notation", "value", "digits", "text", "read"),
    [
        (None, 0.123456789, 6, "0.123457", 0.123457),
        (None, 0.123456789, 8, "0.12345679", 0.12345679),
        (Notation(",", ".", places=2, before="€ "), 1234.56789, 6, "€ 1.234,57", 1234.57),
        (Notation(",", ".", places=2, before="€ "), 1234.56789, 9, "€ 1.234,56789", 1234.56789),
        (Notation(",", "."), 0.0000123456789, 8, "1,2345679e-05", 1.2345679e-05),
        (Notation(date="%d.%m.%Y"), 31.0, 6, "01.02.1970", 31.0),
        (Notation(date="%d.%m.%Y"), 1e9, 6, "1000000000 days", 1e9),
    ],
    ids=["six", "eight", "comma", "nine", "small", "date", "beyond"],
)
def test_what_is_written_is_read_as_such(
    notation: Notation | None, value: float, digits: int, text: str, read: float
) -> None:
    feature = Feature("debt", Kind.CONTINUOUS, notation=notation)
    assert feature.text(value, digits) == text
    assert feature.written(value, digits) == read


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (157.50000772, 177.40000772, "157.501 to 177.4"),
        (-42.300000000000004, -0.12345678, "-42.3 to -0.123457"),
        (1234567.5, 7654321.5, "1234570 to 7654320"),
        (4.1, 7.9, "4.1 to 7.9"),
        (1234567.0, 7654321.0, "1234567 to 7654321"),
        (-np.inf, 0.5, "-inf to 0.5"),
        (0.50000001, 0.50000002, ""),
        (0.5, 0.5, ""),
    ],
    ids=["threshold", "negative", "large", "short", "whole", "open", "narrow", "one"],
)
def test_what_is_written_of_an_interval_lies_within(low: float, high: float, text: str) -> None:
    """Of it something is proven, which may be false beside it."""
    assert Feature("glucose", Kind.CONTINUOUS).span(low, high) == text


def test_no_more_digits_than_tell_a_number() -> None:
    """Seventeen would end in those of binary fractions."""
    assert [number(value, 17) for value in (0.1, 0.3, 0.1 + 0.2)] == ["0.1", "0.3", "0.30000000000000004"]
