"""Classifiers made of others, read as one that exact methods know: its own rule says what all of them together say.

Searches and frozen models are what they hold, and a threshold set afterwards is a threshold. A monotone calibration of
one model moves that model's threshold. Averages and votes of trees are sums of trees, each behind a pipeline of its own
or not.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.tolerances import COMPOSITE_TIE
from harness.models.grown import NODE, boosting_of, grown
from harness.models.one_tree import THRESHOLDS, calibrated_of, inner_of, one_tree

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
MADE_OF_OTHERS = (
    AdaBoostClassifier, BaggingClassifier, CalibratedClassifierCV, OneVsRestClassifier, StackingClassifier,
    VotingClassifier,
)  # fmt: skip
PROBABILITY, DECISION = "predict_proba", "decision_function"


Walk = Callable[[Any, Any], tuple[Any, Any]]  # an estimator and its columns; the last step, and the columns before it


class Rule(NamedTuple):
    """Class 1 iff a model's score is above a cut; where ``at``, at the cut, too.

    Parameters
    ----------
    model, flow
        The model, past pipelines, searches, thresholds and calibrations, and the columns that it is given.
    kind
        The score: what its method of this name gives for class 1.
    own
        Whether that is ``Classifier.score`` of the whole, too.
    """

    model: Any
    flow: Any
    kind: str
    cut: float
    at: bool = False
    own: bool = True


class Read(NamedTuple):
    """An estimator in whose raw output a composite's rule can be said.

    Parameters
    ----------
    columns
        Those that the estimator takes.
    cut
        As of ``Classifier``: None where its scores are those of the composite.
    """

    estimator: Any
    columns: tuple[Any, ...]
    cut: float | None


class Part(NamedTuple):
    """Where in a sum a member is: the columns it is given, and what its score is multiplied with.

    Parameters
    ----------
    kind
        Which score is added.
    coded
        Whether the member knows classes by their places among those of the whole, and may not know all of them.
    output
        The output that is added to, of a member with two classes in a sum of several; None: its own outputs.
    """

    flow: Any
    weight: float
    kind: str
    coded: bool = False
    output: int | None = None


@dataclass
class Sum:
    """Constants and trees over columns laid side by side.

    Parameters
    ----------
    outputs
        1 for two classes, else the number of classes.
    columns
        Each column that a tree is given, and its place, by its identity.
    """

    walk: Walk
    outputs: int = 1
    constant: np.ndarray = field(init=False)
    trees: list[tuple[np.ndarray, np.ndarray, int]] = field(default_factory=list)  # nodes, values by output, depth
    columns: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.constant = np.zeros(self.outputs)

    def classes(self, part: Part) -> int:
        """How many classes a member has."""
        return max(self.outputs, 2) if part.output is None else 2

    def spread(self, values: np.ndarray, part: Part) -> np.ndarray:
        """Values of a member's own outputs, shape (rows, outputs of its own), as those of the whole."""
        if part.output is None:
            return part.weight * values
        return part.weight * values * np.eye(self.outputs)[part.output]

    def add(self, tree: DecisionTreeClassifier | DecisionTreeRegressor, values: np.ndarray, part: Part) -> None:
        """One tree that adds ``values`` at its nodes, shape (nodes, outputs of its own)."""
        state = tree.tree_.__getstate__()
        nodes = state["nodes"].copy()
        places = [self.columns.setdefault(id(each), (len(self.columns), each))[0] for each in part.flow.columns]
        inner = nodes["feature"] >= 0
        nodes["feature"][inner] = np.array(places)[nodes["feature"][inner]]
        self.trees.append((nodes, self.spread(values, part), state["max_depth"]))

    def boosting(self, at: bool = False) -> GradientBoostingClassifier:
        """The sum as boosting that starts at 0 with a learning rate of 1.

        Of two classes a sum of 0, up to rounding, is class 1 where ``at``, else class 0.
        """
        if not self.trees:
            raise UnsupportedError("a composite without members cannot be read")
        constant, leaves = self.constant, [nodes["left_child"] < 0 for nodes, _, _ in self.trees]
        if self.outputs == 1:
            sizes = (np.abs(values[own]).max() for (_, values, _), own in zip(self.trees, leaves, strict=True))
            constant = constant + (COMPOSITE_TIE if at else -COMPOSITE_TIE) * max(sum(sizes), np.abs(constant).max())
        return boosting_of(
            [self._stage(*tree, constant / len(self.trees)) for tree in self.trees], 1.0, len(self.columns)
        )

    def _stage(
        self, nodes: np.ndarray, values: np.ndarray, depth: int, constant: np.ndarray
    ) -> list[DecisionTreeRegressor]:
        """A tree for each output; of a single leaf where it adds the same at all of its nodes."""
        stage = []
        for column in (values + constant).T:
            same = (column == column[0]).all()
            kept = _leaf() if same else nodes.copy()
            own = column[: len(kept), None]
            stage.append(grown(DecisionTreeRegressor(), kept, own, 0 if same else depth, len(self.columns)))
        return stage


