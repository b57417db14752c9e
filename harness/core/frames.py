"""Tables with some of their columns changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A copy with these columns, of any name: pandas' own ``assign`` takes none that is called ``self``.

    >>> with_columns(pd.DataFrame({"self": [1], "age": [30]}), {"self": [2]}).to_dict("list")
    {'self': [2], 'age': [30]}
    """
    made = frame.copy(deep=False)
    for name, values in columns.items():
        made[name] = values
    return made
