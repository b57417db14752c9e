"""The page about every published cell: what it counts, how it prints it, and what of an earlier one it keeps."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from support.tables import GRANTED, started

from harness import archive as command
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.evaluation.checker import judge
from harness.reports import figures, registry, reproduction, stored
from harness.reports.claim import FAILS, HOLDS, OPEN, Claim, Numbers, Verdict
from harness.reports.comparison import Comparison
from harness.store import archive
from harness.store.run import StoredRun
from metrics import _example as loans

NAMES = ("validity", "continuous_proximity")
EXPERIMENTS = Path(__file__).parents[2] / "conf" / "experiment"
COUNTS = slice(1, 15)  # of the cells of a line, all but the name


@pytest.fixture
def comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """A published table of three methods with five numbers."""
    text = "dataset,method,validity,validity_se,continuous_proximity,continuous_proximity_se\n"
    text += "Loans,Exact,1.00,0.00,-20.00,5.00\nLoans,Guess,0.80,0.10,,\nLoans,Other,0.20,0.01,-90.00,1.00\n"
    (tmp_path / "small.csv").write_text(text)
    monkeypatch.setattr(stored, "PUBLISHED", tmp_path)
    return Comparison(
        title="A table",
        file="small.csv",
        keys={"dataset": "dataset", "method": "method"},
        ours={"dataset": {"Loans": "loans"}, "method": {"Exact": "exact", "Guess": "guess"}},
        measures={name: f"mothilal/{name}" for name in NAMES},
        notes=("What a reader has to know.",),
    )


@pytest.fixture
def home(comparison: Comparison, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for studies of two tables, with a claim that the first decides, and without any figure."""
    tables = {"small": comparison, "absent": dataclasses.replace(comparison, title="Another")}
    claim = Claim("All is well.", "section 1", 1, lambda numbers: _well(numbers, len(numbers.get("small", ()))))
    kinds: dict[str, dict[str, Any]] = {"CLAIMS": {"small_well": claim}, "FIGURES": {}}
    monkeypatch.setattr(registry, "known", lambda: tables)
    monkeypatch.setattr(registry, "collected", kinds.__getitem__)
    return tmp_path / "home"


def _well(numbers: Numbers, rows: int) -> Verdict:
    return Verdict(True, 1 if "small" in numbers else 0, f"{rows} rows")


def asked(home: Path, study: str, *answers: Any, method: str = "exact", table: str = "small", **more: Any) -> StoredRun:
    return started(home / study, loans.problem, loans.factual, list(answers), method=method, table=table, **more)


def cells(page: str, name: str) -> list[str]:
    """A line of the page's first table."""
    line = next(line for line in page.splitlines() if line.startswith(f"| {name}: "))
    return [part.strip() for part in line.split("|")[1:-1]]


