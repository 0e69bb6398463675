"""Tables of `contest`: each method at each requirement, and DEAR compared with all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.evaluation.intervals import Estimate, estimate

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

NONE, PLAUSIBLE, DEFAULT = "none", "plausibility .05", "default"
# Requirements that the tables have; figures have `NONE` too.
SHOWN = (PLAUSIBLE, DEFAULT)
OWN = ("DEAR", "DEAR, pairs", "DEAR, cheapest")
# What is compared: the whole cost, and what has to be done.
SIZES: Mapping[str, str] = {"cost": "cost", "effort": "direct_cost"}
ROW = ["split", "row"]
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
# Figures: what is required, at increasing values, and the size drawn against what was measured.
FRONTS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "plausibility": ((NONE, PLAUSIBLE), "cost", "plausibility"),
    "effort": ((NONE, PLAUSIBLE), "effort", "plausibility"),
    "retrained": (SHOWN, "cost", "still_accepted"),
}
LABELS = {
    "plausibility": "mean plausibility: share of training rows that are odder",
    "still_accepted": "share accepted by retrained models",
}
WORDS = {"cost": "cost: what changes in all", "effort": "effort: what has to be done"}
COLUMNS = 3
OTHER: dict[str, Any] = {"color": "#888888", "markersize": 4, "linewidth": 0.8}


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """All tables and figures of what was measured."""
    shown = found[found["dial"] != NONE]
    yield "summary", summary(shown)
    yield "differences", differences(shown)
    yield "contest", table(shown)
    for name, (dials, size, measure) in FRONTS.items():
        drawn = points(found, dials, SIZES[size], measure)
        if drawn["dial"].nunique() > 1:
            yield f"front-{name}", front(measure, size, drawn)


def table(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell, requirement and method; means over solved rows, sizes as medians."""
    for (cell, dial, method), own in answers.groupby(["cell", "dial", "method"], sort=False):
        solved = own[own["success"]].groupby(ROW)[list(SIZES.values())].mean()
        groups = solved.index.get_level_values("split").to_numpy()
        yield {
            "cell": cell,
            "requirement": dial,
            "method": method,
            "rows": len(own),
            "solved": own["success"].mean(),
            "meets it": own["meets"].mean(),
            **{h: str(estimate(solved[c], groups, median=True)) for h, c in SIZES.items()},
            **{heading: _mean(own, column) for heading, column in SHARES.items()},
            "CPU ms a row": 1000.0 * own["seconds"].mean(),
        }


def differences(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell, requirement and other method: DEAR's cost and effort minus its.

    The median over rows for which both answers meet the requirement, with intervals; of several
    seeds of a split the mean of each row. `meets it` is the share of rows whose answer meets it.
    """
    for (cell, dial), part in answers.groupby(["cell", "dial"], sort=False):
        methods = {str(name): own for name, own in part.groupby("method", sort=False)}
        mine = {name: methods.pop(name) for name in OWN if name in methods}
        for name, other in methods.items():
            line: dict[str, object] = {"cell": cell, "requirement": dial, "method": name}
            line["meets it"] = other["meets"].mean()
            for label in OWN[:2]:
                line |= _compared(label, mine[label], other) if label in mine else {}
            yield line


def summary(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per other method: in how many cells DEAR is cheaper / level / dearer."""
    lines = pd.DataFrame(list(differences(answers)))
    dials = dict.fromkeys(answers["dial"])
    for method, own in lines.groupby("method", sort=False) if len(lines) else ():
        line: dict[str, object] = {"method": method, "cells": own["cell"].nunique()}
        for dial, label, size in product(dials, OWN[:2], SIZES):
            part, column = own[own["requirement"] == dial], f"{label}: {size} verdict"
            line[f"{label}, {size}, {dial}"] = _counts(part.get(column, pd.Series(dtype=object)))
        yield line


def points(answers: pd.DataFrame, dials: tuple[str, ...], size: str, measure: str) -> pd.DataFrame:
    """The points of a figure: `cell, method, dial, measure, size`, ordered by requirement.

    Sizes are medians and measures means over rows whose answer meets the requirement.
    """
    met = answers[answers["meets"] & answers["dial"].isin(dials)]
    groups = met.groupby(["cell", "method", "dial"], sort=False)
    found = groups.agg(size=(size, "median"), measure=(measure, "mean")).reset_index()
    order = found["dial"].map(dials.index)
    return found.assign(order=order).sort_values(["cell", "method", "order"], ignore_index=True)


def difference(
    first: pd.DataFrame, second: pd.DataFrame, size: str = "cost"
) -> tuple[Estimate, int, float]:
    """The median difference of two methods, the number of rows, and the share below zero.

    Args:
        first: the answers of one method in one cell, with one requirement.
        second: those of the other.
        size: the column that is compared.
    """
    both = _met(first).join(_met(second), how="inner", lsuffix="_first", rsuffix="_second")
    steps = (both[f"{size}_first"] - both[f"{size}_second"]).groupby(level=ROW).mean()
    groups = steps.index.get_level_values("split").to_numpy()
    found = estimate(steps, groups, median=True)
    return found, len(steps), float((steps < 0.0).mean()) if len(steps) else np.nan


def verdict(found: Estimate, rows: int) -> str:
    """Whether an interval is below zero, above it, or contains it; "few rows" below `FEWEST`."""
    if rows < FEWEST:
        return "few rows"
    if found.high < 0.0:
        return "cheaper"
    return "dearer" if found.low > 0.0 else "level"


def _compared(label: str, own: pd.DataFrame, other: pd.DataFrame) -> Row:
    """One line of DEAR compared with another method."""
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
    """The numbers of cells that are cheaper / level / dearer."""
    counts = verdicts.value_counts()
    return " / ".join(str(counts.get(kind, 0)) for kind in ("cheaper", "level", "dearer"))


def _met(answers: pd.DataFrame) -> pd.DataFrame:
    """The sizes of answers that meet the requirement, by split, row and seed."""
    met = answers[answers["meets"] & (answers["zero_action"] != 1.0)]
    return met.set_index([*ROW, "order"])[list(SIZES.values())]


def _mean(own: pd.DataFrame, column: str) -> float:
    return float(own[column].mean()) if column in own and own[column].notna().any() else np.nan


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
    figure.supylabel(f"median {WORDS[size]}", fontsize=10)
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
