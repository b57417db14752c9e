"""DiCE's searches (random, genetic, kdtree; gradient by torch), run by the ``dice_ml`` library as published."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import check_choices
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_above, check_counts
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.target import Label
from harness.models import torch_mlp
from methods.dice.columns import Dialect
from methods.estimators.gradients import network, torch_library, warm, without_gradients
from methods.wrapping import (
    Defaults,
    LateError,
    Met,
    check_clock,
    not_a_class,
    old_pandas,
    one_class,
    plain,
    seeded,
    shares,
    stated,
)

SEARCHES = ("random", "genetic", "kdtree")  # for any model
GRADIENT = "gradient"
OUTCOME = "outcome"
OPEN = ("maxiterations", "proximity_weight", "sparsity_weight")  # None: the library's own
POSTHOC = {"posthoc_sparsity_param": 0.1, "posthoc_sparsity_algorithm": "linear"}
PLACE = "dice_ml.explainer_interfaces.{}._generate_counterfactuals"
LIBRARY = {  # by search, the library's own settings
    "random": stated(PLACE.format("dice_random:DiceRandom"), sample_size=1000, **POSTHOC),
    "genetic": stated(
        PLACE.format("dice_genetic:DiceGenetic"), maxiterations=500, proximity_weight=0.2, sparsity_weight=0.2
    ),
    "kdtree": stated(PLACE.format("dice_KD:DiceKD"), sparsity_weight=1, **POSTHOC),
    GRADIENT: stated(
        PLACE.format("dice_pytorch:DicePyTorch"),
        maxiterations=(5000, "max_iter"),
        min_iter=500,
        learning_rate=0.05,
        proximity_weight=0.5,
        diversity_weight=1.0,
        **POSTHOC,
    ),
}
INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Dice:
    r"""Diverse counterfactual explanations by random sampling, a genetic algorithm, the nearest training rows [1]_, or
    gradient descent [2]_.

    The gradient search minimises, for k counterfactuals of p columns together, with the hinge loss :math:`\ell`,

    .. math::
        \frac 1 k \textstyle\sum_i \ell(h(c_i), \tilde y) + \frac{\lambda_1}{k p} \sum_i d(c_i, \hat x)
        - \lambda_2 \det K, \quad K_{ij} = \frac{1}{1 + d(c_i, c_j)}

    and a penalty where one-hot columns do not sum to 1; d is l1, with numbers over their MAD. The genetic search
    minimises a hinge loss, :math:`\lambda_1` times the distance in numbers, weighted by 1 / MAD, and :math:`\lambda_3`
    times the share of changed features; kdtree takes near rows by distance and :math:`\lambda_3` times changes; random
    minimises nothing.

    The library searches; this class translates. Immutable features are left out of the features to vary; bounds,
    directions and orders become permitted ranges. What the library returns is handed back in its order, whatever class
    the model gives it: without repeats, the factual itself, and rows with a number or category that does not exist.
    The weights 1 / MAD of the genetic search are not rounded to two decimals, as the library rounds them: great numbers
    would weigh nothing, and where all are great, its loss is no number, and it finds nothing.

    The library's ``random_seed`` is not used. It seeds the global generator, leaves it so, and seeds it anew for each
    numeric feature: the 1000 samples of any two continuous features then have a rank correlation of 1.000 (ionosphere,
    random search), and 0.025 with the generators that are seeded here, once a factual, and put back.

    Parameters
    ----------
    search
        ``random``, ``genetic``, ``kdtree``; or ``gradient``, for linear models and networks, by torch. That one varies
        only features all of whose categories are permitted, as it takes no list of them.
    sample_size
        Random only: how many samples are drawn.
    maxiterations
        Genetic and gradient: the most generations, or steps; None: the library's own number, 500 and 5000.
    min_iter, learning_rate
        Gradient only: the fewest steps, and the step of Adam in min-max scaled units.
    diversity_weight
        Gradient only: :math:`\lambda_2`, weight of the determinant that spreads the counterfactuals.
    proximity_weight
        Genetic and gradient: :math:`\lambda_1`, weight of the distance; None: the library's own, 0.2 and 0.5.
    sparsity_weight
        Genetic and kdtree: :math:`\lambda_3`, weight of the number of changes; None: the library's own, 0.2 and 1.
    posthoc_sparsity_param
        All but genetic: numbers nearer to the factual than this quantile of the training rows' deviation from
        the median are moved back towards it while the class holds; None turns that off.
    posthoc_sparsity_algorithm
        ``linear`` or ``binary``: how they are moved back.

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\**. doi:10.1145/3351095.3372850.
    .. [2] Ibid., section 3.3.
    """

    search: str = "random"
    sample_size: int = 1000
    maxiterations: int | None = None
    min_iter: int = 500
    learning_rate: float = 0.05
    diversity_weight: float = 1.0
    proximity_weight: float | None = None
    sparsity_weight: float | None = None
    posthoc_sparsity_param: float | None = 0.1
    posthoc_sparsity_algorithm: str = "linear"

    def __post_init__(self) -> None:
        check_choices(self, {"search": (*SEARCHES, GRADIENT), "posthoc_sparsity_algorithm": ("linear", "binary")})
        check_above(self, 0, "learning_rate")
        if self.posthoc_sparsity_param is not None and not 0 <= self.posthoc_sparsity_param <= 1:
            raise ValueError(f"posthoc_sparsity_param is {self.posthoc_sparsity_param}; give 0 to 1, or null.")
        optional = ("sample_size", "maxiterations", "min_iter")
        check_counts(self, 1, *(name for name in optional if getattr(self, name) is not None))

    @property
    def library_defaults(self) -> Defaults:
        """The library's own values of the settings that this search takes, but of those left to the library."""
        every = LIBRARY[self.search]
        return {name: every[name] for name in every if name not in OPEN or getattr(self, name) is not None}

    @property
    def deterministic(self) -> bool:
        """Whether no answer depends on the seed: only the search in a k-d tree draws nothing."""
        return self.search == "kdtree"

    def refuses(self, problem: Problem) -> str | None:
        """Targets other than a class, and integers that the library's int32 cannot hold; models without gradients."""
        if self.search == GRADIENT and not torch_mlp.installed():
            return torch_mlp.ABSENT
        if why := not_a_class("DiCE", problem):
            return why
        for feature in problem.space.features:
            values = problem.train[feature.name]
            if feature.kind is Kind.INTEGER and not values.between(INT32.min, INT32.max).all():
                return f"DiCE keeps integers in 32 bits, which {feature.name} exceeds; make it continuous."
        if self.search == "genetic" and not any(feature.numeric for feature in problem.space.features):
            return "DiCE's genetic search fails without a number among the features; take its random search."
        if self.search != GRADIENT:
            return None
        if not problem.classifier.binary:
            return f"DiCE's gradient search takes models with two classes, not {len(problem.classifier.classes)}."
        return without_gradients(problem, "DiCE's gradient search")

    def fit(self, problem: Problem) -> DiceExplainer:
        """The library with training rows and model; it classifies and indexes the rows once."""
        dice_ml, problem = _library(), one_class(problem)
        if not isinstance(problem.target, Label):
            raise TypeError(f"DiCE needs a Label as target, got {problem.target!r}.")
        wanted = problem.classifier.code(problem.target.value)
        dialect = Dialect(problem)
        model = _Model(problem.classifier, dialect, wanted, Met(problem), graded=self.search == "genetic")
        with old_pandas():
            rows = dialect.encode(problem.train)
            rows[OUTCOME] = [problem.classifier.code(label) for label in problem.labels]
            data = dice_ml.Data(
                dataframe=rows,
                continuous_features=list(dialect.precision),
                continuous_features_precision=dialect.decimals,
                outcome_name=OUTCOME,
            )
            if self.search == GRADIENT:
                return self._descent(data, model, dialect, wanted, problem)
            library = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=self.search)
            # An identity either way; the library's goes through scikit-learn's checks.
            library.model.transformer.transform = lambda frame: frame
            if self.search == "genetic":
                library.labelencoder = {name: _Levels(coder) for name, coder in library.labelencoder.items()}
            if self.search != "random":
                # The library rebuilds this in every call, though rows, model and wanted class stay the same.
                built = library.build_KD_tree(data.data_df.copy(), None, wanted, library.predicted_outcome_name)
                library.build_KD_tree = lambda *_: built
            options = self._options()
            if self.search == "genetic":
                # Its own way rounds these weights to two decimals, so that great numbers weigh nothing, or all is NaN.
                mads = library.data_interface.get_valid_mads()
                options["feature_weights"] = {name: 1.0 / float(mad) for name, mad in mads.items()}
        return DiceExplainer(library, model, dialect, wanted, options)

    def _descent(self, data: Any, model: _Model, dialect: Dialect, wanted: int, problem: Problem) -> DiceExplainer:
        """The explainer of the gradient search."""
        dice_ml = _library()
        warm()
        with torch_library().random.fork_rng(devices=[]):
            module = dice_ml.Model(model=_module(data, model, dialect, problem), backend="PYT", func="ohe-min-max")
            library = dice_ml.Dice(data, module, method=GRADIENT)
        return DiceExplainer(library, model, dialect, wanted, self._options(), descends=True)

    def objective(self, problem: Problem) -> Objective | None:
        """None: DiCE's loss mixes class, distance and sparsity, and nothing it returns minimises it."""
        return None

    def _options(self) -> dict[str, Any]:
        """The keywords that the library takes for this search."""
        defaults = self.library_defaults.items()
        return {default.place.rpartition(":")[2]: getattr(self, name) for name, default in defaults}


