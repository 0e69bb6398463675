"""Counts: the rows of r samples by cell of the held features, bin of x_S, and value."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import Axis
from dear_plugin.decoders.transport.cells import cells_of
from dear_plugin.decoders.transport.shrinkage import levels_of
from dear_plugin.decoders.transport.values import GROUPS, Values


class Counts:
    """The rows of a set in r samples.

    Args:
        sample: the training rows.
        axis: the bins of the set.
        held: the features that are conditioned on.
        weights: (r, q) the weights of blocks of rows: row i is in block i modulo q.

    Attributes:
        axis: the bins.
        drawn: whether these are bootstrap samples.
        levels: the divisions of the bins.
    """

    def __init__(self, sample: Sample, axis: Axis, held: Members, weights: Tensor) -> None:
        self._sample, self._held, self._weights = sample, held, weights
        self._values, self.drawn = sample.shared(Values.of), weights.shape[1] > 1
        self._cells, self.axis = cells_of(sample, held), axis
        self.levels = levels_of(self.axis.mix.shape[1], self.axis.ordered)

    @lazy
    def rows(self) -> Tensor:
        """(r, k, b) of each cell and bin."""
        return self._counted(
            self._cells.own, len(self._cells), self.axis.bins, self.axis.mix.shape[1]
        )

    def of_cells(self, j: int) -> Tensor:
        """(r, k, t) of each cell and value of feature j."""
        own, k = self._cells.own, len(self._cells)
        if self.drawn:
            return self._counted(own, k, *self._of(j))
        return self._sample.shared(
            lambda _: self._counted(own, k, *self._of(j)), ("of cells", self._held, j)
        )

    def of_bins(self, j: int) -> Tensor:
        """(r, b, t) of each bin and value of feature j."""
        return self._counted(self.axis.bins, self.axis.mix.shape[1], *self._of(j))

    def grouped(self, j: int) -> tuple[Tensor, Tensor]:
        """(g, r, k) and (g, r, b) of each group of the values of feature j, and cell or bin."""
        member = one_hot(self._values.groups[j], GROUPS).double()
        cells, bins = self.of_cells(j) @ member, self.of_bins(j) @ member
        return cells.permute(2, 0, 1), bins.permute(2, 0, 1)

    def _of(self, j: int) -> tuple[Tensor, int]:
        return self._values.codes[j], len(self._values.levels[j])

    def _counted(self, one: Tensor, a: int, other: Tensor, b: int) -> Tensor:
        """(r, a, b) the rows with each pair of codes: `one`, (n,), below a, `other` below b."""
        blocks, keys = self._weights.shape[1], one * b + other
        if blocks > 1:
            keys += torch.arange(len(one)) % blocks * (a * b)
        counts = torch.bincount(keys, minlength=blocks * a * b).view(blocks, -1)
        return (self._weights @ counts.double()).view(-1, a, b)
