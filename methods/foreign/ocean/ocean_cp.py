"""OCEAN's constraint program on tree ensembles, by oceanpy: the far side of ``method=ocean_cp``.

OCEAN sees the estimator's own columns: a number or an ordinal feature as a continuous one, a binary and a categorical
one as they are. It knows no whole numbers, ranks or permitted values: here an interval between thresholds costs the
way to the nearest value in it that the person may take, where OCEAN counts the way to the threshold, and an interval
without one is closed. Which interval a value lies in is said here as the trees say it, by the column in single
precision; so the point lies in the leaves that OCEAN chose. It is called optimal only where the distance, counted
anew, is OCEAN's optimum.
"""

import itertools
import math
import time
import warnings

import far
import numpy
import pandas
import skops.io
from ocean.abc import Mapper
from ocean.cp import Explainer
from ocean.feature import Feature
from ortools.sat.python.cp_model import Domain

END = float(numpy.finfo(numpy.float32).max)  # of a column: OCEAN looks for the person between its levels
OVER, KEPT, LEAST = 0.3, 0.06, 0.1  # seconds that CP-SAT takes beyond its own limit, and a share; what it has at least
SEED = 42  # the library's own: of points equally near it may hand back any
SAME = 1e-6  # distances that are one: OCEAN counts in 1e-8, and thresholds are stepped over by a float32 number


class Restated(Explainer):
    """OCEAN's program, in which an interval costs the way to what the person may take in it."""

    def __init__(self, estimator, mapper, columns):
        self.columns = columns
        self.pose({}, math.inf)
        super().__init__(estimator, mapper=mapper)

    def pose(self, reach, until):
        """What the next person may take, and when the answer is due."""
        self.reach, self.until, self.told = reach, until, {}

    def set_majority_class(self, y, *, op=0):  # the last step before the solver
        super().set_majority_class(y, op=op)
        self.solver.parameters.max_time_in_seconds = max(self.until - time.monotonic(), LEAST)

    def Lp(self, x, v, code=None, *, norm=1):
        self.asked = self.columns.get(next(name for name, each in self.mapper.items() if each is v))
        return super().Lp(x, v, code, norm=norm)

    def get_intervals_cost(self, levels, x, *, norm=1):
        found = self.nearest(self.asked, levels)
        return [0 if each is None else int(each[0] * self._obj_scale) for each in found]

    def nearest(self, column, levels):
        """By interval, what ``Column.nearest`` has in it."""
        if (name := column.feature["name"]) not in self.told:
            ends = itertools.pairwise(levels.tolist())
            self.told[name] = [column.nearest(self.reach[name], above, at_most) for above, at_most in ends]
        return self.told[name]


