"""Peers behind the harness's protocol: valid points on COMPAS, and what the libraries must not touch."""

from __future__ import annotations

import ast
import importlib.util
import logging
import random
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from harness.core.explanation import Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Interval, Label, Probability
from harness.data import load_dataset
from harness.models import train as models
from methods.peers.cfnow import Cfnow
from methods.peers.nice import Nice
from methods.peers.treecf import TreeCf
from methods.wrapping import LateError, quiet, seeded, shares

ROOT = Path(__file__).parents[3]
ESTIMATORS = {
    "lr": LogisticRegression(max_iter=1000),
    "rf": RandomForestClassifier(20, max_depth=5, random_state=0),
    "svm": LinearSVC(),
}


def installed(library: str, extra: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"uv sync --extra {extra}")


nice, cfnow = installed("nice", "nice"), installed("cfnow", "cfnow")
METHODS = [
    pytest.param(Nice("none"), id="none", marks=nice),
    pytest.param(Nice("sparsity"), id="sparsity", marks=nice),
    pytest.param(Nice("proximity"), id="proximity", marks=nice),
    pytest.param(Cfnow("greedy", ft_it_max=5), id="greedy", marks=cfnow),
    pytest.param(Cfnow("random", ft_it_max=5), id="random", marks=cfnow),
]


@cache
def compas(model: str, threshold: float | None = None) -> Problem:
    """COMPAS with a model of a hundred rows a feature."""
    config: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "dataset" / "compas.yaml"))
    data = load_dataset(**config)
    train, labels = data.frame.iloc[data.train[:700]], data.labels[data.train[:700]]
    classifier = models.train(ESTIMATORS[model], data.space, train, labels, data.classes, threshold)
    unwanted = pd.Series(classifier.predict(train)).value_counts().index[0]
    wanted = next(name for name in data.classes if name != unwanted)
    return Problem(data.space, classifier, train, labels, Label(wanted))


def undesired(problem: Problem, count: int = 3) -> pd.DataFrame:
    """People who are refused, and would not be as ten training rows are in what they may change."""
    people, kept = problem.train.loc[~problem.valid(problem.train)], sorted(problem.space.immutable)
    found = []
    for place in range(len(people)):
        person = people.iloc[[place]]
        if problem.valid(problem.train.assign(**{name: person[name].iloc[0] for name in kept})).sum() >= 10:
            found.append(person)
        if len(found) == count:
            break
    return pd.concat(found)


def asked(method: Any, problem: Problem, factual: pd.DataFrame, n: int = 1, seconds: float = 5.0) -> Explanation:
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(seconds))


@pytest.mark.parametrize("model", ["lr", "rf", "svm"])
@pytest.mark.parametrize("method", METHODS)
def test_a_valid_counterfactual_is_found_on_compas(method: Any, model: str) -> None:
    """Of the wanted class for scikit-learn's own prediction, and one of the space's values."""
    problem = compas(model)
    assert method.refuses(problem) is None
    found = 0
    for number in range(2):
        factual = undesired(problem).iloc[[number]]
        (answer,) = asked(method, problem, factual).answers
        if answer.row is None:  # random steps may lead nowhere
            continue
        assert answer.row != factual.iloc[0].to_dict()
        frame = problem.space.frame([answer.row])
        assert problem.space.incoherent(frame) == [[]]
        code = problem.classifier.estimator.predict(problem.classifier.matrix(frame))[0]
        assert problem.classifier.classes[code] == problem.target.value
        found += 1
    assert found


@installed("treecf", "treecf")
@pytest.mark.parametrize("backend", ["exact", "genetic"])
def test_treecf_answers_on_compas(backend: str) -> None:
    """On a forest, valid and permitted; a linear model is refused by name."""
    method, problem = TreeCf(backend=backend), compas("rf")
    assert "LogisticRegression" in str(method.refuses(compas("lr")))
    explainer, found = method.fit(problem), 0
    for number in range(8):
        factual = undesired(problem, 8).iloc[[number]]
        answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers[0]
        if answer.row is not None:
            frame = problem.space.frame([answer.row])
            assert problem.valid(frame)[0]
            assert problem.space.violations(factual, frame) == [[]]
            found += 1
    assert found


