"""Redraws: a decoder as other samples of the same population might have given it.

A decoder depends on the rows that happened to be sampled. *Confidence* is the share of redraws
under which an action succeeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.batches import chunks

if TYPE_CHECKING:
    from dear_plugin.data.encoder import Encoder
    from dear_plugin.decoders.protocol import Decoder
    from dear_plugin.problem.action_sets import ActionSets

REFITS = 4
ROWS_A_CHUNK = 1024


class Redraws(ABC):
    """R decoders, each as another sample of the same population might have given it.

    Attributes:
        count: R.

    Example:
        >>> from dear_plugin.decoders import Redraws, Refitted
        >>> issubclass(Refitted, Redraws)
        True
    """

    count: int

    @abstractmethod
    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """The rows, (m, r, p), that follow when x_S takes new values.

        Every redraw encodes the row itself, then decodes it; at the row's own x_S each returns
        the row. The result for one row depends neither on the other rows nor on earlier calls.

        Args:
            x: (m, p) the factual rows.
            values: (m, w) the new values of the set's features, in `ActionSets.positions` order.
            sets: (m,) int64, the set acted on.
            which: (r,) int64, the requested redraws, each in 0 ... R - 1.
        """


class DecoderRedraws(Redraws):
    """Redraws that are separate decoders, evaluated one after another."""

    @abstractmethod
    def _decoder(self, redraw: int) -> Decoder:
        """The fitted decoder of one redraw."""

    def decode(self, x: Tensor, values: Tensor, sets: Tensor, which: Tensor) -> Tensor:
        """The rows that follow, (m, r, p); see `Redraws.decode`."""
        out = x.new_empty(len(x), len(which), x.shape[1])
        for i, redraw in enumerate(which.tolist()):
            decoder = self._decoder(redraw)
            for part, new, acted, into in zip(
                *(chunks(each, ROWS_A_CHUNK) for each in (x, values, sets, out)), strict=True
            ):
                v = decoder.encode(part)[torch.arange(len(part)), acted]
                into[:, i] = decoder.decode(part, v, new[:, None], acted)[:, 0]
        return out


class Refitted(DecoderRedraws):
    """Copies of any decoder, each fitted on a bootstrap sample of the rows when first needed.

    Args:
        decoder: the copies have its settings.
        rows: (n, p) the training rows.
        encoder: the encoder.
        sets: what may be acted on.
        count: R.

    Example:
        >>> from dear_plugin import ActionSets, Encoder, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> from dear_plugin.decoders import Refitted
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> rows, sets = Encoder(schema).rows(frame), ActionSets.of(schema, ["savings"])
        >>> Refitted(Transport(), rows, Encoder(schema), sets=sets).count
        4
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
        self._unfitted, self._rows, self._encoder = decoder.clone_unfitted(), rows, encoder
        self._fitted: dict[int, Decoder] = {}

    def _decoder(self, redraw: int) -> Decoder:
        if redraw not in self._fitted:
            # The search runs in inference mode, in which nothing can be trained.
            with torch.inference_mode(False), torch.enable_grad():
                decoder, n = self._unfitted.clone_unfitted(), len(self._rows)
                generator = torch.Generator().manual_seed(redraw)
                drawn = torch.randint(n, (n,), generator=generator)
                decoder.fit(self._rows.clone()[drawn], self._encoder, self.sets)
                self._fitted.setdefault(redraw, decoder)
        return self._fitted[redraw]


class JointRedraws(DecoderRedraws):
    """Redraws that are all made at once, when the first of them is needed.

    Args:
        make: makes them.
        count: R.
    """

    def __init__(self, make: Callable[[], Sequence[Decoder]], count: int) -> None:
        self.count = count
        self._make = make

    def _decoder(self, redraw: int) -> Decoder:
        return self._decoders[redraw]

    @lazy
    def _decoders(self) -> Sequence[Decoder]:
        with torch.enable_grad():
            return self._make()
