"""Units, both decimal marks, groups of digits, dates: read where there is one way to read them, written back alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.errors import DatasetError
from harness.core.notation import Notation
from harness.core.target import Interval
from harness.data import Dataset, load_csv
from harness.data.csv_factuals import read_factuals
from harness.data.csv_load import load_settled
from harness.data.csv_report import introduce
from harness.data.csv_settings import settle
from harness.data.load import parse_target

ROWS = 40
NUMBERS = np.random.default_rng(0).uniform(-3e6, 3e6, ROWS).round(2)
NUMBERS[:4] = 0.5, 12.0, 999.99, -1000.0
DAYS = pd.date_range("1965-11-03", periods=ROWS, freq="397D")
Read = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """A dataset of a column z, of another w where it is given, and a target y; semicolons between the cells."""

    def made(cells: Any, w: Any = None, beside: str = "", sep: str = ";", **entries: Any) -> Dataset:
        table = pd.DataFrame({"z": list(cells)})
        if w is not None:
            table["w"] = list(w)
        table["y"] = ["p", "q"] * (len(table) // 2)
        table.to_csv(tmp_path / "t.csv", index=False, sep=sep)
        if beside:
            (tmp_path / "t.yaml").write_text(beside)
        return load_csv(tmp_path / "t.csv", "y", features=entries or None)

    return made


def german(text: str) -> str:
    return text.translate(str.maketrans(",.", ".,"))


STYLES: dict[str, tuple[Callable[[float], str], str]] = {
    "dollars": (lambda v: f"${v:,.2f}", "numbers, in $, commas between thousands"),
    "euros": (lambda v: f"€ {german(f'{v:,.2f}')}", "numbers, in €, decimal comma, points between thousands"),
    "minus first": (lambda v: f"{'-' if v < 0 else ''}£{abs(v):,.2f}", "numbers, in £, commas between thousands"),
    "code behind": (lambda v: f"{german(f'{v:.2f}')} EUR", "numbers, in EUR, decimal comma"),
    "per cent": (lambda v: f"{german(f'{v:.2f}')} %", "numbers, in %, decimal comma"),
    "kilograms": (lambda v: f"{v:.2f}kg", "numbers, in kg"),
    "kg/m2": (lambda v: f"{v:.2f} kg/m2", "numbers, in kg/m2"),
    "narrow blanks": (lambda v: german(f"{v:,.2f}").replace(".", "\u202f"), "numbers, decimal comma, blanks between"),
    "swiss": (lambda v: f"CHF {v:,.2f}".replace(",", "’"), "numbers, in CHF, apostrophes between thousands"),
    "plain": (lambda v: f"{v:.2f}", "numbers"),
}


@pytest.mark.parametrize("style", STYLES)
def test_numbers_are_read_as_python_wrote_them(read: Read, style: str) -> None:
    """Whatever is around them and between their digits; text that is written back is read as the same number."""
    write, says = STYLES[style]
    dataset = read(map(write, NUMBERS))
    assert dataset.frame["z"].tolist() == NUMBERS.tolist()
    assert dataset.reasons["z"].startswith(says)
    feature = dataset.space["z"]
    for value in (1234.5, -0.25, 7.0):
        text = feature.text(value)
        assert (feature.notation or Notation()).parse(text) == value
    if style != "plain":
        wide = [text.replace("\u202f", " ").replace("’", "'") for text in (feature.text(999.99), write(999.99))]
        assert wide[0] == wide[1]


def test_the_worked_example(read: Read) -> None:
    """The two of a reader's own: shares with a comma, and euros with points between thousands."""
    dataset = read(["13,2 %", "7 %", "0,5%", "100 %"] * 5, ["€ 1.200,50", "€ 850,00", "€ 12.000,00", "€ 3,10"] * 5)
    assert dataset.frame["z"].tolist()[:4] == [13.2, 7, 0.5, 100]
    assert dataset.frame["w"].tolist()[:4] == [1200.5, 850, 12000, 3.1]
    assert dataset.space["z"].text(12.75) == "12,75 %"
    assert dataset.space["w"].text(1187.3333) == "€ 1.187,33"
    assert dataset.space["w"].text(-14000.0) == "-€ 14.000,00"
    text = introduce(dataset, {})
    assert "0,5 % to 100 %" in text
    assert "numbers, in €, decimal comma, points between thousands" in text


