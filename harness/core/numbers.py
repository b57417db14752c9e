"""What is a number among settings and arguments, and the ranges that seeds and limits of time have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from harness.core.errors import HarnessError

LONGEST = 1_000_000  # seconds, eleven days: the system waits no longer than 2^31 milliseconds
SEEDS = 2**32  # scikit-learn takes no larger ones


def whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number, Python's or NumPy's."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def number(value: Any) -> bool:
    """Whether a value is a finite number, Python's or NumPy's."""
    return whole(value) or (isinstance(value, float | np.floating) and math.isfinite(value))


def check_asked_for(n: Any, seed: Any, time_limit: Any) -> None:
    """Refuse a number of counterfactuals, a seed or a limit in seconds that is none.

    Raises
    ------
    HarnessError
        In one sentence.
    """
    if not (whole(n) and n >= 1 and number(time_limit) and 0 < time_limit <= LONGEST):
        given = f"n={n!r} and time_limit={time_limit!r} do not fit"
        raise HarnessError(f"{given}; give at least 1, and seconds above 0, at most {LONGEST:,}.")
    if not (whole(seed) and 0 <= seed < SEEDS):
        raise HarnessError(f"seed={seed!r} does not fit; give a whole number of at least 0, below {SEEDS:,}.")


def check_least(settings: object, least: float, *names: str) -> None:
    """Refuse attributes that are no finite numbers of at least ``least``.

    Raises
    ------
    ValueError
        For the first such attribute.
    """
    _check(settings, names, lambda value: value >= least, f"finite number of at least {least}")


def check_counts(settings: object, least: int, *names: str) -> None:
    """Refuse attributes that are no whole numbers of at least ``least``.

    Raises
    ------
    ValueError
        For the first such attribute.
    """
    _check(settings, names, lambda value: whole(value) and value >= least, f"whole number of at least {least}")


def check_above(settings: object, bound: float, *names: str) -> None:
    """Refuse attributes that are no finite numbers above ``bound``.

    Raises
    ------
    ValueError
        For the first such attribute.
    """
    _check(settings, names, lambda value: value > bound, f"finite number above {bound}")


def _check(settings: object, names: Sequence[str], fits: Callable[[Any], bool], allowed: str) -> None:
    for name in names:
        if not (number(value := getattr(settings, name)) and fits(value)):
            raise ValueError(f"{name} is {value}; give a {allowed}.")
