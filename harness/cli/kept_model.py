"""The estimator that the runs of a study are about, where the one trained here is the same but for its last digits."""

from __future__ import annotations

import functools
import glob
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.cli.process import log
from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.tolerances import SCORE_TIE
from harness.data import Dataset
from harness.data.csv_settings import without_place
from harness.models.files import checksum
from harness.store.plain import to_plain
from harness.store.run import StoredRun

OF_A_MODEL = ("dataset", "model", "split", "features")  # settings that a trained model depends on
ROWS = 5_000  # that two models are compared on


def of_study(
    classifier: Classifier, dataset: Dataset, names: Mapping[str, str], plain: Mapping[str, Any], folder: Path | None
) -> Classifier:
    """The classifier as the study has it already, of equal settings.

    Processors add up in different orders, so that a scorecard, say, trained on another machine differs in its last
    digits: answers about the two would be of two models, and could not be compared or merged. The study's is taken only
    where both give every row that is asked, at most 5,000, the same class, and scores that are equal to nine digits.

    Parameters
    ----------
    names, plain
        The names of data and model, and all settings.
    folder
        That of the study; None for none.
    """
    if folder is None or classifier.wrapped is not None or "estimator" not in plain["model"]:
        return classifier
    return _of_study(classifier, dataset, f"{names['dataset']}-{names['model']}-", _settings(plain), folder.resolve())


def check_same(stored: StoredRun, classifier: Classifier, dataset: Dataset) -> None:
    """Refuse a run whose stored answers are about another model than the one that its settings give here.

    Raises
    ------
    HarnessError
        Where the two do not predict alike.
    """
    if not _alike(stored.classifier, classifier, _rows(dataset)):
        raise HarnessError(
            f"the answers in {stored.path} are about another model: trained again it predicts otherwise, as on another "
            "machine, or without a random_state. Go on where it was begun, or ask anew with force=true or study=NAME."
        )


def _rows(dataset: Dataset) -> pd.DataFrame:
    return dataset.frame.iloc[np.unique(np.linspace(0, len(dataset.frame) - 1, ROWS).astype(int))]


@functools.lru_cache(maxsize=16)
def _of_study(classifier: Classifier, dataset: Dataset, begin: str, settings: str, folder: Path) -> Classifier:
    rows = _rows(dataset)
    inputs, looked = json.loads(json.dumps(to_plain(classifier.inputs))), set[str]()
    for path in sorted((folder / "answers").glob(f"{glob.escape(begin)}*/cell.json")):
        run = StoredRun(path.parent)
        try:
            meta = run.meta
            fits = meta["data_sha256"] == dataset.sha256 and _settings(meta["config"]) == settings
            if not fits or meta["inputs"] != inputs or (of := checksum(path.with_name("estimator.skops"))) in looked:
                continue
            looked.add(of)
            found = replace(classifier, estimator=run.classifier.estimator)
            if _alike(found, classifier, rows):
                return found
        except Exception as fault:  # of what an archive holds, or another version of a library wrote
            log.debug("the model of %s cannot be asked: %s", path.parent, fault)
    return classifier


def _alike(one: Classifier, other: Classifier, rows: pd.DataFrame) -> bool:
    if one.classes and (one.predict(rows) != other.predict(rows)).any():
        return False
    return bool(np.allclose(one.score(rows), other.score(rows), rtol=SCORE_TIE, atol=SCORE_TIE, equal_nan=True))


def _settings(plain: Mapping[str, Any]) -> str:
    asked = {**plain, "dataset": without_place(plain["dataset"])}
    return json.dumps([asked.get(name) for name in OF_A_MODEL], default=str)
