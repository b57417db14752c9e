"""A setting that nothing asks for is told of, wherever it stands; what another one refers to is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from harness.cli.build import _know_all_of_model
from harness.cli.composition import unknown
from harness.cli.explained import explained
from harness.core.errors import HarnessError
from harness.core.packages import CONF
from harness.execution import clocks

CHOSEN = ["dataset=pima", "model=rf", "method=nearest"]


def composed(*overrides: str) -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", [*CHOSEN, *overrides], return_hydra_config=True)


def test_a_setting_that_is_none_is_told() -> None:
    assert unknown(composed()) is None
    assert str(unknown(composed("++time_limt=3"))).startswith("there is no setting 'time_limt'; did you mean 'time_lim")
    assert str(unknown(composed(), ["foo"])).startswith("there is no setting 'foo'; allowed: split")


def test_what_a_yaml_has_for_itself_is_none_of_ours() -> None:
    """What another setting refers to, and what begins with an underscore, as anchors do."""
    assert unknown(composed("++helper=3", "time_limit=${helper}", "++_common={a: 1}")) is None
    _know_all_of_model("rf", composed("++model.cut=0.3", "model.threshold=${model.cut}", "++model._own=1"))


def test_a_models_settings_are_those_that_are_read() -> None:
    with pytest.raises(HarnessError, match="model=rf has no setting 'treshold'; did you mean 'threshold'"):
        _know_all_of_model("rf", composed("++model.treshold=0.3"))
    with pytest.raises(HarnessError, match="model=rf has no setting 'treshold'"):
        next(explained([*CHOSEN, "factuals=[3]", "++model.treshold=0.3"]))


def test_one_person_is_asked_about_with_settings_that_there_are() -> None:
    with pytest.raises(HarnessError, match="there is no setting 'n_counterfactual'; did you mean 'n_counterfactuals'"):
        next(explained([*CHOSEN, "factuals=[3]", "++n_counterfactual=3"]))


def test_who_waits_for_a_person_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The start of a process and its fit take longer than this."""
    monkeypatch.setattr(clocks, "SILENT", 0.01)
    next(explained([*CHOSEN, "model=cart", "n_factuals=1"]))
    said = capsys.readouterr().err
    assert "waiting for the method, which fits once for all people: 0.01 s so far" in said
