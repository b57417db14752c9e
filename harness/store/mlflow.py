"""MLflow: one flat run a stored run, a view of the stored answers. The only file that knows MLflow."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import logging
import math
import os
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pandas as pd
import yaml  # type: ignore[import-untyped]
from sqlalchemy import Engine, event
from sqlalchemy.exc import ArgumentError, DatabaseError

os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # read where MLflow is imported
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # what is run here is nobody else's business
from mlflow import MlflowClient
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from mlflow.entities import DatasetInput, InputTag, LifecycleStage, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.types import ColSpec, Schema
from mlflow.utils.time import get_current_time_millis

from harness.core.errors import HarnessError, short
from harness.core.packages import commit

DIGEST = 36  # characters that MLflow keeps of a hash
LONGEST = 6000  # characters of a parameter or tag: what its stores hold
KIND = {"mlflow.experimentKind": "custom_model_development"}  # or MLflow guesses, and may open the pages of agents
ODD = re.compile(r"[?]|%[0-9A-Fa-f]{2}")  # what in the path of a store would be read otherwise
UNNAMED = re.compile(r"[^\w\-. /]", flags=re.ASCII)  # what MLflow takes in no parameter's name

HEADLINES = (  # metrics whose names have no "/": MLflow's first section of charts in the view below, in this order
    "coverage", "validity", "proximity", "sparsity", "diversity", "seconds", "plausibility", "robustness", "filled",
    "optimal",
)  # fmt: skip
COLUMNS = (  # MLflow puts metrics first, whatever their order here; the others are in a run's name, too
    *(f"metrics.`{name}`" for name in HEADLINES[:6]), "params.`method`", "tags.`dataset`", "params.`model`",
)  # fmt: skip
VIEW = "ce-harness"  # the saved view of an experiment's runs that the printed address opens
STUDY = "study"  # tag of the one run of an experiment that is about all others
FAILED = "failed"  # tag of a run that has no answers: what it was asked, as a hash
TABLE = "counterfactuals.json"
PATIENCE = 8.0  # seconds for a server to answer
RETRIES = "3"  # of a request that fails: 14 s, where MLflow itself would try for minutes
DOWN = (502, 503, 504)  # statuses of HTTP of a proxy before nothing; any other is an answer
SERVED = ("http://", "https://")  # what begins the address of a server
STORES = "start it, or unset the variable to log into mlflow.db here; what was answered is kept"
WRITABLE = "make it a store that can be written to, move it away, or set MLFLOW_TRACKING_URI to another"
NOWHERE = (FileNotFoundError, NotADirectoryError, PermissionError)  # of a folder that cannot be made
FULL = "disk is full|disk I/O error"  # what SQLite says
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C where that is to be had

log = logging.getLogger(__name__)
_opened: list[sqlite3.Connection] = []


@dataclass(frozen=True)
class Data:
    """A dataset as MLflow shows it.

    Parameters
    ----------
    name, sha256
        Of the dataset; the hash is that of what was read.
    columns
        MLflow's type of each feature by name: ``double``, ``long`` or ``string``.
    context
        The rows that factuals are from.
    """

    name: str
    sha256: str
    columns: Mapping[str, str]
    context: str

    def entity(self) -> Any:
        source = CodeDatasetSource({"ce-harness dataset": self.name, "sha256": self.sha256})
        schema = Schema([ColSpec(kind, name) for name, kind in self.columns.items()])
        known = MetaDataset(source, name=self.name, digest=self.sha256[:DIGEST], schema=schema)  # type: ignore[abstract]
        return DatasetInput(known._to_mlflow_entity(), [InputTag("mlflow.data.context", self.context[:500])])


@contextmanager
def _naming_what_fails() -> Iterator[None]:
    """A store without room as the OSError that any other file would raise; a server that is gone as one sentence."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    if served := uri.startswith(SERVED):
        _reach(uri)
    try:
        yield
    except (MlflowException, DatabaseError) as fault:
        if served:
            _reach(uri)
        if not re.search(FULL, str(fault)):
            raise
        store = os.environ["MLFLOW_TRACKING_URI"].removeprefix("sqlite:///")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), store) from fault


