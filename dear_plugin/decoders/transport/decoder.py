"""Transport: the default decoder; rows keep their conditional ranks.

`v_j = F_j|S(x_j | x_S, held)` is the rank of x_j among rows with the same x_S and the same held
features; `g_j(v, a) = F_j|S^-1(v_j | a, held)` is the value at the same rank among rows with
x_S = a. Of a smooth feature v_j is the residual, of a category it breaks ties. How a smooth
feature follows x_S may differ by what is held, and how the distribution of a counted one does.
Each v_j is independent of x_S; their joint distribution given x_S need not be, which is a
known limit of the decoder. There is no training: rows are counted and regressed once.

Estimate: the conditional distributions of one set in r samples (step 9); rows in, rows out.

The sample itself (r = 1) and its bootstrap samples are estimated by the same lines: a bootstrap
sample differs in the weights of blocks of rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from dear_plugin._threads import Once, lazy
from dear_plugin.data.numbers import Array, known
from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import Decoder, Fit, Members, Sample
from dear_plugin.decoders.transport.counted import Counts, Ratios, differing, fit_ratios, linked
from dear_plugin.decoders.transport.held import Modifiers, cells_of, grows
from dear_plugin.decoders.transport.smooth import Columns, LeastSquares, Lines, chains_of
from dear_plugin.decoders.transport.tables import Tables
from dear_plugin.decoders.transport.values import (
    DRAWS,
    Scaled,
    Values,
    alike,
    axis_of,
    counted_features,
    linear_copies,
    rounding,
    smooth_features,
)
from dear_plugin.errors import ConstraintError, NotFittedError, shown

FEW_ROWS = 1000
# Rows of a call that are encoded and decoded at a time, by entries.
ENTRIES = 1 << 22

logger = logging.getLogger(__name__)


class Transport(Decoder):
    """Conditional ranks of counted features, conditional locations of smooth ones.

    Features with atoms are looked up in tables of observed values; between bins of x_S
    probabilities are mixed, never quantiles. Atom-free features change by the difference of
    locations and keep their residual. A category without an order follows the maximal coupling: it
    is kept unless its probability more than halves, and otherwise replaced by the one whose
    probability increases most. Rows with the same value have the middle of its ranks.

    Args:
        given: features that are conditioned on besides x_S and do not move, for every set; None
            takes those of the schema's order for a set (`CausalOrder.conditioned`), () none.

    Example:
        >>> from dear_plugin import DEAR, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> model, unconditional = lambda rows: rows["savings"] / 60, Transport(given=())
        >>> dear = DEAR(model, schema, act_on=["savings"], decoder=unconditional)
    """

    draws: ClassVar[int] = DRAWS

    def __init__(self, given: Iterable[str] | None = None) -> None:
        if isinstance(given, str):
            raise ConstraintError(f"given must be a list of features or None, got {shown(given)}")
        self.given = None if given is None else tuple(dict.fromkeys(given))
        self._estimate: Estimate | None = None

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"given": self.given}

    def held(self, schema: Schema, acted: Members) -> Members:
        """The held features of a set; see `Decoder.held`.

        Raises:
            ConstraintError: a set that acts on a given feature.
            SchemaError: an unknown given feature.
        """
        if self.given is None:
            return super().held(schema, acted)
        held = schema.index(self.given)
        if both := [schema.names[j] for j in sorted({*held} & {*acted})]:
            raise ConstraintError(
                f"{both} are given, so they cannot be acted on: leave them out of act_on or of"
                " given"
            )
        return held

    def conditioned(self, schema: Schema, acted: Members) -> Members:
        """The held features that it conditions on; see `Decoder.conditioned`."""
        named = self.given is not None
        return self.held(schema, acted) if named else super().conditioned(schema, acted)

    def parts(self, schema: Schema, acted: Members) -> tuple[Members, ...]:
        """The parts of a set; see `Decoder.parts`. With `given` an order has no effect."""
        return super().parts(schema, acted) if self.given is None else (acted,)

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Estimate the conditional distributions of the training rows for a set."""
        sample.shared(_warn_of_few_rows)
        conditioned = {*self.conditioned(sample.encoder.schema, acted)}
        given = tuple(j for j in held if j in conditioned)
        self._estimate = Estimate(sample, acted, given, still=held)

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The conditional ranks of rows, (m, p) -> (m, p + 1); see `Estimate.encode`."""
        encode = self._fitted.encode
        parts = [encode(each, None, generator)[0] for (each,) in _parts(1, x.numpy())]
        return torch.from_numpy(np.concatenate(parts))

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows that follow from new values of x_S, (m, c, p); see `Decoder.decode`."""
        parts = _parts(values.shape[1], x.numpy(), v.numpy(), values.numpy())
        reached = [self._fitted.decode(a, b[None], c)[0] for a, b, c in parts]
        return torch.from_numpy(np.concatenate(reached))

    def resample(self, x: Tensor, values: Tensor, draws: Tensor, copy: object) -> Tensor:
        """The rows, (m, r, p), that follow under some resamples; see `Decoder.resample`."""
        rows, wanted, every = x.numpy(), values.numpy()[:, None], draws.numpy()
        out, groups = np.empty((len(x), len(draws), x.shape[1])), sampled(every)
        for group in np.unique(groups):
            some, fitted = groups == group, self._fitted
            each, parts = every[some], _parts(int(some.sum()), rows, wanted)
            reached = [fitted.decode(a, fitted.encode(a, each), b, each) for a, b in parts]
            out[:, some] = np.concatenate(reached, 1)[:, :, 0].swapaxes(0, 1)
        return torch.from_numpy(out)

    @property
    def uncompared(self) -> float:
        """The share of rows that are compared with rows unequal in some held feature."""
        return max(self._fitted.cells.uncut_shares.values(), default=0.0)

    @property
    def entries(self) -> int:
        """The number of entries in memory, those of the resamples that were needed included."""
        return self._fitted.entries

    @property
    def _fitted(self) -> Estimate:
        if self._estimate is None:
            raise NotFittedError("the decoder is not fitted; call fit first")
        return self._estimate


