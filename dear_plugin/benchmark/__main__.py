"""`python -m dear_plugin.benchmark COMMAND`: tables as CSV and Markdown, and figures."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dear_plugin.benchmark import commands, dice
from dear_plugin.benchmark.answer_metrics import CONFIGURATIONS
from dear_plugin.benchmark.contestants import CONTESTANTS, DIALS
from dear_plugin.benchmark.data_splits import CELLS, NETWORKS, SETTINGS, TREES
from dear_plugin.benchmark.forests import FORESTS
from dear_plugin.benchmark.method_specs import METHOD_SPECS
from dear_plugin.benchmark.protocol import LOADERS
from dear_plugin.benchmark.reproduce import VARIANTS
from dear_plugin.benchmark.systems import SYSTEMS
from dear_plugin.benchmark.trees import TABLES
from dear_plugin.data import sensitive
from dear_plugin.errors import DearError

# The paper's protocol and the data sets' own, on its three data sets.
CONTEST_SETTINGS = tuple(name for name, setting in SETTINGS.items() if setting.kinds == NETWORKS)
KINDS = (*NETWORKS, TREES)

Run = Callable[[argparse.Namespace], Iterator[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; returns 0, or 2 on an invalid argument or missing data."""
    options = _parser().parse_args(arguments)
    try:
        with _without_warnings():
            for text in options.run(options):
                print(text, flush=True)
    except (DearError, ModuleNotFoundError) as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings on sensitive features: they are mutable in the paper's experiment."""
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
    _add_paper(add)
    credible = add("credible", help="metrics of answers that no search optimises")
    credible.add_argument(
        "--cells",
        nargs="+",
        choices=CELLS,
        default=CELLS,
        metavar="CELL",
        help=_listed(CELLS),
    )
    credible.add_argument(
        "--lines", nargs="+", choices=tuple(CONFIGURATIONS), default=tuple(CONFIGURATIONS)
    )
    credible.add_argument("--splits", type=int, default=5)
    text = "splits of configurations with a trained decoder"
    credible.add_argument("--trained-splits", type=int, default=5, help=text)
    text = "print the runs stored in --out; run nothing"
    credible.add_argument("--kept", action="store_true", help=text)
    credible.add_argument("--quick", action="store_true", help=commands.QUICK_CREDIBLE_HELP)
    _common(credible, commands.credible, "credible", 500)
    _contest(add("contest", help="all methods with the same dials: cost at equal requirements"))
    speed = add("speed", help="CPU seconds and memory of fit and generate")
    speed.add_argument("--most", type=int, default=1_000_000, help="rows in the largest call")
    speed.add_argument("--cache", type=Path, default=None, help="folder of trained classifiers")
    speed.add_argument("--out", type=Path, default=Path("results") / "speed")
    speed.set_defaults(run=commands.speed)
    trees = add("trees", help="costs compared with the optimum, on forests and boosted trees")
    trees.add_argument("--datasets", nargs="+", choices=tuple(TABLES), default=tuple(TABLES))
    trees.add_argument("--models", nargs="+", choices=tuple(FORESTS), default=tuple(FORESTS))
    _common(trees, commands.trees, "trees", 60)
    known = add("effects", help="expected indirect changes compared with true effects")
    known.add_argument("--systems", nargs="+", choices=tuple(SYSTEMS), default=tuple(SYSTEMS))
    known.add_argument("--seeds", type=int, default=5)
    known.add_argument("--out", type=Path, default=Path("results") / "effects")
    known.set_defaults(run=commands.effects)
    host = add("dice", help="comparison with DiCE's own methods")
    host.add_argument("--dataset", choices=tuple(commands.ON_DICE), default="adult")
    host.add_argument("--methods", nargs="+", choices=dice.METHODS, default=dice.METHODS)
    _common(host, commands.on_dice, "dice", 200)
    host = add("alibi", help="comparison with Alibi's CounterfactualRLTabular")
    host.add_argument("--dataset", choices=tuple(commands.ON_ALIBI), default="adult")
    host.add_argument(
        "--steps", nargs="+", type=int, default=(10_000, 300), help="training steps of CFRL"
    )
    host.add_argument("--epochs", type=int, default=50, help="epochs of CFRL's autoencoder")
    host.add_argument(
        "--many", type=int, default=100_000, help="rows in one call of DEAR, 0 for none"
    )
    _common(host, commands.on_alibi, "alibi", 1000)
    return parser


def _contest(parser: argparse.ArgumentParser) -> None:
    names, choices = tuple(CONTESTANTS), _listed(tuple(CONTESTANTS))
    parser.add_argument(
        "--methods", nargs="+", choices=names, default=names, metavar="METHOD", help=choices
    )
    parser.add_argument("--settings", nargs="+", choices=tuple(SETTINGS), default=CONTEST_SETTINGS)
    text = "module:function that returns a Dataset, instead of --settings"
    parser.add_argument("--data", default="", help=text)
    parser.add_argument("--models", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--dials", nargs="+", choices=tuple(DIALS), default=tuple(DIALS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3, help="classifier seeds of each split")
    parser.add_argument("--quick", action="store_true", help="the loan data, 20 rows, one split")
    _common(parser, commands.contest, "contest", 67)


def _add_paper(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands on the cells of the paper's experiment."""
    engine = add("engine", help="fidelity, reliability, support, agreement")
    _on_cells(engine)
    engine.add_argument("--cache", type=Path, default=None, help="folder of trained classifiers")
    engine.add_argument("--split", type=int, default=0, help="seed of training and test rows")
    _common(engine, commands.engine, "engine", 200)
    paper = add("paper", help="the paper's tables and figures, with all baselines")
    _on_cells(paper)
    names = tuple(METHOD_SPECS)
    paper.add_argument(
        "--methods", nargs="+", choices=names, default=names, metavar="METHOD", help=_listed(names)
    )
    paper.add_argument("--quick", action="store_true", help="COMPAS with LR, 20 rows, one seed")
    _common(paper, commands.paper, "paper", 200)
    reproduce = add("reproduce", help="the paper's method to the letter, and a sweep")
    _on_cells(reproduce)
    names = tuple(VARIANTS)
    reproduce.add_argument(
        "--settings",
        nargs="*",
        choices=names,
        default=names,
        metavar="SETTING",
        help=_listed(names),
    )
    text = "COMPAS with a logistic regression only, 20 rows, one seed, two settings"
    reproduce.add_argument("--quick", action="store_true", help=text)
    _common(reproduce, commands.reproduce, "reproduce", 200)


def _listed(names: Sequence[str]) -> str:
    """The names that an argument takes."""
    return f"some of: {'; '.join(names)}"


def _on_cells(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select cells of the paper's experiment."""
    parser.add_argument("--datasets", nargs="+", choices=tuple(LOADERS), default=tuple(LOADERS))
    parser.add_argument("--models", nargs="+", choices=("lr", "ann"), default=("lr", "ann"))
    parser.add_argument("--seeds", type=int, default=3)


def _common(parser: argparse.ArgumentParser, run: Run, name: str, rows: int) -> None:
    parser.add_argument("--rows", type=int, default=rows, help="the number of rejected rows")
    parser.add_argument("--out", type=Path, default=Path("results") / name)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
