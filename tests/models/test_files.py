"""Model files: read without running code in them, and refused in one sentence."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops import io
from support.loans import FRAME, LABELS, READ, SPACE, Payload, read, trained

from harness.core.errors import HarnessError
from harness.core.space import Space
from harness.models import files
from harness.models.adopt import from_file


@pytest.mark.parametrize("name", ["model.pkl", "model.pickle", "model.joblib", "model.PKL"])
def test_a_pickle_is_not_read_without_trust(tmp_path: Path, name: str) -> None:
    """The error says why, and what to do; nothing runs."""
    (tmp_path / name).write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match=r"runs code of whoever made it; .*skops.io.dump.*model.trust=true"):
        read(tmp_path / name)
    assert not (tmp_path / "struck").exists()


def test_with_trust_a_pickle_runs(tmp_path: Path) -> None:
    """So the test above would notice."""
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match="NoneType"):
        read(tmp_path / "model.pkl", trust=True)
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("trust", [False, True])
def test_a_pickle_under_another_name_is_never_read(tmp_path: Path, trust: bool) -> None:
    (tmp_path / "model.skops").write_bytes(pickle.dumps(Payload(tmp_path / "struck")))
    with pytest.raises(HarnessError, match=r"is no skops file \(it is a pickle"):
        read(tmp_path / "model.skops", trust=trust)
    assert not (tmp_path / "struck").exists()


def test_a_trusted_pickle_is_the_model(saved: Callable[..., Path]) -> None:
    model = trained()
    known = read(saved(model, "model.joblib"), trust=True)
    assert known.wrapped is not None
    assert known.wrapped.trusted
    np.testing.assert_array_equal(known.predict(FRAME), model.predict(READ))


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def schema(**node: Any) -> bytes:
    return json.dumps({"protocol": 2, "_skops_version": "0.16", "__id__": 1, **node}).encode()


def node(module: str, kind: str, loader: str, **rest: Any) -> dict[str, Any]:
    return {"__module__": module, "__class__": kind, "__loader__": loader, **rest}


def text(value: Any) -> dict[str, Any]:
    return node("builtins", "str", "JsonNode", content=json.dumps(value), is_json=True)


def listed(*items: Any) -> dict[str, Any]:
    return node("builtins", "tuple", "TupleNode", content=list(items))


def strike(target: Path) -> list[tuple[str, dict[str, Any]]]:
    """Schemas that would create a folder: a call as a loss, as a constructor, as a partial, as a method."""
    call, nothing = f"import os; os.mkdir({str(target)!r})", listed()
    measure = "numpy.testing._private.utils"
    return [
        ("measure", node(measure, "measure", "LossNode", __reduce__={"args": listed(text(call))}, content=nothing)),
        ("mkdir", node("os", "mkdir", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("mkdir", node("posix", "mkdir", "LossNode", __reduce__={"args": listed(text(str(target)))}, content=nothing)),
        ("eval", node("builtins", "eval", "ConstructorFromReduceNode", content=listed(text(call)))),
        (
            "partial",
            node(
                "functools", "partial", "PartialNode",
                content={
                    "func": node(measure, "measure", "FunctionNode"), "args": listed(text(call)),
                    "kwds": text({}), "namespace": text(None),
                },
            ),
        ),
        ("load", node("joblib.numpy_pickle", "load", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("Path", node("pathlib", "Path", "ConstructorFromReduceNode", content=listed(text(str(target))))),
        ("memmap", node("numpy", "memmap", "ConstructorFromReduceNode", content=listed(text(str(target)), text("u1")))),
        ("methodcaller", node("operator", "methodcaller", "OperatorFuncNode", attrs=listed(text("mkdir")))),
        ("runstring", node("numpy.testing", "runstring", "FunctionNode")),
        ("fetch_openml", node("sklearn.datasets._openml", "fetch_openml", "FunctionNode")),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(11))
def test_a_call_in_a_skops_file_is_refused(tmp_path: Path, number: int) -> None:
    """By the name of what would be called."""
    name, payload = strike(tmp_path / "struck")[number]
    path = archive(tmp_path / "model.skops", {"schema.json": schema(**payload)})
    with pytest.raises(HarnessError, match=rf"types that are not trusted: .*{name}"):
        read(path)
    assert not (tmp_path / "struck").exists()
    assert not list(tmp_path.glob("struck*"))


def test_a_call_deep_inside_a_model_is_refused(saved: Callable[..., Path], tmp_path: Path) -> None:
    """A model like any other, one of whose attributes is a call."""
    path = saved(trained())
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    described = json.loads(members["schema.json"])
    described["content"]["content"]["verbose"] = strike(tmp_path / "struck")[0][1]
    members["schema.json"] = json.dumps(described).encode()
    with pytest.raises(HarnessError, match="measure"):
        read(archive(tmp_path / "other.skops", members))
    assert not (tmp_path / "struck").exists()


def test_foreign_functions_are_refused(saved: Callable[..., Path]) -> None:
    """A FunctionTransformer may run scikit-learn's and numpy's plain functions, no others."""
    path = saved(make_pipeline(FunctionTransformer(np.testing.assert_allclose), trained()))
    with pytest.raises(HarnessError, match=r"types that are not trusted: .*assert_allclose"):
        read(path)


OBJECTS = pickle.dumps(np.array([{}], dtype=object))
ARRAY = node("numpy", "ndarray", "NdArrayNode", type="numpy", file="a.npy")


def deep() -> bytes:
    return b'{"protocol": 2, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


BROKEN: dict[str, tuple[dict[str, bytes], str]] = {
    "no schema": ({"a.npy": b""}, "it has no schema.json"),
    "empty": ({}, "it has no schema.json"),
    "schema without sense": ({"schema.json": b"{}"}, "no skops file"),
    "schema that is no JSON": ({"schema.json": b"\x80\x04"}, "no skops file"),
    "schema too deep": ({"schema.json": deep()}, "no skops file"),
    "schema of a number": ({"schema.json": b"3"}, "no skops file"),
    "a protocol to come": ({"schema.json": b'{"protocol": 99}'}, "no skops file"),
    "a path upwards": ({"schema.json": schema(**ARRAY), "../a.npy": b""}, r"holds a file '\.\./a\.npy'"),
    "a path from the root": ({"schema.json": schema(**ARRAY), "/etc/passwd": b""}, "holds a file '/etc/passwd'"),
    "a folder": ({"schema.json": schema(**ARRAY), "a/": b""}, "holds a file 'a/'"),
    "an array that is a pickle": ({"schema.json": schema(**ARRAY), "a.npy": OBJECTS}, "is damaged"),
    "an array that lacks": ({"schema.json": schema(**ARRAY)}, "no skops file"),
    "a node that refers to nothing": ({"schema.json": schema(**node("", "", "CachedNode"))}, "no skops file"),
    "a loader that there is not": ({"schema.json": schema(**node("numpy", "x", "EvilNode"))}, "no skops file"),
    "no model": ({"schema.json": schema(**text([1, 2]))}, "holds a list; save a fitted estimator"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path: Path, case: str) -> None:
    members, sentence = BROKEN[case]
    with pytest.raises(HarnessError, match=sentence) as fault:
        read(archive(tmp_path / "model.skops", members))
    assert "\n" not in str(fault.value)
    assert len(str(fault.value)) < 600


def test_an_array_of_a_size_that_no_file_has_is_refused(tmp_path: Path) -> None:
    """A header of a few bytes may say that petabytes follow."""
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (200000000000000,), }".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with pytest.raises(HarnessError, match="is damaged"):
        read(archive(tmp_path / "model.skops", {"schema.json": schema(**ARRAY), "a.npy": content}))


def test_sizes_are_checked_before_anything_is_unpacked(
    saved: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the file, and of what it says it holds."""
    path = saved(trained())
    bomb = archive(tmp_path / "bomb.skops", {"schema.json": schema(**ARRAY), "a.npy": bytes(3_000_000)})
    monkeypatch.setattr(files, "UNPACKED", 2_000_000)
    with pytest.raises(HarnessError, match="unpacked it would have more than 2,000,000 bytes"):
        read(bomb)
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(HarnessError, match="a model file may have 100"):
        read(path)


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (DecisionTreeClassifier(max_depth=3), "tree_"),
        (RandomForestClassifier(2, max_depth=3), "tree_"),
        (GradientBoostingClassifier(n_estimators=2), "tree_"),
        (HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3), "nodes"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrong", ["child", "loop", "column"])
