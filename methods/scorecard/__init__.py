"""Counterfactuals of scorecards: a search over moves between bins, a mixed-integer program, the method on both."""

from methods.scorecard.method import Scorecard

__all__ = ["Scorecard"]
