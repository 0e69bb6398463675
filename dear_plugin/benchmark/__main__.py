"""`python -m dear_plugin.benchmark engine | dice | alibi`: tables, as CSV and Markdown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tqdm.auto import tqdm

from dear_plugin.benchmark import alibi, dice
from dear_plugin.benchmark.engine import fidelity_rows, reliability_rows
from dear_plugin.benchmark.hosts import lines, scene
from dear_plugin.benchmark.independence import independence_rows
from dear_plugin.benchmark.protocol import LOADERS, cells
from dear_plugin.benchmark.tables import Row, write
from dear_plugin.datasets import Dataset, load_adult, load_loan
from dear_plugin.errors import DearError

# What the hosts' tables can be made on; Alibi's own Adult has all categories and no survey weight.
ON_DICE: dict[str, Callable[[], Dataset]] = {"adult": load_adult, "loan": load_loan}
ON_ALIBI: dict[str, Callable[[], Dataset]] = {
    "adult": lambda: load_adult("full"),
    "loan": load_loan,
}
LEFT_OUT: dict[str, tuple[str, ...]] = {"adult": ("fnlwgt",), "loan": ()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; 0 when it went well, 2 on a mistake of the caller."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (DearError, ModuleNotFoundError) as error:
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


def _dice(options: argparse.Namespace) -> None:
    people = scene(ON_DICE[options.dataset](), options.rows)
    outcomes: list[dice.Outcome] = []
    count = len(options.methods) + 2 + ("gradient" in options.methods)
    for outcome in tqdm(dice.contest(people, options.methods), desc="DiCE", total=count):
        outcomes.append(outcome)
    rows = [dice.row_of(outcome, outcomes[0]) for outcome in outcomes]
    _write("dice", rows, options.out, ["dice-ml"])
    _write("dice-marks", lines(dice.marks(outcomes)), options.out, ["dice-ml"])


def _alibi(options: argparse.Namespace) -> None:
    left_out = LEFT_OUT[options.dataset]
    people = scene(ON_ALIBI[options.dataset](), options.rows, without=left_out)
    found = alibi.contest(people, options.steps, options.many, options.epochs)
    rows = list(tqdm(found, desc="Alibi", total=len(options.steps) + 2 + bool(options.many)))
    _write("alibi", rows, options.out, ["alibi"])
    _write("alibi-marks", lines(alibi.marks(rows)), options.out, ["alibi"])


def _write(name: str, rows: Iterable[Row], folder: Path, packages: Sequence[str] = ()) -> None:
    print(f"\n{name}\n\n{write(name, rows, folder, packages)}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dear_plugin.benchmark", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    engine = commands.add_parser("engine", help="fidelity, reliability, support, agreement")
    engine.add_argument("--datasets", nargs="+", choices=tuple(LOADERS), default=tuple(LOADERS))
    engine.add_argument("--models", nargs="+", choices=("lr", "ann"), default=("lr", "ann"))
    engine.add_argument("--seeds", type=int, default=3)
    engine.add_argument("--cache", type=Path, default=None, help="keep trained classifiers here")
    _common(engine, _engine, "engine", 200)
    host = commands.add_parser("dice", help="beside DiCE's own methods")
    host.add_argument("--dataset", choices=tuple(ON_DICE), default="adult")
    host.add_argument("--methods", nargs="+", choices=dice.METHODS, default=dice.METHODS)
    _common(host, _dice, "dice", 200)
    host = commands.add_parser("alibi", help="beside Alibi's CounterfactualRLTabular")
    host.add_argument("--dataset", choices=tuple(ON_ALIBI), default="adult")
    host.add_argument("--steps", nargs="+", type=int, default=(10_000, 300), help="of CFRL")
    host.add_argument("--epochs", type=int, default=50, help="of CFRL's autoencoder")
    host.add_argument("--many", type=int, default=100_000, help="rows in one call of DEAR; or 0")
    _common(host, _alibi, "alibi", 1000)
    return parser


def _common(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], None],
    name: str,
    rows: int,
) -> None:
    parser.add_argument("--rows", type=int, default=rows, help="refused rows")
    parser.add_argument("--out", type=Path, default=Path("results") / name)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
