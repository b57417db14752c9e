"""Leaf masks of the cells: they name the leaves that the model itself reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support.forests import ESTIMATORS, SPACE, around_thresholds, many_leaves, merit, problem_with, sample, searcher

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Indicator, Lookup
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.cells.grid import _Cells
from methods.estimators.tree_arrays import Leaf
from methods.estimators.trees import ensemble


def cells_of(space: Space, ends: tuple[np.ndarray, ...], frame: pd.DataFrame) -> np.ndarray:
    """The cell of every value, shape (rows, features)."""
    columns = []
    for feature, borders in zip(space.features, ends, strict=True):
        values = frame[feature.name]
        columns.append(np.searchsorted(borders, values.to_numpy(float)) if feature.numeric else feature.codes(values))
    return np.column_stack(columns)


def assert_masks_name_the_leaf(problem: Problem, wanted: int, rows: int = 1500) -> None:
    """The AND of a tree's masks is one bit, another for each leaf; the bits' values add up to the model's output."""
    fitted = problem.classifier
    grid = searcher(CeOcl(), replace(problem, target=Label(fitted.classes[wanted]))).grid
    frame = around_thresholds(problem, grid.ends, rows)
    cells = grid.offset[:-1] + cells_of(problem.space, grid.ends, frame)
    inputs, score = fitted.matrix(frame).astype(np.float32), np.full(rows, grid.base)
    members_of = np.ravel(getattr(fitted.estimator, "estimators_", fitted.estimator))
    for t, tree in enumerate(estimator.tree_ for estimator in members_of):
        members = grid.members[grid.starts[t] : grid.starts[t + 1]]
        bits = np.full(rows, grid.values.shape[1] - 1)
        if len(members):
            masks = grid.upto[t, cells[:, members]] & grid.onwards[t, cells[:, members]]
            unpacked = np.unpackbits(np.bitwise_and.reduce(masks, axis=1).view(np.uint8), axis=1, bitorder="little")
            assert (unpacked.sum(axis=1) == 1).all()
            bits = unpacked.argmax(axis=1)
        leaves = tree.apply(inputs)
        assert len(set(zip(leaves, bits, strict=True))) == len(set(leaves)) == len(set(bits))
        score += grid.values[t, bits]
    expected = (fitted.raw(frame) - fitted.raw_threshold) * (1 if wanted == 1 else -1)
    assert score == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_masks_of_a_point_leave_the_leaf_that_the_tree_applies(model: str, wanted: int) -> None:
    """At thresholds and their float64 and float32 neighbours too."""
    assert_masks_name_the_leaf(problem_with(model), wanted)


INPUTS = (
    Affine("a", 1.0, -0.3),
    Affine("a", -3.0, 8.0),
    Affine("b", 0.35, 1 / 3),
    Affine("n", 30.0, -7.0),
    Affine("n", 0.1, 1e3),
    Affine("m", 0.0, 1.0),
    Affine("grade", 4.0, -1.5),
    Indicator("region", ("n", "s")),
    Lookup("region", ("n", "e", "s", "w", "x"), (0.3, -1.0, 2.5, 0.3, 0.7)),
    Indicator("member", (True,)),
)


def test_falling_inputs_and_several_inputs_of_a_feature_have_masks() -> None:
    """A negative unit, two maps of one number, pooled and target-encoded categories, numbers as levels."""
    train = sample(600)
    fitted = Classifier(RandomForestClassifier(6, max_depth=8, random_state=0), INPUTS, ("no", "yes"))
    fitted.estimator.fit(fitted.matrix(train), merit(train) > 0.8)
    assert_masks_name_the_leaf(replace(problem_with("rf"), classifier=fitted), 1)


def test_a_tree_may_have_many_leaves_and_another_none_but_its_root() -> None:
    """Leaf masks of several words, and a tree without a split."""
    problem = many_leaves()
    assert searcher(CeOcl(), problem).grid.upto.shape[2] > 2
    for wanted in (0, 1):
        assert_masks_name_the_leaf(problem, wanted)


def test_what_is_no_sum_of_trees_over_intervals_is_refused() -> None:
    """Another model, an ordinal feature split out of its order, too many categories."""
    train, problem = sample(50), problem_with("rf")
    with pytest.raises(UnsupportedError, match="LogisticRegression"):
        ensemble(LogisticRegression())
    inputs = (Indicator("grade", (2, 3)),)
    tree = DecisionTreeClassifier().fit(inputs[0](train["grade"])[:, None], train["grade"].isin((2, 3)))
    with pytest.raises(UnsupportedError, match="grade is ordinal"):
        searcher(CeOcl(), replace(problem, classifier=Classifier(tree, inputs, ("no", "yes"))))
    crowd = SPACE.replace({"region": {"categories": (*"nesw", *range(61))}})
    with pytest.raises(UnsupportedError, match="65 categories"):
        searcher(CeOcl(), replace(problem, space=crowd))


def test_a_missing_number_goes_to_a_leaf_by_every_input_that_is_made_of_it() -> None:
    """Two inputs of a, cut at .3 and .6: a leaf between them is met where a is missing if both splits send it there."""
    space = Space((Feature("a", "continuous", scale=(0.0, 1.0), missing=True, may_be_missing=True),))
    for goes in ({0: True, 1: True}, {0: True, 1: False}, {0: False, 1: True}):
        leaf = Leaf(0, {0: 0.3}, {1: 0.6}, goes)
        cells = _Cells(space, (Affine("a"), Affine("a")), [[leaf]], single=False)
        assert cells.meeting(0, leaf).tolist() == [False, True, False, all(goes.values())]
