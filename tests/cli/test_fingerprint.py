"""What is run again is what may answer otherwise: the fingerprint follows sources, versions and settings, no more."""

from __future__ import annotations

import ast
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from support.groups import question

from harness.cli import fingerprint
from harness.cli.fingerprint import LIBRARIES, fingerprint_of, sources_of
from harness.core.packages import digest_of
from harness.execution.task import make_task
from methods.foreign.method import Foreign
from methods.nearest import Nearest

ROOT = Path(__file__).parents[2]
DECIDING = (
    "harness/core/objective.py", "harness/core/hull.py", "harness/solvers/highs.py", "harness/solvers/simplex.py",
    "harness/data/discretise.py", "harness/models/train.py", "harness/certificate/radius.py",
    "harness/certificate/trees.py", "harness/execution/worker.py", "harness/execution/contract.py",
    "methods/nearest.py", "methods/milp/embed/relu.py", "methods/estimators/trees.py", "methods/cells/kernels.py",
)  # fmt: skip
SHOWING = (
    "harness/reports/summary.py", "harness/reports/page/page.py", "harness/papers/robust/tables.py",
    "harness/cli/job.py", "harness/store/run.py", "harness/evaluation/scoring.py", "harness/execution/pool.py",
    "metrics/proximity.py",
)  # fmt: skip


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The sources, to be changed."""
    for folder in ("harness", "methods", "metrics"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "raw"))
    return tmp_path


def digest(root: Path) -> bytes:
    sources_of.cache_clear()
    return sources_of(root)


@pytest.mark.parametrize("file", DECIDING)
def test_a_line_that_answers_depend_on_changes_it(copied: Path, file: str) -> None:
    before = digest(copied)
    with (copied / file).open("a") as source:
        source.write("# one more line\n")
    assert digest(copied) != before


def test_a_line_of_reports_leaves_it(copied: Path) -> None:
    before = digest(copied)
    for file in SHOWING:
        with (copied / file).open("a") as source:
            source.write("# one more line\n")
    assert digest(copied) == before


@pytest.mark.parametrize(
    "file", ["metrics/proximity.py", "harness/evaluation/checker.py", "harness/evaluation/scoring.py"]
)
def test_a_line_that_scores_depend_on_changes_their_hash(copied: Path, file: str) -> None:
    """And none of reports or methods, which stored answers are scored without."""
    before = sources_of(copied, fingerprint.SCORING)
    for other in ("harness/reports/summary.py", "harness/evaluation/study.py", "methods/nearest.py"):
        with (copied / other).open("a") as source:
            source.write("# one more line\n")
    sources_of.cache_clear()
    assert sources_of(copied, fingerprint.SCORING) == before
    with (copied / file).open("a") as source:
        source.write("# one more line\n")
    sources_of.cache_clear()
    assert sources_of(copied, fingerprint.SCORING) != before


def test_all_that_judges_and_scores_is_in_the_hash_of_scores() -> None:
    """Of ``harness.evaluation``, whatever the checker and the scores import there."""
    todo, found = ["checker", "scoring"], set[str]()
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            tree = ast.parse((ROOT / "harness" / "evaluation" / f"{name}.py").read_text())
            for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
                module = node.module or ""
                if module == "harness.evaluation":
                    todo += [alias.name for alias in node.names]
                elif module.startswith("harness.evaluation."):
                    todo.append(module.rpartition(".")[2])
    assert {f"harness/evaluation/{name}.py" for name in found} == {*fingerprint.SCORING} - {"metrics"}


def test_a_file_that_moves_changes_it(copied: Path) -> None:
    before = digest(copied)
    (copied / "methods" / "nearest.py").rename(copied / "methods" / "farthest.py")
    assert digest(copied) != before


def test_a_folder_that_does_not_exist_is_an_error(copied: Path) -> None:
    """Names are never skipped: a folder that moves would otherwise be forgotten in silence."""
    shutil.rmtree(copied / "harness" / "certificate")
    with pytest.raises(FileNotFoundError, match="certificate"):
        digest(copied)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        digest_of(copied / "nowhere")


def settings(**changes: Any) -> dict[str, Any]:
    config: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "config.yaml"))
    chosen = {"dataset": {"name": "toy"}, "model": {"estimator": {}}, "method": {"_target_": "methods.nearest.Nearest"}}
    return {**config, **chosen, **changes}


@pytest.mark.parametrize("library", [*LIBRARIES, "xgboost"])
def test_another_version_of_a_library_changes_it(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, known = question(), fingerprint.version
    before = fingerprint_of(settings(), task, Nearest())
    other = {library, "xgboost-cpu"} if library == "xgboost" else {library}
    monkeypatch.setattr(fingerprint, "version", lambda name: "0.0.0" if name in other else known(name))
    assert fingerprint_of(settings(), task, Nearest()) != before


def test_what_is_asked_changes_it_and_how_it_is_shown_does_not() -> None:
    task, method = question(), Nearest()
    before = fingerprint_of(settings(), task, method)
    assert fingerprint_of(settings(), question(), method) == before
    changes = {
        "time_limit": 6,
        "seed": 1,
        "threads": 2,
        "reference": "all",
        "first_use": True,
        "group": True,
    }
    for asked in ({name: value} for name, value in changes.items()):
        assert fingerprint_of(settings(**asked), task, method) != before, asked
    for shown in ({"metrics": {"names": []}}, {"jobs": 2}, {"table": "x"}, {"output_dir": "elsewhere"}):
        assert fingerprint_of(settings(**shown), task, method) == before, shown
    fewer = replace(task, factuals=task.factuals.iloc[1:])
    assert fingerprint_of(settings(), fewer, method) != before


def test_where_a_csv_lies_does_not_change_it() -> None:
    """Nor how it is reached; what is in it is in the data's checksum, and its settings count."""
    task, csv = (
        question(),
        {"name": "loans", "path": ["loans.csv"], "sidecar": None, "max_megabytes": 100, "drop": None},
    )
    before = fingerprint_of(settings(dataset=csv), task, Nearest())
    for same in ({"path": ["./loans.csv"]}, {"sidecar": "loans.yaml"}, {"max_megabytes": 300}):
        assert fingerprint_of(settings(dataset=csv | same), task, Nearest()) == before, same
    assert fingerprint_of(settings(dataset=csv | {"drop": ["age"]}), task, Nearest()) != before


