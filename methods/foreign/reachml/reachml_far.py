"""The nearest reachable point by the package reachml: the far side of ``method=reachml``.

Its action set has one whole number a feature (ranks of ordinal ones) and one yes-or-no a category, kept to one of them.
Its integer program lists, feature by feature, what can be reached, and all combinations of that are asked about. Of the
first list that holds points which the model accepts, the one of fewest steps is the answer. A feature of which a person
may take some values but neither all categories nor all numbers between two ends stays as it is. A question is refused
where the next list would combine more than ``most`` actions: it is built whole, and nothing can end that meanwhile.
"""

import time
import warnings

import far
import numpy
import pandas
import reachml
from reachml.constraints import OneHotEncoding


class ReachMl:
    r"""The nearest accepted one of the first points that are listed as reachable [1]_.

    .. math::
        \min_x \; & \|x - \hat x\|_1 \\
        \text{s.t. } \; & h(x) \models \tilde y, \quad x - \hat x \in A^1 \times A^2 \times \dots \\
        A^g = \; & \{a^1, a^2, \dots\}, \quad
                   a^k \in \arg\min \{\|a\|_1 : a \in A^g(\hat x), \; a \ne a^1, \dots, a^{k-1}\}

    A group g is a feature, or the columns of a category; :math:`A^g(\hat x)` are its permitted actions, which reachml
    lists by an integer program for a category, and all at once for any other feature. ``batch`` more of a category are
    listed until a combination is accepted. So the answer is the nearest of a list, not of all points.

    References
    ----------
    .. [1] Kothari, A., B. Kulynych, T.-W. Weng, and B. Ustun (2024). Prediction without preclusion: recourse
       verification with reachable sets. *ICLR*. reachml 0.2.0a1, https://github.com/ustunb/reachml
    """

    def __init__(self, problem, settings):
        if wrong := [each["name"] for each in problem.features if each["kind"] == "continuous"]:
            raise far.Refused(f"reachml lists points of whole numbers and categories only; {wrong[0]} is continuous.")
        self.problem, self.batch, self.most = problem, settings["batch"], settings["most"]
        self.columns = [
            (feature, level)
            for feature in problem.features
            for level in (feature["categories"] if feature["kind"] == "categorical" else [None])
        ]
        names = [
            feature["name"] if level is None else f"{feature['name']}_is_{level}" for feature, level in self.columns
        ]
        self.train = pandas.DataFrame([self.encode(row) for row in problem.train], columns=names).astype(float)
        self.names = names

    def encode(self, row):
        return numpy.array([code(feature, level, row[feature["name"]]) for feature, level in self.columns], dtype=float)

    def decode(self, values):
        row = {}
        for (feature, level), value in zip(self.columns, values, strict=True):
            number = round(float(value))
            if level is not None:
                if number:
                    row[feature["name"]] = level
            else:
                row[feature["name"]] = feature["categories"][number] if feature["categories"] else number
        return row

    def action_set(self, factual, reach):
        """What this person can do, in reachml's words."""
        own = pandas.DataFrame([self.encode(factual)], columns=self.names).astype(float)
        found = reachml.ActionSet(pandas.concat([self.train, own], ignore_index=True))
        for feature in self.problem.features:
            mine = [name for name, (each, _) in zip(self.names, self.columns, strict=True) if each is feature]
            ends = ends_of(feature, reach[feature["name"]])
            if ends is None:
                for name in mine:
                    found[name].actionable = False
            elif feature["kind"] == "categorical":
                found.constraints.add(OneHotEncoding(names=mine))
            else:
                element, own = found[mine[0]], code(feature, None, factual[feature["name"]])
                low = min(element.lb, own) if ends[0] is None else ends[0]
                high = max(element.ub, own) if ends[1] is None else ends[1]
                element.step_direction = int(low >= own) - int(high <= own)
                if element.variable_type is not bool:
                    element.lb, element.ub = low, high
        return found

    def explain(self, factual, reach, count, seed, limit):
        until = time.monotonic() + limit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            point = self.encode(factual)
            listed = reachml.ReachableSetEnumerator(self.action_set(factual, reach), point, solver="scip")
            while time.monotonic() < until - 0.2:
                if self.combined(listed) > self.most:
                    detail = f"reachml combines all that features can become at once, here over {self.most:,} actions; "
                    return [{"status": "UNSUPPORTED", "detail": f"{detail}take coarser numbers, by 'discretise' say."}]
                listed.enumerate(max_points=self.batch, time_limit=max(until - 0.2 - time.monotonic(), 0.1))
                points = numpy.asarray(listed.reachable_points)
                points = points[(points != point).any(axis=1)]
                accepted = points[numpy.asarray(self.problem.accepts(self.codes(points)), dtype=bool)]
                if len(accepted):
                    return [{"row": self.decode(accepted[numpy.abs(accepted - point).sum(axis=1).argmin()])}]
                if listed.complete:
                    return [{"status": "GAVE_UP", "detail": "nothing that reachml lists is accepted by the model"}]
        return [{"reason": "time limit", "detail": "the list did not end"}]

    def combined(self, listed):
        """How many actions reachml combines into the next list: in each point one a feature that may change."""
        points = 1
        for columns, group in zip(listed.partition, listed._enumerators.values(), strict=True):
            actions = len(group.feasible_actions)
            points *= actions if group.complete else min(actions + self.batch, len(columns))
        return points * len(listed.partition)

    def codes(self, points):
        """Points in reachml's columns as numbers, and places among categories, shape (points, features)."""
        found = []
        for feature in self.problem.features:
            mine = points[:, [each is feature for each, _ in self.columns]]
            found.append(mine.argmax(axis=1) if feature["kind"] == "categorical" else mine[:, 0])
        return numpy.column_stack(found)


def ends_of(feature, mine):
    """Least and greatest number or rank that a person may take, None for no end; None where reachml cannot say it."""
    if mine.values is None:
        outside = (mine.low is not None and mine.own < mine.low) or (mine.high is not None and mine.own > mine.high)
        return None if outside or mine.barred or mine.low == mine.high else (mine.low, mine.high)
    codes = sorted(feature["categories"].index(value) for value in mine.values)
    if len(codes) == 1 or codes != list(range(codes[0], codes[-1] + 1)):
        return None
    whole = len(codes) == len(feature["categories"])
    return (codes[0], codes[-1]) if whole or feature["kind"] != "categorical" else None


def code(feature, level, value):
    if level is not None:
        return float(value == level)
    return feature["categories"].index(value) if feature["categories"] else value


far.serve(ReachMl)
