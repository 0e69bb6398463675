"""Figures of `contest`: cost or effort of each method against a measure of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

LABELS = {
    "plausibility": "mean plausibility",
    "support": "mean share of accepted neighbours",
    "still_accepted": "share accepted by retrained models",
}
COLUMNS = 3
OTHER: dict[str, Any] = {"color": "#888888", "markersize": 4, "linewidth": 0.8}


def front(measure: str, size: str, points: pd.DataFrame) -> Figure:
    """Cost or effort against one measure: a panel for each cell, a line for each method.

    Args:
        measure: a name of `LABELS`.
        size: "cost" or "effort".
        points: `cell, method, size, measure`, ordered by requirement.
    """
    from dear_plugin import plots

    cells = list(points.groupby("cell", sort=False))
    columns = min(len(cells), COLUMNS)
    height = 2.6 * -(-len(cells) // columns) + 0.8
    figure, panels = plots.sheet(len(cells), width=3.4, height=height, columns=columns)
    for axes, (cell, own) in zip(panels, cells, strict=True):
        _lines(axes, own)
        axes.set_title(str(cell), fontsize=10)
    figure.supxlabel(LABELS[measure], fontsize=10)
    figure.supylabel(f"median {size}", fontsize=10)
    # A method may be missing in some panels.
    found = {
        name: handle
        for axes in panels
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(found.values(), found, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _lines(axes: Axes, points: pd.DataFrame) -> None:
    """A line for each method, DEAR's in front."""
    from dear_plugin.plots.ink import LINES, MARKERS, spare

    lines = {str(name): line for name, line in points.groupby("method", sort=False)}
    own = [name for name in lines if name.startswith("DEAR")]
    looks = dict(zip(own, LINES, strict=False))
    marks = zip([name for name in lines if name not in own], MARKERS, strict=False)
    looks |= {name: {**OTHER, "marker": marker} for name, marker in marks}
    for name, look in looks.items():
        line = lines[name]
        axes.plot(line["measure"], line["size"], label=name, zorder=2 + (name in own), **look)
    axes.set_ylim(bottom=0.0)
    spare(axes)
