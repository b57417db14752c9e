"""Whether the answers stay valid when the model is trained again; a number for each way in which trainings differ."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together

share = partial(metric, better="higher", family="retraining", range=(0.0, 1.0), shown=("report",))


@share(heading="other seeds", place=10)
@together
def seeds(asked: Asked) -> np.ndarray:
    """Mean share of 20 models trained with other random seeds that say of a valid answer what was wanted.

    Black et al. (2022) ask this of networks of other initial weights. In [0, 1], higher is better. None without a
    valid answer, for estimators that no seed changes, and where it is not known how the model was trained (one of a
    file). So are all metrics of this family; features' scaling and the threshold stay those of the model.

    >>> from metrics._example import answers, factual, retrained
    >>> seeds(factual, answers, retrained)  # of one valid answer, an income of 80: other trees split at 50 and 90
    0.5
    """
    return _kept(asked, "seeds")


@share(place=11)
@together
def bootstrap(asked: Asked) -> np.ndarray:
    """Mean share of 20 models trained on bootstrap samples of the rows that say of a valid answer what was wanted.

    Samples of as many training rows, drawn with replacement. This project's definition. As ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> bootstrap(factual, answers.assign(income=[95.0, 80.0]), retrained)  # both trees grant the first, one the other
    0.75
    """
    return _kept(asked, "bootstrap")


@share(heading="1 % left out", place=12)
@together
def leave_out_1(asked: Asked) -> np.ndarray:
    """Mean share of 20 models trained without 1 % of the rows that say of a valid answer what was wanted.

    Without at least one; Black et al. (2022) leave out a single row. As ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> leave_out_1(factual, answers, retrained)
    0.5
    """
    return _kept(asked, "leave_out_1")


@share(heading="10 % left out", place=13)
@together
def leave_out_10(asked: Asked) -> np.ndarray:
    """Mean share of 20 models trained without 10 % of the rows that say of a valid answer what was wanted.

    This project's definition. As ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> leave_out_10(factual, answers, retrained)
    0.5
    """
    return _kept(asked, "leave_out_10")


@share(heading="other settings", place=14)
@together
def hyperparameters(asked: Asked) -> np.ndarray:
    """Mean share of models with other settings of their grid that say of a valid answer what was wanted.

    This project's definition: each other setting of the grid within which such estimators are tuned, at most 20. None
    for estimators that no ``conf/model/*_tuned.yaml`` searches over; as ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> hyperparameters(factual, answers, retrained)
    0.5
    """
    return _kept(asked, "hyperparameters")


@share(heading="later rows", place=15)
@together
def later(asked: Asked) -> np.ndarray:
    """Share of valid answers of which a model trained on the later rows alone says what was wanted.

    The temporal shift of Upadhyay et al. (2021). In [0, 1], higher is better. The later rows are the test rows; None
    where rows are not split by time (``split.time``). As ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> later(factual, answers, retrained) is None
    True
    """
    return _kept(asked, "later")


@share(heading="more or fewer rows", place=16)
@together
def more_or_fewer(asked: Asked) -> np.ndarray:
    """Mean share of 20 models of twice the rows, or of all but 1 %, that say of a valid answer what was wanted.

    Ten are trained on the training rows and as many test rows (on all of these where there are fewer), ten without 1 %
    of the training rows, the same for all ten; each has another random seed, as Jiang, Lan et al. (2023) retrain
    networks. None where every row is a training row; as ``seeds`` otherwise.

    >>> from metrics._example import answers, factual, retrained
    >>> more_or_fewer(factual, answers, retrained)
    0.5
    """
    return _kept(asked, "more_or_fewer")


def _kept(asked: Asked, change: str) -> np.ndarray:
    """Mean over valid answers of the share of the models of a change by which they are valid, too."""
    problem = asked.problem
    retraining = problem.classifier.retraining
    models = () if retraining is None else retraining.models(change)
    if not models:
        return np.full(len(asked.counts), np.nan)
    valid = asked.where(problem.valid(asked.answers))
    if valid.answers.empty:
        return np.full(len(asked.counts), np.nan)
    return valid.mean(np.column_stack([problem.target.holds(model, valid.answers) for model in models]))