def test_counts_of_years(read: Read) -> None:
    """One year, two years: one unit; whole numbers."""
    dataset = read(["1 year", "2 years", "12 years", "3 years"] * 5)
    assert dataset.frame["z"].tolist()[:4] == [1, 2, 12, 3]
    assert dataset.space["z"].kind == "integer"
    assert dataset.reasons["z"].endswith("in years")


AMBIGUOUS = ["1.200", "850", "2.500", "12.000"] * 5


def test_two_ways_to_read_are_an_error_that_says_what_decides(read: Read, tmp_path: Path) -> None:
    """A setting of the column, of the file, in the YAML beside it, or what another column shows."""
    with pytest.raises(
        DatasetError,
        match=r"can be read in two ways: '1\.200' is 1.2 or 1200; set features={'z': {'decimal': \.\.\.}} to '\.'",
    ):
        read(AMBIGUOUS)
    with pytest.raises(DatasetError, match=r"'1,200' is 1\.2 or 1200"):
        read([text.replace(".", ",") for text in AMBIGUOUS])
    ways = {",": [1200, 850, 2500, 12000], ".": [1.2, 850, 2.5, 12]}
    for mark, values in ways.items():
        assert read(AMBIGUOUS, z={"decimal": mark}).frame["z"].tolist()[:4] == values
        assert load_csv(tmp_path / "t.csv", "y", decimal=mark).frame["z"].tolist()[:4] == values
        assert read(AMBIGUOUS, [f"0{mark}5", "3"] * 10).frame["z"].tolist()[:4] == values
        line, origins = settle({"path": str(tmp_path / "t.csv"), "target": "y"}, {"z": {"decimal": mark}})
        dataset = load_settled(line)
        assert dataset.frame["z"].tolist()[:4] == values
        assert "decimal set on the command line" in introduce(dataset, origins)
    assert read(AMBIGUOUS, beside="features: {z: {decimal: ','}}").frame["z"].tolist()[:4] == ways[","]
    assert read(AMBIGUOUS, beside="features: {z: {kind: categorical}}").space["z"].kind == "categorical"


def test_one_decimal_that_is_none_decides(read: Read) -> None:
    """A group never begins with a zero, and has three digits."""
    for last, values in (("0.125", 0.125), ("1.25", 1.25), ("1.2345", 1.2345), ("1234.500", 1234.5)):
        assert read([*AMBIGUOUS[:-1], last]).frame["z"].tolist()[-1] == values
    assert read([*AMBIGUOUS[:-1], "1.200.500"]).frame["z"].tolist()[-1] == 1200500


def test_what_is_not_alike_stays_text(read: Read) -> None:
    """Different units, numbers without theirs, codes with letters before them; said where they look like numbers."""
    dataset = read(["5 kg", "3 lb", "2 kg", "1 lb"] * 5)
    assert dataset.space["z"].kind == "categorical"
    assert "numbers in different units or ways ('5 kg' and '3 lb')" in " ".join(dataset.notices)
    assert read(["A11", "A12", "A13", "A14"] * 5).space["z"].categories == ("A11", "A12", "A13", "A14")
    assert not read(["4<=X<7", "<1", ">=7", "1<=X<4"] * 5, sep=",").notices
    with pytest.raises(DatasetError, match="10 numbers, but '13 %' in row 0"):
        read(["13 %", "0.13"] * 10)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"])
def test_dates_are_days_since_a_stated_origin(read: Read, form: str) -> None:
    """As pandas counts them, before 1970 too; written back as dates; bounds and people may be dates."""
    texts = DAYS.strftime(form)
    bounds = [str(texts[0]), str(texts[20])]
    dataset = read(texts, z={"bounds": bounds, "actionability": "increase"})
    days = (DAYS - pd.Timestamp("1970-01-01")).days
    assert dataset.frame["z"].tolist() == days.tolist()
    assert dataset.space["z"].kind == "integer"
    assert dataset.space["z"].bounds == (days[0], days[20])
    assert [dataset.space["z"].text(day) for day in days] == texts.tolist()
    assert "days since 1970-01-01" in dataset.reasons["z"]
    assert f"{texts[0]} to {texts[20]}" in introduce(dataset, {})


