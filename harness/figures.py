"""Figures of stored answers: ``python -m harness.figures results/ce_ocl_figure2``."""

from __future__ import annotations

from harness.reports.figures import write
from harness.reports.rebuild import rebuild


def main() -> None:
    """Draw the figures of result folders again."""
    rebuild("figure", write)


if __name__ == "__main__":
    main()
