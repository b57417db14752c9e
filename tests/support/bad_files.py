"""Files that a user might hand over: a good CSV, and many that are wrong in one way each."""

from __future__ import annotations

import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression

EXPORTED = Path(__file__).parents[1] / "fixtures" / "exported"
TABLES = {
    "empty.csv": "",
    "header.csv": "age,inc,job,ok\n",
    "oneclass.csv": "a,b,ok\n" + "".join(f"{i},{i % 7},yes\n" for i in range(40)),
    "one_row.csv": "a,b,ok\n1,2,yes\n",
    "nantarget.csv": "a,ok\n" + "".join(f"{i},{'' if i == 3 else 'ny'[i % 2]}\n" for i in range(40)),
    "dup.csv": "age,age,ok\n" + "".join(f"{i},{i},{'ny'[i % 2]}\n" for i in range(40)),
    "ragged.csv": "a,b,ok\n1,2,y\n1,2\n3,4,n\n",
    "wide.csv": "a,b,ok\n1,2,y\n1,2,n,7\n3,4,n\n",
    "quote.csv": 'a,b,ok\n1,2,y\n"1,2,n\n3,4,n\n',
    "bigline.csv": "a,ok\n" + "x" * 10_000_000 + ",y\n",
    "const.csv": "a,b,ok\n" + "".join(f"1,2,{'ny'[i % 2]}\n" for i in range(40)),
    "inf.csv": "a,ok\n" + "".join(f"{'inf' if i == 3 else i},{'ny'[i % 2]}\n" for i in range(40)),
    "huge.csv": "a,ok\n" + "".join(f"{'1e400' if i == 3 else i},{'ny'[i % 2]}\n" for i in range(40)),
    "allmissing.csv": "a,b,ok\n" + "".join(f",{i},{'ny'[i % 2]}\n" for i in range(40)),
    "shares.csv": "rate;b;ok\n"
    + "".join(f"{'n/k' if i == 7 else f'{i},5 %'};{i % 7};{'ny'[i % 2]}\n" for i in range(1, 41)),
    "holes.csv": "a,b,ok\n" + "".join(f"{'' if i == 5 else i},{i % 7},{'ny'[i % 2]}\n" for i in range(40)),
    "rareclass.csv": "a,ok\n" + "".join(f"{i},{'no' if i == 3 else 'yes'}\n" for i in range(40)),
    "unnamed.csv": "a,,ok\n" + "".join(f"{i},{i},{'ny'[i % 2]}\n" for i in range(40)),
    "target_only.csv": "ok\n" + "".join(f"{'ny'[i % 2]}\n" for i in range(40)),
    "page.csv": "<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "texts.csv": "a,ok\n" + "".join(f"text {i},{'ny'[i % 2]}\n" for i in range(300)),
    "numtarget.csv": "a,b,y\n" + "".join(f"{i % 9},{i % 7},{i * 1.5}\n" for i in range(80)),
    "bad.yaml": "target: ok\nimmutable: [age\n",
    "typo.yaml": "targett: ok\n",
    "evil.yaml": "target: ok\ndesired: !!python/object/apply:os.system ['true']\n",
    "list.yaml": "- target\n- ok\n",
    "number.yaml": "immutable: 7\n",
    "twice.yaml": "target: ok\ntarget: job\n",
    "kind.yaml": "features: {age: {kind: number}}\n",
    "wanted.yaml": "desired: maybe\n",
    "own/experiment/unnamed.yaml": "# @package _global_\ndefaults:\n- ???\n",
    "people_missing.csv": "age,inc\n20,1000\n",
    "people_unknown.csv": "age,inc,job\n20,1000,pilot\n",
    "people_range.csv": "age,inc,job\n300,-5000,a\n",
    "people_text.csv": "age,inc,job\nold,1000,a\n",
    "people_empty.csv": "age,inc,job\n",
    "people_hole.csv": "age,inc,job\n20,,a\n",
    "people_half.csv": "age,inc,job\n20.5,1000,a\n",
    "people_infinite.csv": "age,inc,job\n20,inf,a\n",
}


