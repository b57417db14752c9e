"""What a picture covers."""

from __future__ import annotations

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
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
