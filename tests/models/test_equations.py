"""Structural equations: read, learnt, stored, measured, and imposed on a mixed-integer program."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor
from support.sweep import runner

from harness.cli.arguments import readable
from harness.cli.build import _name_learners
from harness.core.equation import Equation, Formula, follow
from harness.core.errors import DatasetError, HarnessError
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.data import Dataset, load_dataset
from harness.data.equations import parse
from harness.execution.task import make_task
from harness.models import train as models
from harness.models.equations import equations
from harness.solvers.program import Program
from harness.store.run import StoredRun, stored_runs
from methods.milp.causality import Causality
from methods.milp.cost import Cost
from methods.milp.variables import Variables
from metrics import causality as metrics

ROOT = Path(__file__).parents[2]
SPACE = Space(
    (
        Feature("amount", "integer", scale=(0, 30), bounds=(0, 30)),
        Feature("share", "continuous", scale=(0, 1), bounds=(0, 1)),
        Feature("housing", "categorical", ("own", "rent", "free")),
        Feature("grade", "ordinal", (1, 2, 3)),
        Feature("pay-back", "continuous", scale=(4, 72), bounds=(4, 72)),
        Feature("rate", "continuous", scale=(0, 10), bounds=(0, 10)),
    )
)
FORMULAS = {
    "rate": {"formula": "`pay-back` / 8 + (grade == 2)"},
    "pay-back": {"formula": "1.5 * amount - (5 - 2 * share) / 4 + 10 * (housing != 'own')"},
}
REGRESSORS: dict[str, Any] = {
    "linear": LinearRegression(),
    "ridge": Ridge(),
    "tree": DecisionTreeRegressor(max_depth=4, random_state=0),
    "forest": RandomForestRegressor(5, max_depth=3, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=8, max_depth=2, random_state=0),
    "network": MLPRegressor(hidden_layer_sizes=[8], solver="lbfgs", max_iter=200, random_state=0),
    "deep network": MLPRegressor(hidden_layer_sizes=[6, 4], solver="lbfgs", max_iter=200, random_state=0),
}
WEIGHTS = np.array([-1.0, 0.2, 0.0, 0.3, -0.4, 0.5, -1.2, 0.9])  # of a score over the encoded columns
COST = Cost(0.1, 1.0, 0.0)


def sample(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    amount, share = rng.integers(0, 31, rows), rng.uniform(size=rows)
    housing, grade = rng.choice(["own", "rent", "free"], rows), rng.choice([1, 2, 3], rows)
    due = 8 + 1.5 * amount + 10 * (housing == "own") + 5 * np.sin(amount / 4) + 4 * share + rng.normal(0, 3, rows)
    due = np.clip(due, 4, 72)
    rate = np.clip(due / 8 + (grade == 2) + rng.normal(0, 0.5, rows), 0, 10)
    columns = (amount.tolist(), share, housing.tolist(), grade.tolist(), due, rate)
    return SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in zip(*columns, strict=True))


TRAIN = sample()


def described(family: str, share: bool = True) -> dict[str, dict[str, Any]]:
    """A description of two equations in a chain, the later one first."""
    if family == "formula":
        return FORMULAS
    parents = ["amount", "share", "housing"] if share else ["amount", "housing"]
    learner = REGRESSORS[family]
    return {
        "rate": {"parents": ["pay-back", "grade"], "learn": learner},
        "pay-back": {"parents": parents, "learn": learner},
    }


def test_a_formula_is_what_it_says() -> None:
    """Values by hand of every operation, and parents in order of appearance."""
    text = "+2 * amount - (3 * (housing == 'own') + 1) / 2 + (grade != 3) - -`pay-back` * (1 / 4)"
    (equation,) = equations(SPACE, TRAIN, {"rate": {"formula": text}})
    rows = TRAIN.iloc[:50]
    expected = (
        2 * rows["amount"] - (3 * (rows["housing"] == "own") + 1) / 2 + (rows["grade"] != 3) + rows["pay-back"] / 4
    )
    np.testing.assert_allclose(equation.predict(rows), expected, rtol=1e-12)
    assert equation.parents == ("amount", "housing", "grade", "pay-back")
    assert equation.text == text


def test_terms_that_cancel_leave_a_constant() -> None:
    """A difference of a feature from itself divides and multiplies as the number that it is."""
    model = parse("amount / (2 + share - share) * (amount - amount + 3)", SPACE)
    np.testing.assert_allclose(model.predict(TRAIN), 1.5 * TRAIN["amount"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 * amount * share", "a product of features is not linear; learn the equation by a regressor"),
        ("amount / share", "only a number other than 0 may divide"),
        ("amount / 0", "only a number other than 0 may divide"),
        ("amount ** 2", "allowed are numbers, features"),
        ("__import__('os')", "allowed are numbers, features"),
        ("amount.real", "allowed are numbers, features"),
        ("True", "allowed are numbers, features"),
        ("amount > 3", "allowed are numbers, features"),
        ("1 < amount == 3", "allowed are numbers, features"),
        ("amount == 3", "amount is integer; learn an equation with steps"),
        ("housing", "compare it with one of its categories"),
        ("housing == 'owm'", "did you mean 'own'?"),
        ("amonut", "did you mean 'amount'?"),
        ("`pay back`", "did you mean 'pay-back'?"),
        ("pay-back", "at 'pay': there is no feature 'pay'"),
        ("2 *", "is no expression"),
    ],
)
def test_other_formulas_are_refused(text: str, message: str) -> None:
    """One sentence with the part at fault and what to do."""
    with pytest.raises(DatasetError) as fault:
        parse(text, SPACE)
    assert message in str(fault.value)
    assert text.split("`")[-1] in str(fault.value)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"amount": {"formula": "share"}}, "set features.amount.kind=continuous"),
        ({"housing": {"formula": "share"}}, "set features.housing.kind=continuous"),
        ({"rat": {"formula": "share"}}, "did you mean 'rate'?"),
        ({"rate": {"parents": ["amonut"], "learn": Ridge()}}, "did you mean 'amount'?"),
        ({"rate": {"parents": "amount", "learn": Ridge()}}, "list the features"),
        ({"rate": {"learn": Ridge()}}, "list the features"),
        ({"rate": {"parents": ["amount"]}}, "either a 'formula', or 'parents' and 'learn'"),
        ({"rate": "2 * amount"}, "either a 'formula', or 'parents' and 'learn'"),
        ({"rate": {"formula": "amount", "parents": ["amount"]}}, "no entry 'parents'; allowed: formula"),
        ({"rate": {"parents": ["amount"], "learn": Ridge(), "gird": {}}}, "did you mean 'grid'?"),
        ({"rate": {"parents": ["amount"], "learn": "ridges"}}, "no equation can be learnt by 'ridges'"),
        ({"rate": {"parents": ["amount"], "learn": "file"}}, "no equation can be learnt by 'file'"),
        ({"rate": {"parents": ["amount"], "learn": LogisticRegression()}}, "give an unfitted regressor"),
        ({"rate": {"formula": "rate / 2"}}, "a cycle, rate -> rate"),
        ({"rate": {"formula": "`pay-back`"}, "pay-back": {"parents": ["rate"], "learn": Ridge()}}, "a cycle"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(description: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError) as fault:
        equations(SPACE, TRAIN, description)
    assert message in str(fault.value)


def test_a_feature_that_never_varies_is_not_learnt() -> None:
    with pytest.raises(DatasetError, match="no equation to learn"):
        equations(SPACE, TRAIN.assign(rate=3.0), {"rate": {"parents": ["amount"], "learn": Ridge()}})


@pytest.mark.parametrize("family", [*REGRESSORS, "formula"])
def test_effects_follow_causes(family: str) -> None:
    """Equation (7) written out, along a chain; at the factual nothing moves."""
    made = equations(SPACE, TRAIN, described(family))
    assert [equation.feature for equation in made] == ["pay-back", "rate"]  # causes first
    factual, rows = TRAIN.iloc[[3]], TRAIN.iloc[5:25]
    followed = follow(made, factual, rows)
    for equation in made:
        origin = factual[equation.feature].iloc[0] - equation.predict(factual)[0]
        np.testing.assert_allclose(followed[equation.feature] - equation.predict(followed), origin, atol=1e-9)
        np.testing.assert_allclose(equation.residual(SPACE, factual, followed), 0, atol=1e-12)
        shifted = followed.assign(**{equation.feature: followed[equation.feature] + SPACE[equation.feature].range / 4})
        np.testing.assert_allclose(equation.residual(SPACE, factual, shifted), 0.25, atol=1e-12)
    pd.testing.assert_frame_equal(follow(made, factual, factual), factual)


def test_a_learnt_equation_is_the_regressor_of_its_parents() -> None:
    """Fitted on min-max numbers and one-hot categories, in units of the feature's range; given back in its own."""
    learner = REGRESSORS["network"]
    made = equations(SPACE, TRAIN, described("network"))[0]
    inputs = np.column_stack(
        [TRAIN["amount"] / 30, TRAIN["share"], *(TRAIN["housing"] == level for level in ("own", "rent", "free"))]
    )
    fitted = clone(learner).fit(inputs.astype(float), (TRAIN["pay-back"] - 4) / 68)
    np.testing.assert_allclose(made.predict(TRAIN), 4 + 68 * fitted.predict(inputs.astype(float)), rtol=1e-9)
    assert not hasattr(learner, "coefs_")  # what was given is not fitted