def test_what_is_excluded_is_listed(home: Path, comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what checks the answers behind it, in the table's own part, so that both stay or go."""
    asked(home, "run", GRANTED)
    reproduction.write(home)
    page = (home / "REPRODUCTION.md").read_text()
    assert "Proven wrong, " not in page
    assert "In 0 places a printed counterfactual or mean is proven wrong." in page
    assert cells(page, "small")[-1] == "–"
    most = {"validity": lambda run: 0.5, "continuous_proximity": lambda run: 0.0}
    judged = dataclasses.replace(comparison, most=most)
    monkeypatch.setattr(registry, "known", lambda: {"small": judged})
    for _ in range(2):  # written, then kept
        reproduction.write(home)
        page = (home / "REPRODUCTION.md").read_text()
        text = page.partition("\n## A table\n")[2].partition("\n## ")[0]
        assert "In 1 places a printed counterfactual or mean is proven wrong." in page
        assert cells(page, "small")[-1] == "1 of 2"
        assert "Proven wrong, 1 of 2 that can be judged; `python -m harness.check home/run` judges them" in text
        why = "a mean of validity is at most 0.5 where every counterfactual changes something"
        assert f"| Loans, Exact | validity 1.00 | {why} |" in text
        shutil.rmtree(home / "run", ignore_errors=True)


def test_every_published_cell_is_counted(home: Path) -> None:
    """Of five numbers: a validity as printed, a proximity farther off than both errors, three that were not asked.

    Of three people two have an answer.
    """
    asked(home, "run", GRANTED, GRANTED, None)
    assert reproduction.write(home) == f"{home / 'REPRODUCTION.md'}: 1 of 2 tables; renewed: small"
    page = (home / "REPRODUCTION.md").read_text()
    assert cells(page, "small")[COUNTS] == ["5", "3", "1", "0", "0", "1", "0", "0", "0", "0", "0", "3", "–", "–"]
    assert "| Loans | Exact | = 1 (1) | ▼ -60 (-20) | 2 of 3 |" in page
    assert "Other" not in page  # nothing of it was run
    assert "- Not run: 3 not asked here.\n" in page
    assert "- What a reader has to know.\n" in page
    assert "Not run here at all: absent.\n" in page
    assert "published rows are not shown: nothing of them was run here." in page
    opening = (
        "Of 5 comparisons with published results in 1 tables (what is asked of the authors' models and of ours, or in "
        "two ways, counts twice), 2 were regenerated: 1 come out as printed, 0 agree, 0 are undecided, and "
        "1 differ (of the papers' own methods ours is worse in 1, better in 0; of their rivals in 0 and 0); of 0 there "
        "is no answer here, and 3 were not run. In 0 places a printed counterfactual or mean is proven wrong. "
        "Of 0 costs 0 stand beside ours. Of the papers' "
        "claims, 0 do not hold here, 1 hold, and 0 are not tested enough."
    )
    assert opening in page
    assert "| All is well. | section 1 | holds | 6 rows |" in page
    extent = (
        "1 run. methods: exact; models: tree; data sets: loans; seeds: 0; factuals a run: 3; seconds a factual: 5; "
        "rows to train on: all.\n\nAnswers behind it: `home/run`.\n"
    )
    assert extent in page


def test_what_found_nothing_is_told_from_what_was_not_asked(home: Path) -> None:
    """A method without an answer has no proximity; its validity of returned ones is none, either."""
    asked(home, "run", None, None)
    reproduction.write(home)
    page = (home / "REPRODUCTION.md").read_text()
    assert cells(page, "small")[COUNTS][-4:-2] == ["2", "3"]
    assert "- No answer: 2 found nothing.\n- Not run: 3 not asked here.\n" in page
    assert "of 2 there is no answer here, and 3 were not run." in page
    assert "| Loans | Exact | ✗ (1) | ✗ (-20) | 0 of 2 |" in page


def test_a_page_is_renewed_by_what_is_no_less(home: Path) -> None:
    """Fewer cells or fewer people leave a table as it was, as many or more replace it; claims stay with tables."""
    page = home / "REPRODUCTION.md"
    asked(home, "run", GRANTED, GRANTED)
    for _ in range(2):
        assert reproduction.write(home).endswith("1 of 2 tables; renewed: small")
    whole = page.read_text()
    kept = "Kept from the page before, which has more of them: small.\n\n"
    for answers, method in (((GRANTED,), "exact"), ((GRANTED,) * 9, "guess")):  # fewer people; fewer cells
        shutil.rmtree(home / "run")
        asked(home, "run", *answers, method=method)
        assert reproduction.write(home).endswith("1 of 2 tables; kept, as the page had more of them: small")
        assert page.read_text().replace(kept, "") == whole
    asked(home, "run", GRANTED, GRANTED)
    asked(home, "other", GRANTED, table="absent")
    assert reproduction.write(home).endswith("2 of 2 tables; renewed: small, absent")
    assert cells(page.read_text(), "small")[1:3] == ["5", "11"]
    shutil.rmtree(home / "run")
    assert "renewed: absent; kept, as the page had more of them: small" in reproduction.write(home)
    assert cells(page.read_text(), "small")[1:3] == ["5", "11"]
    assert "\n## Another\n" in page.read_text()


def test_archives_give_the_same_page(home: Path, comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for where the answers lie, which each table says, with how many questions the paper asked."""
    monkeypatch.setattr(registry, "known", lambda: {"small": dataclasses.replace(comparison, asked=30)})
    monkeypatch.setenv("CE_HARNESS_CACHE", str(home / "cache"))
    monkeypatch.setattr(archive, "published", lambda meta: set())  # these small runs have no settings of a data set
    asked(home, "run", GRANTED, GRANTED)
    asked(home, "more", GRANTED, method="guess")
    reproduction.write(home)
    before = (home / "REPRODUCTION.md").read_text()
    assert "; factuals a run: 1 (1 runs), 2 (1 runs); seconds a factual: 5; rows" in before
    assert "; factuals behind a published number: 30.\n\nAnswers behind it: `home/more`, `home/run`.\n" in before
    archive.pack("run", {path.name: path for path in (home / "run" / "answers").iterdir()}, [], home / "run.ceh")
    file = home / "archives" / "more.ceh"
    archive.pack("more", {path.name: path for path in (home / "more" / "answers").iterdir()}, [], file)
    for name in ("run", "more"):
        shutil.rmtree(home / name)
    reproduction.write(home)
    places = "`home/archives/more.ceh`, `home/run.ceh`"
    assert (home / "REPRODUCTION.md").read_text() == before.replace("`home/more`, `home/run`", places)


def regenerates_a_table(experiment: str) -> bool:
    """Whether an experiment, or the one that it builds upon, names a paper's table."""
    path = EXPERIMENTS / f"{experiment}.yaml"
    text = path.read_text() if path.is_file() else ""
    if own := re.search(r"^table: (\w+)", text, re.MULTILINE):
        return own[1] != "null"
    return any(map(regenerates_a_table, re.findall(r"^  - (\w+)$", text, re.MULTILINE)))


def test_the_page_that_is_shipped_is_of_the_archives_that_are() -> None:
    """Each table is of as many runs as the archives that it names hold; none is kept from a page before."""
    home = stored.PUBLISHED.parent
    page = (home / "REPRODUCTION.md").read_text()
    assert "Kept from the page before" not in page
    assert "Not made here" not in page
    named = set()
    for table in registry.known().values():
        _, _, text = page.partition(f"\n## {table.title}\n\n")
        if text:
            extent, behind = text.split("\n\n")[:2]
            files = re.findall(r"`(.+?)`", behind.removeprefix("Answers behind it: "))
            runs = sum(len(archive.Archive(home.parent / file).manifest["runs"]) for file in files)
            assert extent.startswith(f"{runs} run{'s' * (runs != 1)}. "), table.title
            named |= set(files)
    kept = {path.stem: f"results/archives/{path.name}" for path in (home / "archives").glob("*.ceh")}
    assert {file for name, file in kept.items() if regenerates_a_table(name)} == named


def test_a_table_that_cannot_be_made_costs_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named with what is lacking, and stays as an earlier page has it; the others are renewed."""

    class Lacking(Comparison):
        def build(self, found: Sequence[StoredRun]) -> Any:
            raise HarnessError("rows.csv is nowhere; get it.")

    asked(home, "run", GRANTED, GRANTED)
    asked(home, "other", GRANTED, table="absent")
    known = dict(registry.known())
    lacking = Lacking(**{field.name: getattr(known["small"], field.name) for field in dataclasses.fields(Comparison)})
    page = home / "REPRODUCTION.md"
    for earlier in (False, True):
        monkeypatch.setattr(registry, "known", lambda: known | {"small": lacking})
        with pytest.raises(HarnessError, match=r"small could not be made: rows.csv is nowhere; get it\.$"):
            reproduction.write(home)
        text = page.read_text()
        assert "\nNot made here: small: rows.csv is nowhere; get it.\n" in text
        assert "Not run here at all" not in text
        assert "\n## Another\n" in text
        assert ("\n## A table\n" in text) is earlier
        monkeypatch.setattr(registry, "known", lambda: known)
        reproduction.write(home)
        assert "Not made here" not in page.read_text()


def test_a_page_of_other_columns_is_not_replaced(home: Path) -> None:
    asked(home, "run", GRANTED, GRANTED)
    reproduction.write(home)
    page = home / "REPRODUCTION.md"
    page.write_text(before := page.read_text().replace("questions asked", "questions"))
    with pytest.raises(HarnessError, match="other columns than this version writes; move it away"):
        reproduction.write(home)
    assert page.read_text() == before


def test_claims_that_fail_come_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then those that hold, then those that too few settings decide, whatever these say."""
    made = {"a": (True, 9), "b": (False, 9), "c": (False, 8), "d": (True, 9)}
    claims = {name: _claim(name, holds, settings) for name, (holds, settings) in made.items()}
    monkeypatch.setattr(registry, "collected", {"CLAIMS": claims, "FIGURES": {}}.__getitem__)
    rows = reproduction._claims({}, [], {})
    assert [(row[0], row[2]) for row in rows] == [("b", FAILS), ("a", HOLDS), ("d", HOLDS), ("c", OPEN)]
    assert rows[-1][3] == "8 of 9 settings: text"


def _claim(name: str, holds: bool, settings: int) -> Claim:
    return Claim(name, "section 1", 9, lambda numbers: Verdict(holds, settings, "text"))


COSTLY: Any = SimpleNamespace(costs=frozenset({"seconds"}), asked=30)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"measure": "seconds", "published": 10.0, "ours": 4.0}, "4 (10; 2.5×)"),
        ({"measure": "seconds, ours", "published": 1.0, "ours": 4.0}, "4 (1; 0.25×)"),
        ({"measure": "seconds", "published": 11400.0, "ours": 4.0}, "4 (11,400; 2850×)"),
        ({"measure": "seconds", "published": 10.0, "ours": float("nan")}, "– (10)"),
        ({"measure": "seconds", "published": 10.0, "ours": 0.0}, "0 (10)"),
        ({"measure": "stops", "published": 3.0, "ours": 5.0, "of": 5.0, "published_of": 20.0}, "5 of 5 (3 of 20)"),
        ({"measure": "distance", "published": 10.0, "ours": 4.0}, "≠ 4 (10)"),
        ({"measure": "distance", "published": 10.0, "ours": float("nan")}, "– (10)"),
        ({"measure": "distance", "published": float("nan"), "ours": 4.0}, "4"),
        ({"measure": "distance", "published": float("nan"), "ours": float("nan")}, ""),
        ({"measure": "distance", "published": 21786.0, "ours": 21785.9}, "≈ 21,786 (21,786)"),
    ],
)
def test_a_cell(row: dict[str, Any], expected: str) -> None:
    """Costs have a ratio and no verdict; counts say out of how many."""
    assert reproduction.entry(row, COSTLY) == expected


