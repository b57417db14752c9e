"""The global generators of random numbers, which libraries draw from: Python's, NumPy's, and torch's."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np


def seeded(entropy: Sequence[int]) -> np.random.Generator:
    """A generator, and the global ones seeded alike; torch's where it is imported."""
    sequence = np.random.SeedSequence(entropy)
    state = sequence.generate_state(4)
    random.seed(state.tobytes())
    np.random.seed(state)  # noqa: NPY002
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(int(state[0]))
    return np.random.default_rng(sequence)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Leave them as they were found, whatever draws from them or seeds them."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    torch_state = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(torch_state)
