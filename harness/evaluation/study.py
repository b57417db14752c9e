"""The runs of a study, told apart by what differs between them, and pooled over seeds: one entry a method and task."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.wording import some
from harness.evaluation import pace, proofs, scoring, statistics
from harness.evaluation.earlier import earlier
from harness.evaluation.statistics import Estimate
from harness.store.archive import answers_of
from harness.store.run import StoredRun, model_of, stored_runs, sweep_lines

EQUATIONS = "structural equations"  # what some methods see
SCORES = "scores.csv"
# Settings that are no part of what is asked: how it is scored, shown and kept.
SHOWING = {
    "metrics", "population", "divide", "optimise", "dry", "force", "rescore", "study", "table", "figure", "output_dir",
    "variant", "jobs",
}  # fmt: skip
# Of a dataset: another list makes a variant.
CONSTRAINTS = {"immutable", "features", "unbounded", "causality", "constraints"}
DATA = {"dataset", *CONSTRAINTS}
# Settings that make another task, as its people or its model are others; all other settings make a variant of a method.
TASK = {"model", "model_seed", "split", "factuals", "factuals_seed", "n_factuals", "desired", "satisfied"}
ANSWERED = 0.5  # of its seeds: a question that so many answer is answered
SHOWN = 5  # questions of a sentence
FAULTS = ("invalid", "incoherent", "not permitted", "late", "beyond its limits", "worse than claimed", "repeated")


@dataclass(frozen=True)
class Entry:
    """A method, or a variant of one, on a task; its seeds are pooled.

    Parameters
    ----------
    task
        Dataset and model, and what else tells two tasks of them apart.
    method
        The method's name, with its variant in brackets.
    runs
        One a seed.
    table
        One row a question, means over seeds of the columns of ``scoring.score``.
    refusal
        Why the method does not take the task; None where it does.
    one
        Whether the method, by design, gives one counterfactual a question, however many are asked for.
    impossible
        How many questions are not in the table, as no counterfactual exists, by proof.
    paces
        By run, what its seconds were multiplied by to be as on the machine of most of the task's runs; NaN where they
        are those of another machine, as that is not known.
    """

    dataset: str
    model: str
    task: str
    method: str
    runs: tuple[StoredRun, ...]
    metas: tuple[Mapping[str, Any], ...]
    table: pd.DataFrame
    refusal: str | None
    one: bool
    impossible: int
    outcomes: tuple[Mapping[str, Any], ...]
    paces: tuple[float, ...] = ()

    def counted(self, what: str) -> Counter[str]:
        """Over all seeds, one of the counts of ``scoring.outcome``, such as ``missing``."""
        return sum((Counter[str](outcome[what]) for outcome in self.outcomes), Counter[str]())

    @property
    def timed(self) -> bool:
        """Whether its seconds compare with others of the task: each question's own, on a machine that is comparable."""
        grouped = any(meta.get("config", {}).get("group") for meta in self.metas)
        return not grouped and not any(map(math.isnan, self.paces))

    @property
    def seeds(self) -> int:
        return len(self.runs)

    @property
    def several(self) -> bool:
        """Whether several counterfactuals are asked for, and may be given."""
        return not self.one and any(meta["n_counterfactuals"] > 1 for meta in self.metas)

    @cached_property
    def coverage(self) -> Estimate:
        """Share of the questions with at least one accepted counterfactual."""
        return statistics.share(self.table["coverage"].to_numpy())

    @property
    def filled(self) -> float:
        """Accepted counterfactuals per one asked for; NaN of a method that gives one."""
        return float(self.table["filled"].mean()) if self.several else math.nan

    @property
    def validity(self) -> float:
        """Share of what was returned of which the model says what was wanted; NaN where nothing was."""
        returned = self.table["returned"].sum()
        return float(self.table["valid"].sum() / returned) if returned else math.nan

    @cached_property
    def answered(self) -> pd.Series:
        """Of each question, whether at least half of the seeds answered it, bool."""
        return self.table["coverage"] >= ANSWERED

    def spent(self, what: str = "seconds", share: float = 0.5) -> float:
        """A quantile over all questions of their seconds, of which one without an accepted answer counts its limit.

        Or of ``cpu_seconds``, the processor's, which are not known of a question that was stopped; or of
        ``model_seconds``, on what a method's own process asked about the model. NaN where none are known.
        """
        known = self.table.get(what, pd.Series(dtype=float)).dropna()
        return float(known.quantile(share)) if len(known) else math.nan

    @property
    def peak_mib(self) -> float:
        """The most memory that a worker took, in MiB; NaN where it was not noted."""
        return float(self.table["peak_mib"].max()) if "peak_mib" in self.table else math.nan

    @property
    def setup(self) -> tuple[float, float]:
        """Seconds, and processor seconds, from the start of a process to the first question; the mean over seeds."""
        known = [meta["setup"] for meta in self.metas if meta.get("setup")]
        if not known:
            return float(self.table["fit_seconds"].max()) if len(self.table) else math.nan, math.nan
        seconds, cpu = (pd.Series([each[name] for each in known], dtype=float) for name in ("seconds", "cpu_seconds"))
        return float(seconds.mean(skipna=False)), float(cpu.mean(skipna=False))

    @cached_property
    def groups(self) -> dict[str, float]:
        """Means over groups of what ``scoring.score`` has of them, by its names; empty where people were asked."""
        if scoring.GROUPED[0] not in self.table:
            return {}
        paces = self.paces or [1.0] * len(self.runs)
        means = pd.concat([pace.grouped(run, factor) for run, factor in zip(self.runs, paces, strict=True)]).mean()
        return {name: float(means[name.partition("/")[2]]) for name in scoring.GROUPED}

    @property
    def sees(self) -> tuple[str, ...]:
        """What it sees and others do not: rows beyond the training data, structural equations."""
        causal = any(bool((meta.get("objective") or {}).get("causal")) for meta in self.metas)
        found = [name for meta in self.metas for name in meta.get("sees", ())]
        return tuple(dict.fromkeys([*found, *[EQUATIONS] * causal]))

    @property
    def faults(self) -> Counter[str]:
        """Counterfactuals that were returned and not accepted, by their first fault; counts add up over seeds."""
        found: Counter[str] = Counter()
        for outcome in self.outcomes:
            found.update({word: n for word, n in outcome["verdict"].items() if word in FAULTS})
        return found

    def mean(self, metric: str) -> Estimate:
        """The mean of a metric over questions, each its mean over accepted counterfactuals."""
        return statistics.mean(self.table[metric].to_numpy() if metric in self.table else np.zeros(0))

    def seed_spread(self, metric: str) -> float:
        """Standard deviation over seeds of a run's mean; NaN with one."""
        if self.seeds == 1:
            return math.nan
        means = [part[metric].mean() for part in self.by_seed if metric in part]
        return float(np.std(means, ddof=1)) if len(means) > 1 else math.nan

    @property
    def of_seeds(self) -> list[Entry]:
        """Each seed's by itself, of the same questions."""
        parts = zip(self.runs, self.metas, self.by_seed, self.outcomes, self.paces, strict=True)
        return [
            replace(self, runs=(run,), metas=(meta,), table=table, outcomes=(outcome,), paces=(own,))
            for run, meta, table, outcome, own in parts
        ]

    @cached_property
    def by_seed(self) -> list[pd.DataFrame]:
        """The table of each seed, of the same questions."""
        tables = map(_paced, self.runs, self.paces)
        return [table.loc[table.index.intersection(self.table.index)] for table in tables]


