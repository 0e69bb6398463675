"""Redraws: a decoder as it might have been learned from other rows of the same population.

What a decoder says rests on the rows that happened to be sampled. Redraws are what *confidence* is
computed with: an action is worth what it is worth under most of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dear_plugin._batches import chunks
from dear_plugin._lazy import lazy

if TYPE_CHECKING:
    from dear_plugin.data.encoder import Encoder
    from dear_plugin.decoders.protocol import Decoder
    from dear_plugin.problem.action_sets import ActionSets

REFITS = 4
ROWS_A_CHUNK = 1024


class Redraws(ABC):
    """R decoders as they might have been learned from other rows of the same population.

    Attributes:
        count: R.
    """

    count: int

    @abstractmethod
    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """Where rows end up, (m, r, p), when their x_S becomes new values.

        Every redraw encodes the row for itself, then decodes it. At the row's own x_S each gives
        the row back. What one row gets depends neither on the others nor on
        what was asked before.

        Args:
            x: (m, p) the factual rows.
            values: (m, w) the new values of the set's features, in `ActionSets.positions` order.
            sets: (m,) int64, the set acted on.
            which: (r,) int64, the redraws asked for, each in 0 ... R - 1.
        """


class Copies(Redraws):
    """Redraws that are decoders of their own, asked one after another."""

    @abstractmethod
    def _copy(self, redraw: int) -> Decoder:
        """One of them, fitted."""

    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """Where rows end up, (m, r, p); see `Redraws.decode`."""
        out = x.new_empty(len(x), len(which), x.shape[1])
        for at, redraw in enumerate(which.tolist()):
            decoder = self._copy(redraw)
            for own, there, acted, into in zip(
                *(chunks(each, ROWS_A_CHUNK) for each in (x, values, sets, out)), strict=True
            ):
                v = decoder.encode(own)[torch.arange(len(own)), acted]
                into[:, at] = decoder.decode(own, v, there[:, None], acted)[:, 0]
        return out


class Refitted(Copies):
    """Copies of any decoder, each fitted on a bootstrap sample of the rows when first asked for.

    Args:
        decoder: whose settings the copies have.
        rows: (n, p) the training rows.
        encoder: the gate.
        sets: what may be acted on.
        count: R.
    """

    def __init__(
        self,
        decoder: Decoder,
        rows: Tensor,
        encoder: Encoder,
        *,
        sets: ActionSets,
        count: int = REFITS,
    ) -> None:
        self.count = count
        self.sets = sets
        self._decoder, self._rows, self._encoder = decoder.clone_unfitted(), rows, encoder
        self._fitted: dict[int, Decoder] = {}

    def _copy(self, redraw: int) -> Decoder:
        if redraw not in self._fitted:
            # A search asks in inference mode, in which nothing can be trained.
            with torch.inference_mode(False), torch.enable_grad():
                decoder, n = self._decoder.clone_unfitted(), len(self._rows)
                generator = torch.Generator().manual_seed(redraw)
                drawn = torch.randint(n, (n,), generator=generator)
                decoder.fit(self._rows.clone()[drawn], self._encoder, self.sets)
                self._fitted.setdefault(redraw, decoder)
        return self._fitted[redraw]


class JointRedraws(Copies):
    """Redraws that are all made at once, when the first of them is asked for.

    Args:
        make: makes them.
        count: R.
    """

    def __init__(self, make: Callable[[], Sequence[Decoder]], count: int) -> None:
        self.count = count
        self._make = make

    def _copy(self, redraw: int) -> Decoder:
        return self._made[redraw]

    @lazy
    def _made(self) -> Sequence[Decoder]:
        with torch.enable_grad():
            return self._make()
