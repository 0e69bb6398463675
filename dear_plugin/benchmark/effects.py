"""Effects: expected indirect changes compared with true effects, on systems of known equations.

python -m dear_plugin.benchmark effects --out results/effects

For every mutable feature, rows act by half a standard deviation (a category: to its first level).
The mean change of every other feature, with ties at random, is compared with its true mean under
the same noise, in standard deviations; of a category, the change of the share of each level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.systems import SYSTEMS, Noise, System, Values
from dear_plugin.benchmark.tables import Row
from dear_plugin.data.feature import Kind
from dear_plugin.data.schema import Schema
from dear_plugin.evaluation.intervals import estimate
from dear_plugin.methods.dear import DEAR

TRAINING, ROWS = 20_000, 10_000
STEP = 0.5
MEASURES = MEAN, WORST, EFFECT = ("mean error", "worst error", "true effect")


def effects(names: Sequence[str], seeds: int, training: int = TRAINING) -> Iterator[Row]:
    """One row per system and feature acted on: means over seeds with their intervals.

    Args:
        names: of `SYSTEMS`.
        seeds: the number of draws of each system.
        training: the number of training rows.
    """
    for name in names:
        runs = pd.concat(measured(SYSTEMS[name], seed, training) for seed in range(seeds))
        for acted, part in runs.groupby("acted on", sort=False):
            found: dict[str, str] = {}
            for tiers, rows in part.groupby("tiers", sort=False):
                means = {m: str(estimate(rows[m], np.zeros(len(rows)))) for m in MEASURES}
                found[EFFECT] = means[EFFECT]
                found |= {f"{m}, {tiers}": means[m] for m in MEASURES if m != EFFECT}
            yield {"system": name, "acted on": acted, **found}


def measured(system: System, seed: int, training: int = TRAINING) -> pd.DataFrame:
    """The errors of each feature acted on, with and without tiers, of one draw of a system."""
    rng = np.random.default_rng(seed)
    train = system.solve(system.noise(training, rng), {})
    noise = system.noise(ROWS, rng)
    lines = []
    for how, tiers in (("without tiers", ()), ("with tiers", system.tiers)):
        schema = Schema.infer(train, immutable=system.immutable, tiers=tiers)
        dear = DEAR(_reject_all, schema).fit(train)
        for name in schema.mutable:
            lines.append({"tiers": how, "acted on": name, **errors(system, dear, noise, name)})
    return pd.DataFrame(lines)


def errors(system: System, dear: DEAR, noise: Noise, name: str) -> dict[str, float]:
    """The mean and the worst error of an action's expected changes, and the mean true effect."""
    before, schema = system.solve(noise, {}), dear.schema
    actions = pd.DataFrame({name: _other(before[name], schema)})
    answers = dear.apply(before, actions).counterfactuals
    true = system.solve(noise, {name: answers[name]})
    expected = _drawn(dear, before, answers, name)
    found, effect = (
        np.concatenate([_change(before[k], after[k]) for k in schema.names if k != name])
        for after in (expected, true)
    )
    error = np.abs(found - effect)
    values = float(error.mean()), float(error.max()), float(np.abs(effect).mean())
    return dict(zip(MEASURES, values, strict=True))


def _other(column: pd.Series, schema: Schema) -> pd.Series:
    """The values acted to: half a standard deviation more, or the first level for all rows."""
    feature = schema.features[schema.index([str(column.name)])[0]]
    if feature.kind is Kind.NUMERIC:
        return (column + STEP * column.std()).round(feature.precision or 0)
    return column.where(column.isna(), feature.categories[0])


def _drawn(dear: DEAR, before: pd.DataFrame, after: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows that follow with ties broken at random, so that means and shares are right.

    An answer has the most likely value: of a category, and of a number that takes few values, its
    mean over many rows is not the expected one.
    """
    encoder, (j,) = dear.encoder, dear.schema.index([name])
    decoder = dear.decoders.of((j,))
    rows, values = encoder.rows(before), encoder.rows(after)[:, None, [j]]
    v = decoder.encode(rows, torch.Generator().manual_seed(0))
    return encoder.frame(decoder.decode(rows, v, values)[:, 0])


def _change(before: pd.Series, after: pd.Series) -> Values:
    """The mean change of a number, or the changes of the shares of levels, over the deviation."""
    if pd.api.types.is_numeric_dtype(before):
        return np.array([(after - before).mean() / before.std()])
    levels = np.unique(before)
    one, other = (c.to_numpy()[:, None] == levels for c in (before, after))
    return np.asarray((other.mean(0) - one.mean(0)) / one.std(0))


def _reject_all(frame: pd.DataFrame) -> Values:
    """A model that rejects all rows: nothing is searched."""
    return np.full(len(frame), 0.25)
