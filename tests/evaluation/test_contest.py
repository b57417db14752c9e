"""Methods against each other, on entries made by hand: which values count, which mean is best, who is placed where."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.evaluation import checker, contest, statistics
from harness.evaluation.contest import Contest, Criterion, standing, too_few
from harness.evaluation.study import Entry, Study, identity, named

NAN = math.nan
NEAR = Criterion("proximity", "distance/gower", "lower")
MANY = Criterion("diversity", "diversity/gower", "higher")
FAST = Criterion("seconds", "seconds", "lower")


def entry(method: str, near: list[float], answered: list[float] | None = None, **changes: Any) -> Entry:
    """An entry whose nearest answers lie so far, all of them ten times as far; answered by all seeds unless said."""
    answered = [float(not math.isnan(value)) for value in near] if answered is None else answered
    table = pd.DataFrame(
        {
            "coverage": answered, "filled": answered, "seconds": np.arange(1.0, len(near) + 1),
            "distance/gower": 10 * np.array(near), "nearest/distance/gower": near, "diversity/gower": near,
            "returned": 2.0, "valid": 1.0, "fit_seconds": 0.25, "optimal": 0.0,
        }
    )  # fmt: skip
    plain: dict[str, Any] = {
        "dataset": "d", "model": "m", "task": "d / m", "runs": (), "metas": ({"n_counterfactuals": 2},),
        "refusal": None, "one": False, "impossible": 0, "outcomes": (),
    }  # fmt: skip
    return Entry(method=method, table=changes.pop("table", table), **{**plain, **changes})


def study(*entries: Entry) -> Study:
    return Study("s", entries, {}, ())


# --- an entry -----------------------------------------------------------------------------------------------------


def test_a_question_is_answered_where_half_the_seeds_answer_it() -> None:
    one = entry("a", [0.1, 0.2, 0.3, 0.4], [1.0, 0.5, 0.4, 0.0])
    assert one.answered.tolist() == [True, True, False, False]
    assert one.coverage.value == pytest.approx(1.9 / 4)


def test_several_counterfactuals_are_asked_for_and_may_be_given() -> None:
    """Of two, in some run; never of a method that gives one, of which nothing is filled."""
    asked = [{"n_counterfactuals": n} for n in (1, 2, 3)]
    assert [entry("a", [0.1], metas=(each,)).several for each in asked] == [False, True, True]
    assert entry("a", [0.1], metas=tuple(asked[:2])).several
    alone = entry("a", [0.1, 0.2], one=True)
    assert not alone.several
    assert math.isnan(alone.filled)
    assert entry("a", [0.1, 0.2], [1.0, 0.5]).filled == 0.75


def test_validity_is_of_what_was_returned() -> None:
    table = pd.DataFrame({"returned": [2.0, 6.0], "valid": [2.0, 1.0]})
    assert entry("a", [], table=table).validity == 3 / 8
    assert math.isnan(entry("a", [], table=table * 0).validity)


def test_set_up_is_the_mean_over_seeds() -> None:
    """Of the seeds that measured it; the longest fit of runs from before it was measured; NaN where nothing was."""
    metas = [{"n_counterfactuals": 2, "setup": {"seconds": s, "cpu_seconds": c}} for s, c in ((1.0, 3.0), (2.0, 5.0))]
    assert entry("a", [0.1], metas=(*metas, {"n_counterfactuals": 2})).setup == (1.5, 4.0)
    crashed = {"n_counterfactuals": 2, "setup": {"seconds": 1.0, "cpu_seconds": None}}
    assert math.isnan(entry("a", [0.1], metas=(crashed,)).setup[1])
    old = entry("a", [0.1, 0.2], metas=({"n_counterfactuals": 2},))
    old.table["fit_seconds"] = [0.5, 0.75]
    assert old.setup[0] == 0.75
    assert math.isnan(old.setup[1])
    assert math.isnan(entry("a", []).setup[0])


def test_the_spread_over_seeds_is_that_of_a_sample() -> None:
    """Means of 1, 2 and 6: a variance of (4 + 1 + 9) / 2; one seed has none."""
    one = entry("a", [0.1])
    vars(one)["by_seed"] = [pd.DataFrame({"x": [mean - 1, mean + 1]}) for mean in (1.0, 2.0, 6.0)]
    assert one.seed_spread("x") == pytest.approx(math.sqrt(7))
    assert math.isnan(one.seed_spread("y"))
    vars(one)["by_seed"] = [pd.DataFrame({"x": [1.0, 3.0]})]
    assert math.isnan(one.seed_spread("x"))


def test_quantiles_leave_out_what_is_not_known() -> None:
    one = entry("a", [0.1, 0.2, 0.3])
    one.table["cpu_seconds"] = [1.0, NAN, 3.0]
    assert (one.spent(), one.spent(share=1.0), one.spent("cpu_seconds")) == (2.0, 3.0, 2.0)
    one.table["cpu_seconds"] = NAN
    assert math.isnan(one.spent("cpu_seconds"))


def test_every_fault_of_the_checker_is_counted() -> None:
    """Each of its words, but for those of no answer and of one that is accepted."""
    words = dict.fromkeys([*checker.FAULTS, checker.NOT_PERMITTED, "late"], 1)
    outcome = {"verdict": {**words, "none": 1, checker.ACCEPTED: 1}}
    assert dict(entry("a", [0.1], outcomes=(outcome,)).faults) == words


def test_who_keeps_to_equations_sees_them() -> None:
    """As the first of two seeds says; nothing else is seen."""
    metas = tuple({"n_counterfactuals": 1, "objective": claim} for claim in ({"causal": True}, None))
    assert entry("a", [0.1], metas=metas).sees == ("structural equations",)
    assert entry("a", [0.1], metas=metas[1:]).sees == ()


def test_names_say_what_differs() -> None:
    """Nothing where all is equal; a setting that one run lacks differs. The third are constraints, and no limits."""

    def meta(method: str, /, **config: Any) -> dict[str, Any]:
        return {"dataset": "d", "model": "m", "method": method, "config": config}

    plain = [meta("a", seed=0, time_limit=5), meta("a", seed=1, time_limit=5)]
    assert named(plain) == [("d / m", "a", "")] * 2
    limits = [meta("a", time_limit=5), meta("b", time_limit=5), meta("a", time_limit=9)]
    assert [method for _, method, _ in named(limits)] == ["a (time_limit=5)", "b (time_limit=5)", "a (time_limit=9)"]
    people = [meta("a", n_factuals=5), meta("b", n_factuals=7)]
    assert [task for task, _, _ in named(people)] == ["d / m (n_factuals=5)", "d / m (n_factuals=7)"]
    own = [meta("a", method={"rho": 1}), meta("a", method={}), meta("b", method={"rho": 1})]
    assert [method for _, method, _ in named(own)] == ["a (rho=1)", "a", "b"]
    kept = [meta("a", immutable=["x"], time_limit=5), meta("b", immutable=["x"], time_limit=9), meta("a", immutable=[])]
    assert [posed for _, _, posed in named(kept)] == ['immutable=["x"]', 'immutable=["x"]', "immutable=[]"]
    counts = [meta("a", n_counterfactuals=number, time_limit=5) for number in (1, 3)]
    assert [posed for _, _, posed in named(counts)] == ["n_counterfactuals=1", "n_counterfactuals=3"]
    variants = [meta("a-x", variant="x", immutable=["z"], time_limit=5), meta("b", immutable=[], time_limit=5)]
    assert [method for _, method, _ in named(variants)] == ["a-x", "b (immutable=[])"]
    limited = [meta("a-x", variant="x", time_limit=5), meta("b", time_limit=9)]
    assert [method for _, method, _ in named(limited)] == ["a-x (time_limit=5)", "b (time_limit=9)"]
    variants += [meta("a-x", variant="x", immutable=[], time_limit=9)]
    assert [method for _, method, _ in named(variants)] == [
        'a-x (immutable=["z"], time_limit=5)', "b (immutable=[], time_limit=5)", "a-x (immutable=[], time_limit=9)"
    ]  # fmt: skip


def test_a_setting_that_an_earlier_version_lacked_is_as_it_was() -> None:
    """So that what is asked again takes the place of the earlier answers."""
    old, new, other = (
        {"dataset": "d", "model": "m", "method": "a", "seed": 0, "config": {"method": {"_target_": name, **own}}}
        for name, own in (
            ("methods.ce_ocl.CeOcl", {"delta": 0.0}),
            ("methods.ce_ocl.CeOcl", {"delta": 0.0, "likelihood": 0.0}),
            ("methods.ce_ocl.CeOcl", {"delta": 0.0, "likelihood": 0.5}),
        )
    )
    assert identity(old) == identity(new) != identity(other)
    near, both = (
        {**old, "config": {"method": {"_target_": "methods.scorecard.Scorecard", "objectives": objectives}}}
        for objectives in ({"proximity": 1.0}, {"proximity": 1.0, "closeness": 1.0})
    )
    assert identity(near) != identity(both)
    assert [method for _, method, _ in named([old, other])] == ["a (likelihood=0.0)", "a (likelihood=0.5)"]


# --- a task -------------------------------------------------------------------------------------------------------


def test_a_criterion_counts_the_nearest_answer_of_answered_questions() -> None:
    """Seconds too; diversity is that of all answers, where as many were accepted as asked for."""
    one = entry("a", [0.1, 0.2, 0.3], [1.0, 0.5, 0.4])
    np.testing.assert_equal(NEAR.of(one).to_numpy(), [0.1, 0.2, NAN])
    np.testing.assert_equal(FAST.of(one).to_numpy(), [1.0, 2.0, NAN])
    np.testing.assert_equal(MANY.of(one).to_numpy(), [0.1, NAN, NAN])


def test_a_contest_is_of_those_who_can_take_part() -> None:
    """For diversity, of those that give several; of each criterion, of those that were measured."""
    several, single = entry("several", [0.1, 0.2]), entry("single", [0.3, NAN], one=True)
    unmeasured = entry("unmeasured", [0.1, 0.1])
    del unmeasured.table["distance/gower"]
    entries = [several, single, unmeasured]
    assert list(Contest.of("t", entries, NEAR).values) == ["several", "single"]
    assert list(Contest.of("t", entries, FAST).values) == ["several", "single", "unmeasured"]
    assert list(Contest.of("t", entries, MANY).values) == ["several", "unmeasured"]
    own = Criterion("cost", "distance/gower", "lower")
    assert list(Contest.of("t", entries, own).values) == ["several", "single"]
    found = Contest.of("t", entries, NEAR)
    assert found.covered == {"several": 1.0, "single": 0.5, "unmeasured": 1.0}
    np.testing.assert_equal(found.values.to_numpy(), [[0.1, 0.3], [0.2, NAN]])


def test_an_answer_without_a_value_is_an_answer() -> None:
    """Of a criterion that is not defined for it: no rank and no pair there, but nobody else answers more."""
    whole, partly = entry("whole", [0.1] * 12), entry("partly", [0.2] * 4 + [NAN] * 8, [1.0] * 12)
    found = Contest.of("t", [whole, partly, entry("none", [NAN] * 12)], NEAR)
    np.testing.assert_equal(found.ranks.to_numpy(), [[0.0, 0.5, 1.0]] * 4 + [[0.0, NAN, 1.0]] * 8)
    pair = found.pairs[0]
    assert (pair.difference.n, pair.only_first, pair.only_second) == (4, 0, 0)
    assert math.isnan(pair.mcnemar)
    assert found.pairs[1].only_first == 12


def test_who_gives_fewer_than_asked_is_last_in_diversity() -> None:
    """And has no place beside who gives them all: McNemar's test is of who does."""
    whole, single = entry("whole", [0.1] * 6), entry("single", [0.2] * 6)
    single.table["filled"] = 0.5
    found = Contest.of("t", [whole, single], MANY)
    np.testing.assert_equal(found.ranks.to_numpy(), [[0.0, 1.0]] * 6)
    assert (found.pairs[0].difference.n, found.pairs[0].only_first) == (0, 6)
    assert found.pairs[0].mcnemar == 2 / 2**6
    assert found.places == {"whole": 1, "single": 2}


