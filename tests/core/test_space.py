"""The space of features: encoding and back, what may be reached from a factual, and what is no point of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from harness.core.errors import DatasetError
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.tolerances import COORDINATE_TIE
from harness.evaluation.checker import exists, permitted

settings.register_profile("space", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("space")

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
WHOLE = st.integers(-(10**6), 10**6)
LEVELS = st.lists(st.text(min_size=1, max_size=3) | st.integers(-5, 5), min_size=1, max_size=5, unique=True)
DIRECTIONS = [kind for kind in Actionability if kind is not Actionability.CONDITIONAL]


@st.composite
def features(draw: st.DrawFn, name: str) -> Feature:
    """A feature of any kind, with any actionability that fits."""
    kind = draw(st.sampled_from(Kind))
    if kind in {Kind.CONTINUOUS, Kind.INTEGER}:
        ends = NUMBERS if kind is Kind.CONTINUOUS else WHOLE
        scale, bounds = (tuple(sorted(draw(st.tuples(ends, ends)))) for _ in range(2))
        assume(scale[0] == scale[1] or scale[1] - scale[0] > 1e-3)
        special = tuple(code for code in draw(st.lists(WHOLE, max_size=2)) if not bounds[0] <= code <= bounds[1])
        return Feature(name, kind, (), scale, bounds, draw(st.sampled_from(DIRECTIONS)), special=special)
    levels = tuple(draw(LEVELS))[: 2 if kind is Kind.BINARY else None]
    free = [Actionability.FREE, Actionability.IMMUTABLE, Actionability.CONDITIONAL]
    actionability = draw(st.sampled_from(free if kind is Kind.CATEGORICAL else list(Actionability)))
    order = tuple(draw(st.permutations(levels)))[: draw(st.integers(1, len(levels)))]
    special = tuple(draw(st.lists(st.sampled_from(levels), max_size=1))) if kind is Kind.CATEGORICAL else ()
    return Feature(name, kind, levels, actionability=actionability, order=order, special=special)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    return Space(tuple(draw(features(f"f{number}")) for number in range(draw(st.integers(1, 5)))))


def values(feature: Feature) -> st.SearchStrategy[Any]:
    """Values that exist, within the bounds and beyond them."""
    if not feature.numeric:
        return st.sampled_from(feature.categories)
    ends = st.sampled_from([*feature.scale, *feature.bounds, *map(float, feature.special)])
    return ends.map(int) | WHOLE if feature.kind is Kind.INTEGER else ends | NUMBERS


def rows(space: Space) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({feature.name: values(feature) for feature in space.features})


def nudged(value: float, ulps: int) -> float:
    """How far ``ulps`` floats reach from a value."""
    return ulps * float(np.spacing(abs(value)))


@given(st.data())
def test_decoding_undoes_encoding(data: st.DataObject) -> None:
    """Integers and categories come back exactly, floats within 4 ulp of the largest number on the way."""
    space = data.draw(spaces())
    frame = space.frame(data.draw(st.lists(rows(space), min_size=1, max_size=4)))
    decoded = space.decode(space.encode(frame))
    assert (decoded.dtypes == frame.dtypes).all()
    for feature in space.features:
        before, after = frame[feature.name].tolist(), decoded[feature.name].tolist()
        if feature.kind is Kind.CONTINUOUS:
            for old, new in zip(before, after, strict=True):
                assert abs(old - new) <= nudged(max(abs(old), abs(feature.scale[0]), abs(feature.scale[1])), 4)
        else:
            assert after == before


@given(st.data())
def test_snapping_is_idempotent(data: st.DataObject) -> None:
    """What ``encode(decode(z))`` makes of any scaled point stays put when done again."""
    space = data.draw(spaces())
    width = len(space.columns)
    z = np.array([data.draw(st.lists(st.floats(-0.5, 1.5), min_size=width, max_size=width))])
    once = space.encode(space.decode(z))
    np.testing.assert_allclose(space.encode(space.decode(once)), once, rtol=0, atol=1e-9)


@given(st.data())
def test_unchanged_features_are_the_factuals_own(data: st.DataObject) -> None:
    """Decoding beside a factual gives back its own value, bit for bit, wherever nothing moved."""
    space = data.draw(spaces())
    factual = space.frame([data.draw(rows(space))])
    z = space.encode(factual) + data.draw(st.floats(-COORDINATE_TIE / 2, COORDINATE_TIE / 2))
    decoded = space.decode(z, like=factual)
    pd.testing.assert_frame_equal(decoded, factual, check_exact=True)


@given(st.data())
def test_reach_and_violations_agree_with_the_checker(data: st.DataObject) -> None:
    """``interval``, ``reachable``, ``reach`` and ``violations`` allow what ``check.permitted`` allows, nothing else."""
    space = data.draw(spaces())
    factual = space.frame([data.draw(rows(space))])
    frame = space.frame([data.draw(rows(space))])
    origin, row = factual.iloc[0].to_dict(), frame.iloc[0].to_dict()
    for feature in space.features:
        if feature.numeric and row[feature.name] != origin[feature.name]:
            ends = [*feature.bounds, origin[feature.name]]
            near = [end for end in ends if 0 < abs(row[feature.name] - end) <= 2 * COORDINATE_TIE * feature.range]
            assume(not near)  # at this distance the two round in their own ways
    allowed = {f.name: permitted(f, origin[f.name], row[f.name]) for f in space.features}
    assert space.violations(factual, frame) == [[name for name, ok in allowed.items() if not ok]]
    low, high = space.reach(factual)
    encoded = space.encode(frame)[0]
    inside = (low - COORDINATE_TIE <= encoded) & (encoded <= high + COORDINATE_TIE)
    reached = space.reached(factual, encoded[None])[0]
    for feature, columns, within in zip(space.features, space.slices, reached, strict=True):
        old, new = origin[feature.name], row[feature.name]
        if old == new:
            continue
        assert within == allowed[feature.name]
        if feature.numeric:
            assert allowed[feature.name] == (bool(inside[columns].all()) and new not in feature.special)
        else:
            assert allowed[feature.name] == (new in feature.reachable(old))
            if feature.kind is Kind.CATEGORICAL or allowed[feature.name]:
                assert allowed[feature.name] == bool(inside[columns].all())


@given(st.data())
def test_existing_values_are_coherent(data: st.DataObject) -> None:
    """Drawn values exist for the space and for the checker alike."""
    space = data.draw(spaces())
    frame = space.frame([data.draw(rows(space))])
    assert space.incoherent(frame) == [[]]
    plain = frame.astype(object).to_dict("records")[0]
    assert all(exists(feature, plain[feature.name]) for feature in space.features)


AGE = Feature("age", "integer", scale=(18, 90), bounds=(20.5, 80.5))


@pytest.mark.parametrize(
    ("changes", "value", "interval"),
    [
        ({}, 40, (21, 80)),
        ({}, 10, (10, 80)),
        ({}, 95, (21, 95)),
        ({"actionability": "increase"}, 40, (40, 80)),
        ({"actionability": "decrease"}, 40, (21, 40)),
        ({"actionability": "immutable"}, 40, (40, 40)),
        ({"actionability": "increase"}, 95, (95, 95)),
        ({"special": (-9,)}, -9, (21, 80)),
        ({"special": (-9,), "actionability": "increase"}, -9, (21, 80)),
    ],
)
def test_interval(changes: dict[str, Any], value: int, interval: tuple[float, float]) -> None:
    """Bounds are rounded inwards for integers, widened to the factual's own value, and cut to the actionable side."""
    assert Space((AGE,)).replace({"age": changes})["age"].interval(value) == interval