@_naming_what_fails()
def prepare(folder: Path) -> None:
    """Create the store once, before any job: two processes that create it together would corrupt it, so one waits.

    ``MLFLOW_TRACKING_URI`` is respected; otherwise the store is ``mlflow.db`` in ``folder``, with artifacts in
    ``mlruns``.
    """
    ours = f"sqlite:///{folder.resolve() / 'mlflow.db'}"
    if "MLFLOW_TRACKING_URI" not in os.environ and (odd := ODD.search(ours)):
        remedy = f"as an address has no {odd[0]!r}; go to a folder of another name, or set MLFLOW_TRACKING_URI"
        raise HarnessError(f"MLflow's store cannot lie in {folder.resolve()}, {remedy}.")
    os.environ.setdefault("MLFLOW_TRACKING_URI", ours)
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", RETRIES)
    uri = os.environ["MLFLOW_TRACKING_URI"]
    try:
        with alone(folder):
            _read(Path(uri.removeprefix("sqlite:///")))
            _client().search_experiments(max_results=1)
    except (MlflowException, ArgumentError, DatabaseError, ImportError, sqlite3.DatabaseError, *NOWHERE) as fault:
        if re.search(FULL, str(fault)):
            raise
        why = " ".join(str(fault).split())[:200]
        remedy = STORES if uri.startswith(SERVED) else WRITABLE
        what = f"MLFLOW_TRACKING_URI={uri}" if uri != ours else uri.removeprefix("sqlite:///")
        raise HarnessError(f"{what} cannot be used ({why}); {remedy}.") from fault


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Have other processes that begin in the same folder wait: each would find no store, and create it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # where the file system knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(store: Path) -> None:
    """Make sure that a store of SQLite, where there is one, is one: MLflow itself would try for minutes.

    Raises
    ------
    sqlite3.DatabaseError
        Where it is not, or is damaged.
    """
    if store.is_file():
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _reach(uri: str) -> None:
    """Make sure that a server answers; raise a HarnessError else. MLflow itself would try for minutes."""
    try:
        urlopen(uri, timeout=PATIENCE).close()
    except (OSError, ValueError, HTTPException) as fault:
        if not isinstance(fault, HTTPError) or fault.code in DOWN:
            raise HarnessError(f"the server MLFLOW_TRACKING_URI={uri} does not answer ({fault}); {STORES}.") from fault


def close() -> None:
    """Put all that was logged into the one file of a store of SQLite, which can then be copied or moved."""
    for connection in _opened:
        with suppress(sqlite3.ProgrammingError, sqlite3.OperationalError):  # closed, or busy with another process
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
    _opened.clear()


def _write_ahead(connection: Any, record: Any) -> None:
    """Have SQLite append to a log what is committed, instead of waiting for the disk several times a commit.

    A process may be killed at any point; a power cut may take the last commits along, and no more.
    """
    path = os.environ.get("MLFLOW_TRACKING_URI", "").removeprefix("sqlite:///")
    if not isinstance(connection, sqlite3.Connection):
        return
    if os.path.realpath(path) == connection.execute("PRAGMA database_list").fetchone()[2]:
        _opened.append(connection)
        with suppress(sqlite3.OperationalError):  # where a process uses it that does not
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                connection.execute("PRAGMA synchronous = NORMAL")


@lru_cache(maxsize=1)
def _client() -> Any:
    event.listen(Engine, "connect", _write_ahead)
    for chatty in ("alembic", "mlflow"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # its errors are raised as well
    return MlflowClient(tracking_uri=os.environ["MLFLOW_TRACKING_URI"])


@dataclass(frozen=True)
class Shown:
    """What MLflow's table of runs shows of one.

    Parameters
    ----------
    metrics
        By name ``family/name``; what is not finite is left out, as MLflow keeps no gaps.
    """

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, Any]
    metrics: Mapping[str, float]


