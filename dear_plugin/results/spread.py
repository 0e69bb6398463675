"""Spread: records of confidence of answers under resamples, and of ranges of their changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.results.proposal import Batch

# Resamples, of half of the rows, differ from an estimate sqrt(2) times as much as the truth does:
# 95 % of the truths are between these quantiles of means; and 95 % of the people between those.
OF_MEANS, OF_PEOPLE = 0.166, 0.025

Amounts = Callable[..., Tensor]


@dataclass(frozen=True)
class Spread(Batch):
    """What m answers do under resamples of the decoder, none of which a search has seen.

    Attributes:
        confidence: (m,) double, the share of resamples under which an answer succeeds.
        reliance: (m,) double, the least share of the indirect change from which on it succeeds.
        alone: (m,) bool, whether the model accepts the action alone, with what it forces.
        gain: (m,) double, 1 where the action itself helps, see `Shares`.
        least: (m, p) the row with the share of the indirect change that is the reliance.
        moved: (m, p) int64, the number of resamples in which a feature changes.
        count: the number of resamples; 0 without any.
    """

    confidence: Tensor
    reliance: Tensor
    alone: Tensor
    gain: Tensor
    least: Tensor
    moved: Tensor
    count: int

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, resampled: Tensor) -> Spread:
        """The spread of answers over r resamples.

        Confidence is 1 and reliance 0 here, as where all changes are direct.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, r, p) the counterfactuals under the resamples.
        """
        moved, one = (resampled != x[:, None]).sum(1), torch.ones(len(x), dtype=torch.float64)
        none, alone = torch.zeros_like(one), torch.ones(len(x), dtype=torch.bool)
        return cls(one, none, alone, one, rows, moved, resampled.shape[1])


@dataclass(frozen=True)
class Ranges(Batch):
    """Between which ends numbers change in m answers, in user units; 0 for categories.

    The change in the answer itself is in both ranges. Without resamples it is both of their ends.

    Attributes:
        low: (m, p) of the mean change of people like this row, which 95 % of such ranges contain.
        high: (m, p) likewise.
        low_one: (m, p) of one person's change, which 95 % of such ranges contain.
        high_one: (m, p) likewise.
    """

    low: Tensor
    high: Tensor
    low_one: Tensor
    high_one: Tensor

    @classmethod
    def of(
        cls, x: Tensor, rows: Tensor, resampled: Tensor, amounts: Amounts, expected: Tensor
    ) -> Ranges:
        """The ranges of answers over r resamples of q people each.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, q, r, p) the counterfactuals under the resamples.
            amounts: says which cells are amounts in all of some rows.
            expected: (m, e, p) the counterfactuals of e people in the sample itself.
        """
        own = _steps(x, rows[:, None, None], amounts)[0][:, 0, 0]
        if not resampled.numel():
            return cls(own, own, own, own)
        one = ends(_steps(x, resampled, amounts)[0].flatten(1, 2), OF_PEOPLE)
        means, middle = (_mean(x, each, amounts) for each in (resampled, expected[:, :, None]))
        both = around(means, middle[:, 0]), one
        found = ((low.minimum(own), high.maximum(own)) for low, high in both)
        return cls(*(end for pair in found for end in pair))


def around(values: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """(m, p) twice, the ends of the range of a mean that is about some middle, (m, p).

    So far from the middle as the values, (m, r, p), of resamples are, on either side: as far as
    they are biased, the middle may be (Hall 1988).
    """
    far = ends((values - middle[:, None]).abs(), OF_MEANS)[1]
    return middle - far, middle + far


def ends(values: Tensor, outer: float) -> tuple[Tensor, Tensor]:
    """(m, p) twice, between which all but an outer share of a distribution is on either side.

    Args:
        values: (m, r, p) a sample of it, of which the i-th smallest is at i / (r + 1).
        outer: the share.
    """
    ordered, last = values.sort(1).values, values.shape[1] - 1
    place = min(max(outer * (last + 2) - 1.0, 0.0), last / 2.0)
    at, part = int(place), place - int(place)
    low, high = (
        torch.lerp(each[:, at], each[:, min(at + 1, last)], part)
        for each in (ordered, ordered.flip(1))
    )
    return low, high


def _mean(x: Tensor, rows: Tensor, amounts: Amounts) -> Tensor:
    """(m, r, p) the mean changes over q people, (m, q, r, p), of those that are known."""
    steps, known = _steps(x, rows, amounts)
    return steps.sum(1) / known.sum(1).clamp_min(1)


def _steps(x: Tensor, rows: Tensor, amounts: Amounts) -> tuple[Tensor, Tensor]:
    """(m, q, r, p) the changes of numbers, 0 from or to a special value; and where not, bool."""
    here = x[:, None, None]
    known = amounts(here, rows)
    return torch.where(known, rows - here, 0.0), known
