"""OCEAN's constraint program on tree ensembles, by oceanpy: the far side of ``method=ocean_cp``.

OCEAN sees the estimator's own columns: a number or an ordinal feature as a continuous one, a binary and a categorical
one as they are. An interval of whole numbers or ranks costs the way to the first of them, where OCEAN would count the
way to the threshold. Its point is called optimal only where the distance, counted anew, is OCEAN's optimum.
"""

import itertools
import math
import warnings

import far
import numpy
import pandas
import skops.io
from ocean.abc import Mapper
from ocean.cp import Explainer
from ocean.feature import Feature

FAR = 1000.0  # the cost of an interval without a whole number or rank
SAME = 1e-6  # distances that are one: OCEAN counts in 1e-8, and steps over thresholds by a float32 number


class Restated(Explainer):
    """OCEAN's program, in which whole numbers and ranks cost what they are."""

    def __init__(self, estimator, mapper, columns):
        self.columns = columns
        super().__init__(estimator, mapper=mapper)

    def Lp(self, x, v, code=None, *, norm=1):
        self.asked = self.columns.get(next(name for name, each in self.mapper.items() if each is v))
        return super().Lp(x, v, code, norm=norm)

    def get_intervals_cost(self, levels, x, *, norm=1):
        column = self.asked
        if column is None or not column.stepped:
            return super().get_intervals_cost(levels, x, norm=norm)
        costs = []
        for above, at_most in itertools.pairwise(levels):
            found = x
            if not above < x <= at_most:
                up = above >= x
                value = column.outward(above if up else at_most, up, above, at_most)
                found = FAR if value is None else column.of(value)
            costs.append(int(abs(found - x) * self._obj_scale))
        return costs


