"""Figures of a comparison, as wide as a journal's column, never distinguishing methods by colour alone."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.gaps import same
from harness.core.space import Feature
from harness.core.tolerances import NO_DISTANCE
from harness.evaluation.contest import SECONDS, Contest, Criterion, Standing, best_first
from harness.evaluation.numbers import Numbers
from harness.evaluation.scoring import NEAREST
from harness.evaluation.statistics import LEVEL, posthocs
from harness.evaluation.study import Study
from harness.reports.canvas import COLOURS, COLUMN, GREY, SMALL, add_rectangle, blank, legend_below, plain_logarithmic
from harness.reports.markup import ARROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARKERS = "osD^vPX*<>hp"
DASHES = ("-", "--", ":", "-.")
SHORT = 13  # characters of a value in a cell
ACROSS = 3  # columns of features side by side
NAME = 20  # characters of a line of a method's name beside a row
LINE = 0.13  # inches of a line of text
PANEL = 1.45  # inches of the height of a panel
LETTER = 0.055  # inches of the width of a letter, on average
MARKER = 20  # points squared
NEAR = 0.02  # of what is shown: markers this near are on one another
FRONT, CHANGED = "#AAAAAA", "#DDDDDD"  # no method's colours

Looks = Mapping[str, Mapping[str, Any]]


def look(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash of each method: the same on the page and in every figure.

    No two of 96 share colour and marker, no two of 32 colour and dash.
    """
    looks = {}
    for place, name in enumerate(methods):
        line, c = divmod(place, len(COLOURS))
        again, d = divmod(line, len(DASHES))
        marker = MARKERS[(c + 3 * d + again) % len(MARKERS)]
        looks[name] = {"color": COLOURS[c], "marker": marker, "linestyle": DASHES[d]}
    return looks


