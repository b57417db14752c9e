"""Sentences that name settings of the command line, for who calls Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import Logger

from harness.core.errors import HarnessError

_WORDS = {"true": "True", "false": "False", "null": "None"}
_VALUE = r"\[[^\]]*\]|\"[^\"]*\"|'[^']*'|[^\s;,()]*[^\s;,().]"
_OF_FEATURE = re.compile(rf"\bfeatures\.(?P<name>.+?)\.(?P<key>[a-z_]+)\b(?:=(?P<value>{_VALUE}))?")
_OF_SOURCE = re.compile(rf"\bmodel\.(?P<key>columns|output|scores|activation)\b(?:=(?P<value>{_VALUE}))?")
_QUOTED = re.compile(r"((?<![\w=\[,])(?<!, )(?:'[^']*'|\"[^\"]*\"|`[^`]*`)(?!\w))")  # what is no value of a setting
_SETTING = re.compile(rf"(?<![\w.'\"])(?:(?:model|dataset|method)\.)?(?P<key>[a-z_]+)=(?P<value>{_VALUE})")


_within = ContextVar("within", default=False)  # whether a Python function is called, and no command


@contextmanager
def python_errors() -> Iterator[None]:
    """Have errors, and what ``warn`` says, name arguments instead of settings."""
    before = _within.set(True)
    try:
        yield
    except HarnessError as fault:
        text = in_python(str(fault))
        if text == str(fault):
            raise
        raise type(fault)(text) from fault
    finally:
        _within.reset(before)


def warn(logger: Logger, text: str) -> None:
    """Log a sentence as a warning, which a notebook shows without having set up any logging."""
    logger.warning("%s", in_python(text) if _within.get() else text)


def in_python(text: str) -> str:
    """A sentence with arguments in place of settings; what it quotes, such as a user's own text, stays.

    >>> in_python("set features.the age.kind=categorical, or rho=null")
    "set features={'the age': {'kind': 'categorical'}}, or rho=None"
    >>> in_python("such as model.classes=[bad,good]")
    "such as classes=['bad', 'good']"
    >>> in_python("set model.scores=logits, and model.output to one of a, b")
    "set ModelSource(..., scores='logits'), and output of ModelSource to one of a, b"
    >>> in_python("take features.b.may_be_missing away, or null for the model's own rule")
    "take features={'b': {'may_be_missing': ...}} away, or None for the model's own rule"
    >>> in_python("or dataset.missing for all columns")
    'or missing for all columns'
    >>> in_python("there is no my_dataset.missing.csv")
    'there is no my_dataset.missing.csv'
    >>> in_python("set 'task: classification'"), in_python("set task: regression, or another target")
    ("set task='classification'", "set task='regression', or another target")
    >>> in_python("the command line has no setting 'dorp'")
    "the call has no setting 'dorp'"
    >>> in_python("the constraint 'age > 3 and loan=5' has no end; set features.b.kind=ordinal")
    "the constraint 'age > 3 and loan=5' has no end; set features={'b': {'kind': 'ordinal'}}"
    """
    parts = _QUOTED.split(text)
    text = "".join(part if place % 2 else _translated(part) for place, part in enumerate(parts))
    return re.sub(r"'?\btask: (regression|classification)\b'?", r"task='\1'", text)


def _translated(text: str) -> str:
    text = _OF_FEATURE.sub(_attribute, text)
    text = _OF_SOURCE.sub(_of_source, text).replace("ModelSource at null", "ModelSource at None")
    text = _SETTING.sub(lambda match: f"{match['key']}={_literal(match['value'])}", text)
    text = re.sub(r"(?<![\w'\"])null(?![\w'\"])", "None", text)
    text = re.sub(r"(?<![\w.])dataset\.missing(?![\w.])", "missing", text)
    return text.replace("on the command line", "in the call").replace("the command line", "the call")


def _attribute(match: re.Match[str]) -> str:
    value = "..." if match["value"] is None else _literal(match["value"])
    return f"features={{{match['name']!r}: {{{match['key']!r}: {value}}}}}"


def _of_source(match: re.Match[str]) -> str:
    """What ``pose`` takes of a model of another library within its ``ModelSource``."""
    key, value = match["key"], match["value"]
    return f"{key} of ModelSource" if value is None else f"ModelSource(..., {key}={_literal(value)})"


def _literal(value: str) -> str:
    """A value of the command line as Python writes it."""
    if value.startswith("["):
        return f"[{', '.join(_literal(part.strip()) for part in value[1:-1].split(',') if part.strip())}]"
    if value in _WORDS:
        return _WORDS[value]
    if value[0] in "'\"{" or re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?|None|True|False|\.\.\.", value):
        return value
    return repr(value)
