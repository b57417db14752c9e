"""Whether settings are of the types and in the ranges that they have, before anything is made of them."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from harness.cli.process import LONGEST_WORD
from harness.core.errors import HarnessError
from harness.core.numbers import LONGEST, SEEDS, number, whole
from harness.evaluation.export import Form
from harness.execution.satisfied import ASK, LEAVE_OUT

LEAST_MEMORY, MOST_MEMORY = 0.05, 1_000_000  # gibibytes
MOST = 10_000  # counterfactuals of one question: each has a stored row
COUNTS = ("n_factuals", "n_counterfactuals", "jobs", "threads")
SECONDS = ("time_limit", "fit_time_limit", "group_time_limit")
LIMITS = (*SECONDS, "memory_limit")
SWITCHES = ("first_use", "force", "rescore", "dry")
EXAMPLES = {
    "optimise": "a number to each score, such as {coverage: 1}",
    "divide": "a list of features, such as [sex, race]",
    "constraints": "a list of relations between features, such as ['loan <= 5 * income']",
}
NAMED = {float: "a number", int: "a whole number", bool: "true or false", str: "a word", types.NoneType: "null"}


def whole_limits(plain: Mapping[str, Any]) -> dict[str, int]:
    """The limits that are whole numbers, as such: what is asked with 5.0 seconds is asked with 5."""
    return {key: int(plain[key]) for key in LIMITS if plain[key] is not None and float(plain[key]).is_integer()}


def validate(plain: Mapping[str, Any]) -> None:
    """Refuse settings that would fail late or in silence.

    Raises
    ------
    HarnessError
        Of the first that does not fit.
    """
    for key in COUNTS:
        _must(whole(plain[key]) and plain[key] >= 1, plain, key, "give a whole number of at least 1")
    _must(plain["n_counterfactuals"] <= MOST, plain, "n_counterfactuals", f"give a whole number from 1 to {MOST}")
    for key in ("seed", "model_seed", "factuals_seed"):
        allowed = f"give a whole number of at least 0, below {SEEDS}"
        _must(whole(plain[key]) and 0 <= plain[key] < SEEDS, plain, key, allowed)
    for key in SECONDS:
        allowed = f"give a number of seconds above 0, at most {LONGEST}"
        _must(number(plain[key]) and 0 < plain[key] <= LONGEST, plain, key, allowed)
    named = isinstance(plain["variant"], str | int | float | None) and not re.search(r"[/\\\s]", str(plain["variant"]))
    allowed = f"give a word without spaces and '/', of at most {LONGEST_WORD} bytes, or null for none"
    _must(named and len(str(plain["variant"]).encode()) <= LONGEST_WORD, plain, "variant", allowed)
    for key in SWITCHES:
        _must(isinstance(plain[key], bool), plain, key, "give true or false")
    limit = plain["memory_limit"]
    allowed = (
        f"give gibibytes from {LEAST_MEMORY}, which a worker needs to start, to {MOST_MEMORY}, or null for no limit"
    )
    _must(limit is None or (number(limit) and LEAST_MEMORY <= limit <= MOST_MEMORY), plain, "memory_limit", allowed)
    allowed = "give true, the name of a feature, or null for none"
    _must(plain["group"] is None or isinstance(plain["group"], bool | str), plain, "group", allowed)
    if plain["group"] and plain["n_counterfactuals"] != 1:
        raise HarnessError("a factual of a group has one counterfactual; leave n_counterfactuals at 1, or group out.")
    for key, of in (("optimise", Mapping), ("divide", list), ("constraints", list)):
        _must(isinstance(plain[key], of), plain, key, f"give {EXAMPLES[key]}")
    _must(all(map(number, plain["optimise"].values())), plain, "optimise", f"give {EXAMPLES['optimise']}")
    names = plain["metrics"].get("names") if isinstance(plain["metrics"], Mapping) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise HarnessError(f"metrics.names={names} does not fit; give a list such as [metrics.proximity.l1].")
    if plain["population"] not in {"accepted", "returned"}:
        raise HarnessError(f"population={plain['population']} does not exist; allowed: accepted, returned.")
    if plain["satisfied"] not in {LEAVE_OUT, ASK}:
        raise HarnessError(f"satisfied={plain['satisfied']} does not exist; allowed: {LEAVE_OUT}, {ASK}.")
    form = plain["export"]
    if not isinstance(form, Mapping) or set(form) - {"sep", "decimal", "excel"}:
        raise HarnessError(f"export={form} does not fit; it has sep, decimal and excel.")
    Form(**form)
    if plain["group"] and plain["satisfied"] == ASK:
        raise HarnessError(f"a group has only factuals that need a counterfactual; leave satisfied at {LEAVE_OUT}.")


def _must(fits: bool, plain: Mapping[str, Any], key: str, allowed: str) -> None:
    if not fits:
        value = "null" if plain[key] is None else plain[key]
        raise HarnessError(f"{key}={value} does not fit; {allowed}.")


def mistyped(maker: Callable[..., Any], given: Mapping[str, Any]) -> str | None:
    """What is wrong with the first value that does not fit the annotation of its parameter, or None where all fit.

    Looked at are numbers, texts, booleans, None and sequences and mappings of them; NaN and infinity are no numbers. A
    value that is the default fits.

    >>> def method(particles: int, box: float | None): ...
    >>> mistyped(method, {"particles": 2.5, "box": None})
    'particles is 2.5; give a whole number.'
    """
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return None
    for name in [name for name in given if name in parameters]:
        value, hint = given[name], _hint(maker, name)
        if value != parameters[name].default and not _fits(value, hint):
            shown = "null" if value is None else repr(value)
            return f"{name} is {shown}; give {' or '.join(dict.fromkeys(_words(hint)))}."
    return None


def _hint(maker: Callable[..., Any], name: str) -> Any:
    """What a parameter is annotated with: a field of a dataclass in the class that brings it."""
    classes = getattr(maker, "__mro__", ())
    for owner in (*classes, *(vars(each)["__init__"] for each in classes if "__init__" in vars(each)), maker):
        written = vars(owner).get("__annotations__", {}) if isinstance(owner, type) else inspect.get_annotations(owner)
        if name in written:
            holder = types.SimpleNamespace(__annotations__={name: written[name]})
            try:
                return get_type_hints(holder, vars(sys.modules[owner.__module__]))[name]
            except NameError:  # imported for a type checker alone
                return Any
    return Any


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _words(hint: Any) -> list[str]:
    return [NAMED.get(part) or ("a mapping" if get_origin(part) is Mapping else "a list") for part in _parts(hint)]


def _fits(value: Any, hint: Any) -> bool:
    return any(_fits_one(value, part) for part in _parts(hint))


def _fits_one(value: Any, part: Any) -> bool:
    if part in (float, int):
        return number(value) if part is float else whole(value)
    if part in NAMED:
        return isinstance(value, part)
    origin, inner = get_origin(part), get_args(part)
    if not isinstance(origin, type) or not issubclass(origin, Mapping | Sequence):
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(each, inner[1]) for each in value.values())
    alike = inner[1:] in {(), (...,)}
    return isinstance(value, list | tuple) and (not alike or all(_fits(each, inner[0]) for each in value))
