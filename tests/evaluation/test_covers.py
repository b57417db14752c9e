"""What others serve a group by contradicts what is proven of it, or does not, in cases worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.evaluation.covers import Cover, cheaper

# Of four people three are served by two points: the first two, who change one and two features, and the third.
COVER = Cover(
    "rival",
    {"a": (0, frozenset({"x"})), "b": (0, frozenset({"x", "y"})), "c": (4, frozenset({"z"}))},
)
ASKED = {1: "a", 2: "b", 3: "c", 4: "d", 5: "b"}
LINE: dict[str, Any] = {"factuals": [1, 2, 3], "uncoverable": [], "bound": 2.0, "points": [{}, {}, {}]}
FEWER = "that no fewer than 3 points serve it, and rival serves it by 2"
LESS = "that 3 points change no fewer than 5 features, and rival changes 4"


@pytest.mark.parametrize(
    ("most", "changes", "said"),
    [
        (2, {}, []),
        (2, {"bound": 2.1}, [FEWER]),  # which no whole number below 3 is
        (2, {"bound": 2.0 + 1e-9}, []),  # a solver's rounding
        (2, {"bound": None}, []),
        (1, {"bound": 2.1}, None),  # the first two change two features together
        (math.inf, {"bound": 2.1}, [FEWER]),
        (2, {"bound": 2.1, "factuals": [1, 2, 3, 4]}, None),  # it does not serve the fourth,
        (2, {"bound": 2.1, "factuals": [1, 2, 3, 4], "uncoverable": [4]}, [FEWER]),  # whom nothing serves
        (2, {"bound": 1.5, "factuals": [1, 2]}, [FEWER.replace("3", "2").replace("by 2", "by 1")]),
        (2, {"total_change_bound": 4.0}, []),
        (2, {"total_change_bound": 5.0}, [LESS]),
        (2, {"total_change_bound": 5.0, "points": [{}]}, []),  # of a single point
        (2, {"total_change_bound": 5.0, "points": [{}] * 2}, [LESS.replace("3", "2")]),  # as many as the rival's
        (2, {"factuals": [1, 2, 3, 5], "total_change_bound": 6.0}, []),  # two are alike, and change 2 each: 6 in all
        (2, {"factuals": [1, 2, 3, 5], "total_change_bound": 7.0}, [LESS.replace("5", "7").replace("4", "6")]),
        (2, {"bound": 0.0, "factuals": [], "total_change_bound": 0.0}, None),
    ],
)
def test_what_serves_a_group_contradicts_greater_bounds(
    most: float, changes: dict[str, Any], said: list[str] | None
) -> None:
    assert cheaper(LINE | changes, ASKED, most, COVER) == said
