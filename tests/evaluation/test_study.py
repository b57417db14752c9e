"""A study from its sweeps to the terminal, the CSV, the report and MLflow: every number as worked out by hand.

Of two data sets with two features, each from 0 to 100, x is below the models' only split for 14 people, 0, 2, ..., 26
(in the second data set 10 more); y is immutable. A counterfactual that sets x to v has Gower's distance (v - x) / 200.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from scipy import stats
from support import latex
from support.markup import Page
from support.sweep import runner

from harness.core.metric import CRITERIA
from harness.evaluation import study
from harness.reports import tables
from harness.reports.page import page

TOYS = '''
"""Five methods that set x; what they answer is known in advance."""

import time
from dataclasses import dataclass

from harness.core.explanation import Answer, Explanation, Status


@dataclass(frozen=True)
class Toy:
    kind: str
    shift: float = 0.0

    @property
    def deterministic(self):
        return self.kind != "few"

    @property
    def gives(self):
        return "one" if self.kind == "single" else "several"

    def refuses(self, problem):
        second = problem.classifier.estimator.random_state == 2
        return "picky does not take the second model." if self.kind == "picky" and second else None

    def objective(self, problem):
        return None

    def fit(self, problem):
        return self

    def explain(self, factual, n, rng, deadline):
        row, number = factual.iloc[0].to_dict(), int(factual.index[0])
        seed = rng.bit_generator.seed_seq.entropy[0]
        answers = []
        for x, y in ANSWERS[self.kind](number, seed, self.shift):
            answers.append(Answer(Status.FOUND, {**row, "x": x, "y": row["y"] + y}))
        return Explanation(tuple(answers)).padded(n, Answer(Status.GAVE_UP, detail="a toy has no more"))


def few(number, seed, shift):
    """The first six people; the seventh with seed 0 alone; an invalid point for the eighth."""
    if number < 6 or (number == 6 and seed == 0):
        return [(65, 0), (75, 0)]
    return [(1, 0)] if number == 7 else []


def breaks(number, seed, shift):
    return [(62, 10), (72, 10)] if number in (1, 3) else [(62, 0), (72, 0)]


def slow(number, seed, shift):
    time.sleep(9.0 if number == 13 else 0.05)
    return [(61, 0), (81, 0)]


ANSWERS = {
    "few": few,
    "breaks": breaks,
    "picky": lambda number, seed, shift: [(70, 0), (58, 0)],  # the second is the nearest
    "slow": slow,
    "single": lambda number, seed, shift: [(60 + shift, 0)],
}
'''
KINDS = ("few", "breaks", "picky", "slow", "single")
SETTINGS = (
    "dataset=csv", "dataset.target=label", "dataset.desired=good", "dataset.immutable=[y]",
    "split=none", f"factuals={[*range(14)]}".replace(" ", ""), "n_counterfactuals=2", "time_limit=1", "study=toys",
    "model=one,two",
)  # fmt: skip
FIRST, SHIFTED = "single (shift=0.0)", "single (shift=10)"
MEASURED = ("distance/gower", "distance/l0", "plausibility/ynn", "robustness/invalidation_rate")
X = 2.0 * np.arange(14)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """The folder of a study of which all methods were asked about the first data set, and its summary."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "toys.py").write_text(TOYS)
    for group in ("model", "method"):
        (folder / "conf" / group).mkdir(parents=True)
    for kind in KINDS:
        text = f"# A toy\n_target_: toys.Toy\nkind: {kind}\nshift: 0.0  # of x\n"
        (folder / "conf" / "method" / f"{kind}.yaml").write_text(text)
    for number, name in enumerate(("one", "two"), start=1):
        tree = "  _target_: sklearn.tree.DecisionTreeClassifier\n  max_depth: 1\n"
        text = f"# A split\nestimator:\n{tree}  random_state: {number}\nthreshold: 0.5\n"
        (folder / "conf" / "model" / f"{name}.yaml").write_text(text)
    for name, more in (("a", 0), ("b", 10)):
        rows = [(2 * i + more, 50, "bad") for i in range(14)] + [(0, 0, "bad"), (100, 100, "good"), (56, 50, "good")]
        pd.DataFrame(rows, columns=["x", "y", "label"]).to_csv(folder / f"{name}.csv", index=False)
    _sweep(folder, "dataset.path=a.csv", f"method={','.join(KINDS)}")
    return folder, pd.read_csv(folder / "results" / "toys" / "summary.csv")


