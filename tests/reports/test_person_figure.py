"""What changes for one person, drawn: each value where it lies, no text on another, and a file of the named format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from sklearn.tree import DecisionTreeClassifier
from support.figures import covered

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, Status
from harness.core.notation import Notation
from harness.library import in_context, pose
from harness.reports.canvas import COLOURS
from harness.reports.person import Explained
from harness.reports.person_figure import BARS, EDGE, NAMES, STRIP

RNG = np.random.default_rng(0)
LONG = "a category of which the name is far too long for the column that it has to be written into, twice"
FRAME = pd.DataFrame({f"a_number_with_a_long_name_{place}": RNG.normal(0, 10**place, 60) for place in range(18)})
FRAME["count"] = np.arange(60) % 4
FRAME["job"] = [("none", LONG, "$x$ & <b>", "WWWWWWWWWWWWWWWWWWWW")[place % 4] for place in range(60)]
NUMBER = "a_number_with_a_long_name_1"


@pytest.fixture(scope="module")
def task() -> Any:
    model = DecisionTreeClassifier().fit(FRAME.iloc[:, :18], np.where(FRAME[NUMBER] > 0, "yes", "no"))
    return pose(FRAME, model=model, desired="yes")


def explained(
    task: Any, *rows: dict[str, Any] | None, region: dict[str, tuple[float, float]] | None = None
) -> Explained:
    """The answers to somebody whom the model refuses, with these changes."""
    place = int(np.flatnonzero(FRAME[NUMBER] < 0)[0])
    factual = task.factuals.loc[[place]]
    found = [
        Answer(Status.GAVE_UP) if row is None else Answer(Status.FOUND, factual.iloc[0].to_dict() | row, region=region)
        for row in rows
    ]
    return in_context(Explanation(tuple(found)), None, task.problem(place), factual)


def strips(figure: Any) -> list[Any]:
    """The lines of counterfactuals, in the order of rows and lanes."""
    lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2]
    return [line for line in lines if to_hex(line.get_color()).upper() in COLOURS[:3]]


ALL = {name: float(FRAME[name].max()) for name in FRAME.columns[:18]}


@pytest.mark.parametrize(
    ("rows", "region"),
    [
        ([{NUMBER: 5.0, "job": LONG}], None),
        ([{NUMBER: 5.0, "job": LONG}, {NUMBER: 9.0, "count": 3}, {"job": "$x$ & <b>", "count": 0, NUMBER: 1.0}], None),
        ([ALL | {"job": "WWWWWWWWWWWWWWWWWWWW"}, None, ALL], None),
        ([{NUMBER: 5.0}], dict.fromkeys(FRAME.columns[:18], (-1.5, 2.25))),
        ([None], None),
    ],
    ids=["one", "three", "all features", "region", "none"],
)
def test_no_text_lies_on_another(task: Any, rows: Any, region: Any) -> None:
    """Nor beyond the figure's edges."""
    figure = explained(task, *rows, region=region).plot()
    assert covered(figure) == []
    canvas: Any = figure.canvas
    width, height = figure.get_size_inches() * figure.dpi
    for text in figure.axes[0].texts:
        box = text.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height


def test_values_lie_where_they_are(task: Any) -> None:
    """Two features of twenty change. Lines lead from the factual to each value, a band covers its interval."""
    explanation = explained(task, {NUMBER: 5.0}, {NUMBER: 9.0, "count": 3}, region={NUMBER: (4.0, 6.0)})
    figure = explanation.plot()
    origin = explanation.context.factual.iloc[0]
    low, high = FRAME[NUMBER].min(), FRAME[NUMBER].max()
    across = STRIP - 0.2

    def place(value: float) -> float:
        return EDGE + NAMES + 0.06 + across * (value - low) / (high - low)

    lines = strips(figure)
    assert len(lines) == 3
    for line, value in zip(lines, (5.0, 9.0), strict=False):
        assert line.get_xdata() == pytest.approx([place(origin[NUMBER]), place(value)])
    bands = [p for p in figure.axes[0].patches if isinstance(p, Rectangle) and p.get_alpha()]
    assert [(band.get_x(), band.get_width()) for band in bands] == [
        pytest.approx((place(4.0), place(6.0) - place(4.0))),
        pytest.approx((place(4.0), place(6.0) - place(4.0))),
    ]
    bars = [p for p in figure.axes[0].patches if to_hex(p.get_facecolor()).upper() == BARS and p.get_x() >= place(low)]
    assert len(bars) == 30 + 4
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "Unchanged: 18 other features." in texts
    assert {"5", "9", "3", "4 to 6"} <= set(texts)


def test_days_of_a_band_lie_within_it_and_reasons_end_once(task: Any) -> None:
    """A region from 0.5 to 31.5 days: its first whole day is 2 January 1970, its last 1 February, in both places."""
    space = task.dataset.space
    dated = replace(space["count"], notation=Notation(date="%Y-%m-%d"))
    own = replace(space, features=tuple(dated if f.name == "count" else f for f in space.features))
    found = explained(task, {"count": 3}, None, region={"count": (0.5, 31.5)})
    refused = replace(found.answers[1], region=None, detail="It takes no dates.")
    context = replace(found.context, problem=replace(found.context.problem, space=own))
    shown = replace(found, answers=(found.answers[0], refused), context=context)
    texts = [text.get_text() for text in shown.plot().axes[0].texts]
    assert {"1970-01-02 to", "1970-02-01", "CE 2: It takes no dates."} <= set(texts)
    assert "1970-01-02 to 1970-02-01" in str(shown)


def test_a_false_answer_is_marked_and_one_that_does_not_exist_has_no_place(task: Any) -> None:
    figure = explained(task, {NUMBER: -5.0}, {"job": "unheard of"}).plot()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"CE 1 ✗", "CE 2 ✗", "CE 1 ✗: invalid."} <= set(texts)
    assert len(strips(figure)) == 1


def test_a_value_is_written_as_the_table_has_it(monkeypatch: pytest.MonkeyPatch, task: Any) -> None:
    """To as many digits as its counterfactual takes."""
    found = explained(task, {NUMBER: 5.00000012})
    monkeypatch.setattr(type(found.context), "told", (found.answers[0].row,))
    shown = {text.get_text() for text in found.plot().axes[0].texts}
    assert "5.00000012" in shown
    assert "→ 5.00000012" in str(found)


def test_files(task: Any, tmp_path: Path) -> None:
    """The same each time; other endings and folders are one sentence."""
    explanation = explained(task, {NUMBER: 5.0})
    for suffix, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        written = []
        for _ in range(2):
            explanation.plot(tmp_path / f"person.{suffix}")
            written.append((tmp_path / f"person.{suffix}").read_bytes())
        assert written[0].startswith(start)
        assert written[0] == written[1]
    shown: Any = explanation.plot()
    assert "<svg" in shown._repr_svg_()
    with pytest.raises(HarnessError, match=r"ends in \.svg, \.pdf or \.png"):
        explanation.plot(tmp_path / "person.txt")
    with pytest.raises(HarnessError, match="in a folder that exists"):
        explanation.plot(tmp_path / "none" / "person.svg")
