"""The command line from end to end, in processes of its own: a tiny sweep, its resumption, and wrong input."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient
from omegaconf import OmegaConf
from support.sweep import runner, stored

from harness.cli import sweep
from harness.core.packages import commit
from harness.core.target import Interval
from harness.data.sources import RAW
from harness.models.files import save
from harness.store.run import stored_runs

SWEEP = ("-m", "dataset=pima", "model=lr,cart", "method=nearest,ce_ocl", "n_factuals=3", "n_counterfactuals=2")
ONE, LABEL = ("dataset=pima", "model=cart", "method=ce_ocl", *SWEEP[4:]), "pima/cart/ce_ocl"  # one of its cells
NAMES = {f"pima/{model}/{method}" for model in ("lr", "cart") for method in ("nearest", "ce_ocl")}


def contents(folder: Path) -> dict[str, bytes]:
    return {label: (cell.path / "rows.jsonl").read_bytes() for label, cell in stored(folder).items()}


def counterfactuals(folder: Path) -> dict[str, list[Any]]:
    keys = ("factual", "ce", "row", "status", "objective")
    return {label: [[row[key] for key in keys] for row in cell.rows()] for label, cell in stored(folder).items()}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder in which the sweep has run once, and what it said."""
    folder = tmp_path_factory.mktemp("sweep")
    return folder, runner(folder)(*SWEEP)


