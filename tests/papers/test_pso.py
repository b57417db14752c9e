"""What Table II of the MD-PSO paper sets of others' methods, and the number its tuning maximises."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression
from support.tables import cells

from harness.cli.job import _merit
from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation import scoring
from harness.evaluation.checker import judge
from harness.papers import pso
from harness.reports.markup import DASH
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.carla import compat
from methods.carla.face import Face
from methods.carla.growing_spheres import GrowingSpheres
from metrics import _example as loans

TABLE_2 = next(table for table in pso.TABLES.values() if isinstance(table, pso.Two)).second
CONF = Path(__file__).parents[2] / "conf"
carla = pytest.mark.skipif(not compat.installed(), reason=compat.ABSENT)
SPACE = Space(
    (
        Feature("income", Kind.CONTINUOUS, scale=(0, 1)),
        Feature("debt", Kind.CONTINUOUS, scale=(0, 1)),
        Feature("region", Kind.CONTINUOUS, scale=(0, 1), actionability=Actionability.IMMUTABLE),
    )
)


def problem() -> Problem:
    """Granted are incomes above a half; all 70 rows are of one region, which CARLA's FACE needs to be 1."""
    train = pd.DataFrame(np.random.default_rng(0).uniform(size=(70, 3)), columns=list(SPACE.names)).assign(region=1.0)
    labels = np.where(train["income"] > 0.5, "granted", "refused").astype(object)
    model = LogisticRegression(C=1e6).fit(SPACE.encode(train), labels == "granted")
    classifier = Classifier(model, space_inputs(SPACE), ("refused", "granted"))
    return Problem(SPACE, classifier, train, labels, Label("granted"))


FACTUAL = pd.DataFrame({"income": [0.3], "debt": [0.5], "region": [1.0]})


def ask(method: GrowingSpheres | Face) -> Answer:
    explainer = method.fit(problem())
    return explainer.explain(FACTUAL, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]


@carla
@pytest.mark.parametrize("step", [0.02, 0.05, 0.2])
def test_spheres_grow_by_the_step(step: float) -> None:
    """Each ring is as wide as asked, and the answer lies in the first that reaches over the model's border."""
    search: Any = compat.library().modules["spheres_search"]
    rings: list[tuple[float, float]] = []
    draw = search.hyper_sphere_coordindates

    def spy(count: int, instance: np.ndarray, high: float, low: float, norm: int) -> Any:
        rings.append((low, high))
        return draw(count, instance, high, low, norm)

    with patch.object(search, "hyper_sphere_coordindates", spy):
        row = ask(GrowingSpheres(step=step)).row
    assert row is not None
    np.testing.assert_allclose(rings, [(k * step, (k + 1) * step) for k in range(len(rings))])
    far = math.hypot(row["income"] - 0.3, row["debt"] - 0.5)
    assert rings[-1][0] - 1e-9 <= far <= rings[-1][1] + 1e-9
    model = problem().classifier.estimator
    nearest = abs(model.decision_function(SPACE.encode(FACTUAL))[0]) / np.hypot(*model.coef_[0][:2])
    assert nearest - 1e-9 <= far <= nearest + 2 * step


@carla
@pytest.mark.parametrize("radius", [0.1, 0.25, None])
def test_rows_are_near_within_the_radius(radius: float | None) -> None:
    """Graphs have as many edges as there are pairs of rows so near: in turn the published radii, or one."""
    search: Any = compat.library().modules["face_search"]
    edges: list[int] = []
    walk, subset = search.shortest_path, search.choose_random_subset
    drawn: list[np.ndarray] = []

    def spy(graph: Any, index: int) -> Any:
        edges.append(graph.nnz)
        return walk(graph, index)

    def keep(*args: Any) -> Any:
        drawn.append(subset(*args))
        return drawn[-1]

    with patch.object(search, "shortest_path", spy), patch.object(search, "choose_random_subset", keep):
        ask(Face(mode="epsilon", radius=radius, fraction=0.9))
    gaps = pdist(drawn[0].to_numpy(float))
    wanted = [0.15, 0.25, 0.35] if radius is None else [radius] * 3
    assert edges[:3] == [2 * int((gaps <= width).sum()) for width in wanted]


