"""The commands `dear-plugin schema`, `letters`, `explore` and `demo`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dear_plugin._version import __version__
from dear_plugin.errors import DearError

DATASETS = ("loan", "adult", "compas", "gmc")
# `add_argument` of the parser of a command.
Add = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; it returns 0, 1 if rows cannot be read, or 2 for an invalid argument.

    Args:
        arguments: the arguments of the command line; None reads `sys.argv`.
    """
    options = vars(_parser().parse_args(arguments))
    run = options.pop("run")
    try:
        return run(options) or 0
    except KeyboardInterrupt:
        goes_on = "; run the same command to continue" * (run is _letters)
        print(f"dear-plugin: interrupted{goes_on}", file=sys.stderr)
        return 130
    except Exception as error:
        logging.getLogger("dear_plugin").debug("a command failed", exc_info=True)
        kind = "" if isinstance(error, DearError) else f"{type(error).__name__}: "
        notes = getattr(error, "__notes__", [])
        print(f"dear-plugin: {kind}{error}", *notes, sep="\n", file=sys.stderr)
        return 2


def _demo(options: dict[str, Any]) -> None:
    from dear_plugin import demo

    demo.run(demo.Demo(**options))


def _explore(options: dict[str, Any]) -> None:
    from dear_plugin import demo

    demo.explore(demo.Explore(**options))


def _schema(options: dict[str, Any]) -> None:
    from dear_plugin.tell import files

    files.write_schema(files.SchemaFile(**options))


def _letters(options: dict[str, Any]) -> int:
    from dear_plugin.tell import run

    return run.write_letters(run.Letters(**options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dear-plugin",
        description="Algorithmic recourse with direct and indirect changes.",
    )
    parser.add_argument("--version", action="version", version=f"dear-plugin {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def _command(name: str, run: Callable[[dict[str, Any]], int | None], what: str) -> Add:
        added = commands.add_parser(name, help=what, description=what)
        added.set_defaults(run=run)
        return added.add_argument

    _add_schema(_command("schema", _schema, "infer a schema from a CSV file, as a file to edit"))
    _add_letters(_command("letters", _letters, "write a letter for every row of a CSV file"))
    _add_explore(_command("explore", _explore, "serve a local page to try changes of single rows"))
    _add_demo(_command("demo", _demo, "train a model on a data set, and explain rejected rows"))
    return parser


def _add_schema(add: Add) -> None:
    add("train", type=Path, help="training rows, a CSV file")
    add("--target", default=None, help="the column of decisions, which is not a feature")
    add("--out", type=Path, default=None, help="the file to write (default: train.toml)")


def _add_letters(add: Add) -> None:
    add("rows", type=Path, help="the rows that get letters, a CSV file")
    add("--model", required=True, help="a file of joblib, pickle or skops, or module:attribute")
    add("--trust", action="store_true", help="allow code in the model's file: I trust its source")
    add("--train", type=Path, default=None, help="training rows, a CSV file")
    add("--schema", type=Path, default=None, help="the edited file of dear-plugin schema")
    add("--saved", type=Path, default=None, help="a saved DEAR, instead of --train and --schema")
    add("--out", type=Path, required=True, help="the folder to write to")
    add("--act-on", type=_names, default=(), help="the features to act on, separated by commas")
    add("--index", default="", help="the column of case numbers")
    add("--want", default="", help="the wanted class (default: class 1)")
    add("--language", default="", help="the language of the letters: en (default) or de")
    add("--until", default="", help="the last date to ask again if there is no answer, as text")
    add("--ways", type=int, choices=(1, 2, 3), default=1, help="the most answers in one letter")
    add("--n-jobs", type=int, default=1, help="the threads that fit and search, -1 for all cores")
    add("--unlabelled", action="store_true", help="write column names if labels are missing")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def _add_explore(add: Add) -> None:
    add("--dataset", choices=DATASETS, default="loan")
    add("--saved", type=Path, default=None, help="the folder of a saved DEAR")
    add("--model", default="", help="the model of the saved DEAR, as in dear-plugin letters")
    add("--trust", action="store_true", help="allow code in the model's file: I trust its source")
    add("--applicants", type=Path, default=None, help="a CSV file of rows to explain")
    add("--index", default="", help="the column of case numbers")
    add("--want", default="", help="the wanted class (default: class 1)")
    add("--rows", type=int, default=200, help="the largest number of rows")
    add("--port", type=int, default=0, help="the port; 0 takes a free one")
    add("--no-browser", action="store_false", dest="browser", help="do not open a browser")


def _add_demo(add: Add) -> None:
    add("--dataset", choices=DATASETS, default="loan")
    add("--decoder", default="transport", help="transport or autoencoder")
    add("--rows", type=int, default=50, help="number of rejected rows to explain")
    add("--seed", type=int, default=0, help="seed of the split and the classifier")
    add("--figure", type=Path, default=None, help="path of the figure")


if __name__ == "__main__":
    sys.exit(main())
