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
from harness.core.relation_grammar import added
from harness.core.space import Actionability, Feature, Kind, Space

ENTRIES = {  # what an equation may have beside the entry that tells its kind
    "formula": (),
    "learn": ("parents", "grid"),
    "published": ("parents", "scale"),
}


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
    found = _FormulaParser(text, space).parse()
    intercept = found.pop(None, 0.0)
    inputs = tuple(source for source in found if source is not None)
    return Classifier(Formula(tuple(found[source] for source in inputs), intercept), inputs)


class _FormulaParser:
    """Walks the syntax tree of one formula and collects its coefficients."""

    def __init__(self, text: str, space: Space) -> None:
        self.text, self.space = text, space
        self.quoted: dict[str, str] = {}  # feature by the placeholder that stands for its name in backticks

    def parse(self) -> Terms:
        """The coefficients of the formula by input; the constant is that of None."""
        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", self._placeholder, str(self.text)), mode="eval")
        except SyntaxError as fault:
            raise DatasetError(
                f"the formula {self.text!r} is no expression ({fault.msg}); write such as '0.5 * age'."
            ) from None
        return self._terms(tree.body)

    def _placeholder(self, match: re.Match[str]) -> str:
        placeholder = f"quoted_{len(self.quoted)}"
        self.quoted[placeholder] = match[1]
        return placeholder

    def _fail(self, node: ast.AST, why: str) -> NoReturn:
        part = re.sub(r"\bquoted_\d+\b", lambda match: f"`{self.quoted[match[0]]}`", ast.unparse(node))
        raise DatasetError(f"the formula {self.text!r} cannot be read at {part!r}: {why}.")

    def _feature(self, node: ast.Name) -> Feature:
        name = self.quoted.get(node.id, node.id)
        if name not in self.space.names:
            self._fail(node, f"there is no feature {name!r}; {choices(name, self.space.names)}")
        return self.space[name]

    def _terms(self, node: ast.AST) -> Terms:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return {None: float(value)}
            case ast.Name():
                feature = self._feature(node)
                if not feature.numeric:
                    self._fail(
                        node, f"{feature.name} is {feature.kind}; compare it with one of its categories by == or !="
                    )
                return {Affine(feature.name): 1.0}
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=inner):
                return added({}, self._terms(inner), -1.0 if isinstance(sign, ast.USub) else 1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return added(self._terms(left), self._terms(right), -1.0 if isinstance(sign, ast.Sub) else 1.0)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product(node, self._terms(left), self._terms(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                divisor = _constant(self._terms(right))
                if not divisor:
                    self._fail(
                        node, "only a number other than 0 may divide; learn other equations ('parents', 'learn')"
                    )
                return added({}, self._terms(left), 1.0 / divisor)
            case ast.Compare(
                left=ast.Name() as left, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[ast.Constant(value=value)]
            ):
                return self._comparison(node, self._feature(left), value, isinstance(sign, ast.Eq))
        self._fail(
            node, "allowed are numbers, features, + - * /, parentheses, == and !=; learn other equations ('learn')"
        )

    def _product(self, node: ast.AST, one: Terms, other: Terms) -> Terms:
        if (factor := _constant(one)) is not None:
            return added({}, other, factor)
        if (factor := _constant(other)) is not None:
            return added({}, one, factor)
        self._fail(node, "a product of features is not linear; learn the equation by a regressor ('parents', 'learn')")

    def _comparison(self, node: ast.AST, feature: Feature, value: Any, equal: bool) -> Terms:
        if feature.numeric:
            self._fail(node, f"{feature.name} is {feature.kind}; learn an equation with steps ('parents', 'learn')")
        levels = {str(category): category for category in feature.categories}
        if str(value) not in levels:
            self._fail(node, f"{feature.name} has no category {value!r}; {choices(value, levels)}")
        indicator: Terms = {Indicator(feature.name, (levels[str(value)],)): 1.0}
        return indicator if equal else added({None: 1.0}, indicator, -1.0)


def _constant(terms: Terms) -> float | None:
    """The number that terms without a feature stand for; None where a feature is among them."""
    return None if any(terms[key] for key in terms if key is not None) else terms.get(None, 0.0)


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
    kinds = [kind for kind in ENTRIES if isinstance(entry, Mapping) and kind in entry]
    if len(kinds) != 1:
        raise DatasetError(f"the equation of {name} is {entry!r}; give either a 'formula', or 'parents' and 'learn'.")
    allowed = (*kinds, *ENTRIES[kinds[0]])
    for key in entry:
        if key not in allowed:
            raise DatasetError(f"the equation of {name} has no entry {key!r}; {choices(key, allowed)}.")
    if "formula" in entry:
        return tuple(source.feature for source in parse(entry["formula"], space).inputs)
    parents = entry.get("parents")
    if not parents or isinstance(parents, str):
        raise DatasetError(
            f"the equation of {name} has the parents {parents!r}; list the features that it is learnt from."
        )
    if "published" in entry:
        scale = entry.get("scale")
        pairs = {key: ends for key, ends in scale.items() if _pair(ends)} if isinstance(scale, Mapping) else {}
        for known in (name, *parents):
            if known not in pairs or not space[known].numeric:
                raise DatasetError(
                    f"the equation of {name} is published without a scale of {known}; give scale.{known}=[low, high], "
                    f"what 0 and 1 stand for, of numbers."
                )
    return tuple(space[parent].name for parent in parents)


def _pair(ends: Any) -> bool:
    """Whether these are two numbers, the lesser one first."""
    return isinstance(ends, list | tuple) and len(ends) == 2 and ends[0] < ends[1]