def test_a_special_code_that_may_only_fall_reaches_nothing() -> None:
    """Its interval is empty: every value lies above the code."""
    low, high = Feature("x", "integer", bounds=(0, 5), actionability="decrease", special=(-9,)).interval(-9)
    assert low > high


@pytest.mark.parametrize(
    ("kind", "changes", "value", "reachable"),
    [
        ("categorical", {}, "b", ("a", "b", "c")),
        ("categorical", {"actionability": "immutable"}, "b", ("b",)),
        ("categorical", {"actionability": "conditional"}, "b", ("b", "c")),
        ("categorical", {"actionability": "conditional", "order": ("c", "a")}, "c", ("c", "a")),
        ("categorical", {"actionability": "conditional", "order": ("c", "a")}, "b", ("b",)),
        ("ordinal", {"actionability": "increase"}, "b", ("b", "c")),
        ("ordinal", {"actionability": "decrease"}, "b", ("a", "b")),
        ("ordinal", {"actionability": "decrease", "order": ("c", "b", "a")}, "b", ("a", "b")),
    ],
)
def test_reachable(kind: str, changes: dict[str, Any], value: str, reachable: tuple[str, ...]) -> None:
    """Categories by actionability; only ``conditional`` looks at ``order``, and what it omits is cut off."""
    assert Feature("f", kind, ("a", "b", "c"), **changes).reachable(value) == reachable


def test_a_constant_column_keeps_its_value() -> None:
    """A single training value has the unit 1, so nothing divides by zero."""
    space = Space((Feature("x", "continuous", scale=(3.0, 3.0), bounds=(3.0, 3.0)), Feature("c", "binary", ("only",))))
    frame = space.frame([{"x": 3.0, "c": "only"}, {"x": 4.0, "c": "only"}])
    np.testing.assert_array_equal(space.encode(frame), [[0.0, 0.0], [1.0, 0.0]])
    pd.testing.assert_frame_equal(space.decode(space.encode(frame)), frame)


