"""What needs torch: its network as a model, CARLA's methods on gradients and autoencoders, DiCE's gradient search."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from support.carla import SPACE, ask, compas, method_of, sample

from harness.core.errors import UnsupportedError
from harness.core.explanation import Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from harness.models import torch_mlp
from harness.models.files import load, save
from harness.models.torch_mlp import TorchMLPClassifier
from harness.models.train import train
from methods.carla import compat
from methods.carla.adapter import Columns, Question
from methods.carla.cchvae import Cchvae
from methods.carla.clue import Clue
from methods.carla.cruds import Cruds
from methods.carla.focus import Focus
from methods.carla.revise import Revise
from methods.carla.wachter import Wachter
from methods.ce_ocl import CeOcl
from methods.dice import Dice
from methods.wrapping import Met

GRADIENT = ("wachter", "revise", "cruds", "clue", "dice_gradient")  # follow the model's gradient
NAMES = (*GRADIENT, "cchvae", "focus")
ROOT = Path(__file__).parents[2]

needs_torch = pytest.mark.skipif(
    not (torch_mlp.installed() and compat.installed()), reason="torch or CARLA is not installed"
)


def network(problem: Problem, estimator: Any) -> Problem:
    """The same question about another model, trained on the same rows."""
    fitted = train(estimator, problem.space, problem.train, problem.labels, problem.classifier.classes)
    return replace(problem, classifier=fitted)


@pytest.fixture(scope="module")
def question() -> tuple[Problem, pd.DataFrame]:
    """COMPAS, a small network of torch, and ten rows that it does not give the wanted class."""
    if not torch_mlp.installed():
        pytest.skip(torch_mlp.ABSENT)
    problem = network(compas("lr")[0], TorchMLPClassifier((10,), max_iter=20))
    problem = replace(problem, train=problem.train.iloc[:1000], labels=problem.labels[:1000])
    return problem, problem.train.loc[~problem.valid(problem.train)].iloc[:10]


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_compas_is_answered(name: str, question: tuple[Problem, pd.DataFrame]) -> None:
    """At least one valid counterfactual that is a point of the space; by FOCUS on a forest, by others on a network."""
    method, (problem, factuals) = method_of(name), compas("rf") if name == "focus" else question
    assert method.refuses(problem) is None
    explainer, rows = method.fit(problem), []
    assert getattr(explainer, "steps", True)  # what CARLA's searches have met is handed back where the clock ends them
    for row in range(5):
        factual = factuals.iloc[[row]]
        found = explainer.explain(factual, 1, np.random.default_rng(row), Deadline.after(60)).answers[0]
        if found.row is not None:
            rows.append(found.row)
            if name == "dice_gradient":  # the one that knows what may not change
                assert not problem.space.violations(factual, problem.space.frame([found.row]))[0]
    frame = problem.space.frame(rows)
    assert problem.valid(frame).any()
    assert not any(problem.space.incoherent(frame))


@needs_torch
@pytest.mark.parametrize("name", GRADIENT)
def test_models_without_gradients_are_refused(name: str) -> None:
    """A forest would be searched without error, and without meaning."""
    refusal = str(method_of(name).refuses(compas("rf")[0]))
    assert "RandomForestClassifier" in refusal
    assert "gradient" in refusal


@needs_torch
def test_focus_takes_trees_only(question: tuple[Problem, pd.DataFrame]) -> None:
    assert "TorchMLPClassifier" in str(Focus().refuses(question[0]))


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_everything_global_is_put_back(
    name: str, question: tuple[Problem, pd.DataFrame], capfd: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Generators of Python, numpy and torch, the environment, frames; no file is left, and nothing is printed."""
    import torch

    compat.library()  # imports Matplotlib, which keeps a list of fonts where it finds none, as in another home
    method, (problem, factuals) = method_of(name), compas("rf") if name == "focus" else question
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    train, factual = problem.train.copy(), factuals.iloc[[0]]
    before = factual.copy()
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    environment, threads = dict(os.environ), torch.get_num_threads()
    ask(method, problem, factual)
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    assert (dict(os.environ), torch.get_num_threads()) == (environment, threads)
    pd.testing.assert_frame_equal(factual, before)
    pd.testing.assert_frame_equal(problem.train, train)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*")) == []


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_a_past_deadline_ends_the_search(name: str, question: tuple[Problem, pd.DataFrame]) -> None:
    """From within: by the model, which every search asks."""
    problem, factuals = compas("rf") if name == "focus" else question
    explainer = method_of(name).fit(problem)
    answer = explainer.explain(factuals.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(1e-3)).answers[0]
    assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.TIME_LIMIT)


