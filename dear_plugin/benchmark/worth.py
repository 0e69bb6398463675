"""Worth: what every answer of one method is worth, one line per person, by all rulers."""

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

from dear_plugin.benchmark.grounds import Ground, Judge
from dear_plugin.benchmark.rulers import (
    Neighbourhood,
    Pairs,
    alone,
    invalidated,
    noise_told,
    reliance,
    replicated,
    still_accepted,
    with_noise,
)
from dear_plugin.benchmark.rulers.decision import Floats, solved, where
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Decoder, Transport
from dear_plugin.evaluation import fidelity
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

NOISE_ROWS = (1_000, 30_000)
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
Make = Callable[[Ground], Decoder]


@dataclass(frozen=True)
class Learner:
    """What is learned of training rows; several lines may share it.

    Attributes:
        decoder: for a ground, not yet fitted.
        pairs: whether pairs of features may be acted on from the start.
        trained: whether the decoder is trained by descent, which takes its time.
    """

    decoder: Make
    pairs: bool = False
    trained: bool = False


@dataclass(frozen=True)
class Line:
    """A way of using DEAR.

    Attributes:
        learner: what is learned.
        search: how to search.
        noise: whether it is measured what is told of noise.
    """

    learner: Learner
    search: Search
    noise: bool = True

    @property
    def trained(self) -> bool:
        """Whether its decoder is trained by descent."""
        return self.learner.trained


def _paper(ground: Ground) -> Decoder:
    layers = PAPER_LAYERS.get(ground.setting.weights.partition("-")[0], PAPER_LAYERS["adult"])
    return Autoencoder.paper(layers, seed=ground.split)


_TRANSPORT = Learner(lambda _: Transport())
LINES: Mapping[str, Line] = {
    "default": Line(_TRANSPORT, Search()),
    "max_reliance=0": Line(_TRANSPORT, Search(max_reliance=0.0), noise=False),
    "cheapest": Line(_TRANSPORT, Search.cheapest()),
    "pairs": Line(Learner(lambda _: Transport(), pairs=True), Search(), noise=False),
    "autoencoder": Line(
        Learner(lambda ground: Autoencoder(seed=ground.split), trained=True), Search.cheapest()
    ),
    "paper": Line(Learner(_paper, trained=True), Search.cheapest(solver="gradient", groups=False)),
}


@dataclass(frozen=True)
class Fits:
    """What is learned on a ground; models of several judges are asked with it.

    Attributes:
        ground: the data.
        learner: what is learned.
    """

    ground: Ground
    learner: Learner

    @cached_property
    def whole(self) -> DEAR:
        """Fitted on all training rows."""
        return self._fitted(self.ground.parts[0], self.ground.schema)

    @cached_property
    def halves(self) -> tuple[DEAR, DEAR]:
        """Fitted on either half of the training rows, parted at random."""
        train = self.ground.parts[0]
        first = train.sample(frac=0.5, random_state=self.ground.split)
        schema = self.ground.schema
        return self._fitted(first, schema), self._fitted(train.drop(first.index), schema)

    @cached_property
    def joint(self) -> tuple[float, float]:
        """The joint AUC on test rows, and that of the same people moved independently."""
        dear, rows = self.whole, self.ground.encoder.rows(self.ground.parts[1])
        sample = fidelity.draw(dear.decoder, dear.encoder, dear.sets, rows)
        return fidelity.joint(sample), fidelity.joint(sample, independent=True)

    @cached_property
    def noisy(self) -> Mapping[int, DEAR]:
        """Fitted on so many training rows with independent features besides."""
        return {n: self._noisy(n) for n in NOISE_ROWS}

    def _noisy(self, n: int) -> DEAR:
        schema, train = self.ground.schema, self.ground.parts[0]
        some = train.sample(n, replace=n > len(train), random_state=self.ground.split)
        frame = with_noise(some[list(schema.names)], seed=self.ground.split)
        features = Schema.infer(frame.drop(columns=list(schema.names))).features
        return self._fitted(frame, Schema((*schema.features, *features)))

    def _fitted(self, frame: pd.DataFrame, schema: Schema) -> DEAR:
        names = list(self.ground.act_on or self.ground.schema.mutable)
        pairs = list(combinations(names, 2)) if self.learner.pairs else []
        decoder = self.learner.decoder(self.ground)
        return DEAR(_refusing, schema, act_on=[*names, *pairs], decoder=decoder).fit(frame)


