"""Relations between features: what their grammar reads, and what they ask of a counterfactual."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import DatasetError
from harness.core.relation_grammar import parse_relation
from harness.core.relations import Relation
from harness.core.space import Feature, Kind, Space

settings.register_profile("relations", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("relations")

JOBS, STUDIES = ("none", "clerk", "truck driver"), ("school", "college", "degree")
SPACE = Space(
    (
        Feature("income", Kind.CONTINUOUS, scale=(0, 100), bounds=(0, 100)),
        Feature("age", Kind.INTEGER, scale=(20, 60), bounds=(18, 90)),
        Feature("years at-home", Kind.INTEGER, scale=(0, 9), bounds=(0, 9)),
        Feature("member", Kind.BINARY, ("no", "yes")),
        Feature("owns", Kind.BINARY, (0, 1)),
        Feature("study", Kind.ORDINAL, STUDIES),
        Feature("job", Kind.CATEGORICAL, JOBS),
    )
)
FEATURES = {feature.name: feature for feature in SPACE.features}
NUMBERS = {"income": "income", "age": "age", "years at-home": "`years at-home`", "owns": "owns"}
RANKS: dict[str, tuple[Any, ...]] = {"member": ("no", "yes"), "owns": (0, 1), "study": STUDIES}
SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne}
Rule = Callable[[dict[str, Any], dict[str, Any]], bool]  # of a row and of the factual


def read(text: str) -> Relation:
    return parse_relation(text, FEATURES)


# Halves and whole numbers: sums of them are exact, and so are comparisons.
rows = st.fixed_dictionaries(
    {
        "income": st.integers(0, 12).map(lambda half: half / 2),
        "age": st.integers(0, 6),
        "years at-home": st.integers(0, 6),
        "member": st.sampled_from(("no", "yes")),
        "owns": st.sampled_from((0, 1)),
        "study": st.sampled_from(STUDIES),
        "job": st.sampled_from(JOBS),
    }
)


def rank(row: dict[str, Any], name: str) -> Any:
    return RANKS[name].index(row[name]) if name in RANKS else row[name]


@st.composite
def sums(draw: st.DrawFn) -> tuple[str, Callable[[dict[str, Any]], float]]:
    """A sum, and its value by Python's own arithmetic."""
    parts = draw(st.lists(st.tuples(st.sampled_from((*NUMBERS, None)), st.integers(1, 8)), min_size=1, max_size=3))
    texts, values = [], []
    for name, number in parts:
        half = number / 2
        if name is None:
            form, value = f"{half}", lambda row, half=half: half
        else:
            form = draw(st.sampled_from(("{n}*{x}", "{x} * {n}", "{x}/ {i}", "({x} -{n}* {x})", "{x}")))
            scale = {"{n}*{x}": half, "{x} * {n}": half, "{x}/ {i}": 0.5, "({x} -{n}* {x})": 1 - half, "{x}": 1.0}[form]
            form = form.format(n=half, x=NUMBERS[name], i=2)
            value = lambda row, name=name, scale=scale: scale * row[name]  # noqa: E731
        texts.append(form)
        values.append(value)
    signs = [draw(st.sampled_from("+-")) for _ in texts]
    text = ("-" if signs[0] == "-" else "") + texts[0]
    for sign, more in zip(signs[1:], texts[1:], strict=True):
        text += f" {sign}{more}"
    pairs = list(zip(signs, values, strict=True))
    return text, lambda row: sum(value(row) if sign == "+" else -value(row) for sign, value in pairs)


@st.composite
def literals(draw: st.DrawFn) -> tuple[str, Rule]:
    kind = draw(st.sampled_from(("sum", "chain", "category", "in", "rank", "move")))
    if kind == "sum" or kind == "chain":
        parts = [draw(sums()) for _ in range(2 if kind == "sum" else 3)]
        signs = [draw(st.sampled_from(tuple(SIGNS))) for _ in parts[1:]]
        text = parts[0][0]
        for sign, (more, _) in zip(signs, parts[1:], strict=True):
            text += f"{sign} {more}"

        def compared(row: dict[str, Any], origin: dict[str, Any]) -> bool:
            values = [value(row) for _, value in parts]
            return all(SIGNS[sign](values[at], values[at + 1]) for at, sign in enumerate(signs))

        return text, compared
    if kind == "category":
        value, sign = draw(st.sampled_from(JOBS)), draw(st.sampled_from(("==", "!=")))
        return f'job {sign}"{value}"', lambda row, _: SIGNS[sign](row["job"], value)
    if kind == "in":
        listed, negated = draw(st.lists(st.sampled_from(JOBS), min_size=1)), draw(st.booleans())
        inside = ",".join(f"'{value}'" for value in listed)
        return f"job {'not ' * negated}in [{inside}]", lambda row, _: (row["job"] in listed) != negated
    if kind == "rank":
        value, sign = draw(st.sampled_from(STUDIES)), draw(st.sampled_from(tuple(SIGNS)))
        return f"study{sign}{value}", lambda row, _: SIGNS[sign](STUDIES.index(row["study"]), STUDIES.index(value))
    name = draw(st.sampled_from(("income", "age", "study", "member", "job")))
    moves = ("changes", "stays") if name == "job" else ("changes", "stays", "increases", "decreases")
    sign = {"changes": "!=", "stays": "==", "increases": ">", "decreases": "<"}[move := draw(st.sampled_from(moves))]
    return f"{name}  {move}", lambda row, origin: SIGNS[sign](rank(row, name), rank(origin, name))


