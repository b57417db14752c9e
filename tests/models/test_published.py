"""Published rules and weights say the same of every row as the estimators made of them; published factuals are rows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.complete import settings
from support.datasets import dataset_of

from harness.cli.build import _published
from harness.core.errors import DatasetError, HarnessError
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import Dataset, Source, load_dataset
from harness.data.published import published_factuals
from harness.execution.task import make_task
from harness.models.files import load, save
from harness.models.published import FAMILIES, load_published
from methods.ce_ocl import CeOcl

# Age 20 to 60, debt 0 to 10. The tree: no job is 0.2; with a job, 0.4 up to age 40 (0.5), 0.9 beyond.
PEOPLE = "age,debt,job,ok\n20,0,yes,0\n60,10,no,1\n30,5,yes,1\n40,2,no,0\n30,5,yes,0\n50,1,yes,1\n"
LINE, RULE = "job_yes,age,debt,intercept\n", "ID,age,debt,job_yes,threshold,prediction\n"
TREE = "1,0,0,1,0.5,{}\n2,0,0,-1,-0.500001,{}\n2,1,0,0,0.5,{}\n3,0,0,-1,-0.500001,{}\n3,-1,0,0,-0.500001,{}\n"
CART = RULE + TREE.format(0.2, 0.4, 0.4, 0.9, 0.9)
TWO = "".join(f"0,{line}\n" for line in CART.splitlines()[1:]) + "1,7,0,1,0,0.1,0.8\n1,8,0,-1,0,-0.100001,0.3\n"
BOOSTED = "".join(f"{line},{'initial_prediction,learning_rate' if k == 0 else '0,0.2'}\n"
                  for k, line in enumerate(["Tree_id," + RULE.strip(), *TWO.splitlines()]))  # fmt: skip
NETWORK = "intercept,layer,node,node_0,node_1,node_2\n0,0,1,1,-2,0\n-0.5,0,0,0,0,1\n-0.25,1,0,3,0.5,\n"
FILES = {
    "lr": LINE + "0.5,2,-1,-0.75\n",
    "svm": LINE + "0.5,2,-1,-0.75\n",
    "cart": CART,
    "rf": "Tree_id," + RULE + TWO,
    "gbm": BOOSTED,
    "mlp": NETWORK,
}
# Age 30 (0.25) and debt 5 (0.5) with a job; and age 60 (1), debt 0 without one.
RAW = {  # the models' scores before any link, by hand
    "lr": (2 * 0.25 - 0.5 + 0.5 - 0.75, 2 - 0.75),
    "svm": (2 * 0.25 - 0.5 + 0.5 - 0.75, 2 - 0.75),
    "cart": (0.4, 0.2),
    "rf": ((0.4 + 0.3) / 2, (0.2 + 0.8) / 2),
    "gbm": (0.2 * (0.4 + 0.3), 0.2 * (0.2 + 0.8)),
    "mlp": (-0.25, 3 * 0.5 - 0.25),  # the second unit: -2 * 0.5 + 1 = 0
}


@pytest.fixture
def people(tmp_path: Path) -> Dataset:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "asked.csv").write_text("ok,debt,age,job_yes\n0,0.5,0.25,1\n1,1,1,0\n0,0.499999999,0.250000001,1\n")
    kinds = {"age": {"kind": "continuous"}, "debt": {"kind": "continuous"}, "job": {"kind": "binary"}}
    sources = [{"file": str(tmp_path / "people.csv")}]
    factuals = {"file": str(tmp_path / "asked.csv")}
    return load_dataset("people", sources, "ok", features=kinds, desired=1, split="none", published=factuals)


def made(family: str, dataset: Dataset, folder: Path, text: str | None = None) -> Any:
    (folder / f"{family}.csv").write_text(FILES[family] if text is None else text)
    columns = ("job_yes", "debt", "age") if family == "mlp" else None
    return load_published(family, Source(str(folder / f"{family}.csv")), dataset, columns=columns)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_model_scores_as_by_hand(family: str, people: Dataset, tmp_path: Path) -> None:
    """Also after it was stored; its inputs are the columns of the space, in their order."""
    classifier = made(family, people, tmp_path)
    assert classifier.inputs == space_inputs(people.space)
    rows = people.space.frame([{"age": 30.0, "debt": 5.0, "job": "yes"}, {"age": 60.0, "debt": 0.0, "job": "no"}])
    assert classifier.raw(rows) == pytest.approx(RAW[family])
    cut = 0.5 if family in {"cart", "rf"} else 0.0
    assert classifier.predict(rows).tolist() == [int(score > cut) for score in RAW[family]]
    save(classifier.estimator, tmp_path / "model.skops")
    assert (load(tmp_path / "model.skops").predict(classifier.matrix(rows)) == classifier.codes(rows)).all()


@pytest.mark.parametrize("threshold", [0.3, 0.7, 1 / 3, 0.0673076939, 1e-9])
def test_a_tree_turns_where_its_rule_does(threshold: float, people: Dataset, tmp_path: Path) -> None:
    """At the threshold and a little below it left, beyond the gap right, whatever 32 bits make of it."""
    rules = f"{RULE}1,1,0,0,{threshold!r},0.1\n2,-1,0,0,{-(threshold + 1e-6)!r},0.9\n"
    classifier = made("cart", people, tmp_path, rules)
    near = np.array([threshold * (1 - 1e-12), threshold, threshold + 1.001e-6])
    assert classifier.decide(np.column_stack([near, near * 0, near * 0])).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "rules",
    [
        TREE.format(0.2, 0.4, 0.4, 0.9, 0.9).replace("3,0,0,-1", "3,0,1,0"),  # other columns at one node
        "1,0,0,1,0.5,0.2\n",  # the other leaf is missing
        "1,0,0,1,0.5,0.2\n2,0,0,-1,-0.6,0.4\n",  # a gap too wide
    ],
)
def test_rules_that_are_no_tree_are_one_sentence(rules: str, people: Dataset, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^the rules of a published model are no tree\.$"):
        made("cart", people, tmp_path, RULE + rules)


def test_columns_that_the_data_lack_are_named(people: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"people has no column 'wage', as published; .*age, debt, job_no"):
        made("lr", people, tmp_path, "wage,intercept\n1,0\n")


def test_an_exact_method_takes_a_published_tree(people: Dataset, tmp_path: Path) -> None:
    """From age 30 with a job to just past 40, which is the threshold 0.5 of the range."""
    classifier = made("cart", people, tmp_path)
    problem = Problem(people.space, classifier, people.frame, people.labels, Label(1))
    explainer = CeOcl().fit(problem)
    factual = people.frame.loc[[2]]
    answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers[0]
    assert answer.status.name == "OPTIMAL"
    assert answer.row is not None
    assert 0 < answer.row["age"] - 40 < 1e-3
    assert {**answer.row, "age": 30.0} == factual.iloc[0].to_dict()


def test_published_factuals_are_rows_in_their_order(people: Dataset) -> None:
    """Of alike rows one each; the file's columns come in any order, the label among them."""
    assert published_factuals(people).index.tolist() == [2, 1, 4]


