"""What is blamed where a question has no answer."""

from __future__ import annotations

from time import sleep

from harness.core.conflict import irreducible
from harness.core.method import Deadline


def test_a_group_that_takes_all_of_its_time_leaves_some_for_the_others() -> None:
    """An answer that is never proven the best shows that its group is needed, and whether others are is asked too."""

    def infeasible(without: frozenset[str], until: Deadline) -> bool:
        if "needed" in without:
            sleep(until.left)
        return "needed" not in without

    assert irreducible(("needed", "idle"), infeasible, Deadline.after(0.2)) == ("needed",)
