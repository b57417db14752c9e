"""A user's model: read without running code in the file, matched to the data, and judged again from its copy."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from skops import io

from harness import check
from harness.core.classifier import Classifier, WrappedModel
from harness.core.errors import HarnessError
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.evaluation import checker
from harness.models import files
from harness.models.adopt import assemble, from_file
from harness.models.files import checksum
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.dice import Dice
from methods.nearest import Nearest

ROOT = Path(__file__).parents[2]
SPACE = Space(
    (
        Feature("age", "integer", scale=(18, 80), bounds=(18, 80)),
        Feature("income", "continuous", scale=(0.0, 9.0), bounds=(0.0, 9.0)),
        Feature("city", "categorical", ("Bonn", "Köln", "Ulm")),
        Feature("member", "binary", (False, True)),
    )
)


def sample(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    draws = {
        "age": rng.integers(18, 81, rows).tolist(),
        "income": rng.uniform(0, 9, rows).tolist(),
        "city": rng.choice(["Bonn", "Köln", "Ulm"], rows).tolist(),
        "member": rng.choice([False, True], rows).tolist(),
    }
    return SPACE.frame(pd.DataFrame(draws).astype(object).to_dict("records"))


FRAME = sample()
READ = FRAME.astype({"city": "str", "member": bool})
GOOD = (FRAME["age"] / 20 + FRAME["income"] + 2 * (FRAME["city"] == "Ulm") > 7.5).to_numpy()
LABELS = np.where(GOOD, "good", "bad").astype(object)


def steps() -> Any:
    return make_column_transformer((StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["city", "member"]))


def trained(last: Any = None, labels: np.ndarray = LABELS) -> Pipeline:
    return make_pipeline(steps(), LogisticRegression() if last is None else last).fit(READ, labels)


def read(path: Path, **options: Any) -> Classifier:
    return from_file(path, SPACE, FRAME, ("bad", "good"), name="loans", **options)


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    def save(model: Any, name: str = "model.skops") -> Path:
        (io if name.endswith(".skops") else joblib).dump(model, tmp_path / name)
        return tmp_path / name

    return save


# --- what a file may do -------------------------------------------------------------------------------------------


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("name", ["model.pkl", "model.pickle", "model.joblib", "model.PKL"])
def test_a_pickle_is_not_read_without_trust(tmp_path: Path, name: str) -> None:
    """The error says why, and what to do; nothing runs."""
    (tmp_path / name).write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match=r"runs code of whoever made it; .*skops.io.dump.*model.trust=true"):
        read(tmp_path / name)
    assert not (tmp_path / "struck").exists()


def test_with_trust_a_pickle_runs(tmp_path: Path) -> None:
    """So the test above would notice."""
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match="NoneType"):
        read(tmp_path / "model.pkl", trust=True)
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("trust", [False, True])
def test_a_pickle_under_another_name_is_never_read(tmp_path: Path, trust: bool) -> None:
    (tmp_path / "model.skops").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match=r"is no skops file \(it is a pickle"):
        read(tmp_path / "model.skops", trust=trust)
    assert not (tmp_path / "struck").exists()


def test_a_trusted_pickle_is_the_model(saved: Callable[..., Path]) -> None:
    model = trained()
    known = read(saved(model, "model.joblib"), trust=True)
    assert known.whole is not None
    assert known.whole.trusted
    np.testing.assert_array_equal(known.predict(FRAME), model.predict(READ))


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def schema(**node: Any) -> bytes:
    return json.dumps({"protocol": 2, "_skops_version": "0.16", "__id__": 1, **node}).encode()


def node(module: str, kind: str, loader: str, **rest: Any) -> dict[str, Any]:
    return {"__module__": module, "__class__": kind, "__loader__": loader, **rest}


def text(value: Any) -> dict[str, Any]:
    return node("builtins", "str", "JsonNode", content=json.dumps(value), is_json=True)


def listed(*items: Any) -> dict[str, Any]:
    return node("builtins", "tuple", "TupleNode", content=list(items))


def strike(target: Path) -> list[tuple[str, dict[str, Any]]]:
    """Schemas that would create a folder: a call as a loss, as a constructor, as a partial, as a method."""
    call, nothing = f"import os; os.mkdir({str(target)!r})", listed()
    measure = "numpy.testing._private.utils"
    return [
        ("measure", node(measure, "measure", "LossNode", __reduce__={"args": listed(text(call))}, content=nothing)),
        ("mkdir", node("os", "mkdir", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("mkdir", node("posix", "mkdir", "LossNode", __reduce__={"args": listed(text(str(target)))}, content=nothing)),
        ("eval", node("builtins", "eval", "ConstructorFromReduceNode", content=listed(text(call)))),
        (
            "partial",
            node(
                "functools", "partial", "PartialNode",
                content={
                    "func": node(measure, "measure", "FunctionNode"), "args": listed(text(call)),
                    "kwds": text({}), "namespace": text(None),
                },
            ),
        ),
        ("load", node("joblib.numpy_pickle", "load", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("Path", node("pathlib", "Path", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("memmap", node("numpy", "memmap", "ConstructorFromReduceNode", content=listed(text(str(target)), text("u1")))),
        ("methodcaller", node("operator", "methodcaller", "OperatorFuncNode", attrs=listed(text("mkdir")))),
        ("runstring", node("numpy.testing", "runstring", "FunctionNode")),
        ("fetch_openml", node("sklearn.datasets._openml", "fetch_openml", "FunctionNode")),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(11))
def test_a_call_in_a_skops_file_is_refused(tmp_path: Path, number: int) -> None:
    """By the name of what would be called."""
    name, payload = strike(tmp_path / "struck")[number]
    path = archive(tmp_path / "model.skops", {"schema.json": schema(**payload)})
    with pytest.raises(HarnessError, match=rf"types that are not trusted: .*{name}"):
        read(path)
    assert not (tmp_path / "struck").exists()
    assert not list(tmp_path.glob("struck*"))


def test_a_call_deep_inside_a_model_is_refused(saved: Callable[..., Path], tmp_path: Path) -> None:
    """A model like any other, one of whose attributes is a call."""
    path = saved(trained())
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    described = json.loads(members["schema.json"])
    described["content"]["content"]["verbose"] = strike(tmp_path / "struck")[0][1]
    members["schema.json"] = json.dumps(described).encode()
    with pytest.raises(HarnessError, match="measure"):
        read(archive(tmp_path / "other.skops", members))
    assert not (tmp_path / "struck").exists()


def test_foreign_functions_are_refused(saved: Callable[..., Path]) -> None:
    """A FunctionTransformer may run scikit-learn's and numpy's plain functions, nobody else's."""
    path = saved(make_pipeline(FunctionTransformer(np.testing.assert_allclose), trained()))
    with pytest.raises(HarnessError, match=r"types that are not trusted: .*assert_allclose"):
        read(path)


