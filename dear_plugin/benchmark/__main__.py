"""`python -m dear_plugin.benchmark engine`: tables on the real data, as CSV and Markdown."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from dear_plugin._version import __version__
from dear_plugin.benchmark.engine import Row, fidelity_rows, reliability_rows
from dear_plugin.benchmark.independence import independence_rows
from dear_plugin.benchmark.protocol import LOADERS, cells
from dear_plugin.errors import DearError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; 0 when it went well, 2 on a mistake of the caller."""
    options = _parser().parse_args(arguments)
    try:
        _engine(options)
    except DearError as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


def _engine(options: argparse.Namespace) -> None:
    fidelity: list[Row] = []
    reliability: list[Row] = []
    independence: list[Row] = []
    for dataset in options.datasets:
        for kind in options.models:
            found = cells(dataset, kind, options.seeds, options.cache)
            for i, cell in enumerate(tqdm(found, desc=f"{dataset} {kind}", total=options.seeds)):
                if not i and kind == options.models[0]:
                    fidelity += fidelity_rows(cell)
                    independence += independence_rows(cell)
                reliability += reliability_rows(cell, options.rows)
    _write("fidelity", fidelity, options.out)
    _write("independence", independence, options.out)
    _write("reliability", reliability, options.out)


def _write(name: str, rows: Iterable[Row], folder: Path) -> None:
    """A table as CSV and Markdown, with what it was made with."""
    table = pd.DataFrame(list(rows))
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False)
    made = (
        f"dear-plugin {__version__}, torch {torch.__version__}, numpy {np.__version__}, pandas"
        f" {pd.__version__}, Python {platform.python_version()}, {platform.machine()},"
        f" {torch.get_num_threads()} threads"
    )
    text = f"{_markdown(table)}\n\n{made}\n"
    (folder / f"{name}.md").write_text(text, encoding="utf8")
    print(f"\n{name}\n\n{text}", flush=True)


def _markdown(table: pd.DataFrame) -> str:
    """A Markdown table, numbers to three decimals."""
    shown = table.map(lambda v: f"{v:.3f}" if isinstance(v, float) else str(v))
    lines = [list(table.columns), ["---"] * len(table.columns), *shown.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dear_plugin.benchmark", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    engine = commands.add_parser("engine", help="fidelity, reliability, support, agreement")
    engine.add_argument("--datasets", nargs="+", choices=tuple(LOADERS), default=tuple(LOADERS))
    engine.add_argument("--models", nargs="+", choices=("lr", "ann"), default=("lr", "ann"))
    engine.add_argument("--seeds", type=int, default=3)
    engine.add_argument("--rows", type=int, default=200)
    engine.add_argument("--out", type=Path, default=Path("results/engine"))
    engine.add_argument("--cache", type=Path, default=None, help="keep trained classifiers here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
