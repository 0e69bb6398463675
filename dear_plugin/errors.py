"""What can go wrong, each kind also the builtin that a caller would catch."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DearError(Exception):
    """The base of every error that dear_plugin raises on purpose."""


class SchemaError(DearError, ValueError):
    """A schema that contradicts itself or its frame."""


class InputError(DearError, ValueError):
    """A frame that does not fit the schema; the message names rows and columns."""


class ConstraintError(DearError, ValueError):
    """A constraint, or a set to act on, that cannot be understood or kept."""


class TargetError(DearError, ValueError):
    """A target that the model cannot have."""


class ModelError(DearError, ValueError):
    """A model whose answer is not a score: wrong shape, NaN, probabilities outside [0, 1]."""


class SettingError(DearError, ValueError):
    """An option whose value is none that it may have."""


class ArgumentError(DearError, TypeError):
    """A keyword argument that a call does not take."""


class NotFittedError(DearError, RuntimeError, AttributeError):
    """`generate` or a diagnostic was called before `fit`."""


class DataError(DearError, OSError):
    """A data set that is not there, or is not what its publisher ships."""


class FileFormatError(DearError, ValueError):
    """A saved DEAR that is damaged, incomplete or newer than this version reads."""


def unknown(what: str, names: Iterable[object], known: Iterable[object]) -> str:
    """One sentence on names that nobody knows, with the nearest known ones.

    Args:
        what: the noun, such as "features".
        names: what came.
        known: what could have come.
    """
    return f"unknown {what}: {near(names, known)}"


def near(names: Iterable[object], known: Iterable[object]) -> str:
    """Names, each with the nearest known one, and what is known.

    Args:
        names: what is looked for.
        known: where.
    """
    choices = [str(k) for k in known]
    parts = []
    for name in names:
        close = difflib.get_close_matches(str(name), choices, n=1)
        parts.append(f"{name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    shown = ", ".join(choices[:20]) + (", ..." if len(choices) > 20 else "")
    return f"{', '.join(parts)}; known are: {shown}"
