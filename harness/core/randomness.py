"""The two global generators of random numbers, Python's and NumPy's, which libraries draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def generators_kept() -> Iterator[None]:
    """Leave both generators as they were found, whatever draws from them or seeds them."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
