"""Lazy answers: what a result computes on first access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.results.rows import Rows
from dear_plugin.results.spread import Spread

if TYPE_CHECKING:
    from dear_plugin.results.recourses import Recourses

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Credibility(Rows):
    """The credibility of the answers of m rows; NaN where there is none.

    Attributes:
        confidence: (m,) double, the share of redraws of the decoder under which it succeeds.
        reliance: (m,) double, the least share of the indirect change with which it succeeds.
        plausibility: (m,) double, the share of training rows at least as far from others.
        credible: (m,) bool, whether it meets the criteria of an answer.
        lacking: (m,) the criteria that it does not meet, as text; "" for none.
    """

    confidence: Floats
    reliance: Floats
    plausibility: Floats
    credible: npt.NDArray[np.bool_]
    lacking: npt.NDArray[np.object_]


class LazyAnswers(ABC):
    """The quantities of the n rows of a result that are computed on demand."""

    @property
    @abstractmethod
    def scores_are_probabilities(self) -> bool:
        """Whether `score_before` and `score_after` are probabilities of the wanted class."""

    @property
    @abstractmethod
    def deviations(self) -> Tensor:
        """(p,) the standard deviations of the training rows, without special values."""

    @abstractmethod
    def support(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) the support of rows, (m, p), at positions, (m,), of the result."""

    @abstractmethod
    def alternatives(self, k: int) -> Iterable[Recourses]:
        """Up to k results, one per rank, each over all n rows."""

    @abstractmethod
    def flip_probabilities(self, position: int) -> Mapping[str, tuple[float, float]]:
        """The probability, before and after, of binary features that do not flip, by name."""

    @abstractmethod
    def credibility(self, idx: Tensor) -> Credibility:
        """The credibility of the answers at positions, (m,)."""

    @abstractmethod
    def spread(self, idx: Tensor) -> Spread:
        """How far redraws of the decoder agree on the answers at positions, (m,)."""


@dataclass(frozen=True)
class MappedAnswers(LazyAnswers):
    """The answers of another result for m rows: some of its rows, or more rows than it has.

    Attributes:
        known: the answers of the other result.
        at: (m,) the position of each row in it; -1 for a row that it does not have.
        mapped: makes a result of these rows of one of its rows; it can be pickled.
    """

    known: LazyAnswers
    at: Tensor
    mapped: Callable[[Recourses], Recourses]

    @property
    def scores_are_probabilities(self) -> bool:
        """Those of the other result."""
        return self.known.scores_are_probabilities

    @property
    def deviations(self) -> Tensor:
        """Those of the other result."""
        return self.known.deviations

    def support(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) the support of rows; NaN for those that it does not have."""
        at, known = self._split(idx)
        out = torch.full((len(idx),), torch.nan)
        out[known] = self.known.support(reached[known], at)
        return out

    def alternatives(self, k: int) -> Iterable[Recourses]:
        """Up to k results."""
        return map(self.mapped, self.known.alternatives(k))

    def flip_probabilities(self, position: int) -> Mapping[str, tuple[float, float]]:
        """The probabilities; none for a row that it does not have."""
        at = int(self.at[position])
        return self.known.flip_probabilities(at) if at >= 0 else {}

    def credibility(self, idx: Tensor) -> Credibility:
        """The credibility; NaN and False for rows that it does not have."""
        at, known = self._split(idx)
        return self.known.credibility(at).over(len(idx), known)

    def spread(self, idx: Tensor) -> Spread:
        """The spread; NaN and 0 for rows that it does not have."""
        at, known = self._split(idx)
        return self.known.spread(at).over(len(idx), known)

    def _split(self, idx: Tensor) -> tuple[Tensor, Tensor]:
        """The positions in the other result of rows at `idx`, and which rows these are."""
        known = (self.at[idx] >= 0).nonzero()[:, 0]
        return self.at[idx[known]], known
