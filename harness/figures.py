"""Figures of stored answers: ``python -m harness.figures results/ce_ocl_figure2``."""

from __future__ import annotations

from harness.core.processes import be_command
from harness.reports.figures import write
from harness.reports.rebuild import asked, rebuild


def main() -> None:
    """Draw the figures of result folders again."""
    rebuild("figure", write, asked("figures", "Make figures of stored answers."))


if __name__ == "__main__":
    be_command(main)
