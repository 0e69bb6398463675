"""The decoders of all action sets: `fit` fits several at once, `of` any other when it is needed.

A set with features that follow from others of it is decoded in parts, see `InOrder`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from dear_plugin._threads import each_in_threads
from dear_plugin.decoders.protocol import FEWER_ROWS, MOST_ROWS, Decoder, Fit, Members, Sample

# A set and a draw.
Key = tuple[Members, int]
# Float32 entries of fitted decoders in memory: 1 GiB, or a quarter of the machine's memory where
# that is more. The latest one is always kept.
ENTRIES, SHARE = 1 << 28, 4
# A search takes about four times as long as to decode so many values of each set, by measurement
# of three tables.
DECODED, VALUES = 4.0, 32
# What a bar says.
WHAT = "fitting, action sets"


class Decoders:
    """One decoder for each action set and draw, fitted on demand, within a bound on memory.

    A decoder depends on the training rows and its set, not on earlier calls. The given
    sets are fitted on at most `MOST_ROWS` of the rows, other sets on `FEWER_ROWS`. A set with
    features of several tiers, or with a feature and what follows from it, has no decoder of its
    own, but those of its parts; see `InOrder`.

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
        self._most = sample.at_most(MOST_ROWS)
        self._fewer = self._most.at_most(FEWER_ROWS, shares=True)
        self._fitted: dict[Key, Decoder] = {}
        # The sets that each was trained with; a joint decoder's resamples have the same.
        self._together = dict.fromkeys(self.given, self.given)
        self._locks: dict[tuple[Any, ...], RLock] = {}
        self._parts: dict[Members, tuple[Members, ...]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The state without locks, and without decoders that are estimated again on first use."""
        slow = {key: decoder for key, decoder in self._fitted.items() if decoder.tensors()}
        return {**self.__dict__, "_locks": {}, "_fitted": slow}

    def fit(self, sets: Iterable[Members]) -> None:
        """Fit the decoders of some sets that are not in memory, together where that is faster.

        Others are fitted in as many threads as `fitting` says.
        """
        parts = self._parts_of(sets)
        if self.decoder.joint:
            with self._lock():
                if missing := self._missing(parts):
                    self._together |= dict.fromkeys(missing, missing)
                    self._fit_batch([(s, 0) for s in missing])
        else:
            each_in_threads(lambda acted: self._at(acted, 0), self._missing(parts), WHAT)

    def _missing(self, parts: Iterable[Members]) -> tuple[Members, ...]:
        """Those whose decoders are not in memory."""
        return tuple(s for s in parts if (s, 0) not in self._fitted)

    def seconds(self, sets: Iterable[Members]) -> float:
        """About how long a row alone takes that is searched on some sets, without the model."""
        row, start = self.sample.rows[:1], time.perf_counter()
        for acted in sets:
            values = row[:, None, list(acted)].expand(-1, VALUES, -1).contiguous()
            self.of(acted).decode(row, self.of(acted).encode(row), values)
        return DECODED * (time.perf_counter() - start)

    def of(self, acted: Members) -> Decoder:
        """The fitted decoder of a set, by the positions of its features."""
        parts = self._parts.get(acted)
        if parts is None:
            parts = self._parts[acted] = self.decoder.parts(self.sample.encoder.schema, acted)
        return self._at(acted, 0) if len(parts) == 1 else InOrder(self, acted, parts)

    def held(self, acted: Members) -> Members:
        """The features that the decoder of a set does not move."""
        return self.decoder.held(self.sample.encoder.schema, acted)

    def conditioned(self, acted: Members) -> Members:
        """The held features that the decoder of a set conditions on."""
        return self.decoder.conditioned(self.sample.encoder.schema, acted)

    def resample(self, acted: Members, x: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """The rows, (m, r, p), that follow under some resamples; see `Decoder.resample`."""
        decoder = self.of(acted)
        before = decoder.entries
        out = decoder.resample(x, values, draws, lambda draw: self._at(acted, draw))
        if decoder.entries > before:  # what is estimated for resamples stays in memory
            self.keep({})
        return out

    def fit_of(self, acted: Members, draw: int = 0) -> Fit:
        """What the decoder of a set and a draw is fitted on."""
        sample = self._most if acted in self.given else self._fewer
        if draw:
            sample = sample.shared(Sample.drawn, draw)
        return Fit(sample, acted, self.held(acted))

    def keep(self, made: Mapping[Key, Decoder]) -> None:
        """Keep fitted decoders, by set and draw; the oldest ones are evicted."""
        with self._lock():
            self._fitted |= made
            room = most_entries() - sum(each.entries for each in self._fitted.values())
            for oldest in list(self._fitted)[:-1]:
                if room >= 0:
                    break
                room += self._fitted.pop(oldest).entries

    def _parts_of(self, sets: Iterable[Members]) -> tuple[Members, ...]:
        """The parts of some sets, each once."""
        schema = self.sample.encoder.schema
        return tuple(dict.fromkeys(p for s in sets for p in self.decoder.parts(schema, s)))

    def _lock(self, *key: Any) -> RLock:
        """That of a decoder, of those that are trained together, or of what is in memory.

        It is of this process: the threads that hold its parent's never open it in a fork.
        """
        name = () if self.decoder.joint else key
        return self._locks.setdefault((os.getpid(), *name), RLock())

    def _at(self, acted: Members, draw: int) -> Decoder:
        if (decoder := self._used(acted, draw)) is not None:
            return decoder
        with self._lock(acted, draw):
            if (decoder := self._used(acted, draw)) is not None:
                return decoder
            keys, many = [(acted, draw)], self.decoder.draws
            if draw and self.decoder.joint:
                first = draw - (draw - 1) % many
                every = range(first, first + many)
                keys = [(s, r) for r in every for s in self._together.get(acted, (acted,))]
            return self._fit_batch(keys)[acted, draw]

    def _used(self, acted: Members, draw: int) -> Decoder | None:
        """One in memory, if it is there; the latest one used is evicted last."""
        with self._lock():
            decoder = self._fitted.pop((acted, draw), None)
            if decoder is not None:
                self._fitted[acted, draw] = decoder
            return decoder

    def _fit_batch(self, keys: Sequence[Key]) -> dict[Key, Decoder]:
        # The search runs in inference mode, in which nothing can be trained.
        with torch.inference_mode(False), torch.enable_grad():
            fits = [self.fit_of(*key) for key in keys]
            # The first training is the one whose history is shown.
            decoder = self.decoder.clone_unfitted() if self._fitted else self.decoder
            made = dict(zip(keys, decoder.fitted(fits), strict=True))
        self.keep(made)
        return made


def most_entries() -> int:
    """The bound on float32 entries; a call over more decoders would fit all of them anew."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return ENTRIES
    return max(ENTRIES, memory // SHARE // 4)


class InOrder(Decoder):
    """The parts of a set, decoded one after another: causes before what may follow from them.

    A later part starts from the rows that follow from the earlier ones. Decoded at once, it would
    move the features between two parts, which may be causes of it and are no consequences.

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
        >>> type(dear.decoders.of(schema.index(["income", "savings"]))).__name__
        'InOrder'
    """

    def __init__(self, decoders: Decoders, acted: Members, parts: tuple[Members, ...]) -> None:
        self._decoders, self._acted, self._parts = decoders, acted, parts

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

    def resample(
        self, x: Tensor, values: Tensor, draws: Tensor, copy: Callable[[int], Decoder]
    ) -> Tensor:
        """The rows, (m, r, p), that follow under the same resample of all parts."""
        (first, *later), resample = self._parts, self._decoders.resample
        rows = resample(first, x, values[:, self._at(first)], draws)
        for part in later:
            wanted, each = values[:, self._at(part)], draws.split(1)
            parts = [resample(part, rows[:, i], wanted, draw) for i, draw in enumerate(each)]
            rows = torch.cat(parts, 1)
        return rows

    @property
    def uncompared(self) -> float:
        """The largest share of the parts; see `Decoder.uncompared`."""
        return max(self._decoders.of(part).uncompared for part in self._parts)

    def _at(self, part: Members) -> list[int]:
        """The places of the features of a part among those of the set."""
        return [self._acted.index(j) for j in part]
