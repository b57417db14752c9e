"""Relations between features of robust counterfactuals: kept by the point, or by its whole region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.relations import Literal, Number, Row, clauses_of
from methods.robust.perturbation import Perturbation


def clauses(perturbation: Perturbation, factual: pd.DataFrame, everywhere: bool) -> list[list[Row]]:
    r"""What a point has to keep; ``everywhere``: for its whole region to keep the relations, but those about changes.

    A literal :math:`a^T x \le b` holds in the region where :math:`a^T x + \rho \|a_P\|_* \le b`, in scaled units. One
    about how a row differs from the factual is about the point, as perturbations are no changes.
    """
    relations, found = perturbation.space.relations, clauses_of(perturbation.space.relations, factual)
    if not everywhere:
        return found
    literals = [clause for relation in relations for clause in relation.clauses]
    return [
        [row if literal.relative else replace(row, high=row.high - _worst(perturbation, row)) for literal, row in pairs]
        for pairs in (zip(clause, rows, strict=True) for clause, rows in zip(literals, found, strict=True))
    ]


def check(perturbation: Perturbation) -> None:
    """Nothing where "one literal of each clause in the whole region" is all that keeping a relation there can mean.

    Raises
    ------
    UnsupportedError
        Where another literal may hold elsewhere in the region: two of them about numbers that are perturbed, which a
        ball never makes worst at once, nor a box where both name the same number. Of ``!=`` one holds everywhere, the
        region being connected.
    """
    for relation in perturbation.space.relations:
        for clause in relation.clauses:
            moved = [(literal, names) for literal in clause if (names := _perturbed(perturbation, literal))]
            opposite = len(moved) == len(clause) == 2 and _opposite(moved[0][0], moved[1][0])
            apart = perturbation.norm == "linf" and not any(a & b for (_, a), (_, b) in combinations(moved, 2))
            if len(moved) > 1 and not opposite and not apart:
                several = " or ".join(sorted({name for _, names in moved for name in names}))
                raise UnsupportedError(
                    f"relations_in_region cannot tell where in a region which part of {relation.text!r} holds; name "
                    f"{several} in 'unperturbed', or set relations_in_region=false."
                )


def _worst(perturbation: Perturbation, row: Row) -> float:
    """How much a perturbation adds to a literal at most."""
    reach = dict(zip(perturbation.space.names, perturbation.reach, strict=True))
    far = np.array([slope * reach[feature.name] for feature, slope in row.numbers.items()])
    return float(np.abs(far).sum() if perturbation.norm == "linf" else np.linalg.norm(far))


def _perturbed(perturbation: Perturbation, literal: Literal) -> set[str]:
    """The perturbed numbers that a literal, if it is none about changes, adds up."""
    reach = dict(zip(perturbation.space.names, perturbation.reach, strict=True))
    added = [quantity.feature.name for quantity, _ in literal.terms if isinstance(quantity, Number)]
    return set() if literal.relative else {name for name in added if reach[name] > 0}


def _opposite(one: Literal, other: Literal) -> bool:
    """Whether two literals are the two sides of ``!=``."""
    turned: Sequence[object] = tuple((quantity, -weight) for quantity, weight in other.terms)
    return one.strict and other.strict and one.terms == turned and one.high == -other.high
