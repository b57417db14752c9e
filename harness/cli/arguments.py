"""What a user writes on the command line, as Hydra's grammar takes it; and Hydra's complaints as a sentence."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    InterpolationKeyError,
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from harness.core.errors import choices
from harness.core.packages import CONF

# A feature's attribute on the command line; and what begins a name that Hydra's grammar has no room for: it is followed
# by the name's bytes in hexadecimal.
ATTRIBUTE = re.compile(
    r"(features|dataset\.causality)\.(.+?)"
    r"(\.(?:(?:kind|actionability|bounds|clip|special|categories|order|missing|may_be_missing|decimal|thousands|format"
    r"|weight|weight_up|weight_down|percentile|costs|formula|parents|learn)(?==)|grid(?=[.=])).*)",
    re.DOTALL,
)
ODD = "utf8_hex_"
GROUPS = "dataset|model|method|metrics"
OWN = {  # by group, the choice that takes a file of one's own, and how it is given
    "dataset": ("csv", "dataset=csv dataset.path={} dataset.target=COLUMN"),
    "model": ("file", "model=file model.path={}"),
}
OUTSIDE = r",(?![^\[\]]*\])"  # a comma outside of brackets


def readable(argument: str) -> str:
    """Take an argument that Hydra's grammar would not, as it is meant.

    ``features.NAME.ATTRIBUTE=...`` and ``dataset.causality.NAME...=...`` add to a mapping, without ``++``, whatever
    characters the name has; what is ``desired`` may begin with ``<`` or ``>``, and names, paths and categories may
    have any letters and signs, without a second pair of quotes.

    >>> readable("desired=>= 12,<= 3")
    'desired=">= 12","<= 3"'
    >>> readable("dataset.immutable=[Größe, sex]")
    'dataset.immutable=["Größe","sex"]'
    >>> readable("features.a@b.weight=2")  # no choice of a group, as Hydra would read it
    '++features.utf8_hex_614062.weight=2'
    >>> readable("export.sep=;"), readable("export.decimal=,")  # as a shell hands on export.sep=";"
    ('export.sep=";"', 'export.decimal=","')
    >>> readable("constraints=[at most 1 of [a, b] change, a >= b]")
    'constraints=["at most 1 of [a, b] change","a >= b"]'

    Raises
    ------
    HydraException
        For an argument that would leave out what every run needs.
    """
    if re.fullmatch(rf"({GROUPS})=(null)?", argument):
        raise HydraException(f"{argument} chooses nothing; 'python -m harness list' names what there is.")
    if match := re.fullmatch(r"~(\w+)(=.*)?", argument):
        raise HydraException(f"{argument} takes away what every run needs; give {match[1]} another value.")
    if re.match(r"[+~]*[=@]", argument):
        raise HydraException(f"{argument} names no setting; write KEY=VALUE.")
    group = rf"\+*({GROUPS}|experiment)|[^=]*@[^=]*"  # Hydra takes any key with an @ for a group
    if not ATTRIBUTE.fullmatch(argument) and re.fullmatch(
        rf"({group})=(true|false|null|[-+]?(nan|inf|[\d_.]+(e[-+]?\d+)?))", argument, re.I
    ):
        raise HydraException(f"{argument} is no choice; 'python -m harness list' names what there is.")
    if argument.startswith(("desired=", "dataset.desired=")):
        argument = re.sub(r"(?<=[=,])\s*([<>][^,]*)", r'"\1"', argument)
    elif match := ATTRIBUTE.fullmatch(argument):
        place, name, rest = match.groups()
        if name.startswith(ODD) or not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII):
            name = ODD + name.encode(errors="surrogateescape").hex()
        argument = f"++{place}.{name}{rest}"
    elif argument.startswith(("features.", "dataset.causality.", "dataset.discretise")):
        argument = f"++{argument}"
    return (
        _quoted(argument)
        if re.match(r"(\+\+)?(features\.|dataset\.|model\.|export\.|desired=|factuals=|constraints=)", argument)
        else argument
    )


def _quoted(argument: str) -> str:
    """Put quotes about the values of an argument that Hydra cannot read without."""
    key, equals, value = argument.partition("=")
    if not equals or '"' in value:
        return argument
    with contextlib.suppress(HydraException):
        OverridesParser.create().parse_override(argument)
        return argument

    def quoted(text: str) -> str:
        text = text.strip()
        whole = len(text) > 1 and text[0] == text[-1] == "'"
        return text if whole else f'"{text}{chr(92) * (len(text) - len(text.rstrip(chr(92))))}"'

    if value.startswith("[") and value.endswith("]"):
        return f"{key}=[{','.join(map(quoted, re.split(OUTSIDE, value[1:-1])))}]"
    parts = value.split(",")
    return f"{key}={','.join(map(quoted, parts)) if all(map(str.strip, parts)) else quoted(value)}"


def plain_names(entries: Any) -> Any:
    """A mapping by feature with the names that ``readable`` wrote otherwise as they are."""
    if not isinstance(entries, Mapping):
        return entries
    return {
        bytes.fromhex(name.removeprefix(ODD)).decode(errors="replace") if str(name).startswith(ODD) else name: entry
        for name, entry in entries.items()
    }


def sentence(fault: BaseException, sweeps: bool = True) -> str:
    """What was wrong on the command line, of a program that ``sweeps`` over several values, and what is allowed."""
    if isinstance(fault, MissingConfigException) and fault.missing_cfg_file and fault.options:
        group, _, wanted = fault.missing_cfg_file.rpartition("/")
        first, _, path = fault.missing_cfg_file.partition("/")
        if first in OWN and re.search(r"\.\w+$", path):
            return f"there is no {first} {path!r}; a file of your own is given by {OWN[first][1].format(path)}."
        return f"there is no {group} {wanted!r}; {choices(wanted, fault.options)}"
    cause = fault.__cause__
    if isinstance(cause, OmegaConfBaseException) and isinstance(cause.parent_node, DictConfig) and cause.key:
        level = str(cause.full_key or cause.key).rpartition(".")[0]
        known = [str(key) for key in cause.parent_node if key != "hydra"]
        where = f" in {level}" if level else ""
        return f"there is no setting {cause.key!r}{where}; {_elsewhere(cause, level) or choices(cause.key, known)}"
    if isinstance(fault, InterpolationKeyError | InterpolationToMissingValueError):
        why = str(fault).partition("\n")[0]
        name = fault.full_key or "something"
        return f"{name} refers to a setting that there is not here ({why}); give {fault.full_key or 'it'} a value."
    if isinstance(fault, MissingMandatoryValue):
        return f"{fault.full_key!r} has no value; give it one in place of '???'."
    if isinstance(fault, OverrideParseException):
        why = str(fault.message).partition("See https")[0].strip()
        return (
            f"{fault.override} cannot be read ({' '.join(why.split())}); write KEY=VALUE, and quotes around a value of "
            f"other than letters, digits and simple signs: 'KEY=\"VALUE\"'."
        )
    if match := re.match(r"Ambiguous value for argument '(.*)'", str(fault)):
        key, _, values = match[1].partition("=")
        remedy = "add -m to run each of them" if sweeps else "give one of them"
        return f"{match[1]} names several values; {remedy}, or write {key}=[{values}] for a list."
    return " ".join(str(fault).split())


def _elsewhere(cause: OmegaConfBaseException, level: str) -> str:
    """Where a setting is one that is none at this level: within a choice, or of a file of one's own; else empty."""
    node: Any = cause.parent_node
    inside = [group for group in OWN if not level and cause.key in {*(node.get(group) or ())}]
    if inside:
        return f"write {inside[0]}.{cause.key}."
    if level in OWN and cause.key in {*OmegaConf.load(CONF / level / f"{OWN[level][0]}.yaml")}:
        return f"it is one of {level}={OWN[level][0]}."
    return ""
