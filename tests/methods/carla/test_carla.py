"""CARLA's own code behind the harness's protocol: it answers, leaves nothing behind, and depends on its seed alone."""

from __future__ import annotations

import importlib
import json
import logging
import os
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support.carla import NAMES, ROOT, SPACE, ask, compas, method_of, sample

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.models import train as models
from harness.models.equations import equations
from methods.carla import compat, cruds
from methods.carla.actionable_recourse import ActionableRecourse
from methods.carla.adapter import TARGET, Codes, Columns, Question, coherent, model_of, moving_columns
from methods.carla.carla_dice import Dice
from methods.carla.causal_recourse import CausalRecourse
from methods.carla.face import Face
from methods.carla.feature_tweak import FeatureTweak
from methods.carla.growing_spheres import GrowingSpheres
from methods.carla.method import CarlaExplainer
from methods.estimators.gradients import linear
from methods.wrapping import LateError, Met

STRANGERS = ("tensorflow", "keras", "torchvision", "seaborn")

pytestmark = pytest.mark.skipif(not compat.installed(), reason=compat.ABSENT)


@pytest.mark.parametrize("kind", ["lr", "rf"])
@pytest.mark.parametrize("name", NAMES)
def test_compas_is_answered_or_refused(name: str, kind: str) -> None:
    """At least one valid counterfactual that is a point of the space, or a sentence why there is none."""
    method, (problem, factuals) = method_of(name), compas(kind)
    refusal = method.refuses(problem)
    if refusal is not None:
        assert (name, kind) == ("feature_tweak", "lr")
        assert "LogisticRegression" in refusal
        return
    explainer = method.fit(problem)
    assert explainer.steps == (name == "carla_dice")  # others return what no single call of the model asks about
    rows = []
    for row in range(6):
        found = explainer.explain(factuals.iloc[[row]], 1, np.random.default_rng(row), Deadline.after(20)).answers[0]
        if found.row is not None:
            rows.append(found.row)
            if name in {"growing_spheres", "actionable_recourse"}:  # the two that know of immutable features
                kept = ("age", "sex", "race", "two_year_recid")
                assert all(found.row[key] == factuals.iloc[row][key] for key in kept)
    frame = problem.space.frame(rows)
    assert problem.valid(frame).any()
    assert not any(problem.space.incoherent(frame))


