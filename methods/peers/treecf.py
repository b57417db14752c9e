"""The ``treecf`` library on tree ensembles: its exact branch and bound over their cells, and its genetic search."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.errors import check_choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.inputs import Affine, Input
from harness.core.method import Deadline
from harness.core.objective import Objective, Term, check_weight
from harness.core.problem import Problem
from harness.core.relations import refusal
from harness.core.space import Actionability, Feature, Kind, values_of
from harness.core.target import Label
from harness.core.tolerances import CLAIM
from methods.estimators.fast_predict import fast_decide
from methods.estimators.thresholds import last_decoded
from methods.wrapping import Defaults, missing, stated

if TYPE_CHECKING:
    import treecf
    from treecf.constraints.objects import Constraint
    from treecf.ir.model import EnsembleIR, Node


MODELS = (DecisionTreeClassifier, RandomForestClassifier, GradientBoostingClassifier)
WARM = 1.25, 2.0  # its genetic start takes a quarter of the time it is given, at most two seconds, on top
BACKENDS = ("exact", "genetic")


def _library() -> ModuleType:
    """treecf, with its trees and its parsers of models."""
    import treecf.ir.parsers  # optional

    return treecf


@dataclass(frozen=True)
class TreeCf:
    r"""Closest point :math:`\min_x \|x - \hat x\|_1 + \alpha \|x - \hat x\|_0` of the wanted class, by treecf [1]_.

    Its constraints: the sum of leaf values lies above the raw threshold for class 1, at or below it for class 0 (of
    gradient boosting at or above it, and below), and each feature keeps to what it may become.

    The library searches; this class translates, of fewer models than the library reads itself (histogram boosting,
    XGBoost, LightGBM and CatBoost too). Its parser reads the fitted estimator (a single tree as a forest of
    one), whose splits are then restated on the features themselves: a number in its own units, an ordinal feature by
    rank, any other by the sets of categories on either side. Distance is counted in ranges of the feature, in steps of
    1 / (levels - 1), or 1 for another category, so that the library's objective is the one claimed here.

    OPTIMAL is what the exact backend states (its proof, no gap allowed) where its cost of the point is ours within
    1e-6. From below it steps over a threshold to the next float32 number, so that its optimum, which becomes the bound,
    may be too high by 2e-7 of each changed number over the feature's range. A score within rounding of the threshold is
    judged by the library's sum of leaf values; a point for which the estimator itself does not predict the target is
    returned as FOUND, without a proof. The genetic backend proves nothing: what it finds within its generations, or the
    time limit, is FOUND. There is one counterfactual a factual.

    Parameters
    ----------
    alpha
        Weight :math:`\alpha \ge 0` of the number of changed features.
    backend
        ``exact`` or ``genetic``.
    node_budget
        Most nodes of the exact backend; None: the library's own number, 2,000,000.

    References
    ----------
    .. [1] Wlazlo, D. treecf 0.3.2. https://github.com/wlazlod/treecf
    """

    gives: ClassVar[str] = "one"
    library_defaults: ClassVar[Defaults] = stated(
        "treecf.api:Explainer.explain", alpha=(0.0, "sparsity_weight"), node_budget=None
    )

    alpha: float = 0.0
    backend: str = "exact"
    node_budget: int | None = None

    def __post_init__(self) -> None:
        check_choices(self, {"backend": BACKENDS})
        check_weight("alpha", self.alpha)
        if self.node_budget is not None and (self.backend != "exact" or self.node_budget < 1):
            raise ValueError(f"node_budget is {self.node_budget}; at least 1, or null, and null but for exact.")

    def refuses(self, problem: Problem) -> str | None:
        """A missing library, other targets and models, and inputs that do not keep the order of their feature."""
        if why := missing("treecf", "treecf"):
            return why
        classifier = problem.classifier
        if why := refusal(problem.space.relations, "treecf"):
            return why
        if not isinstance(problem.target, Label):
            return "treecf is run for one wanted class only; set 'desired' to a class."
        if classifier.opaque:
            return classifier.opaque
        if type(classifier.estimator) not in MODELS or not classifier.binary:  # subclasses vote otherwise
            name, known = type(classifier.estimator).__name__, ", ".join(model.__name__ for model in MODELS)
            return f"treecf is wrapped for trees with two classes ({known}), not {name}; choose such a model."
        for source in classifier.inputs:
            feature = problem.space[source.feature]
            if feature.numeric and not (isinstance(source, Affine) and source.unit > 0):
                return f"treecf needs the number {feature.name} itself, not a {type(source).__name__} of it."
            if feature.kind is Kind.ORDINAL and (np.diff(_levels(source, feature)) < 0).any():
                return f"treecf needs the ordinal feature {feature.name} in its order, which the model does not keep."
        return None

    def objective(self, problem: Problem) -> Objective:
        terms = [Term("l1")]
        if self.alpha:
            terms.append(Term("l0", self.alpha))
        return Objective(tuple(terms), costed=False)

    def fit(self, problem: Problem) -> _Explainer:
        """Restate the model, and hand it to the library before any clock runs."""
        explainer = _Explainer(self, problem)
        explainer.explain(problem.train.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(1.0))
        return explainer


class _Explainer:
    """The library's explainers of one problem: one for each set of constraints that a factual brings along."""

    def __init__(self, method: TreeCf, problem: Problem) -> None:
        assert isinstance(problem.target, Label)
        self.method, self.problem = method, problem
        self.claim = method.objective(problem)
        self.wanted = problem.classifier.code(problem.target.value)
        self.decide = fast_decide(problem.classifier)
        self.axes = [_Axis(feature) for feature in problem.space.features]
        self.model = _restated(problem.classifier, self.axes)
        self.built: dict[tuple[Constraint, ...], treecf.Explainer] = {}

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        answer = self._first(factual, int(rng.integers(2**32)), deadline)
        further = Answer(Status.GAVE_UP, detail="treecf gives one counterfactual.")
        return Explanation((answer,)).padded(n, further if answer.row is not None else answer)

    def _first(self, factual: pd.DataFrame, seed: int, deadline: Deadline) -> Answer:
        library = _library()
        origin = values_of(factual)
        frozen = [axis.name for axis in self.axes if axis.broken(origin[axis.name])]
        if deadline.passed:
            return Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT, detail="no time was left to search in")
        exact, left = self.method.backend == "exact", deadline.sooner().left
        with warnings.catch_warnings(action="ignore", category=library.TreecfWarning):  # that time ran out
            found = self._explainer(origin).explain(
                np.array([axis.place(origin[axis.name]) for axis in self.axes]),
                self._target(),
                backend=self.method.backend,
                time_budget_s=max(left / WARM[0], left - WARM[1]) if exact else left,
                sparsity_weight=self.method.alpha,
                seed=seed,
                node_budget=self.method.node_budget,
            )
        if isinstance(found, library.Counterfactual):
            answer = self._answer(factual, origin, found, self._ended(deadline))
            return _unproven(answer, frozen) if frozen and answer.status is Status.OPTIMAL else answer
        if frozen:
            return Answer(Status.GAVE_UP, reason=self._ended(deadline), detail=_still(frozen))
        if isinstance(found, library.Infeasible) and found.proof == "certified":
            return Answer(Status.INFEASIBLE, reason=Reason.PROOF, detail="treecf has proven that no point is wanted")
        return Answer(Status.GAVE_UP, reason=self._ended(deadline), detail="treecf found nothing within its limits")

    def _ended(self, deadline: Deadline) -> Reason:
        """Why a search without a proof ended: the genetic one may end before the time limit."""
        return Reason.TIME_LIMIT if self.method.backend == "exact" or deadline.passed else Reason.FINISHED

    def _answer(
        self, factual: pd.DataFrame, origin: Mapping[str, Any], found: treecf.Counterfactual, ended: Reason
    ) -> Answer:
        places = zip(self.axes, found.x_cf, strict=True)
        row = {axis.name: axis.value(float(place)) for axis, place in places}
        if row == origin:
            return Answer(Status.GAVE_UP, detail="treecf handed the factual back")
        space = self.problem.space
        value = float(self.claim.evaluate(space, factual, space.frame([row]))[0])
        cost = found.distance + self.method.alpha * found.n_changed
        if found.proof != "optimal":
            return Answer(Status.FOUND, row, ended, value)
        if self.decide(self.problem.classifier.vector(row))[0] != self.wanted:
            tie = "the model's score of treecf's point ties with the threshold"
            return Answer(Status.FOUND, row, objective=value, detail=tie)
        if abs(cost - value) > CLAIM:
            other = f"treecf's cost of the point is {cost}, which is not its objective"
            return Answer(Status.FOUND, row, objective=value, detail=other)
        return Answer(Status.OPTIMAL, row, Reason.PROOF, value, value)

    def _explainer(self, origin: Mapping[str, Any]) -> treecf.Explainer:
        constraints = tuple(rule for axis in self.axes for rule in axis.constraints(origin[axis.name]))
        if constraints not in self.built:
            self.built[constraints] = _library().Explainer(
                self.model,
                constraints=constraints,
                normalizers={axis.name: axis.unit for axis in self.axes},
                value_policy={axis.name: "integer" for axis in self.axes if axis.integral},
            )
        return self.built[constraints]

    def _target(self) -> treecf.Target:
        """The scores of the wanted class; at the threshold gradient boosting says 1, other models 0."""
        classifier, target = self.problem.classifier, _library().Target
        threshold = classifier.raw_threshold
        above, below = (float(np.nextafter(threshold, end)) for end in (math.inf, -math.inf))
        closed = classifier.threshold is None and isinstance(classifier.estimator, GradientBoostingClassifier)
        if self.wanted == 1:
            return target.raw(op=">=", value=threshold if closed else above)
        return target.raw(op="<=", value=below if closed else threshold)


