"""InOrder: a set with features of several tiers, decoded one tier after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dear_plugin.decoders.protocol import Decoder, Members
from dear_plugin.decoders.sample import Sample

if TYPE_CHECKING:
    from dear_plugin.decoders.collection import Decoders


class InOrder(Decoder):
    """The parts of a set, one for each tier, decoded one after another, the earliest first.

    A later part starts from the rows that follow from the earlier ones. Decoded at once, it would
    move the features between two tiers, which may be causes of it and are no consequences.

    Args:
        decoders: of all sets.
        acted: the positions of the features of the set.
        parts: those of each part.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> data = load_loan(1_000)
        >>> schema = Schema.infer(data.frame, target="approved", tiers=data.tiers)
        >>> dear = DEAR(lambda rows: rows["savings"] / 60, schema).fit(data.frame)
        >>> dear.decoders.of(schema.index(["income", "savings"]))
        InOrder(2 parts)
    """

    def __init__(self, decoders: Decoders, acted: Members, parts: tuple[Members, ...]) -> None:
        self._decoders, self._acted, self._parts = decoders, acted, parts

    def __repr__(self) -> str:
        """The number of parts."""
        return f"{type(self).__name__}({len(self._parts)} parts)"

    def settings(self) -> dict[str, Any]:
        """Those of the parts."""
        return self._decoders.decoder.settings()

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Nothing: the parts are fitted by the collection."""

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents of the earliest part, (m, k); see `Decoder.encode`."""
        return self._decoders.of(self._parts[0]).encode(x, generator)

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows that follow, (m, c, p); see `Decoder.decode`."""
        first, *later = self._parts
        rows = self._decoders.of(first).decode(x, v, values[..., self._at(first)])
        shape, rows, values = rows.shape, rows.flatten(0, 1), values.flatten(0, 1)
        for part in later:
            decoder, wanted = self._decoders.of(part), values[:, None, self._at(part)]
            rows = decoder.decode(rows, decoder.encode(rows), wanted)[:, 0]
        return rows.view(shape)

    def redraw(
        self, x: Tensor, values: Tensor, draws: Tensor, copy: Callable[[int], Decoder]
    ) -> Tensor:
        """The rows, (m, r, p), that follow under the same redraw of all parts."""
        rows = x[:, None].expand(-1, len(draws), -1)
        for part in self._parts:
            wanted, each = values[:, self._at(part)], draws.split(1)
            parts = [
                self._decoders.redraw(part, rows[:, i], wanted, draw)
                for i, draw in enumerate(each)
            ]
            rows = torch.cat(parts, 1)
        return rows

    @property
    def keeps_factual(self) -> bool:
        """Whether the parts do; see `Decoder.keeps_factual`."""
        return self._decoders.decoder.keeps_factual

    @property
    def uncompared(self) -> float:
        """The largest share of the parts; see `Decoder.uncompared`."""
        return max(self._decoders.of(part).uncompared for part in self._parts)

    def _at(self, part: Members) -> list[int]:
        """The places of the features of a part among those of the set."""
        return [self._acted.index(j) for j in part]
