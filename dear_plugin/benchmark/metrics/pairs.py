"""Pairs: pairs of values of a row that occur in no training row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind

TENTHS = 10

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """The pairs of values that occur in training rows.

    A pair is two categories, or a category and a decile bin of a number; equal deciles of the
    training rows are merged.

    Attributes:
        encoder: the encoder of the rows.
        rows: (n, p) the training rows.
    """

    encoder: Encoder
    rows: Tensor

    def unseen(self, rows: Tensor) -> Codes:
        """(m,) the number of pairs of each row, (m, p), that occur in no training row."""
        known, codes = self._codes(self.rows), self._codes(rows)
        categorical = [feature.kind is not Kind.NUMERIC for feature in self.encoder.schema]
        count = np.zeros(len(rows), dtype=np.int64)
        for i, j in combinations(range(len(categorical)), 2):
            if categorical[i] or categorical[j]:
                width = 1 + max(int(known[:, j].max()), int(codes[:, j].max()))
                seen, pairs = (each[:, i] * width + each[:, j] for each in (known, codes))
                count += ~np.isin(pairs, np.unique(seen))
        return count

    def _codes(self, rows: Tensor) -> Codes:
        """(m, p) category codes and decile bins."""
        columns = []
        for j, feature in enumerate(self.encoder.schema):
            own = rows[:, j].double()
            if feature.kind is Kind.NUMERIC:
                shares = torch.arange(1, TENTHS, dtype=torch.float64) / TENTHS
                column = self.rows[:, j].double()
                edges = np.unique(np.quantile(column.numpy(), shares.numpy()))
                columns.append(np.searchsorted(edges, own.numpy(), side="right"))
            else:
                columns.append(own.round().long().numpy())
        return np.stack(columns, 1).astype(np.int64)
