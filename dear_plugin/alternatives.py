"""Alternatives: several recourses a row, from different sets first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dear_plugin.case import Case
from dear_plugin.moves import Moves
from dear_plugin.plan import Plan
from dear_plugin.search import Question, Search
from dear_plugin.search.grids import snapped

KINDS = ("another set", "pair of features", "larger action")
LARGER = 2.0


@dataclass(frozen=True)
class Offers:
    """c actions a row, in the order in which they are offered.

    Attributes:
        rows: (n, c, p) where they lead.
        direct: (n, c, p) bool, the features acted on.
        suppressed: (n, c) what the constraints forbade.
        rank: (n, c) kind + cost / (1 + cost), so kinds in order and cheapest first; infinite for
            failures.
    """

    rows: Tensor
    direct: Tensor
    suppressed: Tensor
    rank: Tensor

    @classmethod
    def joined(cls, parts: Sequence[Offers]) -> Offers:
        """Offers of several kinds to the same people."""
        names = ("rows", "direct", "suppressed", "rank")
        return cls(*(torch.cat([getattr(p, name) for p in parts], 1) for name in names))

    def spread(self, rows: Tensor, n: int) -> Offers:
        """Offers to some of n people as offers to all; the others are offered nothing."""
        c, p = self.rows.shape[1:]
        return Offers(
            self.rows.new_zeros(n, c, p).index_copy(0, rows, self.rows),
            self.direct.new_zeros(n, c, p).index_copy(0, rows, self.direct),
            self.suppressed.new_zeros(n, c).index_copy(0, rows, self.suppressed),
            self.rank.new_full((n, c), torch.inf).index_copy(0, rows, self.rank),
        )


def alternatives(
    case: Case, best: Plan, k: int, search: Search, moves: tuple[Moves, Moves | None]
) -> list[Plan]:
    """Up to k plans over all rows, one per rank; rows that have fewer fail in the later ones.

    Args:
        case: the people.
        best: what `generate` proposes, which comes first.
        k: how many.
        search: how finely.
        moves: the sets asked for, and pairs for rows whose sets run out (None where there are
            none).
    """
    first, reserve = moves
    question = first.question(case)
    offers = [_given(best), _sets(first, question, search, 0)]
    more: list[Callable[[Case], Offers]] = []
    if reserve is not None:
        more.append(lambda some: _sets(reserve, reserve.question(some), search, 1))
    for either in filter(None, moves):
        more.append(partial(_larger, either, search=search, k=k))
    plans = _ranked(case, offers, k)
    for make in more:
        # Decided row by row, so that nobody's answer depends on who else asks.
        short = plans[-1].failed.nonzero()[:, 0]
        if not len(short):
            break
        offers.append(make(case.select(short)).spread(short, len(case)))
        plans = _ranked(case, offers, k)
    return plans


def _given(best: Plan) -> Offers:
    """What there already is, ahead of everything else."""
    rank = torch.where(best.failed, torch.inf, 0.0)
    return Offers(
        best.rows[:, None], best.direct[:, None], best.suppressed[:, None], rank[:, None]
    )


def _sets(moves: Moves, question: Question, search: Search, kind: int) -> Offers:
    """The cheapest success of every set."""
    found = moves.find(question, search, prune=False)
    n, s = found.cost.shape
    sets = torch.arange(s).expand(n, s)
    return _offers(moves, question, sets, found.values, found.cost, kind)


def _larger(moves: Moves, case: Case, search: Search, k: int) -> Offers:
    """Actions on the same sets that go further than they must, in k steps to the far end."""
    question = moves.question(case)
    found = moves.find(question, search, prune=False)
    n, s, w = found.values.shape
    rows = torch.arange(n).repeat_interleave(s)
    sets = torch.arange(s).repeat(n)
    start = found.values.reshape(n * s, 1, w)
    own = question.x[rows[:, None], moves.sets.positions[sets]][:, None]
    far = torch.where(start > own, 1.0, torch.where(start < own, 0.0, own))
    steps = torch.arange(1, k + 1).view(1, k, 1) / k
    numbers = snapped(question, rows, sets, start + (far - start) * steps)
    levels = torch.arange(k).view(1, k, 1).expand(n * s, k, w).float()
    categories = moves.grids.counts[sets]
    level = snapped(question, rows, sets, torch.minimum(levels, categories.view(-1, 1, 1) - 1.0))
    values = torch.where((categories > 0).view(-1, 1, 1), level, numbers)
    answer = question.ask(rows, sets, values, search.slack)
    fine = answer.good & found.cost.view(-1, 1).isfinite()
    cost = torch.where(fine, answer.cost, torch.inf).reshape(n, s * k)
    which = torch.arange(s).repeat_interleave(k).expand(n, s * k)
    return _offers(moves, question, which, values.view(n, s * k, w), cost, 2)


def _offers(
    moves: Moves, question: Question, sets: Tensor, values: Tensor, cost: Tensor, kind: int
) -> Offers:
    """Actions (n, c) as rows."""
    n, c = sets.shape
    who = torch.arange(n).repeat_interleave(c)
    wide = question.select(who)
    reasons = [""] * (n * c)
    plan = moves.decoded(wide, sets.flatten(), values.reshape(n * c, -1), reasons)
    p = plan.rows.shape[1]
    return Offers(
        plan.rows.view(n, c, p),
        plan.direct.view(n, c, p),
        plan.suppressed.view(n, c),
        kind + cost / (1.0 + cost) + torch.where(cost.isfinite(), 0.0, torch.inf),
    )


def _ranked(case: Case, offers: Sequence[Offers], k: int) -> list[Plan]:
    """The k best distinct offers of every row; the same features once, but for larger actions."""
    all_ = Offers.joined(offers)
    rank = torch.nan_to_num(all_.rank, nan=torch.inf)
    acted = all_.direct & (all_.rows != case.x[:, None])
    everyone = torch.arange(len(case))
    plans = []
    for _ in range(k):
        best, at = rank.min(1)
        solved = best.isfinite()
        chosen = all_.rows[everyone, at]
        plans.append(
            Plan(
                torch.where(solved[:, None], chosen, case.x),
                all_.direct[everyone, at] & solved[:, None],
                torch.where(solved, all_.suppressed[everyone, at], 0.0),
                ["" if ok else "no further recourse was found" for ok in solved.tolist()],
                kinds=[KINDS[int(b)] if b < len(KINDS) else "" for b in best.tolist()],
            )
        )
        same = (all_.rows == chosen[:, None]).all(2)
        again = (acted == acted[everyone, at][:, None]).all(2) & (rank < LARGER)
        rank = torch.where(same | again, torch.inf, rank)
    return plans
