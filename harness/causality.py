"""Structural equations between features, explicit or learnt: what a change of the causes does to the effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV

from harness import models
from harness.classifier import Affine, Classifier, Indicator, Input
from harness.errors import DatasetError, choices
from harness.problem import Actionability, Kind, Space

FOLDS = 5  # of the cross-validation that chooses among the settings of a ``grid``
ENTRIES = ("formula", "parents", "learn", "grid")


@dataclass(frozen=True)
class Formula:
    """``weights`` · inputs + ``intercept``: an explicit equation, in the place of a fitted regressor."""

    weights: tuple[float, ...]
    intercept: float = 0.0

    def predict(self, matrix: np.ndarray) -> np.ndarray:
        """Shape (rows,), of inputs of shape (rows, inputs)."""
        return matrix @ np.array(self.weights, dtype=float) + self.intercept


@dataclass(frozen=True, eq=False)
class Equation:
    r"""A counterfactual x of x̂ has to keep, for an endogenous feature i and its parents p,

    .. math:: x_i = \hat x_i + c_i(p_i) - c_i(\hat p_i) .

    What the parents do not explain of the factual's value stays as it is. This is (7) of [1]_.

    Parameters
    ----------
    feature
        The endogenous feature, continuous.
    model
        Gives :math:`c_i` up to ``shift`` and ``unit``: a ``Formula`` or a fitted regressor behind maps of the parents.
    shift, unit
        :math:`c_i` = shift + unit · model, in the feature's original units.
    text
        An explicit equation as it was written.

    References
    ----------
    .. [1] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """

    feature: str
    model: Classifier
    shift: float = 0.0
    unit: float = 1.0
    text: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """The features that the equation reads."""
        return tuple(dict.fromkeys(source.feature for source in self.model.inputs))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """c of decoded rows, in original units, shape (rows,)."""
        return self.shift + self.unit * self.model.predict(frame)

    def expected(self, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """What the endogenous feature must be in each row, in original units, shape (rows,)."""
        return float(factual[self.feature].iloc[0]) + (self.predict(frame) - self.predict(factual)[0])

    def residual(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """How far the endogenous feature lies above what is expected, in scaled units, shape (rows,)."""
        return (frame[self.feature].to_numpy(float) - self.expected(factual, frame)) / space[self.feature].range


def follow(equations: Iterable[Equation], factual: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with every endogenous feature at its expected value; equations in causal order, bounds not looked at."""
    frame = frame.copy()
    for equation in equations:
        frame[equation.feature] = equation.expected(factual, frame)
    return frame


def equations(
    space: Space,
    train: pd.DataFrame,
    causality: Mapping[str, Mapping[str, Any] | None],
    cache: Path | None = None,
) -> tuple[Equation, ...]:
    """The equations of a description, causes before effects; those to be learnt are fitted.

    Parameters
    ----------
    train
        Decoded training rows.
    causality
        By endogenous feature either ``{formula}``, a text for ``parse``; or ``{parents, learn, grid}``: names of
        features, an unfitted regressor, and optionally lists of settings by parameter, from which five-fold
        cross-validation takes the best. None in place of a description is no equation.
    cache
        Where fitted regressors are kept.

    Raises
    ------
    DatasetError
        If the description does not fit the features.
    """
    check(space, causality)
    made = []
    for name in _ordered(space, causality):
        entry, feature = causality[name] or {}, space[name]
        if "formula" in entry:
            model = parse(entry["formula"], space)
            made.append(Equation(name, model, text=entry["formula"]))
            continue
        learner = entry["learn"]
        if not hasattr(learner, "fit") or not is_regressor(learner):
            raise DatasetError(
                f"the equation of {name} is to be learnt by {learner!r}; give an unfitted regressor, such as Ridge()."
            )
        if train[name].nunique() < 2:
            raise DatasetError(f"{name} is the same in every training row; there is no equation to learn.")
        if entry.get("grid"):
            learner = GridSearchCV(learner, dict(entry["grid"]), cv=FOLDS)
        inputs = Space(tuple(space[parent] for parent in entry["parents"]))
        scaled = (train[name].to_numpy(float) - feature.scale[0]) / feature.range
        model = models.train(clone(learner), inputs, train, scaled, (), cache=cache)
        made.append(Equation(name, model, feature.scale[0], feature.range))
    return tuple(made)


def check(space: Space, causality: Mapping[str, Mapping[str, Any] | None]) -> tuple[str, ...]:
    """What a user should know of a description that fits the features, one sentence each.

    Raises
    ------
    DatasetError
        For features that do not exist or are not continuous, formulas that cannot be read, and cycles.
    """
    notices = []
    for name in _ordered(space, causality):
        feature = space[name]
        if feature.kind is not Kind.CONTINUOUS:
            raise DatasetError(
                f"{name} has an equation and is {feature.kind}, but an endogenous feature takes any number its "
                f"equation gives; set features.{name}.kind=continuous, or drop the equation."
            )
        if feature.actionability is Actionability.IMMUTABLE:
            notices.append(
                f"{name} is immutable and has an equation: its parents may only change in ways that leave it as it is."
            )
    return tuple(notices)


