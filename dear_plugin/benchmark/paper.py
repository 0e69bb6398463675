"""Paper: all methods on the same rejected rows of every cell; every run is stored.

python -m dear_plugin.benchmark paper --out results/paper
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark.method_run import MethodRun
from dear_plugin.benchmark.method_specs import METHOD_SPECS, FittedMethods
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.tables import made_with

# The files of a stored run.
RECORD, ROWS = "record.json", "people.csv"


def runs(cell: Cell, methods: Sequence[str], rows: int, folder: Path) -> Iterator[pd.DataFrame]:
    """The rows of every method on a cell; stored runs are read.

    Args:
        cell: data set, classifier and seed.
        methods: names of `METHOD_SPECS`.
        rows: the largest number of rejected rows.
        folder: where runs are stored: rows, counterfactuals and a record of the settings.
    """
    methods_of_cell, refused = FittedMethods(cell), cell.refused.iloc[:rows]
    facts = _facts(cell, len(refused))
    for name in methods:
        home = folder / cell.key / file_name(name)
        if not _is_kept(home, facts):
            _run(methods_of_cell, name, refused, home)
            record = {"method": name, **facts, "made_with": made_with()}
            # Written last: it marks the run as complete.
            (home / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
        frame = pd.read_csv(home / ROWS, keep_default_na=False, na_values=["nan"])
        yield frame.assign(method=name, family=METHOD_SPECS[name].family, **facts)


def counterfactuals(folder: Path, cell: Cell, method: str) -> pd.DataFrame:
    """The counterfactuals of a stored run, by row label."""
    path = folder / cell.key / file_name(method) / "counterfactuals.csv"
    return pd.read_csv(path, index_col="row", keep_default_na=False)


def _facts(cell: Cell, rows: int) -> dict[str, Any]:
    """What identifies a run, and the accuracy and plateau of its classifier."""
    return {
        "dataset": cell.dataset,
        "classifier": cell.kind,
        "seed": cell.seed,
        "rows": rows,
        "accuracy": cell.accuracy,
        "plateau": cell.plateau,
    }


def _run(methods: FittedMethods, name: str, refused: pd.DataFrame, home: Path) -> None:
    """Run and store one method on one cell."""
    method, seconds = methods.fitted(METHOD_SPECS[name])
    run = MethodRun.of(method, refused, seconds)
    home.mkdir(parents=True, exist_ok=True)
    (home / RECORD).unlink(missing_ok=True)
    run.rows(methods.cell).to_csv(home / ROWS, index=False, na_rep="nan")
    after = run.recourses.counterfactuals[list(methods.cell.schema.names)]
    after.to_csv(home / "counterfactuals.csv", index_label="row")


def _is_kept(home: Path, facts: Mapping[str, Any]) -> bool:
    """Whether a folder holds a complete run of the same cell."""
    if not (home / RECORD).exists():
        return False
    record = json.loads((home / RECORD).read_text(encoding="utf8"))
    return all(record.get(name) == value for name, value in facts.items())


def file_name(method: str) -> str:
    """A name that is a valid folder on all systems."""
    return "".join(c if c.isalnum() else "-" for c in method).strip("-").lower()
