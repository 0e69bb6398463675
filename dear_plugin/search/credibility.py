"""Credibility: confidence of actions, and what the model says of shares of what follows.

Each criterion is a function of a search problem and some actions; no search optimises it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from dear_plugin.decoders import Decoder
from dear_plugin.problem.scores import share_of
from dear_plugin.search.asking import Asking
from dear_plugin.search.outcomes import alone, margins_of
from dear_plugin.search.problem import SearchProblem

# Shares of the indirect change; from the half on, categories change.
SHARES = (0.0, 0.25, 0.5, 0.75)
HALF = 0.5
# Relative rounding error of a margin.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Reached:
    """m counterfactuals, however they were found.

    Attributes:
        rows: (m,) the row.
        reached: (m, p) the counterfactual.
    """

    rows: Tensor
    reached: Tensor

    def __len__(self) -> int:
        """The number of counterfactuals (m)."""
        return len(self.rows)

    def part(self, at: Tensor) -> Self:
        """Those at positions (q,), or where a mask, (m,) bool, is true."""
        return type(self)(*(getattr(self, field.name)[at] for field in fields(self)))


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
    problem: SearchProblem, rows: Tensor, resampled: Tensor, least: float = 0.0
) -> Asking[tuple[Tensor, Tensor]]:
    """The share of resamples (decoders of resampled rows) under which actions succeed.

    A search chooses among many actions those that do well under the resamples that it evaluates;
    their share among the same resamples is too high. What is reported is of `unseen` ones.

    Args:
        problem: the search problem.
        rows: (m,) the row of each action.
        resampled: (m, r, p) the counterfactuals under some resamples.
        least: the share to reach.

    Returns:
        (m,) double, the share, and (m,) by how much the margin falls short in the resample that
        decides whether `least` is reached; 0 where none does.
    """
    found, owner = resampled.flatten(0, 1), rows.repeat_interleave(resampled.shape[1])
    scores = yield found
    margins = margins_of(problem, scores, found, owner)
    valid = problem.goal.accepts(scores, owner) & (margins > -torch.inf)
    shape = resampled.shape[:2]
    return share_of(margins.view(shape), valid.view(shape), least)


def unseen(decoder: Decoder) -> Tensor:
    """(r,) the resamples of a decoder that no search evaluates."""
    return torch.arange(decoder.draws + 1, 2 * decoder.draws + 1)


@dataclass(frozen=True)
class Shares:
    """What the model says of m actions where only a share of the indirect change happens.

    Attributes:
        accepted: (m, 4) bool, whether it accepts the rows with the `SHARES`: the first of them has
            the action alone, with what it forces.
        least: (m, p) the row with the share that is the reliance.
        gain: (m,) double, 1 where the action itself helps: alone it is accepted; or it does not
            lower the score, and the row with all that follows but the action is refused. Else 0.
    """

    accepted: Tensor
    least: Tensor
    gain: Tensor

    @property
    def reliance(self) -> Tensor:
        """(m,) double, the least share of the indirect change from which on all are accepted.

        One of 0, 1/4, 1/2, 3/4, 1. At 0 the action alone suffices, and no part of what follows
        undoes it; at 1 all of the indirect change is needed.
        """
        return torch.tensor([*SHARES, 1.0], dtype=torch.float64)[_first(self.accepted)]

    @property
    def alone(self) -> Tensor:
        """(m,) bool, whether the action alone is accepted."""
        return self.accepted[:, 0]


def by_share(problem: SearchProblem, actions: Decoded) -> Asking[Shares]:
    """What the model says of actions of which only a share of the indirect change happens."""
    x, whole, count = problem.x[actions.rows][:, None], actions.reached[:, None], len(SHARES)
    acted, (m, p) = problem.sets.masks[actions.sets][:, None], actions.reached.shape
    rows = _partial(problem, actions)
    # The model is called once, with the factual and what follows without the action besides.
    every = torch.cat([rows, x, torch.where(acted, x, whole)], 1).view(-1, p)
    owner = actions.rows.repeat_interleave(count + 2)
    scores = yield every
    accepted = problem.goal.accepts(scores, owner).view(m, -1)
    margin = problem.goal.margin(scores, owner).view(m, -1)
    before, gained = margin[:, count], margin[:, 0] - margin[:, count]
    helps = (gained >= -ROUNDING * before.abs()) & ~accepted[:, -1]
    alone = (torch.tensor(SHARES) == 0.0).repeat(m)
    lawful = problem.feasible.keeps_rules(
        rows.view(-1, p), actions.rows.repeat_interleave(count), alone
    )
    accepted = accepted[:, :count] & lawful.view(m, count)
    least = torch.cat([rows, whole], 1)[torch.arange(m), _first(accepted)]
    return Shares(accepted, least, (accepted[:, 0] | helps).double())


def _partial(problem: SearchProblem, actions: Decoded) -> Tensor:
    """(m, 4, p) the rows of actions with the `SHARES` of their indirect changes."""
    x, whole = problem.x[actions.rows][:, None], actions.reached[:, None]
    shares = torch.tensor(SHARES)[:, None]
    number = problem.classifier.encoder.amounts(x, whole)
    rows = torch.where(number, x + shares * (whole - x), torch.where(shares >= HALF, whole, x))
    rows = problem.feasible.project(x[:, 0], rows, actions.rows)
    rows = torch.where(problem.sets.masks[actions.sets][:, None], whole, rows)
    rows = problem.repair(rows, actions.rows, actions.sets)
    rows[:, 0] = alone(problem, actions.rows, actions.sets, actions.values)
    return rows


def _first(accepted: Tensor) -> Tensor:
    """(m,) the position of the first share from which on all are accepted, (m, 4) bool."""
    return len(SHARES) - accepted.flip(1).long().cumprod(1).sum(1)