@st.composite
def relations(draw: st.DrawFn) -> tuple[str, Rule]:
    def joined() -> tuple[str, list[Rule]]:
        parts = draw(st.lists(literals(), min_size=1, max_size=2))
        return " and ".join(text for text, _ in parts), [rule for _, rule in parts]

    kind = draw(st.sampled_from(("plain", "implication", "cardinality")))
    if kind == "cardinality":
        names = draw(st.lists(st.sampled_from(("income", "age", "study", "job")), min_size=2, unique=True))
        most = draw(st.integers(0, len(names) - 1))
        text = f"at most {most} of [{', '.join(names)}]change"
        return text, lambda row, origin: sum(row[name] != origin[name] for name in names) <= most
    text, rules = joined()
    if kind == "plain":
        return text, lambda row, origin: all(rule(row, origin) for rule in rules)
    then, asked = joined()
    return (
        f"if {text} then {then}",
        lambda row, origin: not all(rule(row, origin) for rule in rules) or all(rule(row, origin) for rule in asked),
    )


def names_a_feature(text: str) -> bool:
    """Whether a text is a relation at all; such as ``3 <= 5`` and ``age - age == 0`` are none."""
    try:
        read(text)
    except DatasetError as fault:
        if "names no feature" not in str(fault):
            raise
        return False
    return True


@given(relation=relations())
def test_what_is_printed_is_read_as_the_same(relation: tuple[str, Rule]) -> None:
    """Printing and reading again gives the same relation, and printing that the same text."""
    if names_a_feature(relation[0]):
        found = read(relation[0])
        assert read(str(found)) == found
        assert str(read(str(found))) == str(found)


@given(relation=relations(), row=rows, origin=rows)
def test_a_relation_holds_where_its_words_do(
    relation: tuple[str, Rule], row: dict[str, Any], origin: dict[str, Any]
) -> None:
    """Where the factual keeps it, rows keep a relation just where Python's own operators say so."""
    text, rule = relation
    if not names_a_feature(text):
        return
    found, factual = read(text), SPACE.frame([origin])
    if not found.broken_by(factual):
        kept = found.kept(factual, SPACE.frame([row, origin]))
        assert kept.tolist()[0] == rule(row, origin)


@given(relation=relations(), origin=rows)
def test_no_factual_breaks_a_relation_further_than_itself(relation: tuple[str, Rule], origin: dict[str, Any]) -> None:
    """Whoever breaks what a relation says of values is told so, and may stay as he is."""
    text, rule = relation
    if not names_a_feature(text) or any(word in text for word in ("changes", "stays", "increases", "decreases")):
        return
    found, factual = read(text), SPACE.frame([origin])
    assert found.broken_by(factual) != rule(origin, origin)
    assert found.kept(factual, factual).all()


def frame(**values: Any) -> pd.DataFrame:
    whole = {"income": 30.0, "age": 30, "years at-home": 0, "member": "no", "owns": 0, "study": "school", "job": "none"}
    return SPACE.frame([whole | values])


