"""The process on the far side, and one JSON line at a time to and from it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import selectors
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.processes import die_with_parent

VERSION = 1
MOST = 2**26  # bytes of a line from the far side
SAID = 400  # characters of what the far side last wrote on its standard error


class LostError(HarnessError):
    """The far side ended, or said what it must not: it cannot be asked again."""


class FarSide:
    """A running process that speaks the protocol on its standard input and output.

    Parameters
    ----------
    command
        Program and arguments.
    environment
        Variables, beside those of this process.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (its standard error, as long as it runs)
        self.lost = False
        self.arrays = False
        self.called: dict[str, int] = {}
        self._held = bytearray()
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env={**os.environ, **environment},
                preexec_fn=die_with_parent,
            )
        except OSError as fault:
            raise LostError(f"{command[0]} cannot be started ({fault.strerror}).") from None
        self._end = weakref.finalize(self, _end, self.process)

    def ask(self, message: Mapping[str, Any], answer: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        """Send a message and return the reply; what the far side asks meanwhile is answered by ``answer``.

        Raises
        ------
        LostError
            Where the far side ends, breaks the protocol, or says more than ``MOST`` bytes in a line.
        """
        self._write(message)
        while True:
            reply = self._read()
            if "ask" not in reply:
                return reply
            self.called[str(reply["ask"])] = self.called.get(str(reply["ask"]), 0) + 1
            try:
                self._write({"reply": answer(reply)})
            except HarnessError as fault:
                self._write({"error": str(fault)})

    @property
    def processor_seconds(self) -> float:
        """User and system seconds of the process so far; 0 where that cannot be told."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def end(self) -> None:
        """End the process."""
        self._end()

    def _write(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message, default=self._plain, allow_nan=False).encode() + b"\n"
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._ended() from None

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while (at := self._held.find(b"\n")) < 0:
                ready.select()
                part = os.read(self.process.stdout.fileno(), 2**20)
                if not part:
                    raise self._ended()
                self._held += part
                if len(self._held) > MOST:
                    raise self._broken(f"more than {MOST >> 20} MiB in a line")
        line = bytes(self._held[:at])
        del self._held[: at + 1]
        try:
            reply = json.loads(line, object_hook=_array)
        except (ValueError, RecursionError):
            raise self._broken(f"a line that is no JSON ({line[:60].decode('utf-8', 'replace')!r})") from None
        if not isinstance(reply, dict):
            raise self._broken(f"a line that is no JSON object ({line[:60].decode('utf-8', 'replace')!r})")
        return reply

    def _broken(self, what: str) -> LostError:
        self.lost = True
        self.end()
        return LostError(f"the far side said {what}.")

    def _ended(self) -> LostError:
        self.lost = True
        self.end()
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").strip()[-SAID:]
        last = f": {said.splitlines()[-1]}" if said else ""
        return LostError(f"the far side ended with code {self.process.wait()}{last}.")

    def _plain(self, value: Any) -> Any:
        """Arrays, where the far side takes them, and numpy's numbers."""
        if isinstance(value, np.ndarray):
            if not self.arrays or value.dtype.hasobject:
                return value.tolist()
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            return {"npy": base64.b64encode(buffer.getvalue()).decode("ascii")}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, pd.Timestamp):
            return value.isoformat()
        raise TypeError(f"{type(value).__name__} cannot be sent")


def _array(found: dict[str, Any]) -> Any:
    if set(found) != {"npy"}:
        return found
    return np.load(io.BytesIO(base64.b64decode(found["npy"])), allow_pickle=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close the pipes to it."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()
