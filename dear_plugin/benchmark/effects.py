"""Stated indirect changes compared with true effects, on systems with known equations.

Rows act by a part of a standard deviation (a category: to its first level), on one feature or on
two, or into the outer tenth of what they act on. What is said of every other feature is compared
with the truth under the same noise, in standard deviations; of a category, level by level:

- *mean* and *worst error*: of the mean change, with ties at random; *worst group*: the largest
  within the halves or levels of a held feature; *rival* and its *worst group*: see `rival`;
- *range contains the truth*: the share of features where the true mean change is in the range of
  the mean that the resamples tell, `TOLERANCE` beyond at most; *strictly*:
  beyond the rounding of a mean at most; *of groups*: strictly, in each group;
- *error of single rows*: the mean absolute error of the change stated for a row; *rows in their
  range*: the share whose own change is in its range of one person, `TOLERANCE` beyond at most;
- *wrong sign*: the share of rows whose stated and true changes have opposite signs, both larger
  than `TOLERANCE`; *wrong groups*: the number of groups, likewise.
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

# Rounded rows may all have the same answer: so much is rounding of a mean.
EXACT = 0.002
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
# Of the figure: a panel for each, and the two markers.
DRAWN = ("loan", "hidden cause")
MARKERS = {WITHOUT: ("x", "#b5651d"), WITH: ("o", "#1f4e79")}


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """The measures of each action: `seed, tiers, step, acted on` and their columns.

    Args:
        found: of `changes`.
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
    # A feature without groups is a group.
    groups = lines.groupby(keys, sort=False).agg(**BY_GROUP)
    return whole.join(groups).reset_index()


def table(found: pd.DataFrame, by: Sequence[str], measures: Sequence[str]) -> Iterator[Row]:
    """The measures of some groups of actions: means over seeds with intervals.

    Args:
        found: of `errors`, with columns to group by.
        by: these.
        measures: the columns.
    """
    summed = {m: "max" if m == WORST else "mean" for m in measures}
    for key, part in found.groupby(list(by), sort=False):
        seeds = part.groupby("seed").agg(summed)
        means = {m: str(estimate(seeds[m], np.zeros(len(seeds)))) for m in measures}
        yield {**dict(zip(by, key, strict=True)), **means}


def figure(found: pd.DataFrame) -> Figure:
    """A panel for each system of `DRAWN`: stated and true mean changes of actions on one feature.

    Args:
        found: of `changes`, with the column `system`.
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
    "what is said to follow an action compared with its true effect",
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
