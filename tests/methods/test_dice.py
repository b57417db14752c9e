"""DiCE behind the harness's protocol: its answers in our terms, its randomness and its clock under control."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from support.carla import compas

from harness.core.classifier import Classifier
from harness.core.explanation import Explanation, Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability
from harness.reports.departures import library_default
from methods.dice import LIBRARY, SEARCHES, Dice
from methods.wrapping import LateError

SPACE = Space(
    (
        Feature("grade", "ordinal", (1, 2, 3), actionability="increase"),
        Feature("distance", "continuous", scale=(0.0, 10.0), bounds=(0.0, 10.0)),
        Feature("region", "categorical", ("n", "s", "w"), actionability="immutable"),
        Feature("visits", "integer", scale=(0, 20), bounds=(0, 20), actionability="increase"),
        Feature("member", "binary", (False, True)),
    )
)


def sample(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "grade": rng.integers(1, 4, rows),
            "distance": rng.uniform(0, 10, rows),
            "region": rng.choice(["n", "s", "w"], rows).astype(object),
            "visits": rng.integers(0, 21, rows),
            "member": rng.random(rows) < 0.5,
        }
    )


def problem_of(estimator: Any, classes: tuple[str, ...] = ("no", "yes"), threshold: float | None = None) -> Problem:
    frame = sample()
    merit = frame["visits"] / 4 + frame["grade"] + frame["member"] - frame["distance"] / 2
    codes = np.searchsorted(np.quantile(merit, np.arange(1, len(classes)) / len(classes)), merit)
    classifier = Classifier(estimator, space_inputs(SPACE), classes, threshold)
    estimator.fit(classifier.matrix(frame), codes)
    return Problem(SPACE, classifier, frame, np.array(classes, dtype=object)[codes], Label(classes[-1]))


def undesired(problem: Problem, row: int = 0) -> pd.DataFrame:
    return problem.train[~problem.valid(problem.train)].iloc[[row]]


def ask(method: Dice, problem: Problem, factual: pd.DataFrame, n: int = 3, seed: int = 0) -> Explanation:
    return method.fit(problem).explain(factual, n, np.random.default_rng(seed), Deadline.after(20))


@pytest.fixture(scope="module")
def forest() -> Problem:
    return problem_of(RandomForestClassifier(10, max_depth=4, random_state=0))


@pytest.fixture(params=SEARCHES)
def method(request: pytest.FixtureRequest) -> Dice:
    return Dice(request.param)


MODELS = {
    "forest": lambda: problem_of(RandomForestClassifier(10, max_depth=4, random_state=0)),
    "threshold": lambda: problem_of(LogisticRegression(), threshold=0.8),
    "no probabilities": lambda: problem_of(LinearSVC()),
    "three classes": lambda: problem_of(LogisticRegression(), ("low", "mid", "high")),
}


@pytest.mark.parametrize("model", MODELS)
def test_answers_are_valid_and_keep_the_constraints(method: Dice, model: str) -> None:
    """Every returned row is of the wanted class for the real model, and changes only what may change."""
    problem = MODELS[model]()
    explainer = method.fit(problem)
    found = 0
    for row in range(4):
        factual = undesired(problem, row)
        explanation = explainer.explain(factual, 3, np.random.default_rng(row), Deadline.after(20))
        assert len(explanation.answers) == 3
        rows = [answer.row for answer in explanation.answers if answer.row is not None]
        frame = SPACE.frame(rows)
        assert problem.valid(frame).all()
        assert not any(SPACE.violations(factual, frame))
        assert not any(SPACE.incoherent(frame))
        assert SPACE.changed(factual, frame).any(axis=1).all()
        assert not frame.duplicated().any()
        found += len(rows)
    assert found


@pytest.mark.parametrize("kind", ["lr", "rf"])
def test_compas_is_answered(method: Dice, kind: str) -> None:
    """At least one valid counterfactual of ten people, none of which changes what may not change."""
    problem, factuals = compas(kind)
    explainer, found = method.fit(problem), 0
    for row in range(10):
        factual = factuals.iloc[[row]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(row), Deadline.after(5)).answers
        if answer.row is not None:
            frame = problem.space.frame([answer.row])
            assert problem.valid(frame)[0]
            assert not problem.space.violations(factual, frame)[0]
            found += 1
            break
    assert found


def test_a_number_beside_its_end_is_put_back(forest: Problem) -> None:
    """One step of the library's rounding beyond an end is that end; farther, and of integers, it stays what it is."""
    explainer, factual = Dice("random").fit(forest), undesired(forest)
    names = {feature.name: name for name, feature in explainer.dialect.features.items()}
    step = 10.0 ** -explainer.dialect.precision[names["distance"]]
    frame = explainer.dialect.encode(pd.concat([factual] * 3))
    units = explainer.dialect.units(names["distance"])
    frame[names["distance"]] = np.array([10.0 + step, 10.0 + 5 * step, -step]) * units
    frame[names["visits"]] = [21, 20, 21]
    decoded = explainer.dialect.decode(frame, factual)
    assert decoded["distance"].tolist() == pytest.approx([10.0, 10.0 + 5 * step, 0.0], abs=1e-12)
    assert decoded["visits"].tolist() == [21, 20, 21]


