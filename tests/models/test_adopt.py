"""A user's model: matched to the data, and judged again from its copy."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from skops import io
from support.loans import FRAME, GOOD, LABELS, READ, SPACE, Payload, read, steps, trained
from support.sweep import runner

from harness import check
from harness.core.classifier import Classifier, WrappedModel
from harness.core.errors import HarnessError
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from harness.evaluation import checker
from harness.library import pose
from harness.models.adopt import adopt, assemble, doubt, from_file
from harness.models.files import checksum
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.dice import Dice
from methods.nearest import Nearest
from metrics import _example as loans

ROOT = Path(__file__).parents[2]


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
        explained = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30))
        row = explained.answers[0].row
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


def lenient() -> Any:
    """An encoder that takes any category for none of its own, and a linear model."""
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())


NORTH = (FRAME["city"] != "Ulm").to_numpy()
MISFITS: dict[str, tuple[Callable[[], Any], str]] = {
    "columns that are not there": (
        lambda: LogisticRegression().fit(READ[["age", "income"]].rename(columns={"age": "years"}), LABELS),
        "it takes the columns years, which loans has not as features",
    ),
    "text": (
        lambda: LogisticRegression().fit(READ[["age", "income"]].rename(columns={"income": "city"}), LABELS),
        r"column 'city' holds text \(Bonn, Köln, Ulm\), and the last step \(.* of the model takes numbers",
    ),
    "categories not seen": (
        lambda: make_pipeline(steps(), LogisticRegression()).fit(READ[NORTH], LABELS[NORTH]),
        r"column 'city' has the categories 'Ulm', which step 'onehotencoder' .* \(it knows 'Bonn', 'Köln'\)\.$",
    ),
    "categories with blanks": (
        lambda: lenient().fit(READ[["city"]].map(" {}".format), LABELS),
        r"'Bonn', 'Köln', 'Ulm', which .* \(it knows ' Bonn', ' Köln', ' Ulm'\); train on texts without blanks",
    ),
    "numbers as categories": (
        lambda: make_pipeline(OneHotEncoder(), LogisticRegression()).fit(READ[["age"]], LABELS),
        "set features.age.kind=categorical",
    ),
    "numbers predicted": (
        lambda: LinearRegression().fit(READ[["age", "income"]], GOOD), "it predicts no classes, .* choose a classifier"
    ),
    "other classes": (lambda: trained(labels=GOOD.astype(int)), r"its classes are 0, 1, .* model.classes=\[bad,good\]"),
    "one class too many": (
        lambda: trained(labels=np.where(FRAME["age"] > 70, "old", LABELS)), "knows 3 classes, .* has 2, bad, good; give"
    ),
    "several outputs": (
        lambda: RandomForestClassifier(2).fit(READ[["age"]], np.column_stack([GOOD, ~GOOD])), "it has several outputs"
    ),
    "not fitted": (lambda: make_pipeline(steps(), LogisticRegression()), "is not fitted"),
}  # fmt: skip


def test_a_lenient_encoder_is_to_know_some_categories_and_gaps_by_their_name() -> None:
    """One that knows some takes the others for none; one trained on numbers, or on gaps as such, is another model."""
    labels = np.array(["no", "no", "yes", "yes"] * 5)
    cells = pd.DataFrame({"zone": ["01", "02", "03", "04"] * 5, "label": labels})
    for known in (cells[["zone"]], cells[["zone"]].iloc[:3]):
        assert pose(cells, "label", lenient().fit(known, labels[: len(known)])).classifier.opaque is None
    with pytest.raises(HarnessError, match=r"it knows 1, 2, 3, 4\); it was trained on numbers: .*dt.*=\{'zone': str\}"):
        pose(cells, "label", lenient().fit(cells[["zone"]].astype(int), labels))
    cells.loc[[0, 5], "zone"] = None
    for filled in ("missing", "01"):
        model = lenient().fit(cells[["zone"]].fillna(filled), labels)
        if filled == "missing":
            assert pose(cells, "label", model, missing="category").classifier.opaque is None
        else:
            with pytest.raises(HarnessError, match=r"'missing', which .* its gaps: set features=.*most_frequent"):
                pose(cells, "label", model, missing="category")
        assert pose(cells, "label", model, missing="most_frequent").classifier.opaque is None


def test_a_number_beside_classes_of_numbers_is_told_of_regression() -> None:
    frame = READ[["age", "income"]].assign(grade=np.arange(len(READ)) % 5)
    with pytest.raises(HarnessError, match=r"0, 1, 2, 3, 4; set dataset.task=regression, or choose a classifier"):
        adopt(LinearRegression().fit(READ[["age", "income"]], frame["grade"]), SPACE, FRAME, (0, 1, 2, 3, 4))


@pytest.mark.parametrize(("package", "model"), [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")])
def test_names_with_blanks_and_category_columns_of_other_libraries(package: str, model: str) -> None:
    """LightGBM writes _ for a blank; pandas' category columns are no numbers for either, and are told of."""
    library = pytest.importorskip(package, reason=f"{package} is in the extra {package!r}")
    options = {"n_estimators": 3, **({"verbose": -1, "min_child_samples": 3} if package == "lightgbm" else {})}
    frame = READ[["income", "age"]].rename(columns={"income": "net income"}).assign(outcome=GOOD.astype(int))
    own = getattr(library, model)(**options).fit(frame[["age", "net income"]], frame["outcome"])
    known = pose(frame, "outcome", own).classifier
    assert known.opaque is None
    np.testing.assert_array_equal(known.predict(frame), own.predict(frame[["age", "net income"]]))
    coded = READ[["age", "city"]].astype({"city": "category"})
    more = {"enable_categorical": True} if package == "xgboost" else {}
    own = getattr(library, model)(**options, **more).fit(coded, frame["outcome"])
    with pytest.raises(HarnessError, match=f"it is a {model} of pandas' category columns; put an OrdinalEnc"):
        pose(READ[["age", "city"]].assign(outcome=frame["outcome"]), "outcome", own)


