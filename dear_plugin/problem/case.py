"""Case: the rows of a call, or of a part of it, with their targets and feasible sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from dear_plugin.problem.admissible import Admissible
from dear_plugin.problem.limits import selected
from dear_plugin.problem.target import Goal


class Requirement(ABC):
    """What counterfactuals of n rows must meet besides the target.

    It may be expensive to evaluate: a method evaluates it for candidates that would be chosen.
    """

    @abstractmethod
    def met(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) bool, whether counterfactuals, (m, p), of the rows at positions (m,) meet it."""

    @abstractmethod
    def mask(self, reached: Tensor) -> Tensor:
        """(n, r) bool, for which of the n rows each of r counterfactuals, (r, p), meets it."""

    @abstractmethod
    def select(self, idx: Tensor) -> Self:
        """The requirement of the rows at positions (q,)."""


@dataclass(frozen=True)
class Case:
    """m rows that a recourse method solves.

    Attributes:
        x: (m, p) the factual rows.
        goal: the targets of the rows.
        feasible: what is admissible of the rows.
        aim: (m,) the margin that the counterfactual of each row must have.
        requirement: what counterfactuals must meet besides the target; None for nothing. A method
            that has several candidates of a row proposes one that meets it.

    Example:
        A method sees its rows as a case:

        >>> from dear_plugin import Schema
        >>> from dear_plugin.rivals import NearestAccepted
        >>> from dear_plugin.datasets import load_loan
        >>> class Counting(NearestAccepted):
        ...     def _propose(self, case):
        ...         print(len(case), "of the rows are not accepted yet")
        ...         return super()._propose(case)
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> method = Counting(lambda rows: rows["savings"] / 60, schema).fit(frame)
        >>> result = method.generate(frame.head(5))
        3 of the rows are not accepted yet
    """

    x: Tensor
    goal: Goal
    feasible: Admissible
    aim: Tensor
    requirement: Requirement | None = None

    def __len__(self) -> int:
        """The number of rows (m)."""
        return len(self.x)

    def reaches(self, scores: Tensor, idx: Tensor) -> Tensor:
        """(q,) bool, whether scores, (q, c), of the rows at positions (q,) have the aim."""
        return self.goal.margin(scores, idx) >= self.aim[idx]

    def select(self, idx: Tensor) -> Case:
        """The case of the rows at positions (q,)."""
        return selected(self, idx)
