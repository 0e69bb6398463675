"""Measures of answers that no search optimises; they are NaN without an answer.

Indirect changes are associations in the data; see `Schema.tiers` for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.data.encoder import Encoder, patch
from dear_plugin.data.schema import Schema
from dear_plugin.methods.dear import DEAR
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.goals import Target
from dear_plugin.results.recourses import Recourses

Floats: TypeAlias = npt.NDArray[np.float64]
Truths: TypeAlias = npt.NDArray[np.bool_]
Accepts: TypeAlias = Callable[[pd.DataFrame], Truths]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# The smallest share at which a category changes.
HALF = 0.5
SIGMA, DRAWS = 0.01, 20
STREAM = 20_261_122
NOISE = ("noise age", "noise number", "noise coin", "noise kind")


def decision(model: Any, schema: Schema) -> Accepts:
    """A function that returns which rows of a frame a model assigns to class 1, (m,) bool.

    Args:
        model: a model for `DEAR`.
        schema: the features.
    """
    classifier = Classifier(model, Encoder(schema))

    def _accepts(frame: pd.DataFrame) -> Truths:
        goal = Target.of_class(1).resolve(len(frame), classifier.classes)
        accepted: Truths = goal.accepts(classifier.frame_scores(frame)).numpy()
        return accepted

    return _accepts


def solved(recourses: Recourses) -> Truths:
    """(n,) bool, rejected rows with a successful answer."""
    done: Truths = recourses.actions["success"].to_numpy(dtype=bool)
    return done & ~recourses.proposal.accepted.numpy()


def where(mask: Truths, values: npt.ArrayLike) -> Floats:
    """(n,) values where the mask is set, NaN elsewhere."""
    return np.where(mask, np.asarray(values, dtype=np.float64), np.nan)


def replicated(answers: Recourses, other: DEAR) -> Floats:
    """(n,) 1 if an answer succeeds with another fit, else 0.

    A method that was fitted on other rows applies the same actions to the same rows. The mean is
    an estimate without the optimism of the search, like a test error of a model. It is 1 without
    sampling error.

    Args:
        answers: the answers of a method that was fitted on one half of the rows.
        other: the same method, fitted on the other half, with the same model.
    """
    return where(solved(answers), other.apply(answers.factuals, answers.direct).actions["success"])


def partly(recourses: Recourses, share: float) -> pd.DataFrame:
    """The rows, (n, p), with the whole action and a share of the indirect change.

    Numbers are interpolated and rounded to their precision; categories change from 1/2 on.

    Args:
        recourses: the answers.
        share: from 0, the action alone, to 1, the counterfactual.
    """
    encoder, x, reached = recourses.encoder, recourses.x, recourses.proposal.rows
    amounts = encoder.amounts(x, reached)
    mixed = torch.where(amounts, x + share * (reached - x), reached if share >= HALF else x)
    rows = torch.where(recourses.proposal.direct, reached, encoder.rounded(mixed))
    return patch(encoder, recourses.factuals, x, rows=rows)[0]


def alone(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) 1 if the model accepts the row after the action alone, else 0.

    Its mean over answers is the share that needs no indirect change.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    return where(solved(recourses), accepts(partly(recourses, 0.0)))


def reliance(recourses: Recourses, accepts: Accepts) -> Floats:
    """(n,) the smallest share of the indirect change from which on the answer succeeds.

    It is one of 0, 1/4, 1/2, 3/4 and 1. 0 means that the answer succeeds with every share, and 1
    that it succeeds only with the whole indirect change.

    Args:
        recourses: the answers.
        accepts: the model.
    """
    accepted = np.stack([accepts(partly(recourses, share)) for share in SHARES[:-1]])
    # The number of consecutive shares below 1, in descending order, that are accepted.
    below = np.logical_and.accumulate(accepted[::-1]).sum(0)
    return where(solved(recourses), np.array(SHARES)[len(SHARES) - 1 - below])


def still_accepted(recourses: Recourses, models: Sequence[Accepts]) -> Floats:
    """(n,) the share of other models that accept each answer.

    Source: validity under model change in ROAR (Upadhyay et al. 2021).

    Args:
        recourses: the answers.
        models: the same model, retrained on bootstrap samples of its training rows.
    """
    accepted = np.stack([accepts(recourses.counterfactuals) for accepts in models])
    return where(solved(recourses), accepted.mean(0))


def invalidated(
    recourses: Recourses, classifier: Classifier, *, sigma: float = SIGMA, seed: int = 0
) -> Floats:
    """(n,) the share of noisy counterfactuals that are rejected.

    It is the recourse invalidation rate of PROBE (Pawelczyk et al. 2023) over `DRAWS` draws of
    normal noise on every scaled number of the counterfactual. The rate of an answer exactly on a
    linear boundary is 1/2.

    Args:
        recourses: the answers.
        classifier: the model.
        sigma: the standard deviation, in units of the features' observed ranges.
        seed: the seed of the draws.
    """
    rng = torch.Generator().manual_seed(seed)
    encoder, rows = recourses.encoder, recourses.proposal.rows
    noise = sigma * torch.randn(DRAWS, *rows.shape, generator=rng) * encoder.amounts(rows)
    scores = classifier.scores((rows + noise * encoder.width).flatten(0, 1))
    goal = Target.of_class(1).resolve(len(scores), classifier.classes)
    refused = ~goal.accepts(scores).view(DRAWS, len(rows))
    return where(solved(recourses), refused.double().mean(0).numpy())


def with_noise(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The frame with four more columns, independent of all others and of each other.

    The columns are whole numbers from 18 to 80, standard normal numbers with two decimals, a fair
    coin, and four categories of unequal frequency.

    Args:
        frame: n rows.
        seed: the seed of the draw.
    """
    # A separate stream: the rows may have been drawn with the same seed.
    rng, n = np.random.default_rng([STREAM, seed]), len(frame)
    age = rng.integers(18, 81, n)
    number = rng.normal(0.0, 1.0, n).round(2)
    coin = np.where(rng.random(n) < 0.5, "heads", "tails").astype(object)
    kind = rng.choice(np.array(list("ABCD"), dtype=object), n, p=[0.4, 0.3, 0.2, 0.1])
    return frame.assign(**dict(zip(NOISE, (age, number, coin, kind), strict=True)))


def noise_reported(recourses: Recourses, names: tuple[str, ...] = NOISE) -> Truths:
    """(n,) bool, whether an answer reports a change of an independent feature.

    A change is reported if the row changes, or if the text of `describe_row` names the feature.
    The ideal is False for all rows.

    Args:
        recourses: answers or what-ifs of rows with such features, none of them acted on.
        names: the independent features.
    """
    moves = recourses.changed[:, list(recourses.encoder.schema.index(names))].any(1).numpy()
    texts = recourses.describe()
    reported: Truths = moves | np.array([any(name in text for name in names) for text in texts])
    return reported