def test_who_was_not_asked_loses_nothing() -> None:
    """By a question that its own constraints leave without a counterfactual: it has no rank there, and no rival."""
    loose, strict = entry("loose", [0.2] * 12), entry("strict", [0.1] * 12)
    strict = replace(strict, table=strict.table.iloc[8:])
    near, many = (Contest.of("t", [loose, strict], criterion) for criterion in (NEAR, MANY))
    np.testing.assert_equal(near.ranks.to_numpy(), [[NAN, NAN]] * 8 + [[1.0, 0.0]] * 4)
    np.testing.assert_equal(many.ranks.to_numpy(), [[NAN, NAN]] * 8 + [[0.0, 1.0]] * 4)
    for pair in (*near.pairs, *many.pairs):
        assert (pair.difference.n, pair.only_first, pair.only_second) == (4, 0, 0)
        assert math.isnan(pair.mcnemar)


def test_the_best_mean_needs_ten_questions() -> None:
    """All of which both answer; less is better of distances, more of diversity."""
    near, far = entry("near", [0.1] * 10), entry("far", [0.2] * 10)
    assert Contest.of("t", [near, far], NEAR).best == {"near"}
    assert Contest.of("t", [near, far], MANY).best == {"far"}
    few = [entry(name, [value] * 9 + [NAN]) for name, value in (("near", 0.1), ("far", 0.2))]
    assert Contest.of("t", few, NEAR).best == set()


