"""Ink: what all pictures share, readable in black and white."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIRECT: dict[str, Any] = {"color": "#1f4e79", "edgecolor": "black"}
INDIRECT: dict[str, Any] = {"color": "#f2c9a0", "edgecolor": "black", "hatch": "///"}
OURS: dict[str, Any] = {"color": "#1f4e79", "marker": "o", "markeredgecolor": "black"}
MARKERS = "sDv^<>PXh8pd*"
# What people write is no formula: two dollar signs are money.
PLAIN: dict[str, Any] = {"parse_math": False}
NOTE = "Expected indirect changes are associations in the data, not causal effects."


def sheet(panels: int, *, width: float = 5.6, height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side.

    Args:
        panels: how many.
        width: of one, in inches.
        height: of all, in inches.
    """
    figure = Figure(figsize=(width * panels, height), layout="constrained")
    grid = figure.subplots(1, panels, squeeze=False)
    return figure, list(grid[0])


def spare(axes: Axes) -> None:
    """Leave out what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