def test_a_grid_is_searched_by_five_folds(tmp_path: Path) -> None:
    """The equation holds the best estimator, as scikit-learn's own search finds it; a cached one is the same."""
    grid = {"alpha": [1e-3, 1e3, 1.0]}
    description = {"pay-back": {"parents": ["amount", "share"], "learn": Ridge(), "grid": grid}}
    (made,) = equations(SPACE, TRAIN, description, tmp_path)
    inputs = np.column_stack([TRAIN["amount"] / 30, TRAIN["share"]])
    search = GridSearchCV(Ridge(), grid, cv=5).fit(inputs, (TRAIN["pay-back"] - 4) / 68)
    assert made.model.estimator.get_params() == search.best_estimator_.get_params()
    (again,) = equations(SPACE, TRAIN, description, tmp_path)
    np.testing.assert_array_equal(again.predict(TRAIN), made.predict(TRAIN))
    assert len(list(tmp_path.glob("*.skops"))) == 1


def dataset(tmp_path: Path, **arguments: Any) -> Dataset:
    TRAIN.assign(y=np.where(TRAIN["rate"] > 5, "good", "bad")).to_csv(tmp_path / "toy.csv", index=False)
    sources = [{"file": str(tmp_path / "toy.csv")}]
    kinds = {feature.name: {"kind": str(feature.kind)} for feature in SPACE.features}
    return load_dataset("toy", sources, "y", desired="good", features=kinds, **arguments)


