"""The harness in a notebook: a table and a fitted model in, explanations and metrics out.

>>> import pandas as pd
>>> from sklearn.compose import make_column_selector, make_column_transformer
>>> from sklearn.ensemble import RandomForestClassifier
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import OneHotEncoder
>>> from harness.data.sources import RAW
>>> from harness.library import explain, measure, pose
>>> from methods.ce_ocl import CeOcl

>>> frame = pd.read_csv(RAW / "german_credit.csv")
>>> texts = OneHotEncoder(), make_column_selector(dtype_exclude="number")
>>> forest = RandomForestClassifier(25, max_depth=4, random_state=0)
>>> pipeline = make_pipeline(make_column_transformer(texts, remainder="passthrough"), forest)
>>> pipeline = pipeline.fit(frame.drop(columns="class"), frame["class"])

>>> question = pose(frame, "class", pipeline, desired="good", immutable=["age", "personal_status"])
>>> explanation = explain(CeOcl(), question, 11, n=3)  # a row, or a person: values by feature
>>> print(explanation)  # in a notebook, simply: explanation
Factual 11: the model says bad, wanted is good.
               factual   CE 1        CE 2        CE 3
duration       48        → 34        → 34        → 30
credit_amount  4308      → 3913      → 3004      → 3913
-----------------------------------------------------------
status                   OPTIMAL     OPTIMAL     OPTIMAL
checked                  ✓ accepted  ✓ accepted  ✓ accepted
score of good  0.431131  → 0.516845  → 0.516845  → 0.516845
prediction     bad       → good      → good      → good
objective                0.227617    0.277633    0.28644
gap                      0           0           0
unchanged: checking_status, credit_history, purpose, savings_status, employment,
  installment_commitment, personal_status, other_parties, residence_since, property_magnitude, age,
  other_payment_plans, housing, existing_credits, job, num_dependents, own_telephone, foreign_worker
>>> measure(explanation, ["l0", "l1"])
distance/l0    2.000000
distance/l1    0.263897
Name: 11, dtype: float64
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from harness.core.classifier import Classifier
from harness.core.doubts import doubts, with_doubts
from harness.core.errors import DatasetError, HarnessError, UnsupportedError
from harness.core.explanation import Answer, Explanation, GroupExplanation, Status
from harness.core.method import Deadline, Explainer, Method, equal, prepare, refusal
from harness.core.metric import Metric
from harness.core.numbers import check_asked_for, whole
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.python import in_python, python_errors
from harness.core.randomness import generators_kept, seeded
from harness.core.space import Actionability, Kind
from harness.core.target import Target, others
from harness.core.wording import SATISFIED
from harness.data import Dataset, load_dataset, parse_target
from harness.data.costs import costed
from harness.data.csv_load import check_columns
from harness.data.csv_settings import check_asked
from harness.data.dataset import OPPOSITE
from harness.data.features import OF_COSTS, bounds_of, check_ranked
from harness.data.findings import with_findings
from harness.data.in_memory import check_frame, check_settings, plain, settings_of
from harness.evaluation import checker
from harness.evaluation.lookup import metric_named
from harness.execution.clocks import CompileClock, say_compiling, told
from harness.execution.contract import breach, refused
from harness.execution.experiment import entropy
from harness.execution.messages import ExplainRequest
from harness.execution.person import Person, person_of
from harness.execution.pool import Limits, Pool
from harness.execution.task import Task
from harness.models.adopt import adopt, check_file, doubt, predicts_numbers
from harness.models.equations import equations
from harness.models.runtime.source import source_of
from harness.models.scorecard import as_scorecard
from harness.reports.group_explained import GroupExplained
from harness.reports.person import Context, Explained
from harness.store.rows import answer_row, group_line

RECENT = 4  # fitted methods that are kept for the next person

_clock = CompileClock(lambda ours, seconds: say_compiling(ours))
_recent: list[tuple[Method, Problem, Explainer]] = []


def _check_model(model: Any, classes: Any) -> None:
    if model is None:
        raise HarnessError("there is no model to ask; give model=, a fitted scikit-learn estimator or pipeline.")
    if isinstance(classes, str) or not isinstance(classes, Iterable | None):
        raise HarnessError(f"classes is {classes!r}; give a list of the classes' names, in the model's order.")


@python_errors()
def pose(
    frame: pd.DataFrame | Dataset,
    target: str | None = None,
    model: Any = None,
    desired: Any = None,
    immutable: Sequence[str] = (),
    features: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None = None,
    threshold: float | None = None,
    classes: Sequence[Any] | None = None,
    **settings: Any,
) -> Task:
    """The data, the model, and the question of each row: what is asked about a table and a fitted model.

    Parameters
    ----------
    frame
        Features and the target's column; kinds, categories and bounds are inferred of all rows where ``features`` does
        not say. Or what ``harness.data.load_csv`` read, which knows how its columns are written, and which rows train.
    target
        The target's column; None where the table has none: what the model predicts stands for it.
    model
        A fitted scikit-learn estimator or pipeline, trained on columns of ``frame`` alone; a ``Classifier``; a model of
        another library, or its ``ModelSource`` (``task="regression"`` where it predicts a number).
    desired
        The class that a counterfactual should get, a list of some, or ``other`` than the model says; for regression
        such as ``>= 12``. With two classes the other one where None.
    immutable
        Features that no counterfactual may change.
    features
        Attributes of some columns by name, as ``{"age": {"actionability": "increase"}}``; or a list of those to use.
    threshold
        The model's second class iff its score exceeds this; the model's own rule where None.
    classes
        What the target's column calls the model's classes, in the order of its ``classes_``, if otherwise.
    settings
        Anything else that ``harness.data.load_dataset`` takes, such as ``constraints=["loan <= 5 * income"]``.

    Raises
    ------
    HarnessError
        If table, model and target do not fit.
    """
    _check_model(model, classes)
    immutable, features = ([one] if isinstance(one, str) else plain(one) for one in (immutable, features))
    if isinstance(frame, Dataset):
        dataset = _amended(frame, target, immutable, features, settings)
    elif isinstance(frame, pd.DataFrame) and not frame.empty:
        check_frame(frame, target, features, settings.get("drop"))
        given = settings_of(frame, target, features, {"immutable": immutable, **settings})
        dataset = _loaded(frame, target, model, classes, given | ({} if desired is None else {"desired": desired}))
    else:
        raise DatasetError(
            "there is no table to ask about; give a DataFrame with rows, or what load_csv reads of a file."
        )
    data = dataset.space, dataset.frame, dataset.classes
    classifier = adopt(model, *data, name=dataset.name, threshold=threshold, names=classes)
    if target is None and not isinstance(frame, Dataset):
        dataset = replace(dataset, labels=classifier.predict(dataset.frame))
    return _posed(dataset, classifier, parse_target(dataset, desired))


def _posed(dataset: Dataset, classifier: Classifier, wanted: Target | str) -> Task:
    """Every row's question: of ``other``, any class but the one that the model gives it."""
    if why := doubt(classifier, dataset.frame, dataset.labels):
        logging.getLogger(__name__).warning("%s", why)
    if isinstance(wanted, str):
        targets = others(classifier.classes, classifier.predict(dataset.frame))
        posed = others(classifier.classes, reversed(classifier.classes))
    else:
        targets, posed = [wanted] * len(dataset.frame), [wanted]
    train = dataset.frame.iloc[dataset.train]
    known = dataset.space, classifier, train, dataset.labels[dataset.train]
    made = tuple(equations(dataset.space, train, dataset.causality)) if dataset.causality else ()
    problems = {each: Problem(*known, each, equations=made) for each in posed}
    return Task(dataset, classifier, dataset.frame, dict(zip(dataset.frame.index, targets, strict=True)), problems)


