"""The exceptions of the package, each also the built-in one that a caller would catch."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

# The longest text of a given value in an error.
MOST_SHOWN = 200
# How much of a name, from 0 to 1, is that of another one which may be meant.
ALIKE = 0.7
# The most names that a message lists.
MOST_NAMED = 5
_NAMES: ContextVar[Mapping[str, str]] = ContextVar("_NAMES")


class DearError(Exception):
    """The base class of all errors that dear_plugin raises on purpose."""


class SchemaError(DearError, ValueError):
    """A schema contradicts itself or its frame."""


class InputError(DearError, ValueError):
    """A frame does not fit the schema; the message names rows and columns."""


class ConstraintError(DearError, ValueError):
    """A constraint or an action set is invalid."""


class TargetError(DearError, ValueError):
    """A target does not fit the model."""


class ModelError(DearError, ValueError):
    """A model's output is not a score: wrong shape, NaN, probabilities outside [0, 1]."""


class SettingError(DearError, ValueError):
    """An option has a value outside its domain."""


class ArgumentError(DearError, TypeError):
    """A call got a keyword argument that it does not take."""


class NotFittedError(DearError, ValueError, AttributeError, RuntimeError):
    """`generate` or a diagnostic was called before `fit`."""


class DataError(DearError, OSError):
    """A data set is absent, or differs from what its publisher ships."""


class ExtraError(DearError, ImportError):
    """A package is not installed that an extra of dear-plugin installs."""


class FileFormatError(DearError, ValueError):
    """A saved DEAR is damaged, incomplete or of a newer format than this version reads."""


@contextmanager
def naming(**names: str) -> Iterator[None]:
    """Within it, errors and the log call arguments by the names that a host has for them."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def argument(name: str) -> str:
    """What texts call an argument: its name, or that of a host."""
    return _NAMES.get({}).get(name, name)


def shown(value: object) -> str:
    """What an error says was given: never cells, but the type and shape of what has some."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"a {type(value).__name__} of shape {shape}"
    if isinstance(value, list) and any(isinstance(each, Real) for each in value):
        return f"{len(value)} values"
    text = repr(value)
    if isinstance(value, list | tuple):
        text = f"{text[0]}{', '.join(map(shown, value))}{text[-1]}"
    return text if len(text) <= MOST_SHOWN and "\n" not in text else f"a {type(value).__name__}"


def unknown(what: str, names: Iterable[object], known: Iterable[object]) -> str:
    """The message on unknown names, with the closest known ones.

    Args:
        what: the noun, such as "features".
        names: the unknown names.
        known: the valid ones.
    """
    return f"unknown {what}: {near(names, known)}"


Names = Collection[object]


def require_known(
    where: str, what: str, names: Names, known: Names, error: type[DearError] = SchemaError
) -> None:
    """Raise an error unless names are known.

    Args:
        where: what names them; "" for nothing.
        what: see `unknown`.
        names: the names.
        known: the valid ones.
        error: what is raised.
    """
    if wrong := [name for name in names if name not in known]:
        raise error(f"{where}: " * bool(where) + unknown(what, wrong, known))


def check_arguments(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments that a call does not take.

    Args:
        given: the names of arguments.
        known: those that it takes.

    Raises:
        ArgumentError: one that it does not take.
    """
    known = [*known]
    if absent := [name for name in given if name not in known]:
        raise ArgumentError(unknown("arguments", absent, known))


def near(names: Iterable[object], known: Iterable[object]) -> str:
    """Names, each with the closest known one, followed by the five nearest known names.

    Args:
        names: the names to look up.
        known: the valid ones.
    """
    names, choices = [*names], {str(k): k for k in known}
    parts = []
    for name in names:
        close = difflib.get_close_matches(str(name), choices, 1, ALIKE)
        meant = choices[close[0]] if close else None
        if close and close[0] == str(name):  # the same text, another type
            kinds = type(name).__name__, type(meant).__name__
            parts.append(f"{name!r} (a {kinds[0]}; did you mean {meant!r}, of type {kinds[1]}?)")
        else:
            parts.append(shown(name) + (f" (did you mean {meant!r}?)" if close else ""))
    given, first = " ".join(map(str, names)), [*choices]
    if len(choices) > MOST_NAMED:
        match = difflib.SequenceMatcher
        first = sorted(first, key=lambda c: -match(None, c, given).ratio())[:MOST_NAMED]
    more = f", ... ({len(choices)} in all)" * (len(choices) > MOST_NAMED)
    return f"{', '.join(parts)}; known are: {', '.join(first) or 'none'}{more}"
