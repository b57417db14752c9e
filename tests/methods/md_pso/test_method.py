"""MD-PSO: particles stay in the space, the cost is the paper's, and a toy's optimum is met."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.objective import displacement
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Interval, Label, Probability
from methods.md_pso import MdPso
from methods.md_pso.actions import Actions
from methods.md_pso.information_value import information_value
from methods.md_pso.method import _Pool
from methods.md_pso.oracle import INVALID
from methods.md_pso.pull_back import HALVED, halve, pull_back, undo
from methods.md_pso.swarm import Swarms

ProblemOf = Callable[[str], Problem]
TOY = Space(
    (
        Feature("income", Kind.CONTINUOUS, scale=(0, 100), bounds=(0, 100)),
        Feature("debt", Kind.CONTINUOUS, scale=(0, 10), bounds=(0, 10)),
        Feature("visits", Kind.INTEGER, scale=(0, 20), bounds=(0, 20)),
        Feature("job", Kind.CATEGORICAL, ("none", "clerk", "nurse")),
    )
)


def toy_problem() -> Problem:
    """Granted are incomes above 60: one split, so the closest counterfactual is an income of 60."""
    rng = np.random.default_rng(0)
    train = TOY.frame(
        {"income": i, "debt": d, "visits": int(v), "job": j}
        for i, d, v, j in zip(
            np.linspace(0, 100, 101), rng.uniform(0, 10, 101), rng.integers(0, 21, 101),
            rng.choice(["none", "clerk", "nurse"], 101), strict=True,
        )
    )  # fmt: skip
    labels = np.where(train["income"] > 60, "granted", "refused").astype(object)
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(TOY.encode(train), labels == "granted")
    return Problem(TOY, Classifier(tree, space_inputs(TOY), ("refused", "granted")), train, labels, Label("granted"))


FACTUAL = TOY.frame([{"income": 40.0, "debt": 5.0, "visits": 10, "job": "clerk"}])


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def soon() -> Deadline:
    return Deadline.after(60)


def encoded(swarms: Swarms, factuals: pd.DataFrame) -> np.ndarray:
    """The swarms' points in all columns of the space."""
    oracle = swarms.actions.oracle
    rows = oracle.problem.space.encode(factuals)[swarms.owner]
    rows[:, oracle.places] = swarms.points.scaled
    return rows


def swarms_of(method: MdPso, problem: Problem, factuals: pd.DataFrame) -> Swarms:
    explainer = method.fit(problem)
    actions = Actions(explainer.oracle, factuals, (method.epsilon, method.epsilon_abs))
    return Swarms(method, actions, [np.random.default_rng(row) for row in range(len(factuals))])


def test_the_optimum_of_a_toy_is_met() -> None:
    """The split lies at 60.5 on 100 units: 0.205 scaled from 40, the mean of four features, and one change of four."""
    problem = toy_problem()
    exact = (0.205 / 4) + 1 / 4
    alone = MdPso(n_active=1, epsilon=1.0, iterations=100)
    found = alone.fit(problem).explain(FACTUAL, 1, rng(), soon()).answers[0]
    assert found.objective == pytest.approx(exact, abs=1e-4)
    assert found.row is not None
    assert found.row["income"] == pytest.approx(60.5, abs=0.05)


def test_costs_of_features_are_minimised(problem_of: ProblemOf) -> None:
    """What each answer is said to cost is the weighted distance by hand; a dear feature is left alone."""
    problem = problem_of("rf")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    method = MdPso(iterations=40, epsilon=1.0, sparsity_weight=0.0)

    def moved(weight: float) -> float:
        space = problem.space.replace({"income": {"weight": weight}})
        found = method.fit(replace(problem, space=space))
        total = 0.0
        for place in range(len(factuals)):
            factual = factuals.iloc[[place]]
            (answer,) = found.explain(factual, 1, rng(), soon()).answers
            gaps = displacement(space, factual, space.frame([answer.row or {}]))[0]
            own = np.array([weight if name == "income" else 1.0 for name in space.names])
            assert answer.objective == pytest.approx(float(gaps @ own) / len(gaps), abs=1e-12)
            total += float(gaps[space.names.index("income")])
        return total

    assert moved(50.0) < 0.5 * moved(0.02)


