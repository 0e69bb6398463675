"""Decoders: the decoder of every action set, fitted when it is first needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from dear_plugin.decoders.in_order import InOrder
from dear_plugin.decoders.protocol import Decoder, Fit, Members
from dear_plugin.decoders.sample import FEWER_ROWS, MOST_ROWS, Sample

logger = logging.getLogger(__name__)

# Float32 entries of fitted decoders in memory: 1 GiB. The latest one is always kept.
ENTRIES = 1 << 28


class Decoders:
    """One decoder for each action set and draw, fitted on demand, within a bound on memory.

    A decoder depends on the training rows and its set, not on what was asked before. The given
    sets are fitted on at most `MOST_ROWS` of the rows, other sets on `FEWER_ROWS`. A set with
    features of several tiers has no decoder of its own, but those of its parts; see `InOrder`.

    Attributes:
        given: the given sets, or their parts.

    Args:
        decoder: its settings are those of all of them.
        sample: the training rows.
        given: the sets that the user named.

    Example:
        >>> from dear_plugin import Encoder, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> from dear_plugin.decoders import Decoders, Sample
        >>> frame = load_loan(1_000).frame
        >>> encoder = Encoder(Schema.infer(frame, target="approved", immutable=["gender"]))
        >>> rows = encoder.rows(frame)
        >>> income = encoder.schema.index(["income"])
        >>> decoder = Decoders(Transport(), Sample(rows, encoder), [income]).of(income)
        >>> decoder.decode(rows[:2], decoder.encode(rows[:2]), rows[:2, None, income]).shape
        torch.Size([2, 1, 7])
    """

    def __init__(self, decoder: Decoder, sample: Sample, given: Sequence[Members]) -> None:
        self.decoder, self.sample = decoder, sample
        self.given = self._parts_of(given)
        self._most, self._fewer = sample.at_most(MOST_ROWS), sample.at_most(FEWER_ROWS)
        self._fitted: dict[tuple[Members, int], Decoder] = {}
        # The sets that each was trained with: a joint decoder's redraws are trained with the same.
        self._together = dict.fromkeys(self.given, self.given)
        self._renew_lock()

    def __getstate__(self) -> dict[str, Any]:
        """A lock cannot be pickled."""
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The state with a new lock."""
        self.__dict__ |= state
        self._renew_lock()

    def fit(self, sets: Iterable[Members], draw: int = 0) -> None:
        """Fit the decoders of some sets that are not in memory, at once where that is faster."""
        with self._lock:
            missing = [s for s in self._parts_of(sets) if (s, draw) not in self._fitted]
            batches = [tuple(missing)] if self.decoder.joint else [(s,) for s in missing]
            for batch in filter(None, batches):
                self._together |= dict.fromkeys(batch, batch)
                self._fit_batch([(s, draw) for s in batch])

    def of(self, acted: Members) -> Decoder:
        """The fitted decoder of a set, by the positions of its features."""
        parts = self.decoder.parts(self.sample.encoder.schema, acted)
        return self._at(acted, 0) if len(parts) == 1 else InOrder(self, acted, parts)

    def held(self, acted: Members) -> Members:
        """The features that the decoder of a set conditions on, and does not move."""
        return self.decoder.held(self.sample.encoder.schema, acted)

    def redraw(self, acted: Members, x: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """The rows, (m, r, p), that follow under some redraws; see `Decoder.redraw`."""
        return self.of(acted).redraw(x, values, draws, lambda draw: self._at(acted, draw))

    def put(self, acted: Members, decoder: Decoder) -> None:
        """Keep a decoder that was fitted elsewhere."""
        self._keep({(acted, 0): decoder})

    def _parts_of(self, sets: Iterable[Members]) -> tuple[Members, ...]:
        """The parts of some sets, each once."""
        schema = self.sample.encoder.schema
        return tuple(dict.fromkeys(p for s in sets for p in self.decoder.parts(schema, s)))

    def _renew_lock(self) -> None:
        self._lock = RLock()
        _ALL.add(self)

    def _at(self, acted: Members, draw: int) -> Decoder:
        with self._lock:
            if (decoder := self._fitted.get((acted, draw))) is None:
                if draw and self.decoder.joint:
                    sets = self._together.get(acted, (acted,))
                    every = range(1, self.decoder.draws + 1)
                    return self._fit_batch([(s, r) for r in every for s in sets])[acted, draw]
                return self._fit_batch([(acted, draw)])[acted, draw]
            # The latest one used is evicted last.
            self._fitted[acted, draw] = self._fitted.pop((acted, draw))
            return decoder

    def _fit_batch(
        self, keys: Sequence[tuple[Members, int]]
    ) -> dict[tuple[Members, int], Decoder]:
        # The search runs in inference mode, in which nothing can be trained.
        with torch.inference_mode(False), torch.enable_grad():
            fits = [self.fit_of(*key) for key in keys]
            # The first training is the one whose history is shown.
            decoder = self.decoder.clone_unfitted() if self._fitted else self.decoder
            made = dict(zip(keys, decoder.fitted(fits), strict=True))
        self._keep(made)
        return made

    def fit_of(self, acted: Members, draw: int = 0) -> Fit:
        """What the decoder of a set and a draw is fitted on."""
        sample = self._most if acted in self.given else self._fewer
        if draw:
            sample = sample.shared(lambda whole: whole.drawn(draw), ("drawn", draw))
        return Fit(sample, acted, self.held(acted))

    def _keep(self, made: dict[tuple[Members, int], Decoder]) -> None:
        with self._lock:
            self._fitted |= made
            room = ENTRIES - sum(each.entries for each in self._fitted.values())
            for oldest in list(self._fitted)[:-1]:
                if room >= 0:
                    break
                room += self._fitted.pop(oldest).entries


_ALL: WeakSet[Decoders] = WeakSet()


def _renew_locks() -> None:
    """In a forked child: the threads that hold a lock do not exist, and never open it."""
    for decoders in list(_ALL):
        decoders._renew_lock()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_renew_locks)
