"""Trees: DEAR's costs compared with the optimum, on tree ensembles.

python -m dear_plugin.benchmark trees --out results/trees

Forests and boosted trees with their packages' default settings, trained on at most 20,000 rows;
the data sets' own `act_on`, `immutable`, `increasing` and `tiers`; actions on single features. The
optimum is defined in `dense`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dear_plugin.benchmark.data_splits import SETTINGS, DataSplit
from dear_plugin.benchmark.dense import Compared, compared
from dear_plugin.benchmark.forests import forest
from dear_plugin.benchmark.metrics import decision
from dear_plugin.benchmark.tables import Row
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

# The settings of `data_splits` by data set.
TABLES: Mapping[str, str] = {"loan": "loan", "adult": "adult-full", "gmc": "gmc-own"}
MOST_ROWS = 20_000
# The required mean and 90th percentile of the ratio.
MEAN, PERCENTILE_90 = 1.10, 1.3
SEARCHES: Mapping[str, Callable[..., Search]] = {"cheapest": Search.cheapest, "default": Search}


@dataclass(frozen=True)
class Trees:
    """One kind of ensemble on one data set.

    Attributes:
        table: a name of `TABLES`.
        kind: a name of `FORESTS`.
        rows: the largest number of rejected rows.
    """

    table: str
    kind: str
    rows: int

    def lines(self) -> Iterator[Row]:
        """A line for each search, or one that names a missing package."""
        data = DataSplit(SETTINGS[TABLES[self.table]], 0, Path())
        names = list(data.schema.names)
        train, test = data.parts
        sample = train.sample(min(MOST_ROWS, len(train)), random_state=0)
        try:
            model = forest(self.kind, sample[names], sample[data.data.target], 0)
        except ModuleNotFoundError as error:
            yield {**self._head, "search": f"{error.name} is not installed"}
            return
        refused = test[~decision(model, data.schema)(test)][names].iloc[: self.rows]
        act_on = data.act_on
        dear = DEAR(model, data.schema, act_on=act_on).fit(train)
        for name, search in SEARCHES.items():
            found = compared(dear.with_search(search(max_features=1)), refused)
            yield {**self._head, "search": name, **_columns(found)}

    @property
    def _head(self) -> dict[str, str]:
        return {"table": self.table, "model": self.kind}


def trees(tables: Sequence[str], kinds: Sequence[str], rows: int) -> Iterator[Row]:
    """The lines of the table.

    Args:
        tables: names of `TABLES`.
        kinds: names of `FORESTS`.
        rows: the largest number of rejected rows of each.
    """
    for table in tables:
        for kind in kinds:
            yield from Trees(table, kind, rows).lines()


def _columns(found: Compared) -> Row:
    """Comparison with the optimum; ratios and excess are over rows that DEAR solves."""
    ratios = found.ratios
    counts = {
        "rows": len(found.optimum),
        "solvable": int(found.possible.sum()),
        "missed": int(found.missed.sum()),
    }
    if not len(ratios):
        return counts
    mean, percentile_90 = float(ratios.mean()), float(np.quantile(ratios, 0.9))
    met = mean <= MEAN and percentile_90 <= PERCENTILE_90
    return {
        **counts,
        "optimal": float((ratios <= 1.001).mean()),
        "mean": mean,
        "90th": percentile_90,
        "worst": float(ratios.max()),
        "excess": float(found.excess.mean()),
        "requirement": "met" if met else "NOT MET",
    }
