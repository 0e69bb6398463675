"""Column: what a kind of column does; cells of a frame in, row values out, and back.

Each kind is a subclass of `Feature` in one file of `kinds`, which has these methods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Self, TypeVar, TypeVarTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.kinds.cells import Array, Reading

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
# The values that are no amounts, or not known; None where they are not stated.
Special = tuple[Any, ...] | None


class Column:
    """The methods of a kind of column.

    Attributes:
        limited_by: the arguments of `Constraints` that limit it, the usual one first.
    """

    limited_by: ClassVar[tuple[str, ...]] = ("categories",)

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Whether a feature of a kind, with these other attributes, is of this class."""
        raise NotImplementedError

    @classmethod
    def infer(cls, column: pd.Series, special: Special, as_category: bool) -> Self | None:
        """The feature of a training column, without the user's constraints on changes.

        Args:
            column: (n,) its cells.
            special: the values that are no amounts, or not known; None where not stated.
            as_category: whether numbers are categories, and an order of levels is ignored.

        Returns:
            The feature; None where the column is of another kind.
        """
        raise NotImplementedError

    def read_cells(self, column: pd.Series, accepted: Array | None) -> Reading:
        """The row values of a column that is not sparse; see `Feature.read`."""
        raise NotImplementedError

    def spread(self, values: Array) -> Array:
        """(n, q) the row values of each of its q columns of frames, of its own, (n,)."""
        return values[:, None]

    def cells(self, values: Array) -> Array:
        """Row values of any shape as cells."""
        raise NotImplementedError

    def cells_in(self, values: Array, dtype: Any) -> Array:
        """Row values, (n,), as cells of a column of a dtype."""
        return self.cells(values)

    def column(self, values: Array) -> pd.Series | Array:
        """Row values, (n,), as a column of the feature's dtype, or an array."""
        raise NotImplementedError

    def range_in(self, dtype: Any) -> tuple[float, float, int | None]:
        """The least and greatest row value of a column of a dtype, and its decimals.

        By the schema, and as far as the dtype can hold it; None leaves values unrounded.
        """
        raise NotImplementedError

    @property
    def width(self) -> float:
        """The range that is scaled to [0, 1]; 1 for constants and categories."""
        return 1.0

    @property
    def action_step(self) -> float:
        """The step of actions on it; 0 where there is none: any value, or the observed ones."""
        return 0.0

    @property
    def codes(self) -> tuple[float, ...]:
        """The numbers inside of its range that are no amounts."""
        return ()

    @property
    def circle(self) -> tuple[Hashable, ...]:
        """The labels at its first row values that go around; () where none do."""
        return ()

    @property
    def is_flag(self) -> bool:
        """Whether it is 0 or 1: as two values, words of a host, or a number of two values."""
        return False

    def is_one(self, column: pd.Series) -> Array:
        """(n,) bool, the cells of a flag, (n,), that are 1."""
        return np.asarray((column == self.cells(np.ones(1))[0]).to_numpy(dtype=bool))

    def place(self, cell: Any) -> Any:
        """The row value of a number or label.

        A code of a number, whose row value is another, and what it cannot read are returned as
        they are; by labels without an order, what is none of them as NaN.
        """
        return cell

    def is_amount(self, cell: Any) -> bool:
        """Whether a cell is a number, and neither a code nor missing."""
        return False

    def coarser(self, values: Tensor, how: Callable[[Tensor], Tensor]) -> Tensor:
        """Row values, (n,), as a function makes fewer of them or groups; labels as they are."""
        return values

    def either(self, amounts: Callable[[*Ts], T], labels: Callable[[*Ts], T], *args: *Ts) -> T:
        """What a function makes of arguments: the first one of numbers, the second of labels."""
        return labels(*args)

    def with_central(self, column: pd.Series, share: float) -> Self:
        """A feature with the central range of its training column, (n,), and its unit of cost.

        Args:
            column: its training cells.
            share: the share of the values, without special ones, that are central.
        """
        return self

    def values(self, column: Tensor) -> Tensor:
        """(l,) ascending, the row values that an action may set, given training ones, (n,)."""
        raise NotImplementedError

    @property
    def special_values(self) -> Tensor:
        """(l,) double, the row values of codes, what is not known and, last, what is missing."""
        raise NotImplementedError

    @property
    def label_values(self) -> Tensor:
        """(l,) double, the row values that are no amounts and that an action may set or leave."""
        raise NotImplementedError

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """(m, 2) int64, the label before and after, (m,); of amounts -2 the less, -1 the more."""
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """The number of its encoded columns."""
        return 1

    @property
    def has_new(self) -> bool:
        """Whether it has read a label that no training row has."""
        return False

    def expand_new(self, values: Tensor) -> Tensor:
        """(n, columns) the encoded columns of such labels, (n,)."""
        return torch.zeros(len(values), self.columns)
