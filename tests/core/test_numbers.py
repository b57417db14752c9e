"""Settings that are no numbers of their range are one sentence that names them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.core.numbers import check_above, check_counts, check_least

NO_NUMBERS = (math.nan, math.inf, "2", True, None, [3])


@pytest.mark.parametrize("value", [0.99, -3, *NO_NUMBERS])
def test_what_is_below_is_refused(value: Any) -> None:
    settings = SimpleNamespace(fine=1, other=value)
    with pytest.raises(ValueError, match=r"^other is .+; give a finite number of at least 1\.$"):
        check_least(settings, 1, "fine", "other")
    check_least(settings, 1, "fine")


@pytest.mark.parametrize("value", [0, 1.5, 2.0, *NO_NUMBERS])
def test_what_counts_nothing_is_refused(value: Any) -> None:
    settings = SimpleNamespace(fine=1, numpys=np.int64(3), other=value)
    with pytest.raises(ValueError, match=r"^other is .+; give a whole number of at least 1\.$"):
        check_counts(settings, 1, "fine", "numpys", "other")
    check_counts(settings, 1, "fine", "numpys")


@pytest.mark.parametrize("value", [0, -1e-9, *NO_NUMBERS])
def test_what_is_not_above_is_refused(value: Any) -> None:
    settings = SimpleNamespace(fine=5e-324, other=value)
    with pytest.raises(ValueError, match=r"^other is .+; give a finite number above 0\.$"):
        check_above(settings, 0, "fine", "other")
    check_above(settings, 0, "fine")


def test_numbers_of_numpy_are_numbers() -> None:
    settings = SimpleNamespace(whole=np.int64(1), real=np.float32(1.5))
    check_least(settings, 1, "whole", "real")
    check_above(settings, 0, "whole", "real")