def _loaded(
    frame: pd.DataFrame, target: str | None, model: Any, classes: Sequence[Any] | None, settings: Mapping[str, Any]
) -> Dataset:
    """The table as a dataset; without a target its classes are those of the model, and no row has a label."""
    known = model if isinstance(model, Classifier) else as_scorecard(model)
    words = target in frame and not is_numeric_dtype(frame[target])  # then the model is told not to fit
    regression = predicts_numbers(model) and not words
    if target is None and not regression and classes is None and (source := source_of(model)) is not None:
        check_file(source)
        raise HarnessError("a model of another library is asked with the target's column, or with classes=[...].")
    digest = hashlib.sha256(pd.util.hash_pandas_object(frame.astype(str)).to_numpy().tobytes()).hexdigest()
    frame, given = frame.reset_index(drop=True), {"split": "none", **settings}
    if target is not None:
        task = "regression" if regression else "classification"
        given = {"task": task, **given}
        return _read(frame, target, given, digest)
    column = "prediction"
    while column in frame:
        column += "_"
    desired = given.pop("desired", OPPOSITE)
    table = frame.assign(**{column: 0.0})
    given |= {"task": "regression", "desired": ">= 0"}  # of the column of zeros
    dataset = _read(table, column, given, digest)
    own = known.classes if isinstance(known, Classifier) else getattr(known, "classes_", ())
    names = () if regression else tuple(np.asarray(own if classes is None else list(classes)).tolist())
    return replace(dataset, classes=names, desired=desired)


