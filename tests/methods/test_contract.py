"""Every method of ``conf/method`` before every kind of model of ``conf/model`` keeps the laws; each law is tested."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from support import laws
from support.brought import BROUGHT, brought
from support.complete import CONF, complete, settings, targets
from support.datasets import dataset_of, problem_on
from support.laws import Case, Law
from support.own import SETTINGS, own
from support.wrapped import OPAQUE, WRAPPED, wrapped

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.models import torch_mlp
from harness.models.equations import equations
from methods.nearest import Nearest
from metrics.actionability import relations

METHODS, MODELS, DATASETS = map(complete, ("method", "model", "dataset"))
# Modules of other libraries' methods, which decide for themselves.
WRAPPERS = ("methods.dice", "methods.carla", "methods.peers", "methods.scorecard.optbinning")
# A library in an environment of its own that knows no constraints, and whose points are handed on as it found them.
UNBOUND = "pertcf"
GENERAL = "nearest"  # the method that meets every model
QUICK = ("lr", "cart", "rf", "mlp", "scorecard", "rf_regressor")  # kinds of models of the quick tests
# Variants, of which some take minutes on the small problem, and methods in environments that may have to be made.
LONG = {
    name for name in METHODS
    if name.startswith("robust_") or name.endswith(("_library", "recourse_carla"))
    or settings("method", name)["_target_"].startswith("methods.foreign.")
}  # fmt: skip
USUAL = ("lr", "rf")  # models that meet every method
OWN = {GENERAL, "ce_ocl", "robust", "scorecard", "column_generation", "md_pso"}  # which meet all of the quick ones
# Of what takes 6 to 20 s a model: causal_recourse asks every model alike (as with costs of one's own, below), and a
# tree is a forest of one.
LENGTHY = {
    ("robust", "mlp"), ("robust", "cart"), ("ce_ocl_milp", "rf"), ("ce_ocl_likely", "rf"), ("dice_kdtree", "lr"),
    *product(["causal_recourse"], QUICK),
}  # fmt: skip
# Budgets with which these take a second a question, where the libraries' own take up to the limit of a minute.
CUT = {
    "actionable_recourse": {"fs_size": 5},
    "cfnow_greedy": {"it_max": 500, "ft_it_max": 20},
    "cfnow_random": {"it_max": 500, "ft_it_max": 20},
}
ProblemOf = Callable[..., Problem]


def estimator_class(model: str) -> str:
    return settings("model", model)["estimator"]["_target_"]


# Models found by grid search are those of other entries with other numbers, at a minute each.
MODELS = [name for name in MODELS if not estimator_class(name).endswith("GridSearchCV")]
# Without torch its network cannot be trained, and answers as any other network does.
MODELS = [name for name in MODELS if torch_mlp.installed() or "torch" not in estimator_class(name)]
REGRESSION = {dataset for dataset in DATASETS if settings("dataset", dataset).get("task") == "regression"}
REGRESSORS = {name for name in MODELS if "threshold" not in settings("model", name)}


def of(method: str, *model: str, slow: bool = False) -> Any:
    """Parameters of a test."""
    return pytest.param(method, *model, marks=pytest.mark.slow if slow else ())


def kinds(group: str, names: list[str]) -> list[str]:
    """Of the choices that are built of the same classes, the one with the shortest name."""
    shortest_last = sorted(names, key=len, reverse=True)
    return list({targets(settings(group, name)): name for name in shortest_last}.values())


MODEL_KINDS, METHOD_KINDS = kinds("model", MODELS), kinds("method", METHODS)
PAIRS = [pair for pair in product(DATASETS, MODEL_KINDS) if (pair[0] in REGRESSION) == (pair[1] in REGRESSORS)]


def usual(variant: str) -> str:
    """The one of the usual models that a variant of a method meets at every change; none with which it takes long."""
    models = [model for model in USUAL if (variant, model) not in LENGTHY]
    return models[crc32(variant.encode()) % len(models)]


# Each kind of method meets each kind of model; those that differ in numbers and options meet two of the other side,
# and at every change one of them.
MET = [
    of(
        method,
        model,
        slow=method in LONG
        or (method not in {GENERAL, "ce_ocl"} and model not in QUICK)
        or (method not in OWN and model not in USUAL)
        or (method not in METHOD_KINDS and model != usual(method))
        or model not in MODEL_KINDS
        or (method, model) in LENGTHY,
    )
    for method, model in product(METHODS, MODELS)
    if (model in MODEL_KINDS and method in METHOD_KINDS)
    or method == GENERAL
    or (method not in METHOD_KINDS and model in USUAL)
]


@cache
def chosen(group: str, choice: str) -> DictConfig:
    """A choice of ``conf``, with the defaults it builds upon and the default seed."""
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=[f"{group}={choice}"])[group]


def case_of(method: str, problem: Problem, factuals: pd.DataFrame) -> Case:
    built = instantiate(chosen("method", method), **CUT.get(method, {}), _convert_="all")
    own = not type(built).__module__.startswith(WRAPPERS) and getattr(built, "name", "") != UNBOUND
    return Case(built, problem, factuals, own=own)


@pytest.fixture(scope="module")
def small(problem_of: ProblemOf) -> Callable[[str, str], Case]:
    """A method before the small problem of a model, with three factuals, and an equation for methods that need one.

    For methods that take no numbers, the same without them.
    """

    @cache
    def posed(model: str, discrete: bool) -> tuple[Problem, pd.DataFrame]:
        problem = problem_of(model, discrete)
        if not discrete:
            effect = {"savings": {"formula": "0.05 * income"}}
            problem = replace(problem, equations=equations(problem.space, problem.train, effect))
        return problem, problem.train.loc[~problem.valid(problem.train)].iloc[:3]

    @cache
    def built(method: str, model: str) -> Case:
        case = case_of(method, *posed(model, False))
        return case_of(method, *posed(model, True)) if "discretise" in (case.refusal or "") else case

    return built


@pytest.mark.every(1)
@pytest.mark.parametrize(("method", "model"), MET)
def test_method(small: Callable[[str, str], Case], method: str, model: str) -> None:
    laws.judge(small(method, model), *laws.ALL)


@pytest.mark.parametrize("method", [of(name, slow=name in LONG) for name in METHODS])
def test_method_takes_some_model(small: Callable[[str, str], Case], method: str) -> None:
    refusal = small(method, QUICK[0]).refusal or ""
    if "uv sync --extra" in refusal or "harness environments make" in refusal:
        pytest.skip(refusal)
    laws.some_problem_is_taken(small(method, model) for model in dict.fromkeys((*QUICK, *MODEL_KINDS)))


RELATED = ("if income increases then visits stays", "at most 1 of [city, job, grade] change")
KEEPING = ("methods.ce_ocl", "methods.robust", "methods.scorecard.method", "methods.nearest")


@pytest.mark.parametrize("method", [of(name, slow=name not in {"ce_ocl", GENERAL}) for name in METHODS])
def test_method_keeps_relations_or_says_so(small: Callable[[str, str], Case], method: str) -> None:
    """Who keeps them breaks none, who proves anything keeps them or refuses by name; all others are counted."""
    taken = (small(method, model) for model in ("rf", "scorecard", "mlp", "lr"))
    plain = next((case for case in taken if case.refusal is None), None)
    if plain is None:
        pytest.skip("it takes none of these models")
    named = [text for text in RELATED if "income" in plain.problem.space.names or "income" not in text]
    space = replace(plain.problem.space, constraints=tuple(named))
    case = Case(plain.method, replace(plain.problem, space=space), plain.factuals[:2], own=plain.own)
    if case.refusal is not None:
        assert repr(space.constraints[0]) in case.refusal
        return
    laws.a_proof_keeps_the_relations(case)
    for factual, row, _ in case.points():
        answer = space.frame([row])
        counted = relations(factual, answer, case.problem)
        assert counted == len(space.breaches(factual, answer)[0])
        assert counted == 0 or not type(case.method).__module__.startswith(KEEPING)


# What features cost, of every kind: of a method that knows nothing of it, the claim is without.
PRICES: dict[str, dict[str, Any]] = {
    "income": {"weight": 3}, "delay": {"weight_up": 2, "weight_down": 0.3}, "taste": {"weight": 0.5, "weight_up": 2},
    "city": {"weight": 0.4, "costs": {"Bonn": {"Ulm": 2}, "Ulm": {"Bonn": 0.5, "Köln": 3}}},
    "member": {"weight_up": 1.5}, "loans": {"shares": ((0, 0.1), (2, 0.7), (6, 0.9))},
    "risk": {"shares": ((0, 0.1), (1, 0.5), (3, 0.9))},
}  # fmt: skip
CLAIMS = (laws.as_many_answers_as_asked, laws.a_claim_is_the_objective, laws.a_bound_is_below_the_objective,
          laws.nothing_sampled_beats_a_proof, laws.a_refusal_is_a_sentence)  # fmt: skip


@pytest.mark.parametrize("method", [of(name, slow=name in LONG) for name in METHOD_KINDS])
@pytest.mark.every(2)
def test_costs_of_ones_own(small: Callable[[str, str], Case], method: str) -> None:
    case = small(method, "rf")
    prices = {name: entry for name, entry in PRICES.items() if name in case.problem.space.names}
    priced = replace(case.problem, space=case.problem.space.replace(prices))
    laws.judge(case_of(method, priced, case.factuals), *CLAIMS)


@cache
def packaged(dataset: str, model: str) -> tuple[Problem, pd.DataFrame]:
    """The problem of a dataset in ``conf/dataset``, and two factuals of its test rows."""
    data, node = dataset_of(dataset), chosen("model", model)
    problem = problem_on(data, instantiate(node.estimator, _convert_="all"), node.get("threshold"))
    rows = data.frame.iloc[data.test]
    return problem, rows.loc[~problem.valid(rows)].iloc[:2]


@cache
def packaged_case(dataset: str, model: str, method: str) -> Case:
    return case_of(method, *packaged(dataset, model))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHOD_KINDS)
@pytest.mark.parametrize(("dataset", "model"), PAIRS)
def test_method_on_packaged_data(dataset: str, model: str, method: str) -> None:
    laws.judge(packaged_case(dataset, model, method), *laws.ALL)


@pytest.mark.parametrize(
    "model", ["scorecard", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rf", "gbm"))]
)
@pytest.mark.parametrize(
    "dataset", ["heloc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("adult", "compas", "german_credit"))]
)
def test_search_and_program_prove_the_same(dataset: str, model: str) -> None:
    """On models of the size that people have, where the search needs its bounds."""
    problem, _ = packaged(dataset, model)
    data = dataset_of(dataset)
    rows = data.frame.iloc[data.test]
    asked = rows.loc[~problem.valid(rows)].iloc[:5]
    search, program = (case_of(name, problem, asked) for name in ("ce_ocl", "ce_ocl_milp"))
    for k in range(len(asked)):
        first, second = (
            case.explainer.explain(asked.iloc[[k]], 1, np.random.default_rng(0), Deadline.after(60.0)).answers[0]
            for case in (search, program)
        )
        assert first.status is second.status is Status.OPTIMAL
        assert first.objective == pytest.approx(second.objective, rel=0, abs=2e-6)


@cache
def own_case(name: str, method: str) -> Case:
    return case_of(method, *own(name))


@pytest.mark.parametrize(
    ("method", "name"), [of(*pair, slow=pair[0] in LONG | {"robust"}) for pair in product(METHOD_KINDS, SETTINGS)]
)
def test_method_on_a_model_from_a_file(method: str, name: str) -> None:
    laws.judge(own_case(name, method), *laws.ALL)


def test_models_from_files_are_looked_into() -> None:
    """So that the laws above are kept by the methods that do so."""
    for name in SETTINGS:
        assert own(name)[0].classifier.opaque is None
        assert own_case(name, "ce_ocl").refusal is None


@cache
def wrapped_case(kind: str, method: str) -> Case:
    return case_of(method, *wrapped(kind))


@pytest.mark.parametrize(
    ("method", "kind"),
    [of(*pair, slow=pair[0] not in {GENERAL, "ce_ocl"}) for pair in product(METHOD_KINDS, WRAPPED)],
)
def test_method_on_a_model_made_of_others(method: str, kind: str) -> None:
    laws.judge(wrapped_case(kind, method), *laws.ALL)


@pytest.mark.parametrize("kind", WRAPPED)
def test_models_made_of_others_are_looked_into_where_they_are_sums_or_thresholds(kind: str) -> None:
    assert (wrapped_case(kind, "ce_ocl").refusal is not None) == (kind in OPAQUE)
    assert wrapped_case(kind, GENERAL).refusal is None


@cache
def brought_case(kind: str, method: str) -> Case:
    return case_of(method, *brought(kind))


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        of(method, kind, slow=method in LONG or (kind != "gaps" and method not in {GENERAL, "ce_ocl"}))
        for method, kind in product(METHOD_KINDS, BROUGHT)
    ],
)
def test_method_on_a_model_that_was_brought(method: str, kind: str) -> None:
    """Who refuses gaps says what to set."""
    case = brought_case(kind, method)
    if kind == "gaps" and case.refusal:
        assert "features.income.missing to" in case.refusal or "has no weights" in case.refusal
    laws.judge(case, *laws.ALL)


@pytest.mark.parametrize("kind", BROUGHT)
def test_models_that_were_brought_are_looked_into(kind: str) -> None:
    assert brought(kind)[0].classifier.opaque is None
    assert brought_case(kind, "ce_ocl").refusal is None
    assert brought_case(kind, GENERAL).refusal is None


@dataclass(frozen=True)
class Altered:
    """The nearest neighbour, with its explanations altered before they are given."""

    alter: Callable[[Explanation, pd.DataFrame, Problem], Explanation]
    claims: bool = True

    def refuses(self, problem: Problem) -> str | None:
        return None

    def objective(self, problem: Problem) -> Objective | None:
        return Objective((Term("gower"),)) if self.claims else None

    def fit(self, problem: Problem) -> _Altered:
        return _Altered(self, problem)


class _Altered:
    def __init__(self, method: Altered, problem: Problem) -> None:
        self.method, self.problem, self.honest = method, problem, Nearest().fit(problem)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        return self.method.alter(self.honest.explain(factual, n, rng, deadline), factual, self.problem)


@dataclass(frozen=True)
class Declares(Altered):
    """A method that says something of its answers, one feature of which it draws."""

    deterministic: bool = False
    gives: str = "several"

    def fit(self, problem: Problem) -> _Drawn:
        return _Drawn(self, problem)


class _Drawn(_Altered):
    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        return with_values(super().explain(factual, n, rng, deadline), income=float(rng.random()))


@dataclass(frozen=True)
class Refuses(Altered):
    """A method that takes nothing."""

    reason: str = ""

    def refuses(self, problem: Problem) -> str | None:
        return self.reason


def with_answers(explanation: Explanation, **changes: Any) -> Explanation:
    return Explanation(tuple(replace(a, **changes) if a.row is not None else a for a in explanation.answers))


def with_values(explanation: Explanation, **values: Any) -> Explanation:
    changed = (replace(a, row={**a.row, **values}) if a.row is not None else a for a in explanation.answers)
    return Explanation(tuple(changed))


def found(*rows: dict[str, Any]) -> Explanation:
    return Explanation(tuple(Answer(Status.FOUND, row, objective=0.0) for row in rows))


def writes_to_the_factual(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    factual["income"] = 0.0
    return explanation


def writes_to_the_problem(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    problem.labels[0] = "good" if problem.labels[0] == "bad" else "bad"
    return explanation


def writes_to_the_estimator(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    problem.classifier.estimator.coef_ += 1e-9
    return explanation


def draws_from_numpy(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    np.random.random()  # noqa: NPY002
    return explanation


def draws_from_python(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    random.random()
    return explanation


def tells_the_time(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    return with_values(explanation, income=float(time.monotonic_ns()))


def gives_back(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    return found(factual.iloc[0].to_dict(), factual.iloc[0].to_dict())


def is_late(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    raise TimeoutError("the deadline has passed")


def knows_nothing(explanation: Explanation, factual: pd.DataFrame, problem: Problem) -> Explanation:
    return Explanation.none(2, Status.GAVE_UP, Reason.FINISHED)


def returns(explanation: Explanation) -> Callable[..., Explanation]:
    return lambda *_: explanation


BREACHES: dict[str, tuple[Law, Any]] = {
    "one too few": (laws.as_many_answers_as_asked, Altered(lambda e, f, p: Explanation(e.answers[1:]))),
    "one too many": (laws.as_many_answers_as_asked, Altered(lambda e, f, p: Explanation(e.answers * 2))),
    "wrong class": (laws.an_own_point_is_valid, Altered(gives_back)),
    "wrong class, nothing claimed": (laws.an_own_point_is_valid, Altered(gives_back, claims=False)),
    "fraction": (laws.a_point_is_coherent, Altered(lambda e, f, p: with_values(e, visits=3.5))),
    "NaN": (laws.a_point_is_coherent, Altered(lambda e, f, p: with_values(e, income=float("nan")))),
    "unknown category": (laws.a_point_is_coherent, Altered(lambda e, f, p: with_values(e, city="Trier"))),
    "unknown column": (laws.a_point_is_coherent, Altered(lambda e, f, p: with_values(e, wage=1.0))),
    "immutable": (
        laws.a_point_is_permitted,
        Altered(lambda e, f, p: with_values(e, age=int(f["age"].iloc[0]) + 1)),
    ),
    "out of bounds": (laws.a_point_is_permitted, Altered(lambda e, f, p: with_values(e, income=101.0))),
    "special code": (laws.a_point_is_permitted, Altered(lambda e, f, p: with_values(e, delay=-1))),
    "the factual": (laws.a_point_is_not_the_factual, Altered(gives_back)),
    "twice": (laws.points_differ, Altered(lambda e, f, p: Explanation(e.answers[:1] * 2))),
    "moody": (laws.equal_generators_give_equal_answers, Altered(tells_the_time)),
    "draws": (laws.equal_generators_give_equal_answers, Declares(lambda e, f, p: e, deterministic=True)),
    "more than one": (laws.one_that_gives_one_gives_no_more, Declares(lambda e, f, p: e, gives="one")),
    "a few": (laws.one_that_gives_one_gives_no_more, Declares(lambda e, f, p: e, gives="a few")),
    "writes to the factual": (laws.inputs_stay_untouched, Altered(writes_to_the_factual)),
    "writes to the problem": (laws.inputs_stay_untouched, Altered(writes_to_the_problem)),
    "writes to the estimator": (laws.inputs_stay_untouched, Altered(writes_to_the_estimator)),
    "draws from numpy": (laws.global_generators_stay_untouched, Altered(draws_from_numpy)),
    "draws from python": (laws.global_generators_stay_untouched, Altered(draws_from_python)),
    "no reason": (laws.a_refusal_is_a_sentence, Refuses(knows_nothing)),
    "no detail": (
        laws.a_refusal_is_a_sentence,
        Altered(returns(Explanation.none(2, Status.UNSUPPORTED, Reason.REFUSED))),
    ),
    "wrong claim": (laws.a_claim_is_the_objective, Altered(lambda e, f, p: with_answers(e, objective=0.0))),
    "no claim": (laws.a_claim_is_the_objective, Altered(lambda e, f, p: with_answers(e, objective=None))),
    "claim of nothing": (laws.a_claim_is_the_objective, Altered(lambda e, f, p: e, claims=False)),
    "bound above": (
        laws.a_bound_is_below_the_objective,
        Altered(lambda e, f, p: with_answers(e, objective=1.0, bound=1.1)),
    ),
    "proof without bound": (
        laws.a_bound_is_below_the_objective,
        Altered(lambda e, f, p: with_answers(e, status=Status.OPTIMAL)),
    ),
    "proof with a gap": (
        laws.a_bound_is_below_the_objective,
        Altered(lambda e, f, p: with_answers(e, status=Status.OPTIMAL, objective=1.0, bound=0.9)),
    ),
    "false optimum": (
        laws.nothing_sampled_beats_a_proof,
        Altered(lambda e, f, p: with_answers(e, status=Status.OPTIMAL)),
    ),
    "false infeasibility": (
        laws.nothing_sampled_beats_a_proof,
        Altered(returns(Explanation.none(2, Status.INFEASIBLE, Reason.PROOF))),
    ),
    "raises when late": (laws.a_past_deadline_is_answered, Altered(is_late)),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_law_catches(problem_of: ProblemOf, breach: str) -> None:
    """Each law fails for a method that breaks it."""
    law, method = BREACHES[breach]
    problem = problem_of.__wrapped__("lr")  # type: ignore[attr-defined]  # a copy of its own: some write to it
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:3]
    with pytest.raises((AssertionError, TimeoutError)):
        law(Case(method, problem, factuals))


@dataclass(frozen=True)
class RefusesRashly(Refuses):
    """A method that writes to the problem that it refuses, and draws from a global generator."""

    def refuses(self, problem: Problem) -> str | None:
        problem.labels[0] = "good" if problem.labels[0] == "bad" else "bad"
        random.random()
        return self.reason


@pytest.mark.parametrize("law", laws.ALL, ids=lambda law: law.__name__)
def test_a_law_about_answers_is_skipped_where_there_are_none(problem: Problem, law: Law) -> None:
    """With the reason of the method; those about refusals are kept."""
    method = Refuses(knows_nothing, reason="it takes no model at all")
    case = Case(method, problem, problem.train.loc[~problem.valid(problem.train)].iloc[:1])
    if law in laws.OF_REFUSALS:
        laws.judge(case, law)
    else:
        with pytest.raises(pytest.skip.Exception, match="it takes no model at all"):
            laws.judge(case, law)


@pytest.mark.parametrize("law", laws.OF_REFUSALS, ids=lambda law: law.__name__)
def test_a_law_about_refusals_catches(problem_of: ProblemOf, law: Law) -> None:
    """Also where others are skipped: a refusal without a reason, and one that leaves traces."""
    problem = problem_of.__wrapped__("lr")  # type: ignore[attr-defined]  # a copy of its own: it is written to
    case = Case(RefusesRashly(knows_nothing, reason="no"), problem, problem.train.iloc[:1])
    for kept in ((law,), (laws.points_differ, law)):
        with pytest.raises(AssertionError):
            laws.judge(case, *kept)


def test_every_law_has_its_breach() -> None:
    assert {law for law, _ in BREACHES.values()} == set(laws.ALL)


def test_a_method_that_takes_nothing_is_caught(problem: Problem) -> None:
    """Refusing everything, and finding nothing anywhere, break the law that some problem is taken."""
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:1]
    for method in (Refuses(knows_nothing, reason="it takes no model at all"), Altered(knows_nothing)):
        with pytest.raises(AssertionError):
            laws.some_problem_is_taken([Case(method, problem, factuals)])