def test_a_dataset_checks_its_causality(tmp_path: Path) -> None:
    """What does not fit is an error when the data are loaded; an immutable effect is worth a notice; None is none."""
    with pytest.raises(DatasetError, match=r"amount\.kind=continuous"):
        dataset(tmp_path, causality={"amount": {"formula": "share"}})
    fixed = dataset(tmp_path, causality=FORMULAS, immutable=["rate"])
    (notice,) = fixed.notices
    assert "rate is immutable and has an equation: its parents may only change in ways that leave it" in notice
    assert fixed.causality == FORMULAS
    assert dataset(tmp_path, causality={"amount": None}).notices == ()


def test_problems_carry_the_equations(tmp_path: Path) -> None:
    """Every problem of a question, also after a pickle; forgotten ones are an error."""
    data = dataset(tmp_path, causality=FORMULAS)
    train = data.frame.iloc[data.train]
    made = equations(data.space, train, data.causality)
    classifier = models.train(LogisticRegression(), data.space, train, data.labels[data.train], data.classes)
    question = make_task(data, classifier, n_factuals=3, equations=made)
    problem = pickle.loads(pickle.dumps(question.problem(question.factuals.index[0])))
    for one, other in zip(problem.equations, made, strict=True):
        np.testing.assert_array_equal(one.predict(train), other.predict(train))
    with pytest.raises(DatasetError, match="do not agree on pay-back, rate"):
        make_task(data, classifier, n_factuals=3)


@pytest.mark.parametrize("family", ["formula", "network", "tree"])
def test_a_cell_stores_its_equations(family: str, tmp_path: Path) -> None:
    """Formulas as JSON, regressors beside the estimator; both predict to the last bit what they did."""
    classifier = models.train(LogisticRegression(), SPACE, TRAIN, np.where(TRAIN["rate"] > 5, 1, 0), (0, 1))
    made = equations(SPACE, TRAIN, described(family))
    cell = StoredRun(tmp_path / "cell")
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 1}
    factuals = TRAIN.iloc[:2]
    cell.start(meta, SPACE, classifier, dict.fromkeys(factuals.index, Label(1)), None, factuals, made)
    assert len(list(cell.path.glob("equation_*.skops"))) == (0 if family == "formula" else 2)
    back = cell.equations
    assert [(e.feature, e.parents, e.shift, e.unit, e.text) for e in back] == [
        (e.feature, e.parents, e.shift, e.unit, e.text) for e in made
    ]
    for one, other in zip(back, made, strict=True):
        assert isinstance(one.model.estimator, Formula) == (family == "formula")
        np.testing.assert_array_equal(one.predict(TRAIN), other.predict(TRAIN))


