"""What CI says of skipped tests: each reason has to be on its list."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
TESTS = """
import pytest

def test_refused():
    pytest.skip("refused: it takes no model")

@pytest.mark.skip(reason={reason})
def test_marked():
    pass
"""
WHOLE = "import pytest\npytest.importorskip('absent_library', reason={reason})\n"


@pytest.mark.parametrize("text", [TESTS, WHOLE], ids=["a test", "a file"])
@pytest.mark.parametrize(("reason", "code"), [("onnx is in the extra 'onnx'", 0), ("it is hard", 1)])
def test_a_reason_on_no_list_fails(text: str, reason: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(text.replace("{reason}", repr(reason)))
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "--rootdir", str(tmp_path), str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    counted = runpy.run_path(str(CI / "skips.py"))
    assert counted["main"]([str(report)]) == code
    assert reason in counted["reasons"](report)
