"""Targets, values and changes in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, product
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.gaps import missing, same
from harness.core.notation import DIGITS, MOST, number, within
from harness.core.objective import Objective
from harness.core.space import Feature, Space
from harness.core.target import Classes, Interval, Label, Target

TERMS = {  # of an objective, as a reader calls them
    "l0": "number of changes",
    "l1": "l1",
    "l2sq": "squared l2",
    "linf": "largest change",
    "mad_l1": "l1 in units of MAD",
    "gower": "Gower distance",
    "mahalanobis": "Mahalanobis distance",
    "slack": "distance from the data's hull",
    "rarity": "negative log-likelihood",
    "woe_l1": "distance between bins in weight of evidence",
    "woe_mahalanobis": "distance from the mean of the training rows in weight of evidence",
    "woe_outcome": "distance of the outcome from its target",
}
HOLDS, BROKEN, UNCHECKED = "holds", "broken", "not checked"  # of the checker, on the region of an answer
READ = "read are linear models, networks of ReLUs, and trees and sums of them"  # by exact methods
PREDICT = "nearest, md_pso and others that only predict take it"
MAKE_IT = "make it with `python -m harness environments make"
NOT_STARTED = "cannot be started"  # of a program
MENDABLE = (MAKE_IT, NOT_STARTED)  # what a method lacks today, and may have tomorrow
SATISFIED = "the model already says what is wanted of this factual"


def some(values: Iterable[object], most: int) -> str:
    """Values in a sentence, as many as ``most``, and how many there are beyond.

    >>> some("abc", 2)
    'a, b and 1 more'
    """
    texts = list(map(str, values))
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def number_of(count: int, what: str) -> str:
    """A number of things in words.

    >>> number_of(1, "factual"), number_of(2, "factual")
    ('1 factual', '2 factuals')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"


def scored(classifier: Classifier, frame: pd.DataFrame, targets: Sequence[Target]) -> list[tuple[float, Any]]:
    """Score and prediction of each decoded row.

    The score is the model's own (probability, or decision value): of its second class where it has two, which is what a
    threshold is compared with; of the class that the row's target wants where it has more, the greatest where several
    are wanted; in a regression the predicted number.
    """
    if frame.empty:
        return []
    decided, scores = classifier.graded(frame)
    predicted = classifier.named(decided)
    if scores.ndim > 1:
        scores = np.array([_wanted(classifier, *pair) for pair in zip(scores, targets, strict=True)])
    return list(zip(scores.tolist(), predicted.tolist(), strict=True))


def _wanted(classifier: Classifier, scores: np.ndarray, target: Target) -> float:
    """The greatest of one row's scores, shape (classes,), of a class that its target wants."""
    names = target.values if isinstance(target, Classes) else (scored_class(classifier, target),)
    return float(scores[[classifier.code(name) for name in names]].max())


def scored_class(classifier: Classifier, target: Target) -> Any:
    """The class that a score is of, or several in words; None in a regression."""
    if isinstance(target, Interval):
        return None
    if isinstance(target, Classes):
        return target_text(target)
    return classifier.classes[1] if classifier.binary else target.value if isinstance(target, Label) else target.label


def target_text(target: Target) -> str:
    """A target in words.

    >>> target_text(Interval(low=12.0))
    'at least 12'
    >>> target_text(Interval(low=np.nextafter(12.0, np.inf)))
    'more than 12'
    """
    if isinstance(target, Label):
        return str(target.value)
    if isinstance(target, Classes):
        return " or ".join(map(str, target.values))
    low, high = (number(end) for end in (target.low, target.high))
    if isinstance(target, Interval):
        above = f"{'more than' if _next_to_shorter(target.low, -np.inf) else 'at least'} {low}"
        below = f"{'less than' if _next_to_shorter(target.high, np.inf) else 'at most'} {high}"
        if np.isinf(target.low) or np.isinf(target.high):
            return below if np.isinf(target.low) else above
        closed = above.startswith("at") and below.startswith("at")
        return f"{low} to {high}" if closed else f"{above} and {below}"
    return f"{target.label} with a probability of {low} to {high}"


