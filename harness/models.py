"""Train, store and load the estimators under explanation; read the models of others, and trust nobody."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from harness import pipeline
from harness.classifier import Classifier, Whole, space_inputs
from harness.errors import HarnessError, choices
from harness.problem import Feature, Space
from harness.scorecard import wrapped

log = logging.getLogger(__name__)

LARGEST = 500_000_000  # bytes of a model file, and of a skops file's schema once unpacked
UNPACKED = 2_000_000_000  # bytes of all that a skops file holds
MEMBERS = 100_000  # files in a skops file
PICKLES = (".joblib", ".pkl", ".pickle")
ESTIMATORS = re.compile(r"(sklearn|(xgboost|lightgbm)\.sklearn|harness\.torch_mlp)(\.[a-z_]\w*)*", re.ASCII)
# Types that fitted models hold beside estimators: plain data, and objects whose construction runs nothing foreign.
PARTS = {
    "builtins.bytearray", "builtins.bytes", "builtins.complex", "builtins.dict", "builtins.frozenset",
    "builtins.NoneType", "builtins.range", "builtins.slice",
    "collections.OrderedDict", "collections.defaultdict", "collections.deque",
    "harness.scorecard.Bin", "harness.scorecard.Card", "harness.scorecard.ScorecardClassifier",
    "harness.scorecard.ScorecardRegressor", "harness.scorecard.Variable",
    "lightgbm.basic.Booster", "xgboost.core.Booster",
    "numpy.dtype", "numpy.generic", "numpy.number", "numpy.integer", "numpy.floating",
    "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel", "sklearn.gaussian_process.kernels.DotProduct",
    "sklearn.gaussian_process.kernels.Matern", "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF", "sklearn.gaussian_process.kernels.RationalQuadratic",
    "sklearn.gaussian_process.kernels.Sum", "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._dist_metrics.EuclideanDistance64", "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.metrics._scorer._PassthroughScorer", "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.KFold", "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.model_selection._split.RepeatedStratifiedKFold", "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.StratifiedShuffleSplit",
    "sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree", "sklearn.utils._bunch.Bunch",
}  # fmt: skip
SEVERAL = "it has several outputs, and one is explained; train a model for one target"
CONVERT = "convert it where it was made with skops.io.dump(model, 'model.skops')"
NEAR = 1e-9  # scores this near are equal


def train(
    estimator: Any,
    space: Space,
    frame: pd.DataFrame,
    labels: np.ndarray,
    classes: tuple[Any, ...],
    threshold: float | None = None,
    cache: Path | None = None,
    decimals: int | None = None,
) -> Classifier:
    """An estimator fitted to the scaled columns of the training rows; taken from ``cache`` where it was fitted before.

    One that says itself what its ``inputs`` are, as scorecards do, is fitted to the decoded rows.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn estimator.
    frame, labels
        Decoded training rows and their class names (numbers, for regression).
    classes
        Class names; their positions are the codes that the estimator learns. Empty for regression.
    threshold
        Class 1 iff the score exceeds it; the estimator's own rule where None.
    decimals
        To which the fitted weights are rounded; the rounded ones are the model.

    Raises
    ------
    HarnessError
        If estimator and labels do not fit.
    """
    if why := misfit(estimator, classes):
        raise HarnessError(f"{type(estimator).__name__} {why}.")
    inputs, decoded = space.encode(frame), hasattr(estimator, "inputs")
    targets = _codes(labels, classes) if classes else np.asarray(labels, dtype=float)
    if len(np.unique(targets)) < 2:
        raise HarnessError(
            f"all training rows have the label {labels[0]}; a model needs two. Use a larger split, or stratify it."
        )
    content = _content(estimator, inputs, targets, space if decoded else None)
    path = None if cache is None else cache / f"{content}.skops"
    fitted = _cached(path)
    if fitted is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=sklearn.exceptions.ConvergenceWarning)
            fitted = estimator.fit(frame, targets, space) if decoded else estimator.fit(inputs, targets)
        fitted = getattr(fitted, "best_estimator_", fitted)  # of a search over settings
        if path is not None:
            _keep(fitted, path)
    if decimals is not None:
        _round(fitted, decimals)
    return Classifier(fitted, fitted.inputs(space) if decoded else space_inputs(space), classes, threshold)


def _round(fitted: Any, decimals: int) -> None:
    """Round the weights of a linear model or a network, in place."""
    weights = [getattr(fitted, name, None) for name in ("coef_", "intercept_")]
    for part in [*weights, *getattr(fitted, "coefs_", ()), *getattr(fitted, "intercepts_", ())]:
        if isinstance(part, np.ndarray):
            part[...] = np.round(part, decimals)
    if not hasattr(fitted, "coefs_") and not isinstance(weights[0], np.ndarray):
        raise HarnessError(
            f"decimals={decimals} rounds weights, and {type(fitted).__name__} has none; set model.decimals=null."
        )


def misfit(estimator: Any, classes: tuple[Any, ...]) -> str | None:
    """Why an estimator cannot learn labels of these classes (of numbers, where empty), or None where it can."""
    if classes and is_regressor(estimator):
        return f"predicts numbers, but the labels are classes ({', '.join(map(str, classes))})"
    if not classes and is_classifier(estimator):
        return "predicts classes, but the labels are numbers"
    return None


def save(estimator: Any, path: Path) -> None:
    """Store a fitted estimator as a skops file, whole or not at all."""
    from skops import io

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    try:
        io.dump(estimator, temporary, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: Path, trust: bool = False) -> Any:
    """Read a skops file of at most 500 MB, 2 GB unpacked.

    Trusted are estimators of scikit-learn, XGBoost and LightGBM, and the plain data and helpers that fitted ones hold
    (``PARTS``); no function of anybody's is called. ``trust`` takes every type.

    Raises
    ------
    HarnessError
        If the file is missing, no skops file, larger or other than such files are, or holds any other type.
    """
    from skops import io

    _check_size(path)
    _check_archive(path)
    try:
        types = io.get_untrusted_types(file=path)
        strange = [name for name in types if not _trusted(name)]
    except Exception as fault:
        raise HarnessError(f"{path} is no skops file ({_short(fault)}); save the model with skops.io.dump.") from fault
    if strange and not trust:
        raise HarnessError(
            f"{path} holds types that are not trusted: {', '.join(strange)}; save a scikit-learn, XGBoost or LightGBM "
            f"model with nothing else in it."
        )
    try:
        loaded = io.load(path, trusted=types)
        _check_trees(loaded)
    except Exception as fault:
        raise HarnessError(f"{path} is damaged ({_short(fault)}); save the model again with skops.io.dump.") from fault
    return loaded


def _check_size(path: Path) -> None:
    if not path.is_file():
        raise HarnessError(f"there is no model file {path}; give the path of an existing skops file.")
    if (size := path.stat().st_size) > LARGEST:
        raise HarnessError(f"{path} has {size:,} bytes; a model file may have {LARGEST:,}. Save a smaller model.")


def _check_archive(path: Path) -> None:
    """Look at a zip's table of contents before anything is unpacked."""
    why = None
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as fault:
        with path.open("rb") as file:
            pickled = file.read(1) == b"\x80"
        why = f"it is a pickle, which may run anything: {CONVERT}" if pickled else _short(fault)
        raise HarnessError(f"{path} is no skops file ({why}); save the model with skops.io.dump.") from fault
    names = [member.filename for member in members]
    if "schema.json" not in names:
        why = "it has no schema.json"
    elif len(set(names)) < len(names):
        why = "it holds two files of one name"
    elif odd := [name for name in names if not re.fullmatch(r"[\w-]+\.(npy|npz|bin|json)", name, re.ASCII)]:
        why = f"it holds a file {odd[0]!r}"
    elif any(member.flag_bits & 1 for member in members):
        why = "it is encrypted"
    elif len(members) > MEMBERS or sum(member.file_size for member in members) > UNPACKED:
        why = f"unpacked it would have more than {UNPACKED:,} bytes or {MEMBERS:,} files"
    elif archive.getinfo("schema.json").file_size > LARGEST:
        why = f"its schema.json would have more than {LARGEST:,} bytes"
    if why is not None:
        raise HarnessError(f"{path} is no skops file ({why}); save the model with skops.io.dump.")


