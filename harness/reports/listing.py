"""Published counterfactuals one by one, beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.objective import displacement
from harness.core.tolerances import COST_TIE
from harness.evaluation.checker import ACCEPTED
from harness.reports.comparison import Comparison, narrowed
from harness.reports.markup import DASH, markdown, noted
from harness.reports.registry import Lines, Refuted
from harness.reports.stored import published, setting
from harness.store.run import StoredRun

STATUS = "status"
AUTHORS = "published_"  # how the names of models begin that a paper's authors published
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Changed = tuple[tuple[str, str], ...]  # features and their new values as printed


@dataclass(frozen=True)
class Listing(Lines):
    """Counterfactuals one by one, as changes of the factual, beside the published ones where there are any.

    Parameters
    ----------
    title
        Of the published table, with its source.
    label
        The setting that tells its parts apart, such as ``variant``.
    file
        Name of the file of published counterfactuals: ``part``, ``counterfactual`` (a, b, ...), then features, empty
        where unchanged; None for a demonstration without published values.
    metrics
        The published metrics of the same parts, compared below.
    optima
        By part, the exact optimum, where one is known; the distance alone.
    notes
        What a reader has to know, one sentence each.
    rounding
        In scaled units, half of what published numbers were rounded to besides.
    """

    title: str
    label: str
    file: str | None = None
    metrics: Comparison | None = None
    optima: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rounding: float = 0.0

    @property
    def published(self) -> tuple[str, ...]:
        own = () if self.file is None else (self.file,)
        return own if self.metrics is None else own + self.metrics.published

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        parts = {str(setting(run.meta, self.label)): run for run in found}
        listed, hidden = self._listed(parts)
        pieces, numbers = [listed], pd.DataFrame()
        if known := {part: parts[part] for part in self.optima if part in parts}:
            distances = self._distances(known)
            pieces.append("## Optima\n\n" + self._optima(known, distances))
            columns = [self.label, "measure", "better", "published", "ours"]
            rows = [(part, "squared distance", "lower", self.optima[part], ours) for part, ours in distances.items()]
            numbers = pd.DataFrame(rows, columns=columns)
        if self.metrics is not None:
            text, numbers = self.metrics.build(found)
            pieces.append(f"## {self.metrics.title}\n\n{text}")
        first = noted(pieces[0], (*hidden, *self.notes, *self._accepted(found)))
        return "\n".join([first, *pieces[1:]]), numbers

    def refuted(self, found: Sequence[StoredRun]) -> tuple[list[Refuted], int]:
        """Published counterfactuals that the authors' own model refuses, or that an accepted one is nearer than.

        Whatever number a published one was rounded from: the corners of what it may have been stand for it.
        """
        lines, looked = [], self._judged(found)
        for (part, letter, changed), (run, may_be, accepted) in looked.items():
            why = None if accepted else _refused(run, may_be)
            if accepted and letter == LETTERS[0]:
                why = _farther(run, run.factuals()[0], may_be)
            if why is not None:
                printed = ", ".join(f"{name} {value}" for name, value in changed)
                lines.append(Refuted(f"{self.label} {part}, {letter}", printed, why))
        return lines, len(looked)

    def _judged(
        self, found: Sequence[StoredRun]
    ) -> dict[tuple[str, str, Changed], tuple[StoredRun, pd.DataFrame, bool]]:
        """Published counterfactuals of the authors' own models: the run of ours, the rows that each may be, and whether
        the model accepts any of them."""
        own = {str(setting(run.meta, self.label)): run for run in found if run.meta["model"].startswith(AUTHORS)}
        judged = {}
        for part, letter, _, changed in self._published():
            if part in own:
                factual, targets = own[part].factuals()
                may_be = self._corners(own[part], factual, changed)
                accepted = bool(targets[factual.index[0]].holds(own[part].classifier, may_be).any())
                judged[part, letter, tuple(changed.items())] = own[part], may_be, accepted
        return judged

    def _accepted(self, found: Sequence[StoredRun]) -> list[str]:
        """How many of the first published counterfactuals the authors' own model accepts, whatever they were rounded
        from; nothing where there are none."""
        firsts = [accepted for (_, letter, _), (*_, accepted) in self._judged(found).items() if letter == LETTERS[0]]
        told = f"The authors' own model accepts {sum(firsts)} of their {len(firsts)} first counterfactuals here."
        return [told] if firsts else []

    def _corners(self, run: StoredRun, factual: pd.DataFrame, changed: Mapping[str, str]) -> pd.DataFrame:
        """Rows at the ends of what each printed number may have been, and as printed."""
        rows = [factual.iloc[0].to_dict()]
        for name, text in changed.items():
            feature = run.space[name]
            if feature.numeric:
                half = max(0.5 * 10.0 ** -len(text.partition(".")[2]), self.rounding * feature.range)
                values = [float(text) - half, float(text), float(text) + half]
            else:
                values = [value for value in feature.categories if str(value) == text]
            rows = [{**row, name: value} for row in rows for value in values]
        return run.space.frame(rows)

    def _listed(self, parts: Mapping[str, StoredRun]) -> tuple[str, list[str]]:
        """The factual, then every counterfactual, published above ours; a dash where a feature is unchanged.

        With a note on published ones that are left out.
        """
        rows, hidden = narrowed(self._published(), lambda row: row[0] in parts)
        origin: dict[Any, Any] = {}
        for part, run in parts.items():
            factual, _ = run.factuals()
            origin = factual.iloc[0].to_dict()
            rows += [
                (part, LETTERS[row["ce"] - 1], "ours", _changes(run, factual.iloc[[0]], row)) for row in run.rows()
            ]
        rows.sort(key=lambda row: (row[0], row[1], row[2] == "ours"))
        names = [name for name in origin if any(name in row[3] for row in rows)]
        body = [["factual", "", "", *(_shown(origin[name]) for name in names), ""]]
        for part, letter, source, changed in rows:
            cells = [_shown(changed[name]) if name in changed else DASH for name in names]
            body.append([part, letter, source, *cells, str(changed.get(STATUS, ""))])
        return markdown([self.label, "", "", *names, STATUS], body, 3), hidden

    def _published(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        if self.file is None:
            return []
        table = published(self.file, dtype=str, keep_default_na=False)
        rows = []
        for row in table.to_dict("records"):
            part, letter = row.pop("part"), row.pop("counterfactual")
            rows.append((part, letter, "published", {name: value for name, value in row.items() if value}))
        return [row for row in rows if row[0] != "factual"]

    def _distances(self, parts: Mapping[str, StoredRun]) -> dict[str, float]:
        """The squared distance of each part's first counterfactual, where there is one."""
        found = {}
        for part, run in parts.items():
            row = _first(run)["row"]
            if row is not None:
                factual = run.factuals()[0].iloc[[0]]
                found[part] = float((displacement(run.space, factual, run.space.frame([row])) ** 2).sum())
        return found

    def _optima(self, parts: Mapping[str, StoredRun], distances: Mapping[str, float]) -> str:
        """The squared distances to the last digit, beside the exact optima."""
        body = []
        for part, ours in distances.items():
            exact = self.optima[part]
            body.append([part, _first(parts[part])["status"], f"{ours:.13f}", f"{exact:.13f}", f"{ours - exact:+.1e}"])
        return markdown(["part", STATUS, "ours", "exact", "ours − exact"], body)


