"""Rows: records with an entry for each of m rows, selected, joined and merged column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """A record of m rows: its tensors and arrays are columns, all else holds for every row."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The records of consecutive chunks as one; what holds for every row is the first's."""
        first, *others = parts
        return first._changed(lambda *columns: np.concatenate(columns), *others)

    def select(self, idx: Tensor) -> Self:
        """The rows at positions (q,)."""
        return self._changed(lambda column: column[idx.numpy()])

    def merged(self, part: Self, idx: Tensor) -> Self:
        """This record with the rows at positions (q,) replaced by those of another."""
        return self._changed(lambda column, new: _put(column.copy(), idx, new), part)

    def _changed(self, change: Callable[..., Column], *others: Self) -> Self:
        """This record with each column changed, given those of other records."""
        out: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            columns = [getattr(each, name) for each in (self, *others)]
            if isinstance(columns[0], Tensor):
                out[name] = torch.from_numpy(change(*map(_array, columns)))
            elif isinstance(columns[0], np.ndarray):
                out[name] = change(*columns)
        return replace(self, **out)


def _put(column: Column, idx: Tensor, new: Column) -> Column:
    """A column, some rows of which are replaced in place."""
    column[idx.numpy()] = new
    return column


def _array(column: Tensor) -> Column:
    """A tensor as an array; a method may propose rows on a GPU, or with a gradient."""
    array: Column = column.detach().cpu().numpy()
    return array
