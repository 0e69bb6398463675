"""Writing: writes and scores proposals; where these do not succeed, asks again, farther."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Question, Written

# How far past the decision boundary a proposal aims; each retry aims farther, see `Goal.aim`.
PAST = (1e-4, 1e-3, 1e-1)


def settle(question: Question, propose: Callable[[Case], Proposal]) -> Written:
    """Propose, write and score the rows that are not accepted; failed rows again, farther.

    Args:
        question: n rows.
        propose: the proposal of a method for a case.
    """
    case, proposal = question.case, question.unchanged
    written = Written(proposal, question.frame.copy(), question.scores, question.accepted)
    open_rows = ~(question.accepted | proposal.failed)
    for past in PAST:
        todo = open_rows.nonzero()[:, 0]
        if not len(todo):
            break
        # A copy: a method may change the rows of its case.
        part = replace(case, x=case.x.clone()) if len(todo) == len(case) else case.select(todo)
        part = replace(part, aim=part.goal.aim(past, surely=past == PAST[-1]))
        proposal = proposal.merged(propose(part), todo)
        written = question.write(proposal, todo, (written.scores, written.success))
        # Rows without a proposal are not tried again.
        open_rows = open_rows & ~(written.success | proposal.failed)
    return written
