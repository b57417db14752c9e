"""The store of raw answers: one folder a run, rows appended one by one, nothing computed from them."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier, WrappedModel
from harness.core.equation import Equation, Formula
from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.core.objective import Objective
from harness.core.space import Space
from harness.core.target import Target
from harness.core.wording import MENDABLE
from harness.core.writing import replacing, write_whole
from harness.data.sources import fetch
from harness.data.stored import stored_source
from harness.models import pipeline
from harness.models.canonical import canonical
from harness.models.files import check_arrays, checksum, load, read, save
from harness.models.published import load_regressor, reload_published
from harness.models.runtime.source import ModelSource, is_file
from harness.store.archive import answers_of, in_cache, published, studies
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from harness.store.rows import SCHEMA, append_lines, checked_version, plain_row, read_lines

log = logging.getLogger("harness")

KEPT = ("sha256", "trusted", "columns", "logical", "named", "settings")  # of ``WrappedModel``
_read: dict[str, Any] = {}  # the estimator read last, by what its file holds, and if it was published, its settings
_written: list[tuple[Any, bytes]] = []  # the estimator stored last
_held: dict[str, str] = {}  # what files of models hold, by their checksums


class StoredRun:
    """The answers of one method on one dataset and model.

    ``cell.json`` (what was asked, of what, where, and the seconds of the ``setup``), ``estimator.skops`` (or
    ``model.*``, a copy of the user's own model file), ``equation_0.skops`` and so on (regressors of learnt equations),
    ``arrays.npz`` (numbers that the objective needs), ``factuals.jsonl``, append-only ``rows.jsonl`` (and
    ``groups.jsonl``, where groups were explained) and ``done``, written last.

    Parameters
    ----------
    trust
        Whether a model file that runs code of whoever made it may be read.
    """

    def __init__(self, path: Path, trust: bool = False) -> None:
        self.path, self.trust = path, trust

    def __repr__(self) -> str:
        return f"StoredRun({str(self.path)!r})"

    @property
    def done(self) -> bool:
        return (self.path / "done").is_file()

    @property
    def packed(self) -> bool:
        """Whether it is read from an archive, and stays as it is."""
        return in_cache(self.path)

    @property
    def asked(self) -> bool:
        """Whether every factual was asked about; unlike ``done``, also where some failed and will be tried again."""
        return self.done or (self.started and set(self.factuals()[0].index) <= {row["factual"] for row in self.rows()})

    @property
    def scored(self) -> bool:
        """Whether every factual was asked, and the answers are scored."""
        return self.asked and (self.path / "scores.csv").is_file()

    @property
    def started(self) -> bool:
        return (self.path / "cell.json").is_file()

    def start(
        self,
        meta: Mapping[str, Any],
        space: Space,
        classifier: Classifier,
        target: Mapping[Any, Target],
        objective: Objective | None,
        factuals: pd.DataFrame,
        equations: Sequence[Equation] = (),
    ) -> None:
        """Write the task that the answers will be of. ``target`` by factual id; ``objective`` as ``put_objective``."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self._put_model(classifier)
        lines = [
            {"id": to_plain(index), "row": plain_row(row), "target": to_plain(target[index])}
            for index, row in zip(factuals.index, factuals.to_dict("records"), strict=True)
        ]
        write_whole(self.path / "factuals.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        task = {
            "space": to_plain(space),
            "model_file": file,
            "inputs": to_plain((classifier.wrapped and classifier.wrapped.inputs) or classifier.inputs),
            "made_of_others": bool(classifier.wrapped and classifier.wrapped.inputs),
            "classes": to_plain(classifier.classes),
            "threshold": classifier.threshold,
            "objective": self._put_objective(objective),
            "equations": [self._put_equation(number, equation) for number, equation in enumerate(equations)],
        }
        write_whole(self.path / "cell.json", json.dumps({"schema": SCHEMA, **to_plain(meta), **task}, indent=1))

    def put_objective(self, objective: Objective) -> None:
        """Store what the method claims to minimise; known once a worker has fitted it."""
        self.update(objective=self._put_objective(objective))

    def _put_objective(self, objective: Objective | None) -> Any:
        """An objective as JSON data, its numbers in ``arrays.npz``."""
        arrays: dict[str, np.ndarray] = {}
        plain = to_plain(None if objective is None else objective.stored(), arrays)
        if arrays:
            np.savez_compressed(self.path / "arrays.npz", allow_pickle=False, **arrays)
        return plain

    def _put_model(self, classifier: Classifier) -> dict[str, Any] | None:
        """Store the estimator, or a copy of the user's own model file; returns its entry of ``cell.json``."""
        wrapped = classifier.wrapped
        if wrapped is None or wrapped.inputs:
            _put_estimator(classifier.estimator if wrapped is None else wrapped.model, self.path / "estimator.skops")
            return None
        source, name = Path(wrapped.path), f"model{Path(wrapped.path).suffix.lower()}"
        if not source.is_file() or checksum(source) != wrapped.sha256:
            raise HarnessError(f"{source} has changed since it was read; run the same command again.")
        with replacing(self.path / name) as temporary:
            shutil.copyfile(source, temporary)
        kept = {field: getattr(wrapped, field) for field in KEPT}
        return {"file": name, "labels": classifier.labels, "opaque": classifier.opaque, **kept}

    def _put_equation(self, number: int, equation: Equation) -> dict[str, Any]:
        """An equation as JSON data: a formula in full, a fitted regressor by the name of its file."""
        model = equation.model.estimator
        if not isinstance(model, Formula):
            save(model, self.path / f"equation_{number}.skops")
            model = f"equation_{number}.skops"
        kept = {name: getattr(equation, name) for name in ("feature", "shift", "unit", "text")}
        return to_plain({**kept, "inputs": equation.model.inputs, "model": model})

    def update(self, **changes: Any) -> None:
        """Change entries of ``cell.json``."""
        write_whole(self.path / "cell.json", json.dumps({**self.meta, **to_plain(changes)}, indent=1))

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the rows of one factual: one write and flush, so that a killed run leaves at most a torn last line."""
        append_lines(self.path / "rows.jsonl", rows)

    def append_group(self, line: Mapping[str, Any]) -> None:
        """Add the line of a group, as ``group_line`` makes it; before the rows of its factuals."""
        append_lines(self.path / "groups.jsonl", [line])

    def groups(self) -> list[dict[str, Any]]:
        """The line of each group; of one that was tried again, the last try only."""
        return list({line["group"]: line for line in read_lines(self.path / "groups.jsonl")}.values())

    def finish(self) -> None:
        """Mark the run as complete."""
        write_whole(self.path / "done", "")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Of several processes that have the same run, let one at a time ask, score or forget it."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path / "lock.tmp", os.O_RDWR | os.O_CREAT)  # a file, as servers of files lock no folders
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("%s is asked by another process, which this one waits for.", self.path.name)
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError:  # a file system without locks
                pass
            yield
        finally:
            os.close(handle)

    def reset(self) -> None:
        """Forget all answers: first that they are complete, last what was asked, so that a kill in between is safe."""
        made = ("done", "rows.jsonl", "groups.jsonl", "verdicts.jsonl", "scores.csv")
        shown = ("counterfactuals.csv", "counterfactuals.xlsx", "groups.csv", "groups.md")
        for name in (*made, *shown, "cell.json"):
            (self.path / name).unlink(missing_ok=True)

    @property
    def meta(self) -> dict[str, Any]:
        """The content of ``cell.json``."""
        path = self.path / "cell.json"
        try:
            return checked_version(json.loads(path.read_text()), path)
        except FileNotFoundError:
            raise HarnessError(f"{self.path} holds no stored answers: it has no cell.json.") from None
        except ValueError as fault:
            raise HarnessError(f"{path} is damaged ({fault}); delete {self.path} and run its command again.") from fault

    @property
    def label(self) -> str:
        """dataset/model/method."""
        meta = self.meta
        return f"{meta['dataset']}/{meta['model']}/{meta['method']}"

    @property
    def space(self) -> Space:
        return from_plain(self.meta["space"])

    @property
    def objective(self) -> Objective | None:
        path = self.path / "arrays.npz"
        if path.is_file():
            check_arrays(path)
        return from_plain(self.meta["objective"], np.load(path) if path.is_file() else None)

    @property
    def minimised(self) -> dict[str, Any] | None:
        """The objective as it is stored, but for whether it is one of the features' own costs where they have none."""
        found = self.meta["objective"]
        return found if found is None or self.space.priced else {k: v for k, v in found.items() if k != "costed"}

    @property
    def classifier(self) -> Classifier:
        """The stored estimator, read back from disk, behind its inputs."""
        meta = self.meta
        known = {name: from_plain(meta[name]) for name in ("inputs", "classes", "threshold")}
        if meta.get("model_file") is None:
            estimator = self._fitted(meta)
            if not meta.get("made_of_others"):
                return Classifier(estimator, **known)
            wrapped = WrappedModel(estimator, self.space.names, named=False, inputs=known["inputs"])
            return self._described(wrapped, known, ())
        file = from_plain(meta["model_file"])
        path, labels, opaque = self.path / file.pop("file"), file.pop("labels"), file.pop("opaque")
        if path.parent != self.path or not path.is_file() or checksum(path) != file["sha256"]:
            raise HarnessError(f"{path} is not the file that the answers in {self.path} are of; run them again.")
        if file["trusted"] and not self.trust:
            raise HarnessError(
                f"{path} runs code of whoever made it when it is read, as it did when the answers were made; "
                f"add --trust if you trust its maker."
            )
        if is_file(path):
            model: Any = ModelSource(path, **file["settings"]).opened(self.space, len(known["classes"]), stored=True)
        else:
            model, _ = read(path, self.trust)
        wrapped = WrappedModel(model, path=str(path), **file)
        if opaque is not None:
            return Classifier(wrapped, **known, wrapped=wrapped, opaque=opaque, labels=labels)
        return self._described(wrapped, known, labels)

    def _fitted(self, meta: Mapping[str, Any]) -> Any:
        """The estimator of the run's file, or that which a paper's authors published, where an archive left it out."""
        path = self.path / "estimator.skops"
        if path.is_file() or "family" not in (model := meta["config"]["model"]):
            return _estimator(path)
        dataset = meta["config"]["dataset"].get("name", meta["dataset"])
        source = stored_source(f"the model of {self.path.name}", model["sources"][dataset], self.packed)
        key = json.dumps([checksum(fetch(source)), model, dataset, meta["inputs"]], sort_keys=True)
        return _last(key, lambda: reload_published(source, model, dataset, from_plain(meta["inputs"])))

    def _described(self, wrapped: WrappedModel, known: dict[str, Any], labels: Sequence[Any]) -> Classifier:
        """The classifier of a model with steps, or made of others, as it was when the answers were made."""
        found = pipeline.describe(wrapped.model, self.space, wrapped.columns, known["threshold"], wrapped.inputs)
        known["inputs"] = found.inputs
        model = found.estimator if found.opaque is None else wrapped
        return Classifier(model, **known, wrapped=wrapped, labels=tuple(labels), cut=found.cut, opaque=found.opaque)

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The structural equations of the question, learnt ones read back from disk."""
        found = []
        for entry in from_plain(self.meta.get("equations", [])):
            model, inputs = entry.pop("model"), entry.pop("inputs")
            if isinstance(model, Formula):
                estimator: Any = model
            elif (path := self.path / Path(model).name).is_file():
                estimator = load(path)
            else:  # an archive leaves out what a paper's authors published
                entries = self.meta["config"]["dataset"]["causality"][entry["feature"]]["published"]
                source = stored_source(f"an equation of {self.path.name}", entries, self.packed)
                estimator = load_regressor(source, inputs).estimator
            found.append(Equation(model=Classifier(estimator, inputs), **entry))
        return tuple(found)

    def factuals(self) -> tuple[pd.DataFrame, dict[Any, Target]]:
        """The factuals, indexed by id, and the target of each."""
        lines = list(read_lines(self.path / "factuals.jsonl"))
        frame = self.space.frame(line["row"] for line in lines)
        frame.index = pd.Index([line["id"] for line in lines])
        return frame, {line["id"]: from_plain(line["target"]) for line in lines}

    def rows(self) -> list[dict[str, Any]]:
        """Every stored row of the factuals that have all theirs; of one that was tried again, the last try only."""
        last: dict[tuple[Any, int], dict[str, Any]] = {}
        for row in read_lines(self.path / "rows.jsonl"):
            last[row["factual"], row["ce"]] = row
        expected = self.meta["n_counterfactuals"]
        counts: dict[Any, int] = {}
        for factual, _ in last:
            counts[factual] = counts.get(factual, 0) + 1
        return [row for (factual, _), row in last.items() if counts[factual] == expected]

    def answered(self) -> set[Any]:
        """Ids of the factuals that need no (further) try: all but those that failed or lacked what can be installed."""

        def again(row: Mapping[str, Any]) -> bool:
            lacking = row["status"] == Status.UNSUPPORTED and any(words in row["detail"] for words in MENDABLE)
            return row["status"] == Status.FAILED or lacking

        rows = self.rows()
        return {row["factual"] for row in rows} - {row["factual"] for row in rows if again(row)}

    def put_verdicts(self, verdicts: Iterable[Mapping[str, Any]]) -> None:
        """Store the checker's verdicts in place of earlier ones."""
        write_whole(self.path / "verdicts.jsonl", "".join(json.dumps(to_plain(line)) + "\n" for line in verdicts))

    def verdicts(self) -> list[dict[str, Any]]:
        """The checker's verdicts, one a row."""
        return list(read_lines(self.path / "verdicts.jsonl"))


def _put_estimator(estimator: Any, path: Path) -> None:
    """Store an estimator; where it was the last one, too, by the bytes of then."""
    if _written and _written[0][0] is estimator:
        write_whole(path, _written[0][1])
        return
    save(estimator, path)
    _written[:] = [(estimator, path.read_bytes())]


def _estimator(path: Path) -> Any:
    """The estimator in a file; files of runs about one model are the same to the bit."""
    return _last(checksum(path) if path.is_file() else "", lambda: load(path))


def _last(key: str, read: Callable[[], Any]) -> Any:
    """What is read, or was read last by the same key: runs of one model follow each other."""
    if key not in _read:
        found = read()
        _read.clear()
        _read[key] = found
    return _read[key]


def method_of(meta: Mapping[str, Any]) -> str:
    """The name of a run's method, which is its YAML's, without that of its variant.

    >>> method_of({"method": "ce_ocl-wide", "config": {"variant": "wide"}})
    'ce_ocl'
    """
    variant = meta["config"].get("variant")
    return str(meta["method"]).removesuffix(f"-{variant}") if variant else str(meta["method"])


def model_of(run: StoredRun, equations: bool = False) -> list[Any]:
    """How a run's model is read, and what its file holds, whichever process wrote it: equal of equal models.

    The files of a paper's authors are named, not looked into.

    Parameters
    ----------
    equations
        Whether learnt equations are to be the same, too.
    """
    meta = run.meta
    config, file = meta.get("config", {}), meta.get("model_file") or {}
    names = {file.get("file") or "estimator.skops"}
    told = [*(meta.get(name) for name in ("inputs", "classes", "threshold")), bool(meta.get("made_of_others"))]
    told += [file.get(name) for name in ("labels", "columns", "logical", "named")] + [file.get("settings") or {}]
    if "family" in config.get("model", {}):
        told.append(config["model"]["sources"])
    if equations:
        names |= {entry["model"] for entry in meta.get("equations") or () if isinstance(entry["model"], str)}
        told.append(config.get("dataset", {}).get("causality"))
    paths = (run.path / name for name in names - published(meta))
    return [*told, {path.name: _holds(path) for path in paths if path.is_file()}]


def _holds(path: Path) -> str:
    """What a model's file holds, whichever process wrote it."""
    if (key := checksum(path)) not in _held:
        _held[key] = canonical(path)[0] if path.suffix == ".skops" else key
    return _held[key]


def stored_runs(folder: Path, trust: bool = False) -> list[StoredRun]:
    """Every run of a study, or of all studies in a folder, by name; ``trust`` as for ``StoredRun``.

    Raises
    ------
    HarnessError
        If there is none, and for an archive that cannot be read.
    """
    homes = {answers_of(folder), *studies(folder)}
    found = sorted({path for home in homes for path in home.glob("**/cell.json")})
    if not found:
        raise HarnessError(
            f"there are no stored answers under {folder}; give a results folder, such as results/compas, or an archive."
        )
    return [StoredRun(path.parent, trust) for path in found]


def sweep_lines(folder: Path) -> list[dict[str, Any]]:
    """What the sweeps of a study noted of each run, in the order of the sweeps; lines cut short are dropped."""
    return [line for record in sorted((answers_of(folder) / "sweeps").glob("*.jsonl")) for line in read_lines(record)]
