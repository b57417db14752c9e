"""One explanation, readable: what changes from what to what, and what it is worth. As plain text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from harness.classifier import Classifier
from harness.explanation import Answer, Explanation
from harness.problem import Interval, Label, Target

# No colours but shades of the page's own: readable on white and on black, and by everybody.
FRAME = "border-collapse:collapse;font-variant-numeric:tabular-nums"
CELL = "padding:.2em .8em;text-align:left;vertical-align:top;border-top:1px solid rgba(127,127,127,.35)"
CHANGED = f"{CELL};font-weight:bold;background:rgba(127,127,127,.2);border-left:3px solid currentColor"
ASIDE = "margin:.4em 0;max-width:60em"
WIDTH = 100  # characters of a line of text, tables aside


def scored(classifier: Classifier, frame: pd.DataFrame, targets: Sequence[Target]) -> list[tuple[float, Any]]:
    """Score and prediction of each decoded row.

    The score is the model's own (probability, or decision value): of its second class where it has two, which is what a
    threshold is compared with; of the class that the row's target wants where it has more; in a regression the
    predicted number.
    """
    if frame.empty:
        return []
    scores, predicted = classifier.score(frame), classifier.predict(frame)
    if scores.ndim > 1:
        codes = [classifier.code(scored_class(classifier, target)) for target in targets]
        scores = scores[np.arange(len(frame)), codes]
    return list(zip(scores.tolist(), predicted.tolist(), strict=True))


def scored_class(classifier: Classifier, target: Target) -> Any:
    """The class that a score is of; None in a regression."""
    if isinstance(target, Interval):
        return None
    return classifier.classes[1] if classifier.binary else target.value if isinstance(target, Label) else target.label


def wish(target: Target) -> str:
    """A target in words.

    >>> wish(Interval(low=12.0))
    'at least 12'
    """
    if isinstance(target, Label):
        return str(target.value)
    low, high = (number(end) for end in (target.low, target.high))
    if isinstance(target, Interval):
        if np.isinf(target.low) or np.isinf(target.high):
            return f"at most {high}" if np.isinf(target.low) else f"at least {low}"
        return f"{low} to {high}"
    return f"{target.label} with a probability of {low} to {high}"


def number(value: Any) -> str:
    """A value to be read: numbers to six digits, whole ones in full."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return str(value)
    real = float(value)
    return str(int(real)) if real.is_integer() and abs(real) < 1e15 else f"{real:.6g}"


@dataclass(frozen=True)
class _Table:
    """What both forms show: a header and rows of texts; which cells are changes; sentences above and below."""

    title: str
    header: list[str]
    features: list[list[str]]
    facts: list[list[str]]
    unchanged: list[list[str]]
    notes: list[str]


def _table(explanation: Explanation) -> _Table:
    context = explanation.context
    assert context is not None
    problem, origin = context.problem, context.factual.iloc[0].to_dict()
    classifier, target = problem.classifier, problem.target
    answers = explanation.answers
    names = [f"CE {place}" for place in range(1, len(answers) + 1)]
    features: list[list[str]] = []
    unchanged: list[list[str]] = []
    for feature in problem.space.names:
        told = [_change(answer, feature, origin[feature]) for answer in answers]
        (features if any(told) else unchanged).append([feature, number(origin[feature]), *told])
    score, label = context.before
    of = scored_class(classifier, target)
    facts = [
        ["status", "", *(str(answer.status) for answer in answers)],
        ["checked", "", *("✓ valid" if word == "valid" else _verdict(word) for word in context.verdicts)],
        [
            "prediction" if of is None else f"score of {of}",
            number(score),
            *("" if after is None else f"→ {number(after[0])}" for after in context.after),
        ],
    ]
    if of is not None:
        facts.append(["prediction", str(label), *("" if a is None else f"→ {a[1]}" for a in context.after)])
    if any(answer.objective is not None for answer in answers):
        facts.append(["objective", "", *("" if a.objective is None else number(a.objective) for a in answers)])
    if any(answer.gap is not None for answer in answers):
        facts.append(["gap", "", *("" if answer.gap is None else number(answer.gap) for answer in answers)])
    title = f"Factual {context.factual.index[0]}: the model says {number(label)}, wanted is {wish(target)}."
    return _Table(title, ["", "factual", *names], features, facts, unchanged, _notes(explanation, names))


def _change(answer: Answer, feature: str, origin: Any) -> str:
    value = None if answer.row is None else answer.row.get(feature)
    if value is None or value == origin:
        return ""
    told = number(value)
    return f"→ {told}" if told != number(origin) else f"→ {value!r}"  # a change too small for six digits


def _verdict(word: str) -> str:
    return "–" if word == "none" else f"✗ {word}"


def _notes(explanation: Explanation, names: Sequence[str]) -> list[str]:
    """Why there is no counterfactual, once for all answers of which it is true."""
    why: dict[str, list[str]] = {}
    for name, answer in zip(names, explanation.answers, strict=True):
        if answer.row is None:
            lines = answer.detail.strip().splitlines() or [f"{answer.status}, {answer.reason}"]
            why.setdefault(lines[-1], []).append(name)
    notes = [f"{', '.join(places)}: {said}." for said, places in why.items()]
    if explanation.conflict and not any(", ".join(explanation.conflict) in note for note in notes):
        notes.append(f"These cannot hold together: {', '.join(explanation.conflict)}.")
    return notes


def as_text(explanation: Explanation) -> str:
    """A plain table: changed features, what became of each answer, and the names of what stays as it is."""
    table = _table(explanation)
    lines = [table.header, *table.features, *table.facts]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    told.insert(1 + len(table.features), "-" * (sum(widths) + 2 * len(widths) - 2))
    same = f"unchanged: {', '.join(row[0] for row in table.unchanged)}" if table.features and table.unchanged else ""
    below = [fill(line, WIDTH, subsequent_indent="  ") for line in (same, *table.notes) if line]
    return "\n".join([table.title, *told, *below])


def as_html(explanation: Explanation) -> str:
    """The same as HTML that needs nothing else; whatever came from data is escaped."""
    table = _table(explanation)
    head = "".join(f'<th scope="col" style="{CELL};border-top:none">{escape(name)}</th>' for name in table.header)
    unchanged = ""
    if table.unchanged:
        count = f"features{' unchanged' if table.features else ''}: {len(table.unchanged)}"
        rows = "".join(_row(row[:2], CELL) for row in table.unchanged)
        unchanged = f'<details><summary>{count}</summary><table style="{FRAME}"><tbody>{rows}</tbody></table></details>'
    changed = "".join(_row(row, CHANGED) for row in table.features)
    facts = "".join(_row(row, CELL) for row in table.facts)
    notes = "".join(f'<p style="{ASIDE}">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div><p style="{ASIDE}">{escape(table.title)}</p><table style="{FRAME}"><thead><tr>{head}</tr></thead>'
        f'<tbody>{changed}</tbody><tbody style="border-top:2px solid currentColor">{facts}</tbody></table>'
        f"{unchanged}{notes}</div>"
    )


def _row(cells: Sequence[str], style: str) -> str:
    name, factual, *told = cells
    rest = "".join(f'<td style="{style if text else CELL}">{escape(text)}</td>' for text in told)
    first = f'<th scope="row" style="{CELL};font-weight:normal">{escape(name)}</th>'
    return f'<tr>{first}<td style="{CELL}">{escape(factual)}</td>{rest}</tr>'
