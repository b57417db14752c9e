"""A published table of means beside the same means of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from harness.core.explanation import Reason, Status
from harness.evaluation import scoring
from harness.evaluation.checker import NOT_PERMITTED
from harness.evaluation.contest import metrics_of
from harness.reports.markup import ARROWS, DASH, markdown, noted, number
from harness.reports.registry import OneFile, Refuted
from harness.reports.stored import means_of, published, returned, setting
from harness.reports.verdict import PRINTED, UNASKED, missing, rounds_to
from harness.store.run import StoredRun


def paired(frame: pd.DataFrame, keys: Sequence[str], columns: Mapping[str, str]) -> pd.DataFrame:
    """A wide frame as one row a key and measure: each column of published numbers with that of ours; NaN for none."""
    parts = [
        frame[list(keys)].assign(
            measure=published,
            published=frame[published].to_numpy() if published in frame else math.nan,
            ours=frame[ours].to_numpy() if ours in frame else math.nan,
        )
        for published, ours in columns.items()
    ]
    return pd.concat(parts, ignore_index=True)


Row = TypeVar("Row")


def narrowed(rows: Sequence[Row], ran: Callable[[Row], bool]) -> tuple[list[Row], list[str]]:
    """The published rows of which something was run, all where nothing was; and a note that counts the others.

    >>> narrowed(["a", "b", "c"], "b".__eq__)
    (['b'], ['2 published rows are not shown: nothing of them was run here.'])
    """
    kept = [row for row in rows if ran(row)] or list(rows)
    hidden = len(rows) - len(kept)
    which = "row is not shown: nothing of it" if hidden == 1 else "rows are not shown: nothing of them"
    return kept, [f"{hidden} published {which} was run here."] * bool(hidden)


def beside(lines: pd.DataFrame, keys: int) -> tuple[pd.DataFrame, list[str]]:
    """Of a frame whose rows are published and ours by turns, the pairs and the columns of which something was run.

    A column after the keys tells the two apart. With a note on the pairs that are left out.
    """
    ours = lines.iloc[1::2, keys:]
    pairs, hidden = narrowed(range(len(ours)), lambda pair: bool(ours.iloc[pair].notna().any()))
    ran = [name for name in ours if ours[name].notna().any()] or list(ours)
    return lines.iloc[[2 * pair + side for pair in pairs for side in (0, 1)]][[*lines.columns[:keys], *ran]], hidden


def without_blanks(head: Sequence[str], body: Sequence[Sequence[Any]], keys: int) -> str:
    """A table in Markdown, without the columns after its keys in which no row has anything."""
    said = [{str(row[place]) for row in body} - {"", DASH, NOT_RUN} for place in range(len(head))]
    kept = [place for place in range(len(head)) if place < keys or said[place]]
    return markdown([head[place] for place in kept], [[row[place] for place in kept] for row in body], keys)


NOT_RUN = "not run"


def printed_at(row: Mapping[str, Any], keys: Iterable[str]) -> tuple[str, str]:
    """Where a mean is printed, and as what, as a ``Refuted`` names it; a row of a comparison that has one."""
    return ", ".join(str(row[key]) for key in keys), f"{_words(row)} {float(row['published']):.{PRINTED}f}"


def _words(row: Mapping[str, Any]) -> str:
    return str(row["measure"].replace("_", " "))


COLUMNS = (
    "measure", "better", "published", "published_se", "ours", "ours_se", "n", "difference", "difference_se",
    "accepted", "accepted_se", "accepted_n", "filled", "factuals", "why", "alone", "rival", "given",
)  # fmt: skip
EXPLAINED = (
    "*ours*: averaged over factuals as in the paper; *difference*: ours − published, in brackets in standard errors of "
    "both.",
    "*ours, accepted*: over accepted counterfactuals only; *filled*: these per one asked for, over all factuals; *n*: "
    "factuals with an answer.",
    "Mean (standard error). **Bold**: the best of its column among methods, published and ours each.",
)


@dataclass(frozen=True)
class Comparison(OneFile):
    """A table of means over factuals, one row a published row, beside the same means of ours.

    Parameters
    ----------
    title
        Of the published table, with its source.
    file
        Name of the file of published cells; a column ``x_se`` holds the standard error of ``x``.
    keys
        The columns that name a published row, and what each is in a run: ``dataset``, ``model``, ``method``, or a
        setting such as ``variant``.
    ours
        Per such column, our name of each published one; others are the same.
    measures
        The columns of numbers, and the metric of each.
    fixed
        What runs must have besides, such as the one model of the table.
    as_published
        Scores of a run in the population that the paper averages: one row a factual, one column a metric.
    asked
        Questions behind a published mean.
    notes
        What a reader has to know, one sentence each.
    exact
        Whether models and questions are the paper's own, so that a proven optimum answers what was asked there.
    most
        By measure, the most that a mean of it can be, whatever the counterfactuals are.
    own
        The published names of the paper's own methods; empty where all are.
    better
        Which way is better (``higher`` or ``lower``), of measures that no metric of a run is.
    given
        By measure, the methods that have it by definition.
    """

    title: str
    file: str
    keys: Mapping[str, str]
    measures: Mapping[str, str]
    ours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    as_published: Callable[[StoredRun], pd.DataFrame] = returned
    asked: int = 1
    notes: tuple[str, ...] = ()
    exact: bool = False
    most: Mapping[str, Callable[[StoredRun], float]] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    better: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        lines = self.compare(found)
        blocks = [block for _, block in lines.groupby(list(self.keys), sort=False)]
        shown, hidden = narrowed(blocks, lambda block: not math.isnan(block["factuals"].iloc[0]))
        table = self._markdown(pd.concat(shown)) if shown else ""
        optima = self._optima(found, lines) if self.exact else []
        return noted(
            table, (*hidden, *self.notes, *self._barred(found), *self._stopped(found), *optima, *EXPLAINED)
        ), lines

    def refuted(self, found: Sequence[StoredRun]) -> tuple[list[Refuted], int]:
        """Published means above the most that they can be."""
        if not self.most:
            return [], 0
        ran, looked, lines = self._ran(found), 0, []
        for row in self.compare(found).to_dict("records"):
            run = ran.get(self._translated(row))
            if run is None or row["measure"] not in self.most or missing(row["published"]):
                continue
            looked += 1
            most, printed = self.most[row["measure"]](run), float(row["published"])
            if round(printed - 0.5 * 10.0**-PRINTED, PRINTED + 1) > round(most, PRINTED):
                why = f"a mean of {_words(row)} is at most {most:.4g} where every counterfactual changes something"
                lines.append(Refuted(*printed_at(row, self.keys), why))
        return lines, looked

    def _barred(self, found: Sequence[StoredRun]) -> list[str]:
        """Of runs, how many counterfactuals change what is to stay: validity says nothing of it."""
        notes = []
        for place, run in self._ran(found).items():
            words = [line["verdict"] for line in run.verdicts() if line["verdict"] != "none"]
            if count := words.count(NOT_PERMITTED):
                notes.append(
                    f"{', '.join(place)}: {count} of {len(words)} counterfactuals are not permitted, as they change "
                    "what is to stay or leave a feature's bounds; its means count them."
                )
        return notes

    def _stopped(self, found: Sequence[StoredRun]) -> list[str]:
        """Of runs, for how many people the clock ended the search, whose counterfactuals are the best until then."""
        notes = []
        for place, run in self._ran(found).items():
            first = [row for row in run.rows() if row["ce"] == 1 and row["row"] is not None]
            if count := sum(row["reason"] == Reason.TIME_LIMIT for row in first):
                notes.append(f"{', '.join(place)}: of {len(first)} people with an answer the clock ended {count}.")
        return notes

    def _optima(self, found: Sequence[StoredRun], lines: pd.DataFrame) -> list[str]:
        """Of runs in which every answer is a proven optimum, the means that are not as printed."""
        notes = []
        for place, run in self._ran(found).items():
            status = [row["status"] for row in run.rows() if row["row"] is not None]
            if set(status) != {Status.OPTIMAL} or run.meta["n_counterfactuals"] != 1:
                continue
            for row in lines.to_dict("records"):
                if self._translated(row) != place or missing(row["published"]) or missing(row["ours"]):
                    continue
                if not rounds_to(float(row["ours"]), float(row["published"])):
                    where, _ = printed_at(row, self.keys)
                    notes.append(
                        f"{where}: at the proven optima of all {len(status)} answered factuals, {_words(row)} is "
                        f"{row['ours']:.2f}; {row['published']:.2f} is printed."
                    )
        return notes

    def _ran(self, found: Sequence[StoredRun]) -> dict[tuple[str, ...], StoredRun]:
        return {self._place(run.meta): run for run in found if self._belongs(run.meta)}

    def compare(self, found: Sequence[StoredRun]) -> pd.DataFrame:
        """One row a published row (or run of ours without one) and measure; NaN where there is nothing.

        Columns: the keys, ``measure``, ``better``; ``published`` and ``ours`` (mean in the paper's population), each
        with ``_se``; ``n``, the factuals behind ours; ``accepted`` with its ``_se`` and ``_n``, the mean over accepted
        ones only; ``filled`` and ``factuals``; ``why`` there is nothing of ours; ``alone``, ``rival`` and ``given`` as
        ``registry.Table`` has them; ``difference``, and ``difference_se`` in standard errors of both.
        """
        keys, metrics = list(self.keys), metrics_of(*found)
        better = {**{name: metric.better for name, metric in metrics.items()}, **self.better}
        table = published(self.file, dtype=dict.fromkeys(keys, str)).to_dict("records")
        ran = self._ran(found)
        rows = {self._translated(row): row for row in table}
        rows |= {place: dict(zip(keys, place, strict=True)) for place in ran if place not in rows}
        records: list[dict[str, Any]] = []
        for place, row in rows.items():
            means = means_of(ran[place], self.as_published(ran[place])) if place in ran else {}
            why = UNASKED
            if place in ran:
                why = "found nothing" if scoring.refusal(ran[place]) is None else "refused"
            for measure, name in self.measures.items():
                records.append(
                    {key: row[key] for key in keys}
                    | {"measure": measure, "better": better.get(name, "")}
                    | {"published": row.get(measure, math.nan), "published_se": row.get(f"{measure}_se", math.nan)}
                    | {"why": why, "alone": measure not in row}
                    | {"given": row.get("method") in self.given.get(measure, ())}
                    | {"rival": bool(self.own) and row.get("method") not in self.own}
                    | means.get(name, {})
                )
        lines = pd.DataFrame(records, columns=[*keys, *COLUMNS])
        lines["difference"] = lines["ours"] - lines["published"]
        spread = np.sqrt(lines["ours_se"].astype(float) ** 2 + lines["published_se"].astype(float) ** 2)
        lines["difference_se"] = lines["difference"] / spread.where(spread > 0)
        return lines

    def _belongs(self, meta: Mapping[str, Any]) -> bool:
        return all(setting(meta, key) == value for key, value in self.fixed.items())

    def _place(self, meta: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(setting(meta, key)) for key in self.keys.values())

    def _translated(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(self.ours.get(key, {}).get(row[key], row[key]) for key in self.keys)

    def _markdown(self, lines: pd.DataFrame) -> str:
        """Up to four rows a published row: published, ours, their difference, ours over accepted answers."""
        keys = list(self.keys)
        measures = [name for name in self.measures if lines.loc[lines["measure"] == name, "ours"].notna().any()]
        if measures:
            lines = lines.loc[lines["measure"].isin(measures)]
        ways = lines.groupby("measure")["better"].max().map(ARROWS).fillna("")
        head = [*keys, "", *(f"{name.replace('_', ' ')} {ways[name]}".strip() for name in measures or self.measures)]
        best = {column: self._best(lines, column) for column in ("published", "ours", "accepted")}
        body = []
        for place, block in lines.groupby(keys, sort=False):
            blank, first = [""] * len(keys), block.iloc[0]
            shown = {column: self._cells(block, column, best[column]) for column in best}
            body.append([*map(str, place), "published", *shown["published"], "", ""])
            if math.isnan(first["factuals"]):
                body.append([*blank, "ours", *[NOT_RUN] * len(block), "", ""])
                continue
            counts = [f"{first['filled']:.2f}", f"{first['n']:.0f} of {first['factuals']:.0f}"]
            body.append([*blank, "ours", *shown["ours"], *counts])
            body.append([*blank, "difference", *map(self._difference, block.to_dict("records")), "", ""])
            body.append([*blank, "ours, accepted", *shown["accepted"], "", ""])
        return markdown([*head, "filled", "n"], body, len(keys) + 1)

    def _best(self, lines: pd.DataFrame, column: str) -> set[Any]:
        """The lines with the best number, as shown, among those that differ in the last key only; ties are all best."""
        *block, _ = self.keys
        winners: set[Any] = set()
        for _, group in lines.groupby([*block, "measure"], sort=False) if block else ():
            shown = group[column].map(lambda value: round(float(value), PRINTED))  # as ``number`` has it
            if shown.count() > 1:
                top = shown.min() if group["better"].max() == "lower" else shown.max()
                winners |= set(group.index[shown == top])
        return winners

    def _cells(self, block: pd.DataFrame, column: str, best: set[Any]) -> list[str]:
        texts = [number(mean, PRINTED, error) for mean, error in zip(block[column], block[f"{column}_se"], strict=True)]
        return [f"**{text}**" if index in best else text for index, text in zip(block.index, texts, strict=True)]

    def _difference(self, row: Mapping[str, Any]) -> str:
        if math.isnan(row["difference"]):
            return DASH
        errors = "" if math.isnan(row["difference_se"]) else f" ({row['difference_se']:+.1f})"
        return f"{row['difference']:+,.{PRINTED}f}{errors}"
