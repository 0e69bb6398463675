"""Summary: the rows of all runs as the paper's table, a table of metrics, and a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.method_specs import METHOD_SPECS
from dear_plugin.benchmark.tables import Row

CELL = ["dataset", "classifier"]
STARRED = 0.5

# The paper's table: success rate, constraint violations, yNN; None where it gives none.
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
CELLS = [(d, c) for d in ("adult", "compas", "gmc") for c in ("lr", "ann")]


def reliability(rows: pd.DataFrame) -> list[Row]:
    """SR / CV / yNN of every method and cell, the paper's in brackets: one line per method.

    SR is over all rows; CV, the mean number of changed protected features, and yNN are over
    solved rows. A star marks methods that solve fewer than half of the rows, as in the paper.
    """
    cells = [cell for cell in CELLS if (rows[CELL] == cell).all(axis=1).any()]
    lines: list[Row] = []
    for method, runs in rows.groupby("method", sort=False):
        line: dict[str, Any] = {"method": method}
        for dataset, kind in cells:
            reported = _paper(METHOD_SPECS[str(method)].paper, dataset, kind)
            cell = runs[(runs[CELL] == [dataset, kind]).all(axis=1)]
            line[f"{dataset} {kind}"] = _three(cell) + (f" ({reported})" if reported else "")
        lines.append(line)
    return lines


def measures(rows: pd.DataFrame) -> Iterator[Row]:
    """All metrics of every method and cell; costs and the like are of solved rows."""
    for (dataset, kind, method), runs in rows.groupby([*CELL, "method"], sort=False):
        solved = runs[runs["success"]]
        yield {
            "dataset": dataset,
            "classifier": kind,
            "method": method,
            "rows": len(runs),
            "success": float(runs["success"].mean()),
            "zero_actions": _mean(solved["zero"]),
            "violation_rate": _mean(solved["violations"] > 0),
            "violations": _mean(solved["violations"]),
            **{f"{name}_median": _median(solved[name]) for name in _MEDIANS},
            "ynn": _mean(solved["ynn"]),
            "support": _mean(solved["support"]),
            "redundancy": _mean(solved["redundancy"]),
            "fit_cpu_s": float(runs.groupby("seed")["fit_cpu_s"].first().mean()),
            "cpu_ms_a_row": 1000.0 * float(runs["cpu_s"].mean()),
        }


def classifiers(rows: pd.DataFrame) -> Iterator[Row]:
    """The accuracies of the classifiers and the paper's."""
    reported = {"adult": (0.83, 0.84), "compas": (0.84, 0.85), "gmc": (0.92, 0.93)}
    for (dataset, kind, seed), runs in rows.groupby([*CELL, "seed"], sort=False):
        first = runs.iloc[0]
        yield {
            "dataset": dataset,
            "classifier": kind,
            "seed": seed,
            "accuracy": float(first["accuracy"]),
            "paper": reported[dataset][kind == "ann"],
            "rows": int(first["rows"]),
            "zero_gradient": float(first["plateau"]),
        }


def comparison(rows: pd.DataFrame, family: str) -> Iterator[Row]:
    """A family of DEAR compared with every baseline, on rows that both solve, at matched support.

    The line of the family with the lowest cost at the baseline's mean yNN or more is used, or the
    one with the highest yNN if none has; `cheaper` is whether its median cost is lower.

    Args:
        rows: of all runs.
        family: of DEAR.
    """
    for (dataset, kind), cell in rows.groupby(CELL, sort=False):
        own = _lines(cell[cell["family"] == family])
        for baseline, other in _lines(cell[~cell["family"].str.startswith("DEAR")]).items():
            yield {"dataset": dataset, "classifier": kind, **_match(own, baseline, other)}


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Median cost and mean yNN of every method of one cell, for the figure of both."""
    points = [
        {
            "method": method,
            "family": runs["family"].iloc[0],
            "success": runs["success"].mean(),
            "cost": _median(runs.loc[runs["success"], "cost"]),
            "ynn": _mean(runs.loc[runs["success"], "ynn"]),
        }
        for method, runs in rows.groupby("method", sort=False)
    ]
    return pd.DataFrame(points)


_MEDIANS = ("cost", "direct_cost", "indirect_cost", "suppressed_cost", "l0", "l2", "linf")


def _lines(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of every method, by seed and row."""
    return {
        str(method): runs.set_index(["seed", "row"])
        for method, runs in rows.groupby("method", sort=False)
    }


def _match(own: Mapping[str, pd.DataFrame], baseline: str, other: pd.DataFrame) -> dict[str, Any]:
    """One baseline and the line of DEAR at matched support."""
    solved = other[other["success"]]
    rate = float(other["success"].mean())
    line: dict[str, Any] = {"baseline": baseline, "baseline_success": rate}
    line["starred"] = "*" if rate < STARRED else ""
    if not len(solved) or not own:
        return line | {"cheaper": "" if own else "not run"}
    pairs = [(name, _both(runs, solved)) for name, runs in own.items()]
    enough = [p for p in pairs if _mean(p[1]["ynn"]) >= _mean(p[1]["ynn_baseline"])]
    name, both = (
        min(enough, key=lambda pair: _median(pair[1]["cost"]))
        if enough
        else max(pairs, key=lambda pair: _mean(pair[1]["ynn"]))
    )
    cost, cost_baseline = _median(both["cost"]), _median(both["cost_baseline"])
    return line | {
        "both": len(both),
        "baseline_ynn": _mean(both["ynn_baseline"]),
        "baseline_cost": cost_baseline,
        "dear": name,
        "ynn": _mean(both["ynn"]),
        "cost": cost,
        "matched": bool(enough),
        "cheaper": "yes" if enough and cost < cost_baseline else "NO",
    }


def _both(own: pd.DataFrame, solved: pd.DataFrame) -> pd.DataFrame:
    """Cost and yNN of rows that both solve."""
    columns = own.loc[own["success"], ["cost", "ynn"]]
    return columns.join(solved[["cost", "ynn"]], how="inner", rsuffix="_baseline")


def _three(runs: pd.DataFrame) -> str:
    """SR / CV / yNN of one method and cell."""
    if not len(runs):
        return ""
    solved = runs[runs["success"]]
    rate = float(runs["success"].mean())
    star = "*" if rate < STARRED else ""
    return f"{rate:.2f}{star} {_shown(_mean(solved['violations']))} {_shown(_mean(solved['ynn']))}"


def _paper(name: str, dataset: str, kind: str) -> str:
    """The values of the paper's table, "" if it has no such line."""
    if name not in PAPER:
        return ""
    return " ".join(map(_shown, PAPER[name][CELLS.index((dataset, kind))]))


def _shown(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.2f}"


def _mean(column: pd.Series) -> float:
    return float(column.mean()) if len(column) else float("nan")


def _median(column: pd.Series) -> float:
    return float(column.median()) if len(column) else float("nan")
