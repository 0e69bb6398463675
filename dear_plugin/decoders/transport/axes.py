"""Axes (step 3): bins of x_S that rows are counted in, and nodes that mix their distributions.

Conditional distributions are counted in *bins* and evaluated at *nodes*. Every heavy value (at
least 1 % of the rows, and a minimum of them), special level and category is a bin of its own; the
rest of a number is cut at quantiles. A node between two bins mixes their *distributions*: mixed
quantiles would give values that no row has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import known
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.leaves import Leaves
from dear_plugin.decoders.transport.values import (
    VERY_HEAVY,
    heavy_values,
    normal_places,
    representatives,
    sorted_values,
    value_counts,
)

MIN_ROWS = 50
MAX_BINS = 24
# Rows of a bin: so many, or this part of a small sample. With a 40th, answers of COMPAS hold in
# .79 of the rows under an estimate from other rows, in place of all.
TARGET_ROWS, PARTS = 300, 16
# Of a number of at most as many values as bins, such as a count, bins are smaller, and beyond the
# outer ones what they show goes on for so many intervals: rare values are near to frequent ones.
PARTS_OF_FEW, BEYOND = 64, 1.0
# Nodes of a number: representative values, and evenly spaced ones.
NODES, EVEN_NODES = 32, 24
MIN_LEAF = 100
# The share of the rows in outer bins, and their least rows.
OUTER, OUTER_ROWS = 0.02, 60


class Level(NamedTuple):
    """A division of the bins into parts.

    Attributes:
        parts: (q, b) 1 where a bin belongs to a part.
        above: (q, q') the weights of the parts of the level above at each part.
    """

    parts: Tensor
    above: Tensor


@dataclass(frozen=True)
class Axis:
    """The bins and nodes of one set.

    Attributes:
        levels: the divisions of the bins into parts, from coarse to fine.
        bins: (n,) int64, the bin of each training row.
        mix: (g, b) double, the weight of each bin at each node.
        place: (b,) the mean normal quantile of the rows of each bin; all 0 without an order.
        nodes: (g,) that of each node.
        node: from values of x_S, (q, w), to their nodes, (q,) int64.
    """

    levels: list[Level]
    bins: Tensor
    mix: Tensor
    place: Tensor
    nodes: Tensor
    node: Callable[[Tensor], Tensor]


def axis_of(sample: Sample, acted: Members) -> Axis:
    """The axis of a set; that of one feature is computed once for a sample."""
    if len(acted) > 1:
        return _of_several(sample, list(acted))
    return sample.shared(_of_one, acted[0])


def _of_one(sample: Sample, j: int) -> Axis:
    """Heavy values and quantile bins of a number; each category is a bin and a node."""
    column, feature = sample.rows[:, j].contiguous(), sample.encoder.schema.features[j]
    nodes, bins, mix, ordered = feature.either(
        _of_amounts, _of_labels, column, feature.label_values
    )
    places = _places(column, bins, (nodes, mix.shape[1]), ordered)
    node = partial(_nearest, (nodes[1:] + nodes[:-1]) / 2.0)
    return Axis(levels_of(mix.shape[1], ordered), bins, mix, *places, node)


def _of_labels(column: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """The nodes, the bin of each row of a column, (n,), the mix, and that there is no order."""
    return labels, column.long(), torch.eye(len(labels)).double(), False


def _of_amounts(column: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """The nodes, the bin of each row of a column, (n,), the mix, and that there is an order."""
    few, nodes = len(value_counts(column)[0]) <= MAX_BINS, _nodes(column)
    part = len(column) // (PARTS_OF_FEW if few else PARTS)
    bins, centres = cut(column, MAX_BINS, max(MIN_ROWS, min(TARGET_ROWS, part)), OUTER)
    heavy = heavy_values(column, share=VERY_HEAVY).tolist()
    apart = {value: int(bins[(column == value).nonzero()[0, 0]]) for value in heavy}
    return nodes, bins, _mixed(nodes, centres, apart, BEYOND * few), True


def _places(
    column: Tensor, bins: Tensor, of: tuple[Tensor, int], ordered: bool
) -> tuple[Tensor, Tensor]:
    """(b,) and (g,) normal quantiles in bins and at nodes; 0 without an order and if special.

    A category that no training row has is a bin without rows.
    """
    nodes, count = of
    values, counts = value_counts(column)
    own = torch.where(known(values), normal_places(counts.double()), 0.0) * ordered
    rows = own[torch.searchsorted(values, column)]
    sums = torch.zeros(count).double().index_add_(0, bins, rows)
    at = torch.searchsorted(values, nodes.to(values)).clamp_max(len(values) - 1)
    return sums / torch.bincount(bins, minlength=count).clamp_min(1), own[at]


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


def _nearest(middles: Tensor, values: Tensor) -> Tensor:
    """(q,) the nodes nearest to values, (q, 1), given the middles between them."""
    return torch.searchsorted(middles, values[:, 0].contiguous())


def _of_several(sample: Sample, acted: list[int]) -> Axis:
    """The leaves of a regression tree from the columns of some features to all others."""
    encoder, n = sample.encoder, len(sample)
    x, own = encoder.expand(sample.rows), torch.isin(encoder.feature_of, torch.tensor(acted))
    others = ~own & encoder.compared
    target = x[:, others] if bool(others.any()) else x
    # One row has no deviation.
    deviation = target.std(0, correction=min(1, n - 1)).clamp_min(1e-6)
    leaves = Leaves(x[:, own], target / deviation, min(max(MIN_LEAF, n // 200), n // 2))
    mix = torch.eye(len(leaves)).double()
    leaf = partial(_leaf, leaves, encoder, acted)
    none = torch.zeros(len(mix)).double()
    return Axis(levels_of(len(mix), False), leaf(sample.rows[:, acted]), mix, none, none, leaf)


def _leaf(leaves: Leaves, encoder: Encoder, acted: list[int], values: Tensor) -> Tensor:
    """(q,) the leaves of the values, (q, w), of some features."""
    rows = values.new_zeros(len(values), encoder.p)
    rows[:, acted] = values
    return leaves(encoder.expand(rows)[:, torch.isin(encoder.feature_of, torch.tensor(acted))])


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
    nodes: Tensor = torch.cat([representatives(column, NODES), near]).unique()
    return nodes


def levels_of(bins: int, ordered: bool) -> list[Level]:
    """The levels of b bins: halves, quarters, ... of ordered ones; otherwise only the bins."""
    if not ordered or bins < 2:
        return [Level(torch.eye(bins).double(), torch.ones(bins, 1).double())]
    levels: list[Level] = []
    centres, count = torch.tensor([(bins - 1) / 2.0]).double(), 1
    while count < bins:
        count = min(2 * count, bins)
        parts = one_hot(torch.arange(bins) * count // bins, count).T.double()
        own = parts @ torch.arange(bins).double() / parts.sum(1)
        levels.append(Level(parts, interpolation(own, centres, beyond=0.5)))
        centres = own
    return levels


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