def _still(frozen: Sequence[str]) -> str:
    return f"treecf takes ranges only, and the values permitted of {', '.join(frozen)} are none: kept as they are"


def _unproven(answer: Answer, frozen: Sequence[str]) -> Answer:
    """The least change while some features stay, of which another may be better."""
    return replace(answer, status=Status.FOUND, reason=Reason.FINISHED, bound=None, detail=_still(frozen))


class _Axis:
    """A feature as the library has it: a number in its own units, the rank of a level, or the code of a category."""

    def __init__(self, feature: Feature) -> None:
        self.feature, self.name = feature, feature.name
        self.integral = feature.kind in {Kind.INTEGER, Kind.ORDINAL}
        self.coded = feature.kind in {Kind.BINARY, Kind.CATEGORICAL}
        self.unit = feature.range if feature.numeric else 1.0
        if feature.kind is Kind.ORDINAL:
            self.unit = float(feature.steps)

    def place(self, value: Any) -> float:
        """The library's number for a decoded value."""
        return float(value) if self.feature.numeric else float(self.feature.categories.index(value))

    def value(self, place: float) -> Any:
        """The decoded value of a library's number."""
        if not self.feature.numeric:
            return self.feature.categories[int(place)]
        return int(place) if self.integral else place

    def split(self, node: Node, source: Input) -> Node:
        """A split on an input of the estimator as one on the feature: the same rows to the left."""
        assert node.threshold is not None
        if isinstance(source, Affine) and self.feature.numeric:
            last = last_decoded(self.feature, source, node.threshold)
            return replace(node, threshold=last + 0.5 if self.integral else last)
        left = np.flatnonzero(_levels(source, self.feature) <= node.threshold)
        if self.coded:  # a fitted split has rows on both sides, so that the set is not empty
            return replace(node, threshold=None, op=None, categories=frozenset(left.tolist()))
        return replace(node, threshold=len(left) - 0.5)

    def reach(self, value: Any) -> tuple[float, ...]:
        """Ends of the range, or the codes, that the feature may take from a factual's value."""
        if self.feature.numeric:
            return self.feature.interval(float(value))
        return tuple(sorted(self.place(category) for category in self.feature.reachable(value)))

    def broken(self, value: Any) -> bool:
        """Whether the permitted places with the factual's own are no range, as after a special code."""
        reach = self.reach(value)
        if self.feature.numeric:
            return reach[0] <= reach[1] and not reach[0] <= value <= reach[1]
        return not self.coded and len(reach) <= reach[-1] - reach[0]

    def constraints(self, value: Any) -> Iterator[Constraint]:
        """The library's constraints for a factual's value, the same for as many values as possible."""
        library, reach = _library(), self.reach(value)
        if reach[0] >= reach[-1] or self.broken(value):
            yield library.Freeze(self.name)
        elif self.coded:
            if len(reach) < len(self.feature.categories):
                yield library.AllowedCategories(self.name, tuple(int(code) for code in reach))
        else:
            low, high = reach[0], reach[-1]
            if self.feature.actionability is Actionability.INCREASE:
                yield library.Monotone(self.name, "increase")
                low = -math.inf
            if self.feature.actionability is Actionability.DECREASE:
                yield library.Monotone(self.name, "decrease")
                high = math.inf
            yield library.Range(self.name, low, high)


