"""The global generators: seeded alike, and left as they were found."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.core.randomness import generators_kept, seeded


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands for the library: its state is the last seed."""
    known = SimpleNamespace(state=1)
    known.manual_seed = known.set_rng_state = lambda state: setattr(known, "state", state)
    known.get_rng_state = lambda: known.state
    monkeypatch.setitem(sys.modules, "torch", known)
    return known


def drawn() -> list[float]:
    return [random.random(), np.random.random()]  # noqa: NPY002


def test_equal_entropy_gives_equal_numbers_of_all(torch: Any) -> None:
    """Of the generator that is given, too, whose numbers are those of the entropy alone."""
    found = []
    for entropy in ((3, 4), (3, 4), (3, 5)):
        given = seeded(entropy).random()
        assert given == np.random.default_rng(np.random.SeedSequence(entropy)).random()
        found.append([given, *drawn(), torch.state])
    first, again, other = found
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_they_are_left_as_they_were_found(torch: Any) -> None:
    """Also where what is done with them fails, and where torch is not there."""
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = drawn()
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    with pytest.raises(ValueError, match="negative"), generators_kept():
        seeded([*seeded((1,)).integers(9, size=2), -1])
    assert (drawn(), torch.state) == (expected, 1)
    del sys.modules["torch"]
    with generators_kept():
        seeded((1,))