def asking(dear: DEAR, judge: Judge, search: Search) -> DEAR:
    """A fit that asks a judge's model; black boxes have no gradient to search along."""
    asked = dear.with_model(judge.model)
    if search.solver == "gradient" and not asked.classifier.is_module:
        search = replace(search, solver="line")
    return asked.with_search(search)


def _refusing(frame: pd.DataFrame) -> Floats:
    """A model that accepts nobody: it stands in where none is asked."""
    return np.full(len(frame), 0.25)


@dataclass(frozen=True)
class Crowd:
    """Who stands around the answers on a ground.

    Attributes:
        everybody: all training rows.
        accepted: those that the judge accepts.
        pairs: the pairs of values that training rows have.
    """

    everybody: Neighbourhood
    accepted: Neighbourhood
    pairs: Pairs

    @classmethod
    def of(cls, ground: Ground, judge: Judge) -> Crowd:
        """The crowd of a judge."""
        encoder, train = ground.encoder, ground.parts[0]
        rows = encoder.rows(train)
        accepted = rows[torch.from_numpy(judge.accepts(train))]
        return cls(
            Neighbourhood(encoder, rows), Neighbourhood(encoder, accepted), Pairs(encoder, rows)
        )

    def around(self, rows: Tensor) -> dict[str, Floats]:
        """What is said of rows, (m, p): outliers, distances, and whether a pair is unseen."""
        return {
            "outlier": self.everybody.outliers(rows).astype(float),
            "outlier_accepted": self.accepted.outliers(rows).astype(float),
            "distance": self.everybody.distance(rows),
            "unseen": (self.pairs.unseen(rows) > 0).astype(float),
        }


def people(
    fits: Fits, search: Search, judge: Judge, crowd: Crowd, rows: int, *, noise: bool
) -> pd.DataFrame:
    """One line per refused person: the answer and what it is worth; NaN where there is none.

    Args:
        fits: what was learned.
        search: how to search.
        judge: who decides.
        crowd: who stands around.
        rows: how many refused people, at most.
        noise: whether noise is looked for as well.
    """
    refused = judge.refused.iloc[:rows]
    answers = asking(fits.whole, judge, search).generate(refused)
    first, second = (asking(half, judge, search) for half in fits.halves)
    promised = first.generate(refused)
    again = replicated(promised, second)
    counts_on = alone(promised, judge.accepts) == 0.0
    measured = {
        "replicated": again,
        "replicated_indirect": np.where(counts_on, again, np.nan),
        "promised_confidence": where(solved(promised), promised.actions["confidence"]),
        "promised_credible": where(solved(promised), promised.actions["credible"]),
        "alone": alone(answers, judge.accepts),
        "reliance": reliance(answers, judge.accepts),
        "still_accepted": still_accepted(answers, judge.again),
        "invalidated": invalidated(answers, first.classifier),
        **_around(answers, crowd),
    }
    if noise:
        measured |= {f"noise_{n}": _noise(dear, answers) for n, dear in fits.noisy.items()}
    kept = answers.actions[list(KEPT)]
    return kept.assign(**measured).rename_axis(index="row").reset_index()


def real(ground: Ground, judge: Judge, crowd: Crowd, rows: int) -> pd.DataFrame:
    """What the crowd says of held-out rows of real people, and of those whom the judge accepts."""
    test = ground.parts[1].sample(frac=1.0, random_state=ground.split)
    accepted = judge.accepts(test)
    some, fine = test.iloc[:rows], test[accepted].iloc[:rows]
    found = [crowd.around(ground.encoder.rows(part)) for part in (some, fine)]
    tables = [pd.DataFrame(columns) for columns in found]
    return pd.concat([tables[0].assign(who="anybody"), tables[1].assign(who="accepted")])


def _around(answers: Recourses, crowd: Crowd) -> dict[str, Floats]:
    """The crowd around answers and around the same people before."""
    fine = solved(answers)
    after, before = crowd.around(answers.proposal.rows), crowd.around(answers.x)
    measured: dict[str, Any] = {name: where(fine, column) for name, column in after.items()}
    measured |= {f"{name}_before": where(fine, column) for name, column in before.items()}
    return measured


def _noise(dear: DEAR, answers: Recourses) -> Floats:
    """(n,) who is told of noise when a method that was fitted with it is asked what follows."""
    acted = answers.actions["acted_on"]
    # Pairs would all have to be learned with noise for the few who need one.
    single = (solved(answers) & acted.isin(dear.sets.labels)).to_numpy()
    found = np.full(len(single), np.nan)
    if single.any():
        asked = with_noise(answers.factuals[single], seed=1)
        found[single] = noise_told(dear.apply(asked, answers.direct[single]))
    return found