def _paced(run: StoredRun, factor: float) -> pd.DataFrame:
    """The scores of a run, with its seconds as on the machine that they are compared on."""
    return pace.scaled(read_scores(run), factor, scoring.limit_of(run.meta), lambda: scoring.stopped(run))


@dataclass(frozen=True)
class Study:
    """The entries of a study, in the order in which they were first run.

    Parameters
    ----------
    impossible
        By task and constraints (empty where these are the same in all runs of the task), the questions that are proven
        to have no counterfactual, each with the proof's reason; they are in no table of an entry with the constraints.
    faults
        A sentence for each such proof that an accepted counterfactual refutes, for each other proof that one
        contradicts (where these are ``held`` against them), and for each method that was asked about other people or
        data than the rest of its task.
    calibrations
        Of machines, by which seconds are compared.
    """

    name: str
    entries: tuple[Entry, ...]
    impossible: Mapping[tuple[str, str], Mapping[Any, str]]
    faults: tuple[str, ...]
    calibrations: tuple[pace.Calibration, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Study:
        """Read the folder of a study.

        Raises
        ------
        HarnessError
            Where no run is finished and scored.
        """
        return cls.among(folder.resolve().name, latest(folder), pace.calibrations(answers_of(folder)))

    @classmethod
    def among(cls, name: str, runs: Sequence[StoredRun], known: Iterable[pace.Calibration] = ()) -> Study:
        """A study of some runs that are scored. ``known``: of machines."""
        metas = [run.meta for run in runs]
        labels = named(metas)
        known = tuple(known)
        groups = _alike((task, method) for task, method, _ in labels)
        refusals = [scoring.refusal(run) for run in runs]
        took = [place for places in groups.values() for place in places if not all(refusals[p] for p in places)]
        paced, _ = pace.paces([(*labels[place][:2], metas[place]) for place in took], known)
        factors = dict(zip(took, paced, strict=True))
        tables = [_paced(run, factors.get(place, 1.0)) for place, run in enumerate(runs)]
        impossible, faults = proofs.impossible(labels, runs, tables)
        entries = []
        for (task, method), places in groups.items():
            first = metas[places[0]]
            gone = impossible.get((task, labels[places[0]][2]), {})
            stacked = pd.concat([tables[place] for place in places])
            pooled = stacked.groupby(level=0, sort=False).mean(numeric_only=True)
            if "peak_mib" in stacked:
                pooled["peak_mib"] = stacked["peak_mib"].groupby(level=0, sort=False).max()
            entries.append(
                Entry(
                    dataset=first["dataset"],
                    model=first["model"],
                    task=task,
                    method=method,
                    runs=tuple(runs[place] for place in places),
                    metas=tuple(metas[place] for place in places),
                    table=pooled.loc[[index not in gone for index in pooled.index]],
                    refusal=refusals[places[0]] if all(refusals[place] for place in places) else None,
                    one=first.get("gives", "several") == "one",
                    impossible=len(gone),
                    outcomes=tuple(scoring.outcome(runs[place], gone) for place in places),
                    paces=tuple(factors.get(place, 1.0) for place in places),
                )
            )
        return cls(name, tuple(entries), impossible, (*faults, *_unlike(labels, runs, metas)), known)

    def held(self) -> Study:
        """With a fault more for each method of a task whose other proofs a counterfactual contradicts.

        Proofs within hulls are left to ``harness.check``: each is a program of seconds.
        """
        found, said = proofs.Found(), list[str]()
        for run in (run for entry in self.entries for run in entry.runs):
            found.add(run, run.verdicts())
        for entry in self.entries:
            wrong = dict.fromkeys(sentence for run in entry.runs for sentence in found.against(run, whole=False)[0])
            for sentence in list(wrong)[:1]:
                more = f"; {len(wrong) - 1} more of its proofs are contradicted" * (len(wrong) > 1)
                said.append(f"{entry.task}: {entry.method}: {sentence}{more}")
        return replace(self, faults=(*self.faults, *said))

    @property
    def runs(self) -> list[StoredRun]:
        return [run for entry in self.entries for run in entry.runs]

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(entry.task for entry in self.entries))

    @property
    def asked(self) -> list[str]:
        """The tasks with a question that some method takes."""
        return [task for task in self.tasks if any(len(entry.table) for entry in self.of_task(task))]

    def tasks_of(self, folders: Collection[Path]) -> list[str]:
        """Those that a run in one of some folders is of."""
        found = (entry.task for entry in self.entries if any(run.path in folders for run in entry.runs))
        return list(dict.fromkeys(found))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(entry.dataset for entry in self.entries))

    def of_task(self, task: str) -> list[Entry]:
        """Of a task, the entries of methods that take it."""
        return [entry for entry in self.entries if entry.task == task and entry.refusal is None]

    def absent(self, task: str) -> str:
        """That no counterfactual exists for some questions of a task, and why most; empty where there are none."""
        texts = []
        for constraints in (constraints for known, constraints in self.impossible if known == task):
            gone = self.impossible[task, constraints]
            shown = ", ".join(map(str, list(gone)[:SHOWN])) + (", ..." if len(gone) > SHOWN else "")
            under = f" under {constraints}" if constraints else ""
            ((why, _),) = Counter(gone.values()).most_common(1)
            which = f"{len(gone)} question{'s' * (len(gone) != 1)} ({shown})"
            texts.append(f"none exists{under} for {which}, which are counted apart: {why}")
        return "; ".join(texts)

    def clocks(self, tasks: Collection[str]) -> list[str]:
        """Sentences about seconds of some tasks: taken beside other work, or on other machines."""
        entries = [entry for entry in self.entries if entry.task in tasks]
        timed = [(entry.method, outcome) for entry in entries for outcome in entry.outcomes]
        runs = [(e.task, e.method, meta) for e in entries if e.refusal is None for meta in e.metas]
        return [*pace.disturbed(timed), *pace.paces(runs, self.calibrations)[1]]

    def conditions(self, tasks: Collection[str]) -> list[str]:
        """Sentences about methods of some tasks: who sees what others do not, and who is not set alike on all tasks."""
        took = [entry for entry in self.entries if entry.task in tasks and entry.refusal is None]
        seen = [f"{e.task}: {e.method} sees what others do not: {what}." for e in took if (what := self.more(e))]
        if any((meta.get("scored") or {}).get("population") == "returned" for e in took for meta in e.metas):
            seen.append("Means of some runs are over all that was returned, accepted or not (population=returned).")
        for method in dict.fromkeys(entry.method for entry in took):
            plain = [settings(entry.metas[0]) for entry in took if entry.method == method]
            shared = set.intersection(*map(set, plain))  # an earlier version may have lacked others
            if own := [key for key in _differing(plain) if key in shared and key.startswith("method.")]:
                names = some((key.removeprefix("method.") for key in own), SHOWN)
                seen.append(f"{method} is not set alike on all tasks: {names} differ{'s' * (len(own) == 1)}.")
        return seen

    def more(self, entry: Entry) -> str:
        """What an entry sees and not all methods that take its task, in words; empty where there is nothing."""
        return ", ".join(what for what in entry.sees if any(what not in e.sees for e in self.of_task(entry.task)))

    @property
    def refused(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.refusal is not None]


