"""The tables, figures and claims of all papers, by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from harness.store.run import StoredRun


@cache
def collected(kind: str) -> dict[str, Any]:
    """What the papers' modules list under ``TABLES``, ``FIGURES`` or ``CLAIMS``, merged."""
    papers = Path(__file__).parents[1] / "papers"
    names = (found.name for found in pkgutil.iter_modules([str(papers)]))
    modules = (importlib.import_module(f"harness.papers.{name}") for name in names)
    return {name: entry for module in modules for name, entry in getattr(module, kind, {}).items()}


class Table(Protocol):
    """A published table, and how stored runs become its counterpart."""

    @property
    def title(self) -> str: ...

    @property
    def published(self) -> tuple[str, ...]:
        """Names of the files of published numbers that it regenerates."""
        ...

    @property
    def costs(self) -> frozenset[str]:
        """The measures that are costs, whatever follows a comma in their names: seconds, iterations, early stops."""
        ...

    @property
    def asked(self) -> int:
        """Questions behind a published number."""
        ...

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        """Markdown without a heading, and a frame of all its numbers."""
        ...

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Of the frame that ``build`` gives, one number a row: columns of keys, ``measure``, ``published``, ``ours``.

        Beside them, where they are known, what ``harness.reports.verdict`` takes; ``why`` there is no number of ours;
        ``alone``, whether one of ours has nothing published beside it, and is shown; ``rival``, whether the method is
        not the paper's own; ``published_stopped``, whether a limit ended the paper's; ``given``, whether ours is set or
        assigned, not measured, so that nothing can differ; and ``of`` and ``published_of``, out of how many a count is.

        Without a column ``published`` where nothing is published.
        """
        ...


@dataclass(frozen=True)
class Refuted:
    """A published number or counterfactual that a proof excludes.

    Parameters
    ----------
    place
        The published row that it is in.
    published
        What is printed.
    why
        What excludes it.
    """

    place: str
    published: str
    why: str


@runtime_checkable
class Refutes(Protocol):
    """A table that can tell which of its published numbers are excluded."""

    def refuted(self, found: Sequence[StoredRun]) -> tuple[list[Refuted], int]:
        """Those that are, and how many were looked at."""
        ...


class Lines:
    """What most tables share: a frame that already has one number a row, of one question, none of them a cost."""

    costs: frozenset[str] = frozenset()
    asked: int = 1

    def compared(self, lines: pd.DataFrame) -> pd.DataFrame:
        return lines


class OneFile(Lines):
    """Lines beside one file of published numbers."""

    file: str

    @property
    def published(self) -> tuple[str, ...]:
        return (self.file,)


def known() -> dict[str, Table]:
    """Every published table, by the name under which an experiment asks for it."""
    return collected("TABLES")
