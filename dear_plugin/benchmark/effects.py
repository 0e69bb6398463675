"""Stated indirect changes compared with true effects, on systems with known equations.

An action moves one or two features of all rows: a number by a part of a standard deviation or
into its outer tenth, a category to its first level. The stated changes of other features are
compared with the true ones under the same noise, in standard deviations, or level by level:

- *mean* and *worst error*: errors of the mean change, with ties at random; *worst group*: the
  largest error in halves or levels of a held feature; *rival*: see `rival`;
- *range contains the truth*: the share of features whose true mean change is in the range over
  resamples, or at most `TOLERANCE` beyond; *strictly*: at most the rounding of a mean beyond;
  *of groups*: strictly, in each group;
- *error of single rows*: the mean absolute error of the change stated for a row; *rows in their
  range*: the share of rows whose change is in its range of one row, or at most `TOLERANCE` beyond;
- *wrong sign*: the share of rows whose stated and true changes have opposite signs, both larger
  than `TOLERANCE`; *wrong groups*: the number of such groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dear_plugin.benchmark.changes import TOLERANCE, TRAINING, changes
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.systems import JOINED, SYSTEMS, TAIL, WITH, WITHOUT
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.benchmark.traits import UNKNOWABLE_COLUMNS, WITH_TRAITS
from dear_plugin.rivals.intervals import estimate

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

# The rounding of a mean: rounded rows may all have the same answer.
EXACT = 0.002
EFFECT, WORST, PAIRS = "true effect", "worst error", "pairs"
# The measures of one action: a column of `changes`, and how its features are aggregated.
MEASURES = {
    EFFECT: ("effect", "mean"),
    "mean error": ("error", "mean"),
    WORST: ("error", "max"),
    "range contains the truth": ("contained", "mean"),
    "error of single rows": ("single", "mean"),
    "wrong sign": ("wrong", "mean"),
}
MORE = {
    "rival": ("rival error", "mean"),
    "strictly": ("strict", "mean"),
    "rows in their range": ("rows", "mean"),
}
BY_GROUP = {
    "worst group": ("error", "max"),
    "rival, worst group": ("rival error", "max"),
    "of groups": ("strict", "mean"),
    "wrong groups": ("opposite", "sum"),
}
EVERY = [*MEASURES, *MORE, *BY_GROUP]
CHOICES = {**SYSTEMS, **WITH_TRAITS}
# The panels and markers of the figure.
DRAWN = ("loan", "hidden cause")
MARKERS = {WITHOUT: ("x", "#b5651d"), WITH: ("o", "#1f4e79")}


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """The measures of each action: `seed, tiers, step, acted on` and their columns.

    Args:
        found: the frame of `changes`.
    """
    low, high, true = found["low"], found["high"], found["true"]
    clear = np.minimum(found["expected"].abs(), true.abs()) > TOLERANCE
    lines = found.assign(
        **{
            "error": (found["expected"] - true).abs(),
            "rival error": (found["rival"] - true).abs(),
            "effect": true.abs(),
            "contained": true.between(low - TOLERANCE, high + TOLERANCE),
            "strict": true.between(low - EXACT, high + EXACT),
            "opposite": clear & (found["expected"] * true < 0),
        }
    )
    keys, is_group = ["seed", "tiers", "step", "acted on"], lines["within"] != ""
    whole = lines[~is_group].groupby(keys, sort=False).agg(**MEASURES, **MORE)
    # A feature without groups counts as one group.
    groups = lines.groupby(keys, sort=False).agg(**BY_GROUP)
    return whole.join(groups).reset_index()


def table(found: pd.DataFrame, by: Sequence[str], measures: Sequence[str]) -> Iterator[Row]:
    """The measures of some groups of actions: means over seeds with intervals.

    Args:
        found: the frame of `errors`, with columns to group by.
        by: the names of these columns.
        measures: the columns of measures.
    """
    summed = {m: "max" if m == WORST else "mean" for m in measures}
    for key, part in found.groupby(list(by), sort=False):
        seeds = part.groupby("seed").agg(summed)
        means = {m: str(estimate(seeds[m])) for m in measures}
        yield {**dict(zip(by, key, strict=True)), **means}


def figure(found: pd.DataFrame) -> Figure:
    """A panel for each system of `DRAWN`: stated and true mean changes of actions on one feature.

    Args:
        found: the frame of `changes`, with the column `system`.
    """
    from dear_plugin import plots

    sheet, panels = plots.sheet(len(DRAWN), width=3.6, height=3.8)
    keys = ["system", "tiers", "acted on", "feature"]
    means = found[~_is_pair(found) & (found["within"] == "")].groupby(keys).mean(numeric_only=True)
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
    runs["action"] = np.where(runs["step"] == TAIL, "tail", "1 sd")
    traits = runs["columns"].notna()
    yield "effects", table(runs[~traits], ["system", "acted on", "tiers"], [*MEASURES])
    known = traits & (runs["columns"] != UNKNOWABLE_COLUMNS)
    every = runs.assign(trait="all")[known]
    lines = pd.concat([runs[traits], every])
    yield "traits", table(lines, ["trait", "columns", "action"], EVERY)
    if {*DRAWN} <= {*runs["system"]}:
        yield "stated-and-true", figure(found)


EFFECTS = Spec(
    "effects",
    "stated indirect changes compared with true effects",
    {
        "systems": Option("systems", ("hidden cause", "heavy value, smooth"), CHOICES),
        "seeds": Option("draws of each system", 1, preset=2),
        "training": Option("training rows, at most", 1_000, preset=TRAINING),
    },
    lambda options: grid(
        system=options.systems, seed=range(options.seeds), training=[options.training]
    ),
    measure,
    tables,
)
