"""Figure of `effects`: expected changes without and with tiers, and the true effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dear_plugin.benchmark.systems import JOINED, WITH, WITHOUT, System

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

# Systems in which numbers alone are acted on.
DRAWN = ("loan", "hidden cause")
COLUMNS = 3
TRUE = "true effect"
# Shapes tell the three apart without colours; the truth is behind, the estimate with tiers on it.
LOOKS: dict[str, dict[str, Any]] = {
    TRUE: {"marker": "D", "markersize": 9, "color": "#c8c8c8", "markeredgecolor": "#808080"},
    WITHOUT: {"marker": "x", "markersize": 7, "color": "#b5651d", "markeredgewidth": 2},
    WITH: {"marker": "o", "markersize": 5, "color": "#1f4e79"},
}
EARLIER: dict[str, Any] = {"color": "#eeeeee", "zorder": 0, "linewidth": 0}


def effects(system: System, found: pd.DataFrame) -> Figure:
    """A panel for each feature acted on: the mean changes of the others, over all draws.

    Args:
        system: its equations.
        found: of `effects.changes`.
    """
    from dear_plugin import plots

    single = found[~found["acted on"].str.contains(JOINED, regex=False)]
    means = single.groupby(["acted on", "tiers", "feature"], sort=False).mean(numeric_only=True)
    names = [name for tier in system.tiers for name in tier if name in means.index.levels[0]]
    height = 0.9 + -(-len(names) // COLUMNS) * (0.7 + 0.2 * len(names))
    figure, panels = plots.sheet(len(names), width=3.0, height=height, columns=COLUMNS)
    for axes, name in zip(panels, names, strict=True):
        _panel(axes, means.loc[name], [other for other in names if other != name])
        _shade(axes, system, name, names)
        axes.set_title(f"{name} is raised", fontsize=10)
        axes.set_xlim(_span(means))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(
        "mean change in standard deviations, of an action of half of one"
        " (grey: features of earlier tiers, which keep their values with tiers)",
        fontsize=9,
    )
    return figure


def _span(means: pd.DataFrame) -> tuple[float, float]:
    """The limits of all panels."""
    values = means.loc[:, ["expected", "true"]]
    low, high = min(0.0, float(values.min(axis=None))), float(values.max(axis=None))
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _panel(axes: Axes, means: pd.DataFrame, names: list[str]) -> None:
    """The changes of the other features, the earliest on top."""
    from dear_plugin.plots.ink import spare

    values = {
        TRUE: means.loc[WITH, "true"],
        WITHOUT: means.loc[WITHOUT, "expected"],
        WITH: means.loc[WITH, "expected"],
    }
    for label, look in LOOKS.items():
        axes.plot(values[label][names], range(len(names)), label=label, linestyle="", **look)
    axes.axvline(0, color="black", linewidth=0.7, zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(labelsize=8)
    spare(axes)


def _shade(axes: Axes, system: System, acted: str, names: list[str]) -> None:
    """A grey ground for the features of earlier tiers."""
    rank = {name: i for i, tier in enumerate(system.tiers) for name in tier}
    early = sum(rank[name] < rank[acted] for name in names)
    if early:
        axes.axhspan(-0.5, early - 0.5, **EARLIER)
