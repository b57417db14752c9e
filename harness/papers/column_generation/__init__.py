"""One for many: Lodi and Ramírez-Ayerbe (2024)."""

from harness.papers.column_generation.claims import CLAIMS
from harness.papers.column_generation.figures import FIGURES
from harness.papers.column_generation.tables import TABLES

__all__ = ["CLAIMS", "FIGURES", "TABLES"]
