"""Tables: files of comma-separated values, which are read as they are written, or refused."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError, unknown

SEPARATORS = ";\t|"
# What is read as a missing value, as pandas does.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
# How files of a workbook and of an old one begin.
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
WRITES = ".to_csv('new.csv', index=False) in Python writes such a file"
# What files of Windows are in, if they do not begin with a mark of UTF-16.
ENCODED = "expected a file in UTF-8: pd.read_csv(path, encoding={!r})" + WRITES
WINDOWS, UTF_16 = "cp1252", (b"\xff\xfe", b"\xfe\xff")
EXCEL = "expected a CSV file, got a workbook: pd.read_excel(path)" + WRITES
SEPARATED = (
    "expected values separated by commas, got one column with {found!r} in its name:"
    " pd.read_csv(path, sep={found!r}{more})" + WRITES + "; add decimal=',' for decimal commas"
)
LINE = (
    "line {} has {} values, the first line {}: expected as many; a value with a comma in it stands"
    " between quotes"
)

logger = logging.getLogger(__name__)


def texts_of(schema: Schema) -> list[str]:
    """The columns that hold texts, so that a file's "007" stays one there."""
    return [c.name for c in schema.columns if any(isinstance(level, str) for level in c.choices)]


def read_table(path: Path, option: str, texts: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of a file, (n, p).

    Args:
        path: of the file.
        option: what the command line calls it.
        texts: columns that are read as they are written: "007" and not 7.

    Raises:
        InputError: it is not there, has no rows, or would be read in another way than it is
            written: another separator or encoding, lines of unequal length, a name twice.
    """
    try:
        types = dict.fromkeys({*texts} & {*_head(path)}, str)
        frame = pd.read_csv(path, dtype=types, na_values=MISSING, keep_default_na=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{option} {path}: {ENCODED.format(WINDOWS)}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{option} {path}: {error}") from error
    if not len(frame):
        raise InputError(f"{option} {path}: expected rows, got none")
    return frame


def read_cases(path: Path, option: str, column: str, schema: Schema) -> pd.DataFrame:
    """The rows of a file, (n, p), with their cases as the index.

    Args:
        path: of the file.
        option: what the command line calls it.
        column: the one whose texts are the cases, a feature or none; "" for numbers from 1.
        schema: of the features.

    Raises:
        InputError: see `read_table`; no such column, no case, or one that several rows have.
    """
    frame = read_table(path, option, texts_of(schema))
    if not column:
        return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="case"))
    if column not in frame:
        raise InputError(f"--index: {unknown('columns', [column], frame.columns)}")
    cases = pd.read_csv(path, usecols=[column], dtype=str, keep_default_na=False)[column]
    if none := int((cases == "").sum()):
        raise InputError(f"--index {column}: expected a case in each row, got none in {none}")
    if twice := [*cases[cases.duplicated()].unique()[:3]]:
        raise InputError(
            f"--index {column}: expected another case in each row, got twice: {twice}"
        )
    return frame.set_axis(pd.Index(cases, name="case"))


def _head(path: Path) -> list[str]:
    """The names of the columns of a file, all lines of which have a value for each.

    Raises:
        ValueError: what is not so.
    """
    with path.open("rb") as file:
        begin = file.read(4)
    if begin in WORKBOOKS:
        raise ValueError(EXCEL)
    if begin.startswith(UTF_16):
        raise ValueError(ENCODED.format("utf-16"))
    with path.open(encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text)
        head = next(lines, [])
        _check_names(head)
        missing, marks = dict[str, str](), {*MISSING} - {""}
        for line in lines:
            if line and len(line) != len(head):
                raise ValueError(LINE.format(lines.line_num, len(line), len(head)))
            if not marks.isdisjoint(line):
                missing |= {n: v for n, v in zip(head, line, strict=False) if v in marks}
    for name, marker in missing.items():
        logger.warning("%s: column %r: %r is read as a missing value", path.name, name, marker)
    return head


def _check_names(head: list[str]) -> None:
    """Raise what is wrong with the first line of a file."""
    if len(head) == 1 and (found := [each for each in SEPARATORS if each in head[0]]):
        more = ", skiprows=1" if head[0].startswith("sep=") else ""
        raise ValueError(SEPARATED.format(found=found[0], more=more))
    if twice := [name for name in dict.fromkeys(head) if name and head.count(name) > 1]:
        raise ValueError(f"expected another name of each column, got twice: {twice}")
