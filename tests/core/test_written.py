"""With how many digits numbers are written, so that a model accepts what a reader copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.feature import Feature, Kind
from harness.core.notation import Notation, number
from harness.core.wording import changes, legible
from metrics import _example as loans

FACTUAL = loans.factual.to_dict("records")[0]


def told(factual: Mapping[str, Any], **changed: Any) -> str:
    """What a reader is told of one counterfactual of the line, which grants an income of more than 50."""
    (row,) = legible(loans.SPACE, [(factual, {**factual, **changed})], loans.linear.valid)
    return changes(loans.SPACE.features, factual, row)


@pytest.mark.parametrize(
    ("income", "text"),
    [
        (80.0, "80"),
        (50 + 1 / 3, "50.3333"),  # to the nearest, although that is nearer to the factual
        (50.0000001, "50.0001"),  # the nearest of six digits is 50, which is refused
        (np.nextafter(50.0, 100.0), "50.0001"),
        (1e-9, "1e-09"),
        (99.99999999, "100"),
    ],
    ids=["whole", "rounded", "near", "next", "invalid", "bound"],
)
def test_what_is_told_is_accepted(income: float, text: str) -> None:
    """To the nearest number of six digits, or else away from the factual."""
    assert told(FACTUAL, income=float(income)) == f"income: 30 → {text}"


def test_from_above_numbers_are_rounded_down() -> None:
    """A third of the way to 50 from 60, and from the other side with as many digits as it takes within a bound."""

    def below(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(frame["income"] < 50)

    pairs = [({**FACTUAL, "income": 60.0}, {**FACTUAL, "income": income}) for income in (49.99999999, 49.123456789)]
    assert [row["income"] for row in legible(loans.SPACE, pairs, below)] == [49.9999, 49.1235]


def test_more_digits_where_six_are_refused_on_either_side() -> None:
    """Incomes within an interval that has no number of six digits; the last is told in full."""

    def narrow(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray((frame["income"] > 50.00001) & (frame["income"] < 50.00002))

    rows = [50.000012345, 50.0000100001, float(np.nextafter(50.00001, 100.0))]
    pairs = [(FACTUAL, {**FACTUAL, "income": income}) for income in rows]
    assert [row["income"] for row in legible(loans.SPACE, pairs, narrow)] == [50.000012, 50.000011, 50.000011]


def test_what_does_not_change_is_not_rounded() -> None:
    """The person knows it to the last digit; of several rows each has its own digits."""
    near = {**FACTUAL, "income": 50.0000001}
    pairs = [(near, {**near, "age": 40}), (FACTUAL, {**near, "age": 40}), (FACTUAL, {**FACTUAL, "income": 60.1})]
    assert [row["income"] for row in legible(loans.SPACE, pairs, loans.linear.valid)] == [50.0000001, 50.0001, 60.1]


def test_what_is_rounded_stays_a_change_and_within_its_bounds() -> None:
    """Here of a factual at 50.3333, and of a bound that 50 is beyond, the nearest number of up to eight digits."""
    third = 50 + 1 / 3
    assert told({**FACTUAL, "income": 50.3333}, income=third) == "income: 50.3333 → 50.333333333333336"
    income = replace(loans.SPACE["income"], bounds=(0.0, 49.9999996))
    space = replace(loans.SPACE, features=(income, *loans.SPACE.features[1:]))
    (row,) = legible(space, [(FACTUAL, {**FACTUAL, "income": 49.99999951})], lambda frame: np.ones(len(frame), bool))
    assert row["income"] == 49.9999995


def test_relations_hold_of_what_is_told() -> None:
    """Of six digits 50 is refused, and 50.0001 is more than the relation lets it be."""
    space = replace(loans.SPACE, constraints=("income <= 50.00005",))
    (row,) = legible(space, [(FACTUAL, {**FACTUAL, "income": 50.0000451})], loans.linear.valid)
    assert row["income"] == 50.00005


def test_the_model_is_asked_about_rounded_numbers_alone() -> None:
    """And once for all rows of as many digits."""
    asked: list[list[Any]] = []

    def valid(frame: pd.DataFrame) -> np.ndarray:
        asked.append(frame["income"].tolist())
        return np.asarray(frame["income"] > 50.00001)

    rows = [{**FACTUAL, "income": income} for income in (51.0, 50.00001234, 50.123456789)]
    found = legible(loans.SPACE, [(FACTUAL, row) for row in rows], valid)
    assert [row["income"] for row in found] == [51.0, 50.0001, 50.1235]
    assert asked == [[50.0, 50.1235], [50.0001]]


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
