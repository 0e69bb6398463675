"""Figures of `contest`: the cost of each method against what is required of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dear_plugin.benchmark.contest_tables import OWN

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

LABELS = {
    "plausibility": "mean plausibility",
    "support": "mean share of accepted neighbours",
    "still_accepted": "share accepted by retrained models",
}
COLUMNS = 3
OTHER: dict[str, Any] = {"color": "#888888", "markersize": 4, "linewidth": 0.8}


def fronts(measure: str, points: pd.DataFrame) -> Figure:
    """Cost against one measure: a panel for each cell, a line for each method.

    Args:
        measure: a name of `LABELS`.
        points: `cell, method, cost, measure`, ordered by requirement.
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
    figure.supylabel("median cost", fontsize=10)
    found = dict(zip(*reversed(_legend(panels)), strict=True))
    handles = list(found.values())
    figure.legend(handles, list(found), loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _lines(axes: Axes, points: pd.DataFrame) -> None:
    from dear_plugin.plots.ink import LINES, MARKERS, spare

    lines = {str(name): line for name, line in points.groupby("method", sort=False)}
    others = [name for name in lines if name not in OWN]
    for marker, name in zip(MARKERS, others, strict=False):
        line = lines[name]
        axes.plot(line["measure"], line["cost"], marker=marker, label=name, **OTHER)
    for look, name in zip(LINES, OWN, strict=True):
        if name in lines:
            line = lines[name]
            axes.plot(line["measure"], line["cost"], label=name, zorder=3, **look)
    axes.set_ylim(bottom=0.0)
    spare(axes)


def _legend(panels: list[Axes]) -> tuple[list[object], list[str]]:
    """Handles and labels of all panels; a method may be missing in some."""
    parts = [axes.get_legend_handles_labels() for axes in panels]
    return [h for hs, _ in parts for h in hs], [name for _, names in parts for name in names]
