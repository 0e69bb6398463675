"""Usual: training rows and a row in; between which values a number is, given all else, out."""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder

# The training rows that are most alike, and the share of them beyond each end.
ALIKE, OUTER = 300, 0.01


class Usual:
    """The usual values of numbers in rows that are alike in all else: their central 98 %.

    Alike are the training rows for which a linear regression on all else predicts the most similar
    value; what others determine is no part of it.

    Args:
        encoder: of the rows.
        known: (n, p) the training rows.
    """

    def __init__(self, encoder: Encoder, known: Tensor) -> None:
        self._encoder, self._known = encoder, known
        self._fits: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def ends(self, row: Tensor, j: int) -> tuple[float, float]:
        """The least and the greatest usual value of a number in a row, (p,), and in all rows."""
        if j not in self._fits:
            self._fits[j] = self._fit(j)
        weights, fitted, values = self._fits[j]
        far = (fitted - self._others(row[None], j) @ weights).abs()
        alike = values[far.argsort(stable=True)[:ALIKE]]
        low, high = alike.quantile(torch.tensor([OUTER, 1.0 - OUTER]).double()).tolist()
        least, most = (float(end[j]) for end in self._encoder.central)
        return max(low, least), min(high, most)

    def _fit(self, j: int) -> tuple[Tensor, Tensor, Tensor]:
        """The weights of a number's regression, (q,), what it predicts, (m,), and its values."""
        some = self._known[self._encoder.amounts(self._known[:, j], at=j)]
        columns, values = self._others(some, j), some[:, j].double()
        target = self._central(some)[:, [j]].double()
        found = torch.linalg.lstsq(columns, target, driver="gelsd").solution[:, 0]
        return found, columns @ found, values

    def _others(self, rows: Tensor, j: int) -> Tensor:
        """(m, q) a constant, and the encoded columns of all else."""
        schema, of = self._encoder.schema, self._encoder.feature_of
        fixed = [each for each in schema.relations if each.is_definition]
        tied = {each.name for each in fixed} | {schema.names[j]}
        tied |= {name for each in fixed if each.name == schema.names[j] for name in each.members}
        left = ~torch.isin(of, torch.tensor(schema.index(sorted(tied)))) & self._encoder.compared
        columns = self._encoder.expand(self._central(rows)).double()[:, left]
        return torch.cat([torch.ones(len(rows), 1).double(), columns], 1)

    def _central(self, rows: Tensor) -> Tensor:
        """(m, p) rows, numbers not beyond the central training values, against outliers."""
        return torch.where(self._encoder.amounts(rows), rows.clamp(*self._encoder.central), rows)
