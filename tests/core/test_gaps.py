"""A gap is a state of its own: equal to itself, one unit from every number, left and entered where it may be."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from harness.core.errors import DatasetError
from harness.core.objective import Objective, Term, displacement
from harness.core.space import Feature, Space
from harness.evaluation import checker
from metrics import _distances, _example, plausibility, proximity

NAN = math.nan
AGE = Feature("age", "integer", scale=(20, 60), bounds=(18, 70), missing=True)
WAGE = Feature("wage", "continuous", scale=(0.0, 10.0), bounds=(0.0, 10.0), missing=True, may_be_missing=True)
CITY = Feature("city", "categorical", ("a", "b"))
SPACE = Space((AGE, WAGE, CITY))


def row(age: float, wage: float, city: str = "a") -> pd.DataFrame:
    return SPACE.frame([{"age": age, "wage": wage, "city": city}])


FULL, NONE = row(40, 5.0), row(NAN, NAN)


@pytest.mark.parametrize(
    ("feature", "old", "new", "allowed"),
    [
        ({}, NAN, 30, True),
        ({}, NAN, 18, True),
        ({}, NAN, 71, False),
        ({}, NAN, NAN, True),
        ({}, 30, NAN, False),
        ({"may_be_missing": True}, 30, NAN, True),
        ({"may_be_missing": True, "actionability": "increase"}, 30, NAN, True),
        ({"may_be_missing": True, "actionability": "immutable"}, 30, NAN, False),
        ({"actionability": "immutable"}, NAN, 30, False),
        ({"actionability": "immutable"}, NAN, NAN, True),
        ({"actionability": "increase"}, NAN, 18, True),
        ({"actionability": "decrease"}, NAN, 70, True),
        ({"special": (-1,)}, NAN, -1, False),
    ],
)
def test_which_changes_are_permitted(feature: dict[str, object], old: float, new: float, allowed: bool) -> None:
    """The space and the checker, which share no code, agree; a gap counts for ``None`` of a file, too."""
    changed = replace(AGE, **feature)
    space = Space((changed,))
    frames = space.frame([{"age": old}]), space.frame([{"age": new}])
    assert (space.violations(*frames) == [[]]) == allowed
    for one in {old, None} if math.isnan(old) else {old}:
        assert checker.permitted(changed, one, None if math.isnan(new) else new) == allowed
    inside = space.reached(frames[0], space.encode(frames[1])) | ~space.changed(*frames)
    assert bool(inside.all()) == allowed


def test_gaps_exist_only_where_the_feature_has_them() -> None:
    """Incoherent elsewhere, and refused in data; whole numbers beside gaps are floats that decode to themselves."""
    whole = Space((replace(AGE, missing=False), WAGE, CITY))
    assert whole.incoherent(NONE) == [["age"]]
    assert SPACE.incoherent(NONE) == [[]]
    assert (checker.exists(AGE, None), checker.exists(whole["age"], None)) == (True, False)
    with pytest.raises(DatasetError, match=r"missing value in column 'age', row 0; .*features\.age\.missing"):
        whole.check(NONE)
    SPACE.check(NONE)
    both = pd.concat([FULL, NONE, row(NAN, 2.5, "b")], ignore_index=True)
    pd.testing.assert_frame_equal(SPACE.decode(SPACE.encode(both)), both, check_index_type=False)
    pd.testing.assert_frame_equal(SPACE.decode(SPACE.encode(NONE), like=NONE), NONE)


def test_a_feature_that_keeps_no_gaps_may_not_be_missing() -> None:
    with pytest.raises(DatasetError, match=r"features\.age\.missing=value"):
        Feature("age", "integer", may_be_missing=True)


def test_a_change_from_or_to_missing_is_one_unit() -> None:
    """In every distance of changes, whatever the number; from gap to gap is none."""
    assert displacement(SPACE, FULL, NONE).tolist() == displacement(SPACE, NONE, FULL).tolist() == [[1, 1, 0]]
    assert displacement(SPACE, NONE, NONE).tolist() == [[0, 0, 0]]
    assert SPACE.changed(NONE, pd.concat([NONE, FULL])).tolist() == [[False] * 3, [True, True, False]]
    spread = {"age": 0.1, "wage": 0.2}
    for name, expected in {"l0": 2, "l1": 2, "l2sq": 2, "linf": 1, "gower": 2 / 3, "mad_l1": 2}.items():
        objective = Objective((Term(name, params=spread),))
        assert objective.evaluate(SPACE, FULL, NONE) == pytest.approx([expected])
        if name != "linf":
            assert objective.gap_costs(SPACE)[:2].sum() == pytest.approx(expected)
    half = row(45, NAN)  # 5 / 40 of a range, 1.25 of a MAD
    assert Objective((Term("mad_l1", params=spread),)).evaluate(SPACE, FULL, half) == pytest.approx([2.25])


def test_metrics_count_a_gap_as_one_unit() -> None:
    """Gower's distance between rows is that of changes; sums in original units take the range for a gap."""
    rows = pd.concat([FULL, NONE, row(20, NAN, "b"), row(NAN, 7.5)], ignore_index=True)
    columns = plausibility._gower_columns(SPACE, SPACE.encode(rows))
    apart = [plausibility._gower(SPACE, own, columns) for own in columns]
    for place in range(len(rows)):
        expected = _distances.gower(SPACE, rows.iloc[[place]], rows)
        assert apart[place] == pytest.approx(expected)
    assert _distances.absolute(_distances.numbers(SPACE), FULL, row(30, NAN)) == pytest.approx([10 + 10])
    assert proximity._l2(SPACE, FULL, NONE) == pytest.approx([np.sqrt(2)])


def test_a_gap_is_one_unit_in_units_of_mad_as_well() -> None:
    """Wages of 3, 5 and 7 have a MAD of .2 of the range: from 5 to 9 is .4 / .2, to a gap 1 and not 1 / .2."""
    space = Space((WAGE,))
    known, asked = (space.frame({"wage": wage} for wage in wages) for wages in ((3.0, 5.0, 7.0), (9.0, NAN)))
    distance = _distances.mad_scaled(replace(_example.problem, space=space, train=known))
    assert distance(space, known.iloc[[1]], asked) == pytest.approx([2.0, 1.0])