@pytest.fixture
def copy(swept: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of that folder to go on in."""
    shutil.copytree(swept[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_a_sweep_stores_every_answer(swept: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Exit code 0; one finished cell a combination, n rows a factual, all methods of a model on the same factuals."""
    folder, done = swept
    assert done.returncode == 0, done.stderr
    cells_of = stored(folder)
    assert set(cells_of) == NAMES
    for label, cell in cells_of.items():
        assert cell.done
        rows = cell.rows()
        assert len(rows) == 6
        assert len(cell.verdicts()) == 6
        other = cells_of[f"pima/{label.split('/')[1]}/nearest"]
        assert {row["factual"] for row in rows} == {row["factual"] for row in other.rows()}
    assert {row["status"] for row in cells_of["pima/cart/ce_ocl"].rows()} == {"OPTIMAL"}


def test_each_line_says_which_run_it_is(tmp_path: Path) -> None:
    """What a sweep varies is in its lines; a flag may stand among the settings."""
    runs = ("n_factuals=1", "dataset=pima", "-m", "method.distance=l1,gower", "model=cart", "method=ce_ocl")
    done = runner(tmp_path)(*runs)
    assert done.returncode == 0, done.stderr
    assert "[1/2] pima/cart/ce_ocl (distance=l1)  done" in done.stderr
    assert "[2/2] pima/cart/ce_ocl (distance=gower)  done" in done.stderr


def test_what_is_unexpected_before_or_after_the_jobs_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra would make a warning of it, and exit with 0."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sweep, "study_name", fail)
    for act in (sweep.Sweep().on_run_end, sweep.Sweep().on_multirun_end):
        with pytest.raises(SystemExit) as ended:
            act(OmegaConf.create({"study": "x", "hydra": {}}))
        assert ended.value.code == 1
    monkeypatch.setattr(sweep, "_refusal", fail)
    with pytest.raises(SystemExit):
        sweep.Sweep().on_run_start(OmegaConf.create({}))


def test_a_sweep_ends_with_a_summary(swept: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Every mean is in the CSV with its count, the table is on the console and in Markdown."""
    folder, done = swept
    summary = pd.read_csv(folder / "results" / "adhoc" / "summary.csv")
    assert {"/".join(names) for names in zip(summary.dataset, summary.model, summary.method, strict=True)} == NAMES
    exact = summary[(summary.method == "ce_ocl") & (summary.number == "coverage")]
    assert exact["value"].tolist() == [1.0, 1.0]
    assert exact["n"].tolist() == [3, 3]
    for text in (done.stderr + done.stdout, (folder / "results" / "adhoc" / "summary.md").read_text()):
        assert "ce_ocl" in text
        assert "coverage" in text


def test_a_sweep_is_logged_as_flat_runs(swept: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """One MLflow run a cell, named dataset/model/method, tagged, with parameters and metrics by family."""
    folder, _ = swept
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("adhoc")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    assert {run.info.run_name for run in runs} == NAMES
    assert len({run.data.tags["sweep"] for run in runs}) == 1
    for run in runs:
        tags, metrics = run.data.tags, run.data.metrics
        assert "mlflow.parentRunId" not in tags
        assert run.info.run_name == "/".join(tags[key] for key in ("dataset", "model", "method"))
        assert tags["experiment"] == "adhoc"
        assert tags["fingerprint"] == stored(folder)[run.info.run_name].meta["fingerprint"]
        assert run.data.params["n_counterfactuals"] == "2"
        assert 0 <= metrics["coverage"] <= 1
        assert metrics.get("proximity") == metrics.get("distance/gower")
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"counterfactuals.json", "config.yaml"} <= files


def test_everything_is_written_where_the_command_runs(swept: tuple[Path, Any]) -> None:
    """Answers, the MLflow store, its artifacts and the model cache; the cell holds the configuration in full."""
    folder, _ = swept
    assert {path.name for path in folder.iterdir()} == {"cache", "mlflow.db", "mlruns", "results"}
    meta = stored(folder)["pima/lr/ce_ocl"].meta
    assert meta["config"]["n_factuals"] == 3
    assert meta["environment"]["packages"]["highspy"]
    assert meta["environment"]["commit"] == commit()
    assert len(meta["data_sha256"]) == 64


def test_forcing_gives_the_same_counterfactuals(copy: Path) -> None:
    """``force=true`` asks again; the seed makes the answers equal, and they are no longer the same bytes."""
    before, bytes_before = counterfactuals(copy), contents(copy)
    done = runner(copy)(*ONE, "force=true")
    assert done.returncode == 0, done.stderr
    assert counterfactuals(copy) == before
    assert [label for label, content in contents(copy).items() if content != bytes_before[label]] == [LABEL]


@pytest.mark.parametrize("packed", [False, True])
def test_an_interrupted_sweep_goes_on(packed: bool, copy: Path) -> None:
    """A factual that is not there in full is asked again; finished cells are skipped, and stay as they are.

    Also where all that is left of it is its archive.
    """
    expected, cell = counterfactuals(copy), stored(copy)[LABEL]
    rows = cell.path / "rows.jsonl"
    lines = rows.read_text().splitlines(keepends=True)
    torn = lines[3][:40]
    kept = "".join(lines[:3])  # of the second factual one line and a torn one, of the third none
    rows.write_text(kept + torn)
    (cell.path / "done").unlink()
    others = {label: content for label, content in contents(copy).items() if label != cell.label}
    if packed:
        assert runner(copy)("pack", "results/adhoc", module="harness.archive").returncode == 0
        shutil.rmtree(copy / "results" / "adhoc")
    done = runner(copy)(*SWEEP)
    assert ("goes on from the answers in results/archives/adhoc.ceh" in done.stderr) == packed
    assert done.returncode == 0, done.stderr
    assert (done.stderr + done.stdout).count("skipped") == 3
    assert rows.read_text().startswith(kept)
    assert rows.read_text().count("\n") == 3 + 4 + (not packed)
    again = counterfactuals(copy)
    assert {label: sorted(map(str, found)) for label, found in again.items()} == {
        label: sorted(map(str, found)) for label, found in expected.items()
    }
    assert {label: content for label, content in contents(copy).items() if label != cell.label} == others


def test_metrics_are_computed_anew_from_stored_answers(copy: Path) -> None:
    """``rescore=true`` rebuilds the scores, with other metrics too, and runs no method."""
    before, cell = contents(copy), stored(copy)[LABEL]
    scores = pd.read_csv(cell.path / "scores.csv")
    (cell.path / "scores.csv").unlink()
    done = runner(copy)(*ONE, "rescore=true", "metrics=all")
    assert done.returncode == 0, done.stderr
    assert contents(copy) == before
    rescored = pd.read_csv(cell.path / "scores.csv")
    assert "robustness/invalidation_rate" in rescored.columns
    pd.testing.assert_frame_equal(rescored[scores.columns], scores)


def test_models_trained_again_score_answers_and_the_checker_follows(copy: Path) -> None:
    """They are named beside the answers; the checker computes the shares from them, and sees one that was altered."""
    done = runner(copy)(*ONE, "rescore=true", "metrics=model_change")
    assert done.returncode == 0, done.stderr
    cell = stored(copy)[LABEL]
    kinds = ("seeds", "bootstrap", "leave_out_1", "leave_out_10", "hyperparameters")  # of a grid of 48 settings
    assert {change: len(set(names)) for change, names in cell.meta["retrained"].items()} == dict.fromkeys(kinds, 20)
    scores = pd.read_csv(cell.path / "scores.csv")
    assert scores["retraining/bootstrap"].between(0, 1).all()
    assert scores["retraining/later"].isna().all()  # rows have no time
    check = runner(copy)("results", module="harness.check")
    assert (check.returncode, check.stderr) == (0, "")
    scores["retraining/seeds"] = 0.123
    scores.to_csv(cell.path / "scores.csv", index=False)
    check = runner(copy)("results", module="harness.check")
    assert check.returncode == 1
    assert f"{LABEL}: retraining/seeds of factual" in check.stderr
    assert "is stored as 0.123" in check.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://127.0.0.1:9", "does not answer"), ("nonsense://x", "cannot be used"), ("http://[", "does not answer")],
)
def test_a_tracking_server_that_is_none_is_one_sentence(tmp_path: Path, address: str, words: str) -> None:
    """Within seconds, before anything is run."""
    began = time.monotonic()
    done = runner(tmp_path)("dataset=pima", "model=lr", "method=nearest", MLFLOW_TRACKING_URI=address)
    assert time.monotonic() - began < 30
    assert done.returncode == 1
    assert f"MLFLOW_TRACKING_URI={address} {words}" in done.stderr
    assert "unset the variable" in done.stderr or "set MLFLOW_TRACKING_URI to another" in done.stderr
    assert "Traceback" not in done.stderr


MINE = '''
import os

from harness.core.metric import metric


@metric(better="lower", family="own")
def oldest(factual, answers, problem):
    """The greatest age of cars."""
    return answers["age_of_car"].max()


@metric(better="lower", family="own")
def three(factual, answers, problem):
    """Three."""
    return 3.0


@metric(better="lower", family="own")
def dies(factual, answers, problem):
    """Nothing, as it ends its process."""
    os._exit(9)
'''


def test_a_metric_of_ones_own_is_added(copy: Path) -> None:
    """What was scored before stays, in every output, whatever ends the scoring after it."""
    (copy / "mine.py").write_text(MINE)
    cell = stored(copy)[LABEL]
    scores = pd.read_csv(cell.path / "scores.csv")
    done = runner(copy)(*ONE, "rescore=true", "metrics.names=[mine.three]")
    assert done.returncode == 0, done.stderr
    rescored = pd.read_csv(cell.path / "scores.csv")
    pd.testing.assert_frame_equal(rescored[scores.columns], scores)
    assert set(rescored["own/three"]) == {3.0}
    assert runner(copy)(*ONE, "rescore=true", "metrics.names=[mine.dies]").returncode == 9
    assert stored(copy)[LABEL].meta["scored"]["unfinished"]
    assert runner(copy)(*ONE).returncode == 0
    assert "unfinished" not in stored(copy)[LABEL].meta["scored"]
    summary = pd.read_csv(copy / "results" / "adhoc" / "summary.csv")
    numbers = set(summary.loc[(summary.model == "cart") & (summary.method == "ce_ocl"), "number"])
    assert {"own/three", "distance/gower", "plausibility/lof"} <= numbers
    (copy / "mine.py").write_text(MINE.replace("return 3.0", "return 4.0"))
    done = runner(copy)(*ONE)  # no scores of two codes stand beside each other
    assert "skipped" in done.stderr
    assert set(pd.read_csv(cell.path / "scores.csv")["own/three"]) == {4.0}


def test_a_metric_that_fails_costs_its_own_column(copy: Path) -> None:
    """One sentence with its name, the data set and the missing column; all other scores are as they were."""
    (copy / "mine.py").write_text(MINE)
    cell = stored(copy)[LABEL]
    scores = pd.read_csv(cell.path / "scores.csv")
    done = runner(copy)(*ONE, "rescore=true", "metrics.names=[mine.oldest,mine.three]")
    assert done.returncode == 1
    (sentence,) = (line for line in done.stderr.splitlines() if "own/oldest" in line)
    assert "pima" in sentence
    assert "there is no column 'age_of_car'" in sentence
    assert "Traceback" not in done.stderr
    rescored = pd.read_csv(cell.path / "scores.csv")
    pd.testing.assert_frame_equal(rescored[scores.columns], scores)
    assert "own/oldest" not in rescored
    assert set(rescored["own/three"]) == {3.0}
    assert stored(copy)[LABEL].meta["scored"]["metrics"]["names"][-1] == "mine.three"
    summary = pd.read_csv(copy / "results" / "adhoc" / "summary.csv")  # which this sweep has written all the same
    assert set(summary.loc[summary.number == "own/three", "value"]) == {3.0}
    assert runner(copy)(*ONE).returncode == 0  # nothing is left half done


def test_the_column_of_a_metric_that_fails_is_of_the_same_population(copy: Path) -> None:
    """And of the same code: what it was over accepted answers stands beside other means of these alone."""
    cell = stored(copy)[LABEL]
    flag = "if os.path.exists('dead'): raise KeyError('gone')\n    return "
    fragile = MINE.replace("return answers", flag + "answers").replace('answers["age_of_car"].max()', "1.0")
    for code, dead, population, stays in (
        (fragile, False, "accepted", True),
        (fragile, True, "accepted", True),
        (fragile, True, "returned", False),
        (fragile, False, "returned", True),
        (fragile, None, "returned", True),
        (MINE, True, "returned", False),  # of another code
    ):
        (copy / "mine.py").write_text(code)
        if dead is None:  # also after a scoring that something ended
            assert (
                runner(copy)(*ONE, "rescore=true", "metrics.names=[mine.dies]", "population=returned").returncode == 9
            )
            dead = True
        (copy / "dead").touch() if dead else (copy / "dead").unlink(missing_ok=True)
        done = runner(copy)(*ONE, "rescore=true", "metrics.names=[mine.oldest]", f"population={population}")
        assert done.returncode == dead, done.stderr
        assert ("own/oldest" in pd.read_csv(cell.path / "scores.csv")) is stays
        assert ("mine.oldest" in stored(copy)[LABEL].meta["scored"]["metrics"]["names"]) is stays


def test_answers_about_another_model_are_not_gone_on_with(copy: Path) -> None:
    """One sentence, no further answer; the same where they are to be scored again."""
    cell = stored(copy)[LABEL]
    rows = cell.path / "rows.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:2]))
    (cell.path / "done").unlink()
    before, tree = rows.read_bytes(), cell.classifier.estimator
    tree.tree_.value[:] = tree.tree_.value[:, :, ::-1].copy()
    save(tree, cell.path / "estimator.skops")
    for more in ((), ("rescore=true",)):
        done = runner(copy)(*ONE, *more)
        assert done.returncode == 1
        assert "are about another model" in done.stderr
        assert rows.read_bytes() == before


def test_the_checker_finds_a_tampered_answer(copy: Path) -> None:
    """``python -m harness.check`` ends with 0 on what was stored, with 1 after one number was changed."""
    run = runner(copy)
    done = run("results/adhoc", module="harness.check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pima/cart/ce_ocl: 6 counterfactuals: 6 accepted" in done.stdout
    cell = stored(copy)[LABEL]
    rows = [json.loads(line) for line in (cell.path / "rows.jsonl").read_text().splitlines()]
    frame, _ = cell.factuals()
    rows[0]["row"] = frame.loc[rows[0]["factual"]].to_dict()
    (cell.path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("results/adhoc", module="harness.check")
    assert done.returncode == 1
    assert "pima/cart/ce_ocl: 6 counterfactuals: 5 accepted, 1 invalid" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model=lrr",), ["'lrr'", "did you mean 'lr'?", "cart", "svm"]),
        (("n_factual=3",), ["'n_factual'", "did you mean 'n_factuals'?"]),
        (("study=a/b",), ["study=a/b does not fit", "letters, digits"]),
        (("output_dir=/proc/none",), ["/proc/none cannot be written", "give another output_dir"]),
        (("model.estimator.max_depth=-4",), ["model=cart does not fit", "max_depth"]),
        (("features.Agee.actionability=free",), ["pima", "'Agee'", "did you mean 'Age'?", "Glucose"]),
    ],
    ids=["choice", "key", "study", "folder", "parameter", "feature"],
)
def test_wrong_input_is_named(tmp_path: Path, arguments: tuple[str, ...], words: list[str]) -> None:
    """One sentence says what is wrong and what is allowed; no traceback, exit code 1, no answers."""
    done = runner(tmp_path)("dataset=pima", "model=cart", *arguments)
    text = done.stderr + done.stdout
    assert done.returncode == 1
    assert "Traceback" not in text
    for word in words:
        assert word in text
    assert not list(tmp_path.glob("results/*/answers/*"))


def test_each_failed_cell_says_why(tmp_path: Path) -> None:
    """People in no file, a label that never varies: neither cell stops the other, and the exit code is 1."""
    pd.DataFrame({"x": range(40), "Outcome": 0}).to_csv(tmp_path / "flat.csv", index=False)
    sources = f"dataset.sources=[{{file: packaged/pima.csv}}],[{{file: {tmp_path / 'flat.csv'}}}]"
    inferred = ("~dataset.features", "~dataset.classes", "dataset.immutable=[]")
    done = runner(tmp_path)("-m", "dataset=pima", sources, *inferred, "factuals=absent.csv")
    text = done.stderr + done.stdout
    assert done.returncode == 1
    assert "Traceback" not in text
    assert "factuals=absent.csv is no file; allowed: test, test_then_train, all, " in text
    assert re.search("0.* class|class.* 0", text)
    assert not list(tmp_path.glob("results/*/answers/*"))
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([found.experiment_id for found in client.search_experiments()], "tags.state = 'failed'")
    assert len(runs) == 2
    assert any("absent.csv is no file" in run.data.tags["mlflow.note.content"] for run in runs)
    pd.read_csv(RAW / "pima.csv").head(2).to_csv(tmp_path / "absent.csv", index=False)
    assert runner(tmp_path)("-m", "dataset=pima", sources, *inferred, "factuals=absent.csv").returncode == 1
    runs = client.search_runs([found.experiment_id for found in client.search_experiments()], "tags.state = 'failed'")
    assert len(runs) == 1  # what was answered by now has failed no more


def test_a_number_can_be_wanted(tmp_path: Path) -> None:
    """Answers lie in the interval, by the checker's word; a model of the wrong sort fails alone, in one sentence."""
    weight = ("~dataset.classes", "~dataset.features.BMI", "dataset.target=BMI", "+dataset.task=regression")
    target = ("dataset.desired=>= 35", "desired=<= 30")  # of the dataset, and of this run
    settings = (
        "dataset=pima",
        "dataset.immutable=[]",
        *weight,
        *target,
        "metrics=all",
        "n_factuals=3",
        "n_counterfactuals=2",
    )
    done = runner(tmp_path)("-m", "model=lr,cart_regressor", *settings)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    sentence = "pima/lr/nearest: model=lr predicts classes, but the labels are numbers in dataset=pima"
    assert sentence in done.stderr
    assert "choose one of cart_regressor, gbm_regressor" in done.stderr
    (cell,) = stored(tmp_path).values()
    frame, targets = cell.factuals()
    assert set(targets.values()) == {Interval(high=30.0)}
    assert (cell.classifier.predict(frame) > 30).all()
    assert [verdict["verdict"] for verdict in cell.verdicts()] == ["accepted"] * 6
    assert (cell.classifier.predict(cell.space.frame(row["row"] for row in cell.rows())) <= 30).all()
    scores = pd.read_csv(cell.path / "scores.csv")
    known = "plausibility|robustness/(?!delta_validity|certified_delta)|mothilal/validity|coverage"  # those: no weights
    assert scores.filter(regex=known).notna().all(axis=None)


def test_a_person_who_is_already_fine_is_left_out(swept: tuple[Path, Any], tmp_path: Path) -> None:
    """People come from a CSV file; for one who is predicted as wanted the line and the rows say so. Nothing failed."""
    cell = stored(swept[0])["pima/cart/ce_ocl"]
    frame, _ = cell.factuals()
    wanted = next(row["row"] for row in cell.rows() if row["row"] is not None)
    pd.DataFrame([frame.iloc[0].to_dict(), wanted]).astype(frame.dtypes).to_csv(tmp_path / "people.csv", index=False)
    done = runner(tmp_path)("dataset=pima", "model=cart", "method=ce_ocl", "factuals=people.csv", "n_counterfactuals=2")
    assert done.returncode == 0
    assert "done: 1 factuals, 1 left out (the model already says what is wanted of this factual), cov" in done.stderr
    rows = {(row["factual"], row["ce"]): row for row in stored(tmp_path)["pima/cart/ce_ocl"].rows()}
    assert [rows[0, ce]["status"] for ce in (1, 2)] == ["OPTIMAL"] * 2
    assert [(rows[1, ce]["status"], rows[1, ce]["reason"]) for ce in (1, 2)] == [("UNSUPPORTED", "refused")] * 2


def test_an_experiment_can_be_narrowed(tmp_path: Path) -> None:
    """Overrides win over an experiment's own grid, and its name is the results folder's."""
    done = runner(tmp_path)("+experiment=compas", "model=lr", "method=nearest", "n_factuals=2")
    assert done.returncode == 0, done.stderr
    (cell,) = stored_runs(tmp_path / "results" / "compas")
    assert cell.label == "compas/lr/nearest"
    assert len(cell.rows()) == 6
    assert cell.meta["experiment"] == "compas"
