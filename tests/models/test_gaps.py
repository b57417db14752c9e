"""Models that take missing values are asked about them as they are; others refuse, and say what to set."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.core.gaps import missing
from harness.data import Dataset, load_dataset
from harness.data.sources import RAW
from harness.library import explain, pose
from harness.models.train import train
from methods.ce_ocl import CeOcl
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


EXPORTED = Path(__file__).parents[1] / "fixtures" / "exported"


def diabetes() -> pd.DataFrame:
    """The Pima data, a fifth of two columns missing."""
    rng, frame = np.random.default_rng(0), pd.read_csv(RAW / "pima.csv")
    for name in ("Glucose", "BMI"):
        frame[name] = frame[name].mask(rng.random(len(frame)) < 0.2)
    return frame


@pytest.mark.parametrize("stem", ["sk_network", "torch_one", "sk_linear"])
def test_a_network_in_a_file_takes_none(stem: str) -> None:
    """Its runtime computes NaN of NaN, which is no score."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'onnx'")
    with pytest.raises(HarnessError, match="this onnxruntime model takes no missing values, and Glucose keeps them"):
        pose(diabetes(), "Outcome", EXPORTED / f"{stem}.onnx", desired="0", missing="value")


@pytest.mark.parametrize("file", ["sk_forest.onnx", "sk_boosting.onnx", "catboost.onnx", "catboost.cbm"])
def test_trees_in_files_send_gaps_where_their_library_does(file: str) -> None:
    """Proven by what is read of them, and accepted by the library."""
    pytest.importorskip({".onnx": "onnxruntime", ".cbm": "catboost"}[Path(file).suffix])
    task = pose(diabetes(), "Outcome", EXPORTED / file, desired="0", missing="value")
    people = task.factuals.index[task.factuals["Glucose"].isna()]
    for person in [one for one in people if not task.satisfied(one)][:3]:
        answer = explain(CeOcl(), task, person)
        assert (answer.answers[0].status, answer.context.verdicts) == (Status.OPTIMAL, ("accepted",))


def test_what_cannot_be_searched_with_gaps_is_said() -> None:
    """No other engine takes gaps: a refusal, and no exception."""
    data = table().assign(job=np.random.default_rng(1).choice(["low", "mid", "high"], 200))
    data["ok"] = np.where((data["job"] == "mid") ^ (data["income"].fillna(0) > 90), "yes", "no")
    coded = make_column_transformer((OrdinalEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(coded, HistGradientBoostingClassifier(max_iter=5)).fit(data.drop(columns="ok"), data["ok"])
    ordered = {"job": {"kind": "ordinal", "categories": ["low", "mid", "high"]}}
    task = pose(data, "ok", model, desired="yes", missing="value", features=ordered)
    person = next(one for one in task.factuals.index if not task.satisfied(one))
    answer = explain(CeOcl(), task, person).answers[0]
    assert answer.status is Status.UNSUPPORTED
    assert "job is ordinal, and the model splits it out of its order; make it categorical" in str(answer.detail)


def test_a_feature_with_gaps_may_be_called_self() -> None:
    """As an argument of pandas' own functions is called."""
    renamed = table().rename(columns={"income": "self"})
    model = HistGradientBoostingClassifier(max_iter=5).fit(renamed[["self", "debt"]], renamed["ok"])
    assert pose(renamed, "ok", model, missing="value").dataset.space["self"].missing


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
