"""Effects: what is told to follow an action compared with its true effect, on known systems.

Rows act by a part of a standard deviation (a category: to its first level), on one feature or on
two. What is told of every other feature is compared with the truth under the same noise, in
standard deviations; of a category, level by level:

- *mean* and *worst error*: of the mean change, with ties at random;
- *range contains the truth*: the share of features where the true mean change is between the 10th
  and the 90th percentile of those told by the resamples, `TOLERANCE` beyond at most;
- *error of single rows*: the mean absolute error of the change told to a row;
- *wrong sign*: the share of rows whose told and true changes have opposite signs, both larger than
  `TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.fits import reject_all
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.systems import (
    JOINED,
    SYSTEMS,
    WITH,
    WITH_TRAITS,
    WITHOUT,
    Noise,
    System,
    Values,
)
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.data.schema import Schema
from dear_plugin.evaluation.intervals import estimate
from dear_plugin.methods.dear import DEAR

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

TRAINING, ROWS, RESAMPLED = 20_000, 10_000, 2_000
TOLERANCE = 0.05
ENDS = (0.1, 0.9)
EFFECT, WORST, PAIRS = "true effect", "worst error", "pairs"
# Of one action: a column of `changes`, and how its features are summed up.
MEASURES = {
    EFFECT: ("effect", "mean"),
    "mean error": ("error", "mean"),
    WORST: ("error", "max"),
    "range contains the truth": ("contained", "mean"),
    "error of single rows": ("single", "mean"),
    "wrong sign": ("wrong", "mean"),
}
CHOICES = {**SYSTEMS, **WITH_TRAITS}
# Of the figure: a panel for each, and the two markers.
DRAWN = ("loan", "hidden cause")
MARKERS = {WITHOUT: ("x", "#b5651d"), WITH: ("o", "#1f4e79")}


def changes(system: System, seed: int, training: int = TRAINING) -> pd.DataFrame:
    """Told and true changes of one draw of a system, with and without tiers.

    Args:
        system: the equations; one that names what is acted on is measured with tiers only.
        seed: of the draw.
        training: the number of training rows, at most those of the system.

    Returns:
        `seed, tiers` and the columns of `changes_of`, for each action.
    """
    rng = np.random.default_rng(seed)
    train = system.solve(system.noise(min(training, system.rows), rng), {})
    noise, parts = system.noise(ROWS, rng), []
    for how, tiers in {WITHOUT: (), WITH: system.tiers}.items():
        if how == WITH or not system.acted:
            schema = Schema.infer(train, immutable=system.immutable, tiers=tiers)
            single = system.acted or schema.mutable
            sets = [*zip(single), *(() if system.acted else combinations(single, 2))]
            dear = DEAR(reject_all, schema, act_on=sets).fit(train)
            parts += [changes_of(system, dear, noise, each).assign(tiers=how) for each in sets]
    return pd.concat(parts).assign(seed=seed)


def changes_of(system: System, dear: DEAR, noise: Noise, names: Sequence[str]) -> pd.DataFrame:
    """Told and true changes when all rows act on some features.

    Args:
        system: the equations.
        dear: fitted on rows of the system.
        noise: of the rows that act.
        names: the features acted on.

    Returns:
        A row for each feature that may follow, of a category for each level: `acted on, feature`,
        the mean changes `expected` and `true`, the told range `low, high`, and `single, wrong`.
    """
    before = system.solve(noise, {})
    actions = pd.DataFrame({n: _other(before[n], dear.schema, system.step) for n in names})
    told = dear.apply(before, actions).counterfactuals
    true = system.solve(noise, {name: told[name] for name in names})
    frames = [told, true, *_drawn(dear, before, told, names)]
    parts = [
        _measured(*(_changes(before[k], each[k]) for each in frames)).assign(feature=k)
        for k in dear.schema.mutable
        if k not in names
    ]
    return pd.concat(parts).assign(**{"acted on": JOINED.join(names)})


def _measured(told: Values, true: Values, expected: Values, *resampled: Values) -> pd.DataFrame:
    """The measures of one feature from the changes of its levels in each row, (m, l)."""
    # The true changes of the rows that are resampled differ by chance from those of all.
    offset = true.mean(0) - true[: len(resampled[0])].mean(0)
    low, high = np.quantile([each.mean(0) for each in resampled], ENDS, axis=0) + offset
    clear = np.minimum(np.abs(told), np.abs(true)) > TOLERANCE
    columns = {
        "expected": expected.mean(0),
        "true": true.mean(0),
        "low": low,
        "high": high,
        "single": np.abs(told - true).mean(0),
        "wrong": (clear & (np.sign(told) != np.sign(true))).mean(0),
    }
    return pd.DataFrame(columns)


def _changes(before: pd.Series, after: pd.Series) -> Values:
    """(m, l) the change of each row, of a number or of each level, in standard deviations."""
    one, other = (column.to_numpy()[:, None] for column in (before, after))
    if not pd.api.types.is_numeric_dtype(before):
        one, other = (column == np.unique(one) for column in (one, other))
    return np.asarray((other * 1.0 - one[: len(other)]) / one.std(0))


def _other(column: pd.Series, schema: Schema, step: float) -> pd.Series:
    """What is acted to: the observed value nearest to a step more, or the first level."""
    feature = schema.features[schema.index([str(column.name)])[0]]
    if not feature.is_number:
        return column.where(column.isna(), feature.categories[0])
    values = np.unique(column)
    at = np.searchsorted((values[1:] + values[:-1]) / 2, column + step * column.std())
    return pd.Series(values[at], column.index)


def _drawn(
    dear: DEAR, before: pd.DataFrame, told: pd.DataFrame, names: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """The rows that follow with ties broken at random, and the first rows under each resample.

    An answer has the most likely value: of a category, and of a number that takes few values, its
    mean over many rows is not the expected one.
    """
    encoder, members = dear.encoder, tuple(sorted(dear.schema.index(names)))
    decoder, rows = dear.decoders.of(members), encoder.rows(before)
    values = encoder.rows(told)[:, list(members)]
    v = decoder.encode(rows, torch.Generator().manual_seed(0))
    yield encoder.frame(encoder.grid.round(decoder.decode(rows, v, values[:, None])[:, 0]))
    draws = torch.arange(dear.decoders.decoder.draws) + 1
    resampled = dear.decoders.resample(members, rows[:RESAMPLED], values[:RESAMPLED], draws)
    yield from map(encoder.frame, encoder.grid.round(resampled).unbind(1))


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """The `MEASURES` of each action: `seed, tiers, acted on` and their columns.

    Args:
        found: of `changes`.
    """
    groups = found.assign(
        error=(found["expected"] - found["true"]).abs(),
        effect=found["true"].abs(),
        contained=found["true"].between(found["low"] - TOLERANCE, found["high"] + TOLERANCE),
    ).groupby(["seed", "tiers", "acted on"], sort=False)
    return groups.agg(**MEASURES).reset_index()


def table(found: pd.DataFrame, by: Sequence[str]) -> Iterator[Row]:
    """The measures of some groups of actions: means over seeds with intervals.

    Args:
        found: of `errors`, with columns to group by.
        by: these.
    """
    summed = {m: "max" if m == WORST else "mean" for m in MEASURES}
    for key, part in found.groupby(list(by), sort=False):
        seeds = part.groupby("seed").agg(summed)
        means = {m: str(estimate(seeds[m], np.zeros(len(seeds)))) for m in MEASURES}
        yield {**dict(zip(by, key, strict=True)), **means}


def figure(found: pd.DataFrame) -> Figure:
    """A panel for each system of `DRAWN`: told and true mean changes of actions on one feature.

    Args:
        found: of `changes`, with the column `system`.
    """
    from dear_plugin import plots

    sheet, panels = plots.sheet(len(DRAWN), width=3.6, height=3.8)
    keys = ["system", "tiers", "acted on", "feature"]
    means = found[~_is_pair(found)].groupby(keys).mean(numeric_only=True)
    for axes, name in zip(panels, DRAWN, strict=True):
        axes.axline((0, 0), slope=1, color="#808080", linewidth=0.8)
        for how, (marker, colour) in MARKERS.items():
            own = means.loc[name, how]
            axes.plot(own["true"], own["expected"], marker, color=colour, label=how)
        axes.set_title(name)
    panels[0].legend(frameon=False)
    sheet.supxlabel("true mean change (standard deviations)", fontsize=10)
    sheet.supylabel("expected", fontsize=10)
    return sheet


def _is_pair(found: pd.DataFrame) -> pd.Series:
    return found["acted on"].str.contains(JOINED, regex=False)


def measure(folder: Path, *, system: str, seed: int, training: int) -> pd.DataFrame:
    """The changes of one draw of a system."""
    return changes(CHOICES[system], seed, training)


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The errors of all systems and traits, and the figure."""
    parts = found.groupby("system", sort=False)
    runs = pd.concat([errors(own).assign(system=name) for name, own in parts], ignore_index=True)
    runs["acted on"] = runs["acted on"].where(~_is_pair(runs), PAIRS)
    runs[["trait", "columns"]] = (
        runs["system"].str.split(", ", expand=True).reindex(columns=[0, 1])
    )
    traits = runs["columns"].notna()
    yield "effects", table(runs[~traits], ["system", "acted on", "tiers"])
    every = runs.assign(trait="all")[traits]
    yield "traits", table(pd.concat([runs[traits], every]), ["trait", "columns"])
    if {*DRAWN} <= {*runs["system"]}:
        yield "told-and-true", figure(found)


EFFECTS = Spec(
    "effects",
    "what is told to follow an action compared with its true effect",
    {
        "systems": Option("systems", ("hidden cause", "heavy value, smooth"), CHOICES),
        "seeds": Option("draws of each system", 1, preset=5),
        "training": Option("training rows, at most", 1_000, preset=TRAINING),
    },
    lambda options: grid(
        system=options.systems, seed=range(options.seeds), training=[options.training]
    ),
    measure,
    tables,
)