@pytest.mark.parametrize("name", NAMES)
def test_everything_global_is_put_back(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Generators, modules, numpy, pandas' options, logging, frames; and nothing is printed."""
    method, (problem, factuals) = method_of(name), compas("rf")
    train, factual = problem.train.copy(), factuals.iloc[[0]]
    before = factual.copy()
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    handlers, width = list(logging.getLogger().handlers), pd.get_option("display.max_columns")
    level = logging.getLogger().level
    ask(method, problem, factual)
    assert random.getstate() == python
    np.testing.assert_array_equal(np.random.get_state()[1], numpy)  # noqa: NPY002
    assert (logging.getLogger().handlers, logging.getLogger().level) == (handlers, level)
    assert pd.get_option("display.max_columns") == width
    pd.testing.assert_frame_equal(factual, before)
    pd.testing.assert_frame_equal(problem.train, train)
    assert capfd.readouterr() == ("", "")
    for owner, attribute, value in compat._patches():
        assert vars(owner).get(attribute) is not value, f"{attribute} of {owner} is still replaced"


def test_no_stand_in_stays_among_the_modules() -> None:
    """Neither under its name nor in the import machinery, and names removed from Python are not back."""
    code = (
        "import sys, collections, logging.config, pandas; width = pandas.get_option('display.max_columns');"
        "config = logging.config.dictConfig; finders = list(sys.meta_path);"
        "from methods.carla import compat; compat.library();"
        f"left = [m for m in sys.modules if m.split('.')[0] in {STRANGERS} or m == 'recourse.cplex_helper'];"
        "left += [m for m, module in sys.modules.items() if type(module).__name__ == '_StandIn'];"
        "left += ['Iterable'] * hasattr(collections, 'Iterable') + ['finder'] * (sys.meta_path[0] is not finders[0]);"
        "left += ['dictConfig'] * (logging.config.dictConfig is not config);"
        "left += ['pandas'] * (pandas.get_option('display.max_columns') != width);"
        "print(left)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


ANSWERS = """
import json, sys
sys.path[:0] = ["tests"]
from support.carla import NAMES, ask, compas, method_of
print(json.dumps({n: [a.row for a in ask(method_of(n), compas("rf")[0], compas("rf")[1].iloc[[1]], 2)] for n in NAMES}))
"""


@pytest.mark.slow
def test_hash_seeds_change_nothing() -> None:
    """Python's order of sets, which differs from process to process, does not reach the answers."""
    found = []
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", ANSWERS]
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        found.append(json.loads(run.stdout))
    assert found[0] == found[1] == found[2]
    assert any(row for rows in found[0].values() for row in rows)


@pytest.mark.parametrize("name", ["growing_spheres", "face_knn", "carla_dice"])
def test_chance_gives_several_counterfactuals(name: str) -> None:
    """Distinct ones, the same for the same generator; two searches may find the same."""
    problem, factuals = compas("lr")
    first = ask(method_of(name), problem, factuals.iloc[[0]], 3)
    rows = [answer.row for answer in first if answer.row is not None]
    assert 2 <= len(rows) <= 3
    assert not problem.space.frame(rows).duplicated().any()
    assert ask(method_of(name), problem, factuals.iloc[[0]], 3) == first


def test_actionable_recourse_is_told_directions() -> None:
    """Without them it takes prior counts down; who may only have more of them is told something else, or nothing."""
    problem, factuals = compas("lr")
    rising = replace(problem, space=problem.space.replace({"priors_count": {"actionability": "increase"}}))
    kept = []
    for question in (problem, rising):
        found = [ask(ActionableRecourse(fs_size=5), question, factuals.iloc[[row]])[0].row for row in range(4)]
        before = factuals["priors_count"].iloc[:4]
        kept.append([row is None or row["priors_count"] >= own for row, own in zip(found, before, strict=True)])
    assert not all(kept[0])
    assert all(kept[1])


def test_actionable_recourse_is_told_bounds() -> None:
    """Each person's own: without them it passes the middle, where half of what is asked for lies."""
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)) for name in "abc"))
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (300, 3)), columns=list("abc"))
    codes = (frame @ [1.0, 0.8, 0.7] > 1.25).to_numpy(int)
    classifier = Classifier(LogisticRegression(), space_inputs(space), ("no", "yes"))
    classifier.estimator.fit(classifier.matrix(frame), codes)
    labels = np.array(["no", "yes"], dtype=object)[codes]
    passed = {}
    for end in (1.0, 0.5):
        own = space.replace({name: {"bounds": (0.0, end)} for name in "ab"})
        problem = Problem(own, classifier, frame, labels, Label("yes"))
        people = frame[~problem.valid(frame)].iloc[:15]
        rows = [ask(ActionableRecourse(), problem, people.iloc[[place]])[0].row for place in range(len(people))]
        assert sum(row is not None for row in rows) > 10
        both = [(person, row) for person, row in zip(people.to_dict("records"), rows, strict=True) if row is not None]
        passed[end] = sum(person[name] != row[name] > 0.5 for person, row in both for name in "ab")
    assert passed[1.0] > 3
    assert passed[0.5] == 0


def test_carlas_rows_may_be_of_labels() -> None:
    problem, _ = compas("lr")
    question, rows = Question(problem, moving_columns(problem.space)), problem.train.iloc[:50]
    wanted = problem.labelled(problem.labels[:50])
    said = problem.valid(rows)
    assert (wanted != said).any()
    for given, own in ((None, said), (wanted, wanted)):
        assert model_of(question, rows, wanted=given).data.df[TARGET].tolist() == own.astype(int).tolist()


