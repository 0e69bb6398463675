"""Alternatives: several recourses a row, from different sets first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.method import Case
from dear_plugin.moves import Moves
from dear_plugin.recourses import Plan
from dear_plugin.search import Question, Search
from dear_plugin.search.grids import snapped

KINDS = ("another set", "pair of features", "larger action")


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


def alternatives(
    case: Case, k: int, search: Search, first: Moves, reserve: Moves | None
) -> list[Plan]:
    """Up to k plans over all rows, one per rank; rows that have fewer fail in the later ones.

    Args:
        case: the people.
        k: how many.
        search: how finely.
        first: the sets asked for.
        reserve: pairs, for rows whose sets run out; None where there are none.
    """
    question = first.question(case)
    offers = [_sets(first, question, search, 0)]
    short = offers[0].rank.isfinite().sum(1) < k
    if reserve is not None and bool(short.any()):
        offers.append(_sets(reserve, reserve.question(case), search, 1))
        short = torch.cat([o.rank for o in offers], 1).isfinite().sum(1) < k
    if bool(short.any()):
        offers.append(_larger(first, question, search, k))
    return _ranked(case, offers, k)


def _sets(moves: Moves, question: Question, search: Search, kind: int) -> Offers:
    """The cheapest success of every set."""
    found = moves.find(question, search, prune=False)
    n, s = found.cost.shape
    sets = torch.arange(s).expand(n, s)
    return _offers(moves, question, sets, found.values, found.cost, kind)


def _larger(moves: Moves, question: Question, search: Search, k: int) -> Offers:
    """Actions on the same sets that go further than they must, in k steps to the far end."""
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
    cost = torch.where(fine, answer.cost, torch.inf).view(n, s * k)
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
    """The k best distinct offers of every row."""
    rows = torch.cat([o.rows for o in offers], 1)
    direct = torch.cat([o.direct for o in offers], 1)
    suppressed = torch.cat([o.suppressed for o in offers], 1)
    rank = torch.nan_to_num(torch.cat([o.rank for o in offers], 1), nan=torch.inf)
    everyone = torch.arange(len(case))
    plans = []
    for _ in range(k):
        best, at = rank.min(1)
        chosen = rows[everyone, at]
        solved = best.isfinite()
        kinds = [KINDS[int(b)] if b < len(KINDS) else "" for b in best.tolist()]
        plans.append(
            Plan(
                torch.where(solved[:, None], chosen, case.x),
                direct[everyone, at] & solved[:, None],
                torch.where(solved, suppressed[everyone, at], 0.0),
                ["" if ok else "no further recourse was found" for ok in solved.tolist()],
                kinds=kinds,
            )
        )
        same = (rows == chosen[:, None]).all(2)
        rank = torch.where(same, torch.inf, rank)
    return plans