def test_ranges_are_those_of_the_feature(forest: Problem) -> None:
    """Numbers between whole ends keep their fractions, integers are whole; a direction begins at the factual."""
    space = SPACE.replace({"distance": {"bounds": (0.25, 9.75)}})
    explainer, factual = Dice("random").fit(replace(forest, space=space)), undesired(forest)
    names = {feature.name: name for name, feature in explainer.dialect.features.items()}
    permitted = explainer.dialect.permitted(factual)
    units = explainer.dialect.units(names["distance"])
    assert permitted[names["distance"]] == pytest.approx([0.25 * units, 9.75 * units])
    assert permitted[names["visits"]] == [factual["visits"].iloc[0], 20]
    assert all(isinstance(end, int) for end in permitted[names["visits"]])


def numbers(size: float, kind: str = "continuous") -> Problem:
    """Two numbers, of so many units each, and a linear model of both."""
    space = Space(tuple(Feature(name, kind, scale=(0.0, size), bounds=(0.0, size)) for name in "ab"))
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, size, (300, 2)), columns=["a", "b"])
    frame = frame if kind == "continuous" else frame.round().astype(int)
    codes = (frame.sum(axis=1) > 1.3 * size).to_numpy(int)
    classifier = Classifier(LogisticRegression(), space_inputs(space), ("no", "yes"))
    classifier.estimator.fit(classifier.matrix(frame), codes)
    return Problem(space, classifier, frame, np.array(["no", "yes"], dtype=object)[codes], Label("yes"))


@pytest.mark.parametrize("search", ["random", "kdtree"])
def test_numbers_are_moved_back_all_the_way_whatever_their_units(search: str) -> None:
    """The library stops 0.001 before the factual's number; that is none of a unit interval's thousand steps."""
    near = {}
    for size in (1.0, 1000.0):
        problem, gaps = numbers(size), list[float]()
        explainer = Dice(search).fit(problem)
        for row in range(15):
            factual = undesired(problem, row)
            found = explainer.explain(factual, 2, np.random.default_rng(row), Deadline.after(20)).answers
            rows = [answer.row for answer in found if answer.row is not None]
            gaps += [abs(point[name] - factual[name].iloc[0]) / size for point in rows for name in "ab"]
        assert gaps
        near[size] = sum(0 < gap <= 0.001 for gap in gaps)
    assert near == {1.0: 0, 1000.0: 0}


def test_a_number_that_is_left_alone_comes_back_as_it_was() -> None:
    """Also where it has more decimals than the library is given, and lies half way between two."""
    problem = numbers(1.0)
    dialect = Dice("random").fit(problem).dialect
    halves = pd.DataFrame({"a": np.arange(5, 9000, 10) / 1e5, "b": np.arange(5, 9000, 10) / 1e4 + 0.00005})
    for row in range(len(halves)):
        person = halves.iloc[[row]].reset_index(drop=True)
        assert dialect.decode(dialect.encode(person).astype(np.float32), person).equals(person)


def test_the_genetic_search_weighs_great_numbers() -> None:
    """By 1 / MAD: rounded to two decimals, as the library does it, that is 0 above 200, and a loss of NaN."""
    problem = numbers(1e5, "integer")
    explainer = Dice("genetic").fit(problem)
    assert min(explainer.library.data_interface.get_valid_mads().values()) > 200
    for row in range(4):
        found = explainer.explain(undesired(problem, row), 3, np.random.default_rng(row), Deadline.after(20)).answers
        assert [answer.status.found for answer in found] == [True] * 3


