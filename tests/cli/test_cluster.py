"""Many processes, one store: jobs composed and sent elsewhere, an MLflow server, and nothing lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from mlflow import MlflowClient
from omegaconf import DictConfig, OmegaConf
from support.faults import SWEEP, outcome, run
from support.served import served
from support.sweep import Run

from harness import archive
from harness.cli import composition, main
from harness.cli.slurm import know_jobs_by_their_files
from harness.core.packages import CONF
from harness.store import mlflow
from harness.store.archive import Archive

__all__ = ["run"]  # the fixture

WRITERS, RUNS = 8, 200


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    """Hydra's, over our choices."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of an MLflow server on loopback: SQLite behind it, and artifacts by way of it."""
    store = ("--backend-store-uri", f"sqlite:///{tmp_path / 'store.db'}")
    with served(tmp_path, "server", *store, "--artifacts-destination", str(tmp_path / "artifacts")) as address:
        yield address


@pytest.mark.parametrize(
    "overrides",
    [
        ["dataset=pima", "model=rf", "n_factuals=3", "seed=5"],
        ["+experiment=compas", "model=lr", "method=ce_ocl", "method.distance=l0", "n_counterfactuals=2"],
        ["dataset=pima", "++features.Age.actionability=increase", "~dataset.features.BMI", "dataset.immutable=[]"],
        ["method={_target_: methods.nearest.Nearest}", "hydra.job.name=other"],
    ],
)
def test_jobs_are_composed_as_hydra_does(loader: ConfigLoader, overrides: list[str]) -> None:
    """The first time and from memory; but for the variables that are passed on."""

    def plain(config: DictConfig) -> object:
        found = OmegaConf.to_container(config)
        found["hydra"]["job"].pop("env_set")  # type: ignore[index, call-overload]
        return found

    master = loader.load_configuration("config", ["hydra.mode=MULTIRUN", "seed=1,2"], RunMode.MULTIRUN)
    expected = composition._compose(loader, master, overrides)
    for _ in range(2):
        found = composition.load_sweep_config(loader, master, overrides)  # type: ignore[arg-type]
        assert plain(found) == plain(expected)
        with pytest.raises(Exception, match="nonsense"):
            found.nonsense = 1