@pytest.fixture(scope="module")
def shifted(begun: tuple[Path, pd.DataFrame]) -> tuple[Path, pd.DataFrame]:
    """The same, after one method was asked with another setting about both data sets."""
    _sweep(begun[0], "dataset.path=a.csv,b.csv", "method=single", "method.shift=10")
    return begun[0], pd.read_csv(begun[0] / "results" / "toys" / "summary.csv")


@pytest.fixture(scope="module")
def swept(shifted: tuple[Path, pd.DataFrame]) -> tuple[Path, str]:
    """The folder of all sweeps of the study, and what the last of them printed."""
    return shifted[0], _sweep(shifted[0], "dataset.path=a.csv,b.csv", f"method={','.join(KINDS)}")


def _sweep(folder: Path, *choices: str) -> str:
    """What one command with three seeds printed."""
    done = runner(folder)("-m", "hydra.searchpath=[conf]", *SETTINGS, *choices, "seed=0,1,2")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def numbers(swept: tuple[Path, str]) -> pd.DataFrame:
    table = pd.read_csv(swept[0] / "results" / "toys" / "summary.csv")
    return table.set_index(["task", "method", "number"]).sort_index()


@pytest.fixture(scope="module")
def report(swept: tuple[Path, str]) -> Page:
    """The report, as a browser reads it."""
    return Page(page.write(swept[0] / "results" / "toys").read_text())


@pytest.fixture(scope="module")
def pairs(swept: tuple[Path, str]) -> pd.DataFrame:
    table = pd.read_csv(swept[0] / "results" / "toys" / "pairs.csv")
    return table.set_index(["task", "criterion", "first", "second"]).sort_index()


def test_a_study_that_has_begun_is_told(begun: tuple[Path, pd.DataFrame]) -> None:
    """What was asked so far, and nothing else."""
    found = begun[1].groupby("task")["method"].agg(set).to_dict()
    able = {"few", "breaks", "slow", "single"}
    assert found == {"a / one": able | {"picky"}, "a / two": able}


def test_another_setting_is_another_method(shifted: tuple[Path, pd.DataFrame]) -> None:
    """Where there are both, the setting is in their names."""
    found = shifted[1].groupby("task")["method"].agg(set).to_dict()
    assert {FIRST, SHIFTED} < found["a / one"]
    assert found["b / one"] == found["b / two"]
    assert len(found["b / one"]) == 1


def test_every_run_is_kept_apart(swept: tuple[Path, str], numbers: pd.DataFrame) -> None:
    """Six rows on the first model, five on the second, which one refuses; only what draws has a run a seed."""
    folder, _ = swept
    found = {task: set(numbers.loc[task].index.get_level_values("method")) for task in numbers.index.levels[0]}
    able = {"few", "breaks", "slow", FIRST, SHIFTED}
    assert found == {f"{d} / {m}": able | ({"picky"} if m == "one" else set()) for d in "ab" for m in ("one", "two")}
    assert set(numbers.xs("few", level="method")["seeds"]) == {3}
    assert set(numbers.drop("few", level="method")["seeds"]) == {1}
    assert len(list((folder / "results" / "toys" / "answers").iterdir())) == 4 * (3 + 5)