@_naming_what_fails()
def log_stored(
    experiment: str,
    folder: Path,
    run: Shown,
    answers: pd.DataFrame,
    config: Mapping[str, Any],
    data: Data,
    files: Sequence[Path] = (),
) -> str:
    """Log one stored run and return the id of MLflow's run; an earlier run of the same fingerprint is replaced.

    Parameters
    ----------
    data
        What the factuals are from: shown with the run.
    files
        Kept as artifacts, too.
    """
    client = _client()
    identity = _experiment(experiment, folder)
    for stale in client.search_runs([identity], f"tags.fingerprint = '{run.tags['fingerprint']}'", max_results=50):
        client.delete_run(stale.info.run_id)
    # Its fingerprint comes with the run, so that one left half-written is found, and replaced, too.
    shown = {"mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}])}
    labels = {key: str(value)[:LONGEST] for key, value in {**run.tags, **shown, **_code()}.items()}
    made = client.create_run(identity, run_name=run.name, tags=labels).info
    now = get_current_time_millis()
    finite = {key: float(value) for key, value in run.metrics.items() if abs(float(value)) < float("inf")}
    client.log_batch(
        made.run_id,
        metrics=[Metric(key, value, now, 0) for key, value in finite.items()],
        params=[Param(UNNAMED.sub("_", key), str(value)[:LONGEST]) for key, value in list(run.params.items())[:100]],
    )
    _log_data(made.run_id, data)
    with tempfile.TemporaryDirectory() as kept:
        here = Path(kept)
        (here / "config.yaml").write_text(yaml.dump(dict(config), Dumper=_DUMPER, sort_keys=False))
        answers.to_json(here / TABLE, orient="split", index=False)
        for file in files:
            shutil.copy(file, here)
        get_artifact_repository(made.artifact_uri, client.tracking_uri).log_artifacts(kept)
    client.set_terminated(made.run_id)
    logged(experiment).add(run.tags["fingerprint"])
    return made.run_id


def log_failed(experiment: str, folder: Path, asked: str, label: str, names: Mapping[str, str], why: str) -> None:
    """Show that a run came to nothing, and why, until the same (``asked``, a hash of it) is answered."""
    forget_failed(experiment, asked, label)
    with _warning_of_failures(label), _naming_what_fails():
        tags = {**names, FAILED: asked, "state": FAILED, "mlflow.note.content": why, **_code()}
        made = _client().create_run(_experiment(experiment, folder), run_name=label, tags=tags).info
        _failures(experiment)[asked] = [made.run_id]
        _client().log_batch(made.run_id, params=[Param(key, value) for key, value in names.items()])
        _client().set_terminated(made.run_id, status="FAILED")


def forget_failed(experiment: str, asked: str, label: str) -> None:
    """Put what ``log_failed`` has shown of a run into MLflow's trash."""
    with _warning_of_failures(label), _naming_what_fails():
        for identity in _failures(experiment).pop(asked, ()):
            _client().delete_run(identity)


@contextmanager
def _warning_of_failures(label: str) -> Iterator[None]:
    """A warning where MLflow fails, perhaps as the run itself did."""
    try:
        yield
    except (MlflowException, HarnessError) as fault:
        log.warning("%s: MLflow may show wrongly whether it failed (%s).", label, short(fault))


@lru_cache(maxsize=64)
def _failures(experiment: str) -> dict[str, list[str]]:
    """The runs of an experiment that ``log_failed`` has shown, by what was asked, when this process first asks."""
    found, kept = _found(experiment), dict[str, list[str]]()
    for run in () if found is None else _pages(found.experiment_id, f"tags.state = '{FAILED}'"):
        kept.setdefault(run.data.tags.get(FAILED, ""), []).append(run.info.run_id)
    return kept


def _log_data(run: str, data: Data) -> None:
    """Show a run's dataset. Where several processes are the first to name it, all but one are refused."""
    try:
        _client().log_inputs(run, datasets=[data.entity()])
    except MlflowException:
        _client().log_inputs(run, datasets=[data.entity()])


@_naming_what_fails()
def log_study(experiment: str, note: str, files: Sequence[Path], arrows: Mapping[str, str]) -> None:
    """Keep files and folders in the run of an experiment that is about all others, which is made where there is none.

    Nothing is kept where there is no such experiment. Its saved view is set, too; ``arrows`` say which way criteria are
    better.
    """
    client = _client()
    if (found := _found(experiment)) is None:
        return
    key, view = f"mlflow.sharedViewState.{VIEW}", _view(arrows)
    if found.tags.get(key) != view:
        client.set_experiment_tag(found.experiment_id, key, view)
    known = client.search_runs([found.experiment_id], f"tags.{STUDY} = '{experiment}'", max_results=1)
    tags = {STUDY: experiment, "mlflow.source.name": "ce-harness", "mlflow.source.type": "LOCAL", **_code()}
    run = known[0] if known else client.create_run(found.experiment_id, run_name=f"{experiment}: all runs", tags=tags)
    client.set_tag(run.info.run_id, "mlflow.note.content", note)
    with tempfile.TemporaryDirectory() as made:
        for file in files:
            (shutil.copytree if file.is_dir() else shutil.copy)(file, Path(made) / file.name)
        get_artifact_repository(run.info.artifact_uri, client.tracking_uri).log_artifacts(made)
    client.set_terminated(run.info.run_id)


def _view(arrows: Mapping[str, str]) -> str:
    """A view of MLflow's page of runs as it saves one: columns, and charts in the order of ``HEADLINES``, others after.

    By itself it would show no numbers in its list, and sort sections and charts by name. Charts say which way is
    better: of what has no arrow of its own, such as coverage, higher.
    """
    section = {"uuid": "headlines", "name": "Model metrics", "display": True, "isReordered": True}
    charts = [
        {
            **{"type": "BAR", "uuid": f"headline-{name}", "metricSectionId": section["uuid"], "metricKey": name},
            **{"displayName": f"{name} {arrows.get(name, '↑')}"},
            **{"runsCountToCompare": 20, "deleted": False, "isGenerated": True},
        }
        for name in HEADLINES
    ]
    state: dict[str, Any] = {"selectedColumns": COLUMNS, "compareRunSections": [section], "compareRunCharts": charts}
    state |= {"isAccordionReordered": True, "runsHiddenMode": "FIRST_20_RUNS"}
    packed = "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    return json.dumps({"name": VIEW, "createdAt": 0, "updatedAt": 0, "state": packed})


@_naming_what_fails()
def page(experiment: str) -> str:
    """How to look at an experiment's runs side by side: a command, and the page to open."""
    found = _found(experiment)
    identity = "" if found is None else f"/#/experiments/{found.experiment_id}/runs?viewStateShareKey={VIEW}"
    identity += "   (its charts: &compareRunsMode=CHART)" if identity else ""
    store = os.environ["MLFLOW_TRACKING_URI"]
    if store.startswith(SERVED):
        return f"open {store.rstrip('/')}{identity}"
    server = f"MLFLOW_TRACKING_URI={shlex.quote(store)} {shlex.quote(sys.executable)} -m harness ui"  # from anywhere
    return f"{server}   then open http://127.0.0.1:5000{identity}"


def there() -> bool:
    """Whether there is a store: one that the environment names, or mlflow.db in the working directory."""
    if not os.environ.get("MLFLOW_TRACKING_URI") and not Path("mlflow.db").is_file():
        return False
    os.environ.setdefault("MLFLOW_TRACKING_URI", f"sqlite:///{Path('mlflow.db').resolve()}")
    return True


@_naming_what_fails()
def runs(experiment: str) -> dict[str, str]:
    """Address of each run of an experiment, by fingerprint; none where there is no store yet.

    On the server that has the store, or on a local one where it is a file.

    Raises
    ------
    HarnessError
        Where the server does not answer.
    """
    if not there():
        return {}
    store = os.environ["MLFLOW_TRACKING_URI"]
    found = _found(experiment)
    if found is None:
        return {}
    home = store.rstrip("/") if store.startswith(SERVED) else "http://127.0.0.1:5000"
    address = f"{home}/#/experiments/{found.experiment_id}/runs"
    known = _runs(found.experiment_id).items()
    return {fingerprint: f"{address}/{run.info.run_id}" for fingerprint, run in known}


def _runs(experiment_id: str) -> dict[str, Any]:
    """The runs of an experiment, by fingerprint, which that about all others has not."""
    return {tags["fingerprint"]: run for run in _pages(experiment_id) if "fingerprint" in (tags := run.data.tags)}


def _pages(experiment_id: str, kind: str = "") -> Iterator[Any]:
    """All runs of an experiment, or those of a kind."""
    token = None
    while True:
        page = _client().search_runs([experiment_id], kind, max_results=1000, page_token=token)
        yield from page
        if not (token := page.token):
            return


@lru_cache(maxsize=64)
@_naming_what_fails()
def logged(experiment: str) -> set[str]:
    """Fingerprints of the runs that an experiment had in full when this process first asked, and has logged since."""
    found = _found(experiment)
    known = {} if found is None else _runs(found.experiment_id)
    return {name for name, run in known.items() if run.info.status == "FINISHED"}


@_naming_what_fails()
def amend(
    experiment: str,
    found: Mapping[str, tuple[str, str, Mapping[str, float]]],
    earlier: Collection[str],
    families: Sequence[str],
) -> None:
    """Rename and describe runs of an experiment, and log metrics of them: name, note and metrics by fingerprint.

    Only what differs from what is there is logged. An earlier number that is none any more, of those that begin with
    one of ``families`` or are named now, becomes NaN. Runs whose fingerprints are among ``earlier`` go to MLflow's
    trash.
    """
    known, client, now = _found(experiment), _client(), get_current_time_millis()
    for fingerprint, run in ({} if known is None else _runs(known.experiment_id)).items():
        if fingerprint in earlier:
            client.delete_run(run.info.run_id)
        if fingerprint not in found:
            continue
        name, note, metrics = found[fingerprint]
        there = run.data.metrics
        new = {key: float(value) for key, value in metrics.items() if math.isfinite(value) and there.get(key) != value}
        stale = [key for key in there if not math.isnan(there[key]) and not math.isfinite(metrics.get(key, math.nan))]
        gone = [key for key in stale if key in metrics or key.startswith(tuple(families))]
        values = [Metric(key, value, now, 0) for key, value in (new | dict.fromkeys(gone, math.nan)).items()]
        told = {"mlflow.runName": name, "mlflow.note.content": note}
        tags = [RunTag(key, text) for key, text in told.items() if run.data.tags.get(key) != text]
        if values or tags:
            try:
                client.log_batch(run.info.run_id, metrics=values, tags=tags)
            except MlflowException:
                if client.get_run(run.info.run_id).info.lifecycle_stage != LifecycleStage.DELETED:
                    raise  # else another process has logged it again in between


def _found(name: str) -> Any:
    """The experiment of a name; None where there is none, or it is in MLflow's trash."""
    found = _client().get_experiment_by_name(name)
    return None if found is None or found.lifecycle_stage == LifecycleStage.DELETED else found


@lru_cache(maxsize=64)
def _experiment(name: str, folder: Path) -> str:
    client = _client()
    found = client.get_experiment_by_name(name)
    if found is not None and found.lifecycle_stage == LifecycleStage.DELETED:
        log.info("%s was in MLflow's trash; it is restored, as a name is given once.", name)
        client.restore_experiment(found.experiment_id)
    if found is not None:
        return found.experiment_id
    local = os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:")
    location = (folder.resolve() / "mlruns" / name).as_uri() if local else None
    try:
        return client.create_experiment(name, artifact_location=location, tags=KIND)
    except Exception:  # another process created it in between
        return client.get_experiment_by_name(name).experiment_id


def _code() -> dict[str, str]:
    """Tags of a run that say which code made it."""
    known = commit()
    return {"commit": "unknown"} if known is None else {"commit": known, "mlflow.source.git.commit": known[:40]}
