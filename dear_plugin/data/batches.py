"""Batches: a tensor split into views of bounded size."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def chunks(rows: Tensor, size: int) -> Sequence[Tensor]:
    """Views of a tensor, (n, ...), of at most `size` rows each.

    Args:
        rows: any tensor.
        size: the maximum number of rows of a part.
    """
    return rows.split(size) if len(rows) > size else (rows,)