def tradeoff(numbers: Numbers, dataset: str, across: Criterion, up: Criterion) -> Figure:
    """Means of two criteria, one panel a task of a data set, two side by side: common ones, where a line joins what
    nothing beats in both; else each method's own, without a line."""
    study = numbers.study
    panels = list(dict.fromkeys(entry.task for entry in study.entries if entry.dataset == dataset))
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    looks = look(study.methods)
    figure, fit = _column(rows * (PANEL if columns > 1 else 1.6 * PANEL), looks)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        shown, common = _means(numbers, panel, (across, up))
        near = NEAR * (shown.max() - shown.min())
        sizes = np.ones(len(shown))
        for place in reversed(range(len(shown))):  # larger than what is drawn over it
            over = ((shown.iloc[place + 1 :] - shown.iloc[place]).abs() <= near).all(axis=1).to_numpy()
            sizes[place] += sizes[place + 1 :][over].max(initial=0.0)
        for size, (name, row) in zip(MARKER * sizes, shown.iterrows(), strict=True):
            style = {key: looks[str(name)][key] for key in ("color", "marker")}
            style |= {"edgecolors": "white", "linewidths": 0.4}
            axis.scatter(row["x"], row["y"], s=size, **style)
            axis.scatter([], [], s=MARKER, label=_wrapped(str(name)), **style)  # of the legend
        if common:
            front = pareto(shown["x"], shown["y"], across.better, up.better)
            where = "post" if across.better == "lower" else "pre"  # what nobody reaches is above none of it
            axis.step(front["x"], front["y"], where=where, color=FRONT, lw=0.8, zorder=0)
        axis.margins(0.12)
        axis.locator_params(nbins=4)
        axis.set_title(_wrapped(panel, 52 // columns))
    for axis in axes[len(panels) - columns : len(panels)]:
        axis.set_xlabel(f"{across.name} {ARROWS[across.better]}")
    for axis in axes[::columns]:
        axis.set_ylabel(f"{up.name} {ARROWS[up.better]}")
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    legend_below(figure, axes, columns=fit, size=SMALL)
    return figure


def _means(numbers: Numbers, task: str, criteria: Sequence[Criterion]) -> tuple[pd.DataFrame, bool]:
    """Of the nearest accepted counterfactuals, columns ``x`` and ``y``, by method; and whether the means are common."""
    contests = [contest for criterion in criteria if (contest := numbers.contest(task, criterion)) is not None]
    common = len(contests) == len(criteria) and all(contest.common.enough for contest in contests)
    if common:
        columns = [{name: mean.value for name, mean in contest.common.means.items()} for contest in contests]
    else:
        entries = numbers.study.of_task(task)
        columns = [{entry.method: entry.mean(NEAREST + c.metric).value for entry in entries} for c in criteria]
    return pd.DataFrame(dict(zip("xy", map(pd.Series, columns), strict=True)), dtype=float).dropna(), common


def _column(height: float, names: Sequence[str] | Looks) -> tuple[Figure, int]:
    """A blank figure as wide as a journal's column, with room for names below, and how many of these fit on a line."""
    texts = [_wrapped(name) for name in names]
    longest = max((len(line) for text in texts for line in text.splitlines()), default=1)
    fit = max(1, min(len(texts), int(COLUMN // (LETTER * longest + 0.42))))
    most = max((text.count("\n") + 1 for text in texts), default=1)
    return blank(COLUMN, height + 0.25 + LINE * most * -(-len(texts) // fit)), fit


def _wrapped(name: str, width: int = 2 * NAME) -> str:
    """A name in lines, which end after a word or a sign where they can: a variant's may be long.

    >>> _wrapped("property_magnitude", 12)
    'property_\\nmagnitude'
    """
    lines = [""]
    for part in re.findall(r"[^_.,=\s]*[_.,=\s]*", name):
        for piece in (part[start : start + width] for start in range(0, len(part), width)):
            if len(lines[-1] + piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def pareto(x: pd.Series, y: pd.Series, better_x: str, better_y: str) -> pd.DataFrame:
    """The points that no other point equals or beats in both and beats in one, by ascending x.

    >>> x, y = pd.Series([1.0, 2, 3, 2.5], name="cost"), pd.Series([1.0, 3, 2, 3.5], name="use")
    >>> pareto(x, y, "lower", "higher").values.tolist()
    [[1.0, 1.0], [2.0, 3.0], [2.5, 3.5]]
    """
    a = np.where(better_x == "lower", 1, -1) * x.to_numpy()
    b = np.where(better_y == "lower", 1, -1) * y.to_numpy()
    no_worse = (a[:, None] <= a) & (b[:, None] <= b)
    beaten = (no_worse & ((a[:, None] < a) | (b[:, None] < b))).any(axis=0)
    return pd.DataFrame({x.name: x[~beaten], y.name: y[~beaten]}).sort_values(by=[str(x.name), str(y.name)])


def profile(study: Study, found: Sequence[Contest]) -> Figure:
    """Share of questions answered within a factor of the nearest answer, and, below, within so many seconds.

    Over the tasks that a method takes, a question once a seed. Those without an accepted counterfactual are never
    reached: a curve ends at the method's coverage.

    Parameters
    ----------
    found
        The contests by proximity, one a task.
    """
    looks = look(study.methods)
    figure, fit = _column(2 * 1.3 * PANEL, looks)
    upper, lower = figure.subplots(2, 1)
    ratios, seconds = reached(study, found)
    for axis, curves, label in ((upper, ratios, "times the nearest"), (lower, seconds, "seconds per question")):
        finite = np.concatenate([np.zeros(0), *(values[np.isfinite(values)] for values in curves.values())])
        end = max(float(finite.max()), 1.0) if finite.size else 1.0
        for name, values in curves.items():
            known = np.sort(values[np.isfinite(values)])
            steps = np.arange(1, len(known) + 1) / max(len(values), 1)
            last = len(known) / max(len(values), 1)
            style = {key: looks[name][key] for key in ("color", "linestyle")}
            label_of = _wrapped(name)
            axis.step(np.append(known, end), np.append(steps, last), where="post", label=label_of, **style)
        plain_logarithmic(axis, "x")
        axis.set_xlabel(label)
        axis.set_ylabel("share of questions")
        axis.set_ylim(0, 1.02)
        axis.grid(alpha=0.25)
    legend_below(figure, [upper], columns=fit, size=SMALL)
    return figure


def reached(study: Study, found: Sequence[Contest]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By method, of each question once a seed: times the nearest answer, and seconds; infinite without an answer.

    Seconds of another machine are left out.
    """
    ratios: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for contest in found:
        nearest = NEAREST + contest.criterion.metric
        parts = {
            entry.method: [
                part.reindex(columns=[nearest, SECONDS]).where(part["coverage"] > 0) for part in entry.by_seed
            ]
            for entry in study.of_task(contest.task)
        }
        timed = {entry.method for entry in study.of_task(contest.task) if entry.timed}
        best = pd.concat([part[nearest] for each in parts.values() for part in each]).groupby(level=0).min()
        for method, part in ((method, part) for method, each in parts.items() for part in each):
            times = (part[nearest] + NO_DISTANCE) / (best.reindex(part.index) + NO_DISTANCE)
            ratios.setdefault(method, []).extend(times.fillna(np.inf))
            if method in timed:
                seconds.setdefault(method, []).extend(part[SECONDS].fillna(np.inf))
    return tuple({name: np.array(each) for name, each in kind.items()} for kind in (ratios, seconds))  # type: ignore[return-value]


def critical(standing: Standing, looks: Looks) -> Figure:
    """The test's own mean ranks on a line, 1 the best; a bar joins methods that Nemenyi's test does not tell apart."""
    assert standing.test is not None
    names = list(standing.test.pairs.columns)
    ranks = best_first(standing.ranks[names].rank(axis=1))
    ranks.index = pd.Index([_wrapped(str(name), NAME) for name in ranks.index])
    known = dict(zip((_wrapped(str(name), NAME) for name in names), names, strict=True))
    test = standing.test.pairs.set_axis(list(known), axis=0).set_axis(list(known), axis=1)
    rows = -(-len(ranks) // 2) + len(ranks) // 4  # of names, and of bars above them
    figure = blank(COLUMN, 0.75 + _row_height(map(str, names)) * rows)
    axis = figure.subplots()
    drawn = posthocs().critical_difference_diagram(
        ranks, test, ax=axis, alpha=LEVEL,
        label_fmt_left="{label}  {rank:.2f} ", label_fmt_right=" {rank:.2f}  {label}",
        color_palette={shown: looks[name]["color"] for shown, name in known.items()}, marker_props={"s": 0},
        text_h_margin=0.03, crossbar_props={"linewidth": 1.6}, elbow_props={"linewidth": 0.8},
    )  # fmt: skip
    for text in drawn["labels"]:
        text.set_color("black")
    for shown, name in known.items():
        style = {key: looks[name][key] for key in ("color", "marker")}
        axis.scatter(ranks[shown], 0, s=16, zorder=4, clip_on=False, edgecolors="white", linewidths=0.3, **style)
    blocks, p = len(standing.ranks), standing.test.p
    axis.set_title(f"{standing.criterion.name}: mean rank over {blocks} data sets (p = {p:.1g})")
    return figure


def heat(
    standings: Mapping[str, Standing], looks: Looks, remarks: Mapping[str, str] = types.MappingProxyType({})
) -> Figure:
    """Methods × criteria, each cell the mean normalised rank; dark is good.

    Best first by the criteria that all of them have a rank in; below a line, in the same order, methods with a remark,
    which do not compare with the others.
    """
    table = pd.DataFrame({name: standing.mean_ranks for name, standing in standings.items()})
    remarked = table.index.isin(list(remarks))
    parts = [part for part in (table.loc[~remarked], table.loc[remarked]) if len(part)]
    shared = parts[0].dropna(axis=1).columns
    table = pd.concat([part.loc[best_first(part[shared if len(shared) else part.columns].T).index] for part in parts])
    labels = [f"{name}, {remarks[name]}" if name in remarks else str(name) for name in table.index]
    figure = blank(COLUMN, _row_height(labels) * len(table) + 0.75)
    axis = figure.subplots()
    axis.imshow(table.to_numpy(), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(
        range(table.shape[1]), [_wrapped(str(name), SHORT) for name in table.columns], rotation=40, ha="left"
    )
    axis.tick_params(length=0)
    axis.xaxis.tick_top()
    _name_rows(axis, (names := list(map(str, table.index))), looks, told=dict(zip(names, labels, strict=True)))
    if len(parts) > 1:
        axis.axhline(len(parts[0]) - 0.5, color="white", lw=3.0)
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        shade = "white" if value < 0.55 else "black"
        text = "–" if np.isnan(value) else f"{value:.2f}"
        axis.text(j, i, text, ha="center", va="center", color=shade, fontsize=SMALL)
    return figure


def _row_height(names: Iterable[str]) -> float:
    """Inches of a row of which one of some names is the label."""
    return LINE * (0.4 + max((_wrapped(name, NAME).count("\n") + 1 for name in names), default=1))


def _name_rows(
    axis: Axes,
    names: Sequence[str],
    looks: Looks,
    above: Sequence[str] = (),
    told: Mapping[str, str] = types.MappingProxyType({}),
) -> None:
    """Name rows by methods, each with its marker, below some that have other names; ``told`` are longer names."""
    labels = [_wrapped(told.get(name, name), NAME) for name in names]
    axis.set_yticks(range(len(above) + len(names)), [*above, *labels])
    axis.tick_params(axis="y", pad=9, length=0)
    for row, name in enumerate(names, start=len(above)):
        style = {key: looks[name][key] for key in ("color", "marker")}
        axis.plot(-0.025, row, transform=axis.get_yaxis_transform(), clip_on=False, ls="", mew=0, **style)


def strip(
    factual: pd.Series,
    rows: Mapping[str, Mapping[str, Any] | None],
    features: Sequence[Feature],
    looks: Looks,
    remarks: Mapping[str, str] = types.MappingProxyType({}),
) -> Figure:
    """What each method changes of one factual: a row a method, a column a feature that any of them changes.

    As many columns side by side as can be read, those that most methods change first; further ones follow below, with
    the methods that change them.

    Parameters
    ----------
    rows
        First counterfactual by method, None where there is none.
    features
        All of them, in order.
    remarks
        By method: why there is none, or what the checker has against it.
    """
    known = {feature.name: feature for feature in features}
    moved = {n: [m for m, row in rows.items() if row is not None and not same(row[n], factual[n])] for n in known}
    changed = sorted((name for name in known if moved[name]), key=lambda name: -len(moved[name]))
    parts = [changed[start : start + ACROSS] for start in range(0, len(changed), ACROSS)] or [[]]
    shown = [list(rows)] + [[m for m in rows if any(m in moved[name] for name in part)] for part in parts[1:]]
    lines = [len(methods) + 1 for methods in shown]
    labels = [f"{name}, {remarks.get(name, '')}" for name in rows]
    heads = [max((_wrapped(name, SHORT).count("\n") + 1 for name in part), default=0) for part in parts]
    figure = blank(COLUMN, _row_height(labels) * sum(lines) + LINE * sum(heads) + 0.2 * len(parts))
    axes = figure.subplots(len(parts), 1, squeeze=False, height_ratios=lines).ravel()
    for axis, part, methods in zip(axes, parts, shown, strict=True):
        _changes(axis, factual, {name: rows[name] for name in methods}, [known[n] for n in part], looks, remarks)
    return figure


def _changes(
    axis: Axes,
    factual: pd.Series,
    rows: Mapping[str, Mapping[str, Any] | None],
    part: Sequence[Feature],
    looks: Looks,
    remarks: Mapping[str, str],
) -> None:
    """One block of the strip: the values of some features, coloured where they are not the factual's."""
    axis.set_xlim(-0.5, ACROSS - 0.5)
    axis.set_ylim(len(rows) + 0.5, -0.5)
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
    for j, feature in enumerate(part):
        name = feature.name
        axis.text(j, 0, _cut(feature.text(factual[name])), **centred)
        for i, row in enumerate(rows.values(), start=1):
            if row is not None and not same(row[name], factual[name]):
                add_rectangle(axis, (j - 0.48, i - 0.42), 0.96, 0.84, color=CHANGED, lw=0)
                axis.text(j, i, _cut(feature.text(row[name])), **centred)
    for i, (method, row) in enumerate(rows.items(), start=1):
        if row is None:
            why = remarks.get(method, "none found")
            axis.text(-0.45, i, why, va="center", fontsize=SMALL, style="italic", color=GREY)
    axis.axhline(0.5, color="black", lw=0.5)
    axis.set_xticks(range(len(part)), [_wrapped(feature.name, SHORT) for feature in part])
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    told = {name: f"{name}, {remarks[name]}" for name, row in rows.items() if row is not None and name in remarks}
    _name_rows(axis, list(rows), looks, above=[f"factual {factual.name}"], told=told)
    for side in axis.spines.values():
        side.set_visible(False)


def _cut(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"
