"""One for many: the fewest counterfactuals that explain a group of factuals."""

from methods.column_generation.method import ColumnGeneration

__all__ = ["ColumnGeneration"]
