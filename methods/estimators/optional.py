"""Optional libraries' estimators by their names, so that readers need no import."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar


class ByName(ABC):  # noqa: B024  (nothing is called on it)
    """Stands for an optional library's estimators, subclasses included, in ``singledispatch`` without an import."""

    package: ClassVar[str] = ""
    names: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        found = any(k.__module__.partition(".")[0] == cls.package and k.__name__ in cls.names for k in kind.__mro__)
        return found or NotImplemented


class XGBoost(ByName):
    """``XGBClassifier`` and ``XGBRegressor``."""

    package, names = "xgboost", frozenset({"XGBClassifier", "XGBRegressor"})


class LightGBM(ByName):
    """``LGBMClassifier`` and ``LGBMRegressor``."""

    package, names = "lightgbm", frozenset({"LGBMClassifier", "LGBMRegressor"})