@needs_torch
def test_an_endless_search_ends() -> None:
    """Wachter's goes on for half a minute where the other class is out of reach."""
    problem = network(compas("lr")[0], TorchMLPClassifier((3,), max_iter=1))
    estimator = problem.classifier.estimator
    estimator.coefs_, estimator.intercepts_ = [w * 0 for w in estimator.coefs_], [b * 0 for b in estimator.intercepts_]
    never = replace(problem, target=Label("not High"))  # of two classes that tie it is always the first
    assert not never.valid(never.train).any()
    answer = Wachter(n_iter=10).fit(never).explain(
        never.train.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(0.5)
    )  # fmt: skip
    assert (answer.answers[0].status, answer.answers[0].reason) == (Status.GAVE_UP, Reason.TIME_LIMIT)


@needs_torch
def test_autoencoders_take_any_number_of_rows(question: tuple[Problem, pd.DataFrame]) -> None:
    """Also one more than whole batches, on which the published training fails."""
    problem, factuals = question
    few = replace(problem, train=problem.train.iloc[:97], labels=problem.labels[:97])
    for method in (Cchvae(max_iter=5), Revise(max_iter=5)):
        assert len(ask(method, few, factuals.iloc[[0]])) == 1


@needs_torch
@pytest.mark.parametrize("wanted", ["bad", "good"])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearSVC(),
        MLPClassifier((5,), max_iter=50, random_state=0),
        MLPClassifier((5, 4), activation="tanh", max_iter=50, random_state=0),
        TorchMLPClassifier((5, 4), max_iter=5),
    ],
    ids=["lr", "svm", "mlp", "tanh", "torch_mlp"],
)
@pytest.mark.parametrize("threshold", [None, 0.7])
def test_gradients_are_the_models(estimator: Any, wanted: str, threshold: float | None) -> None:
    """The torch module decides as the model does on rows as they would be decoded, and its slope is the score's."""
    import torch

    from methods.carla.gradient import module_of

    if isinstance(estimator, LinearSVC) and threshold is not None:
        pytest.skip("a linear SVM gives no probabilities")
    frame = sample()
    labels = np.where(frame["wage"] + 4 * (frame["city"] == "Ulm") > 11, "good", "bad").astype(object)
    classifier = train(estimator, SPACE, frame, labels, ("bad", "good"), threshold)
    problem = Problem(SPACE, classifier, frame, labels, Label(wanted))
    asked = Question(problem, Columns(SPACE))
    module = module_of(problem, asked)
    asked.met = Met(problem)  # what is wanted of the rows that are asked about is kept
    rows = np.clip(SPACE.encode(frame) + np.random.default_rng(1).normal(0, 0.04, (len(frame), 7)), 0, 1)
    rows[:, 3:] = np.rint(rows[:, 3:])
    shares = module(torch.tensor(rows)).numpy()
    sign = 1 if wanted == "good" else -1
    decoded = SPACE.decode(rows)
    np.testing.assert_allclose(
        shares[:, 1], expit(sign * (classifier.raw(decoded) - classifier.raw_threshold)), atol=1e-6
    )
    np.testing.assert_array_equal(shares[:, 1] > 0.5, problem.valid(decoded))
    kept = SPACE.decode(np.concatenate([rows[:0], *asked.met.parts]))
    pd.testing.assert_frame_equal(kept, decoded[problem.valid(decoded)].reset_index(drop=True))
    asked.met = None

    place, point = 0, rows[:1].copy()  # the one feature that is not rounded
    given = torch.tensor(point, requires_grad=True)
    torch.logit(module(given)[0, 1].double()).backward()
    ends = [point.copy(), point.copy()]
    ends[0][0, place], ends[1][0, place] = point[0, place] + 1e-6, point[0, place] - 1e-6
    high, low = (sign * float(classifier.raw(SPACE.decode(end))[0]) for end in ends)
    np.testing.assert_allclose(float(given.grad[0, place]), (high - low) / 2e-6, rtol=1e-3, atol=1e-5)


