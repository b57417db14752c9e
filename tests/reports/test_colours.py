"""Colours as people see them who lack one kind of cone: what has to be told apart still is.

Of the simulation by Machado, Oliveira and Fernandes (2009), the matrices of a complete lack, on linear RGB; how far
colours lie apart is their distance in CIELAB (1976), where 2 is just seen.
"""

from __future__ import annotations

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from harness.reports.canvas import COLOURS

LACKS = {
    "none": np.eye(3),
    "red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def seen(colour: str, lack: str) -> np.ndarray:
    """A colour in CIELAB, as it looks with a lack."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(LACKS[lack] @ linear, 0.0, 1.0) / XYZ.sum(axis=1)
    x, y, z = (np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one: str, other: str, lack: str) -> float:
    return float(np.linalg.norm(seen(one, lack) - seen(other, lack)))


def test_the_distance_is_that_of_the_standard() -> None:
    """Black and white are 100 apart; red, (53.24, 80.09, 67.20), and green look alike without the cone for green."""
    assert apart("#000000", "#ffffff", "none") == pytest.approx(100.0, abs=0.01)
    assert seen("#ff0000", "none") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert apart("#bb4400", "#778800", "green") < apart("#bb4400", "#778800", "none") / 2


@pytest.mark.parametrize("lack", LACKS)
def test_methods_colours_are_told_apart(lack: str) -> None:
    """And each from the white that it is on; markers and dashes tell methods apart besides."""
    for one, other in itertools.combinations((*COLOURS, "#ffffff"), 2):
        assert apart(one, other, lack) > 15.0, (one, other)


@pytest.mark.parametrize("lack", LACKS)
def test_marks_of_the_site_are_seen(lack: str) -> None:
    """On white: what changes, the focus, the page that is shown, and both colours of a chart."""
    style = (files("harness.reports") / "site" / "site.css").read_text()
    found = [
        re.search(pattern, style)
        for pattern in (
            r"\.changed \{[^}]*background: (#\w+)",
            r"\.changed \{[^}]*border-left: 3px solid (#\w+)",
            r"outline: 3px solid (#\w+)",
            r"border-bottom: 3px solid (#\w+)",
        )
    ]
    script = (files("harness.reports") / "site" / "site.js").read_text()
    charts = re.search(r"const grey = .*value: \"(#\w+)\" \}, value: \"(#\w+)\"", script)
    assert charts
    colours = [match[1] for match in found if match]
    assert len(colours) == len(found)
    for colour in (*colours, *charts.groups()):
        assert apart(colour, "#ffffff", lack) >= 10.0, colour
    assert apart(*charts.groups(), lack) >= 10.0
