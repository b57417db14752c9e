"""Scores of an archive computed again, from its answers, its estimators and the data set's rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.sweep import runner

from harness import archive as command
from harness.store.run import stored_runs


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    done = runner(folder)("dataset=pima", "model=lr", "method=nearest", "n_factuals=5", "study=small")
    assert done.returncode == 0, done.stderr
    return folder / "results" / "small"


def test_scores_that_need_rows_or_the_model_are_computed_again(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whoever has the data: no plausibility and robustness is believed; other data are one sentence."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    (run,) = stored_runs(swept)
    file, kept = tmp_path / "small.ceh", (run.path / "scores.csv").read_text()

    def verified(*options: str) -> tuple[int, str]:
        assert command.main(["pack", str(swept), str(file)]) == 0
        capsys.readouterr()
        code = command.main(["verify", str(file), *options])
        return code, "".join(capsys.readouterr())

    code, said = verified("--scores")
    assert (code, "the scores of 1 runs were computed again: of 0 they are others" in said) == (0, True)
    for name in ("plausibility/ynn", "nearest/robustness/invalidation_rate"):
        scores = pd.read_csv(run.path / "scores.csv")
        scores.loc[0, name] = 0.123
        scores.to_csv(run.path / "scores.csv", index=False)
        assert verified()[0] == 0
        code, said = verified("--scores")
        assert code == 1
        assert f"do not follow from its answers and the data set's rows: {name}\n" in said
        (run.path / "scores.csv").write_text(kept)
    scores = pd.read_csv(run.path / "scores.csv").assign(**{"retraining/seeds": 0.9, "nearest/retraining/seeds": 0.9})
    scores.to_csv(run.path / "scores.csv", index=False)
    before = run.meta["scored"]
    names = [*before["metrics"]["names"], "metrics.retraining.seeds"]
    run.update(scored={**before, "metrics": {"names": names}})
    assert verified("--scores")[0] == 0  # models trained again are in no archive
    run.update(data_sha256="0" * 64)
    code, said = verified("--scores")
    assert (code, "is of other data than pima here" in said) == (1, True)
