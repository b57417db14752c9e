"""The command lines that make tables and figures of stored answers again."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError, short
from harness.reports.stored import latest
from harness.store.archive import ANSWERS, SUFFIX, answers_of, folder_of, has_answers, in_cache

log = logging.getLogger("harness")


def command(program: str, description: str, folders: str = "+") -> argparse.ArgumentParser:
    """A command line that names studies: one or more, or as many as ``folders`` says."""
    parser = argparse.ArgumentParser(prog=f"python -m harness.{program}", description=description)
    named = "experiment=NAME or study=NAME (with output_dir=FOLDER where not in results), a folder, or an archive"
    parser.add_argument("folder", nargs=folders, help=named)
    return parser


def asked(program: str, description: str) -> list[Path]:
    """The result folders that the command line names."""
    return folders_of(command(program, description).parse_args().folder)


def folders_of(arguments: Sequence[str]) -> list[Path]:
    """Result folders by name: ``study=NAME``, ``experiment=NAME`` within ``output_dir=FOLDER``; or paths.

    Of an archive, the folder of its study, where what is made of its answers goes.
    """
    parts = [(argument, *argument.rpartition("=")[::2]) for argument in arguments]
    home, folders = next((value for _, key, value in parts if key == "output_dir"), "results"), list[Path]()
    for argument, key, value in parts:
        if key == "output_dir":
            home = value  # of those after it, and the first of those before it as well
        elif key in {"experiment", "study"}:
            folders += [Path(home) / name for name in value.split(",")]
        else:
            folders.append(Path(argument))
    for file in (folder for folder in folders if folder.suffix == SUFFIX):
        if has_answers(folder_of(file) / ANSWERS):
            log.warning("%s has answers of its own: these are read, and not %s.", folder_of(file), file)
    return [folder_of(folder) if folder.suffix == SUFFIX else folder for folder in folders]


def each(act: Callable[[Path], None], folders: Iterable[Path]) -> None:
    """Do something with every folder, and end; exit code 1 where one of them is refused or cannot be written to."""
    wrong = False
    for folder in folders:
        try:
            if answers_of(folder) != folder:  # an archive's
                folder.mkdir(exist_ok=True)
            act(folder)
        except HarnessError as fault:
            wrong = True
            print(fault, file=sys.stderr)
        except OSError as fault:
            wrong = True
            name = fault.filename or "a file"
            print(f"{name} cannot be written ({fault.strerror}); make room, or allow it.", file=sys.stderr)
        except Exception as fault:
            if not in_cache(answers_of(folder)):
                raise
            wrong = True  # anybody may have made an archive
            print(f"the archive of {folder} is damaged ({short(fault)}); get or pack it again.", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def rebuild(kind: str, write: Callable[[Path, Any], str], folders: Iterable[Path]) -> None:
    """Make every ``kind`` (table, figure) of result folders again from their stored runs, and end.

    Exit code 1 where one cannot be made.
    """

    def act(folder: Path) -> None:
        name = next((run.meta["config"].get(kind) for run in latest(folder)), None)
        print(write(folder, name))

    each(act, folders)
