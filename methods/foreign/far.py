"""The far side of a method in an environment of its own: one file, the standard library and, where it is there, numpy.

The harness copies nothing and imports nothing here: it runs a script of the method with that environment's Python, with
this file's folder on the path. The script hands a class to ``serve``::

    import far

    class Mine:
        def __init__(self, problem, settings): ...
        def explain(self, factual, reach, count, seed, limit): return [{"row": {...}}]

    far.serve(Mine)

``explain`` is given the person's row, what the person may take of each feature (``Reach``, by name), how many answers
are wanted, a seed, and the seconds that are left. An answer is ``{"row", "status", "bound", "reason", "detail"}``: all
but the row may be left out, and without a row the status says why there is none.

Python 3.8 and later. Version 1 of the protocol: one JSON object a line, on the standard input and output. By what the
harness says, and then the reply, which repeats the message's ``id``; a row is a list of values in the features' order::

    {"do": "hello", "id", "version", "arrays"}                                 {"id", "version", "arrays"}
    {"do": "fit", "id", "settings", and what ``Problem`` has}                  {"id", "ok": true} or {"id", "refused"}
    {"do": "explain", "id", "factual", "reach", "count", "seed", "limit"}      {"id", "answers"}

``arrays`` is "npy" or "json": where both say npy, an array of the harness is {"npy": base64 of such a file}, else
lists; a far side sends lists, and where both say npy also "rows" of numbers as such a file, of a category its place
among its feature's. ``refused`` is a sentence; any reply may be {"id", "error"}, a text, or {"id", "memory": true}.
``answers`` is a list of objects as above, the row a list, at most ``count`` of which are taken; ``bound`` is a proven
lower one on what is claimed. Before it replies, a far side may ask: {"ask", "rows"}, by the names of ``Problem``'s
methods; the harness then says {"reply"} or {"error"}. A status is OPTIMAL, FOUND, INFEASIBLE, GAVE_UP or UNSUPPORTED,
a reason "finished" or "time limit". A line of a far side has at most 64 MiB; it ends where its input does.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import traceback
from typing import Any, Dict

try:
    import numpy
except ImportError:  # lists of numbers then
    numpy = None  # type: ignore[assignment]

VERSION = 1
PART = 2**21  # numbers of an array that are sent in one line, of 22 MiB
Row = Dict[str, Any]  # from feature to value


class Refused(Exception):
    """Raised by a method's constructor where it does not take the problem; its text is the sentence for the user."""


class Lines:
    """The two ends of the pipe; what the method prints goes to the standard error."""

    def __init__(self) -> None:
        self.source = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
        self.sink = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)

    def read(self) -> Any:
        line = self.source.readline()
        if not line:
            raise SystemExit(0)  # the harness has ended
        return json.loads(line, object_hook=_array)

    def write(self, message: Any) -> None:
        self.sink.write(json.dumps(message, default=_plain, allow_nan=False) + "\n")
        self.sink.flush()

    def ask(self, what: str, **more: Any) -> Any:
        """Ask the harness, which answers before it asks anything else."""
        self.write(dict(more, ask=what))
        reply = self.read()
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["reply"]


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be sent; give numbers, strings, lists or numpy arrays")


def _array(found: Any) -> Any:
    if set(found) == {"npy"}:
        return numpy.load(io.BytesIO(base64.b64decode(found["npy"])), allow_pickle=False)
    return found


def _npy(array: Any) -> Row:
    """An array of numbers as a file of numpy's, for JSON."""
    file = io.BytesIO()
    numpy.save(file, array, allow_pickle=False)
    return {"npy": base64.b64encode(file.getvalue()).decode("ascii")}


