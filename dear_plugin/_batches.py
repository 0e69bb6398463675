"""Memory: what of it is taken at a time, and what the C library keeps of what is freed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# The largest block that glibc learns from is one of 32 MiB, with what it writes beside it.
ROOM = 31 << 20


def keep_room() -> None:
    """Make the C library keep what large operations free for the next ones.

    glibc gives back what is freed above a threshold, and the pages of the next tensor are faulted
    in anew, thousands of times a call. The threshold is twice the largest block that was ever
    freed: one is enough, and another does no harm. Nobody writes to it, so it takes no memory, but
    up to twice as much of what is freed later stays with the process. Any program that frees an
    array of this size has done the same; other C libraries take no notice.
    """
    torch.empty(ROOM, dtype=torch.uint8, device="cpu")


def chunks(rows: Tensor, size: int) -> Sequence[Tensor]:
    """A tensor in parts of so many rows, which share its memory.

    What fits into one part is that part itself: to split it would only take time.

    Args:
        rows: (n, ...) any tensor.
        size: how many rows a part has at most.
    """
    return rows.split(size) if len(rows) > size else (rows,)