@pytest.mark.parametrize("task", ["a / one", "a / two", "b / one", "b / two"])
def test_counts_and_means_of_each_method(task: str, numbers: pd.DataFrame) -> None:
    """Means are over accepted counterfactuals, first of a question, then over questions."""
    table, more = numbers.loc[task]["value"], 10 / 200 if task[0] == "b" else 0.0
    assert table.xs("coverage", level="number").drop("picky", errors="ignore").to_dict() == pytest.approx(
        {"few": (6 + 1 / 3) / 14, "breaks": 12 / 14, "slow": 13 / 14, FIRST: 1.0, SHIFTED: 1.0}
    )
    assert table["few", "filled"] == pytest.approx((6 + 1 / 3) / 14)
    assert table["breaks", "filled"] == pytest.approx(12 / 14)
    assert math.isnan(table[FIRST, "filled"])
    assert table["few", "validity"] == pytest.approx(38 / 41)  # two for seven people, and six; one for the eighth
    assert table["breaks", "validity"] == 1.0
    faults = table.loc[["few", "breaks", "slow"], ["invalid", "not permitted", "incoherent", "late"]]
    assert faults[faults > 0].to_dict() == {("few", "invalid"): 3, ("breaks", "not permitted"): 4}
    proximity = table.xs("distance/gower", level="number")
    assert proximity["few"] == pytest.approx((70 - 6) / 200 - more)
    assert proximity["breaks"] == pytest.approx((67 - 14.5) / 200 - more)
    assert proximity["slow"] == pytest.approx((71 - 12) / 200 - more)
    assert proximity[FIRST] == pytest.approx((60 - 13) / 200 - more)
    assert proximity[SHIFTED] == pytest.approx((70 - 13) / 200 - more)
    diversity = table.xs("diversity/pairwise_gower", level="number").drop([FIRST, SHIFTED])
    assert diversity.drop("picky", errors="ignore").to_dict() == pytest.approx(
        {"few": 0.05, "breaks": 0.05, "slow": 0.1}
    )
    assert set(table.xs("distance/l0", level="number")) == {1.0}
    if task.endswith("one"):
        assert proximity["picky"] == pytest.approx((64 - 13) / 200 - more)
        assert diversity["picky"] == pytest.approx(0.06)


def test_the_spread_over_seeds_is_of_means_of_runs(numbers: pd.DataFrame) -> None:
    """The standard deviation of a sample: seed 0 answers one of the 14 more; of one seed there is none."""
    spread = numbers.loc["a / one"]["seed_sd"]
    assert spread["few", "coverage"] == pytest.approx(1 / 14 / math.sqrt(3))
    assert math.isnan(spread["breaks", "coverage"])


def test_a_question_without_an_answer_counts_its_limit(numbers: pd.DataFrame) -> None:
    """The thirteenth of 14 sorted seconds is of a sleep, the last is the limit of one second."""
    table = numbers.loc["a / one"]["value"]
    assert 0.05 < table["slow", "seconds"] < 0.5
    assert table["slow", "seconds_p95"] > table["slow", "seconds"] + 0.35 * (1.0 - 0.5)
    # The seventh of 14 is of who was answered with one seed of three, the eighth of who never was.
    assert table["few", "seconds"] == pytest.approx((2 / 3 + 1) / 2, abs=0.05)


@pytest.mark.parametrize("task", ["a / one", "a / two", "b / one", "b / two"])
def test_common_means_are_of_the_nearest_answer(task: str, numbers: pd.DataFrame) -> None:
    """Of the 11 people for whom all but ``few``, which covers less than half, have an accepted counterfactual."""
    table, more = numbers.loc[task], 10 / 200 if task[0] == "b" else 0.0
    gower = table.xs("distance/gower", level="number")
    assert set(gower["common_n"]) == {11}
    mean = X[[0, 2, *range(4, 13)]].mean()
    values = {"breaks": 62, "slow": 61, FIRST: 60, SHIFTED: 70, **({"picky": 58} if task.endswith("one") else {})}
    expected = {name: (value - mean) / 200 - more for name, value in values.items()}
    assert gower["common"].dropna().to_dict() == pytest.approx(expected)
    best = "picky" if task.endswith("one") else FIRST
    assert list(gower.index[gower["best"] == True]) == [best]  # noqa: E712


@pytest.mark.parametrize(
    ("model", "ranks"),
    [
        ("one", {"picky": 0, FIRST: 2.8, "slow": 6.1, "breaks": 9.0, "few": 12.3, SHIFTED: 11.8}),
        ("two", {FIRST: 0, "slow": 4.125, "breaks": 7.75, "few": 11.875, SHIFTED: 11.25}),
    ],
)
def test_ranks_are_within_questions(model: str, ranks: dict[str, float], numbers: pd.DataFrame) -> None:
    """Sums over the 14 people: who has no answer is last, or tied with another without one."""
    for dataset in "ab":
        found = numbers.loc[f"{dataset} / {model}"].xs("distance/gower", level="number")["rank"]
        assert found.to_dict() == pytest.approx({name: total / 14 for name, total in ranks.items()})