@pytest.mark.parametrize(
    ("method", "setting", "message"),
    [
        (GrowingSpheres, {"step": 0.0}, "step is 0.0; give a finite number above 0"),
        (Face, {"mode": "knn", "radius": 0.25}, "mode 'knn' has none"),
        (Face, {"mode": "epsilon", "radius": -1.0}, "give a finite number above 0"),
    ],
)
def test_a_wrong_setting_is_refused(method: Any, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(**setting)


@pytest.fixture(autouse=True)
def _rows_of_the_loans(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SimpleNamespace(frame=loans.TRAIN, train=np.arange(len(loans.TRAIN)), classes=("no", "yes"))
    monkeypatch.setattr(pso, "data_of", lambda run: rows)


def stored(folder: Path, method: str, seed: int, answers: list[Answer]) -> StoredRun:
    """A finished cell of the loan problem, judged and scored: one factual an answer, all the same row."""
    variant = f"seed{seed}"
    cell = StoredRun(folder / "answers" / f"compas-rf-{method}-{variant}-0")
    factuals = pd.concat([loans.factual] * len(answers)).set_axis(range(len(answers)))
    targets = dict.fromkeys(factuals.index, loans.problem.target)
    meta = {"dataset": "compas", "model": "rf", "method": f"{method}-{variant}", "n_counterfactuals": 1, "seed": seed}
    config = {"variant": variant, "time_limit": 10}
    environment = {"python": "3", "cpu": "a processor", "cores": 2, "threads": 1, "packages": {}}
    names = OmegaConf.load(CONF / "experiment" / "pso_table2.yaml").metrics
    meta |= {"data_sha256": "abc", "environment": environment, "config": config}
    meta["scored"] = {"metrics": OmegaConf.to_container(names)}
    cell.start(meta, loans.problem.space, loans.problem.classifier, targets, None, factuals)
    for index, answer in enumerate(answers):
        cell.append([answer_row(index, 1, answer, seconds=1.0, fit_seconds=0.0, late=False)])
    judge(cell)
    metrics = [get_object(path) for path in names.names]
    problems = dict.fromkeys(factuals.index, loans.problem)
    scoring.score(cell, problems, metrics).to_csv(cell.path / "scores.csv")
    cell.finish()
    return cell


def test_all_is_of_what_is_valid_permitted_or_not(tmp_path: Path) -> None:
    """Of four people two have a valid counterfactual, which makes one of them younger, and that may not be.

    By hand: an income of 80, not 30, is two MADs of 25, a year a tenth of one, and they are two of five features. What
    the model refuses is in no mean.
    """
    near = {**loans.factual.to_dict("records")[0], "income": 80.0}
    younger = {**near, "age": near["age"] - 1}
    gave_up = Answer(Status.GAVE_UP, None, Reason.FINISHED)
    answers = [
        Answer(Status.FOUND, near),
        Answer(Status.FOUND, younger),
        gave_up,
        Answer(Status.FOUND, {**near, "income": 40.0}),
    ]
    _, lines = TABLE_2.build([stored(tmp_path, "md_pso_paper", 0, answers)])
    ours = lines.set_index("method").loc["md_pso_paper"]
    assert (ours["coverage"], ours["coverage_n"], ours["proximity_n"]) == (0.5, 4, 2)
    assert ours["proximity"] == pytest.approx((2.0 / 5 + 2.1 / 5) / 2)
    assert ours["coverage_se"] == pytest.approx(np.std([1, 1, 0, 0], ddof=1) / 2)
    _, lines = TABLE_2.build([stored(tmp_path / "younger", "md_pso_paper", 0, [Answer(Status.FOUND, younger)] * 2)])
    cells = TABLE_2.compared(lines).set_index(["dataset", "method", "measure"]).loc["compas", "MD-PSO"]
    assert (cells["ours"]["coverage"], cells["ours"]["sparsity"]) == (1.0, pytest.approx(0.4))


def test_seeds_are_pooled_and_optima_are_those_that_are_proven(tmp_path: Path) -> None:
    """By hand: the income alone costs .5 and one change, with ten years of age .75 and two."""
    near = {**loans.factual.to_dict("records")[0], "income": 80.0}
    far = {**near, "age": 40}
    gave_up = Answer(Status.GAVE_UP, None, Reason.FINISHED)
    found = [
        stored(tmp_path, "md_pso_paper", 0, [Answer(Status.FOUND, far), Answer(Status.FOUND, near), gave_up]),
        stored(tmp_path, "md_pso_paper", 1, [Answer(Status.FOUND, far)]),
        stored(tmp_path, "ce_ocl_pso", 0, [Answer(Status.OPTIMAL, near, Reason.PROOF, 1.5, 1.5)] * 3),
        stored(tmp_path, "ce_ocl_pso", 1, [Answer(Status.FOUND, near, Reason.TIME_LIMIT, 1.5, 0.1)]),
    ]
    text, lines = TABLE_2.build(found)
    ours = lines.set_index("method").loc["md_pso_paper"]
    assert (ours["ratio"], ours["proven"]) == (pytest.approx((2.75 / 1.5 + 1) / 2), 2)
    assert (ours["coverage"], ours["coverage_ce"], ours["factuals"]) == (0.75, 0.75, 4)
    assert ours["sparsity"] == pytest.approx((2 + 1 + 2) / 3 / 5)
    assert ours["sparsity_se"] == pytest.approx(np.std([0.4, 0.2, 0.4], ddof=1) / math.sqrt(3))
    assert ours["rank_proximity"] == ours["published_rank_proximity"] == 1
    exact = lines.set_index("method").loc["ce_ocl_pso"]
    assert (exact["ratio"], exact["proven"]) == (1.0, 3)
    assert math.isnan(exact["rank_proximity"])  # it is none of the paper's six
    assert cells(text) == [
        ["dataset", "method", "", "proximity", "sparsity", "diversity", "normalized diversity", "coverage",
         "rank: proximity", "sparsity", "coverage per CE", "factuals", "ratio to optimum", "proven"],
        ["compas", "md_pso_paper", "published", "0.26", "0.12", "0.30", "1.13", "1.00", "1", "1", "", "", "", ""],
        ["compas", "md_pso_paper", "ours", "0.53 (0.07)", "0.33 (0.07)", DASH, DASH, "0.75 (0.25)", "1", "1", "0.75",
         "4", "1.417", "2"],
        ["compas", "ce_ocl_pso", "ours", "0.40 (0.00)", "0.20 (0.00)", DASH, DASH, "1.00 (0.00)", DASH, DASH, "1.00",
         "4", "1.000", "3"],
    ]  # fmt: skip
    assert text.splitlines()[1].startswith("| :--- | :--- | :--- | --- |")
    assert "- 23 published rows are not shown: nothing of them was run here.\n- " in text
    assert list(TABLE_2.compared(lines))[:3] == ["dataset", "method", "measure"]
    alone = TABLE_2.build(found[:2])[1]
    assert (alone["ratio"].isna().all(), alone["proven"].tolist()) == (True, [0])


def test_what_is_not_valid_is_no_optimum(tmp_path: Path) -> None:
    """Nearer answers that the model refuses count neither as the best found nor as the proven least; the best counts.

    Data sets come in their order, and methods as they were run; each data set has ranks of its own.
    """
    origin = loans.factual.to_dict("records")[0]
    near, far, invalid = ({**origin, "income": income} for income in (60.0, 80.0, 31.0))
    swarm = stored(tmp_path, "md_pso_paper", 0, [Answer(Status.FOUND, row) for row in (far, invalid)])
    exact = stored(
        tmp_path, "ce_ocl_pso", 0, [Answer(Status.OPTIMAL, row, Reason.PROOF, 1.3, 1.3) for row in (near, near)]
    )
    words = enumerate(("accepted", "worse than claimed"))
    exact.put_verdicts({"factual": k, "ce": 1, "verdict": word, "valid": True, "incoherent": []} for k, word in words)
    other = stored(tmp_path, "face_knn", 0, [Answer(Status.FOUND, near)])
    other.update(dataset="arrhythmia")
    lines = TABLE_2.build([exact, swarm, other])[1]
    assert lines["dataset"].tolist() == ["arrhythmia", "compas", "compas"]
    assert lines["method"].tolist() == ["face_knn", "ce_ocl_pso", "md_pso_paper"]
    assert lines["rank_proximity"].dropna().tolist() == [1, 1]
    ours = lines.set_index("method").loc["md_pso_paper"]
    assert (ours["ratio"], ours["proven"]) == (pytest.approx(1.5 / 1.3), 1)


def test_tables_i_and_ii_stand_above_each_other(tmp_path: Path) -> None:
    """With the sizes among the numbers that are compared."""
    row = {**loans.factual.to_dict("records")[0], "income": 80.0}
    run = stored(
        tmp_path, "md_pso_paper", 0, [Answer(Status.FOUND, row), Answer(Status.GAVE_UP, None, Reason.FINISHED)]
    )
    run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    table = pso.TABLES["pso_table2"]
    text, lines = table.build([run])
    first, second = text.split("## Table II\n")
    assert first.startswith("## Table I\n\n")
    assert cells(first) == [
        ["dataset", "published classes", "published rows", "published continuous features",
         "published categorical features", "classes", "rows", "continuous features", "categorical features"],
        ["compas", "2", "5238", "13", "0", "2", "8", "2", "3"],
    ]  # fmt: skip
    assert first.endswith("\n\n- 3 published rows are not shown: nothing of them was run here.\n\n")
    assert [row[:5] for row in cells(second)[1:3]] == [
        ["compas", "md_pso_paper", "published", "0.26", "0.12"],
        ["compas", "md_pso_paper", "ours", "0.40", "0.20"],
    ]
    sizes = lines[lines["method"] == DASH]
    assert sizes[sizes["dataset"] == "compas"][["measure", "published", "ours"]].fillna(-1).to_numpy().tolist() == [
        ["classes", 2, 2],
        ["rows", 5238, 8],
        ["continuous_features", 13, 2],
        ["categorical_features", 0, 3],
    ]
    assert (len(sizes), lines.index.is_unique, table.compared(lines) is lines) == (16, True, True)
    assert (table.asked, table.published) == (5, ("pso_table1.csv", "pso_table2.csv"))
    assert [row[5:] for row in cells(pso.Datasets("", "pso_table1.csv").build([])[0])] == [[]] * 5


def test_sizes_are_those_of_the_runs(tmp_path: Path) -> None:
    """Two of the loans' five features are numbers; datasets that were not run have published sizes alone."""
    row = loans.answers.to_dict("records")[0]
    run = stored(tmp_path, "md_pso", 0, [Answer(Status.FOUND, row)])
    run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    lines = pso.Datasets("Table I", "pso_table1.csv").lines([run])
    known = lines.set_index("dataset")[["classes", "rows", "continuous_features", "categorical_features"]]
    assert known.loc["compas"].tolist() == [2, 8, 2, 3]
    assert known.drop(index="compas").isna().all(axis=None)
    assert lines["published_rows"].notna().all()


def test_the_nearest_has_rank_one(tmp_path: Path) -> None:
    """Of the paper's six methods that were run; equally sparse ones share a rank, and the exact one has none."""
    near = {**loans.factual.to_dict("records")[0], "income": 60.0}
    far, farthest = {**near, "income": 70.0}, {**near, "income": 80.0, "age": 40}
    rows = {"md_pso_paper": far, "dice_random": near, "face_knn": farthest, "ce_ocl_pso": near}
    _, lines = TABLE_2.build([stored(tmp_path, method, 0, [Answer(Status.FOUND, row)]) for method, row in rows.items()])
    ranks = lines.set_index("method")[["rank_proximity", "rank_sparsity"]]
    assert ranks.loc[["md_pso_paper", "dice_random", "face_knn"]].to_numpy().tolist() == [[2, 1], [1, 1], [3, 3]]
    assert ranks.loc["ce_ocl_pso"].isna().all()
    known = pd.read_csv(Path(__file__).parents[2] / "results" / "published" / "pso_table2.csv")
    known = known[known["dataset"].eq("compas")].set_index("method")["proximity"]
    names = {"md_pso_paper": "MD-PSO", "dice_random": "DiCE-Random", "face_knn": "Face-KNN"}
    expected = {own: 1 + sum(known[other] < known[name] for other in names.values()) for own, name in names.items()}
    assert lines.set_index("method")["published_rank_proximity"].dropna().to_dict() == expected


def test_published_cells_stand_beside_the_method_as_printed(tmp_path: Path) -> None:
    """Methods of ours that the paper has not are alone; what was not run is none."""
    near = {**loans.factual.to_dict("records")[0], "income": 80.0}
    found = [
        stored(tmp_path, method, 0, [Answer(Status.FOUND, near)] * 3) for method in ("md_pso_paper", "md_pso_pullback")
    ]
    for run in found:
        run.update(config=run.meta["config"] | {"dataset": {}, "split": None, "features": {}})
    table = pso.TABLES["pso_table2"]
    lines = table.compared(table.build(found)[1]).set_index(["dataset", "method", "measure"])
    own = lines.loc["compas", "MD-PSO", "sparsity"]
    assert (own["published"], own["n"], own["better"]) == (0.123, 3, "lower")
    assert own["ours"] == pytest.approx(0.2)
    alone = lines.loc["compas", "md_pso_pullback", "coverage"]
    assert (alone["ours"], alone["alone"], math.isnan(alone["published"])) == (1.0, True, True)
    assert math.isnan(lines.loc["lsvt", "MD-PSO", "coverage"]["ours"])
    assert lines.loc["compas", DASH, "rows"][["published", "ours"]].tolist() == [5238, 8]
    assert table.asked == 5


def test_the_least_change_counts_as_one() -> None:
    row = loans.factual.to_dict("records")[0]
    beside = {**row, "income": math.nextafter(row["income"], math.inf)}
    assert pso._merit(loans.problem.space, loans.factual, [row]) == 0
    assert pso._merit(loans.problem.space, loans.factual, [beside]) == pytest.approx(1)


def test_the_merit_of_several_answers_is_that_of_the_best() -> None:
    """An income of 80, not 30, is .5 away, with one change; ten years besides are .25 of their scale, and another."""
    near = {**loans.factual.to_dict("records")[0], "income": 80.0}
    far = {**near, "age": 40}
    merits = [pso._merit(loans.SPACE, loans.factual, rows) for rows in ([near], [far], [near, far], [far, near])]
    assert merits == pytest.approx([1.5, 2.75, 1.5, 1.5])


def test_the_ratio_to_the_optimum_is_a_mean(tmp_path: Path) -> None:
    """Over three people: twice the optimum itself, of 1.5, and once two changes, of 2.75."""
    near = {**loans.factual.to_dict("records")[0], "income": 80.0}
    rows = [{**near, "age": 40}, near, near]
    swarm = stored(tmp_path, "md_pso_paper", 0, [Answer(Status.FOUND, row) for row in rows])
    exact = stored(tmp_path, "ce_ocl_pso", 0, [Answer(Status.OPTIMAL, near, Reason.PROOF, 1.5, 1.5)] * 3)
    ours = TABLE_2.lines([swarm, exact]).set_index("method").loc["md_pso_paper"]
    assert (ours["ratio"], ours["proven"]) == (pytest.approx((2.75 / 1.5 + 1 + 1) / 3), 3)


def test_normalised_diversity_is_a_quotient_of_means() -> None:
    """As in print: .4 over .2 and 1 over 2 are .7 over 1.1, not 1.25; who has one counterfactual is in neither mean."""
    scores = pd.DataFrame({"pso/proximity": [0.2, 2.0, 9.0], "pso/diversity": [0.4, 1.0, math.nan]})
    assert pso._normalised(scores) == pytest.approx((7 / 11, 0.3 / 1.1 / 1.1))
    assert pso._normalised(scores.iloc[:1]) == pytest.approx((2, math.nan), nan_ok=True)
    assert pso._normalised(scores.iloc[2:]) == pytest.approx((math.nan, math.nan), nan_ok=True)
    known = pd.read_csv(Path(__file__).parents[2] / "results" / "published" / "pso_table2.csv")
    assert np.sort(np.abs(known["diversity"] / known["proximity"] - known["normalized_diversity"]))[-3] < 2e-4


def test_the_number_to_optimise_is_a_weighted_sum_of_means() -> None:
    scores = pd.DataFrame({"coverage": [1.0, 0.5], "pso/proximity": [0.2, math.nan], "distance/l0": [math.nan] * 2})
    scores["impossible"] = 0.0
    assert _merit(scores, {"coverage": 1}) == 0.75
    assert _merit(scores, {"coverage": 2, "pso/proximity": -0.5}) == pytest.approx(1.4)
    assert _merit(scores, {"coverage": 2, "distance/l0": 0.5}) == 1.5
    assert _merit(scores, {"coverage": 2, "distance/l0": -0.5}) == -math.inf
    assert math.isnan(_merit(scores.iloc[:0], {"coverage": 1}))
    with pytest.raises(HarnessError, match="did you mean 'pso/proximity'"):
        _merit(scores, {"pso/proximty": -1})


def test_less_and_more_are_better_but_of_diversity() -> None:
    cells = {measure: pso._cell(("compas", "MD-PSO"), measure, 1.0, None) for measure in pso.MEASURES}
    ways = {"proximity": "lower", "sparsity": "lower", "coverage": "higher"}
    assert {measure: cell["better"] for measure, cell in cells.items() if "better" in cell} == ways
