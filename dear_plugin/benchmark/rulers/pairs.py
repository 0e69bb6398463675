"""Pairs: two values in one row that no training row has together."""

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
    """The pairs of values that training rows have (DESIGN, section 8).

    Two categories, or a category and a tenth of a number: numbers are cut at the training rows'
    deciles, of which equal ones count once.

    Attributes:
        encoder: the gate.
        rows: (n, p) the training rows.
    """

    encoder: Encoder
    rows: Tensor

    def unseen(self, rows: Tensor) -> Codes:
        """(m,) how many pairs of each row, (m, p), no training row has."""
        known, asked = self._codes(self.rows), self._codes(rows)
        words = [feature.kind is not Kind.NUMERIC for feature in self.encoder.schema]
        count = np.zeros(len(rows), dtype=np.int64)
        for i, j in combinations(range(len(words)), 2):
            if words[i] or words[j]:
                width = 1 + max(int(known[:, j].max()), int(asked[:, j].max()))
                seen, pairs = (codes[:, i] * width + codes[:, j] for codes in (known, asked))
                count += ~np.isin(pairs, np.unique(seen))
        return count

    def _codes(self, rows: Tensor) -> Codes:
        """(m, p) categories and tenths."""
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