def test_sparsity_afterwards_keeps_numbers_nearer() -> None:
    """Numbers that the class does not need are moved back: no more change with it, and by less, than without."""
    problem = problem_of(LogisticRegression())
    numbers = [feature.name for feature in SPACE.features if feature.numeric]
    changed, moved = {}, {}
    for share in (None, 1.0):
        explainer, gaps = Dice("random", sample_size=200, posthoc_sparsity_param=share).fit(problem), []
        for row in range(4):
            factual = undesired(problem, row)
            (answer,) = explainer.explain(factual, 1, np.random.default_rng(row), Deadline.after(20)).answers
            assert answer.row is not None
            origin = factual.iloc[0].to_dict()
            gaps += [abs(answer.row[name] - origin[name]) for name in numbers]
        changed[share], moved[share] = np.count_nonzero(gaps), np.sum(gaps)
    assert changed[1.0] <= changed[None]
    assert moved[1.0] < moved[None]


def test_values_come_back_as_the_original_ones(method: Dice, forest: Problem) -> None:
    """Categories are the listed Python values, integers are int, and unchanged numbers are the factual's own."""
    explainer, answers = method.fit(forest), []
    for row in range(4):
        factual = undesired(forest, row)
        explanation = explainer.explain(factual, 3, np.random.default_rng(row), Deadline.after(20))
        answers += [(factual, answer.row) for answer in explanation.answers if answer.row is not None]
    assert answers
    for factual, answer in answers:
        types = {"grade": int, "distance": float, "region": str, "visits": int, "member": bool}
        assert {name: type(value) for name, value in answer.items()} == types
        origin = factual["distance"].iloc[0]
        assert answer["distance"] == origin or abs(answer["distance"] - origin) > 1e-3


def test_equal_generators_give_equal_answers(method: Dice, forest: Problem) -> None:
    """Also from an explainer that has answered other questions before."""
    explainer = method.fit(forest)
    first = explainer.explain(undesired(forest), 10, np.random.default_rng(1), Deadline.after(20))
    explainer.explain(undesired(forest, 1), 1, np.random.default_rng(2), Deadline.after(20))
    assert explainer.explain(undesired(forest), 10, np.random.default_rng(1), Deadline.after(20)) == first


def test_global_state_and_inputs_stay(method: Dice, forest: Problem, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither the global generators nor the frames are touched, and nothing is printed."""
    factual, train = undesired(forest), forest.train.copy()
    before = factual.copy()
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    ask(method, forest, factual)
    assert random.getstate() == python
    np.testing.assert_array_equal(np.random.get_state()[1], numpy)  # noqa: NPY002
    pd.testing.assert_frame_equal(factual, before)
    pd.testing.assert_frame_equal(forest.train, train)
    assert capfd.readouterr() == ("", "")


def wide() -> tuple[Problem, pd.DataFrame]:
    """A problem with three continuous features, of different ranges."""
    tops = {"low": 1.0, "middle": 10.0, "high": 1000.0}
    space = Space(tuple(Feature(name, "continuous", scale=(0, top), bounds=(0, top)) for name, top in tops.items()))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.uniform(0, top, 300) for name, top in tops.items()})
    codes = (frame["low"] + frame["middle"] / 10 > frame["high"] / 1000).to_numpy(int)
    classifier = Classifier(LogisticRegression(), space_inputs(space), ("no", "yes"))
    classifier.estimator.fit(classifier.matrix(frame), codes)
    problem = Problem(space, classifier, frame, np.array(["no", "yes"], dtype=object)[codes], Label("yes"))
    return problem, undesired(problem)


def dependence(options: dict[str, Any]) -> float:
    """Greatest rank correlation between the samples that the library draws of two continuous features."""
    problem, factual = wide()
    explainer, drawn = Dice("random").fit(problem), []
    draw = explainer.library.get_samples

    def noted(*given: Any, **named: Any) -> pd.DataFrame:
        drawn.append(draw(*given, **named))
        return drawn[-1]

    explainer.library.get_samples = noted
    explainer.options = {**explainer.options, **options}
    explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(20))
    ranks = drawn[0][list(explainer.dialect.precision)].rank().to_numpy()
    return float(np.abs(np.corrcoef(ranks.T) - np.eye(3)).max())


def test_features_are_drawn_independently() -> None:
    """As they are not with the library's own seed, which starts every feature from the same state."""
    assert dependence({}) < 0.15  # 1000 draws: five standard errors
    assert dependence({"random_seed": 7}) > 0.99


def unreachable() -> tuple[Problem, pd.DataFrame]:
    """A model that looks at the immutable region only."""
    frame = sample()
    classifier = Classifier(LogisticRegression(), space_inputs(SPACE)[2:5], ("no", "yes"))
    codes = (frame["region"] == "n").to_numpy(int)
    classifier.estimator.fit(classifier.matrix(frame), codes)
    problem = Problem(SPACE, classifier, frame, np.array(["no", "yes"], dtype=object)[codes], Label("yes"))
    return problem, undesired(problem)


def test_an_unreachable_class_is_given_up(method: Dice) -> None:
    """At the latest by the deadline: the genetic search goes through all its generations, for about a second."""
    problem, factual = unreachable()
    late = method.search == "genetic"
    explainer, start = method.fit(problem), time.monotonic()
    explanation = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(0.1 if late else 1))
    assert time.monotonic() - start < 2
    assert [answer.status for answer in explanation.answers] == [Status.GAVE_UP] * 2
    assert explanation.answers[0].reason is (Reason.TIME_LIMIT if late else Reason.FINISHED)


