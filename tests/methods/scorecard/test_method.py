"""Counterfactuals of scorecards: optima equal enumeration, both engines agree; and tables are read off the card."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from support.scorecards import SPACE, VALUES, Enumeration, ask, toy, undesired

from harness.core.conflict import groups_of, lifted
from harness.core.explanation import Status
from harness.core.problem import Problem
from harness.core.target import Interval, Label, Probability, Target
from harness.papers import scorecard as papers
from harness.papers.scorecard import required
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.scorecard import Scorecard
from methods.scorecard.moves import MoveFinder
from methods.scorecard.search import Search


def agrees(method: Scorecard, problem: Problem, factual: pd.DataFrame, n: int) -> bool:
    """Whether there is a set; the answers are a best one of those that enumeration finds."""
    listed = Enumeration(problem, factual, method.weights, method.wish or 0.0)
    expected, found = listed.best(method, n), ask(method, problem, factual, n)
    if expected is None:
        assert found.answers[-1].status is Status.INFEASIBLE
        return False
    assert all(answer.status is Status.OPTIMAL for answer in found.answers)
    card = problem.classifier.estimator.card_
    rows = SPACE.frame([answer.row for answer in found.answers if answer.row])
    assert problem.valid(rows).all()
    assert not any(SPACE.violations(factual, rows))
    places = card.bins(rows)
    group = [int(np.flatnonzero((listed.bins == row).all(axis=1))[0]) for row in places]
    assert tuple(sorted(group)) in set(listed.sets(n, method.max_changes, method.diversity))
    np.testing.assert_allclose(listed.value(group, method.levels[-1]), expected[0], rtol=1e-8, atol=1e-8)
    if len(method.levels) > 1:
        first = method.levels[0]
        least = min(listed.value(g, first) for g in listed.sets(n, method.max_changes, method.diversity))
        assert listed.value(group, first) <= least + method.degradation * abs(least) + 1e-6
    shares = [sum(w * listed.parts[o][g] for o, w in method.levels[-1].items() if o in listed.parts) for g in group]
    np.testing.assert_allclose([answer.objective for answer in found.answers], shares, rtol=1e-8, atol=1e-8)
    return True


def agreed(method: Scorecard, target: Target, n: int) -> int:
    """Of how many factuals there is a best set, which is ours; of two cards at least, and more until there is one."""
    met = 0
    for seed in range(12):
        if seed >= 2 and met:
            break
        problem = toy(seed, target)
        met += sum(agrees(method, problem, factual, n) for factual in undesired(problem, 2))
    return met


TARGETS = {
    "event": Label("yes"),
    "non-event": Label("no"),
    "probability": Probability("yes", 0.55, 1.0),
    "improbable": Probability("yes", 0.0, 0.35),
    "between": Probability("no", 0.3, 0.45),
    "number": Interval(0.05, np.inf),
    "band": Interval(-0.5, 0.4),
}
SINGLE = {
    "both": Scorecard(max_changes=None),
    "proximity": Scorecard({"proximity": 1}, max_changes=2),
    "closeness": Scorecard({"closeness": 1}, max_changes=2),
    "mad": Scorecard({"proximity": 1, "closeness": 0.1}, weights="mad", max_changes=None),
    "optbinning": Scorecard({"proximity": 1, "changes": 0.3}, weights="optbinning"),
    "outcome": Scorecard({"proximity": 0.2, "outcome": 3.0}, wish=0.6, max_changes=None),
    "proximity first": Scorecard({"proximity": 1, "closeness": 1}, {"proximity": 2, "closeness": 1}, max_changes=3),
    "three levels": Scorecard(
        {"proximity": 1, "closeness": 1, "changes": 1}, {"changes": 3, "closeness": 2, "proximity": 1}, 0.2
    ),
}
SEVERAL = {
    "features": (2, Scorecard(max_changes=None)),
    "values": (2, Scorecard(max_changes=2, diversity=("values",))),
    "both": (2, Scorecard({"proximity": 1}, max_changes=3, diversity=("features", "values"))),
    "three": (3, Scorecard({"proximity": 1, "closeness": 0.5}, max_changes=2, diversity=())),
    "rewarded": (2, Scorecard({"proximity": 1, "diversity_features": 0.2, "diversity_values": 0.3}, diversity=())),
    "hierarchy": (2, Scorecard({"proximity": 1, "closeness": 1}, {"closeness": 2, "proximity": 1}, 0.05)),
    "most diverse first": (
        2,
        Scorecard({"diversity_values": 1, "proximity": 1}, {"diversity_values": 2, "proximity": 1}, diversity=()),
    ),
}


@pytest.mark.parametrize("option", SINGLE)
@pytest.mark.parametrize("target", TARGETS)
def test_one_is_the_best_of_all(target: str, option: str) -> None:
    assert agreed(SINGLE[option], TARGETS[target], 1)


@pytest.mark.parametrize("option", SEVERAL)
@pytest.mark.parametrize("target", ["event", "between", "number"])
def test_several_are_the_best_set(target: str, option: str) -> None:
    n, method = SEVERAL[option]
    assert agreed(method, TARGETS[target], n)


@pytest.mark.parametrize(("n", "method"), [(1, m) for m in SINGLE.values()] + list(SEVERAL.values()))
def test_the_program_finds_the_same(n: int, method: Scorecard) -> None:
    problems = [toy(seed, TARGETS["event"]) for seed in range(4)]
    asked = ((p, factual, ask(method, p, factual, n)) for p in problems for factual in undesired(p, 4))
    problem, factual, found = next(case for case in asked if case[-1].answers[-1].status.found)
    other = ask(replace(method, engine="milp"), problem, factual, n)
    assert [a.status.found for a in found.answers] == [a.status.found for a in other.answers]
    listed = Enumeration(problem, factual, method.weights, method.wish or 0.0)
    card, values = problem.classifier.estimator.card_, []
    for explanation in (found, other):
        rows = SPACE.frame([answer.row for answer in explanation.answers if answer.row])
        group = [int(np.flatnonzero((listed.bins == row).all(axis=1))[0]) for row in card.bins(rows)]
        values.append(listed.value(group, method.levels[-1]))
    slack = n * method.weighed.get("outcome", 0.0) * method.error
    assert values[0] <= values[1] + 1e-6
    assert values[1] <= values[0] + 2 * slack + 1e-6
    for answer in other.answers:
        assert answer.bound is not None
        assert answer.objective is not None
        assert answer.bound >= answer.objective - 2 * slack - 1e-6


def test_values_lie_in_their_bins_nearest_to_the_factual() -> None:
    """Also where the factual holds a special code; trace and detail name the bins."""
    problem = toy(0, TARGETS["event"])
    card = problem.classifier.estimator.card_
    for factual in undesired(problem, 12):
        found = ask(Scorecard(max_changes=None), problem, factual)
        origin = factual.iloc[0].to_dict()
        for change in found.trace:
            name, row = change["feature"], found.answers[0].row
            assert row is not None
            variable = card.variables[SPACE.names.index(name)]
            place = variable.bin_of(row[name])
            assert str(variable.bins[place]) == change["required"]
            assert change["required"] in found.answers[0].detail
            np.testing.assert_allclose(
                change["points"], variable.points[place] - variable.points[variable.bin_of(origin[name])]
            )
            if SPACE[name].numeric:
                inside = [v for v in VALUES[name] if variable.bin_of(v) == place]
                assert abs(row[name] - origin[name]) == min(abs(v - origin[name]) for v in inside)


def test_special_bins_are_targets_only_when_asked_for() -> None:
    """And where the space takes their codes for numbers as any."""
    problem = toy(0, TARGETS["event"])
    origin = problem.train.loc[problem.train["debt"] >= 0].iloc[0].to_dict()
    card = problem.classifier.estimator.card_
    open_space = SPACE.replace({"debt": {"special": (), "bounds": (-1, 9)}})
    for space, special, expected in ((SPACE, True, 0), (open_space, False, 0), (open_space, True, 1)):
        moves = MoveFinder(card, replace(problem, space=space), special).moves(origin)
        places = zip(moves.owner, moves.place, strict=True)
        assert sum(card.variables[f].bins[place].role == "special" for f, place in places) == expected


def test_the_claim_of_a_hierarchy_says_what_caps_it() -> None:
    """Its optimum lies above that of its last level alone, whose claim it therefore is not."""
    problem, above = toy(0, TARGETS["event"]), 0
    ranks = {"proximity": 2, "closeness": 1}
    ranked = Scorecard({"proximity": 1, "closeness": 1}, ranks, max_changes=None)
    alone = Scorecard({"closeness": 1}, max_changes=None)
    assert ranked.objective(problem).domain == {
        "levels": ({"proximity": 1},), "degradation": 0.1, "weights": "range",
    }  # fmt: skip
    assert alone.objective(problem).domain == {}
    assert ranked.objective(problem).terms[0].name == alone.objective(problem).terms[0].name
    wished = replace(
        ranked, objectives={"proximity": 1, "outcome": 1}, wish=0.6, priorities={"proximity": 1, "outcome": 2}
    )
    assert wished.objective(problem).domain["wish"] == 0.6
    for factual in undesired(problem, 6):
        (capped,), (free,) = (ask(method, problem, factual).answers for method in (ranked, alone))
        if capped.bound is not None and free.objective is not None:
            above += capped.bound > free.objective + 1e-3
    assert above


def test_a_claim_says_that_codes_are_left_out() -> None:
    """Where the space takes them for numbers as any, and the method does not."""
    problem = toy(0, TARGETS["event"])
    open_space = replace(problem, space=SPACE.replace({"debt": {"special": (), "bounds": (-1, 9)}}))
    assert Scorecard().objective(problem).domain == {}
    assert Scorecard().objective(open_space).domain == {"special": False}
    assert Scorecard(special=True).objective(open_space).domain == {}


def test_asking_for_special_bins_that_are_closed_is_refused() -> None:
    """Where the space has no value for any of them; unknown categories count, as counterfactuals may take them."""
    problem = toy(0, TARGETS["event"])
    asked = Scorecard(special=True)
    assert "method.special=false" in str(asked.refuses(problem))
    open_codes = SPACE.replace({"debt": {"special": (), "bounds": (-1, 9)}})
    unlisted = SPACE.replace({"city": {"categories": ("a", "b", "c", "d", "e")}})
    for space in (open_codes, unlisted):
        assert asked.refuses(replace(problem, space=space)) is None


CROWDED = {
    "one": (1, Scorecard({"proximity": 1}, max_changes=1)),
    "two": (2, Scorecard({"proximity": 1}, max_changes=1, diversity=("features", "values"))),
    "program": (1, Scorecard({"proximity": 1}, max_changes=1, engine="milp")),
}


@pytest.mark.parametrize("case", CROWDED)
def test_a_conflict_is_irreducible(case: str) -> None:
    """What is named leaves nothing, whatever else is lifted; without any one of it there are as many as asked for."""
    n, method = CROWDED[case]
    met: set[str] = set()
    for seed, target in product(range(4), (Label("yes"), Probability("no", 0.6, 1.0))):
        problem = toy(seed, target)
        for factual in undesired(problem, 2):
            explained = ask(method, problem, factual, n)
            have, conflict = sum(answer.status.found for answer in explained.answers), frozenset(explained.conflict)
            if have == n:
                continue
            assert explained.answers[-1].status is Status.INFEASIBLE
            assert not possible(problem, factual, conflict, have + 1, method)
            assert bool(conflict) != ("whatever else is asked" in explained.answers[-1].detail)
            met |= conflict
            assert all(possible(problem, factual, conflict - {spared}, have + 1, method) for spared in conflict)
    assert len(met) >= 2
    assert n == 1 or met & {"diversity of features", "diversity of values"}


def possible(problem: Problem, factual: pd.DataFrame, kept: frozenset[str], n: int, method: Scorecard) -> bool:
    """Whether enumeration finds n counterfactuals that keep to these requirements only."""
    free = lifted(problem, frozenset(groups_of(problem)) - kept)
    most = method.max_changes if f"max_changes={method.max_changes}" in kept else None
    diversity = [name for name in method.diversity if f"diversity of {name}" in kept]
    return next(Enumeration(free, factual).sets(n, most, diversity), None) is not None


def test_a_target_out_of_reach_is_told_from_a_conflict() -> None:
    """No requirement is named where none is to blame."""
    problem = toy(0, Probability("yes", 0.9999, 1.0))
    explained = ask(Scorecard(), problem, problem.train.iloc[[0]])
    assert explained.answers[0].status is Status.INFEASIBLE
    assert not explained.conflict
    assert "whatever else is asked" in explained.answers[0].detail


def test_too_many_disjoint_ones_are_ruled_out_without_looking_at_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a crowded question is the same with the proof by shares and without."""
    problem = toy(1, TARGETS["event"])
    method = Scorecard({"proximity": 1}, max_changes=2, diversity=("values",))
    for factual in undesired(problem, 3):
        found = [a.status for a in ask(method, problem, factual, 5).answers]
        with monkeypatch.context() as patch:
            patch.setattr(Search, "_shares", lambda *_: False)
            assert [a.status for a in ask(method, problem, factual, 5).answers] == found
        listed = Enumeration(problem, factual)
        assert sum(status.found for status in found) == max(
            (n for n in range(1, 6) if listed.best(method, n) is not None), default=0
        )


