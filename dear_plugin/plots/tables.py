"""Figures of costs by method, by set, and over rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dear_plugin.plots.ink import DIRECT, INDIRECT, MARKERS, PLAIN, WHISKER, sheet, spare, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The costs that are drawn against plausibility.
SIZES = {"cost": "cost: all changes", "direct_cost": "effort: the action alone"}
# The measures of `dots`, and their titles: an arrow points to better values.
MEASURES = {
    "solved": "solved, share \N{RIGHTWARDS ARROW}",
    "plausible": "plausible, share \N{RIGHTWARDS ARROW}",
    "effort": "\N{LEFTWARDS ARROW} effort",
    "support": "support \N{RIGHTWARDS ARROW}",
    "seconds": "\N{LEFTWARDS ARROW} CPU seconds a row",
}
# An axis is logarithmic if the largest value is more than so many times the smallest.
WIDE = 30.0
LEAST_SHARE = 0.05
HALF = 0.5
# The part of a column of `together` that a bar of all rows fills.
ROOM = 0.8


def boxes(table: pd.DataFrame, axes: Axes, *, by: str = "method", of: str = "cost") -> None:
    """Draw the quartiles of a column, a box for each group, whiskers from 5 to 95 %.

    Args:
        table: one line per solved row, with the two columns.
        axes: the axes to draw on.
        by: the column of groups, drawn from top to bottom in order of appearance.
        of: the column of values.
    """
    groups = {str(name): group[of].dropna() for name, group in table.groupby(by, sort=False)}
    drawn = axes.boxplot(
        list(groups.values()),
        orientation="horizontal",
        whis=(5.0, 95.0),
        showfliers=False,
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.6},
        widths=0.6,
    )
    for name, box in zip(groups, drawn["boxes"], strict=True):
        box.set_facecolor(DIRECT["color"] if name.startswith("DEAR") else "white")
        box.set_alpha(0.55 if name.startswith("DEAR") else 1.0)
    labels = [f"{name}  ({len(group)})" for name, group in groups.items()]
    axes.set_yticks(range(1, len(groups) + 1), labels, **PLAIN)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel(f"{of} (median, quartiles, 5 to 95 %)")
    spare(axes)


def front(table: pd.DataFrame, axes: Axes, *, of: str = "cost") -> None:
    """Draw cost, or effort, against plausibility: medians of every method, with quartiles.

    Only rejected rows with an answer count. A star marks methods that solve less than half of the
    rows. The line joins the methods to which no other is superior in both medians.

    Args:
        table: `Comparison.table`, with `method`, `needed`, `success`, `plausibility` and `of`.
        axes: the axes to draw on.
        of: "cost", of all changes, or "direct_cost", the effort.
    """
    needed = table[table["needed"]]
    share = needed.groupby("method", sort=False)["success"].mean()
    groups = needed[needed["success"]].groupby("method", sort=False)[["plausibility", of]]
    middle, quartiles = groups.median(), groups.quantile([0.25, 0.75])
    best = middle.loc[[name for name in middle.index if _is_on_front(middle, name)]]
    axes.plot(*best.sort_values("plausibility").to_numpy().T, color="0.6", linewidth=1.2, zorder=1)
    for marker, name in zip(cycle(MARKERS), middle.index, strict=False):
        point = middle.loc[name].to_numpy()
        (left, below), (right, above) = np.abs(quartiles.loc[name].to_numpy() - point)
        axes.errorbar(
            point[0],
            point[1],
            xerr=[[left], [right]],
            yerr=[[below], [above]],
            marker=marker,
            markersize=8,
            markerfacecolor=DIRECT["color"] if name.startswith("DEAR") else "white",
            linestyle="none",
            label=f"{name}{'*' if share[name] < HALF else ''}",
            **{**WHISKER, "ecolor": "0.55"},
        )
    axes.set_xlabel("plausibility: share of rows that are less usual (median, quartiles)")
    axes.set_ylabel(f"{SIZES[of]} (median, quartiles; l1, scaled features)")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    spare(axes)


def fronts(table: pd.DataFrame) -> Figure:
    """A figure of cost and of effort against plausibility, in two panels.

    Args:
        table: see `front`, with `direct_cost`.
    """
    figure, panels = sheet(len(SIZES), width=4.6, height=4.4)
    panels[1].sharey(panels[0])
    for axes, (of, words) in zip(panels, SIZES.items(), strict=True):
        front(table, axes, of=of)
        axes.set_title(f"{words[:1].upper()}{words[1:]}", fontsize=11)
        axes.set_xlabel("")
        axes.set_ylabel("")
    figure.supxlabel("plausibility: share of training rows that are less usual", fontsize=10)
    figure.supylabel("units of cost, summed", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=9)
    return figure


def dots(estimates: pd.DataFrame, measures: Sequence[str] = tuple(MEASURES)) -> Figure:
    """A figure with a panel for each measure: a dot for each method, with its interval.

    Args:
        estimates: `method, measure, value, low, high`, as `Comparison.estimates`; methods are
            drawn from top to bottom in order of appearance.
        measures: the measures, from left to right.
    """
    names = list(dict.fromkeys(estimates["method"]))
    height = 0.9 + 0.27 * len(names)
    figure, panels = sheet(len(measures), width=2.2, height=height)
    for axes, measure in zip(panels, measures, strict=True):
        lines = estimates[estimates["measure"] == measure].set_index("method").reindex(names)
        _dots(axes, lines[["value", "low", "high"]])
        axes.set_title(MEASURES.get(measure, measure), fontsize=10)
    panels[0].set_yticks(range(len(names)), names, **PLAIN)
    return figure


def _dots(axes: Axes, lines: pd.DataFrame) -> None:
    """Draw a dot for each method, filled for DEAR, with its interval."""
    for y, (name, (value, low, high)) in enumerate(lines.iterrows()):
        fill = DIRECT["color"] if str(name).startswith("DEAR") else "white"
        look = {**WHISKER, "marker": "o", "markerfacecolor": fill}
        axes.errorbar(value, y, xerr=[[value - low], [high - value]], **look)
    known = lines["value"][lines["value"] > 0.0]
    if known.max() > WIDE * known.min():
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=min(0.0, 1.1 * lines.min().min()))
    named(axes, [""] * len(lines))


def named(axes: Axes, names: Sequence[str]) -> None:
    """Give a panel a line for each name, the first one on top."""
    axes.set_yticks(range(len(names)), names, **PLAIN)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    spare(axes)


def entanglement(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the entanglement of a decoder, a box for each set acted on.

    Args:
        table: `set` and `entanglement`, mean absolute `d2 g / dv dx_S`, one line per row and set.
        axes: the axes to draw on.

    Example:
        >>> table = pd.DataFrame({"set": ["age", "age"], "entanglement": [0.1, 0.2]})
        >>> figure, (axes,) = sheet(1)
        >>> entanglement(table, axes)
    """
    boxes(table, axes, by="set", of="entanglement")
    axes.set_yticks(axes.get_yticks(), list(dict.fromkeys(table["set"])), **PLAIN)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 2))
    axes.set_xlabel("mean |d²g / dv dx_S|, per training row")