def test_intervals_are_those_of_scipy(numbers: pd.DataFrame) -> None:
    """Wilson's where there is one seed, else of a bootstrap over questions."""
    table = numbers.loc["a / one"]
    wilson = stats.binomtest(12, 14).proportion_ci(0.95, "wilson")
    assert table.loc[("breaks", "coverage"), ["low", "high"]].tolist() == pytest.approx([wilson.low, wilson.high])
    answered = np.r_[np.ones(6), 1 / 3, np.zeros(7)]
    draws = answered[np.random.default_rng(1).integers(14, size=(200_000, 14))].mean(axis=1)
    assert table.loc[("few", "coverage"), ["low", "high"]].tolist() == pytest.approx(
        np.quantile(draws, [0.025, 0.975]), abs=0.03
    )
    draws = ((60 - X) / 200)[np.random.default_rng(1).integers(14, size=(200_000, 14))].mean(axis=1)
    assert table.loc[(FIRST, "distance/gower"), ["low", "high"]].tolist() == pytest.approx(
        np.quantile(draws, [0.025, 0.975]), abs=0.002
    )


def test_pairs_are_those_of_scipy(pairs: pd.DataFrame) -> None:
    """By the nearest answers of both, Holm over the ten pairs of the task; and who answers what the other does not."""
    nearest = {"few": 65, "breaks": 62, "slow": 61, FIRST: 60, SHIFTED: 70}
    lost = {"few": range(6, 14), "breaks": (1, 3), "slow": (13,), FIRST: (), SHIFTED: ()}
    expected = {}
    for first, second in pairs.loc["a / two", "proximity"].index:
        both = [i for i in range(14) if i not in lost[first] and i not in lost[second]]
        gaps = np.full(len(both), (nearest[first] - nearest[second]) / 200)
        only = len(set(lost[second]) - set(lost[first])), len(set(lost[first]) - set(lost[second]))
        p = stats.wilcoxon(gaps, zero_method="zsplit").pvalue
        q = stats.binomtest(only[0], sum(only)).pvalue if sum(only) else math.nan
        expected[first, second] = (len(both), gaps[0], p, *only, q)
    adjusted = [{}, {}]
    for place, column in enumerate((2, 5)):
        known = sorted(
            (key for key in expected if not math.isnan(expected[key][column])), key=lambda k: expected[k][column]
        )
        steps = [min(1.0, expected[key][column] * (len(known) - rank)) for rank, key in enumerate(known)]
        adjusted[place] = dict(zip(known, np.maximum.accumulate(steps), strict=True))
    assert len(expected) == 10
    for key, (n, gap, _, one, other, _) in expected.items():
        row = pairs.loc[("a / two", "proximity", *key)]
        assert row[["n", "only_first", "only_second"]].tolist() == [n, one, other]
        assert row[["difference", "low", "high"]].tolist() == pytest.approx([gap] * 3)
        assert row["p"] == pytest.approx(adjusted[0][key])
        assert row["mcnemar"] == pytest.approx(adjusted[1].get(key, math.nan), nan_ok=True)


