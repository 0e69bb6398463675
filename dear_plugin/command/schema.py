"""Schema: a file of training rows in, a file that states what is known of its columns out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dear_plugin.command.tables import read_table
from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError

HEAD = "# What the log says of {}, line by line:\n"


@dataclass(frozen=True)
class SchemaFile:
    """The settings of `dear-plugin schema`.

    Attributes:
        train: a file of training rows.
        target: the column of decisions, which is no feature.
        out: the file to write; None is the name of `train` with the ending ".toml".
    """

    train: Path
    target: str | None = None
    out: Path | None = None


def write_schema(settings: SchemaFile) -> None:
    """Write a commented file of what is inferred of the columns, with what the log advises.

    Raises:
        InputError: the training rows cannot be read, or the file exists.
        SchemaError: the columns cannot be features.
    """
    out = settings.out or settings.train.with_suffix(".toml")
    if out.exists():
        raise InputError(f"{out} exists, with what somebody may have edited: expected a new --out")
    with _said() as lines:
        frame = read_table(settings.train, "train")
        schema = Schema.infer(frame, settings.target)
    schema.to_toml(out)
    notes = "".join(f"# - {line}\n" for line in lines)
    text = HEAD.format(settings.train.name) * bool(lines) + notes
    out.write_text(f"{text}\n{out.read_text(encoding='utf8')}", encoding="utf8")
    print(
        f"{out}: {len(schema)} features of {len(frame):,} rows; edit it, then: dear-plugin letters"
    )


@contextmanager
def _said() -> Iterator[list[str]]:
    """The lines that the log of dear_plugin has meanwhile, which are not printed."""
    logger, lines = logging.getLogger("dear_plugin"), list[str]()
    level, spread = logger.level, logger.propagate

    class _Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = _Lines()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = spread