def test_what_does_not_move_keeps_its_last_digit() -> None:
    """Where encoding and decoding do not: the factual's own value is handed back."""
    debt = next(value for value in np.linspace(0.01, 9.99, 999).tolist() if value / 10 * 10 != value)
    found = MdPso(pull_back=True).fit(toy_problem()).explain(FACTUAL.assign(debt=debt), 1, rng(), soon())
    row = found.answers[0].row
    assert row is not None
    assert row["income"] > 60
    assert row["debt"] == debt


def test_up_costs_what_up_costs() -> None:
    """Numbers that rise and fall, one measured by the population that it passes: worked out."""
    problem, method = toy_problem(), MdPso()
    shares = ((0.0, 0.0), (5.0, 0.3), (10.0, 1.0))
    prices = {"income": {"weight_up": 3, "weight_down": 0.5}, "debt": {"shares": shares, "weight_down": 2}}
    explainer = method.fit(replace(problem, space=problem.space.replace(prices)))
    actions = Actions(explainer.oracle, FACTUAL, (method.epsilon, method.epsilon_abs))
    rows = TOY.frame(
        {**FACTUAL.iloc[0].to_dict(), "income": income, "debt": debt} for income, debt in [(60, 10), (20, 0)]
    )
    points, owner = problem.space.encode(rows)[:, explainer.oracle.places], np.zeros(2, dtype=int)
    priced = actions.priced(points, owner, actions.displacement(points, owner))
    assert priced[:, 0] == pytest.approx([0.2 * 3, 0.2 * 0.5])
    assert priced[:, 1] == pytest.approx([0.7, 0.3 * 2])


def test_pull_back_undoes_what_is_not_needed() -> None:
    """All four features move; pulled back, income alone does, to the split."""
    method = MdPso(n_active=4, epsilon=1.0, pull_back=True, selection="top")
    found = method.fit(toy_problem()).explain(FACTUAL, 1, rng(), soon()).answers[0].row
    assert found is not None
    assert {**found, "income": 40.0} == FACTUAL.iloc[0].to_dict()
    assert found["income"] == pytest.approx(60.5, abs=0.5)


def test_undoing_and_halving_leave_points_valid_and_no_costlier(problem_of: ProblemOf) -> None:
    problem = problem_of("rf")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:2]
    swarms = swarms_of(MdPso(iterations=20, epsilon=1.0), problem, factuals)
    for _ in range(20):
        swarms.step()
    points, owner = swarms.candidates(None)
    turns = np.argsort(swarms.actions.displacement(points, owner), axis=1)
    fewer = undo(swarms.actions, points, owner, turns, soon())
    nearer = halve(swarms.actions, fewer, owner, soon())
    merits = []
    for found in (points, fewer, nearer):
        valid, merit = swarms.verdict(found, owner)
        assert valid.all()
        merits.append(merit)
    assert (np.diff(merits, axis=0) <= 1e-12).all()
    assert (merits[2] < merits[0]).any()
    pulled, whose = pull_back(swarms, points, owner, soon())
    valid, merit = swarms.verdict(pulled, whose)
    assert valid.all()
    for swarm in range(2):
        assert 0 < (whose == swarm).sum() <= HALVED
        assert merit[whose == swarm].min() <= merits[1][owner == swarm].min()


