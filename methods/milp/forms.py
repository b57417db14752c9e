"""Linear forms of a program's columns, multiplied, subtracted and stacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.solvers.highs import Linear


def scaled(form: Linear, factor: float) -> Linear:
    """A form times a number."""
    return Linear(form.columns, factor * form.coefficients, factor * form.constant)


def difference(form: Linear, other: Linear) -> Linear:
    """A form minus another."""
    return Linear.sum([form, scaled(other, -1.0)])


def stacked(forms: Sequence[Linear]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forms as one: their columns, the coefficients of shape (forms, columns), and the constants."""
    named = np.concatenate([np.zeros(0, dtype=np.int32), *(form.columns for form in forms)])
    columns, places = np.unique(named, return_inverse=True)
    rates = np.zeros((len(forms), len(columns)))
    rows = np.repeat(np.arange(len(forms)), [len(form.columns) for form in forms])
    rates[rows, places] = np.concatenate([np.zeros(0), *(form.coefficients for form in forms)])
    return columns, rates, np.array([form.constant for form in forms])
