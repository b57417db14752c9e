"""Whether what a method proves of a group holds against the counterfactuals by which another one serves it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.core.gaps import same
from harness.core.tolerances import CLAIM


@dataclass(frozen=True)
class Cover:
    """Who of a group is served, by question: by which point, in any name, and by changes of which features."""

    whose: str
    served: Mapping[str, tuple[Hashable, frozenset[str]]]

    def by(self, people: Sequence[str]) -> dict[Hashable, list[frozenset[str]]] | None:
        """What some people change, by point; None where one of them is not served."""
        if not all(question in self.served for question in people):
            return None
        found: dict[Hashable, list[frozenset[str]]] = {}
        for point, changes in (self.served[question] for question in people):
            found.setdefault(point, []).append(changes)
        return found


def differing(origin: Mapping[str, Any], row: Mapping[str, Any]) -> frozenset[str]:
    """The features in which a decoded row is not as another one."""
    return frozenset(name for name, value in origin.items() if not same(row.get(name), value))


def cheaper(line: Mapping[str, Any], asked: Mapping[Any, str], most: float, cover: Cover) -> list[str] | None:
    """What a cover contradicts of the proofs in the line of a group, none of whose points changes more than ``most``.

    Its bounds are on how many points serve everybody but those of whom it proves that none does, and on how much all of
    them change by as many points as it has. None where the cover leaves one of them out, or changes more.
    """
    bound, total, given = line["bound"], line.get("total_change_bound"), len(line["points"])
    shares = cover.by([asked[factual] for factual in line["factuals"] if factual not in line["uncoverable"]])
    if not shares or any(len(frozenset[str]().union(*changes)) > most for changes in shares.values()):
        return None
    said = []
    if bound is not None and len(shares) < bound - CLAIM:
        fewest = math.ceil(bound - CLAIM)
        said.append(f"that no fewer than {fewest} points serve it, and {cover.whose} serves it by {len(shares)}")
    changed = sum(len(changes) for each in shares.values() for changes in each)
    if total is not None and len(shares) <= given and changed < total - CLAIM:
        said.append(
            f"that {given} points change no fewer than {total:.9g} features, and {cover.whose} changes {changed}"
        )
    return said
