"""The tables and figures of `hosts`: the measures of every method, with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from dear_plugin.benchmark.tables import Row, Table, wide
from dear_plugin.rivals.intervals import difference, estimates

BASE, LESS, FIT = "DEAR", "effort above DEAR", "fit"
# The data set and the measures of the README's figure.
FIRST, FEW = "adult", ("effort", "plausible", "seconds")
# Headings of the table.
MEASURES = {
    "solved": "solved",
    "plausible": "plausible",
    "effort": "effort",
    LESS: LESS,
    "cost": "cost",
    "support": "support",
    "seconds": "CPU s a row",
}


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The measures as lines, as a table, and a figure for each data set."""
    from dear_plugin import plots

    parts = found.groupby("data", sort=False)
    lines = pd.concat([measured(own).assign(data=name) for name, own in parts], ignore_index=True)
    lines = lines[["data", *lines.columns.drop("data")]]
    yield "hosts", lines
    yield "hosts", table(lines)
    for name, own in lines.groupby("data", sort=False):
        yield str(name), plots.dots(own)
        if name == FIRST:
            yield "first", plots.dots(own, FEW)


def measured(answers: pd.DataFrame) -> pd.DataFrame:
    """The measures of each method on one data set, see `estimates`, and two more.

    These are the CPU seconds of the fit, and the median of the method's effort minus that of DEAR
    on rows for which both have a plausible answer.
    """
    methods = {str(name): own for name, own in answers.groupby("method", sort=False)}
    more = []
    for name, own in methods.items():
        fit = own["fit_cpu_s"].iloc[0]
        more.append((name, FIT, fit, fit, fit, 1))
        if BASE in methods and name != BASE:
            more.append((name, LESS, *above(own, methods[BASE])))
    lines = estimates(answers)
    return pd.concat([lines, pd.DataFrame(more, columns=lines.columns)], ignore_index=True)


def above(own: pd.DataFrame, base: pd.DataFrame) -> tuple[float, float, float, int]:
    """The median difference in effort to another method, its interval, and the number of rows."""
    both = own.merge(base, on="row", suffixes=("", "_base"))
    plausible = (both["plausible"] & both["plausible_base"]).to_numpy(dtype=bool)
    effort, other = both["direct_cost"].to_numpy(float), both["direct_cost_base"].to_numpy(float)
    found = difference(effort, other, plausible)
    return (*found.difference, found.rows)


def table(lines: pd.DataFrame) -> Iterator[Row]:
    """A row for each data set and method."""
    for known, row in wide(lines, ["data", "method"], MEASURES):
        more = {"rows of both": known["rows"].get(LESS, ""), "fit CPU s": known.loc[FIT, "value"]}
        yield {**row, "rows": known.loc["solved", "rows"], **more}
