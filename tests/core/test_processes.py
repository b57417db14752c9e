"""How a command ends that is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.core.processes import killed_by

COMMAND = """
import tempfile, time
from harness.core.processes import be_command

def main():
    with tempfile.TemporaryDirectory(dir="."):
        print("ready", flush=True)
        time.sleep(60)

be_command(main)
"""


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")],
    ids=["SIGINT", "SIGTERM"],
)
def test_a_command_that_is_ended_leaves_nothing_behind(
    how: signal.Signals, code: int, said: str, tmp_path: Path
) -> None:
    """Neither a traceback nor a temporary folder."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
        assert process.wait(30) == code
        assert process.stderr.read() == said
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no copy is made")
def test_what_would_end_a_process_ends_a_copy() -> None:
    assert killed_by(lambda: os.kill(os.getpid(), signal.SIGSEGV)) == "SIGSEGV"
    assert killed_by(lambda: print("done")) is None
    assert killed_by(lambda: 1 // 0) is None  # which the process itself will tell
    assert killed_by(lambda: time.sleep(60), seconds=0.2) is None