def _trusted(name: str) -> bool:
    """Whether a type may be built from a file: one of ``PARTS``, or an estimator of a known library."""
    module, _, kind = name.rpartition(".")
    if name in PARTS or not ESTIMATORS.fullmatch(module):
        return name in PARTS
    try:
        found = getattr(importlib.import_module(module), kind)
    except Exception:
        return False
    return isinstance(found, type) and found.__module__ == module and issubclass(found, BaseEstimator)


def _check_trees(loaded: Any) -> None:
    """Raise ``ValueError`` for trees whose nodes point outside of them: compiled code follows them unasked."""
    for part in _parts(loaded):
        if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
            _check_tree(part.tree_, part.n_features_in_)
        elif isinstance(part, GradientBoostingClassifier | GradientBoostingRegressor) and hasattr(part, "estimators_"):
            for tree in np.ravel(part.estimators_):
                _check_tree(tree.tree_, part.n_features_in_)
        elif hasattr(part, "_predictors"):
            for predictor in (tree for stage in part._predictors for tree in stage):
                nodes = predictor.nodes
                inner = nodes["is_leaf"] == 0
                _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], inner, part._n_features)
                sets = len(predictor.raw_left_cat_bitsets)
                if (nodes["bitset_idx"][inner & (nodes["is_categorical"] == 1)] >= sets).any():
                    raise ValueError("a tree splits on categories that it does not list")