@pytest.mark.parametrize("name", ["actionable_recourse", "feature_tweak"])
def test_without_chance_there_is_one(name: str) -> None:
    problem, factuals = compas("rf")
    for row in range(4):
        statuses = [answer.status for answer in ask(method_of(name), problem, factuals.iloc[[row]], 2)]
        assert statuses[1] is Status.GAVE_UP


def test_no_draw_begins_that_would_not_end_in_time() -> None:
    """The first takes .25 of .4 seconds, and asks for no clock: a second one would be late, and lose both."""
    problem, factuals = compas("lr")
    explainer = GrowingSpheres().fit(problem)
    wanted = problem.train.loc[problem.valid(problem.train)].iloc[[0]]
    draws = []

    def slow(table: pd.DataFrame, _: int) -> pd.DataFrame:
        draws.append(time.sleep(0.25))
        return explainer.question.columns.encode(wanted)

    explainer.ask = slow
    answers = explainer.explain(factuals.iloc[[0]], 3, np.random.default_rng(0), Deadline.after(0.4)).answers
    assert [answer.status for answer in answers] == [Status.FOUND, Status.GAVE_UP, Status.GAVE_UP]
    assert (len(draws), answers[1].reason) == (1, Reason.TIME_LIMIT)


def test_growing_spheres_end() -> None:
    """Where no sphere holds the wanted class, which the published code searches for ever."""
    problem, factuals = compas("lr")
    codes = problem.classifier.codes(problem.train)
    stubborn = DummyClassifier(strategy="constant", constant=0).fit(problem.classifier.matrix(problem.train), codes)
    never = replace(problem, classifier=replace(problem.classifier, estimator=stubborn))
    assert not never.valid(factuals).any()
    answer = ask(GrowingSpheres(max_iter=5), never, factuals.iloc[[0]])[0]
    assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.FINISHED)
    late = GrowingSpheres(max_iter=10**6).fit(never)
    late = late.explain(factuals.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(0.5)).answers[0]
    assert (late.status, late.reason) == (Status.GAVE_UP, Reason.TIME_LIMIT)


@pytest.mark.parametrize("wanted", ["High", "not High"])
def test_either_class_can_be_wanted(wanted: str) -> None:
    """CARLA moves towards class 1 only: the question is turned round where the other one is wanted."""
    for kind, names in (("lr", ("actionable_recourse", "growing_spheres")), ("rf", ("feature_tweak", "face_knn"))):
        problem = replace(compas(kind)[0], target=Label(wanted))
        factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:6]
        for name in names:
            explainer, found = method_of(name).fit(problem), 0
            for row in range(6):
                rng = np.random.default_rng(row)
                answer = explainer.explain(factuals.iloc[[row]], 1, rng, Deadline.after(20)).answers[0]
                if answer.row is not None:
                    assert problem.valid(problem.space.frame([answer.row]))[0]
                    found += 1
            assert found, f"{name} found nothing"


@pytest.fixture(scope="module")
def toy() -> Problem:
    frame = sample()
    labels = np.where(frame["wage"] + 4 * (frame["city"] == "Ulm") > 11, "good", "bad").astype(object)
    classifier = models.train(LogisticRegression(), SPACE, frame, labels, ("bad", "good"))
    return Problem(SPACE, classifier, frame, labels, Label("good"))


@pytest.mark.parametrize("columns", [Columns, Codes])
def test_columns_come_back(columns: Callable[[Space], Columns]) -> None:
    """What CARLA is given decodes to the rows it was made of, and no name is part of another."""
    language, frame = columns(SPACE), sample()
    matrix = language.matrix(language.encode(frame), SPACE.encode(frame)[0])
    assert coherent(SPACE, matrix).all()
    pd.testing.assert_frame_equal(SPACE.decode(matrix), frame, check_dtype=False)
    names = language.names
    assert not any(one != other and one in other for one in names for other in names)