def _leaf() -> np.ndarray:
    """The nodes of a tree that is a single leaf."""
    node = np.zeros(1, dtype=NODE)
    node["left_child"] = node["right_child"] = -1
    node["feature"] = node["threshold"] = -2
    node["n_node_samples"] = node["weighted_n_node_samples"] = 1
    return node


def chosen(model: Any) -> Any:
    """The model that a frozen one is, or that a search has chosen; else the model."""
    if isinstance(model, FrozenEstimator):  # which has all attributes of what it holds
        return model.estimator
    return getattr(model, "best_estimator_", model)


def _score(model: Any) -> str:
    """The kind of ``Classifier.score``."""
    return PROBABILITY if hasattr(model, PROBABILITY) else DECISION


def own_threshold(model: Any) -> float | None:
    """The score that class 1 has to exceed by a threshold that was set afterwards; None where none was.

    None, too, where the threshold is one of another score than ``Classifier.score``, or of the first class, and where
    all probabilities lie on one side of it.
    """
    while isinstance(model, Pipeline) or chosen(model) is not model:
        model = model.steps[-1][1] if isinstance(model, Pipeline) else chosen(model)
    if not isinstance(model, THRESHOLDS):
        return None
    rule = _by_threshold(model, None)
    cut = math.nextafter(rule.cut, -math.inf) if rule.at else rule.cut
    return cut if rule.own and (0 <= cut < 1 if rule.kind == PROBABILITY else math.isfinite(cut)) else None


def _by_threshold(model: Any, flow: Any) -> Rule:
    """The rule of a model with a threshold on the scores of what it holds."""
    inner = inner_of(model)
    kind = _score(inner) if model.response_method == "auto" else model.response_method
    tuned = isinstance(model, TunedThresholdClassifierCV)
    first = model._curve_scorer._get_pos_label() if tuned else model.pos_label
    value = model.best_threshold_ if tuned else model.threshold
    value = {PROBABILITY: 0.5, DECISION: 0.0}[kind] if value == "auto" else float(value)
    if first is None or first == model.classes_[1]:
        return Rule(inner, flow, kind, value, at=True, own=kind == _score(inner))
    # Class 0 has the score 1 - P, or the negative decision value, and is said at the threshold, too.
    return Rule(inner, flow, kind, 1.0 - value if kind == PROBABILITY else -value, own=False)


