"""How far an answer may be carried out imprecisely and provably stay valid, on the real model.

Robustness here is to a change of the *input*: the point moves, the model stays; ``WeightBox`` is about the opposite. No
method's code is used, though methods ask it, as any metric does: trees are read and searched anew, networks have an
adversary of their own, and each split is followed as the library follows it, rounding to float32 included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

import pandas as pd

from harness.certificate.balls import Ball, Budget, Certificate, Search, perturbed
from harness.certificate.margins import family, margins, readable
from harness.certificate.weights import WeightBox, proven, weight_box
from harness.core.classifier import Classifier
from harness.core.space import Space
from harness.core.target import Target

__all__ = [
    "Ball", "Certificate", "Checker", "WeightBox", "checker", "perturbed", "proven", "readable", "weight_box",
]  # fmt: skip

FAMILIES = {"linear": "Linear", "trees": "Trees", "network": "Network"}  # the class in the module of that name, which
# is imported with the first model of its family, since numba is slow to import


class Checker:
    """Finds the nearest invalid point around any row, for one model and target.

    Parameters
    ----------
    space, classifier, target
        The question.

    Raises
    ------
    UnsupportedError
        For a model that is no linear one, no sum of scikit-learn trees and no network of ReLUs, or whose inputs are
        other functions of a number than affine ones; and for a target that is no bound on its raw output.
    """

    def __init__(self, space: Space, classifier: Classifier, target: Target) -> None:
        self.space, self.classifier, self.target = space, classifier, target
        readable(space, classifier, target)
        kind = family(classifier.estimator)
        search = getattr(import_module(f"{__name__}.{kind}"), FAMILIES[kind])
        self._searches: list[Search] = [search(space, classifier, part) for part in margins(classifier, target)]

    def valid(self, row: Mapping[str, Any]) -> bool:
        """Whether the model itself accepts a decoded row whose integers may be any real number."""
        return bool(self.target.holds(self.classifier, _real(self.space, row))[0])

    def certify(
        self,
        row: Mapping[str, Any],
        ball: Ball,
        within: float = math.inf,
        seconds: float = math.inf,
        nodes: float = math.inf,
        exact: bool = True,
    ) -> Certificate:
        """The largest radius of ``ball`` around a decoded row for which every point is valid.

        Parameters
        ----------
        within
            The greatest radius to prove; the certificate is at most this. "Violated or proven within ρ" is much cheaper
            than the exact radius.
        exact
            Whether the largest radius is wanted; else an invalid point within ``within`` ends the search.
        seconds, nodes
            Limits, by the wall clock and as ``Budget`` counts; what is proven by then is returned.
        """
        if not self.valid(row):
            return Certificate(0.0, 0.0)
        budget = Budget(seconds, nodes, exact)
        found = Certificate(within, math.inf)
        for search in self._searches:
            most = min(within, found.violated)
            part = search.nearest(row, ball, most, budget, self.valid)
            found = Certificate(min(found.radius, part.radius), min(found.violated, part.violated))
        return found

    def compile(self, row: Mapping[str, Any], ball: Ball) -> None:
        """Have what ``certify`` reaches compiled, by any decoded row, before a clock runs."""
        for search in self._searches:
            search.nearest(row, ball, 1.0, Budget(0.0), self.valid)


@lru_cache(maxsize=8)
def checker(space: Space, classifier: Classifier, target: Target) -> Checker:
    """The ``Checker`` of a question, kept for the next row: reading a model takes a while."""
    return Checker(space, classifier, target)


def _real(space: Space, row: Mapping[str, Any]) -> pd.DataFrame:
    """A decoded frame of one row, in which integer features may hold any real number."""
    return pd.DataFrame({name: [row[name]] for name in space.names}, columns=space.index)
