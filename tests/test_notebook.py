"""What README and docs type in a notebook runs as it stands there, and prints what stands below it."""

from __future__ import annotations

import doctest
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.pages import PROSE, ROOT

from harness.data.sources import RAW

CELLS = re.findall(r"```python\n(>>> .+?)```", PROSE, re.DOTALL)
# What the cells take for granted.
IMPORTS = """
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from harness.library import explain, pose
from methods.ce_ocl import CeOcl
"""


NEEDS = {"torch": "torch", "to_excel": "openpyxl"}  # an optional package, by what is said in a cell that needs it
LONG = ("torch", "load_wine", "explain_group")  # in cells of seconds


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "every"])
def test_cells_print_what_stands_there(every: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in a folder with the files that they read; without cells whose package is not installed."""
    shutil.copy(RAW / "pima.csv", tmp_path)
    shutil.copy(ROOT / "tests" / "fixtures" / "exported" / "torch_state.pt", tmp_path / "net.pt")
    monkeypatch.chdir(tmp_path)
    left = [word for word, package in NEEDS.items() if find_spec(package) is None]
    left += [] if every else LONG
    run = [cell for cell in CELLS if not any(word in cell for word in left)]
    assert len(run) > 3
    names: dict[str, object] = {}
    exec(IMPORTS if "torch" in left else f"import torch\n{IMPORTS}", names)
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest("\n".join(run), names, "pages", None, 0)
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)
    assert (tmp_path / "person.svg").exists() == (tmp_path / "person.xlsx").exists() == ("to_excel" not in left)
