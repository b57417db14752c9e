"""Faults to plant in a source file, made by cosmic-ray's operators: each changes one place of it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

SAME_KIND = [  # an operator is replaced by one of its kind: others would only raise TypeError
    {"Add", "Sub", "Mul", "Div"},
    {"FloorDiv", "Mul"},
    {"Mod", "Mul"},
    {"Pow", "Mul"},
    {"BitAnd", "BitOr", "BitXor"},
    {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
]
LEFT_OUT = {"RemoveDecorator", "VariableReplacer", "VariableInserter", "ExceptionReplacer"}  # declarations, and names
# Named arguments that no result depends on: assertions, declarations, the order of columns, how a drawing looks.
CANVAS = "blank"  # the function whose arguments are a figure's inches
ASIDE = {
    "strict", "frozen", "init", "place", "alpha", "rotation", "fontsize", "title_fontsize", "labelsize", "lw",
    "linewidths", "linewidth", "markersize", "markeredgewidth", "pad", "s", "zorder", "frameon", "cmap", "vmin",
    "vmax", "dpi",
}  # fmt: skip


class Fault(NamedTuple):
    """One change of a file (relative to the root): an operator, and the number and line of the place it changes."""

    path: str
    operator: str
    occurrence: int
    line: int


def sensible(operator: str) -> bool:
    """Whether an operator, such as ``core/ReplaceBinaryOperator_Add_Sub``, leaves code that may run."""
    name, *sides = operator.partition("/")[2].split("_")
    if name in LEFT_OUT:
        return False
    return name == "ReplaceUnaryOperator" or len(sides) < 2 or any(set(sides) <= kind for kind in SAME_KIND)


def matters(node: Any) -> bool:
    """Whether a node of the syntax tree is evaluated (no annotation) and bears on a result (not in ``ASIDE``).

    A number that is a setting is left out: a constant in capitals, or a default. A test of it would only repeat it.
    """
    if node.type == "number" and _setting(node):
        return False
    while (parent := node.parent) is not None:
        kind = parent.type
        if (kind == "tfpdef" and node is parent.children[2]) or (kind == "annassign" and node is parent.children[1]):
            return False
        if kind == "funcdef" and node.get_previous_sibling() == "->":
            return False
        if kind == "argument" and parent.children[0].get_code(include_prefix=False) in ASIDE:
            return False
        if kind == "dictorsetmaker" and _key(node) in ASIDE:
            return False
        if kind == "trailer" and parent.get_previous_sibling().get_code(include_prefix=False) == CANVAS:
            return False
        node = parent
    return True


def _key(node: Any) -> str:
    """The key of a value in a dictionary's display, less its quotes; nothing of any other part."""
    colon = node.get_previous_sibling()
    named = colon is not None and colon.get_code(include_prefix=False) == ":"
    return colon.get_previous_sibling().get_code(include_prefix=False).strip("\"'") if named else ""


def _setting(number: Any) -> bool:
    """Whether a number, alone, is the value of a constant in capitals, of a field or of a parameter."""
    parent = number.parent
    if parent.type == "expr_stmt":
        return bool(parent.children[0].get_code(include_prefix=False).isupper())
    return parent.type == "annassign" or (parent.type == "param" and number is not parent.children[0])


def places(root: Path, path: str) -> Iterator[list[Fault]]:
    """All faults of a file, by place."""
    from cosmic_ray.ast import ast_nodes, get_ast  # optional: pytest imports this file for its doctests
    from cosmic_ray.plugins import get_operator, operator_names

    found: dict[Any, list[Fault]] = {}
    nodes = list(ast_nodes(get_ast((root / path).read_text())))
    for name in filter(sensible, operator_names()):
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for place in operator.mutation_positions(node):
                if matters(node):
                    found.setdefault(place, []).append(Fault(path, name, occurrence, place[0][0]))
                occurrence += 1
    yield from found.values()


def drawn(root: Path, paths: list[str], seed: int) -> Iterator[Fault]:
    """One fault a place of some files, in a random order, which changes little where a file does."""

    def rank(fault: Fault) -> str:
        return hashlib.sha256(repr((seed, *fault[:3])).encode()).hexdigest()

    chosen = sorted((min(place, key=rank) for path in paths for place in places(root, path)), key=rank)
    return (fault for fault in chosen if differs(*planted(root, fault)[:2]))


def differs(before: str, after: str) -> bool:
    """Whether a changed file is still Python, and other Python than before."""
    try:
        return ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    except SyntaxError:
        return False


def planted(root: Path, fault: Fault) -> tuple[str, str, str, str]:
    """The file without and with the fault, and its first changed line, before and after."""
    from cosmic_ray.mutating import mutate_code  # optional, as above
    from cosmic_ray.plugins import get_operator

    before = (root / fault.path).read_text()
    after = mutate_code(before, get_operator(fault.operator)(), fault.occurrence) or before
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    first, second = next(((a, b) for a, b in pairs if a != b), ("", ""))
    return before, after, first.strip(), second.strip()