def test_tables_5_and_6_measure_diversity_alike() -> None:
    """The three counterfactuals of Table 5 differ in 4 features and 12 values, as Table 6 prints."""
    published = Path(__file__).parents[3] / "results" / "published"
    table = pd.read_csv(published / "scorecard_table5.csv")
    printed = pd.read_csv(published / "scorecard_table6.csv").iloc[0]
    groups = [group for _, group in table.groupby("counterfactual")]
    for part, column in (("features", ["feature"]), ("values", ["feature", "required"])):
        elements = [set(map(tuple, group[column].to_numpy())) for group in groups]
        form = Scorecard({f"diversity_{part}": 1.0}, diversity=()).forms(len(groups))[0]
        shared = sum(len(a & b) for a, b in combinations(elements, 2))
        each = form.features if part == "features" else form.options
        assert -(form.weights[3] * sum(map(len, elements)) + each * shared) == printed[f"diversity_{part}"]


def stored(folder: Path, problem: Problem, factual: pd.DataFrame, method: Scorecard, n: int = 1) -> StoredRun:
    """A finished cell with a method's answers for one factual."""
    cell, index = StoredRun(folder / "cell"), factual.index[0]
    settings = {"max_changes": 5, "priorities": None, "diversity": list(method.diversity)}
    meta = {"n_counterfactuals": n, "config": {"method": settings, "dataset": {}}}
    cell.start(meta, SPACE, problem.classifier, {index: problem.target}, None, factual)
    answers = ask(method, problem, factual, n).answers
    cell.append([answer_row(index, k + 1, a, seconds=0.5, fit_seconds=0.1, late=False) for k, a in enumerate(answers)])
    return cell


