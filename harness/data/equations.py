"""Structural equations as a dataset's YAML describes them: checked, parsed, and put in causal order."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

from harness.core.classifier import Classifier
from harness.core.equation import Formula
from harness.core.errors import DatasetError, choices
from harness.core.inputs import Affine, Indicator, Input
from harness.core.space import Actionability, Kind, Space

ENTRIES = ("formula", "parents", "learn", "grid")


def check(space: Space, causality: Mapping[str, Mapping[str, Any] | None]) -> tuple[str, ...]:
    """What a user should know of a description that fits the features, one sentence each.

    Raises
    ------
    DatasetError
        For features that do not exist or are not continuous, formulas that cannot be read, and cycles.
    """
    notices = []
    for name in ordered(space, causality):
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


def ordered(space: Space, causality: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
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
