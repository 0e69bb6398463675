"""Differences between answers with the same training rows in other orders.

Another order changes rounding, and the rows that trees, tests and replicates draw. Two versions
are equally good if their answers differ by no more than those of three orders.

    python dear_plugin/benchmark/orders.py loan before.csv

measures a case and writes the file. If another version has written the file, both are compared.
`PYTHONPATH=../other-checkout` measures another version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dear_plugin import DEAR
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.benchmark.work import CASES, known

KEPT = ("success", "credible", "cost", "acted_on")
# The number of orders, the first one unchanged; the number of rejected rows.
ORDERS, ROWS = 4, 200


def measured(case: str, order: int, rows: int) -> pd.DataFrame:
    """The answers of rejected rows, with the training rows in an order."""
    made = CASES[case]()
    at = np.arange(len(made.train))
    if order:
        np.random.default_rng(order).shuffle(at)
    dear = DEAR(made.model, made.schema, **made.how).fit(made.train.iloc[at])
    found = dear.generate(made.refused.iloc[:rows]).actions[list(KEPT)]
    return found.astype({"acted_on": str}).reset_index(drop=True)


def differences(one: pd.DataFrame, other: pd.DataFrame) -> Row:
    """The differences between answers of the same rows; costs over rows that both answer."""
    both = (one["success"] & other["success"]).to_numpy()
    costs = [float(found["cost"][both].mean()) for found in (one, other)]
    return {
        "rows": len(one),
        "success": float(other["success"].mean() - one["success"].mean()),
        "credible": float(other["credible"].mean() - one["credible"].mean()),
        "cost": costs[1] / costs[0] - 1.0,
        "same set": float((one["acted_on"] == other["acted_on"])[both].mean()),
    }


def compared(found: pd.DataFrame, other: pd.DataFrame | None = None) -> Iterator[Row]:
    """The differences of each order from the first, and of another version in these orders."""
    for case, part in found.groupby("case", sort=False):
        orders = dict([*part.groupby("order")])
        first, *others = (each.reset_index(drop=True) for each in orders.values())
        for order, each in enumerate(others, 1):
            yield {"case": case, "beside": f"order {order}", **differences(first, each)}
        if other is not None:
            own = other[other["case"] == case]
            beside = own[own["order"].isin(orders)].reset_index(drop=True)
            line = differences(beside, part.reset_index(drop=True))
            yield {"case": case, "beside": "the other version, all orders", **line}


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The differences between orders."""
    yield "orders", compared(found)


ORDERS_SPEC = Spec(
    "orders",
    "answers with the same training rows in other orders",
    {
        "cases": Option("data and models", ("loan",), CASES),
        "orders": Option("orders of the training rows", 2, preset=ORDERS),
        "rows": Option("rejected rows", 20, preset=ROWS),
    },
    lambda options: grid(
        case=known(options.cases), order=range(options.orders), rows=[options.rows]
    ),
    lambda folder, *, case, order, rows: measured(case, order, rows),
    tables,
)


if __name__ == "__main__":
    import logging

    logging.disable(logging.WARNING)
    name, file = sys.argv[1], Path(sys.argv[2])
    runs = (measured(name, i, ROWS).assign(case=name, order=i) for i in range(ORDERS))
    every = pd.concat(runs, ignore_index=True)
    if file.exists():
        text = pd.DataFrame(compared(every, pd.read_csv(file))).to_string()
        sys.stdout.write(text + "\n")
    else:
        every.to_csv(file, index=False)
