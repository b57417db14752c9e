"""Verdicts of numbers of which the answer is worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.reports.verdict import (
    AGREES,
    AS_PRINTED,
    BETTER,
    DIFFERS,
    NOT_RUN,
    UNDECIDED,
    WORSE,
    verdict,
)

BOTH = {"published_se": 3.0, "ours_se": 4.0, "n": 30, "better": "lower"}  # an interval of 1.96 times 5: 9.8
OWN = {"published_se": math.nan, "ours_se": 5.0, "n": 30, "better": "lower"}  # of 9.8, too


@pytest.mark.parametrize(
    ("published", "ours", "more", "word"),
    [
        # As printed: to the decimals of the published number, and two at least.
        (0.85, 0.8549, {}, AS_PRINTED), (0.85, 0.8551, {"better": "lower"}, AGREES),
        (1.0, 1.004, {}, AS_PRINTED), (1.0, 1.006, {}, AGREES), (0.0, 0.004, {}, AS_PRINTED), (0.0, 0.006, {}, DIFFERS),
        (1.2345, 1.23451, {}, AS_PRINTED),
        (5e-05, 5.1e-05, {}, AS_PRINTED), (5e-05, 5.6e-05, {}, DIFFERS), (4.0, 4.0, {"n": 1}, AS_PRINTED),
        # With errors of both: within 9.8, and a quarter of the larger; beyond it undecided; beyond 9.8 different.
        (100.0, 109.7, BOTH, AGREES), (100.0, 109.9, BOTH, WORSE), (100.0, 90.1, BOTH, BETTER),
        (100.0, 109.9, BOTH | {"better": "higher"}, BETTER), (100.0, 90.1, BOTH | {"better": "higher"}, WORSE),
        (100.0, 109.9, BOTH | {"better": ""}, DIFFERS),
        (30.0, 39.7, BOTH, AGREES), (29.0, 38.7, BOTH, UNDECIDED), (-29.0, -38.7, BOTH, UNDECIDED),
        (2.0, -2.0, BOTH, UNDECIDED),
        # With fewer than 20 questions nothing agrees; the paper may have asked fewer.
        (100.0, 105.0, BOTH | {"n": 20}, AGREES), (100.0, 105.0, BOTH | {"n": 19}, UNDECIDED),
        (100.0, 109.9, BOTH | {"n": 19}, WORSE),
        # Without a published error: a tenth of the larger; an interval of ours alone makes the rest undecided.
        (100.0, 111.0, OWN, AGREES), (90.0, 99.9, OWN, AGREES), (100.0, 111.2, OWN, WORSE),
        (50.0, 58.0, OWN, UNDECIDED), (100.0, 105.0, OWN | {"n": 19}, UNDECIDED), (100.0, 105.0, {}, AGREES),
        (100.0, 120.0, {}, DIFFERS),
        # Nothing of ours; texts.
        (1.0, math.nan, {}, NOT_RUN), (1.0, None, {}, NOT_RUN), ("[1, 2)", "", {}, NOT_RUN),
        ("[1, 2)", "[1, 2) ", {}, AS_PRINTED), ("[1, 2)", "[2, 3)", {"better": "lower"}, DIFFERS),
        ("infeasible", "optimal", {}, DIFFERS),
    ],
)  # fmt: skip
def test_a_verdict(published: Any, ours: Any, more: dict[str, Any], word: str) -> None:
    assert verdict({"published": published, "ours": ours, **more}, 30) == word


def test_as_many_questions_as_the_paper_asked_are_enough() -> None:
    row = {"published": 100.0, "ours": 105.0, **BOTH}
    assert [verdict(row | {"n": n}, 5) for n in (4, 5)] == [UNDECIDED, AGREES]
    assert verdict(row | {"n": math.nan}, 30) == AGREES  # what is no mean of questions


def test_one_question_decides_nothing() -> None:
    """Unless the paper asked one, too, or it comes out as printed."""
    row = {"published": 1.0, "ours": 0.2, "better": "higher", "n": 1}
    assert [verdict(row, asked) for asked in (5, 1)] == [UNDECIDED, WORSE]
    assert [verdict(row | {"n": n}, 5) for n in (2, math.nan)] == [WORSE, WORSE]
    assert verdict(row | {"ours": 1.0}, 5) == AS_PRINTED