def _read(frame: pd.DataFrame, target: str, settings: Mapping[str, Any], digest: str) -> Dataset:
    check_settings(settings)
    dataset = load_dataset("the table", (), target, **settings, tables=([frame], digest))
    check_columns(dataset)
    return with_findings(dataset)


def _amended(
    dataset: Dataset,
    target: str | None,
    immutable: Sequence[str],
    features: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None,
    settings: Mapping[str, Any],
) -> Dataset:
    """A dataset whose features have other attributes."""
    if target is not None or settings or (features is not None and not isinstance(features, Mapping)):
        raise DatasetError(
            "a dataset that was read has its target and columns; give model, desired, immutable and attributes of "
            "features, and all else to load_csv."
        )
    changes: dict[str, dict[str, Any]] = {name: {"actionability": "immutable"} for name in immutable}
    for name, entry in (features or {}).items():
        check_asked(name, entry)
        changes.setdefault(name, {}).update(entry or {})
        if "bounds" in changes[name]:
            changes[name]["bounds"] = bounds_of(dataset.space[name], changes[name]["bounds"])
    costs = {name: {key: entry.pop(key) for key in OF_COSTS if key in entry} for name, entry in changes.items()}
    space = dataset.space.replace(changes)
    for feature in (space[name] for name in changes):
        if feature.actionability is Actionability.CONDITIONAL and not (feature.order or feature.kind is Kind.ORDINAL):
            check_ranked(feature.name, feature.categories, "order")
    priced = tuple(costed(f, dataset.frame[f.name].iloc[dataset.train], costs.get(f.name, {})) for f in space.features)
    return replace(dataset, space=replace(space, features=priced))


@python_errors()
def explain(
    method: Method,
    task: Task,
    person: Person,
    n: int = 1,
    seed: int = 0,
    time_limit: float = 5.0,
    worker: bool = False,
) -> Explained:
    """Ask a method about one person, and check each answer as ``python -m harness.check`` does.

    Parameters
    ----------
    method, task
        Who is asked, such as ``CeOcl()``, and what ``pose`` returned.
    person
        The number of a row of the table (from 0), or a person of any kind: values by feature, or a frame of one row.
    n
        How many counterfactuals.
    seed
        With the row's number it decides all that is random, as on the command line; the global state of ``random`` and
        ``numpy.random`` is left as it was.
    time_limit
        The limit in seconds that the method is given. Only a ``worker`` is stopped where it takes longer.
    worker
        Ask in a process of its own, started for this, which a crash or a hang cannot take down with it.

    Returns
    -------
    The answers, with ``context``: print it, or have a notebook show it.

    Raises
    ------
    HarnessError
        For a person who is no point of the feature space, and for a method that breaks its contract.
    """
    _check(method, task, n, seed, time_limit)
    factual, problem = person_of(task, person)
    claim: Objective | None = None
    with generators_kept():
        # Of rows of the table many are asked about at once, which takes a library hardly longer than one.
        known = isinstance(person, int | np.integer)
        if task.satisfied(person) if known else problem.valid(factual)[0]:
            found = refused(n, SATISFIED)
        elif worker:
            limits = Limits(time=time_limit)
            with told(f"asking {type(method).__name__} in a process of its own"):
                (outcome,) = Pool().explain(method, lambda _: problem, factual, n, entropy(seed), limits)
            found, claim = outcome.explanation, outcome.claim
        else:
            found, claim = _ask(method, problem, factual, n, seed, time_limit)
    return in_context(found, claim, problem, factual)


