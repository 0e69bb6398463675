"""Tables of `hosts`: the answers of every method, and DEAR's costs where both are plausible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.evaluation.intervals import difference, estimate
from dear_plugin.search import Search

SUPPORTS = (0.2, 0.4, 0.6, 0.8, 1.0)
# DEAR's lines: the search, whether pairs are action sets, and the required support.
DEAR_LINES: Mapping[str, tuple[Search, bool, float]] = {
    "DEAR, cheapest": (Search.cheapest(), False, 0.0),
    "DEAR": (Search(), False, 0.0),
    **{f"DEAR, support {s:g}": (Search(min_support=s), False, s) for s in SUPPORTS},
    "DEAR, pairs": (Search(), True, 0.0),
    **{f"DEAR, pairs, support {s:g}": (Search(min_support=s), True, s) for s in SUPPORTS},
}
PLAIN = tuple(name for name, (_, _, support) in DEAR_LINES.items() if not support)
# Configurations that differ in the required support alone, the lowest first.
FAMILIES = tuple(
    tuple(n for n, (_, p, _) in DEAR_LINES.items() if p is pairs and "cheapest" not in n)
    for pairs in (False, True)
)
SHARES = ("support", "confidence", "plausibility", "plausible", "alone", "changed")


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Every method's answers, and the paired differences."""
    yield "hosts", table(found)
    yield "differences", differences(found)


def table(found: pd.DataFrame) -> Iterator[Row]:
    """One row per method; sizes are medians and all else means, over solved rows."""
    for (data, method), own in found.groupby(["data", "method"], sort=False):
        solved = own[own["success"]]
        groups = np.zeros(len(solved))
        yield {
            "data": data,
            "method": method,
            "rows": len(own),
            "solved": own["success"].mean(),
            "cost": str(estimate(solved["cost"], groups, median=True)),
            "effort": str(estimate(solved["direct_cost"], groups, median=True)),
            **{name: solved[name].astype(float).mean() for name in SHARES},
            "fit CPU-s": own["fit_cpu_s"].iloc[0],
            "CPU ms a row": 1000.0 * own["seconds"].mean(),
        }


def differences(found: pd.DataFrame) -> Iterator[Row]:
    """DEAR's cost and effort minus a method's, medians over rows with plausible answers of both.

    Of the configurations with a required support, the lowest with at least the method's mean
    support on these rows is compared, or the highest if none has it.
    """
    for data, part in found.groupby("data", sort=False):
        methods = {str(name): own.set_index("row") for name, own in part.groupby("method")}
        others = [name for name in dict.fromkeys(part["method"]) if name not in DEAR_LINES]
        for name in others:
            matched = [supported(methods, family, name) for family in FAMILIES]
            labels = [label for label in dict.fromkeys([*PLAIN, *matched]) if label in methods]
            yield from ({"data": data, **_difference(methods, own, name)} for own in labels)


def supported(methods: Mapping[str, pd.DataFrame], family: Sequence[str], other: str) -> str:
    """The first of a family with at least another method's mean support, the last if none has it.

    The means are over the rows with plausible answers of both.
    """
    known = [name for name in family if name in methods]
    for name in known:
        both = _both(methods[name], methods[other])
        if methods[name]["support"][both].mean() >= methods[other]["support"][both].mean():
            return name
    return known[-1] if known else ""


def _difference(methods: Mapping[str, pd.DataFrame], label: str, name: str) -> Row:
    """One line of DEAR compared with another method."""
    own, other = methods[label], methods[name]
    both = _both(own, other)
    cost, effort = (
        difference(own[c].to_numpy(), other[c].to_numpy(), both.to_numpy())
        for c in ("cost", "direct_cost")
    )
    return {
        "DEAR": label,
        "other": name,
        "rows": cost.rows,
        "support": own["support"][both].mean(),
        "other's support": other["support"][both].mean(),
        "cost": cost.cost,
        "other's cost": cost.other,
        "difference": str(cost.difference),
        "cheaper": cost.cheaper,
        "effort": effort.cost,
        "difference in effort": str(effort.difference),
    }


def _both(own: pd.DataFrame, other: pd.DataFrame) -> pd.Series:
    """The rows with plausible answers of both."""
    both: pd.Series = own["plausible"].astype(bool) & other["plausible"].astype(bool)
    return both