def _check_tree(tree: Any, width: int) -> None:
    if not len(tree.children_left) == len(tree.value) == tree.node_count >= 1:
        raise ValueError("a tree has fewer nodes than it says")
    inner = tree.children_left != -1
    _check_nodes(tree.children_left, tree.children_right, tree.feature, inner, width)


def _check_nodes(left: np.ndarray, right: np.ndarray, feature: np.ndarray, inner: np.ndarray, width: int) -> None:
    own = np.flatnonzero(inner)
    for side in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        if ((side <= own) | (side >= len(left))).any():
            raise ValueError("a tree has a node that is no node's child")
    if ((feature[inner] < 0) | (feature[inner] >= width)).any():
        raise ValueError("a tree splits on a column that there is not")


def _parts(loaded: Any) -> Iterator[Any]:
    """Every object that a loaded one consists of."""
    stack, seen = [loaded], set()
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | np.generic):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list | tuple | set):
            stack.extend(part)
        elif isinstance(part, np.ndarray):
            stack.extend(part.ravel() if part.dtype == object else ())
        else:
            stack.extend(getattr(part, "__dict__", {}).values())


def _short(fault: BaseException) -> str:
    """The first line of an error, or its kind where it says nothing."""
    lines = str(fault).strip().splitlines()
    return lines[0].strip().rstrip(".")[:200] if lines else type(fault).__name__


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def name_of(path: str) -> str:
    """The stem of a model file, fit to be part of a folder's name.

    >>> name_of("models/My model (2).skops")
    'My_model_2'
    """
    return re.sub(r"[^\w.]+", "_", Path(path).stem, flags=re.ASCII).strip("_.") or "file"


def read(path: str | Path, trust: bool = False) -> tuple[Any, bool]:
    """A fitted model from a file, and whether reading it needed ``trust``.

    Raises
    ------
    HarnessError
        As ``load``; for pickles without ``trust``, since reading one runs code of whoever made it; and for files that
        hold no fitted model.
    """
    path = Path(path).expanduser()
    _check_size(path)
    suffix = path.suffix.lower()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if suffix in PICKLES:
            found, needed = _unpickle(path, trust), True
        elif suffix != ".skops":
            raise HarnessError(f"{path} ends in {suffix!r}; {choices(suffix, ('.skops', *PICKLES))}.")
        else:
            try:
                found, needed = load(path), False
            except HarnessError:
                if not trust:
                    raise
                found, needed = load(path, trust=True), True
    for warning in told:
        if isinstance(warning.message, InconsistentVersionWarning):
            other = warning.message.original_sklearn_version
            log.warning("%s was saved by scikit-learn %s; this is %s.", path, other, sklearn.__version__)
            break
    if isinstance(found, BaseSearchCV):
        if not hasattr(found, "best_estimator_"):
            raise HarnessError(f"{path} holds a {type(found).__name__} without its best model; fit it with refit=True.")
        found = found.best_estimator_
    if not hasattr(found, "predict"):
        raise HarnessError(f"{path} holds a {type(found).__name__}; save a fitted estimator or Pipeline.")
    try:
        check_is_fitted(found)
    except NotFittedError:
        raise HarnessError(f"the {type(found).__name__} in {path} is not fitted; fit it before it is saved.") from None
    except Exception as fault:
        raise HarnessError(f"{path} holds a {type(found).__name__}; save a fitted estimator or Pipeline.") from fault
    return wrapped(found), needed


