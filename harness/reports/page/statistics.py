"""Who is better than whom, over blocks: mean ranks, Friedman's test, and Nemenyi's for pairs."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.05  # of significance


def posthocs() -> ModuleType:
    """The library of tests between pairs, and of diagrams of critical differences."""
    import scikit_posthocs  # slow: 2 s

    return scikit_posthocs


@dataclass(frozen=True)
class Ranking:
    """Methods by mean rank.

    Parameters
    ----------
    ranks
        Mean rank by method, 1 is best; sorted.
    pairs
        p-value of each pair of methods, by name both ways; NaN where no test applies.
    p
        Of the hypothesis that all methods are alike; NaN where no test applies.
    blocks
        Number of blocks behind it.
    """

    ranks: pd.Series
    pairs: pd.DataFrame
    p: float
    blocks: int

    @property
    def places(self) -> pd.Series:
        """1 + the number of methods that are significantly better, so ties by significance share a place."""
        better = {
            name: sum(
                self.ranks[other] < self.ranks[name] and self.pairs.loc[other, name] < LEVEL
                for other in self.ranks.index
            )
            for name in self.ranks.index
        }
        return pd.Series(better) + 1


def rank(matrix: pd.DataFrame, better: str) -> Ranking:
    """Rank the columns within each row, and test whether they differ.

    Friedman's test, and Nemenyi's for pairs; for two methods, Wilcoxon's signed ranks of their ranks. All need at least
    two rows. Infinite values are last.

    Parameters
    ----------
    matrix
        One row a block, one column a method; no gaps.
    better
        ``higher`` or ``lower``.

    >>> table = pd.DataFrame({"a": [1.0, 2, 1, 1, 2, 1, 1, 1], "b": [3.0] * 8, "c": [4.0, 5, 4, 4, 9, 4, 4, 4]})
    >>> ranking = rank(table, "lower")
    >>> ranking.ranks.to_dict(), ranking.places.to_dict()
    ({'a': 1.0, 'b': 2.0, 'c': 3.0}, {'a': 1, 'b': 1, 'c': 2})
    """
    ranks = matrix.rank(axis=1, ascending=better == "lower")
    names, mean = list(matrix.columns), ranks.mean().sort_values(kind="stable")
    pairs, p = pd.DataFrame(np.nan, index=names, columns=names), float("nan")
    differ = len(matrix) > 1 and bool((ranks.to_numpy() != ranks.to_numpy()[:, :1]).any())
    if differ and len(names) == 2:
        p = float(stats.wilcoxon(ranks[names[0]], ranks[names[1]]).pvalue)
        pairs.loc[:, :] = p
    elif differ and len(names) > 2:
        p = float(stats.friedmanchisquare(*(ranks[name] for name in names)).pvalue)
        if p < LEVEL:  # only then are pairs looked at
            pairs = posthocs().posthoc_nemenyi_friedman(ranks)
    return Ranking(mean, pairs, p, len(matrix))