def _refused(run: StoredRun, rows: pd.DataFrame) -> str:
    """That a model of two classes accepts none of some rows, with its scores."""
    raw = np.asarray(run.classifier.raw(rows), dtype=float)
    wanted = "above" if run.classifier.code(_target(run).value) else "at most"
    ends = dict.fromkeys(f"{end:.3g}" for end in (raw.min(), raw.max()))
    return f"refused: score {' to '.join(ends)}; wanted: {wanted} {run.classifier.raw_threshold:.3g}"


def _farther(run: StoredRun, factual: pd.DataFrame, rows: pd.DataFrame) -> str | None:
    """That ours, which is accepted, is nearer than any of some rows, or None; by what the run minimises.

    Less the distance from a hull: a row that was rounded may lie beside it.
    """
    accepted = any(line["verdict"] == ACCEPTED for line in run.verdicts() if line["ce"] == 1)
    if not accepted or run.objective is None:
        return None
    near = replace(run.objective, terms=tuple(term for term in run.objective.terms if term.name != "slack"))
    own, least = (
        float(near.evaluate(run.space, factual, frame).min()) for frame in (run.space.frame([_first(run)["row"]]), rows)
    )
    if own >= least - COST_TIE * max(1.0, abs(least)):
        return None
    return f"not the nearest: its objective is at least {least:.10g}, that of an accepted one {own:.10g}"


def _first(run: StoredRun) -> Mapping[str, Any]:
    return next(row for row in run.rows() if row["ce"] == 1)


def _target(run: StoredRun) -> Any:
    return next(iter(run.factuals()[1].values()))


def _changes(run: StoredRun, factual: pd.DataFrame, row: Mapping[str, Any]) -> dict[str, Any]:
    """The changed features of a stored answer, and how it ended."""
    if row["row"] is None:
        return {STATUS: row["status"]}
    changed = run.space.changed(factual, run.space.frame([row["row"]]))[0]
    values = {name: row["row"][name] for name, moved in zip(run.space.names, changed, strict=True) if moved}
    return {**values, STATUS: row["status"]}


def _shown(value: Any) -> str:
    """A value of a feature: fractions with two decimals, everything else as it is.

    >>> _shown(7.1234), _shown("12.0"), _shown(3), _shown("1<=X<4")
    ('7.12', '12.00', '3', '1<=X<4')
    """
    text = str(value)
    try:
        return text if text.lstrip("-").isdigit() else f"{float(text):.2f}"
    except ValueError:
        return text