def test_the_residual_is_summed_over_equations_and_averaged_over_answers() -> None:
    made = equations(SPACE, TRAIN, FORMULAS)
    factual = TRAIN.iloc[[0]]
    classifier = models.train(LogisticRegression(), SPACE, TRAIN, np.where(TRAIN["rate"] > 5, 1, 0), (0, 1))
    problem = Problem(SPACE, classifier, TRAIN, TRAIN["rate"].to_numpy(), Label(1), equations=made)
    answers = follow(made, factual, TRAIN.iloc[1:3])
    answers["rate"] += [1.0, -2.0]  # of a range of 10
    assert metrics.residual(factual, answers, problem) == pytest.approx((0.1 + 0.2) / 2)
    answers["pay-back"] += [0.0, 6.8]  # a tenth of its range; rate should rise by 0.85 with it
    assert metrics.residual(factual, answers, problem) == pytest.approx((0.1 + (0.1 + 0.2 + 0.085)) / 2)
    assert metrics.residual(factual, answers.iloc[:0], problem) is None
    assert metrics.residual(factual, answers, replace(problem, equations=())) is None


class Asked:
    """The cheapest point whose score rises by a step, under equations, as a program built once."""

    def __init__(self, space: Space, made: tuple[Equation, ...]) -> None:
        self.space, self.made, self.program = space, made, Program()
        self.variables = Variables(self.program, space, cells=False)
        self.causality = Causality(self.program, self.variables, made)
        inputs = space_inputs(space)
        score = sum(float(w) * self.variables.source(i).expression for w, i in zip(WEIGHTS, inputs, strict=True))
        row = self.program.add(score >= 0)
        self.variables.close()
        self.compiled = self.program.compile()
        self.variables.attach(self.compiled)
        self.causality.attach(self.compiled)
        self.row = self.compiled.row(row)
        self.constant, self.base = self.compiled.row_low[self.row], self.compiled.mark()

    def solve(self, factual: pd.DataFrame, step: float, limits: Any = None) -> tuple[Any, pd.DataFrame | None]:
        """The solution, and its decoded row."""
        self.compiled.rewind(self.base)
        costs = [COST] * len(self.space.features)
        self.variables.pose(factual, costs)
        self.causality.pose(factual, limits)
        self.compiled.row_low[self.row] = self.constant + self.space.encode(factual)[0] @ WEIGHTS + step
        solution = self.compiled.solve(self.variables.cost(), 60.0)
        if solution.x is None:
            return solution, None
        return solution, self.space.frame([self.causality.complete(factual, self.variables.read(solution.x))])

    def listed(self, factual: pd.DataFrame, step: float, shares: np.ndarray) -> np.ndarray:
        """Costs of all points of a grid over the causes that are allowed and meet the step."""
        grid = itertools.product(range(31), shares, ("own", "rent", "free"), (1, 2, 3))
        rows = self.space.frame(dict(zip(SPACE.names, (*point, 4.0, 0.0), strict=True)) for point in grid)
        rows = follow(self.made, factual, rows)
        better = self.space.encode(rows) @ WEIGHTS >= self.space.encode(factual)[0] @ WEIGHTS + step
        allowed = [not faults for faults in self.space.violations(factual, rows)]
        return self.cost(factual, rows.loc[better & allowed])

    def cost(self, factual: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
        total = np.zeros(len(rows))
        for feature in self.space.features:
            values, origin = rows[feature.name], factual[feature.name].iloc[0]
            if feature.name == "housing":
                gaps = (values != origin).to_numpy(float)
            else:
                gaps = np.abs(values.to_numpy(float) - origin) / (2 if feature.name == "grade" else feature.range)
            total += COST(gaps)
        return total


@pytest.mark.parametrize("family", [*REGRESSORS, "formula"])
def test_the_optimum_is_that_of_all_points(family: str) -> None:
    """With the continuous cause immutable, causes can be listed: same optimum, or both find nothing; (7) holds."""
    space = SPACE.replace({"share": {"actionability": "immutable"}})
    asked = Asked(space, equations(space, TRAIN, described(family)))
    found = 0
    for number in range(8):
        factual = TRAIN.iloc[[number]]
        solution, row = asked.solve(factual, 0.5987)
        costs = asked.listed(factual, 0.5987, factual["share"].to_numpy())
        if row is None:
            assert solution.infeasible
            assert not len(costs)
            continue
        found += 1
        assert solution.proven
        assert solution.objective == pytest.approx(costs.min(), abs=1e-6)
        assert asked.cost(factual, row)[0] == pytest.approx(costs.min(), abs=1e-6)
        for equation in asked.made:
            assert abs(equation.residual(space, factual, row)[0]) <= 1e-6
        assert space.violations(factual, row) == [[]]
    assert 2 < found < 8


@pytest.mark.parametrize("family", ["formula", "linear", "tree", "boosting", "network"])
def test_no_grid_beats_the_optimum_of_a_continuous_cause(family: str) -> None:
    """A fine grid comes near the optimum and not below it; the answer costs what was claimed and keeps (7)."""
    asked = Asked(SPACE, equations(SPACE, TRAIN, described(family)))
    for number in range(3):
        factual = TRAIN.iloc[[number]]
        shares = np.append(np.linspace(0, 1, 81), factual["share"].iloc[0])
        solution, row = asked.solve(factual, 0.4)
        costs = asked.listed(factual, 0.4, shares)
        assert row is not None
        assert costs.min() - 0.05 <= solution.objective <= costs.min() + 1e-6
        assert asked.cost(factual, row)[0] == pytest.approx(solution.objective, abs=1e-5)
        for equation in asked.made:
            assert abs(equation.residual(SPACE, factual, row)[0]) <= 1e-6


def test_bounds_from_a_budget_lose_nothing() -> None:
    """Networks bounded by what a budget can change have the same optimum as by what the features can reach."""
    space = SPACE.replace({"share": {"actionability": "immutable"}})
    asked = Asked(space, equations(space, TRAIN, described("deep network")))
    costs = [COST] * len(space.features)
    for number in range(4):
        factual = TRAIN.iloc[[number]]
        free, _ = asked.solve(factual, 0.5987)
        if free.x is None:
            continue
        bounded, _ = asked.solve(factual, 0.5987, (costs, np.ones(len(costs)), np.inf, free.objective + 1e-6))
        assert bounded.objective == pytest.approx(free.objective, abs=1e-6)


def test_an_immutable_effect_restricts_its_causes() -> None:
    """With pay-back fixed, the causes may change only together, in ways that leave it."""
    space = SPACE.replace({"pay-back": {"actionability": "immutable"}, "rate": {"actionability": "free"}})
    made = equations(space, TRAIN, {"pay-back": {"formula": "amount + 5 * (housing == 'own')"}})
    asked = Asked(space, made)
    factual = TRAIN.loc[(TRAIN["housing"] == "own") & (TRAIN["amount"] < 20)].iloc[[0]]
    asked.variables.pose(factual, [COST] * 6)
    _, row = asked.solve(factual, 0.3)
    assert row is not None
    moved = row["amount"].iloc[0] - factual["amount"].iloc[0]
    assert moved == (0 if row["housing"].iloc[0] == "own" else 5)
    assert row["pay-back"].iloc[0] == factual["pay-back"].iloc[0]


def test_settling_moves_only_what_is_off() -> None:
    """A value off by the solver's tolerance stays; one further off is computed anew, within its bounds."""
    made = equations(SPACE, TRAIN, FORMULAS)
    asked, factual = Asked(SPACE, made), TRAIN.iloc[[0]]
    (exact,) = follow(made, factual, TRAIN.iloc[[1]]).to_dict("records")
    near = {**exact, "pay-back": exact["pay-back"] + 1e-8}
    assert asked.causality.complete(factual, near) == near
    far = {**exact, "pay-back": exact["pay-back"] + 1e-3}
    assert asked.causality.complete(factual, far)["pay-back"] == pytest.approx(exact["pay-back"], abs=1e-12)
    beyond = asked.causality.complete(factual, {**exact, "amount": 1000})
    assert beyond["pay-back"] == 72


def test_learners_are_named_after_models() -> None:
    """A name stands for the estimator in ``conf/model``, with the experiment's seed; others are an error."""
    plain: dict[str, Any] = {
        "seed": 0,
        "model_seed": 3,
        "dataset": {"causality": {"rate": {"learn": "mlp_regressor"}, "due": None}},
    }
    _name_learners(plain)
    learner = plain["dataset"]["causality"]["rate"]["learn"]
    assert learner["_target_"] == "sklearn.neural_network.MLPRegressor"
    assert learner["random_state"] == 3
    for name in ("lr", "mlp_regresor"):
        plain = {"seed": 0, "model_seed": 0, "dataset": {"causality": {"rate": {"learn": name}}}}
        with pytest.raises(HarnessError, match="mlp_regressor"):
            _name_learners(plain)
    assert readable("dataset.causality.rate.learn=ridge") == "++dataset.causality.rate.learn=ridge"


def test_the_command_line_takes_equations(tmp_path: Path) -> None:
    """Overrides of a dataset without equations: learnt, stored with the cell, and measured."""
    arguments = (
        "dataset=german_credit", "model=lr", "method=nearest", "n_factuals=2", "features.duration.kind=continuous",
        "dataset.causality.duration={parents: [credit_amount], learn: mlp_regressor}",
        "dataset.causality.duration.grid.hidden_layer_sizes=[[5],[10]]",
    )  # fmt: skip
    done = runner(tmp_path)(*arguments)
    assert done.returncode == 0, done.stderr
    (cell,) = stored_runs(tmp_path / "results")
    (equation,) = cell.equations
    assert (equation.feature, equation.parents) == ("duration", ("credit_amount",))
    assert equation.model.estimator.hidden_layer_sizes in ([5], [10])
    frame, _ = cell.factuals()
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    for row in cell.rows():
        if row["row"] is not None:
            gap = equation.residual(cell.space, frame.loc[[row["factual"]]], cell.space.frame([row["row"]]))[0]
            assert scores["causality/residual"][row["factual"]] == pytest.approx(abs(gap))
            assert abs(gap) > 1e-3  # a nearest neighbour knows of no equation


PUBLISHED = "intercept,layer,node,node_0,node_1\n-0.25,0,0,2,\n0.5,0,1,-1,\n0.1,1,0,0.3,-0.4\n"  # 1 input, 2 units
BY_HAND = [  # amount, scaled from [10, 30]; the two units; what they give, from [4, 72]
    (10, (0.0, 0.5), 4 + 68 * (0.1 - 0.4 * 0.5)),
    (20, (0.75, 0.0), 4 + 68 * (0.1 + 0.3 * 0.75)),
    (40, (2.75, 0.0), 4 + 68 * (0.1 + 0.3 * 2.75)),
]


@pytest.fixture
def published(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "due.csv").write_text(PUBLISHED)
    scale = {"amount": [10, 30], "pay-back": [4, 72]}
    return {"parents": ["amount"], "published": {"file": str(tmp_path / "due.csv")}, "scale": scale}


def test_a_published_network_is_an_equation(published: dict[str, Any]) -> None:
    (equation,) = equations(SPACE, TRAIN, {"pay-back": published})
    assert equation.parents == ("amount",)
    rows = TRAIN.iloc[: len(BY_HAND)].assign(amount=[amount for amount, _, _ in BY_HAND])
    assert equation.predict(rows) == pytest.approx([value for _, _, value in BY_HAND])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale": {"amount": [10, 30]}}, r"published without a scale of pay-back; give scale\.pay-back=\[low, high\]"),
        ({"scale": {"amount": [30, 10], "pay-back": [4, 72]}}, r"without a scale of amount"),
        ({"scale": 3}, r"without a scale of pay-back"),
        ({"scale": {"pay-back": 72, "amount": [10, 30]}}, r"without a scale of pay-back"),
        ({"parents": ["housing"], "scale": {"housing": [0, 1], "pay-back": [4, 72]}}, r"a scale of housing; .*numbers"),
        ({"grid": {}}, r"has no entry 'grid'; .*published, parents, scale"),
        ({"learn": "ridge"}, r"give either a 'formula', or 'parents' and 'learn'"),
        ({"published": {"file": "/nowhere/due.csv"}}, r"due\.csv"),
    ],
)
def test_a_published_equation_that_does_not_fit_is_one_sentence(
    change: dict[str, Any], sentence: str, published: dict[str, Any]
) -> None:
    with pytest.raises(DatasetError, match=sentence):
        equations(SPACE, TRAIN, {"pay-back": published | change})
