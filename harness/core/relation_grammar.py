"""Relations between features, read from text such as ``if employed == no then income == 0``.

::

    relation   = "if" condition "then" condition | "at" "most" NUMBER "of" list "change" | condition
    condition  = literal { "and" literal }
    literal    = NAME ( "changes" | "stays" | "increases" | "decreases" )
               | NAME ( "==" | "!=" | ">=" | "<=" | ">" | "<" ) CATEGORY | NAME [ "not" ] "in" list
               | sum { ( "==" | "!=" | ">=" | "<=" | ">" | "<" ) sum }
    sum        = [ "-" ] product { ( "+" | "-" ) product }
    product    = factor { ( "*" | "/" ) factor }
    factor     = NUMBER | NAME | "(" sum ")"
    list       = "[" item { "," item } "]"
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise, product
from typing import Any, NamedTuple, NoReturn, TypeVar

from harness.core.errors import DatasetError, choices
from harness.core.feature import Feature, all_numbers
from harness.core.relations import Change, Literal, Number, Quantity, Relation
from harness.core.tolerances import COEFFICIENTS

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)(?![\w.])
      |(?P<word>[^\W\d][\w.]*)|`(?P<name>[^`]+)`|"(?P<double>[^"]*)"|'(?P<single>[^']*)'
      |(?P<sign>==|!=|>=|<=|[-+*/()\[\],<>]))""",
    re.VERBOSE,
)
DATE = re.compile(r"\s*(\d{4}-\d{2}-\d{2}|\d{1,2}([./])\d{1,2}\2\d{4})(?![\w.])")
WORD = re.compile(r"[^\W\d][\w.]*")
WORDS = {"if", "then", "and", "or", "not", "in", "at", "most", "of", "change"}
MOVES = ("changes", "stays", "increases", "decreases")
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
OPPOSITE = {
    "==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<=",
    "changes": "stays", "stays": "changes", "increases": "not increases", "decreases": "not decreases",
}  # fmt: skip
NAMES = "names other than words stand in `backticks`, categories in quotes"
HINTS = {  # for signs that begin nothing
    "=<>!≤≥≠": "comparisons are <=, >=, <, >, == and !=",
    "&|": f"conditions are joined by 'and'; {NAMES}",
    ":": "an implication is 'if ... then ...'",
    ";": "items of a list stand between commas, and several relations are listed one by one",
    "0123456789.": "numbers are written as 1000.5, without marks between thousands",
    "%€$£": f"numbers have no units; {NAMES}",
}
INSTEAD = {  # of what is no relation
    "or": "'a or b' is 'if ... then b', with the opposite of a, and of categories 'in [a, b]'",
    "not": "in place of 'not' stands the opposite comparison, such as <= of >",
    ",": "numbers are written as 1000.5, and lists as [a, b]",
}
Clauses = tuple[tuple[Literal, ...], ...]
Sum = dict[Quantity | None, float]  # coefficients by quantity; None is the constant
Key = TypeVar("Key")


class Token(NamedTuple):
    """A piece of the text: its kind, what it stands for, as it was written, and where, from 1."""

    kind: str
    value: str
    text: str
    place: int


def parse_relation(text: Any, features: Mapping[str, Feature]) -> Relation:
    """A relation from its text.

    Parameters
    ----------
    features
        By name. Names that are no words, or words of the grammar, stand in backticks, categories that are no words in
        quotes.

    Raises
    ------
    DatasetError
        For what cannot be read, with the position at fault.
    """
    if not isinstance(text, str) or not text.strip():
        raise DatasetError(f"the constraint {text!r} is no text; write such as 'loan <= 5 * income'.")
    return _Parser(text, features).parse()


def quoted(name: str) -> str:
    """The name of a feature as it stands in a relation: in backticks where it is no word, or one of the grammar.

    >>> quoted("income"), quoted("age >= 30"), quoted("in")
    ('income', '`age >= 30`', '`in`')
    """
    plain = WORD.fullmatch(name) and name not in WORDS | set(MOVES)
    return name if plain else f"`{name}`"


