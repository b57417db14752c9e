"""What the answers ask of a person, in money."""

import numpy as np

from harness.core.metric import metric


@metric(better="lower", family="loans", range=(0, np.inf))
def extra_income(factual, answers, problem):
    """Mean additional income that the counterfactuals ask for."""
    return (answers["income"] - factual["income"].iloc[0]).clip(lower=0).mean() if len(answers) else None
