"""A notebook's tables, figures and groups: gaps are called missing, a task is five lines, groups are judged."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from harness import library
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, GroupExplanation, Status
from harness.core.objective import Limit, Objective, Term
from harness.data import load_csv
from harness.execution.task import Task
from harness.library import explain_group, in_context, pose
from harness.reports.person import Explained
from harness.reports.person_figure import BARS, EDGE, NAMES, STRIP
from methods.group_greedy import GroupGreedy


def loans() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(50, 20, 120).round(1), "debt": rng.gamma(2, 10, 120).round(1)})
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    return frame.assign(ok=np.where(frame["income"].fillna(20) > 2 * frame["debt"].fillna(0), "yes", "no"))


@pytest.fixture(scope="module")
def task() -> Task:
    frame = loans()
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame[["income", "debt"]], frame["ok"])
    return pose(
        frame, "ok", model, "yes", immutable=["income"], missing="value", features={"debt": {"may_be_missing": True}}
    )


@pytest.fixture(scope="module")
def explained(task: Task) -> Explained:
    """A gap that is filled beside one that is made, of whatever validity."""
    problem = next(iter(task.problems.values()))
    factual = problem.space.frame([{"income": np.nan, "debt": 30.0}])
    rows = ({"income": 60.0, "debt": None}, {"income": None, "debt": 10.0})
    return in_context(Explanation(tuple(Answer(Status.FOUND, row) for row in rows)), None, problem, factual)


def test_a_gap_lies_beyond_no_bound(explained: Explained) -> None:
    """Of income and debt, whose bounds are those of the table."""
    assert "beyond the bounds" not in str(explained)


def test_gaps_are_called_missing_in_a_spreadsheet(explained: Explained, tmp_path: Path) -> None:
    """And are NaN in a frame, whose columns are numbers."""
    frame = explained.to_frame()
    assert frame["income"].isna().tolist() == [True, False, True]
    assert frame["debt"].dtype == float
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is in the extra 'excel'")
    explained.to_excel(tmp_path / "person.xlsx")
    lines = list(openpyxl.load_workbook(tmp_path / "person.xlsx").active.iter_rows(values_only=True))
    assert [line[-2:] for line in lines[1:]] == [("missing", 30), (60, "missing"), ("missing", 10)]
    with pytest.raises(
        HarnessError, match=r"nowhere.* cannot be written \(No such file.*\); close it where it is open"
    ):
        explained.to_excel(tmp_path / "nowhere" / "person.xlsx")


def test_gaps_are_drawn_beside_the_range(explained: Explained) -> None:
    """Each arrow begins and ends somewhere: at a gap right of all numbers, within the strip, over a bar of gaps."""
    drawn = explained.plot().axes[0]
    arrows = [line for line in drawn.lines if line.get_zorder() == 3]
    ends = np.array([line.get_xdata() for line in arrows], dtype=float)
    assert len(ends) == 3
    assert np.isfinite(ends).all()
    (filled, made, moved), right = ends, EDGE + NAMES + STRIP
    assert filled[1] < filled[0] == made[1] < right
    assert made[0] == moved[0] < made[1]
    assert [text.get_text() for text in drawn.texts].count(
        "missing"
    ) == 2 + 2  # below two bars, and the two ends of arrows
    bars = [bar for bar in drawn.patches if to_hex(bar.get_facecolor()).upper() == BARS][:31]
    (name,) = (text for text in drawn.texts if text.get_text() == "income")
    assert max(bars, key=Rectangle.get_height) is bars[-1]  # there are more gaps than numbers in any bar
    assert bars[-1].get_y() == pytest.approx(name.get_position()[1])  # and it ends at the top of the strip


def test_a_task_is_five_lines(task: Task) -> None:
    assert repr(task).splitlines() == [
        "the table: 120 rows",
        "features: income, debt (immutable income)",
        "wanted: yes",
        "model: HistGradientBoostingClassifier",
        "factuals: 120",
    ]


def test_a_model_that_no_exact_method_reads_is_not_called_exact() -> None:
    """Neighbours have no steps that hide anything, and yet they are only asked."""
    table = loans().dropna()
    model = KNeighborsClassifier().fit(table[["income", "debt"]], table["ok"])
    said = repr(pose(table.reset_index(drop=True), "ok", model, desired="yes")).splitlines()
    assert "model: KNeighborsClassifier" in said


def test_what_was_read_keeps_its_gaps(tmp_path: Path) -> None:
    """What becomes of missing cells was settled where the file was read; what counterfactuals may do is not."""
    loans().to_csv(tmp_path / "loans.csv", index=False)
    dataset = load_csv(tmp_path / "loans.csv", "ok", missing="value")
    model = HistGradientBoostingClassifier(max_iter=5).fit(dataset.frame, dataset.labels)
    opened = pose(dataset, model=model, desired="yes", features={"debt": {"may_be_missing": True}})
    assert opened.dataset.space["debt"].may_be_missing
    with pytest.raises(HarnessError, match=r"missing of debt is settled where the data are read; give it to load_csv"):
        pose(dataset, model=model, desired="yes", features={"debt": {"missing": "median"}})
    with pytest.raises(HarnessError, match=r"feature debt has no attribute 'may_be_mising'; did you mean 'may_be_m"):
        pose(dataset, model=model, desired="yes", features={"debt": {"may_be_mising": True}})


NUMBERS = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0) ** 2, "ok": ["no", "yes"] * 50})
RULE = LinearRegression().fit(NUMBERS[["a"]], NUMBERS["b"])
NO_MODELS = {
    "a name": ("lr", "ok", "model='lr' is no fitted scikit-learn estimator"),
    "a class": (LinearRegression, "ok", "is no fitted scikit-learn estimator"),
    "a function": (len, "ok", "is no fitted .*; give one of these .*, or put your own into a class as docs/howto/mod"),
    "another's": (SimpleNamespace(predict=len), "ok", "is no fitted scikit-learn estimator"),
    "not fitted": (make_pipeline(DecisionTreeClassifier()), None, "a Pipeline, is not fitted; call fit first"),
    "numbers for classes": (RULE, "ok", "it predicts no classes, and the target is one of no, yes; choose a class"),
    "classes for numbers": (DecisionTreeClassifier().fit(NUMBERS[["a"]], NUMBERS["ok"]), "b", "and 91 more.$"),
}


@pytest.mark.parametrize("case", NO_MODELS)
def test_what_is_no_model_of_the_target_is_one_sentence(case: str) -> None:
    model, target, sentence = NO_MODELS[case]
    with pytest.raises(HarnessError, match=sentence) as told:
        pose(NUMBERS, target, model, desired="no")
    assert len(str(told.value)) < 250


def test_a_refusal_of_a_group_is_one_sentence(task: Task) -> None:
    people = [one for one in task.factuals.index if not task.satisfied(one)][:2]
    told = str(explain_group(GroupGreedy(), task, people))
    assert told.startswith("2 people, wanted yes: GroupGreedy takes no missing values, and income keeps them; set ")
    assert told.endswith("another filler, or drop.")


def test_what_a_group_changes_together_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two people changes one feature to their point, which is two, where a point may change one."""
    frame = pd.DataFrame({"a": [0, 1, 1, 0] * 5, "b": [1, 0, 1, 0] * 5, "ok": ["no", "no", "yes", "no"] * 5})
    task = pose(frame, "ok", DecisionTreeClassifier().fit(frame[["a", "b"]], frame["ok"]), desired="yes")
    point = Answer(Status.FOUND, {"a": 1, "b": 1})

    def answered(most: int, people: dict[int, int], bound: float | None = None) -> list[str]:
        found = GroupExplanation((point,), people, bound=bound, changed=(("a", "b"),))
        claim = Objective((), limits=(Limit(Term("l0"), most),))
        outcome = SimpleNamespace(explanation=found, claim=claim, reply=SimpleNamespace(status=found.status, detail=""))
        monkeypatch.setattr(library, "Pool", lambda: SimpleNamespace(explain_groups=lambda *_: [outcome]))
        explained = explain_group(GroupGreedy(), task, [0, 1])
        return [explained.people[one].context.verdicts[0] for one in (0, 1)]

    assert answered(2, {0: 0, 1: 0}) == ["accepted", "accepted"]
    assert answered(1, {0: 0, 1: 0}) == ["beyond its limits", "beyond its limits"]
    assert answered(2, {0: 0, 1: 0}, bound=3.0) == ["worse than claimed", "worse than claimed"]
