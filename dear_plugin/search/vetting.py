"""Vetting: of the actions that succeed, the cheapest that has what is asked of an answer.

Candidates are looked at cheapest first. One is accepted when all criteria hold; where none is, the
one that comes nearest is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dear_plugin.results.describe import LACKING, join, short_of
from dear_plugin.search.candidates import CandidateGrids
from dear_plugin.search.credibility import Actions, Evidence, reliance
from dear_plugin.search.criteria import TOLERANCE, Criterion, criteria, scored
from dear_plugin.search.problem import Search, SearchProblem

# Candidates of a row that are looked at in each round; in all later ones as many as in the last.
AT_ONCE = (1, 1, 2, 4, 8, 16)


@dataclass(frozen=True)
class RankedCandidates:
    """m successful actions, those of a row side by side and cheapest first.

    Attributes:
        rows: (m,) ascending, who acts.
        sets: (m,) on which set.
        values: (m, w) the new values of its features.
        price: (m,) the cost; less where nothing has to follow, as far as that is preferred.
        margin: (m,) the target's margin.
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
        """Evaluate actions, rows (q,), sets (q,), values (q, c, w); keep what succeeds."""
        w = problem.sets.positions.shape[1]
        none = torch.empty(0)
        parts = [(none.long(), none.long(), torch.empty(0, w), none, none)]
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
        """Some of them, (q,) ascending."""
        return RankedCandidates(*(each[at] for each in vars(self).values()))

    def actions(self, problem: SearchProblem, at: Tensor) -> Actions:
        """Some of them, (q,), decoded."""
        return Actions.of(problem, self.rows[at], self.sets[at], self.values[at])


@dataclass(frozen=True)
class Choice:
    """One action per row.

    Attributes:
        sets: (n,) the set, -1 where nothing succeeded.
        values: (n, w) its features' new values.
        price: (n,) as in `RankedCandidates`.
        score: (n,) double, how many criteria hold, in their order, and how much the answer has of
            the next one; infinite where all hold.
    """

    sets: Tensor
    values: Tensor
    price: Tensor
    score: Tensor

    @classmethod
    def none(cls, problem: SearchProblem) -> Choice:
        """Nothing chosen yet."""
        n, w = len(problem), problem.sets.positions.shape[1]
        price, score = torch.full((n,), torch.inf), torch.full((n,), -1.0, dtype=torch.float64)
        return cls(torch.full((n,), -1), torch.zeros(n, w), price, score)

    @property
    def passed(self) -> Tensor:
        """(n,) bool: rows whose answer has all that is asked."""
        return self.score == torch.inf

    def update(self, candidates: RankedCandidates, score: Tensor) -> None:
        """Choose what has more than what was chosen, or has all for less; of equals the first.

        Args:
            candidates: m of them, cheapest first.
            score: (m,) what they have.
        """
        rows, price = candidates.rows, candidates.price
        top = self.score.scatter_reduce(0, rows, score, "amax")[rows]
        cheaper = (score == torch.inf) & (price < self.price[rows])
        ahead = ((score == top) & ((score > self.score[rows]) | cheaper)).nonzero()[:, 0]
        at = ahead[_leading(rows[ahead], 1)]
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
    """Choose an answer for each row, and say in words, (n,), what it lacks.

    Args:
        problem: who asks what.
        grids: the values that are tried where nothing known has all that is asked.
        known: actions that succeed, as `Candidates.of` takes them.
        search: what is asked.
        evidence: what answers are judged by.
    """
    wanted, choice = list(criteria(problem, search, evidence).values()), Choice.none(problem)
    candidates = RankedCandidates.of(problem, known, search)
    vet(problem, candidates, wanted, choice)
    lost = torch.zeros(len(problem), dtype=torch.bool).index_fill(0, candidates.rows, True)
    lost &= ~choice.passed
    if bool(lost.any()):
        rest = replace(problem, actionable=problem.actionable & lost[:, None])
        every = RankedCandidates.of(rest, grids.everything(rest), search)
        vet(problem, every, wanted, choice)
        numeric = grids.numeric[choice.sets] & (choice.sets >= 0)
        rows = (lost & choice.passed & numeric).nonzero()[:, 0]
        tighten(problem, rows, wanted, choice, search)
    return choice, lacking(problem, choice, criteria(problem, search, evidence, whole=True))


def vet(
    problem: SearchProblem,
    candidates: RankedCandidates,
    wanted: Sequence[Criterion],
    choice: Choice,
) -> None:
    """Choose for each row the first of its candidates that meets all criteria, else the nearest.

    Where a larger margin is needed, those of the same set that have less are tried last.

    Args:
        problem: who asks what.
        candidates: cheapest first.
        wanted: the criteria.
        choice: what is chosen so far; rows that have an answer that meets all are left alone.
    """
    n, s = len(problem), len(problem.sets)
    pair = candidates.rows * s + candidates.sets
    need = torch.full((n * s,), -torch.inf)
    untested = ~choice.passed[candidates.rows]
    turn = 0
    while bool(untested.any()):
        ready = untested & (candidates.margin >= need[pair])
        waiting = torch.ones(n, dtype=torch.bool).index_fill(0, candidates.rows[ready], False)
        at = (ready | (untested & waiting[candidates.rows])).nonzero()[:, 0]
        at = at[_leading(candidates.rows[at], AT_ONCE[min(turn, len(AT_ONCE) - 1)])]
        score, short = scored(candidates.actions(problem, at), wanted)
        choice.update(candidates.part(at), score)
        need.scatter_reduce_(0, pair[at], candidates.margin[at] + short, "amax")
        untested[at] = False
        untested &= ~choice.passed[candidates.rows]
        turn += 1


def tighten(
    problem: SearchProblem,
    rows: Tensor,
    wanted: Sequence[Criterion],
    choice: Choice,
    search: Search,
) -> None:
    """Draw what was chosen for some rows, (q,), back towards the factual while it meets all.

    Args:
        problem: who asks what.
        rows: ascending; their choice acts on one number.
        wanted: the criteria.
        choice: what was chosen.
        search: how often.
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
        fine = met[rows]
        low = torch.where(fine, low, middle[:, 0])
        high = torch.where(fine, middle[:, 0], high)


def _leading(rows: Tensor, count: int) -> Tensor:
    """(q,) the places of the first so many of each row, of rows (m,) ascending."""
    start = torch.searchsorted(rows, rows)
    return (torch.arange(len(rows)) - start < count).nonzero()[:, 0]


def lacking(problem: SearchProblem, choice: Choice, wanted: Mapping[str, Criterion]) -> list[str]:
    """(n,) what the answers that do not meet all criteria lack, in words; "" for the others.

    The criteria are whole ones, see `criteria`.
    """
    out = [""] * len(problem)
    rows = (~choice.passed & (choice.sets >= 0)).nonzero()[:, 0]
    if not len(rows):
        return out
    actions = Actions.of(problem, rows, choice.sets[rows], choice.values[rows])
    parts: list[list[str]] = [[] for _ in out]
    for name, criterion in wanted.items():
        verdict = criterion(actions)
        least = torch.as_tensor(verdict.least).expand(len(rows))
        for row, share, enough in zip(rows.tolist(), verdict.share, least, strict=True):
            if share < enough - TOLERANCE:
                parts[row].append(short_of(name, float(share), float(enough)))
    return [join(each) and f"{LACKING}{join(each)}" for each in parts]