@python_errors()
def explain_group(
    method: Method, task: Task, people: Sequence[int], seed: int = 0, time_limit: float = 120.0
) -> GroupExplained:
    """Ask a method for the fewest counterfactuals that serve several people, as ``group=true`` in experiments.

    Parameters
    ----------
    method
        One that explains groups, such as ``ColumnGeneration`` (of discrete features: ``discretise="quantile"`` in
        ``pose``, before the model is trained) or ``GroupGreedy``.
    task
        What ``pose`` returned.
    people
        Numbers of rows of the table; of whom the model already says what is wanted is left out.
    seed
        Of all that is random.
    time_limit
        Seconds for all of them; kept by ending the process that is asked.

    Returns
    -------
    The counterfactuals, who is served by which, and each person's own answer, checked: print it.

    Raises
    ------
    HarnessError
        For rows that do not exist, people who want different things, and where nobody needs a counterfactual.
    """
    _check(method, task, 1, seed, time_limit)
    several = isinstance(people, Iterable) and not isinstance(people, str | Mapping)
    numbers = dict.fromkeys(_row(task, one) for one in (people if several else [people]))
    satisfied = tuple(one for one in numbers if task.satisfied(one))
    posed = [person_of(task, one) for one in numbers if one not in satisfied]
    if not posed:
        nobody = "nobody of these people needs a counterfactual" if numbers else "no people are given"
        raise HarnessError(f"{nobody}; give numbers of rows that the model refuses.")
    problem = posed[0][1]
    if any(other is not problem for _, other in posed):
        raise HarnessError("these people want different things; give desired to pose, or people of one prediction.")
    factuals = pd.concat([factual for factual, _ in posed])
    with told(f"asking {type(method).__name__} about {len(factuals)} people"):
        (outcome,) = Pool().explain_groups(method, {"all": (problem, factuals)}, entropy(seed), Limits(time=time_limit))
    found = outcome.explanation or GroupExplanation((), status=outcome.reply.status)
    claim = None if outcome.claim is None else outcome.claim.limiting()
    own, rows = dict[Any, Explained](), dict[Any, Mapping[str, Any]]()
    for index in factuals.index:
        point = found.assignment.get(index)
        answer = Answer(Status.GAVE_UP) if point is None else Answer(Status.FOUND, found.points[point].row)
        own[index] = in_context(Explanation((answer,)), claim, problem, factuals.loc[[index]])
        rows[index] = answer_row(index, 1, answer) | {"point": point}
    line = group_line("group", list(factuals.index), found, status=str(found.status))
    for index, word in checker.line_faults(line, rows, factuals, problem, problem.target, claim).items():
        if own[index].context.verdicts[0] in {"none", checker.ACCEPTED}:
            own[index] = replace(own[index], context=replace(own[index].context, verdicts=(word,)))
    return GroupExplained(found, own, in_python("".join(outcome.reply.detail.strip().splitlines()[-1:])), satisfied)


def _check(method: Any, task: Any, n: Any, seed: Any, time_limit: Any) -> None:
    """Refuse what is no method, question or number; have the method make what it needs."""
    if not isinstance(task, Task):
        given = f"the question is a {type(task).__name__}"
        raise HarnessError(f"{given}; give explain(method, question, person), the question as pose returns it.")
    prepare(method)
    check_asked_for(n, seed, time_limit)


def _row(task: Task, person: Any) -> int:
    """The number of a row, if it is one."""
    if not whole(person):
        raise DatasetError(f"{person!r} is no row of the table; give numbers of rows, such as [3, 7, 12].")
    return int(person_of(task, person)[0].index[0])


