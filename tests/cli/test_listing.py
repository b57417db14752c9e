"""What there is to choose from, and what a sweep would run, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf
from support.sweep import runner

from harness.cli.composition import missing
from harness.cli.listing import KINDS, duration, listed, plan
from harness.cli.sweep import _value
from harness.core import packages
from harness.core.described import described

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.parametrize("kind", KINDS)
def test_every_choice_has_a_line(kind: str) -> None:
    """Its name, and what it is, in one line."""
    lines = listed(kind, [CONF]).splitlines()
    names = [line.split()[0] for line in lines]
    assert len(set(names)) == len(names) > 4
    assert all(len(line.split()) > 2 for line in lines)
    if kind != "metrics":
        assert set(names) == {path.stem for path in (CONF / KINDS[kind]).glob("*.yaml")}


@pytest.mark.parametrize(
    ("comment", "sentence"),
    [
        ("# @package _global_\n# One thing: and\n# another. Not this.\nx: 1  # nor this\n", "One thing: and another"),
        ("# One et al. by two, ... to three. Not this.\n", "One et al. by two, ... to three"),
        ("# One; not this.\n", "One"),
        ("# One\n#\n# Not this\n", "One"),
    ],
)
def test_a_description_is_the_first_sentence(comment: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(comment)
    assert described(tmp_path / "a.yaml") == sentence


@pytest.mark.parametrize(
    ("cloned", "told"), [(True, "uv sync --extra torch"), (False, "pip install 'ce-harness[torch]'")]
)
def test_a_description_tells_how_to_install_here(
    cloned: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "CLONED", cloned)
    (tmp_path / "a.yaml").write_text("# A descent: uv sync --extra torch\nx: 1\n")
    assert described(tmp_path / "a.yaml") == f"A descent: {told}"


def test_lists_and_version_are_printed(tmp_path: Path) -> None:
    """A list that does not exist is one sentence."""
    assert runner(tmp_path)("--version").stdout == f"ce-harness {packages.version('ce-harness')}\n"
    assert runner(tmp_path)("list", "datasets").stdout.startswith("adult ")
    wrong = runner(tmp_path)("list", "method")
    assert (wrong.returncode, wrong.stderr.strip()) == (
        1, "there is no list of 'method'; did you mean 'methods'? Allowed: "
        "datasets, models, methods, metrics, experiments.",
    )  # fmt: skip


def test_a_dry_sweep_runs_nothing(tmp_path: Path) -> None:
    """It prints tasks, methods and the most time: six runs of at most 2 x 7 + 120 seconds."""
    sweep = ("-m", "dataset=pima", "model=lr,rf", "method='nearest',ce_ocl.yaml,md_pso", "n_factuals=2", "time_limit=7")
    done = runner(tmp_path)(*sweep, "dry=true")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["6 runs: 2 tasks x 3 methods", "  pima / lr", "  pima / rf"]
    assert lines[3].split()[:3] == ["nearest", "Nearest", "unlike"]
    assert lines[-2:] == [
        "2 questions a run; at most 7 s each and 120 s to set up",
        "Together at most 13.4 min, one run at a time; most end far sooner.",
    ]
    assert list(tmp_path.iterdir()) == []
    assert "x seed=0,1" in runner(tmp_path)(*sweep, "seed=0,1", "dry=true").stdout.splitlines()[0]


def test_the_most_time_is_that_of_each_run(tmp_path: Path) -> None:
    """Settings that the sweep varies, people by number or in a file, and groups have their own limits."""
    (tmp_path / "people.csv").write_text("age\n30\n40\n50\n")
    limits = {"n_factuals": 9, "time_limit": 7, "fit_time_limit": 10, "group_time_limit": 100}
    cases = [
        ({"factuals": "test", "group": None}, "9 questions a run; at most 7 s", 9 * 7 + 10),
        ({"factuals": [3, 4], "group": False}, "2 questions a run; at most 7 s", 2 * 7 + 10),
        ({"factuals": str(tmp_path / "people.csv"), "group": None}, "3 questions a run; at most 7 s", 3 * 7 + 10),
        ({"factuals": "test", "group": True}, "9 questions a run, which are one group; at most 100 s", 100 + 10),
        ({"factuals": "test", "group": "sex"}, "9 questions a run in groups by sex; at most 100 s", 9 * 100 + 10),
    ]
    jobs = [{"dataset": "pima", "model": "lr", "method": "nearest"}] * len(cases)
    lines = plan(jobs, [limits | settings for settings, _, _ in cases], [CONF]).splitlines()
    assert [line.partition(" each")[0] for line in lines[3:-1]] == [words for _, words, _ in cases]
    assert f"at most {duration(float(sum(seconds for _, _, seconds in cases)))}," in lines[-1]
    done = runner(tmp_path)("-m", "dataset=pima", "method=nearest", "n_factuals=1,5", "time_limit=5,50", "dry=true")
    assert f"at most {duration((1 + 5) * (5 + 50) + 4 * 120.0)}," in done.stdout.splitlines()[-1], done.stderr


def test_what_is_planned_need_not_be_yaml() -> None:
    """Nor does a sweeper's address need a package: Hydra says what is wrong of either."""
    assert [_value(text) for text in ("3", "[1, 2]", "@x")] == [3, [1, 2], "@x"]
    assert missing(OmegaConf.create({"_target_": "odd"})) is None
