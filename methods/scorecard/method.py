"""Optimal counterfactuals of scorecards: one or several at once, by one or several objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.core.conflict import conflict_text, groups_of, irreducible, lifted
from harness.core.errors import UnsupportedError, check_choices, choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.gaps import same
from harness.core.method import Deadline
from harness.core.numbers import check_above, check_least
from harness.core.objective import Limit, Objective, Term, check_weight
from harness.core.problem import Problem
from harness.core.space import values_of
from harness.core.target import Interval, Label, Probability
from harness.core.tolerances import COST_TIE, MARGIN, OPTIMALITY_GAP, SCORE_TIE
from harness.models.card import card_of
from methods.estimators.raw_target import raw_interval
from methods.estimators.trees import DOUBLE, LINK
from methods.scorecard import kernels
from methods.scorecard.milp import ScorecardProgram
from methods.scorecard.moves import MoveFinder, Moves, closeness_factor, opened, optbinning_spread, spread, table_of
from methods.scorecard.related import RelatedValues
from methods.scorecard.search import Form, Rules, Search, Sets

ALLOWED = {"weights": ("range", "mad", "optbinning"), "engine": ("search", "milp")}
PARTS = ("proximity", "closeness", "outcome", "changes")  # in the order of a form's weights
OBJECTIVES = (*PARTS, "diversity_features", "diversity_values")
COMPILED = 20  # training rows tried, until one has two counterfactuals and every kernel is compiled
COMPILING = 60.0  # seconds for that
TRIED = 0.8  # of the time left for several counterfactuals at once, before fewer are asked for
RESERVE = 0.02  # of the time limit: for reading the result


@dataclass(frozen=True)
class Scorecard:
    r"""Fewest, nearest and likeliest moves between a scorecard's bins that reach the target, for N counterfactuals.

    .. math::
        \min \;         & \omega_1 \textstyle\sum_j r_j |x'_j - x_j| + \omega_2 \|L^T (x' - \mu)\|_1
                          + \omega_3 |P(x') - y'| + \omega_4 \sum_j t_j                        & (3, 7, 9) \\
        \text{s.t. } \; & x'_j = x_j + \textstyle\sum_b (w_{jb} - x_j) z_{jb}, \; t_j = \sum_b z_{jb} \le 1, \;
                          \sum_j t_j \le K                                                                \\
                        & \beta_0 + \beta^T x' \ge \delta, \text{ or within the target's ends}            \\
                        & \textstyle\sum_j |t^m_j - t^n_j| \ge 1                     & (10, 11) \\
                        & z^m_{jb} + z^n_{jb} \le 1                                  & (12)

    Equation numbers are those of [1]_; x is what the linear model sees (weights of evidence, or means), in table order,
    :math:`\mu` and :math:`\Sigma^{-1} = LL^T` are of the training rows. Several counterfactuals are found at once, by
    the sum of their objectives; no two are the same. A row holds, for each new bin, the value nearest to the factual's
    own that the space allows; ``trace`` names the bins and the points gained.

    OPTIMAL is proven of the set as a whole: each answer's objective is its own share, without the reward of diversity,
    and its bound is less than that by the gap of the set. In a hierarchy the objective is that of the last level,
    proven among what keeps to the caps of those before it.
    Where there is no counterfactual, ``conflict`` names an irreducible set of requirements that rules all of them out.

    Parameters
    ----------
    objectives
        Weight > 0 of each objective: ``proximity``, ``closeness``, ``outcome`` (distance of the probability, or number,
        from ``wish``), ``changes`` (their number); and, maximised, the pairwise differences of several counterfactuals:
        ``diversity_features`` and ``diversity_values`` (section 2.3.2).
    priorities
        By objective, the greater first; those of equal priority are one weighted sum. None: all are.
    degradation
        r >= 0: after a level q of the hierarchy, :math:`f_q \le f_q^* + r|f_q^*|` (section 2.4).
    weights
        :math:`r_j`: inverse ``range`` or ``mad`` of the feature over the training rows, or that of ``optbinning``: the
        range of the feature's contributions to the score.
    max_changes
        K; None for no bound.
    diversity
        How each two of several counterfactuals have to differ: ``features``, by (10) and (11), and ``values``, by
        (12).
    wish
        y' of ``outcome``: for a probability, that of the target's class.
    special
        Whether bins of special codes and unknown categories are targets. A code is one where the model has a bin for it
        and the space takes it for an ordinary number. A space has no missing values.
    margin
        :math:`\delta` > 0, where the target does not include its end. Up to 1e-6 there is none: the model decides what
        lies within the rounding of an end. More than that limits the points, and the claim says so.
    engine
        ``search`` (``methods/scorecard/search.py``), exact for every objective: through all moves for few changes,
        and where the outcome or a level of a hierarchy counts, and by linear programs elsewhere
        (``methods/scorecard/branch.py``); or ``milp``, the mixed-integer program, where P of ``outcome`` is piecewise
        linear, its error bounded by ``error``. Relations between features are kept by the program: each moved feature
        takes the nearest value in its bin that they allow, and others change within their bin, or to one of the same
        weight of evidence, where a relation asks for it: such a change counts as one, but not as diversity.
    error
        > 0: greatest error of a probability in the program.

    References
    ----------
    .. [1] Navas-Palencia, G. (2021). Optimal counterfactual explanations for scorecard modelling. arXiv:2104.08619.
    """

    deterministic: ClassVar[bool] = True

    objectives: Mapping[str, float] | None = None
    priorities: Mapping[str, int] | None = None
    degradation: float = 0.1
    weights: str = "range"
    max_changes: int | None = 3
    diversity: tuple[str, ...] | list[str] = ("features",)
    wish: float | None = None
    special: bool = False
    margin: float = MARGIN
    engine: str = "search"
    error: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "objectives", dict(self.objectives or {"proximity": 1.0, "closeness": 1.0}))
        check_choices(self, ALLOWED)
        for name, weight in self.weighed.items():
            if name not in OBJECTIVES:
                raise ValueError(f"there is no objective {name!r}; {choices(name, OBJECTIVES)}.")
            check_weight(f"the weight of {name}", weight)
            if not weight:
                raise ValueError(f"the weight of {name} is 0; it must be > 0, or leave the objective out.")
        if self.priorities is not None and set(self.priorities) != set(self.weighed):
            raise ValueError(
                f"priorities name {sorted(self.priorities)}, objectives {sorted(self.weighed)}; name the same."
            )
        if unknown := set(self.diversity) - {"features", "values"}:
            raise ValueError(f"diversity names {sorted(unknown)}; allowed: features, values.")
        if self.max_changes is not None and self.max_changes < 1:
            raise ValueError(f"max_changes is {self.max_changes}; it must be >= 1, or null for no bound.")
        if ("outcome" in self.weighed) != (self.wish is not None):
            raise ValueError(
                f"wish is {self.wish}, objectives are {sorted(self.weighed)}; 'outcome' needs a wish, all others none."
            )
        check_above(self, 0, "margin", "error")
        check_least(self, 0, "degradation")

    @property
    def weighed(self) -> dict[str, float]:
        """Weights by objective."""
        return dict(self.objectives or {})

    @property
    def levels(self) -> list[dict[str, float]]:
        """Weights by objective, one level of the hierarchy after another."""
        if self.priorities is None:
            return [self.weighed]
        order = sorted(set(self.priorities.values()), reverse=True)
        return [{o: w for o, w in self.weighed.items() if self.priorities[o] == rank} for rank in order]

    def refuses(self, problem: Problem) -> str | None:
        """Models other than scorecards, and outcomes of which the target is none."""
        card = card_of(problem.classifier)
        if card is None:
            name = type(problem.classifier.estimator).__name__
            return f"a scorecard's bins are needed, which {name} has not; use model=scorecard, or a file with one."
        try:
            raw_interval(problem)
        except UnsupportedError as fault:
            return str(fault)
        if self.special and not opened(card, problem.space):
            return (
                "special=true, but no special code is open to counterfactuals; for a feature's codes, set "
                "features.NAME.special=[] and name them in model.estimator.special_codes, or set method.special=false."
            )
        if self.wish is not None and card.binary and not 0 <= self.wish <= 1:
            return f"wish is {self.wish}, which is no probability; give a number from 0 to 1."
        return None

    def forms(self, n: int) -> list[Form]:
        """The levels of the hierarchy as sums over n counterfactuals and their pairs.

        Two sets of a and b elements, c of them common, differ in a + b - 2c: in a sum over all pairs each change counts
        n - 1 times, and each common element is taken off twice.
        """
        forms = []
        for level in self.levels:
            features, options = level.get("diversity_features", 0.0), level.get("diversity_values", 0.0)
            weights = np.array([level.get(part, 0.0) for part in PARTS])
            weights[kernels.CHANGES] -= (n - 1) * (features + options)
            forms.append(Form(weights, 2.0 * features, 2.0 * options, level.get("changes", 0.0)))
        return forms

    def objective(self, problem: Problem) -> Objective:
        """That of the last level, of each counterfactual alone; the earlier levels cap theirs, as ``domain`` says."""
        setup = _Setup(self, problem)
        table = {"table": table_of(setup.finder.card, problem.space)}
        params: dict[str, dict[str, Any]] = {
            "woe_l1": table | {"unit": setup.unit},
            "woe_mahalanobis": table | {"factor": setup.factor, "mean": setup.mean},
            "woe_outcome": table | {
                "coefficients": setup.coefficients, "intercept": float(setup.finder.card.intercept),
                "logistic": setup.rules.link == kernels.LOGISTIC, "target": setup.rules.target,
            },
            "l0": {},
        }  # fmt: skip
        names = dict(zip(PARTS, params, strict=True))
        last = self.levels[-1]
        terms = tuple(Term(names[part], last[part], params[names[part]]) for part in PARTS if part in last)
        limits = () if self.max_changes is None else (Limit(Term("l0"), self.max_changes),)
        return Objective(terms, limits=limits, domain=self.domain(problem))

    def keeps_away(self, problem: Problem) -> bool:
        """Whether scores keep ``margin`` from an end that the target does not include."""
        return self.margin > MARGIN and raw_interval(problem).strict

    def domain(self, problem: Problem) -> dict[str, Any]:
        """What a proof is relative to: codes left out, the margin, and what earlier levels of a hierarchy cap."""
        card, found = card_of(problem.classifier), dict[str, Any]()
        if not self.special and card is not None and opened(card, problem.space):
            found["special"] = False
        if self.margin > MARGIN:  # of whichever class is wanted: one claim serves all questions
            found["margin"] = self.margin
        if len(self.levels) > 1:
            found |= {"levels": tuple(self.levels[:-1]), "degradation": self.degradation, "weights": self.weights}
            found |= {"wish": self.wish} if "outcome" in self.weighed else {}
        return found

    def fit(self, problem: Problem) -> _Explainer:
        """Read the card, and compile."""
        explainer = _Explainer(self, problem)
        explainer.compile()
        return explainer


class _Setup:
    """A problem as the engines take it: its card, the requirements, and the units of proximity and closeness."""

    def __init__(self, method: Scorecard, problem: Problem) -> None:
        card = card_of(problem.classifier)
        assert card is not None
        self.method, self.problem, self.finder = method, problem, MoveFinder(card, problem, method.special)
        self.rules = _rules(method, problem)
        values = card.values(card.bins(problem.train))
        self.coefficients, self.mean = card.coefficients, values.mean(axis=0)
        self.factor = closeness_factor(values)
        own = method.weights == "optbinning"
        self.unit = optbinning_spread(card) if own else spread(values, method.weights)

    def replaced(self, method: Scorecard, problem: Problem) -> _Setup:
        """The same card and units, with other requirements."""
        other = copy(self)
        other.method, other.problem, other.rules = method, problem, _rules(method, problem)
        other.finder = MoveFinder(self.finder.card, problem, method.special, self.finder.frequency)
        return other

    def engine(self, origin: Mapping[str, Any], moves: Moves, rules: Rules) -> Search | ScorecardProgram:
        """The engine of one factual."""
        gain = self.coefficients[moves.owner] * moves.delta
        near = np.abs(moves.delta) / self.unit[moves.owner]
        names, targets = self.finder.card.names, moves.targets

        @cache
        def accepts(options: tuple[int, ...]) -> bool:
            row = {**origin, **{names[moves.owner[option]]: targets[option] for option in options}}
            return bool(self.valid([row])[0])

        rules = replace(rules, accepts=accepts)
        data = moves, rules, gain, near, self.factor, self.factor.T @ (moves.current - self.mean)
        if self.finder.space.relations:
            return ScorecardProgram(
                *data, self.method.error, lambda program: RelatedValues(program, self.finder, moves, origin)
            )
        return Search(*data) if self.method.engine == "search" else ScorecardProgram(*data, self.method.error)

    def valid(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Whether the model predicts the target, bool, shape (rows,); for a class without building a frame."""
        classifier, target = self.problem.classifier, self.problem.target
        if not isinstance(target, Label) or classifier.wrapped is not None:
            return self.problem.valid(self.problem.space.frame(rows))
        matrix = np.concatenate([classifier.vector(row) for row in rows])
        return np.asarray(classifier.decide(matrix) == classifier.code(target.value))


