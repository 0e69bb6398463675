"""Locations: where an atom-free feature lies given x_S, by least squares on winsorised values.

What is given is regressed on at the same time and does not move: the slope along x_S is the
partial one (Frisch and Waugh).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import ordered
from dear_plugin.decoders.transport.shrinkage import credible

KINKS = 2
WINSOR = 0.005
# What twice the log-likelihood gains once in a thousand times by chance: a slope; two kinks.
LEAST_SLOPE, LEAST_BEND = 10.8, 13.8


@dataclass(frozen=True)
class Location:
    """One set's location of f features.

    Attributes:
        at_rows: (n, f) at every training row.
        at_grid: (f, g) at the nodes of x_S, without the part of what is given; (f, 1) zeros for
            groups, whose location depends on more than the node.
        beside: (b, f) the weights of what is given.
    """

    at_rows: Tensor
    at_grid: Tensor
    beside: Tensor


def winsorised(y: Tensor) -> Tensor:
    """(n, f) double, values with the outer 0.5 % pulled in."""
    cut = int(WINSOR * (len(y) - 1))
    ends = ordered(y.T)
    return torch.clamp(y, ends[:, cut], ends[:, len(y) - 1 - cut]).double()


def terciles(x: Tensor) -> Tensor:
    """(w, 2) where lines on numbers, (n, w), bend: infinite where there is nothing to bend."""
    ends = ordered(x.T)
    kinks = ends[:, [(len(x) * (i + 1)) // (KINKS + 1) for i in range(KINKS)]]
    inside = (kinks > ends[:, :1]) & (kinks < ends[:, -1:])
    inside[:, 1] &= kinks[:, 1] > kinks[:, 0]
    return torch.where(inside, kinks, torch.inf)


def hinges(x: Tensor, kinks: Tensor) -> Tensor:
    """(..., 1 + 3 w) a constant, every column of (..., w), and its excess over each kink."""
    bent = [(x - kinks[:, i]).clamp_min(0.0) for i in range(KINKS)]
    return torch.cat([x.new_ones(*x.shape[:-1], 1), x, *bent], -1)


def by_number(a: Tensor, grid: Tensor, inner: Tensor, beside: Tensor, linked: Tensor) -> Location:
    """The location on a number: a line with two kinks, extended linearly.

    The line is straight where its kinks explain no more than chance would, level where its slope
    does not, or where the feature is not linked to the number.

    Args:
        a: (n,) its values.
        grid: (g,) its nodes.
        inner: (n, f) winsorised values, from `winsorised`.
        beside: (n, b) what is regressed on beside it.
        linked: (f,) bool.
    """
    kinks, mean = terciles(a[:, None]), inner.mean(0)
    # An outlier pulled in on one side only would tilt the line for everybody.
    own = hinges(winsorised(a[:, None]), kinks)
    weights = _justified(own, beside, inner - mean, linked)
    line, rest = weights.split([own.shape[1], beside.shape[1]])
    at_grid = hinges(grid.double()[:, None], kinks) @ line + mean
    at_rows = hinges(a.double()[:, None], kinks) @ line + beside @ rest + mean
    return Location(at_rows.float(), at_grid.float().T, rest)


def by_level(a: Tensor, count: int, inner: Tensor, beside: Tensor, linked: Tensor) -> Location:
    """The location on a category: one mean for each, shrunk; an empty one has everyone's.

    Args:
        a: (n,) categories.
        count: how many there are.
        inner: as in `by_number`.
        beside: as in `by_number`.
        linked: as in `by_number`.
    """
    level = a.long()
    means, around = (_means(z, level, count) for z in (inner, beside))
    slopes = _solved(beside - around[level], inner - means[level], 1e-9)
    left = inner - beside @ slopes
    seen, mean = _means(left, level, count), left.mean(0)
    noise = (left - seen[level]).square().sum(0) / max(len(a) - count, 1)
    held = torch.bincount(level, minlength=count).double()[:, None]
    at_grid = torch.where(linked, credible(seen, held, mean, noise), mean)
    at_rows = at_grid[level] + beside @ slopes
    return Location(at_rows.float(), at_grid.float().T, slopes)


def _justified(own: Tensor, beside: Tensor, y: Tensor, linked: Tensor) -> Tensor:
    """(4 + b, f) least squares with as many of the own columns, (n, 4), as the rows justify."""
    fits, lacks = [], []
    for used in (1, 2, own.shape[1]):
        design = torch.cat([own[:, :used], beside], 1)
        fit = _solved(design, y, 1e-9)
        lacks.append(len(y) * (y - design @ fit).square().mean(0).clamp_min(1e-30).log())
        gap = fit.new_zeros(own.shape[1] - used, fit.shape[1])
        fits.append(torch.cat([fit[:used], gap, fit[used:]]))
    level, straight, bent = lacks
    bends = linked & (straight - bent > LEAST_BEND)
    slopes = linked & ((level - straight > LEAST_SLOPE) | bends)
    return torch.where(bends, fits[2], torch.where(slopes, fits[1], fits[0]))


def explained(y: Tensor, beside: Tensor) -> Tensor:
    """(n, f) what the given, (n, b), explains of columns, (n, f), by least squares."""
    design = torch.cat([beside.new_ones(len(y), 1), beside], 1)
    return design @ _solved(design, y, 1e-9)


def _means(z: Tensor, level: Tensor, count: int) -> Tensor:
    """(count, w) the mean of rows (n, w) at each level."""
    size = torch.bincount(level, minlength=count)[:, None]
    total = torch.zeros(count, z.shape[1], dtype=z.dtype).index_add_(0, level, z)
    return torch.where(size > 0, total / size.clamp_min(1), z.mean(0))


def _solved(design: Tensor, y: Tensor, ridge: float) -> Tensor:
    """Least squares, in double; a whisper of ridge keeps empty columns harmless."""
    gram = design.T @ design
    gram.diagonal().add_(ridge * len(design))
    return torch.as_tensor(torch.linalg.solve(gram, design.T @ y))


@dataclass
class Planes:
    """What the locations of groups are linear in.

    Attributes:
        bent: (z,) the encoded columns that are numbers.
        straight: the other columns.
        kinks: (z, 2) where the numbers bend.
    """

    bent: Tensor
    straight: Tensor
    kinks: Tensor

    @classmethod
    def of(cls, x: Tensor, encoder: Encoder) -> Planes:
        """Read the kinks off encoded training rows, (n, d)."""
        kinds = torch.tensor([f.kind is Kind.NUMERIC for f in encoder.schema])
        number = kinds[encoder.feature_of]
        bent, straight = number.nonzero()[:, 0], (~number).nonzero()[:, 0]
        return cls(bent, straight, terciles(x[:, bent]))

    def basis(self, x: Tensor) -> Tensor:
        """(..., e) what the locations are linear in, at encoded rows (..., d)."""
        return torch.cat([hinges(x[..., self.bent], self.kinks), x[..., self.straight]], -1)

    def fit(
        self, x: Tensor, own: Tensor, y: Tensor, beside: Tensor, linked: Tensor
    ) -> tuple[Location, Tensor]:
        """The location of one group and its weights on `basis`, (e, f).

        Args:
            x: (n, d) encoded training rows.
            own: (d,) bool, the columns of the group.
            y: (n, f) atom-free features.
            beside: (n, b) what is regressed on beside it.
            linked: (f,) bool, which features have to do with the group.
        """
        bent, straight = own[self.bent], own[self.straight]
        some = Planes(self.bent[bent], self.straight[straight], self.kinks[bent])
        design = torch.cat([some.basis(x).double(), beside], 1)
        solution = _solved(design, y.double(), 1e-6)
        columns = design.shape[1] - beside.shape[1]
        still = _solved(torch.cat([design[:, :1], beside], 1), y.double(), 1e-6)
        level = torch.cat([still[:1], still.new_zeros(columns - 1, y.shape[1]), still[1:]])
        solution = torch.where(linked, solution, level)
        plane, rest = solution.split([columns, beside.shape[1]])
        used = torch.cat([torch.ones(1, dtype=torch.bool), bent.repeat(1 + KINKS), straight])
        weights = torch.zeros(len(used), y.shape[1])
        weights[used] = plane.float()
        return Location((design @ solution).float(), torch.zeros(y.shape[1], 1), rest), weights