def test_the_first_published_factuals_are_asked(people: Dataset, tmp_path: Path) -> None:
    """Whatever the model says of them; a dataset without any says so."""
    classifier = made("cart", people, tmp_path)
    assert make_task(people, classifier, which="published", n_factuals=2).factuals.index.tolist() == [2, 1]
    with pytest.raises(DatasetError, match=r"no factuals are published for people; .*row numbers"):
        make_task(replace(people, published=None), classifier, which="published")


def test_without_the_files_one_sentence_says_which_and_where(
    people: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's, and the factuals' where they are missing, too; no sentence for data that it is not of."""
    monkeypatch.setenv("CE_HARNESS_DATA", str(tmp_path))
    model = {"family": "cart", "sources": {"people": {"file": "authors/cart.csv"}}}
    lacking = replace(people, published=Source("authors/asked.csv"))
    with pytest.raises(DatasetError, match=r"^authors/cart\.csv is not in .*put it at .*/authors/cart\.csv") as fault:
        _published("published_cart", model, lacking)
    assert str(fault.value).endswith("; factuals=published needs authors/asked.csv as well.")
    with pytest.raises(DatasetError, match=r"holds authors/cart\.csv\.$"):
        _published("published_cart", model, people)
    with pytest.raises(HarnessError, match=r"model=published_cart is not published for dataset=other; allowed: people"):
        _published("published_cart", model, replace(people, name="other"))


def test_a_factual_that_is_no_row_is_named(people: Dataset, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("age,debt,job_yes\n0.25,0.5,1\n0.3,0.5,1\n")
    with pytest.raises(DatasetError, match=r"^row 1 of .*asked\.csv is no row of people\.$"):
        published_factuals(people)


AUTHORS = {f"published_{family}": family for family in ("lr", "cart", "rf", "gbm", "mlp")}
ACCEPTED = {  # of the thirty factuals, those that a model already accepts; none of the forest's
    "adult_carla": {"lr": 1, "cart": 2, "rf": 0, "gbm": 1, "mlp": 3},
    "compas_carla": {"lr": 1, "cart": 7, "rf": 0, "gbm": 1, "mlp": 1},
    "heloc_carla": {"lr": 7, "cart": 6, "rf": 0, "gbm": 7, "mlp": 7},
    "give_me_some_credit_carla": {"lr": 2, "cart": 30, "rf": 0, "gbm": 1, "mlp": 1},
}


def scaled(dataset: Dataset, columns: list[str]) -> np.ndarray:
    """All rows in the authors' columns: numbers from 0 to 1, and whether a category is the one that a column names."""
    frame = dataset.frame
    made = {}
    for column in columns:
        if column in frame:
            made[column] = (frame[column] - frame[column].min()) / (frame[column].max() - frame[column].min())
        else:
            feature, _, category = column.rpartition("_")
            made[column] = (frame[feature] == category).astype(float)
    return pd.DataFrame(made).to_numpy()


def by_the_rules(family: str, table: pd.DataFrame, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores by the lines of a file, shape (rows,), and the rows on which exactly one leaf a tree has all its rules."""
    if family == "mlp":
        for number, layer in table.sort_values(["layer", "node"]).groupby("layer"):
            weights = layer[[f"node_{k}" for k in range(inputs.shape[1])]].to_numpy()
            inputs = (inputs if number == 0 else np.maximum(inputs, 0)) @ weights.T + layer["intercept"].to_numpy()
        return inputs[:, 0], np.ones(len(inputs), bool)
    others = ["Tree_id", "ID", "threshold", "prediction", "initial_prediction", "learning_rate", "intercept"]
    signs = table.drop(columns=others, errors="ignore").to_numpy(float)
    if family == "lr":
        return inputs @ signs[0] + table["intercept"][0], np.ones(len(inputs), bool)
    trees = table["Tree_id"].to_numpy() if "Tree_id" in table else np.zeros(len(table))
    total, once = np.zeros(len(inputs)), np.ones(len(inputs), bool)
    for tree in np.unique(trees):
        fitting = np.zeros(len(inputs), int)
        for _, leaf in table[trees == tree].groupby("ID"):
            inside = (inputs @ signs[leaf.index].T <= leaf["threshold"].to_numpy()).all(axis=1)
            total[inside] += leaf["prediction"].iloc[0]
            fitting += inside
        once &= fitting == 1
    weight = {"cart": 1.0, "rf": 1 / len(np.unique(trees))}.get(family)
    return total * (table["learning_rate"][0] if weight is None else weight), once


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name[0] in "ch" else pytest.mark.slow) for name in ACCEPTED]
)
def test_the_authors_models_are_their_rules(name: str) -> None:
    """On every row with one leaf a tree, and nearly all rows are such; skipped where the files are not at hand."""
    dataset = dataset_of(name, split="none")
    assert dataset.published is not None
    if not dataset.published.path.is_file():
        pytest.skip(f"{dataset.published.file} is not in CE_HARNESS_DATA")
    factuals = published_factuals(dataset)
    assert len(set(factuals.index)) == 30
    line = pd.read_csv(Source(**settings("model", "published_lr")["sources"][name]).path)
    rows = scaled(dataset, list(line.columns.drop("intercept")))
    for choice, family in AUTHORS.items():
        model = settings("model", choice)
        source = Source(**model["sources"][name])
        classifier = load_published(family, source, dataset, columns=model.get("columns", {}).get(name))
        score, once = by_the_rules(family, pd.read_csv(source.path), rows)
        said = classifier.codes(dataset.frame)
        assert classifier.inputs == space_inputs(dataset.space)
        assert once.mean() > 0.98
        assert (said == (score > (0.5 if family in {"cart", "rf"} else 0.0)))[once].all()
        assert classifier.raw(dataset.frame)[once] == pytest.approx(score[once], abs=1e-6)
        assert classifier.codes(factuals).sum() == ACCEPTED[name][family]


def test_addresses_name_the_files_and_checksums_are_checksums() -> None:
    for choice in [*AUTHORS, "published_svm"]:
        for source in settings("model", choice)["sources"].values():
            assert len(source["sha256"]) == len(hashlib.sha256().hexdigest())
            assert source["urls"][0].endswith(f"/{Path(source['file']).name}")
