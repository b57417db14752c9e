"""MLflow's pages, for a file and for a server, and what is said where there is none."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.core import packages
from harness.core.errors import HarnessError
from harness.store import mlflow

ADDRESS = "/#/experiments/7/runs?viewStateShareKey=ce-harness"


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("http://host:5000/", f"open http://host:5000{ADDRESS} "),
        ("https://host/mlflow", f"open https://host/mlflow{ADDRESS} "),
        ("sqlite:////a b/mlflow.db", f"'sqlite:////a b/mlflow.db'   then open http://127.0.0.1:5000{ADDRESS} "),
    ],
)
def test_the_page_is_that_of_the_store(store: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has its own page, and needs no other one to be started."""
    found = SimpleNamespace(experiment_id="7")
    client = SimpleNamespace(get_experiment_by_name={"study": found}.get)
    monkeypatch.setattr(mlflow, "_client", lambda: client)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    assert expected in mlflow.page("study")
    assert ("--backend-store-uri" in mlflow.page("study")) == store.startswith("sqlite")
    assert "experiments" not in mlflow.page("another")


def test_the_command_runs_whatever_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell that reads it may not find what this process finds."""
    monkeypatch.setattr(mlflow, "_client", lambda: SimpleNamespace(get_experiment_by_name=lambda name: None))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    assert f"{sys.executable} -m mlflow ui" in mlflow.page("study")


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
