"""The tables of `contest`: each method, and DEAR against all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.rivals.intervals import Estimate, estimate

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

OWN = ("DEAR", "DEAR, pairs", "DEAR, cheapest")
# The sizes that are compared: the whole cost, and the cost of the action alone.
SIZES: Mapping[str, str] = {"cost": "cost", "effort": "direct_cost"}
# A cell with fewer rows that both methods answer has no verdict.
FEWEST = 10
SHARES: Mapping[str, str] = {
    "support": "support",
    "plausibility": "plausibility",
    "retrained": "still_accepted",
    "outliers": "outlier",
    "of their factuals": "outlier_before",
    "unseen pairs": "unseen",
    "alone": "alone",
    "confidence": "confidence",
    "replication": "replicated",
    "features changed": "changed",
    "zero actions": "zero_action",
}
# The titles of the figure's panels, and the style of the dots of a verdict.
PANELS = {
    "DEAR: cost": "single features, cost",
    "DEAR: effort": "single features, effort",
    "DEAR, pairs: cost": "pairs, cost",
    "DEAR, pairs: effort": "pairs, effort",
}
STYLES = {
    "cheaper": ("o", "#1f4e79", "DEAR needs less"),
    "level": ("o", "white", "level"),
    "dearer": ("s", "#e08a3c", "DEAR needs more"),
}


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """All tables, and the figure."""
    lines = list(differences(found))
    yield "summary", summary(found)
    yield "differences", lines
    yield "contest", table(found)
    if lines:
        yield "contest", figure(lines)


def table(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and method: means over solved rows, medians of sizes."""
    for (cell, method), own in answers.groupby(["cell", "method"], sort=False):
        solved = own[own["success"]]
        yield {
            "cell": cell,
            "method": method,
            "rows": len(own),
            "solved": own["success"].mean(),
            "meets it": own["meets"].mean(),
            **{h: str(estimate(solved[c], median=True)) for h, c in SIZES.items()},
            **{heading: _mean(own, column) for heading, column in SHARES.items()},
            "CPU ms a row": 1000.0 * own["seconds"].mean(),
        }


def differences(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and other method: DEAR's cost and effort minus its own.

    Differences are medians, with intervals, over rows for which both answers meet the
    requirements. `meets it` is the share of rows whose answer meets them.
    """
    for cell, part in answers.groupby("cell", sort=False):
        methods = {str(name): own for name, own in part.groupby("method", sort=False)}
        mine = {name: methods.pop(name) for name in OWN if name in methods}
        for name, other in methods.items():
            line: dict[str, object] = {"cell": cell, "method": name}
            line["meets it"] = other["meets"].mean()
            for label in OWN[:2]:
                line |= _compared(label, mine[label], other) if label in mine else {}
            yield line


def summary(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per other method: the number of cells in which DEAR is cheaper / level / dearer."""
    lines = pd.DataFrame(list(differences(answers)))
    for method, own in lines.groupby("method", sort=False) if len(lines) else ():
        line: dict[str, object] = {"method": method, "cells": own["cell"].nunique()}
        for label, size in product(OWN[:2], SIZES):
            verdicts = own.get(f"{label}: {size} verdict", pd.Series(dtype=object))
            line[f"{label}, {size}"] = _counts(verdicts)
        yield line


def difference(
    first: pd.DataFrame, second: pd.DataFrame, size: str = "cost"
) -> tuple[Estimate, int, float]:
    """The median difference of two methods, the number of rows, and the share below zero.

    Args:
        first: the answers of one method in one cell.
        second: the answers of the other method.
        size: the column that is compared.
    """
    both = _met(first).join(_met(second), how="inner", lsuffix="_first", rsuffix="_second")
    steps = both[f"{size}_first"] - both[f"{size}_second"]
    found = estimate(steps, median=True)
    return found, len(steps), float((steps < 0.0).mean()) if len(steps) else np.nan


def verdict(found: Estimate, rows: int) -> str:
    """The verdict of an interval: "cheaper" below 0, "dearer" above, "level", or "few rows"."""
    if rows < FEWEST:
        return "few rows"
    if found.high < 0.0:
        return "cheaper"
    return "dearer" if found.low > 0.0 else "level"


def _compared(label: str, own: pd.DataFrame, other: pd.DataFrame) -> Row:
    """The columns of DEAR compared with another method."""
    line: dict[str, object] = {f"{label}: meets": own["meets"].mean()}
    for size, column in SIZES.items():
        found, rows, cheaper = difference(own, other, column)
        line |= {
            f"{label}: rows": rows,
            f"{label}: {size}": str(found),
            f"{label}: {size} lower": cheaper,
            f"{label}: {size} verdict": verdict(found, rows),
        }
    return line


def _counts(verdicts: pd.Series) -> str:
    """The numbers of cells that are cheaper / level / dearer, as text."""
    counts = verdicts.value_counts()
    return " / ".join(str(counts.get(kind, 0)) for kind in ("cheaper", "level", "dearer"))


def _met(answers: pd.DataFrame) -> pd.DataFrame:
    """The sizes of answers that meet the requirements, by row."""
    met = answers[answers["meets"] & (answers["zero_action"] != 1.0)]
    return met.set_index("row")[list(SIZES.values())]


def _mean(own: pd.DataFrame, column: str) -> float:
    return float(own[column].mean()) if column in own and own[column].notna().any() else np.nan


def figure(lines: Sequence[Row]) -> Figure:
    """The figure of DEAR's cost and effort minus those of every method, a dot for each cell.

    Args:
        lines: the rows of `differences`.
    """
    from dear_plugin import plots

    names = list(dict.fromkeys(line["method"] for line in lines))
    sheet, panels = plots.sheet(len(PANELS), width=2.9, height=1.6 + 0.3 * len(names))
    for axes, (column, title) in zip(panels, PANELS.items(), strict=True):
        for verdict, (marker, colour, label) in STYLES.items():
            own = [line for line in lines if line.get(f"{column} verdict") == verdict]
            steps = [float(str(line[column]).split()[0]) for line in own]
            look: dict[str, Any] = {
                "color": colour,
                "edgecolors": "black",
                "marker": marker,
                "label": label,
            }
            axes.scatter(steps, [names.index(line["method"]) for line in own], s=36, **look)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", color="0.9")
        axes.set_axisbelow(True)
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
    sheet.supxlabel(
        "DEAR's minus the other method's: a dot is the median of one cell", fontsize=10
    )
    handles, words = panels[0].get_legend_handles_labels()
    sheet.legend(handles, words, loc="outside upper center", ncols=len(STYLES), frameon=False)
    return sheet