def test_a_job_knows_its_sweep(loader: ConfigLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the sweep and of the store come with the job, wherever it runs; no others do."""
    monkeypatch.setenv("CE_HARNESS_SWEEP", "one")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("SECRET", "word")
    master = loader.load_configuration("config", ["hydra.mode=MULTIRUN"], RunMode.MULTIRUN)
    found = composition.load_sweep_config(loader, master, ["seed=1"]).hydra.job.env_set  # type: ignore[arg-type]
    assert (found.CE_HARNESS_SWEEP, found.MLFLOW_TRACKING_URI) == ("one", "http://127.0.0.1:1")
    assert "SECRET" not in found


@pytest.mark.parametrize(("launcher", "extra"), [("ray", "ray"), ("submitit_slurm", "slurm")])
def test_presets_say_what_they_need(loader: ConfigLoader, launcher: str, extra: str) -> None:
    """A preset composes without its launcher, whose absence is reported, and how to get it."""
    config = loader.load_configuration(
        "config", [f"hydra/launcher={launcher}", "jobs=3", "threads=2"], RunMode.MULTIRUN
    )
    cores = {"ray": "ray.remote.num_cpus", "submitit_slurm": "cpus_per_task"}[launcher]
    assert OmegaConf.select(config.hydra.launcher, cores) == 6
    package = str(config.hydra.launcher._target_).split(".")[1]
    why = composition.missing(config.hydra.launcher)
    if find_spec(f"hydra_plugins.{package}") is None:
        assert why is not None
        assert f"uv sync --extra {extra}" in why
    else:
        assert why is None


@pytest.mark.parametrize(
    ("module", "said"), [("submitit.core.utils", "Job 7_3 was cancelled"), ("ray.exceptions", "Lost")]
)
def test_a_run_that_a_cluster_ends_is_one_sentence(
    module: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No traceback, and an exit code; any other error is one of ours."""
    lost = type("Lost", (RuntimeError,), {"__module__": module})

    def sweep() -> None:
        raise lost(
            "Job (task=0) failed during processing with trace:\nJob 7_3 was cancelled\n" if said != "Lost" else ""
        )

    monkeypatch.setattr(main, "talk", lambda: None)
    monkeypatch.setattr("hydra.main", lambda **_: lambda _: sweep)
    monkeypatch.setattr("sys.argv", ["harness", "-m", "seed=1,2"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    assert f"a run was ended by the cluster ({said}); what was answered is kept" in caplog.text
    lost.__module__ = "elsewhere"
    with pytest.raises(lost):
        main.main()


def write(address: str, folder: Path, writer: int, runs: int) -> None:
    """Log runs, as cells of a sweep are logged, in a process of its own."""
    os.environ["MLFLOW_TRACKING_URI"] = address
    mlflow.prepare(folder)
    data = mlflow.Data("pima", "0" * 64, {"Age": "long"}, "test")
    for number in range(runs):
        tags = {"fingerprint": f"{writer}-{number}", "dataset": "pima"}
        answers = pd.DataFrame({"factual": [number], "writer": [writer]})
        scores = {"run/coverage": writer + number / 1000, "distance/l1": 1.0}
        shown = mlflow.Shown("pima/lr/nearest", tags, {"seed": number}, scores)
        mlflow.log_stored("many", folder, shown, answers, {"a": 1}, data)


def lost(address: str, folder: Path, writers: int, runs: int) -> int:
    """How many of all runs are not there in full, after ``writers`` processes have logged ``runs`` each."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write, args=(address, folder, writer, runs)) for writer in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * writers
    client = MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name("many")
    assert experiment is not None
    found, token = {}, None
    while True:
        page = client.search_runs([experiment.experiment_id], max_results=500, page_token=token)
        found.update({run.data.tags["fingerprint"]: run for run in page if run.info.status == "FINISHED"})
        if not (token := page.token):
            break
    wanted = {f"{writer}-{number}": writer + number / 1000 for writer in range(writers) for number in range(runs)}
    whole = {tag for tag, run in found.items() if run.data.metrics.get("run/coverage") == wanted.get(tag)}
    tables = len(list(folder.glob(f"**/{mlflow.TABLE}")))
    return len(wanted) - min(len(whole & set(wanted)), tables)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["server", "file"])
def test_concurrent_writers_lose_nothing(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """8 processes log 200 runs each to one server, or to one file of SQLite."""
    address = request.getfixturevalue("server") if kind == "server" else f"sqlite:///{tmp_path / 'mlflow.db'}"
    first = multiprocessing.get_context("spawn").Process(target=write, args=(address, tmp_path, 0, 0))
    first.start()  # the store is created before anybody shares it
    first.join()
    assert lost(address, tmp_path, WRITERS, RUNS) == 0


TIMES = {"seconds", "cpu_seconds", "fit_seconds", "compile_seconds", "peak_mib", "jobs", "beside"}
MACHINE = {"setup", "environment"}  # of a run


def archived(folder: Path) -> list[Any]:
    """All that the archive of a study holds, but for times, memory and the machine's load, and the order of answers."""
    file = folder / "study.ceh"
    assert archive.main(["pack", str(folder / "results" / "adhoc"), str(file)]) == 0
    found = Archive(file)
    records = {
        name: {
            run: sorted(json.dumps({k: v for k, v in each.items() if k not in TIMES | MACHINE}) for each in records)
            for run, records in runs.items()
        }
        for name, runs in found.records.items()
    }
    sweeps = found.manifest["sweeps"].values()
    return [
        found.manifest["runs"],
        records,
        {name: found.contents[name] for name in found.contents if name not in sweeps},
    ]


def test_accounts_that_slurm_does_not_keep_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """submitit asks for them again and again, and each time writes two lines and the command another."""
    if find_spec("submitit") is None:
        pytest.skip("needs: uv sync --extra slurm")
    from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob

    monkeypatch.setattr(SlurmJob, "watcher", SlurmInfoWatcher())
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sacct").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "sacct").chmod(0o755)
    know_jobs_by_their_files()
    assert type(SlurmJob.watcher) is SlurmInfoWatcher
    assert caplog.messages == []
    (tmp_path / "sacct").write_text("#!/bin/sh\necho storage is disabled >&2\nexit 1\n")
    know_jobs_by_their_files()
    SlurmJob.watcher.register_job("1")
    SlurmJob.watcher.update()
    assert [message[:46] for message in caplog.messages] == ["sacct says nothing (storage is disabled): a jo"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs: uv sync --extra ray")
def test_a_ray_cluster_gives_the_rows_of_one_process(run: Run, server: str, tmp_path: Path) -> None:
    """Two workers of a local Ray instance, their runs on a server: the answers are those of a serial sweep."""
    assert run("serial", SWEEP).returncode == 0
    launched = (*SWEEP, "hydra/launcher=ray", "hydra.launcher.ray.init.num_cpus=2")
    done = run("ray", launched, MLFLOW_TRACKING_URI=server)
    assert done.returncode == 0, done.stderr
    assert outcome(tmp_path / "ray") == outcome(tmp_path / "serial")
    assert archived(tmp_path / "ray") == archived(tmp_path / "serial")
    client = MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("adhoc")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    assert len(runs) == 4
    assert len({each.data.tags["sweep"] for each in runs}) == 1
    assert {each.info.status for each in runs} == {"FINISHED"}
    for each in runs:
        assert {"counterfactuals.json", "config.yaml"} <= {f.path for f in client.list_artifacts(each.info.run_id)}


def no_slurm() -> str:
    """Why a sweep cannot go to Slurm here; empty where it can."""
    if find_spec("submitit") is None:
        return "needs: uv sync --extra slurm"
    done = shutil.which("sinfo") and subprocess.run(
        ["sinfo", "--noheader"], capture_output=True, text=True, check=False
    )
    return "" if done and done.returncode == 0 and "idle" in done.stdout else "needs a Slurm cluster with an idle node"


@pytest.mark.slow
def test_a_slurm_cluster_gives_the_archive_of_one_process(run: Run, server: str, tmp_path: Path) -> None:
    """Its runs as jobs of an array, and nothing on the console that is not ours but one line about accounts."""
    if why := no_slurm():
        pytest.skip(why)
    assert run("serial", SWEEP).returncode == 0
    done = run("slurm", (*SWEEP, "hydra/launcher=submitit_slurm"), MLFLOW_TRACKING_URI=server)
    assert done.returncode == 0, done.stderr
    assert archived(tmp_path / "slurm") == archived(tmp_path / "serial")
    assert (done.stdout + done.stderr).count("sacct") <= 1