class _Parser:
    """Reads one relation, a token after another."""

    def __init__(self, text: str, features: Mapping[str, Feature]) -> None:
        self.text, self.features = text, features
        self.tokens, self.at = self._tokens(), 0
        self.named: list[str] = []

    def parse(self) -> Relation:
        if self._take("if"):
            given = self._condition(opposite=True)
            self._expect("then")
            asked = self._condition()
            clauses = _either(tuple(tuple(replace(part, given=True) for part in each) for each in given), asked)
        elif self._take("at"):
            clauses = self._cardinality()
        else:
            clauses = self._condition()
        if self.now.kind != "end":
            self._fail("the end", INSTEAD.get(self.now.text, "for several relations, list them one by one"))
        if not any(literal.terms for clause in clauses for literal in clause):
            raise DatasetError(f"the constraint {self.text!r} names no feature; write such as 'loan <= 5 * income'.")
        return Relation(_printed(self.tokens), clauses, tuple(dict.fromkeys(self.named)))

    # Tokens

    def _tokens(self) -> list[Token]:
        found, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            if found_date := DATE.match(text, at):
                raise DatasetError(
                    f"the constraint {self.text!r} holds the date {found_date[1]}; dates are days since 1970-01-01 in "
                    f"constraints, such as 18262 for 2020-01-01."
                )
            match = TOKEN.match(text, at)
            if match is None:
                place = at + len(text[at:]) - len(text[at:].lstrip())
                hint = next((hint for signs, hint in HINTS.items() if text[place] in signs), NAMES)
                raise DatasetError(
                    f"the constraint {self.text!r} cannot be read at position {place + 1}, {text[place]!r}; {hint}."
                )
            kind = str(match.lastgroup)
            found.append(Token(kind, match[kind], match[0].strip(), match.start(kind) + 1))
            at = match.end()
        return [*found, Token("end", "", "the end", len(text) + 1)]

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _is(self, *texts: str) -> bool:
        return self.now.kind in {"word", "sign"} and self.now.text in texts

    def _take(self, text: str) -> bool:
        taken = self._is(text)
        self.at += taken
        return taken

    def _expect(self, text: str) -> None:
        if not self._take(text):
            self._fail(repr(text))

    def _fail(self, wanted: str, why: str = "", token: Token | None = None) -> NoReturn:
        token = token or self.now
        found = repr(token.text) if token.kind != "end" else "its end"
        raise DatasetError(
            f"the constraint {self.text!r} cannot be read at position {token.place}, {found}: expected {wanted}"
            f"{'; ' if why else ''}{why}."
        )

    # Grammar

    def _condition(self, opposite: bool = False) -> Clauses:
        """The clauses of literals joined by "and", or of the opposite."""
        found = [self._literal(opposite)]
        while self._take("and"):
            found.append(self._literal(opposite))
        return _all(found, opposite)

    def _cardinality(self) -> Clauses:
        self._expect("most")
        count = self._next()
        if count.kind != "number" or not float(count.value).is_integer():
            self._fail("a whole number, as in 'at most 2 of [a, b, c] change'", token=count)
        self._expect("of")
        place, features = self.now.place, [self._feature(token) for token in self._list()]
        self._expect("change")
        if len(set(features)) < len(features) or int(float(count.value)) >= len(features):
            raise DatasetError(
                f"the constraint {self.text!r} lists {len(set(features))} different features at position {place}; at "
                f"most {count.text} of them always change, so list more, or allow fewer."
            )
        return ((Literal(tuple((Change(feature), 1.0) for feature in features), float(count.value)),),)

    def _list(self) -> list[Token]:
        if not self._take("["):
            self._fail("a list, such as [a, b]")
        found = [self._next()]
        while self._take(","):
            found.append(self._next())
        if not self._take("]"):
            self._fail("',' or ']'")
        return found

    def _feature(self, token: Token) -> Feature:
        if token.kind not in {"word", "name"}:
            self._fail("the name of a feature", token=token)
        if token.value not in self.features:
            if token.kind == "word" and (word := token.value.lower()) in WORDS:
                small = "" if word == token.value else f"{word!r} and other words of relations are in small letters"
                self._fail("a number or the name of a feature", INSTEAD.get(word, small), token)
            raise DatasetError(
                f"the constraint {self.text!r} names {token.value!r} at position {token.place}, which is no feature; "
                f"{choices(token.value, map(quoted, self.features))}."
            )
        self.named.append(token.value)
        return self.features[token.value]

    def _literal(self, opposite: bool) -> Clauses:
        token, following = self.now, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        if token.kind in {"word", "name"}:
            if following.kind == "word" and following.text in MOVES:
                feature = self._feature(self._next())
                move = self._next().text
                return self._moves(feature, OPPOSITE[move] if opposite else move, token)
            known = self.features.get(token.value)
            if known is not None and not known.numeric and self._categorical(known):
                return self._category(self._feature(self._next()), opposite)
        return self._comparison(opposite)

    def _moves(self, feature: Feature, move: str, token: Token) -> Clauses:
        """How a feature moves from the factual: numbers by their value, ranks by their place."""
        if move in {"changes", "stays"} and not feature.numeric:
            return ((Literal(((Change(feature), 1.0 if move == "stays" else -1.0),), 0.0, move == "changes"),),)
        if not feature.numeric and feature.kind == "categorical":
            self._fail("a feature with an order", f"{feature.name} is categorical; use 'changes', or ==", token)
        number = Number(feature, tuple(map(float, range(len(feature.categories)))))
        up, down = (
            (Literal(((number, sign),), 0.0, strict, moved=True)) for sign, strict in ((-1.0, True), (1.0, True))
        )
        not_up, not_down = (Literal(((number, sign),), 0.0, moved=True) for sign in (1.0, -1.0))
        return {
            "changes": ((up, down),),
            "stays": ((not_up,), (not_down,)),
            "increases": ((up,),),
            "decreases": ((down,),),
            "not increases": ((not_up,),),
            "not decreases": ((not_down,),),
        }[move]

    def _categorical(self, feature: Feature) -> bool:
        """Whether a feature is compared here with its own categories: by order, numbers are compared as numbers."""
        sign, value, after = (self.tokens[min(self.at + step, len(self.tokens) - 1)] for step in (1, 2, 3))
        if sign.text in {"in", "not"}:
            return True
        if sign.text not in COMPARED or sign.kind != "sign":
            return False
        if not all_numbers(feature.categories):
            return True
        known = {str(category) for category in feature.categories}
        ordered = sign.text not in {"==", "!="} and feature.kind != "categorical"
        return not ordered and value.value in known and after.text not in {"+", "-", "*", "/"}

    def _category(self, feature: Feature, opposite: bool) -> Clauses:
        """Which categories a feature may hold."""
        sign = self._next()
        if sign.text in {"not", "in"}:
            if sign.text == "not":
                self._expect("in")
            listed = {self._code(feature, token) for token in self._list()}
            codes = {code for code in range(len(feature.categories)) if (code in listed) != (sign.text == "not")}
        else:
            if sign.text not in {"==", "!="} and feature.kind == "categorical":
                self._fail("== or !=", f"{feature.name} is categorical, which has no order", sign)
            code = self._code(feature, self._next())
            codes = {place for place in range(len(feature.categories)) if COMPARED[sign.text](place, code)}
        table = tuple(float((place in codes) == opposite) for place in range(len(feature.categories)))
        return ((Literal(((Number(feature, table), 1.0),)),),)

    def _code(self, feature: Feature, token: Token) -> int:
        levels = [str(category) for category in feature.categories]
        if token.value not in levels:
            self._fail(f"a category of {feature.name}", choices(token.value, levels), token)
        return levels.index(token.value)

    def _comparison(self, opposite: bool) -> Clauses:
        """Sums compared with one another, two or more in a chain."""
        sums, signs = [self._sum()], []
        while self.now.kind == "sign" and self.now.text in COMPARED:
            signs.append(self._next().text)
            sums.append(self._sum())
        if not signs:
            self._fail("a comparison such as <=, or one of " + ", ".join(MOVES))
        found = []
        for (left, right), sign in zip(pairwise(sums), signs, strict=True):
            difference = added(left, right, -1.0)
            least, most = COEFFICIENTS
            if any(number and not least <= abs(number) <= most for number in difference.values()):
                self._fail(f"numbers from {least:g} to {most:g} in size")
            found.append(_compared(difference, OPPOSITE[sign] if opposite else sign))
        return _all(found, opposite)

    def _sum(self) -> Sum:
        total = added({}, self._product(), -1.0) if self._take("-") else self._product()
        while self._is("+", "-"):
            sign = -1.0 if self._next().text == "-" else 1.0
            total = added(total, self._product(), sign)
        return total

    def _product(self) -> Sum:
        found = self._factor()
        while self._is("*", "/"):
            sign, token = self._next(), self.now
            other = self._factor()
            if sign.text == "/":
                if set(other) - {None} or not other.get(None):
                    self._fail("a number other than 0", "only numbers may divide", token)
                found = added({}, found, 1.0 / other[None])
            elif set(other) - {None} and set(found) - {None}:
                self._fail("a number", "a product of features is not linear", token)
            else:
                number, terms = (found, other) if set(other) - {None} else (other, found)
                found = added({}, terms, number.get(None, 0.0))
        return found

    def _factor(self) -> Sum:
        token = self._next()
        if token.kind == "number":
            return {None: float(token.value)}
        if token.text == "(" and token.kind == "sign":
            found = self._sum()
            if not self._take(")"):
                self._fail("')'", "brackets hold sums, and no comparisons" * (self.now.text in COMPARED))
            return found
        if token.kind not in {"word", "name"}:
            self._fail("a number or the name of a feature", token=token)
        feature = self._feature(token)
        if feature.numeric:
            return {Number(feature): 1.0}
        if not all_numbers(feature.categories):
            why = f"{feature.name} is {feature.kind}; compare it by ==, != or in with one of its categories"
            self._fail("a number", why, token)
        return {Number(feature, tuple(map(float, feature.categories))): 1.0}


