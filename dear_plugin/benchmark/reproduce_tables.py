"""The tables of `reproduce`: the paper's table, the preset, the sweep, training, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from dear_plugin.benchmark.reproduce_figures import figures
from dear_plugin.benchmark.tables import Row, Table, shown

PRESET, LINE_SEARCH, OWN = "to the letter", "line search", "DEAR"
ENTANGLEMENT = "entanglement"
CELL = ["dataset", "classifier"]
CELLS = [(d, c) for d in ("adult", "compas", "gmc") for c in ("lr", "ann")]
# The record of the training of autoencoders.
RECORD = (
    "autoencoders",
    "epochs",
    "stopped",
    "held_out",
    "round_trip",
    "dependence",
    "entanglement",
    "fit_cpu_s",
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
    yield "sweep", sweep(rows[rows["order"] == 0])
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
            reported = (
                " ".join(map(shown, PAPER[name][CELLS.index(cell)])) if name in PAPER else ""
            )
            success, cv, ynn, *_ = _measures(part).values()
            values = f"{success:.2f}{'*' if success < STARRED else ''} {shown(cv)} {shown(ynn)}"
            texts[" ".join(cell)] = values + f" ({reported})" * bool(reported)
        yield {"method": line, **texts}


def preset(rows: pd.DataFrame) -> Iterator[Row]:
    """The literal preset and the line search, one line for each cell; over solved rows.

    Numbers are means over seeds, with the smallest and the largest of several. `zero_actions` is
    the share of successes whose action has size zero. The columns `acting` leave these out.
    """
    for name in (PRESET, LINE_SEARCH):
        for cell, part in _by_cell(rows[rows["line"] == name]):
            found = _over_seeds(part)
            acts = _over_seeds(part.assign(success=part["success"] & ~part["zero"]))
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
    """Success, yNN, median cost and share of zero actions of every setting, for one seed."""
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
    """Whether the mean yNN of a cell over its seeds is near the paper's."""
    found = [_measures(rows)["ynn"] for _, rows in part.groupby("seed")]
    return bool(abs(np.mean(found) - _reported(cell, 2)) <= NEAR)


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


def _over_seeds(part: pd.DataFrame) -> dict[str, str]:
    """The mean of each measure over seeds, with the smallest and the largest of several."""
    found = pd.DataFrame([_measures(rows) for _, rows in part.groupby("seed")])
    ends = {n: f" ({v.min():.2f} to {v.max():.2f})" * (len(v) > 1) for n, v in found.items()}
    known = {n: v for n, v in found.items() if v.notna().any()}
    return {n: f"{known[n].mean():.2f}{ends[n]}" if n in known else "" for n in found}