def test_the_cost_by_hand() -> None:
    """Gower distances are (0.3 + 0.1 + 0.05 + 1) / 4; four changes of four; an invalid row costs its distance alone."""
    problem = toy_problem()
    rows = TOY.frame(
        [
            {"income": 70.0, "debt": 4.0, "visits": 11, "job": "nurse"},
            {"income": 50.0, "debt": 5.0, "visits": 10, "job": "clerk"},
        ]
    )
    expected = {
        "deb": [2.0 * 1.45 / 4 + 3.0 * 4 / 4, INVALID + 0.5],  # a leaf of the refused has probability 0
        "paper": [0.0 + 1.45 / 4 + 4, 0.5 + 0.1 / 4 + 1],
    }
    for cost, wanted in expected.items():
        method = MdPso(n_active=4, particles=2, cost=cost, proximity_weight=2.0, sparsity_weight=3.0, epsilon=9.0)
        swarms = swarms_of(method, problem, FACTUAL)
        places = [np.argmax(swarms.actions.oracle.places == column) for column in range(len(TOY.columns))]
        swarms.position = TOY.encode(rows)[:, np.argsort(places)][None]
        swarms.step()
        assert swarms.points.cost == pytest.approx(wanted)
        claimed = method.objective(problem).evaluate(TOY, FACTUAL, rows.iloc[:1])
        assert claimed == pytest.approx(wanted[:1])


@pytest.mark.parametrize("pull_back", [False, True])
def test_weights_of_any_size_say_the_same(pull_back: bool, problem_of: ProblemOf) -> None:
    """Both weights times 2**17: valid points cost far more than ``INVALID``, and are better than invalid ones still."""
    problem, size = problem_of("rf"), 2.0**17
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    plain = MdPso(iterations=30, particles=12, epsilon=1.0, pull_back=pull_back)
    great = replace(plain, proximity_weight=size, sparsity_weight=size)
    costs = []
    for place in range(4):
        one, other = (m.fit(problem).explain(factuals.iloc[[place]], 3, rng(), soon()).answers for m in (plain, great))
        assert [answer.row for answer in one] == [answer.row for answer in other]
        found = [answer.objective for answer in other if answer.objective is not None]
        assert found == [answer.objective * size for answer in one if answer.objective is not None]
        costs += found
    assert min(costs) > INVALID


@settings(max_examples=15, deadline=None)
@given(
    row=st.integers(0, 199),
    epsilon=st.floats(0, 2),
    least=st.floats(0, 0.5),
    coefficients=st.tuples(*[st.floats(0, 3)] * 4),
    draws=st.sampled_from(["unit", "paper"]),
)
def test_no_particle_ever_leaves_the_space(
    problem: Problem, row: int, epsilon: float, least: float, coefficients: tuple[float, ...], draws: str
) -> None:
    """In each generation every point is coherent, permitted and within the box of each number."""
    space, factual = problem.space, problem.train.iloc[[row]]
    c0, c1, c2, c3 = coefficients
    method = MdPso(
        n_active=99, epsilon=epsilon, epsilon_abs=least, particles=8, iterations=6, inertia=c0, cognitive=c1,
        social=c2, diversity=c3, draws=draws, clamp=1.0,
    )  # fmt: skip
    swarms = swarms_of(method, problem, factual)
    origin = space.encode(factual)[0]
    for _ in range(6):
        swarms.step()
        frame = space.decode(encoded(swarms, factual), like=factual)
        assert not any(space.incoherent(frame))
        assert not any(space.violations(factual, frame))
        for feature, columns in zip(space.features, space.slices, strict=True):
            if feature.kind is Kind.CATEGORICAL:
                hot = encoded(swarms, factual)[:, columns]
                assert ((hot == 0) | (hot == 1)).all()
                assert (hot.sum(axis=1) == 1).all()
            elif feature.numeric and factual[feature.name].iloc[0] not in feature.special:
                z = origin[columns.start]
                step = 1 / feature.range if feature.kind is Kind.INTEGER else 0.0
                moved = np.abs(space.encode(frame)[:, columns.start] - z)
                assert (moved <= max(epsilon * abs(z), least, step) + 1e-9).all()