def test_rows_that_are_no_points_are_reported() -> None:
    """A fraction is rounded; two categories at once, none, a rank beyond the last, and NaN are no point."""
    good = SPACE.encode(sample(1))[0]
    near = good + np.array([0.0, 0.01, 0.1, -0.2, 0.2, 0.2, 0.3]) * np.where(good > 0.5, -1, 1)
    twice, none, beyond, missing = (good.copy() for _ in range(4))
    twice[3:6], none[3:6], beyond[2], missing[0] = (1, 1, 0), 0, 1.4, np.nan
    outside = good + np.eye(7)[1] * 5  # a number out of bounds is a point
    rows = np.array([good, near, twice, none, beyond, missing, outside])
    assert coherent(SPACE, rows).tolist() == [True, True, False, False, False, False, True]


def test_a_question_says_what_the_model_says(toy: Problem) -> None:
    """Class 1 is the wanted one, on the row as it would be decoded; no point is wanted."""
    for wanted in ("good", "bad"):
        problem = replace(toy, target=Label(wanted))
        question = Question(problem, Columns(SPACE))
        shares = question.probabilities(question.columns.encode(toy.train))
        np.testing.assert_array_equal(shares.argmax(axis=1) == 1, problem.valid(toy.train))
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_allclose(shares[:, 1], toy.classifier.probability(toy.train, wanted), atol=1e-6)
    assert question.probabilities(np.full((2, 7), np.nan)).argmax(axis=1).tolist() == [0, 0]


@pytest.mark.parametrize("steps", [True, False])
def test_the_nearest_that_a_search_has_met_is_handed_back_when_the_clock_ends_it(toy: Problem, steps: bool) -> None:
    """Where its points are candidates: by brute force the nearest forty rows of the wanted class, then none."""
    question, factual = Question(toy, Columns(SPACE)), toy.train.loc[~toy.valid(toy.train)].iloc[[0]]
    asked, rng = toy.train, np.random.default_rng(0)

    def late(table: pd.DataFrame, n: int) -> pd.DataFrame:
        question.probabilities(question.columns.encode(asked))
        question.probabilities(np.full((2, 7), np.nan))
        raise LateError

    explainer = CarlaExplainer("a search", question, late, steps=steps)
    found = explainer.explain(factual, 40, rng, Deadline.after(5)).answers
    assert {answer.reason for answer in found} == {Reason.TIME_LIMIT}
    if not steps:
        assert [answer.row for answer in found] == [None] * 40
        return
    wanted = toy.train.loc[toy.valid(toy.train)].drop_duplicates()
    far = np.abs(SPACE.encode(wanted) - SPACE.encode(factual)).sum(axis=1)
    points = SPACE.encode(SPACE.frame([answer.row for answer in found]))
    assert np.abs(points - SPACE.encode(factual)).sum(axis=1) == pytest.approx(np.sort(far)[:40])
    asked = toy.train.iloc[:0]
    (answer,) = explainer.explain(factual, 1, rng, Deadline.after(5)).answers
    assert (answer.row, answer.reason) == (None, Reason.TIME_LIMIT)