SMALL = Space((AGE, Feature("job", "categorical", ("none", "full")), Feature("pay", "continuous")))
GOOD = {"age": 30, "job": "full", "pay": 0.5}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"age": 30, "job": "full"}, ["no column 'pay'", "columns are age, job,", "needs age, job, pay"]),
        ({**GOOD, "pay": None}, ["missing value", "'pay'", "row 7", "median"]),
        ({**GOOD, "job": "ful"}, ["unseen category 'ful'", "'job'", "row 7", "allowed: none, full"]),
        ({**GOOD, "pay": "much"}, ["'much'", "'pay'", "continuous", "give numbers"]),
        ({**GOOD, "pay": np.inf}, ["infinite", "'pay'"]),
        ({**GOOD, "age": 30.5}, ["30.5", "'age'", "row 7", "whole numbers"]),
    ],
)
def test_check_says_what_is_wrong(row: dict[str, Any], words: list[str]) -> None:
    """The message names the table, the column, the row and what would fit."""
    with pytest.raises(DatasetError) as caught:
        SMALL.check(pd.DataFrame([row], index=[7]), what="people.csv")
    for word in ["people.csv", *words]:
        assert word in str(caught.value)


def test_check_takes_points_beyond_the_bounds() -> None:
    """Bounds are for counterfactuals; a factual may lie outside."""
    SMALL.check(pd.DataFrame([{**GOOD, "age": 99}]))


def test_encode_refuses_unseen_categories() -> None:
    with pytest.raises(DatasetError, match="unseen category 'boss'"):
        SMALL.encode(pd.DataFrame([{**GOOD, "job": "boss"}]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agee": {"bounds": [0, 1]}}, "no feature 'agee'; did you mean 'age'"),
        ({"age": {"bound": [0, 1]}}, "no attribute 'bound'; did you mean 'bounds'"),
        ({"age": {"name": "years"}}, "no attribute 'name'"),
        ({"age": {"actionability": "up"}}, "actionability of age is 'up'.*llowed: free"),
        ({"age": {"kind": "number"}}, "kind of age is 'number'.*llowed: continuous"),
        ({"age": {"bounds": [5, 1]}}, "bounds of age"),
        ({"age": {"actionability": "conditional"}}, "'conditional' needs categories"),
        ({"job": {"actionability": "increase"}}, "cannot 'increase'"),
        ({"job": {"order": ["none", "half"]}}, "order of job names"),
        ({"job": {"categories": []}}, "needs its categories"),
        ({"job": {"categories": ["a", "a"]}}, "repeat"),
    ],
)
def test_replace_refuses_what_does_not_fit(changes: dict[str, Any], words: str) -> None:
    """A wrong feature, attribute or value is named, with what is allowed."""
    with pytest.raises(DatasetError, match=words):
        SMALL.replace(changes)


def test_replace_changes_what_is_named_and_nothing_else() -> None:
    replaced = SMALL.replace({"age": {"actionability": "increase", "bounds": [0, 50]}})
    assert replaced["age"] == Feature("age", "integer", scale=(18, 90), bounds=(0, 50), actionability="increase")
    assert replaced["job"] == SMALL["job"]
    assert SMALL["age"].actionability == "free"


def test_names_do_not_repeat() -> None:
    with pytest.raises(DatasetError, match="repeat"):
        Space((AGE, AGE))


def test_columns_are_one_a_feature_but_for_one_hot(problem: Any) -> None:
    """And ``slices`` tell which is whose."""
    space = problem.space
    assert len(space.columns) == sum(feature.width for feature in space.features)
    for feature, columns in zip(space.features, space.slices, strict=True):
        assert space.columns[columns] == feature.columns


def test_changed_ignores_rounding_only() -> None:
    factual = SMALL.frame([GOOD])
    frame = SMALL.frame([{**GOOD, "pay": 0.5 + 1e-12}, {**GOOD, "pay": 0.5 + 1e-6}, {**GOOD, "job": "none", "age": 31}])
    np.testing.assert_array_equal(
        SMALL.changed(factual, frame), [[False, False, False], [False, False, True], [True, True, False]]
    )


@pytest.mark.parametrize("actionability", ["increase", "conditional"])
def test_no_direction_leads_to_a_special_category(actionability: str) -> None:
    feature = Feature("x", "ordinal", ("a", "b", "c", "d"), actionability=actionability, special=("d",))
    assert [feature.reachable(value) for value in "acd"] == [("a", "b", "c"), ("c",), ("d",)]


def test_special_codes_lie_outside_the_bounds() -> None:
    """A code among the values that counterfactuals may take could be landed on."""
    with pytest.raises(
        DatasetError, match=r"special codes \[5\] of x lie within its bounds \[0, 9\].*narrower 'bounds'"
    ):
        Feature("x", "integer", bounds=(0, 9), special=(5, -1))
