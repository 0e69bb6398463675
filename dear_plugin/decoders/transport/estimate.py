"""Estimate: the conditional distributions of one set in r samples (step 9); rows in, rows out.

The sample itself (r = 1) and its bootstrap samples are estimated by the same lines: a bootstrap
sample differs in the weights of blocks of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from dear_plugin._lazy import Once, lazy
from dear_plugin.data.special_values import known
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import axis_of
from dear_plugin.decoders.transport.cells import cells_of
from dear_plugin.decoders.transport.chains import chains_of
from dear_plugin.decoders.transport.columns import Columns
from dear_plugin.decoders.transport.draws import DRAWS, TIMES, places, sampled
from dear_plugin.decoders.transport.least_squares import BLOCKS, LeastSquares
from dear_plugin.decoders.transport.lines import Lines
from dear_plugin.decoders.transport.links import differing, linked
from dear_plugin.decoders.transport.modifiers import Modifiers, grows
from dear_plugin.decoders.transport.ratios import WHOLE, Counts, Ratios, fit_ratios
from dear_plugin.decoders.transport.tables import Tables
from dear_plugin.decoders.transport.values import (
    Values,
    alike,
    counted_features,
    linear_copies,
    rounding,
    smooth_features,
)

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
        point: the counted and the smooth features that move, in the training rows.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members, *, still: Members) -> None:
        held = tuple(j for j in held if not sample.encoder.schema.features[j].identifier)
        self._sample, self.acted, self._set = sample, torch.tensor(acted), (sample, acted, held)
        self.cells, self.axis = cells_of(sample, acted, held), axis_of(sample, acted)
        others = torch.ones(sample.encoder.p, dtype=torch.bool)
        others[[*acted, *still]] = False
        others &= sample.encoder.shares > 0.0
        may_follow = tuple(others.nonzero()[:, 0].tolist())
        self._tested = max(len(may_follow), 1)
        # Linear functions of one of S, its place in S, and the slope.
        copies = sample.shared(linear_copies)
        self._copies = [(j, acted.index(i), b) for i, j, b in copies if i in acted and others[j]]
        others[[j for j, *_ in self._copies]] = False
        smooth = others & sample.shared(smooth_features)
        counted = (others & sample.shared(counted_features)).nonzero()[:, 0]
        # Those with an order first.
        self._counted = counted[sample.encoder.blocks[counted].long().argsort(stable=True)]
        groups = Modifiers(sample, acted, held, may_follow) if held else None
        self._groups = groups if groups and len(groups) > 1 else None
        self._own = self._group(sample.rows)
        # Ratios of all rows, where groups need them, are those of the tables, too.
        known = fit_ratios(self._counts(WHOLE), self._counted.tolist()) if self._groups else {}
        self._by_group = self._differing(known)
        self._columns = partial(Columns, sample, acted, held, self._groups)
        fit = partial(LeastSquares, sample, self._columns(), tested=self._tested)
        self._fits = [fit(some & smooth) for some in sample.shared(alike)]
        lines = Lines.joined([each.point for each in self._fits])
        self.point = self._tables(WHOLE, self._counted, known), lines
        self._draws = Once()

    @property
    def entries(self) -> int:
        """The number of entries of the tables that are estimated, and of the bins."""
        own = (each.tables for group, each in [*self._draws.values.items()] if group < TIMES)
        tables: list[Tables] = [self.point[0], *own]
        return sum(each.entries for each in tables) + self.axis.bins.numel()

    def drawn(self, group: int) -> Moving:
        """What moves in a group of 16 bootstrap samples, each of half as many rows.

        Two samples differ by the noise of both: half the rows have twice the variance. What does
        not move in the training rows moves in none of them; but in groups 2 and 3, which are the
        samples of 0 and 1 for further people, smooth features follow a straight line untested,
        so that ranges have the effects that were too small to be found. A group is estimated when
        it is first needed: a search needs the first, a report of what it found the
        second, ranges for the last.
        """
        return self._draws.get(group, partial(self._draw, group))

    def _draw(self, group: int) -> Moving:
        first, untested = group % TIMES, group >= TIMES
        generator = torch.Generator().manual_seed(first)
        blocks = torch.randint(BLOCKS, (DRAWS, BLOCKS // 2), generator=generator)
        weights = 2.0 * torch.nn.functional.one_hot(blocks, BLOCKS).sum(1).double()
        lines = Lines.joined([fit.lines(weights, untested=untested) for fit in self._fits])
        if untested:
            return self.drawn(first)._replace(lines=lines)
        chains = [fit.lines(weights) for fit in self._chains]
        tables = self._tables(weights, self.point[0].features, {})
        return Moving(tables, lines, chains)

    @lazy
    def _chains(self) -> list[LeastSquares]:
        counted, smooth = self.point[0].features, self._fits[0].point.features
        return chains_of(self._sample, self._columns, counted, smooth, tested=self._tested)

    def _counts(self, weights: Tensor, by: Tensor | None = None) -> Counts:
        return Counts(*self._set, weights, by, self.axis)

    def _group(self, x: Tensor) -> Tensor:
        """(m,) the group of rows, (m, p), in which x_S may have another effect."""
        if self._groups is None:
            return torch.zeros(len(x), dtype=torch.int64)
        return self._groups(self._sample.encoder.scaled(x))

    def _differing(self, known: Mapping[int, Ratios]) -> Tensor:
        """(f,) the features whose ratios differ by group, as rows beside its own show."""
        if not known:
            return self._counted[:0]
        counts = self._counts(WHOLE, torch.where(grows(len(self._own)), -1, self._own))
        return self._counted[differing(counts, known, self._tested)]

    @property
    def _count(self) -> int:
        """The number of groups that tables differ by."""
        return len(self._groups) if self._groups is not None and len(self._by_group) else 1

    def _tables(self, weights: Tensor, features: Tensor, known: Mapping[int, Ratios]) -> Tables:
        """The tables of the counted features that move in r samples.

        Args:
            weights: (r, q) the weights of blocks of rows.
            features: those that may move.
            known: ratios of the sample itself that are known.
        """
        sample, acted, held = self._set
        test = partial(linked, sample, held=held, weights=weights, tested=self._tested)
        # One by one: a tree fitted to the same rows would appear to depend on everything.
        may_move = torch.stack([test(i, features=features) for i in acted]).any(0)
        by_group = torch.isin(features, self._by_group)
        may_move |= by_group
        if len(weights) == 1:  # the sample itself
            some = may_move[0]
            features, may_move, by_group = (e[..., some] for e in (features, may_move, by_group))
        base, ratio = {}, {}
        for of_group, by, times in ((False, None, self._count), (True, self._own, 1)):
            each = features[by_group == of_group].tolist()
            found = known if by is None and known else fit_ratios(self._counts(weights, by), each)
            for j in each:
                both = found[j].base, found[j].nodes
                base[j], ratio[j] = (e.repeat_interleave(times, 0).float() for e in both)
        may_move = may_move.repeat_interleave(self._count, 0)[..., None, None]
        own = features.tolist()
        levels = [sample.shared(Values.of, j).levels for j in own]
        at_nodes = [torch.where(may_move[:, i], ratio[j], 1.0) for i, j in enumerate(own)]
        ordered = int((~sample.encoder.blocks[features]).sum())
        return Tables(features, levels, ordered, [base[j] for j in own], at_nodes)

    def encode(
        self, x: Tensor, draws: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
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
        at = self._cell(x, draws) * len(self.axis.mix)
        at = at + self.axis.node(x.index_select(1, self.acted))
        v = torch.cat([x.expand(len(draws), -1, -1), at[..., None].to(x.dtype)], 2)
        if len(features := tables.features):
            tie = torch.full((1, 1, len(features)), 0.5)
            if wanted is not None:
                tie = places(wanted, self._keys)[:, None]
            if generator is not None:
                drawn = torch.rand((1, len(x), len(features)), generator=generator)
                tie = drawn[..., features.argsort().argsort()]
            v[..., features] = tables.ranks(x, at, tie).clamp(EDGE, 1.0 - EDGE).to(v)
        if len(lines.features):
            known = self._sample.encoder.amounts(x[:, lines.features], at=lines.features)
            v[..., lines.features] = torch.where(
                known, lines.residual(x, draws), v[..., lines.features]
            )
        return v

    def decode(self, x: Tensor, v: Tensor, values: Tensor, draws: Tensor | None = None) -> Tensor:
        """The rows that follow, (r, m, c, p); see `Decoder.decode`.

        Args:
            x: (m, p) the factual rows.
            v: (r, m, k) their latents.
            values: (m, c, w) the new values of x_S.
            draws: (r,) draws of the same samples, from 1 on; None: the training rows.
        """
        wanted, (m, c, _) = draws, values.shape
        (tables, lines, chains), draws = self._of(draws)
        luck = None if wanted is None else places(wanted, [LUCK])[:, 0].numpy()
        out = x[:, None].repeat(len(draws), 1, c, 1)
        if len(features := tables.features):
            start, node = v[..., -1].long(), self.axis.node(values.flatten(0, 1)).view(m, c)
            end = (start - start % len(self.axis.mix))[..., None] + node
            moved = tables.move(x, v.index_select(2, features), start, end, luck)
            out.index_copy_(3, features, moved)
        if len(features := lines.features):
            # A special value stays, and what becomes special is.
            stays = ~known(x[:, None, features])
            if bool(torch.isin(features, tables.features).any()):
                stays = stays | ~known(out[..., features])
            moved = lines.move(x, v.index_select(2, features), values, draws)
            if bool(stays.any()):
                moved = torch.where(stays, out[..., features], moved)
            out.index_copy_(3, features, moved)
        for chain in chains:
            moved = chain.follow(x, out[:, :, 0], values[:, 0], draws)
            out.index_copy_(3, chain.features, moved[:, :, None])
        if wanted is not None and len(features):
            # Nor does anybody know what a row was before it was rounded.
            keys, gaps = self._sample.shared(rounding)
            moved, keys = out[..., features], [keys[j] for j in features.tolist()]
            within = (places(wanted, keys) - 0.5) * gaps[features]
            moves = (moved != x[:, None, features]) & ~stays
            out[..., features] = moved + within[:, None, None].to(moved) * moves
        for j, i, slope in self._copies:
            out[..., j] = x[:, j, None] + slope * (values[..., i] - x[:, self.acted[i], None])
        return out.index_copy_(3, self.acted, values.expand(len(draws), -1, -1, -1))

    def flip_probabilities(self, x: Tensor, values: Tensor) -> dict[int, tuple[float, float]]:
        """See `Decoder.flip_probabilities`: by the maximal coupling, at most the ratio is kept."""
        at = self._cell(x, torch.zeros(1).long())[0] * len(self.axis.mix) + self.axis.node(values)
        return self.point[0].flips(x, at)

    def _cell(self, x: Tensor, draws: Tensor) -> Tensor:
        """(r, m) the cells of rows, (m, p), in the tables of each group and sample, (r,)."""
        sample = draws[:, None] * self._count + (self._group(x) if self._count > 1 else 0)
        return sample * len(self.cells) + self.cells.at(x)

    def _of(self, draws: Tensor | None) -> tuple[Moving, Tensor]:
        """What moves in draws of the same samples, and their places there."""
        if draws is None:
            return Moving(*self.point, []), torch.zeros(1).long()
        group, places = int(sampled(draws)[0]), (draws - 1) % DRAWS
        if group < 0:
            chains = [fit.point for fit in self._chains]
            return Moving(*self.point, chains), torch.zeros_like(places)
        return self.drawn(group), places

    @lazy
    def _keys(self) -> list[int]:
        """A number for each counted feature that moves; equal columns have equal ones."""
        codes = (self._sample.shared(Values.of, j).codes for j in self.point[0].features.tolist())
        return [crc32(each.numpy().tobytes()) for each in codes]
