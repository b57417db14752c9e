"""MLflow's pages, for a file and for a server, and what is said where there is none."""

from __future__ import annotations

import base64
import fcntl
import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sklearn.tree import DecisionTreeClassifier
from support.tables import GRANTED, started

from harness.cli import mlflow_run
from harness.cli.process import SWEEP
from harness.core import packages
from harness.core.errors import HarnessError
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.evaluation.study import Study
from harness.models.train import train
from harness.reports.kept import keep
from harness.store import mlflow
from metrics import _example as loans

ADDRESS = "/#/experiments/7/runs?viewStateShareKey=ce-harness"


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("http://host:5000/", f"open http://host:5000{ADDRESS} "),
        ("https://host/mlflow", f"open https://host/mlflow{ADDRESS} "),
        ("sqlite:////a b/mlflow.db", f"{sys.executable} -m harness ui   then open http://127.0.0.1:5000{ADDRESS} "),
    ],
)
def test_the_page_is_that_of_the_store(store: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has its own page, and needs no other one to be started."""
    found = SimpleNamespace(experiment_id="7", lifecycle_stage="active")
    client = SimpleNamespace(get_experiment_by_name={"study": found}.get)
    monkeypatch.setattr(mlflow, "_client", lambda: client)
    monkeypatch.setattr(mlflow, "_reach", lambda uri: None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    assert expected in mlflow.page("study")
    assert ("MLFLOW_TRACKING_URI='sqlite:////a b/" in mlflow.page("study")) == store.startswith("sqlite")
    assert "experiments" not in mlflow.page("another")


def test_the_command_runs_whatever_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell that reads it may not find what this process finds."""
    monkeypatch.setattr(mlflow, "_client", lambda: SimpleNamespace(get_experiment_by_name=lambda name: None))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    assert f"{sys.executable} -m harness ui" in mlflow.page("study")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowClient]:
    """Of a new store."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setattr(mlflow, "_client", lru_cache(mlflow._client.__wrapped__))
    for known in (mlflow._experiment, mlflow._failures, mlflow.logged):
        known.cache_clear()
    mlflow.prepare(tmp_path)
    yield mlflow._client()
    mlflow.close()
    mlflow._experiment.cache_clear()


def log(folder: Path, fingerprint: str) -> None:
    shown = mlflow.Shown("a/run", {"fingerprint": fingerprint}, {}, {"coverage": 0.5})
    mlflow.log_stored("study", folder, shown, pd.DataFrame(), {}, mlflow.Data("toy", "abc", {"age": "double"}, "test"))


def test_runs_that_others_took_the_place_of_go_to_the_trash(client: MlflowClient, tmp_path: Path) -> None:
    """Those of this folder: another folder's stay. An experiment in the trash lacks all runs, and comes back."""

    def shown() -> dict[str, float]:
        runs = client.search_runs([found.experiment_id])
        return {run.data.tags["fingerprint"]: run.data.metrics["coverage"] for run in runs}

    for fingerprint in ("old", "new", "other"):
        log(tmp_path, fingerprint)
    found = client.get_experiment_by_name("study")
    mlflow.amend("study", {"new": ("a name", "a note", {"coverage": 0.75})}, {"old", "never logged"}, ())
    assert shown() == {"new": 0.75, "other": 0.5}
    assert mlflow.logged.__wrapped__("study") == {"new", "other"}
    client.delete_experiment(found.experiment_id)
    assert mlflow.logged.__wrapped__("study") == mlflow.runs("study").keys() == set()
    mlflow.amend("study", {}, {"new"}, ())
    mlflow._experiment.cache_clear()
    log(tmp_path, "new")
    assert shown()["new"] == 0.5


def test_a_number_that_is_none_any_more_is_none(client: MlflowClient, tmp_path: Path) -> None:
    """Of the families that are the comparison's, and of the numbers that are named now; all others stay."""
    shown = mlflow.Shown("a/run", {"fingerprint": "new"}, {}, {"rank/coverage": 0.5, "coverage": 0.5, "own/one": 1.0})
    mlflow.log_stored(
        "study", tmp_path, shown, pd.DataFrame(), {}, mlflow.Data("toy", "abc", {"age": "double"}, "test")
    )
    mlflow.amend("study", {"new": ("a name", "a note", {"coverage": math.nan})}, (), ("rank/",))
    (run,) = client.search_runs([client.get_experiment_by_name("study").experiment_id])
    assert run.data.metrics == {"rank/coverage": pytest.approx(math.nan, nan_ok=True), "own/one": 1.0} | {
        "coverage": pytest.approx(math.nan, nan_ok=True)
    }


