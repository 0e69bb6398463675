"""Locations: conditional means of atom-free features by least squares on winsorised values.

The covariates (see `Conditioning.basis`) are regressed on at the same time and held fixed: the
slope along x_S is the partial one (Frisch and Waugh).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders.transport.bins import sorted_values
from dear_plugin.decoders.transport.shrinkage import shrunk_means

KINKS = 2
WINSOR = 0.005
RIDGE = 1e-9
PLANE_RIDGE = 1e-6
# Likelihood-ratio statistics at p = .001: of a slope, and of two kinks.
MIN_SLOPE, MIN_BEND = 10.8, 13.8


@dataclass(frozen=True)
class Location:
    """The location of f features on one set.

    Attributes:
        at_rows: (n, f) at every training row.
        at_grid: (f, g) at the nodes of x_S, without the part of the covariates; (f, 1) zeros for
            groups, whose location depends on more than the node.
        covariate_weights: (b, f).
    """

    at_rows: Tensor
    at_grid: Tensor
    covariate_weights: Tensor


def winsorised(y: Tensor) -> Tensor:
    """(n, f) double, values with the outer 0.5 % on either side clamped."""
    cut = int(WINSOR * (len(y) - 1))
    ends = sorted_values(y.T)
    return torch.clamp(y, ends[:, cut], ends[:, len(y) - 1 - cut]).double()


def terciles(x: Tensor) -> Tensor:
    """(w, 2) the kinks of columns, (n, w): infinite where they are not inside the range."""
    ends = sorted_values(x.T)
    kinks = ends[:, [(len(x) * (i + 1)) // (KINKS + 1) for i in range(KINKS)]]
    inside = (kinks > ends[:, :1]) & (kinks < ends[:, -1:])
    inside[:, 1] &= kinks[:, 1] > kinks[:, 0]
    return torch.where(inside, kinks, torch.inf)


def hinges(x: Tensor, kinks: Tensor) -> Tensor:
    """(..., 1 + 3 w) a constant, every column of (..., w), and its excess over each kink."""
    excess = [(x - kinks[:, i]).clamp_min(0.0) for i in range(KINKS)]
    return torch.cat([x.new_ones(*x.shape[:-1], 1), x, *excess], -1)


def numeric_location(
    a: Tensor, grid: Tensor, inner: Tensor, covariates: Tensor, linked: Tensor
) -> Location:
    """The location on a numeric feature: a line with two kinks, extrapolated linearly.

    The kinks are left out if they are not significant, and so is the slope, or if the feature is
    not linked to the numeric feature.

    Args:
        a: (n,) the values of the numeric feature.
        grid: (g,) its nodes.
        inner: (n, f) winsorised values, from `winsorised`.
        covariates: (n, b).
        linked: (f,) bool.
    """
    kinks, mean = terciles(a[:, None]), inner.mean(0)
    # An outlier that is winsorised on one side only would tilt the line.
    own = hinges(winsorised(a[:, None]), kinks)
    weights = _selected_fit(own, covariates, inner - mean, linked)
    line, rest = weights.split([own.shape[1], covariates.shape[1]])
    at_grid = hinges(grid.double()[:, None], kinks) @ line + mean
    at_rows = hinges(a.double()[:, None], kinks) @ line + covariates @ rest + mean
    return Location(at_rows.float(), at_grid.float().T, rest)


def category_location(
    a: Tensor, count: int, inner: Tensor, covariates: Tensor, linked: Tensor
) -> Location:
    """The location on a category: a shrunk mean for each; an empty one has the overall mean.

    Args:
        a: (n,) category indices.
        count: the number of categories.
        inner: as in `numeric_location`.
        covariates: as in `numeric_location`.
        linked: as in `numeric_location`.
    """
    level = a.long()
    means, centres = (_level_means(z, level, count) for z in (inner, covariates))
    slopes = _least_squares(covariates - centres[level], inner - means[level], RIDGE)
    residual = inner - covariates @ slopes
    observed, mean = _level_means(residual, level, count), residual.mean(0)
    noise = (residual - observed[level]).square().sum(0) / max(len(a) - count, 1)
    size = torch.bincount(level, minlength=count).double()[:, None]
    at_grid = torch.where(linked, shrunk_means(observed, size, mean, noise), mean)
    at_rows = at_grid[level] + covariates @ slopes
    return Location(at_rows.float(), at_grid.float().T, slopes)


def _selected_fit(own: Tensor, covariates: Tensor, y: Tensor, linked: Tensor) -> Tensor:
    """(4 + b, f) least squares with those of the own columns, (n, 4), that are significant."""
    fits, deviances = [], []
    for used in (1, 2, own.shape[1]):
        design = torch.cat([own[:, :used], covariates], 1)
        fit = _least_squares(design, y, RIDGE)
        deviances.append(len(y) * (y - design @ fit).square().mean(0).clamp_min(1e-30).log())
        unused = fit.new_zeros(own.shape[1] - used, fit.shape[1])
        fits.append(torch.cat([fit[:used], unused, fit[used:]]))
    level, straight, bent = deviances
    bends = linked & (straight - bent > MIN_BEND)
    slopes = linked & ((level - straight > MIN_SLOPE) | bends)
    return torch.where(bends, fits[2], torch.where(slopes, fits[1], fits[0]))


def linear_fit(y: Tensor, covariates: Tensor) -> Tensor:
    """(n, f) fitted values of columns, (n, f), by least squares on covariates, (n, b)."""
    design = torch.cat([covariates.new_ones(len(y), 1), covariates], 1)
    return design @ _least_squares(design, y, RIDGE)


def _level_means(z: Tensor, level: Tensor, count: int) -> Tensor:
    """(count, w) the mean of rows (n, w) at each level; of an empty one the overall mean."""
    size = torch.bincount(level, minlength=count)[:, None]
    total = torch.zeros(count, z.shape[1], dtype=z.dtype).index_add_(0, level, z)
    return torch.where(size > 0, total / size.clamp_min(1), z.mean(0))


def _least_squares(design: Tensor, y: Tensor, ridge: float) -> Tensor:
    """Least squares, in double; a small ridge makes empty columns harmless."""
    gram = design.T @ design
    gram.diagonal().add_(ridge * len(design))
    return torch.as_tensor(torch.linalg.solve(gram, design.T @ y))


@dataclass
class Planes:
    """The columns that the locations of groups are linear in.

    Attributes:
        bent: (z,) the encoded columns of numeric features.
        straight: the other columns.
        kinks: (z, 2) the kinks of the numeric features.
    """

    bent: Tensor
    straight: Tensor
    kinks: Tensor

    @classmethod
    def of(cls, x: Tensor, encoder: Encoder) -> Planes:
        """Compute the kinks from encoded training rows, (n, d)."""
        numeric = torch.tensor([f.kind is Kind.NUMERIC for f in encoder.schema])
        number = numeric[encoder.feature_of]
        bent, straight = number.nonzero()[:, 0], (~number).nonzero()[:, 0]
        return cls(bent, straight, terciles(x[:, bent]))

    def basis(self, x: Tensor) -> Tensor:
        """(..., e) what the locations are linear in, at encoded rows (..., d)."""
        return torch.cat([hinges(x[..., self.bent], self.kinks), x[..., self.straight]], -1)

    def fit(
        self, x: Tensor, own: Tensor, y: Tensor, covariates: Tensor, linked: Tensor
    ) -> tuple[Location, Tensor]:
        """The location of one group and its weights on `basis`, (e, f).

        Args:
            x: (n, d) encoded training rows.
            own: (d,) bool, the columns of the group.
            y: (n, f) atom-free features.
            covariates: (n, b).
            linked: (f,) bool, which features are associated with the group.
        """
        bent, straight = own[self.bent], own[self.straight]
        some = Planes(self.bent[bent], self.straight[straight], self.kinks[bent])
        design = torch.cat([some.basis(x).double(), covariates], 1)
        solution = _least_squares(design, y.double(), PLANE_RIDGE)
        columns = design.shape[1] - covariates.shape[1]
        flat = torch.cat([design[:, :1], covariates], 1)
        flat = _least_squares(flat, y.double(), PLANE_RIDGE)
        level = torch.cat([flat[:1], flat.new_zeros(columns - 1, y.shape[1]), flat[1:]])
        solution = torch.where(linked, solution, level)
        plane, rest = solution.split([columns, covariates.shape[1]])
        used = torch.cat([torch.ones(1, dtype=torch.bool), bent.repeat(1 + KINKS), straight])
        weights = torch.zeros(len(used), y.shape[1])
        weights[used] = plane.float()
        return Location((design @ solution).float(), torch.zeros(y.shape[1], 1), rest), weights
