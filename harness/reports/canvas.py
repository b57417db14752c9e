"""Blank figures and the parts of Matplotlib that figures are drawn with: the only file that imports it."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


@cache
def _matplotlib() -> SimpleNamespace:
    from matplotlib import colors, figure, patches, ticker  # slow: 0.3 s, of no use without a figure

    return SimpleNamespace(colors=colors, figure=figure, patches=patches, ticker=ticker)


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches, whose panels are laid out so that no text covers another."""
    return _matplotlib().figure.Figure(figsize=(width, height), layout="constrained")


def legend_below(figure: Figure, axes: Any, columns: int | None = None, size: float = 9) -> None:
    """Put one legend below all panels, with every label of any panel once."""
    known = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    look = {"ncols": len(known) if columns is None else columns, "frameon": False, "fontsize": size}
    figure.legend(known.values(), known.keys(), loc="outside lower center", **look)


def add_rectangle(axis: Axes, corner: Any, width: float, height: float, **look: Any) -> None:
    """Draw a rectangle from its lower left corner."""
    axis.add_patch(_matplotlib().patches.Rectangle(corner, width, height, **look))


def whole_ticks(axis: Axes) -> None:
    """Have whole numbers only below the horizontal axis."""
    axis.xaxis.set_major_locator(_matplotlib().ticker.MaxNLocator(integer=True))


def shades(colour: str) -> Colormap:
    """Colours from white, at 0, to ``colour``, at 1."""
    return _matplotlib().colors.LinearSegmentedColormap.from_list("shades", ["#FFFFFF", colour])