def together(table: pd.DataFrame, axes: Axes) -> None:
    """Draw the feature with the largest indirect change by action set, as shares of rows.

    Args:
        table: `acted_on` and `moves_along`, one line per row; "" without an indirect change.
        axes: the axes to draw on.

    Example:
        >>> table = pd.DataFrame({"acted_on": ["loan"], "moves_along": ["term"]})
        >>> figure, (axes,) = sheet(1)
        >>> together(table, axes)
    """
    shares = table.groupby("acted_on")["moves_along"].value_counts(normalize=True).unstack()
    common = table["acted_on"].value_counts(normalize=True)
    shares = shares.fillna(0.0).drop(columns="", errors="ignore")
    shares = shares.loc[_at_least(shares.index, common)]
    shares = shares.loc[:, shares.max() > 0.0]
    if shares.empty:
        write(axes, "no indirect change is expected")
        return
    for (y, x), share in np.ndenumerate(shares.T.to_numpy()):
        if share == 0.0:
            continue
        axes.barh(y, ROOM * share, left=x - ROOM / 2, height=0.62, **INDIRECT)
        if share >= LEAST_SHARE:
            axes.text(x - ROOM / 2, y - 0.4, f"{share:.0%}", va="center", fontsize=9)
    axes.set_xlim(-0.5, len(shares) - 0.5)
    axes.set_ylim(shares.shape[1] - 0.4, -0.6)
    names = [f"{name}\n({common[name]:.0%})" for name in shares.index]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8, **PLAIN)
    axes.set_yticks(range(shares.shape[1]), list(shares.columns), fontsize=8, **PLAIN)
    axes.set_xlabel("acted on (share of rows)")
    axes.set_ylabel("largest expected indirect change")


def _at_least(names: Iterable[str], shares: pd.Series) -> list[str]:
    """The names with a share of at least `LEAST_SHARE`, the most frequent first."""
    return sorted((n for n in names if shares[n] >= LEAST_SHARE), key=lambda n: -shares[n])


def _is_on_front(medians: pd.DataFrame, name: str) -> bool:
    """Whether no other method is as good in cost and plausibility, and better in one of them."""
    others, own = medians.drop(index=name), medians.loc[name]
    more, less = others.iloc[:, 0] - own.iloc[0], others.iloc[:, 1] - own.iloc[1]
    return not bool(((more >= 0.0) & (less <= 0.0) & ((more > 0.0) | (less < 0.0))).any())
