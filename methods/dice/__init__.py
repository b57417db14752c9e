"""DiCE's searches, by its own library."""

from methods.dice.method import LIBRARY, SEARCHES, Dice

__all__ = ["LIBRARY", "SEARCHES", "Dice"]