def test_a_stated_format_decides_and_is_kept_to(read: Read) -> None:
    texts = ["03/04/2021", "05/06/2020"] * 10
    days = {"%d/%m/%Y": "2021-04-03", "%m/%d/%Y": "2021-03-04"}
    for form, first in days.items():
        dataset = read(texts, z={"format": form})
        assert dataset.frame["z"].iloc[0] == (pd.Timestamp(first) - pd.Timestamp(0)).days
        assert dataset.space["z"].text(dataset.frame["z"].iloc[0]) == "03/04/2021"
    assert read(["3. Feb 98"] * 19 + ["4. Feb 99"], z={"format": "%d. %b %y"}).frame["z"].max() == 10626
    with pytest.raises(DatasetError, match=r"holds '05/06/2020', which is no date of the format %d\.%m\.%Y"):
        read(texts[::-1], z={"format": "%d.%m.%Y"})
    with pytest.raises(DatasetError, match=r"format of z .* give a format of dates"):
        read(texts, z={"format": "%m.%Y"})


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["03/04/2021", "05/06/2020"], "day and month cannot be told apart; it is left out"),
        (["03.04.21", "25.06.20"], "of years in two digits; it is left out"),
    ],
)
def test_other_dates_are_left_out_with_a_sentence(read: Read, texts: list[str], why: str) -> None:
    dataset = read(texts * 10, range(20))
    assert dataset.space.names == ("w",)
    assert why in " ".join(dataset.notices)
    with pytest.raises(DatasetError, match="no column left"):
        read(texts * 10)
    assert read(texts * 10, z={"kind": "categorical"}).space.names == ("z",)


def test_a_time_of_the_day_is_left_out_and_that_is_said(read: Read) -> None:
    dataset = read([f"2021-03-{day:02d}T10:22:00" for day in range(1, 21)])
    assert np.ptp(dataset.frame["z"]) == 19
    assert dataset.reasons["z"].endswith("times of the day are left out")
    assert dataset.space["z"].text(dataset.frame["z"].iloc[0]) == "2021-03-01"


def test_people_are_written_as_the_data_are(read: Read, tmp_path: Path) -> None:
    """Or plainly; dates also as ISO has them; what is neither is one sentence."""
    dataset = read([f"€ {german(f'{v:,.2f}')}" for v in np.arange(1000.5, 1020)], DAYS[:20].strftime("%d.%m.%Y"))
    people = tmp_path / "people.csv"
    for cells in (["€ 1.200,50", "03.11.1965"], ["1.200,50", "1965-11-03"], ["1200,5", "3.11.1965"]):
        people.write_text(f"z;w\n{';'.join(cells)}\n")
        assert read_factuals(dataset, people).to_numpy().tolist() == [[1200.5, -1520]]
    for cells, words in (
        ("$5;03.11.1965", "'z', row 0; give a number such as"),
        ("5;17000", "'w', row 0; give a date such as"),
    ):
        people.write_text(f"z;w\n{cells}\n")
        with pytest.raises(DatasetError, match=words):
            read_factuals(dataset, people)


def test_people_of_another_file_are_written_in_one_way(read: Read, tmp_path: Path) -> None:
    """All cells of a column decide together; where they cannot, it is one sentence, and no guess."""
    dataset = read([german(f"{v:,.3f}") for v in np.arange(0.5, 9000.25, 450)])
    people = tmp_path / "people.csv"
    people.write_text("z,w\n0.75,0\n1.250,0\n8.125,0\n")
    assert read_factuals(dataset, people)["z"].tolist() == [0.75, 1.25, 8.125]
    people.write_text("z;w\n0,75;0\n1.250;0\n")
    assert read_factuals(dataset, people)["z"].tolist() == [0.75, 1250]
    people.write_text("z,w\n1.250,0\n8.125,0\n")
    with pytest.raises(DatasetError, match=r"can be read in two ways: '1\.250' is 1\.25 or 1250; write its numbers as"):
        read_factuals(dataset, people)
    people.write_text("z,w\n1250,0\nn/k,0\n")
    with pytest.raises(DatasetError, match="holds 'n/k' in column 'z', row 1; give a number"):
        read_factuals(dataset, people)


def test_people_of_a_column_with_its_own_decimal_mark(tmp_path: Path) -> None:
    """The file has commas, and one column points."""
    table = pd.DataFrame(
        {"a": [f"{v}.125" for v in range(20)], "b": [f"{v},25" for v in range(20)], "y": ["p", "q"] * 10}
    )
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    dataset = load_csv(tmp_path / "t.csv", "y", decimal=",", features={"a": {"decimal": "."}})
    (tmp_path / "people.csv").write_text("a;b\n1.125;2,25\n")
    assert read_factuals(dataset, tmp_path / "people.csv").to_numpy().tolist() == [[1.125, 2.25]]


