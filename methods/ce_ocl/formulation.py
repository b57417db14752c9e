"""The constraints of CE-OCL in a program, a function each; equation numbers are those of ``CeOcl``.

The program takes all of them. What the searches take besides: over cells, of sums of trees; over boxes of a hull, of
sums of trees and linear models; over few changes, of networks, where the program looks for the rest.

========  ========================================  ================  =====  ====  ===
equation  constraint                                function          cells  hull  few
========  ========================================  ================  =====  ====  ===
(2a)      distances that are sums over features     ``aim.Aim``       yes    yes   yes
(2a)      ``linf``, ``mahalanobis``                 ``aim.Aim``       no     no    no
(2c)      validity                                  ``validity``      yes    yes   yes
(3)       data manifold, hard or at a price         ``manifolds``     no     yes   no
(4)       coherence: one category of each feature   ``build``         yes    yes   yes
(5a, 5b)  sparsity                                  ``sparsity``      yes    yes   yes
(6)       actionability, bounds                     ``build``         yes    yes   yes
(7)       structural equations                      ``build``         no     no    no
[2]_      several answers by ``distance``           ``separation``    yes    no    yes
[3]_      several answers by any other diversity    ``separation``    no     no    no
none      relations between features                ``RelationRows``  yes    no    no
========  ========================================  ================  =====  ====  ===
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.problem import Problem
from harness.core.target import Label
from harness.solvers.program import Compiled, Program
from methods.ce_ocl.parameters import Parameters
from methods.estimators.raw_target import leads, raw_interval
from methods.estimators.trees import splits_only
from methods.milp.causality import Causality
from methods.milp.embed import Embedded, embed
from methods.milp.embed.registry import embeddable
from methods.milp.manifold import Manifold
from methods.milp.number_block import bounded
from methods.milp.supports import clustered, supports
from methods.milp.variables import Variables, affine


def build(program: Program, parameters: Parameters, problem: Problem) -> tuple[Variables, Embedded, Causality | None]:
    """(4), (5a) and (6), the model h of (2c), and (7): space, model and structural equations in a program."""
    classifier = problem.classifier
    if classifier.opaque:
        raise UnsupportedError(classifier.opaque)
    cells = splits_only(classifier.estimator) and not parameters.coupled(problem)
    variables = Variables(program, problem.space, cells=cells)
    told_apart = parameters.diversity == "assignments"  # by the phases of all units, those that could be spared, too
    sense = raw_interval(problem).sense if len(classifier.classes) <= 2 and not told_apart else 0
    embedded = embed(classifier.estimator, program, [variables.source(s) for s in classifier.inputs], sense)
    imposed = parameters.causality and problem.equations
    return variables, embedded, Causality(program, variables, problem.equations) if imposed else None


def check(parameters: Parameters, problem: Problem) -> None:
    """Nothing where ``build`` takes the problem, without a program.

    Raises
    ------
    UnsupportedError
        As ``build``.
    """
    classifier, space = problem.classifier, problem.space
    if classifier.opaque:
        raise UnsupportedError(classifier.opaque)
    cells = splits_only(classifier.estimator) and not parameters.coupled(problem)
    for feature in space.features:
        if feature.numeric and not cells:
            bounded(feature)
    if len(classifier.classes) <= 2:
        raw_interval(problem)
    for model in [classifier, *(equation.model for equation in problem.equations if parameters.causality)]:
        for source in model.inputs:
            if space[source.feature].numeric:
                affine(source)
        embeddable(model.estimator)


def validity(program: Program, embedded: Embedded, margin: float, unit: float, problem: Problem) -> list[Any]:
    """(2c), as rows: the raw output beyond its threshold, or within the wanted interval, by the margin.

    Outputs and margin are divided by ``unit``, in which the solver's tolerances are small.
    """
    outputs = [output / unit for output in embedded.outputs] if unit != 1 else embedded.outputs
    if len(problem.classifier.classes) <= 2:
        low, high = (end / unit for end in raw_interval(problem).bounds(margin))
        rows = [program.add(outputs[0] >= low)] if math.isfinite(low) else []
        return rows + ([program.add(outputs[0] <= high)] if math.isfinite(high) else [])
    assert isinstance(problem.target, Label)  # anything else is refused
    # The first of several equal classes is predicted, and averaged leaf fractions do tie.
    wanted = problem.classifier.code(problem.target.value)
    earlier, later = (lead / unit for lead in leads(problem.classifier, margin))
    return [
        program.add(outputs[wanted] - output >= (later if wanted < other else earlier))
        for other, output in enumerate(outputs)
        if other != wanted
    ]


def manifolds(parameters: Parameters, problem: Problem, entry: float) -> list[Manifold]:
    """(3): the hulls, in the order in which they are tried.

    Lying outside of a soft one costs as much as ``entry`` scaled units of distance from it, besides that distance.
    """
    if parameters.hull == "none":
        return []
    space = problem.space
    points = np.unique(space.encode(problem.reference.loc[supports(problem, parameters.hull_points)]), axis=0)
    cluster, norm = clustered(points, parameters.clusters), float(parameters.hull_norm)
    hard = parameters.epsilons if parameters.hull != "penalised" else ()
    found = [Manifold(space, points, cluster, norm, most, None) for most in hard]
    if not parameters.soft:
        return found
    penalty = parameters.penalty
    return [*found, Manifold(space, points, cluster, 1, 0.0, penalty, penalty * entry)]


def sparsity(compiled: Compiled, variables: Variables, weights: np.ndarray, most: float) -> None:
    """(5b): at most so many changes, in weights of changed features."""
    if math.isfinite(most):
        compiled.add_row(variables.changed(weights), high=most)


def separation(
    compiled: Compiled,
    variables: Variables,
    parameters: Parameters,
    factual: pd.DataFrame,
    earlier: Sequence[dict[str, Any]],
) -> None:
    """Keep a counterfactual separated from earlier ones, in the sense of ``diversity``."""
    for row in earlier:
        if parameters.diversity == "features":
            variables.forbid(row, factual)
        else:
            compiled.add_row(variables.distance_form(row, parameters.separation), low=1.0)