def test_nobody_answers() -> None:
    found = Contest.of("t", [entry("a", [NAN] * 12), entry("b", [NAN] * 12)], NEAR)
    assert (found.common.n, found.common.means, found.best) == (0, {}, set())
    assert found.places == {}


def test_places_are_shared_by_those_that_no_test_tells_apart() -> None:
    """Of twenty questions, c is always the farthest; a and b are equal but for one."""
    a, c = [0.1] * 20, [0.5] * 20
    found = Contest.of("t", [entry("c", c), entry("b", [0.2, *a[1:]]), entry("a", a)], NEAR)
    assert found.mean_ranks.index.tolist() == ["a", "b", "c"]
    assert found.mean_ranks.tolist() == pytest.approx([(19 * 0.25) / 20, (0.5 + 19 * 0.25) / 20, 1.0])
    assert found.places == {"a": 1, "b": 1, "c": 3}


def test_a_test_in_favour_of_who_has_the_worse_rank_puts_nobody_behind() -> None:
    """Of twenty questions b is a little nearer in fifteen, and the farthest of all in five: a has the better mean rank,
    and the pair favours b."""
    a, b = [0.11] * 15 + [0.10] * 5, [0.10] * 15 + [0.105] * 5
    others = [entry(name, [0.2] * 15 + [0.101 + 0.001 * k] * 5) for k, name in enumerate("cde")]
    found = Contest.of("t", [entry("a", a), entry("b", b), *others], NEAR)
    assert found.mean_ranks["a"] == pytest.approx(15 * 0.25 / 20)
    assert found.mean_ranks["b"] == pytest.approx(5 / 20)
    (pair,) = (pair for pair in found.pairs if (pair.first, pair.second) == ("a", "b"))
    assert pair.p < 0.05
    assert pair.difference.value > 0
    assert (found.places["a"], found.places["b"]) == (1, 1)