def _ask(
    method: Method, problem: Problem, factual: pd.DataFrame, n: int, seed: int, limit: float
) -> tuple[Explanation, Objective | None]:
    """The answers, and what the method claims to minimise."""
    explainer = next((kept for known, of, kept in _recent if of is problem and equal(known, method)), None)
    explainer = None if getattr(explainer, "lost", False) else explainer
    if explainer is None:
        if why := refusal(method, problem):
            return refused(n, in_python(why)), None
        seeded(entropy(seed)(None))
        try:
            with told(f"fitting {type(method).__name__}, once for all people"):
                explainer = method.fit(problem)
        except UnsupportedError as fault:
            return refused(n, in_python(str(fault))), None
        _recent[:] = [*_recent, (method, problem, explainer)][-RECENT:]
    own = entropy(seed)(factual.index[0])
    with doubts() as met:
        found = explainer.explain(factual.copy(), n, seeded(own), Deadline.after(limit))
    claim = method.objective(problem)
    if why := breach(found, problem, ExplainRequest(factual, n, own, limit), claim is not None):
        raise HarnessError(f"{type(method).__name__} breaks the contract of methods: {why}.")
    return with_doubts(found, met), claim


def in_context(found: Explanation, claim: Objective | None, problem: Problem, factual: pd.DataFrame) -> Explained:
    """The answers with what a reader needs beside them: each is checked, and scored by the model.

    Parameters
    ----------
    claim
        What the method claims to minimise; None where it claims nothing.
    """
    space, classifier = problem.space, problem.classifier
    imposed = problem.equations if claim is not None and claim.causal else ()
    rows = [answer_row("", place + 1, answer) for place, answer in enumerate(found.answers)]
    valid = checker.valid_places(rows, space, classifier, {"": problem.target})
    question = factual, space, classifier, problem.target, claim, imposed
    words, regions, points = [], [], list[Mapping[str, Any] | None]()
    for place, row in enumerate(rows):
        verdict = None if row["row"] is None else checker.examine(row, *question, True if place in valid else None)
        words.append("none" if verdict is None else verdict["verdict"])
        regions.append("" if verdict is None else verdict.get("region", ""))
        points.append(None if verdict is None or verdict["incoherent"] else row["row"])
    context = Context(problem, factual, tuple(words), tuple(points), tuple(regions))
    return Explained(found.answers, found.conflict, found.trace, context=context)


@python_errors()
def measure(
    explanations: Explained | GroupExplained | Sequence[Explained],
    metrics: str | Metric | Iterable[str | Metric],
    population: str = "accepted",
) -> pd.Series | pd.DataFrame:
    """Metrics of what ``explain`` or ``explain_group`` returned, over all answers of each person together.

    Parameters
    ----------
    explanations
        One of them, or a list.
    metrics
        Names such as ``l1``, ``proximity/l1`` or ``mypackage.mymodule.mymetric``, or metrics themselves.
    population
        Which answers they see: ``accepted``, those in which the checker found no fault, or ``returned``.

    Returns
    -------
    Of one explanation a Series by metric, else a DataFrame with a row for each; NaN where undefined.

    Raises
    ------
    HarnessError
        For a metric that does not exist, and for an explanation that is not from ``explain``.
    """
    if population not in ("accepted", "returned"):
        raise HarnessError(f"population={population} does not exist; allowed: accepted, returned.")
    named = metrics if isinstance(metrics, Iterable) and not isinstance(metrics, str) else [metrics]
    found = [metric_named(name) for name in named]
    if isinstance(explanations, GroupExplained):
        explanations = list(explanations.people.values())
    if isinstance(explanations, Explanation) or not isinstance(explanations, Iterable):
        return _measured(explanations, found, population)
    rows = [_measured(explanation, found, population) for explanation in explanations]
    return pd.DataFrame(rows, columns=pd.Index([metric.name for metric in found]))


def _measured(explanation: Any, metrics: Sequence[Metric], population: str) -> pd.Series:
    if not isinstance(explanation, Explained):
        raise HarnessError("this explanation does not know its factual; measure what harness.library.explain returns.")
    context = explanation.context
    problem, space = context.problem, context.problem.space
    judged = list(zip(explanation.answers, context.verdicts, context.points, strict=True))
    returned = [answer.row for answer, _, _ in judged if answer.row is not None]
    rows = {
        "returned": [answer.row for answer, _, point in judged if answer.row is not None and point is not None],
        "accepted": [answer.row for answer, word, _ in judged if answer.row is not None and word == checker.ACCEPTED],
    }
    stored = pd.DataFrame(returned, columns=space.index, dtype=object)
    frame = space.frame(rows[population])
    values = {m.name: m(context.factual, stored if m.over == "returned" else frame, problem) for m in metrics}
    return pd.Series(values, dtype=float, name=context.factual.index[0])
