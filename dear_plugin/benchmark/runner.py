"""Measure the cells of a command of the benchmark, store them, and write its tables."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from dear_plugin.benchmark.tables import Table, commit, write

Cell = Mapping[str, Any]
PACKAGES = ("dear_plugin", "dear_dice", "dear_alibi")
# Files that make tables of measurements: a change of these repeats no measurement.
AFTERWARDS = ("tables", "figures", "runner", "__main__")
# Columns of a stored cell: its CPU seconds, when it began and ended, and the commit.
TAKEN = SECONDS, BEGUN, DONE, COMMIT = ("cell_cpu_s", "cell_begun", "cell_done", "cell_commit")


@dataclass(frozen=True)
class Option:
    """An argument of a command.

    Attributes:
        help: the description of the argument.
        quick: its value with `--quick`, names or a number.
        choices: the allowed names; none for a number.
        preset: its value for the published tables; None for all choices.
    """

    help: str
    quick: Any
    choices: Collection[str] = ()
    preset: Any = None

    @property
    def usual(self) -> Any:
        """The value of the argument if none is given."""
        return tuple(self.choices) if self.preset is None else self.preset


@dataclass(frozen=True)
class Spec:
    """A command: its cells, how one is measured, and the tables of the measurements.

    Attributes:
        name: the name of the command, and of the folder of its tables.
        help: the description of the command.
        options: its arguments.
        cells: a function from options to keyword arguments of `measure`; cells that share a fit
            follow each other.
        measure: a function from a folder for trained weights and a cell to its tidy rows.
        tables: a function from the tidy rows of all cells to named tables and figures.
        packages: the packages whose versions the tables state.
    """

    name: str
    help: str
    options: Mapping[str, Option]
    cells: Callable[[Namespace], Iterable[Cell]]
    measure: Callable[..., pd.DataFrame]
    tables: Callable[[pd.DataFrame], Iterable[tuple[str, Table]]]
    packages: Sequence[str] = ()


def stored(folder: Path, spec: Spec, cell: Cell) -> pd.DataFrame:
    """The tidy rows of a cell, with its arguments and `TAKEN` as columns.

    A cell is measured once for the same sources. A file with the name of a cell is complete.
    """
    path = _path(folder, spec, cell)
    if not path.exists():
        begun, start = _now(), _cpu_s()
        found = spec.measure(folder / "models", **cell).assign(**cell)
        taken = dict(zip(TAKEN, (_cpu_s() - start, begun, _now(), commit()), strict=True))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        found.assign(**taken).to_csv(part, index=False, na_rep="nan")
        part.replace(path)
    texts = {"dtype": {COMMIT: str}, "keep_default_na": False, "na_values": ["nan"]}
    return pd.read_csv(path, float_precision="round_trip", **texts)


def _path(folder: Path, spec: Spec, cell: Cell) -> Path:
    """The path of a cell's file; its name has a digest of the cell and of the sources."""
    digest = sha256(json.dumps([spec.name, dict(cell), sources()]).encode()).hexdigest()
    words = "-".join(str(value) for value in cell.values())
    name = "".join(c if c.isalnum() else "-" for c in words)
    return folder / "cells" / spec.name / f"{name}-{digest[:12]}.csv"


def grid(**axes: Iterable[Any]) -> Iterator[Cell]:
    """All combinations of values; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def run(spec: Spec, options: Namespace) -> Iterator[str]:
    """Measure the cells that are not stored, write tables and figures, and yield their texts."""
    found = measured(spec, options)
    for name, table in spec.tables(found):
        yield write(name, table, options.out / spec.name, spec.packages)


def measured(spec: Spec, options: Namespace) -> pd.DataFrame:
    """The tidy rows of all cells, also stored as one file."""
    shown = tqdm([*spec.cells(options)], desc=spec.name)
    found = pd.concat([stored(options.store, spec, cell) for cell in shown], ignore_index=True)
    found = found.drop(columns=list(TAKEN))
    found.to_csv(options.store / f"{spec.name}.csv", index=False, na_rep="nan")
    return found


def log(spec: Spec, options: Namespace) -> dict[str, Any]:
    """The CPU time of a command's cells, when they were measured, and at which commit."""
    cells = spec.cells(options)
    found = pd.concat([stored(options.store, spec, cell).iloc[[0]] for cell in cells])
    return {
        "command": spec.name,
        "cells": len(found),
        "CPU minutes": float(found[SECONDS].sum()) / 60.0,
        "begun": found[BEGUN].min(),
        "done (UTC)": found[DONE].max(),
        "commit": ", ".join(found[COMMIT].unique()),
    }


@cache
def sources() -> str:
    """A digest of all sources that measurements depend on."""
    specs = [spec for package in PACKAGES if (spec := find_spec(package))]
    homes = [Path(home) for spec in specs for home in spec.submodule_search_locations or ()]
    paths = sorted(path for home in homes for path in home.rglob("*.py"))
    kept = [p for p in paths if not p.stem.endswith(AFTERWARDS) and p.parent.name != "plots"]
    return sha256(b"".join(path.read_bytes() for path in kept)).hexdigest()


def _now() -> str:
    """The time, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M}"


def _cpu_s() -> float:
    """The CPU seconds of this process and its finished children."""
    return sum(os.times()[:4])
