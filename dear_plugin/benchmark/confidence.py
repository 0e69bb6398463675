"""Whether answers that rely on indirect changes succeed in simulations.

The model accepts rows above a quantile of one feature that cannot be acted on. The simulator
applies the actions of rejected rows, with the rows' own noise, and the model decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from dear_plugin.benchmark.metrics import solved
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.systems import Values
from dear_plugin.benchmark.tables import Table
from dear_plugin.benchmark.traits import AFTERWARDS_COLUMNS, UNKNOWABLE_COLUMNS, WITH_TRAITS
from dear_plugin.data.schema import Schema
from dear_plugin.methods.dear import DEAR

ROWS, ACCEPTED = 2_000, 0.35
# The slope of log-odds per standard deviation of the feature; log-odds if it is missing.
STEEP, LOWEST = 3.0, -3.0
CHOICES = tuple(name for name in WITH_TRAITS if not name.endswith(UNKNOWABLE_COLUMNS))
MEASURES = ["refused", "credible", "said", "true", "said of all", "true of all"]


def measure(folder: Path, *, system: str, seed: int, refused: int) -> pd.DataFrame:
    """The answers of one draw: `follower, solved, credible, said, true` by rejected row."""
    of = WITH_TRAITS[system]
    rng = np.random.default_rng(seed)
    train = of.solve(of.noise(of.rows, rng), {})
    noise = of.noise(ROWS, rng)
    rows, parts = of.solve(noise, {}), []
    schema = Schema.infer(train, immutable=of.immutable, tiers=of.tiers)
    for name in of.tiers[-1]:
        if not pd.api.types.is_numeric_dtype(train[name]):
            continue
        model = _above(train[name])
        at = np.flatnonzero(model(rows) < 0.5)[:refused]
        dear = DEAR(model, schema, act_on=[of.acted]).fit(train)
        found = dear.generate(rows.iloc[at])
        values = found.counterfactuals
        own = {key: each[at] for key, each in noise.items()}
        after = of.solve(own, {each: values[each] for each in of.acted})
        lines = {
            "solved": solved(found),
            "credible": found.actions["credible"].fillna(False).to_numpy(dtype=bool),
            "said": found.actions["confidence"].to_numpy(),
            "true": model(after) >= 0.5,
        }
        parts.append(pd.DataFrame(lines).assign(follower=name, seed=seed))
    return pd.concat(parts)


def _above(column: pd.Series) -> Callable[[pd.DataFrame], Values]:
    """A model that accepts the highest values of a column."""
    values = np.unique(column.dropna())
    at = np.searchsorted(values, column.quantile(1.0 - ACCEPTED))
    least = (values[at] + values[max(at - 1, 0)]) / 2 if at else (values[0] + values[1]) / 2
    name, deviation = column.name, column.std()

    def _probability(rows: pd.DataFrame) -> Values:
        odds = (rows[name] - least) / deviation * STEEP
        return np.asarray(expit(odds.fillna(LOWEST)), dtype=np.float64)

    return _probability


def line(found: pd.DataFrame) -> dict[str, float]:
    """The `MEASURES` of credible answers, and of all solved rows."""
    done = found[found["solved"]]
    credible = done[done["credible"]]
    means = [each[["said", "true"]].mean() for each in (credible, done)]
    values = [len(credible) / max(len(found), 1), *means[0], *means[1]]
    return dict(zip(MEASURES, (len(found), *map(float, values)), strict=True))


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """A line for each system, one for all, and one for systems that were written afterwards."""
    late = found["system"].str.endswith(AFTERWARDS_COLUMNS)
    every = {"all": found[~late], f"all, {AFTERWARDS_COLUMNS}": found[late]}
    parts = [
        *found.groupby("system", sort=False),
        *((name, own) for name, own in every.items() if len(own)),
    ]
    yield "confidence", ({"system": name, **line(own)} for name, own in parts)


CONFIDENCE = Spec(
    "confidence",
    "whether answers that need indirect changes succeed in systems with traits",
    {
        "systems": Option("systems", ("a flag between, as it is",), CHOICES),
        "seeds": Option("draws of each system", 1, preset=2),
        "refused": Option("refused rows", 20, preset=150),
    },
    lambda options: grid(
        system=options.systems, seed=range(options.seeds), refused=[options.refused]
    ),
    measure,
    tables,
)
