"""How a command of the benchmark measures its cells, stores them and writes its tables."""

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
# Files that make tables of what was measured: a change of theirs repeats no measurement.
AFTERWARDS = ("tables", "figures", "runner", "__main__")
# Columns of a stored cell: the CPU seconds it took, when, and the commit.
TAKEN = SECONDS, BEGUN, DONE, COMMIT = ("cell_cpu_s", "cell_begun", "cell_done", "cell_commit")


@dataclass(frozen=True)
class Option:
    """An argument of a command.

    Attributes:
        help: what it is.
        quick: its value with `--quick`, names or a number.
        choices: the names that it takes; none for a number.
        preset: its value, which makes the published tables; None for all choices.
    """

    help: str
    quick: Any
    choices: Collection[str] = ()
    preset: Any = None

    @property
    def usual(self) -> Any:
        """Its value where none is given."""
        return tuple(self.choices) if self.preset is None else self.preset


@dataclass(frozen=True)
class Spec:
    """A command: what is measured, and the tables that are made of it.

    Attributes:
        name: of the command and of the folder of its tables.
        help: what it measures.
        options: its arguments.
        cells: the options in, the keyword arguments of `measure` out, those that share fits side
            by side.
        measure: a folder for trained weights and a cell in, its tidy rows out.
        tables: the tidy rows of all cells in, tables and figures with their names out.
        packages: those whose versions the tables state.
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

    A cell is measured once for the same sources; its file in the folder is complete when it has
    its name.
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
    """The file of a cell; its name has a digest of the cell and of the sources."""
    digest = sha256(json.dumps([spec.name, dict(cell), sources()]).encode()).hexdigest()
    words = "-".join(str(value) for value in cell.values())
    name = "".join(c if c.isalnum() else "-" for c in words)
    return folder / "cells" / spec.name / f"{name}-{digest[:12]}.csv"


def grid(**axes: Iterable[Any]) -> Iterator[Cell]:
    """All combinations of values, the last axis the fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def run(spec: Spec, options: Namespace) -> Iterator[str]:
    """Measure what is not stored yet, and write tables and figures; their texts."""
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
    """What measuring the cells of a command took, when it was done, and of which commit."""
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
    """A digest of the sources that answers and measurements depend on."""
    specs = [spec for package in PACKAGES if (spec := find_spec(package))]
    homes = [Path(home) for spec in specs for home in spec.submodule_search_locations or ()]
    paths = sorted(path for home in homes for path in home.rglob("*.py"))
    kept = [p for p in paths if not p.stem.endswith(AFTERWARDS) and p.parent.name != "plots"]
    return sha256(b"".join(path.read_bytes() for path in kept)).hexdigest()


def _now() -> str:
    """The time, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M}"


def _cpu_s() -> float:
    """The CPU seconds of this process and of those it waited for."""
    return sum(os.times()[:4])
