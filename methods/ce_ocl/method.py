"""CE-OCL: counterfactual explanations by optimisation with constraint learning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import ClassVar

from harness.core.method import Explainer
from harness.core.problem import Problem
from methods.ce_ocl.parameters import Parameters
from methods.delta import DeltaExplainer, inexact, pessimistic, signs


@dataclass(frozen=True)
class CeOcl(Parameters):
    r"""Closest point, by a distance and the number of changed features, that the fitted model puts in the wanted class.

    .. math::
        \min_x \;        & d(x, \hat x) + \alpha \textstyle\sum_l z_l + \beta \|s\|_1                     & (2a) \\
        \text{s.t. } \;  & h(x) \models \tilde y                                     &\text{validity}    & (2c) \\
                         & \textstyle\sum_i \lambda_i \bar x_i = x + s, \; \sum_i \lambda_i = 1, \; \lambda \ge 0, \;
                           \|s\|_p \le \epsilon                                      &\text{data manifold} & (3) \\
                         & \textstyle\sum_{j \in C_l} x_j = 1,\; x_j \in \{0, 1\}    &\text{coherence}   & (4) \\
                         & |x_j - \hat x_j| \le M_j z_j, \; \textstyle\sum_l z_l \le K &\text{sparsity}  & (5a, 5b) \\
                         & x_i = \hat x_i,\; x_i \ge \hat x_i, \dots                 &\text{actionability} & (6) \\
                         & x_i = \hat x_i + c_i(p_i) - c_i(\hat p_i)                 &\text{causality}   & (7)

    Equation numbers are those of [1]_. The model is embedded exactly (``methods/milp/embed``); :math:`M_j` is how far
    the feature can go, not a big number. With :math:`\alpha` above every possible distance the problem is solved in its
    two stages, fewest changes first, which is the same optimum without the loss of digits. The hull is that of all
    points of the wanted class, by category combination or by cuts (``methods/milp/manifold.py``).

    Each answer is predicted as wanted by the fitted estimator: a solution that the estimator refuses (a tie, rounding)
    is excluded and the program solved again. OPTIMAL means that objective and proven bound agree within
    1e-6 times the distance, or times 1 where an unsquared distance is less. What the solver proves counts once a second
    run of it, without presolve, has come to it too; else the trace says ``unconfirmed``.
    Where no counterfactual exists, ``conflict`` names constraint groups that together rule all of them out, each
    of them needed where time sufficed to tell.

    Parameters
    ----------
    distance
        In scaled space: ``l0``, ``l1``, ``mad_l1``, ``gower``, ``l2sq``, ``linf``, ``mahalanobis``:
        :math:`\|L^T(x - \hat x)\|_1` with :math:`L L^T = \Sigma^{-1}`, over the scaled columns. Squares are constants
        per cell on trees, and an outer approximation by tangents elsewhere, refined until the gap is closed.
    alpha
        Weight :math:`\alpha \ge 0` of the number of changes. ``conf/method/ce_ocl.yaml`` has 10000: fewest first.
    max_changes
        Bound K on the number of changed features; None for no bound.
    count
        Unit of a change: ``features``, or ``columns`` (a changed one-hot category counts 2).
    hull
        ``hard``: within :math:`\epsilon` of the convex hull. ``penalised``: at the price :math:`\beta \|s\|_1`.
        ``fallback``: penalised where a hard one leaves nothing, which costs more than anything inside. ``none``.
    epsilon
        :math:`\epsilon \ge 0` in scaled units; of a list, the first that leaves a counterfactual.
    hull_norm
        p of a hard hull: 1, 2 or inf.
    penalty
        :math:`\beta > 0`.
    hull_points
        Reference rows ``labelled`` as wanted, ``predicted`` as wanted, or ``both``.
    clusters
        Number of k-means clusters, of which the union of hulls is taken; of ``likelihood`` the components.
    likelihood
        q in [0, 1): :math:`\ell(x) \ge \tau`, the point is at least as likely as a share q of those rows [5]_, 0 for
        no such condition; instead of a hull. :math:`\ell(x) = \max_c [\log \pi_c + \sum_j \log p_{cj}(x_j)]` is that
        of a mixture of histograms, one component a cluster (``harness.core.density``): a sum-product network of one sum
        and one layer of products, whose sum is replaced by its greatest term, a lower bound, as [5]_ does in its
        program. Stated exactly, a component at a time (``methods/milp/likely.py``), so that optima are proven.
    causality
        Whether to keep to the dataset's structural equations.
    diversity
        How several counterfactuals differ. ``distance``: each in a category, or by ``separation`` in a number, from all
        earlier ones [2]_. ``pool``: improving incumbents of one solve, filled up by ``distance``. ``assignments``: the
        best points of different assignments of the integer variables: features that may change (where changes have a
        price or a bound), categories, leaves of trees, phases of hidden units, which is what a solver's pool of the
        best solutions has; further than ``separation`` from a factual that needs no counterfactual. ``features``: no
        earlier change is made again, a category entered or a number moved to the same side [3]_. ``clusters``: one for
        each cluster's hard hull, the best of all first, each apart from those before it by ``separation``. ``epsilon``:
        one for each enlargement of the hull, as long as the objective improves.
    separation
        Scaled distance in one number that tells two counterfactuals apart, in (0, 1].
    margin
        :math:`\delta` > 0: validity is score − threshold ≥ δ (or ≤ −δ). Above the solver's tolerance of 1e-7. Linear
        models and networks are posed without one (unless it is above 1e-6), so that optimum and bound are those of
        their own rule; trees have none but where their outputs are known to lie further apart.
    engine
        ``search``: branch and bound over the cells of a tree ensemble (``methods/cells``), without a margin; a solver
        is asked for linear programs of hard questions, and for relations that add up numbers of many values. ``milp``:
        the mixed-integer program. ``auto``: the searches wherever they apply (see Notes), else the program. Same
        optimum.
    delta
        :math:`\delta \in [0, 1]`, in units of the model's weights: (2c) then holds for every model of which each weight
        is at most so far off [4]_: :math:`h_{\theta'}(x) \models \tilde y` wherever
        :math:`\|\theta' - \theta\|_\infty \le \delta`.
        For linear models, :math:`w^\top x + b - \delta (\|x\|_1 + 1)`, and networks with one hidden layer of ReLUs, the
        worst of them is what another model of that kind says (``methods.delta``), which is embedded in its place.

    Notes
    -----
    What a question asks for decides what answers it. The program takes all models that can be embedded, and is asked
    where a constraint of the question is none of a search's. ``cells`` is the search over cells of trees, ``hull`` the
    one over boxes of a hull, ``few`` the one over one or two changes, which leaves the rest to the program.

    ========  ==================================  ===================  =====================  =============  =======
    equation  constraint                          cells                hull                   few            program
    ========  ==================================  ===================  =====================  =============  =======
    (2a)      distances not summed over features  no                   no                     no             yes
    (2a)      costs with distance=mahalanobis     no                   no                     no             no
    (2a)      costs by side or by category        yes                  no                     yes            yes
    (2a)      percentiles                         yes                  no                     no             yes
    none      missing values                      yes                  no                     no             no
    (4, 6)    coherence, bounds, actionability    up to 64 categories  yes                    yes            yes
    [2]_      answers apart by separation         yes                  no                     yes            yes
    none      a pool, clusters or enlargements    no                   no                     no             yes
    [3]_      answers that repeat no change       no                   no                     no             yes
    none      answers of other assignments        no                   no                     no             yes
    (5a, 5b)  sparsity                            yes                  yes                    yes            yes
    (2c)      validity                            sums of trees        linear, trees, ReLUs   ReLU networks  yes
    (7)       structural equations                no                   no                     no             yes
    none      relations                           bounded numbers      no                     no             yes
    (3)       the data manifold                   no                   epsilon 0, or a price  no             yes
    [5]_      likelihood                          no                   no                     no             yes
    ========  ==================================  ===================  =====================  =============  =======

    References
    ----------
    .. [1] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    .. [2] Karimi, A.-H., G. Barthe, B. Balle, and I. Valera (2020). Model-agnostic counterfactual explanations for
       consequential decisions. *AISTATS*.
    .. [3] Russell, C. (2019). Efficient search for diverse coherent explanations. *FAT**.
    .. [4] Jiang, J., F. Leofante, A. Rago, and F. Toni (2023). Formalising the robustness of counterfactual
       explanations for neural networks. *AAAI 37*.
    .. [5] Němeček, J., T. Pevný, and J. Mareček (2025). Generating likely counterfactuals using sum-product networks.
       *ICLR*.
    """

    deterministic: ClassVar[bool] = True
    takes_gaps: ClassVar[bool] = True

    @property
    def sees_reference(self) -> bool:
        return self.manifold

    def refuses(self, problem: Problem) -> str | None:
        if not self.delta:
            return _explainer().refusal(self, problem)
        why = inexact(problem)
        return why or _explainer().refusal(self, pessimistic(problem, self.delta, signs(problem)))

    def fit(self, problem: Problem) -> Explainer:
        build = partial(_explainer().CeOclExplainer, self)
        return DeltaExplainer(build, problem, self.delta) if self.delta else build(problem)


def _explainer() -> ModuleType:
    from methods.ce_ocl import explainer  # slow: numba, which only workers need

    return explainer
