"""Blank figures and the parts of Matplotlib that figures are drawn with: the only file that imports it."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which every kind of colour vision tells apart, with a grey that keeps to that.
BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#555555",
)  # fmt: skip
COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, SKY, "#000000", GREY)
COLUMN = 85 / 25.4  # inches: the width of a journal's column
SMALL = 6.5  # points: the least size of a letter in such a figure
DOTS = 300  # an inch of a PNG
FORMATS = ("svg", "pdf", "png")
UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
STYLE = {
    "font.size": SMALL, "axes.titlesize": 7, "axes.labelsize": SMALL, "legend.fontsize": SMALL,
    "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "lines.linewidth": 1.2, "lines.markersize": 4,
    "axes.linewidth": 0.5, "grid.linewidth": 0.4,
    "xtick.major.width": 0.5, "ytick.major.width": 0.5, "xtick.minor.width": 0.3, "ytick.minor.width": 0.3,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "xtick.minor.size": 1.5, "ytick.minor.size": 1.5,
    "pdf.fonttype": 42, "svg.hashsalt": "figure", "text.parse_math": False,  # a $ of the data is one
}  # fmt: skip


@cache
def _matplotlib() -> SimpleNamespace:
    from matplotlib import colors, figure, markers, patches, rc_context, ticker  # slow: 0.3 s, needed for figures alone

    return SimpleNamespace(
        colors=colors, figure=figure, markers=markers, patches=patches, rc_context=rc_context, ticker=ticker
    )


def column_style() -> AbstractContextManager[Any]:
    """Sizes for a figure of a journal's column, and files that are the same each time: to draw and to save within."""
    return _matplotlib().rc_context(STYLE)


def save(figure: Figure, path: Path, title: str) -> Path:
    """Write a figure as SVG, PDF and PNG beside each other; returns the path of the SVG.

    No file has a date. Ids within the SVG begin with its name, so that several fit on one page.

    Parameters
    ----------
    path
        Without a suffix.
    """
    for suffix in FORMATS:
        save_one(figure, path.with_name(f"{path.name}.{suffix}"), title)
    drawn = path.with_name(f"{path.name}.svg")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{path.name}-", drawn.read_text())
    drawn.write_text(text.replace("<svg", '<svg role="img"', 1))
    return drawn


def save_one(figure: Figure, path: Path, title: str) -> None:
    """Write a figure in the format that the file's name ends in, one of ``FORMATS``."""
    figure.savefig(path, dpi=DOTS, metadata={"Title": title, **UNDATED[path.suffix[1:].lower()]})


def outline(marker: str) -> list[np.ndarray]:
    """Polygons of one of Matplotlib's markers, each of shape (corners, 2), y downwards, about 1 wide."""
    style = _matplotlib().markers.MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    return [np.asarray(corners) * (1, -1) for corners in path.to_polygons(closed_only=False)]


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches, whose panels are laid out so that no text covers another."""
    return _matplotlib().figure.Figure(figsize=(width, height), layout="constrained")


def bare(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches with one axis that has nothing on it, in inches from the upper left corner.

    A notebook shows it as SVG, whether or not it imports pyplot.
    """
    figure = _matplotlib().figure.Figure(figsize=(width, height))
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, width), ylim=(height, 0.0))
    axis.set_axis_off()

    def shown() -> str:
        buffer = io.StringIO()
        with column_style():
            figure.savefig(buffer, format="svg", metadata=UNDATED["svg"])
        return buffer.getvalue()

    figure._repr_svg_ = shown
    return figure, axis


def legend_below(figure: Figure, axes: Any, columns: int | None = None, size: float = 9) -> None:
    """Put one legend below all panels, with every label of any panel once."""
    known: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    look = {"ncols": len(known) if columns is None else columns, "frameon": False, "fontsize": size}
    figure.legend(known.values(), known.keys(), loc="outside lower center", **look)


def add_rectangle(axis: Axes, corner: Any, width: float, height: float, **look: Any) -> None:
    """Draw a rectangle from its lower left corner."""
    axis.add_patch(_matplotlib().patches.Rectangle(corner, width, height, **look))


def whole_ticks(axis: Axes) -> None:
    """Have whole numbers only below the horizontal axis."""
    axis.xaxis.set_major_locator(_matplotlib().ticker.MaxNLocator(integer=True))


def plain_logarithmic(axis: Axes, along: str = "y") -> None:
    """Have a logarithmic axis, x or y, with plain numbers: at powers of ten, of few of these at 2 and 5 times, too."""
    ticker = _matplotlib().ticker
    axis.set(**{f"{along}scale": "log"})
    low, high = getattr(axis, f"get_{along}lim")()
    numbers = getattr(axis, f"{along}axis")
    numbers.set_major_locator(ticker.LogLocator(subs=(1.0,) if high > 1e3 * low else (1.0, 2.0, 5.0)))
    numbers.set_major_formatter(ticker.FormatStrFormatter("%g"))
    numbers.set_minor_formatter(ticker.NullFormatter())


def shades(colour: str) -> Colormap:
    """Colours from white, at 0, to ``colour``, at 1."""
    return _matplotlib().colors.LinearSegmentedColormap.from_list("shades", ["#FFFFFF", colour])
