"""Ask Marabou, in an environment of its own, whether networks have a valid point within l1 distances: a line an answer.

``python marabou.py FILE SECONDS``: the file has a list of questions in JSON: ``base``, the factual's inputs; ``unit``,
what a scaled unit is in each input, 0 where it stays; ``layers``, weights by input and unit, and shifts; ``low`` and
``high`` of the output, or null; ``radius``. Prints ``sat``, ``unsat`` or ``TIMEOUT`` and processor seconds of each.
"""

import json
import sys
import time
from pathlib import Path


class Query:
    """Marabou's query, built variable by variable."""

    def __init__(self, core):
        self.core = core  # of maraboupy, which is imported only where it is: see main
        self.rows, self.bounds, self.relus = [], [], []

    def variable(self, low=None, high=None):
        self.bounds.append((low, high))
        return len(self.bounds) - 1

    def row(self, kind, terms, scalar):
        equation = self.core.Equation(kind)
        for coefficient, variable in terms:
            equation.addAddend(coefficient, variable)
        equation.setScalar(scalar)
        self.rows.append(equation)

    def made(self):
        query = self.core.InputQuery()
        query.setNumberOfVariables(len(self.bounds))
        for variable, (low, high) in enumerate(self.bounds):
            if low is not None:
                query.setLowerBound(variable, low)
            if high is not None:
                query.setUpperBound(variable, high)
        for equation in self.rows:
            query.addEquation(equation)
        for before, after in self.relus:
            self.core.addReluConstraint(query, before, after)
        return query


def query_of(question, core):
    """Whether some point within the radius has an output between low and high."""
    made, least, same = Query(core), core.Equation.LE, core.Equation.EQ
    radius, inputs, gaps = question["radius"], [], []
    for base, unit in zip(question["base"], map(abs, question["unit"]), strict=True):
        x, gap = made.variable(base - radius * unit, base + radius * unit), made.variable(0.0, radius)
        for sign in (1.0, -1.0) if unit else ():
            made.row(least, [(sign / unit, x), (-1.0, gap)], sign * base / unit)
        inputs.append(x)
        gaps += [(1.0, gap)]
    made.row(least, gaps, radius)
    *hidden, last = question["layers"]
    for weights, shifts in hidden:
        inputs = [
            _unit(made, same, inputs, row, shift) for row, shift in zip(zip(*weights, strict=True), shifts, strict=True)
        ]
    output = made.variable(question["low"], question["high"])
    weights, shifts = last
    made.row(same, [*((row[0], x) for row, x in zip(weights, inputs, strict=True)), (-1.0, output)], -shifts[0])
    return made.made()


def _unit(made, same, inputs, row, shift):
    before, after = made.variable(), made.variable(0.0)
    made.row(same, [*((weight, x) for weight, x in zip(row, inputs, strict=True) if weight), (-1.0, before)], -shift)
    made.relus.append((before, after))
    return after


def main(path, seconds):
    from maraboupy import Marabou, MarabouCore

    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=int(seconds))
    for question in json.loads(Path(path).read_text()):
        began = time.process_time()
        found = MarabouCore.solve(query_of(question, MarabouCore), options, "")[0]
        print(found, round(time.process_time() - began, 2), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