OBJECTS = pickle.dumps(np.array([{}], dtype=object))
ARRAY = node("numpy", "ndarray", "NdArrayNode", type="numpy", file="a.npy")


def deep() -> bytes:
    return b'{"protocol": 2, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


BROKEN: dict[str, tuple[dict[str, bytes], str]] = {
    "no schema": ({"a.npy": b""}, "it has no schema.json"),
    "empty": ({}, "it has no schema.json"),
    "schema without sense": ({"schema.json": b"{}"}, "no skops file"),
    "schema that is no JSON": ({"schema.json": b"\x80\x04"}, "no skops file"),
    "schema too deep": ({"schema.json": deep()}, "no skops file"),
    "schema of a number": ({"schema.json": b"3"}, "no skops file"),
    "a protocol to come": ({"schema.json": b'{"protocol": 99}'}, "no skops file"),
    "a path upwards": ({"schema.json": schema(**ARRAY), "../a.npy": b""}, r"holds a file '\.\./a\.npy'"),
    "a path from the root": ({"schema.json": schema(**ARRAY), "/etc/passwd": b""}, "holds a file '/etc/passwd'"),
    "a folder": ({"schema.json": schema(**ARRAY), "a/": b""}, "holds a file 'a/'"),
    "an array that is a pickle": ({"schema.json": schema(**ARRAY), "a.npy": OBJECTS}, "is damaged"),
    "an array that lacks": ({"schema.json": schema(**ARRAY)}, "no skops file"),
    "a node that refers to nothing": ({"schema.json": schema(**node("", "", "CachedNode"))}, "no skops file"),
    "a loader that there is not": ({"schema.json": schema(**node("numpy", "x", "EvilNode"))}, "no skops file"),
    "no model": ({"schema.json": schema(**text([1, 2]))}, "holds a list; save a fitted estimator"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path: Path, case: str) -> None:
    members, sentence = BROKEN[case]
    with pytest.raises(HarnessError, match=sentence) as fault:
        read(archive(tmp_path / "model.skops", members))
    assert "\n" not in str(fault.value)
    assert len(str(fault.value)) < 600


def test_an_array_of_a_size_that_nobody_has_is_refused(tmp_path: Path) -> None:
    """A header of a few bytes may say that petabytes follow."""
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (200000000000000,), }".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with pytest.raises(HarnessError, match="is damaged"):
        read(archive(tmp_path / "model.skops", {"schema.json": schema(**ARRAY), "a.npy": content}))


