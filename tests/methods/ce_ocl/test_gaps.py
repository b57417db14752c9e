"""CE-OCL with missing values against all of a grid: statuses, values and bounds, whatever library routes the gaps."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.explanation import Status
from harness.core.method import Deadline, refusal
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation import checker
from harness.models.adopt import adopt
from harness.models.train import train
from methods.ce_ocl import CeOcl

NAMES = ("a", "b", "c")
TOP = 4  # whole numbers from 0: all there is


def xgboost(seed: int) -> object:
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=4, max_depth=3, random_state=seed, n_jobs=1)


def lightgbm(seed: int) -> object:
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=4, num_leaves=6, min_child_samples=2, random_state=seed, verbose=-1)


def matrix_of(frame: pd.DataFrame) -> np.ndarray:
    """The columns of a model that knows no names: numbers, then a column for each category."""
    return np.column_stack([frame[list(NAMES)], frame["d"] == "x", frame["d"] == "y"]).astype(float)


def catboost(frame: pd.DataFrame, labels: np.ndarray, seed: int) -> object:
    """Gaps below all numbers, or above; where a column had none in training, below."""
    library = pytest.importorskip("catboost", reason="catboost is in the extra 'catboost'")
    model = library.CatBoostClassifier(
        iterations=4, depth=3, nan_mode=("Min", "Max")[seed % 2], verbose=0, allow_writing_files=False, thread_count=1
    )
    return model.fit(matrix_of(frame), labels)


def onnx(frame: pd.DataFrame, labels: np.ndarray, seed: int) -> object:
    """Random trees of every way of comparing, at each node of which gaps go either way."""
    library = pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
    rng, helper, trees, inner = np.random.default_rng(seed), library.helper, 4, 7
    nodes = [(tree, node) for tree in range(trees) for node in range(2 * inner + 1)]
    leaf = np.array([node >= inner for _, node in nodes])
    modes = rng.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"], len(nodes))
    leaves = [(tree, node) for tree, node in nodes if node >= inner]
    given = {
        "nodes_treeids": [tree for tree, _ in nodes], "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": rng.integers(0, 4, len(nodes)).tolist(),
        "nodes_modes": np.where(leaf, "LEAF", modes).tolist(),
        "nodes_values": rng.choice([0.0, 0.5, 1.0, 2.5, 3.0], len(nodes)).tolist(),
        "nodes_truenodeids": [0 if end else 2 * node + 1 for (_, node), end in zip(nodes, leaf, strict=True)],
        "nodes_falsenodeids": [0 if end else 2 * node + 2 for (_, node), end in zip(nodes, leaf, strict=True)],
        "nodes_missing_value_tracks_true": rng.integers(0, 2, len(nodes)).tolist(),
        "class_treeids": [tree for tree, _ in leaves], "class_nodeids": [node for _, node in leaves],
        "class_ids": [0] * len(leaves), "class_weights": rng.normal(size=len(leaves)).tolist(),
        "classlabels_strings": ["no", "yes"], "post_transform": "LOGISTIC",
    }  # fmt: skip
    node = helper.make_node("TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", **given)
    kinds = library.TensorProto
    source = helper.make_tensor_value_info("X", kinds.FLOAT, [None, 5])
    ends = [
        helper.make_tensor_value_info("label", kinds.STRING, [None]),
        helper.make_tensor_value_info("scores", kinds.FLOAT, [None, 2]),
    ]
    graph = helper.make_graph([node], "trees", [source], ends)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


LIBRARIES = {"catboost": catboost, "onnx": onnx}
MODELS = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(4, max_depth=4, random_state=seed),
    "extra": lambda seed: ExtraTreesClassifier(4, max_depth=4, random_state=seed),
    "hgb": lambda seed: HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8, min_samples_leaf=2),
    "xgboost": xgboost,
    "lightgbm": lightgbm,
}


def posed(kind: str, seed: int) -> tuple[Problem, np.random.Generator]:
    """A problem on whole numbers with gaps in the training rows, which say something; also of features without any."""
    rng = np.random.default_rng(seed)
    ways = ("free", "free", "increase", "decrease", "immutable")
    bounds = [(0, TOP), (-TOP, 2 * TOP)]  # beyond the training rows' range numbers cost more than a gap
    features = tuple(
        Feature(
            name, Kind.INTEGER, scale=(0, TOP), bounds=bounds[rng.integers(2)], actionability=rng.choice(ways),
            missing=True, may_be_missing=bool(rng.integers(2)),
        )
        for name in NAMES
    )  # fmt: skip
    space = Space((*features, Feature("d", Kind.CATEGORICAL, ("x", "y"))))
    rows = rng.integers(0, TOP + 1, (60, 3)).astype(float)
    rows[:, : rng.integers(1, 4)] = np.where(rng.random((60, 3)) < 0.3, np.nan, rows)[:, : rng.integers(1, 4)][:, :1]
    rows[rng.random((60, 3)) < 0.2] = np.nan
    frame = space.frame(
        {**dict(zip(NAMES, row, strict=True)), "d": "xy"[int(rng.integers(2))]} for row in rows.tolist()
    )
    signs = rng.choice([-1.0, 1.0], 3)
    merit = np.where(np.isnan(rows), rng.uniform(0, TOP, 3), rows) @ signs + rng.normal(0, 1, 60)
    labels = np.where(merit > np.median(merit), "yes", "no").astype(object)
    if kind in LIBRARIES:
        classifier = adopt(LIBRARIES[kind](frame, labels, seed), space, frame, ("no", "yes"))
        assert classifier.opaque is None
    else:
        classifier = train(MODELS[kind](seed), space, frame, labels, ("no", "yes"))
    return Problem(space, classifier, frame, labels, Label("yes")), rng


def everything(space: Space) -> pd.DataFrame:
    """Every row there is: whole numbers of the widest bounds and a gap, by category."""
    numbers = [*map(float, range(-TOP, 2 * TOP + 1)), np.nan]
    return space.frame({**dict(zip(NAMES, row, strict=False)), "d": row[3]} for row in product(*[numbers] * 3, "xy"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [*MODELS, *LIBRARIES])
def test_what_is_found_is_the_best_of_all_rows(kind: str, seed: int) -> None:
    problem, rng = posed(kind, seed)
    space = problem.space
    grid = everything(space)
    right = grid.loc[problem.valid(grid)]
    factuals = problem.train.loc[~problem.valid(problem.train)].drop_duplicates().head(6)
    method = CeOcl(distance=str(rng.choice(["l1", "l2sq", "gower"])), alpha=float(rng.choice([0.0, 0.3])))
    assert refusal(method, problem) is None
    explainer, claim = method.fit(problem), method.objective(problem)
    for index in factuals.index:
        factual = problem.train.loc[[index]]
        origin = factual.iloc[0].to_dict()
        allowed = [
            all(checker.permitted(f, origin[f.name], row[f.name]) for f in space.features)
            for row in right.to_dict("records")
        ]
        cost = claim.evaluate(space, factual, right.loc[allowed])
        answer = explainer.explain(factual, 2, rng, Deadline.after(60)).answers
        if not len(cost):
            assert answer[0].status is Status.INFEASIBLE
            continue
        assert answer[0].status is Status.OPTIMAL
        assert answer[0].objective == pytest.approx(cost.min())
        assert answer[0].bound == pytest.approx(cost.min())
        verdict = checker.examine(
            {"row": answer[0].row, "objective": answer[0].objective}, factual, space, problem.classifier,
            problem.target, claim,
        )  # fmt: skip
        assert verdict["verdict"] == "accepted"
        assert answer[1].status in (Status.OPTIMAL, Status.INFEASIBLE)
        if answer[1].row is not None:
            assert answer[1].objective >= answer[0].objective - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_gaps_beside_declared_categories(seed: int) -> None:
    """Histogram boosting sends a gap of a column of codes where it sends codes that training did not see."""
    rng = np.random.default_rng(seed)
    scale = {"scale": (0, 6), "bounds": (-1, 8), "missing": True}
    space = Space(tuple(Feature(name, Kind.INTEGER, may_be_missing=name == "b", **scale) for name in NAMES))  # type: ignore[arg-type]
    rows = np.where(rng.random((120, 3)) < 0.25, np.nan, rng.integers(0, 7, (120, 3)))
    rows[:, 1] = np.where(rows[:, 1] == 3, 2, rows[:, 1])  # a code that is not seen
    frame = space.frame(dict(zip(NAMES, row, strict=True)) for row in rows.tolist())
    codes = np.nan_to_num(rows, nan=7).astype(int)
    merit = rng.normal(size=8)[codes[:, 0]] + rng.normal(size=8)[codes[:, 1]] + np.nan_to_num(rows[:, 2]) / 6
    labels = np.where(merit > np.median(merit), "yes", "no").astype(object)
    model = HistGradientBoostingClassifier(
        max_iter=8, max_leaf_nodes=8, min_samples_leaf=2, categorical_features=["a", "b"]
    )
    classifier = adopt(model.fit(frame, labels), space, frame, ("no", "yes"))
    problem = Problem(space, classifier, frame, labels, Label("yes"))
    method = CeOcl(distance="l1", alpha=0.1)
    explainer, claim = method.fit(problem), method.objective(problem)
    grid = space.frame(
        dict(zip(NAMES, row, strict=True)) for row in product([*map(float, range(-1, 9)), np.nan], repeat=3)
    )
    right = grid.loc[problem.valid(grid)]
    for index in frame.index[~problem.valid(frame)][:6]:
        factual = frame.loc[[index]]
        allowed = [not faults for faults in space.violations(factual, right)]
        answer = explainer.explain(factual, 1, rng, Deadline.after(60)).answers[0]
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(claim.evaluate(space, factual, right.loc[allowed]).min())


def test_what_needs_a_program_refuses_gaps() -> None:
    problem, _ = posed("hgb", 0)
    for method in (CeOcl(engine="milp"), CeOcl(distance="linf"), CeOcl(hull="hard")):
        assert "set features.a.missing to median" in str(refusal(method, problem))


def test_a_gap_that_is_cheaper_than_a_number_beyond_the_range_is_found() -> None:
    """6 of a range of 4 costs 1.5, and to be missing 1; both are right."""
    space = Space((Feature("a", Kind.INTEGER, scale=(0, 4), bounds=(0, 8), missing=True, may_be_missing=True),))
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, np.nan] * 6
    frame = space.frame({"a": value} for value in values)
    labels = np.array(["no" if value < 7 else "yes" for value in values], dtype=object)
    model = train(DecisionTreeClassifier(random_state=0), space, frame, labels, ("no", "yes"))
    explainer = CeOcl(distance="l1", alpha=0.0).fit(Problem(space, model, frame, labels, Label("yes")))
    answer = explainer.explain(frame.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(20)).answers[0]
    assert answer.status is Status.OPTIMAL
    assert answer.row is not None
    assert np.isnan(answer.row["a"])
    assert (answer.objective, answer.bound) == (1.0, 1.0)


def test_many_gaps_cheaper_than_numbers_do_not_multiply_searches() -> None:
    """Of 16 features of which each may be missing at less than its far values: two have to change, 1 + 0.25."""
    names = [f"n{k}" for k in range(16)]
    space = Space(
        tuple(
            Feature(name, Kind.INTEGER, scale=(0, 4), bounds=(0, 8), missing=True, may_be_missing=True)
            for name in names
        )
    )
    rng = np.random.default_rng(0)
    values = rng.choice([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, np.nan], (400, 16))
    frame = space.frame(dict(zip(names, row, strict=True)) for row in values.tolist())
    first, second = values[:, 0], values[:, 1]
    labels = np.where(((first > 5) | np.isnan(first)) & (second >= 1), "yes", "no").astype(object)
    model = train(DecisionTreeClassifier(random_state=0), space, frame, labels, ("no", "yes"))
    explainer = CeOcl(distance="l1", alpha=0.0).fit(Problem(space, model, frame, labels, Label("yes")))
    factual = space.frame([dict.fromkeys(names, 0.0)])
    answer = explainer.explain(factual, 1, rng, Deadline.after(20)).answers[0]
    assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, 1.25, 1.25)
    assert answer.row is not None
    assert np.isnan(answer.row["n0"])
    assert answer.row["n1"] == 1