@installed("treecf", "treecf")
@pytest.mark.parametrize(("backend", "most"), [("exact", 3.04), ("genetic", 3.8)])
def test_treecf_ends_before_the_clock(monkeypatch: pytest.MonkeyPatch, backend: str, most: float) -> None:
    """Of four seconds a twentieth is left for the answer; the exact search takes a quarter more than it is given."""
    problem, budgets = compas("rf"), list[float]()
    explainer = TreeCf(backend=backend).fit(problem)

    def explain(*_: Any, time_budget_s: float, **__: Any) -> None:
        budgets.append(time_budget_s)

    monkeypatch.setattr(type(explainer), "_explainer", lambda *_: SimpleNamespace(explain=explain))
    explainer.explain(undesired(problem, 1), 1, np.random.default_rng(0), Deadline.after(4))
    assert budgets == [pytest.approx(most, abs=0.05)]


@pytest.mark.parametrize("method", METHODS)
def test_further_counterfactuals_differ_or_are_given_up(method: Any) -> None:
    """NICE has one only; CFNOW as many as it met, of somebody with prior convictions: it moves no number from 0."""
    problem = compas("lr")
    factual = undesired(problem, 2).iloc[[1]]
    answers = asked(method, problem, factual, n=3).answers
    rows = [answer.row for answer in answers if answer.row is not None]
    assert len(answers) == 3
    assert len({tuple(row.items()) for row in rows}) == len(rows) >= 1
    if isinstance(method, Nice):
        assert [answer.status for answer in answers[1:]] == [Status.GAVE_UP] * 2


@pytest.mark.parametrize("method", METHODS)
def test_a_threshold_is_the_models_own(method: Any) -> None:
    """Libraries decide at 0.5; what they find is of the wanted class at 0.7 too."""
    problem = replace(compas("lr", 0.7), target=Label(compas("lr", 0.7).classifier.classes[1]))
    factual = undesired(problem, 1)
    (answer,) = asked(method, problem, factual).answers
    assert answer.row is not None
    assert problem.classifier.score(problem.space.frame([answer.row]))[0] > 0.7


@nice
def test_nice_hands_back_what_the_library_returns() -> None:
    """Of whatever class; but the factual itself is no counterfactual."""
    problem = compas("lr")
    factual, other = (undesired(problem).iloc[[number]] for number in range(2))
    explainer = Nice().fit(problem)
    for point, status in ((other, Status.FOUND), (factual, Status.GAVE_UP)):
        explainer.library.explain = lambda *_, point=point, **__: explainer.codes.matrix(point)
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers
        assert answer.status is status
        assert answer.row == (None if point is factual else other.iloc[0].to_dict())


@nice
def test_nice_hands_back_the_row_that_it_begins_with_when_the_clock_ends_it() -> None:
    problem = compas("lr")
    factual, explainer = undesired(problem, 1), Nice("sparsity").fit(problem)
    (expected,) = asked(Nice("none"), problem, factual).answers

    def late(*_: Any) -> None:
        raise LateError

    explainer.library.optimizer.optimize = late
    answers = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(5)).answers
    assert [answer.row for answer in answers] == [expected.row, None]
    assert (answers[0].status, answers[0].reason) == (Status.FOUND, Reason.TIME_LIMIT)


@cfnow
def test_cfnow_hands_back_what_the_library_returns() -> None:
    """In its order and of any class; without repeats and the factual itself."""
    problem = compas("lr")
    factual, other = (undesired(problem).iloc[[number]] for number in range(2))
    accepted = problem.train.loc[problem.valid(problem.train)].iloc[[0]]
    points = problem.space.encode(pd.concat([other, factual, accepted, other]))
    free = problem.space.replace({name: {"actionability": "free"} for name in ("age", "race", "sex", "two_year_recid")})
    explainer = Cfnow().fit(replace(problem, space=free))
    explainer.search = lambda *_, **__: SimpleNamespace(cfs=points)
    answers = explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(5)).answers
    assert [answer.status for answer in answers] == [Status.FOUND, Status.FOUND, Status.GAVE_UP]
    assert problem.valid(problem.space.frame([answer.row for answer in answers[:2]])).tolist() == [False, True]


