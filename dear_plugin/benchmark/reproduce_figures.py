"""The figures of `reproduce`: costs, entanglement, features that change together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from dear_plugin.results.changes import ASSOCIATION

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

NAMES = {"adult": "Adult", "compas": "COMPAS", "gmc": "Give Me Some Credit"}
# The methods whose costs are split, by the suffix of their figures' names.
SPLIT = {"": "DEAR", "-literal": "to the letter"}
NOTHING = "(nothing: action of size zero)"
PARTS = {"direct_cost": "direct", "indirect_cost": "indirect"}
# The data set of the paper's case study.
CASE_STUDY = "gmc"


def figures(rows: pd.DataFrame, mixed: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """The figures: costs of all methods, entanglement, parts of DEAR's costs, the case study.

    Args:
        rows: one line per rejected row and method.
        mixed: the mixed derivative of each training row and set.
    """
    from dear_plugin import plots

    solved = rows[rows["success"]]
    for dataset, runs in solved.groupby("dataset", sort=False):
        draw = partial(plots.boxes, by="line")
        title = f"{NAMES[str(dataset)]}: cost of solved rows"
        yield f"costs-{dataset}", _by_classifier(runs, draw, title, height=5.2)
    for dataset, table in mixed.groupby("dataset", sort=False):
        yield f"entanglement-{dataset}", _entanglement(table, NAMES[str(dataset)])
    for suffix, method in SPLIT.items():
        own = solved[solved["line"] == method].replace({"acted_on": {"": NOTHING}})
        if len(own):
            yield f"cost-splits{suffix}", _parts(own, method)
        study = own[own["dataset"] == CASE_STUDY]
        if len(study):
            title = f"{NAMES[CASE_STUDY]}: largest indirect change by action ({method})"
            figure = _by_classifier(study, plots.together, title, height=5.2)
            figure.supxlabel(
                f"{ASSOCIATION.partition(':')[0]}.", fontsize=9
            )  # no tiers in the paper
            yield f"pairs-{CASE_STUDY}{suffix}", figure


def _parts(own: pd.DataFrame, method: str) -> Figure:
    """The figure of direct and indirect costs of one method."""
    from dear_plugin import plots

    parts = own.melt(["dataset", "classifier"], list(PARTS), "part", "l1")
    parts = parts.sort_values("dataset", kind="stable")
    parts["part"] = parts["dataset"].map(NAMES) + ", " + parts["part"].map(PARTS)
    draw = partial(plots.boxes, by="part", of="l1")
    return _by_classifier(parts, draw, f"Direct and indirect cost: {method}", height=3.4)


def _entanglement(table: pd.DataFrame, name: str) -> Figure:
    """The figure of entanglement of the paper's preset: mean |d2 g / dv dx_S|, per row and set."""
    from dear_plugin import plots

    figure, (axes,) = plots.sheet(1, width=7.0, height=4.6)
    plots.entanglement(table, axes)
    fidelity = table["dependence"].iloc[0]
    title = f"{name}: entanglement of the paper's preset"
    figure.suptitle(f"{title}\n(its dependence fidelity: {fidelity:.2f})", fontsize=12)
    return figure


def _by_classifier(
    rows: pd.DataFrame, draw: Callable[[pd.DataFrame, Axes], None], title: str, *, height: float
) -> Figure:
    """The figure with one panel for each classifier."""
    from dear_plugin import plots

    groups = list(rows.groupby("classifier", sort=False))
    figure, panels = plots.sheet(len(groups), width=6.0, height=height)
    for axes, (kind, part) in zip(panels, groups, strict=True):
        draw(part, axes)
        axes.set_title(str(kind).upper(), fontsize=10)
    figure.suptitle(title, fontsize=12)
    return figure
