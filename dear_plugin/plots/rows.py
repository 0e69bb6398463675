"""Panels of the changes of one row, and of the actions of all rows."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from dear_plugin.plots.ink import DIRECT, INDIRECT, PLAIN, WHISKER, sheet, spare, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The number of characters of a line of names, of values, and of a text.
NAME, VALUE, LINE = 26, 44, 78
# The largest number of features and of groups in one panel.
MOST_BARS = 10
# The number of bars that a panel has room for even if it has fewer.
LEAST_BARS = 3
# The height of a bar, and of all above and below the bars, in inches.
BAR, REST = 0.34, 2.1
FOLLOWS = "Expected to follow"
SCALE = "size of the change, as a share of the feature's range (a changed category: 1)"
RANGE = "thin lines and ranges: of the mean over similar rows"


class Result(Protocol):
    """The attributes of `Recourses` that `largest_indirect` uses."""

    @property
    def actions(self) -> pd.DataFrame:
        """The actions of n rows, with `success` and `credible`."""

    @property
    def changed(self) -> Any:
        """(n, p) bool tensor: which features differ from the factual."""


def largest_indirect(recourses: Result) -> int:
    """The position of the solved row with the largest indirect change, if possible credible."""
    moved, actions = recourses.changed.any(1).numpy(), recourses.actions
    follows = actions["indirect_cost"].fillna(0.0)
    return int(np.lexsort((moved, follows, actions["credible"] & moved, actions["success"]))[-1])


def row(
    changes: pd.DataFrame,
    ax: Axes | None = None,
    title: str = "",
    text: str = "",
    follows: str = FOLLOWS,
    *,
    note: str = "",
) -> Axes:
    """Draw the changes of one row, feature by feature: direct solid, indirect hatched.

    A bar is as long as the change is large; its values show the direction. The dot and the thin
    line at the end of an indirect bar are the change and its range over resamples of the decoder.

    Args:
        changes: lines of `Recourses.changes`, the features acted on first, with `title`, `values`
            (the old and the new value as text), and `low` and `high` in units of cost.
        ax: the axes to draw on; None for a new figure.
        title: the title of the panel.
        text: the text under the title; in the middle of the panel if nothing changes.
        follows: the heading of the indirect changes.
        note: the line under a new figure.

    Example:
        >>> line = {"kind": "direct", "title": "loan", "values": "30 → 28", "size": -0.2}
        >>> row(pd.DataFrame([line | {"low": -0.2, "high": -0.2}])).get_legend() is None
        True
    """
    bars = min(max(len(changes), LEAST_BARS), MOST_BARS)
    axes = _own(8.4, REST + BAR * (2 + bars), note) if ax is None else ax
    axes.set_title(f"{title}\n{fill(text, LINE)}".strip(), fontsize=10, loc="left", **PLAIN)
    if not len(changes):
        axes.set_title(title, fontsize=10, loc="left", **PLAIN)
        write(axes, text)
        return axes
    shown = changes.iloc[:MOST_BARS].reset_index(drop=True)
    # A heading above the first bar of each kind takes the place of a bar.
    shown = shown.assign(direct=shown["kind"].eq("direct"))
    starts = shown["direct"].ne(shown["direct"].shift())
    at = (shown.index + starts.cumsum()).to_numpy()
    for y, bar in zip(at, shown.itertuples(index=False), strict=True):
        length = abs(bar.size)
        axes.barh(y, length, height=0.62, **(DIRECT if bar.direct else INDIRECT))
        if bar.low < bar.high:
            low, high = sorted(np.sign(bar.size) * np.array([bar.low, bar.high]))
            ends = [[length - low], [high - length]]
            axes.errorbar(length, y, xerr=ends, marker="o", markersize=4, **WHISKER)
    for y, direct in zip(at[starts], shown["direct"][starts], strict=True):
        _head(axes, y - 0.85, "Action" if direct else follows)
    _frame(axes, at, shown)
    has_range, rest = bool((shown["low"] < shown["high"]).any()), len(changes) - len(shown)
    below = [SCALE, *[RANGE] * has_range, *[f"and {rest} more features"] * bool(rest)]
    axes.set_xlabel(";\n".join(below), fontsize=9)
    return axes


def splits(actions: pd.DataFrame, ax: Axes | None = None, *, note: str = "") -> Axes:
    """Draw median direct and indirect cost by the features acted on, with the number of rows.

    Args:
        actions: `success`, `acted_on`, `cost`, `direct_cost` and `indirect_cost` of n rows; with
            `reliance`, the number of rows in which the action alone is enough is written next to
            the bars.
        ax: the axes to draw on; None for a new figure.
        note: the line under a new figure.
    """
    axes = _own(8.4, 5.0, note) if ax is None else ax
    done = actions[actions["success"] & (actions["cost"] > 0)]
    groups = done.groupby("acted_on")[["direct_cost", "indirect_cost"]]
    table = groups.median().assign(rows=groups.size()).sort_values("rows", ascending=False)
    table = table[:MOST_BARS]
    if table.empty:
        write(axes, "no row has a recourse that changes something")
        return axes
    y = np.arange(len(table))
    axes.barh(y, table["direct_cost"], height=0.62, label="direct action", **DIRECT)
    axes.barh(
        y,
        table["indirect_cost"],
        left=table["direct_cost"],
        height=0.62,
        label="expected indirect change",
        **INDIRECT,
    )
    names = [
        f"{_label(n, NAME, 3)}  ({c})" for n, c in zip(table.index, table["rows"], strict=True)
    ]
    axes.set_yticks(y, names, **PLAIN)
    axes.set_ylim(max(len(table), LEAST_BARS + 1) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.08 * table[["direct_cost", "indirect_cost"]].sum(axis=1).max())
    if "reliance" in done:
        alone = done["reliance"].eq(0.0).groupby(done["acted_on"]).sum()
        right = axes.secondary_yaxis("right")
        right.set_yticks(
            y, [f"alone enough\nin {alone[n]} of {c}" for n, c in table["rows"].items()]
        )
        _bare(right)
    axes.set_xlabel("median cost (l1, scaled features)", fontsize=9)
    axes.set_title(f"Features acted on in {len(done)} rows (number of rows)", fontsize=10, pad=24)
    axes.legend(fontsize=9, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    spare(axes)
    return axes


def _own(width: float, height: float, note: str) -> Axes:
    """The axes of a new figure with a line under it."""
    figure, (axes,) = sheet(1, width=width, height=height)
    figure.supxlabel(note, fontsize=9)
    return axes


def _frame(axes: Axes, at: np.ndarray[Any, Any], shown: pd.DataFrame) -> None:
    """Write names to the left of the bars at heights `at`, and values to their right."""
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(at, [_label(name, NAME) for name in shown["title"]], **PLAIN)
    right = axes.secondary_yaxis("right")
    right.set_yticks(at, [_label(values, VALUE) for values in shown["values"]], **PLAIN)
    _bare(right)
    axes.set_ylim(max(LEAST_BARS, at[-1]) + 0.6, -0.3)
    axes.margins(x=0.06)
    spare(axes)


def _label(text: str, width: int, lines: int = 2) -> str:
    """A text in lines; a text that is too long ends with an ellipsis."""
    return fill(text, width, max_lines=lines, placeholder="…", break_on_hyphens=False)


def _bare(axis: Any) -> None:
    """Remove the line and the ticks of a second axis, and keep its labels."""
    axis.tick_params(axis="y", length=0, labelsize=9)
    axis.spines["right"].set_visible(False)


def _head(axes: Axes, y: float, text: str) -> None:
    """Write a heading at a height, from the left edge of the panel."""
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "zorder": 3}
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(0.0, y, text, fontsize=9, fontweight="bold", bbox=paper, **place)
