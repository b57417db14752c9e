"""Robust counterfactuals: the closest point with a valid region around it."""

from methods.robust.method import Robust

__all__ = ["Robust"]
