"""Questions that share a problem, with the answers to each: what metrics of many questions are computed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from harness.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Asked:
    """Several questions and their answers, one question's after another's.

    Parameters
    ----------
    factuals
        Decoded, one row a question.
    answers
        Decoded, of all questions.
    counts
        How many answers each question has, shape (questions,).
    """

    problem: Problem
    factuals: pd.DataFrame
    answers: pd.DataFrame
    counts: np.ndarray

    @classmethod
    def one(cls, factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> Asked:
        """A single question: a one-row frame and its answers."""
        return cls(problem, factual, answers, np.array([len(answers)]))

    @cached_property
    def question(self) -> np.ndarray:
        """The place of each answer's question, shape (answers,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def origins(self) -> pd.DataFrame:
        """The factual of each answer, row by row beside ``answers``."""
        return self.factuals.iloc[self.question]

    @cached_property
    def pairs(self) -> tuple[pd.DataFrame, Asked]:
        """The first answer of each pair of a question's, and the second ones as answers to the same questions.

        In the order of ``np.triu_indices``.
        """
        starts = np.cumsum(self.counts) - self.counts
        places = [start + np.stack(np.triu_indices(n, k=1)) for start, n in zip(starts, self.counts, strict=True)]
        first, second = np.concatenate([np.zeros((2, 0), int), *places], axis=1)
        pairs = self.counts * (self.counts - 1) // 2
        return self.answers.iloc[first], Asked(self.problem, self.factuals, self.answers.iloc[second], pairs)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Per question, the mean over its answers of values whose first axis is the answers'; NaN without any."""
        stops = np.cumsum(self.counts)
        # One question at a time: in sums over several, rounding would depend on what else is there.
        parts = (values[stop - count : stop] for stop, count in zip(stops, self.counts, strict=True))
        return np.array([part.mean() if len(part) else np.nan for part in parts], dtype=float)

    def where(self, kept: Sequence[bool] | np.ndarray) -> Asked:
        """The same questions with some of their answers, bool, shape (answers,)."""
        kept = np.asarray(kept, dtype=bool)
        counts = np.bincount(self.question[kept], minlength=len(self.counts))
        return Asked(self.problem, self.factuals, self.answers.loc[kept], counts)

    def alone(self) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """Each question's factual, a one-row frame, and its answers."""
        stop = 0
        for place, count in enumerate(self.counts):
            start, stop = stop, stop + int(count)
            yield self.factuals.iloc[[place]], self.answers.iloc[start:stop].reset_index(drop=True)