def test_people_of_intervals_are_written_as_the_data_are(tmp_path: Path) -> None:
    """The first row, copied, lies in the interval that it was put into."""
    amounts = [f"€ {german(f'{v:,.2f}')}" for v in np.arange(1000.5, 9000, 400)]
    days = [f"{day:02d}.12.2035" for day in range(1, len(amounts) + 1)]
    table = pd.DataFrame({"z": amounts, "w": days, "y": ["p", "q"] * (len(days) // 2)})
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    dataset = load_csv(tmp_path / "t.csv", "y", discretise="quantile")
    (tmp_path / "people.csv").write_text(f"z;w\n{amounts[7]};{days[7]}\n")
    assert read_factuals(dataset, tmp_path / "people.csv").iloc[0].tolist() == dataset.frame.iloc[7].tolist()


@pytest.mark.parametrize(
    "text",
    ["1,2,x\n", "1,1,x\n", "1,,x\n", "1,2\n", "a,b\n1,2\n", "b,a,y\n2,1,x\n"],
    ids=ascii,
)
def test_people_without_a_header_line(text: str, tmp_path: Path) -> None:
    """One person, equal cells, gaps, no target; or with a header line after all."""
    (tmp_path / "t.csv").write_text("".join(f"{v},{v % 7},{'xz'[v % 2]}\n" for v in range(20)))
    dataset = load_csv(tmp_path / "t.csv", "y", names=["a", "b", "y"], missing="median")
    (tmp_path / "people.csv").write_text(text)
    second = {"1,1,x\n": 1, "1,,x\n": dataset.reading.fills.get("b", 3)}.get(text, 2)
    assert read_factuals(dataset, tmp_path / "people.csv").to_numpy().tolist() == [[1, second]]


@pytest.mark.parametrize(
    "text", ["0,5;0,25;no\n1,5;1,25;yes\n" * 10, "Größe, cm;B;y\n" + "1,5;1,25;no\n2,5;1,5;yes\n" * 10]
)
def test_semicolons_beside_decimal_commas_separate(text: str, tmp_path: Path) -> None:
    """Where commas would cut as evenly: without a header line, and in one with a comma."""
    (tmp_path / "t.csv").write_text(text)
    names = None if "y\n" in text[:20] else ["a", "b", "y"]
    dataset = load_csv(tmp_path / "t.csv", "y", names=names)
    assert dataset.classes == ("no", "yes")
    assert dataset.frame.iloc[0, 1] == (0.25 if names else 1.25)


def test_a_header_line_that_does_not_fit_is_no_person(tmp_path: Path) -> None:
    """Its fault is told: two equal names, or one that the dataset has not."""
    (tmp_path / "t.csv").write_text("".join(f"{v},{v % 7},{v % 3},{'xz'[v % 2]}\n" for v in range(20)))
    dataset = load_csv(tmp_path / "t.csv", "y", names=["a", "b", "c", "y"])
    for text, words in (("a,a,b,c\n1,1,2,3\n", "two columns named 'a'"), ("cc,b,a\n1,2,3\n", "no column 'c'")):
        (tmp_path / "people.csv").write_text(text)
        with pytest.raises(DatasetError, match=words):
            read_factuals(dataset, tmp_path / "people.csv")


def test_letters_with_accents_have_one_spelling(tmp_path: Path) -> None:
    """As macOS writes them, and as others do."""
    rows = "".join(
        f"{unicodedata.normalize(('NFC', 'NFD')[v % 2], 'Köln')},{v},{'pq'[v // 2 % 2]}\n" for v in range(20)
    )
    (tmp_path / "t.csv").write_text(f"{unicodedata.normalize('NFD', 'größe')},v,y\n{rows}")
    dataset = load_csv(tmp_path / "t.csv", "y", features={"größe": {"kind": "categorical"}})
    assert dataset.space["größe"].categories == ("Köln",)
    other = unicodedata.normalize("NFD", "größe")
    same = load_csv(tmp_path / "t.csv", "y", immutable=[other], features={other: {"kind": "categorical"}})
    assert same.space["größe"].actionability == "immutable"


def test_a_number_to_reach_has_units_too(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": range(20), "y": [f"€ {v}.500,25" for v in range(1, 21)]})
    table.to_csv(tmp_path / "t.csv", index=False)
    dataset = load_csv(tmp_path / "t.csv", "y", task="regression", desired=">= 3000")
    assert dataset.labels.tolist() == [1000 * v + 500.25 for v in range(1, 21)]
    for text, wanted in (
        (">= 3.000", Interval(low=3000)),
        ("<= € 3.000,5", Interval(high=3000.5)),
        ("3.500,25..€ 4.000", Interval(3500.25, 4000)),
        (">= 2.5", Interval(low=2.5)),  # no number of the column's, but a plain one
    ):
        assert parse_target(dataset, text) == wanted
    with pytest.raises(DatasetError, match=r"'>= 3 000' \('3 000' is no number\); allowed for numbers: '>= € 12,00'"):
        parse_target(dataset, ">= 3 000")
    assert parse_target(dataset, "5...10") == Interval(5, 10)  # as it was ever read


def test_dates_to_predict_are_no_guess(tmp_path: Path) -> None:
    """The sentence names a setting that helps; so does that of a number that can be read in two ways."""
    path, settings = tmp_path / "t.csv", {"task": "regression", "desired": ">= 2021-02-01"}
    days = ["01/01/2021", "02/06/2021", "03/11/2021", "04/12/2021"] * 5
    pd.DataFrame({"x": range(20), "y": days}).to_csv(path, index=False)
    with pytest.raises(DatasetError, match=r"cannot be told apart; set features=\{'y': \{'format': ...\}\} to '%d"):
        load_csv(path, "y", **settings)
    read = load_csv(path, "y", features={"y": {"format": "%m/%d/%Y"}}, **settings)
    assert read.labels[:2].tolist() == [18628, 18664]  # 2021-01-01 and 2021-02-06, in days since 1970
    assert parse_target(read, "> 02/06/2021").low == pytest.approx(18664, abs=1e-6)
    assert parse_target(read, ">= 18664") == Interval(low=18664)
    with pytest.raises(DatasetError, match=r"\('soon' is no date\); allowed for dates: '>= 01/13/1970'"):
        parse_target(read, ">= soon")
    pd.DataFrame({"x": range(20), "y": [f"{v}.500" for v in range(1, 21)]}).to_csv(path, index=False)
    with pytest.raises(DatasetError, match=r"two ways: '1\.500' is 1\.5 or 1500; set features="):
        load_csv(path, "y", task="regression", desired=">= 3")
    numbers = load_csv(path, "y", task="regression", desired=">= 3.500", features={"y": {"decimal": ","}})
    assert numbers.labels[0] == 1500
    assert parse_target(numbers) == Interval(low=3500)
    with pytest.raises(DatasetError, match="has no feature 'y'"):  # which a feature alone may have
        load_csv(path, "y", task="regression", desired=">= 3", features={"y": {"kind": "integer"}})


def test_bounds_that_are_no_values_are_one_sentence(read: Read) -> None:
    with pytest.raises(DatasetError, match="bounds of z holds 'yesterday'; give a date"):
        read(DAYS.strftime("%Y-%m-%d"), z={"bounds": ["yesterday", "2020-01-01"]})


def test_bounds_that_the_settings_read_otherwise_are_one_sentence(read: Read) -> None:
    """1.200 in a YAML is 1.2, and 1,200 in the column's own way."""
    cells = [f"{number:,}".replace(",", ".") for number in range(1100, 7000, 300)]
    german = {"thousands": ".", "decimal": ","}
    for key, given, kept in (("bounds", [1.2, 6.0], ["1.200", "6.000"]), ("bounds", [1.0, 6.0], [1000, "6.000"])):
        with pytest.raises(
            DatasetError, match=rf"{key} of z is 1\.\d, .* in quotes as the column has it, such as '1.20"
        ):
            read(cells, z={**german, key: given})
        low = 1200 if kept[0] == "1.200" else 1000
        assert read(cells, z={**german, key: kept}).space["z"].bounds == (low, 6000)


def test_other_numbers_of_settings_are_written_as_the_column_too(read: Read) -> None:
    """What ends, stands for something else or fills gaps: 1.200 in quotes is 1200, and without them it is refused."""
    cells = [f"{number:,}".replace(",", ".") for number in range(1100, 7000, 300)]
    german = {"thousands": ".", "decimal": ","}
    assert read(cells, z={**german, "clip": [None, "5.000"]}).frame["z"].max() == 5000
    assert read(cells, z={**german, "special": ["1.100"]}).space["z"].special == (1100,)
    assert read([*cells[:-1], ""], z={**german, "missing": "1.250"}).frame["z"].iloc[-1] == 1250
    for key, value in (("clip", [None, 5.0]), ("special", [1.1]), ("missing", 1.25)):
        with pytest.raises(DatasetError, match=f"{key} of z is .* in quotes as the column has it"):
            read([*cells[:-1], ""], z={**german, key: value, **({} if key == "missing" else {"missing": "1.250"})})


def test_points_between_thousands_leave_the_comma_for_decimals(tmp_path: Path) -> None:
    pd.DataFrame({"x": [f"{v}.500,25" for v in range(1, 21)], "y": ["p", "q"] * 10}).to_csv(
        tmp_path / "t.csv", index=False, sep=";"
    )
    assert load_csv(tmp_path / "t.csv", "y", thousands=".").frame["x"].iloc[0] == 1500.25


def test_times_of_day_are_no_odd_dates(read: Read) -> None:
    """The format that is named reads them."""
    cells = [f"2020/01/{day:02d} 10:30" for day in range(1, 21)]
    said = " ".join(read(cells, ["1", "2"] * 10).notices)
    assert "with the time of the day; it is left out; set features.z.format to '%Y/%m/%d %H:%M' or the like" in said
    assert read(cells, z={"format": "%Y/%m/%d %H:%M"}).frame["z"].iloc[0] == 18262


def test_one_cell_of_another_kind_is_named(read: Read) -> None:
    """Among numbers with a unit or a decimal comma, and among dates: no column of texts, without a word."""
    for cells, found in (
        ([*["13,2 %", "0,5 %"] * 10, "n/k", "7 %"], r"21 numbers, but 'n/k' in row 20"),
        ([*["13,2 %", "0,7 %"] * 10, "0.5 %", "7 %"], r"21 numbers, but '0\.5 %' in row 20"),
        ([*["€ 1.200,50", "€ 3,00"] * 10, "€ 1,200.50", "€ 1"], r"21 numbers, but '€ 1,200\.50' in row 20"),
        ([*["13,2 %", "0,5 %"] * 10, "13,2", "7 %"], r"21 numbers, but '13,2' in row 20"),
        ([*["€ 1.200,50", "€ 3,00"] * 10, "$ 1.200,50", "€ 1"], r"21 numbers, but '\$ 1\.200,50' in row 20"),
        ([*["24.09.2020", "01.10.2020"] * 10, "31.02.2020", "02.10.2020"], r"21 dates, but '31\.02\.2020' in row 20"),
        ([*["24.09.2020", "01.10.2020"] * 10, "unknown", "02.10.2020"], r"21 dates, but 'unknown' in row 20"),
    ):
        with pytest.raises(DatasetError, match=found + "; correct it, list it in 'na' if it stands for a missing"):
            read(cells)
    with pytest.raises(
        DatasetError, match=r"holds '13,2', which is no number as its settings say; correct features={'z'"
    ):
        read(["13,2", "7,5"] * 10, z={"decimal": "."})


def test_what_is_written_in_no_one_way_is_said(read: Read) -> None:
    """Groups of two digits, and dates of two formats: text, or left out, with a sentence."""
    said = " ".join(read(["1,20,000", "3,50,000", "12,34,567"] * 6).notices)
    assert "in different units or ways ('1,20,000' and '3,50,000'), so it stays text" in said
    mixed = " ".join(read(["24.09.2020", "2020-10-01"] * 10, ["1", "2"] * 10).notices)
    assert "dates such as '24.09.2020', not all written in one way; it is left out; write all of them alike" in mixed
    short = " ".join(read(["24.09.20", "01.10.20"] * 10, ["1", "2"] * 10).notices)
    assert "of years in two digits; it is left out; set features.z.format to '%d.%m.%y'" in short


def test_a_long_minus_is_a_minus(read: Read) -> None:
    assert read(["−1,5", "3,25", "€ 2"[2:]] * 6).frame["z"].tolist()[:3] == [-1.5, 3.25, 2]


def test_what_fills_a_gap_may_be_written_as_the_column_is(read: Read) -> None:
    dataset = read(
        ["13,2 %", "", "7 %", "0,5 %"] * 5,
        ["24.09.2020", "01.10.2020", "", "05.11.2020"] * 5,
        beside="features: {z: {missing: '9,5 %'}, w: {missing: 25.09.2020}}",
    )
    assert dataset.frame["z"].tolist()[:3] == [13.2, 9.5, 7]
    assert dataset.space["w"].text(dataset.frame["w"].iloc[2]) == "25.09.2020"
