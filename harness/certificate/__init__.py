"""How far an answer may be carried out imprecisely and provably stay valid, on the real model.

Robustness here is to a change of the *input*: the point moves, the model stays. No method's code is used, and no method
looks behind this front door: trees are read and searched anew, networks have an adversary of their own, and each split
is followed as the library follows it, rounding to float32 included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import pandas as pd

from harness.certificate.balls import Ball, Certificate, Search, perturbed
from harness.certificate.margins import family, margins, readable
from harness.core.classifier import Classifier
from harness.core.space import Space
from harness.core.target import Target

__all__ = ["Ball", "Certificate", "Checker", "checker", "perturbed", "readable", "region_holds"]

ROUNDING = 1e-9  # of a feature's range: what decoding to floats may move the end of a region
SECONDS = 60.0  # for one region, unless given
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
        self, row: Mapping[str, Any], ball: Ball, within: float = math.inf, seconds: float = math.inf
    ) -> Certificate:
        """The largest radius of ``ball`` around a decoded row for which every point is valid.

        Parameters
        ----------
        within
            The greatest radius to prove; the certificate is at most this. "Violated or proven within ρ" is much cheaper
            than the exact radius.
        seconds
            Wall-clock limit; what is proven by then is returned.
        """
        if not self.valid(row):
            return Certificate(0.0, 0.0)
        until = time.monotonic() + seconds
        found = Certificate(within, math.inf)
        for search in self._searches:
            most = min(within, found.violated)
            part = search.nearest(row, ball, most, until, self.valid)
            found = Certificate(min(found.radius, part.radius), min(found.violated, part.violated))
        return found

    def compile(self, row: Mapping[str, Any], ball: Ball) -> None:
        """Have what ``certify`` reaches compiled, by any decoded row, before a clock runs."""
        for search in self._searches:
            search.nearest(row, ball, 1.0, 0.0, self.valid)


@lru_cache(maxsize=8)
def checker(space: Space, classifier: Classifier, target: Target) -> Checker:
    """The ``Checker`` of a question, kept for the next row: reading a model takes a while."""
    return Checker(space, classifier, target)


def region_holds(
    space: Space,
    classifier: Classifier,
    target: Target,
    row: Mapping[str, Any],
    region: Mapping[str, Sequence[float]],
    seconds: float = SECONDS,
) -> bool | None:
    """Whether every point of an answer's region, a box around its row in original units, is valid.

    None where that was not settled in time. Ends may be off by ``ROUNDING`` of a feature's range, as decoding is.

    Raises
    ------
    UnsupportedError
        As ``Checker``.
    """
    if any(not low <= row[name] <= high for name, (low, high) in region.items()):
        return False
    reach = {name: max(high - row[name], row[name] - low) for name, (low, high) in region.items()}
    slack = {name: ROUNDING * space[name].range for name in region}
    units = {name: far for name, far in reach.items() if space[name].numeric and far > slack[name]}
    limits = {name: (region[name][0] + slack[name], region[name][1] - slack[name]) for name in units}
    limits = {name: (min(low, row[name]), max(high, row[name])) for name, (low, high) in limits.items()}
    found = checker(space, classifier, target).certify(row, Ball("linf", units, limits), within=1.0, seconds=seconds)
    return False if found.violated <= 1.0 else True if found.radius >= 1.0 else None


def _real(space: Space, row: Mapping[str, Any]) -> pd.DataFrame:
    """A decoded frame of one row, in which integer features may hold any real number."""
    return pd.DataFrame({name: [row[name]] for name in space.names}, columns=space.index)
