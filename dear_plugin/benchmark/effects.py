"""Effects: expected indirect changes compared with true effects, on systems of known equations.

For every mutable feature, and every pair of them, rows act by half a standard deviation (a
category: to its first level). The mean change of every other feature, with ties at random, is
compared with its true mean under the same noise, in standard deviations; of a category, the change
of the share of each level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from dear_plugin.benchmark.fits import reject_all
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.systems import JOINED, SYSTEMS, WITH, WITHOUT, Noise, System, Values
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.data.feature import Kind
from dear_plugin.data.schema import Schema
from dear_plugin.evaluation.intervals import estimate
from dear_plugin.methods.dear import DEAR

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

TRAINING, ROWS = 20_000, 10_000
STEP = 0.5
MEASURES = MEAN, WORST, EFFECT = ("mean error", "worst error", "true effect")
PAIRS = "pairs"


# Systems in which numbers alone are acted on.
DRAWN = ("loan", "hidden cause")
COLUMNS = 3
TRUE = "true effect"
# Shapes tell the three apart without colours; the truth is behind, the estimate with tiers on it.
LOOKS: dict[str, dict[str, Any]] = {
    TRUE: {"marker": "D", "markersize": 9, "color": "#c8c8c8", "markeredgecolor": "#808080"},
    WITHOUT: {"marker": "x", "markersize": 7, "color": "#b5651d", "markeredgewidth": 2},
    WITH: {"marker": "o", "markersize": 5, "color": "#1f4e79"},
}
EARLIER: dict[str, Any] = {"color": "#eeeeee", "zorder": 0, "linewidth": 0}


def changes(system: System, seed: int, training: int = TRAINING) -> pd.DataFrame:
    """Expected and true mean changes, of one draw of a system, with and without tiers.

    Args:
        system: the equations.
        seed: of the draw.
        training: the number of training rows.

    Returns:
        `seed, tiers, acted on, feature, expected, true`, a row for each feature that may follow
        and, of a category, each level.
    """
    rng = np.random.default_rng(seed)
    train = system.solve(system.noise(training, rng), {})
    noise = system.noise(ROWS, rng)
    parts = []
    for how, tiers in ((WITHOUT, ()), (WITH, system.tiers)):
        schema = Schema.infer(train, immutable=system.immutable, tiers=tiers)
        pairs = list(combinations(schema.mutable, 2))
        dear = DEAR(reject_all, schema, act_on=[*schema.mutable, *pairs]).fit(train)
        for names in [*((name,) for name in schema.mutable), *pairs]:
            parts.append(changes_of(system, dear, noise, names).assign(tiers=how))
    return pd.concat(parts).assign(seed=seed)


def table(name: str, found: pd.DataFrame) -> Iterator[Row]:
    """One row per feature acted on, and one for all pairs: means over seeds with intervals.

    Args:
        name: of the system.
        found: of `changes`.
    """
    runs = errors(found)
    pairs = runs["acted on"].str.contains(JOINED, regex=False)
    runs["acted on"] = runs["acted on"].where(~pairs, PAIRS)
    for acted, part in runs.groupby("acted on", sort=False):
        row: dict[str, str] = {}
        for tiers, lines in part.groupby("tiers", sort=False):
            seeds = lines.groupby("seed").agg({MEAN: "mean", WORST: "max", EFFECT: "mean"})
            means = {m: str(estimate(seeds[m], np.zeros(len(seeds)))) for m in MEASURES}
            row[EFFECT] = means[EFFECT]
            row |= {f"{m}, {tiers}": means[m] for m in MEASURES if m != EFFECT}
        yield {"system": name, "acted on": acted, **row}


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """The mean and the worst error of each action's expected changes, and the mean true effect.

    Args:
        found: of `changes`.
    """
    groups = found.assign(
        error=(found["expected"] - found["true"]).abs(), effect=found["true"].abs()
    ).groupby(["seed", "tiers", "acted on"], sort=False)
    measures = {MEAN: ("error", "mean"), WORST: ("error", "max"), EFFECT: ("effect", "mean")}
    return groups.agg(**measures).reset_index()


def changes_of(system: System, dear: DEAR, noise: Noise, names: Sequence[str]) -> pd.DataFrame:
    """The expected and true mean changes when all rows act on some features.

    Args:
        system: the equations.
        dear: fitted on rows of the system.
        noise: of the rows that act.
        names: the features acted on.
    """
    before, schema = system.solve(noise, {}), dear.schema
    actions = pd.DataFrame({name: _other(before[name], schema) for name in names})
    answers = dear.apply(before, actions).counterfactuals
    true = system.solve(noise, {name: answers[name] for name in names})
    expected = _drawn(dear, before, answers, names)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "acted on": JOINED.join(names),
                    "feature": k,
                    "expected": _change(before[k], expected[k]),
                    "true": _change(before[k], true[k]),
                }
            )
            for k in schema.names
            if k not in names
        ]
    )


def _other(column: pd.Series, schema: Schema) -> pd.Series:
    """The values acted to: half a standard deviation more, or the first level for all rows."""
    feature = schema.features[schema.index([str(column.name)])[0]]
    if feature.kind is Kind.NUMERIC:
        return (column + STEP * column.std()).round(feature.precision or 0)
    return column.where(column.isna(), feature.categories[0])


def _drawn(
    dear: DEAR, before: pd.DataFrame, after: pd.DataFrame, names: Sequence[str]
) -> pd.DataFrame:
    """The rows that follow with ties broken at random, so that means and shares are right.

    An answer has the most likely value: of a category, and of a number that takes few values, its
    mean over many rows is not the expected one.
    """
    encoder, members = dear.encoder, tuple(sorted(dear.schema.index(names)))
    decoder = dear.decoders.of(members)
    rows, values = encoder.rows(before), encoder.rows(after)[:, None, list(members)]
    v = decoder.encode(rows, torch.Generator().manual_seed(0))
    return encoder.frame(decoder.decode(rows, v, values)[:, 0])


def _change(before: pd.Series, after: pd.Series) -> Values:
    """The mean change of a number, or the changes of the shares of levels, over the deviation."""
    if pd.api.types.is_numeric_dtype(before):
        return np.array([(after - before).mean() / before.std()])
    levels = np.unique(before)
    one, other = (c.to_numpy()[:, None] == levels for c in (before, after))
    return np.asarray((other.mean(0) - one.mean(0)) / one.std(0))


def effects(system: System, found: pd.DataFrame) -> Figure:
    """A panel for each feature acted on: the mean changes of the others, over all draws.

    Args:
        system: its equations.
        found: of `effects.changes`.
    """
    from dear_plugin import plots

    single = found[~found["acted on"].str.contains(JOINED, regex=False)]
    means = single.groupby(["acted on", "tiers", "feature"], sort=False).mean(numeric_only=True)
    names = [name for tier in system.tiers for name in tier if name in means.index.levels[0]]
    height = 0.9 + -(-len(names) // COLUMNS) * (0.7 + 0.2 * len(names))
    figure, panels = plots.sheet(len(names), width=3.0, height=height, columns=COLUMNS)
    for axes, name in zip(panels, names, strict=True):
        _panel(axes, means.loc[name], [other for other in names if other != name])
        _shade(axes, system, name, names)
        axes.set_title(f"{name} is raised", fontsize=10)
        axes.set_xlim(_span(means))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(
        "mean change in standard deviations, of an action of half of one"
        " (grey: features of earlier tiers, which keep their values with tiers)",
        fontsize=9,
    )
    return figure


def _span(means: pd.DataFrame) -> tuple[float, float]:
    """The limits of all panels."""
    values = means.loc[:, ["expected", "true"]]
    low, high = min(0.0, float(values.min(axis=None))), float(values.max(axis=None))
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _panel(axes: Axes, means: pd.DataFrame, names: list[str]) -> None:
    """The changes of the other features, the earliest on top."""
    from dear_plugin.plots.ink import spare

    values = {
        TRUE: means.loc[WITH, "true"],
        WITHOUT: means.loc[WITHOUT, "expected"],
        WITH: means.loc[WITH, "expected"],
    }
    for label, look in LOOKS.items():
        axes.plot(values[label][names], range(len(names)), label=label, linestyle="", **look)
    axes.axvline(0, color="black", linewidth=0.7, zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(labelsize=8)
    spare(axes)


def _shade(axes: Axes, system: System, acted: str, names: list[str]) -> None:
    """A grey ground for the features of earlier tiers."""
    rank = {name: i for i, tier in enumerate(system.tiers) for name in tier}
    early = sum(rank[name] < rank[acted] for name in names)
    if early:
        axes.axhspan(-0.5, early - 0.5, **EARLIER)


def measure(folder: Path, *, system: str, seed: int, training: int) -> pd.DataFrame:
    """The changes of one draw of a system."""
    return changes(SYSTEMS[system], seed, training)


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The errors of all systems, and figures of those that are drawn."""
    parts = {str(name): own for name, own in found.groupby("system", sort=False)}
    yield "effects", chain.from_iterable(table(*each) for each in parts.items())
    for name in DRAWN:
        if name in parts:
            yield name.replace(" ", "-"), effects(SYSTEMS[name], parts[name])


EFFECTS = Spec(
    "effects",
    "expected indirect changes compared with true effects",
    {
        "systems": Option("systems", ("hidden cause",), SYSTEMS),
        "seeds": Option("draws of each system", 1, preset=5),
        "training": Option("training rows", 1_000, preset=TRAINING),
    },
    lambda options: grid(
        system=options.systems, seed=range(options.seeds), training=[options.training]
    ),
    measure,
    tables,
)
