"""Methods, metrics, datasets and models from outside the package: installed, or in a folder of one's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from sklearn.base import ClassifierMixin

from harness import check
from harness.cli import build, fingerprint, main, plugins, process
from harness.core import packages
from harness.core.errors import DatasetError, HarnessError
from harness.data.sources import Source, read_bytes
from harness.store.run import StoredRun, stored_runs

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests" / "plugin"
PACKAGE = PLUGIN / "loans_plugin"
LOANS = ("dataset=loans", "model=stump_forest", "metrics=loans", "n_factuals=3", "n_counterfactuals=2")


def install(site: Path, name: str = "loans-plugin", points: dict[str, str] | None = None) -> None:
    """What an installer leaves behind: the package's metadata, with its entry points or others."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][packages.PLUGS] if points is None else points
    folder = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in points.items())
    (folder / "entry_points.txt").write_text(f"[{packages.PLUGS}]\n{lines}")


def command(folder: Path, *arguments: str, site: Path) -> subprocess.CompletedProcess[str]:
    """Run ``python -m harness`` in a folder, with what is installed in another."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW")}
    environment |= {"CE_HARNESS_CACHE": str(folder / "cache"), "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    line = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, as if installed there."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder / "loans_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    install(folder)
    return folder


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A folder of choices whose method is a module beside it, which imports another."""
    folder = tmp_path / "my conf"
    (folder / "method").mkdir(parents=True)
    (folder / "method" / "mine.yaml").write_text("_target_: mine_module.Mine\n")
    (tmp_path / "mine_module.py").write_text("from mine_helper import Draw\n\n\nclass Mine(Draw):\n    pass\n")
    (tmp_path / "mine_helper.py").write_text("from loans_plugin.draw import Draw\n")
    return folder


def test_everything_of_ones_own_runs(site: Path, conf: Path, tmp_path: Path) -> None:
    """An installed package without any flag, a folder by ``hydra.searchpath``; in the workers and the checker, too."""
    search = f"hydra.searchpath=['file://{conf}']"
    done = command(tmp_path, "-m", search, "method=draw,mine", *LOANS, site=site)
    assert done.returncode == 0, done.stderr
    found = {cell.label: cell for cell in stored_runs(tmp_path / "results")}
    assert set(found) == {"loans/stump_forest/draw", "loans/stump_forest/mine"}
    data = pd.read_csv(PACKAGE / "loans.csv", keep_default_na=False)
    for cell in found.values():
        frame, _ = cell.factuals()
        for identity, row in frame.iterrows():
            assert row.to_dict() == data.loc[identity, frame.columns].to_dict()
        scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
        rows = [row for row in cell.rows() if row["row"] is not None]
        assert rows
        for identity, score in scores["loans/extra_income"].dropna().items():
            asked = [max(r["row"]["income"] - frame["income"][identity], 0) for r in rows if r["factual"] == identity]
            assert score == pytest.approx(sum(asked) / len(asked))
        assert (cell.path / "counterfactuals.csv").is_file()
    assert len({cell.meta["fingerprint"] for cell in found.values()}) == 2
    assert check.main([str(tmp_path / "results")]) == 0


def test_choices_are_listed(site: Path, conf: Path, tmp_path: Path) -> None:
    """By ``--help``, and in the error about one that does not exist."""
    search = f"hydra.searchpath=['file://{conf}']"
    done = command(tmp_path, search, "--help", site=site)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    for group, names in {
        "method": ["draw", "mine", "nearest"],
        "dataset": ["loans"],
        "model": ["stump_forest"],
    }.items():
        assert set(names) <= set(lines[group].split(", "))
    done = command(tmp_path, search, "method=mien", site=site)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no method 'mien'; did you mean 'mine'? Allowed: ")
    assert {"draw", "mine", "nearest"} <= set(done.stderr.strip().rpartition("Allowed: ")[2].split(", "))