def test_a_tree_that_points_outside_itself_is_refused(tmp_path: Path, model: Any, where: str, wrong: str) -> None:
    """Compiled code would follow it to memory that is not its own."""
    model.fit(READ[["age", "income"]], LABELS)
    path = tmp_path / "model.skops"
    if where == "tree_":
        first = np.ravel(getattr(model, "estimators_", [model]))[0]
        state = first.tree_.__getstate__()
        left, feature, root = "left_child", "feature", 0
        nodes = state["nodes"] = state["nodes"].copy()
    else:
        nodes, left, feature, root = model._predictors[0][0].nodes, "left", "feature_idx", 0
    nodes[left if wrong != "column" else feature][root] = {"child": 9999, "loop": 0, "column": 77}[wrong]
    if where == "tree_":
        first.tree_.__setstate__(state)
    io.dump(model, path)
    with pytest.raises(HarnessError, match="is damaged"):
        from_file(path, SPACE, FRAME, ("bad", "good"))


class Deadly:
    def __reduce__(self) -> Any:
        return exec, ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",)


def test_a_pickle_that_ends_its_process_is_refused(tmp_path: Path) -> None:
    """As a damaged array of joblib's may; the process that asks goes on."""
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Deadly()))  # code that is trusted
    with pytest.raises(HarnessError, match=r"is damaged: a process that unpickles it ends by SIGSEGV"):
        from_file(path, SPACE, FRAME, ("bad", "good"), trust=True)


def test_a_tree_that_counts_more_nodes_than_it_has_is_refused() -> None:
    """As its memory would be read beyond its end."""
    model = trained(DecisionTreeClassifier())
    model[-1].tree_.node_count += 1_000_000
    with pytest.raises(ValueError, match="fewer nodes than its count"):
        files._check_trees(model)


@pytest.mark.parametrize("lost", ["mean_", "scale_"])
def test_a_step_that_lost_what_it_learnt_is_refused(saved: Callable[..., Path], lost: str) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(READ[["age", "income"]], LABELS)
    delattr(model[0], lost)
    space = Space(SPACE.features[:2])
    with pytest.raises(HarnessError, match=rf"prediction of the data's rows fails: .*{lost}"):
        from_file(saved(model, "m.skops"), space, FRAME[["age", "income"]], ("bad", "good"))
