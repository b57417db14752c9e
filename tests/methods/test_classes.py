"""Every method before a model of four classes: one wanted class, several, and any other than the predicted one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from support import laws
from support.laws import Case

from harness.core.errors import DatasetError
from harness.core.method import Deadline
from harness.core.target import Classes, Label
from harness.library import explain, pose
from methods.carla.growing_spheres import GrowingSpheres
from methods.ce_ocl import CeOcl
from methods.dice import Dice
from methods.group_greedy import GroupGreedy
from methods.md_pso import MdPso
from methods.nearest import Nearest
from methods.peers.cfnow import Cfnow
from methods.peers.nice import Nice
from methods.robust import Robust
from methods.wrapping import WANTED, against_rest

METHODS: list[Any] = [
    Nearest(), Nice(), Cfnow(), Dice("random"), Dice("genetic"), Dice("kdtree"), GrowingSpheres(), MdPso(),
    GroupGreedy(), CeOcl(),
]  # fmt: skip
LIBRARIES = (Cfnow, GrowingSpheres)
CLASSES = ("a", "b", "c", "d")


def table() -> tuple[pd.DataFrame, RandomForestClassifier]:
    """Two numbers and a category; the class is that of a quarter of the plane."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(300).round(2), "y": rng.random(300).round(2), "z": rng.integers(0, 3, 300)})
    frame["class"] = np.array(CLASSES, dtype=object)[2 * (frame["x"] > 0.5) + (frame["y"] > 0.5)]
    return frame, RandomForestClassifier(8, max_depth=4, random_state=0).fit(frame[["x", "y", "z"]], frame["class"])


FRAME, MODEL = table()
PLACE = next(place for place in range(300) if MODEL.predict(FRAME.iloc[[place]][["x", "y", "z"]])[0] == "a")


@pytest.mark.parametrize("desired", ["d", ["b", "d"], "other"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_methods_reach_what_is_wanted(method: Any, desired: Any) -> None:
    """The forest itself says one of the wanted classes of the answer, and the harness's checker accepts it."""
    question = pose(FRAME, "class", MODEL, desired=desired)
    problem = question.problem(PLACE)
    if "not installed" in (why := method.refuses(problem) or ""):
        pytest.skip(why)
    if isinstance(method, GroupGreedy):
        factual = question.factuals.loc[[PLACE]]
        found = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers
    else:
        explained = explain(method, question, PLACE)
        found = explained.answers
        # Libraries that know no bounds leave them.
        assert explained.context.verdicts[0] in ("accepted", *["not permitted"] * isinstance(method, LIBRARIES))
    said = MODEL.predict(pd.DataFrame([found[0].row])[["x", "y", "z"]])[0]
    assert said in {"d": ["d"], "other": ["b", "c", "d"]}.get(str(desired), ["b", "d"])


OF_CLASSES = (
    laws.as_many_answers_as_asked, laws.an_own_point_is_valid, laws.a_point_is_coherent, laws.a_point_is_permitted,
    laws.a_point_is_not_the_factual, laws.points_differ, laws.inputs_stay_untouched, laws.a_claim_is_the_objective,
    laws.a_bound_is_below_the_objective, laws.nothing_sampled_beats_a_proof,
)  # fmt: skip


SLOW = pytest.param(Robust(rho=0.02), marks=pytest.mark.slow)  # 9 s each


@pytest.mark.parametrize("desired", ["d", ["b", "d"], "other"])
@pytest.mark.parametrize("method", [*METHODS, SLOW], ids=lambda method: type(method).__name__)
def test_methods_keep_the_laws(method: Any, desired: Any) -> None:
    """Two answers each, judged as before two classes."""
    question = pose(FRAME, "class", MODEL, desired=desired)
    case = Case(method, question.problem(PLACE), question.factuals.loc[[PLACE]], own=not isinstance(method, LIBRARIES))
    if isinstance(method, GroupGreedy):  # of a group of one, a second answer is the group's too
        case.count = 1
    laws.judge(case, *OF_CLASSES)


def test_other_is_every_class_but_the_predicted_one() -> None:
    question = pose(FRAME, "class", MODEL, desired="other")
    predicted = MODEL.predict(FRAME[["x", "y", "z"]])
    for place in range(40):
        assert question.targets[place] == Classes(tuple(name for name in CLASSES if name != predicted[place]))
    two = pose(FRAME.assign(**{"class": np.where(FRAME["class"] == "a", "a", "b")}), "class",
               RandomForestClassifier(5).fit(FRAME[["x"]], FRAME["class"] == "a"), desired="other", classes=["b", "a"],
               features=["x"])  # fmt: skip
    assert set(two.targets.values()) == {Label("a"), Label("b")}


def test_a_model_against_the_rest_says_what_the_model_says() -> None:
    """Its share is above a half iff the forest says a wanted class, ties included; labels follow."""
    problem = pose(FRAME, "class", MODEL, desired=["d", "b"]).problem(0)
    merged = against_rest(problem)
    said = np.isin(MODEL.predict(FRAME[["x", "y", "z"]]), ["b", "d"])
    assert 0 < said.sum() < 300
    assert (merged.valid(problem.train) == said).all()
    assert ((merged.classifier.score(problem.train) > 0.5) == said).all()
    assert ((merged.labels == WANTED) == FRAME["class"].isin(["b", "d"])).all()


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        (["b", "q"], "has no class to desire named 'q'"),
        ([], "lists no class; list some of a, b, c, d, but not all"),
        (["a", "b", "c", "d"], "lists every class; list some"),
        ("opposite", "as there are 4; name one by 'desired'"),
    ],
)
def test_what_is_no_class_is_one_sentence(desired: Any, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        pose(FRAME, "class", MODEL, desired=desired)
