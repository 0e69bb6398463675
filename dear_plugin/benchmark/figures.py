"""Figures: the paper's figures from the rows of all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from dear_plugin.benchmark.method_specs import METHOD_SPECS
from dear_plugin.benchmark.paper import counterfactuals
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.summary import CELL, points
from dear_plugin.methods.dear import DEAR
from dear_plugin.search.objective import differentiable

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

DEFAULT = "DEAR"
PRESET = "DEAR, the paper to the letter"
# One line of each family, to keep the figures readable.
SHOWN = (
    *(name for name, c in METHOD_SPECS.items() if c.search is None or not c.search.min_support),
    "DEAR, support 1",
    "DEAR, pairs too, support 1",
)
NAMES = {"adult": "Adult", "compas": "COMPAS", "gmc": "Give Me Some Credit"}
ROWS = 2000
# The methods whose costs are split, by the ending of their figures' names.
OWN = {"": DEFAULT, "-literal": PRESET}
NOTHING = "(nothing: action of size zero)"
PARTS = {"direct_cost": "direct", "indirect_cost": "indirect"}
TITLES = {
    "splits": "direct and indirect costs",
    "pairs": "largest indirect change by action",
}


def figures(rows: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Costs of all methods, cost against support, and the parts of DEAR's costs."""
    from dear_plugin import plots

    solved = rows[rows["success"]]
    for dataset, runs in solved.groupby("dataset", sort=False):
        shown = runs[runs["method"].isin(SHOWN)]
        figure = _by_classifier(shown, plots.boxes, width=6.4, height=5.2)
        yield f"costs-{dataset}", _titled(figure, f"{NAMES[str(dataset)]}: cost of solved rows")
    yield "frontier", _frontier(rows)
    for suffix, method in OWN.items():
        own = solved[solved["method"] == method].replace({"acted_on": {"": NOTHING}})
        if len(own):
            yield from _parts(own, suffix, method)


def _parts(own: pd.DataFrame, suffix: str, method: str) -> Iterator[tuple[str, Figure]]:
    """Direct and indirect costs, and the features that change together, of one method's rows."""
    from dear_plugin import plots

    parts = own.melt(["dataset", "classifier"], list(PARTS), "part", "l1")
    parts = parts.sort_values("dataset", kind="stable")
    parts["part"] = parts["dataset"].map(NAMES) + ", " + parts["part"].map(PARTS)
    draw = partial(plots.boxes, by="part", of="l1")
    figure = _by_classifier(parts, draw, width=5.8, height=3.4)
    yield f"cost-splits{suffix}", _titled(figure, f"Direct and indirect cost: {method}")
    shown = (("splits", plots.splits, 4.6), ("pairs", plots.together, 5.2))
    for (dataset, runs), (name, draw, height) in product(
        own.groupby("dataset", sort=False), shown
    ):
        figure = _by_classifier(runs, draw, width=6.0, height=height)
        figure.supxlabel(plots.NOTE, fontsize=9)
        title = f"{NAMES[str(dataset)]}: {TITLES[name]} ({method})"
        yield f"{name}-{dataset}{suffix}", _titled(figure, title)


def entanglement(cell: Cell, dear: DEAR) -> tuple[pd.DataFrame, Figure]:
    """The paper's entanglement costs: mean |d2 g / dv dx_S| of its preset, per row and set.

    Args:
        cell: any cell of a data set; the classifier is not used.
        dear: the preset, fitted on it.

    Returns:
        `dataset, set, entanglement` per training row and set, and the figure.
    """
    from dear_plugin import plots

    rows, found = cell.encoder.rows(cell.train.iloc[:ROWS]), {}
    for label, members in zip(dear.sets.labels, dear.sets.members, strict=True):
        found[label] = differentiable(dear.decoders.of(members)).entanglement(rows).numpy()
    wide = pd.DataFrame(found)
    table = wide.melt(var_name="set", value_name="entanglement").assign(dataset=cell.dataset)
    report = dear.diagnose(cell.test.iloc[:ROWS])
    figure, (axes,) = plots.sheet(1, width=7.0, height=4.6)
    plots.entanglement(table, axes)
    title = f"{NAMES[cell.dataset]}: entanglement of the paper's preset"
    return table, _titled(figure, f"{title}\n(its dependence fidelity: {report.fidelity:.2f})")


def qualitative(cell: Cell, folder: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """One factual and the counterfactuals of all methods, a column each.

    The row is the first that most methods solve.

    Args:
        cell: data set, classifier and seed.
        folder: where `runs` are stored.
        rows: of that cell.
    """
    shown = [m for m in dict.fromkeys(rows["method"]) if m in SHOWN]
    solved = rows[rows["method"].isin(shown)].groupby("row", sort=False)["success"].mean()
    row = solved.index[int(solved.to_numpy().argmax())]
    names = list(cell.schema.names)
    columns = {"factual": cell.refused.loc[row, names]}
    for method in shown:
        columns[method] = counterfactuals(folder, cell, method).loc[row, names]
    table = pd.DataFrame(columns)
    found = rows[rows["row"] == row].set_index("method").loc[shown]
    table.loc["acted on"] = ["", *found["acted_on"]]
    table.loc["cost"] = ["", *(f"{c:.2f}" for c in found["cost"])]
    table.loc["accepted"] = ["no", *("yes" if success else "no" for success in found["success"])]
    return table.rename_axis(index="feature").reset_index()


def _frontier(rows: pd.DataFrame) -> Figure:
    """Cost against support, a panel for each cell."""
    from dear_plugin import plots

    cells = list(rows.groupby(CELL, sort=False))
    columns = min(len(cells), 2)
    lines = -(-len(cells) // columns)
    figure, panels = plots.sheet(len(cells), width=6.2, height=4.2 * lines, columns=columns)
    for axes, ((dataset, kind), runs) in zip(panels, cells, strict=True):
        plots.frontier(points(runs), axes)
        axes.set_title(f"{NAMES[dataset]}, {kind.upper()}", fontsize=10)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def _by_classifier(
    rows: pd.DataFrame,
    draw: Callable[[pd.DataFrame, Axes], None],
    *,
    width: float = 5.8,
    height: float,
) -> Figure:
    """One panel for each classifier."""
    from dear_plugin import plots

    groups = list(rows.groupby("classifier", sort=False))
    figure, panels = plots.sheet(len(groups), width=width, height=height)
    for axes, (kind, part) in zip(panels, groups, strict=True):
        draw(part, axes)
        axes.set_title(str(kind).upper(), fontsize=10)
    return figure


def _titled(figure: Figure, title: str) -> Figure:
    figure.suptitle(title, fontsize=12)
    return figure
