"""Answer metrics: the metrics of every answer of one configuration, one row per rejected row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.benchmark.data_splits import DataSplit, ScoredModel
from dear_plugin.benchmark.metrics import (
    Neighbourhood,
    Pairs,
    alone,
    invalidated,
    noise_reported,
    reliance,
    replicated,
    still_accepted,
    with_noise,
)
from dear_plugin.benchmark.metrics.decision import Floats, solved, where
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Decoder, Training, Transport
from dear_plugin.evaluation import fidelity
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

NOISE_ROWS = (1_000, 30_000)
# The column of `real.csv` with the group of a row, and its values: a format of stored runs.
GROUP, ALL, ACCEPTED = "who", "anybody", "accepted"
KEPT = (
    "success",
    "acted_on",
    "direct_cost",
    "indirect_cost",
    "cost",
    "confidence",
    "plausibility",
    "credible",
)
MakeDecoder = Callable[[DataSplit], Decoder]


@dataclass(frozen=True)
class DecoderSpec:
    """A decoder and the action sets it is fitted on; several configurations may share it.

    Attributes:
        decoder: the decoder of a data split, not yet fitted.
        pairs: whether pairs of features are action sets from the start.
        trained: whether the decoder is trained by gradient descent, which is slow.
        tiers: whether the data set's own protocol has its tiers.
    """

    decoder: MakeDecoder
    pairs: bool = False
    trained: bool = False
    tiers: bool = True


@dataclass(frozen=True)
class Configuration:
    """A configuration of DEAR.

    Attributes:
        spec: the decoder.
        search: the search settings.
        noise: whether reported noise is measured.
    """

    spec: DecoderSpec
    search: Search
    noise: bool = True

    @property
    def trained(self) -> bool:
        """Whether its decoder is trained by gradient descent."""
        return self.spec.trained


def _paper(data: DataSplit) -> Decoder:
    layers = PAPER_LAYERS.get(data.setting.weights.partition("-")[0], PAPER_LAYERS["adult"])
    # The training of 0.1.0: each split fits the networks and their redraws many times.
    return Autoencoder(Autoencoder.paper(layers).design, Training(), data.split)


_TRANSPORT = DecoderSpec(lambda _: Transport())
DEFAULT, WITHOUT_TIERS = "default", "without tiers"
CONFIGURATIONS: Mapping[str, Configuration] = {
    DEFAULT: Configuration(_TRANSPORT, Search()),
    WITHOUT_TIERS: Configuration(
        DecoderSpec(lambda _: Transport(), tiers=False), Search(), noise=False
    ),
    "max_reliance=0": Configuration(_TRANSPORT, Search(max_reliance=0.0), noise=False),
    "cheapest": Configuration(_TRANSPORT, Search.cheapest()),
    "pairs": Configuration(DecoderSpec(lambda _: Transport(), pairs=True), Search(), noise=False),
    "autoencoder": Configuration(
        DecoderSpec(lambda data: Autoencoder(seed=data.split), trained=True), Search.cheapest()
    ),
    "paper": Configuration(DecoderSpec(_paper, trained=True), Search.cheapest(max_features=1)),
}


@dataclass(frozen=True)
class Fits:
    """The fits of a decoder on a data split; independent of the scored model.

    Attributes:
        data: the data split.
        spec: the decoder.
    """

    data: DataSplit
    spec: DecoderSpec

    @cached_property
    def whole(self) -> DEAR:
        """Fitted on all training rows."""
        return self._fitted(self.data.parts[0], self.data.schema)

    @cached_property
    def halves(self) -> tuple[DEAR, DEAR]:
        """Fitted on each half of the training rows, split at random."""
        train = self.data.parts[0]
        first = train.sample(frac=0.5, random_state=self.data.split)
        schema = self.data.schema
        return self._fitted(first, schema), self._fitted(train.drop(first.index), schema)

    @cached_property
    def joint(self) -> tuple[float, float]:
        """The joint AUC on test rows, and that of independent changes of the same rows."""
        dear, rows = self.whole, self.data.encoder.rows(self.data.parts[1])
        sample = fidelity.draw(dear.decoders, dear.encoder, dear.sets, rows)
        return fidelity.joint(sample), fidelity.joint(sample, independent=True)

    @cached_property
    def noisy(self) -> Mapping[int, DEAR]:
        """Fits on samples of training rows with independent features added, by their number."""
        return {n: self._noisy(n) for n in NOISE_ROWS}

    def _noisy(self, n: int) -> DEAR:
        schema, train = self.data.schema, self.data.parts[0]
        sample = train.sample(n, replace=n > len(train), random_state=self.data.split)
        frame = with_noise(sample[list(schema.names)], seed=self.data.split)
        features = Schema.infer(frame.drop(columns=list(schema.names))).features
        return self._fitted(frame, Schema((*schema.features, *features), tiers=schema.tiers))

    def _fitted(self, frame: pd.DataFrame, schema: Schema) -> DEAR:
        names = list(self.data.act_on or self.data.schema.mutable)
        pairs = list(combinations(names, 2)) if self.spec.pairs else []
        decoder = self.spec.decoder(self.data)
        schema = schema if self.spec.tiers else replace(schema, tiers=())
        return DEAR(_reject_all, schema, act_on=[*names, *pairs], decoder=decoder).fit(frame)


def with_model(dear: DEAR, model: ScoredModel, search: Search) -> DEAR:
    """A fit with another model and search; black boxes, which have no gradient, by line search."""
    other = dear.with_model(model.model)
    if search.solver != "line" and not other.classifier.is_module:
        search = replace(search, solver="line")
    return other.with_search(search)


def _reject_all(frame: pd.DataFrame) -> Floats:
    """A model that rejects all rows, for fits, which do not use the model."""
    return np.full(len(frame), 0.25)


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

    @classmethod
    def of(cls, data: DataSplit, model: ScoredModel) -> ReferenceRows:
        """The reference rows of a data split and a model."""
        encoder, train = data.encoder, data.parts[0]
        rows = encoder.rows(train)
        accepted = rows[torch.from_numpy(model.accepts(train))]
        return cls(
            Neighbourhood(encoder, rows), Neighbourhood(encoder, accepted), Pairs(encoder, rows)
        )

    def measure(self, rows: Tensor) -> dict[str, Floats]:
        """Of rows, (m, p): outliers, distances, and whether a pair is unseen; (m,) each."""
        return {
            "outlier": self.all_rows.outliers(rows).astype(float),
            "outlier_accepted": self.accepted.outliers(rows).astype(float),
            "distance": self.all_rows.distance(rows),
            "unseen": (self.pairs.unseen(rows) > 0).astype(float),
        }


def answer_rows(
    fits: Fits,
    search: Search,
    model: ScoredModel,
    reference: ReferenceRows,
    rows: int,
    *,
    noise: bool,
) -> pd.DataFrame:
    """One row per rejected row: the answer and its metrics; NaN without an answer.

    Args:
        fits: of the decoder.
        search: the search settings.
        model: the model.
        reference: the reference rows.
        rows: the largest number of rejected rows.
        noise: whether to measure reported noise.
    """
    refused = model.refused.iloc[:rows]
    answers = with_model(fits.whole, model, search).generate(refused)
    first, second = (with_model(half, model, search) for half in fits.halves)
    of_half = first.generate(refused)
    succeeds = replicated(of_half, second)
    needs_indirect = alone(of_half, model.accepts) == 0.0
    measured = {
        "replicated": succeeds,
        "replicated_indirect": np.where(needs_indirect, succeeds, np.nan),
        "promised_confidence": where(solved(of_half), of_half.actions["confidence"]),
        "promised_credible": where(solved(of_half), of_half.actions["credible"]),
        "alone": alone(answers, model.accepts),
        "reliance": reliance(answers, model.accepts),
        "still_accepted": still_accepted(answers, model.retrained),
        "invalidated": invalidated(answers, first.classifier),
        **_reference_metrics(answers, reference),
    }
    if noise:
        measured |= {f"noise_{n}": _noise(dear, answers) for n, dear in fits.noisy.items()}
    kept = answers.actions[list(KEPT)]
    return kept.assign(**measured).rename_axis(index="row").reset_index()


def real_rows(
    data: DataSplit, model: ScoredModel, reference: ReferenceRows, rows: int
) -> pd.DataFrame:
    """The metrics of held-out rows, and of those that the model accepts, in column `GROUP`."""
    test = data.parts[1].sample(frac=1.0, random_state=data.split)
    groups = {ALL: test.iloc[:rows], ACCEPTED: test[model.accepts(test)].iloc[:rows]}
    tables = [
        pd.DataFrame(reference.measure(data.encoder.rows(part))).assign(**{GROUP: name})
        for name, part in groups.items()
    ]
    return pd.concat(tables)


def _reference_metrics(answers: Recourses, reference: ReferenceRows) -> dict[str, Floats]:
    """The reference metrics of counterfactuals and, with suffix `_before`, of factuals."""
    mask = solved(answers)
    after, before = reference.measure(answers.proposal.rows), reference.measure(answers.x)
    measured: dict[str, Any] = {name: where(mask, column) for name, column in after.items()}
    measured |= {f"{name}_before": where(mask, column) for name, column in before.items()}
    return measured


def _noise(dear: DEAR, answers: Recourses) -> Floats:
    """(n,) 1 where a method that was fitted with noise reports a change of it, else 0."""
    acted = answers.actions["acted_on"]
    # Answers on pairs are left out: the decoder would have to be fitted on all pairs.
    single = (solved(answers) & acted.isin(dear.sets.labels)).to_numpy()
    found = np.full(len(single), np.nan)
    if single.any():
        noisy = with_noise(answers.factuals[single], seed=1)
        found[single] = noise_reported(dear.apply(noisy, answers.direct[single]))
    return found