def test_a_run_that_is_half_logged_is_not_there(
    client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill leaves it: the next sweep logs it again, in its place."""
    with monkeypatch.context() as patched:
        patched.setattr(mlflow, "_log_data", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            log(tmp_path, "cut")
    assert mlflow.logged("study") == mlflow.logged.__wrapped__("study") == set()
    log(tmp_path, "cut")
    assert mlflow.logged("study") == {"cut"}  # without asking the store again
    assert mlflow.logged.__wrapped__("study") == {"cut"}
    assert len(client.search_runs([client.get_experiment_by_name("study").experiment_id])) == 1


def test_what_is_in_the_trash_by_now_is_left_there(
    client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has logged the run again, after this one read which there are."""
    log(tmp_path, "one")
    found = mlflow._runs(client.get_experiment_by_name("study").experiment_id)
    client.delete_run(found["one"].info.run_id)
    monkeypatch.setattr(mlflow, "_runs", lambda _: found)
    mlflow.amend("study", {"one": ("a name", "a note", {"coverage": 0.75})}, (), ())
    assert client.get_run(found["one"].info.run_id).data.metrics == {"coverage": 0.5}


def test_a_server_that_goes_is_one_sentence_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a sweep is: MLflow is not asked again."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr(mlflow, "_client", lambda: pytest.fail("MLflow is asked"))
    for asked in (
        lambda: log(tmp_path, "one"),
        lambda: mlflow.amend("study", {}, (), ()),
        lambda: mlflow.page("study"),
    ):
        with pytest.raises(HarnessError, match=r"does not answer .*; start it, .*; what was answered is kept"):
            asked()
    mlflow.log_failed("study", tmp_path, "ab", "pima/file/nearest", {}, "why")  # which warns
    mlflow.close()


def test_what_failed_is_shown_until_it_is_answered(client: MlflowClient, tmp_path: Path) -> None:
    """Once, with the reason; beside it another's answers, which it is not counted among."""
    names = {"dataset": "pima", "model": "file", "method": "nearest"}
    log(tmp_path, "answered")
    for asked, why in (("ab", "there is no file"), ("ab", "it's no model"), ("cd", "another question")):
        mlflow.log_failed("study", tmp_path, asked, "pima/file/nearest", names, why)
        mlflow._failures.cache_clear()  # as in another process
    identity = client.get_experiment_by_name("study").experiment_id

    def failed() -> list[Any]:
        return [run for run in client.search_runs([identity]) if run.info.status == "FAILED"]

    assert {run.data.tags["mlflow.note.content"] for run in failed()} == {"it's no model", "another question"}
    for run in failed():
        assert (run.info.run_name, run.data.tags["dataset"]) == ("pima/file/nearest", "pima")
        assert run.data.params == names
    assert mlflow.logged.__wrapped__("study") == {"answered"}
    mlflow.forget_failed("study", "ef", "pima/file/nearest")
    mlflow.forget_failed("no such study", "ab", "pima/file/nearest")
    assert len(failed()) == 2
    mlflow.forget_failed("study", "ab", "pima/file/nearest")
    assert [run.data.tags["mlflow.note.content"] for run in failed()] == ["another question"]


def test_a_store_that_fails_fails_no_run(
    client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise MlflowException("it is locked")

    mlflow._experiment("study", tmp_path)
    monkeypatch.setattr(client, "search_runs", refuse)
    mlflow.log_failed("study", tmp_path, "ab", "pima/file/nearest", {}, "why")
    mlflow.forget_failed("study", "ab", "pima/file/nearest")
    assert caplog.text.count("MLflow may show wrongly whether it failed (it is locked)") == 3


def test_charts_say_which_way_is_better() -> None:
    packed = json.loads(mlflow._view({"proximity": "↓", "plausibility": "↑"}))["state"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert [chart["displayName"] for chart in state["compareRunCharts"]][:3] == [
        "coverage ↑",
        "validity ↑",
        "proximity ↓",
    ]
    first = ("coverage", "validity", "proximity", "sparsity", "diversity", "seconds")
    assert state["selectedColumns"][:6] == [f"metrics.`{name}`" for name in first]


@pytest.mark.parametrize("status", [404, 503])
def test_a_proxy_before_nothing_does_not_answer(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for a sweep nor for a report, which would wait for minutes; a page that is not there is an answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(mlflow, "_client", lambda: SimpleNamespace(get_experiment_by_name=lambda name: None))
    try:
        if status == 404:
            assert mlflow.runs("study") == {}
        else:
            with pytest.raises(HarnessError, match="does not answer"):
                mlflow.runs("study")
    finally:
        server.shutdown()


@pytest.mark.parametrize("kind", ["another file", "damaged"])
def test_a_store_that_is_none_is_said_at_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow would try for minutes."""
    store = tmp_path / "mine.db"
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
    content = store.read_bytes()
    store.write_bytes(b"a,b\n1,2\n" if kind == "another file" else content[:100] + b"\xff" * (len(content) - 100))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}")
    monkeypatch.setattr(mlflow, "_client", lambda: pytest.fail("MLflow is asked"))
    with pytest.raises(HarnessError, match=rf"sqlite:///{store} cannot be used \(.*; make it a store"):
        mlflow.prepare(tmp_path)


def test_a_folder_of_fifty_percent_has_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which no address takes for another letter."""
    (tmp_path / "50%").mkdir()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.setattr(mlflow, "_client", lambda: SimpleNamespace(search_experiments=lambda max_results: []))
    mlflow.prepare(tmp_path / "50%")


@pytest.mark.parametrize("name", ["a?b", "my%20data"])
def test_a_folder_whose_name_no_address_holds_is_refused_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLAlchemy would create a/mlflow.db beside it, or look for another folder for minutes."""
    (tmp_path / name).mkdir()
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(mlflow, "_client", lambda: pytest.fail("MLflow is asked"))
    with pytest.raises(HarnessError, match=r"cannot lie in .*; go to a folder of another name, or set"):
        mlflow.prepare(tmp_path / name)
    assert "MLFLOW_TRACKING_URI" not in os.environ


def test_mlflow_tells_its_makers_nothing() -> None:
    """Read when it is imported; under pytest and CI it says nothing anyhow."""
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_the_commit_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed inside somebody's own repository, the code has none; MLflow's own tag is of the commit alone."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for file in ("conf", "README"):  # which is no code
        (tmp_path / file).write_text("as it is")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    named = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "theirs"]
    subprocess.run(["git", "-C", tmp_path, *named], check=True)
    asked = ["git", "-C", tmp_path, "rev-parse", "HEAD"]
    head = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    for place, edit, known in ((".venv/harness", "", None), ("harness", "", head), ("harness", "!", f"{head}-dirty")):
        inside = tmp_path / place / "core" / "packages.py"
        inside.parent.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(packages, "__file__", str(inside))
        (tmp_path / "README").write_text("another")
        (tmp_path / "conf").write_text(f"as it is{edit}")
        packages.commit.cache_clear()
        assert packages.commit() == known
        tag = {"mlflow.source.git.commit": head} if known else {}
        assert mlflow._code() == {"commit": known or "unknown", **tag}
    packages.commit.cache_clear()


def test_long_tags_are_cut(client: MlflowClient, tmp_path: Path) -> None:
    """As a list of all factuals: other stores than SQLite refuse them."""
    shown = mlflow.Shown("a/run", {"fingerprint": "one", "setting.factuals": "7, " * 3000}, {}, {})
    made = mlflow.log_stored(
        "study", tmp_path, shown, pd.DataFrame(), {}, mlflow.Data("toy", "abc", {"age": "double"}, "")
    )
    assert len(client.get_run(made).data.tags["setting.factuals"]) == 6000


def test_a_server_that_goes_while_it_is_asked_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, HarnessError("it does not answer")])

    def reached(uri: str) -> None:
        if (answer := next(answers)) is not None:
            raise answer

    def refused(*_: Any) -> None:
        raise MlflowException("API request failed")

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr(mlflow, "_reach", reached)
    monkeypatch.setattr(mlflow, "_client", lambda: SimpleNamespace(get_experiment_by_name=refused))
    with pytest.raises(HarnessError, match="it does not answer"):
        mlflow.page("study")


@pytest.mark.parametrize(("y", "text"), [(1.0, "1"), (0.77777777, "0.777778")])
def test_columns_of_answers_keep_out_of_the_way_of_features(
    y: float, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two features is called as a column of ours is: the answer's own is beside it, and neither is lost.

    What changes is told in six digits, and the values are in full.
    """
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)) for name in ("status", "y")))
    frame = pd.DataFrame({"status": [0.0, 1.0], "y": [0.0, 1.0]})
    labels = np.array(["no", "yes"], dtype=object)
    classifier = train(DecisionTreeClassifier(max_depth=1), space, frame, labels, ("no", "yes"), 0.5)
    problem = Problem(space, classifier, frame, labels, Label("yes"))
    run = started(tmp_path, problem, frame.iloc[[0]], [{"status": 1.0, "y": y}])
    run.update(fingerprint="one", experiment="study")
    tables: list[pd.DataFrame] = []
    monkeypatch.setenv(SWEEP, "1")
    hydra = SimpleNamespace(overrides=SimpleNamespace(task=[]))
    monkeypatch.setattr(mlflow_run, "HydraConfig", SimpleNamespace(get=lambda: hydra))
    monkeypatch.setattr(mlflow_run.tracking, "log_stored", lambda *given: tables.append(given[3]))
    mlflow_run.log_run(run, {"factuals": 1})
    moved = f"status: 0 → 1; y: 0 → {text}"
    assert tables[0].to_dict("records") == [
        {"factual": 0, "ce": 1, "status_": "FOUND", "verdict": "accepted", "status": 1.0, "y": y, "changes": moved}
    ]


def test_of_two_sweeps_that_end_together_one_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one makes the study's run no other may."""
    busy: list[bool] = []

    def made(*_: Any) -> None:
        other = os.open(tmp_path, os.O_RDONLY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            busy.append(False)
        except BlockingIOError:
            busy.append(True)
        finally:
            os.close(other)

    started(tmp_path, loans.problem, loans.factual, [GRANTED])
    monkeypatch.setattr(mlflow, "there", lambda: True)
    monkeypatch.setattr(mlflow, "log_study", made)
    keep(Study.of(tmp_path), tmp_path)
    made()
    assert busy == [True, False]
