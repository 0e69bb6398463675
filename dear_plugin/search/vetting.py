"""Vetting: chooses the cheapest successful action of each row that meets all criteria.

Candidates are examined in order of cost. The first that meets all criteria is chosen; where none
does, the one with the best score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.candidates import CandidateGrids
from dear_plugin.search.credibility import Actions, Evidence, reliance
from dear_plugin.search.criteria import Criterion, criteria, missing, scored
from dear_plugin.search.problem import Search, SearchProblem

# Candidates of a row that are examined in each round; the last number holds for later rounds.
ROUND_SIZES = (1, 1, 2, 4, 8, 16)


@dataclass(frozen=True)
class RankedCandidates:
    """m successful actions, ordered by row and price.

    Attributes:
        rows: (m,) ascending, the row.
        sets: (m,) the set acted on.
        values: (m, w) the new values of its features.
        price: (m,) the cost by which candidates are compared: discounted by
            `Search.prefer_alone` where no indirect change is needed.
        margin: (m,) the goal's margin.
    """

    rows: Tensor
    sets: Tensor
    values: Tensor
    price: Tensor
    margin: Tensor

    @classmethod
    def of(
        cls,
        problem: SearchProblem,
        actions: Iterable[tuple[Tensor, Tensor, Tensor]],
        search: Search,
    ) -> RankedCandidates:
        """Evaluate actions, rows (q,), sets (q,), values (q, c, w), and keep the successes."""
        w = problem.sets.positions.shape[1]
        empty = torch.empty(0)
        parts = [(empty.long(), empty.long(), torch.empty(0, w), empty, empty)]
        for rows, sets, values in actions:
            if not len(rows):
                continue
            evaluation = problem.evaluate(rows, sets, values, search.slack)
            at, place = evaluation.valid.nonzero(as_tuple=True)
            wide = values[at, place].expand(-1, w)
            cost, margin = evaluation.cost[at, place], evaluation.margin[at, place]
            parts.append((rows[at], sets[at], wide, cost, margin))
        rows, sets, values, price, margin = map(torch.cat, zip(*parts, strict=True))
        if search.prefer_alone and len(rows):
            alone = reliance(problem, Actions.of(problem, rows, sets, values)) == 0.0
            price = torch.where(alone, price / (1.0 + search.prefer_alone), price)
        order = torch.from_numpy(np.lexsort((price.numpy(), rows.numpy())))
        return cls(*(each[order] for each in (rows, sets, values, price, margin)))

    def part(self, at: Tensor) -> RankedCandidates:
        """The candidates at positions (q,), ascending."""
        return RankedCandidates(*(each[at] for each in vars(self).values()))

    def actions(self, problem: SearchProblem, at: Tensor) -> Actions:
        """The candidates at positions (q,), decoded."""
        return Actions.of(problem, self.rows[at], self.sets[at], self.values[at])


@dataclass(frozen=True)
class Choice:
    """The chosen action of each row.

    Attributes:
        sets: (n,) the set, -1 without a success.
        values: (n, w) the new values of its features.
        price: (n,) as in `RankedCandidates`.
        score: (n,) double, the number of criteria met, in their order, plus 1 minus what is
            missing of the next one; infinite where all are met.
    """

    sets: Tensor
    values: Tensor
    price: Tensor
    score: Tensor

    @classmethod
    def none(cls, problem: SearchProblem) -> Choice:
        """No action chosen for any row."""
        n, w = len(problem), problem.sets.positions.shape[1]
        price, score = torch.full((n,), torch.inf), torch.full((n,), -1.0, dtype=torch.float64)
        return cls(torch.full((n,), -1), torch.zeros(n, w), price, score)

    @property
    def passed(self) -> Tensor:
        """(n,) bool: rows whose choice meets all criteria."""
        return self.score == torch.inf

    def update(self, candidates: RankedCandidates, score: Tensor) -> None:
        """Choose candidates of a higher score, or that meet all criteria at a lower price.

        Args:
            candidates: m candidates; of equal ones, the first is chosen.
            score: (m,) their scores.
        """
        rows, price = candidates.rows, candidates.price
        top = self.score.scatter_reduce(0, rows, score, "amax")[rows]
        cheaper = (score == torch.inf) & (price < self.price[rows])
        better = ((score == top) & ((score > self.score[rows]) | cheaper)).nonzero()[:, 0]
        at = better[_first_per_row(rows[better], 1)]
        chosen = rows[at]
        self.score[chosen], self.price[chosen] = score[at], price[at]
        self.sets[chosen], self.values[chosen] = candidates.sets[at], candidates.values[at]


def choose(
    problem: SearchProblem,
    grids: CandidateGrids,
    known: Sequence[tuple[Tensor, Tensor, Tensor]],
    search: Search,
    evidence: Evidence,
) -> tuple[Choice, list[str]]:
    """Choose an action for each row.

    Args:
        problem: the search problem.
        grids: candidates for rows without a known action that meets all criteria.
        known: successful actions, as in `RankedCandidates.of`.
        search: the required values of the criteria.
        evidence: what answers are compared with.

    Returns:
        The choice, and (n,) text on the criteria that it does not meet.
    """
    wanted, choice = list(criteria(problem, search, evidence).values()), Choice.none(problem)
    candidates = RankedCandidates.of(problem, known, search)
    vet(problem, candidates, wanted, choice)
    open_rows = torch.zeros(len(problem), dtype=torch.bool).index_fill(0, candidates.rows, True)
    open_rows &= ~choice.passed
    if bool(open_rows.any()):
        rest = replace(problem, actionable=problem.actionable & open_rows[:, None])
        more = RankedCandidates.of(rest, grids.all_candidates(rest), search)
        vet(problem, more, wanted, choice)
        numeric = grids.numeric[choice.sets] & (choice.sets >= 0)
        rows = (open_rows & choice.passed & numeric).nonzero()[:, 0]
        tighten(problem, rows, wanted, choice, search)
    return choice, missing_text(problem, choice, criteria(problem, search, evidence, whole=True))


def vet(
    problem: SearchProblem,
    candidates: RankedCandidates,
    wanted: Sequence[Criterion],
    choice: Choice,
) -> None:
    """Choose for each row the first candidate that meets all criteria, else the best score.

    Where an examined candidate needs a larger margin, candidates of the same set with less margin
    are examined last.

    Args:
        problem: the search problem.
        candidates: ordered by row and price.
        wanted: the criteria.
        choice: the choice so far, updated in place; rows that meet all criteria are skipped.
    """
    n, s = len(problem), len(problem.sets)
    pair = candidates.rows * s + candidates.sets
    need = torch.full((n * s,), -torch.inf)
    untested = ~choice.passed[candidates.rows]
    rounds = 0
    while bool(untested.any()):
        ready = untested & (candidates.margin >= need[pair])
        waiting = torch.ones(n, dtype=torch.bool).index_fill(0, candidates.rows[ready], False)
        at = (ready | (untested & waiting[candidates.rows])).nonzero()[:, 0]
        size = ROUND_SIZES[min(rounds, len(ROUND_SIZES) - 1)]
        at = at[_first_per_row(candidates.rows[at], size)]
        score, shortfall = scored(candidates.actions(problem, at), wanted)
        choice.update(candidates.part(at), score)
        need.scatter_reduce_(0, pair[at], candidates.margin[at] + shortfall, "amax")
        untested[at] = False
        untested &= ~choice.passed[candidates.rows]
        rounds += 1


def tighten(
    problem: SearchProblem,
    rows: Tensor,
    wanted: Sequence[Criterion],
    choice: Choice,
    search: Search,
) -> None:
    """Bisect choices towards the factual while they meet all criteria.

    Args:
        problem: the search problem.
        rows: (q,) ascending, rows whose choice acts on one number.
        wanted: the criteria.
        choice: the choice so far, updated in place.
        search: `refine` is the number of bisections.
    """
    if not len(rows):
        return
    feature = problem.sets.positions[choice.sets[rows], 0]
    low, high = problem.x[rows, feature], choice.values[rows, 0]
    for _ in range(search.refine):
        middle = problem.feasible.snap(((low + high) / 2.0)[:, None], feature, rows)
        trial = [(rows, choice.sets[rows], middle[..., None])]
        candidates = RankedCandidates.of(problem, trial, search)
        met = torch.zeros(len(problem), dtype=torch.bool)
        if len(candidates.rows):
            every = torch.arange(len(candidates.rows))
            score, _ = scored(candidates.actions(problem, every), wanted)
            choice.update(candidates, score)
            met[candidates.rows[score == torch.inf]] = True
        low = torch.where(met[rows], low, middle[:, 0])
        high = torch.where(met[rows], middle[:, 0], high)


def _first_per_row(rows: Tensor, count: int) -> Tensor:
    """(q,) the positions of the first `count` entries of each row, of rows (m,) ascending."""
    start = torch.searchsorted(rows, rows)
    return (torch.arange(len(rows)) - start < count).nonzero()[:, 0]


def missing_text(
    problem: SearchProblem, choice: Choice, wanted: Mapping[str, Criterion]
) -> list[str]:
    """(n,) text on the criteria that choices do not meet; "" where they meet all.

    Args:
        problem: the search problem.
        choice: the choice.
        wanted: whole criteria, see `criteria`.
    """
    out = [""] * len(problem)
    rows = (~choice.passed & (choice.sets >= 0)).nonzero()[:, 0]
    if not len(rows):
        return out
    actions = Actions.of(problem, rows, choice.sets[rows], choice.values[rows])
    for row, text in zip(rows.tolist(), missing(actions, wanted), strict=True):
        out[row] = text
    return out
