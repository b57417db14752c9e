"""One explanation, readable: what changes from what to what, and what it is worth. As plain text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.conflict import conflict_text
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, Status
from harness.core.gaps import MISSED, missing, same
from harness.core.notation import DIGITS, MOST, ORIGIN
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Feature
from harness.core.wording import (
    SATISFIED,
    UNCHECKED,
    legible,
    minimised,
    number,
    objective_text,
    rounded_row,
    scored,
    scored_class,
    target_text,
)
from harness.evaluation.checker import ACCEPTED, exists, within_bounds
from harness.evaluation.export import unused, write_sheet
from harness.evaluation.scoring import GOWER
from harness.models.card import Card, card_of
from harness.reports.canvas import FORMATS, column_style, save_one
from harness.reports.person_figure import Person, figure
from harness.store.plain import to_plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# No colours but shades of the page's own: readable on white and on black, and by everybody.
FRAME = "border-collapse:collapse;font-variant-numeric:tabular-nums"
CELL = "padding:.2em .8em;text-align:left;vertical-align:top;border-top:1px solid rgba(127,127,127,.35)"
CHANGED = f"{CELL};font-weight:bold;background:rgba(127,127,127,.2);border-left:3px solid currentColor"
ASIDE = "margin:.4em 0;max-width:60em"
WIDTH = 100  # characters of a line of text, tables aside
SAID = ("status", "verdict", "objective", "bound", "gap", "score", "predicted")  # of each row of a frame


@dataclass(frozen=True)
class Context:
    """What a reader needs beside the answers.

    Parameters
    ----------
    factual
        One decoded row, whose index is the factual's id.
    verdicts
        The checker's word on each answer, as in ``harness.check``; ``none`` where there is no counterfactual.
    points
        Of each answer its point, as it is stored; None without one that exists.
    regions
        The checker's word on the region of each answer (see ``harness.evaluation.regions``), empty without one.
    """

    problem: Problem
    factual: pd.DataFrame
    verdicts: tuple[str, ...]
    points: tuple[Mapping[str, Any] | None, ...]
    regions: tuple[str, ...] = ()

    @cached_property
    def before(self) -> tuple[float, Any]:
        """Score and prediction of the factual, see ``scored``; asked of the model once somebody looks."""
        return scored(self.problem.classifier, self.factual, [self.problem.target])[0]

    @cached_property
    def after(self) -> tuple[tuple[float, Any] | None, ...]:
        """The same of each answer; None without a point that exists."""
        frames = [None if point is None else self.problem.space.frame([point]) for point in self.points]
        model, wanted = self.problem.classifier, [self.problem.target]
        return tuple(None if frame is None else scored(model, frame, wanted)[0] for frame in frames)

    @cached_property
    def told(self) -> tuple[Mapping[str, Any] | None, ...]:
        """Of each answer its point as a reader is told it, see ``legible``; None without one that exists."""
        (own,), space = self.factual.to_dict("records"), self.problem.space
        judged = list(zip(self.points, self.verdicts, strict=True))
        pairs = [(own, row) for row, word in judged if row is not None and word == ACCEPTED]
        found = iter(legible(space, pairs, self.problem.valid))
        return tuple(
            None if row is None else next(found) if word == ACCEPTED else rounded_row(space, own, row)
            for row, word in judged
        )


@dataclass(frozen=True)
class Explained(Explanation):
    """An explanation in its context: printed as a plain table, shown in notebooks as HTML."""

    context: Context = field(kw_only=True, compare=False, repr=False)

    def __str__(self) -> str:
        """A plain table: changed features, what became of each answer, and the names of what stays as it is."""
        if self.answers and all(answer.detail == SATISFIED for answer in self.answers):
            return f"Factual {_name(self)}: {SATISFIED}."
        table = _table(self)
        lines = [table.header, *table.features, *table.facts]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
        texts = ["  ".join(cells).rstrip() for cells in padded]
        texts.insert(1 + len(table.features), "-" * (sum(widths) + 2 * len(widths) - 2))
        kept = ", ".join(row[0] for row in table.unchanged)
        same = f"unchanged: {kept}" if table.features and table.unchanged else ""
        below = [fill(line, WIDTH, subsequent_indent="  ") for line in (same, *table.notes) if line]
        return "\n".join([table.title, *texts, *below])

    def _repr_html_(self) -> str:
        """The same as HTML that needs nothing else; whatever came from data is escaped."""
        table = _table(self)
        head = "".join(f'<th scope="col" style="{CELL};border-top:none">{escape(name)}</th>' for name in table.header)
        unchanged = ""
        if table.unchanged:
            count = f"features{' unchanged' if table.features else ''}: {len(table.unchanged)}"
            rows = "".join(_row(row[:2], CELL) for row in table.unchanged)
            rest = f'<table style="{FRAME}"><tbody>{rows}</tbody></table>'
            unchanged = f"<details><summary>{count}</summary>{rest}</details>"
        changed = "".join(_row(row, CHANGED) for row in table.features)
        facts = "".join(_row(row, CELL) for row in table.facts)
        notes = "".join(f'<p style="{ASIDE}">{escape(note)}</p>' for note in table.notes)
        return (
            f'<div><p style="{ASIDE}">{escape(table.title)}</p><table style="{FRAME}"><thead><tr>{head}</tr></thead>'
            f'<tbody>{changed}</tbody><tbody style="border-top:2px solid currentColor">{facts}</tbody></table>'
            f"{unchanged}{notes}</div>"
        )

    def to_frame(self) -> pd.DataFrame:
        """The factual and each answer as rows: how it came about, what the checker and the model say, the features.

        Names of columns that features have, too, end in an underscore. Dates are those, not days.
        """
        return as_frame(self)

    def to_excel(self, path: str | Path) -> None:
        """Write ``to_frame`` as an Excel file, in which gaps are called "missing".

        Raises
        ------
        HarnessError
            Without openpyxl, for another ending than ``.xlsx``, and where the file cannot be written.
        """
        file = Path(path).expanduser()
        if file.suffix.lower() != ".xlsx":
            raise HarnessError(f"{file} does not fit; give a file that ends in .xlsx.")
        write_sheet(file, as_frame(self, MISSED).reset_index(names=""))

    def plot(self, path: str | Path | None = None) -> Figure:
        """What changes, on the range and the distribution of each feature; see ``harness.reports.person_figure``.

        Parameters
        ----------
        path
            Of a file to write, that ends in ``.svg``, ``.pdf`` or ``.png``.

        Raises
        ------
        HarnessError
            For another ending, and a file that cannot be written.
        """
        table, context = _table(self), self.context
        signs = ["✓" if word == ACCEPTED else "–" if word == "none" else "✗" for word in context.verdicts]
        heads = [f"{name} {sign}" for name, sign in zip(table.header[2:], signs, strict=True)]
        facts = [fact for fact in table.facts if fact[0].startswith("score of") or fact[0] == "prediction"]
        faults = [(place, word) for place, word in enumerate(context.verdicts, 1) if word not in {ACCEPTED, "none"}]
        notes = [*table.notes, *(f"CE {place} ✗: {word}." for place, word in faults)]
        if any(answer.region for answer in self.answers):
            notes.append("Bands: the prediction is proven to stay as wanted while all features lie in them.")
        # A value that does not exist has no place on an axis.
        answers = [
            a if point is not None else Answer(Status.GAVE_UP)
            for a, point in zip(self.answers, context.points, strict=True)
        ]
        words = Person(table.title, notes, heads, facts)
        drawn = figure(words, context.problem, context.factual.iloc[0].to_dict(), answers, context.told)
        if path is not None:
            file = check_plot(path)
            try:
                with column_style():
                    save_one(drawn, file, table.title)
            except OSError as fault:
                raise HarnessError(
                    f"{file} cannot be written ({fault.strerror}); give a file in a folder that exists."
                ) from None
        return drawn


@dataclass(frozen=True)
class _Table:
    """What both forms show: a header and rows of texts, those of changed features first; a title and notes.

    ``facts`` end with a row for each feature that may lie in an interval around an answer without a loss of validity.
    """

    title: str
    header: list[str]
    features: list[list[str]]
    facts: list[list[str]]
    unchanged: list[list[str]]
    notes: list[str]


def _table(explanation: Explained) -> _Table:
    context = explanation.context
    problem, origin = context.problem, context.factual.iloc[0].to_dict()
    classifier, target = problem.classifier, problem.target
    answers, card = explanation.answers, card_of(classifier)
    cards = [None if after is None else card for after in context.after]  # none of values that do not exist
    names = [f"CE {place}" for place in range(1, len(answers) + 1)]
    features: list[list[str]] = []
    unchanged: list[list[str]] = []
    told = [row or answer.row for row, answer in zip(context.told, answers, strict=True)]
    for feature in problem.space.features:
        before = origin[feature.name]
        texts = [_change(*pair, feature, before) for pair in zip(told, cards, strict=True)]
        (features if any(texts) else unchanged).append([feature.name, _value(feature, before, card), *texts])
    score, label = context.before
    of = scored_class(classifier, target)
    facts = [
        ["status", "", *(str(answer.status) for answer in answers)],
        ["checked", "", *("✓ accepted" if word == ACCEPTED else _checked(word) for word in context.verdicts)],
        [
            "prediction" if of is None else f"score of {of}",
            number(score),
            *("" if after is None else f"→ {number(after[0])}" for after in context.after),
        ],
    ]
    if card is not None:
        rows = [None if own is None else answer.row for answer, own in zip(answers, cards, strict=True)]
        facts.append(["points", *_points(card, [origin, *rows])])
    if of is not None:
        facts.append(["prediction", str(label), *("" if a is None else f"→ {a[1]}" for a in context.after)])
    if any(answer.objective is not None for answer in answers):
        facts.append(["objective", "", *("" if a.objective is None else objective_text(a.objective) for a in answers)])
    elif any(answer.row is not None for answer in answers):
        facts.append(["Gower distance", "", *(_distance(explanation, place) for place in range(len(answers)))])
    if any(answer.gap is not None for answer in answers):
        facts.append(["gap", "", *("" if answer.gap is None else number(round(answer.gap, 9)) for answer in answers)])
    for feature in problem.space.features:
        intervals = [feature.span(*(answer.region or {}).get(feature.name, (0.0, 0.0))) for answer in answers]
        if any(intervals):
            facts.append([f"{feature.name} may be", "", *intervals])
    title = f"Factual {context.factual.index[0]}: the model says {number(label)}, wanted is {target_text(target)}."
    return _Table(title, ["", "factual", *names], features, facts, unchanged, _notes(explanation, names))


def _distance(explanation: Explained, place: int) -> str:
    """The Gower distance of an answer from the factual, for methods that claim no objective."""
    context, row = explanation.context, explanation.answers[place].row
    if row is None or context.after[place] is None:
        return ""
    space = context.problem.space
    return number(GOWER.evaluate(space, context.factual, space.frame([row]))[0])


def _change(row: Mapping[str, Any] | None, card: Card | None, feature: Feature, origin: Any) -> str:
    if row is None or feature.name not in row or same(row[feature.name], origin):
        return ""
    value = row[feature.name]
    text = _value(feature, value, card, MOST)
    text = f"→ {text}" if text != _value(feature, origin, card) else f"→ {value!r}"  # a change too small for six digits
    if card is None or feature.name not in card.names:
        return text
    points, bins = card[feature.name].points, card[feature.name].bins_of([origin, value])
    return f"{text}, {points[bins[1]] - points[bins[0]]:+.4g} points" if bins[0] != bins[1] else text


def _value(feature: Feature, value: Any, card: Card | None, digits: int = DIGITS) -> str:
    """A value, and the bin of a scorecard that it lies in."""
    text = feature.text(value, digits)
    if card is None or feature.name not in card.names:
        return text
    variable = card[feature.name]
    found = str(variable.bins[variable.bin_of(value)])
    return text if found == number(value, digits) else f"{text} in {found}"


def _points(card: Card, rows: Sequence[dict[str, Any] | None]) -> list[str]:
    """The points of the factual, and of each answer after it."""
    texts = ["" if row is None else f"{card.points(card.bins(pd.DataFrame([row])))[0]:.4g}" for row in rows]
    return [texts[0], *(f"→ {text}" if text else "" for text in texts[1:])]


def _checked(word: str) -> str:
    return "–" if word == "none" else f"✗ {word}"


def _notes(explanation: Explained, names: Sequence[str]) -> list[str]:
    """Why there is no counterfactual, once for all answers of which it is true."""
    why: dict[str, list[str]] = {}
    for name, answer in zip(names, explanation.answers, strict=True):
        if answer.row is None:
            lines = answer.detail.strip().splitlines() or [f"{answer.status}, {answer.reason}"]
            why.setdefault(lines[-1], []).append(name)
    notes = [f"{', '.join(places)}: {line.removesuffix('.')}." for line, places in why.items()]
    if explanation.conflict and not any(conflict_text(explanation.conflict) in note for note in notes):
        notes.append(f"These cannot hold together: {conflict_text(explanation.conflict)}.")
    return notes + list(_broken(explanation, names))


def _broken(explanation: Explained, names: Sequence[str]) -> Iterator[str]:
    """Values that do not exist, and the bounds and relations that the factual itself breaks, with who else does."""
    context, space = explanation.context, explanation.context.problem.space
    (own,) = context.factual.to_dict("records")
    answers = zip(names, explanation.answers, strict=True)
    found = [(name, to_plain(answer.row)) for name, answer in answers if answer.row]  # as what is judged
    for who, row in found:
        wrong = [each.name for each in space.features if not exists(each, row[each.name])]
        yield from (f"{who}: {row[name]!r} is no value of {name}." for name in wrong)
    for feature in (each for each in space.features if _beyond(each, own[each.name])):
        also = _too(who for who, row in found if _beyond(feature, row[feature.name]))
        low, high = (feature.text(end) for end in feature.bounds)
        yield f"The factual itself lies beyond the bounds of {feature.name}, {low} to {high}{also}."
    frame = space.frame(row for _, row in found)
    for relation in (each for each in space.relations if each.broken_by(context.factual).any()):
        also = _too(found[place][0] for place in np.flatnonzero(relation.broken_by(frame)))
        yield f"The factual itself breaks {relation}{also}; counterfactuals may not break it further."


def _too(answers: Iterable[str]) -> str:
    """What is said of answers that break what the factual breaks."""
    still = ", ".join(answers)
    return f", and so {'do' if ',' in still else 'does'} {still}" if still else ""


def _beyond(feature: Feature, value: Any) -> bool:
    """Whether a value is a number, and none that is special, beyond the bounds of its feature."""
    number = feature.numeric and exists(feature, value) and not missing(value) and value not in feature.special
    return number and not within_bounds(feature, value)


def as_frame(explanation: Explained, gap: Any = math.nan) -> pd.DataFrame:
    """See ``Explained.to_frame``; ``gap`` stands for missing values."""
    context, answers = explanation.context, explanation.answers
    features = context.problem.space.features
    after = [(None, None) if pair is None else pair for pair in context.after]
    judged = zip(answers, context.verdicts, after, strict=True)
    how = [[str(a.status), word, a.objective, a.bound, a.gap, *pair] for a, word, pair in judged]
    rows = [context.factual.to_dict("records")[0], *(answer.row or {} for answer in answers)]
    index = pd.Index(["factual", *(f"CE {place}" for place in range(1, len(answers) + 1))])
    told = pd.DataFrame([[None] * 5 + list(context.before), *how], index, unused(SAID, context.problem.space.names))
    cells = {f.name: pd.Series([_cell(f, row[f.name], gap) if row else None for row in rows], index) for f in features}
    return pd.concat([told, pd.DataFrame(cells, index)], axis=1)  # by keywords no column could be called self


def _cell(feature: Feature, value: Any, gap: Any) -> Any:
    """A value for a program: a date for the days that it is, ``gap`` where it is missing, anything else as it is."""
    if missing(value):
        return gap
    if feature.notation is None or not feature.notation.date or not float(value).is_integer():
        return value
    return ORIGIN + timedelta(days=int(value))


def check_plot(path: str | Path) -> Path:
    """The path of a figure's file, if its ending names a format.

    Raises
    ------
    HarnessError
        If it does not.
    """
    path = Path(path).expanduser()
    if path.suffix[1:].lower() not in FORMATS:
        raise HarnessError(f"{path} does not fit; give a file that ends in .svg, .pdf or .png.")
    return path


def several(explanations: Sequence[Explained], path: Path) -> Iterator[tuple[Explained, Path]]:
    """A file for each explanation: the path itself for one, with the factual's id for several."""
    for explanation in explanations:
        own = path if len(explanations) == 1 else path.with_stem(f"{path.stem}-{_name(explanation)}")
        yield explanation, own


