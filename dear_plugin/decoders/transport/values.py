"""Values (step 1): which features are counted and which are smooth, and the counted ones' values.

A feature is *counted* if it has categories or an atom (a value that 1 % of the rows have): it is
looked up in tables of observed values. A number without atoms is *smooth*; where it has special
levels, these are counted, and rows with known values are smooth.

Axes (step 3): bins of x_S that rows are counted in, and nodes that mix their distributions.

Conditional distributions are counted in *bins* and evaluated at *nodes*. Every heavy value (at
least 1 % of the rows, and a minimum of them), special level and category is a bin of its own; the
rest of a number is cut at quantiles. A node between two bins mixes their *distributions*: mixed
quantiles would give values that no row has.

Leaves: those of a regression tree; columns in, the leaf of each row out.

What is made of rows (nodes, leaves, columns, cells, lines) is made in numpy: with few of them, its
operations take a fifth of the time of torch's. What is fitted to them is fitted in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import Array, amounts_of, known
from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import Members, Sample

# An atom is a value that this share of the rows has.
HEAVY = 0.01
# A rounded number is smooth if it has so many values, none has this share, and its range between
# the outer quantiles is at most so many times that between the quartiles, and neither of its parts
# beside the median so many times the other: such shapes differ with x_S, as those of ages do.
MANY_VALUES, VERY_HEAVY, LONG, SKEWED = 40, 0.1, 8.0, 1.8
QUANTILES = 0.005, 0.25, 0.5, 0.75, 0.995
MAX_VALUES = 128
# The least share of rows whose held numbers are known.
LEAST_KNOWN = 0.5
# The outermost rank.
NEAR_END = 1e-4
# The smallest deviation.
LEAST = 1e-12
# Groups of a feature's values: in the tests of dependence, and by repeated splits.
GROUPS, MAX_GROUPS = 5, 32
# Blocks of rows that bootstrap samples are drawn from, and the number of samples of a group.
BLOCKS, DRAWS = 64, 16
# Linear copies, such as degrees of two kinds, hold up to the rounding of their decimals: so much
# of a range.
COPY_TOLERANCE, COPY_ROWS = 1e-5, 20


class Values(NamedTuple):
    """The values of a counted feature.

    Attributes:
        levels: (t,) the sorted values.
        codes: (n,) int64, the nearest of these for every training row.
        groups: (t,) int64, the group of each value; about equally many rows a group.
        splits: (2, q, t) the binary splits of the values, see `splits_of`.
        place: (t,) those in a trend; 0 for special ones and without an order, see `places_of`.
    """

    levels: Tensor
    codes: Tensor
    groups: Tensor
    splits: Tensor
    place: Tensor

    @classmethod
    def of(cls, sample: Sample, j: int) -> Values:
        """Those of feature j; categories without an order are ordered by frequency."""
        feature, column = sample.encoder.schema.features[j], sample.rows[:, j].contiguous()
        levels = representatives(column, MAX_VALUES) if feature.has_order else feature.label_values
        codes = torch.searchsorted((levels[1:] + levels[:-1]) / 2.0, column)
        size = torch.bincount(codes, minlength=len(levels)).double()
        order = torch.arange(len(levels))
        if sample.encoder.blocks[j]:
            order = size.argsort(descending=True, stable=True)
        groups, ordered = torch.empty_like(order), size[order]
        middle = (ordered.cumsum(0) - ordered / 2.0) / ordered.sum()
        groups[order] = (middle * GROUPS).long().clamp_max(GROUPS - 1)
        special = int((~known(levels)).sum())
        place = 0.0 * size if sample.encoder.blocks[j] else places_of(levels, size[None])
        return cls(levels, codes, groups, splits_of(size, order, special), place)


def resampled(group: int) -> Tensor:
    """(16, 64) the weights of blocks of rows in a group of bootstrap samples of half as many.

    Row i is in block i modulo 64.
    """
    generator = torch.Generator().manual_seed(group)
    blocks = torch.randint(BLOCKS, (DRAWS, BLOCKS // 2), generator=generator)
    return 2.0 * one_hot(blocks, BLOCKS).sum(1).double()


def complete(sample: Sample, held: Members) -> Tensor:
    """(n,) bool, the rows in which all held numbers are known; all rows if those are too few.

    What is missing may be a common cause: among rows that miss it, it is not held.
    """
    known = sample.known[:, list(held)].all(1)
    return known if float(known.double().mean()) >= LEAST_KNOWN else torch.ones_like(known)


def normal_places(rows: Tensor) -> Tensor:
    """(..., q) the normal quantiles of the ranks of ordered groups of rows, (..., q)."""
    total = rows.sum(-1, keepdim=True).clamp_min(1.0)
    place = (rows.cumsum(-1) - rows / 2.0) / total
    out: Tensor = torch.special.ndtri(place.clamp(NEAR_END, 1.0 - NEAR_END))
    return out


def places_of(levels: Tensor, rows: Tensor) -> Tensor:
    """(..., t) places along which means are log-linear, of sorted values with (..., b, t) rows.

    It is along the ranks' normal quantiles for a lognormal amount, and along the values for a
    Poisson count: the spread of places within bins stays if rows are weighted by their values. If
    no value is below 0, places are as much between the two as makes it stay. Special values have
    the place 0.
    """
    amount = known(levels)
    levels, rows = torch.where(amount, levels.double(), 0.0), rows * amount[..., None, :]
    total, least = rows.sum(-2), levels.amin(-1)
    n = total.sum(-1).clamp_min(1.0)
    ranks, mean = torch.where(amount, normal_places(total), 0.0), (total * levels).sum(-1) / n
    deviation = (squares(total, levels) / n).sqrt()
    amounts = (levels - mean[..., None]) / deviation.clamp_min(LEAST)[..., None] * amount
    by_level = rows * levels[..., None, :]
    weighted = by_level * (rows.sum(-1) / by_level.sum(-1).clamp_min(NEAR_END))[..., None]
    bend, other = (
        (squares(weighted, each) - squares(rows, each)).sum(-1)
        for each in (ranks[..., None, :], amounts[..., None, :])
    )
    bend = torch.where((least < 0.0) | (deviation == 0.0), 0.0, bend.clamp_max(0.0))
    share = bend / (bend - other.clamp_min(NEAR_END))
    return torch.lerp(ranks, amounts, share[..., None])


def squares(rows: Tensor, score: Tensor) -> Tensor:
    """(..., k) the squares of a score in each cell, of rows, (..., k, b), about its mean."""
    n = rows.sum(-1).clamp_min(NEAR_END)
    mean = (rows * score).sum(-1) / n
    return (rows * score.square()).sum(-1) - n * mean.square()


def splits_of(size: Tensor, order: Tensor, special: int = 0) -> Tensor:
    """(2, q, t) binary splits of values: 1 where a value is on the left, or right, side.

    Special values are split off, then the part with most rows is, so that its rows are halved.

    Args:
        size: (t,) the rows of each value.
        order: (t,) the values in order.
        special: how many of them, the first ones, are special.
    """
    until, parts = [0.0, *size[order].cumsum(0).tolist()], [(0, len(order))]
    splits: list[tuple[int, int, int]] = []
    if 0 < special < len(order):
        splits, parts = [(0, special, len(order))], [(0, special), (special, len(order))]
    while len(parts) < min(MAX_GROUPS, len(order)):
        rows = [until[end] - until[start] if end - start > 1 else -1.0 for start, end in parts]
        start, end = parts.pop(rows.index(max(rows)))
        half = (until[start] + until[end]) / 2.0
        middle = min(range(start + 1, end), key=lambda i: abs(until[i] - half))
        splits.append((start, middle, end))
        parts += [(start, middle), (middle, end)]
    start_of, middle_of, end_of = torch.tensor(splits).view(-1, 3).T[..., None]
    place = order.argsort()
    left = (place >= start_of) & (place < middle_of)
    right = (place >= middle_of) & (place < end_of)
    return torch.stack([left, right]).double()


def smooth_features(sample: Sample) -> Tensor:
    """(p,) bool, the numbers whose known values vary and have no atoms.

    Rounding makes no atoms: a number of many values is smooth if none of them is heavy beside its
    neighbours and its tails are short.
    """
    columns = zip(sample.rows.T, sample.encoder.amounts(sample.rows).T, strict=True)
    return torch.tensor([_is_smooth(column[amounts], len(sample)) for column, amounts in columns])


def counted_features(sample: Sample) -> Tensor:
    """(p,) bool, those with atoms, categories, or special levels."""
    return ~sample.shared(smooth_features) | ~sample.known.all(0)


def _is_smooth(column: Tensor, rows: int) -> bool:
    """Whether amounts, (m,), of so many rows vary and have no atoms."""
    values, counts = value_counts(column)
    if len(values) < 2 or len(column) < LEAST_KNOWN * rows:
        return False
    if not len(heavy_values(column)):
        return True
    padded = torch.nn.functional.pad(counts, (1, 1))
    beside = padded[:-2].maximum(padded[2:])
    is_atom = (counts >= HEAVY * len(column)) & (counts > 2.0 * beside + 3.0 * counts.sqrt())
    places = [int(q * (len(column) - 1)) for q in QUANTILES]
    low, first, middle, third, high = sorted_values(column)[places].tolist()
    is_long = high - low > LONG * (third - first)
    left, right = middle - low, high - middle
    is_long = is_long or max(left, right) > SKEWED * min(left, right)
    few = len(values) < MANY_VALUES or int(counts.max()) >= VERY_HEAVY * len(column)
    return not (few or is_long or bool(is_atom.any()))


def rounding(sample: Sample) -> tuple[list[int], Array]:
    """A number for each feature, equal for equal columns, and (p,) the usual gaps of values."""
    columns = [each.contiguous() for each in sample.rows.T]
    gaps = [value_counts(each)[0].diff().median().nan_to_num() for each in columns]
    return [crc32(each.numpy().tobytes()) for each in columns], torch.stack(gaps).numpy()


def linear_copies(sample: Sample) -> list[tuple[int, int, float]]:
    """The pairs (i, j) of numbers of which j is linear in i in every row, and the slopes.

    Those with special levels are left out.
    """
    if len(sample) < COPY_ROWS:
        return []
    encoder = sample.encoder
    number = encoder.amounts(sample.rows).all(0)
    x = encoder.scaled(sample.rows)
    x[:, ~number] = 0.0
    x -= x.mean(0)
    products = x.T @ x
    slope = products / products.diagonal()[:, None].clamp_min(1e-30)
    # Few pairs leave so little variance that the residuals' range can be as small.
    left = products.diagonal() - slope * products
    near = (left <= len(x) * COPY_TOLERANCE**2) & (x != x[0]).any(0) & number & number[:, None]
    copies = []
    for i, j in near.fill_diagonal_(False).nonzero().tolist():
        rest = x[:, j] - slope[i, j] * x[:, i]
        if float(rest.max() - rest.min()) <= COPY_TOLERANCE:
            by_units = float(encoder.width[j] / encoder.width[i])
            copies.append((i, j, float(slope[i, j]) * by_units))
    return copies


def sorted_values(x: Tensor) -> Tensor:
    """Values sorted along the last dimension, (..., n)."""
    # torch.sort also computes the indices: numpy takes a tenth of its time.
    return torch.from_numpy(np.sort(x.numpy()))


def value_counts(column: Tensor) -> tuple[Tensor, Tensor]:
    """The sorted distinct values of a column, (n,), and the number of rows with each."""
    values, counts = sorted_values(column).unique_consecutive(return_counts=True)
    return values, counts


def heavy_values(column: Tensor, min_rows: int = 5, share: float = HEAVY) -> Tensor:
    """The sorted values that a share of the rows, and `min_rows` rows, have."""
    values, counts = value_counts(column)
    return values[counts >= max(share * len(column), min_rows)]


def representatives(column: Tensor, most: int) -> Tensor:
    """At most 1.5 `most` sorted values of a column: all, or heavy ones and quantiles.

    Special levels are always among them.
    """
    special = ~known(column)
    if bool(special.any()):
        levels = value_counts(column[special])[0]
        return torch.cat([levels, representatives(amounts_of(column), most - len(levels))])
    values, counts = value_counts(column)
    if len(values) <= most:
        return values
    heavy = heavy_values(column)
    if len(heavy) > most:
        heavy = values[counts.topk(most).indices]
    rest = sorted_values(column[~torch.isin(column, heavy)])
    count = most - min(len(heavy), most // 2)
    middles = ((torch.arange(count) + 0.5) / count * len(rest)).long()
    return value_counts(torch.cat([heavy, rest[middles[: len(rest)]]]))[0]


def alike(sample: Sample) -> list[Tensor]:
    """(p,) bool each, the smooth features without special values, and those with the same ones."""
    smooth, some = sample.shared(smooth_features).nonzero()[:, 0], torch.arange(sample.encoder.p)
    where: dict[bytes, list[int]] = {bytes(len(sample)): []}
    for j, column in zip(smooth.tolist(), (~known(sample.rows[:, smooth])).T, strict=True):
        where.setdefault(column.numpy().tobytes(), []).append(j)
    return [torch.isin(some, torch.tensor(each).long()) for each in where.values()]


MIN_ROWS = 50
MAX_BINS = 24
# Rows of a bin: so many, or this part of a small sample. With a 40th, answers of COMPAS hold in
# .79 of the rows under an estimate from other rows, in place of all.
TARGET_ROWS, PARTS = 300, 16
# Of a number of at most as many values as bins, such as a count, bins are smaller, and beyond the
# outer ones what they show goes on for so many intervals: rare values are near to frequent ones.
FEW_PARTS, BEYOND = 64, 1.0
# Nodes of a number: representative values, and evenly spaced ones.
NODES, EVEN_NODES = 32, 24
MIN_LEAF = 100
# The share of the rows in outer bins, and their least rows.
OUTER, OUTER_ROWS = 0.02, 60


class Divisions(NamedTuple):
    """Divisions of the bins into parts, from coarse to fine.

    Attributes:
        parts: (b, l q) 1 where a bin belongs to a part, of l levels with q parts each.
        above: (q', q) the weights of the parts of the level above at each part, of each level.
    """

    parts: Tensor
    above: list[Tensor]

    def of(self, rows: Tensor, groups: int = 0) -> tuple[Tensor, ...]:
        """(g, ..., q) the rows in the parts of each level, given those in bins, (..., b).

        Args:
            rows: in bins.
            groups: the dimension of g groups.
        """
        sizes = [each.shape[1] for each in self.above]
        return (rows @ self.parts).movedim(groups, 0).split_with_sizes(sizes, -1)


@dataclass(frozen=True)
class Axis:
    """The bins and nodes of one set.

    Attributes:
        levels: the divisions of the bins.
        bins: (n,) int64, the bin of each training row.
        mix: (g, b) double, the weight of each bin at each node.
        place: (b, w) the mean normal quantiles of the rows of each bin; 0 without an order.
        nodes: (g, w) those of each node; of several features 0, and
        fine: w tensors, (f,), those of each feature's own nodes.
        node: from values of x_S, (q, w), to their nodes, (q,) int64: of several features a leaf
            and the own nodes, as digits of one number.
    """

    levels: Divisions
    bins: Tensor
    mix: Tensor
    place: Tensor
    nodes: Tensor
    node: Callable[[Array], Array]
    fine: tuple[Tensor, ...] = ()

    @lazy
    def count(self) -> int:
        """The number of nodes, and of places within them."""
        return len(self.mix) * prod(map(len, self.fine))


def axis_of(sample: Sample, acted: Members) -> Axis:
    """The axis of a set; that of one feature is computed once for a sample."""
    if len(acted) > 1:
        return _of_several(sample, list(acted))
    return sample.shared(_of_one, acted[0])


def _of_one(sample: Sample, j: int) -> Axis:
    """Heavy values and quantile bins of a number; each category is a bin and a node."""
    column, feature = sample.rows[:, j].contiguous(), sample.encoder.schema.features[j]
    own = _of_amounts(column) if feature.has_order else _of_labels(column, feature.label_values)
    nodes, bins, mix, ordered = own
    places = _places(column, bins, nodes, mix.shape[1], ordered)
    node = partial(_nearest, ((nodes[1:] + nodes[:-1]) / 2.0).numpy())
    return Axis(levels_of(mix.shape[1], ordered), bins, mix, *places, node)


def _of_labels(column: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """The nodes, the bin of each row of a column, (n,), the mix, and that there is no order."""
    return labels, column.long(), torch.eye(len(labels)).double(), False


def _of_amounts(column: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """The nodes, the bin of each row of a column, (n,), the mix, and that there is an order."""
    few, nodes = len(value_counts(column)[0]) <= MAX_BINS, _nodes(column)
    part = len(column) // (FEW_PARTS if few else PARTS)
    bins, centres = cut(column, MAX_BINS, max(MIN_ROWS, min(TARGET_ROWS, part)), OUTER)
    heavy = heavy_values(column, share=VERY_HEAVY).tolist()
    apart = {value: int(bins[(column == value).nonzero()[0, 0]]) for value in heavy}
    return nodes, bins, _mixed(nodes, centres, apart, BEYOND * few), True


def _places(
    column: Tensor, bins: Tensor, nodes: Tensor, count: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    """(b, 1) and (g, 1) normal quantiles in bins and at nodes; 0 without order and if special.

    A category that no training row has is a bin without rows.
    """
    values, counts = value_counts(column)
    own = torch.where(known(values), normal_places(counts.double()), 0.0)[:, None] * ordered
    rows = own[torch.searchsorted(values, column)]
    means = _means(rows, bins, count)
    at = torch.searchsorted(values, nodes.to(values)).clamp_max(len(values) - 1)
    return means, own[at]


def _means(rows: Tensor, bins: Tensor, count: int) -> Tensor:
    """(b, w) the means in bins of rows, (n, w)."""
    sums = rows.new_zeros(count, rows.shape[1]).index_add_(0, bins, rows)
    return sums / torch.bincount(bins, minlength=count).clamp_min(1)[:, None]


def _mixed(nodes: Tensor, centres: Tensor, apart: dict[float, int], beyond: float) -> Tensor:
    """(g, b) bins mixed at nodes; that of a value that is a place of its own with no other."""
    others = [b for b in range(len(centres)) if b not in apart.values()]
    if not others:
        return interpolation(nodes, centres)
    mix = nodes.new_zeros(len(nodes), len(centres))
    mix[:, others] = interpolation(nodes, centres[others], beyond)
    for value, own in apart.items():
        mix[nodes == value] = one_hot(torch.tensor(own), len(centres)).double()
    return mix


def _nearest(middles: Array, values: Array) -> Array:
    """(q,) the nodes nearest to values, (q, 1), given the middles between them."""
    return middles.searchsorted(values[:, 0])


def _of_several(sample: Sample, acted: list[int]) -> Axis:
    """The leaves of a tree of some features: it cuts where their own columns differ most.

    Not where others do: rows of leaves that were chosen by these differ from them by chance, too.
    """
    features = tuple(sample.encoder.features[j] for j in acted)
    n, encoder = len(sample), Encoder(Schema(features))
    columns = sample.rows[:, acted]
    x = encoder.expand(columns)
    # One row has no deviation.
    deviation = x.std(0, correction=min(1, n - 1)).clamp_min(1e-6)
    leaves = Leaves(x, x / deviation, min(max(MIN_LEAF, n // 200), n // 2))
    mix, node = torch.eye(len(leaves)).double(), partial(_finer, leaves, encoder)
    each = [sample.shared(_of_one, j) for j in acted]
    bins = torch.from_numpy(node([], columns.numpy()))
    own = (one.nodes[one.node(columns[:, [i]].numpy())] for i, one in enumerate(each))
    place = _means(torch.cat([*own], 1), bins, len(mix))
    levels, fine = levels_of(len(mix), False), tuple(one.nodes[:, 0] for one in each)
    return Axis(levels, bins, mix, place, 0.0 * place, partial(node, each), fine)


def _finer(leaves: Leaves, encoder: Encoder, each: Sequence[Axis], values: Array) -> Array:
    """(q,) the leaves of values, (q, w), and the nodes of each feature, as one number."""
    at = leaves(encoder.expand(torch.from_numpy(values)).numpy())
    for i, one in enumerate(each):
        at = at * len(one.nodes) + one.node(values[:, [i]])
    return at


def cut(
    column: Tensor, max_bins: int, min_rows: int = MIN_ROWS, outer: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The bin of each row of a column, (n,) int64, and the sorted centres of the bins, (b,).

    Every heavy value of at least `min_rows` rows and every special level is a bin; the rest is cut
    into up to `max_bins` quantile bins of at least `min_rows` rows; fewer rows are one bin. Of
    enough rows, an `outer` share on either side is a bin, too.
    """
    column = column.contiguous()
    special = column[~known(column)]
    heavy = torch.cat([heavy_values(column, min_rows), special]).unique()
    own = torch.searchsorted(heavy, column)
    is_heavy = torch.cat([heavy, heavy.new_tensor([torch.nan])])[own] == column
    rest = sorted_values(column[~is_heavy])
    count = min(max_bins, len(rest) // min_rows)
    places = [(i * len(rest)) // count for i in range(1, count)]
    beyond = int(outer * len(rest))
    if beyond >= OUTER_ROWS:
        places = [beyond, *places, len(rest) - beyond]
    edges = rest[places].unique_consecutive()
    raw = torch.where(is_heavy, own, len(heavy) + torch.bucketize(column, edges, right=True))
    present, bins = raw.unique(return_inverse=True)
    starts = torch.tensor([0, *torch.searchsorted(rest, edges).tolist(), len(rest)])
    # Medians: a mean would hang on the few outliers of an outer bin.
    middle = (starts[1:] + starts[:-1] - 1).clamp_min(0) // 2
    centres = torch.cat([heavy, rest[middle] if len(rest) else rest])[present]
    order = centres.argsort()
    return order.argsort()[bins], centres[order]


def _nodes(column: Tensor) -> Tensor:
    """All values of a column, or representative ones, evenly spaced ones, and both ends."""
    values = value_counts(column)[0]
    if len(values) <= NODES + EVEN_NODES:
        return values
    ordinary = values[known(values)]
    even = torch.linspace(float(ordinary[0]), float(ordinary[-1]), EVEN_NODES, dtype=values.dtype)
    near = ordinary[torch.searchsorted(ordinary, even).clamp_max(len(ordinary) - 1)]
    return value_counts(torch.cat([representatives(column, NODES), near]))[0]


def levels_of(bins: int, ordered: bool) -> Divisions:
    """The levels of b bins: halves, quarters, ... of ordered ones; otherwise only the bins."""
    if not ordered or bins < 2:
        return Divisions(torch.eye(bins).double(), [torch.ones(1, bins).double()])
    levels, above = list[Tensor](), list[Tensor]()
    centres, count = torch.tensor([(bins - 1) / 2.0]).double(), 1
    while count < bins:
        count = min(2 * count, bins)
        parts = one_hot(torch.arange(bins) * count // bins, count).double()
        own = torch.arange(bins).double() @ parts / parts.sum(0)
        levels.append(parts)
        above.append(interpolation(own, centres, beyond=0.5).T.contiguous())
        centres = own
    return Divisions(torch.cat(levels, 1), above)


def interpolation(at: Tensor, knots: Tensor, beyond: float = 0.0) -> Tensor:
    """(g, b) weights (1 - w, w) of the two knots, (b,), that enclose each place, (g,).

    Args:
        at: (g,) places.
        knots: (b,) sorted.
        beyond: how many intervals beyond either end the line goes on; it is flat from there.
    """
    right = torch.searchsorted(knots, at).clamp(min(1, len(knots) - 1), len(knots) - 1)
    left = (right - 1).clamp_min(0)
    span = knots[right] - knots[left]
    weight = torch.where(span > 0, (at - knots[left]) / span, 1.0)
    weight = weight.clamp(-beyond, 1.0 + beyond)
    mix, rows = at.new_zeros(len(at), len(knots)), torch.arange(len(at))
    mix[rows, left] += 1.0 - weight
    mix[rows, right] += weight
    return mix


MAX_LEAVES = 48


class Leaves:
    """The leaves of one tree for all targets.

    Args:
        x: (n, q) columns.
        targets: (n, t) what the tree predicts.
        min_rows: the least rows of a leaf.
        most: the largest number of leaves.
        least_t: what the splits below any node explain of the targets is, on average, worth at
            least this t-statistic.
    """

    def __init__(
        self,
        x: Tensor,
        targets: Tensor,
        min_rows: int,
        most: int = MAX_LEAVES,
        least_t: float = 0.0,
    ) -> None:
        from sklearn.tree import DecisionTreeRegressor

        regressor = DecisionTreeRegressor(
            min_samples_leaf=max(min_rows, 1),
            max_leaf_nodes=most,
            random_state=0,
            ccp_alpha=least_t**2 * float(targets.var(0, correction=0).mean()) / len(targets),
        )
        inputs = x.float().contiguous().numpy()
        self._tree = regressor.fit(inputs, targets.numpy(), check_input=False).tree_
        self._leaf = (self._tree.children_left < 0).cumsum() - 1

    def __len__(self) -> int:
        """The number of leaves."""
        return int(self._tree.n_leaves)

    def __call__(self, x: Array) -> Array:
        """(m,) int64, the leaf of each row, (m, q)."""
        leaf: Array = self._leaf[self._tree.apply(x.astype(np.float32, copy=False))]
        return leaf

    def columns(self, x: Array) -> Array:
        """(m, l) double, 1 in the leaf of each row, (m, q)."""
        return np.eye(len(self))[self(x)]


class Scaled:
    """Values of features as in `Encoder.scaled`, for arrays: (..., p), or those of some.

    Args:
        sample: the training rows.

    Attributes:
        width: (p,) the units of what is scaled.
    """

    def __init__(self, sample: Sample) -> None:
        self._low, self.width = sample.encoder.low.numpy(), sample.encoder.width.numpy()
        each = sample.encoder.features
        self._coded = any(len(one.special_values) and one.has_order for one in each)

    def __call__(self, rows: Array, at: Any = slice(None)) -> Array:
        """The scaled values; those of a shape that fits that of the features `at`."""
        with np.errstate(over="ignore"):  # a code, in units of a tiny width
            out = (rows - self._low[at]) / self.width[at]
        return np.where(known(rows), out, rows) if self._coded else out
