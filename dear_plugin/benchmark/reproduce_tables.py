"""The tables and figures of `reproduce`: the paper's, the preset, the sweep, training, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, Table, shown
from dear_plugin.tell.describe import ASSOCIATION

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

PRESET, LINE_SEARCH, OWN = "to the letter", "line search", "DEAR"
ENTANGLEMENT = "entanglement"
CELL = ["dataset", "classifier"]
CELLS = [(d, c) for d in ("adult", "compas", "gmc") for c in ("lr", "ann")]
# The record of the training of autoencoders.
RECORD = (
    *("autoencoders", "epochs", "stopped", "held_out", "round_trip", "dependence"),
    *(ENTANGLEMENT, "fit_cpu_s"),
)
STARRED, NEAR = 0.5, 0.1
# The paper's table: success rate, constraint violations, yNN; None if it has no value.
PAPER: Mapping[str, tuple[tuple[float | None, float | None, float | None], ...]] = {
    "REVISE": ((0.35, 0.0, 0.37), (1.0, 0.12, 0.72), (0.63, 0.11, 1.0), (0.99, 0.12, 0.98),
               (0.99, None, 1.0), (1.0, None, 0.95)),
    "C-CHVAE": ((0.54, 0.17, 0.53), (1.0, 0.07, 0.61), (1.0, 0.32, 1.0), (1.0, 0.17, 0.96),
                (1.0, None, 0.24), (1.0, None, 0.80)),
    "CLUE": ((0.38, 0.0, 1.0), (1.0, 0.0, 0.25), (0.0, None, None), (0.21, 0.0, 1.0),
             (1.0, None, 1.0), (1.0, None, 0.92)),
    "FACE-K": ((0.99, 0.36, 0.71), (1.0, 0.29, 0.57), (0.99, 0.38, 1.0), (0.60, 0.40, 1.0),
               (1.0, None, 0.95), (1.0, None, 0.96)),
    "FACE-E": ((0.74, 0.38, 0.70), (0.99, 0.30, 0.58), (0.99, 0.41, 1.0), (0.39, 0.40, 1.0),
               (1.0, None, 0.94), (1.0, None, 0.97)),
    "DEAR": ((1.0, 0.0, 0.84), (1.0, 0.0, 0.70), (1.0, 0.0, 1.0), (1.0, 0.01, 1.0),
             (1.0, None, 0.91), (1.0, None, 0.94)),
}  # fmt: skip
ACCURACY = {"adult": (0.83, 0.84), "compas": (0.84, 0.85), "gmc": (0.92, 0.93)}


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """All tables and figures."""
    mixed = found["line"] == ENTANGLEMENT
    flags = {name: found[name].replace({"": False}) == True for name in ("success", "zero")}  # noqa: E712
    rows = found.assign(**flags)[~mixed]
    yield "reliability", reliability(rows)
    yield "literal", preset(rows)
    yield "sweep", sweep(rows)
    yield "training", training(rows)
    yield "classifiers", classifiers(rows)
    groups = rows.groupby("line", sort=False)
    # The preset, and all lines but those of the sweep.
    kept = [own for line, own in groups if line in (PRESET, _method(str(line), own))]
    methods = pd.concat(kept)
    yield "qualitative", qualitative(methods)
    yield from figures(methods, found[mixed])


def reliability(rows: pd.DataFrame) -> Iterator[Row]:
    """Success / violations / yNN of every method and cell, the paper's in brackets.

    Success is over all rows. Violations (the mean number of changed protected features) and yNN
    are over solved rows. A star marks methods that solve fewer than half of the rows.
    """
    for line, runs in rows.groupby("line", sort=False):
        name = _method(str(line), runs)
        if name != line and line not in (PRESET, LINE_SEARCH):
            continue
        texts = {}
        for cell, part in _by_cell(runs):
            success, cv, ynn, *_ = _measures(part).values()
            text = f"{success:.2f}{'*' if success < STARRED else ''} {shown(cv)} {shown(ynn)}"
            if name in PAPER:
                text += f" ({' '.join(map(shown, PAPER[name][CELLS.index(cell)]))})"
            texts[" ".join(cell)] = text
        yield {"method": line, **texts}


def preset(rows: pd.DataFrame) -> Iterator[Row]:
    """The literal preset and the line search, one line for each cell; over solved rows.

    `zero_actions` is the share of successes whose action has size zero. The columns `acting` leave
    these out.
    """
    for name in (PRESET, LINE_SEARCH):
        for cell, part in _by_cell(rows[rows["line"] == name]):
            found = _texts(part)
            acts = _texts(part.assign(success=part["success"] & ~part["zero"]))
            yield {
                "line": name,
                "dataset": cell[0],
                "classifier": cell[1],
                "rows": len(part),
                "paper_success": _reported(cell, 0),
                "paper_ynn": _reported(cell, 2),
                "within .1": "yes" if _is_near(part, cell) else "no",
                **found,
                **{f"acting_{n}": acts[n] for n in ("success", "ynn", "median_cost")},
            }


def sweep(rows: pd.DataFrame) -> Iterator[Row]:
    """Success, yNN, median cost and share of zero actions of every setting."""
    reported = {" ".join(c): f"{_reported(c, 0):.2f} {_reported(c, 2):.2f}" for c in CELLS}
    yield {"setting": "the paper: success, yNN", **reported, "within .1": ""}
    trained = rows[rows["autoencoders"].notna()] if "autoencoders" in rows else rows[:0]
    for name, runs in trained.groupby("line", sort=False):
        cells = dict(_by_cell(runs))
        values = {cell: [*_measures(part).values()] for cell, part in cells.items()}
        line = {" ".join(c): " ".join(map(shown, (v[0], *v[2:]))) for c, v in values.items()}
        near = sum(_is_near(part, cell) for cell, part in cells.items())
        yield {"setting": name, **line, "within .1": f"{near} of {len(cells)}"}


def training(rows: pd.DataFrame) -> Iterator[Row]:
    """The record of each autoencoder's training."""
    if "autoencoders" in rows:
        heads = ["dataset", "seed", *RECORD]
        known = rows[rows["autoencoders"].notna()][heads].drop_duplicates(heads[:3])
        yield from known.astype({"seed": int, "epochs": int}).to_dict("records")


