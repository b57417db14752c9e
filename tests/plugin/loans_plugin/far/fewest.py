"""The accepted training row that changes the fewest features, found by a Python of its own: numpy need not be there."""

import far


class Fewest:
    def __init__(self, problem, settings):
        self.names = [feature["name"] for feature in problem.features]
        says = problem.accepts(problem.train)
        self.rows = [row for row, accepted in zip(problem.train, says) if accepted][: settings["rows"]]
        if not self.rows:
            raise far.Refused("no training row is accepted by the model.")

    def explain(self, factual, reach, count, seed, limit):
        def changes(row):
            return sum(row[name] != factual[name] for name in self.names)

        permitted = [row for row in self.rows if all(reach[name].permits(row[name]) for name in self.names)]
        others = sorted((row for row in permitted if changes(row)), key=changes)
        return [{"row": row} for row in others[:count]]


far.serve(Fewest)