def _row(cells: Sequence[str], style: str) -> str:
    name, factual, *texts = cells
    rest = "".join(f'<td style="{style if text else CELL}">{escape(text)}</td>' for text in texts)
    first = f'<th scope="row" style="{CELL};font-weight:normal">{escape(name)}</th>'
    return f'<tr>{first}<td style="{CELL}">{escape(factual)}</td>{rest}</tr>'


def _name(explanation: Explained) -> str:
    return f"{explanation.context.factual.index[0]}"


def legend(explanation: Explained, claim: Objective | None) -> str:
    """What the words of the table mean: objective, status, intervals."""
    answers = explanation.answers
    texts = []
    if claim is not None and claim.terms and any(answer.objective is not None for answer in answers):
        by_bin = any(term.name.startswith("woe_") for term in claim.terms)
        unit = "" if by_bin else "; the unit of each number is its range in the training data"
        own = claim.costed and explanation.context.problem.space.priced
        texts.append(f"objective: {minimised(claim)}{unit}{', times its own cost' if own else ''}.")
    if any(answer.status is Status.OPTIMAL for answer in answers):
        texts.append("OPTIMAL: proven that no better counterfactual exists; of several, none but those before it.")
    if any(answer.status is Status.FOUND for answer in answers):
        texts.append("FOUND: valid, and not proven to be the best.")
    if any(answer.region for answer in answers):
        texts.append("may be: the prediction is proven to stay as wanted while all features lie in these intervals.")
    if UNCHECKED in explanation.context.regions:
        texts.append("The checker's own search did not settle whether it does: this proof is the method's alone.")
    return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in texts)