def test_who_answers_too_few_takes_no_place() -> None:
    """It is the nearest of 45 of a hundred questions, and last in the others: a comes first, c second."""
    a, c = entry("a", [0.2] * 100), entry("c", [0.3] * 100)
    rare = entry("rare", [0.1] * 45 + [NAN] * 55)
    found = Contest.of("t", [a, c, rare], NEAR)
    assert found.mean_ranks.index.tolist() == ["a", "rare", "c"]
    assert found.places == {"a": 1, "c": 2}
    blocks = study(*(replace(e, dataset=f"d{k}", task=f"t{k}") for k in range(40) for e in (a, c, rare)))
    over = stood(blocks)
    assert (over.test is not None, over.too_few, over.places) == (True, {"rare"}, {"a": 1, "c": 2})


def test_places_go_to_who_has_more_where_more_is_better() -> None:
    """Of diversity: b has more in all of twenty questions."""
    a, b = entry("a", [0.1] * 20), entry("b", [0.2] * 20)
    assert Contest.of("t", [a, b], MANY).places == {"b": 1, "a": 2}


def test_people_of_a_group_share_one_reading_of_the_clock() -> None:
    """So their seconds are compared by nothing; their distances are."""
    metas = ({"n_counterfactuals": 1, "config": {"group": True}},)
    groups = [entry(name, [value] * 12, metas=metas) for name, value in (("near", 0.1), ("far", 0.2))]
    assert Contest.of("t", groups, FAST).values.empty
    assert Contest.of("t", groups, NEAR).places == {"near": 1, "far": 2}


