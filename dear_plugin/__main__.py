"""The command line: `dear-plugin demo` and `dear-plugin explore`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dear_plugin.errors import DearError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, or 2 on an invalid argument or missing data.

    Args:
        arguments: of the command line; None reads `sys.argv`.
    """
    options = vars(_parser().parse_args(arguments))
    from dear_plugin import demo

    command = options.pop("command")
    try:
        if command == "demo":
            demo.run(demo.Demo(**options))
        else:
            demo.explore(demo.Explore(**options))
    except DearError as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dear-plugin",
        description="Algorithmic recourse with direct and indirect changes.",
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    demo = commands.add_parser(
        "demo", help="train a model on a data set and explain its rejected rows"
    )
    demo.add_argument("--dataset", choices=("loan", "adult", "compas", "gmc"), default="loan")
    demo.add_argument("--decoder", default="transport", help="transport, autoencoder or paper")
    demo.add_argument("--rows", type=int, default=50, help="number of rejected rows to explain")
    demo.add_argument("--seed", type=int, default=0, help="seed of the split and the classifier")
    demo.add_argument("--figure", type=Path, default=None, help="path of the figure")
    page = commands.add_parser(
        "explore", help="a page on which a person tries what could be changed, on this machine"
    )
    page.add_argument("--dataset", choices=("loan", "adult", "compas", "gmc"), default="loan")
    page.add_argument("--saved", type=Path, default=None, help="folder of a saved DEAR")
    page.add_argument("--model", default="", help="of the saved DEAR, as module:attribute")
    page.add_argument("--applicants", type=Path, default=None, help="a CSV file of its applicants")
    page.add_argument("--rows", type=int, default=200, help="the largest number of applicants")
    page.add_argument("--port", type=int, default=0, help="0 takes a free one")
    page.add_argument("--no-browser", action="store_false", dest="browser", help="opens none")
    return parser


if __name__ == "__main__":
    sys.exit(main())