def _rules(method: Scorecard, problem: Problem) -> Rules:
    """The requirements. A score within the rounding of an end is for the model itself to decide."""
    ends, target, classifier = raw_interval(problem), problem.target, problem.classifier
    card = card_of(classifier)
    assert card is not None
    link, outcome = kernels.NO_OUTCOME, 0.0
    if method.wish is not None:
        link, outcome = (kernels.LINEAR if isinstance(target, Interval) else kernels.LOGISTIC), method.wish
        label = target.value if isinstance(target, Label) else target.label if isinstance(target, Probability) else None
        if label is not None and classifier.code(label) == 0:
            outcome = 1.0 - outcome
    most = len(problem.space.features) if method.max_changes is None else method.max_changes
    separated = "features" in method.diversity, "values" in method.diversity
    terms = abs(card.intercept) + sum(float(np.abs(v.contributions).max()) for v in card.variables)
    room = max(SCORE_TIE * (1.0 + terms), ends.rounding)
    for end in (ends.low, ends.high) if classifier.classes else ():
        if math.isfinite(end):  # near 0 and 1 a probability's own rounding is worth more
            room = max(room, LINK * DOUBLE / max(float(expit(end) * expit(-end)), DOUBLE))
    low = ends.low + (method.margin if method.keeps_away(problem) else 0.0) - room
    return Rules(low, ends.high + room, most, *separated, link, outcome, room)


