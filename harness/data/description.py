"""What a dataset's YAML states about it, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from harness.core.errors import DatasetError, choices
from harness.data import gaps
from harness.data.dataset import OPPOSITE

SPLIT = {"test_size": 0.25, "stratify": True, "seed": 0, "time": None}
TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Rows:
    """Where a dataset's rows come from, which of them are kept, and which are held out.

    Parameters
    ----------
    name
        Name of the dataset.
    sources
        The raw CSV files, one below the other, each as the arguments of ``Source``.
    read
        Further arguments of ``pandas.read_csv``.
    missing
        What becomes of missing cells where a feature's own ``missing`` says nothing else: ``error``, ``drop`` (the
        row), ``median`` or ``mean`` (of the training rows, rounded for integers; numbers only), ``most_frequent`` (of
        the training rows), ``category`` (a new value "missing"; no numbers), ``value`` (numbers keep their gaps, which
        are a state of their own; as ``category`` of others), or a number to fill in; of a feature also one of its
        categories. Kept are the gaps of columns that have some, and of features that say so themselves.
    empty
        Rows of which every feature holds this code are dropped.
    outliers
        Rows with a number this many standard deviations or more from its mean are dropped, after missing values.
    split
        ``{test_size, stratify, seed, time}`` (numbers are never stratified; ``time``: a column, the last rows by which
        are the test rows); ``none`` (train = test = all rows); ``files`` (the last file is the test split).
    published
        The file of the factuals that a paper explained, as the arguments of ``Source``.

    Raises
    ------
    DatasetError
        For an unknown ``missing``.
    """

    name: str
    sources: Sequence[Mapping[str, Any]]
    _: KW_ONLY
    read: Mapping[str, Any] | None = None
    missing: str | float = "error"
    empty: float | None = None
    outliers: float | None = None
    split: Mapping[str, Any] | str | None = field(default_factory=lambda: dict(SPLIT))
    published: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not gaps.fits(self.missing):
            raise DatasetError(
                f"'missing' of {self.name} cannot be {self.missing!r}; {choices(self.missing, gaps.REMEDIES)}, or a "
                f"number to fill in."
            )


@dataclass(frozen=True)
class Description(Rows):
    """A dataset's rows, and what its columns are.

    Parameters
    ----------
    target
        Name of the label; a column, unless ``label`` says where it comes from.
    desired
        Default of what a counterfactual should get; see ``parse_target``.
    features
        Names, or a mapping from name to attributes, which selects and orders the features; all columns but the label
        unless given. Attributes are ``kind`` (inferred: 0/1, booleans and two texts are binary, whole numbers integer,
        other numbers continuous, more texts categorical), ``categories`` (the sorted values of all rows),
        ``bounds`` (those of the training rows; an end may be null, the training rows' own, or infinite, which 1,000
        training ranges stand for; of a constant number that may change, one to either side), ``clip`` (ends that
        numbers beyond them are put to, null for none; of all rows and later people), ``actionability``
        (``free``; of a constant column ``immutable``), ``order``, ``special``, ``missing`` (what becomes of this
        column's missing cells) and ``may_be_missing`` (whether a counterfactual may change to missing; false).
    immutable
        Short for ``actionability: immutable`` of these features; those not selected may be among them.
    label
        ``{column, classes}``: the raw column, and a mapping from class name to the raw values it stands for.
    classes
        Raw values of the target, undesired first; sorted unless given. ``label`` gives the order otherwise.
    task
        ``classification`` or ``regression``.
    unbounded
        Numbers without ``bounds`` of their own have none, as in tables of papers that let counterfactuals leave the
        range of the data.
    drop
        Columns that are no features.
    overrides
        Feature attributes as in ``features``, applied last.
    constraints
        Relations between features that a counterfactual has to keep; see ``harness.core.relation_grammar``.
    causality
        Structural equations by endogenous feature; see ``harness.models.equations.equations``.
    discretise
        Makes every feature discrete: ``quantile``, ``median`` or ``levels``, or a mapping of the parameters of
        ``harness.data.discretise.Discretisation``. Numbers become intervals, ordinal features are one-hot encoded.

    Raises
    ------
    DatasetError
        For an unknown ``task``, and as ``Rows`` does; the rest is checked against the rows.
    """

    target: str
    desired: Any = OPPOSITE
    features: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None = None
    immutable: Sequence[str] = ()
    label: Mapping[str, Any] | None = None
    classes: Sequence[Any] | None = None
    task: str = "classification"
    unbounded: bool = False
    drop: Sequence[str] = ()
    overrides: Mapping[str, Mapping[str, Any] | None] | None = None
    constraints: Sequence[str] | None = None
    causality: Mapping[str, Mapping[str, Any] | None] | None = None
    discretise: str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(str(self.task), TASKS, f"'task' of {self.name} cannot be")
        for key in ("causality", "overrides"):
            if not isinstance(value := getattr(self, key), Mapping | None):
                raise DatasetError(f"{key!r} of {self.name} is {value!r}; give a mapping from features' names.")
        if not isinstance(self.features, Mapping | list | tuple | None):
            raise DatasetError(f"'features' of {self.name} is {self.features!r}; give names, or a mapping from them.")
        for key in ("immutable", "drop"):
            if isinstance(value := getattr(self, key), str) or not isinstance(value, Sequence):
                raise DatasetError(f"{key!r} of {self.name} is {value!r}; give a list of names, such as [age, sex].")
        if not isinstance(self.constraints, list | tuple | None):
            raise DatasetError(f"'constraints' of {self.name} is {self.constraints!r}; give a list of texts.")


def one_of(value: Any, allowed: Iterable[Any], but: str) -> Any:
    """The value, or an error that begins with ``but`` and ends with what is allowed."""
    allowed = list(allowed)
    if value not in allowed:
        raise DatasetError(f"{but} {value!r}; {choices(value, allowed)}.")
    return value