@pytest.mark.parametrize(("search", "graded"), [("random", False), ("genetic", True)])
def test_only_the_genetic_search_is_given_probabilities(search: str, graded: bool, forest: Problem) -> None:
    """The others are given 1 for the predicted class: all that they ask."""
    explainer = Dice(search).fit(forest)
    rows = explainer.dialect.encode(forest.train.head(50))
    with explainer.model.about(undesired(forest), Deadline.after(60)):
        found = explainer.model.predict_proba(rows)
    assert found.argmax(axis=1).tolist() == forest.classifier.codes(explainer.dialect.decode(rows)).tolist()
    assert bool(np.isin(found, (0.0, 1.0)).all()) == (not graded)


@pytest.mark.parametrize("search", LIBRARY)
def test_the_librarys_own_settings_are_as_stated(search: str) -> None:
    """As its source has them, which is read without torch."""
    for known in LIBRARY[search].values():
        assert library_default(known._replace(value="not found")) == known.value


def test_a_passed_deadline_is_given_up_at_once(method: Dice, forest: Problem) -> None:
    explanation = method.fit(forest).explain(undesired(forest), 2, np.random.default_rng(0), Deadline.after(0))
    assert {answer.reason for answer in explanation.answers} == {Reason.TIME_LIMIT}


def test_what_was_met_is_handed_back_when_the_clock_ends_it(method: Dice, forest: Problem) -> None:
    """The nearest rows that were predicted as wanted; nothing of an earlier question."""
    explainer, factual = method.fit(forest), undesired(forest)
    rows = explainer.dialect.encode(forest.train)
    met = explainer.dialect.decode(rows, factual)
    met = met[forest.valid(met)].drop_duplicates()
    far = np.abs(SPACE.encode(met) - SPACE.encode(factual)).sum(axis=1)

    def stopped(*_: Any, **__: Any) -> None:
        if len(rows):
            explainer.model.predict_proba(rows)
        raise LateError

    explainer.library.generate_counterfactuals = stopped
    answers = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(20)).answers
    assert {(answer.status, answer.reason) for answer in answers} == {(Status.FOUND, Reason.TIME_LIMIT)}
    found = np.abs(SPACE.encode(SPACE.frame([answer.row for answer in answers])) - SPACE.encode(factual)).sum(axis=1)
    assert found == pytest.approx(np.sort(far)[:2])
    rows = rows.iloc[:0]
    late = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(20)).answers
    assert {(answer.status, answer.reason) for answer in late} == {(Status.GAVE_UP, Reason.TIME_LIMIT)}


def test_missing_answers_are_filled_up(forest: Problem) -> None:
    """One binary feature that may change gives one counterfactual at most, whatever number is asked for."""
    fixed = {name: {"actionability": "immutable"} for name in SPACE.names if name != "member"}
    problem = replace(forest, space=SPACE.replace(fixed))
    explainer = Dice("random").fit(problem)
    for row in range(10):
        explanation = explainer.explain(undesired(problem, row), 4, np.random.default_rng(0), Deadline.after(20))
        assert len(explanation.answers) == 4
        assert sum(answer.status.found for answer in explanation.answers) <= 1