@needs_torch
def test_focus_moves_towards_either_class() -> None:
    """The published code counts class 1 as wanted: trees are turned round where the other one is."""
    for wanted in ("High", "not High"):
        problem = replace(compas("rf")[0], target=Label(wanted))
        factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:3]
        explainer = Focus().fit(problem)
        found = [
            answer.row
            for row in range(3)
            for answer in explainer.explain(
                factuals.iloc[[row]], 1, np.random.default_rng(0), Deadline.after(60)
            ).answers
            if answer.row is not None
        ]  # fmt: skip
        assert found
        assert problem.valid(problem.space.frame(found)).all()


@needs_torch
def test_tensorflows_adam() -> None:
    """Two steps by hand, as TensorFlow's documentation has them; a new variable starts anew."""
    from methods.carla import eager

    adam = eager.Adam(learning_rate=0.1)
    for _ in range(2):
        variable = eager.tensorflow.Variable(initial_value=np.array([1.0]))
        x, first, second = 1.0, 0.0, 0.0
        for step in (1, 2):
            slope = 2 * x
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            x -= 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * first / (np.sqrt(second) + 1e-8)
            with eager.tensorflow.GradientTape() as tape:
                loss = eager.tensorflow.reduce_mean(variable**2)
            adam.apply_gradients(zip(tape.gradient(loss, [variable]), [variable], strict=True))
        np.testing.assert_allclose(variable.numpy(), [x], rtol=1e-12)


@needs_torch
def test_training_is_repeated_to_the_bit(question: tuple[Problem, pd.DataFrame]) -> None:
    """In this process, in another one with another seed and number of threads, and whatever torch drew before."""
    import torch

    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 4))
    y = x[:, 0] * x[:, 1] > 0
    first = TorchMLPClassifier((6,), max_iter=8, random_state=3).fit(x, y)
    state = torch.get_rng_state()
    again = TorchMLPClassifier((6,), max_iter=8, random_state=3).fit(x, y)
    assert torch.equal(torch.get_rng_state(), state)
    other = TorchMLPClassifier((6,), max_iter=8, random_state=4).fit(x, y)
    code = (
        "import numpy as np, torch; from harness.models.torch_mlp import TorchMLPClassifier; torch.manual_seed(9);"
        "torch.set_num_threads(2); x = np.random.default_rng(0).normal(size=(150, 4));"
        "net = TorchMLPClassifier((6,), max_iter=8, random_state=3).fit(x, x[:, 0] * x[:, 1] > 0);"
        "print(net.coefs_[0].tobytes().hex())"
    )
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout.strip()
    assert first.coefs_[0].tobytes().hex() == again.coefs_[0].tobytes().hex() == output
    assert first.coefs_[0].tobytes().hex() != other.coefs_[0].tobytes().hex()


@needs_torch
@pytest.mark.parametrize("classes", [2, 3])
def test_the_network_learns(classes: int) -> None:
    """Which sector a point lies in; probabilities sum to 1, and the likeliest class is predicted."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    names = np.array(["a", "b", "c"])[:classes]
    y = names[((np.arctan2(x[:, 0], x[:, 1]) + np.pi) / (2 * np.pi) * classes).astype(int) % classes]
    net = TorchMLPClassifier((16,), max_iter=80, learning_rate=0.01).fit(x, y)
    shares = net.predict_proba(x)
    assert shares.shape == (600, classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(net.predict(x), net.classes_[shares.argmax(axis=1)])
    assert (net.predict(x) == y).mean() > 0.9


@needs_torch
def test_the_exact_method_reads_the_network(question: tuple[Problem, pd.DataFrame]) -> None:
    """The proven optimum is that of scikit-learn's network with the same weights, and nothing sampled beats it."""
    problem, factuals = question
    own = problem.classifier.estimator
    twin = MLPClassifier((10,), max_iter=1, random_state=0).fit(
        problem.encoded, problem.classifier.codes(problem.train)
    )
    twin.coefs_, twin.intercepts_ = own.coefs_, own.intercepts_
    other = replace(problem, classifier=replace(problem.classifier, estimator=twin))
    np.testing.assert_allclose(own.predict_proba(problem.encoded), twin.predict_proba(problem.encoded), atol=1e-12)
    for row in range(3):
        answers = [ask(CeOcl(), each, factuals.iloc[[row]])[0] for each in (problem, other)]
        assert [answer.status for answer in answers] == [Status.OPTIMAL] * 2
        assert answers[0].objective == pytest.approx(answers[1].objective, abs=1e-6)
        assert problem.valid(problem.space.frame([answers[0].row]))[0]
        rows = problem.train.loc[problem.valid(problem.train)]
        rows = rows.loc[[not broken for broken in problem.space.violations(factuals.iloc[[row]], rows)]]
        objective = CeOcl().objective(problem)
        assert objective is not None
        values = objective.evaluate(problem.space, factuals.iloc[[row]], rows)
        assert min(values, default=np.inf) >= answers[0].objective - 1e-9


