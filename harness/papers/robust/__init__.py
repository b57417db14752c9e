"""Robust regions: Maragno, Kurtz, Röber, Goedhart, Birbil and den Hertog (2024)."""

from harness.papers.robust.claims import CLAIMS
from harness.papers.robust.figures import FIGURES
from harness.papers.robust.tables import TABLES

__all__ = ["CLAIMS", "FIGURES", "TABLES"]