def test_the_model_is_asked_about_the_nearest_first(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the clock has ended a search, little time is left; what is not wanted is nobody's counterfactual."""
    met, judged, valid = Met(toy), list[int](), Problem.valid
    met.parts.append(toy.train)
    monkeypatch.setattr(Problem, "valid", lambda self, frame: judged.append(len(frame)) or valid(self, frame))
    factual = toy.train.loc[toy.valid(toy.train)].iloc[[0]]
    judged.clear()
    assert met.explanation(factual, 1).answers[0].row == factual.iloc[0].to_dict()
    assert sum(judged) < len(toy.train) / 2
    refused = toy.train.loc[~valid(toy, toy.train)].iloc[[0]]
    (answer,) = met.explanation(refused, 1).answers
    assert valid(toy, SPACE.frame([answer.row]))[0]


def test_points_met_as_frames_and_as_columns_are_looked_at_alike(toy: Problem) -> None:
    """Whichever of them has the nearest."""
    refused = toy.train.loc[~toy.valid(toy.train)].iloc[[0]]
    wanted = toy.train.loc[toy.valid(toy.train)].drop_duplicates()
    order = np.argsort(np.abs(SPACE.encode(wanted) - SPACE.encode(refused)).sum(axis=1), kind="stable")
    first, second, third = (wanted.iloc[[place]] for place in order[:3])
    for parts in ([first, SPACE.encode(second), SPACE.encode(third)], [SPACE.encode(first), second, third]):
        met = Met(toy)
        met.parts.extend(parts)
        found = SPACE.frame([answer.row for answer in met.explanation(refused, 3).answers])
        assert SPACE.encode(found) == pytest.approx(SPACE.encode(pd.concat([first, second, third])))


def test_loops_that_ask_no_model_look_at_the_clock() -> None:
    """Each leaf of Feature Tweak, each tree of FOCUS, each graph of FACE."""
    modules = compat.library().modules
    with compat.running(np.random.default_rng(0), Deadline.after(-1)):
        for owner, name in (
            (modules["tweak"].FeatureTweak, "esatisfactory_instance"),
            (modules["trees"], "get_prob_classification_tree"),
            (modules["face_search"], "kneighbors_graph"),
            (modules["face_search"], "radius_neighbors_graph"),
        ):
            with pytest.raises(LateError):
                getattr(owner, name)()


def test_each_item_has_all_the_time_that_is_left() -> None:
    """HiGHS adds up the seconds of a model's runs, and its limit is for their sum."""
    model = compat._mip_model(importlib.import_module("mip"))()
    chosen = [model.add_var(var_type="B") for _ in range(40)]
    weights = np.random.default_rng(0).integers(20, 90, (2, 40)).tolist()
    model += sum(w * x for w, x in zip(weights[0], chosen, strict=True)) <= 700
    model.objective = -sum(w * x for w, x in zip(weights[1], chosen, strict=True))
    longest = 0.0
    with compat.running(np.random.default_rng(0), Deadline.after(60)):
        began = time.monotonic()
        for _ in range(20):
            model.optimize()
            longest = max(longest, model.solver._lib.Highs_getRunTime(model.solver._model))
            model += chosen[0] + chosen[1] <= 1
    assert longest < (time.monotonic() - began) / 3


def test_a_linear_model_is_read(toy: Problem) -> None:
    """The plane that Actionable Recourse is given has the model's own decision values."""
    plane = linear(SPACE, toy.classifier)
    assert plane is not None
    np.testing.assert_allclose(SPACE.encode(toy.train) @ plane[0] + plane[1], toy.classifier.raw(toy.train))


def test_several_categories_stay(toy: Problem) -> None:
    """Where the method draws or moves columns one by one; FACE and DiCE, which keep them together, may change them."""
    factuals = toy.train.loc[~toy.valid(toy.train)].iloc[:5]
    moved = set()
    for method in (GrowingSpheres(), ActionableRecourse(), Face(fraction=0.5), Dice()):
        for row in range(5):
            factual = factuals.iloc[[row]]
            for answer in ask(method, toy, factual, 3):
                if answer.row is not None:
                    assert not SPACE.incoherent(SPACE.frame([answer.row]))[0]
                    if answer.row["city"] != factual["city"].iloc[0]:
                        moved.add(type(method))
    assert moved
    assert moved <= {Face, Dice}


@pytest.mark.parametrize("kind", ["lr", "rf"])
def test_causal_recourse_answers_with_what_follows(kind: str) -> None:
    """On COMPAS, where a stay is made to depend on priors: valid rows, in which the effect moved with its cause."""
    problem, factuals = compas(kind)
    assert "causality" in str(CausalRecourse().refuses(problem))
    space, stay = problem.space.replace({"length_of_stay": {"kind": "continuous"}}), {"length_of_stay": float}
    train, factuals, rows = problem.train.astype(stay), factuals.astype(stay), []
    described = equations(space, train, {"length_of_stay": {"formula": "3 * priors_count"}})
    problem = replace(problem, space=space, train=train, reference=None, equations=described)
    for row in range(4):
        (answer,) = ask(CausalRecourse(max_actions=20), problem, factuals.iloc[[row]])
        if answer.row is not None:
            rows.append(answer.row)
            moved = {name: answer.row[name] - factuals.iloc[row][name] for name in ("priors_count", "length_of_stay")}
            assert moved["priors_count"] != 0
            assert moved["length_of_stay"] == pytest.approx(3 * moved["priors_count"], abs=2)  # a whole prior is 3 days
    assert problem.valid(problem.space.frame(rows)).any()


@pytest.mark.parametrize(
    "method", [Face(fraction=0.5), Face("epsilon", radius=0.5, fraction=0.5)], ids=["knn", "epsilon"]
)
def test_face_needs_no_immutable_feature(toy: Problem, method: Face) -> None:
    """Without one, which the published code does not expect, a row of the data is the answer all the same."""
    free = replace(toy, space=SPACE.replace({"age": {"actionability": "free"}}))
    assert method.refuses(free) is None
    rows = [
        answer.row
        for row in range(4)
        for answer in ask(method, free, toy.train.loc[~toy.valid(toy.train)].iloc[[row]])
        if answer.row is not None
    ]
    assert rows
    assert toy.valid(SPACE.frame(rows)).all()
    known = {tuple(np.round(values, 9)) for values in SPACE.encode(toy.train)}
    assert all(tuple(np.round(values, 9)) in known for values in SPACE.encode(SPACE.frame(rows)))


DRAW = {"growing_spheres", "face_knn", "face_epsilon"}  # further counterfactuals are those of further searches


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_searched_for_again(name: str) -> None:
    """Even where nothing is found: one search, as CARLA has it; of methods that draw, one a counterfactual."""
    method, (problem, factuals) = method_of(name), compas("rf")
    explainer, searches = method.fit(problem), []

    def nothing(table: pd.DataFrame, count: int) -> pd.DataFrame:
        searches.append(count)
        return table.astype(object).mask(table.notna(), np.nan)

    explainer.ask = nothing
    for count in (1, 3):
        searches.clear()
        answers = explainer.explain(factuals.iloc[[0]], count, np.random.default_rng(0), Deadline.after(20)).answers
        assert [answer.status for answer in answers] == [Status.GAVE_UP] * count
        assert len(searches) == (count if name in DRAW else 1)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_library_returns_is_handed_back(name: str) -> None:
    """Of whatever class; but neither the factual nor a row that cannot be."""
    method, (problem, factuals) = method_of(name), compas("rf")
    explainer = method.fit(problem)
    columns, factual, other = explainer.question.columns, factuals.iloc[[0]], factuals.iloc[[1]]

    def returned(table: pd.DataFrame, count: int) -> pd.DataFrame:
        rows = columns.encode(pd.concat([factual, other, other, other]))
        rows.iloc[2] = np.nan
        rows.iloc[3] = 1e9
        return rows

    explainer.ask = returned
    answers = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(20)).answers
    assert [answer.status for answer in answers] == [Status.FOUND, Status.GAVE_UP]
    assert not problem.valid(problem.space.frame([answers[0].row]))[0]
    assert "that no row can be" in answers[1].detail


