"""One set of counterfactuals for several people: who, what changes, to what; each answer is checked as any other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pandas as pd

from harness.core.explanation import GroupExplanation, Status
from harness.core.wording import number_of, target_text
from harness.evaluation.checker import ACCEPTED
from harness.reports.groups import counted, explanation_text
from harness.reports.person import Explained


@dataclass(frozen=True)
class GroupExplained:
    """What a method answers for a group; print it.

    Parameters
    ----------
    found
        The counterfactuals, who is served by which, bounds and proofs.
    people
        By id each person's own answer, checked as any other.
    detail
        Why there is no answer; empty where there is one.
    satisfied
        Numbers of those who were left out, as the model already says of them what is wanted.
    """

    found: GroupExplanation
    people: dict[object, Explained] = field(repr=False)
    detail: str = ""
    satisfied: tuple[int, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """A row for each counterfactual: how many it serves, and its values."""
        rows = [
            {"people": len(self.found.members(place)), **(p.row or {})} for place, p in enumerate(self.found.points)
        ]
        return pd.DataFrame(rows, index=pd.Index([f"CE {place + 1}" for place in range(len(rows))]))

    def __str__(self) -> str:
        first = next(iter(self.people.values())).context
        count = number_of(len(self.people), "person").replace("persons", "people")
        head = f"{count}, wanted {target_text(first.problem.target)}: "
        if not self.found.points:
            return "\n\n".join([f"{head}{(self.detail or str(self.found.status)).rstrip('.')}.", *self._left_out()])
        proven = ", proven the fewest" if self.found.status is Status.OPTIMAL and not self._faults() else ""
        parts = [f"{head}{number_of(len(self.found.points), 'counterfactual')}{proven}."]
        for place, point in enumerate(self.found.points):
            members = pd.concat([self.people[one].context.factual for one in self.found.members(place)])
            changed, features = self.found.changed[place], first.problem.space.features
            parts.append(explanation_text(place, members, point.row or {}, changed, features))
        parts += self._left_out() + self._unserved()
        return "\n\n".join(parts)

    def _left_out(self) -> list[str]:
        fine = ", ".join(map(str, self.satisfied))
        return [f"Left out, as the model already says what is wanted of them: {fine}."] * bool(fine)

    def _unserved(self) -> list[str]:
        left = [one for one in self.people if one not in self.found.assignment]
        none = [one for one in left if one in self.found.uncoverable and self._verdict(one) == "none"]
        parts = [f"Without a counterfactual: {', '.join(map(str, left))}."] * bool(left)
        parts += [f"Proven to have none: {', '.join(map(str, none))}."] * bool(none)
        return parts + [f"The checker found {counted(bad)}." for bad in [self._faults()] if bad]

    def _faults(self) -> Counter[str]:
        """What the checker says of them, but that all is well."""
        return Counter(word for one in self.people if (word := self._verdict(one)) not in {ACCEPTED, "none"})

    def _verdict(self, one: object) -> str:
        return self.people[one].context.verdicts[0]