def _unpickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise HarnessError(
            f"{path} is a pickle, and reading one runs code of whoever made it; {CONVERT}, or set model.trust=true "
            f"if you trust its maker."
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as fault:
        raise HarnessError(f"{path} cannot be unpickled ({_short(fault)}); {CONVERT}.") from fault


def from_file(
    path: str | Path,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    *,
    name: str = "the data",
    trust: bool = False,
    threshold: float | None = None,
    names: Sequence[Any] | None = None,
) -> Classifier:
    """A fitted model of somebody's, checked against the data.

    Parameters
    ----------
    path
        A skops file; with ``trust`` also a pickle.
    frame
        Decoded rows on which what is known of the model's inside is compared with its predictions.
    classes
        Class names of the data; empty for regression.
    name
        What errors call the data.
    threshold
        The model's second class iff its score exceeds this; the model's own rule where None.
    names
        What the data call the model's classes, in the order of its ``classes_``, where the model calls them otherwise.

    Raises
    ------
    HarnessError
        As ``read``, and if model and data do not fit.
    """
    path = Path(path).expanduser()
    model, needed = read(path, trust)
    own = Whole(model, (), path=str(path), sha256=checksum(path), trusted=needed)
    return _fitted(own, space, frame, classes, name, threshold, names)


def adopt(
    model: Any,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    *,
    name: str = "the data",
    threshold: float | None = None,
    names: Sequence[Any] | None = None,
) -> Classifier:
    """As ``from_file``, of a fitted model in memory."""
    return _fitted(Whole(wrapped(model), ()), space, frame, classes, name, threshold, names)


def _fitted(
    own: Whole,
    space: Space,
    frame: pd.DataFrame,
    classes: Sequence[Any],
    name: str,
    threshold: float | None,
    names: Sequence[Any] | None,
) -> Classifier:
    whole, faults = _laid_out(own, space, name)
    labels, ordered, unlike = _named(own.model, classes, names)
    if faults := [*faults, *unlike]:
        raise HarnessError(_listed(own.path, name, faults))
    return assemble(whole, space, ordered, labels, threshold, frame, name)


def assemble(
    whole: Whole,
    space: Space,
    classes: Sequence[Any],
    labels: Sequence[Any],
    threshold: float | None,
    frame: pd.DataFrame,
    name: str = "the data",
) -> Classifier:
    """The classifier of a whole model; opaque where nobody can look inside, or where that shows another model.

    Raises
    ------
    HarnessError
        If the model cannot read the rows of ``frame``.
    """
    estimator, inputs, faults, opaque = pipeline.describe(whole.model, space, whole.columns)
    if faults:
        raise HarnessError(_listed(whole.path, name, faults))
    inside = Classifier(estimator, inputs, tuple(classes), threshold, labels=tuple(labels))
    outside = replace(inside, estimator=whole, inputs=(), whole=whole)
    try:
        with warnings.catch_warnings(action="ignore"):
            several = np.ndim(whole.model.predict(whole.table(frame.iloc[:1]))) > 1
        if several:
            raise ValueError(SEVERAL)
        predicted = outside.graded(frame)
    except Exception as fault:
        raise HarnessError(_listed(whole.path, name, [f"asked about its rows, it fails: {_short(fault)}"])) from fault
    opaque = opaque or _difference(inside, whole, frame, predicted)
    return replace(inside, whole=whole) if opaque is None else replace(outside, opaque=opaque)


def _difference(
    inside: Classifier, whole: Whole, frame: pd.DataFrame, predicted: tuple[np.ndarray, np.ndarray]
) -> str | None:
    """Where estimator and inputs are another model than the whole one, as a sentence."""
    prefix = "nobody can look inside this model: what is known of its steps gives other"
    steps: Any = getattr(whole.model, "steps", ())
    try:
        if len(steps) > 1:
            with warnings.catch_warnings(action="ignore"):
                made = whole.model[:-1].transform(whole.table(frame))
            made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)
            matrix = inside.matrix(frame)
            # The last step may be a pipeline itself.
            if made.shape == matrix.shape and not hasattr(steps[-1][1], "steps") and (made != matrix).any():
                column = int(np.flatnonzero((made != matrix).any(axis=0))[0])
                return f"{prefix} values of {inside.inputs[column].feature} than they do"
        codes, scores = inside.graded(frame)
    except Exception as fault:
        return f"{prefix} inputs than its last step takes ({_short(fault)})"
    if (codes != predicted[0]).any():
        return f"{prefix} predictions than it does"
    return f"{prefix} scores than it does" if np.abs(scores - predicted[1]).max() > NEAR else None