def read(model: Any, flow: Any, walk: Walk, threshold: float | None = None) -> Read:
    """What exact methods may read instead of a model.

    Parameters
    ----------
    flow, walk
        The columns that the model is given; what goes through a member's own pipeline.
    threshold
        That the score of class 1 has to exceed; the model's own rule where None.

    Raises
    ------
    UnsupportedError
        For a composite that is neither a calibration of one model nor a sum of trees.
    """
    model, flow = walk(model, flow)
    if threshold is not None:
        rule = Rule(model, flow, _score(model), threshold)
    elif isinstance(model, THRESHOLDS):
        rule = _by_threshold(model, flow)
    elif (inner := inner_of(model)) is not None:
        kind = DECISION if hasattr(inner, DECISION) else PROBABILITY
        rule = Rule(inner, flow, kind, {PROBABILITY: 0.5, DECISION: 0.0}[kind], own=False)
    elif (own := calibrated_of(model)) is not None and len(model.classes_) > 2 and hasattr(own.calibrators[0], "beta_"):
        found = read(own.estimator, flow, walk)  # a temperature leaves the greatest score the greatest
        return found._replace(cut=0.0)
    elif own is not None and len(model.classes_) == 2:
        rule = Rule(model, flow, PROBABILITY, 0.5)
    elif not isinstance(model, MADE_OF_OTHERS):
        return Read(model, tuple(flow.columns), None)
    else:
        return _summed(_own_rule(model, flow), walk)
    rule = _lowered(rule, walk)
    if isinstance(rule.model, MADE_OF_OTHERS):
        return _summed(rule, walk)
    return Read(rule.model, tuple(rule.flow.columns), None if rule.own else _raw_cut(rule))


def _lowered(rule: Rule, walk: Walk) -> Rule:
    """The rule on the scores of the model that a composite's scores are a monotone function of."""
    while True:
        model, flow = walk(rule.model, rule.flow)
        rule = rule._replace(model=model, flow=flow)
        if (inner := inner_of(model)) is not None:
            rule = rule._replace(model=inner)
        elif (own := calibrated_of(model)) is not None:
            rule = _uncalibrated(own, rule)
        else:
            return rule


def _uncalibrated(calibrated: Any, rule: Rule) -> Rule:
    """The rule on the scores of a model, from one on its calibrated probability.

    Raises
    ------
    UnsupportedError
        For a calibration that does not rise through the cut.
    """
    inner, calibrator, cut = calibrated.estimator, calibrated.calibrators[0], rule.cut
    kind = DECISION if hasattr(inner, DECISION) else PROBABILITY
    moved = None
    if isinstance(calibrator, IsotonicRegression):
        ends, values = calibrator.X_thresholds_, calibrator.y_thresholds_
        # The last end that is not above the cut; where ``at``, the last one that is below it.
        last = int(np.searchsorted(values, cut, side="left" if rule.at else "right")) - 1
        if calibrator.increasing_ and 0 <= last < len(values) - 1:
            share = (cut - values[last]) / (values[last + 1] - values[last])
            moved = float(ends[last] + share * (ends[last + 1] - ends[last]))
    elif 0 < cut < 1 and getattr(calibrator, "a_", 0.0) < 0:
        moved = float((logit(cut) + calibrator.b_) / -calibrator.a_)
    elif 0 < cut < 1 and getattr(calibrator, "beta_", 0.0) > 0:  # of logits -d and d, or of those of probabilities
        moved = float(logit(cut) / calibrator.beta_)
        moved = moved / 2.0 if kind == DECISION else float(expit(moved))
    if moved is None:
        raise UnsupportedError(f"the calibration of {type(inner).__name__} does not rise through {cut:g}")
    return rule._replace(model=inner, kind=kind, cut=moved, own=False)


def _raw_cut(rule: Rule) -> float:
    """The raw output of a model that is no composite, above which its rule says class 1."""
    model, cut = rule.model, rule.cut
    if not hasattr(model, rule.kind):
        raise UnsupportedError(f"{type(model).__name__} has no {rule.kind}")
    if rule.kind == PROBABILITY:
        cut = Classifier(model, (), (0, 1)).to_raw(math.nextafter(cut, -math.inf) if rule.at else cut)
        if not math.isfinite(cut):
            raise UnsupportedError(_one_sided(model, rule.cut))
    return cut + (-COMPOSITE_TIE if rule.at else COMPOSITE_TIE) * max(1.0, abs(cut))


