"""Trees: DEAR's costs compared with the optimum, on tree ensembles.

Forests and boosted trees with their packages' default settings, trained on at most 20,000 rows;
the data sets' own `act_on`, `immutable`, `increasing` and `tiers`; actions on single features. The
optimum is defined in `dense`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from dear_plugin.benchmark.dense import compared
from dear_plugin.benchmark.forests import FORESTS, forest
from dear_plugin.benchmark.metrics import decision
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.splits import data_split
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

# The settings by data set.
DATA: Mapping[str, str] = {"loan": "loan", "adult": "adult-full", "gmc": "gmc-own"}
# Packages of models that may be missing.
MISSING = tuple(name for name in ("xgboost", "lightgbm") if not find_spec(name))
PACKAGES = tuple(name for name in ("xgboost", "lightgbm") if name not in MISSING)
MODELS = tuple(name for name in FORESTS if name.lower() not in MISSING)
MOST_ROWS = 20_000
# The required mean and 90th percentile of the ratio.
MEAN, PERCENTILE_90 = 1.10, 1.3
SEARCHES: Mapping[str, Search] = {
    "cheapest": Search.cheapest(max_features=1),
    "default": Search(max_features=1),
}


def measure(folder: Path, *, data: str, model: str, search: str, rows: int) -> pd.DataFrame:
    """The prices of DEAR's answers and of the optimum, by rejected row."""
    dear, refused = _fitted(folder, data, model)
    return compared(dear.with_search(SEARCHES[search]), refused.iloc[:rows])


@lru_cache(maxsize=1)
def _fitted(folder: Path, name: str, kind: str) -> tuple[DEAR, pd.DataFrame]:
    """DEAR with an ensemble, and the test rows that this rejects."""
    data = data_split(folder, DATA[name], 0)
    names, (train, test) = list(data.schema.names), data.parts
    sample = train.sample(min(MOST_ROWS, len(train)), random_state=0)
    model = forest(kind, sample[names], sample[data.data.target], 0)
    refused = test[~decision(model, data.schema)(test)][names]
    return DEAR(model, data.schema, act_on=data.act_on).fit(train), refused


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Comparison with the optimum; ratios and excess are over rows that DEAR solves."""
    yield (
        "trees",
        [
            {**dict(zip(("data", "model", "search"), key, strict=True)), **summary(own)}
            for key, own in found.groupby(["data", "model", "search"], sort=False)
        ],
    )


def summary(own: pd.DataFrame) -> Row:
    """One line of the table, of the prices of all rows."""
    possible = own[np.isfinite(own["optimum"])]
    both = possible[np.isfinite(possible["dear"])]
    counts = {"rows": len(own), "solvable": len(possible), "missed": len(possible) - len(both)}
    if both.empty:
        return counts
    ratios = both["dear"] / both["optimum"]
    mean, percentile_90 = ratios.mean(), ratios.quantile(0.9)
    met = mean <= MEAN and percentile_90 <= PERCENTILE_90
    return {
        **counts,
        "optimal": (ratios <= 1.001).mean(),
        "mean": mean,
        "90th": percentile_90,
        "worst": ratios.max(),
        "excess": (both["dear"] - both["optimum"]).mean(),
        "requirement": "met" if met else "NOT MET",
    }


TREES = Spec(
    "trees",
    "costs compared with the optimum, on forests and boosted trees",
    {
        "data": Option(tuple(DATA), ("loan",), "data sets", tuple(DATA)),
        "models": Option(MODELS, ("HistGradientBoosting",), "kinds of ensembles", tuple(FORESTS)),
        "rows": Option(40, 4, "rejected rows of each model"),
    },
    lambda options: grid(
        data=options.data, model=options.models, search=SEARCHES, rows=[options.rows]
    ),
    measure,
    tables,
    ("scikit-learn", *PACKAGES),
)
