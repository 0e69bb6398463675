"""Batches: a tensor in parts, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def chunks(rows: Tensor, size: int) -> Sequence[Tensor]:
    """A tensor in parts of at most `size` rows, which share its memory.

    Args:
        rows: (n, ...) any tensor.
        size: the most rows of a part.
    """
    return rows.split(size) if len(rows) > size else (rows,)
