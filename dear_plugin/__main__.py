"""The command line: `dear-plugin demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dear_plugin.errors import DearError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it went well, 2 on a mistake of the caller.

    Args:
        arguments: as on the command line; None reads them there.
    """
    options = _parser().parse_args(arguments)
    from dear_plugin import demo

    try:
        plan = demo.Demo(
            options.dataset, options.decoder, options.rows, options.seed, options.figure
        )
        demo.run(plan)
    except DearError as error:
        print(f"dear-plugin: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dear-plugin",
        description="Which feature to act on, by how much, and what else will move along with it.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser("demo", help="train, refuse, explain: the main job on one data set")
    demo.add_argument("--dataset", choices=("loan", "adult", "compas", "gmc"), default="loan")
    demo.add_argument("--decoder", default="transport", help="transport, autoencoder or paper")
    demo.add_argument("--rows", type=int, default=500, help="how many refused rows to explain")
    demo.add_argument("--seed", type=int, default=0, help="of the split and the classifier")
    demo.add_argument("--figure", type=Path, default=None, help="where the picture goes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
