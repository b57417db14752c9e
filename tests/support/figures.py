"""What a picture shows, and what it covers."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.text import Text


def covered(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    outside = set()  # labels of ticks beyond the view are kept, and not drawn
    for axis in (side for axes in figure.axes for side in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        outside |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    boxes = [
        (text.get_text(), text.get_window_extent(canvas.get_renderer()))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in outside
    ]
    return [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]


def curves(axis: Axes) -> dict[str, tuple[Any, ...]]:
    """The lines of a panel by label: both coordinates, colour, style and marker."""
    return {
        str(line.get_label()): (
            np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist(), line.get_color(),
            line.get_linestyle(), line.get_marker(),
        )
        for line in axis.get_lines()
    }  # fmt: skip


class Outline(NamedTuple):
    """Contours: their colour, and left, bottom, right and top."""

    colour: str
    extent: tuple[float, ...]


def outlines(axis: Axes) -> list[Outline]:
    """The contours of a panel, in the order in which they were drawn."""
    found = []
    for contours in (part for part in axis.collections if isinstance(part, ContourSet)):
        colour = contours.get_facecolor() if contours.filled else contours.get_edgecolor()
        corners = np.concatenate([path.vertices for path in contours.get_paths()])
        found.append(Outline(to_hex(np.asarray(colour)[0]), (*corners.min(axis=0), *corners.max(axis=0))))
    return found
