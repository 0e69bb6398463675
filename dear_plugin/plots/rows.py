"""Rows: the recourse of one row, and the direct and indirect costs of all rows."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from dear_plugin.plots.ink import DIRECT, INDIRECT, NOTE, PLAIN, WHISKER, sheet, spare
from dear_plugin.results.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dear_plugin.results.recourses import Recourses


def overview(recourses: Recourses, title: str = "") -> Figure:
    """The recourse of one row, next to the direct and indirect costs of all rows.

    Args:
        recourses: a result with at least one solved row that changes something.
        title: of the figure.
    """
    figure, (left, right) = sheet(2, width=5.75, height=4.8)
    person(recourses, telling(recourses), left)
    splits(recourses.outcome, right)
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(NOTE, fontsize=9)
    return figure


def telling(recourses: Recourses) -> int:
    """The position of the solved row with the most changed features."""
    moving = recourses.changed.sum(1).numpy() * recourses.outcome["success"].to_numpy()
    return int(np.argmax(moving))


def person(recourses: Recourses, position: int, axes: Axes) -> None:
    """Draw the changes of one row, feature by feature: direct solid, indirect hatched.

    A thin line across the end of an indirect bar is the range over the redraws of the decoder.

    Args:
        recourses: the result.
        position: of the row, counted from 0.
        axes: where to draw.
    """
    step = (recourses.proposal.rows - recourses.x)[position].numpy()
    direct = recourses.proposal.direct[position].numpy()
    shown = np.flatnonzero(recourses.changed[position].numpy())
    shown = shown[np.lexsort((-np.abs(step[shown]), ~direct[shown]))]
    if not bool(recourses.acts[position]):
        shown = shown[:0]
        _write(axes, recourses.describe_row(position))
    names = np.array(recourses.encoder.schema.names)
    before, after = recourses.factuals.iloc[position], recourses.counterfactuals.iloc[position]
    size = np.where(recourses.encoder.blocks.numpy()[shown], 1.0, step[shown])
    spread = recourses.lazy_answers.spread(torch.tensor([position]))
    ends = np.stack([spread.low[0].numpy(), spread.high[0].numpy()])
    for y, (j, width) in enumerate(zip(shown, size, strict=True)):
        low, high = (width, width) if direct[j] else ends[:, j]
        text = f"{_text(before[names[j]])} → {_text(after[names[j]])}"
        axes.barh(y, width, height=0.62, **(DIRECT if direct[j] else INDIRECT))
        if low < high:
            axes.errorbar(width, y, xerr=[[width - low], [high - width]], **WHISKER)
        _annotate(axes, y, max(width, high) if width >= 0 else min(width, low), width, text)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), names[shown], **PLAIN)
    axes.invert_yaxis()
    axes.margins(x=0.45)
    axes.set_xlabel(
        "change, as a share of the feature's range (a changed category: 1);\n"
        "thin lines: from the 10th to the 90th percentile over redraws of the data"
    )
    score = recourses.outcome.iloc[position]
    outcome = "probability" if score["success"] else "nearest attempt, probability"
    axes.set_title(
        f"Row {recourses.factuals.index[position]}: {outcome}"
        f" {score['score_before']:.0%} → {score['score_after']:.0%}",
        fontsize=10,
        **PLAIN,
    )
    spare(axes)


def splits(actions: pd.DataFrame, axes: Axes) -> None:
    """Draw median direct and indirect cost by the features acted on, with the number of rows.

    Args:
        actions: `success`, `acted_on`, `cost`, `direct_cost` and `indirect_cost` of n rows.
        axes: where to draw.
    """
    done = actions[actions["success"] & (actions["cost"] > 0)]
    groups = done.groupby("acted_on")[["direct_cost", "indirect_cost"]]
    table = groups.median().assign(rows=groups.size()).sort_values("rows", ascending=False)[:10]
    if table.empty:
        _write(axes, "no row has a recourse that changes something")
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
    names = [f"{n}  ({c})" for n, c in zip(table.index, table["rows"], strict=True)]
    axes.set_yticks(y, names, **PLAIN)
    axes.invert_yaxis()
    axes.set_xlabel("median cost (l1, scaled features)")
    axes.set_title(f"Features acted on in {len(done)} rows (number of rows)", fontsize=10)
    axes.legend(
        fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(-0.02, -0.13), ncols=2
    )
    spare(axes)


def _annotate(axes: Axes, y: int, end: float, width: float, text: str) -> None:
    """Write a text next to the end of a bar of some width."""
    side, offset = ("left", 5) if width >= 0 else ("right", -5)
    place: dict[str, Any] = {"textcoords": "offset points", "va": "center", "ha": side}
    axes.annotate(text, (end, y), xytext=(offset, 0), fontsize=9, **place, **PLAIN)


def _write(axes: Axes, text: str) -> None:
    """Write a text in the middle of empty axes."""
    middle: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, fill(text, 40), fontsize=9, **middle, **PLAIN)


def _text(value: object) -> str:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number(value) if is_number else str(value)
