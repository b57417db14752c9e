"""Linear forms of a program's columns, multiplied and subtracted."""

from __future__ import annotations

from harness.solvers.highs import Linear


def scaled(form: Linear, factor: float) -> Linear:
    """A form times a number."""
    return Linear(form.columns, factor * form.coefficients, factor * form.constant)


def difference(form: Linear, other: Linear) -> Linear:
    """A form minus another."""
    return Linear.sum([form, scaled(other, -1.0)])
