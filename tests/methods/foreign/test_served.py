"""What the harness answers where a far side asks about the model: rows as arrays, and layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier
from support.applicants import classifier, problem_of, refitted

from harness.core.errors import HarnessError, UnsupportedError
from harness.core.problem import Problem
from methods.foreign import far
from methods.foreign.served import Served, described
from methods.foreign.served import values as values_of


def codes_of(problem: Problem, frame: pd.DataFrame) -> np.ndarray:
    """Rows as numbers, of a category its place, shape (rows, features)."""
    columns = [f.codes(frame[f.name]) if f.categories else frame[f.name] for f in problem.space.features]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


@pytest.mark.parametrize("what", ["predict", "score", "accepts", "matrix"])
def test_rows_may_be_asked_about_as_an_array_in_parts(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, lines = problem_of(classifier("rf", 3), "very"), Mock()

    def replied(what: str, rows: Any) -> Any:
        found = Served(problem)({"ask": what, "rows": rows})
        return found.tolist() if found.dtype.hasobject else found  # as the other side has it

    lines.ask.side_effect = replied
    stub = far.Problem(lines, {**described(problem, None), "claim": None})
    monkeypatch.setattr(far, "PART", 100)
    told = getattr(stub, what)(codes_of(problem, problem.train))
    assert lines.ask.call_count == 300 * 5 // 100 + 1
    np.testing.assert_array_equal(told, getattr(stub, what)(stub.train))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[0.5, 0, 0, 0, 0]], "age is integer, and cannot be 0.5 in an array"),
        ([[1e16, 0, 0, 0, 0]], "age is integer, and cannot be 1e[+]16 in an array"),
        ([[0, 0, 0, 0, 3]], "region has 3 categories, and cannot be 3 in an array"),
        ([[0, 0, 0, -1, 0]], "grade has 3 categories, and cannot be -1 in an array"),
        ([[0, 0, 0, 0.5, 0]], "grade has 3 categories, and cannot be 0.5 in an array"),
        ([[np.nan, 0, 0, 0, 0]], "must hold finite numbers"),
        ([[0, 0, 0, 0]], "must be an array of numbers, 5 columns"),
        ([["0", "0", "0", "0", "0"]], "must be an array of numbers, 5 columns"),
    ],
)
def test_an_array_of_other_numbers_is_one_sentence(rows: list[list[Any]], why: str) -> None:
    served = Served(problem_of(classifier("rf"), "yes"))
    with pytest.raises(HarnessError, match=why):
        served({"ask": "predict", "rows": far._npy(np.array(rows))})


@pytest.mark.parametrize("file", ["UEsDBHp6eno=", "x", None])
def test_what_is_no_array_is_one_sentence(file: Any) -> None:
    with pytest.raises(HarnessError, match="'rows' is no file of numpy's in base64"):
        Served(problem_of(classifier("rf"), "yes"))({"ask": "predict", "rows": {"npy": file}})


@pytest.mark.parametrize("model", ["lr", "mlp"])
@pytest.mark.parametrize("threshold", [None, 0.3])
def test_layers_are_above_nothing_where_the_model_says_the_second_class(model: str, threshold: float | None) -> None:
    """Whatever its threshold; the layers are told with their activations, the outputs' last."""
    problem = problem_of(classifier(model, threshold=threshold), "yes")
    *hidden, last = Served(problem)({"ask": "layers"})
    values = problem.classifier.matrix(problem.train)
    for layer in hidden:
        assert layer["activation"] == "relu"
        values = np.maximum(values @ layer["weights"] + layer["intercepts"], 0)
    assert last["activation"] == "identity"
    outputs = (values @ last["weights"] + last["intercepts"])[:, 0]
    np.testing.assert_array_equal(outputs > 0, problem.valid(problem.train))


def test_a_network_of_others_than_relus_is_told_as_one() -> None:
    problem = problem_of(classifier("mlp"), "yes")
    served = Served(refitted(problem, MLPClassifier((4,), activation="tanh", max_iter=20, random_state=0)))
    assert [layer["activation"] for layer in served({"ask": "layers"})] == ["tanh", "identity"]
    with pytest.raises(HarnessError, match="networks of ReLUs only"):
        served({"ask": "gradient", "rows": values_of(problem.train)})


def test_an_estimator_is_told_where_its_rule_is_the_models() -> None:
    """At another threshold a far side would prove things about another model."""
    problem = problem_of(classifier("rf", 3), "very")
    assert Served(problem)({"ask": "estimator"})
    problem = problem_of(classifier("lr"), "yes")
    other = replace(problem, classifier=replace(problem.classifier, threshold=0.3))
    with pytest.raises(UnsupportedError, match="by a threshold of its own"):
        Served(other)({"ask": "estimator"})


def test_an_estimator_that_is_cut_elsewhere_is_not_told() -> None:
    """As the inside of a vote or a calibration is, which says the second class from another output on."""
    problem = problem_of(classifier("lr"), "yes")
    other = replace(problem, classifier=replace(problem.classifier, cut=0.3))
    with pytest.raises(UnsupportedError, match="by a threshold of its own"):
        Served(other)({"ask": "estimator"})