def meta(method: str = "m", seed: int = 0, **config: Any) -> dict[str, Any]:
    names = {"dataset": "a", "model": "rf", "method": method, "seed": seed}
    return {
        **names,
        "config": {"time_limit": 5, "n_factuals": 3, "features": {}, "dataset": {"immutable": []}, **config},
    }


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {"seed": 1}, [("a / rf", "m"), ("a / rf", "m")]),
        ({}, {"features": {"x": {"actionability": "free"}}},
         [("a / rf", "m"), ("a / rf", "m (features.x.actionability=free)")]),
        ({}, {"dataset": {"immutable": ["x"]}},
         [("a / rf", "m (dataset.immutable=[])"), ("a / rf", 'm (dataset.immutable=["x"])')]),
        ({"method": "n"}, {"time_limit": 9}, [("a / rf", "n (time_limit=5)"), ("a / rf", "m (time_limit=9)")]),
        ({"method": "n"}, {"n_factuals": 9}, [("a / rf (n_factuals=3)", "n"), ("a / rf (n_factuals=9)", "m")]),
        ({}, {"model": {"estimator": {"depth": 3}}}, [("a / rf", "m"), ("a / rf (model.estimator.depth=3)", "m")]),
        ({}, {"dataset": {"immutable": [], "desired": 1}}, [("a / rf", "m"), ("a / rf (dataset.desired=1)", "m")]),
    ],
    ids=["seed", "constraint", "immutables", "limit", "people", "model", "target"],
)  # fmt: skip
def test_what_differs_is_in_the_names(
    one: dict[str, Any], other: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """Of people and model after the task, of all else after the method; other methods of the task count, too."""
    assert [label[:2] for label in study.named([meta(**one), meta(**other)])] == expected


def test_the_terminal_has_them(swept: tuple[Path, str]) -> None:
    """Counts and means of each method, and common means with ranks, as the CSV has them."""
    _, printed = swept
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert any(line.startswith("a / one breaks 1 14 0.857 – 0.857 1.000") for line in lines)
    assert any(line.startswith("a / one few 3 14 0.452 0.041 0.452 0.927") for line in lines)
    assert any(line.startswith("a / one picky 0.223* [0.00]") for line in lines)
    assert any(line.startswith("a / two few – [0.85]") for line in lines)
    assert "a / two, b / two: picky refuses them: picky does not take the second model." in lines
    assert "a / one: few answers too few questions for common means." in lines


@pytest.mark.parametrize("task", ["a / one", "a / two", "b / one", "b / two"])
def test_the_report_has_them(task: str, report: Page) -> None:
    """Coverage, common means of 11 questions, the best of them in bold, and ranks, as worked out above."""
    means, alone = report.table(task, "proximity, rank"), report.table(task, "coverage")
    nearness = "proximity ↓, n = 11"
    covered = {"few": 0.452, "breaks": 0.857, "slow": 0.929, FIRST: 1.0, SHIFTED: 1.0}
    nearest = {"breaks": 62, "slow": 61, FIRST: 60, SHIFTED: 70}
    totals = {FIRST: 0, "slow": 4.125, "breaks": 7.75, "few": 11.875, SHIFTED: 11.25}
    if task.endswith("one"):
        covered, nearest = {**covered, "picky": 1.0}, {**nearest, "picky": 58}
        totals = {"picky": 0, FIRST: 2.8, "slow": 6.1, "breaks": 9.0, "few": 12.3, SHIFTED: 11.8}
    assert {name: float(row["coverage"].split()[0]) for name, row in alone.items()} == covered
    base = X[[0, 2, *range(4, 13)]].mean() + (10 if task[0] == "b" else 0)
    found = {name: row[nearness].split()[0] for name, row in means.items()}
    assert found == {name: f"{(nearest[name] - base) / 200:.3g}" if name in nearest else "–" for name in found}
    ranks = {name: row["proximity, rank"] for name, row in means.items()}
    assert ranks == {name: f"{total / 14:.2f}" for name, total in totals.items()}
    best = "picky" if task.endswith("one") else FIRST
    assert [cell for cell in report.bold[task] if cell[1] == nearness] == [(best, nearness, found[best])]


def test_the_report_recommends_with_coverage(report: Page) -> None:
    """Of two data sets there is no test: mean ranks over data sets, of models first, and who is first by pairs.

    Who covers less than half of the best is not recommended, for anything; who refuses a task has ranks of others, and
    stands below.
    """
    rows = report.table("proximity, lower is better", "place")
    some = "by mean rank, of some tasks"
    assert list(rows) == ["by mean rank", some, "–"]
    (picky, first) = (
        "picky (rank 0.00, 2 of 4 tasks, first in 2 of 2 tasks, coverage 1 (0.848 to 1))",
        f"{FIRST} (rank 0.10, first in 2 of 4 tasks, coverage 1 (0.848 to 1))",
    )
    assert rows["by mean rank"]["methods"].startswith(f"{first} slow (rank {(6.1 + 4.125) / 28:.2f}, ")
    assert rows[some]["methods"] == picky
    assert rows["–"]["methods"] == "answers too few: few (coverage 0.452 (0.284 to 0.638))"
    for name in ("sparsity", "plausibility", "robustness", "diversity", "seconds"):
        better = "lower" if name in {"sparsity", "robustness", "seconds"} else "higher"
        places = report.table(f"{name}, {better} is better", "place")
        assert "few (" not in places["by mean rank"]["methods"]
        assert places["–"]["methods"] == "answers too few: few (coverage 0.452 (0.284 to 0.638))"


def test_the_report_says_what_is_asked_and_what_fails(report: Page) -> None:
    asked = report.table("The question", "wanted")
    assert [list(asked[name].values()) for name in "ab"] == [
        [name, "label: good", "one, two", "14", "2", "1"] for name in "ab"
    ]
    failed = [list(row.values()) for row in report.tables[-1].rows if row["method"] == "few"]
    none = 3 * 14 * 2 - 2 * (6 * 3 + 1) - 3  # of three seeds, but for two each of 19 questions, and an invalid one each
    assert failed == [
        [f"{d} / {m}", "few", f"{none} GAVE_UP: a toy has no more", "3 invalid"] for d in "ab" for m in ("one", "two")
    ]
    assert report.tables[-1].heading == "Failures, with reasons"


def test_a_papers_table_has_them(swept: tuple[Path, str], numbers: pd.DataFrame) -> None:
    """One a task, in LaTeX: coverage, common means with the interval of proximity, the best in bold, median seconds."""
    folder = swept[0] / "results" / "toys"
    tables.write(folder, None)
    found = {table.label: table for table in latex.read((folder / "table.tex").read_text())}
    assert list(found) == [f"tab:toys-{place}" for place in (1, 2, 3, 4)]
    for table, task in zip(found.values(), numbers.index.levels[0], strict=True):
        assert [name.strip("{}").split()[0] for name in table.head] == ["method", "coverage", *CRITERIA[:-1], "seconds"]
        assert table.caption.startswith(rf"\texttt{{{task}}}: 14 questions.")
        assert "over the 11 questions that all methods answer (without \\texttt{few}" in table.caption
        assert ("Refused by \\texttt{picky}" in table.caption) == task.endswith("two")
        rows = {row[0].removeprefix("\\texttt{").removesuffix("}"): row[1:] for row in table.rows}
        assert set(rows) == set(numbers.loc[task].index.get_level_values("method"))
        for method, cells in rows.items():
            known = numbers.loc[task, method]
            assert latex.numbers(cells[0]) == [round(known.loc["coverage", "value"], 2)]
            assert latex.numbers(cells[5]) == [float(f"{known.loc['seconds', 'value']:.3g}")]
            for cell, name in zip(cells[1:5], MEASURED, strict=True):
                row = known.loc[name]
                ends = ["common", "common_low", "common_high"] if name == MEASURED[0] else ["common"]
                expected = [] if math.isnan(row["common"]) else [round(row[end], 3) + 0.0 for end in ends]
                assert latex.numbers(cell) == expected, (method, name)
                assert ("bf" in cell) == (row["best"] is True or row["best"] == "True"), (method, name)
    # (60 - mean of the 11 people's x) / 200, by hand: their numbers sum to 74, so that their x average 148 / 11
    first = {row[0]: row for row in found["tab:toys-2"].rows}[rf"\texttt{{{FIRST}}}"]
    assert latex.numbers(first[2])[0] == round((60 - 148 / 11) / 200, 3)


def test_mlflow_has_them(swept: tuple[Path, str], numbers: pd.DataFrame) -> None:
    """A run a seed and variant, each with a name of its own; the comparison is the study's."""
    folder, _ = swept
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    (experiment,) = [found for found in client.search_experiments() if found.name == "toys"]
    found = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    runs = {run.info.run_name: run.data.metrics for run in found}
    assert len(runs) == 4 * (3 + 5)
    shifted = runs["a/one/single (shift=10)"]
    assert shifted["coverage"] == 1.0
    assert shifted["proximity"] == pytest.approx((70 - 13) / 200)
    assert shifted["rank/proximity"] == pytest.approx(11.8 / 14)
    assert shifted["n/cpu_seconds"] == 14
    assert shifted["common/proximity"] == numbers.loc[("a / one", SHIFTED, "distance/gower"), "common"]
    assert runs["b/two/few, seed 1"]["coverage"] == pytest.approx(6 / 14)
    assert runs["b/two/few, seed 0"]["coverage"] == pytest.approx(7 / 14)


def test_mlflow_begins_with_what_one_looks_for(swept: tuple[Path, str]) -> None:
    """At most 16 metrics without a family; parameters that differ; source, commit and description of each run."""
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{swept[0] / 'mlflow.db'}")
    (experiment,) = [found for found in client.search_experiments() if found.name == "toys"]
    runs = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    first = {name for run in runs for name in run.data.metrics if "/" not in name}
    assert first == {"coverage", "validity", "filled", "optimal", "seconds", *CRITERIA}
    (run,) = [run for run in runs if run.info.run_name == "a/one/breaks"]
    assert {name: value for name, value in run.data.metrics.items() if name.startswith("faults/") and value} == {
        "faults/not_permitted": 4.0
    }
    assert run.data.metrics["seconds"] <= run.data.metrics["more/seconds_p95"]
    assert sorted(run.data.params)[:2] == ["dataset", "method"]
    assert run.data.params["method.kind"] == "breaks"
    tags = run.data.tags
    assert (tags["dataset"], tags["setting.factuals_seed"], tags["setting.jobs"]) == ("a", "0", "1")
    source = tags["mlflow.source.name"].split()
    assert source[:3] == ["python", "-m", "harness"]
    assert {"method=breaks", "model=one", "study=toys"} < set(source)
    assert len(tags["mlflow.source.git.commit"]) == 40
    note = "**breaks** on a / one, 14 questions: coverage 0.86, validity 1.00, median "
    assert tags["mlflow.note.content"].startswith(note)
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name == "a"


def test_mlflow_has_one_run_of_the_study(swept: tuple[Path, str], tmp_path: Path) -> None:
    """After two sweeps: its files, report and figures, as they are in its folder; what is drawn later replaces them."""
    folder = swept[0] / "results" / "toys"
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{swept[0] / 'mlflow.db'}")
    (experiment,) = [found for found in client.search_experiments() if found.name == "toys"]
    (run,) = client.search_runs([experiment.experiment_id], "tags.study = 'toys'")
    assert (run.info.run_name, run.info.status, run.data.metrics) == ("toys: all runs", "FINISHED", {})
    note = "**toys**: 32 runs, 4 tasks; 2 data sets: a, b; 6 methods: few, breaks, picky, slow, "
    assert run.data.tags["mlflow.note.content"].startswith(note)
    names = {file.path for file in client.list_artifacts(run.info.run_id)}
    tables = {"pairs.csv", "summary.csv", "summary.md", "table.csv", "table.md", "table.tex"}
    assert names == tables | {"report.html", "figures"}
    for name in ("summary.csv", "pairs.csv", "table.csv", "report.html"):
        kept = Path(client.download_artifacts(run.info.run_id, name, str(tmp_path)))
        assert SHIFTED in kept.read_text()
        assert name == "report.html" or kept.read_bytes() == (folder / name).read_bytes()
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "one.png").write_text("drawn")
    done = runner(swept[0])("study=toys", module="harness.report")
    assert done.returncode == 0, done.stderr
    (same,) = client.search_runs([experiment.experiment_id], "tags.study = 'toys'")
    assert same.info.run_id == run.info.run_id
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == names
    drawn = {file.path for file in client.list_artifacts(run.info.run_id, "figures")}
    assert {"figures/one.png", "figures/ranks.svg", "figures/ranks.pdf"} <= drawn


def test_the_printed_address_opens_a_view_with_numbers(swept: tuple[Path, str]) -> None:
    """The saved view that it names: who and what are columns, coverage and validity the first charts."""
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{swept[0] / 'mlflow.db'}")
    (experiment,) = [found for found in client.search_experiments() if found.name == "toys"]
    assert f"/#/experiments/{experiment.experiment_id}/runs?viewStateShareKey=ce-harness " in swept[1]
    saved = json.loads(experiment.tags["mlflow.sharedViewState.ce-harness"])
    state = json.loads(zlib.decompress(base64.b64decode(saved["state"].removeprefix("deflate;"))))
    shown = {column.partition(".")[2].strip("`") for column in state["selectedColumns"]}
    assert {"method", "dataset", "model", "coverage", "proximity", "seconds"} <= shown
    (section,) = state["compareRunSections"]
    charts = [chart["metricKey"] for chart in state["compareRunCharts"] if chart["metricSectionId"] == section["uuid"]]
    assert charts[:2] == ["coverage", "validity"]
    assert len(charts) == len(set(charts)) <= 16
    runs = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    assert set(charts) == {name for run in runs for name in run.data.metrics if "/" not in name}
