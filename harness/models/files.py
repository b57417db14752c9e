"""Store and load fitted estimators; files of unknown origin are checked before anything is built from them."""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
import warnings
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from harness.core.errors import HarnessError, choices, short
from harness.core.processes import ended_by
from harness.core.writing import replacing
from harness.models.runtime.source import SUFFIXES
from harness.models.scorecard import as_scorecard

log = logging.getLogger(__name__)

SCHEMA = "schema.json"  # the member of a skops file that names the classes
LARGEST = 500_000_000  # bytes of a model file, and of a skops file's schema once unpacked
UNPACKED = 2_000_000_000  # bytes of all that a skops file holds
LONGEST_NAME = 100  # characters of a file's name that become part of a folder's
MEMBERS = 100_000  # files in a skops file
PACKINGS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # of its files, that are unpacked no further than they are read
READING = "import sys, joblib; joblib.load(sys.argv[1])"
DEADLY = {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"}  # of what is damaged; others have other reasons
PICKLES = (".joblib", ".pkl", ".pickle")
ESTIMATORS = re.compile(r"(sklearn|(xgboost|lightgbm)\.sklearn|harness\.models\.torch_mlp)(\.[a-z_]\w*)*", re.ASCII)
# Types that fitted models hold beside estimators: plain data, and objects whose construction runs nothing foreign.
PARTS = {
    "builtins.bytearray", "builtins.bytes", "builtins.complex", "builtins.dict", "builtins.frozenset",
    "builtins.NoneType", "builtins.range", "builtins.slice",
    "collections.OrderedDict", "collections.defaultdict", "collections.deque",
    "harness.models.card.Bin", "harness.models.card.Card", "harness.models.scorecard.ScorecardClassifier",
    "harness.models.scorecard.ScorecardRegressor", "harness.models.card.Variable",
    "harness.models.votes.VotingForestClassifier",
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
    "sklearn.metrics._classification.accuracy_score", "sklearn.metrics._classification.balanced_accuracy_score",
    "sklearn.metrics._classification.f1_score", "sklearn.metrics._classification.fbeta_score",
    "sklearn.metrics._classification.matthews_corrcoef", "sklearn.metrics._classification.precision_score",
    "sklearn.metrics._classification.recall_score",
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.metrics._scorer._PassthroughScorer", "sklearn.metrics._scorer._Scorer",
    "sklearn.utils._metadata_requests.MetadataRequest", "sklearn.utils._metadata_requests.MethodMetadataRequest",
    "sklearn.model_selection._split.KFold", "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.model_selection._split.RepeatedStratifiedKFold", "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.StratifiedShuffleSplit",
    "sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree", "sklearn.utils._bunch.Bunch",
}  # fmt: skip
CONVERT = "convert it where it was made with skops.io.dump(model, 'model.skops')"


def _skops_io() -> Any:
    from skops import io  # slow: it imports all of scikit-learn

    return io


def save(estimator: Any, path: Path) -> None:
    """Store a fitted estimator as a skops file, which appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        _skops_io().dump(estimator, temporary, compression=zipfile.ZIP_DEFLATED, compresslevel=1)


def load(path: Path, trust: bool = False) -> Any:
    """Read a skops file of at most 500 MB, 2 GB unpacked.

    Trusted are estimators of scikit-learn, XGBoost and LightGBM, and the plain data and helpers that fitted ones hold
    (``PARTS``); no foreign function is called. ``trust`` takes every type.

    Raises
    ------
    HarnessError
        If the file is missing, no skops file, larger or other than such files are, or holds any other type.
    """
    io = _skops_io()
    check_size(path)
    check_archive(path)
    try:
        types = io.get_untrusted_types(file=path)
        strange = [name for name in types if not _trusted(name)]
    except Exception as fault:
        raise HarnessError(f"{path} is no skops file ({short(fault)}); save the model with skops.io.dump.") from fault
    if strange and not trust:
        raise HarnessError(
            f"{path} holds types that are not trusted: {', '.join(strange)}; save a scikit-learn, XGBoost or LightGBM "
            f"model with nothing else in it, or set model.trust=true if you trust its maker."
        )
    try:
        loaded = io.load(path, trusted=types)
        _check_trees(loaded)
    except Exception as fault:
        raise HarnessError(f"{path} is damaged ({short(fault)}); save the model again with skops.io.dump.") from fault
    return loaded


def check_size(path: Path) -> None:
    """Raise ``HarnessError`` unless there is a model file of at most 500 MB."""
    if path.is_dir():
        raise HarnessError(f"{path} is a folder; give the path of a model file in it.")
    if not path.is_file():
        raise HarnessError(f"there is no model file {path}; give the path of an existing one.")
    if (size := path.stat().st_size) > LARGEST:
        raise HarnessError(f"{path} has {size:,} bytes; a model file may have {LARGEST:,}. Save a smaller model.")


def check_archive(path: Path) -> None:
    """Look at a zip's table of contents before anything is unpacked."""
    why = None
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as fault:
        with path.open("rb") as file:
            pickled = file.read(1) == b"\x80"
        why = f"it is a pickle, which may run anything: {CONVERT}" if pickled else short(fault)
        raise HarnessError(f"{path} is no skops file ({why}); save the model with skops.io.dump.") from fault
    names = [member.filename for member in members]
    if SCHEMA not in names:
        why = f"it has no {SCHEMA}"
    elif len(set(names)) < len(names):
        why = "it holds two files of one name"
    elif odd := [name for name in names if not re.fullmatch(r"[\w-]+\.(npy|npz|bin|json)", name, re.ASCII)]:
        why = f"it holds a file {odd[0]!r}"
    elif any(member.flag_bits & 1 or member.compress_type not in PACKINGS for member in members):
        why = "it is encrypted, or compressed otherwise than by zipfile.ZIP_DEFLATED"
    elif len(members) > MEMBERS or sum(member.file_size for member in members) > UNPACKED:
        why = f"unpacked it would have more than {UNPACKED:,} bytes or {MEMBERS:,} files"
    elif archive.getinfo(SCHEMA).file_size > LARGEST:
        why = f"its {SCHEMA} would have more than {LARGEST:,} bytes"
    if why is not None:
        raise HarnessError(f"{path} is no skops file ({why}); save the model with skops.io.dump.")


def check_arrays(path: Path) -> None:
    """Raise ``HarnessError`` for a file of NumPy's arrays that is damaged, or larger than such files are."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, zipfile.BadZipFile) as fault:
        raise HarnessError(f"{path} holds no arrays ({short(fault)}); run its command again.") from fault
    if any(m.compress_type not in PACKINGS for m in members) or sum(m.file_size for m in members) > UNPACKED:
        raise HarnessError(f"{path} would have more than {UNPACKED:,} bytes unpacked; run its command again.")


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
    if not 1 <= tree.node_count <= tree.capacity or len(tree.children_left) != len(tree.value):
        raise ValueError("a tree has fewer nodes than its count states")
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


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def name_of(path: str) -> str:
    """The stem of a model file, fit to be part of a folder's name: ``LONGEST_NAME`` characters of it at most.

    >>> name_of("models/My model (2).skops")
    'My_model_2'
    >>> len(name_of("a" * 300))
    100
    """
    return re.sub(r"[^\w.]+", "_", Path(path).stem, flags=re.ASCII).strip("_.")[:LONGEST_NAME] or "file"


def read(path: str | Path, trust: bool = False) -> tuple[Any, bool]:
    """A fitted model from a file, and whether reading it needed ``trust``.

    Raises
    ------
    HarnessError
        As ``load``; for pickles without ``trust``, since reading one runs code of whoever made it; and for files that
        hold no fitted model.
    """
    path = Path(path).expanduser()
    check_size(path)
    suffix = path.suffix.lower()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if suffix in PICKLES:
            found, needed = _unpickle(path, trust), True
        elif suffix != ".skops":
            raise HarnessError(f"{path} ends in {suffix!r}; {choices(suffix, ('.skops', *PICKLES, *SUFFIXES))}.")
        else:
            try:
                found, needed = load(path), False
            except HarnessError:
                if not trust:
                    raise
                found, needed = load(path, trust=True), True
    for warning in caught:
        if isinstance(warning.message, InconsistentVersionWarning):
            other = warning.message.original_sklearn_version
            log.warning("%s was saved by scikit-learn %s; this is %s.", path, other, sklearn.__version__)
            break
    if isinstance(found, BaseSearchCV):
        if not hasattr(found, "best_estimator_"):
            raise HarnessError(f"{path} holds a {type(found).__name__} without its best model; fit it with refit=True.")
        found = found.best_estimator_
    if (ready := fitted(found)) is None:
        raise HarnessError(f"{path} holds a {type(found).__name__}; save a fitted estimator or Pipeline.")
    if not ready:
        raise HarnessError(f"the {type(found).__name__} in {path} is not fitted; fit it before it is saved.")
    return as_scorecard(found), needed


def fitted(model: Any) -> bool | None:
    """Whether an estimator is fitted; None of what is none."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        return None
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except Exception:  # whatever a foreign class raises
        return None
    return True


@lru_cache(maxsize=8)
def _ended(path: Path, changed: int) -> str:
    """``ended_by`` of a file that was last changed then, which another process unpickles."""
    return ended_by(READING, str(path))


def _unpickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise HarnessError(
            f"{path} is a pickle, and reading one runs code of whoever made it; {CONVERT}, or set model.trust=true "
            f"if you trust its maker."
        )
    if (how := _ended(path, path.stat().st_mtime_ns)) in DEADLY:
        raise HarnessError(f"{path} is damaged: a process that unpickles it ends by {how}; save the model again.")
    try:
        loaded = joblib.load(path)
        _check_trees(loaded)
        return loaded
    except Exception as fault:
        raise HarnessError(f"{path} cannot be unpickled ({short(fault)}); {CONVERT}.") from fault
