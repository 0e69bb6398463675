"""Reproduce tables: rows of `reproduce` in; the preset, the sweep and the requirement out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isnan

import pandas as pd

from dear_plugin.benchmark.experiment import Requirement
from dear_plugin.benchmark.reproduce import LINE_SEARCH, PRESET
from dear_plugin.benchmark.summary import CELL, CELLS, PAPER
from dear_plugin.benchmark.tables import Row

# How close to the paper's yNN a cell is to be, and in how many cells.
NEAR, ENOUGH = 0.1, 4

Measure = Callable[[pd.DataFrame], float]


def preset(rows: pd.DataFrame) -> Iterator[Row]:
    """The literal preset and the line search, one line for each cell; over solved rows.

    Numbers are means over the seeds, followed by the least and the largest where there are
    several. `zero_actions` is the share of the successes whose action has size zero, and the
    columns `acting` leave these out.

    Args:
        rows: of `reproduce.runs`.
    """
    for name in (PRESET.name, LINE_SEARCH.name):
        for cell, part in _by_cell(rows[rows["variant"] == name]):
            acting = part[~part["zero"]]
            yield {
                "line": name,
                "dataset": cell[0],
                "classifier": cell[1],
                "rows": len(part),
                "success": _over_seeds(part, _success),
                "paper_success": _paper(cell, 0),
                "cv": _over_seeds(part, _violations),
                "ynn": _over_seeds(part, _ynn),
                "paper_ynn": _paper(cell, 2),
                "within .1": "yes" if _is_near(part, cell) else "no",
                "median_cost": _over_seeds(part, _cost),
                "zero_actions": _over_seeds(part, _zero),
                "acting_success": _over_seeds(part, _acting),
                "acting_ynn": _over_seeds(acting, _ynn),
                "acting_median_cost": _over_seeds(acting, _cost),
            }


def sweep(rows: pd.DataFrame) -> Iterator[Row]:
    """Success, yNN, median cost and share of zero actions of every setting: one line for each.

    Args:
        rows: of `reproduce.runs`, of one seed.
    """
    reported = {" ".join(cell): f"{_paper(cell, 0):.2f} {_paper(cell, 2):.2f}" for cell in CELLS}
    yield {"setting": "the paper: success, yNN", **reported, "within .1": ""}
    for name, runs in rows.groupby("variant", sort=False):
        cells = dict(_by_cell(runs))
        line = {" ".join(cell): _four(part) for cell, part in cells.items()}
        near = sum(_is_near(part, cell) for cell, part in cells.items())
        yield {"setting": name, **line, "within .1": f"{near} of {len(cells)}"}


def requirement(rows: pd.DataFrame) -> Iterator[Requirement]:
    """Whether the literal preset is near the paper's yNN, and which setting is nearest."""
    counts = {
        str(name): sum(_is_near(part, cell) for cell, part in _by_cell(runs))
        for name, runs in rows.groupby("variant", sort=False)
        if name != LINE_SEARCH.name
    }
    best = max(counts, key=lambda name: counts[name])
    for what, count in (
        (f"the literal preset within {NEAR:g} of the paper's yNN", counts[PRESET.name]),
        (f"the setting of the sweep with most such cells: {best}", counts[best]),
    ):
        yield Requirement(what, f"{ENOUGH} of 6 cells", f"{count} cells", count >= ENOUGH)


def _by_cell(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """The cells of the paper's table that have rows."""
    for cell in CELLS:
        part = rows[(rows[CELL] == list(cell)).all(axis=1)]
        if len(part):
            yield cell, part


def _paper(cell: tuple[str, str], which: int) -> float:
    """The paper's value: 0 is the success rate, 2 is yNN."""
    return float(PAPER["DEAR"][CELLS.index(cell)][which] or 0.0)


def _is_near(part: pd.DataFrame, cell: tuple[str, str]) -> bool:
    """Whether the yNN of a cell, the mean over its seeds, is near the paper's."""
    found = _each_seed(part, _ynn).mean()
    return bool(abs(found - _paper(cell, 2)) <= NEAR)


def _success(rows: pd.DataFrame) -> float:
    return float(rows["success"].mean())


def _violations(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["success"], "violations"].mean())


def _ynn(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["success"], "ynn"].mean())


def _cost(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["success"], "cost"].median())


def _zero(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["success"], "zero"].mean())


def _acting(rows: pd.DataFrame) -> float:
    return float((rows["success"] & ~rows["zero"]).mean())


def _each_seed(part: pd.DataFrame, measure: Measure) -> pd.Series:
    return pd.Series([measure(rows) for _, rows in part.groupby("seed")], dtype=float)


def _over_seeds(part: pd.DataFrame, measure: Measure) -> str:
    """The mean of a measure over seeds, with the least and the largest of several."""
    values = _each_seed(part, measure)
    ends = f" ({values.min():.2f} to {values.max():.2f})" if len(values) > 1 else ""
    return f"{values.mean():.2f}{ends}" if values.notna().any() else ""


def _four(part: pd.DataFrame) -> str:
    """Success, yNN, median cost and share of zero actions of one setting and cell."""
    values = (measure(part) for measure in (_success, _ynn, _cost, _zero))
    return " ".join("-" if isnan(value) else f"{value:.2f}" for value in values)