def test_what_a_script_imports_from_beside_it_changes_it(tmp_path: Path) -> None:
    """Directly or not; another file there does not."""
    texts = {"fewest": "import json, helper", "helper": "from deeper import x", "deeper": "x = 1", "other": "y = 1"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    method, task = Foreign("fewest", str(tmp_path / "fewest.py")), question()

    def now() -> str:
        fingerprint._plugged.cache_clear()
        return fingerprint_of(settings(), task, method)

    before = now()
    (tmp_path / "other.py").write_text("y = 2")
    assert now() == before
    for name in ("fewest", "helper", "deeper"):
        (tmp_path / f"{name}.py").write_text(f"{texts[name]}  # changed")
        assert now() != before, name
        (tmp_path / f"{name}.py").write_text(texts[name])
    assert now() == before


def test_satisfied_factuals_change_it_where_there_are_any() -> None:
    """A run without them is the same, whether they would be asked about or not."""
    task, asking = question(), settings(satisfied="ask")
    assert not task.content(task.factuals).any()
    assert fingerprint_of(asking, task, Nearest()) == fingerprint_of(settings(), task, Nearest())
    frame = task.dataset.frame
    everybody = make_task(task.dataset, task.classifier, which=list(frame.index))
    assert everybody.content(everybody.factuals).any()
    assert fingerprint_of(asking, everybody, Nearest()) != fingerprint_of(settings(), everybody, Nearest())