def test_costs_are_in_no_count_of_agreement(home: Path, comparison: Comparison) -> None:
    """Five costs of 10, ours 2, 5, 10, 0 and one lacking: the median of 5, 2 and 1; the result is as printed."""
    frame = pd.DataFrame(
        [
            {"place": n, "measure": "seconds", "published": 10.0, "ours": own}
            for n, own in enumerate((2.0, 5.0, 10.0, 0.0, None))
        ]
        + [{"place": 0, "measure": "distance", "published": 1.0, "ours": 1.0}]
    )
    table: Any = SimpleNamespace(
        title="T", costs=frozenset({"seconds"}), asked=1, build=lambda found: ("- A note.\n", frame),
        compared=lambda lines: lines,
    )  # fmt: skip
    found, _ = reproduction.section("small", table, [asked(home, "run", GRANTED)], home)
    assert found.row[COUNTS] == ["1", "1", "1", "0", "0", "0", "0", "0", "0", "0", "0", "0", "4 of 5", "seconds 2"]
    assert found.text.endswith("- A note.")


def test_each_verdict_has_its_own_column(home: Path) -> None:
    """Two are within a tenth; one is beyond it, within its error of 1.96 times 5; three are 9.9 off, beyond 9.8."""
    rows = [{"published": 100.0, "ours": 105.0}] * 2 + [{"published": 50.0, "ours": 58.0, "ours_se": 5.0}]
    rows += [{"published": 100.0, "ours": 90.1, "published_se": 3.0, "ours_se": 4.0}] * 3
    frame = pd.DataFrame([{"place": n, "measure": "near", "better": "lower", "n": 30} | r for n, r in enumerate(rows)])
    table: Any = SimpleNamespace(
        title="T", costs=frozenset(), asked=30, build=lambda found: ("", frame), compared=lambda lines: lines
    )
    found, _ = reproduction.section("small", table, [asked(home, "run", GRANTED)], home)
    assert found.row[COUNTS] == ["6", "1", "0", "2", "1", "0", "3", "0", "0", "0", "0", "0", "–", "–"]


