"""A far side by the stub: hands what it is told about the model to the file of its settings."""

from __future__ import annotations

import json
from typing import Any

import far


class Asking:
    def __init__(self, problem: far.Problem, settings: dict[str, Any]) -> None:
        if settings.get("refuse"):
            raise far.Refused("not this one.")
        self.problem, rows = problem, problem.train[:20]
        told = {name: getattr(problem, name)(rows) for name in ("predict", "score", "accepts", "matrix")}
        for name in settings["ask"]:
            told[name] = getattr(problem, name)(rows) if name == "gradient" else getattr(problem, name)()
        told["limit"] = problem.limit
        with open(settings["file"], "w", encoding="utf-8") as file:
            json.dump(told, file, default=lambda array: array.hex() if isinstance(array, bytes) else array.tolist())

    def explain(
        self, factual: dict[str, Any], reach: dict[str, far.Reach], count: int, seed: int, limit: float
    ) -> list[dict[str, Any]]:
        says = self.problem.accepts(self.problem.train)
        row = next(row for row, accepted in zip(self.problem.train, says, strict=True) if accepted)
        other = next(row for row, accepted in zip(self.problem.train, says, strict=True) if not accepted)
        return [{"row": row, "status": "OPTIMAL"}, {"row": dict(other), "status": "OPTIMAL"}, {"status": "INFEASIBLE"}]


far.serve(Asking)
