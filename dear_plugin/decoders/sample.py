"""Sample: training rows, and what the decoders of all action sets compute from them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

from dear_plugin._lazy import Once, lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import known

P = ParamSpec("P")
T = TypeVar("T")

# The given sets are fitted on so many rows at most, and other sets on fewer.
MOST_ROWS, FEWER_ROWS = 200_000, 10_000


class Sample:
    """n training rows.

    Args:
        rows: (n, p) the rows.
        encoder: the encoder of the rows.

    Attributes:
        rows: (n, p) float64 in user units, on the CPU.
        encoder: the encoder of the rows.

    Example:
        >>> import torch
        >>> from dear_plugin import Encoder, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> from dear_plugin.decoders import Sample
        >>> frame = load_loan(200).frame
        >>> encoder = Encoder(Schema.infer(frame, target="approved"))
        >>> len(Sample(encoder.rows(frame), encoder))
        200
    """

    def __init__(self, rows: Tensor, encoder: Encoder) -> None:
        self.rows, self.encoder = rows.double().cpu(), encoder
        self._shared = Once()

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.rows)

    def shared(
        self, make: Callable[Concatenate[Sample, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`make(sample, ...)`, computed once for the same function and arguments."""
        key = make, args, tuple(kwargs.items())
        return self._shared.get(key, lambda: make(self, *args, **kwargs))

    @lazy
    def known(self) -> Tensor:
        """(n, p) bool, the cells that are neither missing nor coded numbers."""
        cells: Tensor = known(self.rows)
        return cells

    def scaled(self, j: int) -> Tensor:
        """(n,) double, the values of feature j, numbers as shares of their range."""
        return self.encoder.scaled(self.rows[:, j], j)

    def drawn(self, draw: int) -> Sample:
        """The bootstrap sample of a draw: n rows, drawn with replacement."""
        n, generator = len(self), torch.Generator().manual_seed(draw)
        return Sample(self.rows[torch.randint(n, (n,), generator=generator)], self.encoder)

    def at_most(self, count: int) -> Sample:
        """At most so many of the rows, the same in every call."""
        if len(self) <= count:
            return self
        generator = torch.Generator().manual_seed(0)
        some = torch.randperm(len(self), generator=generator)[:count]
        return Sample(self.rows[some], self.encoder)