def test_what_the_library_returns_is_handed_back(method: Dice, forest: Problem) -> None:
    """In its order and of any class; repeats, the factual and rows that cannot exist are left out, the last named."""
    explainer, factual = method.fit(forest), undesired(forest)
    rejected, accepted = undesired(forest, 1), forest.train[forest.valid(forest.train)].iloc[[0]]
    rows = explainer.dialect.encode(pd.concat([rejected, factual, accepted, rejected, accepted, accepted, accepted]))
    place = {feature.name: name for name, feature in explainer.dialect.features.items()}
    rows = rows.astype({place["visits"]: float})
    rows.loc[4, [place["distance"]]] = np.nan
    rows.loc[5, [place["visits"]]] = np.inf
    rows.loc[6, [place["region"]]] = "3"
    example = SimpleNamespace(final_cfs_df=rows, final_cfs_df_sparse=None)
    explainer.library.generate_counterfactuals = lambda *_, **__: SimpleNamespace(cf_examples_list=[example])
    answers = explainer.explain(factual, 4, np.random.default_rng(0), Deadline.after(20)).answers
    assert [answer.status for answer in answers] == [Status.FOUND] * 2 + [Status.GAVE_UP] * 2
    found = [answer.row for answer in answers if answer.row is not None]
    assert [row["region"] for row in found] == [rejected["region"].iloc[0], accepted["region"].iloc[0]]
    assert forest.valid(SPACE.frame(found)).tolist() == [False, True]
    assert answers[2].detail == "DiCE found 2 different counterfactuals, and 3 that no row can be."


def test_no_feature_to_change_is_given_up(method: Dice, forest: Problem) -> None:
    problem = replace(forest, space=SPACE.replace({name: {"actionability": "immutable"} for name in SPACE.names}))
    answer = ask(method, problem, undesired(problem), n=1).answers[0]
    assert (answer.status, answer.detail) == (Status.GAVE_UP, "No feature may change.")


def test_an_unseen_category_is_given_up(method: Dice, forest: Problem) -> None:
    """The library takes no category that the training rows lack."""
    seen = forest.train["region"] != "w"
    problem = replace(forest, train=forest.train[seen], labels=forest.labels[seen])
    answer = ask(method, problem, undesired(forest).assign(region="w"), n=1).answers[0]
    assert answer.status is Status.GAVE_UP
    assert "region = w" in answer.detail


def test_refusals_have_a_reason(forest: Problem) -> None:
    assert Dice().refuses(forest) is None
    for target in (Probability("yes", 0.8), Interval(0, 1)):
        assert "wanted class" in str(Dice().refuses(replace(forest, target=target)))
    wide = replace(forest, train=forest.train.assign(visits=2**40))
    assert "visits" in str(Dice().refuses(wide))
    numbers = [feature.name for feature in forest.space.features if feature.numeric]
    discrete = replace(forest, space=Space(tuple(f for f in forest.space.features if f.name not in numbers)))
    assert "without a number" in str(Dice("genetic").refuses(discrete))
    assert Dice("random").refuses(discrete) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"search": "annealing"},
        {"sample_size": 0},
        {"posthoc_sparsity_param": 2.0},
        {"posthoc_sparsity_algorithm": "cubic"},
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Dice(**wrong)


@pytest.mark.parametrize("fault", ["empty range for randrange()", "something else"])
def test_a_population_of_one_ends_the_search(forest: Problem, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """What the library's genetic search raises then leaves what it has met; any other fault stays one."""
    explainer = Dice("genetic").fit(forest)
    wanted = forest.train.loc[forest.valid(forest.train)].iloc[[0]]

    def fails(*_: Any, **__: Any) -> None:
        explainer.model.met.parts.append(wanted)  # type: ignore[attr-defined]
        raise ValueError(fault)

    monkeypatch.setattr(explainer.library, "generate_counterfactuals", fails)  # type: ignore[attr-defined]
    factual, rng = undesired(forest), np.random.default_rng(0)
    if fault == "something else":
        with pytest.raises(ValueError, match=fault):
            explainer.explain(factual, 2, rng, Deadline.after(20))
    else:
        answers = explainer.explain(factual, 2, rng, Deadline.after(20)).answers
        assert [answer.status for answer in answers] == [Status.FOUND, Status.GAVE_UP]
        assert {answer.reason for answer in answers} == {Reason.FINISHED}
        assert answers[0].row == wanted.iloc[0].to_dict()
        assert answers[1].detail == "DiCE's genetic search fails on a population of one."
