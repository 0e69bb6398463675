"""Comparisons of answers with training rows: outliers, distances, unseen pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.benchmark.metrics import Floats, Truths, solved, where
from dear_plugin.benchmark.splits import DataSplit, ScoredModel
from dear_plugin.data.encoder import Encoder
from dear_plugin.results.recourses import Recourses

NEIGHBOURS = 5
# Neighbours of the local outlier factor, scikit-learn's default.
LOCAL = 20
MOST_ROWS = 10_000
TENTHS = 10


@dataclass(frozen=True)
class ReferenceRows:
    """The training rows that answers are compared with; the measures use no labels.

    A pair of values is two categories, or a category and a decile bin of a number; equal deciles
    of the training rows are merged.

    Attributes:
        encoder: the encoder of the rows.
        rows: (n, p) the training rows.
        accepted: (n,) bool, the rows that the model accepts.
    """

    encoder: Encoder
    rows: Tensor
    accepted: Truths

    def measure(self, rows: Tensor) -> dict[str, Floats]:
        """The measures of rows, (m, p): outliers, distances and unseen pairs; (m,) each.

        Outliers have a local outlier factor above 1.5 (Breunig et al. 2000), by scikit-learn's
        `LocalOutlierFactor` with `novelty=True`, among all rows and among accepted rows. Distances
        are mean Euclidean distances to the 5 nearest rows, on encoded columns.
        """
        points, (every, accepted) = self._points(rows), self._factors
        return {
            "outlier": (every.predict(points) < 0).astype(float),
            "outlier_accepted": (accepted.predict(points) < 0).astype(float),
            "distance": every.kneighbors(points, NEIGHBOURS)[0].mean(1),
            "unseen": (self.unseen(rows) > 0).astype(float),
        }

    def of_answers(self, answers: Recourses) -> dict[str, Floats]:
        """The measures of counterfactuals and of factuals (suffix `_before`); NaN if unsolved."""
        mask = solved(answers)
        parts = {"": answers.proposal.rows, "_before": answers.x}
        return {
            f"{name}{suffix}": where(mask, values)
            for suffix, rows in parts.items()
            for name, values in self.measure(rows).items()
        }

    def unseen(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """(m,) the number of pairs of each row, (m, p), that no training row has."""
        known, codes = self._codes(self.rows), self._codes(rows)
        categorical = self.encoder.labelled.tolist()
        count = np.zeros(len(rows), dtype=np.int64)
        for i, j in combinations(range(len(categorical)), 2):
            if categorical[i] or categorical[j]:
                width = 1 + max(int(known[:, j].max()), int(codes[:, j].max()))
                seen, pairs = (each[:, i] * width + each[:, j] for each in (known, codes))
                count += ~np.isin(pairs, np.unique(seen))
        return count

    @cached_property
    def _factors(self) -> tuple[Any, Any]:
        """The factors of all rows and of accepted rows; of at most `MOST_ROWS` each."""
        from sklearn.neighbors import LocalOutlierFactor

        rng, factors = torch.Generator(), []
        for rows in (self.rows, self.rows[torch.from_numpy(self.accepted)]):
            some = rows[torch.randperm(len(rows), generator=rng.manual_seed(0))[:MOST_ROWS]]
            factor = LocalOutlierFactor(n_neighbors=LOCAL, novelty=True)
            factors.append(factor.fit(self._points(some)))
        return factors[0], factors[1]

    def _points(self, rows: Tensor) -> Floats:
        points: Floats = self.encoder.expand(rows).double().numpy().astype(np.float64)
        return points

    def _codes(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """(m, p) category codes and decile bins."""
        columns, shares = [], torch.arange(1, TENTHS, dtype=torch.float64) / TENTHS
        for j, feature in enumerate(self.encoder.schema):
            edges = np.unique(np.quantile(self.rows[:, j].double().numpy(), shares.numpy()))
            column, cuts = rows[:, j].double().contiguous(), torch.from_numpy(edges)
            tenths = torch.bucketize(column, cuts, right=True) if feature.has_order else column
            columns.append(tenths)
        return torch.stack(columns, 1).round().long().numpy()


@lru_cache(maxsize=2)
def reference_rows(data: DataSplit, model: ScoredModel) -> ReferenceRows:
    """The reference rows of a data split and a model."""
    return ReferenceRows(data.encoder, data.rows, model.accepts(data.parts[0]))
