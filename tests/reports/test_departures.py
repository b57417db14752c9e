"""Each setting that departs from a library's default is a line of the table, with its reason, and no other one is."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harness import tables
from harness.core.method import REQUIRED, LibraryDefault
from harness.core.packages import places
from harness.reports import departures
from harness.reports.departures import METHODS, REASON, Departure, Line, library_default, settings, wrapper
from methods.carla import compat

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "peers.md"
WRAPPERS = ("methods.dice.", "methods.carla.", "methods.peers.", "methods.scorecard.optbinning.")
CHOSEN = {"search", "strategy", "mode", "reward", "backend"}  # which algorithm: the method's name says it
CUT = {  # budgets below a library's own, and the choice that has its own
    ("cruds", "max_iter"): "cruds_library",
    ("dice_gradient", "maxiterations"): "dice_gradient_library",
    ("dice_gradient", "min_iter"): "dice_gradient_library",
}
PATHS = {path.stem: path for path in METHODS.glob("*.yaml")}
WRAPPED = [name for name, path in PATHS.items() if settings(path)["_target_"].value.startswith(WRAPPERS)]
STATED = {
    stated.place: stated
    for name in WRAPPED
    for stated in wrapper(settings(PATHS[name])).library_defaults.values()
    if stated.place.count(":") == 2
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_line_departs_if_and_only_if_it_says_why(name: str) -> None:
    """Whether the default is that of the library or, where that is not installed, the wrapper's statement of it."""
    lines = settings(PATHS[name])
    found = {one.setting: one for one in departures.departures() if one.method == name}
    method = wrapper(lines)
    stated = method.library_defaults
    differ = {n for n in stated if stated[n].value != REQUIRED and getattr(method, n) != stated[n].value}
    assert set(found) == differ
    assert {n for n, line in lines.items() if REASON in line.comment} == differ
    for setting, one in found.items():
        assert one.here == lines[setting].value
        assert len(one.why.split()) > 2


@pytest.mark.parametrize("name", WRAPPED)
def test_each_setting_of_a_wrapper_has_a_default(name: str) -> None:
    lines = settings(PATHS[name])
    method = wrapper(lines)
    named = {field.name for field in fields(method)}
    assert set(method.library_defaults) <= named
    assert set(lines) - {"_target_"} <= set(method.library_defaults) | CHOSEN


def test_each_parameter_of_a_wrapper_has_a_default_somewhere() -> None:
    """Those of DiCE by search; none is forgotten."""
    known: dict[type, set[str]] = {}
    for name in WRAPPED:
        method = wrapper(settings(PATHS[name]))
        known.setdefault(type(method), set()).update(method.library_defaults)
    for kind, names in known.items():
        assert {field.name for field in fields(kind)} - CHOSEN == names


@pytest.mark.parametrize(("cut", "own"), CUT.items())
def test_each_cut_budget_has_a_choice_without_it(cut: tuple[str, str], own: str) -> None:
    found = {(one.method, one.setting): one for one in departures.departures()}
    assert cut in found
    assert (own, cut[1]) not in found
    method, setting = cut
    here, there = settings(PATHS[method]), settings(PATHS[own])
    assert there[setting].value == found[cut].default
    assert here["_target_"] == there["_target_"]


def imported(place: str) -> Any:
    """The default that a library has at runtime, by its own signature or mapping."""
    module, address, key = place.split(":")
    carla = compat.library().modules.values() if module.startswith("carla.") else ()
    own = (known for known in carla if known.__name__ == module)
    found: Any = next(own, None) or importlib.import_module(module)
    for name in address.split("."):
        found = getattr(found, name)
    if callable(found):
        return inspect.signature(found).parameters[key].default
    for part in key.split("/"):
        found = found[part]
    return found


@pytest.mark.parametrize("place", STATED)
def test_a_stated_default_is_the_librarys_own(place: str) -> None:
    """As its source has it, which is read without running it, and as its signature has it at runtime."""
    if not places(place.split(".")[0].split(":")[0]):
        pytest.skip("the library is not installed")
    assert library_default(STATED[place]) == STATED[place].value
    try:
        found = imported(place)
    except ModuleNotFoundError as absent:
        pytest.skip(f"{absent.name} is not installed")
    assert found == STATED[place].value


SOURCE = """
from typing import Any
class Search:
    OPTIONS = {"steps": 10, "net": {"layers": None, "epochs": 5}}
    def run(self, x, rate: float = 0.5, *, depth=3, names=("a",)):
        return x
def alone(weight=-1):
    pass
"""


@pytest.mark.parametrize(
    ("place", "default"),
    [
        ("made_up.inner:Search.run:rate", 0.5),
        ("made_up.inner:Search.run:depth", 3),
        ("made_up.inner:Search.run:names", ("a",)),
        ("made_up.inner:Search.OPTIONS:steps", 10),
        ("made_up.inner:Search.OPTIONS:net/epochs", 5),
        ("made_up:alone:weight", -1),
        ("absent.inner:Search.run:rate", "stated"),
        ("a sentence: it has none", "stated"),
    ],
)
def test_a_default_is_read_from_source(
    place: str, default: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a class, a function or a mapping; nothing is run, and what is not installed is as stated."""
    (tmp_path / "made_up").mkdir()
    for name in ("__init__", "inner"):
        (tmp_path / "made_up" / f"{name}.py").write_text(f"import nowhere\n{SOURCE}")
    monkeypatch.syspath_prepend(tmp_path)
    assert library_default(LibraryDefault("stated", place)) == default


def test_a_line_is_that_of_the_file_that_decides(tmp_path: Path) -> None:
    """A choice may build upon others; files of numbers by dataset are not read."""
    (tmp_path / "low.yaml").write_text("# Low.\n_target_: a.B\nrate: 0.5  # one; departs: for time\nsteps: 10  # two\n")
    (tmp_path / "high.yaml").write_text(
        "# High.\ndefaults:\n  - low\n  - _self_\n  - other/some\n\nsteps: 20  # three\n"
    )
    found = settings(tmp_path / "high.yaml")
    assert found["rate"] == Line(0.5, "one; departs: for time")
    assert found["steps"] == Line(20, "three")


def test_methods_that_share_a_departure_share_a_line() -> None:
    shared = [Departure(name, "steps", 10, None, "for time") for name in ("b", "a")]
    other = Departure("a", "rate", [], 0.5, "for fun")
    assert departures.table([*shared, other]).splitlines()[2:] == [
        "| `a` | `rate` | [] | 0.5 | for fun |",
        "| `a`, `b` | `steps` | 10 | null | for time |",
    ]


def test_the_page_has_the_table_of_today() -> None:
    """``python -m harness.tables --departures`` writes it."""
    text = PAGE.read_text()
    assert departures.renewed(text) == text


def test_the_command_renews_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- departures -->\nold\n<!-- /departures -->\nafter\n")
    monkeypatch.setattr("sys.argv", ["tables", "--departures", str(page)])
    tables.main()
    table = departures.table(departures.departures())
    assert page.read_text() == f"before\n<!-- departures -->\n{table}<!-- /departures -->\nafter\n"
    page.write_text("no marks")
    with pytest.raises(SystemExit) as ended:
        tables.main()
    assert "lacks <!-- departures -->" in str(ended.value.code)  # printed, with exit code 1