def test_diversity_is_of_the_seeds_that_give_all() -> None:
    """Of three seeds two fill the first question and one the second, which does not count: fewer than half."""
    tables = [
        pd.DataFrame({"diversity/gower": [d, 0.5], "filled": [full, other], "coverage": 1.0})
        for d, full, other in ((0.2, 1.0, 1.0), (0.4, 1.0, 0.5), (0.9, 0.5, 0.5))
    ]
    pooled = pd.concat(tables).groupby(level=0).mean()
    several = entry("a", [0.1, 0.1], table=pooled, runs=(None, None, None))
    vars(several)["by_seed"] = tables
    assert MANY.of(several).tolist() == [pytest.approx(0.3), pytest.approx(NAN, nan_ok=True)]


def test_diversity_counts_from_half_of_the_seeds_on() -> None:
    """One of two gives all that is asked for: its value stands, without that of the other."""
    tables = [
        pd.DataFrame({"diversity/gower": [value], "filled": [full], "coverage": 1.0})
        for value, full in ((0.2, 1.0), (0.6, 0.5))
    ]
    pooled = pd.concat(tables).groupby(level=0).mean()
    several = entry("a", [0.1], table=pooled, runs=(None, None))
    vars(several)["by_seed"] = tables
    assert MANY.of(several).tolist() == [0.2]


# --- a study ------------------------------------------------------------------------------------------------------


def many(tasks: int, datasets: int, refusing: str = "") -> Study:
    """Three methods, a before b before c, on tasks that are dealt out to the data sets."""
    entries = []
    for number in range(tasks):
        place = {"dataset": f"d{number % datasets}", "task": f"t{number}"}
        for method, value in (("a", 0.1), ("b", 0.2), ("c", 0.3)):
            refusal = "no" if method == refusing and number == 0 else None
            entries.append(entry(method, [value] * 4, **place, refusal=refusal))
    return study(*entries)


def stood(found: Study) -> contest.Standing:
    return standing(found, NEAR, contest.contests(found, NEAR))


def test_five_data_sets_have_a_test() -> None:
    """By Friedman: each has the ranks 0, 1/2, 1, so the statistic is 2 x 5, and p = exp(-5) with two degrees."""
    five = stood(many(5, 5))
    assert five.test is not None
    assert five.test.p == pytest.approx(math.exp(-5))
    assert five.mean_ranks.to_dict() == {"a": 0.0, "b": 0.5, "c": 1.0}
    assert five.blocks.tolist() == [5, 5, 5]
    assert five.places == {"a": 1, "b": 1, "c": 3}
    four = stood(many(4, 4))
    assert (four.test, four.places) == (None, {})


def test_a_task_without_a_question_says_nothing() -> None:
    """As where all are proven impossible: the five others have their test, and nobody answers too few."""
    empty = [entry(method, [], dataset="d5", task="t5") for method in "abc"]
    found = stood(study(*many(5, 5).entries, *empty))
    assert found.test is not None
    assert found.places == {"a": 1, "b": 1, "c": 3}
    assert (len(found.ranks), found.too_few) == (5, frozenset())


