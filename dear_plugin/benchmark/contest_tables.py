"""Tables of `contest`: each method at each dial, and DEAR compared with every other method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from dear_plugin.benchmark.contestants import DEFAULT, FRONTS, PLAUSIBLE, SUPPORTED
from dear_plugin.benchmark.metrics import Estimate, estimate
from dear_plugin.benchmark.tables import Row

OWN = ("DEAR", "DEAR, pairs", "DEAR, cheapest")
# The dials at which methods are compared.
COMPARED = (PLAUSIBLE, SUPPORTED, DEFAULT)
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


def table(answers: pd.DataFrame, dials: Sequence[str]) -> Iterator[Row]:
    """One row per cell, dial and method; means over solved rows, costs as medians.

    Args:
        answers: of all runs.
        dials: names of `DIALS`.
    """
    shown = answers[answers["dial"].isin(dials)]
    for (cell, dial, method), own in shown.groupby(["cell", "dial", "method"], sort=False):
        rows = _per_row(own)
        groups = rows.index.get_level_values("split").to_numpy()
        yield {
            "cell": cell,
            "requirement": dial,
            "method": method,
            "rows": len(own),
            "solved": float(own["success"].mean()),
            "meets it": float(own["meets"].mean()),
            "cost": str(estimate(rows["cost"], groups, median=True)),
            **{name: _mean(own, column) for name, column in SHARES.items()},
            "CPU ms a row": 1000.0 * float(own["cpu_s"].mean()),
        }


def differences(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per cell, dial and other method: DEAR's cost minus its cost, with intervals.

    The median over rows for which both answers meet the dials; of several seeds of a split the
    mean of each row. `meets` is the share of rows whose answer meets them.
    """
    shown = answers[answers["dial"].isin(COMPARED)]
    for (cell, dial), part in shown.groupby(["cell", "dial"], sort=False):
        methods = {str(name): own for name, own in part.groupby("method", sort=False)}
        mine = {name: methods.pop(name) for name in OWN if name in methods}
        for name, other in methods.items():
            line: dict[str, object] = {"cell": cell, "requirement": dial, "method": name}
            line["meets it"] = float(other["meets"].mean())
            for label in OWN[:2]:
                line |= _compared(label, mine[label], other) if label in mine else {}
            yield line


def _compared(label: str, own: pd.DataFrame, other: pd.DataFrame) -> Row:
    """One line of DEAR compared with another method."""
    found, rows, cheaper = difference(own, other)
    return {
        f"{label}: meets": float(own["meets"].mean()),
        f"{label}: rows": rows,
        f"{label}: difference": str(found),
        f"{label}: cheaper": cheaper,
        f"{label}: verdict": verdict(found, rows),
    }


def difference(first: pd.DataFrame, second: pd.DataFrame) -> tuple[Estimate, int, float]:
    """The median cost difference of two methods, the number of rows, and the share below zero.

    Args:
        first: the answers of one method in one cell, with one dial.
        second: those of the other.
    """
    both = _met(first).join(_met(second), how="inner", lsuffix="_first", rsuffix="_second")
    costs = (both["cost_first"] - both["cost_second"]).groupby(level=ROW).mean()
    groups = costs.index.get_level_values("split").to_numpy()
    found = estimate(costs, groups, median=True)
    return found, len(costs), float((costs < 0.0).mean()) if len(costs) else np.nan


def verdict(found: Estimate, rows: int) -> str:
    """Whether an interval is below zero, above it, or contains it; "few rows" below `FEWEST`."""
    if rows < FEWEST:
        return "few rows"
    if found.high < 0.0:
        return "cheaper"
    return "dearer" if found.low > 0.0 else "level"


def summary(answers: pd.DataFrame) -> Iterator[Row]:
    """One row per other method: in how many cells DEAR is cheaper / level / dearer, by dial."""
    lines = pd.DataFrame(list(differences(answers)))
    for method, own in lines.groupby("method", sort=False):
        line: dict[str, object] = {"method": method, "cells": own["cell"].nunique()}
        for dial in COMPARED:
            part = own[own["requirement"] == dial]
            for name in OWN[:2]:
                line[f"{name}, {dial}"] = _counts(part.get(f"{name}: verdict", pd.Series()))
        yield line


def _counts(verdicts: pd.Series) -> str:
    """The numbers of cells that are cheaper / level / dearer."""
    counts = verdicts.value_counts()
    return " / ".join(str(counts.get(kind, 0)) for kind in ("cheaper", "level", "dearer"))


def fronts(answers: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each measure of `FRONTS`, the points `cell, method, dial, measure, cost`.

    Costs are medians and measures means over rows whose answer meets the dials.
    """
    met = answers[answers["meets"]]
    groups = met.groupby(["cell", "method", "dial"], sort=False)
    middle = groups["cost"].median()
    for measure, dials in FRONTS.items():
        points = pd.DataFrame({"cost": middle, "measure": groups[measure].mean()}).reset_index()
        order = points["dial"].map({dial: i for i, dial in enumerate(dials)})
        yield (
            measure,
            points[order.notna()]
            .assign(order=order)
            .sort_values(["cell", "method", "order"], ignore_index=True),
        )


def _met(answers: pd.DataFrame) -> pd.DataFrame:
    """The costs of answers that meet the dials, by split, row and seed."""
    met = answers[answers["meets"] & (answers["zero_action"] != 1.0)]
    return met.set_index([*ROW, "seed"])[["cost"]]


def _per_row(own: pd.DataFrame) -> pd.DataFrame:
    """The cost of each solved row, the mean over the seeds of its split."""
    return own.assign(cost=own["cost"].where(own["success"])).groupby(ROW)[["cost"]].mean()


def _mean(own: pd.DataFrame, column: str) -> float:
    return float(own[column].mean()) if column in own and own[column].notna().any() else np.nan