def test_special_codes_are_left_for_the_bounds_or_kept(problem: Problem) -> None:
    coded = problem.train.loc[problem.train["delay"] == -1].iloc[:3]
    assert len(coded)
    swarms = swarms_of(MdPso(n_active=99, particles=30), problem, coded)
    swarms.step()
    values = problem.space.decode(encoded(swarms, coded))["delay"]
    assert set(values) - {-1} <= set(range(13))
    assert len(set(values)) > 2


def test_the_same_seed_gives_the_same_answer_alone_or_together(problem_of: ProblemOf) -> None:
    """Factuals that share generations are answered as each by itself."""
    problem = problem_of("rf")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    explainer = MdPso(iterations=20, pull_back=True).fit(problem)
    together = explainer.explain_many(factuals, 3, [np.random.default_rng(i) for i in range(4)], soon())
    for i, explanation in enumerate(together):
        alone = explainer.explain(factuals.iloc[[i]], 3, np.random.default_rng(i), soon())
        assert alone.answers == explanation.answers


def test_a_generation_is_one_call(monkeypatch: pytest.MonkeyPatch, problem_of: ProblemOf) -> None:
    """Also for several factuals."""
    problem = problem_of("rf")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    method = MdPso(iterations=20, doublings=0)
    explainer = method.fit(problem)
    calls = []
    asked = RandomForestClassifier.predict_proba

    def counted(self: RandomForestClassifier, rows: np.ndarray) -> np.ndarray:
        calls.append(len(rows))
        return asked(self, rows)

    monkeypatch.setattr(RandomForestClassifier, "predict_proba", counted)
    explainer.explain_many(factuals, 2, [np.random.default_rng(i) for i in range(4)], soon())
    assert calls[:20] == [4 * method.particles] * 20
    assert len(calls) <= 22 + len(factuals)  # and the model's verdict on what was met, then on what is answered


@pytest.mark.parametrize("selection", ["kmeans", "top", "personal"])
@pytest.mark.parametrize("pick", ["best", "random"])
def test_each_selection_gives_distinct_valid_points(problem_of: ProblemOf, selection: str, pick: str) -> None:
    problem = problem_of("rf")
    factual = problem.train.loc[~problem.valid(problem.train)].iloc[[0]]
    method = MdPso(iterations=25, selection=selection, pick=pick)
    answers = method.fit(problem).explain(factual, 3, rng(), soon()).answers
    rows = problem.space.frame([answer.row for answer in answers if answer.row is not None])
    assert len(rows.drop_duplicates()) == 3
    assert problem.valid(rows).all()
    assert [a.objective for a in answers] == sorted(a.objective for a in answers if a.objective is not None)


def test_a_box_that_holds_nothing_doubles() -> None:
    problem = toy_problem()
    narrow = MdPso(n_active=4, epsilon=0.1, epsilon_abs=0.01, doublings=0)  # 60.5 is half as much again as 40
    assert narrow.fit(problem).explain(FACTUAL, 1, rng(), soon()).answers[0].status is Status.GAVE_UP
    assert replace(narrow, doublings=3).fit(problem).explain(FACTUAL, 1, rng(), soon()).answers[0].status.found


def test_regression_and_probabilities_are_wanted_too() -> None:
    problem = toy_problem()
    likely = replace(problem, target=Probability("granted", 0.9, 1.0))
    found = MdPso().fit(likely).explain(FACTUAL, 2, rng(), soon())
    assert likely.valid(TOY.frame([a.row for a in found.answers if a.row])).tolist() == [True, True]
    line = LinearRegression().fit(TOY.encode(problem.train), problem.train["income"])
    wanted = replace(
        problem,
        classifier=Classifier(line, space_inputs(TOY)),
        labels=problem.train["income"].to_numpy(),
        target=Interval(50.0, 55.0),
    )
    found = MdPso(epsilon=1.0).fit(wanted).explain(FACTUAL, 2, rng(), soon())
    assert wanted.valid(TOY.frame([a.row for a in found.answers if a.row])).tolist() == [True, True]


