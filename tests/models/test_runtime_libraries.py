"""CatBoost and torch: what is read of their models is what they compute, from files and from live objects."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.brought import FOLDER, INPUTS, PIMA, asked, table_of

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.library import explain, pose
from harness.models.runtime import catboost_engine
from harness.models.runtime.source import ModelSource
from harness.models.runtime.torch_engine import TorchEngine
from methods.ce_ocl import CeOcl
from methods.estimators.trees import ensemble
from methods.nearest import Nearest


def near_borders(classifier: Classifier, count: int = 3000) -> np.ndarray:
    """Rows with values on thresholds, next to them in float32 and float64, and missing."""
    rng = np.random.default_rng(0)
    points = INPUTS[rng.integers(0, len(INPUTS), count)].copy()
    for column in range(points.shape[1]):
        trees = ensemble(classifier.estimator).trees
        cuts = np.concatenate([tree.threshold[(tree.column == column) & (tree.left >= 0)] for tree in trees])
        if not len(cuts):
            continue
        at = cuts[rng.integers(0, len(cuts), count)]
        above, below = (np.nextafter(at.astype(np.float32), np.float32(side)).astype(float) for side in (9e9, -9e9))
        ways = [at, above, below, np.nextafter(at, 9e9), np.nextafter(at, -9e9), (at + above) / 2, (at + below) / 2]
        change = rng.random(count) < 0.7
        points[change, column] = np.choose(rng.integers(0, len(ways), count), ways)[change]
    return np.where(rng.random(points.shape) < 0.1, np.nan, points)


# --- CatBoost -----------------------------------------------------------------------------------------------------


def cat(stem: str) -> Any:
    """CatBoost's own model of a file."""
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    model = catboost.CatBoostRegressor() if "number" in stem else catboost.CatBoostClassifier()
    return model.load_model(str(FOLDER / f"{stem}.cbm"))


