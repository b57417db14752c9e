"""Models that take missing values are asked about them as they are; others refuse, and say what to set."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.core.gaps import missing
from harness.data import Dataset, load_dataset
from harness.library import explain, pose
from harness.models.train import train
from methods.md_pso import MdPso
from methods.nearest import Nearest


def table(rows: int = 200) -> pd.DataFrame:
    """Loans: a missing income is a bad sign, a missing debt a good one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(50, 20, rows).round(1), "debt": rng.gamma(2, 10, rows).round(1)})
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    merit = frame["income"].fillna(20) - 2 * frame["debt"].fillna(0)
    return frame.assign(ok=np.where(merit > merit.median(), "yes", "no"))


def loans(**settings: object) -> Dataset:
    given = {"missing": "value", **settings}
    return load_dataset("loans", (), "ok", **given, tables=([table()], "0"))  # type: ignore[arg-type]


def fitted(estimator: object, dataset: Dataset) -> object:
    rows = dataset.frame.iloc[dataset.train]
    return train(estimator, dataset.space, rows, dataset.labels[dataset.train], dataset.classes)


@pytest.mark.parametrize("estimator", [LogisticRegression(), GradientBoostingClassifier(n_estimators=3)])
def test_a_model_that_takes_none_says_what_to_set(estimator: object) -> None:
    kind = type(estimator).__name__
    with pytest.raises(HarnessError, match=rf"{kind} takes no missing values, and income .*features\.income\.missing"):
        fitted(estimator, loans())
    filled = table().fillna(0)
    model = estimator.fit(filled[["income", "debt"]], filled["ok"])  # type: ignore[attr-defined]
    with pytest.raises(HarnessError, match=rf"{kind} takes no missing values"):
        pose(table(), "ok", model, missing="value")


def test_people_with_gaps_are_explained_in_a_notebook() -> None:
    """A gap is kept or filled, made only where it may be; methods that take none say what to set."""
    data = table()
    model = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=20)).fit(
        data[["income", "debt"]], data["ok"]
    )
    open_to = {"income": {}, "debt": {"may_be_missing": True}}
    closed = pose(data, "ok", model, desired="yes", missing="value")
    opened = pose(data, "ok", model, desired="yes", missing="value", features=open_to)
    assert closed.classifier.opaque is None
    seen = set()
    for task in (closed, opened):
        for person in [i for i in task.factuals.index if not task.satisfied(i)][:40]:
            answer = explain(Nearest(), task, person)
            assert answer.context.verdicts == ("accepted",)
            row = answer.answers[0].row
            assert row is not None
            for name in ("income", "debt"):
                seen.add((task is opened, name, missing(task.factuals.loc[person, name]), missing(row[name])))
    filled, made = (True, False), (False, True)
    assert {(False, "income", *filled), (True, "debt", *made)} <= seen
    assert not {(False, "debt", *made), (False, "income", *made), (True, "income", *made)} & seen
    new = explain(Nearest(), closed, {"income": None, "debt": 60.0})
    assert new.answers[0].status is Status.FOUND
    assert "missing" in str(new)
    refused = explain(MdPso(), closed, {"income": None, "debt": 60.0})
    assert "MdPso takes no missing values, and income keeps them; set features={'income': {'missing'" in str(
        refused.answers[0].detail
    )


def test_a_pipeline_that_imputes_is_asked_as_it_is() -> None:
    data = table()
    model = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression())
    task = pose(data, "ok", model.fit(data[["income", "debt"]], data["ok"]), desired="yes", missing="value")
    assert "fills missing values, which income keeps" in str(task.classifier.opaque)
    people = [i for i in task.factuals.index if not task.satisfied(i)]
    assert all(explain(Nearest(), task, person).context.verdicts == ("accepted",) for person in people[:10])
