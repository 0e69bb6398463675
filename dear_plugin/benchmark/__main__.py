"""`python -m dear_plugin.benchmark COMMAND` makes the tables and figures of the documentation."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from dear_plugin.benchmark.causal import CAUSAL
from dear_plugin.benchmark.confidence import CONFIDENCE
from dear_plugin.benchmark.contest import CONTEST
from dear_plugin.benchmark.credible import CREDIBLE
from dear_plugin.benchmark.departures import DEPARTURES
from dear_plugin.benchmark.effects import EFFECTS
from dear_plugin.benchmark.hosts import HOSTS
from dear_plugin.benchmark.orders import ORDERS_SPEC
from dear_plugin.benchmark.reproduce import REPRODUCE
from dear_plugin.benchmark.runner import Spec, log, run
from dear_plugin.benchmark.speed import SPEED
from dear_plugin.benchmark.tables import write
from dear_plugin.benchmark.trees import TREES
from dear_plugin.benchmark.work import WORK
from dear_plugin.demo.show import quiet
from dear_plugin.errors import DearError

SPECS = (
    CAUSAL,
    CONFIDENCE,
    CONTEST,
    CREDIBLE,
    DEPARTURES,
    EFFECTS,
    HOSTS,
    ORDERS_SPEC,
    REPRODUCE,
    SPEED,
    TREES,
    WORK,
)
RESULTS = Path("results")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; it returns 0, or 2 for an invalid argument or missing data."""
    options = _parser().parse_args(arguments)
    try:
        # Sensitive features are mutable in the paper's experiment.
        with quiet("dear_plugin.look.names"):
            for text in options.texts(options):
                print(text, flush=True)
    except (DearError, ModuleNotFoundError) as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> ArgumentParser:
    """The parser, with a command for each spec and one for all specs."""
    parser = ArgumentParser(prog="python -m dear_plugin.benchmark", description=__doc__)
    add = parser.add_subparsers(required=True, metavar="command").add_parser
    for spec in SPECS:
        own = add(spec.name, help=spec.help)
        for name, option in spec.options.items():
            listed = f": some of {'; '.join(option.choices)}" if option.choices else ""
            usual = "all" if option.choices and option.preset is None else option.usual
            text = f"{option.help}{listed} (default {usual})"
            kind: dict[str, object] = {"type": int, "metavar": "N"}
            if option.choices:
                kind = {"choices": option.choices, "metavar": name.upper()}
                kind |= {} if isinstance(option.usual, str) else {"nargs": "+"}
            own.add_argument(f"--{name}", help=text.replace("%", "%%"), **kind)  # type: ignore[arg-type]
        own.set_defaults(texts=lambda options, spec=spec: run(spec, _complete(spec, options)))
        _add_common(own)
    every = add("tables", help="run all commands: every table and figure of the documentation")
    names = [spec.name for spec in SPECS]
    some = "commands to run (default all)"
    every.add_argument("--only", nargs="+", choices=names, default=names, help=some)
    every.set_defaults(texts=_every)
    _add_common(every)
    return parser


def _add_common(parser: ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="the smallest run")
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "tables", help="the folder of the tables"
    )
    text = "the folder of measurements; a cell is not measured again with the same sources"
    parser.add_argument("--store", type=Path, default=RESULTS, help=text)


def _complete(spec: Spec, options: Namespace) -> Namespace:
    """The options, completed by the values of a spec."""
    known = {n: o.quick if options.quick else o.usual for n, o in spec.options.items()}
    given = {name: value for name, value in vars(options).items() if value is not None}
    return Namespace(**{**known, **given})


def _every(options: Namespace) -> Iterator[str]:
    """The tables of all chosen commands, and a log of their CPU time."""
    chosen = [spec for spec in SPECS if spec.name in options.only]
    complete = [(spec, _complete(spec, options)) for spec in chosen]
    for spec, own in complete:
        yield from run(spec, own)
    yield write("log", [log(spec, own) for spec, own in complete], options.out)


if __name__ == "__main__":
    sys.exit(main())