def test_a_table_of_changes_is_read_off_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Current value, required bin, a value in it and points of every change; points and probability on both sides."""
    problem, method = toy(0, Label("yes")), Scorecard(max_changes=None)
    card = problem.classifier.estimator.card_
    factual = list(undesired(problem, 2))[1]
    cell = stored(tmp_path, problem, factual, method)
    row = cell.rows()[0]["row"]
    places = card.bins(pd.concat([factual, SPACE.frame([row])]))
    moved = [j for j in range(len(card.names)) if places[0, j] != places[1, j]]
    (tmp_path / "changes.csv").write_text(
        "approach,max_changes,feature,current,required\n"
        + "".join(f'weighted,5,{card.names[j]},,"{required(card.variables[j].bins[places[1, j]])}"\n' for j in moved)
        + "weighted,4,age,,old\n"
    )
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    text, _ = papers.Changes(2, "changes.csv", ("approach", "max_changes"), ("A note.",)).build([cell])
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")][2:]
    gained = 0.0
    for j, line in zip(moved, lines, strict=False):
        variable, (before, after) = card.variables[j], places[:, j]
        points = variable.points[after] - variable.points[before]
        kept = required(variable.bins[after]).replace("|", " or ")
        name = variable.name
        assert line[2:] == [name, str(factual[name].iloc[0]), kept, kept, str(row[name]), f"{points:+.1f}"]
        gained += points
    score, chance = lines[len(moved)], expit(card.score(places))
    assert score[2] == "*score*"
    assert score[6] == f"P(yes) {chance[0]:.3f} → {chance[1]:.3f}"
    assert score[7] == f"{gained:+.1f}"
    assert len(lines) == len(moved) + 1  # the other published one was not run
    assert "- 1 of 1 published counterfactuals are ours too" in text
    assert "- 1 published row is not shown: nothing of it was run here." in text
    assert "- A note." in text


def test_a_table_of_numbers_is_recomputed_from_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proximity, closeness and probability of the stored counterfactual, as enumeration has them; and seconds."""
    problem = toy(0, Label("yes"))
    factual = list(undesired(problem, 2))[1]
    cell = stored(tmp_path, problem, factual, Scorecard(weights="optbinning", max_changes=None))
    listed, card = Enumeration(problem, factual, "optbinning"), problem.classifier.estimator.card_
    train = card.values(card.bins(problem.train))
    factor = np.linalg.cholesky(np.linalg.inv(np.cov(train.T)))
    ranges = np.array([np.ptp(v.contributions[[b.role != "unknown" for b in v.bins]]) for v in card.variables])
    monkeypatch.setattr(papers.Sheet, "_seen", property(lambda _: (ranges, factor, train.mean(axis=0))))
    head = "max_changes,approach,proximity,closeness,probability_of_default,seconds\n"
    (tmp_path / "numbers.csv").write_text(f"{head}5,weighted,1.0,2.0,0.4,0.3\n4,weighted,1.0,2.0,0.4,0.3\n")
    monkeypatch.setattr("harness.reports.stored.PUBLISHED", tmp_path)
    table = papers.Numbers(4, "numbers.csv", ("max_changes", "approach"), (), ("proximity", "closeness"))
    text, records = table.build([cell])
    place = int(np.flatnonzero((listed.bins == card.bins(SPACE.frame([cell.rows()[0]["row"]]))[0]).all(axis=1))[0])
    own = records[records["max_changes"] == 5].set_index("measure")["ours"].astype(float)
    for part in ("proximity", "closeness"):
        assert own[part] == pytest.approx(listed.parts[part][place])
    assert own["probability_of_default"] == pytest.approx(expit(card.score(listed.bins[[place]]))[0])
    assert own["seconds"] == 0.5
    assert f"{own['proximity'] + own['closeness']:.3f}" in text
    assert "- 1 published row is not shown: nothing of it was run here." in text


def test_a_wrong_parameter_is_an_error() -> None:
    for wrong, word in (
        ({"objectives": {"speed": 1}}, "speed"),
        ({"objectives": {"proximity": 0}}, "> 0"),
        ({"priorities": {"proximity": 1}}, "same"),
        ({"weights": "sd"}, "range"),
        ({"diversity": ["bins"]}, "features, values"),
        ({"max_changes": 0}, ">= 1"),
        ({"wish": 0.5}, "wish"),
        ({"margin": 0.0}, "margin is 0.0; give a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=word):
            Scorecard(**wrong)  # type: ignore[arg-type]


def test_other_models_are_refused(problem: Problem) -> None:
    assert isinstance(problem.classifier.estimator, LogisticRegression)
    assert "scorecard" in str(Scorecard().refuses(problem))