def _ordered(space: Space, causality: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """The endogenous features, causes before effects."""
    graph = {name: _parents(space, name, entry) for name, entry in causality.items() if entry is not None}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as fault:
        raise DatasetError(
            f"the equations form a cycle, {' -> '.join(fault.args[1])}; no feature may be among its own causes."
        ) from None
    return [name for name in order if name in graph]


def _parents(space: Space, name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The parents that an entry names, checked."""
    space[name]  # there is such a feature
    if not isinstance(entry, Mapping) or not ("formula" in entry) ^ ("learn" in entry):
        raise DatasetError(f"the equation of {name} is {entry!r}; give either a 'formula', or 'parents' and 'learn'.")
    for key in entry:
        if key not in ENTRIES or ("formula" in entry and key != "formula"):
            allowed = ("formula",) if "formula" in entry else ENTRIES[1:]
            raise DatasetError(f"the equation of {name} has no entry {key!r}; {choices(key, allowed)}.")
    if "formula" in entry:
        return tuple(source.feature for source in parse(entry["formula"], space).inputs)
    parents = entry.get("parents")
    if not parents or isinstance(parents, str):
        raise DatasetError(
            f"the equation of {name} has the parents {parents!r}; list the features that it is learnt from."
        )
    return tuple(space[parent].name for parent in parents)


Terms = dict[Input | None, float]  # coefficients by input; None is the constant


def parse(text: str, space: Space) -> Classifier:
    """A linear formula, such as ``0.5 * credit_amount + 3 * (housing == "own")``, as a model of its features.

    Numbers, ``+ - * /``, parentheses, names of numeric features (in backticks, where they are no Python names), and
    ``==`` or ``!=`` between any other feature and one of its categories, which is 1 or 0.

    Raises
    ------
    DatasetError
        For anything else, with the part at fault.
    """
    quoted: dict[str, str] = {}

    def hold(match: re.Match[str]) -> str:
        quoted[f"quoted_{len(quoted)}"] = match[1]
        return f"quoted_{len(quoted) - 1}"

    def fail(node: ast.AST, why: str) -> NoReturn:
        part = re.sub(r"\bquoted_\d+\b", lambda held: f"`{quoted[held[0]]}`", ast.unparse(node))
        raise DatasetError(f"the formula {text!r} cannot be read at {part!r}: {why}.")

    def feature(node: ast.Name) -> Any:
        name = quoted.get(node.id, node.id)
        if name not in space.names:
            fail(node, f"there is no feature {name!r}; {choices(name, space.names)}")
        return space[name]

    def constant(terms: Terms) -> float | None:
        return terms.get(None, 0.0) if not any(terms[key] for key in terms if key is not None) else None

    def terms(node: ast.AST) -> Terms:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return {None: float(value)}
            case ast.Name():
                named = feature(node)
                if not named.numeric:
                    fail(node, f"{named.name} is {named.kind}; compare it with one of its categories by == or !=")
                return {Affine(named.name): 1.0}
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=inner):
                return _sum({}, terms(inner), -1.0 if isinstance(sign, ast.USub) else 1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return _sum(terms(left), terms(right), -1.0 if isinstance(sign, ast.Sub) else 1.0)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                one, other = terms(left), terms(right)
                if (factor := constant(one)) is not None:
                    return _sum({}, other, factor)
                if (factor := constant(other)) is not None:
                    return _sum({}, one, factor)
                fail(
                    node, "a product of features is not linear; learn the equation by a regressor ('parents', 'learn')"
                )
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                divisor = constant(terms(right))
                if not divisor:
                    fail(node, "only a number other than 0 may divide; learn other equations ('parents', 'learn')")
                return _sum({}, terms(left), 1.0 / divisor)
            case ast.Compare(
                left=ast.Name() as left, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[ast.Constant(value=value)]
            ):
                named = feature(left)
                if named.numeric:
                    fail(node, f"{named.name} is {named.kind}; learn an equation with steps ('parents', 'learn')")
                levels = {str(category): category for category in named.categories}
                if str(value) not in levels:
                    fail(node, f"{named.name} has no category {value!r}; {choices(value, levels)}")
                holds: Terms = {Indicator(named.name, (levels[str(value)],)): 1.0}
                return holds if isinstance(sign, ast.Eq) else _sum({None: 1.0}, holds, -1.0)
        fail(node, "allowed are numbers, features, + - * /, parentheses, == and !=; learn other equations ('learn')")

    try:
        tree = ast.parse(re.sub(r"`([^`]+)`", hold, str(text)), mode="eval")
    except SyntaxError as fault:
        raise DatasetError(f"the formula {text!r} is no expression ({fault.msg}); write such as '0.5 * age'.") from None
    found = terms(tree.body)
    intercept = found.pop(None, 0.0)
    inputs = tuple(source for source in found if source is not None)
    return Classifier(Formula(tuple(found[source] for source in inputs), intercept), inputs)


def _sum(one: Terms, other: Terms, factor: float) -> Terms:
    """one + factor · other."""
    return {key: one.get(key, 0.0) + factor * other.get(key, 0.0) for key in dict.fromkeys([*one, *other])}