def test_a_data_set_is_one_block() -> None:
    """However many tasks it has: ten on two data sets are two."""
    found = stood(many(10, 2))
    assert found.ranks.shape == (2, 3)
    assert found.test is None
    assert found.blocks.tolist() == [2, 2, 2]


def test_who_refuses_a_task_is_in_no_test() -> None:
    """And has its ranks of the others."""
    found = stood(many(6, 6, refusing="b"))
    assert found.test is None  # two methods are too few
    assert found.blocks.to_dict() == {"a": 6, "b": 5, "c": 6}
    assert math.isnan(found.ranks.loc["d0", "b"])


def test_one_task_has_places_by_its_pairs() -> None:
    one = study(entry("near", [0.1] * 20), entry("far", [0.2] * 20))
    assert stood(one).places == {"near": 1, "far": 2}


def test_who_covers_less_than_half_of_the_best_has_too_few() -> None:
    """By the mean over the tasks that both take, as of one answered of three; refusals are not counted."""
    half, less = [0.1, 0.1, NAN, NAN], [0.1, NAN, NAN, NAN]
    found = study(
        entry("all", [0.1] * 4),
        *(entry("all", [0.1] * 4, task=task) for task in ("other", "third")),
        entry("half", half),
        entry("less", less),
        entry("refuses", [NAN] * 4, refusal="no"),
        entry("mean", [0.1] * 4),
        entry("mean", [NAN] * 4, task="other"),
        entry("rare", [0.1] * 4),
        *(entry("rare", [NAN] * 4, task=task) for task in ("other", "third")),
    )
    expected = {"all": [1.0, 1.0, 1.0], "half": [0.5], "less": [0.25], "mean": [1.0, 0.0], "rare": [1.0, 0.0, 0.0]}
    assert {name: [each.coverage.value for each in own] for name, own in contest.asked(found).items()} == expected
    assert too_few(found) == {"less", "rare"}


def test_who_refuses_the_hard_tasks_is_no_yardstick_for_them() -> None:
    """Of what is hard for all, the best covers a fifth; who takes the easy task alone covers all of that."""
    fifth = [0.1, *[NAN] * 4]
    brave = [entry("brave", [0.1] * 5), *(entry("brave", fifth, task=task) for task in ("second", "third"))]
    picky = [entry("picky", [0.1] * 5), entry("picky", fifth, task="second", refusal="no")]
    idle = [entry("idle", [NAN] * 5), entry("idle", [NAN] * 5, task="second")]
    assert too_few(study(*brave, *picky, *idle)) == {"idle"}
    assert too_few(study(*brave, *idle[1:])) == {"idle"}


def test_a_specialist_is_no_measure_of_who_takes_all() -> None:
    """Two fifths of the one task that both take, and all of three others; of two tasks it would be half of them."""
    whole = [entry("whole", [0.1, 0.1, NAN, NAN, NAN]), *(entry("whole", [0.1] * 5, task=task) for task in "abc")]
    special = entry("special", [0.1] * 5)
    assert too_few(study(*whole, special)) == frozenset()
    assert too_few(study(*whole[:2], special)) == {"whole"}


def test_a_criterion_that_a_task_does_not_have_is_no_block() -> None:
    """Answered by all, with a value by none: the other five data sets have their test, of those who take it."""
    undefined = [entry(method, [NAN] * 4, [1.0] * 4, dataset="d5", task="t5") for method in "abc"]
    failing = replace(undefined[1], table=undefined[1].table.assign(coverage=[0.0, 1.0, 1.0, 1.0]))
    for more in (undefined, [undefined[0], failing, undefined[2]]):
        found = stood(study(*many(5, 5).entries, *more))
        assert (len(found.ranks), found.places) == (5, {"a": 1, "b": 1, "c": 3})
    refusing = replace(undefined[1], refusal="no")
    assert stood(study(*many(5, 5).entries, undefined[0], refusing, undefined[2])).test is None  # of two there is none