class Contrary(DecisionTreeClassifier):
    """A tree whose probabilities are those of the other class."""

    def predict_proba(self, X: np.ndarray, check_input: bool = True) -> np.ndarray:
        return super().predict_proba(X)[:, ::-1]

    def predict(self, X: np.ndarray, check_input: bool = True) -> np.ndarray:
        return super().predict_proba(X).argmax(axis=1)


def test_the_prediction_counts_where_scores_say_otherwise() -> None:
    problem = toy_problem()
    tree = Contrary(max_depth=1, random_state=0).fit(TOY.encode(problem.train), problem.labels == "granted")
    contrary = replace(problem, classifier=replace(problem.classifier, estimator=tree))
    found = MdPso(epsilon=1.0).fit(contrary).explain(FACTUAL, 1, rng(), soon()).answers[0].row
    assert found is not None
    assert found["income"] > 60


def test_decoded_rows_are_asked_about_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model refuses of the row as it is returned is no answer; the next best points are."""
    method, predict = MdPso(epsilon=1.0, selection="top"), Classifier.predict
    first, *others = [a.row for a in method.fit(toy_problem()).explain(FACTUAL, 3, rng(), soon()).answers]
    assert first is not None

    def strict(self: Classifier, frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["income"] == first["income"], "refused", predict(self, frame)).astype(object)

    monkeypatch.setattr(Classifier, "predict", strict)
    found = [a.row for a in method.fit(toy_problem()).explain(FACTUAL, 3, rng(), soon()).answers]
    assert found[:2] == others
    assert first not in found


def test_information_value_ranks_and_ignores_outliers() -> None:
    """A number that separates has more information than noise; one outlier does not put all others into one bin."""
    generator = np.random.default_rng(0)
    wanted = np.arange(200) % 2 == 0
    number = Feature("x", Kind.CONTINUOUS, scale=(0, 1))
    telling = pd.Series(np.where(wanted, 1.0, 0.0) + generator.normal(0, 0.3, 200))
    noise = pd.Series(generator.normal(0, 1, 200))
    alone = information_value(number, telling, wanted)
    assert alone > 5 * information_value(number, noise, wanted) > 0
    telling.iloc[0] = 1e6
    assert information_value(number, telling, wanted) == pytest.approx(alone, rel=0.3)


def test_only_the_most_telling_mutable_features_are_active() -> None:
    problem = toy_problem()
    assert MdPso(n_active=1).fit(problem).active == ("income",)
    fixed = problem.space.replace({"income": {"actionability": Actionability.IMMUTABLE}})
    assert "income" not in MdPso(n_active=4).fit(replace(problem, space=fixed)).active


@pytest.mark.parametrize(
    ("setting", "message"), [({"selection": "best"}, "allowed: kmeans"), ({"particles": 0}, "1"), ({"clamp": 2}, "box")]
)
def test_a_wrong_setting_is_an_error(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MdPso(**setting)  # type: ignore[arg-type]


def far_votes() -> Problem:
    """Hard votes of three lines that grant incomes above about 90, of which most of a swarm's box says nothing."""
    problem = toy_problem()
    points, high = TOY.encode(problem.train), (problem.train["income"] > 90).to_numpy()
    members = [(str(c), LogisticRegression(C=c)) for c in (100.0, 300.0, 1000.0)]
    model = make_pipeline(MinMaxScaler(), VotingClassifier(members)).fit(points, high.astype(int))
    return replace(problem, classifier=Classifier(model, space_inputs(TOY), ("refused", "granted")))


