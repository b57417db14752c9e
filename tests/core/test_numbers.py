"""Settings that are no numbers of their range are one sentence that names them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.core.numbers import check_above, check_counts, check_least

NO_NUMBERS = (math.nan, math.inf, "2", True, None, [3])


CASES = [
    *((check_least, 1, 1, "finite number of at least 1", value) for value in (0.99, -3, *NO_NUMBERS)),
    *((check_counts, 1, np.int64(3), "whole number of at least 1", value) for value in (0, 1.5, 2.0, *NO_NUMBERS)),
    *((check_above, 0, 5e-324, "finite number above 0", value) for value in (0, -1e-9, *NO_NUMBERS)),
]


@pytest.mark.parametrize(("check", "end", "fine", "allowed", "value"), CASES)
def test_what_is_outside_is_refused(check: Any, end: int, fine: Any, allowed: str, value: Any) -> None:
    settings = SimpleNamespace(one=1, fine=fine, other=value)
    with pytest.raises(ValueError, match=rf"^other is .+; give a {allowed}\.$"):
        check(settings, end, "one", "fine", "other")
    check(settings, end, "one", "fine")


def test_numbers_of_numpy_are_numbers() -> None:
    settings = SimpleNamespace(whole=np.int64(1), real=np.float32(1.5))
    check_least(settings, 1, "whole", "real")
    check_above(settings, 0, "whole", "real")
