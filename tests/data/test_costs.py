"""Costs of features from a YAML beside a CSV, a command line and a notebook, and what is said where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from harness.core.costs import Price
from harness.core.errors import DatasetError
from harness.core.objective import Objective, Term
from harness.core.space import Feature, Space
from harness.data.csv_load import load_csv
from harness.library import pose
from harness.store.codec import from_plain
from harness.store.plain import to_plain

FRAME = pd.DataFrame(
    {
        "income": [10.0, 20.0, 20.0, 40.0] * 10,
        "job": ["none", "part", "full", "part"] * 10,
        "member": ["no", "yes"] * 20,
        "ok": ["no", "yes", "yes", "no"] * 10,
    }
)


def written(folder: Path, costs: str = "from,to,cost\nnone,part,0.5\n", yaml: str = "") -> Path:
    """A CSV, the YAML beside it, and costs of pairs."""
    path, pairs = folder / "people.csv", folder / "jobs.csv"
    FRAME.to_csv(path, index=False)
    pairs.write_text(costs)
    beside = f"features: {{income: {{weight_up: 2, percentile: true}}, job: {{weight: 3, costs: {pairs}}}}}\n"
    path.with_suffix(".yaml").write_text(yaml or beside)
    return path


def cost(space: Space, old: tuple[Any, ...], new: tuple[Any, ...]) -> float:
    rows = space.frame(dict(zip(space.names, row, strict=True)) for row in (old, new))
    return float(Objective((Term("l1"),)).evaluate(space, rows.iloc[[0]], rows.iloc[[1]])[0])


def test_a_yaml_beside_a_csv(tmp_path: Path) -> None:
    """From 10 to 30: an eighth and a half of the rows lie below, and half of the way to 40 is an eighth more."""
    space = load_csv(written(tmp_path), target="ok", split="none").space
    assert cost(space, (10.0, "none", "no"), (10.0, "part", "yes")) == pytest.approx(3 * 0.5 + 1)
    assert cost(space, (10.0, "part", "no"), (30.0, "none", "no")) == pytest.approx(2 * (0.6875 - 0.125) + 3)
    assert cost(space, (40.0, "none", "no"), (20.0, "none", "no")) == pytest.approx(0.375)


def test_special_codes_are_nobody_that_is_passed(tmp_path: Path) -> None:
    """Of 40 rows ten hold a code below all incomes: shares of the population are of the others."""
    path = tmp_path / "people.csv"
    FRAME.assign(income=[-9.0, 20.0, 20.0, 40.0] * 10).to_csv(path, index=False)
    features = {"income": {"percentile": True, "special": [-9], "bounds": [0, 50]}}
    space = load_csv(path, target="ok", split="none", features=features).space
    assert cost(space, (20.0, "none", "no"), (40.0, "none", "no")) == pytest.approx(1 / 3 + 1 / 6)


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    path = written(tmp_path)
    overrides = {"income": {"percentile": False, "weight_up": None}, "job": {"weight": 1}}
    space = load_csv(path, target="ok", split="none", features=overrides).space
    assert cost(space, (10.0, "none", "no"), (30.0, "part", "no")) == pytest.approx(20 / 30 + 0.5)


def test_the_population_is_the_training_rows_of_the_feature_itself(tmp_path: Path) -> None:
    """Not all rows, nor those that are asked about, nor another number's; in a notebook, too."""
    path, told = tmp_path / "people.csv", {"income": {"percentile": True}, "age": {"percentile": True}}
    income = np.arange(200.0) ** 2
    pd.DataFrame({"income": income, "age": income[::-1] + 7.5, "ok": ["no", "yes"] * 100}).to_csv(path, index=False)
    data = load_csv(path, target="ok", features=told)
    plain = load_csv(path, target="ok")
    tree = DecisionTreeClassifier(max_depth=1).fit(plain.frame[["income", "age"]], plain.labels)
    posed = pose(plain, model=tree, features=told).dataset
    assert 0 < len(plain.train) < len(plain.frame)
    for name in told:
        every = plain.frame[name].to_numpy()
        values = np.sort(every[plain.train])
        by_hand = [(value, (place + 0.5) / len(values)) for place, value in enumerate(values)]
        for dataset in (data, posed):
            assert np.array(dataset.space[name].price.shares) == pytest.approx(np.array(by_hand))


@pytest.mark.parametrize("read", [False, True])
def test_a_notebook(tmp_path: Path, read: bool) -> None:
    """The same of a table and of a dataset that was read."""
    told = {"income": {"percentile": True}, "job": {"costs": {"none": {"part": 0.5}}}, "member": {"weight_down": 4}}
    path = written(tmp_path, yaml="target: ok\n")
    model = make_pipeline(make_column_transformer(("passthrough", ["income"])), DecisionTreeClassifier())
    model.fit(FRAME.drop(columns="ok"), FRAME["ok"])
    whole = load_csv(path, split=None)
    task = pose(whole, model=model, features=told) if read else pose(FRAME, "ok", model, features=told)
    space = task.dataset.space
    assert cost(space, (10.0, "none", "yes"), (20.0, "part", "no")) == pytest.approx(0.375 + 0.5 + 4)


def test_what_is_stored_of_features_without_costs_is_as_before() -> None:
    """Costs are stored where there are some, to the last bit, and nowhere else."""
    plain, told = (
        Feature("job", "binary", ("a", "b")),
        Feature("job", "binary", ("a", "b"), price=Price(costs=(("a", "b", 0.1),))),
    )
    assert "price" not in to_plain(plain)
    assert "costed" not in to_plain(Objective((Term("l1"),)))
    for feature in (
        plain,
        told,
        Feature("n", "integer", price=Price(weight_up=1 / 3, shares=((0.0, 0.1), (2.0, 0.7)))),
    ):
        assert from_plain(to_plain(feature)) == feature


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ("from,to\nnone,part\n", r"has the columns \['from', 'to'\]; name them from,to,cost"),
        ("from,to,cost\nnone,part,dear\n", "holds 'dear' in row 2; give a number"),
        ("from,to,cost\nnone,parts,1\n", "costs of job name 'parts'; did you mean 'part'"),
        ("from,to,cost\nnone,part,1\nnone,part,2\n", "have a pair none to part that comes twice; leave it out"),
        ("from,to,cost\nnone,none,1\n", "that stays as it is, which costs nothing; leave it out"),
        (
            "from,to,cost\nnone,part,0\n",
            "the cost from none to part in costs of job is 0; it must be a number from",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_costs_is_said(tmp_path: Path, costs: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load_csv(written(tmp_path, costs), target="ok", split="none")


@pytest.mark.parametrize(
    ("feature", "entry", "message"),
    [
        ("job", {"weight_up": 2}, "job is categorical, and neither rises nor falls; leave weight_up out"),
        ("job", {"percentile": True}, "only a number or a rank passes others on its way; leave percentile out"),
        ("income", {"weight": np.inf}, "weight of income is inf; it must be a number from 0.001 to 1000"),
        ("income", {"costs": {"1": {"2": 3}}}, "income is .*, and 'costs' are of pairs of categories without an order"),
        ("job", {"costs": [1, 2]}, r"costs of job are .*; give \{FROM: \{TO: COST\}\}, or a CSV of from,to,cost"),
    ],
)
def test_a_cost_that_does_not_fit_is_one_sentence(feature: str, entry: dict[str, Any], message: str) -> None:
    tree = DecisionTreeClassifier(max_depth=1).fit(FRAME[["income"]], FRAME["ok"])
    with pytest.raises(DatasetError, match=message):
        pose(FRAME, "ok", tree, features={feature: entry})