@pytest.mark.parametrize("case", MISFITS)
def test_a_misfit_is_one_sentence(saved: Callable[..., Path], case: str) -> None:
    model, sentence = MISFITS[case]
    with pytest.raises(HarnessError, match=sentence) as fault:
        read(saved(model()))
    assert "\n" not in str(fault.value)


def test_a_model_in_memory_that_is_not_fitted_is_named_so() -> None:
    with pytest.raises(HarnessError, match="the model, a Pipeline, is not fitted; call fit first"):
        adopt(make_pipeline(steps(), LogisticRegression()), SPACE, FRAME, ("bad", "good"))


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
    """Trained on numbers; as an estimator alone and behind a scaler."""
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
    """A stored run with the nearest neighbour's answers to three factuals."""
    problem = Problem(SPACE, known, FRAME, LABELS, Label("good"))
    factuals = FRAME.loc[~problem.valid(FRAME)].iloc[:3]
    run = StoredRun(path, trust)
    meta = {"dataset": "loans", "model": "mine", "method": "nearest", "n_counterfactuals": 1}
    claim = Nearest().objective(problem)
    run.start(meta, SPACE, known, dict.fromkeys(factuals.index, problem.target), claim, factuals)
    explainer, timing = Nearest().fit(problem), {"seconds": 0.1, "fit_seconds": 0.1, "late": False}
    for index in factuals.index:
        explained = explainer.explain(factuals.loc[[index]], 1, np.random.default_rng(0), Deadline.after(9))
        run.append([answer_row(index, 1, explained.answers[0], **timing)])
    return run


def test_a_run_is_judged_by_its_copy_of_the_file(saved: Callable[..., Path], tmp_path: Path) -> None:
    """Which is the very file, though the original is gone and the run has moved."""
    path = saved(trained(), "mine.skops")
    content = path.read_bytes()
    run = answered(read(path), tmp_path / "results" / "run")
    path.unlink()
    shutil.move(run.path, tmp_path / "elsewhere")
    moved = StoredRun(tmp_path / "elsewhere")
    assert (moved.path / "model.skops").read_bytes() == content
    assert [verdict["verdict"] for verdict in checker.verdicts(moved)] == ["accepted"] * 3
    assert moved.classifier.opaque is None
    assert moved.classifier.inputs == from_memory().inputs
    assert check.main([str(moved.path)]) == 0


def from_memory() -> Classifier:
    _, labels = trained(), ("bad", "good")
    return assemble(WrappedModel(trained(), SPACE.names, ("member",)), SPACE, labels, labels, None, FRAME)