def added(one: dict[Key, float], other: dict[Key, float], factor: float) -> dict[Key, float]:
    """one + factor · other."""
    return {key: one.get(key, 0.0) + factor * other.get(key, 0.0) for key in dict.fromkeys([*one, *other])}


def _compared(difference: Sum, sign: str) -> Clauses:
    """The clauses of a difference compared with 0."""
    terms = tuple((key, weight) for key, weight in difference.items() if key is not None and weight)
    turned = tuple((key, -weight) for key, weight in terms)
    constant = difference.get(None, 0.0)
    below, above = (Literal(terms, -constant), Literal(turned, constant))
    if sign in {"==", "!="}:
        strict = replace(below, strict=True), replace(above, strict=True)
        return ((below,), (above,)) if sign == "==" else (strict,)
    return ((replace(below if "<" in sign else above, strict="=" not in sign),),)


def _all(found: Sequence[Clauses], opposite: bool) -> Clauses:
    """The clauses of all parts together, or, where they are opposites, of one part or another."""
    return reduce(_either, found) if opposite else tuple(clause for clauses in found for clause in clauses)


def _either(one: Clauses, other: Clauses) -> Clauses:
    """The clauses of "one or the other"."""
    return tuple((*first, *second) for first, second in product(one, other))


def _printed(tokens: Sequence[Token]) -> str:
    """The text with one blank between its pieces, and none inside brackets."""
    text, before = "", ""
    for token in tokens[:-1]:
        sign = token.text if token.kind == "sign" else ""
        text += ("" if not text or before in {"[", "("} or sign in {"]", ")", ","} else " ") + token.text
        before = sign
    return text