class OceanCp:
    r"""Closest point that a tree ensemble puts in the wanted class [1]_, by oceanpy's program for CP-SAT.

    .. math::
        \min_x \; \|x - \hat x\|_1 \quad \text{s.t. } f_{\tilde y}(x) \ge f_c(x) \; (c \ne \tilde y), \quad
        f_c(x) = \textstyle\sum_t v_{tc}(x)

    :math:`v_{tc}(x)` is the weighted vote of tree t for class c, by its leaf of x, in whole units; of a class before
    the wanted one in the estimator's order the inequality is strict by one unit. x is restricted to what the person
    may take.

    References
    ----------
    .. [1] Parmentier, A., and T. Vidal (2021). Optimal counterfactual explanations in tree ensembles. *ICML*, which has
       a mixed-integer program. oceanpy 2.0.7, https://github.com/vidalt/OCEAN
    """

    def __init__(self, problem, settings):
        if "class" not in problem.target or "probability" in problem.target:
            raise far.Refused("OCEAN is run for a wanted class only; set 'desired' to a class.")
        if problem.claim != {"distance": "l1", "alpha": 0.0}:
            raise far.Refused("OCEAN minimises the distance l1 alone; set method.distance=l1 and method.alpha=0.")
        try:
            told = problem.estimator()  # from the harness, which is trusted
            types = skops.io.get_untrusted_types(data=told)
            own = [each.rsplit(".", 1)[-1] for each in types if each.startswith("harness.")]
            if own := sorted(own, key=lambda name: not name.endswith("Classifier")):  # the model before its parts
                raise far.Refused(f"OCEAN takes forests and AdaBoost of scikit-learn, not {own[0]}; choose model=rf.")
            self.estimator = skops.io.loads(told, trusted=types)
        except far.Refused:
            raise
        except Exception as fault:
            raise far.Refused(f"OCEAN's side cannot read the model ({fault}).") from None
        name = type(self.estimator).__name__
        if name not in ("RandomForestClassifier", "ExtraTreesClassifier", "AdaBoostClassifier"):
            raise far.Refused(f"OCEAN takes forests and AdaBoost of scikit-learn, not {name}; choose model=rf.")
        self.problem, self.settings = problem, settings
        self.wanted = problem.classes.index(problem.target["class"])
        self.columns = columns_of(problem)
        names = [(column.feature["name"], column.code) for column in self.columns]
        several = any(code for _, code in names)
        index = pandas.MultiIndex.from_tuples(names) if several else pandas.Index([name for name, _ in names])
        self.mapper = Mapper(features_of(self.columns), columns=index)
        numbers = {column.feature["name"]: column for column in self.columns if not column.code}
        self.explainer = Restated(self.estimator, self.mapper, numbers)

    def explain(self, factual, reach, count, seed, limit):
        self.explainer.pose(reach, time.monotonic() + limit - OVER - KEPT * limit)
        point = numpy.array([column.of(factual[column.feature["name"]]) for column in self.columns])
        self.restrict(reach, point)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.explainer.explain(point, y=self.wanted, norm=1, num_workers=1, random_seed=SEED)
        status = self.explainer.Status
        if found is None:
            return [{"status": "INFEASIBLE"} if status == "INFEASIBLE" else {"reason": "time limit"}]
        bound = self.explainer.solver.BestObjectiveBound() / 1e8
        row = self.row(reach, numpy.asarray(found.x, dtype=float))
        distance = sum(abs(self.distance(factual, row)))
        if status == "OPTIMAL" and distance <= bound + SAME:
            return [{"row": row, "status": "OPTIMAL"}]
        ending = "finished" if status == "OPTIMAL" else "time limit"
        return [{"row": row, "status": "FOUND", "bound": max(bound - SAME, 0.0), "reason": ending}]

    def restrict(self, reach, point):
        """Keep to what the person may take, for this question only."""
        explainer = self.explainer
        for column, x in zip(self.columns, point, strict=True):
            name = column.feature["name"]
            variable, mine = explainer.mapper[name], reach[name]
            if variable.is_one_hot_encoded:
                if column.level not in mine.values:
                    explainer.add_garbage(explainer.Add(variable.xget(column.code) == 0))
            elif variable.is_binary:
                if len(mine.values) == 1:
                    explainer.add_garbage(explainer.Add(variable.xget() == int(x)))
            else:
                found = explainer.nearest(column, variable.levels)
                open_ = Domain.from_values([place for place, each in enumerate(found) if each is not None])
                explainer.add_garbage(explainer.add_linear_expression_in_domain(variable.xget(), open_))

    def row(self, reach, found):
        """OCEAN's point in the features' own values."""
        row = {name: mine.own for name, mine in reach.items()}
        for column, value in zip(self.columns, found, strict=True):
            name = column.feature["name"]
            variable, mine = self.explainer.mapper[name], reach[name]
            if column.code:
                if value > 0.5:
                    row[name] = column.level
            elif variable.is_binary:
                row[name] = next(each for each in mine.values if column.of(each) == value)
            else:
                at = self.explainer.solver.Value(variable.xget())
                _, row[name] = self.explainer.nearest(column, variable.levels)[at]
        return row

    def distance(self, factual, row):
        """Each feature's part of the distance in ranges and ranks."""
        return numpy.array(
            [step(feature, factual[feature["name"]], row[feature["name"]]) for feature in self.problem.features]
        )


def step(feature, old, new):
    if not feature["categories"]:
        low, high = feature["scale"]
        return (new - old) / ((high - low) or 1.0)
    if feature["kind"] == "ordinal":
        return (feature["categories"].index(new) - feature["categories"].index(old)) / max(
            len(feature["categories"]) - 1, 1
        )
    return float(new != old)