def test_rivals_what_is_given_and_what_the_clock_stopped_are_counted_apart(home: Path) -> None:
    """Of five results far off, two of rivals, one that is set here and one that was stopped; so was a cost."""
    far = {"measure": "near", "better": "lower", "n": 30, "published": 100.0}
    rows: list[dict[str, Any]] = [{"ours": 50.0}, {"ours": 50.0, "rival": True}, {"ours": 200.0, "rival": True}]
    rows += [{"ours": 50.0, "given": True}, {"ours": 50.0, "stopped": True}]
    costs = [{"measure": "seconds, a", "published": 6.0, "ours": own} for own in (3.0, 2.0)]
    costs += [{"measure": "seconds, b", "published": 6.0, "ours": 1.0, "stopped": True}]
    costs += [{"measure": "seconds, a", "published": 3600.0, "ours": 4.0, "published_stopped": True}]
    costs += [{"measure": "stops", "published": 6.0, "ours": 1.0, "of": 5.0, "published_of": 20.0}]
    frame = pd.DataFrame(
        [{"place": n, **far, **row} for n, row in enumerate(rows)]
        + [{"place": 9 + k, **c} for k, c in enumerate(costs)]
    )
    table: Any = SimpleNamespace(
        title="T", costs=frozenset({"seconds", "stops"}), asked=30, build=lambda found: ("", frame),
        compared=lambda lines: lines,
    )  # fmt: skip
    found, _ = reproduction.section("small", table, [asked(home, "run", GRANTED)], home)
    assert found.row[COUNTS] == ["4", "1", "0", "0", "1", "0", "1", "0", "1", "1", "0", "0", "5 of 5", "seconds, a 2.5"]
    lines = [line.split(" | ")[1] for line in found.text.splitlines() if re.match(r"\| [0-8] \|", line)]
    assert lines == ["▲ 50 (100)", "▲ 50 (100)", "▼ 200 (100)", "50 (100)", "? 50 (100)"]
    assert "≥ 1 (6)" in found.text
    assert "4 (≥ 3,600)" in found.text


