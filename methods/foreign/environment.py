"""Environments of methods that cannot be installed beside the harness: made by ``uv`` from a lock file, and kept."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core import packages
from harness.core.caching import cache
from harness.core.errors import HarnessError
from harness.core.wording import MAKE_IT

MADE, FAILED = "made", "failed"  # files in an environment's folder: it is whole; why it could not be made


def home() -> Path:
    """Where environments are kept."""
    return cache() / "environments"


def located(path: str) -> Path:
    """A file by its path, or by that within an importable package: ``loans_plugin/far/echo.py``.

    Raises
    ------
    HarnessError
        Where there is none.
    """
    given = Path(path).expanduser()
    top, _, rest = path.partition("/")
    found = [given, *(place / rest for place in packages.places(top) if rest)]
    for place in found:
        if place.is_file():
            return place.resolve()
    raise HarnessError(f"there is no file {path!r}; give its path, or package/path of a file in an installed package.")


@dataclass(frozen=True)
class Environment:
    """A Python and the packages in it.

    Parameters
    ----------
    name
        What it is called in messages, and by ``python -m harness environments``.
    lock
        A file of pinned requirements, as ``uv pip compile`` writes it; empty where nothing but the standard library is
        needed.
    python
        The version of Python, which has to be installed; empty for the one that runs the harness.
    index
        The address of a further index of packages, which is asked where the first has not all of them.
    """

    name: str
    lock: str = ""
    python: str = ""
    index: str = ""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Environment:
        """That of a method's ``environment`` in YAML."""
        return cls(name, *(str(settings.get(key) or "") for key in ("lock", "python", "index")))

    @property
    def folder(self) -> Path:
        """Where it is kept: another folder for another lock or Python."""
        text = located(self.lock).read_bytes() if self.lock else b""
        digest = hashlib.sha256(text + self.python.encode()).hexdigest()[:12]
        return home() / f"{self.name}-{digest}"

    @property
    def interpreter(self) -> Path:
        """Its Python; where nothing is asked for, the harness's own."""
        if not self.lock and not self.python:
            return Path(sys.executable)
        return self.folder / "bin" / "python"

    @property
    def lacking(self) -> str | None:
        """Why it cannot be used, as a sentence, or None."""
        if (not self.lock and not self.python) or (self.folder / MADE).is_file():
            return None
        why = self.folder.with_suffix(f".{FAILED}")
        told = f" ({why.read_text(encoding='utf-8').strip()})" if why.is_file() else ""
        return f"the environment of {self.name} is not there{told}; {MAKE_IT} {self.name}`."

    def make(self) -> None:
        """Make it unless it is there; one process at a time.

        Raises
        ------
        HarnessError
            Where ``uv``, the Python or a package is missing.
        """
        if self.lacking is None:
            return
        with self._alone():
            if self.lacking is None:
                return
            print(f"making the environment of {self.name} once ({self.folder})", flush=True)
            shutil.rmtree(self.folder, ignore_errors=True)
            why = self.folder.with_suffix(f".{FAILED}")
            try:
                self._uv("venv", "--python", _python(self.python), str(self.folder))
                if self.lock:
                    self._sync(
                        "pip", "sync", "--compile-bytecode", "--python", str(self.interpreter), str(located(self.lock))
                    )
            except HarnessError as fault:
                shutil.rmtree(self.folder, ignore_errors=True)
                why.write_text(str(fault), encoding="utf-8")
                raise
            why.unlink(missing_ok=True)
            (self.folder / MADE).touch()

    @property
    def earlier(self) -> list[Path]:
        """Folders of its name that are of another lock or Python."""
        return [path for path in sorted(home().glob(self._any)) if path != self.folder]

    def remove(self) -> None:
        """Remove it, and what is left of earlier locks and Pythons."""
        for path in home().glob(f"{self._any}*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    @property
    def _any(self) -> str:
        return f"{glob.escape(self.name)}-{'[0-9a-f]' * 12}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        home().mkdir(parents=True, exist_ok=True)
        with open(self.folder.with_suffix(".lock"), "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sync(self, *arguments: str) -> None:
        try:
            self._uv(*arguments)
        except HarnessError:
            if not self.index:
                raise
            self._uv(*arguments, "--extra-index-url", self.index, "--index-strategy", "unsafe-best-match")

    def _uv(self, *arguments: str) -> None:
        program = shutil.which("uv")
        if program is None:
            raise HarnessError("uv is not installed; see https://docs.astral.sh/uv")
        settings = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
        settings.pop("VIRTUAL_ENV", None)
        if links := os.environ.get("PIP_FIND_LINKS"):  # folders of packages that pip looks into
            settings.setdefault("UV_FIND_LINKS", ",".join(links.split()))
        done = subprocess.run(
            [program, "--quiet", "--no-config", *arguments], capture_output=True, text=True, env=settings, check=False
        )
        if done.returncode:
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            faults = [line for line in said if line.startswith(("error", "×", "cause", "╰"))] or said
            raise HarnessError(" ".join(faults[:3]) or f"uv ended with code {done.returncode}")


def _python(version: str) -> str:
    """A Python of this version for ``uv``: one of pyenv's, which stands behind no name on the path, or the version."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = sorted([*root.glob(f"{version}/bin/python"), *root.glob(f"{version}.*/bin/python")]) if version else []
    return str(found[-1]) if found else version or sys.executable
