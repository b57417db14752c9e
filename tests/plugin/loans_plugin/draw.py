"""Draw training rows of the desired class, and answer with those that change the fewest features."""

from dataclasses import dataclass

from harness.core.explanation import Answer, Explanation, Status


@dataclass(frozen=True)
class Draw:
    tries: int = 20  # rows to draw

    def refuses(self, problem): ...  # why it cannot take this problem, in a sentence; None where it can

    def objective(self, problem): ...  # what it claims to minimise, which the checker then holds it to; or None

    def fit(self, problem):
        return _Explainer(self.tries, problem.space, problem.train.loc[problem.valid(problem.train)])


class _Explainer:
    def __init__(self, tries, space, wanted):
        self.tries, self.space, self.wanted = tries, space, wanted

    def explain(self, factual, n, rng, deadline):
        rows = self.wanted.sample(self.tries, replace=True, random_state=rng).drop_duplicates()
        rows = rows.loc[[not broken for broken in self.space.violations(factual, rows)]]
        order = self.space.changed(factual, rows).sum(axis=1).argsort(kind="stable")
        answers = tuple(Answer(Status.FOUND, row) for row in rows.iloc[order[:n]].to_dict("records"))
        return Explanation(answers).padded(n, Answer(Status.GAVE_UP, detail="no other row was drawn"))
