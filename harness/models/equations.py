"""Structural equations of a dataset: explicit, learnt from its training rows, or published by a paper's authors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped]
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV

from harness.core.equation import Equation
from harness.core.errors import DatasetError
from harness.core.inputs import Affine
from harness.core.packages import CONF
from harness.core.space import Space
from harness.data.equations import check, ordered, parse
from harness.data.load import source_of
from harness.models.published import load_regressor
from harness.models.train import train

FOLDS = 5  # of the cross-validation that chooses among the settings of a ``grid``


def _named(name: str) -> Any:
    """The regressor of a name in ``conf/model``, unfitted, with seeds of 0."""
    file = CONF / "model" / f"{name}.yaml"
    given = yaml.safe_load(file.read_text()).get("estimator") if file.is_file() else None
    if given is None:
        raise DatasetError(f"no equation can be learnt by {name!r}; give a regression model, such as ridge.")
    return resolve_name(given.pop("_target_"))(**{k: 0 if v == "${model_seed}" else v for k, v in given.items()})


def equations(
    space: Space,
    frame: pd.DataFrame,
    causality: Mapping[str, Mapping[str, Any] | None],
    cache: Path | None = None,
) -> tuple[Equation, ...]:
    """The equations of a description, causes before effects; those to be learnt are fitted.

    Parameters
    ----------
    frame
        Decoded training rows.
    causality
        By endogenous feature either ``{formula}``, a text for ``parse``; or ``{parents, learn, grid}``: names of
        features, an unfitted regressor or the name of one in ``conf/model``, and optionally lists of settings by
        parameter, from which five-fold cross-validation takes the best; or ``{parents, published, scale}``: numeric
        features, the ``file`` (with ``sha256`` and ``urls``) of a network of ReLUs, and what 0 and 1 stand for, of the
        parents and of the feature itself. None in place of a description is no equation.
    cache
        Where fitted regressors are kept.

    Raises
    ------
    DatasetError
        If the description does not fit the features.
    """
    check(space, causality)
    made = []
    for name in ordered(space, causality):
        entry, feature = causality[name] or {}, space[name]
        if "formula" in entry:
            model = parse(entry["formula"], space)
            made.append(Equation(name, model, text=entry["formula"]))
            continue
        if "published" in entry:
            low, high = entry["scale"][name]
            ends = [(parent, *entry["scale"][parent]) for parent in entry["parents"]]
            inputs = [Affine(parent, first, last - first) for parent, first, last in ends]
            model = load_regressor(source_of(f"the equation of {name}", entry["published"]), inputs)
            made.append(Equation(name, model, low, high - low))
            continue
        learner = _named(entry["learn"]) if isinstance(entry["learn"], str) else entry["learn"]
        if not hasattr(learner, "fit") or not is_regressor(learner):
            raise DatasetError(
                f"the equation of {name} is to be learnt by {learner!r}; give an unfitted regressor, such as Ridge()."
            )
        if frame[name].nunique() < 2:
            raise DatasetError(f"{name} is the same in every training row; there is no equation to learn.")
        if entry.get("grid"):
            learner = GridSearchCV(learner, dict(entry["grid"]), cv=FOLDS)
        causes = Space(tuple(space[parent] for parent in entry["parents"]))
        scaled = (frame[name].to_numpy(float) - feature.scale[0]) / feature.range
        model = train(clone(learner), causes, frame, scaled, (), cache=cache)
        made.append(Equation(name, model, feature.scale[0], feature.range))
    return tuple(made)