def _listed(path: str, name: str, faults: Sequence[str]) -> str:
    return f"the model{f' in {path}' if path else ''} does not fit {name}: {'; '.join(dict.fromkeys(faults))}."


def _laid_out(whole: Whole, space: Space, name: str) -> tuple[Whole, list[str]]:
    """The model with the columns it takes, and what is wrong with them."""
    known = _attribute(whole.model, "feature_names_in_")
    count = _attribute(whole.model, "n_features_in_")
    if known is not None:
        columns = tuple(str(column) for column in known)
        lacking = [column for column in columns if column not in space.names]
        if lacking:
            hint = f"; {name} has {', '.join(space.names)}"
            return whole, [f"it takes the columns {', '.join(lacking)}, which {name} has not as features{hint}"]
    else:
        columns = space.names
        if count is not None and count != len(columns):
            said = f"{len(columns)}: {', '.join(columns)}"
            return whole, [f"it was trained on an array of {count} columns, and {name} has {said}"]
    logical = tuple(c for c in columns if _holds_logical(space[c]))
    return Whole(whole.model, columns, logical, known is not None, whole.path, whole.sha256, whole.trusted), []


def _holds_logical(feature: Feature) -> bool:
    return bool(feature.categories) and all(isinstance(value, bool) for value in feature.categories)


def _attribute(model: Any, name: str) -> Any:
    """An attribute of a model, or of a pipeline's first step that has it."""
    try:
        return getattr(model, name)
    except Exception:  # a pipeline hands on whatever its first step raises
        return None


def _named(
    model: Any, classes: Sequence[Any], names: Sequence[Any] | None
) -> tuple[tuple[Any, ...], tuple[Any, ...], list[str]]:
    """What the model calls its classes, what the data call them in the same order, and what is wrong with them."""
    own = _attribute(model, "classes_")
    if isinstance(own, list) or (own is None and (_attribute(model, "n_outputs_") or 1) > 1):
        return (), (), [SEVERAL]
    if not classes:
        if own is not None or not is_regressor(model):
            return (), (), ["it predicts classes, and the target is a number; choose a regression model"]
        return (), (), []
    told = ", ".join(map(str, classes))
    if own is None or not is_classifier(model):
        return (), (), [f"it predicts no classes, and the target is one of {told}; choose a classifier"]
    labels = tuple(np.asarray(own).tolist())
    said = ", ".join(map(str, labels))
    by_name = {str(value): value for value in classes}
    chosen = [str(value) for value in (labels if names is None else names)]
    if names is not None and (len(chosen) != len(labels) or sorted(chosen) != sorted(by_name)):
        listed = ", ".join(map(str, names))
        return (), (), [f"model.classes=[{listed}] must name each of {told} once, in the order of the model's {said}"]
    if sorted(chosen) != sorted(by_name):
        remedy = f"name them in the model's order, such as model.classes=[{','.join(map(str, classes))}]"
        return (), (), [f"its classes are {said}, and those of the target {told}; {remedy}"]
    return labels, tuple(by_name[value] for value in chosen), []


def _codes(labels: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
    codes = pd.Index(classes).get_indexer(pd.Index(labels))
    if (codes < 0).any():
        raise HarnessError(f"a training row has the label {labels[codes < 0][0]!r}; allowed: {list(classes)}.")
    return codes


def _content(estimator: Any, inputs: np.ndarray, targets: np.ndarray, space: Space | None) -> str:
    """What a fit depends on, as a hash: the data to the bit, the parameters, the library's version."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(inputs).tobytes())
    digest.update(np.ascontiguousarray(targets).tobytes())
    kind = type(estimator)
    parameters = sorted(estimator.get_params().items())
    digest.update(f"{kind.__module__}.{kind.__qualname__} {parameters!r} {sklearn.__version__}".encode())
    if space is not None:
        digest.update(repr(space).encode())
    return digest.hexdigest()[:32]


def _cached(path: Path | None) -> Any:
    if path is None or not path.is_file():
        return None
    try:
        return load(path)
    except Exception as fault:
        log.warning("the cached model %s cannot be read (%s); it is trained again.", path, fault)
        return None


def _keep(estimator: Any, path: Path) -> None:
    try:
        save(estimator, path)
    except Exception as fault:
        log.warning("the model cannot be cached in %s (%s); it will be trained again next time.", path.parent, fault)