def classifiers(rows: pd.DataFrame) -> Iterator[Row]:
    """The accuracies of the classifiers, with the paper's."""
    for (dataset, kind, seed), runs in rows.groupby([*CELL, "seed"], sort=False):
        yield {
            "dataset": dataset,
            "classifier": kind,
            "seed": int(seed),
            "accuracy": runs["accuracy"].iloc[0],
            "paper": ACCURACY[dataset][kind == "ann"],
            "zero_gradient": runs["plateau"].iloc[0],
        }


def qualitative(rows: pd.DataFrame) -> Iterator[Row]:
    """One factual of Adult and the counterfactuals of all methods, a column each.

    It is the first row that most methods solve.
    """
    own = next((part for cell, part in _by_cell(rows) if cell[0] == "adult"), rows[:0])
    if own.empty:
        return
    row = own.groupby("row", sort=False)["success"].mean().idxmax()
    # Whole numbers are read as floats.
    found = own[own["row"] == row].set_index("line").convert_dtypes()
    for column in found.columns[found.columns.str.startswith("before ") & found.notna().all()]:
        feature = column.removeprefix("before ")
        yield {"feature": feature, "factual": found[column].iloc[0], **found[f"after {feature}"]}
    yield {"feature": "acted on", "factual": "", **found["acted_on"]}
    yield {"feature": "cost", "factual": "", **found["cost"].map("{:.2f}".format)}
    accepted = found["success"].map({True: "yes", False: "no"})
    yield {"feature": "accepted", "factual": "no", **accepted}


def _method(line: str, runs: pd.DataFrame) -> str:
    """The name of a line in the paper's table; lines with autoencoders are DEAR."""
    trained = "autoencoders" in runs and runs["autoencoders"].notna().any()
    return OWN if trained else line


def _by_cell(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """The cells of the paper's table that have rows."""
    for cell in CELLS:
        part = rows[(rows[CELL] == list(cell)).all(axis=1)]
        if len(part):
            yield cell, part


def _reported(cell: tuple[str, str], which: int) -> float:
    """The paper's value of DEAR: the success rate (0) or yNN (2)."""
    return float(PAPER["DEAR"][CELLS.index(cell)][which] or 0.0)


def _is_near(part: pd.DataFrame, cell: tuple[str, str]) -> bool:
    """Whether the yNN of a cell is near the paper's."""
    return bool(abs(_measures(part)["ynn"] - _reported(cell, 2)) <= NEAR)


def _measures(rows: pd.DataFrame) -> dict[str, float]:
    """Success of all rows, and the other measures of solved rows."""
    solved = rows[rows["success"]]
    return {
        "success": rows["success"].mean(),
        "cv": solved["violations"].mean(),
        "ynn": solved["ynn"].mean(),
        "median_cost": solved["cost"].median(),
        "zero_actions": solved["zero"].mean(),
    }


def _texts(part: pd.DataFrame) -> dict[str, str]:
    """Each measure as text; "" where no row has it."""
    return {n: "" if np.isnan(v) else f"{v:.2f}" for n, v in _measures(part).items()}


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
            # The paper has no tiers.
            figure.supxlabel(f"{ASSOCIATION.partition(':')[0]}.", fontsize=9)
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
