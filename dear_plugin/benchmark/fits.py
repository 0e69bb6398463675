"""Fits of DEAR and of baselines on a data split; the last fits are cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
import pandas as pd

from dear_plugin import rivals
from dear_plugin.benchmark.metrics import Floats, with_noise
from dear_plugin.benchmark.splits import DataSplit, ScoredModel
from dear_plugin.data.schema import Schema
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR

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
