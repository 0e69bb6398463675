"""Supported search: the cheapest success whose neighbours are accepted too."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.search.found import Found
from dear_plugin.search.grids import Grids
from dear_plugin.search.question import Answer, Question, Search
from dear_plugin.support import Support

AT_ONCE = 4


@dataclass(frozen=True)
class Choice:
    """One action per row.

    Attributes:
        sets: (n,) the set, -1 where nothing succeeded.
        values: (n, w) its features' new values.
        support: (n,) how supported it is, NaN where nothing succeeded.
    """

    sets: Tensor
    values: Tensor
    support: Tensor


def supported_search(
    question: Question, grids: Grids, search: Search, found: Found, support: Support
) -> Choice:
    """The cheapest success with support >= `search.min_support`, else the best supported one.

    Args:
        question: who asks what.
        grids: the values to try.
        search: how finely, and the support to reach.
        found: what the searches found; its successes compete too.
        support: the neighbourhoods.
    """
    sets, values, cost = _candidates(question, grids, search, found)
    order = cost.argsort(dim=1, stable=True)
    n = len(question)
    best = Choice(torch.full((n,), -1), question.x.new_zeros(n, values.shape[2]), _nan(n))
    open_rows = torch.arange(n)
    wanted = float(search.min_support or 0.0)
    for start in range(0, order.shape[1], AT_ONCE):
        at = order[open_rows, start : start + AT_ONCE]
        priced = cost[open_rows[:, None], at].isfinite()
        if not bool(priced.any()):
            break
        s, a = sets[open_rows[:, None], at], values[open_rows[:, None], at]
        share = _support(question, open_rows, s, a, priced, support)
        reached = (share >= wanted - 1e-6) & priced
        # The first that reaches it is the cheapest; else the best supported so far.
        first = torch.where(reached, torch.arange(at.shape[1]), at.shape[1]).amin(1)
        pick = torch.where(first < at.shape[1], first, share.argmax(1))
        picked = share.gather(1, pick[:, None])[:, 0]
        better = (picked >= 0.0) & ~(picked <= best.support[open_rows])
        better |= first < at.shape[1]
        rows, pick = open_rows[better], pick[better]
        best.sets[rows] = s[better, pick]
        best.values[rows] = a[better, pick]
        best.support[rows] = picked[better]
        open_rows = open_rows[first == at.shape[1]]
        if not len(open_rows):
            break
    return best


def _nan(n: int) -> Tensor:
    return torch.full((n,), torch.nan)


def _candidates(
    question: Question, grids: Grids, search: Search, found: Found
) -> tuple[Tensor, Tensor, Tensor]:
    """Sets (n, c), values (n, c, w) and costs (n, c) of all actions; failures cost infinity."""
    n, s, w = found.values.shape
    sets = [torch.arange(s).expand(n, s)]
    values, costs = [found.values], [found.cost]
    for rows, which, tried in grids.everything(question):
        answer: Answer = question.ask(rows, which, tried, search.slack)
        c = tried.shape[1]
        wide = torch.zeros(n, s, c, w)
        wide[rows, which] = tried.expand(-1, -1, w)
        price = torch.full((n, s, c), torch.inf)
        price[rows, which] = torch.where(answer.good, answer.cost, torch.inf)
        sets.append(torch.arange(s).repeat_interleave(c).expand(n, s * c))
        values.append(wide.view(n, s * c, w))
        costs.append(price.view(n, s * c))
    return torch.cat(sets, 1), torch.cat(values, 1), torch.cat(costs, 1)


def _support(
    question: Question, rows: Tensor, sets: Tensor, values: Tensor, asked: Tensor, support: Support
) -> Tensor:
    """(m, c) the support of actions; -1 for those not asked about, (m, c) bool."""
    m, c = sets.shape
    who, which = rows.repeat_interleave(c), asked.flatten()
    _, reached = question.reach(who, sets.flatten(), values.reshape(m * c, 1, -1))
    share = torch.full((m * c,), -1.0)
    share[which] = support.of(reached[which, 0], question.goal.select(who[which]))
    return share.view(m, c)
