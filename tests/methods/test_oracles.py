"""CE-OCL's optima against solvers that share nothing with HiGHS: SCIP on squares as they are, CP-SAT on forests.

SCIP gets the same mixed-integer rows with the true quadratic objective. Two optima of one program differ by what each
solver may violate its rows by: 1e-7 for HiGHS, which on the row of the score (2c) is a tenth of the margin of 1e-6. So
they agree within 1e-6, relative, plus what a margin twice as wide changes, plus 1e-7 where squares are tangents to the
method (it promises 1e-6).

CP-SAT gets its own model of a forest's leaves, over listed values, in whole multiples of what the distance can be.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support import enumeration
from support.engines import engines, question_of

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation.checker import permitted
from harness.solvers.highs import Linear
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program import CounterfactualProgram

SOLVER = 1e-9  # SCIP's tolerance, far below that of HiGHS


def scip_optimum(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> tuple[float, bool]:
    """The least distance over the posed program's rows, by SCIP, infinite where there is no point; and whether it ties.

    Rows without margins have a leaf whose classes tie as wanted, and the model may say otherwise.
    """
    scip = pytest.importorskip("pyscipopt", reason="SCIP is in the extra 'scip'")
    # Never cells: x is then a column, whatever the model, and the distance a function of x.
    program = CounterfactualProgram(
        CeOcl("l1", method.alpha, method.max_changes, margin=method.margin, diversity="features"), problem
    )
    program.pose(factual, [], method.max_changes or math.inf, math.inf)
    compiled, space = program.compiled, problem.space
    forms, origin = program.variables.encoded(), space.encode(factual)[0]
    model = scip.Model()
    model.hideOutput()
    model.setParam("numerics/feastol", SOLVER)
    model.setParam("numerics/dualfeastol", SOLVER)
    model.setParam("limits/gap", 0.0)
    model.setParam("limits/time", 60.0)
    columns = [
        model.addVar(
            lb=None if low == -math.inf else float(low),
            ub=None if high == math.inf else float(high),
            vtype="I" if integer else "C",
        )
        for low, high, integer in zip(compiled.low, compiled.high, compiled.integer, strict=True)
    ]
    starts, indices, values = compiled._rows()
    for row, (low, high) in enumerate(zip(compiled.row_low, compiled.row_high, strict=True)):
        part = range(starts[row], starts[row + 1])
        body = scip.quicksum(float(values[k]) * columns[indices[k]] for k in part)
        if not len(part):
            assert low <= SOLVER
            assert high >= -SOLVER
        elif low == high:
            model.addCons(body == float(low))
        else:
            if low > -math.inf:
                model.addCons(body >= float(low))
            if high < math.inf:
                model.addCons(body <= float(high))

    def stated(form: Linear) -> Any:
        return scip.quicksum(
            float(c) * columns[j] for j, c in zip(form.columns, form.coefficients, strict=True)
        ) + float(form.constant)

    power, total = (2 if method.distance == "l2sq" else 1), stated(program.variables.changed(program.aim.price()))
    for feature, at in zip(space.features, space.slices, strict=True):
        if feature.kind is Kind.CATEGORICAL:
            total += 1 - stated(forms[at][int(origin[at].argmax())])
            continue
        # An epigraph of the absolute difference, or of its square, in a column of its own.
        move, above = stated(forms[at.start]) - float(origin[at.start]), model.addVar(lb=0)
        if power == 2:
            shift = model.addVar(lb=None)
            model.addCons(shift == move)
            model.addCons(above >= shift * shift)
        else:
            model.addCons(above >= move)
            model.addCons(above >= -move)
        total += above
    model.setObjective(total, "minimize")
    model.optimize()
    if model.getStatus() == "infeasible":
        return math.inf, False
    assert model.getStatus() == "optimal"
    point = program.read(np.array([model.getVal(column) for column in columns]), factual)
    ties = not problem.valid(point)[0] and np.abs(problem.classifier.graded(point)[1][0] - 0.5) < 1e-9
    return float(model.getObjVal()), bool(ties)


ESTIMATORS: dict[str, Any] = {
    "lr": LogisticRegression(),
    "cart": DecisionTreeClassifier(max_depth=5, random_state=0),
    "rf": RandomForestClassifier(4, max_depth=3, random_state=0),
    "mlp": MLPClassifier((6,), max_iter=300, learning_rate_init=0.02, random_state=0),
}


def assert_scip_agrees(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> None:
    """Within 1e-6, relative, and 1e-7 for what tangents leave of a square; else also what a margin more changes.

    Where SCIP's point is a tie that the model decides otherwise, its optimum is a bound.
    """
    expected, ties = scip_optimum(method, problem, factual)
    (answer,) = enumeration.ask(method, problem, factual).answers
    if expected == math.inf:
        assert answer.status is Status.INFEASIBLE
        return
    assert answer.status is Status.OPTIMAL
    assert answer.objective is not None
    most = 1e-6 * abs(expected) + 1e-7
    if abs(answer.objective - expected) > most:
        wider = CeOcl(method.distance, method.alpha, method.max_changes, margin=2 * method.margin)
        most += abs(scip_optimum(wider, problem, factual)[0] - expected)
        assert most < 1e-4
    if ties:
        assert answer.objective >= expected - most
        return
    assert abs(answer.objective - expected) <= most, (answer.objective, expected)


REAL = Space(
    (
        *(Feature(name, "continuous", scale=(-1.0, 1.0), bounds=(-1.0, 1.0)) for name in "abcd"),
        Feature("e", "continuous", scale=(0.0, 9.0), bounds=(1.0, 8.0), actionability="increase"),
        Feature("n", "integer", scale=(0, 4), bounds=(0, 4)),
        Feature("g", "categorical", ("x", "y", "z")),
    )
)


def real_problem(model: Any, count: int = 400) -> Problem:
    """Mostly continuous features, all of which the model looks at, so that a square is shared among several."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.uniform(-1, 1, count) for name in "abcd"})
    frame = frame.assign(e=rng.uniform(1, 8, count), n=rng.integers(0, 5, count), g=rng.choice(["x", "y", "z"], count))
    frame = frame.astype({"g": object})
    merit = frame["a"] - frame["b"] + 0.7 * frame["c"] * (1 + frame["d"]) + frame["e"] / 5 + 0.2 * frame["n"]
    wanted = merit + 0.3 * (frame["g"] == "y") > merit.quantile(0.7)
    fitted = Classifier(model.fit(REAL.encode(frame), wanted), space_inputs(REAL), ("no", "yes"))
    return Problem(REAL, fitted, frame, np.empty(count, dtype=object), Label("yes"))


