"""Fits of DEAR and of baselines on a data split, and what answers are compared with.

The last ones are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin import rivals
from dear_plugin.benchmark.metrics import Floats, Truths, solved, where, with_noise
from dear_plugin.benchmark.splits import DataSplit, ScoredModel
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses

NOISE_ROWS = (1_000, 30_000)
BASELINES: Mapping[str, Callable[..., RecourseMethod]] = {
    "Wachter": rivals.Wachter,
    "REVISE": rivals.Revise,
    "C-CHVAE": rivals.CCHVAE,
    "CLUE": rivals.Clue,
    "FACE-K": rivals.FaceKNN,
    "FACE-E": rivals.FaceEpsilon,
    "ROAR": rivals.Roar,
    "growing spheres": rivals.GrowingSpheres,
    "nearest accepted": rivals.NearestAccepted,
}
LATENT = ("REVISE", "C-CHVAE", "CLUE")


@dataclass(frozen=True)
class Fits:
    """The fits of DEAR on a data split, which do not depend on the model.

    Attributes:
        data: the data split.
        pairs: whether pairs of features are action sets from the start.
        tiers: whether the data set's own protocol has its tiers.
    """

    data: DataSplit
    pairs: bool
    tiers: bool

    @cached_property
    def whole(self) -> DEAR:
        """The fit on all training rows."""
        return self._fitted(self.data.parts[0], self.data.schema)

    @cached_property
    def halves(self) -> tuple[DEAR, DEAR]:
        """The fits on each half of the training rows, split at random."""
        train = self.data.parts[0]
        first = train.sample(frac=0.5, random_state=0)
        schema = self.data.schema
        return self._fitted(first, schema), self._fitted(train.drop(first.index), schema)

    @cached_property
    def fidelity(self) -> dict[str, float]:
        """The joint AUC on test rows, the AUC of independent changes, and both fidelities."""
        report = self.whole.diagnose(self.data.parts[1])
        return {
            "joint": report.joint,
            "independent": report.joint_independent,
            "dependence": report.fidelity,
            "distribution": report.distribution_fidelity,
        }

    @cached_property
    def noisy(self) -> Mapping[int, DEAR]:
        """The fits on samples of training rows with noise columns, by the number of rows."""
        schema, train = self.data.schema, self.data.parts[0]
        found, names, seed = {}, list(schema.names), 0
        for n in NOISE_ROWS:
            sample = train.sample(n, replace=n > len(train), random_state=seed)
            frame = with_noise(sample[names], seed=seed)
            features = Schema.infer(frame.drop(columns=names)).features
            more = Schema((*schema.features, *features), tiers=schema.tiers)
            found[n] = self._fitted(frame, more)
        return found

    def _fitted(self, frame: pd.DataFrame, schema: Schema) -> DEAR:
        names = list(self.data.act_on or self.data.schema.mutable)
        pairs = list(combinations(names, 2)) if self.pairs else []
        schema = schema if self.tiers else replace(schema, tiers=())
        return DEAR(reject_all, schema, act_on=[*names, *pairs]).fit(frame)


@lru_cache(maxsize=2)
def fits_of(data: DataSplit, pairs: bool = False, tiers: bool = True) -> Fits:
    """The fits of a data split, see `Fits`."""
    return Fits(data, pairs, tiers)


@lru_cache(maxsize=2)
def scored(data: DataSplit, model: ScoredModel, pairs: bool = False) -> tuple[DEAR, DEAR, DEAR]:
    """The fits on all training rows and on each half, with a model."""
    fits = fits_of(data, pairs)
    whole, first, second = (d.with_model(model.model) for d in (fits.whole, *fits.halves))
    return whole, first, second


@lru_cache(maxsize=1)
def baseline(data: DataSplit, model: ScoredModel, name: str) -> RecourseMethod:
    """A fitted method of `BASELINES`."""
    shared = {"vae": vae_of(data)} if name in LATENT else {}
    return BASELINES[name](model.model, data.schema, **shared).fit(data.parts[0])


@lru_cache(maxsize=1)
def vae_of(data: DataSplit) -> rivals.Vae:
    """The VAE that REVISE, C-CHVAE and CLUE share."""
    return rivals.Vae.fit(data.parts[0], data.schema, rivals.VaeDesign())


def reject_all(frame: pd.DataFrame) -> Floats:
    """A model that rejects all rows; fits do not use the model."""
    return np.full(len(frame), 0.25)


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