@dataclass(eq=False)
class DiceExplainer:
    """The library, fitted to one problem.

    Stopped by the clock, it hands back the nearest of the last points that its search had predicted as wanted.
    """

    library: Any
    model: _Model
    dialect: Dialect
    wanted: int
    options: dict[str, Any]
    descends: bool = False

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        """``n`` answers, in the library's order; GAVE_UP for those it did not find."""
        if deadline.passed:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT)
        if unseen := self.dialect.unseen(factual):
            detail = f"DiCE takes no category that the training rows lack: {', '.join(unseen)}."
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, detail)
        permitted = self.dialect.permitted(factual, only_free=self.descends)
        if not permitted:
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, "No feature may change.")

        self.library.cfs = []  # else the genetic search starts from an earlier call's population of the same size
        ranges: dict[str, Any] = {} if self.descends else {"permitted_range": permitted}
        if self.descends:
            self._limit(factual, permitted)
        try:
            with old_pandas(), seeded(rng), self.model.about(factual, deadline.sooner()):
                found = self.library.generate_counterfactuals(
                    self.dialect.encode(factual),
                    total_CFs=n,
                    desired_class=self.wanted,
                    features_to_vary=list(permitted),
                    **ranges,
                    **self.options,
                )
        except LateError:
            return self.model.met.explanation(factual, n)
        except ValueError as error:
            if "empty range for randrange" not in str(error):
                raise
            none = Answer(Status.GAVE_UP, detail="DiCE's genetic search fails on a population of one.")
            return self.model.met.explanation(factual, n, none)
        except _library().explainer_interfaces.explainer_base.UserConfigValidationException as error:
            if not str(error).startswith("No counterfactuals found"):
                raise
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, "DiCE found no counterfactual.")
        return self._read(found.cf_examples_list[0], factual, n)

    def _limit(self, factual: pd.DataFrame, permitted: dict[str, list[Any]]) -> None:
        """Set the ends of the gradient search, which takes permitted ranges for the units of its numbers."""
        library, data = self.library, self.library.data_interface
        library.cf_init_weights = []  # or it would go on without starting points
        origin = self.dialect.encode(factual)
        low, high = (
            np.zeros((1, len(data.ohe_encoded_feature_names))),
            np.ones((1, len(data.ohe_encoded_feature_names))),
        )
        for place, name in enumerate(data.continuous_feature_names):
            value = float(origin[name].iloc[0])
            ends = np.array(permitted.get(name, [value, value]), dtype=float)
            start, unit = _units(data, name)
            low[0, place], high[0, place] = (ends - start) / (unit or 1.0)
        library.minx, library.maxx = low, high

    def _read(self, example: Any, factual: pd.DataFrame, n: int) -> Explanation:
        """The library's rows without repeats and without the factual, filled up to ``n``; the model is not asked."""
        frame = example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse
        known, lost = [plain(factual)[0]], 0
        if set(self.dialect.features) <= set(frame.columns):  # kdtree may return the outcome column alone
            exists = self.dialect.exists(frame)
            lost = int((~exists).sum())
            for row in plain(self.dialect.decode(frame[exists], factual)):
                if row not in known:
                    known.append(row)
        answers = tuple(Answer(Status.FOUND, row) for row in known[1:])
        detail = f"DiCE found {len(answers)} different counterfactuals"
        detail += f", and {lost} that no row can be." if lost else "."
        return Explanation(answers).padded(n, Answer(Status.GAVE_UP, detail=detail))