def _restated(classifier: Classifier, axes: Sequence[_Axis]) -> EnsembleIR:
    """The library's reading of the estimator, with every split moved from the estimator's input to its feature."""
    ir, estimator = _library().ir, classifier.estimator
    if isinstance(estimator, DecisionTreeClassifier):
        forest = RandomForestClassifier(1)
        forest.estimators_, forest.n_classes_, forest.n_features_in_ = [estimator], 2, estimator.n_features_in_
        estimator = forest
    parsed = ir.parsers.parse_model(estimator)
    number = {axis.name: position for position, axis in enumerate(axes)}

    def moved(node: Node) -> Node:
        if node.feature is None:
            return node
        source = classifier.inputs[node.feature]
        place = number[source.feature]
        return replace(axes[place].split(node, source), feature=place)

    sizes = {place: len(axis.feature.categories) for place, axis in enumerate(axes) if axis.coded}
    codes = {place: ir.model.CategoricalFeature(size) for place, size in sizes.items()}
    trees = tuple(ir.model.Tree(tuple(moved(node) for node in tree.nodes)) for tree in parsed.trees)
    return replace(parsed, trees=trees, n_features=len(axes), feature_names=tuple(number), categorical=codes)


def _levels(source: Input, feature: Feature) -> np.ndarray:
    """The estimator's input for each category, as its trees see it."""
    return np.array([source.of(category) for category in feature.categories], dtype=np.float32)
