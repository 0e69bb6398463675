"""Proposals written into frames and scored; where these fail, further ones are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from dear_plugin._threads import in_threads, progress
from dear_plugin.data.encoder import patch
from dear_plugin.errors import InputError, shown
from dear_plugin.problem.feasible import Case, Reason, Status
from dear_plugin.results.proposal import Attempt, Method, Proposal, Question
from dear_plugin.results.result import Result

# How far past the decision boundary a proposal aims; each retry aims farther, see `Goal.aim`.
PAST = (1e-4, 1e-3, 1e-1)
# Fewer rows a thread make more calls of the model than they are worth.
FEWEST_ROWS = 8
# Rows of several ranks that are written at once.
ROWS_WRITTEN = 1024


def write(
    question: Question, proposal: Proposal, rows: Tensor, before: Result | None = None
) -> Result:
    """A proposal written into the user's frame, of which the user's model scores rows.

    Args:
        question: n rows.
        proposal: for them.
        rows: (m,) the positions of the rows that it changed.
        before: the scores and successes of the others; None: those of the factuals.
    """
    case = question.case
    after, seen = patch(question.method.encoder, question.frame, case.x, rows=proposal.rows)
    every = len(rows) == len(case)
    scored = (after, seen) if every else (after.iloc[rows.numpy()], seen[rows])
    new, success = question.decided(*scored, rows)
    lawful = case.feasible.keeps_rules(seen[rows], rows)
    proposal = replace(proposal, rows=seen)
    if not bool(lawful.all()):
        reasons, broken = (
            np.array(proposal.reasons),
            case.feasible.broken_text(seen, rows[~lawful]),
        )
        reasons[rows[~lawful].numpy()] = [Reason.BREAKS_RULES.format(names) for names in broken]
        proposal = replace(proposal, reasons=reasons)
    scores, done = question.scores, question.accepted
    if before is not None:
        scores, done = before.scores, before.success
    scores = scores.index_copy(0, rows, new) if len(rows) else scores
    done = done.index_copy(0, rows, success & lawful)
    return Result(question, proposal, after, scores, done)


def settled(question: Question, k: int = 1) -> Iterator[Result]:
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
    first = Result(question, none, question.frame.copy(), question.scores, question.accepted)
    open_rows = ~(question.accepted | none.failed)
    searched = open_rows.nonzero()[:, 0]
    no_more = replace(none, status=none.status.masked_fill(open_rows, int(Status.NO_MORE)))
    some = max(1, ROWS_WRITTEN // max(len(case), 1))
    others: list[Result] = []
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
        others = []
        if attempt.first is None and k > 1 and past == PAST[0]:
            # With one call of the model; rows that fail are written again with the others.
            whole, *others = _written(question, ranks[:some], searched, 0)
            attempt.first = replace(whole, rank=None)
        elif attempt.first is None:
            attempt.first = write(question, ranks[0], todo, first)
        first = attempt.first
        # Rows without a proposal are not tried again.
        open_rows = open_rows & ~(first.success | ranks[0].failed)
    yield first
    yield from others
    for start in range(1 + len(others), len(ranks), some):
        yield from _written(question, ranks[start : start + some], searched, start)


def _written(
    question: Question, ranks: Sequence[Proposal], searched: Tensor, start: int
) -> Iterator[Result]:
    """Each of some ranks, from `start` on, written and scored at once; `searched` rows change."""
    n, count = len(question.case), len(ranks)
    starts = n * torch.arange(count)[:, None]
    every = question.select(torch.arange(n).repeat(count))
    whole = write(every, Proposal.joined(ranks), (starts + searched).flatten())
    for rank, idx in enumerate(starts + torch.arange(n), start):
        yield replace(whole.select(idx), question=question, rank=torch.full((n,), rank))


def proposed(
    method: Method, case: Case, k: int, n_jobs: int, attempt: Attempt
) -> Iterator[tuple[Tensor, Sequence[Proposal]]]:
    """Positions of rows, (q,), and the proposals for these, one per rank; together all m rows.

    Threads share the method, its model and its decoders: one that a thread fits the others need
    not. Processes would fit it again, each in every call.

    Args:
        method: fitted.
        case: the m rows.
        k: the number of ranks.
        n_jobs: the number of threads; -1 for all cores, as in joblib.
        attempt: a search that is continued, in one thread.
    """
    every = torch.arange(len(case))
    if n_jobs == 1 or not method.in_threads or len(case) < 2 * FEWEST_ROWS:
        yield every, method._alternatives(case, k, attempt)
        return
    import joblib

    parts = every.tensor_split(min(joblib.effective_n_jobs(n_jobs), len(case) // FEWEST_ROWS))
    found = in_threads(_searched, ((method, case.select(at), k) for at in parts), len(parts))
    yield from zip(parts, found, strict=True)


def _searched(method: Method, case: Case, k: int) -> Sequence[Proposal]:
    """The proposals for the rows of a case, one per rank; without a bar each."""
    with progress(False):
        return method._alternatives(case, k)
