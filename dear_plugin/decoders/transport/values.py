"""Values (step 1): which features are counted and which are smooth, and the counted ones' values.

A feature is *counted* if it has categories or an atom (a value that 1 % of the rows have): it is
looked up in tables of observed values. A number without atoms is *smooth*; where it has special
levels, these are counted, and rows with known values are smooth.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from dear_plugin.data.special_values import amounts_of, known
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample

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
# Groups of a feature's values: in the tests of dependence, and by repeated splits.
GROUPS, MAX_GROUPS = 5, 32
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
        place: (t,) the normal quantiles of their ranks; NaN for special ones and without an
            order.
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
        labels = feature.label_values
        levels = feature.either(representatives, lambda *_: labels, column, MAX_VALUES)
        codes = torch.searchsorted((levels[1:] + levels[:-1]) / 2.0, column)
        size = torch.bincount(codes, minlength=len(levels)).double()
        order = torch.arange(len(levels))
        if sample.encoder.blocks[j]:
            order = size.argsort(descending=True, stable=True)
        groups, ordered = torch.empty_like(order), size[order]
        middle = (ordered.cumsum(0) - ordered / 2.0) / ordered.sum()
        groups[order] = (middle * GROUPS).long().clamp_max(GROUPS - 1)
        special = int((~known(levels)).sum())
        place = torch.full_like(size, torch.nan)
        if not sample.encoder.blocks[j]:
            place[special:] = normal_places(size[special:])
        return cls(levels, codes, groups, splits_of(size, order, special), place)


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
    found: Tensor = ~sample.shared(smooth_features) | ~sample.known.all(0)
    return found


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


def rounding(sample: Sample) -> tuple[list[int], Tensor]:
    """A number for each feature, equal for equal columns, and (p,) the usual gaps of values."""
    columns = [each.contiguous() for each in sample.rows.T]
    gaps = [value_counts(each)[0].diff().median().nan_to_num() for each in columns]
    return [crc32(each.numpy().tobytes()) for each in columns], torch.stack(gaps)


def linear_copies(sample: Sample) -> list[tuple[int, int, float]]:
    """The pairs (i, j) of numbers of which j is linear in i in every row, and the slopes.

    Those with special levels are left out.
    """
    if len(sample) < COPY_ROWS:
        return []
    encoder = sample.encoder
    number = encoder.amounts(sample.rows).all(0)
    x = torch.where(number, encoder.scaled(sample.rows), 0.0)
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
