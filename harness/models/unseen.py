"""Categories of the data that a model's encoder has not seen: whether it can be given them, and what to do if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.gaps import MISSED
from harness.core.space import Feature
from harness.core.wording import some

NAMED = 5  # values that a sentence lists


def unseen(feature: Feature, values: Sequence[Any], known: np.ndarray, lenient: bool, step: str) -> str | None:
    """Why a feature cannot be coded, without a full stop; None where it can.

    Parameters
    ----------
    values
        What the encoder is given of the feature, one for each category.
    known
        What it was trained on.
    lenient
        Whether it takes what it does not know for none of these. Even so it is not to know nothing, for then it was
        trained on other values (texts with blanks around them, numbers) than it is given; nor not to know gaps by
        their name, for these it was given in another way.
    step
        The encoder in words.
    """
    listed = set(known.tolist())
    strange = [value for value in values if value not in listed]
    if not strange or (lenient and len(strange) < len(values) and MISSED not in strange):
        return None
    what = f"{_quoted(strange)}, which {step} of the model has not seen (it knows {_quoted(known.tolist())})"
    return f"column {feature.name!r} has the categories {what}{_remedy(feature, strange, listed)}"


def _quoted(values: Sequence[Any]) -> str:
    return some([repr(value) for value in values], NAMED)


def _remedy(feature: Feature, strange: Sequence[Any], known: set[Any]) -> str:
    if strange == [MISSED]:
        own = f"features.{feature.name}.missing"
        return f"; these are its gaps: set {own} to drop or most_frequent, or train on fillna({MISSED!r})"
    if all(isinstance(value, str) and value.isdecimal() and int(value) in known for value in strange):
        return f"; it was trained on numbers: train on pd.read_csv(..., dtype={{{feature.name!r}: str}})"
    if {str(value).strip() for value in known} & {str(value) for value in strange}:
        return "; train on texts without blanks around them, as pd.read_csv(..., skipinitialspace=True) has them"
    return ""
