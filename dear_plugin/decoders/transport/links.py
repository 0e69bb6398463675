"""Links (step 4): which counted features depend on x_S within cells.

A feature may move with x_S only if independence is rejected at some level of parts of x_S (see
`ratios`). Rows are expected from the distribution of their cell; deviations are summed over
cells before they are squared, so that many small cells have the power of a large one (Mantel and
Haenszel 1959).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._lazy import lazy
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.axes import Axis
from dear_plugin.decoders.transport.cells import cells_of
from dear_plugin.decoders.transport.ratios import LEAST, levels_of, shrunk
from dear_plugin.decoders.transport.values import GROUPS, values_of

# The family-wise error rate over all features that are independent of x_S; the l-th level has
# 1 / 2^l of it.
ERROR = 0.001


class Counts:
    """The rows of r samples by cell of the held features, bin of x_S, and value.

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
        self._cells, self.axis, self.drawn = cells_of(sample, held), axis, weights.shape[1] > 1
        self.levels = levels_of(self.axis.mix.shape[1], self.axis.ordered)

    @lazy
    def rows(self) -> Tensor:
        """(r, k, b) of each cell and bin."""
        return self._by_cell(self.axis.bins, self.axis.mix.shape[1])

    def of_cells(self, j: int) -> Tensor:
        """(r, k, t) of each cell and value of feature j; in the sample itself, for all sets."""
        levels, codes, *_ = values_of(self._sample, j)
        if self.drawn:
            return self._by_cell(codes, len(levels))
        key = "of cells", self._held, j
        return self._sample.shared(lambda _: self._by_cell(codes, len(levels)), key)

    def of_bins(self, j: int) -> Tensor:
        """(r, b, t) of each bin and value of feature j."""
        levels, codes, *_ = values_of(self._sample, j)
        return self._counted(self.axis.bins, self.axis.mix.shape[1], codes, len(levels))

    def tails(self, features: Tensor) -> Tensor:
        """(l, r, f) the probability of as much dependence by chance, at each level."""
        if not len(features):
            return torch.ones(len(self.levels), len(self.rows), 0).double()
        cells, bins = [], []
        for j in features.tolist():
            member = one_hot(values_of(self._sample, j).groups, GROUPS).double()
            cells.append(self.of_cells(j) @ member)
            bins.append(self.of_bins(j) @ member)
        seen, within = (torch.stack(each, 1).movedim(3, 0) for each in (bins, cells))
        expected = within / self.rows.sum(2)[:, None].clamp_min(LEAST) @ self.rows
        return shrunk(seen, expected, self.levels, drawn=self.drawn).tail

    def _by_cell(self, codes: Tensor, t: int) -> Tensor:
        """(r, k, t) the rows of each cell and code, (n,)."""
        return self._counted(self._cells.own, len(self._cells), codes, t)

    def _counted(self, one: Tensor, a: int, other: Tensor, b: int) -> Tensor:
        """(r, a, b) the rows with each pair of codes: `one`, (n,), below a, `other` below b."""
        blocks, keys = self._weights.shape[1], one * b + other
        if blocks > 1:
            keys += torch.arange(len(one)) % blocks * (a * b)
        counts = torch.bincount(keys, minlength=blocks * a * b).view(blocks, -1)
        return (self._weights @ counts.double()).view(-1, a, b)


def linked(tails: Tensor, tested: int) -> Tensor:
    """(r, f) bool, whether features depend on x_S, given how many share the error rate."""
    error = ERROR / tested / 2.0 ** torch.arange(1, len(tails) + 1).double()
    return (tails < error[:, None, None]).any(0)
