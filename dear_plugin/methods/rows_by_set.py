"""Rows by set: rows grouped by the features that they act on."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor


def rows_by_set(acted: Tensor, rows: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The sets of features that rows act on, each with its rows; no set is empty.

    Args:
        acted: (n, p) bool, the features that each row acts on.
        rows: (m,) ascending, the rows to group.

    Yields:
        The positions of the features, ascending, and (q,) the rows, ascending.
    """
    if not len(rows):
        return
    masks, which = acted[rows].unique(dim=0, return_inverse=True)
    for i, mask in enumerate(masks):
        if members := tuple(mask.nonzero()[:, 0].tolist()):
            yield members, rows[which == i]