def test_sizes_are_checked_before_anything_is_unpacked(
    saved: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the file, and of what it says it holds."""
    path = saved(trained())
    bomb = archive(tmp_path / "bomb.skops", {"schema.json": schema(**ARRAY), "a.npy": bytes(3_000_000)})
    monkeypatch.setattr(files, "UNPACKED", 2_000_000)
    with pytest.raises(HarnessError, match="unpacked it would have more than 2,000,000 bytes"):
        read(bomb)
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(HarnessError, match="a model file may have 100"):
        read(path)


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (DecisionTreeClassifier(max_depth=3), "tree_"),
        (RandomForestClassifier(2, max_depth=3), "tree_"),
        (GradientBoostingClassifier(n_estimators=2), "tree_"),
        (HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3), "nodes"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrong", ["child", "loop", "column"])
def test_a_tree_that_points_outside_itself_is_refused(tmp_path: Path, model: Any, where: str, wrong: str) -> None:
    """Compiled code would follow it to memory that is not its own."""
    model.fit(READ[["age", "income"]], LABELS)
    path = tmp_path / "model.skops"
    if where == "tree_":
        first = np.ravel(getattr(model, "estimators_", [model]))[0]
        state = first.tree_.__getstate__()
        left, feature, root = "left_child", "feature", 0
        nodes = state["nodes"] = state["nodes"].copy()
    else:
        nodes, left, feature, root = model._predictors[0][0].nodes, "left", "feature_idx", 0
    nodes[left if wrong != "column" else feature][root] = {"child": 9999, "loop": 0, "column": 77}[wrong]
    if where == "tree_":
        first.tree_.__setstate__(state)
    io.dump(model, path)
    with pytest.raises(HarnessError, match="is damaged"):
        from_file(path, SPACE, FRAME, ("bad", "good"))


# --- which models, and how they fit the data ----------------------------------------------------------------------


@pytest.mark.parametrize("last", [SVC(), KNeighborsClassifier(), PCA(2)], ids=lambda last: type(last).__name__)
def test_any_model_predicts(saved: Callable[..., Path], last: Any) -> None:
    """An opaque model still gives predictions: the nearest neighbour and DiCE use them."""
    model = trained(make_pipeline(last, LogisticRegression()) if isinstance(last, PCA) else last)
    known = read(saved(model))
    np.testing.assert_array_equal(known.predict(FRAME), model.predict(READ))
    problem = Problem(SPACE, known, FRAME, LABELS, Label("good"))
    factual = FRAME.loc[~problem.valid(FRAME)].iloc[[0]]
    searches = [Dice("genetic", maxiterations=3)] if isinstance(last, SVC) else [Dice("random", sample_size=200)]
    for method in (Nearest(), *searches):
        assert method.refuses(problem) is None
        told = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30))
        row = told.answers[0].row
        assert row is not None
        assert model.predict(SPACE.frame([row]).astype({"member": bool}))[0] == "good"


def test_a_search_is_its_best_model(saved: Callable[..., Path]) -> None:
    search = GridSearchCV(make_pipeline(steps(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2)
    known = read(saved(search.fit(READ, LABELS)))
    assert known.opaque is None
    np.testing.assert_array_equal(known.predict(FRAME), search.predict(READ))


def test_columns_are_taken_by_name(saved: Callable[..., Path]) -> None:
    """In whatever order the model was trained on them; those it does not know are of no account."""
    order = ["city", "income", "age"]
    mixed = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["age", "income"]))
    model = make_pipeline(mixed, LogisticRegression()).fit(READ[order], LABELS)
    known = read(saved(model))
    assert known.opaque is None
    np.testing.assert_array_equal(known.score(FRAME), model.predict_proba(READ[order])[:, 1])


def test_columns_without_names_are_taken_in_their_order(saved: Callable[..., Path]) -> None:
    """And have to be as many."""
    by_place = make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), [2]))
    model = make_pipeline(by_place, RandomForestClassifier(3)).fit(FRAME.to_numpy(), LABELS)
    known = read(saved(model))
    assert known.opaque is None
    np.testing.assert_array_equal(known.score(FRAME), model.predict_proba(FRAME.to_numpy())[:, 1])
    narrow = LogisticRegression().fit(FRAME[["age", "income"]].to_numpy(), LABELS)
    with pytest.raises(HarnessError, match="trained on an array of 2 columns, and loans has 4: age, income"):
        read(saved(narrow))


NORTH = (FRAME["city"] != "Ulm").to_numpy()
MISFITS: dict[str, tuple[Callable[[], Any], str]] = {
    "columns that are not there": (
        lambda: LogisticRegression().fit(READ[["age", "income"]].rename(columns={"age": "years"}), LABELS),
        "it takes the columns years, which loans has not as features",
    ),
    "text": (
        lambda: LogisticRegression().fit(READ[["age", "income"]].rename(columns={"income": "city"}), LABELS),
        r"column 'city' holds text \(Bonn, Köln, Ulm\), and step .*takes numbers",
    ),
    "categories not seen": (
        lambda: make_pipeline(steps(), LogisticRegression()).fit(READ[NORTH], LABELS[NORTH]),
        r"column 'city' has the categories Ulm, which step 'onehotencoder' .* \(it knows Bonn, Köln\)",
    ),
    "numbers as categories": (
        lambda: make_pipeline(OneHotEncoder(), LogisticRegression()).fit(READ[["age"]], LABELS),
        "set features.age.kind=categorical",
    ),
    "numbers predicted": (lambda: LinearRegression().fit(READ[["age", "income"]], GOOD), "it predicts no classes"),
    "other classes": (lambda: trained(labels=GOOD.astype(int)), r"its classes are 0, 1, .* model.classes=\[bad,good\]"),
    "one class too many": (
        lambda: trained(labels=np.where(FRAME["age"] > 70, "old", LABELS)), "its classes are bad, good, old"
    ),
    "several outputs": (
        lambda: RandomForestClassifier(2).fit(READ[["age"]], np.column_stack([GOOD, ~GOOD])), "it has several outputs"
    ),
    "not fitted": (lambda: make_pipeline(steps(), LogisticRegression()), "is not fitted"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_a_misfit_is_one_sentence(saved: Callable[..., Path], case: str) -> None:
    model, sentence = MISFITS[case]
    with pytest.raises(HarnessError, match=sentence) as fault:
        read(saved(model()))
    assert "\n" not in str(fault.value)


def test_a_regression_model_needs_numbers(saved: Callable[..., Path]) -> None:
    with pytest.raises(HarnessError, match="it predicts classes, and the target is a number"):
        from_file(saved(trained()), SPACE, FRAME, ())
    model = make_pipeline(steps(), LinearRegression()).fit(READ, FRAME["income"] * 2)
    known = from_file(saved(model), SPACE, FRAME, ())
    np.testing.assert_array_equal(known.predict(FRAME), model.predict(READ))


@pytest.mark.parametrize("own", [(0, 1), (False, True), ("n", "y"), (-1, 1)])
def test_classes_are_named_in_the_models_order(saved: Callable[..., Path], own: tuple[Any, Any]) -> None:
    """With ``classes``; the second is the one whose probability is the score."""
    model = trained(labels=np.array(own)[GOOD.astype(int)])
    known = read(saved(model), names=["bad", "good"])
    assert known.classes == ("bad", "good")
    np.testing.assert_array_equal(known.predict(FRAME) == "good", model.predict(READ) == own[1])
    np.testing.assert_array_equal(known.score(FRAME), model.predict_proba(READ)[:, 1])
    np.testing.assert_array_equal(known.decide(known.matrix(FRAME)), known.codes(FRAME))
    with pytest.raises(HarnessError, match=r"must name each of bad, good once"):
        read(saved(model), names=["bad", "best"])


def test_a_threshold_is_of_the_models_second_class(saved: Callable[..., Path]) -> None:
    model = trained(RandomForestClassifier(5, random_state=0), labels=np.where(GOOD, "a", "b"))
    known = read(saved(model), names=["good", "bad"], threshold=0.8)
    share = model.predict_proba(READ)[:, 1]
    np.testing.assert_array_equal(known.predict(FRAME) == "bad", share > 0.8)
    np.testing.assert_array_equal(known.probability(FRAME, "good"), model.predict_proba(READ)[:, 0])


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier"])
def test_boosting_libraries_are_read(saved: Callable[..., Path], name: str) -> None:
    """Trained on numbers; as a bare estimator and behind a scaler."""
    library = pytest.importorskip({"X": "xgboost", "L": "lightgbm"}[name[0]])
    options = {"n_estimators": 4, **({"verbose": -1} if name[0] == "L" else {})}
    for model in (
        getattr(library, name)(**options),
        make_pipeline(StandardScaler(), getattr(library, name)(**options)),
    ):
        model.fit(READ[["age", "income"]], GOOD.astype(int))
        known = read(saved(model), names=["bad", "good"])
        assert known.opaque is None
        np.testing.assert_array_equal(known.predict(FRAME) == "good", model.predict(READ[["age", "income"]]) == 1)


# --- what is stored -----------------------------------------------------------------------------------------------


def answered(known: Classifier, path: Path, trust: bool = False) -> StoredRun:
    """A cell with the nearest neighbour's answers to three factuals."""
    problem = Problem(SPACE, known, FRAME, LABELS, Label("good"))
    factuals = FRAME.loc[~problem.valid(FRAME)].iloc[:3]
    cell = StoredRun(path, trust)
    meta = {"dataset": "loans", "model": "mine", "method": "nearest", "n_counterfactuals": 1}
    claim = Nearest().objective(problem)
    cell.start(meta, SPACE, known, dict.fromkeys(factuals.index, problem.target), claim, factuals)
    explainer, timing = Nearest().fit(problem), {"seconds": 0.1, "fit_seconds": 0.1, "late": False}
    for index in factuals.index:
        told = explainer.explain(factuals.loc[[index]], 1, np.random.default_rng(0), Deadline.after(9))
        cell.append([answer_row(index, 1, told.answers[0], **timing)])
    return cell


def test_a_cell_is_judged_by_its_copy_of_the_file(saved: Callable[..., Path], tmp_path: Path) -> None:
    """Which is the very file, though the original is gone and the cell has moved."""
    path = saved(trained(), "mine.skops")
    content = path.read_bytes()
    cell = answered(read(path), tmp_path / "results" / "cell")
    path.unlink()
    shutil.move(cell.path, tmp_path / "elsewhere")
    moved = StoredRun(tmp_path / "elsewhere")
    assert (moved.path / "model.skops").read_bytes() == content
    assert [verdict["verdict"] for verdict in checker.verdicts(moved)] == ["valid"] * 3
    assert moved.classifier.opaque is None
    assert moved.classifier.inputs == from_memory().inputs
    assert check.main([str(moved.path)]) == 0


def from_memory() -> Classifier:
    _, labels = trained(), ("bad", "good")
    return assemble(WrappedModel(trained(), SPACE.names, ("member",)), SPACE, labels, labels, None, FRAME)


def test_a_file_that_was_changed_judges_nothing(saved: Callable[..., Path], tmp_path: Path) -> None:
    cell = answered(read(saved(trained())), tmp_path / "cell")
    io.dump(trained(DecisionTreeClassifier()), cell.path / "model.skops")
    with pytest.raises(HarnessError, match="is not the file that the answers"):
        checker.verdicts(cell)


def test_a_pickle_in_a_cell_needs_trust(
    saved: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever passes a cell on passes on code."""
    cell = answered(read(saved(trained(), "m.pkl"), trust=True), tmp_path / "results" / "cell", trust=True)
    assert [verdict["verdict"] for verdict in checker.verdicts(cell)] == ["valid"] * 3
    assert check.main([str(tmp_path / "results")]) == 2
    assert "add --trust if you trust its maker" in capsys.readouterr().err
    assert check.main([str(tmp_path / "results"), "--trust"]) == 0


def test_a_cell_that_lies_about_trust_runs_nothing(saved: Callable[..., Path], tmp_path: Path) -> None:
    """A pickle is told by the file, not by what is said of it."""
    cell = answered(read(saved(trained(), "m.pkl"), trust=True), tmp_path / "cell", trust=True)
    (cell.path / "model.pkl").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    file = {**cell.meta["model_file"], "trusted": False, "sha256": checksum(cell.path / "model.pkl")}
    cell.update(model_file=file)
    with pytest.raises(HarnessError, match="is a pickle"):
        checker.verdicts(StoredRun(cell.path))
    cell.update(model_file={**file, "file": "../m.pkl"})
    with pytest.raises(HarnessError, match="is not the file"):
        checker.verdicts(StoredRun(cell.path))
    assert not (tmp_path / "struck").exists()


@pytest.mark.slow
def test_the_command_line_takes_a_file(tmp_path: Path) -> None:
    """From the file to checked answers; its name is that of the cells, its content their fingerprint."""
    data = pd.read_csv(ROOT / "harness" / "data" / "raw" / "german_credit.csv")
    table, target = data.drop(columns="class"), data["class"]
    numbers = table.select_dtypes("number").columns.tolist()
    mixed = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(drop="if_binary"), table.columns.difference(numbers).tolist())
    )
    io.dump(make_pipeline(mixed, LogisticRegression(max_iter=500)).fit(table, target), tmp_path / "my model.skops")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str, module: str = "harness") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    asked = ("-m", "dataset=german_credit", "model=file", "method=ce_ocl,dice_random", "n_factuals=3")
    told = run(*asked, "model.path='my model.skops'")
    assert told.returncode == 0, told.stderr
    assert "german_credit/my_model/ce_ocl" in told.stderr
    again = shutil.copy(tmp_path / "my model.skops", tmp_path / "my_model.skops")
    assert run(*asked, f"model.path={again}").stderr.count("skipped") == 2
    judged = run("results", module="harness.check")
    assert judged.returncode == 0
    assert "6 stored counterfactuals checked, 0 of them do not hold" in judged.stdout
    lacking = run("dataset=german_credit", "model=file", "method=nearest")
    assert lacking.returncode == 1
    assert "set model.path=model.skops" in lacking.stderr
