"""Where MLflow's pages are to be opened, for a file and for a server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

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
