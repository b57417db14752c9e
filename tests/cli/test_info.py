"""``python -m harness info``: what it says is what is installed, where it lies, and what numba has kept."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.pages import ROOT

from harness.cli import environment, info, main
from harness.core.compiling import njit

KERNEL = """from harness.core.compiling import njit


@njit(cache=True)
def double(x):
    return 2 * x
"""


ANEW = environment.machine.__wrapped__


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["ce-harness", "info"])
    monkeypatch.setattr(main, "talk", lambda: None)  # it would log to this test's standard error ever after
    main.main()
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache whose size is soon known."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))


def said(monkeypatch: pytest.MonkeyPatch, versions: Mapping[str, str | None]) -> None:
    """Have these versions, and no others, installed; the machine is looked at anew, and not remembered."""
    for place in ("harness.cli.environment.machine", "harness.cli.info.machine"):
        monkeypatch.setattr(place, ANEW)
    for place in ("harness.cli.environment.version", "harness.cli.info.version", "harness.core.packages.version"):
        monkeypatch.setattr(place, versions.get)


def test_versions_extras_and_folders_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version and extras are those of pyproject.toml; a cache has its size, a folder that is not there none."""
    monkeypatch.setenv("CE_HARNESS_DATA", str(tmp_path / "nowhere"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.skops").write_bytes(bytes(3 << 19))
    said(monkeypatch, {"ce-harness": "7.0", "torch": None, "numpy": "2.0"})
    text = printed(monkeypatch, capsys)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert text.startswith("ce-harness 7.0, Python ")
    extras = text.split("\nextras\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in extras] == sorted(project["optional-dependencies"])
    assert "  torch                not installed; uv sync --extra torch" in extras
    assert f"  cache: models        {tmp_path / 'models'}: 1.5 MiB\n" in text
    assert f"  data                 {tmp_path / 'nowhere'}: not there\n" in text


def test_a_wheel_says_pip(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a clone it is uv, which knows the lock file."""
    said(monkeypatch, {"ce-harness": "7.0", "torch": None})
    monkeypatch.setattr("harness.core.packages.CLONED", False)
    monkeypatch.setattr(info, "_kept_kernels", dict)
    text = printed(monkeypatch, capsys)
    assert "  torch                not installed; pip install 'ce-harness[torch]'" in text
    assert "  nice                 not installed; pip install --no-deps nicex==0.2.3" in text  # which pins numpy 1


def test_xgboost_with_cuda_is_xgboost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Which pip brings, as dice-ml asks for it; the extra asks for the one without."""
    monkeypatch.setattr(info, "_kept_kernels", dict)
    for there in ("xgboost", "xgboost-cpu"):
        said(monkeypatch, {"ce-harness": "7.0", there: "3.2"})
        assert f"\n  xgboost              {there} 3.2\n" in printed(monkeypatch, capsys)


def test_kernels_are_counted_where_they_are_kept_and_not_stale(tmp_path: Path) -> None:
    """None before it is called, one afterwards, and none once its source has changed."""
    code = "import doubling, harness.cli.info as i; {} print(i._kept(doubling.double))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path / "c")}

    def kept(then: str = "") -> str:
        command = [sys.executable, "-c", code.format(then)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    (tmp_path / "doubling.py").write_text(KERNEL)
    assert kept() == "False"
    assert kept("doubling.double(3);") == kept() == "True"
    (tmp_path / "doubling.py").write_text(KERNEL.replace("2 * x", "x + x + 0"))
    assert kept() == "False"


def test_what_is_not_kept_is_not_counted() -> None:
    """Such as a kernel without a cache."""
    assert not info._kept(njit()(lambda x: x))


def test_a_run_is_noted_with_the_versions_of_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an extra brings where it is installed; what every run may need, absent or not."""
    said(monkeypatch, {"numpy": "2.0", "nicex": "0.2.3", "xgboost": "3.2"})
    known = environment.machine()["packages"]
    assert {name: number for name, number in known.items() if number} == {
        "numpy": "2.0", "nicex": "0.2.3", "xgboost": "3.2",
    }  # fmt: skip
    assert {*known} == {*environment.PACKAGES, "nicex", "xgboost"}
