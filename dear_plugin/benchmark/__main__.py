"""`python -m dear_plugin.benchmark COMMAND`: tables as CSV and Markdown, and figures."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dear_plugin.benchmark import commands, dice
from dear_plugin.benchmark.contenders import CONTENDERS
from dear_plugin.benchmark.forests import FORESTS
from dear_plugin.benchmark.grounds import CELLS
from dear_plugin.benchmark.protocol import LOADERS
from dear_plugin.benchmark.trees import TABLES
from dear_plugin.benchmark.worth import LINES
from dear_plugin.data import sensitive
from dear_plugin.errors import DearError

Run = Callable[[argparse.Namespace], Iterator[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; 0 when it went well, 2 on a mistake of the caller."""
    options = _parser().parse_args(arguments)
    try:
        with _on_purpose():
            for text in options.run(options):
                print(text, flush=True)
    except (DearError, ModuleNotFoundError) as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


@contextmanager
def _on_purpose() -> Iterator[None]:
    """No warning that age or the like may be acted on: the paper's experiment leaves it free."""
    logger = logging.getLogger(sensitive.__name__)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dear_plugin.benchmark", description=__doc__)
    add = parser.add_subparsers(required=True, metavar="command").add_parser
    engine = add("engine", help="fidelity, reliability, support, agreement")
    _on_cells(engine)
    engine.add_argument("--cache", type=Path, default=None, help="keep trained classifiers here")
    engine.add_argument("--split", type=int, default=0, help="seed of training and test rows")
    _common(engine, commands.engine, "engine", 200)
    paper = add("paper", help="the paper's tables and figures, its rivals among them")
    _on_cells(paper)
    names, told = tuple(CONTENDERS), f"some of: {'; '.join(CONTENDERS)}"
    paper.add_argument(
        "--methods", nargs="+", choices=names, default=names, metavar="METHOD", help=told
    )
    paper.add_argument("--quick", action="store_true", help="COMPAS alone, 50 rows, one seed")
    _common(paper, commands.paper, "paper", 200)
    credible = add("credible", help="what answers are worth, by rulers that no search optimises")
    credible.add_argument(
        "--cells",
        nargs="+",
        choices=CELLS,
        default=CELLS,
        metavar="CELL",
        help=f"some of: {'; '.join(CELLS)}",
    )
    credible.add_argument("--lines", nargs="+", choices=tuple(LINES), default=tuple(LINES))
    credible.add_argument("--splits", type=int, default=5)
    told = "of these, for decoders that are trained"
    credible.add_argument("--trained-splits", type=int, default=5, help=told)
    told = "tell what --out holds; run nothing"
    credible.add_argument("--kept", action="store_true", help=told)
    credible.add_argument("--quick", action="store_true", help=commands.QUICK_CREDIBLE_HELP)
    _common(credible, commands.credible, "credible", 500)
    speed = add("speed", help="CPU seconds and memory of fit and generate")
    speed.add_argument("--most", type=int, default=1_000_000, help="rows in the largest call")
    speed.add_argument("--cache", type=Path, default=None, help="keep trained classifiers here")
    speed.add_argument("--out", type=Path, default=Path("results") / "speed")
    speed.set_defaults(run=commands.speed)
    trees = add("trees", help="costs beside the optimum, on forests and boosted trees")
    trees.add_argument("--datasets", nargs="+", choices=tuple(TABLES), default=tuple(TABLES))
    trees.add_argument("--models", nargs="+", choices=tuple(FORESTS), default=tuple(FORESTS))
    _common(trees, commands.trees, "trees", 60)
    host = add("dice", help="beside DiCE's own methods")
    host.add_argument("--dataset", choices=tuple(commands.ON_DICE), default="adult")
    host.add_argument("--methods", nargs="+", choices=dice.METHODS, default=dice.METHODS)
    _common(host, commands.on_dice, "dice", 200)
    host = add("alibi", help="beside Alibi's CounterfactualRLTabular")
    host.add_argument("--dataset", choices=tuple(commands.ON_ALIBI), default="adult")
    host.add_argument("--steps", nargs="+", type=int, default=(10_000, 300), help="of CFRL")
    host.add_argument("--epochs", type=int, default=50, help="of CFRL's autoencoder")
    host.add_argument("--many", type=int, default=100_000, help="rows in one call of DEAR; or 0")
    _common(host, commands.on_alibi, "alibi", 1000)
    return parser


def _on_cells(parser: argparse.ArgumentParser) -> None:
    """Which cells of the paper's experiment."""
    parser.add_argument("--datasets", nargs="+", choices=tuple(LOADERS), default=tuple(LOADERS))
    parser.add_argument("--models", nargs="+", choices=("lr", "ann"), default=("lr", "ann"))
    parser.add_argument("--seeds", type=int, default=3)


def _common(parser: argparse.ArgumentParser, run: Run, name: str, rows: int) -> None:
    parser.add_argument("--rows", type=int, default=rows, help="refused rows")
    parser.add_argument("--out", type=Path, default=Path("results") / name)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
