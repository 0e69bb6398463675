"""Trees: what DEAR's answers cost beside the optimum, on models that go up in steps.

python -m dear_plugin.benchmark trees --out results/trees

Forests and boosted trees with their packages' own settings, trained on 20,000 rows at most; the
data sets' own `act_on`, `immutable` and `increasing`; actions on single features. What the optimum
is: `dense`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dear_plugin.benchmark.dense import Compared, compared
from dear_plugin.benchmark.forests import forest
from dear_plugin.benchmark.grounds import Ground
from dear_plugin.benchmark.rulers import decision
from dear_plugin.benchmark.tables import Row
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

# What the command calls a setting of `grounds`.
TABLES: Mapping[str, str] = {"loan": "loan", "adult": "adult-full", "gmc": "gmc-own"}
MOST_ROWS = 20_000
MEAN, NINTH = 1.10, 1.3
SEARCHES: Mapping[str, Callable[..., Search]] = {"cheapest": Search.cheapest, "default": Search}


@dataclass(frozen=True)
class Trees:
    """One kind of trees on one table.

    Attributes:
        table: a name of `TABLES`.
        kind: a name of `FORESTS`.
        rows: how many refused people, at most.
    """

    table: str
    kind: str
    rows: int

    def lines(self) -> Iterator[Row]:
        """A line for each search; one that says so where a package is not there."""
        ground = Ground(TABLES[self.table], 0, Path())
        names = list(ground.schema.names)
        train, test = ground.parts
        some = train.sample(min(MOST_ROWS, len(train)), random_state=0)
        try:
            model = forest(self.kind, some[names], some[ground.data.target], 0)
        except ModuleNotFoundError as error:
            yield {**self._head, "search": f"{error.name} is not installed"}
            return
        refused = test[~decision(model, ground.schema)(test)][names].iloc[: self.rows]
        act_on = ground.act_on
        dear = DEAR(model, ground.schema, act_on=act_on).fit(train)
        for name, search in SEARCHES.items():
            found = compared(dear.with_search(search(groups=False)), refused)
            yield {**self._head, "search": name, **_columns(found)}

    @property
    def _head(self) -> dict[str, str]:
        return {"table": self.table, "model": self.kind}


def trees(tables: Sequence[str], kinds: Sequence[str], rows: int) -> Iterator[Row]:
    """The lines of the table.

    Args:
        tables: names of `TABLES`.
        kinds: names of `FORESTS`.
        rows: how many refused people of each, at most.
    """
    for table in tables:
        for kind in kinds:
            yield from Trees(table, kind, rows).lines()


def _columns(found: Compared) -> Row:
    """How far from the optimum; means are over people for whom DEAR has an answer."""
    ratios, gap = found.ratios, found.excess
    counts = {
        "people": len(found.optimum),
        "possible": int(found.possible.sum()),
        "with the margin": int(found.with_margin.sum()),
        "missed": int(found.missed.sum()),
    }
    if not len(ratios):
        return counts
    mean, ninth = float(ratios.mean()), float(np.quantile(ratios, 0.9))
    return {
        **counts,
        "optimal": float((ratios <= 1.001).mean()),
        "mean": mean,
        "90th": ninth,
        "worst": float(ratios.max()),
        "excess": float(gap.mean()),
        "marks": "met" if mean <= MEAN and ninth <= NINTH else "NOT MET",
    }
