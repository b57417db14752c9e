"""Objectives as data: worked values of every term, and the two ways to count a category."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness.core.objective import TERMS, Objective, Term, displacement, mad
from harness.core.space import Feature, Space

SPACE = Space(
    (
        Feature("pay", "continuous", scale=(0.0, 10.0)),
        Feature("age", "integer", scale=(20, 60)),
        Feature("grade", "ordinal", ("low", "middle", "high")),
        Feature("city", "categorical", ("Bonn", "Ulm", "Köln")),
        Feature("member", "binary", (False, True)),
    )
)
FACTUAL = SPACE.frame([{"pay": 2.0, "age": 30, "grade": "low", "city": "Bonn", "member": False}])
MOVED = SPACE.frame(
    [
        {"pay": 2.0, "age": 30, "grade": "low", "city": "Bonn", "member": False},
        {"pay": 7.0, "age": 40, "grade": "middle", "city": "Ulm", "member": False},
        {"pay": 2.0, "age": 30, "grade": "high", "city": "Bonn", "member": True},
    ]
)
MADS = {"pay": 0.1, "age": 0.5}
TABLE = [
    {"feature": "pay", "thresholds": [5.0], "values": [-1.0, 1.0]},
    {"feature": "city", "levels": ["Bonn", "Ulm", "Köln"], "values": [0.0, 0.5, 1.0]},
]  # the values of the first and the third row of MOVED are (-1, 0), those of the second (1, 0.5)
SCORE = {"table": TABLE, "coefficients": [1.0, 2.0], "intercept": 0.5}
# Pay in bins split at 5; the first of two components is sure of a small pay, the second of a member.
RARE = {
    "shares": [-1.0, -2.0],
    "parts": [
        {"columns": [0, 1], "edges": [0.5], "values": [[0.0, -9.0], [-1.0, -1.0]]},
        {"columns": [6, 7], "edges": [0.5], "values": [[-0.5, -0.5], [-9.0, 0.0]]},
    ],
}
PARAMS = {
    "rarity": RARE,
    "mad_l1": MADS,
    "mahalanobis": {"factor": np.diag([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])},  # age counts twice, a city two columns
    "slack": {"points": SPACE.encode(FACTUAL), "norm": 1},  # the hull of the factual alone
    "woe_l1": {"table": TABLE, "unit": [4.0, 0.5]},
    "woe_mahalanobis": {"table": TABLE, "factor": [[2.0, 0.0], [1.0, 1.0]], "mean": [0.0, 0.5]},
    "woe_outcome": SCORE | {"logistic": False, "target": 2.0},
}


def value(*terms: Term, count: str = "features", categories: str | int = 1) -> list[float]:
    return Objective(terms, count, categories).evaluate(SPACE, FACTUAL, MOVED).tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("l0", [0.0, 4.0, 2.0]),
        ("l1", [0.0, 0.5 + 0.25 + 0.5 + 1.0, 2.0]),
        ("l2sq", [0.0, 0.25 + 0.0625 + 0.25 + 1.0, 2.0]),
        ("linf", [0.0, 1.0, 1.0]),
        ("gower", [0.0, 2.25 / 5, 2.0 / 5]),
        ("mad_l1", [0.0, 5.0 + 0.5 + 0.5 + 1.0, 2.0]),
        ("mahalanobis", [0.0, 0.5 + 2 * 0.25 + 0.5 + 2.0, 2.0]),
        ("slack", [0.0, 0.5 + 0.25 + 0.5 + 2.0, 2.0]),
        ("rarity", [1.5, min(1 + 9 + 0.5, 2 + 1 + 9), min(1 + 0.5, 2 + 1)]),
        ("woe_l1", [0.0, 2 / 4 + 0.5 / 0.5, 0.0]),
        ("woe_mahalanobis", [2.5 + 0.5, 2.0, 2.5 + 0.5]),
        ("woe_outcome", [2.5, 0.5, 2.5]),
    ],
)
def test_terms(name: str, expected: list[float]) -> None:
    """A number moves by its scaled difference, a rank by 1/(levels - 1), any other category by 1."""
    assert value(Term(name, 1.0, PARAMS.get(name, {}))) == pytest.approx(expected)


def test_a_variable_without_a_unit_has_one_of_one() -> None:
    """Its bins are all alike, or differ by something that has no range: nothing is divided by 0."""
    alike = [TABLE[0], {**TABLE[1], "values": [0.5] * 3}]
    for table, expected in ((alike, [0.0, 2 / 4, 0.0]), (TABLE, [0.0, 2 / 4 + 0.5, 0.0])):
        assert value(Term("woe_l1", 1.0, {"table": table, "unit": [4.0, 0.0]})) == pytest.approx(expected)


def test_being_outside_at_all_costs_nothing_within_the_tolerance() -> None:
    """Else a great price turns what a solver may be off, 4e-7 here, into a cost that no method claims."""
    rows = SPACE.frame(FACTUAL.to_dict("records") * 2).assign(pay=[2.0 + 4e-6, 2.0 + 2e-5])
    priced = {name: Objective((Term("slack", 1e5, PARAMS["slack"] | more),)) for name, more in
              {"plain": {}, "entry": {"entry": 1.1}}.items()}  # fmt: skip
    costs = {name: objective.evaluate(SPACE, FACTUAL, rows) for name, objective in priced.items()}
    assert costs["plain"] == pytest.approx([0.04, 0.2])
    assert costs["entry"] == pytest.approx([0.0, 1.1e5 + 0.2])


def test_every_term_is_worked_out() -> None:
    woe = {"woe_l1", "woe_mahalanobis", "woe_outcome"}
    assert set(TERMS) == {"l0", "l1", "l2sq", "linf", "gower", "mad_l1", "mahalanobis", "slack", "rarity"} | woe


def test_an_outcome_may_be_a_probability() -> None:
    """A score of 0 is a probability of 0.5; a number on a threshold belongs below it."""
    params = SCORE | {"logistic": True, "target": 0.9, "intercept": 1.0}
    at = FACTUAL.assign(pay=5.0)
    assert Objective((Term("woe_outcome", 2.0, params),)).evaluate(SPACE, FACTUAL, at) == pytest.approx([0.8])


def test_terms_add_up_by_weight() -> None:
    """Twice the distance and ten times the number of changes."""
    assert value(Term("l1", 2.0), Term("l0", 10.0)) == pytest.approx([0.0, 44.5, 24.0])


def test_columns_count_a_changed_category_twice() -> None:
    """``count`` speaks of l0 only, ``categories`` of the distances only; binary and ordinal are one column."""
    assert value(Term("l0"), count="columns") == [0.0, 5.0, 2.0]
    assert value(Term("l0"), categories="columns") == [0.0, 4.0, 2.0]
    assert value(Term("l1"), categories="columns") == pytest.approx([0.0, 3.25, 2.0])
    assert value(Term("l1"), count="columns") == pytest.approx([0.0, 2.25, 2.0])
    assert value(Term("linf"), categories="columns") == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["l0", "l1", "l2sq", "gower", "mad_l1"])
@pytest.mark.parametrize("categories", [1, "columns"])
def test_separable_coefficients_give_the_same_value(name: str, categories: str | int) -> None:
    """The sum over changed features of fixed + linear * gap + quadratic * gap² is the objective."""
    terms = (Term(name, 3.0, MADS if name == "mad_l1" else {}), Term("l0", 2.0))
    objective = Objective(terms, categories=categories)
    parts = objective.separable(SPACE)
    assert parts is not None
    fixed, linear, quadratic = parts
    gaps, changed = displacement(SPACE, FACTUAL, MOVED), SPACE.changed(FACTUAL, MOVED)
    total = (changed * (fixed + linear * gaps + quadratic * gaps**2)).sum(axis=1)
    np.testing.assert_allclose(total, objective.evaluate(SPACE, FACTUAL, MOVED))


def test_a_maximum_does_not_separate() -> None:
    assert Objective((Term("linf"),)).separable(SPACE) is None


def test_mad_is_in_scaled_units_and_never_zero() -> None:
    """A MAD of 0 is raised to the floor; without a floor it counts as 1, the published definition."""
    frame = pd.DataFrame({"pay": [0.0, 1.0, 2.0, 10.0], "age": [30, 30, 30, 50]})
    assert mad(SPACE, frame) == pytest.approx({"pay": 0.1, "age": 0.01})
    assert mad(SPACE, frame, floor=0.0) == pytest.approx({"pay": 0.1, "age": 1.0})


def test_no_rows_have_no_values() -> None:
    assert Objective((Term("l1"), Term("linf"))).evaluate(SPACE, FACTUAL, MOVED.iloc[:0]).shape == (0,)


def test_what_does_not_exist_is_refused() -> None:
    """A term, a weight or a unit that cannot be, with what is allowed."""
    with pytest.raises(ValueError, match=r"no objective term 'l3'.*llowed: l0, l1"):
        Term("l3")
    with pytest.raises(ValueError, match="weight of l1 is -1"):
        Term("l1", -1)
    with pytest.raises(ValueError, match="count is 'rows'; allowed: features, columns"):
        Objective((Term("l1"),), count="rows")
    with pytest.raises(ValueError, match="categories is 2; allowed: 1, columns"):
        Objective((Term("l1"),), categories=2)