def _log_odds(probability: float, model: Any) -> float:
    """The log odds of a probability that a model's probabilities may lie on both sides of."""
    if not 0 < probability < 1:
        raise UnsupportedError(_one_sided(model, probability))
    return float(logit(probability))


def _one_sided(model: Any, probability: float) -> str:
    return f"all probabilities of {type(model).__name__} lie on one side of {probability:g}"


def _own_rule(model: Any, flow: Any) -> Rule:
    """How a composite itself decides; of more than two classes, the score of which the greatest wins."""
    if isinstance(model, StackingClassifier):
        raise UnsupportedError("a model that learns from other models' answers is read by no exact method")
    hard = isinstance(model, VotingClassifier) and model.voting == "hard"
    several = isinstance(model, OneVsRestClassifier) and hasattr(model.estimators_[0], DECISION)
    if hard or several or isinstance(model, AdaBoostClassifier):
        return Rule(model, flow, DECISION, 0.0)
    return Rule(model, flow, PROBABILITY, 0.5)


def _summed(rule: Rule, walk: Walk) -> Read:
    """A composite as a sum of trees."""
    model, cut, count = rule.model, rule.cut, len(rule.model.classes_)
    total = Sum(walk, 1 if count == 2 else count)
    part = Part(rule.flow, 1.0, rule.kind)
    if isinstance(model, VotingClassifier) and model.voting == "hard":
        if rule.cut != 0.0 or not rule.own:
            raise UnsupportedError("hard votes have no score of which a threshold is read; leave the threshold out")
        _add_all_votes(total, model, model.estimators_, _weights(model), part)
    elif isinstance(model, AdaBoostClassifier):
        if rule.kind == PROBABILITY:
            cut, part = _log_odds(cut, model), part._replace(kind=DECISION)
        _add(total, model, part)
    elif isinstance(model, OneVsRestClassifier):
        for output, member in enumerate(model.estimators_):
            _add(total, member, part._replace(output=output))
    else:
        _add(total, model, part)
    if count == 2:
        total.constant = total.constant - cut
    estimator = total.boosting(rule.at)
    return Read(estimator, tuple(column for _, column in total.columns.values()), 0.0)


def _add(total: Sum, model: Any, part: Part) -> None:
    """Add a member's score, of the part's kind, as trees."""
    model, flow = total.walk(model, part.flow)
    part, count = part._replace(flow=flow), total.classes(part)
    known = (DecisionTreeClassifier, *FORESTS, BaggingClassifier, VotingClassifier, CalibratedClassifierCV)
    score = "probability" if part.kind == PROBABILITY else "decision value"
    if (inner := inner_of(model)) is not None:
        _add(total, inner, part)
    elif isinstance(model, AdaBoostClassifier) and part.kind == DECISION:
        weights = model.estimator_weights_[: len(model.estimators_)] / model.estimator_weights_.sum()
        _add_all_votes(total, model, model.estimators_, (2.0 if count == 2 else 1.0) * weights, part)
    elif isinstance(model, GradientBoostingClassifier) and part.kind == DECISION and count == 2:
        _add_boosting(total, model, part)
    elif isinstance(model, BaggingClassifier):
        for member, drawn in zip(model.estimators_, model.estimators_features_, strict=True):
            own = replace(flow, columns=tuple(flow.columns[column] for column in drawn))
            _add(total, member, part._replace(flow=own, weight=part.weight / len(model.estimators_), coded=True))
    elif part.kind == DECISION or not isinstance(model, known) or getattr(model, "voting", "soft") == "hard":
        what = f"{score} of {type(model).__name__} is no sum of trees"
        raise UnsupportedError(f"the {what}" if hasattr(model, part.kind) else f"{type(model).__name__} has no {score}")
    elif isinstance(model, DecisionTreeClassifier):
        total.add(model, _shares(model.tree_.value[:, 0, :], model, count, part), part)
    elif isinstance(model, FORESTS):
        for tree in model.estimators_:
            share = part._replace(weight=part.weight / len(model.estimators_))
            total.add(tree, _shares(tree.tree_.value[:, 0, :], model, count, part), share)
    elif isinstance(model, VotingClassifier):
        for member, weight in zip(model.estimators_, _weights(model), strict=True):
            _add(total, member, part._replace(weight=part.weight * weight))
    else:
        _add_calibrated(total, model, part)


