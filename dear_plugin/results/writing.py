"""Writing: writes and scores proposals; where these do not succeed, asks again, farther."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from numbers import Integral

import torch
from torch import Tensor

from dear_plugin.errors import InputError, shown
from dear_plugin.problem.reasons import Status
from dear_plugin.results.jobs import proposed
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Attempt, Question, Written

# How far past the decision boundary a proposal aims; each retry aims farther, see `Goal.aim`.
PAST = (1e-4, 1e-3, 1e-1)
# Rows of several ranks that are written at once.
ROWS_WRITTEN = 1024


def settled(question: Question, k: int = 1) -> Iterator[Written]:
    """Up to k answers of every row, one rank after another.

    One search gives all of them, and a later call for more continues it. Rows whose first answer
    fails as it is written are searched again, farther.

    Args:
        question: n rows; those that are accepted are not searched.
        k: the number of ranks.

    Raises:
        InputError: k is no whole number from 1.
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise InputError(f"k must be a whole number from 1, got {shown(k)}")
    case, method, none = question.case, question.method, question.unchanged
    ranks: list[Proposal] = [none]
    written = Written(none, question.frame.copy(), question.scores, question.accepted)
    open_rows = ~(question.accepted | none.failed)
    searched = open_rows.nonzero()[:, 0]
    no_more = replace(none, status=none.status.masked_fill(open_rows, int(Status.NO_MORE)))
    for past in PAST:
        todo = open_rows.nonzero()[:, 0]
        if not len(todo):
            break
        # A copy: a method may change the rows of its case.
        part = replace(case, x=case.x.clone()) if len(todo) == len(case) else case.select(todo)
        part = replace(part, aim=part.goal.aim(past, surely=past == PAST[-1]))
        attempt = question.attempts.setdefault(past, Attempt())
        for at, found in proposed(method, part, k, question.n_jobs, attempt):
            ranks = [
                (rank or no_more).merged(new or no_more.select(todo[at]), todo[at])
                for rank, new in zip_longest(ranks, found)
            ]
        if attempt.written is None:
            before = written.scores, written.success
            attempt.written = question.write(ranks[0], todo, before)
        written = attempt.written
        # Rows without a proposal are not tried again.
        open_rows = open_rows & ~(written.success | ranks[0].failed)
    yield written
    some = max(1, ROWS_WRITTEN // max(len(case), 1))
    for first in range(1, len(ranks), some):
        yield from _written(question, ranks[first : first + some], searched)


def _written(question: Question, ranks: Sequence[Proposal], searched: Tensor) -> Iterator[Written]:
    """Each of some ranks, written and scored at once; `searched` are the rows that may change."""
    n, count = len(question.case), len(ranks)
    starts = n * torch.arange(count)[:, None]
    every = question.select(torch.arange(n).repeat(count))
    whole = every.write(Proposal.joined(ranks), (starts + searched).flatten())
    for idx in starts + torch.arange(n):
        yield Written(
            whole.proposal.select(idx),
            whole.frame.iloc[idx.numpy()],
            whole.scores[idx],
            whole.success[idx],
        )