class Column:
    """One column of the estimator: of a number, of the ranks of categories, or of one category."""

    def __init__(self, feature, source):
        self.feature, self.source = feature, source
        self.level = source["levels"][0] if source["type"] == "indicator" else None
        self.code = "" if self.level is None else str(self.level)

    @property
    def stepped(self):
        """Whether it is of whole numbers or ranks."""
        return self.source["type"] != "affine" or self.feature["kind"] == "integer"

    def of(self, value):
        if self.code:
            return float(value == self.level)
        if self.source["type"] == "affine":
            return (value - self.source["shift"]) / self.source["unit"]
        return float(self.source["values"][self.source["levels"].index(value)])

    def seen(self, value):
        """The column as trees compare it with their thresholds, in single precision."""
        return float(numpy.float32(self.of(value)))

    def back(self, number):
        """A number's value where the column has this one, but for rounding."""
        return float(number) * self.source["unit"] + self.source["shift"]

    def rounding(self, level):
        """How far apart numbers near a threshold may be that trees see as one, in the feature's units."""
        return float(numpy.spacing(numpy.float32(abs(level)))) * self.source["unit"]

    def nearest(self, mine, above, at_most):
        """Of what trees put into (above, at_most] and the person may take, the nearest value, and the way to it.

        The way comes first, in ranges and ranks, at most what any such value costs; None where there is no such value.
        """
        own = self.seen(mine.own)
        if above < own <= at_most:
            return 0.0, mine.own
        level, up = (above, True) if own <= above else (at_most, False)
        if self.stepped:
            candidates, slack = self.around(mine, level) if mine.values is None else mine.values, 0.0
        else:
            candidates, slack = [self.beside(mine, level, up)], step(self.feature, 0.0, self.rounding(level))
        inside = [each for each in candidates if above < self.seen(each) <= at_most and mine.permits(each)]
        ways = [(max(abs(step(self.feature, mine.own, each)) - slack, 0.0), each) for each in inside]
        return min(ways, key=lambda way: way[0], default=None)

    def around(self, mine, level):
        """Whole numbers about a threshold, or about the end of what may be taken where that lies beyond it."""
        start = self.back(level)
        start = start if mine.low is None else max(start, mine.low)
        start = start if mine.high is None else min(start, mine.high)
        reach = self.rounding(level) + 2 + len(mine.barred)
        return range(math.floor(start - reach), math.ceil(start + reach) + 1)

    def beside(self, mine, level, up):
        """The number next above a threshold for trees, or at most there, within the end of what may be taken."""
        toward, number = math.inf if up else -math.inf, numpy.float32(level)
        if (float(number) > level) != up:
            number = numpy.nextafter(number, numpy.float32(toward))
        value, end = self.back(number), mine.low if up else mine.high
        if end is not None:
            value = max(value, end) if up else min(value, end)
        while (self.seen(value) > level) != up or value in mine.barred:  # what scaling back rounds to the other side
            value = math.nextafter(value, toward)
        return value


def columns_of(problem):
    """The estimator's columns; refused where a feature is in several that are no one-hot code of all its categories."""
    features, found = {feature["name"]: feature for feature in problem.features}, []
    for source in problem.inputs:
        if source["type"] not in ("affine", "indicator", "lookup") or source.get("unit", 1.0) <= 0:
            raise far.Refused(
                f"OCEAN needs {source['feature']} itself, its ranks or its categories, not a {source['type']}."
            )
        if source["type"] == "indicator" and len(source["levels"]) != 1:
            raise far.Refused(f"OCEAN needs one column a category of {source['feature']}.")
        feature = features[source["feature"]]
        own = [each for each in problem.inputs if each["feature"] == feature["name"]]
        told = [each["levels"][0] for each in own if each["type"] == "indicator"]
        if len(own) == len(told) == 1 and len(feature["categories"]) == 2:  # 1 of one category, 0 of the other
            values = [float(each == told[0]) for each in feature["categories"]]
            source = {**source, "type": "lookup", "levels": feature["categories"], "values": values}
        elif len(own) > max(len(told), 1) or (
            told and sorted(map(str, told)) != sorted(map(str, feature["categories"]))
        ):
            raise far.Refused(f"OCEAN needs {feature['name']} in one column, or in one for each of its categories.")
        found.append(Column(feature, source))
    return found


def features_of(columns):
    """What OCEAN calls each feature."""
    found = {}
    for column in columns:
        name = column.feature["name"]
        if column.code:
            codes = [other.code for other in columns if other.feature is column.feature]
            found[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
        elif column.feature["kind"] == "binary" and {*column.source.get("values", ())} == {0.0, 1.0}:
            found[name] = Feature(Feature.Type.BINARY)
        else:
            found[name] = Feature(Feature.Type.CONTINUOUS, levels=(-END, END))
    return found


far.serve(OceanCp)