def test_who_is_asked_little_is_no_measure_of_coverage() -> None:
    """Ten of ten, where others are asked sixty: who answers thirty of them is below who answers all but one."""
    strict, whole = entry("strict", [0.3] * 60), entry("whole", [0.2] * 59 + [NAN])
    half = entry("half", [0.1] * 30 + [NAN] * 30)
    strict = replace(strict, table=strict.table.iloc[:10])
    assert Contest.of("t", [strict, whole, half], NEAR).best == {"whole"}


def test_who_has_no_value_anywhere_has_no_place() -> None:
    """It answers, but the criterion is not defined of it: it is neither first nor last."""
    near, far = entry("near", [0.1] * 12), entry("far", [0.2] * 12)
    found = Contest.of("t", [near, entry("undefined", [NAN] * 12, [1.0] * 12), far], NEAR)
    assert found.places == {"near": 1, "far": 2}


def test_who_answers_in_too_few_seeds_takes_no_common_mean_away() -> None:
    """A third of the seeds each time: a coverage of more than half the best's, and not one question that counts."""
    near, far, rare = (entry(name, [value] * 20) for name, value in (("near", 0.1), ("far", 0.2), ("rare", 0.1)))
    for each in (near, far):
        each.table.loc[12:, "coverage"] = 0.0
    rare.table["coverage"] = 1 / 3
    found = Contest.of("t", [near, far, rare], NEAR)
    assert (found.common.n, found.common.left_out, found.best) == (12, ("rare",), {"near"})


def test_who_answers_too_few_is_not_best_of_those_who_give_several() -> None:
    """One counterfactual for all thirty; two methods that give several to twelve: less than half of the best."""
    single = entry("single", [0.1] * 30, one=True)
    several = [entry(name, [value] * 12 + [NAN] * 18) for name, value in (("near", 0.1), ("far", 0.2))]
    found = Contest.of("t", [single, *several], MANY)
    assert list(found.values) == ["near", "far"]
    assert (found.common.means, found.best) == ({}, set())
    assert Contest.of("t", several, MANY).best == {"far"}


def test_who_never_fills_takes_no_common_diversity_away() -> None:
    """All answer all twelve; one never gives as many as asked for, one to ten, one to three: .1 and .2 are of ten."""
    filled = {"near": 12, "far": 10, "some": 3, "never": 0}
    values = dict(zip(filled, (0.1, 0.2, 0.9, 0.9), strict=True))
    entries = [entry(name, [values[name]] * n + [NAN] * (12 - n), [1.0] * 12) for name, n in filled.items()]
    for each, n in zip(entries, filled.values(), strict=True):
        each.table["filled"] = [1.0] * n + [0.5] * (12 - n)
    found = Contest.of("t", entries, MANY)
    assert (found.common.n, found.common.left_out) == (10, ("some", "never"))
    assert {name: mean.value for name, mean in found.common.means.items()} == pytest.approx({"near": 0.1, "far": 0.2})
    assert found.best == {"far"}


def test_the_greatest_coverage_is_a_share() -> None:
    """Forty of forty is more than fifty of sixty, which fails ten of the same forty."""
    strict, loose = entry("strict", [0.2] * 60), entry("loose", [0.1] * 50 + [NAN] * 10)
    strict = replace(strict, table=strict.table.iloc[20:])
    found = Contest.of("t", [strict, loose], NEAR)
    assert found.covered == {"strict": 1.0, "loose": pytest.approx(5 / 6)}
    assert found.best == {"strict"}


def test_who_covers_too_little_over_all_seeds_is_first_nowhere() -> None:
    """With one of two seeds it answers 45 of fifty questions, which counts as answered, and covers .45."""
    whole, half = entry("whole", [0.2] * 50), entry("half", [0.1] * 45 + [NAN] * 5, [0.5] * 45 + [0.0] * 5)
    found = Contest.of("t", [whole, half], NEAR)
    assert too_few(study(whole, half)) == {"half"}
    assert (found.places, found.best, found.common.left_out) == ({"whole": 1}, {"whole"}, ("half",))


