"""Time that ends at a look at the clock, whatever the machine."""

from __future__ import annotations

import math

from harness.core.method import Deadline


class Looks(Deadline):
    """Time that has passed once it was asked about so many times."""

    def __init__(self, count: int) -> None:
        super().__init__(math.inf)
        self.__dict__["looks"] = count

    @property
    def left(self) -> float:
        self.__dict__["looks"] -= 1
        return 30.0 if self.__dict__["looks"] >= 0 else 0.0