class OceanCp:
    def __init__(self, problem, settings):
        if "class" not in problem.target or "probability" in problem.target:
            raise far.Refused("OCEAN is run for a wanted class only; set 'desired' to a class.")
        if problem.claim != {"distance": "l1", "alpha": 0.0}:
            raise far.Refused("OCEAN minimises the distance l1 alone; set method.distance=l1 and method.alpha=0.")
        try:
            told = problem.estimator()  # from the harness, which is trusted
            self.estimator = skops.io.loads(told, trusted=skops.io.get_untrusted_types(data=told))
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

    def explain(self, factual, count, seed, limit):
        point = numpy.array([column.of(factual[column.feature["name"]]) for column in self.columns])
        self.restrict(factual, point)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.explainer.explain(
                point, y=self.wanted, norm=1, max_time=max(limit - 0.1, 0.1), num_workers=1, random_seed=seed % 2**31
            )
        status = self.explainer.Status
        if found is None:
            return [{"status": "INFEASIBLE" if status == "INFEASIBLE" else "GAVE_UP"}]
        bound = self.explainer.solver.BestObjectiveBound() / 1e8
        row = self.row(factual, point, numpy.asarray(found.x, dtype=float))
        if row is None:
            return [{"status": "INFEASIBLE" if status == "OPTIMAL" else "GAVE_UP"}]  # no whole number anywhere
        distance = sum(abs(self.distance(factual, row)))
        proven = status == "OPTIMAL" and distance <= bound + SAME
        if proven:
            return [{"row": row, "status": "OPTIMAL"}]
        return [{"row": row, "status": "FOUND", "bound": max(bound - SAME, 0.0)}]

    def restrict(self, factual, point):
        """Keep to bounds and actionability, for this question only."""
        explainer = self.explainer
        for place, column in enumerate(self.columns):
            variable = explainer.mapper[column.feature["name"]]
            low, high = column.reach(factual)
            if variable.is_one_hot_encoded:
                if high < 1:
                    explainer.add_garbage(explainer.Add(variable.xget(column.code) == 0))
            elif variable.is_binary:
                if low == high:
                    explainer.add_garbage(explainer.Add(variable.xget() == int(point[place])))
            else:
                levels = numpy.asarray(variable.levels)
                first = max(int(numpy.searchsorted(levels, low, side="left")) - 1, 0)
                last = min(max(int(numpy.searchsorted(levels, high, side="left")) - 1, 0), len(levels) - 2)
                explainer.add_garbage(explainer.Add(variable.xget() >= first))
                explainer.add_garbage(explainer.Add(variable.xget() <= last))

    def row(self, factual, point, found):
        """OCEAN's point in the features' own values; None where none of them lies in an interval."""
        row = dict(factual)
        for place, column in enumerate(self.columns):
            name, value = column.feature["name"], found[place]
            if value == point[place]:
                continue
            if column.code:
                if value > 0.5:
                    row[name] = column.level
                continue
            levels = (
                numpy.asarray(self.mapper[name].levels) if self.mapper[name].is_numeric else numpy.array([-9.0, 9.0])
            )
            at = min(max(int(numpy.searchsorted(levels, value, side="left")) - 1, 0), len(levels) - 2)
            row[name] = column.outward(value, value > point[place], levels[at], levels[at + 1])
            if row[name] is None:
                return None
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
        """The column's value as the trees compare it: a float32 number."""
        return float(numpy.float32(self.exactly(value)))

    def exactly(self, value):
        if self.code:
            return float(value == self.level)
        if self.source["type"] == "affine":
            return (value - self.source["shift"]) / self.source["unit"]
        return self.source["values"][self.source["levels"].index(value)]

    def values(self, factual):
        """Categories that a counterfactual may take."""
        feature = self.feature
        value, kind = factual[feature["name"]], feature["actionability"]
        ladder = (
            list(feature["order"] or feature["categories"]) if kind == "conditional" else list(feature["categories"])
        )
        if kind == "free":
            return [each for each in ladder if each == value or each not in feature["special"]]
        if kind == "immutable" or value not in ladder:
            return [value]
        at = ladder.index(value)
        return ladder[: at + 1] if kind == "decrease" else ladder[at:]

    def reach(self, factual):
        """Least and greatest value of the column."""
        feature, value = self.feature, factual[self.feature["name"]]
        if feature["categories"]:
            found = [self.of(each) for each in self.values(factual)]
            return min(found), max(found)
        low, high = feature["bounds"]
        low, high = (-math.inf if low is None else min(low, value)), (math.inf if high is None else max(high, value))
        kind = feature["actionability"]
        low = value if kind in ("immutable", "increase") else low
        high = value if kind in ("immutable", "decrease") else high
        return self.of(low), self.of(high)

    def outward(self, value, up, above, at_most):
        """The feature's value at, or next beyond, one of the column, within (above, at most]; None: there is none."""
        candidates = self.source.get("levels")
        if candidates is None:
            number = value * self.source["unit"] + self.source["shift"]
            if self.feature["kind"] != "integer":
                return number
            candidates = range(math.floor(number) - 1, math.ceil(number) + 2)
        inside = [each for each in candidates if above < self.of(each) <= at_most]
        return (min if up else max)(inside, key=self.of) if inside else None


def columns_of(problem):
    """The estimator's columns; refused where a feature is in several that are no one-hot code."""
    features = {feature["name"]: feature for feature in problem.features}
    for source in problem.inputs:
        if source["type"] not in ("affine", "indicator", "lookup") or source.get("unit", 1.0) <= 0:
            raise far.Refused(
                f"OCEAN needs {source['feature']} itself, its ranks or its categories, not a {source['type']}."
            )
        if source["type"] == "indicator" and len(source["levels"]) != 1:
            raise far.Refused(f"OCEAN needs one column a category of {source['feature']}.")
    return [Column(features[source["feature"]], source) for source in problem.inputs]


def features_of(columns):
    """What OCEAN calls each feature: numbers with ends far outside, as it looks for the factual between its levels."""
    found = {}
    for column in columns:
        name = column.feature["name"]
        if column.code:
            codes = [other.code for other in columns if other.feature is column.feature]
            found[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
        elif column.feature["kind"] == "binary":
            found[name] = Feature(Feature.Type.BINARY)
        else:
            found[name] = Feature(Feature.Type.CONTINUOUS, levels=(-9.0, 9.0))
    return found


far.serve(OceanCp)
