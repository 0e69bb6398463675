"""The interface of decoders: g(v, x_S) for one action set S, fitted on a sample of rows.

Where the probabilities of categories change, as few rows as possible change theirs: the maximal
coupling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from dear_plugin._threads import Once, lazy
from dear_plugin._validation import Named
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import Array, known
from dear_plugin.data.schema import Schema
from dear_plugin.errors import DearError

Members = tuple[int, ...]


class Fit(NamedTuple):
    """What one decoder is fitted on.

    Attributes:
        sample: the training rows.
        acted: the positions of the features of S.
        held: the positions of the features that do not move with S.

    Example:
        >>> from dear_plugin import Encoder, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> from dear_plugin.decoders import Fit, Sample
        >>> frame = load_loan(1_000).frame
        >>> encoder = Encoder(Schema.infer(frame, target="approved", immutable=["gender"]))
        >>> income, gender = (encoder.schema.index([name]) for name in ("income", "gender"))
        >>> fit = Fit(Sample(encoder.rows(frame), encoder), acted=income, held=gender)
        >>> decoder = Transport()
        >>> decoder.fit(*fit)
    """

    sample: Sample
    acted: Members
    held: Members


class Decoder(Named, ABC):
    """Indirect changes that follow a change of x_S: an association, see `Schema.infer`.

    A decoder is configured by its constructor and learns in `fit`, for one action set. A subclass
    implements `settings`, `fit`, `encode` and `decode`. At `values = x_S`, `decode` returns x
    itself; only the literal paper's decoder returns a reconstruction.

    Attributes:
        draws: how many resamples a search evaluates, R: those from 1 to R. `resample` evaluates as
            many further ones, which no search has seen.
        joint: whether `fitted` is faster for several sets at once.
        pair_features: how many features are combined to pairs for rows that no single feature
            solves.

    Example:
        >>> from dear_plugin import Decoder, Transport
        >>> isinstance(Transport(), Decoder)
        True
    """

    draws: ClassVar[int] = 4
    joint: ClassVar[bool] = False
    pair_features: ClassVar[int] = 12

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments as plain values for JSON."""

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        return cls(**settings)

    def clone_unfitted(self) -> Self:
        """An unfitted copy with the same settings."""
        return type(self).with_settings(self.settings())

    def held(self, schema: Schema, acted: Members) -> Members:
        """The features that this decoder does not move for a set."""
        return schema.causal_order.held(acted)

    def conditioned(self, schema: Schema, acted: Members) -> Members:
        """The held features that it conditions on; with tiers, and without an order, all."""
        return schema.causal_order.conditioned(acted)

    def parts(self, schema: Schema, acted: Members) -> tuple[Members, ...]:
        """The parts of a set that are decoded one after another, causes first."""
        return schema.causal_order.parts(acted)

    @abstractmethod
    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Learn from training rows, `sample.rows`, (n, p).

        Args:
            sample: the training rows; `sample.shared` computes once what all sets need.
            acted: the positions of the features of S, ascending or as given by the user.
            held: the positions of the features that keep their value; `conditioned` names those
                to be conditioned on.
        """

    @abstractmethod
    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents v of rows, (m, p) -> (m, k).

        Args:
            x: the factual rows.
            generator: breaks ties at random, where the decoder has ties; None takes the middle.
        """

    @abstractmethod
    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows, (m, c, p), that follow when x_S takes each of c values.

        The search calls it in `torch.inference_mode`: tensors that a decoder keeps from a call
        cannot take part in a differentiation.

        Args:
            x: (m, p) the factual rows.
            v: (m, k) their latents.
            values: (m, c, w) the new values of the w features of S, in the order of `acted`.
        """

    def resample(
        self, x: Tensor, values: Tensor, draws: Tensor, copy: Callable[[int], Decoder]
    ) -> Tensor:
        """The rows, (m, r, p), that follow under some resamples of the decoder.

        A resample is the decoder as another sample of the same population might have given it; by
        default a copy fitted on a bootstrap sample. It encodes the row itself, then decodes it.

        Args:
            x: (m, p) the factual rows.
            values: (m, w) the new values of x_S.
            draws: (r,) int64, from 1 on; a decoder makes those beyond R when they are needed.
            copy: the copy of a draw.
        """
        out = x.new_empty(len(x), len(draws), x.shape[1])
        for i, draw in enumerate(draws.tolist()):
            decoder = copy(draw)
            out[:, i] = decoder.decode(x, decoder.encode(x), values[:, None])[:, 0]
        return out

    def fitted(self, fits: Sequence[Fit]) -> list[Self]:
        """A fitted copy for each fit; by default one after another."""
        decoders = [self.clone_unfitted() for _ in fits]
        for decoder, each in zip(decoders, fits, strict=True):
            decoder.fit(*each)
        return decoders

    def tensors(self) -> dict[str, Tensor]:
        """What a save keeps; by default nothing, and `load_state` fits again."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor], fit: Fit) -> None:
        """The inverse of `tensors`.

        Raises:
            ValueError: tensors of other settings, features or sets.
        """
        self.fit(*fit)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows that follow, (n, d), differentiable in a: for `Search(solver="paper")`.

        Args:
            x: (n, d) encoded factual rows.
            v: (n, k) their latents.
            a: (n, d) encoded rows, of which only the columns of S are read.

        Raises:
            DearError: by default there are no derivatives.
        """
        raise DearError(
            f"{type(self).__name__} has no derivatives, which solver='paper' needs: use"
            " decoder='autoencoder'"
        )

    def entanglement(self, rows: Tensor) -> Tensor:
        """(n,) mean size of `d2 g / dv dx_S` over outputs, at rows, (n, p); by default NaN."""
        return torch.full((len(rows),), torch.nan)

    @property
    def entries(self) -> int:
        """The number of entries in memory."""
        return sum(tensor.numel() for tensor in self.tensors().values())

    @property
    def uncompared(self) -> float:
        """The share of training rows compared with rows that differ in some held feature."""
        return 0.0


# The place of a row among those of the same category, without a random draw.
MIDDLE = 0.5
# A probability is 0 below `TINY`, and a tie is at the middle within `NEAR` of it.
TINY, NEAR = 1e-9, 1e-6


def maximal_coupling(shares: Array, here: Array, there: Array, code: Array, tie: Array) -> Array:
    """(l,) categories by the maximal coupling: a row keeps its own, or takes one that gains.

    A category is kept if the tie is at most the ratio of its probabilities, after to before.

    Args:
        shares: (u, t) the probability of each category in each of u distributions.
        here: (l,) the rows' own distributions.
        there: (l,) the distributions after the change.
        code: (l,) the rows' own categories.
        tie: (l,) the place among rows of the same category; the middle gives the category with
            the largest increase.
    """
    out, middle = code.copy(), np.abs(tie - MIDDLE) < NEAR
    kept = (shares[there, code] + TINY) / (shares[here, code] + TINY)
    # Otherwise rounding would decide for a tie at the middle when a probability exactly halves.
    row = (kept < np.where(middle, MIDDLE - NEAR, tie)).nonzero()[0]
    gain, kept = np.maximum(shares[there[row]] - shares[here[row]], 0.0), kept[row]
    drawn = (tie[row] - kept) / np.maximum(1.0 - kept, TINY)
    cumulative = gain.cumsum(1) / np.maximum(gain.sum(1, keepdims=True), TINY)
    random = np.minimum((cumulative < drawn[:, None]).sum(1), gain.shape[1] - 1)
    out[row] = np.where(middle[row], gain.argmax(1), random)
    return out


P = ParamSpec("P")
T = TypeVar("T")

# The given sets are fitted on so many rows at most, and other sets on fewer.
MOST_ROWS, FEWER_ROWS = 200_000, 10_000


class Sample:
    """n training rows.

    Args:
        rows: (n, p) the rows.
        encoder: the encoder of the rows.
        whole: the sample that these are some rows of; None for itself.

    Attributes:
        rows: (n, p) float64 in user units, on the CPU.
        encoder: the encoder of the rows.
        whole: the sample that these are some rows of, which shares what it has computed.

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

    def __init__(self, rows: Tensor, encoder: Encoder, whole: Sample | None = None) -> None:
        self.rows, self.encoder, self.whole = rows.double().cpu(), encoder, whole or self
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
        return known(self.rows)

    def scaled(self, j: int) -> Tensor:
        """(n,) double, the values of feature j, numbers as shares of their range."""
        return self.encoder.scaled(self.rows[:, j], j)

    def drawn(self, draw: int) -> Sample:
        """The bootstrap sample of a draw: n rows, drawn with replacement."""
        n, generator = len(self), torch.Generator().manual_seed(draw)
        return Sample(self.rows[torch.randint(n, (n,), generator=generator)], self.encoder)

    def at_most(self, count: int, *, shares: bool = False) -> Sample:
        """At most so many of the rows, the same in every call.

        Args:
            count: how many.
            shares: whether this is their `whole`. Odd rows of it are odd ones of them.
        """
        if len(self) <= count:
            return self
        generator = torch.Generator().manual_seed(0)
        pairs = torch.randperm(len(self) // 2, generator=generator)[: -(-count // 2)]
        some = (2 * pairs[:, None] + torch.arange(2)).flatten()[:count]
        return Sample(self.rows[some], self.encoder, self if shares else None)
