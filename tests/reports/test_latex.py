"""Tables for a paper: what LaTeX is given, character by character, and every published table in parts that fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support import latex as reader

from harness.reports import registry
from harness.reports.latex import Tabular, document, of_markdown, tex

COMPILERS = {"pdflatex": ["-interaction=nonstopmode", "-halt-on-error"], "tectonic": []}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a_b%`", r"\texttt{a\_b\%}"),
        ("α ρ Σ λ", r"$\alpha$ $\rho$ $\Sigma$ $\lambda$"),
        ("x² · y ≤ 3 − -4", r"x$^2$ $\cdot$ y $\le$ 3 $-$ $-$4"),
        ("Röber, Ramírez, Çš", r"R\"{o}ber, Ram\'{i}rez, \c{C}\v{s}"),
        ("1<=X<4, a-b", r"1$\le$X$<$4, a-b"),
        (r"\|S\| and T_max of y* *here*", r"$|S|$ and $T_{\max}$ of $y^*$ \emph{here}"),
        ("**a_b** {c} \\ ~ ^", r"\textbf{a\_b} \{c\} \textbackslash{} \textasciitilde{} \textasciicircum{}"),
        ("a – b → 3 ≥ 2 ×", r"a -- b $\to$ 3 $\ge$ 2 $\times$"),
        ("Ж ﬁ ½", "U+0416 fi 1/2"),
    ],
)
def test_text_is_escaped(text: str, expected: str) -> None:
    assert tex(text) == expected


def test_numbers_are_aligned_where_they_are_plain() -> None:
    """With errors, intervals or signs they are printed one by one; words in a column of numbers are braced."""
    head = ["a", "plain", "bold", "error", "interval", "sign"]
    body = [
        ["x", "-4,844.35", "**0.5**", "1.00 (0.25)", "**0.5 [0.25, 1.0]**", "+0.1"],
        ["y", "not run", "–", "", "2", "-0.2"],
    ]
    (table,) = reader.read(document("A b", [Tabular("c", head, body)], []))
    assert table.label == "tab:a-b"
    assert table.columns == ["l", "S[table-format=-4.2]", "S[table-format=1.1]", "r", "r", "r"]
    first, second = table.rows
    assert first[1:4] == ["-4844.35", r"\bfseries 0.5", r"\num{1.00} (\num{0.25})"]
    assert first[4:] == [r"\textbf{\num{0.5} [\num{0.25}, \num{1.0}]}", "+0.1"]
    assert second == ["y", "{not run}", "{--}", "", r"\num{2}", r"\num{-0.2}"]
    assert [reader.numbers(cell) for cell in first[1:5]] == [[-4844.35], [0.5], [1.0, 0.25], [0.5, 0.25, 1.0]]


def test_a_row_may_begin_with_a_bracket() -> None:
    """Which would be taken for the option of the line break before it."""
    (table,) = reader.read(document("t", [Tabular("c", ["a", "b"], [["[0, 1)", "1"], ["[1, 2)", "2"]])], []))
    assert [row[0] for row in table.rows] == ["{}[0, 1)", "{}[1, 2)"]


def test_wide_and_long_tables_are_split() -> None:
    """Keys are in each part; a part begins where a block of rows does; nothing is lost or doubled."""
    head = ["k", "l", *(f"m{place}" for place in range(12))]
    body = [[f"{row // 3}" if row % 3 == 0 else "", "z", *(str(100 * row + p) for p in range(12))] for row in range(60)]
    tables = reader.read(document("t", [Tabular("cap", head, body, keys=2)], []))
    assert [len(table.columns) for table in tables] == [7] * 4 + [4] * 2
    assert [len(table.rows) for table in tables] == [48, 12] * 3
    assert [table.label for table in tables] == [f"tab:t-{place}" for place in range(1, 7)]
    assert tables[3].caption == "cap (part 4 of 6)"
    assert all([table.head[0].strip("{}"), table.head[1]] == ["k", "l"] for table in tables)
    assert all(table.rows[0][0] for table in tables)
    found = sorted(int(cell) for table in tables for row in table.rows for cell in row[2:])
    assert found == sorted(100 * row + p for row in range(60) for p in range(12))


@pytest.mark.parametrize("name", registry.known())
def test_published_tables_fit_a_page(name: str) -> None:
    """Whatever a paper's table shows, its LaTeX is in ASCII, of at most seven columns, and keeps every row."""
    table = registry.known()[name]
    text, _ = table.build(())
    tables, notes = of_markdown(table.title, text)
    found = reader.read(document(name, tables, notes))
    assert len(found) >= len(tables) > 0
    # Each row is once in each band of columns.
    bands = sum(len(table.body) * -(-(len(table.head) - table.keys) // (7 - table.keys)) for table in tables)
    assert sum(len(table.rows) for table in found) == bands


@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no LaTeX")
def test_latex_takes_it(tmp_path: Path) -> None:
    """Every paper's table compiles, and none is wider than the text."""
    known = registry.known().items()
    made = "\\clearpage\n".join(document(name, *of_markdown(t.title, t.build(())[0])) for name, t in known)
    pages = "\\usepackage{booktabs,graphicx}\n\\usepackage{siunitx}\n\\begin{document}\n" + made + "\\end{document}\n"
    (tmp_path / "t.tex").write_text("\\documentclass{article}\n" + pages)
    program, options = next((name, options) for name, options in COMPILERS.items() if shutil.which(name))
    done = subprocess.run([program, *options, "t.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Overfull" not in done.stdout
