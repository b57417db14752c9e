"""How a command ends that is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.core.processes import ended_by

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
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    given["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores Ctrl-C
    with subprocess.Popen([sys.executable, "-c", COMMAND], cwd=tmp_path, **given) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
        assert process.wait(30) == code
        assert process.stderr.read() == said
    assert not list(tmp_path.iterdir())


def test_what_ends_a_process_is_told_by_its_signal() -> None:
    """Of what raises, the process that does it will tell; what it is given is its standard input."""
    assert ended_by("import os; os.kill(os.getpid(), 11)") == "SIGSEGV"
    assert ended_by("1 // 0") == ""
    given = "import os, sys; os.kill(os.getpid(), int(sys.stdin.read() + sys.argv[1]))"
    assert ended_by(given, "1", given=b"1") == "SIGSEGV"
