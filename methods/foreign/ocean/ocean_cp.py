"""OCEAN's constraint program on tree ensembles, by oceanpy: the far side of ``method=ocean_cp``.

OCEAN sees the estimator's own columns: a number or an ordinal feature as a continuous one, a binary and a categorical
one as they are. It knows no whole numbers, ranks or permitted values: here an interval between thresholds costs the
way to the nearest value in it that the person may take, where OCEAN counts the way to the threshold, and an interval
without one is closed. Its point is called optimal only where the distance, counted anew, is OCEAN's optimum. That it
compares numbers with thresholds in double precision, and the trees do so in single, is left as it is: what the
estimator says of its points is for the harness to count.
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
from ortools.sat.python.cp_model import Domain

END = 999.0  # of a column, far outside: OCEAN looks for the person between its levels
SAME = 1e-6  # distances that are one: OCEAN counts in 1e-8, and steps over thresholds by a float32 number


class Restated(Explainer):
    """OCEAN's program, in which an interval costs the way to what the person may take in it."""

    def __init__(self, estimator, mapper, columns):
        self.columns, self.reach = columns, {}
        super().__init__(estimator, mapper=mapper)

    def Lp(self, x, v, code=None, *, norm=1):
        self.asked = self.columns.get(next(name for name, each in self.mapper.items() if each is v))
        return super().Lp(x, v, code, norm=norm)

    def get_intervals_cost(self, levels, x, *, norm=1):
        found = self.nearest(self.asked, levels, x)
        return [0 if each is None else int(abs(each[0] - x) * self._obj_scale) for each in found]

    def nearest(self, column, levels, x):
        """By interval, what ``Column.nearest`` has in it; the person's own value in that of x."""
        mine = self.reach[column.feature["name"]]
        return [
            (x, mine.own) if above < x <= at_most else column.nearest(mine, above, at_most, x)
            for above, at_most in itertools.pairwise(levels)
        ]


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
        point = numpy.array([column.of(factual[column.feature["name"]]) for column in self.columns])
        self.explainer.reach = reach
        self.restrict(reach, point)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.explainer.explain(
                point, y=self.wanted, norm=1, max_time=max(limit - 0.1, 0.1), num_workers=1, random_seed=seed % 2**31
            )
        status = self.explainer.Status
        if found is None:
            return [{"status": "INFEASIBLE"} if status == "INFEASIBLE" else {"reason": "time limit"}]
        bound = self.explainer.solver.BestObjectiveBound() / 1e8
        row = self.row(reach, point, numpy.asarray(found.x, dtype=float))
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
                found = explainer.nearest(column, variable.levels, x)
                open_ = Domain.from_values([place for place, each in enumerate(found) if each is not None])
                explainer.add_garbage(explainer.add_linear_expression_in_domain(variable.xget(), open_))

    def row(self, reach, point, found):
        """OCEAN's point in the features' own values."""
        row = {name: mine.own for name, mine in reach.items()}
        for column, x, value in zip(self.columns, point, found, strict=True):
            name = column.feature["name"]
            variable, mine = self.explainer.mapper[name], reach[name]
            if column.code:
                if value > 0.5:
                    row[name] = column.level
            elif variable.is_binary:
                row[name] = next(each for each in mine.values if column.of(each) == value)
            else:
                at = self.explainer.solver.Value(variable.xget())
                nearest, taken = self.explainer.nearest(column, variable.levels, x)[at]
                row[name] = column.number(mine, value, nearest) if taken is None else taken
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

    def ends(self, mine):
        """Least and greatest value of the column that the person may take, of a number."""
        low, high = (-math.inf if mine.low is None else mine.low), (math.inf if mine.high is None else mine.high)
        return self.of(low), self.of(high)

    def nearest(self, mine, above, at_most, x):
        """Of the column, what lies nearest to x within (above, at_most] and may be taken, and the feature's value.

        The latter is None of a continuous number, and ``above`` stands for what comes next; None: there is nothing.
        """
        if not self.stepped:
            low, high = self.ends(mine)
            low, high = max(low, above), min(high, at_most)
            return None if high <= above or low > high else (min(max(x, low), high), None)
        candidates = mine.values
        if candidates is None:
            low, high = self.ends(mine)
            start = min(max(above if above >= x else at_most, low), high)
            start = start * self.source["unit"] + self.source["shift"]
            around = 2 + len(mine.barred)
            candidates = range(math.floor(start) - around, math.ceil(start) + around + 1)
        inside = [each for each in candidates if above < self.of(each) <= at_most and mine.permits(each)]
        best = min(inside, key=lambda each: abs(self.of(each) - x), default=None)
        return None if best is None else (self.of(best), best)

    def number(self, mine, value, nearest):
        """A continuous number by OCEAN's value of the column, unless an end of what may be taken lies nearer."""
        low, high = self.ends(mine)
        if nearest in (low, high):
            return mine.low if nearest == low else mine.high
        return value * self.source["unit"] + self.source["shift"]


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
    """What OCEAN calls each feature."""
    found = {}
    for column in columns:
        name = column.feature["name"]
        if column.code:
            codes = [other.code for other in columns if other.feature is column.feature]
            found[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
        elif column.feature["kind"] == "binary":
            found[name] = Feature(Feature.Type.BINARY)
        else:
            found[name] = Feature(Feature.Type.CONTINUOUS, levels=(-END, END))
    return found


far.serve(OceanCp)
