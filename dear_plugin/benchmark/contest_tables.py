"""The tables and the figure of `contest`: each method, and DEAR against all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.rivals.intervals import Difference, difference, estimate

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

# The lines of DEAR that are compared with other methods, and one that is not.
COMPARED, CHEAPEST = ("DEAR", "DEAR, pairs"), "DEAR, cheapest"
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
# The verdicts of a cell, and how the figure shows them.
VERDICTS: Mapping[str, Mapping[str, Any]] = {
    "cheaper": {"marker": "o", "color": "#1f4e79", "label": "DEAR needs less"},
    "level": {"marker": "o", "color": "white", "label": "level"},
    "dearer": {"marker": "s", "color": "#e08a3c", "label": "DEAR needs more"},
}
KEYS = ["cell", "method", "of DEAR", "size"]
FOUND = ["rows", "difference", "lower", "verdict"]


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """All tables, and the figure."""
    lines = differences(found)
    yield "summary", summary(lines)
    yield "differences", lines.to_dict("records")
    yield "contest", table(found)
    if len(lines):
        yield "contest", figure(lines)


def table(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and method: means over solved rows, medians of sizes."""
    for (cell, method), own in answers.groupby(KEYS[:2], sort=False):
        solved = own[own["success"]]
        yield {
            "cell": cell,
            "method": method,
            "rows": len(own),
            "solved": own["success"].mean(),
            "meets it": own["meets"].mean(),
            **{h: str(estimate(solved[c], median=True)) for h, c in SIZES.items()},
            **{heading: own[column].mean() for heading, column in SHARES.items() if column in own},
            "CPU ms a row": 1000.0 * own["seconds"].mean(),
        }


def differences(answers: pd.DataFrame) -> pd.DataFrame:
    """DEAR's cost and effort minus those of each other method of a cell, see `compared`."""
    lines: list[tuple[Any, ...]] = []
    for cell, part in answers.groupby("cell", sort=False):
        methods = {str(name): own for name, own in part.groupby("method", sort=False)}
        others = [name for name in methods if name not in (*COMPARED, CHEAPEST)]
        for name, own, size in product(others, filter(methods.__contains__, COMPARED), SIZES):
            found = compared(methods[own], methods[name], SIZES[size])
            values = found.rows, found.difference, found.cheaper, verdict(found)
            lines.append((cell, name, own, size, *values))
    return pd.DataFrame(lines, columns=[*KEYS, *FOUND])


def compared(own: pd.DataFrame, other: pd.DataFrame, size: str = "cost") -> Difference:
    """The difference of two methods over rows for which both answers meet the requirements.

    Args:
        own: the answers of one method in one cell.
        other: the answers of the other method.
        size: the column that is compared.
    """
    both = own.merge(other, on="row", suffixes=("", "_other"))
    first, second = (both[f"{size}{of}"].to_numpy(float) for of in ("", "_other"))
    met = [both[f"meets{of}"] & (both[f"zero_action{of}"] != 1.0) for of in ("", "_other")]
    return difference(first, second, (met[0] & met[1]).to_numpy(bool))


def summary(lines: pd.DataFrame) -> Iterator[Row]:
    """One row per other method: the number of cells in which DEAR is cheaper / level / dearer."""
    for method, own in lines.groupby("method", sort=False):
        line: dict[str, Any] = {"method": method, "cells": own["cell"].nunique()}
        for key, part in own.groupby(KEYS[2:], sort=False)["verdict"]:
            line[", ".join(key)] = " / ".join(str((part == kind).sum()) for kind in VERDICTS)
        yield line


def verdict(found: Difference) -> str:
    """The verdict of an interval: "cheaper" below 0, "dearer" above, "level", or "few rows"."""
    if found.rows < FEWEST:
        return "few rows"
    _, low, high = found.difference
    return "cheaper" if high < 0.0 else "dearer" if low > 0.0 else "level"


def figure(lines: pd.DataFrame) -> Figure:
    """The figure of DEAR's cost and effort minus those of every method, a dot for each cell.

    Args:
        lines: see `differences`.
    """
    from dear_plugin import plots
    from dear_plugin.plots.tables import named

    names, groups = [*dict.fromkeys(lines["method"])], lines.groupby(KEYS[2:], sort=False)
    sheet, panels = plots.sheet(len(groups), width=2.9, height=1.6 + 0.3 * len(names))
    for axes, (key, part) in zip(panels, groups, strict=True):
        for kind, look in VERDICTS.items():
            own = part[part["verdict"] == kind]
            steps = [found.value for found in own["difference"]]
            axes.scatter(steps, own["method"].map(names.index), s=36, edgecolors="black", **look)
        axes.axvline(0.0, color="black", linewidth=0.8)
        named(axes, names if axes is panels[0] else [""] * len(names))
        axes.set_title(", ".join(key), fontsize=10)
    sheet.supxlabel("DEAR's minus the other method's: a dot is the median of a cell", fontsize=10)
    known = panels[0].collections
    sheet.legend(handles=known, loc="outside upper center", ncols=len(known), frameon=False)
    return sheet