class Problem:
    """What a method is fitted to.

    ``features``: a list of dictionaries, one a feature: name; kind (continuous, integer, ordinal, categorical, binary);
    categories, in order, none of a number; scale and bounds, two numbers, None for no end. What a person may take of
    each comes with the person. ``constraints``: relations between features that an answer has to keep, in words.
    ``train``: rows, a list of dictionaries from feature to value; ``labels``: what the data say of each, if anything.
    ``target``: the wanted {"class"} or {"classes"}, {"interval": [low, high]} of a number, or {"probability": [low,
    high], "class"}.
    ``claim``: what the method's YAML says that it minimises, {"distance": "l1", "alpha": 0.0}.
    ``inputs``: how each of the estimator's columns comes of a "feature", by "type": affine and chain, (value - shift) /
    unit; indicator, whether the value is one of "levels"; lookup, the number in "values" at the place that it has in
    "levels"; step, that in "values" at the number of "cuts" at or below it. ``classes``: what the model tells apart.
    ``limit``: seconds in which to fit; None where there is no limit.

    The model is asked about rows as ``train`` has them or, of many in a fraction of the time, as an array of numbers,
    shape (rows, features), of a category its place in ``categories``.
    """

    def __init__(self, lines: Lines, message: Any) -> None:
        self._lines = lines
        self.features, self.target = message["features"], message["target"]
        self.constraints = message["constraints"]
        self.inputs, self.classes = message["inputs"], message["classes"]
        self.train, self.labels = self.rows(message["train"]), message["labels"]
        self.claim, self.limit = message["claim"], message["limit"]

    def rows(self, values: list[list[Any]]) -> list[Row]:
        """Rows of values as dictionaries."""
        names = [feature["name"] for feature in self.features]
        return [dict(zip(names, row)) for row in values]

    def values(self, rows: list[Row]) -> list[list[Any]]:
        """Dictionaries as rows of values, in the order of the features."""
        return [[row[feature["name"]] for feature in self.features] for row in rows]

    def predict(self, rows: Any) -> Any:
        """The class, or the number, that the real model gives each row."""
        return self._asked("predict", rows)

    def score(self, rows: Any) -> Any:
        """The probability of the second of two classes, or of each class; or the number."""
        return self._asked("score", rows)

    def accepts(self, rows: Any) -> Any:
        """Whether the real model says of each row what is wanted."""
        return self._asked("accepts", rows)

    def matrix(self, rows: Any) -> Any:
        """The estimator's own columns of rows."""
        return self._asked("matrix", rows)

    def gradient(self, rows: Any) -> Any:
        """Of a linear model or a network: the score's derivative by each of the estimator's columns, a row each."""
        return self._asked("gradient", rows)

    def _asked(self, what: str, rows: Any) -> Any:
        """The harness's reply about rows; an array goes in parts, each of which fits into a line."""
        if numpy is None or not isinstance(rows, numpy.ndarray):
            return self._lines.ask(what, rows=self.values(rows))
        parts = [self._lines.ask(what, rows=_npy(part)) for part in numpy.array_split(rows, rows.size // PART + 1)]
        return numpy.concatenate(parts) if isinstance(parts[0], numpy.ndarray) else list(itertools.chain(*parts))

    def layers(self) -> Any:
        """Of a linear model or a network: a list of {"weights", "intercepts", "activation"}, the outputs' last.

        Of two classes and one output, it is above 0 for class 1: the model's threshold is taken off.
        """
        return self._lines.ask("layers")

    def trees(self) -> Any:
        """{"base", "weight", "single", "trees": [{"left", "right", "column", "threshold", "value", "outputs"}]}:

        base + weight · Σ values by output; at most the threshold goes left, by ``single`` of the number in float32.
        """
        return self._lines.ask("trees")

    def estimator(self) -> bytes:
        """The fitted scikit-learn estimator as bytes in the format of skops, for ``skops.io.loads``."""
        return base64.b64decode(self._lines.ask("estimator"))


class Reach:
    """What one person may take of one feature, by the harness's rules; to stay as one is, is always permitted.

    ``values``: categories, the person's own among them; None of a number. ``low``, ``high``: ends of a number, both
    permitted, None where there is none, and the first above the second where nothing is; ``barred``: numbers between
    them that are not permitted.
    """

    def __init__(self, own: Any, told: Any) -> None:
        self.own, self.values = own, told.get("values")
        self.low, self.high, self.barred = told.get("low"), told.get("high"), told.get("barred", [])

    def permits(self, value: Any) -> bool:
        """Whether the person may take a value."""
        if value == self.own:
            return True
        if self.values is not None:
            return value in self.values
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high) and value not in self.barred


def serve(method: Any) -> None:
    """Answer the harness until it closes the pipe."""
    lines = Lines()
    explainer: Any = None
    problem: Any = None
    reply: Row
    while True:
        message = lines.read()
        try:
            if message["do"] == "hello":
                reply = {"version": VERSION, "arrays": "json" if numpy is None else message.get("arrays")}
            elif message["do"] == "fit":
                problem = Problem(lines, message)
                explainer = method(problem, message["settings"])
                reply = {"ok": True}
            else:
                factual = problem.rows([message["factual"]])[0]
                reach = {name: Reach(factual[name], told) for name, told in message["reach"].items()}
                found = explainer.explain(factual, reach, message["count"], message["seed"], message["limit"])
                reply = {"answers": [dict(each, row=_row(problem, each)) for each in found]}
        except Refused as refusal:
            reply = {"refused": str(refusal)}
        except MemoryError:
            reply = {"memory": True}
        except Exception:
            reply = {"error": traceback.format_exc()}
        lines.write(dict(reply, id=message["id"]))


def _row(problem: Problem, answer: Row) -> Any:
    row = answer.get("row")
    return None if row is None else problem.values([row])[0]
