"""How ONNX files code texts: ``OneHotEncoder`` and ``LabelEncoder``, as columns that are functions of a category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Indicator, Lookup
from harness.models.runtime.onnx_graph import EXACT, Graph, Stage, Texts, operator


@operator("OneHotEncoder")
def _one_hot(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    """A column for each text that the file lists; one that the data have not is 0 throughout."""
    texts = _texts(graph, node)
    known = [each.decode() for each in given.get("cats_strings", ())]
    sources = [
        Indicator(feature.name, tuple(value for value in feature.categories if str(value) == text))
        for feature in texts.features
        for text in known
    ]
    return graph.columns(sources, None)


@operator("LabelEncoder")
def _label(graph: Graph, node: Any, given: Mapping[str, Any]) -> Stage:
    """The number that the file lists for a text; its default for one that it does not list."""
    texts = _texts(graph, node)
    kind = next((kind for kind in ("int64", "float") if f"values_{kind}s" in given), None)
    if kind is None:
        raise UnsupportedError("its LabelEncoder gives texts")
    values = np.asarray(given[f"values_{kind}s"]).tolist()
    code = dict(zip((each.decode() for each in given.get("keys_strings", ())), values, strict=True))
    other = given.get(f"default_{kind}", -1 if kind == "int64" else 0.0)
    sources = []
    for feature in texts.features:
        own = tuple(float(code.get(str(value), other)) for value in feature.categories)
        if kind == "int64" and max(map(abs, own)) > EXACT:
            raise UnsupportedError("its LabelEncoder gives numbers that float32 has not")
        sources.append(Lookup(feature.name, feature.categories, own))
    return graph.columns(sources, None)


def _texts(graph: Graph, node: Any) -> Texts:
    found = graph.value(node.input[0])
    if not isinstance(found, Texts):
        raise UnsupportedError(f"its operator {node.op_type} of numbers is not read")
    return found
