"""Find or download a publisher's file, and check its columns."""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dear_plugin.errors import DataError

logger = logging.getLogger(__name__)

DATA_HOME = "DEAR_DATA_HOME"


@dataclass(frozen=True)
class Source:
    """A publisher's file.

    Attributes:
        names: the names of the file, the publisher's own first.
        page: the web page of the file, for manual downloads.
        url: the address for downloads without a login; None if there is none.
        sha256: the checksum of a download, in hex. Of existing files only the columns are checked,
            since they may be repacked or lack unused columns.
    """

    names: tuple[str, ...]
    page: str
    url: str | None = None
    sha256: str | None = None


def locate(source: Source, data_home: str | os.PathLike[str] | None = None) -> Path:
    """The path of the file, which is downloaded if it does not exist.

    Args:
        source: the file.
        data_home: the folder that is searched first, and the destination of a download. The folder
            of the environment variable `DEAR_DATA_HOME` and the user's cache are searched next;
            without `data_home` a download goes to the cache.

    Raises:
        DataError: the file is in none of these folders and cannot be downloaded.
    """
    for _, folder in _folders(data_home):
        for name in source.names:
            if (folder / name).is_file():
                return folder / name
    return _download(source, data_home)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an error inside the block into a `DataError` that names the file.

    Raises:
        DataError: the file cannot be read or parsed.
    """
    try:
        yield
    except DataError:
        raise
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read: {_short(error)}") from error


def require_columns(path: Path, frame: pd.DataFrame, expected: Iterable[str]) -> None:
    """Validate that a table has the expected columns.

    Raises:
        DataError: columns are missing; the message names them and the columns found.
    """
    missing = [name for name in expected if name not in frame.columns]
    if missing:
        raise DataError(
            f"{path}: expected the columns {_few(missing)}; got: {_few(frame.columns)}"
        )


def require_numbers(path: Path, frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Validate that columns are numeric.

    Raises:
        DataError: a column is not numeric; the message shows a value.
    """
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            invalid = frame[name][pd.to_numeric(frame[name], errors="coerce").isna()]
            raise DataError(f"{path}: expected numbers in {name!r}; got: {invalid.iloc[0]!r}")


def require_values(path: Path, column: pd.Series, expected: Iterable[str]) -> None:
    """Validate that a column has only the expected values, none missing.

    Raises:
        DataError: the column has other values; the message shows them.
    """
    known = list(expected)
    invalid = column[~column.isin(known)].unique()[:5]
    if len(invalid):
        raise DataError(
            f"{path}: expected {', '.join(known)} in {column.name!r}; "
            f"got: {', '.join(map(repr, invalid))}"
        )


def _folders(data_home: str | os.PathLike[str] | None) -> Iterator[tuple[str, Path]]:
    """The searched folders in order, each with its description."""
    if data_home is not None:
        yield "data_home", Path(data_home).expanduser()
    if os.environ.get(DATA_HOME):
        yield f"${DATA_HOME}", Path(os.environ[DATA_HOME]).expanduser()
    yield "the user's cache", _cache()


def _cache() -> Path:
    # Imported here: it imports requests, which existing files do not need.
    import pooch

    return Path(pooch.os_cache("dear-plugin"))


def _download(source: Source, data_home: str | os.PathLike[str] | None) -> Path:
    if source.url is None:
        raise DataError(_not_found(source, data_home, "Its publisher requires a login."))
    import pooch

    folder = _cache() if data_home is None else Path(data_home).expanduser()
    logger.info("downloading %s to %s", source.url, folder)
    try:
        path = pooch.retrieve(source.url, source.sha256, fname=source.names[0], path=folder)
    except (OSError, ValueError) as error:
        failed = f"Downloading {source.url} failed: {_short(error)}"
        raise DataError(_not_found(source, data_home, failed)) from error
    return Path(path)


def _not_found(source: Source, data_home: str | os.PathLike[str] | None, failed: str) -> str:
    searched = "; ".join(f"{folder} ({what})" for what, folder in _folders(data_home))
    return (
        f"{' or '.join(source.names)} was not found. Searched: {searched}. {failed} "
        f"What to do: get the file from {source.page} and copy it to one of these folders, "
        f"or set {DATA_HOME} to its folder."
    )


def _few(names: Iterable[object], most: int = 15) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))


def _short(error: Exception, limit: int = 300) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= limit else text[:limit] + "..."
