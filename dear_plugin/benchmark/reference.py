"""Reference: training rows that answers are compared with; outliers, distances, unseen pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
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
class Neighbourhood:
    """Reference rows, with Euclidean distances on the encoding.

    It uses no labels, unlike support, which is the share of accepted neighbours.

    Attributes:
        encoder: the encoder of the rows.
        rows: (n, p) the reference rows; a random sample of `MOST_ROWS` of them if there are more.
    """

    encoder: Encoder
    rows: Tensor

    def outliers(self, rows: Tensor) -> Truths:
        """(m,) bool, rows, (m, p), that are outliers by scikit-learn's `LocalOutlierFactor`.

        With `novelty=True` and its default threshold, a factor above 1.5 (Breunig et al. 2000).
        """
        found: Truths = self._factor.predict(self._points(rows)) < 0
        return found

    def distance(self, rows: Tensor) -> Floats:
        """(m,) the mean distance of rows, (m, p), to their 5 nearest, in scaled units."""
        distances, _ = self._factor.kneighbors(self._points(rows), NEIGHBOURS)
        mean: Floats = distances.mean(1)
        return mean

    @cached_property
    def _factor(self) -> Any:
        from sklearn.neighbors import LocalOutlierFactor

        rng = torch.Generator().manual_seed(0)
        some = self.rows[torch.randperm(len(self.rows), generator=rng)[:MOST_ROWS]]
        return LocalOutlierFactor(n_neighbors=LOCAL, novelty=True).fit(self._points(some))

    def _points(self, rows: Tensor) -> Floats:
        points: Floats = self.encoder.expand(rows).double().numpy().astype(np.float64)
        return points


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

    def unseen(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """(m,) the number of pairs of each row, (m, p), that occur in no training row."""
        known, codes = self._codes(self.rows), self._codes(rows)
        categorical = self.encoder.labelled.tolist()
        count = np.zeros(len(rows), dtype=np.int64)
        for i, j in combinations(range(len(categorical)), 2):
            if categorical[i] or categorical[j]:
                width = 1 + max(int(known[:, j].max()), int(codes[:, j].max()))
                seen, pairs = (each[:, i] * width + each[:, j] for each in (known, codes))
                count += ~np.isin(pairs, np.unique(seen))
        return count

    def _codes(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """(m, p) category codes and decile bins."""
        columns, shares = [], torch.arange(1, TENTHS, dtype=torch.float64) / TENTHS
        for j, feature in enumerate(self.encoder.schema):
            edges = np.unique(np.quantile(self.rows[:, j].double().numpy(), shares.numpy()))
            tenth = partial(torch.bucketize, boundaries=torch.from_numpy(edges), right=True)
            columns.append(feature.coarser(rows[:, j].double().contiguous(), tenth))
        return torch.stack(columns, 1).round().long().numpy()


@dataclass(frozen=True)
class ReferenceRows:
    """The training rows that answers are compared with.

    Attributes:
        all_rows: all training rows.
        accepted: those that the model accepts.
        pairs: the pairs of values that occur in training rows.
    """

    all_rows: Neighbourhood
    accepted: Neighbourhood
    pairs: Pairs

    def measure(self, rows: Tensor) -> dict[str, Floats]:
        """Of rows, (m, p): outliers, distances, and whether a pair is unseen; (m,) each."""
        return {
            "outlier": self.all_rows.outliers(rows).astype(float),
            "outlier_accepted": self.accepted.outliers(rows).astype(float),
            "distance": self.all_rows.distance(rows),
            "unseen": (self.pairs.unseen(rows) > 0).astype(float),
        }

    def of_answers(self, answers: Recourses) -> dict[str, Floats]:
        """The same of counterfactuals and, with suffix `_before`, of factuals; NaN if unsolved."""
        mask = solved(answers)
        parts = {"": answers.proposal.rows, "_before": answers.x}
        return {
            f"{name}{suffix}": where(mask, values)
            for suffix, rows in parts.items()
            for name, values in self.measure(rows).items()
        }


@lru_cache(maxsize=2)
def reference_rows(data: DataSplit, model: ScoredModel) -> ReferenceRows:
    """The reference rows of a data split and a model."""
    encoder, rows = data.encoder, data.rows
    accepted = rows[torch.from_numpy(model.accepts(data.parts[0]))]
    return ReferenceRows(
        Neighbourhood(encoder, rows), Neighbourhood(encoder, accepted), Pairs(encoder, rows)
    )
