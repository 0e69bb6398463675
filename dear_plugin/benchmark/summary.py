"""Summary: people of many runs as the paper's table, a table of costs, and a contest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.contenders import CONTENDERS
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


def reliability(people: pd.DataFrame) -> list[Row]:
    """SR / CV / yNN of every method and cell, the paper's in brackets: one line per method.

    SR is over all people; CV, the mean number of protected features changed, and yNN are over
    those solved. Where fewer than half were solved there is a star, as in the paper.
    """
    cells = [cell for cell in CELLS if (people[CELL] == cell).all(axis=1).any()]
    lines: list[Row] = []
    for method, runs in people.groupby("method", sort=False):
        line: dict[str, Any] = {"method": method}
        for dataset, kind in cells:
            told = _paper(CONTENDERS[str(method)].paper, dataset, kind)
            cell = runs[(runs[CELL] == [dataset, kind]).all(axis=1)]
            line[f"{dataset} {kind}"] = _three(cell) + (f" ({told})" if told else "")
        lines.append(line)
    return lines


def measures(people: pd.DataFrame) -> Iterator[Row]:
    """Every measure of every method and cell; costs and the like are of people solved."""
    for (dataset, kind, method), runs in people.groupby([*CELL, "method"], sort=False):
        done = runs[runs["success"]]
        yield {
            "dataset": dataset,
            "classifier": kind,
            "method": method,
            "people": len(runs),
            "success": float(runs["success"].mean()),
            "violation_rate": _mean(done["violations"] > 0),
            "violations": _mean(done["violations"]),
            **{f"{name}_median": _median(done[name]) for name in _MEDIANS},
            "ynn": _mean(done["ynn"]),
            "support": _mean(done["support"]),
            "redundancy": _mean(done["redundancy"]),
            "fit_cpu_s": float(runs.groupby("seed")["fit_cpu_s"].first().mean()),
            "cpu_ms_a_row": 1000.0 * float(runs["cpu_s"].mean()),
        }


def classifiers(people: pd.DataFrame) -> Iterator[Row]:
    """How the classifiers came out, beside the paper's accuracies."""
    told = {"adult": (0.83, 0.84), "compas": (0.84, 0.85), "gmc": (0.92, 0.93)}
    for (dataset, kind, seed), runs in people.groupby([*CELL, "seed"], sort=False):
        first = runs.iloc[0]
        yield {
            "dataset": dataset,
            "classifier": kind,
            "seed": seed,
            "accuracy": float(first["accuracy"]),
            "paper": told[dataset][kind == "ann"],
            "people": int(first["rows"]),
            "zero_gradient": float(first["plateau"]),
        }


def contest(people: pd.DataFrame, family: str) -> Iterator[Row]:
    """Our family against every rival, on people whom both solve, at matched support.

    Of the family the cheapest line that has the rival's mean yNN or more is taken, the best
    supported one where none has; `ahead` says whether its median cost is lower.

    Args:
        people: of all runs.
        family: ours.
    """
    for (dataset, kind), cell in people.groupby(CELL, sort=False):
        own = _lines(cell[cell["family"] == family])
        for rival, theirs in _lines(cell[~cell["family"].str.startswith("DEAR")]).items():
            yield {"dataset": dataset, "classifier": kind, **_match(own, rival, theirs)}


def points(people: pd.DataFrame) -> pd.DataFrame:
    """Median cost and mean yNN of every method of one cell, for the picture of both."""
    rows = [
        {
            "method": method,
            "family": runs["family"].iloc[0],
            "success": runs["success"].mean(),
            "cost": _median(runs.loc[runs["success"], "cost"]),
            "ynn": _mean(runs.loc[runs["success"], "ynn"]),
        }
        for method, runs in people.groupby("method", sort=False)
    ]
    return pd.DataFrame(rows)


_MEDIANS = ("cost", "direct_cost", "indirect_cost", "suppressed_cost", "l0", "l2", "linf")


def _lines(people: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The people of every method, by seed and row."""
    return {
        str(method): runs.set_index(["seed", "row"])
        for method, runs in people.groupby("method", sort=False)
    }


def _match(own: Mapping[str, pd.DataFrame], rival: str, theirs: pd.DataFrame) -> dict[str, Any]:
    """One rival against the line of ours whose support is matched to it."""
    solved = theirs[theirs["success"]]
    line: dict[str, Any] = {"rival": rival, "rival_success": float(theirs["success"].mean())}
    line["starred"] = "*" if line["rival_success"] < STARRED else ""
    if not len(solved) or not own:
        return line | {"ahead": "" if own else "not run"}
    pairs = [(name, _both(runs, solved)) for name, runs in own.items()]
    enough = [p for p in pairs if _mean(p[1]["ynn"]) >= _mean(p[1]["ynn_rival"])]
    name, both = (
        min(enough, key=lambda pair: _median(pair[1]["cost"]))
        if enough
        else max(pairs, key=lambda pair: _mean(pair[1]["ynn"]))
    )
    cost, other = _median(both["cost"]), _median(both["cost_rival"])
    return line | {
        "both": len(both),
        "rival_ynn": _mean(both["ynn_rival"]),
        "rival_cost": other,
        "ours": name,
        "ynn": _mean(both["ynn"]),
        "cost": cost,
        "matched": bool(enough),
        "ahead": "yes" if enough and cost < other else "NO",
    }


def _both(own: pd.DataFrame, solved: pd.DataFrame) -> pd.DataFrame:
    """Cost and yNN of people whom both solve."""
    mine = own.loc[own["success"], ["cost", "ynn"]]
    return mine.join(solved[["cost", "ynn"]], how="inner", rsuffix="_rival")


def _three(runs: pd.DataFrame) -> str:
    """SR / CV / yNN of one method and cell."""
    if not len(runs):
        return ""
    done = runs[runs["success"]]
    rate = float(runs["success"].mean())
    star = "*" if rate < STARRED else ""
    return f"{rate:.2f}{star} {_said(_mean(done['violations']))} {_said(_mean(done['ynn']))}"


def _paper(name: str, dataset: str, kind: str) -> str:
    """What the paper's table says, "" where it has no such line."""
    if name not in PAPER:
        return ""
    return " ".join(map(_said, PAPER[name][CELLS.index((dataset, kind))]))


def _said(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.2f}"


def _mean(column: pd.Series) -> float:
    return float(column.mean()) if len(column) else float("nan")


def _median(column: pd.Series) -> float:
    return float(column.median()) if len(column) else float("nan")
