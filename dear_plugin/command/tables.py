"""Tables: files of comma-separated values, read with clear errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from dear_plugin.errors import InputError, unknown

SEPARATORS = ";\t|"


def read_table(path: Path, option: str, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """The rows of a file, (n, p).

    Args:
        path: of the file.
        option: what the command line calls it.
        like: rows whose columns of texts are texts here, too: "007" and not 7.

    Raises:
        InputError: it is not there, has no rows, or its values are not separated by commas.
    """
    texts: Mapping[str, type] = (
        {} if like is None else {name: str for name in like if like[name].dtype == object}
    )
    try:
        head = pd.read_csv(path, nrows=0).columns
        frame = pd.read_csv(path, dtype={n: t for n, t in texts.items() if n in head})
    except (OSError, ValueError) as error:
        raise InputError(f"{option} {path}: {error}") from error
    if len(head) == 1 and (found := [each for each in SEPARATORS if each in head[0]]):
        raise InputError(
            f"{option} {path}: expected values separated by commas, got one column with"
            f" {found[0]!r} in its name: pd.read_csv(path, sep={found[0]!r}).to_csv(path) writes"
            " such a file"
        )
    if not len(frame):
        raise InputError(f"{option} {path}: expected rows, got none")
    return frame


def by_case(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows with their cases as the index: the texts of a column, or numbers from 1 for "".

    Raises:
        InputError: no such column, or a case that several rows have.
    """
    if not column:
        return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="case"))
    if column not in frame:
        raise InputError(f"--index: {unknown('columns', [column], frame.columns)}")
    cases = frame[column].astype(str)
    if twice := [*cases[cases.duplicated()].unique()[:3]]:
        raise InputError(
            f"--index {column}: expected another case in each row, got twice: {twice}"
        )
    return frame.set_axis(pd.Index(cases, name="case"))