def test_whom_the_clock_stopped_is_counted_below_the_table(home: Path) -> None:
    """Of two with an answer and one without; it is what the limit gives, so that it has a verdict."""
    late = Answer(Status.FOUND, GRANTED, Reason.TIME_LIMIT)
    asked(home, "run", GRANTED, late, Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT))
    reproduction.write(home)
    assert "- loans, exact: of 2 people with an answer the clock ended 1.\n" in (home / "REPRODUCTION.md").read_text()


def test_of_several_counterfactuals_the_first_tells_whom_the_clock_stopped(home: Path) -> None:
    """The search for the others may go on to the end of any limit."""
    run = asked(home, "run", GRANTED)
    (row,) = run.rows()
    run.update(n_counterfactuals=2)
    run.append([row | {"ce": 2, "row": GRANTED | {"income": 90.0}, "reason": Reason.TIME_LIMIT}])
    judge(run)
    reproduction.write(home)
    page = (home / "REPRODUCTION.md").read_text()
    assert "| Loans | Exact |" in page
    assert "the clock ended" not in page


def test_a_damaged_archive_is_left_out(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may have made it; a folder that cannot be read is one's own, and no page is written without it."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    asked(home, "run", GRANTED)
    (home / "run" / "sweeps").mkdir()
    (home / "run" / "sweeps" / "20261130.jsonl").write_text("{}\n")
    assert command.main(["pack", str(home / "run")]) == 0
    with pytest.raises(KeyError):
        reproduction.write(home)
    shutil.rmtree(home / "run")
    assert reproduction.write(home) == f"{home / 'REPRODUCTION.md'}: 0 of 2 tables"


def test_the_opening_counts_claims_by_word() -> None:
    """Three that hold, two that do not, one that is open."""
    claims = [["", "", word, ""] for word in (OPEN, FAILS, HOLDS, FAILS, HOLDS, HOLDS)]
    said = "Of the papers' claims, 2 do not hold here, 3 hold, and 1 are not tested enough."
    assert reproduction._opening([], claims).endswith(said)


def test_a_split_says_what_is_trained_on() -> None:
    """All but a quarter that is tested on."""
    assert reproduction._split({"test_size": 0.25, "stratify": True, "seed": 0}) == "75% (stratified, seed 0)"


def test_a_number_without_a_reason_was_not_asked(home: Path) -> None:
    """Whether a table gives no reasons, or none for this one; other reasons are its own."""
    rows = [{"measure": "distance", "published": 1.0, "ours": None, "why": why} for why in (math.nan, None, "refused")]
    table: Any = SimpleNamespace(title="T", costs=frozenset(), asked=1, compared=lambda lines: lines)
    for frame, told in (
        (pd.DataFrame(rows), "- No answer: 1 refused.\n- Not run: 2 not asked here."),
        (pd.DataFrame(rows)[["measure", "published", "ours"]], "- Not run: 3 not asked here."),
    ):
        table.build = lambda found, frame=frame: ("", frame.assign(place=1)[["place", *frame.columns]])
        text = reproduction.section("small", table, [asked(home, "run", GRANTED)], home)[0].text
        assert text.endswith(told)


def test_figures_are_drawn_beside_the_page(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has stored answers is drawn, what was drawn before is shown; one that cannot be drawn costs nothing."""

    class Drawn:
        def savefig(self, path: Path, **_: Any) -> None:
            path.write_bytes(b"drawn")

    def fail(found: Sequence[StoredRun]) -> Any:
        raise HarnessError("no such runs")

    known = {"one": ("a", lambda found: Drawn()), "two": ("b", fail), "old": ("c", fail)}
    monkeypatch.setattr(figures, "known", lambda: known)
    asked(home, "run", GRANTED, figure="one")
    asked(home, "other", GRANTED, figure="two")
    (home / "figures").mkdir()
    (home / "figures" / "old.png").write_bytes(b"before")
    reproduction.write(home)
    page = (home / "REPRODUCTION.md").read_text()
    extent = "1 run. methods: exact; models: tree; data sets: loans; seeds: 0; factuals a run: 1; seconds a factual: "
    extent += "5; rows to train on: all. Answers behind it: `home/run`."
    shown = f"## Figures\n\n![one](figures/one.png)\n\n{extent}\n\n![old](figures/old.png)\n\n"
    assert page.endswith(f"{shown}Of an earlier page, whose answers are not here: old.\n\nNot drawn here: two.\n")
    assert (home / "figures" / "one.png").read_bytes() == b"drawn"


def test_figures_of_no_paper_are_drawn_for_the_study_of_their_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the page, which does not show them; a study of another name does not replace them."""

    class Drawn:
        def __init__(self, count: int) -> None:
            self.count = count

        def savefig(self, path: Path, **_: Any) -> None:
            path.write_text(str(self.count))

    own = {name: (name, lambda found: Drawn(len(found))) for name in ("growth", "other")}
    monkeypatch.setattr(figures, "OF_STUDIES", own)
    monkeypatch.setattr(figures, "known", lambda: own)
    asked(home, "growth", GRANTED, figure="growth")
    for method in ("exact", "second"):
        asked(home, "mine", GRANTED, method=method, figure="growth")
    reproduction.write(home)
    assert {path.name: path.read_text() for path in (home / "figures").iterdir()} == {"growth.png": "1"}
    assert "Figures" not in (home / "REPRODUCTION.md").read_text()


def test_counts_of_stops_have_no_ratio() -> None:
    assert math.isnan(reproduction._ratio({"published": 3.0, "ours": 5.0, "of": 5.0}))
    assert reproduction._ratio({"published": 3.0, "ours": 6.0}) == pytest.approx(0.5)


@pytest.mark.parametrize(("most", "mark"), [(-30.0, "≠"), (-10.0, "▼")])
def test_what_cannot_be_is_not_missed(
    most: float, mark: str, home: Path, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours of -60 is worse than the printed -20, where a mean can be that."""
    judged = dataclasses.replace(comparison, most={"continuous_proximity": lambda run: most})
    monkeypatch.setattr(registry, "known", lambda: {"small": judged})
    asked(home, "run", GRANTED, GRANTED, None)
    reproduction.write(home)
    assert f"| Loans | Exact | = 1 (1) | {mark} -60 (-20) | 2 of 3 |" in (home / "REPRODUCTION.md").read_text()


def test_a_row_is_shown_where_any_of_it_was_run(home: Path) -> None:
    """Of two places one was not run at all; of the other one number was not."""
    rows = [{"place": n, "measure": "near", "published": 5.0, "ours": own} for n, own in ((1, 5.0), (2, None))]
    rows += [{"place": n, "measure": "far", "published": 2.0, "ours": None} for n in (1, 2)]
    table: Any = SimpleNamespace(
        title="T",
        costs=frozenset(),
        asked=1,
        build=lambda found: ("", pd.DataFrame(rows)),
        compared=lambda lines: lines,
    )
    found, _ = reproduction.section("small", table, [asked(home, "run", GRANTED)], home)
    assert "| 1 | = 5 (5) | – (2) |" in found.text
    assert "| 2 |" not in found.text