def _next_to_shorter(end: float, outwards: float) -> bool:
    """Whether an end is the first number beyond one that a user would write, and leave out."""
    return len(repr(float(np.nextafter(end, outwards)))) < len(repr(float(end)))


def minimised(claim: Objective) -> str:
    """What an objective is the sum of.

    >>> from harness.core.objective import Term
    >>> minimised(Objective((Term("l1"), Term("l0", 10000))))
    'l1 + 10000 × number of changes'
    """
    named = [(term.weight, TERMS.get(term.name, term.name)) for term in claim.terms]
    return " + ".join(name if weight == 1 else f"{weight:g} × {name}" for weight, name in named)


def objective_text(value: float) -> str:
    """The value of an objective: as ``number``, and to four decimals where a term of great weight takes the digits.

    >>> objective_text(20000.03719), objective_text(0.0371234567)
    ('20000.0372', '0.0371235')
    """
    return number(value) if abs(value) < 100 else f"{value:.4f}".rstrip("0").rstrip(".")


def legible(
    space: Space,
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    valid: Callable[[pd.DataFrame], np.ndarray],
) -> list[dict[str, Any]]:
    """Counterfactuals as a reader is told them: with their changed numbers as they stand they are valid and permitted.

    Six significant digits, or as many more as it takes, rounded to the nearest, or else away from the factual; to be
    written to ``MOST`` digits, which are no more than these.

    Parameters
    ----------
    pairs
        A factual and an accepted counterfactual each, as decoded rows.
    valid
        Of decoded rows, whether the model accepts each, bool; asked where writing rounds a number.
    """
    told = [dict(row) for _, row in pairs]
    left = list(range(len(pairs)))
    for digits, away in product(range(DIGITS, MOST), (False, True)):
        rounded = {place: rounded_row(space, *pairs[place], digits, away) for place in left}
        left = [place for place in left if rounded[place] != told[place]]
        if not left:
            break
        factuals, frame = space.frame(pairs[place][0] for place in left), space.frame(rounded[place] for place in left)
        broken = (space.violations(factuals, each) for each in (frame, space.frame(told[place] for place in left)))
        fine = valid(frame) & np.array([set(own) <= set(full) for own, full in zip(*broken, strict=True)])
        for place in compress(left, fine):
            told[place] = rounded[place]
        left = list(compress(left, ~fine))
    return told


def rounded_row(
    space: Space, factual: Mapping[str, Any], row: Mapping[str, Any], digits: int = DIGITS, away: bool = False
) -> dict[str, Any]:
    """A decoded row with its changed numbers as they are written, to the nearest, or ``away`` from the factual.

    In full are those that would be the factual's.
    """
    found = dict(row)
    for feature in space.features:
        value, origin = row.get(feature.name), factual[feature.name]
        if not feature.numeric or not isinstance(value, int | float | np.number) or same(value, origin):
            continue
        near = feature.written(value, digits)
        if away and not missing(origin) and near != value:
            near = within(float(value), upwards=value > origin, digits=digits)
        found[feature.name] = value if near == origin else near
    return found


def changes(features: Sequence[Feature], factual: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What changes between two decoded rows, in one line; the second may be empty, or one of ``legible``.

    >>> job = Feature("job", "categorical", ("none", "clerk"))
    >>> changes([Feature("age", "integer"), job], {"age": 30, "job": "none"}, {"age": 30, "job": "clerk"})
    'job: none → clerk'
    """
    moved = [f for f in features if not same(row.get(f.name, factual[f.name]), factual[f.name])]
    return "; ".join(f"{f.name}: {f.text(factual[f.name])} → {f.text(row[f.name], MOST)}" for f in moved)
