"""Lazy answers: what a result computes on first access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
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
