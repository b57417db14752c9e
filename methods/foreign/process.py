"""The process on the far side, and one JSON line at a time to and from it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import selectors
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pandas as pd
import psutil

from harness.core.errors import HarnessError
from harness.core.processes import die_with_parent
from harness.core.wording import NOT_STARTED

VERSION = 1
MOST = 2**26  # bytes of a line from the far side
SAID = 400  # bytes that are kept of what the far side says in words


class LostError(RuntimeError):
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
        self.lost = False
        self.arrays = False
        self.called: dict[str, int] = {}
        self._held = bytearray()
        self._said = bytearray()
        self._asked = 0
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **environment},
                preexec_fn=die_with_parent,
            )
        except OSError as fault:
            raise HarnessError(
                f"{command[0]} {NOT_STARTED} ({fault.strerror}); install it, or mend 'program'."
            ) from None
        self._end = weakref.finalize(self, _end, self.process)
        self._listener = threading.Thread(target=_listen, args=(self.process.stderr, self._said), daemon=True)
        self._listener.start()

    def ask(self, message: Mapping[str, Any], answer: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        """Send a message and return the reply; what the far side asks meanwhile is answered by ``answer``.

        Raises
        ------
        LostError
            Where the far side ends, breaks the protocol, or says more than ``MOST`` bytes in a line.
        """
        self._asked += 1
        self._write(self._line({**message, "id": self._asked}))
        while True:
            reply = self._read()
            if "ask" not in reply:
                number = reply.get("id")
                if number == self._asked:
                    return reply
                if not isinstance(number, int) or not 0 < number < self._asked:  # an earlier one was answered twice
                    raise self._broken(f"a reply to message {str(number)[:60]}, not to {self._asked}")
                continue
            try:
                told = self._line({"reply": answer(reply)})
                self.called[reply["ask"]] = self.called.get(reply["ask"], 0) + 1
            except MemoryError:
                self.lost = True  # it still waits for a reply
                raise
            except Exception as fault:  # a model's, too: of numbers that it does not take, or that JSON has not
                told = self._line({"error": str(fault) or type(fault).__name__})
            self._write(told)

    @property
    def processor_seconds(self) -> float:
        """User and system seconds of the process and of all that it started, so far; 0 where that cannot be told."""
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            return float(sum(sum(process.cpu_times()[:4]) for process in [own, *own.children(recursive=True)]))
        return 0.0

    def end(self) -> None:
        """End the process."""
        self._end()

    def _line(self, message: Mapping[str, Any]) -> bytes:
        return json.dumps(message, default=self._plain, allow_nan=False).encode() + b"\n"

    def _write(self, line: bytes) -> None:
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
            seen = 0
            while (at := self._held.find(b"\n", seen)) < 0:
                seen = len(self._held)
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
            reply = json.loads(line)
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
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1.0)
        self._listener.join(timeout=1.0)  # what it said last may still be in the pipe
        self.end()
        said = bytes(self._said).decode("utf-8", "replace").strip()
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


def _listen(pipe: IO[bytes], said: bytearray) -> None:
    """Read a pipe to its end, keeping the last of it: whoever writes there need not wait, and fills no memory."""
    with contextlib.suppress(OSError, ValueError), pipe:
        while part := os.read(pipe.fileno(), 2**16):
            said += part[-SAID:]
            del said[:-SAID]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close the pipes to it."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()
