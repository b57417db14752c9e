"""What is blamed where a question has no answer."""

from __future__ import annotations

import math
from time import sleep

import pytest

from harness.core.classifier import Classifier
from harness.core.conflict import WIDE, groups_of, irreducible, lifted
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label


def test_a_group_that_takes_all_of_its_time_leaves_some_for_the_others() -> None:
    """An answer that is never proven the best shows that its group is needed, and whether others are is asked too."""

    def infeasible(without: frozenset[str], until: Deadline) -> bool:
        if "needed" in without:
            sleep(until.left)
        return "needed" not in without

    assert irreducible(("needed", "idle"), infeasible, Deadline.after(0.2)) == ("needed",)


def test_nothing_is_asked_that_may_be_late() -> None:
    """Questions that overrun their time, as no deadline interrupts them, may not overrun that of the search."""
    asked = []

    def infeasible(without: frozenset[str], until: Deadline) -> bool:
        asked.append(without)
        sleep(until.left + 0.5)
        return True

    deadline = Deadline.after(2.0)
    assert irreducible(("a", "b", "c", "d"), infeasible, deadline) == ()
    assert len(asked) == 1
    assert not deadline.passed


def test_a_fault_leaves_a_group_unsettled() -> None:
    """What went wrong in search of the reason says nothing of its group, and does not keep others from being named."""

    def infeasible(without: frozenset[str], until: Deadline) -> bool:
        if "faulty" in without:
            raise OverflowError("cannot convert float infinity to integer")
        return "needed" not in without

    assert irreducible(("faulty", "idle", "needed"), infeasible, Deadline.after(60)) == ("faulty", "needed")
    assert irreducible(("faulty", "idle"), infeasible, Deadline.after(60)) == ()


@pytest.mark.parametrize(
    ("bounds", "special", "closed", "left"),
    [
        ((0.0, math.inf), (-2.0,), (0.0, 4 * WIDE + 6), (-2.0,)),
        ((-math.inf, 5.0), (9.0,), (2 - 4 * WIDE, 5.0), (9.0,)),
        ((-math.inf, math.inf), (-2.0, 1e6), (2 - 4 * WIDE, 4 * WIDE + 6), (1e6,)),
        ((-math.inf, math.inf), (), (2 - 4 * WIDE, 4 * WIDE + 6), ()),
        ((1e6, math.inf), (), (1e6, 1e6), ()),
        ((0.0, 5.0), (-2.0,), (0.0, 5.0), (-2.0,)),
    ],
)
def test_a_number_is_freed_within_two_ends(
    bounds: tuple[float, float], special: tuple[float, ...], closed: tuple[float, float], left: tuple[float, ...]
) -> None:
    """Programs need two ends of what may move; where there is one, or a code beyond it, it stays."""
    feature = Feature("a", "integer", scale=(2, 6), bounds=bounds, special=special, actionability="immutable")
    space = Space((feature,))
    problem = Problem(space, Classifier(None, ()), space.frame([]), [], Label("yes"))
    assert [*groups_of(problem)] == ["immutable a", "bounds"]
    freed = lifted(problem, frozenset({"immutable a"})).space["a"]
    assert (freed.bounds, freed.special, freed.actionability) == (closed, left, "free")
    both = lifted(problem, frozenset({"immutable a", "bounds"})).space["a"]
    assert (both.bounds, both.special) == ((2 - 4 * WIDE, 4 * WIDE + 6), ())