@cfnow
def test_cfnow_says_that_the_clock_may_have_ended_it() -> None:
    """Where it took more than the half of the time that moving back is given; the points are answers all the same."""
    problem = compas("lr")
    factual, other = (undesired(problem).iloc[[number]] for number in range(2))
    explainer = Cfnow().fit(problem)
    for wait, reason in ((0.0, Reason.FINISHED), (0.6, Reason.TIME_LIMIT)):

        def search(*_: Any, wait: float = wait, **__: Any) -> SimpleNamespace:
            time.sleep(wait)
            return SimpleNamespace(cfs=problem.space.encode(other)[:, explainer.shown])

        explainer.search = search
        answers = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(1)).answers
        assert [answer.status for answer in answers] == [Status.FOUND, Status.GAVE_UP]
        assert [answer.reason for answer in answers] == [reason, reason]


@nice
def test_nice_without_a_reward_is_the_nearest_unlike_row() -> None:
    """Brute force over the training rows: sum of differences over their ranges, 1 for another category."""
    problem = compas("rf")
    codes = problem.classifier.codes(problem.train)
    labels = np.array([problem.classifier.code(label) for label in problem.labels])
    rows = problem.train.loc[problem.valid(problem.train) & (codes == labels)]
    for number in range(3):
        factual = undesired(problem).iloc[[number]]
        distance = np.zeros(len(rows))
        point = np.zeros(1)
        (answer,) = asked(Nice("none"), problem, factual).answers
        assert answer.row is not None
        for feature in problem.space.features:
            values, origin = rows[feature.name], factual[feature.name].iloc[0]
            if feature.numeric:
                width = np.ptp(problem.train[feature.name].to_numpy(float))
                distance += np.abs(values.to_numpy(float) - origin) / width
                point += abs(answer.row[feature.name] - origin) / width
            else:
                distance += (values != origin).to_numpy()
                point += answer.row[feature.name] != origin
        assert point[0] == pytest.approx(distance.min())


@nice
def test_nice_copies_less_than_the_whole_row() -> None:
    """With a reward, each value is the factual's or the nearest unlike row's, and fewer are changed."""
    problem = compas("rf")
    for number in range(3):
        factual = undesired(problem).iloc[[number]]
        (whole,) = asked(Nice("none"), problem, factual).answers
        for reward in ("sparsity", "proximity"):
            (answer,) = asked(Nice(reward), problem, factual).answers
            assert answer.row is not None
            assert whole.row is not None
            changed = {name for name, value in answer.row.items() if value != factual[name].iloc[0]}
            assert all(answer.row[name] == whole.row[name] for name in changed)


@nice
def test_nice_judges_plausibility_by_the_function_given() -> None:
    """Without one it refuses; with one, the function is asked about decoded rows."""
    problem, seen = compas("lr"), []

    def error(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return np.abs(problem.space.encode(frame) - problem.encoded.mean(axis=0)).sum(axis=1)

    assert "autoencoder" in str(Nice("plausibility").refuses(problem))
    method = Nice("plausibility", auto_encoder=error)
    assert method.refuses(problem) is None
    assert asked(method, problem, undesired(problem, 1)).answers[0].status is Status.FOUND
    assert all(tuple(frame.columns) == problem.space.names for frame in seen)


@nice
def test_nice_gives_up_without_an_unlike_row() -> None:
    problem = compas("lr")
    alike = ~problem.valid(problem.train)
    problem = replace(problem, train=problem.train.loc[alike], labels=problem.labels[alike])
    answers = asked(Nice(), problem, undesired(problem, 1), n=2).answers
    assert [answer.status for answer in answers] == [Status.GAVE_UP] * 2


@cfnow
@pytest.mark.parametrize("strategy", ["greedy", "random"])
def test_cfnow_is_not_shown_what_may_not_change(strategy: str) -> None:
    problem = compas("rf")
    kept = ["age", "race", "sex", "two_year_recid"]
    for number in range(4):
        factual = undesired(problem, 4).iloc[[number]]
        for answer in asked(Cfnow(strategy, ft_it_max=5), problem, factual, 2).answers:
            assert answer.row is None or [answer.row[name] for name in kept] == factual[kept].iloc[0].tolist()
    still = problem.space.replace({name: {"actionability": "immutable"} for name in problem.space.names})
    assert Cfnow().refuses(replace(problem, space=still)) == "CFNOW is not shown immutable features, and here all are."


@cfnow
def test_cfnow_hands_back_what_it_met_when_the_clock_ends_it() -> None:
    """The nearest rows that were predicted as wanted; nothing of an earlier question."""
    problem = compas("lr")
    factual, explainer = undesired(problem, 1), Cfnow().fit(problem)
    met = problem.train.assign(**{name: factual[name].iloc[0] for name in ("age", "race", "sex", "two_year_recid")})
    wanted = met.loc[problem.valid(met)].drop_duplicates()
    far = np.abs(problem.space.encode(wanted) - problem.space.encode(factual)).sum(axis=1)

    def stopped(*_: Any, **__: Any) -> None:
        explainer._share(problem.space.encode(met)[:, explainer.shown])
        raise LateError

    explainer.search = stopped
    answers = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(5)).answers
    assert {(answer.status, answer.reason) for answer in answers} == {(Status.FOUND, Reason.TIME_LIMIT)}
    found = np.abs(problem.space.encode(problem.space.frame([a.row for a in answers])) - problem.space.encode(factual))
    assert found.sum(axis=1) == pytest.approx(np.sort(far)[:2])
    met = met.iloc[:0]
    (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers
    assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.TIME_LIMIT)