def test_a_file_that_was_changed_judges_nothing(saved: Callable[..., Path], tmp_path: Path) -> None:
    run = answered(read(saved(trained())), tmp_path / "run")
    io.dump(trained(DecisionTreeClassifier()), run.path / "model.skops")
    with pytest.raises(HarnessError, match="is not the file that the answers"):
        checker.verdicts(run)


def test_a_pickle_in_a_run_needs_trust(
    saved: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever passes a run on passes on code."""
    run = answered(read(saved(trained(), "m.pkl"), trust=True), tmp_path / "results" / "run", trust=True)
    assert [verdict["verdict"] for verdict in checker.verdicts(run)] == ["accepted"] * 3
    assert check.main([str(tmp_path / "results")]) == 1
    assert "add --trust if you trust its maker" in capsys.readouterr().err
    assert check.main([str(tmp_path / "results"), "--trust"]) == 0


def test_a_run_that_lies_about_trust_runs_nothing(saved: Callable[..., Path], tmp_path: Path) -> None:
    """A pickle is recognised by the file, not by what cell.json states of it."""
    run = answered(read(saved(trained(), "m.pkl"), trust=True), tmp_path / "run", trust=True)
    (run.path / "model.pkl").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    file = {**run.meta["model_file"], "trusted": False, "sha256": checksum(run.path / "model.pkl")}
    run.update(model_file=file)
    with pytest.raises(HarnessError, match="is a pickle"):
        checker.verdicts(StoredRun(run.path))
    run.update(model_file={**file, "file": "../m.pkl"})
    with pytest.raises(HarnessError, match="is not the file"):
        checker.verdicts(StoredRun(run.path))
    assert not (tmp_path / "struck").exists()


@pytest.mark.slow
def test_the_command_line_takes_a_file(tmp_path: Path) -> None:
    """From the file to checked answers; its name is that of the runs, its content their fingerprint."""
    data = pd.read_csv(ROOT / "harness" / "data" / "raw" / "german_credit.csv")
    table, target = data.drop(columns="class"), data["class"]
    numbers = table.select_dtypes("number").columns.tolist()
    mixed = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(drop="if_binary"), table.columns.difference(numbers).tolist())
    )
    io.dump(make_pipeline(mixed, LogisticRegression(max_iter=500)).fit(table, target), tmp_path / "my model.skops")
    run = runner(tmp_path)
    asked = ("-m", "dataset=german_credit", "model=file", "method=ce_ocl,dice_random", "n_factuals=3")
    done = run(*asked, "model.path='my model.skops'")
    assert done.returncode == 0, done.stderr
    assert "german_credit/my_model/ce_ocl" in done.stderr
    again = shutil.copy(tmp_path / "my model.skops", tmp_path / "my_model.skops")
    assert run(*asked, f"model.path={again}").stderr.count("skipped") == 2
    judged = run("results", module="harness.check")
    assert judged.returncode == 0
    assert "6 stored counterfactuals checked, 0 of them do not hold" in judged.stdout
    lacking = run("dataset=german_credit", "model=file", "method=nearest")
    assert lacking.returncode == 1
    assert "set model.path=model.skops" in lacking.stderr


def test_a_model_that_is_given_other_columns_than_it_learnt_is_doubted(caplog: pytest.LogCaptureFixture) -> None:
    """Trained on scaled numbers and asked about raw ones it says one class of everybody, and reads as it should."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": rng.normal(50_000, 9_000, 200), "age": rng.normal(40, 9, 200)})
    labels = np.where(table["income"] + 500 * table["age"] > 70_000, "yes", "no")
    scaled = pd.DataFrame(StandardScaler().fit_transform(table), columns=table.columns)
    frame = table.assign(label=labels)
    for given, doubted in ((table, False), (scaled, True)):
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(given, labels)
        caplog.clear()
        with caplog.at_level("WARNING", "harness"):
            pose(frame, "label", model)
        assert ("finds the target's classes in 50% of their rows" in caplog.text) == doubted
        numbers = LinearRegression().fit(given[["age"]], table["income"])
        caplog.clear()
        with caplog.at_level("WARNING", "harness"):
            pose(table, "income", numbers, desired=">= 60000")
        assert ("is farther from the target's numbers than their mean is" in caplog.text) == doubted