@pytest.mark.parametrize(
    ("text", "origin", "row", "kept"),
    [
        ("income <= age", {"income": 50}, {"income": 50}, True),  # 20 too much
        ("income <= age", {"income": 50}, {"income": 49, "age": 30}, True),
        ("income <= age", {"income": 50}, {"income": 51}, False),
        ("income <= age", {"income": 50}, {"income": 60, "age": 40}, True),
        ("income <= age", {"income": 50}, {"income": 60, "age": 39}, False),
        ("income == age", {"income": 50}, {"income": 40}, True),
        ("income == age", {"income": 50}, {"income": 29}, False),  # beyond the other side
        ("if job == none then income == 0", {"income": 50}, {"income": 40}, True),
        ("if job == none then income == 0", {"income": 50}, {"income": 60}, False),
        ("if job == none then income == 0", {"income": 50}, {"income": 60, "job": "clerk"}, True),
        (
            "if income > 40 then job == clerk",
            {"income": 50},
            {"income": 60},
            True,
        ),  # what a category says is not graded
        ("if job changes then income increases", {}, {}, True),
        ("if job changes then income increases", {}, {"job": "clerk"}, False),
        ("if job changes then income increases", {}, {"job": "clerk", "income": 30.001}, True),
    ],
)
def test_a_factual_that_breaks_a_relation_may_not_break_it_further(
    text: str, origin: dict[str, Any], row: dict[str, Any], kept: bool
) -> None:
    """What the factual lacks is the most that its counterfactual may lack."""
    assert read(text).kept(frame(**origin), frame(**row)).tolist() == [kept]


def test_a_number_that_cancels_out_is_one_of_a_relations_features() -> None:
    """The text names it, so that whoever reads it anew over the related features alone needs it too."""
    found = read("if job changes then income + 2 * age - owns <= 90 + 2 * age - 0 * owns")
    assert found.features == ("job", "income", "age", "owns")
    assert Space(tuple(FEATURES[name] for name in found.features), (found.text,)).relations == (found,)


@pytest.mark.parametrize("levels", [(0, 1), (1, 0), (2.0, -1.0)])
@pytest.mark.parametrize("kind", ["binary", "ordinal"])
def test_two_numbers_are_compared_as_numbers(kind: str, levels: tuple[float, float]) -> None:
    """However they are listed, and however the comparison is written."""
    known = {"k": Feature("k", kind, levels)}
    for text, compared in (
        ("k <= {}", operator.le),
        ("k + 0 <= {}", operator.le),
        ("k < {}", operator.lt),
        ("{} >= k", operator.le),
    ):
        relation = parse_relation(text.format(levels[0]), known)
        for level in levels:
            assert bool(relation.broken_by(pd.DataFrame({"k": [level]}))) != compared(level, levels[0]), (text, level)


@pytest.mark.parametrize("levels", [(3, 2, 1), (1, 2, 3), (3.0, 2.0, 1.0)])
def test_categories_that_are_numbers_are_compared_as_numbers(levels: tuple[Any, ...]) -> None:
    """Whatever their order, and however the comparison is written; equal ones are found by name or number."""
    grade = Feature("grade", "ordinal", levels)
    for text, kept in {
        "grade >= 2": {2, 3}, "2 <= grade": {2, 3}, "grade >= 2 + 0": {2, 3}, "grade < 2": {1}, "grade == 2": {2},
        "grade != 2": {1, 3},
    }.items():  # fmt: skip
        relation = parse_relation(text, {"grade": grade})
        assert {level for level in levels if not relation.broken_by(pd.DataFrame({"grade": [level]}))} == kept


def test_a_category_has_no_order_though_it_may_be_a_number() -> None:
    """Which counts where it stands in a sum."""
    zone = {"zone": Feature("zone", "categorical", (1, 2, 3))}
    with pytest.raises(DatasetError, match="zone is categorical, which has no order"):
        parse_relation("zone >= 2", zone)
    assert parse_relation("zone != 2", zone).broken_by(pd.DataFrame({"zone": [2]}))
    assert parse_relation("zone + 0 >= 2", zone).broken_by(pd.DataFrame({"zone": [1]}))