def test_face_keeps_an_immutable_feature_on_its_paths() -> None:
    """Of the wanted rows those of another kind are the nearest; a path leads among the factual's own kind alone."""
    kinds = (Feature(name, "binary", (0, 1)) for name in ("owner", "member"))
    immutable = Feature("kind", "binary", (0, 1), actionability="immutable")
    space = Space((Feature("wage", "continuous", scale=(0, 1)), *kinds, immutable))
    group = np.repeat([0, 1, 2], [30, 10, 30])  # refused; granted of the other kind; granted owners of the same kind
    wage = np.random.default_rng(0).uniform(0, 0.1, 70) + np.array([0.3, 0.6, 0.6])[group]
    columns = {"wage": wage, "owner": group // 2, "member": group // 2, "kind": (group != 1).astype(int)}
    frame = space.frame(pd.DataFrame(columns).astype(object).to_dict("records"))
    labels = np.where(group > 0, "good", "bad").astype(object)
    classifier = models.train(DecisionTreeClassifier(max_depth=1), space, frame, labels, ("bad", "good"))
    problem = Problem(space, classifier, frame, labels, Label("good"))
    rows = [ask(Face(fraction=0.99), problem, frame.iloc[[place]])[0].row for place in range(4)]
    assert [row and row["kind"] for row in rows] == [1] * 4


def test_refusals_have_a_reason(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sample()
    three = models.train(LogisticRegression(), SPACE, frame, frame["grade"].to_numpy(object), ("low", "middle", "high"))
    for method in (GrowingSpheres(), Face(), ActionableRecourse(), FeatureTweak(), Dice()):
        assert "wanted class" in str(method.refuses(replace(toy, target=Interval(0, 1))))
        why = method.refuses(replace(toy, classifier=three, target=Label("high")))
        assert ("two classes" in str(why)) is not isinstance(
            method, GrowingSpheres
        )  # which is asked of one or the rest
    few = replace(toy, train=toy.train.iloc[:60], labels=toy.labels[:60], reference=None)
    assert "more than 60 rows" in str(Face().refuses(few))
    assert "LogisticRegression" in str(FeatureTweak().refuses(toy))
    monkeypatch.setattr(compat, "installed", lambda: False)
    assert GrowingSpheres().refuses(toy) == "CARLA is not installed; run `uv sync --group carla`."


def test_a_wheel_is_told_of_packages_of_the_same_versions() -> None:
    """``pip`` takes them without what they ask for; those that are pinned in pyproject.toml are pinned alike."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pinned = {name for name in compat.PARTS.split() if "==" in name}
    (carla,) = project["dependency-groups"]["carla"]
    replaced = {entry["name"]: entry for entry in project["tool"]["uv"]["dependency-metadata"]}
    lists = [replaced[name]["requires-dist"] for name in ("carla-recourse", "recourse")]
    assert pinned == {carla, *(name for names in lists for name in names if "==" in name)}


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (GrowingSpheres, {"max_iter": 0}),
        (Face, {"mode": "near"}),
        (Face, {"fraction": 1.0}),
        (Face, {"max_rows": 5}),
        (ActionableRecourse, {"fs_size": 0}),
        (FeatureTweak, {"eps": 0.0}),
        (CausalRecourse, {"max_actions": 10}),
    ],
)
def test_wrong_parameters_are_named(method: type, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        method(**wrong)


def test_cruds_is_trained_on_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on what the model predicts for the training rows, of which some are of another class."""
    given: list[np.ndarray] = []

    def trained(*_: Any, wanted: np.ndarray, **__: Any) -> None:
        given.append(wanted)
        raise InterruptedError

    monkeypatch.setattr(cruds, "model_of", trained)
    monkeypatch.setattr(cruds, "module_of", lambda *_: None)
    monkeypatch.setattr(cruds, "autoencoder", lambda *_: {})
    problem, _ = compas("lr")
    with pytest.raises(InterruptedError):
        cruds.Cruds().build(problem)
    assert isinstance(problem.target, Label)
    assert given[0].tolist() == (problem.labels == problem.target.value).tolist()
    assert given[0].tolist() != problem.valid(problem.train).tolist()