class _Explainer:
    def __init__(self, method: Scorecard, problem: Problem) -> None:
        self.method, self.problem, self.setup = method, problem, _Setup(method, problem)

    def compile(self) -> None:
        """Have numba compile what is needed, before any clock runs."""
        small = replace(self.method, max_changes=1, diversity=())
        setup = self.setup.replaced(small, lifted(self.problem, frozenset(self.problem.space.constraints)))
        for number in range(min(COMPILED, len(self.problem.train))):
            origin = values_of(self.problem.train.iloc[[number]])
            moves = setup.finder.moves(origin)
            engine = setup.engine(origin, moves, setup.rules)
            if number == 0 and isinstance(engine, Search):
                engine.branching.compile()
            if self._best(setup, origin, moves, 2, Deadline.after(COMPILING)).choices:
                break

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """The cheapest set of n; where there is none so large, the cheapest smaller one, and a proof of that."""
        deadline = deadline.sooner(RESERVE)
        origin = values_of(factual)
        moves = self.setup.finder.moves(origin)
        none, late = True, False  # proven of all larger sets that were asked for; whether the clock ended a search
        for count in range(n, 0, -1):
            if count > 1 and deadline.passed:  # what is left is one, which takes the least
                none = False
                continue
            until = deadline if count == 1 else Deadline.after(TRIED * deadline.left)
            found = self._best(self.setup, origin, moves, count, until)
            if found.choices:
                break
            none &= found.proven
            late |= not found.proven and until.passed
        if self._counts and self.setup.finder.beside(origin, moves):  # a move that is no change by the claim
            found, none = replace(found, bound=-math.inf), False
        conflict: tuple[str, ...] | None = ()
        if len(found.choices) == n:
            filler = Answer(Status.GAVE_UP)
        elif none:
            conflict = self._conflict(origin, len(found.choices) + 1, deadline)
            filler = Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=_nothing(len(found.choices), conflict))
        else:
            further, late = "no further one" if found.choices else "nothing", late or deadline.passed
            detail = f"{further} was found{' within the time limit' if late else ''}"
            filler = Answer(Status.GAVE_UP, None, Reason.TIME_LIMIT if late else Reason.FINISHED, detail=detail)
        answers, trace = self._answers(origin, moves, found, until.passed)
        return Explanation(tuple(answers), conflict or (), tuple(trace)).padded(n, filler)

    @property
    def _counts(self) -> bool:
        """Whether the number of changes matters."""
        weighed = any(form.weights[kernels.CHANGES] for form in self.method.forms(1))
        return weighed or self.method.max_changes is not None

    def _best(self, setup: _Setup, origin: Mapping[str, Any], moves: Moves, n: int, deadline: Deadline) -> Sets:
        """The best set by one level of the hierarchy after another."""
        forms = setup.method.forms(n)
        engine = setup.engine(origin, moves, setup.rules)
        found, caps = Sets((), np.empty((0, 4)), math.inf, -math.inf, False), [math.inf] * len(forms)
        exact = True  # whether the optima of the levels before are known, and not but for an error of the program
        for level in range(len(forms)):
            order, before = [level, *range(level)], found
            found = engine.best(n, [forms[q] for q in order], np.array([caps[q] for q in order]), deadline)
            if level and not found.choices:  # those of the level before are left, and keep to all caps
                found = replace(before, bound=-math.inf, proven=False)
            if level and not exact:
                found = replace(found, bound=-math.inf)
            if not found.choices or not found.proven:
                return found if level == len(forms) - 1 else replace(found, bound=-math.inf)  # of another objective
            near = max(1.0, abs(found.cost))
            exact &= found.cost - found.bound <= OPTIMALITY_GAP * near
            caps[level] = found.cost + setup.method.degradation * abs(found.cost) + COST_TIE * near
        return found

    def _answers(
        self, origin: dict[str, Any], moves: Moves, found: Sets, late: bool
    ) -> tuple[list[Answer], list[dict[str, Any]]]:
        """The answers, and for each changed feature its value, the required bin and the points gained.

        ``late``: whether the clock ended the search.
        """
        answers: list[Answer] = []
        trace: list[dict[str, Any]] = []
        if not found.choices:
            return answers, trace
        form = self.method.forms(1)[-1]
        shares = found.parts @ form.weights + form.slides * np.array(found.slid or [0] * len(found.choices))
        gap = found.cost - found.bound
        rows = []
        others = found.values or ({},) * len(found.choices)
        for picks, values in zip(found.choices, others, strict=True):
            row = dict(origin)
            for option in picks[picks >= 0]:
                row[self.setup.finder.card.variables[moves.owner[option]].name] = moves.targets[option]
            rows.append(row | values)
        valid = self.setup.valid(rows)
        for rank in np.argsort(shares, kind="stable"):
            if not valid[rank]:
                unsound = "the model does not predict the target, although the card's score reaches it"
                answers.append(Answer(Status.GAVE_UP, detail=unsound))
                continue
            share = float(shares[rank])
            status = Status.OPTIMAL if found.proven and gap <= OPTIMALITY_GAP * max(1.0, abs(share)) else Status.FOUND
            searched = Reason.TIME_LIMIT if late and not found.proven else Reason.FINISHED
            reason = Reason.PROOF if status is Status.OPTIMAL else searched
            picks = found.choices[rank]
            changes = self._changes(origin, moves, picks[picks >= 0], rows[rank])
            detail = "; ".join(f"{c['feature']} {c['current']} → {c['required']}" for c in changes)
            bound = share - gap if math.isfinite(gap) else None
            answers.append(Answer(status, rows[rank], reason, share, bound, detail=detail))
            trace += [{"ce": len(answers), **change} for change in changes]
        return answers, trace

    def _changes(
        self, origin: dict[str, Any], moves: Moves, picks: np.ndarray, row: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Of each moved feature the new bin; of those that change for a relation alone the new value, for no points."""
        changes = []
        for option in sorted(picks):
            variable = self.setup.finder.card.variables[moves.owner[option]]
            own, place = variable.bin_of(origin[variable.name]), int(moves.place[option])
            gained = float(variable.points[place] - variable.points[own])
            required = str(variable.bins[place])
            changes.append(
                {"feature": variable.name, "current": origin[variable.name], "required": required, "points": gained}
            )
        moved = {change["feature"] for change in changes}
        for name, value in row.items():
            if name not in moved and not same(value, origin[name]):
                changes.append({"feature": name, "current": origin[name], "required": str(value), "points": 0.0})
        return changes

    def _conflict(self, origin: dict[str, Any], n: int, deadline: Deadline) -> tuple[str, ...] | None:
        """Requirements that leave no n counterfactuals, as few as time allows.

        None where there are none either with all requirements lifted.
        """
        method = self.method
        most = f"max_changes={method.max_changes}"
        own = [] if method.max_changes is None else [most]
        own += [f"diversity of {name}" for name in method.diversity] if n > 1 else []

        def infeasible(without: frozenset[str], until: Deadline) -> bool | None:
            free = replace(
                method,
                max_changes=None if most in without else method.max_changes,
                diversity=tuple(name for name in method.diversity if f"diversity of {name}" not in without),
                objectives={"proximity": 1.0}, priorities=None, wish=None,
            )  # fmt: skip
            setup = self.setup.replaced(free, lifted(self.problem, without))
            moves = setup.finder.moves(origin)
            found = setup.engine(origin, moves, setup.rules).best(
                n, free.forms(n), np.full(1, math.inf), until, first=True
            )
            return None if not found.choices and not found.proven else not found.choices

        groups = [*groups_of(self.problem), *own, *self.problem.space.constraints]
        conflict = irreducible(groups, infeasible, deadline)
        return None if not conflict and infeasible(frozenset(groups), deadline) else conflict


def _nothing(have: int, conflict: tuple[str, ...] | None) -> str:
    stated = f"there are no {have + 1} such counterfactuals" if have else "there is no counterfactual"
    if conflict is None:
        return f"{stated}: too few of this scorecard's bins reach the target, whatever else is asked"
    return f"{stated}; these cannot hold together: {conflict_text(conflict)}" if conflict else stated