@dataclass(eq=False)
class _Model:
    """The classifier as the library takes it: it predicts the very rows that would be returned.

    Parameters
    ----------
    wanted
        The code of the wanted class.
    met
        Keeps what is predicted as wanted.
    graded
        Whether probabilities are needed, as by the genetic search, or classes alone.
    """

    classifier: Classifier
    dialect: Dialect
    wanted: int
    met: Met
    graded: bool
    factual: pd.DataFrame | None = field(default=None, init=False)
    deadline: Deadline | None = field(default=None, init=False)

    @contextlib.contextmanager
    def about(self, factual: pd.DataFrame, deadline: Deadline) -> Iterator[None]:
        """Within, rows are read as counterfactuals of ``factual``, and calls after the deadline end the search."""
        self.factual, self.deadline = factual, deadline
        self.met.parts.clear()
        try:
            yield
        finally:
            self.factual = self.deadline = None

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities, shape (rows, classes), the greatest strictly that of the predicted class."""
        check_clock(self.deadline)
        rows = self.dialect.decode(frame, self.factual)
        if self.graded:
            found = shares(self.classifier, rows)
        else:
            found = np.eye(len(self.classifier.classes))[self.classifier.codes(rows)]
        if (wanted := found.argmax(axis=1) == self.wanted).any():
            self.met.parts.append(rows[wanted])
        return found


def _module(data: Any, model: _Model, dialect: Dialect, problem: Problem) -> Any:
    """A torch module: the probability of class 1 for the library's own encoding, shape (1,) of one row or (rows, 1).

    Its encoding, numbers min-max scaled and all categories one-hot, is mapped linearly to scaled columns.
    """
    torch, space, score = torch_library(), problem.space, network(problem)
    dummies = [
        name for name in pd.get_dummies(data.data_df[data.feature_names]).columns if name not in dialect.precision
    ]
    names = [*data.continuous_feature_names, *dummies]
    to, base = np.zeros((len(names), len(space.columns))), np.zeros(len(space.columns))
    places = {feature.name: columns for feature, columns in zip(space.features, space.slices, strict=True)}
    for row, name in enumerate(names):
        column, _, level = name.partition("_")
        feature = dialect.features[column]
        columns = places[feature.name]
        if feature.numeric:
            start, unit = (end / dialect.units(name) for end in _units(data, name))
            to[row, columns.start] = unit / feature.range
            base[columns.start] = (start - feature.scale[0]) / feature.range
        elif feature.kind is Kind.CATEGORICAL:
            to[row, columns.start + int(level)] = 1.0
        else:
            to[row, columns.start] = int(level) / feature.steps
    matrix, shift = torch.from_numpy(to), torch.from_numpy(base)

    class Module(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, rows: Any) -> Any:
            check_clock(model.deadline)
            points = rows.double() @ matrix + shift
            share = torch.sigmoid(score(points))
            if bool(((share > 0.5) == bool(model.wanted)).any()):
                model.met.parts.append(np.atleast_2d(points.detach().numpy()))
            return share.float()

    return Module()


def _units(data: Any, name: str) -> tuple[float, float]:
    """The number that the library scales to 0, and the range that it divides by, unless that is 0."""
    values = data.data_df[name]
    return float(values.min()), float(values.max()) - float(values.min())


class _Levels:
    """A fitted label encoder without its checks, which took a third of a genetic search's time."""

    def __init__(self, encoder: Any) -> None:
        self.levels = encoder.classes_
        self.codes = {level: code for code, level in enumerate(self.levels)}

    def transform(self, values: Iterable[str]) -> np.ndarray:
        return np.array([self.codes[value] for value in values])

    def inverse_transform(self, codes: np.ndarray) -> np.ndarray:
        return self.levels[codes]


def _library() -> ModuleType:
    """DiCE's library."""
    import dice_ml  # slow: seconds

    return dice_ml
