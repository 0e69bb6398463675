"""The paper's experiment: every method on the same refused people of every cell, kept as it comes.

python -m dear_plugin.benchmark paper --out results/paper
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark.contenders import CONTENDERS, Stage
from dear_plugin.benchmark.people import Answers
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.benchmark.tables import made_with

RECORD = "record.json"


def runs(cell: Cell, methods: Sequence[str], rows: int, folder: Path) -> Iterator[pd.DataFrame]:
    """The people of every method on a cell; what the folder holds already is read from there.

    Args:
        cell: data set, classifier and seed.
        methods: names of `CONTENDERS`.
        rows: how many refused rows, at most.
        folder: where every run is kept: people, counterfactuals, and a record of how.
    """
    stage, refused = Stage(cell), cell.refused.iloc[:rows]
    facts = _facts(cell, len(refused))
    for name in methods:
        home = folder / cell.key / _file_name(name)
        if not _is_kept(home, facts):
            _run(stage, name, refused, home)
            record = {"method": name, **facts, "made_with": made_with()}
            # The record comes last: it says that the rest is whole.
            (home / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
        people = pd.read_csv(home / "people.csv", keep_default_na=False, na_values=["nan"])
        yield people.assign(method=name, family=CONTENDERS[name].family, **facts)


def counterfactuals(folder: Path, cell: Cell, method: str) -> pd.DataFrame:
    """What a kept run would have people become, by the labels of their rows."""
    path = folder / cell.key / _file_name(method) / "counterfactuals.csv"
    return pd.read_csv(path, index_col="row", keep_default_na=False)


def _facts(cell: Cell, rows: int) -> dict[str, Any]:
    """What a run is known by, and how its classifier came out."""
    return {
        "dataset": cell.dataset,
        "classifier": cell.kind,
        "seed": cell.seed,
        "rows": rows,
        "accuracy": cell.accuracy,
        "plateau": cell.plateau,
    }


def _run(stage: Stage, name: str, refused: pd.DataFrame, home: Path) -> None:
    """One method on one cell, written down."""
    method, seconds = stage.ready(CONTENDERS[name])
    answers = Answers.of(method, refused, seconds)
    home.mkdir(parents=True, exist_ok=True)
    (home / RECORD).unlink(missing_ok=True)
    answers.people(stage.cell).to_csv(home / "people.csv", index=False, na_rep="nan")
    after = answers.recourses.counterfactuals[list(stage.cell.schema.names)]
    after.to_csv(home / "counterfactuals.csv", index_label="row")


def _is_kept(home: Path, facts: Mapping[str, Any]) -> bool:
    """Whether a folder holds a whole run of the same cell."""
    if not (home / RECORD).exists():
        return False
    record = json.loads((home / RECORD).read_text(encoding="utf8"))
    return all(record.get(name) == value for name, value in facts.items())


def _file_name(method: str) -> str:
    """A name that is a folder's everywhere."""
    return "".join(c if c.isalnum() else "-" for c in method).strip("-").lower()
