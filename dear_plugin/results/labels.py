"""Labels: labels of an index in, positions of rows out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_list_like

from dear_plugin.errors import InputError

# The most labels that an error names.
MOST_NAMED = 5

Positions = npt.NDArray[np.int64]


def positions(index: pd.Index, labels: Hashable | Iterable[Hashable]) -> Positions:
    """(m,) the rows with a label, or with each of several labels.

    Args:
        index: (n,) of the rows.
        labels: a label, a list or an index of labels, or (n,) bool.

    Raises:
        InputError: a label that is not in the index.
    """
    several: list[Any] = list(labels) if _are_several(labels) else [labels]
    if len(several) == len(index) and all(isinstance(each, bool | np.bool_) for each in several):
        return np.flatnonzero(several)
    places = [_positions(index, label) for label in several]
    unknown = [label for label, at in zip(several, places, strict=True) if not len(at)]
    if unknown:
        raise InputError(
            f"got {unknown[0]!r}, expected a label of the frame's index, a list of labels, or a"
            " mask of all rows"
        )
    return np.concatenate([np.empty(0, dtype=np.int64), *places])


def only_position(index: pd.Index, label: Hashable) -> int:
    """The position of the row with a label.

    Raises:
        InputError: several labels, a label that is not in the index, or that several rows share.
    """
    if _are_several(label):
        raise InputError("got several labels, expected one; recourses[labels] selects rows")
    at = _positions(index, label)
    if len(at) != 1:
        some = [*map(repr, index[:MOST_NAMED].tolist()), *["..."] * (len(index) > MOST_NAMED)]
        known = "" if len(at) else f"; the labels are {', '.join(some)}"
        raise InputError(f"index {label!r} names {len(at)} rows, expected exactly one{known}")
    return int(at[0])


def _are_several(labels: object) -> TypeGuard[Iterable[Any]]:
    """Whether these are several labels; a tuple is a label of a `MultiIndex`."""
    return is_list_like(labels) and not isinstance(labels, tuple)


def _positions(index: pd.Index, label: Hashable) -> Positions:
    """The positions of a label; as the index finds it, NaN equals NaN."""
    try:
        at: Positions = np.atleast_1d(np.arange(len(index))[index.get_loc(label)])
        return at
    except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError):
        return np.empty(0, dtype=np.int64)
