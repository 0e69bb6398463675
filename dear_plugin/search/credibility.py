"""Credibility: confidence (under resamples) and reliance (on indirect changes) of actions.

Each criterion is a function of a search problem and some actions; no search optimises it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dear_plugin.data.special_values import is_special
from dear_plugin.decoders import Decoder
from dear_plugin.search.actions import Entries
from dear_plugin.search.problem import SearchProblem

# Shares of the indirect change; from the half on, categories change.
SHARES = (0.0, 0.25, 0.5, 0.75)
HALF = 0.5
CELLS_A_BATCH = 1 << 20


@dataclass(frozen=True)
class Reached(Entries):
    """m counterfactuals, however they were found.

    Attributes:
        reached: (m, p) the counterfactual.
    """

    reached: Tensor


@dataclass(frozen=True)
class Decoded(Reached):
    """m actions, decoded.

    Attributes:
        sets: (m,) the set acted on.
        values: (m, w) the new values of the set's features.
    """

    sets: Tensor
    values: Tensor


def confidence(
    problem: SearchProblem, actions: Decoded, least: float = 0.0, draws: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The share of resamples (decoders of resampled rows) under which actions succeed.

    Args:
        problem: the search problem.
        actions: m actions.
        least: the share to reach.
        draws: (r,) the resamples; None for those of a search.

    Returns:
        (m,) the share, and (m,) by how much the margin falls short in the resample that decides
        whether `least` is reached; 0 where none does.
    """
    if not problem.resampled or not len(actions):
        return torch.ones(len(actions)), torch.zeros(len(actions))
    count = problem.decoders.decoder.draws
    margins, valid = _resampled(
        problem, actions, torch.arange(1, count + 1) if draws is None else draws
    )
    may_fail = int((1.0 - least) * count + 1e-6)
    more_margin = -margins.kthvalue(min(may_fail, count - 1) + 1, dim=1).values
    more_margin = torch.where(more_margin.isfinite(), more_margin, 0.0).clamp_min(0.0)
    return valid.float().mean(1), more_margin


def confirmed(problem: SearchProblem, actions: Decoded, resampled: Tensor) -> Tensor:
    """(m,) double, the share of resamples under which actions succeed, given the rows, (m, r, p).

    A search chooses among many actions those that do well under the resamples that it evaluates;
    their share among the same resamples is too high. `resampled` is therefore of `unseen` ones.
    """
    m, r, _ = resampled.shape
    valid = problem.decide(resampled.flatten(0, 1), actions.rows.repeat_interleave(r))[1]
    return valid.view(m, r).double().mean(1)


def unseen(decoder: Decoder) -> Tensor:
    """(r,) the resamples of a decoder that no search evaluates."""
    return torch.arange(decoder.draws + 1, 2 * decoder.draws + 1)


def _resampled(problem: SearchProblem, actions: Decoded, draws: Tensor) -> tuple[Tensor, Tensor]:
    """(m, r) margins and (m, r) bool, the decisions for actions under some resamples, (r,)."""
    m, r, p = len(actions), len(draws), problem.x.shape[1]
    margins, valid = torch.empty(m, r), torch.empty(m, r, dtype=torch.bool)
    for at in torch.arange(m).split(max(1, CELLS_A_BATCH // (r * p))):
        part = actions.part(at)
        reached = problem.resample(part.rows, part.sets, part.values, draws).reshape(-1, p)
        margin, accepted = problem.decide(reached, part.rows.repeat_interleave(r))
        margins[at], valid[at] = margin.view(-1, r), accepted.view(-1, r)
    return margins, valid


def reliance(problem: SearchProblem, actions: Decoded) -> Tensor:
    """(m,) the least share of the indirect change from which on the action is accepted.

    One of 0, 1/4, 1/2, 3/4, 1. At 0 the direct change alone suffices; at 1 all of the indirect
    change is needed.
    """
    p = actions.reached.shape[1]
    parts = torch.arange(len(actions)).split(max(1, CELLS_A_BATCH // (len(SHARES) * p)))
    return torch.cat([_reliance(problem, actions.part(at)) for at in parts])


def _reliance(problem: SearchProblem, actions: Decoded) -> Tensor:
    x, whole = problem.x[actions.rows][:, None], actions.reached[:, None]
    (m, p), shares = actions.reached.shape, torch.tensor(SHARES)[:, None]
    number = (problem.is_number & ~is_special(x)) & ~is_special(whole)
    partial = torch.where(number, x + shares * (whole - x), torch.where(shares >= HALF, whole, x))
    partial = problem.feasible.project(x[:, 0], partial, actions.rows)
    acted = problem.sets.masks[actions.sets][:, None]
    partial = torch.where(acted, whole, partial)
    # What an order or a relation forces is no matter of the decoder.
    partial = problem.repair(partial, actions.rows, actions.sets).reshape(-1, p)
    _, valid = problem.decide(partial, actions.rows.repeat_interleave(len(SHARES)))
    # The number of consecutive shares, from the largest down, that are accepted.
    count = valid.view(m, len(SHARES)).flip(1).long().cumprod(1).sum(1)
    return torch.tensor([*SHARES, 1.0])[len(SHARES) - count]