def test_a_test_over_data_sets_puts_nobody_behind_who_has_the_worse_ranks_in_it() -> None:
    """In 18 of twenty data sets a is a little behind all, in two far ahead: by mean ranks a is best and b worst, and by
    the test, which ranks within data sets, b is better."""
    often, seldom = (
        dict(zip("abcde", (0.52, 0.48, 0.49, 0.50, 0.51), strict=True)),
        {"a": 0.0, "b": 1.0, "c": 0.5, "d": 0.5, "e": 0.5},
    )
    blocks = pd.DataFrame([often] * 18 + [seldom] * 2)
    assert list(contest.best_first(blocks).index) == ["a", "c", "d", "e", "b"]
    test = statistics.friedman(blocks)
    assert test is not None
    assert test.pairs.loc["a", "b"] < 1e-6
    # Ranks 1.4, 2.1, 3, 3.9 and 4.6, of which two differ where they are 1.36 apart.
    assert contest.placed(blocks, test, frozenset()) == {"b": 1, "c": 1, "d": 3, "e": 3, "a": 5}


def test_mean_ranks_that_differ_in_their_last_digit_are_equal() -> None:
    """The same ten ranks in another order."""
    ranks = [0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1 / 3, 2 / 3, 0.0, 1 / 3, 1 / 3]
    rng = np.random.default_rng(0)
    tried = [pd.Series(rng.permutation(ranks)) for _ in range(400)]
    low, high = min(tried, key=lambda s: s.mean()), max(tried, key=lambda s: s.mean())
    assert low.mean() < high.mean()
    assert contest.best_first(pd.DataFrame({"b": low, "a": high})).index.tolist() == ["a", "b"]


def test_means_that_are_equal_but_for_their_last_digit_are_no_difference_over_data_sets() -> None:
    """Of two methods in five data sets one is a bit lower in each, which Friedman's test would find out."""
    found = contest.contests(many(5, 5), NEAR)
    for each in found:
        vars(each)["mean_ranks"] = pd.Series(
            {"a": 7 / 15, "b": math.nextafter(7 / 15, 1.0), "c": math.nextafter(7 / 15, 1.0)}
        )
    blocks = standing(many(5, 5), NEAR, found)
    assert blocks.test is not None
    assert (blocks.test.p, blocks.places) == (1.0, {"a": 1, "b": 1, "c": 1})


def test_one_task_of_several_that_has_a_criterion_places_nobody_in_the_study() -> None:
    near, far = (entry(name, [value] * 20) for name, value in (("near", 0.1), ("far", 0.2)))
    other = [
        replace(each, task="u", table=each.table.drop(columns="nearest/distance/gower").drop(columns="distance/gower"))
        for each in (near, far)
    ]
    assert stood(study(near, far)).places == {"near": 1, "far": 2}
    assert stood(study(near, far, *other)).places == {}


def test_the_most_diverse_is_among_those_that_fill() -> None:
    """Of twenty questions one fills eight less, though it answers all: 8 to 0 gives 2 / 256."""
    fills, some = entry("fills", [0.1] * 20), entry("some", [0.2] * 20)
    some = replace(some, table=some.table.assign(filled=[1.0] * 12 + [0.5] * 8))
    assert Contest.of("t", [fills, some], MANY).best == {"fills"}


def test_diversity_over_seeds_is_a_mean() -> None:
    tables = [pd.DataFrame({"diversity/gower": [d], "filled": [1.0], "coverage": 1.0}) for d in (0.2, 0.4, 0.9)]
    several = entry("a", [0.1], table=pd.concat(tables).groupby(level=0).mean(), runs=(None,) * 3)
    vars(several)["by_seed"] = tables
    assert MANY.of(several).tolist() == [pytest.approx(0.5)]  # the median is 0.4


def test_who_was_asked_half_of_the_questions_may_be_the_best() -> None:
    """One answers 30 of 30; another 50 of 60, and none of ten that the first one answers."""
    strict, loose = entry("strict", [0.2] * 60), entry("loose", [NAN] * 10 + [0.1] * 50)
    strict = replace(strict, table=strict.table.iloc[:30])
    assert Contest.of("t", [strict, loose], NEAR).best == {"strict"}