class Ratio(TransformerMixin, BaseEstimator):
    """A step that finds its columns by name or by place, and says nothing of them."""

    def __init__(self, names: bool = True) -> None:
        self.names = names

    def fit(self, given: Any, labels: Any = None) -> Ratio:
        return self

    def transform(self, given: Any) -> np.ndarray:
        parts = (given["debt"], given["income"]) if self.names else (given[:, 0], given[:, 1])
        return (np.asarray(parts[0]) / np.asarray(parts[1])).reshape(-1, 1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Texts(ClassifierMixin, BaseEstimator):
    """A classifier that reads a column of texts itself."""

    def __init__(self, column: str = "city") -> None:
        self.column = column

    def fit(self, given: pd.DataFrame, labels: Any) -> Texts:
        self.classes_, self.feature_names_in_ = np.unique(labels), np.array(given.columns, dtype=object)
        self.n_features_in_ = given.shape[1]
        return self

    def predict_proba(self, given: pd.DataFrame) -> np.ndarray:
        share = np.where(given[self.column] == "Ulm", 0.8, 0.3) + 0.001 * given["age"].to_numpy(float)
        return np.column_stack([1.0 - share, share])

    def predict(self, given: pd.DataFrame) -> np.ndarray:
        return self.classes_[(self.predict_proba(given)[:, 1] > 0.5).astype(int)]


def test_a_classifier_of_ones_own_may_read_texts() -> None:
    """Nothing is known of it, so its predictions show whether it can; also behind sklearn's own that only ask it."""
    table = READ[["age", "city"]]
    both = VotingClassifier([("one", Texts()), ("other", Texts())], voting="soft")
    for model in (Texts().fit(table, LABELS), both.fit(table, LABELS)):
        known = pose(table.assign(label=LABELS), "label", model, desired="good").classifier
        assert (known.opaque or "").startswith("this model is opaque")
        np.testing.assert_array_equal(known.predict(table), model.predict(table))
    lost = Texts().fit(table, LABELS).set_params(column="town")
    with pytest.raises(HarnessError, match=r"its prediction of the data's rows fails: .*town"):
        pose(table.assign(label=LABELS), "label", lost, desired="good")


@pytest.mark.parametrize("names", [True, False])
def test_a_first_step_of_ones_own_is_given_what_it_takes(names: bool) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"debt": rng.uniform(1, 9, 80), "income": rng.uniform(10, 20, 80)})
    labels = np.where(table["debt"] / table["income"] > 0.3, "high", "low")
    model = make_pipeline(Ratio(names), DecisionTreeClassifier(max_depth=1, random_state=0))
    model.fit(table if names else table.to_numpy(), labels)
    task = pose(table.assign(label=labels), "label", model)
    assert (task.problems[next(iter(task.problems))].classifier.predict(table) == labels).all()


def test_of_one_number_alone_no_model_is_doubted() -> None:
    """Nobody can be nearer to it than its mean is."""
    model = LinearRegression().fit(loans.SPACE.encode(loans.TRAIN), np.arange(8.0))
    classifier = Classifier(model, space_inputs(loans.SPACE), ())
    assert doubt(classifier, loans.TRAIN, np.full(8, 3.0)) is None
    assert doubt(classifier, loans.TRAIN, np.arange(8.0)[::-1]) is not None


def test_of_exchanged_classes_the_exchange_is_asked_about() -> None:
    """A model that is right of nearly all, its classes called by each other's name; one that knows nothing is not."""
    model = LogisticRegression().fit(loans.SPACE.encode(loans.TRAIN), np.asarray(loans.LABELS) == "granted")
    right, wrong = (Classifier(model, space_inputs(loans.SPACE), order) for order in (("a", "b"), ("b", "a")))
    labels = right.predict(loans.TRAIN)
    assert doubt(right, loans.TRAIN, labels) is None
    said = doubt(wrong, loans.TRAIN, labels)
    assert said is not None
    assert "in 0% of their rows, with both of them exchanged in 100%: are they named in the model's own order" in said
    one = loans.TRAIN.assign(**loans.TRAIN.iloc[0])  # of everybody it says the same
    said = doubt(wrong, one, labels)
    assert said is not None
    assert "in 50% of their rows, and who says one of them always, in 50%: was it trained on" in said