@cfnow
def test_cfnow_ends_where_no_step_is_left() -> None:
    """One feature may change, and is forbidden soon; the library would go on for ever, and ask the model nothing."""
    problem = compas("lr", 0.9999)
    problem = replace(problem, target=Label(problem.classifier.classes[1]))
    fixed = {name: {"actionability": "immutable"} for name in problem.space.names if name != "priors_count"}
    began = time.monotonic()
    problem = replace(problem, space=problem.space.replace(fixed))
    (answer,) = asked(Cfnow(), problem, problem.train.iloc[[0]], 1, 60).answers
    assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.FINISHED)
    assert time.monotonic() - began < 20


@cfnow
@pytest.mark.parametrize("strategy", ["greedy", "random"])
def test_cfnow_goes_on_with_what_a_search_without_end_has_found(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """Of the greedy one, which takes the same steps again; of a random one, which may draw others, the clock's end."""
    problem = compas("lr")
    factual, other = undesired(problem).iloc[[0]], undesired(problem).iloc[[1]]
    explainer, finder = Cfnow(strategy).fit(problem), importlib.import_module("cfnow.cf_finder")
    began = time.monotonic()

    def steps(cf_unique: list[Any]) -> list[Any]:
        cf_unique += list(problem.space.encode(other)[:, explainer.shown])
        while time.monotonic() - began < 8:
            explainer.library._create_factual_changes()
        return []

    monkeypatch.setattr(explainer.library, "_create_factual_changes", lambda: None)
    monkeypatch.setattr(explainer.library, "_greedy_generator", steps)
    explainer.search = lambda *_, **__: SimpleNamespace(cfs=finder._greedy_generator(cf_unique=[]))
    (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(2)).answers
    found = (Status.FOUND, Reason.FINISHED) if strategy == "greedy" else (Status.GAVE_UP, Reason.TIME_LIMIT)
    assert (answer.status, answer.reason) == found
    assert time.monotonic() - began < 4


@cfnow
def test_cfnow_survives_a_step_without_a_new_point() -> None:
    """Moving back, the library adds the points of a step that it did not know; there may be none."""
    problem = compas("lr")
    explainer = Cfnow("random", ft_it_max=60).fit(problem)
    for number in range(2):
        factual = undesired(problem).iloc[[number]]
        answer = explainer.explain(factual, 1, np.random.default_rng(number), Deadline.after(20)).answers[0]
        assert answer.status is Status.FOUND


@cfnow
def test_cfnow_moves_back_towards_the_factual() -> None:
    """More steps never make its distance, the scaled columns' sum, longer."""
    problem = compas("lr")
    for number in (1, 2):
        factual = undesired(problem).iloc[[number]]
        lengths = []
        for steps in (1, 25):
            (answer,) = asked(Cfnow("greedy", ft_it_max=steps), problem, factual).answers
            point = problem.space.encode(problem.space.frame([answer.row]))
            lengths.append(np.abs(point - problem.space.encode(factual)).sum())
        assert lengths[1] <= lengths[0] + 0.02  # rounded to whole numbers


@pytest.mark.parametrize("method", METHODS)
def test_global_state_and_inputs_stay(method: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Generators, log handlers and frames are untouched, and nothing is printed."""
    problem = compas("lr")
    factual, train = undesired(problem, 1), problem.train.copy()
    before, handlers = factual.copy(), list(logging.getLogger().handlers)
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = asked(method, problem, factual)
    assert random.getstate() == python
    np.testing.assert_array_equal(np.random.get_state()[1], numpy)  # noqa: NPY002
    pd.testing.assert_frame_equal(factual, before)
    pd.testing.assert_frame_equal(problem.train, train)
    assert logging.getLogger().handlers == handlers
    assert capfd.readouterr() == ("", "")
    assert asked(method, problem, factual) == first


@pytest.mark.parametrize("method", METHODS)
def test_the_deadline_ends_the_search(method: Any) -> None:
    problem = compas("rf")
    explainer, start = method.fit(problem), time.monotonic()
    explanation = explainer.explain(undesired(problem, 1), 2, np.random.default_rng(0), Deadline.after(0))
    assert time.monotonic() - start < 1
    assert {answer.reason for answer in explanation.answers} <= {Reason.TIME_LIMIT, Reason.FINISHED}
    assert len(explanation.answers) == 2


@cfnow
def test_cfnow_gives_up_where_nothing_can_change_the_class() -> None:
    """A wanted class that the model never gives: no answer is made up, and the clock is kept."""
    problem = compas("lr")
    estimator = LogisticRegression().fit(problem.classifier.matrix(problem.train), problem.labels == problem.labels[0])
    estimator.coef_, estimator.intercept_ = np.zeros_like(estimator.coef_), np.array([-1.0])
    classes = problem.classifier.classes
    problem = replace(problem, classifier=replace(problem.classifier, estimator=estimator), target=Label(classes[1]))
    start = time.monotonic()
    (answer,) = asked(Cfnow(), problem, problem.train.iloc[[0]], seconds=1.0).answers
    assert answer.status is Status.GAVE_UP
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("method", [Nice(), Cfnow()], ids=["nice", "cfnow"])
def test_refusals_are_sentences(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other targets than a class, and a library that is not there, with the command that installs it."""
    problem = compas("lr")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for target in (Probability(problem.target.value, 0.8), Interval(0.0, 1.0)):
        assert "wanted class" in str(method.refuses(replace(problem, target=target)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "uv sync --extra" in str(method.refuses(problem))


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: Nice("novelty"), "reward"),
        (lambda: Cfnow("exact"), "strategy"),
        (lambda: Cfnow(ft_change_factor=0.0), "ft_change_factor"),
        (lambda: Cfnow(it_max=0), "it_max"),
    ],
)
def test_wrong_parameters_are_named(build: Any, culprit: str) -> None:
    with pytest.raises(ValueError, match=culprit):
        build()


def test_the_greatest_share_is_the_decision() -> None:
    """With a threshold, without probabilities, and with a plain model alike."""
    for problem in (compas("lr"), compas("lr", 0.7), compas("svm"), compas("rf")):
        found = shares(problem.classifier, problem.train)
        np.testing.assert_array_equal(found.argmax(axis=1), problem.classifier.codes(problem.train))
        np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_seeds_and_logging_are_put_back_after_an_exception() -> None:
    """Draws within depend on the generator given alone; logging works as before."""
    state, level = random.getstate(), logging.root.manager.disable
    draws = []

    def ends() -> None:
        with quiet(), seeded(np.random.default_rng(3)):
            draws.append((random.random(), float(np.random.uniform())))  # noqa: NPY002
            raise LateError

    for _ in range(2):
        with pytest.raises(LateError):
            ends()
    assert draws[0] == draws[1]
    assert random.getstate() == state
    assert logging.root.manager.disable == level


@pytest.mark.parametrize("name", ["nice", "cfnow", "treecf"])
def test_the_libraries_are_imported_where_they_are_used(name: str) -> None:
    """No statement outside a function or a type check loads one: a wrapper can be built without its library."""
    tree = ast.parse((ROOT / "methods" / "peers" / f"{name}.py").read_text())
    loaded = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    loaded |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
    assert not {module.split(".")[0] for module in loaded} & {"nice", "cfnow", "nltk", "treecf"}
