"""Find a publisher's file, or download it; say plainly what is wrong when neither works."""

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
        names: file names to look for, the publisher's own first.
        page: where a person reads about the file and can get it by hand.
        url: where it can be downloaded without logging in; None when there is no such place.
        sha256: checksum of what `url` gives, in hex. It guards downloads alone: a file that is
            already there may be repacked, or have columns taken out, and is judged by its layout.
    """

    names: tuple[str, ...]
    page: str
    url: str | None = None
    sha256: str | None = None


def locate(source: Source, data_home: str | os.PathLike[str] | None = None) -> Path:
    """The file's path; downloaded first if it is nowhere to be found.

    Args:
        source: what to look for.
        data_home: folder to look in first, and to download to. After it, or without it, the folder
            named by the environment variable `DEAR_DATA_HOME` is looked in, then the user's cache;
            without it a download goes to the cache.

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
    """Turn whatever goes wrong inside into a `DataError` that names the file.

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
    """Check that a table has the columns it should.

    Raises:
        DataError: some are missing; the message says which, and what came instead.
    """
    missing = [name for name in expected if name not in frame.columns]
    if missing:
        raise DataError(
            f"{path}: expected the columns {_few(missing)}; came: {_few(frame.columns)}"
        )


def require_numbers(path: Path, frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Check that columns hold numbers.

    Raises:
        DataError: one does not; the message shows a value that came.
    """
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            strange = frame[name][pd.to_numeric(frame[name], errors="coerce").isna()]
            raise DataError(f"{path}: expected numbers in {name!r}; came: {strange.iloc[0]!r}")


def require_values(path: Path, column: pd.Series, expected: Iterable[str]) -> None:
    """Check that a column holds no other values than these; missing ones count as other.

    Raises:
        DataError: it does; the message shows them.
    """
    known = list(expected)
    strange = column[~column.isin(known)].unique()[:5]
    if len(strange):
        raise DataError(
            f"{path}: expected {', '.join(known)} in {column.name!r}; "
            f"came: {', '.join(map(repr, strange))}"
        )


def _folders(data_home: str | os.PathLike[str] | None) -> Iterator[tuple[str, Path]]:
    """What each folder is, and the folder, in the order of the search."""
    if data_home is not None:
        yield "data_home", Path(data_home).expanduser()
    if os.environ.get(DATA_HOME):
        yield f"${DATA_HOME}", Path(os.environ[DATA_HOME]).expanduser()
    yield "the user's cache", _cache()


def _cache() -> Path:
    # Imported here because it brings in requests, which a file already at hand does not need.
    import pooch

    return Path(pooch.os_cache("dear-plugin"))


def _download(source: Source, data_home: str | os.PathLike[str] | None) -> Path:
    if source.url is None:
        raise DataError(_not_found(source, data_home, "Its publisher asks for a login."))
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
    looked = "; ".join(f"{folder} ({what})" for what, folder in _folders(data_home))
    return (
        f"{' or '.join(source.names)} was not found. Looked in: {looked}. {failed} "
        f"What to do: get the file from {source.page} and put it into one of these folders, "
        f"or set {DATA_HOME} to the folder that has it."
    )


def _few(names: Iterable[object], most: int = 15) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))


def _short(error: Exception, limit: int = 300) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= limit else text[:limit] + "..."