def test_the_folder_of_the_choices_themselves_is_no_second_one(tmp_path: Path, site: Path) -> None:
    """``$PWD/conf`` of a clone: nothing in it hides behind another."""
    done = command(
        tmp_path, f"hydra.searchpath=['file://{packages.CONF}']", "method=nearest", "--cfg", "job", site=site
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_a_broken_plug_in_harms_only_who_uses_it(tmp_path: Path) -> None:
    """One sentence names the package; what does not use it runs, and there is no traceback."""
    site = tmp_path / "site"
    install(site, "lost-plugin", {"lost": "nowhere.conf"})
    install(site, "bare-plugin", {"bare": "harness.data"})
    bad = site / "bad_plugin" / "conf" / "method"
    bad.mkdir(parents=True)
    (site / "bad_plugin" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    (bad / "torn.yaml").write_text("_target_: [1, 2")
    (bad / "nearest.yaml").write_text("_target_: bad_plugin.Nearest\n")
    install(site, "bad-plugin", {"bad": "bad_plugin.conf"})
    done = command(tmp_path, "method=nearest", "--cfg", "job", site=site)
    assert done.returncode == 0, done.stderr
    assert OmegaConf.create(done.stdout).method._target_ == "methods.nearest.Nearest"
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert any("'lost-plugin' names nowhere.conf, which is no folder" in line for line in lines)
    assert any("'bare-plugin' names harness.data, which holds no choice" in line for line in lines)
    assert any("'bad-plugin' has a method/nearest.yaml that is never used" in line for line in lines)
    done = command(tmp_path, "method=torn", site=site)
    assert done.returncode == 1
    assert "torn.yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("[file:///nowhere]", "names file:///nowhere, which is no folder"),
        ("[pkg://no.conf]", "pkg://no.conf"),
        ("[a", ""),
    ],
)
def test_a_wrong_search_path_is_one_sentence(
    search: str, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before anything runs."""
    monkeypatch.setattr(sys, "argv", ["harness", f"hydra.searchpath={search}"])
    monkeypatch.setattr(main.SearchPath, "asked", [])
    monkeypatch.setattr(main, "talk", lambda: None)
    monkeypatch.setattr(process.log, "propagate", True)
    with pytest.raises(SystemExit, match="1"):
        main.main()
    (record,) = caplog.records
    assert words in record.getMessage()
    assert "\n" not in record.getMessage()


def test_what_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method and a metric whose module fails: the sentence has the module and its error."""
    (tmp_path / "failing_module.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = "failing_module.*a_library_that_is_not_there"
    with pytest.raises(HarnessError, match=words) as found:
        build._instantiate(OmegaConf.create({"_target_": "failing_module.Mine"}), "method mine")
    assert "\n" not in str(found.value)
    with pytest.raises(HarnessError, match=words) as found:
        build.metrics_of({"names": ["failing_module.mine"]})
    assert "\n" not in str(found.value)


def test_a_fingerprint_follows_the_source(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method's own file and what it imports of its package or of its folder, and no other file."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "site-packages" / "packaged"
    (package / "deep").mkdir(parents=True)
    monkeypatch.syspath_prepend(package.parent)
    files = {
        package / "__init__.py": "",
        package / "method.py": "def f():\n    from .deep import inner\n    import packaged.other, library_beside\n",
        package / "deep" / "__init__.py": "",
        package / "deep" / "inner.py": "from .. import method\n",
        package / "other.py": "",
        package / "metric.py": "",
        package.parent / "library_beside.py": "",
        tmp_path / "unrelated.py": "",
    }
    for path, text in files.items():
        path.write_text(text)

    def digest(module: Path) -> bytes:
        fingerprint._plugged.cache_clear()
        return fingerprint._plugged(str(module))

    mine, inside = tmp_path / "mine_module.py", package / "method.py"
    before = digest(mine), digest(inside)
    assert before[0] != before[1]
    for path in (package / "metric.py", package.parent / "library_beside.py", tmp_path / "unrelated.py"):
        path.write_text("# changed\n")
        assert (digest(mine), digest(inside)) == before
    for path in (mine, tmp_path / "mine_helper.py"):
        path.write_text(path.read_text() + "# changed\n")
        assert digest(mine) not in before
        before = digest(mine), before[1]
    for path in (inside, package / "deep" / "inner.py", package / "other.py", package / "deep" / "__init__.py"):
        path.write_text(path.read_text() + "# changed\n")
        assert digest(inside) not in before
        before = before[0], digest(inside)


def test_a_fingerprint_follows_the_libraries_of_a_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that its file or one beside it imports, by the distributions' versions; none of ours, nor of others."""
    (tmp_path / "mine.py").write_text("import json, helper\nimport harness.core.method\n")
    (tmp_path / "helper.py").write_text("def f():\n    from sklearn.tree import export_text\n")
    versions = {"scikit-learn": "1.0", "numpy": "2.0"}
    monkeypatch.setattr(packages, "distribution_version", versions.__getitem__)

    def digest() -> bytes:
        fingerprint._plugged.cache_clear()
        return fingerprint._plugged(str(tmp_path / "mine.py"))

    assert plugins.libraries([tmp_path / "mine.py", tmp_path / "helper.py"]) == {"sklearn"}
    before = digest()
    versions["numpy"] = "3.0"
    assert digest() == before
    versions["scikit-learn"] = "1.1"
    assert digest() != before


def test_models_of_plug_ins_are_known() -> None:
    """Beside the package's own, which come first; by the file that each is in."""
    search = f"hydra.searchpath=[file://{PACKAGE / 'conf'}]"
    with initialize_config_dir(str(packages.CONF), version_base="1.3"):
        config = compose("config", [search], return_hydra_config=True)
    try:
        HydraConfig.instance().set_config(config)
        found = build._models(ClassifierMixin)
    finally:
        HydraConfig.instance().cfg = None
    assert found["stump_forest"] == PACKAGE / "conf" / "model" / "stump_forest.yaml"
    assert found["lr"] == packages.CONF / "model" / "lr.yaml"
    assert "stump_forest" not in build._models(ClassifierMixin)


def test_data_may_come_with_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """``package://`` reads a file of an installed package; a missing package or file is one sentence."""
    monkeypatch.syspath_prepend(PLUGIN)
    assert read_bytes(Source("package://loans_plugin/loans.csv")) == (PACKAGE / "loans.csv").read_bytes()
    with pytest.raises(DatasetError, match="'nowhere', which is not installed"):
        read_bytes(Source("package://nowhere/loans.csv"))
    with pytest.raises(DatasetError, match=r"lost.csv is missing; install the package"):
        read_bytes(Source("package://loans_plugin/lost.csv"))


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")) + sorted(PACKAGE.glob("conf/*/*.yaml")))
def test_the_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 30


@pytest.mark.slow
def test_a_clean_installation(tmp_path: Path) -> None:
    """The built wheels of ce-harness and of the example, in an environment of their own, from another directory."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")

    def command(*line: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=1200, **options)

    for source in (ROOT, PLUGIN):
        built = command(uv, "build", "--wheel", "--out-dir", tmp_path / "wheels", source)
        if built.returncode:
            pytest.skip(f"no wheel can be built here: {built.stderr.strip().splitlines()[-1]}")
    command(uv, "venv", "--python", sys.executable, tmp_path / "venv", check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (tmp_path / "overrides.txt").write_text("xgboost; sys_platform == 'never'\n")  # a CUDA library that nothing needs
    wheels = sorted((tmp_path / "wheels").glob("*.whl"))
    options = ["--python", python, "--override", tmp_path / "overrides.txt"]
    for network in (["--offline"], []):
        installed = command(uv, "pip", "install", *network, *options, *wheels)
        if not installed.returncode:
            break
    else:
        pytest.skip(f"neither uv's cache nor the network has the packages: {installed.stderr.strip()[-300:]}")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH"} and not k.startswith("MLFLOW")}
    environment["CE_HARNESS_CACHE"] = str(folder / "cache")
    line = (python, "-m", "harness", "-m", "method=draw,ce_ocl", *LOANS)
    done = command(*line, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    assert all(StoredRun(cell.path).done for cell in stored_runs(folder / "results"))
    done = command(python, "-m", "harness.check", "results", cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    done = command(tmp_path / "venv" / "bin" / "ce-harness", "--help", cwd=folder, env=environment)
    assert "stump_forest" in done.stdout


@pytest.mark.slow
def test_a_method_in_an_environment_of_its_own(site: Path, tmp_path: Path) -> None:
    """The environment is made before the run; another Python that is not there costs one sentence."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not on this machine")
    done = command(tmp_path, "method=fewest", *LOANS, site=site)
    assert done.returncode == 0, done.stderr
    assert "making the environment of fewest once" in done.stdout
    (run,) = stored_runs(tmp_path / "results" / "adhoc")
    answers = [row for row in run.rows() if row["status"] == "FOUND"]
    assert len(answers) == 6
    listed = command(tmp_path, "environments", site=site).stdout
    assert re.search(r"^fewest  the harness's Python  \d+ MiB in ", listed, re.MULTILINE)
    lacking = command(tmp_path, "method=fewest", "+method.environment.python='3.2'", *LOANS, site=site)
    assert "the environment of fewest is not there (" in lacking.stderr + lacking.stdout
    assert "Traceback" not in lacking.stderr
    assert (
        "fewest  the harness's Python  not made"
        in command(tmp_path, "environments", "remove", "fewest", site=site).stdout
    )


def test_a_module_of_a_persons_own_does_not_hide_a_package_of_ours(tmp_path: Path) -> None:
    """A file or folder of that name where the command is given; one that is imported already is named."""
    first, second = "methods", "metrics"
    (tmp_path / f"{first}.py").write_text("mine = True\n")
    (tmp_path / second).mkdir()
    (tmp_path / second / "__init__.py").write_text("mine = True\n")

    def told(code: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        line = [sys.executable, "-c", code]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    ours = f"{ROOT}/methods/__init__.py {ROOT}/metrics/__init__.py"
    assert ours in told(f"import harness, {first}, {second}; print({first}.__file__, {second}.__file__)")
    assert f"{tmp_path}/{first}.py hides the package '{first}' of ce-harness" in told(f"import {first}, harness")
    hidden = f"{tmp_path}/{second}/__init__.py hides the package '{second}'"
    assert hidden in told(f"import {second}, harness")
