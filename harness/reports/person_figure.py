"""One explanation as a figure: what changes, on the range and the distribution of each feature."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from harness.core.explanation import Answer
from harness.core.gaps import MISSED, missing, same
from harness.core.notation import MOST
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.reports.canvas import COLOURS, GREY, SMALL, add_rectangle, bare, column_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "oD^vPX*s"  # of counterfactuals, as colours are not all that tells them apart
BARS, BAND = "#DDDDDD", 0.3  # colour of the training rows; opacity of a region
NAMES, STRIP, CELL, EDGE = 1.3, 1.9, 0.92, 0.08  # inches: widths of the columns, and the margin
LETTER, LINE, LANE = 0.056, 0.115, 0.11  # inches: of a letter, of a line of text, of a counterfactual's arrow
LINES = 4  # of a name or a value, before it is cut
GAP = 0.5  # inches right of a range, where missing values are drawn
BINS = 30  # of the distribution of a number

Told: TypeAlias = Mapping[str, Any] | None  # a counterfactual as a reader is told it


@dataclass(frozen=True)
class Person:
    """What is drawn of an explanation.

    Parameters
    ----------
    title, notes
        Sentences above and below.
    heads
        Above the columns of the counterfactuals.
    facts
        Rows of texts below the features: a name, the factual's, and each counterfactual's.
    """

    title: str
    notes: Sequence[str]
    heads: Sequence[str]
    facts: Sequence[Sequence[str]]


def figure(
    words: Person, problem: Problem, factual: Mapping[str, Any], answers: Sequence[Answer], told: Sequence[Told]
) -> Figure:
    """A row for each feature that changes or may lie in an interval.

    On the left the training rows in grey, the factual as a square, each counterfactual with its arrow, and as a band
    the interval in which the prediction is proven to stay; on the right the values, as they are told.
    """
    features = [f for f in problem.space.features if any(_shows(f, factual, answer) for answer in answers)]
    rows = [_Row(feature, factual, answers, told) for feature in features]
    width = 2 * EDGE + NAMES + STRIP + CELL * (1 + len(answers))
    notes = [line for note in (*words.notes, *_rest(problem, features)) for line in wrap(note, int(width / LETTER))]
    title = wrap(words.title, int(width / LETTER))
    facts = [[_lines(text, CELL if place else NAMES) for place, text in enumerate(fact)] for fact in words.facts]
    tall = [max(map(len, cells)) * LINE + 0.07 for cells in facts]
    height = (len(title) + len(notes) + 1) * LINE + 4 * EDGE + sum(row.height for row in rows) + sum(tall)
    with column_style():
        drawn, axis = bare(width, height)
        top = EDGE
        _write(axis, EDGE, top, title)
        top += len(title) * LINE + EDGE
        for place, head in enumerate(("factual", *words.heads)):
            _marker(axis, _left(place) + 0.05, top + 0.45 * LINE, place - 1)
            _write(axis, _left(place) + 0.13, top, [head])
        top += LINE + EDGE / 2
        for row in rows:
            _rule(axis, top, width)
            _draw(axis, row, top, problem)
            top += row.height
        _rule(axis, top, width, 0.8)
        for cells, high in zip(facts, tall, strict=True):
            for place, cell in enumerate(cells):
                _write(axis, _left(place - 1), top + 0.035, cell)
            top += high
        _rule(axis, top, width)
        _write(axis, EDGE, top + EDGE, notes, color=GREY)
    return drawn


class _Row:
    """One feature: its texts, cut into lines, and its height in inches."""

    def __init__(
        self, feature: Feature, factual: Mapping[str, Any], answers: Sequence[Answer], told: Sequence[Told]
    ) -> None:
        self.feature, self.origin = feature, factual[feature.name]
        self.values = [None if answer.row is None else answer.row[feature.name] for answer in answers]
        self.moves = [_moved(feature, factual, answer) for answer in answers]
        self.bands = [_band(feature, answer) for answer in answers]
        rows = zip(told, self.moves, strict=True)
        texts = [feature.text(row[feature.name], MOST) if row and moved else "" for row, moved in rows]
        self.name = _lines(feature.name, NAMES)
        self.cells = [_lines(text, CELL) for text in (feature.text(self.origin), *texts)]
        bands = [None, *self.bands]  # the factual has none
        self.ranges = [_lines("" if band is None else feature.span(*band), CELL) for band in bands]
        self.lanes = [place for place, moved in enumerate(self.moves) if moved or self.bands[place] is not None]
        graph = max(0.2, LANE * (len(self.lanes) + 1)) + LINE
        lines = [len(cell) + len(ends) for cell, ends in zip(self.cells, self.ranges, strict=True)]
        self.height = max(graph, LINE * max(len(self.name), *lines)) + 0.09


def _shows(feature: Feature, factual: Mapping[str, Any], answer: Answer) -> bool:
    return _moved(feature, factual, answer) or _band(feature, answer) is not None


def _moved(feature: Feature, factual: Mapping[str, Any], answer: Answer) -> bool:
    return answer.row is not None and not same(answer.row[feature.name], factual[feature.name])


def _band(feature: Feature, answer: Answer) -> tuple[float, float] | None:
    low, high = (answer.region or {}).get(feature.name, (0.0, 0.0))
    return (low, high) if feature.numeric and low < high else None


def _rest(problem: Problem, shown: Sequence[Feature]) -> Iterator[str]:
    """What the grey is, and how many features are not drawn."""
    rest = len(problem.space.features) - len(shown)
    if shown:
        yield "Grey: the training rows, over their range; square: the factual."
    if rest:
        yield f"Unchanged: {rest} {'other ' if shown else ''}feature{'s' if rest > 1 else ''}."


def _draw(axis: Axes, row: _Row, top: float, problem: Problem) -> None:
    """The texts of a row, and its strip."""
    _write(axis, EDGE, top + 0.045, row.name)
    for place, (cell, ends) in enumerate(zip(row.cells, row.ranges, strict=True)):
        _write(axis, _left(place), top + 0.045, cell, weight="bold" if place else "normal")
        _write(axis, _left(place), top + 0.045 + len(cell) * LINE, ends, color=GREY)
    floor = top + row.height - 0.045 - LINE
    values = problem.train[row.feature.name]
    if row.feature.numeric:
        place_of = _number_axis(axis, row, values.to_numpy(float), top + 0.045, floor)
    else:
        place_of = _category_axis(axis, row, values.to_numpy(object), top + 0.045, floor)
    start, step = place_of(row.origin), (floor - top - 0.045) / (len(row.lanes) + 1)
    for lane, place in enumerate(row.lanes, 1):
        colour, y = COLOURS[place % len(COLOURS)], top + 0.045 + lane * step
        if (band := row.bands[place]) is not None:
            left, right = place_of(band[0]), place_of(band[1])
            add_rectangle(axis, (left, y - 0.04), right - left, 0.08, color=colour, alpha=BAND, lw=0)
        end = place_of(row.values[place])
        axis.plot([start, end], [y, y], color=colour, lw=1.2, solid_capstyle="butt", zorder=3)
        _marker(axis, end, y, place)
        _marker(axis, start, y, -1)
    if not row.lanes:
        _marker(axis, start, floor - step, -1)


def _number_axis(axis: Axes, row: _Row, values: np.ndarray, top: float, floor: float) -> Any:
    """Bars of a number's distribution above the ends of its range; returns where a value lies, in inches.

    Missing values have a bar of their own, right of the range.
    """
    shown = [value for value in (row.origin, *row.values) if not missing(value)]
    shown += [end for band in row.bands if band is not None for end in band]
    low, high = min(*row.feature.scale, *shown), max(*row.feature.scale, *shown)
    ends = [row.feature.text(low), row.feature.text(high)]
    whole = row.feature.kind is Kind.INTEGER and high - low <= BINS
    if whole or low == high:  # a bar around each number
        low, high = math.floor(low) - 0.5, math.ceil(high) + 0.5
    left, across = EDGE + NAMES + 0.06, STRIP - 0.2 - GAP * row.feature.missing
    beyond = left + across + GAP / 2

    def place_of(value: float) -> float:
        return beyond if missing(value) else left + across * (value - low) / (high - low)

    known, empty = values[~np.isnan(values)], int(np.isnan(values).sum())
    counts, edges = np.histogram(known, np.arange(low, high + 0.5) if whole else np.linspace(low, high, BINS + 1))
    bars = [
        (place_of(start), place_of(end), count) for start, end, count in zip(edges, edges[1:], counts, strict=False)
    ]
    bars += [(beyond - 0.06, beyond + 0.06, empty)] * row.feature.missing
    for start, end, count in bars:
        tall = (floor - top) * count / max(counts.max(), empty, 1)
        add_rectangle(axis, (start, floor - tall), end - start, tall, color=BARS, lw=0)
    if row.feature.missing:
        axis.plot([beyond - 0.1, beyond + 0.1], [floor, floor], color=GREY, lw=0.5)
        _write(axis, beyond, floor + 0.01, [MISSED], color=GREY, ha="center")
    axis.plot([left, left + across], [floor, floor], color=GREY, lw=0.5)
    _write(axis, left, floor + 0.01, ends[:1], color=GREY)
    _write(axis, left + across, floor + 0.01, ends[1:], color=GREY, ha="right")
    return place_of


def _category_axis(axis: Axes, row: _Row, values: np.ndarray, top: float, floor: float) -> Any:
    """Bars of how often each category occurs, in their order; returns where a category lies, in inches."""
    known = list(row.feature.categories)
    left, across = EDGE + NAMES + 0.06, STRIP - 0.2
    step = across / len(known)
    counts = np.array([np.sum(values == category) for category in known])
    for number, count in enumerate(counts):
        tall = (floor - top) * count / max(counts.max(), 1)
        add_rectangle(axis, (left + (number + 0.1) * step, floor - tall), 0.8 * step, tall, color=BARS, lw=0)
    axis.plot([left, left + across], [floor, floor], color=GREY, lw=0.5)
    ordered = "low to high" if row.feature.kind is Kind.ORDINAL else "how often each occurs"
    _write(axis, left, floor + 0.01, [f"{len(known)} categories, {ordered}"], color=GREY)
    return lambda value: left + (known.index(value) + 0.5) * step


def _left(place: int) -> float:
    """Where the texts of a column begin, in inches: -1 for names, 0 for the factual, then the counterfactuals."""
    return EDGE if place < 0 else EDGE + NAMES + STRIP + CELL * place


def _marker(axis: Axes, x: float, y: float, place: int) -> None:
    """The sign of a counterfactual, or of the factual at place -1."""
    if place < 0:
        axis.plot(x, y, "s", ms=4.5, mfc="white", mec="black", mew=0.8, zorder=5)
    else:
        colour = COLOURS[place % len(COLOURS)]
        axis.plot(x, y, MARKERS[place % len(MARKERS)], ms=4.5, mfc=colour, mec="white", mew=0.3, zorder=6)


def _rule(axis: Axes, y: float, width: float, weight: float = 0.3) -> None:
    axis.plot([EDGE, width - EDGE], [y, y], color="black", lw=weight)


def _lines(text: str, width: float) -> list[str]:
    """A text in lines that fit a column of so many inches, cut with an ellipsis where they are too many."""
    most = int((width - 0.1) / LETTER)
    lines = [line.replace("_ ", "_") for line in wrap(text.replace("_", "_ "), most)]
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], f"{lines[LINES - 1][: most - 1]}…"]


def _write(axis: Axes, x: float, y: float, lines: Sequence[str], **look: Any) -> None:
    """Lines of text below each other, the first at ``y``."""
    for number, line in enumerate(lines):
        axis.text(x, y + number * LINE, line, **{"va": "top", "fontsize": SMALL, **look})