def test_members_of_a_hard_vote_lead_to_its_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, method = far_votes(), MdPso(iterations=25, particles=20, doublings=0)
    method = replace(method, epsilon=2.0, epsilon_abs=0.0, archive=20)
    (answer,) = method.fit(problem).explain(FACTUAL, 1, rng(), Deadline.after(30)).answers
    assert answer.status is Status.FOUND
    assert problem.valid(TOY.frame([answer.row]))[0]
    oracle = method.fit(problem).oracle
    assert oracle.votes
    assert isinstance(swarms_of(method, problem, FACTUAL).actions.base, pd.DataFrame)  # or its members are not asked
    frame = TOY.frame([{**FACTUAL.iloc[0].to_dict(), "income": income} for income in (20.0, 50.0, 80.0, 100.0)])
    valid, gap = oracle._voted(frame)
    assert valid.tolist() == [False, False, False, True]
    assert gap[0] > gap[1] > gap[2] > gap[3] == 0
    monkeypatch.setattr("methods.md_pso.oracle.shares", lambda *_: None)
    narrow = replace(method, epsilon=0.5)  # up to an income of 60
    without = narrow.fit(problem).explain(FACTUAL, 1, rng(), Deadline.after(30)).answers[0]
    assert without.status is Status.GAVE_UP
    assert without.detail.endswith(
        "no distinct valid point; this model's scores are 0 or 1 alone, which show it no way"
    )