def read_scores(run: StoredRun) -> pd.DataFrame:
    """The scores of a run, one row a question."""
    return pd.read_csv(run.path / SCORES, index_col="factual")


def latest(folder: Path) -> list[StoredRun]:
    """The runs of a study that are asked and scored to the end, failures included, in the order of the sweeps.

    Of runs that differ in nothing but the code that answered, the last.

    Raises
    ------
    HarnessError
        Where there is none.
    """
    found = {run.path.name: run for run in stored_runs(folder)}
    recorded = [Path(line["cell"]).name for line in sweep_lines(folder) if line["state"] != "failed"]
    order = [name for name in found if name not in set(recorded)] + recorded
    kept: dict[str, StoredRun] = {}
    for name in order:
        if name in found and found[name].scored:
            kept[identity(found[name].meta)] = found[name]
    if not kept:
        raise HarnessError(f"no run under {folder} is finished and scored; run its experiment to the end.")
    return list(kept.values())


def identity(meta: Mapping[str, Any]) -> str:
    """All that tells a run from another, but for the code that answered."""
    names = [meta[name] for name in ("dataset", "model", "method", "seed")]
    return json.dumps([names, settings(meta)], sort_keys=True, default=str)


def settings(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that tell it from others, by dotted name; its seed is not among them."""
    plain = {key: value for key, value in meta["config"].items() if key not in SHOWING and key != "seed"}
    return {**earlier(meta["config"]), **dict(flat(plain))}


def posed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a run, those that say what is asked of which model: people, data, constraints, estimator."""
    return {key: value for key, value in settings(meta).items() if _of_task(key) or _of_data(key)}


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Leaves by dotted name; an empty mapping has none."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def named(metas: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Task, method, and the constraints of each run, with what differs between runs of the same names.

    A name that several runs share is followed by the settings in which these differ. Those of the model and the people
    follow the task, and are compared among all runs of a dataset and model; so are those of constraints and limits, and
    follow the method, but for constraints of a variant that has a name; parameters of a method are compared among its
    own runs. The third are the constraints and the number of counterfactuals: what is proven of a question under these
    holds whatever the limits of time were.
    """
    plain = [settings(meta) for meta in metas]
    task_keys: dict[str, set[str]] = {}  # by dataset
    shared_keys: set[str] = set()
    own_keys: dict[str, set[str]] = {}  # by method
    for group in _alike((meta["dataset"], meta["model"]) for meta in metas).values():
        for key in _differing([plain[place] for place in group]):
            if _of_task(key):
                task_keys.setdefault(metas[group[0]]["dataset"], set()).add(key)
            elif not key.startswith("method."):
                shared_keys.add(key)
    for group in _alike((meta["dataset"], meta["model"], meta["method"]) for meta in metas).values():
        keys = _differing([plain[place] for place in group])
        own_keys.setdefault(metas[group[0]]["method"], set()).update(key for key in keys if not _of_task(key))
    labels = []
    for meta, own in zip(metas, plain, strict=True):
        task = _with(f"{meta['dataset']} / {meta['model']}", _described(own, task_keys.get(meta["dataset"], set())))
        limits = {key for key in shared_keys if not _of_data(key)}
        also = limits if meta["config"].get("variant") else shared_keys
        method = _with(meta["method"], _described(own, own_keys[meta["method"]] | also))
        question = {key for key in shared_keys if _of_data(key) or key == "n_counterfactuals"}
        labels.append((task, method, _described(own, question)))
    return labels


def _differing(plain: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that are not the same in all of some runs, or not there."""
    keys = dict.fromkeys(key for each in plain for key in each)
    texts = {key: {json.dumps(each[key], default=str) if key in each else "" for each in plain} for key in keys}
    return [key for key, values in texts.items() if len(values) > 1]


def _alike(names: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    """Places of the runs that share some names."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, each in enumerate(names):
        groups.setdefault(each, []).append(place)
    return groups


def _of_task(key: str) -> bool:
    first, _, rest = key.partition(".")
    return first in TASK or (first == "dataset" and rest.partition(".")[0] not in CONSTRAINTS)


def _of_data(key: str) -> bool:
    return key.partition(".")[0] in DATA


def _described(plain: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Some settings in words, as a command line has them; ``method.`` is left out."""
    return ", ".join(f"{key.removeprefix('method.')}={as_text(plain[key])}" for key in sorted(keys) if key in plain)


def as_text(value: Any) -> str:
    """A setting as a YAML has it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _with(name: str, detail: str) -> str:
    return f"{name} ({detail})" if detail else name


def _unlike(
    labels: Sequence[tuple[str, str, str]], runs: Sequence[StoredRun], metas: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A sentence for each method that asked another model, or about others, than the first of its task."""
    first: dict[str, tuple[str, Any, Any]] = {}
    found = []
    for (task, method, _), run, meta in zip(labels, runs, metas, strict=True):
        asked = meta.get("data_sha256"), (run.path / "factuals.jsonl").read_bytes()
        model = model_of(run)
        known, people, other = first.setdefault(task, (method, asked, model))
        if (people, other) == (asked, model):
            continue
        unlike = "about other people or data" if people != asked else "of another model"
        found.append(
            f"{task}: {method} was asked {unlike} than {known}, and does not compare with it; "
            f"run all methods of the task again."
        )
    return list(dict.fromkeys(found))