def _add_boosting(total: Sum, model: GradientBoostingClassifier, part: Part) -> None:
    """The decision value of boosting, where it starts from 0 or from the log odds of class 1."""
    start = model.init_
    if isinstance(start, DummyClassifier) and start.strategy == "prior" and model.loss == "log_loss":
        total.constant = total.constant + total.spread(logit(start.class_prior_[1:2]), part)
    elif start != "zero":
        raise UnsupportedError("the decision value of GradientBoostingClassifier is no sum of trees here")
    for (tree,) in model.estimators_:
        total.add(tree, model.learning_rate * tree.tree_.value[:, 0, :], part)


def _add_calibrated(total: Sum, model: CalibratedClassifierCV, part: Part) -> None:
    """The average of calibrated trees: each leaf has a probability, calibrated."""
    for own in model.calibrated_classifiers_:
        alone = copy.copy(model)
        alone.calibrated_classifiers_ = [own]
        if (found := one_tree(alone, part.flow, total.walk)) is None:
            kind, count = type(total.walk(own.estimator, part.flow)[0]).__name__, total.classes(part)
            what = f"an average of calibrated {kind}" if count == 2 else f"a calibration of {kind} with {count} classes"
            raise UnsupportedError(f"{what} is no sum of trees")
        values = _shares(found.model.predict_proba(found.nodes), model, total.classes(part), part)
        weight = part.weight / len(model.calibrated_classifiers_)
        total.add(found.tree, values, part._replace(flow=found.flow, weight=weight))


def _add_all_votes(total: Sum, model: Any, members: Iterable[Any], weights: np.ndarray, part: Part) -> None:
    """Weighted votes of trees: of two classes plus the weight for class 1 and minus it for class 0."""
    for member, weight in zip(members, weights, strict=True):
        if (found := one_tree(member, part.flow, total.walk)) is None:
            kind = type(total.walk(member, part.flow)[0]).__name__
            raise UnsupportedError(f"a vote of {kind} is no sum of trees")
        count = total.classes(part)
        if len(found.tree.classes_) != count:
            raise UnsupportedError("a tree that votes has not seen all classes")
        votes = np.eye(count)[np.searchsorted(found.model.classes_, found.model.predict(found.nodes))]
        own = part._replace(flow=found.flow, weight=part.weight * weight)
        total.add(found.tree, 2.0 * votes[:, 1:] - 1.0 if count == 2 else votes, own)


def _weights(model: VotingClassifier) -> np.ndarray:
    """The weight of each member, in all 1; those that were dropped have none."""
    own = model._weights_not_none
    weights = np.ones(len(model.estimators_)) if own is None else np.array(own, dtype=float)
    return weights / weights.sum()


def _shares(values: np.ndarray, owner: Any, count: int, part: Part) -> np.ndarray:
    """The share of class 1 of every node, shape (nodes, 1); of each class, where there are more than two.

    ``values`` are what the nodes of a tree of ``owner`` give each class that it knows, shape (nodes, classes).
    """
    shares = values / values.sum(axis=1, keepdims=True)
    if shares.shape[1] != count:
        if not part.coded:
            raise UnsupportedError("a tree among others has not seen all classes")
        seen, known = owner.classes_.astype(int), shares
        shares = np.zeros((len(known), count))
        shares[:, seen] = known
    return shares[:, 1:] if count == 2 else shares