@pytest.mark.parametrize(
    ("draws", "r"), [("unit", (0.5, 0.25, 0.75)), ("paper", (0.5 * 1.5, 0.25 * 2, 1.5 + 0.75 * 0.5))]
)
def test_a_move_by_hand(draws: str, r: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two particles in two columns, of which the second is an integer's, which is not driven from the mean."""
    space = Space(tuple(TOY[name] for name in ("income", "visits")))
    names = list(space.names)
    base = toy_problem()
    tree = DecisionTreeClassifier(max_depth=1).fit(space.encode(base.train[names]), base.labels == "granted")
    classifier = Classifier(tree, space_inputs(space), ("refused", "granted"))
    problem = Problem(space, classifier, base.train[names], base.labels, Label("granted"))
    numbers = {"inertia": 0.5, "cognitive": 1.5, "social": 2.0, "diversity": 0.4, "clamp": 1.0, "epsilon": 10.0}
    swarms = swarms_of(MdPso(particles=2, draws=draws, **numbers), problem, FACTUAL[names])
    swarms.position = np.array([[[0.2, 0.4], [0.4, 0.6]]])
    swarms.velocity = np.array([[[0.02, 0.04], [-0.02, 0.0]]])
    swarms.memory = np.array([[[0.1, 0.5], [0.4, 0.7]]])
    monkeypatch.setattr(swarms, "_leading", lambda: np.array([1]))
    given = iter(r if draws == "unit" else (0.5, 0.25, 0.75))
    monkeypatch.setattr(swarms, "_draw", lambda: np.full(swarms.shape, next(given)))
    swarms._move()
    first = 0.5 * 0.02 + 1.5 * r[0] * (0.1 - 0.2) + 2 * r[1] * (0.4 - 0.2) + 0.4 * r[2] * (0.2 - 0.3)
    assert swarms.position[0, 0].tolist() == pytest.approx(
        [0.2 + first, 0.4 + 0.5 * 0.04 + 1.5 * r[0] * (0.5 - 0.4) + 2 * r[1] * (0.7 - 0.4)]
    )
    assert swarms.velocity[0, 1].tolist() == pytest.approx(
        [0.5 * -0.02 + 0.4 * r[2] * (0.4 - 0.3), 1.5 * r[0] * (0.7 - 0.6) + 2 * r[1] * (0.7 - 0.6)]
    )


def test_what_is_selected_of_a_pool() -> None:
    """Four points in two clusters: the best ones, the best of each cluster, or any of it."""
    pool = _Pool(1)
    pool.add(np.array([[0.9], [0.1], [0.11], [0.91], [0.1]]), np.array([4.0, 1.0, 2.0, 3.0, 1.0]), None)
    assert pool.points.ravel().tolist() == [0.1, 0.11, 0.91, 0.9]

    def of(**parameters: str) -> list[list[int]]:
        explainer = MdPso(**parameters).fit(toy_problem())
        return [explainer._selected(pool, 2, np.random.default_rng(seed)) for seed in range(12)]

    assert of(selection="top") == [[0, 1]] * 12
    assert of() == [[0, 2]] * 12
    assert {tuple(chosen) for chosen in of(pick="random")} == {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_as_many_are_kept_as_are_asked_for() -> None:
    method = MdPso(archive=3, iterations=20, doublings=0)
    found = method.fit(toy_problem()).explain(FACTUAL, 12, rng(), soon()).answers
    assert [answer.status for answer in found] == [Status.FOUND] * 12


def test_no_special_code_is_entered() -> None:
    """7 lies within the bounds and is what a tree asks for; whoever has it may keep it."""
    space = Space((Feature("delay", "integer", scale=(0, 20), bounds=(-5, math.inf), special=(7,)), TOY["debt"]))
    train = space.frame({"delay": delay, "debt": 5.0} for delay in range(21))
    labels = np.where(train["delay"].between(6, 8), "granted", "refused").astype(object)
    tree = DecisionTreeClassifier(random_state=0).fit(space.encode(train), labels == "granted")
    problem = Problem(
        space, Classifier(tree, space_inputs(space), ("refused", "granted")), train, labels, Label("granted")
    )
    factual = space.frame([{"delay": 3, "debt": 5.0}])
    found = MdPso(iterations=20).fit(problem).explain(factual, 2, rng(), soon()).answers
    rows = [answer.row for answer in found if answer.row is not None]
    assert rows
    assert {row["delay"] for row in rows} <= {6, 8}


@pytest.mark.every(1)
@pytest.mark.parametrize("taken_by", ["the swarm", "pull-back"])
def test_pull_back_keeps_to_the_clock(taken_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time is taken, what was met is judged once more, but no more of it than is kept."""
    judged, ask, step = [], Actions.judge, Swarms.step

    def counted(self: Actions, points: np.ndarray, owner: np.ndarray, strict: bool = False) -> tuple[np.ndarray, ...]:
        judged.extend([len(points)] * strict)
        return ask(self, points, owner, strict)

    def endless(
        swarms: Swarms, points: np.ndarray, owner: np.ndarray, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray]:
        assert taken_by == "pull-back"
        assert len(points) > 60
        while not deadline.passed:
            time.sleep(0.01)
        return points, owner

    def last(self: Swarms) -> None:
        step(self)
        if taken_by == "the swarm" and self.age == 40:
            time.sleep(3.0)

    monkeypatch.setattr(Actions, "judge", counted)
    monkeypatch.setattr(Swarms, "step", last)
    monkeypatch.setattr("methods.md_pso.method.pull_back", endless)
    explainer = MdPso(pull_back=True, epsilon=2.0).fit(toy_problem())
    (answer,) = explainer.explain(FACTUAL, 1, rng(), Deadline.after(3.0)).answers
    assert (answer.status, answer.reason, judged) == (Status.FOUND, Reason.TIME_LIMIT, [60])


@pytest.mark.parametrize(
    "given", [{"n_active": 2.5}, {"particles": 1.5}, {"doublings": True}, {"archive": 2.5}], ids=str
)
def test_counts_are_whole_numbers(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ValueError, match=f"{name} is .*; give a whole number of at least "):
        MdPso(**given)
    with pytest.raises(ValueError, match="pull_back is 'no'; "):
        MdPso(pull_back="no")  # type: ignore[arg-type]


def test_who_has_nothing_to_change_is_told() -> None:
    fixed = TOY.replace({name: {"actionability": "immutable"} for name in TOY.names})
    (answer,) = MdPso().fit(replace(toy_problem(), space=fixed)).explain(FACTUAL, 1, rng(), soon()).answers
    assert (answer.status, answer.detail) == (Status.GAVE_UP, "no feature may change")


def test_features_are_ranked_by_predictions_where_no_label_is_wanted() -> None:
    problem = replace(toy_problem(), labels=np.full(101, "refused", dtype=object))
    assert MdPso(n_active=1).fit(problem).active == ("income",)
