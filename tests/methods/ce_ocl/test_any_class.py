"""CE-OCL where several classes are wanted: against all points of a small space, by the estimator's own predictions."""

from __future__ import annotations

from typing import Any

import pytest
from support import enumeration

from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.target import Classes, Label
from methods.ce_ocl import CeOcl
from methods.ce_ocl.any_class import AnyClass
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.explainer import start
from methods.cells.closest import Closest

ONE = "several hulls tried in turn take one wanted class; set 'desired' to a class, or "
FOUR = ("low", "no", "yes", "top")
ASKED: list[tuple[str, tuple[str, ...], dict[str, Any], dict[str, Any]]] = [
    ("rf", ("no", "top"), {}, {}),
    ("rf", ("low", "top"), {"alpha": 0.2}, {"related": ("linked", "unequal"), "priced": "sides"}),
    ("gbm", ("low", "yes"), {"distance": "l2sq"}, {"kept": "coded", "priced": "pairs"}),
    ("lr", ("no", "yes"), {"max_changes": 2}, {"related": ("cardinality",)}),
    ("lr", ("low", "no", "top"), {"hull": "hard"}, {"priced": "weights"}),
    ("cart", ("no", "top"), {"hull": "penalised", "hull_points": "both"}, {"related": ("forced",)}),
]


@pytest.mark.parametrize(("model", "wanted", "parameters", "given"), ASKED)
def test_the_cheapest_point_of_any_wanted_class_is_found(
    model: str, wanted: tuple[str, ...], parameters: dict[str, Any], given: dict[str, Any]
) -> None:
    """Two answers each, proven; the hull is that of all wanted classes together."""
    problem = enumeration.problem_of(model, target=Classes(wanted), classes=FOUR, **given)
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(CeOcl(**parameters), problem, factual, 2)


def test_a_set_is_as_near_as_its_nearest_class() -> None:
    """And once the first, once the second class is the nearer one."""
    problem = enumeration.problem_of("rf", target=Classes(("low", "top")), classes=FOUR)
    nearer = set()
    for factual in enumeration.factuals(problem, 6):
        (both,) = enumeration.ask(CeOcl(), problem, factual).answers
        each = {}
        for name in ("low", "top"):
            alone = enumeration.problem_of("rf", target=Label(name), classes=FOUR)
            each[name] = enumeration.ask(CeOcl(), alone, factual).answers[0].objective
        assert both.objective == pytest.approx(min(each.values()))
        nearer.add(min(each, key=each.__getitem__))
    assert nearer == {"low", "top"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"diversity": "features"}, "diversity=features takes one wanted class"),
        ({"hull": "fallback"}, ONE + "set hull=penalised"),
        ({"hull": "hard", "epsilon": (0.0, 0.5)}, ONE + "give one epsilon"),
    ],
)
def test_what_takes_one_class_only_is_refused_by_name(parameters: dict[str, Any], words: str) -> None:
    why = CeOcl(**parameters).refuses(enumeration.problem_of("rf", target=Classes(("low", "top")), classes=FOUR))
    assert why is not None
    assert words in why


class _Settled:
    """An engine whose answer, and what it proves, are given."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def further(self, *_: Any) -> Answer:
        return self.answer


@pytest.mark.parametrize(("gap", "status"), [(5e-3, Status.FOUND), (9e-7, Status.OPTIMAL)])
def test_changes_have_no_part_in_what_a_proof_may_be_off(gap: float, status: Status) -> None:
    """One change at 10,000 and a distance of 0.4: a gap of 0.005 is none of 10,000, and much of the distance."""
    problem = enumeration.problem_of("rf", target=Classes(("low", "top")), classes=FOUR)
    factual = enumeration.factuals(problem, 1)[0]
    own = factual.iloc[0].to_dict()
    row = own | {"age": next(value for value in enumeration.VALUES["age"] if value != own["age"])}
    one = Answer(Status.FOUND, row, Reason.TIME_LIMIT, 10000.4, 10000.4 - gap)
    other = Answer(Status.INFEASIBLE, None, Reason.PROOF)
    engines: Any = [_Settled(one), _Settled(other)]
    both = AnyClass(CeOcl(alpha=1e4), problem, engines).further(factual, [], Deadline.after(1))
    assert both.status is status
    cells = start(CeOcl(alpha=1e4), enumeration.problem_of("rf"))
    assert isinstance(cells, CellEngine)
    assert cells._answer(Closest(row, 10000.4, 10000.4 - gap), factual, further=False).status is status