def test_rounding_breaks_nothing_and_strict_bounds_are_left() -> None:
    """A sum within a billionth of its range counts as the bound itself."""
    origin = frame()
    assert read("income <= 0.1 * age").kept(frame(income=3.0), frame(income=3.0000000001, age=30)).all()
    assert not read("income <= 40").kept(origin, frame(income=40.000001)).any()
    assert not read("income < 40").kept(origin, frame(income=40.0)).any()
    assert read("income < 40").kept(origin, frame(income=39.99999)).all()
    few = read("at most 0 of [income, age] change")
    assert few.kept(origin, frame(income=30.0000000001)).all()
    assert not few.kept(origin, frame(income=30.001)).any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the constraint '' is no text; write such as 'loan <= 5 * income'"),
        (5, "the constraint 5 is no text"),
        ("3 <= 5", "names no feature"),
        ("income <= agee", "names 'agee' at position 11, which is no feature; did you mean 'age'?"),
        ("income <= 5 * ", "position 14, its end: expected a number or the name of a feature"),
        ("income", "position 7, its end: expected a comparison such as <=, or one of changes"),
        ("income <= 5 5", "position 13, '5': expected the end"),
        ("income * age <= 5", "position 10, 'age': expected a number; a product of features is not linear"),
        ("income / 0 <= 5", "position 10, '0': expected a number other than 0"),
        ("income <= 1e400", "position 16, its end: expected numbers from 1e-100 to 1e+100 in size"),
        ("1e308 * income <= 1e308", "expected numbers from 1e-100 to 1e+100 in size"),
        ("income / 1e-320 >= 0", "expected numbers from 1e-100 to 1e+100 in size"),
        ("age <= 1e200 * 1e200 * income <= 3", "expected numbers from 1e-100 to 1e+100 in size"),
        ("job <= 5", "position 5, '<=': expected == or !=; job is categorical, which has no order"),
        ("job + 1 <= 5", "position 1, 'job': expected a number; job is categorical; compare it by =="),
        ("job == nurse", "position 8, 'nurse': expected a category of job; allowed: none, clerk, truck driver"),
        ("job increases", "position 1, 'job': expected a feature with an order; job is categorical"),
        ("if income > 5", "position 14, its end: expected 'then'"),
        ("income > 5 or age > 3", "position 12, 'or': expected the end; 'a or b' is 'if ... then b', with the"),
        ("not income > 5", "; in place of 'not' stands the opposite comparison"),
        ("IF income > 5 then age > 3", "; 'if' and other words of relations are in small letters"),
        ("income ≤ 5", "position 8, '≤'; comparisons are <=, >="),
        ("income > 5 & age > 3", "position 12, '&'; conditions are joined by 'and'"),
        ("if income > 5: age > 3", "position 14, ':'; an implication is 'if ... then ...'"),
        ("income <= 1.000,50", "position 16, ',': expected the end; numbers are written as 1000.5, and lists as"),
        ("income <= 5 %", "position 13, '%'; numbers have no units; names other than words"),
        ("income > 5 and (age > 3)", "position 21, '>': expected ')'; brackets hold sums, and no comparisons"),
        ("job in clerk", "position 8, 'clerk': expected a list, such as [a, b]"),
        ("job in [clerk none]", "position 15, 'none': expected ',' or ']'"),
        ("at most 2.5 of [age, job] change", "position 9, '2.5': expected a whole number"),
        ("at most 2 of [age, job] change", "2 different features at position 14; at most 2 of them always change, so"),
        ("at most 1 of [age; job] change", "position 18, ';'; items of a list stand between commas"),
        ("at most 1 of [age, job]", "position 24, its end: expected 'change'"),
        ("age <= 1_000", "position 8, '1'; numbers are written as 1000.5"),
        ("years <= 3", "names 'years' at position 1, which is no feature; allowed: income, age, `years at-home`"),
        ("age >= 2020-01-01", "holds the date 2020-01-01; dates are days since 1970-01-01"),
        ("age >= 01.02.2020", "holds the date 01.02.2020; dates are days since 1970-01-01"),
        ("age >= 1/2/2020", "holds the date 1/2/2020; dates are days since 1970-01-01"),  # no quotient
        ("age & income", "position 5, '&'; conditions are joined by 'and'; names other than words"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_place(text: Any, words: str) -> None:
    """An error names what stands where, and what was expected."""
    with pytest.raises(DatasetError) as fault:
        read(text)
    assert words in str(fault.value)


def test_rows_that_break_a_relation_are_told_together() -> None:
    """Each by itself, as one row after another; one about changes nobody breaks, and of no rows none does."""
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "k": [0, 1, 0, 1]})
    known = {"a": Feature("a", "integer", scale=(1, 4)), "k": Feature("k", "binary", (0, 1))}
    for text, broken in {
        "a >= 3": [True, True, False, False],
        "if k == 1 then a > 2": [False, True, False, False],
        "a <= 3 * k + 1": [False, False, True, False],
        "if a changes then k changes": [False] * 4,
    }.items():
        relation = parse_relation(text, known)
        assert relation.broken_by(frame).tolist() == broken, text
        assert [bool(relation.broken_by(frame.iloc[[place]])[0]) for place in range(4)] == broken
        assert relation.broken_by(frame.iloc[:0]).tolist() == []


@pytest.mark.parametrize(
    ("text", "hint"), [("a =< 3", "comparisons are <=, >="), ("a => 3", "comparisons are"), ("a ~ 3", "backticks")]
)
def test_a_comparison_that_is_none_is_told_those_that_are(text: str, hint: str) -> None:
    with pytest.raises(DatasetError, match=hint):
        parse_relation(text, {"a": Feature("a", "integer", scale=(1, 4))})