def _parts(candidates: int, *arrays: Array) -> Sequence[tuple[Array, ...]]:
    """Rows of some arrays, (m, ...), in parts, given the number of candidates of each row."""
    size, m = max(1, ENTRIES // max(candidates, 1) // 64), len(arrays[0])
    if m <= size:
        return [arrays]
    return [tuple(each[i : i + size] for each in arrays) for i in range(0, m, size)]


def _warn_of_few_rows(sample: Sample) -> None:
    if len(sample) < FEW_ROWS:
        text = "fitted on %d rows: below about %d, indirect changes are rough guesses"
        logger.warning(text, len(sample), FEW_ROWS)


# The key of the rows that become missing.
LUCK = 1
# Ranks are inside (0, 1) by so much.
EDGE = 1e-6


class Moving(NamedTuple):
    """What moves with x_S in some samples.

    Attributes:
        tables: the counted features.
        lines: the smooth ones.
        chains: smooth ones that follow counted ones, too.
    """

    tables: Tables
    lines: Lines
    chains: list[Lines]


class Estimate:
    """The conditional distributions of one set in the training rows, and in bootstrap samples.

    Args:
        sample: the training rows.
        acted: the features of the set.
        held: the features that, but for identifiers, are conditioned on.
        still: the features that do not move, those that are held among them.

    Attributes:
        acted: (w,) the features of the set.
        cells: the cells of the held features.
        axis: the bins and nodes of x_S.
        point: what moves in the training rows; without chains.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members, *, still: Members) -> None:
        held = tuple(j for j in held if not sample.encoder.schema.features[j].identifier)
        self.acted, self._set = np.array(acted), Fit(sample, acted, held)
        self.cells, self.axis = cells_of(sample, acted, held), axis_of(sample, acted)
        others = sample.encoder.shares > 0.0
        others[[*still]] = False
        moving = tuple(others.nonzero()[:, 0].tolist())
        others[[*acted]] = False
        may_follow = others.nonzero()[:, 0].tolist()
        self._tested = max(len(may_follow), 1)
        # Linear functions of one of S, its place in S, and the slope.
        copies = sample.shared(linear_copies)
        self._copies = [(j, acted.index(i), b) for i, j, b in copies if i in acted and others[j]]
        others[[j for j, *_ in self._copies]] = False
        smooth = sample.shared(smooth_features)
        counted = (others & sample.shared(counted_features)).nonzero()[:, 0]
        # Those with an order first.
        self._counted = counted[sample.encoder.blocks[counted].long().argsort(stable=True)]
        # What belongs to one feature is the same in all sets that hold the same.
        groups = [
            sample.whole.shared(Modifiers, i, held, tuple(j for j in moving if j != i))
            for i in (acted if held else ())
        ]
        differ = [i for i, each in zip(acted, groups, strict=False) if len(each) > 1]
        known: Mapping[int, Ratios] = {}
        self._groups, self._by_group, self._own = None, self._counted[:0], None
        if differ:
            self._groups = groups[acted.index(differ[0])]
            known, self._by_group, self._own = sample.shared(_by_group, differ[0], held, moving)
            # Those of all rows are those of the tables, too.
            known = known if len(acted) == 1 else {}
        # The number of groups that tables differ by.
        self._count = len(self._groups) if self._groups and len(self._by_group) else 1
        self._columns = Columns(sample, acted, held, groups)
        fit = partial(LeastSquares, sample, self._columns, tested=self._tested)
        moves = [others & smooth & some for some in sample.shared(alike)]
        self._fits = [fit(e, like=i) for i, e in enumerate(moves) if not i or bool(e.any())]
        lines = Lines.joined([each.point for each in self._fits])
        self.point = Moving(self._tables(None, self._counted, known), lines, [])
        self._draws = Once()

    @property
    def entries(self) -> int:
        """The number of entries of the tables that are estimated, and of the bins."""
        moving: list[Moving] = [self.point, *self._draws.values.values()]
        return sum(each.tables.entries for each in moving) + self.axis.bins.numel()

    def drawn(self, group: int) -> Moving:
        """What moves in a group of 16 bootstrap samples, each of half as many rows.

        Two samples differ by the noise of both: half the rows have twice the variance. What does
        not move in the training rows moves in none of them. A group is estimated when it is first
        needed: a search needs the first, a report of what it found the second.
        """
        return self._draws.get(group, partial(self._draw, group))

    def _draw(self, group: int) -> Moving:
        lines = Lines.joined([fit.lines(group) for fit in self._fits])
        chains, moving = [fit.lines(group) for fit in self._chains], self.point.tables.features
        return Moving(self._tables(group, torch.from_numpy(moving), {}), lines, chains)

    @lazy
    def _chains(self) -> list[LeastSquares]:
        each = self.point.tables.features, self._fits[0].point.features
        counted, smooth = map(torch.from_numpy, each)
        return chains_of(self._set.sample, self._columns, counted, smooth, tested=self._tested)

    def _tables(self, group: int | None, features: Tensor, known: Mapping[int, Ratios]) -> Tables:
        """The tables of the counted features that move in r samples.

        Args:
            group: of bootstrap samples; None for the sample itself.
            features: those that may move.
            known: ratios of the sample itself that are known.
        """
        sample, acted, held = self._set
        # One by one: a tree fitted to the same rows would appear to depend on everything.
        links = [linked(sample, i, held, group, features, self._tested) for i in acted]
        may_move = torch.stack(links).any(0)
        by_group = torch.isin(features, self._by_group)
        may_move |= by_group
        if group is None:
            some = may_move[0]
            features, may_move, by_group = (e[..., some] for e in (features, may_move, by_group))
        base, ratio, tilt = {}, {}, {}
        for of_group, by, times in ((False, None, self._count), (True, self._own, 1)):
            each = features[by_group == of_group].tolist()
            counts = Counts(self._set, group, by, self.axis)
            found = known if by is None and known else fit_ratios(counts, each)
            for j in each:
                base[j], ratio[j], tilt[j] = (
                    e if times == 1 else e.repeat_interleave(times, 0) for e in found[j][:3]
                )
        may_move = may_move.repeat_interleave(self._count, 0)[..., None, None]
        own = features.tolist()
        levels = [sample.shared(Values.of, j).levels.numpy() for j in own]
        at_nodes = [torch.where(may_move[:, i], ratio[j], 1.0) for i, j in enumerate(own)]
        tilts = [tilt[j] * may_move[:, i] for i, j in enumerate(own)]
        ordered = int((~sample.encoder.blocks[features]).sum())
        bases, fine = [base[j] for j in own], tuple(each.numpy() for each in self.axis.fine)
        factors = _in_slots(bases), _in_slots(at_nodes), _in_slots(tilts)
        return Tables(features.numpy(), levels, ordered, *factors, fine)

    def encode(
        self, x: Array, draws: Array | None = None, generator: torch.Generator | None = None
    ) -> Array:
        """(r, m, p + 1) ranks of counted features and residuals of smooth ones that move with x_S.

        A feature that does not move has its own value; the last column is the row's line in the
        tables.

        Args:
            x: (m, p) rows.
            draws: (r,) draws of the same samples, from 1 on; None: the training rows.
            generator: breaks ties at random; None takes the middle in the training rows, and in
                each sample another place, since a row's own is unknown.
        """
        wanted, ((tables, lines, _), draws) = draws, self._of(draws)
        v = np.empty((len(draws), len(x), x.shape[1] + 1))
        at = self._cell(x, draws) * self.axis.count + self.axis.node(x.take(self.acted, 1))
        v[..., :-1], v[..., -1] = x, at
        if len(features := tables.features):
            tie: Any = 0.5 if wanted is None else places(wanted, self._keys)[:, None]
            if generator is not None:
                drawn = torch.rand((1, len(x), len(features)), generator=generator).numpy()
                tie = drawn[..., features.argsort().argsort()]
            v[..., features] = tables.ranks(x, at, tie).clip(EDGE, 1.0 - EDGE)
        if len(features := lines.features) and (wanted is None or lines.scales):
            own = x.take(features, 1)
            v[..., features] = np.where(known(own), lines.residual(x, draws), own)
        return v

    def decode(self, x: Array, v: Array, values: Array, draws: Array | None = None) -> Array:
        """The rows that follow, (r, m, c, p); see `Decoder.decode`.

        Args:
            x: (m, p) the factual rows.
            v: (r, m, k) their latents.
            values: (m, c, w) the new values of x_S.
            draws: (r,) draws of the same samples, from 1 on; None: the training rows.
        """
        wanted, (m, c, w) = draws, values.shape
        (tables, lines, chains), draws = self._of(draws)
        luck = None if wanted is None else places(wanted, [LUCK])[:, 0]
        out = np.empty((len(draws), m, c, x.shape[1]))
        out[:] = x[:, None]
        if len(features := tables.features):
            start = v[..., -1].astype(np.int64)
            node = self.axis.node(values.reshape(m * c, w)).reshape(m, c)
            end = (start - start % self.axis.count)[..., None] + node
            out[..., features] = tables.move(x, v.take(features, 2), start, end, luck)
        if len(features := lines.features):
            # A special value stays, and what becomes special is.
            stays = ~known(x[:, None, features])
            if np.isin(features, tables.features).any():
                stays = stays | ~known(out[..., features])
            moved = lines.move(x, v.take(features, 2), values, draws)
            out[..., features] = (
                np.where(stays, out[..., features], moved) if stays.any() else moved
            )
        for chain in chains:
            moved = chain.follow(x, out[:, :, 0], values[:, 0], draws)
            out[..., chain.features] = moved[:, :, None]
        if wanted is not None and len(features):
            # Nor does anybody know what a row was before it was rounded.
            keys, gaps = self._set.sample.shared(rounding)
            moved, keys = out[..., features], [keys[j] for j in features]
            within = (places(wanted, keys) - 0.5) * gaps[features]
            moves = (moved != x[:, None, features]) & ~stays
            out[..., features] = moved + within[:, None, None] * moves
        for j, i, slope in self._copies:
            out[..., j] = x[:, j, None] + slope * (values[..., i] - x[:, self.acted[i], None])
        out[..., self.acted] = values
        return out

    def _cell(self, x: Array, draws: Array) -> Array:
        """(r, m) the cells of rows, (m, p), in the tables of each group and sample, (r,)."""
        group = self._groups(self._columns.scaled(x)) if self._groups and self._count > 1 else 0
        return (draws[:, None] * self._count + group) * len(self.cells) + self.cells.at(x)

    def _of(self, draws: Array | None) -> tuple[Moving, Array]:
        """What moves in draws of the same samples, and their places there."""
        if draws is None:
            return self.point, np.zeros(1, int)
        return self.drawn(int(sampled(draws)[0])), (draws - 1) % DRAWS

    @lazy
    def _keys(self) -> list[int]:
        """A number for each counted feature that moves; equal columns have equal ones."""
        each = (self._set.sample.shared(Values.of, j) for j in self.point.tables.features.tolist())
        return [crc32(values.codes.numpy().tobytes()) for values in each]


def _in_slots(parts: Sequence[Tensor]) -> Array:
    """(r, q, slots) factors of features, (r, q, t) each, with an empty slot before each."""
    if not parts:
        return np.empty((1, 1, 0), np.float32)
    return torch.cat([pad(each, (1, 0)) for each in parts], 2).float().numpy()


def _by_group(
    sample: Sample, i: int, held: Members, moving: Members
) -> tuple[dict[int, Ratios], Tensor, Tensor]:
    """The ratios of counted features that may follow one, (f,) those that differ by group.

    They are those of which rows beside those that made the groups show it; and (n,) the groups.

    Args:
        sample: the training rows.
        i: the feature acted on.
        held: the features that are conditioned on.
        moving: those that may follow, with it.
    """
    followers = tuple(j for j in moving if j != i)
    modifiers = sample.whole.shared(Modifiers, i, held, followers)
    own = torch.from_numpy(modifiers(sample.shared(Scaled)(sample.rows.numpy())))
    copies = {j for k, j, _ in sample.shared(linear_copies) if k == i}
    counted = sample.shared(counted_features)
    some = [j for j in followers if counted[j] and j not in copies]
    fit, others = Fit(sample, (i,), held), torch.from_numpy(grows(len(own))).logical_not()
    known = fit_ratios(Counts(fit, None), some)
    beside = Counts(fit, None, torch.where(others, own, -1))
    return known, torch.tensor(differing(beside, known, len(followers))).long(), own


def sampled(draws: Array) -> Array:
    """(r,) the group of bootstrap samples of each draw, see `Estimate.drawn`."""
    return (draws - 1) // DRAWS


@lru_cache(1024)
def _order(seed: int) -> Array:
    """(16,) the places of the samples in a random order."""
    order = torch.randperm(DRAWS, generator=torch.Generator().manual_seed(seed)).numpy()
    return (order.astype(np.float32) + np.float32(0.5)) / np.float32(DRAWS)


def places(draws: Array, keys: Sequence[int]) -> Array:
    """(r, f) evenly spaced places in (0, 1), for each key and group in another order of draws."""
    group = int(sampled(draws)[0])
    return np.stack([_order(key + group) for key in keys], 1).take((draws - 1) % DRAWS, 0)