def make(folder: Path) -> None:
    """Write all of them into a folder."""
    (folder / "own" / "experiment").mkdir(parents=True)
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    rng = np.random.default_rng(0)
    good = pd.DataFrame({"age": rng.integers(18, 70, 120), "inc": rng.integers(500, 5000, 120)})
    good["job"] = rng.choice(["a", "b", "c"], 120)
    good["ok"] = np.where(good["inc"] + 20 * good["age"] > 3500, "yes", "no")
    good.to_csv(folder / "good.csv", index=False)
    good.assign(inc=[f"{value / 1000:.3f}" for value in good["inc"] + 1000]).to_csv(folder / "marks.csv", index=False)
    good.assign(job=[f"0{value % 9 + 1}/0{value % 7 + 1}/2021" for value in good["inc"]]).to_csv(
        folder / "dates.csv", index=False
    )
    good[good["ok"] == "yes"].head(2).drop(columns="ok").to_csv(folder / "people_already.csv", index=False)
    text = (folder / "good.csv").read_text()
    (folder / "latin.csv").write_bytes(text.replace("a,", "ä,").encode("latin-1"))
    (folder / "utf16.csv").write_bytes(text.encode("utf-16"))
    (folder / "bin.csv").write_bytes(bytes(range(256)) * 20)
    with zipfile.ZipFile(folder / "good.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    (folder / "good.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    (folder / "good.csv.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(40))
    (folder / "people_latin.csv").write_bytes("age,inc,job\n20,1000,ä\n".encode("latin-1"))
    _make_models(folder, good)
    _make_results(folder)


def _make_models(folder: Path, good: pd.DataFrame) -> None:
    numbers, other = good[["age", "inc"]], good[["age", "inc"]].rename(columns={"age": "alter"})
    fitted = {
        "twocols": LogisticRegression().fit(numbers, good["ok"]),
        "othernames": LogisticRegression().fit(other, good["ok"]),
        "otherclass": LogisticRegression().fit(numbers, good["ok"].map({"yes": "gut", "no": "schlecht"})),
        "unfitted": LogisticRegression(),
        "unnamed": LogisticRegression().fit(numbers.to_numpy(), good["ok"]),
        "votes": VotingClassifier([("a", LogisticRegression())]).fit(numbers, good["ok"]),
        "othervotes": VotingClassifier([("a", LogisticRegression())]).fit(other, good["ok"]),
        "unfittedvotes": VotingClassifier([("a", LogisticRegression())]),
        "bare": StackingClassifier([("a", LogisticRegression())], cv=2).fit(numbers.to_numpy(), good["ok"]),
    }
    for name, model in fitted.items():
        skops.io.dump(model, folder / f"{name}.skops")
    (folder / "dict.pkl").write_bytes(pickle.dumps({"a": 1}))
    (folder / "frame.skops").write_bytes(skops.io.dumps({"a": 1}))
    (folder / "garbage.skops").write_bytes(b"garbage")
    (folder / "garbage.pkl").write_bytes(b"garbage" * 9)
    (folder / "empty.skops").write_bytes(b"")
    (folder / "model.onnx").write_bytes(b"\x08\x07")
    shutil.copy(EXPORTED / "columns_forest.onnx", folder / "othercolumns.onnx")
    shutil.copy(EXPORTED / "catboost_categories.cbm", folder / "othercolumns.cbm")
    for name in ("model.cbm", "model.pt"):
        (folder / name).write_bytes(b"garbage")
    with zipfile.ZipFile(folder / "zip.skops", "w") as archive:
        archive.writestr("a.txt", "a")


def _make_results(folder: Path) -> None:
    """A results folder with nothing in it, and one with a run whose description is torn."""
    (folder / "results" / "nothing").mkdir(parents=True)
    torn = folder / "results" / "torn" / "answers" / "good-cart-nearest-12345678"
    torn.mkdir(parents=True)
    (torn / "cell.json").write_text('{"dataset": "go')