@pytest.mark.parametrize("distance", ["l2sq", "l1"])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_scip_finds_the_same_optimum_of_real_numbers(model: str, distance: str) -> None:
    """Squares shared among continuous features; alone, with a weight of changes, with a bound on them."""
    problem = real_problem(ESTIMATORS[model])
    unwanted = problem.train[~problem.valid(problem.train)]
    for method, place in itertools.product((CeOcl(distance), CeOcl(distance, 0.02), CeOcl(distance, 0, 2)), range(2)):
        assert_scip_agrees(method, problem, unwanted.iloc[[place]])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lr", "svm", "cart", "rf"])
@pytest.mark.parametrize("name", ["compas", "german_credit"])
def test_scip_finds_the_same_optimum_on_real_data(name: str, model: str) -> None:
    """Whole numbers of a wide range, whose squares are bounded by tangents and chords."""
    question = question_of(name, model, count=3)
    (problem,) = question.problems.values()
    for index in question.factuals.index:
        for method in (CeOcl("l2sq"), CeOcl("l2sq", 0, 2)):
            assert_scip_agrees(method, problem, question.factuals.loc[[index]])


@pytest.mark.parametrize("distance", ["l2sq", "l1"])
@pytest.mark.parametrize("kept", ["increase", pytest.param("conditional", marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", ["lr", "cart", "rf", "mlp"])
def test_scip_finds_the_same_optimum_of_whole_numbers(model: str, kept: str, distance: str) -> None:
    """All kinds of actionability."""
    problem = enumeration.problem_of(model, kept)
    for factual in enumeration.factuals(problem, 2):
        assert_scip_agrees(CeOcl(distance, 0.05), problem, factual)


def listed(feature: Feature, old: Any) -> list[Any]:
    """Every value that a whole number or a category may take, coming from ``old``."""
    values: list[Any] = list(feature.categories)
    if feature.numeric:
        low, high = feature.bounds
        values = sorted({*range(math.ceil(low), math.floor(high) + 1), int(old)})
    return [value for value in values if permitted(feature, old, value)]


class Leaves:
    """A constraint program: a whole number a feature, a 0/1 variable a leaf, and the values that lead to each leaf.

    Costs are whole multiples of one over the least common multiple of the features' ranges.
    """

    def __init__(self, problem: Problem, factual: pd.DataFrame, alpha: int, most: int | None) -> None:
        cp = pytest.importorskip("ortools.sat.python.cp_model", reason="ortools is not installed")
        self.cp, self.problem, self.factual = cp, problem, factual
        self.model, space = cp.CpModel(), problem.space
        self.origin = factual.iloc[0].to_dict()
        self.values = [listed(feature, self.origin[feature.name]) for feature in space.features]
        self.at = [
            self.model.new_int_var_from_domain(cp.Domain.from_values(self._codes(f, values)), f.name)
            for f, values in zip(space.features, self.values, strict=True)
        ]
        spans = [int(f.range) if f.numeric else max(len(f.categories) - 1, 1) for f in space.features]
        assert all(f.range == int(f.range) for f in space.features if f.numeric)
        self.unit = math.lcm(*(s for s, f in zip(spans, space.features, strict=True) if f.kind is not Kind.CATEGORICAL))
        costs, changes = [], []
        for feature, column, span in zip(space.features, self.at, spans, strict=True):
            (old,) = self._codes(feature, [self.origin[feature.name]])
            changed = self.model.new_bool_var("")
            self.model.add(column != old).only_enforce_if(changed)
            self.model.add(column == old).only_enforce_if(~changed)
            changes.append(changed)
            if feature.kind in {Kind.CATEGORICAL, Kind.BINARY}:
                costs.append(self.unit * changed)
                continue
            gap = self.model.new_int_var(0, 10**7, "")
            self.model.add_abs_equality(gap, column - old)
            costs.append(self.unit // span * gap)
        self.model.add(sum(changes) >= 1)
        if most is not None:
            self.model.add(sum(changes) <= most)
        self._forest()
        self.model.minimize(sum(costs) + alpha * self.unit * sum(changes))

    def _codes(self, feature: Feature, values: list[Any]) -> list[int]:
        return [int(v) if feature.numeric else feature.categories.index(v) for v in values]

    def _forest(self) -> None:
        """One leaf a tree; where a leaf is chosen each feature has a value that scikit-learn's split sends there."""
        scale = 10**9
        judge, space = self.problem.classifier, self.problem.space
        sums, size = [], len(judge.estimator.estimators_)
        names = {feature.name: place for place, feature in enumerate(space.features)}
        inputs = [source(pd.Series(self.values[names[source.feature]])).astype(np.float32) for source in judge.inputs]
        wanted = judge.code(self.problem.target.value)  # type: ignore[union-attr]
        for member in judge.estimator.estimators_:
            tree: Any = member.tree_
            chosen: list[Any] = []

            def visit(node: int, kept: dict[int, np.ndarray], tree: Any = tree, chosen: list[Any] = chosen) -> None:
                if tree.children_left[node] == -1:
                    chosen.append((kept, tree.value[node, 0]))
                    return
                column = int(tree.feature[node])
                place = names[judge.inputs[column].feature]
                left = inputs[column] <= tree.threshold[node]
                every = np.ones(len(left), dtype=bool)
                for child, side in ((tree.children_left[node], left), (tree.children_right[node], ~left)):
                    visit(int(child), {**kept, place: kept.get(place, every) & side})

            visit(0, {})
            leaves = [self.model.new_bool_var("") for _ in chosen]
            self.model.add_exactly_one(leaves)
            for leaf, (kept, value) in zip(leaves, chosen, strict=True):
                for place, side in kept.items():
                    codes = self._codes(space.features[place], self.values[place])
                    reached = self.cp.Domain.from_values([code for code, here in zip(codes, side, strict=True) if here])
                    self.model.add_linear_expression_in_domain(self.at[place], reached).only_enforce_if(leaf)
                sums.append(round(scale * float(value[wanted] / value.sum())) * leaf)
        # Rounding takes half a unit a tree; what it lets in wrongly is refused by the forest itself.
        self.model.add(2 * sum(sums) >= scale * size - size)

    def optimum(self) -> tuple[int, dict[str, Any]] | None:
        """The least cost in units and its row, valid by scikit-learn itself; None where there is none."""
        space = self.problem.space
        while True:
            solver = self.cp.CpSolver()
            solver.parameters.num_workers, solver.parameters.max_time_in_seconds = 1, 120.0
            status = solver.solve(self.model)
            if status == self.cp.INFEASIBLE:
                return None
            assert status == self.cp.OPTIMAL
            codes = [solver.value(column) for column in self.at]
            row = {
                f.name: code if f.numeric else f.categories[code] for f, code in zip(space.features, codes, strict=True)
            }
            if self.problem.valid(space.frame([row]))[0]:
                return round(solver.objective_value), row
            self.model.add_forbidden_assignments(self.at, [codes])


@pytest.mark.parametrize(("alpha", "most"), [(0, None), (0, 2), pytest.param(1, None, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("name", ["compas", pytest.param("german_credit", marks=pytest.mark.slow, id="german_credit")])
def test_cp_sat_finds_the_same_optimum_of_forests(name: str, alpha: int, most: int | None) -> None:
    """People of a published dataset, all of whose numbers are whole: by the search and by the program."""
    question = question_of(name, "rf", count=2)
    (problem,) = question.problems.values()
    assert isinstance(problem.target, Label)
    assert all(feature.kind is not Kind.CONTINUOUS for feature in problem.space.features)
    for index in question.factuals.index:
        factual = question.factuals.loc[[index]]
        oracle = Leaves(problem, factual, alpha, most)
        best, method = oracle.optimum(), CeOcl("l1", alpha, most)
        assert len(engines(method, problem)) == 2
        for engine in engines(method, problem):
            (answer,) = enumeration.ask(engine, problem, factual).answers
            if best is None:
                assert answer.status is Status.INFEASIBLE
                continue
            units, row = best
            claim = method.objective(problem)
            assert claim.evaluate(problem.space, factual, problem.space.frame([row]))[0] == pytest.approx(
                units / oracle.unit, abs=1e-9
            )
            assert answer.status is Status.OPTIMAL
            assert answer.row is not None
            value = claim.evaluate(problem.space, factual, problem.space.frame([answer.row]))[0]
            assert round(value * oracle.unit) == units, (engine.engine, value, units / oracle.unit)