@pytest.mark.parametrize("stem", ["catboost", "catboost_three", "catboost_number"])
def test_symmetric_trees_are_read_as_catboost_computes_them(stem: str) -> None:
    """On and next to every border, and of a live model as of its file."""
    model = cat(stem)
    classifier, live = asked(FOLDER / f"{stem}.cbm", stem), asked(model, stem)
    assert classifier.opaque is live.opaque is None
    points = near_borders(classifier)
    raw = np.reshape(model.predict(points, prediction_type="RawFormulaVal"), (len(points), -1))
    for known in (classifier, live):
        np.testing.assert_allclose(ensemble(known.estimator).raw(points), raw, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(known.estimator.trees.sums(points), raw, rtol=1e-12, atol=1e-12)
    if "number" not in stem:
        np.testing.assert_array_equal(classifier.decide(points), np.ravel(model.predict(points)))
        np.testing.assert_allclose(classifier.estimator.predict_proba(points), model.predict_proba(points), atol=1e-12)


@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_gaps_go_where_catboost_sends_them(mode: str) -> None:
    """Below all numbers or above, of a model that saw some in training."""
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    settings = {"iterations": 12, "depth": 3, "nan_mode": mode, "verbose": False, "allow_writing_files": False}
    gaps = np.random.default_rng(0).random(INPUTS.shape) < 0.2
    model = catboost.CatBoostClassifier(**settings).fit(np.where(gaps, np.nan, INPUTS), PIMA["Outcome"])
    known = asked(model)
    points = near_borders(known)
    raw = model.predict(points, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(ensemble(known.estimator).raw(points)[:, 0], raw, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stem", ["catboost", "catboost_number"])
def test_catboost_is_explained_and_its_counterfactual_holds(stem: str) -> None:
    model, (frame, given) = cat(stem), table_of(stem)
    question = pose(frame, "Outcome", model, **given)
    wanted = next(iter(question.problems.values())).target if "number" in stem else None
    said = model.predict(INPUTS)
    factual = int(np.flatnonzero(said < 110 if wanted is not None else said == 1)[0])
    explanation = explain(CeOcl(), question, factual, time_limit=30)
    assert explanation.answers[0].status.name == "OPTIMAL"
    assert explanation.context.verdicts == ("accepted",)
    row = np.array([list(explanation.answers[0].row.values())], dtype=float)
    assert model.predict(row)[0] >= 120 if wanted is not None else model.predict(row)[0] == 0


def fitted(kind: str, data: Any, outcome: Any, **settings: Any) -> Any:
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    given = {"iterations": 8, "depth": 2, "verbose": False, "allow_writing_files": False, "random_seed": 0, **settings}
    return getattr(catboost, f"CatBoost{kind}")(**given).fit(data, outcome)


def test_a_threshold_of_catboosts_own_is_not_read_and_kept() -> None:
    """Whether or not some row of the data lies between it and one half."""
    model = fitted("Classifier", INPUTS, PIMA["Outcome"])
    model.set_probability_threshold(0.62)
    share = model.predict_proba(INPUTS)[:, 1]
    for rows in (PIMA, PIMA[(share <= 0.5) | (share > 0.62)].reset_index(drop=True)):
        known = pose(rows, "Outcome", model, desired="1").classifier
        assert "its own threshold of probabilities is 0.62" in (known.opaque or "")
        np.testing.assert_array_equal(known.predict(PIMA).astype(str) == "1", share > 0.62)
    model.set_probability_threshold(0.5)
    assert pose(PIMA, "Outcome", model, desired="1").classifier.opaque is None


@pytest.mark.parametrize("written", [bool, str, object], ids=["bool", "texts", "objects"])
def test_truth_values_are_given_to_catboost_as_it_was_trained_on_them(written: type) -> None:
    """It writes True as 1 of truth values, whatever holds them, and takes the text True for another category."""
    old = (PIMA["Age"] > 30) ^ (PIMA["BMI"] > 32)
    frame = PIMA[["Glucose"]].assign(
        member=old, Outcome=(old ^ (PIMA["Glucose"] > 120)).map({False: "no", True: "yes"})
    )
    trained = frame[["Glucose", "member"]].assign(member=old.astype(written))
    model = fitted("Classifier", trained, frame["Outcome"], cat_features=["member"], one_hot_max_size=4, iterations=30)
    question = pose(frame, "Outcome", model, desired="yes")
    assert question.classifier.opaque is None
    said = np.ravel(model.predict(trained))
    assert len(set(said)) == 2
    np.testing.assert_array_equal(question.classifier.predict(frame), said)
    factual = int(np.flatnonzero(said == "no")[0])
    answer = explain(CeOcl(), question, factual, time_limit=30).answers[0]
    assert answer.status.name == "OPTIMAL"
    row = pd.DataFrame([answer.row])[["Glucose", "member"]]
    assert np.ravel(model.predict(row.assign(member=row["member"].astype(bool).astype(written))))[0] == "yes"


@pytest.mark.parametrize("written", [bool, str])
def test_truth_values_are_told_by_trees_that_are_not_symmetric(written: type) -> None:
    """Which are predicted, and not read."""
    old = (PIMA["Age"] > 30).rename("member").to_frame().assign(Glucose=PIMA["Glucose"])
    outcome = np.where(old["member"] ^ (PIMA["Glucose"] > 120), "yes", "no")
    trained = old.assign(member=old["member"].astype(written))
    given: dict[str, Any] = {"cat_features": ["member"], "one_hot_max_size": 4, "grow_policy": "Depthwise"}
    model = fitted("Classifier", trained, outcome, **given)
    known = pose(old.assign(y=outcome), "y", model, desired="yes").classifier
    assert "not symmetric" in (known.opaque or "")
    np.testing.assert_array_equal(known.predict(old), np.ravel(model.predict(trained)))


def test_truth_values_of_two_spellings_are_refused() -> None:
    """One column of truth values, another of their texts: in the data both are truth values."""
    data = pd.DataFrame({"member": PIMA["Age"] > 30, "other": PIMA["BMI"] > 32})
    outcome = np.where(data["member"] ^ data["other"], "yes", "no")
    model = fitted(
        "Classifier", data.astype({"other": str}), outcome, cat_features=["member", "other"], one_hot_max_size=4
    )
    with pytest.raises(HarnessError, match="it does not tell how member was written"):
        pose(data.assign(y=outcome), "y", model, desired="yes")


def test_truth_values_that_catboost_does_not_tell_are_refused() -> None:
    """Of splits by statistics of categories nobody sees how these were written."""
    member = PIMA["Age"] > 30
    data = pd.DataFrame({"member": member, "other": PIMA["BMI"] > 32})
    outcome = np.where(member ^ (PIMA["BMI"] > 32), "yes", "no")
    model = fitted("Classifier", data, outcome, cat_features=["member", "other"], one_hot_max_size=1)
    with pytest.raises(
        HarnessError, match=r"it does not tell how member was written when it was trained; train it on texts"
    ):
        pose(data.assign(y=outcome), "y", model, desired="yes")


@pytest.mark.parametrize("loss", ["Poisson", "Tweedie:variance_power=1.5", "RMSE"])
def test_numbers_are_those_that_catboost_predicts(loss: str) -> None:
    """Not their logarithm."""
    model = fitted("Regressor", INPUTS, PIMA["Pregnancies"], loss_function=loss)
    frame = PIMA.iloc[:, :-1].assign(many=PIMA["Pregnancies"])
    known = pose(frame, "many", ModelSource(model), desired=">= 3").classifier
    np.testing.assert_allclose(known.predict(frame).astype(float), model.predict(INPUTS), rtol=1e-12)
    assert (known.opaque is None) == (loss == "RMSE")


def test_several_numbers_of_catboost_are_refused() -> None:
    model = fitted("Regressor", INPUTS, PIMA["Pregnancies"], loss_function="RMSEWithUncertainty")
    with pytest.raises(HarnessError, match="it predicts several numbers; train it with a loss of one"):
        pose(PIMA.iloc[:, :-1].assign(many=PIMA["Pregnancies"]), "many", model, desired=">= 3")


def test_probabilities_of_one_class_against_all_are_catboosts() -> None:
    three = np.digitize(PIMA["Glucose"], [100, 140]).astype(str)
    model = fitted("Classifier", INPUTS, three, loss_function="MultiClassOneVsAll")
    known = pose(PIMA.iloc[:, :-1].assign(y=three), "y", model, desired="2").classifier
    assert known.opaque is None
    np.testing.assert_allclose(known.estimator.predict_proba(INPUTS), model.predict_proba(INPUTS), atol=1e-12)
    np.testing.assert_array_equal(known.estimator.predict(INPUTS), np.ravel(model.predict(INPUTS)))


def test_columns_of_catboost_are_taken_by_name_if_it_knows_names() -> None:
    """A column that is not there does not make it take all of them by place, unless they are listed."""
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    model = catboost.CatBoostClassifier(iterations=4, depth=2, verbose=False, allow_writing_files=False)
    given = PIMA[["Age", "BMI", "Outcome"]]
    model.fit(given.rename(columns={"BMI": "Mass"})[["Mass", "Age"]], PIMA["Outcome"])
    with pytest.raises(HarnessError, match=r"it takes the columns Mass, .*Age, BMI; list these .* columns=\[...\]"):
        pose(given, "Outcome", model)
    space = pose(given, "Outcome", ModelSource(model, columns=["BMI", "Age"])).dataset.space
    assert [each.feature for each in ModelSource(model).opened(space, 2, stored=True).inputs] == ["Age", "BMI"]
    known = pose(given, "Outcome", ModelSource(model, columns=["BMI", "Age"])).classifier
    said = model.predict(given.rename(columns={"BMI": "Mass"})[["Mass", "Age"]])
    np.testing.assert_array_equal(known.predict(given), np.ravel(said))
    coded = given.assign(Sort=np.where(given["Age"] > 30, "older", "younger"))
    columns = {"Sort=older": coded["Age"] > 30, "Age": coded["Age"], "Sort=younger": coded["Age"] <= 30}
    model = catboost.CatBoostClassifier(iterations=4, depth=2, verbose=False, allow_writing_files=False)
    model.fit(pd.DataFrame(columns).astype(float), PIMA["Outcome"])
    known = pose(coded[["Age", "Sort", "Outcome"]], "Outcome", model).classifier
    np.testing.assert_array_equal(known.predict(coded), np.ravel(model.predict(pd.DataFrame(columns).astype(float))))


GROUPS = PIMA.iloc[:, :3].assign(Group=np.where(PIMA["Age"] > 30, "older", "younger"), Outcome=PIMA["Outcome"])


def grouped(**settings: Any) -> Any:
    """A CatBoost model of two numbers and of categories, one of them written as whole numbers."""
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    given = {"iterations": 6, "depth": 3, "verbose": False, "allow_writing_files": False, **settings}
    frame = banded()
    model = catboost.CatBoostClassifier(**given)
    return model.fit(frame.drop(columns="Outcome"), frame["Outcome"], cat_features=["Group", "Band"])


def banded() -> pd.DataFrame:
    return GROUPS.iloc[:, [1, 2, 3, 4]].assign(Band=PIMA["Pregnancies"].clip(upper=4)).iloc[:, [0, 2, 1, 4, 3]]


def test_categories_of_catboost_are_read_where_each_is_split_off() -> None:
    """From a file that knows no names, and of a live model whose columns lie in another order."""
    model = cat("catboost_categories")
    known = pose(GROUPS, "Outcome", FOLDER / "catboost_categories.cbm", desired="0").classifier
    assert known.opaque is None
    np.testing.assert_array_equal(known.predict(GROUPS), np.ravel(model.predict(GROUPS.to_numpy(object)[:, :4])))
    mixed = banded().sample(frac=1, axis=1, random_state=1)
    question = pose(mixed, "Outcome", model := grouped(one_hot_max_size=9), desired="0", features=KINDS)
    known, names = question.classifier, list(banded().columns.drop("Outcome"))
    assert known.opaque is None
    raw = model.predict(banded()[names], prediction_type="RawFormulaVal")
    np.testing.assert_allclose(known.raw(question.dataset.frame), raw, rtol=1e-12, atol=1e-12)
    factual = int(np.flatnonzero(known.codes(question.dataset.frame) == 1)[0])
    explanation = explain(CeOcl(), question, factual, time_limit=30)
    assert explanation.answers[0].status.name == "OPTIMAL"
    assert explanation.context.verdicts == ("accepted",)
    assert model.predict(pd.DataFrame([explanation.answers[0].row])[names].astype({"Band": str}))[0] == 0


KINDS = {**dict.fromkeys(banded().columns.drop("Outcome")), "Band": {"kind": "categorical"}}


def test_statistics_of_categories_are_named_and_predict() -> None:
    question = pose(banded(), "Outcome", model := grouped(), desired="0", features=KINDS)
    known = question.classifier
    assert "its trees split by OnlineCtr, statistics of categories; train it with a one_hot_max_size" in known.opaque
    codes = known.codes(question.dataset.frame)
    np.testing.assert_array_equal(codes, model.predict(banded().drop(columns="Outcome").astype({"Band": str})))
    (answer,) = explain(Nearest(), question, int(np.flatnonzero(codes == 1)[0])).answers
    assert answer.status.name == "FOUND"


def test_categories_that_the_data_have_otherwise_are_one_sentence() -> None:
    model = grouped()
    with pytest.raises(
        HarnessError, match=r"takes Band for a category, .* set features={'Band': {'kind': 'categorical'}}"
    ):
        pose(banded(), "Outcome", model, desired="0", features={**KINDS, "Band": {"kind": "integer"}})
    with pytest.raises(
        HarnessError, match=r"it takes the columns Glucose, Group, BloodPressure, Band, which the data have not"
    ):
        pose(PAIR_OF_OTHERS, "Outcome", model, desired="0")


PAIR_OF_OTHERS = PIMA[["BMI", "Age", "Insulin", "Outcome"]]


def test_trees_of_another_shape_are_named_and_predict() -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    settings = {"iterations": 5, "depth": 3, "grow_policy": "Depthwise", "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**settings).fit(INPUTS, PIMA["Outcome"])
    known = asked(model)
    assert "its trees are not symmetric (grow_policy)" in known.opaque
    frame = pose(PIMA, "Outcome", model, desired="0").dataset.frame
    np.testing.assert_array_equal(known.codes(frame), model.predict(INPUTS))


def test_a_file_that_is_no_catboost_model_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that ends the process which reads it, as another process tries before."""
    pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    (tmp_path / "no.cbm").write_bytes(b"no model")
    with pytest.raises(HarnessError, match="it is no CatBoost model") as fault:
        asked(tmp_path / "no.cbm")
    assert "\n" not in str(fault.value)
    monkeypatch.setattr(catboost_engine, "READING", "import os; os.abort()")
    (tmp_path / "no.cbm").write_bytes(b"no model either")
    with pytest.raises(HarnessError, match=r"it is no CatBoost model \(CatBoost's process ends where it reads it\)"):
        asked(tmp_path / "no.cbm")


@pytest.mark.parametrize(
    ("name", "place", "bit"),
    [("", 8453, 128), ("_number", 7993, 128), ("_number", 8021, 64), ("_three", 10486, 16)],
)
def test_a_catboost_file_with_another_bit_ends_no_process_of_ours(
    name: str, place: int, bit: int, tmp_path: Path
) -> None:
    """Of an offset, by which CatBoost reads or writes beyond the file: that ends its process, or gives numbers, as
    memory is; or of a split on a column that there is not."""
    pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    content = bytearray((FOLDER / f"catboost{name}.cbm").read_bytes())
    content[place] ^= bit
    (tmp_path / "no.cbm").write_bytes(content)
    with contextlib.suppress(HarnessError):
        asked(tmp_path / "no.cbm")


# --- torch --------------------------------------------------------------------------------------------------------


def torch_library() -> Any:
    return pytest.importorskip("torch", reason="torch is in the extra 'torch'")


def body(torch: Any, *end: Any, outputs: int = 1) -> Any:
    torch.manual_seed(1)
    first = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    return torch.nn.Sequential(first, torch.nn.Linear(6, outputs), *end)


def test_a_state_dict_is_its_network() -> None:
    """Rebuilt from the shapes of its weights; ReLU between, or what ``activation`` says."""
    torch = torch_library()
    state = torch.load(FOLDER / "torch_state.pt", weights_only=True)
    net = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    net.load_state_dict(state)
    known = asked(FOLDER / "torch_state.pt")
    assert known.opaque is None
    with torch.no_grad():
        odds = net(torch.tensor(INPUTS, dtype=torch.float32)).numpy()[:, 0]
    np.testing.assert_array_equal(known.decide(INPUTS), odds > 0)
    np.testing.assert_allclose(known.estimator.decision_function(INPUTS), odds, rtol=1e-4, atol=1e-4)
    curved = asked(FOLDER / "torch_state.pt", activation="tanh")
    assert "its part Tanh is not read" in curved.opaque
    with pytest.raises(HarnessError, match=r"activation='rlu'\) does not exist; did you mean 'relu'"):
        asked(FOLDER / "torch_state.pt", activation="rlu")


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("ended", [False, True])
def test_a_live_module_is_read_and_left_as_it_was(outputs: int, ended: bool) -> None:
    torch = torch_library()
    end = (torch.nn.Sigmoid() if outputs == 1 else torch.nn.Softmax(dim=1),) if ended else ()
    module = body(torch, *end, outputs=outputs).train()
    frame, given = table_of("three" if outputs == 3 else "")
    known = pose(frame, "Outcome", module, **given).classifier
    assert known.opaque is None
    assert module.training
    with torch.no_grad():
        scores = module.eval()(torch.tensor(INPUTS, dtype=torch.float32)).numpy()
    expected = scores[:, 0] > (0.5 if ended else 0) if outputs == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(known.decide(INPUTS), expected)
    raw = known.raw(pose(frame, "Outcome", module, **given).dataset.frame)
    sure = np.abs(raw) > 1e-3 if outputs < 3 else np.ones(len(raw), dtype=bool)
    np.testing.assert_array_equal((raw > 0 if outputs < 3 else raw.argmax(axis=1))[sure], expected[sure])


def test_a_module_of_any_other_kind_predicts() -> None:
    torch = torch_library()
    module = body(torch, torch.nn.LeakyReLU(), torch.nn.Linear(1, 1))
    known = asked(module)
    assert "its part LeakyReLU is not read" in known.opaque
    with pytest.raises(HarnessError, match="scores after its LeakyReLU are probabilities or log odds is not said"):
        asked(body(torch, torch.nn.LeakyReLU()))
    assert isinstance(known.wrapped.model.engine, TorchEngine)


def test_a_counterfactual_of_a_live_module_holds() -> None:
    torch = torch_library()
    module = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    module.load_state_dict(torch.load(FOLDER / "torch_state.pt", weights_only=True))
    question = pose(PIMA, "Outcome", module, desired="0", immutable=["Age"])
    factual = int(np.flatnonzero(question.classifier.codes(question.dataset.frame) == 1)[0])
    explanation = explain(CeOcl(), question, factual, time_limit=30, worker=True)
    assert explanation.answers[0].status.name == "OPTIMAL"
    row = torch.tensor([list(map(float, explanation.answers[0].row.values()))], dtype=torch.float32)
    assert module(row).item() <= 0


def test_files_of_other_things_are_one_sentence(tmp_path: Path) -> None:
    """A whole module is a pickle, which is not run."""
    torch = torch_library()
    (tmp_path / "no.pt").write_bytes(b"no weights")
    torch.save({"a": {"b": 1}}, tmp_path / "nested.pt")
    torch.save({"conv.weight": torch.zeros(2, 2, 3, 3)}, tmp_path / "conv.pt")
    torch.save({"0.weight": torch.zeros(3, 8), "1.weight": torch.zeros(1, 4)}, tmp_path / "gap.pt")
    for path, sentence in (
        (tmp_path / "no.pt", "it is no state dict"),
        (FOLDER / "torch_whole.pt", "it is no state dict of tensors alone, and nothing else is read; save torch.save"),
        (tmp_path / "nested.pt", "it is no state dict; save torch.save"),
        (tmp_path / "conv.pt", "'conv.weight', which is no weight of a dense layer"),
        (tmp_path / "gap.pt", "its layer '1.weight' takes 4 units, and 3 come before it"),
    ):
        with pytest.raises(HarnessError, match=sentence) as fault:
            asked(path)
        assert "\n" not in str(fault.value)
