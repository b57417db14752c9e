"""Fitted estimators as mixed-integer constraints: one encoder a model family, dispatched on the estimator's type.

``embed(estimator, program, inputs, sense)`` takes arbitrary inputs (``methods.milp.sources.Source``) and returns an
``Embedded`` whose outputs are linear expressions: one for a binary classifier or a regressor, else one a class. What
they equal is ``Classifier.raw`` (for networks of more than two classes, up to one number that all classes share).
"""

from methods.milp.embed import linear, relu  # noqa: F401  (they register themselves)
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.registry import embed

__all__ = ["Embedded", "embed"]