@needs_torch
def test_a_stored_network_says_the_same(question: tuple[Problem, pd.DataFrame], tmp_path: Path) -> None:
    """To the last bit, in another process."""
    problem, _ = question
    save(problem.classifier.estimator, tmp_path / "net.skops")
    np.save(tmp_path / "rows.npy", problem.encoded[:20])
    code = (
        "import sys, numpy as np; from pathlib import Path; from harness.models import files;"
        f"net = files.load(Path({str(tmp_path)!r}) / 'net.skops');"
        f"print(net.predict_proba(np.load({str(tmp_path / 'rows.npy')!r})).tobytes().hex())"
    )
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout.strip()
    assert output == problem.classifier.estimator.predict_proba(problem.encoded[:20]).tobytes().hex()


def test_a_stored_network_is_read_without_torch(tmp_path: Path) -> None:
    network = TorchMLPClassifier()
    network.coefs_ = [np.array([[2.0, -1.0], [-1.0, 1.0]]), np.array([[1.0], [-3.0]])]
    network.intercepts_, network.classes_ = [np.array([0.0, 0.5]), np.array([0.2])], np.array([0, 1])
    save(network, tmp_path / "net.skops")
    again = load(tmp_path / "net.skops")
    assert type(again) is TorchMLPClassifier
    logits = np.array([0.2 + 1.0, 0.2 - 3.0 * 1.5])  # by hand: the units are 1 and 0, and 0 and 1.5
    np.testing.assert_allclose(again.predict_proba([[0.5, 0.0], [0.0, 1.0]])[:, 1], 1 / (1 + np.exp(-logits)))


def test_without_torch_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_mlp, "installed", lambda: False)
    with pytest.raises(UnsupportedError, match="uv sync --extra torch"):
        TorchMLPClassifier().fit(np.eye(2), [0, 1])
    problem = compas("lr")[0]
    for name in NAMES:
        refusal = method_of(name).refuses(problem)
        assert refusal == "torch is not installed; run `uv sync --extra torch`." or refusal == compat.ABSENT


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (Wachter, {"lr": 0.0}),
        (Wachter, {"n_iter": 0}),
        (Cchvae, {"hidden": ()}),
        (Cchvae, {"step": 0.0}),
        (Revise, {"latent": 0}),
        (Cruds, {"max_iter": 0}),
        (Clue, {"width": 0}),
        (Focus, {"distance": "cosine"}),
        (Focus, {"n_iter": 0}),
        (Dice, {"learning_rate": 0.0}),
        (Dice, {"search": "descent"}),
    ],
)
def test_wrong_parameters_are_named(method: type, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        method(**wrong)


def test_forests_are_not_networks() -> None:
    """A stranger's estimator that only looks like one is not read as layers."""
    from methods.estimators.gradients import layers_of

    problem = compas("rf")[0]
    assert isinstance(problem.classifier.estimator, RandomForestClassifier)
    assert layers_of(problem) is None
    relu = network(problem, MLPClassifier((3,), activation="identity", max_iter=5, random_state=0))
    assert layers_of(relu) is None
