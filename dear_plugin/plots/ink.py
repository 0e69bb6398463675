"""The styles and panels that all figures share."""

from __future__ import annotations

from io import BytesIO
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

DIRECT: dict[str, Any] = {"color": "#1f4e79", "edgecolor": "black"}
INDIRECT: dict[str, Any] = {"color": "#f2c9a0", "edgecolor": "black", "hatch": "///"}
WHISKER: dict[str, Any] = {"color": "black", "linewidth": 0.9, "capsize": 2.5}
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#1f4e79", "marker": "o", "markeredgecolor": "black", "linestyle": "-"},
    {"color": "#b5651d", "marker": "o", "markerfacecolor": "white", "linestyle": "--"},
    {"color": "black", "marker": ".", "linestyle": ":"},
)
MARKERS = "sDv^<>PXh8pd*"
# Names and values are not formulas: two dollar signs do not start one.
PLAIN: dict[str, Any] = {"parse_math": False}


__all__ = ["DIRECT", "INDIRECT", "LINES", "MARKERS", "PLAIN", "WHISKER"]
__all__ += ["Axes", "Figure", "sheet", "spare", "write"]


class Sheet(Figure):
    """A figure that notebooks display, without a window; pyplot does not list it."""

    def _repr_png_(self) -> bytes:
        """The figure as a PNG image, for notebooks."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def sheet(
    panels: int,
    *,
    width: float = 5.6,
    height: float = 4.2,
    columns: int | None = None,
    shares: tuple[float, ...] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with panels.

    Args:
        panels: the number of panels.
        width: the width of one panel, in inches.
        height: the height of the figure, in inches.
        columns: the number of panels side by side; None for all.
        shares: the relative widths of the columns; None for equal ones.
    """
    wide = columns or panels
    figure = Sheet(figsize=(width * wide, height), layout="constrained")
    grid = figure.subplots(-(-panels // wide), wide, squeeze=False, width_ratios=shares)
    cells = grid.flatten()
    for unused in cells[panels:]:
        unused.remove()
    return figure, list(cells[:panels])


def spare(axes: Axes) -> None:
    """Remove the spines and ticks that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def write(axes: Axes, text: str) -> None:
    """Write a text in the middle of a panel without axes."""
    axes.set_axis_off()
    middle: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, fill(text, 40), fontsize=9, **middle, **PLAIN)
